"""Experiments run: the same rows for any number of workers, resumed, and never lost."""

import os
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.datasets import load_iris, load_wine
from sklearn.model_selection import cross_val_score
from sklearn.tree import DecisionTreeClassifier

from evotree import EvoTreeClassifier
from evotree.engine.config import Regularization
from evotree.experiments.execution import (
    LOG_FILE,
    do_fit,
    run_experiment,
    seed_method,
)
from evotree.experiments.experiment import Experiment
from evotree.experiments.protocols import Protocol, Task, stratified_folds
from evotree.experiments.store import FILE, read_curves, read_definition, read_runs
from tests.quick_models import evolved

TIMES = ["seconds", "score_seconds", "peak_memory_mb", "finished"]
TREE = DecisionTreeClassifier(max_depth=3)


class Odd(ClassifierMixin, BaseEstimator):
    """A classifier that does what it is told to, then predicts the first class."""

    def __init__(self, what="fit"):
        self.what = what

    def fit(self, X, y):
        """Fit slowly, fail or warn."""
        self.classes_ = np.unique(y)
        if self.what == "fail":
            raise RuntimeError("no such luck")
        time.sleep(0.2 if self.what == "slow" else 0.0)
        for _ in range(2 if self.what == "warn" else 0):
            warnings.warn("odd\nrows", RuntimeWarning, stacklevel=1)
        return self

    def predict(self, X):
        """Return the first class."""
        return np.full(len(X), self.classes_[0])


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    for name, load in (("iris", load_iris), ("wine", load_wine)):
        X, y = load(return_X_y=True)
        frame = pd.DataFrame(X).add_prefix("x").assign(target=y)
        frame.to_csv(folder / f"{name}.csv", index=False)
    return folder


def experiment(**changed):
    plain = Regularization(C=1.0, noise=0.0)
    quick = evolved(
        EvoTreeClassifier, max_generations=5, regularization=plain, size_penalty=0.01
    )
    methods = {"CART": TREE, "EvoTree": quick}
    arguments = {"name": "try", "datasets": ["iris", "wine"], "methods": methods}
    return Experiment(**arguments | {"protocol": Protocol(2)} | changed)


@pytest.mark.slow
def test_rows_are_the_same_for_any_workers(home, tmp_path):
    made = experiment()
    one = run_experiment(made, tmp_path / "one", home, jobs=1)
    two = run_experiment(made, tmp_path / "two", home, jobs=2)
    assert len(one) == 8 and (one["status"] == "done").all()
    pd.testing.assert_frame_equal(one.drop(columns=TIMES), two.drop(columns=TIMES))
    first, second = (read_curves(tmp_path / out) for out in ("one", "two"))
    assert {key[1] for key in first} == {"EvoTree"} and first.keys() == second.keys()
    for key, curve in first.items():
        assert curve["fitness_best"].equals(second[key]["fitness_best"])
    assert (one["seconds"] > 0).all() and (one["peak_memory_mb"] > 20).all()


def test_sources_are_kept_and_may_not_change(home, tmp_path):
    made = experiment(datasets=["iris"], methods={"CART": TREE})
    runs = run_experiment(made, tmp_path, home, jobs=1)
    kept = read_definition(tmp_path)
    assert kept["data"]["iris"]["source"].startswith("iris.csv, SHA-256 ")
    assert runs["versions"].str.contains("logical cores").all()
    other = tmp_path / "other"
    other.mkdir()
    (other / "iris.csv").write_bytes((home / "wine.csv").read_bytes())
    with pytest.raises(ValueError, match="data.iris.source was"):
        run_experiment(made, tmp_path, other)


