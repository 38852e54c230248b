"""Logistic models in the leaves of classification trees: the linear leaves of classes.

Trees evolve with leaves of class shares, since a model takes too long to fit for each offspring.
`LogisticLeaves` says which models finished trees may have instead, what rows held out lose by each
of these candidates, and fits those of the one that is chosen.

The model of the root is a multinomial logistic regression with an L2 penalty. That of any other
node is shrunk towards that of its parent, so that leaves of few rows change little of it. Models
may be sparse: the weakest half of the terms is dropped and the others are fitted again, as often as
is asked for.

References
----------
Landwehr N., Hall M., Frank E. (2005). Logistic model trees. Machine Learning 59, 161-205.
"""

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
from scipy.optimize import minimize
from scipy.special import softmax

from evotree.configuration import LinearLeaves
from evotree.dataset import Dataset
from evotree.leaf_models import LARGEST_SCORE, ClassModels, LeafModels
from evotree.tables.columns import columns_asked
from evotree.tree import Individual, ObliqueTree

COSTS = (0.003, 0.03, 0.3, 3.0)
"""Costs of a row's loss against the penalty of the coefficients, of standardized features."""

HALVINGS = 4
"""How often the terms of a model are halved at most."""

_FEW_LEAVES, _MANY_LEAVES = 8, 64  # of which any tree, and no tree, may have models
_MOST_COEFFICIENTS = 10_000  # of the models of a tree between these

_FREE = 1e-4  # penalty of the intercept of the root
_LEAST_SHARE = 1e-9  # of a class, in the log loss of rows held out
_MAX_ITERATIONS = 100
_MAX_CELLS = 500e6  # rows times coefficients times iterations, of many of them
_NEWTON_CELLS = (
    2e6  # rows times squared coefficients, up to which Newton's method is quicker
)


class Strength(NamedTuple):
    """How logistic leaves are regularized."""

    C: float  # cost of a row's loss
    halvings: int = 0  # of the terms of the root


class Candidate(NamedTuple):
    """Logistic leaves that are tried."""

    strength: Strength
    at: int | None = None  # the penalties of the tree that has them; None for one leaf
    keeps_shares: bool = (
        False  # the tree was too large for models; smaller ones have these
    )


class CandidateLosses(NamedTuple):
    """What rows held out lose by each candidate."""

    errors: np.ndarray  # of shape (n_candidates, n_rows), 0 or 1
    log_losses: np.ndarray  # of the same shape
    complexity: np.ndarray  # of shape (n_candidates,)
    is_too_large: (
        np.ndarray
    )  # of the same shape: the tree was judged with its class shares

    @classmethod
    def joined(cls, folds: "Sequence[CandidateLosses]") -> "CandidateLosses":
        """Return the losses of the rows of several folds, and the sums of complexities."""
        errors, log_losses, complexity, is_too_large = zip(*folds, strict=True)
        return cls(
            np.hstack(errors),
            np.hstack(log_losses),
            np.sum(complexity, axis=0),
            np.any(is_too_large, axis=0),
        )

    def take(self, candidates: np.ndarray) -> "CandidateLosses":
        """Return the losses of some candidates, by positions."""
        return CandidateLosses(*(array[candidates] for array in self))


