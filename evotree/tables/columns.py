"""How the columns of a table become features, and the same columns of a later table the same ones.

A column of numbers is one feature, its missing cells being the median; where some cells are missing
when it is fitted, a last feature of 0 and 1 says which. Between these may be its *bends*, by which
its effect may be another one above or below a knot, or that of its logarithm: each is a feature
that follows from the number alone. Of a column of categories every level is
a feature of 0 and 1, and so are its missing cells, where there are some; two levels make one
feature. The level of missing cells is None.

A level is kept as it is written. A cell of a later table is the level that is written alike, or
else the only one of the same value: 1, 1.0, "1" and "01" are one number, True and "true" one truth
value, and a date is the same with a time of midnight. So what a column is does not depend on who
reads the table: codes are numbers to pandas where no row has a letter in it. Cells that a column
does not know are told by a warning.
"""

import math
import re
import warnings
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from functools import partial
from itertools import groupby
from numbers import Integral, Real
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from pandas.api.types import is_bool_dtype, is_numeric_dtype, is_object_dtype

from evotree.tables.frames import level_of_user

# A level of a column of categories as it is written; None where it is missing.
Level: TypeAlias = str | None
MISSING = "missing"  # how the level of missing cells is shown
LARGEST = 1e100  # magnitude whose square, and the sum of some squares, is finite
# How much messages show: characters of a cell, names of columns, levels of a column.
_SHOWN_CHARACTERS = 100
_SHOWN_NAMES = 8
_SHOWN_LEVELS = 3

ABOVE, BELOW, LOG = "above", "below", "log"
"""Kinds of bends."""

TEXTS, NUMBERS, WHOLE, TRUTH = "texts", "numbers", "whole numbers", "truth values"
"""What the cells of a column may be."""

_TRUTH_VALUES = {"true": 1, "false": 0}
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


@dataclass(frozen=True)
class Bend:
    """A feature that follows from the number of a column, and rises or falls with it.

    By its kind it is ``max(x - knot, 0)``, ``max(knot - x, 0)``, or ``log(max(x, knot))``, where
    the knot is above 0.
    """

    kind: str
    knot: float

    @property
    def sign(self) -> int:
        """1 where it rises with the number, -1 where it falls."""
        return -1 if self.kind == BELOW else 1

    def of(self, numbers: np.ndarray) -> np.ndarray:
        """Return the feature that numbers make."""
        if self.kind == LOG:
            return np.log(np.maximum(numbers, self.knot))
        return np.maximum(self.sign * (numbers - self.knot), 0.0)

    def number(self, feature: float) -> float:
        """Return the number that makes a feature, of hinges one above 0."""
        is_log = self.kind == LOG
        return math.exp(feature) if is_log else self.knot + self.sign * feature

    def named(self, column: str) -> str:
        """Return the name of the feature."""
        if self.kind == LOG:
            return f"log({column})"
        return f"{column} {self.kind} {text_of(self.knot)}"


@dataclass(frozen=True)
class NumericColumn:
    """A column of numbers: a feature, its bends, and one where it was fitted to missing cells."""

    name: str
    fill: float  # stands for a missing number
    # Whether a last feature is 1 in the rows whose cell is missing.
    indicator: bool = False
    holds: str = NUMBERS
    bends: tuple[Bend, ...] = ()

    @property
    def feature_levels(self) -> tuple[str | Bend | None, ...]:
        """The level or bend that each feature asks for; None for the number."""
        return (None, *self.bends, *([MISSING] if self.indicator else []))


@dataclass(frozen=True)
class CategoricalColumn:
    """A column of levels, some of which are features that are 1 in the rows of that level.

    Any other cell makes zeros only: that of an unknown level, and that of `other`.
    """

    name: str
    levels: tuple[Level, ...]  # that are features, None for missing cells
    # The most frequent one of one or two, which makes no feature.
    other: str | None = None
    holds: str = TEXTS

    @property
    def feature_levels(self) -> tuple[str | Bend | None, ...]:
        """The level that each feature asks for, as names show it."""
        return tuple(map(_shown, self.levels))

    @property
    def known(self) -> tuple[Level, ...]:
        """The levels of the fit, whether they are features or not."""
        return self.levels if self.other is None else (*self.levels, self.other)


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


