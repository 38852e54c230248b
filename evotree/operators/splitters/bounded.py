"""Splitters whose splits have at most some terms."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from evotree.fitness.line_search import choose_threshold
from evotree.fitness.node import Node
from evotree.operators.splitters.base import Split, Splitter


@dataclass(frozen=True)
class Bounded:
    """A splitter whose splits keep their strongest terms, at the best threshold for these.

    The strongest have the most influence: |weight| times the spread of the feature at the node.

    Parameters
    ----------
    splitter : Splitter
        Finds the splits.
    max_features : int, at least 1
        Greatest number of terms.
    """

    splitter: Splitter
    max_features: int

    def __call__(self, node: Node, stream: np.ndarray) -> Split | None:
        """Find the split (see `evotree.operators.splitters.base.Splitter`)."""
        split = self.splitter(node, stream)
        if split is None or np.count_nonzero(split.weights) <= self.max_features:
            return split
        influence = np.abs(split.weights) * node.X.std(axis=0)
        kept = np.argsort(-influence, kind="stable")[: self.max_features]
        weights = np.zeros_like(split.weights)
        weights[kept] = split.weights[kept]
        score, threshold = choose_threshold(node, weights)
        return Split(weights, threshold, score) if np.isfinite(score) else None


def bounded(splitter: Splitter, max_features: int | None) -> Splitter:
    """Return a splitter whose splits keep a bound on their number of terms."""
    return splitter if max_features is None else Bounded(splitter, max_features)
