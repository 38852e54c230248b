"""Labels of classes, as they come in lists, arrays and columns of any type."""

from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np
import pandas as pd
from pandas.api.types import is_bool_dtype, is_numeric_dtype

from evotree.schema import text_of
from evotree.tables.columns import reading

MANY_TARGETS = 20
_KINDS: tuple[tuple[Any, Any], ...] = (
    (bool | np.bool_, bool),
    (Integral, np.int64),
    (Real, np.float64),
    (str, object),
)


def read_labels(y: Any) -> Any:
    """Return labels as an array of truth values, whole numbers, floats or texts.

    Labels of more than one dimension, or none, are returned as they are. Missing ones raise
    `ValueError`, which says how many there are, and so do dates and labels of several types.
    """
    y = _of_pandas(y)
    if isinstance(y, list | tuple):
        # The array of a list of numbers and texts would hold texts only.
        y = np.asarray(y, dtype=object)
    if getattr(y, "ndim", 0) != 1 or not hasattr(y, "dtype"):
        return y
    if isinstance(y, np.ndarray) and y.dtype.kind in "biuUS":
        return y
    refuse_dates(y, "texts and numbers")
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


def refuse_dates(y: Any, allowed: str) -> None:
    """Raise for labels or targets that are dates, times or durations."""
    y = _of_pandas(y)
    dtype = getattr(y, "dtype", None)
    if isinstance(dtype, pd.PeriodDtype) or getattr(dtype, "kind", "") in ("m", "M"):
        raise ValueError(
            f"y has dates or times, such as {np.asarray(y)[0]}: allowed are {allowed}."
        )


def _of_pandas(y: Any) -> Any:
    """Return a column of polars or Arrow as one of pandas."""
    return y.to_pandas() if hasattr(y, "to_pandas") else y


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


def positions_of(classes: Sequence[Any], values: Any) -> np.ndarray:
    """Return the position of each value among classes, int64, and -1 for none of them.

    A value is the class that is written alike, or else the only one of the same value, as levels
    of a column are.
    """
    codes, known = pd.factorize(np.asarray(values, dtype=object))
    texts = [text_of(label) for label in classes]
    place = {text: at for at, text in enumerate(texts)}
    read = reading(texts)
    places = [place.get(read(text_of(value)), -1) for value in known]
    # Missing labels have the code -1, which takes the last place.
    return np.array([*places, -1], dtype=np.int64)[codes]
