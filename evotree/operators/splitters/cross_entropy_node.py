"""A node as the cross-entropy search sees it: normalized features and fast scores of directions.

The features of the node are normalized; where there are no more rows than features, only linearly
independent ones are kept (Bollwein and Westphal 2022). A hyperplane over them is a direction of
p = d + 1 dimensions, weights and intercept, and many directions are scored at a time: with the
rows sorted by class, the class weights of a side are sums over consecutive projections.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from evotree._jit import dot_kernel, dots_kernel, inner_kernel, kernel
from evotree.fitness.criteria import Criterion, class_ranks, split_score, weight_of
from evotree.fitness.node import Node
from evotree.fitness.sorting import make_sort_scratch, sort_order

NORMALIZATIONS = ("robust", "minmax", "standard")
"""Names of the ways to normalize the features of a node."""

_ROBUST, _STANDARD = NORMALIZATIONS.index("robust"), NORMALIZATIONS.index("standard")
_ABSOLUTE_ERROR = int(Criterion.ABSOLUTE_ERROR)

_ROUNDING = 1e-12  # a column whose range is this small beside its values counts as constant
_TIES = 1e-9  # an interquartile range this small beside the deviation tells of ties, not of scale
_DEPENDENT = 1e-9  # what elimination leaves of a dependent column, beside its largest entry
_TILE = 1 << 15  # numbers of a tile of projections, which stays in the cache
_BLOCK = 1 << 20  # numbers of a block of projections made by the BLAS
# Multiplications up to which projections are made here. Handed to the threads of a BLAS, a small
# product takes milliseconds where other processes hold the cores.
_FEW_PRODUCTS = 1 << 25


class SortedRows(NamedTuple):
    """The rows of a node by rising class or target, as `score_projections` needs them."""

    start: np.ndarray  # (n_classes + 1,): where the rows of each class begin
    y: np.ndarray  # (n,): targets; (0,) for classes
    moments: np.ndarray  # (1, n): weights w of the rows; for targets (3, n): w, w y and w y**2
    total: np.ndarray  # class weights, or the sums of the moments
    rank: np.ndarray  # from `evotree.fitness.criteria.class_ranks`
    criterion: int
    min_rows: int


class Frame(NamedTuple):
    """How the features searched were normalized: ``(x[features] - location) / scale``."""

    features: np.ndarray
    location: np.ndarray
    scale: np.ndarray


@kernel
def column_frame(X, sample_weight, kind, location, scale):
    """Write the locations and the scales of columns; a constant column has scale 0."""
    # Quantiles are the lowest values with at least their share of the weight at or below them.
    n = X.shape[0]
    column = np.empty(n)
    order = np.empty(n, dtype=np.int32)
    quartile = np.empty(3)
    scratch = make_sort_scratch(n if kind == _ROBUST else 0)
    weight = weight_of(sample_weight)
    for j in range(X.shape[1]):
        low, high, mean, variance = np.inf, -np.inf, 0.0, 0.0
        for i in range(n):
            column[i] = X[i, j]
            low, high = min(low, column[i]), max(high, column[i])
            mean += sample_weight[i] / weight * column[i]
        for i in range(n):
            variance += sample_weight[i] / weight * (column[i] - mean) ** 2
        location[j], scale[j] = mean, high - low
        if not high - low > max(1e-100, _ROUNDING * max(abs(low), abs(high))):
            scale[j] = 0.0
            continue
        deviation = math.sqrt(variance) if variance > 0.0 else high - low
        if kind == _STANDARD:
            scale[j] = deviation
        elif kind == _ROBUST:
            sort_order(column, n, order, scratch)
            q, passed = 0, 0.0
            for i in range(n):
                passed += sample_weight[order[i]]
                while q < 3 and (passed >= 0.25 * (q + 1) * weight or i == n - 1):
                    quartile[q] = column[order[i]]
                    q += 1
            location[j], scale[j] = quartile[1], quartile[2] - quartile[0]
            if scale[j] <= _TIES * deviation:
                scale[j] = deviation


@kernel
def normalized_columns(X, rows, features, location, scale):
    """Return the normalized features of rows, and ones: shape (n_searched + 1, n_rows)."""
    d, n = features.shape[0], rows.shape[0]
    Z = np.empty((d + 1, n))
    for k in range(d):
        j = features[k]
        for i in range(n):
            Z[k, i] = (X[rows[i], j] - location[k]) / scale[k]
    for i in range(n):
        Z[d, i] = 1.0
    return Z


@kernel
def independent_columns(Z, ranking):
    """Return the columns that are independent of the ones and of those before them in a ranking."""
    # Gaussian elimination with exchange of rows, one column after the other.
    n = Z.shape[1]
    row = np.arange(n)
    factor = np.empty((n, n))  # factor[k, i]: how often row i holds the k-th pivot row
    v = np.empty(n)
    kept = np.empty(n, dtype=np.int64)
    rank = 0
    for r in range(-1, ranking.shape[0]):
        if rank == n:
            break
        j = ranking[r] if r >= 0 else Z.shape[0] - 1
        largest = 0.0
        for i in range(n):
            v[i] = Z[j, row[i]]
            largest = max(largest, abs(v[i]))
        for k in range(rank):
            for i in range(k + 1, n):
                v[i] -= factor[k, i] * v[k]
        pivot = rank
        for i in range(rank, n):
            if abs(v[i]) > abs(v[pivot]):
                pivot = i
        if not abs(v[pivot]) > _DEPENDENT * largest:
            continue
        row[rank], row[pivot] = row[pivot], row[rank]
        v[rank], v[pivot] = v[pivot], v[rank]
        for k in range(rank):
            factor[k, rank], factor[k, pivot] = factor[k, pivot], factor[k, rank]
        for i in range(rank + 1, n):
            factor[rank, i] = v[i] / v[rank]
        kept[rank] = j
        rank += 1
    return kept[1:rank]


def sort_rows(node: Node) -> tuple[SortedRows, np.ndarray]:
    """Return the rows of a node by rising class or target, and their positions in the node."""
    order = np.argsort(node.y, kind="stable")
    y, w = node.y[order], node.sample_weight[order]
    if node.n_classes > 0:
        start = np.searchsorted(y, np.arange(node.n_classes + 1)).astype(np.int64)
        total = np.bincount(y, weights=w, minlength=node.n_classes)
        moments, y = w[None], np.empty(0)
    else:
        start = np.array([0, y.shape[0]])
        moments = np.stack([w, w * y, w * y * y])
        total = moments.sum(axis=1)
    rank = class_ranks(total)
    return SortedRows(start, y, moments, total, rank, node.criterion, node.min_rows), order


@dot_kernel
def sum_left(s, moment):
    """Return the sum of a moment over the rows with ``s <= 0``."""
    total = 0.0
    for i in range(s.shape[0]):
        total += moment[i] if s[i] <= 0.0 else 0.0
    return total


@inner_kernel
def count_left(s):
    """Return the number of rows with ``s <= 0``."""
    n_left = 0
    for i in range(s.shape[0]):
        n_left += s[i] <= 0.0
    return n_left


@inner_kernel
def absolute_score(s, y, moments, left, right):
    """Return the mean absolute deviation of the sides from their medians; rows rise by target."""
    total = np.array([left[0], right[0]])
    product = np.array([left[1], right[1]])
    median, passed, below_it = np.zeros(2), np.zeros(2), np.zeros(2)
    reached = np.zeros(2, dtype=np.bool_)
    for i in range(y.shape[0]):
        side = np.int64(s[i] > 0.0)
        if not reached[side]:
            median[side] = y[i]
            if 2.0 * (passed[side] + moments[0, i]) <= total[side]:
                passed[side] += moments[0, i]
                below_it[side] += moments[1, i]
            else:
                reached[side] = True
                if reached[1 - side]:
                    break
    score = 0.0
    for side in range(2):
        under = median[side] * passed[side] - below_it[side]
        over = product[side] - below_it[side] - median[side] * (total[side] - passed[side])
        score += max(0.0, under + over)
    return score / (total[0] + total[1])


@kernel
def score_projections(projections, rows, scores):
    """Score candidates: the rows with a projection of at most 0 go left."""
    start, y, moments, total, rank = rows.start, rows.y, rows.moments, rows.total, rows.rank
    criterion, min_rows, n = rows.criterion, rows.min_rows, projections.shape[1]
    left, right = np.empty(total.shape[0]), np.empty(total.shape[0])
    for k in range(projections.shape[0]):
        s = projections[k]
        n_left = count_left(s)
        if min(n_left, n - n_left) < min_rows:
            scores[k] = np.inf
            continue
        for c in range(total.shape[0]):
            if y.shape[0] > 0:
                left[c] = sum_left(s, moments[c])
            else:
                lo, hi = start[c], start[c + 1]
                left[c] = sum_left(s[lo:hi], moments[0, lo:hi])
            right[c] = total[c] - left[c]
        if criterion == _ABSOLUTE_ERROR:
            scores[k] = absolute_score(s, y, moments, left, right)
        else:
            scores[k] = split_score(criterion, left, right, rank)


@dots_kernel
def project_rows(directions, Z, out):
    """Write the projections of the rows on directions, two at a time, to read the rows less."""
    d, n = Z.shape[0] - 1, Z.shape[1]
    for k in range(0, directions.shape[0], 2):
        last = min(k + 1, directions.shape[0] - 1)
        a, b = directions[k], directions[last]
        s, t = out[k], out[last]
        for i in range(n):
            s[i] = a[d]
            t[i] = b[d]
        j = 0
        while j + 4 <= d:
            a0, a1, a2, a3 = a[j], a[j + 1], a[j + 2], a[j + 3]
            b0, b1, b2, b3 = b[j], b[j + 1], b[j + 2], b[j + 3]
            z0, z1, z2, z3 = Z[j], Z[j + 1], Z[j + 2], Z[j + 3]
            for i in range(n):
                sum_s = s[i] + a0 * z0[i] + a1 * z1[i] + a2 * z2[i] + a3 * z3[i]
                t[i] += b0 * z0[i] + b1 * z1[i] + b2 * z2[i] + b3 * z3[i]
                s[i] = sum_s  # after t[i], which may be the same
            j += 4
        while j < d:
            a0, b0, z0 = a[j], b[j], Z[j]
            for i in range(n):
                sum_s = s[i] + a0 * z0[i]
                t[i] += b0 * z0[i]
                s[i] = sum_s
            j += 1


@kernel
def score_few(Z, rows, directions, projections, scores):
    """Score directions by way of a tile of projections, as `score_directions`."""
    size = projections.shape[0]
    for lo in range(0, scores.shape[0], size):
        hi = min(lo + size, scores.shape[0])
        tile = projections[: hi - lo]
        project_rows(directions[lo:hi], Z, tile)
        score_projections(tile, rows, scores[lo:hi])


def score_directions(Z: np.ndarray, rows: SortedRows, directions: np.ndarray) -> np.ndarray:
    """Return the scores of directions: the rows with ``direction @ Z <= 0`` go left."""
    # Many products are made by the BLAS in single precision, in twice the speed: a row may then go
    # to the other side whose projection is within a millionth of its terms.
    (p, n), n_candidates = Z.shape, directions.shape[0]
    scores = np.empty(n_candidates)
    if n * p * n_candidates <= _FEW_PRODUCTS:
        size = 2 * max(1, _TILE // (2 * n))
        score_few(Z, rows, directions, np.empty((min(size, n_candidates), n)), scores)
        return scores
    size = min(max(16, _BLOCK // n), n_candidates)
    columns, projections = Z.astype(np.float32), np.empty((size, n), dtype=np.float32)
    for lo in range(0, n_candidates, size):
        block = directions[lo : lo + size].astype(np.float32)
        part = np.matmul(block, columns, out=projections[: block.shape[0]])
        score_projections(part, rows, scores[lo : lo + size])
    return scores
