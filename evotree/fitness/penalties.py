"""What an individual is worth: its quality less penalties for nodes and terms; and its scaling."""

from dataclasses import dataclass

import numpy as np
from deap import base

from evotree.tree import Individual


@dataclass(frozen=True)
class PenalizedAccuracy:
    """Re-classification quality less a penalty for each node (GEA-ODT's fitness function).

    ``fitness = quality - size_penalty * n_nodes``, by default. Any callable with the same signature
    can take its place.
    """

    size_penalty: float = 0.005  # for one node, the papers' alpha
    term_penalty: float = 0.0  # for each term after a split's first

    def __call__(self, individual: Individual) -> tuple[float]:
        """Return the fitness values of an individual, as DEAP's ``evaluate`` does."""
        fitness = individual.quality - self.size_penalty * len(individual)
        if self.term_penalty:
            fitness -= self.term_penalty * (individual.n_terms - len(individual) // 2)
        return (fitness,)


class FitnessQualityComplexity(base.Fitness):
    """Two objectives: the quality, to be maximized, and the complexity, to be minimized."""

    # Of two fitnesses the one of higher quality is greater, of equal quality that of less
    # complexity.

    weights = (1.0, -1.0)


class FitnessTwoScores(base.Fitness):
    """Two scores, to be maximized, and the complexity, to be minimized."""

    weights = (1.0, 1.0, -1.0)


class FitnessThreeScores(base.Fitness):
    """Three scores, to be maximized, and the complexity, to be minimized."""

    weights = (1.0, 1.0, 1.0, -1.0)


FITNESS_OF_SCORES = {
    1: FitnessQualityComplexity,
    2: FitnessTwoScores,
    3: FitnessThreeScores,
}
"""Kinds of fitness for NSGA-II, by the number of scores."""


def quality_and_complexity(individual: Individual) -> tuple[float, float]:
    """Return quality and complexity as objectives of their own, for `FitnessQualityComplexity`."""
    return individual.quality, float(individual.complexity)


def scores_and_complexity(individual: Individual) -> tuple[float, ...]:
    """Return the scores of a callable objective, and the complexity."""
    return (*individual.objective.scores(individual), float(individual.complexity))


def linear_scaling(fitness: np.ndarray, pressure: float) -> np.ndarray:
    """Scale fitness linearly, so that the best is expected to have `pressure` offspring."""
    # ``f' = a f + b`` with ``mean(f') = 1`` and ``max(f') = pressure``; where that would make the
    # worst negative, ``min(f') = 0`` instead (Goldberg 1989, chapter 3). Fitness may be negative.
    mean = (fitness / len(fitness)).cumsum()[-1]
    best, worst = fitness.max(), fitness.min()
    if best - worst <= 1e-15 * max(abs(best), abs(worst)):
        return np.ones(len(fitness))
    slope = (pressure - 1.0) / (best - mean)
    if 1.0 + slope * (worst - mean) < 0.0:
        slope = 1.0 / (mean - worst)
    return np.maximum(0.0, 1.0 + slope * (fitness - mean))
