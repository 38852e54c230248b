"""A user's own measure of splits, beside the built-in ones written as such."""

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.datasets import load_iris

from evotree import ObliqueTreeClassifier
from evotree._jit import read_only
from evotree.fitness.node import score_hyperplane
from evotree.fitness.own_criterion import OwnCriterion
from evotree.operators.splitters.base import Axis
from evotree.operators.splitters.cross_entropy import CrossEntropy
from evotree.operators.splitters.linear import Linear
from evotree.operators.splitters.perturbation import OC1, Annealing, CartLC
from evotree.operators.splitters.wodt import WODT
from tests.reference import smooth
from tests.strategies import seeds, stream_of


def gini(left, right):
    """Return the Gini index of a split, by its definition."""
    total = 0.0
    for side in (left, right):
        if side.sum() > 0.0:
            total += side.sum() - (side * side).sum() / side.sum()
    return total / (left.sum() + right.sum())


def twoing(left, right):
    """Return minus the measure of Breiman et al."""
    n_left, n_right = left.sum(), right.sum()
    if n_left == 0.0 or n_right == 0.0:
        return 0.0
    distance = np.abs(left / n_left - right / n_right).sum()
    return -n_left * n_right / (n_left + n_right) ** 2 * distance**2


compiled_gini = numba.njit(gini)
MEASURES = {"gini": (gini, compiled_gini), "twoing": (twoing,)}
SPLITTERS = (
    *(Annealing(max_moves=200), Axis(), CartLC(), CartLC(standardized=False)),
    *(
        CrossEntropy(max_samples=25, max_iter=4),
        Linear(),
        OC1(n_restarts=2),
        WODT(max_iter=5),
    ),
)


@pytest.mark.parametrize("splitter", SPLITTERS, ids=str)
@pytest.mark.parametrize("name", MEASURES)
def test_a_built_in_measure_of_ones_own_gives_the_same_splits(splitter, name):
    """On classes that overlap: no search ends early at a split that parts all."""
    node = smooth.oblique_node(np.random.default_rng(0), name, n=60, d=3)
    rng = np.random.default_rng(1)
    noise = rng.random(60) < 0.3
    y = np.where(noise, rng.integers(0, node.n_classes, 60), node.y).astype(np.int32)
    node = node._replace(y=read_only(y))
    expected = splitter(node, stream_of())
    totals = np.bincount(y, node.sample_weight, node.n_classes)
    for measure in MEASURES[name]:
        own = OwnCriterion(measure, totals)
        split = splitter(node._replace(criterion=own.address), stream_of())
        own.raise_failure(split.score)
        np.testing.assert_allclose(split.weights, expected.weights, rtol=1e-9)
        assert split.score == pytest.approx(expected.score, abs=1e-12)


@settings(max_examples=20)
@given(seeds, st.sampled_from(sorted(MEASURES)))
def test_a_measure_gets_the_weights_of_all_classes_on_both_sides(seed, name):
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(30, 2)), rng.integers(0, 3, 30)
    node = smooth.make_node(X, y, rng.choice([0.5, 2.0], 30), n_classes=5)
    seen = []
    own = OwnCriterion(lambda *sides: seen.append(sides) or 0.5, np.ones(5))
    w = rng.normal(size=2)
    assert score_hyperplane(node._replace(criterion=own.address), w, 0.0) == 0.5
    goes_left = X @ w <= 0.0
    for side, rows in zip(seen[-1], (goes_left, ~goes_left), strict=True):
        weights = node.sample_weight[rows]
        np.testing.assert_allclose(side, np.bincount(node.y[rows], weights, 5))


def test_trees_grow_by_it():
    X, y = load_iris(return_X_y=True)
    named = ObliqueTreeClassifier("axis", criterion="gini").fit(X, y)
    own = clone(named).set_params(criterion=compiled_gini).fit(X, y)
    np.testing.assert_array_equal(named.tree_.weights, own.tree_.weights)
    np.testing.assert_array_equal(named.tree_.thresholds, own.tree_.thresholds)
    pruned = clone(own).set_params(ccp_alpha=0.02).fit(X, y)
    assert pruned.get_n_leaves() < own.get_n_leaves()


def fails_on_few(left, right):
    """Return nothing finite once a side is small."""
    return np.inf if 0 < right.sum() < 20 else 1.0


@numba.njit
def fails_compiled(left, right):
    """Raise an error once a side lacks a class."""
    if right.sum() > 0.0 and left[0] == 0.0:
        raise ZeroDivisionError
    return 1.0


@pytest.mark.parametrize(
    ("measure", "message"),
    [
        (lambda left, right: np.nan, "returned nan for the class weights"),
        (lambda left, right: "low", "returned 'low' for the class weights"),
        (fails_on_few, "returned inf .*: allowed are finite numbers"),
        (fails_compiled, "raised an error or returned no finite number"),
    ],
)
@pytest.mark.parametrize("splitter", ["axis", "oc1", "cross_entropy"])
def test_what_is_no_finite_number_is_refused(splitter, measure, message):
    model = ObliqueTreeClassifier(splitter, criterion=measure, random_state=0)
    with pytest.raises(ValueError, match=f"criterion=.*{message}"):
        model.fit(*load_iris(return_X_y=True))


def test_what_a_measure_raises_is_raised():
    def broken(left, right):
        return 1.0 if right.sum() == 0.0 else [][0]

    with pytest.raises(IndexError):
        ObliqueTreeClassifier("axis", criterion=broken).fit(*load_iris(return_X_y=True))
    with pytest.raises(ValueError, match="'criterion' parameter.*callable"):
        ObliqueTreeClassifier(criterion=3).fit(*load_iris(return_X_y=True))
