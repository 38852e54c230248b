"""The best split along a line of hyperplanes without sorting all rows: a search by bounds.

The places of the line where rows change sides (`evotree.fitness.node.line_search`) fall into
buckets by one division for each row, and the class weights of the buckets give the score between
any two of them. How many rows change sides inside a bucket bounds the scores there from below, and
only the few buckets that may hold the best split are sorted and scanned. The result is that of the
whole scan; most searches sort a few rows in a hundred.

The bounds follow from the concavity of the criteria (Breiman et al. 1984, section 4.1): a convex
function less its tangent is largest at a corner of the box of what the class weights can be on the
way from one split to another, where some rows come to the left side and some leave it.
"""

import math
from typing import NamedTuple

import numpy as np

from evotree._jit import dot_kernel, inner_kernel, kernel
from evotree.fitness.criteria import (
    ENTROPY,
    GAIN_RATIO,
    GINI,
    MAX_MINORITY,
    SUM_OF_VARIANCES,
    TWOING,
    weight_of,
    xlog2x,
)
from evotree.fitness.line_search import apart, between, line_search
from evotree.fitness.node import SplitScratch, make_split_scratch
from evotree.fitness.sorting import sort_order

_FEWEST_ROWS = 32
# Up to here a scan of all rows is faster (`benchmarks/bounds.py`); that of Gini takes few steps.
_FEW_ROWS, _FEW_ROWS_GINI = 192, 768
_FEWEST, _MOST, _ROWS_EACH = 32, 256, 16  # buckets, and rows in each
_SLACK = 1e-9  # what rounding may add to a bound
_SMALLEST = 1e-300


class LineScratch(NamedTuple):
    """Room for searching lines at one node; few arrays, since each costs time in every call."""

    split: SplitScratch
    cell: np.ndarray  # of each row: bucket, direction, class
    # (2, (n_buckets + 1) * 2 * n_classes): weights of the cells, then their numbers of rows. Rows
    # come to the left side in a bucket or leave it; those that never do are in the last bucket.
    mass: np.ndarray
    # (n_buckets + 2, n_classes): class weights of the left side where each bucket begins and where
    # the last one ends; room for one more.
    left: np.ndarray
    # (2, n_buckets): no split within a bucket has a lower score; rows on the left where it begins.
    bound: np.ndarray
    segment: np.ndarray  # the first of the run of buckets that are scanned with each; -1 for none
    # (3, n_classes): weights of the node; what a unit of weight that moves can change of the score,
    # times the node's weight; ranks.
    whole: np.ndarray
    ones: np.ndarray  # 1 for each row; empty where all weights are 1


@inner_kernel
def leverage(criterion, weight, total, n_classes):
    """Return how much a criterion, times the node's weight, can change for a unit that moves."""
    if criterion == SUM_OF_VARIANCES:
        return (n_classes - 1.0) ** 2
    if criterion == TWOING:
        return 2.0 * (1.0 - weight / total)
    return 1.0


@inner_kernel
def weight_log(weight, table):
    """Return ``weight log2 weight``, from a table of the whole numbers unless that is empty."""
    return table[np.int64(weight)] if table.shape[0] > 0 else xlog2x(weight)


@inner_kernel
def distance_left(left, b, whole, w_left, total):
    """Return ``p_L p_R sum_k |p_kL - p_kR|``, in units of weight, for the left side ``left[b]``."""
    distance = 0.0
    for c in range(whole.shape[1]):
        distance += abs(left[b, c] * total - whole[0, c] * w_left)
    return distance / total


@inner_kernel
def impurity_left(criterion, left, b, whole, w_left, total, table):
    """Return the impurities of the sides, times their weights, for the left side ``left[b]``."""
    w_right = total - w_left
    on_left = on_right = 0.0
    if criterion == GINI:
        for c in range(whole.shape[1]):
            on_left += left[b, c] * left[b, c]
            on_right += (whole[0, c] - left[b, c]) * (whole[0, c] - left[b, c])
        on_left = on_left / w_left if w_left > 0.0 else 0.0
        on_right = on_right / w_right if w_right > 0.0 else 0.0
        return total - on_left - on_right
    if criterion == ENTROPY:
        for c in range(whole.shape[1]):
            on_left += weight_log(left[b, c], table)
            on_right += weight_log(whole[0, c] - left[b, c], table)
        return weight_log(w_left, table) - on_left + weight_log(w_right, table) - on_right
    if criterion == SUM_OF_VARIANCES:
        squares = 0.0
        for c in range(whole.shape[1]):
            on_left += left[b, c] * whole[2, c]
            on_right += (whole[0, c] - left[b, c]) * whole[2, c]
            squares += whole[0, c] * whole[2, c] * whole[2, c]
        on_left = on_left * on_left / w_left if w_left > 0.0 else 0.0
        on_right = on_right * on_right / w_right if w_right > 0.0 else 0.0
        return squares - on_left - on_right
    for c in range(whole.shape[1]):
        on_left = max(on_left, left[b, c])
        on_right = max(on_right, whole[0, c] - left[b, c])
    if criterion == MAX_MINORITY:
        return max(w_left - on_left, w_right - on_right)
    return total - on_left - on_right


