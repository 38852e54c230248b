"""Bounds of the scores of the splits that lie between two known ones.

Between two splits some rows come to the left side and some leave it, in whatever order. Apart from
rounding, no split on the way has a lower score than the bounds of this file say. They follow from
the concavity of the criteria (Breiman et al. 1984, section 4.1): a convex function less its tangent
is largest at a corner of the box of what the class weights can be on the way.
"""

import math

import numpy as np

from evotree._jit import inner_kernel
from evotree.fitness.criteria import ENTROPY, GINI, MAX_MINORITY, SUM_OF_VARIANCES, TWOING, xlog2x


@inner_kernel
def leverage(criterion, weight, total, n_classes):
    """Return how much a criterion, times the node's weight, can change for a unit that moves."""
    if criterion == SUM_OF_VARIANCES:
        return (n_classes - 1.0) ** 2
    if criterion == TWOING:
        return 2.0 * (1.0 - weight / total)
    return 1.0


@inner_kernel
def weight_log(weight, table):
    """Return ``weight log2 weight``, from a table of the whole numbers unless that is empty."""
    return table[np.int64(weight)] if table.shape[0] > 0 else xlog2x(weight)


@inner_kernel
def distance_left(left, b, whole, w_left, total):
    """Return ``p_L p_R sum_k |p_kL - p_kR|``, in units of weight, for the left side ``left[b]``."""
    distance = 0.0
    for c in range(whole.shape[1]):
        distance += abs(left[b, c] * total - whole[0, c] * w_left)
    return distance / total


@inner_kernel
def impurity_left(criterion, left, b, whole, w_left, total, table):
    """Return the impurities of the sides, times their weights, for the left side ``left[b]``."""
    w_right = total - w_left
    on_left = on_right = 0.0
    if criterion == GINI:
        for c in range(whole.shape[1]):
            on_left += left[b, c] * left[b, c]
            on_right += (whole[0, c] - left[b, c]) * (whole[0, c] - left[b, c])
        on_left = on_left / w_left if w_left > 0.0 else 0.0
        on_right = on_right / w_right if w_right > 0.0 else 0.0
        return total - on_left - on_right
    if criterion == ENTROPY:
        for c in range(whole.shape[1]):
            on_left += weight_log(left[b, c], table)
            on_right += weight_log(whole[0, c] - left[b, c], table)
        return weight_log(w_left, table) - on_left + weight_log(w_right, table) - on_right
    if criterion == SUM_OF_VARIANCES:
        squares = 0.0
        for c in range(whole.shape[1]):
            on_left += left[b, c] * whole[2, c]
            on_right += (whole[0, c] - left[b, c]) * whole[2, c]
            squares += whole[0, c] * whole[2, c] * whole[2, c]
        on_left = on_left * on_left / w_left if w_left > 0.0 else 0.0
        on_right = on_right * on_right / w_right if w_right > 0.0 else 0.0
        return squares - on_left - on_right
    for c in range(whole.shape[1]):
        on_left = max(on_left, left[b, c])
        on_right = max(on_right, whole[0, c] - left[b, c])
    if criterion == MAX_MINORITY:
        return max(w_left - on_left, w_right - on_right)
    return total - on_left - on_right


@inner_kernel
def score_from(criterion, value, w_left, total):
    """Return the score of a split whose sides are not empty from its `spread`."""
    if criterion == TWOING:
        product = w_left * (total - w_left)
        return -value * value / product if product > 0.0 else 0.0
    return max(0.0, value) / total


@inner_kernel
def least_by_reach(criterion, before, after, w_left, total, came, gone, reach):
    """Return a lower bound of the scores on the way, from what each row can change."""
    if criterion == TWOING:
        low, high = w_left - gone, w_left + came
        product = min(low * (total - low), high * (total - high))
        most = 0.5 * (before + after + reach)
        return -most * most / product if product > 0.0 else -np.inf
    return 0.5 * (before + after - reach) / total


@inner_kernel
def least_entropy(left, b, mass, at, whole, w_left, total, table):
    """Return a lower bound of the entropies on the way from the left side ``left[b]``.

    With f(x) = x log2 x, the impurity times its weight is f(L) + f(R) - sum_k (f(l_k) + f(r_k)).
    The slope of f(L) + f(R) is charged to the classes: what is left of it has its minimum where
    the way begins, and each class has its maximum at an end of what its weight can be.
    """
    w_right = total - w_left
    if min(w_left, w_right) <= 0.0:
        return -np.inf
    n_classes = whole.shape[1]
    slope = math.log2(w_left / w_right)
    bound = weight_log(w_left, table) + weight_log(w_right, table) - slope * w_left
    for c in range(n_classes):
        high, low = left[b, c] + mass[0, at + c], left[b, c] - mass[0, at + n_classes + c]
        other = whole[0, c]
        bound -= max(
            weight_log(high, table) + weight_log(other - high, table) - slope * high,
            weight_log(low, table) + weight_log(other - low, table) - slope * low,
        )
    return bound / total


@inner_kernel
def least_gini(left, b, mass, at, whole, w_left, total, came, gone):
    """Return a lower bound of Gini's index on the way from the left side ``left[b]``.

    The impurity times its weight is the node's weight less sum_k (l_k**2 / L + r_k**2 / R). Each
    term is a convex function of l_k and L; less its slope in L, which is charged to the classes, it
    is largest at a corner of what l_k and L can be. Parameters as of `least_entropy`; `came` and
    `gone` are the weights that come and leave on the way.
    """
    low, high = w_left - gone, w_left + came
    if low <= 0.0 or high >= total:
        return -np.inf
    n_classes, w_right = whole.shape[1], total - w_left
    slope = 0.0
    for c in range(n_classes):
        on_left, on_right = left[b, c] / w_left, (whole[0, c] - left[b, c]) / w_right
        slope += on_left * on_left - on_right * on_right
    low_left, low_right = 1.0 / low, 1.0 / (total - low)
    high_left, high_right = 1.0 / high, 1.0 / (total - high)
    bound = total
    for c in range(n_classes):
        on_left, on_right = left[b, c] / w_left, (whole[0, c] - left[b, c]) / w_right
        share = on_left * on_left - on_right * on_right
        most = -np.inf
        for k in range(2):
            x = left[b, c] - mass[0, at + n_classes + c] if k else left[b, c] + mass[0, at + c]
            squares, others = x * x, (whole[0, c] - x) * (whole[0, c] - x)
            here = max(
                squares * low_left + others * low_right + share * low,
                squares * high_left + others * high_right + share * high,
            )
            most = max(most, here - slope * x)
        bound -= most
    return bound / total
