"""Linear machines: their training against a naive twin, and their binary splits."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_wine

from evotree import ObliqueTreeClassifier
from evotree.dataset import Dataset
from evotree.fitness.criteria import Criterion
from evotree.fitness.node import Node
from evotree.operators.initialization.growth import grow
from evotree.operators.splitters.linear_machine import (
    Comparisons,
    LinearMachine,
    Machine,
    fit_machine,
    train_machine,
)
from evotree.rng import make_streams
from tests.reference import linear_machine as naive
from tests.strategies import seeds


def stream():
    """Return a new random state."""
    return make_streams(0, 0, 1)[0]


def node_of(X, y, n_classes):
    """Return a node of rows of weight 1."""
    X, y = np.ascontiguousarray(X, dtype=float), np.asarray(y, dtype=np.int32)
    return Node.of(X, y, np.ones(len(y)), n_classes, int(Criterion.ENTROPY), 1)


@settings(max_examples=25)
@given(seeds, st.integers(2, 4), st.sampled_from((1, 2, 6)))
def test_training_is_that_of_the_twin(seed, n_classes, most_passes):
    """For few passes: a row on the boundary goes by the last bit, and so does what follows."""
    rng = np.random.default_rng(seed)
    rows = np.column_stack([rng.normal(size=(20, 2)), np.ones(20)])
    y = rng.integers(0, n_classes, 20).astype(np.int32)
    functions = np.zeros((n_classes, 3))
    functions[np.setdiff1d(np.arange(n_classes), y), -1] = -np.inf
    weight, order = rng.choice([0.5, 1.0, 2.0], 20), rng.permutation(20)
    settings_ = (2.0, 1e-3, 0.99, 0.001, most_passes)
    expected = naive.train(rows, y, weight, order, functions, *settings_)
    if len(np.unique(y)) > 1:
        train_machine(rows, y, weight, order, functions, *settings_)
        np.testing.assert_allclose(functions, expected, rtol=1e-6, atol=1e-6)


@given(seeds, st.integers(2, 6))
def test_binary_splits_are_the_machine(seed, n_classes):
    """All rows of a leaf have one winner, and leaves of each class that wins are there."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(80, 3))
    machine = Machine(rng.normal(size=(n_classes, 3)), 0.3 * rng.normal(size=n_classes))
    winners = machine.values(X).argmax(axis=1)
    classes, codes = np.unique(winners, return_inverse=True)
    if len(classes) < 2:
        return
    dataset = Dataset.in_raw_units(X, codes, np.arange(len(classes)))
    part = Machine(machine.weights[classes], machine.intercepts[classes])
    grown = grow(dataset, Comparisons(part, LinearMachine()), stream=stream())
    assert grown.quality == 1.0
    np.testing.assert_array_equal(grown.to_tree().labels[grown.apply(X)], codes)


def test_features_are_eliminated_while_the_machine_stays_as_accurate():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 8))
    y = (X[:, 2] - X[:, 5] > 0.2).astype(int)
    few = fit_machine(node_of(X, y, 2), 0.02, stream())
    used = np.flatnonzero((few.weights != 0.0).any(axis=0))
    assert {2, 5} <= set(used) and len(used) < 5


def test_lmdt_is_accurate():
    X, y = load_wine(return_X_y=True)
    full = ObliqueTreeClassifier.from_preset("LMDT", pruning=None, random_state=0).fit(X, y)
    assert full.score(X, y) == 1.0
    pruned = ObliqueTreeClassifier.from_preset("LMDT", random_state=0).fit(X, y)
    assert pruned.score(X, y) > 0.93
    assert pruned.get_n_leaves() <= 2 * len(np.unique(y)) + 4
