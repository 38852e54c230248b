"""What comes from outside becomes rows of numbers: checks, missing values and categories.

In: whatever users hand to ``fit`` and ``predict``: arrays, lists, frames of pandas and polars, and
what stands beside their rows: labels or targets, weights, exposures, groups, folds. Out: encoded
rows, which are finite; the engine and its kernels see no others. How columns become features is the
business of `evotree.tables.columns`.

Rows of one patient, machine or day are alike. Where some of them are held out and others are not, a
tree that only knows its groups seems to be good.
"""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import KW_ONLY, dataclass, replace
from numbers import Integral
from typing import Annotated, Any, Self, cast

import numpy as np
import pandas as pd
from pandas.api.types import is_bool_dtype
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils import check_X_y, compute_sample_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _num_samples, check_is_fitted, validate_data

from evotree.configuration import (
    Constrained,
    LinearLeaves,
    StrOptions,
)
from evotree.dataset import (
    EXPOSURE,
    GROUPS,
    HELD_OUT,
    PART,
    TRAINED_ON,
    Dataset,
    check_weight,
)
from evotree.fitness.base import Objective
from evotree.fitness.linear_leaves import term_penalty_of_rows
from evotree.fitness.objectives import compose
from evotree.fitted import Fitted
from evotree.log import LOGGER
from evotree.operators.constraints import with_split_features
from evotree.schema import (
    LARGEST,
    NUMBERS,
    SHOWN_NAMES,
    CategoricalColumn,
    Column,
    Schema,
    columns_asked,
)
from evotree.tables.columns import (
    encode_in_order,
    fit_columns,
    has_many_levels,
    is_text,
    numbers_in,
)
from evotree.tables.frames import (
    as_numbers,
    as_table,
    by_label,
    by_row,
    frame_of,
    is_frame,
    level_of_user,
    read_labels,
    refuse_collections,
    refuse_complex,
    row_labels,
    unmasked,
)
from evotree.words import listed

FROM_DTYPE = "from_dtype"
"""The word for: columns of a dtype of categories, and of text, are categories."""

CLASS_WEIGHT = (dict, StrOptions({"balanced"}), None)
"""Constraints of weights of classes."""

_ALLOWED = (
    "allowed are None, an integer, a splitter of scikit-learn such as GroupKFold, and pairs of "
    "arrays of positions of rows, to train on and to hold out"
)


@dataclass(frozen=True, eq=False)
class Beside:
    """What a fit takes beside rows and targets: weights, further columns, and folds."""

    sample_weight: Any = None
    sensitive: Any = None
    groups: Any = None
    cv: Any = None
    exposure: Any = None
    extras: Any = None  # further columns, as arrays by name

    @property
    def given(self) -> dict[str, Any]:
        """What is given, by name."""
        return {name: one for name, one in vars(self).items() if one is not None}

    def in_order(self, X: Any, y: Any) -> Self:
        """Return the same in the order of the rows of `X`, or of `y` where these have no labels.

        Of a splitter the pairs are returned; it sees rows, labels and groups as they came.
        """
        rows = y if row_labels(X) is None else X
        names = ("sample_weight", "sensitive", GROUPS, EXPOSURE)
        given = {name: by_row(getattr(self, name), rows, name) for name in names}
        if hasattr(self.cv, "split") and not isinstance(self.cv, str):
            given["cv"] = [*self.cv.split(X, by_row(y, X, "y"), given[GROUPS])]
        return replace(self, **given)

    def columns(self, n_rows: int) -> tuple[dict[str, Any], Any]:
        """Return the extra columns of a data set of rows in order, and its folds."""
        extras = {}
        groups, cv = None, self.cv
        if self.sensitive is not None:
            extras["sensitive"] = self.sensitive
        if self.groups is not None:
            extras[GROUPS] = groups = read_groups(self.groups, n_rows)
        if self.exposure is not None:
            extras[EXPOSURE] = read_exposure(self.exposure, n_rows)
        if cv is not None:
            cv, part_of = read_folds(cv, n_rows, groups)
            if part_of is not None:
                extras[PART] = part_of
        return extras | (self.extras or {}), cv


