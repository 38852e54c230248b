"""The rows of one node: their order along a line, what a split is worth, and how it is made.

**Sorting.** Split searches sort many short lists of floating-point numbers. A radix sort of the
numbers' leading 33 bits with their positions in the low 31, followed by an insertion pass over what
these bits do not tell apart, takes a fifth of a comparison sort's time on thousands of rows. Where
they tell too little apart, the other bits are sorted by first. All of it is stable.

**Criteria.** Every criterion is a *score to be minimized*, normalized by the weight of the node,
and its value for the undivided node is an upper bound of a useful split's. With p the class shares
of a side, the additive criteria are the weighted mean of the sides' impurities:

====================  ==================================================================
entropy               ``-sum p log2 p`` (information gain, Quinlan 1986)
gini                  ``1 - sum p**2`` (Breiman et al. 1984)
error                 ``1 - max p``
sum_minority          the same (Heath et al. 1993)
squared_error         variance of the targets
====================  ==================================================================

The others are of the two sides together: ``twoing`` is minus Breiman's measure
``p_L p_R (sum_k |p_kL - p_kR|)**2``; ``max_minority`` the larger of the sides' misclassified
weights over the node's weight (Heath et al. 1993).

**The line search.** Axis-parallel search, coefficient perturbation, random jumps, the choice of a
threshold: each is one question. Row j has the signed distance ``s_j`` from the present hyperplane,
and it changes by ``t_j`` for each unit of some parameter alpha; which alpha gives the best split,
when the rows with ``s_j + alpha t_j <= 0`` go left? `line_search` answers it exactly, by one sort
and one scan.

**Partitions** hold the training rows as one permutation ``order``; the rows of node k are
``order[start[k]:end[k]]``. They are *canonical*: the rows of every leaf ascend. Splits are stable,
so rows that ascend at a node ascend at its children, memory is read forwards, and the partition of
a tree does not depend on how the tree came about.
"""

import math
from enum import IntEnum
from typing import NamedTuple

import numpy as np

from evotree._jit import (
    dot_kernel,
    dots_kernel,
    inner_kernel,
    kernel,
    part_kernel,
    read_only,
)
from evotree.tree import project

_MANY = 96  # up to here insertion is faster than three passes over histograms
_DIGIT = 2048
_SIGN = np.uint64(1 << 63)
_ONES = np.uint64(0xFFFFFFFFFFFFFFFF)
_POSITION = np.uint64((1 << 31) - 1)
_LOW = np.uint64(_DIGIT - 1)


class SortScratch(NamedTuple):
    """Room for sorting up to n numbers: `a` and `b` (n,) uint64, `histogram` (3, 2048) int32."""

    a: np.ndarray
    b: np.ndarray
    histogram: np.ndarray


@inner_kernel
def make_sort_scratch(n):
    """Return room for sorting up to `n` numbers."""
    return SortScratch(
        np.empty(n, dtype=np.uint64),
        np.empty(n, dtype=np.uint64),
        np.empty((3, _DIGIT), dtype=np.int32),
    )


@inner_kernel
def insert(values, n, order, allowed):
    """Sort ``order[:n]`` by values with at most about `allowed` moves; return whether it is."""
    moves = 0
    for i in range(1, n):
        row = order[i]
        v = values[row]
        j = i - 1
        while j >= 0 and values[order[j]] > v:
            order[j + 1] = order[j]
            j -= 1
        order[j + 1] = row
        moves += i - 1 - j
        if moves > allowed:
            return False
    return True


@inner_kernel
def radix_sort(values, n, order, is_of_low_bits, scratch):
    """Sort ``order[:n]`` by the leading 33 bits of the values, or by the other ones."""
    bits = values.view(np.uint64)
    a, b, histogram = scratch.a, scratch.b, scratch.histogram
    skipped = np.uint64(33 if is_of_low_bits else 0)
    for p in range(3):
        for digit in range(_DIGIT):
            histogram[p, digit] = 0
    for i in range(n):
        key = bits[order[i]]
        # The order of floating-point numbers, as unsigned integers.
        key ^= _ONES if key & _SIGN else _SIGN
        key = ((key << skipped) & ~_POSITION) | np.uint64(order[i])
        a[i] = key
        histogram[0, (key >> np.uint64(31)) & _LOW] += 1
        histogram[1, (key >> np.uint64(42)) & _LOW] += 1
        histogram[2, key >> np.uint64(53)] += 1
    for p in range(3):
        shift = np.uint64(31 + 11 * p)
        if histogram[p, (a[0] >> shift) & _LOW] == n:
            continue
        at = 0
        for digit in range(_DIGIT):
            size = histogram[p, digit]
            histogram[p, digit] = at
            at += size
        for i in range(n):
            key = a[i]
            digit = (key >> shift) & _LOW
            b[histogram[p, digit]] = key
            histogram[p, digit] += 1
        a, b = b, a
    for i in range(n):
        order[i] = np.int32(a[i] & _POSITION)


