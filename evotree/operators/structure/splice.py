"""How a tree changes: one slice of its arrays is rebuilt, the rest is copied.

Every operator that changes a tree with its partition is a walk over the prefix order that copies
what stays and calls `emit` for what does not. `emit` routes the rows of one node down one subtree,
writes the nodes that rows reach, and drops the parts that no row reaches. Python hands over plain
tuples, `Dataset.rows` and `Individual.nodes`: those with names take numba a microsecond more.
"""

from typing import Any, NamedTuple

import numpy as np

from evotree._jit import inner_kernel, kernel
from evotree.dataset import Dataset
from evotree.fitness.node import (
    centre_margin,
    count_classes,
    project_rows,
    split_rows,
)
from evotree.tree import NO_ANSWERS, Individual, ObliqueTree, RegressionIndividual


class Rows(NamedTuple):
    """The training rows: `X` (n, d), `y` (n,) classes or targets, `sample_weight` (n,)."""

    X: np.ndarray
    y: np.ndarray
    sample_weight: np.ndarray


class Nodes(NamedTuple):
    """The arrays of an individual, one row a node; of `order`, one entry a sample."""

    weights: np.ndarray
    thresholds: np.ndarray
    subtree_size: np.ndarray
    order: np.ndarray
    start: np.ndarray
    end: np.ndarray
    counts: np.ndarray
    answers: np.ndarray


class Scratch(NamedTuple):
    """Room for the projections and the right-hand rows of one node."""

    projection: np.ndarray
    right: np.ndarray


@inner_kernel
def make_scratch(n_rows):
    """Return scratch for nodes of at most `n_rows` rows."""
    return Scratch(np.empty(n_rows), np.empty(n_rows, dtype=np.int32))


@inner_kernel
def make_nodes(capacity, source, order):
    """Return unwritten room for `capacity` nodes over a permutation that the new tree owns."""
    return Nodes(
        np.zeros((capacity, source.weights.shape[1])),
        np.zeros(capacity),
        np.empty(capacity, dtype=np.int32),
        order,
        np.empty(capacity, dtype=np.int32),
        np.empty(capacity, dtype=np.int32),
        np.empty((capacity, source.counts.shape[1])),
        np.full((capacity, source.answers.shape[1]), np.nan),
    )


@inner_kernel
def copy_split(source, k, out, m):
    """Copy the hyperplane of node `k` of `source` to position `m` of `out`."""
    for j in range(source.weights.shape[1]):
        out.weights[m, j] = source.weights[k, j]
    out.thresholds[m] = source.thresholds[k]


@inner_kernel
def copy_nodes(source, first, last, out, m):
    """Copy nodes ``[first, last)`` of `source` to position `m` of `out`; return the next one."""
    # Loops, here and below: slice assignments take the compiler three times as long.
    for k in range(first, last):
        copy_split(source, k, out, m)
        out.subtree_size[m] = source.subtree_size[k]
        out.start[m] = source.start[k]
        out.end[m] = source.end[k]
        for c in range(source.counts.shape[1]):
            out.counts[m, c] = source.counts[k, c]
        for j in range(source.answers.shape[1]):
            out.answers[m, j] = source.answers[k, j]
        m += 1
    return m


@inner_kernel
def push(pending, n_pending, a, b, c):
    """Put a part that is still to be written on the stack; return how many there are."""
    pending[n_pending, 0] = a
    pending[n_pending, 1] = b
    pending[n_pending, 2] = c
    return n_pending + 1


@inner_kernel
def emit_leaf(rows, out, m, lo, hi):
    """Write a leaf over the rows ``order[lo:hi]`` at position `m`; return the next position."""
    for j in range(out.weights.shape[1]):
        out.weights[m, j] = 0.0
    out.thresholds[m] = 0.0
    out.subtree_size[m] = 1
    out.start[m] = lo
    out.end[m] = hi
    count_classes(out.order, lo, hi, rows.y, rows.sample_weight, out.counts, m)
    return m + 1


@inner_kernel
def emit_same_leaf(rows, source, k, out, m, lo, hi):
    """Write a leaf that answers what node `k` of `source`, a leaf, does."""
    for j in range(source.answers.shape[1]):
        out.answers[m, j] = source.answers[k, j]
    return emit_leaf(rows, out, m, lo, hi)


