"""Training rows that are not in the data: a fitness that goes on telling trees apart.

Where features are many and rows few, most trees of a population are perfect on the training rows,
and their quality there says nothing of the rows to come. Rows with noise, or rows between the
training rows labelled by a *teacher*, a model too large to be read, fill the gaps: a tree scores
where it agrees with the teacher (Craven and Shavlik 1996, "Extracting tree-structured
representations of trained networks", NeurIPS; Breiman and Shang 1996, "Born again trees").
"""

from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.neighbors import NearestNeighbors
from sklearn.utils.validation import has_fit_parameter

from evotree.dataset import Dataset, empty_rows
from evotree.rng import as_generator

_NEIGHBOURS = 6
_MOST_REPEATS = 100
_LEAST_MARGIN = 0.001  # no row is without weight
_ROUNDING = 1e-6


def draw_noise(
    dataset: Dataset, noise: float, shape: tuple[int, ...], rng: np.random.Generator
) -> np.ndarray:
    """Draw normal noise in units of the features' standard deviations; none in constant columns."""
    varies = dataset.X.min(axis=0) != dataset.X.max(axis=0)
    return noise * dataset.spread * varies * rng.standard_normal((*shape, dataset.X.shape[1]))


def interpolate(dataset: Dataset, n_rows: int, noise: float, stream: np.ndarray) -> np.ndarray:
    """Draw rows between neighbouring training rows, whatever their classes, with noise."""
    # A row is drawn in proportion to the weights, moved a uniform part of the way to one of its
    # nearest neighbours (Chawla et al. 2002, SMOTE), and blurred.
    rng = as_generator(stream)
    X = dataset.X
    k = min(_NEIGHBOURS, X.shape[0] - 1)
    first = rng.choice(X.shape[0], n_rows, p=dataset.sample_weight / dataset.total_weight)
    second = first
    if k:
        search = NearestNeighbors(n_neighbors=k + 1).fit(X / dataset.spread)
        near = search.kneighbors(X / dataset.spread, return_distance=False)[:, 1:]
        second = near[first, rng.integers(k, size=n_rows)]
    part = rng.uniform(size=(n_rows, 1))
    between = X[first] + part * (X[second] - X[first])
    return between + draw_noise(dataset, noise, (n_rows,), rng)


def fit_weighted(model: Any, dataset: Dataset) -> None:
    """Fit a model; where it takes no weights, rows are repeated, at most 100 times."""
    weight = dataset.sample_weight
    if has_fit_parameter(model, "sample_weight"):
        model.fit(dataset.X, dataset.y, sample_weight=weight)
        return
    n_times = np.rint(weight / weight.min()).clip(1, _MOST_REPEATS).astype(np.int64)
    model.fit(dataset.X.repeat(n_times, axis=0), dataset.y.repeat(n_times))


def _check_predictions(predicted: Any, teacher: Any, dataset: Dataset, n_rows: int) -> np.ndarray:
    """Return a teacher's predictions as labels, by which kernels count rows unchecked."""
    predicted, n_classes = np.asarray(predicted), dataset.n_classes
    allowed = f"class codes from 0 to {n_classes - 1}" if n_classes else "finite numbers"
    if predicted.shape != (n_rows,):
        raise ValueError(f"teacher={teacher!r} predicts shape {predicted.shape}, not ({n_rows},).")
    try:
        labels = predicted.astype(np.float64)
    except (TypeError, ValueError):
        wrong = predicted
    else:
        is_wrong = ~np.isfinite(labels)
        if n_classes:
            is_wrong |= (labels < 0.0) | (labels >= n_classes) | (labels != labels.round())
        wrong = predicted[is_wrong]
    if wrong.size:
        wrong = wrong.tolist()[0]
        raise ValueError(f"teacher={teacher!r} predicts {wrong!r}: allowed are {allowed}.")
    return labels.astype(dataset.y.dtype)


def _margins(model: Any, teacher: Any, X: np.ndarray) -> np.ndarray:
    """Return by how much a teacher's first class is likelier than its second, at least a little."""
    if not hasattr(model, "predict_proba"):
        return np.ones(X.shape[0])
    shares = np.asarray(model.predict_proba(X), dtype=np.float64)
    if shares.ndim != 2 or shares.shape[0] != X.shape[0] or shares.shape[1] == 0:
        raise ValueError(f"teacher={teacher!r} predicts probabilities of shape {shares.shape}.")
    if not ((shares >= 0.0) & (shares <= 1.0 + _ROUNDING)).all():
        raise ValueError(f"teacher={teacher!r} predicts probabilities outside [0, 1].")
    if shares.shape[1] == 1:
        return np.ones(X.shape[0])
    first_two = np.sort(shares, axis=1)[:, -2:]
    return np.maximum(first_two[:, 1] - first_two[:, 0], _LEAST_MARGIN)


