"""Naive twins of the linear classifiers: their objective and the conditions of its minimum."""

import numpy as np


def loss_of_margins(margins, loss):
    """Return the losses at some margins, and their slopes."""
    if loss == "svm":
        gap = np.maximum(0.0, 1.0 - margins)
        return gap**2, -2.0 * gap
    return np.logaddexp(0.0, -margins), -0.5 * (1.0 - np.tanh(0.5 * margins))


def objective(theta, X, signs, costs, loss, penalty):
    """Return the objective at theta = (w, b), of which b is free."""
    losses, _ = loss_of_margins(signs * (X @ theta[:-1] + theta[-1]), loss)
    w = theta[:-1]
    penalties = 0.5 * np.sum(w**2) if penalty == "l2" else np.abs(w).sum()
    return penalties + costs @ losses


def violation(theta, X, signs, costs, loss, penalty):
    """Return how far theta is from the conditions of a minimum, as a share of the start's slope."""
    rows = np.column_stack([X, np.ones(len(X))])
    _, slopes = loss_of_margins(signs * (rows @ theta), loss)
    slope = rows.T @ (costs * slopes * signs)
    _, first = loss_of_margins(np.zeros(len(X)), loss)
    size = max(1.0, np.abs(rows.T @ (costs * first * signs)).max())
    w, of_w = theta[:-1], slope[:-1]
    if penalty == "l2":
        miss = np.abs(of_w + w)
    else:
        miss = np.where(
            w != 0.0, np.abs(of_w + np.sign(w)), np.maximum(0.0, np.abs(of_w) - 1.0)
        )
    return max(miss.max(), abs(slope[-1])) / size
