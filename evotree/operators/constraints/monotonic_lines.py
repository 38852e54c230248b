"""Linear models of leaves that keep a monotonic constraint."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from evotree.fitness.linear_leaves import (
    ERROR,
    HIGHEST,
    INTERCEPT,
    LEAST_ROWS,
    LOWEST,
    N_FIXED,
    LinearLeafObjective,
    squared_error,
)
from evotree.individual import Individual
from evotree.operators.constraints.orders import isotonic_values
from evotree.operators.pruning.penalized import prune_tree

if TYPE_CHECKING:
    from evotree.dataset import Dataset
    from evotree.tree import ObliqueTree


@dataclass(frozen=True, eq=False)
class MonotonicLines(LinearLeafObjective):
    """Lines of the least squared error that keep a monotonic constraint.

    The coefficient of a constrained feature has the sign of its constraint, or is 0. All leaves
    below a split whose sides have an order share their coefficients and bounds, so that the order
    of their intercepts is that of their predictions, wherever a row is. Leaves that no such split
    parts have lines of their own.

    Parameters
    ----------
    constraint : MonotonicConstraint
        The constraint.
    """

    constraint: Any = None

    @property
    def _signs(self) -> np.ndarray:
        signs: np.ndarray = self.constraint.array[list(self.used or ())]
        return signs

    def _orders(self, tree: Any) -> np.ndarray:
        """Return the orders of the splits; those of individuals as they are after repair."""
        if isinstance(tree, Individual):
            orders: np.ndarray = self.constraint.wanted_orders(tree)
        else:
            orders = self.constraint.orders(tree)
        return orders

    def _fit_nodes(self, tree: Any, known: dict[int, Any], found: np.ndarray) -> None:
        """Write the fits of some nodes.

        A topmost split with an order has, as a leaf, a line of its own; those below it have the
        coefficients that all share.
        """
        orders, size = self._orders(tree), tree.subtree_size
        above = topmost(orders, size)
        for k, one in known.items():
            if above[k] == k:
                found[k] = self._fit_of(one)
        for root in np.unique(above[above != np.arange(len(size))]).tolist():
            part = slice(root, root + size[root])
            below = {k - root: one for k, one in known.items() if part.start < k < part.stop}
            self._fit_together(orders[part], size[part], below, found[part])

    def _fit_together(
        self, orders: np.ndarray, size: np.ndarray, known: dict[int, Any], found: np.ndarray
    ) -> None:
        """Write the fits below a topmost split with an order, which share their coefficients.

        These are of least squares within the leaves. The intercepts are an isotonic regression of
        what they leave of the means of the targets.
        """
        leaves = np.flatnonzero(size == 1)
        sums = np.array([known[k].sums for k in leaves.tolist()])
        weight, means = sums[:, 0, 0], sums[:, 0, :] / sums[:, 0, :1]
        within = (sums - np.einsum("l,li,lj->lij", weight, means, means)).sum(axis=0)
        within[0, 0] = weight.sum()
        lows, highs = zip(*(known[k].bounds for k in leaves.tolist()), strict=True)
        n_rows = round(float(within[0, 0]), 9)
        if n_rows < LEAST_ROWS:
            shared = self._fit_of(self.whole)
            intercepts = np.full(len(size), shared[INTERCEPT])
        else:
            shared = self._fit_sums(within, n_rows - len(leaves) + 1.0, len(leaves))
            shared[LOWEST], shared[HIGHEST] = min(lows), max(highs)
            rests, weights = np.zeros(len(size)), np.zeros(len(size))
            rests[leaves] = means[:, -1] - means[:, 1:-1] @ shared[N_FIXED:]
            weights[leaves] = weight
            intercepts = isotonic_values(orders, size, rests, weights)
        for k, one in known.items():
            found[k] = shared
            found[k, INTERCEPT] = intercepts[k]
            found[k, ERROR] = squared_error(one.sums, found[k])

    def sharing(self, tree: ObliqueTree) -> np.ndarray:
        """Return the topmost split with an order above each node, or the node itself."""
        return topmost(self._orders(tree), tree.subtree_size)

    def finish(self, tree: ObliqueTree, dataset: Dataset) -> ObliqueTree:
        """Return a fitted tree whose lines keep the constraint, which is proved.

        Splits whose sides now predict the same are left out.
        """
        while True:
            finished = super().finish(tree, dataset)
            line_of, is_constant = self.sharing(finished), finished.is_leaf.copy()
            models: Any = finished.models
            lines = np.column_stack([line_of, models.intercepts])
            for k in np.flatnonzero(~finished.is_leaf)[::-1].tolist():
                left, right = finished.left(k), finished.right(k)
                is_equal = (lines[left] == lines[right]).all()
                is_constant[k] = is_constant[left] & is_constant[right] & is_equal
                lines[k] = lines[left]
            if not is_constant[~finished.is_leaf].any():
                proved: ObliqueTree = self.constraint.proved(finished)
                return proved
            tree = prune_tree(finished, is_constant).with_models(None)

    def _at_mean(self, coefficients: np.ndarray, mean: np.ndarray) -> np.ndarray:
        """Return what the terms of each line are at the mean, the same where they are equal."""
        found: np.ndarray = (coefficients * mean).sum(axis=1)
        return found


def topmost(orders: np.ndarray, subtree_size: np.ndarray) -> np.ndarray:
    """Return the topmost split with an order above each node, or the node itself."""
    above = np.arange(len(orders))
    for k in np.flatnonzero(orders).tolist():
        if above[k] == k:
            above[k : k + subtree_size[k]] = k
    return above
