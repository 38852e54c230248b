"""What a search on a sample found, counted, pruned and chosen again by all rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from evotree.engine.pareto import MAX_MEMBERS, FittedFront, FrontTree
from evotree.engine.search import Continuation, Result
from evotree.engine.shards import Shards, Splits
from evotree.fitness.penalties import PenalizedAccuracy
from evotree.operators.pruning.held_out import critical_alphas
from evotree.operators.pruning.penalized import (
    kept_nodes,
    node_risk,
    prune_tree,
    split_prices,
    weakest_links,
)
from evotree.tree import ObliqueTree


class Counted(NamedTuple):
    """A finished tree, and the statistics of its nodes over all rows."""

    tree: FrontTree
    counts: np.ndarray


@dataclass(kw_only=True)
class Recounted(Result):
    """What a search on a sample found, by all rows.

    The values of all nodes, the qualities, the front with its prunings, and the choice of the tree
    among these follow from the statistics that all rows give the nodes of the finalists: the front
    and the hall of fame of the run. Constraints are kept, since a pruned tree keeps them.

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
        """Return the weights and squared errors of the nodes of the trees of the front.

        Returns
        -------
        list of tuple of two ndarray of shape (n_nodes,)
            As if each node were a leaf, in the units of the targets.
        """
        unit = self.dataset.target_scale**2
        return [
            (counts[:, 0], unit * node_risk(counts, 0) * counts[0, 0]) for _, counts in self._front
        ]

    @cached_property
    def _finalists(self) -> dict[int, Counted]:
        """The trees that all rows are asked about, once, by the individual."""
        run = self.run
        individuals = [*run.pareto_front, *run.hall_of_fame, *run.best_trees.values()]
        trees = [self.tree(one) for one in individuals]
        counts = self.shards.count([Splits(t.weights, t.thresholds, t.subtree_size) for t in trees])
        return {
            id(one): self._counted(tree, of_nodes, one.origin)
            for one, tree, of_nodes in zip(individuals, trees, counts, strict=True)
        }

    def _counted(self, tree: ObliqueTree, counts: np.ndarray, origin: str) -> Counted:
        """Return a tree with the values and the quality that all rows say."""
        samples = counts.sum(axis=1) if self.dataset.n_classes else counts[:, 0].copy()
        values = counts / samples[:, np.newaxis]
        if not self.dataset.n_classes:
            values = self.shards.target_mean + self.dataset.target_scale * values[:, 1:2]
        told = ObliqueTree(
            tree.weights, tree.thresholds, tree.subtree_size, values, tree.spread, samples
        )
        quality = self.shards.quality(counts, tree.subtree_size)
        return Counted(FrontTree.of(told, quality, origin), counts)

    def _prunings(self, one: Counted) -> Iterator[Counted]:
        """Yield the best subtrees of a tree for rising prices of leaves and terms."""
        tree, counts = one
        risk, prices = node_risk(counts, self.dataset.n_classes), split_prices(tree, 2.0, 1.0)
        collapse_at = weakest_links(risk, tree.subtree_size, prices)
        for alpha in critical_alphas(collapse_at, tree.subtree_size):
            marks = collapse_at <= alpha
            kept = kept_nodes(tree.subtree_size, marks)[0]
            yield self._counted(prune_tree(tree, marks), counts[kept], tree.origin)

    @cached_property
    def _front(self) -> list[Counted]:
        """The finalists and prunings that no other dominates, by rising complexity."""
        run = self.run
        members = [self._finalists[id(one)] for one in (*run.pareto_front, *run.hall_of_fame)]
        prunings = [pruned for one in members for pruned in self._prunings(one)]
        return undominated([*members, *prunings])


def undominated(candidates: Iterable[Counted]) -> list[Counted]:
    """Return the trees that are better than all of at most their complexity.

    Parameters
    ----------
    candidates : iterable of Counted
        At least one.

    Returns
    -------
    list of Counted
        By rising complexity, at most `MAX_MEMBERS`: of more, the one is dropped that gains least
        quality for what it adds to the complexity. Of equals the first stays.
    """
    found: list[Counted] = []
    for one in sorted(candidates, key=lambda one: (one.tree.complexity, -one.tree.quality)):
        if not found or one.tree.quality > found[-1].tree.quality:
            found.append(one)
    while len(found) > MAX_MEMBERS:
        gains = np.diff([one.tree.quality for one in found])
        steps = np.diff([one.tree.complexity for one in found])
        del found[1 + int((gains / steps)[:-1].argmin())]
    return found


def recount(result: Result, shards: Shards) -> Recounted:
    """Return the result of a search on a sample, by all rows.

    Parameters
    ----------
    result : Result
        What `search` returned.
    shards : Shards
        What it was given.

    Returns
    -------
    Recounted
        With the doors of a result.
    """
    known = {one.name: getattr(result, one.name) for one in fields(result)}
    return Recounted(**known, shards=shards)
