"""Importances against sums over rows."""

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from evotree import EvoTreeClassifier, ObliqueTreeClassifier
from evotree.importances import importances
from evotree.schema import CategoricalColumn, NumericColumn
from tests.random_trees import CLASSES, estimator_of, grid, random_tree


def impurity(y):
    """Return the sum of the squared differences to the mean; of one-hot classes it is Gini's."""
    return np.square(y - y.mean(axis=0)).sum() if len(y) else 0.0


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("n_outputs", [1, 3])
def test_amounts_are_the_decreases_of_impurity_over_the_rows(seed, n_outputs):
    random = np.random.default_rng(seed)
    X = grid(range(5), range(5), range(5)).astype(float)
    y = random.normal(size=(len(X), 1))
    if n_outputs == 3:
        y = np.eye(3)[random.integers(0, len(CLASSES), len(X))]
    tree = random_tree(random, 3)
    passed = tree.decision_path(X).toarray().astype(bool)
    tree.values = np.array(
        [y[one].mean(axis=0) if one.any() else 0.0 * y[0] for one in passed.T]
    )
    tree.weighted_n_node_samples = passed.sum(axis=0).astype(float)
    expected = np.zeros(3)
    for k in np.flatnonzero(~tree.is_leaf):
        rows = [y[passed[:, node]] for node in (k, tree.left(k), tree.right(k))]
        share = np.abs(tree.weights[k]) * tree.spread
        share /= share.sum()
        expected += share * (impurity(rows[0]) - impurity(rows[1]) - impurity(rows[2]))
    np.testing.assert_allclose(importances(tree), expected / expected.sum())


def test_lines_of_leaves_count_by_what_they_explain():
    random = np.random.default_rng(0)
    X = random.normal(size=(2000, 3)) * [1.0, 2.0, 3.0]
    tree = random_tree(random, 3, depth=0, lines=True)
    tree.spread = X.std(axis=0)
    tree.models.coefficients[0] = [1.0, -1.0, 0.0]
    tree.weighted_n_node_samples = np.array([2000.0])
    np.testing.assert_allclose(importances(tree), [0.2, 0.8, 0.0], atol=0.01)


def test_features_of_a_column_count_together():
    columns = (
        NumericColumn("size", 0.0, True),
        CategoricalColumn("kind", ("p", "q", "r")),
    )
    tree = random_tree(np.random.default_rng(1), 5)
    model = estimator_of(tree, grid(range(5), *[range(2)] * 4).astype(float), columns)
    of_features = importances(tree)
    expected = [of_features[:2].sum(), of_features[2:].sum()]
    np.testing.assert_allclose(model.feature_importances_, expected)
    assert min(expected) > 0.0


def test_bad_input_is_refused():
    with pytest.raises(NotFittedError):
        EvoTreeClassifier().importances()
    assert not hasattr(ObliqueTreeClassifier(), "feature_importances_")
