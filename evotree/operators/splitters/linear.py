"""Splits by linear classifiers: how these are fitted, groups of classes, and linear machines.

**Fits** of logistic regression and of support vector machines to two groups of rows. Minimized over
the weights w and the constant b is ::

    |w|_2^2 / 2  or  |w|_1    +    sum_i c_i loss(s_i (w @ x_i + b))

where s_i is 1 or -1, c_i the cost of row i, and loss(m) is ``log(1 + exp(-m))`` or
``max(0, 1 - m)**2``: the problems of LIBLINEAR (Fan et al. 2008), with the constant left out of the
penalty. The method is Newton's with a line search. The quadratic model is minimized by a Cholesky
factorization for the squared norm of few weights, by conjugate gradients for that of many (Keerthi
and DeCoste 2005; Lin, Weng and Keerthi 2008), and by coordinate descent for the sum of magnitudes
(Yuan, Ho and Lin 2012). It starts from any hyperplane, draws nothing at random and keeps no state.

**Groups of classes.** At a node, linear classifiers are fitted to several pairs of groups of its
classes, and the hyperplane of the one whose split of all the rows has the best score is taken. With
one class against another and support vector machines this is the search of STree (Montañana, Gámez
and Puerta 2021, "STree: a single multi-class oblique decision tree based on support vector
machines", CAEPIA); with one class against the others it is its one-versus-rest form.

**Linear machines**: the splits of LMDT (Utgoff and Brodley 1991; Brodley and Utgoff 1995). A linear
machine has one linear function for each class; a row belongs to the class whose function is the
highest. It is trained by corrections of misclassified rows that get smaller while training cools
down, and loses features as long as it stays as accurate.

A machine of two classes is one hyperplane. One of more is as many binary splits as it takes: each
asks which of two functions is higher, until all rows of a node have one winner.

The constants of the cooling, the first four of `_COOLING`, are those of the authors as they are
remembered: accuracy hardly depends on them (``docs/algorithms.md``). The rest are ours.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from numbers import Integral, Real
from typing import Annotated, NamedTuple

import numpy as np

from evotree._jit import dot_kernel, inner_kernel, kernel
from evotree.configuration import Configuration, Interval, StrOptions
from evotree.fitness.node import Node, score_hyperplane
from evotree.operators.splitters.axis import Axis
from evotree.operators.splitters.base import (
    Split,
    best_split_along,
    better_split,
    inner,
    needs_classes,
)
from evotree.rng import as_generator
from evotree.tree import project

LOSSES = ("logistic", "svm")
"""Names of the losses, by their codes."""

PENALTIES = ("l2", "l1")
"""Names of the penalties, by their codes."""

_LOGISTIC = 0
_L2, _L1 = 0, 1
_CONJUGATE_STEPS = 100
# Conjugate gradients end at this share of the square of the first residual.
_RESIDUAL_SHARE = 0.01
_SWEEPS = 50
_HALVINGS = 100  # far from all margins of 0 a model promises far too much
_RIDGE = 1e-12  # keeps the quadratic models strictly convex
# Most features with which a factorization is quicker than conjugate gradients.
_FACTORED = 24
# A pivot of a smaller share of its diagonal entry is rounding.
_SINGULAR_SHARE = 1e-10
# Sizes of decision functions.
_LEAST_SIZE, _USUAL_SIZE, _GREATEST_SIZE = 0.2, 2.0, 30.0


@dot_kernel
def affine(theta, X, i):
    """Return ``w @ X[i] + b`` for theta = (w, b)."""
    s = 0.0
    for j in range(X.shape[1]):
        s += theta[j] * X[i, j]
    return s + theta[X.shape[1]]


@dot_kernel
def weighted_inner(a, b, c):
    """Return ``sum(a * b * c)``."""
    s = 0.0
    for j in range(a.shape[0]):
        s += a[j] * b[j] * c[j]
    return s


@inner_kernel
def loss_at(loss, margins, changes, step, costs, powers):
    """Return the loss at ``margins + step * changes``; write ``exp(-|m|)`` of a logistic one."""
    total = 0.0
    for t in range(margins.shape[0]):
        m = margins[t] + step * changes[t]
        if loss == _LOGISTIC:
            powers[t] = math.exp(-abs(m))
            total += costs[t] * (math.log1p(powers[t]) + max(0.0, -m))
        elif m < 1.0:
            total += costs[t] * (1.0 - m) * (1.0 - m)
    return total


@inner_kernel
def loss_derivatives(loss, margins, costs, powers, slopes, curvatures):
    """Write the first and second derivatives of the rows' losses by their margins."""
    for t in range(margins.shape[0]):
        m = margins[t]
        if loss == _LOGISTIC:
            e = powers[t]
            slopes[t] = -costs[t] * (1.0 if m < 0.0 else e) / (1.0 + e)
            curvatures[t] = costs[t] * e / ((1.0 + e) * (1.0 + e))
        else:
            slopes[t] = min(0.0, -2.0 * costs[t] * (1.0 - m))
            curvatures[t] = 2.0 * costs[t] if m < 1.0 else 0.0


