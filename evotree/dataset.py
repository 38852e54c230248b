"""Training data as the engine sees it: centred, scaled, canonical, read-only."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from evotree.tree import ObliqueTree


@dataclass(frozen=True, eq=False)
class Dataset:
    """Validated training rows in the units that trees evolve in.

    The rows are *canonical*: rows without weight are left out, equal rows of one class are merged
    and their weights added, and the rows are sorted. So a weight of two is the same as a row given
    twice, and the order of the rows does not matter.

    Attributes
    ----------
    X : ndarray of shape (n_rows, n_features), float64, C-contiguous
        Rows: ``(raw - mean) / scale``.
    y : ndarray of shape (n_rows,), int32
        Class codes, positions in `classes`.
    sample_weight : ndarray of shape (n_rows,), float64
        Weights, all above 0.
    classes : ndarray of shape (n_classes,)
        Class labels, sorted.
    feature_names : tuple of str
        Names of the features.
    mean, scale : ndarray of shape (n_features,)
        The affine map to raw units.
    spread : ndarray of shape (n_features,)
        Standard deviations of the columns of `X`; 1 for a constant one.
    raw : ndarray of shape (n_rows, n_features)
        The same rows in raw units.
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

    @classmethod
    def from_arrays(
        cls,
        X: np.ndarray,
        y: np.ndarray,
        sample_weight: np.ndarray | None = None,
        feature_names: tuple[str, ...] | None = None,
        scaling: str = "standard",
    ) -> Dataset:
        """Make a data set of raw rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Raw rows, finite.
        y : array-like of shape (n_samples,)
            Class labels.
        sample_weight : array-like of shape (n_samples,), optional
            Weights, at least 0, some above 0; 1 for every row by default.
        feature_names : tuple of str, optional
            ``x0``, ``x1``, ... by default.
        scaling : {"standard", "common"}, default="standard"
            ``"standard"`` divides each feature by its standard deviation, so that the units of the
            features do not matter; ``"common"`` divides all by one number, so that directions
            between rows are those of the raw data.

        Returns
        -------
        Dataset
            The data set.

        Raises
        ------
        ValueError
            If shapes do not fit, values are not finite, no row has weight, or there is no such
            scaling.
        """
        if scaling not in ("standard", "common"):
            raise ValueError(f"scaling={scaling!r}: allowed are 'standard' and 'common'.")
        X = np.ascontiguousarray(X, dtype=np.float64)
        classes, codes = np.unique(np.asarray(y), return_inverse=True)
        if X.ndim != 2 or X.shape[0] == 0 or X.shape[1] == 0:
            raise ValueError(f"X has shape {X.shape}: allowed are 2 dimensions, both at least 1.")
        if codes.shape != (X.shape[0],):
            raise ValueError(f"y has shape {codes.shape}: one label for each of {X.shape[0]} rows.")
        if not np.isfinite(X).all():
            raise ValueError("X has values that are NaN or infinite: impute or drop them first.")
        weight = _check_weight(sample_weight, X.shape[0])
        X, codes, weight = _canonical_rows(X, codes, weight)
        mean, deviation = _location_and_scale(X, weight)
        scale = deviation
        if scaling == "common":
            scale = np.full_like(deviation, np.sqrt(np.mean(deviation**2)))
        if feature_names is None:
            feature_names = tuple(f"x{j}" for j in range(X.shape[1]))
        dataset = cls(
            X=(X - mean) / scale,
            y=codes.astype(np.int32),
            sample_weight=weight,
            classes=classes,
            feature_names=feature_names,
            mean=mean,
            scale=scale,
            spread=deviation / scale,
            raw=X,
        )
        for array in vars(dataset).values():
            if isinstance(array, np.ndarray):
                array.flags.writeable = False
        return dataset

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return self.classes.shape[0]

    @property
    def total_weight(self) -> float:
        """Sum of the weights of all rows."""
        return float(self.sample_weight.sum())

    def to_raw(self, tree: ObliqueTree) -> ObliqueTree:
        """Map a tree over the features of `X` to one over raw features.

        The hyperplanes are the same ones in other coordinates. Where rounding would take a training
        row to the other side, the threshold moves to the middle of the gap between the sides, so
        that the training rows stay where evolution put them.

        Parameters
        ----------
        tree : ObliqueTree
            A tree over ``X``.

        Returns
        -------
        ObliqueTree
            A tree over raw rows.
        """
        weights = tree.weights / self.scale
        thresholds = tree.thresholds + weights @ self.mean
        thresholds[tree.is_leaf] = 0.0
        leaves = tree.apply(self.X)
        for k in map(int, np.flatnonzero(~tree.is_leaf)):
            end_left, end = tree.right(k), k + tree.subtree_size[k]
            projection = self.raw @ weights[k]
            left = projection[(leaves > k) & (leaves < end_left)]
            right = projection[(leaves >= end_left) & (leaves < end)]
            nearest_left = left.max(initial=-np.inf)
            nearest_right = right.min(initial=np.inf)
            # The router may sum in another order than `@`: keep a distance of some roundings.
            slack = 1e-12 * (1.0 + np.abs(weights[k]) @ np.abs(self.raw).max(axis=0))
            inside = nearest_left + slack <= thresholds[k] <= nearest_right - slack
            if not inside and np.isfinite(nearest_right - nearest_left):
                thresholds[k] = nearest_left + 0.5 * (nearest_right - nearest_left)
        return ObliqueTree(weights, thresholds, tree.subtree_size, tree.values)


def _check_weight(sample_weight: np.ndarray | None, n_samples: int) -> np.ndarray:
    if sample_weight is None:
        return np.ones(n_samples)
    weight = np.array(sample_weight, dtype=np.float64)
    if weight.shape != (n_samples,):
        raise ValueError(
            f"sample_weight has shape {weight.shape}: one weight for each of {n_samples} rows."
        )
    if not np.isfinite(weight).all() or weight.min() < 0.0:
        raise ValueError("sample_weight has values that are negative, NaN or infinite.")
    if not weight.any():
        raise ValueError("sample_weight is zero everywhere: at least one row needs a weight.")
    return weight


def _canonical_rows(
    X: np.ndarray, codes: np.ndarray, weight: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the distinct pairs of row and class with weight, sorted, and their summed weights."""
    X, codes, weight = X[weight > 0.0], codes[weight > 0.0], weight[weight > 0.0]
    order = np.lexsort((codes, *X.T[::-1]))
    X, codes, weight = X[order], codes[order], weight[order]
    is_new = np.ones(X.shape[0], dtype=bool)
    is_new[1:] = (codes[1:] != codes[:-1]) | (X[1:] != X[:-1]).any(axis=1)
    first = np.flatnonzero(is_new)
    return X[first], codes[first], np.add.reduceat(weight, first)


def _location_and_scale(X: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the weighted mean and standard deviation of each feature; 1 where that is 0."""
    share = weight / weight.sum()
    mean = share @ X
    scale = np.sqrt(share @ (X - mean) ** 2)
    constant = X.min(axis=0) == X.max(axis=0)
    mean[constant] = X[0, constant]
    scale[constant | ~np.isfinite(scale) | (scale == 0.0)] = 1.0
    return mean, scale
