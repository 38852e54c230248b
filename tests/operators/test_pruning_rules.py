"""The choice of a pruning by rows that the tree was not grown on, tree by tree and row by row."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evotree.dataset import Dataset
from evotree.fitness.linear_leaves import LinearLeafObjective
from evotree.folds import make_folds, split_folds
from evotree.operators.initialization.growth import grow
from evotree.operators.pruning.held_out import (
    choose_tree,
    critical_alphas,
    node_losses,
    prune_cross_validated,
    prune_held_out,
    prune_reduced_error,
    sequence_sums,
)
from evotree.operators.pruning.penalized import (
    node_risk,
    prune_marked,
    risk_of_leaves,
    weakest_links,
)
from evotree.operators.splitters.axis import Axis
from evotree.operators.splitters.dipole import Dipole
from evotree.operators.structure.reduced import row_losses
from evotree.rng import make_streams
from tests.reference import pruning as naive
from tests.strategies import datasets, seeds


def stream_of(seed):
    return make_streams(seed, 0, 1)[0]


@st.composite
def held_out_trees(draw):
    """Draw a grown tree, and a data set in its units of rows it was not grown on."""
    dataset = draw(all_datasets())
    part = np.random.default_rng(draw(seeds)).random(dataset.X.shape[0]) < 0.5
    part[0] = False
    splitter = Dipole() if dataset.n_classes > 0 else Axis()
    criterion = "gini" if dataset.n_classes > 0 else "squared_error"
    individual = grow(
        dataset.take(~part), splitter, criterion, max_depth=4, stream=stream_of(draw(seeds))
    )
    return individual, dataset.take(part)


@st.composite
def all_datasets(draw):
    """Draw a data set for either task."""
    dataset = draw(datasets())
    if draw(st.booleans()):
        return dataset
    rng = np.random.default_rng(draw(seeds))
    targets = rng.integers(0, 5, dataset.X.shape[0]) * 0.7
    return Dataset.from_arrays(dataset.raw, targets, dataset.sample_weight, task="regression")


# The choice by other rows


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
    losses = [naive.row_losses(tree, collapse_at <= alpha, held_out) for alpha in alphas]
    values = np.column_stack(node_losses(tree, held_out))
    sums = sequence_sums(values, collapse_at, tree.subtree_size, alphas)
    weight = held_out.sample_weight
    np.testing.assert_allclose(sums[:, 0], np.array(losses) @ weight, atol=1e-9)
    np.testing.assert_allclose(sums[:, 1], np.array(losses) ** 2 @ weight, atol=1e-9)
    chosen = alphas[naive.k_se_choice(losses, weight, k)]
    np.testing.assert_array_equal(marks, collapse_at <= chosen)


@settings(max_examples=25)
@given(seeds)
def test_lines_are_pruned_by_what_lines_lose(seed):
    """A node of the sequence predicts as the leaf that it becomes."""
    rng = np.random.default_rng(seed)
    X = rng.random((120, 2))
    y = np.where(X[:, 0] > 0.5, X[:, 1], -3.0 * X[:, 1]) + 0.1 * rng.normal(size=120)
    dataset = Dataset.from_arrays(X, y, task="regression").evolved_for(LinearLeafObjective())
    part = rng.random(120) < 0.3
    training, held_out = dataset.take(~part), dataset.take(part)
    tree = grow(training, Axis(), "squared_error", max_depth=4, stream=stream_of(seed))
    risk, _ = risk_of_leaves(tree, 0)
    links = weakest_links(risk, tree.subtree_size)
    alphas = critical_alphas(links, tree.subtree_size)
    losses = [
        row_losses(prune_marked(tree.clone(), training, links <= alpha)[0], held_out)
        for alpha in alphas
    ]
    chosen = alphas[naive.k_se_choice(losses, held_out.sample_weight, 0.0)]
    np.testing.assert_array_equal(prune_held_out(tree, risk, held_out), links <= chosen)
    marks = prune_reduced_error(tree, held_out)
    cut = row_losses(prune_marked(tree.clone(), training, marks)[0], held_out)
    assert cut.sum() <= min(map(np.sum, losses)) + 1e-9


def test_the_standard_error_is_that_of_a_share():
    """Of 100 rows 20, 22, 25 are wrong: sqrt(0.2 * 0.8 / 100) = 0.04 reaches 0.24, not 0.25."""
    losses = np.array([23.0, 20.0, 22.0, 25.0])
    assert choose_tree(losses, losses, 100.0, 0.0) == 1
    assert choose_tree(losses, losses, 100.0, 1.0) == 2
    assert choose_tree(losses, losses, 100.0, 1.26) == 3
    ties = np.array([3.0, 1.0, 1.0 + 1e-15, 2.0])
    assert choose_tree(ties, ties, 100.0, 0.0) == 2
    assert choose_tree(np.zeros(4), np.zeros(4), 9.0, 1.0) == 3
    # Both lose 0.2 in the mean; the error is that of the smaller, 0.13, which 0.4 is beyond.
    assert choose_tree(np.array([2.0, 2.0, 4.0]), np.array([40.0, 2.0, 16.0]), 10.0, 1.0) == 1


@given(held_out_trees())
def test_reduced_error(drawn):
    tree, held_out = drawn
    losses, _ = node_losses(tree, held_out)
    loss, leaves = naive.reduced_error(losses, tree.subtree_size)
    marks = prune_reduced_error(tree, held_out)
    assert naive.leaves_after(tree.subtree_size, marks) == leaves
    assert naive.row_losses(tree, marks, held_out) @ held_out.sample_weight == pytest.approx(loss)
    assert loss <= min(losses[leaves].sum() for leaves in naive.prunings(tree.subtree_size)) + 1e-9


# Cross-validation


@pytest.mark.parametrize("task", ("classification", "regression"))
@pytest.mark.parametrize("k", (0.0, 0.5))
def test_cross_validation_fold_by_fold(task, k):
    criterion = "gini" if task == "classification" else "squared_error"

    def grow_on(rows):
        return grow(rows, Axis(), criterion, max_depth=5, stream=stream_of(0))

    def links_of(tree, n_classes):
        return weakest_links(node_risk(tree.counts, n_classes, criterion), tree.subtree_size)

    for seed in range(3):
        rng = np.random.default_rng(seed)
        X = rng.random((50, 2))
        y = X[:, 0] > X[:, 1]
        y = y ^ (rng.random(50) < 0.2) if task == "classification" else y + rng.normal(size=50)
        dataset = Dataset.from_arrays(X, y, rng.integers(1, 4, 50), task=task)
        main = grow_on(dataset)
        marks = prune_cross_validated(
            main, dataset, grow_on, n_folds=4, standard_errors=k, criterion=criterion,
            stream=stream_of(seed)
        )  # fmt: skip
        links = links_of(main, dataset.n_classes)
        alphas = critical_alphas(links, main.subtree_size)
        losses, weights = [[] for _ in alphas], []
        folds = make_folds(dataset, 4, stream_of(seed))
        for fold in range(4):
            others, held_out = split_folds(dataset, folds, fold)
            tree = grow_on(others)
            weights.append(held_out.sample_weight)
            for i, alpha in enumerate(alphas):
                typical = np.sqrt(alpha * alphas[i + 1]) if i + 1 < len(alphas) else np.inf
                pruned = links_of(tree, dataset.n_classes) <= typical
                losses[i].append(naive.row_losses(tree, pruned, held_out))
        losses = [np.concatenate(loss) for loss in losses]
        chosen = naive.k_se_choice(losses, np.concatenate(weights), k)
        np.testing.assert_array_equal(marks, links <= alphas[chosen])


@settings(max_examples=40)
@given(all_datasets(), seeds)
def test_cross_validation_of_any_rows(dataset, seed):
    criterion = "gini" if dataset.n_classes > 0 else "squared_error"

    n_rows = []

    def grow_on(rows):
        n_rows.append(rows.n_samples)
        return grow(rows, Axis(), criterion, stream=stream_of(seed))

    main = grow_on(dataset)
    marks = prune_cross_validated(main, dataset, grow_on, n_folds=3, stream=stream_of(seed))
    assert all(0 < n < dataset.n_samples for n in n_rows[1:])
    assert marks.shape == (len(main),) and not marks[main.is_leaf].any()


def test_cross_validation_needs_two_folds():
    dataset = Dataset.from_arrays([[0.0], [1.0]], [0, 1])
    main = grow(dataset, Axis(), stream=stream_of(0))
    with pytest.raises(ValueError, match="n_folds=1: allowed are integers of at least 2."):
        prune_cross_validated(main, dataset, lambda rows: main, n_folds=1, stream=stream_of(0))
