"""The von Mises-Fisher distribution: samples and estimates against SciPy's."""

import math

import numpy as np
import pytest
from scipy import stats

from evotree.operators.splitters.von_mises_fisher import concentration, fit, sample
from tests.reference import cross_entropy as naive


def direction(p, seed=0):
    mu = np.random.default_rng(seed).standard_normal(p)
    return mu / np.linalg.norm(mu)


def draw(n, mu, kappa, seed=0):
    return sample(np.random.default_rng([seed, 1]), mu, float(kappa), n)


@pytest.mark.parametrize("kappa", [0.0, 0.5, 600.0, 1e11])
@pytest.mark.parametrize("p", [2, 3, 785, "first axis"])
def test_samples_are_unit_vectors_around_the_mean_direction(p, kappa):
    mu = direction(p) if p != "first axis" else np.array([-1.0, 0.0, 0.0])
    p = len(mu)
    drawn = draw(2000, mu, kappa)
    np.testing.assert_allclose(np.linalg.norm(drawn, axis=1), 1.0, atol=1e-12)
    cosine = drawn @ mu
    length = naive.bessel_ratio(kappa, p) if 0.0 < kappa < 1e5 else float(kappa > 0.0)
    error = max(cosine.std() / math.sqrt(2000), 1e-9)
    assert abs(cosine.mean() - length) < 4.0 * error
    # What is orthogonal to the mean direction has no direction of its own.
    rest = drawn - cosine[:, None] * mu
    assert np.linalg.norm(rest.mean(axis=0)) < 4.0 * max(rest.std() * math.sqrt(p / 2000), 1e-12)


@pytest.mark.parametrize(("p", "kappa"), [(2, 3.0), (3, 1.0), (5, 20.0), (-12, 4.0)])
def test_cosines_are_distributed_as_those_of_scipy(p, kappa):
    sign, p = np.sign(p), abs(p)
    mu = direction(p)
    mu[0] = sign * abs(mu[0])
    theirs = stats.vonmises_fisher(mu, kappa).rvs(3000, random_state=0)
    drawn = draw(3000, mu, kappa)
    assert stats.ks_2samp(drawn @ mu, theirs @ mu).pvalue > 0.01
    other = direction(p, seed=5)
    assert stats.ks_2samp(drawn @ other, theirs @ other).pvalue > 0.01


@pytest.mark.parametrize("p", [2, 3, 19, 785])
@pytest.mark.parametrize("kappa", [1e-3, 0.7, 10.0, 90.0, 900.0, 2e4])
def test_concentration_inverts_the_mean_resultant_length(p, kappa):
    # Where the ratio underflows, for p = 785 and small kappa, Banerjee's value is as exact.
    assert concentration(naive.bessel_ratio(kappa, p), p) == pytest.approx(kappa, rel=2e-5)


@pytest.mark.parametrize("p", [2, 3, 19, 785])
def test_concentration_is_finite_at_the_ends(p):
    assert concentration(0.0, p) == 0.0
    values = [concentration(length, p) for length in (1e-300, 0.1, 0.5, 0.9, 1.0 - 1e-7, 1.0)]
    assert np.isfinite(values).all()
    assert values == sorted(values)
    assert values[-1] > 1e8


@pytest.mark.parametrize(("p", "kappa"), [(2, 2.0), (3, 40.0), (10, 7.0), (30, 300.0)])
def test_fit_is_that_of_scipy(p, kappa):
    drawn = draw(500, direction(p), kappa)
    mu, estimate = fit(drawn)
    their_mu, theirs = stats.vonmises_fisher.fit(drawn)
    np.testing.assert_allclose(mu, their_mu, atol=1e-12)
    assert estimate == pytest.approx(theirs, rel=1e-6)


def test_fit_of_directions_that_cancel_out_and_of_one():
    mu, kappa = fit(np.array([[1.0, 0.0, 0.0], [-1.0, 0.0, 0.0]]))
    assert not mu.any()
    assert kappa == 0.0
    mu, kappa = fit(np.array([[0.0, 1.0, 0.0]]))
    np.testing.assert_array_equal(mu, [0.0, 1.0, 0.0])
    assert 1e8 < kappa < np.inf
