"""Monotonic constraints: trees that predict no less where a feature is raised, or no more."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import _check_monotonic_cst

from evotree.individual import Individual, RegressionIndividual
from evotree.operators.constraints.orders import (
    CONFLICT,
    cheapest_labels,
    isotonic_values,
    node_orders,
)
from evotree.operators.constraints.proof import Violation, violations
from evotree.operators.pruning.penalized import cheapest, prune_tree
from evotree.operators.splitters.linear_fit import LOSSES, start_at
from evotree.operators.splitters.sparse import sparse_split
from evotree.operators.structure.rebuild import in_place_of
from evotree.operators.structure.reduced import reduced_problem
from evotree.operators.structure.splice import make_individual
from evotree.tables.columns import CategoricalColumn, Column
from evotree.tree import ObliqueTree

if TYPE_CHECKING:
    from evotree.dataset import Dataset
    from evotree.fitness.node import Node

_ROWS = 4096  # by which a split is fitted anew
_LOSS = LOSSES.index("logistic")
_C, _MAX_ITER, _TOLERANCE = 1.0, 10, 1e-2


def check_monotonic_cst(
    monotonic_cst: Any, estimator: Any, columns: Sequence[Column], n_classes: int = 0
) -> MonotonicConstraint | None:
    """Check what users ask for, and return the constraint on the features that trees read.

    Parameters
    ----------
    monotonic_cst : array-like of shape (n_columns,), dict of str to int or None
        1 for columns that the prediction may not fall with, -1 for those that it may not rise with,
        0 for others; or these numbers by the names of columns.
    estimator : object
        Its ``n_features_in_`` and, for a dict, ``feature_names_in_`` are read.
    columns : sequence of NumericColumn or CategoricalColumn of length n_columns
        How columns become features. Those that say what is missing are never constrained.
    n_classes : int, default=0
        Number of classes; 0 for regression. The share of the second of two classes is constrained.

    Returns
    -------
    MonotonicConstraint or None
        None where nothing is constrained.

    Raises
    ------
    ValueError
        If there is not one number for each column, a number is none of -1, 0 and 1, a name is
        unknown, a constrained column is one of categories, or there are more than two classes.
    """
    if monotonic_cst is None:
        return None
    if not isinstance(monotonic_cst, Mapping) and np.ndim(monotonic_cst) != 1:
        raise ValueError(
            f"monotonic_cst={monotonic_cst!r}: allowed are None, a number for each of the "
            f"{len(columns)} columns, and a dict of numbers by the names of columns."
        )
    asked = dict(monotonic_cst) if isinstance(monotonic_cst, Mapping) else monotonic_cst
    signs = _check_monotonic_cst(estimator, asked)
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
        for at in range(len(column.feature_names))
    ]
    return MonotonicConstraint(tuple(of_features))


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
    """

    signs: tuple[int, ...]

    @cached_property
    def _signs(self) -> np.ndarray:
        return np.array(self.signs, dtype=np.int64)

    def orders(self, tree: ObliqueTree) -> np.ndarray:
        """Return the order that the two sides of each split have to keep (`node_orders`)."""
        return node_orders(tree.weights, self._signs)

    # ---- splits ----------------------------------------------------------------------------------

    def keeps(self, individual: Individual) -> bool:
        """Return whether no split pulls its sides in both directions."""
        return not (self.orders(individual) == CONFLICT).any()

    def _wanted_orders(self, individual: Individual) -> np.ndarray:
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

    def repair(self, individual: Individual, dataset: Dataset) -> Individual:
        """Return an individual whose splits have no terms that pull against the others.

        Where a split has such terms, those go whose sign is not that of the difference between the
        means of its two sides. A linear classifier of the reduced problem gives the others new
        weights, and the threshold that costs least.

        Parameters
        ----------
        individual : Individual
            Not changed.
        dataset : Dataset
            Training rows.

        Returns
        -------
        Individual
            The one given where it keeps the constraint; else another in its place, not evaluated.
        """
        conflicts = np.flatnonzero(self.orders(individual) == CONFLICT)
        if conflicts.size == 0:
            return individual
        weights, thresholds = individual.weights.copy(), individual.thresholds.copy()
        orders = self._wanted_orders(individual)
        for k in conflicts.tolist():
            dropped = np.sign(weights[k]) * self._signs == -orders[k]
            mean = dataset.X[individual.order[individual.start[k] : individual.end[k]]].mean(axis=0)
            thresholds[k] -= weights[k, dropped] @ mean[dropped]
            weights[k, dropped] = 0.0
        predictions = self._predictions(individual)
        stream = np.zeros(1, dtype=np.uint64)  # of many rows, the same ones every time
        for k in conflicts[::-1].tolist():  # those below a split first
            node = reduced_problem(
                individual, dataset, k, weights, thresholds, predictions, stream, _ROWS
            )
            found = None if node is None else self._refit(node, weights[k], float(thresholds[k]))
            if found is not None:
                weights[k], thresholds[k] = found
        size = individual.subtree_size
        return in_place_of(individual, make_individual(dataset, weights, thresholds, size))

    def _refit(
        self, node: Node, weights: np.ndarray, threshold: float
    ) -> tuple[np.ndarray, float] | None:
        """Return the cheapest split on the features of another whose terms keep their pulls.

        Features whose weights would change the direction of their pull leave one fit after the
        other. None where none is left, or all rows belong to one side.
        """
        if (node.y == node.y[0]).all():
            return None
        pulls = np.sign(weights) * np.abs(self._signs)
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

    def labels(self, individual: Individual) -> np.ndarray:
        """Return the codes of two classes that the leaves predict: the most accurate in order.

        Parameters
        ----------
        individual : Individual
            A classifier.

        Returns
        -------
        ndarray of shape (n_nodes,), float64
            0 and 1; at other nodes than leaves what they would predict as such.
        """
        size, free = individual.subtree_size, np.zeros(len(individual))
        orders = self._wanted_orders(individual)
        labels: np.ndarray = cheapest_labels(orders, size, _risk(individual), 0.0, free)[0]
        return labels.astype(np.float64)

    def values(self, individual: Individual) -> np.ndarray:
        """Return what the leaves predict: the shares of the second class, or targets.

        Parameters
        ----------
        individual : Individual
            A tree with its partition.

        Returns
        -------
        ndarray of shape (n_nodes,), float64
            Of the least squared error in order (`isotonic_values`); targets in the units of the
            data set. A share above one half is the label 1 of `labels`, where labels do not tie.
        """
        orders = self._wanted_orders(individual)
        values: np.ndarray = isotonic_values(orders, individual.subtree_size, *_means(individual))
        return values

    def quality(self, individual: Individual) -> float:
        """Return the accuracy, or the share of the variance explained, of a constrained tree.

        Parameters
        ----------
        individual : Individual
            A tree with its partition.

        Returns
        -------
        float
            On the training rows, like `Individual.quality`, which is not below it.
        """
        leaves, counts = np.flatnonzero(individual.is_leaf), individual.counts
        if not isinstance(individual, RegressionIndividual):
            codes = self.labels(individual)[leaves].astype(np.int64)
            return float(counts[leaves, codes].sum() / counts[0].sum())
        total = counts[leaves, 2].sum()
        error = self._errors(individual)[leaves].sum()
        return float(1.0 - error / total) if total > 0.0 else 1.0

    def prunes(
        self, individual: Individual, node_price: float, split_price: np.ndarray
    ) -> np.ndarray:
        """Return the subtrees that do not pay for their nodes and terms.

        Parameters
        ----------
        individual : Individual
            A tree with its partition.
        node_price : float
            Price of one node: in units of weight, or of the squared error.
        split_price : ndarray of shape (n_nodes,)
            What each node costs besides if it is kept as a split.

        Returns
        -------
        ndarray of shape (n_nodes,), bool
            True where a subtree becomes a leaf. What remains of a classifier is the fittest of all
            prunings with labels in order; of a regressor it is the fittest with the present values.
        """
        size = individual.subtree_size
        if isinstance(individual, RegressionIndividual):
            marks: np.ndarray = cheapest(self._errors(individual), size, node_price, split_price)
            return marks
        risk, orders = _risk(individual), self._wanted_orders(individual)
        return cheapest_labels(orders, size, risk, node_price, split_price)[1]

    def _predictions(self, individual: Individual) -> np.ndarray:
        is_regressor = isinstance(individual, RegressionIndividual)
        return self.values(individual) if is_regressor else self.labels(individual)

    def _errors(self, individual: Individual) -> np.ndarray:
        """Return the squared error of each node as a leaf with its value in order."""
        means, weight = _means(individual)
        counts = individual.counts
        least = np.maximum(0.0, counts[:, 2] - counts[:, 1] * counts[:, 1] / counts[:, 0])
        return least + weight * (self.values(individual) - means) ** 2

    # ---- finished trees --------------------------------------------------------------------------

    def finish(self, tree: ObliqueTree) -> ObliqueTree:
        """Return a tree whose values keep the constraint, which is proved.

        Parameters
        ----------
        tree : ObliqueTree
            Rounded, with the means or class shares of its rows as values, and with
            ``n_node_samples``.

        Returns
        -------
        ObliqueTree
            The same splits without those whose sides now predict the same.

        Raises
        ------
        RuntimeError
            If the proof fails, which would be an error of this package.
        """
        means = np.ascontiguousarray(tree.values[:, -1])
        found = isotonic_values(self.orders(tree), tree.subtree_size, means, tree.n_node_samples)
        is_classifier = tree.values.shape[1] == 2
        values = np.column_stack([1.0 - found, found]) if is_classifier else found[:, np.newaxis]
        is_constant = tree.is_leaf.copy()
        for k in np.flatnonzero(~tree.is_leaf)[::-1].tolist():
            left, right = tree.left(k), tree.right(k)
            is_constant[k] = is_constant[left] & is_constant[right] & (found[left] == found[right])
        whole = ObliqueTree(
            tree.weights,
            tree.thresholds,
            tree.subtree_size,
            values,
            tree.spread,
            tree.n_node_samples,
        )
        finished = prune_tree(whole, is_constant)
        broken = self.violations(finished)
        if broken:
            raise RuntimeError(f"monotonic_cst is not proved to hold: {broken[0]}.")
        return finished

    def violations(self, tree: ObliqueTree) -> list[Violation]:
        """Return the pairs of leaves that break the constraint (`violations`); none is a proof."""
        return violations(tree, self._signs)


def _means(individual: Individual) -> tuple[np.ndarray, np.ndarray]:
    """Return the mean target, or the share of the second class, of each node, and its weight."""
    return np.ascontiguousarray(individual.values[:, -1]), individual.n_node_samples


def _risk(individual: Individual) -> np.ndarray:
    """Return the weight that each node misclassifies as a leaf of the first and second class."""
    return np.ascontiguousarray(individual.counts[:, ::-1])
