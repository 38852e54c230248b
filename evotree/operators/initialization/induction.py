"""Greedy induction as a whole: grow a tree, then prune it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from evotree.folds import hold_out
from evotree.operators.pruning.held_out import (
    prune_cross_validated,
    prune_held_out,
    prune_reduced_error,
    weakest_links,
)
from evotree.operators.pruning.penalized import prune_marked, prune_tree, risk_of_leaves
from evotree.operators.pruning.pessimistic import prune_pessimistic
from evotree.operators.structure.sides import Splits
from evotree.operators.structure.splice import make_individual

if TYPE_CHECKING:
    from evotree.dataset import Dataset
    from evotree.individual import Individual

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
        return make_individual(dataset, tree.weights, tree.thresholds, tree.subtree_size)
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
        grown = Splits(individual.weights, individual.thresholds, individual.subtree_size)
        return make_individual(dataset, *prune_pessimistic(grown, dataset, confidence)[0])
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
