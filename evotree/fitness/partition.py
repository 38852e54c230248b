"""Kernels on the rows of one node: project, split, count, sort, and the margin of a split.

A partition holds the training rows as one permutation ``order``; the rows of node k are
``order[start[k]:end[k]]``. It is *canonical*: the rows of every leaf ascend. Splits are stable, so
rows that ascend at a node ascend at its children, memory is read forwards, and the partition of a
tree does not depend on how the tree came about.
"""

import numpy as np

from evotree._jit import dots_kernel, inner_kernel, kernel


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
def trailing_zeros(bits):
    """Return the position of the lowest set bit of a non-zero 64-bit integer."""
    count = 0
    for half in (32, 16, 8, 4, 2, 1):
        if bits & np.uint64((1 << half) - 1) == np.uint64(0):
            bits >>= np.uint64(half)
            count += half
    return count


@kernel
def sort_rows(order, lo, hi):
    """Sort the distinct integers ``order[lo:hi]`` by way of a bitmap, in linear time."""
    n_rows, one = order.shape[0], np.uint64(1)
    if hi - lo == n_rows:
        for t in range(n_rows):
            order[t] = t
        return
    bitmap = np.zeros((n_rows + 63) // 64, dtype=np.uint64)
    for t in range(lo, hi):
        row = np.uint64(np.uint32(order[t]))
        bitmap[row >> np.uint64(6)] |= one << (row & np.uint64(63))
    at = lo
    for word in range(bitmap.shape[0]):
        bits = bitmap[word]
        while bits != np.uint64(0):
            order[at] = word * 64 + trailing_zeros(bits)
            at += 1
            bits &= bits - one


@kernel
def update_nearest(projection, order, lo, hi, threshold, nearest, rows):
    """Let some rows compete for being nearest to a hyperplane, on either side."""
    # Indexed by side: which side a row is on cannot be predicted, and a branch on it would cost as
    # much as the projection.
    for t in range(hi - lo):
        side = np.uint64(projection[t] > threshold)
        nearness = projection[t] * (1.0 - 2.0 * side)
        if nearness > nearest[side]:
            nearest[side] = nearness
            rows[side] = order[lo + t]


@inner_kernel
def no_rows():
    """Return room for the rows nearest to a threshold on its two sides, and their distances."""
    return np.full(2, -np.inf), np.full(2, -1)


@kernel
def middle_of_margin(nearest, rows, y, threshold):
    """Return the threshold between two rows nearest to it, if these form a mixed dipole."""
    if rows[0] < 0 or rows[1] < 0 or y[rows[0]] == y[rows[1]]:
        return threshold
    below_it, above_it = nearest[0], -nearest[1]
    middle = below_it + 0.5 * (above_it - below_it)
    return middle if middle < above_it else below_it


@kernel
def centre_margin(projection, order, lo, hi, y, threshold):
    """Move a threshold to the middle between the nearest rows, if these form a mixed dipole."""
    nearest, rows = no_rows()
    update_nearest(projection, order, lo, hi, threshold, nearest, rows)
    return middle_of_margin(nearest, rows, y, threshold)
