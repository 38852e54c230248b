"""First trees, and offspring that are whole: with answers in all leaves, and within bounds.

Trees that are judged by a score have no rows to be grown from: random hyperplanes through the
observed region make the first ones.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from evotree.dataset import Dataset
from evotree.operators.constraints import Constraint, influences, repair
from evotree.operators.initialization.growth import GrowthLimits, grow_on_sample
from evotree.operators.initialization.population import DIPOLE, INITIAL
from evotree.operators.splitters.dipole import Dipole
from evotree.operators.structure.splice import in_place_of, make_individual
from evotree.rng import as_generator
from evotree.tree import Individual, ObliqueTree

_MOST_FIRST_DEPTH = 3


@dataclass(frozen=True)
class Breeder:
    """Makes trees, and whole ones of what operators leave."""

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
            limits=GrowthLimits(max_depth=1 + int(rng.integers(_MOST_FIRST_DEPTH))),
        )
        grown.origin = DIPOLE
        return self.whole(grown, None, rng)

    def individual_of(self, model: Any) -> Individual:
        """Make an individual of a finished tree."""
        tree, n_features = getattr(model, "tree_", model), self.dataset.X.shape[1]
        is_tree = isinstance(tree, ObliqueTree) and tree.models is None
        if not is_tree or tree.n_features != n_features:
            raise ValueError(
                f"init holds {model!r}: allowed are trees of {n_features} features without models "
                "in leaves; a search by scores has no labels to make other ones."
            )
        tree.validate()
        answers = self.dataset.objective.answers_of(tree)
        splits = self.dataset.from_raw(tree).splits
        made = make_individual(self.dataset, *splits, answers)
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
        splits = np.flatnonzero(~individual.is_leaf)
        if splits.size and rng.uniform() < 0.5:
            weights = individual.weights.copy()
            self._change_terms(weights[rng.choice(splits)], rng)
            individual = self._with_weights(individual, weights)
        else:
            answers = individual.answers.copy()
            leaf = rng.choice(np.flatnonzero(individual.is_leaf))
            self.dataset.objective.draw(answers[leaf], rng)
            individual.answer(answers)
        return (self.whole(individual, parent, rng),)

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
        spread = self.dataset.spread
        if others.size and (used.size < 2 or rng.uniform() < 0.5):
            j = rng.choice(others)
            size = rng.normal() * np.linalg.norm(weights * spread)
            weights[j] = size / np.sqrt(max(1, used.size)) / spread[j]
        elif used.size > 1:
            weights[rng.choice(used)] = 0.0

    def whole(
        self, child: Individual, parent: Individual | None, rng: np.random.Generator
    ) -> Individual:
        """Return a tree whose leaves all answer, of actions other ones than their siblings.

        A new leaf answers as the parent does there, or something else.
        """
        actions = self.dataset.objective
        influence = influences(child, self.dataset)
        least = -np.sort(-influence, axis=1)[:, self.max_width - 1, np.newaxis]
        weights = np.where(influence >= least, child.weights, 0.0)
        if not np.array_equal(weights, child.weights):
            child = self._with_weights(child, weights)
        child = repair(child, self.dataset, self.constraints)
        answers = child.answers.copy()
        if not answers.size:  # of a tree that was grown
            answers = actions.no_answers(len(child), child.n_features)
        new = np.flatnonzero(child.is_leaf & np.isnan(answers[:, 0]))
        if new.size and parent is not None:
            points = self.dataset.X[child.order[child.start[new]]]
            answers[new] = parent.answers[parent.apply(points)]
        for k in new.tolist():
            if parent is None or rng.uniform() < 0.5:
                actions.draw(answers[k], rng)
        for k in np.flatnonzero(child.subtree_size == 3).tolist() if actions.n else ():
            if answers[k + 1, 0] == answers[k + 2, 0]:
                actions.draw(answers[k + 2], rng)
        if not np.array_equal(answers, child.answers, equal_nan=True):
            child.answer(answers)
        return child

    def _with_weights(self, tree: Individual, weights: np.ndarray) -> Individual:
        """Return an individual of a tree with other weights of its splits."""
        _, thresholds, size = tree.splits
        made = make_individual(self.dataset, weights, thresholds, size, tree.answers)
        return in_place_of(tree, made)
