"""Refiners: what polishes a tree where it is, node by node.

A *refiner* is a function of an individual and its data set that changes the individual in place, as
DEAP's operators do, and returns a tuple of it. The reduced problem of tree alternating optimization
makes one of every splitter: it re-splits the rows of one node, so that each goes to the child that
predicts it better.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from evotree._jit import kernel
from evotree.fitness.margin import centre_margin
from evotree.fitness.partition import project_rows
from evotree.operators.pruning.penalized import prune
from evotree.operators.refinement.tao import solve, tao_sweep
from evotree.operators.splitters.linear import Linear
from evotree.operators.splitters.linear_fit import LOSSES
from evotree.operators.splitters.registry import SPLITTERS, as_splitter
from evotree.operators.splitters.sparse import Sparse
from evotree.operators.structure.reduced import (
    leaf_predictions,
    reduced_problem,
    replace_tests,
)
from evotree.rng import below, uniform

if TYPE_CHECKING:
    from evotree.dataset import Dataset
    from evotree.individual import Individual
    from evotree.operators.splitters.base import Splitter

# A fit that stops early goes on where it stopped when the node is refined again.
_NEWTON_STEPS, _TOLERANCE = 5, 1e-2

NODE_ROWS = 32_768
"""Most rows that a node is refined by; so many tell a hyperplane from its neighbours."""

Refiner = Callable[["Individual", "Dataset"], tuple["Individual"]]
"""Changes an individual in place and returns a tuple of it."""


@dataclass(frozen=True)
class TaoSweep:
    """One sweep of tree alternating optimization over all nodes (see `tao_sweep`).

    Every sweep draws its loss, and its C log-uniformly: the fitness shows what the data need.

    Parameters
    ----------
    C : tuple of two floats above 0
        Bounds of the cost of a row's loss in the linear classifiers that solve the reduced
        problems.
    penalty : {"l2", "l1"}, default="l2"
        Its penalty.
    """

    C: tuple[float, float]
    penalty: str = "l2"

    def __call__(self, individual: Individual, dataset: Dataset) -> tuple[Individual]:
        """Refine an individual in place."""
        splitter = draw_linear(self.C, self.penalty, individual.stream)
        return tao_sweep(individual, dataset, splitter, max_rows=NODE_ROWS)


@dataclass(frozen=True)
class LinearResplit:
    """A linear classifier at one node, its loss and C drawn as by `TaoSweep`.

    Parameters
    ----------
    C : tuple of two floats above 0
        Bounds of the cost of a row's loss.
    penalty : {"l2", "l1"}, default="l2"
        Penalty of the weights.
    """

    C: tuple[float, float]
    penalty: str = "l2"

    def __call__(self, individual: Individual, dataset: Dataset) -> tuple[Individual]:
        """Refine an individual in place."""
        return Resplit(draw_linear(self.C, self.penalty, individual.stream))(individual, dataset)


def draw_linear(C: tuple[float, float], penalty: str, stream: Any) -> Linear:
    """Return a linear classifier: its loss is drawn, its C log-uniformly between two bounds."""
    low, high = C
    C_drawn = low * (high / low) ** uniform(stream)
    loss = LOSSES[below(stream, len(LOSSES))]
    return Linear(loss, penalty, C=C_drawn, max_iter=_NEWTON_STEPS, tol=_TOLERANCE)


def draw_sparse(C: tuple[float, float], stream: Any, **parameters: Any) -> Sparse:
    """Return a sparse splitter: its loss is drawn, its C log-uniformly between two bounds."""
    low, high = C
    C_drawn = low * (high / low) ** uniform(stream)
    return Sparse(loss=LOSSES[below(stream, len(LOSSES))], C=C_drawn, **parameters)


@dataclass(frozen=True)
class Resplit:
    """Another test at one internal node, drawn uniformly.

    Parameters
    ----------
    splitter : Splitter
        Solves the reduced problem of the node.
    """

    splitter: Splitter

    def __call__(self, individual: Individual, dataset: Dataset) -> tuple[Individual]:
        """Refine an individual in place."""
        internal = np.flatnonzero(~individual.is_leaf)
        if internal.size == 0:
            return (individual,)
        k = int(internal[below(individual.stream, internal.size)])
        predictions = leaf_predictions(individual, dataset.n_classes)
        weights, thresholds, size = individual.nodes()[:3]
        stream: Any = individual.stream
        node = reduced_problem(
            individual, dataset, k, weights, thresholds, predictions, stream, NODE_ROWS
        )
        if node is None:
            return (individual,)
        present = weights[k], float(thresholds[k])
        found = solve(node, present, self.splitter, stream)
        if found is not None:
            weights, thresholds = weights.copy(), thresholds.copy()
            weights[k], thresholds[k] = found
            replace_tests(individual, dataset, weights, thresholds)
        return (individual,)


@kernel
def centred_thresholds(X, y, weights, thresholds, subtree_size, order, start, end):
    """Return the thresholds in the middle of the margins, where these are between classes."""
    centred = thresholds.copy()
    projection = np.empty(order.shape[0])
    for k in range(subtree_size.shape[0]):
        if subtree_size[k] > 1:
            lo, hi = start[k], end[k]
            project_rows(weights, k, X, order, lo, hi, projection)
            centred[k] = centre_margin(projection, order, lo, hi, y, thresholds[k])
    return centred


def centre_margins(individual: Individual, dataset: Dataset) -> tuple[Individual]:
    """Move every threshold to the middle between the nearest rows, if these are a mixed dipole.

    No training row changes sides (Krętowski and Grześ 2005, the section on margins).

    Parameters
    ----------
    individual : Individual
        Changed in place.
    dataset : Dataset
        Training rows.

    Returns
    -------
    tuple of one Individual
        The individual.
    """
    weights, thresholds, size, *partition, _ = individual.nodes()
    centred = centred_thresholds(dataset.X, dataset.y, weights, thresholds, size, *partition)
    if (centred != thresholds).any():
        individual.move_thresholds(centred)
    return (individual,)


@dataclass(frozen=True)
class Prune:
    """Collapse the subtrees that do not pay for themselves (see `prune`).

    Parameters
    ----------
    size_penalty : float, at least 0
        Penalty for one node.
    term_penalty : float, at least 0, default=0.0
        Penalty for each term after a split's first.
    """

    size_penalty: float
    term_penalty: float = 0.0

    def __call__(self, individual: Individual, dataset: Dataset) -> tuple[Individual]:
        """Refine an individual in place."""
        return prune(individual, dataset, self.size_penalty, self.term_penalty)


REFINERS = ("tao", "centre", "prune", *SPLITTERS)
"""Names of the refiners."""


def make_refiner(
    name: str | Refiner,
    size_penalty: float,
    C: tuple[float, float],
    penalty: str = "l2",
    term_penalty: float = 0.0,
) -> Refiner:
    """Return the refiner of a name.

    Parameters
    ----------
    name : str or callable
        ``"tao"``, ``"centre"``, ``"prune"``, the name of a splitter, which re-splits one node, or a
        refiner.
    size_penalty : float, at least 0
        Penalty for one node when pruning.
    C : tuple of two floats above 0
        Bounds of the C of ``"tao"`` and ``"linear"``.
    penalty : {"l2", "l1"}, default="l2"
        Their penalty.
    term_penalty : float, at least 0, default=0.0
        Penalty for each term after a split's first when pruning.

    Returns
    -------
    callable
        The refiner.

    Raises
    ------
    ValueError
        If there is none of that name.
    """
    named: dict[str, Refiner] = {
        "tao": TaoSweep(C, penalty),
        "centre": centre_margins,
        "prune": Prune(size_penalty, term_penalty),
        "linear": LinearResplit(C, penalty),
    }
    if not isinstance(name, str):
        if not callable(name):
            raise ValueError(f"refinement names {name!r}: allowed are names and callables.")
        return name
    if name in named:
        return named[name]
    if name in SPLITTERS:
        return Resplit(as_splitter(name))
    raise ValueError(f"refinement names {name!r}: allowed are {sorted(REFINERS)}.")
