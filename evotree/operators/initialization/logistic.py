"""Logistic models as trees: one split for two classes, k - 1 splits for k.

The classes are parted into two groups, these again, until each is alone (nested dichotomies, Frank
and Kramer 2004). At each split stands a logistic regression of one group against the other, on all
rows of these classes: its hyperplane is the split, its logistic function the soft side. So for two
classes such a tree is the logistic regression, with the same labels and probabilities.
"""

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from scipy.cluster.hierarchy import ClusterNode, linkage, to_tree
from scipy.spatial.distance import pdist

from evotree.dataset import Dataset
from evotree.fitness.node import Criterion, Node, choose_threshold
from evotree.fitness.probabilities import (
    COSTS,
    HALVINGS,
    ModelRows,
    Strength,
    path_of_models,
)
from evotree.operators.structure.splice import make_individual, subtree_sizes
from evotree.tree import Individual, ObliqueTree, SoftSides

LOGISTIC = "logistic"
"""The origin of such trees."""

_COVARIANCE_RIDGE = 0.1  # within classes, of standardized features


class SoftTree(NamedTuple):
    """A tree over the features of a data set, with its rows, and its soft sides."""

    individual: Individual
    sides: SoftSides


def class_hierarchy(rows: Dataset) -> tuple[list[ClusterNode], np.ndarray]:
    """Return the groups that classes are parted into, that of all last, and which have rows.

    Those whose means are nearest are parted last, by average linkage of the distances that linear
    discriminant analysis has.
    """
    present, codes = np.unique(rows.y, return_inverse=True)
    weight = rows.sample_weight
    weighted = weight[:, np.newaxis] * (codes[:, np.newaxis] == np.arange(len(present)))
    means = weighted.T @ rows.X / weighted.sum(axis=0)[:, np.newaxis]
    ridge = _COVARIANCE_RIDGE * np.maximum(rows.spread, 1e-9) ** 2
    apart = discriminant_distances(rows.X - means[codes], weight, means, ridge)
    return to_tree(linkage(apart, "average"), rd=True)[1], present


def discriminant_distances(
    residuals: np.ndarray, weight: np.ndarray, means: np.ndarray, ridge: np.ndarray
) -> np.ndarray:
    """Return how far the means of each two classes are apart, by the covariance within them.

    The shapes are (n_rows, n_features), (n_rows,), (n_classes, n_features) and (n_features,).
    """
    scale = np.sqrt(ridge)
    means = means / scale
    residuals = residuals * np.sqrt(weight / weight.sum())[:, np.newaxis] / scale
    # The covariance is 1 along all directions, and more along those of the residuals, which are as
    # few as the rows at most: as a matrix it may be larger than these.
    triangle = np.linalg.qr(residuals, mode="r")
    _, sizes, directions = np.linalg.svd(triangle, full_matrices=False)
    excess = 1.0 - 1.0 / np.sqrt(1.0 + sizes**2)
    return pdist(means - (means @ directions.T * excess) @ directions)


def logistic_trees(
    rows: Dataset, strengths: tuple[Strength, ...] | None = None, end: float = math.inf
) -> Iterator[tuple[Strength, SoftTree]]:
    """Yield trees of all strengths, or of some; out of time fits end after a step."""
    if len(np.unique(rows.y)) < 2:
        return
    groups, present = class_hierarchy(rows)
    splits = [group for group in groups if not group.is_leaf()]
    start: dict[int, np.ndarray] = {}
    for C in COSTS if strengths is None else dict.fromkeys(one.C for one in strengths):
        paths = {}
        for node in splits:
            binary = _groups(rows, present, node)
            path = path_of_models(binary, C, start.get(node.id), HALVINGS, end=end)
            paths[node.id] = [scores[1] for scores in path]
            start[node.id] = np.vstack([0.0 * paths[node.id][0], paths[node.id][0]])
        for halvings in range(HALVINGS + 1):
            strength = Strength(C, halvings)
            if strengths is None or strength in strengths:
                models = {at: path[halvings] for at, path in paths.items()}
                tree = _assembled(rows, groups[-1], present, models)
                if tree is not None:
                    yield strength, tree


def tree_of_model(rows: Dataset, model: np.ndarray) -> SoftTree | None:
    """Return the split of a logistic model of two classes, of coefficients and the intercept."""
    (*_, root), present = class_hierarchy(rows)
    return _assembled(rows, root, present, {root.id: model})


