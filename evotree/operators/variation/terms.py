"""Mutation of terms: which features a split uses."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from evotree.operators.pruning.penalized import prune
from evotree.operators.splitters.linear_fit import start_at
from evotree.operators.splitters.sparse import fit_on
from evotree.operators.structure.reduced import leaf_table, reduced_problem, replace_tests
from evotree.rng import as_generator, uniform

if TYPE_CHECKING:
    from evotree.dataset import Dataset
    from evotree.fitness.node import Node
    from evotree.individual import Individual

CHANGES = ("drop", "add", "swap", "halve")
"""What happens to the features of a split."""

_ROWS = 4096  # by which the weights on new features are fitted


def strengths(node: Node) -> np.ndarray:
    """Return how strongly each feature tells the two groups of a reduced problem apart."""
    weight = node.sample_weight / node.sample_weight.sum()
    side = node.y - weight @ node.y
    mean = weight @ node.X
    covariance = (weight * side) @ node.X
    variance = weight @ (node.X * node.X) - mean * mean
    least = 1e-12 * (1.0 + mean * mean)
    return np.where(variance > least, covariance**2 / np.maximum(variance, least), 0.0)


def changed_support(
    support: np.ndarray, node: Node, weights: np.ndarray, bound: int, rng: np.random.Generator
) -> np.ndarray:
    """Return the features of a split after one leaves, one comes, both, or half of them leave."""
    # A feature that comes is drawn evenly half of the times, or in proportion to its strength; of
    # halves the one of more influence stays.
    d, width = weights.shape[0], support.size
    change = CHANGES[rng.integers(len(CHANGES))]
    if change == "halve" and width > 2:
        influence = np.abs(weights[support]) * node.X[:, support].std(axis=0)
        support = support[np.argsort(-influence, kind="stable")[: (width + 1) // 2]]
        return np.sort(support)
    leaves = change in ("drop", "swap") and (width > 1 or change == "swap")
    comes = change in ("add", "swap", "halve") and width < d
    others = np.setdiff1d(np.arange(d), support)
    if leaves and (comes or width > 1):
        support = np.delete(support, rng.integers(width))
    if comes and support.size < bound:
        chances = None
        if rng.uniform() < 0.5:
            strength = strengths(node)[others]
            chances = strength / strength.sum() if strength.sum() > 0.0 else None
        support = np.append(support, rng.choice(others, p=chances))
    return np.sort(support) if support.size else np.array([rng.integers(d)])


def mut_terms(
    individual: Individual,
    dataset: Dataset,
    size_penalty: float = 0.0,
    term_penalty: float = 0.0,
    max_features: int | None = None,
    C: tuple[float, float] = (0.1, 10.0),
) -> tuple[Individual]:
    """Change which features one split uses, fit it again, and prune the tree."""
    # The weights on the features that the split then has are those of a linear classifier of the
    # reduced problem, the threshold is the one that costs least there.
    internal = np.flatnonzero(individual.subtree_size > 1)
    if internal.size == 0:
        return (individual,)
    stream: Any = individual.stream
    rng = as_generator(stream)
    k = int(internal[rng.integers(internal.size)])
    weights, thresholds = individual.weights.copy(), individual.thresholds.copy()
    table = leaf_table(individual, dataset.n_classes)
    node = reduced_problem(individual, dataset, k, weights, thresholds, table, stream, _ROWS)
    if node is None or (node.y == node.y[0]).all():
        return (individual,)
    d = weights.shape[1]
    bound = d if max_features is None else min(max_features, d)
    support = np.flatnonzero(weights[k])
    if support.size == 0:
        support = np.array([rng.integers(d)])
    support = changed_support(support, node, weights[k], bound, rng)
    theta = start_at(node.X, weights[k], float(thresholds[k]))
    C_drawn = C[0] * (C[1] / C[0]) ** rng.uniform()
    if not fit_on(node, theta, support, C_drawn):
        return (individual,)
    weights[k], thresholds[k] = theta[:-1], -theta[-1]
    replace_tests(individual, dataset, weights, thresholds)
    return prune(individual, dataset, size_penalty, term_penalty)


def mut_either(
    individual: Individual,
    first: Callable[[Individual], tuple[Individual]],
    second: Callable[[Individual], tuple[Individual]],
    probability: float,
) -> tuple[Individual]:
    """Mutate an individual by one of two operators."""
    if probability > 0.0 and uniform(individual.stream) < probability:
        return second(individual)
    return first(individual)
