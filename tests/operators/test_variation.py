"""Mutation and crossover: what holds of every operator, and what each does to the structure."""

import operator

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from sklearn.datasets import load_wine

from evotree.dataset import Dataset
from evotree.engine.config import Variation
from evotree.engine.toolbox import make_toolbox
from evotree.fitness.base import leaf_table
from evotree.operators.initialization.growth import init_dipolar
from evotree.operators.initialization.population import ONE_BY_ONE, init_seed
from evotree.operators.refinement import reduced_problem
from evotree.operators.structure.splice import checked_arrays, make_individual
from evotree.operators.variation import (
    cx_trees,
    draw_exchange,
    mut_nodes,
    mut_terms,
    mutate_nodes,
)
from evotree.rng import make_streams, uniform
from evotree.tree import set_fitness
from tests.reference import naive, sparse
from tests.strategies import (
    any_datasets,
    any_populations,
    apply_operator,
    assert_sound,
    seeds,
    stream_of,
    tasks,
)


@given(tasks(max_size=8), seeds)
def test_any_sequence_keeps_trees_sound(drawn, seed):
    dataset, individuals, names = drawn
    for generation, name in enumerate(names):
        stream = make_streams(seed, generation, 1)[0]
        children = apply_operator(name, *individuals[:2], dataset, stream)
        for child in children:
            assert_sound(child, dataset)
        individuals = [*children, *individuals][:3]


@given(tasks(), seeds)
def test_a_child_is_routed_repeatable_and_its_parents_untouched(drawn, seed):
    dataset, individuals, (name,) = drawn
    parents = individuals[:2]
    for individual in parents:
        individual.fitness.values = (1.0,)
    before = [[array.copy() for array in parent.nodes()] for parent in parents]
    children, again = (
        apply_operator(name, *parents, dataset, make_streams(seed, 1, 1)[0])
        for _ in range(2)
    )
    assert all(map(operator.eq, children, again))
    for parent, arrays in zip(parents, before, strict=True):
        assert parent.fitness.values == (1.0,)
        assert all(map(np.array_equal, parent.nodes(), arrays))
    for child, parent in zip(children, parents, strict=False):
        same = all(a is b for a, b in zip(child.nodes(), parent.nodes(), strict=True))
        assert child.fitness.valid == same
    child = children[0]
    for k in np.flatnonzero(child.subtree_size == 1):
        for row in naive.rows_of(k, child):
            distance = child.weights @ dataset.X[row] - child.thresholds
            if np.abs(distance[child.subtree_size > 1]).min(initial=np.inf) > 1e-9:
                assert naive.leaf_of(dataset.X[row], child) == k
    assert child.quality == pytest.approx(naive.quality(dataset, child), abs=1e-12)
    assert (child.end > child.start).all()


@given(tasks(names=ONE_BY_ONE), seeds)
def test_seeds_are_sound_and_follow_from_their_stream(drawn, seed):
    dataset, _, (name,) = drawn
    twins = [init_seed(dataset, 0.01, name, stream_of(seed)) for _ in range(2)]
    assert_sound(twins[0], dataset)
    assert twins[0] == twins[1]


def test_mutation_probability_is_each_nodes_own(iris):
    parent = init_dipolar(iris, 0.0, stream_of(3))
    unchanged = 0
    for stream in make_streams(2, 1, 3000):
        child = parent.clone()
        child.stream = stream
        unchanged += (
            mut_nodes(child, iris, probability=0.1)[0].weights is parent.weights
        )
    assert unchanged / 3000 == pytest.approx(0.9 ** len(parent), abs=0.03)


def everywhere_centred(individual, dataset):
    internal = np.flatnonzero(individual.subtree_size > 1)
    return all(naive.is_centred(dataset, individual, k) for k in internal)


PUBLISHED = Variation(published_operators=True, term_mutation_probability=0.0)


