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
from dataclasses import dataclass, replace
from functools import partial, reduce
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.special import xlogy
from sklearn.base import is_regressor
from sklearn.utils.multiclass import check_classification_targets

from evotree.dataset import Dataset
from evotree.engine.config import evolution_of
from evotree.engine.prepare import with_objective
from evotree.engine.progress import Progress
from evotree.engine.shards import Rows, Shards, fold, passing, task
from evotree.estimators.lazy import is_collection
from evotree.estimators.rows import categorical_mask, refuse_text
from evotree.fitness.losses import OwnObjective, PoissonLoss, PoissonSums
from evotree.fitness.objectives import CLASS_OBJECTIVES, TARGET_OBJECTIVES, Objective
from evotree.objectives import Quantile
from evotree.rng import row_keys
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


def refuse(estimator: Any, sensitive: Any) -> None:
    """Refuse what does not follow from the sums of leaves."""
    objective, leaves = estimator.objective, estimator.leaves
    for name, value, is_allowed, allowed in (
        ("sensitive", sensitive, sensitive is None, "None"),
        ("leaves", leaves, leaves in ("auto", "constant"), "'auto' or 'constant'"),
    ):
        if not is_allowed:
            raise ValueError(f"{name}={value!r}: for collections of Dask allowed is {allowed}.")
    own = OwnObjective(objective) if callable(objective) else objective
    is_of_rows = objective in _OF_ROWS or isinstance(objective, Quantile)
    if is_of_rows or (isinstance(own, Objective) and own.needs_rows):
        names = [one for one in (*CLASS_OBJECTIVES, *TARGET_OBJECTIVES) if one not in _OF_ROWS]
        raise ValueError(
            f"objective={objective!r}: for collections of Dask allowed are "
            f"{', '.join(map(repr, names))}, and functions of the class weights of leaves alone."
        )


# ---- what runs on the workers --------------------------------------------------------------------


class Part(NamedTuple):
    """The checked rows of one partition: a table, targets, weights."""

    table: pd.DataFrame
    y: np.ndarray
    weight: np.ndarray


class Draw(NamedTuple):
    """Rows that may be in the sample, or are, and their random numbers."""

    table: pd.DataFrame
    y: np.ndarray
    weight: np.ndarray
    keys: np.ndarray


class Summary(NamedTuple):
    """What partitions say of themselves; `plus` adds them up."""

    sizes: tuple[int, ...]  # of the partitions, in order
    n_rows: int  # with weight
    labels: Mapping[Any, tuple[int, float]]  # number and weight of the rows of each class
    moments: np.ndarray  # sums of w, w y and, of targets that count something, w y log y
    columns: tuple[ColumnSummary, ...]

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
            self.moments + other.moments,
            merge_summaries(self.columns, other.columns),
        )


@dataclass(frozen=True)
class Schema:
    """What all partitions have in common, and how one of them is read."""

    names: tuple[Any, ...]  # of the columns; empty where the rows are an array
    n_columns: int
    categorical: np.ndarray
    is_regression: bool
    counts_targets: bool  # which are then at least 0

    @classmethod
    def of(cls, estimator: Any, X: Any) -> Schema:
        """Return the schema of a collection."""
        is_frame = not hasattr(X, "chunks")
        meta = X._meta if is_frame else pd.DataFrame(np.empty((0, X.shape[1]))).add_prefix("x")
        if meta.shape[1] == 0 or not meta.columns.is_unique:
            raise ValueError(f"X has the columns {list(meta.columns)}: allowed are distinct ones.")
        categorical = categorical_mask(meta, estimator.categorical_features)
        objective = estimator.objective
        counts = objective == "poisson" or isinstance(objective, PoissonLoss)
        names = tuple(meta.columns) if is_frame else ()
        return cls(names, meta.shape[1], categorical, bool(is_regressor(estimator)), counts)

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
        for name, values in (("y", y), ("sample_weight", weight)):
            if values.shape != (n_rows,):
                raise ValueError(f"{name} has shape {values.shape}: one for each of {n_rows} rows.")
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

    def summarize(self, part: Part) -> Summary:
        """Return what one partition says."""
        table, y, weight = part
        there = weight > 0.0
        labels: dict[Any, tuple[int, float]] = {}
        moments = np.zeros(3)
        if self.is_regression:
            entropy = weight @ xlogy(y, y) if self.counts_targets else 0.0
            moments = np.array([weight.sum(), weight @ y, entropy])
        else:
            classes, codes = np.unique(y[there], return_inverse=True)
            counts = np.bincount(codes, minlength=len(classes)).tolist()
            weights = np.bincount(codes, weight[there], len(classes)).tolist()
            labels = dict(zip(classes.tolist(), zip(counts, weights, strict=True), strict=True))
        columns = summarize_columns(table, self.categorical, weight)
        return Summary((len(y),), int(there.sum()), labels, moments, columns)

    def few_levels(self, summary: Summary) -> Summary:
        """Return a summary whose columns have few levels, and refuse others before they grow."""
        names = self.names or range(self.n_columns)
        for name, column in zip(names, summary.columns, strict=True):
            if len(column.levels) > _MOST_LEVELS:
                raise ValueError(
                    f"column {name!r} has {len(column.levels)} levels or more: for collections of "
                    f"Dask allowed are {_MOST_LEVELS} of a column of categories."
                )
        return summary


