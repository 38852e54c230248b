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
from evotree.operators.structure.reduced import SPARSE_ROWS, refit_nodes, replace_splits
from evotree.rng import make_streams

_ROUNDS = 8  # of repairs, each of which may undo what another one did


class Constraint(Protocol):
    """Something that every tree of a search keeps; a single leaf, or what is held, keeps any."""

    # The operators look for splits of at most `max_width` terms, so that few trees need repairs;
    # None says that a split may have any number.

    @property
    def max_width(self) -> int | None:
        """Most terms of a split."""

    def keeps(self, individual: Individual, dataset: Dataset) -> bool:
        """Return whether a tree over the rows of a data set keeps the constraint."""

    def repair(self, individual: Individual, dataset: Dataset) -> None:
        """Change an individual in place so that it keeps the constraint; draws nothing."""


def keeps_all(
    individual: Individual, dataset: Dataset, constraints: Sequence[Constraint]
) -> bool:
    """Return whether a tree keeps all constraints."""
    return all(constraint.keeps(individual, dataset) for constraint in constraints)


def repair(
    individual: Individual, dataset: Dataset, constraints: Sequence[Constraint]
) -> Individual:
    """Let a tree keep all constraints; it is changed in place."""
    for _ in range(_ROUNDS):
        broken = [c for c in constraints if not c.keeps(individual, dataset)]
        if not broken:
            return individual
        for constraint in broken:
            constraint.repair(individual, dataset)
    if not keeps_all(individual, dataset, constraints):
        prune_marked(individual, dataset, np.arange(len(individual)) == 0)
        for constraint in constraints:
            if not constraint.keeps(individual, dataset):
                # Puts what is held on top of the leaf.
                constraint.repair(individual, dataset)
    return individual


def repaired(
    *args: Any,
    operator: Callable[..., Any],
    repair: Callable[[Individual], Individual],
    **kwargs: Any,
) -> Any:
    """Return what an operator makes, repaired: an individual, or several."""
    made = operator(*args, **kwargs)
    for individual in (made,) if isinstance(made, Individual) else made:
        repair(individual)
    return made


def influences(individual: Individual, dataset: Dataset) -> np.ndarray:
    """Return |weight| times the spread of the feature, of shape (n_nodes, n_features)."""
    return np.abs(individual.weights) * dataset.spread


def narrow(individual: Individual, dataset: Dataset, kept: np.ndarray) -> None:
    """Take terms from splits, and fit what is left of these to the reduced problems of their nodes.

    ``kept (n_nodes, n_features)`` is a mask of the terms that stay. The splits are taken from the
    bottom up, as in a sweep of tree alternating optimization.
    """
    is_lost = (individual.weights != 0.0) & ~kept
    weights = np.where(kept, individual.weights, 0.0)
    thresholds = individual.thresholds.copy()
    stream = make_streams(0, 0, 1)[0]
    refit_nodes(
        individual,
        dataset,
        np.flatnonzero(is_lost.any(axis=1) & weights.any(axis=1))[::-1],
        weights,
        thresholds,
        fit=partial(solve, splitter=Sparse(widths="same"), stream=stream),
        stream=stream,
        max_rows=SPARSE_ROWS,
    )
    replace_splits(individual, dataset, weights, thresholds)
