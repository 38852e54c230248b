"""The command line as its users call it, mistakes included."""

import io
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import warnings
from pathlib import Path
from unittest.mock import patch

import hypothesis
import numpy as np
import pandas as pd
import pytest
from hypothesis import assume
from hypothesis import strategies as st
from sklearn.datasets import load_iris
from sklearn.metrics import recall_score
from sklearn.model_selection import train_test_split

from evotree import EvoTreeClassifier, EvoTreeRegressor
from evotree.cli import commands, rows
from evotree.cli.main import main, make_parser
from evotree.cli.options import COMMANDS, search_parameters
from evotree.export import FORMS
from evotree.model_file import digest_of, load_model
from evotree.registry import parts_of
from tests.quick_models import interrupts_raise
from tests.survival.times import seen_until

PARAMETERS = {path for _, path, _ in search_parameters()}
FIT = ("fit", "iris.csv", "--target", "species", "--out", "m.json")
QUICK = ["--max-generations", "10", "--population-size", "16", "--size-penalty", "0.01"]


@pytest.fixture
def run(capsys, tmp_path, monkeypatch):
    """Return a function that runs a command in a folder of its own: status, output, messages."""
    monkeypatch.chdir(tmp_path)

    def call(*arguments):
        status = main([str(argument) for argument in arguments])
        return status, *capsys.readouterr()

    return call


@pytest.fixture(scope="module")
def iris():
    bunch = load_iris(as_frame=True)
    frame = bunch.data.rename(
        columns=lambda name: name.removesuffix(" (cm)").replace(" ", "_")
    )
    return frame.assign(species=bunch.target_names[bunch.target])


@pytest.fixture
def iris_csv(iris, tmp_path):
    iris.to_csv(tmp_path / "iris.csv", index=False)
    return tmp_path / "iris.csv"


@pytest.fixture(scope="module")
def model_bytes(iris, tmp_path_factory):
    """Return the content of a model file of the irises."""
    folder = tmp_path_factory.mktemp("model")
    iris.to_csv(folder / "iris.csv", index=False)
    arguments = [
        "fit",
        folder / "iris.csv",
        "--target",
        "species",
        "--out",
        folder / "model.json",
    ]
    assert main([*map(str, arguments), *QUICK]) == 0
    return (folder / "model.json").read_bytes()


@pytest.fixture
def model_json(model_bytes, tmp_path):
    """Return a model of the irises."""
    (tmp_path / "model.json").write_bytes(model_bytes)
    return tmp_path / "model.json"


def succeeded(result):
    """Check that a command came to its end; return its output and its messages."""
    status, out, err = result
    assert status == 0, err
    return out, err


def assert_error(result, *named):
    """Check that a command ended with one line that names what is wrong."""
    status, out, err = result
    assert (status, out) == (2, "")
    *messages, last = err.splitlines()
    assert last.startswith("evotree: error: ")
    assert not any(
        line.startswith(("Traceback", "evotree: error", "usage")) for line in messages
    )
    for word in named:
        assert word in last


def test_a_fit_says_how_good_it_is(run, iris, iris_csv):
    fit = ("fit", iris_csv, "--target", "species", "--out", "model.json", *QUICK)
    out, err = succeeded(run(*fit, "--test-size", "0.2"))
    model = load_model("model.json")
    training = model.training
    rows_held_out = train_test_split(
        iris, test_size=0.2, random_state=0, stratify=iris["species"]
    )[1]
    by_class = recall_score(
        rows_held_out["species"], model.predict(rows_held_out), average=None
    )
    for line in (
        f"training   accuracy {training['accuracy']:.4f} on 120 rows\n",
        f"test       accuracy {training['test_accuracy']:.4f} on 30 rows",
        "(always the most frequent class: 0.3333)\n",
        model.summary(),
        "wrote model.json",
    ):
        assert line in out
    for name, recall in zip(model.classes, by_class, strict=True):
        assert re.search(rf" {name} +[\d.]+ +{recall:.4f} ", out)
    # As many test rows of each class: the mean of the recalls is the accuracy.
    np.testing.assert_allclose(training["test_accuracy"], by_class.mean())


def test_categories_and_missing_values(run, iris):
    frame = iris.assign(
        petal_width=iris["petal_width"].where(iris.index % 5 > 0),
        colour=np.where(iris["petal_length"] > 2, "blue", "white"),
        empty=np.nan,
        same="same",
        number=np.where(iris["species"] == "setosa", 1, 2),
    )
    frame.loc[::7, "colour"] = np.nan
    frame.loc[:2, "number"] = np.nan
    frame.to_csv("mixed.csv.gz", index=False)
    status, _, err = run(
        *("fit", "mixed.csv.gz", "--target", "number", "--out", "m.json", *QUICK),
        *("--drop", "sepal_length", "species", "--drop", "sepal_width"),
    )
    assert status == 0
    assert "left out, without 'number': 3 of 150 rows" in err
    model = load_model("m.json")
    assert model.classes.tolist() == [1, 2]
    # One feature for two colours, the rarer one, and one for each column's missing cells.
    assert model.feature_names == (
        *("petal_length", "petal_width", "petal_width is missing"),
        *("colour is white", "colour is missing", "empty"),
    )
    _, _, err = run("predict", "m.json", "mixed.csv.gz")
    assert err.startswith(f"accuracy {model.training['accuracy']:.4f} ")
    frame.assign(colour="green", empty="text", number=None).to_csv(
        "later.csv", index=False
    )
    status, out, err = run("predict", "m.json", "later.csv")
    assert (status, err) == (0, "")
    assert set(out.split()) == {"prediction", "1", "2"}


