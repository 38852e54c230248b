"""The command line of experiments, and the report of results that may be anybody's."""

import copy
import csv
import itertools
import json

import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from matplotlib import pyplot as plt

from evotree.cli.main import main
from evotree.experiments import report
from evotree.experiments.report import what_is_left_out, write_report
from evotree.experiments.store import FILE, read_runs
from tests.exported import mutate

# ---- commands ------------------------------------------------------------------------------------


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


# ---- no text is a path, a formula or Markdown ----------------------------------------------------


PICTURE = "accuracy_against_complexity.png"
FILES = {"report.md", "scores.csv", "tests.csv", FILE, PICTURE}


def results(metric="accuracy", methods="AB", value=0.9):
    """Return the lines of results: three folds of two methods."""
    head = {
        "name": "x",
        "metrics": {metric: True, "r2": True},
        "datasets": ["iris"],
        "methods": {name: {} for name in methods},
        "seeds": [0],
        "protocol": {"n_folds": 3},
        "shown": ["Protocol: folds.", "A: `tree()`"],
        "data": {"iris": {"source": "a file", "rows": 150, "columns": 4}},
    }
    fit = {
        "dataset": "iris",
        "seed": 0,
        "status": "done",
        "error": "",
        "versions": "{}",
    }
    sizes = {"complexity": 5, "leaves": 3, "seconds": 1.0, "finished": "2026-01-01"}
    rows = [
        fit
        | sizes
        | {"method": name, "fold": fold, metric: value + fold / 10, "r2": 0.5}
        for name in methods
        for fold in range(3)
    ]
    return [{"experiment": head}, *rows]


def write(folder, lines):
    folder.mkdir(exist_ok=True)
    (folder / FILE).write_text("\n".join(map(json.dumps, lines)) + "\n")
    return folder


@pytest.fixture
def no_pictures(monkeypatch):
    """Draw, and write nothing."""

    def close(ax, path):
        plt.close(ax.figure)
        return path

    monkeypatch.setattr(report, "save_picture", close)


@pytest.mark.parametrize("metric", ["../victim/accounts", "a\\b", "..", "c:a", ""])
def test_no_text_of_a_file_is_a_path(tmp_path, metric):
    victim = tmp_path / "victim" / "accounts.csv"
    victim.parent.mkdir()
    victim.write_text("precious")
    names = [metric, str(tmp_path / "victim" / "accounts")]
    for k, name in enumerate(names):
        folder = write(tmp_path / f"theirs{k}", results(name, ["A", f"{name}/B"]))
        assert main(["experiment", "report", str(folder)]) == 0
        assert {path.name for path in folder.iterdir()} <= FILES
    assert [path.read_text() for path in victim.parent.iterdir()] == ["precious"]
    assert len(list(tmp_path.iterdir())) == 3


@pytest.mark.parametrize("sign", "=+-@\t")
def test_no_cell_is_a_formula(tmp_path, no_pictures, sign):
    formula = sign + "cmd|' /C calc'!A1"
    folder = write(tmp_path, results(formula, ["A", formula], value=-0.9))
    write_report(folder, "A")
    for name in ("scores.csv", "tests.csv"):
        with (folder / name).open(newline="") as file:
            rows = list(csv.reader(file))
        texts = [cell for cells in rows for cell in cells if "calc" in cell]
        assert texts and all(text == f"'{formula}" for text in texts)
    # A number below 0 is no formula.
    assert ",-0.7" in (folder / "scores.csv").read_text()


def test_texts_are_shown_as_they_are(tmp_path, no_pictures):
    """Neither as headings, links, images and code, nor as columns of a table."""
    hostile = "a|b\n# c ![](http://d) <img src=e> `f`"
    head, *rows = results(methods=["A", hostile])
    head["experiment"] |= {"name": hostile, "shown": [f"{hostile}: `g`\n# h"]}
    head["experiment"]["data"]["iris"] = {"source": hostile, hostile: 1}
    rows[0] |= {"status": hostile, "error": hostile}
    write_report(write(tmp_path, [head, *rows]), hostile)
    text = (tmp_path / "report.md").read_text()
    shown = text.replace(f"![Score and complexity]({PICTURE})", "")
    assert "![" not in shown and "<img" not in shown.replace("\\<img", "")
    assert not any(line.startswith("# c") for line in text.splitlines())
    assert "\n# h" not in text


def test_a_metric_that_is_nowhere_blocks_no_other(tmp_path, no_pictures, recwarn):
    head, *rows = results()
    head["experiment"]["metrics"] = {"roc_auc": True, "accuracy": True}
    for row in rows:
        row["roc_auc"] = None
    rows[0]["accuracy"] = float("-inf")
    write_report(write(tmp_path, [head, *rows]), "A")
    text = (tmp_path / "report.md").read_text()
    assert (
        "roc\\_auc is missing in 6 of 6 fits, which do not count here, on iris" in text
    )
    assert "accuracy is missing in 1 of 6 fits" in text
    assert "B" in text.split("## accuracy")[1].split("##")[0] and not recwarn.list


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.data())
def test_odd_files_are_reported_or_refused_in_one_sentence(
    tmp_path_factory, no_pictures, data
):
    lines = copy.deepcopy(results())
    for _ in range(data.draw(st.integers(1, 3))):
        mutate(data.draw, lines)
    folder = write(tmp_path_factory.mktemp("odd"), lines)
    try:
        write_report(folder, data.draw(st.sampled_from([None, "A"])))
    except ValueError as error:
        assert 0 < len(str(error).splitlines()) <= 1
    assert {path.name for path in folder.iterdir()} <= FILES
