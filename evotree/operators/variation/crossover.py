"""Crossover of trees: tests or whole subtrees change places (CrossoverTrees of GEA-ODT)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from evotree._jit import kernel, part_kernel
from evotree.fitness.partition import sort_rows
from evotree.operators.splitters.dipole import n_used
from evotree.operators.structure.nodes import (
    Nodes,
    Rows,
    copy_nodes,
    copy_test,
    make_nodes,
    make_scratch,
)
from evotree.operators.structure.splice import emit, emit_below, finish
from evotree.rng import below, uniform

if TYPE_CHECKING:
    from evotree.dataset import Dataset
    from evotree.individual import Individual


@kernel
def draw_exchange(stream, size_a, size_b, n_features, test_probability):
    """Draw one node of each parent, and how the two change places."""
    a = below(stream, size_a.shape[0])
    b = below(stream, size_b.shape[0])
    tests = uniform(stream) < test_probability
    cut = 1 + below(stream, n_features)
    if tests and size_a[a] > 1 and size_b[b] > 1:
        return a, b, cut
    return a, b, np.int64(0)


@part_kernel
def emit_crossed(rows, target, a, source, b, cut, max_width, out, m, scratch):
    """Write node `a` of `target`, its rows sorted, with its test crossed with `source`'s at `b`.

    Where the mixture has more than `max_width` terms, that of `source` is taken over whole.
    """
    lo, hi = np.int64(target.start[a]), np.int64(target.end[a])
    copy_test(target, a, out, m)
    for j in range(cut, source.weights.shape[1]):
        out.weights[m, j] = source.weights[b, j]
    if n_used(out.weights[m]) > max_width:
        copy_test(source, b, out, m)
    out.thresholds[m] = source.thresholds[b]
    return emit_below(rows, target, a, out, m, lo, hi, scratch, True)


@kernel
def graft(
    X,
    y,
    sample_weight,
    weights_a,
    thresholds_a,
    subtree_size_a,
    order_a,
    start_a,
    end_a,
    counts_a,
    weights_b,
    thresholds_b,
    subtree_size_b,
    a,
    b,
    cut,
    max_width,
):
    """Return a copy of tree A whose node `a` has taken over what stands at node `b` of tree B."""
    rows = Rows(X, y, sample_weight)
    target = Nodes(weights_a, thresholds_a, subtree_size_a, order_a, start_a, end_a, counts_a)
    source = Nodes(weights_b, thresholds_b, subtree_size_b, order_a, start_a, end_a, counts_a)
    n_nodes = subtree_size_a.shape[0]
    after = a + subtree_size_a[a]
    lo, hi = np.int64(start_a[a]), np.int64(end_a[a])
    capacity = n_nodes if cut > 0 else n_nodes - subtree_size_a[a] + subtree_size_b[b]
    out = make_nodes(capacity, X.shape[1], counts_a.shape[1], order_a.copy())
    scratch = make_scratch(hi - lo)
    m = copy_nodes(target, 0, a, out, 0)
    sort_rows(out.order, lo, hi)
    if cut > 0:
        m = emit_crossed(rows, target, a, source, b, cut, max_width, out, m, scratch)
    else:
        m = emit(rows, source, b, out, m, lo, hi, scratch)
    m = copy_nodes(target, after, n_nodes, out, m)
    return finish(out, m)


def cx_trees(
    first: Individual,
    second: Individual,
    dataset: Dataset,
    test_probability: float = 0.5,
    max_features: int | None = None,
) -> tuple[Individual, Individual]:
    """Exchange tests or subtrees between two individuals (CrossoverTrees).

    One node is drawn uniformly in each. With equal probability their tests are crossed at one point
    of the vector (w, threshold), if both are internal, or their subtrees change places.
    """
    a, b, cut = draw_exchange(
        first.stream,
        first.subtree_size,
        second.subtree_size,
        dataset.X.shape[1],
        test_probability,
    )
    # A tree whose root is exchanged descends from the other parent.
    first.origin, second.origin = (
        second.origin if cut == 0 and a == 0 else first.origin,
        first.origin if cut == 0 and b == 0 else second.origin,
    )
    rows = (dataset.X, dataset.y, dataset.sample_weight)
    nodes_a, nodes_b = first.nodes(), second.nodes()
    max_width = dataset.X.shape[1] if max_features is None else max_features
    first.replace(graft(*rows, *nodes_a, *nodes_b[:3], a, b, cut, max_width))
    second.replace(graft(*rows, *nodes_b, *nodes_a[:3], b, a, cut, max_width))
    return first, second
