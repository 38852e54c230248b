"""The tree type: prefix order, routing, validation, equality."""

import copy
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evotree.tree import ObliqueTree, node_depths
from tests.reference import naive
from tests.strategies import populations, seeds


@st.composite
def trees(draw):
    _, individuals = draw(populations(size=1))
    return individuals[0].to_tree()


def small_tree():
    """x0 <= 1 ? (x1 <= 2 ? A : B) : C."""
    return ObliqueTree(
        np.array([[1.0, 0.0], [0.0, 1.0], [0, 0], [0, 0], [0, 0]]),
        np.array([1.0, 2.0, 0, 0, 0]),
        np.array([5, 3, 1, 1, 1], dtype=np.int32),
        np.eye(5, 3),
    )


@given(trees(), seeds, st.sampled_from((0, 1, 20, 1024, 2100)))
def test_apply_agrees_with_naive_routing(tree, seed, n_rows):
    X = np.random.default_rng(seed).standard_normal((n_rows, tree.n_features))
    np.testing.assert_array_equal(tree.apply(X), [naive.leaf_of(x, tree) for x in X])


def test_rows_on_a_hyperplane_go_left():
    tree = small_tree()
    X = np.array([[1.0, 2.0], [1.0, 2.5], [np.nextafter(1.0, 2.0), 0.0]])
    np.testing.assert_array_equal(tree.apply(X), [2, 3, 4])


def test_figures_of_a_small_tree():
    tree = small_tree()
    assert (tree.n_nodes, tree.n_leaves, tree.depth, len(tree)) == (5, 3, 2, 5)
    assert (tree.left(0), tree.right(0), tree.right(1)) == (1, 4, 3)
    np.testing.assert_array_equal(node_depths(tree.subtree_size), [0, 1, 2, 2, 1])
    np.testing.assert_array_equal(tree.is_leaf, [False, False, True, True, True])
    assert "n_leaves=3" in repr(tree)


@given(trees())
def test_validate_accepts_every_grown_tree(tree):
    assert tree.validate() is tree


@given(trees(), st.data())
def test_validate_refuses_a_changed_size(tree, data):
    k = data.draw(st.integers(0, tree.n_nodes - 1))
    size = tree.subtree_size.copy()
    size[k] += data.draw(st.sampled_from((-7, -2, -1, 1, 2, 7)))
    with pytest.raises(ValueError, match="subtree_size"):
        ObliqueTree(tree.weights, tree.thresholds, size, tree.values).validate()


@pytest.mark.parametrize("name", ["weights", "thresholds", "values"])
def test_validate_names_the_array_that_is_wrong(name):
    for damage in (lambda a: a[:-1], lambda a: np.where(a == a.flat[0], np.nan, a), np.atleast_3d):
        tree = small_tree()
        setattr(tree, name, damage(getattr(tree, name)))
        with pytest.raises(ValueError, match=name):
            tree.validate()


def test_validate_refuses_no_nodes():
    empty = np.empty(0, dtype=np.int32)
    with pytest.raises(ValueError, match="subtree_size"):
        ObliqueTree(np.empty((0, 2)), np.empty(0), empty, np.empty((0, 2))).validate()


@given(trees())
def test_copies_are_equal(tree):
    for twin in (pickle.loads(pickle.dumps(tree)), copy.deepcopy(tree)):
        assert twin == tree
        np.testing.assert_array_equal(twin.values, tree.values)
    moved = ObliqueTree(tree.weights, tree.thresholds + 1.0, tree.subtree_size, tree.values)
    assert moved != tree
    assert tree != "a tree"
