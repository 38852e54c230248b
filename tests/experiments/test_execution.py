"""Experiments run: the same rows for any workers, resumed, never lost; tasks side by side."""

import multiprocessing
import os
import re
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
from evotree.experiments.runner import outcomes_of
from evotree.experiments.store import FILE, read_curves, read_definition, read_runs
from tests.quick_models import evolved
from tests.test_log import STARTS, assert_no_record_is_lost, chatter

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
    assert one["versions"].str.contains("scikit-learn").all()
    assert one.groupby("method")["settings"].nunique().eq(1).all()


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


# ---- tasks side by side --------------------------------------------------------------------------


def act(task):
    """Do what a task says."""
    what, value = task
    if what == "sleep":
        end = time.monotonic() + value
        while time.monotonic() < end:
            time.sleep(0.01)
    if what == "hang":
        pattern = re.compile("(a+)+$")
        pattern.match(64 * "a" + "b")
    if what == "fail":
        raise KeyError(value)
    if what == "exit":
        sys.exit(value)
    if what == "interrupt":
        raise KeyboardInterrupt
    if what == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    if what == "lambda":
        return lambda: value
    return what, value, os.getpid()


def done(tasks, *arguments, **options):
    outcomes = {
        outcome.task: outcome
        for outcome in outcomes_of(act, tasks, *arguments, **options)
    }
    assert set(outcomes) == set(tasks)
    return outcomes


@pytest.mark.parametrize("jobs", [1, 3])
def test_every_task_has_an_outcome_and_costs_no_other(jobs):
    """Also one that exits, is interrupted, or has a result that cannot be sent."""
    bad = {
        ("fail", 3): ("failed", "KeyError: 3"),
        ("exit", 0): ("failed", "SystemExit: 0"),
        ("exit", "bye"): ("failed", "SystemExit: bye"),
        ("interrupt", 0): ("failed", "KeyboardInterrupt"),
        ("lambda", 0): ("crashed", "<locals>"),
        ("lambda", 2): ("crashed", "<locals>"),
    }
    good = [("give", k) for k in range(20)]
    outcomes = done([*good[:9], *bad, *good[9:]], jobs)
    for task, (status, error) in bad.items():
        assert outcomes[task].status == status and error in outcomes[task].error
    assert "in act" in outcomes["fail", 3].error
    assert all(outcomes[task].result[:2] == task for task in good)
    assert os.getpid() not in {outcomes[task].result[2] for task in good}


@pytest.mark.parametrize(
    "method",
    [
        "fork",
        *(pytest.param(m, marks=pytest.mark.slow) for m in ("spawn", "forkserver")),
    ],
)
def test_a_task_that_kills_its_process_takes_no_other_with_it(method):
    tasks = [
        *(("give", k) for k in range(6)),
        ("die", 0),
        *(("give", -k) for k in range(1, 6)),
    ]
    outcomes = done(tasks, 2, mp_context=multiprocessing.get_context(method))
    assert outcomes.pop(("die", 0)).status == "crashed"
    assert {outcome.status for outcome in outcomes.values()} == {"done"}


def test_a_task_whose_time_is_up_is_ended_whatever_it_does():
    """Also one that never comes back to Python; the others have their results."""
    tasks = [("give", 1), ("hang", 0), ("sleep", 60.0), ("give", 2), ("give", 3)]
    outcomes = done(tasks, 2, time_limit=1.0)
    for task in (("hang", 0), ("sleep", 60.0)):
        assert outcomes.pop(task)[1:] == ("timeout", None, "stopped after 1 s")
    assert {outcome.status for outcome in outcomes.values()} == {"done"}


@pytest.mark.slow
def test_workers_end_with_a_parent_that_is_killed(tmp_path):
    path = tmp_path / "pids"
    parent = multiprocessing.get_context("spawn").Process(
        target=_endless, args=(str(path),)
    )
    parent.start()
    end = time.monotonic() + 60.0
    while (
        not (path.exists() and path.read_text().endswith("\n"))
        and time.monotonic() < end
    ):
        time.sleep(0.05)
    pids = [int(pid) for pid in path.read_text().split()]
    parent.kill()
    parent.join()
    end = time.monotonic() + 10.0
    while any(map(_lives, pids)) and time.monotonic() < end:
        time.sleep(0.1)
    assert pids and not any(map(_lives, pids))


def _report_pid(path):
    with open(path, "a") as file:
        file.write(f"{os.getpid()}\n")
    time.sleep(600.0)


def _endless(path):
    list(outcomes_of(_report_pid, [path]))


def _lives(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().split()[2] != "Z"
    except FileNotFoundError:
        return False


def test_stopping_early_kills_the_workers():
    outcomes = outcomes_of(act, [("give", 1), ("sleep", 600.0), ("sleep", 601.0)], 2)
    (_, _, (_, _, pid), _) = next(outcomes)
    outcomes.close()
    assert not _lives(pid)


# ---- the log -------------------------------------------------------------------------------------


def in_runner(start, tasks):
    context = multiprocessing.get_context(start)
    return [one.result for one in outcomes_of(chatter, tasks, 3, mp_context=context)]


@pytest.mark.parametrize("start", STARTS)
def test_workers_lose_no_record_and_mix_none(start, tmp_path):
    assert_no_record_is_lost(in_runner, start, tmp_path / "a.log")
