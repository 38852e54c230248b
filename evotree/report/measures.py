"""How well a tree or forest predicts the rows of a report, beside the tree of one leaf."""

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from evotree.description.named import NamedTree
from evotree.tree import ObliqueTree, mean_of_trees, node_weights

N_BINS = 10  # of the calibration curve
MAX_CONFUSED = 12  # classes whose confusion matrix is shown
BANDS = (
    1.0,
    0.9,
    0.75,
    0.5,
    0.0,
)  # least shares of votes for the class, of each group of rows

Figures: TypeAlias = dict[str, float | None]


def measures(named: NamedTree, rows: np.ndarray, y: np.ndarray) -> dict[str, Any]:
    """Return how well a tree predicts some rows."""
    tree = named.tree
    leaves = tree.apply(rows)
    values = named.predict_value(rows)
    measured: dict[str, Any] = {}
    if named.classes is None:
        ours = _figures(y, values, None)
        others = _of_one_leaf(y, tree.values[0], None)
        losses = (y - values[:, 0]) ** 2
    else:
        labels = tree.predict_label(rows)
        ours = _figures(y, values, labels)
        others = _of_one_leaf(y, tree.values[0], named.winners[0])
        losses = tree.label_losses(rows, y)
        n_classes = len(named.classes)
        measured["calibration"] = calibration(y, labels, values)
        if n_classes <= MAX_CONFUSED:
            counts = np.bincount(y * n_classes + labels, minlength=n_classes**2)
            measured["confusion"] = counts.reshape(n_classes, n_classes).tolist()
    reached = node_weights(leaves, np.ones(len(y)), tree.subtree_size)
    lost = node_weights(leaves, losses, tree.subtree_size)
    measured["figures"] = [[name, ours[name], others[name]] for name in ours]
    measured["reached"] = reached.astype(int).tolist()
    measured["lost"] = [float(f"{loss:.6g}") for loss in lost]
    return measured


def vote_measures(
    trees: Sequence[ObliqueTree],
    rows: np.ndarray,
    y: np.ndarray | None,
    is_classes: bool,
) -> dict[str, Any]:
    """Return how far the trees of a forest agree, and how well their vote predicts."""
    vote = mean_of_trees(trees, rows)
    each = np.stack([tree.predict_value(rows) for tree in trees])
    measured: dict[str, Any]
    if is_classes:
        labels = vote.argmax(axis=1)
        agrees = each.argmax(axis=2) == labels
        measured = {"agreement": agrees.mean(axis=1).tolist(), "bands": []}
        band = np.argmax(agrees.mean(axis=0)[:, np.newaxis] >= BANDS, axis=1)
        for at in np.unique(band).tolist():
            n_right = None if y is None else int((labels == y)[band == at].sum())
            measured["bands"].append([BANDS[at], int((band == at).sum()), n_right])
    else:
        apart = each[:, :, 0] - vote[:, 0]
        measured = {"agreement": np.sqrt((apart**2).mean(axis=1)).tolist()}
    if y is not None:
        # The vote, its trees, and one leaf.
        ours, *of_trees = (
            _figures(y, values, values.argmax(axis=1) if is_classes else None)
            for values in (vote, *each)
        )
        root = np.mean([tree.values[0] for tree in trees], axis=0)
        others = _of_one_leaf(y, root, root.argmax() if is_classes else None)
        measured["figures"] = []
        for name, figure in ours.items():
            known = [figures[name] for figures in of_trees]
            mean = None if None in known else float(np.mean(known))  # type: ignore[arg-type]
            measured["figures"].append([name, figure, mean, others[name]])
    return measured


def _of_one_leaf(y: np.ndarray, value: np.ndarray, label: Any) -> Figures:
    """Return figures of one prediction for all rows: a number, or a class and its shares."""
    values = np.broadcast_to(value, (len(y), len(value)))
    return _figures(y, values, None if label is None else np.full(len(y), label))


def _figures(y: np.ndarray, values: np.ndarray, labels: np.ndarray | None) -> Figures:
    """Return figures of predicted numbers, or of predicted classes and their probabilities."""
    if labels is None:
        errors = y - values[:, 0]
        whole = float(((y - y.mean()) ** 2).sum())
        return {
            "R²": 1.0 - float((errors**2).sum()) / whole if whole > 0.0 else None,
            "RMSE": float(np.sqrt((errors**2).mean())),
            "mean absolute error": float(np.abs(errors).mean()),
        }
    is_right = labels == y
    own = np.clip(values[np.arange(len(y)), y], 1e-15, 1.0)
    return {
        "accuracy": float(is_right.mean()),
        "balanced accuracy": float(
            np.mean([is_right[y == c].mean() for c in np.unique(y)])
        ),
        "log loss": float(-np.log(own).mean()),
        "Brier score": float(np.mean((values**2).sum(axis=1) - 2.0 * own + 1.0)),
    }


def calibration(
    y: np.ndarray, labels: np.ndarray, shares: np.ndarray
) -> list[list[float]]:
    """Return how often what is given a probability is so."""
    given, is_so = shares[np.arange(len(y)), labels], labels == y
    if shares.shape[1] == 2:
        given, is_so = shares[:, 1], y == 1
    bins = np.minimum((given * N_BINS).astype(int), N_BINS - 1)
    counts, *sums = (
        np.bincount(bins, w, minlength=N_BINS) for w in (None, given, is_so)
    )
    given_mean, so_mean = (total / np.maximum(counts, 1) for total in sums)
    return [
        [float(given_mean[b]), float(so_mean[b]), int(counts[b])]
        for b in np.flatnonzero(counts)
    ]
