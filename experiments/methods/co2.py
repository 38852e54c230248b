"""CO2: oblique splits by continuous optimization of an upper bound (Norouzi et al. 2015).

Norouzi, Collins, Fleet and Kohli (2015), "CO2 forest: improved random forest by continuous
optimization of oblique splits". A split is a stump: row i goes to the side ``sign(theta @ (x, 1))``
and side g predicts class k with the share ``softmax(leaf_g)_k``. Its log loss has the continuous
upper bound ::

    max_g (g theta @ (x, 1) + loss(leaf_g, y)) - |theta @ (x, 1)|,    g in {-1, 1}

the tighter the longer theta is; ``|theta|**2 <= nu`` bounds it. The mean of the bound over the rows
is lowered by stochastic gradient descent with momentum, and projection onto that ball.
"""

import math
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from numba import njit

from evotree.estimators import ObliqueTreeClassifier
from evotree.fitness.node import Node
from evotree.operators.splitters.base import (
    Axis,
    ScaledRows,
    Split,
    better_split,
    inner,
    node_hyperplane,
    scale_rows,
)
from evotree.rng import normal, shuffle
from evotree.tree import project

NUS = (0.1, 1.0, 4.0, 10.0, 43.0, 100.0)
"""The bounds of the squared length that the paper tries."""

RATES = (0.003, 0.01, 0.03)
"""The learning rates that the paper tries."""

MOMENTUM, BATCH_SIZE, EPOCHS = 0.9, 100, 10
"""The share of the last step that is added to the next; rows of a step; passes over the rows."""

LEAST_STEPS = 100


@njit
def log_sum(leaf):
    """Return ``log(sum(exp(leaf)))``."""
    largest = leaf.max()
    return largest + math.log(np.exp(leaf - largest).sum())


@njit
def bound_gradient(rows, codes, shares, batch, theta, leaves, grad, leaf_grad):
    """Return the mean upper bound over a batch of rows, and write its gradient.

    The rows, of shape (n, p), the codes and the shares are those of `ScaledRows`; ``batch`` holds
    positions of rows. `theta` and `grad` have the shape (p,), `leaves` and `leaf_grad`
    (2, n_present).
    """
    norm_left, norm_right = log_sum(leaves[0]), log_sum(leaves[1])
    grad[:] = 0.0
    leaf_grad[:] = 0.0
    bound = w_left = w_right = 0.0
    for t in range(batch.shape[0]):
        i = batch[t]
        s, k, w = project(theta, rows, i), codes[i], shares[i]
        left = norm_left - leaves[0, k] - s
        right = norm_right - leaves[1, k] + s
        slope = -w if s > 0.0 else w  # of -|s|
        if right > left:
            bound += w * (right - abs(s))
            slope += w
            w_right += w
            leaf_grad[1, k] -= w
        else:
            bound += w * (left - abs(s))
            slope -= w
            w_left += w
            leaf_grad[0, k] -= w
        if slope != 0.0:
            grad += slope * rows[i]
    total = w_left + w_right
    grad /= total
    leaf_grad[0] += w_left * np.exp(leaves[0] - norm_left)
    leaf_grad[1] += w_right * np.exp(leaves[1] - norm_right)
    leaf_grad /= total
    return bound / total


@njit
def lower_bound(scaled, theta, leaves, nu, rate, batch_size, epochs, stream):
    """Lower the bound by stochastic gradient descent from a start, which is overwritten.

    The start is ``theta (p,)`` and ``leaves (2, n_present)``, logarithms of shares of classes.
    """
    n, p = scaled.rows.shape
    n_present = leaves.shape[1]
    grad, leaf_grad = np.empty(p), np.empty((2, n_present))
    velocity, leaf_velocity = np.zeros(p), np.zeros((2, n_present))
    order = np.arange(n).astype(np.int32)
    size = min(batch_size, n)
    n_batches = (n + size - 1) // size
    for step in range(max(epochs * n_batches, LEAST_STEPS)):
        first = step % n_batches * size
        if first == 0:
            shuffle(stream, order)
        bound_gradient(
            scaled.rows,
            scaled.codes,
            scaled.shares,
            order[first : min(first + size, n)],
            theta,
            leaves,
            grad,
            leaf_grad,
        )
        velocity[:] = MOMENTUM * velocity - rate * grad
        leaf_velocity[:] = MOMENTUM * leaf_velocity - rate * leaf_grad
        theta += velocity
        leaves += leaf_velocity
        square = inner(theta, theta)
        if square > nu:
            theta *= math.sqrt(nu / square)


def start_leaves(scaled: ScaledRows, theta: np.ndarray) -> np.ndarray:
    """Return the logarithms of the classes' shares on the sides of a hyperplane, none of them 0."""
    is_right = (scaled.rows @ theta > 0.0).astype(np.int64)
    leaves = np.full((2, len(scaled.totals)), 1.0 / len(scaled.rows))
    np.add.at(leaves, (is_right, scaled.codes), scaled.shares)
    return np.log(leaves / leaves.sum(axis=1, keepdims=True))


@dataclass(frozen=True)
class CO2:
    """The best of the splits by the continuous upper bound, over `NUS` and `RATES`.

    The paper chooses the bound and the rate by validation; here they are those whose split has the
    best score on the node's own rows. It starts at the best test of one feature, which takes part
    in the choice (the paper's CO2), or at a random hyperplane (CO2r). Features are standardized at
    the node.
    """

    is_random: bool = False

    def __call__(self, node: Node, stream: np.ndarray) -> Split | None:
        """Find the split (see `evotree.operators.splitters.base.Splitter`)."""
        d = node.X.shape[1]
        axis = Axis()(node, stream)
        if d == 1 or (axis is None and not self.is_random):
            return axis
        scaled = scale_rows(node, rescale=True)
        start = np.zeros(d + 1)
        best: Split | None = None
        if axis is not None and not self.is_random:
            feature = int(axis.weights.argmax())
            if scaled.scale[feature] == 0.0:  # differences too small to be scaled
                return axis
            best = axis
            start[feature] = 1.0
            start[d] = (scaled.mean[feature] - axis.threshold) / scaled.scale[feature]
        else:
            start[:] = [normal(stream) for _ in range(d + 1)]
        first = start_leaves(scaled, start)
        for nu, rate in product(NUS, RATES):
            theta = start * math.sqrt(nu) / math.sqrt(inner(start, start))
            lower_bound(
                scaled, theta, first.copy(), nu, rate, BATCH_SIZE, EPOCHS, stream
            )
            best = better_split(best, node, node_hyperplane(scaled, theta))
        return axis if best is None else best


def grown_by_co2(is_random: bool, **parameters: Any) -> ObliqueTreeClassifier:
    """Return a method whose trees are grown by CO2, fully, as all systems of the paper are."""
    return ObliqueTreeClassifier(
        CO2(is_random), criterion="entropy", scaling="minmax", **parameters
    )