@inner_kernel
def sort_order(values, n, order, scratch):
    """Write the positions of ``values[:n]`` in rising order of the values into ``order[:n]``."""
    for i in range(n):
        order[i] = i
    if n < _MANY:
        insert(values, n, order, n * n)
        return
    # NumPy's stable sort takes four seconds to compile.
    radix_sort(values, n, order, False, scratch)
    if not insert(values, n, order, 4 * n):
        radix_sort(values, n, order, True, scratch)
        radix_sort(values, n, order, False, scratch)


@kernel
def argsort(values):
    """Return the positions of finite numbers in rising order, as int32."""
    n = values.shape[0]
    order = np.empty(n, dtype=np.int32)
    sort_order(values, n, order, make_sort_scratch(n))
    return order


Criterion = IntEnum(
    "Criterion",
    "ENTROPY GINI TWOING ERROR MAX_MINORITY SUM_MINORITY SQUARED_ERROR",
    start=0,
)
"""Codes of the criteria, as the kernels take them; their names in lower case are parameters."""

CLASSIFICATION = tuple(c.name.lower() for c in Criterion if c < Criterion.SQUARED_ERROR)
"""Names of the criteria for classes."""

ENTROPY, GINI, TWOING, ERROR, MAX_MINORITY, SUM_MINORITY, SQUARED_ERROR = range(7)
"""The codes as plain numbers, for kernels."""


@inner_kernel
def xlog2x(x):
    """Return ``x log2 x``, 0 for x up to 0."""
    return x * math.log2(x) if x > 0.0 else 0.0


@inner_kernel
def weight_of(counts):
    """Return the sum of the class weights."""
    total = 0.0
    for c in range(counts.shape[0]):
        total += counts[c]
    return total


@inner_kernel
def weighted_impurity(criterion, counts, weight):
    """Return the impurity of one side by an additive criterion, times its weight."""
    if weight <= 0.0:
        return 0.0
    total = 0.0
    if criterion == SQUARED_ERROR:
        return max(0.0, counts[2] - counts[1] * counts[1] / weight)
    if criterion == GINI:
        for c in range(counts.shape[0]):
            total += counts[c] * counts[c]
        return max(0.0, weight - total / weight)
    if criterion == ENTROPY:
        for c in range(counts.shape[0]):
            total += xlog2x(counts[c])
        return max(0.0, xlog2x(weight) - total)
    for c in range(counts.shape[0]):
        total = max(total, counts[c])
    return weight - total


@inner_kernel
def split_score(criterion, left, right):
    """Return the score of a split, to be minimized."""
    if criterion == SQUARED_ERROR:
        n_left, n_right = left[0], right[0]
    else:
        n_left, n_right = weight_of(left), weight_of(right)
    total = n_left + n_right
    if criterion == TWOING:
        if n_left <= 0.0 or n_right <= 0.0:
            return 0.0
        distance = 0.0
        for c in range(left.shape[0]):
            distance += abs(left[c] * n_right - right[c] * n_left)
        distance /= total
        return -distance * distance / (n_left * n_right)
    impurity_left = weighted_impurity(criterion, left, n_left)
    impurity_right = weighted_impurity(criterion, right, n_right)
    if criterion == MAX_MINORITY:
        return max(impurity_left, impurity_right) / total
    return (impurity_left + impurity_right) / total


class Node(NamedTuple):
    """The rows of one node, and what a split of them has to be."""

    X: np.ndarray  # float64, C-contiguous
    y: np.ndarray  # class codes, int32; targets, float64, for regression
    sample_weight: np.ndarray  # above 0
    n_classes: int  # 0 for regression
    criterion: int  # a code of `Criterion`
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
    # The values k log2 k of whole numbers up to the node's weight; empty for other weights.
    table: np.ndarray
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
    table = np.empty(0)
    if node.criterion == ENTROPY:
        table = whole_number_table(node.sample_weight, weight_of(left))
    return SplitScratch(
        left,
        np.zeros(left.shape[0]),
        table,
        np.empty(n),
        np.empty(n, dtype=np.int32),
        np.empty(n, dtype=np.int32),
        make_sort_scratch(n),
    )


