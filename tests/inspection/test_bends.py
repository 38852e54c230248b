"""Questions to trees with columns that bend."""

import numpy as np
import pytest

from evotree import EvoTreeRegressor
from evotree.inspection import compare_rows, counterfactuals, shap_values
from tests.test_bends import fit_bent


def test_shapley_values_are_of_columns_and_add_up():
    model, X, _ = fit_bent(EvoTreeRegressor)
    shares = shap_values(model, X[:3], X[3:20])
    assert shares.values.shape == (3, 2)
    total = shares.values.sum(axis=1) + shares.base
    np.testing.assert_allclose(total, model.predict(X[:3]), atol=1e-9)
    found = compare_rows(model, X[:1], X[1:2]).rows.prediction
    np.testing.assert_allclose(found.astype(float), model.predict(X[:2]))


def test_counterfactuals_move_no_column_that_bends():
    model, X, _ = fit_bent(EvoTreeRegressor)
    row, before = X[:1], model.predict(X[:1])[0]
    target = before + 0.5, np.inf
    with pytest.raises(ValueError, match="'age' bends in this tree.*: allowed are"):
        counterfactuals(model, row, target)
    found = counterfactuals(model, row, target, fixed=["age"])[0]
    assert set(found.changes) == {"size"} and model.predict(found.row)[0] >= target[0]
    sizes = np.linspace(X["size"].min(), X["size"].max(), 2001)
    others = X.iloc[np.zeros(2001, dtype=int)].assign(size=sizes)
    reached = sizes[model.predict(others) >= target[0]]
    nearest = np.abs(reached - row["size"].iloc[0]).min()
    assert abs(found.row["size"].iloc[0] - row["size"].iloc[0]) <= nearest + 1e-3
