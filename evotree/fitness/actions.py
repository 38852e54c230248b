"""Leaves that act: the objective of trees whose quality a callable says, such as a simulator."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from evotree.dataset import Dataset
from evotree.fitness.base import ClassLoss
from evotree.leaf_models import LeafModels
from evotree.tree import Individual, ObliqueTree

_DIGITS = 3  # of the numbers that leaves answer


@dataclass(frozen=True, eq=False)
class Actions(ClassLoss):
    """What leaves answer: the objective of trees whose quality is known from outside."""

    # A leaf holds it where a split has its threshold: 1 + the position of an action; or 3 + a place
    # between the bounds, -1 and 1, with the coefficients of a line as weights. 0 is no answer yet.
    n: int  # number of actions; 0 for a number
    low: float = 0.0
    high: float = 0.0
    is_linear: bool = False

    def labels(self, tree: Any) -> np.ndarray:
        """Return the position of the action of each leaf; 0 at splits."""
        return np.where(tree.subtree_size == 1, tree.thresholds - 1.0, 0.0).astype(
            np.int64
        )

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
        leaf, size = individual.is_leaf, individual.subtree_size
        weights = np.where(leaf[:, np.newaxis], 0.0, individual.weights)
        parts = weights, np.where(leaf, 0.0, individual.thresholds), size
        if self.n:
            values = (
                self.labels(individual)[:, np.newaxis] == np.arange(self.n)
            ).astype(float)
            return shorten(dataset.to_raw(ObliqueTree(*parts, values)))
        half = 0.5 * (self.high - self.low)
        lines = _short(half * (individual.weights - weights) / dataset.scale)
        numbers = np.where(leaf, self.low + half * (individual.thresholds - 2.0), 0.0)
        numbers = _short(numbers - lines @ dataset.mean)
        tree = shorten(dataset.to_raw(ObliqueTree(*parts, np.zeros((len(size), 2)))))
        tree = tree.predicting(numbers[:, np.newaxis])
        bounds = (np.full(len(size), bound) for bound in (self.low, self.high))
        return (
            tree.with_models(LeafModels(numbers, lines, *bounds))
            if self.is_linear
            else tree
        )

    def answers_of(
        self, tree: ObliqueTree, dataset: Dataset
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the weights and thresholds by which leaves hold what a finished tree answers."""
        lines, numbers, models = (
            np.zeros(tree.weights.shape),
            tree.values[:, 0],
            tree.models,
        )
        if self.n:
            if (most := tree.labels.max() + 1) > self.n:
                raise ValueError(
                    f"init holds a tree of {most} actions: {self.n} there are."
                )
            return lines, 1.0 + tree.labels
        half = 0.5 * (self.high - self.low)
        if self.is_linear and isinstance(models, LeafModels):
            lines = models.coefficients * dataset.scale / half
            numbers = models.intercepts + models.coefficients @ dataset.mean
        return lines, 3.0 + np.clip((numbers - self.low) / half - 1.0, -1.0, 1.0)

    def draw(
        self, weights: np.ndarray, thresholds: np.ndarray, k: int, rng: Any
    ) -> None:
        """Let leaf `k` answer something else."""
        has_one = thresholds[k] > 0.0
        if self.n:
            step = rng.integers(1, self.n) if has_one else rng.integers(self.n)
            thresholds[k] = 1.0 + (max(0.0, thresholds[k] - 1.0) + step) % self.n
            return
        place = rng.uniform(-1.0, 1.0)
        if has_one and rng.uniform() < 0.5:
            place = np.clip(thresholds[k] - 3.0 + 0.3 * rng.normal(), -1.0, 1.0)
        if self.is_linear and not has_one:
            weights[k] = rng.normal(size=weights.shape[1]) * (rng.uniform() < 0.5)
        elif self.is_linear and rng.uniform() < 0.7:  # a coefficient moves, or leaves
            j, place = rng.integers(weights.shape[1]), thresholds[k] - 3.0
            step = rng.normal() * 10.0 ** rng.uniform(-2.0, 0.5)
            weights[k, j] = (
                0.0 if weights[k, j] and rng.uniform() < 0.2 else weights[k, j] + step
            )
        thresholds[k] = 3.0 + place


def _short(numbers: np.ndarray) -> np.ndarray:
    """Return numbers of few digits."""
    return np.array([float(f"{one:.{_DIGITS}g}") for one in numbers.flat]).reshape(
        numbers.shape
    )


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