@pytest.fixture
def told(monkeypatch):
    """Return what the estimator is told that a command would fit, and let it not fit."""
    parameters = {}

    def fit(self, X, y, sample_weight=None, *, groups=None, cv=None):
        parameters.clear()
        parameters.update(self.get_params(), X=X, y=y, sample_weight=sample_weight)
        parameters.update(groups=groups, cv=cv)
        raise ValueError(f"not fitted: {type(self).__name__}")

    for kind in (EvoTreeClassifier, EvoTreeRegressor):
        monkeypatch.setattr(kind, "fit", fit)
    return parameters


def test_classes_have_the_weights_that_are_asked_for(run, iris_csv, told):
    for given, expected in (
        ([], None),
        (["balanced"], "balanced"),
        (["setosa=2.5", "virginica=1"], {"setosa": 2.5, "virginica": 1.0}),
    ):
        assert_error(
            run(*FIT, *(["--class-weight", *given] if given else [])), "not fitted"
        )
        assert told["class_weight"] == expected
    named = "numbers for the classes setosa, versicolor, virginica"
    assert_error(run(*FIT, "--class-weight", "rose=1"), named)
    assert_error(run(*FIT, "--class-weight", "balanced", "setosa=1"), "not both")
    iris_csv.write_text("no table")  # all else is found before it is read
    assert_error(run(*FIT, "--class-weight", "equal"), "class_weight", "equal")


def test_what_estimators_check_is_said_as_they_say_it(run, iris_csv):
    for option, value, said in (
        ("class-weight", "setosa=-1", "class_weight={'setosa': -1}: allowed are"),
        ("monotonic-cst", "petal_width=2", "must be either -1, 0 or 1. Got 2"),
        (
            "class-weight",
            "setosa=many",
            "--class-weight setosa=many: allowed are numbers",
        ),
        ("objective", "poisson", "objective='poisson': allowed are 'accuracy'"),
    ):
        assert_error(run(*FIT, f"--{option}", value), said)


