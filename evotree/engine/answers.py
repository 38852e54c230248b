"""What leaves answer in a search by scores, and how trees that answer are made and changed.

Trees that are judged by a score alone have no rows to be grown from: `Breeder` makes those from
random hyperplanes through the observed region.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from evotree.dataset import Dataset
from evotree.fitness.base import ClassLoss
from evotree.leaf_models import LeafModels
from evotree.operators.constraints import Constraint, repair
from evotree.operators.initialization.growth import GrowthLimits, grow_on_sample
from evotree.operators.initialization.population import DIPOLE, INITIAL, raw_tree
from evotree.operators.splitters.dipole import Dipole
from evotree.operators.structure.splice import in_place_of, make_individual
from evotree.rng import as_generator
from evotree.tree import Individual, ObliqueTree

_ACTION_DIGITS = 3


@dataclass(frozen=True, eq=False)
class Actions(ClassLoss):
    """What leaves answer: the objective of trees whose quality is known from outside."""

    # A row of `Individual.answers` is the position of an action; or a place between the bounds, -1
    # and 1, and the coefficients of a line where there are lines. NaN is no answer yet.
    n: int  # number of actions; 0 for a number
    low: float = 0.0
    high: float = 0.0
    is_linear: bool = False

    def no_answers(self, n_nodes: int, n_features: int) -> np.ndarray:
        """Return the answers of a tree whose leaves do not answer yet."""
        return np.full((n_nodes, 1 + n_features * self.is_linear), np.nan)

    def labels(self, tree: Any) -> np.ndarray:
        """Return the position of the action of each leaf; 0 at splits."""
        return np.nan_to_num(tree.answers[:, 0]).astype(np.int64)

    def n_leaf_terms(self, tree: Any) -> int:
        """Return the number of coefficients of the lines of the leaves."""
        return int((np.abs(tree.answers[:, 1:]) > 0.0).sum())

    def risk(self, tree: Any) -> np.ndarray:
        """Return the share of the points that reach each split: bounds take the least of these."""
        shares: np.ndarray = tree.counts.sum(axis=1) / tree.counts[0].sum()
        return np.where(tree.subtree_size > 1, shares, 0.0)

    def finished(
        self,
        individual: Individual,
        dataset: Dataset,
        shorten: Callable[[ObliqueTree], ObliqueTree],
    ) -> ObliqueTree:
        """Return a tree over raw features, with numbers of few digits, that answers."""
        n_nodes, leaf = len(individual), individual.is_leaf
        if self.n:
            of_actions = self.labels(individual)[:, np.newaxis] == np.arange(self.n)
            values = of_actions.astype(float)
            return shorten(dataset.to_raw(ObliqueTree(*individual.splits, values)))
        half = 0.5 * (self.high - self.low)
        places, lines = individual.answers[:, 0], np.zeros(individual.weights.shape)
        if self.is_linear:
            coefficients = np.where(leaf[:, np.newaxis], individual.answers[:, 1:], 0.0)
            lines = _short(half * coefficients / dataset.scale)
        numbers = np.where(leaf, self.low + half * (places + 1.0), 0.0)
        numbers = _short(numbers - lines @ dataset.mean)
        blank = np.zeros((n_nodes, 2))
        tree = shorten(dataset.to_raw(ObliqueTree(*individual.splits, blank)))
        tree = tree.predicting(numbers[:, np.newaxis])
        if not self.is_linear:
            return tree
        bounds = (np.full(n_nodes, bound) for bound in (self.low, self.high))
        return tree.with_models(LeafModels(numbers, lines, *bounds))

    def answers_of(self, tree: ObliqueTree, dataset: Dataset) -> np.ndarray:
        """Return what the leaves of a finished tree answer."""
        answers = self.no_answers(len(tree), tree.n_features)
        leaf, numbers, models = tree.is_leaf, tree.values[:, 0], tree.models
        if self.n:
            if (most := tree.labels.max() + 1) > self.n:
                raise ValueError(
                    f"init holds a tree of {most} actions: {self.n} there are."
                )
            answers[leaf, 0] = tree.labels[leaf]
            return answers
        half = 0.5 * (self.high - self.low)
        answers[leaf, 1:] = 0.0
        if self.is_linear and isinstance(models, LeafModels):
            answers[leaf, 1:] = (models.coefficients * dataset.scale / half)[leaf]
            numbers = models.intercepts + models.coefficients @ dataset.mean
        places = np.clip((numbers - self.low) / half - 1.0, -1.0, 1.0)
        answers[leaf, 0] = places[leaf]
        return answers

    def draw(self, answer: np.ndarray, rng: np.random.Generator) -> None:
        """Let a leaf answer something else; its row of answers is written."""
        place, coefficients = answer[0], answer[1:]
        has_one = not np.isnan(place)
        if self.n:
            step = rng.integers(1, self.n) if has_one else rng.integers(self.n)
            answer[0] = (np.nan_to_num(place) + step) % self.n
            return
        answer[0] = rng.uniform(-1.0, 1.0)
        if has_one and rng.uniform() < 0.5:
            answer[0] = np.clip(place + 0.3 * rng.normal(), -1.0, 1.0)
        if self.is_linear and not has_one:
            coefficients[:] = rng.normal(size=coefficients.size)
            coefficients *= rng.uniform() < 0.5
        elif self.is_linear and rng.uniform() < 0.7:  # a coefficient moves, or leaves
            answer[0] = place
            j = rng.integers(coefficients.size)
            step = rng.normal() * 10.0 ** rng.uniform(-2.0, 0.5)
            leaves = coefficients[j] and rng.uniform() < 0.2
            coefficients[j] = 0.0 if leaves else coefficients[j] + step


def _short(numbers: np.ndarray) -> np.ndarray:
    """Return numbers of few digits."""
    return np.array(
        [float(f"{one:.{_ACTION_DIGITS}g}") for one in numbers.flat]
    ).reshape(numbers.shape)


def as_actions(given: Any, leaves: Any) -> Actions:
    """Return what leaves may answer, as users say it."""
    named = isinstance(given, list | tuple) and all(
        isinstance(one, str) for one in given
    )
    n = (len(set(given)) == len(given)) * len(given) if named else given
    if isinstance(n, int | np.integer) and n >= 2 and leaves != "linear":
        return Actions(int(n))
    try:
        low, high = (float(bound) for bound in given)
    except (TypeError, ValueError):
        low = high = math.nan
    if not math.isfinite(high - low) or low >= high:
        allowed = "2 or more, different names, or two finite bounds, which leaves='linear' needs"
        raise ValueError(f"actions={given!r}: allowed are {allowed}.")
    return Actions(0, low, high, leaves == "linear")


_MOST_FIRST_DEPTH = 3


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
            limits=GrowthLimits(max_depth=1 + int(rng.integers(_MOST_FIRST_DEPTH))),
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
        answers = self.dataset.objective.answers_of(tree, self.dataset)
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
        actions = self.dataset.objective
        influence = np.abs(child.weights) * self.dataset.spread
        least = -np.sort(-influence, axis=1)[:, self.max_width - 1, np.newaxis]
        weights = np.where(influence >= least, child.weights, 0.0)
        if not np.array_equal(weights, child.weights):
            child = self._with_weights(child, weights)
        child = repair(child, self.dataset, self.constraints)
        answers = child.answers.copy()
        if not answers.size:  # of a tree that was grown, or is a user's
            answers = actions.no_answers(len(child), child.n_features)
        new = np.flatnonzero(child.is_leaf & np.isnan(answers[:, 0]))
        if new.size and parent is not None:
            leaf_of = np.empty(len(parent.order), dtype=np.int64)
            for k in np.flatnonzero(parent.is_leaf).tolist():
                leaf_of[parent.order[parent.start[k] : parent.end[k]]] = k
            answers[new] = parent.answers[leaf_of[child.order[child.start[new]]]]
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
