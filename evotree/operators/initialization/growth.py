"""The grower: a tree, top-down, by any splitter."""

import math
import time
from dataclasses import dataclass

import numpy as np

from evotree._jit import read_only
from evotree.dataset import Dataset
from evotree.fitness.node import Criterion, Node, is_uniform, score_undivided
from evotree.individual import Individual
from evotree.operators.splitters.base import Splitter
from evotree.operators.structure.sides import Splits, share_rows, subtree_sizes
from evotree.operators.structure.splice import make_individual


@dataclass(frozen=True)
class GrowthLimits:
    """Where the nodes of a tree that is grown are leaves, as scikit-learn's trees have it."""

    max_depth: int | None = None
    min_samples_split: int = 2
    min_samples_leaf: int = 1
    min_weight_fraction_leaf: float = 0.0
    min_impurity_decrease: float = 0.0
    # When they are over, all nodes that are left are leaves.
    seconds: float | None = None


_NO_LIMITS = GrowthLimits()


def grow(
    dataset: Dataset,
    splitter: Splitter,
    criterion: str = "gini",
    limits: GrowthLimits = _NO_LIMITS,
    *,
    stream: np.ndarray,
) -> Individual:
    """Grow a tree on all rows of a data set, and partition these by it."""
    splits = grow_splits(dataset, splitter, criterion, limits, stream=stream)
    return make_individual(dataset, *splits)


def grow_splits(
    dataset: Dataset,
    splitter: Splitter,
    criterion: str = "gini",
    limits: GrowthLimits = _NO_LIMITS,
    *,
    stream: np.ndarray,
    indicators: np.ndarray | None = None,
) -> Splits:
    """Grow a tree on all rows of a data set.

    With `indicators`, as of `share_rows`, rows whose value is missing go down both branches.
    """
    if limits.min_samples_leaf > 1:
        dataset = dataset.unmerged()  # splitters count the rows of both sides
    # A plain number: members of an enumeration cost numba 90 us a call.
    code = int(Criterion[criterion.upper()])
    X, y, weight = dataset.split_X, dataset.y, weights_to_grow_by(dataset)
    total_weight = weight.sum()
    times = np.maximum(dataset.multiplicity, 1)
    fewest_rows = max(limits.min_samples_split, 2 * limits.min_samples_leaf)
    max_depth = math.inf if limits.max_depth is None else limits.max_depth
    weights, thresholds, is_split = [], [], []
    leaf_weights = np.zeros(X.shape[1])
    pending = [(np.arange(X.shape[0], dtype=np.int32), weight, 0, splitter)]
    seconds = math.inf if limits.seconds is None else limits.seconds
    end = time.perf_counter() + seconds
    while pending:
        rows, weight, depth, splitter = pending.pop()
        weights.append(leaf_weights)
        thresholds.append(0.0)
        is_split.append(False)
        if (
            times[rows].sum() < fewest_rows
            or depth >= max_depth
            or is_uniform(y, rows, 0, len(rows))
            or time.perf_counter() >= end
        ):
            continue
        targets = None
        if dataset.bound_objective is not None:
            targets = dataset.bound_objective.residuals(rows)
        node = Node.of(
            X[rows],
            y[rows] if targets is None else targets,
            weight[rows],
            dataset.n_classes,
            code,
            limits.min_samples_leaf,
        )
        split = splitter(node, stream)
        if split is None:
            continue
        if limits.min_impurity_decrease > 0.0:
            share = node.sample_weight.sum() / total_weight
            decrease = share * (score_undivided(node) - split.score)
            if decrease < limits.min_impurity_decrease:
                continue
        sides = share_rows(X, rows, weight, split.weights, split.threshold, indicators)
        if min(len(side) for side, _ in sides) < limits.min_samples_leaf:
            continue
        lightest = min(side_weight[side].sum() for side, side_weight in sides)
        if lightest < limits.min_weight_fraction_leaf * total_weight:
            continue
        weights[-1] = split.weights
        thresholds[-1] = split.threshold
        is_split[-1] = True
        below = splitter if split.below is None else split.below
        pending += [(*side, depth + 1, below) for side in reversed(sides)]
    return Splits(
        dataset.allowed(np.array(weights)),
        np.array(thresholds),
        subtree_sizes(is_split),
    )


def weights_to_grow_by(dataset: Dataset) -> np.ndarray:
    """Return the weights of the rows, by what errors on their classes cost."""
    # Breiman et al. (1984, section 4.4): altered priors stand for costs that criteria do not know.
    if dataset.n_classes == 0 or dataset.objective is None:
        return dataset.sample_weight
    totals = np.bincount(dataset.y, dataset.sample_weight, minlength=dataset.n_classes)
    weights = dataset.objective.class_weights(totals)
    if weights is None:
        return dataset.sample_weight
    return read_only(dataset.sample_weight * weights[dataset.y])


def grow_on_sample(
    sample: Dataset,
    dataset: Dataset,
    splitter: Splitter,
    stream: np.ndarray,
    criterion: str | None = None,
    limits: GrowthLimits = _NO_LIMITS,
) -> Individual:
    """Grow a tree on a sample of the rows and make an individual over all of them."""
    criterion = criterion or ("entropy" if dataset.n_classes else "squared_error")
    grown = grow(sample, splitter, criterion, limits, stream=stream)
    if sample is not dataset:
        # It has the rows: without it they are freed at once.
        vars(sample).pop("bound_objective", None)
    individual = make_individual(dataset, *grown.splits)
    individual.stream = stream
    return individual