@pytest.mark.parametrize(
    ("name", "cells", "is_left_out"),
    [
        ("Unnamed: 0", range(150), True),
        ("Unnamed: 0", np.arange(150) * 7 + 3, True),
        ("day", range(150), True),
        ("day", range(1, 151), True),
        ("day", range(2, 152), False),
        ("day", range(0, 300, 2), False),
        ("day", np.arange(150)[::-1], False),
        ("price", np.arange(150) * 7 + 3, False),
        *(
            (name, np.arange(150)[::-1] + 9, True)
            for name in ("id", "ID", "PassengerId", "customer_id", "row number")
        ),
        *((name, np.arange(150)[::-1] + 9, False) for name in ("width", "humid")),
        ("id", np.arange(150) // 2, False),
        ("id", np.arange(150)[::-1] / 4, False),
        ("id", np.r_[np.nan, np.arange(1.0, 150.0)], False),
    ],
)
def test_row_numbers_are_left_out(run, iris, told, name, cells, is_left_out):
    iris.assign(**{name: cells})[[name, *iris]].to_csv("iris.csv", index=False)
    *_, err = run(*FIT)
    assert (name in told["X"]) != is_left_out
    assert (f"only tell rows apart: {name!r}" in err) == (is_left_out)
    for option in ("--keep", "--categorical"):
        if option == "--keep" or len(set(cells)) < 150:
            *_, err = run(*FIT, option, name)
            assert name in told["X"] and "left out" not in err


WORDS = st.sampled_from(["?", "N/A", "null", "", "-", "1,234", "much"])


@hypothesis.given(
    numbers=st.lists(st.integers(1, 5) | st.floats(-9.0, 9.0), min_size=40),
    words=st.lists(WORDS, max_size=4),
    are_numbers=st.booleans(),
)
def test_numbers_with_a_few_words_are_numbers_with_gaps(numbers, words, are_numbers):
    cells = [*map(str, words), *map(str, numbers)]
    frame = pd.DataFrame({"x": cells, "kind": ["a"] * len(cells)}, dtype=object)
    assume(len({word for word in words if word[1:]}) < len(set(map(float, numbers))))
    with patch.object(rows, "say") as say:
        table = rows.words_as_gaps(frame, {"x": "numbers"}, are_numbers)
    assert table["kind"].equals(frame["kind"])
    if not words:
        assert table["x"].equals(frame["x"]) and not say.called
        return
    np.testing.assert_array_equal(
        table["x"], [*[np.nan] * len(words), *map(float, numbers)]
    )
    ((said,), _) = say.call_args
    assert all(f"{word!r} ({words.count(word)})" in said for word in words)


@hypothesis.given(words=st.lists(st.sampled_from(["?", "N/A", "null"]), min_size=1))
def test_words_for_a_missing_number_may_be_many(words):
    frame = pd.DataFrame({"x": ["1", "2", *words]}, dtype=object)
    assert rows.words_as_gaps(frame, {"x": "numbers"})["x"].isna().sum() == len(words)
    only = frame.iloc[2:]
    assert rows.words_as_gaps(only, {"x": "numbers"})["x"].equals(only["x"])
    assert (
        rows.words_as_gaps(only, {"x": "numbers"}, are_numbers=True)["x"].isna().all()
    )


@pytest.mark.parametrize(
    "cells", [["a", "b"] * 75, ["1", "2", "crew"] * 50, ["1"] * 140 + ["a", "b"] * 5]
)
def test_categories_stay_categories(run, iris, told, cells):
    iris.assign(kind=cells).to_csv("iris.csv", index=False)
    *_, err = run(*FIT)
    assert told["X"]["kind"].tolist() == cells and "missing" not in err


def test_words_among_numbers_are_told_in_fit_and_predict(run, iris):
    frame = iris.astype({"petal_length": object, "petal_width": object})
    frame["petal_width"] = frame["petal_width"].map("{:.0f}".format)
    frame.loc[::20, ["petal_length", "petal_width"]] = "?"
    frame.to_csv("iris.csv", index=False)
    status, _, err = run(*FIT, *QUICK, "--categorical", "petal_width")
    said = "missing in the numbers of 'petal_length': '?' (8)\n"
    assert status == 0 and said in err and "'petal_width'" not in err
    model = load_model("m.json")
    assert model.schema[2].fill and model.schema[3].levels
    _, _, err = run("predict", "m.json", "iris.csv")
    assert f"accuracy {model.training['accuracy']:.4f} " in err


def test_tables_of_another_form_are_read(run, iris, iris_csv, model_json):
    form = ("--read", "sep=;", "decimal=,", "encoding=cp1252")
    expected = run("predict", model_json, iris_csv)[1]
    frame = iris.drop(columns="species").assign(name="é")
    text = frame.to_csv(index=False, sep=";", decimal=",")
    Path("semi.csv").write_bytes(text.encode("cp1252"))
    assert run("predict", model_json, "semi.csv", *form)[1] == expected
    _, out, err = run("predict", model_json, "semi.csv", "--read", form[-1])
    assert out == expected and "--read sep=" in err and "--read decimal=" in err
    assert_error(run("predict", model_json, "semi.csv"), "encoding=cp1252")


def test_options_become_parameters(run, iris, told):
    names = [
        f"row {k}" for k in range(150)
    ]  # no categories, save where they are told to be
    frame = iris.assign(code=np.arange(150) % 3, name=names, w=np.arange(150.0) % 7)
    frame = frame[frame["species"] != "setosa"].astype({"species": object})
    frame.iloc[0, 4] = None
    frame.to_csv("iris.csv", index=False)
    options = ("--leaves", "linear", "--precision", "3", "--sample-weight", "w")
    constraint = ("--monotonic-cst", "petal_width=1", "sepal_width=-1")
    for share in ((), ("--test-size", "0.3")):
        run(*FIT, *options, *constraint, "--categorical", "code", "name", *share)
        assert told["monotonic_cst"] == {"petal_width": 1, "sepal_width": -1}
        assert (told["leaves"], told["precision"]) == ("linear", 3)
        assert [*told["X"].dtypes[4:]] == ["category"] * 2
        codes = frame["code"].to_numpy()[told["X"].index - 1]
        assert told["X"]["code"].tolist() == [f"{code}" for code in codes]
        assert list(told["X"]) == [*iris.columns[:4], "code", "name"]
        # The rows of the file that are learned from: the first one has no target.
        assert len(told["X"]) == (69 if share else 99) and 0 not in told["X"].index
        of_file = frame["w"].to_numpy()[told["X"].index - 1]
        np.testing.assert_array_equal(told["sample_weight"], of_file)


def test_test_rows_and_folds_are_of_whole_groups(run, iris_csv, iris, told):
    groups = np.array([f"{k:03}" for k in np.arange(150) // 4])
    frame = iris.assign(patient=groups)
    frame.to_csv("iris.csv", index=False)
    run(*FIT, "--group", "patient", "--test-size", "0.3")
    kept = groups[told["X"].index - 1]
    assert "patient" not in told["X"] and told["groups"].tolist() == kept.tolist()
    left = set(groups) - set(kept)
    assert 0.2 < len(left) / len(set(groups)) < 0.4
    assert len(kept) == sum(group not in left for group in groups)
    frame.assign(patient=[None, *groups[1:]]).to_csv("iris.csv", index=False)
    status, _, err = run(*FIT, "--group", "patient")
    assert (
        status == 2
        and "--group: 1 rows have no name of a group, the first is data row 1" in err
    )


@pytest.mark.parametrize("dates", [False, True])
def test_test_rows_and_folds_are_later_than_those_trained_on(
    run, iris_csv, iris, told, dates
):
    days = np.random.default_rng(0).permutation(np.arange(150) // 3)
    times = pd.Series(pd.Timestamp("2026-01-01") + pd.to_timedelta(days, unit="D"))
    frame = iris.assign(day=times.astype(str) if dates else days)
    frame.to_csv("iris.csv", index=False)
    run(*FIT, "--time", "day", "--test-size", "0.3")
    kept = days[told["X"].index - 1]
    assert "day" not in told["X"] and sorted(kept) == sorted(days[days < 35])
    assert len(told["cv"]) == 5
    for train, test in told["cv"]:
        assert kept[train].max() < kept[test].min()
    assert_error(run(*FIT, "--time", "species"), "is the target")
    assert_error(run(*FIT, "--time", "day", "--group", "day"), "not allowed with")
    # No order of day and month is guessed.
    frame.assign(day="03.02.2026").to_csv("iris.csv", index=False)
    assert_error(run(*FIT, "--time", "day"), "no number, or date such as", "dayfirst=")
    read = ("--read", "parse_dates=['day']", "dayfirst=True")
    assert "no dates" not in run(*FIT, "--time", "day", *read)[2]


def test_times_to_an_event_are_fitted_predicted_and_reported(run):
    X, y = seen_until(200)
    table = pd.DataFrame(X, columns=["a", "b", "c"])
    table = table.assign(dead=y[:, 0] == 1.0, days=y[:, 1])
    table.to_csv("days.csv", index=False)
    fit = ("fit", "days.csv", "--target", "days", "--event", "dead", "--out", "m.json")
    out, err = succeeded(run(*fit, *QUICK, "--test-size", "0.25"))
    model = load_model("m.json")
    assert "dead" not in model.used_columns and "time, by the risk" in out
    known = model.training
    assert f"concordance {known['test_concordance']:.4f} on 50 rows" in out
    status, out, err = run("predict", "m.json", "days.csv")
    risks = pd.read_csv(io.StringIO(out))["prediction"]
    np.testing.assert_allclose(risks, model.predict(table))
    assert (status, err) == (0, "")
    assert_error(run(*fit, "--objective", "poisson"), "--objective is not for survival")
    table.assign(dead="soon").to_csv("days.csv", index=False)
    assert_error(run(*fit), "--event: 200 rows", "data row 1, which has 'soon'")


def test_a_tree_of_the_front_is_selected(run, iris_csv):
    n_leaves = {}
    for rule in ("complexity<=4", "leaves<=2", "accurate", "chosen"):
        out, err = succeeded(run(*FIT, *QUICK, "--size-penalty", "0", "--select", rule))
        model = load_model("m.json")
        n_leaves[rule] = model.tree.n_leaves
        assert (f"chosen     by --select {rule}\n" in out) == (rule != "chosen")
    assert n_leaves["complexity<=4"] == n_leaves["leaves<=2"] == 2
    assert n_leaves["accurate"] > 2


@pytest.mark.parametrize(
    "option",
    ["target", "drop", "keep", "categorical", "sample-weight", "group", "time"],
)
def test_options_name_columns(run, iris_csv, option):
    named = f"--{option} 'rose': there is no such column; the columns are sepal_length"
    assert_error(run(*FIT, f"--{option}", "rose"), named)
    near = "no such column (did you mean 'petal_width'?); the columns are"
    assert_error(run(*FIT, f"--{option}", "Petal_Width"), near)
    assert_error(run(*FIT, f"--{option}", "petal width"), near)
    assert_error(run(*FIT, "--monotonic-cst", "rose=1"), "--monotonic-cst 'rose'")


@pytest.mark.parametrize("form", ["python", "c", "sql"])
def test_probabilities_are_exported(run, model_json, form):
    assert run("export", model_json, "--to", form, "--proba", "--out", "code")[0] == 0
    expected = FORMS[form](load_model(model_json), probability=True)
    assert Path("code").read_text(encoding="utf-8") == expected
    assert_error(run("export", model_json, "--to", "rules", "--proba"), "--to rules")
    assert_error(run("export", model_json, "--to", "onnx"), "--out")


def test_packages_that_lack_are_named(run, model_json, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    export = ("export", model_json, "--to", "onnx", "--out", "m.onnx")
    assert_error(run(*export), "pip install 'treevolve[onnx]'")


@pytest.mark.parametrize("command", [[], ["experiment"]])
def test_a_command_that_lacks_gets_the_help(run, command):
    status, out, err = run(*command)
    assert (status, out) == (2, "")
    assert err.startswith(f"usage: {' '.join(['evotree', *command])} [-h]")
    assert "\ncommands:\n" in err and "\nexample:\n" in err


def test_errors_cost_what_a_table_says(run, iris, iris_csv):
    fit = (*FIT, *QUICK, "--cost-matrix", "costs.csv")
    text = "true,setosa,virginica,versicolor\nvirginica,9,0,3\nsetosa,0,2.5,1\n"
    Path("costs.csv").write_text(f"{text}versicolor,4,5,0\n", encoding="utf-8")
    out, err = succeeded(run(*fit))
    costs = pd.read_csv("costs.csv", index_col="true")
    predicted = load_model("m.json").predict(iris)
    pairs = zip(iris["species"], predicted, strict=True)
    mean = np.mean([costs.at[pair] for pair in pairs])
    base = min(costs.loc[iris["species"], label].mean() for label in costs)
    for said in (out, run("predict", "m.json", "iris.csv")[2]):
        told = f"{mean:.4g}, by the best constant answer {base:.4g}, accuracy "
        assert f"mean cost a row {told}" in said
    assert out.count("held-out cost a row") == 1  # what was chosen is said once


@pytest.mark.parametrize("share", ["0.2", "0"])
def test_fit_writes_a_report(run, iris_csv, share):
    fit = (*FIT, *QUICK, "--test-size", share)
    status, out, err = run(*fit, "--report", "page.html")
    assert status == 0 and out.endswith("wrote page.html\n"), err
    page = Path("page.html").read_text(encoding="utf-8")
    n_rows = 30 if share == "0.2" else 150
    assert '"target":"species"' in page and f'"total":{n_rows}' in page


def test_the_model_is_written_after_an_interrupt(run, iris_csv, monkeypatch):
    def interrupt(evolution):
        if evolution.generation == 3:
            os.kill(os.getpid(), signal.SIGINT)

    fit = EvoTreeClassifier.fit

    def fit_and_interrupt(self, *data):
        self.callbacks = [interrupt]
        return fit(self, *data)

    monkeypatch.setattr(EvoTreeClassifier, "fit", fit_and_interrupt)
    with interrupts_raise():
        status, out, err = run(*FIT, *QUICK)
    assert status == 0
    assert "the model is the best tree so far" in err and "interrupted" in out
    assert load_model("m.json").training["generations"] == 3


@pytest.mark.parametrize(
    ("error", "status", "last"),
    [
        (KeyboardInterrupt(), 130, "evotree: interrupted, nothing was written\n"),
        (ValueError("not\nfitted"), 2, "evotree: error: not fitted\n"),
    ],
)
def test_a_fit_that_fails_writes_nothing(
    run, iris_csv, monkeypatch, error, status, last
):
    """Warnings and errors are lines."""

    def fit(*_):
        warnings.warn("the first\nof all", stacklevel=1)
        raise error

    monkeypatch.setattr(EvoTreeClassifier, "fit", fit)
    expected = (status, "", f"evotree: warning: the first of all\n{last}")
    assert run(*FIT) == expected and not Path("m.json").exists()


def test_a_reader_that_goes_away_is_no_error(model_json, iris_csv):
    command = [
        sys.executable,
        "-m",
        "evotree",
        "predict",
        str(model_json),
        str(iris_csv),
    ]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        process.stdout.close()
        err = process.stderr.read().decode()
    assert process.returncode == 1
    assert "Traceback" not in err and "Exception ignored" not in err


EXAMPLES = {
    "evotree": ["evotree fit --help"],
    **{f"evotree {name}": command.examples for name, command in COMMANDS.items()},
    **{
        f"evotree experiment {name}": command.examples
        for name, command in COMMANDS["experiment"].commands.items()
    },
}


@pytest.mark.parametrize(("command", "lines"), EXAMPLES.items())
def test_help_ends_with_an_example_of_the_command(command, lines, capsys):
    with pytest.raises(SystemExit, match="0"):
        main([*command.split()[1:], "--help"])
    said = capsys.readouterr().out.partition("\nexample:\n")[2]
    assert [line.strip() for line in said.splitlines()] == [*lines]
    assert lines[-1].startswith(command)
    for line in lines:
        program, *arguments = shlex.split(line)
        if program == "python":
            compile(arguments[arguments.index("-c") + 1], command, "exec")
        elif "--help" not in arguments:
            make_parser().parse_args(arguments)


def test_parameters_that_are_not_given_are_the_classifiers_own(
    run, iris_csv, told, capsys
):
    run(*FIT)
    own = EvoTreeClassifier(random_state=0).get_params()
    assert {name: told[name] for name in PARAMETERS} == {
        name: own[name] for name in PARAMETERS
    }
    fit = (*FIT, *QUICK)
    run(*fit, "--random-state", "3", "--term-penalty", "auto")
    expected = own | {"max_generations": 10, "evolution__population_size": 16}
    expected |= {"size_penalty": 0.01, "term_penalty": "auto", "random_state": 3}
    assert {n: told[n] for n in PARAMETERS} == {n: expected[n] for n in PARAMETERS}
    for name, text, value in (
        ("evolution__shapes", "none", None),
        ("evolution__shapes", "auto", "auto"),
        ("evolution__shapes", "age=[('above', 52.0)]", {"age": [("above", 52.0)]}),
        ("evolution__hold", "[0, 2]", [0, 2]),
        ("interaction_cst", "[['a', 'b']]", [["a", "b"]]),
        ("max_split_terms", "2", 2),
        ("probability", "leaf", "leaf"),
        ("evolution__patience", "none", None),
        ("evolution__max_samples", "3", 3),
        ("evolution__max_samples", "0.5", 0.5),
        ("precision", "auto", "auto"),
    ):
        option = name.removeprefix("evolution__").replace("_", "-")
        assert_error(run(*FIT, f"--{option}", text), "not fitted")
        assert told[name] == value and type(told[name]) is type(value)
    with pytest.raises(SystemExit):
        run("fit", "--help")
    text = " ".join(capsys.readouterr().out.split())
    assert f"default={own['evolution__population_size']})" in text
    assert all(
        f" --{name.rpartition('__')[2].replace('_', '-')} " in text
        for name in PARAMETERS
    )


def test_a_fit_goes_on_from_its_checkpoint(run, iris_csv):
    data = ("fit", iris_csv, "--target", "species", "--size-penalty", "0.01")
    first = (*data, "--max-generations", "3", "--out", "m.json")
    assert run(*first, "--checkpoint", "run.npz")[0] == 0
    rest = (*data, "--max-generations", "6", "--out", "m.json", "--resume")
    assert run(*rest, "run.npz")[0] == 0
    assert load_model("m.json").training["generations"] == 6
    assert_error(run(*rest, iris_csv), "is not a checkpoint")


def test_fit_and_predict_numbers(run):
    frame = pd.DataFrame(
        np.random.default_rng(0).normal(size=(120, 2)), columns=["a", "b"]
    )
    frame["price"] = np.abs(frame["a"]) + frame["b"]
    frame.loc[5, "price"] = np.nan
    frame.to_csv("bent.csv", index=False)
    fit = ("fit", "bent.csv", "--target", "price", "--out", "m.json", *QUICK)
    out, err = succeeded(run(*fit, "--test-size", "0.2"))
    assert "regression: 'price' has 119 different numbers; --task classification" in err
    # Each figure is that of the rows it speaks of: those of the test are held out.
    model, frame = load_model("m.json"), pd.read_csv("bent.csv").dropna(subset="price")
    rows, test = train_test_split(frame, test_size=0.2, random_state=0)
    _, _, said = run("predict", "m.json", "bent.csv")
    for text, part in ((out, rows), (out, test), (said, frame)):
        mse = np.mean((part["price"] - model.predict(part)) ** 2)
        r2 = 1.0 - mse / part["price"].var(ddof=0)
        assert f"R² {r2:.4f}, RMSE {np.sqrt(mse):.4g} on {len(part)} rows" in text
    assert_error(run("predict", "m.json", "bent.csv", "--proba"), "--proba", "numbers")


@pytest.mark.parametrize(
    ("n_values", "options", "kind"),
    [
        (3, (), "Classifier"),
        (3, ("--task", "regression"), "Regressor"),
        (3, ("--task", "regression", "--leaves", "linear"), "Regressor"),
        (30, (), "Regressor"),
        (30, ("--task", "classification"), "Classifier"),
    ],
)
def test_the_task_can_be_told(run, iris, told, n_values, options, kind):
    iris.assign(species=np.arange(150) % n_values).to_csv("iris.csv", index=False)
    result = run(*FIT, *options)
    assert_error(result, f"not fitted: EvoTree{kind}")
    assert ("'species' has 30 different numbers" in result[2]) == (
        n_values == 30 and not options
    )
    if kind == "Regressor":
        assert told["leaves"] == (
            "linear" if "linear" in options else EvoTreeRegressor().leaves
        )


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["grow"], ["'grow'", "predict"]),
        *(
            (
                [*FIT, f"--{name}", value],
                [f"'{name.replace('-', '_')}' parameter", allowed],
            )
            for name, value, allowed in (
                ("random-state", "-1", "an int in the range [0, 4294967295]"),
                ("population-size", "1", "an int in the range [2, inf). Got 1 instead"),
                ("max-generations", "1.5", "an int in the range [0, inf)"),
                ("time-limit", "0", "a float in the range (0.0, inf)"),
                ("max-samples", "0", "an int in the range [1, inf)"),
                ("max-samples", "1.5", "a float in the range (0.0, 1.0]"),
                ("max-samples", "x.y", "Got 'x.y' instead"),
                ("size-penalty", "nan", "a float in the range [0.0, inf)"),
            )
        ),
        (
            [*FIT, "--checkpoint", "a", "--resume", "."],
            ["--resume is not allowed with", "--checkpoint"],
        ),
        (["fit", "x.csv", "--out", "m.json"], ["--target", "required"]),
        (
            ["fit", "x.csv", "--target", "y", "--out", "m", "--test-size", "1"],
            ["--test-size", "a number from 0 to 0.999"],
        ),
        (
            ["fit", "none.csv", "--target", "y", "--out", "m.json"],
            ["no such file: none.csv"],
        ),
        (["show", "none.json"], ["no such file: none.json"]),
        (
            [*FIT, "--objective", "f1", "--cost-matrix", "."],
            ["not allowed with --objective"],
        ),
        ([*FIT, "--select", "leaves<5"], ["rule='leaves<5'"]),
        ([*FIT, "--select", "simplest"], ["rule='simplest'"]),
        ([*FIT, "--precision", "18"], ["'precision' parameter"]),
        ([*FIT, "--leaves", "lines"], ["'leaves' parameter"]),
        ([*FIT, "--monotonic-cst", "a"], ["'monotonic_cst' parameter"]),
        ([*FIT, "--interaction-cst", "two"], ["'interaction_cst' parameter"]),
        ([*FIT, "--max-split-terms", "0"], ["'max_split_terms' parameter"]),
        ([*FIT, "--read", "sep"], ["'sep': allowed is NAME=VALUE"]),
        ([*FIT, "--resume", "no.npz"], ["no such file: no.npz"]),
        ([*FIT, "--cost-matrix", "no.csv"], ["no such file: no.csv"]),
    ],
)
def test_bad_arguments_are_found_before_the_table_is_read(run, arguments, named):
    Path("iris.csv").write_text("no table", encoding="utf-8")
    assert_error(run(*arguments), *named)


def spoil(column, value):
    """Return a function that puts a value into data row 3 of a column."""

    def change(frame):
        frame = frame.astype({column: object})
        frame.loc[2, column] = value
        return frame

    return change


def targets(values):
    """Return a function that gives a table other targets."""
    return lambda frame: frame.assign(species=values)


CLASSES = ["--task", "classification"]
NUMBERS = ["--task", "regression"]


@pytest.mark.parametrize(
    ("change", "options", "named"),
    [
        (
            lambda f: f.rename(columns={"species": "kind"}),
            [],
            ["'species'", "petal_width, kind"],
        ),
        (spoil("petal_width", np.inf), [], ["'petal_width'", "inf in data row 3"]),
        (spoil("petal_width", "-Infinity"), [], ["'petal_width'", "inf in data row 3"]),
        (targets("rose"), CLASSES, ["'species'", "one value only, rose"]),
        (targets(np.nan), CLASSES, ["'species'", "no value"]),
        (
            lambda f: f.assign(species=f["petal_width"]),
            CLASSES,
            ["'species'", "0.2", "--task regression"],
        ),
        (targets(range(150)), CLASSES, ["'species'", "150 different values"]),
        (lambda f: f[["species"]], [], ["only column"]),
        (lambda f: f.iloc[:0], [], ["no data rows"]),
        (
            targets(np.arange(150.0)),
            ["--class-weight", "balanced"],
            ["--class-weight is not for regression"],
        ),
        (
            targets(np.arange(150.0)),
            ["--cost-matrix", "bad.csv"],
            ["--cost-matrix is not for regression"],
        ),
        (targets(["a", "b"] * 75), NUMBERS, ["'a', which is not a finite number"]),
        (
            targets(np.r_[np.arange(149.0), np.inf]),
            [],
            ["inf, which is not a finite number"],
        ),
        (targets(1.0), NUMBERS, ["one value only, 1"]),
        (
            targets(np.arange(150.0)),
            ["--test-size", "0.001"],
            [
                "leaves 149 rows to train on, which have 149 different targets, "
                "and 1 to test"
            ],
        ),
    ],
)
def test_bad_training_data(run, iris, change, options, named):
    change(iris).to_csv("bad.csv", index=False)
    assert_error(run("fit", "bad.csv", *FIT[2:], *options), *named)
    assert not Path("m.json").exists()


@pytest.mark.parametrize("out", ["no/folder/m.json", ".", os.devnull])
@pytest.mark.parametrize(
    "command",
    [
        "fit iris.csv --target species --out",
        "fit iris.csv --target species --out m.json --report",
        "fit iris.csv --target species --out m.json --log",
        "predict model.json iris.csv --out",
    ],
)
def test_an_unwritable_output_is_found_before_the_work(
    run, iris_csv, model_json, out, command, monkeypatch
):
    monkeypatch.setattr(EvoTreeClassifier, "fit", None)
    monkeypatch.setattr("evotree.model_file.load_model", None)
    assert_error(run(*command.split(), out), f"cannot write {out}")


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (
            lambda f: f.drop(columns=["sepal_width", "petal_width"]),
            ["'sepal_width', 'petal_width'", "a.csv"],
        ),
        (spoil("petal_width", np.inf), ["'petal_width'", "inf in data row 3"]),
        (
            lambda f: f.assign(petal_width=f["species"]),
            ["'petal_width'", "'setosa' in data row 1"],
        ),
    ],
)
def test_bad_data_to_predict(run, iris, model_json, change, named):
    change(iris).to_csv("a.csv", index=False)
    assert_error(run("predict", model_json, "a.csv"), *named)


