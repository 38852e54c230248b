"""Counterfactuals and Shapley values of columns that bend."""

import numpy as np
import pytest

from evotree import EvoTreeRegressor
from evotree.inspection import compare_rows, counterfactuals, shap_values
from evotree.schema import ABOVE, BELOW, LOG, Bend, NumericColumn, Schema
from tests import made_up
from tests.random_trees import random_tree
from tests.test_bends import fit_bent


def bent_model(seed, is_regressor):
    """Return an estimator of a random tree over two columns that bend, and its rows."""
    rng = np.random.default_rng(seed)
    schema = Schema(
        (
            NumericColumn("a", 1.0, bends=(Bend(LOG, 0.2), Bend(ABOVE, 2.0))),
            NumericColumn("b", 1.0, bends=(Bend(BELOW, 2.5), Bend(ABOVE, 1.0))),
        )
    )
    rows = rng.uniform(0.0, 4.0, (60, 2))
    features = schema.with_bends(rows)
    tree = random_tree(rng, features.shape[1], depth=2, lines=is_regressor)
    tree = tree.replaced(spread=features.std(axis=0))
    classes = None if is_regressor else (0, 1, 2)
    model = made_up.estimator(made_up.fitted(tree, schema, classes, features))
    targets = [(-1.0, 0.5), (1.5, np.inf)] if is_regressor else [0, 1, 2]
    return model, rows, [one if is_regressor else (one, one) for one in targets]


def counterfactual(model, x, ends, **limits):
    """Return the nearest point that is predicted within ends, or None where there is none."""
    target = ends[0] if hasattr(model, "classes_") else ends
    try:
        (one,) = counterfactuals(model, x, target, **limits)
    except ValueError:
        return None
    assert ends[0] <= model.predict(one.row)[0] <= ends[1]
    np.testing.assert_array_equal(model.encode(one.row, bends=True)[0], one.point)
    return one


def is_within(model, points, ends):
    predicted = model.predict(points)
    return (predicted >= ends[0]) & (predicted <= ends[1])


@pytest.mark.slow
@pytest.mark.parametrize("is_regressor", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_counterfactuals_move_columns_and_none_is_nearer(seed, is_regressor):
    model, rows, targets = bent_model(seed, is_regressor)
    spread = model.tree_.spread[[0, 3]]
    axes = [np.linspace(x.min(), x.max(), 161) for x in rows.T]
    grid = np.stack(np.meshgrid(*axes), axis=-1).reshape(-1, 2)
    for x in rows[:4]:
        for ends in targets:
            wanted = is_within(model, grid, ends)
            one = counterfactual(model, x, ends)
            if one is None:
                assert wanted.mean() < 0.01
                continue
            own = (np.abs(one.row[0] - x) / spread).sum()
            np.testing.assert_allclose(one.distance, own, atol=1e-9)
            if wanted.any():
                away = (np.abs(grid[wanted] - x) / spread).sum(axis=1).min()
                assert one.distance <= away + 2e-3


def test_shapley_values_are_of_columns_and_add_up():
    model, X, _ = fit_bent(EvoTreeRegressor)
    shares = shap_values(model, X[:3], X[3:20])
    assert shares.values.shape == (3, 2)
    total = shares.values.sum(axis=1) + shares.base
    np.testing.assert_allclose(total, model.predict(X[:3]), atol=1e-9)
    found = compare_rows(model, X[:1], X[1:2]).rows.prediction
    np.testing.assert_allclose(found.astype(float), model.predict(X[:2]))
