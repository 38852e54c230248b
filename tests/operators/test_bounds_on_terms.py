"""A bound on the number of terms of a split holds, whatever makes or changes a tree."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_wine

from evotree import EvoTreeClassifier, ObliqueTree
from evotree.dataset import Dataset
from evotree.engine.toolbox import feature_bound
from evotree.fitness.criteria import Criterion
from evotree.fitness.node import Node
from evotree.operators.initialization.dipolar import init_dipolar
from evotree.operators.initialization.seeding import ONE_BY_ONE, init_path, init_seed
from evotree.operators.splitters.bounded import Bounded
from evotree.operators.splitters.linear import Linear
from evotree.rng import make_streams
from tests.quick_models import evolved
from tests.strategies import OPERATORS, apply_operator, assert_sound, datasets, operators_for, seeds

bounds = st.integers(1, 3)


def widths(tree):
    return np.count_nonzero(tree.weights, axis=1)


@st.composite
def bounded_tasks(draw, names):
    """Draw rows of some features, a bound, trees that keep it, and an operator."""
    task = draw(st.sampled_from(("classification", "regression")))
    dataset, bound = draw(datasets(task=task)), draw(bounds)
    streams = make_streams(draw(seeds), 0, 2)
    parents = [init_dipolar(dataset, 0.0, one, max_width=bound) for one in streams]
    assert max(widths(one).max() for one in parents) <= bound
    return dataset, bound, parents, draw(st.sampled_from(operators_for(dataset, names)))


@settings(max_examples=40)
@given(bounded_tasks(OPERATORS), seeds)
def test_every_operator_keeps_the_bound(drawn, seed):
    dataset, bound, parents, name = drawn
    stream = make_streams(seed, 1, 1)[0]
    for child in apply_operator(name, *parents, dataset, stream, max_features=bound):
        assert_sound(child, dataset)
        assert widths(child).max() <= bound


@settings(max_examples=40)
@given(bounded_tasks(ONE_BY_ONE), seeds)
def test_every_seed_keeps_the_bound(drawn, seed):
    dataset, bound, _, name = drawn
    stream = make_streams(seed, 0, 1)[0]
    child = init_seed(dataset, 0.001, name, stream, max_features=bound)
    assert_sound(child, dataset)
    assert widths(child).max() <= bound


@settings(max_examples=20)
@given(datasets(), bounds, st.integers(0, 4), seeds)
def test_trees_of_paths_keep_the_bound(dataset, bound, number, seed):
    stream = make_streams(seed, 0, 1)[0]
    trees = init_path(dataset, 0.001, number, stream, term_penalty=0.001, max_features=bound)
    assert trees
    for tree in trees:
        assert_sound(tree, dataset)
        assert widths(tree).max() <= bound


@pytest.mark.parametrize("bound", [1, 0.2])
def test_a_whole_search_keeps_the_bound(bound):
    X, y = load_wine(return_X_y=True)
    parameters = {"max_split_terms": bound, "max_generations": 10, "random_state": 0}
    model = evolved(EvoTreeClassifier, **parameters).fit(X, y)
    allowed = feature_bound(bound, X.shape[1])
    for tree in [model.tree_, *model.pareto_front_, *model.hall_of_fame_]:
        assert widths(tree).max() <= allowed
    assert model.score(X, y) > 0.9


def test_trees_that_are_too_wide_are_refused():
    tree = ObliqueTree(
        weights=np.array([[1.0, 2.0, 3.0], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]]),
        thresholds=np.array([0.5, 0.0, 0.0]),
        subtree_size=np.array([3, 1, 1], dtype=np.int32),
        values=np.array([[0.5, 0.5], [1.0, 0.0], [0.0, 1.0]]),
    )
    rng = np.random.default_rng(0)
    X, y = rng.uniform(size=(50, 3)), rng.integers(0, 2, 50)
    model = evolved(EvoTreeClassifier, init=tree, max_split_terms=2)
    with pytest.raises(ValueError, match="3 terms: max_split_terms allows 2"):
        model.fit(X, y)


@pytest.mark.parametrize(
    ("given_", "n_features", "expected"),
    [
        (None, 9, None),
        (1, 9, 1),
        (9, 9, None),
        (12, 9, None),
        (0.5, 9, 4),
        (0.01, 9, 1),
        (1.0, 9, None),
    ],
)
def test_a_bound_may_be_a_share_of_the_features(given_, n_features, expected):
    assert feature_bound(given_, n_features) == expected


def test_a_bounded_splitter_keeps_what_tells_most():
    """Among noise the one feature that matters stays."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 5)) * [1.0, 1.0, 100.0, 1.0, 1.0]
    y = (X[:, 3] > 0.0).astype(int)
    dataset = Dataset.from_arrays(X, y, scaling="common")
    node = Node.of(dataset.X, dataset.y, dataset.sample_weight, 2, int(Criterion.ERROR), 1)
    split = Bounded(Linear(), 1)(node, make_streams(0, 0, 1)[0])
    assert np.flatnonzero(split.weights).tolist() == [3]
    assert split.score == 0.0  # the threshold is the best for what is left
