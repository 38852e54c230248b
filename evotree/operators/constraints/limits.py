"""Hard bounds on the shape of trees: depth, leaves, rows of a leaf, terms."""

import math
from dataclasses import dataclass

import numpy as np

from evotree.dataset import Dataset
from evotree.individual import Individual
from evotree.operators.constraints.base import influences, narrow
from evotree.operators.pruning.penalized import (
    optimal_pruning,
    prune_marked,
    risk_of_leaves,
)
from evotree.operators.structure.splice import make_individual
from evotree.tree import ObliqueTree, node_depths, sizes_of_kept

_ROUNDING = 1e-9  # of a number of rows


@dataclass(frozen=True)
class Limits:
    """Bounds on the shape of a tree; a `Constraint`."""

    # A tree that breaks one is repaired by what it can best do without: the bounds on depth, leaves
    # and terms by pruning, the one on the rows of leaves by taking out the split above a leaf with
    # too few, so that its rows go where the other child sends them.

    max_depth: int | None = None  # splits between the root and a leaf
    max_leaves: int | None = None
    max_terms: int | None = None
    # Of the training rows, whatever their weights; a share, as trees are also found on some rows.
    min_leaf_share: float = 0.0
    max_split_terms: int | None = None  # which operators of a user's own need not keep

    @property
    def max_width(self) -> int | None:
        """No split has more terms than all of them may have together."""
        widths = [n for n in (self.max_terms, self.max_split_terms) if n is not None]
        return max(1, min(widths)) if widths else None

    def keeps(self, individual: Individual, dataset: Dataset) -> bool:
        """Return whether a tree keeps all bounds."""
        return (
            (self.max_leaves is None or individual.n_leaves <= self.max_leaves)
            and (self.max_terms is None or individual.n_terms <= self.max_terms)
            and (self.max_depth is None or individual.depth <= self.max_depth)
            and self._widest(individual) <= (self.max_split_terms or math.inf)
            and not self._small_leaves(individual, dataset).any()
        )

    def repair(self, individual: Individual, dataset: Dataset) -> None:
        """Make a tree keep all bounds."""
        width = self.max_width
        if width is not None and self._widest(individual) > width:
            order = np.argsort(-influences(individual, dataset), axis=1, kind="stable")
            kept = np.zeros(individual.weights.shape, dtype=bool)
            np.put_along_axis(kept, order[:, :width], True, axis=1)
            narrow(individual, dataset, kept)
        while (small := self._small_leaves(individual, dataset)).any():
            stays = nodes_without(individual, small)
            thinned = make_individual(
                dataset,
                individual.weights[stays],
                individual.thresholds[stays],
                sizes_of_kept(stays, individual.subtree_size),
            )
            individual.replace_by(thinned)
        if self.max_depth is not None:
            is_deepest = node_depths(individual.subtree_size) == self.max_depth
            prune_marked(individual, dataset, is_deepest & ~individual.is_leaf)
        if self.max_leaves is not None and individual.n_leaves > self.max_leaves:
            ones = np.ones(len(individual), dtype=np.int64)
            self._prune(individual, dataset, ones, self.max_leaves - 1)
        if self.max_terms is not None and individual.n_terms > self.max_terms:
            widths = np.count_nonzero(individual.weights, axis=1)
            self._prune(individual, dataset, widths, self.max_terms)

    def _widest(self, individual: Individual) -> int:
        """Return the greatest number of terms of a split; 0 for a single leaf."""
        widths = np.count_nonzero(individual.weights[~individual.is_leaf], axis=1)
        return int(widths.max(initial=0))

    def _prune(
        self,
        individual: Individual,
        dataset: Dataset,
        split_cost: np.ndarray,
        budget: int,
    ) -> None:
        """Make the pruning of least risk of a tree whose splits cost no more than a budget."""
        risk, _ = risk_of_leaves(individual, dataset.n_classes)
        marks = optimal_pruning(risk, individual.subtree_size, split_cost, budget)
        prune_marked(individual, dataset, marks)

    def _small_leaves(self, individual: Individual, dataset: Dataset) -> np.ndarray:
        """Return a mask of the leaves that have too few rows; a single leaf may have any number."""
        if self.min_leaf_share == 0.0 or len(individual) == 1:
            return np.zeros(len(individual), dtype=bool)
        before = np.append(0, np.cumsum(dataset.multiplicity[individual.order]))
        n_rows = before[individual.end] - before[individual.start]
        least = math.ceil(self.min_leaf_share * n_rows[0] - _ROUNDING)
        return individual.is_leaf & (n_rows < least)


def nodes_without(tree: ObliqueTree, leaves: np.ndarray) -> np.ndarray:
    """Return a mask of the nodes that stay where leaves and the splits above them are taken out."""
    # A leaf stays, for now, where others of the leaves stand below the other child of its parent:
    # it may be that these get rows enough.
    size, kept = tree.subtree_size, np.ones(len(tree), dtype=bool)
    for parent in np.flatnonzero(size > 1).tolist():
        left, right = tree.left(parent), tree.right(parent)
        for leaf, other in ((left, right), (right, left)):
            below = leaves[other : other + size[other]]
            if leaves[leaf] and (
                not below.any() or (size[other] == 1 and leaf == left)
            ):
                kept[parent] = kept[leaf] = False
                break
    return kept
