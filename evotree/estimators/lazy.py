"""Predictions and explanations of collections of Dask, computed partition by partition."""

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
}
_NEEDED |= {"probabilities_", "shares_rows_", "tree_"}


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
                    raise ValueError(
                        f"{name}={value!r}: for collections of Dask allowed is False."
                    )
            return _lazily(X, method.__name__, _without_records(self), empty(self))

        return on_rows

    return decorate


def _lazily(X: Any, *asked: Any) -> Any:
    """Return what a method of an estimator will return for the rows of a collection."""
    nothing = asked[-1]
    if not hasattr(X, "map_blocks"):
        return X.map_partitions(_predicted, *asked, meta=_predicted(X._meta, *asked))
    if X.ndim != 2:
        raise ValueError(f"X has shape {X.shape}: allowed are 2 dimensions.")
    of_class = {"chunks": (X.chunks[0], nothing.shape[1:])}
    shape: dict[str, Any] = of_class if nothing.ndim > 1 else {"drop_axis": 1}
    shape |= {"dtype": nothing.dtype, "meta": nothing}
    return X.rechunk({1: -1}).map_blocks(_predicted, *asked, **shape)


def _predicted(rows: Any, name: str, estimator: Any, nothing: np.ndarray) -> Any:
    """Return what a method says of a partition, with the index of its rows."""
    predicted: np.ndarray = getattr(estimator, name)(rows) if len(rows) else nothing
    if not isinstance(rows, pd.DataFrame):
        return predicted
    if predicted.ndim == 1:
        return pd.Series(predicted, index=rows.index)
    return pd.DataFrame(predicted, index=rows.index, columns=estimator.classes_)


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