_NONE = Beside()


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
        except BaseException as error:
            LOGGER.info("fit failed: %s: %s", type(error).__name__, error)
            self.__dict__.clear()
            self.__dict__.update(before)
            raise

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
        return features if bends else self.fitted_.schema.without_bends(features)

    def _features(self, X: Any) -> np.ndarray:
        """Return the features that trees read."""
        check_is_fitted(self)
        refuse_collections(X)
        schema = self.fitted_.schema
        if is_frame(X) or any(isinstance(one, CategoricalColumn) for one in schema):
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

    def _read_y(self, X: Any, y: Any) -> Any:
        """Return labels, targets or times that stand beside rows, in their order."""
        raise NotImplementedError

    def _judged(self, X: Any, y: Any, sample_weight: Any) -> tuple[Any, Any]:
        """Return what predictions of rows are compared with, and the weights, None for none."""
        weight = Beside(sample_weight).in_order(X, y).sample_weight
        if weight is not None:
            weight = check_weight(weight, _num_samples(X))
        return self._read_y(X, y), weight

    def _cells(self, X: Any) -> pd.DataFrame:
        """Return checked rows as a table with the columns of the fit, in their order."""
        self._features(X)
        return as_table(X).set_axis(list(self.fitted_.schema.names), axis=1)

    def _read_training_rows(
        self, X: Any, y: Any, **checks: bool
    ) -> tuple[pd.DataFrame, np.ndarray]:
        """Return training rows as a named table, and labels or targets that pass `checks`."""
        refuse_collections(X)
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
        if isinstance(self.categorical_features, str):
            _warn_of_many_levels(table)
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
        schema: Schema | None,
        output_names: tuple[str, ...] | None = None,
    ) -> Dataset:
        """Return a data set of training rows, a table of `X`; without a schema it is learned."""
        extras, cv = beside.columns(len(table))
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
            numbers_in(cells.add_prefix("x"), [NUMBERS] * cells.shape[1])
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
                or is_text(table.iloc[:, j])
                for j, dtype in enumerate(table.dtypes)
            ]
        )
    if isinstance(given, pd.Series) and is_bool_dtype(given.dtype):
        given = by_label(given, table.columns, "categorical_features")
    chosen = np.asarray(given)
    if chosen.dtype.kind == "b" and chosen.shape == (n_features,):
        return chosen
    asked = columns_asked(chosen.tolist(), list(table.columns), "categorical_features")
    return np.isin(np.arange(n_features), list(asked))


def _warn_of_many_levels(table: pd.DataFrame) -> None:
    """Warn of columns of text whose levels say little of further rows."""
    many = [
        f"{name!r} ({table.iloc[:, j].nunique()})"
        for j, name in enumerate(table.columns)
        if is_text(table.iloc[:, j]) and has_many_levels(table.iloc[:, j])
    ]
    if many:
        warnings.warn(
            "X has columns of text with so many levels that they may only tell rows apart: "
            f"{listed(many, SHOWN_NAMES)}; leave out what is no category.",
            stacklevel=level_of_user(),
        )


class ClassReader(ClassifierMixin, RowEncoder):
    """An estimator that reads rows with classes."""

    class_weight: Any

    @property
    def classes_(self) -> np.ndarray:
        """Class labels."""
        return cast(np.ndarray, self.fitted_.classes)

    def _make_dataset(
        self,
        X: Any,
        y: Any,
        beside: Beside = _NONE,
        scaling: str = "standard",
        schema: Schema | None = None,
    ) -> Dataset:
        beside = beside.in_order(X, y)
        table, y = self._read_training_rows(X, self._read_y(X, y))
        check_classification_targets(y)
        weight = check_weight(beside.sample_weight, len(table))
        if self.class_weight is not None:
            with np.errstate(over="ignore"):
                weight = weight * class_weight_of_rows(self.class_weight, y, weight)
            weight = check_weight(
                weight,
                len(weight),
                f"class_weight={self.class_weight!r}: the product with sample_weight",
            )
        return self._encoded(
            table, y, weight, scaling, "classification", beside, schema
        )

    def _read_y(self, X: Any, y: Any) -> Any:
        return read_labels(by_row(y, X, "y"))

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the accuracy of `predict`, the share of the weight of rows that it gets right."""
        return super().score(X, *self._judged(X, y, sample_weight))

    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Return the logarithms of `predict_proba`.

        Minus infinity where a probability is 0, as where a leaf has none of a class.
        """
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))


