"""Collections of Dask as training rows: what is asked of their partitions before a search begins.

One pass checks the partitions and summarizes their columns and targets, a second one draws the
sample that evolves; what comes here are sums and the sample. Rows are drawn by random numbers that
are functions of the seed and of the row's number alone. So the sample depends on the order of the
rows, but neither on how they are parted nor on the workers.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from functools import partial, reduce
from hashlib import blake2b
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from pandas.util import hash_array, hash_pandas_object
from scipy.special import xlogy
from sklearn.base import is_regressor
from sklearn.utils.multiclass import check_classification_targets

from evotree.dataset import Dataset
from evotree.engine.bounds import with_objective
from evotree.engine.config import evolution_of
from evotree.engine.progress import Progress
from evotree.engine.shards import Rows, Shards, fold, passing, task
from evotree.estimators.lazy import is_collection
from evotree.estimators.rows import categorical_mask, refuse_text
from evotree.fitness.losses import OwnObjective, PoissonLoss, PoissonSums
from evotree.fitness.objectives import (
    CLASS_OBJECTIVES,
    TARGET_OBJECTIVES,
    Objective,
)
from evotree.objectives import Quantile
from evotree.rng import row_keys, seed_from
from evotree.tables.columns import (
    Column,
    ColumnSummary,
    encode_in_order,
    feature_names,
    fit_summaries,
    merge_summaries,
    summarize_columns,
)

MAX_SAMPLES = 100_000
"""Rows of the sample where `max_samples` is None."""

_MOST_LEVELS = 1000  # of a column; names of rows are no categories

_OF_ROWS = ("absolute_error", "quantile")  # leaves predict quantiles of their rows

_ALLOWED: dict[str, tuple[Any, ...]] = {
    "leaves": ("auto", "constant"),
}

_RADIX = 0x9E3779B97F4A7C15  # odd, so that no power of it is 0 modulo 2**64


def refuse(estimator: Any, sensitive: Any) -> None:
    """Refuse what rows in partitions cannot do."""
    given = {**estimator.get_params(deep=False), "sensitive": sensitive}
    for name, allowed in {**_ALLOWED, "sensitive": (None,)}.items():
        value = given.get(name, allowed[0])
        if not any(value is one or (type(value) is type(one) and value == one) for one in allowed):
            raise ValueError(
                f"{name}={value!r}: for collections of Dask allowed is "
                f"{' or '.join(map(repr, allowed))}."
            )
    executor = evolution_of(estimator).islands.executor
    if executor is not None:
        raise ValueError(
            f"islands: executor={executor!r}: for collections of Dask allowed is None, with n_jobs "
            "for threads."
        )
    _refuse_objective(estimator)


def _refuse_objective(estimator: Any) -> None:
    """Refuse an objective that does not follow from the sums of leaves."""
    named = estimator.objective
    own = OwnObjective(named) if callable(named) else named
    if (
        named in _OF_ROWS
        or isinstance(named, Quantile)
        or (isinstance(own, Objective) and own.needs_rows)
    ):
        names = [one for one in (*CLASS_OBJECTIVES, *TARGET_OBJECTIVES) if one not in _OF_ROWS]
        raise ValueError(
            f"objective={named!r}: for collections of Dask allowed are "
            f"{', '.join(map(repr, names))}, and functions of the class weights of leaves alone."
        )
    # Several scores of a tree would be those of the sample.
    if callable(named) and evolution_of(estimator).variation.algorithm == "nsga2":
        raise ValueError(
            f"objective={named!r}: for collections of Dask and algorithm='nsga2' names are allowed."
        )


# ---- what runs on the workers --------------------------------------------------------------------


@dataclass(frozen=True)
class Schema:
    """What all partitions have in common.

    Attributes
    ----------
    names : tuple
        Names of the columns; empty where the rows are an array.
    n_columns : int
        Number of columns.
    categorical : ndarray of shape (n_columns,), bool
        Which columns are categories.
    is_regression : bool
        Whether targets are numbers.
    is_known_again : bool
        Whether the rows get a checksum, since a later fit may continue the present one.
    counts_targets : bool
        Whether targets count something, and are at least 0.
    """

    names: tuple[Any, ...]
    n_columns: int
    categorical: np.ndarray
    is_regression: bool
    is_known_again: bool
    counts_targets: bool = False

    def read(self, X: Any, y: Any, weight: Any) -> Part:
        """Return the checked rows of a partition."""
        is_frame = isinstance(X, pd.DataFrame)
        table = X if is_frame else pd.DataFrame(np.asarray(X), copy=False)
        if is_frame != bool(self.names) or (is_frame and tuple(X.columns) != self.names):
            raise ValueError(
                f"X has the columns {list(table.columns)}: allowed are those of the collection, "
                f"{list(self.names)}."
            )
        if table.shape[1] != self.n_columns:
            raise ValueError(f"X has {table.shape[1]} columns: allowed are {self.n_columns}.")
        if not is_frame:
            table.columns = [f"x{j}" for j in range(self.n_columns)]
        if len(table):
            refuse_text(table, self.categorical)
        n_rows, y = len(table), _plain(y)
        weight = np.ones(n_rows) if weight is None else np.asarray(weight, dtype=np.float64)
        for name, one in (("y", y), ("sample_weight", weight)):
            if one.shape != (n_rows,):
                raise ValueError(f"{name} has shape {one.shape}: one for each of {n_rows} rows.")
        if not np.isfinite(weight).all() or weight.min(initial=0.0) < 0.0:
            raise ValueError("sample_weight has values that are negative, NaN or infinite.")
        if self.is_regression:
            y = y.astype(np.float64)
        is_number = y.dtype.kind in "fc"
        if not np.isfinite(y).all() if is_number else pd.isna(y).any():
            raise ValueError("y has values that are missing or infinite: drop these rows first.")
        if self.counts_targets and y.min(initial=0.0) < 0.0:
            raise ValueError(
                f"y has the target {y.min():g}: for objective='poisson' allowed are numbers of at "
                "least 0."
            )
        return Part(table, y, weight)


class Part(NamedTuple):
    """The checked rows of one partition: a table, targets, weights."""

    table: pd.DataFrame
    y: np.ndarray
    weight: np.ndarray


@dataclass(frozen=True)
class Summary:
    """What partitions say of themselves; they add up.

    Attributes
    ----------
    sizes : tuple of int
        Numbers of rows of the partitions, in order.
    n_rows : int
        Number of rows with weight.
    labels : dict of object to tuple of int and float
        Number and weight of the rows of each class.
    moments : tuple of float
        Sums of w and w y, for targets, and of w y log y where these count something.
    columns : tuple of ColumnSummary
        Of the columns.
    checksum : int in [0, 2**64)
        Of the rows and their order; 0 where nobody asks for it.
    """

    sizes: tuple[int, ...]
    n_rows: int
    labels: Mapping[Any, tuple[int, float]] = field(default_factory=dict)
    moments: tuple[float, ...] = (0.0, 0.0, 0.0)
    columns: tuple[ColumnSummary, ...] = ()
    checksum: int = 0

    @classmethod
    def of(cls, schema: Schema, part: Part) -> Summary:
        """Return what one partition says."""
        table, y, weight = part
        there = weight > 0.0
        columns = summarize_columns(table, schema.categorical, weight)
        sizes, n_rows = (len(y),), int(there.sum())
        checksum = _checksum(part) if schema.is_known_again else 0
        if schema.is_regression:
            entropy = float(weight @ xlogy(y, y)) if schema.counts_targets else 0.0
            moments = float(weight.sum()), float(weight @ y), entropy
            return cls(sizes, n_rows, moments=moments, columns=columns, checksum=checksum)
        classes, codes = np.unique(y[there], return_inverse=True)
        counts = np.bincount(codes, minlength=len(classes)).tolist()
        weights = np.bincount(codes, weight[there], len(classes)).tolist()
        labels = dict(zip(classes.tolist(), zip(counts, weights, strict=True), strict=True))
        return cls(sizes, n_rows, labels, columns=columns, checksum=checksum)

    def plus(self, other: Summary) -> Summary:
        """Return what two groups of partitions say together."""
        labels = dict(self.labels)
        for label, (n, weight) in other.labels.items():
            before = labels.get(label, (0, 0.0))
            labels[label] = (before[0] + n, before[1] + weight)
        return Summary(
            self.sizes + other.sizes,
            self.n_rows + other.n_rows,
            labels,
            tuple(a + b for a, b in zip(self.moments, other.moments, strict=True)),
            merge_summaries(self.columns, other.columns),
            (self.checksum * pow(_RADIX, sum(other.sizes), 2**64) + other.checksum) % 2**64,
        )


def _checksum(part: Part) -> int:
    """Return the polynomial of the rows' hashes: those of parts make that of the whole."""
    hashes = hash_pandas_object(part.table, index=False).to_numpy(np.uint64)
    for column in (part.y, part.weight):
        hashes = hashes * np.uint64(_RADIX) + hash_array(column)
    powers = np.cumprod(np.full(len(hashes), _RADIX, dtype=np.uint64), dtype=np.uint64)
    return int((hashes * powers[::-1]).sum())


