"""Fits to collections of Dask: a fit to a sample of the rows, whose trees are counted by all rows.

One pass checks the partitions and counts classes, a second one draws the sample, and the third,
after the search, adds up the statistics of the leaves. Rows are drawn by random numbers of their
numbers, and sums are added in the order of the partitions: nothing depends on the workers. Where
weights are whole numbers, sums of class weights are exact, however the rows are parted.
"""

import math
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import partial, reduce
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.special import xlogy
from sklearn.base import is_regressor
from sklearn.utils.multiclass import check_classification_targets

from evotree.configuration import Quantile
from evotree.dataset import Dataset, check_targets, check_weight, class_codes
from evotree.engine.config import AUTO, evolution_of
from evotree.engine.finish import Result, front_with, scores_of
from evotree.engine.state import seed_to_continue
from evotree.estimators.base import deviations
from evotree.estimators.rows import Beside, categorical_mask, is_collection, refuse_text
from evotree.fitness.base import Objective, PenalizedAccuracy
from evotree.fitness.objectives import (
    OwnObjective,
    PoissonLoss,
    PoissonSums,
    ProbabilityScore,
)
from evotree.front import FittedFront, FrontTree
from evotree.log import Progress
from evotree.operators.constraints import nodes_without
from evotree.rng import row_keys, seed_from
from evotree.schema import NumericColumn
from evotree.tables.columns import encode_in_order
from evotree.tables.frames import read_labels
from evotree.tree import CountedTree, ObliqueTree, sizes_of_kept

MAX_SAMPLES = 100_000
"""Rows of the sample where `max_samples` is None."""

_SUMS_ADDED_AT_ONCE = 8


# ---- what runs on the workers --------------------------------------------------------------------


@dataclass(frozen=True)
class Reader:
    """How one partition is read."""

    columns: list[Any]
    categorical: np.ndarray
    is_regression: bool
    least: float  # target

    def __call__(self, X: Any, y: Any, weight: Any = None) -> tuple[Any, ...]:
        """Return the table, classes, targets, weights and positions of the rows that have a weight.

        Classes are 0 for regression, targets 0 for classification.
        """
        table = (
            X
            if isinstance(X, pd.DataFrame)
            else pd.DataFrame(X, copy=False).add_prefix("x")
        )
        if list(table.columns) != self.columns:
            raise ValueError(
                f"X has the columns {list(table.columns)}, not {self.columns}."
            )
        y = check_targets(y) if self.is_regression else read_labels(y)
        if y.shape != (len(table),):
            raise ValueError(
                f"y has shape {y.shape}: one label for each of {len(table)} rows."
            )
        if self.is_regression and y.min(initial=np.inf) < self.least:
            raise ValueError(
                f"y has the target {y.min():g}: for objective='poisson' 0 is least."
            )
        weight = check_weight(weight, len(table), is_part=True)
        zeros = np.zeros(len(table), dtype=np.int64)
        labels = y.astype(object) if y.dtype.kind == "U" else y
        group, targets = (zeros, y) if self.is_regression else (labels, zeros)
        rows = np.flatnonzero(weight)
        return table.iloc[rows], group[rows], targets[rows], weight[rows], rows


def tally_rows(
    reader: Reader, number: int, X: Any, *beside: Any
) -> tuple[int, pd.DataFrame]:
    """Return the number of rows of a partition, and sums over the rows of each class."""
    try:
        table, group, targets, weight, _ = reader(X, *beside)
        refuse_text(table, reader.categorical)
        for name in table.columns[~reader.categorical]:
            encode_in_order([NumericColumn(str(name), 0.0)], table[[name]])
    except (TypeError, ValueError) as error:
        raise ValueError(f"partition {number}: {error}") from error
    entropy = weight * xlogy(np.maximum(targets, 0.0), targets)
    sums = {"n": 1, "weight": weight, "total": weight * targets, "entropy": entropy}
    return len(X), pd.DataFrame(sums, index=range(len(group))).groupby(group).sum()


