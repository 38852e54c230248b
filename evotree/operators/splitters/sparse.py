"""Splits on few features: which ones, with which weights, and where, for two groups of rows.

The reduced problem of a node (`evotree.operators.structure.reduced`) asks for the split that costs
least, a penalty for each term included. It is the L0 problem of a linear classifier. As in abess
(Zhu et al. 2020, "A polynomial algorithm for best-subset selection problem", PNAS) and L0Learn
(Hazimeh and Mazumder 2020, "Fast best subset selection", Operations Research) features leave by
what they contribute and are swapped for those that promise more, and every support is fitted again;
here the widths go down from the dense classifier, since going up from one feature stops at poor
splits, and supports are compared by what their splits cost, at the exact best threshold.
"""

import math
from dataclasses import dataclass
from numbers import Integral
from typing import Annotated, NamedTuple

import numpy as np

from evotree._jit import inner_kernel, kernel, read_only
from evotree.configuration import Configuration, Interval, StrOptions
from evotree.fitness.node import (
    Node,
    SortScratch,
    apart,
    between,
    make_sort_scratch,
    sort_order,
)
from evotree.operators.splitters.base import Split
from evotree.operators.splitters.linear import (
    LOSSES,
    loss_derivatives,
    newton_fit,
    start_at,
)

WIDTHS = ("same", "fewer", "any")
"""Names of the ways to choose how many features a split has."""

# From one width to the next this share of the terms is kept; of few terms one leaves at a time.
_KEPT_TERMS_SHARE = 0.7
_FEW_TERMS = 5
# The terms of wider splits are not swapped.
_MAX_SWAPPED_TERMS = 12
_SWAP_ROUNDS = 3
# Costs that differ by less, as a share of the whole cost, are equal.
_TIE_SHARE = 1e-9
_FLAT = 1e-300  # a feature of less width has no bins
# Features that promise too little are left out by the bins of each.
_BINS_OF_FEATURE = 32
_LOOKED_AT = 48  # features of many, among which a split is searched


class Groups(NamedTuple):
    """Two groups of rows that a split is to part, and how its classifiers are fitted."""

    spread: np.ndarray  # (d,): standard deviations of the features
    s: np.ndarray  # (n,): room for projections
    order: np.ndarray  # (n,) int32: room for sorting, as `sort`
    sort: SortScratch
    X: np.ndarray  # (n, d)
    goes_right: np.ndarray  # (n,) int32: 1 for rows that belong to the right, or 0
    cost: np.ndarray  # (n,): of each row on the wrong side
    signs: np.ndarray  # (n,): 1 or -1, for `newton_fit`
    costs: np.ndarray  # (n,): C times the cost, for `newton_fit`
    loss: int  # position in `LOSSES`
    max_iter: int  # most Newton steps of a fit
    tol: float
    term_cost: float  # penalty for each term after a split's first, in the rows' costs


@inner_kernel
def cheapest_threshold(groups, wish):
    """Return the least cost of rows on the wrong sides, its threshold, and the sign of the normal.

    `groups.s` holds the projections. Of equal costs the threshold nearest to `wish` is taken, and
    where that is NaN the one in the widest gap.
    """
    s, order = groups.s, groups.order
    goes_right, cost = groups.goes_right, groups.cost
    n = s.shape[0]
    sort_order(s, n, order, groups.sort)
    wrong = total = 0.0
    for i in range(n):
        total += cost[i]
        wrong += 0.0 if goes_right[i] == 1 else cost[i]
    lowest, rank, threshold, sign = np.inf, np.inf, 0.0, 1.0
    for t in range(n - 1):
        i = order[t]
        wrong += cost[i] if goes_right[i] == 1 else -cost[i]
        low, high = s[i], s[order[t + 1]]
        if not apart(low, high):
            continue
        here = min(wrong, total - wrong)
        if here > lowest + _TIE_SHARE * total:
            continue
        middle = between(low, high)
        merit = low - high if math.isnan(wish) else abs(middle - wish)
        if here < lowest - _TIE_SHARE * total or merit < rank:
            lowest, rank, threshold, sign = here, merit, middle, 1.0
            if total - wrong < wrong:
                threshold, sign = -between(-high, -low), -1.0
    return lowest, threshold, sign


