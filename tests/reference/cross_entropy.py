"""Naive twins of the cross-entropy search's parts."""

import numpy as np


def bessel_ratio(kappa, p):
    """Return ``I_{p/2} / I_{p/2-1}`` at kappa by the continued fraction of Gauss, from its end."""
    tail = 0.0
    for k in reversed(range(2000 + int(2 * kappa))):
        tail = 1.0 / ((p + 2 * k) / kappa + tail)
    return tail


def side_loss(y, w, criterion):
    """Return the impurity of one side times its weight, by the definition."""
    if len(y) == 0:
        return 0.0
    if criterion == "squared_error":
        return np.sum(w * (y - np.average(y, weights=w)) ** 2)
    if criterion == "absolute_error":
        return min(np.sum(w * np.abs(y - centre)) for centre in y)
    p = np.array([w[y == c].sum() for c in np.unique(y)]) / w.sum()
    if criterion == "gini":
        return w.sum() * (1.0 - np.sum(p**2))
    if criterion == "entropy":
        return -w.sum() * np.sum(p * np.log2(p))
    return w.sum() * (1.0 - p.max())


def score(goes_left, y, w, criterion, min_rows):
    """Return the score of a split; infinity where a side has too few rows."""
    if min(goes_left.sum(), (~goes_left).sum()) < min_rows:
        return np.inf
    if criterion == "twoing":
        shares = [
            [w[side & (y == c)].sum() / w[side].sum() for c in np.unique(y)]
            for side in (goes_left, ~goes_left)
        ]
        p_left = w[goes_left].sum() / w.sum()
        return -p_left * (1.0 - p_left) * np.abs(np.subtract(*shares)).sum() ** 2
    losses = [side_loss(y[side], w[side], criterion) for side in (goes_left, ~goes_left)]
    return sum(losses) / w.sum()


def frame(X, w, normalization):
    """Return locations and scales of the columns; scale 0 for a constant column."""
    mean = np.average(X, axis=0, weights=w)
    deviation = np.sqrt(np.average((X - mean) ** 2, axis=0, weights=w))
    spread = X.max(axis=0) - X.min(axis=0)
    constant = spread == 0.0
    if normalization == "minmax":
        return mean, spread
    if normalization == "standard":
        return mean, np.where(constant, 0.0, deviation)
    low, median, high = (
        [np.quantile(x, q, weights=w, method="inverted_cdf") for x in X.T]
        for q in (0.25, 0.5, 0.75)
    )
    scale = np.subtract(high, low)
    scale = np.where(scale == 0.0, deviation, scale)
    return np.where(constant, mean, median), np.where(constant, 0.0, scale)


def independent_columns(columns, ranking):
    """Return the columns of a ranking that raise the rank of those before them and the ones."""
    kept = []
    basis = [np.ones(columns.shape[1])]
    for j in ranking:
        if np.linalg.matrix_rank(np.array([*basis, columns[j]])) > len(basis):
            basis.append(columns[j])
            kept.append(j)
    return kept
