"""What holds for every operator, whatever came before it."""

import operator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evotree.dataset import Dataset
from evotree.operators.initialization.dipolar import init_dipolar
from evotree.operators.initialization.seeding import ONE_BY_ONE, init_seed
from evotree.operators.structure import splice
from evotree.rng import make_streams
from tests.reference import naive
from tests.strategies import VARIATION, apply_operator, assert_sound, seeds, tasks


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
        apply_operator(name, *parents, dataset, make_streams(seed, 1, 1)[0]) for _ in range(2)
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


@pytest.fixture(scope="module")
def wide():
    """Rows that are routed in several blocks, the last of them longer, and two trees on them."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1400, 520))
    y = (X[:, :3].sum(axis=1) > 0).astype(int) + (X[:, 3] > 1.0)
    dataset = Dataset.from_arrays(X, y)
    assert len(X) > 5 * max(splice._LEAST_BLOCK, splice._BLOCK_NUMBERS // X.shape[1])
    return dataset, [
        init_dipolar(dataset, 0.0, stream, max_depth=2) for stream in make_streams(1, 0, 2)
    ]


@given(st.sampled_from(VARIATION), seeds)
def test_rows_in_many_blocks_go_where_they_should(wide, name, seed):
    dataset, individuals = wide
    children = apply_operator(name, *individuals, dataset, make_streams(seed, 1, 1)[0])
    for child in children:
        assert_sound(child, dataset)
        tree = child.to_tree()
        leaves = np.empty(len(dataset.X), dtype=int)
        for k in np.flatnonzero(child.subtree_size == 1):
            leaves[list(naive.rows_of(k, child))] = k
            assert (np.diff(child.order[child.start[k] : child.end[k]]) > 0).all()
        np.testing.assert_array_equal(leaves, [naive.leaf_of(x, tree) for x in dataset.X])


@given(tasks(names=ONE_BY_ONE), seeds)
def test_seeds_are_sound_and_follow_from_their_stream(drawn, seed):
    dataset, _, (name,) = drawn
    twins = [init_seed(dataset, 0.01, name, make_streams(seed, 0, 1)[0]) for _ in range(2)]
    assert_sound(twins[0], dataset)
    assert twins[0] == twins[1]