@inner_kernel
def penalty_at(penalty, theta, direction, step):
    """Return the penalty of ``theta + step * direction``; the last entry, the constant, is free."""
    total = 0.0
    for j in range(theta.shape[0] - 1):
        v = theta[j] + step * direction[j]
        total += 0.5 * v * v if penalty == _L2 else abs(v)
    return total


@inner_kernel
def add_row(out, X, i, c):
    """Add ``c (X[i], 1)`` to `out`."""
    for j in range(X.shape[1]):
        out[j] += c * X[i, j]
    out[X.shape[1]] += c


@inner_kernel
def moments(X, curvatures, mean, scale):
    """Write the features' means, and the diagonal of the quadratic model about them."""
    m, d = X.shape
    total = _RIDGE
    mean[:] = 0.0
    scale[:] = 1.0
    for i in range(m):
        if curvatures[i] > 0.0:
            total += curvatures[i]
            for j in range(d):
                mean[j] += curvatures[i] * X[i, j]
    for j in range(d):
        mean[j] /= total
    for i in range(m):
        if curvatures[i] > 0.0:
            for j in range(d):
                deviation = X[i, j] - mean[j]
                scale[j] += curvatures[i] * deviation * deviation
    scale[d] = total


@inner_kernel
def curvature_matrix(X, curvatures):
    """Return the lower half of the matrix of the quadratic model; the constant comes last."""
    # Four rows at a time, so that each entry is read and written once for them.
    m, d = X.shape
    matrix = np.zeros((d + 1, d + 1))
    rows, scaled, n = np.zeros((4, d + 1)), np.zeros((4, d + 1)), 0
    for i in range(m):
        if curvatures[i] > 0.0:
            rows[n, d] = 1.0
            for j in range(d):
                rows[n, j] = X[i, j]
            for j in range(d + 1):
                scaled[n, j] = curvatures[i] * rows[n, j]
            n += 1
        if n == 4 or i == m - 1:
            scaled[n:] = 0.0
            for j in range(d + 1):
                p, q, r, s = scaled[0, j], scaled[1, j], scaled[2, j], scaled[3, j]
                for k in range(j + 1):
                    first = matrix[j, k] + p * rows[0, k] + q * rows[1, k]
                    matrix[j, k] = first + r * rows[2, k] + s * rows[3, k]
            n = 0
    for j in range(d):
        matrix[j, j] += 1.0
    matrix[d, d] += _RIDGE
    return matrix


@inner_kernel
def exact_step(X, curvatures, grad, direction):
    """Write the minimizer of the quadratic model with the squared norm, by Cholesky's method."""
    # False where the matrix is singular to working precision, as that of features far from 0.
    matrix = curvature_matrix(X, curvatures)
    p = grad.shape[0]
    for j in range(p):
        pivot = matrix[j, j]
        for k in range(j):
            pivot -= matrix[j, k] * matrix[j, k]
        if not pivot > _SINGULAR_SHARE * matrix[j, j]:
            return False
        root = math.sqrt(pivot)
        matrix[j, j] = root
        for i in range(j + 1, p):
            v = matrix[i, j]
            for k in range(j):
                v -= matrix[i, k] * matrix[j, k]
            matrix[i, j] = v / root
    for j in range(p):
        v = -grad[j]
        for k in range(j):
            v -= matrix[j, k] * direction[k]
        direction[j] = v / matrix[j, j]
    for j in range(p - 1, -1, -1):
        v = direction[j]
        for k in range(j + 1, p):
            v -= matrix[k, j] * direction[k]
        direction[j] = v / matrix[j, j]
    return True


