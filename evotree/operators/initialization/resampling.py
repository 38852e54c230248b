"""Training rows that are not in the data: bags, and copies with noise.

Where rows are few, most trees of a population are perfect on them, and their quality there says
nothing of the rows to come: copies with noise go on telling trees apart.
"""

from dataclasses import replace

import numpy as np

from evotree.dataset import Dataset, empty_rows
from evotree.rng import as_generator


def jitter(
    dataset: Dataset, noise: float, n_copies: int, stream: np.ndarray
) -> Dataset:
    """Return a data set with noisy copies of its rows, or with noise in place of copies."""
    # The quality of a tree there is that on the training rows, smoothed: a row near a hyperplane is
    # on its side in some of its copies alone. For models that are smooth themselves training with
    # noise is the ridge penalty (Bishop 1995, "Training with noise is equivalent to Tikhonov
    # regularization", Neural Computation 7).
    rng = as_generator(stream)
    # Unmerged: a few copies of what many rows are would be told apart by chance.
    rows = dataset.unmerged()
    varies = dataset.X.min(axis=0) != dataset.X.max(axis=0)
    drawn = rng.standard_normal((max(1, n_copies), *rows.X.shape))
    copies = rows.X + noise * dataset.spread * varies * drawn
    copies = copies.reshape(-1, rows.X.shape[1])
    if n_copies == 0:
        return with_rows(
            rows, copies, rows.y, rows.sample_weight, rows.extras, rows.outputs
        )

    def with_copies(merged: np.ndarray, unmerged: np.ndarray) -> np.ndarray:
        return np.concatenate([merged, *[unmerged] * n_copies])

    weight = with_copies(dataset.sample_weight, rows.sample_weight) / (n_copies + 1)
    extras = {
        name: with_copies(dataset.extras[name], rows.extras[name])
        for name in rows.extras
    }
    outputs = None
    if dataset.outputs is not None and rows.outputs is not None:
        outputs = with_copies(dataset.outputs, rows.outputs)
    X = np.concatenate([dataset.X, copies])
    return with_rows(
        dataset, X, with_copies(dataset.y, rows.y), weight, extras, outputs
    )


def with_rows(
    dataset: Dataset,
    X: np.ndarray,
    y: np.ndarray,
    weight: np.ndarray,
    extras: dict[str, np.ndarray] | None = None,
    outputs: np.ndarray | None = None,
) -> Dataset:
    """Return a data set of other rows, the first of them the training rows or these with noise."""
    rows = empty_rows(*X.shape)
    rows[:] = X
    n_added = X.shape[0] - dataset.X.shape[0]
    return replace(
        dataset,
        X=rows,
        y=y,
        sample_weight=weight,
        outputs=outputs,
        raw=X * dataset.scale + dataset.mean,
        multiplicity=np.pad(dataset.multiplicity, (0, n_added)),
        extras=extras or {},
    )


def bootstrap_counts(
    dataset: Dataset, rng: np.random.Generator, n_draws: int
) -> np.ndarray:
    """Return how often each given row is drawn with replacement, in proportion to the weights."""
    share = dataset.sample_weight / dataset.total_weight
    share = share / np.maximum(dataset.multiplicity, 1)
    return rng.multinomial(n_draws, share[dataset.distinct_of])


def bag_of(dataset: Dataset, n_times: np.ndarray) -> Dataset:
    """Return the rows of a bag, each of which weighs as much as it was drawn."""
    weight = np.bincount(dataset.distinct_of, n_times, dataset.n_distinct)
    rows = np.flatnonzero(weight)
    multiplicity = np.bincount(
        dataset.distinct_of[n_times > 0], minlength=dataset.n_distinct
    )
    multiplicity = np.where(dataset.multiplicity > 0, multiplicity, 0)
    bag = dataset.take(rows, weight[rows], multiplicity[rows])
    return replace(bag, weight_unit=1.0)


def bootstrap(dataset: Dataset, rng: np.random.Generator, max_rows: int) -> Dataset:
    """Return a bootstrap sample: rows drawn with replacement, in proportion to their weights."""
    n_draws = min(max_rows, len(dataset.distinct_of))
    return bag_of(dataset, bootstrap_counts(dataset, rng, n_draws))
