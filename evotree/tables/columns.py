"""Readers of tables: what a column holds, which level a cell has, and the features of rows.

A level is kept as it is written. A cell of a later table is the level that is written alike, or
else the only one of the same value: 1, 1.0, "1" and "01" are one number, True and "true" one truth
value, and a date is the same with a time of midnight. So what a column is does not depend on who
reads the table: codes are numbers to pandas where no row has a letter in it. Cells that a column
does not know are told by a warning.
"""

import re
import warnings
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from contextlib import suppress
from ctypes import c_float
from datetime import date, datetime, timedelta
from functools import partial
from itertools import groupby
from typing import Any

import numpy as np
import pandas as pd
from pandas.api.types import infer_dtype, is_float_dtype, is_numeric_dtype

from evotree.schema import (
    MISSING,
    NUMBERS,
    SHOWN_CHARACTERS,
    SHOWN_NAMES,
    TEXTS,
    TRUTH,
    WHOLE,
    CategoricalColumn,
    Column,
    Level,
    NumericColumn,
    Schema,
    quoted,
    text_of,
)
from evotree.tables.frames import level_of_user
from evotree.words import listed

MANY_NUMBERS = 10
"""A column of text with more distinct numbers was meant to be numeric."""
MANY_CATEGORIES = 50
"""More distinct values than this, in most rows a new one, are no categories and no classes."""

_SHOWN_LEVELS = 3
"""Levels of a column in messages."""

_TRUTH_VALUES = {"true": 1, "false": 0}
_HELD = {"boolean": TRUTH, "integer": WHOLE}
_HELD |= dict.fromkeys(["floating", "mixed-integer-float", "decimal"], NUMBERS)
"""What cells hold, by the names that pandas has for their types."""
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_DATE = re.compile(r"\d{4}-\d\d-\d\d.*")
# Words that pandas reads as missing cells, where other readers keep them.
_GAPS = {
    *(
        "",
        "#n/a",
        "#n/a n/a",
        "#na",
        "-1.#ind",
        "-1.#qnan",
        "-nan",
        "1.#ind",
        "1.#qnan",
    ),
    *("<na>", "n/a", "na", "nan", "nat", "none", "null"),
}


def value_of(text: Level, number: Callable[[float], Any] = float) -> Hashable:
    """Return what a cell says, however it is written; None for a missing one."""
    if text is None or (word := text.strip().casefold()) in _GAPS:
        return None
    if word in _TRUTH_VALUES:
        return _TRUTH_VALUES[word]
    if _NUMBER.fullmatch(word):
        # Floats do not tell all whole numbers apart.
        is_whole = word.lstrip("+-").isdecimal() and len(word) < SHOWN_CHARACTERS
        return int(word) if is_whole else number(float(word))
    with suppress(ValueError):
        if _DATE.fullmatch(word):
            return datetime.fromisoformat(word)
    return text


def reading(levels: Sequence[Level]) -> Callable[[Any], Any]:
    """Return what says which level a text is, by writing or else by value; itself for none."""
    ways: list[Callable[[Any], Hashable]]
    # Numbers may have lost digits where they were held in single precision.
    in_single_precision = partial(value_of, number=lambda one: c_float(one).value)
    ways = [lambda text: text, value_of, in_single_precision]
    tables = []
    for way in ways:
        counts = Counter(map(way, levels))
        tables.append({way(one): one for one in levels if counts[way(one)] == 1})

    def read(text: Any) -> Any:
        values = ((way(text), table) for way, table in zip(ways, tables, strict=True))
        return next((table[value] for value, table in values if value in table), text)

    return read


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
    # The code of missing ones is -1.
    return np.array([*places, -1], dtype=np.int64)[codes]


def numbers_of(series: pd.Series, holds: str = NUMBERS) -> pd.Series:
    """Return the numbers that cells are or spell as float64, NaN for all else.

    Words for truth values are numbers where the column holds these.
    """
    if is_numeric_dtype(series.dtype) and series.dtype.kind != "c":
        numbers = series.to_numpy(dtype=np.float64, na_value=np.nan)
        return pd.Series(numbers, series.index, name=series.name)

    def spelled(value: Any) -> str:
        if isinstance(value, date | timedelta | pd.Period):
            return "nan"  # a period of a year is written as a number
        is_truth = holds == TRUTH or isinstance(value, bool | np.bool_)
        text = str(value)
        return (
            str(_TRUTH_VALUES.get(text.strip().casefold(), text)) if is_truth else text
        )

    # Whole numbers of more than 64 bits are beyond pandas as numbers, but not as text.
    texts = series.astype(object).map(spelled, na_action="ignore")
    return _numbers_spelled(texts).astype(np.float64)


