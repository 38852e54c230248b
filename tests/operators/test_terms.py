"""Mutation of terms: one split, one change, the best threshold."""

import numpy as np
import pytest
from hypothesis import assume, given
from sklearn.datasets import load_wine

from evotree.dataset import Dataset
from evotree.operators.initialization.dipolar import init_dipolar
from evotree.operators.structure.reduced import leaf_table, reduced_problem
from evotree.operators.structure.splice import make_individual
from evotree.operators.variation.terms import changed_support, mut_either, mut_terms
from evotree.rng import as_generator, make_streams
from tests.reference import sparse as naive
from tests.strategies import any_populations, assert_sound, seeds


@pytest.fixture(scope="module")
def wine():
    return Dataset.from_arrays(*load_wine(return_X_y=True))


def problem_of(individual, dataset, k):
    predictions = leaf_table(individual, dataset.n_classes)
    stream = make_streams(0, 0, 1)[0]
    arrays = individual.weights, individual.thresholds
    return reduced_problem(individual, dataset, k, *arrays, predictions, stream)


@given(any_populations, seeds)
def test_at_most_one_split_changes_and_its_parts(drawn, seed):
    dataset, (parent, *_) = drawn
    child = parent.clone()
    child.stream = make_streams(seed, 1, 1)[0]
    (child,) = mut_terms(child, dataset)
    assert_sound(child, dataset)
    if len(child) == len(parent):  # otherwise rows left a part of the tree
        changed = (child.weights != parent.weights).any(axis=1)
        assert np.count_nonzero(changed) <= 1


@given(seeds)
def test_the_threshold_costs_least(wine, seed):
    parent = init_dipolar(wine, 0.0, make_streams(seed, 0, 1)[0], max_depth=2)
    child = parent.clone()
    child.stream = make_streams(seed, 1, 1)[0]
    (child,) = mut_terms(child, wine)
    assume(len(child) == len(parent))
    changed = np.flatnonzero((child.weights != parent.weights).any(axis=1))
    assume(changed.size == 1)
    (k,) = changed
    node = problem_of(parent, wine, int(k))
    s, goes_right = node.X @ child.weights[k], node.y == 1
    cost = naive.misrouted(s, goes_right, node.sample_weight, child.thresholds[k])
    assert cost == pytest.approx(naive.least_cost(s, goes_right, node.sample_weight), abs=1e-9)


def test_all_changes_happen(wine):
    tree = init_dipolar(wine, 0.0, make_streams(0, 0, 1)[0])
    node, rng = problem_of(tree, wine, 0), np.random.default_rng(0)
    support, weights = np.array([1, 4, 7, 9]), np.ones(13)
    seen = set()
    for _ in range(200):
        new = changed_support(support, node, weights, 5, rng)
        seen.add((len(set(support) - set(new)), len(set(new) - set(support))))
    assert seen == {(1, 0), (0, 1), (1, 1), (2, 0)}


def test_terms_that_do_not_pay_are_cut_with_their_split(wine):
    """At a price above any gain the tree becomes a leaf."""
    parent = init_dipolar(wine, 0.0, make_streams(0, 0, 1)[0])
    for seed in range(20):
        child = parent.clone()
        child.stream = make_streams(seed, 1, 1)[0]
        (child,) = mut_terms(child, wine, size_penalty=1.0)
        assert len(child) == 1 or child == parent


def test_a_leaf_stays_and_either_operator_is_called(wine):
    leaf = make_individual(wine, np.zeros((1, 13)), np.zeros(1), np.ones(1, dtype=np.int32))
    leaf.stream = make_streams(0, 0, 1)[0]
    assert mut_terms(leaf, wine) == (leaf,)
    called = [0, 0]

    def operator(which):
        def call(individual):
            called[which] += 1
            return (individual,)

        return call

    for stream in make_streams(1, 0, 1000):
        leaf.stream = stream
        mut_either(leaf, operator(0), operator(1), 0.3)
    assert called[1] / 1000 == pytest.approx(0.3, abs=0.05) and sum(called) == 1000
    before = leaf.stream.copy()
    mut_either(leaf, operator(0), operator(1), 0.0)
    assert leaf.stream == before and as_generator(leaf.stream)  # nothing is drawn
