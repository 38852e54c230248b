"""Rows drawn from the data: bags of them, and rows between neighbours."""

from dataclasses import replace

import numpy as np
from sklearn.neighbors import NearestNeighbors

from evotree.dataset import Dataset

_NEIGHBOURS = 6


def interpolate(X: np.ndarray, n_rows: int, rng: np.random.Generator) -> np.ndarray:
    """Draw rows at a uniform part of the way between neighbours (Chawla et al. 2002, SMOTE)."""
    spread = X.std(axis=0)
    spread[spread == 0.0] = 1.0
    k = min(_NEIGHBOURS, len(X) - 1)
    first = second = rng.integers(len(X), size=n_rows)
    if k:
        search = NearestNeighbors(n_neighbors=k + 1).fit(X / spread)
        near = search.kneighbors(X / spread, return_distance=False)[:, 1:]
        second = near[first, rng.integers(k, size=n_rows)]
    between: np.ndarray = X[first] + rng.uniform(size=(n_rows, 1)) * (X[second] - X[first])
    return between


def bootstrap_counts(dataset: Dataset, rng: np.random.Generator, n_draws: int) -> np.ndarray:
    """Return how often each given row is drawn with replacement, in proportion to the weights."""
    share = dataset.sample_weight / dataset.total_weight / dataset.multiplicity
    times: np.ndarray = rng.multinomial(n_draws, share[dataset.kept_as])
    return times


def bag_of(dataset: Dataset, n_times: np.ndarray) -> Dataset:
    """Return the rows of a bag, each of which weighs as much as it was drawn."""
    n_rows, kept_as = len(dataset.y), dataset.kept_as
    weight = np.bincount(kept_as, n_times, n_rows)
    rows = np.flatnonzero(weight)
    n_given = np.bincount(kept_as[n_times > 0], minlength=n_rows)
    return replace(dataset.take(rows, weight[rows], n_given[rows]), weight_unit=1.0)


def bootstrap(dataset: Dataset, rng: np.random.Generator, max_rows: int) -> Dataset:
    """Return a bootstrap sample: rows drawn with replacement, in proportion to their weights."""
    return bag_of(dataset, bootstrap_counts(dataset, rng, min(max_rows, dataset.n_samples)))