def value_of(text: Level) -> Hashable:
    """Return what a cell says, however it is written; None for a missing one."""
    if text is None or (word := text.strip().casefold()) in _GAPS:
        return None
    if word in _TRUTH_VALUES:
        return _TRUTH_VALUES[word]
    if _NUMBER.fullmatch(word):
        # Floats do not tell all whole numbers apart.
        is_whole = word.lstrip("+-").isdecimal() and len(word) < _SHOWN_CHARACTERS
        return int(word) if is_whole else float(word)
    if _DATE.fullmatch(word):
        try:
            return datetime.fromisoformat(word)
        except ValueError:
            return text
    return text


def _single_value_of(text: Level) -> Hashable:
    """Return what a cell says where numbers have single precision."""
    value = value_of(text)
    if not isinstance(value, float):
        return value
    with np.errstate(over="ignore"):
        return float(np.float32(value))


def reading(levels: Sequence[Level]) -> Callable[[Any], Any]:
    """Return what says which level a text is, by writing or else by value; itself for none."""
    written = set(levels)
    ways: tuple[Callable[[Level], Hashable], ...] = (value_of, _single_value_of)
    tables = []
    for way in ways:
        counts = Counter(map(way, levels))
        tables.append({way(one): one for one in levels if counts[way(one)] == 1})

    def read(text: Any) -> Any:
        if text not in written:
            for way, table in zip(ways, tables, strict=True):
                if (value := way(text)) in table:
                    return table[value]
        return text

    return read


def quoted(value: Any) -> str:
    """Return a cell as messages show it: text in quotation marks, of a long one the beginning."""
    shown = repr(value) if isinstance(value, str) else text_of(value)
    return (
        shown if len(shown) <= _SHOWN_CHARACTERS else f"{shown[:_SHOWN_CHARACTERS]}..."
    )


def is_number(value: Any) -> bool:
    """Return whether a value is a finite number, of a magnitude up to `LARGEST`."""
    try:
        return isinstance(value, Real) and abs(float(value)) <= LARGEST
    except OverflowError:  # of whole numbers beyond all others
        return False


def numbers_of(series: pd.Series, holds: str = NUMBERS) -> pd.Series:
    """Return the numbers that cells are or spell as float64, NaN for all else.

    Words for truth values are numbers where the column holds these.
    """
    if is_numeric_dtype(series.dtype) and series.dtype.kind != "c":
        numbers = series.to_numpy(dtype=np.float64, na_value=np.nan)
        return pd.Series(numbers, series.index, name=series.name)
    spell = partial(_spelled, truth=_TRUTH_VALUES if holds == TRUTH else {})
    # Whole numbers of more than 64 bits are beyond pandas as numbers, but not as text.
    texts = series.astype(object).map(spell, na_action="ignore")
    texts = texts.astype(object).where(texts.notna(), np.nan)
    return numbers_spelled(texts).astype(np.float64)


def numbers_spelled(texts: pd.Series) -> pd.Series:
    """Return the numbers that texts spell, NaN for other texts."""
    numbers = pd.to_numeric(texts, errors="coerce")
    if numbers.dtype.kind == "f":  # pandas before version 3 misses the last bit of some
        spelled = numbers.notna()
        numbers[spelled] = texts[spelled].astype(np.float64)
    return numbers


def _spelled(value: Any, truth: Mapping[str, int]) -> str:
    """Return how the number is written that a cell is."""
    if isinstance(value, bool | np.bool_):
        return str(int(value))
    if isinstance(value, date | timedelta | pd.Period):
        return "nan"  # a period of a year is written as a number
    text = str(value)
    return str(truth.get(text.strip().casefold(), text))


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


def _feature_name(column: str, level: str | Bend | None) -> str:
    """Return the name of a feature that is a column, or a bend, or asks for a level of one."""
    if isinstance(level, Bend):
        return level.named(column)
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
        if isinstance(level, str)
    }


def bends_of(columns: Sequence[Column]) -> dict[int, tuple[int, Bend]]:
    """Return the feature that each bend follows from, and the bend, by its position."""
    found: dict[int, tuple[int, Bend]] = {}
    first = 0
    for column in columns:
        for at, level in enumerate(column.feature_levels):
            if isinstance(level, Bend):
                found[first + at] = first, level
        first += len(column.feature_levels)
    return found


