"""How a tree changes: one slice of its arrays is rebuilt, the rest is copied.

Every operator that changes a tree with its partition is a walk over the prefix order that copies
what stays and calls `emit` for what does not. `emit` routes the rows of one node down one subtree,
writes the nodes that rows reach, and drops the parts that no row reaches. Inside compiled code a
tree with its partition is a `Nodes`, the training rows are a `Rows`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from evotree._jit import inner_kernel, kernel
from evotree.fitness.partition import (
    count_classes,
    project_rows,
    sort_rows,
    split_rows,
)
from evotree.individual import Individual, RegressionIndividual
from evotree.operators.dipole import centre_margin

if TYPE_CHECKING:
    from evotree.dataset import Dataset


class Rows(NamedTuple):
    """The training rows: `X` (n, d), `y` (n,) classes or targets, `sample_weight` (n,)."""

    X: np.ndarray
    y: np.ndarray
    sample_weight: np.ndarray


class Nodes(NamedTuple):
    """The arrays of a tree and its partition, one row a node; of `order`, one entry a sample."""

    weights: np.ndarray
    thresholds: np.ndarray
    subtree_size: np.ndarray
    order: np.ndarray
    start: np.ndarray
    end: np.ndarray
    counts: np.ndarray


class Scratch(NamedTuple):
    """Room for the projections and the right-hand rows of one node."""

    projection: np.ndarray
    right: np.ndarray


@inner_kernel
def make_scratch(n_rows):
    """Return scratch for nodes of at most `n_rows` rows."""
    return Scratch(np.empty(n_rows), np.empty(n_rows, dtype=np.int32))


@inner_kernel
def make_nodes(capacity, n_features, n_statistics, order):
    """Return unwritten room for `capacity` nodes over a permutation that the new tree owns."""
    return Nodes(
        np.zeros((capacity, n_features)),
        np.zeros(capacity),
        np.empty(capacity, dtype=np.int32),
        order,
        np.empty(capacity, dtype=np.int32),
        np.empty(capacity, dtype=np.int32),
        np.empty((capacity, n_statistics)),
    )


@inner_kernel
def copy_nodes(source, first, last, out, m):
    """Copy nodes ``[first, last)`` of `source` to position `m` of `out`; return the next one."""
    # Loops, here and below: slice assignments take the compiler three times as long.
    for k in range(first, last):
        for j in range(source.weights.shape[1]):
            out.weights[m, j] = source.weights[k, j]
        out.thresholds[m] = source.thresholds[k]
        out.subtree_size[m] = source.subtree_size[k]
        out.start[m] = source.start[k]
        out.end[m] = source.end[k]
        for c in range(source.counts.shape[1]):
            out.counts[m, c] = source.counts[k, c]
        m += 1
    return m


@inner_kernel
def copy_test(source, k, out, m):
    """Copy the test of node `k` of `source` to position `m` of `out`."""
    for j in range(source.weights.shape[1]):
        out.weights[m, j] = source.weights[k, j]
    out.thresholds[m] = source.thresholds[k]


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
def emit_split(rows, out, m, lo, hi, scratch, centre):
    """Split the rows of a node by the test that stands at position `m`.

    Parameters
    ----------
    rows : Rows
        Training rows.
    out : Nodes
        The new tree; its order is written in ``[lo, hi)``, and the node where the test parts rows.
    m : int
        Position of the node.
    lo, hi : int
        The slice of its rows.
    scratch : Scratch
        Overwritten.
    centre : bool
        Whether to centre the margin of the test.

    Returns
    -------
    int
        Where the right part begins; `lo` or `hi` where the test parts nothing.
    """
    project_rows(out.weights, m, rows.X, out.order, lo, hi, scratch.projection)
    if centre:
        out.thresholds[m] = centre_margin(
            scratch.projection, out.order, lo, hi, rows.y, out.thresholds[m]
        )
    mid = split_rows(out.order, lo, hi, scratch.projection, out.thresholds[m], scratch.right)
    if lo < mid < hi:
        out.subtree_size[m] = 0  # not a leaf; `finish` writes the size
        out.start[m] = lo
        out.end[m] = hi
    return mid


@inner_kernel
def push(pending, n_pending, a, b, c):
    """Put a part that is still to be written on the stack; return how many there are."""
    pending[n_pending, 0] = a
    pending[n_pending, 1] = b
    pending[n_pending, 2] = c
    return n_pending + 1


@inner_kernel
def emit(rows, source, k, out, m, lo, hi, scratch):
    """Route the rows ``order[lo:hi]`` down the subtree of `source` at `k`, written from `m` on.

    Parameters
    ----------
    rows : Rows
        Training rows.
    source : Nodes
        The tree that the subtree is read from; its partition is not read.
    k : int
        Root of the subtree.
    out : Nodes
        The new tree; its order is written in ``[lo, hi)``.
    m : int
        Position of the first node written.
    lo, hi : int
        The slice of the rows; at least one, ascending.
    scratch : Scratch
        Overwritten.

    Returns
    -------
    int
        The position after the last node written; parts that no row reaches are left out.
    """
    pending = np.empty((source.subtree_size[k], 3), dtype=np.int64)
    n_pending = push(pending, 0, k, lo, hi)
    while n_pending > 0:
        n_pending -= 1
        k, lo, hi = pending[n_pending, 0], pending[n_pending, 1], pending[n_pending, 2]
        while source.subtree_size[k] > 1:
            right = k + 1 + source.subtree_size[k + 1]
            copy_test(source, k, out, m)
            mid = emit_split(rows, out, m, lo, hi, scratch, False)
            if mid == lo:
                k = right
            elif mid == hi:
                k += 1
            else:
                n_pending = push(pending, n_pending, right, mid, hi)
                m += 1
                k += 1
                hi = mid
        m = emit_leaf(rows, out, m, lo, hi)
    return m


@inner_kernel
def emit_collapsed(rows, out, m, lo, hi):
    """Write a leaf over the rows of what was a subtree, sorted, at position `m`."""
    sort_rows(out.order, lo, hi)
    return emit_leaf(rows, out, m, lo, hi)


@inner_kernel
def finish(out, m):
    """Give the `m` nodes written their subtree sizes and class weights; return the arrays cut to m.

    The class weights of an internal node are the sum of its children's, so that they too are a
    function of the tree alone.
    """
    size = out.subtree_size
    for k in range(m - 1, -1, -1):
        if size[k] != 1:
            left = k + 1
            right = left + size[left]
            size[k] = 1 + size[left] + size[right]
            for c in range(out.counts.shape[1]):
                out.counts[k, c] = out.counts[left, c] + out.counts[right, c]
    return (
        out.weights[:m],
        out.thresholds[:m],
        size[:m],
        out.order,
        out.start[:m],
        out.end[:m],
        out.counts[:m],
    )


@kernel
def partition_tree(X, y, sample_weight, weights, thresholds, subtree_size, n_statistics):
    """Partition all rows by a tree from scratch.

    Parameters
    ----------
    X, y, sample_weight : ndarray of shapes (n, d), (n,) and (n,)
        Training rows.
    weights, thresholds, subtree_size : ndarray
        The tree.
    n_statistics : int
        Number of classes; 3 for regression.

    Returns
    -------
    tuple of ndarray
        The fields of a `Nodes`: the tree without the parts that no row reaches, and its partition.
    """
    n = X.shape[0]
    rows = Rows(X, y, sample_weight)
    nothing = np.empty(0, dtype=np.int32)
    source = Nodes(
        weights, thresholds, subtree_size, nothing, nothing, nothing, np.empty((0, n_statistics))
    )
    out = make_nodes(subtree_size.shape[0], X.shape[1], n_statistics, np.arange(n).astype(np.int32))
    return finish(out, emit(rows, source, 0, out, 0, 0, n, make_scratch(n)))


def make_individual(
    dataset: Dataset, weights: np.ndarray, thresholds: np.ndarray, subtree_size: np.ndarray
) -> Individual:
    """Make an individual of a tree over standardized features, its partition computed from scratch.

    Parameters
    ----------
    dataset : Dataset
        Training rows.
    weights, thresholds, subtree_size : ndarray
        The tree's arrays.

    Returns
    -------
    Individual
        Without the parts that no training row reaches.
    """
    kind = Individual if dataset.n_classes else RegressionIndividual
    return kind(
        partition_tree(
            dataset.X,
            dataset.y,
            dataset.sample_weight,
            weights,
            thresholds,
            subtree_size,
            dataset.n_statistics,
        )
    )
