"""How the columns of a table become features, and the same columns of a later table the same ones.

A column of numbers is one feature, its missing cells being the median; where some cells are missing
when it is fitted, a second feature of 0 and 1 says which. Of a column of categories every level is
a feature of 0 and 1, and so are its missing cells, where there are some; two levels make one
feature. Levels are compared by how they are written: a column of codes reads as text where one row
has a letter in it, and as numbers where none has. The level of missing cells is None.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from numbers import Real
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from pandas.api.types import is_numeric_dtype

# of a column of categories as it is written; None where missing
Level: TypeAlias = str | None
MISSING = "missing"  # how the level of missing cells is shown
LARGEST = 1e100  # magnitude whose square, and the sum of some squares, is finite
_SHOWN = 100  # characters of a cell in messages
_SHOWN_NAMES = 8  # names of columns in messages


@dataclass(frozen=True)
class NumericColumn:
    """A column of numbers: a feature, and a second one where it was fitted to missing cells."""

    name: str
    fill: float  # stands for a missing number
    indicator: bool = (
        False  # whether a second feature is 1 in the rows whose cell is missing
    )

    @property
    def feature_levels(self) -> tuple[str | None, ...]:
        """The level that each feature asks for, as names show it; None for the number."""
        return (None, MISSING) if self.indicator else (None,)


@dataclass(frozen=True)
class CategoricalColumn:
    """A column of levels, some of which are features that are 1 in the rows of that level.

    Any other cell makes zeros only: that of an unknown level, and that of `other`.
    """

    name: str
    levels: tuple[Level, ...]  # that are features, None for missing cells
    other: str | None = (
        None  # the most frequent one of one or two, which makes no feature
    )

    @property
    def feature_levels(self) -> tuple[str, ...]:
        """The level that each feature asks for, as names show it."""
        return tuple(map(_shown, self.levels))


Column: TypeAlias = NumericColumn | CategoricalColumn


def _shown(level: Level) -> str:
    """Return a level as names show it: quoted where it reads as missing, or as quoted."""
    if level is None:
        return MISSING
    return repr(level) if level == MISSING or level.startswith(("'", '"')) else level


def text_of(value: Any) -> str:
    """Return a value as a table shows it: a whole number without a decimal point."""
    if isinstance(value, float | np.floating) and float(value).is_integer():
        value = int(value)
    return str(value)


def quoted(value: Any) -> str:
    """Return a cell as messages show it: text in quotation marks, of a long one the beginning."""
    shown = repr(value) if isinstance(value, str) else text_of(value)
    return shown if len(shown) <= _SHOWN else f"{shown[:_SHOWN]}..."


def is_number(value: Any) -> bool:
    """Return whether a value is a finite number, of a magnitude up to `LARGEST`."""
    try:
        return isinstance(value, Real) and abs(float(value)) <= LARGEST
    except OverflowError:  # of whole numbers beyond all others
        return False


def numbers_of(series: pd.Series) -> pd.Series:
    """Return the numbers that cells are or spell as float64, NaN for all else."""
    # Whole numbers of more than 64 bits are beyond pandas as numbers, but not as text.
    texts = series.where(series.isna(), series.astype(str))
    return pd.to_numeric(texts, errors="coerce").astype(np.float64)


def feature_names(columns: Sequence[Column]) -> tuple[str, ...]:
    """Return the names of the features that columns make, in order."""
    pairs = [
        (column.name, level) for column in columns for level in column.feature_levels
    ]
    plain = [_feature_name(name, level) for name, level in pairs]
    counts = Counter(plain)
    # Of several that are the same, those made of a column's name have it in quotation marks.
    return tuple(
        _feature_name(repr(column), level)
        if counts[name] > 1 and name != column
        else name
        for name, (column, level) in zip(plain, pairs, strict=True)
    )


def _feature_name(column: str, level: str | None) -> str:
    """Return the name of a feature that is a column of numbers, or asks for a level of one."""
    return column if level is None else f"{column} is {level}"


def column_of_feature(columns: Sequence[Column]) -> list[int]:
    """Return the position of the column that makes each feature, in order."""
    return [j for j, column in enumerate(columns) for _ in column.feature_levels]


def answers_of(columns: Sequence[Column]) -> dict[int, tuple[str, str]]:
    """Return what each feature of 0 and 1 says by being 1, and by being 0, by its position."""
    levels = [level for column in columns for level in column.feature_levels]
    return {
        at: (name, f"{name.removesuffix(f' is {level}')} is not {level}")
        for at, (name, level) in enumerate(
            zip(feature_names(columns), levels, strict=True)
        )
        if level is not None
    }


def columns_asked(columns: Any, names: Sequence[str], parameter: str) -> set[int]:
    """Return the positions of the columns that users name, by positions, or by their `names`."""
    chosen = set()
    listed: list[Any] = [columns] if isinstance(columns, str) else list(columns)
    for column in listed:
        is_number = isinstance(column, int | np.integer) and not isinstance(
            column, bool
        )
        if is_number and 0 <= column < len(names):
            chosen.add(int(column))
        elif isinstance(column, str) and column in names:
            chosen.add(list(names).index(column))
        else:
            raise ValueError(
                f"{parameter} names {column!r}: allowed are positions from 0 to {len(names) - 1}, "
                f"and names of columns: {', '.join(map(repr, names[:_SHOWN_NAMES]))}."
            )
    return chosen


def indicator_of_feature(columns: Sequence[Column]) -> list[int]:
    """Return the position of the feature that is 1 where each feature is missing; -1 for none."""
    places: list[int] = []
    for column in columns:
        if isinstance(column, NumericColumn) and column.indicator:
            places += [len(places) + 1, -1]
        else:
            places += [-1] * len(column.feature_levels)
    return places


def columns_from(columns: Any, missing: str | None = None) -> tuple[Column, ...]:
    """Return columns of plain data, where `missing` stands for the level of missing cells."""
    if not isinstance(columns, list) or not columns:
        raise ValueError("columns is not a list of at least one column")
    made: list[Column] = []
    for j, column in enumerate(columns):
        name = column.get("name") if isinstance(column, dict) else None
        if not isinstance(name, str):
            raise ValueError(f"columns[{j}] is not an object with a name")
        fill, indicator, levels, other = map(
            column.get, ("fill", "indicator", "levels", "other")
        )
        if (
            type(fill) in (int, float)
            and math.isfinite(fill)
            and isinstance(indicator, bool)
        ):
            made.append(NumericColumn(name, float(fill), indicator))
        elif (
            isinstance(levels, list)
            and all(isinstance(level, str | None) for level in [*levels, other])
            and len({*levels, other})
            == len(levels) + (other is not None or None not in levels)
        ):
            shown = [None if level == missing else level for level in levels]
            made.append(CategoricalColumn(name, tuple(shown), other))
        else:
            raise ValueError(
                f"column {name!r} has neither a finite fill and an indicator, true or false, nor a "
                "list of levels, distinct texts or null, of which the other one is none"
            )
    if len({column.name for column in made}) < len(made):
        raise ValueError("two columns have the same name")
    return tuple(made)


def fit_columns(
    frame: pd.DataFrame,
    categorical: Sequence[bool] | np.ndarray | None = None,
    sample_weight: np.ndarray | None = None,
) -> tuple[Column, ...]:
    """Return how the columns of a table become features.

    Fit them on training rows only, so that medians and levels know nothing of the test rows. By
    default all columns but those of numbers or truth values are categories; where one has at most
    two levels besides missing cells, the most frequent one makes no feature. A row of weight 2
    counts as two rows, one of weight 0 as none.

    Examples
    --------
    >>> table = pd.DataFrame({"size": [1.0, None, 3.0], "sex": ["m", "f", "m"]})
    >>> columns = fit_columns(table)
    >>> feature_names(columns)
    ('size', 'size is missing', 'sex is f')
    >>> encode(columns, table)
    array([[1., 0., 0.],
           [2., 1., 1.],
           [3., 0., 0.]])
    """
    if not isinstance(frame, pd.DataFrame):
        raise ValueError(
            f"frame is a {type(frame).__name__}: allowed is a pandas DataFrame."
        )
    if sample_weight is not None and not sample_weight.all():
        there = sample_weight > 0.0
        frame, sample_weight = frame[there], sample_weight[there]
    if categorical is None:
        categorical = [not is_numeric_dtype(dtype) for dtype in frame.dtypes]
    is_category = np.asarray(categorical, dtype=bool)
    # A part of a table copies its cells.
    numbers = iter(
        _numbers(frame.loc[:, ~is_category] if is_category.any() else frame).T
    )
    columns: list[Column] = []
    for j, name in enumerate(map(str, frame.columns)):
        if is_category[j]:
            places, levels = _levels(frame.iloc[:, j])
            weights = np.bincount(places, sample_weight, len(levels)).tolist()
            columns.append(_categorical(name, dict(zip(levels, weights, strict=True))))
            continue
        cells = next(numbers)
        is_number = ~np.isnan(cells)
        weight = None if sample_weight is None else sample_weight[is_number]
        fill = _median(cells[is_number], weight) if is_number.any() else 0.0
        columns.append(
            NumericColumn(name, fill, bool(is_number.any() and not is_number.all()))
        )
    names = feature_names(columns)
    if not names:
        raise ValueError("no column of the table makes a feature: each has one level.")
    name, count = Counter(names).most_common(1)[0]
    if count > 1:
        raise ValueError(
            f"the columns make {count} features of the name {name!r}: rename some."
        )
    return tuple(columns)


def _median(values: np.ndarray, weight: np.ndarray | None) -> float:
    """Return the median, a weight of two being the same as a value given twice."""
    if weight is None or (weight == weight[0]).all():
        middle = [(len(values) - 1) // 2, len(values) // 2]
        low, high = np.partition(values, middle)[middle].tolist()
    else:
        # Sorted by both, so that rounding does not depend on the order of the rows.
        order = np.lexsort((weight, values))
        below = np.cumsum(weight[order])
        half = 0.5 * below[-1]
        at = [np.searchsorted(below, half, side) for side in ("left", "right")]
        low, high = values[order[at]].tolist()
    # The sum of two huge numbers overflows, that of their halves does not.
    return low if low == high else 0.5 * low + 0.5 * high


def _categorical(name: str, weights: Mapping[Level, float]) -> CategoricalColumn:
    """Return a column of categories and its levels that are features, the missing cells last."""
    texts = sorted(level for level in weights if level is not None)
    other = max(texts, key=weights.__getitem__) if 0 < len(texts) <= 2 else None
    levels: list[Level] = [level for level in texts if level != other]
    if texts and None in weights:
        levels.append(None)
    return CategoricalColumn(name, tuple(levels), other)


def _levels(cells: pd.Series) -> tuple[np.ndarray, list[Level]]:
    """Return the place of each cell's level among those there are, and these, as written."""
    codes, values = pd.factorize(cells)
    texts = [text_of(value) for value in values]
    levels: list[Level] = [*sorted(set(texts))]
    place = {level: k for k, level in enumerate(levels)}
    # The code of missing cells is -1, the place of the last level.
    places = np.array([*(place[text] for text in texts), len(levels)], dtype=np.intp)
    if (codes < 0).any():
        levels.append(None)
    return places[codes], levels


