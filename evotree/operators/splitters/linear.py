"""Splits by linear classifiers: how these are fitted, of groups of classes, and of few features.

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

**Few features**: which ones, with which weights, and where, for two groups of rows. The reduced
problem of a node (`evotree.operators.refinement`) asks for the split that costs least, a
penalty for each term included. It is the L0 problem of a linear classifier. As in abess (Zhu et al.
2020, "A polynomial algorithm for best-subset selection problem", PNAS) and L0Learn (Hazimeh and
Mazumder 2020, "Fast best subset selection", Operations Research) features leave by what they
contribute and are swapped for those that promise more, and every support is fitted again; here the
widths go down from the dense classifier, since going up from one feature stops at poor splits, and
supports are compared by what their splits cost, at the exact best threshold.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from numbers import Integral, Real
from typing import Annotated, NamedTuple

import numpy as np

from evotree._jit import dot_kernel, inner_kernel, kernel, read_only
from evotree.configuration import Configuration, Interval, StrOptions
from evotree.fitness.node import (
    Node,
    SortScratch,
    apart,
    between,
    make_sort_scratch,
    sort_order,
)
from evotree.operators.splitters.base import (
    Axis,
    Split,
    better_split,
    inner,
)
from evotree.rng import as_generator
from evotree.tree import project

LOSSES = ("logistic", "svm")
"""Names of the losses, by their codes."""

PENALTIES = ("l2", "l1")
"""Names of the penalties, by their codes."""

_LOGISTIC = 0
_L2, _L1 = 0, 1
_RIDGE = 1e-12  # keeps the quadratic models strictly convex
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
def loss_on_line(loss, margins, changes, step, costs, powers):
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
    m, d = X.shape
    matrix = np.zeros((d + 1, d + 1))
    for i in range(m):
        weight = curvatures[i]
        if weight > 0.0:
            for j in range(d):
                scaled = weight * X[i, j]
                for k in range(j + 1):
                    matrix[j, k] += scaled * X[i, k]
                matrix[d, j] += scaled
            matrix[d, d] += weight
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
        if not pivot > 1e-10 * matrix[j, j]:  # a smaller share is rounding
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
    enough = 0.01 * size  # a share of the square of the first residual
    for _ in range(min(p, 100) + 1):
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
    for sweep in range(50):
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
    for _ in range(100):  # far from all margins of 0 a model promises far too much
        new_value = penalty_at(penalty, theta, direction, step)
        new_value += loss_on_line(loss, margins, changes, step, costs, powers)
        if new_value <= value + 0.01 * step * promise:
            break
        step *= 0.5
    return step, new_value


@kernel
def newton_fit(X, signs, costs, loss, columns, max_iter, tol, theta):
    """Fit a linear classifier to two groups of rows; return the objective and the steps taken.

    ``X (m, d)``, the `signs` 1 or -1 and the `costs` of the rows are of shape (m,), `loss` is a
    position in `LOSSES`. ``theta (d + 1,)``, the weights and the constant, holds the start and is
    overwritten. The penalty is L1 where `columns` are ``s_i (x_i, 1)`` of the rows, one feature
    after the other, L2 where None. A fit ends when a step promises to lower the objective by less
    than the share `tol`.
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
    value += loss_on_line(loss, margins, changes, 0.0, costs, powers)
    for n_iter in range(max_iter):
        loss_derivatives(loss, margins, costs, powers, slopes, curvatures)
        for j in range(d + 1):
            grad[j] = theta[j] if penalty == _L2 and j < d else 0.0
        for i in range(m):
            if slopes[i] != 0.0:
                add_row(grad, X, i, slopes[i] * signs[i])
        promise = 0.0
        if columns is None:
            # Of few features a factorization is quicker.
            if d > 24 or not exact_step(X, curvatures, grad, direction):
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


