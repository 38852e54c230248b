"""Monotonic constraints: trees that predict no less where a feature is raised, or no more."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from evotree._sklearn import check_monotonic_signs
from evotree.fitness.linear_leaves import LinearLeafObjective
from evotree.fitness.objectives import ExpectedCost, Objective
from evotree.individual import Individual
from evotree.operators.constraints.monotonic_lines import MonotonicLines
from evotree.operators.constraints.orders import (
    CONFLICT,
    cheapest_labels,
    isotonic_values,
    node_orders,
)
from evotree.operators.constraints.proof import Violation, violations
from evotree.operators.pruning.penalized import prune_tree
from evotree.operators.splitters.linear_fit import LOSSES, start_at
from evotree.operators.splitters.sparse import sparse_split
from evotree.operators.structure.reduced import leaf_table, reduced_problem
from evotree.operators.structure.splice import make_individual
from evotree.tables.columns import CategoricalColumn, Column
from evotree.tree import ObliqueTree

if TYPE_CHECKING:
    from evotree.dataset import Dataset
    from evotree.fitness.node import Node

_ROWS = 4096  # by which a split is fitted again
_LOSS = LOSSES.index("logistic")
_C, _MAX_ITER, _TOLERANCE = 1.0, 10, 1e-2


def check_monotonic_cst(
    monotonic_cst: Any, estimator: Any, columns: Sequence[Column], n_classes: int = 0
) -> MonotonicConstraint | None:
    """Check what users ask for, and return the constraint on the features that trees read."""
    if monotonic_cst is None:
        return None
    if not isinstance(monotonic_cst, Mapping) and np.ndim(monotonic_cst) != 1:
        raise ValueError(
            f"monotonic_cst={monotonic_cst!r}: allowed are None, a number for each of the "
            f"{len(columns)} columns, and a dict of numbers by the names of columns."
        )
    asked = dict(monotonic_cst) if isinstance(monotonic_cst, Mapping) else monotonic_cst
    signs = check_monotonic_signs(estimator, asked)
    for column, sign in zip(columns, signs, strict=True):
        if sign and isinstance(column, CategoricalColumn):
            raise ValueError(
                f"monotonic_cst is {sign} for the column {column.name!r}: allowed is 0, since "
                "categories have no order."
            )
    if n_classes > 2 and signs.any():
        raise ValueError(
            f"monotonic_cst={monotonic_cst!r}: allowed is None, or 0 for every column, where there "
            f"are {n_classes} classes; of two classes, the share of the second is constrained."
        )
    if n_classes == 1 or not signs.any():
        return None
    of_features = [
        int(sign) if at == 0 else 0  # what says that a number is missing comes after the number
        for column, sign in zip(columns, signs, strict=True)
        for at in range(len(column.asked))
    ]
    return MonotonicConstraint(tuple(of_features), n_classes)


@dataclass(frozen=True)
class MonotonicConstraint:
    """The prediction may not fall, or not rise, with some features.

    For two classes the prediction is the share of the second, and the label. Trees keep the
    constraint by the orders of their splits (`evotree.operators.constraints.orders`): no split has
    terms that pull its sides in both directions, and the leaves have the best labels, shares or
    means among those in order. So a tree keeps the constraint for all rows, and for all rows of
    single precision too.

    Parameters
    ----------
    signs : tuple of int
        For each feature 1 if the prediction may not fall with it, -1 if it may not rise, else 0.
    n_classes : int, default=0
        2 or, for regression, 0.
    """

    signs: tuple[int, ...]
    n_classes: int = 0

    @cached_property
    def array(self) -> np.ndarray:
        """The signs as an array."""
        return np.array(self.signs, dtype=np.int64)

    def orders(self, tree: ObliqueTree) -> np.ndarray:
        """Return the order that the two sides of each split have to keep (`node_orders`)."""
        return node_orders(tree.weights, self.array)

    # ---- splits ----------------------------------------------------------------------------------

    max_width = None

    def keeps(self, individual: Individual, dataset: Dataset) -> bool:
        """Return whether no split pulls its sides in both directions."""
        return not (self.orders(individual) == CONFLICT).any()

    def wanted_orders(self, individual: Individual) -> np.ndarray:
        """Return the orders after repair: where a split has a conflict, that of its sides' means.

        So trees within an operator are judged by what becomes of them.
        """
        orders = self.orders(individual)
        conflicts = np.flatnonzero(orders == CONFLICT)
        if conflicts.size:
            means = _means(individual)[0]
            left = conflicts + 1
            rises = means[left + individual.subtree_size[left]] >= means[left]
            orders[conflicts] = np.where(rises, 1, -1)
        return orders

    def repair(self, individual: Individual, dataset: Dataset) -> None:
        """Take out the terms of splits that pull against the others.

        Where a split has such terms, those go whose sign is not that of the difference between the
        means of its two sides. A linear classifier of the reduced problem gives the others new
        weights, and the threshold that costs least.
        """
        conflicts = np.flatnonzero(self.orders(individual) == CONFLICT)
        if conflicts.size == 0:
            return
        weights, thresholds = individual.weights.copy(), individual.thresholds.copy()
        orders = self.wanted_orders(individual)
        for k in conflicts.tolist():
            dropped = np.sign(weights[k]) * self.array == -orders[k]
            mean = dataset.X[individual.order[individual.start[k] : individual.end[k]]].mean(axis=0)
            thresholds[k] -= weights[k, dropped] @ mean[dropped]
            weights[k, dropped] = 0.0
        table = leaf_table(individual, dataset.n_classes)
        stream = np.zeros(1, dtype=np.uint64)  # of many rows, the same ones every time
        for k in conflicts[::-1].tolist():  # those below a split first
            node = reduced_problem(
                individual, dataset, k, weights, thresholds, table, stream, _ROWS
            )
            found = None if node is None else self._refit(node, weights[k], float(thresholds[k]))
            if found is not None:
                weights[k], thresholds[k] = found
        size = individual.subtree_size
        individual.become(make_individual(dataset, weights, thresholds, size))

    def _refit(
        self, node: Node, weights: np.ndarray, threshold: float
    ) -> tuple[np.ndarray, float] | None:
        """Return the cheapest split on the features of another whose terms keep their pulls.

        Features whose weights would change the direction of their pull leave one fit after the
        other. None where none is left, or all rows belong to one side.
        """
        if (node.y == node.y[0]).all():
            return None
        pulls = np.sign(weights) * np.abs(self.array)
        theta = start_at(node.X, weights, threshold)
        support = np.flatnonzero(weights)
        while support.size:
            width = support.size
            cost = sparse_split(
                node.X,
                node.y,
                node.sample_weight,
                theta,
                _LOSS,
                _C,
                _MAX_ITER,
                _TOLERANCE,
                support,
                width,
                width,
                0.0,
                False,
                False,
            )
            if not (np.isfinite(theta).all() and cost < np.inf):
                return None
            turned = theta[:-1] * pulls < 0.0
            if not turned.any():
                return theta[:-1], -float(theta[-1])
            theta[:-1][turned] = 0.0
            support = support[~turned[support]]
        return None

    # ---- leaves ----------------------------------------------------------------------------------

    def values(self, tree: Any) -> np.ndarray:
        """Return what the leaves predict: the shares of the second class, or targets."""
        orders = self.wanted_orders(tree)
        values: np.ndarray = isotonic_values(orders, tree.subtree_size, *_means(tree))
        return values

    def in_order(self, tree: ObliqueTree, shares: np.ndarray) -> np.ndarray:
        """Return class probabilities of leaves with which soft sides keep the constraint.

        The mean of two functions that rise with a feature, the greater of which has a weight that
        rises, rises too; so orders of the leaves are enough for soft sides as well.
        """
        told = np.ascontiguousarray(shares[:, 1]), tree.weighted_n_node_samples
        ordered = isotonic_values(self.orders(tree), tree.subtree_size, *told)
        found = np.column_stack([1.0 - ordered, ordered])
        return np.where(tree.is_leaf[:, np.newaxis], found, 0.0)

    # ---- finished trees --------------------------------------------------------------------------

    def finish(self, tree: ObliqueTree) -> ObliqueTree:
        """Return a tree whose values keep the constraint, which is proved."""
        told = np.ascontiguousarray(tree.values[:, -1]), tree.weighted_n_node_samples
        found = isotonic_values(self.orders(tree), tree.subtree_size, *told)
        is_classifier = tree.values.shape[1] == 2
        values = np.column_stack([1.0 - found, found]) if is_classifier else found[:, np.newaxis]
        is_constant = tree.is_leaf.copy()
        for k in np.flatnonzero(~tree.is_leaf)[::-1].tolist():
            left, right = tree.left(k), tree.right(k)
            is_constant[k] = is_constant[left] & is_constant[right] & (found[left] == found[right])
        return self.proved(prune_tree(tree.predicting(values), is_constant))

    def proved(self, tree: ObliqueTree) -> ObliqueTree:
        """Return a tree if it is proved to keep the constraint."""
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


@dataclass(frozen=True)
class MonotonicLabels(ExpectedCost):
    """Labels of two classes of the least cost among those that keep a monotonic constraint.

    Parameters
    ----------
    constraint : MonotonicConstraint
        The constraint.
    """

    constraint: Any = None

    def _of_least_cost(
        self, tree: Any, node_price: float, split_price: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the labels, and the subtrees that do not pay for nodes and terms."""
        costs, unit = self.cost_matrix(tree.counts[0])
        risk = tree.counts @ costs
        if self.features is not None:
            risk += (self.features.of_paths(tree) * tree.counts.sum(axis=1))[:, np.newaxis]
        risk /= unit * tree.counts[0].sum()
        orders = self.constraint.wanted_orders(tree)
        labels, marks = cheapest_labels(orders, tree.subtree_size, risk, node_price, split_price)
        return labels, marks

    def labels(self, tree: Any) -> np.ndarray:
        """Return the labels of the least cost in order, of shape (n_nodes,)."""
        return self._of_least_cost(tree, 0.0, np.zeros(tree.counts.shape[0]))[0]

    def cuts(self, tree: Any, node_price: float, split_price: np.ndarray) -> np.ndarray:
        """Return the subtrees that do not pay for what they cost, with labels in order."""
        return self._of_least_cost(tree, node_price, split_price)[1]

    def finish(self, tree: ObliqueTree, dataset: Dataset) -> ObliqueTree:
        """Return a fitted tree whose shares and labels keep the constraint, which is proved."""
        finished = self.constraint.finish(tree)
        totals = tree.values[0] * dataset.total_weight
        counted = finished.counted()
        # Of shares in order, the labels of the least cost are in order too.
        costs = ExpectedCost(self.kind, self.costs).cost_matrix(totals)[0]
        return finished.labelled((counted.counts @ costs).argmin(axis=1))


