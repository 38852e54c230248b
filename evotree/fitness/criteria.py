"""What a split is worth: impurity criteria on the class weights, or the targets, of its two sides.

Every criterion is a *score to be minimized*, normalized by the weight of the node, and its value
for the undivided node is an upper bound of a useful split's. With p the class shares
of a side, the additive criteria are the weighted mean of the sides' impurities:

====================  ==================================================================
entropy               ``-sum p log2 p`` (information gain, Quinlan 1986)
gini                  ``1 - sum p**2`` (Breiman et al. 1984)
error                 ``1 - max p``
sum_minority          the same (Heath et al. 1993)
sum_of_variances      variance of the class numbers, 1 for the node's most frequent class, 2
                      for the next, and so on (Murthy et al. 1994, section 2.4)
squared_error         variance of the targets
absolute_error        mean absolute deviation of the targets from their median
====================  ==================================================================

The others are of the two sides together: ``twoing`` is minus Breiman's measure
``p_L p_R (sum_k |p_kL - p_kR|)**2``; ``max_minority`` the larger of the sides' misclassified
weights over the node's weight (Heath et al. 1993); ``gain_ratio`` minus the information gain over
the entropy of the two sides' weights (Quinlan 1993).
"""

import math
from enum import IntEnum

import numpy as np

from evotree._jit import inner_kernel, kernel


class Criterion(IntEnum):
    """Codes of the criteria, as the kernels take them; their names in lower case are parameters."""

    ENTROPY = 0
    GINI = 1
    TWOING = 2
    ERROR = 3
    MAX_MINORITY = 4
    SUM_MINORITY = 5
    SUM_OF_VARIANCES = 6
    GAIN_RATIO = 7
    SQUARED_ERROR = 8
    ABSOLUTE_ERROR = 9


CLASSIFICATION = tuple(c.name.lower() for c in Criterion if c < Criterion.SQUARED_ERROR)
"""Names of the criteria for classes."""

REGRESSION = tuple(c.name.lower() for c in Criterion if c >= Criterion.SQUARED_ERROR)
"""Names of the criteria for targets."""

ENTROPY, GINI, TWOING, ERROR, MAX_MINORITY = map(int, list(Criterion)[:5])
SUM_MINORITY, SUM_OF_VARIANCES, GAIN_RATIO, SQUARED_ERROR, ABSOLUTE_ERROR = range(5, 10)
"""The codes as plain numbers, for kernels."""


@inner_kernel
def xlog2x(x):
    """Return ``x log2 x``, 0 for x up to 0."""
    return x * math.log2(x) if x > 0.0 else 0.0


@inner_kernel
def weight_of(counts):
    """Return the sum of the class weights."""
    total = 0.0
    for c in range(counts.shape[0]):
        total += counts[c]
    return total


@inner_kernel
def weighted_impurity(criterion, counts, weight, rank):
    """Return the impurity of one side by an additive criterion, times its weight."""
    if weight <= 0.0:
        return 0.0
    total = 0.0
    if criterion == SQUARED_ERROR:
        return max(0.0, counts[2] - counts[1] * counts[1] / weight)
    if criterion == GINI:
        for c in range(counts.shape[0]):
            total += counts[c] * counts[c]
        return max(0.0, weight - total / weight)
    if criterion in (ENTROPY, GAIN_RATIO):
        for c in range(counts.shape[0]):
            total += xlog2x(counts[c])
        return max(0.0, xlog2x(weight) - total)
    if criterion == SUM_OF_VARIANCES:
        mean = 0.0
        for c in range(counts.shape[0]):
            mean += counts[c] * rank[c]
            total += counts[c] * rank[c] * rank[c]
        return max(0.0, total - mean * mean / weight)
    for c in range(counts.shape[0]):
        total = max(total, counts[c])
    return weight - total


@inner_kernel
def split_score(criterion, left, right, rank):
    """Return the score of a split, to be minimized."""
    if criterion == SQUARED_ERROR:
        n_left, n_right = left[0], right[0]
    else:
        n_left, n_right = weight_of(left), weight_of(right)
    total = n_left + n_right
    if criterion == TWOING:
        if n_left <= 0.0 or n_right <= 0.0:
            return 0.0
        distance = 0.0
        for c in range(left.shape[0]):
            distance += abs(left[c] * n_right - right[c] * n_left)
        distance /= total
        return -distance * distance / (n_left * n_right)
    impurity_left = weighted_impurity(criterion, left, n_left, rank)
    impurity_right = weighted_impurity(criterion, right, n_right, rank)
    if criterion == MAX_MINORITY:
        return max(impurity_left, impurity_right) / total
    if criterion == GAIN_RATIO:
        information = xlog2x(total) - xlog2x(n_left) - xlog2x(n_right)
        if information <= 0.0:
            return 0.0
        entropy = xlog2x(total)
        for c in range(left.shape[0]):
            entropy -= xlog2x(left[c] + right[c])
        return -(entropy - impurity_left - impurity_right) / information
    return (impurity_left + impurity_right) / total


@kernel
def class_ranks(counts):
    """Return numbers of the classes by falling weight: 1 for the most frequent; ties in order."""
    rank = np.empty(counts.shape[0])
    for c in range(counts.shape[0]):
        rank[c] = 1.0
        for other in range(counts.shape[0]):
            if counts[other] > counts[c] or (counts[other] == counts[c] and other < c):
                rank[c] += 1.0
    return rank
