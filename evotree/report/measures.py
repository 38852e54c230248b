"""How well a tree predicts the rows of a report, beside the tree of one leaf."""

from __future__ import annotations

from typing import Any

import numpy as np

from evotree.soft_sides import SoftSides
from evotree.tree import ObliqueTree, node_weights

N_BINS = 10
"""Bins of the calibration curve."""
MAX_CONFUSED = 12
"""Most classes whose confusion matrix is shown."""


def measures(
    tree: ObliqueTree, rows: np.ndarray, y: np.ndarray, sides: SoftSides | None, is_classes: bool
) -> dict[str, Any]:
    """Return how well a tree predicts some rows.

    Parameters
    ----------
    tree : ObliqueTree
        The tree.
    rows : ndarray of shape (n_rows, n_features)
        Encoded rows, at least one.
    y : ndarray of shape (n_rows,)
        Positions of their classes, or their targets.
    sides : SoftSides or None
        What probabilities are made of; None for the shares of leaves.
    is_classes : bool
        Whether `y` holds classes.

    Returns
    -------
    dict
        ``figures``, triples of a name, the figure and that of the baseline, a tree of one leaf;
        ``reached`` and ``lost``, the rows that reach each node, and how many of them are predicted
        wrongly, or their squared errors. Of classes also ``confusion`` and ``calibration``.
    """
    leaves = tree.apply(rows)
    found: dict[str, Any] = {}
    if is_classes:
        shares = tree.values[leaves] if sides is None else sides.predict(tree, rows)
        labels = tree.labels[leaves]
        losses = (labels != y).astype(np.float64)
        base = np.broadcast_to(tree.values[0], shares.shape)
        ours = _of_classes(y, labels, shares)
        others = _of_classes(y, np.full(len(y), tree.labels[0]), base)
        found["calibration"] = calibration(y, labels, shares)
        n_classes = shares.shape[1]
        if n_classes <= MAX_CONFUSED:
            counts = np.bincount(y * n_classes + labels, minlength=n_classes**2)
            found["confusion"] = counts.reshape(n_classes, n_classes).tolist()
    else:
        predicted = tree.predict_value(rows)[:, 0]
        losses = (y - predicted) ** 2
        ours, others = _of_targets(y, predicted), _of_targets(y, np.full(len(y), tree.values[0, 0]))
    found["figures"] = [[name, ours[name], others[name]] for name in ours]
    found["reached"] = node_weights(leaves, np.ones(len(y)), tree.subtree_size).astype(int).tolist()
    found["lost"] = [float(f"{v:.6g}") for v in node_weights(leaves, losses, tree.subtree_size)]
    return found


def _of_classes(y: np.ndarray, labels: np.ndarray, shares: np.ndarray) -> dict[str, float | None]:
    """Return figures of predicted classes and probabilities."""
    right = labels == y
    present = np.unique(y)
    own = np.clip(shares[np.arange(len(y)), y], 1e-15, 1.0)
    return {
        "accuracy": float(right.mean()),
        "balanced accuracy": float(np.mean([right[y == c].mean() for c in present])),
        "log loss": float(-np.log(own).mean()),
        "Brier score": float(np.mean((shares**2).sum(axis=1) - 2.0 * own + 1.0)),
    }


def _of_targets(y: np.ndarray, predicted: np.ndarray) -> dict[str, float | None]:
    """Return figures of predicted numbers."""
    errors = y - predicted
    whole = float(((y - y.mean()) ** 2).sum())
    return {
        "R²": 1.0 - float((errors**2).sum()) / whole if whole > 0.0 else None,
        "RMSE": float(np.sqrt((errors**2).mean())),
        "mean absolute error": float(np.abs(errors).mean()),
    }


def calibration(y: np.ndarray, labels: np.ndarray, shares: np.ndarray) -> list[list[float]]:
    """Return how often what is given a probability is so.

    Parameters
    ----------
    y : ndarray of shape (n_rows,), int
        Positions of the classes.
    labels : ndarray of shape (n_rows,), int
        Positions of the predicted ones.
    shares : ndarray of shape (n_rows, n_classes)
        Probabilities. Of two classes that of the second is looked at, of more that of the predicted
        class.

    Returns
    -------
    list of [float, float, int]
        Of each of ten equal bins that has rows: the mean probability, the share of the rows where
        it is so, and their number.
    """
    if shares.shape[1] == 2:
        given, is_so = shares[:, 1], y == 1
    else:
        given, is_so = shares[np.arange(len(y)), labels], labels == y
    bins = np.minimum((given * N_BINS).astype(int), N_BINS - 1)
    counts = np.bincount(bins, minlength=N_BINS)
    means = np.bincount(bins, given, minlength=N_BINS) / np.maximum(counts, 1)
    shares_so = np.bincount(bins, is_so, minlength=N_BINS) / np.maximum(counts, 1)
    return [[float(means[b]), float(shares_so[b]), int(counts[b])] for b in np.flatnonzero(counts)]
