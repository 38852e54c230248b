"""The first population: trees of dipole tests, their sizes chosen by the fitness."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from evotree.operators.dipole import Dipole
from evotree.operators.growth import grow
from evotree.operators.pruning import prune
from evotree.operators.splice import make_individual
from evotree.rng import as_generator

if TYPE_CHECKING:
    from evotree.dataset import Dataset
    from evotree.individual import Individual


def init_dipolar(
    dataset: Dataset,
    size_penalty: float,
    stream: np.ndarray,
    max_rows: int = 256,
    max_depth: int = 8,
    min_rows: int = 5,
) -> Individual:
    """Make one individual of the first population.

    A dipolar tree is grown on a random subsample, for speed and diversity; then its subtrees that
    do not pay for their nodes on all rows become leaves.

    Parameters
    ----------
    dataset : Dataset
        Training rows.
    size_penalty : float, at least 0
        Charge for one node.
    stream : ndarray of shape (1,), uint64
        Random state.
    max_rows : int, at least 1, default=256
        Size of the subsample.
    max_depth : int, at least 0, default=8
        Depth of the tree before it is pruned.
    min_rows : int, default=5
        Nodes with fewer rows are leaves.

    Returns
    -------
    Individual
        Its fitness is not yet evaluated.
    """
    sample = as_generator(stream).permutation(dataset.X.shape[0])[:max_rows]
    grown = grow(
        dataset.take(np.sort(sample)),
        Dipole(scored=False),
        max_depth=max_depth,
        min_samples_split=min_rows,
        stream=stream,
    )
    individual = make_individual(dataset, grown.weights, grown.thresholds, grown.subtree_size)
    individual.stream = stream
    return prune(individual, dataset, size_penalty)[0]