@inner_kernel
def emit_split(rows, out, m, lo, hi, scratch, centre):
    """Split the rows of a node by the hyperplane at position `m`; return the middle of them."""
    project_rows(out.weights, m, rows.X, out.order, lo, hi, scratch.projection)
    if centre:
        out.thresholds[m] = centre_margin(
            scratch.projection, out.order, lo, hi, rows.y, out.thresholds[m]
        )
    mid = split_rows(
        out.order, lo, hi, scratch.projection, out.thresholds[m], scratch.right
    )
    out.subtree_size[m] = 0  # not a leaf; `finish_nodes` writes the size
    out.start[m] = lo
    out.end[m] = hi
    return mid


@inner_kernel
def emit(rows, source, k, out, m, lo, hi, scratch):
    """Route the rows ``order[lo:hi]`` down the subtree of `source` at `k`, written from `m` on."""
    pending = np.empty((source.subtree_size[k], 3), dtype=np.int64)
    n_pending = push(pending, 0, k, lo, hi)
    while n_pending > 0:
        n_pending -= 1
        k, lo, hi = pending[n_pending, 0], pending[n_pending, 1], pending[n_pending, 2]
        while source.subtree_size[k] > 1:
            right = k + 1 + source.subtree_size[k + 1]
            # What stands below is written over it where it parts no rows.
            copy_split(source, k, out, m)
            mid = emit_split(rows, out, m, lo, hi, scratch, False)
            k += 1
            if mid == lo:
                k = right
            elif mid < hi:
                n_pending = push(pending, n_pending, right, mid, hi)
                hi = mid
                m += 1
        m = emit_same_leaf(rows, source, k, out, m, lo, hi)
    return m


@inner_kernel
def emit_below(rows, source, k, out, m, lo, hi, scratch, centre):
    """Do what `emit` does, with the split at position `m` of `out` in the place of that at `k`."""
    left = k + 1
    right = left + source.subtree_size[left]
    mid = emit_split(rows, out, m, lo, hi, scratch, centre)
    if mid > lo:
        m = emit(rows, source, left, out, m + (mid < hi), lo, mid, scratch)
    if mid < hi:
        m = emit(rows, source, right, out, m, mid, hi, scratch)
    return m


@inner_kernel
def finish_nodes(out, m):
    """Give the `m` nodes written their sizes and class weights; return the arrays cut to m."""
    # The class weights of an internal node are the sum of its children's, so that they too are a
    # function of the tree alone.
    size = out.subtree_size
    for k in range(m - 1, -1, -1):
        if size[k] != 1:
            left = k + 1
            right = left + size[left]
            size[k] = 1 + size[left] + size[right]
            for c in range(out.counts.shape[1]):
                out.counts[k, c] = out.counts[left, c] + out.counts[right, c]
    return (
        # A copy: or the room for all of the features of lost nodes would stay.
        out.weights[:m].copy(),
        out.thresholds[:m],
        size[:m],
        out.order,
        out.start[:m],
        out.end[:m],
        out.counts[:m],
        out.answers[:m],
    )


@kernel
def partition_tree(rows, weights, thresholds, subtree_size, answers, n_statistics):
    """Partition all rows by a tree from scratch."""
    rows = Rows(*rows)
    n = rows.X.shape[0]
    none = np.empty(0, dtype=np.int32)
    counts = np.empty((0, n_statistics))
    source = Nodes(weights, thresholds, subtree_size, none, none, none, counts, answers)
    order = np.empty(n, dtype=np.int32)
    for i in range(n):
        order[i] = i
    out = make_nodes(subtree_size.shape[0], source, order)
    return finish_nodes(out, emit(rows, source, 0, out, 0, 0, n, make_scratch(n)))


def make_individual(
    dataset: Dataset,
    weights: np.ndarray,
    thresholds: np.ndarray,
    subtree_size: np.ndarray,
    answers: np.ndarray = NO_ANSWERS,
) -> Individual:
    """Make an individual of a tree over standardized features; compute its partition."""
    kind = Individual if dataset.n_classes else RegressionIndividual
    individual = kind(
        partition_tree(
            dataset.rows,
            weights,
            thresholds,
            subtree_size,
            answers,
            dataset.n_statistics,
        )
    )
    individual.objective = dataset.bound_objective
    return individual


# ---- trees that are handed over as arrays --------------------------------------------------------


