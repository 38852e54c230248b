"""What comes from outside becomes rows of numbers: checks, missing values and categories.

In: whatever users hand to ``fit`` and ``predict``: arrays, lists, frames of pandas and polars. Out:
encoded rows, which are finite; the engine and its kernels see no others. How columns become
features is the business of `evotree.tables.columns`.
"""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import copy
from dataclasses import KW_ONLY, dataclass, replace
from datetime import date, timedelta
from functools import wraps
from typing import Annotated, Any, Self

import numpy as np
import pandas as pd
from pandas.api.types import is_bool_dtype, is_numeric_dtype
from sklearn.base import BaseEstimator
from sklearn.utils import check_X_y
from sklearn.utils.validation import check_is_fitted, validate_data

from evotree.configuration import Constrained, StrOptions
from evotree.dataset import Dataset
from evotree.estimators.groups import Beside
from evotree.fitted import Fitted
from evotree.schema import TRUTH, CategoricalColumn, Column, Schema, quoted
from evotree.tables.columns import encode_in_order, fit_columns, numbers_of
from evotree.tables.frames import (
    as_table,
    by_label,
    is_frame,
    refuse_complex,
    unmasked,
)

FROM_DTYPE = "from_dtype"
"""The word for: columns of a dtype of categories are categories."""


class FittedModel:
    """An estimator whose fit ends with `Fitted`."""

    fitted_: Fitted

    @property
    def columns_(self) -> tuple[Column, ...]:
        """How the columns of `X` become features."""
        return self.fitted_.schema.columns

    @property
    def feature_names_(self) -> tuple[str, ...]:
        """Names of the features that trees read."""
        return self.fitted_.schema.features

    def __sklearn_is_fitted__(self) -> bool:
        """Return whether there is a tree."""
        return hasattr(self, "fitted_")


