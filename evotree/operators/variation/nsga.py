"""NSGA-II: evolution for several objectives at once (Deb, Pratap, Agarwal and Meyarivan 2002).

An individual is better than another if it stands in an earlier front of non-dominated sorting, or
in the same front where there is more room. Parents win binary tournaments (`sel_crowded`); parents
and offspring together compete for the places of the next generation (`replace_nsga2`).

Where sizes are few, many trees of a population have the same objectives. They count as one point
when the room in a front is measured (Fortin and Parizeau 2013), and each but the first stands one
front lower than the one before it; otherwise copies of a few points would fill the population.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from deap import tools

from evotree.operators.variation.selection import separate_duplicates
from evotree.rng import below

if TYPE_CHECKING:
    from evotree.individual import Individual


class Standing(NamedTuple):
    """Where each of n individuals stands in non-dominated sorting."""

    front: np.ndarray  # (n,) int64: 0 for the non-dominated; one more for each equal one before
    crowding: np.ndarray  # (n,): crowding distance within the front, infinite at its ends


def standing_of(individuals: Sequence[Individual]) -> Standing:
    """Sort individuals into fronts and measure the room that they have there."""
    n = len(individuals)
    places: dict[tuple[float, ...], list[int]] = {}
    for i, individual in enumerate(individuals):
        places.setdefault(individual.fitness.wvalues, []).append(i)
    n_objectives = min(map(len, places))
    if n_objectives < 2:
        raise ValueError(
            f"the fitness of {n} individuals has {n_objectives} values: NSGA-II takes two "
            "objectives or more; evaluate with QualityAndComplexity into FitnessQualityComplexity."
        )
    standing = Standing(np.empty(n, dtype=np.int64), np.empty(n))
    points = [individuals[same[0]] for same in places.values()]
    for number, front in enumerate(tools.sortLogNondominated(points, len(points))):
        tools.emo.assignCrowdingDist(front)
        for individual in front:
            same = places[individual.fitness.wvalues]
            standing.front[same] = number + np.arange(len(same))
            standing.crowding[same] = individual.fitness.crowding_dist
    return standing


def sel_nsga2(individuals: Sequence[Individual], k: int) -> list[Individual]:
    """Select the best individuals: by fronts, in the last one by room."""
    standing = standing_of(individuals)
    order = np.lexsort((-standing.crowding, standing.front))
    return [individuals[i] for i in order[:k]]


def sel_crowded(individuals: Sequence[Individual], k: int) -> list[Individual]:
    """Select parents by binary tournaments with the crowded comparison."""
    front, crowding = standing_of(individuals)
    n, stream = len(individuals), individuals[0].stream
    winners = []
    for _ in range(k):
        a, b = below(stream, n), below(stream, n)
        winners.append(b if (front[b], -crowding[b]) < (front[a], -crowding[a]) else a)
    return [individuals[i] for i in winners]


def replace_nsga2(
    parents: Sequence[Individual], offspring: Sequence[Individual]
) -> list[Individual]:
    """Select the next generation from parents and offspring together."""
    # Of equal trees one competes; others return only where there are too few different ones. An
    # offspring is preferred to a parent with the same objectives, so that a population drifts.
    rivals, copies = separate_duplicates([*offspring, *parents])
    survivors = sel_nsga2(rivals, len(parents))
    missing = len(parents) - len(survivors)
    return survivors + [copy.clone() for copy in copies[:missing]]
