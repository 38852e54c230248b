"""Naive twins of what makes scores: a regression by its definition, minimized by SciPy."""

import numpy as np
from scipy.optimize import minimize

from evotree.engine.scores import LOG, LOGIT


def l1_objective(columns, y, weight, penalty, share, link, coefficients, intercept):
    """Return the penalized mean loss of a regression, by its definition."""
    told = coefficients @ columns + intercept
    if link == LOGIT:
        losses = np.logaddexp(0.0, np.where(y == 0.0, told, -told))
    elif link == LOG:
        losses = np.exp(told) - y * told
    else:
        losses = 0.5 * (y - told) ** 2
    norm = share * np.abs(coefficients) + (1.0 - share) * 0.5 * coefficients**2
    return weight @ losses + penalty * norm.sum()


def l1_regression(columns, *asked):
    """Return coefficients and intercept that minimize it: differences of numbers from 0 on."""
    n_terms = len(columns)

    def parts(found):
        return found[:n_terms] - found[n_terms:-1], found[-1]

    bounds = [(0.0, None)] * (2 * n_terms) + [(None, None)]
    found = minimize(
        lambda found: l1_objective(columns, *asked, *parts(found)),
        np.zeros(2 * n_terms + 1),
        bounds=bounds,
    )
    return parts(found.x)
