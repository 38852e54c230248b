"""What a constraint is, and how trees come to keep all of them.

DEAP's ``gp.staticLimit`` puts a parent in the place of an offspring that breaks a limit. Here such
an offspring is repaired: most of it may be worth keeping.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Protocol

import numpy as np

from evotree.dataset import Dataset
from evotree.individual import Individual
from evotree.operators.pruning.penalized import prune_marked
from evotree.operators.refinement.tao import solve
from evotree.operators.splitters.sparse import Sparse
from evotree.operators.structure.reduced import SPARSE_ROWS, refit_nodes, replace_tests
from evotree.rng import make_streams

_ROUNDS = 8  # of repairs, each of which may undo what another one did


class Constraint(Protocol):
    """Something that every tree of a search keeps; a single leaf, or what is held, keeps any."""

    # The operators look for splits of at most `max_width` terms, so that few trees need repairs;
    # None says that a split may have any number.

    @property
    def max_width(self) -> int | None:
        """Most terms of a split."""
        ...

    def keeps(self, individual: Individual, dataset: Dataset) -> bool:
        """Return whether a tree over the rows of a data set keeps the constraint."""
        ...

    def repair(self, individual: Individual, dataset: Dataset) -> None:
        """Change an individual in place so that it keeps the constraint; draws nothing."""
        ...


def keeps_all(
    individual: Individual, dataset: Dataset, constraints: Sequence[Constraint]
) -> bool:
    """Return whether a tree keeps all constraints."""
    return all(one.keeps(individual, dataset) for one in constraints)


def repair(
    individual: Individual, dataset: Dataset, constraints: Sequence[Constraint]
) -> Individual:
    """Let a tree keep all constraints."""
    for _ in range(_ROUNDS):
        broken = [one for one in constraints if not one.keeps(individual, dataset)]
        if not broken:
            return individual
        for one in broken:
            one.repair(individual, dataset)
    if not keeps_all(individual, dataset, constraints):
        prune_marked(individual, dataset, np.arange(len(individual)) == 0)
        for one in (one for one in constraints if not one.keeps(individual, dataset)):
            one.repair(individual, dataset)  # puts what is held on top of the leaf
    return individual


def repaired(
    *args: Any,
    operator: Callable[..., Any],
    repair: Callable[[Individual], Individual],
    **kwargs: Any,
) -> Any:
    """Return what an operator makes, repaired: an individual, or several."""
    made = operator(*args, **kwargs)
    for one in (made,) if isinstance(made, Individual) else made:
        repair(one)
    return made


def influences(individual: Individual, dataset: Dataset) -> np.ndarray:
    """Return |weight| times the spread of the feature for all terms."""
    return np.abs(individual.weights) * dataset.spread


def narrow(individual: Individual, dataset: Dataset, kept: np.ndarray) -> None:
    """Take terms from splits, and fit what is left of these to the reduced problems of their nodes.

    The splits are taken from the bottom up, as in a sweep of tree alternating optimization.
    """
    lost = (individual.weights != 0.0) & ~kept
    weights, thresholds = (
        np.where(kept, individual.weights, 0.0),
        individual.thresholds.copy(),
    )
    stream, splitter = make_streams(0, 0, 1)[0], Sparse(widths="same")
    nodes = np.flatnonzero(lost.any(axis=1) & weights.any(axis=1))[::-1]
    fit = partial(solve, splitter=splitter, stream=stream)
    refit_nodes(
        individual, dataset, nodes, (weights, thresholds), fit, stream, SPARSE_ROWS
    )
    replace_tests(individual, dataset, weights, thresholds)
