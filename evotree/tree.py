"""The oblique decision tree: a struct of arrays in prefix order, and the router through it.

The left child of node k is k + 1, the right child is ``k + 1 + subtree_size[k + 1]``, and the
subtree of k is the slice ``[k, k + subtree_size[k])``. A row x goes left at node k when
``weights[k] @ x <= thresholds[k]``.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from evotree._jit import dot_kernel, kernel, read_only

_BLOCK = 1024  # rows that are routed together


@partial(dot_kernel, writes=False)
def project(w, X, i):
    """Return ``w @ X[i]``."""
    s = 0.0
    for j in range(w.shape[0]):
        s += w[j] * X[i, j]
    return s


@kernel
def route(X, weights, thresholds, subtree_size, leaves):
    """Write the leaf that each row of `X` reaches into `leaves`.

    Rows are parted node by node, in blocks that stay in the cache: which way a single row goes
    cannot be predicted, and a branch on it would cost more than the projection.
    """
    n = X.shape[0]
    rows, right = np.empty(_BLOCK, dtype=np.int64), np.empty(_BLOCK, dtype=np.int64)
    pending = np.empty((subtree_size[0], 3), dtype=np.int64)
    for first in range(0, n, _BLOCK):
        pending[0, 0], pending[0, 1], pending[0, 2] = 0, 0, min(_BLOCK, n - first)
        for t in range(pending[0, 2]):
            rows[t] = first + t
        n_pending = 1
        while n_pending > 0:
            n_pending -= 1
            k, lo, hi = pending[n_pending, 0], pending[n_pending, 1], pending[n_pending, 2]
            while lo < hi and subtree_size[k] > 1:
                mid, n_right = lo, 0
                for t in range(lo, hi):
                    row = rows[t]
                    goes_left = np.int64(project(weights[k], X, row) <= thresholds[k])
                    rows[mid] = row
                    right[n_right] = row
                    mid += goes_left
                    n_right += 1 - goes_left
                for t in range(n_right):
                    rows[mid + t] = right[t]
                k += 1
                pending[n_pending, 0] = k + subtree_size[k]
                pending[n_pending, 1], pending[n_pending, 2] = mid, hi
                n_pending += 1
                hi = mid
            for t in range(lo, hi):
                leaves[rows[t]] = k


@kernel
def node_depths(subtree_size):
    """Return the depth of every node, the root's being 0."""
    depths = np.zeros(subtree_size.shape[0], dtype=np.int32)
    for k in range(subtree_size.shape[0]):
        if subtree_size[k] > 1:
            depths[k + 1] = depths[k] + 1
            depths[k + 1 + subtree_size[k + 1]] = depths[k] + 1
    return depths