GROUPS = ("one_vs_one", "one_vs_rest", "random")
"""Names of the ways to form two groups of classes."""


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
    groups : {"one_vs_one", "one_vs_rest", "random"}, default="one_vs_one"
        Which groups of classes are told apart: each class from each other one, each class from the
        others together, or random halves of the classes.
    n_groups : int, at least 1, default=10
        Number of random halves.
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
        self.fit(node.X, 2.0 * node.y - 1.0, node.sample_weight, theta)
        if not np.isfinite(theta).all():
            return None
        return Split(theta[:-1].copy(), -float(theta[-1]), np.nan)

    def fit(
        self,
        X: np.ndarray,
        signs: np.ndarray,
        sample_weight: np.ndarray,
        theta: np.ndarray,
    ) -> tuple[float, int]:
        """Fit a classifier of two groups of rows over its start, ``theta (d + 1,)``."""
        return newton_fit(
            # Kernels hand it rows that can be written; it is compiled for these alone.
            X if X.flags.writeable else X.copy(),
            signs,
            self.C * sample_weight,
            LOSSES.index(self.loss),
            np.vstack([signs * X.T, signs]) if self.penalty == "l1" else None,
            self.max_iter,
            self.tol,
            theta,
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
            self.fit(X, signs[rows], node.sample_weight[rows], theta)
            length = np.linalg.norm(theta[:-1])
            if 0.0 < length < np.inf:
                plane = theta[:-1] / length, -float(theta[-1] / length)
                best = better_split(best, node, plane)
        return best

    def _sides(
        self, codes: np.ndarray, n_classes: int, stream: np.ndarray
    ) -> Iterator[np.ndarray]:
        """Yield the sides of the classes, 1, -1 or 0 for none, of each two groups to tell apart."""
        # One by one: all of them at once would take memory that grows with the cube of the classes.
        present, every = np.unique(codes), np.arange(n_classes)
        if self.groups == "one_vs_one" or present.size <= 2:
            for first, second in combinations(present, 2):
                yield 1 * (every == first) - 1 * (every == second)
        elif self.groups == "one_vs_rest":
            for code in present:
                yield np.where(every == code, 1, -1)
        else:
            generator = as_generator(stream)
            for _ in range(self.n_groups):
                sides = np.zeros(n_classes, dtype=np.int64)
                while abs(sides.sum()) == present.size or not sides.any():
                    sides[present] = 2 * generator.integers(0, 2, present.size) - 1
                yield sides


# ---- splits on few features ----------------------------------------------------------------------


WIDTHS = ("same", "fewer", "any")
"""Names of the ways to choose how many features a split has."""

# Costs that differ by less, as a share of the whole cost, are equal.
_TIE_SHARE = 1e-9
_LOOKED_AT = 48  # features of many, among which a split is searched


class Groups(NamedTuple):
    """Two groups of rows that a split is to part, and how its classifiers are fitted."""

    spread: np.ndarray  # (d,): standard deviations of the features
    s: np.ndarray  # (n,): room for projections
    order: np.ndarray  # (n,) int32: room for sorting, as `sort`
    sort: SortScratch
    X: np.ndarray  # (n, d)
    goes_right: np.ndarray  # (n,) int32: 1 for rows that belong to the right, or 0
    cost: np.ndarray  # (n,): of each row on the wrong side
    signs: np.ndarray  # (n,): 1 or -1, for `newton_fit`
    costs: np.ndarray  # (n,): C times the cost, for `newton_fit`
    loss: int  # position in `LOSSES`
    max_iter: int  # most Newton steps of a fit
    tol: float
    term_cost: float  # penalty for each term after a split's first, in the rows' costs


@inner_kernel
def cheapest_threshold(groups, wish):
    """Return the least cost of rows on the wrong sides, its threshold, and the sign of the normal.

    `groups.s` holds the projections. Of equal costs the threshold nearest to `wish` is taken, and
    where that is NaN the one in the widest gap.
    """
    # A scan of its own: `line_search`, whose rows move at any speed, takes a quarter more time.
    s, order = groups.s, groups.order
    goes_right, cost = groups.goes_right, groups.cost
    n = s.shape[0]
    sort_order(s, n, order, groups.sort)
    wrong = total = 0.0
    for i in range(n):
        total += cost[i]
        wrong += 0.0 if goes_right[i] == 1 else cost[i]
    lowest, rank, threshold, sign = np.inf, np.inf, 0.0, 1.0
    for t in range(n - 1):
        i = order[t]
        wrong += cost[i] if goes_right[i] == 1 else -cost[i]
        low, high = s[i], s[order[t + 1]]
        if not apart(low, high):
            continue
        here = min(wrong, total - wrong)
        if here > lowest + _TIE_SHARE * total:
            continue
        middle = between(low, high)
        merit = low - high if math.isnan(wish) else abs(middle - wish)
        if here < lowest - _TIE_SHARE * total or merit < rank:
            lowest, rank, threshold, sign = here, merit, middle, 1.0
            if total - wrong < wrong:
                threshold, sign = -between(-high, -low), -1.0
    return lowest, threshold, sign


@inner_kernel
def try_axis(groups, best, split):
    """Put the cheapest split on one feature into `split` if it costs no more than `best`."""
    n, d = groups.X.shape
    is_chosen = False
    for j in range(d):
        for i in range(n):
            groups.s[i] = groups.X[i, j]
        here, threshold, sign = cheapest_threshold(groups, np.nan)
        # Of equal costs one feature is enough, the first of these.
        if here < best or (here == best < np.inf and not is_chosen):
            best, is_chosen = here, True
            split[:] = 0.0
            split[j], split[d] = sign, -sign * threshold
    return best


@inner_kernel
def try_support(groups, support, theta, best, split):
    """Fit a classifier on some features; keep its split in `split` if it is below `best`."""
    n, d = groups.X.shape
    width = support.shape[0]
    part, own = np.empty((n, width)), np.empty(width + 1)
    for j in range(width):
        own[j] = theta[support[j]]
        for i in range(n):
            part[i, j] = groups.X[i, support[j]]
    own[width] = theta[d]
    newton_fit(
        part,
        groups.signs,
        groups.costs,
        groups.loss,
        None,
        groups.max_iter,
        groups.tol,
        own,
    )
    theta[:] = 0.0
    for j in range(width):
        theta[support[j]] = own[j]
    theta[d] = own[width]
    for i in range(n):
        groups.s[i] = 0.0
        for j in range(width):
            groups.s[i] += own[j] * part[i, j]
    here, threshold, sign = cheapest_threshold(groups, -theta[d])
    n_terms = 0  # a feature that is constant here has no weight
    for j in range(width):
        n_terms += own[j] != 0.0
    here += groups.term_cost * max(0, n_terms - 1)
    if here < best:
        best = here
        for j in range(d):
            split[j] = sign * theta[j]
        split[d] = -sign * threshold
    return best


@inner_kernel
def spreads(X):
    """Return the standard deviation of each column, exactly 0 for one of equal numbers."""
    n, d = X.shape
    mean, spread = np.zeros(d), np.zeros(d)
    for i in range(n):
        for j in range(d):
            mean[j] += (X[i, j] - X[0, j]) / n
    for i in range(n):
        for j in range(d):
            spread[j] += (X[i, j] - X[0, j] - mean[j]) ** 2
    return np.sqrt(spread / n)


@inner_kernel
def strongest(support, theta, spread, n_kept):
    """Return the `n_kept` features of a support with the most influence, in rising order."""
    width = support.shape[0]
    influence = np.empty(width)
    for j in range(width):
        here = abs(theta[support[j]]) * spread[support[j]]
        influence[j] = here if here < np.inf else 0.0
    for _ in range(width - n_kept):
        weakest = 0
        for j in range(1, width):
            if influence[j] <= influence[weakest]:
                weakest = j
        influence[weakest] = np.inf
    kept, n = np.empty(n_kept, dtype=np.int64), 0
    for j in range(width):
        if influence[j] < np.inf:
            kept[n] = support[j]
            n += 1
    return kept


@inner_kernel
def nonzero_features(weights):
    """Return the features whose weights are not 0, in rising order."""
    used, n = np.empty(weights.shape[0], dtype=np.int64), 0
    for j in range(weights.shape[0]):
        if weights[j] != 0.0:
            used[n] = j
            n += 1
    return used[:n]


@inner_kernel
def with_feature(support, feature):
    """Return a support and a feature that it lacks, in rising order."""
    wider, before = np.empty(support.shape[0] + 1, dtype=np.int64), 0
    for n in range(support.shape[0]):
        if support[n] < feature:
            before += 1
        wider[n + (support[n] > feature)] = support[n]
    wider[before] = feature
    return wider


@inner_kernel
def most_promising(groups, theta, support):
    """Return the feature off the support along which the loss falls fastest; -1 for none."""
    # A feature of the support may have the weight 0: where costs are tiny, a fit changes nothing.
    # Slopes are those of features of standard deviation 1 and mean 0. `s` holds the projections.
    n, d = groups.X.shape
    margins, powers = np.empty(n), np.empty(n)
    slopes, curvatures = np.empty(n), np.empty(n)
    for i in range(n):
        margins[i] = groups.signs[i] * (groups.s[i] + theta[d])
        powers[i] = math.exp(-abs(margins[i]))
    loss_derivatives(groups.loss, margins, groups.costs, powers, slopes, curvatures)
    total, slope, mean = 0.0, np.zeros(d), np.zeros(d)
    for i in range(n):
        pull = slopes[i] * groups.signs[i]
        total += pull
        for j in range(d):
            slope[j] += pull * groups.X[i, j]
            mean[j] += groups.X[i, j] / n
    is_used = np.zeros(d, dtype=np.bool_)
    for j in range(support.shape[0]):
        is_used[support[j]] = True
    feature, steepest = -1, 0.0
    for j in range(d):
        if not is_used[j] and groups.spread[j] > 0.0:
            here = abs(slope[j] - total * mean[j]) / groups.spread[j]
            if here > steepest:
                feature, steepest = j, here
    return feature


@inner_kernel
def swap_terms(groups, max_width, best, split):
    """Add the most promising feature to a split, or put it in the place of the weakest one."""
    d = groups.X.shape[1]
    for _ in range(3):
        support = nonzero_features(split[:d])
        if support.shape[0] > 12:  # wider splits are left as they are
            break
        theta = split.copy()
        before = best = try_support(groups, support, theta, best, split)
        new = most_promising(groups, theta, support)
        if new < 0:
            break
        start, wider = theta.copy(), with_feature(support, new)
        if wider.shape[0] <= max_width:
            best = try_support(groups, wider, theta, best, split)
        kept = strongest(support, start, groups.spread, support.shape[0] - 1)
        best = try_support(groups, with_feature(kept, new), start, best, split)
        if best >= before:
            break
    return best


@kernel
def next_width(width):
    """Return how many terms stay when the weakest of so many leave: of few terms all but one."""
    return width - 1 if width <= 5 else np.int64(0.7 * width)


@kernel
def sparse_split(rows, theta, support, min_width, max_width, axis, swaps):
    """Find the cheapest split on at most `max_width` features; write it over ``theta (d + 1,)``.

    `rows` are what `Groups` has from `X` on, ``support`` the features to begin with: the weakest
    leave until `min_width` are left. With `axis` the best split on one feature competes, with
    `swaps` what comes of the best split when its terms are swapped. Returned is the cost.
    """
    X = rows[0]
    n, d = X.shape
    order, sort = np.empty(n, dtype=np.int32), make_sort_scratch(n)
    groups = Groups(spreads(X), np.empty(n), order, sort, *rows)
    split, best = np.zeros(d + 1), np.inf
    while True:
        width = support.shape[0]
        bound = best if width <= max_width else -np.inf  # nothing costs less
        cost_now = try_support(groups, support, theta, bound, split)
        best = cost_now if width <= max_width else best
        if width <= min_width:
            break
        support = strongest(
            support, theta, groups.spread, max(min_width, next_width(width))
        )
    if axis:
        best = try_axis(groups, best, split)
    if swaps and best < np.inf:
        best = swap_terms(groups, max_width, best, split)
    for j in range(d + 1):  # no slice: it would compile the texts of numba's errors
        theta[j] = split[j]
    return best


def cheapest_split(
    node: Node,
    theta: np.ndarray,
    support: np.ndarray,
    *,
    loss: str,
    C: float,
    max_iter: int,
    tol: float,
    min_width: int,
    max_width: int,
    term_cost: float = 0.0,
    axis: bool = False,
    swaps: bool = False,
) -> float:
    """Write the cheapest split of two groups of rows over its start; return what it costs."""
    rows = (
        node.X,
        node.y,
        node.sample_weight,
        np.where(node.y == 1, 1.0, -1.0),
        C * node.sample_weight,
        LOSSES.index(loss),
        max_iter,
        tol,
        term_cost,
    )
    cost: float = sparse_split(rows, theta, support, min_width, max_width, axis, swaps)
    return cost if np.isfinite(theta).all() else np.inf


def fit_on(node: Node, theta: np.ndarray, support: np.ndarray, C: float) -> bool:
    """Fit the logistic split on some features at its cheapest threshold; say whether it is one."""
    cost = cheapest_split(
        node,
        theta,
        support,
        loss="logistic",
        C=C,
        max_iter=10,
        tol=1e-2,
        min_width=support.size,
        max_width=support.size,
    )
    return cost < np.inf


def strengths(node: Node) -> np.ndarray:
    """Return how strongly each feature tells the two groups of a reduced problem apart."""
    weight = node.sample_weight / node.sample_weight.sum()
    side = node.y - weight @ node.y
    mean = weight @ node.X
    covariance = (weight * side) @ node.X
    variance = weight @ (node.X * node.X) - mean * mean
    least = 1e-12 * (1.0 + mean * mean)
    return np.where(variance > least, covariance**2 / np.maximum(variance, least), 0.0)


def screened(node: Node, weights: np.ndarray, n_kept: int) -> np.ndarray:
    """Return the features among which a split is searched where there are many."""
    # The present terms come first, by their influence, then the features that tell the two groups
    # apart best by themselves (Fan and Lv 2008, "Sure independence screening for ultrahigh
    # dimensional feature space", JRSS B, section 2).
    influence = np.abs(weights) * node.X.std(axis=0)
    return np.sort(np.lexsort((-strengths(node), -influence))[:n_kept])


@dataclass(frozen=True, repr=False)
class Sparse(Configuration):
    """A linear classifier of few features, or the best split on one feature, whichever costs less.

    Of more than 48 features it looks at 48, the present ones and those that part the rows best by
    themselves (`screened`); where a split keeps its terms, at all of these.
    """

    # The classifiers that are tried: one on the features of the present split; one without the
    # weakest of them, three tenths or, of few, one; or those of all widths, from all features down
    # to one, and what swaps of single terms make of the best.
    widths: Annotated[str, StrOptions(set(WIDTHS))] = "any"
    max_features: Annotated[
        int | None, Interval(Integral, 1, None, closed="left"), None
    ] = None
    # Penalty for each term after a split's first, in the rows' costs.
    term_cost: float = 0.0
    loss: Annotated[str, StrOptions(set(LOSSES))] = "logistic"
    C: float = 1.0  # cost of the loss of a row of cost 1
    max_iter: int = 20  # most Newton steps of a fit
    # A fit ends when a step promises to lower its objective by a lesser share.
    tol: float = 1e-3

    def __call__(self, node: Node, stream: np.ndarray) -> Split | None:
        """Find the split of a node of two classes (see `Splitter`); draws nothing."""
        if node.n_classes != 2:
            raise ValueError(
                f"the node has {node.n_classes} classes: a sparse split parts two."
            )
        return self.refit(node, np.zeros(node.X.shape[1]), 0.0)

    def refit(self, node: Node, weights: np.ndarray, threshold: float) -> Split | None:
        """Find a split that sends class 1 of two classes right, starting from a hyperplane."""
        d = node.X.shape[1]
        support = np.flatnonzero(weights)
        n_kept = _LOOKED_AT if self.widths == "any" else max(_LOOKED_AT, support.size)
        if d > n_kept:
            among = screened(node, weights, n_kept)
            X = read_only(np.take(node.X, among, axis=1))
            split = self.refit(node._replace(X=X), weights[among], threshold)
            if split is None:
                return None
            weights = np.zeros(d)
            weights[among] = split.weights
            return split._replace(weights=weights)
        if self.widths == "any" or support.size == 0:
            support = np.arange(d)
        max_width = d if self.max_features is None else min(self.max_features, d)
        width = {
            "same": support.size,
            "fewer": max(1, next_width(support.size)),
            "any": 1,
        }
        min_width = min(width[self.widths], max_width)
        theta = start_at(node.X, weights, threshold)
        score = cheapest_split(
            node,
            theta,
            support,
            loss=self.loss,
            C=float(self.C),
            max_iter=self.max_iter,
            tol=self.tol,
            min_width=min_width,
            max_width=min_width if self.widths == "fewer" else max_width,
            term_cost=self.term_cost,
            axis=True,
            swaps=self.widths == "any",
        )
        if score == np.inf:
            return None
        return Split(theta[:-1].copy(), -float(theta[-1]), score)
