"""Pruning: subtrees become leaves."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from evotree._jit import kernel
from evotree.operators.splice import (
    Nodes,
    Rows,
    copy_nodes,
    emit_collapsed,
    finish,
    make_nodes,
)

if TYPE_CHECKING:
    from evotree.dataset import Dataset
    from evotree.individual import Individual


@kernel
def unprofitable(counts, subtree_size, node_charge):
    """Mark the subtrees that do not pay for their nodes.

    Bottom-up, a subtree is marked when the weight that its leaves classify correctly, less
    `node_charge` for each of its nodes, is not above that of a leaf in its place; so what remains
    has the highest penalized quality of all prunings.

    Parameters
    ----------
    counts : ndarray of shape (n_nodes, n_classes)
        Class weights.
    subtree_size : ndarray of shape (n_nodes,), int32
        Sizes of subtrees.
    node_charge : float
        Charge for one node, in units of weight.

    Returns
    -------
    ndarray of shape (n_nodes,), bool
        True where a subtree becomes a leaf.
    """
    n = subtree_size.shape[0]
    worth = np.empty(n)
    marks = np.zeros(n, dtype=np.bool_)
    for k in range(n - 1, -1, -1):
        worth[k] = counts[k, 0]
        for c in range(1, counts.shape[1]):
            worth[k] = max(worth[k], counts[k, c])
        worth[k] -= node_charge
        if subtree_size[k] > 1:
            left = k + 1
            kept = worth[left] + worth[left + subtree_size[left]] - node_charge
            marks[k] = kept <= worth[k]
            worth[k] = max(kept, worth[k])
    return marks


@kernel
def collapse(
    X, y, sample_weight, weights, thresholds, subtree_size, order, start, end, counts, marks
):
    """Return a copy of a tree whose marked subtrees are leaves.

    Parameters
    ----------
    X, y, sample_weight : ndarray of shapes (n, d), (n,) and (n,)
        Training rows.
    weights, thresholds, subtree_size, order, start, end, counts : ndarray
        The tree and its partition; read only.
    marks : ndarray of shape (n_nodes,), bool
        The subtrees to collapse; marks inside a collapsed one do not matter.

    Returns
    -------
    tuple of ndarray
        The fields of a `Nodes`, the new tree and its partition.
    """
    n = subtree_size.shape[0]
    rows = Rows(X, y, sample_weight)
    source = Nodes(weights, thresholds, subtree_size, order, start, end, counts)
    out = make_nodes(n, X.shape[1], counts.shape[1], order.copy())
    m = copied = 0
    for k in range(n):
        if k >= copied and marks[k]:
            m = copy_nodes(source, copied, k, out, m)
            m = emit_collapsed(rows, out, m, start[k], end[k])
            copied = k + subtree_size[k]
    return finish(out, copy_nodes(source, copied, n, out, m))


def prune(individual: Individual, dataset: Dataset, size_penalty: float) -> tuple[Individual]:
    """Choose the sizes of the subtrees by the fitness: what does not pay for its nodes is cut.

    Parameters
    ----------
    individual : Individual
        Changed in place; its arrays are replaced, not written.
    dataset : Dataset
        Training rows.
    size_penalty : float, at least 0
        Charge for one node, as a share of the total weight.

    Returns
    -------
    tuple of one Individual
        The individual; its fitness is deleted where something was cut.
    """
    charge = size_penalty * dataset.total_weight
    marks = unprofitable(individual.counts, individual.subtree_size, charge)
    if marks.any():
        individual.replace(
            collapse(dataset.X, dataset.y, dataset.sample_weight, *individual.nodes(), marks)
        )
    return (individual,)
