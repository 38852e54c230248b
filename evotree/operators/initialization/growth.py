"""Trees that are grown top-down by any splitter: random ones, and greedy induction as a whole."""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from evotree._jit import read_only
from evotree.dataset import Dataset, hold_out
from evotree.fitness.node import Criterion, Node, is_uniform
from evotree.operators.pruning import (
    prune,
    prune_cross_validated,
    prune_held_out,
    prune_marked,
    prune_tree,
    risk_of_leaves,
    weakest_links,
)
from evotree.operators.splitters.base import Split, Splitter, scored_split
from evotree.operators.splitters.dipole import Dipole
from evotree.operators.structure.splice import (
    make_individual,
    part_rows,
    subtree_sizes,
)
from evotree.rng import as_generator
from evotree.tree import Individual


@dataclass(frozen=True)
class GrowthLimits:
    """Where the nodes of a tree that is grown are leaves, as scikit-learn's trees have it."""

    max_depth: int | None = None
    min_samples_split: int = 2
    min_samples_leaf: int = 1
    min_weight_fraction_leaf: float = 0.0
    # When they are over, all nodes that are left are leaves.
    seconds: float = math.inf


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
    whole = dataset
    if limits.min_samples_leaf > 1:
        dataset = dataset.unmerged()  # splitters count the rows of both sides
    X, y, weight = dataset.split_X, dataset.y, weights_to_grow_by(dataset)
    # A plain number: members of an enumeration cost numba 90 us a call.
    code = int(Criterion[criterion.upper()])
    least_weight = limits.min_weight_fraction_leaf * weight.sum()
    times = np.maximum(dataset.multiplicity, 1)
    fewest_rows = max(limits.min_samples_split, 2 * limits.min_samples_leaf)
    max_depth = math.inf if limits.max_depth is None else limits.max_depth
    weights, thresholds, is_split = [], [], []
    leaf_weights = np.zeros(X.shape[1])
    pending = [(np.arange(X.shape[0], dtype=np.int32), 0)]
    end = time.perf_counter() + limits.seconds
    while pending:
        rows, depth = pending.pop()
        weights.append(leaf_weights)
        thresholds.append(0.0)
        is_split.append(False)
        if (
            # Each row is there once at least.
            (len(rows) < fewest_rows and times[rows].sum() < fewest_rows)
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
        mid = part_rows(X, rows, 0, len(rows), split.weights, split.threshold)
        sides = rows[:mid], rows[mid:]
        if min(map(len, sides)) < limits.min_samples_leaf:
            continue
        if least_weight and min(weight[side].sum() for side in sides) < least_weight:
            continue
        weights[-1] = split.weights
        thresholds[-1] = split.threshold
        is_split[-1] = True
        pending += [(side, depth + 1) for side in reversed(sides)]
    return make_individual(
        whole,
        dataset.allowed(np.array(weights)),
        np.array(thresholds),
        subtree_sizes(is_split),
    )


def weights_to_grow_by(dataset: Dataset) -> np.ndarray:
    """Return the weights of the rows, by what errors on their classes cost."""
    # Breiman et al. (1984, section 4.4): altered priors stand for costs that criteria do not know.
    weights = None
    if dataset.n_classes and dataset.objective is not None:
        totals = np.bincount(dataset.y, dataset.sample_weight, dataset.n_classes)
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


# ---- random trees --------------------------------------------------------------------------------


def init_dipolar(
    dataset: Dataset,
    size_penalty: float,
    stream: np.ndarray,
    max_rows: int | None = 256,
    max_depth: int | None = 8,
    min_rows: int = 5,
    term_penalty: float = 0.0,
    max_width: int = 0,
) -> Individual:
    """Grow a dipolar tree, by default on a random subsample for speed and diversity; prune it."""
    sample = dataset
    if max_rows is not None:
        order = as_generator(stream).permutation(len(dataset.distinct_of))
        sample = dataset.subsample(order[:max_rows])
    individual = grow_on_sample(
        sample,
        dataset,
        Dipole(scored=False, max_width=max_width),
        stream,
        limits=GrowthLimits(max_depth=max_depth, min_samples_split=min_rows),
    )
    return prune(individual, dataset, size_penalty, term_penalty)[0]


def random_halves(node: Node, stream: np.ndarray) -> Split | None:
    """Return a normally distributed direction at the threshold that halves the rows, or nearly."""
    # A splitter. Grown to a depth, that is the complete tree with random parameters from which tree
    # alternating optimization may start (Carreira-Perpiñán and Tavallali 2018).
    weights = as_generator(stream).standard_normal((node.X.shape[1],))
    weights /= np.linalg.norm(weights)
    projection = np.sort(node.X @ weights)
    middle = projection[:-1] + 0.5 * np.diff(projection)
    n_left = np.arange(1, projection.size)
    fits = (projection[:-1] < middle) & (middle < projection[1:])
    fits &= np.minimum(n_left, projection.size - n_left) >= node.min_rows
    if not fits.any():
        return None
    distance = np.where(fits, np.abs(2 * n_left - projection.size), np.inf)
    threshold = float(middle[np.argmin(distance)])
    return scored_split(node, weights, threshold)


# ---- greedy induction as a whole -----------------------------------------------------------------


PRUNINGS = ("cost_complexity", "cross_validation")
"""Names of the rules by which a tree is chosen from the prunings of a grown one."""


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
    stream: np.ndarray,
) -> Individual:
    """Grow a tree and prune it."""
    if pruning == "cost_complexity":
        training, held_out = hold_out(dataset, validation_fraction, stream)
        individual = grow_on(training)
        training_risk, _ = risk_of_leaves(individual, dataset.n_classes)
        marks = prune_held_out(individual, training_risk, held_out, standard_errors)
        return make_individual(dataset, *prune_tree(individual.to_tree(), marks).splits)
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
    elif ccp_alpha > 0.0 or individual.objective is not None:
        # Means never lose by a split, lines may.
        of_leaves, _ = risk_of_leaves(individual, dataset.n_classes, risk)
        marks = weakest_links(of_leaves, individual.subtree_size) <= ccp_alpha
    else:
        return individual
    return prune_marked(individual, dataset, marks)[0]
