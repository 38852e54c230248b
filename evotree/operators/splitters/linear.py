"""Splits by linear classifiers of groups of classes.

At a node, linear classifiers are fitted to several pairs of groups of its classes, and the
hyperplane of the one whose split of all the rows has the best score is taken. With one class
against another and support vector machines this is the search of STree (Montañana, Gámez and Puerta
2021, "STree: a single multi-class oblique decision tree based on support vector machines", CAEPIA);
with one class against the others it is its one-versus-rest form.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from numbers import Integral, Real
from typing import Annotated

import numpy as np

from evotree.configuration import Configuration, Interval, StrOptions
from evotree.fitness.node import Node
from evotree.operators.splitters.axis import Axis
from evotree.operators.splitters.base import Split, best_split_along, better_split
from evotree.operators.splitters.linear_fit import (
    LOSSES,
    PENALTIES,
    fit_linear,
    start_at,
)
from evotree.rng import as_generator

GROUPS = ("one_vs_one", "one_vs_rest", "random", "all")
"""Names of the ways to form two groups of classes."""

THRESHOLDS = ("classifier", "best")
"""Names of the ways to set thresholds."""


@dataclass(frozen=True, repr=False)
class Linear(Configuration):
    """The best of the splits by linear classifiers of groups of classes.

    Targets are parted into those above their mean and the others. The defaults were chosen by
    five-fold cross-validation: of many classes "one_vs_one" is the most accurate, the classifiers'
    own thresholds do better on unseen rows than the best ones, and without `fallback` trees are
    smaller, and better where classes overlap.

    Parameters
    ----------
    loss : {"svm", "logistic"}, default="svm"
        Squared hinge loss of support vector machines, or that of logistic regression.
    penalty : {"l2", "l1"}, default="l2"
        Penalty of the weights; "l1" makes many of them 0.
    C : float above 0, default=1.0
        Cost of the loss of a row of weight 1.
    groups : {"one_vs_one", "one_vs_rest", "random", "all"}, default="one_vs_one"
        Which groups of classes are told apart: each class from each other one, each class from the
        others together, random halves of the classes, or all three in turn.
    n_groups : int, at least 1, default=10
        Number of random halves.
    threshold : {"classifier", "best"}, default="classifier"
        Whether the threshold is the classifier's own or that of the best score for its weights.
    fallback : bool, default=False
        Whether to take the best split on one feature where no classifier parts the rows; without it
        such a node has no split, as in STree.
    max_iter : int, at least 1, default=100
        Most Newton steps of a fit.
    tol : float above 0, default=1e-4
        A fit ends when a step promises to lower its objective by less than this share.
    """

    loss: Annotated[str, StrOptions(set(LOSSES))] = "svm"
    penalty: Annotated[str, StrOptions(set(PENALTIES))] = "l2"
    C: Annotated[float, Interval(Real, 0.0, None, closed="neither")] = 1.0
    groups: Annotated[str, StrOptions(set(GROUPS))] = "one_vs_one"
    n_groups: Annotated[int, Interval(Integral, 1, None, closed="left")] = 10
    threshold: Annotated[str, StrOptions(set(THRESHOLDS))] = "classifier"
    fallback: Annotated[bool, "boolean"] = False
    max_iter: Annotated[int, Interval(Integral, 1, None, closed="left")] = 100
    tol: Annotated[float, Interval(Real, 0.0, None, closed="neither")] = 1e-4

    def __call__(self, node: Node, stream: np.ndarray) -> Split | None:
        """Find the split (see `Splitter`)."""
        if node.X.shape[1] > 1:
            best = self._search(node, stream)
            if best is not None or not self.fallback:
                return best
        # Of one feature a threshold is as good as any classifier.
        return Axis()(node, stream)

    def refit(self, node: Node, weights: np.ndarray, threshold: float) -> Split | None:
        """Fit a classifier that sends class 1 of two classes right, starting from a hyperplane."""
        # The split is not scored, and ``weights @ x - threshold`` is the decision function.
        theta = start_at(node.X, weights, threshold)
        self._fit(node.X, 2.0 * node.y - 1.0, node.sample_weight, theta)
        if not np.isfinite(theta).all():
            return None
        return Split(theta[:-1].copy(), -float(theta[-1]), np.nan)

    def _fit(
        self,
        X: np.ndarray,
        signs: np.ndarray,
        sample_weight: np.ndarray,
        theta: np.ndarray,
    ) -> None:
        """Fit a classifier of two groups of rows; `theta` holds the start, then the result."""
        # Kernels hand it rows that can be written; it is compiled for these alone.
        X = X if X.flags.writeable else X.copy()
        fit_linear(
            X,
            signs,
            self.C * sample_weight,
            theta,
            loss=self.loss,
            penalty=self.penalty,
            max_iter=self.max_iter,
            tol=self.tol,
        )

    def _search(self, node: Node, stream: np.ndarray) -> Split | None:
        """Return the best of the classifiers' splits; None where none parts the rows."""
        codes = node.y
        if node.n_classes == 0:
            middle = np.sum(node.sample_weight * node.y) / np.sum(node.sample_weight)
            codes = (node.y <= middle).astype(np.int32)
        best: Split | None = None
        for side in self._sides(codes, node.n_classes or 2, stream):
            signs = side[codes].astype(np.float64)
            rows = np.flatnonzero(signs)
            theta = np.zeros(node.X.shape[1] + 1)
            self._fit(node.X[rows], signs[rows], node.sample_weight[rows], theta)
            length = np.linalg.norm(theta[:-1])
            if not 0.0 < length < np.inf:
                continue
            weights, threshold = theta[:-1] / length, -float(theta[-1] / length)
            if self.threshold == "best":
                along = best_split_along(node, weights)
                threshold = threshold if along is None else along.threshold
            best = better_split(best, node, (weights, threshold))
        return best

    def _sides(
        self, codes: np.ndarray, n_classes: int, stream: np.ndarray
    ) -> Iterator[np.ndarray]:
        """Yield the sides of the classes, 1, -1 or 0 for none, of each two groups to tell apart."""
        # One by one: all of them at once would take memory that grows with the cube of the classes.
        present = np.flatnonzero(np.bincount(codes, minlength=n_classes))
        ways = GROUPS[:3] if self.groups == "all" else (self.groups,)
        if "one_vs_one" in ways or present.size <= 2:
            for first, second in combinations(present, 2):
                sides = np.zeros(n_classes, dtype=np.int8)
                sides[first], sides[second] = 1, -1
                yield sides
        if "one_vs_rest" in ways and present.size > 2:
            for code in present:
                sides = np.full(n_classes, -1, dtype=np.int8)
                sides[code] = 1
                yield sides
        if "random" in ways and present.size > 2:
            generator = as_generator(stream)
            for _ in range(self.n_groups):
                sides = np.zeros(n_classes, dtype=np.int8)
                while abs(sides.sum(dtype=np.int64)) == present.size or not sides.any():
                    sides[present] = 2 * generator.integers(0, 2, present.size) - 1
                yield sides
