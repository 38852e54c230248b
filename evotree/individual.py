"""One member of a population: a tree, its partition of the training rows, and its fitness."""

from collections.abc import Iterable
from operator import is_
from typing import Any, NamedTuple, Self

import numpy as np
from deap import base

from evotree._jit import kernel
from evotree.tree import ObliqueTree


@kernel
def explained_variance(counts, subtree_size):
    """Return the share of the targets' variance that the means of the leaves explain."""
    error = total = 0.0
    for k in range(subtree_size.shape[0]):
        if subtree_size[k] == 1:
            total += counts[k, 2]
            error += max(0.0, counts[k, 2] - counts[k, 1] * counts[k, 1] / counts[k, 0])
    return 1.0 - error / total if total > 0.0 else 1.0


@kernel
def leaf_accuracy(counts, subtree_size):
    """Return the share of the training weight that the majority classes of the leaves get right."""
    right = total = 0.0
    for k in range(subtree_size.shape[0]):
        if subtree_size[k] == 1:
            best = counts[k, 0]
            for c in range(counts.shape[1]):
                total += counts[k, c]
                best = max(best, counts[k, c])
            right += best
    return right / total


class FitnessMax(base.Fitness):
    """One objective, to be maximized."""

    # A class of this package, not one put into ``deap.creator`` at run time: it pickles, and two
    # experiments in one process cannot collide.
    weights = (1.0,)
    __hash__ = base.Fitness.__hash__


_LARGEST = 1e100  # a fitness whose square, and the sum of some squares, is finite


def set_fitness(individual: Any, values: Any) -> None:
    """Give an individual its fitness."""
    n_objectives = len(individual.fitness.weights)
    is_sound = isinstance(values, tuple) and len(values) == n_objectives
    try:
        is_sound = is_sound and all(-_LARGEST <= value <= _LARGEST for value in values)
    except (TypeError, ValueError):
        is_sound = False
    if not is_sound:
        raise ValueError(
            f"evaluate returned {values!r}: allowed is a tuple of {n_objectives} finite "
            f"number{'s' if n_objectives > 1 else ''}, of magnitudes up to {_LARGEST:g}, as many "
            f"as {type(individual.fitness).__name__} has objectives."
        )
    individual.fitness.values = values


class Outcome(NamedTuple):
    """What one refinement did."""

    operator: str  # name of the refiner
    gain: float  # rise of the fitness; 0 where the individual stayed as it was
    seconds: float  # compilation of kernels apart


_STATE = (
    "fitness",
    "stream",
    "origin",
    "outcome",
    "objective",
)  # of an individual but its arrays


