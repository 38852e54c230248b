"""The oblique decision tree: a struct of arrays in prefix order, and the router through it.

An individual, one member of a population, is a tree with its partition of the training rows and its
fitness.

The left child of node k is k + 1, the right child is ``k + 1 + subtree_size[k + 1]``, and the
subtree of k is the slice ``[k, k + subtree_size[k])``. A row x goes left at node k when
``weights[k] @ x <= thresholds[k]``.

Soft sides make the sides of each split a matter of degree: a row goes right with a probability that
is a logistic function of its distance to the hyperplane, and its probabilities of the classes are
the mean of those of all leaves, weighted by the probabilities that it reaches them.

References
----------
Jordan M. I., Jacobs R. A. (1994). Hierarchical mixtures of experts and the EM algorithm. Neural
Computation 6(2), 181-214.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import attrgetter, is_
from typing import Any, NamedTuple, Self

import numpy as np
from deap import base
from scipy.sparse import csr_matrix
from scipy.special import expit

from evotree._jit import dot_kernel, kernel, read_only
from evotree.leaf_models import (
    LeafModels,
    OutputModels,
    ScoreModels,
    SharedModels,
    check_arrays,
)
from evotree.schema import LARGEST, is_number

# Rows that are routed together.
_ROUTED_ROWS = 1024
# A tree that prints itself shows no more of them.
_PRINTED_LEAVES, _PRINTED_TERMS = 32, 10
# What a tree is made of, in the order of its state.
_TREE_ATTRIBUTES = (
    "weights",
    "thresholds",
    "subtree_size",
    "values",
    "spread",
    "weighted_n_node_samples",
    "given_labels",
    "models",
    "output_names",
    "row_counts",
)
_state_of = attrgetter(*_TREE_ATTRIBUTES)
_WHOLE = ("row_counts", "given_labels")
_NEVER_NEGATIVE = ("spread", "weighted_n_node_samples", *_WHOLE)


@dot_kernel
def project(w, X, i):
    """Return ``w @ X[i]``."""
    s = 0.0
    for j in range(w.shape[0]):
        s += w[j] * X[i, j]
    return s


@kernel
def route(X, weights, thresholds, subtree_size, leaves):
    """Write the leaf that each row of `X` reaches into `leaves`.

    Rows are parted node by node, in blocks that stay in the cache: which way a single row goes
    cannot be predicted, and a branch on it would cost more than the projection.
    """
    n = X.shape[0]
    rows = np.empty(_ROUTED_ROWS, dtype=np.int64)
    right = np.empty(_ROUTED_ROWS, dtype=np.int64)
    pending = np.empty((subtree_size[0], 3), dtype=np.int64)
    for first in range(0, n, _ROUTED_ROWS):
        pending[0, 0], pending[0, 1], pending[0, 2] = 0, 0, min(_ROUTED_ROWS, n - first)
        for t in range(pending[0, 2]):
            rows[t] = first + t
        n_pending = 1
        while n_pending > 0:
            n_pending -= 1
            k, lo, hi = (
                pending[n_pending, 0],
                pending[n_pending, 1],
                pending[n_pending, 2],
            )
            while lo < hi and subtree_size[k] > 1:
                mid, n_right = lo, 0
                for t in range(lo, hi):
                    row = rows[t]
                    goes_left = np.int64(project(weights[k], X, row) <= thresholds[k])
                    rows[mid] = row
                    right[n_right] = row
                    mid += goes_left
                    n_right += 1 - goes_left
                for t in range(n_right):
                    rows[mid + t] = right[t]
                k += 1
                pending[n_pending, 0] = k + subtree_size[k]
                pending[n_pending, 1], pending[n_pending, 2] = mid, hi
                n_pending += 1
                hi = mid
            for t in range(lo, hi):
                leaves[rows[t]] = k


def node_depths(
    subtree_size: np.ndarray, splits: np.ndarray | None = None
) -> np.ndarray:
    """Return how many splits, or how many of some splits, are above every node."""
    if splits is None:
        splits = np.flatnonzero(subtree_size > 1)
    # The subtrees that have begun, less those that have ended, at each node.
    n_begun = np.zeros(len(subtree_size) + 1, dtype=np.int32)
    n_begun[splits + 1] = 1
    np.subtract.at(n_begun, splits + subtree_size[splits], 1)
    return n_begun[:-1].cumsum(dtype=np.int32)


def node_weights(
    leaves: np.ndarray, sample_weight: np.ndarray, subtree_size: np.ndarray
) -> np.ndarray:
    """Return the weight of the rows that reach each node."""
    weights = np.bincount(leaves, sample_weight, minlength=len(subtree_size))
    before = np.append(0.0, np.cumsum(weights))
    inner = np.flatnonzero(subtree_size > 1)
    weights[inner] = before[inner + subtree_size[inner]] - before[inner]
    return weights


class CountedTree(NamedTuple):
    """What an objective reads of a tree: two of its arrays, and the class weights of its nodes."""

    weights: np.ndarray
    subtree_size: np.ndarray
    counts: np.ndarray


class ObliqueTree:
    """A binary tree with a hyperplane in each internal node and a vector of values in each node.

    Its leaves may also hold linear models. The arrays are never written after construction, so
    trees may share them.

    Parameters
    ----------
    weights : ndarray of shape (n_nodes, n_features), float64
        Normal vectors of the hyperplanes; rows of leaves are 0.
    thresholds : ndarray of shape (n_nodes,), float64
        Thresholds of the hyperplanes; 0 at leaves.
    subtree_size : ndarray of shape (n_nodes,), int32
        Number of nodes of the subtree that starts at each node; 1 at a leaf.
    values : ndarray of shape (n_nodes, n_outputs), float64
        What a node predicts: class shares for classification, a target for each output.
    spread : ndarray of shape (n_features,), float64, optional
        Standard deviation of each feature over the training rows: the influence of a term is its
        absolute weight times the spread of its feature.
    weighted_n_node_samples : ndarray of shape (n_nodes,), float64, optional
        Weights of the training rows that reach each node, in the unit of `Dataset.sample_weight`:
        where all weights are equal, the number of rows.
    labels : ndarray of shape (n_nodes,), int64, optional
        Position of the class that each node predicts, where that need not have the highest share.
    models : LeafModels or OutputModels, optional
        Linear models of the leaves, those of several outputs as `OutputModels`; then `values` are
        the means of the nodes' targets.
    output_names : tuple of str, optional
        Names of several outputs; None where there is one, and where values are class shares.
    row_counts : ndarray of shape (n_nodes, n_classes), int64, optional
        Number of training rows of each class that reach each node; of shape (n_nodes, 1) where
        there are no classes. A row counts once, whatever its weight. None where the weights of the
        nodes are these numbers.
    """

    __slots__ = _TREE_ATTRIBUTES
    __hash__ = None  # type: ignore[assignment]

    def __init__(
        self,
        weights: np.ndarray,
        thresholds: np.ndarray,
        subtree_size: np.ndarray,
        values: np.ndarray,
        spread: np.ndarray | None = None,
        weighted_n_node_samples: np.ndarray | None = None,
        labels: np.ndarray | None = None,
        models: LeafModels | OutputModels | None = None,
        output_names: tuple[str, ...] | None = None,
        row_counts: np.ndarray | None = None,
    ) -> None:
        self.weights = weights
        self.thresholds = thresholds
        self.subtree_size = subtree_size
        self.values = values
        self.spread = spread
        self.weighted_n_node_samples = weighted_n_node_samples
        self.given_labels = labels
        self.models: Any = models  # what reads the arrays of models is for one output
        self.output_names = output_names
        self.row_counts = row_counts

    def __len__(self) -> int:
        return self.subtree_size.shape[0]

    def __eq__(self, other: object) -> bool:
        """Trees are equal when their splits and what their leaves predict are, bit for bit."""
        if not isinstance(other, ObliqueTree):
            return NotImplemented
        return self.has_splits_of(other) and self._predicts_as(other)

    def has_splits_of(self, other: "ObliqueTree") -> bool:
        """Return whether hyperplanes are those of another tree, and stand in equal places."""
        if self.weights is other.weights and self.thresholds is other.thresholds:
            return True
        # Bytes, thresholds first: a hall of fame compares many trees, nearly all of them different.
        return (
            self.thresholds.tobytes() == other.thresholds.tobytes()
            and self.subtree_size.tobytes() == other.subtree_size.tobytes()
            and self.weights.tobytes() == other.weights.tobytes()
        )

    def _predicts_as(self, other: "ObliqueTree") -> bool:
        """Return whether leaves predict what those of a tree of equal splits do."""
        mine, theirs = self.models, other.models
        is_alike = type(mine) is type(theirs)
        if not is_alike or not np.array_equal(self.values, other.values):
            return False
        if mine is not None:
            return np.array_equal(mine.table, theirs.table)
        return np.array_equal(self.labels, other.labels)

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(n_nodes={self.n_nodes}, n_leaves={self.n_leaves}, "
            f"depth={self.depth}, n_features={self.n_features})"
        )

    def __str__(self) -> str:
        """Return the rules of a small tree, with features by position: a tree knows no names."""
        # Not above: it needs pandas, which a tree does not.
        from evotree.texts import export_text

        if self.n_leaves > _PRINTED_LEAVES:
            return repr(self)
        return export_text(self, max_terms=_PRINTED_TERMS).rstrip("\n")

    def _repr_html_(self) -> str:
        """Return what a notebook shows."""
        from evotree.texts import notebook_html

        return notebook_html(self)

    @property
    def n_nodes(self) -> int:
        """Number of all nodes, the papers' S(T)."""
        return self.subtree_size.shape[0]

    @property
    def n_leaves(self) -> int:
        """Number of leaves."""
        return (self.n_nodes + 1) // 2

    @property
    def n_terms(self) -> int:
        """Number of weights other than 0, of all splits and of the models of the leaves."""
        of_leaves = 0 if self.models is None else self.models.n_terms
        return int(np.count_nonzero(self.weights)) + of_leaves

    @property
    def complexity(self) -> int:
        """Number of leaves and terms; of an axis-parallel tree, that of all nodes."""
        return self.n_leaves + self.n_terms

    @property
    def n_features(self) -> int:
        """Number of features that the hyperplanes are over."""
        return self.weights.shape[1]

    @property
    def depth(self) -> int:
        """Largest number of hyperplanes between the root and a leaf."""
        return int(node_depths(self.subtree_size).max())

    @property
    def is_leaf(self) -> np.ndarray:
        """Boolean mask of shape (n_nodes,)."""
        return self.subtree_size == 1

    @property
    def labels(self) -> np.ndarray:
        """Position of the class that each node predicts, of shape (n_nodes,).

        A ValueError where leaves have models: their class depends on the row (`predict_label`).
        """
        if self.models is not None:
            raise ValueError(
                "labels: the leaves of this tree have models, so that rows of one leaf differ; "
                "predict_label(X) says what each row is predicted."
            )
        return self.majority if self.given_labels is None else self.given_labels

    @property
    def majority(self) -> np.ndarray:
        """Position of the most frequent class of the rows of each node, of shape (n_nodes,).

        By the weights of the training rows, whatever the node predicts.
        """
        return self.values.argmax(axis=1)

    @property
    def n_node_samples(self) -> np.ndarray | None:
        """Number of training rows that reach each node, of shape (n_nodes,), or None.

        A row counts once, whatever its weight; one of weight 0 is no training row.
        """
        if self.row_counts is None:
            return self.weighted_n_node_samples
        return self.row_counts.sum(axis=1, dtype=np.float64)

    def counted(self) -> CountedTree:
        """Return the tree with the class weights of its nodes."""
        counts = self.values * self.known_samples[:, np.newaxis]
        return CountedTree(self.weights, self.subtree_size, counts)

    @property
    def known_samples(self) -> np.ndarray:
        """The weight of the rows of each node, 1 where it is not known."""
        known = self.weighted_n_node_samples
        return np.ones(len(self)) if known is None else known

    @property
    def known_spread(self) -> np.ndarray:
        """The spread of each feature, 1 where it is not known."""
        return np.ones(self.n_features) if self.spread is None else self.spread

    @property
    def splits(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Weights, thresholds and `subtree_size`: the tree without what its leaves predict."""
        return self.weights, self.thresholds, self.subtree_size

    def labelled(self, labels: np.ndarray) -> "ObliqueTree":
        """Return the same tree whose nodes predict other classes, by position."""
        return self.replaced(labels=labels)

    def predicting(self, values: np.ndarray) -> "ObliqueTree":
        """Return the same tree whose nodes predict other values, and no linear models."""
        return self.replaced(values=values, labels=None, models=None)

    def with_models(self, models: LeafModels | OutputModels | None) -> "ObliqueTree":
        """Return the same tree with linear models in its leaves, or without."""
        return self.replaced(models=models)

    def of_output(self, j: int) -> "ObliqueTree":
        """Return the same tree that predicts one of its outputs alone."""
        rows = self.row_counts
        if rows is not None and self.output_names is None:
            rows = rows.sum(axis=1, keepdims=True)  # each class has rows of its own
        return self.replaced(
            values=self.values[:, j : j + 1],
            labels=None,
            models=None if self.models is None else self.models.each[j],
            output_names=None,
            row_counts=rows,
        )

    def replaced(self, **arrays: Any) -> "ObliqueTree":
        """Return the same tree with some arrays replaced, by the names of the parameters."""
        names = (name.removeprefix("given_") for name in _TREE_ATTRIBUTES)
        return ObliqueTree(**dict(zip(names, _state_of(self), strict=True)) | arrays)

    def left(self, k: int) -> int:
        """Return the left child of internal node `k`."""
        return k + 1

    def right(self, k: int) -> int:
        """Return the right child of internal node `k`."""
        return k + 1 + int(self.subtree_size[k + 1])

    def check_rows(self, X: np.ndarray) -> np.ndarray:
        """Return rows as an array of floats, and refuse those of another number of features."""
        # The router checks nothing: of narrower rows it would read what lies behind them.
        if getattr(X, "dtype", None) not in (np.float64, np.float32):
            X = np.asarray(X, dtype=np.float64)
        if X.ndim != 2 or X.shape[1] != self.n_features:
            raise ValueError(
                f"X has shape {X.shape}: allowed are rows of {self.n_features} features."
            )
        return X

    def apply(self, X: np.ndarray) -> np.ndarray:
        """Return the leaf that each row reaches, as positions in the arrays of the tree, int32.

        Rows are in the units of the hyperplanes, float64 or float32, without NaN.
        """
        X = self.check_rows(X)
        leaves = np.empty(X.shape[0], dtype=np.int32)
        arrays = map(read_only, (X, self.weights, self.thresholds, self.subtree_size))
        route(*arrays, leaves)
        return leaves

    def distances(self, X: np.ndarray) -> np.ndarray:
        """Return what the projections of rows are above the threshold of each split.

        An array of shape (n_splits, n_samples), float64.
        """
        inner = ~self.is_leaf
        with np.errstate(over="ignore", invalid="ignore"):
            above: np.ndarray = self.weights[inner] @ X.T - self.thresholds[inner, None]
        above[np.isnan(above)] = np.inf  # sums that overflow go right
        return above

    def decision_path(self, X: np.ndarray) -> csr_matrix:
        """Return the nodes that each row passes, from the root to its leaf.

        A ``csr_matrix`` of shape (n_samples, n_nodes), 1 where a row passes a node; rows are as for
        `apply`.
        """
        # Row k of `passed` has the nodes on the way to node k: those whose subtree it is in.
        nodes = np.arange(self.n_nodes)
        passed = (nodes <= nodes[:, None]) & (
            nodes[:, None] < nodes + self.subtree_size
        )
        return csr_matrix(passed, dtype=np.int64)[self.apply(X)]

    def predict_value(self, X: np.ndarray) -> np.ndarray:
        """Return what the leaf that each row reaches predicts, of shape (n_samples, n_outputs)."""
        X = self.check_rows(X)
        leaves = self.apply(X)
        if self.models is None:
            return self.values[leaves]
        return self.models.predict(X, leaves).reshape(len(leaves), self.values.shape[1])

    def predict_label(self, X: np.ndarray) -> np.ndarray:
        """Return the position of the class that each row gets, of shape (n_samples,)."""
        if self.models is not None:
            return self.predict_value(X).argmax(axis=1)
        return self.labels[self.apply(X)]

    def label_losses(
        self, X: np.ndarray, y: np.ndarray, costs: np.ndarray | None = None
    ) -> np.ndarray:
        """Return what each row loses by its predicted class, of shape (n_samples,).

        `y` has the positions of the true classes; ``costs[a, b]`` is what it costs to predict class
        b for a row of class a, by default 1 for each error.
        """
        labels = self.predict_label(X)
        return (labels != y).astype(np.float64) if costs is None else costs[y, labels]

    def validate(self) -> "ObliqueTree":
        """Check that the arrays form one tree, and return it; an error names what is wrong."""
        dimensions = {"subtree_size": 1, "weights": 2, "values": 2}
        for name, n_dimensions in dimensions.items():
            array = getattr(self, name)
            if array.ndim != n_dimensions or not len(array):
                raise ValueError(
                    f"{name} has shape {array.shape}: allowed are {n_dimensions} dimensions, and "
                    "at least one node."
                )
        n_nodes, n_outputs = self.n_nodes, self.values.shape[1]
        width = n_outputs if self.output_names is None else 1
        shapes = {
            "weights": (n_nodes, self.n_features),
            "thresholds": (n_nodes,),
            "values": (n_nodes, n_outputs),
            "spread": (self.n_features,),
            "weighted_n_node_samples": (n_nodes,),
            "row_counts": (n_nodes, width),
            "given_labels": (n_nodes,),
        }
        for name, shape in shapes.items():
            array = getattr(self, name)
            if array is None:
                continue
            check_arrays({name: array}, [shape])
            if name in _NEVER_NEGATIVE and array.min() < 0:
                raise ValueError(f"{name} has values that are negative.")
            if name in _WHOLE and array.dtype.kind not in "iu":
                raise ValueError(f"{name}: allowed are integers.")
        _check_sizes(self.subtree_size)
        if self.given_labels is not None and self.given_labels.max() >= n_outputs:
            raise ValueError(f"labels: allowed are integers below {n_outputs}.")
        if self.weights[self.is_leaf].any():
            raise ValueError("weights has rows of leaves that are not 0.")
        names = self.output_names
        if names is not None and len(names) != n_outputs:
            raise ValueError(
                f"output_names has {len(names)} entries: allowed are {n_outputs}."
            )
        if self.models is not None:
            if n_outputs != len(self.models.each):
                raise ValueError(
                    f"values has {n_outputs} columns for {len(self.models.each)} models of a leaf."
                )
            self.models.validate(n_nodes, self.n_features)
            is_shared = isinstance(self.models, SharedModels)
            expected = self.models.coefficients[0] if is_shared else 0.0
            inner = self.models.coefficients[~self.is_leaf]
            if not isinstance(self.models, ScoreModels) and (inner != expected).any():
                raise ValueError(
                    "coefficients has rows of internal nodes that are not "
                    f"{'the score' if is_shared else '0'}."
                )
        return self

    def __getstate__(self) -> Any:
        return _state_of(self)

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        ObliqueTree.__init__(self, *state)

    def __deepcopy__(self, memo: dict[int, Any]) -> "ObliqueTree":
        return ObliqueTree(*ObliqueTree.__getstate__(self))


def sizes_of_kept(kept: np.ndarray, subtree_size: np.ndarray) -> np.ndarray:
    """Return the sizes of the subtrees of nodes that stay, where the others are taken out."""
    before = np.append(0, np.cumsum(kept))
    sizes = before[np.arange(len(kept)) + subtree_size] - before[:-1]
    return sizes[kept].astype(np.int32)


def mean_of_trees(trees: Sequence[ObliqueTree], rows: np.ndarray) -> np.ndarray:
    """Return the mean of what trees predict."""
    return reduce(np.add, (tree.predict_value(rows) for tree in trees)) / len(trees)


def _check_sizes(subtree_size: np.ndarray) -> None:
    """Refuse sizes of subtrees that do not form one tree in prefix order."""
    n_nodes = len(subtree_size)
    if (size := subtree_size[0]) != n_nodes:
        raise ValueError(
            f"subtree_size[0]={size}: the root's subtree has all {n_nodes} nodes."
        )
    for k in np.flatnonzero(subtree_size != 1).tolist():
        size = int(subtree_size[k])
        children_fit = (
            3 <= size <= n_nodes - k
            and 1 <= subtree_size[k + 1] <= size - 2
            and subtree_size[k + 1] + subtree_size[k + 1 + subtree_size[k + 1]] + 1
            == size
        )
        if not children_fit:
            raise ValueError(
                f"subtree_size[{k}]={size}: allowed is 1 for a leaf, else one more than the sum "
                "of those of its two children."
            )


# ---- soft sides ----------------------------------------------------------------------------------


LEAD = 1e-6
"""What the class of a leaf is ahead of the next one, at least, before probabilities are scaled."""

_MIXED = 4096  # rows that are predicted together
_FARTHEST = np.finfo(np.float64).max  # infinity times a slope of 0 would be NaN


@dataclass(frozen=True, eq=False, repr=False)
class SoftSides:
    """Sides of splits that are a matter of degree, and class probabilities of leaves.

    At internal node k a row x goes right with the probability

    ``1 / (1 + exp(-(slopes[k] * (weights[k] @ x - thresholds[k]) + intercepts[k])))``

    with the weights and thresholds of the tree. Its probability of a leaf is the product of those
    of the sides on the path, and its probabilities of the classes are the sum over the leaves of
    that times `shares`. Last, the class of the highest share in the leaf that the row reaches is
    raised to the highest of them, where it is not, and all are divided by their sum.

    Attributes
    ----------
    slopes : ndarray of shape (n_nodes,), float64
        How fast the probability of the right side rises with the distance, above 0; 0 at leaves.
    intercepts : ndarray of shape (n_nodes,), float64
        Log-odds of the right side on the hyperplane; 0 at leaves.
    shares : ndarray of shape (n_nodes, n_classes), float64
        Class probabilities of the leaves; 0 at internal nodes.
    """

    slopes: np.ndarray
    intercepts: np.ndarray
    shares: np.ndarray

    def __repr__(self) -> str:
        n_nodes, n_classes = self.shares.shape
        return f"SoftSides(n_nodes={n_nodes}, n_classes={n_classes})"

    def predict(self, tree: ObliqueTree, X: np.ndarray) -> np.ndarray:
        """Return the probabilities of the classes."""
        return raise_labels(self.mix(tree, X), tree.majority[tree.apply(X)])

    def mix(self, tree: ObliqueTree, X: np.ndarray) -> np.ndarray:
        """Return the probabilities before that of the predicted class is raised."""
        X = tree.check_rows(X)
        is_leaf = tree.is_leaf
        found = np.empty((len(X), self.shares.shape[1]))
        for first in range(0, len(X), _MIXED):
            away = np.clip(
                tree.distances(X[first : first + _MIXED]), -_FARTHEST, _FARTHEST
            )
            with np.errstate(over="ignore"):
                log_odds = (
                    away * self.slopes[~is_leaf, None] + self.intercepts[~is_leaf, None]
                )
            reached = soft_reach(tree, expit(log_odds))
            found[first : first + _MIXED] = reached[is_leaf].T @ self.shares[is_leaf]
        return found

    def validate(self, tree: ObliqueTree) -> Self:
        """Check that the arrays fit a tree, and return the soft sides."""
        check_arrays(vars(self), [(len(tree),), (len(tree),), tree.values.shape])
        if self.slopes.min() < 0.0:
            raise ValueError("slopes has values below 0.")
        shares = self.shares[tree.is_leaf]
        if shares.min() < 0.0 or not np.allclose(shares.sum(axis=1), 1.0):
            raise ValueError(
                "shares of leaves are not probabilities: they must add up to 1."
            )
        return self


def soft_reach(tree: ObliqueTree, right: np.ndarray) -> np.ndarray:
    """Return the probabilities that rows reach the nodes."""
    reached = np.empty((len(tree), right.shape[1]))
    reached[0] = 1.0
    for split, k in enumerate(np.flatnonzero(~tree.is_leaf).tolist()):
        after = reached[tree.right(k)]
        np.multiply(reached[k], right[split], out=after)
        np.subtract(reached[k], after, out=reached[k + 1])
    return reached


def raise_labels(probabilities: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Raise the probability of each row's label above those of the other classes."""
    rows = np.arange(len(labels))
    others = probabilities.copy()
    others[rows, labels] = -1.0
    lacking = np.maximum(others.max(axis=1) + LEAD - probabilities[rows, labels], 0.0)
    raised = probabilities.copy()
    raised[rows, labels] += lacking
    return raised / raised.sum(axis=1, keepdims=True)


# ---- a tree with its rows ------------------------------------------------------------------------


@kernel
def explained_variance(counts, subtree_size):
    """Return the share of the targets' variance that the means of the leaves explain."""
    error = total = 0.0
    for k in range(subtree_size.shape[0]):
        if subtree_size[k] == 1:
            total += counts[k, 2]
            error += max(0.0, counts[k, 2] - counts[k, 1] * counts[k, 1] / counts[k, 0])
    return 1.0 - error / total if total > 0.0 else 1.0


@kernel
def leaf_accuracy(counts, subtree_size):
    """Return the share of the training weight that the majority classes of the leaves get right."""
    right = total = 0.0
    for k in range(subtree_size.shape[0]):
        if subtree_size[k] == 1:
            best = counts[k, 0]
            for c in range(counts.shape[1]):
                total += counts[k, c]
                best = max(best, counts[k, c])
            right += best
    return right / total


class FitnessMax(base.Fitness):
    """One objective, to be maximized."""

    # A class of this package, not one put into ``deap.creator`` at run time: it pickles, and two
    # experiments in one process cannot collide.
    weights = (1.0,)
    __hash__ = base.Fitness.__hash__


def set_fitness(individual: Any, values: Any) -> None:
    """Give an individual its fitness."""
    n_objectives = len(individual.fitness.weights)
    is_tuple = isinstance(values, tuple) and len(values) == n_objectives
    if not is_tuple or not all(map(is_number, values)):
        raise ValueError(
            f"evaluate returned {values!r}: allowed is a tuple of {n_objectives} finite "
            f"number{'s' if n_objectives > 1 else ''}, of magnitudes up to "
            f"{LARGEST:g}, as many as {type(individual.fitness).__name__} has objectives."
        )
    individual.fitness.values = values


class Outcome(NamedTuple):
    """What one refinement did."""

    operator: str  # name of the refiner
    gain: float  # rise of the fitness; 0 where the individual stayed as it was
    seconds: float  # compilation of kernels apart


# What an individual holds besides its arrays.
_STATE = (
    "fitness",
    "stream",
    "origin",
    "outcome",
    "objective",
)
_NODES = (
    *("weights", "thresholds", "subtree_size"),
    *("order", "start", "end", "counts", "answers"),
)
_nodes_of = attrgetter(*_NODES)
# What a clone shares with its original.
_CLONED = (*_NODES, "stream", "origin", "objective", "_quality", "_n_terms")


NO_ANSWERS = np.empty((0, 0))
"""The answers of trees whose leaves predict what their rows say."""


class Individual(ObliqueTree):
    """A tree over a data set with its partition and its fitness.

    Operators replace the arrays and never write them, so a clone shares them with its parent.

    Parameters
    ----------
    nodes : iterable of ndarray
        ``weights, thresholds, subtree_size`` of the tree; ``order (n_rows,)``, ``start (n_nodes,)``
        and ``end (n_nodes,)`` of the partition, int32: the rows of node k are
        ``order[start[k]:end[k]]``; ``counts (n_nodes, n_classes)``, their class weights; and
        ``answers``.

    Attributes
    ----------
    answers : ndarray of shape (n_nodes, n_numbers), float64
        What leaves answer in a search by scores (`evotree.simulators.trees.Actions`), NaN where
        they do not yet; without columns where rows say what leaves predict.
    fitness : FitnessMax
        DEAP's fitness; not valid after a change.
    stream : ndarray of shape (1,), uint64, or None
        Random state that operators draw from; set by the loop for each offspring.
    origin : str
        What made the first individual that it descends from: a splitter's name, or ``"initial"``.
    outcome : Outcome or None
        What a refinement did to it in this generation; a clone has none.
    objective : Objective or None
        What it is evolved for; None for the accuracy, or the squared error.
    history_index : int
        Its number in the genealogy of DEAP's `History`, where one is kept.
    """

    __slots__ = (
        *("order", "start", "end", "counts", "answers"),
        *("_quality", "_n_terms", "history_index"),
        *_STATE,
    )

    history_index: int

    __hash__ = None

    _plain_quality = staticmethod(leaf_accuracy)

    def __eq__(self, other: object) -> bool:
        """Individuals are equal when their splits and answers are: the rest follows from rows."""
        if not isinstance(other, ObliqueTree):
            return NotImplemented
        mine, theirs = self.answers, getattr(other, "answers", NO_ANSWERS)
        is_alike = mine is theirs or mine.tobytes() == theirs.tobytes()
        return is_alike and self.has_splits_of(other)

    def __init__(self, nodes: Iterable[np.ndarray]) -> None:
        self.fitness: base.Fitness = FitnessMax()
        self.stream: Any = None
        self.origin = "unknown"
        self.outcome: Outcome | None = None
        self.objective: Any = None
        self._take(nodes)

    def _take(self, nodes: Iterable[np.ndarray]) -> None:
        self.weights, self.thresholds, self.subtree_size, *partition = nodes
        self.order, self.start, self.end, self.counts, self.answers = partition
        self._quality: float | None = None
        self._n_terms: int | None = None
        self.fitness.wvalues = ()

    def replace(self, nodes: Iterable[np.ndarray]) -> None:
        """Put another tree with its partition in the place of the present one.

        For what a kernel returns, which has routed the rows; it is refused with the present
        partition. Where the arrays of the tree alone are new, `evotree.with_tree` routes them.
        """
        nodes = tuple(nodes)
        if any(map(is_, nodes[3:], self.nodes()[3:])):
            raise ValueError(
                "replace is given the partition of the present tree: make an individual of other "
                "arrays by evotree.with_tree(individual, dataset, weights, thresholds, "
                "subtree_size), which routes the rows."
            )
        self._take(nodes)

    def evolve_for(self, objective: Any) -> None:
        """Take another objective; where it is not the present one, the fitness is deleted."""
        if objective is not self.objective:
            self.objective = objective
            self._take(self.nodes())

    def answer(self, answers: np.ndarray) -> None:
        """Let the leaves answer something else; the fitness is deleted."""
        *others, _ = self.nodes()
        self._take((*others, answers))

    def measured(self, quality: float) -> None:
        """Take the quality that other rows say, until the tree changes; the fitness is deleted."""
        self._quality = quality
        self.fitness.wvalues = ()

    def replace_by(self, other: "Individual") -> None:
        """Take over tree, partition and objective of another individual; the fitness is deleted."""
        self.objective = other.objective
        self._take(other.nodes())

    def nodes(self) -> tuple[np.ndarray, ...]:
        """Return the arrays of the tree and its partition, as `replace` and kernels take them."""
        return _nodes_of(self)

    @property
    def values(self) -> np.ndarray:  # type: ignore[override]
        """Class shares of the nodes, of shape (n_nodes, n_classes)."""
        return self.counts / self.counts.sum(axis=1, keepdims=True)

    @property
    def quality(self) -> float:
        """Share of the weight that is right, of the variance explained, or of the objective."""
        if self._quality is None and self.objective is not None:
            self._quality = self.objective.quality(self)
        if self._quality is None:
            self._quality = self._plain_quality(self.counts, self.subtree_size)
        return self._quality

    @property
    def labels(self) -> np.ndarray:
        """Position of the class that each node predicts, of shape (n_nodes,)."""
        if self.objective is None:
            return self.counts.argmax(axis=1)
        return self.objective.labels(self)

    @property
    def n_terms(self) -> int:
        """Number of weights other than 0, counted once: many ask for it in each generation."""
        if self._n_terms is None:
            self._n_terms = super().n_terms
            if self.objective is not None:
                self._n_terms += self.objective.n_leaf_terms(self)
        return self._n_terms

    # What follows from the counts, the rows and the objective, or is known to the data set alone.
    given_labels = models = spread = row_counts = None
    output_names: Any = None

    @property
    def weighted_n_node_samples(self) -> np.ndarray:  # type: ignore[override]
        """Weights of the rows of the nodes, of shape (n_nodes,)."""
        return self.counts.sum(axis=1)

    def to_tree(self) -> ObliqueTree:
        """Return the tree alone."""
        return ObliqueTree(
            *self.splits,
            self.values,
            weighted_n_node_samples=self.weighted_n_node_samples,
        )

    def clone(self) -> Self:
        """Return an individual that shares the arrays and has a fitness of its own."""
        copy = type(self).__new__(type(self))
        for name in _CLONED:
            setattr(copy, name, getattr(self, name))
        copy.outcome = None
        kind: Any = type(self.fitness)
        copy.fitness = kind.__new__(kind)  # its __init__ checks what is known
        copy.fitness.wvalues = self.fitness.wvalues
        if hasattr(self, "history_index"):
            copy.history_index = self.history_index
        return copy

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self.clone()

    def __getstate__(self) -> tuple[Any, ...]:
        return (
            self.nodes(),
            self.fitness,
            self.stream,
            self.origin,
            self.outcome,
            self.objective,
            self._quality,
        )

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        nodes, *others = state
        self.__init__(nodes)  # type: ignore[misc]
        for name, value in zip((*_STATE, "_quality"), others, strict=True):
            setattr(self, name, value)


class RegressionIndividual(Individual):
    """One member of a population that predicts targets."""

    # Its ``counts (n_nodes, 3)`` are the sums of w, w y and w y**2 of the nodes' rows, in the units
    # of the data set, in which the targets have mean 0.
    __slots__ = ()
    _plain_quality = staticmethod(explained_variance)

    @property
    def values(self) -> np.ndarray:  # type: ignore[override]
        """Mean targets of the nodes, (n_nodes, 1), or what the objective says they predict."""
        if self.objective is not None:
            return self.objective.values(self)
        return self.counts[:, 1:2] / self.counts[:, :1]

    @property
    def output_names(self) -> tuple[str, ...] | None:  # type: ignore[override]
        """Names of several outputs; None where there is one."""
        return getattr(self.objective, "output_names", None)

    @property
    def weighted_n_node_samples(self) -> np.ndarray:  # type: ignore[override]
        """Weights of the rows of the nodes, of shape (n_nodes,)."""
        return self.counts[:, 0].copy()
