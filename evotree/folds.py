"""Folds of rows for cross-validation."""

import numpy as np

from evotree.dataset import Dataset
from evotree.rng import as_generator


def make_folds(dataset: Dataset, n_folds: int, stream: np.ndarray) -> np.ndarray:
    """Return the fold of each row as given, of shape (n_rows,), dealt out at random."""
    y = dataset.y[dataset.distinct_of]
    n_rows = len(y)
    rng = as_generator(stream)
    shuffled = rng.permutation(n_rows)
    by_class = shuffled[np.argsort(y[shuffled], kind="stable")]
    in_turn = np.arange(n_rows) % n_folds
    if dataset.n_classes == 0:  # the order of targets leaves nothing to chance
        rounds = np.tile(np.arange(n_folds), (-(-n_rows // n_folds), 1))
        in_turn = rng.permuted(rounds, axis=1).ravel()[:n_rows]
    folds = np.empty(n_rows, dtype=np.int64)
    folds[by_class] = in_turn
    return folds


def hold_out(
    dataset: Dataset, fraction: float, stream: np.ndarray
) -> tuple[Dataset, Dataset]:
    """Return the rows that are not held out, and a fraction that is, dealt out at random."""
    n_rows = dataset.n_rows
    n_held_out = min(n_rows - 1, round(fraction * n_rows))
    order = as_generator(stream).permutation(n_rows)
    return dataset.subsample(order[n_held_out:]), dataset.subsample(order[:n_held_out])


def split_folds(
    dataset: Dataset, folds: np.ndarray, fold: int
) -> tuple[Dataset, Dataset]:
    """Return the rows of all folds but one, and the rows of that one."""
    others = dataset.subsample(np.flatnonzero(folds != fold))
    return others, dataset.subsample(np.flatnonzero(folds == fold))
