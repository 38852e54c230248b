"""What the leaves of a tree are worth: labels and scores by their counts, losses of their targets.

Kernels on the class weights of the nodes, ``counts (n_nodes, n_classes)``, or on the targets of
their rows. A *loss table* says what a unit of weight of each class loses where each node is a leaf:
the quality of a tree falls by the losses of its rows, divided by the weight of all rows. Scores
that are no sums over rows, such as F1, have the table of their linear approximation (Parambath,
Usunier and Grandvalet 2014, "Optimizing F-measures by cost-sensitive classification", NeurIPS).

**Orders.** Raising a feature of positive weight moves rows from the left of a split to its right,
and never back. So where the prediction may not fall with that feature, it is enough that no leaf on
the left of the split predicts more than a leaf on its right. Such an order at every split makes the
tree monotonic: two leaves that a change of the feature joins lie on the two sides of some split.

The order of a split is one number: 1 where the left may not exceed the right, -1 where the right
may not exceed the left, 2 where both hold, so that all leaves below are equal, 0 where none does.
"""

import math

import numpy as np

from evotree._jit import inner_kernel, kernel
from evotree.fitness.node import argsort

F1, MCC = 0, 1
"""Codes of the scores of a confusion matrix."""

SQUARED, PINBALL, POISSON = 0, 1, 2
"""Codes of the losses."""

LEAST_MEAN = 1e-9
"""The least mean that Poisson's deviance takes a logarithm of."""

# A score is differentiated by changing a confusion matrix by this share of the weight.
_STEP_SHARE = 1e-6


@kernel
def cheapest_labels(counts, costs):
    """Return the label of each node that costs the least, the first of equals.

    ``costs[a, b]`` is what it costs to predict class b where class a is true.
    """
    n_nodes, n_classes = counts.shape
    labels = np.zeros(n_nodes, dtype=np.int64)
    for k in range(n_nodes):
        least = np.inf
        for b in range(n_classes):
            cost = 0.0
            for a in range(n_classes):
                cost += counts[k, a] * costs[a, b]
            if cost < least:
                least, labels[k] = cost, b
    return labels


@inner_kernel
def score_confusion(confusion, measure, positive):
    """Return F1, of one class or the mean of all, or Matthews' correlation coefficient."""
    n = confusion.shape[0]
    right = total = by_chance = squares_true = squares_predicted = mean = 0.0
    for c in range(n):
        true = predicted = 0.0
        for b in range(n):
            true += confusion[c, b]
            predicted += confusion[b, c]
        right += confusion[c, c]
        total += true
        by_chance += true * predicted
        squares_true += true * true
        squares_predicted += predicted * predicted
        if true + predicted > 0.0 and (positive < 0 or positive == c):
            mean += 2.0 * confusion[c, c] / (true + predicted)
    if measure == F1:
        return mean if positive >= 0 else mean / n
    spread = (total * total - squares_true) * (total * total - squares_predicted)
    return (right * total - by_chance) / math.sqrt(spread) if spread > 0.0 else 0.0


@inner_kernel
def fill_confusion(counts, subtree_size, labels, confusion):
    """Write the weights of the leaves by class and label."""
    confusion[:] = 0.0
    for k in range(subtree_size.shape[0]):
        if subtree_size[k] == 1:
            for c in range(counts.shape[1]):
                confusion[c, labels[k]] += counts[k, c]


@inner_kernel
def relabel(confusion, counts, k, old, new):
    """Move the rows of node `k` from one label to another."""
    for c in range(counts.shape[1]):
        confusion[c, old] -= counts[k, c]
        confusion[c, new] += counts[k, c]


@inner_kernel
def label_in_turn(counts, subtree_size, measure, positive, labels):
    """Change labels of leaves in turn until no other one raises the score, which is returned."""
    # For F1 of one class that is the best score there is: a leaf raises it where its share of the
    # class is above half of it, which is the threshold of the best labels (Lipton, Elkan and
    # Naryanaswamy 2014, "Optimal thresholding of classifiers to maximize F1 measure", ECML).
    n_classes = counts.shape[1]
    confusion = np.zeros((n_classes, n_classes))
    fill_confusion(counts, subtree_size, labels, confusion)
    best = score_confusion(confusion, measure, positive)
    for _ in range(8):
        before = best
        for k in range(subtree_size.shape[0]):
            if subtree_size[k] > 1:
                continue
            present = labels[k]
            for b in range(n_classes):
                if counts[k, b] == 0.0:
                    continue
                relabel(confusion, counts, k, labels[k], b)
                score = score_confusion(confusion, measure, positive)
                relabel(confusion, counts, k, b, labels[k])
                if score > best:
                    best, present = score, b
            relabel(confusion, counts, k, labels[k], present)
            labels[k] = present
        if best <= before:
            break
    return best


