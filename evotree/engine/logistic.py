"""Logistic leaves as rivals of trees whose leaves hold shares, judged on the same folds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.special import softmax

from evotree.engine.config import is_auto
from evotree.fitness.logistic_leaves import (
    COSTS,
    HALVINGS,
    Strength,
    logistic_path,
    scores_of_nodes,
)
from evotree.objectives import LinearLeaves
from evotree.tables.columns import columns_asked

if TYPE_CHECKING:
    from evotree.dataset import Dataset
    from evotree.engine.prepare import Problem
    from evotree.individual import Individual

MOST_LEAVES = 8
"""Trees of more leaves get no logistic ones."""

_ONE_LEAF = tuple(
    Strength(C, halvings) for C in COSTS for halvings in range(HALVINGS + 1)
)


class Rival(NamedTuple):
    """Logistic leaves that are tried."""

    strength: Strength
    at: int | None = None  # the penalties of the tree that has them; None for one leaf


def rival(number: int) -> Rival:
    """Return the rival of a row of losses."""
    if number < len(_ONE_LEAF):
        return Rival(_ONE_LEAF[number])
    at, of_costs = divmod(number - len(_ONE_LEAF), len(COSTS))
    return Rival(Strength(COSTS[of_costs]), at)


class RivalLosses(NamedTuple):
    """What rows held out lose by each rival."""

    errors: np.ndarray  # of shape (n_rivals, n_rows), 0 or 1
    log_losses: np.ndarray  # of the same shape
    complexity: np.ndarray  # of shape (n_rivals,)

    @classmethod
    def joined(cls, folds: Sequence[RivalLosses]) -> RivalLosses:
        """Return the losses of the rows of several folds, and the sums of complexities."""
        errors, log_losses, complexity = zip(*folds, strict=True)
        return cls(np.hstack(errors), np.hstack(log_losses), np.sum(complexity, axis=0))


@dataclass(frozen=True)
class LogisticRivals:
    """What logistic leaves are tried: one leaf of any strength, and those of first trees."""

    with_splits: bool  # trees have no other leaves
    used: np.ndarray | None = None  # mask of the features that models may use

    def losses(
        self, rows: Dataset, held_out: Dataset, trees: Sequence[Individual], end: float
    ) -> RivalLosses:
        """Return what rows held out lose by each rival; out of time fits end after a step."""
        losses, roots, start = [], dict[float, np.ndarray](), None
        for C in COSTS:
            path = list(logistic_path(rows, C, start, used=self.used, end=end))
            roots[C] = start = path[0]
            for scores in path:
                of_rows = held_out.X @ scores[:, :-1].T + scores[:, -1]
                complexity = 1 + int(np.count_nonzero(scores[:, :-1]))
                losses.append((*_losses_of_scores(of_rows, held_out.y), complexity))
        known: dict[tuple[int, float], Any] = {}
        for tree, C in product(trees if self.with_splits else (), COSTS):
            key = id(tree), C
            if key not in known:
                known[key] = _losses_of_tree(tree, rows, held_out, roots[C], C, end)
            losses.append(known[key])
        return RivalLosses(*map(np.array, zip(*losses, strict=True)))


def _losses_of_scores(
    scores: np.ndarray, y: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return which rows scores get wrong, and their log losses."""
    own = np.log(1e-9 + softmax(scores, axis=1)[np.arange(len(y)), y])
    return (scores.argmax(axis=1) != y).astype(np.float64), -own


def _losses_of_tree(
    tree: Individual,
    rows: Dataset,
    held_out: Dataset,
    root: np.ndarray,
    C: float,
    end: float,
) -> tuple[np.ndarray, np.ndarray, int]:
    """Return what rows held out lose by a tree with logistic leaves, and its complexity."""
    y, n_leaves, size = held_out.y, tree.n_leaves, tree.subtree_size
    complexity = tree.complexity + n_leaves * int(np.count_nonzero(root[:, :-1]))
    if not 1 < n_leaves <= MOST_LEAVES:
        return np.ones(len(y)), np.full(len(y), np.log(rows.n_classes)), complexity
    scores = scores_of_nodes(rows, tree.apply(rows.X), size, root, C, end)
    leaves, of_rows = tree.apply(held_out.X), np.empty((len(y), rows.n_classes))
    for k in np.unique(leaves):
        inside = leaves == k
        of_rows[inside] = held_out.X[inside] @ scores[k, :, :-1].T + scores[k, :, -1]
    return *_losses_of_scores(of_rows, y), complexity


def choose_rival(
    losses: RivalLosses, weights: np.ndarray, standard_errors: float
) -> int:
    """Return the number of the best rival.

    It is the simplest that no other one beats by more than some standard errors; among those of as
    many terms that it does not beat so, the one with the least log loss, whose probabilities are
    the best.
    """
    order = np.argsort(losses.complexity, kind="stable")
    winner = int(order[first_unbeaten(losses.errors[order], weights, standard_errors)])
    kinds = [
        (rival(i).strength.halvings, rival(i).at) for i in range(len(losses.errors))
    ]
    alike = [i for i, kind in enumerate(kinds) if kind == kinds[winner]]
    worse, error = mean_and_error(losses.errors[alike] - losses.errors[winner], weights)
    is_worse = worse > standard_errors * error
    log_losses = np.where(is_worse, np.inf, losses.log_losses[alike] @ weights)
    return alike[int(log_losses.argmin())]


def logistic_rivals(problem: Problem) -> LogisticRivals | None:
    """Return the logistic leaves that are tried; None where leaves hold shares alone.

    With ``"auto"`` one leaf is tried where nothing is said of terms, columns or another objective.
    """
    config, dataset = problem.config, problem.dataset
    if not dataset.n_classes:
        return None
    if config.leaves == "auto" and problem.evolution.hold is None:
        bounds = ("max_terms", "max_split_terms", "interaction_cst", "monotonic_cst")
        is_free = all(getattr(config, name) is None for name in bounds)
        is_plain = (
            problem.evolution.variation.algorithm != "nsga2" and problem.has_seeds
        )
        is_tried = (
            is_free
            and is_plain
            and is_auto(config.term_penalty)
            and not dataset.objective
        )
        return LogisticRivals(False) if is_tried else None
    if config.leaves in ("auto", "constant"):
        return None
    features = (
        config.leaves.features if isinstance(config.leaves, LinearLeaves) else None
    )
    if features is None:
        return LogisticRivals(True)
    chosen = columns_asked(features, dataset.column_names, "features")
    return LogisticRivals(True, np.isin(dataset.column_of, list(chosen)))


def first_unbeaten(
    losses: np.ndarray, weights: np.ndarray, standard_errors: float
) -> int:
    """Return the first candidate that no later one beats by more than some standard errors."""
    for i in range(losses.shape[0] - 1):
        mean, error = mean_and_error(losses[i] - losses[i + 1 :], weights)
        if (mean <= standard_errors * error).all():
            return i
    return losses.shape[0] - 1


def mean_and_error(
    values: np.ndarray, weights: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the means of some rows, and their standard errors."""
    total = weights.sum()
    mean = values @ weights / total
    variance = np.maximum(0.0, values**2 @ weights / total - mean**2)
    return mean, np.sqrt(variance / total)
