"""The studies of greedy trees: runs that go on where they were, agreement, ranks, reports."""

import numpy as np
import pandas as pd
import pytest

from evotree.cli.main import main
from evotree.experiments.datasets import LoadedData
from evotree.experiments.markdown import markdown_table
from evotree.experiments.protocols import OFFICIAL, take_fold, take_rows, try_method
from evotree.experiments.studies import STUDIES, agreement, cedt, gea_odt, load_study, oc1, wodt
from evotree.experiments.studies.study import (
    Study,
    append,
    count_done,
    missing_tasks,
    run_study,
    select_tasks,
)

KEY = ("dataset", "system")


def write_data(folder, name, n_rows=40, n_features=2, n_classes=2, missing=0):
    """Write a data set of noisy clusters; the first cells of its first column may be missing."""
    rng = np.random.default_rng(len(name))
    y = np.arange(n_rows) % n_classes
    X = pd.DataFrame(y[:, None] + 0.4 * rng.normal(size=(n_rows, n_features))).add_prefix("x")
    X.iloc[:missing, 0] = np.nan
    X.assign(target=y).to_csv(folder / f"{name}.csv", index=False)


def double(task, data_home):
    """Stand for a run."""
    return {"dataset": task[0], "system": task[1], "value": 2 * task[1]}


def fail_at_one(task, data_home):
    """Stand for a run that may fail."""
    if task[1] == 1:
        raise ValueError("odd")
    return double(task, data_home)


# ---- runs ----------------------------------------------------------------------------------------

TASKS = [("a", 0), ("a", 1), ("b", 0), ("b", 1)]


def write_nothing(out):
    """Stand for a report."""
    report = out / "toy.md"
    report.write_text("nothing", encoding="utf-8")
    return report


def toy(run=double):
    """Make a study of four tasks."""
    return Study("toy", "a toy", KEY, lambda: TASKS, run, write_nothing)


def test_a_second_run_does_nothing_and_a_deleted_row_is_done_again(tmp_path):
    path = tmp_path / "toy_runs.csv"
    assert run_study(toy(), None, tmp_path) == tmp_path / "toy.md"
    whole = path.read_text()
    run_study(toy(fail_at_one), None, tmp_path)
    assert path.read_text() == whole
    lines = whole.splitlines(keepends=True)
    path.write_text("".join(lines[:2] + lines[3:]))
    run_study(toy(), None, tmp_path)
    assert sorted(path.read_text().splitlines()) == sorted(whole.splitlines())
    assert count_done([*TASKS, ("c", 0)], KEY, pd.read_csv(path)) == "4 of 5 planned"


def test_two_processes_do_what_one_does(tmp_path):
    for jobs in (1, 2):
        run_study(toy(), None, tmp_path / str(jobs), jobs=jobs)
    one, two = (pd.read_csv(tmp_path / str(jobs) / "toy_runs.csv") for jobs in (1, 2))
    np.testing.assert_array_equal(*(rows.sort_values(list(KEY)) for rows in (one, two)))


def test_no_run_begins_after_the_time_is_over(tmp_path):
    assert run_study(toy(), None, tmp_path, max_seconds=0) is None
    assert not any(tmp_path.iterdir())


def test_a_run_that_fails_does_not_stop_the_others(tmp_path):
    path = tmp_path / "toy_runs.csv"
    with pytest.raises(ExceptionGroup, match="2 of 4 runs failed") as caught:
        run_study(toy(fail_at_one), None, tmp_path)
    assert pd.read_csv(path).system.tolist() == [0, 0] and (tmp_path / "toy.md").exists()
    messages = [str(error) for error in caught.value.exceptions]
    assert "('a', 1)" in messages[0] and "fail_at_one" in messages[0] and "odd" in messages[0]
    assert missing_tasks(TASKS, KEY, path) == [("a", 1), ("b", 1)]


def with_curve(task, data_home):
    """Stand for a run with a learning curve."""
    return double(task, data_home) | {"curve": pd.DataFrame({"gen": [0, 5], "of": task[0]})}


def test_curves_have_a_file_of_their_own(tmp_path):
    run_study(toy(with_curve), None, tmp_path)
    assert list(pd.read_csv(tmp_path / "toy_runs.csv")) == ["dataset", "system", "value"]
    curves = pd.read_csv(tmp_path / "toy_curves.csv")
    assert curves["gen"].tolist() == [0, 5] * 4 and curves["of"].tolist() == list("aaaabbbb")


def test_tasks_are_selected_by_name():
    study = load_study("wodt")
    some = select_tasks(study, ["iris", "dna"], ["APDT"])
    assert {(task.dataset, task.system) for task in some} == {("iris", "APDT"), ("dna", "APDT")}
    assert [task.fold for task in some[:5]] == [0, 1, 2, 3, 4] and some[-1].fold == OFFICIAL
    assert select_tasks(study) == study.make_tasks()
    for names, message in (
        ({"datasets": ["moon"]}, "datasets names moon: those of the study wodt are iris, wine"),
        ({"systems": ["WODT", "C4.5"]}, "systems names C4.5"),
    ):
        with pytest.raises(ValueError, match=message):
            select_tasks(study, **names)


