"""Logistic models in the leaves of classification trees.

The model of the root is a multinomial logistic regression with an L2 penalty. That of any other
node is shrunk towards that of its parent, so that leaves of few rows change little of it. Models
may be sparse: the weakest half of the terms is dropped and the others are fitted again, as often as
is asked for.

References
----------
Landwehr N., Hall M., Frank E. (2005). Logistic model trees. Machine Learning 59, 161-205.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.optimize import minimize

from evotree.leaf_models import LARGEST_SCORE, ClassModels, LeafModels

if TYPE_CHECKING:
    from evotree.dataset import Dataset
    from evotree.tree import ObliqueTree

COSTS = (0.003, 0.03, 0.3, 3.0)
"""Costs of a row's loss against the penalty of the coefficients, of standardized features."""

HALVINGS = 4
"""How often the terms of a model are halved at most."""

_FREE = 1e-4  # penalty of the intercept of the root
_MAX_ITERATIONS = 100
_MAX_CELLS = 500e6  # rows times coefficients times iterations, of many of them
_NEWTON_CELLS = (
    2e6  # rows times squared coefficients, up to which Newton's method is quicker
)


class Strength(NamedTuple):
    """How logistic leaves are regularized."""

    C: float  # cost of a row's loss
    halvings: int = 0  # of the terms of the root


def fit_logistic(
    dataset: Dataset,
    inside: np.ndarray | slice,
    C: float,
    start: np.ndarray,
    is_free: np.ndarray,
    prior: np.ndarray | None = None,
    end: float = math.inf,
) -> np.ndarray:
    """Return scores of the classes, of shape (n_classes, n_features + 1), the intercepts last.

    Those of `start` that are not free stay as they are; the others are drawn to `prior`, or to 0.
    """
    y, weight = dataset.y[inside], dataset.sample_weight[inside]
    n_rows, n_classes = len(y), len(start)
    rows = np.column_stack([dataset.X[inside], np.ones(n_rows)])
    penalty = np.append(dataset.spread**2, 1.0) / C
    if prior is None:
        penalty[-1] = _FREE
    centre = np.zeros_like(start) if prior is None else prior
    own = np.arange(n_rows), y
    is_class = (y[:, np.newaxis] == np.arange(n_classes)).astype(np.float64)
    scores, shares = start.copy(), is_class

    def loss(free: np.ndarray) -> tuple[float, np.ndarray]:
        nonlocal shares
        scores[is_free] = free
        of_rows = rows @ scores.T
        of_rows -= of_rows.max(axis=1, keepdims=True)
        shares, away = np.exp(of_rows), scores - centre
        total = shares.sum(axis=1, keepdims=True)
        shares /= total
        excess = shares - is_class
        gradient = (excess * weight[:, np.newaxis]).T @ rows + penalty * away
        value = (
            weight @ (np.log(total[:, 0]) - of_rows[own])
            + 0.5 * (penalty * away**2).sum()
        )
        return value, gradient[is_free]

    classes, columns = np.nonzero(is_free)

    def curvature() -> np.ndarray:  # where the loss was looked at last
        each = rows[:, columns]
        shared = each * shares[:, classes]
        weighted = shared * weight[:, np.newaxis]
        is_same = (
            classes[:, np.newaxis] == classes
        )  # not before: of many classes it is large
        return (
            weighted.T @ each * is_same
            - weighted.T @ shared
            + np.diag(penalty[columns])
        )

    n_free = len(classes)
    if n_rows * n_free**2 <= _NEWTON_CELLS:
        scores[is_free] = _newton(loss, curvature, start[is_free], end)
        return scores

    def stop_in_time(intermediate_result: object) -> None:
        if time.perf_counter() >= end:
            raise StopIteration

    how: dict[str, Any] = {"jac": True, "method": "L-BFGS-B", "callback": stop_in_time}
    most = max(20, min(_MAX_ITERATIONS, int(_MAX_CELLS / (n_rows * n_free))))
    scores[is_free] = minimize(
        loss, start[is_free], options={"maxiter": most, "ftol": 1e-7}, **how
    ).x
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
    for _ in range(_MAX_ITERATIONS):
        step = np.linalg.solve(curvature(), gradient)
        gain = gradient @ step
        if gain <= 1e-9 * abs(value) or time.perf_counter() >= end:
            break
        after, slope = loss(here - step)
        while after > value - 0.1 * gain and gain > 1e-9 * abs(value):
            step, gain = 0.5 * step, 0.5 * gain
            after, slope = loss(here - step)
        here, value, gradient = here - step, after, slope
    return here


