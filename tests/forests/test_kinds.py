"""Which trees a forest has: its first trees decide, out of bag, whether all are axis-parallel."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import make_moons

from evotree import ObliqueForestClassifier
from evotree.dataset import Dataset
from evotree.forests.growing import N_PILOTS, Member, sums_out_of_bag
from evotree.tree import ObliqueTree


def slanted(n=600, seed=0):
    """Return rows whose classes are on the sides of a hyperplane of four features."""
    X = np.random.default_rng(seed).normal(size=(n, 4))
    return X, (X.sum(axis=1) > 0.0).astype(int)


def are_axis_parallel(trees):
    """Tell whether no split has more than one term."""
    return all((np.count_nonzero(tree.weights, axis=1) <= 1).all() for tree in trees)


def members_and_rows(seed):
    """Return stumps with random leaves and bags, and a data set of rows of random weights."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(25, 2))
    y = np.append([0, 1, 2], rng.integers(3, size=22))
    dataset = Dataset.from_arrays(X, y, rng.integers(1, 4, size=25).astype(float))
    members = []
    for _ in range(4):
        weights = np.zeros((3, 2))
        weights[0] = rng.normal(size=2)
        thresholds = np.array([rng.normal(), 0.0, 0.0])
        tree = ObliqueTree(
            weights, thresholds, np.array([3, 1, 1]), rng.dirichlet(np.ones(3), 3)
        )
        members.append(Member(tree, rng.integers(2, size=25)))
    return members, dataset


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


@settings(deadline=None, max_examples=50)
@given(st.integers(0, 10_000))
def test_sums_out_of_bag_are_those_of_the_trees_that_lack_a_row(seed):
    members, dataset = members_and_rows(seed)
    rows = np.arange(dataset.n_rows)
    sums, n_voters = sums_out_of_bag(members, dataset.raw, rows)
    others, n_others = sums_out_of_bag(members, dataset.raw, np.full_like(rows, -1))
    for i, row in enumerate(dataset.raw):
        said = [
            tree.predict_value(row[None])[0]
            for tree, n_times in members
            if n_times[i] == 0
        ]
        assert n_voters[i] == len(said) and n_others[i] == len(members)
        np.testing.assert_array_equal(sums[i], np.sum(said, axis=0) if said else 0.0)
        everyone = sum(tree.predict_value(row[None])[0] for tree, _ in members)
        np.testing.assert_allclose(others[i], everyone)
