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
from evotree.dataset import Dataset, class_codes
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
from evotree.fitted import Fitted
from evotree.inspection.front import FittedFront, FrontTree
from evotree.log import Progress
from evotree.operators.constraints import nodes_without
from evotree.rng import row_keys, seed_from
from evotree.schema import NumericColumn
from evotree.tables.columns import encode_in_order
from evotree.tables.frames import read_labels
from evotree.tree import CountedTree, ObliqueTree, sizes_of_kept

MAX_SAMPLES = 100_000
"""Rows of the sample where `max_samples` is None."""

_FOLDED = 8  # partial sums that are added up at once


# ---- what runs on the workers --------------------------------------------------------------------


@dataclass(frozen=True)
class Reader:
    """How one partition is read."""

    columns: list[Any]
    categorical: np.ndarray
    is_regression: bool
    least: float  # target

    def __call__(
        self, X: Any, y: Any, weight: Any
    ) -> tuple[pd.DataFrame, Any, Any, np.ndarray]:
        """Return the checked rows that have a weight, targets, weights, and which rows they are."""
        table = (
            X
            if isinstance(X, pd.DataFrame)
            else pd.DataFrame(X, copy=False).add_prefix("x")
        )
        if list(table.columns) != self.columns:
            raise ValueError(
                f"X has the columns {list(table.columns)}, not {self.columns}."
            )
        y = np.asarray(y, dtype=np.float64) if self.is_regression else read_labels(y)
        y = y.astype(object) if y.dtype.kind == "U" else y
        weight = (
            np.ones(len(table))
            if weight is None
            else np.asarray(weight, dtype=np.float64)
        )
        for name, values in (("y", y), ("sample_weight", weight)):
            if values.shape != (len(table),):
                raise ValueError(
                    f"{name} has shape {values.shape}, X {len(table)} rows."
                )
        if not np.isfinite(weight).all() or weight.min(initial=0.0) < 0.0:
            raise ValueError(
                "sample_weight has values that are negative, NaN or infinite."
            )
        if not np.isfinite(y).all() if y.dtype.kind in "fc" else pd.isna(y).any():
            raise ValueError(
                "y has values that are missing or infinite: drop these rows first."
            )
        if self.is_regression and y.min(initial=np.inf) < self.least:
            raise ValueError(
                f"y has the target {y.min():g}: for objective='poisson' 0 is least."
            )
        there = np.flatnonzero(weight > 0.0)
        return table.iloc[there], y[there], weight[there], there


def tally_rows(
    reader: Reader, number: int, X: Any, y: Any, weight: Any
) -> tuple[int, pd.DataFrame]:
    """Return the number of rows of a partition, and sums over the rows of each class."""
    try:
        table, y, weight, _ = reader(X, y, weight)
        if len(table):
            refuse_text(table, reader.categorical)
            numbers = table.loc[:, ~reader.categorical]
            encode_in_order(
                [NumericColumn(str(name), 0.0) for name in numbers], numbers
            )
    except (TypeError, ValueError) as error:
        raise ValueError(f"partition {number}: {error}") from error
    targets = y if reader.is_regression else np.zeros(len(y))
    sums = {"n": 1, "weight": weight, "total": weight * targets}
    sums["entropy"] = weight * xlogy(np.maximum(targets, 0.0), targets)
    group = np.zeros(len(y), dtype=np.int64) if reader.is_regression else y
    return len(X), pd.DataFrame(sums, index=range(len(y))).groupby(group).sum()


def draw_partition(
    reader: Reader,
    limits: pd.Series,
    seed: int,
    first: int,
    X: Any,
    y: Any,
    weight: Any,
) -> Any:
    """Return the rows whose random number is below the limit of their class."""
    table, y, weight, at = reader(X, y, weight)
    keys = row_keys(seed, first, len(X))[at]
    kept = keys < (limits[0] if reader.is_regression else limits.reindex(y).to_numpy())
    # Partitions may list other levels, in another order.
    objects = dict.fromkeys(table.columns[reader.categorical], object)
    return table[kept].astype(objects), y[kept], weight[kept], keys[kept]


