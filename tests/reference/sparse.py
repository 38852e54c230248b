"""Naive twins of the search for splits on few features."""

import numpy as np


def misrouted(s, goes_right, cost, threshold):
    """Return the cost of the rows on the wrong side of a threshold."""
    return float(cost[(s > threshold) != goes_right].sum())


def least_cost(s, goes_right, cost):
    """Return the least cost of all thresholds between two projections, and of their inverses.

    Projections that differ by no more than rounding are not parted.
    """
    found, values = [np.inf], np.unique(s)
    for low, high in zip(values[:-1], values[1:], strict=True):
        if high - low > 1e-12 * max(abs(low), abs(high)):
            wrong = misrouted(s, goes_right, cost, low)
            found += [wrong, cost.sum() - wrong]
    return min(found)


def least_axis_cost(X, goes_right, cost):
    """Return the least cost of all splits on one feature."""
    return min(least_cost(column, goes_right, cost) for column in X.T)
