"""Initialization, mutation of roles, crossover, pruning: what each does to the structure."""

import numpy as np
import pytest
from sklearn.datasets import load_iris

from evotree.dataset import Dataset
from evotree.operators.initialization.dipolar import init_dipolar
from evotree.operators.pruning.penalized import cheapest, prune
from evotree.operators.variation.crossover import cx_trees, draw_exchange
from evotree.operators.variation.mutation import mut_nodes, mutate_nodes
from evotree.rng import make_streams


@pytest.fixture(scope="module")
def iris():
    return Dataset.from_arrays(*load_iris(return_X_y=True))


def test_initial_individuals_differ_and_are_pruned(iris):
    population = [init_dipolar(iris, 0.005, stream) for stream in make_streams(0, 0, 30)]
    assert len({individual.weights.tobytes() for individual in population}) == 30
    charge = 0.005 * iris.total_weight
    for individual in population:
        risk, free = -individual.counts.max(axis=1), np.zeros(len(individual))
        assert not cheapest(risk, individual.subtree_size, charge, free).any()


def test_roots_change_tests_and_roles_in_the_stated_shares(iris):
    """Half of the changes are of the test, a quarter of each role."""
    parents = (init_dipolar(iris, 0.0, s) for s in make_streams(3, 0, 50))
    parent = next(p for p in parents if min(p.subtree_size[[p.left(0), p.right(0)]]) > 1)
    left, right = parent.weights[parent.left(0)], parent.weights[parent.right(0)]
    outcomes = {"leaf": 0, "left": 0, "right": 0, "test": 0}
    for stream in make_streams(1, 1, 2000):
        columns = iris.multiplicity, iris.spread
        weights, _, size, *_ = mutate_nodes(
            *iris.rows, *columns, *parent.nodes(), 0, stream, 0.0, 0.5, 5, 0
        )
        if len(size) == 1:
            outcomes["leaf"] += 1
        elif np.array_equal(weights[0], left):
            outcomes["left"] += 1
        elif np.array_equal(weights[0], right):
            outcomes["right"] += 1
        else:
            outcomes["test"] += 1
    # A changed test that parts nothing leaves a child in its place, too.
    expected = {"leaf": 0.25, "left": 0.125, "right": 0.125, "test": 0.5}
    for name, share in expected.items():
        assert outcomes[name] / 2000 == pytest.approx(share, abs=0.04), name


def test_leaves_split_unless_pure_or_small(iris):
    root = prune(init_dipolar(iris, 0.0, make_streams(3, 0, 1)[0]), iris, 1.0)[0]
    assert len(root) == 1
    for min_rows, size in ((5, 3), (1000, 1)):
        child = root.clone()
        child.stream = make_streams(4, 0, 1)[0]
        assert len(mut_nodes(child, iris, probability=1.0, min_rows=min_rows)[0]) == size


def test_mutation_probability_is_each_nodes_own(iris):
    parent = init_dipolar(iris, 0.0, make_streams(3, 0, 1)[0])
    unchanged = 0
    for stream in make_streams(2, 1, 3000):
        child = parent.clone()
        child.stream = stream
        unchanged += mut_nodes(child, iris, probability=0.1)[0].weights is parent.weights
    assert unchanged / 3000 == pytest.approx(0.9 ** len(parent), abs=0.03)


def test_exchange_of_subtrees_swaps_slices(iris):
    """Where all rows reach the exchanged node, the trees swap whole, and nothing is dropped."""
    first, second = (init_dipolar(iris, 0.0, s) for s in make_streams(6, 0, 2))
    seen = set()
    for stream in make_streams(7, 0, 400):
        a, b = first.clone(), second.clone()
        a.stream = stream.copy()
        i, j, cut = draw_exchange(
            stream, first.subtree_size, second.subtree_size, iris.X.shape[1], 0.5
        )
        cx_trees(a, b, iris)
        if cut == 0:
            assert len(a) <= len(first) - first.subtree_size[i] + second.subtree_size[j]
            assert len(b) <= len(second) - second.subtree_size[j] + first.subtree_size[i]
            if i == j == 0:
                assert a == second and b == first
        elif len(a) == len(first):
            mixed = np.append(first.weights[i, :cut], second.weights[j, cut:])
            np.testing.assert_array_equal(a.weights[i], mixed)
        np.testing.assert_array_equal(a.weights[:i], first.weights[:i])
        seen.add((cut > 0, i == 0, j == 0))
    assert len(seen) >= 6
