"""Linear classifiers of groups of classes, and the splits by them."""

import tracemalloc
from itertools import islice

import numpy as np
import pytest
from sklearn.datasets import load_wine

from evotree.fitness.criteria import Criterion
from evotree.fitness.node import score_hyperplane
from evotree.operators.splitters.axis import best_axis_split
from evotree.operators.splitters.linear import (
    Linear,
)
from evotree.operators.splitters.linear_fit import LOSSES, PENALTIES
from evotree.rng import make_streams
from tests.reference import smooth
from tests.reference.linear import loss_of_margins

MODELS = [(loss, penalty) for loss in LOSSES for penalty in PENALTIES]


def stream(seed=0):
    return make_streams(seed, 0, 1)[0]


def wine(n_features):
    X, y = load_wine(return_X_y=True)
    return ((X - X.mean(axis=0)) / X.std(axis=0))[:, :n_features].copy(), y


def minimum(X, signs, costs, loss, penalty):
    """Return the classifier by many short gradient steps of proximal descent, to a minimum."""
    rows = np.column_stack([X, np.ones(len(X))])
    step = 1.0 / (2.0 * costs.max() * np.linalg.norm(rows, 2) ** 2 + 1.0)
    theta = before = np.zeros(rows.shape[1])
    for k in range(20_000):
        ahead = theta + k / (k + 3.0) * (theta - before)
        _, slopes = loss_of_margins(signs * (rows @ ahead), loss)
        before, moved = theta, ahead - step * (rows.T @ (costs * slopes * signs))
        w = moved[:-1]
        if penalty == "l2":
            w = w / (1.0 + step)
        else:
            w = np.sign(w) * np.maximum(0.0, np.abs(w) - step)
        theta = np.append(w, moved[-1])
    return theta


@pytest.mark.parametrize("groups", ["one_vs_rest", "one_vs_one"])
def test_split_is_the_best_of_the_classifiers(groups):
    X, y = wine(4)
    node = smooth.make_node(X, y)
    candidates = []
    for a in range(3):
        for b in range(a) if groups == "one_vs_one" else (a,):
            rows = (y == a) | (y == b) if groups == "one_vs_one" else np.full(len(y), True)
            signs = np.where(y[rows] == a, 1.0, -1.0)
            theta = minimum(X[rows], signs, np.ones(len(signs)), "svm", "l2")
            score = score_hyperplane(node, theta[:-1].copy(), -theta[-1])
            candidates.append((score, theta[:-1]))
    score, w = min(candidates, key=lambda candidate: candidate[0])
    split = Linear(groups=groups, tol=1e-8)(node, stream())
    assert split.score == pytest.approx(score)
    assert abs(split.weights @ w) / np.linalg.norm(w) == pytest.approx(1.0, abs=1e-4)


@pytest.mark.parametrize("groups", ["one_vs_rest", "one_vs_one", "all"])
def test_memory_does_not_grow_with_the_pairs_of_classes(groups):
    y = np.arange(5000)
    node = smooth.make_node(np.ones((5000, 2)), y)
    tracemalloc.start()
    try:
        _, pairs = Linear(groups=groups)._pairs(node, stream())
        sides = [*islice(pairs, 3)]
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert len(sides) == 3 and peak < 4_000_000


@pytest.mark.parametrize("model", MODELS)
def test_refit_goes_on_from_a_hyperplane(model):
    """To the classifier of the two classes, in its own units, whatever the start."""
    X, y = wine(4)
    node = smooth.make_node(X, y == 1, n_classes=2)
    theta = minimum(X, np.where(y == 1, 1.0, -1.0), np.ones(len(y)), *model)
    splitter = Linear(*model, tol=1e-8)
    for start in (theta[:-1], -theta[:-1], 1e-6 * np.ones(4), np.zeros(4)):
        split = splitter.refit(node, start, 0.1)
        np.testing.assert_allclose(split.weights, theta[:-1], atol=5e-3)
        assert split.threshold == pytest.approx(-theta[-1], abs=5e-3)


def test_targets_are_parted_at_their_mean():
    X, y = smooth.separable(0)
    node = smooth.make_node(X, np.where(y == 1, 5.0, -2.0), criterion=Criterion.SQUARED_ERROR)
    assert Linear(C=1e3)(node, stream()).score == pytest.approx(0.0, abs=1e-9)


def test_nodes_that_no_classifier_parts():
    """Points of a cross: the mean of each class is that of the other."""
    X = np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]] * 3)
    node = smooth.make_node(X, np.array([0, 0, 1, 1] * 3))
    assert Linear(fallback=False)(node, stream()) is None
    assert Linear(fallback=True)(node, stream()).score == best_axis_split(node)[0]
