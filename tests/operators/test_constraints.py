"""Hard bounds: what a repaired tree keeps, and that no better pruning does."""

import math

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_iris

from evotree.dataset import Dataset
from evotree.operators.constraints.base import keeps_all, repair
from evotree.operators.constraints.interactions import Interactions, as_interactions
from evotree.operators.constraints.limits import Limits, take_out
from evotree.operators.initialization.dipolar import init_dipolar
from evotree.operators.initialization.resampling import blur
from evotree.operators.pruning.penalized import kept_nodes, node_risk, optimal_pruning
from evotree.rng import make_streams
from tests.strategies import any_populations, assert_sound, populations, seeds

limits = st.builds(
    Limits,
    max_depth=st.none() | st.integers(1, 4),
    max_leaves=st.none() | st.integers(2, 6),
    max_terms=st.none() | st.integers(0, 8),
    min_leaf_share=st.sampled_from((0.0, 0.05, 0.3)),
)


@st.composite
def interactions(draw, n_features):
    column_of = np.sort(draw(st.lists(st.integers(0, 4), min_size=n_features, max_size=n_features)))
    if draw(st.booleans()):
        return Interactions(column_of, max_columns=draw(st.integers(1, 2)))
    groups = np.array(draw(st.lists(st.lists(st.booleans(), min_size=5, max_size=5), max_size=3)))
    rest = ~groups.any(axis=0) if groups.size else np.ones(5, dtype=bool)
    return Interactions(column_of, np.vstack([*groups, rest]) if rest.any() else groups)


def best_by_brute_force(risk, size, cost, budget, k=0):
    """Return the least risk below a node whose splits cost no more than a budget."""
    if size[k] == 1 or cost[k] > budget:
        return risk[k]
    left, spendable = k + 1, budget - int(cost[k])
    kept = min(
        best_by_brute_force(risk, size, cost, part, left)
        + best_by_brute_force(risk, size, cost, spendable - part, left + size[left])
        for part in range(spendable + 1)
    )
    return min(kept, risk[k])


@settings(max_examples=40)
@given(any_populations, st.integers(0, 6), seeds)
def test_no_affordable_pruning_is_better(drawn, budget, seed):
    dataset, individuals = drawn
    for tree in individuals:
        size, risk = tree.subtree_size, node_risk(tree.counts, dataset.n_classes)
        cost = np.random.default_rng(seed).integers(0, 3, len(tree))
        marks = optimal_pruning(risk, size, cost, budget)
        kept, kept_size = kept_nodes(size, marks)
        assert cost[kept[kept_size > 1]].sum() <= budget
        total = risk[kept[kept_size == 1]].sum()
        if len(tree) < 40:
            best = best_by_brute_force(risk, size, cost, budget)
            np.testing.assert_allclose(total, best, rtol=1e-9, atol=1e-12)


@settings(max_examples=40)
@given(any_populations, st.data())
def test_repaired_trees_keep_all_and_are_sound(drawn, data):
    dataset, individuals = drawn
    of_columns = data.draw(interactions(dataset.X.shape[1]))
    constraints = [of_columns, data.draw(limits)]
    for tree in individuals:
        before = tree.clone()
        repaired = repair(tree.clone(), dataset, constraints)
        assert keeps_all(repaired, dataset, constraints)
        assert_sound(repaired, dataset)
        assert np.count_nonzero(repaired.weights, axis=1).max() <= max(
            1, min(one.max_width or 99 for one in constraints)
        )
        assert keeps_all(before, dataset, constraints) <= (repaired == before)


@settings(max_examples=40)
@given(any_populations, st.sampled_from((0.05, 0.2, 0.5)))
def test_small_leaves_are_taken_out_by_the_number_of_rows(drawn, share):
    dataset, individuals = drawn
    for tree in individuals:
        repair(tree, dataset, [Limits(min_leaf_share=share)])
        leaves = np.repeat(tree.apply(dataset.X), dataset.multiplicity)
        counts = np.bincount(leaves, minlength=len(tree))[tree.is_leaf]
        assert len(tree) == 1 or counts.min() >= math.ceil(share * len(leaves) - 1e-9)


@given(populations(), seeds)
def test_what_is_taken_out_leaves_the_splits_of_the_others(drawn, seed):
    dataset, (tree, *_) = drawn
    drawn_leaves = tree.is_leaf & (np.random.default_rng(seed).random(len(tree)) < 0.3)
    if len(tree) == 1 or not drawn_leaves.any():
        return
    before = {row.tobytes() for row in tree.weights}
    n_nodes = len(tree)
    take_out(tree, dataset, drawn_leaves)
    assert len(tree) < n_nodes and {row.tobytes() for row in tree.weights} <= before
    assert_sound(tree, dataset)


def test_equal_rows_count_as_often_as_they_were_given():
    X = np.repeat([[0.0], [1.0], [2.0]], [5, 1, 4], axis=0)
    dataset = Dataset.from_arrays(X, [0] * 5 + [1] * 5, np.linspace(0.0, 9.0, 10))
    assert dataset.multiplicity.tolist() == [4, 1, 4]  # one has no weight
    assert dataset.take(np.array([0, 2])).multiplicity.tolist() == [4, 4]


def test_copies_with_noise_are_no_training_rows():
    X, y = load_iris(return_X_y=True)
    dataset = Dataset.from_arrays(X, y)
    blurred = blur(dataset, 0.1, 3, make_streams(0, 0, 1)[0])
    assert blurred.multiplicity.sum() == len(X)
    assert not blurred.multiplicity[len(dataset.X) :].any()
    for stream in make_streams(0, 0, 5):
        tree = init_dipolar(blurred, 0.0, stream)
        repair(tree, blurred, [Limits(min_leaf_share=20 / 150)])
        counts = np.bincount(tree.apply(dataset.X), dataset.multiplicity, len(tree))
        assert counts[tree.is_leaf].min() >= 20 or len(tree) == 1


def test_features_of_a_column_go_together():
    X, y = load_iris(return_X_y=True)
    dataset = Dataset.from_arrays(X, y, columns=(("a", 1), ("none", 0), ("b", 2), ("c", 1)))
    assert dataset.column_of.tolist() == [0, 2, 2, 3]
    for words, width in (("no_interactions", 2), ("pairwise", 3), ([{"a", "b"}], 3), ([{0, 3}], 2)):
        assert as_interactions(words, dataset).max_width == width
    assert as_interactions([{"a", "b", 3}], dataset) is None  # any may share a split
    assert as_interactions([{0, 1, 2, 3}, [1]], dataset) is None
    assert as_interactions(None, dataset) is None


def test_constraints_that_undo_each_other_leave_a_leaf():
    X, y = load_iris(return_X_y=True)
    dataset = Dataset.from_arrays(X, y)

    class Never:
        max_width = None

        def keeps(self, individual, dataset):
            return len(individual) == 1

        def repair(self, individual, dataset):
            pass

    tree = init_dipolar(dataset, 0.0, make_streams(0, 0, 1)[0])
    assert len(tree) > 1 and len(repair(tree, dataset, [Never()])) == 1
