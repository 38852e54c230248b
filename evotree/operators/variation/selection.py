"""Selection of parents in proportion to their scaled fitness, and of different survivors."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from evotree._jit import kernel
from evotree.fitness.scaling import linear_scaling
from evotree.rng import below, uniform

if TYPE_CHECKING:
    from evotree.individual import Individual

# By how much nodes and terms are penalized for the places of a share of the population.
_NICHES = ((1.0, 0.5), (3.0, 0.2), (10.0, 0.15), (30.0, 0.15))

# A smaller part of all chances is a 0 but for rounding, not to be scaled up.
_ROUNDING = 1e-12


@kernel
def universal_sampling(share, k, stream):
    """Draw `k` positions with chances proportional to `share`, in random order.

    Stochastic universal sampling (Baker 1987): one turn of a wheel with k equidistant pointers, so
    that each position is drawn its expected number of times, rounded up or down.
    """
    n = share.shape[0]
    drawn = np.empty(k, dtype=np.int64)
    total = 0.0
    for value in share:
        total += value
    offset = uniform(stream)
    at, passed = 0, share[0]
    for i in range(k):
        pointer = (i + offset) * total / k
        while passed <= pointer and at < n - 1:
            at += 1
            passed += share[at]
        drawn[i] = at
    for i in range(k - 1, 0, -1):
        j = below(stream, i + 1)
        drawn[i], drawn[j] = drawn[j], drawn[i]
    return drawn


@kernel
def draw_proportional(fitness, k, pressure, stream):
    """Draw `k` positions by universal sampling on linearly scaled fitness."""
    return universal_sampling(linear_scaling(fitness, pressure), k, stream)


def sel_proportional(
    individuals: Sequence[Individual],
    k: int,
    pressure: float = 2.0,
    max_origin_share: float = 1.0,
) -> list[Individual]:
    """Select parents in proportion to their linearly scaled fitness."""
    fitness = np.array([individual.fitness.wvalues[0] for individual in individuals])
    stream = individuals[0].stream
    if max_origin_share >= 1.0:
        drawn = draw_proportional(fitness, k, pressure, stream)
    else:
        origins = [individual.origin for individual in individuals]
        share = limit_origins(linear_scaling(fitness, pressure), origins, max_origin_share)
        drawn = universal_sampling(share, k, stream)
    return [individuals[i] for i in drawn]


@kernel
def cap_groups(share, group, n_groups, cap):
    """Scale the shares of groups in place so that none has more than `cap` of the whole.

    A group above the cap gets the cap, the others what is left in proportion to their shares; if
    that takes one of them above the cap, it gets the cap as well, and so on.
    """
    total, whole = np.zeros(n_groups), 0.0
    for i in range(share.shape[0]):
        total[group[i]] += share[i]
        whole += share[i]
    scale = 1.0 / whole
    capped = np.zeros(n_groups, dtype=np.bool_)
    changed = True
    while changed:
        changed = False
        free, left = 0.0, 1.0  # the shares of the groups that are not capped; what they get
        for g in range(n_groups):
            if not capped[g] and total[g] * scale > cap * (1.0 + 1e-12):
                capped[g] = changed = True
            if capped[g]:
                left -= cap
            else:
                free += total[g]
        if free > 0.0:
            scale = left / free
    for i in range(share.shape[0]):
        g = group[i]
        share[i] *= cap / total[g] if capped[g] else scale


def limit_origins(share: np.ndarray, origins: Sequence[str], max_share: float) -> np.ndarray:
    """Limit which part of the offspring the individuals of one origin are expected to have.

    The kinds of first individuals whose descendants are selected more often than that keep their
    proportions among themselves and make room for the others.
    """
    if not 0.0 < max_share <= 1.0:
        raise ValueError(f"max_origin_share={max_share!r}: allowed are numbers in (0, 1].")
    codes: dict[str, int] = {}
    group = np.array([codes.setdefault(origin, len(codes)) for origin in origins])
    share = np.array(share, dtype=np.float64)
    share[share < _ROUNDING * share.sum()] = 0.0
    n_alive = np.unique(group[share > 0.0]).shape[0]
    cap_groups(share, group, len(codes), max(max_share, 1.0 / n_alive))
    return share


def distinct(individuals: Sequence[Individual]) -> list[bool]:
    """Tell which individuals are trees that no earlier one is."""
    seen: dict[bytes, list[Individual]] = {}
    is_first = []
    for individual in individuals:
        # The thresholds alone tell nearly all; the comparison of trees knows clones at a glance.
        alike = seen.setdefault(individual.thresholds.tobytes(), [])
        new = individual not in alike
        if new:
            alike.append(individual)
        is_first.append(new)
    return is_first


def part_duplicates(
    individuals: Sequence[Individual],
) -> tuple[list[Individual], list[Individual]]:
    """Part individuals into the first of each tree and its later copies, both in their order."""
    is_first = distinct(individuals)
    firsts = [one for one, first in zip(individuals, is_first, strict=True) if first]
    return firsts, [one for one, first in zip(individuals, is_first, strict=True) if not first]


def replace_duplicates(
    parents: Sequence[Individual], offspring: Sequence[Individual]
) -> list[Individual]:
    """Let parents take the places of offspring that are equal to others.

    Most children of small trees are copies of their parents: few of their nodes mutate.
    """
    survivors, copies = part_duplicates([*offspring, *parents])
    missing = max(0, len(offspring) - len(survivors))
    return survivors[: len(offspring)] + [copy.clone() for copy in copies[:missing]]


def replace_best(
    parents: Sequence[Individual],
    offspring: Sequence[Individual],
    size_penalty: float = 0.0,
    term_penalty: float = 0.0,
) -> list[Individual]:
    """Let the best of parents and offspring live on, each tree once.

    Half of the places go to the fittest, the others in turn to those that would be the fittest of
    the rest if nodes and terms were penalized 3, 10 and 30 times as much. So trees of less
    complexity live on beside the fittest, and become parents of better ones.
    """

    def fitness(one: Individual, factor: float) -> tuple[float, ...]:
        penalty = size_penalty * len(one) + term_penalty * (one.n_terms - len(one) // 2)
        first, *others = one.fitness.wvalues
        return first - (factor - 1.0) * penalty, *others

    n = len(offspring)
    survivors: list[Individual] = []
    rest, copies = part_duplicates([*offspring, *parents])
    for factor, share in _NICHES:
        rest.sort(key=partial(fitness, factor=factor), reverse=True)
        n_places = min(max(1, round(share * n)), n - len(survivors))
        survivors += rest[:n_places]
        rest = rest[n_places:]
    survivors += rest[: n - len(survivors)]
    survivors.sort(key=lambda one: one.fitness.wvalues, reverse=True)
    missing = n - len(survivors)
    return survivors + [copy.clone() for copy in copies[:missing]]
