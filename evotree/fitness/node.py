"""The rows of one node, and the score of a split of them."""

import math
from typing import NamedTuple

import numpy as np

from evotree._jit import inner_kernel, kernel, read_only
from evotree.fitness.criteria import (
    ABSOLUTE_ERROR,
    ENTROPY,
    class_ranks,
    split_score,
    weight_of,
    xlog2x,
)
from evotree.fitness.sorting import SortScratch, make_sort_scratch, sort_order
from evotree.tree import project


class Node(NamedTuple):
    """The rows of one node, and what a split of them has to be."""

    X: np.ndarray  # float64, C-contiguous
    y: np.ndarray  # class codes, int32; targets, float64, for regression
    sample_weight: np.ndarray  # above 0
    n_classes: int  # 0 for regression
    criterion: int  # a code of `evotree.fitness.criteria.Criterion`
    min_rows: int  # that each side of a split has at least

    @classmethod
    def of(
        cls,
        X: np.ndarray,
        y: np.ndarray,
        sample_weight: np.ndarray,
        n_classes: int,
        criterion: int,
        min_rows: int,
    ) -> "Node":
        """Return a node of read-only views of the rows, which is what kernels are compiled for."""
        return cls(
            read_only(X),
            read_only(y),
            read_only(sample_weight),
            n_classes,
            criterion,
            min_rows,
        )


class SplitScratch(NamedTuple):
    """Room for scoring splits of one node, and what is the same for all of them."""

    # Class weights of the sides; sums of w, w y and w y**2 for regression.
    left: np.ndarray
    right: np.ndarray
    rank: np.ndarray  # numbers of the classes, for the sum of variances
    # k log2 k of whole numbers up to the node's weight; empty for other weights.
    table: np.ndarray
    # Positions of the rows by rising target, for the absolute error, and the inverse of these.
    by_target: np.ndarray
    target_rank: np.ndarray
    # (2, 2, n + 1): sums of w and w y by target for each side, as Fenwick trees.
    tree: np.ndarray
    events: np.ndarray  # where on the line each row changes sides
    rows: np.ndarray  # the rows that change sides at all
    order: np.ndarray  # the order in which they do
    sort: SortScratch


@inner_kernel
def add(counts, y, w, n_classes):
    """Add a row of class, or target, `y` and weight `w` to the statistics of a side."""
    if n_classes > 0:
        counts[np.int64(y)] += w
    else:
        counts[0] += w
        counts[1] += w * y
        counts[2] += w * y * y


@inner_kernel
def whole_number_table(sample_weight, total):
    """Return ``k log2 k`` for k up to `total`, or nothing where weights are not whole numbers."""
    n = sample_weight.shape[0]
    if total > 8.0 * n + 64.0:
        return np.empty(0)
    for i in range(n):
        if sample_weight[i] != math.floor(sample_weight[i]):
            return np.empty(0)
    table = np.empty(np.int64(total) + 1)
    for k in range(table.shape[0]):
        table[k] = xlog2x(np.float64(k))
    return table


@inner_kernel
def make_split_scratch(node):
    """Return room for scoring splits of a node."""
    n = node.X.shape[0]
    left = np.zeros(node.n_classes if node.n_classes > 0 else 3)
    for i in range(n):
        add(left, node.y[i], node.sample_weight[i], node.n_classes)
    sort = make_sort_scratch(n)
    table = np.empty(0)
    if node.criterion == ENTROPY:
        table = whole_number_table(node.sample_weight, weight_of(left))
    is_ranked = node.criterion == ABSOLUTE_ERROR
    targets = np.empty(n if is_ranked else 0)
    by_target = np.empty(targets.shape[0], dtype=np.int32)
    target_rank = np.empty(targets.shape[0], dtype=np.int32)
    if is_ranked:
        for i in range(n):
            targets[i] = node.y[i]
        sort_order(targets, n, by_target, sort)
        for i in range(n):
            target_rank[by_target[i]] = i
    return SplitScratch(
        left,
        np.zeros(left.shape[0]),
        class_ranks(left),
        table,
        by_target,
        target_rank,
        np.empty((2, 2, n + 1 if is_ranked else 0)),
        np.empty(n),
        np.empty(n, dtype=np.int32),
        np.empty(n, dtype=np.int32),
        sort,
    )


