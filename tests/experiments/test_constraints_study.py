"""The study of constraints: its rows, what it measures, its report."""

import numpy as np
import pandas as pd
import pytest

from evotree.experiments.protocols import Task
from evotree.experiments.studies import constraints
from evotree.experiments.studies.study import run_study, write_report


@pytest.fixture
def folder(tmp_path):
    """Return a folder with a regression data set of known signs, with gaps."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(80, 4)), columns=["cement", "water", "age", "slag"])
    target = table["cement"] - table["water"] + 0.1 * rng.normal(size=80)
    table.loc[:9, "slag"] = np.nan
    table.assign(target=target).to_csv(tmp_path / "concrete.csv", index=False)
    return tmp_path


def test_columns_have_the_signs_of_their_data_set(folder):
    task = Task("concrete", constraints.CART, 1, 0)
    parts = constraints.NamedProtocol(n_folds=5).take_parts(task, folder)
    assert len(parts.y_train) == 64 and not parts.X_train.isna().any(axis=None)
    signs = dict(zip(parts.X_train.columns, constraints.signs_of(parts.X_train), strict=True))
    assert signs["concrete/cement"] == signs["concrete/age"] == 1
    assert signs["concrete/water"] == -1
    assert signs["concrete/slag"] == signs["concrete/slag is missing"] == 0
    assert not constraints.signs_of(["wine/cement", "cement"]).any()


def test_the_plan_is_balanced_and_has_each_fit_once():
    experiment = constraints.make_experiment()
    tasks = experiment.tasks()
    assert len(set(tasks)) == len(tasks)
    n = len(constraints.SIGNS) * len(constraints.MONOTONIC)
    assert {(task.dataset, task.method) for task in tasks[:n]} == {
        (dataset, method) for dataset in constraints.SIGNS for method in constraints.MONOTONIC
    }
    folds = [task.fold for task in tasks]
    assert folds == sorted(folds) and folds[-1] == constraints.N_FOLDS - 1


class Known:
    """Predicts what the first column says, or its contrary."""

    signs_ = np.array([1, 0])

    def __init__(self, slope):
        self.best_estimator_, self.slope = self, slope

    def predict(self, X):
        return self.slope * X[:, 0] + X[:, 1]


@pytest.mark.parametrize(("slope", "share"), [(1.0, 0.0), (-1.0, 1.0), (0.0, 0.0)])
def test_pairs_show_what_is_broken(slope, share):
    X = pd.DataFrame(np.random.default_rng(0).normal(size=(50, 2)))
    assert constraints.broken_predictions(Known(slope), X, None) == share
    assert np.isnan(constraints.broken_probabilities(Known(slope), X, None))


def test_pairs_differ_in_one_column_of_known_sign():
    X = np.random.default_rng(0).normal(size=(50, 4))
    rows, raised, sign = constraints.raised_pairs(X, np.array([0, 1, -1, 0]))
    steps = raised - rows
    assert ((steps > 0.0).sum(axis=1) == 1).all() and not steps[:, [0, 3]].any()
    assert (sign == np.where(steps[:, 1] > 0.0, 1, -1)).all()
    assert all(np.isin(rows[:, j], X[:, j]).all() for j in range(4))


def test_monotonic_cart_keeps_the_signs(folder):
    out = folder / "out"
    methods = [constraints.CART, constraints.BOOSTING]
    runs, report = run_study(constraints.STUDY, folder, out, datasets=["concrete"], methods=methods)
    assert (runs["status"] == "done").all() and len(runs) == 2 * constraints.N_FOLDS
    assert (runs["broken_predictions"] == 0.0).all() and runs["broken_probabilities"].isna().all()
    assert (runs["score"] > 0.0).all()
    assert "10 of " in report.read_text(encoding="utf-8")


def test_the_report_compares_folds_that_all_methods_have(tmp_path):
    score = {constraints.FREE: 0.8, constraints.EVOTREE: 0.9, constraints.CART: 0.7}
    rows = [
        {
            "dataset": "pima",
            "method": method,
            "fold": fold,
            "seed": 0,
            "status": "done",
            "score": score.get(method, 0.85) - 0.5 * (fold == 1),
            "leaves": 4,
            "terms": 6,
            "violations": 3.0 if method == constraints.FREE else 0.0,
            "broken_predictions": 0.25 if method == constraints.FREE else 0.0,
            "broken_probabilities": 0.0,
        }
        for method in constraints.MONOTONIC
        for fold in (0, 1)
        if (method, fold) != (constraints.CART, 1)
    ]
    pd.DataFrame(rows).to_csv(tmp_path / "constraints_runs.csv", index=False)
    text = write_report(constraints.STUDY, tmp_path).read_text(encoding="utf-8")
    assert "| EvoTree | 1 / 0 / 0 | +0.1000 | 1.00 | 1.00 |" in text
    assert "| pima | 1 | 0.800 | 0.900 | 0.700 | 0.850 | 4.0 / 6.0 |" in text
    assert "| pima | 1 of 1 | 3.0 | 25.00 | 0.00 |" in text
    assert "| EvoTree monotonic | 1 | 0 of 1 | 0 of 1 | 0 of 1 |" in text
