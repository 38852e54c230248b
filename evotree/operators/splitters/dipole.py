"""Dipoles: pairs of rows that place and move hyperplanes.

A dipole is *mixed* when its two rows belong to different classes, *pure* otherwise, and *divided*
by a hyperplane when they lie on different sides of it. Mixed dipoles should be divided, pure ones
should not (Krętowski and Grześ 2005, "Global induction of oblique decision trees: an evolutionary
approach", the sections on initialization and on genetic operators).
"""

import math
from dataclasses import dataclass

import numpy as np

from evotree._jit import kernel
from evotree.fitness.node import Node, centre_margin, project_rows
from evotree.operators.splitters.base import Split, better_split
from evotree.operators.splitters.linear import nonzero_features
from evotree.rng import below, normal, uniform
from evotree.tree import project

_PAIR_TRIALS = 32


@kernel
def is_mixed(y, order, lo, hi, i, j, stream):
    """Return whether two rows form a mixed dipole: whether they differ in class."""
    # Targets: whether they differ by more than those of two rows drawn from the node, so that a
    # dipole is the more often mixed the longer it is among the node's.
    if isinstance(y[i], float):
        k = order[lo + below(stream, hi - lo)]
        m = order[lo + below(stream, hi - lo)]
        return abs(y[i] - y[j]) > abs(y[k] - y[m])
    return y[i] != y[j]


@kernel
def mixed_dipole(y, order, lo, hi, stream):
    """Draw a mixed dipole from ``order[lo:hi]``, which holds at least two classes or targets."""
    i = order[lo + below(stream, hi - lo)]
    for _ in range(_PAIR_TRIALS):
        j = order[lo + below(stream, hi - lo)]
        if is_mixed(y, order, lo, hi, i, j, stream):
            return i, j
    others = 0
    for t in range(lo, hi):
        others += y[order[t]] != y[i]
    rank = below(stream, others)
    j = i
    for t in range(lo, hi):
        if y[order[t]] != y[i]:
            if rank == 0:
                j = order[t]
                break
            rank -= 1
    return i, j


@kernel
def keep_few(w, max_width, stream):
    """Set weights to 0, at random, until one is left, or two, or three, each half as likely."""
    left, width = nonzero_features(w).shape[0], 1
    while width < min(left, max_width) and uniform(stream) < 0.5:
        width += 1
    for m in range(w.shape[0]):
        if w[m] != 0.0:
            if uniform(stream) * left < width:
                width -= 1
            else:
                w[m] = 0.0
            left -= 1


@kernel
def dipole_hyperplane(X, y, order, lo, hi, stream, w, max_width):
    """Place a hyperplane at right angles to a random mixed dipole, between its two rows."""
    # The normal is (x_i - x_j) / |x_i - x_j|, in the space of all features, or of few.
    i, j = mixed_dipole(y, order, lo, hi, stream)
    for m in range(X.shape[1]):
        w[m] = X[i, m] - X[j, m]
    if max_width > 0:
        keep_few(w, max_width, stream)
    norm = 0.0
    for m in range(X.shape[1]):
        norm += w[m] * w[m]
    if norm > 0.0:
        norm = 1.0 / math.sqrt(norm)
        for m in range(X.shape[1]):
            w[m] *= norm
    delta = uniform(stream)
    return delta * project(w, X, i) + (1.0 - delta) * project(w, X, j)


@kernel
def flipping_shift(s_i, s_j, x_i, x_j, depth):
    """Return the shift of one weight that moves exactly one row of a dipole to the other side."""
    # The sides are the signs of s_i + delta x_i and s_j + delta x_j; their product changes its sign
    # at the roots -s_i / x_i and -s_j / x_j. Where 0 lies outside the roots the shift lies between
    # them, at the share `depth` of the way; where 0 lies between them it lies beyond the nearer
    # one, by the share `depth` of its distance: the rest of the tree is disturbed little.
    if x_i == 0.0 and x_j == 0.0:
        return 0.0
    if x_i == 0.0:
        return -s_j / x_j * (1.0 + depth)
    if x_j == 0.0:
        return -s_i / x_i * (1.0 + depth)
    r_i = -s_i / x_i
    r_j = -s_j / x_j
    if (r_i < 0.0) != (r_j < 0.0):
        return (r_i if abs(r_i) < abs(r_j) else r_j) * (1.0 + depth)
    return r_i + (r_j - r_i) * depth


@kernel
def dipolar_change(X, y, order, lo, hi, stream, w, threshold, is_sparse):
    """Move one weight so that a random dipole is treated better: the dipolar operator."""
    # The dipole is drawn by rejection, so it is uniform over the undivided mixed and the divided
    # pure ones; after a bounded number of trials the operator gives up.
    n = hi - lo
    features = nonzero_features(w) if is_sparse else np.arange(w.shape[0])
    if features.shape[0] == 0:
        return False
    for _ in range(_PAIR_TRIALS):
        i = order[lo + below(stream, n)]
        j = order[lo + below(stream, n)]
        s_i = project(w, X, i) - threshold
        s_j = project(w, X, j) - threshold
        mixed = is_mixed(y, order, lo, hi, i, j, stream)
        divided = (s_i <= 0.0) != (s_j <= 0.0)
        if mixed == divided:
            continue
        for _ in range(4):
            m = features[below(stream, features.shape[0])]
            shift = flipping_shift(s_i, s_j, X[i, m], X[j, m], uniform(stream))
            if shift != 0.0 and math.isfinite(shift):
                w[m] += shift
                return True
    return False


@kernel
def gaussian_change(stream, w, threshold, spread, is_sparse):
    """Add Gaussian noise to one weight or to the threshold: standard mutation."""
    # The noise of the threshold has the size of the projections' spread, and that of a weight moves
    # the projections by as much, divided by the square root of the number of features; each times a
    # factor that is log-uniform between 0.01 and 1: coarse moves and fine ones.
    variance = 0.0
    for m in range(w.shape[0]):
        variance += (w[m] * spread[m]) ** 2
    features = nonzero_features(w) if is_sparse else np.arange(w.shape[0])
    d = features.shape[0]
    m = below(stream, d + 1)
    noise = normal(stream) * math.sqrt(variance) * 10.0 ** (-2.0 * uniform(stream))
    if m == d:
        return threshold + noise
    w[features[m]] += noise / (math.sqrt(d) * spread[features[m]])
    return threshold


@kernel
def dipole_split(node, stream, w, max_width):
    """Place a centred dipole split at a node: write the normal vector, return the threshold."""
    n = node.X.shape[0]
    order = np.arange(n).astype(np.int32)
    projection = np.empty(n)
    threshold = dipole_hyperplane(node.X, node.y, order, 0, n, stream, w, max_width)
    project_rows(w.reshape(1, w.shape[0]), 0, node.X, order, 0, n, projection)
    return centre_margin(projection, order, 0, n, node.y, threshold)


@dataclass(frozen=True)
class Dipole:
    """A hyperplane across a random mixed dipole, its margin centred.

    See `dipole_hyperplane` and `centre_margin`.
    """

    # Without a score, which is then NaN, a side may be empty, and the kernels of the criteria are
    # not needed, which take seconds to compile.
    scored: bool = True
    max_width: int = 0  # 0 for all features; otherwise the most features of a split

    def __call__(self, node: Node, stream: np.ndarray) -> Split | None:
        """Find the split (see `evotree.operators.splitters.base.Splitter`)."""
        weights = np.empty(node.X.shape[1])
        threshold = dipole_split(node, stream, weights, self.max_width)
        if not self.scored:
            return Split(weights, threshold, np.nan)
        return better_split(None, node, (weights, threshold))