@inner_kernel
def least_costs(groups):
    """Return what splits on each feature cost at least; infinity for features of one value."""
    # The rows of a feature lie in bins of equal widths. What a threshold between two bins costs is
    # known. Wherever it lies in a bin, the rows of the bins before are on the one side, those of
    # the bins after on the other; there is none where all rows in the bin have one value.
    X, goes_right, cost = groups.X, groups.goes_right, groups.cost
    n, d = X.shape
    low, high = X[0].copy(), X[0].copy()
    for i in range(n):
        for j in range(d):
            low[j] = min(low[j], X[i, j])
            high[j] = max(high[j], X[i, j])
    scale = np.zeros(d)
    for j in range(d):
        if _FLAT < high[j] - low[j] < np.inf:
            scale[j] = (_BINS_OF_FEATURE - 1) / (high[j] - low[j])
    # Of each bin: the cost of the rows of both sides, and 1 where they have several values.
    in_bin, value = np.zeros((d, _BINS_OF_FEATURE, 3)), np.empty((d, _BINS_OF_FEATURE))
    total = np.zeros(2)
    for i in range(n):
        side = 1 if goes_right[i] == 1 else 0
        total[side] += cost[i]
        for j in range(d):
            if scale[j] > 0.0:
                k = int((X[i, j] - low[j]) * scale[j])
                in_bin[j, k, side] += cost[i]
                if in_bin[j, k, 0] + in_bin[j, k, 1] == cost[i]:
                    value[j, k] = X[i, j]
                elif value[j, k] != X[i, j]:
                    in_bin[j, k, 2] = 1.0
    lowest = np.empty(d)
    for j in range(d):
        lowest[j] = np.inf if scale[j] > 0.0 or high[j] == low[j] else 0.0
        if scale[j] == 0.0:
            continue
        before, after = np.zeros(2), total.copy()
        for k in range(_BINS_OF_FEATURE):
            after[0] -= in_bin[j, k, 0]
            after[1] -= in_bin[j, k, 1]
            if in_bin[j, k, 2] > 0.0:
                lowest[j] = min(lowest[j], before[1] + after[0], before[0] + after[1])
            before[0] += in_bin[j, k, 0]
            before[1] += in_bin[j, k, 1]
            if k < _BINS_OF_FEATURE - 1:
                lowest[j] = min(lowest[j], before[1] + after[0], before[0] + after[1])
        lowest[j] -= _TIE_SHARE * (total[0] + total[1])
    return lowest


@inner_kernel
def try_axis(groups, best, split):
    """Put the cheapest split on one feature into `split` if it costs no more than `best`."""
    n, d = groups.X.shape
    lowest, chosen = least_costs(groups), -1
    for _ in range(d):
        # The most promising of those not yet looked at, the first of equals.
        j = lowest.argmin()
        if lowest[j] == np.inf or lowest[j] > best:
            break
        lowest[j] = np.inf
        for i in range(n):
            groups.s[i] = groups.X[i, j]
        here, threshold, sign = cheapest_threshold(groups, np.nan)
        if here < best or (here == best < np.inf and (chosen < 0 or j < chosen)):
            best, chosen = here, j
            split[:] = 0.0
            split[j], split[d] = sign, -sign * threshold
    return best


