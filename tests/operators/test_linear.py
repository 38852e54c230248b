"""Linear classifiers of groups of classes: the solver's minima, and the splits by them."""

import warnings
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_wine

from evotree.fitness.node import Criterion, score_hyperplane
from evotree.operators.splitters.base import Axis
from evotree.operators.splitters.linear import (
    LOSSES,
    PENALTIES,
    Linear,
    start_at,
)
from tests.reference import smooth
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
