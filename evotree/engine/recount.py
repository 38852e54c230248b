"""What a search on a sample found, counted, pruned and chosen again by all rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np

from evotree.engine.bounds import make_constraints
from evotree.engine.pareto import FittedFront, FrontTree, undominated, with_larger
from evotree.engine.search import Continuation, Result
from evotree.engine.shards import Shards, Splits
from evotree.fitness.penalties import PenalizedAccuracy
from evotree.operators.constraints.base import Constraint
from evotree.operators.constraints.limits import Limits, nodes_without
from evotree.operators.pruning.held_out import critical_alphas
from evotree.operators.pruning.penalized import (
    kept_nodes,
    node_risk,
    prune_tree,
    split_prices,
    weakest_links,
)
from evotree.tree import CountedTree, ObliqueTree, sizes_of_kept

_tree_of = attrgetter("tree")


class Counted(NamedTuple):
    """A finished tree, and the statistics of its nodes over all rows."""

    tree: FrontTree
    counts: np.ndarray


@dataclass(kw_only=True)
class Recounted(Result):
    """What a search on a sample found, by all rows.

    The values of all nodes, the qualities, the front with its prunings, and the choice of the tree
    among these follow from the statistics that all rows give the nodes of the finalists: the front
    and the hall of fame of the run. Leaves of too few rows are taken out before; the other
    constraints are kept, since a pruned tree keeps them.

    Attributes
    ----------
    shards : Shards
        All rows, of which `dataset` is the sample.
    """

    shards: Shards

    def trees(self, individuals: Sequence[Any]) -> list[ObliqueTree]:
        """Return the finished trees of some finalists, over raw features."""
        return [self._finalists[id(one)].tree for one in individuals]

    def best(self) -> ObliqueTree:
        """Return the fittest tree of the front."""
        fitness: Any = PenalizedAccuracy(*self.plan.chosen.penalties)
        return max((one.tree for one in self._front), key=fitness)

    def front(self) -> FittedFront:
        """Return the front of the finalists and of their prunings, over raw features."""
        trees = [one.tree for one in self._front]
        return FittedFront(trees, is_regression=self.dataset.n_classes == 0)

    def continuation(self) -> Continuation:
        """Return what a later search needs to continue the run."""
        return super().continuation()._replace(all_rows=self.shards.checksum)

    def errors(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """Return the weights and squared errors of the nodes of the trees of the front."""
        unit = self.dataset.target_scale**2
        return [
            (counts[:, 0], unit * self._squared_errors(tree, counts))
            for tree, counts in self._front
        ]

    def _squared_errors(self, tree: ObliqueTree, counts: np.ndarray) -> np.ndarray:
        """Return the squared errors of the nodes by their values, which need not be means."""
        weight, means = counts[:, 0], counts[:, 1] / counts[:, 0]
        values = (tree.values[:, 0] - self.shards.target_mean) / self.dataset.target_scale
        errors: np.ndarray = node_risk(counts, 0) * weight[0] + weight * (values - means) ** 2
        return errors

    @cached_property
    def constraints(self) -> list[Constraint]:
        """What all trees keep; a bound on the rows of leaves is a share of all rows."""
        return make_constraints(self.config, self.dataset, self.shards.n_rows)

    @cached_property
    def _finalists(self) -> dict[int, Counted]:
        """The trees that all rows are asked about, once, by the individual."""
        run = self.run
        individuals = [
            *run.pareto_front,
            *run.hall_of_fame,
            *run.best_trees.values(),
            *run.larger,
        ]
        trees = self._with_large_leaves([self.tree(one) for one in individuals])
        counts = self.shards.count(_splits(trees))
        if self.dataset.is_weighted:
            n_rows = self.shards.count_rows(_splits(trees))
            trees = [
                tree.replaced(row_counts=of_nodes.astype(np.int64))
                for tree, of_nodes in zip(trees, n_rows, strict=True)
            ]
        return {
            id(one): self._counted(tree, of_nodes, one.origin)
            for one, tree, of_nodes in zip(individuals, trees, counts, strict=True)
        }

    def _with_large_leaves(self, trees: list[ObliqueTree]) -> list[ObliqueTree]:
        """Return trees without leaves of too few rows, which only the sample thought large enough.

        Rows of a leaf that is taken out go where the other side of its split sends them, so all
        rows are asked again.
        """
        limits = [one for one in self.constraints if isinstance(one, Limits) and one.min_leaf_share]
        found, pending = list(trees), list(range(len(trees))) if limits else []
        while pending:
            n_rows = self.shards.count_rows(_splits([found[at] for at in pending]))
            small = [
                limits[0].small_leaves(found[at].subtree_size, of_nodes.sum(axis=1))
                for at, of_nodes in zip(pending, n_rows, strict=True)
            ]
            changed = [(at, few) for at, few in zip(pending, small, strict=True) if few.any()]
            for at, few in changed:
                found[at] = _without(found[at], few)
            pending = [at for at, _ in changed]
        return found

    def _counted(self, tree: ObliqueTree, counts: np.ndarray, origin: str) -> Counted:
        """Return a tree with the values and the quality that all rows say."""
        samples = counts.sum(axis=1) if self.dataset.n_classes else counts[:, 0].copy()
        values = counts / samples[:, np.newaxis]
        if not self.dataset.n_classes:
            values = self.shards.target_mean + self.dataset.target_scale * values[:, 1:2]
        told = tree.predicting(values).replaced(weighted_n_node_samples=samples)
        if self.shards.objective is not None:
            told = self.shards.objective.finish(told, self.dataset)
            counts = counts[_left_over(tree.subtree_size, told.subtree_size)]
        quality = self.shards.quality(CountedTree(told.weights, told.subtree_size, counts))
        return Counted(FrontTree.of(told, quality, origin), counts)

    def _prunings(self, one: Counted) -> Iterator[Counted]:
        """Yield the best subtrees of a tree for rising prices of leaves and terms."""
        tree, counts = one
        if self.shards.objective is None:
            risk = node_risk(counts, self.dataset.n_classes)
        else:
            risk = self.shards.objective.risk(CountedTree(tree.weights, tree.subtree_size, counts))
        prices = split_prices(tree, 2.0, 1.0)
        collapse_at = weakest_links(risk, tree.subtree_size, prices)
        for alpha in critical_alphas(collapse_at, tree.subtree_size):
            marks = collapse_at <= alpha
            kept = kept_nodes(tree.subtree_size, marks)[0]
            yield self._counted(prune_tree(tree, marks), counts[kept], tree.origin)

    @cached_property
    def _front(self) -> list[Counted]:
        """The finalists and prunings that no other dominates, by rising complexity."""
        run, fitness = self.run, PenalizedAccuracy(*self.plan.chosen.penalties)

        def with_prunings(individuals: Sequence[Any]) -> list[Counted]:
            members = [self._finalists[id(one)] for one in individuals]
            return [*members, *(pruned for one in members for pruned in self._prunings(one))]

        own = undominated(with_prunings([*run.pareto_front, *run.hall_of_fame]), _tree_of)
        return with_larger(own, with_prunings(run.larger), fitness, _tree_of)


def _splits(trees: Sequence[ObliqueTree]) -> list[Splits]:
    return [Splits(one.weights, one.thresholds, one.subtree_size) for one in trees]


def _without(tree: ObliqueTree, leaves: np.ndarray) -> ObliqueTree:
    """Return a tree without some leaves and the splits above them; its values are to be counted."""
    kept = nodes_without(tree, leaves)
    arrays = tree.weights[kept], tree.thresholds[kept], sizes_of_kept(kept, tree.subtree_size)
    return ObliqueTree(*arrays, tree.values[kept], tree.spread)


def _left_over(before: np.ndarray, after: np.ndarray) -> np.ndarray:
    """Return the nodes that a pruning has kept, by the sizes of subtrees before and after it."""
    found, k = [], 0
    for size in after.tolist():
        found.append(k)
        k += int(before[k]) if size == 1 else 1
    return np.array(found)


def recount(result: Result, shards: Shards) -> Recounted:
    """Return the result of a search on a sample, by all rows."""
    known = {one.name: getattr(result, one.name) for one in fields(result)}
    return Recounted(**known, shards=shards)