def logistic_path(
    dataset: Dataset,
    C: float,
    start: np.ndarray | None = None,
    halvings: int = HALVINGS,
    used: np.ndarray | None = None,
    end: float = math.inf,
) -> Iterator[np.ndarray]:
    """Yield models of the root over some features, each of half the terms of the one before."""
    if start is None:
        start = np.zeros((dataset.n_classes, dataset.X.shape[1] + 1))
    is_free = np.ones(start.shape, dtype=bool)
    is_free[:, :-1] = np.ptp(dataset.X, axis=0) > 0.0
    if used is not None:
        is_free[:, :-1] &= used
    if len(start) == 2:  # one score tells two classes apart
        is_free[0] = False
    scores = fit_logistic(dataset, slice(None), C, start, is_free, end=end)
    yield scores
    for _ in range(halvings):
        terms = np.abs(scores[:, :-1]) * dataset.spread
        n_kept = max(1, int(np.count_nonzero(is_free[:, :-1])) // 2)
        is_free[:, :-1] &= terms >= np.sort(terms, axis=None)[-n_kept]
        start = np.where(is_free, scores, 0.0)
        scores = fit_logistic(dataset, slice(None), C, start, is_free, end=end)
        yield scores


def scores_of_nodes(
    dataset: Dataset,
    leaves: np.ndarray,
    sizes: np.ndarray,
    root: np.ndarray,
    C: float,
    end: float,
) -> np.ndarray:
    """Return the scores of all nodes, each drawn to its parent's, of terms that the root has."""
    is_free = root != 0.0
    is_free[:, -1] = True
    is_free[0] &= len(root) > 2
    scores = np.zeros((len(sizes), *root.shape))
    scores[0] = root
    for k in np.flatnonzero(sizes > 1).tolist():
        for child in (k + 1, k + 1 + int(sizes[k + 1])):
            inside = (leaves >= child) & (leaves < child + sizes[child])
            scores[child] = fit_logistic(
                dataset, inside, C, scores[k], is_free, scores[k], end
            )
    return scores


def with_logistic_leaves(
    tree: ObliqueTree,
    dataset: Dataset,
    strength: Strength,
    used: Any = None,
    end: float = math.inf,
) -> ObliqueTree:
    """Return a finished tree, over raw features, with logistic models in its leaves."""
    *_, root = logistic_path(dataset, strength.C, None, strength.halvings, used, end)
    leaves = tree.apply(dataset.raw)
    scores = scores_of_nodes(dataset, leaves, tree.subtree_size, root, strength.C, end)
    return tree.with_models(_raw_models(tree, dataset, scores))


def _raw_models(tree: ObliqueTree, dataset: Dataset, scores: np.ndarray) -> ClassModels:
    """Return scores over standardized features as models over raw ones."""
    coefficients = np.where(
        tree.is_leaf[:, np.newaxis, np.newaxis], scores[..., :-1], 0.0
    )
    coefficients /= dataset.scale
    intercepts = scores[..., -1] - coefficients @ dataset.mean
    largest = np.full(len(tree), LARGEST_SCORE)
    each = [
        LeafModels(intercepts[:, j], coefficients[:, j], -largest, largest)
        for j in range(dataset.n_classes)
    ]
    return ClassModels(tuple(each))
