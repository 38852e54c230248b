"""The solver of linear classifiers: minima, starts, hostile rows."""

import warnings
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_wine
from sklearn.linear_model import LogisticRegression

from evotree.operators.splitters.linear_fit import LOSSES, PENALTIES, fit_linear, start_at
from tests.reference import smooth
from tests.reference.linear import objective, violation
from tests.strategies import seeds

MODELS = list(product(LOSSES, PENALTIES))


def fit(X, signs, costs, loss, penalty, *, tol=1e-12, max_iter=1000, start=None):
    theta = np.zeros(X.shape[1] + 1) if start is None else start.copy()
    value, n_iter = fit_linear(
        X, signs, costs, LOSSES.index(loss), PENALTIES.index(penalty), max_iter, tol, theta
    )
    return theta, value, n_iter


def wine(n_features=13):
    X, y = load_wine(return_X_y=True)
    X = ((X - X.mean(axis=0)) / X.std(axis=0))[:, :n_features].copy()
    costs = np.random.default_rng(0).uniform(0.2, 2.0, len(y))
    return X, np.where(y == 1, 1.0, -1.0), costs


@st.composite
def groups_of_rows(draw):
    """Draw two groups of rows: few or many features, constant ones, odd units and costs."""
    rng = np.random.default_rng(draw(seeds))
    n, d = draw(st.integers(2, 40)), draw(st.integers(1, 12))
    X = rng.standard_normal((n, d)) * 10.0 ** draw(st.integers(-2, 1))
    if draw(st.booleans()):
        X[:, 0] = draw(st.sampled_from((0.0, 3.0)))
    if draw(st.booleans()):
        X[n // 2 :] = X[: n - n // 2]
    signs = rng.choice([-1.0, 1.0], n)
    signs[0], signs[-1] = 1.0, -1.0
    return X, signs, rng.uniform(0.1, 1.0, n) * 10.0 ** draw(st.integers(-2, 2))


def test_logistic_regression_is_that_of_scikit_learn():
    X, signs, costs = wine()
    theta, value, _ = fit(X, signs, costs, "logistic", "l2")
    model = LogisticRegression(tol=1e-10, max_iter=10_000).fit(X, signs, costs)
    expected = np.append(model.coef_[0], model.intercept_)
    assert value == pytest.approx(objective(expected, X, signs, costs, "logistic", "l2"), rel=1e-8)
    np.testing.assert_allclose(theta, expected, atol=1e-4)


@given(groups_of_rows(), st.sampled_from(MODELS))
def test_fits_meet_the_conditions_of_a_minimum(case, model):
    theta, value, _ = fit(*case, *model)
    assert value == pytest.approx(objective(theta, *case, *model), rel=1e-9)
    assert violation(theta, *case, *model) < 1e-4


def test_rows_far_from_0_are_fitted_as_near_ones():
    """Their feature is the constant, to working precision."""
    X = 1e9 + np.arange(6.0)[:, None]
    near, _, _ = fit(X - 1e9, np.repeat([-1.0, 1.0], 3), np.ones(6), "logistic", "l2")
    far, _, _ = fit(X, np.repeat([-1.0, 1.0], 3), np.ones(6), "logistic", "l2")
    assert far[0] == pytest.approx(near[0], rel=1e-3)


@given(groups_of_rows(), st.sampled_from(MODELS), st.integers(0, 5), seeds)
def test_fits_never_end_above_their_start(case, model, max_iter, seed):
    start = np.random.default_rng(seed).standard_normal(case[0].shape[1] + 1)
    theta, value, n_iter = fit(*case, *model, max_iter=max_iter, start=start)
    assert value <= objective(start, *case, *model) * (1.0 + 1e-12)
    assert value == pytest.approx(objective(theta, *case, *model), rel=1e-9)
    assert n_iter <= max_iter


@given(groups_of_rows(), st.sampled_from(MODELS))
def test_a_fit_from_the_minimum_takes_a_step_at_most(case, model):
    theta, value, _ = fit(*case, *model)
    again, second, n_iter = fit(*case, *model, tol=1e-4, start=theta)
    assert n_iter <= 1
    assert second == pytest.approx(value, rel=1e-6)
    np.testing.assert_allclose(again, theta, atol=1e-3 * (1.0 + np.abs(theta).max()))


def test_the_other_penalty_makes_weights_exact_zeros():
    X, y = smooth.separable(0, n_features_off=20)
    signs, costs = np.where(y == 1, 1.0, -1.0), np.full(len(y), 0.1)
    for loss in LOSSES:
        assert (fit(X, signs, costs, loss, "l2")[0] != 0.0).all()
        theta, _, _ = fit(X, signs, costs, loss, "l1")
        assert (theta == 0.0).sum() > 10
        assert theta[:4].any()
        # From a start without zeros, too.
        start = np.ones(25)
        np.testing.assert_array_equal(
            fit(X, signs, costs, loss, "l1", start=start)[0] == 0.0, theta == 0.0
        )


@pytest.mark.parametrize("model", MODELS)
def test_the_constant_is_free(model):
    """Moved rows move the hyperplane and change nothing else; for LIBLINEAR they would."""
    X, signs, costs = wine(4)
    offset = np.array([5.0, -3.0, 2.0, 8.0])
    near, far = fit(X, signs, costs, *model), fit(X + offset, signs, costs, *model)
    assert near[1] == pytest.approx(far[1], rel=1e-6)
    np.testing.assert_allclose(near[0][:-1], far[0][:-1], atol=1e-3)
    assert far[0][-1] == pytest.approx(near[0][-1] - near[0][:-1] @ offset, abs=1e-2)


@given(smooth.hostile_nodes(), st.sampled_from(MODELS), st.sampled_from((1e-6, 1.0, 1e6)))
def test_hostile_rows_are_fitted(node, model, C):
    signs = np.where(node.y > 0, 1.0, -1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        theta, value, _ = fit(node.X, signs, C * node.sample_weight, *model, tol=1e-4, max_iter=100)
        again = start_at(node.X, 1e150 * theta[:-1], 0.0)
        tiny = start_at(node.X, 1e-200 * theta[:-1], 0.0)
    assert np.isfinite(theta).all() and np.isfinite(value)
    assert np.isfinite(again).all() and np.isfinite(tiny).all()


@pytest.mark.parametrize("model", MODELS)
def test_rows_of_one_group_lie_on_its_side(model):
    X, signs, costs = wine(4)
    theta, value, _ = fit(X, np.ones(len(X)), costs, *model, tol=1e-4, max_iter=100)
    assert value < 0.01 * objective(np.zeros(5), X, np.ones(len(X)), costs, *model)
    assert (X @ theta[:-1] + theta[-1] > 0.0).all()


def test_a_start_far_on_the_wrong_side_is_no_trap():
    """There the curvature is next to nothing, and the model promises far too much."""
    X, signs, costs = np.zeros((2, 1)), np.array([1.0, -1.0]), np.array([0.1, 0.8])
    best = fit(X, signs, costs, "logistic", "l2")[1]
    for b in (-40.0, -20.0, 4.4, 30.0):
        start = np.array([2.0, b])
        for penalty in PENALTIES:
            assert fit(X, signs, costs, "logistic", penalty, start=start)[1] == pytest.approx(best)