def is_text(cells: pd.Series) -> bool:
    """Return whether cells are texts, which are levels, and not numbers with some text in them."""
    if is_numeric_dtype(cells.dtype) or isinstance(cells.dtype, pd.CategoricalDtype):
        return False
    there = cells.dropna()
    numbers = numbers_of(there)
    are_words = there[numbers.isna()].map(lambda one: isinstance(one, str))
    if not len(are_words) or not are_words.all():
        return False
    return numbers.isna().mean() > 0.5 or numbers.nunique() <= MANY_NUMBERS


def has_many_levels(cells: pd.Series) -> bool:
    """Return whether texts are too many to be levels that tell of further rows."""
    n_levels, n_rows = cells.nunique(), cells.notna().sum()
    return n_levels > MANY_CATEGORIES or 2 < n_levels == n_rows


def numbers_or_codes(cells: pd.Series) -> pd.Series:
    """Return texts as numbers where all are, and as they are where some are codes such as 01."""
    numbers = _numbers_spelled(cells)
    is_code = cells.astype(str).str.match(r"[+-]?0\d")
    return cells if numbers.isna().any() or is_code.any() else numbers


def _numbers_spelled(texts: pd.Series) -> pd.Series:
    """Return the numbers that texts spell, NaN for other texts."""
    texts = texts.astype(object).where(texts.notna(), np.nan)
    numbers = pd.to_numeric(texts, errors="coerce")
    if numbers.dtype.kind == "f":  # pandas before version 3 misses the last bit of some
        spelled = numbers.notna()
        numbers[spelled] = texts[spelled].astype(np.float64)
    return numbers


