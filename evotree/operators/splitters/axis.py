"""Axis-parallel splits: the exact best test of one feature (Breiman et al. 1984; Quinlan 1993)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from evotree._jit import kernel, read_only
from evotree.fitness.criteria import Criterion
from evotree.fitness.line_search import line_search
from evotree.fitness.node import Node, make_split_scratch, score_hyperplane, score_undivided
from evotree.operators.splitters.base import Split, axis_normal

_ROUNDING = 1e-12  # of a gain, in bits


@kernel
def search_features(node, scores, cuts):
    """Find the best test of each feature."""
    n = node.X.shape[0]
    s, t = np.empty(n), np.full(n, -1.0)
    scratch = make_split_scratch(node)
    for j in range(node.X.shape[1]):
        for i in range(n):
            s[i] = node.X[i, j]
        scores[j], cuts[j] = line_search(node, s, t, scratch)


def search_gain_ratio(node: Node, scores: np.ndarray, cuts: np.ndarray) -> None:
    """Find the tests among which C4.5 chooses (Quinlan 1993, chapter 2)."""
    # The threshold of a feature is that of its highest information gain, not of its highest gain
    # ratio, which would favour splits that part few rows. For the same reason features whose gain
    # is below the average, that of all gains above 0, are out.
    by_gain = node._replace(criterion=int(Criterion.ENTROPY))
    search_features(by_gain, scores, cuts)
    gains = score_undivided(by_gain) - scores
    useful = gains > _ROUNDING
    needed = gains[useful].mean() - _ROUNDING if useful.any() else 0.0
    for j in map(int, np.flatnonzero(np.isfinite(scores))):
        if gains[j] < needed and useful.any():
            scores[j] = np.inf
        else:
            scores[j] = score_test(node, j, cuts[j])


def score_test(node: Node, feature: int, threshold: float) -> float:
    """Return the score of a test of one feature, as `score_hyperplane` of all features does."""
    column = node._replace(X=read_only(np.ascontiguousarray(node.X[:, feature : feature + 1])))
    return score_hyperplane(column, np.ones(1), threshold)


def best_axis_split(node: Node) -> tuple[float, int, float]:
    """Return the score, feature and threshold of the best test of one feature."""
    scores, cuts = np.empty(node.X.shape[1]), np.empty(node.X.shape[1])
    if node.criterion == Criterion.GAIN_RATIO:
        search_gain_ratio(node, scores, cuts)
    else:
        search_features(node, scores, cuts)
    feature = int(np.argmin(scores))
    if scores[feature] == np.inf:
        return np.inf, -1, 0.0
    return score_test(node, feature, cuts[feature]), feature, float(cuts[feature])


@dataclass(frozen=True)
class Axis:
    """The best axis-parallel split, found exactly in O(d n log n) at worst.

    Of equal splits it takes the one of the first feature and the lowest threshold. By gain ratio it
    is C4.5's (Quinlan 1993): the test of each feature is that of its highest information gain, and
    of the tests of at least average gain the one of the best ratio wins.
    """

    def __call__(self, node: Node, stream: np.ndarray) -> Split | None:
        """Find the split; draws nothing (see `evotree.operators.splitters.base.Splitter`)."""
        score, feature, threshold = best_axis_split(node)
        if feature < 0:
            return None
        return Split(axis_normal(node.X.shape[1], feature), threshold, score)
