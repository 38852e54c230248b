"""How well a tree or forest predicts the rows of a report, beside the tree of one leaf."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from evotree.soft_sides import SoftSides
from evotree.tree import ObliqueTree, mean_of_trees, node_weights

N_BINS = 10
"""Bins of the calibration curve."""
MAX_CONFUSED = 12
"""Most classes whose confusion matrix is shown."""
BANDS = (1.0, 0.9, 0.75, 0.5, 0.0)
"""Least shares of the trees that vote for the class of a forest, of each group of rows."""


def measures(
    tree: ObliqueTree, rows: np.ndarray, y: np.ndarray, sides: SoftSides | None, is_classes: bool
) -> dict[str, Any]:
    """Return how well a tree predicts some rows."""
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


def vote_measures(
    trees: Sequence[ObliqueTree], rows: np.ndarray, y: np.ndarray | None, is_classes: bool
) -> dict[str, Any]:
    """Return how far the trees of a forest agree, and how well their vote predicts."""
    vote = mean_of_trees(trees, rows)
    each = np.stack([tree.predict_value(rows) for tree in trees])
    if not is_classes:
        apart = each[:, :, 0] - vote[:, 0]
        found: dict[str, Any] = {"agreement": np.sqrt((apart**2).mean(axis=1)).tolist()}
        if y is not None:
            base = np.full(len(y), np.mean([tree.values[0, 0] for tree in trees]))
            of_each = [_of_targets(y, one[:, 0]) for one in each]
            found["figures"] = _beside(_of_targets(y, vote[:, 0]), of_each, _of_targets(y, base))
        return found
    labels = vote.argmax(axis=1)
    agrees = each.argmax(axis=2) == labels
    found = {"agreement": agrees.mean(axis=1).tolist()}
    right = None if y is None else labels == y
    band = np.argmax(agrees.mean(axis=0)[:, np.newaxis] >= BANDS, axis=1)
    found["bands"] = [
        [least, int((band == at).sum()), None if right is None else int(right[band == at].sum())]
        for at, least in enumerate(BANDS)
        if (band == at).any()
    ]
    if y is not None:
        root = np.mean([tree.values[0] for tree in trees], axis=0)
        base = np.broadcast_to(root, vote.shape)
        of_each = [_of_classes(y, one.argmax(axis=1), one) for one in each]
        others = _of_classes(y, base.argmax(axis=1), base)
        found["figures"] = _beside(_of_classes(y, labels, vote), of_each, others)
    return found


def _beside(
    vote: dict[str, float | None],
    each: Sequence[dict[str, float | None]],
    base: dict[str, float | None],
) -> list[list[Any]]:
    """Return figures of a vote beside the mean ones of its trees, and those of one leaf."""
    rows = []
    for name, ours in vote.items():
        known = [one[name] for one in each]
        mean = None if None in known else float(np.mean(known))  # type: ignore[arg-type]
        rows.append([name, ours, mean, base[name]])
    return rows


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
    """Return how often what is given a probability is so."""
    if shares.shape[1] == 2:
        given, is_so = shares[:, 1], y == 1
    else:
        given, is_so = shares[np.arange(len(y)), labels], labels == y
    bins = np.minimum((given * N_BINS).astype(int), N_BINS - 1)
    counts = np.bincount(bins, minlength=N_BINS)
    means = np.bincount(bins, given, minlength=N_BINS) / np.maximum(counts, 1)
    shares_so = np.bincount(bins, is_so, minlength=N_BINS) / np.maximum(counts, 1)
    return [[float(means[b]), float(shares_so[b]), int(counts[b])] for b in np.flatnonzero(counts)]