def draw_partition(
    reader: Reader, limits: pd.Series, seed: int, first: int, X: Any, *beside: Any
) -> tuple[Any, ...]:
    """Return the rows whose random number is below the limit of their class, and the numbers."""
    table, group, targets, weight, positions = reader(X, *beside)
    keys = row_keys(seed, first, len(X))[positions]
    kept = keys < limits.reindex(group).to_numpy()
    # Partitions may list other levels, in another order.
    objects = dict.fromkeys(table.columns[reader.categorical], object)
    drawn = (group[kept], targets[kept], weight[kept], keys[kept])
    return table[kept].astype(objects), *drawn


def count_leaves(
    reader: Reader,
    schema: Any,
    classes: Any,
    mean: float,
    scale: Any,
    trees: Sequence[ObliqueTree],
    *part: Any,
) -> tuple[np.ndarray, ...]:
    """Return sums of weights, targets and squares, numbers of rows, of leaves; feature ranges."""
    table, group, targets, weight, _ = reader(*part)
    rows = (
        encode_in_order(schema, table)
        if len(table)
        else np.empty((0, len(schema.features)))
    )
    targets = (targets - mean) / scale
    powers = range(3 if reader.is_regression else 1)
    summed = [*(weight * targets**power for power in powers), np.ones(len(group))]
    codes = np.searchsorted(classes, group)
    sums = []
    for tree in trees:
        cells = tree.apply(rows).astype(np.int64) * len(classes) + codes
        counts = [np.bincount(cells, one, len(tree) * len(classes)) for one in summed]
        sums.append(np.hstack([one.reshape(len(tree), -1) for one in counts]))
    lowest, highest = (
        rows.min(axis=0, initial=np.inf),
        rows.max(axis=0, initial=-np.inf),
    )
    return np.concatenate(sums), lowest, highest


def add_up(parts: Sequence[tuple[np.ndarray, ...]]) -> tuple[np.ndarray, ...]:
    """Return the sums and the ranges of several parts together."""
    sums, lowest, highest = zip(*parts, strict=True)
    return reduce(np.add, sums), np.min(lowest, axis=0), np.max(highest, axis=0)


# ---- what stays here -----------------------------------------------------------------------------


class Counted(NamedTuple):
    """A finished tree by all rows."""

    tree: ObliqueTree
    scores: tuple[float, ...]
    deviations: np.ndarray | None  # of the residuals of leaves


