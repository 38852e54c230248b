"""Probabilities of classes by the distances of a row to the hyperplanes of a tree.

Soft sides make the sides of each split a matter of degree: a row goes right with a probability that
is a logistic function of its distance to the hyperplane, and its probabilities of the classes are
the mean of those of all leaves, weighted by the probabilities that it reaches them.

References
----------
Jordan M. I., Jacobs R. A. (1994). Hierarchical mixtures of experts and the EM algorithm. Neural
Computation 6(2), 181-214.
"""

from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy.special import expit

from evotree.leaf_models import check_arrays
from evotree.tree import ObliqueTree

LEAD = 1e-6
"""What the class of a leaf is ahead of the next one, at least, before probabilities are scaled."""

_BLOCK = 4096  # rows that are predicted together
_LARGEST = np.finfo(np.float64).max  # infinity times a slope of 0 would be NaN


@dataclass(frozen=True, eq=False)
class SoftSides:
    """Sides of splits that are a matter of degree, and class probabilities of leaves.

    At internal node k a row x goes right with the probability

    ``1 / (1 + exp(-(slopes[k] * (weights[k] @ x - thresholds[k]) + intercepts[k])))``

    with the weights and thresholds of the tree. Its probability of a leaf is the product of those
    of the sides on the path, and its probabilities of the classes are the sum over the leaves of
    that times `shares`. Last, the class of the highest share in the leaf that the row reaches is
    raised to the highest of them, where it is not, and all are divided by their sum.

    Attributes
    ----------
    slopes : ndarray of shape (n_nodes,), float64
        How fast the probability of the right side rises with the distance, above 0; 0 at leaves.
    intercepts : ndarray of shape (n_nodes,), float64
        Log-odds of the right side on the hyperplane; 0 at leaves.
    shares : ndarray of shape (n_nodes, n_classes), float64
        Class probabilities of the leaves; 0 at internal nodes.
    """

    slopes: np.ndarray
    intercepts: np.ndarray
    shares: np.ndarray

    def predict(self, tree: ObliqueTree, X: np.ndarray) -> np.ndarray:
        """Return the probabilities of the classes."""
        X = tree.check_rows(X)
        return raise_labels(self.mix(tree, X), tree.majority[tree.apply(X)])

    def mix(self, tree: ObliqueTree, X: np.ndarray) -> np.ndarray:
        """Return the probabilities before that of the predicted class is raised."""
        X, is_leaf = tree.check_rows(X), tree.is_leaf
        found = np.empty((len(X), self.shares.shape[1]))
        for first in range(0, len(X), _BLOCK):
            away = np.clip(
                distances(tree, X[first : first + _BLOCK]), -_LARGEST, _LARGEST
            )
            with np.errstate(over="ignore"):
                log_odds = (
                    away * self.slopes[~is_leaf, None] + self.intercepts[~is_leaf, None]
                )
            reached = soft_reach(tree, expit(log_odds))
            found[first : first + _BLOCK] = reached[is_leaf].T @ self.shares[is_leaf]
        return found

    def validate(self, tree: ObliqueTree) -> Self:
        """Check that the arrays fit a tree, and return the soft sides."""
        check_arrays(vars(self), [(len(tree),), (len(tree),), tree.values.shape])
        if self.slopes.min() < 0.0:
            raise ValueError("slopes has values below 0.")
        shares = self.shares[tree.is_leaf]
        if shares.min() < 0.0 or not np.allclose(shares.sum(axis=1), 1.0):
            raise ValueError(
                "shares of leaves are not probabilities: they must add up to 1."
            )
        return self


def distances(tree: ObliqueTree, X: np.ndarray) -> np.ndarray:
    """Return what the projections of rows are above the threshold of each split."""
    inner = ~tree.is_leaf
    with np.errstate(over="ignore", invalid="ignore"):
        above: np.ndarray = tree.weights[inner] @ X.T - tree.thresholds[inner, None]
    above[np.isnan(above)] = np.inf  # sums that overflow go right
    return above


def soft_reach(tree: ObliqueTree, right: np.ndarray) -> np.ndarray:
    """Return the probabilities that rows reach the nodes."""
    reached = np.empty((len(tree), right.shape[1]))
    reached[0] = 1.0
    for split, k in enumerate(np.flatnonzero(~tree.is_leaf).tolist()):
        after = reached[tree.right(k)]
        np.multiply(reached[k], right[split], out=after)
        np.subtract(reached[k], after, out=reached[k + 1])
    return reached


def raise_labels(probabilities: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Raise the probability of each row's label above those of the other classes."""
    rows = np.arange(len(labels))
    others = probabilities.copy()
    others[rows, labels] = -1.0
    lacking = np.maximum(others.max(axis=1) + LEAD - probabilities[rows, labels], 0.0)
    raised = probabilities.copy()
    raised[rows, labels] += lacking
    return raised / raised.sum(axis=1, keepdims=True)