@inner_kernel
def tree_add(tree, at, amount):
    """Add `amount` at position `at` of a Fenwick tree."""
    at += 1
    while at < tree.shape[0]:
        tree[at] += amount
        at += at & -at


@inner_kernel
def absolute_deviation(sums, targets, by_target, total):
    """Return the weighted sum of absolute deviations of one side from its median."""
    n = sums.shape[1] - 1
    step = 1
    while 2 * step <= n:
        step *= 2
    at, weight, product = 0, 0.0, 0.0
    while step > 0:
        following = at + step
        if following <= n and 2.0 * (weight + sums[0, following]) <= total[0]:
            at = following
            weight += sums[0, at]
            product += sums[1, at]
        step //= 2
    median = targets[by_target[min(at, n - 1)]]
    below = median * weight - product
    above = (total[1] - product) - median * (total[0] - weight)
    return max(0.0, below + above)


@inner_kernel
def clear_sides(scratch):
    """Empty the statistics of both sides."""
    for c in range(scratch.left.shape[0]):
        scratch.left[c] = 0.0
        scratch.right[c] = 0.0
    for side in range(2):
        for k in range(2):
            for i in range(scratch.tree.shape[2]):
                scratch.tree[side, k, i] = 0.0


@inner_kernel
def score_sides(node, scratch):
    """Return the score of the split whose sides' statistics stand in `scratch`."""
    left, right = scratch.left, scratch.right
    if node.criterion == ABSOLUTE_ERROR:
        on_left = absolute_deviation(scratch.tree[0], node.y, scratch.by_target, left)
        on_right = absolute_deviation(scratch.tree[1], node.y, scratch.by_target, right)
        return (on_left + on_right) / (left[0] + right[0])
    return split_score(node.criterion, left, right, scratch.rank)


@inner_kernel
def undivided_score(node, scratch):
    """Return the score of the node without a split."""
    fill_sides(node, np.full(node.X.shape[0], -1.0), scratch)
    return score_sides(node, scratch)


@inner_kernel
def fill_sides(node, s, scratch):
    """Put the rows with ``s <= 0`` on the left side, the others on the right; count the former."""
    clear_sides(scratch)
    y, sample_weight, n_classes = node.y, node.sample_weight, node.n_classes
    left, right = scratch.left, scratch.right
    n_left = 0
    for i in range(s.shape[0]):
        n_left += s[i] <= 0.0
        add(right if s[i] > 0.0 else left, y[i], sample_weight[i], n_classes)
    if node.criterion == ABSOLUTE_ERROR:
        for i in range(s.shape[0]):
            side = np.int64(s[i] > 0.0)
            rank, w = scratch.target_rank[i], sample_weight[i]
            tree_add(scratch.tree[side, 0], rank, w)
            tree_add(scratch.tree[side, 1], rank, w * y[i])
    return n_left


@inner_kernel
def score_distances(node, s, scratch):
    """Return the score of the split in which the rows with ``s <= 0`` go left."""
    n_left = fill_sides(node, s, scratch)
    if min(n_left, s.shape[0] - n_left) < node.min_rows:
        return np.inf
    return score_sides(node, scratch)


@inner_kernel
def distances(node, w, threshold, s):
    """Write the signed distances ``w @ x - threshold`` of a node's rows into `s`."""
    for i in range(node.X.shape[0]):
        s[i] = project(w, node.X, i) - threshold


@kernel
def score_hyperplane(node, w, threshold):
    """Return the score of a split."""
    s = np.empty(node.X.shape[0])
    distances(node, w, threshold, s)
    return score_distances(node, s, make_split_scratch(node))


@kernel
def score_undivided(node):
    """Return the score of a node without a split."""
    return undivided_score(node, make_split_scratch(node))
