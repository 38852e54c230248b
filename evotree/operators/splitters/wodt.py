"""Weighted oblique decision trees: splits by the entropy of soft sides (Yang, Shen and Gao 2019).

Yang, Shen and Gao (2019), "Weighted oblique decision trees", AAAI, let row i go right with the
weight ``sigma_i = sigmoid(theta @ (x_i, 1))`` and left with ``1 - sigma_i``. With W_R, W_L the
weights of the sides and W_R^k, W_L^k those of class k on them, the weighted entropy is ::

    E = W_L log2 W_L + W_R log2 W_R - sum_k (W_L^k log2 W_L^k + W_R^k log2 W_R^k)

and its gradient, with y_i the class of row i, ::

    g = sum_i sigma_i (1 - sigma_i) log2(W_R W_L^{y_i} / (W_L W_R^{y_i})) (x_i, 1)

(the product that the paper prints as equation 2 does not agree with finite differences). The factor
with the logarithm depends on the class alone: one pass over the rows sums
``sigma (1 - sigma) (x, 1)`` for each class, and value and gradient follow from these sums. Weights
of rows multiply their contributions.
"""

import math
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Annotated

import numpy as np
from scipy.optimize import minimize

from evotree._jit import inner_kernel, kernel
from evotree.configuration import Configuration, Interval, StrOptions
from evotree.fitness.node import Node
from evotree.operators.splitters.base import (
    Axis,
    ScaledRows,
    Split,
    best_split_along,
    better_split,
    inner,
    node_hyperplane,
    scale_rows,
)
from evotree.parallel import one_blas_thread
from evotree.rng import below, normal, uniform
from evotree.tree import project

STARTS = ("random", "groups")
"""Names of the ways to start the search."""

_TINY = 1e-300


@inner_kernel
def xlog2(x, y):
    """Return ``x log2 y`` with the logarithm kept finite."""
    return x * math.log2(max(y, _TINY))


@kernel
def weighted_entropy(scaled, theta, grad, sums, sides):
    """Return the weighted entropy, in bits for a unit of weight, and write its gradient.

    `theta` and `grad` have the shape (p,); ``sums (n_present, p)`` and ``sides (2, n_present)`` are
    room for the sums of the classes and their weights on the two sides.
    """
    rows, codes, shares = scaled.rows, scaled.codes, scaled.shares
    n_present, p = sums.shape
    sides[:] = 0.0
    sums[:] = 0.0
    for i in range(rows.shape[0]):
        z = project(theta, rows, i)
        k, w = codes[i], shares[i]
        e = math.exp(-abs(z))
        # Both shares are sums of positive terms: 1 - sigma would lose small ones to rounding.
        near = w / (1.0 + e)
        far = near * e
        sides[0, k] += far if z > 0.0 else near
        sides[1, k] += near if z > 0.0 else far
        slope = far / (1.0 + e)
        if slope > _TINY:
            for j in range(p):
                sums[k, j] += slope * rows[i, j]
    w_left = w_right = 0.0
    for k in range(n_present):
        w_left += sides[0, k]
        w_right += sides[1, k]
    grad[:] = 0.0
    value = xlog2(w_left, w_left) + xlog2(w_right, w_right)
    balance = xlog2(1.0, w_right) - xlog2(1.0, w_left)
    for k in range(n_present):
        left, right = sides[0, k], sides[1, k]
        value -= xlog2(left, left) + xlog2(right, right)
        factor = balance + xlog2(1.0, left) - xlog2(1.0, right)
        for j in range(p):
            grad[j] += factor * sums[k, j]
    return value


def minimize_entropy(
    scaled: ScaledRows, theta: np.ndarray, max_iter: int, tol: float
) -> np.ndarray:
    """Minimize the weighted entropy by L-BFGS (Liu and Nocedal 1989)."""
    p, n_present = theta.shape[0], scaled.totals.shape[0]
    grad, sums, sides = np.empty(p), np.empty((n_present, p)), np.empty((2, n_present))

    def value_and_gradient(theta: np.ndarray) -> tuple[float, np.ndarray]:
        return weighted_entropy(scaled, theta, grad, sums, sides), grad

    options = {"maxiter": max_iter, "ftol": tol, "gtol": tol}
    # The solver's matrices are tiny: threads would spend ten times as long waiting for each other.
    with one_blas_thread():
        return minimize(
            value_and_gradient, theta, method="L-BFGS-B", jac=True, options=options
        ).x