@kernel
def score_labels(counts, subtree_size, measure, positive):
    """Return the labels of the leaves with the highest score, what errors cost, and the score."""
    n_classes = counts.shape[1]
    labels = np.zeros(counts.shape[0], dtype=np.int64)
    balanced = labels.copy()
    for k in range(counts.shape[0]):
        labels[k] = counts[k].argmax()
        balanced[k] = (counts[k] / np.maximum(counts[0], _STEP_SHARE)).argmax()
    # Of two starts, as other scores than F1 of one class have several local optima.
    by_majority = label_in_turn(counts, subtree_size, measure, positive, labels)
    if label_in_turn(counts, subtree_size, measure, positive, balanced) > by_majority:
        labels = balanced
    confusion = np.zeros((n_classes, n_classes))
    costs = np.zeros((n_classes, n_classes))
    fill_confusion(counts, subtree_size, labels, confusion)
    score = score_confusion(confusion, measure, positive)
    weight, largest = counts[0].sum(), 0.0
    for a in range(n_classes):
        for b in range(n_classes):
            if a != b:
                moved = confusion.copy()
                moved[a, a] -= _STEP_SHARE * weight
                moved[a, b] += _STEP_SHARE * weight
                changed = score_confusion(moved, measure, positive)
                costs[a, b] = max(0.0, (score - changed) / _STEP_SHARE)
                largest = max(largest, costs[a, b])
    # Where only one label is predicted a score may say nothing of errors: classes count alike.
    if labels.min() == labels.max() or not 0.0 < largest < 1.0 / math.sqrt(_STEP_SHARE):
        for a in range(n_classes):
            for b in range(n_classes):
                total = max(counts[0, a], _STEP_SHARE * weight)
                costs[a, b] = 0.0 if a == b else weight / (n_classes * total)
    labels = np.where(subtree_size > 1, cheapest_labels(counts, costs), labels)
    return labels, costs, score


@inner_kernel
def target_loss(y, predicted, loss, level, origin):
    """Return the loss of one target."""
    error = y - predicted
    if loss == SQUARED:
        return error * error
    if loss == PINBALL:
        return level * error if error > 0.0 else (level - 1.0) * error
    mean, count = max(LEAST_MEAN, predicted - origin), max(0.0, y - origin)
    return mean - count + (count * math.log(count / mean) if count > 0.0 else 0.0)


@kernel
def leaf_quantiles(order, start, end, y, sample_weight, level):
    """Return the weighted quantile of the targets of each node, the lower where two would do."""
    quantiles = np.zeros(start.shape[0])
    for k in range(start.shape[0]):
        rows = order[start[k] : end[k]]
        if rows.shape[0] == 0:
            continue
        ranked = rows[np.argsort(y[rows], kind="mergesort")]
        passed = np.cumsum(sample_weight[ranked])
        at = np.searchsorted(passed, level * passed[-1] * (1.0 - 1e-12))
        quantiles[k] = y[ranked[at]]
    return quantiles


@kernel
def node_target_losses(
    order, start, end, y, sample_weight, predictions, loss, level, origin
):
    """Return the loss of the rows of each node by what it predicts, of shape (n_nodes,)."""
    losses = np.zeros(start.shape[0])
    for k in range(start.shape[0]):
        for t in range(start[k], end[k]):
            i = order[t]
            losses[k] += sample_weight[i] * target_loss(
                y[i], predictions[k], loss, level, origin
            )
    return losses


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
    return (left, right) if order == 1 else (right, left)


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
def leaves_below(subtree_size, k):
    """Return the leaves of a subtree."""
    return k + np.flatnonzero(subtree_size[k : k + subtree_size[k]] == 1)


@inner_kernel
def meeting_point(values, weight, subtree_size, low, high):
    """Return where two subtrees meet if no leaf of `low` may exceed one of `high`."""
    # It is the mean of the leaves of `low` above it and of those of `high` below it. From the
    # lowest leaf of `high` on the point rises, and passes leaves, until it is that mean.
    of_low, of_high = leaves_below(subtree_size, low), leaves_below(subtree_size, high)
    highest, lowest = values[of_low].max(), values[of_high].min()
    if highest <= lowest:
        return -np.inf
    of_low = of_low[values[of_low] > lowest]
    leaves = np.append(of_low, of_high[values[of_high] < highest])
    m, n_low = leaves.shape[0], of_low.shape[0]
    order = argsort(values[leaves])
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
    for k in range(subtree_size.shape[0] - 1, -1, -1):
        if subtree_size[k] == 1:
            continue
        left = k + 1
        right = left + subtree_size[left]
        if orders[k] == 1 or orders[k] == -1:
            low, high = low_and_high(orders[k], left, right)
            bound = meeting_point(values, weight, subtree_size, low, high)
            if bound > -np.inf:
                for i in range(low, low + subtree_size[low]):
                    values[i] = min(values[i], bound)
                for i in range(high, high + subtree_size[high]):
                    values[i] = max(values[i], bound)
        elif orders[k] == 2:
            values[k : k + subtree_size[k]] = average(values, weight, subtree_size, k)
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
