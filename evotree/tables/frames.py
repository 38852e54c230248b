"""What a fit takes, in forms of pandas and NumPy: tables of all kinds, and labels of classes.

Tables are arrays, lists, and frames of pandas, polars and Arrow; labels are lists, arrays and
columns of any type.
"""

import sys
from collections.abc import Sequence
from datetime import date, timedelta
from numbers import Integral, Real
from typing import Any

import numpy as np
import pandas as pd
from pandas.api.types import is_bool_dtype, is_numeric_dtype
from sklearn.utils import check_array

from evotree.words import listed

MANY_TARGETS = 20
"""More different numbers than this are no classes."""

_KINDS: tuple[tuple[Any, Any], ...] = (
    (bool | np.bool_, bool),
    (Integral, np.int64),
    (Real, np.float64),
    (str, object),
)


def level_of_user() -> int:
    """Return the level, for the function that warns, of the first caller outside the package."""
    frame, level = sys._getframe(1), 1
    while frame.f_back and str(frame.f_globals.get("__name__")).startswith("evotree."):
        frame, level = frame.f_back, level + 1
    return level


def is_frame(X: Any) -> bool:
    """Return whether rows are a frame of pandas or polars, or a table of Arrow."""
    # Nobody has one who did not import it.
    kinds = [
        *(("polars", "DataFrame"), ("polars", "LazyFrame")),
        *(("pyarrow", "Table"), ("pyarrow", "RecordBatch")),
    ]
    return isinstance(X, pd.DataFrame) or any(
        library in sys.modules and isinstance(X, getattr(sys.modules[library], kind))
        for library, kind in kinds
    )


def refuse_collections(given: Any, name: str = "X") -> None:
    """Raise for rows that would all have to be computed and held."""
    if type(given).__module__.startswith("dask"):
        raise ValueError(
            f"{name} is a collection of Dask: allowed are rows in memory; evotree.dask.fit and "
            "evotree.dask.predict take collections."
        )


def as_table(X: Any) -> pd.DataFrame:
    """Return rows as a frame of pandas whose columns keep their types."""
    refuse_collections(X)
    if not is_frame(X):
        refuse_complex(X)
        X = unmasked(X)
        # The array of a list of numbers and texts would hold texts only.
        cells = check_array(
            X,
            dtype=None if isinstance(X, np.ndarray) else object,
            ensure_all_finite=False,
        )
        return pd.DataFrame(cells, copy=False)
    if hasattr(X, "collect"):
        raise ValueError(
            "X is a LazyFrame: allowed are frames, such as of X.collect()."
        )
    if 0 in X.shape:
        raise ValueError(
            f"X has shape {X.shape}: allowed are 2 dimensions, both at least 1."
        )
    frame = frame_of(X)
    if not frame.columns.is_unique:
        name = frame.columns[frame.columns.duplicated()][0]
        raise ValueError(
            f"X has the column {name!r} more than once: rename or drop one."
        )
    return frame


def frame_of(X: Any) -> Any:
    """Return a frame as one of pandas; what is none stays as it is."""
    if isinstance(X, pd.DataFrame) or not is_frame(X):
        return X
    if not hasattr(X, "schema") or not hasattr(X.schema, "items"):  # of Arrow
        return X.to_pandas()
    # The conversion by polars itself needs pyarrow.
    categories = ("Categorical", "Enum")
    return pd.DataFrame(
        {
            name: pd.Series(
                X[name].to_numpy(),
                dtype="category" if type(dtype).__name__ in categories else None,
            )
            for name, dtype in X.schema.items()
        }
    )


def unmasked(X: Any) -> Any:
    """Return an array whose masked cells are NaN."""
    if not np.ma.is_masked(X):
        return X
    cells: Any = X.astype(np.float64 if X.dtype.kind in "biuf" else object)
    return cells.filled(np.nan)


def refuse_complex(values: Any, name: str = "X") -> None:
    """Raise for an array or list of complex numbers, in words that scikit-learn asks for."""
    if np.asarray(values).dtype.kind == "c":
        raise ValueError(
            f"Complex data not supported: {name} has such numbers, allowed are real ones."
        )


def order_of(labels: Any, names: Sequence[Any], parameter: str) -> np.ndarray:
    """Return the position of each name among the labels of a pandas object.

    Labels that are no others than positions are taken for the order of the names.
    """
    if labels.equals(pd.RangeIndex(len(names))):
        return np.arange(len(names))
    written = pd.Index([str(label) for label in labels])
    asked = [str(name) for name in names]
    if len(written) != len(asked) or set(written) != set(asked):
        raise ValueError(
            f"{parameter} has the labels {_shown(written)}: allowed are {_shown(asked)}, each "
            "once, and values without labels, in this order."
        )
    return written.get_indexer(asked)


