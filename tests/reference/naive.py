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
