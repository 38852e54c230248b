"""What a splitter is, what several share, and splits on one feature: the best one, and C4.5's.

A splitter finds one hyperplane at one node. The same splitters seed a population, mutate and refine
its members, and grow the trees of the greedy algorithms; a published greedy algorithm is a splitter
and a few settings.

References
----------
Breiman L., Friedman J., Olshen R., Stone C. (1984). Classification and regression trees.
Quinlan J. R. (1993). C4.5: programs for machine learning.
Quinlan J. R. (1996). Improved use of continuous attributes in C4.5. Journal of Artificial
Intelligence Research 4, 77-90.
"""

import math
from dataclasses import dataclass
from numbers import Real
from typing import Annotated, NamedTuple, Protocol

import numpy as np

from evotree._jit import dot_kernel, inner_kernel, kernel, read_only
from evotree.configuration import Configuration, Interval
from evotree.fitness.node import (
    Criterion,
    Node,
    apart,
    choose_threshold,
    line_search,
    make_sort_scratch,
    make_split_scratch,
    score_hyperplane,
    score_undivided,
    sort_order,
    weight_of,
    xlog2x,
)


class Split(NamedTuple):
    """A hyperplane at a node: rows with ``weights @ x <= threshold`` go left."""

    weights: np.ndarray
    threshold: float
    score: float  # by the criterion of the node, the lower the better
    # What splits both sides when a tree is grown; None for the splitter that found this split.
    below: "Splitter | None" = None


class Splitter(Protocol):
    """A function of a node and a random stream that returns a split, or None if it finds none."""

    # It writes nothing but the stream; the same node and the same state of the stream give the same
    # split. Both sides of a split have at least ``node.min_rows`` rows.
    def __call__(self, node: Node, stream: np.ndarray) -> Split | None:
        """Find one split."""


def scored_split(node: Node, weights: np.ndarray, threshold: float) -> Split:
    """Return a split with its score, which is infinite where a side has too few rows."""
    score = float(score_hyperplane(node, weights, threshold))
    return Split(weights, float(threshold), score)


def better_split(
    best: Split | None, node: Node, hyperplane: tuple[np.ndarray, float] | None
) -> Split | None:
    """Return the better one of a split and a hyperplane; None where neither parts the rows."""
    if hyperplane is None:
        return best
    split = scored_split(node, *hyperplane)
    return split if split.score < (np.inf if best is None else best.score) else best


def best_split_along(node: Node, weights: np.ndarray) -> Split | None:
    """Return the best split with a given normal vector; None where there is none."""
    score, threshold = choose_threshold(node, weights)
    return better_split(None, node, (weights, threshold)) if score < np.inf else None


_LEAST_SCALE = 1e-150  # its square is a number still


class ScaledRows(NamedTuple):
    """The rows of a node in units of their own."""

    # (n, d + 1): less the mean, over the scale, 0 where that is; 1 in the last.
    rows: np.ndarray
    codes: np.ndarray  # (n,) int32: classes, numbered among those present
    shares: np.ndarray  # (n,): weights, with sum 1
    totals: np.ndarray  # (n_present,): weights of the classes
    mean: np.ndarray  # (d,)
    scale: np.ndarray  # (d,): 0 for a constant feature


@dot_kernel
def inner(a, b):
    """Return ``a @ b``."""
    s = 0.0
    for j in range(a.shape[0]):
        s += a[j] * b[j]
    return s


def scale_rows(node: Node, rescale: bool) -> ScaledRows:
    """Return the rows of a node, with `rescale` brought to mean 0 and standard deviation 1."""
    X = node.X
    n, d = X.shape
    codes = np.unique(node.y, return_inverse=True)[1].astype(np.int32)
    totals = np.bincount(codes, node.sample_weight)
    weight = np.cumsum(totals)[-1]
    shares = node.sample_weight / weight
    mean, scale = np.zeros(d), np.ones(d)
    if rescale:
        low, high = X.min(axis=0), X.max(axis=0)
        mean = (shares[:, np.newaxis] * X).sum(axis=0)
        deviation = X - mean
        scale = np.sqrt((shares[:, np.newaxis] * deviation * deviation).sum(axis=0))
        # A share of the range bounds the scaled values where nearly all weight is at one place.
        scale = np.maximum(scale, 1e-6 * (high - low))
        is_constant = (low == high) | (scale < _LEAST_SCALE)
        mean = np.where(is_constant, low, mean)
        scale = np.where(is_constant, 0.0, scale)
    rows = np.ones((n, d + 1))
    rows[:, :d] = (X - mean) * np.divide(1.0, scale, out=np.zeros(d), where=scale > 0.0)
    return ScaledRows(rows, codes, shares, totals / weight, mean, scale)


def node_hyperplane(
    scaled: ScaledRows, theta: np.ndarray
) -> tuple[np.ndarray, float] | None:
    """Return a hyperplane of scaled rows in the units of their node; None beyond all numbers."""
    mean, scale = scaled.mean, scaled.scale
    weights = np.divide(theta[:-1], scale, out=np.zeros(len(scale)), where=scale > 0.0)
    largest = np.abs(weights).max()
    if not 0.0 < largest < np.inf:
        return None
    weights /= largest  # squares neither overflow nor vanish
    length = math.sqrt(np.cumsum(weights * weights)[-1])
    weights /= length
    # Added up one after the other, as everywhere: sums of other orders are rounded otherwise.
    terms = np.append(-theta[-1] / (largest * length), weights * mean)
    threshold = float(np.cumsum(terms)[-1])
    return (weights, threshold) if math.isfinite(threshold) else None


def needs_classes(node: Node, splitter: str) -> None:
    """Raise an error at a node of targets."""
    if node.n_classes == 0:
        raise ValueError(f"splitter {splitter!r} is for classes, not for targets.")


# ---- splits on one feature -----------------------------------------------------------------------


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
        """Find the split; draws nothing (see `Splitter`)."""
        scores, cuts = np.empty(node.X.shape[1]), np.empty(node.X.shape[1])
        if node.criterion == Criterion.GAIN_RATIO:
            search_gain_ratio(node, scores, cuts)
        else:
            search_features(node, scores, cuts)
        feature = int(np.argmin(scores))
        if scores[feature] == np.inf:
            return None
        return axis_split(node, feature, cuts[feature])


# ---- C4.5, release 8 -----------------------------------------------------------------------------

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