@inner_kernel
def conjugate_gradients(X, curvatures, grad, direction):
    """Write an approximate minimizer of the quadratic model with the squared norm."""
    # The features are centred, each time by the weights that they have in the model, and the
    # diagonal is the preconditioner (Hsia, Chiang and Lin 2018): so neither their origin nor their
    # units make a difference to the number of steps.
    p = grad.shape[0]
    d = p - 1
    mean, scale = np.empty(d), np.empty(p)
    residual, search = np.empty(p), np.empty(p)
    moments(X, curvatures, mean, scale)
    size = 0.0
    for j in range(p):
        direction[j] = 0.0
        residual[j] = -grad[j] if j == d else mean[j] * grad[d] - grad[j]
        search[j] = residual[j] / scale[j]
        size += residual[j] * search[j]
    enough = _RESIDUAL_SHARE * size
    for _ in range(min(p, _CONJUGATE_STEPS) + 1):
        if not size > 0.0:
            break
        constant = search[d]
        search[d] -= inner(mean, search)
        product = np.zeros(p)
        for i in range(X.shape[0]):
            if curvatures[i] > 0.0:
                add_row(product, X, i, curvatures[i] * affine(search, X, i))
        search[d] = constant
        for j in range(d):
            product[j] += search[j] - mean[j] * product[d]
        product[d] += _RIDGE * constant
        step = size / inner(search, product)
        previous, size = size, 0.0
        for j in range(p):
            direction[j] += step * search[j]
            residual[j] -= step * product[j]
            size += residual[j] * residual[j] / scale[j]
        if size <= enough:
            break
        for j in range(p):
            search[j] = residual[j] / scale[j] + size / previous * search[j]
    direction[d] -= inner(mean, direction)


def signed_columns(X: np.ndarray, signs: np.ndarray) -> np.ndarray:
    """Return ``s_i (x_i, 1)`` of the rows, one feature after the other."""
    columns = np.empty((X.shape[1] + 1, len(X)))
    columns[:-1] = signs * X.T
    columns[-1] = signs
    return columns


@inner_kernel
def soft_step(slope, curvature, here, penalty):
    """Return the z that minimizes ``slope z + curvature z**2 / 2 + penalty |here + z|``."""
    if slope + penalty <= curvature * here:
        return -(slope + penalty) / curvature
    if slope - penalty >= curvature * here:
        return -(slope - penalty) / curvature
    return -here


@inner_kernel
def coordinate_descent(columns, theta, curvatures, grad, direction, changes):
    """Write an approximate minimizer of the quadratic model with the sum of magnitudes."""
    # The constant is the best one at any time, as if the features were centred by the weights that
    # they have in the model. After a sweep over all coordinates only those are swept that are not
    # 0. `changes` becomes the change of the margins.
    m, d = columns.shape[1], columns.shape[0] - 1
    mean, second = np.empty(d), np.full(d, -1.0)  # not yet known
    total = _RIDGE
    for t in range(m):
        total += curvatures[t]
    constant = -grad[d] / total
    for t in range(m):
        changes[t] = constant * columns[d, t]
    direction[:] = 0.0
    first_gain = 0.0
    for sweep in range(_SWEEPS):
        gain = 0.0
        for j in range(d):
            here = theta[j] + direction[j]
            if here == 0.0 and (sweep > 0 or abs(grad[j]) < 0.5):
                continue
            if second[j] < 0.0:
                mean[j] = weighted_inner(curvatures, columns[j], columns[d]) / total
                raw = weighted_inner(curvatures, columns[j], columns[j])
                second[j] = _RIDGE * (1.0 + raw) + max(
                    0.0, raw - mean[j] * mean[j] * total
                )
            slope = grad[j] + weighted_inner(curvatures, columns[j], changes)
            z = soft_step(slope, second[j], here, 1.0)
            if z != 0.0:
                direction[j] += z
                constant -= mean[j] * z
                gain += second[j] * z * z
                for t in range(m):
                    changes[t] += z * (columns[j, t] - mean[j] * columns[d, t])
        if sweep == 0:
            first_gain = gain
        if gain <= 1e-3 * first_gain:
            break
    direction[d] = constant