@inner_kernel
def clear_sides(scratch):
    """Empty the statistics of both sides."""
    left, right = scratch.left, scratch.right
    for c in range(left.shape[0]):
        left[c] = right[c] = 0.0


@inner_kernel
def score_sides(node, scratch):
    """Return the score of the split whose sides' statistics stand in `scratch`."""
    return split_score(node.criterion, scratch.left, scratch.right)


@inner_kernel
def undivided_score(node, scratch):
    """Return the score of the node without a split."""
    fill_sides(node, np.full(node.X.shape[0], -1.0), scratch)
    return score_sides(node, scratch)


@inner_kernel
def fill_sides(node, s, scratch):
    """Put the rows with ``s <= 0`` on the left side, the others on the right; count the former."""
    clear_sides(scratch)
    y, weight, n_classes = node.y, node.sample_weight, node.n_classes
    left, right = scratch.left, scratch.right
    n_left = 0
    for i in range(s.shape[0]):
        if s[i] <= 0.0:
            n_left += 1
            add(left, y[i], weight[i], n_classes)
        else:
            add(right, y[i], weight[i], n_classes)
    return n_left


@inner_kernel
def score_distances(node, s, scratch):
    """Return the score of the split in which the rows with ``s <= 0`` go left."""
    n_left = fill_sides(node, s, scratch)
    if min(n_left, s.shape[0] - n_left) < node.min_rows:
        return np.inf
    return score_sides(node, scratch)


@inner_kernel
def write_distances(node, w, threshold, s):
    """Write the signed distances ``w @ x - threshold`` of a node's rows into `s`."""
    X = node.X
    for i in range(X.shape[0]):
        s[i] = project(w, X, i) - threshold


@kernel
def score_hyperplane(node, w, threshold):
    """Return the score of a split."""
    s = np.empty(node.X.shape[0])
    write_distances(node, w, threshold, s)
    return score_distances(node, s, make_split_scratch(node))


# Rows whose places on a line agree but for rounding cannot be parted by a point of the line.
_ROUNDING = 1e-12


@inner_kernel
def start_sweep(node, s, t, scratch):
    """Find where the rows change sides, and put them on the sides where alpha is minus infinity.

    Returned are how many change sides at all, and how many are on the left at first.
    """
    # Arrays that are read from tuples in a loop have their references counted there, each time.
    clear_sides(scratch)
    y, weight, n_classes = node.y, node.sample_weight, node.n_classes
    left, right = scratch.left, scratch.right
    events, rows = scratch.events, scratch.rows
    n_events = n_left = 0
    for i in range(s.shape[0]):
        event = -s[i] / t[i] if t[i] != 0.0 else np.inf
        goes_right = s[i] > 0.0
        if abs(event) < np.inf:
            events[n_events] = event
            rows[n_events] = i
            n_events += 1
            goes_right = t[i] < 0.0
        if goes_right:
            add(right, y[i], weight[i], n_classes)
        else:
            n_left += 1
            add(left, y[i], weight[i], n_classes)
    sort_order(scratch.events, n_events, scratch.order, scratch.sort)
    return n_events, n_left


@inner_kernel
def apart(low, high):
    """Return whether two places on a line, ``low <= high``, differ by more than rounding."""
    return high - low > _ROUNDING * max(abs(low), abs(high))


@inner_kernel
def between(low, high):
    """Return the middle of two numbers, ``low < high``, rounded to below `high`."""
    middle = low + 0.5 * (high - low)
    return middle if middle < high else low


@part_kernel
def cross(e, n_left, t, weight, events, rows, order):
    """Let a row change sides: return it, its weight on the left, the rows there, and two places."""
    at, after = order[e], order[e + 1]
    i = rows[at]
    w = weight[i] if t[i] < 0.0 else -weight[i]
    n_left += 1 if t[i] < 0.0 else -1
    return i, w, n_left, events[at], events[after]


