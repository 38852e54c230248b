"""Bags of forests: of rows as they were given, of whole groups, and whatever the weights."""

import numpy as np
import pandas as pd
import pytest

from evotree import ObliqueForestClassifier, ObliqueForestRegressor
from evotree.estimators.rows import GROUPS
from evotree.forests import growing
from tests.estimators.test_groups import copies
from tests.estimators.test_rows_as_given import cells

KINDS = [ObliqueForestClassifier, ObliqueForestRegressor]


@pytest.mark.parametrize("bootstrap", [False, True])
def test_a_group_is_in_a_bag_whole_or_not_at_all(bootstrap, monkeypatch):
    X, y, groups, *_ = copies()
    members = []
    grow_forest = growing.grow_forest

    def kept(*arguments):
        members.append((arguments[1], grow_forest(*arguments)))
        return members[-1][1]

    monkeypatch.setattr("evotree.forests.estimators.grow_forest", kept)
    found = ObliqueForestClassifier(
        12, bootstrap=bootstrap, oob_score=True, random_state=0
    )
    found.fit(X, y, groups=groups)
    ((dataset, trees),) = members
    group_of = dataset.extras[GROUPS][dataset.distinct_of]
    for _, n_times in trees:
        drawn = [set(n_times[group_of == g].tolist()) for g in np.unique(group_of)]
        assert all(len(times) == 1 for times in drawn)
        assert 0 in n_times and n_times.any()
    # Each row is predicted by the trees that lack it, and so its whole group.
    of_group = pd.Series(np.isnan(found.oob_decision_function_[:, 0]))
    assert (of_group.groupby(groups).nunique() == 1).all()


@pytest.mark.parametrize("kind", KINDS)
def test_scores_out_of_bag_promise_no_more_than_those_of_single_rows(kind):
    """By 0.05 at most in the mean of four draws, and by 0.2 and more without groups.

    Of these targets nothing can be known but the copies. Leaves of so many rows are smaller
    where rows have copies, so that scores may be lower.
    """
    scores = {"once": [], "groups": [], "rows": []}
    for seed in range(4):
        X, _, groups, X_once, _ = copies(n=100, seed=seed)
        noise = np.random.default_rng(seed + 9).normal(size=100)
        y = noise > 0.0 if kind is ObliqueForestClassifier else noise
        model = kind(12, oob_score=True, random_state=0)
        scores["once"].append(model.fit(X_once, y).oob_score_)
        scores["groups"].append(model.fit(X, y[groups], groups=groups).oob_score_)
        scores["rows"].append(model.fit(X, y[groups]).oob_score_)
    once, grouped, alone = (np.mean(scores[how]) for how in scores)
    assert grouped <= once + 0.05
    assert alone >= once + 0.2


def test_bags_of_equal_rows_leave_some_of_them_out():
    X, y = cells(1500, 3)
    forest = ObliqueForestClassifier(10, oob_score=True, random_state=0).fit(
        X[:1000], y[:1000]
    )
    right = forest.predict(X[1000:]) == y[1000:]
    error = np.sqrt(right.var() * (1 / 500 + 1 / 500))
    assert abs(forest.oob_score_ - right.mean()) <= 3.0 * error
    known = ~np.isnan(forest.oob_decision_function_[:, 0])
    assert known.mean() > 0.8  # a row is in all ten bags with a chance of .8**10
