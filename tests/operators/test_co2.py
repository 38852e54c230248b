"""Splits by the continuous upper bound of CO2."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import approx_fprime
from sklearn.datasets import load_iris

from evotree.fitness.criteria import Criterion
from evotree.operators.splitters.axis import best_axis_split
from evotree.operators.splitters.co2 import CO2, bound_gradient, lower_bound
from evotree.operators.splitters.standardize import make_problem
from evotree.rng import below, make_streams
from tests.reference import smooth
from tests.strategies import seeds

QUICK = CO2(nus=(4.0, 43.0), rates=(0.03,), epochs=3)


def stream(seed=0):
    return make_streams(seed, 0, 1)[0]


@st.composite
def stumps(draw):
    """Draw a problem, a hyperplane and leaves."""
    rng = np.random.default_rng(draw(seeds))
    n, d, n_classes = draw(st.integers(2, 30)), draw(st.integers(1, 5)), draw(st.integers(2, 5))
    X, y = rng.standard_normal((n, d)), rng.integers(0, n_classes, n)
    node = smooth.make_node(X, y, rng.uniform(0.1, 3.0, n), n_classes)
    problem = make_problem(node.X, node.y, node.sample_weight, n_classes, True)
    theta = rng.standard_normal(d + 1) * draw(st.sampled_from((0.1, 1.0, 10.0)))
    leaves = rng.standard_normal((2, problem.totals.size)) * draw(st.sampled_from((0.1, 5.0)))
    return problem, theta, leaves


def bound_of(problem, theta, leaves, batch):
    grad, leaf_grad = np.empty_like(theta), np.empty_like(leaves)
    value = bound_gradient(
        problem.rows, problem.codes, problem.shares, batch, theta, leaves, grad, leaf_grad
    )
    return value, grad, leaf_grad


@given(stumps(), st.data())
def test_bound_and_gradient_agree_with_their_naive_twins(case, data):
    problem, theta, leaves = case
    n = len(problem.rows)
    batch = np.array(data.draw(st.lists(st.integers(0, n - 1), min_size=1)), dtype=np.int32)
    value, grad, leaf_grad = bound_of(problem, theta, leaves, batch)
    arrays = (problem.rows[batch], problem.codes[batch], problem.shares[batch])
    assert value == pytest.approx(smooth.upper_bound(theta, leaves, *arrays))
    expected, expected_leaves = smooth.bound_gradient(theta, leaves, *arrays)
    np.testing.assert_allclose(grad, expected, atol=1e-9)
    np.testing.assert_allclose(leaf_grad, expected_leaves, atol=1e-9)


@given(stumps())
def test_bound_is_above_the_loss_and_tight_for_long_vectors(case):
    problem, theta, leaves = case
    batch = np.arange(len(problem.rows), dtype=np.int32)
    arrays = (problem.rows, problem.codes, problem.shares)
    value, _, _ = bound_of(problem, theta, leaves, batch)
    assert value >= smooth.stump_loss(theta, leaves, *arrays) - 1e-9
    far = 1e9 * theta
    tight, _, _ = bound_of(problem, far, leaves, batch)
    assert tight == pytest.approx(smooth.stump_loss(far, leaves, *arrays), abs=1e-5)


@given(stumps())
def test_gradient_agrees_with_finite_differences(case):
    problem, theta, leaves = case
    batch = np.arange(len(problem.rows), dtype=np.int32)
    _, grad, leaf_grad = bound_of(problem, theta, leaves, batch)
    p = theta.size

    def value(v):
        return bound_of(problem, v[:p], v[p:].reshape(leaves.shape), batch)[0]

    here = np.concatenate([theta, leaves.ravel()])
    forward, backward = approx_fprime(here, value, 1e-7), approx_fprime(here, value, -1e-7)
    smoothly = np.abs(forward - backward) < 1e-5  # else there is a kink between the two
    analytic = np.concatenate([grad, leaf_grad.ravel()])
    np.testing.assert_allclose(forward[smoothly], analytic[smoothly], atol=1e-5)


@settings(max_examples=20)
@given(stumps(), seeds, st.integers(1, 40), st.sampled_from((0.5, 4.0)))
def test_descent_agrees_with_its_naive_twin(case, seed, batch_size, nu):
    problem, theta, leaves = case
    n = len(problem.rows)
    size = min(batch_size, n)
    n_batches = -(-n // size)
    random, order, batches = stream(seed), np.arange(n), []
    for step in range(max(2 * n_batches, 100)):
        at = step % n_batches
        if at == 0:
            for i in range(n - 1, 0, -1):
                j = below(random, i + 1)
                order[i], order[j] = order[j], order[i]
        batches.append(order[at * size : (at + 1) * size].copy())
    arrays = (problem.rows, problem.codes, problem.shares)
    # A row of two equal bounds would follow rounding: few steps stay comparable.
    expected, expected_leaves = smooth.descend_bound(theta, leaves, *arrays, batches, nu, 0.01, 0.9)
    lower_bound(problem, theta, leaves, nu, 0.01, 0.9, batch_size, 2, stream(seed))
    np.testing.assert_allclose(theta, expected, atol=1e-6)
    np.testing.assert_allclose(leaves, expected_leaves, atol=1e-6)
    assert theta @ theta <= nu * (1.0 + 1e-12)


def test_descent_lowers_the_bound():
    X, y = load_iris(return_X_y=True)
    node = smooth.make_node(X, y)
    problem = make_problem(node.X, node.y, node.sample_weight, 3, True)
    theta = 3.0 * np.random.default_rng(0).standard_normal(5)
    leaves = np.zeros((2, 3))
    batch = np.arange(150, dtype=np.int32)
    before, _, _ = bound_of(problem, theta, leaves, batch)
    lower_bound(problem, theta, leaves, 43.0, 0.01, 0.9, 10, 20, stream())
    after, _, _ = bound_of(problem, theta, leaves, batch)
    assert after < 0.7 * before


@settings(max_examples=60)
@given(
    smooth.hostile_nodes(),
    seeds,
    st.sampled_from((QUICK, CO2("random", nus=(10.0,), rates=(0.03,), epochs=1))),
)
def test_hostile_data_are_split(node, seed, splitter):
    split = splitter(node, stream(seed))
    score, feature, _ = best_axis_split(node)
    if split is None:
        assert feature < 0
        return
    smooth.check_split(node, split)
    if feature >= 0 and splitter.start == "axis":
        assert split.score <= score
    if node.X.shape[1] == 1:
        assert split.score == score
    again = splitter(node, stream(seed))
    assert again.threshold == split.threshold
    np.testing.assert_array_equal(again.weights, split.weights)


@pytest.mark.parametrize("start", ["axis", "random"])
def test_separable_classes_are_parted(start):
    for seed in range(5):
        node = smooth.make_node(*smooth.separable(seed))
        assert CO2(start)(node, stream(seed)).score == 0.0


def test_units_of_features_do_not_matter():
    X, y = load_iris(return_X_y=True)
    units = np.array([1e-8, 1.0, 1e3, 1e8])
    first = QUICK(smooth.make_node(X[:, :2], y), stream())
    second = QUICK(smooth.make_node(X[:, :2] * units[:2], y), stream())
    sides = X[:, :2] @ first.weights <= first.threshold
    np.testing.assert_array_equal(
        (X[:, :2] * units[:2]) @ second.weights <= second.threshold, sides
    )


def test_more_bounds_and_rates_find_no_worse_split():
    X, y = load_iris(return_X_y=True)
    node = smooth.make_node(X[50:, :2], y[50:] - 1)
    few = CO2("random", nus=(4.0,), rates=(0.01,))(node, stream())
    many = CO2("random", nus=(4.0, 43.0), rates=(0.01, 0.03))(node, stream())
    assert many.score <= few.score


def test_targets_are_refused():
    node = smooth.make_node(np.eye(3), np.arange(3.0), criterion=Criterion.SQUARED_ERROR)
    with pytest.raises(ValueError, match="'co2' is for classification.*squared_error.*entropy"):
        CO2()(node, stream())


@pytest.mark.parametrize(
    "parameters",
    [
        {"start": "zero"},
        {"nus": ()},
        {"nus": (1.0, 0.0)},
        {"rates": (np.inf,)},
        {"momentum": 1.0},
        {"batch_size": 0},
        {"epochs": 0},
    ],
)
def test_parameters_are_checked(parameters):
    with pytest.raises(ValueError, match=f"{next(iter(parameters))}=.*allowed are"):
        CO2(**parameters)
