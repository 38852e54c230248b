"""The oblique decision tree: a struct of arrays in prefix order, and the router through it.

The left child of node k is k + 1, the right child is ``k + 1 + subtree_size[k + 1]``, and the
subtree of k is the slice ``[k, k + subtree_size[k])``. A row x goes left at node k when
``weights[k] @ x <= thresholds[k]``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from evotree._jit import dot_kernel, kernel


@dot_kernel
def project(w, X, i):
    """Return ``w @ X[i]``."""
    s = 0.0
    for j in range(w.shape[0]):
        s += w[j] * X[i, j]
    return s


@kernel
def route(X, weights, thresholds, subtree_size, leaves):
    """Write the leaf that each row of `X` reaches into `leaves`."""
    for i in range(X.shape[0]):
        k = 0
        while subtree_size[k] > 1:
            if project(weights[k], X, i) <= thresholds[k]:
                k += 1
            else:
                k += 1 + subtree_size[k + 1]
        leaves[i] = k


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
        route(X, self.weights, self.thresholds, self.subtree_size, leaves)
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