@inner_kernel
def step_length(
    loss, penalty, theta, direction, margins, changes, costs, powers, value, promise
):
    """Return the first step of 1, 1/2, 1/4, ... that keeps its promise, and the value after it."""
    step = 1.0
    new_value = np.inf
    for _ in range(_HALVINGS):
        new_value = penalty_at(penalty, theta, direction, step)
        new_value += loss_at(loss, margins, changes, step, costs, powers)
        if new_value <= value + 0.01 * step * promise:
            break
        step *= 0.5
    return step, new_value


@kernel
def newton_fit(X, signs, costs, loss, columns, max_iter, tol, theta):
    """Fit a linear classifier to two groups of rows; return the objective and the steps taken.

    ``X (m, d)``, the `signs` 1 or -1 and the `costs` of the rows are of shape (m,), `loss` is a
    position in `LOSSES`. ``theta (d + 1,)``, the weights and the constant, holds the start and is
    overwritten. The penalty is L1 where `columns` are those of `signed_columns`, L2 where None. A
    fit ends when a step promises to lower the objective by less than the share `tol`.
    """
    # Numba leaves out what None rules out: only those who ask for L1 compile it.
    m, d = X.shape
    penalty = _L2 if columns is None else _L1
    margins, changes = np.empty(m), np.zeros(m)
    slopes, curvatures = np.empty(m), np.empty(m)
    grad, direction, powers = np.empty(d + 1), np.zeros(d + 1), np.empty(m)
    for i in range(m):
        margins[i] = signs[i] * affine(theta, X, i)
    value = penalty_at(penalty, theta, direction, 0.0)
    value += loss_at(loss, margins, changes, 0.0, costs, powers)
    for n_iter in range(max_iter):
        loss_derivatives(loss, margins, costs, powers, slopes, curvatures)
        for j in range(d + 1):
            grad[j] = theta[j] if penalty == _L2 and j < d else 0.0
        for i in range(m):
            if slopes[i] != 0.0:
                add_row(grad, X, i, slopes[i] * signs[i])
        promise = 0.0
        if columns is None:
            if d > _FACTORED or not exact_step(X, curvatures, grad, direction):
                conjugate_gradients(X, curvatures, grad, direction)
            for i in range(m):
                changes[i] = signs[i] * affine(direction, X, i)
        else:
            coordinate_descent(columns, theta, curvatures, grad, direction, changes)
            promise = penalty_at(penalty, theta, direction, 1.0)
            promise -= penalty_at(penalty, theta, direction, 0.0)
        promise += inner(grad, direction)
        if not promise < -tol * value:
            return value, n_iter
        step, new_value = step_length(
            loss,
            penalty,
            theta,
            direction,
            margins,
            changes,
            costs,
            powers,
            value,
            promise,
        )
        if not new_value < value:
            return value, n_iter
        for j in range(d + 1):
            theta[j] += step * direction[j]
        for i in range(m):
            margins[i] += step * changes[i]
        value = new_value
    return value, max_iter


def fit_linear(
    X: np.ndarray,
    signs: np.ndarray,
    costs: np.ndarray,
    theta: np.ndarray,
    *,
    loss: str,
    penalty: str,
    max_iter: int,
    tol: float,
) -> tuple[float, int]:
    """Fit a classifier over its start, ``theta (d + 1,)``, the constant last (see `newton_fit`)."""
    columns = signed_columns(X, signs) if penalty == "l1" else None
    return newton_fit(
        X, signs, costs, LOSSES.index(loss), columns, max_iter, tol, theta
    )


@kernel
def decision_size(X, weights, threshold):
    """Return the root mean square of the decision function of a hyperplane."""
    total = 0.0
    for i in range(X.shape[0]):
        total += (project(weights, X, i) - threshold) ** 2
    return math.sqrt(total / X.shape[0])


def start_at(X: np.ndarray, weights: np.ndarray, threshold: float) -> np.ndarray:
    """Return a start at a hyperplane: (w, b), in a scale from which a fit goes on quickly."""
    theta = np.append(weights, -threshold)
    size = decision_size(X, weights, threshold)
    if not _LEAST_SIZE <= size <= _GREATEST_SIZE:
        theta *= _USUAL_SIZE / size if 0.0 < size < np.inf else 0.0
    return theta


GROUPS = ("one_vs_one", "one_vs_rest", "random", "all")
"""Names of the ways to form two groups of classes."""

THRESHOLDS = ("classifier", "best")
"""Names of the ways to set thresholds."""


