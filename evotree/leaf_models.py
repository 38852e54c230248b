"""Linear models in the leaves of a tree: what they predict, and within which range.

All kinds are read in one way: `each` has one `LeafModels` for each number that a leaf predicts,
`with_each` makes the same kind of others, and `of_classes` says whether these numbers are the
scores of classes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Self

import numpy as np
from scipy.special import softmax

_DIGITS_OF_SUMS = 12  # that sums of numbers of few digits have rightly

LARGEST_SCORE = 1e300
"""The bound of scores, which are not bounded otherwise: differences of two are finite."""


def check_arrays(
    arrays: Mapping[str, np.ndarray], shapes: Sequence[tuple[int, ...]]
) -> None:
    """Check the shapes of arrays, and that their numbers are finite."""
    for (name, array), shape in zip(arrays.items(), shapes, strict=True):
        if np.shape(array) != shape:
            raise ValueError(f"{name} has shape {np.shape(array)}: allowed is {shape}.")
        if not np.isfinite(array).all():
            raise ValueError(f"{name} has values that are not finite.")


class LeafModels(NamedTuple):
    """A linear model of each leaf, bounded.

    A row x that reaches leaf k is predicted as ``intercepts[k] + coefficients[k] @ x``, but never
    below ``lowest[k]`` or above ``highest[k]``. Internal nodes have no coefficients: their
    intercepts and bounds are what they would predict as leaves, their mean targets.
    """

    intercepts: np.ndarray  # (n_nodes,)
    coefficients: np.ndarray  # (n_nodes, n_features)
    lowest: np.ndarray  # (n_nodes,)
    highest: np.ndarray  # (n_nodes,)

    @property
    def of_classes(self) -> bool:
        """Whether the numbers are scores of classes."""
        return False

    @property
    def is_log(self) -> bool:
        """Whether what leaves predict is the exponential of their scores (`LogModels`)."""
        return False

    @property
    def each(self) -> tuple[LeafModels, ...]:
        """The models of each number that a leaf predicts."""
        return (self,)

    def with_each(self, each: Sequence[LeafModels]) -> LeafModels:
        """Return models of the same kind."""
        return each[0]

    @property
    def n_terms(self) -> int:
        """Number of coefficients other than 0."""
        return int(np.count_nonzero(self.coefficients))

    @property
    def table(self) -> np.ndarray:
        """The intercept, the bounds and the coefficients of each node, side by side."""
        return np.column_stack(
            [self.intercepts, self.lowest, self.highest, self.coefficients]
        )

    def take(self, nodes: np.ndarray) -> LeafModels:
        """Return the models of some nodes, by positions or a mask."""
        return type(self)(*(array[nodes] for array in self))

    def predict(self, X: np.ndarray, leaves: np.ndarray) -> np.ndarray:
        """Return what rows are predicted, of shape (n_samples,)."""
        return self.scores(X, leaves)

    def as_scores(self, predictions: np.ndarray) -> np.ndarray:
        """Return the scores of what is predicted; here the same."""
        return predictions

    def scores(self, X: np.ndarray, leaves: np.ndarray) -> np.ndarray:
        """Return the bounded sums of rows, of shape (n_samples,).

        Terms are added one after the other, in the order of the features, as exported code does.
        Sums that overflow to both sides are the upper bound, as such rows go right at a split.
        """
        predicted = np.asarray(self.intercepts[leaves], dtype=np.float64)
        order = np.argsort(leaves, kind="stable")
        reached, first = np.unique(leaves[order], return_index=True)
        # The bounds hold for infinity, too
        with np.errstate(over="ignore", invalid="ignore"):
            for k, rows in zip(reached, np.split(order, first)[1:], strict=True):
                for j in np.flatnonzero(self.coefficients[k]):
                    predicted[rows] += self.coefficients[k, j] * X[rows, j]
        highest = self.highest[leaves]
        clipped = np.clip(predicted, self.lowest[leaves], highest)
        return np.where(np.isnan(predicted), highest, clipped)

    def validate(self, n_nodes: int, n_features: int) -> None:
        """Check shapes and numbers."""
        check_arrays(
            self._asdict(), [(n_nodes,), (n_nodes, n_features), (n_nodes,), (n_nodes,)]
        )
        if (self.lowest > self.highest).any():
            raise ValueError("lowest has values above those of highest.")


class LogModels(LeafModels):
    """Log-linear models of the leaves: a row is predicted the exponential of its bounded sum."""

    __slots__ = ()

    @property
    def is_log(self) -> bool:
        """Whether what leaves predict is the exponential of their scores."""
        return True

    def predict(self, X: np.ndarray, leaves: np.ndarray) -> np.ndarray:
        """Return what rows are predicted, of shape (n_samples,)."""
        return np.exp(self.scores(X, leaves))

    def as_scores(self, predictions: np.ndarray) -> np.ndarray:
        """Return the logarithms of what is predicted; of 0 that of the least number above."""
        return np.log(np.maximum(predictions, np.finfo(np.float64).tiny))


class SharedModels(LeafModels):
    """A score of all rows, to which each leaf adds a linear model: a regression tree on a score.

    Leaves have the sums of both. The root, and all other nodes that are no leaves, have the score
    alone; its terms count once. The bounds of all nodes are the same.
    """

    __slots__ = ()

    @classmethod
    def of(cls, score: LeafModels, own: LeafModels, is_leaf: np.ndarray) -> Self:
        """Return the sums of a score, the model of one leaf, and models of the leaves of a tree."""
        is_added = np.where(is_leaf, 1.0, 0.0)
        return cls(
            score.intercepts[0] + is_added * own.intercepts,
            score.coefficients[0] + is_added[:, np.newaxis] * own.coefficients,
            *(np.full(len(is_leaf), bound[0]) for bound in score[2:]),
        )

    @property
    def score(self) -> LeafModels:
        """The score, as the model of one leaf."""
        return LeafModels(*(array[:1] for array in self))

    @property
    def added(self) -> LeafModels:
        """What leaves add to the score, without bounds: sums less the score, but for rounding."""
        bound = np.full(len(self.intercepts), LARGEST_SCORE)
        intercepts, coefficients = (_difference(array, array[:1]) for array in self[:2])
        return LeafModels(intercepts, coefficients, -bound, bound)

    @property
    def n_terms(self) -> int:
        """Number of coefficients of the score, and of those that leaves add."""
        added = self.coefficients != self.coefficients[0]
        return int(np.count_nonzero(self.coefficients[0]) + np.count_nonzero(added))


def _difference(sums: np.ndarray, first: np.ndarray) -> np.ndarray:
    """Return what was added to numbers, without the digits that the sums have lost."""
    added = sums - first
    largest = np.maximum(np.abs(sums), np.abs(first))
    unit = 10.0 ** np.floor(np.log10(np.where(largest > 0.0, largest, 1.0)))
    exact = [
        float(f"{round(one / u, _DIGITS_OF_SUMS) * u:.{_DIGITS_OF_SUMS}g}")
        for one, u in zip(added.flat, unit.flat, strict=True)
    ]
    return np.array(exact).reshape(added.shape)


class OutputModels(NamedTuple):
    """Linear models of the leaves for several outputs, as `LeafModels` of each."""

    each: tuple[LeafModels, ...]

    @property
    def of_classes(self) -> bool:
        """Whether the numbers are scores of classes."""
        return False

    @property
    def is_log(self) -> bool:
        """Whether what leaves predict is the exponential of their scores."""
        return False

    def with_each(self, each: Sequence[LeafModels]) -> OutputModels:
        """Return models of the same kind."""
        return type(self)(tuple(each))

    @property
    def n_terms(self) -> int:
        """Number of coefficients other than 0."""
        return sum(models.n_terms for models in self.each)

    @property
    def table(self) -> np.ndarray:
        """The tables of the outputs, side by side."""
        return np.hstack([models.table for models in self.each])

    @property
    def coefficients(self) -> np.ndarray:
        """Which features the models of a node use: sums of absolute coefficients over outputs."""
        return np.sum([np.abs(models.coefficients) for models in self.each], axis=0)

    def take(self, nodes: np.ndarray) -> OutputModels:
        """Return the models of some nodes, by positions or a mask."""
        return self.with_each([models.take(nodes) for models in self.each])

    def predict(self, X: np.ndarray, leaves: np.ndarray) -> np.ndarray:
        """Return what rows are predicted, of shape (n_samples, n_outputs)."""
        return np.column_stack([models.predict(X, leaves) for models in self.each])

    def validate(self, n_nodes: int, n_features: int) -> None:
        """Check shapes and numbers, as `LeafModels.validate` does."""
        for models in self.each:
            models.validate(n_nodes, n_features)


class ScoreModels(OutputModels):
    """One score of all rows, to which each leaf adds its points: a tree on a score.

    `each` is the score of a class. The coefficients of all nodes are the same, and count once;
    intercepts are the points, those of the root being what the score alone has. The class of the
    largest score is predicted, of equals the first; the probabilities of the classes are the
    softmax of their scores, which are bounded by `LARGEST_SCORE` alone. Of two classes the first
    has the score 0, and the score of the second is its log-odds.
    """

    __slots__ = ()

    @property
    def of_classes(self) -> bool:
        """Whether the numbers are scores of classes."""
        return True

    def scores(self, X: np.ndarray, leaves: np.ndarray) -> np.ndarray:
        """Return the scores of the classes, of shape (n_samples, n_classes)."""
        return super().predict(X, leaves)

    def predict(self, X: np.ndarray, leaves: np.ndarray) -> np.ndarray:
        """Return the probabilities of the classes, of shape (n_samples, n_classes)."""
        probabilities = softmax(self.scores(X, leaves), axis=1)
        # Far away from the training rows they would be 0, which no finite score means.
        return np.maximum(probabilities, np.finfo(np.float64).tiny)

    @classmethod
    def of(cls, points: np.ndarray, coefficients: np.ndarray) -> Self:
        """Return models of points (n_nodes, n_classes) and coefficients (n_classes, n_features)."""
        bound = np.full(len(points), LARGEST_SCORE)
        return cls(
            tuple(
                LeafModels(
                    points[:, c],
                    np.broadcast_to(weights, (len(points), len(weights))),
                    -bound,
                    bound,
                )
                for c, weights in enumerate(coefficients)
            )
        )

    @property
    def points(self) -> np.ndarray:
        """What each node adds to the score of each class, of shape (n_nodes, n_classes)."""
        return np.column_stack([models.intercepts for models in self.each])

    @property
    def score(self) -> np.ndarray:
        """The coefficients of the score of each class, of shape (n_classes, n_features)."""
        return np.array([models.coefficients[0] for models in self.each])

    @property
    def n_terms(self) -> int:
        """Number of coefficients other than 0, which all leaves share."""
        return int(np.count_nonzero(self.score))


LEAF_MODELS = {
    kind.__name__: kind
    for kind in (LeafModels, LogModels, SharedModels, OutputModels, ScoreModels)
}
"""The kinds of linear models in leaves."""


def class_probabilities(tree: Any, sides: Any, X: np.ndarray) -> np.ndarray:
    """Return the probabilities of the classes, of shape (n_samples, n_classes).

    By the distances of rows to the hyperplanes where there are soft sides, else by leaves.
    """
    return tree.predict_value(X) if sides is None else sides.predict(tree, X)
