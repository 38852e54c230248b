"""Orders between the two sides of splits that make a tree monotonic, and the best leaves in them.

Raising a feature of positive weight moves rows from the left of a split to its right, and never
back. So where the prediction may not fall with that feature, it is enough that no leaf on the left
of the split predicts more than a leaf on its right. Such an order at every split makes the tree
monotonic: two leaves that a change of the feature joins lie on the two sides of some split.

The order of a split is one number: 1 where the left may not exceed the right, -1 where the right
may not exceed the left, 2 where both hold, so that all leaves below are equal, 0 where none does.
"""

import numpy as np

from evotree._jit import inner_kernel, kernel
from evotree.fitness.sorting import argsort

CONFLICT = 2
"""The order of a split whose constrained features pull its sides in both directions."""


def node_orders(weights: np.ndarray, signs: np.ndarray) -> np.ndarray:
    """Return the order that the two sides of each split have to keep."""
    constrained = np.flatnonzero(signs)
    pulls = np.sign(weights[:, constrained]) * signs[constrained]
    rises, falls = (pulls > 0.0).any(axis=1), (pulls < 0.0).any(axis=1)
    return np.where(rises & falls, CONFLICT, rises.astype(np.int64) - falls)


@inner_kernel
def low_and_high(order, left, right):
    """Return the child that may not exceed the other, and the other; for orders of 1 and -1."""
    if order == 1:
        return left, right
    return right, left


@kernel
def labels_in_order(orders, subtree_size, risk, node_price, split_price):
    """Label leaves 0 and 1, and prune, so that the orders hold at the least cost.

    ``risk (n_nodes, 2)`` is what a node costs as a leaf of each label. Returned are the labels of
    the nodes and a mask of the subtrees that become leaves.
    """
    # Bottom-up, three costs are known of each subtree: that of all labels 0, of all labels 1, and
    # of any labels that keep the orders. The first two are those of a leaf. Two subtrees in order
    # have only labels 0 in the lower one, or only labels 1 in the higher one.
    n = subtree_size.shape[0]
    cost = np.empty((n, 3))
    kept = np.full(n, np.inf)
    lower_is_0 = np.zeros(n, dtype=np.bool_)
    for k in range(n - 1, -1, -1):
        cost[k, 0] = risk[k, 0] + node_price
        cost[k, 1] = risk[k, 1] + node_price
        if subtree_size[k] > 1 and orders[k] != 2:
            left = k + 1
            right = left + subtree_size[left]
            low, high = low_and_high(orders[k], left, right)
            any_high = cost[low, 0] + cost[high, 2]
            any_low = cost[low, 2] + cost[high, 1]
            lower_is_0[k] = any_high <= any_low
            kept[k] = min(any_high, any_low)
            if orders[k] == 0:
                kept[k] = cost[low, 2] + cost[high, 2]
            kept[k] += node_price + split_price[k]
        cost[k, 2] = min(kept[k], cost[k, 0], cost[k, 1])
    labels = np.empty(n, dtype=np.int64)
    marks = np.zeros(n, dtype=np.bool_)
    needed = np.full(n, 2)  # the label that a node has to have; 2 for any
    for k in range(n):
        labels[k] = needed[k] if needed[k] < 2 else np.int64(risk[k, 1] < risk[k, 0])
        if subtree_size[k] == 1:
            continue
        left = k + 1
        right = left + subtree_size[left]
        if needed[k] < 2 or kept[k] >= min(cost[k, 0], cost[k, 1]):
            marks[k] = True
            needed[left] = needed[right] = labels[k]
        elif orders[k] != 0:
            low, high = low_and_high(orders[k], left, right)
            if lower_is_0[k]:
                needed[low] = 0
            else:
                needed[high] = 1
    return labels, marks


