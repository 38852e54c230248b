"""What a splitter is: it finds one hyperplane at one node.

The same splitters seed a population, mutate and refine its members, and grow the trees of the
greedy algorithms; a published greedy algorithm is a splitter and a few settings.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np

from evotree.fitness.node import Node


class Split(NamedTuple):
    """A hyperplane at a node.

    Attributes
    ----------
    weights : ndarray of shape (d,)
        Normal vector; rows with ``weights @ x <= threshold`` go left.
    threshold : float
        Threshold.
    score : float
        Value of the node's criterion for this split, the lower the better.
    below : Splitter or None, default=None
        Finds the splits of both sides when a tree is grown; None for the one that found this.
    """

    weights: np.ndarray
    threshold: float
    score: float
    below: Splitter | None = None


class Splitter(Protocol):
    """A function of a node and a random stream that returns a split, or None if it finds none.

    A splitter writes neither the node nor anything else but the stream; the same node and the same
    state of the stream give the same split. Both sides of a split have at least ``node.min_rows``
    rows.
    """

    def __call__(self, node: Node, stream: np.ndarray) -> Split | None:
        """Find one split."""
        ...


def axis_normal(n_features: int, feature: int) -> np.ndarray:
    """Return the normal vector of a test of one feature."""
    weights = np.zeros(n_features)
    weights[feature] = 1.0
    return weights
