"""Experiments run: the same rows for any number of workers, resumed, and never lost."""

import logging
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.datasets import load_diabetes, load_iris, load_wine
from sklearn.model_selection import cross_val_score
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from evotree import EvoTreeClassifier
from evotree.experiments.execution import run_experiment, seed_method
from evotree.experiments.experiment import Experiment, Protocol, Task
from evotree.experiments.log_file import log_to_file
from evotree.experiments.logs import collect_logs
from evotree.experiments.protocols import OFFICIAL, stratified_folds
from evotree.experiments.store import FILE, read_curves, read_runs

TIMES = ["seconds", "score_seconds", "peak_memory_mb", "finished"]
TREE = DecisionTreeClassifier(max_depth=3)


class Odd(ClassifierMixin, BaseEstimator):
    """A classifier that does what it is told to, then predicts the first class."""

    def __init__(self, what="fit", path=""):
        self.what = what
        self.path = path

    def fit(self, X, y):
        """Fit, fail, sleep or die."""
        self.classes_ = np.unique(y)
        if self.what == "fail":
            raise RuntimeError("no such luck")
        if self.what == "sleep":
            end = time.monotonic() + 60.0
            while time.monotonic() < end:
                time.sleep(0.01)
        if self.what == "die":
            os.kill(os.getpid(), signal.SIGKILL)
        if self.what == "slow":
            time.sleep(0.2)
        if self.what == "log":
            logging.getLogger("evotree.odd").warning("fitted %d rows\nof %d", len(X), os.getpid())
        return self

    def predict(self, X):
        """Return the first class."""
        return np.full(len(X), self.classes_[0])


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    for name, load in (("iris", load_iris), ("wine", load_wine), ("diabetes", load_diabetes)):
        X, y = load(return_X_y=True)
        frame = pd.DataFrame(X).add_prefix("x").assign(target=y)
        frame.to_csv(folder / f"{name}.csv", index=False)
    return folder


def experiment(**changed):
    quick = EvoTreeClassifier(
        max_generations=5, C=1.0, penalty="l2", noise=0.0, teacher=None, size_penalty=0.01
    )
    methods = {"CART": TREE, "EvoTree": quick}
    given = {"name": "try", "datasets": ["iris", "wine"], "methods": methods}
    return Experiment(**given | {"protocol": Protocol(2)} | changed)


def test_rows_are_the_same_for_any_workers(home, tmp_path):
    made = experiment(seeds=[0, 1])
    one = run_experiment(made, tmp_path / "one", home, jobs=1)
    two = run_experiment(made, tmp_path / "two", home, jobs=2)
    with ThreadPoolExecutor(2) as executor:
        threads = run_experiment(made, tmp_path / "threads", home, executor=executor)
    assert len(one) == 16 and (one["status"] == "done").all()
    pd.testing.assert_frame_equal(one.drop(columns=TIMES), two.drop(columns=TIMES))
    pd.testing.assert_frame_equal(one.drop(columns=TIMES), threads.drop(columns=TIMES))
    curves = [read_curves(tmp_path / out) for out in ("one", "two")]
    assert (
        set(curves[0]) == {key for key in curves[1] if key[1] == "EvoTree"} and len(curves[0]) == 8
    )
    for key, curve in curves[0].items():
        assert curve["fitness_best"].equals(curves[1][key]["fitness_best"]) and len(curve) == 6
    assert (one["leaves"] >= 2).all() and (one["nodes"] == 2 * one["leaves"] - 1).all()
    assert (one["seconds"] > 0).all() and (one["peak_memory_mb"] > 20).all()
    assert one["versions"].str.contains("scikit-learn").all()
    assert one["parameters"].str.contains("max_").all()


