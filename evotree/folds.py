"""Folds of rows for cross-validation."""

import numpy as np

from evotree.dataset import Dataset
from evotree.rng import as_generator


def make_folds(dataset: Dataset, n_folds: int, stream: np.ndarray) -> np.ndarray:
    """Deal the rows, as they were given, out to folds at random."""
    y = dataset.y[dataset.distinct_of]
    n = len(y)
    rng = as_generator(stream)
    shuffled = rng.permutation(n)
    by_class = shuffled[np.argsort(y[shuffled], kind="stable")]
    in_turn = np.arange(n) % n_folds
    if dataset.n_classes == 0:  # the order of targets leaves nothing to chance
        rounds = np.tile(np.arange(n_folds), (-(-n // n_folds), 1))
        in_turn = rng.permuted(rounds, axis=1).ravel()[:n]
    folds = np.empty(n, dtype=np.int64)
    folds[by_class] = in_turn
    return folds


def hold_out(
    dataset: Dataset, fraction: float, stream: np.ndarray
) -> tuple[Dataset, Dataset]:
    """Return the rows of a data set in two parts, dealt out at random."""
    n = dataset.n_rows
    n_held_out = min(n - 1, round(fraction * n))
    order = as_generator(stream).permutation(n)
    return dataset.subsample(order[n_held_out:]), dataset.subsample(order[:n_held_out])


def split_folds(
    dataset: Dataset, folds: np.ndarray, fold: int
) -> tuple[Dataset, Dataset]:
    """Return the rows of all folds but one, and the rows of that one."""
    inside = folds == fold
    return dataset.subsample(np.flatnonzero(~inside)), dataset.subsample(
        np.flatnonzero(inside)
    )
