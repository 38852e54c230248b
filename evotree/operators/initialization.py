"""The first population: trees of dipole tests, their sizes chosen by the fitness."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from evotree._jit import kernel
from evotree.individual import Individual
from evotree.operators.dipole import dipole_test
from evotree.operators.mutation import can_split
from evotree.operators.pruning import prune
from evotree.operators.splice import (
    Rows,
    emit_leaf,
    emit_split,
    finish,
    make_nodes,
    make_scratch,
    partition_tree,
    push,
)
from evotree.rng import as_generator

if TYPE_CHECKING:
    from evotree.dataset import Dataset


@kernel
def grow_dipolar(X, y, sample_weight, n_classes, max_depth, min_rows, stream):
    """Grow a tree top-down, each test by a random mixed dipole of the rows that reach its node.

    Parameters
    ----------
    X, y, sample_weight : ndarray of shapes (n, d), (n,) and (n,)
        Rows to grow on.
    n_classes : int
        Number of classes.
    max_depth : int
        Nodes at this depth are leaves.
    min_rows : int
        Nodes with fewer rows are leaves, as are pure ones.
    stream : ndarray of shape (1,), uint64
        Random state.

    Returns
    -------
    tuple of ndarray
        The fields of a `Nodes`, the tree and its partition of the rows it grew on.
    """
    n = X.shape[0]
    rows = Rows(X, y, sample_weight)
    out = make_nodes(2 * n, X.shape[1], n_classes, np.arange(n).astype(np.int32))
    scratch = make_scratch(n)
    pending = np.empty((n + 1, 3), dtype=np.int64)
    n_pending = push(pending, 0, 0, n, 0)
    m = 0
    while n_pending > 0:
        n_pending -= 1
        lo, hi, depth = pending[n_pending, 0], pending[n_pending, 1], pending[n_pending, 2]
        emit_leaf(rows, out, m, lo, hi)
        while depth < max_depth and can_split(out.counts[m], hi - lo, min_rows):
            out.thresholds[m] = dipole_test(X, y, out.order, lo, hi, stream, out.weights[m])
            mid = emit_split(rows, out, m, lo, hi, scratch, True)
            if mid == lo or mid == hi:  # the two rows of the dipole coincide
                emit_leaf(rows, out, m, lo, hi)
                break
            depth += 1
            n_pending = push(pending, n_pending, mid, hi, depth)
            m += 1
            hi = mid
            emit_leaf(rows, out, m, lo, hi)
        m += 1
    return finish(out, m)


def init_dipolar(
    dataset: Dataset,
    size_penalty: float,
    stream: np.ndarray,
    max_rows: int = 256,
    max_depth: int = 8,
    min_rows: int = 5,
) -> Individual:
    """Make one individual of the first population.

    A dipolar tree is grown on a random subsample, for speed and diversity; then its subtrees that
    do not pay for their nodes on all rows become leaves.

    Parameters
    ----------
    dataset : Dataset
        Training rows.
    size_penalty : float, at least 0
        Charge for one node.
    stream : ndarray of shape (1,), uint64
        Random state.
    max_rows : int, at least 1, default=256
        Size of the subsample.
    max_depth : int, at least 0, default=8
        Depth of the tree before it is pruned.
    min_rows : int, default=5
        Nodes with fewer rows are leaves.

    Returns
    -------
    Individual
        Its fitness is not yet evaluated.
    """
    n = dataset.X.shape[0]
    sample = np.sort(as_generator(stream).permutation(n)[:max_rows])
    grown = grow_dipolar(
        dataset.X[sample],
        dataset.y[sample],
        dataset.sample_weight[sample],
        dataset.n_classes,
        max_depth,
        min_rows,
        stream,
    )
    individual = make_individual(dataset, *grown[:3])
    individual.stream = stream
    return prune(individual, dataset, size_penalty)[0]


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
    return Individual(
        partition_tree(
            dataset.X,
            dataset.y,
            dataset.sample_weight,
            weights,
            thresholds,
            subtree_size,
            dataset.n_classes,
        )
    )