@inner_kernel
def try_support(groups, support, theta, best, split):
    """Fit a classifier on some features; keep its split in `split` if it is below `best`."""
    n, d = groups.X.shape
    width = support.shape[0]
    part, own = np.empty((n, width)), np.empty(width + 1)
    for j in range(width):
        own[j] = theta[support[j]]
        for i in range(n):
            part[i, j] = groups.X[i, support[j]]
    own[width] = theta[d]
    newton_fit(
        part,
        groups.signs,
        groups.costs,
        groups.loss,
        None,
        groups.max_iter,
        groups.tol,
        own,
    )
    theta[:] = 0.0
    for j in range(width):
        theta[support[j]] = own[j]
    theta[d] = own[width]
    for i in range(n):
        groups.s[i] = 0.0
        for j in range(width):
            groups.s[i] += own[j] * part[i, j]
    here, threshold, sign = cheapest_threshold(groups, -theta[d])
    n_terms = 0  # a feature that is constant here has no weight
    for j in range(width):
        n_terms += own[j] != 0.0
    here += groups.term_cost * max(0, n_terms - 1)
    if here < best:
        best = here
        for j in range(d):
            split[j] = sign * theta[j]
        split[d] = -sign * threshold
    return best


@inner_kernel
def spreads(X):
    """Return the standard deviation of each column, exactly 0 for one of equal numbers."""
    n, d = X.shape
    mean, spread = np.zeros(d), np.zeros(d)
    for i in range(n):
        for j in range(d):
            mean[j] += (X[i, j] - X[0, j]) / n
    for i in range(n):
        for j in range(d):
            spread[j] += (X[i, j] - X[0, j] - mean[j]) ** 2
    return np.sqrt(spread / n)


@inner_kernel
def strongest(support, theta, spread, n_kept):
    """Return the `n_kept` features of a support with the most influence, in rising order."""
    width = support.shape[0]
    influence = np.empty(width)
    for j in range(width):
        here = abs(theta[support[j]]) * spread[support[j]]
        influence[j] = here if here < np.inf else 0.0
    for _ in range(width - n_kept):
        weakest = 0
        for j in range(1, width):
            if influence[j] <= influence[weakest]:
                weakest = j
        influence[weakest] = np.inf
    kept, n = np.empty(n_kept, dtype=np.int64), 0
    for j in range(width):
        if influence[j] < np.inf:
            kept[n] = support[j]
            n += 1
    return kept


@inner_kernel
def used_features(weights):
    """Return the features whose weights are not 0, in rising order."""
    used, n = np.empty(weights.shape[0], dtype=np.int64), 0
    for j in range(weights.shape[0]):
        if weights[j] != 0.0:
            used[n] = j
            n += 1
    return used[:n]


@inner_kernel
def with_feature(support, feature):
    """Return a support and a feature that it lacks, in rising order."""
    wider, before = np.empty(support.shape[0] + 1, dtype=np.int64), 0
    for n in range(support.shape[0]):
        if support[n] < feature:
            before += 1
        wider[n + (support[n] > feature)] = support[n]
    wider[before] = feature
    return wider


@inner_kernel
def most_promising(groups, theta, support):
    """Return the feature off the support along which the loss falls fastest; -1 for none."""
    # A feature of the support may have the weight 0: where costs are tiny, a fit changes nothing.
    # Slopes are those of features of standard deviation 1 and mean 0. `s` holds the projections.
    n, d = groups.X.shape
    margins, powers = np.empty(n), np.empty(n)
    slopes, curvatures = np.empty(n), np.empty(n)
    for i in range(n):
        margins[i] = groups.signs[i] * (groups.s[i] + theta[d])
        powers[i] = math.exp(-abs(margins[i]))
    loss_derivatives(groups.loss, margins, groups.costs, powers, slopes, curvatures)
    total, slope, mean = 0.0, np.zeros(d), np.zeros(d)
    for i in range(n):
        pull = slopes[i] * groups.signs[i]
        total += pull
        for j in range(d):
            slope[j] += pull * groups.X[i, j]
            mean[j] += groups.X[i, j] / n
    is_used = np.zeros(d, dtype=np.bool_)
    for j in range(support.shape[0]):
        is_used[support[j]] = True
    feature, steepest = -1, 0.0
    for j in range(d):
        if not is_used[j] and groups.spread[j] > 0.0:
            here = abs(slope[j] - total * mean[j]) / groups.spread[j]
            if here > steepest:
                feature, steepest = j, here
    return feature


