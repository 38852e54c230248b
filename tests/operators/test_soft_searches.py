"""CO2 and WODT: their bounds, entropies and gradients against naive twins, and their descents."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import approx_fprime, minimize

from evotree.operators.splitters import wodt
from evotree.operators.splitters.base import scale_rows
from evotree.operators.splitters.co2 import bound_gradient, lower_bound
from evotree.rng import below
from tests.reference import smooth
from tests.strategies import seeds, stream_of


@st.composite
def stumps(draw):
    """Draw scaled rows, a hyperplane and leaves."""
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
    leaves = rng.standard_normal((2, scaled.totals.size)) * draw(
        st.sampled_from((0.1, 5.0))
    )
    return scaled, theta, leaves


def bound_of(scaled, theta, leaves, batch=None):
    batch = np.arange(len(scaled.rows)) if batch is None else batch
    grad, leaf_grad = np.empty_like(theta), np.empty_like(leaves)
    rows = scaled.rows, scaled.codes, scaled.shares
    value = bound_gradient(
        *rows, batch.astype(np.int32), theta, leaves, grad, leaf_grad
    )
    return value, grad, leaf_grad


@given(stumps(), st.data())
def test_bound_and_gradient_agree_with_their_naive_twins(case, data):
    scaled, theta, leaves = case
    batch = np.array(
        data.draw(st.lists(st.integers(0, len(scaled.rows) - 1), min_size=1))
    )
    value, grad, leaf_grad = bound_of(scaled, theta, leaves, batch)
    arrays = (scaled.rows[batch], scaled.codes[batch], scaled.shares[batch])
    assert value == pytest.approx(smooth.upper_bound(theta, leaves, *arrays))
    assert value >= smooth.stump_loss(theta, leaves, *arrays) - 1e-9
    expected, expected_leaves = smooth.bound_gradient(theta, leaves, *arrays)
    np.testing.assert_allclose(grad, expected, atol=1e-9)
    np.testing.assert_allclose(leaf_grad, expected_leaves, atol=1e-9)
    far = 1e9 * theta  # the bound is tight for long vectors
    tight = smooth.stump_loss(far, leaves, *arrays)
    assert bound_of(scaled, far, leaves, batch)[0] == pytest.approx(tight, abs=1e-5)


@settings(max_examples=15)
@given(stumps(), seeds, st.integers(1, 40), st.sampled_from((0.5, 4.0)))
def test_descent_agrees_with_its_naive_twin(case, seed, batch_size, nu):
    scaled, theta, leaves = case
    n = len(scaled.rows)
    size = min(batch_size, n)
    n_batches = -(-n // size)
    random, order, batches = stream_of(seed), np.arange(n), []
    for step in range(max(2 * n_batches, 100)):
        k = step % n_batches
        if k == 0:
            for i in range(n - 1, 0, -1):
                j = below(random, i + 1)
                order[i], order[j] = order[j], order[i]
        batches.append(order[k * size : (k + 1) * size].copy())
    arrays = (scaled.rows, scaled.codes, scaled.shares)
    # A row of two equal bounds would follow rounding: few steps stay comparable.
    expected, expected_leaves = smooth.descend_bound(
        theta, leaves, *arrays, batches, nu, 0.01, 0.9
    )
    lower_bound(scaled, theta, leaves, nu, 0.01, 0.9, batch_size, 2, stream_of(seed))
    np.testing.assert_allclose(theta, expected, atol=1e-6)
    np.testing.assert_allclose(leaves, expected_leaves, atol=1e-6)
    assert theta @ theta <= nu * (1.0 + 1e-12)


def entropy_and_gradient(theta, scaled):
    p, n_present = theta.size, scaled.totals.size
    grad = np.empty(p)
    sums, sides = np.empty((n_present, p)), np.empty((2, n_present))
    return wodt.weighted_entropy(scaled, theta, grad, sums, sides), grad


@given(stumps())
def test_entropy_and_gradient_are_those_of_the_definition(case):
    scaled, theta, _ = case
    arrays = scaled.rows, scaled.codes, scaled.shares
    value, grad = entropy_and_gradient(theta, scaled)
    assert value == pytest.approx(smooth.weighted_entropy(theta, *arrays), abs=1e-12)
    numeric = approx_fprime(theta, lambda t: smooth.weighted_entropy(t, *arrays), 1e-6)
    np.testing.assert_allclose(grad, numeric, atol=2e-5)


@pytest.mark.parametrize("seed", range(4))
def test_search_ends_at_a_local_minimum(seed):
    """A second search from the result finds nothing lower."""
    rng = np.random.default_rng(seed)
    node = smooth.make_node(rng.standard_normal((80, 4)), rng.integers(0, 3, 80))
    scaled = scale_rows(node, rescale=True)
    theta = wodt.minimize_entropy(scaled, rng.uniform(-1.0, 1.0, 5), 1000, 1e-10)
    value, grad = entropy_and_gradient(theta, scaled)
    assert np.abs(grad).max() < 1e-2
    further = minimize(entropy_and_gradient, theta, (scaled,), "L-BFGS-B", jac=True)
    assert further.fun >= value - 1e-4


@settings(max_examples=15)
@given(stumps(), st.sampled_from((0.05, 0.2)))
def test_a_penalized_entropy_ends_where_no_weight_gains(case, l1):
    """The conditions of optimality: a weight of 0 stays there if its slope is below the price."""
    scaled, theta, _ = case
    found = wodt.minimize_entropy(scaled, theta, max_iter=3000, tol=1e-11, l1=l1)
    grad, weights = np.empty_like(found), found[:-1]
    room = np.empty((scaled.totals.size, len(found))), np.empty((2, scaled.totals.size))
    value = wodt.weighted_entropy(scaled, found, grad, *room)
    assert np.abs(grad[:-1]).max(initial=0.0) <= l1 + 2e-3
    used = weights != 0.0
    np.testing.assert_allclose(grad[:-1][used], -l1 * np.sign(weights[used]), atol=2e-3)
    start = wodt.weighted_entropy(scaled, theta, grad, *room)
    assert value + l1 * np.abs(weights).sum() <= start + l1 * np.abs(theta[:-1]).sum()


def test_the_penalty_makes_splits_sparse():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 8))
    node = smooth.make_node(X, (X[:, 2] + 0.2 * rng.normal(size=200) > 0.0).astype(int))
    widths = [
        np.count_nonzero(wodt.WODT(penalty="l1", C=C)(node, stream_of()).weights)
        for C in (10.0, 0.05)
    ]
    assert widths[0] > widths[1] == 1