class Draw(NamedTuple):
    """Rows of one partition that may be in the sample, and their random numbers."""

    table: pd.DataFrame
    y: np.ndarray
    weight: np.ndarray
    keys: np.ndarray


def _summarize(schema: Schema, number: int, X: Any, y: Any, weight: Any) -> Summary:
    try:
        return _of_few_levels(schema, Summary.of(schema, schema.read(X, y, weight)))
    except (TypeError, ValueError) as error:
        raise ValueError(f"partition {number}: {error}") from error


def _add(schema: Schema, summaries: Sequence[Summary]) -> Summary:
    return _of_few_levels(schema, reduce(Summary.plus, summaries))


def _of_few_levels(schema: Schema, summary: Summary) -> Summary:
    """Return a summary whose columns have few levels, and refuse others before they grow."""
    for name, column in zip(schema.names or range(schema.n_columns), summary.columns, strict=True):
        if len(column.levels) > _MOST_LEVELS:
            raise ValueError(
                f"column {name!r} has {len(column.levels)} levels or more: for collections of Dask "
                f"allowed are {_MOST_LEVELS} of a column of categories."
            )
    return summary


def _draw(
    schema: Schema,
    first: int,
    seed: int,
    classes: np.ndarray,
    limits: np.ndarray,
    part: tuple[Any, ...],
) -> Draw:
    """Return the rows of a partition whose random number is below the limit of their class."""
    table, y, weight = schema.read(*part)
    keys = row_keys(seed, first, len(y))
    codes = 0 if schema.is_regression else np.searchsorted(classes, y)
    # A class whose rows all have no weight is none.
    kept = (keys < limits[np.minimum(codes, len(limits) - 1)]) & (weight > 0.0)
    table = table[kept].copy()
    for j in np.flatnonzero(schema.categorical).tolist():
        # Partitions may list other levels, in another order.
        table.isetitem(j, table.iloc[:, j].astype(object))
    return Draw(table, y[kept], weight[kept], keys[kept])