@inner_kernel
def swap_terms(groups, max_width, best, split):
    """Add the most promising feature to a split, or put it in the place of the weakest one."""
    d = groups.X.shape[1]
    for _ in range(_SWAP_ROUNDS):
        support = used_features(split[:d])
        if support.shape[0] > _MAX_SWAPPED_TERMS:
            break
        theta = split.copy()
        before = best = try_support(groups, support, theta, best, split)
        new = most_promising(groups, theta, support)
        if new < 0:
            break
        start, wider = theta.copy(), with_feature(support, new)
        if wider.shape[0] <= max_width:
            best = try_support(groups, wider, theta, best, split)
        kept = strongest(support, start, groups.spread, support.shape[0] - 1)
        best = try_support(groups, with_feature(kept, new), start, best, split)
        if best >= before:
            break
    return best


@kernel
def next_width(width):
    """Return how many terms stay when the weakest of so many leave."""
    return width - 1 if width <= _FEW_TERMS else np.int64(_KEPT_TERMS_SHARE * width)


@kernel
def sparse_split(rows, theta, support, min_width, max_width, axis, swaps):
    """Find the cheapest split on at most `max_width` features; write it over ``theta (d + 1,)``.

    `rows` are what `Groups` has from `X` on, ``support`` the features to begin with: the weakest
    leave until `min_width` are left. With `axis` the best split on one feature competes, with
    `swaps` what comes of the best split when its terms are swapped. Returned is the cost.
    """
    X = rows[0]
    n, d = X.shape
    order, sort = np.empty(n, dtype=np.int32), make_sort_scratch(n)
    groups = Groups(spreads(X), np.empty(n), order, sort, *rows)
    split, best = np.zeros(d + 1), np.inf
    while True:
        width = support.shape[0]
        bound = best if width <= max_width else -np.inf  # nothing costs less
        cost_now = try_support(groups, support, theta, bound, split)
        best = cost_now if width <= max_width else best
        if width <= min_width:
            break
        support = strongest(
            support, theta, groups.spread, max(min_width, next_width(width))
        )
    if axis:
        best = try_axis(groups, best, split)
    if swaps and best < np.inf:
        best = swap_terms(groups, max_width, best, split)
    for j in range(d + 1):  # no slice: it would compile the texts of numba's errors
        theta[j] = split[j]
    return best


def cheapest_split(
    node: Node,
    theta: np.ndarray,
    support: np.ndarray,
    *,
    loss: str,
    C: float,
    max_iter: int,
    tol: float,
    min_width: int,
    max_width: int,
    term_cost: float = 0.0,
    axis: bool = False,
    swaps: bool = False,
) -> float:
    """Write the cheapest split of two groups of rows over its start; return what it costs."""
    rows = (
        node.X,
        node.y,
        node.sample_weight,
        np.where(node.y == 1, 1.0, -1.0),
        C * node.sample_weight,
        LOSSES.index(loss),
        max_iter,
        tol,
        term_cost,
    )
    cost: float = sparse_split(rows, theta, support, min_width, max_width, axis, swaps)
    return cost if np.isfinite(theta).all() else np.inf


def fit_on(node: Node, theta: np.ndarray, support: np.ndarray, C: float) -> bool:
    """Fit the logistic split on some features at its cheapest threshold; say whether it is one."""
    cost = cheapest_split(
        node,
        theta,
        support,
        loss="logistic",
        C=C,
        max_iter=10,
        tol=1e-2,
        min_width=support.size,
        max_width=support.size,
    )
    return cost < np.inf


