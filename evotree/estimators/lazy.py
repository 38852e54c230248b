"""Predictions of collections of Dask: they are computed partition by partition, when asked for."""

from __future__ import annotations

import sys
from collections.abc import Callable
from copy import copy
from functools import wraps
from typing import Any

import numpy as np
import pandas as pd

_NEEDED = {
    "classes_",
    "columns_",
    "feature_names_",
    "feature_names_in_",
    "n_features_in_",
    "probabilities_",
    "shares_rows_",
    "tree_",
}


def is_collection(X: Any) -> bool:
    """Return whether rows are a collection of Dask; nobody has one who did not import it."""
    dask = sys.modules.get("dask")
    return dask is not None and bool(dask.is_dask_collection(X))


def lazy_on_collections(empty: Callable[[Any], np.ndarray]) -> Callable[[Any], Any]:
    """Make a method of rows lazy where these are a collection of Dask.

    Parameters
    ----------
    empty : callable
        Takes the estimator, and returns what its method returns for no rows.

    Returns
    -------
    callable
        A decorator. Of a frame the method then returns a lazy series, or a frame with a column for
        each class, with the index of the rows; of an array a lazy array with the chunks of the
        rows.
    """

    def decorate(method: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(method)
        def on_rows(self: Any, X: Any, **options: Any) -> Any:
            if not is_collection(X):
                return method(self, X, **options)
            for name, value in options.items():
                if value:
                    raise ValueError(f"{name}={value!r}: for collections of Dask allowed is False.")
            return _lazily(method.__name__, self, X, empty(self))

        return on_rows

    return decorate


def _lazily(name: str, estimator: Any, X: Any, nothing: np.ndarray) -> Any:
    """Return what a method will return for the rows of a collection."""
    bare = copy(estimator)
    # Records of the search need not travel, and callbacks cannot.
    bare.__dict__ = {
        key: None if key == "callbacks" else value
        for key, value in vars(estimator).items()
        if not key.startswith("_") and (not key.endswith("_") or key in _NEEDED)
    }
    if hasattr(X, "map_blocks"):
        if X.ndim != 2:
            raise ValueError(f"X has shape {X.shape}: allowed are 2 dimensions.")
        told: dict[str, Any] = {"dtype": nothing.dtype, "meta": nothing}
        if nothing.ndim > 1:
            told["chunks"] = (X.chunks[0], nothing.shape[1:])
        else:
            told["drop_axis"] = 1
        return X.rechunk({1: -1}).map_blocks(_of_block, name, bare, nothing, **told)
    classes = bare.classes_ if nothing.ndim > 1 else None
    meta = _with_index(nothing, X._meta.index, classes)
    return X.map_partitions(_of_partition, name, bare, nothing, classes, meta=meta)


def _of_block(rows: np.ndarray, name: str, estimator: Any, nothing: np.ndarray) -> np.ndarray:
    found: np.ndarray = getattr(estimator, name)(rows) if len(rows) else nothing
    return found


def _of_partition(
    rows: pd.DataFrame, name: str, estimator: Any, nothing: np.ndarray, classes: np.ndarray | None
) -> pd.Series | pd.DataFrame:
    return _with_index(_of_block(rows, name, estimator, nothing), rows.index, classes)


def _with_index(
    found: np.ndarray, index: pd.Index, classes: np.ndarray | None
) -> pd.Series | pd.DataFrame:
    """Return predictions with the index of their rows."""
    if classes is None:
        return pd.Series(found, index=index)
    return pd.DataFrame(found, index=index, columns=classes)
