"""The default beside other models on a table: equal folds, whole tables, sizes, and the command."""

import re
from functools import partial

import numpy as np
import pandas as pd
import pytest
from matplotlib.image import imread
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.datasets import load_iris
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression

import evotree.experiments
from evotree.cli.main import main
from evotree.experiments import execution, rivals, runner
from evotree.experiments.protocols import folds_of

QUICK = {"max_generations": 2, "size_penalty": 0.01, "term_penalty": 0.0}


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """Evolve for a moment, without what takes long or need not be installed."""
    for name in ("EvoTreeClassifier", "EvoTreeRegressor"):
        monkeypatch.setattr(rivals, name, partial(getattr(rivals, name), **QUICK))
    monkeypatch.setattr(rivals, "find_spec", lambda name: None)


@pytest.fixture
def in_process(monkeypatch):
    """Do the fits here, where they can be looked at."""

    def outcomes_of(run, tasks, jobs):
        for task in tasks:
            yield runner.attempt(run, task)

    monkeypatch.setattr(runner, "outcomes_of", outcomes_of)


@pytest.fixture(scope="module")
def table():
    """Draw rows with categories and gaps, in groups, in which both say something."""
    rng = np.random.default_rng(0)
    n = 120
    X = pd.DataFrame({"size": rng.normal(size=n), "noise": rng.normal(size=n)})
    X["town"] = rng.choice(["Bonn", "Kiel", "Ulm"], n)
    y = np.where(X["size"] + (X["town"] == "Ulm") > 0.5, "yes", "no")
    X.loc[::7, "size"] = np.nan
    X.loc[3::11, "town"] = None
    X["empty"] = np.nan
    return X, y, np.arange(n) // 3


@pytest.mark.slow
def test_all_methods_read_categories_and_gaps(table):
    """Equal seeds give equal runs, on any number of processes."""
    X, y, _ = table
    comparison = evotree.experiments.compare(X, y, n_folds=2, n_jobs=2)
    runs = comparison.runs
    assert runs.groupby("method").size().tolist() == 6 * [2]
    assert runs["accuracy"].between(0.5, 1.0).all() and runs["AUC"].gt(0.5).all()
    assert runs[["log loss", "complexity", "seconds"]].gt(0.0).all(axis=None)
    assert all(name in str(comparison) for name in runs["method"].unique())
    again = rivals.compare(X, y, n_folds=2).runs
    other = rivals.compare(X, y, n_folds=2, random_state=1).runs
    pd.testing.assert_frame_equal(*(k.drop(columns="seconds") for k in (runs, again)))
    assert not other["accuracy"].equals(runs["accuracy"])


@pytest.mark.filterwarnings("error")
def test_differences_are_those_of_equal_folds(table, in_process):
    X, y, _ = table
    comparison = rivals.compare(X, y, n_folds=4)
    by_fold = comparison.runs.pivot(index="fold", columns="method", values="accuracy")
    for less, texts in (
        ("EvoTree", comparison.means("EvoTree")),
        (None, comparison.means()),
    ):
        for method, text in texts["accuracy"].items():
            gaps = by_fold[method] - (by_fold[less] if less else 0.0)
            expected = gaps.mean(), np.sqrt((1 / 4 + 1 / 3) * gaps.var())
            figures = [float(part.strip("* ")) for part in text.split("±")]
            assert figures == pytest.approx(expected, abs=6e-4)


@pytest.mark.parametrize("is_time", [False, True])
def test_rows_that_are_not_alike_are_held_out_so_by_all(
    table, in_process, monkeypatch, is_time
):
    X, y, beside = table
    taken = []
    monkeypatch.setattr(
        execution,
        "seed_method",
        lambda method, seed: taken.append(Recorder()) or taken[-1],
    )
    names = {"time": beside} if is_time else {"groups": [f"g{k}" for k in beside]}
    X = X.assign(row=np.arange(len(X)))
    rivals.compare(X, y, n_folds=3, **names)
    for model in taken:
        train, test = beside[model.train], beside[model.test]
        assert not set(train) & set(test)
        assert not is_time or max(train) < min(test)
    for name, model in zip(list(rivals.rivals(2)) * 3, taken, strict=True):
        group = beside[model.train]
        inner = model.beside.get("cv", model.cv)
        if "EvoTree" in name and not is_time:
            labels = model.beside["groups"]
            assert len({*zip(labels, group, strict=True)}) == len({*group})
        elif "EvoTree" in name or name == "CART":
            for fit, hold in inner:
                assert not set(group[fit]) & set(group[hold])
                assert not is_time or max(group[fit]) < min(group[hold])