@dataclass(frozen=True)
class AllRows:
    """All rows of a data set of which a sample is held here."""

    parts: Sequence[tuple[Any, ...]]  # rows, targets and weights of each partition
    count: Callable[..., Any]  # `count_leaves` of trees and a partition
    sample: Dataset
    objective: Objective | None  # by sums over all rows
    mean: float  # of the targets of all rows
    factors: np.ndarray  # of the weights of classes
    least_rows: float  # of a leaf, whatever their weights

    def counted(
        self, trees: Sequence[ObliqueTree]
    ) -> tuple[list[Counted], Sequence[np.ndarray]]:
        """Return trees with the values of all rows, without leaves of too few; feature ranges."""
        tables, *ends = self._sums(trees)
        counted: dict[int, Counted] = {}
        smaller: dict[int, ObliqueTree] = {}
        for number, (tree, table) in enumerate(zip(trees, tables, strict=True)):
            n_rows = table[:, -len(self.factors) :].astype(np.int64)
            few = tree.is_leaf & (n_rows.sum(axis=1) < self.least_rows)
            if few.any() and len(tree) > 1:
                kept = nodes_without(tree, few)
                smaller[number] = ObliqueTree(
                    tree.weights[kept],
                    tree.thresholds[kept],
                    sizes_of_kept(kept, tree.subtree_size),
                    tree.values[kept],
                    tree.spread,
                )
            else:
                counted[number] = self._finish(tree, table, n_rows)
        if smaller:
            # Rows of a leaf that is taken out go where the other side of its split sends them, so
            # all rows are asked again.
            again, _ = self.counted([*smaller.values()])
            counted |= zip(smaller, again, strict=True)
        return [counted[number] for number in range(len(trees))], ends

    def _sums(self, trees: Sequence[ObliqueTree]) -> tuple[Any, ...]:
        """Return the statistics of the nodes of each tree, and the ranges of the features."""
        from dask import delayed

        sent = delayed(trees, traverse=False)  # to each worker once
        answers = [self.count(sent, *part) for part in self.parts]
        while len(answers) > 1:
            groups = range(0, len(answers), _SUMS_ADDED_AT_ONCE)
            answers = [
                delayed(add_up)(answers[first : first + _SUMS_ADDED_AT_ONCE])
                for first in groups
            ]
        sums, *ends = answers[0].compute()
        tables = np.split(sums, np.cumsum([len(tree) for tree in trees])[:-1])
        for tree, table in zip(trees, tables, strict=True):
            for k in np.flatnonzero(~tree.is_leaf)[::-1].tolist():
                table[k] = table[tree.left(k)] + table[tree.right(k)]
        return tables, *ends

    def _finish(
        self, tree: ObliqueTree, table: np.ndarray, n_rows: np.ndarray
    ) -> Counted:
        """Return a tree with the values, the scores and the deviations that all rows say."""
        sample = self.sample
        counts = self.factors / sample.weight_unit * table[:, : -n_rows.shape[1]]
        weights = counts[:, : sample.n_classes or 1].sum(axis=1)
        sums = counts if sample.n_classes else counts[:, 1:2]
        values = self.mean + sample.target_scale * (sums / weights[:, np.newaxis])
        finished = tree.predicting(values).replaced(
            weighted_n_node_samples=weights,
            row_counts=n_rows if sample.is_weighted else None,
        )
        if self.objective is not None:
            finished = self.objective.finish(finished, sample)
            kept, k = [], 0  # what a pruning leaves
            for size in finished.subtree_size.tolist():
                kept.append(k)
                k += int(tree.subtree_size[k]) if size == 1 else 1
            counts = counts[kept]
        routed = CountedTree(finished.weights, finished.subtree_size, counts)
        scores = scores_of(routed, sample, self.objective)
        spread = None if sample.n_classes else self._deviations(finished, counts)
        return Counted(finished, scores, spread)

    def _deviations(self, tree: ObliqueTree, counts: np.ndarray) -> np.ndarray:
        """Return the standard deviations of the residuals of leaves."""
        weights, sums, squares = counts.T
        scale = self.sample.target_scale
        values = (tree.values[:, 0] - self.mean) / scale  # which need not be means
        errors = np.maximum(0.0, squares - sums**2 / weights)
        errors = scale**2 * (errors + weights * (values - sums / weights) ** 2)
        of_leaves, errors = np.where(tree.is_leaf, [weights, errors], 0.0)
        return deviations(tree, of_leaves, errors, float(weights[0]))

    def refit(
        self, result: Result
    ) -> tuple[Result, list[Counted], Sequence[np.ndarray]]:
        """Return what a search on the sample found, by all rows; its front, feature ranges."""
        front: list[Any] = list(result.front)
        hall = result.hall_of_fame
        counted, ends = self.counted([*front, *hall, *result.best_trees.values()])
        others = [one.tree for one in counted[len(front) :]]
        members = [
            FrontTree.of(
                one.tree,
                one.scores[0],
                before.origin,
                (*one.scores, float(one.tree.complexity)) if before.scores else (),
                # They are those of the sample, as of all trees
                sides=before.sides if one.tree.has_splits_of(before) else None,
            )
            for before, one in zip(front, counted, strict=False)
        ]
        candidates = result.candidates
        if candidates is None:  # nothing was compared on rows held out
            fitness: Any = PenalizedAccuracy(*result.choice.penalties)
            best = max(members, key=fitness)
        else:
            best = members[front.index(result.tree)]
            candidates = replace(
                candidates, n_leaves=best.n_leaves, n_terms=best.n_terms
            )
        trees = front_with(best, members)
        result = replace(
            result,
            tree=best,
            candidates=candidates,
            front=FittedFront(trees, result.front.is_regression, choice=candidates),
            hall_of_fame=others[: len(hall)],
            best_trees=dict(zip(result.best_trees, others[len(hall) :], strict=True)),
        )
        return result, [counted[members.index(tree)] for tree in trees], ends


