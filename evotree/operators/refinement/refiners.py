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
from evotree.fitness.partition import centre_margin, project_rows
from evotree.operators.pruning.penalized import prune
from evotree.operators.refinement.tao import solve, tao_sweep
from evotree.operators.splitters.bounded import bounded
from evotree.operators.splitters.linear import Linear
from evotree.operators.splitters.linear_fit import LOSSES
from evotree.operators.splitters.registry import SPLITTERS, as_splitter
from evotree.operators.splitters.sparse import Sparse
from evotree.operators.structure.nodes import Nodes, Rows
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
    """One sweep of tree alternating optimization over all nodes (see `tao_sweep`)."""

    # Every sweep draws its loss, and its C log-uniformly: the fitness shows what the data need.
    C: tuple[float, float]
    penalty: str = "l2"

    def __call__(self, individual: Individual, dataset: Dataset) -> tuple[Individual]:
        """Refine an individual in place."""
        splitter = draw_linear(self.C, self.penalty, individual.stream)
        return tao_sweep(individual, dataset, splitter, max_rows=NODE_ROWS)


@dataclass(frozen=True)
class SparseSweep:
    """One sweep of tree alternating optimization that chooses the features of each split."""

    # It takes 256 splits at most, drawn among those of a larger tree. A quarter of the sweeps
    # choose among splits of all widths at each node, the others fit the splits again on the
    # features that they have; the best split on one feature competes in both.
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
        limits: dict[str, Any] = {"max_rows": SPARSE_ROWS, "max_nodes": _SWEPT}
        return tao_sweep(individual, dataset, splitter, term_penalty=self.term_penalty, **limits)


@dataclass(frozen=True)
class LinearResplit:
    """A linear classifier at one node, drawn as by `TaoSweep`, or by `SparseSweep` with a bound."""

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


def _draw_model(C: tuple[float, float], stream: Any) -> dict[str, Any]:
    """Draw the C of a classifier log-uniformly between two bounds, and its loss."""
    low, high = C
    return {"C": low * (high / low) ** uniform(stream), "loss": LOSSES[below(stream, len(LOSSES))]}


def draw_linear(C: tuple[float, float], penalty: str, stream: Any) -> Linear:
    """Return a linear classifier of a loss and a C that are drawn."""
    model = _draw_model(C, stream)
    return Linear(penalty=penalty, max_iter=_NEWTON_STEPS, tol=_TOLERANCE, **model)


def draw_sparse(C: tuple[float, float], stream: Any, **parameters: Any) -> Sparse:
    """Return a sparse splitter of a loss and a C that are drawn."""
    return Sparse(**_draw_model(C, stream), **parameters)


@dataclass(frozen=True)
class Resplit:
    """Another test at one internal node, drawn uniformly: a splitter's of its reduced problem."""

    splitter: Splitter

    def __call__(self, individual: Individual, dataset: Dataset) -> tuple[Individual]:
        """Refine an individual in place."""
        internal = np.flatnonzero(~individual.is_leaf)
        if internal.size == 0:
            return (individual,)
        stream: Any = individual.stream
        k = int(internal[below(stream, internal.size)])
        table = leaf_table(individual, dataset.n_classes)
        arrays = individual.weights, individual.thresholds, table
        node = reduced_problem(individual, dataset, k, *arrays, stream, NODE_ROWS)
        if node is None:
            return (individual,)
        present = individual.weights[k], float(individual.thresholds[k])
        test = solve(node, present, self.splitter, stream)
        if test is not None:
            weights, thresholds = individual.weights.copy(), individual.thresholds.copy()
            weights[k], thresholds[k] = test
            replace_tests(individual, dataset, weights, thresholds)
        return (individual,)


@kernel
def centred_thresholds(rows, nodes):
    """Return the thresholds in the middle of the margins, where these are between classes."""
    rows, tree = Rows(*rows), Nodes(*nodes)
    centred, order = tree.thresholds.copy(), tree.order
    projection = np.empty(order.shape[0])
    for k in range(centred.shape[0]):
        if tree.subtree_size[k] > 1:
            lo, hi = tree.start[k], tree.end[k]
            project_rows(tree.weights, k, rows.X, order, lo, hi, projection)
            centred[k] = centre_margin(projection, order, lo, hi, rows.y, centred[k])
    return centred


def centre_margins(individual: Individual, dataset: Dataset) -> tuple[Individual]:
    """Move every threshold to the middle between the nearest rows, if these are a mixed dipole."""
    # No training row changes sides (Krętowski and Grześ 2005, the section on margins).
    centred = centred_thresholds(dataset.rows, individual.nodes())
    if (centred != individual.thresholds).any():
        individual.move_thresholds(centred)
    return (individual,)


@dataclass(frozen=True)
class Prune:
    """Collapse the subtrees that do not pay for themselves (see `prune`)."""

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
