"""Cross-entropy search for an oblique split (Bollwein and Westphal 2022).

A hyperplane is a direction on the unit sphere in p = d + 1 dimensions: the weights of the
normalized features and the intercept. Directions are drawn from a von Mises-Fisher distribution,
uniform at first, and scored; the distribution is fitted to the best share of them, the elite, and
smoothed with the one before; and so on, until the elite improves no more. The best direction ever
drawn is the split. Many directions are scored at a time: with the rows sorted by class, the class
weights of a side are sums over consecutive projections.

The density of the distribution at a unit vector x is proportional to ``exp(kappa * mu @ x)``, with
the mean direction mu and the concentration kappa.

References
----------
Bollwein F., Westphal S. (2022) Oblique decision tree induction by cross-entropy optimization based
on the von Mises-Fisher distribution. Computational Statistics 37.
Wood A. T. A. (1994) Simulation of the von Mises Fisher distribution. Communications in Statistics -
Simulation and Computation 23(1).
Banerjee A., Dhillon I. S., Ghosh J., Sra S. (2005) Clustering on the unit hypersphere using von
Mises-Fisher distributions. Journal of Machine Learning Research 6.
Sra S. (2012) A short note on parameter approximation for von Mises-Fisher distributions. And a fast
implementation of I_s(x). Computational Statistics 27.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from numbers import Integral, Real
from operator import attrgetter
from typing import Annotated, NamedTuple

import numpy as np
from scipy.special import ive

from evotree._jit import dot_kernel, inner_kernel, kernel
from evotree.configuration import Configuration, Interval
from evotree.fitness.node import Criterion, Node, split_score
from evotree.operators.splitters.base import (
    Axis,
    Split,
    best_split_along,
    scored_split,
    search_features,
)
from evotree.parallel import one_blas_thread
from evotree.rng import as_generator

MAX_LENGTH = 1.0 - 1e-10
"""The mean resultant length counts as at most this, so that the concentration stays finite."""


def sample_directions(
    generator: np.random.Generator, mu: np.ndarray, kappa: float, n: int
) -> np.ndarray:
    """Draw directions from a von Mises-Fisher distribution (Wood 1994, algorithm VM*)."""
    p = mu.shape[0]
    directions = generator.standard_normal((n, p))
    if kappa == 0.0:
        return _scaled(directions, 1.0)
    # Drawn around the first axis, with cosine 1 - below, then reflected: a rotation would take p**3
    # steps, the reflection of each direction takes p.
    below = _draw_one_less_cosine(generator, p, kappa, n)
    directions[:, 1:] = _scaled(directions[:, 1:], np.sqrt(below * (2.0 - below)))
    # The reflection in the plane orthogonal to u = e_1 + sign mu takes e_1 to -sign mu; with this
    # sign u is no shorter than 1.
    sign = 1.0 if mu[0] >= 0.0 else -1.0
    directions[:, 0] = sign * (below - 1.0)
    u = sign * mu
    u[0] += 1.0
    directions -= np.outer(directions @ u / (1.0 + sign * mu[0]), u)
    return directions


def _scaled(vectors: np.ndarray, lengths: np.ndarray | float) -> np.ndarray:
    """Return vectors, one a row, scaled to lengths."""
    return vectors * (lengths / np.linalg.norm(vectors, axis=1))[:, None]


def _draw_one_less_cosine(
    generator: np.random.Generator, p: int, kappa: float, n: int
) -> np.ndarray:
    """Return ``1 - omega`` of the cosines omega of n samples with the mean direction."""
    # Wood's steps 1 and 2, written in ``1 - omega = 2 b z / D``, ``D = 1 - (1 - b) z``, which does
    # not cancel where kappa is large: the test of acceptance
    # ``kappa omega + (p-1) ln(1 - x_0 omega) - c >= ln u`` becomes
    # ``2 kappa b (1 - 2 z) / ((1 + b) D) + (p-1) ln((1 + b) / (2 D)) >= ln u``.
    b = (p - 1) / (2.0 * kappa + math.hypot(2.0 * kappa, p - 1.0))
    below = np.empty(n)
    missing = np.arange(n)
    while missing.size:
        z = generator.beta(0.5 * (p - 1), 0.5 * (p - 1), missing.size)
        denominator = 1.0 - (1.0 - b) * z
        tilt = 2.0 * kappa * b * (1.0 - 2.0 * z) / ((1.0 + b) * denominator)
        volume = (p - 1) * np.log((1.0 + b) / (2.0 * denominator))
        accepted = tilt + volume >= -generator.standard_exponential(missing.size)
        below[missing[accepted]] = (2.0 * b * z / denominator)[accepted]
        missing = missing[~accepted]
    return below


def bessel_ratio(kappa: float, p: int) -> float:
    """Return the mean resultant length ``A(kappa) = I_{p/2}(kappa) / I_{p/2-1}(kappa)``."""
    above, below = float(ive(0.5 * p, kappa)), float(ive(0.5 * p - 1.0, kappa))
    return above / below if min(above, below) >= np.finfo(np.float64).tiny else math.nan


def concentration(length: float, p: int) -> float:
    """Return the maximum likelihood estimate of kappa: the root of ``A(kappa) = length``."""
    # Where the Bessel ratio cannot be had, which is where kappa is small beside p, and where kappa
    # is very large, it is Banerjee's approximation, exact to many digits there.
    length = min(length, MAX_LENGTH)
    banerjee = length * (p - length * length) / (1.0 - length * length)
    # Beyond, the denominator of a Newton step is nothing but rounding, and this value is exact to
    # six digits.
    if not 0.0 < banerjee < 1e6:
        return max(0.0, banerjee)
    kappa = banerjee
    for _ in range(2):
        ratio = bessel_ratio(kappa, p)
        slope = 1.0 - ratio * ratio - (p - 1) / kappa * ratio
        if not slope > 0.0:
            return banerjee
        kappa -= (ratio - length) / slope
        if not 0.5 * banerjee < kappa < 2.0 * banerjee:
            return banerjee
    return kappa


def fit_directions(directions: np.ndarray) -> tuple[np.ndarray, float]:
    """Return the maximum likelihood estimates of the mean direction and the concentration."""
    n, p = directions.shape
    resultant = directions.sum(axis=0)
    length = float(np.linalg.norm(resultant))
    return resultant / (length or 1.0), concentration(length / n, p)


# What projections leave of a dependent column, beside its largest entry.
_DEPENDENT = 1e-9


class SortedRows(NamedTuple):
    """The rows of a node by rising class or target, as `score_projections` needs them."""

    start: np.ndarray  # (n_classes + 1,): where the rows of each class begin
    # (1, n): weights w of the rows; for targets (3, n): w, w y and w y**2.
    moments: np.ndarray
    total: np.ndarray  # class weights, or the sums of the moments
    criterion: int
    min_rows: int


class Frame(NamedTuple):
    """How the features searched were normalized: ``(x[features] - location) / scale``."""

    features: np.ndarray
    location: np.ndarray
    scale: np.ndarray


def column_frame(X: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the medians and the interquartile ranges of columns; 0 for a constant column.

    Where the range tells of ties alone it is the standard deviation.
    """
    low, high, total = X.min(axis=0), X.max(axis=0), weight.sum()
    width = high - low
    deviation = np.sqrt(weight @ (X - weight @ X / total) ** 2 / total)
    deviation = np.where(deviation > 0.0, deviation, width)
    # Quartiles are the lowest values with at least their share of the weight up to them.
    order = np.argsort(X, axis=0, kind="stable")
    passed = np.cumsum(weight[order], axis=0)
    passed[-1] = np.inf
    places = [(passed >= share * total).argmax(axis=0) for share in (0.25, 0.5, 0.75)]
    values = np.take_along_axis(X, order, axis=0)
    first, location, third = np.take_along_axis(values, np.array(places), axis=0)
    # An interquartile range that is small beside the deviation tells of ties, not of scale.
    scale = np.where(third - first <= 1e-9 * deviation, deviation, third - first)
    is_constant = width <= np.maximum(1e-100, 1e-12 * np.maximum(abs(low), abs(high)))
    return location, np.where(is_constant, 0.0, scale)