def count_leaves(
    reader: Reader,
    columns: Any,
    classes: Any,
    mean: float,
    scale: Any,
    trees: Sequence[ObliqueTree],
    X: Any,
    y: Any,
    weight: Any,
) -> tuple[np.ndarray, ...]:
    """Return sums of weights, targets and squares, numbers of rows, of leaves; feature ranges."""
    table, y, weight, _ = reader(X, y, weight)
    rows = (
        encode_in_order(columns, table)
        if len(y)
        else np.empty((0, trees[0].n_features))
    )
    if reader.is_regression:
        codes = np.zeros(len(y), dtype=np.int64)
        targets = (y - mean) / scale
        summed = [weight, weight * targets, weight * targets**2, np.ones(len(y))]
    else:
        codes = np.searchsorted(classes, y)
        summed = [weight, np.ones(len(y))]
    width = max(1, len(classes))
    sums = []
    for tree in trees:
        cells = tree.apply(rows).astype(np.int64) * width + codes
        n_cells = len(tree) * width
        sums.append(
            np.hstack(
                [np.bincount(cells, one, n_cells).reshape(-1, width) for one in summed]
            )
        )
    return (
        np.concatenate(sums),
        rows.min(axis=0, initial=np.inf),
        rows.max(axis=0, initial=-np.inf),
    )


def add_up(parts: Sequence[tuple[np.ndarray, ...]]) -> tuple[np.ndarray, ...]:
    """Return the sums and the ranges of several parts together."""
    sums, lowest, highest = zip(*parts, strict=True)
    return reduce(np.add, sums), np.min(lowest, axis=0), np.max(highest, axis=0)


# ---- what stays here -----------------------------------------------------------------------------