def with_bends(columns: Sequence[Column], rows: np.ndarray) -> np.ndarray:
    """Return the features of rows whose bends are missing, with the bends that columns make."""
    bends = bends_of(columns)
    n_features = rows.shape[1] + len(bends)
    features = np.empty((len(rows), n_features))
    features[:, [j for j in range(n_features) if j not in bends]] = rows
    for j, (base, bend) in bends.items():
        features[:, j] = bend.of(features[:, base])
    return features


def bent_as_asked(columns: Sequence[Column], shapes: Any) -> tuple[Column, ...]:
    """Return columns with the bends that users ask for: kinds and knots, by names of columns."""
    names = [column.name for column in columns]
    made = list(columns)
    for name, bends in shapes.items():
        (c,) = columns_asked([name], names, "shapes")
        column = made[c]
        try:
            data = [{"kind": kind, "knot": knot} for kind, knot in bends]
            read = _bends_from(data, names[c])
        except (TypeError, ValueError):
            read = ()
        if not read or not isinstance(column, NumericColumn):
            raise ValueError(
                f"shapes[{name!r}]={bends!r}: allowed, of a column of numbers, are pairs such as "
                f"({ABOVE!r}, 52.0), ({BELOW!r}, 52.0), and ({LOG!r}, 1.0), of the least number "
                "whose logarithm is taken, above 0."
            )
        made[c] = replace(column, bends=read)
    return tuple(made)


