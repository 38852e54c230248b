"""Predictions and explanations of collections of Dask, computed partition by partition."""

from __future__ import annotations

import sys
from collections.abc import Callable
from copy import copy
from functools import wraps
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

if TYPE_CHECKING:
    from evotree.inspection.paths import Explanation

_NEEDED = {
    "classes_",
    "columns_",
    "feature_names_",
    "feature_names_in_",
    "n_features_in_",
    "probabilities_",
    "shares_rows_",
    "training_rows_",
    "tree_",
}


def is_collection(X: Any) -> bool:
    """Return whether rows are a collection of Dask; nobody has one who did not import it."""
    dask = sys.modules.get("dask")
    return dask is not None and bool(dask.is_dask_collection(X))


def lazy_on_collections(empty: Callable[[Any], np.ndarray]) -> Callable[[Any], Any]:
    """Make a method of rows lazy where these are a collection of Dask."""

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
    bare = _without_records(estimator)
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


def _without_records(estimator: Any) -> Any:
    """Return an estimator that predicts and explains the same, to send to workers."""
    bare = copy(estimator)
    # Records of the search need not travel, and callbacks cannot.
    bare.__dict__ = {
        key: None if key == "callbacks" else value
        for key, value in vars(estimator).items()
        if not key.startswith("_") and (not key.endswith("_") or key in _NEEDED)
    }
    return bare


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


# ---- explanations --------------------------------------------------------------------------------


def explain_lazily(estimator: Any, X: Any, output: int | str | None) -> Explanation:
    """Return the explanation of a collection, whose tables are lazy frames."""
    from dask.dataframe import from_dask_array

    from evotree.inspection.paths import Explanation

    rows = from_dask_array(X.rechunk({1: -1})) if hasattr(X, "map_blocks") else X
    bare = _without_records(estimator)
    tables = [
        rows.map_partitions(
            _explained, name, bare, output, meta=_explained(rows._meta, name, bare, output)
        )
        for name in Explanation._fields
    ]
    return Explanation(*tables)


def _explained(
    rows: pd.DataFrame, name: str, estimator: Any, output: int | str | None
) -> pd.DataFrame:
    """Return one table of the explanation of a partition, with the index of its rows."""
    # Checks of rows refuse empty tables.
    encoded = estimator.encode(rows) if len(rows) else np.empty((0, estimator.tree_.n_features))
    table = getattr(estimator._explain_encoded(encoded, output), name)
    at = table["row"] if name == "terms" else slice(None)
    return table.set_axis(rows.index[at])
