"""The command line of experiments and its report: run, resumed, reported; mistakes in one line."""

import itertools

import pandas as pd
import pytest

from evotree.cli.main import main
from evotree.experiments.execution import LOG_FILE
from evotree.experiments.report import what_is_left_out
from evotree.experiments.store import read_runs

TOML = """
name = "small"
datasets = ["sklearn:iris", "sklearn:wine", "sklearn:breast_cancer"]

[protocol]
n_folds = 2

[methods.CART]
estimator = "sklearn.tree.DecisionTreeClassifier"

[methods.stump]
estimator = "sklearn.tree.DecisionTreeClassifier"
max_depth = 1

[methods.EvoTree]
preset = "gea_odt"
max_generations = 3
"""


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "small.toml"
    path.write_text(TOML)
    return path


def run(*arguments):
    return main(["experiment", *map(str, arguments)])


@pytest.mark.slow
def test_an_experiment_is_run_resumed_and_reported(file, tmp_path, capsys):
    out = tmp_path / "out"
    assert run("run", file, "--out", out, "--n-jobs", 2, "--reference", "EvoTree") == 0
    printed = capsys.readouterr()
    # No bar: it is no terminal.
    assert printed.out.startswith("18 done\n") and printed.err == ""
    files = {"report.md", "scores.csv", "tests.csv", "accuracy_against_complexity.png"}
    written = [line.removeprefix("wrote ") for line in printed.out.splitlines()[1:]]
    assert sorted(written) == sorted(str(out / name) for name in files)
    text = (out / "report.md").read_text()
    for said in (
        *("](accuracy_against_complexity.png)", "win/tie/loss", "## complexity"),
        *("2 stratified folds", "`DecisionTreeClassifier(max_depth=1)`", "- Seeds: 0;"),
        "| sklearn:iris | scikit-learn's load\\_iris | 150 | 4 | 3 |",
        "standard error √((1/n + 1) s²), with 1 test rows to a training row",
        "Nothing: all 18 fits are done.",
    ):
        assert said in text
    runs = read_runs(out)
    scores = pd.read_csv(out / "scores.csv", index_col=["dataset", "method"])
    means = runs.groupby(["dataset", "method"])["accuracy"].mean()
    assert scores["mean"].to_dict() == pytest.approx(means.to_dict())
    assert len(pd.read_csv(out / "tests.csv")) == 6
    assert (out / LOG_FILE).read_text().count(": done in ") == 18
    assert run("run", file, "--out", out) == 0
    assert read_runs(out)["finished"].equals(runs["finished"])


def test_fits_that_fail_are_told(file, tmp_path, capsys):
    text = TOML.split("[methods.EvoTree]")[0]
    fails = 'estimator = "sklearn.svm.SVC"\nkernel = "precomputed"'
    file.write_text(text + f"[methods.machine]\n{fails}")
    assert run("run", file, "--out", tmp_path / "out") == 0
    printed = capsys.readouterr().out
    assert printed.startswith(
        "12 done, 6 failed\nfirst failed: sklearn:breast_cancer, machine: "
    )
    report = (tmp_path / "out" / "report.md").read_text()
    row = "| machine | sklearn:iris | failed | 2 | ValueError: Precomputed matrix"
    assert "6 of 18 fits are in no table:" in report and row in report


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("run", "none.toml", "--out", "out"), "none.toml"),
        (("run", "FILE", "--out", "out", "--reference", "x"), "CART, stump, EvoTree"),
        (("run", "FILE", "--out", "out", "--retry", "done"), "--retry"),
        (("report", "nowhere"), "holds no results"),
    ],
)
def test_mistakes_end_with_one_line(
    file, tmp_path, capsys, monkeypatch, arguments, message
):
    monkeypatch.chdir(tmp_path)
    assert run(*(file if one == "FILE" else one for one in arguments)) == 2
    error = capsys.readouterr().err
    assert message in error and error.count("\n") == 1


def test_what_was_not_run_is_told():
    methods, datasets = ["A", "B"], ["iris", "wine"]
    key = list(itertools.product(datasets, methods, range(3), (4, 7)))
    runs = pd.DataFrame(key, columns=["dataset", "method", "fold", "seed"])
    some = runs.assign(status="done", error="").drop(index=range(14, 18))
    planned = {
        "methods": dict.fromkeys(methods, {}),
        "datasets": datasets,
        "seeds": [4, 7],
    }
    planned["protocol"] = {"n_folds": 3}
    assert "Not run: A: 4 of 6 on wine." in "\n".join(what_is_left_out(some, planned))
