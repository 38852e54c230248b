"""Bends that columns may have: hinges at quantiles of their numbers, and logarithms."""

import math
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from evotree.dataset import Dataset
from evotree.schema import ABOVE, LOG, Bend
from evotree.tree import ObliqueTree

SKEWED = 1.0
"""A column of positive numbers has a logarithm if its skewness is above this."""

# A knot is rounded to this share of a standard deviation at least, since it is to be read.
_ROUND_TO_SHARE = 0.1
_ROUNDING = 1e-12  # share of the largest number that a spread is none below


def bends_of(
    numbers: np.ndarray, share: np.ndarray, knots: Sequence[float]
) -> Iterator[Bend]:
    """Yield the bends that numbers may have: hinges at quantiles of the rows, and a logarithm."""
    mean = share @ numbers
    spread = math.sqrt(share @ (numbers - mean) ** 2)
    low, high = numbers.min(), numbers.max()
    if spread <= _ROUNDING * max(-low, high):
        return
    if low > 0.0 and share @ (numbers - mean) ** 3 > SKEWED * spread**3:
        yield Bend(LOG, float(low))
    decimals = -math.floor(math.log10(_ROUND_TO_SHARE * spread))
    quantiles = np.quantile(numbers, knots, weights=share, method="inverted_cdf")
    for knot in np.unique(np.round(quantiles, decimals)).tolist():
        if low < knot < high:
            yield Bend(ABOVE, knot + 0.0)


def _targets(dataset: Dataset) -> np.ndarray:
    """Return what is to be explained, of shape (n_distinct, n_targets)."""
    if dataset.n_classes == 0:
        return dataset.targets.reshape(dataset.n_distinct, -1)
    return (dataset.y[:, np.newaxis] == np.arange(1, dataset.n_classes)).astype(float)


def correlations(dataset: Dataset, share: np.ndarray) -> np.ndarray:
    """Return how strongly each feature is correlated with the targets."""
    targets = _targets(dataset)
    targets = targets - share @ targets
    return np.abs((targets * share[:, np.newaxis]).T @ dataset.X).max(axis=0) / (
        dataset.spread
    )


def without_lone_bends(
    tree: ObliqueTree, bends: Mapping[int, tuple[int, Bend]]
) -> ObliqueTree:
    """Return a tree over raw features whose splits on a single bend are splits on its column."""
    weights, thresholds = tree.weights.copy(), tree.thresholds.copy()
    for k in np.flatnonzero(np.count_nonzero(weights, axis=1) == 1).tolist():
        j = int(np.flatnonzero(weights[k])[0])
        if j not in bends:
            continue
        base, bend = bends[j]
        number = bend.number(thresholds[k] / weights[k, j])
        # Between its ends a bend is as good as its column, which is read more easily.
        if bend.sign * (number - bend.knot) > 0.0 and math.isfinite(number):
            sign = bend.sign * math.copysign(1.0, weights[k, j])
            weights[k, j] = 0.0
            weights[k, base], thresholds[k] = sign, sign * number
    return tree.replaced(weights=weights, thresholds=thresholds)
