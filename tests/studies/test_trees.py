"""Trees of many complexities: what fits a budget, trees of other programs, fronts."""

import types
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.datasets import load_wine
from sklearn.model_selection import cross_val_predict
from sklearn.tree import DecisionTreeClassifier

from evotree.engine.pareto import FrontTree
from evotree.experiments.protocols import stratified_folds
from experiments.methods import trees as made

BUDGETS = (1, 2, 3, 5, 8, 20, np.inf)


def noisy_rows(seed=0, n_rows=120, n_features=3, n_classes=2):
    """Draw rows of classes that overlap."""
    rng = np.random.default_rng(seed)
    y = np.arange(n_rows) % n_classes
    return rng.normal(size=(n_rows, n_features)) + 0.8 * y[:, None], y


def quick_methods():
    return {
        "CART": clone(made.CART),
        "Linear": made.CrossValidatedTrees(partial(made.grow_linear, Cs=(0.1, 1.0)), 5),
        "TAO": made.CrossValidatedTrees(
            partial(made.grow_tao, depths=(1, 3), Cs=(1.0, 0.1, 0.01)), 3, prunes=False
        ),
    }


every = pytest.mark.parametrize("name", list(quick_methods()))


@every
def test_trees_grow_in_complexity_from_a_single_leaf(name):
    X, y = load_wine(return_X_y=True)
    model = quick_methods()[name].fit(X, np.array(list("abc"))[y])
    sizes = [tree.complexity for tree in model.trees_]
    assert sizes[0] == 1 and sizes == sorted(sizes) == model.complexities_.tolist()
    assert sizes[-1] > 3
    chosen = [made.tree_within(model, budget) for budget in BUDGETS]
    found = [tree.complexity for tree in chosen]
    assert all(size <= budget for size, budget in zip(found, BUDGETS, strict=True))
    right = [model.n_right_[model.best_within(budget)] for budget in BUDGETS]
    assert right == sorted(right) and right[-1] == model.n_right_.max()
    assert chosen[-1] is model.tree_
    assert set(model.predict(X)) <= set("abc")
    np.testing.assert_array_equal(model.predict(X), made.predict_within(model, X))


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 1000), st.sampled_from([2, 3]))
def test_the_tree_of_a_budget_is_that_of_an_exhaustive_search(seed, n_classes):
    """Scikit-learn prunes and cross-validates every tree between two links of its path."""
    X, y = noisy_rows(seed, 90, n_classes=n_classes)
    model = clone(made.CART).set_params(random_state=seed).fit(X, y)
    folds = stratified_folds(y, 5, seed)
    path = DecisionTreeClassifier(random_state=seed).cost_complexity_pruning_path(X, y).ccp_alphas
    best = {}
    # Links of one alpha are cut together here, one by one there.
    links = np.unique(path.clip(0.0).round(12))
    for alpha in (*np.sqrt(links[1:] * links[:-1]), 1.0):
        tree = DecisionTreeClassifier(random_state=seed, ccp_alpha=alpha)
        n_right = np.count_nonzero(cross_val_predict(tree, X, y, cv=folds) == y)
        size = tree.fit(X, y).tree_.node_count
        for budget in BUDGETS:
            if size <= budget:
                best[budget] = max(best.get(budget, (-1, 0)), (n_right, -size))
    for budget in BUDGETS[1:]:
        n_right, size = best[budget]
        at = model.best_within(budget)
        assert (model.n_right_[at], -model.complexities_[at]) == (n_right, size)


def test_a_linked_tree_becomes_arrays():
    """The second child of the root has children; rows below a threshold go to the first child."""
    inner = (np.array([0.0, 2.0]), 1.0, "b", "c")
    nodes = {"root": (np.array([1.0, -1.0]), 0.5, "a", "inner"), "inner": inner}
    tree = made.flatten("root", nodes.get, 2).validate()
    assert tree.subtree_size.tolist() == [5, 1, 3, 1, 1] and tree.complexity == 3 + 3
    rows = np.array([[0.5, 0.0], [0.6, 0.0], [9.0, 0.6]])
    assert tree.apply(rows).tolist() == [1, 3, 4]
    counted = made.with_counts(tree, rows, np.array([1, 0, 0]), 2)
    np.testing.assert_allclose(counted.values[:, 0], [2 / 3, 0, 1, 1, 1])
    assert counted.n_node_samples.tolist() == [3, 1, 2, 1, 1]


def member(quality, n_leaves, root_width):
    """Make a member of a front: a chain of splits, the root's on several features."""
    weights = np.zeros((2 * n_leaves - 1, 10))
    inner = np.arange(0, 2 * n_leaves - 2, 2)
    weights[inner, 0] = 1.0
    weights[0, :root_width] = 1.0
    size = np.ones(2 * n_leaves - 1, dtype=np.int32)
    size[inner] = 2 * n_leaves - 1 - inner
    tree = made.ObliqueTree(weights, np.zeros(len(size)), size, np.zeros((len(size), 2)))
    return FrontTree.of(tree.validate(), quality, "made up")


@pytest.mark.parametrize(
    ("size_penalty", "term_penalty", "budget", "expected"),
    [
        (0.0, 0.0, np.inf, 4),  # the best quality
        (0.0, 0.0, 11, 3),
        (0.0, 0.0, 10, 2),
        (0.01, 0.0, np.inf, 3),  # 0.02 for each leaf
        (0.0, 0.02, np.inf, 2),  # the last two have 6 and 7 terms more than splits
        (0.0, 0.02, 5, 1),
        (1.0, 0.0, np.inf, 0),
    ],
)
def test_the_front_is_asked_by_the_penalties_of_the_fit(
    size_penalty, term_penalty, budget, expected
):
    shapes = [(0.5, 1, 0), (0.8, 2, 1), (0.9, 5, 1), (0.95, 3, 7), (0.96, 4, 8)]
    front = [member(*shape) for shape in shapes]
    assert [tree.complexity for tree in front] == [1, 3, 9, 11, 14]
    model = types.SimpleNamespace(
        pareto_front_=front, size_penalty_=size_penalty, term_penalty_=term_penalty
    )
    assert made.tree_within(model, budget) is front[expected]
