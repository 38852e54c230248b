"""Paths of widths: from dense splits down to splits on one feature."""

import numpy as np
import pytest
from sklearn.datasets import load_diabetes, load_wine
from sklearn.linear_model import LogisticRegression

from evotree.configuration import Cost
from evotree.dataset import Dataset
from evotree.engine.toolbox import make_toolbox
from evotree.fitness.base import PenalizedAccuracy
from evotree.fitness.objectives import as_objective
from evotree.operators.constraints import widest
from evotree.operators.initialization.population import (
    axis_trees,
    best_of_paths,
    linear_trees,
    path_trees,
    sparsity_path,
)
from evotree.operators.pruning import prune
from evotree.operators.structure.splice import make_individual
from evotree.operators.variation import distinct
from tests.strategies import assert_sound, stream_of


@pytest.fixture(scope="module", params=["wine", "diabetes"])
def dataset(request):
    load = load_diabetes if request.param == "diabetes" else load_wine
    X, y = load(return_X_y=True)
    task = "regression" if request.param == "diabetes" else "classification"
    return Dataset.from_arrays(X, y, task=task)


def test_a_path_goes_from_the_dense_tree_down_to_one_feature(dataset):
    path = sparsity_path(dataset, 0.002, stream_of(), term_penalty=0.001)
    widths = [widest(tree) for tree in path]
    assert widths[0] == dataset.X.shape[1] and widths[-1] <= 1
    assert widths == sorted(widths, reverse=True)
    for tree in path:
        assert_sound(tree, dataset)


def test_a_path_that_has_no_time_returns_one_tree(dataset):
    path = sparsity_path(dataset, 0.002, stream_of(), max_features=2, seconds=0.0)
    assert len(path) == 1 and widest(path[0]) <= 2


def test_axis_trees_look_at_one_feature_and_fit_well(dataset):
    trees = axis_trees(dataset, stream_of())
    assert all(widest(tree) == 1 for tree in trees)
    assert max(tree.quality for tree in trees) > (0.85 if dataset.n_classes else 0.7)
    assert path_trees(dataset, 0.0, 1, stream_of()) == trees


def test_linear_trees_begin_with_logistic_regressions():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 4)) * (1.0, 2.0, 5.0, 0.1)
    rows = Dataset.from_arrays(
        X, X @ (1.0, -1.0, 0.2, 3.0) + rng.normal(size=300) > 0.5
    )
    costs = 0.01, 3.0
    trees = linear_trees(rows, stream_of(), costs)
    for tree, cost in zip(trees, costs, strict=True):
        assert_sound(tree, rows)
        logistic = LogisticRegression(C=cost, tol=1e-8, max_iter=1000).fit(
            rows.X, 1 - rows.y
        )
        expected = np.append(logistic.coef_[0], -logistic.intercept_)
        found = np.append(tree.weights[0], tree.thresholds[0])
        length = np.linalg.norm(expected[:-1]) / np.linalg.norm(found[:-1])
        np.testing.assert_allclose(
            length * found, expected, atol=1e-2 * abs(expected).max()
        )
    assert path_trees(rows, 0.0, 2, stream_of(), C=costs) == trees


@pytest.mark.parametrize("number", range(3))
def test_where_features_cost_a_path_is_followed_again_without_the_dearest(number):
    X, y = load_wine(return_X_y=True)
    free = Dataset.from_arrays(X, y)
    price = np.where(np.arange(X.shape[1]) < 9, 0.001, 0.01)
    priced = free.evolved_for(as_objective(Cost(features=price), free))
    stream = stream_of(number)
    trees = path_trees(priced, 0.002, number, stream)
    for tree in trees:
        assert_sound(tree, priced)
    is_cheap = np.array([not tree.weights[:, 9:].any() for tree in trees])
    assert is_cheap.any() and not is_cheap.all()
    alike = free.evolved_for(as_objective(Cost(features=0.0 * price), free))
    fewer = path_trees(alike, 0.002, number, stream_of(number))
    assert len(fewer) < len(trees)


def test_the_best_of_paths_are_the_fittest_and_those_that_nothing_dominates(dataset):
    trees = [
        prune(tree, dataset, 0.001, 0.0005)[0]
        for number in range(4)
        for tree in path_trees(dataset, 0.002, number, stream_of(number))
    ]
    worth = PenalizedAccuracy(0.001, 0.0005)
    n = 8
    found = best_of_paths(trees, n, worth)
    assert len(found) == n and all(distinct(found))
    ranked = [tree for tree, new in zip(trees, distinct(trees), strict=True) if new]
    ranked.sort(key=worth, reverse=True)
    assert [worth(one) for one in found[: n // 2]] == [
        worth(one) for one in ranked[: n // 2]
    ]

    def is_dominated(tree):
        others = [one for one in ranked if one != tree]
        return any(
            a.quality >= tree.quality and a.complexity <= tree.complexity
            for a in others
        )

    if any(is_dominated(tree) for tree in found[n // 2 :]):
        assert all(is_dominated(tree) for tree in ranked if tree not in found)


def test_found_trees_join_the_population_pruned_for_its_rows(dataset):
    half = dataset.take(np.arange(0, dataset.X.shape[0], 2))
    found = path_trees(half, 0.002, 0, stream_of(5))
    parameters = {"size_penalty": 0.001, "term_penalty": 0.0003, "init": "widths"}
    toolbox = make_toolbox(dataset, found=found, random_state=0, **parameters)
    toolbox.unregister("path")  # those that are found come of paths
    population = toolbox.population(n=40)
    for one in population:
        assert_sound(one, dataset)
    routed = [make_individual(dataset, *one.splits) for one in found]
    pruned = [prune(one, dataset, 0.001, 0.0003)[0] for one in routed]
    assert sum(one in population for one in pruned) >= 2
    assert {one.origin for one in population} == {"widths", "dipole"}
    worth = PenalizedAccuracy(0.001, 0.0003)
    assert max(map(worth, population)) >= max(map(worth, pruned))
