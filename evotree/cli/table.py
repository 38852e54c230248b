"""A user's table before training: what to leave out, and whether a tree can be learned from it.

In: a DataFrame as read from a file, its rows numbered from 0. Out: features and classes or numbers
to predict, or a `ValueError` that names the column and what is wrong with it.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from pandas.api.types import is_bool_dtype, is_float_dtype, is_numeric_dtype
from sklearn.model_selection import train_test_split

from evotree.tables.columns import numbers_of, quoted

MANY_TARGETS = (
    20  # with more distinct numbers a column holds numbers to predict, not classes
)
MANY_NUMBERS = 10  # a column of text with more distinct numbers was meant to be numeric
# More distinct values than this, in most rows a new one, are no categories and no classes.
MANY_CATEGORIES = 50
_SHOWN = 1000  # characters of the names of columns


def features_and_target(
    frame: Any, target: str, drop: Sequence[str] = ()
) -> tuple[Any, Any]:
    """Split a table; rows without a target are left out."""
    for option, name in (("target", target), *(("drop", name) for name in drop)):
        if name not in frame.columns:
            names = ", ".join(map(str, frame.columns))
            names = names if len(names) <= _SHOWN else f"{names[:_SHOWN]}..."
            raise ValueError(
                f"--{option} {name!r}: there is no such column; the columns are {names}"
            )
    frame = frame.dropna(subset=[target])
    X = frame.drop(columns=[target, *drop])
    y = frame[target]
    if len(X.columns) == 0:
        raise ValueError(
            f"{target!r} is the only column: there is nothing to predict it from"
        )
    return X, y


def distinct_numbers(y: Any) -> int:
    """Return how many values targets have where these are numbers, else 0."""
    if not is_numeric_dtype(y.dtype) or is_bool_dtype(y.dtype):
        return 0
    return int(y.nunique())


def as_numbers(y: np.ndarray, target: str) -> np.ndarray:
    """Return targets as numbers to predict."""
    numbers = numbers_of(pd.Series(y)).to_numpy(np.float64)
    bad = np.flatnonzero(~np.isfinite(numbers))
    if bad.size:
        raise ValueError(
            f"column {target!r} has {quoted(y[bad[0]])}, which is not a finite "
            "number: regression predicts numbers"
        )
    if pd.unique(numbers).size < 2:
        held = f"one value only, {y[0]}" if len(y) else "no value"
        raise ValueError(f"column {target!r} has {held}: at least two are needed")
    return numbers


def as_classes(y: np.ndarray, target: str) -> np.ndarray:
    """Return targets as classes."""
    if is_float_dtype(y):
        # Of larger floats none is known to be the number that the file has.
        broken = y[(y != np.trunc(y)) | ~(np.abs(y) <= 2.0**53)]
        if broken.size:
            raise ValueError(
                f"column {target!r} has numbers such as {broken[0]}: classes are "
                "words or whole numbers; --task regression predicts numbers"
            )
        # Missing values had made floats of whole numbers.
        y = y.astype(np.int64)
    n_classes = pd.unique(y).size
    if n_classes < 2:
        held = f"one value only, {y[0]}" if n_classes else "no value"
        raise ValueError(
            f"column {target!r} has {held}: at least two classes are needed"
        )
    if n_classes > max(MANY_CATEGORIES, len(y) / 2):
        raise ValueError(
            f"column {target!r} has {n_classes} different values in {len(y)} rows: "
            "these are no classes"
        )
    return y


def check_features(X: pd.DataFrame) -> None:
    """Raise for a column of text that is numbers with some text, or names of the rows."""
    for name, dtype in X.dtypes.items():
        if is_numeric_dtype(dtype):
            continue
        column = X[name].dropna()
        numbers = numbers_of(column)
        if numbers.isna().mean() <= 0.5 and numbers.nunique() > MANY_NUMBERS:
            bad = column[~np.isfinite(numbers)]
            if len(bad):
                raise ValueError(
                    f"column {name!r}: {quoted(bad.iloc[0])} in data row "
                    f"{bad.index[0] + 1} is no finite number, as the column's others "
                    "are; a missing value is an empty cell"
                )
        elif column.nunique() > max(MANY_CATEGORIES, len(column) / 2):
            raise ValueError(
                f"column {name!r} has {column.nunique()} different texts in "
                f"{len(column)} rows: these are no categories; leave it out by --drop "
                f"{name}"
            )


def constant_columns(X: pd.DataFrame) -> list[str]:
    """Return the columns of one value, which no tree can use, or raise if there is no other."""
    constant = [name for name in X.columns if X[name].nunique(dropna=False) <= 1]
    if len(constant) == X.shape[1]:
        raise ValueError("every column but the target has the same value in all rows")
    return constant


def hold_out(
    X: pd.DataFrame, y: np.ndarray, share: float, seed: int, is_classes: bool = True
) -> tuple[pd.DataFrame, np.ndarray, tuple[pd.DataFrame, np.ndarray]]:
    """Draw test rows, each class in its share where every class has rows for both parts."""
    n_test = math.ceil(share * len(y))
    counts = np.unique(y, return_counts=True)[1]
    is_enough = counts.min() >= 2 and min(n_test, len(y) - n_test) >= counts.size
    strata = y if is_classes and is_enough else None
    state = seed % 2**32
    X, X_test, y, y_test = train_test_split(
        X, y, test_size=share, random_state=state, stratify=strata
    )
    if pd.unique(y).size < 2:
        kind = "class" if is_classes else "number"
        raise ValueError(f"a test share of {share:g} leaves one {kind} to train on")
    if not is_classes and n_test < 2:
        raise ValueError(
            f"a test share of {share:g} leaves one row to test on, of {len(y) + 1}"
        )
    return X, y, (X_test, y_test)
