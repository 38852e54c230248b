"""What a splitter is: it finds one hyperplane at one node.

The same splitters seed a population, mutate and refine its members, and grow the trees of the
greedy algorithms; a published greedy algorithm is a splitter and a few settings.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np

from evotree.fitness.line_search import choose_threshold
from evotree.fitness.node import Node, score_hyperplane


class Split(NamedTuple):
    """A hyperplane at a node: rows with ``weights @ x <= threshold`` go left."""

    weights: np.ndarray
    threshold: float
    score: float  # by the criterion of the node, the lower the better
    below: Splitter | None = None  # of both sides when a tree is grown; None for the present one


class Splitter(Protocol):
    """A function of a node and a random stream that returns a split, or None if it finds none."""

    # It writes nothing but the stream; the same node and the same state of the stream give the same
    # split. Both sides of a split have at least ``node.min_rows`` rows.
    def __call__(self, node: Node, stream: np.ndarray) -> Split | None:
        """Find one split."""
        ...


def axis_normal(n_features: int, feature: int) -> np.ndarray:
    """Return the normal vector of a test of one feature."""
    weights = np.zeros(n_features)
    weights[feature] = 1.0
    return weights


def best_split_along(node: Node, weights: np.ndarray) -> Split | None:
    """Return the best split with a given normal vector; None where there is none."""
    score, threshold = choose_threshold(node, weights)
    if score < np.inf:
        score = float(score_hyperplane(node, weights, threshold))
    return Split(weights, float(threshold), score) if score < np.inf else None
