"""The columns of a table as numbers: a fitted transformer's knowledge, and its re-application.

In: a fitted `sklearn.compose.ColumnTransformer` of imputers and one-hot encoders. Out: plain
descriptions of its columns, which make the same numbers of a table as the transformer does, without
scikit-learn: a model file outlives the version that a pickle is bound to.

Categories are compared by how they are written: a column of codes reads as text where one row has a
letter in it, and as numbers where none has.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from pandas.api.types import is_bool_dtype, is_numeric_dtype
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import OneHotEncoder

__all__ = [
    "CategoricalColumn",
    "Column",
    "NumericColumn",
    "describe_columns",
    "encode",
    "numbers_of",
    "quoted",
    "text_of",
]


_SHOWN = 100


def text_of(value: Any) -> str:
    """Return a value as a table shows it: a whole number without a decimal point."""
    if isinstance(value, float | np.floating) and float(value).is_integer():
        value = int(value)
    return str(value)


def quoted(value: Any) -> str:
    """Return a cell as messages show it: text in quotation marks, a number without.

    Of a long one the beginning.
    """
    shown = repr(value) if isinstance(value, str) else text_of(value)
    return shown if len(shown) <= _SHOWN else f"{shown[:_SHOWN]}..."


def numbers_of(series: pd.Series) -> pd.Series:
    """Return the numbers that cells are or spell, NaN for all else.

    Parameters
    ----------
    series : Series of shape (n_rows,)
        Numbers and texts.

    Returns
    -------
    Series of shape (n_rows,)
        Numbers; a whole number beyond the range of floats is infinite.
    """
    numbers = pd.to_numeric(series, errors="coerce")
    # Whole numbers of more than 64 bits stay Python's own.
    return numbers.map(_as_float) if numbers.dtype == object else numbers


def _as_float(value: Any) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


@dataclass(frozen=True)
class NumericColumn:
    """A column of numbers that is one feature.

    Attributes
    ----------
    name : str
        Name of the column.
    mean : float
        Stands for a missing value.
    """

    name: str
    mean: float

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Names of the features that the column makes."""
        return (self.name,)

    def describe(self) -> dict[str, Any]:
        """Return the column as plain data."""
        return {"name": self.name, "kind": "numeric", "mean": self.mean}

    def encode(self, series: pd.Series) -> np.ndarray:
        """Return the feature of a column's cells, of shape (n_rows, 1).

        Parameters
        ----------
        series : Series of shape (n_rows,)
            Numbers; missing values become the mean.

        Returns
        -------
        ndarray of shape (n_rows, 1), float64
            Finite numbers.

        Raises
        ------
        ValueError
            If a cell is text or infinite.
        """
        if is_numeric_dtype(series) or is_bool_dtype(series):
            numbers = series.to_numpy(dtype=np.float64, na_value=np.nan)
        else:
            series = series.astype(object)
            converted = numbers_of(series)
            _refuse(series, converted.isna() & series.notna(), self.name, "no number")
            numbers = converted.to_numpy(dtype=np.float64, na_value=np.nan)
        _refuse(series, np.isinf(numbers), self.name, "not a finite number")
        return np.where(np.isnan(numbers), self.mean, numbers)[:, np.newaxis]


