"""Which trees a forest has: its first trees decide, out of bag, whether all are axis-parallel."""

import numpy as np
from sklearn.datasets import make_moons

from evotree import ObliqueForestClassifier
from evotree.forests.growing import N_PILOTS


def slanted(n=600, seed=0):
    """Return rows whose classes are on the sides of a hyperplane of four features."""
    X = np.random.default_rng(seed).normal(size=(n, 4))
    return X, (X.sum(axis=1) > 0.0).astype(int)


def are_axis_parallel(trees):
    """Tell whether no split has more than one term."""
    return all((np.count_nonzero(tree.weights, axis=1) <= 1).all() for tree in trees)


def test_most_trees_are_axis_parallel_where_these_vote_better():
    X = np.random.default_rng(0).uniform(size=(3000, 6))
    # The class counts the bands of three columns.
    X, y = (
        np.exp(6 * X),
        ((X[:, :3] * 4).astype(int) % 2).sum(axis=1) > 1,
    )
    forest = ObliqueForestClassifier(20, random_state=0).fit(X[:1500], y[:1500])
    assert sum(are_axis_parallel([tree]) for tree in forest.trees_) > 10
    assert forest.score(X[1500:], y[1500:]) > 0.9


def test_most_trees_are_oblique_elsewhere():
    for X, y in (slanted(), make_moons(400, noise=0.2, random_state=0)):
        forest = ObliqueForestClassifier(20, random_state=0).fit(X, y)
        assert sum(not are_axis_parallel([tree]) for tree in forest.trees_) > 10


def test_the_first_trees_of_a_larger_forest_are_those_of_a_smaller_one():
    X, y = slanted(200)
    few, more, many = (
        ObliqueForestClassifier(n, random_state=5).fit(X, y).trees_
        for n in (N_PILOTS - 1, N_PILOTS, N_PILOTS + 2)
    )
    # No tree is grown to choose the kind of few; those are the first of many, of one kind.
    assert len(few) == N_PILOTS - 1 and len(many) == N_PILOTS + 2
    assert more == many[:N_PILOTS] and few == more[:-1]