@kernel
def mean_square(theta, rows, shares):
    """Return the mean square of the rows' projections."""
    total = 0.0
    for i in range(rows.shape[0]):
        z = project(theta, rows, i)
        total += shares[i] * z * z
    return total


def start_from_groups(scaled: ScaledRows, stream: np.ndarray) -> np.ndarray:
    """Return the hyperplane midway between the means of two random groups of classes."""
    rows, shares, means = scaled.rows, scaled.shares, []
    group = np.zeros(scaled.totals.shape[0], dtype=np.int64)  # of each class
    while not 0 < group.sum() < group.size:
        group[:] = [below(stream, 2) for _ in group]
    for side in (group[scaled.codes] == 0, group[scaled.codes] == 1):
        total = np.cumsum(shares[side, np.newaxis] * rows[side], axis=0)[-1]
        means.append(total / np.cumsum(shares[side])[-1])
    theta = means[1] - means[0]
    theta[-1] = 0.0
    if not inner(theta, theta) > 1e-20:  # two groups of one mean
        theta[:-1] = [normal(stream) for _ in theta[:-1]]
    theta[-1] = -0.5 * (inner(theta, means[0]) + inner(theta, means[1]))
    variance = mean_square(theta, rows, shares)
    # The root mean square of theta @ (x, 1) is 3.
    return theta * (3.0 / math.sqrt(variance)) if variance > 0.0 else theta


@dataclass(frozen=True, repr=False)
class WODT(Configuration):
    """The split with the lowest weighted entropy of soft sides, by L-BFGS from a random start.

    The split is the sign of ``theta @ (x, 1)``. Where it sends all rows one way the search tries
    other starts, then another threshold for the last normal vector, then a test of one feature. The
    paper has no parameters; what it leaves open was chosen by five-fold cross-validation of fully
    grown trees. Those from groups, their features standardized at each node, have half the leaves
    of those with random starts and features scaled once, as the paper has them.

    Parameters
    ----------
    start : {"random", "groups"}, default="random"
        Where a search starts: with coordinates drawn uniformly from [-.5, .5), or
        midway between the means of two random groups of the classes. On two classes there is one
        pair of groups, and further starts are at random.
    rescale : bool, default=True
        Whether each node standardizes its features; the paper scales them to [-1, 1], once.
    max_iter : int, at least 1, default=100
        Most iterations of a search.
    tol : float above 0, default=1e-6
        A search ends when an iteration gains less than this, in bits for each row of mean weight,
        or when no component of the gradient is larger.
    """

    start: Annotated[str, StrOptions(set(STARTS))] = "random"
    rescale: Annotated[bool, "boolean"] = True
    max_iter: Annotated[int, Interval(Integral, 1, None, closed="left")] = 100
    tol: Annotated[float, Interval(Real, 0.0, None, closed="neither")] = 1e-6

    def __call__(self, node: Node, stream: np.ndarray) -> Split | None:
        """Find the split (see `evotree.operators.splitters.base.Splitter`)."""
        if node.n_classes == 0:
            raise ValueError("splitter 'wodt' is for classes, not for targets.")
        # A test of the one feature is as good as any hyperplane.
        split = self._search(node, stream) if node.X.shape[1] > 1 else None
        return Axis()(node, stream) if split is None else split

    def _search(self, node: Node, stream: np.ndarray) -> Split | None:
        """Return the split of the first start that has one; None where all fail."""
        scaled = scale_rows(node, self.rescale)
        for trial in range(4):
            if self.start == "groups" and (trial == 0 or scaled.totals.size > 2):
                theta = start_from_groups(scaled, stream)
            else:
                theta = np.array(
                    [uniform(stream) - 0.5 for _ in range(node.X.shape[1] + 1)]
                )
            theta = minimize_entropy(scaled, theta, self.max_iter, self.tol)
            hyperplane = node_hyperplane(scaled, theta)
            split = better_split(None, node, hyperplane)
            if split is not None:
                return split
        return None if hyperplane is None else best_split_along(node, hyperplane[0])
