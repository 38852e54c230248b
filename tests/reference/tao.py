"""Naive twins of tree alternating optimization: reduced problems row by row, brute force."""

import numpy as np

from evotree.tree import project
from tests.reference import linear_leaves


def predict(tree, X, i, k, predictions):
    """Return what the subtree at node k predicts for row i.

    The scalar products are the router's: grids have rows that lie on hyperplanes.
    """
    if tree.subtree_size[k] == 1:
        return predictions[k]
    goes_left = project(tree.weights[k], X, i) <= tree.thresholds[k]
    return predict(tree, X, i, tree.left(k) if goes_left else tree.right(k), predictions)


def reduced_problem(tree, dataset, rows, k, table):
    """Return the care rows of a node: their positions, whether they go right, and their costs."""
    chosen, goes_right, cost = [], [], []
    for i in rows:
        y = dataset.y[i]
        found = [
            predict(tree, dataset.X, i, child, table) for child in (tree.left(k), tree.right(k))
        ]
        if dataset.n_classes:
            left, right = (p[y] for p in found)
        else:
            left, right = ((y - linear_leaves.predict(p, dataset.X[i])) ** 2 for p in found)
        if left != right:
            chosen.append(i)
            goes_right.append(left > right)
            cost.append(dataset.sample_weight[i] * abs(left - right))
    return np.array(chosen, dtype=int), np.array(goes_right, dtype=bool), np.array(cost)


def misrouted(X, goes_right, cost, w, threshold):
    """Return the cost of the rows that a test sends to the wrong side."""
    is_right = np.array([project(w, X, i) > threshold for i in range(len(X))], dtype=bool)
    return float(cost[is_right != goes_right].sum())


def least_axis_cost(X, goes_right, cost):
    """Return the least cost of all tests of one feature, of their inverses, and of no test."""
    costs = [cost[goes_right].sum(), cost[~goes_right].sum()]
    for column in X.T:
        for value in column:
            is_right = column > value
            costs += [cost[is_right != goes_right].sum(), cost[is_right == goes_right].sum()]
    return min(costs)


def loss(tree, dataset):
    """Return the loss of a tree whose leaves predict by their own training rows."""
    leaves = tree.apply(dataset.X)
    total = 0.0
    for leaf in np.unique(leaves):
        y, w = dataset.y[leaves == leaf], dataset.sample_weight[leaves == leaf]
        if dataset.n_classes:
            total += w.sum() - np.bincount(y, weights=w).max()
        else:
            total += np.sum(w * (y - np.average(y, weights=w)) ** 2)
    return float(total)
