"""The study of times to an event: its rows, its scores, and what was aimed at."""

from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.base import clone

from evotree.experiments.protocols import Task
from evotree.survival import Times, survival
from experiments.studies import survival as study
from tests.survival.times import seen_until

pytest.importorskip("sksurv")


def drawn(n=200, seed=0):
    """Return rows and times as the study has them, those to train on and those to test on."""
    X, y = seen_until(2 * n, seed)
    times = np.empty(2 * n, dtype=[("event", bool), ("time", float)])
    times["event"], times["time"] = y.T
    # Censoring is known up to the last time of the training rows.
    last = int(times["time"].argmax())
    X[[0, last]], times[[0, last]] = X[[last, 0]], times[[last, 0]]
    return X[:n], times[:n], X[n:], times[n:]


def model_of(y, risks, alive):
    """Return a method as it is after a fit: it predicts risks, and functions of survival."""
    functions = SimpleNamespace(predict_survival_function=lambda X: alive)
    return SimpleNamespace(y_=y, predict=lambda X: risks, best_estimator_=functions)


@pytest.mark.parametrize("dataset", ["veterans", "flchain"])
def test_folds_have_like_shares_of_events(dataset, monkeypatch):
    monkeypatch.setattr(study, "MOST_ROWS", 1000)
    protocol = study.SurvivalProtocol(5)
    data = protocol.load(dataset, None)
    assert study.CAUSES not in data.X
    shares, n_rows = [], 0
    for fold in range(5):
        parts = protocol.take_parts(Task(dataset, study.COX, fold, 0), None)
        assert len(parts.y_train) == min(1000, len(data.y) - len(parts.y_test))
        shares += [parts.y_train["event"].mean(), parts.y_test["event"].mean()]
        n_rows += len(parts.y_test)
    assert n_rows == len(data.y)
    np.testing.assert_allclose(shares, data.y["event"].mean(), atol=0.04)
    facts = protocol.facts(dataset, None)
    assert facts["events"] == data.y["event"].sum() and facts["rows"] == n_rows


def test_one_curve_for_all_saves_nothing_and_the_true_ones_do():
    X_train, y_train, X, y = drawn()
    curve = survival(Times.read(y_train), np.ones(len(y_train)))
    same = model_of(y_train, np.ones(len(y)), [curve] * len(y))
    assert study.brier_saved(same, X, y) == pytest.approx(0.0, abs=1e-12)
    assert study.uno(same, X, y) == study.harrell(same, X, y) == 0.5
    rate = np.where(X[:, 0] > 0.0, 4.0, 1.0)
    alive = [lambda at, one=one: np.exp(-one * at) for one in rate]
    true = model_of(y_train, rate, alive)
    for score in (study.uno, study.harrell):
        assert score(true, X, y) > 0.6
    assert study.brier_saved(true, X, y) > 0.1


@pytest.mark.parametrize("method", [study.STREED, study.COX])
def test_rivals_of_a_chosen_size_are_found(method):
    if method == study.STREED:
        pytest.importorskip("pystreed")
    X, y, X_test, y_test = drawn(80)
    model = clone(study.EXPERIMENT.methods[method]).fit(X, y)
    sizes = model.sizes_
    assert sizes["leaves"] >= 1 and 0 <= sizes["terms"] <= max(3, sizes["leaves"] - 1)
    assert study.harrell(model, X_test, y_test) > 0.5
    assert study.brier_saved(model, X_test, y_test) > 0.0