@pytest.mark.parametrize("name", STUDIES)
def test_each_study_is_whole(name):
    study = load_study(name)
    tasks = study.make_tasks()
    assert study.name == name and len(set(tasks)) == len(tasks) > 0
    assert {study.dataset, study.system} < set(study.key) == set(tasks[0]._fields)


def test_studies_are_known_by_name():
    with pytest.raises(ValueError, match="name='c45': allowed are benchmark, cedt"):
        load_study("c45")


def test_append_keeps_the_order_of_the_columns(tmp_path):
    path = tmp_path / "runs.csv"
    append(pd.DataFrame([{"a": 1, "b": 2}]), path)
    append(pd.DataFrame([{"b": 4, "a": 3}]), path)
    assert path.read_text() == "a,b\n1,2\n3,4\n"
    with pytest.raises(ValueError, match="the new rows have a, c"):
        append(pd.DataFrame([{"a": 1, "c": 2}]), path)


def test_markdown_table():
    rows = pd.DataFrame([{"name": "iris", "leaves": "3"}, {"name": "wine", "leaves": "5"}])
    assert markdown_table(rows).splitlines() == [
        "| name | leaves |",
        "|---|---:|",
        "| iris | 3 |",
        "| wine | 5 |",
    ]


# ---- protocols -----------------------------------------------------------------------------------


def test_means_are_those_of_the_training_rows():
    X = pd.DataFrame({"x": [1.0, 3.0, np.nan, np.nan, 100.0]})
    parts = take_rows(X, np.arange(5), np.array([0, 1, 2]), np.array([3, 4]))
    np.testing.assert_array_equal(parts.X_train[:, 0], [1, 3, 2])
    np.testing.assert_array_equal(parts.X_test[:, 0], [2, 100])
    np.testing.assert_array_equal(parts.y_test, [3, 4])


def test_folds_part_the_rows_and_the_official_split_is_the_first_rows():
    y = np.arange(30) % 3
    data = LoadedData("toy", pd.DataFrame({"x": np.arange(30.0)}), y, n_train=20)
    tests = [take_fold(data, 5, 1, fold).X_test[:, 0] for fold in range(5)]
    np.testing.assert_array_equal(np.sort(np.concatenate(tests)), np.arange(30))
    for seed in (0, 7):
        official = take_fold(data, 5, seed, OFFICIAL)
        np.testing.assert_array_equal(official.X_train[:, 0], np.arange(20))
        np.testing.assert_array_equal(official.X_test[:, 0], np.arange(20, 30))
    without = LoadedData("toy", data.X, y, n_train=None)
    with pytest.raises(ValueError, match="'toy' has no official split"):
        take_fold(without, 5, 0, OFFICIAL)


def test_a_method_is_fitted_on_one_part_and_scored_on_the_other():
    X = pd.DataFrame({"x": [0.0, 1.0, 2.0, 3.0, 0.5, 2.5]})
    y = np.array([0, 0, 1, 1, 0, 0])
    found = try_method("DT", take_rows(X, y, np.arange(4), np.arange(4, 6)), 0, pruning=None)
    assert found["accuracy"] == 0.5 and found["train_accuracy"] == 1.0
    assert (found["leaves"], found["depth"]) == (2, 1) and found["seconds"] > 0.0


# ---- WODT ----------------------------------------------------------------------------------------


def test_the_agreement_rule():
    assert wodt.agrees(0.90, 0.90, 0.0) and wodt.agrees(0.99, 0.90, 0.01)
    assert wodt.agrees(0.8801, 0.90, 0.01) and not wodt.agrees(0.8799, 0.90, 0.01)


def test_every_published_cell_is_planned_or_left_out_for_a_reason():
    published = agreement.load_published("wodt")
    cells = {
        metric: set(group[["dataset", "system"]].itertuples(index=False, name=None))
        for metric, group in published.groupby("metric")
    }
    assert cells["accuracy"] == cells["leaves"]
    planned = {(task.dataset, task.system) for task in wodt.make_tasks()}
    assert planned.isdisjoint(wodt.LEFT_OUT)
    assert planned | set(wodt.LEFT_OUT) == cells["accuracy"]
    assert set(wodt.NOTES) <= cells["accuracy"]


def test_each_data_set_gets_a_fit_of_wodt_first():
    tasks = wodt.make_tasks()
    assert len(set(tasks)) == len(tasks)
    first = tasks[: len(wodt.PLAN)]
    assert [task.dataset for task in first] == list(wodt.PLAN)
    assert {task.system for task in first} == {"WODT"}