def teach(dataset: Dataset, teacher: Any, n_rows: int, noise: float, stream: np.ndarray) -> Dataset:
    """Return a data set whose labels are a teacher's, on the training rows and between them."""
    # Where the teacher has probabilities, a row counts by the margin between its two likeliest
    # classes. Of two classes, the accuracy there then differs from the accuracy that the teacher
    # expects by a constant factor and a constant: a row on which it is undecided decides nothing.
    if dataset.extras:
        raise ValueError(f"a teacher needs rows without extra columns: {sorted(dataset.extras)}.")
    rng = as_generator(stream)
    model = clone(teacher)
    seeds = {
        name: int(rng.integers(2**31))
        for name in sorted(model.get_params())
        if name == "random_state" or name.endswith("__random_state")
    }
    model.set_params(**seeds)
    fit_weighted(model, dataset)
    drawn = interpolate(dataset, n_rows, noise, stream)
    X = np.concatenate([dataset.X, drawn])
    share = dataset.total_weight / n_rows
    labels = _check_predictions(model.predict(X), teacher, dataset, X.shape[0])
    weight = np.concatenate([dataset.sample_weight, np.full(n_rows, share)])
    if dataset.n_classes:
        counted = weight * _margins(model, teacher, X)
        weight = counted * (weight.sum() / counted.sum())
    return with_rows(dataset, X, labels, weight)


def blur(dataset: Dataset, noise: float, n_copies: int, stream: np.ndarray) -> Dataset:
    """Return a data set with noisy copies of its rows, or with noise in place of copies."""
    # The quality of a tree there is that on the training rows, smoothed: a row near a hyperplane is
    # on its side in some of its copies alone. For models that are smooth themselves training with
    # noise is the ridge penalty (Bishop 1995, "Training with noise is equivalent to Tikhonov
    # regularization", Neural Computation 7).
    rng = as_generator(stream)
    rows = dataset.unmerged()  # a few copies of what many rows are would be told apart by chance
    noise_of_copies = draw_noise(dataset, noise, (max(1, n_copies), len(rows.y)), rng)
    copies = (rows.X + noise_of_copies).reshape(-1, rows.X.shape[1])
    if n_copies == 0:
        return with_rows(rows, copies, rows.y, rows.sample_weight, rows.extras, rows.outputs)

    def with_copies(merged: np.ndarray, unmerged: np.ndarray) -> np.ndarray:
        return np.concatenate([merged, *[unmerged] * n_copies])

    weight = with_copies(dataset.sample_weight, rows.sample_weight) / (n_copies + 1)
    extras = {name: with_copies(dataset.extras[name], rows.extras[name]) for name in rows.extras}
    outputs = None
    if dataset.outputs is not None and rows.outputs is not None:
        outputs = with_copies(dataset.outputs, rows.outputs)
    X, y = np.concatenate([dataset.X, copies]), with_copies(dataset.y, rows.y)
    return with_rows(dataset, X, y, weight, extras, outputs)


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
    raw, multiplicity = X * dataset.scale + dataset.mean, np.pad(dataset.multiplicity, (0, n_added))
    columns: dict[str, Any] = {"raw": raw, "multiplicity": multiplicity, "extras": extras or {}}
    return replace(dataset, X=rows, y=y, sample_weight=weight, outputs=outputs, **columns)


def bootstrap_counts(dataset: Dataset, rng: np.random.Generator, n_draws: int) -> np.ndarray:
    """Return how often each given row is drawn with replacement, in proportion to the weights."""
    share = dataset.sample_weight / dataset.total_weight / np.maximum(dataset.multiplicity, 1)
    times: np.ndarray = rng.multinomial(n_draws, share[dataset.kept_as])
    return times


def bag_of(dataset: Dataset, n_times: np.ndarray) -> Dataset:
    """Return the rows of a bag, each of which weighs as much as it was drawn."""
    n_rows, kept_as = len(dataset.y), dataset.kept_as
    weight = np.bincount(kept_as, n_times, n_rows)
    rows = np.flatnonzero(weight)
    n_given = np.bincount(kept_as[n_times > 0], minlength=n_rows)
    n_given = np.where(dataset.multiplicity > 0, n_given, 0)
    return replace(dataset.take(rows, weight[rows], n_given[rows]), weight_unit=1.0)


def bootstrap(dataset: Dataset, rng: np.random.Generator, max_rows: int) -> Dataset:
    """Return a bootstrap sample: rows drawn with replacement, in proportion to their weights."""
    return bag_of(dataset, bootstrap_counts(dataset, rng, min(max_rows, dataset.n_samples)))
