"""The sizes of fitted trees and forests."""

import types

import numpy as np
from sklearn.datasets import load_iris
from sklearn.ensemble import BaggingClassifier, RandomForestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler
from sklearn.tree import DecisionTreeClassifier

from evotree.estimators import ObliqueTreeClassifier
from evotree.experiments.measures import tree_sizes


def test_sizes_of_trees_and_forests():
    X, y = load_iris(return_X_y=True)
    cart = DecisionTreeClassifier(random_state=0).fit(X, y)
    found = tree_sizes(cart)
    assert found["leaves"] == cart.get_n_leaves()
    assert found["nodes"] == found["leaves"] + found["terms"] == 2 * found["leaves"] - 1
    forest = RandomForestClassifier(4, random_state=0).fit(X, y)
    sizes = tree_sizes(forest)
    assert sizes["leaves"] == sum(tree.get_n_leaves() for tree in forest.estimators_)
    assert sizes["nodes"] == 2 * sizes["leaves"] - 4 == sizes["leaves"] + sizes["terms"]
    assert sizes["complexity"] == sizes["nodes"] and found["complexity"] == found["nodes"]
    oblique = ObliqueTreeClassifier("linear").fit(X, y)
    found = tree_sizes(oblique)
    assert found["nodes"] == 2 * found["leaves"] - 1 == len(oblique.tree_)
    assert found["terms"] == 4 * (found["leaves"] - 1)
    axis = ObliqueTreeClassifier.from_preset("APDT")
    found = tree_sizes(axis.fit(X, y))
    assert found["terms"] == found["leaves"] - 1 and found["complexity"] == found["nodes"]
    bag = BaggingClassifier(axis, 3, random_state=0).fit(X, y)
    sizes = [tree_sizes(tree) for tree in bag.estimators_]
    assert tree_sizes(bag)["leaves"] == sum(one["leaves"] for one in sizes)


class FakeNode:
    """A node as STree has them."""

    def __init__(self, coef=None, column=-1):
        self.coef, self.column = coef, column

    def is_leaf(self):
        return self.coef is None

    def get_classifier(self):
        return types.SimpleNamespace(coef_=np.array(self.coef))

    def get_partition_column(self):
        return self.column


class FakeSTree(DecisionTreeClassifier):
    """A tree that is looked into as STree is."""

    def nodes_leaves(self):
        return 5, 3

    def __iter__(self):
        three_classes = FakeNode([[1.0, 2.0], [0.0, 3.0], [4.0, 5.0]], 1)
        two_classes = FakeNode([[1.0, 2.0]])
        return iter([three_classes, FakeNode(), two_classes, FakeNode(), FakeNode()])


def test_a_node_of_stree_counts_the_machine_that_parts_it():
    found = tree_sizes(make_pipeline(MinMaxScaler(), FakeSTree()))
    assert found == {"nodes": 5, "leaves": 3, "terms": 1 + 2, "complexity": 6}
