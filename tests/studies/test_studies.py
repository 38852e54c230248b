"""All studies: runs that go on where they were, plans, rows in git, reports, and a fit of each."""

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.tree import DecisionTreeClassifier

import experiments
from evotree.experiments.execution import run_experiment
from evotree.experiments.protocols import Task
from evotree.experiments.store import Store
from experiments import STUDIES, agreement, load_study
from experiments import study as base
from experiments.__main__ import main
from experiments.study import (
    Study,
    StudyProtocol,
    define,
    fill,
    read_rows,
    tables_of,
    write_rows,
)
from experiments.suites import OFFICIAL
from tests.experiments.test_store import COLUMNS, DEFINITION, row
from tests.quick_models import brief

RESULTS = Path(__file__).parents[2] / "docs" / "results"
every_study = pytest.mark.parametrize("name", STUDIES)


def write_data(folder, name, n_rows=60, n_features=3, n_classes=3):
    """Write a data set of noisy clusters, or of targets where there are no classes."""
    rng = np.random.default_rng(0)
    y = np.arange(n_rows) % max(n_classes, 2)
    X = pd.DataFrame(
        y[:, None] + 0.4 * rng.normal(size=(n_rows, n_features))
    ).add_prefix("x")
    target = y if n_classes else X["x0"] + 0.1 * rng.normal(size=n_rows)
    X.assign(target=target).to_csv(folder / f"{name}.csv", index=False)


def report_nothing(results):
    return {"n": len(results.runs)}


METHODS = {
    "stump": DecisionTreeClassifier(max_depth=1),
    "CART": DecisionTreeClassifier(),
}


@pytest.fixture
def quick(tmp_path, monkeypatch):
    """Return a maker of a study of a data set and two methods."""
    write_data(tmp_path, "toy", n_classes=2)
    (tmp_path / "quick.md").write_text("{written}: {n}")
    monkeypatch.setattr(base, "TEXTS", tmp_path)
    plan = [Task("toy", name, fold, 0) for name in METHODS for fold in range(3)]

    def make(**methods):
        shown = METHODS | methods
        made = define("quick", ["toy"], shown, StudyProtocol(3), plan=plan)
        return Study(made, report_nothing)

    return make


def test_a_study_goes_on_from_its_text_alone(tmp_path, quick):
    """Without the database, as a clone of the repository is."""
    out, again = tmp_path / "out", tmp_path / "again"
    study = quick()
    assert len(study.run(out, tmp_path, methods=["stump"])) == 3
    assert not study.page(out).exists()  # which is of the whole study
    study.write(out)
    text = study.page(out).read_text()
    assert text.endswith("3 of 6 planned fits in `quick_runs.csv`: 3")
    again.mkdir()
    shutil.copy(study.rows_file(out), again)
    assert len(study.run(str(again), str(tmp_path), jobs=2)) == 6
    assert "\n6 fits in" in study.page(again).read_text()
    first, second = (
        study.rows_file(folder).read_text().splitlines() for folder in (out, again)
    )
    assert first[0] == second[0] and set(first[1:]) < set(second[1:])  # the times, too
    whole = study.rows_file(again).read_text()
    study.run(again, tmp_path)
    assert study.rows_file(again).read_text() == whole


def test_rows_of_other_parameters_are_made_again(tmp_path, quick, caplog):
    quick().run(tmp_path / "out", tmp_path)
    before = read_rows(quick().rows_file(tmp_path / "out"))
    new = tmp_path / "new"
    new.mkdir()
    # What does not say with which parameters it was made counts.
    before.loc[before["method"] == "stump", "settings"] = None
    before.to_csv(quick().rows_file(new), index=False)
    other = quick(CART=DecisionTreeClassifier(max_depth=2))
    other.run(new, tmp_path)
    after = read_rows(other.rows_file(new))
    assert "3 rows of other settings do not count: CART" in caplog.text
    same = after["finished"] == before["finished"]
    assert same[after["method"] == "stump"].all() and after["settings"].nunique() == 1
    with pytest.raises(
        ValueError, match=r"methods.CART.parameters was .*'max_depth': 2"
    ):
        other.run(tmp_path / "out", tmp_path)


def test_what_is_done_is_written_as_csv_in_order(tmp_path):
    store = Store(tmp_path, COLUMNS, DEFINITION)
    for fold, status in ((2, "done"), (0, "done"), (1, "failed")):
        store.add(row(fold, accuracy=fold / 7, status=status, error="x"))
    write_rows(store, tmp_path / "runs.csv")
    rows = read_rows(tmp_path / "runs.csv")
    assert rows["fold"].tolist() == [0, 2] and rows["accuracy"].tolist() == [0.0, 2 / 7]
    assert list(rows) == [*rows.columns[:4], "accuracy"]
    with pytest.raises(ValueError, match="no column auc"):
        read_rows(tmp_path / "runs.csv", ["auc"])


def test_the_command_line(tmp_path, capsys):
    write_data(tmp_path, "iris")
    out = tmp_path / "out"
    command = [
        "wodt",
        "--data-home",
        str(tmp_path),
        "--out",
        str(out),
        "--datasets",
        "iris",
    ]
    assert main([*command, "--methods", "APDT"]) == 0
    printed = f"50 done\nwrote {out / 'wodt_runs.csv'}\n"
    assert capsys.readouterr().out == printed
    assert main(["wodt", "--out", str(out), "--report"]) == 2
    assert (
        "copy it there" in capsys.readouterr().err
    )  # the page has the other papers, too
    with pytest.raises(
        ValueError, match="no row of breast, cod-rna, connect4, .* or run all"
    ):
        tables_of(load_study("wodt"), out)
    assert main([*command, "--methods", "nothing"]) == 2
    assert (
        "methods names nothing: those of the study wodt are" in capsys.readouterr().err
    )
    with pytest.raises(SystemExit, match="2"):
        main(["c45", "--out", str(out)])
    with pytest.raises(ValueError, match="name='c45': allowed are benchmark, cedt"):
        load_study("c45")
    assert experiments.wodt is load_study("wodt") and not hasattr(experiments, "c45")