def test_scores_are_those_of_scikit_learn(home, tmp_path):
    metrics = ["accuracy", "f1_macro", "train_accuracy"]
    made = experiment(
        methods={"CART": TREE}, datasets=["wine"], metrics=metrics, seeds=[3]
    )
    runs = run_experiment(made, tmp_path, home)
    X, y = load_wine(return_X_y=True)
    for fold, part in enumerate(stratified_folds(y, 2, 3)):
        state = Protocol(2).random_state(Task("wine", "CART", fold, 3))
        tree = seed_method(TREE, state)
        for metric in metrics[:2]:
            (expected,) = cross_val_score(tree, X, y, cv=[part], scoring=metric)
            assert runs[metric][fold] == pytest.approx(expected, abs=1e-12)
        rows = X[part[0]], y[part[0]]
        assert runs["train_accuracy"][fold] == tree.fit(*rows).score(*rows)


def test_what_goes_wrong_is_recorded_and_done_again_if_asked(home, tmp_path):
    methods = {what: Odd(what) for what in ("fit", "fail")}
    made = experiment(methods=methods, datasets=["iris"])
    runs = run_experiment(made, tmp_path, home)
    assert runs["status"].tolist() == ["failed", "failed", "done", "done"]
    assert runs["error"].str.contains("RuntimeError: no such luck").sum() == 2
    run_experiment(made, tmp_path, home, retry=("failed",))
    lines = (tmp_path / FILE).read_text().splitlines()
    assert sum('"finished"' in line for line in lines) == len(runs) + 2


def test_mistakes_are_found_before_any_work(home, tmp_path):
    with pytest.raises(FileNotFoundError, match="'none'"):
        run_experiment(experiment(datasets=["iris", "none"]), tmp_path, home)
    assert not (tmp_path / FILE).exists()


INTERRUPTED = """
import signal, sys
from pathlib import Path
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background has none
from evotree.cli.main import main
from tests.experiments.test_execution import *
from evotree.experiments import experiment as e
made = Experiment("i", ["iris"], {"s": Odd("slow")}, Protocol(9), range(99))
e.read_experiment = lambda path: made
table = "docs/experiments/small.toml"  # in whose place ours is taken
sys.exit(main(["experiment", "run", table, "--out", sys.argv[1], "--data-home", sys.argv[2]]))
"""


def test_a_metric_that_cannot_be_computed_loses_no_fit(home, caplog):
    """Wine has three classes: their AUC asks how they are to be compared."""
    fit = {"data_home": home, "task": Task("wine", "CART", 0, 0)}
    row, _ = do_fit(experiment(metrics=["accuracy", "roc_auc"]), **fit)
    assert row["accuracy"] > 0.5 and np.isnan(row["roc_auc"])
    assert "roc_auc cannot be computed: multi_class" in caplog.text
    with pytest.raises(ValueError, match="multi_class"):
        do_fit(experiment(metrics=["roc_auc"]), **fit)


def test_warnings_of_a_fit_are_logged_once_and_not_shown(tmp_path, recwarn):
    made = experiment(methods={"odd": Odd("warn")}, datasets=["sklearn:iris"])
    run_experiment(made, tmp_path)
    log = (tmp_path / LOG_FILE).read_text()
    for fold in (0, 1):
        text = rf"sklearn:iris, odd, fold {fold}, seed 0: RuntimeWarning: odd\nrows"
        assert log.count(text) == 1
    # Newer versions of Python warn of a fork beside threads.
    assert not [one for one in recwarn if one.category is RuntimeWarning]


def test_an_interrupt_ends_the_experiment_and_fails_no_fit(home, tmp_path):
    """As Ctrl-C does: the signal reaches the workers as well."""
    process = subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED, tmp_path, home],
        cwd=Path(__file__).parents[2],
        start_new_session=True,
        stderr=subprocess.PIPE,
        text=True,
    )
    while process.poll() is None and _count(tmp_path) < 2:
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGINT)
    _, error = process.communicate(timeout=60)
    assert process.returncode == 130 and "what was done is kept" in error, error
    runs = read_runs(tmp_path)
    assert 2 <= len(runs) < 891 and (runs["status"] == "done").all()


def _count(folder):
    file = folder / FILE
    return file.read_bytes().count(b'"status"') if file.exists() else 0
