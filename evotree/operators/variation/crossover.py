"""Crossover of trees: splits or whole subtrees change places (CrossoverTrees of GEA-ODT)."""

import numpy as np

from evotree._jit import kernel, part_kernel
from evotree.dataset import Dataset
from evotree.fitness.node import sort_rows
from evotree.individual import Individual
from evotree.operators.structure.splice import (
    Nodes,
    Rows,
    copy_nodes,
    copy_split,
    emit,
    emit_below,
    finish,
    make_nodes,
    make_scratch,
)
from evotree.rng import below, uniform


@kernel
def draw_exchange(stream, size_a, size_b, n_features, split_probability):
    """Draw one node of each parent, and where their splits are crossed; 0 for whole subtrees."""
    a = below(stream, size_a.shape[0])
    b = below(stream, size_b.shape[0])
    crosses_splits = uniform(stream) < split_probability
    cut = 1 + below(stream, n_features)
    if crosses_splits and size_a[a] > 1 and size_b[b] > 1:
        return a, b, cut
    return a, b, np.int64(0)


@part_kernel
def emit_crossed(rows, target, a, source, b, cut, max_width, out, m, scratch):
    """Write node `a` of `target`, its rows sorted, its split crossed with node `b` of `source`."""
    lo, hi = np.int64(target.start[a]), np.int64(target.end[a])
    copy_split(target, a, out, m)
    for j in range(cut, source.weights.shape[1]):
        out.weights[m, j] = source.weights[b, j]
    if (
        np.count_nonzero(out.weights[m]) > max_width
    ):  # the mixture; that of `source` is no wider
        copy_split(source, b, out, m)
    out.thresholds[m] = source.thresholds[b]
    return emit_below(rows, target, a, out, m, lo, hi, scratch, True)


@kernel
def graft(
    X, y, sample_weight, weights, thresholds, subtree_size, order, start, end, counts,
    weights_b, thresholds_b, subtree_size_b, a, b, cut, max_width
):  # fmt: skip
    """Return a copy of an individual whose node `a` has become what node `b` of a tree is.

    The first three arguments are `Rows`, the next seven the individual's `Nodes`, the next three
    the splits of the tree that node `b` is of. Where `cut` is above 0 only the splits are crossed:
    the weights from `cut` on and the threshold are those of `b`.
    """
    # Arrays one by one: a call of a kernel takes longer for arrays in tuples.
    rows = Rows(X, y, sample_weight)
    target = Nodes(weights, thresholds, subtree_size, order, start, end, counts)
    source = Nodes(weights_b, thresholds_b, subtree_size_b, order, start, end, counts)
    n_nodes, size = subtree_size.shape[0], subtree_size
    after = a + size[a]
    lo, hi = np.int64(target.start[a]), np.int64(target.end[a])
    capacity = n_nodes if cut > 0 else n_nodes - size[a] + source.subtree_size[b]
    out = make_nodes(
        capacity, rows.X.shape[1], target.counts.shape[1], target.order.copy()
    )
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
    """Exchange splits or subtrees between two individuals (CrossoverTrees)."""
    # One node is drawn uniformly in each. With `test_probability` their splits are crossed at one
    # point of the vector (w, threshold), if both are internal, or their subtrees change places.
    n_features = dataset.X.shape[1]
    a, b, cut = draw_exchange(
        first.stream,
        first.subtree_size,
        second.subtree_size,
        n_features,
        test_probability,
    )
    # A tree whose root is exchanged descends from the other parent.
    first.origin, second.origin = (
        second.origin if cut == 0 and a == 0 else first.origin,
        first.origin if cut == 0 and b == 0 else second.origin,
    )
    nodes_a, nodes_b = first.nodes(), second.nodes()
    splits_a, splits_b = nodes_a[:3], nodes_b[:3]
    max_width = n_features if max_features is None else max_features
    first.replace(graft(*dataset.rows, *nodes_a, *splits_b, a, b, cut, max_width))
    second.replace(graft(*dataset.rows, *nodes_b, *splits_a, b, a, cut, max_width))
    return first, second
