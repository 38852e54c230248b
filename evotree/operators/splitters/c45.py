"""The tests of C4.5: one feature, by gain ratio, thresholds at a price (Quinlan 1993; 1996)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Real
from typing import Annotated

import numpy as np

from evotree._jit import inner_kernel, kernel
from evotree._sklearn import Interval
from evotree.configuration import Configuration
from evotree.fitness.criteria import weight_of, xlog2x
from evotree.fitness.line_search import apart
from evotree.fitness.node import Node
from evotree.fitness.sorting import make_sort_scratch, sort_order
from evotree.operators.splitters.axis import score_test
from evotree.operators.splitters.base import Split, axis_normal

# The program's constants.
_LEAST_SHARE, _MOST_ROWS = 0.1, 25.0
_BELOW_AVERAGE = 1e-3
# Gains and ratios in bits that differ by less are equal; the program's are in single precision.
_ROUNDING = 1e-6


@inner_kernel
def total_entropy(counts):
    """Return the entropy of class weights, in bits, times their sum."""
    total = xlog2x(weight_of(counts))
    for c in range(counts.shape[0]):
        total -= xlog2x(counts[c])
    return total


@inner_kernel
def least_weight(known, n_classes, min_cases):
    """Return the least weight of a side: a tenth of an even share of a class, within bounds."""
    least = _LEAST_SHARE * known / n_classes
    return min_cases if least <= min_cases else min(least, _MOST_ROWS)


@kernel
def search_gains(node, indicators, min_cases, gains, informations, cuts):
    """Find the threshold of the highest information gain of each feature."""
    X, y, weight = node.X, node.y, node.sample_weight
    n = X.shape[0]
    rows, order = np.empty(n, dtype=np.int32), np.empty(n, dtype=np.int32)
    values, scratch = np.empty(n), make_sort_scratch(n)
    left, right = np.empty(node.n_classes), np.empty(node.n_classes)
    total = 0.0
    for i in range(n):
        total += weight[i]
    for j in range(X.shape[1]):
        gains[j] = informations[j] = cuts[j] = 0.0
        m, indicator = 0, indicators[j]
        for c in range(node.n_classes):
            left[c] = right[c] = 0.0
        for i in range(n):
            if indicator < 0 or X[i, indicator] <= 0.0:
                rows[m], values[m] = i, X[i, j]
                right[y[i]] += weight[i]
                m += 1
        sort_order(values, m, order, scratch)
        known, entropy = weight_of(right), total_entropy(right)
        least = least_weight(known, node.n_classes, min_cases)
        best, on_left, n_tried = 0.0, 0.0, 0
        for e in range(m - 1):
            i, w = rows[order[e]], weight[rows[order[e]]]
            left[y[i]] += w
            right[y[i]] -= w
            on_left += w
            on_right = known - on_left
            low, high = values[order[e]], values[order[e + 1]]
            if (
                not apart(low, high)
                or min(on_left, on_right) < least - _ROUNDING
                or min(e + 1, m - e - 1) < node.min_rows
            ):
                continue
            n_tried += 1
            gain = (entropy - total_entropy(left) - total_entropy(right)) / total
            if gain > best + _ROUNDING:
                best = gain
                cuts[j] = 0.5 * (low + high)
                information = xlog2x(total) - xlog2x(on_left) - xlog2x(on_right)
                informations[j] = (information - xlog2x(total - known)) / total
        if best > 0.0:
            gains[j] = max(0.0, best - math.log2(n_tried) / total)


@dataclass(frozen=True, repr=False)
class C45(Configuration):
    """The test of C4.5, release 8 (Quinlan 1993; 1996); the criterion of the node does not matter.

    The threshold of a feature is that of its highest information gain; of this gain the price of
    choosing among m thresholds of n rows is taken, ``log2(m) / n``. Of the tests whose gain is at
    least the average of those above 0, the one with the highest ratio of gain to the information
    of the split wins, the first of equals. Rows whose value is missing take no part; the gain is
    that of the others, times their share.
    """

    # Each side has at least this weight of rows whose value is known, and at least a tenth of the
    # weight that a class has on average, up to 25.
    min_cases: Annotated[float, Interval(Real, 0.0, None, closed="neither")] = 2.0
    # Position of the feature that is above 0 where a feature is missing, -1 where it never is, for
    # each feature. Indicators themselves are not tested. Empty where nothing is missing.
    indicators: tuple[int, ...] = ()

    def __call__(self, node: Node, stream: np.ndarray) -> Split | None:
        """Find the split; draws nothing (see `evotree.operators.splitters.base.Splitter`)."""
        if node.n_classes == 0:
            raise ValueError("splitter=C45(...): it is for classes, not for targets.")
        d = node.X.shape[1]
        indicators = np.array(self.indicators or (-1,) * d, dtype=np.int64)
        gains, informations, cuts = np.empty(d), np.empty(d), np.empty(d)
        search_gains(node, indicators, self.min_cases, gains, informations, cuts)
        gains[indicators[indicators >= 0]] = 0.0
        useful = gains > _ROUNDING
        if node.sample_weight.sum() < 2.0 * self.min_cases or not useful.any():
            return None
        least = gains[useful].mean() - _BELOW_AVERAGE
        best, feature = 0.0, -1
        for j in map(int, np.flatnonzero(useful & (gains >= least))):
            ratio = gains[j] / informations[j]
            if ratio > best + _ROUNDING:
                best, feature = ratio, j
        if feature < 0:
            return None
        threshold = float(cuts[feature])
        return Split(axis_normal(d, feature), threshold, score_test(node, feature, threshold))
