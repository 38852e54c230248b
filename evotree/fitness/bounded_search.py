"""The best split along a line of hyperplanes without sorting all rows: a search by bounds.

The places of the line where rows change sides (`evotree.fitness.node.line_search`) fall into
buckets by one division for each row, and the class weights of the buckets give the score between
any two of them. How many rows change sides inside a bucket bounds the scores there from below, and
only the few buckets that may hold the best split are sorted and scanned. The result is that of the
whole scan; most searches sort a few rows in a hundred.
"""

from typing import NamedTuple

import numpy as np

from evotree._jit import dot_kernel, inner_kernel, kernel
from evotree.fitness.bounds import (
    distance_left,
    impurity_left,
    least_by_reach,
    least_entropy,
    least_gini,
    leverage,
    score_from,
)
from evotree.fitness.criteria import ENTROPY, GAIN_RATIO, GINI, TWOING, weight_of
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
