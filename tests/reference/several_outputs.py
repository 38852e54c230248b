"""Naive twins of trees of several outputs: sums row by row."""

import numpy as np

from tests.reference import linear_leaves, tao


def squared_error(prediction, outputs, x):
    """Return the squared error of one row; `prediction` is a row of a table of outputs."""
    each = np.split(prediction, len(outputs))
    return sum((t - linear_leaves.predict(p, x)) ** 2 for t, p in zip(outputs, each, strict=True))


def reduced_problem(tree, dataset, rows, k, table):
    """Return the care rows of a node: their positions, whether they go right, and their costs."""
    chosen, goes_right, cost = [], [], []
    for i in rows:
        left, right = (
            squared_error(
                tao.predict(tree, dataset.X, i, child, table), dataset.outputs[i], dataset.X[i]
            )
            for child in (tree.left(k), tree.right(k))
        )
        if left != right:
            chosen.append(i)
            goes_right.append(left > right)
            cost.append(dataset.sample_weight[i] * abs(left - right))
    return np.array(chosen, dtype=int), np.array(goes_right, dtype=bool), np.array(cost)