@dataclass(frozen=True, repr=False)
class Linear(Configuration):
    """The best of the splits by linear classifiers of groups of classes.

    Targets are parted into those above their mean and the others. The defaults were chosen by
    five-fold cross-validation: of many classes "one_vs_one" is the most accurate, the classifiers'
    own thresholds do better on unseen rows than the best ones, and without `fallback` trees are
    smaller, and better where classes overlap.

    Parameters
    ----------
    loss : {"svm", "logistic"}, default="svm"
        Squared hinge loss of support vector machines, or that of logistic regression.
    penalty : {"l2", "l1"}, default="l2"
        Penalty of the weights; "l1" makes many of them 0.
    C : float above 0, default=1.0
        Cost of the loss of a row of weight 1.
    groups : {"one_vs_one", "one_vs_rest", "random", "all"}, default="one_vs_one"
        Which groups of classes are told apart: each class from each other one, each class from the
        others together, random halves of the classes, or all three in turn.
    n_groups : int, at least 1, default=10
        Number of random halves.
    threshold : {"classifier", "best"}, default="classifier"
        Whether the threshold is the classifier's own or that of the best score for its weights.
    fallback : bool, default=False
        Whether to take the best split on one feature where no classifier parts the rows; without it
        such a node has no split, as in STree.
    max_iter : int, at least 1, default=100
        Most Newton steps of a fit.
    tol : float above 0, default=1e-4
        A fit ends when a step promises to lower its objective by less than this share.
    """

    loss: Annotated[str, StrOptions(set(LOSSES))] = "svm"
    penalty: Annotated[str, StrOptions(set(PENALTIES))] = "l2"
    C: Annotated[float, Interval(Real, 0.0, None, closed="neither")] = 1.0
    groups: Annotated[str, StrOptions(set(GROUPS))] = "one_vs_one"
    n_groups: Annotated[int, Interval(Integral, 1, None, closed="left")] = 10
    threshold: Annotated[str, StrOptions(set(THRESHOLDS))] = "classifier"
    fallback: Annotated[bool, "boolean"] = False
    max_iter: Annotated[int, Interval(Integral, 1, None, closed="left")] = 100
    tol: Annotated[float, Interval(Real, 0.0, None, closed="neither")] = 1e-4

    def __call__(self, node: Node, stream: np.ndarray) -> Split | None:
        """Find the split (see `Splitter`)."""
        if node.X.shape[1] > 1:
            best = self._search(node, stream)
            if best is not None or not self.fallback:
                return best
        # Of one feature a threshold is as good as any classifier.
        return Axis()(node, stream)

    def refit(self, node: Node, weights: np.ndarray, threshold: float) -> Split | None:
        """Fit a classifier that sends class 1 of two classes right, starting from a hyperplane."""
        # The split is not scored, and ``weights @ x - threshold`` is the decision function.
        theta = start_at(node.X, weights, threshold)
        self._fit(node.X, 2.0 * node.y - 1.0, node.sample_weight, theta)
        if not np.isfinite(theta).all():
            return None
        return Split(theta[:-1].copy(), -float(theta[-1]), np.nan)

    def _fit(
        self,
        X: np.ndarray,
        signs: np.ndarray,
        sample_weight: np.ndarray,
        theta: np.ndarray,
    ) -> None:
        """Fit a classifier of two groups of rows; `theta` holds the start, then the result."""
        # Kernels hand it rows that can be written; it is compiled for these alone.
        X = X if X.flags.writeable else X.copy()
        fit_linear(
            X,
            signs,
            self.C * sample_weight,
            theta,
            loss=self.loss,
            penalty=self.penalty,
            max_iter=self.max_iter,
            tol=self.tol,
        )

    def _search(self, node: Node, stream: np.ndarray) -> Split | None:
        """Return the best of the classifiers' splits; None where none parts the rows."""
        codes = node.y
        if node.n_classes == 0:
            middle = np.sum(node.sample_weight * node.y) / np.sum(node.sample_weight)
            codes = (node.y <= middle).astype(np.int32)
        best: Split | None = None
        for side in self._sides(codes, node.n_classes or 2, stream):
            signs = side[codes].astype(np.float64)
            rows = np.flatnonzero(signs)
            theta = np.zeros(node.X.shape[1] + 1)
            # Where no class is left out, a copy of the rows would be twice the memory.
            X = node.X if len(rows) == len(node.X) else node.X[rows]
            self._fit(X, signs[rows], node.sample_weight[rows], theta)
            length = np.linalg.norm(theta[:-1])
            if not 0.0 < length < np.inf:
                continue
            weights, threshold = theta[:-1] / length, -float(theta[-1] / length)
            if self.threshold == "best":
                along = best_split_along(node, weights)
                threshold = threshold if along is None else along.threshold
            best = better_split(best, node, (weights, threshold))
        return best

    def _sides(
        self, codes: np.ndarray, n_classes: int, stream: np.ndarray
    ) -> Iterator[np.ndarray]:
        """Yield the sides of the classes, 1, -1 or 0 for none, of each two groups to tell apart."""
        # One by one: all of them at once would take memory that grows with the cube of the classes.
        present = np.flatnonzero(np.bincount(codes, minlength=n_classes))
        ways = GROUPS[:3] if self.groups == "all" else (self.groups,)
        if "one_vs_one" in ways or present.size <= 2:
            for first, second in combinations(present, 2):
                sides = np.zeros(n_classes, dtype=np.int8)
                sides[first], sides[second] = 1, -1
                yield sides
        if "one_vs_rest" in ways and present.size > 2:
            for code in present:
                sides = np.full(n_classes, -1, dtype=np.int8)
                sides[code] = 1
                yield sides
        if "random" in ways and present.size > 2:
            generator = as_generator(stream)
            for _ in range(self.n_groups):
                sides = np.zeros(n_classes, dtype=np.int8)
                while abs(sides.sum(dtype=np.int64)) == present.size or not sides.any():
                    sides[present] = 2 * generator.integers(0, 2, present.size) - 1
                yield sides