def _encode(
    schema: Schema,
    columns: tuple[Column, ...],
    classes: np.ndarray,
    target: tuple[float, float],
    X: Any,
    y: Any,
    weight: Any,
) -> Rows:
    """Return the encoded rows of a partition."""
    table, y, weight = schema.read(X, y, weight)
    there = weight > 0.0
    table, y, weight = table[there], y[there], weight[there]
    if len(y):
        rows = encode_in_order(columns, table)
    else:
        rows = np.empty((0, len(feature_names(columns))))
    codes = (y - target[0]) / target[1] if schema.is_regression else np.searchsorted(classes, y)
    return Rows(rows, codes, weight)


def _plain(y: Any) -> np.ndarray:
    """Return targets as an array of NumPy, text as objects."""
    y = np.asarray(y)
    return y.astype(object) if y.dtype.kind in "UT" else y


# ---- what stays here -----------------------------------------------------------------------------


class Training(NamedTuple):
    """What a search takes of collections.

    Attributes
    ----------
    dataset : Dataset
        The sample.
    shards : Shards
        All rows.
    ranges : tuple of two ndarray of shape (n_features,)
        The lowest and the highest value of each feature over all rows.
    """

    dataset: Dataset
    shards: Shards
    ranges: tuple[np.ndarray, np.ndarray]


def parts_of(X: Any, y: Any, sample_weight: Any) -> list[tuple[Any, ...]]:
    """Return the partitions of collections that belong together."""
    blocks = {"X": _blocks("X", X, 2)}
    for name, one in (("y", y), ("sample_weight", sample_weight)):
        if one is not None:
            if hasattr(X, "chunks") and hasattr(one, "chunks") and one.shape == X.shape[:1]:
                one = one.rechunk((X.chunks[0],))
            blocks[name] = _blocks(name, one, 1)
            if len(blocks[name]) != len(blocks["X"]):
                raise ValueError(
                    f"{name} has {len(blocks[name])} partitions: allowed are as many as X has, "
                    f"{len(blocks['X'])}, of the same rows."
                )
    n = len(blocks["X"])
    if n == 0:
        raise ValueError("X has no partitions: at least one is needed.")
    weights = blocks.get("sample_weight", [None] * n)
    return list(zip(blocks["X"], blocks["y"], weights, strict=True))