def test_bad_models_and_pictures_of_an_unknown_kind(run, iris_csv, model_json):
    status, _, err = run("show", model_json, "--plot", "tree.txt")
    assert status == 2 and "txt" in err
    model_json.write_bytes(iris_csv.read_bytes())
    assert_error(run("show", model_json), "model.json", "cannot be read")


OVER = [
    "fit iris.csv --target species --out iris.csv",
    "fit iris.csv --target species --out ./iris.csv",
    "fit iris.csv --target species --out link.csv",
    "fit iris.csv --target species --out hard.csv",
    "fit iris.csv --target species --out m.json --report iris.csv",
    "fit iris.csv --target species --out m.json --log iris.csv",
    "fit iris.csv --target species --out m.json --checkpoint iris.csv",
    "fit iris.csv --target species --out m.json --report m.json",
    "fit iris.csv --target species --out m.json --log m.json",
    "fit iris.csv --target species --out m.json --checkpoint m.json",
    "fit iris.csv --target species --out m.json --cost-matrix m.json",
    "fit iris.csv --target species --out m.json --resume m.json",
    "predict model.json iris.csv --out iris.csv",
    "predict model.json iris.csv --out model.json",
    "show model.json --plot model.json",
    "export model.json --to c --out model.json",
    "report model.json --out model.json",
    "report model.json --data iris.csv --out iris.csv",
    "compare iris.csv --target species --plot iris.csv",
    "experiment run iris.csv --out results --log iris.csv",
]