def shapes_of(columns: Sequence[Column]) -> dict[str, list[tuple[str, float]]]:
    """Return the bends of columns as `bent_as_asked` takes them."""
    return {
        column.name: [(bend.kind, bend.knot) for bend in column.bends]
        for column in columns
        if isinstance(column, NumericColumn) and column.bends
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
            n_others = len(column.bends) + 1
            places += [len(places) + n_others] * n_others + [-1]
        else:
            places += [-1] * len(column.feature_levels)
    return places


def columns_from(columns: Any) -> tuple[Column, ...]:
    """Return columns of plain data."""
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
        holds = column.get("holds", TEXTS if "levels" in column else NUMBERS)
        if holds not in (TEXTS, NUMBERS, WHOLE, TRUTH):
            raise ValueError(
                f"column {name!r} holds {quoted(holds)}: allowed are {TEXTS!r}, {NUMBERS!r}, "
                f"{WHOLE!r} and {TRUTH!r}"
            )
        if (
            type(fill) in (int, float)
            and math.isfinite(fill)
            and isinstance(indicator, bool)
        ):
            bends = _bends_from(column.get("bends", []), name)
            made.append(NumericColumn(name, float(fill), indicator, holds, bends))
        elif (
            isinstance(levels, list)
            and all(isinstance(level, str | None) for level in [*levels, other])
            and len({*levels, other})
            == len(levels) + (other is not None or None not in levels)
        ):
            made.append(CategoricalColumn(name, tuple(levels), other, holds))
        else:
            raise ValueError(
                f"column {name!r} has neither a finite fill and an indicator, true or false, nor a "
                "list of levels, distinct texts or null, of which the other one is none"
            )
    if len({column.name for column in made}) < len(made):
        raise ValueError("two columns have the same name")
    return tuple(made)


def _bends_from(bends: Any, name: str) -> tuple[Bend, ...]:
    """Return the bends of a column of plain data."""
    made: list[Bend] = []
    for bend in bends if isinstance(bends, list) else [None]:
        data: Any = bend if isinstance(bend, dict) else {}
        kind, knot = data.get("kind"), data.get("knot")
        is_bend = kind in (ABOVE, BELOW, LOG) and type(knot) in (int, float)
        if is_bend and is_number(knot) and (kind != LOG or knot > 0.0):
            made.append(Bend(kind, float(knot)))
    if not isinstance(bends, list) or len({one.named("") for one in made}) < len(bends):
        raise ValueError(
            f"column {name!r} has the bends {quoted(bends)}: allowed is a list of objects that "
            f"differ, with a kind, {ABOVE!r}, {BELOW!r}, or once {LOG!r}, and a knot, a number, of "
            f"{LOG!r} above 0"
        )
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


def _held_by(cells: pd.Series, is_category: bool) -> str:
    """Return what cells are: texts, truth values, whole or other numbers.

    Whole numbers that are floats are no whole numbers, but for those that lack some: pandas has no
    others.
    """
    dtype = cells.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        cells, dtype = pd.Series(dtype.categories), dtype.categories.dtype
    if is_bool_dtype(dtype):
        return TRUTH
    if is_numeric_dtype(dtype) and dtype.kind in "iu":
        return WHOLE
    there = cells.dropna()
    if is_numeric_dtype(dtype):
        is_whole = 0 < len(there) < len(cells) and (there == np.round(there)).all()
        return WHOLE if is_whole else NUMBERS
    kinds = set(map(type, there)) if is_object_dtype(dtype) else {str}
    for holds, of in ((TRUTH, bool | np.bool_), (WHOLE, Integral), (NUMBERS, Real)):
        if kinds and all(issubclass(kind, of) for kind in kinds):
            return holds
    return TEXTS if is_category else NUMBERS


def _categorical(
    name: str, weights: Mapping[Level, float], holds: str
) -> CategoricalColumn:
    """Return a column of categories and its levels that are features, the missing cells last."""
    texts = sorted(level for level in weights if level is not None)
    other = max(texts, key=weights.__getitem__) if 0 < len(texts) <= 2 else None
    levels: list[Level] = [level for level in texts if level != other]
    if texts and None in weights:
        levels.append(None)
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
            f"{', '.join(map(repr, absent[:10]))}{', ...' if len(absent) > 10 else ''}."
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
            numbers = _numbers(cells, [column.holds for column in run])
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
            parts.append(with_bends(run, numbers) if bends_of(run) else numbers)
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
    _warn_of_cells(filled, unknown)
    features = parts[0] if len(parts) == 1 else np.hstack(parts)
    return np.ascontiguousarray(features, dtype=np.float64)


def _unknown_levels(
    column: CategoricalColumn, places: np.ndarray, levels: Sequence[Level]
) -> str:
    """Return which levels of some cells a column does not know, and how many cells they have."""
    counts = np.bincount(places, minlength=len(levels)).tolist()
    strange = [
        (n, MISSING if level is None else quoted(level))
        for n, level in zip(counts, levels, strict=True)
        if level not in column.known
    ]
    if not strange:
        return ""
    strange.sort(key=lambda pair: -pair[0])
    of_rows = (
        f"{_listed([f'{level} in {n}' for n, level in strange])} of {len(places)} rows"
    )
    if sum(n for n, _ in strange) < len(places):
        return f"{column.name!r} has {of_rows}"
    known = _listed([MISSING if one is None else quoted(one) for one in column.known])
    return f"{column.name!r} has a level of the fit ({known}) in NO row, but {of_rows}"


def _listed(names: Sequence[str], most: int = _SHOWN_LEVELS) -> str:
    """Return the first names of a list."""
    return ", ".join([*names[:most], *(["..."] if len(names) > most else [])])


def _warn_of_cells(filled: list[str], unknown: list[str]) -> None:
    """Warn of columns with cells of a kind that they had not when they were fitted."""
    for said, named in (
        (
            "X has missing values in columns that had none in fit; the median of the training "
            "rows stands for them",
            filled,
        ),
        (
            "X has levels that fit did not see, which count as none of its levels",
            unknown,
        ),
    ):
        if named:
            shown = _listed(named, _SHOWN_NAMES)
            warnings.warn(f"{said}: {shown}.", stacklevel=level_of_user())


def _numbers(block: pd.DataFrame, holds: Sequence[str] | None = None) -> np.ndarray:
    """Return columns of numbers, NaN where they are missing, and refuse text and infinity.

    Where `holds` says that a column holds truth values, words for these are numbers.
    """
    if block.shape[1] == 0:
        return np.empty(block.shape)
    if all(
        isinstance(dtype, np.dtype) and dtype.kind in "biuf" for dtype in block.dtypes
    ):
        # The user's own array is not copied.
        numbers = block.to_numpy(dtype=np.float64)
    else:
        held = [NUMBERS] * block.shape[1] if holds is None else holds
        numbers = np.column_stack(
            [numbers_of(block.iloc[:, j], of) for j, of in enumerate(held)]
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