@dataclass(frozen=True)
class CategoricalColumn:
    """A column of words that is one feature of 0 and 1 for each category.

    Attributes
    ----------
    name : str
        Name of the column.
    fill : str
        The category that stands for a missing value.
    categories : tuple of str
        The known categories, as they are written. A cell of another one makes zeros only.
    """

    name: str
    fill: str
    categories: tuple[str, ...]

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Names of the features that the column makes."""
        return tuple(f"{self.name}={category}" for category in self.categories)

    def describe(self) -> dict[str, Any]:
        """Return the column as plain data."""
        return {
            "name": self.name,
            "kind": "categorical",
            "fill": self.fill,
            "categories": list(self.categories),
        }

    def encode(self, series: pd.Series) -> np.ndarray:
        """Return the features of a column's cells, of shape (n_rows, n_categories).

        Parameters
        ----------
        series : Series of shape (n_rows,)
            Words, numbers or truth values.

        Returns
        -------
        ndarray of shape (n_rows, n_categories), float64
            At most one 1 in a row.
        """
        values = series.to_numpy(dtype=object)
        missing = series.isna().to_numpy()
        texts = [
            self.fill if gone else text_of(value)
            for value, gone in zip(values, missing, strict=True)
        ]
        codes = pd.Index(self.categories, dtype=object).get_indexer(np.array(texts, dtype=object))
        features = np.zeros((len(texts), len(self.categories)))
        known = np.flatnonzero(codes >= 0)
        features[known, codes[known]] = 1.0
        return features


Column: TypeAlias = NumericColumn | CategoricalColumn


def _refuse(series: pd.Series, bad: Any, name: str, what: str) -> None:
    """Raise for the first bad cell of a column, counting data rows from 1."""
    places = np.flatnonzero(np.asarray(bad))
    if places.size:
        cell = quoted(series.iloc[places[0]])
        raise ValueError(
            f"column {name!r}: {cell} in data row {places[0] + 1} is {what}; a missing value is an "
            "empty cell."
        )


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
    counts = frame.columns.value_counts()
    absent = [column.name for column in columns if column.name not in counts.index]
    if absent:
        names = ", ".join(map(repr, absent[:10])) + (", ..." if len(absent) > 10 else "")
        raise ValueError(
            f"the data lack {len(absent)} of the {len(columns)} columns that the model needs: "
            f"{names}."
        )
    repeated = [column.name for column in columns if counts[column.name] > 1]
    if repeated:
        raise ValueError(f"the data have the column {repeated[0]!r} more than once.")
    return np.ascontiguousarray(
        np.hstack([column.encode(frame[column.name]) for column in columns])
    )


def describe_columns(transformer: ColumnTransformer) -> tuple[Column, ...]:
    """Return the columns of a fitted transformer, in the order of its output.

    Parameters
    ----------
    transformer : sklearn.compose.ColumnTransformer
        Fitted on a DataFrame. Each of its steps is a `SimpleImputer` for numbers, or a pipeline of
        a `SimpleImputer` and a `OneHotEncoder` that ignores unknown categories.

    Returns
    -------
    tuple of NumericColumn or CategoricalColumn
        `encode` makes of them what the transformer makes.

    Raises
    ------
    ValueError
        If a step is of another kind.
    """
    columns: list[Column] = []
    for name, fitted, names in transformer.transformers_:
        if fitted == "drop" or len(names) == 0:
            continue
        steps = [s for _, s in fitted.steps] if isinstance(fitted, Pipeline) else [fitted]
        kinds = [type(step) for step in steps]
        if kinds not in ([SimpleImputer], [SimpleImputer, OneHotEncoder]) or steps[0].add_indicator:
            raise ValueError(
                f"step {name!r} is made of {', '.join(kind.__name__ for kind in kinds)}: allowed "
                "are a SimpleImputer without indicator, and a OneHotEncoder after it."
            )
        fills = dict(zip(map(str, names), steps[0].statistics_, strict=True))
        # The imputer leaves out wholly missing columns unless it is told to keep them.
        kept = [n for n, fill in fills.items() if steps[0].keep_empty_features or fill == fill]
        if len(steps) == 1:
            columns += [NumericColumn(n, float(fills[n])) for n in kept]
        else:
            columns += _one_hot_columns(steps[1], kept, fills)
    return tuple(columns)


def _one_hot_columns(
    encoder: OneHotEncoder, names: list[str], fills: dict[str, Any]
) -> list[CategoricalColumn]:
    """Return the columns of a fitted encoder; a category that it drops makes no feature."""
    infrequent = getattr(encoder, "_infrequent_enabled", False)
    if encoder.handle_unknown != "ignore" or infrequent:
        raise ValueError(
            f"handle_unknown={encoder.handle_unknown!r}: allowed is a OneHotEncoder with 'ignore' "
            "and without infrequent categories."
        )
    dropped = encoder.drop_idx_ if encoder.drop_idx_ is not None else [None] * len(names)
    columns = []
    for name, categories, drop in zip(names, encoder.categories_, dropped, strict=True):
        if any(value is None for value in categories):
            raise ValueError(f"column {name!r} has None as a category: a missing value is NaN.")
        texts = tuple(text_of(value) for at, value in enumerate(categories) if at != drop)
        if len(set(texts)) < len(texts):
            raise ValueError(f"column {name!r} has categories that are written alike.")
        if texts:
            columns.append(CategoricalColumn(name, text_of(fills[name]), texts))
    return columns