@pytest.mark.parametrize("command", OVER)
def test_no_command_writes_over_what_it_reads_or_writes(
    run, iris_csv, model_json, command
):
    Path("link.csv").symlink_to("iris.csv")
    os.link("iris.csv", "hard.csv")
    Path("m.json").write_text("kept")
    before = {path: path.read_bytes() for path in Path().iterdir()}
    assert_error(run(*command.split()), "is the file of", "allowed is another one")
    assert {path: path.read_bytes() for path in Path().iterdir()} == before


@pytest.mark.parametrize(
    "command",
    ["predict model.json iris.csv", "export model.json --to c", "show model.json"],
)
def test_a_full_disk_leaves_the_file_that_was_there(
    run, iris_csv, model_json, monkeypatch, command
):
    """All files are written beside their places first."""

    def full(*_):
        raise OSError(28, "No space left on device")

    Path("old.png").write_text("kept")
    monkeypatch.setattr("evotree.files.os.fsync", full)
    option = "--plot" if command.startswith("show") else "--out"
    status, _, err = run(*command.split(), option, "old.png")
    assert status == 2 and "cannot write old.png: No space left" in err
    assert Path("old.png").read_text() == "kept"
    assert not list(Path().glob(".*.tmp"))


HOSTILE = "\x1b[2Jred\x07\nevotree: error: forged"


