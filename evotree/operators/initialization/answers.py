"""Trees whose leaves act: random ones, those that are handed in, and offspring."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from evotree.dataset import Dataset
from evotree.operators.constraints import Constraint, repair
from evotree.operators.initialization.growth import GrowthLimits, grow_on_sample
from evotree.operators.initialization.population import DIPOLE, INITIAL, raw_tree
from evotree.operators.splitters.dipole import Dipole
from evotree.operators.structure.splice import in_place_of, make_individual
from evotree.rng import as_generator
from evotree.tree import Individual, ObliqueTree

_MOST_DEPTH = 3  # of first trees


@dataclass(frozen=True)
class Breeder:
    """Makes trees, and whole ones of what operators leave: with answers, and within bounds."""

    dataset: Dataset
    constraints: Sequence[Constraint]
    max_width: int  # terms of a split

    def first(self, stream: np.ndarray) -> Individual:
        """Grow a random tree of few leaves."""
        rng = as_generator(stream)
        grown = grow_on_sample(
            self.dataset,
            self.dataset,
            Dipole(scored=False, max_width=self.max_width),
            stream,
            limits=GrowthLimits(max_depth=1 + int(rng.integers(_MOST_DEPTH))),
        )
        grown.origin = DIPOLE
        return self.whole(grown, None, rng)

    def individual_of(self, model: Any) -> Individual:
        """Make an individual of a finished tree."""
        raw_tree(model)  # checks what comes from outside
        tree, n_features = getattr(model, "tree_", model), self.dataset.X.shape[1]
        if not isinstance(tree, ObliqueTree) or tree.n_features != n_features:
            raise ValueError(
                f"init holds {model!r}: allowed are trees of {n_features} features."
            )
        scaled, leaf = self.dataset.from_raw(tree), tree.is_leaf
        lines, held = self.dataset.objective.answers_of(tree, self.dataset)
        weights = np.where(leaf[:, np.newaxis], lines, scaled.weights)
        thresholds = np.where(leaf, held, scaled.thresholds)
        made = make_individual(self.dataset, weights, thresholds, tree.subtree_size)
        made.origin = INITIAL
        return self.whole(made, made, np.random.default_rng(0))

    def mutate(
        self,
        individual: Individual,
        operator: Callable[[Individual], tuple[Individual]],
    ) -> tuple[Individual]:
        """Mutate nodes half of the times; else a term of a split, or what a leaf answers."""
        parent = individual.clone()
        rng = as_generator(individual.stream)
        if rng.uniform() < 0.5:
            return (self.whole(operator(individual)[0], parent, rng),)
        weights, thresholds, size = (array.copy() for array in individual.splits)
        splits = np.flatnonzero(size > 1)
        if splits.size and rng.uniform() < 0.5:
            self._change_terms(weights[rng.choice(splits)], rng)
        else:
            leaf = int(rng.choice(np.flatnonzero(size == 1)))
            self.dataset.objective.draw(weights, thresholds, leaf, rng)
        changed = make_individual(self.dataset, weights, thresholds, size)
        return (self.whole(in_place_of(individual, changed), parent, rng),)

    def mate(
        self, first: Individual, second: Individual, operator: Callable[..., Any]
    ) -> tuple[Individual, ...]:
        """Cross two trees."""
        parents = first.clone(), second.clone()
        rng = as_generator(first.stream)
        pairs = zip(operator(first, second), parents, strict=True)
        return tuple(self.whole(child, parent, rng) for child, parent in pairs)

    def _change_terms(self, weights: np.ndarray, rng: np.random.Generator) -> None:
        """Add a term to a split, or take one away."""
        used, others = np.flatnonzero(weights), np.flatnonzero(weights == 0.0)
        if others.size and (used.size < 2 or rng.uniform() < 0.5):
            j, size = rng.choice(others), np.linalg.norm(weights * self.dataset.spread)
            weights[j] = (
                rng.normal()
                * size
                / np.sqrt(max(1, used.size))
                / self.dataset.spread[j]
            )
        elif used.size > 1:
            weights[rng.choice(used)] = 0.0

    def whole(
        self, child: Individual, parent: Individual | None, rng: np.random.Generator
    ) -> Individual:
        """Return a tree whose leaves all answer, of actions other ones than their siblings."""
        # A new leaf answers as the parent does there, or something else.
        size, actions = (
            np.abs(child.weights) * self.dataset.spread,
            self.dataset.objective,
        )
        least = -np.sort(-size, axis=1)[:, self.max_width - 1, np.newaxis]
        weights = np.where(
            child.is_leaf[:, np.newaxis] | (size >= least), child.weights, 0.0
        )
        if not np.array_equal(weights, child.weights):
            child = in_place_of(
                child, make_individual(self.dataset, weights, *child.splits[1:])
            )
        child = repair(child, self.dataset, self.constraints)
        weights, thresholds, size = (array.copy() for array in child.splits)
        new = np.flatnonzero(child.is_leaf & (thresholds == 0.0))
        if new.size and parent is not None:
            leaf_of = np.empty(len(parent.order), dtype=np.int64)
            for k in np.flatnonzero(parent.is_leaf).tolist():
                leaf_of[parent.order[parent.start[k] : parent.end[k]]] = k
            before = leaf_of[child.order[child.start[new]]]
            weights[new], thresholds[new] = (
                parent.weights[before],
                parent.thresholds[before],
            )
        for k in new.tolist():
            if parent is None or rng.uniform() < 0.5:
                actions.draw(weights, thresholds, k, rng)
        for k in np.flatnonzero(size == 3).tolist() if actions.n else ():
            if thresholds[k + 1] == thresholds[k + 2]:
                actions.draw(weights, thresholds, k + 2, rng)
        if np.array_equal(thresholds, child.thresholds) and np.array_equal(
            weights, child.weights
        ):
            return child
        return in_place_of(
            child, make_individual(self.dataset, weights, thresholds, size)
        )