class Counted(NamedTuple):
    """A finished tree by all rows."""

    tree: ObliqueTree
    counts: np.ndarray  # statistics of its nodes
    scores: tuple[float, ...]
    ends: tuple[np.ndarray, ...]  # lowest and highest values of the features


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

    def counted(self, trees: Sequence[ObliqueTree]) -> list[Counted]:
        """Return trees with the values of all rows, without leaves of too few."""
        # Rows of a leaf that is taken out go where the other side of its split sends them, so all
        # rows are asked again.
        pending = dict(enumerate(trees))
        counted = {}
        while pending:
            sums, *ends = self._sums([*pending.values()])
            for (number, tree), table in zip([*pending.items()], sums, strict=True):
                n_rows = table[:, -(self.sample.n_classes or 1) :].astype(np.int64)
                few = tree.is_leaf & (n_rows.sum(axis=1) < self.least_rows)
                if few.any() and len(tree) > 1:
                    kept = nodes_without(tree, few)
                    pending[number] = ObliqueTree(
                        tree.weights[kept],
                        tree.thresholds[kept],
                        sizes_of_kept(kept, tree.subtree_size),
                        tree.values[kept],
                        tree.spread,
                    )
                else:
                    factors = self.factors / self.sample.weight_unit
                    counts = factors * table[:, : -n_rows.shape[1]]
                    counted[number] = self._finish(tree, counts, n_rows, tuple(ends))
                    del pending[number]
        return [counted[number] for number in range(len(trees))]

    def _sums(self, trees: Sequence[ObliqueTree]) -> tuple[Any, ...]:
        """Return the statistics of the nodes of each tree, and the ranges of the features."""
        from dask import delayed

        sent = delayed(trees, traverse=False)  # to each worker once
        answers = [self.count(sent, *part) for part in self.parts]
        while len(answers) > 1:
            groups = range(0, len(answers), _FOLDED)
            answers = [delayed(add_up)(answers[at : at + _FOLDED]) for at in groups]
        sums, *ends = answers[0].compute()
        tables = np.split(sums, np.cumsum([len(tree) for tree in trees])[:-1])
        for tree, table in zip(trees, tables, strict=True):
            for k in np.flatnonzero(~tree.is_leaf)[::-1].tolist():
                table[k] = table[tree.left(k)] + table[tree.right(k)]
        return tables, *ends

    def _finish(
        self, tree: ObliqueTree, counts: Any, n_rows: Any, ends: Any
    ) -> Counted:
        """Return a tree with the values and the scores that all rows say."""
        weights = counts.sum(axis=1) if self.sample.n_classes else counts[:, 0].copy()
        values = counts / weights[:, np.newaxis]
        if not self.sample.n_classes:
            values = self.mean + self.sample.target_scale * values[:, 1:2]
        finished = tree.predicting(values).replaced(
            weighted_n_node_samples=weights,
            row_counts=n_rows if self.sample.is_weighted else None,
        )
        if self.objective is not None:
            finished = self.objective.finish(finished, self.sample)
            kept, k = [], 0  # what a pruning leaves
            for size in finished.subtree_size.tolist():
                kept.append(k)
                k += int(tree.subtree_size[k]) if size == 1 else 1
            counts = counts[kept]
        routed = CountedTree(finished.weights, finished.subtree_size, counts)
        return Counted(
            finished, counts, scores_of(routed, self.sample, self.objective), ends
        )

    def refit(self, result: Result) -> tuple[Result, list[Counted]]:
        """Return what a search on the sample found, by all rows; also the front as counted."""
        front: list[Any] = list(result.front)
        hall = result.hall_of_fame
        counted = self.counted([*front, *hall, *result.best_trees.values()])
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
        counted_of = dict(zip(map(id, members), counted, strict=False))
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
        return result, [counted_of[id(tree)] for tree in trees]

    def fitted_of(self, fitted: Fitted, counted: Counted) -> Fitted:
        """Return what is known of a tree, by all rows where they say more."""
        lowest, highest = counted.ends
        assert fitted.training is not None
        training = replace(fitted.training, lowest=lowest, highest=highest)
        fitted = replace(fitted, training=training)
        if self.sample.n_classes:
            return fitted
        tree = counted.tree
        weights, sums, squares = counted.counts.T
        scale = self.sample.target_scale
        values = (tree.values[:, 0] - self.mean) / scale  # which need not be means
        errors = np.maximum(0.0, squares - sums**2 / weights)
        errors = scale**2 * (errors + weights * (values - sums / weights) ** 2)
        of_leaves, errors = np.where(tree.is_leaf, [weights, errors], 0.0)
        std = deviations(tree, of_leaves, errors, float(weights[0]))
        return replace(fitted, deviations=std)


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
    classes, table, targets, weight = _draw_sample(
        reader, estimator, parts, seed, progress
    )
    inner, least_rows = _on_sample(estimator, classes, reader.categorical)
    result = inner._search(
        table.to_numpy() if is_array else table,
        targets,
        Beside(weight),
        begin,
        continues=last,
        seed=seed,
        progress=progress,
    )
    dataset = result.problem.dataset
    scale = dataset.target_scale
    mean = 0.0
    factors = np.ones(1)
    objective = dataset.bound_objective
    if reader.is_regression:
        total, entropy = classes.loc[0, ["total", "entropy"]]
        mean = total / classes["weight"][0]
        if is_poisson:
            objective = PoissonSums(
                -mean / scale, (entropy - math.log(scale) * total) / scale
            )
    elif inner.class_weight is not None:
        factors = np.array(
            [inner.class_weight.get(k, 1.0) for k in dataset.classes.tolist()]
        )
    count = delayed(
        partial(count_leaves, reader, dataset.schema, dataset.classes, mean, scale)
    )
    rows = AllRows(parts, count, dataset, objective, mean, factors, least_rows)
    with progress.phase("counting all rows"):
        result, front = rows.refit(result)
        inner._keep(result)
    known = inner.pareto_front_
    at = known.index(inner.tree_)
    models = [rows.fitted_of(*pair) for pair in zip(known.models, front, strict=True)]
    inner.pareto_front_ = known.of_models(models)
    inner.fitted_ = models[at]
    parameters = estimator.get_params(deep=False)
    estimator.__dict__.update(
        (name, value) for name, value in vars(inner).items() if name not in parameters
    )
    return result


