"""Default fits count rows as they were given, whatever the columns hold and weights are."""

import numpy as np
import pytest

from evotree import (
    ObliqueTreeClassifier,
    TAOClassifier,
)
from evotree.estimators import GREEDY_PRESETS


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