def encode(
    columns: Sequence[Column], frame: pd.DataFrame, used: Sequence[str] | None = None
) -> np.ndarray:
    """Return the features that columns make of a table.

    The table has these columns, in any order; others are ignored. Where `used` names some of them,
    the others are taken for missing, whether they are there or not. The features are finite
    numbers, of shape (n_rows, n_features), float64 and C-contiguous.
    """
    frame = frame.set_axis(frame.columns.map(str), axis=1)
    present = set(frame.columns)
    names = [column.name for column in columns] if used is None else list(used)
    if absent := [name for name in names if name not in present]:
        raise ValueError(
            f"the data lack {len(absent)} of the {len(names)} columns that the model needs: "
            f"{', '.join(map(repr, absent[:10]))}{', ...' if len(absent) > 10 else ''}."
        )
    repeated = set(frame.columns[frame.columns.duplicated()])
    if twice := next((name for name in names if name in repeated), None):
        raise ValueError(f"the data have the column {twice!r} more than once.")
    frame = frame[names]
    if used is not None:
        frame = frame.reindex(columns=[column.name for column in columns])
    return encode_in_order(columns, frame)


def encode_in_order(columns: Sequence[Column], frame: pd.DataFrame) -> np.ndarray:
    """Return the features that columns make of a table of just these, in their order."""
    parts: list[np.ndarray] = []
    at = 0
    for is_number, group in groupby(
        columns, lambda column: isinstance(column, NumericColumn)
    ):
        run: list[Any] = list(group)
        cells = frame.iloc[:, at : at + len(run)]
        at += len(run)
        if is_number:
            numbers = _numbers(cells)
            missing = np.isnan(numbers)
            if missing.any():
                numbers = np.where(missing, [column.fill for column in run], numbers)
            if indicated := [j for j, column in enumerate(run) if column.indicator]:
                behind = np.add(indicated, 1)
                numbers = np.insert(numbers, behind, missing[:, indicated], axis=1)
            parts.append(numbers)
            continue
        for j, column in enumerate(run):
            places, levels = _levels(cells.iloc[:, j])
            is_level = [[level == shown for shown in column.levels] for level in levels]
            parts.append(
                np.reshape(is_level, (len(levels), len(column.levels)))[places]
            )
    features = parts[0] if len(parts) == 1 else np.hstack(parts)
    return np.ascontiguousarray(features, dtype=np.float64)


def _numbers(block: pd.DataFrame) -> np.ndarray:
    """Return columns of numbers, NaN where they are missing, and refuse text and infinity."""
    if block.shape[1] == 0:
        return np.empty(block.shape)
    try:
        # Where NaN needs no word for it, the user's own array is not copied.
        is_plain = all(isinstance(dtype, np.dtype) for dtype in block.dtypes)
        absent = {} if is_plain else {"na_value": np.nan}
        numbers = block.to_numpy(dtype=np.float64, **absent)
    except (ValueError, TypeError, OverflowError):
        numbers = np.column_stack(
            [numbers_of(block.iloc[:, j]) for j in range(block.shape[1])]
        )
    bad = ~np.isfinite(numbers)
    if bad.any():
        bad &= block.notna().to_numpy()
    if bad.any():
        column = int(bad.any(axis=0).argmax())
        row = int(bad[:, column].argmax())
        what = "no number" if np.isnan(numbers[row, column]) else "not a finite number"
        raise ValueError(
            f"column {str(block.columns[column])!r}: {quoted(block.iloc[row, column])} in data row "
            f"{row + 1} is {what}; a missing value is an empty cell, or NaN."
        )
    return numbers
