"""Naive twins of the kernels on trees and partitions."""

import numpy as np

from tests.reference.tao import loss


def leaf_of(x, tree):
    """Follow one row down the tree by the definition of the prefix order."""
    k = 0
    while tree.subtree_size[k] != 1:
        left = k + 1
        right = left + tree.subtree_size[left]
        k = left if float(np.dot(tree.weights[k], x)) <= tree.thresholds[k] else right
    return k


def rows_of(k, individual):
    """Return the rows of a node as a set."""
    return set(individual.order[individual.start[k] : individual.end[k]].tolist())


def quality(dataset, individual):
    """Return the weighted training accuracy, or the share of variance that leaf means explain."""
    y, w = dataset.y, dataset.sample_weight
    whole = (
        w.sum()
        if dataset.n_classes
        else np.sum(w * (y - np.average(y, weights=w)) ** 2)
    )
    return (
        1.0 - loss(individual, dataset) / whole
        if np.ptp(y) or dataset.n_classes
        else 1.0
    )


def centred_threshold(projection, classes, threshold):
    """Return the middle between the nearest rows on either side, if they differ in class."""
    left = [i for i in range(len(projection)) if projection[i] <= threshold]
    right = [i for i in range(len(projection)) if projection[i] > threshold]
    if not left or not right:
        return threshold
    i = max(left, key=lambda i: projection[i])
    j = min(right, key=lambda j: projection[j])
    if classes[i] == classes[j]:
        return threshold
    return (projection[i] + projection[j]) / 2


def nested(splits, k=0):
    """Return a tree as nested tuples ``(weights, threshold, left, right)``; a leaf is None."""
    weights, thresholds, size = splits
    if size[k] == 1:
        return None
    left = k + 1
    right = left + size[left]
    return weights[k], thresholds[k], nested(splits, left), nested(splits, right)


def with_node(splits, k, node):
    """Return a tree as nested tuples with another node in the place of node `k`."""

    def copy(at):
        if at == k:
            return node
        if splits[2][at] == 1:
            return None
        left = at + 1
        right = left + splits[2][left]
        return splits[0][at], splits[1][at], copy(left), copy(right)

    return copy(0)


def flat(node, n_features):
    """Return the weights, thresholds and sizes of a tree of nested tuples, in prefix order."""
    if node is None:
        return [np.zeros(n_features)], [0.0], [1]
    parts = [flat(child, n_features) for child in node[2:]]
    weights, thresholds, size = (a + b for a, b in zip(*parts, strict=True))
    return [node[0], *weights], [node[1], *thresholds], [len(size) + 1, *size]


def crossed(splits_a, a, splits_b, b, cut, moves_subtrees):
    """Return what CrossoverTrees makes of node `a`: nested tuples, or None for a leaf."""
    mine, other = nested(splits_a, a), nested(splits_b, b)
    if cut == 0:
        if moves_subtrees or other is None:
            return other
        return other[0], other[1], None, None
    weights = np.append(mine[0][:cut], other[0][cut:])
    below = other if moves_subtrees else mine
    return weights, other[1], *below[2:]


def is_centred(dataset, individual, k):
    """Return whether a split keeps equation 5 of GEA-ODT; rows that tie may say anything."""
    left = k + 1
    sides = [
        rows_of(left, individual),
        rows_of(left + individual.subtree_size[left], individual),
    ]
    places, classes = [], []
    for rows, outward in zip(sides, (-1.0, 1.0), strict=True):
        rows = sorted(rows)
        projection = dataset.X[rows] @ individual.weights[k]
        nearest = (outward * projection).min() * outward
        is_nearest = np.abs(projection - nearest) <= 1e-9 * (1.0 + abs(nearest))
        places.append(nearest)
        classes.append(set(dataset.y[rows][is_nearest].tolist()))
    if classes[0] & classes[1]:
        return True
    middle = (places[0] + places[1]) / 2
    return abs(individual.thresholds[k] - middle) <= 1e-9 * (1.0 + abs(middle))


def linear_scaling(fitness, pressure):
    """Solve ``a f + b`` from its two conditions: mean 1, and best = pressure or worst = 0."""
    fitness = np.asarray(fitness, dtype=float)
    if fitness.max() == fitness.min():
        return np.ones_like(fitness)
    for point, value in ((fitness.max(), pressure), (fitness.min(), 0.0)):
        a, b = np.linalg.solve([[fitness.mean(), 1.0], [point, 1.0]], [1.0, value])
        if a * fitness.min() + b >= -1e-12:
            return a * fitness + b
    raise AssertionError("the second condition always holds")
