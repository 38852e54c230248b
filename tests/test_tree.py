"""The tree type: prefix order, routing, validation, equality."""

from html import unescape

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone, is_classifier
from sklearn.datasets import load_iris

from evotree.texts import export_text
from evotree.tree import ObliqueTree, SoftSides, mean_of_trees, node_depths
from tests import exported
from tests.quick_models import CLASSIFIERS, REGRESSORS, name_of
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


def test_figures_of_a_small_tree():
    tree = small_tree()
    assert (tree.n_nodes, tree.n_leaves, tree.depth, len(tree)) == (5, 3, 2, 5)
    assert (tree.left(0), tree.right(0), tree.right(1)) == (1, 4, 3)
    np.testing.assert_array_equal(node_depths(tree.subtree_size), [0, 1, 2, 2, 1])
    np.testing.assert_array_equal(tree.is_leaf, [False, False, True, True, True])
    X = np.array([[1.0, 2.0], [1.0, 2.5], [np.nextafter(1.0, 2.0), 0.0]])
    # Rows on a hyperplane go left.
    np.testing.assert_array_equal(tree.apply(X), [2, 3, 4])


@given(trees(), st.data())
def test_validate_refuses_a_changed_size(tree, data):
    assert tree.validate() is tree
    k = data.draw(st.integers(0, tree.n_nodes - 1))
    size = tree.subtree_size.copy()
    size[k] += data.draw(st.sampled_from((-7, -2, -1, 1, 2, 7)))
    with pytest.raises(ValueError, match="subtree_size"):
        tree.replaced(subtree_size=size).validate()
    with pytest.raises(ValueError, match="subtree_size"):
        ObliqueTree(*(array[:0] for array in (*tree.splits, tree.values))).validate()


def damages(array):
    return (
        array[:-1],
        np.where(array == array.flat[0], np.nan, array),
        np.atleast_3d(array),
    )


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        (name, a)
        for name in ("weights", "thresholds", "values")
        for a in damages(getattr(small_tree(), name))
    ]
    + [("spread", [1.0]), ("spread", [1.0, -1.0]), ("weights", np.ones((5, 2)))]
    + [("weighted_n_node_samples", [1.0] * 4)]
    + [("weighted_n_node_samples", [1.0, 1.0, np.inf, 1.0, 1.0])],
)
def test_validate_names_the_array_that_is_wrong(name, wrong):
    with pytest.raises(ValueError, match=name):
        small_tree().replaced(**{name: np.array(wrong)}).validate()


@given(trees(), seeds, st.sampled_from((0, 1, 20)))
def test_a_path_leads_from_the_root_to_the_leaf(tree, seed, n_rows):
    X = np.random.default_rng(seed).standard_normal((n_rows, tree.n_features))
    path = tree.decision_path(X)
    assert path.shape == (n_rows, tree.n_nodes) and set(path.data) <= {1}
    for i, leaf in enumerate(tree.apply(X)):
        nodes = path[i].indices
        assert nodes[0] == 0 and nodes[-1] == leaf
        for above, below in zip(nodes[:-1], nodes[1:], strict=True):
            assert below in (tree.left(above), tree.right(above))


DOORS = {
    "apply": ObliqueTree.apply,
    "decision_path": ObliqueTree.decision_path,
    "predict_value": ObliqueTree.predict_value,
    "mean": lambda tree, X: mean_of_trees([tree, tree], X),
    "sides": lambda tree, X: SoftSides(*np.zeros((2, 5)), np.eye(5, 3)).predict(
        tree, X
    ),
    "mixed sides": lambda tree, X: SoftSides(*np.zeros((2, 5)), np.eye(5, 3)).mix(
        tree, X
    ),
}
every_door = pytest.mark.parametrize("door", DOORS.values(), ids=DOORS)


@every_door
@pytest.mark.parametrize("shape", [(4, 1), (4, 0), (4, 3), (4,), (2, 2, 2)], ids=str)
def test_rows_of_another_width_are_refused(door, shape):
    with pytest.raises(
        ValueError, match=r"X has shape \(.*\): allowed are rows of 2 features"
    ):
        door(small_tree(), np.zeros(shape))


@every_door
def test_rows_of_whole_numbers_and_objects_are_read_as_floats(door):
    rows = np.array([[0, 0], [1, 3], [2, 0]])
    expected = door(small_tree(), rows.astype(np.float64))
    for given_ones in (rows, rows.astype(object), rows.tolist()):
        found = door(small_tree(), given_ones)
        assert (found != expected).sum() == 0 and found.shape == expected.shape


@pytest.mark.parametrize("model", CLASSIFIERS + REGRESSORS, ids=name_of)
def test_fitted_trees_know_the_spread_of_features_and_the_rows_of_nodes(model):
    X, y = load_iris(return_X_y=True)
    X = np.column_stack([X, np.full(len(X), 3.0)])  # a constant feature has no spread
    weight = np.random.default_rng(0).integers(0, 4, len(X)).astype(float)
    target = y if is_classifier(model) else X[:, 0] + y
    fitted = clone(model).fit(X, target, sample_weight=weight)
    tree = fitted.tree_
    mean = np.average(X, axis=0, weights=weight)
    spread = np.sqrt(np.average((X - mean) ** 2, axis=0, weights=weight))
    np.testing.assert_allclose(tree.spread, spread, atol=1e-12)
    path = fitted.decision_path(X)
    np.testing.assert_array_equal(tree.n_node_samples, path.T @ (weight > 0.0))
    unit = weight.sum() / tree.weighted_n_node_samples[0]
    np.testing.assert_allclose(unit * tree.weighted_n_node_samples, path.T @ weight)
    if is_classifier(model):
        counts = path.T @ (
            (weight > 0.0)[:, np.newaxis] & (y[:, np.newaxis] == np.arange(3))
        )
        np.testing.assert_array_equal(tree.row_counts, counts)
    assert (
        clone(model).fit(X, target, sample_weight=0.0 * weight + 7.0).tree_.row_counts
        is None
    )


def test_a_small_tree_prints_its_rules_and_a_large_one_its_sizes():
    tree, large, huge = small_tree(), exported.chain(101), exported.chain(601)
    assert str(tree) == export_text(tree).rstrip("\n") and str(large) == repr(large)
    assert "n_leaves=3" in repr(tree)
    assert unescape(huge._repr_html_()) == f"<pre>{huge!r}</pre>"
    for one in (tree, large):
        assert unescape(one._repr_html_()) == f"<pre>{export_text(one)}</pre>"
    wide = exported.stump([1.0] * 30)
    assert "(+20 more)" in str(wide) and "(+20 more)" in wide._repr_html_()
