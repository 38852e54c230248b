"""Linear classifiers of groups of classes, and the splits by them."""

import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from itertools import islice

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_iris, load_wine

from evotree.dataset import Dataset
from evotree.fitness.criteria import Criterion
from evotree.fitness.node import score_hyperplane
from evotree.operators.initialization.growth import grow
from evotree.operators.splitters.axis import best_axis_split
from evotree.operators.splitters.linear import (
    GROUPS,
    THRESHOLDS,
    Linear,
    one_vs_one,
    one_vs_rest,
    random_groups,
)
from evotree.operators.splitters.linear_fit import LOSSES, PENALTIES
from evotree.rng import make_streams
from tests.reference import smooth
from tests.reference.linear import loss_of_margins, violation
from tests.strategies import seeds

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


@pytest.mark.parametrize("model", MODELS)
def test_two_classes_are_parted_by_the_classifier_of_least_objective(model):
    X, y = wine(5)
    weight = np.random.default_rng(0).uniform(0.2, 2.0, len(y))
    split = Linear(*model, tol=1e-8)(smooth.make_node(X, y == 1, weight), stream())
    expected = minimum(X, np.where(y == 1, 1.0, -1.0), weight, *model)
    assert violation(expected, X, np.where(y == 1, 1.0, -1.0), weight, *model) < 1e-5
    expected /= np.linalg.norm(expected[:-1])
    np.testing.assert_allclose(split.weights, expected[:-1], atol=2e-3)
    assert split.threshold == pytest.approx(-expected[-1], abs=2e-3)


def test_split_moves_with_the_rows():
    X, y = load_iris(return_X_y=True)
    offset = np.array([3.0, -2.0, 10.0, 0.5])
    near, far = (Linear()(smooth.make_node(rows, y), stream()) for rows in (X, X + offset))
    np.testing.assert_allclose(near.weights, far.weights, atol=1e-6)
    assert far.threshold == pytest.approx(near.threshold + near.weights @ offset, abs=1e-5)


def test_the_other_penalty_makes_weights_zero():
    node = smooth.make_node(*smooth.separable(0, n_features_off=20))
    assert (Linear(C=0.1)(node, stream()).weights != 0.0).all()
    weights = Linear(penalty="l1", C=0.1)(node, stream()).weights
    assert (weights == 0.0).sum() > 10
    assert weights[:4].any()


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


def test_pairs_of_groups():
    present = np.array([0, 2, 3])
    np.testing.assert_array_equal(
        list(one_vs_one(present, 4)), [[1, 0, -1, 0], [1, 0, 0, -1], [0, 0, 1, -1]]
    )
    np.testing.assert_array_equal(
        np.array(list(one_vs_rest(present, 4)))[:, present], [[1, -1, -1], [-1, 1, -1], [-1, -1, 1]]
    )
    assert len(list(one_vs_rest(present[:2], 4))) == len(list(one_vs_one(present[:2], 4))) == 1
    assert len(random_groups(present[:2], 4, 10, stream())) == 1


@given(st.integers(3, 300), st.integers(1, 20), seeds)
def test_random_groups_are_two_groups(n_present, n_groups, seed):
    present = 2 * np.arange(n_present)
    sides = random_groups(present, 2 * n_present, n_groups, stream(seed))
    assert sides.shape == (n_groups, 2 * n_present)
    assert (np.sort(np.unique(sides[:, present])) == [-1, 1]).all()
    assert not sides[:, 1::2].any()
    for side in sides:
        assert (side == 1).any() and (side == -1).any()


splitters = st.builds(
    Linear,
    loss=st.sampled_from(LOSSES),
    penalty=st.sampled_from(PENALTIES),
    C=st.sampled_from((1e-3, 1.0, 1e6)),
    groups=st.sampled_from(GROUPS),
    threshold=st.sampled_from(THRESHOLDS),
    fallback=st.booleans(),
)


