"""The von Mises-Fisher distribution on the unit sphere: samples and maximum likelihood.

Its density at a unit vector x of p dimensions is proportional to ``exp(kappa * mu @ x)``: the
directions scatter around the mean direction mu the less, the larger the concentration kappa. With
kappa = 0 all directions are equally likely. Samples are drawn as by Wood (1994); the estimate of
kappa is Banerjee's (Banerjee et al. 2005), refined by the Newton steps of Sra (2012).

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

from evotree._jit import inner_kernel, kernel
from evotree.rng import normal, open_uniform

MAX_LENGTH = 1.0 - 1e-10
"""The mean resultant length counts as at most this, so that the concentration stays finite."""

_NEWTON_STEPS = 2
# Beyond, the denominator of a Newton step is nothing but rounding, and Banerjee's value is exact
# to six digits.
_NEWTON_LIMIT = 1e6


@kernel
def gamma(stream, shape):
    """Draw from the gamma distribution of scale 1 (Marsaglia and Tsang 2000).

    Parameters
    ----------
    stream : ndarray of shape (1,), uint64
        Random state, advanced.
    shape : float above 0
        Shape of the distribution, its mean.

    Returns
    -------
    float
        Above 0.
    """
    factor = 1.0
    if shape < 1.0:
        factor = open_uniform(stream) ** (1.0 / shape)
        shape += 1.0
    d = shape - 1.0 / 3.0
    c = 1.0 / math.sqrt(9.0 * d)
    while True:
        x = normal(stream)
        root = 1.0 + c * x
        if root > 0.0:
            v = root * root * root
            u = open_uniform(stream)
            # The first test, their squeeze, spares the logarithms nearly always.
            if u < 1.0 - 0.0331 * x * x * x * x:
                return factor * d * v
            if math.log(u) < 0.5 * x * x + d - d * v + d * math.log(v):
                return factor * d * v


@kernel
def beta(stream, a, b):
    """Draw from the beta distribution, as a gamma variate's share in the sum of two.

    Parameters
    ----------
    stream : ndarray of shape (1,), uint64
        Random state, advanced.
    a, b : float above 0
        Shapes.

    Returns
    -------
    float
        In [0, 1].
    """
    first = gamma(stream, a)
    return first / (first + gamma(stream, b))


@inner_kernel
def fill_normal(stream, out):
    """Fill an array with standard normal variates, in pairs by Marsaglia's polar method."""
    n = out.shape[0]
    i = 0
    while i < n:
        a = 2.0 * open_uniform(stream) - 1.0
        b = 2.0 * open_uniform(stream) - 1.0
        square = a * a + b * b
        if 0.0 < square < 1.0:
            factor = math.sqrt(-2.0 * math.log(square) / square)
            out[i] = a * factor
            if i + 1 < n:
                out[i + 1] = b * factor
            i += 2


@inner_kernel
def scale_to(out, lo, length):
    """Scale ``out[lo:]`` to a length, if it has one."""
    square = 0.0
    for i in range(lo, out.shape[0]):
        square += out[i] * out[i]
    factor = length / math.sqrt(square) if square > 0.0 else 0.0
    for i in range(lo, out.shape[0]):
        out[i] *= factor


@inner_kernel
def draw_cosine(stream, p, kappa, b, z):
    """Return ``(1 - omega, 1 + omega)`` of the cosine omega of a sample with the mean direction.

    Wood's steps 1 and 2, written in ``1 - omega = 2 b z / D``, ``D = 1 - (1 - b) z``, which does
    not cancel where kappa is large: the test of acceptance
    ``kappa omega + (p-1) ln(1 - x_0 omega) - c >= ln u`` becomes
    ``2 kappa b (1 - 2 z) / ((1 + b) D) + (p-1) ln((1 + b) / (2 D)) >= ln u``.
    The first of the beta variates z is given.
    """
    while True:
        denominator = 1.0 - (1.0 - b) * z
        tilt = 2.0 * kappa * b * (1.0 - 2.0 * z) / ((1.0 + b) * denominator)
        volume = (p - 1) * math.log((1.0 + b) / (2.0 * denominator))
        if tilt + volume >= math.log(open_uniform(stream)):
            below = 2.0 * b * z / denominator
            return below, 2.0 - below
        z = beta(stream, 0.5 * (p - 1), 0.5 * (p - 1))


