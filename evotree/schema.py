"""What the columns of a table are, and the features that they make.

A column of numbers is one feature, its missing cells being the median; where some cells are missing
when it is fitted, a last feature of 0 and 1 says which. Between these may be its *bends*, by which
its effect may be another one above or below a knot, or that of its logarithm: each is a feature
that follows from the number alone. Of a column of categories every level is
a feature of 0 and 1, and so are its missing cells, where there are some; two levels make one
feature. The level of missing cells is None.

How cells are read is the business of `evotree.tables.columns`.
"""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from numbers import Real
from typing import Any, Self, TypeAlias

import numpy as np

from evotree.words import did_you_mean

# A level of a column of categories as it is written; None where it is missing.
Level: TypeAlias = str | None
MISSING = "missing"  # how the level of missing cells is shown
LARGEST = 1e100  # magnitude whose square, and the sum of some squares, is finite
SHOWN_CHARACTERS = 100
"""Characters of a cell in messages."""
SHOWN_NAMES = 8
"""Names of columns in messages."""

ABOVE, BELOW, LOG = "above", "below", "log"
"""Kinds of bends."""

TEXTS, NUMBERS, WHOLE, TRUTH = "texts", "numbers", "whole numbers", "truth values"
"""What the cells of a column may be."""


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
        return tuple(map(_shown_level, self.levels))

    @property
    def known(self) -> tuple[Level, ...]:
        """The levels of the fit, whether they are features or not."""
        return self.levels if self.other is None else (*self.levels, self.other)


Column: TypeAlias = NumericColumn | CategoricalColumn


def _shown_level(level: Level) -> str:
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
    return shown if len(shown) <= SHOWN_CHARACTERS else f"{shown[:SHOWN_CHARACTERS]}..."


def is_number(value: Any) -> bool:
    """Return whether a value is a finite number, of a magnitude up to `LARGEST`."""
    try:
        return isinstance(value, Real) and abs(float(value)) <= LARGEST
    except OverflowError:  # of whole numbers beyond all others
        return False


