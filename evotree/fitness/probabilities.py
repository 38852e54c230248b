"""Class probabilities: soft sides of a finished tree, logistic regressions, and what rows lose.

Soft sides are fitted to a tree that stays as it is. A regression is logistic, of two classes, or of
counts, whose logarithm is linear (Poisson regression); it is penalized by squared coefficients. It
is what trees of logistic models (`evotree.operators.initialization.logistic`) and log-linear models
of leaves (`evotree.fitness.linear_leaves`) are made of.
"""

import math
import time
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit, log_softmax, softmax

from evotree.dataset import Dataset
from evotree.parallel import one_blas_thread
from evotree.tree import (
    ObliqueTree,
    SoftSides,
    raise_labels,
    soft_reach,
)

SLOPE = 1.5
"""The slope that is expected before any row is seen, where the median distance is 1."""

STARTS = (1.5, 6.0, 24.0, 96.0)
"""Common slopes to begin with: the last leave little of a deep tree soft."""

_MAX_ROWS, _MAX_ITERATIONS = 50_000, 50
# These cost a tenth of a fit for all trees of its front together; cells are rows times leaves.
_BRIEF_ROWS, _BRIEF_CELLS, _BRIEF_ITERATIONS = 500, 30_000, 10
_BLOCK = 2048  # rows whose probabilities are held at once
_EPSILON = np.finfo(np.float64).eps
_LEAST_SCALE = np.finfo(np.float64).tiny / _EPSILON  # by which slopes can be divided


