"""Operators of the user's own in the estimators."""

import pytest
from sklearn.datasets import load_iris

from evotree import Evolution, EvoTreeClassifier, with_tree
from evotree.rng import as_generator

X, y = load_iris(return_X_y=True)


def shift(individual, dataset):
    noise = as_generator(individual.stream).normal(0.0, 0.5, len(individual))
    nodes = individual.weights, individual.thresholds + noise, individual.subtree_size
    return (with_tree(individual, dataset, *nodes),)


def widen(individual, dataset):
    rng = as_generator(individual.stream)
    noise = rng.normal(0.0, 0.1, individual.weights.shape)
    weights = individual.weights + noise * (individual.subtree_size > 1)[:, None]
    return (with_tree(individual, dataset, weights, *individual.splits[1:]),)


def swap(first, second, dataset):
    return second, first


def fitted(operators, **kwargs):
    evolution = Evolution(
        population_size=16, init=None, refinement=None, operators=operators
    )
    given = {"leaves": "constant", "max_generations": 10, "random_state": 0, **kwargs}
    return EvoTreeClassifier(evolution=evolution, **given).fit(X, y)


@pytest.mark.parametrize("role, operator", [("mutate", shift), ("mate", swap)])
def test_an_own_operator_takes_the_place_of_the_toolboxs(role, operator):
    calls = []

    def counted(*individuals, dataset):
        calls.append(dataset.X.shape[1])
        return operator(*individuals, dataset)

    own = fitted({role: counted})
    assert calls and set(calls) == {X.shape[1]}
    assert own.tree_ != fitted(None).tree_
    assert own.tree_ == fitted({role: operator}, n_jobs=2).tree_


def test_what_own_operators_make_keeps_the_constraints():
    tree = fitted({"mutate": widen}, max_split_terms=1, max_leaf_nodes=4).tree_
    assert ((tree.weights != 0.0).sum(axis=1) <= 1).all() and tree.n_leaves <= 4


@pytest.mark.parametrize("limits", [{}, {"max_leaf_nodes": 4}])
@pytest.mark.parametrize("returned", [None, (), (1,)])
def test_what_an_own_operator_returns_is_checked(returned, limits):
    def wrong(individual, dataset):
        return returned

    with pytest.raises(
        TypeError, match=r"mutate \(wrong\) returned .*allowed is a tuple of 1"
    ):
        fitted({"mutate": wrong}, **limits)
    with pytest.raises(TypeError, match="select returned .*allowed is a list of 15"):
        fitted({"select": lambda population, k: population}, **limits)


@pytest.mark.parametrize(
    ("operators", "message"),
    [
        ({"prune": shift}, "operators=.*allowed are callables for mate, mutate"),
        ({"mutate": "shift"}, "operators=.*allowed are callables for mate, mutate"),
        ({"evaluate": shift}, "operators=.*it takes an objective"),
    ],
)
def test_other_roles_are_refused(operators, message):
    with pytest.raises(ValueError, match=message):
        Evolution(operators=operators)
