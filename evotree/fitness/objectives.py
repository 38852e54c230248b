"""Objectives: what an individual is worth."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from evotree.individual import Individual


@dataclass(frozen=True)
class PenalizedAccuracy:
    """Re-classification quality less a charge for each node (GEA-ODT's fitness function).

    ``fitness = quality - size_penalty * n_nodes``. Any callable with the same signature can take
    its place.

    Parameters
    ----------
    size_penalty : float, at least 0, default=0.005
        Charge for one node, the papers' alpha.
    """

    size_penalty: float = 0.005

    def __call__(self, individual: Individual) -> tuple[float]:
        """Return the fitness values of an individual, as DEAP's ``evaluate`` does."""
        return (individual.quality - self.size_penalty * len(individual),)
