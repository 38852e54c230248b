"""Training data as the engine sees it: centred, scaled, canonical, read-only; its folds and bags.

A data set may have training rows that are not in the data, copies of these with noise. Where
rows are few, most trees of a population are perfect on them, and their quality there says nothing
of the rows to come: copies with noise go on telling trees apart.
"""

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Self

import numpy as np

from evotree._jit import kernel
from evotree.configuration import as_text
from evotree.rng import as_generator
from evotree.schema import LARGEST, Schema
from evotree.tables.frames import as_numbers, level_of_user
from evotree.tree import ObliqueTree, node_weights, project, sizes_of_kept

SCALINGS = ("standard", "common", "minmax")
"""Names of the ways to scale features."""

GROUPS, PART = "groups", "cv"
"""Extra columns of rows that belong together, and of the parts that users' folds are made of."""

EXPOSURE = "exposure"
"""Extra column of how long, or at how much, the events of each row were counted, above 0."""

EVENTS = "event"
"""Extra column of the events of each row, where the exposures are made of other rows."""

HELD_OUT, TRAINED_ON = 1, -1
"""What a fold of a user does with the rows of a part; 0 for neither."""

_LINE = 128  # bytes; processors fetch lines of 64 by pairs
_ENCODERS = (
    ": the estimators encode categories and missing values, and so do fit_columns and encode of "
    "evotree.tables.columns"
)