@dataclass(eq=False, repr=False)
class RowEncoder(FittedModel, BaseEstimator, Constrained):
    """An estimator whose rows may have missing values and categories."""

    _: KW_ONLY
    categorical_features: Annotated[
        Any, "array-like", StrOptions({FROM_DTYPE}), None
    ] = FROM_DTYPE

    @contextmanager
    def _unchanged_on_failure(self) -> Iterator[None]:
        """Restore all attributes if a fit fails, so that those of two fits never mix."""
        before = dict(vars(self))
        try:
            yield
        except BaseException:
            self.__dict__.clear()
            self.__dict__.update(before)
            raise

    def _clone_sharing(self, name: str) -> Self:
        """Return a copy that is not fitted, and shares what one parameter holds with this one."""
        bare = copy(self)
        setattr(bare, name, None)
        twin: Self = BaseEstimator.__sklearn_clone__(bare)
        return twin.set_params(**{name: getattr(self, name)})

    def __sklearn_tags__(self) -> Any:
        """Return scikit-learn's tags: missing values are allowed."""
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    def encode(self, X: Any, *, bends: bool = False) -> np.ndarray:
        """Return the features that exported code reads, finite numbers.

        They are those of `feature_names_`, in this order, less bends such as ``age above 52``,
        which code computes; with `bends` they are all that `tree_` reads.
        They are C-contiguous, and in single precision only where `X` is and has nothing to encode:
        to route such rows a copy would cost more. Rows may have missing values; where a column had
        none in the fit, its median stands for them, no split was fitted to such rows, and a
        `UserWarning` says so. A level is known by its value (`evotree.tables.columns`); of levels
        that the fit did not see a `UserWarning` tells, too.
        """
        features = self._features(X)
        schema = self.fitted_.schema
        return (
            features if bends or not schema.bends else features[:, schema.read_by_code]
        )

    def _features(self, X: Any) -> np.ndarray:
        """Return the features that trees read."""
        check_is_fitted(self)
        schema = self.fitted_.schema
        is_categorical = np.array(
            [isinstance(column, CategoricalColumn) for column in schema]
        )
        if is_categorical.any() or is_frame(X):
            table = as_table(X)
            validate_data(
                self,
                table if is_frame(X) else X,
                skip_check_array=True,
                reset=False,
            )
        else:
            numbers: np.ndarray = _as_numbers(
                self, X, dtype=[np.float64, np.float32], order="C", reset=False
            )
            with np.errstate(over="ignore", invalid="ignore"):
                has_nan = np.isnan(numbers.sum())  # all others are finite
            if len(schema.features) == len(schema) and not has_nan:
                return numbers
            table = pd.DataFrame(numbers, copy=False)
        table = table.set_axis(list(schema.names), axis=1)
        is_truth = [column.holds == TRUTH for column in schema]
        refuse_text(table, is_categorical | is_truth)
        return encode_in_order(schema, table, self._asked_columns())

    def _asked_columns(self) -> set[str]:
        """Return the columns whose cells a warning tells of, if the fit knew none like them."""
        rows, schema = self.fitted_.training, self.fitted_.schema
        if rows is None:
            return set()
        # A column that did not vary has no split, and may have been missing throughout.
        varies = rows.lowest < rows.highest
        return {schema.names[c] for c in schema.column_of[varies]}

    def _objective(self, dataset: Any) -> Any:
        """Return what leaves are fitted for; None for the shares of classes, and for means."""
        return None

    def _cells(self, X: Any) -> pd.DataFrame:
        """Return checked rows as a table with the columns of the fit, in their order."""
        self._features(X)
        return as_table(X).set_axis(list(self.fitted_.schema.names), axis=1)

    def _read_training_rows(
        self, X: Any, y: Any, **checks: bool
    ) -> tuple[pd.DataFrame, np.ndarray]:
        """Return training rows as a named table, and labels or targets that pass `checks`."""
        given = self.categorical_features
        if is_frame(X) or not (given is None or isinstance(given, str)):
            table = as_table(X)
            validate_data(self, table if is_frame(X) else X, y, skip_check_array=True)
            _, y = check_X_y(np.zeros((len(table), 1)), y, estimator=self, **checks)
        else:
            # Whole numbers stay so: columns know what they hold.
            dtype = None if np.asarray(X).dtype.kind in "biu" else np.float64
            numbers, y = _as_numbers(self, X, y=y, dtype=dtype, **checks)
            table = pd.DataFrame(numbers, copy=False)
        unnamed = [f"x{j}" for j in range(table.shape[1])]
        return table.set_axis(
            list(getattr(self, "feature_names_in_", unnamed)), axis=1
        ), y

    def _fit_schema(self, table: pd.DataFrame, weight: np.ndarray) -> Schema:
        """Learn how columns become features."""
        is_categorical = categorical_mask(table, self.categorical_features)
        refuse_text(table, is_categorical)
        # Rows without any weight are refused where data sets are made.
        return fit_columns(table, is_categorical, weight if weight.any() else None)

    def _encoded(
        self,
        table: pd.DataFrame,
        y: Any,
        weight: Any,
        scaling: str,
        task: str,
        beside: Beside,
        X: Any,
        schema: Schema | None,
        output_names: tuple[str, ...] | None = None,
    ) -> Dataset:
        """Return a data set of training rows, a table of `X`; without a schema it is learned."""
        extras, cv = beside.columns(X, table, y)
        if schema is None:
            schema = self._fit_schema(table, weight)
        dataset = Dataset.from_arrays(
            encode_in_order(schema, table),
            y,
            weight,
            scaling=scaling,
            task=task,
            extras=extras,
            schema=schema,
            output_names=output_names,
            cv=cv,
        )
        return replace(dataset, has_weights=beside.sample_weight is not None)


def _as_numbers(estimator: RowEncoder, X: Any, **checks: Any) -> Any:
    """Check rows that are no frame, whose columns all hold numbers; missing ones are NaN."""
    refuse_complex(X)
    X = unmasked(X)
    if isinstance(X, np.ndarray) and X.dtype == object:
        X = np.where(pd.isna(X), np.nan, X)
    try:
        # The check adds up the rows, which may overflow to both sides.
        with np.errstate(over="ignore", invalid="ignore"):
            return validate_data(estimator, X, ensure_all_finite="allow-nan", **checks)
    except ValueError as error:
        if "could not convert" in str(error):
            cells = pd.DataFrame(np.asarray(X, dtype=object))
            refuse_text(cells.add_prefix("x"), np.zeros(cells.shape[1], dtype=bool))
        raise


