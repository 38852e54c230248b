"""The best split along a line of hyperplanes.

Axis-parallel search, coefficient perturbation, random jumps, the choice of a threshold: each is one
question. Row j has the signed distance ``s_j`` from the present hyperplane, and it changes by
``t_j`` for each unit of some parameter alpha; which alpha gives the best split, when the rows with
``s_j + alpha t_j <= 0`` go left? `line_search` answers it exactly, by one sort and one scan.
"""

import numpy as np

from evotree._jit import dot_kernel, inner_kernel, kernel, part_kernel
from evotree.fitness.criteria import (
    ABSOLUTE_ERROR,
    ENTROPY,
    GINI,
    SQUARED_ERROR,
    TWOING,
    split_score,
    weight_of,
)
from evotree.fitness.node import (
    add,
    clear_sides,
    distances,
    make_split_scratch,
    score_sides,
    tree_add,
)
from evotree.fitness.sorting import sort_order

# Rows whose places on a line agree but for rounding cannot be parted by a point of the line.
_ROUNDING = 1e-12


@inner_kernel
def start_sweep(node, s, t, scratch):
    """Find where the rows change sides, and put them on the sides where alpha is minus infinity.

    Returned are how many change sides at all, and how many are on the left at first.
    """
    clear_sides(scratch)
    y, sample_weight, n_classes = node.y, node.sample_weight, node.n_classes
    left, right = scratch.left, scratch.right
    n_events = n_left = 0
    for i in range(s.shape[0]):
        event = -s[i] / t[i] if t[i] != 0.0 else np.inf
        goes_right = s[i] > 0.0
        if abs(event) < np.inf:
            scratch.events[n_events] = event
            scratch.rows[n_events] = i
            n_events += 1
            goes_right = t[i] < 0.0
        n_left += not goes_right
        add(right if goes_right else left, y[i], sample_weight[i], n_classes)
    if node.criterion == ABSOLUTE_ERROR:
        for i in range(s.shape[0]):
            moves = t[i] != 0.0 and abs(s[i] / t[i]) < np.inf
            side = np.int64(t[i] < 0.0 if moves else s[i] > 0.0)
            rank, w = scratch.target_rank[i], sample_weight[i]
            tree_add(scratch.tree[side, 0], rank, w)
            tree_add(scratch.tree[side, 1], rank, w * y[i])
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
def cross(e, n_left, t, sample_weight, scratch):
    """Let a row change sides: return it, its weight on the left, the rows there, and two places."""
    at, after = scratch.order[e], scratch.order[e + 1]
    i = scratch.rows[at]
    w = sample_weight[i] if t[i] < 0.0 else -sample_weight[i]
    n_left += 1 if t[i] < 0.0 else -1
    return i, w, n_left, scratch.events[at], scratch.events[after]


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
    n, y, left, right = s.shape[0], node.y, scratch.left, scratch.right
    is_absolute = node.criterion == ABSOLUTE_ERROR
    best, alpha = np.inf, 0.0
    for e in range(n_events - 1):
        i, w, n_left, here, there = cross(e, n_left, t, node.sample_weight, scratch)
        add(left, y[i], w, node.n_classes)
        add(right, y[i], -w, node.n_classes)
        if is_absolute:
            for side in range(2):
                change = w if side == 0 else -w
                tree_add(scratch.tree[side, 0], scratch.target_rank[i], change)
                tree_add(scratch.tree[side, 1], scratch.target_rank[i], change * y[i])
        if apart(here, there) and min(n_left, n - n_left) >= node.min_rows:
            if is_absolute:
                score = score_sides(node, scratch)
            else:
                score = split_score(node.criterion, left, right, scratch.rank)
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
    n, left, whole = node.X.shape[0], scratch.left, scratch.right
    w_left = weight_of(left)
    for c in range(left.shape[0]):
        whole[c] += left[c]
    total = weight_of(whole)
    best, alpha = -np.inf, 0.0
    for e in range(n_events - 1):
        i, w, n_left, here, there = cross(e, n_left, t, node.sample_weight, scratch)
        left[np.int64(node.y[i])] += w
        w_left += w
        if apart(here, there) and min(n_left, n - n_left) >= node.min_rows:
            distance = twoing_distance(left, whole, total, w_left)
            score = distance * distance / (w_left * (total - w_left))
            if score > best:
                best, alpha = score, between(here, there)
    return -best / (total * total), alpha


@inner_kernel
def sweep_entropy(node, t, n_events, n_left, scratch):
    """Scan the line of `line_search` by entropy, with two terms of it renewed for each row."""
    n, left, right, table = node.X.shape[0], scratch.left, scratch.right, scratch.table
    w_left, w_right, sums = weight_of(left), weight_of(right), 0.0
    for c in range(left.shape[0]):
        sums += table[np.int64(left[c])] + table[np.int64(right[c])]
    best, alpha = np.inf, 0.0
    for e in range(n_events - 1):
        i, w, n_left, here, there = cross(e, n_left, t, node.sample_weight, scratch)
        c = np.int64(node.y[i])
        sums -= table[np.int64(left[c])] + table[np.int64(right[c])]
        left[c] += w
        right[c] -= w
        sums += table[np.int64(left[c])] + table[np.int64(right[c])]
        w_left += w
        w_right -= w
        if apart(here, there) and min(n_left, n - n_left) >= node.min_rows:
            score = table[np.int64(w_left)] + table[np.int64(w_right)] - sums
            if score < best:
                best, alpha = score, between(here, there)
    return max(best, 0.0) / (w_left + w_right), alpha


@inner_kernel
def sweep_squares(node, t, n_events, n_left, scratch):
    """Scan the line of `line_search` by Gini or squared error, their sums renewed for each row."""
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
        i, w, n_left, here, there = cross(e, n_left, t, node.sample_weight, scratch)
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
        if apart(here, there) and min(n_left, n - n_left) >= node.min_rows:
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


@inner_kernel
def best_threshold(node, w, s, t, scratch):
    """Return the best score and threshold for a normal vector."""
    distances(node, w, 0.0, s)
    for i in range(t.shape[0]):
        t[i] = -1.0
    return line_search(node, s, t, scratch)


@kernel
def choose_threshold(node, w):
    """Return the lowest score and its threshold along a normal vector, as `best_threshold`."""
    n = node.X.shape[0]
    return best_threshold(node, w, np.empty(n), np.empty(n), make_split_scratch(node))


@kernel
def search_line(node, s, t):
    """Return the best score and its alpha along a line, as `line_search`."""
    return line_search(node, s, t, make_split_scratch(node))