@kernel
def separations(X, goes_right, cost):
    """Return the features' standard deviations, and how well each by itself parts two groups."""
    n, d = X.shape
    total = right = 0.0
    for i in range(n):
        total += cost[i]
        right += cost[i] if goes_right[i] == 1 else 0.0
    spread, slope = spreads(X), np.zeros(d)
    for i in range(n):
        pull = cost[i] * ((1.0 if goes_right[i] == 1 else 0.0) - right / total)
        for j in range(d):
            slope[j] += pull * (X[i, j] - X[0, j])
    for j in range(d):
        slope[j] = abs(slope[j]) / spread[j] if spread[j] > 0.0 else 0.0
    return spread, slope


def screened(node: Node, weights: np.ndarray, n_kept: int) -> np.ndarray:
    """Return the features among which a split is searched where there are many."""
    # The present terms come first, by their influence, then the features that tell the two groups
    # apart best by themselves (Fan and Lv 2008, "Sure independence screening for ultrahigh
    # dimensional feature space", JRSS B, section 2).
    spread, slope = separations(node.X, node.y, node.sample_weight)
    return np.sort(np.lexsort((-slope, -np.abs(weights) * spread))[:n_kept])


@dataclass(frozen=True, repr=False)
class Sparse(Configuration):
    """A linear classifier of few features, or the best split on one feature, whichever costs less.

    Of more than 48 features it looks at 48, the present ones and those that part the rows best by
    themselves (`screened`); where a split keeps its terms, at all of these.
    """

    # The classifiers that are tried: one on the features of the present split; one without the
    # weakest of them, three tenths or, of few, one; or those of all widths, from all features down
    # to one, and what swaps of single terms make of the best.
    widths: Annotated[str, StrOptions(set(WIDTHS))] = "any"
    max_features: Annotated[
        int | None, Interval(Integral, 1, None, closed="left"), None
    ] = None
    # Penalty for each term after a split's first, in the rows' costs.
    term_cost: float = 0.0
    loss: Annotated[str, StrOptions(set(LOSSES))] = "logistic"
    C: float = 1.0  # cost of the loss of a row of cost 1
    max_iter: int = 20  # most Newton steps of a fit
    # A fit ends when a step promises to lower its objective by a lesser share.
    tol: float = 1e-3

    def __call__(self, node: Node, stream: np.ndarray) -> Split | None:
        """Find the split of a node of two classes (see `Splitter`); draws nothing."""
        if node.n_classes != 2:
            raise ValueError(
                f"the node has {node.n_classes} classes: a sparse split parts two."
            )
        return self.refit(node, np.zeros(node.X.shape[1]), 0.0)

    def refit(self, node: Node, weights: np.ndarray, threshold: float) -> Split | None:
        """Find a split that sends class 1 of two classes right, starting from a hyperplane."""
        d = node.X.shape[1]
        support = np.flatnonzero(weights)
        n_kept = _LOOKED_AT if self.widths == "any" else max(_LOOKED_AT, support.size)
        if d > n_kept:
            among = screened(node, weights, n_kept)
            X = read_only(np.take(node.X, among, axis=1))
            split = self.refit(node._replace(X=X), weights[among], threshold)
            if split is None:
                return None
            weights = np.zeros(d)
            weights[among] = split.weights
            return split._replace(weights=weights)
        if self.widths == "any" or support.size == 0:
            support = np.arange(d)
        max_width = d if self.max_features is None else min(self.max_features, d)
        width = {
            "same": support.size,
            "fewer": max(1, next_width(support.size)),
            "any": 1,
        }
        min_width = min(width[self.widths], max_width)
        theta = start_at(node.X, weights, threshold)
        score = cheapest_split(
            node,
            theta,
            support,
            loss=self.loss,
            C=float(self.C),
            max_iter=self.max_iter,
            tol=self.tol,
            min_width=min_width,
            max_width=min_width if self.widths == "fewer" else max_width,
            term_cost=self.term_cost,
            axis=True,
            swaps=self.widths == "any",
        )
        if score == np.inf:
            return None
        return Split(theta[:-1].copy(), -float(theta[-1]), score)
