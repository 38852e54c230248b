"""First trees: shares, greedy and optimized seeds, trees handed in, and who descends from them."""

import itertools
import math
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_wine
from sklearn.ensemble import RandomForestClassifier
from sklearn.tree import DecisionTreeClassifier, ExtraTreeClassifier

from evotree import (
    EvoTreeClassifier,
    ObliqueTreeClassifier,
    evolve,
    make_toolbox,
    to_frame,
)
from evotree.dataset import Dataset, bootstrap
from evotree.fitness.base import PenalizedAccuracy
from evotree.operators.initialization.growth import GrowthLimits, grow
from evotree.operators.initialization.population import (
    init_from_tree,
    init_seed,
    prune_weakest_links,
    raw_tree,
    slot_origins,
    split_init,
)
from evotree.operators.pruning import (
    prune,
)
from evotree.operators.splitters.registry import SPLITTERS, as_splitter
from evotree.tree import ObliqueTree
from tests.quick_models import evolved
from tests.strategies import (
    any_datasets,
    assert_sound,
    datasets,
    seeds,
    stream_of,
    with_random_zeros,
)


@pytest.fixture(scope="module")
def wine():
    return Dataset.from_arrays(*load_wine(return_X_y=True))


shares = st.dictionaries(
    st.sampled_from(sorted(SPLITTERS)), st.floats(0.0, 0.3), max_size=3
)


@given(
    shares | st.sampled_from((None, "axis", ("axis", "tao"), "widths")),
    st.integers(0, 200),
)
def test_slots_follow_the_shares(asked, n):
    full, _ = split_init(asked)
    assert sum(full.values()) == pytest.approx(1.0)
    if asked and not isinstance(asked, dict):  # a fifth each, but most for paths
        assert full.get("axis", 0.2) == 0.2 and full.get("widths", 0.8) == 0.8
    origins = slot_origins(n, full)
    assert len(origins) == n
    for name, share in full.items():
        assert abs(origins.count(name) - n * share) < 1.0 + 1e-6


@pytest.mark.parametrize(
    ("seeding", "message"),
    [
        ("forest", "'forest'.*'axis'"),
        (("axis", "forest"), "'forest'"),
        ({"axis": -0.1}, r"init\['axis'\]=-0.1"),
        ({"axis": 0.7, "linear": 0.6}, "add up to 1.3"),
        ({3: 0.5}, "init names 3"),
        ([3], "init holds 3"),
        ([DecisionTreeClassifier()], "init holds DecisionTreeClassifier"),
        ([RandomForestClassifier()], "init holds RandomForest"),
        ([ObliqueTreeClassifier("axis").fit(np.eye(3), [0, 1, 1])], "over 3 features"),
        (
            [DecisionTreeClassifier().fit(np.eye(13), np.arange(13))] * 3,
            "3 trees: at most 2",
        ),
    ],
)
def test_bad_shares_and_trees_are_named(wine, seeding, message):
    with pytest.raises(ValueError, match=message):
        evolved(EvoTreeClassifier, init=seeding, population_size=2).fit(
            wine.raw, wine.y
        )


@given(datasets(), seeds, st.integers(1, 80))
def test_bootstrap_draws_rows_by_weight(dataset, seed, max_rows):
    sample = bootstrap(dataset, np.random.default_rng(seed), max_rows)
    assert sample.sample_weight.sum() == min(max_rows, dataset.n_rows)
    assert (sample.sample_weight == sample.sample_weight.round()).all()
    known = {
        (*x, y) for x, y in zip(dataset.X.tolist(), dataset.y.tolist(), strict=True)
    }
    assert {
        (*x, y) for x, y in zip(sample.X.tolist(), sample.y.tolist(), strict=True)
    } <= known


def as_oblique_tree(model):
    """Return the tree of an estimator in our form, checked before any kernel sees it."""
    weights, thresholds, size = raw_tree(model)
    return ObliqueTree(weights, thresholds, size, np.zeros((len(size), 1))).validate()


def assert_same_leaves(ours, theirs):
    """Check that two ways to name the leaf of each row agree but for the names."""
    pairs = set(zip(ours.tolist(), theirs.tolist(), strict=True))
    assert len(pairs) == len({a for a, _ in pairs}) == len({b for _, b in pairs})


@pytest.mark.parametrize("kind", [DecisionTreeClassifier, ExtraTreeClassifier])
def test_rows_reach_the_leaves_that_they_reach_in_scikit_learn(wine, kind):
    X = wine.raw.astype(np.float32).astype(np.float64)  # as it compares them
    model = kind(max_leaf_nodes=12, random_state=0).fit(X, wine.y)
    assert_same_leaves(as_oblique_tree(model).apply(X), model.apply(X))
    individual = init_from_tree(Dataset.from_arrays(X, wine.y), 0.0, model)
    labels = individual.labels[individual.apply(wine.X)]
    np.testing.assert_array_equal(wine.classes[labels], model.predict(X))


