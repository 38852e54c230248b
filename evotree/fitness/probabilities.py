"""Class probabilities: how soft sides are fitted to a finished tree, and what rows lose by them."""

import math
import time
from collections.abc import Callable, Mapping
from types import MappingProxyType

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit, log_softmax, softmax

from evotree._blas import one_blas_thread
from evotree.dataset import Dataset
from evotree.tree import (
    ObliqueTree,
    SoftSides,
    raise_labels,
    soft_reach,
    split_distances,
)

SLOPE = 1.5
"""The slope that is expected before any row is seen, where the median distance is 1."""

STARTS = (1.5, 6.0, 24.0, 96.0)
"""Common slopes to begin with: the last leave little of a deep tree soft."""

_MAX_ROWS, _MAX_ITERATIONS = 50_000, 50
# These cost a tenth of a fit for all trees of its front together.
# cells are rows times leaves
_BRIEF_ROWS, _BRIEF_CELLS, _BRIEF_ITERATIONS = (
    500,
    30_000,
    10,
)
_FEW_OF_CLASS = 10  # rows that are kept of each class, if it has as many
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
    """

    def stop_in_time(intermediate_result: object) -> None:
        if time.perf_counter() >= end:
            raise StopIteration

    max_rows = max(_BRIEF_ROWS, _BRIEF_CELLS // tree.n_leaves) if brief else _MAX_ROWS
    problem = _Likelihood(tree, dataset, max_rows)
    # The products are small: several threads of BLAS would wait for each other most of the time.
    with one_blas_thread():
        found = minimize(
            problem,
            problem.start(end),
            jac=True,
            method="L-BFGS-B",
            callback=stop_in_time,
            options={"maxiter": _BRIEF_ITERATIONS if brief else _MAX_ITERATIONS},
        )
        return problem.sides(found.x)


def probabilities_of(
    tree: ObliqueTree, dataset: Dataset, X: np.ndarray, kind: str = "soft"
) -> np.ndarray:
    """Return what a tree that was fitted to a data set says of rows: ``"soft"``, or of leaves."""
    if kind == "soft":
        return fit_soft_sides(tree, dataset, brief=True).predict(tree, X)
    return tree.values[tree.apply(X)]


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
    away = split_distances(tree, X)
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
    shares = np.round(shares, _DIGITS)
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


_DIGITS = 9  # of probabilities that are ranked

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
        # Of a rare class rows are kept in spite of the step: it would have no probability.
        kept = inside[:: max(1, min(step, len(inside) // _FEW_OF_CLASS))]
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
        self.classes, self.codes = np.unique(dataset.y[rows], return_inverse=True)
        self.tree = tree
        self.n_classes = len(self.classes)
        self.inner = np.flatnonzero(~tree.is_leaf)
        self.leaves = np.flatnonzero(tree.is_leaf)
        self.right = [tree.right(k) for k in self.inner.tolist()]
        self.strength = np.count_nonzero(tree.weights[self.inner], axis=1).astype(
            np.float64
        )
        reached = tree.apply(X)
        self.distances = split_distances(tree, X)
        self.scale = self._typical_distances(X, reached)
        self.distances /= self.scale[:, None]
        self.one_hot = (self.codes[:, None] == np.arange(self.n_classes)).astype(
            np.float64
        )
        weighted = self.weight[:, None] * self.one_hot
        self.counts = np.zeros((len(tree), self.n_classes))
        np.add.at(self.counts, reached, weighted)
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
        # class weights of the leaves
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
