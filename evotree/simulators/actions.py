"""What leaves answer where a score, and no row, says what a tree is worth: actions, or a number.

A row of `Individual.answers` is the position of an action; or a place between the bounds of the
number, -1 and 1, and the coefficients of a line where there are lines. NaN is no answer yet.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from evotree.dataset import Dataset
from evotree.fitness.base import ClassLoss
from evotree.leaf_models import LeafModels
from evotree.schema import is_number
from evotree.tree import Individual, ObliqueTree

_DIGITS = 3
# Half of new places are near the one before, so many places away.
_MOVED_SHARE = 0.5
_PLACE_STEP = 0.3
# So many new answers of lines change a coefficient; of these so many make it 0.
_LINE_SHARE = 0.7
_LOST_SHARE = 0.2


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
        shares = self.labels(individual)[:, np.newaxis] == np.arange(self.n or 2)
        raw = dataset.to_raw(ObliqueTree(*individual.splits, shares.astype(float)))
        tree = shorten(raw)
        if self.n:
            return tree
        answers = np.where(individual.is_leaf[:, np.newaxis], individual.answers, 0.0)
        lines = np.zeros(individual.weights.shape)
        if self.is_linear:
            lines = _short(self.half * answers[:, 1:] / dataset.scale)
        places = self.low + self.half * (answers[:, 0] + 1.0)
        numbers = np.where(individual.is_leaf, places, 0.0)
        numbers = _short(numbers - lines @ dataset.mean)
        tree = tree.predicting(numbers[:, np.newaxis])
        if not self.is_linear:
            return tree
        bounds = (np.full(len(tree), bound) for bound in (self.low, self.high))
        return tree.with_models(LeafModels(numbers, lines, *bounds))

    def answers_of(self, tree: ObliqueTree) -> np.ndarray:
        """Return what the leaves of a finished tree without models answer."""
        answers = self.no_answers(len(tree), tree.n_features)
        if self.n and (most := tree.labels.max() + 1) > self.n:
            raise ValueError(
                f"init holds a tree of {most} actions: {self.n} there are."
            )
        places = tree.labels
        if not self.n:
            numbers = tree.values[:, 0]
            places = np.clip((numbers - self.low) / self.half - 1.0, -1.0, 1.0)
        answers[tree.is_leaf] = 0.0
        answers[tree.is_leaf, 0] = places[tree.is_leaf]
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
