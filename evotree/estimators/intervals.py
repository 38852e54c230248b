"""How far targets lie from predictions: standard deviations by leaf, and conformal intervals.

A leaf with few rows says little about its deviation, so it borrows from all others. Intervals are
those of split conformal prediction (Lei et al. 2018) with the deviations of the leaves as units of
the residuals (their section 5.2): they differ by leaf, and cover as often as they claim.

References
----------
Lei J., G'Sell M., Rinaldo A., Tibshirani R. J., Wasserman L. (2018). Distribution-free predictive
inference for regression. Journal of the American Statistical Association 113, 1094-1111.
Smyth G. K. (2004). Linear models and empirical Bayes methods for assessing differential expression
in microarray experiments. Statistical Applications in Genetics and Molecular Biology 3.
"""

import math
from typing import Any

import numpy as np

from evotree.dataset import Dataset
from evotree.tree import ObliqueTree

_BORROWED = 5.0  # degrees of freedom that each leaf takes from all others


def leaf_deviations(tree: ObliqueTree, dataset: Dataset) -> np.ndarray:
    """Return the standard deviation of the residuals of the training rows in each leaf.

    A leaf whose rows have the residuals r and the weights w, in units of the mean weight of all
    rows, has ``d = max(0, sum(w) - p)`` degrees of freedom, where p is the number of its
    coefficients, the intercept or mean included. Its variance is

        (sum(w r**2) + 5 s**2) / (d + 5),

    the moderated variance of Smyth (2004), where s**2 is that of all leaves together: the sum of
    their squared residuals over n rows less all coefficients, at least 1.
    """
    if dataset.outputs is not None:
        outputs = range(dataset.n_outputs)
        each = [
            leaf_deviations(tree.of_output(j), dataset.of_output(j)) for j in outputs
        ]
        return np.column_stack(each)
    leaves, weight = tree.apply(dataset.raw), dataset.sample_weight
    targets = dataset.target_mean + dataset.target_scale * dataset.y
    residuals = targets - tree.predict_value(dataset.raw)[:, 0]
    rows = np.bincount(leaves, weight, len(tree))
    errors = np.bincount(leaves, weight * residuals**2, len(tree))
    return deviations(tree, rows, errors, dataset.total_weight)


def deviations(
    tree: ObliqueTree, rows: np.ndarray, errors: np.ndarray, n_rows: float
) -> np.ndarray:
    """Return the standard deviations of the residuals of leaves, by sums over their rows."""
    n_terms = tree.is_leaf.astype(np.float64)
    if tree.models is not None:
        n_terms += (tree.models.coefficients != 0.0).sum(axis=1)
    freedom = np.maximum(0.0, rows - n_terms)
    pooled = errors.sum() / max(1.0, n_rows - n_terms.sum())
    variances = (errors + _BORROWED * pooled) / (freedom + _BORROWED)
    return np.where(tree.is_leaf, np.sqrt(variances), 0.0)


def conformal_width(scores: np.ndarray, coverage: float) -> Any:
    """Return the score that a further row keeps below with a probability of `coverage` or more."""
    if not 0.0 < coverage < 1.0:
        raise ValueError(f"coverage={coverage!r}: allowed are numbers between 0 and 1.")
    n = len(scores)
    k = math.ceil(
        (n + 1) * coverage * (1.0 - 1e-12)
    )  # 10 * 0.9 is 9, whatever it rounds to
    if k > n:
        most = f"{n} rows of calibration allow {n / (n + 1):.6g} at most"
        raise ValueError(f"coverage={coverage!r}: {most}.")
    return scores[k - 1]
