"""Bags of forests: of rows as they were given, of whole groups, and whatever the weights."""

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import r2_score

from evotree import ObliqueForestClassifier, ObliqueForestRegressor
from evotree.estimators.rows import GROUPS
from evotree.forests import growing
from tests.estimators.test_groups import copies
from tests.estimators.test_rows_as_given import cells

KINDS = [ObliqueForestClassifier, ObliqueForestRegressor]


def members_of(forest, X, y, monkeypatch, **given):
    """Fit a forest; return its data set, and its trees with what is in their bags."""
    made = []
    grow_forest = growing.grow_forest

    def kept(*arguments):
        made.append((arguments[1], grow_forest(*arguments)))
        return made[-1][1]

    monkeypatch.setattr("evotree.forests.estimators.grow_forest", kept)
    forest.fit(X, y, **given)
    return made[0]


def test_a_group_is_in_a_bag_whole_or_not_at_all(monkeypatch):
    X, y, groups, *_ = copies()
    forest = ObliqueForestClassifier(12, random_state=0)
    dataset, members = members_of(forest, X, y, monkeypatch, groups=groups)
    group_of = dataset.extras[GROUPS][dataset.distinct_of]
    for _, is_taken in members:
        shares = pd.Series(is_taken).groupby(group_of).mean()
        assert set(shares) == {0.0, 1.0}


@pytest.mark.parametrize("kind", KINDS)
def test_the_score_out_of_bag_is_that_of_trees_that_lack_a_row(kind, monkeypatch):
    rng = np.random.default_rng(0)
    X, weight = rng.normal(size=(80, 2)), rng.integers(1, 4, 80)
    y = X[:, 0] + rng.normal(size=80)
    y = y > 0.0 if kind is ObliqueForestClassifier else y
    forest = kind(9, oob_score=True, max_samples=0.5, random_state=2)
    dataset, members = members_of(forest, X, y, monkeypatch, sample_weight=weight)
    rows, of_rows = dataset.unmerged(), []
    for i, row in enumerate(rows.raw):
        (at,) = np.flatnonzero((row == X).all(axis=1))
        votes = [
            tree.predict_value([row])[0]
            for tree, is_taken in members
            if not is_taken[i]
        ]
        if votes:
            of_rows.append((y[at], np.mean(votes, axis=0), weight[at]))
    truth, votes, weights = (np.array(column) for column in zip(*of_rows, strict=True))
    if kind is ObliqueForestClassifier:
        expected = np.average(votes.argmax(axis=1) == truth, weights=weights)
    else:
        expected = r2_score(truth, votes[:, 0], sample_weight=weights)
    assert forest.oob_score_ == pytest.approx(expected)


def test_bags_of_equal_rows_leave_some_of_them_out():
    X, y = cells(1500, 3)
    forest = ObliqueForestClassifier(10, oob_score=True, random_state=0).fit(
        X[:1000], y[:1000]
    )
    right = forest.predict(X[1000:]) == y[1000:]
    error = np.sqrt(right.var() * (1 / 500 + 1 / 500))
    assert abs(forest.oob_score_ - right.mean()) <= 3.0 * error
