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
from numbers import Integral, Real
from typing import Annotated

import numpy as np

from evotree._jit import inner_kernel, kernel
from evotree.configuration import Configuration, Interval, StrOptions
from evotree.fitness.node import Node
from evotree.operators.splitters.base import (
    Axis,
    ScaledRows,
    Split,
    better_split,
    inner,
    needs_classes,
    node_hyperplane,
    scale_rows,
)
from evotree.rng import normal, shuffle
from evotree.tree import project

STARTS = ("axis", "random")
"""Names of the starts."""

NUS = (0.1, 1.0, 4.0, 10.0, 43.0, 100.0)
"""The bounds of the squared length that the paper tries."""

RATES = (0.003, 0.01, 0.03)
"""The learning rates that the paper tries."""

_LEAST_STEPS = 100


@inner_kernel
def log_sum(leaf):
    """Return ``log(sum(exp(leaf)))``."""
    largest, total = leaf.max(), 0.0
    for k in range(leaf.shape[0]):
        total += math.exp(leaf[k] - largest)
    return largest + math.log(total)


@kernel
def bound_gradient(rows, codes, shares, batch, theta, leaves, grad, leaf_grad):
    """Return the mean upper bound over a batch of rows, and write its gradient.

    The rows, of shape (n, p), the codes and the shares are those of `ScaledRows`; ``batch`` holds
    positions of rows. `theta` and `grad` have the shape (p,), `leaves` and `leaf_grad`
    (2, n_present).
    """
    n_present = leaves.shape[1]
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
            for j in range(theta.shape[0]):
                grad[j] += slope * rows[i, j]
    total = w_left + w_right
    for j in range(theta.shape[0]):
        grad[j] /= total
    for k in range(n_present):
        leaf_grad[0, k] += w_left * math.exp(leaves[0, k] - norm_left)
        leaf_grad[1, k] += w_right * math.exp(leaves[1, k] - norm_right)
        leaf_grad[0, k] /= total
        leaf_grad[1, k] /= total
    return bound / total


@inner_kernel
def momentum_step(values, velocity, grad, momentum, rate):
    """Make one step of gradient descent with momentum."""
    for j in range(values.shape[0]):
        velocity[j] = momentum * velocity[j] - rate * grad[j]
        values[j] += velocity[j]


@kernel
def lower_bound(scaled, theta, leaves, nu, rate, momentum, batch_size, epochs, stream):
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
    for step in range(max(epochs * n_batches, _LEAST_STEPS)):
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
        momentum_step(theta, velocity, grad, momentum, rate)
        for g in range(2):
            momentum_step(leaves[g], leaf_velocity[g], leaf_grad[g], momentum, rate)
        square = inner(theta, theta)
        if square > nu:
            factor = math.sqrt(nu / square)
            for j in range(p):
                theta[j] *= factor


def start_leaves(scaled: ScaledRows, theta: np.ndarray) -> np.ndarray:
    """Return the logarithms of the classes' shares on the sides of a hyperplane, none of them 0."""
    is_right = (scaled.rows @ theta > 0.0).astype(np.int64)
    leaves = np.full((2, len(scaled.totals)), 1.0 / len(scaled.rows))
    np.add.at(leaves, (is_right, scaled.codes), scaled.shares)
    return np.log(leaves / leaves.sum(axis=1, keepdims=True))


@dataclass(frozen=True, repr=False)
class CO2(Configuration):
    """The best of the splits by the continuous upper bound, over bounds of length and rates.

    The paper chooses the bound and the rate by validation; here they are those whose split has the
    best score on the node's own rows. The start at the best test of one feature takes part in the
    choice. Features are standardized at the node.

    Parameters
    ----------
    start : {"axis", "random"}, default="axis"
        Start at the best test of one feature (the paper's CO2), or at a random hyperplane (CO2r).
    nus : tuple of float above 0, default=NUS
        Bounds of the squared length of the hyperplane, threshold included.
    rates : tuple of float above 0, default=RATES
        Learning rates.
    momentum : float in [0, 1), default=0.9
        Share of the last step that is added to the next.
    batch_size : int, at least 1, default=100
        Rows of a step.
    epochs : int, at least 1, default=10
        Passes over the rows for each bound and rate; 100 steps where these are more.
    """

    start: Annotated[str, StrOptions(set(STARTS))] = "axis"
    nus: tuple[float, ...] = NUS
    rates: tuple[float, ...] = RATES
    momentum: Annotated[float, Interval(Real, 0.0, 1.0, closed="left")] = 0.9
    batch_size: Annotated[int, Interval(Integral, 1, None, closed="left")] = 100
    epochs: Annotated[int, Interval(Integral, 1, None, closed="left")] = 10

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("nus", "rates"):
            values = getattr(self, name)
            if not values or not all(0.0 < value < np.inf for value in values):
                raise ValueError(
                    f"{name}={values!r}: allowed are tuples of finite numbers above 0."
                )

    def __call__(self, node: Node, stream: np.ndarray) -> Split | None:
        """Find the split (see `evotree.operators.splitters.base.Splitter`)."""
        needs_classes(node, "co2")
        d = node.X.shape[1]
        axis = Axis()(node, stream)
        if d == 1 or (axis is None and self.start == "axis"):
            return axis
        scaled = scale_rows(node, rescale=True)
        start = np.zeros(d + 1)
        best: Split | None = None
        if axis is not None and self.start == "axis":
            feature = int(axis.weights.argmax())
            if scaled.scale[feature] == 0.0:  # differences too small to be scaled
                return axis
            best = axis
            start[feature] = 1.0
            start[d] = (scaled.mean[feature] - axis.threshold) / scaled.scale[feature]
        else:
            start[:] = [normal(stream) for _ in range(d + 1)]
        first = start_leaves(scaled, start)
        for nu, rate in product(map(float, self.nus), map(float, self.rates)):
            theta = start * math.sqrt(nu) / math.sqrt(inner(start, start))
            lower_bound(
                scaled,
                theta,
                first.copy(),
                nu,
                rate,
                momentum=float(self.momentum),
                batch_size=self.batch_size,
                epochs=self.epochs,
                stream=stream,
            )
            best = better_split(best, node, node_hyperplane(scaled, theta))
        return axis if best is None else best
