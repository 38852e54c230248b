"""Naive twins of `evotree.fitness.leaves`, `targets` and `costs`: rows, loops, all labellings."""

import itertools

import numpy as np


def leaf_of_rows(individual):
    """Return the leaf of each row."""
    leaf = np.empty(individual.order.shape[0], dtype=int)
    for k in np.flatnonzero(individual.is_leaf):
        leaf[individual.order[individual.start[k] : individual.end[k]]] = k
    return leaf


def confusion(counts, leaves, labels):
    """Return the weights by class and label."""
    found = np.zeros((counts.shape[1], counts.shape[1]))
    for k, label in zip(leaves, labels, strict=True):
        found[:, label] += counts[k]
    return found


def best_score(individual, score):
    """Return the highest score of a confusion matrix over all labellings of the leaves."""
    leaves = np.flatnonzero(individual.is_leaf)
    n_classes = individual.counts.shape[1]
    return max(
        score(confusion(individual.counts, leaves, labels))
        for labels in itertools.product(range(n_classes), repeat=len(leaves))
    )


def quantile(y, weight, level):
    """Return the lowest target up to which there is a share of the weight of at least a level."""
    for value in sorted(y):
        if weight[y <= value].sum() >= level * weight.sum() * (1.0 - 1e-12):
            return value
    raise AssertionError


def path_price(tree, k, is_part, prices):
    """Return what the features of the splits above a node cost, each item once."""
    items = set()
    at = 0
    while at != k:
        for j in np.flatnonzero(tree.weights[at]):
            items |= set(np.flatnonzero(is_part[j]))
        at = tree.left(at) if k < tree.right(at) else tree.right(at)
    return float(sum(prices[item] for item in items))
