"""Fits to data frames of Dask, and predictions for them, partition by partition.

A fit searches on a sample of the rows; the leaves of the trees that it found are then counted by
all rows, in one pass over the partitions. Rows are drawn by random numbers of their numbers, and
sums are added in the order of the partitions: nothing depends on the workers.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Self, TypeAlias

import numpy as np
import pandas as pd
from dask import compute, delayed
from dask.dataframe import DataFrame, Series
from sklearn.base import is_regressor
from sklearn.utils.multiclass import check_classification_targets

from evotree.configuration import Cost
from evotree.dataset import Dataset, check_targets, check_weight, class_codes
from evotree.estimators.base import leaf_deviations
from evotree.estimators.editing import finisher_of
from evotree.estimators.evolved import EvoTreeClassifier, EvoTreeRegressor
from evotree.estimators.rows import (
    Beside,
    categorical_mask,
    class_weight_of_rows,
)
from evotree.fitted import Fitted
from evotree.front import FrontTree
from evotree.rng import row_keys, seed_from
from evotree.schema import NumericColumn
from evotree.tables.columns import encode_in_order
from evotree.tables.frames import read_labels
from evotree.tree import ObliqueTree

_OBJECTIVES = (
    "accuracy",
    "balanced_accuracy",
    "f1",
    "f1_macro",
    "mcc",
    "squared_error",
    "poisson",
)
"""Those whose leaves follow from sums of weights and targets."""

_LEAST_OF_CLASS = 32
"""Rows of a class that the sample has in the mean, if there are so many."""

_SUMS_ADDED_AT_ONCE = 8


def fit(
    model: Any, X: Any, y: Any, sample_weight: Any = None, *, n_rows: int = 100_000
) -> Any:
    """Fit a model to a sample of rows, and count the leaves of its trees by all rows.

    The values, labels and numbers of rows of `tree_` and of the trees of `pareto_front_`, and the
    deviations of their leaves, are those of all rows. All else is as `model.fit` leaves it for the
    sample: the choice and the qualities of the trees, medians that stand for missing numbers,
    ranges of numbers, levels of categories, digits of splits, soft probabilities.

    Parameters
    ----------
    model : EvoTreeClassifier or EvoTreeRegressor
        What is fitted; its leaves are constant, and its objective follows from the sums of leaves.
    X : DataFrame of Dask, of shape (n_samples, n_features)
        Rows, which may have missing values.
    y : Series of Dask, of shape (n_samples,)
        Labels or targets, in the partitions of `X`.
    sample_weight : Series of Dask, of shape (n_samples,), optional
        Weights, in the partitions of `X`.
    n_rows : int, at least 1, default=100_000
        Rows of the sample, in the mean. It has the same share of each class, but some rows at
        least.

    Returns
    -------
    EvoTreeClassifier or EvoTreeRegressor
        The model.

    Raises
    ------
    TypeError
        If the model is another one, or the rows are no data frame of Dask.
    ValueError
        Where the parameters of the model need rows, or the partitions do not fit each other; it
        names the partition.
    """
    _refuse_what_needs_rows(model)
    parts = _parts_of(X, y, sample_weight)
    reader = Reader.of(model, X._meta)
    classes, table, labels, weight = _sample(
        reader, parts, n_rows, seed_from(model.random_state)
    )
    own_weight = None if sample_weight is None else weight
    model.fit(table, labels, own_weight)
    sample = finisher_of(model, table, labels, Beside(own_weight)).problem.dataset
    factors = class_weight_of_rows(
        getattr(model, "class_weight", None),
        classes.index.to_numpy(),
        classes["weight"].to_numpy(),
    )
    front = model.pareto_front_
    counted: list[Any] = [
        _counted(model, fitted, sample, sums, factors)
        for fitted, sums in zip(
            front.models, _sums_of(reader, parts, sample, [*front]), strict=True
        )
    ]
    at = front.index(model.tree_)
    model._chosen = counted[at].tree
    models = [replace(one, chosen=model._chosen) for one in counted]
    model.fitted_ = models[at]
    model.pareto_front_ = front.of_models(models)
    return model


def predict(model: Any, X: Any, method: str = "predict") -> Any:
    """Return what a method of a fitted model says of rows, lazily, partition by partition.

    Parameters
    ----------
    model : fitted estimator
        Whose predictions are asked for.
    X : DataFrame of Dask, of shape (n_samples, n_features)
        Rows.
    method : {"predict", "predict_proba", "apply"}, default="predict"
        What is asked.

    Returns
    -------
    Series or DataFrame of Dask
        With the partitions and the index of `X`.
    """
    _check_frame("X", X, DataFrame)
    classes = getattr(model, "classes_", np.empty(0))
    nothing = {
        "predict": classes[:0],
        "predict_proba": np.empty((0, len(classes))),
        "apply": np.empty(0, dtype=np.int32),
    }
    if method not in nothing or not hasattr(model, method):
        allowed = ", ".join(repr(name) for name in nothing if hasattr(model, name))
        raise ValueError(f"method={method!r}: allowed are {allowed}.")
    asked = model, method, nothing[method]
    meta = _predict_partition(X._meta, *asked)
    return X.map_partitions(_predict_partition, *asked, meta=meta)


def _predict_partition(
    rows: pd.DataFrame, model: Any, method: str, nothing: np.ndarray
) -> Any:
    """Return what a method says of a partition, with the index of its rows."""
    predicted = getattr(model, method)(rows) if len(rows) else nothing
    if predicted.ndim == 1:
        return pd.Series(predicted, index=rows.index)
    return pd.DataFrame(predicted, index=rows.index, columns=model.classes_)


# ---- what runs on the workers --------------------------------------------------------------------


# A table, labels or targets, weights and classes of its rows.
Part: TypeAlias = tuple[pd.DataFrame, np.ndarray, np.ndarray, np.ndarray]


@dataclass(frozen=True)
class Reader:
    """How one partition is read."""

    columns: list[Any]
    categorical: np.ndarray
    is_regression: bool
    least: float  # target

    @classmethod
    def of(cls, model: Any, meta: pd.DataFrame) -> Self:
        """Return what reads the partitions of a frame for a model."""
        if meta.shape[1] == 0 or not meta.columns.is_unique:
            raise ValueError(
                f"X has the columns {list(meta.columns)}: allowed are distinct ones."
            )
        return cls(
            list(meta.columns),
            categorical_mask(meta, model.categorical_features),
            is_regressor(model),
            0.0 if model.objective == "poisson" else -np.inf,
        )

    def __call__(self, table: pd.DataFrame, y: Any, weight: Any = None) -> Part:
        """Return the table, labels or targets, weights and classes of a partition."""
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
        y = y.astype(object) if y.dtype.kind == "U" else y
        weight = check_weight(weight, len(table), is_part=True)
        return table, y, weight, np.zeros(len(y)) if self.is_regression else y


def tally_rows(reader: Reader, number: int, *part: Any) -> tuple[int, pd.DataFrame]:
    """Return how many rows a partition has; of each class those with weight, and their weight."""
    try:
        table, _, weight, classes = reader(*part)
        numbers = table[table.columns[~reader.categorical]]
        encode_in_order([NumericColumn(str(one), 0.0) for one in numbers], numbers)
    except (TypeError, ValueError) as error:
        raise ValueError(f"partition {number}: {error}") from error
    there = weight > 0.0
    sums = pd.DataFrame({"n": 1, "weight": weight[there]})
    return len(table), sums.groupby(classes[there]).sum()


def draw_partition(
    reader: Reader, shares: pd.Series, seed: int, first: int, *part: Any
) -> tuple[Any, ...]:
    """Return the rows with weight whose random number is below the share of their class."""
    table, y, weight, classes = reader(*part)
    shares_of_rows = shares.reindex(classes).to_numpy()
    kept = (row_keys(seed, first, len(y)) < shares_of_rows) & (weight > 0.0)
    # Partitions may list other levels, in another order.
    objects = dict.fromkeys(table.columns[reader.categorical], object)
    return table[kept].astype(objects), y[kept], weight[kept]


def sum_leaves(
    reader: Reader, sample: Dataset, trees: Sequence[ObliqueTree], *part: Any
) -> np.ndarray:
    """Return sums of rows, weights, and weighted targets and squares in the leaves.

    Of shape (n_nodes, n_classes, n_sums), the nodes of all trees in a row.
    """
    table, y, weight, _ = reader(*part)
    there = weight > 0.0
    y, weight = y[there], weight[there]
    rows = np.empty((0, len(sample.schema.features)))
    if there.any():
        rows = encode_in_order(sample.schema, table[there])
    columns = [np.ones(len(y)), weight]
    codes = np.zeros(len(y), dtype=np.int64)
    if reader.is_regression:
        targets = (y - sample.target_mean) / sample.target_scale
        columns += [weight * targets, weight * targets**2]
    else:
        codes = np.searchsorted(sample.classes.astype(y.dtype), y)
    n_classes, sums = sample.n_classes or 1, []
    for tree in trees:
        cells = tree.apply(rows).astype(np.int64) * n_classes + codes
        counts = [np.bincount(cells, one, len(tree) * n_classes) for one in columns]
        sums.append(np.column_stack(counts).reshape(len(tree), n_classes, -1))
    return np.concatenate(sums)


# ---- what stays here -----------------------------------------------------------------------------


def _refuse_what_needs_rows(model: Any) -> None:
    """Refuse models, and parameters of them, whose leaves do not follow from sums."""
    if not isinstance(model, EvoTreeClassifier | EvoTreeRegressor):
        raise TypeError(
            f"model is of the type {type(model).__name__}: allowed are an EvoTreeClassifier and "
            "an EvoTreeRegressor."
        )
    is_named = isinstance(model.objective, str) and model.objective in _OBJECTIVES
    if not is_named and not isinstance(model.objective, Cost):
        raise ValueError(
            f"objective={model.objective!r}: for frames of Dask allowed are "
            f"{', '.join(map(repr, _OBJECTIVES))}, and a Cost."
        )
    leaves = ("constant",) if is_regressor(model) else ("auto", "constant")
    if model.leaves not in leaves:
        raise ValueError(
            f"leaves={model.leaves!r}: for frames of Dask allowed is "
            f"{' or '.join(map(repr, leaves))}."
        )


def _check_frame(name: str, given: Any, kind: type) -> None:
    """Refuse what is no frame, or no series, of Dask."""
    if not isinstance(given, kind):
        raise TypeError(
            f"{name} is of the type {type(given).__name__}: allowed is a {kind.__name__} of Dask, "
            "such as dask.dataframe.from_dask_array makes of an array."
        )


def _parts_of(X: Any, y: Any, sample_weight: Any) -> list[tuple[Any, ...]]:
    """Return the partitions of collections that belong together."""
    blocks: list[Any] = []
    collections = {"X": (X, DataFrame), "y": (y, Series)}
    if sample_weight is not None:
        collections["sample_weight"] = sample_weight, Series
    for name, (given, kind) in collections.items():
        _check_frame(name, given, kind)
        # Optimized, the files of a narrow column may be read by fewer partitions than others.
        blocks.append(given.to_delayed(optimize_graph=False))
        if len(blocks[-1]) != len(blocks[0]):
            raise ValueError(
                f"{name} has {len(blocks[-1])} partitions: allowed are as many as X has, "
                f"{len(blocks[0])}, of the same rows."
            )
    return list(zip(*blocks, strict=True))


def _sample(
    reader: Reader, parts: Sequence[Any], n_rows: int, seed: int
) -> tuple[pd.DataFrame, pd.DataFrame, np.ndarray, np.ndarray]:
    """Return rows and weights of each class, and the table, labels and weights of a sample."""
    tally = delayed(partial(tally_rows, reader))
    tallies = compute(*[tally(number, *part) for number, part in enumerate(parts)])
    sizes, tables = zip(*tallies, strict=True)
    # Where there are no rows, classes may have another type.
    classes = pd.concat([one for one in tables if len(one)] or tables[:1])
    classes = classes.groupby(level=0).sum()
    n_there = classes["n"].sum()
    if n_there == 0:
        raise ValueError("X has no rows with weight: at least one is needed.")
    if not reader.is_regression:
        check_classification_targets(class_codes(classes.index)[0])
    shares = np.maximum(n_rows / n_there, _LEAST_OF_CLASS / classes["n"])
    draw = delayed(partial(draw_partition, reader, shares, seed))
    firsts = np.cumsum([0, *sizes[:-1]])
    drawn = compute(
        *[draw(first, *part) for first, part in zip(firsts, parts, strict=True)]
    )
    # One without rows may have columns of other types.
    frames, labels, weight = zip(*(one for one in drawn if len(one[0])), strict=True)
    levels = dict.fromkeys(frames[0].columns[reader.categorical], "category")
    table = pd.concat(frames, ignore_index=True).astype(levels)
    return classes, table, np.concatenate(labels), np.concatenate(weight)


def _sums_of(
    reader: Reader, parts: Sequence[Any], sample: Dataset, trees: list[ObliqueTree]
) -> list[np.ndarray]:
    """Return the sums of the leaves of each tree over all rows."""
    # The rows of the sample are no concern of the workers.
    count = delayed(partial(sum_leaves, reader, sample.take(np.arange(0)), trees))
    sums = [count(*part) for part in parts]
    while len(sums) > 1:
        firsts = range(0, len(sums), _SUMS_ADDED_AT_ONCE)
        sums = [delayed(sum)(sums[at : at + _SUMS_ADDED_AT_ONCE]) for at in firsts]
    return np.split(sums[0].compute(), np.cumsum([len(tree) for tree in trees])[:-1])


def _counted(
    model: Any, fitted: Fitted, sample: Dataset, sums: np.ndarray, factors: np.ndarray
) -> Fitted:
    """Return what is known of a tree with the leaves that all rows make."""
    before: Any = fitted.tree  # a `FrontTree`
    rows = _stand_ins(before, sample, sums, factors)
    tree = rows.refill(before)
    if rows.bound_objective is not None:
        tree = rows.bound_objective.finish(tree, rows)
    tree = FrontTree.of(
        tree, before.quality, before.origin, before.scores, before.sides
    )
    if not tree.has_splits_of(before):  # leaves that have to be equal were joined
        fitted = model._fitted_of(tree, sample)
    counted: Fitted = model._with_labels(replace(fitted, tree=tree), tree)
    if sample.n_classes:
        return counted
    return replace(counted, deviations=leaf_deviations(tree, rows))


def _stand_ins(
    tree: ObliqueTree, sample: Dataset, sums: np.ndarray, factors: np.ndarray
) -> Dataset:
    """Return rows of the sample, some for each leaf, that stand for all rows that reach it.

    Of each class one; of targets two, below and above the mean of the leaf, so that the sums of
    targets and of their squares are those of all rows.
    """
    leaves, first = np.unique(tree.apply(sample.raw), return_index=True)
    n_rows, weight, *moments = np.moveaxis(sums[leaves], -1, 0)
    if sample.n_classes:
        weight = weight * factors
        y = np.tile(np.arange(sample.n_classes), (len(leaves), 1))
    else:
        total, squares = moments
        mean = total / weight
        deviation = np.sqrt(np.maximum(0.0, squares / weight - mean**2))
        above = n_rows // 2
        ratio = np.sqrt(above / (n_rows - above))
        y = mean + deviation * np.hstack([-ratio, 1.0 / np.where(above, ratio, 1.0)])
        parted = np.hstack([n_rows - above, above])
        weight, n_rows = weight / n_rows * parted, parted
    stands_for = np.repeat(first, y.shape[1])
    order = np.argsort(stands_for, kind="stable")
    order = order[weight.ravel()[order] > 0.0]
    rows = sample.take(
        stands_for[order],
        sample_weight=weight.ravel()[order] / sample.weight_unit,
        multiplicity=n_rows.ravel()[order].astype(np.int64),
    )
    y = y.ravel()[order].astype(sample.y.dtype)
    return replace(rows, y=y, given_targets=None)