class TargetReader(RowEncoder):
    """An estimator that reads rows with targets."""

    leaves: str | LinearLeaves

    @property
    def n_outputs_(self) -> int:
        """Number of targets of a row."""
        return self.fitted_.tree.values.shape[1]

    def _make_dataset(
        self,
        X: Any,
        y: Any,
        beside: Beside = _NONE,
        scaling: str = "standard",
        schema: Schema | None = None,
    ) -> Dataset:
        header = getattr(frame_of(y), "columns", None)
        beside = beside.in_order(X, y)
        y = self._read_y(X, y)
        several = is_of_several_outputs(y)
        table, y = self._read_training_rows(X, y, y_numeric=True, multi_output=several)
        dataset = self._encoded(
            table,
            y,
            check_weight(beside.sample_weight, len(table)),
            scaling,
            "regression",
            beside,
            schema,
            tuple(map(str, header)) if several and header is not None else None,
        )
        if isinstance(self.leaves, LinearLeaves):
            return with_split_features(dataset, self.leaves.split_features)
        return dataset

    def _read_y(self, X: Any, y: Any) -> Any:
        # Targets that are missing are asked for by scikit-learn's own words.
        return y if y is None else as_numbers("y", by_row(frame_of(y), X, "y"))

    def _objective(self, dataset: Dataset) -> Objective | None:
        """Return what leaves are fitted for: lines, where they are asked for."""
        objective = compose("squared_error", dataset, leaves=self.leaves)
        n_apart = dataset.total_weight if dataset.groups is None else dataset.n_groups
        price = term_penalty_of_rows(n_apart)
        return None if objective is None else objective.penalized(price)


