"""The study of costs: what trees cost, how data sets are priced, and how methods are compared."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.tree import DecisionTreeClassifier

from evotree.experiments.protocols import Task
from experiments.studies import costs
from experiments.studies.costs import CART


def random_prices(rng, n_features):
    """Return prices of features and of two groups that overlap."""
    alone = {(j,): float(rng.integers(1, 9)) for j in range(n_features)}
    return {**alone, (0, 1, 2): 10.0, (2, 3): float(rng.integers(1, 9))}


def naive_price(tree, row, prices):
    """Walk down one of scikit-learn's trees and add what its features need."""
    row, node, seen = row.astype(np.float32), 0, set()
    while tree.children_left[node] >= 0:
        j = tree.feature[node]
        seen.add(j)
        goes_left = row[j] <= tree.threshold[node]
        node = tree.children_left[node] if goes_left else tree.children_right[node]
    return sum(price for members, price in prices.items() if seen & set(members))


@pytest.mark.parametrize("seed", range(5))
def test_a_tree_of_scikit_learn_costs_what_a_walk_adds_up(seed):
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(150, 5)), rng.integers(0, 3, 150)
    prices = random_prices(rng, 5)
    errors = rng.integers(1, 9, (3, 3)) * (1.0 - np.eye(3))
    model = told(CART, errors, prices)
    model.classes_ = np.arange(3)
    cart = DecisionTreeClassifier(max_depth=4, ccp_alpha=0.002 * seed, random_state=seed)
    model.best_estimator_ = cart.fit(X[:100], y[:100])
    expected = [naive_price(cart.tree_, row, prices) for row in X]
    assert costs.features_paid(model, X, prices) == pytest.approx(expected)
    assert costs.feature_cost(model, X, y) == pytest.approx(np.mean(expected))
    assert costs.features_paid(model, X, None) == pytest.approx(np.zeros(150))
    errors = [model.cost_matrix[a, b] for a, b in zip(y, cart.predict(X), strict=True)]
    assert costs.error_cost(model, X, y) == pytest.approx(np.mean(errors))
    used = {j for j in cart.tree_.feature if j >= 0}
    assert costs.n_features_used(model) == len(used)


@pytest.fixture
def donors(tmp_path):
    """Write a table of the columns of blood-transfusion."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.integers(0, 50, (120, 4)), columns=list("abcd"))
    table["target"] = (table["a"] + rng.integers(0, 10, 120) > 40).astype(int)
    table.to_csv(tmp_path / "blood-transfusion.csv", index=False)
    return tmp_path


def test_methods_know_the_costs_of_their_data_set(donors):
    experiment = costs.EXPERIMENT
    task = Task("blood-transfusion-3", CART, 0, 0)
    known = experiment.protocol.method_for(experiment.methods[CART], task, donors)
    assert known.cost_matrix.tolist() == [[0.0, 1.0], [3.0, 0.0]] and known.feature_costs == {}
    assert experiment.methods[CART].cost_matrix is None


def told(name, errors, prices):
    """Return a method that knows costs."""
    return clone(costs.METHODS[name]).set_params(cost_matrix=errors, feature_costs=prices)
