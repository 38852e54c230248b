"""Linear classifiers of two groups of rows: logistic regression and support vector machines.

Minimized over the weights w and the constant b is ::

    |w|_2^2 / 2  or  |w|_1    +    sum_i c_i loss(s_i (w @ x_i + b))

where s_i is 1 or -1, c_i the cost of row i, and loss(m) is ``log(1 + exp(-m))`` or
``max(0, 1 - m)**2``: the problems of LIBLINEAR (Fan et al. 2008), with the constant left out of the
penalty. The method is Newton's with a line search. The quadratic model is minimized by a Cholesky
factorization for the squared norm of few weights, by conjugate gradients for that of many (Keerthi
and DeCoste 2005; Lin, Weng and Keerthi 2008), and by coordinate descent for the sum of magnitudes
(Yuan, Ho and Lin 2012). It starts from any hyperplane, draws nothing at random and keeps no state.
"""

import math

import numpy as np

from evotree._jit import dot_kernel, inner_kernel, kernel
from evotree.operators.splitters.base import inner
from evotree.tree import project

LOSSES = ("logistic", "svm")
"""Names of the losses, by their codes."""

PENALTIES = ("l2", "l1")
"""Names of the penalties, by their codes."""

_LOGISTIC = 0
_L2, _L1 = 0, 1
_CONJUGATE_STEPS = 100
_ENOUGH = 0.01  # of the square of the first residual
_SWEEPS = 50
_HALVINGS = 100  # far from all margins of 0 a model promises far too much
_RIDGE = 1e-12  # keeps the quadratic models strictly convex
# Most features with which a factorization is quicker than conjugate gradients.
_FACTORED = 24
_SINGULAR = 1e-10  # of a diagonal entry: a smaller pivot is rounding
_LEAST_SIZE, _USUAL_SIZE, _GREATEST_SIZE = 0.2, 2.0, 30.0  # of decision functions


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
    for j in range(d):
        mean[j] = 0.0
        scale[j] = 1.0
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
            for t in range(n, 4):
                for j in range(d + 1):
                    scaled[t, j] = 0.0
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
        if not pivot > _SINGULAR * matrix[j, j]:
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
    residual, search, product = np.empty(p), np.empty(p), np.empty(p)
    moments(X, curvatures, mean, scale)
    size = 0.0
    for j in range(p):
        direction[j] = 0.0
        residual[j] = -grad[j] if j == d else mean[j] * grad[d] - grad[j]
        search[j] = residual[j] / scale[j]
        size += residual[j] * search[j]
    enough = _ENOUGH * size
    for _ in range(min(p, _CONJUGATE_STEPS) + 1):
        if not size > 0.0:
            break
        constant = search[d]
        search[d] -= inner(mean, search)
        for j in range(p):
            product[j] = 0.0
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


@kernel
def signed_columns(X, signs):
    """Return ``s_i (x_i, 1)`` of the rows, one feature after the other."""
    m, d = X.shape
    columns = np.empty((d + 1, m))
    for i in range(m):
        for j in range(d):
            columns[j, i] = signs[i] * X[i, j]
        columns[d, i] = signs[i]
    return columns


@inner_kernel
def soft_step(slope, curvature, here, charge):
    """Return the z that minimizes ``slope z + curvature z**2 / 2 + charge |here + z|``."""
    if slope + charge <= curvature * here:
        return -(slope + charge) / curvature
    if slope - charge >= curvature * here:
        return -(slope - charge) / curvature
    return -here


@inner_kernel
def coordinate_descent(columns, theta, curvatures, grad, direction, changes):
    """Write an approximate minimizer of the quadratic model with the sum of magnitudes."""
    # The constant is the best one at any time, as if the features were centred by the weights that
    # they have in the model. After a sweep over all coordinates only those are swept that are not
    # 0. `changes` becomes the change of the margins.
    m, d = columns.shape[1], columns.shape[0] - 1
    mean, second = np.empty(d), np.empty(d)
    total = _RIDGE
    for t in range(m):
        total += curvatures[t]
    constant = -grad[d] / total
    for t in range(m):
        changes[t] = constant * columns[d, t]
    for j in range(d):
        direction[j] = 0.0
        second[j] = -1.0  # not yet known
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
