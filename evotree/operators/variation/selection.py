"""Selection of parents in proportion to their scaled fitness, and of different survivors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from evotree._jit import kernel
from evotree.fitness.penalties import linear_scaling
from evotree.rng import below, uniform

if TYPE_CHECKING:
    from evotree.individual import Individual

# Levels of parsimony pressure, how many times the penalties of nodes and terms, and the share of
# the population that is chosen at each.
_PARSIMONY = ((1.0, 0.5), (3.0, 0.2), (10.0, 0.15), (30.0, 0.15))


@kernel
def universal_sampling(share, k, stream):
    """Draw `k` positions with chances proportional to `share`, in random order."""
    # Stochastic universal sampling (Baker 1987): one turn of a wheel with k equidistant pointers,
    # so that each position is drawn its expected number of times, rounded up or down.
    drawn = np.empty(k, dtype=np.int64)
    total = 0.0
    for value in share:
        total += value
    offset = uniform(stream)
    position, passed = 0, share[0]
    for i in range(k):
        pointer = (i + offset) * total / k
        while passed <= pointer and position < share.shape[0] - 1:
            position += 1
            passed += share[position]
        drawn[i] = position
    for i in range(k - 1, 0, -1):
        j = below(stream, i + 1)
        drawn[i], drawn[j] = drawn[j], drawn[i]
    return drawn


def sel_proportional(
    individuals: Sequence[Individual],
    k: int,
    pressure: float = 2.0,
) -> list[Individual]:
    """Select parents in proportion to their linearly scaled fitness."""
    fitness = np.array([individual.fitness.wvalues[0] for individual in individuals])
    share = linear_scaling(fitness, pressure)
    stream: Any = individuals[0].stream
    return [individuals[i] for i in universal_sampling(share, k, stream)]


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
            penalty = size_penalty * len(tree) + term_penalty * (tree.n_terms - len(tree) // 2)
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
