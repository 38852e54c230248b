"""Trees with their partitions inside compiled code: what they are, and how nodes are copied.

Python hands over plain tuples, `Dataset.rows` and `Individual.nodes`: those with names take numba a
microsecond more.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from evotree._jit import inner_kernel


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
def push(pending, n_pending, a, b, c):
    """Put a part that is still to be written on the stack; return how many there are."""
    pending[n_pending, 0] = a
    pending[n_pending, 1] = b
    pending[n_pending, 2] = c
    return n_pending + 1