class Individual(ObliqueTree):
    """A tree over a data set with its partition and its fitness.

    Operators replace the arrays and never write them, so a clone shares them with its parent.

    Parameters
    ----------
    nodes : iterable of ndarray
        ``weights, thresholds, subtree_size`` of the tree; ``order (n_rows,)``, ``start (n_nodes,)``
        and ``end (n_nodes,)`` of the partition, int32: the rows of node k are
        ``order[start[k]:end[k]]``; and ``counts (n_nodes, n_classes)``, their class weights.

    Attributes
    ----------
    fitness : FitnessMax
        DEAP's fitness; not valid after a change.
    stream : ndarray of shape (1,), uint64, or None
        Random state that operators draw from; set by the loop for each offspring.
    origin : str
        What made the first individual that it descends from: a splitter's name, or ``"initial"``.
    outcome : Outcome or None
        What a refinement did to it in this generation; a clone has none.
    objective : Objective or None
        What it is evolved for; None for the accuracy, or the squared error.
    """

    __slots__ = ("order", "start", "end", "counts", "_quality", "_n_terms", *_STATE)

    __hash__ = None

    _plain_quality = staticmethod(leaf_accuracy)

    def __eq__(self, other: object) -> bool:
        """Individuals are equal when their splits are: what they predict follows from the rows."""
        if not isinstance(other, ObliqueTree):
            return NotImplemented
        return self.has_splits_of(other)

    def __init__(self, nodes: Iterable[np.ndarray]) -> None:
        self.fitness: base.Fitness = FitnessMax()
        self.stream: Any = None
        self.origin = "unknown"
        self.outcome: Outcome | None = None
        self.objective: Any = None
        self._take(nodes)

    def _take(self, nodes: Iterable[np.ndarray]) -> None:
        self.weights, self.thresholds, self.subtree_size, *partition = nodes
        self.order, self.start, self.end, self.counts = partition
        self._quality: float | None = None
        self._n_terms: int | None = None
        self.fitness.wvalues = ()

    def replace(self, nodes: Iterable[np.ndarray]) -> None:
        """Put another tree with its partition in the place of the present one.

        For what a kernel returns, which has routed the rows; it is refused with the present
        partition. Where the arrays of the tree alone are new, `evotree.with_tree` routes them.
        """
        nodes = tuple(nodes)
        if any(map(is_, nodes[3:], self.nodes()[3:])):
            raise ValueError(
                "replace is given the partition of the present tree: make an individual of other "
                "arrays by evotree.with_tree(individual, dataset, weights, thresholds, "
                "subtree_size), which routes the rows."
            )
        self._take(nodes)

    def evolve_for(self, objective: Any) -> None:
        """Take another objective; where it is not the present one, the fitness is deleted."""
        if objective is not self.objective:
            self.objective = objective
            self._take(self.nodes())

    def measured(self, quality: float) -> None:
        """Take the quality that other rows say, until the tree changes; the fitness is deleted."""
        self._quality = quality
        self.fitness.wvalues = ()

    def replace_by(self, other: "Individual") -> None:
        """Take over tree, partition and objective of another individual; the fitness is deleted."""
        self.objective = other.objective
        self._take(other.nodes())

    def nodes(self) -> tuple[np.ndarray, ...]:
        """Return the arrays of the tree and its partition, as `replace` and kernels take them."""
        return (
            self.weights,
            self.thresholds,
            self.subtree_size,
            self.order,
            self.start,
            self.end,
            self.counts,
        )

    @property
    def values(self) -> np.ndarray:  # type: ignore[override]
        """Class shares of the nodes, of shape (n_nodes, n_classes)."""
        return self.counts / self.counts.sum(axis=1, keepdims=True)

    @property
    def quality(self) -> float:
        """Share of the weight that is right, of the variance explained, or of the objective."""
        if self._quality is None and self.objective is not None:
            self._quality = self.objective.quality(self)
        if self._quality is None:
            self._quality = self._plain_quality(self.counts, self.subtree_size)
        return self._quality

    @property
    def labels(self) -> np.ndarray:
        """Position of the class that each node predicts, of shape (n_nodes,)."""
        if self.objective is None:
            return self.counts.argmax(axis=1)
        return self.objective.labels(self)

    @property
    def n_terms(self) -> int:
        """Number of weights other than 0, counted once: many ask for it in each generation."""
        if self._n_terms is None:
            self._n_terms = super().n_terms
            if self.objective is not None:
                self._n_terms += self.objective.n_leaf_terms(self)
        return self._n_terms

    # What follows from the counts, the rows and the objective, or is known to the data set alone.
    given_labels = models = spread = row_counts = None
    output_names: Any = None

    @property
    def weighted_n_node_samples(self) -> np.ndarray:  # type: ignore[override]
        """Weights of the rows of the nodes, of shape (n_nodes,)."""
        return self.counts.sum(axis=1)

    def to_tree(self) -> ObliqueTree:
        """Return the tree alone."""
        return ObliqueTree(
            *self.splits,
            self.values,
            weighted_n_node_samples=self.weighted_n_node_samples,
        )

    def clone(self) -> Self:
        """Return an individual that shares the arrays and has a fitness of its own."""
        copy = type(self).__new__(type(self))
        copy.weights, copy.thresholds = self.weights, self.thresholds
        copy.subtree_size, copy.counts = self.subtree_size, self.counts
        copy.order, copy.start, copy.end = self.order, self.start, self.end
        copy.stream, copy.origin, copy.outcome = self.stream, self.origin, None
        copy.objective = self.objective
        copy._quality, copy._n_terms = self._quality, self._n_terms
        kind: Any = type(self.fitness)
        copy.fitness = kind.__new__(kind)  # its __init__ checks what is known
        copy.fitness.wvalues = self.fitness.wvalues
        return copy

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self.clone()

    def __getstate__(self) -> tuple[Any, ...]:
        return (
            self.nodes(),
            self.fitness,
            self.stream,
            self.origin,
            self.outcome,
            self.objective,
            self._quality,
        )

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        nodes, *others = state
        self.__init__(nodes)  # type: ignore[misc]
        for name, value in zip((*_STATE, "_quality"), others, strict=True):
            setattr(self, name, value)


class RegressionIndividual(Individual):
    """One member of a population that predicts targets."""

    # Its ``counts (n_nodes, 3)`` are the sums of w, w y and w y**2 of the nodes' rows, in the units
    # of the data set, in which the targets have mean 0.
    __slots__ = ()
    _plain_quality = staticmethod(explained_variance)

    @property
    def values(self) -> np.ndarray:  # type: ignore[override]
        """Mean targets of the nodes, (n_nodes, 1), or what the objective says they predict."""
        if self.objective is not None:
            return self.objective.values(self)
        return self.counts[:, 1:2] / self.counts[:, :1]

    @property
    def output_names(self) -> tuple[str, ...] | None:  # type: ignore[override]
        """Names of several outputs; None where there is one."""
        return getattr(self.objective, "output_names", None)

    @property
    def weighted_n_node_samples(self) -> np.ndarray:  # type: ignore[override]
        """Weights of the rows of the nodes, of shape (n_nodes,)."""
        return self.counts[:, 0].copy()
