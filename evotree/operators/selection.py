"""Selection of parents in proportion to their scaled fitness."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from evotree._jit import kernel
from evotree.fitness.scaling import linear_scaling
from evotree.rng import below, uniform

if TYPE_CHECKING:
    from evotree.individual import Individual


@kernel
def universal_sampling(share, k, stream):
    """Draw `k` positions with chances proportional to `share`, in random order.

    Stochastic universal sampling (Baker 1987): one turn of a wheel with k equidistant pointers, so
    that each position is drawn its expected number of times, rounded up or down.

    Parameters
    ----------
    share : ndarray of shape (n,)
        At least 0, some above 0.
    k : int
        How many to draw.
    stream : ndarray of shape (1,), uint64
        Random state.

    Returns
    -------
    ndarray of shape (k,), int64
        Positions in `share`.
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
    individuals: Sequence[Individual], k: int, pressure: float = 2.0
) -> list[Individual]:
    """Select parents in proportion to their linearly scaled fitness.

    Parameters
    ----------
    individuals : sequence of Individual
        Evaluated individuals. Randomness comes from the stream of the first.
    k : int
        How many to select.
    pressure : float, above 1, default=2.0
        Expected number of offspring of the best.

    Returns
    -------
    list of Individual
        References, in random order; the same individual may stand there several times.
    """
    fitness = np.array([individual.fitness.wvalues[0] for individual in individuals])
    drawn = draw_proportional(fitness, k, pressure, individuals[0].stream)
    return [individuals[i] for i in drawn]
