"""The rows of a node as searches by gradient take them: standardized, with a constant appended."""

import math
from typing import NamedTuple

import numpy as np

from evotree._jit import dot_kernel, inner_kernel, kernel
from evotree.fitness.criteria import CLASSIFICATION, Criterion
from evotree.fitness.node import Node

_LEAST_SCALE = 1e-150  # its square is a number still


class Problem(NamedTuple):
    """The rows of a node in units of their own.

    Attributes
    ----------
    rows : ndarray of shape (n, d + 1)
        Rows less `mean`, over `scale`, 0 where the scale is; 1 in the last column.
    codes : ndarray of shape (n,), int32
        Classes, numbered among those present.
    shares : ndarray of shape (n,)
        Weights, with sum 1.
    totals : ndarray of shape (n_present,)
        Weights of the classes.
    mean, scale : ndarray of shape (d,)
        The affine map back to the node's units; a constant feature has the scale 0.
    """

    rows: np.ndarray
    codes: np.ndarray
    shares: np.ndarray
    totals: np.ndarray
    mean: np.ndarray
    scale: np.ndarray


@dot_kernel
def inner(a, b):
    """Return ``a @ b``."""
    s = 0.0
    for j in range(a.shape[0]):
        s += a[j] * b[j]
    return s


@inner_kernel
def number_classes(y, sample_weight, n_classes, codes):
    """Write the classes numbered among those present into `codes`; return their weights."""
    weights = np.zeros(n_classes)
    for i in range(y.shape[0]):
        weights[y[i]] += sample_weight[i]
    number = np.zeros(n_classes, dtype=np.int32)
    n_present = 0
    for c in range(n_classes):
        if weights[c] > 0.0:
            number[c] = n_present
            n_present += 1
    totals = np.empty(n_present)
    for c in range(n_classes):
        if weights[c] > 0.0:
            totals[number[c]] = weights[c]
    for i in range(y.shape[0]):
        codes[i] = number[y[i]]
    return totals


@inner_kernel
def location_and_scale(X, shares, mean, scale):
    """Write the weighted mean and standard deviation of each feature; scale 0 for a constant."""
    n, d = X.shape
    low, high = np.empty(d), np.empty(d)
    for j in range(d):
        mean[j] = scale[j] = 0.0
        low[j] = high[j] = X[0, j]
    for i in range(n):
        for j in range(d):
            mean[j] += shares[i] * X[i, j]
            low[j] = min(low[j], X[i, j])
            high[j] = max(high[j], X[i, j])
    for i in range(n):
        for j in range(d):
            deviation = X[i, j] - mean[j]
            scale[j] += shares[i] * deviation * deviation
    for j in range(d):
        # A share of the range bounds the scaled values where nearly all weight is at one place.
        scale[j] = max(math.sqrt(scale[j]), 1e-6 * (high[j] - low[j]))
        if low[j] == high[j] or scale[j] < _LEAST_SCALE:
            mean[j], scale[j] = low[j], 0.0


@kernel
def make_problem(X, y, sample_weight, n_classes, rescale):
    """Return the rows of a node with a constant appended.

    Parameters
    ----------
    X : ndarray of shape (n, d)
        Rows.
    y : ndarray of shape (n,), int32
        Class codes.
    sample_weight : ndarray of shape (n,)
        Weights, above 0.
    n_classes : int
        Number of classes.
    rescale : bool
        Whether features are brought to mean 0 and standard deviation 1.

    Returns
    -------
    Problem
        The rows.
    """
    n, d = X.shape
    codes = np.empty(n, dtype=np.int32)
    totals = number_classes(y, sample_weight, n_classes, codes)
    weight = 0.0
    for k in range(totals.shape[0]):
        weight += totals[k]
    for k in range(totals.shape[0]):
        totals[k] /= weight
    shares = np.empty(n)
    for i in range(n):
        shares[i] = sample_weight[i] / weight
    mean, scale, factor = np.zeros(d), np.ones(d), np.zeros(d)
    if rescale:
        location_and_scale(X, shares, mean, scale)
    for j in range(d):
        if scale[j] > 0.0:
            factor[j] = 1.0 / scale[j]
    rows = np.empty((n, d + 1))
    for i in range(n):
        for j in range(d):
            rows[i, j] = (X[i, j] - mean[j]) * factor[j]
        rows[i, d] = 1.0
    return Problem(rows, codes, shares, totals, mean, scale)


@kernel
def to_node_units(theta, mean, scale, weights):
    """Write the unit normal vector in the node's units of a hyperplane ``theta @ (x, 1) = 0``."""
    d = weights.shape[0]
    largest = 0.0
    for j in range(d):
        weights[j] = theta[j] / scale[j] if scale[j] > 0.0 else 0.0
        largest = max(largest, abs(weights[j]))
    if not 0.0 < largest < np.inf:
        return 0.0, 0.0
    square = 0.0
    for j in range(d):
        weights[j] /= largest  # squares neither overflow nor vanish
        square += weights[j] * weights[j]
    length = largest * math.sqrt(square)
    threshold = -theta[d] / length
    for j in range(d):
        weights[j] /= math.sqrt(square)
        threshold += weights[j] * mean[j]
    if not abs(threshold) < np.inf:
        return 0.0, 0.0
    return threshold, length


def needs_classes(node: Node, splitter: str) -> None:
    """Raise an error at a node of targets."""
    if node.n_classes == 0:
        raise ValueError(
            f"splitter {splitter!r} is for classification: criterion="
            f"{Criterion(node.criterion).name.lower()!r}: allowed are {', '.join(CLASSIFICATION)}."
        )
