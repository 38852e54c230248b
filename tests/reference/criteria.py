"""Naive twins of the criteria and of the search along a line: shares, fractions, every midpoint."""

from fractions import Fraction

import numpy as np


def shares(counts):
    """Return the class shares of a side."""
    return counts / counts.sum()


def entropy(counts):
    """Return the entropy of a side in bits."""
    p = shares(counts)
    p = p[p > 0]
    return -(p * np.log2(p)).sum()


def gini(counts):
    return 1 - (shares(counts) ** 2).sum()


def error(counts):
    return 1 - shares(counts).max()


def variance(values, weight):
    """Return the weighted variance."""
    mean = (weight * values).sum() / weight.sum()
    return (weight * (values - mean) ** 2).sum() / weight.sum()


def two_sided_score(name, left, right):
    """Return the score of a split by a criterion that looks at both sides; neither is empty."""
    whole, p_left, p_right = left + right, left.sum(), right.sum()
    p_left, p_right = p_left / whole.sum(), p_right / whole.sum()
    if name == "twoing":
        return -p_left * p_right * abs(shares(left) - shares(right)).sum() ** 2
    return max(p_left * error(left), p_right * error(right))


def class_score(name, left, right):
    """Return the score of a split by the class weights of its sides, one of which may be empty."""
    whole = left + right
    if name in ("twoing", "max_minority"):
        if left.sum() > 0 and right.sum() > 0:
            return two_sided_score(name, left, right)
        return error(whole) if name == "max_minority" else 0.0
    impurity = {
        "entropy": entropy,
        "gini": gini,
        "error": error,
        "sum_minority": error,
    }[name]
    sides = [side for side in (left, right) if side.sum() > 0]
    return sum(side.sum() / whole.sum() * impurity(side) for side in sides)


def score(node, name, goes_left):
    """Return the score of a split of a node's rows, or of no split where one side is empty."""
    y, w = node.y, node.sample_weight
    sides = [side for side in (goes_left, ~goes_left) if side.any()]
    if node.n_classes == 0:
        parts = [(w[side].sum() / w.sum(), y[side], w[side]) for side in sides]
        return sum(share * variance(*rows) for share, *rows in parts)
    left, right = (
        np.bincount(y[side], w[side], node.n_classes)
        for side in (goes_left, ~goes_left)
    )
    return class_score(name, left, right)


def line_splits(s, t):
    """Yield for each pair of neighbouring places both, and which rows are left between them.

    Fractions, so that no rounding decides on which side of a place a row is.
    """
    s, t = [Fraction(float(v)) for v in s], [Fraction(float(v)) for v in t]
    places = sorted({-a / b for a, b in zip(s, t, strict=True) if b != 0})
    for low, high in zip(places[:-1], places[1:], strict=True):
        middle = (low + high) / 2
        left = np.array([a + middle * b <= 0 for a, b in zip(s, t, strict=True)])
        yield float(low), float(high), left


def line_search(node, name, s, t):
    """Score every split along the line; return the lowest score, and the intervals that have it."""
    best, intervals = np.inf, []
    for low, high, left in line_splits(s, t):
        if min(left.sum(), (~left).sum()) < node.min_rows:
            continue
        found = score(node, name, left)
        if found < best - 1e-11:
            best, intervals = found, []
        if found < best + 1e-11:
            intervals.append((low, high))
    return best, intervals