def _blocks(name: str, collection: Any, n_dimensions: int) -> list[Any]:
    """Return the partitions of one collection."""
    is_fit = is_collection(collection) and hasattr(collection, "to_delayed")
    if not is_fit or getattr(collection, "ndim", 0) != n_dimensions:
        allowed = (
            "a Series or an Array of 1 dimension"
            if n_dimensions == 1
            else ("a DataFrame or an Array of 2 dimensions")
        )
        raise ValueError(
            f"{name} is a {type(collection).__name__}: where X is a collection of Dask, allowed is "
            f"{allowed} of Dask."
        )
    if hasattr(collection, "chunks"):
        if n_dimensions == 2:
            collection = collection.rechunk({1: -1})
        return list(collection.to_delayed().ravel())
    # Optimized, the files of a narrow column may be read by fewer partitions than those of others;
    # as they are, both share the tasks that read them.
    return list(collection.to_delayed(optimize_graph=False))


def read_collections(
    estimator: Any,
    X: Any,
    y: Any,
    sample_weight: Any,
    continues: tuple[str, int] | None,
    progress: Progress,
) -> Training:
    """Check collections, fit the encoder, and draw the sample."""
    parts = parts_of(X, y, sample_weight)
    schema = schema_of(estimator, X)
    summarize = task("summarize-rows", _summarize)
    answers = [summarize(schema, number, *part) for number, part in enumerate(parts)]
    added = fold(answers, partial(_add, schema), "add-summaries")
    with passing(progress, "summarizing rows", "summarize-rows"):
        summary = added.compute()
    if summary.n_rows == 0:
        raise ValueError("X has no rows with weight: at least one is needed.")
    checksum = _name_of_rows(schema, summary)
    if continues is not None and continues[0] == checksum:
        seed = continues[1]
    else:
        seed = seed_from(estimator.random_state)
    classes, factors = _classes(estimator, schema, summary)
    with passing(progress, "drawing the sample", "draw-sample"):
        sample = _draw_sample(estimator, schema, summary, classes, parts, seed)
    given = _as_given(schema, sample.table)
    estimator._read_training_rows(given, sample.y, y_numeric=schema.is_regression)
    columns = fit_summaries(sample.table, schema.categorical, sample.weight, summary.columns)
    estimator.columns_, estimator.feature_names_ = columns, feature_names(columns)
    weight = sample.weight
    if factors is not None:
        weight = weight * factors[np.searchsorted(classes, sample.y)]
    dataset = Dataset.from_arrays(
        encode_in_order(columns, sample.table),
        sample.y,
        weight,
        estimator.feature_names_,
        evolution_of(estimator).scaling,
        "regression" if schema.is_regression else "classification",
        columns=estimator._columns_of_features(),
    )
    if not schema.is_regression:
        estimator.classes_ = dataset.classes
    told = copy(estimator)
    told.leaves = "constant"  # lines need their rows
    dataset = with_objective(dataset, told, estimator)
    mean = summary.moments[1] / summary.moments[0] if schema.is_regression else 0.0
    read = partial(_encode, schema, columns, classes, (mean, dataset.target_scale))
    objective = _objective_of_sums(dataset, summary, mean)
    shards = Shards(
        parts,
        read,
        summary.n_rows,
        dataset,
        target_mean=mean,
        class_factors=factors,
        objective=objective,
        seed=seed,
        checksum=checksum,
        progress=progress,
    )
    return Training(dataset, shards, _ranges(columns, summary.columns))


def _objective_of_sums(sample: Dataset, summary: Summary, mean: float) -> Objective | None:
    """Return the objective of a sample as one of the sums over all rows."""
    if not isinstance(sample.objective, PoissonLoss):
        objective: Objective | None = sample.objective
        return objective
    scale = sample.target_scale
    _, total, entropy = summary.moments
    return PoissonSums(-mean / scale, (entropy - math.log(scale) * total) / scale)


def schema_of(estimator: Any, X: Any) -> Schema:
    """Return what all partitions of a collection have in common."""
    is_frame = not hasattr(X, "chunks")
    meta = X._meta if is_frame else pd.DataFrame(np.empty((0, X.shape[1]))).add_prefix("x")
    if meta.shape[1] == 0 or not meta.columns.is_unique:
        raise ValueError(f"X has the columns {list(meta.columns)}: allowed are distinct ones.")
    categorical = categorical_mask(meta, estimator.categorical_features)
    names = tuple(meta.columns) if is_frame else ()
    objective = estimator.objective
    told = (
        bool(is_regressor(estimator)),
        estimator.warm_start or estimator.checkpoint is not None,
        objective == "poisson" or isinstance(objective, PoissonLoss),
    )
    return Schema(names, meta.shape[1], categorical, *told)


