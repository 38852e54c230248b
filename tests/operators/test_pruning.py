"""Pruning: the path, the prunings of small trees, and the choice by rows not grown on."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evotree.dataset import Dataset, make_folds, split_folds
from evotree.fitness.base import PenalizedAccuracy
from evotree.operators.initialization.growth import GrowthLimits, grow
from evotree.operators.losses import loss_moments
from evotree.operators.pruning import (
    cost_complexity_path,
    critical_alphas,
    node_risk,
    prune,
    prune_cross_validated,
    prune_held_out,
    prune_marked,
    prune_tree,
    sequence_losses,
    weakest_links,
)
from evotree.operators.splitters.base import Axis
from evotree.operators.splitters.dipole import Dipole
from evotree.operators.structure.splice import make_individual
from tests.reference import pruning as naive
from tests.strategies import (
    any_datasets,
    any_populations,
    populations,
    seeds,
    stream_of,
    with_random_zeros,
)


@st.composite
def risky_trees(draw):
    """Draw a small tree, the risks of its nodes and prices of its splits; whole numbers tie often.

    Where gains grow with the subtree, many links below a node are cut before it.
    """
    rng = np.random.default_rng(draw(seeds))
    n_splits = draw(st.integers(0, 7))
    size = np.array(naive.random_sizes(rng, n_splits), dtype=np.int32)
    kind = draw(st.sampled_from(("any", "whole", "split off", "growing")))
    risk = (
        rng.random(len(size)) if kind == "any" else rng.integers(0, 8, len(size)) * 1.0
    )
    for k in reversed(np.flatnonzero(size > 1)):
        gain = {"split off": rng.integers(0, 3), "growing": rng.random() * size[k] ** 2}
        if kind in gain:  # as on training rows, where a split raises no risk
            risk[k] = sum(risk[list(naive.children_of(size, k))]) + gain[kind]
    return risk, size, np.where(size > 1, rng.integers(1, 9, len(size)), 0.0)


@given(risky_trees(), st.booleans(), st.floats(0, 8))
def test_every_tree_of_the_sequence_is_the_smallest_cheapest(
    drawn, is_priced, any_alpha
):
    risk, size, price = drawn
    collapse_at = weakest_links(risk, size, price if is_priced else None)
    assert (collapse_at[size == 1] == np.inf).all()
    alphas = critical_alphas(collapse_at, size)
    between = (alphas[:-1] + alphas[1:]) / 2
    risks = []
    for alpha in (*alphas, *between, any_alpha, alphas[-1] + 1):
        best = naive.smallest_cheapest(risk, size, alpha, price if is_priced else None)
        # At a critical alpha rounding may decide: a hair above it, ties are cut.
        assert naive.leaves_after(size, collapse_at <= alpha + 1e-12) == best
        risks.append(risk[best].sum())
    if not is_priced:
        path = alphas, risks[: len(alphas)]
        np.testing.assert_allclose(cost_complexity_path(risk, size), path, atol=1e-9)


def test_splits_that_change_nothing_go_at_no_price():
    """Sums of shares carry rounding: 0.1 + 0.2 is not 0.3."""
    size = np.array([5, 3, 1, 1, 1], dtype=np.int32)
    risk = np.array([0.9, 0.3, 0.1, 0.2, 0.1])
    assert weakest_links(risk, size)[1] == 0.0
    np.testing.assert_allclose(
        cost_complexity_path(risk, size), [[0.0, 0.5], [0.4, 0.9]]
    )


@pytest.mark.parametrize(
    "criterion, impurity",
    (
        ("gini", lambda p: 1 - (p**2).sum()),
        ("entropy", lambda p: -(p[p > 0] * np.log2(p[p > 0])).sum()),
        ("error", lambda p: 1 - p.max()),
        ("twoing", lambda p: 1 - p.max()),
        (None, lambda p: 1 - p.max()),
    ),
)
def test_risk_of_classes(criterion, impurity):
    counts = np.array([[6.0, 3.0, 1.5], [6.0, 0.5, 0.0], [0.0, 2.5, 1.5]])
    expected = [row.sum() / 10.5 * impurity(row / row.sum()) for row in counts]
    np.testing.assert_allclose(node_risk(counts, 3, criterion), expected, atol=1e-15)


@settings(max_examples=30)
@given(populations(), seeds)
def test_marked_subtrees_become_leaves(drawn, seed):
    dataset, (individual, *_) = drawn
    marks = np.random.default_rng(seed).random(len(individual)) < 0.3
    tree = individual.to_tree()
    for array in (tree.weights, tree.thresholds, tree.subtree_size, tree.values):
        array.flags.writeable = False
    pruned = prune_tree(tree, marks).validate()
    way_ends = [
        next((k for k in way if marks[k]), way[-1])
        for way in naive.reach(tree, dataset.X)
    ]
    np.testing.assert_array_equal(
        pruned.predict_value(dataset.X), tree.values[way_ends]
    )
    assert pruned.n_leaves == len(naive.leaves_after(tree.subtree_size, marks))
    assert not np.shares_memory(pruned.values, tree.values)
    child = individual.clone()
    child.fitness.values = (1.0,)
    assert prune_marked(child, dataset, marks) == (child,)
    assert child == pruned
    assert child.fitness.valid == (not marks.any())
    again = make_individual(dataset, *child.nodes()[:3])
    for array, expected in zip(child.nodes(), again.nodes(), strict=True):
        np.testing.assert_array_equal(array, expected)


@settings(max_examples=50)
@given(
    any_populations,
    seeds,
    st.sampled_from((0.0, 0.02)),
    st.sampled_from((0.001, 0.01, 0.05)),
)
def test_a_pruned_tree_is_the_fittest_of_all_prunings(
    drawn, seed, size_penalty, term_penalty
):
    """By the fitness itself: what a collapsed split gives back is counted on the pruned tree."""
    dataset, (individual, *_) = drawn
    individual = with_random_zeros(individual, dataset, seed)
    size = individual.subtree_size
    evaluate = PenalizedAccuracy(size_penalty, term_penalty)
    (pruned,) = prune(individual.clone(), dataset, size_penalty, term_penalty)
    if individual.n_leaves <= 8:
        for leaves in naive.prunings(size):
            other = individual.clone()
            prune_marked(
                other, dataset, np.isin(np.arange(len(size)), leaves) & (size > 1)
            )
            assert evaluate(pruned)[0] >= evaluate(other)[0] - 1e-9
    assert prune(pruned.clone(), dataset, size_penalty, term_penalty)[0] == pruned


@st.composite
def held_out_trees(draw):
    """Draw a grown tree, and a data set in its units of rows it was not grown on."""
    dataset = draw(any_datasets)
    part = np.random.default_rng(draw(seeds)).random(dataset.X.shape[0]) < 0.5
    part[0] = False
    splitter = Dipole() if dataset.n_classes > 0 else Axis()
    criterion = "gini" if dataset.n_classes > 0 else "squared_error"
    individual = grow(
        dataset.take(~part),
        splitter,
        criterion,
        GrowthLimits(max_depth=4),
        stream=stream_of(draw(seeds)),
    )
    return individual, dataset.take(part)


@given(held_out_trees(), st.sampled_from((0.0, 0.5, 1.0, 3.0)))
def test_held_out_choice_tree_by_tree(drawn, k):
    tree, held_out = drawn
    risk = node_risk(tree.counts, held_out.n_classes)
    marks = prune_held_out(tree, risk, held_out, k)
    collapse_at = weakest_links(risk, tree.subtree_size)
    if len(held_out.y) == 0:
        np.testing.assert_array_equal(marks, collapse_at <= 0.0)
        return
    alphas = critical_alphas(collapse_at, tree.subtree_size)
    losses = [
        naive.row_losses(tree, collapse_at <= alpha, held_out) for alpha in alphas
    ]
    weight = held_out.sample_weight
    np.testing.assert_allclose(
        sequence_losses(tree, held_out, collapse_at, alphas),
        loss_moments(np.array(losses), weight),
        atol=1e-9,
    )
    chosen = alphas[naive.k_se_choice(losses, weight, k)]
    np.testing.assert_array_equal(marks, collapse_at <= chosen)


@pytest.mark.parametrize("task", ("classification", "regression"))
@pytest.mark.parametrize("k", (0.0, 0.5))
def test_cross_validation_fold_by_fold(task, k):
    def grow_on(rows):
        return grow(rows, Axis(), criterion, GrowthLimits(5), stream=stream_of())

    def links_of(tree):
        risk = node_risk(tree.counts, dataset.n_classes)
        return weakest_links(risk, tree.subtree_size)

    for seed in range(3):
        rng = np.random.default_rng(seed)
        X = rng.random((50, 2))
        y = X[:, 0] - X[:, 1] + 0.2 * rng.normal(size=50)
        y = y if task == "regression" else y > 0.0
        dataset = Dataset.from_arrays(X, y, rng.integers(1, 4, 50), task=task)
        criterion = "gini" if dataset.n_classes else "squared_error"
        main, folds = grow_on(dataset), make_folds(dataset, 4, stream_of(seed))
        links = links_of(main)
        alphas = critical_alphas(links, main.subtree_size)
        typical = np.sqrt(alphas * np.append(alphas[1:], np.inf))
        losses, weights = [], []
        for fold in range(4):
            others, held_out = split_folds(dataset, folds, fold)
            tree = grow_on(others)
            prunings = [links_of(tree) <= alpha for alpha in typical]
            losses.append([naive.row_losses(tree, p, held_out) for p in prunings])
            weights.append(held_out.sample_weight)
        chosen = naive.k_se_choice(np.hstack(losses), np.concatenate(weights), k)
        marks = prune_cross_validated(
            main,
            dataset,
            grow_on,
            n_folds=4,
            standard_errors=k,
            stream=stream_of(seed),
        )
        np.testing.assert_array_equal(marks, links <= alphas[chosen])
