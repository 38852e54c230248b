"""C4.5, release 8, for complete rows of numbers (Quinlan 1993, chapters 2 and 4; 1996).

The threshold of a feature is that of its highest information gain; of this gain the price of
choosing among m thresholds of n rows is taken, ``log2(m) / n``. Of the splits whose gain is at
least the average of those above 0, the one with the highest ratio of gain to the information of the
split wins. The tree is pruned pessimistically: the errors to expect of a leaf are the upper bound
of a confidence interval for the share of rows that it gets wrong. From below, a node becomes a
leaf, or takes over the larger one of its branches, where no more errors are then to be expected.
Only complete rows are taken: protocols fill in what is missing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import entr
from sklearn.base import BaseEstimator, ClassifierMixin

from evotree.tree import ObliqueTree

# The constants of the program, release 8. A side of a split has at least MIN_CASES rows, and a
# tenth of those that a class has on average, up to 25.
MIN_CASES, LEAST_SHARE, MOST_ROWS = 2.0, 0.1, 25.0
BELOW_AVERAGE = 1e-3
TOLERATED = 0.1  # errors more to expect of a simpler tree
NO_GAIN = 1e-3  # training errors that a subtree saves at least
ALL_WRONG = 0.67
# Quinlan's table of the normal distribution, between whose entries the program interpolates.
CONFIDENCES = (0.0, 0.001, 0.005, 0.01, 0.05, 0.1, 0.2, 0.4, 1.0)
DEVIATIONS = (4.0, 3.09, 2.58, 2.33, 1.65, 1.28, 0.84, 0.25, 0.0)
# Gains and ratios in bits that differ by less are equal; the program's are in single precision.
ROUNDING = 1e-6


@dataclass
class Node:
    """A node with the training rows of each class; rows up to the threshold go left."""

    counts: np.ndarray
    feature: int = -1
    threshold: float = 0.0
    children: tuple[Node, ...] = ()

    @property
    def wrong(self) -> float:
        """The training rows that are wrong if the node is a leaf."""
        return float(self.counts.sum() - self.counts.max())

    def parts(self, X: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the rows of both sides."""
        is_left = X[rows, self.feature] <= self.threshold
        return rows[is_left], rows[~is_left]

    def nodes(self) -> list[Node]:
        """Return the node and all below it, in prefix order."""
        return [self, *(node for child in self.children for node in child.nodes())]

    def leaves(self) -> list[Node]:
        """Return the leaves below."""
        return [node for node in self.nodes() if not node.children]


def bits(counts: np.ndarray) -> np.ndarray:
    """Return the entropy of counts along the last axis, in bits, times their sum."""
    return (entr(counts).sum(axis=-1) - entr(counts.sum(axis=-1))) / math.log(2.0)


def best_test(X: np.ndarray, one_hot: np.ndarray) -> tuple[int, float] | None:
    """Return the feature and the middle of the best split of rows; None without a gain."""
    n, n_classes = one_hot.shape
    order = np.argsort(X, axis=0, kind="stable")
    values = np.take_along_axis(X, order, axis=0)
    left = one_hot[order].cumsum(axis=0)[:-1]
    whole = one_hot.sum(axis=0)
    n_left = np.arange(1.0, n)[:, np.newaxis]
    even = LEAST_SHARE * n / n_classes
    least = MIN_CASES if even <= MIN_CASES else min(even, MOST_ROWS)
    middles = 0.5 * (values[:-1] + values[1:])
    is_cut = (values[:-1] <= middles) & (middles < values[1:])
    is_cut &= np.minimum(n_left, n - n_left) >= least - ROUNDING
    gain = np.where(is_cut, (bits(whole) - bits(left) - bits(whole - left)) / n, 0.0)
    cuts = (gain >= gain.max(axis=0) - ROUNDING).argmax(axis=0)
    n_tried = np.maximum(is_cut.sum(axis=0), 1)
    gains = gain[cuts, np.arange(X.shape[1])] - np.log2(n_tried) / n
    is_useful = gains > ROUNDING
    if not is_useful.any():
        return None
    is_useful &= gains >= gains[is_useful].mean() - BELOW_AVERAGE
    sides = np.column_stack([cuts + 1.0, n - cuts - 1.0])
    ratios = np.where(is_useful, gains * n / bits(sides), 0.0)
    feature = int((ratios >= ratios.max() - ROUNDING).argmax())
    return feature, float(middles[cuts[feature], feature])


