"""The margin of a node: the gap between its rows and the threshold, and the middle of it."""

import numpy as np

from evotree._jit import kernel


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
    nearest, rows = np.full(2, -np.inf), np.full(2, -1)
    update_nearest(projection, order, lo, hi, threshold, nearest, rows)
    return middle_of_margin(nearest, rows, y, threshold)
