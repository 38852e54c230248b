"""Selection of parents and of different survivors, by one objective or by several.

NSGA-II (Deb, Pratap, Agarwal and Meyarivan 2002): an individual is better than another if it stands
in an earlier front of non-dominated sorting, or in the same front where there is more room. Where
sizes are few, many trees of a population have the same objectives. They count as one point when
the room in a front is measured (Fortin and Parizeau 2013), and each is one front below the other.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from deap import tools

from evotree._jit import kernel
from evotree.fitness.penalties import linear_scaling
from evotree.rng import below, uniform
from evotree.tree import Individual

# Levels of parsimony pressure, how many times the penalties of nodes and terms, and the share of
# the population that is chosen at each.
_PARSIMONY = ((1.0, 0.5), (3.0, 0.2), (10.0, 0.15), (30.0, 0.15))


@kernel
def shuffle(stream, places):
    """Bring an array into random order (Fisher and Yates)."""
    # One call for all draws: as many calls as draws took a thirtieth of the time of the loop.
    for i in range(places.shape[0] - 1, 0, -1):
        j = below(stream, i + 1)
        places[i], places[j] = places[j], places[i]


def universal_sampling(share: np.ndarray, k: int, stream: np.ndarray) -> list[int]:
    """Draw `k` positions with chances proportional to `share`, in random order."""
    # Stochastic universal sampling (Baker 1987): one turn of a wheel with k equidistant pointers,
    # so that each position is drawn its expected number of times, rounded up or down.
    passed = np.cumsum(share)
    pointers = (np.arange(k) + uniform(stream)) * passed[-1] / k
    places = np.minimum(np.searchsorted(passed, pointers, side="right"), len(share) - 1)
    shuffle(stream, places)
    return places.tolist()


def sel_proportional(
    individuals: Sequence[Individual], k: int, pressure: float = 2.0
) -> list[Individual]:
    """Select parents in proportion to their linearly scaled fitness."""
    fitness = np.array([individual.fitness.wvalues[0] for individual in individuals])
    share = linear_scaling(fitness, pressure)
    return [individuals[i] for i in universal_sampling(share, k, individuals[0].stream)]


def distinct(individuals: Sequence[Individual]) -> list[bool]:
    """Tell which individuals are trees that no earlier one is."""
    seen: dict[bytes, list[Individual]] = {}
    is_first = []
    for individual in individuals:
        # The thresholds alone tell nearly all; the comparison of trees knows clones at a glance.
        alike = seen.setdefault(individual.thresholds.tobytes(), [])
        is_new = individual not in alike
        if is_new:
            alike.append(individual)
        is_first.append(is_new)
    return is_first


def separate_duplicates(
    individuals: Sequence[Individual],
) -> tuple[list[Individual], list[Individual]]:
    """Return the first individual of each tree, and its later copies, both in their order."""
    parts: tuple[list[Individual], list[Individual]] = ([], [])
    for individual, is_first in zip(individuals, distinct(individuals), strict=True):
        parts[not is_first].append(individual)
    return parts


def replace_duplicates(
    parents: Sequence[Individual], offspring: Sequence[Individual]
) -> list[Individual]:
    """Let parents take the places of offspring that are equal to others."""
    # Most children of small trees are copies of their parents: few of their nodes mutate.
    survivors, copies = separate_duplicates([*offspring, *parents])
    missing = max(0, len(offspring) - len(survivors))
    return survivors[: len(offspring)] + [copy.clone() for copy in copies[:missing]]


def replace_best(
    parents: Sequence[Individual],
    offspring: Sequence[Individual],
    size_penalty: float = 0.0,
    term_penalty: float = 0.0,
) -> list[Individual]:
    """Let the best of parents and offspring live on, each tree once: truncation selection."""
    # Half of the places go to the fittest, the others in turn to those that would be the fittest of
    # the rest if nodes and terms were penalized 3, 10 and 30 times as much. So trees of less
    # complexity live on beside the fittest, and become parents of better ones.
    n = len(offspring)
    survivors: list[Individual] = []
    candidates, copies = separate_duplicates([*offspring, *parents])
    for pressure, share in _PARSIMONY:

        def fitness(tree: Individual, pressure: float = pressure) -> tuple[float, ...]:
            penalty = size_penalty * len(tree) + term_penalty * (
                tree.n_terms - len(tree) // 2
            )
            first, *others = tree.fitness.wvalues
            return first - (pressure - 1.0) * penalty, *others

        candidates.sort(key=fitness, reverse=True)
        n_places = min(max(1, round(share * n)), n - len(survivors))
        survivors += candidates[:n_places]
        candidates = candidates[n_places:]
    survivors += candidates[: n - len(survivors)]
    survivors.sort(key=lambda tree: tree.fitness.wvalues, reverse=True)
    missing = n - len(survivors)
    return survivors + [copy.clone() for copy in copies[:missing]]


class Standing(NamedTuple):
    """Where each of n individuals stands in non-dominated sorting."""

    # (n,) int64: 0 for the non-dominated; one more for each equal one before.
    front: np.ndarray
    # (n,): crowding distance within the front, infinite at its ends.
    crowding: np.ndarray


def standing_of(individuals: Sequence[Individual]) -> Standing:
    """Sort individuals into fronts and measure the room that they have there."""
    n = len(individuals)
    places: dict[tuple[float, ...], list[int]] = {}
    for i, individual in enumerate(individuals):
        places.setdefault(individual.fitness.wvalues, []).append(i)
    if min(map(len, places)) < 2:
        raise ValueError(
            "NSGA-II takes two objectives: evaluate with quality_and_complexity."
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
    candidates, copies = separate_duplicates([*offspring, *parents])
    survivors = sel_nsga2(candidates, len(parents))
    missing = len(parents) - len(survivors)
    return survivors + [copy.clone() for copy in copies[:missing]]