class Recorder(ClassifierMixin, BaseEstimator):
    """A model that knows which rows it was told, and says the first class."""

    cv = None
    coef_, intercept_ = np.ones(1), 0.0

    def set_params(self, gridsearchcv__cv):
        self.cv = gridsearchcv__cv

    def fit(self, X, y, **beside):
        self.train, self.classes_, self.beside = (
            X["row"].to_numpy(int),
            np.unique(y),
            beside,
        )

    def predict_proba(self, X):
        self.test = X["row"].to_numpy(int)
        return np.tile(np.eye(len(self.classes_))[0], (len(X), 1))

    def predict(self, X):
        return np.full(len(X), self.classes_[0])


@pytest.mark.parametrize("stratified", [False, True])
def test_folds_hold_every_row_out_once_or_later(stratified):
    y, times = np.arange(30) % 3, np.arange(30) // 2
    deal = partial(folds_of, y, 3, random_state=0, stratified=stratified)
    held_out = np.concatenate([test for _, test in deal()])
    assert sorted(held_out) == list(range(30))
    for train, test in deal(None, times):
        assert times[train].max() < times[test].min()
    with pytest.raises(ValueError, match="2 different times"):
        deal(None, y == 0)


def test_a_model_that_fails_is_left_out_and_ours_has_to_work(
    table, in_process, monkeypatch
):
    X, y, _ = table

    def fail(self, X, y):
        raise ArithmeticError("no trees today")

    with monkeypatch.context() as patch:
        patch.setattr(HistGradientBoostingClassifier, "fit", fail)
        with pytest.warns(UserWarning, match="boosting is left out.*no trees today"):
            comparison = rivals.compare(X, y, n_folds=2)
    assert "boosting" not in str(comparison)
    monkeypatch.setattr(rivals.EvoTreeClassifier.func, "fit", fail)
    with pytest.raises(ValueError, match="EvoTree failed: .*no trees today"):
        rivals.compare(X, y, n_folds=2)


def test_sizes_count_what_models_are_made_of():
    X, y = load_iris(return_X_y=True)
    y = y > 0
    linear = LogisticRegression().fit(X, y)
    assert rivals.sizes_of(linear)["complexity"] == 5
    boosting = HistGradientBoostingClassifier(max_iter=3, max_leaf_nodes=2).fit(X, y)
    assert rivals.sizes_of(boosting) == {"leaves": 6, "complexity": 9}


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ({"groups": np.arange(120), "time": np.arange(120)}, "one of them"),
        ({"task": "ranking"}, "task='ranking'"),
        ({"n_folds": 1}, "'n_folds' parameter .* Got 1"),
        ({"groups": np.arange(119)}, "inconsistent"),
        ({"time": np.full(120, np.nan)}, "missing"),
        ({"y": np.ones((120, 2))}, r"y should be a 1d array.*\(120, 2\)"),
    ],
)
def test_arguments_are_checked(table, wrong, named):
    with pytest.raises(ValueError, match=named):
        rivals.compare(**{"X": table[0], "y": table[1], **wrong})


@pytest.mark.filterwarnings("ignore:The least populated class")
def test_scores_that_no_fold_has_are_said(table, in_process):
    X, y, _ = table
    shown = str(rivals.compare(X, np.where(np.arange(120) == 5, "once", y), n_folds=2))
    assert "AUC, log loss: of folds alone that have rows of all classes." in shown
    assert "nan" not in shown and re.search(r"EvoTree  +0\.\d+ ± 0\.\d+  +–  +–", shown)


@pytest.mark.parametrize("is_numeric", [False, True])
def test_the_command_prints_draws_and_keeps(table, tmp_path, capsys, is_numeric):
    X, y, beside = table
    target = X["size"].fillna(0.0) * 1000.0 if is_numeric else y
    X.assign(y=target, town_of=beside).to_csv(tmp_path / "rows.csv", index=False)
    plot = tmp_path / "runs.png"
    command = f"compare {tmp_path / 'rows.csv'} --target y --group town_of --folds 2"
    assert main([*command.split(), "--plot", str(plot)]) == 0
    printed = capsys.readouterr().out
    assert "4 columns" in printed and "of whole groups" in printed
    assert ("MAE" in printed) == is_numeric and ("AUC" in printed) != is_numeric
    assert imread(plot).std() > 0.0