def is_independent(Z: np.ndarray) -> bool:
    """Return whether no column depends on those before it; there are no more of them than rows."""
    with one_blas_thread():
        left = np.abs(np.diagonal(np.linalg.qr(Z.T, mode="r")))
    return bool((left > _DEPENDENT * np.linalg.norm(Z, axis=1)).all())


def independent_columns(Z: np.ndarray, ranking: np.ndarray) -> np.ndarray:
    """Return the columns that are independent of the ones and of those before them in a ranking."""
    # Gram and Schmidt's process, twice for each column, so that rounding leaves no part of others.
    basis, kept = np.empty((0, Z.shape[1])), []
    for j in (-1, *ranking.tolist()):
        rest = Z[j] - (Z[j] @ basis.T) @ basis
        rest -= (rest @ basis.T) @ basis
        length = np.linalg.norm(rest)
        if len(basis) < Z.shape[1] and length > _DEPENDENT * np.linalg.norm(Z[j]):
            basis = np.vstack([basis, rest / length])
            kept.append(j)
    return np.array(kept[1:], dtype=np.int64)


def rows_by_class(node: Node) -> tuple[SortedRows, np.ndarray]:
    """Return the rows of a node by rising class or target, and their positions in the node."""
    order = np.argsort(node.y, kind="stable")
    y, w = node.y[order], node.sample_weight[order]
    if node.n_classes > 0:
        start = np.searchsorted(y, np.arange(node.n_classes + 1)).astype(np.int64)
        total = np.bincount(y, weights=w, minlength=node.n_classes)
        moments = w[None]
    else:
        start = np.array([0, y.shape[0]])
        moments = np.stack([w, w * y, w * y * y])
        total = moments.sum(axis=1)
    rows = SortedRows(start, moments, total, node.criterion, node.min_rows)
    return rows, order


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