def _refuse(estimator: Any, beside: Beside) -> None:
    """Refuse what does not follow from the sums of leaves."""
    objective, leaves = estimator.objective, estimator.leaves
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
    blocks: list[Any] = []
    for name, given in {"X": X, "y": y, "sample_weight": sample_weight}.items():
        if name == "sample_weight" and given is None:
            blocks.append([None] * len(blocks[0]))
            continue
        n_dimensions = 1 if blocks else 2
        if not is_collection(given) or getattr(given, "ndim", 0) != n_dimensions:
            raise ValueError(
                f"{name} is a {type(given).__name__}: where X is a collection of Dask, allowed is "
                f"one of Dask of {n_dimensions} dimensions."
            )
        if hasattr(given, "chunks"):
            if (
                hasattr(X, "chunks")
                and n_dimensions == 1
                and given.shape == X.shape[:1]
            ):
                given = given.rechunk((X.chunks[0],))
            given = given.rechunk({1: -1}) if n_dimensions == 2 else given
            blocks.append(given.to_delayed().ravel().tolist())
        else:
            # Optimized, the files of a narrow column may be read by fewer partitions than others.
            blocks.append(given.to_delayed(optimize_graph=False))
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
    classes = pd.concat([one for _, one in tallies if len(one)] or [tallies[0][1]])
    classes = classes.groupby(level=0).sum()
    n_rows = classes["n"].sum()
    if n_rows == 0:
        raise ValueError("X has no rows with weight: at least one is needed.")
    if not reader.is_regression:
        check_classification_targets(class_codes(classes.index)[0])
    n_wanted = evolution_of(estimator).max_samples or MAX_SAMPLES
    if not isinstance(n_wanted, int | np.integer):
        n_wanted = max(1, math.floor(n_wanted * n_rows))
    n_wanted = min(n_rows, n_wanted)
    takes = np.minimum(classes["n"], np.ceil(classes["n"] * (n_wanted / n_rows)))
    # So many rows are below these limits as are wanted, but for a chance of less than 1e-8.
    limits = np.minimum(1.0, (takes + 8.0 * np.sqrt(takes) + 32.0) / classes["n"])
    draw = delayed(partial(draw_partition, reader, limits, seed))
    firsts = np.cumsum([0, *(size for size, _ in tallies)])
    with progress.phase("drawing the sample"):
        drawn = compute(
            *[draw(first, *one) for first, one in zip(firsts, parts, strict=False)]
        )
    # One without rows may have columns of other types.
    frames, *arrays = zip(*(one for one in drawn if len(one[0])), strict=True)
    y, weight, keys = map(np.concatenate, arrays)
    group = np.zeros(len(y), dtype=np.int64) if reader.is_regression else y
    ranks = pd.Series(keys).groupby(group).rank("first").to_numpy()
    kept = ranks <= takes.reindex(group).to_numpy()
    table = pd.concat(frames, ignore_index=True)[kept].reset_index(drop=True)
    return classes, table, y[kept], weight[kept]


def _on_sample(
    estimator: Any, classes: pd.DataFrame, categorical: Any
) -> tuple[Any, float]:
    """Return what is fitted to the sample, and the least number of all rows in a leaf."""
    inner = copy(estimator)
    n_rows = classes["n"].sum()
    least = estimator.min_samples_leaf
    least = int(least) if isinstance(least, Integral) else math.ceil(least * n_rows)
    if least > 1:
        inner.min_samples_leaf = min(0.5, least / n_rows)
    inner.leaves = "constant"
    inner.categorical_features = categorical
    inner.evolution = replace(evolution_of(estimator), max_samples=None, shapes=None)
    given = getattr(estimator, "class_weight", None)
    if isinstance(given, str):
        weights = classes["weight"]
        inner.class_weight = (weights.sum() / (len(weights) * weights)).to_dict()
    elif given and not min(given.values()) > 0.0:
        raise ValueError(
            f"class_weight={given!r}: for collections of Dask 0 is not allowed."
        )
    return inner, max(1, least)
