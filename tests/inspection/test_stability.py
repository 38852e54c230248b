"""Refits to other rows: agreement where there is some, and an interval that holds."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.model_selection import StratifiedShuffleSplit

from evotree import (
    EvoTreeSurvival,
    ObliqueTreeClassifier,
)
from evotree.inspection import stability
from tests.estimators.test_groups import COPIES, copies, greedy
from tests.quick_models import BRIEF, evolved
from tests.survival.times import seen_until

AXIS = ObliqueTreeClassifier("axis", max_depth=1, random_state=0)


def test_a_clear_split_is_found_again_and_noise_is_not():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(200, 4)), columns=list("abcd"))
    clear = stability(AXIS, X, np.where(X.b > 0.0, "yes", "no"), n=6, random_state=0)
    assert clear.columns.to_dict() == {
        "b": 1.0
    } and clear.summary.root == pytest.approx(1.0)
    assert clear.summary.agreement > 0.97 and clear.summary["columns"] == 1.0
    noise = stability(AXIS, X, rng.permutation(np.arange(200) % 2), n=6, random_state=0)
    assert (noise.summary[:3] < clear.summary[:3]).all()


def spied(monkeypatch, kind):
    """Return a list that every fit of a kind of estimators joins, with its arguments."""
    fits, fit = [], kind.fit

    def spy(self, *args, **kwargs):
        fits.append((self, kwargs))
        return fit(self, *args, **kwargs)

    monkeypatch.setattr(kind, "fit", spy)
    return fits


def test_numbers_are_those_of_refits_by_hand(monkeypatch):
    X, y = load_iris(return_X_y=True)
    y = np.roll(y, 40)  # so that trees differ
    fits = spied(monkeypatch, ObliqueTreeClassifier)
    found = stability(AXIS, X, y, n=5, random_state=1)
    labels = np.array([model.predict(X) for model, _ in fits])
    differ = np.array([labels[a] != labels[b] for a in range(5) for b in range(a)])
    assert differ.any()
    np.testing.assert_allclose(found.disagreement, differ.mean(axis=0))
    assert found.summary.agreement == pytest.approx(1.0 - differ.mean())
    used = np.mean([model.tree_.weights[0] != 0.0 for model, _ in fits], axis=0)
    assert found.columns.to_dict() == {f"x{j}": used[j] for j in np.flatnonzero(used)}


def test_the_interval_is_that_of_the_corrected_resampled_t_test():
    """Refits share rows: their scores vary by more than one part in n (Nadeau and Bengio 2003)."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    y = (X[:, 0] + rng.normal(size=60) > 0.0).astype(int)
    n, coverage = 10, 0.95
    found = stability(AXIS, X, y, n=n, random_state=3).summary
    scores = []
    draws = StratifiedShuffleSplit(n, test_size=0.2, random_state=3)
    for train, test in draws.split(X, y):
        scores.append(clone(AXIS).fit(X[train], y[train]).score(X[test], y[test]))
    variance = np.var(scores, ddof=1) * (1 / n + 12 / 48)
    margin = stats.t.ppf((1 + coverage) / 2, n - 1) * np.sqrt(variance)
    assert found.score == pytest.approx(np.mean(scores))
    assert found.lower == pytest.approx(np.mean(scores) - margin)
    assert found.upper == pytest.approx(min(1.0, np.mean(scores) + margin))


def test_refits_to_times_agree_by_their_logarithms(monkeypatch):
    X, y = seen_until(120)
    fits = spied(monkeypatch, EvoTreeSurvival)
    model = evolved(EvoTreeSurvival, leaves="constant", **BRIEF)
    found = stability(model, X, (y[:, 0], y[:, 1]), n=4, random_state=0)
    risks = np.log([one.predict(X) for one, _ in fits])
    assert np.ptp(risks, axis=0).any()
    np.testing.assert_allclose(found.disagreement, risks.std(axis=0))
    assert found.summary.lower < found.summary.score < found.summary.upper


def test_bad_numbers_are_named():
    with pytest.raises(ValueError, match="n=1: allowed"):
        stability(AXIS, np.zeros((9, 1)), np.arange(9) % 2, n=1)


def test_refits_are_to_whole_groups(monkeypatch):
    X, y, groups, *_ = copies(n=20)
    fits = spied(monkeypatch, ObliqueTreeClassifier)
    model = greedy(pruning=None)
    of_groups = stability(model, X, y, n=4, random_state=0, groups=groups).summary
    for _, given in fits:
        _, counts = np.unique(given["groups"], return_counts=True)
        assert counts.tolist() == [COPIES] * 16
    # Copies tell the labels of rows that nothing else tells.
    assert stability(model, X, y, n=4, random_state=0).summary.score > of_groups.score
