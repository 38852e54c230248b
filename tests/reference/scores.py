"""Naive twins of what makes scores: a lasso by proximal gradient steps, one row at a time."""

import numpy as np


def l1_objective(columns, y, weight, penalty, is_logistic, coefficients, intercept):
    """Return the penalized mean loss of a regression, by its definition."""
    total = penalty * np.abs(coefficients).sum()
    for row, target, mass in zip(columns.T, y, weight, strict=True):
        told = row @ coefficients + intercept
        if is_logistic:
            total += mass * np.logaddexp(0.0, told if target == 0.0 else -told)
        else:
            total += mass * 0.5 * (target - told) ** 2
    return total


def l1_regression(columns, y, weight, penalty, is_logistic, n_steps=20_000):
    """Return coefficients and intercept that minimize it, by proximal gradient steps (ISTA)."""
    n_terms = len(columns)
    rows = np.vstack([columns, np.ones(columns.shape[1])]).T
    step = (4.0 if is_logistic else 1.0) / np.linalg.norm(rows.T * weight @ rows, 2)
    found = np.zeros(n_terms + 1)
    for _ in range(n_steps):
        told = rows @ found
        if is_logistic:
            told = 1.0 / (1.0 + np.exp(-told))
        found = found - step * (rows.T @ (weight * (told - y)))
        shrunk = np.maximum(np.abs(found[:-1]) - step * penalty, 0.0)
        found[:-1] = np.sign(found[:-1]) * shrunk
    return found[:-1], found[-1]