@every_study
def test_a_report_without_rows_says_what_is_missing(name, tmp_path, capsys):
    assert main([name, "--out", str(tmp_path / "new"), "--report"]) == 2
    said = capsys.readouterr().err
    lacking = (
        "cedt" if name in agreement.OWN else name
    )  # the first of those on its page
    assert f"has no file {lacking}_runs.csv: copy it there" in said
    assert said.count("\n") == 1


@every_study
def test_the_rows_in_git_are_those_of_the_study(name, tmp_path):
    """They fill its store, which gives them back as they were."""
    study = load_study(name)
    made, tasks = study.experiment, study.experiment.tasks()
    assert study.name == name and len(set(tasks)) == len(tasks) > 0
    store = Store(tmp_path, made.columns(), made.definition())
    fill(store, made, study.rows_file(RESULTS))
    assert set(store.done()) <= set(tasks)
    write_rows(store, study.rows_file(tmp_path))
    kept, written = (
        read_rows(study.rows_file(folder)) for folder in (RESULTS, tmp_path)
    )
    key = ["dataset", "method", "seed", "fold"]
    kept = kept.sort_values(key, ignore_index=True)[list(written)]
    pd.testing.assert_frame_equal(written, kept, check_exact=True, check_dtype=False)


@pytest.mark.parametrize(
    "name", [name for name in STUDIES if name not in agreement.OWN]
)
def test_the_report_is_that_in_git(name, tmp_path):
    shutil.copy(RESULTS / f"{name}_runs.csv", tmp_path)
    study = load_study(name)
    study.write(tmp_path)
    for page in (*study.also, name):
        text = (tmp_path / f"{page}.md").read_text(encoding="utf-8")
        assert text == (RESULTS / f"{page}.md").read_text(encoding="utf-8")
    for picture in RESULTS.glob(f"{name}*.png"):
        assert picture.name in text and (tmp_path / picture.name).stat().st_size > 5000


TINY = {
    "benchmark": ("iris", "Logistic"),
    "cedt": ("iris", "DT, unpruned"),
    "finds": ("spect", "exact"),
    "gea_odt": ("chessboard2", "GEA-ODT"),
    "oc1": ("POL", "1 start, 0 jumps"),
    "operators": ("heart", "first trees: OC1"),
    "pmlb": ("iris", "EvoTree"),
    "readable": ("iris", "CART"),
    "regression": ("bodyfat", "Ridge"),
    "srbench": ("192_vineyard", "EvoTree"),
    "steady": ("iris", "CART"),
    "survival": ("veterans", "SurvivalTree"),
    "tao": ("pendigits", "TAO, pendigits"),
    "wodt": ("iris", "WODT"),
}
"""A data set and a method of each study."""


@pytest.mark.slow
@every_study
def test_a_fit_of_each_study(name, tmp_path, monkeypatch):
    dataset, method = TINY[name]
    if name == "survival":
        pytest.importorskip("sksurv")
    study, out = load_study(name), tmp_path / "out"
    data = study.experiment.protocol
    if dataset not in base.PROBLEMS:
        n_classes = 0 if name in ("regression", "srbench") else 3
        folder = tmp_path / ("pmlb" if name == "pmlb" else "")
        folder.mkdir(exist_ok=True)
        write_data(folder, dataset, 90, 4, n_classes)
    if name == "tao":
        monkeypatch.setattr("experiments.suites.OFFICIAL_TRAIN_ROWS", {dataset: 60})
    tasks = [task for task in study.experiment.tasks() if task[:2] == (dataset, method)]
    made = study.experiment.methods[method]
    if hasattr(made, "max_generations"):
        made = brief(type(made), max_generations=6, patience=None)
    if name == "gea_odt":
        data = replace(data, n_train=80, n_test=50)
    methods = study.experiment.methods | {method: made}
    some = replace(study.experiment, plan=tasks[:2], methods=methods, protocol=data)
    study = replace(study, experiment=some)
    runs = study.run(out, tmp_path, datasets=[dataset])
    assert runs["status"].eq("done").all() and len(runs) == len(tasks[:2]) > 0
    scores = runs[[*some.metrics, *some.scorers]]
    # Sizes of the menu that no tree has, or a larger one has as well, have no loss.
    needed = scores.drop(columns=list(scores.filter(regex="^(held_out|lost)_")))
    assert needed.notna().all(axis=None)
    assert len(read_rows(study.rows_file(out))) == len(runs)


def test_rows_and_seeds_of_a_fit_are_those_of_the_rows_in_git(tmp_path):
    """One fit of a study is done again, and gives the same figures."""
    kept = read_rows(RESULTS / "oc1_runs.csv").set_index(
        ["dataset", "method", "fold", "seed"]
    )
    plan = [Task("POL", "1 start, 5 jumps", OFFICIAL, 3)]
    made = replace(load_study("oc1").experiment, plan=plan)
    row = run_experiment(made, tmp_path).iloc[0]
    for name in ("accuracy", "train_accuracy", "leaves", "depth"):
        assert row[name] == kept.loc[plan[0], name]