@dataclass(frozen=True, eq=False)
class LogisticLeaves:
    """Which logistic models are tried: one leaf of any strength, and the leaves of first trees."""

    in_all_leaves: bool = False  # trees that are not too large have no other leaves
    used: np.ndarray | None = None  # mask of the features that models may use

    @classmethod
    def asked(cls, leaves: str | LinearLeaves, dataset: Dataset) -> Self:
        """Return the models of all leaves, as users ask for them."""
        features = leaves.features if isinstance(leaves, LinearLeaves) else None
        if features is None:
            return cls(in_all_leaves=True)
        columns = columns_asked(features, dataset.column_names, "features")
        return cls(True, np.isin(dataset.column_of, list(columns)))

    def candidates(self, n_trees: int) -> list[Candidate]:
        """Return what is tried, where the penalties have so many trees."""
        found = [
            Candidate(Strength(C, halvings))
            for C in COSTS
            for halvings in range(HALVINGS + 1)
        ]
        if self.in_all_leaves:
            found += [
                Candidate(Strength(C), at) for at in range(n_trees) for C in COSTS
            ]
        return found

    def losses(
        self, rows: Dataset, held_out: Dataset, trees: Sequence[Individual], end: float
    ) -> CandidateLosses:
        """Return what rows held out lose by each candidate; out of time fits end after a step."""
        losses: list[tuple[np.ndarray, np.ndarray, int, bool]] = []
        roots: dict[float, np.ndarray] = {}
        start = None
        for C in COSTS:
            path = list(logistic_path(rows, C, start, used=self.used, end=end))
            roots[C] = start = path[0]
            for scores in path:
                of_rows = held_out.X @ scores[:, :-1].T + scores[:, -1]
                complexity = 1 + int(np.count_nonzero(scores[:, :-1]))
                losses.append(
                    (*_losses_of_scores(of_rows, held_out.y), complexity, False)
                )
        judged: dict[tuple[int, float], Any] = {}
        for tree in trees if self.in_all_leaves else ():
            for C in COSTS:
                key = (id(tree), C)
                if key not in judged:
                    judged[key] = _losses_of_tree(
                        tree, rows, held_out, roots[C], C, end
                    )
                losses.append(judged[key])
        return CandidateLosses(*map(np.array, zip(*losses, strict=True)))

    def fill(
        self, tree: ObliqueTree, dataset: Dataset, strength: Strength, end: float
    ) -> ObliqueTree:
        """Return a finished tree, over raw features, with models in its leaves."""
        *_, root = logistic_path(
            dataset, strength.C, halvings=strength.halvings, used=self.used, end=end
        )
        leaves = tree.apply(dataset.raw)
        scores = scores_of_nodes(
            dataset, leaves, tree.subtree_size, root, strength.C, end
        )
        return tree.with_models(_raw_models(tree, dataset, scores))


def _losses_of_scores(
    scores: np.ndarray, y: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return which rows scores get wrong, and their log losses."""
    own = softmax(scores, axis=1)[np.arange(len(y)), y]
    return (scores.argmax(axis=1) != y).astype(np.float64), -np.log(_LEAST_SHARE + own)


def _losses_of_tree(
    tree: Individual,
    rows: Dataset,
    held_out: Dataset,
    root: np.ndarray,
    C: float,
    end: float,
) -> tuple[np.ndarray, np.ndarray, int, bool]:
    """Return what rows held out lose by a tree with logistic leaves, as `CandidateLosses` has it.

    A tree that is too large for models is judged with the class shares that it keeps; one of one
    leaf loses every row, since one leaf has candidates of its own.
    """
    y = held_out.y
    leaves = tree.apply(held_out.X)
    if tree.n_leaves == 1:
        lost = np.ones(len(y))
        return lost, np.log(rows.n_classes) * lost, tree.complexity, False
    if is_too_large(tree, rows):
        own = tree.values[leaves, y]
        errors = (tree.labels[leaves] != y).astype(np.float64)
        return errors, -np.log(_LEAST_SHARE + own), tree.complexity, True
    scores = scores_of_nodes(rows, tree.apply(rows.X), tree.subtree_size, root, C, end)
    of_rows = np.empty((len(y), rows.n_classes))
    for k in np.unique(leaves):
        inside = leaves == k
        of_rows[inside] = held_out.X[inside] @ scores[k, :, :-1].T + scores[k, :, -1]
    n_terms = int(np.count_nonzero(root[:, :-1]))
    complexity = tree.complexity + tree.n_leaves * n_terms
    return *_losses_of_scores(of_rows, y), complexity, False


def is_too_large(tree: ObliqueTree, dataset: Dataset) -> bool:
    """Return whether a tree keeps class shares: models of so many leaves take too long to fit."""
    of_a_leaf = dataset.n_classes * (dataset.X.shape[1] + 1)
    most = min(_MANY_LEAVES, _MOST_COEFFICIENTS // of_a_leaf)
    return tree.n_leaves > max(_FEW_LEAVES, most)


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

    most = max(20, min(_MAX_ITERATIONS, int(_MAX_CELLS / (n_rows * n_free))))
    scores[is_free] = minimize(
        loss,
        start[is_free],
        jac=True,
        method="L-BFGS-B",
        callback=stop_in_time,
        options={"maxiter": most, "ftol": 1e-7},
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
