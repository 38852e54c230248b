"""Training data as the engine sees it: centred, scaled, canonical, read-only."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from evotree._jit import kernel
from evotree.tree import ObliqueTree, project

SCALINGS = ("standard", "common", "minmax")
"""Names of the ways to scale features."""

_LINE = 128  # bytes; processors fetch lines of 64 by pairs
_LARGEST = 1e100  # magnitude whose square, and the sum of some squares, is finite


@dataclass(frozen=True, eq=False)
class Dataset:
    """Validated training rows in the units that trees evolve in.

    The rows are *canonical*: rows without weight are left out, equal rows of one class, or one
    target, are merged and their weights added, and the rows are sorted. So a weight of two is the
    same as a row given twice, and the order of the rows does not matter. Rows that differ in an
    extra column stay apart.

    Attributes
    ----------
    X : ndarray of shape (n_rows, n_features), float64, C-contiguous
        Rows: ``(raw - mean) / scale``.
    y : ndarray of shape (n_rows,)
        Class codes, positions in `classes`, int32; for regression the targets less their mean, in
        units of their standard deviation, float64.
    sample_weight : ndarray of shape (n_rows,), float64
        Weights, all above 0.
    classes : ndarray of shape (n_classes,)
        Class labels, sorted; empty for regression.
    feature_names : tuple of str
        Names of the features.
    mean, scale : ndarray of shape (n_features,)
        The affine map to raw units.
    spread : ndarray of shape (n_features,)
        Standard deviations of the columns of `X`; 1 for a constant one.
    raw : ndarray of shape (n_rows, n_features)
        The same rows in raw units.
    target_mean, target_scale : float
        The affine map of the targets to raw units; 0 and 1 for classes.
    extras : dict of str to ndarray of shape (n_rows,)
        Columns that are no features, such as a group or a cost, in the order of the rows.
    """

    X: np.ndarray
    y: np.ndarray
    sample_weight: np.ndarray
    classes: np.ndarray
    feature_names: tuple[str, ...]
    mean: np.ndarray
    scale: np.ndarray
    spread: np.ndarray
    raw: np.ndarray
    target_mean: float = 0.0
    target_scale: float = 1.0
    extras: dict[str, np.ndarray] = field(default_factory=dict)

    @classmethod
    def from_arrays(
        cls,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        feature_names: tuple[str, ...] | None = None,
        scaling: str = "standard",
        task: str = "classification",
        extras: Mapping[str, Any] | None = None,
    ) -> Dataset:
        """Make a data set of raw rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Raw rows, of magnitudes up to 1e100; a feature that varies does so by 1e-100 or more.
        y : array-like of shape (n_samples,)
            Class labels, or targets with the same bounds.
        sample_weight : array-like of shape (n_samples,), optional
            Weights, at least 0, with a sum from 1e-100 to 1e100; 1 for every row by default.
        feature_names : tuple of str, optional
            The names of the columns of a table; of other rows ``x0``, ``x1``, ...
        scaling : {"standard", "common", "minmax"}, default="standard"
            ``"standard"`` divides each feature by its standard deviation, so that the units of the
            features do not matter; ``"common"`` divides all by one number, so that directions
            between rows are those of the raw data; ``"minmax"`` takes each feature to [-1, 1].
        task : {"classification", "regression"}, default="classification"
            What `y` holds.
        extras : mapping of str to array-like of shape (n_samples,), optional
            Columns that are no features, for an ``evaluate`` that reads them from the data set.

        Returns
        -------
        Dataset
            The data set.

        Raises
        ------
        ValueError
            If shapes do not fit, values are not finite or out of bounds, no row has weight, or
            there is no such scaling or task.
        """
        if scaling not in SCALINGS:
            raise ValueError(f"scaling={scaling!r}: allowed are {', '.join(map(repr, SCALINGS))}.")
        if task not in ("classification", "regression"):
            raise ValueError(f"task={task!r}: allowed are 'classification' and 'regression'.")
        columns = getattr(X, "columns", None)
        X = np.ascontiguousarray(X, dtype=np.float64)
        codes: np.ndarray
        if task == "classification":
            classes, codes = np.unique(np.asarray(y), return_inverse=True)
        else:
            classes, codes = np.empty(0), _check_targets(y)
        if X.ndim != 2 or X.shape[0] == 0 or X.shape[1] == 0:
            raise ValueError(f"X has shape {X.shape}: allowed are 2 dimensions, both at least 1.")
        if codes.shape != (X.shape[0],):
            raise ValueError(f"y has shape {codes.shape}: one label for each of {X.shape[0]} rows.")
        if feature_names is None:
            named = [f"x{j}" for j in range(X.shape[1])] if columns is None else columns
            feature_names = tuple(map(str, named))
        if len(feature_names) != X.shape[1]:
            raise ValueError(
                f"feature_names has {len(feature_names)} names: one for each of {X.shape[1]} "
                "features."
            )
        if not np.isfinite(X).all():
            raise ValueError("X has values that are NaN or infinite: impute or drop them first.")
        weight = _check_weight(sample_weight, X.shape[0])
        columns_apart = _check_extras(extras or {}, X.shape[0])
        X, codes, weight, columns_apart = _canonical_rows(X, codes, weight, columns_apart)
        _check_magnitudes(X, lambda j: f"X, in the column {feature_names[j]!r},")
        mean, deviation = _location_and_scale(X, weight)
        scale = deviation
        if scaling == "common":
            scale = np.full_like(deviation, np.sqrt(np.mean(deviation**2)))
        elif scaling == "minmax":
            mean = X.min(axis=0) + 0.5 * (X.max(axis=0) - X.min(axis=0))
            scale = (X - mean).max(axis=0)
            scale[scale == 0.0] = 1.0
        target_mean, target_scale = 0.0, 1.0
        if task == "regression":
            _check_magnitudes(codes[:, None], lambda _: "y")
            location, spread = _location_and_scale(codes[:, None], weight)
            target_mean, target_scale = float(location[0]), float(spread[0])
            codes = (codes - target_mean) / target_scale
        rows = empty_rows(*X.shape)
        np.subtract(X, mean, out=rows)
        rows /= scale
        dataset = cls(
            X=rows,
            y=codes.astype(np.int32 if task == "classification" else np.float64),
            sample_weight=weight,
            classes=classes,
            feature_names=feature_names,
            mean=mean,
            scale=scale,
            spread=deviation / scale,
            raw=X,
            target_mean=target_mean,
            target_scale=target_scale,
            extras=columns_apart,
        )
        dataset.freeze()
        return dataset

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.freeze()  # a pickle does not keep the flags