@settings(max_examples=200)
@given(
    st.sampled_from(("classification", "regression")).flatmap(
        lambda task: smooth.hostile_nodes(task=task)
    ),
    seeds,
    splitters,
)
def test_hostile_data_are_split(node, seed, splitter):
    before = [array.copy() for array in (node.X, node.y, node.sample_weight)]
    split = splitter(node, stream(seed))
    for array, copy in zip((node.X, node.y, node.sample_weight), before, strict=True):
        np.testing.assert_array_equal(array, copy)
    score, feature, _ = best_axis_split(node)
    if split is None:
        assert feature < 0 or not splitter.fallback
        return
    smooth.check_split(node, split)
    if node.X.shape[1] == 1:
        assert split.score == score
    again = splitter(node, stream(seed))
    assert again.threshold == split.threshold
    np.testing.assert_array_equal(again.weights, split.weights)


@pytest.mark.parametrize("model", MODELS)
def test_separable_classes_are_parted(model):
    for seed in range(5):
        node = smooth.make_node(*smooth.separable(seed))
        assert Linear(*model, C=1e3)(node, stream()).score == 0.0


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


def test_best_thresholds_score_no_worse():
    X, y = load_iris(return_X_y=True)
    for features in ([0, 1], [1, 2], [0, 3]):
        node = smooth.make_node(X[:, features], y)
        own = Linear()(node, stream()).score
        assert Linear(threshold="best")(node, stream()).score <= own


def test_order_of_rows_does_not_matter_beyond_rounding():
    X, y = load_wine(return_X_y=True)
    shuffled = np.random.default_rng(0).permutation(len(y))
    first = Linear()(smooth.make_node(X, y), stream())
    second = Linear()(smooth.make_node(X[shuffled], y[shuffled]), stream())
    np.testing.assert_allclose(first.weights, second.weights, atol=1e-4)


def test_weight_of_two_is_a_row_given_twice():
    X, y = load_iris(return_X_y=True)
    weight = np.where(np.arange(150) % 3 == 0, 2.0, 1.0)
    repeated = np.repeat(np.arange(150), weight.astype(int))
    for groups in GROUPS:
        first = Linear(groups=groups)(smooth.make_node(X, y, weight), stream())
        second = Linear(groups=groups)(smooth.make_node(X[repeated], y[repeated]), stream())
        np.testing.assert_allclose(first.weights, second.weights, atol=1e-6)


def test_threads_do_not_disturb_each_other():
    X, y = load_wine(return_X_y=True)
    nodes = [smooth.make_node(X[:, k : k + 4], y) for k in range(8)] * 4
    alone = [Linear(penalty="l1")(node, stream()) for node in nodes]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(lambda node: Linear(penalty="l1")(node, stream()), nodes))
    for first, second in zip(alone, together, strict=True):
        assert first.threshold == second.threshold
        np.testing.assert_array_equal(first.weights, second.weights)


def test_trees_are_accurate_and_small():
    """STree reaches 0.978 on wine with 3.4 leaves."""
    X, y = load_wine(return_X_y=True)
    train = np.random.default_rng(0).permutation(len(y))[:120]
    test = np.setdiff1d(np.arange(len(y)), train)
    dataset = Dataset.from_arrays(X[train], y[train], scaling="minmax")
    tree = grow(dataset, Linear(), "entropy", stream=stream())
    assert tree.n_leaves <= 6
    predicted = dataset.to_raw(tree.to_tree()).predict_value(X[test]).argmax(axis=1)
    assert np.mean(predicted == y[test]) > 0.9


@pytest.mark.parametrize(
    "parameters",
    [
        {"loss": "tree"},
        {"penalty": "l0"},
        {"groups": "both"},
        {"threshold": "own"},
        {"C": 0.0},
        {"tol": np.inf},
        {"n_groups": 0},
        {"max_iter": 0},
    ],
)
def test_parameters_are_checked(parameters):
    with pytest.raises(ValueError, match=f"{next(iter(parameters))}=.*allowed are"):
        Linear(**parameters)