@dataclass(frozen=True)
class Schema(Sequence[Column]):
    """The columns of a table, in order, and the features that they make.

    Attributes
    ----------
    columns : tuple of NumericColumn or CategoricalColumn
        The columns; a schema is the sequence of them.
    is_table : bool
        Whether the columns are those of a table; else each stands for a feature of which only
        the name is known.
    """

    columns: tuple[Column, ...]
    is_table: bool = True

    @classmethod
    def of_features(cls, names: Iterable[Any]) -> Self:
        """Return the schema of features of which only the names are known."""
        columns = tuple(NumericColumn(str(name), 0.0) for name in names)
        return cls(columns, is_table=False)

    @classmethod
    def from_data(cls, columns: Any) -> Self:
        """Return the schema of plain data, as `dataclasses.asdict` makes it of columns."""
        return cls(tuple(map(_column_from, columns)))

    def __len__(self) -> int:
        return len(self.columns)

    def __iter__(self) -> Iterator[Column]:
        return iter(self.columns)

    def __getitem__(self, index: Any) -> Any:
        return self.columns[index]

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of the columns."""
        return tuple(column.name for column in self.columns)

    @cached_property
    def levels(self) -> tuple[str | Bend | None, ...]:
        """What each feature asks for: a level as it is shown, a bend, or None for the number."""
        return tuple(level for column in self for level in column.feature_levels)

    @cached_property
    def column_of(self) -> np.ndarray:
        """Position of the column that each feature is made of, of shape (n_features,), rising."""
        n_made = [len(column.feature_levels) for column in self]
        return np.repeat(np.arange(len(n_made)), n_made)

    @cached_property
    def features(self) -> tuple[str, ...]:
        """Names of the features, in order."""
        pairs = [
            (self.names[c], level)
            for c, level in zip(self.column_of.tolist(), self.levels, strict=True)
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

    @cached_property
    def answers(self) -> dict[int, tuple[str, str]]:
        """What each feature of 0 and 1 says by being 1, and by being 0, by its position."""
        return {
            j: (name, f"{name.removesuffix(f' is {level}')} is not {level}")
            for j, (name, level) in enumerate(
                zip(self.features, self.levels, strict=True)
            )
            if isinstance(level, str)
        }

    @cached_property
    def others(self) -> dict[str, int]:
        """What the one feature of a category of two says by being 0, as of the other level."""
        of = {j: self.columns[self.column_of[j]] for j in self.answers}
        return {
            f"{self.features[j].removesuffix(f' is {levels[0]}')} is {column.other}": j
            for j, column in of.items()
            if len(levels := column.feature_levels) == 1 and column.other is not None
        }

    @cached_property
    def bends(self) -> dict[int, tuple[int, Bend]]:
        """The feature that each bend follows from, and the bend, by its position."""
        first = np.searchsorted(self.column_of, self.column_of).tolist()
        return {
            j: (first[j], level)
            for j, level in enumerate(self.levels)
            if isinstance(level, Bend)
        }

    @cached_property
    def read_by_code(self) -> list[int]:
        """Positions of the features that are no bends: what exported code reads."""
        return [j for j in range(len(self.levels)) if j not in self.bends]

    @property
    def shapes(self) -> dict[str, list[tuple[str, float]]]:
        """The bends of the columns as `with_shapes` takes them."""
        return {
            column.name: [(bend.kind, bend.knot) for bend in column.bends]
            for column in self
            if isinstance(column, NumericColumn) and column.bends
        }

    def with_shapes(self, shapes: Mapping[Any, Any]) -> Self:
        """Return columns with the bends that users ask for: kinds and knots, by names of columns.

        Raises
        ------
        ValueError
            If a name is that of no column of numbers, or its bends are none.
        """
        made = list(self.columns)
        for name, bends in shapes.items():
            (c,) = columns_asked([name], self.names, "shapes")
            column = made[c]
            read = _bends_of(bends)
            if (
                not read
                or not isinstance(column, NumericColumn)
                or column is not self.columns[c]
            ):
                raise ValueError(
                    f"shapes[{name!r}]={bends!r}: allowed, once of a column of numbers, are pairs "
                    f"such as ({ABOVE!r}, 52.0), ({BELOW!r}, 52.0), and ({LOG!r}, 1.0), of the "
                    "least number whose logarithm is taken, above 0."
                )
            made[c] = replace(column, bends=read)
        return replace(self, columns=tuple(made))

    def without_bends(self, features: np.ndarray) -> np.ndarray:
        """Return the features that exported code reads, `features` itself where none bends."""
        return features[:, self.read_by_code] if self.bends else features

    def with_bends(self, rows: np.ndarray) -> np.ndarray:
        """Return all features of rows that lack the bends.

        Parameters
        ----------
        rows : ndarray of shape (n_rows, n_features - n_bends)
            The features that are no bends, as exported code reads them.

        Returns
        -------
        ndarray of shape (n_rows, n_features), float64
            `rows` itself where no column bends.
        """
        if not self.bends:
            return rows
        features = np.empty((len(rows), len(self.levels)))
        features[:, self.read_by_code] = rows
        for j, (base, bend) in self.bends.items():
            features[:, j] = bend.of(features[:, base])
        return features


def _feature_name(column: str, level: str | Bend | None) -> str:
    """Return the name of a feature that is a column, or a bend, or asks for a level of one."""
    if isinstance(level, Bend):
        return level.named(column)
    return column if level is None else f"{column} is {level}"


def _column_from(data: Mapping[str, Any]) -> Column:
    """Return the column of plain data."""
    if "levels" in data:
        return CategoricalColumn(**{**data, "levels": tuple(data["levels"])})
    bends = tuple(Bend(**bend) for bend in data["bends"])
    return NumericColumn(**{**data, "bends": bends})


def _bends_of(pairs: Any) -> tuple[Bend, ...]:
    """Return bends by their kinds and knots; none if some are wrong, or there twice."""
    try:
        made = [(kind, knot) for kind, knot in pairs]
    except (TypeError, ValueError):
        return ()
    are_bends = all(
        kind in (ABOVE, BELOW, LOG)
        and is_number(knot)
        and not isinstance(knot, bool)
        and (kind != LOG or knot > 0.0)
        for kind, knot in made
    )
    bends = tuple(Bend(kind, float(knot)) for kind, knot in made if are_bends)
    # A column has one logarithm.
    return bends if len({one.named("") for one in bends}) == len(bends) else ()


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
                f"{parameter} names {column!r}{did_you_mean(column, names)}: allowed are positions "
                f"from 0 to {len(names) - 1}, and names of columns: "
                f"{', '.join(map(repr, names[:SHOWN_NAMES]))}."
            )
    return chosen