def fit_columns(
    frame: pd.DataFrame,
    categorical: Sequence[bool] | np.ndarray | None = None,
    sample_weight: np.ndarray | None = None,
) -> Schema:
    """Return how the columns of a table become features.

    Fit them on training rows only, so that medians and levels know nothing of the test rows. By
    default all columns but those of numbers or truth values are categories; where one has at most
    two levels besides missing cells, the most frequent one makes no feature. A row of weight 2
    counts as two rows, one of weight 0 as none.

    Examples
    --------
    >>> table = pd.DataFrame({"size": [1.0, None, 3.0], "sex": ["m", "f", "m"]})
    >>> schema = fit_columns(table)
    >>> schema.features
    ('size', 'size is missing', 'sex is f')
    >>> encode(schema, table)
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
    block = frame.loc[:, ~is_category] if is_category.any() else frame
    numbers = iter(numbers_in(block, [NUMBERS] * block.shape[1]).T)
    columns: list[Column] = []
    for j, name in enumerate(map(str, frame.columns)):
        cells = frame.iloc[:, j]
        if is_category[j]:
            places, levels = levels_of(cells)
            weights = np.bincount(places, sample_weight, len(levels)).tolist()
            of_level = dict(zip(levels, weights, strict=True))
            columns.append(_categorical(name, of_level, _held_by(cells, True)))
            continue
        values = next(numbers)
        is_number = ~np.isnan(values)
        weight = None if sample_weight is None else sample_weight[is_number]
        fill = _median(values[is_number], weight) if is_number.any() else 0.0
        columns.append(
            NumericColumn(
                name,
                fill,
                bool(is_number.any() and not is_number.all()),
                _held_by(cells, False),
            )
        )
    schema = Schema(tuple(columns))
    if not schema.features:
        raise ValueError("no column of the table makes a feature: each has one level.")
    name, count = Counter(schema.features).most_common(1)[0]
    if count > 1:
        raise ValueError(
            f"the columns make {count} features of the name {name!r}: rename some."
        )
    return schema


def _median(values: np.ndarray, weight: np.ndarray | None) -> float:
    """Return the median, a weight of two being the same as a value given twice."""
    if weight is None or (weight == weight[0]).all():
        return float(np.median(values))
    # Sorted by both, so that rounding does not depend on the order of the rows.
    order = np.lexsort((weight, values))
    below = np.cumsum(weight[order])
    middle = [
        np.searchsorted(below, 0.5 * below[-1], side) for side in ("left", "right")
    ]
    return float(np.median(values[order[middle]]))


def _held_by(cells: pd.Series, is_category: bool) -> str:
    """Return what cells are: texts, truth values, whole or other numbers.

    Whole numbers that are floats are no whole numbers, but for those that lack some: pandas has no
    others.
    """
    if isinstance(cells.dtype, pd.CategoricalDtype):
        cells = pd.Series(cells.dtype.categories)
    there = cells.dropna()
    if is_float_dtype(cells.dtype):
        is_whole = 0 < len(there) < len(cells) and (there == np.round(there)).all()
        return WHOLE if is_whole else NUMBERS
    return _HELD.get(infer_dtype(there), TEXTS if is_category else NUMBERS)


def _categorical(
    name: str, weights: Mapping[Level, float], holds: str
) -> CategoricalColumn:
    """Return a column of categories and its levels that are features, the missing cells last."""
    texts = sorted(level for level in weights if level is not None)
    other = max(texts, key=weights.__getitem__) if 0 < len(texts) <= 2 else None
    is_gap_level = bool(texts) and None in weights
    levels: list[Level] = [level for level in texts if level != other]
    levels += [None] if is_gap_level else []
    return CategoricalColumn(name, tuple(levels), other, holds)


def levels_of(
    cells: pd.Series, column: CategoricalColumn | None = None
) -> tuple[np.ndarray, list[Level]]:
    """Return the place of each cell's level among those there are, and these.

    Levels are as written, and where a column is given those that it knows as it has them.
    """
    codes, values = pd.factorize(cells)
    if getattr(values.dtype, "categories", values).dtype.kind == "f":
        # One by one, categories of single precision would have further digits.
        values = np.asarray(values)
    read = (lambda text: text) if column is None else reading(column.known)
    # The code of missing cells is -1, the place of the last one.
    found: list[Level] = [read(text_of(value)) for value in values]
    found += [read(None)] if (codes < 0).any() else []
    texts = sorted({level for level in found if level is not None})
    levels: list[Level] = [*texts, *([None] if None in found else [])]
    place = {level: k for k, level in enumerate(levels)}
    return np.array([place[level] for level in found], dtype=np.intp)[codes], levels


def encode(
    columns: Sequence[Column], frame: pd.DataFrame, used: Sequence[str] | None = None
) -> np.ndarray:
    """Return the features that columns make of a table.

    The table has these columns, in any order; others are ignored. Where `used` names some of them,
    the others are taken for missing, whether they are there or not, and a warning tells of cells
    that these do not know. The features are finite numbers, of shape (n_rows, n_features), float64
    and C-contiguous.
    """
    frame = frame.set_axis(frame.columns.map(str), axis=1)
    present = set(frame.columns)
    names = [column.name for column in columns] if used is None else list(used)
    if absent := [name for name in names if name not in present]:
        raise ValueError(
            f"the data lack {len(absent)} of the {len(names)} columns that the model needs: "
            f"{listed([*map(repr, absent)], 10)}."
        )
    repeated = set(frame.columns[frame.columns.duplicated()])
    if twice := next((name for name in names if name in repeated), None):
        raise ValueError(f"the data have the column {twice!r} more than once.")
    frame = frame[names]
    if used is None:
        return encode_in_order(columns, frame)
    frame = frame.reindex(columns=[column.name for column in columns])
    return encode_in_order(columns, frame, asked=used)


def encode_in_order(
    columns: Sequence[Column], frame: pd.DataFrame, asked: Collection[str] = ()
) -> np.ndarray:
    """Return the features that columns make of a table of just these, in their order.

    Of cells that the columns named by `asked` do not know a warning tells.
    """
    parts: list[np.ndarray] = []
    filled, unknown = [], []
    at = 0
    for is_number, group in groupby(
        columns, lambda column: isinstance(column, NumericColumn)
    ):
        run: list[Any] = list(group)
        cells = frame.iloc[:, at : at + len(run)]
        at += len(run)
        if is_number:
            numbers = numbers_in(cells, [column.holds for column in run])
            missing = np.isnan(numbers)
            if missing.any():
                numbers = np.where(missing, [column.fill for column in run], numbers)
                filled += [
                    f"{column.name!r} ({column.fill:g})"
                    for column, some in zip(run, missing.any(axis=0), strict=True)
                    if some and not column.indicator and column.name in asked
                ]
            if indicated := [j for j, column in enumerate(run) if column.indicator]:
                behind = np.add(indicated, 1)
                numbers = np.insert(numbers, behind, missing[:, indicated], axis=1)
            parts.append(Schema(tuple(run)).with_bends(numbers))
            continue
        for j, column in enumerate(run):
            places, levels = levels_of(cells.iloc[:, j], column)
            is_level = [[level == shown for shown in column.levels] for level in levels]
            parts.append(
                np.reshape(is_level, (len(levels), len(column.levels)))[places]
            )
            if column.name in asked and (
                said := _unknown_levels(column, places, levels)
            ):
                unknown.append(said)
    _warn_of_cells(
        "missing values in columns that had none in fit; the median of the training rows stands "
        "for them",
        filled,
    )
    _warn_of_cells(
        "levels that fit did not see, which count as none of its levels", unknown
    )
    features = parts[0] if len(parts) == 1 else np.hstack(parts)
    return np.ascontiguousarray(features, dtype=np.float64)


def _unknown_levels(
    column: CategoricalColumn, places: np.ndarray, levels: Sequence[Level]
) -> str:
    """Return which levels of some cells a column does not know, and how many cells they have."""
    counts = np.bincount(places, minlength=len(levels)).tolist()
    pairs = Counter(dict(zip(levels, counts, strict=True))).most_common()
    strange = [(level, n) for level, n in pairs if level not in column.known]
    if not strange:
        return ""
    shown = listed([f"{_quoted(level)} in {n}" for level, n in strange], _SHOWN_LEVELS)
    of_rows = f"{shown} of {len(places)} rows"
    if sum(n for _, n in strange) < len(places):
        return f"{column.name!r} has {of_rows}"
    known = listed([*map(_quoted, column.known)], _SHOWN_LEVELS)
    return f"{column.name!r} has a level of the fit ({known}) in NO row, but {of_rows}"


def _quoted(level: Level) -> str:
    """Return a level as messages show it."""
    return MISSING if level is None else quoted(level)


def _warn_of_cells(said: str, columns: list[str]) -> None:
    """Warn of columns with cells of a kind that they had not when they were fitted."""
    if columns:
        shown = listed(columns, SHOWN_NAMES)
        warnings.warn(f"X has {said}: {shown}.", stacklevel=level_of_user())


def numbers_in(block: pd.DataFrame, holds: Sequence[str]) -> np.ndarray:
    """Return columns of numbers, NaN where they are missing, and refuse all else, and infinity.

    Where `holds` says that a column holds truth values, words for these are numbers.
    """
    if all(
        isinstance(dtype, np.dtype) and dtype.kind in "biuf" for dtype in block.dtypes
    ):
        # The user's own array is not copied.
        numbers = block.to_numpy(dtype=np.float64)
    else:
        numbers = np.column_stack(
            [numbers_of(block.iloc[:, j], of) for j, of in enumerate(holds)]
        )
    bad = ~np.isfinite(numbers)
    if bad.any():
        bad &= block.notna().to_numpy()
    if bad.any():
        column = int(bad.any(axis=0).argmax())
        row = int(bad[:, column].argmax())
        cell = block.iloc[row, column]
        wrong = _allowed_beside(cell, numbers[row, column])
        labels = block.index  # those of the whole table, of which this may be a part
        is_whole = labels.equals(pd.RangeIndex(len(block)))
        name = "data row" if is_whole else labels.name or "the row"
        raise ValueError(
            f"column {str(block.columns[column])!r}: {quoted(cell)} in {name} "
            f"{row + 1 if is_whole else labels[row]} is {wrong}"
        )
    return numbers


def _allowed_beside(cell: Any, number: float) -> str:
    """Return what a cell is that is no finite number, and what stands in its place."""
    if isinstance(cell, date | timedelta | pd.Period):
        return (
            "no number: make numbers of dates and times, such as days since the first."
        )
    if isinstance(cell, complex | np.complexfloating):
        return "no real number."
    if not np.isnan(number):
        return "not a finite number; a missing value is an empty cell, or NaN."
    return (
        "no number; a missing value is an empty cell, or NaN. A column of categories has the "
        "dtype 'category', or text in all its cells, or categorical_features has its name or, "
        "for rows without names, its position."
    )
