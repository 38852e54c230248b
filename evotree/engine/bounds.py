"""What a configuration asks of all trees: objective and constraints, and how trees keep them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from numbers import Integral
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np

from evotree.engine.config import evolution_of
from evotree.fitness.objectives import compose
from evotree.objectives import LinearLeaves
from evotree.operators.constraints.base import Constraint, keeps_all, repair
from evotree.operators.constraints.interactions import as_interactions
from evotree.operators.constraints.limits import Limits
from evotree.operators.constraints.monotonic import MonotonicConstraint, check_monotonic_cst
from evotree.operators.constraints.split_features import SplitFeatures, with_split_features
from evotree.operators.structure.splice import make_individual
from evotree.tables.columns import NumericColumn
from evotree.tree import ObliqueTree, node_weights

if TYPE_CHECKING:
    from evotree.dataset import Dataset
    from evotree.engine.config import SearchConfig
    from evotree.individual import Individual


def with_objective(dataset: Dataset, config: SearchConfig, encoder: Any = None) -> Dataset:
    """Return a data set with what its trees are evolved for, and the columns of their splits.

    An objective that it has already stays. `encoder` is the estimator that has read the rows.
    """
    if dataset.outputs is not None and evolution_of(config).regularization.teacher is not None:
        raise ValueError(f"teacher: y has {dataset.n_outputs} outputs; allowed is None.")
    leaves = config.leaves
    if isinstance(leaves, LinearLeaves):
        dataset = with_split_features(dataset, leaves.split_features)
    if dataset.objective is not None:
        return dataset
    if dataset.n_classes and leaves not in ("auto", "constant"):
        raise ValueError(
            f"leaves={leaves!r}: for classes allowed are 'auto' and 'constant'; lines are for "
            "targets."
        )
    constraint = _monotonic_constraint(config.monotonic_cst, dataset, encoder)
    options = {"leaves": leaves, "max_terms": config.max_terms, "constraint": constraint}
    objective = compose(config.objective, dataset, **options)
    return dataset if objective is None else dataset.evolved_for(objective)


def _monotonic_constraint(
    monotonic_cst: Any, dataset: Dataset, encoder: Any
) -> MonotonicConstraint | None:
    """Return the constraint on the features that trees read."""
    if encoder is not None:
        return check_monotonic_cst(monotonic_cst, encoder, encoder.columns_, dataset.n_classes)
    names = np.array(dataset.feature_names, dtype=object)
    features = SimpleNamespace(n_features_in_=len(names), feature_names_in_=names)
    columns = [NumericColumn(name, 0.0) for name in dataset.feature_names]
    return check_monotonic_cst(monotonic_cst, features, columns, dataset.n_classes)


def make_constraints(
    config: SearchConfig, dataset: Dataset, n_rows: int | None = None
) -> list[Constraint]:
    """Return what all trees of a search keep."""
    n_rows, least = n_rows or int(dataset.multiplicity.sum()), config.min_samples_leaf
    if not isinstance(least, Integral):
        least = math.ceil(least * n_rows)  # as in scikit-learn
    limits = Limits(
        config.max_depth,
        config.max_leaf_nodes,
        config.max_terms,
        0.0 if least <= 1 else min(1.0, least / n_rows),
    )
    interactions = as_interactions(config.interaction_cst, dataset)
    found: list[Constraint] = [] if interactions is None else [interactions]
    if dataset.is_split_on is not None:
        found.insert(0, SplitFeatures(dataset.is_split_on))
    if dataset.objective is not None and dataset.objective.constraint is not None:
        found.append(dataset.objective.constraint)
    return found if limits == Limits() else [*found, limits]


def keep_for_rows(
    tree: ObliqueTree, dataset: Dataset, constraints: Sequence[Constraint]
) -> ObliqueTree:
    """Return a finished tree that keeps all constraints on the rows as they are routed in the end.

    Rounding the numbers of a tree may have taken rows to other leaves.
    """
    if not constraints:
        return tree
    rows = replace(
        dataset,
        X=dataset.raw,
        mean=np.zeros_like(dataset.mean),
        scale=np.ones_like(dataset.scale),
        spread=dataset.spread * dataset.scale,
    )
    while not keeps_all(individual := _as_routed(tree, rows), rows, constraints):
        weights, thresholds, size, *_ = repair(individual, rows, constraints).nodes()
        values = np.zeros((len(size), tree.values.shape[1]))
        tree = dataset.refill(ObliqueTree(weights, thresholds, size, values, tree.spread))
    return tree


def _as_routed(tree: ObliqueTree, dataset: Dataset) -> Individual:
    """Return a tree as an individual whose rows are where those go that predict."""
    individual = make_individual(dataset, tree.weights, tree.thresholds, tree.subtree_size)
    leaves = tree.apply(dataset.X)
    if len(individual) < len(tree):
        return individual
    n_rows = node_weights(leaves, np.ones(len(leaves)), tree.subtree_size).astype(np.int32)
    order = np.argsort(leaves, kind="stable").astype(np.int32)
    start = np.searchsorted(leaves[order], np.arange(len(tree))).astype(np.int32)
    arrays = *individual.nodes()[:3], order, start, start + n_rows, individual.counts
    routed = type(individual)(arrays)
    if individual.objective is not None:
        routed.evolve_for(individual.objective)
    return routed