def checked_arrays(
    weights: Any, thresholds: Any, subtree_size: Any, values: Any = None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the arrays of a tree in the types that kernels take, which check nothing."""
    arrays = {
        "weights": weights,
        "thresholds": thresholds,
        "subtree_size": subtree_size,
        "values": np.zeros((len(subtree_size), 1)) if values is None else values,
    }
    for name, array in arrays.items():
        try:
            arrays[name] = np.ascontiguousarray(array, dtype=np.float64)
        except (TypeError, ValueError):
            raise ValueError(f"{name} holds something that is not a number.") from None
    size = arrays["subtree_size"]
    if not (np.abs(size) < 2**31).all() or (size != size.round()).any():
        raise ValueError(
            f"subtree_size has {size.tolist()}: allowed are integers below 2**31."
        )
    arrays["subtree_size"] = size.astype(np.int32)
    return ObliqueTree(**arrays).validate().splits


def with_tree(
    individual: Individual,
    dataset: Dataset,
    weights: Any,
    thresholds: Any,
    subtree_size: Any,
) -> Individual:
    """Return an individual of another tree: what an operator in plain Python makes of one.

    The training rows are routed from scratch and the parts that none of them reaches are left out,
    so the tree may be smaller than the one given. Its fitness is not yet evaluated. Arrays that are
    no tree, or one over another number of features, are a ValueError.

    Parameters
    ----------
    individual : Individual
        The one in whose place the new one stands: its stream, origin and kind of fitness are kept.
    dataset : Dataset
        Training rows.
    weights, thresholds : array-like of shape (n_nodes, n_features), and (n_nodes,)
        Hyperplanes in the units of the data set: x goes left where ``weights @ x <= threshold``.
    subtree_size : array-like of shape (n_nodes,)
        Number of nodes of the subtree of each node, in prefix order; 1 at a leaf.

    Examples
    --------
    >>> from evotree import Dataset, make_toolbox
    >>> from evotree.rng import as_generator
    >>> dataset = Dataset.from_arrays([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1])
    >>> toolbox = make_toolbox(dataset, size_penalty=0.005, init=None, random_state=0)
    >>> def mutate(individual):
    ...     rng = as_generator(individual.stream)
    ...     thresholds = individual.thresholds + 0.1 * rng.normal(size=len(individual))
    ...     size = individual.subtree_size
    ...     return (with_tree(individual, dataset, individual.weights, thresholds, size),)
    >>> toolbox.register("mutate", mutate)
    >>> (before,) = toolbox.population(n=1)
    >>> (after,) = toolbox.mutate(before)
    >>> len(after) == len(before)
    True
    """
    arrays = checked_arrays(weights, thresholds, subtree_size)
    n_features = dataset.X.shape[1]
    if arrays[0].shape[1] != n_features:
        raise ValueError(
            f"weights has {arrays[0].shape[1]} features, the data set {n_features}."
        )
    is_alike = np.array_equal(arrays[2], individual.subtree_size)
    answers = individual.answers if is_alike else NO_ANSWERS
    return in_place_of(individual, make_individual(dataset, *arrays, answers))


def in_place_of(individual: Individual, other: Individual) -> Individual:
    """Give another individual the stream, the origin and the kind of fitness of one; return it."""
    other.stream = individual.stream
    other.origin = individual.origin
    other.fitness = type(individual.fitness)()
    return other


def on_rows(individual: Individual, dataset: Dataset) -> Individual:
    """Return an individual of the same tree with other rows, which are routed through it."""
    return in_place_of(individual, make_individual(dataset, *individual.splits))


# ---- the sides of one split ----------------------------------------------------------------------


def subtree_sizes(is_split: list[bool]) -> np.ndarray:
    """Return the sizes of the subtrees of nodes in prefix order."""
    size = np.ones(len(is_split), dtype=np.int32)
    complete: list[int] = []
    for k in reversed(range(len(is_split))):
        if is_split[k]:
            size[k] += complete.pop() + complete.pop()
        complete.append(int(size[k]))
    return size


@kernel
def part_rows(X, order, lo, hi, w, threshold):
    """Reorder ``order[lo:hi]`` by a hyperplane, as every partition does; return the middle."""
    projection = np.empty(hi - lo)
    project_rows(w.reshape(1, w.shape[0]), 0, X, order, lo, hi, projection)
    return split_rows(
        order, lo, hi, projection, threshold, np.empty(hi - lo, dtype=np.int32)
    )
