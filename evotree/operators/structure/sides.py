"""The sides of one split: which rows go where, those with a missing value in shares.

The shares are C4.5's. The rest of that algorithm is its splitter, in
`evotree.operators.splitters.axis`; how it grows and how it predicts incomplete rows, in
`evotree.operators.initialization.induction`; and `evotree.operators.pruning.pessimistic`.
"""

from typing import NamedTuple, TypeAlias

import numpy as np

from evotree._jit import kernel
from evotree.fitness.node import project_rows, split_rows

Side: TypeAlias = tuple[np.ndarray, np.ndarray]
"""Positions of rows, int32, and the weights of all rows, as many as the data set has."""


class Splits(NamedTuple):
    """The hyperplanes of a tree, in prefix order, and where they stand; 0 at leaves."""

    weights: np.ndarray  # (n_nodes, n_features)
    thresholds: np.ndarray  # (n_nodes,)
    subtree_size: np.ndarray  # (n_nodes,) int32


def subtree_sizes(is_split: list[bool]) -> np.ndarray:
    """Return the sizes of the subtrees of nodes in prefix order."""
    size = np.ones(len(is_split), dtype=np.int32)
    complete: list[int] = []
    for k in reversed(range(len(is_split))):
        if is_split[k]:
            size[k] += complete.pop() + complete.pop()
        complete.append(int(size[k]))
    return size


@kernel
def part_rows(X, order, lo, hi, w, threshold):
    """Reorder ``order[lo:hi]`` by a hyperplane, as every partition does; return the middle."""
    projection = np.empty(hi - lo)
    project_rows(w.reshape(1, w.shape[0]), 0, X, order, lo, hi, projection)
    return split_rows(
        order, lo, hi, projection, threshold, np.empty(hi - lo, dtype=np.int32)
    )


def share_rows(
    X: np.ndarray,
    rows: np.ndarray,
    weight: np.ndarray,
    normal: np.ndarray,
    threshold: float,
    indicators: np.ndarray | None = None,
) -> tuple[Side, Side]:
    """Part the rows of a node by a split; those that miss the value it asks for go both ways."""
    # Such a row is on each side with a part of its weight: the share of that side in the weight of
    # the rows whose value is known (Quinlan 1993, chapter 3); one half where none is.
    is_missing = np.zeros(len(rows), dtype=bool)
    feature = (normal != 0.0).argmax()
    if indicators is not None and indicators[feature] >= 0:
        is_missing = X[rows, indicators[feature]] > 0.0
    complete, missing = rows[~is_missing], rows[is_missing]
    mid = part_rows(X, complete, 0, len(complete), normal, threshold)
    left, right = complete[:mid], complete[mid:]
    if len(missing) == 0:
        return (left, weight), (right, weight)
    on_left, on_right = weight[left].sum(), weight[right].sum()
    share = on_left / (on_left + on_right) if len(complete) else 0.5

    def side(reaching: np.ndarray, share: float) -> Side:
        if share <= 0.0:
            return reaching, weight
        shared = weight.copy()
        shared[missing] *= share
        return np.concatenate([reaching, missing]), shared

    return side(left, share), side(right, 1.0 - share)