def fit_collections(
    estimator: Any, X: Any, y: Any, beside: Beside, begin: float
) -> Result:
    """Fit an estimator to a sample of collections, and count its trees by all rows."""
    from dask import delayed

    _refuse(estimator, beside)
    last = getattr(estimator, "_last", None) if estimator.warm_start else None
    progress = Progress(estimator.verbose)
    seed = seed_to_continue(estimator, last)
    seed = seed_from(estimator.random_state) if seed is None else seed
    parts = _parts_of(X, y, beside.sample_weight)
    is_array = hasattr(X, "chunks")
    meta = (
        pd.DataFrame(np.empty((0, X.shape[1]))).add_prefix("x") if is_array else X._meta
    )
    if meta.shape[1] == 0 or not meta.columns.is_unique:
        raise ValueError(
            f"X has the columns {list(meta.columns)}: allowed are distinct ones."
        )
    is_poisson = estimator.objective == "poisson" or isinstance(
        estimator.objective, PoissonLoss
    )
    reader = Reader(
        list(meta.columns),
        categorical_mask(meta, estimator.categorical_features),
        is_regressor(estimator),
        least=0.0 if is_poisson else -np.inf,
    )
    classes, table, y, weight = _draw_sample(reader, estimator, parts, seed, progress)
    inner, least_rows = _on_sample(estimator, classes, reader.categorical)
    result = inner._search(
        table.to_numpy() if is_array else table,
        y,
        Beside(weight),
        begin,
        continues=last,
        seed=seed,
        progress=progress,
    )
    dataset = result.problem.dataset
    scale = dataset.target_scale
    objective, mean = dataset.bound_objective, 0.0
    if reader.is_regression:
        total, entropy = classes.loc[0, ["total", "entropy"]]
        mean = total / classes["weight"][0]
        if is_poisson:
            objective = PoissonSums(
                -mean / scale, (entropy - math.log(scale) * total) / scale
            )
    labels = classes.index.to_numpy()
    factor_of = getattr(inner, "class_weight", None) or {}
    factors = np.array([factor_of.get(label, 1.0) for label in labels.tolist()])
    count = delayed(partial(count_leaves, reader, dataset.schema, labels, mean, scale))
    rows = AllRows(parts, count, dataset, objective, mean, factors, least_rows)
    with progress.phase("counting all rows"):
        result, front, (lowest, highest) = rows.refit(result)
        inner._keep(result)
    models = [
        replace(
            model,
            training=replace(model.training, lowest=lowest, highest=highest),
            deviations=one.deviations,
        )
        for model, one in zip(inner.pareto_front_.models, front, strict=True)
    ]
    inner.fitted_ = models[inner.pareto_front_.index(inner.tree_)]
    inner.pareto_front_ = inner.pareto_front_.of_models(models)
    parameters = estimator.get_params(deep=False)
    estimator.__dict__.update(
        (name, value) for name, value in vars(inner).items() if name not in parameters
    )
    return result


def _refuse(estimator: Any, beside: Beside) -> None:
    """Refuse what does not follow from the sums of leaves."""
    objective, leaves = estimator.objective, estimator.leaves
    class_weight = getattr(estimator, "class_weight", None)
    shapes = getattr(getattr(estimator, "evolution", None), "shapes", AUTO)
    own = OwnObjective(objective) if callable(objective) else objective
    of_rows = (
        objective in ("absolute_error", "quantile", *ProbabilityScore.names)
        or isinstance(objective, Quantile)
        or (isinstance(own, Objective) and own.needs_rows)
    )
    for name, value, is_refused, allowed in (
        *(
            (name, value, value is not None, "None")
            for name, value in vars(beside).items()
            if name != "sample_weight"
        ),
        ("leaves", leaves, leaves not in ("auto", "constant"), "'constant'"),
        (
            "class_weight",
            class_weight,
            isinstance(class_weight, dict)
            and not min(class_weight.values(), default=1.0) > 0.0,
            "'balanced', None, and weights above 0",
        ),
        ("shapes", shapes, shapes not in (AUTO, None), f"{AUTO!r}, None"),
        (
            "objective",
            objective,
            of_rows,
            "what follows from the class weights, or sums, of leaves",
        ),
    ):
        if is_refused:
            raise ValueError(
                f"{name}={value!r}: for collections of Dask allowed is {allowed}."
            )


