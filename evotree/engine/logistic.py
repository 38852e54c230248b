"""Logistic leaves as rivals of trees whose leaves hold shares, judged on the same folds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from evotree.engine.config import is_auto
from evotree.fitness.logistic_leaves import (
    COSTS,
    HALVINGS,
    Strength,
    logistic_path,
    root_scores,
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

_ONE_LEAF = tuple(Strength(C, halvings) for C in COSTS for halvings in range(HALVINGS + 1))


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


@dataclass(frozen=True)
class LogisticRivals:
    """What logistic leaves are tried: one leaf of any strength, and those of first trees."""

    with_splits: bool  # trees have no other leaves
    used: np.ndarray | None = None  # mask of the features that models may use

    def losses(
        self, rows: Dataset, held_out: Dataset, trees: Sequence[Individual]
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return which rows held out each rival gets wrong, and its complexity."""
        losses, complexity, roots = [], [], {}
        start = root_scores(rows)

        for C in COSTS:
            path = list(logistic_path(rows, C, start, used=self.used))
            roots[C] = start = path[0]
            for scores in path:
                predicted = (held_out.X @ scores[:, :-1].T + scores[:, -1]).argmax(axis=1)
                losses.append((predicted != held_out.y).astype(np.float64))
                complexity.append(1 + np.count_nonzero(scores[:, :-1]))
        if not self.with_splits:
            return np.array(losses), np.array(complexity)
        known: dict[tuple[int, float], tuple[np.ndarray, int]] = {}
        for tree, C in product(trees, COSTS):
            key = id(tree), C
            if key not in known:
                known[key] = _losses_of_tree(tree, rows, held_out, roots[C], C)
            losses.append(known[key][0])
            complexity.append(known[key][1])
        return np.array(losses), np.array(complexity)


def _losses_of_tree(
    tree: Individual, rows: Dataset, held_out: Dataset, root: np.ndarray, C: float
) -> tuple[np.ndarray, int]:
    """Return which rows held out a tree with logistic leaves gets wrong, and its complexity."""
    n_leaves, size = tree.n_leaves, tree.subtree_size
    complexity = tree.complexity + n_leaves * np.count_nonzero(root[:, :-1])
    if not 1 < n_leaves <= MOST_LEAVES:
        return np.ones(len(held_out.y)), complexity
    scores = scores_of_nodes(rows, tree.apply(rows.X), size, root, C)
    leaves, predicted = tree.apply(held_out.X), np.empty(len(held_out.y), dtype=np.int64)
    for k in np.unique(leaves):
        inside = leaves == k
        of_rows = held_out.X[inside] @ scores[k][:, :-1].T + scores[k][:, -1]
        predicted[inside] = of_rows.argmax(axis=1)
    return (predicted != held_out.y).astype(np.float64), complexity


def logistic_rivals(problem: Problem) -> LogisticRivals | None:
    """Return the logistic leaves that are tried; None where leaves hold shares alone.

    With ``"auto"`` one leaf is tried where nothing is said of terms, columns or another objective.
    """
    config, dataset = problem.config, problem.dataset
    if not dataset.n_classes:
        return None
    if config.leaves == "auto":
        bounds = ("max_terms", "max_split_terms", "interaction_cst", "monotonic_cst")
        is_free = all(getattr(config, name) is None for name in bounds)
        is_plain = problem.evolution.variation.algorithm != "nsga2" and problem.has_seeds
        is_tried = is_free and is_plain and is_auto(config.term_penalty) and not dataset.objective
        return LogisticRivals(False) if is_tried else None
    if config.leaves == "constant":
        return None
    features = config.leaves.features if isinstance(config.leaves, LinearLeaves) else None
    if features is None:
        return LogisticRivals(True)
    chosen = columns_asked(features, dataset.column_names, "features")
    return LogisticRivals(True, np.isin(dataset.column_of, list(chosen)))
