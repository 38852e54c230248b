"""Splits that lose terms: the others are fitted again in the tree as it is."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from evotree.operators.refinement.policy import SPARSE_ROWS
from evotree.operators.refinement.tao import solve
from evotree.operators.splitters.sparse import Sparse
from evotree.operators.structure.reduced import leaf_table, reduced_problem, replace_tests
from evotree.rng import make_streams

if TYPE_CHECKING:
    from evotree.dataset import Dataset
    from evotree.individual import Individual


def influences(individual: Individual, dataset: Dataset) -> np.ndarray:
    """Return |weight| times the spread of the feature for all terms."""
    return np.abs(individual.weights) * dataset.spread


def narrow(individual: Individual, dataset: Dataset, kept: np.ndarray) -> None:
    """Take terms from splits, and fit what is left of these to the reduced problems of their nodes.

    The splits are taken from the bottom up, as in a sweep of tree alternating optimization.
    """
    lost = (individual.weights != 0.0) & ~kept
    weights, thresholds = np.where(kept, individual.weights, 0.0), individual.thresholds.copy()
    table = leaf_table(individual, dataset.n_classes)
    (stream,) = make_streams(0, 0, 1)
    splitter = Sparse(widths="same")
    for k in np.flatnonzero(lost.any(axis=1) & weights.any(axis=1))[::-1]:
        node = reduced_problem(
            individual, dataset, k, weights, thresholds, table, stream, SPARSE_ROWS
        )
        if node is None:
            continue
        found = solve(node, (weights[k].copy(), float(thresholds[k])), splitter, stream)
        if found is not None:
            weights[k], thresholds[k] = found
    replace_tests(individual, dataset, weights, thresholds)
