"""Hyperplanes by gradient: linear classifiers, sparse splits, and WODT."""

import warnings
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import approx_fprime
from sklearn.datasets import load_wine

from evotree.fitness.node import Criterion, score_hyperplane
from evotree.operators.splitters import wodt
from evotree.operators.splitters.base import Axis, scale_rows
from evotree.operators.splitters.linear import (
    LOSSES,
    PENALTIES,
    WIDTHS,
    Linear,
    Sparse,
    start_at,
)
from tests.reference import smooth
from tests.reference import sparse as naive
from tests.reference.linear import objective, violation
from tests.strategies import seeds, stream_of

MODELS = list(product(LOSSES, PENALTIES))


def fit(X, signs, costs, loss, penalty, *, tol=1e-12, max_iter=1000, start=None):
    theta = np.zeros(X.shape[1] + 1) if start is None else start.copy()
    splitter = Linear(loss, penalty, tol=tol, max_iter=max_iter)
    value, n_iter = splitter.fit(X, signs, costs, theta)
    return theta, value, n_iter


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


@given(groups_of_rows(), st.sampled_from(MODELS))
def test_fits_meet_the_conditions_of_a_minimum(case, model):
    theta, value, _ = fit(*case, *model)
    assert value == pytest.approx(objective(theta, *case, *model), rel=1e-9)
    assert violation(theta, *case, *model) < 1e-4


@given(groups_of_rows(), st.sampled_from(MODELS), st.integers(1, 5), seeds)
def test_fits_never_end_above_their_start(case, model, max_iter, seed):
    start = np.random.default_rng(seed).standard_normal(case[0].shape[1] + 1)
    theta, value, n_iter = fit(*case, *model, max_iter=max_iter, start=start)
    assert value <= objective(start, *case, *model) * (1.0 + 1e-12)
    assert value == pytest.approx(objective(theta, *case, *model), rel=1e-9)
    assert n_iter <= max_iter


@given(
    smooth.hostile_nodes(), st.sampled_from(MODELS), st.sampled_from((1e-6, 1.0, 1e6))
)
def test_hostile_rows_are_fitted(node, model, C):
    signs = np.where(node.y > 0, 1.0, -1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        theta, value, _ = fit(
            node.X, signs, C * node.sample_weight, *model, tol=1e-4, max_iter=100
        )
        again = start_at(node.X, 1e150 * theta[:-1], 0.0)
        tiny = start_at(node.X, 1e-200 * theta[:-1], 0.0)
    assert np.isfinite(theta).all() and np.isfinite(value)
    assert np.isfinite(again).all() and np.isfinite(tiny).all()


def wine(n_features):
    X, y = load_wine(return_X_y=True)
    return ((X - X.mean(axis=0)) / X.std(axis=0))[:, :n_features].copy(), y


@pytest.mark.parametrize("groups", ["one_vs_rest", "one_vs_one"])
def test_split_is_the_best_of_the_classifiers(groups):
    X, y = wine(4)
    node = smooth.make_node(X, y)
    candidates = []
    for a in range(3):
        for b in range(a) if groups == "one_vs_one" else (a,):
            rows = (
                (y == a) | (y == b) if groups == "one_vs_one" else np.full(len(y), True)
            )
            signs = np.where(y[rows] == a, 1.0, -1.0)
            theta, *_ = fit(X[rows], signs, np.ones(len(signs)), "svm", "l2")
            score = score_hyperplane(node, theta[:-1].copy(), -theta[-1])
            candidates.append((score, theta[:-1]))
    score, w = min(candidates, key=lambda candidate: candidate[0])
    split = Linear(groups=groups, tol=1e-8)(node, stream_of())
    assert split.score == pytest.approx(score)
    assert abs(split.weights @ w) / np.linalg.norm(w) == pytest.approx(1.0, abs=1e-4)


@pytest.mark.parametrize("model", MODELS)
def test_refit_goes_on_from_a_hyperplane(model):
    """To the classifier of the two classes, in its own units, whatever the start."""
    X, y = wine(4)
    node = smooth.make_node(X, y == 1, n_classes=2)
    rows = X, np.where(y == 1, 1.0, -1.0), np.ones(len(y))
    theta, *_ = fit(*rows, *model)
    splitter = Linear(*model, tol=1e-12, max_iter=1000)
    for start in (theta[:-1], -theta[:-1], 1e-6 * np.ones(4), np.zeros(4)):
        split = splitter.refit(node, start, 0.1)
        found = np.append(split.weights, -split.threshold)
        assert violation(found, *rows, *model) < 1e-4


def test_targets_are_parted_at_their_mean():
    X, y = smooth.separable(0)
    node = smooth.make_node(
        X, np.where(y == 1, 5.0, -2.0), criterion=Criterion.SQUARED_ERROR
    )
    assert Linear(C=1e3)(node, stream_of()).score == pytest.approx(0.0, abs=1e-9)


def test_nodes_that_no_classifier_parts():
    """Points of a cross: the mean of each class is that of the other."""
    X = np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]] * 3)
    node = smooth.make_node(X, np.array([0, 0, 1, 1] * 3))
    assert Linear(fallback=False)(node, stream_of()) is None
    assert (
        Linear(fallback=True)(node, stream_of()).score
        == Axis()(node, stream_of()).score
    )