def test_comparison_with_published_figures():
    runs = pd.DataFrame(
        {
            "dataset": ["iris", "iris", "wine", "usps"],
            "system": ["WODT", "WODT", "WODT", "CO2"],
            "accuracy": [0.92, 0.94, 0.80, 0.9],  # published: 0.9733 ± 0.0248, 0.9665 ± 0.0323
            "leaves": [5, 4, 3, 9],
            "seconds": [1.0, 3.0, 1.0, 1.0],
        }
    )
    comparison = wodt.compare(runs)
    assert comparison.dataset.tolist() == ["iris", "wine"]  # no figure of CO2 on usps
    assert comparison.agrees.tolist() == [True, False]
    row = wodt.to_markdown(comparison).splitlines()[2]
    assert row == ("| iris | 97.33 ± 2.48 | 93.00 ± 1.41 | -4.33 | 5.2 | 4.5 ± 0.7 | 2.00 | 2 |")


def test_wodt_from_the_command_line(tmp_path, monkeypatch, capsys):
    few = {name: wodt.PLAN[name]._replace(fits=(6,) * 8) for name in ("iris", "wine")}
    monkeypatch.setattr(wodt, "PLAN", few)
    monkeypatch.setattr(wodt, "DEPTH_DATASETS", ("iris",))
    monkeypatch.setattr(wodt, "DEPTHS", (1, 2))
    for name in few:
        write_data(tmp_path, name, 60, 3, 3)
    out = tmp_path / "out"
    command = ["experiment", "study", "wodt", "--data-home", str(tmp_path), "--out", str(out)]
    command += ["--datasets", "iris", "wine", "--systems", "APDT", "WODT"]
    assert main(command) == 0
    assert capsys.readouterr().out == f"wrote {out / 'wodt.md'}\nwrote {out / 'published.md'}\n"
    runs = (out / "wodt_runs.csv").read_text()
    assert len(runs.splitlines()) == 1 + 2 * 2 * 6 + 2 * 2 * 5
    limited = pd.read_csv(out / "wodt_runs.csv").query("max_depth > 0")
    assert (limited["depth"] <= limited["max_depth"]).all()
    assert (out / "wodt_figure1.png").exists() and (out / "wodt_figure2.png").exists()
    report = (out / "wodt.md").read_text(encoding="utf-8")
    assert (
        "44 of 146 planned fits" in report
        and "of 4 cells" in report
        and "### APDT" in report
        and "not run yet" in report
    )
    assert main(command) == 0
    assert (out / "wodt_runs.csv").read_text() == runs
    capsys.readouterr()
    assert main([*command[:-1], "nothing"]) == 2
    assert "systems names nothing: those of the study wodt are" in capsys.readouterr().err
    command[4] = str(tmp_path / "nowhere")
    assert main([*command[:-3], "--systems", "OC1"]) == 2
    assert " runs failed; the first one: FileNotFoundError" in capsys.readouterr().err


# ---- OC1 -----------------------------------------------------------------------------------------


def test_tasks_of_oc1():
    tasks = oc1.make_tasks()
    assert len(set(tasks)) == len(tasks)
    published = agreement.load_published("oc1").query("table == 'table1'")
    cells = set(published[["dataset", "system"]].itertuples(index=False, name=None))
    assert {(t.dataset, t.system) for t in tasks if t.part == "table1"} == cells
    letter = [t for t in tasks if t.part == "program" and t.dataset == "letter"]
    assert letter == [oc1.Task("program", "letter", "OC1", 0, 0)]
    assert {t.system for t in tasks if t.part == "moves"} == set(oc1.SEARCHES)


def test_data_of_oc1(tmp_path):
    write_data(tmp_path, "breast-w", missing=3)
    assert len(oc1.load_problem("table1", "cancer", tmp_path).y) == 37
    assert len(oc1.load_problem("program", "breast-w", tmp_path).y) == 40
    target = [10.0, 20.9, 21.0, 50.0]
    pd.DataFrame({"x": range(4), "target": target}).to_csv(tmp_path / "housing.csv", index=False)
    housing = oc1.load_problem("table1", "housing", tmp_path)
    assert housing.y.tolist() == ["below", "below", "above", "above"]
    write_data(tmp_path, "optdigits", 4000, 1)
    digits = oc1.load_problem("program", "digits", tmp_path)
    whole = pd.read_csv(tmp_path / "optdigits.csv")
    assert len(digits.X) == len(digits.y) == 1797
    np.testing.assert_array_equal(digits.X["x0"], whole["x0"][-1797:])