class NumberReader(RegressorMixin, TargetReader):
    """An estimator whose targets are numbers that it predicts."""

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return R², of several outputs the mean of theirs."""
        return super().score(X, *self._judged(X, y, sample_weight))


# ---- what stands beside rows ---------------------------------------------------------------------


def read_groups(groups: Any, n_rows: int) -> np.ndarray:
    """Return the number of the group of each row, int64, from 0.

    Labels may be of any type that can be hashed. The numbers do not depend on the order of rows.
    """
    if not hasattr(groups, "shape"):
        groups = pd.Series(list(groups), dtype=object)
    elif hasattr(groups, "to_numpy"):
        groups = groups.to_numpy()
    if tuple(groups.shape) != (n_rows,):
        raise ValueError(
            f"groups has shape {tuple(groups.shape)}: allowed is one label for each of {n_rows} "
            "rows."
        )
    try:
        codes, labels = pd.factorize(groups)
    except TypeError as error:
        raise ValueError(
            f"groups: {error}; allowed are labels such as numbers, texts and dates."
        ) from error
    is_missing = codes < 0
    if is_missing.any():
        raise ValueError(
            f"groups has missing labels: {is_missing.sum()} of {n_rows}, the first in row "
            f"{is_missing.argmax()}. Leave these rows out, or give each a group of its own."
        )
    if len(labels) < 2:
        raise ValueError(
            f"groups has one label, {labels[0]!r}: allowed are two or more, so that some can be "
            "held out."
        )
    order = sorted(range(len(labels)), key=lambda code: str(labels[code]))
    return np.argsort(order)[codes]


def read_exposure(exposure: Any, n_rows: int) -> np.ndarray:
    """Return the exposure of each row, float64, above 0."""
    numbers = as_numbers(EXPOSURE, exposure)
    if numbers.shape != (n_rows,):
        raise ValueError(
            f"exposure has shape {numbers.shape}: allowed is one number for each of {n_rows} rows."
        )
    is_wrong = ~((numbers > 0.0) & (numbers <= LARGEST))
    if is_wrong.any():
        raise ValueError(
            f"exposure has {numbers[is_wrong][0]:g} in row {is_wrong.argmax()}: allowed are "
            f"numbers above 0, up to {LARGEST:g}."
        )
    return numbers


def read_folds(
    cv: Any, n_rows: int, groups: np.ndarray | None
) -> tuple[int | np.ndarray, np.ndarray | None]:
    """Return a number of folds, or what they do with parts of the rows, and the part of each row.

    The first is an array of shape (n_parts, n_folds) then, as `evotree.dataset.Dataset.cv` is, the
    second one of shape (n_rows,).
    """
    if isinstance(cv, Integral) and not isinstance(cv, bool):
        n_groups = n_rows if groups is None else int(groups.max()) + 1
        if not 2 <= int(cv) <= n_groups:
            raise ValueError(
                f"cv={cv}: allowed are integers from 2 to {n_groups}, the number of "
                f"{'rows' if groups is None else 'groups'}."
            )
        return int(cv), None
    if isinstance(cv, str | bool) or not hasattr(cv, "__iter__"):
        raise ValueError(f"cv={cv!r}: {_ALLOWED}.")
    pairs = [*cv]
    labels = np.arange(n_rows) if groups is None else groups
    roles = np.zeros((n_rows, len(pairs)), dtype=np.int8)
    for fold, pair in enumerate(pairs):
        train, test = _positions_of(pair, fold, n_rows)
        roles[train, fold] = TRAINED_ON
        roles[test, fold] = HELD_OUT
        is_shared = np.isin(labels, labels[train]) & np.isin(labels, labels[test])
        if is_shared.any():
            what = "the row" if groups is None else "the group of the row"
            raise ValueError(
                f"cv has {what} {is_shared.argmax()} in both parts of the pair {fold}: allowed "
                f"are those without a common {'row' if groups is None else 'group, of GroupKFold'}."
            )
    if ((roles == HELD_OUT).sum(axis=1) > 1).any() or not pairs:
        raise ValueError(
            f"cv has {len(pairs)} pairs, some of which hold out the same rows: allowed are one or "
            "more, each row being held out once at most."
        )
    parts, part_of = np.unique(roles, axis=0, return_inverse=True)
    return parts, part_of


def _positions_of(pair: Any, fold: int, n_rows: int) -> list[np.ndarray]:
    """Return the positions of a pair: of the rows to train on, and of those to hold out."""
    try:
        train, test = pair
        positions = [np.asarray(one).reshape(-1) for one in (train, test)]
    except (TypeError, ValueError) as error:
        raise ValueError(f"cv has {pair!r} for the pair {fold}: {_ALLOWED}.") from error
    for one in positions:
        rows = np.unique(one)
        is_whole = one.dtype.kind in "iu" and len(rows) == one.size
        if one.size and not (is_whole and 0 <= rows[0] <= rows[-1] < n_rows):
            raise ValueError(
                f"cv has positions in the pair {fold} that are no rows, or some twice: allowed are "
                f"integers from 0 to {n_rows - 1}, each once."
            )
    return [one.astype(np.int64) for one in positions]


def is_of_several_outputs(y: Any) -> bool:
    """Return whether targets have several columns."""
    return np.ndim(y) == 2 and np.shape(y)[1] > 1


def class_weight_of_rows(
    class_weight: Any, y: np.ndarray, weight: np.ndarray
) -> np.ndarray:
    """Return the weight of each row's class."""
    if isinstance(class_weight, str):
        codes = np.unique(y, return_inverse=True)[1]
        totals = np.bincount(codes, weights=weight)
        factors = weight.sum() / (
            np.count_nonzero(totals) * np.where(totals > 0.0, totals, 1.0)
        )
        return factors[codes]
    factors = compute_sample_weight(class_weight, y)
    if not np.isfinite(factors).all() or factors.min() < 0.0:
        raise ValueError(
            f"class_weight={class_weight!r}: allowed are finite weights, at least 0."
        )
    return factors
