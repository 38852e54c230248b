"""Trees that a score judges: what their leaves answer, first ones, and offspring that are whole.

A row of `Individual.answers` is the position of an action; or a place between the bounds of the
number, -1 and 1, and the coefficients of a line where there are lines. NaN is no answer yet. There
are no rows that trees could be grown from: random hyperplanes through the observed region make the
first ones.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from evotree.dataset import Dataset
from evotree.fitness.base import ClassLoss
from evotree.leaf_models import LeafModels
from evotree.operators.constraints import Constraint, influences, repair
from evotree.operators.initialization.growth import GrowthLimits, grow_on_sample
from evotree.operators.initialization.population import DIPOLE, INITIAL
from evotree.operators.splitters.dipole import Dipole
from evotree.operators.structure.splice import in_place_of, make_individual
from evotree.rng import as_generator
from evotree.schema import is_number
from evotree.tree import Individual, ObliqueTree

_DIGITS = 3
# Half of new places are near the one before, so many places away.
_MOVED_SHARE = 0.5
_PLACE_STEP = 0.3
# So many new answers of lines change a coefficient; of these so many make it 0.
_LINE_SHARE = 0.7
_LOST_SHARE = 0.2
_MOST_FIRST_DEPTH = 3


@dataclass(frozen=True, eq=False)
class Actions(ClassLoss):
    """The objective of trees whose quality is known from outside."""

    n: int  # number of actions; 0 for a number
    low: float = 0.0
    high: float = 0.0
    is_linear: bool = False

    @property
    def half(self) -> float:
        """Half of the way between the bounds."""
        return 0.5 * (self.high - self.low)

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
        shares = np.eye(self.n or 2)[self.labels(individual)]
        tree = shorten(dataset.to_raw(ObliqueTree(*individual.splits, shares)))
        if self.n:
            return tree
        answers = np.where(individual.is_leaf[:, np.newaxis], individual.answers, 0.0)
        numbers = np.where(
            individual.is_leaf, self.low + self.half * (answers[:, 0] + 1.0), 0.0
        )
        if not self.is_linear:
            return tree.predicting(_short(numbers)[:, np.newaxis])
        lines = _short(self.half * answers[:, 1:] / dataset.scale)
        numbers = _short(numbers - lines @ dataset.mean)
        bounds = (np.full(len(tree), bound) for bound in (self.low, self.high))
        models = LeafModels(numbers, lines, *bounds)
        return tree.predicting(numbers[:, np.newaxis]).with_models(models)

    def answers_of(self, tree: ObliqueTree) -> np.ndarray:
        """Return what the leaves of a finished tree without models answer."""
        if self.n and (most := tree.labels.max() + 1) > self.n:
            raise ValueError(
                f"init holds a tree of {most} actions: {self.n} there are."
            )
        places = tree.labels
        if not self.n:
            places = np.clip(
                (tree.values[:, 0] - self.low) / self.half - 1.0, -1.0, 1.0
            )
        answers = self.no_answers(len(tree), tree.n_features)
        answers[tree.is_leaf] = 0.0
        answers[:, 0] += places
        return answers

    def draw(self, answer: np.ndarray, rng: np.random.Generator) -> None:
        """Let a leaf answer something else; its row of answers is written."""
        place, coefficients = answer[0], answer[1:]
        is_new = np.isnan(place)
        if self.n:
            step = rng.integers(self.n) if is_new else rng.integers(1, self.n)
            answer[0] = (np.nan_to_num(place) + step) % self.n
        elif is_new:
            answer[0] = rng.uniform(-1.0, 1.0)
            coefficients[:] = rng.normal(size=coefficients.size)
            coefficients *= rng.uniform() < 0.5
        elif coefficients.size and rng.uniform() < _LINE_SHARE:
            j = rng.integers(coefficients.size)
            step = rng.normal() * 10.0 ** rng.uniform(-2.0, 0.5)
            is_lost = coefficients[j] and rng.uniform() < _LOST_SHARE
            coefficients[j] = 0.0 if is_lost else coefficients[j] + step
        elif rng.uniform() < _MOVED_SHARE:
            answer[0] = np.clip(place + _PLACE_STEP * rng.normal(), -1.0, 1.0)
        else:
            answer[0] = rng.uniform(-1.0, 1.0)


def _short(numbers: np.ndarray) -> np.ndarray:
    """Return numbers of few digits."""
    short = [float(f"{one:.{_DIGITS}g}") for one in numbers.flat]
    return np.reshape(short, numbers.shape)


def as_actions(given: Any, leaves: Any) -> Actions:
    """Return what leaves may answer, as users say it."""
    is_linear = leaves == "linear"
    are_names = isinstance(given, list | tuple) and all(
        isinstance(one, str) for one in given
    )
    n = len(given) if are_names and len(set(given)) == len(given) else given
    if isinstance(n, int | np.integer) and n >= 2 and not is_linear:
        return Actions(int(n))
    is_pair = np.asarray(given, dtype=object).shape == (2,)
    if not is_pair or not all(map(is_number, given)) or given[0] >= given[1]:
        raise ValueError(
            f"actions={given!r}: allowed are 2 or more, different names, or two finite bounds, "
            "which leaves='linear' needs."
        )
    low, high = map(float, given)
    return Actions(0, low, high, is_linear)


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