class ObliqueTree:
    """A binary tree with a hyperplane in each internal node and a vector of values in each node.

    The arrays are never written after construction, so trees may share them.

    Parameters
    ----------
    weights : ndarray of shape (n_nodes, n_features), float64
        Normal vectors of the hyperplanes; rows of leaves are 0.
    thresholds : ndarray of shape (n_nodes,), float64
        Thresholds of the hyperplanes; 0 at leaves.
    subtree_size : ndarray of shape (n_nodes,), int32
        Number of nodes of the subtree that starts at each node; 1 at a leaf.
    values : ndarray of shape (n_nodes, n_outputs), float64
        What a node predicts: class shares for classification.
    """

    __slots__ = ("subtree_size", "thresholds", "values", "weights")
    __hash__ = None  # type: ignore[assignment]

    def __init__(
        self,
        weights: np.ndarray,
        thresholds: np.ndarray,
        subtree_size: np.ndarray,
        values: np.ndarray,
    ) -> None:
        self.weights = weights
        self.thresholds = thresholds
        self.subtree_size = subtree_size
        self.values = values

    def __len__(self) -> int:
        return self.subtree_size.shape[0]

    def __eq__(self, other: object) -> bool:
        """Trees are equal when their hyperplanes are, bit for bit, and stand in equal places."""
        if not isinstance(other, ObliqueTree):
            return NotImplemented
        if self.weights is other.weights and self.thresholds is other.thresholds:
            return True
        # Bytes, thresholds first: a hall of fame compares many trees, nearly all of them different.
        return (
            self.thresholds.tobytes() == other.thresholds.tobytes()
            and self.subtree_size.tobytes() == other.subtree_size.tobytes()
            and self.weights.tobytes() == other.weights.tobytes()
        )

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(n_nodes={self.n_nodes}, n_leaves={self.n_leaves}, "
            f"depth={self.depth}, n_features={self.n_features})"
        )

    @property
    def n_nodes(self) -> int:
        """Number of all nodes, the papers' S(T)."""
        return self.subtree_size.shape[0]

    @property
    def n_leaves(self) -> int:
        """Number of leaves."""
        return (self.n_nodes + 1) // 2

    @property
    def n_features(self) -> int:
        """Number of features that the hyperplanes are over."""
        return self.weights.shape[1]

    @property
    def depth(self) -> int:
        """Largest number of hyperplanes between the root and a leaf."""
        return int(node_depths(self.subtree_size).max())

    @property
    def is_leaf(self) -> np.ndarray:
        """Boolean mask of shape (n_nodes,)."""
        return self.subtree_size == 1

    def left(self, k: int) -> int:
        """Return the left child of internal node `k`."""
        return k + 1

    def right(self, k: int) -> int:
        """Return the right child of internal node `k`."""
        return k + 1 + int(self.subtree_size[k + 1])

    def apply(self, X: np.ndarray) -> np.ndarray:
        """Return the leaf that each row reaches.

        Parameters
        ----------
        X : ndarray of shape (n_samples, n_features), float64 or float32
            Rows in the units of the hyperplanes, without NaN.

        Returns
        -------
        ndarray of shape (n_samples,), int32
            Positions of leaves in the arrays of the tree.
        """
        leaves = np.empty(X.shape[0], dtype=np.int32)
        route(read_only(X), self.weights, self.thresholds, self.subtree_size, leaves)
        return leaves

    def predict_value(self, X: np.ndarray) -> np.ndarray:
        """Return the values of the leaf that each row reaches, of shape (n_samples, n_outputs)."""
        return self.values[self.apply(X)]

    def validate(self) -> ObliqueTree:
        """Check that the arrays form one tree, and return the tree.

        Raises
        ------
        ValueError
            Naming the array that is wrong, what it holds and what is allowed.
        """
        _validate(self.weights, self.thresholds, self.subtree_size, self.values)
        return self

    def __getstate__(self) -> tuple[np.ndarray, ...]:
        return (self.weights, self.thresholds, self.subtree_size, self.values)

    def __setstate__(self, state: tuple[np.ndarray, ...]) -> None:
        self.weights, self.thresholds, self.subtree_size, self.values = state

    def __deepcopy__(self, memo: dict[int, Any]) -> ObliqueTree:
        return ObliqueTree(self.weights, self.thresholds, self.subtree_size, self.values)


def _validate(
    weights: np.ndarray, thresholds: np.ndarray, subtree_size: np.ndarray, values: np.ndarray
) -> None:
    n_nodes = subtree_size.shape[0] if subtree_size.ndim == 1 else 0
    if n_nodes == 0:
        raise ValueError(
            f"subtree_size has shape {subtree_size.shape}: allowed is (n_nodes,) with n_nodes >= 1."
        )
    for name, array, ndim in (
        ("weights", weights, 2),
        ("thresholds", thresholds, 1),
        ("values", values, 2),
    ):
        if array.ndim != ndim or array.shape[0] != n_nodes:
            raise ValueError(
                f"{name} has shape {array.shape}: allowed are {ndim} dimensions, the first being "
                f"the number of nodes, {n_nodes}."
            )
        if not np.isfinite(array).all():
            raise ValueError(f"{name} has values that are not finite.")
    if subtree_size[0] != n_nodes:
        raise ValueError(
            f"subtree_size[0]={subtree_size[0]}: the root's subtree is the tree, {n_nodes} nodes."
        )
    for k in range(n_nodes):
        size = int(subtree_size[k])
        if size == 1:
            continue
        children_fit = (
            size >= 3
            and k + size <= n_nodes
            and 1 <= subtree_size[k + 1] <= size - 2
            and subtree_size[k + 1] + subtree_size[k + 1 + subtree_size[k + 1]] + 1 == size
        )
        if not children_fit:
            raise ValueError(
                f"subtree_size[{k}]={size}: allowed is 1 for a leaf, else one more than the sum "
                "of the sizes of its two children, which follow in prefix order."
            )