def _name_of_rows(schema: Schema, summary: Summary) -> str:
    """Return the checksum of all rows as text, with that of how they are read."""
    if not schema.is_known_again:
        return ""
    read = schema.names, schema.categorical.tolist(), sum(summary.sizes), summary.checksum
    return blake2b(repr(read).encode(), digest_size=16).hexdigest()


def _as_given(schema: Schema, table: pd.DataFrame) -> Any:
    """Return the sample in the form that the user's rows have, for the checks of names."""
    return table if schema.names else table.to_numpy()


def _classes(
    estimator: Any, schema: Schema, summary: Summary
) -> tuple[np.ndarray, np.ndarray | None]:
    """Return the sorted classes, and what `class_weight` multiplies their weights by."""
    if schema.is_regression:
        return np.empty(0), None
    try:
        labels = sorted(summary.labels)
    except TypeError as error:
        raise ValueError("y has labels that are texts and such that are numbers.") from error
    classes = _plain(np.array(labels, dtype=object if isinstance(labels[0], str) else None))
    check_classification_targets(classes)
    given = estimator.class_weight
    if given is None:
        return classes, None
    totals = np.array([summary.labels[label][1] for label in labels])
    if isinstance(given, str):
        return classes, totals.sum() / (len(totals) * totals)
    factors = np.array([given.get(label, 1.0) for label in labels], dtype=np.float64)
    if not np.isfinite(factors).all() or factors.min() <= 0.0:
        raise ValueError(
            f"class_weight={given!r}: for collections of Dask allowed are finite weights above 0."
        )
    return classes, factors


def _draw_sample(
    estimator: Any,
    schema: Schema,
    summary: Summary,
    classes: np.ndarray,
    parts: Sequence[tuple[Any, ...]],
    seed: int,
) -> Draw:
    """Return the sample: of each class its share, those rows with the lowest random numbers."""
    from dask import compute

    if schema.is_regression:
        sizes = np.array([summary.n_rows])
    else:
        sizes = np.array([summary.labels[label][0] for label in classes.tolist()])
    wanted = _sample_size(evolution_of(estimator).max_samples, summary.n_rows)
    takes = np.minimum(sizes, np.ceil(sizes * (wanted / summary.n_rows)).astype(np.int64))
    # So many rows are below these limits as are wanted, but for a chance of less than 1e-8.
    limits = np.minimum(1.0, (takes + 8.0 * np.sqrt(takes) + 32.0) / sizes)
    firsts = np.cumsum([0, *summary.sizes[:-1]]).tolist()
    draw = task("draw-sample", _draw)
    drawn = compute(
        *[
            draw(schema, first, seed, classes, limits, list(part))
            for first, part in zip(firsts, parts, strict=True)
        ]
    )
    # One without rows may have columns of other types.
    tables = [one.table for one in drawn if len(one.table)]
    table = pd.concat(tables, ignore_index=True)
    y, weight, keys = (np.concatenate([one[k] for one in drawn]) for k in (1, 2, 3))
    codes = (
        np.zeros(len(y), dtype=np.int64) if schema.is_regression else np.searchsorted(classes, y)
    )
    order = np.lexsort((keys, codes))
    begin = np.searchsorted(codes[order], np.arange(len(sizes)))
    rank = np.arange(len(y)) - np.repeat(begin, np.diff(np.append(begin, len(y))))
    kept = np.sort(order[rank < takes[codes[order]]])
    return Draw(table.iloc[kept].reset_index(drop=True), y[kept], weight[kept], keys[kept])


def _sample_size(max_samples: float | None, n_rows: int) -> int:
    """Return how many rows `max_samples` asks for."""
    if max_samples is None:
        return min(n_rows, MAX_SAMPLES)
    if isinstance(max_samples, int | np.integer):
        return min(n_rows, int(max_samples))
    return max(1, math.floor(max_samples * n_rows))


def _ranges(
    columns: Sequence[Column], summaries: Sequence[ColumnSummary]
) -> tuple[np.ndarray, np.ndarray]:
    """Return the ranges of the features over all rows; those of 0 and 1 have both."""
    lowest, highest = [], []
    for column, summary in zip(columns, summaries, strict=True):
        n_flags = len(column.asked)
        if not summary.levels:
            known = summary.lowest <= summary.highest
            lowest.append(summary.lowest if known else 0.0)
            highest.append(summary.highest if known else 0.0)
            n_flags -= 1
        lowest += [0.0] * n_flags
        highest += [1.0] * n_flags
    return np.array(lowest), np.array(highest)
