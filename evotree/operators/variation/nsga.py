"""NSGA-II: evolution for two objectives at once (Deb, Pratap, Agarwal and Meyarivan 2002).

An individual is better than another if it stands in an earlier front of non-dominated sorting, or
in the same front where there is more room. Parents win binary tournaments (`sel_crowded`); parents
and offspring together compete for the places of the next generation (`replace_nsga2`).

Two objectives allow a sweep in place of the pairwise comparisons: n log n steps, not n².

Where sizes are few, many trees of a population have the same objectives. They count as one point
when the room in a front is measured (Fortin and Parizeau 2013), and each but the first stands one
front lower than the one before it; otherwise copies of a few points would fill the population.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from evotree._jit import kernel
from evotree.operators.variation.selection import part_duplicates
from evotree.rng import below

if TYPE_CHECKING:
    from evotree.individual import Individual


class Standing(NamedTuple):
    """Where each of n individuals stands in non-dominated sorting.

    Attributes
    ----------
    front : ndarray of shape (n,), int64
        Number of its front, 0 being the non-dominated ones; one more for each individual before it
        that has the same objectives.
    crowding : ndarray of shape (n,)
        Crowding distance within the front, infinite at its ends.
    """

    front: np.ndarray
    crowding: np.ndarray


@kernel
def sweep_fronts(first, second, order, front, crowding):
    """Sort points into fronts by one sweep; see `standing_of`.

    Parameters
    ----------
    first, second : ndarray of shape (n,)
        Objectives, both to be maximized.
    order : ndarray of shape (n,), int64
        The points by falling `first`, those of equal `first` by falling `second`, those of equal
        objectives by preference.
    front, crowding : ndarray of shape (n,)
        Written: the fields of a `Standing`.
    """
    n = order.shape[0]
    n_fronts = 0
    head = np.empty(n, dtype=np.int64)  # of each front, its first point
    tail = np.empty(n, dtype=np.int64)  # and its last so far, the highest in `second`
    before = np.full(n, -1, dtype=np.int64)
    after = np.full(n, -1, dtype=np.int64)
    twin = np.empty(n, dtype=np.int64)  # the point that a point is a copy of
    for at in range(n):
        i = order[at]
        twin[i] = i
        if at > 0:
            last = order[at - 1]
            if first[i] == first[last] and second[i] == second[last]:
                twin[i], front[i] = twin[last], front[last] + 1
                continue
        # All points so far are as good in `first`: a front dominates unless this is above its last.
        lo, hi = 0, n_fronts
        while lo < hi:
            middle = (lo + hi) // 2
            if second[tail[middle]] < second[i]:
                hi = middle
            else:
                lo = middle + 1
        front[i] = lo
        if lo == n_fronts:
            head[lo] = i
            n_fronts += 1
        else:
            before[i] = tail[lo]
            after[tail[lo]] = i
        tail[lo] = i
    for at in range(n):
        i = order[at]
        if twin[i] != i:
            crowding[i] = crowding[twin[i]]
        elif before[i] < 0 or after[i] < 0:
            crowding[i] = np.inf
        else:
            a, b = head[front[i]], tail[front[i]]
            width = (first[before[i]] - first[after[i]]) / (first[a] - first[b])
            height = (second[after[i]] - second[before[i]]) / (second[b] - second[a])
            crowding[i] = 0.5 * (width + height)


def standing_of(individuals: Sequence[Individual]) -> Standing:
    """Sort individuals into fronts and measure the room that they have there.

    Parameters
    ----------
    individuals : sequence of Individual
        Evaluated, with two objectives.

    Returns
    -------
    Standing
        DEAP's fronts and crowding distances, where no two have the same objectives.

    Raises
    ------
    ValueError
        If the fitness does not have two values.
    """
    objectives = np.array([individual.fitness.wvalues for individual in individuals])
    if objectives.ndim != 2 or objectives.shape[1] != 2:
        raise ValueError(
            f"the fitness of {len(individuals)} individuals has shape {objectives.shape}: NSGA-II "
            "takes two objectives; evaluate with QualityAndSize into FitnessQualitySize."
        )
    first, second = np.ascontiguousarray(objectives.T)
    n = len(individuals)
    standing = Standing(np.empty(n, dtype=np.int64), np.empty(n))
    sweep_fronts(first, second, np.lexsort((-second, -first)), *standing)
    return standing


def sel_nsga2(individuals: Sequence[Individual], k: int) -> list[Individual]:
    """Select the best individuals: by fronts, in the last one by room.

    Where no two have the same objectives, they are those that DEAP's ``selNSGA2`` selects.

    Parameters
    ----------
    individuals : sequence of Individual
        Evaluated, with two objectives; of equals those that come first are preferred.
    k : int
        How many to select, each at most once.

    Returns
    -------
    list of Individual
        References, by fronts.
    """
    standing = standing_of(individuals)
    order = np.lexsort((-standing.crowding, standing.front))
    return [individuals[i] for i in order[:k]]


@kernel
def draw_tournaments(front, crowding, k, stream):
    """Draw `k` winners of binary tournaments: the earlier front wins, then the larger distance."""
    winners = np.empty(k, dtype=np.int64)
    n = front.shape[0]
    for i in range(k):
        a, b = below(stream, n), below(stream, n)
        if front[b] < front[a] or (front[b] == front[a] and crowding[b] > crowding[a]):
            a = b
        winners[i] = a
    return winners


def sel_crowded(individuals: Sequence[Individual], k: int) -> list[Individual]:
    """Select parents by binary tournaments with the crowded comparison.

    Parameters
    ----------
    individuals : sequence of Individual
        Evaluated, with two objectives. Randomness comes from the stream of the first.
    k : int
        How many to select.

    Returns
    -------
    list of Individual
        References, in random order; the same individual may stand there several times.
    """
    standing = standing_of(individuals)
    winners = draw_tournaments(standing.front, standing.crowding, k, individuals[0].stream)
    return [individuals[i] for i in winners]


def replace_nsga2(
    parents: Sequence[Individual], offspring: Sequence[Individual]
) -> list[Individual]:
    """Select the next generation from parents and offspring together.

    Of equal trees one competes; others return only where there are too few different ones. An
    offspring is preferred to a parent with the same objectives, so that a population drifts.

    Parameters
    ----------
    parents, offspring : sequence of Individual
        Evaluated, with two objectives.

    Returns
    -------
    list of Individual
        As many as there are parents.
    """
    rivals, copies = part_duplicates([*offspring, *parents])
    survivors = sel_nsga2(rivals, len(parents))
    missing = len(parents) - len(survivors)
    return survivors + [copy.clone() for copy in copies[:missing]]
