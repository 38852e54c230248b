"""Naive twins of the cross-entropy search's parts."""

import numpy as np


def bessel_ratio(kappa, p):
    """Return ``I_{p/2} / I_{p/2-1}`` at kappa by the continued fraction of Gauss, from its end."""
    tail = 0.0
    for k in reversed(range(2000 + int(2 * kappa))):
        tail = 1.0 / ((p + 2 * k) / kappa + tail)
    return tail


def frame(X, w):
    """Return medians and quartile ranges of the columns; 0 for a constant column."""
    mean = np.average(X, axis=0, weights=w)
    deviation = np.sqrt(np.average((X - mean) ** 2, axis=0, weights=w))
    constant = np.ptp(X, axis=0) == 0.0
    low, median, high = (
        [np.quantile(x, q, weights=w, method="inverted_cdf") for x in X.T]
        for q in (0.25, 0.5, 0.75)
    )
    scale = np.subtract(high, low)
    scale = np.where(scale == 0.0, deviation, scale)
    return median, np.where(constant, 0.0, scale)


def independent_columns(columns, ranking):
    """Return the columns of a ranking that raise the rank of those before them and the ones."""
    kept = []
    basis = [np.ones(columns.shape[1])]
    for j in ranking:
        if np.linalg.matrix_rank(np.array([*basis, columns[j]])) > len(basis):
            basis.append(columns[j])
            kept.append(j)
    return kept
