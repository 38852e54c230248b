"""The sizes of fitted trees and forests."""

from types import SimpleNamespace

import numpy as np
from sklearn.datasets import load_iris
from sklearn.ensemble import BaggingClassifier, RandomForestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler
from sklearn.tree import DecisionTreeClassifier

from evotree.estimators import ObliqueTreeClassifier
from evotree.experiments.experiment import tree_sizes


def test_sizes_of_trees_and_forests():
    X, y = load_iris(return_X_y=True)
    cart = DecisionTreeClassifier(random_state=0).fit(X, y)
    leaves = cart.get_n_leaves()
    sizes = {"leaves": leaves, "nodes": 2 * leaves - 1, "terms": leaves - 1}
    assert tree_sizes(cart) == sizes | {"complexity": 2 * leaves - 1, "depth": cart.get_depth()}
    forest = RandomForestClassifier(4, random_state=0).fit(X, y)
    leaves, sizes = sum(t.get_n_leaves() for t in forest.estimators_), tree_sizes(forest)
    assert (sizes["leaves"], sizes["nodes"], sizes["terms"]) == (leaves, 2 * leaves - 4, leaves - 4)
    oblique = ObliqueTreeClassifier("linear", max_depth=2).fit(X, y)
    sizes = tree_sizes(oblique)
    assert sizes["nodes"] == 2 * sizes["leaves"] - 1 == len(oblique.tree_)
    assert sizes["terms"] == 4 * (sizes["leaves"] - 1)
    bag = BaggingClassifier(ObliqueTreeClassifier("axis", max_depth=2), 3, random_state=0).fit(X, y)
    members = [tree_sizes(tree) for tree in bag.estimators_]
    assert all(tree["terms"] == tree["leaves"] - 1 for tree in members)
    assert tree_sizes(bag)["leaves"] == sum(tree["leaves"] for tree in members)


def node(coefficients, column=-1):
    """Return a node as STree has them; a leaf has no coefficients."""
    machine = SimpleNamespace(coef_=np.array(coefficients))
    return SimpleNamespace(
        is_leaf=lambda: not coefficients,
        get_classifier=lambda: machine,
        get_partition_column=lambda: column,
    )


class FakeSTree(DecisionTreeClassifier):
    """A tree that is looked into as STree is."""

    def nodes_leaves(self):
        return 5, 3

    def __iter__(self):
        inner = node([[1.0, 2.0], [0.0, 3.0], [4.0, 5.0]], 1), node([[1.0, 2.0]])
        return iter([*inner, *[node([])] * 3])


def test_a_node_of_stree_counts_the_machine_that_parts_it():
    sizes = tree_sizes(make_pipeline(MinMaxScaler(), FakeSTree()))
    assert sizes == {"nodes": 5, "leaves": 3, "terms": 1 + 2, "complexity": 6}
