"""Cross-entropy search for an oblique split (Bollwein and Westphal 2022).

A hyperplane is a direction on the unit sphere in p = d + 1 dimensions: the weights of the
normalized features and the intercept. Directions are drawn from a von Mises-Fisher distribution,
uniform at first, and scored; the distribution is fitted to the best share of them, the elite, and
smoothed with the one before; and so on, until the elite improves no more. The best direction ever
drawn is the split.

References
----------
Bollwein F., Westphal S. (2022) Oblique decision tree induction by cross-entropy optimization based
on the von Mises-Fisher distribution. Computational Statistics 37.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Annotated, NamedTuple

import numpy as np

from evotree._jit import kernel
from evotree._sklearn import Interval, StrOptions
from evotree.configuration import Configuration
from evotree.fitness.criteria import Criterion
from evotree.fitness.node import Node, score_hyperplane
from evotree.operators.splitters.axis import Axis, search_features
from evotree.operators.splitters.base import Split, best_split_along
from evotree.operators.splitters.cross_entropy_node import (
    NORMALIZATIONS,
    Frame,
    SortedRows,
    column_frame,
    independent_columns,
    normalized_columns,
    score_directions,
    sort_rows,
)
from evotree.operators.splitters.von_mises_fisher import fit, sample
from evotree.rng import as_generator, below

# A score of 0 is the lowest for all criteria but these.
_NOT_IMPURITIES = (Criterion.TWOING, Criterion.GAIN_RATIO)
# So many of the last incumbents are scored on all rows, in double precision.
_FINALISTS = 5


@kernel
def draw_rows(stream, n, n_drawn):
    """Draw positions below n without replacement (Fisher and Yates); they ascend."""
    position = np.arange(n)
    for i in range(n_drawn):
        j = i + below(stream, n - i)
        position[i], position[j] = position[j], position[i]
    return np.sort(position[:n_drawn])


class SamplingStep(NamedTuple):
    """One iteration of the search: what was drawn, from which distribution, and what was kept."""

    mu: np.ndarray  # (p,): mean direction that was drawn around; all 0 while there is none
    kappa: float  # concentration; 0 is the uniform distribution
    directions: np.ndarray  # (n_samples, p), of length 1: normalized weights, and the intercept
    scores: np.ndarray  # (n_samples,); infinity where a candidate does not part the rows
    is_elite: np.ndarray  # (n_samples,) bool: those to which the next distribution is fitted


@dataclass(frozen=True, repr=False)
class CrossEntropy(Configuration):
    """The best of the hyperplanes drawn while a distribution closes in on the good ones.

    The features are normalized within the node; constant ones have weight 0. Where there are no
    more rows than features, so have those that depend linearly on the ones and on features with a
    better axis-parallel split. A single feature is split exactly.

    Parameters
    ----------
    smoothing : float in [0, 1), default=0.2
        Weight alpha of the distribution before beside that fitted to the elite, for its mean
        direction and its concentration; 0 is no smoothing. At 0.8 the first levels differ by less
        than their sampling error, and the search often stops at once, near a random hyperplane.
    elite_share : float in (0, 1], default=0.1
        Share rho of the candidates that forms the elite, with those of an equal score.
    patience : int, at least 1, default=3
        The search stops when the level, the worst score of the elite, has not fallen below its
        lowest value before for K = `patience` iterations in a row.
    n_samples : int, at least 1, or None
        Number N of candidates of an iteration; None means ``max(100, ceil(2 d log2 n))`` for n rows
        and d features searched, but at most `max_samples`.
    max_samples : int, at least 1, or None, default=500
        Bound of that number; None means none, as the paper has it.
    normalization : {"robust", "minmax", "standard"}, default="robust"
        Location and scale of a feature: median and interquartile range (where that is 0, median and
        standard deviation); mean and range; mean and standard deviation.
    max_rows : int, at least 2, or None, default=2000
        In larger nodes the search runs on so many rows drawn at random, or on twice as many as
        there are features if that is more, and the last incumbents are scored on all rows. None
        means all rows, as the paper has it.
    max_iter : int, at least 1, default=1000
        Bound of the number of iterations.
    refine_threshold : bool, default=True
        Whether the threshold moves to the best one for the weights found: a better or equal score,
        in the middle between two rows. The paper keeps the threshold drawn.

    References
    ----------
    Bollwein F., Westphal S. (2022) Oblique decision tree induction by cross-entropy optimization
    based on the von Mises-Fisher distribution. Computational Statistics 37.
    """

    smoothing: Annotated[float, Interval(Real, 0.0, 1.0, closed="left")] = 0.2
    elite_share: Annotated[float, Interval(Real, 0.0, 1.0, closed="right")] = 0.1
    patience: Annotated[int, Interval(Integral, 1, None, closed="left")] = 3
    n_samples: Annotated[int | None, Interval(Integral, 1, None, closed="left"), None] = None
    max_samples: Annotated[int | None, Interval(Integral, 1, None, closed="left"), None] = 500
    normalization: Annotated[str, StrOptions(set(NORMALIZATIONS))] = "robust"
    max_rows: Annotated[int | None, Interval(Integral, 2, None, closed="left"), None] = 2000
    max_iter: Annotated[int, Interval(Integral, 1, None, closed="left")] = 1000
    refine_threshold: Annotated[bool, "boolean"] = True

    def __call__(self, node: Node, stream: np.ndarray) -> Split | None:
        """Find the split (see `evotree.operators.splitters.base.Splitter`)."""
        part = self._draw_part(node, stream)
        Z, rows, frame = normalize(part, self.normalization)
        if frame.features.shape[0] < 2:
            return Axis()(node, stream)
        best: Split | None = None
        for direction in reversed(self._search(Z, rows, stream)[-_FINALISTS:]):
            weights, threshold = denormalize(direction, frame, node.X.shape[1])
            score = float(score_hyperplane(node, weights, threshold))
            if best is None or score < best.score:
                best = Split(weights, threshold, score)
        if best is not None and (self.refine_threshold or best.score == np.inf):
            best = with_better_threshold(node, best)
        if best is None or best.score == np.inf:
            return Axis()(node, stream)
        return best

    def trace(self, node: Node, stream: np.ndarray) -> list[SamplingStep]:
        """Return the iterations of the search that a call with the same stream would do.

        There are none where a single feature is left, which is split exactly.
        """
        Z, rows, _ = normalize(self._draw_part(node, stream), self.normalization)
        if Z.shape[0] < 3:
            return []
        return list(self._iterate(Z, rows, stream))

    def _draw_part(self, node: Node, stream: np.ndarray) -> Node:
        """Return a node of some of the rows, or the node itself if it is small."""
        n, d = node.X.shape
        n_drawn = n if self.max_rows is None else max(self.max_rows, 2 * d)
        if n <= n_drawn:
            return node
        drawn = draw_rows(stream, n, n_drawn)
        return node._replace(
            X=node.X[drawn],
            y=node.y[drawn],
            sample_weight=node.sample_weight[drawn],
            min_rows=max(1, node.min_rows * n_drawn // n),
        )

    def _n_samples(self, n: int, d: int) -> int:
        """Return the number of candidates for n rows and d features."""
        if self.n_samples is not None:
            return self.n_samples
        n_samples = max(100, math.ceil(2 * d * math.log2(n)))
        return n_samples if self.max_samples is None else min(n_samples, self.max_samples)

    def _search(self, Z: np.ndarray, rows: SortedRows, stream: np.ndarray) -> list[np.ndarray]:
        """Return the incumbents, each with a lower score than the one before."""
        lowest_score = np.inf
        incumbents: list[np.ndarray] = []
        for step in self._iterate(Z, rows, stream):
            best = step.scores.argmin()
            if step.scores[best] < lowest_score:
                lowest_score = step.scores[best]
                incumbents.append(step.directions[best].copy())
        return incumbents

    def _iterate(
        self, Z: np.ndarray, rows: SortedRows, stream: np.ndarray
    ) -> Iterator[SamplingStep]:
        """Yield each iteration."""
        p, n = Z.shape
        n_samples = self._n_samples(n, p - 1)
        n_elite = math.ceil(self.elite_share * n_samples)
        generator = as_generator(stream)
        mu, kappa = np.zeros(p), 0.0
        lowest_level, stale = np.inf, 0
        for _ in range(self.max_iter):
            directions = sample(generator, mu, kappa, n_samples)
            scores = score_directions(Z, rows, directions)
            level = np.partition(scores, n_elite - 1)[n_elite - 1]
            # Candidates that part no rows are never elite.
            is_elite = scores <= min(level, np.finfo(np.float64).max)
            yield SamplingStep(mu, kappa, directions, scores, is_elite)
            if scores.min() <= 0.0 and rows.criterion not in _NOT_IMPURITIES:
                break
            stale = 0 if level < lowest_level else stale + 1
            if stale == self.patience:
                break
            lowest_level = min(level, lowest_level)
            if is_elite.any():
                mu, kappa = self._update(mu, kappa, directions[is_elite])

    def _update(self, mu: np.ndarray, kappa: float, elite: np.ndarray) -> tuple[np.ndarray, float]:
        """Return the smoothed parameters; a mean direction of zeros is none yet."""
        mu_elite, kappa_elite = fit(elite)
        mu = self.smoothing * mu + (1.0 - self.smoothing) * mu_elite
        length = float(np.linalg.norm(mu))
        if length == 0.0:
            return mu, 0.0
        return mu / length, self.smoothing * kappa + (1.0 - self.smoothing) * kappa_elite


def denormalize(direction: np.ndarray, frame: Frame, n_features: int) -> tuple[np.ndarray, float]:
    """Return the hyperplane of a direction, with a normal vector of length 1."""
    searched = direction[:-1] / frame.scale
    length = float(np.linalg.norm(searched))
    weights = np.zeros(n_features)
    weights[frame.features] = searched / length
    return weights, float(searched @ frame.location - direction[-1]) / length


def normalize(node: Node, normalization: str) -> tuple[np.ndarray, SortedRows, Frame]:
    """Return the normalized, sorted rows of a node over the features to be searched."""
    n, d = node.X.shape
    location, scale = np.empty(d), np.empty(d)
    kind = NORMALIZATIONS.index(normalization)
    column_frame(node.X, node.sample_weight, kind, location, scale)
    features = np.flatnonzero(scale)
    frame = Frame(features, location[features], scale[features])
    rows, order = sort_rows(node)
    Z = normalized_columns(node.X, order, *frame)
    if n > features.shape[0]:
        return Z, rows, frame
    scores = np.empty(d)
    search_features(node, scores, np.empty(d))
    ranking = np.argsort(scores[features], kind="stable")
    kept = independent_columns(Z, ranking)
    Z = Z[np.append(kept, features.shape[0])]
    return Z, rows, Frame(features[kept], frame.location[kept], frame.scale[kept])


def with_better_threshold(node: Node, split: Split) -> Split:
    """Return a split with the best threshold for its weights, or the split if it is no worse."""
    best = best_split_along(node, split.weights)
    return split if best is None or best.score > split.score else best