def fit_soft_sides(
    tree: ObliqueTree, dataset: Dataset, *, brief: bool = False, end: float = math.inf
) -> SoftSides:
    """Fit soft sides to the training rows of a tree, which stays as it is.

    The likelihood of the classes is maximized with a penalty, by L-BFGS, beginning near the tree.
    Distances are divided by their median over the rows that reach the node. The tree was fitted to
    the same rows, a split the more so the more terms it has, so that their distances look better
    than those of other rows will. Hence the logarithm of a slope has a normal prior around that of
    `SLOPE`, whose precision is the number of terms; the place where both sides are equally likely
    has a standard normal prior around the hyperplane; and each leaf has one row more, of the class
    shares of all rows.

    A brief fit of many rows takes the slopes and places from some of them, which would say too
    little of each of many leaves; the shares are those that all rows have on these sides.
    """
    max_rows = max(_BRIEF_ROWS, _BRIEF_CELLS // tree.n_leaves) if brief else _MAX_ROWS
    problem = _Likelihood(tree, dataset, max_rows)
    # The products are small: several threads of BLAS would wait for each other most of the time.
    with one_blas_thread():
        start = problem.start(end)
        if not brief:
            found = _minimum(problem, start, end, maxiter=_MAX_ITERATIONS)
        elif len(problem.codes) == dataset.n_distinct:
            found = _minimum(problem, start, end, maxiter=_BRIEF_ITERATIONS)
        else:
            found = problem.with_shares(problem.best_places(start, end), dataset)
        return problem.sides(found)


def _minimum(
    loss: Callable[[np.ndarray], tuple[float, np.ndarray]],
    start: np.ndarray,
    end: float,
    **options: float,
) -> np.ndarray:
    """Return where a loss is least, given with its gradient, by L-BFGS; or where time ended it."""

    def stop_in_time(intermediate_result: object) -> None:
        if time.perf_counter() >= end:
            raise StopIteration

    return minimize(
        loss,
        start,
        jac=True,
        method="L-BFGS-B",
        callback=stop_in_time,
        options=options,
    ).x


def quick_shares(
    tree: ObliqueTree,
    X: np.ndarray,
    y: np.ndarray,
    weight: np.ndarray,
    *,
    soft: bool = True,
) -> np.ndarray:
    """Return the probabilities of rows by one slope of all splits, of some that of least log loss.

    Without soft sides they are those of the leaves.

    Distances are in units of their mean over the rows that reach the node, and leaves have the
    class shares of their rows and of one row more, which has those of all rows.
    """
    leaves = tree.apply(X)
    is_leaf = tree.is_leaf
    inner = np.flatnonzero(~is_leaf)
    counts = np.zeros((len(tree), tree.values.shape[1]))
    np.add.at(counts, (leaves, y), weight)
    total = counts.sum(axis=0)
    shares = counts[is_leaf] + total / total.sum()
    shares /= shares.sum(axis=1, keepdims=True)
    if not soft or not inner.size:
        every = np.zeros(counts.shape)
        every[is_leaf] = shares
        return every[leaves]
    away = tree.distances(X)
    is_below = leaves >= inner[:, None]
    is_below &= leaves < (inner + tree.subtree_size[inner])[:, None]
    weighted = is_below * weight
    scale = (np.abs(away) * weighted).sum(axis=1) / weighted.sum(axis=1)
    away /= np.where(scale > _LEAST_SCALE, scale, 1.0)[:, None]
    best, least = shares, math.inf
    for slope in STARTS[:-1]:
        found = soft_reach(tree, expit(slope * away))[is_leaf].T @ shares
        lost = float(log_losses(found, y, weight) @ weight)
        if lost < least:
            best, least = found, lost
    return raise_labels(best, tree.majority[leaves])


# ---- what rows lose ------------------------------------------------------------------------------


def log_losses(shares: np.ndarray, y: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Return the logarithmic losses of rows, by probabilities of at least `LEAST`."""
    return -np.log(np.maximum(shares[np.arange(len(y)), y], LEAST))


def brier_losses(shares: np.ndarray, y: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Return the quadratic losses of rows (Brier 1950)."""
    return 1.0 - 2.0 * shares[np.arange(len(y)), y] + (shares**2).sum(axis=1)


def ranking_losses(shares: np.ndarray, y: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Return by which share of the rows of other classes each row is outranked in its own.

    The weighted mean is one less the area under the ROC curve of each class against the others,
    weighted by the rows of the class. Equal probabilities, but for rounding, count half.
    """
    losses = np.zeros(len(y))
    shares = np.round(shares, 9)  # those that agree in so many digits have one rank
    for label in np.unique(y).tolist():
        inside = y == label
        if inside.all():
            continue
        others = np.sort(shares[~inside, label])
        order = np.argsort(shares[~inside, label], kind="stable")
        total = np.append(0.0, np.cumsum(weight[~inside][order]))
        below, upto = (
            total[np.searchsorted(others, shares[inside, label], side)]
            for side in ("left", "right")
        )
        losses[inside] = 1.0 - 0.5 * (below + upto) / total[-1]
    return losses


LEAST = 1e-3
"""No probability counts as less in the logarithmic loss."""

PROBABILITY_LOSSES: Mapping[
    str | None, Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]
] = MappingProxyType(
    {
        "log_loss": log_losses,
        "brier": brier_losses,
        "roc_auc": ranking_losses,
    }
)
"""Losses of rows by name: functions of probabilities (n_rows, n_classes), codes and weights."""


# ---- the fit of soft sides -----------------------------------------------------------------------


def _thinned(dataset: Dataset, max_rows: int) -> tuple[np.ndarray | slice, np.ndarray]:
    """Return about so many rows, and weights that add up in each class as those of all rows do."""
    step = -(-dataset.n_distinct // max_rows)
    if step == 1:
        return slice(None), dataset.sample_weight
    is_kept = np.zeros(dataset.n_distinct, dtype=bool)
    factors = np.ones(dataset.n_classes)
    for label in np.unique(dataset.y).tolist():
        inside = np.flatnonzero(dataset.y == label)
        # Of a rare class ten rows are kept in spite of the step: it would have no probability.
        kept = inside[:: max(1, min(step, len(inside) // 10))]
        is_kept[kept] = True
        weight = dataset.sample_weight
        factors[label] = weight[inside].sum() / weight[kept].sum()
    rows = np.flatnonzero(is_kept)
    return rows, dataset.sample_weight[rows] * factors[dataset.y[rows]]


class _Likelihood:
    """The penalized likelihood of soft sides, less than 0, and its gradient.

    Parameters are the logarithms of the slopes, the places at which both sides are equally likely,
    in median distances, and the logits of the leaves' shares.
    """

    def __init__(
        self, tree: ObliqueTree, dataset: Dataset, max_rows: int = _MAX_ROWS
    ) -> None:
        rows, self.weight = _thinned(dataset, max_rows)
        X = np.ascontiguousarray(dataset.raw[rows])
        # Classes without rows have no probability anywhere.
        self.classes, codes = np.unique(dataset.y, return_inverse=True)
        self.codes = codes[rows]
        self.tree = tree
        self.n_classes = len(self.classes)
        self.inner = np.flatnonzero(~tree.is_leaf)
        self.leaves = np.flatnonzero(tree.is_leaf)
        self.right = [tree.right(k) for k in self.inner.tolist()]
        self.strength = np.count_nonzero(tree.weights[self.inner], axis=1).astype(
            np.float64
        )
        leaves = tree.apply(dataset.raw)
        self.distances = tree.distances(X)
        self.scale = self._typical_distances(X, leaves[rows])
        self.distances /= self.scale[:, None]
        self.one_hot = (self.codes[:, None] == np.arange(self.n_classes)).astype(
            np.float64
        )
        weighted = self.weight[:, None] * self.one_hot
        self.counts = np.zeros((len(tree), self.n_classes))
        np.add.at(self.counts, (leaves, codes), dataset.sample_weight)
        total = weighted.sum(axis=0) + 1.0 / self.n_classes
        self.prior = total / total.sum()

    def _typical_distances(self, X: np.ndarray, reached: np.ndarray) -> np.ndarray:
        """Return the median distance of the rows that reach each split, or else the mean.

        The mean stands where the median row is on the hyperplane, but for rounding: just beside
        it stand the rows of 0 of a split ``x > 0``, whose threshold is the next number below 0.
        """
        scale = np.ones(len(self.inner))
        for split, k in enumerate(self.inner):
            rows = np.flatnonzero(
                (reached >= k) & (reached < k + self.tree.subtree_size[k])
            )
            away = np.abs(self.distances[split, rows])
            weight = self.weight[rows]
            if away.any():
                order = np.argsort(away, kind="stable")
                before = np.cumsum(weight[order])
                median = order[np.searchsorted(before, 0.5 * before[-1])]
                magnitude = np.abs(self.tree.weights[k]) @ np.abs(X[rows[median]])
                rounding = max(
                    _EPSILON * self.strength[split] * magnitude, _LEAST_SCALE
                )
                scale[split] = away[median]
                if away[median] <= rounding:
                    scale[split] = max(np.average(away, weights=weight), rounding)
        return scale

    def start(self, end: float = math.inf) -> np.ndarray:
        """Return the shares of the leaves, and the best of the `STARTS` that there is time for."""
        n_splits = len(self.inner)
        shares = self.counts[self.leaves] + self.prior
        logits = np.log(shares / shares.sum(axis=1, keepdims=True)).ravel()
        starts = [
            np.concatenate(
                [np.full(n_splits, np.log(slope)), np.zeros(n_splits), logits]
            )
            for slope in STARTS
        ]

        def value(parameters: np.ndarray) -> float:
            is_late = parameters is not starts[0] and time.perf_counter() >= end
            return math.inf if is_late else self(parameters)[0]

        return min(starts, key=value)

    def best_places(self, start: np.ndarray, end: float) -> np.ndarray:
        """Return parameters whose slopes and places are better, by a few steps."""
        sides, logits = np.split(start, [2 * len(self.inner)])

        def loss(found: np.ndarray) -> tuple[float, np.ndarray]:
            value, gradient = self(np.concatenate([found, logits]))
            return value, gradient[: len(found)]

        found = _minimum(loss, sides, end, maxiter=_BRIEF_ITERATIONS)
        return np.concatenate([found, logits])

    def with_shares(self, parameters: np.ndarray, dataset: Dataset) -> np.ndarray:
        """Return parameters with the shares of all rows, by one step of expectation-maximization.

        A row counts at each leaf with the probability that it is there, given its class.
        """
        log_slopes, places, logits = self._parts(parameters)
        shares = softmax(logits, axis=1)
        codes = np.searchsorted(self.classes, dataset.y)
        expected = np.tile(self.prior, (len(self.leaves), 1))
        for first in range(0, len(codes), _BLOCK):
            rows = slice(first, first + _BLOCK)
            distances = self.tree.distances(dataset.raw[rows]) / self.scale[:, None]
            log_odds = np.exp(log_slopes)[:, None] * (distances - places[:, None])
            joint = soft_reach(self.tree, expit(log_odds))
            joint *= dataset.sample_weight[rows] / self._join(
                joint, shares, codes[rows]
            )
            is_class = codes[rows, None] == np.arange(self.n_classes)
            expected += joint[self.leaves] @ is_class
        logits = np.log(expected / expected.sum(axis=1, keepdims=True))
        return np.concatenate([log_slopes, places, logits.ravel()])

    def _parts(
        self, parameters: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        n_splits = len(self.inner)
        logits = parameters[2 * n_splits :].reshape(-1, self.n_classes)
        return parameters[:n_splits], parameters[n_splits : 2 * n_splits], logits

    def __call__(self, parameters: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the value and its gradient."""
        log_slopes, places, logits = self._parts(parameters)
        slopes = np.exp(log_slopes)
        shares = softmax(logits, axis=1)
        excess = log_slopes - np.log(SLOPE)
        value = 0.5 * (self.strength @ excess**2 + places @ places)
        value -= (log_softmax(logits, axis=1) @ self.prior).sum()
        of_slopes = self.strength * excess
        of_places = places.copy()
        # The class weights of the leaves.
        expected = np.tile(self.prior, (len(self.leaves), 1))
        for first in range(0, len(self.codes), _BLOCK):
            rows = slice(first, first + _BLOCK)
            log_odds = slopes[:, None] * (self.distances[:, rows] - places[:, None])
            right = expit(log_odds)
            joint = soft_reach(self.tree, right)
            likelihood = self._join(joint, shares, self.codes[rows])
            value -= self.weight[rows] @ np.log(likelihood)
            # The weight of each row, shared out among the nodes given the row's class.
            joint /= likelihood  # no more than 1 now, so that no weight overflows
            joint *= self.weight[rows]
            for split, k in enumerate(self.inner.tolist()):
                # Of what is at the split, the part that should go right less the one that does.
                missing = joint[self.right[split]] - joint[k] * right[split]
                of_slopes[split] -= missing @ log_odds[split]
                of_places[split] += slopes[split] * missing.sum()
            expected += joint[self.leaves] @ self.one_hot[rows]
        of_logits = expected.sum(axis=1, keepdims=True) * shares - expected
        return value, np.concatenate([of_slopes, of_places, of_logits.ravel()])

    def _join(
        self, reached: np.ndarray, shares: np.ndarray, codes: np.ndarray
    ) -> np.ndarray:
        """Multiply the probabilities of nodes by those of classes there; return the root's."""
        for leaf, k in enumerate(self.leaves.tolist()):
            reached[k] *= shares[leaf, codes]
        for k, after in zip(self.inner[::-1].tolist(), self.right[::-1], strict=True):
            np.add(reached[k + 1], reached[after], out=reached[k])
        return reached[0] + np.finfo(np.float64).tiny

    def sides(self, parameters: np.ndarray) -> SoftSides:
        """Return the soft sides of some parameters, in raw units."""
        log_slopes, places, logits = self._parts(parameters)
        slopes = np.zeros(len(self.tree))
        intercepts = np.zeros(len(self.tree))
        slopes[self.inner] = np.exp(log_slopes) / self.scale
        intercepts[self.inner] = -np.exp(log_slopes) * places
        shares = np.zeros(self.tree.values.shape)
        shares[np.ix_(self.leaves, self.classes)] = softmax(logits, axis=1)
        return SoftSides(slopes, intercepts, shares)


# ---- logistic regressions ------------------------------------------------------------------------


COSTS = (0.003, 0.03, 0.3, 3.0)
"""Costs of a row's loss against the penalty of the coefficients, of standardized features."""

HALVINGS = 4
"""How often the terms of a model are halved at most."""

_FREE = 1e-4  # penalty of the intercept of the root
_MAX_STEPS = 100
_NEWTON_CELLS = (
    2e6  # rows times squared coefficients, up to which Newton's method is quicker
)


class Strength(NamedTuple):
    """How logistic and log-linear models are regularized."""

    # Cost of a row's loss; of rates, of that at which the first term is in.
    C: float
    halvings: int = 0  # of the terms of the root; of rates, of the share of the L1 norm


class ModelRows(NamedTuple):
    """Rows of two classes, or of counts, which models are fitted to."""

    X: np.ndarray
    y: np.ndarray  # codes, or counts in units of their mean
    sample_weight: np.ndarray
    spread: np.ndarray  # of the features
    of_counts: bool = False

    @property
    def n_scores(self) -> int:
        """The scores of a row: of classes two, of which the first is 0, of counts one."""
        return 1 if self.of_counts else 2


def fit_scores(
    dataset: ModelRows,
    inside: np.ndarray | slice,
    C: float,
    start: np.ndarray,
    is_free: np.ndarray,
    prior: np.ndarray | None = None,
    end: float = math.inf,
) -> np.ndarray:
    """Return scores of the classes, of shape (n_scores, n_features + 1), the intercepts last.

    Of counts there is one score, the logarithm of their mean.

    Those of `start` that are not free stay as they are; the others are drawn to `prior`, or to 0.
    """
    y, weight = dataset.y[inside], dataset.sample_weight[inside]
    n_rows, of_counts = len(y), dataset.of_counts
    rows = np.column_stack([dataset.X[inside], np.ones(n_rows)])
    penalty = np.append(dataset.spread**2, 1.0) / C
    if prior is None:
        penalty[-1] = _FREE
    centre = np.zeros_like(start) if prior is None else prior
    own = np.arange(n_rows), y
    is_class = (y[:, np.newaxis] == np.arange(2)).astype(np.float64)
    targets = y[:, np.newaxis] if of_counts else is_class
    scores, shares = start.copy(), targets

    def loss(free: np.ndarray) -> tuple[float, np.ndarray]:
        nonlocal shares
        scores[is_free] = free
        of_rows = rows @ scores.T
        away = scores - centre
        if of_counts:
            shares = finite_exp(of_rows)
            lost = (shares - targets * of_rows)[:, 0]
        else:
            of_rows -= of_rows.max(axis=1, keepdims=True)
            shares = np.exp(of_rows)
            total = shares.sum(axis=1, keepdims=True)
            shares /= total
            lost = np.log(total[:, 0]) - of_rows[own]
        excess = shares - targets
        gradient = (excess * weight[:, np.newaxis]).T @ rows + penalty * away
        return weight @ lost + 0.5 * (penalty * away**2).sum(), gradient[is_free]

    classes, columns = np.nonzero(is_free)

    def curvature() -> np.ndarray:  # where the loss was looked at last
        each = rows[:, columns]
        shared = each * shares[:, classes]
        weighted = shared * weight[:, np.newaxis]
        # Not before: of many classes it is large.
        own_curvature = weighted.T @ each * (classes[:, np.newaxis] == classes)
        if not of_counts:  # shares add up to 1
            own_curvature = own_curvature - weighted.T @ shared
        return own_curvature + np.diag(penalty[columns])

    n_free = len(classes)
    if n_rows * n_free**2 <= _NEWTON_CELLS:
        scores[is_free] = _newton(loss, curvature, start[is_free], end)
        return scores
    # Of many rows and coefficients there are few iterations.
    most = max(20, min(_MAX_STEPS, int(500e6 / (n_rows * n_free))))
    scores[is_free] = _minimum(loss, start[is_free], end, maxiter=most, ftol=1e-7)
    return scores


def _newton(
    loss: Callable[[np.ndarray], tuple[float, np.ndarray]],
    curvature: Callable[[], np.ndarray],
    start: np.ndarray,
    end: float,
) -> np.ndarray:
    """Return where a convex loss is least; steps that do not lower it are halved."""
    here = start
    value, gradient = loss(here)
    for _ in range(_MAX_STEPS):
        try:
            step = np.linalg.solve(curvature(), gradient)
        except np.linalg.LinAlgError:  # units so apart that penalties vanish in the sum
            step = np.linalg.lstsq(curvature(), gradient)[0]
        gain = gradient @ step
        least_gain = 1e-9 * abs(value)
        # Comparisons are such that NaN, where sums overflow, ends the steps and is not taken.
        if not gain > least_gain or time.perf_counter() >= end:
            break
        after, slope = loss(here - step)
        while not after <= value - 0.1 * gain and gain > least_gain:
            step = 0.5 * step
            gain = 0.5 * gain
            after, slope = loss(here - step)
        if not after <= value:
            break
        here = here - step
        value = after
        gradient = slope
    return here


def path_of_models(
    dataset: ModelRows,
    C: float,
    start: np.ndarray | None = None,
    halvings: int = HALVINGS,
    end: float = math.inf,
) -> Iterator[np.ndarray]:
    """Yield models of the root over some features, each of half the terms of the one before."""
    if start is None:
        start = np.zeros((dataset.n_scores, dataset.X.shape[1] + 1))
    is_free = np.ones(start.shape, dtype=bool)
    is_free[:, :-1] = np.ptp(dataset.X, axis=0) > 0.0
    is_free[:-1] = False  # one score tells two classes apart
    for _ in range(halvings + 1):
        scores = fit_scores(dataset, slice(None), C, start, is_free, end=end)
        yield scores
        terms = np.abs(scores[:, :-1]) * dataset.spread
        n_kept = max(1, int(np.count_nonzero(is_free[:, :-1])) // 2)
        is_free[:, :-1] &= terms >= np.sort(terms, axis=None)[-n_kept]
        start = np.where(is_free, scores, 0.0)


def finite_exp(scores: np.ndarray) -> np.ndarray:
    """Return exponentials that are finite."""
    return np.exp(np.minimum(scores, 500.0))