@given(any_datasets, st.sampled_from((None, "tao", "axis")), seeds)
def test_whatever_changes_a_published_tree_leaves_every_split_centred(
    dataset, refiner, seed
):
    toolbox = make_toolbox(
        dataset,
        size_penalty=0.0,
        variation=PUBLISHED,
        init=None if refiner is None else {refiner: 0.3},
        refinement=refiner,
        random_state=seed,
    )
    trees = toolbox.population(n=6)
    for generation in (1, 2):
        children = [tree.clone() for tree in trees]
        for child, stream in zip(children, toolbox.streams(generation, 6), strict=True):
            child.stream = stream
        children = [toolbox.mutate(child)[0] for child in children]
        for a, b in zip(children[::2], children[1::2], strict=True):
            toolbox.mate(a, b)
        if refiner is not None:
            for child in children:
                set_fitness(child, toolbox.evaluate(child))
                toolbox.refine(child)
        for tree in trees + children:
            assert_sound(tree, dataset)
            assert everywhere_centred(tree, dataset)
        trees = children


@pytest.mark.parametrize(("published", "share"), [(True, 0.5), (False, 0.25)])
def test_a_root_that_mutates_becomes_a_leaf(iris, published, share):
    """In half of the draws as published, else in a quarter: children take the other quarter."""
    grown = (init_dipolar(iris, 0.0, stream_of(seed)) for seed in range(100))
    parent = next(
        tree for tree in grown if min(tree.subtree_size[[1, tree.right(0)]]) > 1
    )
    n_leaves = 0
    for stream in make_streams(8, 0, 2000):
        child = parent.clone()
        child.stream = stream
        mutated = mutate_nodes(
            *iris.rows[:3],
            iris.multiplicity,
            iris.spread,
            *parent.nodes(),
            0,
            stream,
            1e-9,
            0.5,
            5,
            0,
            1.0 if published else 0.5,
        )
        n_leaves += len(mutated[2]) == 1
    assert n_leaves / 2000 == pytest.approx(share, abs=0.05)


@given(any_populations, seeds, st.booleans())
def test_crossover_exchanges_splits_or_subtrees(drawn, seed, published):
    """As the paper says, what is below exchanged nodes may stay; else it goes with leaves alone."""
    dataset, (first, second, *_) = drawn
    n_features = dataset.X.shape[1]
    for stream in make_streams(seed, 1, 4):
        children = first.clone(), second.clone()
        children[0].stream = stream.copy()
        sizes = first.subtree_size, second.subtree_size
        a, b, cut = draw_exchange(stream, *sizes, n_features, 1.0 if published else 0.5)
        moves_subtrees = uniform(stream) >= 0.5 if published else cut == 0
        cx_trees(*children, dataset, published=published)
        parts = (first, a, second, b), (second, b, first, a)
        for child, (mine, i, other, j) in zip(children, parts, strict=True):
            node = naive.crossed(mine.splits, i, other.splits, j, cut, moves_subtrees)
            tree = naive.flat(naive.with_node(mine.splits, i, node), n_features)
            wanted = make_individual(dataset, *checked_arrays(*tree))
            assert_sound(child, dataset)
            # Thresholds are centred, by the one or the other of equally near rows.
            for part in ("weights", "subtree_size", "order"):
                one, other = getattr(child, part), getattr(wanted, part)
                np.testing.assert_array_equal(one, other)


@pytest.fixture(scope="module")
def wine():
    return Dataset.from_arrays(*load_wine(return_X_y=True))


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
    parent = init_dipolar(wine, 0.0, stream_of(seed), max_depth=2)
    child = parent.clone()
    child.stream = make_streams(seed, 1, 1)[0]
    (child,) = mut_terms(child, wine)
    assume(len(child) == len(parent))
    changed = np.flatnonzero((child.weights != parent.weights).any(axis=1))
    assume(changed.size == 1)
    (k,) = changed
    table, stream = leaf_table(parent, wine.n_classes), stream_of()
    node = reduced_problem(parent, wine, k, *parent.splits[:2], table, stream)
    s, goes_right = node.X @ child.weights[k], node.y == 1
    cost = sparse.misrouted(s, goes_right, node.sample_weight, child.thresholds[k])
    assert cost == pytest.approx(
        sparse.least_cost(s, goes_right, node.sample_weight), abs=1e-9
    )
