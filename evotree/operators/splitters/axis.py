"""Splits on one feature: the best one (Breiman et al. 1984), and C4.5's (Quinlan 1993; 1996)."""

import math
from dataclasses import dataclass
from numbers import Real
from typing import Annotated

import numpy as np

from evotree._jit import inner_kernel, kernel, read_only
from evotree.configuration import Configuration, Interval
from evotree.fitness.node import (
    Criterion,
    Node,
    apart,
    line_search,
    make_sort_scratch,
    make_split_scratch,
    score_hyperplane,
    score_undivided,
    sort_order,
    weight_of,
    xlog2x,
)
from evotree.operators.splitters.base import Split, needs_classes

_GAIN_ROUNDING = 1e-12  # in bits


@kernel
def search_features(node, scores, cuts):
    """Find the best split on each feature; write scores, infinite where there is none, and cuts."""
    t = np.full(node.X.shape[0], -1.0)
    scratch = make_split_scratch(node)
    for j in range(node.X.shape[1]):
        scores[j], cuts[j] = line_search(node, node.X[:, j].copy(), t, scratch)


def search_gain_ratio(node: Node, scores: np.ndarray, cuts: np.ndarray) -> None:
    """Find the splits among which C4.5 chooses, as `search_features` (Quinlan 1993, chapter 2)."""
    # The threshold of a feature is that of its highest information gain, not of its highest gain
    # ratio, which would favour splits that part few rows. For the same reason features whose gain
    # is below the average, that of all gains above 0, are out.
    by_gain = node._replace(criterion=int(Criterion.ENTROPY))
    search_features(by_gain, scores, cuts)
    gains = score_undivided(by_gain) - scores
    is_useful = gains > _GAIN_ROUNDING
    if is_useful.any():
        scores[gains < gains[is_useful].mean() - _GAIN_ROUNDING] = np.inf
    for j in np.flatnonzero(np.isfinite(scores)).tolist():
        scores[j] = axis_split(node, j, cuts[j]).score


def axis_split(node: Node, feature: int, threshold: float) -> Split:
    """Return the split on one feature, with the score that `score_hyperplane` has of it."""
    column = np.ascontiguousarray(node.X[:, feature : feature + 1])
    alone = node._replace(X=read_only(column))
    weights = np.zeros(node.X.shape[1])
    weights[feature] = 1.0
    score = score_hyperplane(alone, np.ones(1), threshold)
    return Split(weights, float(threshold), score)


@dataclass(frozen=True)
class Axis:
    """The best axis-parallel split, found exactly in O(d n log n) at worst.

    Of equal splits it takes the one of the first feature and the lowest threshold. By gain ratio it
    is C4.5's (Quinlan 1993): the split on each feature is that of its highest information gain, and
    of the splits of at least average gain the one of the best ratio wins.
    """

    def __call__(self, node: Node, stream: np.ndarray) -> Split | None:
        """Find the split; draws nothing (see `evotree.operators.splitters.base.Splitter`)."""
        scores, cuts = np.empty(node.X.shape[1]), np.empty(node.X.shape[1])
        if node.criterion == Criterion.GAIN_RATIO:
            search_gain_ratio(node, scores, cuts)
        else:
            search_features(node, scores, cuts)
        feature = int(np.argmin(scores))
        if scores[feature] == np.inf:
            return None
        return axis_split(node, feature, cuts[feature])


# The constants of C4.5's program, release 8.
_LEAST_SHARE, _MOST_ROWS = 0.1, 25.0
_BELOW_AVERAGE = 1e-3
# Gains and ratios in bits that differ by less are equal; the program's are in single precision.
_ROUNDING_C45 = 1e-6


@inner_kernel
def total_entropy(counts):
    """Return the entropy of class weights, in bits, times their sum."""
    total = xlog2x(weight_of(counts))
    for c in range(counts.shape[0]):
        total -= xlog2x(counts[c])
    return total


@kernel
def search_gains(node, indicators, min_cases, gains, informations, cuts):
    """Find the threshold of the highest information gain of each feature, as C4.5 does.

    ``indicators (n_features,)`` are those of `C45`; `gains`, `informations` and `cuts` of the same
    shape are written: 0 where no threshold has a gain.
    """
    X, y, weight = node.X, node.y, node.sample_weight
    n = X.shape[0]
    rows, order = np.empty(n, dtype=np.int32), np.empty(n, dtype=np.int32)
    values, scratch = np.empty(n), make_sort_scratch(n)
    left, right = np.empty(node.n_classes), np.empty(node.n_classes)
    total = weight_of(weight)
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
        # Of a side: a tenth of an even share of a class, within bounds.
        least = _LEAST_SHARE * known / node.n_classes
        least = min_cases if least <= min_cases else min(least, _MOST_ROWS)
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
                or min(on_left, on_right) < least - _ROUNDING_C45
                or min(e + 1, m - e - 1) < node.min_rows
            ):
                continue
            n_tried += 1
            gain = (entropy - total_entropy(left) - total_entropy(right)) / total
            if gain > best + _ROUNDING_C45:
                best = gain
                cuts[j] = 0.5 * (low + high)
                information = xlog2x(total) - xlog2x(on_left) - xlog2x(on_right)
                informations[j] = (information - xlog2x(total - known)) / total
        if best > 0.0:
            gains[j] = max(0.0, best - math.log2(n_tried) / total)


@dataclass(frozen=True, repr=False)
class C45(Configuration):
    """The split of C4.5, release 8 (Quinlan 1993; 1996); the node's criterion does not matter.

    The threshold of a feature is that of its highest information gain; of this gain the price of
    choosing among m thresholds of n rows is taken, ``log2(m) / n``. Of the splits whose gain is at
    least the average of those above 0, the one with the highest ratio of gain to the information
    of the split wins, the first of equals. Rows whose value is missing take no part; the gain is
    that of the others, times their share.
    """

    # Each side has at least this weight of rows whose value is known, and at least a tenth of the
    # weight that a class has on average, up to 25.
    min_cases: Annotated[float, Interval(Real, 0.0, None, closed="neither")] = 2.0
    # Position of the feature that is above 0 where a feature is missing, -1 where it never is, for
    # each feature. Nodes are not split on indicators themselves. Empty where nothing is missing.
    indicators: tuple[int, ...] = ()

    def __call__(self, node: Node, stream: np.ndarray) -> Split | None:
        """Find the split; draws nothing (see `evotree.operators.splitters.base.Splitter`)."""
        needs_classes(node, "C45")
        d = node.X.shape[1]
        indicators = np.array(self.indicators or (-1,) * d, dtype=np.int64)
        gains, informations, cuts = np.empty(d), np.empty(d), np.empty(d)
        search_gains(node, indicators, self.min_cases, gains, informations, cuts)
        gains[indicators[indicators >= 0]] = 0.0
        is_useful = gains > _ROUNDING_C45
        if node.sample_weight.sum() < 2.0 * self.min_cases or not is_useful.any():
            return None
        is_useful &= gains >= gains[is_useful].mean() - _BELOW_AVERAGE
        best, feature = 0.0, -1
        for j in np.flatnonzero(is_useful).tolist():
            ratio = gains[j] / informations[j]
            if ratio > best + _ROUNDING_C45:
                best, feature = ratio, j
        return axis_split(node, feature, cuts[feature]) if feature >= 0 else None
