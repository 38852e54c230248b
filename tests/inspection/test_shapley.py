"""Shapley values against their definition: the mean over all orders of the columns."""

from itertools import permutations

import numpy as np
import pandas as pd
import pytest

from evotree.inspection import shap_values, shapley
from evotree.schema import CategoricalColumn, NumericColumn
from evotree.tables.columns import encode
from tests.random_trees import estimator_of, random_tree

COLUMNS = (
    NumericColumn("size", 1.0),
    CategoricalColumn("kind", ("p", "q", "r")),
    NumericColumn("age", 2.0, indicator=True),
)


def table(random, n):
    """Return rows with categories and missing numbers."""
    age = random.integers(0, 5, n).astype(float)
    age[random.random(n) < 0.3] = np.nan
    kind = random.choice(["p", "q", "r", "unknown"], n)
    return pd.DataFrame({"size": random.integers(0, 5, n), "kind": kind, "age": age})


def by_definition(predict, row, background):
    """Return the mean over the orders of the columns of what each adds."""
    gained = {}
    orders = list(permutations(range(row.shape[1])))
    for order in orders:
        mixed = background.copy()
        before = predict(mixed).mean(axis=0)
        for j in order:
            mixed.isetitem(j, [row.iloc[0, j]] * len(mixed))
            after = predict(mixed).mean(axis=0)
            gained[j] = gained.get(j, 0.0) + (after - before) / len(orders)
            before = after
    return np.array([gained[j] for j in range(row.shape[1])])


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("lines", [False, True])
def test_values_are_those_of_the_definition(seed, lines):
    random = np.random.default_rng(seed)
    rows, background = table(random, 3), table(random, 7)
    tree = random_tree(random, 6, lines=lines)
    model = estimator_of(tree, encode(COLUMNS, table(random, 50)), COLUMNS)
    predict = model.predict if lines else model.predict_proba
    found = shap_values(model, rows, background)
    for i in range(len(rows)):
        expected = by_definition(predict, rows.iloc[[i]], background)
        np.testing.assert_allclose(found.values[i], expected, atol=1e-12)
    np.testing.assert_allclose(found.base, predict(background).mean(axis=0))
    assert not found.standard_errors.any()


@pytest.mark.parametrize("seed", range(2))
def test_samples_are_as_exact_as_they_say(seed, monkeypatch):
    random = np.random.default_rng(seed)
    X = random.normal(2.0, 2.0, size=(60, 6))
    model = estimator_of(random_tree(random, 6, lines=True), X)
    exact = shap_values(model, X[:3], X[3:20])
    monkeypatch.setattr(shapley, "MAX_EXACT", 0)
    sampled = shap_values(model, X[:3], X[3:20], n_permutations=200, random_state=seed)
    again = shap_values(model, X[:3], X[3:20], n_permutations=200, random_state=seed)
    np.testing.assert_array_equal(sampled.values, again.values)
    away = np.abs(sampled.values - exact.values)
    assert (away <= 4.5 * sampled.standard_errors + 1e-12).all()
    assert sampled.standard_errors.max() > 0.0
    total = sampled.values.sum(axis=1) + sampled.base
    np.testing.assert_allclose(total, model.predict(X[:3]))


@pytest.mark.parametrize("number", [1, 2.5, "many"])
def test_bad_numbers_are_refused(number):
    X = np.zeros((3, 2))
    model = estimator_of(random_tree(np.random.default_rng(0), 2), X)
    with pytest.raises(ValueError, match="n_permutations"):
        shap_values(model, X, X, n_permutations=number)