@inner_kernel
def line_search(node, s, t, scratch):
    """Return the best score along a line of hyperplanes, and its alpha; infinity where none is."""
    n_events, n_left = start_sweep(node, s, t, scratch)
    if node.criterion == ENTROPY and scratch.table.shape[0] > 0:
        return sweep_entropy(node, t, n_events, n_left, scratch)
    if node.criterion in (GINI, SQUARED_ERROR):
        return sweep_squares(node, t, n_events, n_left, scratch)
    if node.criterion == TWOING:
        return sweep_twoing(node, t, n_events, n_left, scratch)
    weight, min_rows = node.sample_weight, node.min_rows
    events, rows, order = scratch.events, scratch.rows, scratch.order
    y, left, right = node.y, scratch.left, scratch.right
    n, best, alpha = s.shape[0], np.inf, 0.0
    for e in range(n_events - 1):
        i, w, n_left, here, there = cross(e, n_left, t, weight, events, rows, order)
        left[np.int64(y[i])] += w
        right[np.int64(y[i])] -= w
        if apart(here, there) and min(n_left, n - n_left) >= min_rows:
            score = score_sides(node, scratch)
            if score < best:
                best, alpha = score, between(here, there)
    return best, alpha


@dot_kernel
def twoing_distance(left, whole, total, w_left):
    """Return ``total * w_left * w_right * sum_k |p_kL - p_kR|`` of class weights."""
    distance = 0.0
    for c in range(left.shape[0]):
        distance += abs(left[c] * total - whole[c] * w_left)
    return distance


@inner_kernel
def sweep_twoing(node, t, n_events, n_left, scratch):
    """Scan the line of `line_search` by twoing, with one side's class weights alone."""
    weight, min_rows = node.sample_weight, node.min_rows
    events, rows, order = scratch.events, scratch.rows, scratch.order
    n, y, left, whole = node.X.shape[0], node.y, scratch.left, scratch.right
    w_left = weight_of(left)
    for c in range(left.shape[0]):
        whole[c] += left[c]
    total = weight_of(whole)
    best, alpha = -np.inf, 0.0
    for e in range(n_events - 1):
        i, w, n_left, here, there = cross(e, n_left, t, weight, events, rows, order)
        left[np.int64(y[i])] += w
        w_left += w
        if apart(here, there) and min(n_left, n - n_left) >= min_rows:
            distance = twoing_distance(left, whole, total, w_left)
            score = distance * distance / (w_left * (total - w_left))
            if score > best:
                best, alpha = score, between(here, there)
    return -best / (total * total), alpha


@inner_kernel
def sweep_entropy(node, t, n_events, n_left, scratch):
    """Scan the line of `line_search` by entropy, with two terms of it renewed for each row."""
    weight, min_rows = node.sample_weight, node.min_rows
    events, rows, order = scratch.events, scratch.rows, scratch.order
    n, y, table = node.X.shape[0], node.y, scratch.table
    left, right = scratch.left, scratch.right
    w_left, w_right, sums = weight_of(left), weight_of(right), 0.0
    for c in range(left.shape[0]):
        sums += table[np.int64(left[c])] + table[np.int64(right[c])]
    best, alpha = np.inf, 0.0
    for e in range(n_events - 1):
        i, w, n_left, here, there = cross(e, n_left, t, weight, events, rows, order)
        c = np.int64(y[i])
        sums -= table[np.int64(left[c])] + table[np.int64(right[c])]
        left[c] += w
        right[c] -= w
        sums += table[np.int64(left[c])] + table[np.int64(right[c])]
        w_left += w
        w_right -= w
        if apart(here, there) and min(n_left, n - n_left) >= min_rows:
            score = table[np.int64(w_left)] + table[np.int64(w_right)] - sums
            if score < best:
                best, alpha = score, between(here, there)
    return max(best, 0.0) / (w_left + w_right), alpha


