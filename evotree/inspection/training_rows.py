"""What explanations need of the training rows, once these are gone: means, spreads and ranges."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_matrix

from evotree.leaf_models import check_arrays
from evotree.tree import ObliqueTree, split_distances

_BLOCK = 4096  # rows that are projected together


@dataclass(frozen=True, eq=False, repr=False)
class TrainingRows:
    """A summary of the training rows at the nodes of a tree, weighted.

    Attributes
    ----------
    means : ndarray of shape (n_nodes, n_features), float64
        Means of the features over the rows that reach each node; of a node that none reaches, those
        of its parent.
    spreads : ndarray of shape (n_nodes,), float64
        Standard deviations of the projections ``weights[k] @ x`` over the rows that reach each
        internal node, above 0; 1 at leaves.
    lowest, highest : ndarray of shape (n_features,), float64
        The range of each feature over all rows.
    """

    means: np.ndarray
    spreads: np.ndarray
    lowest: np.ndarray
    highest: np.ndarray

    def __repr__(self) -> str:
        n_nodes, n_features = self.means.shape
        return f"TrainingRows(n_nodes={n_nodes}, n_features={n_features})"

    def validate(self, tree: ObliqueTree) -> TrainingRows:
        """Return the summary if its arrays fit a tree, else say which does not."""
        n_nodes, n_features = tree.weights.shape
        check_arrays(
            vars(self),
            ((n_nodes, n_features), (n_nodes,), (n_features,), (n_features,)),
        )
        if self.spreads.min() <= 0.0:
            raise ValueError("spreads has values that are not above 0.")
        return self


def summarize(
    tree: ObliqueTree, X: np.ndarray, sample_weight: np.ndarray
) -> TrainingRows:
    """Return the summary of the training rows of a tree."""
    leaves = tree.apply(X)
    sums = (
        csr_matrix(
            (sample_weight, (leaves, np.arange(len(X)))), shape=(len(tree), len(X))
        )
        @ X
    )
    totals = np.bincount(leaves, sample_weight, minlength=len(tree))
    inner = np.flatnonzero(~tree.is_leaf)
    for k in inner[::-1].tolist():
        sums[k] = sums[tree.left(k)] + sums[tree.right(k)]
        totals[k] = totals[tree.left(k)] + totals[tree.right(k)]
    means = sums / np.where(totals > 0.0, totals, 1.0)[:, np.newaxis]
    for k in inner.tolist():
        for child in (tree.left(k), tree.right(k)):
            if totals[child] == 0.0:
                means[child] = means[k]
    begin, end = inner[:, np.newaxis], (inner + tree.subtree_size[inner])[:, np.newaxis]
    squares = np.zeros(len(tree))
    with np.errstate(over="ignore", invalid="ignore"):
        centres = (tree.weights[inner] * means[inner]).sum(axis=1) - tree.thresholds[
            inner
        ]
        for first in range(0, len(X), _BLOCK):
            block = slice(first, first + _BLOCK)
            is_passed = (leaves[block] >= begin) & (leaves[block] < end)
            away = np.square(split_distances(tree, X[block]) - centres[:, np.newaxis])
            squares[inner] += np.where(is_passed, away, 0.0) @ sample_weight[block]
        spreads = np.sqrt(squares / np.where(totals > 0.0, totals, 1.0))
        # Of one row, or of rows with equal projections, there is no spread to speak of.
        uncorrelated = uncorrelated_spreads(tree)
        is_known = np.isfinite(spreads) & (spreads > 1e-12 * uncorrelated)
    spreads = np.where(is_known, spreads, uncorrelated)
    return TrainingRows(means, spreads, X.min(axis=0), X.max(axis=0))


def uncorrelated_spreads(tree: ObliqueTree) -> np.ndarray:
    """Return what the spreads of the projections would be if the features were not correlated."""
    with np.errstate(over="ignore"):
        spreads = np.sqrt(np.square(tree.weights * tree.known_spread).sum(axis=1))
    return np.where((spreads > 0.0) & np.isfinite(spreads), spreads, 1.0)
