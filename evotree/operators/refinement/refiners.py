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
from evotree.operators.splitters.bounded import bounded
from evotree.operators.splitters.linear import Linear
from evotree.operators.splitters.linear_fit import LOSSES
from evotree.operators.splitters.registry import SPLITTERS, as_splitter
from evotree.operators.splitters.sparse import Sparse
from evotree.operators.structure.reduced import (
    leaf_table,
    loss_unit,
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

SPARSE_ROWS = 4_096
"""Most rows that the features of a split are chosen by."""

_SWEPT = 256  # splits whose features are chosen in one sweep
_ANY_SHARE = 0.25  # of the sweeps, that choose among splits of all widths

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
class SparseSweep:
    """One sweep of tree alternating optimization that chooses the features of each split.

    It takes 256 splits at most, drawn among those of a larger tree. A quarter of the sweeps choose
    among splits of all widths at each node, the others fit the splits again on the features that
    they have; the best split on one feature competes in both. Loss and C are drawn as by
    `TaoSweep`.

    Parameters
    ----------
    C : tuple of two floats above 0
        Bounds of the cost of a row's loss.
    term_penalty : float, at least 0, default=0.0
        Penalty for each term after a split's first, as in the fitness.
    max_features : int, at least 1, or None, default=None
        Greatest number of terms of a split.
    """

    C: tuple[float, float]
    term_penalty: float = 0.0
    max_features: int | None = None

    def __call__(self, individual: Individual, dataset: Dataset) -> tuple[Individual]:
        """Refine an individual in place."""
        stream: Any = individual.stream
        splitter = draw_sparse(
            self.C,
            stream,
            widths="any" if uniform(stream) < _ANY_SHARE else "same",
            max_features=self.max_features,
            term_cost=self.term_penalty * loss_unit(dataset),
        )
        return tao_sweep(
            individual,
            dataset,
            splitter,
            term_penalty=self.term_penalty,
            max_rows=SPARSE_ROWS,
            max_nodes=_SWEPT,
        )


@dataclass(frozen=True)
class LinearResplit:
    """A linear classifier at one node, its loss and C drawn as by `TaoSweep`.

    Parameters
    ----------
    C : tuple of two floats above 0
        Bounds of the cost of a row's loss.
    penalty : {"l2", "l1"}, default="l2"
        Penalty of the weights.
    max_features : int, at least 1, or None, default=None
        Greatest number of terms; where there is a bound, the features are chosen as by
        `SparseSweep`.
    """

    C: tuple[float, float]
    penalty: str = "l2"
    max_features: int | None = None

    def __call__(self, individual: Individual, dataset: Dataset) -> tuple[Individual]:
        """Refine an individual in place."""
        stream: Any = individual.stream
        if self.max_features is None:
            splitter: Splitter = draw_linear(self.C, self.penalty, stream)
        else:
            splitter = draw_sparse(self.C, stream, max_features=self.max_features)
        return Resplit(splitter)(individual, dataset)


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
        table = leaf_table(individual, dataset.n_classes)
        weights, thresholds, size = individual.nodes()[:3]
        stream: Any = individual.stream
        node = reduced_problem(
            individual, dataset, k, weights, thresholds, table, stream, NODE_ROWS
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


REFINERS = ("tao", "sparse", "centre", "prune", *SPLITTERS)
"""Names of the refiners."""


def make_refiner(
    name: str | Refiner,
    size_penalty: float,
    C: tuple[float, float],
    penalty: str = "l2",
    term_penalty: float = 0.0,
    max_features: int | None = None,
) -> Refiner:
    """Return the refiner of a name."""
    sparse = SparseSweep(C, term_penalty, max_features)
    named: dict[str, Refiner] = {
        "tao": TaoSweep(C, penalty) if max_features is None else sparse,
        "sparse": sparse,
        "centre": centre_margins,
        "prune": Prune(size_penalty, term_penalty),
        "linear": LinearResplit(C, penalty, max_features),
    }
    if not isinstance(name, str):
        if not callable(name):
            raise ValueError(f"refinement names {name!r}: allowed are names and callables.")
        return name
    if name in named:
        return named[name]
    if name in SPLITTERS:
        return Resplit(bounded(as_splitter(name), max_features))
    raise ValueError(f"refinement names {name!r}: allowed are {sorted(REFINERS)}.")
