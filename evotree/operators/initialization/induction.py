"""Greedy induction as a whole: grow a tree, then prune it; and all of C4.5 (Quinlan 1993).

A row whose value is missing at a split of C4.5 goes down both branches, when the tree grows and
when it predicts (`mean_of_branches`). A finished tree itself routes a row one way, as all that
reads trees expects: to the branch of more training rows, by a second term of the split, on the
feature that tells whether the value is missing.
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from evotree.dataset import Dataset
from evotree.folds import hold_out
from evotree.individual import Individual
from evotree.operators.initialization.growth import GrowthLimits, grow_splits
from evotree.operators.pruning.held_out import (
    prune_cross_validated,
    prune_held_out,
    prune_reduced_error,
    weakest_links,
)
from evotree.operators.pruning.penalized import prune_marked, prune_tree, risk_of_leaves
from evotree.operators.pruning.pessimistic import prune_pessimistic
from evotree.operators.splitters.axis import C45
from evotree.operators.structure.sides import Splits
from evotree.operators.structure.splice import make_individual
from evotree.soft_sides import soft_reach
from evotree.tree import ObliqueTree

PRUNINGS = ("cost_complexity", "cross_validation", "reduced_error")
"""Names of the rules by which a tree is chosen from the prunings of a grown one."""

PESSIMISTIC = "pessimistic"
"""Name of the rule of C4.5, which is for classes alone."""


def induce(
    dataset: Dataset,
    grow_on: Callable[[Dataset], Individual],
    *,
    pruning: str | None = None,
    ccp_alpha: float = 0.0,
    risk: str | None = None,
    validation_fraction: float = 0.1,
    n_folds: int = 10,
    standard_errors: float = 0.0,
    confidence: float = 0.25,
    stream: np.ndarray,
) -> Individual:
    """Grow a tree and prune it."""
    if pruning in ("cost_complexity", "reduced_error"):
        training, held_out = hold_out(dataset, validation_fraction, stream)
        individual = grow_on(training)
        if pruning == "reduced_error":
            marks = prune_reduced_error(individual, held_out)
        else:
            training_risk, _ = risk_of_leaves(individual, dataset.n_classes)
            marks = prune_held_out(individual, training_risk, held_out, standard_errors)
        tree = prune_tree(individual.to_tree(), marks)
        return make_individual(dataset, *tree.splits)
    individual = grow_on(dataset)
    if pruning == "cross_validation":
        marks = prune_cross_validated(
            individual,
            dataset,
            grow_on,
            n_folds=n_folds,
            standard_errors=standard_errors,
            stream=stream,
        )
        return prune_marked(individual, dataset, marks)[0]
    if pruning == PESSIMISTIC:
        splits, _ = prune_pessimistic(Splits(*individual.splits), dataset, confidence)
        return make_individual(dataset, *splits)
    # Means never lose by a split, lines may.
    if ccp_alpha > 0.0 or individual.objective is not None:
        of_leaves, _ = risk_of_leaves(individual, dataset.n_classes, risk)
        links = weakest_links(of_leaves, individual.subtree_size)
        return prune_marked(individual, dataset, links <= ccp_alpha)[0]
    return individual


def leaf_medians(individual: Individual, dataset: Dataset) -> np.ndarray:
    """Return the weighted median of the targets that reach each node."""
    medians = np.empty((len(individual), 1))
    for k in range(len(individual)):
        rows = individual.order[individual.start[k] : individual.end[k]]
        rows = rows[np.argsort(dataset.y[rows], kind="stable")]
        weight = np.cumsum(dataset.sample_weight[rows])
        medians[k] = dataset.y[rows[np.searchsorted(weight, 0.5 * weight[-1])]]
    return medians


_ROUNDING = 1e-13  # of a middle, relative
_BLOCK = 4096  # rows that are predicted together


def induce_c45(
    dataset: Dataset,
    splitter: C45,
    *,
    confidence: float = 0.25,
    limits: GrowthLimits,
    stream: np.ndarray,
) -> ObliqueTree:
    """Grow a tree over raw features as C4.5 does, and prune it."""
    raw = dataset.unscaled()
    indicators = None
    if splitter.indicators:
        indicators = np.array(splitter.indicators, dtype=np.int64)
    splits = grow_splits(
        raw, splitter, "gain_ratio", limits, stream=stream, indicators=indicators
    )
    splits = splits._replace(thresholds=values_at_or_below(splits, raw.X, indicators))
    splits, counts = prune_pessimistic(splits, raw, confidence, indicators)
    if indicators is not None:
        splits = sent_with_most(splits, counts, raw.X, indicators)
    samples = counts.sum(axis=1)
    tree = ObliqueTree(
        *splits,
        values=counts / samples[:, np.newaxis],
        spread=dataset.raw_spread,
        weighted_n_node_samples=samples,
    )
    if indicators is None and not dataset.is_weighted:
        return tree
    return tree.replaced(
        row_counts=dataset.count_rows(tree.apply(raw.X), tree.subtree_size)
    )


def with_indicators(splitter: C45, indicators: list[int]) -> C45:
    """Return a splitter that knows which features tell that others are missing."""
    return replace(
        splitter, indicators=tuple(indicators) if max(indicators) >= 0 else ()
    )


def values_at_or_below(
    splits: Splits, X: np.ndarray, indicators: np.ndarray | None = None
) -> np.ndarray:
    """Return the greatest known values that do not exceed thresholds (Quinlan 1993, 2.4)."""
    thresholds = splits.thresholds.copy()
    for k in np.flatnonzero(splits.subtree_size > 1).tolist():
        feature = int(np.flatnonzero(splits.weights[k])[0])
        values = X[:, feature]
        if indicators is not None and indicators[feature] >= 0:
            values = values[X[:, indicators[feature]] <= 0.0]
        limit = thresholds[k] + _ROUNDING * abs(thresholds[k])
        thresholds[k] = values[values <= limit].max()
    return thresholds


def sent_with_most(
    splits: Splits, counts: np.ndarray, X: np.ndarray, indicators: np.ndarray
) -> Splits:
    """Return splits that send rows whose value is missing to the side of more weight."""
    # Where the number that fills in goes the other way, the split gets a second term.
    weights, size = splits.weights.copy(), splits.subtree_size
    heaviness = counts.sum(axis=1)
    for k in np.flatnonzero(size > 1).tolist():
        feature = int(np.flatnonzero(weights[k])[0])
        indicator = int(indicators[feature])
        if indicator < 0:
            continue
        left, right = k + 1, k + 1 + int(size[k + 1])
        filled = X[X[:, indicator] > 0.0, feature][0]
        goes_right = filled > splits.thresholds[k]
        if goes_right != (heaviness[right] > heaviness[left]):
            # Beyond the threshold, by the deviation of the feature.
            margin = -X[:, feature].std() if goes_right else X[:, feature].std()
            weights[k, indicator] = splits.thresholds[k] - filled + margin
    return splits._replace(weights=weights)


def mean_of_branches(
    tree: ObliqueTree, X: np.ndarray, is_missing: np.ndarray
) -> np.ndarray:
    """Return the class shares of rows that go both ways where a value is missing."""
    # Such a row goes to each branch with the share that the branch has in the training weight of
    # its node; its class shares are the mean of those of the leaves that it reaches, weighted by
    # how much of it reaches them (Quinlan 1993, section 3.3).
    means = np.empty((len(X), tree.values.shape[1]))
    is_leaf = tree.is_leaf
    splits = np.flatnonzero(~is_leaf)
    # The first: an indicator follows its feature.
    features = (tree.weights[splits] != 0.0).argmax(axis=1)
    rights = splits + 1 + tree.subtree_size[splits + 1]
    samples = np.asarray(tree.weighted_n_node_samples)
    shares = samples[rights] / samples[splits]
    for first in range(0, len(X), _BLOCK):
        block = slice(first, first + _BLOCK)
        above = X[block, features] > tree.thresholds[splits]
        right = np.where(is_missing[block, features], shares, above)
        means[block] = soft_reach(tree, right.T)[is_leaf].T @ tree.values[is_leaf]
    return means
