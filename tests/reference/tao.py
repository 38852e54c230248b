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
    return predict(
        tree, X, i, tree.left(k) if goes_left else tree.right(k), predictions
    )


def squared_error(prediction, outputs, x):
    """Return the squared error of one row; `prediction` is a row of a table of outputs."""
    each = np.split(prediction, len(outputs))
    return sum(
        (t - linear_leaves.predict(p, x)) ** 2
        for t, p in zip(outputs, each, strict=True)
    )


def reduced_problem(tree, dataset, rows, k, table):
    """Return the care rows of a node: their positions, whether they go right, and their costs."""
    chosen, goes_right, cost = [], [], []
    outputs = dataset.y[:, np.newaxis] if dataset.outputs is None else dataset.outputs
    for i in rows:
        sides = [
            predict(tree, dataset.X, i, k, table) for k in (tree.left(k), tree.right(k))
        ]
        if dataset.n_classes:
            left, right = (prediction[dataset.y[i]] for prediction in sides)
        else:
            left, right = (
                squared_error(side, outputs[i], dataset.X[i]) for side in sides
            )
        if left != right:
            chosen.append(i)
            goes_right.append(left > right)
            cost.append(dataset.sample_weight[i] * abs(left - right))
    return np.array(chosen, dtype=int), np.array(goes_right, dtype=bool), np.array(cost)


def misrouted(X, goes_right, cost, w, threshold):
    """Return the cost of the rows that a test sends to the wrong side."""
    is_right = np.array(
        [project(w, X, i) > threshold for i in range(len(X))], dtype=bool
    )
    return float(cost[is_right != goes_right].sum())


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