def _parts_of(X: Any, y: Any, sample_weight: Any) -> list[tuple[Any, ...]]:
    """Return the partitions of collections that belong together."""
    weights = {} if sample_weight is None else {"sample_weight": sample_weight}
    blocks: list[Any] = []
    for name, given in ({"X": X, "y": y} | weights).items():
        n_dimensions = 2 if name == "X" else 1
        if not is_collection(given) or getattr(given, "ndim", 0) != n_dimensions:
            raise ValueError(
                f"{name} is a {type(given).__name__}: where X is a collection of Dask, allowed is "
                f"one of Dask of {n_dimensions} dimensions."
            )
        if not hasattr(given, "chunks"):
            # Optimized, the files of a narrow column may be read by fewer partitions than others.
            blocks.append(given.to_delayed(optimize_graph=False))
        else:
            if name == "X":
                given = given.rechunk({1: -1})
            elif hasattr(X, "chunks") and given.shape == X.shape[:1]:
                given = given.rechunk((X.chunks[0],))
            blocks.append(given.to_delayed().ravel().tolist())
        if len(blocks[-1]) != len(blocks[0]):
            raise ValueError(
                f"{name} has {len(blocks[-1])} partitions: allowed are as many as X has, "
                f"{len(blocks[0])}, of the same rows."
            )
    return list(zip(*blocks, strict=True))


def _draw_sample(
    reader: Reader, estimator: Any, parts: Sequence[Any], seed: int, progress: Progress
) -> tuple[pd.DataFrame, pd.DataFrame, np.ndarray, np.ndarray]:
    """Return sums over the rows of each class, and rows, targets and weights of a sample.

    It has its share of each class.
    """
    from dask import compute, delayed

    tally = delayed(partial(tally_rows, reader))
    with progress.phase("summarizing rows"):
        tallies = compute(*[tally(number, *part) for number, part in enumerate(parts)])
    sizes, tables = zip(*tallies, strict=True)
    # Where there are no rows, classes may have another type.
    classes = pd.concat([one for one in tables if len(one)] or tables[:1])
    classes = classes.groupby(level=0).sum()
    n_rows = classes["n"].sum()
    if n_rows == 0:
        raise ValueError("X has no rows with weight: at least one is needed.")
    if not reader.is_regression:
        check_classification_targets(class_codes(classes.index)[0])
    n_wanted = evolution_of(estimator).max_samples or MAX_SAMPLES
    if not isinstance(n_wanted, Integral):
        n_wanted = max(1, math.floor(n_wanted * n_rows))
    takes = np.minimum(classes["n"], np.ceil(classes["n"] * (n_wanted / n_rows)))
    # So many rows are below these limits as are wanted, but for a chance of less than 1e-8.
    limits = np.minimum(1.0, (takes + 8.0 * np.sqrt(takes) + 32.0) / classes["n"])
    draw = delayed(partial(draw_partition, reader, limits, seed))
    firsts = np.cumsum([0, *sizes[:-1]])
    with progress.phase("drawing the sample"):
        drawn = compute(
            *[draw(first, *part) for first, part in zip(firsts, parts, strict=True)]
        )
    # One without rows may have columns of other types.
    frames, *arrays = zip(*(one for one in drawn if len(one[0])), strict=True)
    group, targets, weight, keys = map(np.concatenate, arrays)
    ranks = pd.Series(keys).groupby(group).rank("first").to_numpy()
    kept = ranks <= takes.reindex(group).to_numpy()
    table = pd.concat(frames, ignore_index=True)[kept].reset_index(drop=True)
    y = targets if reader.is_regression else group
    return classes, table, y[kept], weight[kept]


def _on_sample(
    estimator: Any, classes: pd.DataFrame, categorical: Any
) -> tuple[Any, float]:
    """Return what is fitted to the sample, and the least number of all rows in a leaf."""
    inner = copy(estimator).set_params(
        leaves="constant",
        categorical_features=categorical,
        evolution=replace(evolution_of(estimator), max_samples=None, shapes=None),
    )
    n_rows = classes["n"].sum()
    least = estimator.min_samples_leaf
    least = int(least) if isinstance(least, Integral) else math.ceil(least * n_rows)
    if least > 1:
        inner.min_samples_leaf = min(0.5, least / n_rows)
    if isinstance(getattr(estimator, "class_weight", None), str):  # "balanced"
        weights = classes["weight"]
        inner.class_weight = (weights.sum() / (len(weights) * weights)).to_dict()
    return inner, max(1, least)
