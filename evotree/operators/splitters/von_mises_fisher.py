"""The von Mises-Fisher distribution on the unit sphere: samples and maximum likelihood.

Its density at a unit vector x of p dimensions is proportional to ``exp(kappa * mu @ x)``: the
directions scatter around the mean direction mu the less, the larger the concentration kappa. With
kappa = 0 all directions are equally likely. Samples are drawn as by Wood (1994); the estimate of
kappa is Banerjee's (Banerjee et al. 2005), refined by the Newton steps of Sra (2012).

`scipy.stats.vonmises_fisher` has the same two functions, for few dimensions: its samples take p**3
steps, two seconds for 500 of 785 features against a hundredth of one, and its estimate is NaN where
the Bessel functions underflow, and an error where the concentration is above 1e9.

References
----------
Wood A. T. A. (1994) Simulation of the von Mises Fisher distribution. Communications in Statistics -
Simulation and Computation 23(1).
Banerjee A., Dhillon I. S., Ghosh J., Sra S. (2005) Clustering on the unit hypersphere using von
Mises-Fisher distributions. Journal of Machine Learning Research 6.
Sra S. (2012) A short note on parameter approximation for von Mises-Fisher distributions. And a fast
implementation of I_s(x). Computational Statistics 27.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import ive

MAX_LENGTH = 1.0 - 1e-10
"""The mean resultant length counts as at most this, so that the concentration stays finite."""

_NEWTON_STEPS = 2
# Beyond, the denominator of a Newton step is nothing but rounding, and Banerjee's value is exact
# to six digits.
_NEWTON_LIMIT = 1e6


def sample(generator: np.random.Generator, mu: np.ndarray, kappa: float, n: int) -> np.ndarray:
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
    factors = lengths / np.linalg.norm(vectors, axis=1)
    return vectors * factors[:, None]


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
    if not min(above, below) >= np.finfo(np.float64).tiny:
        return math.nan
    return above / below


def concentration(length: float, p: int) -> float:
    """Return the maximum likelihood estimate of kappa: the root of ``A(kappa) = length``."""
    # Where the Bessel ratio cannot be had, which is where kappa is small beside p, and where kappa
    # is very large, it is Banerjee's approximation, exact to many digits there.
    length = min(length, MAX_LENGTH)
    banerjee = length * (p - length * length) / (1.0 - length * length)
    if not 0.0 < banerjee < _NEWTON_LIMIT:
        return max(0.0, banerjee)
    kappa = banerjee
    for _ in range(_NEWTON_STEPS):
        ratio = bessel_ratio(kappa, p)
        slope = 1.0 - ratio * ratio - (p - 1) / kappa * ratio
        if not slope > 0.0:
            return banerjee
        kappa -= (ratio - length) / slope
        if not 0.5 * banerjee < kappa < 2.0 * banerjee:
            return banerjee
    return kappa


def fit(directions: np.ndarray) -> tuple[np.ndarray, float]:
    """Return the maximum likelihood estimates of the mean direction and the concentration."""
    resultant = directions.sum(axis=0)
    length = float(np.linalg.norm(resultant))
    if length == 0.0:
        return resultant, 0.0
    return resultant / length, concentration(length / directions.shape[0], directions.shape[1])