@kernel
def score_projections(projections, rows, scores):
    """Score candidates: the rows with a projection of at most 0 go left."""
    moments, total = rows.moments, rows.total
    n = projections.shape[1]
    left, right = np.empty(total.shape[0]), np.empty(total.shape[0])
    for k in range(projections.shape[0]):
        s = projections[k]
        n_left = count_left(s)
        if min(n_left, n - n_left) < rows.min_rows:
            scores[k] = np.inf
            continue
        for c in range(total.shape[0]):
            if moments.shape[0] > 1:
                left[c] = sum_left(s, moments[c])
            else:
                lo, hi = rows.start[c], rows.start[c + 1]
                left[c] = sum_left(s[lo:hi], moments[0, lo:hi])
            right[c] = total[c] - left[c]
        scores[k] = split_score(rows.criterion, left, right)


def score_directions(
    Z: np.ndarray, rows: SortedRows, directions: np.ndarray
) -> np.ndarray:
    """Return the scores of directions: the rows with ``direction @ Z <= 0`` go left."""
    scores = np.empty(directions.shape[0])
    size = max(16, 2**18 // Z.shape[1])  # of a block of directions
    for lo in range(0, len(scores), size):
        score_projections(directions[lo : lo + size] @ Z, rows, scores[lo : lo + size])
    return scores


@dataclass(frozen=True, repr=False)
class CrossEntropy(Configuration):
    """The best of the hyperplanes drawn while a distribution closes in on the good ones.

    The features are normalized within the node, by their medians and interquartile ranges; constant
    ones have weight 0, and so have those that depend linearly on the ones and on features with a
    better axis-parallel split. A single feature is split exactly.

    Parameters
    ----------
    smoothing : float in [0, 1), default=0.2
        Weight alpha of the distribution before beside that fitted to the elite; 0 is no smoothing.
        At 0.8, the paper's value, the search often stops at once, near a random hyperplane.
    elite_share : float in (0, 1], default=0.1
        Share rho of the candidates that forms the elite, with those of an equal score.
    patience : int, at least 1, default=3
        The search stops when the level, the worst score of the elite, has not fallen below its
        lowest value before for K = `patience` iterations in a row.
    max_samples : int, at least 1, or None, default=500
        Most candidates of an iteration, of which there are ``max(100, ceil(2 d log2 n))`` for n
        rows and d features searched; None means no bound, as the paper has it.
    max_rows : int, at least 2, or None, default=2000
        In larger nodes the search runs on so many rows drawn at random, or on twice as many as
        there are features if that is more, and the last incumbents are scored on all rows. None
        means all rows, as the paper has it.
    max_iter : int, at least 1, default=1000
        Bound of the number of iterations.
    refine_threshold : bool, default=True
        Whether the threshold moves to the best one for the weights found: a better or equal score,
        in the middle between two rows. The paper keeps the threshold drawn.
    """

    smoothing: Annotated[float, Interval(Real, 0.0, 1.0, closed="left")] = 0.2
    elite_share: Annotated[float, Interval(Real, 0.0, 1.0, closed="right")] = 0.1
    patience: Annotated[int, Interval(Integral, 1, None, closed="left")] = 3
    max_samples: Annotated[
        int | None, Interval(Integral, 1, None, closed="left"), None
    ] = 500
    max_rows: Annotated[
        int | None, Interval(Integral, 2, None, closed="left"), None
    ] = 2000
    max_iter: Annotated[int, Interval(Integral, 1, None, closed="left")] = 1000
    refine_threshold: Annotated[bool, "boolean"] = True

    def __call__(self, node: Node, stream: np.ndarray) -> Split | None:
        """Find the split (see `evotree.operators.splitters.base.Splitter`)."""
        Z, rows, frame = normalize(self._draw_part(node, stream))
        if frame.features.shape[0] < 2:
            return Axis()(node, stream)
        lowest, incumbents = np.inf, []  # each with a lower score than the one before
        # The threads of a BLAS would wait for other processes that hold the cores.
        with one_blas_thread():
            for directions, scores in self._iterate(Z, rows, stream):
                at = scores.argmin()
                if scores[at] < lowest:
                    lowest = scores[at]
                    incumbents.append(directions[at].copy())
        # The last incumbents are scored on all rows.
        finalists = [
            scored_split(node, *denormalize(direction, frame, node.X.shape[1]))
            for direction in reversed(incumbents[-5:])
        ]
        best = min(finalists, key=attrgetter("score"), default=None)
        if best is not None and (self.refine_threshold or best.score == np.inf):
            along = best_split_along(node, best.weights)
            best = best if along is None or along.score > best.score else along
        if best is None or best.score == np.inf:
            return Axis()(node, stream)
        return best

    def _draw_part(self, node: Node, stream: np.ndarray) -> Node:
        """Return a node of some of the rows, or the node itself if it is small."""
        n, d = node.X.shape
        n_drawn = n if self.max_rows is None else max(self.max_rows, 2 * d)
        if n <= n_drawn:
            return node
        drawn = np.sort(as_generator(stream).permutation(n)[:n_drawn])
        return node._replace(
            X=node.X[drawn],
            y=node.y[drawn],
            sample_weight=node.sample_weight[drawn],
            min_rows=max(1, node.min_rows * n_drawn // n),
        )

    def _iterate(
        self, Z: np.ndarray, rows: SortedRows, stream: np.ndarray
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield the directions that each iteration draws, and their scores."""
        p, n = Z.shape
        n_samples = max(100, math.ceil(2 * (p - 1) * math.log2(n)))
        n_samples = min(n_samples, self.max_samples or n_samples)
        n_elite = math.ceil(self.elite_share * n_samples)
        generator = as_generator(stream)
        mu, kappa = np.zeros(p), 0.0
        lowest_level, stale = np.inf, 0
        is_impurity = rows.criterion != Criterion.TWOING  # 0 is the lowest score
        for _ in range(self.max_iter):
            directions = sample_directions(generator, mu, kappa, n_samples)
            scores = score_directions(Z, rows, directions)
            level = np.partition(scores, n_elite - 1)[n_elite - 1]
            # Candidates that part no rows are never elite.
            is_elite = scores <= min(level, np.finfo(np.float64).max)
            yield directions, scores
            if scores.min() <= 0.0 and is_impurity:
                break
            stale = 0 if level < lowest_level else stale + 1
            if stale == self.patience:
                break
            lowest_level = min(level, lowest_level)
            if is_elite.any():
                mu, kappa = self._update(mu, kappa, directions[is_elite])

    def _update(
        self, mu: np.ndarray, kappa: float, elite: np.ndarray
    ) -> tuple[np.ndarray, float]:
        """Return the smoothed parameters; a mean direction of zeros is none yet."""
        mu_elite, kappa_elite = fit_directions(elite)
        mu = self.smoothing * mu + (1.0 - self.smoothing) * mu_elite
        kappa = self.smoothing * kappa + (1.0 - self.smoothing) * kappa_elite
        length = float(np.linalg.norm(mu))
        return mu / (length or 1.0), kappa if length > 0.0 else 0.0


def denormalize(
    direction: np.ndarray, frame: Frame, n_features: int
) -> tuple[np.ndarray, float]:
    """Return the hyperplane of a direction, with a normal vector of length 1."""
    searched = direction[:-1] / frame.scale
    length = float(np.linalg.norm(searched))
    weights = np.zeros(n_features)
    weights[frame.features] = searched / length
    return weights, float(searched @ frame.location - direction[-1]) / length


def normalize(node: Node) -> tuple[np.ndarray, SortedRows, Frame]:
    """Return the normalized, sorted rows of a node over the features to be searched."""
    n, d = node.X.shape
    location, scale = column_frame(node.X, node.sample_weight)
    features = np.flatnonzero(scale)
    frame = Frame(features, location[features], scale[features])
    rows, order = rows_by_class(node)
    Z = np.ones((len(features) + 1, n))
    Z[:-1] = ((node.X[order][:, features] - frame.location) / frame.scale).T
    if n > features.shape[0] and is_independent(Z):
        return Z, rows, frame
    scores = np.empty(d)
    search_features(node, scores, np.empty(d))
    kept = independent_columns(Z, np.argsort(scores[features], kind="stable"))
    Z = Z[np.append(kept, features.shape[0])]
    return Z, rows, Frame(features[kept], frame.location[kept], frame.scale[kept])
