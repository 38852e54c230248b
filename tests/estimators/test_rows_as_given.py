"""Default fits count rows as they were given, whatever the columns hold and weights are."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_wine
from sklearn.model_selection import StratifiedKFold
from sklearn.tree import DecisionTreeClassifier

from evotree import (
    EvoTreeClassifier,
    EvoTreeRegressor,
    ObliqueTreeClassifier,
    TAOClassifier,
)
from evotree.estimators import GREEDY_PRESETS
from tests.quick_models import outputs


def cells(n_rows, seed):
    """Rows of three discrete columns, 16 cells in all, whose classes are drawn by the cell."""
    rng = np.random.default_rng(seed)
    X = np.column_stack(
        [rng.integers(0, 4, n_rows), rng.integers(0, 2, (n_rows, 2)).T[0]]
    )
    X = np.column_stack([X, rng.integers(0, 2, n_rows)]).astype(float)
    share = np.where(X[:, 2] == 1.0, 0.8, 0.2)
    share = np.where((X[:, 0] == 3.0) & (X[:, 1] == 0.0), 1.0 - share, share)
    return X, (rng.random(n_rows) < share).astype(int)


@pytest.mark.slow
def test_equal_rows_are_not_taken_for_one():
    X, y = cells(1500, 0)
    assert len(np.unique(np.column_stack([X, y]), axis=0)) == 32
    for train, test in StratifiedKFold(3, shuffle=True, random_state=0).split(X, y):
        fitted = EvoTreeClassifier(max_generations=10, random_state=0).fit(
            X[train], y[train]
        )
        cart = DecisionTreeClassifier().fit(X[train], y[train])
        assert fitted.score(X[test], y[test]) >= cart.score(X[test], y[test]) - 0.02


@pytest.mark.slow
@pytest.mark.parametrize(
    "kind",
    [EvoTreeClassifier, EvoTreeRegressor],
    ids=lambda kind: kind.__name__,
)
def test_a_factor_of_all_weights_changes_nothing(kind):
    X, y = load_wine(return_X_y=True)
    model = kind(random_state=0)
    if hasattr(model, "max_generations"):
        model.set_params(max_generations=10)
    weight = np.random.default_rng(0).integers(1, 4, len(y)) / 7.0
    for one, other in ((None, np.full(len(y), 1.0 / len(y))), (weight, 1e3 * weight)):
        first, second = (outputs(clone(model).fit(X, y, w), X) for w in (one, other))
        np.testing.assert_array_equal(first, second)


@pytest.mark.parametrize("name", sorted({*GREEDY_PRESETS} - {"WODT"}))
def test_rows_given_k_times_are_rows_of_weight_k(name):
    """But for splitters that weigh a loss against a penalty, by the number of rows."""
    X, y = cells(60, 2)
    times = np.random.default_rng(0).integers(1, 4, len(y))
    model = ObliqueTreeClassifier.from_preset(name, pruning=None, random_state=0)
    one = model.fit(X, y, times).predict(X)
    np.testing.assert_array_equal(
        one, model.fit(X.repeat(times, 0), y.repeat(times)).predict(X)
    )


def test_limits_count_equal_rows_one_by_one_whatever_they_weigh():
    X, y = np.array([[0.0, 1.0], [1.0, 0.0]]), np.array([0, 1])
    many, classes = np.repeat(X, 10, axis=0), np.repeat(y, 10)
    for make in (
        lambda n: ObliqueTreeClassifier("axis", min_samples_split=n),
        lambda n: ObliqueTreeClassifier("linear", min_samples_leaf=n // 2),
        lambda n: TAOClassifier(depth=2, min_samples_split=n),
    ):
        assert make(20).fit(many, classes).get_n_leaves() == 2
        assert make(22).fit(many, classes).get_n_leaves() == 1
        assert make(4).fit(X, y, sample_weight=[10.0, 10.0]).get_n_leaves() == 1
