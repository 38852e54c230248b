"""The grower: a tree, top-down, by any splitter."""

import math
import time
from typing import Any

import numpy as np

from evotree.dataset import Dataset
from evotree.fitness.criteria import Criterion
from evotree.fitness.node import Node, score_undivided
from evotree.fitness.partition import is_uniform
from evotree.individual import Individual
from evotree.operators.splitters.base import Splitter
from evotree.operators.structure.sides import Splits, share_rows, subtree_sizes
from evotree.operators.structure.splice import make_individual


def grow(dataset: Dataset, splitter: Splitter, *args: Any, **limits: Any) -> Individual:
    """Grow a tree on all rows of a data set, and partition these by it."""
    return make_individual(dataset, *grow_splits(dataset, splitter, *args, **limits))


def grow_splits(
    dataset: Dataset,
    splitter: Splitter,
    criterion: str = "gini",
    *,
    max_depth: int | None = None,
    min_samples_split: int = 2,
    min_samples_leaf: int = 1,
    min_weight_fraction_leaf: float = 0.0,
    min_impurity_decrease: float = 0.0,
    seconds: float | None = None,
    indicators: np.ndarray | None = None,
    stream: np.ndarray,
) -> Splits:
    """Grow a tree on all rows of a data set."""
    if min_samples_leaf > 1:
        dataset = dataset.unmerged()  # splitters count the rows of both sides
    code = int(
        Criterion[criterion.upper()]
    )  # members of an enumeration cost numba 90 us a call
    X, y, weight = dataset.split_X, dataset.y, weights_to_grow_by(dataset)
    n, total_weight = X.shape[0], weight.sum()
    times = np.maximum(dataset.multiplicity, 1)
    weights, thresholds, is_split = [], [], []
    leaf_weights = np.zeros(X.shape[1])
    pending = [(np.arange(n, dtype=np.int32), weight, 0, splitter)]
    end = math.inf if seconds is None else time.perf_counter() + seconds
    while pending:
        rows, weight, depth, splitter = pending.pop()
        weights.append(leaf_weights)
        thresholds.append(0.0)
        is_split.append(False)
        if (
            times[rows].sum() < max(min_samples_split, 2 * min_samples_leaf)
            or (max_depth is not None and depth >= max_depth)
            or is_uniform(y, rows, 0, len(rows))
            or time.perf_counter() >= end
        ):
            continue
        residuals = (
            None
            if dataset.bound_objective is None
            else dataset.bound_objective.residuals(rows)
        )
        targets = y[rows] if residuals is None else residuals
        node = Node.of(
            X[rows], targets, weight[rows], dataset.n_classes, code, min_samples_leaf
        )
        split = splitter(node, stream)
        if split is None:
            continue
        if min_impurity_decrease > 0.0:
            share = node.sample_weight.sum() / total_weight
            if share * (score_undivided(node) - split.score) < min_impurity_decrease:
                continue
        sides = share_rows(X, rows, weight, split.weights, split.threshold, indicators)
        if min(len(side) for side, _ in sides) < min_samples_leaf:
            continue
        lightest = min(side_weight[side].sum() for side, side_weight in sides)
        if lightest < min_weight_fraction_leaf * total_weight:
            continue
        weights[-1], thresholds[-1], is_split[-1] = split.weights, split.threshold, True
        below = splitter if split.below is None else split.below
        pending += [(*side, depth + 1, below) for side in reversed(sides)]
    allowed = dataset.allowed(np.array(weights))
    return Splits(allowed, np.array(thresholds), subtree_sizes(is_split))


def weights_to_grow_by(dataset: Dataset) -> np.ndarray:
    """Return the weights of the rows, by what errors on their classes cost."""
    # Breiman et al. (1984, section 4.4): altered priors stand for costs that criteria do not know.
    if dataset.n_classes == 0 or dataset.objective is None:
        return dataset.sample_weight
    totals = np.bincount(dataset.y, dataset.sample_weight, minlength=dataset.n_classes)
    weights = dataset.objective.class_weights(totals)
    altered: np.ndarray = dataset.sample_weight * (
        1.0 if weights is None else weights[dataset.y]
    )
    altered.flags.writeable = False
    return altered


def grow_on_sample(
    sample: Dataset,
    dataset: Dataset,
    splitter: Splitter,
    stream: np.ndarray,
    criterion: str | None = None,
    **limits: Any,
) -> Individual:
    """Grow a tree on a sample of the rows and make an individual over all of them."""
    criterion = criterion or ("entropy" if dataset.n_classes else "squared_error")
    grown = grow(sample, splitter, criterion, stream=stream, **limits)
    if sample is not dataset:
        # It has the rows: without it they are freed at once.
        vars(sample).pop("bound_objective", None)
    individual = make_individual(
        dataset, grown.weights, grown.thresholds, grown.subtree_size
    )
    individual.stream = stream
    return individual