def by_label(values: Any, names: Sequence[Any], parameter: str) -> Any:
    """Return values, one for each name, in the order of names where a Series labels them."""
    if not isinstance(values, pd.Series):
        return values
    return values.to_numpy()[order_of(values.index, names, parameter)]


def by_row(values: Any, rows: Any, parameter: str) -> Any:
    """Return what stands beside rows in their order, by labels of pandas where both have some.

    An index that counts from 0 is none; but where it has the labels of the other one in another
    order, nobody knows which rows are meant.
    """
    own, others = row_labels(values), row_labels(rows)
    # Lengths are checked elsewhere.
    if own is None or others is None or len(own) != len(others) or own.equals(others):
        return values
    counts_rows = any(one.equals(pd.RangeIndex(len(one))) for one in (own, others))
    are_same = own.is_unique and others.is_unique and own.isin(others).all()
    if are_same and not counts_rows:
        return values.loc[others]
    if counts_rows and not are_same:
        return values
    raise ValueError(
        f"{parameter} has the row labels {_shown(own)}, the other rows have {_shown(others)}: "
        "allowed are the same ones, in the same order if one of both only counts rows, and values "
        f"without labels, such as {parameter}.to_numpy()."
    )


def row_labels(values: Any) -> pd.Index | None:
    """Return the labels that rows have in pandas; None for what has none."""
    return values.index if isinstance(values, pd.Series | pd.DataFrame) else None


def _shown(labels: Any) -> str:
    """Return the first of some labels."""
    return listed([*map(repr, labels)], 5)


# ---- labels of classes ---------------------------------------------------------------------------


def read_labels(y: Any) -> Any:
    """Return labels as an array of truth values, whole numbers, floats or texts.

    Labels of more than one dimension, or none, are returned as they are. Missing ones raise
    `ValueError`, which says how many there are, and so do dates and labels of several types.
    """
    refuse_collections(y, "y")
    y = unmasked(y.to_pandas() if hasattr(y, "to_pandas") else y)
    if isinstance(y, list | tuple):
        # The array of a list of numbers and texts would hold texts only.
        y = np.asarray(y, dtype=object)
    if getattr(y, "ndim", 0) != 1 or not hasattr(y, "dtype"):
        return y
    if isinstance(y, np.ndarray) and y.dtype.kind in "biuUS":
        return y
    if _are_dates(np.asarray(y)):
        raise ValueError(
            f"y has dates or times, such as {np.asarray(y)[0]}: allowed are texts and numbers."
        )
    labels = np.asarray(y, dtype=object if y.dtype.kind == "T" else None)
    missing = np.asarray(pd.isna(labels), dtype=bool)
    if missing.any():
        raise ValueError(
            f"Input y contains NaN or missing labels: {missing.sum()} of {len(missing)}, the first "
            f"in row {missing.argmax()}. Leave these rows out, or make them a class of their own, "
            "such as by y.fillna('missing')."
        )
    return _narrowed(labels) if labels.dtype == object else labels


def are_many_numbers(y: Any) -> bool:
    """Return whether targets are more different numbers than there would be classes."""
    is_numeric = is_numeric_dtype(y.dtype) and not is_bool_dtype(y.dtype)
    return is_numeric and pd.Series(y).nunique() > MANY_TARGETS


def _are_dates(cells: np.ndarray) -> bool:
    """Return whether cells are dates, times or durations, by their type or the first of them."""
    kinds = date | timedelta | pd.Period | np.datetime64 | np.timedelta64
    is_object = cells.dtype == object and cells.size > 0
    return cells.dtype.kind in "mM" or (is_object and isinstance(cells.flat[0], kinds))


def as_numbers(name: str, values: Any, advice: str = "") -> np.ndarray:
    """Return values as an array of floats; the error names what holds others."""
    try:
        cells = np.asarray(unmasked(values))
        if not (_are_dates(cells) or cells.dtype.kind == "c"):
            return np.asarray(cells, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name}: {error}; allowed are numbers{advice}.") from error
    refuse_complex(cells, name)
    raise ValueError(
        f"{name} has dates or times, such as {cells.flat[0]}: allowed are numbers{advice}."
    )


def _narrowed(labels: np.ndarray) -> np.ndarray:
    """Return objects of one kind in the type of NumPy that holds all of them."""
    kinds = {type(label) for label in labels.tolist()}
    for kind, dtype in _KINDS:
        if all(issubclass(one, kind) for one in kinds):
            try:
                return labels.astype(dtype)
            except OverflowError as error:
                raise ValueError(
                    "y has whole numbers of more than 64 bits: make them texts."
                ) from error
    names = ", ".join(sorted(kind.__name__ for kind in kinds))
    raise ValueError(
        f"y has labels of the types {names}: allowed are numbers, or texts."
    )