def test_rows_are_the_same_on_a_cluster(home, tmp_path):
    """Of real processes, Dask's."""
    distributed = pytest.importorskip("distributed")
    made = experiment(datasets=["iris"], methods={"CART": TREE, "Odd": Odd("log")})
    here = run_experiment(made, tmp_path / "here", home)
    logger = logging.getLogger("evotree")
    with (
        log_to_file(tmp_path / "log", logger=logger),
        collect_logs(multiprocessing.get_context("spawn"), logger) as collecting,
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=None, host="127.0.0.1"
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        given = {"executor": client.get_executor(), "initializers": (collecting,)}
        there = run_experiment(made, tmp_path / "there", home, **given)
    pd.testing.assert_frame_equal(here.drop(columns=TIMES), there.drop(columns=TIMES))
    lines = [line for line in (tmp_path / "log").read_text().splitlines() if "fitted" in line]
    assert [line.split("fitted ")[1].split("\\n")[0] for line in lines] == ["75 rows", "75 rows"]
    assert all(str(os.getpid()) not in line for line in lines)


def test_scores_are_those_of_scikit_learn(home, tmp_path):
    metrics = ["accuracy", "f1_macro", "train_accuracy"]
    made = experiment(methods={"CART": TREE}, datasets=["wine"], metrics=metrics, seeds=[3])
    runs = run_experiment(made, tmp_path, home)
    X, y = load_wine(return_X_y=True)
    folds = stratified_folds(y, 2, 3)
    for fold, (train, test) in enumerate(folds):
        tree = seed_method(TREE, Task("wine", "CART", fold, 3))
        for metric in metrics[:2]:
            (expected,) = cross_val_score(tree, X, y, cv=[(train, test)], scoring=metric)
            assert runs[metric][fold] == pytest.approx(expected, abs=1e-12)
        assert runs["train_accuracy"][fold] == tree.fit(X[train], y[train]).score(
            X[train], y[train]
        )


def test_targets_are_numbers_too(home, tmp_path):
    methods = {"CART": DecisionTreeRegressor(max_depth=2)}
    made = experiment(methods=methods, datasets=["diabetes"], metrics=["r2"])
    runs = run_experiment(made, tmp_path, home)
    assert runs["r2"].between(0.0, 0.6).all() and (runs["leaves"] == 4).all()


def test_seeds_differ_by_fold_and_repetition():
    seeds = {
        seed_method(TREE, Task("a", "b", fold, seed)).random_state
        for fold in (OFFICIAL, 1, 2)
        for seed in (0, 1, 2)
    }
    assert len(seeds) == 9
    assert seed_method(Odd(), Task("a", "b", 0, 0)).what == "fit"  # it has no random state


def test_what_goes_wrong_is_recorded_and_the_rest_goes_on(home, tmp_path):
    methods = {what: Odd(what) for what in ("fit", "fail", "sleep", "die")}
    made = experiment(methods=methods, datasets=["iris"])
    runs = run_experiment(made, tmp_path, home, jobs=2, time_limit=1.0).set_index("method")
    statuses = runs["status"].groupby(level=0).agg(set).to_dict()
    assert statuses == {
        "fit": {"done"},
        "fail": {"failed"},
        "sleep": {"timeout"},
        "die": {"crashed"},
    }
    assert runs.loc["fail", "error"].str.contains("RuntimeError: no such luck").all()
    assert runs["accuracy"].notna().sum() == 2
    again = run_experiment(made, tmp_path, home, retry=("failed",)).set_index("method")
    assert (again.loc["fail", "finished"] >= runs.loc["fail", "finished"]).all()
    assert again.loc["die", "finished"].equals(runs.loc["die", "finished"])


def test_a_second_start_does_only_what_is_missing(home, tmp_path):
    first = run_experiment(experiment(datasets=["iris"]), tmp_path, home)
    grown = run_experiment(experiment(), tmp_path, home)
    assert len(first) == 4 and len(grown) == 8
    both = grown[grown["dataset"] == "iris"].reset_index(drop=True)
    pd.testing.assert_frame_equal(first, both)  # the times, too


def test_mistakes_are_found_before_any_work(home, tmp_path):
    with pytest.raises(FileNotFoundError, match="none"):
        run_experiment(experiment(datasets=["iris", "none"]), tmp_path, home)
    with pytest.raises(ValueError, match="'iris', which has no official split"):
        run_experiment(experiment(protocol=Protocol(official=True)), tmp_path / "b", home)
    run_experiment(experiment(datasets=["iris"]), tmp_path / "c", home)
    other = experiment(datasets=["iris"], protocol=Protocol(3))
    with pytest.raises(ValueError, match="another experiment: protocol.n_folds was 2 and is 3"):
        run_experiment(other, tmp_path / "c", home)
    assert not (tmp_path / FILE).exists()


STUDY = """
import sys
from pathlib import Path
from evotree.experiments.execution import run_experiment
from evotree.experiments.experiment import Experiment, Protocol
from tests.experiments.test_execution import Odd
made = Experiment("killed", ["iris"], {"slow": Odd("slow")}, Protocol(5), seeds=range(3))
run_experiment(made, Path(sys.argv[1]), Path(sys.argv[2]), jobs=2)
"""


def test_killed_at_any_moment_nothing_is_lost_and_nothing_done_twice(home, tmp_path):
    before = pd.DataFrame({"fold": [], "seed": [], "finished": []})
    root = Path(__file__).parents[2]
    for n_rows in (2, 6, 15):
        process = subprocess.Popen([sys.executable, "-c", STUDY, tmp_path, home], cwd=root)
        while process.poll() is None:
            time.sleep(0.05)
            if n_rows < 15 and _count(tmp_path) >= n_rows:
                os.kill(process.pid, signal.SIGKILL)
                process.wait()
        runs = read_runs(tmp_path)
        kept = runs.merge(before, on=["fold", "seed", "finished"])
        assert len(kept) == len(before) and len(runs) >= n_rows
        before = runs[["fold", "seed", "finished"]]
    assert len(runs) == 15 and (runs["status"] == "done").all()


def _count(folder):
    try:
        return len(read_runs(folder))
    except OSError:
        return 0