def categorical_mask(table: pd.DataFrame, given: Any) -> np.ndarray:
    """Return which columns of a table are categories, as `categorical_features` says."""
    n_features = table.shape[1]
    if given is None:
        return np.zeros(n_features, dtype=bool)
    if isinstance(given, str):
        return np.array(
            [
                isinstance(dtype, pd.CategoricalDtype)
                or str(dtype).startswith("dictionary<")  # Arrow's categories
                for dtype in table.dtypes
            ]
        )
    if isinstance(given, pd.Series) and is_bool_dtype(given.dtype):
        given = by_label(given, table.columns, "categorical_features")
    chosen = np.asarray(given)
    kind = chosen.dtype.kind
    if kind == "b" and chosen.shape == (n_features,):
        return chosen
    allowed: Any = range(n_features) if kind in "iu" else table.columns.tolist()
    if (
        chosen.ndim != 1
        or kind == "b"
        or any(one not in allowed for one in chosen.tolist())
    ):
        raise ValueError(
            f"categorical_features={given!r}: allowed are None, {FROM_DTYPE!r}, a mask of "
            f"{n_features} truth values, positions from 0 to {n_features - 1}, and the names of "
            "columns."
        )
    wanted = set(chosen.tolist())
    return np.array([one in wanted for one in allowed])


def refuse_text(table: pd.DataFrame, is_categorical: np.ndarray) -> None:
    """Raise for a column that holds other things than numbers and is not declared categorical."""
    for j, dtype in enumerate(table.dtypes):
        if is_categorical[j] or (is_numeric_dtype(dtype) and dtype.kind != "c"):
            continue
        column = table.iloc[:, j].dropna()
        try:
            # Times would become numbers of nanoseconds, complex numbers real ones.
            is_time = dtype.kind in "mM" or isinstance(dtype, pd.PeriodDtype)
            strange = column if is_time or dtype.kind == "c" else column[:0]
            if not len(strange):
                column.to_numpy(dtype=np.float64)
        except (TypeError, ValueError, OverflowError):
            strange = column[numbers_of(column).isna()]
        if not len(strange):
            continue
        held = f"X has {quoted(strange.iloc[0])} in the column {table.columns[j]!r}"
        if dtype.kind == "c":
            raise ValueError(f"{held}: allowed are real numbers.")
        if isinstance(strange.iloc[0], date | timedelta | pd.Period):
            raise ValueError(
                f"{held}: allowed are numbers. Make numbers of dates and times, such as days since "
                "the first."
            )
        raise ValueError(
            f"{held}: allowed are numbers. A column of categories has the dtype 'category', or "
            "categorical_features has its name or, for rows without names, its position."
        )


# ---- collections of Dask, partition by partition -------------------------------------------------

_READ_BY_WORKERS = {"feature_names_in_", "n_features_in_"}


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


def _lazily(X: Any, name: str, estimator: Any, nothing: np.ndarray) -> Any:
    """Return what a method of an estimator will return for the rows of a collection."""
    asked = (name, estimator, nothing)
    if not hasattr(X, "map_blocks"):
        return X.map_partitions(_predicted, *asked, meta=_predicted(X._meta, *asked))
    if X.ndim != 2:
        raise ValueError(f"X has shape {X.shape}: allowed are 2 dimensions.")
    shape: dict[str, Any] = (
        {"chunks": (X.chunks[0], nothing.shape[1:])}
        if nothing.ndim > 1
        else {"drop_axis": 1}
    )
    return X.rechunk({1: -1}).map_blocks(
        _predicted, *asked, dtype=nothing.dtype, meta=nothing, **shape
    )


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
        if not key.startswith("_")
        and (not key.endswith("_") or key in _READ_BY_WORKERS)
    }
    bare.fitted_ = replace(estimator.fitted_, training=None)
    return bare
