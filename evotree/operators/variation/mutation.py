"""Mutation of nodes: tests change, leaves split, subtrees collapse (MutateNode of GEA-ODT)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from evotree._jit import kernel, part_kernel
from evotree.fitness.partition import is_uniform, sort_rows
from evotree.operators.splitters.dipole import dipolar_change, dipole_test, gaussian_change
from evotree.operators.structure.nodes import (
    Nodes,
    Rows,
    copy_nodes,
    copy_test,
    make_nodes,
    make_scratch,
    push,
)
from evotree.operators.structure.splice import emit, emit_below, emit_leaf, emit_split, finish
from evotree.rng import failures, uniform

if TYPE_CHECKING:
    from evotree.dataset import Dataset
    from evotree.individual import Individual


@part_kernel
def emit_dipole_split(rows, times, out, m, lo, hi, scratch, stream, min_rows, max_width):
    """Write a leaf, or a dipole test with two leaves where it makes sense; return the next one."""
    after = emit_leaf(rows, out, m, lo, hi)
    n_rows = 0
    for i in range(lo, hi):
        n_rows += max(times[out.order[i]], 1)
    if n_rows < min_rows or is_uniform(rows.y, out.order, lo, hi):
        return after
    out.thresholds[m] = dipole_test(
        rows.X, rows.y, out.order, lo, hi, stream, out.weights[m], max_width
    )
    mid = emit_split(rows, out, m, lo, hi, scratch, True)
    if mid == lo or mid == hi:  # the two rows of the dipole coincide
        emit_leaf(rows, out, m, lo, hi)
        return after
    return emit_leaf(rows, out, emit_leaf(rows, out, after, lo, mid), mid, hi)


@part_kernel
def change_test(rows, spread, out, m, lo, hi, stream, dipolar_probability, is_sparse):
    """Change the test that stands at position `m`, by the dipolar operator or standard mutation."""
    if uniform(stream) < dipolar_probability and dipolar_change(
        rows.X, rows.y, out.order, lo, hi, stream, out.weights[m], out.thresholds[m], is_sparse
    ):
        return
    out.thresholds[m] = gaussian_change(
        stream, out.weights[m], out.thresholds[m], spread, is_sparse
    )


@part_kernel
def emit_mutated(
    rows, times, spread, source, k, next_change, out, m, lo, hi, scratch, stream, rules
):
    """Route rows down the subtree of `source` at `k` as `emit` does, mutating the marked nodes."""
    dipolar_probability, min_rows, max_width = rules
    pending = np.empty((source.subtree_size[k], 3), dtype=np.int64)
    n_pending = push(pending, 0, k, lo, hi)
    while n_pending > 0:
        n_pending -= 1
        k, lo, hi = pending[n_pending, 0], pending[n_pending, 1], pending[n_pending, 2]
        while True:
            after = k + source.subtree_size[k]
            if next_change[k] >= after:
                m = emit(rows, source, k, out, m, lo, hi, scratch)
                break
            if source.subtree_size[k] == 1:
                m = emit_dipole_split(
                    rows, times, out, m, lo, hi, scratch, stream, min_rows, max_width
                )
                break
            right = k + 1 + source.subtree_size[k + 1]
            changes = next_change[k] == k
            role = uniform(stream) if changes else 1.0
            if role < 0.25:
                m = emit_leaf(rows, out, m, lo, hi)
                break
            if role < 0.5:
                k = k + 1 if role < 0.375 else right
                continue
            copy_test(source, k, out, m)
            if changes:
                change_test(
                    rows, spread, out, m, lo, hi, stream, dipolar_probability, max_width > 0
                )
            if next_change[k + 1] >= after:
                m = emit_below(rows, source, k, out, m, lo, hi, scratch, changes)
                break
            mid = emit_split(rows, out, m, lo, hi, scratch, changes)
            if mid == lo:
                k = right
            elif mid == hi:
                k += 1
            else:
                n_pending = push(pending, n_pending, right, mid, hi)
                m += 1
                k += 1
                hi = mid
    return m


@kernel
def mutate_nodes(
    X, y, sample_weight, times, spread,
    weights, thresholds, subtree_size, order, start, end, counts,
    first, stream, probability, dipolar_probability, min_rows, max_width
):  # fmt: skip
    """Mutate node `first` and each later node with a probability."""
    # Arrays one by one: a call of a kernel takes longer for arrays in tuples.
    rows = Rows(X, y, sample_weight)
    source = Nodes(weights, thresholds, subtree_size, order, start, end, counts)
    rules = dipolar_probability, min_rows, max_width
    n_nodes = subtree_size.shape[0]
    next_change = np.empty(n_nodes, dtype=np.int64)
    capacity = n_nodes
    k, following = first, 0
    while following < n_nodes:
        for j in range(following, min(k + 1, n_nodes)):
            next_change[j] = k
        following = k + 1
        if k < n_nodes:
            capacity += 2
            k += 1 + failures(stream, probability)
    out = make_nodes(capacity, rows.X.shape[1], source.counts.shape[1], source.order.copy())
    scratch = make_scratch(rows.X.shape[0])
    m = copied = 0
    for k in range(first, n_nodes):
        if k < copied or next_change[k] != k:
            continue
        m = copy_nodes(source, copied, k, out, m)
        lo, hi = source.start[k], source.end[k]
        if source.subtree_size[k] > 1:
            sort_rows(out.order, lo, hi)
        m = emit_mutated(
            rows, times, spread, source, k, next_change, out, m, lo, hi, scratch, stream, rules
        )
        copied = k + source.subtree_size[k]
    m = copy_nodes(source, copied, n_nodes, out, m)
    return finish(out, m)


def mut_nodes(
    individual: Individual,
    dataset: Dataset,
    probability: float = 0.1,
    dipolar_probability: float = 0.5,
    min_rows: int = 5,
    max_width: int = 0,
) -> tuple[Individual]:
    """Mutate each node of an individual with a probability (MutateNode)."""
    # An internal node changes, with equal probability, its test (by the dipolar operator or by
    # standard mutation) or its role (it becomes a leaf or is replaced by the subtree of one of its
    # children). A leaf becomes a dipole test with two leaves, unless it is pure or small. Margins
    # of changed tests are centred, and parts that no row reaches are dropped.
    first = failures(individual.stream, probability)
    if first < len(individual):
        X, (_, y, sample_weight) = dataset.split_X, dataset.rows
        columns = dataset.multiplicity, dataset.spread
        rules = dipolar_probability, min_rows, max_width
        mutated = mutate_nodes(
            *(X, y, sample_weight, *columns, *individual.nodes()),
            *(first, individual.stream, probability, *rules),
        )
        individual.replace(mutated)
    return (individual,)
