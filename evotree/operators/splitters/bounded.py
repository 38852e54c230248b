"""Splitters whose splits have at most some terms."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from evotree.fitness.node import Node
from evotree.operators.splitters.base import Split, Splitter, best_split_along


@dataclass(frozen=True)
class Bounded:
    """A splitter whose splits keep their strongest terms, at the best threshold for these."""

    splitter: Splitter
    max_features: int

    def __call__(self, node: Node, stream: np.ndarray) -> Split | None:
        """Find the split; the strongest terms have the most |weight| times spread at the node."""
        split = self.splitter(node, stream)
        if split is None or np.count_nonzero(split.weights) <= self.max_features:
            return split
        influence = np.abs(split.weights) * node.X.std(axis=0)
        kept = np.argsort(-influence, kind="stable")[: self.max_features]
        weights = np.zeros_like(split.weights)
        weights[kept] = split.weights[kept]
        return best_split_along(node, weights)


def bounded(splitter: Splitter, max_features: int | None) -> Splitter:
    """Return a splitter whose splits keep a bound on their number of terms."""
    return splitter if max_features is None else Bounded(splitter, max_features)