@dataclass(frozen=True, eq=False)
class Dataset:
    """Validated training rows in the units that trees evolve in.

    The rows are *canonical*: rows without weight are left out, equal rows of one class, or one
    target, are kept once and their weights added, and the rows are sorted. So the order of the rows
    does not matter. Rows that differ in an extra column stay apart.

    Two counts have names: `n_rows` is of the rows as the user gave them, `n_distinct` of the rows
    as kernels see them. What counts rows, deals them out or draws from them goes by the first, and
    so by `multiplicity`.

    The unit of the weights is chosen so that multiplying all of them by a number changes nothing.
    Weights that are all multiples of the least one say how often each row occurs: their sum is the
    number of rows. The sum of other weights is the number of rows of equal weight that tell as
    much, that of Kish (1965, section 8.2), ``sum(w)**2 / sum(w**2)``.

    Where rows have exposures, their targets are rates, events by exposure, and their weights are
    multiplied by their exposures, in units of the mean. So a mean of rates is the sum of the events
    by that of the exposures, and Poisson's deviance of the rates is that of the events. The sum of
    all weights stays what it is without exposures: rows stay rows.

    Attributes
    ----------
    X : ndarray of shape (n_distinct, n_features), float64
        Rows in the units of evolution, C-contiguous: ``X = (raw - mean) / scale``.
    given : ndarray of shape (n_distinct, n_features), float64, or None
        The rows in raw units; None for noisy copies, whose `raw` is made of `X`.
    y : ndarray of shape (n_distinct,)
        Class codes, positions in `classes`, int32; for regression the targets in standard units,
        float64. Of several outputs their leading component, for operators that know of one target.
    sample_weight : ndarray of shape (n_distinct,), float64
        Weights, all above 0, in units of `weight_unit`.
    classes : ndarray of shape (n_classes,)
        Class labels, sorted; empty for regression.
    mean, scale, spread : ndarray of shape (n_features,)
        The affine map to raw units, and standard deviations of the columns of `X`; 1 for a constant
        one.
    multiplicity : ndarray of shape (n_distinct,), int64
        How many training rows each row stands for; 0 for one that is none: a copy with noise.
    target_mean, target_scale : float, or ndarray of shape (n_outputs,)
        The affine map of the targets to raw units; 0 and 1 for classes.
    given_targets : ndarray of the shape of `targets`, or None
        The targets of regression as they were given, or as rates; None of copies with noise.
    extras : dict of str to ndarray of shape (n_distinct,)
        Columns that are not features, such as a group or a cost.
    exposures_of : callable or None
        ``exposures_of(extras, weight)``, where the exposure of a row depends on all rows, as the
        hazard until a time does. It is given the extra columns of the rows trained on, and weights,
        and returns what makes exposures of extra columns; None where these rows tell nothing.
    objective : Objective or None
        What trees are evolved for; None for the accuracy, or the squared error.
    schema : Schema
        What the features are made of.
    outputs, output_names : ndarray of shape (n_distinct, n_outputs), and tuple of str, or None
        Several outputs in standard units; None for classes and for one output.
    is_split_on : ndarray of shape (n_features,), bool, or None
        The features that splits may use; None for any.
    weight_unit : float, above 0
        What a weight of 1 is in the units that weights were given in.
    cv : int, or ndarray of shape (n_parts, n_folds), int8, or None
        How many folds a user asks for; or what the user's folds do with the rows of each part,
        `HELD_OUT`, `TRAINED_ON` or 0, where the extra column ``"cv"`` has the part of a row.
    has_weights : bool
        Whether the user gave weights of rows, those of classes aside.

    References
    ----------
    Kish L. (1965). Survey Sampling. Wiley.
    """

    X: np.ndarray
    y: np.ndarray
    sample_weight: np.ndarray
    classes: np.ndarray
    schema: Schema
    mean: np.ndarray
    scale: np.ndarray
    spread: np.ndarray
    given: np.ndarray | None
    multiplicity: np.ndarray
    target_mean: Any = 0.0
    target_scale: Any = 1.0
    given_targets: np.ndarray | None = None
    extras: dict[str, np.ndarray] = field(default_factory=dict)
    objective: Any = None
    outputs: np.ndarray | None = None
    output_names: tuple[str, ...] | None = None
    is_split_on: np.ndarray | None = None
    weight_unit: float = 1.0
    cv: int | np.ndarray | None = None
    has_weights: bool = False
    exposures_of: Any = None

    @classmethod
    def from_arrays(
        cls,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        scaling: str = "standard",
        task: str = "classification",
        extras: Mapping[str, Any] | None = None,
        schema: Schema | None = None,
        output_names: tuple[str, ...] | None = None,
        cv: int | np.ndarray | None = None,
    ) -> Self:
        """Make a data set of raw rows.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            Raw rows, of magnitudes up to 1e100; a feature that varies does so by 1e-100 or more.
        y : array-like of shape (n_rows,), or (n_rows, n_outputs) for regression
            Class labels, or targets with the same bounds.
        sample_weight : array-like of shape (n_rows,), optional
            Weights, at least 0, with a sum from 1e-100 to 1e100; 1 for every row by default.
        scaling : {"standard", "common", "minmax"}, default="standard"
            ``"standard"`` divides each feature by its standard deviation, so that the units of the
            features do not matter; ``"common"`` divides all by one number, so that directions
            between rows are those of the raw data; ``"minmax"`` takes each feature to [-1, 1].
        task : {"classification", "regression"}, default="classification"
            What `y` holds.
        extras : mapping of str to array-like of shape (n_rows,), optional
            Columns that are not features, for an ``evaluate`` that reads them from the data set.
            ``"groups"`` has a label for rows that belong together, ``"exposure"`` what events were
            counted at.
        schema : Schema, optional
            What the features are made of; by default each is a column with the name that it has in
            a table, or else ``x0``, ``x1``, ...
        output_names : tuple of str, optional
            Names of several outputs; by default ``y0``, ``y1``, ...
        cv : int or ndarray of shape (n_parts, n_folds), optional
            How many folds there are, or which (`Dataset.cv`).
        """
        if scaling not in SCALINGS:
            raise ValueError(
                f"scaling={scaling!r}: allowed are {', '.join(map(repr, SCALINGS))}."
            )
        if task not in ("classification", "regression"):
            raise ValueError(
                f"task={task!r}: allowed are 'classification' and 'regression'."
            )
        header = getattr(X, "columns", None)
        X = np.ascontiguousarray(as_numbers("X", X, _ENCODERS))
        if task == "regression":
            classes = np.empty(0)
            codes = check_targets(y)
            if codes.ndim == 2 and codes.shape[1] == 1:
                codes = codes[:, 0]
        else:
            classes, codes = class_codes(y)
        _check_rows(X, codes, max_dimensions=1 if task == "classification" else 2)
        if schema is None:
            unnamed = (f"x{j}" for j in range(X.shape[1]))
            schema = Schema.of_features(unnamed if header is None else header)
        names = schema.features
        if len(names) != X.shape[1]:
            raise ValueError(
                f"schema has {len(names)} features: one for each of {X.shape[1]}."
            )
        weight, unit = _in_own_unit(check_weight(sample_weight, len(X)))
        extras = _check_extras(extras or {}, len(X))
        if EXPOSURE in extras and task == "regression":
            codes, weight, unit = _as_rates(codes, weight, unit, extras[EXPOSURE])
        X, codes, weight, extras, multiplicity = _canonical_rows(
            X, codes, weight, extras
        )
        _check_magnitudes(X, lambda j: f"X, in the column {names[j]!r},")
        if isinstance(cv, np.ndarray):
            _check_folds(cv[extras[PART]], codes)
        mean, scale, deviation = _affine_map(X, weight, scaling)
        rows = np.subtract(X, mean, out=empty_rows(*X.shape))
        rows /= scale
        dataset = cls(
            X=rows,
            y=codes.astype(np.int32) if task == "classification" else codes,
            sample_weight=weight,
            classes=classes,
            schema=schema,
            mean=mean,
            scale=scale,
            spread=deviation / scale,
            given=X,
            multiplicity=multiplicity,
            extras=extras,
            weight_unit=unit,
            cv=cv,
            has_weights=sample_weight is not None,
        )
        if task == "classification":
            return dataset
        return dataset._with_raw_targets(codes, output_names)

    @classmethod
    def in_raw_units(
        cls, X: np.ndarray, y: np.ndarray, classes: np.ndarray | None
    ) -> Self:
        """Make a data set of finite rows of weight 1 whose units are the raw ones.

        The rows stay as they are, in their order; the classes are sorted, and None for regression.
        """
        n_features = X.shape[1]
        empty = cls(
            X=X[:0],
            y=np.empty(0),
            sample_weight=np.empty(0),
            classes=np.empty(0) if classes is None else classes,
            schema=Schema.of_features(f"x{j}" for j in range(n_features)),
            mean=np.zeros(n_features),
            scale=np.ones(n_features),
            spread=np.ones(n_features),
            given=X[:0],
            multiplicity=np.empty(0),
        )
        if y.ndim == 2:
            scale = _location_and_scale(y, np.ones(len(y)))[1]
            empty = replace(empty, target_mean=np.zeros_like(scale), target_scale=scale)
        return empty.like(X, y)

    def _with_raw_targets(
        self, targets: np.ndarray, output_names: tuple[str, ...] | None
    ) -> Self:
        """Return the rows with targets, of shape (n_distinct,) or (n_distinct, n_outputs)."""
        columns = targets.reshape(len(targets), -1)
        if targets.ndim == 1:
            _check_magnitudes(columns, lambda j: "y")
        else:
            _check_magnitudes(columns, lambda j: f"y, in the column {j},")
        outputs, mean, scale = _standardized(columns, self.sample_weight)
        if targets.ndim == 1:
            return replace(
                self,
                y=outputs[:, 0],
                target_mean=float(mean[0]),
                target_scale=float(scale[0]),
                given_targets=targets,
            )
        component = leading_component(outputs, self.sample_weight)
        standard, _, _ = _standardized(component[:, np.newaxis], self.sample_weight)
        return replace(
            self,
            y=standard[:, 0],
            target_mean=mean,
            target_scale=scale,
            given_targets=targets,
            outputs=outputs,
            output_names=output_names
            or tuple(f"y{j}" for j in range(outputs.shape[1])),
        )

    def __repr__(self) -> str:
        kind = f"{self.n_classes} classes" if self.n_classes else "targets"
        return (
            f"Dataset of {self.n_rows} rows, {self.n_distinct} distinct: "
            f"{self.X.shape[1]} features, {kind}"
        )

    def __post_init__(self) -> None:
        """Make all arrays read-only; kernels are compiled for such alone."""
        for array in (*vars(self).values(), *self.extras.values()):
            if isinstance(array, np.ndarray):
                array.flags.writeable = False

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.__post_init__()  # a pickle does not keep the flags

    @cached_property
    def fingerprint(self) -> str:
        """Checksum of the rows, targets, weights and extra columns, and of the features."""
        parts: list[Any] = [
            *self.rows,
            self.outputs,
            self.mean,
            self.scale,
            self.classes,
        ]
        parts += [self.extras, self.feature_names, self.cv]
        return as_text(parts)

    @cached_property
    def raw(self) -> np.ndarray:
        """The rows in raw units."""
        # Most noisy copies are never asked for these, which would take as much as `X`.
        return self.X * self.scale + self.mean if self.given is None else self.given

    @cached_property
    def bound_objective(self) -> Any:
        """The objective on these rows, or None."""
        return None if self.objective is None else self.objective.bind(self)

    @cached_property
    def split_X(self) -> np.ndarray:
        """The rows as splits see them: features that they may not use are 0."""
        if self.is_split_on is None:
            return self.X
        rows = np.where(self.is_split_on, self.X, 0.0)
        rows.flags.writeable = False
        return rows

    def allowed(self, weights: np.ndarray) -> np.ndarray:
        """Return weights of splits, those of features that these may not use being 0."""
        return (
            weights
            if self.is_split_on is None
            else np.where(self.is_split_on, weights, 0.0)
        )

    @property
    def rows(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Rows, classes or targets, and weights, as kernels take them."""
        return self.X, self.y, self.sample_weight

    @property
    def n_classes(self) -> int:
        """Number of classes; 0 for regression."""
        return self.classes.shape[0]

    @property
    def n_statistics(self) -> int:
        """Columns of an individual's ``counts``: the classes, or sums of w, w y and w y**2."""
        return self.n_classes or 3

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Names of the features."""
        return self.schema.features

    @property
    def column_of(self) -> np.ndarray:
        """Position of the column that each feature was made of, of shape (n_features,), rising."""
        return self.schema.column_of

    @property
    def column_names(self) -> list[str]:
        """Names of the columns that the features were made of."""
        return list(self.schema.names)

    @property
    def n_outputs(self) -> int:
        """Number of targets of a row; 1 for classes."""
        return 1 if self.outputs is None else self.outputs.shape[1]

    @property
    def targets(self) -> np.ndarray:
        """What a row loses by: its class or target, or all of its outputs."""
        return self.y if self.outputs is None else self.outputs

    @property
    def raw_targets(self) -> np.ndarray:
        """The targets in raw units: those given, as standard units and back lose last digits."""
        if self.given_targets is None:
            return self.target_mean + self.target_scale * self.targets
        return self.given_targets

    def of_output(self, j: int) -> Self:
        """Return the same rows with one of the outputs alone, without an objective."""
        if self.outputs is None:
            return self.evolved_for(None)
        return replace(
            self.evolved_for(None),
            y=np.ascontiguousarray(self.outputs[:, j]),
            target_mean=float(self.target_mean[j]),
            target_scale=float(self.target_scale[j]),
            given_targets=np.ascontiguousarray(self.raw_targets[:, j]),
            outputs=None,
            output_names=None,
        )

    @cached_property
    def total_weight(self) -> float:
        """Sum of the weights of all rows: how many rows of equal weight tell as much."""
        return float(self.sample_weight.sum())

    @property
    def n_distinct(self) -> int:
        """Number of rows as kernels see them: equal ones once, copies with noise among them."""
        return self.y.shape[0]

    @cached_property
    def n_rows(self) -> int:
        """Number of rows as the user gave them: those of weight 0, and copies, left out."""
        return int(self.multiplicity.sum())

    @cached_property
    def distinct_of(self) -> np.ndarray:
        """Position among the distinct rows of each row as given, rising; copies count once."""
        return np.repeat(np.arange(self.n_distinct), np.maximum(self.multiplicity, 1))

    @cached_property
    def groups(self) -> np.ndarray | None:
        """Numbers of the groups of the distinct rows, from 0; None where rows have no groups."""
        labels = self.extras.get(GROUPS)
        return None if labels is None else np.unique(labels, return_inverse=True)[1]

    @cached_property
    def group_of(self) -> np.ndarray:
        """Number of the group of each row as given; without groups each row is one."""
        n_given = len(self.distinct_of)
        return (
            np.arange(n_given) if self.groups is None else self.groups[self.distinct_of]
        )

    @cached_property
    def n_groups(self) -> int:
        """Number of groups; without them of the rows as given."""
        return self.n_rows if self.groups is None else int(self.groups.max()) + 1

    def count_rows(
        self, leaves: np.ndarray, subtree_size: np.ndarray
    ) -> np.ndarray | None:
        """Return `ObliqueTree.row_counts`, how many rows as given reach each node.

        None where the weights of the rows are how often each was given.
        """
        if np.allclose(self.sample_weight, self.multiplicity):
            return None
        n_nodes = len(subtree_size)
        k = self.n_classes or 1
        codes = leaves.astype(np.int64) * k + (self.y if self.n_classes else 0)
        counts = np.bincount(codes, self.multiplicity, n_nodes * k).reshape(n_nodes, k)
        # A node and its descendants stand in a row: theirs is a difference of two sums.
        before = np.vstack([np.zeros(k), counts.cumsum(axis=0)]).astype(np.int64)
        return before[np.arange(n_nodes) + subtree_size] - before[:-1]

    def subsample(self, positions: np.ndarray) -> Self:
        """Return some of the `n_rows` rows, by their positions in `distinct_of`."""
        times = np.bincount(self.distinct_of[positions], minlength=self.n_distinct)
        rows = np.flatnonzero(times)
        share = times[rows] / np.maximum(self.multiplicity[rows], 1)
        return self.take(
            rows,
            sample_weight=self.sample_weight[rows] * share,
            multiplicity=np.where(self.multiplicity[rows] > 0, times[rows], 0),
        )

    def unmerged(self) -> Self:
        """Return the rows as they were given, sorted; equal ones share their weight evenly."""
        if len(self.distinct_of) == self.n_distinct:
            return self
        rows = self.distinct_of
        weight = (self.sample_weight / np.maximum(self.multiplicity, 1))[rows]
        times = np.minimum(self.multiplicity, 1)[rows]
        return self.take(rows, sample_weight=weight, multiplicity=times)

    def take(
        self,
        rows: np.ndarray,
        sample_weight: np.ndarray | None = None,
        multiplicity: np.ndarray | None = None,
    ) -> Self:
        """Return some of the rows, by rising positions or a mask, perhaps with other weights."""
        if sample_weight is None:
            sample_weight = self.sample_weight[rows]
        if multiplicity is None:
            multiplicity = self.multiplicity[rows]
        positions = np.flatnonzero(rows) if rows.dtype == np.bool_ else rows
        X = empty_rows(positions.size, self.X.shape[1])
        # The mode "raise" would go by a copy.
        np.take(self.X, positions, axis=0, out=X, mode="clip")
        return replace(
            self,
            X=X,
            y=self.y[rows],
            sample_weight=np.array(sample_weight),
            given=None if self.given is None else self.given[rows],
            given_targets=None
            if self.given_targets is None
            else self.given_targets[rows],
            multiplicity=multiplicity,
            extras={name: column[rows] for name, column in self.extras.items()},
            outputs=None if self.outputs is None else self.outputs[rows],
        )

    def unscaled(self) -> Self:
        """Return the same rows, with their weights, in the units that they were given in."""
        rows = empty_rows(*self.raw.shape)
        rows[:] = self.raw
        return replace(
            self,
            X=rows,
            mean=np.zeros_like(self.mean),
            scale=np.ones_like(self.scale),
            spread=self.spread * self.scale,
        )

    def with_schema(self, schema: Schema, X: np.ndarray, scaling: str) -> Self:
        """Return the same rows with other features, in raw units; what splits may use is open."""
        mean, scale, deviation = _affine_map(X, self.sample_weight, scaling)
        rows = np.subtract(X, mean, out=empty_rows(*X.shape))
        rows /= scale
        return replace(
            self,
            X=rows,
            given=X,
            schema=schema,
            mean=mean,
            scale=scale,
            spread=deviation / scale,
            is_split_on=None,
        )

    def with_targets(self, targets: np.ndarray, like: Self | None = None) -> Self:
        """Return the same rows with other raw targets, in the standard units of these or others."""
        if like is None:
            return self._with_raw_targets(targets, None)
        return replace(
            self,
            y=np.ascontiguousarray((targets - like.target_mean) / like.target_scale),
            target_mean=like.target_mean,
            target_scale=like.target_scale,
            given_targets=targets,
        )

    def evolved_for(self, objective: Any) -> Self:
        """Return the same rows with an objective (`evotree.fitness.objectives.as_objective`)."""
        return replace(self, objective=objective)

    def with_extras(self, extras: dict[str, np.ndarray]) -> Self:
        """Return the same rows with other extra columns; an exposure makes rates of targets."""
        if EXPOSURE not in extras:
            return replace(self, extras=extras)
        rates, weight, unit = _as_rates(
            self.raw_targets, self.sample_weight, self.weight_unit, extras[EXPOSURE]
        )
        return replace(
            self,
            y=(rates - self.target_mean) / self.target_scale,
            given_targets=rates,
            sample_weight=weight,
            weight_unit=unit,
            extras=extras,
        )

    def at_exposures(self, exposure: np.ndarray) -> Self:
        """Return the same events at other exposures."""
        rates = self.extras[EVENTS] / exposure
        return replace(
            self,
            y=(rates - self.target_mean) / self.target_scale,
            given_targets=rates,
            sample_weight=self.sample_weight * exposure / self.extras[EXPOSURE],
            extras={**self.extras, EXPOSURE: exposure},
        )

    def penalized(self, term_penalty: float) -> Self:
        """Return the same rows, where the terms of linear leaves have a penalty."""
        objective = self.objective
        penalized = None if objective is None else objective.penalized(term_penalty)
        return self if penalized is objective else self.evolved_for(penalized)

    def like(self, X: np.ndarray, y: np.ndarray) -> Self:
        """Return other raw rows, of weight 1, in the same units and with the same classes."""
        codes: np.ndarray
        outputs = targets = None
        if self.n_classes:
            if unknown := np.setdiff1d(y, self.classes).tolist():
                raise ValueError(
                    f"y has the label {unknown[0]!r}: allowed are {self.classes.tolist()}."
                )
            codes = np.searchsorted(self.classes, y).astype(np.int32)
        else:
            targets = np.array(check_targets(y))
            codes = (targets - self.target_mean) / self.target_scale
            if codes.ndim == 2:
                outputs = codes
                codes = leading_component(outputs, np.ones(len(outputs)))
        return replace(
            self,
            X=np.ascontiguousarray((X - self.mean) / self.scale),
            y=codes,
            sample_weight=np.ones(len(X)),
            given=np.array(X),
            given_targets=targets,
            multiplicity=np.ones(len(X), dtype=np.int64),
            extras={},
            outputs=outputs,
            weight_unit=1.0,
            cv=None,
        )

    def to_raw(self, tree: ObliqueTree) -> ObliqueTree:
        """Map a tree over the features of `X` to one over raw features, which predicts means.

        The hyperplanes are the same ones in other coordinates. Where rounding would take a training
        row to the other side, the threshold moves to the middle of the gap between the sides, so
        that the training rows stay where evolution put them. The tree knows the spread of the
        features and the rows of its nodes; linear models of leaves are left out.
        """
        weights = tree.weights / self.scale
        thresholds = tree.thresholds + weights @ self.mean
        thresholds[tree.is_leaf] = 0.0
        leaves = tree.apply(self.X)
        keep_sides(self.raw, weights, thresholds, tree.subtree_size, leaves)
        samples = node_weights(leaves, self.sample_weight, tree.subtree_size)
        return ObliqueTree(
            weights,
            thresholds,
            tree.subtree_size,
            tree.values
            if self.n_classes
            else self._means(leaves, tree.subtree_size, samples),
            spread=np.where(
                np.ptp(self.raw, axis=0) > 0.0, self.spread * self.scale, 0.0
            ),
            weighted_n_node_samples=samples,
            output_names=self.output_names,
            row_counts=self.count_rows(leaves, tree.subtree_size),
        )

    def _means(
        self, leaves: np.ndarray, subtree_size: np.ndarray, samples: np.ndarray
    ) -> np.ndarray:
        """Return the shares of the classes, or mean targets, of the rows that reach each node."""
        if self.n_classes:
            cells: np.ndarray = self.y[:, np.newaxis] == np.arange(self.n_classes)
        else:
            cells = self.raw_targets.reshape(len(self.y), self.n_outputs)
        means = np.column_stack(
            [
                _means_of_nodes(leaves, cell, self.sample_weight, samples, subtree_size)
                for cell in cells.T.astype(np.float64)
            ]
        )
        return np.where(samples[:, np.newaxis] > 0.0, means, self.target_mean)

    def from_raw(self, tree: ObliqueTree) -> ObliqueTree:
        """Map a tree over raw features to one over the features of `X`, as `to_raw` maps it back.

        The training rows reach the same leaves; values stay, and linear models are left out.
        """
        weights = tree.weights * self.scale
        thresholds = tree.thresholds - tree.weights @ self.mean
        thresholds[tree.is_leaf] = 0.0
        keep_sides(self.X, weights, thresholds, tree.subtree_size, tree.apply(self.raw))
        return ObliqueTree(weights, thresholds, tree.subtree_size, tree.values)

    def refill(self, tree: ObliqueTree) -> ObliqueTree:
        """Return a tree over raw features with the values of the training rows that reach it.

        Nodes that no training row reaches are left out, and splits that have no rows on one side
        with them; and so are linear models of leaves, which are of other rows.
        """
        leaves = tree.apply(self.raw)
        samples = node_weights(leaves, self.sample_weight, tree.subtree_size)
        values = self._means(leaves, tree.subtree_size, samples)
        # Nodes that rows reach, and splits that part them.
        kept = samples > 0.0
        inner = np.flatnonzero(~tree.is_leaf)
        kept[inner] = kept[inner + 1] & kept[inner + 1 + tree.subtree_size[inner + 1]]
        counts = self.count_rows(leaves, tree.subtree_size)
        return ObliqueTree(
            tree.weights[kept],
            tree.thresholds[kept],
            sizes_of_kept(kept, tree.subtree_size),
            values[kept],
            spread=tree.spread,
            weighted_n_node_samples=samples[kept],
            output_names=self.output_names,
            row_counts=None if counts is None else counts[kept],
        )


def _means_of_nodes(
    leaves: np.ndarray,
    numbers: np.ndarray,
    weight: np.ndarray,
    samples: np.ndarray,
    subtree_size: np.ndarray,
) -> np.ndarray:
    """Return the mean of the numbers that reach each node, of which none is out of their range."""
    sums = node_weights(leaves, weight * numbers, subtree_size)
    means = sums / np.where(samples > 0.0, samples, 1.0)
    # Sums are rounded, and those of splits are differences: equal numbers have another mean.
    nodes = np.arange(len(subtree_size))
    ends = np.column_stack([nodes, nodes + subtree_size]).ravel()
    for least, bound, nothing in (
        (np.minimum, np.maximum, np.inf),
        (np.maximum, np.minimum, -np.inf),
    ):
        extremes = np.full(len(nodes) + 1, nothing)
        least.at(extremes, leaves, numbers)
        means = bound(means, least.reduceat(extremes, ends)[::2])
    return means


def keep_sides(
    X: np.ndarray,
    weights: np.ndarray,
    thresholds: np.ndarray,
    subtree_size: np.ndarray,
    leaves: np.ndarray,
) -> None:
    """Move thresholds that rounding took across a row to the middle between the sides."""
    left, right = nearest_projections(X, weights, subtree_size, leaves)
    # The router may round in another way: keep a distance of some roundings.
    slack = 1e-12 * (1.0 + np.abs(weights) @ np.maximum(X.max(axis=0), -X.min(axis=0)))
    inside = (left + slack <= thresholds) & (thresholds <= right - slack)
    moved = np.isfinite(left) & np.isfinite(right) & ~inside
    thresholds[moved] = left[moved] + 0.5 * (right[moved] - left[moved])


def empty_rows(n_rows: int, n_features: int) -> np.ndarray:
    """Return unwritten rows, the first of which begins with a line of the cache."""
    # So do the others, where the length of a row is that of some lines. A row that began anywhere
    # would take one line more, and where they come from memory, these are what takes the time.
    room = np.empty(8 * n_rows * n_features + _LINE, dtype=np.uint8)
    first = -room.ctypes.data % _LINE
    room = room[first : first + 8 * n_rows * n_features]
    return room.view(np.float64).reshape(n_rows, n_features)


@kernel
def nearest_projections(X, weights, subtree_size, leaves):
    """Return the projections nearest to each hyperplane on its two sides."""
    left = np.full(weights.shape[0], -np.inf)
    right = np.full(weights.shape[0], np.inf)
    for i in range(X.shape[0]):
        k = 0
        while subtree_size[k] > 1:
            projection = project(weights[k], X, i)
            second = k + 1 + subtree_size[k + 1]
            if leaves[i] < second:
                left[k] = max(left[k], projection)
                k += 1
            else:
                right[k] = min(right[k], projection)
                k = second
    return left, right


def class_codes(y: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the sorted classes, and the position among them of each label."""
    labels = np.asarray(y)
    try:
        classes, codes = np.unique(labels, return_inverse=True)
    except TypeError as error:
        kinds = sorted({type(label).__name__ for label in labels.ravel().tolist()})
        raise ValueError(
            f"y has labels of the types {', '.join(kinds)}: allowed are numbers, or texts."
        ) from error
    return classes, codes


def check_targets(y: Any) -> np.ndarray:
    """Return targets, float64, and refuse those that data sets cannot have."""
    targets = as_numbers("y", y)
    if not np.isfinite(targets).all():
        raise ValueError(
            "y has targets that are NaN or infinite: drop these rows first."
        )
    return targets


def _check_rows(X: np.ndarray, y: np.ndarray, max_dimensions: int) -> None:
    """Refuse rows that are no table of finite numbers, and others than one label for each."""
    if X.ndim != 2 or 0 in X.shape:
        raise ValueError(
            f"X has shape {X.shape}: allowed are 2 dimensions, both at least 1."
        )
    if not 1 <= y.ndim <= max_dimensions or y.size == 0 or len(y) != len(X):
        raise ValueError(f"y has shape {y.shape}: one label for each of {len(X)} rows.")
    if not np.isfinite(X).all():
        raise ValueError(
            "X has values that are NaN or infinite: impute or drop them first."
        )


def _check_extras(extras: Mapping[str, Any], n_rows: int) -> dict[str, np.ndarray]:
    """Return copies of columns that are not features, each of shape (n_rows,)."""
    arrays = {str(name): np.array(column) for name, column in extras.items()}
    for name, column in arrays.items():
        if column.shape != (n_rows,):
            raise ValueError(
                f"extras[{name!r}] has shape {column.shape}: one value for each row."
            )
    return arrays


def _check_folds(roles: np.ndarray, y: np.ndarray) -> None:
    """Refuse folds without rows to train on, or to hold out, and those that all tell nothing."""
    told = []  # of the folds, whether what they train on differs
    for fold, role in enumerate(roles.T):
        if not ((role == TRAINED_ON).any() and (role == HELD_OUT).any()):
            raise ValueError(
                f"cv has no rows to train on, or to hold out, in the pair {fold}: allowed are "
                "pairs with rows of weights above 0 in both parts."
            )
        told.append(len(np.unique(y[role == TRAINED_ON], axis=0)) > 1)
    silent = ", ".join(str(fold) for fold in np.flatnonzero(~np.array(told)))
    held = f"cv has one class, or one target, to train on in the pairs {silent}"
    if not any(told) and len(np.unique(y, axis=0)) > 1:
        raise ValueError(f"{held}: allowed are pairs of which one has two or more.")
    if any(told) and not all(told):
        warnings.warn(f"{held}, which tell little.", stacklevel=level_of_user())


def check_weight(
    sample_weight: Any,
    n_rows: int,
    name: str = "sample_weight",
    is_part: bool = False,
) -> np.ndarray:
    """Return weights of shape (n_rows,), float64, and refuse those that data sets cannot have.

    Those of a part of the rows may all be 0.
    """
    if sample_weight is None:
        return np.ones(n_rows)
    weight = np.array(as_numbers(name, sample_weight))
    if weight.shape != (n_rows,):
        raise ValueError(
            f"{name} has shape {weight.shape}: one weight for each of {n_rows} rows."
        )
    if not np.isfinite(weight).all() or weight.min(initial=0.0) < 0.0:
        raise ValueError(f"{name} has values that are negative, NaN or infinite.")
    if is_part:
        return weight
    if not weight.any():
        raise ValueError(f"{name} is zero everywhere: at least one row needs a weight.")
    with np.errstate(over="ignore"):
        total = weight.sum()
    if not 1.0 / LARGEST <= total <= LARGEST:
        raise ValueError(
            f"{name} has the sum {total:g}: allowed are sums from {1.0 / LARGEST:g} to "
            f"{LARGEST:g}."
        )
    return weight


def _in_own_unit(weight: np.ndarray) -> tuple[np.ndarray, float]:
    """Return weights whose sum is a number of rows, and the unit that they are in."""
    # Multiples of the least weight are numbers of rows. The sum of others is Kish's number of rows;
    # their ratios are rounded to 30 bits, so that weights that were multiplied by a number are the
    # same to the last bit; the factor to 20 bits, so that sums of whole numbers, times this factor,
    # are exact: classes of equal weight stay equal.
    least = weight[weight > 0.0].min()
    largest = weight.max()
    unit = least if largest < 2.0**24 * least else largest
    share = _rounded(weight / unit, 30)
    whole = np.rint(share)
    # The weights may be rounded themselves.
    if (np.abs(share - whole) <= 2.0**-26 * share).all():
        return whole, float(unit)
    part = share / share.max()
    factor = float(_rounded(part.sum() / (part @ part) / share.max(), 20))
    return share * factor, float(unit / factor)


def _as_rates(
    events: np.ndarray, weight: np.ndarray, unit: float, exposure: np.ndarray
) -> tuple[np.ndarray, np.ndarray, float]:
    """Return rates, their weights with the same sum, and the unit of these."""
    mean = float(np.average(exposure, weights=weight))
    return (events.T / exposure).T, weight * (exposure / mean), unit * mean


def _rounded(numbers: Any, n_bits: int) -> Any:
    """Return numbers with so many significant bits."""
    mantissa, exponent = np.frexp(numbers)
    return np.ldexp(np.rint(np.ldexp(mantissa, n_bits)), exponent - n_bits)


def _check_magnitudes(columns: np.ndarray, name: Callable[[Any], str]) -> None:
    """Refuse columns whose squares overflow, or whose spread vanishes when it is squared."""
    low = columns.min(axis=0)
    high = columns.max(axis=0)
    spread = high - low
    is_wrong = np.maximum(-low, high) > LARGEST
    is_wrong |= (spread > 0.0) & (spread < 1.0 / LARGEST)
    for j in np.flatnonzero(is_wrong):
        raise ValueError(
            f"{name(j)} has values from {low[j]:g} to {high[j]:g}: allowed are magnitudes up to "
            f"{LARGEST:g} and differences from {1.0 / LARGEST:g}; use other units."
        )


def _canonical_rows(
    X: np.ndarray, codes: np.ndarray, weight: np.ndarray, extras: dict[str, np.ndarray]
) -> tuple[np.ndarray, np.ndarray, np.ndarray, dict[str, np.ndarray], np.ndarray]:
    """Return the distinct rows with weight, sorted, their summed weights, and how many each was."""
    if not weight.all():
        has_weight = weight > 0.0
        X, codes, weight = (array[has_weight] for array in (X, codes, weight))
        extras = {name: column[has_weight] for name, column in extras.items()}
    # Rows that differ in an extra column stay apart.
    extra_codes = [
        np.unique(column, return_inverse=True)[1] for column in extras.values()
    ]
    keys = [*X.T, *np.atleast_2d(codes.T), *extra_codes]
    # By weights last: a sum of floats depends on their order.
    order = np.lexsort([weight, *keys[::-1]])
    is_new = np.arange(order.size) == 0
    for key in keys:
        is_new[1:] |= key[order[1:]] != key[order[:-1]]
    first = np.flatnonzero(is_new)
    kept = order[first]
    rows = X[kept]
    rows += 0.0  # equal rows may differ in the sign of a zero
    extras = {name: column[kept] for name, column in extras.items()}
    times = np.diff(first, append=order.size)
    return rows, codes[kept], np.add.reduceat(weight[order], first), extras, times


def leading_component(outputs: np.ndarray, sample_weight: np.ndarray) -> np.ndarray:
    """Return the score of each row's outputs on their first principal component.

    A thousandth of the scores of the others is added, so that rows with unequal outputs have
    unequal targets. The sign is that for which the largest target is above 0.
    """
    n_rows, n_outputs = outputs.shape
    if n_rows == 0:
        return np.zeros(0)
    centred = outputs - sample_weight @ outputs / sample_weight.sum()
    _, directions = np.linalg.eigh((centred * sample_weight[:, np.newaxis]).T @ centred)
    scores = centred @ directions[:, ::-1]
    shares = 1e-3 / np.arange(1.0, n_outputs + 1.0)
    shares[0] = 1.0
    target: np.ndarray = scores @ shares / np.sqrt(n_outputs)
    return -target if target[np.abs(target).argmax()] < 0.0 else target


def _standardized(
    targets: np.ndarray, weight: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the columns of targets in standard units, their means and standard deviations."""
    location, spread = _location_and_scale(targets, weight)
    return np.ascontiguousarray((targets - location) / spread), location, spread


def _affine_map(
    X: np.ndarray, weight: np.ndarray, scaling: str
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return what features are centred and divided by, and their standard deviations."""
    mean, deviation = _location_and_scale(X, weight)
    if scaling == "standard":
        return mean, deviation, deviation
    if scaling == "common":
        return mean, np.full_like(deviation, np.sqrt(np.mean(deviation**2))), deviation
    middle = X.min(axis=0) + 0.5 * (X.max(axis=0) - X.min(axis=0))
    scale = (X - middle).max(axis=0)
    scale[scale == 0.0] = 1.0
    return middle, scale, deviation


def _location_and_scale(
    X: np.ndarray, weight: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the weighted mean and standard deviation of each feature; 1 where that is 0."""
    share = weight / weight.sum()
    mean = share @ X
    deviation = X - mean
    scale = np.sqrt(share @ np.square(deviation, out=deviation))
    constant = X.min(axis=0) == X.max(axis=0)
    mean[constant] = X[0, constant]
    scale[constant | ~np.isfinite(scale) | (scale == 0.0)] = 1.0
    return mean, scale


# ---- folds and bags, and copies with noise -------------------------------------------------------


def fold_count(dataset: Dataset, n_folds: int) -> int:
    """Return how many folds there are where users ask for no others; 0 if there can be none."""
    if isinstance(dataset.cv, np.ndarray):
        return dataset.cv.shape[1]
    n_folds = min(n_folds if dataset.cv is None else dataset.cv, dataset.n_groups)
    return n_folds if n_folds > 1 else 0


def make_folds(dataset: Dataset, n_folds: int, stream: np.ndarray) -> np.ndarray:
    """Return the fold of each row as given, of shape (n_rows,), dealt out at random.

    Groups are dealt out whole. Where the user has folds, the part of each row is returned.
    """
    if isinstance(dataset.cv, np.ndarray):
        return dataset.extras[PART][dataset.distinct_of]
    rng = as_generator(stream)
    if dataset.groups is not None:
        return deal_groups(strata_of(dataset), dataset.group_of, n_folds, rng)
    y = dataset.y[dataset.distinct_of]
    n_rows = len(y)
    shuffled = rng.permutation(n_rows)
    by_class = shuffled[np.argsort(y[shuffled], kind="stable")]
    in_turn = np.arange(n_rows) % n_folds
    if dataset.n_classes == 0:  # the order of targets leaves nothing to chance
        rounds = np.tile(np.arange(n_folds), (-(-n_rows // n_folds), 1))
        in_turn = rng.permuted(rounds, axis=1).ravel()[:n_rows]
    folds = np.empty(n_rows, dtype=np.int64)
    folds[by_class] = in_turn
    return folds


def strata_of(dataset: Dataset) -> np.ndarray:
    """Return the classes of the given rows; of targets, in which tenth of the rows each is."""
    y = dataset.y[dataset.distinct_of]
    if dataset.n_classes:
        return y
    n_rows = y.shape[0]
    rank = np.empty(n_rows, dtype=np.int64)
    rank[np.argsort(y, kind="stable")] = np.arange(n_rows)
    return rank * 10 // n_rows


def shares_of_groups(strata: np.ndarray, groups: np.ndarray) -> np.ndarray:
    """Return which share of the rows of each stratum a group has, (n_groups, n_strata)."""
    counts = np.zeros((groups.max() + 1, strata.max() + 1))
    np.add.at(counts, (groups, strata), 1.0)
    return counts / np.maximum(counts.sum(axis=0), 1.0)


def deal_groups(
    strata: np.ndarray, groups: np.ndarray, n_folds: int, rng: np.random.Generator
) -> np.ndarray:
    """Return the fold of each row: groups stay whole, and folds have like shares of all strata."""
    # The largest go first, each to the fold by which the sum of squares of all shares, and of the
    # numbers of rows, grows least. scikit-learn's StratifiedGroupKFold tries each group in each
    # fold: it took 30 to 70 times as long for 1,000 to 50,000 groups of 1 to 8 rows and five folds.
    size = np.bincount(groups) / len(groups)
    shares = np.column_stack([shares_of_groups(strata, groups), size])
    shuffled = rng.permutation(len(shares))
    magnitude = np.square(shares[shuffled]).sum(axis=1)
    sums = np.zeros((n_folds, shares.shape[1]))
    fold_of = np.empty(len(shares), dtype=np.int64)
    for group in shuffled[np.argsort(-magnitude, kind="stable")]:
        fold = int((sums * shares[group]).sum(axis=1).argmin())
        fold_of[group] = fold
        sums[fold] += shares[group]
    return fold_of[groups]


def hold_out(
    dataset: Dataset, fraction: float, stream: np.ndarray
) -> tuple[Dataset, Dataset]:
    """Return the rows that are not held out, and those that are.

    These are a fraction of the rows, or groups, dealt out at random; or what the last of the folds
    holds out that a user has asked for.
    """
    if dataset.cv is not None:
        n_folds = fold_count(dataset, 0) or 2
        return split_folds(dataset, make_folds(dataset, n_folds, stream), n_folds - 1)
    n_groups = dataset.n_groups
    n_held_out = min(n_groups - 1, round(fraction * n_groups))
    is_held_out = np.zeros(n_groups, dtype=bool)
    is_held_out[as_generator(stream).permutation(n_groups)[:n_held_out]] = True
    return parted(
        dataset, np.where(is_held_out, HELD_OUT, TRAINED_ON)[dataset.group_of]
    )


def split_folds(
    dataset: Dataset, folds: np.ndarray, fold: int
) -> tuple[Dataset, Dataset]:
    """Return the rows of all folds but one, and the rows of that one.

    Where the user has folds, it is what one of these trains on, and what it holds out.
    """
    if isinstance(dataset.cv, np.ndarray):
        role = dataset.cv[folds, fold]
    else:
        role = np.where(folds == fold, HELD_OUT, TRAINED_ON)
    return parted(dataset, role)


def parted(dataset: Dataset, role: np.ndarray) -> tuple[Dataset, Dataset]:
    """Return the rows that are trained on, and those held out, by what each given row is for.

    Exposures that depend on all rows are made of the former: nothing is known of rows held out.
    """
    rows, held_out = (
        dataset.subsample(np.flatnonzero(role == one)) for one in (TRAINED_ON, HELD_OUT)
    )
    if dataset.exposures_of is None:
        return rows, held_out
    weight = rows.sample_weight / rows.extras[EXPOSURE]
    exposures = dataset.exposures_of(rows.extras, weight)
    if exposures is None:
        return rows, held_out
    renewed = rows.at_exposures(exposures(rows.extras))
    factor = rows.total_weight / renewed.total_weight
    held_out = held_out.at_exposures(exposures(held_out.extras))
    return (
        replace(renewed, sample_weight=factor * renewed.sample_weight),
        replace(held_out, sample_weight=factor * held_out.sample_weight),
    )


def jitter(
    dataset: Dataset, noise: float, n_copies: int, stream: np.ndarray
) -> Dataset:
    """Return a data set with noisy copies of its rows, or with noise in place of copies."""
    # The quality of a tree there is that on the training rows, smoothed: a row near a hyperplane is
    # on its side in some of its copies alone. For models that are smooth themselves training with
    # noise is the ridge penalty (Bishop 1995, "Training with noise is equivalent to Tikhonov
    # regularization", Neural Computation 7).
    rng = as_generator(stream)
    # Unmerged: a few copies of what many rows are would be told apart by chance.
    rows = dataset.unmerged()
    varies = dataset.X.min(axis=0) != dataset.X.max(axis=0)
    n_rows, n_features = rows.X.shape
    n_kept = dataset.n_distinct if n_copies else 0
    X = empty_rows(n_kept + max(1, n_copies) * n_rows, n_features)
    X[:n_kept] = dataset.X[:n_kept]
    # In place: of many columns each array of the copies' size is most of what a fit takes.
    copies = X[n_kept:].reshape(-1, n_rows, n_features)
    rng.standard_normal(out=copies)
    copies *= noise * dataset.spread * varies
    copies += rows.X
    known = dataset if n_copies else rows  # the first rows, which are given ones

    def with_copies(merged: Any, unmerged: Any) -> np.ndarray:
        parts = [unmerged] * max(1, n_copies)
        return np.concatenate([merged, *parts] if n_copies else parts)

    has_outputs = dataset.outputs is not None
    return replace(
        known,
        X=X,
        y=with_copies(dataset.y, rows.y),
        sample_weight=with_copies(dataset.sample_weight, rows.sample_weight)
        / (n_copies + 1),
        outputs=with_copies(dataset.outputs, rows.outputs) if has_outputs else None,
        given=None,
        given_targets=None,
        multiplicity=np.pad(known.multiplicity, (0, len(X) - len(known.X))),
        extras={
            name: with_copies(dataset.extras[name], rows.extras[name])
            for name in rows.extras
        },
    )


def bootstrap(dataset: Dataset, rng: np.random.Generator, max_rows: int) -> Dataset:
    """Return a bootstrap sample: rows drawn with replacement, in proportion to their weights."""
    n_draws = min(max_rows, len(dataset.distinct_of))
    share = dataset.sample_weight / dataset.total_weight
    share = share / np.maximum(dataset.multiplicity, 1)
    n_times = rng.multinomial(n_draws, share[dataset.distinct_of])
    weight = np.bincount(dataset.distinct_of, n_times, dataset.n_distinct)
    rows = np.flatnonzero(weight)
    multiplicity = np.bincount(
        dataset.distinct_of[n_times > 0], minlength=dataset.n_distinct
    )
    multiplicity = np.where(dataset.multiplicity > 0, multiplicity, 0)
    sample = dataset.take(rows, weight[rows], multiplicity[rows])
    return replace(sample, weight_unit=1.0)
