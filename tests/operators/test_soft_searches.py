"""WODT: its entropy and gradient against the definition, and its descent."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import approx_fprime

from evotree.operators.splitters import wodt
from evotree.operators.splitters.base import scale_rows
from tests.reference import smooth
from tests.strategies import seeds


@st.composite
def hyperplanes(draw):
    """Draw scaled rows and a hyperplane."""
    rng = np.random.default_rng(draw(seeds))
    n, d, n_classes = (
        draw(st.integers(2, 30)),
        draw(st.integers(1, 5)),
        draw(st.integers(2, 5)),
    )
    X, y = rng.standard_normal((n, d)), rng.integers(0, n_classes, n)
    node = smooth.make_node(X, y, rng.uniform(0.1, 3.0, n), n_classes)
    scaled = scale_rows(node, rescale=True)
    theta = rng.standard_normal(d + 1) * draw(st.sampled_from((0.1, 1.0, 10.0)))
    return scaled, theta


def entropy_and_gradient(theta, scaled):
    p, n_present = theta.size, scaled.totals.size
    grad = np.empty(p)
    sums, sides = np.empty((n_present, p)), np.empty((2, n_present))
    return wodt.weighted_entropy(scaled, theta, grad, sums, sides), grad


@given(hyperplanes())
def test_entropy_and_gradient_are_those_of_the_definition(case):
    scaled, theta = case
    arrays = scaled.rows, scaled.codes, scaled.shares
    value, grad = entropy_and_gradient(theta, scaled)
    assert value == pytest.approx(smooth.weighted_entropy(theta, *arrays), abs=1e-12)
    numeric = approx_fprime(theta, lambda t: smooth.weighted_entropy(t, *arrays), 1e-6)
    np.testing.assert_allclose(grad, numeric, atol=2e-5)


@settings(max_examples=15)
@given(hyperplanes())
def test_a_search_ends_where_no_weight_gains(case):
    scaled, theta = case
    found = wodt.minimize_entropy(scaled, theta, max_iter=3000, tol=1e-11)
    value, grad = entropy_and_gradient(found, scaled)
    assert np.abs(grad[:-1]).max() <= 2e-3
    assert value <= entropy_and_gradient(theta, scaled)[0]
