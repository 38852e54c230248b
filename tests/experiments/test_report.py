"""The report of results that may be anybody's: no text is a path, a formula or Markdown."""

import copy
import csv
import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from matplotlib import pyplot as plt

from evotree.cli.main import main
from evotree.experiments import report
from evotree.experiments.report import write_report
from evotree.experiments.store import FILE
from tests.exported import mutate

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