@kernel
def sample(stream, mu, kappa, out):
    """Draw directions from a von Mises-Fisher distribution (Wood 1994, algorithm VM*).

    A sample is drawn around an axis of coordinates, in O(p), and carried over to the mean direction
    by a Householder reflection.

    Parameters
    ----------
    stream : ndarray of shape (1,), uint64
        Random state, advanced.
    mu : ndarray of shape (p,), p at least 2
        Mean direction, of length 1; of no effect if `kappa` is 0.
    kappa : float, at least 0, finite
        Concentration.
    out : ndarray of shape (n, p), float64
        Written: unit vectors, one a row.
    """
    p = out.shape[1]
    b = (p - 1) / (2.0 * kappa + math.sqrt(4.0 * kappa * kappa + (p - 1.0) * (p - 1.0)))
    # The reflection in the plane orthogonal to u = e_1 + sign mu takes e_1 to -sign mu; with this
    # sign u is no shorter than 1.
    sign = 1.0 if mu[0] >= 0.0 else -1.0
    u_square = 2.0 + 2.0 * sign * mu[0]
    for k in range(out.shape[0]):
        row = out[k]
        fill_normal(stream, row)
        scale_to(row, 0, 1.0)
        if kappa == 0.0:
            continue
        # The first coordinate of a uniform direction is distributed as 2 z - 1, and independent of
        # the direction of the others.
        below, above = draw_cosine(stream, p, kappa, b, 0.5 + 0.5 * row[0])
        scale_to(row, 1, math.sqrt(below * above))
        row[0] = sign * (below - 1.0)
        overlap = row[0]
        for i in range(p):
            overlap += sign * mu[i] * row[i]
        shift = 2.0 * overlap / u_square
        row[0] -= shift
        for i in range(p):
            row[i] -= shift * sign * mu[i]


def bessel_ratio(kappa: float, p: int) -> float:
    """Return the mean resultant length ``A(kappa) = I_{p/2}(kappa) / I_{p/2-1}(kappa)``.

    Parameters
    ----------
    kappa : float above 0
        Concentration.
    p : int, at least 2
        Dimensions.

    Returns
    -------
    float
        In (0, 1); NaN where the Bessel functions underflow, so that their ratio is lost.
    """
    above, below = float(ive(0.5 * p, kappa)), float(ive(0.5 * p - 1.0, kappa))
    if not min(above, below) >= np.finfo(np.float64).tiny:
        return math.nan
    return above / below


def concentration(length: float, p: int) -> float:
    """Return the maximum likelihood estimate of kappa: the root of ``A(kappa) = length``.

    Where the Bessel ratio cannot be had, which is where kappa is small beside p, and where kappa
    is very large, it is Banerjee's approximation, exact to many digits there.

    Parameters
    ----------
    length : float in [0, 1]
        Mean resultant length R of the sample; counts as at most `MAX_LENGTH`.
    p : int, at least 2
        Dimensions.

    Returns
    -------
    float
        At least 0, finite.
    """
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
    """Return the maximum likelihood estimates of the mean direction and the concentration.

    Parameters
    ----------
    directions : ndarray of shape (n, p), n at least 1, p at least 2
        Unit vectors.

    Returns
    -------
    mu : ndarray of shape (p,)
        Of length 1; all 0 where the directions cancel out.
    kappa : float, at least 0, finite
        Concentration.
    """
    resultant = directions.sum(axis=0)
    length = float(np.linalg.norm(resultant))
    if length == 0.0:
        return resultant, 0.0
    return resultant / length, concentration(length / directions.shape[0], directions.shape[1])