# ---- splits on few features ----------------------------------------------------------------------


def make_node(X, goes_right, cost):
    return smooth.make_node(X, goes_right.astype(int), cost, 2, Criterion.ERROR)


@st.composite
def sparse_problems(draw):
    """Draw two groups of rows: ties, constant columns, costs of any size."""
    rng = np.random.default_rng(draw(seeds))
    n, d = draw(st.integers(2, 150)), draw(st.integers(1, 6))
    grid = draw(st.sampled_from((2, 5, 1000)))
    X = rng.integers(0, grid, (n, d)).astype(float)
    if draw(st.booleans()):
        X[:, 0] = 3.0
    goes_right = rng.uniform(size=n) < draw(st.sampled_from((0.2, 0.5)))
    goes_right[0], goes_right[-1] = True, False
    cost = np.ones(n) if draw(st.booleans()) else rng.uniform(0.1, 5.0, n)
    start = rng.standard_normal(d) * (rng.uniform(size=d) < 0.7)
    return X, goes_right, cost, start


def width_of(split):
    return np.count_nonzero(split.weights)


def cost_of(split, X, goes_right, cost, term_cost=0.0):
    wrong = naive.misrouted(X @ split.weights, goes_right, cost, split.threshold)
    return wrong + term_cost * (width_of(split) - 1)


@given(
    sparse_problems(),
    st.sampled_from(WIDTHS),
    st.one_of(st.none(), st.integers(1, 3)),
    st.sampled_from((0.0, 0.3, 100.0)),
)
def test_a_split_costs_what_it_says_and_no_more_than_the_best_on_one_feature(
    problem, widths, max_features, term_cost
):
    X, goes_right, cost, start = problem
    splitter = Sparse(widths, max_features, term_cost)
    split = splitter.refit(make_node(X, goes_right, cost), start, 0.5)
    on_one = naive.least_axis_cost(X, goes_right, cost)
    if split is None:
        assert on_one == np.inf
        return
    assert 1 <= width_of(split) <= (max_features or X.shape[1])
    assert split.score <= on_one * (1 + 1e-9) + 1e-9
    assert split.score == pytest.approx(
        cost_of(split, X, goes_right, cost, term_cost), abs=1e-6
    )
    least = naive.least_cost(X @ split.weights, goes_right, cost)
    assert cost_of(split, X, goes_right, cost) == pytest.approx(least, abs=1e-6)


@given(sparse_problems(), st.sampled_from(("same", "fewer")))
def test_no_feature_comes_that_was_not_there_but_by_the_best_split_on_one(
    problem, widths
):
    X, goes_right, cost, start = problem
    split = Sparse(widths).refit(make_node(X, goes_right, cost), start, 0.5)
    if split is None or width_of(split) == 1 or not start.any():
        return
    before = np.flatnonzero(start)
    assert set(np.flatnonzero(split.weights)) <= set(before)
    if widths == "fewer":
        assert width_of(split) <= max(1, before.size - 1)


def test_terms_that_cost_more_than_they_save_leave():
    """The penalty decides between one feature that is nearly right and two that are."""
    X = np.random.default_rng(0).standard_normal((400, 8))
    goes_right = X[:, 2] + 0.3 * X[:, 5] > 0.0
    node = make_node(X, goes_right, np.ones(400))
    wrong = naive.least_cost(X[:, 2], goes_right, np.ones(400))
    for price, used in ((0.1 * wrong, {2, 5}), (2.0 * wrong, {2})):
        split = Sparse(term_cost=price, C=100.0).refit(node, np.ones(8), 0.0)
        assert set(np.flatnonzero(split.weights)) == used


def test_equal_thresholds_are_settled_in_the_widest_gap():
    X = np.array([[0.0], [1.0], [2.0], [6.0], [7.0], [8.0]])
    # The second row and the fifth are on the wrong side of any threshold between them.
    goes_right = np.array([False, True, False, True, False, True])
    split = Sparse("same").refit(make_node(X, goes_right, np.ones(6)), np.ones(1), 0.0)
    threshold = split.threshold / split.weights[0]
    assert threshold == pytest.approx(4.0)


# ---- WODT ----------------------------------------------------------------------------------------


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
