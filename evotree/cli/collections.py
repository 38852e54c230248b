"""From files of Parquet that no machine holds to a model: ``evotree fit --dask``."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from pandas.api.types import is_bool_dtype, is_numeric_dtype

from evotree.cli.table import MANY_TARGETS
from evotree.cli.training import class_figures, confusion_counts, course, evolved
from evotree.engine.shards import fold, task
from evotree.estimators import EvoTreeClassifier, EvoTreeRegressor
from evotree.model_file import Model
from evotree.rng import make_streams, row_keys

__all__ = [
    "connect",
    "draw_rows",
    "has_many_numbers",
    "hold_out",
    "read_parquet",
    "train_collections",
]

_DRAWS = 2**62 + 2  # the number of a generation that no run reaches
_SHOWN = 10_000  # rows of plots and reports


def connect(address: str) -> Any:
    """Return a client of Dask, to use in a ``with`` block."""
    try:
        from distributed import Client
    except ImportError as error:
        raise ValueError("--dask needs Dask: pip install 'evotree[dask]'") from error
    return Client(address) if address else Client(dashboard_address=None)


def read_parquet(pattern: str, target: str, drop: list[str]) -> tuple[Any, Any]:
    """Return features and targets of files; rows without a target are left out."""
    import dask.dataframe as dd

    try:
        frame = dd.read_parquet(pattern)
    except Exception as error:  # those of the readers are of any type
        raise ValueError(f"{pattern} cannot be read as Parquet: {error}") from error
    for option, name in (("target", target), *(("drop", name) for name in drop)):
        if name not in frame.columns:
            names = ", ".join(map(str, frame.columns))
            raise ValueError(f"--{option} {name!r}: there is no such column of {names}")
    frame = frame.dropna(subset=[target])
    X, y = frame.drop(columns=[target, *drop]), frame[target]
    if len(X.columns) == 0:
        raise ValueError(f"{target!r} is the only column: there is nothing to predict it from")
    return X, y


def has_many_numbers(y: Any) -> bool:
    """Tell whether targets are numbers, of more values than classes have."""
    is_number = is_numeric_dtype(y.dtype) and not is_bool_dtype(y.dtype)
    return is_number and int(y.nunique().compute()) > MANY_TARGETS


# ---- rows that are drawn -------------------------------------------------------------------------


def hold_out(X: Any, y: Any, share: float, seed: int) -> tuple[Any, Any, tuple[Any, Any]]:
    """Draw test rows: each row has the same chance, by a random number of its own."""
    seed, sizes = _seed_of_draw(seed, 0), _sizes(y)
    n_test = sum(int((row_keys(seed, *one) < share).sum()) for one in _ranges(sizes))
    n_rows = sum(sizes)
    if not 2 <= n_test < n_rows:
        raise ValueError(f"a test share of {share:g} leaves {n_test} of {n_rows} rows to test on")
    (X, X_test), (y, y_test) = (
        [_taken(one, sizes, seed, *ends) for ends in ((share, 1.0), (0.0, share))] for one in (X, y)
    )
    return X, y, (X_test, y_test)


def draw_rows(X: Any, y: Any, seed: int) -> tuple[pd.DataFrame, np.ndarray]:
    """Return some rows to look at, in memory."""
    from dask import compute

    seed, sizes = _seed_of_draw(seed, 1), _sizes(y)
    share = min(1.0, _SHOWN / sum(sizes))
    rows, targets = compute(*[_taken(one, sizes, seed, 0.0, share) for one in (X, y)])
    return rows.reset_index(drop=True), targets.to_numpy()


def _seed_of_draw(seed: int, number: int) -> int:
    """Return a seed of its own for each draw."""
    return int(make_streams(seed % 2**63, _DRAWS, number + 1)[number][0])


def _sizes(y: Any) -> list[int]:
    """Return the numbers of rows of the partitions."""
    from dask import compute

    return list(compute(*map(task("count-rows", len), y.to_delayed(optimize_graph=False))))


def _ranges(sizes: list[int]) -> list[tuple[int, int]]:
    """Return the number of the first row, and how many there are, of each partition."""
    return list(zip(np.cumsum([0, *sizes[:-1]]).tolist(), sizes, strict=True))


def _taken(frame: Any, sizes: list[int], seed: int, low: float, high: float) -> Any:
    """Return the rows whose random numbers are between two, partition by partition."""
    from dask.dataframe import from_delayed

    parts, take = frame.to_delayed(optimize_graph=False), task("draw-rows", _between)
    ranges = zip(parts, _ranges(sizes), strict=True)
    taken = [take(part, first, seed, low, high) for part, (first, _) in ranges]
    return from_delayed(taken, meta=frame._meta, verify_meta=False)


def _between(part: Any, first: int, seed: int, low: float, high: float) -> Any:
    keys = row_keys(seed, first, len(part))
    return part[(low <= keys) & (keys < high)]


# ---- fits and tests ------------------------------------------------------------------------------


def train_collections(
    X: Any,
    y: Any,
    target: str,
    parameters: Mapping[str, Any],
    is_regression: bool,
    test: tuple[Any, Any] | None,
) -> tuple[Model, EvoTreeClassifier | EvoTreeRegressor]:
    """Evolve a tree for rows in partitions, and make a model of it."""
    kind: Any = EvoTreeRegressor if is_regression else EvoTreeClassifier
    estimator = evolved(kind, X, y, parameters)
    tree = estimator.tree_
    quality = estimator.pareto_front_[estimator.pareto_front_.index(tree)].quality
    training: dict[str, Any] = {"rows": sum(_sizes(y))}
    if is_regression:
        rmse = float(np.sqrt((1.0 - quality) * y.var(ddof=0).compute()))
        training |= {"r2": quality, "rmse": rmse, **course(estimator)}
        model = Model.of(estimator, target, training)
        if test is not None:
            mean = float(tree.values[0, 0])
            training.update(_number_figures(_added(_squares, model, test, mean)))
    else:
        training |= {"accuracy": quality, "base_rate": float(tree.values[0].max())}
        training |= course(estimator)
        model = Model.of(estimator, target, training)
        if test is not None:
            n_rows = y.value_counts().compute().reindex(estimator.classes_)
            counts = _added(_confusion, model, test)
            training.update(class_figures(counts, int(n_rows.to_numpy().argmax())))
    return model, estimator


def _added(ask: Callable[..., np.ndarray], model: Model, test: tuple[Any, Any], *told: Any) -> Any:
    """Ask something of a model and each partition of test rows; return the sum."""
    parts = zip(*(one.to_delayed(optimize_graph=False) for one in test), strict=True)
    named, sent = task("test-rows", ask), task("send-model", _itself)(model)
    answers = [named(sent, X, y, *told) for X, y in parts]
    return fold(answers, partial(np.sum, axis=0), "add-figures").compute()


def _itself(model: Model) -> Model:
    return model


def _confusion(model: Model, X: pd.DataFrame, y: pd.Series) -> np.ndarray:
    return confusion_counts(model, X, y.to_numpy())


def _squares(model: Model, X: pd.DataFrame, y: pd.Series, mean: float) -> np.ndarray:
    """Return the number of rows, sum and squares of the targets above a mean, and squared errors.

    `mean` is that of the training rows.
    """
    targets = y.to_numpy(dtype=np.float64)
    if not len(targets):
        return np.zeros(4)
    above, errors = targets - mean, targets - model.predict(X)
    return np.array([len(targets), above.sum(), above @ above, errors @ errors])


def _number_figures(sums: np.ndarray) -> dict[str, Any]:
    """Return what `Model.training` knows of test rows, by the sums of `_squares`."""
    n_rows, above, squares, errors = sums.tolist()
    variation = squares - above**2 / n_rows

    def figures(lost: float) -> list[float]:
        return [1.0 - lost / variation if variation > 0.0 else 0.0, math.sqrt(lost / n_rows)]

    r2, rmse = figures(errors)
    found = {"test_rows": int(n_rows), "test_r2": r2, "test_rmse": rmse}
    return {**found, "others": {"the mean": figures(squares)}}