def added_errors(n: float, wrong: float, confidence: float) -> float:
    """Return how many errors more than those of the training rows are to be expected of a leaf."""
    # Without any error the upper bound of the binomial distribution is exact, from one on it is
    # that of the normal distribution with a correction for continuity.
    if wrong == 0.0:
        return n * (1.0 - confidence ** (1.0 / n))
    if wrong + 0.5 >= n:
        return ALL_WRONG * (n - wrong)
    z2 = float(np.interp(confidence, CONFIDENCES, DEVIATIONS)) ** 2
    middle = wrong + 0.5
    spread = math.sqrt(z2 * (middle * (1.0 - middle / n) + 0.25 * z2))
    return n * (middle + 0.5 * z2 + spread) / (n + z2) - wrong


def as_tree(root: Node, n_features: int) -> ObliqueTree:
    """Return the arrays of a tree."""
    nodes = root.nodes()
    features = [node.feature if node.children else n_features for node in nodes]
    thresholds = [node.threshold if node.children else 0.0 for node in nodes]
    counts = np.array([node.counts for node in nodes])
    return ObliqueTree(
        np.eye(n_features + 1)[features, :n_features],
        np.array(thresholds),
        np.array([len(node.nodes()) for node in nodes], dtype=np.int32),
        counts / counts.sum(axis=1, keepdims=True),
    )


class C45(ClassifierMixin, BaseEstimator):
    """A tree of C4.5; a smaller `confidence` prunes more. It draws nothing."""

    def __init__(self, confidence: float = 0.25, random_state: Any = None) -> None:
        self.confidence = confidence
        self.random_state = random_state

    def fit(self, X: np.ndarray, y: np.ndarray) -> C45:
        """Grow a tree, and prune it."""
        self.classes_, codes = np.unique(y, return_inverse=True)
        self.one_hot_ = np.eye(len(self.classes_))[codes]
        self.X_ = np.asarray(X, dtype=np.float64)
        if np.isnan(self.X_).any():
            raise ValueError("X has missing values: this C4.5 takes complete rows.")
        rows = np.arange(len(codes))
        self.root_ = self.pruned(self.grown(rows), rows)[0]
        self.tree_ = as_tree(self.root_, self.X_.shape[1])
        del self.X_, self.one_hot_
        return self

    def grown(self, rows: np.ndarray) -> Node:
        """Return the tree of rows; subtrees that get no more of them right are leaves."""
        node = Node(self.one_hot_[rows].sum(axis=0))
        if node.wrong == 0.0 or len(rows) < 2.0 * MIN_CASES:
            return node
        test = best_test(self.X_[rows], self.one_hot_[rows])
        if test is None:
            return node
        node.feature, middle = test
        # The greatest value of all training rows that does not exceed the middle (section 2.4).
        column = self.X_[:, node.feature]
        node.threshold = column[column <= middle + 1e-13 * abs(middle)].max()
        children = tuple(map(self.grown, node.parts(self.X_, rows)))
        of_leaves = sum(leaf.wrong for child in children for leaf in child.leaves())
        if of_leaves < node.wrong - NO_GAIN:
            node.children = children
        return node

    def expected(self, node: Node) -> float:
        """Return how many errors are to be expected of a leaf."""
        n = float(node.counts.sum())
        return node.wrong + added_errors(n, node.wrong, self.confidence)

    def refilled(self, node: Node, rows: np.ndarray) -> Node:
        """Return a subtree with other rows."""
        counts, children = self.one_hot_[rows].sum(axis=0), node.children
        if children:
            sides = node.parts(self.X_, rows)
            children = tuple(map(self.refilled, children, sides))
        return Node(counts, node.feature, node.threshold, children)

    def pruned(self, node: Node, rows: np.ndarray) -> tuple[Node, float]:
        """Return a tree after pruning, and how many errors are to be expected of it."""
        leaf = self.expected(node)
        if not node.children:
            return node, leaf
        sides = node.parts(self.X_, rows)
        left, right = map(self.pruned, node.children, sides)
        both = left[1] + right[1]
        largest = right[0] if len(sides[1]) >= len(sides[0]) else left[0]
        raised = self.refilled(largest, rows)
        of_raised = sum(map(self.expected, raised.leaves()))
        if leaf <= min(of_raised, both) + TOLERATED:
            return Node(node.counts), leaf
        if of_raised <= both + TOLERATED:
            return self.pruned(raised, rows)
        node.children = left[0], right[0]
        return node, both

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        """Return the class shares of the leaves of rows."""
        return self.tree_.values[self.tree_.apply(X)]

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Return the classes of the leaves of rows."""
        return self.classes_[self.predict_proba(X).argmax(axis=1)]