@inner_kernel
def score_from(criterion, value, w_left, total):
    """Return the score of a split whose sides are not empty from its `spread`."""
    if criterion == TWOING:
        product = w_left * (total - w_left)
        return -value * value / product if product > 0.0 else 0.0
    return max(0.0, value) / total


@inner_kernel
def least_by_reach(criterion, before, after, w_left, total, came, gone, reach):
    """Return a lower bound of the scores on the way, from what each row can change."""
    if criterion == TWOING:
        low, high = w_left - gone, w_left + came
        product = min(low * (total - low), high * (total - high))
        most = 0.5 * (before + after + reach)
        return -most * most / product if product > 0.0 else -np.inf
    return 0.5 * (before + after - reach) / total


@inner_kernel
def least_entropy(left, b, mass, at, whole, w_left, total, table):
    """Return a lower bound of the entropies on the way from the left side ``left[b]``."""
    # With f(x) = x log2 x, the impurity times its weight is f(L) + f(R) - sum_k (f(l_k) + f(r_k)).
    # The slope of f(L) + f(R) is charged to the classes: what is left of it has its minimum where
    # the way begins, and each class has its maximum at an end of what its weight can be.
    w_right = total - w_left
    if min(w_left, w_right) <= 0.0:
        return -np.inf
    n_classes = whole.shape[1]
    slope = math.log2(w_left / w_right)
    bound = weight_log(w_left, table) + weight_log(w_right, table) - slope * w_left
    for c in range(n_classes):
        high, low = left[b, c] + mass[0, at + c], left[b, c] - mass[0, at + n_classes + c]
        other = whole[0, c]
        bound -= max(
            weight_log(high, table) + weight_log(other - high, table) - slope * high,
            weight_log(low, table) + weight_log(other - low, table) - slope * low,
        )
    return bound / total


@inner_kernel
def least_gini(left, b, mass, at, whole, w_left, total, came, gone):
    """Return a lower bound of Gini's index on the way from the left side ``left[b]``."""
    # The impurity times its weight is the node's weight less sum_k (l_k**2 / L + r_k**2 / R). Each
    # term is a convex function of l_k and L; less its slope in L, which is charged to the classes,
    # it is largest at a corner of what l_k and L can be. Parameters as of `least_entropy`; `came`
    # and `gone` are the weights that come and leave on the way.
    low, high = w_left - gone, w_left + came
    if low <= 0.0 or high >= total:
        return -np.inf
    n_classes, w_right = whole.shape[1], total - w_left
    slope = 0.0
    for c in range(n_classes):
        on_left, on_right = left[b, c] / w_left, (whole[0, c] - left[b, c]) / w_right
        slope += on_left * on_left - on_right * on_right
    low_left, low_right = 1.0 / low, 1.0 / (total - low)
    high_left, high_right = 1.0 / high, 1.0 / (total - high)
    bound = total
    for c in range(n_classes):
        on_left, on_right = left[b, c] / w_left, (whole[0, c] - left[b, c]) / w_right
        share = on_left * on_left - on_right * on_right
        most = -np.inf
        for k in range(2):
            x = left[b, c] - mass[0, at + n_classes + c] if k else left[b, c] + mass[0, at + c]
            squares, others = x * x, (whole[0, c] - x) * (whole[0, c] - x)
            here = max(
                squares * low_left + others * low_right + share * low,
                squares * high_left + others * high_right + share * high,
            )
            most = max(most, here - slope * x)
        bound -= most
    return bound / total


