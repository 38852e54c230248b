"""Objectives: what an individual is worth."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from deap import base

from evotree._jit import kernel

if TYPE_CHECKING:
    from evotree.individual import Individual


@kernel
def used_share(weights, subtree_size):
    """Return the sum over the internal nodes of the share of their weights that is not 0.

    Parameters
    ----------
    weights : ndarray of shape (n_nodes, n_features)
        Normal vectors of the hyperplanes.
    subtree_size : ndarray of shape (n_nodes,), int32
        1 at leaves, whose weights do not count.

    Returns
    -------
    float
        The number of internal nodes where every hyperplane uses every feature.
    """
    n_used = 0
    for k in range(weights.shape[0]):
        if subtree_size[k] > 1:
            for j in range(weights.shape[1]):
                n_used += weights[k, j] != 0.0
    return n_used / weights.shape[1]


@dataclass(frozen=True)
class PenalizedAccuracy:
    """Re-classification quality less a charge for each node (GEA-ODT's fitness function).

    ``fitness = quality - size_penalty * n_nodes``, by default. Any callable with the same signature
    can take its place.

    Parameters
    ----------
    size_penalty : float, at least 0, default=0.005
        Charge for one node, the papers' alpha.
    weight_penalty : float, at least 0, default=0.0
        Charge for a test on all features; a test on a part of them costs as large a part. It makes
        tests sparse, one on a single feature being the cheapest.
    """

    size_penalty: float = 0.005
    weight_penalty: float = 0.0

    def __call__(self, individual: Individual) -> tuple[float]:
        """Return the fitness values of an individual, as DEAP's ``evaluate`` does."""
        fitness = individual.quality - self.size_penalty * len(individual)
        if self.weight_penalty:
            share = used_share(individual.weights, individual.subtree_size)
            fitness -= self.weight_penalty * share
        return (fitness,)


class FitnessQualitySize(base.Fitness):
    """Two objectives: the quality, to be maximized, and the number of nodes, to be minimized.

    Of two fitnesses the one of higher quality is greater, of equal quality that of fewer nodes.
    """

    weights = (1.0, -1.0)
    __hash__ = base.Fitness.__hash__


@dataclass(frozen=True)
class QualityAndSize:
    """Quality and number of nodes as objectives of their own, for `FitnessQualitySize`.

    Parameters
    ----------
    weight_penalty : float, at least 0, default=0.0
        What a test on all features adds to the size, in nodes; see `PenalizedAccuracy`.
    """

    weight_penalty: float = 0.0

    def __call__(self, individual: Individual) -> tuple[float, float]:
        """Return the two values of an individual, as DEAP's ``evaluate`` does."""
        size = float(len(individual))
        if self.weight_penalty:
            share = used_share(individual.weights, individual.subtree_size)
            size += self.weight_penalty * share
        return (individual.quality, size)
