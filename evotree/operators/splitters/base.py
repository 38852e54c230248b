"""What a splitter is, what several share, and the best split on one feature.

A splitter finds one hyperplane at one node. The same splitters seed a population, mutate and refine
its members, and grow the trees of the greedy algorithms; a published greedy algorithm is a splitter
and a few settings.

References
----------
Breiman L., Friedman J., Olshen R., Stone C. (1984). Classification and regression trees.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from evotree._jit import dot_kernel, kernel
from evotree.fitness.node import (
    Node,
    choose_threshold,
    line_search,
    make_split_scratch,
    score_hyperplane,
)


class Split(NamedTuple):
    """A hyperplane at a node: rows with ``weights @ x <= threshold`` go left."""

    weights: np.ndarray
    threshold: float
    score: float  # by the criterion of the node, the lower the better


class Splitter(Protocol):
    """A function of a node and a random stream that returns a split, or None if it finds none."""

    # It writes nothing but the stream; the same node and the same state of the stream give the same
    # split. Both sides of a split have at least ``node.min_rows`` rows.
    def __call__(self, node: Node, stream: np.ndarray) -> Split | None:
        """Find one split."""


def scored_split(node: Node, weights: np.ndarray, threshold: float) -> Split:
    """Return a split with its score, which is infinite where a side has too few rows."""
    score = float(score_hyperplane(node, weights, threshold))
    return Split(weights, float(threshold), score)


def better_split(
    best: Split | None, node: Node, hyperplane: tuple[np.ndarray, float] | None
) -> Split | None:
    """Return the better one of a split and a hyperplane; None where neither parts the rows."""
    if hyperplane is None:
        return best
    split = scored_split(node, *hyperplane)
    return split if split.score < (np.inf if best is None else best.score) else best


def best_split_along(node: Node, weights: np.ndarray) -> Split | None:
    """Return the best split with a given normal vector; None where there is none."""
    score, threshold = choose_threshold(node, weights)
    return better_split(None, node, (weights, threshold)) if score < np.inf else None


_LEAST_SCALE = 1e-150  # its square is a number still


class ScaledRows(NamedTuple):
    """The rows of a node in units of their own."""

    # (n, d + 1): less the mean, over the scale, 0 where that is; 1 in the last.
    rows: np.ndarray
    codes: np.ndarray  # (n,) int32: classes, numbered among those present
    shares: np.ndarray  # (n,): weights, with sum 1
    totals: np.ndarray  # (n_present,): weights of the classes
    mean: np.ndarray  # (d,)
    scale: np.ndarray  # (d,): 0 for a constant feature


@dot_kernel
def inner(a, b):
    """Return ``a @ b``."""
    s = 0.0
    for j in range(a.shape[0]):
        s += a[j] * b[j]
    return s


def scale_rows(node: Node, rescale: bool) -> ScaledRows:
    """Return the rows of a node, with `rescale` brought to mean 0 and standard deviation 1."""
    X = node.X
    n, d = X.shape
    codes = np.unique(node.y, return_inverse=True)[1].astype(np.int32)
    totals = np.bincount(codes, node.sample_weight)
    weight = np.cumsum(totals)[-1]
    shares = node.sample_weight / weight
    mean, scale = np.zeros(d), np.ones(d)
    if rescale:
        low, high = X.min(axis=0), X.max(axis=0)
        mean = (shares[:, np.newaxis] * X).sum(axis=0)
        deviation = X - mean
        scale = np.sqrt((shares[:, np.newaxis] * deviation * deviation).sum(axis=0))
        # A share of the range bounds the scaled values where nearly all weight is at one place.
        scale = np.maximum(scale, 1e-6 * (high - low))
        is_constant = (low == high) | (scale < _LEAST_SCALE)
        mean = np.where(is_constant, low, mean)
        scale = np.where(is_constant, 0.0, scale)
    rows = np.ones((n, d + 1))
    rows[:, :d] = (X - mean) * np.divide(1.0, scale, out=np.zeros(d), where=scale > 0.0)
    return ScaledRows(rows, codes, shares, totals / weight, mean, scale)


def node_hyperplane(
    scaled: ScaledRows, theta: np.ndarray
) -> tuple[np.ndarray, float] | None:
    """Return a hyperplane of scaled rows in the units of their node; None beyond all numbers."""
    mean, scale = scaled.mean, scaled.scale
    weights = np.divide(theta[:-1], scale, out=np.zeros(len(scale)), where=scale > 0.0)
    largest = np.abs(weights).max()
    if not 0.0 < largest < np.inf:
        return None
    weights /= largest  # squares neither overflow nor vanish
    length = math.sqrt(np.cumsum(weights * weights)[-1])
    weights /= length
    # Added up one after the other, as everywhere: sums of other orders are rounded otherwise.
    terms = np.append(-theta[-1] / (largest * length), weights * mean)
    threshold = float(np.cumsum(terms)[-1])
    return (weights, threshold) if math.isfinite(threshold) else None


# ---- splits on one feature -----------------------------------------------------------------------


@kernel
def search_features(node, scores, cuts):
    """Find the best split on each feature; write scores, infinite where there is none, and cuts."""
    t = np.full(node.X.shape[0], -1.0)
    scratch = make_split_scratch(node)
    for j in range(node.X.shape[1]):
        scores[j], cuts[j] = line_search(node, node.X[:, j].copy(), t, scratch)


@dataclass(frozen=True)
class Axis:
    """The best axis-parallel split, found exactly in O(d n log n) at worst.

    Of equal splits it takes the one of the first feature and the lowest threshold.
    """

    def __call__(self, node: Node, stream: np.ndarray) -> Split | None:
        """Find the split; draws nothing (see `Splitter`)."""
        scores, cuts = np.empty(node.X.shape[1]), np.empty(node.X.shape[1])
        search_features(node, scores, cuts)
        feature = int(np.argmin(scores))
        if scores[feature] == np.inf:
            return None
        weights = np.zeros(node.X.shape[1])
        weights[feature] = 1.0
        return scored_split(node, weights, cuts[feature])