def test_the_study_of_oc1(tmp_path, monkeypatch):
    monkeypatch.setattr(oc1, "N_RUNS", 2)
    monkeypatch.setattr(oc1, "N_SAMPLES", 1)
    monkeypatch.setattr(oc1, "N_TRAIN", 60)
    monkeypatch.setattr(oc1, "N_TEST", 100)
    write_data(tmp_path, "iris", 60, 3, 3)
    out = tmp_path / "out"
    report = run_study(oc1.STUDY, tmp_path, out, datasets=["iris", "POL"])
    runs = pd.read_csv(out / "oc1_runs.csv")
    assert runs.part.value_counts().to_dict() == {"table1": 30, "program": 10, "moves": 5}
    report = report.read_text(encoding="utf-8")
    assert "| POL | 1 start, 0 jumps |" in report and "| iris | OC1-AP | 92.7 |" in report
    assert "Accuracy at or above the program's" in report


# ---- CEDT ----------------------------------------------------------------------------------------


def test_ranks_are_of_data_sets_with_the_same_folds_of_all_systems():
    key = {"variant": "pruned", "accuracy": 0.5, "leaves": 3}
    rows = [
        {"dataset": name, "system": system, "fold": fold, **key}
        for name in ("iris", "wine", "heart")
        for system in cedt.SYSTEMS
        for fold in range(2)
    ]
    tests = cedt.rank_systems(pd.DataFrame(rows[:-1]))
    assert list(tests) == [("pruned", "accuracy"), ("pruned", "leaves")]
    assert tests["pruned", "leaves"].datasets == ["iris", "wine"]
    assert tests["pruned", "leaves"].mean_ranks.tolist() == [2, 2, 2]
    assert not cedt.rank_systems(pd.DataFrame(rows[:7]))
    ours = cedt.measured(pd.DataFrame(rows))
    assert set(ours["metric"]) == {"rank by accuracy", "rank by leaves"} and (ours.ours == 2).all()


def test_the_study_of_cedt(tmp_path, monkeypatch):
    names = ("iris", "wine", "heart")
    monkeypatch.setattr(cedt, "DATASETS", names)
    monkeypatch.setattr(cedt, "N_FOLDS", 2)
    for name in names:
        write_data(tmp_path, name, 50, 3)
    out = tmp_path / "out"
    report = run_study(cedt.STUDY, tmp_path, out)
    runs = (out / "cedt_runs.csv").read_text()
    assert len(runs.splitlines()) == 1 + 3 * 3 * 2 * 2
    report = report.read_text(encoding="utf-8")
    assert "36 of 36 planned fits" in report and "of 4** rankings" in report
    assert report.count("| unpruned | accuracy |") == report.count("| pruned | leaves |") == 2
    run_study(cedt.STUDY, tmp_path, out, jobs=2)
    assert (out / "cedt_runs.csv").read_text() == runs


# ---- GEA-ODT -------------------------------------------------------------------------------------


def test_the_study_of_gea_odt(tmp_path, monkeypatch):
    monkeypatch.setattr(gea_odt, "N_TEST", 50)
    monkeypatch.setattr(gea_odt, "N_RUNS", 1)
    monkeypatch.setattr(gea_odt, "SIZE_PENALTIES", (0.005, 0.05))
    write_data(tmp_path, "iris", 30, 2)
    monkeypatch.setattr(gea_odt.EvoTreeClassifier, "from_preset", lambda *_, **__: fast_evolution())
    out = tmp_path / "out"
    report = run_study(gea_odt.STUDY, tmp_path, out, datasets=["iris", "house", "chessboard2"])
    header, row, *_ = (out / "gea_odt_runs.csv").read_text().splitlines()
    assert header == (
        "part,name,system,run,fold,size_penalty,dipolar_probability,"
        "accuracy,train_accuracy,nodes,generations,stop_reason,seconds"
    )
    assert row.startswith("table1,chessboard2,GEA-ODT,0,-1,0.005,0.5,")
    runs = pd.read_csv(out / "gea_odt_runs.csv")
    parts = {"table1": 4, "table2": 20, "figure4": 4, "figure5": 2}
    assert runs["part"].value_counts().to_dict() == parts
    assert set(runs[runs["system"] == "OC1"]["part"]) == {"table1", "table2"}
    text = report.read_text(encoding="utf-8")
    assert text.count("\n| chessboard2 |") == 4 and "OC1" in text
    assert (out / "gea_odt_figure4.png").exists() and (out / "gea_odt_figure5.png").exists()


def test_a_report_of_a_part_of_gea_odt(tmp_path, monkeypatch):
    write_data(tmp_path, "iris", 30, 2)
    report = run_study(gea_odt.STUDY, tmp_path, tmp_path, datasets=["iris"], systems=["OC1"])
    assert report.read_text(encoding="utf-8").count("Not run yet.") == 3


def fast_evolution():
    """Make an estimator that evolves for a moment."""
    return gea_odt.EvoTreeClassifier(population_size=4, max_generations=2, random_state=0)