@dataclass(frozen=True)
class MonotonicMeans(Objective):
    """Means of targets of the least squared error among those that keep a monotonic constraint.

    Parameters
    ----------
    constraint : MonotonicConstraint
        The constraint.
    """

    constraint: Any = None

    @property
    def needs_rows(self) -> bool:
        """Sums of w, w y and w y**2 are enough."""
        return False

    def table(self, tree: Any) -> np.ndarray:
        """Return what each node predicts, of shape (n_nodes, 1)."""
        return self.constraint.values(tree)[:, np.newaxis]

    def risk(self, tree: Any) -> np.ndarray:
        """Return what each node takes from the share of the variance that is explained."""
        means, weight = _means(tree)
        least = np.maximum(0.0, tree.counts[:, 2] - tree.counts[:, 1] * means)
        errors = least + weight * (self.constraint.values(tree) - means) ** 2
        return errors / (tree.counts[0, 2] or 1.0)

    def quality(self, tree: Any) -> float:
        """Return the share of the targets' variance that is explained."""
        return 1.0 - float(self.risk(tree)[tree.subtree_size == 1].sum())

    def whole_loss(self, dataset: Dataset) -> float:
        """Return the squared error of the mean."""
        return float(dataset.sample_weight @ dataset.y**2)

    def finish(self, tree: ObliqueTree, dataset: Dataset) -> ObliqueTree:
        """Return a fitted tree whose means keep the constraint, which is proved."""
        return self.constraint.finish(tree)


def monotonic(objective: Objective | None, constraint: MonotonicConstraint, name: Any) -> Objective:
    """Return an objective whose predictions keep a monotonic constraint."""
    if objective is None:
        is_regression = constraint.n_classes == 0
        return (
            MonotonicMeans(constraint) if is_regression else MonotonicLabels(constraint=constraint)
        )
    if isinstance(objective, LinearLeafObjective):
        used, most = objective.used, objective.max_terms
        return MonotonicLines(used=used, max_terms=most, constraint=constraint)
    if not isinstance(objective, ExpectedCost):
        raise ValueError(
            f"objective={name!r}: with monotonic_cst allowed are 'accuracy', 'balanced_accuracy', "
            "'cost' and 'squared_error'."
        )
    if objective.costs is not None:
        (right_0, wrong_0), (wrong_1, right_1) = objective.costs
        if right_0 + right_1 > wrong_0 + wrong_1:
            raise ValueError(
                f"matrix={objective.costs}: with monotonic_cst allowed are matrices whose "
                "errors, off the diagonal, cost as much as right labels together, or more."
            )
    return MonotonicLabels(objective.kind, objective.costs, objective.features, constraint)