def test_splits_of_missing_values_send_all_rows_to_one_side():
    X = np.random.default_rng(0).normal(size=(40, 2))
    y = (X[:, 0] > 0.0).astype(int)
    X[::2, 1], y[::2] = np.nan, 2
    model = DecisionTreeClassifier().fit(X, y)
    assert np.isinf(model.tree_.threshold).any()
    rows = X[1::2]
    assert_same_leaves(as_oblique_tree(model).apply(rows), model.apply(rows))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("subtree_size", [19, 14, 1, 1, 1]),
        ("subtree_size", [5.5, 3, 1, 1, 1]),
        ("thresholds", [0.0, np.nan, 0.0, 0.0, 0.0]),
        ("thresholds", [0.0, "x", 0.0, 0.0, 0.0]),
        ("weights", np.zeros(5)),
        ("values", np.zeros((3, 1))),
    ],
)
def test_trees_that_are_none_are_refused_before_rows_go_down(wine, name, value):
    arrays = {
        "weights": np.repeat([[1.0], [1.0], [0.0], [0.0], [0.0]], 13, axis=1),
        "thresholds": np.array([1000.0, 500.0, 0.0, 0.0, 0.0]),
        "subtree_size": np.array([5, 3, 1, 1, 1], dtype=np.int32),
        "values": np.zeros((5, 1)),
    }
    assert init_from_tree(wine, 0.0, ObliqueTree(**arrays)).n_nodes > 1
    arrays[name] = np.array(value)
    with pytest.raises(ValueError, match=f"init holds .*{name}"):
        init_from_tree(wine, 0.0, ObliqueTree(**arrays))


@pytest.mark.parametrize("make", ["axis", "linear", "tao"])
def test_seeds_end_with_their_time(monkeypatch, make):
    """Each look at the clock takes a second."""
    rng = np.random.default_rng(0)
    noise = Dataset.from_arrays(rng.normal(size=(300, 4)), rng.integers(0, 3, 300))
    ticks = itertools.count()
    monkeypatch.setattr(time, "perf_counter", lambda: float(next(ticks)))
    sizes = {}
    for seconds in (2.5, 4.5, math.inf):
        stream = stream_of(11)
        seed = init_seed(noise, 0.0, make, stream, min_rows=2, seconds=seconds)
        sizes[seconds] = seed.n_leaves
    assert sizes[2.5] <= 3 and sizes[4.5] <= 5 < sizes[math.inf]


def test_history_says_who_descends_from_whom(wine):
    start = ObliqueTreeClassifier("axis", max_depth=1).fit(wine.raw, wine.y)
    toolbox = make_toolbox(wine, init=["axis", start, start.tree_], random_state=0)
    population = toolbox.population(n=40)
    assert [individual.origin for individual in population[:2]] == ["initial"] * 2
    run = evolve(population, toolbox, max_generations=10)
    frame = to_frame(run.logbook)
    origins = frame[["origin_axis", "origin_dipole", "origin_initial"]]
    np.testing.assert_allclose(origins.sum(axis=1), 1.0)
    np.testing.assert_allclose(origins.iloc[0], [8 / 40, 30 / 40, 2 / 40], atol=0.026)
    counted = [individual.origin for individual in run.population].count("axis") / 40
    assert origins["origin_axis"].iloc[-1] == counted


@given(
    any_datasets,
    seeds,
    st.sampled_from((0.0, 0.001, 0.03, 0.2)),
    st.sampled_from((0.0, 0.01)),
)
def test_small_cuts_end_where_one_would(dataset, seed, size_penalty, term_penalty):
    """A tree of equal fitness at once and in steps, none larger than it has to be."""
    criterion = "entropy" if dataset.n_classes else "squared_error"
    splitter = as_splitter("linear" if term_penalty else "axis")
    tree = grow(dataset, splitter, criterion, GrowthLimits(8), stream=stream_of(seed))
    tree = with_random_zeros(tree, dataset, seed) if term_penalty else tree
    evaluate = PenalizedAccuracy(size_penalty, term_penalty)
    best = evaluate(prune(tree.clone(), dataset, size_penalty, term_penalty)[0])[0]
    while True:
        before = tree.clone()
        if not prune_weakest_links(tree, dataset, size_penalty, term_penalty):
            assert tree == before
            break
        assert_sound(tree, dataset)
        assert len(tree) < len(before)
        assert evaluate(tree)[0] >= evaluate(before)[0] - 1e-6
    assert evaluate(tree)[0] == pytest.approx(best, abs=1e-6)