def _summarize(schema: Schema, number: int, X: Any, y: Any, weight: Any) -> Summary:
    try:
        return schema.few_levels(schema.summarize(schema.read(X, y, weight)))
    except (TypeError, ValueError) as error:
        raise ValueError(f"partition {number}: {error}") from error


def _add(schema: Schema, summaries: Sequence[Summary]) -> Summary:
    return schema.few_levels(reduce(Summary.plus, summaries))


def _draw(
    schema: Schema, first: int, seed: int, classes: np.ndarray, limits: np.ndarray, part: Any
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
    *part: Any,
) -> Rows:
    """Return the encoded rows of a partition."""
    table, y, weight = schema.read(*part)
    there = weight > 0.0
    table, y, weight = table[there], y[there], weight[there]
    rows = np.empty((0, len(feature_names(columns))))
    if len(y):
        rows = encode_in_order(columns, table)
    codes = (y - target[0]) / target[1] if schema.is_regression else np.searchsorted(classes, y)
    return Rows(rows, codes, weight)


def _plain(y: Any) -> np.ndarray:
    """Return targets as an array of NumPy, text as objects."""
    y = np.asarray(y)
    return y.astype(object) if y.dtype.kind in "UT" else y


# ---- what stays here -----------------------------------------------------------------------------


class Training(NamedTuple):
    """What a search takes of collections."""

    dataset: Dataset  # the sample
    config: Any  # the estimator, as the search on the sample is told
    shards: Shards  # all rows
    ranges: tuple[np.ndarray, np.ndarray]  # lowest and highest values over all rows


def read_collections(
    estimator: Any, X: Any, y: Any, sample_weight: Any, seed: int, progress: Progress
) -> Training:
    """Check collections, fit the encoder, and draw the sample."""
    parts = _parts_of(X, y, sample_weight)
    schema = Schema.of(estimator, X)
    summarize = task("summarize-rows", _summarize)
    answers = [summarize(schema, number, *part) for number, part in enumerate(parts)]
    added = fold(answers, partial(_add, schema), "add-summaries")
    with passing(progress, "summarizing rows", "summarize-rows"):
        summary = added.compute()
    if summary.n_rows == 0:
        raise ValueError("X has no rows with weight: at least one is needed.")
    classes, factors = _classes(estimator, schema, summary)
    with passing(progress, "drawing the sample", "draw-sample"):
        sample = _draw_sample(estimator, schema, summary, classes, parts, seed)
    rows = sample.table if schema.names else sample.table.to_numpy()
    estimator._read_training_rows(rows, sample.y, y_numeric=schema.is_regression)
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
    config, least = _on_sample(estimator, summary)
    dataset = with_objective(dataset, config, estimator)
    mean, scale, objective = 0.0, dataset.target_scale, dataset.bound_objective
    if schema.is_regression:
        total_weight, total, entropy = summary.moments.tolist()
        mean = total / total_weight
        if isinstance(dataset.objective, PoissonLoss):
            objective = PoissonSums(-mean / scale, (entropy - math.log(scale) * total) / scale)
    read = partial(_encode, schema, columns, classes, (mean, scale))
    shards = Shards(parts, read, dataset, objective, mean, factors, least, progress)
    return Training(dataset, config, shards, _ranges(columns, summary.columns))


def _on_sample(estimator: Any, summary: Summary) -> tuple[Any, int]:
    """Return what a search on the sample is told, and the least number of all rows in a leaf."""
    config, least = copy(estimator), estimator.min_samples_leaf
    if not isinstance(least, Integral):
        least = math.ceil(least * summary.n_rows)
    if least > 1:
        config.min_samples_leaf = min(0.5, least / summary.n_rows)
    config.leaves = "constant"  # lines need their rows
    config.evolution = replace(evolution_of(estimator), max_samples=None)
    return config, int(least)


def _parts_of(X: Any, y: Any, sample_weight: Any) -> list[tuple[Any, ...]]:
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