# Beta at first and where training ends, the factor and the step by which it falls, from memory of
# Brodley and Utgoff (1995); and the most passes over the rows, ours.
_COOLING = (2.0, 1e-3, 0.999, 0.0005, 1_000)


@inner_kernel
def move(function, row, step):
    """Add a multiple of a row to a function; return by how much its magnitude has risen."""
    before = after = 0.0
    for f in range(row.shape[0]):
        before += function[f] * function[f]
        function[f] += step * row[f]
        after += function[f] * function[f]
    return math.sqrt(after) - math.sqrt(before)


@kernel
def train_machine(
    rows, y, sample_weight, order, functions, hot, cold, factor, step, most_passes
):
    """Train a linear machine by thermal corrections (Brodley and Utgoff 1995).

    ``rows (n, p)`` have a 1 in the last column; ``functions (n_classes, p)`` are overwritten. Beta
    falls from `hot` to `cold`, each time to `factor` of it less `step`.
    """
    # A row of class i that the machine takes for class j, at the distance
    # k = (w_j - w_i) . x / (2 x . x) from being right, moves both by c = beta**2 / (beta + k) of
    # itself. Rows with k of beta or more, which are far off, move nothing. Beta falls when the
    # magnitude of the machine falls after it rose.
    n_classes, p = functions.shape
    beta, rose = hot, False
    values = np.empty(n_classes)
    for _ in range(most_passes):
        n_corrected = 0
        for i in order:
            right, other, length = y[i], -1, 0.0  # the class, and the highest one else
            for f in range(p):
                length += rows[i, f] * rows[i, f]
            for c in range(n_classes):
                values[c] = 0.0
                for f in range(p):
                    values[c] += functions[c, f] * rows[i, f]
                if c != right and (other < 0 or values[c] > values[other]):
                    other = c
            k = (values[other] - values[right]) / (2.0 * length)
            if not 0.0 <= k < beta:
                continue
            n_corrected += 1
            correction = sample_weight[i] * beta * beta / (beta + k)
            change = move(functions[right], rows[i], correction)
            change += move(functions[other], rows[i], -correction)
            if change < 0.0 and rose:
                beta = factor * beta - step
            rose = change > 0.0
            if beta < cold:
                return
        if n_corrected == 0:
            return


class Machine(NamedTuple):
    """A linear machine over the features of a node: one function for each class."""

    weights: np.ndarray  # (n_classes, d): normal vectors
    # (n_classes,): minus infinity for a class that no row of the node has.
    intercepts: np.ndarray

    def values(self, X: np.ndarray) -> np.ndarray:
        """Return the value of each function for each row."""
        return np.matmul(X, self.weights.T) + self.intercepts