def _groups(rows: Dataset, present: np.ndarray, node: ClusterNode) -> ModelRows:
    """Return the rows of the classes below a node: 1 where they are in the right group."""
    right = present[node.right.pre_order()]
    inside = np.isin(rows.y, np.append(right, present[node.left.pre_order()]))
    return ModelRows(
        rows.X[inside],
        np.isin(rows.y[inside], right).astype(np.int64),
        rows.sample_weight[inside],
        rows.spread,
    )


def _assembled(
    rows: Dataset,
    root: ClusterNode,
    present: np.ndarray,
    models: dict[int, np.ndarray],
) -> SoftTree | None:
    """Return the tree of some models; None where rounding takes all rows of a leaf elsewhere."""
    k = rows.n_classes
    weights, thresholds, is_split, intercepts, shares = [], [], [], [], []
    pending = [(root, np.arange(len(rows.y)))]
    while pending:
        node, inside = pending.pop()
        model = None if node.is_leaf() else models[node.id]
        threshold = None if model is None else _threshold(rows, inside, model, node)
        is_split.append(threshold is not None)
        if model is None or threshold is None:
            below = np.isin(rows.y, present[node.pre_order()])
            counts = np.bincount(rows.y[below], rows.sample_weight[below], k)
            shares.append(counts / counts.sum())
            weights.append(np.zeros(rows.X.shape[1]))
            thresholds.append(0.0)
            intercepts.append(0.0)
            continue
        shares.append(np.zeros(k))
        weights.append(model[:-1])
        thresholds.append(threshold)
        intercepts.append(model[-1] + threshold)
        goes_right = rows.X[inside] @ model[:-1] > threshold
        pending += [(node.right, inside[goes_right]), (node.left, inside[~goes_right])]
    individual = make_individual(
        rows, np.array(weights), np.array(thresholds), subtree_sizes(is_split)
    )
    if len(individual) < len(is_split):
        return None
    individual.origin = LOGISTIC
    slopes = np.array(is_split, dtype=np.float64)
    return SoftTree(
        individual, SoftSides(slopes, np.array(intercepts), np.array(shares))
    )


def _threshold(
    rows: Dataset, inside: np.ndarray, model: np.ndarray, node: ClusterNode
) -> float | None:
    """Return where a model parts the rows that reach it; None where it parts none.

    That is where both sides are equally likely. Where a side has no rows then, or both leaves have
    one label, it is the threshold that tells most of the classes: the sides differ in their
    probabilities.
    """
    y, weight = rows.y[inside], rows.sample_weight[inside]
    goes_right = rows.X[inside] @ model[:-1] > -model[-1]
    counts = np.array(
        [
            np.bincount(y[side], weight[side], rows.n_classes)
            for side in (~goes_right, goes_right)
        ]
    )
    both_are_leaves = node.left.is_leaf() and node.right.is_leaf()
    labels = counts.argmax(axis=1)
    if counts.sum(axis=1).all() and not (both_are_leaves and labels[0] == labels[1]):
        return -float(model[-1])
    X = np.ascontiguousarray(rows.X[inside])
    reached = Node.of(X, y, weight, rows.n_classes, int(Criterion.ENTROPY), 1)
    score, threshold = choose_threshold(reached, np.ascontiguousarray(model[:-1]))
    return float(threshold) if score < np.inf else None


def sides_of(
    tree: ObliqueTree, X: np.ndarray, same: SoftTree, scaled: np.ndarray
) -> SoftSides:
    """Return soft sides of a tree of the same splits over other units, or rounded.

    `X` are the rows in these units, `scaled` those of the data set.
    """
    away = tree.distances(X)
    inner = ~tree.is_leaf
    log_odds = same.individual.distances(scaled) + same.sides.intercepts[inner, None]
    centred = away - away.mean(axis=1, keepdims=True)
    slopes = (centred * log_odds).sum(axis=1) / (centred**2).sum(axis=1)
    intercepts = log_odds.mean(axis=1) - slopes * away.mean(axis=1)
    sides = SoftSides(
        np.zeros(len(tree)), np.zeros(len(tree)), same.sides.shares.copy()
    )
    sides.slopes[inner] = slopes
    sides.intercepts[inner] = intercepts
    return sides
