"""How the columns of a table become features, and the same columns of a later table the same ones.

A column of numbers is one feature, its missing cells being the mean. Of another column every level
is a feature of 0 and 1, and so are its missing cells, where there are some; two levels make one
feature. Levels are compared by how they are written: a column of codes reads as text where one row
has a letter in it, and as numbers where none has.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from pandas.api.types import is_numeric_dtype

__all__ = [
    "MISSING",
    "CategoricalColumn",
    "Column",
    "NumericColumn",
    "encode",
    "fit_columns",
    "numbers_of",
    "quoted",
    "text_of",
]

#: The level that missing cells of a categorical column have.
MISSING = "missing"
# So many characters of a cell are shown in a message.
_SHOWN = 100


@dataclass(frozen=True)
class NumericColumn:
    """A column of numbers, which is one feature.

    Attributes
    ----------
    name : str
        Name of the column.
    mean : float
        Stands for a missing number.
    """

    name: str
    mean: float

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Names of the features that the column makes."""
        return (self.name,)


@dataclass(frozen=True)
class CategoricalColumn:
    """A column of levels, each of which is a feature that is 1 in the rows of that level.

    Attributes
    ----------
    name : str
        Name of the column.
    levels : tuple of str
        The levels that are features, as they are written. Any other cell makes zeros only: that of
        an unknown level, and that of the most frequent one where there are two.
    """

    name: str
    levels: tuple[str, ...]

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Names of the features that the column makes."""
        return tuple(f"{self.name}={level}" for level in self.levels)


Column: TypeAlias = NumericColumn | CategoricalColumn


def text_of(value: Any) -> str:
    """Return a value as a table shows it: a whole number without a decimal point."""
    if isinstance(value, float | np.floating) and float(value).is_integer():
        value = int(value)
    return str(value)


def quoted(value: Any) -> str:
    """Return a cell as messages show it: text in quotation marks, of a long one the beginning."""
    shown = repr(value) if isinstance(value, str) else text_of(value)
    return shown if len(shown) <= _SHOWN else f"{shown[:_SHOWN]}..."


def numbers_of(series: pd.Series) -> pd.Series:
    """Return the numbers that cells are or spell as float64, NaN for all else."""
    # Whole numbers of more than 64 bits are beyond pandas as numbers, but not as text.
    texts = series.where(series.isna(), series.astype(str))
    return pd.to_numeric(texts, errors="coerce").astype(np.float64)


def fit_columns(frame: pd.DataFrame) -> tuple[Column, ...]:
    """Return how the columns of a table become features.

    Fit them on training rows only, so that means and levels know nothing of the test rows.

    Parameters
    ----------
    frame : DataFrame of shape (n_rows, n_columns)
        Columns of numbers or truth values are numeric, all others categorical.

    Returns
    -------
    tuple of NumericColumn or CategoricalColumn
        In the order of the table, without categorical columns of one level. Where a column has at
        most two levels besides missing cells, the most frequent one makes no feature.

    Raises
    ------
    ValueError
        If `frame` is no DataFrame, has two columns of one name or infinite numbers, or no column
        that makes a feature.

    Examples
    --------
    >>> table = pd.DataFrame({"size": [1.0, None, 3.0], "sex": ["m", "f", "m"]})
    >>> columns = fit_columns(table)
    >>> encode(columns, table)
    array([[1., 0.],
           [2., 1.],
           [3., 0.]])
    """
    if not isinstance(frame, pd.DataFrame):
        raise ValueError(f"frame is a {type(frame).__name__}: allowed is a pandas DataFrame.")
    if not frame.columns.is_unique:
        repeated = sorted(set(map(str, frame.columns[frame.columns.duplicated()])))
        raise ValueError(f"frame has columns of one name: {', '.join(repeated)}.")
    numeric = [is_numeric_dtype(dtype) for dtype in frame.dtypes]
    means = iter(_means(_numbers(frame, frame.columns[numeric])))
    columns: list[Column] = []
    for name, is_number in zip(frame.columns, numeric, strict=True):
        if is_number:
            columns.append(NumericColumn(str(name), float(next(means))))
        elif levels := _shown_levels(frame[name]):
            columns.append(CategoricalColumn(str(name), levels))
    if not columns:
        raise ValueError("no column of the table makes a feature: each has one level.")
    return tuple(columns)


def encode(columns: Sequence[Column], frame: pd.DataFrame) -> np.ndarray:
    """Return the features that columns make of a table.

    Parameters
    ----------
    columns : sequence of NumericColumn or CategoricalColumn
        At least one.
    frame : DataFrame of shape (n_rows, n_columns)
        Has these columns, in any order; others are ignored.

    Returns
    -------
    ndarray of shape (n_rows, n_features), float64, C-contiguous
        Finite numbers.

    Raises
    ------
    ValueError
        If columns are not there or there twice, or hold text or infinity where numbers belong.
    """
    frame = frame.set_axis(frame.columns.map(str), axis=1)
    present = set(frame.columns)
    absent = [column.name for column in columns if column.name not in present]
    if absent:
        names = ", ".join(map(repr, absent[:10])) + (", ..." if len(absent) > 10 else "")
        raise ValueError(
            f"the data lack {len(absent)} of the {len(columns)} columns that the model needs: "
            f"{names}."
        )
    repeated = set(frame.columns[frame.columns.duplicated()])
    for column in columns if repeated else ():
        if column.name in repeated:
            raise ValueError(f"the data have the column {column.name!r} more than once.")
    parts = []
    for is_number, group in groupby(columns, lambda column: isinstance(column, NumericColumn)):
        run: list[Any] = list(group)
        if is_number:
            numbers = _numbers(frame, [column.name for column in run])
            parts.append(np.where(np.isnan(numbers), [column.mean for column in run], numbers))
        else:
            parts += [
                (_levels(frame[column.name])[:, np.newaxis] == np.array(column.levels, object))
                for column in run
            ]
    return np.ascontiguousarray(np.hstack(parts), dtype=np.float64)


def _numbers(frame: pd.DataFrame, names: Sequence[str] | pd.Index) -> np.ndarray:
    """Return columns of numbers, NaN where they are missing, and refuse text and infinity."""
    block = frame[list(names)]
    if block.shape[1] == 0:
        return np.empty((len(frame), 0))
    try:
        numbers = block.to_numpy(dtype=np.float64, na_value=np.nan)
    except (ValueError, TypeError, OverflowError):
        numbers = np.column_stack([numbers_of(block[name]) for name in names])
    bad = ~np.isfinite(numbers) & block.notna().to_numpy()
    if bad.any():
        column = int(bad.any(axis=0).argmax())
        row = int(bad[:, column].argmax())
        what = "no number" if np.isnan(numbers[row, column]) else "not a finite number"
        raise ValueError(
            f"column {str(names[column])!r}: {quoted(block.iloc[row, column])} in data row "
            f"{row + 1} is {what}; a missing value is an empty cell."
        )
    return numbers


def _means(numbers: np.ndarray) -> np.ndarray:
    """Return the means of columns, 0 where all is missing."""
    known = ~np.isnan(numbers)
    n_known = np.maximum(known.sum(axis=0), 1)
    filled = np.where(known, numbers, 0.0)
    with np.errstate(over="ignore"):
        means = filled.sum(axis=0) / n_known
    # Numbers that overflow in the sum do not, divided first.
    return means if np.isfinite(means).all() else (filled / n_known).sum(axis=0)


def _levels(series: pd.Series) -> np.ndarray:
    """Return the level of each cell, as it is written."""
    codes, known = pd.factorize(series)
    # The code of missing cells is -1, the place of the last level.
    return np.array([*map(text_of, known), MISSING], dtype=object)[codes]


def _shown_levels(series: pd.Series) -> tuple[str, ...]:
    """Return the levels of a column that are features, the missing cells last."""
    levels, counts = np.unique(_levels(series), return_counts=True)
    shown = sorted(levels, key=lambda level: (level == MISSING, level))
    if len(set(shown) - {MISSING}) <= 2:
        shown.remove(levels[counts.argmax()])
    return tuple(shown)