@inner_kernel
def sweep_squares(node, t, n_events, n_left, scratch):
    """Scan the line of `line_search` by Gini or squared error, their sums renewed for each row."""
    weight, min_rows = node.sample_weight, node.min_rows
    events, rows, order = scratch.events, scratch.rows, scratch.order
    n, y, left, right = node.X.shape[0], node.y, scratch.left, scratch.right
    gini = node.criterion == GINI
    w_left = w_right = square_left = square_right = 0.0
    if gini:
        w_left, w_right = weight_of(left), weight_of(right)
        for c in range(left.shape[0]):
            square_left += left[c] * left[c]
            square_right += right[c] * right[c]
    best, alpha = -np.inf, 0.0
    for e in range(n_events - 1):
        i, w, n_left, here, there = cross(e, n_left, t, weight, events, rows, order)
        if gini:
            c = np.int64(y[i])
            square_left += w * (2.0 * left[c] + w)
            square_right -= w * (2.0 * right[c] - w)
            left[c] += w
            right[c] -= w
            w_left += w
            w_right -= w
        else:
            left[0] += w
            right[0] -= w
            left[1] += w * y[i]
            right[1] -= w * y[i]
        if apart(here, there) and min(n_left, n - n_left) >= min_rows:
            if not gini:
                w_left, square_left = left[0], left[1] * left[1]
                w_right, square_right = right[0], right[1] * right[1]
            score = square_left / w_left + square_right / w_right
            if score > best:
                best, alpha = score, between(here, there)
    if best == -np.inf:
        return np.inf, alpha
    total = left[0] + right[0] if not gini else w_left + w_right
    whole = left[2] + right[2] if not gini else total
    return max(0.0, whole - best) / total, alpha


@kernel
def choose_threshold(node, w):
    """Return the lowest score and its threshold along a normal vector."""
    s, t = np.empty(node.X.shape[0]), np.full(node.X.shape[0], -1.0)
    write_distances(node, w, 0.0, s)
    return line_search(node, s, t, make_split_scratch(node))


@dots_kernel
def project_rows(weights, k, X, order, lo, hi, out):
    """Write the projections ``weights[k] @ X[row]`` of the rows ``order[lo:hi]`` into `out`."""
    # Every partition of the training rows is made from these projections alone, by this one
    # compiled function, so that equal hyperplanes split equal rows equally.
    for t in range(hi - lo):
        # An unsigned index needs no wrap-around test.
        i = np.uint64(np.uint32(order[lo + t]))
        s = 0.0
        for j in range(X.shape[1]):
            s += weights[k, j] * X[i, j]
        out[t] = s


@kernel
def split_rows(order, lo, hi, projection, threshold, scratch):
    """Reorder ``order[lo:hi]``: first the rows that go left, then the others, each as they came."""
    left, right = lo, 0
    for t in range(hi - lo):
        row = order[lo + t]
        goes_left = np.int64(projection[t] <= threshold)
        order[left] = row
        scratch[right] = row
        left += goes_left
        right += 1 - goes_left
    for t in range(right):
        order[left + t] = scratch[t]
    return left


@kernel
def count_classes(order, lo, hi, y, sample_weight, counts, k):
    """Write the weight of each class among the rows ``order[lo:hi]`` into ``counts[k]``."""
    for c in range(counts.shape[1]):
        counts[k, c] = 0.0
    for t in range(lo, hi):
        i = np.uint64(np.uint32(order[t]))
        if isinstance(y[i], float):
            counts[k, 0] += sample_weight[i]
            counts[k, 1] += sample_weight[i] * y[i]
            counts[k, 2] += sample_weight[i] * y[i] * y[i]
        else:
            counts[k, y[i]] += sample_weight[i]


@kernel
def is_uniform(y, order, lo, hi):
    """Return whether the rows ``order[lo:hi]`` have one class, or one target."""
    t = lo + 1
    while t < hi and y[order[t]] == y[order[lo]]:
        t += 1
    return t >= hi


@kernel
def sort_rows(order, lo, hi):
    """Sort the distinct integers ``order[lo:hi]``, below the length of `order`, in linear time."""
    is_there = np.zeros(order.shape[0], dtype=np.bool_)
    for t in range(lo, hi):
        is_there[order[t]] = True
    at, row = lo, 0
    while at < hi:
        order[at] = row
        at += is_there[row]
        row += 1


@kernel
def centre_margin(projection, order, lo, hi, y, threshold):
    """Move a threshold to the middle between the nearest rows, if these form a mixed dipole."""
    # Indexed by side: which side a row is on cannot be predicted, and a branch on it would cost as
    # much as the projection.
    nearest, rows = np.full(2, -np.inf), np.full(2, -1)
    for t in range(hi - lo):
        side = np.uint64(projection[t] > threshold)
        nearness = projection[t] * (1.0 - 2.0 * side)
        if nearness > nearest[side]:
            nearest[side] = nearness
            rows[side] = order[lo + t]
    if rows[0] < 0 or rows[1] < 0 or y[rows[0]] == y[rows[1]]:
        return threshold
    below_it, above_it = nearest[0], -nearest[1]
    middle = below_it + 0.5 * (above_it - below_it)
    return middle if middle < above_it else below_it
