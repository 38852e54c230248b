"""Monotonic constraints: trees that predict no less where a feature is raised, or no more."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from evotree._sklearn import check_monotonic_signs
from evotree.dataset import Dataset
from evotree.fitness.leaves import CONFLICT, isotonic_values, node_orders
from evotree.fitness.node import Node
from evotree.individual import Individual
from evotree.operators.constraints.proof import Violation, violations
from evotree.operators.pruning.penalized import prune_tree
from evotree.operators.splitters.linear import start_at
from evotree.operators.splitters.sparse import fit_on
from evotree.operators.structure.reduced import SPARSE_ROWS, Hyperplane, refit_nodes
from evotree.operators.structure.splice import make_individual
from evotree.tables.columns import CategoricalColumn, Column
from evotree.tree import ObliqueTree

_C = 1.0  # of the classifier that it is fitted by


def check_monotonic_cst(
    monotonic_cst: Any, estimator: Any, columns: Sequence[Column], n_classes: int = 0
) -> "MonotonicConstraint | None":
    """Check what users ask for, and return the constraint on the features that trees read."""
    if monotonic_cst is None:
        return None
    if not isinstance(monotonic_cst, Mapping) and np.ndim(monotonic_cst) != 1:
        raise ValueError(
            f"monotonic_cst={monotonic_cst!r}: allowed are None, a number for each column, and a "
            "dict of numbers by columns' names."
        )
    if isinstance(monotonic_cst, Mapping):
        monotonic_cst = dict(monotonic_cst)  # no other mapping is one for scikit-learn
    signs = check_monotonic_signs(estimator, monotonic_cst)
    for column, sign in zip(columns, signs, strict=True):
        if sign and isinstance(column, CategoricalColumn):
            raise ValueError(
                f"monotonic_cst={sign} for {column.name!r}, a column of categories."
            )
    if n_classes > 2 and signs.any():
        raise ValueError(
            f"monotonic_cst={monotonic_cst!r}: allowed is None, or 0 for every column, where there "
            f"are {n_classes} classes; of two classes, the share of the second is constrained."
        )
    if n_classes == 1 or not signs.any():
        return None
    # What says that a number is missing comes after the number, and has no sign.
    of_features = [
        int(sign) if at == 0 else 0
        for column, sign in zip(columns, signs, strict=True)
        for at in range(len(column.feature_levels))
    ]
    return MonotonicConstraint(tuple(of_features), n_classes)


@dataclass(frozen=True)
class MonotonicConstraint:
    """The prediction may not fall, or not rise, with some features."""

    # For two classes the prediction is the share of the second, and the label. Trees keep the
    # constraint by the orders of their splits (`evotree.fitness.leaves`): no split has terms that
    # pull its sides in both directions, and the leaves have the best labels, shares or means among
    # those in order. So a tree keeps the constraint for all rows, and for all rows of single
    # precision too.

    # Of the features: 1 if predictions may not fall with it, -1 if they may not rise, or 0.
    signs: tuple[int, ...]
    n_classes: int = 0

    max_width = None

    @cached_property
    def array(self) -> np.ndarray:
        """The signs as an array."""
        return np.array(self.signs, dtype=np.int64)

    def orders(self, tree: Any) -> np.ndarray:
        """Return the orders that the sides of splits have to keep (`node_orders`)."""
        # Where an individual has a conflict, it is that of the means of its sides, as after repair:
        # so trees within an operator are worth what becomes of them.
        orders = node_orders(tree.weights, self.array)
        conflicts = np.flatnonzero(orders == CONFLICT)
        if conflicts.size and hasattr(tree, "counts"):
            means, _ = _means(tree)
            left = conflicts + 1
            rises = means[left + tree.subtree_size[left]] >= means[left]
            orders[conflicts] = np.where(rises, 1, -1)
        return orders

    # ---- splits ----------------------------------------------------------------------------------

    def _conflicts(self, individual: Individual) -> np.ndarray:
        """Return the splits that pull their sides in both directions."""
        return np.flatnonzero(node_orders(individual.weights, self.array) == CONFLICT)

    def keeps(self, individual: Individual, dataset: Dataset) -> bool:
        """Return whether no split pulls its sides in both directions."""
        return self._conflicts(individual).size == 0

    def repair(self, individual: Individual, dataset: Dataset) -> None:
        """Take out the terms of splits that pull against the others."""
        # Where a split has such terms, those go whose sign is not that of the difference between
        # the means of its two sides. A linear classifier of the reduced problem gives the others
        # new weights, and the threshold that costs least.
        conflicts = self._conflicts(individual)
        if conflicts.size == 0:
            return
        weights = individual.weights.copy()
        thresholds = individual.thresholds.copy()
        orders = self.orders(individual)
        for k in conflicts.tolist():
            dropped = np.sign(weights[k]) * self.array == -orders[k]
            rows = individual.order[individual.start[k] : individual.end[k]]
            mean = dataset.X[rows].mean(axis=0)
            thresholds[k] -= weights[k, dropped] @ mean[dropped]
            weights[k, dropped] = 0.0
        refit_nodes(
            individual,
            dataset,
            conflicts[::-1],  # those below come first
            weights,
            thresholds,
            fit=self._refit,
            stream=np.zeros(1, dtype=np.uint64),  # of many rows, the same ones always
            max_rows=SPARSE_ROWS,
        )
        individual.replace_by(
            make_individual(dataset, weights, thresholds, individual.subtree_size)
        )

    def _refit(self, node: Node, present: Hyperplane) -> Hyperplane | None:
        """Return the cheapest split on the features of another whose terms keep their pulls."""
        # Features whose weights would change the direction of their pull leave one fit after the
        # other. None where none is left, or all rows belong to one side.
        if (node.y == node.y[0]).all():
            return None
        weights, threshold = present
        pulls = np.sign(weights) * np.abs(self.array)
        theta = start_at(node.X, weights, threshold)
        support = np.flatnonzero(weights)
        while support.size:
            if not fit_on(node, theta, support, _C):
                return None
            turned = theta[:-1] * pulls < 0.0
            if not turned.any():
                return theta[:-1], -float(theta[-1])
            theta[:-1][turned] = 0.0
            support = support[~turned[support]]
        return None

    # ---- leaves ----------------------------------------------------------------------------------

    def values(self, tree: Any) -> np.ndarray:
        """Return the best values in order: shares of the second class, or targets."""
        means, weight = _means(tree)
        values: np.ndarray = isotonic_values(
            self.orders(tree), tree.subtree_size, means, weight
        )
        return values

    def _values_of(self, tree: ObliqueTree, values: np.ndarray) -> np.ndarray:
        """Return the values in order that are nearest to those of a finished tree."""
        in_order: np.ndarray = isotonic_values(
            self.orders(tree),
            tree.subtree_size,
            np.ascontiguousarray(values[:, -1]),
            tree.weighted_n_node_samples,
        )
        return in_order

    def in_order(self, tree: ObliqueTree, shares: np.ndarray) -> np.ndarray:
        """Return class probabilities of leaves with which soft sides keep the constraint."""
        # The mean of two functions that rise with a feature, the greater of which has a weight that
        # rises, rises too; so orders of the leaves are enough for soft sides as well.
        share = self._values_of(tree, shares)
        both = np.column_stack([1.0 - share, share])
        return np.where(tree.is_leaf[:, np.newaxis], both, 0.0)

    # ---- finished trees --------------------------------------------------------------------------

    def finish(self, tree: ObliqueTree) -> ObliqueTree:
        """Return a tree whose values keep the constraint, which is proved."""
        values = self._values_of(tree, tree.values)[:, np.newaxis]
        marks = _of_equal_leaves(tree, values)
        if tree.values.shape[1] == 2:  # shares of two classes
            values = np.column_stack([1.0 - values, values])
        return self._proved(prune_tree(tree.predicting(values), marks))

    def finish_lines(
        self,
        tree: ObliqueTree,
        fill: Callable[[ObliqueTree], ObliqueTree],
        sharing: Callable[[ObliqueTree], np.ndarray],
    ) -> ObliqueTree:
        """Return a tree whose lines keep the constraint, which is proved."""
        # Splits whose sides now predict the same are left out, and the others get their lines
        # again; it ends, since the tree gets smaller each time.
        while True:
            finished = fill(tree)
            models: Any = finished.models
            lines = np.column_stack([sharing(finished), models.intercepts])
            marks = _of_equal_leaves(finished, lines)
            if not marks[~finished.is_leaf].any():
                return self._proved(finished)
            tree = prune_tree(finished, marks).with_models(None)

    def _proved(self, tree: ObliqueTree) -> ObliqueTree:
        """Return a tree that is proved to keep the constraint; any other is an error."""
        broken = self.violations(tree)
        if broken:
            raise RuntimeError(f"monotonic_cst is not proved to hold: {broken[0]}.")
        return tree

    def violations(self, tree: ObliqueTree) -> list[Violation]:
        """Return the pairs of leaves that break the constraint (`violations`); none is a proof."""
        return violations(tree, self.array)


def _means(tree: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the mean target, or the share of the second class, of each node, and its weight."""
    counts = tree.counts
    weight = counts.sum(axis=1) if counts.shape[1] == 2 else counts[:, 0].copy()
    return counts[:, 1] / weight, weight


def _of_equal_leaves(tree: ObliqueTree, predicted: np.ndarray) -> np.ndarray:
    """Mark the leaves, and the subtrees whose leaves all predict the same."""
    predicted, marks = predicted.copy(), tree.is_leaf.copy()
    for k in np.flatnonzero(~tree.is_leaf)[::-1].tolist():
        left, right = tree.left(k), tree.right(k)
        marks[k] = (
            marks[left] & marks[right] & (predicted[left] == predicted[right]).all()
        )
        predicted[k] = predicted[left]
    return marks