@inner_kernel
def make_line_scratch(node, few_rows):
    """Return room for searching lines at a node; by scans of all rows where it has but few."""
    split = make_split_scratch(node)
    n, n_classes = node.X.shape[0], node.n_classes
    if n_classes == 0 or node.criterion == GAIN_RATIO or n <= few_rows:
        n, n_classes = 0, 0
    n_buckets = max(_FEWEST, min(_MOST, n // _ROWS_EACH))
    whole = np.zeros((3, n_classes))
    n_ones = 0
    for i in range(n):
        whole[0, np.int64(node.y[i])] += node.sample_weight[i]
        if node.sample_weight[i] != 1.0:
            n_ones = n
    total = weight_of(whole[0])
    for c in range(n_classes):
        whole[1, c] = leverage(node.criterion, whole[0, c], total, n_classes)
        whole[2, c] = split.rank[c]
    cell, mass = np.empty(n, dtype=np.int32), np.empty((2, (n_buckets + 1) * 2 * n_classes))
    left, bound = np.empty((n_buckets + 2, n_classes)), np.empty((2, n_buckets))
    segment = np.empty(n_buckets, dtype=np.int32)
    return LineScratch(split, cell, mass, left, bound, segment, whole, np.ones(n_ones))


@inner_kernel
def few_rows(criterion):
    """Return the greatest number of rows for which bounds do not pay."""
    return _FEW_ROWS_GINI if criterion == GINI else _FEW_ROWS


@dot_kernel
def mean_size(s):
    """Return the mean of absolute values."""
    total = 0.0
    for i in range(s.shape[0]):
        total += abs(s[i])
    return total / s.shape[0]


@inner_kernel
def assign_cells(s, t, y, n_buckets, n_classes, cell):
    """Write the cell of each row: ``(bucket * 2 + leaves) * n_classes + class``."""
    scale = 0.5 * mean_size(s) / mean_size(t)
    half = 0.5 * n_buckets
    first, last, none = np.int32(0), np.int32(n_buckets - 1), np.int32(n_buckets)
    width, wide = np.int32(n_classes), np.int32(2 * n_classes)
    for i in range(s.shape[0]):
        p, v = s[i], t[i]
        image = (-p if v > 0.0 else p) / (abs(v) * scale + abs(p) + _SMALLEST)
        bucket = max(first, min(last, np.int32((image + 1.0) * half)))
        leaves = v > 0.0
        if v == 0.0:
            bucket = none
            leaves = p <= 0.0
        cell[i] = bucket * wide + np.int32(y[i]) + (width if leaves else first)


@inner_kernel
def weigh_cells(cell, weight, mass, k):
    """Add up the weights of the rows of each cell into ``mass[k]``."""
    for at in range(mass.shape[1]):
        mass[k, at] = 0.0
    for i in range(cell.shape[0]):
        mass[k, np.uint32(cell[i])] += weight[i]


@inner_kernel
def start_left(mass, k, n_classes, left):
    """Write the left side where alpha is minus infinity into ``left[0]``; return its weight."""
    w_left = 0.0
    for c in range(n_classes):
        left[0, c] = 0.0
    for at in range(n_classes, mass.shape[1], 2 * n_classes):
        for c in range(n_classes):
            left[0, c] += mass[k, at + c]
            w_left += mass[k, at + c]
    return w_left


@inner_kernel
def bound_buckets(criterion, min_rows, unit, n, mass, left, bound, whole, table):
    """Write the left sides where the buckets begin and bounds of the scores within them."""
    n_classes, n_buckets = whole.shape[1], bound.shape[1]
    total, n_left = weight_of(whole[0]), 0.0
    if not unit:
        n_left = start_left(mass, 1, n_classes, left)
    w_left = start_left(mass, 0, n_classes, left)
    best, score, before = np.inf, np.inf, distance_left(left, 0, whole, w_left, total)
    if criterion != TWOING:
        before = impurity_left(criterion, left, 0, whole, w_left, total, table)
    for b in range(n_buckets):
        came = gone = reach = 0.0
        at = 2 * b * n_classes
        for c in range(n_classes):
            into, out = mass[0, at + c], mass[0, at + n_classes + c]
            left[b + 1, c] = left[b, c] + (into - out)
            came += into
            gone += out
            reach += (into + out) * whole[1, c]
        w_end = w_left + came - gone
        if unit:
            n_left = w_left
        bound[1, b] = n_left
        if unit:
            n_left = w_end
        else:
            for c in range(n_classes):
                n_left += mass[1, at + c] - mass[1, at + n_classes + c]
        bound[0, b] = np.inf
        if came + gone > 0.0:
            if criterion == TWOING:
                after = distance_left(left, b + 1, whole, w_end, total)
            else:
                after = impurity_left(criterion, left, b + 1, whole, w_end, total, table)
            if criterion == ENTROPY:
                least = least_entropy(left, b, mass, at, whole, w_left, total, table)
            elif criterion == GINI:
                least = least_gini(left, b, mass, at, whole, w_left, total, came, gone)
            else:
                least = least_by_reach(criterion, before, after, w_left, total, came, gone, reach)
            bound[0, b] = least
            best = min(best, score)  # of the end of the last bucket but empty ones
            score = np.inf
            if min(n_left, n - n_left) >= min_rows:
                score = score_from(criterion, after, w_end, total)
            before, w_left = after, w_end
    return best


@inner_kernel
def keep_buckets(bound, limit, segment):
    """Mark the buckets that may hold a score up to `limit`; return the first and the last."""
    first, last, opening = bound.shape[1], -1, -1
    for b in range(bound.shape[1]):
        segment[b] = -1
        if bound[0, b] <= limit:
            if opening < 0:
                opening = b
            segment[b] = opening
            first, last = min(first, b), b
        elif bound[0, b] < np.inf:
            opening = -1
    return first, last


@inner_kernel
def keep_rows(s, t, cell, lowest, highest, segment, wide, rows, events):
    """Collect the rows of the marked buckets and the places where they change sides."""
    lowest, cells = np.int32(lowest), np.uint32(max(0, highest - lowest))
    found = np.uint64(0)
    for i in range(cell.shape[0]):
        rows[found] = i
        found += np.uint64(np.uint32(cell[i] - lowest) < cells)
    kept = 0
    for e in range(np.int64(found)):
        i = rows[e]
        if segment[cell[i] // wide] >= 0:
            rows[kept] = i
            events[kept] = -s[i] / t[i]
            kept += 1
    return kept


@inner_kernel
def scan_kept(node, t, kept, scratch):
    """Return the best score and alpha of the splits between the kept rows of one segment."""
    y, sample_weight, criterion = node.y, node.sample_weight, node.criterion
    rows, order, events = scratch.split.rows, scratch.split.order, scratch.split.events
    cell, segment, left, whole = scratch.cell, scratch.segment, scratch.left, scratch.whole
    n, n_classes, here = cell.shape[0], whole.shape[1], left.shape[0] - 1
    table = scratch.split.table
    best, alpha = np.inf, 0.0
    n_left, w_left, total, now = 0.0, 0.0, weight_of(whole[0]), -1
    following = segment[cell[rows[order[0]]] // (2 * n_classes)] if kept > 0 else -1
    for e in range(kept - 1):
        at, after = order[e], order[e + 1]
        i = rows[at]
        if following != now:
            now = following
            n_left, w_left = scratch.bound[1, now], 0.0
            for c in range(n_classes):
                left[here, c] = left[now, c]
                w_left += left[now, c]
        following = segment[cell[rows[after]] // (2 * n_classes)]
        step = 1.0 if t[i] < 0.0 else -1.0
        left[here, np.int64(y[i])] += step * sample_weight[i]
        w_left += step * sample_weight[i]
        n_left += step
        here_at, there = events[at], events[after]
        is_split = following == now and max(abs(here_at), abs(there)) < np.inf
        if is_split and apart(here_at, there) and min(n_left, n - n_left) >= node.min_rows:
            if criterion == TWOING:
                value = distance_left(left, here, whole, w_left, total)
            else:
                value = impurity_left(criterion, left, here, whole, w_left, total, table)
            score = score_from(criterion, value, w_left, total)
            if score < best:
                best, alpha = score, between(here_at, there)
    return best, alpha


@inner_kernel
def bounded_line_search(node, s, t, known, scratch):
    """Return the best split along a line of hyperplanes, if it is as good as one known."""
    n_classes, is_found = scratch.whole.shape[1], False
    score, alpha = np.inf, 0.0
    if n_classes > 0 and mean_size(t) > 0.0:
        cell, mass, bound, segment = scratch.cell, scratch.mass, scratch.bound, scratch.segment
        rows, events, wide = scratch.split.rows, scratch.split.events, 2 * n_classes
        assign_cells(s, t, node.y, bound.shape[1], n_classes, cell)
        weigh_cells(cell, node.sample_weight, mass, 0)
        unit = scratch.ones.shape[0] == 0
        if not unit:
            weigh_cells(cell, scratch.ones, mass, 1)
        limits, whole = (node.criterion, node.min_rows, unit, s.shape[0]), scratch.whole
        reached = bound_buckets(*limits, mass, scratch.left, bound, whole, scratch.split.table)
        limit = min(reached, known)
        first, last = keep_buckets(bound, limit + _SLACK * max(1.0, abs(limit)), segment)
        kept = keep_rows(s, t, cell, first * wide, (last + 1) * wide, segment, wide, rows, events)
        sort_order(events, kept, scratch.split.order, scratch.split.sort)
        score, alpha = scan_kept(node, t, kept, scratch)
        # Not so if the best split is between two buckets, but of the rows on either side of it two
        # are at one place but for rounding.
        is_found = score <= reached + _SLACK * max(1.0, abs(reached)) or reached > known
    if not is_found:
        score, alpha = line_search(node, s, t, scratch.split)
    return score, alpha


@kernel
def search_line_below(node, s, t, known):
    """Return the best score and its alpha along a line, by bounds unless rows are very few."""
    return bounded_line_search(node, s, t, known, make_line_scratch(node, _FEWEST_ROWS))