@inner_kernel
def meeting_point(values, weight, subtree_size, low, high):
    """Return where two subtrees meet if no leaf of `low` may exceed one of `high`."""
    # It is the mean of the leaves of `low` above it and of those of `high` below it. From the
    # lowest leaf of `high` on the point rises, and passes leaves, until it is that mean.
    highest, lowest = -np.inf, np.inf
    for i in range(low, low + subtree_size[low]):
        if subtree_size[i] == 1:
            highest = max(highest, values[i])
    for i in range(high, high + subtree_size[high]):
        if subtree_size[i] == 1:
            lowest = min(lowest, values[i])
    if highest <= lowest:
        return -np.inf
    leaves = np.empty(subtree_size[low] + subtree_size[high], dtype=np.int64)
    m = 0
    for i in range(low, low + subtree_size[low]):
        if subtree_size[i] == 1 and values[i] > lowest:
            leaves[m] = i
            m += 1
    n_low = m
    for i in range(high, high + subtree_size[high]):
        if subtree_size[i] == 1 and values[i] < highest:
            leaves[m] = i
            m += 1
    order = argsort(values[leaves[:m]])
    sums = np.zeros((m + 1, 2))  # of the leaves of `low` from each place on
    for e in range(m - 1, -1, -1):
        i, is_low = leaves[order[e]], order[e] < n_low
        sums[e, 0] = sums[e + 1, 0] + is_low * weight[i]
        sums[e, 1] = sums[e + 1, 1] + is_low * weight[i] * values[i]
    mass = total = 0.0  # of the leaves of `high` up to a place
    for e in range(m):
        i, is_high = leaves[order[e]], order[e] >= n_low
        mass += is_high * weight[i]
        total += is_high * weight[i] * values[i]
        whole, at = sums[e + 1, 0] + mass, sums[e + 1, 1] + total
        following = values[leaves[order[e + 1]]] if e < m - 1 else highest
        if whole > 0.0 and at <= following * whole:
            return min(max(at / whole, lowest), highest)
    return highest


@kernel
def isotonic_values(orders, subtree_size, means, weight):
    """Return the values of leaves that keep the orders at the least squared error, (n_nodes,).

    ``means`` and ``weight`` are those of the leaves, of shape (n_nodes,); what they are of splits
    does not matter. A split has the mean of its leaves.
    """
    # The leaves of a subtree whose values are bounded have the best values without the bound, cut
    # at it. So two subtrees in order are cut at one point, from the leaves up (isotonic regression
    # in a partial order, as of Robertson, Wright and Dykstra 1988, section 1.4; the orders of a
    # tree are compositions of chains and parallels).
    values = means.copy()
    mass = weight.copy()
    for k in range(subtree_size.shape[0] - 1, -1, -1):
        if subtree_size[k] == 1:
            continue
        left = k + 1
        right = left + subtree_size[left]
        end = k + subtree_size[k]
        mass[k] = mass[left] + mass[right]
        if orders[k] == 1 or orders[k] == -1:
            low, high = low_and_high(orders[k], left, right)
            bound = meeting_point(values, weight, subtree_size, low, high)
            if bound > -np.inf:
                for i in range(low, low + subtree_size[low]):
                    values[i] = min(values[i], bound)
                for i in range(high, high + subtree_size[high]):
                    values[i] = max(values[i], bound)
        elif orders[k] == 2:
            mean = average(values, weight, subtree_size, k)
            for i in range(k, end):
                values[i] = mean
    for k in range(subtree_size.shape[0] - 1, -1, -1):
        if subtree_size[k] > 1:
            values[k] = average(values, weight, subtree_size, k)
    return values


@inner_kernel
def average(values, weight, subtree_size, k):
    """Return the mean of the leaves below a node, not beyond any of them."""
    total = mass = 0.0
    low, high = np.inf, -np.inf
    for i in range(k, k + subtree_size[k]):
        if subtree_size[i] == 1:
            total += weight[i] * values[i]
            mass += weight[i]
            low, high = min(low, values[i]), max(high, values[i])
    return min(max(total / mass, low), high) if mass > 0.0 else 0.5 * (low + high)
