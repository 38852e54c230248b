"""What an individual is worth: its quality less the penalties for its nodes and terms."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from deap import base

if TYPE_CHECKING:
    from evotree.individual import Individual


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
            n_splits = len(individual) // 2
            fitness -= self.term_penalty * (individual.n_terms - n_splits)
        return (fitness,)


class FitnessQualityComplexity(base.Fitness):
    """Two objectives: the quality, to be maximized, and the complexity, to be minimized.

    Of two fitnesses the one of higher quality is greater, of equal quality that of less complexity.
    """

    weights: tuple[float, ...] = (1.0, -1.0)
    __hash__ = base.Fitness.__hash__


class FitnessTwoScores(FitnessQualityComplexity):
    """Two scores, to be maximized, and the complexity, to be minimized."""

    weights = (1.0, 1.0, -1.0)


class FitnessThreeScores(FitnessQualityComplexity):
    """Three scores, to be maximized, and the complexity, to be minimized."""

    weights = (1.0, 1.0, 1.0, -1.0)


FITNESS_OF_SCORES = {1: FitnessQualityComplexity, 2: FitnessTwoScores, 3: FitnessThreeScores}
"""Kinds of fitness for NSGA-II, by the number of scores."""


class ScoresAndComplexity:
    """The scores of a callable objective, and the complexity."""

    def __call__(self, individual: Individual) -> tuple[float, ...]:
        """Return the values of an individual, as DEAP's ``evaluate`` does."""
        return (*individual.objective.scores(individual), float(individual.complexity))


class QualityAndComplexity:
    """Quality and complexity as objectives of their own, for `FitnessQualityComplexity`."""

    def __call__(self, individual: Individual) -> tuple[float, float]:
        """Return the two values of an individual, as DEAP's ``evaluate`` does."""
        return individual.quality, float(individual.complexity)