def test_what_files_say_moves_no_cursor(run, iris, iris_csv, model_json):
    plain = json.loads(model_json.read_text())
    plain["target"] = HOSTILE
    plain["training"]["stop_reason"] = HOSTILE
    plain["classes"][0] = HOSTILE
    plain["digest"] = digest_of(plain)
    model_json.write_text(json.dumps(plain))
    out, err = succeeded(run("show", model_json))
    assert "\\x1b[2Jred\\x07\\nevotree: error: forged" in out
    *_, said = run("predict", model_json, "no\x1b[2J.csv")
    assert "no\\x1b[2J.csv" in said
    iris.rename(columns={"species": HOSTILE}).to_csv("iris.csv", index=False)
    *_, unknown = run("fit", "iris.csv", "--target", "x", "--out", "m.json")
    log = ("--log", "fit.log", "--max-generations", "0")
    result = run("fit", "iris.csv", "--target", HOSTILE, "--out", "m.json", *log)
    assert result[0] == 0, result
    texts = [out, err, said, unknown, *result[1:], Path("fit.log").read_text()]
    for text in texts:
        assert all(sign.isprintable() or sign == "\n" for sign in text)
        assert not any(
            line.startswith("evotree: error: forged") for line in text.split("\n")
        )


def test_rates_are_fitted_and_measured_at_their_exposures(run):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.normal(size=200), "years": rng.choice([1, 10], 200)})
    frame["claims"] = rng.poisson(frame["years"] * np.where(frame["x"] > 0, 1.5, 0.5))
    frame.to_csv("claims.csv", index=False)
    fit = ("fit", "claims.csv", "--target", "claims", "--task", "regression", *QUICK)
    fit = (*fit, "--objective", "poisson", "--exposure", "years", "--out", "m.json")
    out, err = succeeded(run(*fit, "--report", "page.html"))
    model = load_model("m.json")
    rates, years = model.predict(frame), frame["years"]
    error = np.average((frame["claims"] / years - rates) ** 2, weights=years)
    np.testing.assert_allclose(model.training["rmse"], np.sqrt(error))
    assert abs(np.log(rates[frame["x"] > 0].mean() / 1.5)) < 0.2
    assert run("predict", "m.json", "claims.csv")[2] == ""  # of counts alone


def test_commands_that_are_listed_are_run_by_functions():
    listed = parts_of("command")
    for command in (*listed.values(), *listed["experiment"].commands.values()):
        assert command.run is None or callable(getattr(commands, command.run))
    options = dict(listed["export"].options)
    assert set(options["--to"]["choices"]) == set(parts_of("export"))
