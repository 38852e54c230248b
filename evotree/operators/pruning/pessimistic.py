"""Pessimistic pruning with subtree raising, as C4.5 has it (Quinlan 1993, chapter 4).

The training rows of a leaf are taken for a sample: the errors to expect are the upper bound of a
confidence interval for the share that it gets wrong. From below, a node becomes a leaf, or takes
over the larger one of its branches, where no more errors are then to be expected than of both
branches; the rows of the other branch then go down the one that is raised.
"""

import math
from collections.abc import Iterator

import numpy as np

from evotree.dataset import Dataset
from evotree.operators.structure.sides import Splits, share_rows, subtree_sizes

# Quinlan's table of the normal distribution, between whose entries the program interpolates.
_CONFIDENCES = (0.0, 0.001, 0.005, 0.01, 0.05, 0.1, 0.2, 0.4, 1.0)
_DEVIATIONS = (4.0, 3.09, 2.58, 2.33, 1.65, 1.28, 0.84, 0.25, 0.0)

# The program's constants.
_TOLERATED = 0.1  # errors more to expect of a simpler tree
_NO_GAIN = 1e-3  # training errors that a subtree saves at least
_ALL_WRONG = 0.67


def normal_deviation(confidence: float) -> float:
    """Return how many standard deviations are exceeded with a probability, by Quinlan's table."""
    return float(np.interp(confidence, _CONFIDENCES, _DEVIATIONS))


def added_errors(n: float, wrong: float, confidence: float) -> float:
    """Return how many errors more than those of the training rows are to be expected of a leaf."""
    # Without any error the upper bound of the binomial distribution is exact, from one on it is
    # that of the normal distribution with a correction for continuity, and in between, where
    # weights are fractions, the two are interpolated.
    if wrong < 1e-6:
        return n * (1.0 - confidence ** (1.0 / n))
    if wrong < 0.9999:
        none = n * (1.0 - confidence ** (1.0 / n))
        return none + wrong * (added_errors(n, 1.0, confidence) - none)
    if wrong + 0.5 >= n:
        return _ALL_WRONG * (n - wrong)
    z2 = normal_deviation(confidence) ** 2
    middle = wrong + 0.5
    spread = math.sqrt(z2 * (middle * (1.0 - middle / n) + 0.25 * z2))
    return n * (middle + 0.5 * z2 + spread) / (n + z2) - wrong


def prune_pessimistic(
    splits: Splits,
    dataset: Dataset,
    confidence: float = 0.25,
    indicators: np.ndarray | None = None,
) -> tuple[Splits, np.ndarray]:
    """Prune a tree by the errors to expect, subtrees being raised.

    Returned are its splits and the class weights ``(n_nodes, n_classes)`` of its nodes.
    """
    branches = _Branches(splits, dataset, indicators)
    branches.collapse()
    branches.prune(confidence)
    return branches.to_splits()


class _Branches:
    """A tree whose nodes know their rows, and each of which can take the place of its parent."""

    def __init__(
        self, splits: Splits, dataset: Dataset, indicators: np.ndarray | None
    ) -> None:
        size = splits.subtree_size
        self.splits = splits
        self.X = dataset.X
        self.y = dataset.y
        self.indicators = indicators
        self.children: list[tuple[int, int] | None] = [
            (k + 1, k + 1 + int(size[k + 1])) if size[k] > 1 else None
            for k in range(len(size))
        ]
        self.split_at = list(range(len(size)))
        self.counts = np.zeros((len(size), dataset.n_classes))
        self.rows: dict[int, tuple[np.ndarray, np.ndarray]] = {}
        self.place(0, np.arange(len(self.y), dtype=np.int32), dataset.sample_weight)

    def below(self, k: int) -> list[int]:
        """Return the nodes of a subtree in prefix order."""
        nodes, pending = [], [k]
        while pending:
            nodes.append(pending.pop())
            pending += reversed(self.children[nodes[-1]] or ())
        return nodes

    def routed(
        self, k: int, rows: np.ndarray, weight: np.ndarray
    ) -> Iterator[tuple[int, np.ndarray, np.ndarray]]:
        """Yield each node of a subtree with the rows that would reach it, and their weights."""
        pending = [(k, rows, weight)]
        while pending:
            k, rows, weight = pending.pop()
            yield k, rows, weight
            if (children := self.children[k]) is not None:
                at = self.split_at[k]
                left, right = share_rows(
                    self.X,
                    rows,
                    weight,
                    self.splits.weights[at],
                    self.splits.thresholds[at],
                    self.indicators,
                )
                pending += [(children[0], *left), (children[1], *right)]

    def count(self, rows: np.ndarray, weight: np.ndarray) -> np.ndarray:
        """Return the class weights of rows."""
        return np.bincount(self.y[rows], weight[rows], self.counts.shape[1])

    def place(self, k: int, rows: np.ndarray, weight: np.ndarray) -> None:
        """Give a subtree other rows."""
        for node, reaching, weights in self.routed(k, rows, weight):
            self.rows[node] = reaching, weights
            self.counts[node] = self.count(reaching, weights)

    def collapse(self) -> None:
        """Make leaves of the subtrees that get no more training rows right than a leaf."""
        wrong = self.counts.sum(axis=1) - self.counts.max(axis=1)
        for k in reversed(self.below(0)):
            if (children := self.children[k]) is not None:
                of_leaves = sum(wrong[child] for child in children)
                if of_leaves >= wrong[k] - _NO_GAIN:
                    self.children[k] = None
                else:
                    wrong[k] = of_leaves

    def prune(self, confidence: float) -> None:
        """Make leaves, and raise branches, where no more errors are to be expected then."""
        errors = np.zeros(len(self.counts))
        pending = self.below(0)
        while pending:
            k = pending.pop()
            errors[k] = leaf = _expected_errors(self.counts[k], confidence)
            if (children := self.children[k]) is None:
                continue
            both = sum(errors[child] for child in children)
            left, right = (self.counts[child].sum() for child in children)
            largest = children[int(right >= left)]
            raised = sum(
                _expected_errors(self.count(reaching, weights), confidence)
                for node, reaching, weights in self.routed(largest, *self.rows[k])
                if self.children[node] is None
            )
            if leaf <= min(raised, both) + _TOLERATED:
                self.children[k] = None
            elif raised <= both + _TOLERATED:
                self.children[k] = self.children[largest]
                self.split_at[k] = self.split_at[largest]
                self.place(k, *self.rows[k])
                pending += self.below(k)
            else:
                errors[k] = both

    def to_splits(self) -> tuple[Splits, np.ndarray]:
        """Return the tree below the root, and the class weights of its nodes."""
        nodes = self.below(0)
        is_split = np.array([self.children[k] is not None for k in nodes])
        origins = [self.split_at[k] for k in nodes]
        # Leaves of a subtree that was cut still know its split.
        weights = np.where(is_split[:, np.newaxis], self.splits.weights[origins], 0.0)
        thresholds = np.where(is_split, self.splits.thresholds[origins], 0.0)
        size = subtree_sizes(is_split.tolist())
        return Splits(weights, thresholds, size), self.counts[nodes]


def _expected_errors(counts: np.ndarray, confidence: float) -> float:
    """Return how many errors are to be expected of a leaf with class weights."""
    n = float(counts.sum())
    wrong = n - float(counts.max())
    return wrong + added_errors(n, wrong, confidence) if n > 0.0 else 0.0