@dataclass(frozen=True, repr=False)
class LinearMachine(Configuration):
    """A linear machine, thermally trained, of few features (Brodley and Utgoff 1995).

    At a node whose rows have two classes the split is the machine. At one of more classes it is the
    comparison of two of its functions that tells most of the winners apart, and the nodes below go
    on with the same machine until all their rows have one winner; then another machine is trained.
    Where a machine has one winner for all rows, the best split on one feature takes its place.
    """

    # Features are eliminated, that of the least dispersion of weights first, until the machine has
    # lost more than this share of the rows against the most accurate one. The most accurate machine
    # is taken, of equals the one with the fewest features.
    tolerance: Annotated[float, Interval(Real, 0.0, 1.0, closed="both")] = 0.01

    def __call__(self, node: Node, stream: np.ndarray) -> Split | None:
        """Train a machine and find its first comparison (see `Splitter`)."""
        needs_classes(node, "LinearMachine")
        machine = fit_machine(node, self.tolerance, stream)
        if np.unique(machine.values(node.X).argmax(axis=1)).size == 1:
            return Axis()(node, stream)
        return Comparisons(machine, self)(node, stream)


@dataclass(frozen=True)
class Comparisons:
    """The binary splits that are a linear machine; for rows of one winner, the trainer's."""

    machine: Machine
    trainer: LinearMachine

    def __call__(self, node: Node, stream: np.ndarray) -> Split | None:
        """Compare the two functions that tell most about which class wins (see `Splitter`)."""
        values = self.machine.values(node.X)
        winners, codes = np.unique(values.argmax(axis=1), return_inverse=True)
        if winners.size == 1:
            return self.trainer(node, stream)
        best, chosen = np.inf, (0, 0)
        for first, second in combinations(winners.tolist(), 2):
            left = values[:, first] <= values[:, second]
            entropy = sum(
                _entropy(codes[side], node.sample_weight[side])
                for side in (left, ~left)
            )
            if entropy < best - 1e-9:
                best, chosen = entropy, (first, second)
        weights, intercepts = (array[list(chosen)] for array in self.machine)
        normal, threshold = (
            weights[0] - weights[1],
            float(intercepts[1] - intercepts[0]),
        )
        score = score_hyperplane(node, normal, threshold)
        if (
            score == np.inf
        ):  # where values are huge, sums in another order have one winner
            return None
        return Split(
            normal, threshold, score, self if winners.size > 2 else self.trainer
        )


def _entropy(codes: np.ndarray, weight: np.ndarray) -> float:
    """Return the entropy of codes times their weight."""
    counts = np.bincount(codes, weight)
    counts = counts[counts > 0.0]
    return float(-(counts * np.log2(counts / counts.sum())).sum())


def fit_machine(node: Node, tolerance: float, stream: np.ndarray) -> Machine:
    """Train a machine on the rows of a node, and eliminate features."""
    varies = node.X.max(axis=0) > node.X.min(axis=0)
    mean, scale = node.X.mean(axis=0), np.where(varies, node.X.std(axis=0), 1.0)
    rows = np.ones((len(node.y), len(mean) + 1))
    rows[:, :-1] = np.where(varies, (node.X - mean) / scale, 0.0)
    weight = node.sample_weight / node.sample_weight.mean()
    functions = np.zeros((node.n_classes, rows.shape[1]))
    functions[np.setdiff1d(np.arange(node.n_classes), node.y), -1] = -np.inf
    best, least_wrong = functions, np.inf
    generator = as_generator(stream)
    kept = np.flatnonzero(varies)
    while kept.size:
        order = generator.permutation(len(rows))
        train_machine(rows, node.y, weight, order, functions, *_COOLING)
        wrong = weight[(rows @ functions.T).argmax(axis=1) != node.y].sum()
        if wrong > least_wrong + tolerance * weight.sum():
            break
        if wrong <= least_wrong:
            best, least_wrong = functions.copy(), wrong
        weakest = kept[functions[np.unique(node.y)][:, kept].var(axis=0).argmin()]
        functions[:, weakest] = 0.0
        rows[:, weakest] = 0.0
        kept = kept[kept != weakest]
    weights = best[:, :-1] / scale
    return Machine(weights, best[:, -1] - weights @ mean)
