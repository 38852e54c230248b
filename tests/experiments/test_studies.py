"""The studies of greedy trees: runs that go on where they were, agreement, ranks, reports."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.tree import DecisionTreeClassifier

from evotree.cli.main import main
from evotree.experiments.datasets import LoadedData
from evotree.experiments.execution import run_experiment
from evotree.experiments.experiment import Experiment
from evotree.experiments.markdown import markdown_table
from evotree.experiments.protocols import OFFICIAL, Task, take_fold, take_rows
from evotree.experiments.rows import fill, read_curve_rows, read_rows, write_rows
from evotree.experiments.store import Store
from evotree.experiments.studies import STUDIES, agreement, cedt, gea_odt, load_study, oc1, wodt
from evotree.experiments.studies.study import Study, StudyProtocol, run_study, select_tasks

RESULTS = Path(__file__).parents[2] / "docs" / "results"


def write_data(folder, name, n_rows=40, n_features=2, n_classes=2, missing=0):
    """Write a data set of noisy clusters; the first cells of its first column may be missing."""
    rng = np.random.default_rng(len(name))
    y = np.arange(n_rows) % n_classes
    X = pd.DataFrame(y[:, None] + 0.4 * rng.normal(size=(n_rows, n_features))).add_prefix("x")
    X.iloc[:missing, 0] = np.nan
    X.assign(target=y).to_csv(folder / f"{name}.csv", index=False)


def quick_study(**changed):
    """Make a study of a data set and two methods."""
    methods = {"stump": DecisionTreeClassifier(max_depth=1), "CART": DecisionTreeClassifier()}
    plan = [Task("toy", name, fold, 0) for name in methods for fold in range(3)]
    made = Experiment("quick", ["toy"], methods, StudyProtocol(3), plan=plan, curve=curve_of_stumps)
    return Study("quick", "a toy", lambda: replace(made, **changed), lambda found: found.planned)


def curve_of_stumps(model):
    if model.max_depth is None:
        return None
    return pd.DataFrame({"gen": [0, 5], "quality": [0.25, model.tree_.node_count / 3]})


# ---- runs ----------------------------------------------------------------------------------------


def test_a_study_goes_on_from_its_text_alone(tmp_path):
    """Without the database, as a clone of the repository is."""
    write_data(tmp_path, "toy")
    out, again = tmp_path / "out", tmp_path / "again"
    study = quick_study()
    runs, report = run_study(study, tmp_path, out, methods=["stump"])
    assert len(runs) == 3 and report.read_text() == "3 of 6 planned"
    again.mkdir()
    for file in (study.rows_file, study.curves_file):
        (again / file(out).name).write_bytes(file(out).read_bytes())
    runs, report = run_study(study, tmp_path, again, jobs=2)
    assert len(runs) == 6 and report.read_text() == "6 of 6 planned"
    first, second = (study.rows_file(folder).read_text().splitlines() for folder in (out, again))
    assert first[0] == second[0] and set(first[1:]) < set(second[1:])  # the times, too
    assert study.curves_file(out).read_text() == study.curves_file(again).read_text()
    curves = read_curve_rows(study.curves_file(again))
    assert list(curves) == [("toy", "stump", fold, 0) for fold in range(3)]
    assert curves["toy", "stump", 0, 0]["quality"].tolist() == [0.25, 1.0]
    whole = study.rows_file(again).read_text()
    run_study(study, tmp_path, again)
    assert study.rows_file(again).read_text() == whole


def test_rows_with_weights_by_their_old_name_are_read(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text(
        "dataset,method,fold,seed,leaves,nonzero_weights\n"
        "iris,CART,0,0,3,2\niris,TAO,0,0,4,9\niris,OC1,0,0,2,\n"
    )
    rows = read_rows(path)
    assert "nonzero_weights" not in rows and rows["terms"][:2].tolist() == [2, 9]
    assert rows["complexity"][:2].tolist() == [5, 13]
    assert np.isnan(rows["terms"][2]) and np.isnan(rows["complexity"][2])


def test_rows_of_other_parameters_are_made_again(tmp_path, caplog):
    write_data(tmp_path, "toy")
    study = quick_study()
    run_study(study, tmp_path, tmp_path / "out")
    before = read_rows(study.rows_file(tmp_path / "out"))
    methods = {
        "stump": DecisionTreeClassifier(max_depth=1),
        "CART": DecisionTreeClassifier(max_depth=2),
    }
    new = tmp_path / "new"
    new.mkdir()
    # What does not say with which parameters it was made counts.
    before.loc[before["method"] == "stump", "settings"] = None
    before.to_csv(study.rows_file(new), index=False)
    run_study(quick_study(methods=methods), tmp_path, new)
    after = read_rows(study.rows_file(new))
    assert "3 rows of other settings do not count: CART" in caplog.text
    same = after["finished"] == before["finished"]
    assert same[after["method"] == "stump"].all() and after["settings"].nunique() == 1
    with pytest.raises(ValueError, match=r"methods.CART.max_depth was None and is 2"):
        run_study(quick_study(methods=methods), tmp_path, tmp_path / "out")


def test_fits_that_failed_are_done_again(tmp_path):
    write_data(tmp_path, "toy")
    bad = {"stump": DecisionTreeClassifier(max_depth=-1), "CART": DecisionTreeClassifier()}
    runs, report = run_study(quick_study(methods=bad), tmp_path, tmp_path)
    assert runs["status"].value_counts().to_dict() == {"failed": 3, "done": 3}
    assert report.read_text() == "3 of 6 planned"
    again, _ = run_study(quick_study(methods=bad), tmp_path, tmp_path)
    assert (again["finished"] >= runs["finished"]).all()
    runs, report = run_study(quick_study(), tmp_path, tmp_path / "other", max_seconds=0)
    assert runs.empty and report is None


def test_files_of_other_columns_are_refused(tmp_path):
    write_data(tmp_path, "toy")
    study = quick_study()
    study.rows_file(tmp_path).write_text("dataset,method,fold,seed,auc\ntoy,CART,0,0,0.5\n")
    with pytest.raises(ValueError, match="quick_runs.csv has the columns auc: not measured"):
        run_study(study, tmp_path, tmp_path)


def test_tasks_are_selected_by_name():
    made = load_study("wodt").make_experiment()
    some = select_tasks(made, ["iris", "dna"], ["APDT"])
    assert {(task.dataset, task.method) for task in some} == {("iris", "APDT"), ("dna", "APDT")}
    assert [task.fold for task in some[:5]] == [0, 1, 2, 3, 4] and some[-1].fold == OFFICIAL
    assert select_tasks(made, None, None) == made.tasks()
    for names, message in (
        ((["moon"], None), "datasets names moon: those of the study wodt are iris, wine"),
        ((None, ["WODT", "C4.5"]), "methods names C4.5"),
    ):
        with pytest.raises(ValueError, match=message):
            select_tasks(made, *names)


RUN = [name for name in STUDIES if load_study(name).rows_file(RESULTS).exists()]


@pytest.mark.parametrize("name", RUN)
def test_the_rows_in_git_are_those_of_the_study(name, tmp_path):
    """They fill its store, which gives them back as they were."""
    study = load_study(name)
    made = study.make_experiment()
    tasks = made.tasks()
    assert made.name == study.name == name and len(set(tasks)) == len(tasks) > 0
    store = Store(tmp_path, made.columns(), made.definition())
    fill(store, made, study.rows_file(RESULTS), study.curves_file(RESULTS))
    assert store.done(["done"]) <= set(tasks)
    write_rows(store, study.rows_file(tmp_path), study.curves_file(tmp_path))
    given, found = (read_rows(study.rows_file(folder)) for folder in (RESULTS, tmp_path))
    key = ["dataset", "method", "seed", "fold"]
    given = given.sort_values(key, ignore_index=True)[list(found)]
    pd.testing.assert_frame_equal(found, given, check_exact=True, check_dtype=False)
    curves, given_curves = (
        read_curve_rows(study.curves_file(folder)) for folder in (tmp_path, RESULTS)
    )
    assert set(curves) == set(given_curves)


def test_rows_and_seeds_of_a_fit_are_those_of_the_rows_in_git(tmp_path):
    """One fit of a study is done again, and gives the same figures."""
    given = read_rows(RESULTS / "oc1_runs.csv").set_index(["dataset", "method", "fold", "seed"])
    made = load_study("oc1").make_experiment()
    plan = [Task("POL", "1 start, 5 jumps", OFFICIAL, 3)]
    row = run_experiment(replace(made, plan=plan, warm_up=False), tmp_path).iloc[0]
    for name in ("accuracy", "train_accuracy", "leaves", "depth"):
        assert row[name] == given.loc[plan[0], name]


def test_studies_are_known_by_name():
    with pytest.raises(ValueError, match="name='c45': allowed are benchmark, cedt"):
        load_study("c45")


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
    planned = {(t.dataset, t.method) for t in wodt.make_plan() if t.method in wodt.SYSTEMS}
    assert planned.isdisjoint(wodt.LEFT_OUT)
    assert planned | set(wodt.LEFT_OUT) == cells["accuracy"]
    assert set(wodt.NOTES) <= cells["accuracy"]


def test_each_data_set_gets_a_fit_of_wodt_first():
    tasks = wodt.make_plan()
    first = tasks[: len(wodt.PLAN)]
    assert [task.dataset for task in first] == list(wodt.PLAN)
    assert {task.method for task in first} == {"WODT"}


def test_comparison_with_published_figures():
    runs = pd.DataFrame(
        {
            "dataset": ["iris", "iris", "wine", "usps"],
            "method": ["WODT", "WODT", "WODT", "CO2"],
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
    depths = [wodt.limited(system, depth) for system in ("APDT", "WODT") for depth in (1, 2)]
    command += ["--datasets", "iris", "wine", "--methods", "APDT", "WODT", *depths]
    assert main(command) == 0
    assert (
        capsys.readouterr().out
        == f"44 done\nwrote {out / 'wodt.md'}\nwrote {out / 'published.md'}\n"
    )
    runs = (out / "wodt_runs.csv").read_text()
    assert len(runs.splitlines()) == 1 + 2 * 2 * 6 + 2 * 2 * 5
    rows = pd.read_csv(out / "wodt_runs.csv")
    for depth in (1, 2):
        assert (rows["depth"][rows["method"].str.endswith(f"depth {depth}")] <= depth).all()
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
    assert "methods names nothing: those of the study wodt are" in capsys.readouterr().err
    command[4] = str(tmp_path / "nowhere")
    assert main(command) == 2
    assert "nowhere" in capsys.readouterr().err


# ---- OC1 -----------------------------------------------------------------------------------------


def test_tasks_of_oc1():
    tasks = oc1.make_experiment().tasks()
    published = agreement.load_published("oc1").query("table == 'table1'")
    cells = set(published[["dataset", "system"]].itertuples(index=False, name=None))
    assert {(t.dataset, t.method) for t in tasks if t.dataset in oc1.TABLE1} == cells
    assert [t for t in tasks if t.dataset == "letter"] == [Task("letter", "OC1", 0, 0)]
    assert {t.method for t in tasks if t.fold == OFFICIAL} == set(oc1.SEARCHES)


def test_data_of_oc1(tmp_path):
    write_data(tmp_path, "breast-w", missing=3)
    load = oc1.OC1Protocol(files=oc1.FILES).load
    assert len(load("cancer", tmp_path).y) == 37 and len(load("breast-w", tmp_path).y) == 40
    target = [10.0, 20.9, 21.0, 50.0]
    pd.DataFrame({"x": range(4), "target": target}).to_csv(tmp_path / "housing.csv", index=False)
    housing = load("housing", tmp_path)
    assert housing.y.tolist() == ["below", "below", "above", "above"]
    write_data(tmp_path, "optdigits", 4000, 1)
    digits = load("digits", tmp_path)
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
    runs, report = run_study(oc1.STUDY, tmp_path, out, datasets=["iris", "POL"])
    assert runs["dataset"].value_counts().to_dict() == {"iris": 30, "POL": 5}
    assert (runs["status"] == "done").all()
    report = report.read_text(encoding="utf-8")
    assert "| POL | 1 start, 0 jumps |" in report and "| iris | OC1-AP | 92.7 |" in report
    assert "Accuracy at or above the program's" in report


# ---- CEDT ----------------------------------------------------------------------------------------


def test_ranks_are_of_data_sets_with_the_same_folds_of_all_systems():
    key = {"accuracy": 0.5, "leaves": 3}
    rows = [
        {"dataset": name, "method": f"{system}, pruned", "fold": fold, **key}
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


@pytest.mark.slow
def test_the_study_of_cedt(tmp_path, monkeypatch):
    names = ("iris", "wine", "heart")
    monkeypatch.setattr(cedt, "DATASETS", names)
    monkeypatch.setattr(cedt, "N_FOLDS", 2)
    for name in names:
        write_data(tmp_path, name, 50, 3)
    out = tmp_path / "out"
    _, report = run_study(cedt.STUDY, tmp_path, out)
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
    preset = gea_odt.EvoTreeClassifier.from_preset

    def quick(name, **given):
        return preset(name, **given | {"population_size": 4, "max_generations": 6})

    monkeypatch.setattr(gea_odt.EvoTreeClassifier, "from_preset", quick)
    out = tmp_path / "out"
    names = ["iris", "house", "chessboard2"]
    runs, report = run_study(gea_odt.STUDY, tmp_path, out, datasets=names)
    assert (runs["status"] == "done").all()
    counts = {"GEA-ODT": 12, "OC1": 12, "C4.5": 12, **dict.fromkeys(gea_odt.DIPOLAR, 2)}
    expected = counts | {"GEA-ODT, size penalty 0.05": 1}
    assert runs["method"].value_counts().to_dict() == expected
    is_greedy = runs["method"].isin(gea_odt.GREEDY)
    assert (runs["generations"] == np.where(is_greedy, 0, 6)).all()
    curves = read_curve_rows(gea_odt.STUDY.curves_file(out))
    assert {key[1] for key in curves} == set(gea_odt.DIPOLAR)
    assert all(curve["gen"].tolist() == [0, 5] for curve in curves.values())
    text = report.read_text(encoding="utf-8")
    assert text.count("\n| chessboard2 |") == 5 and "OC1" in text
    assert (out / "gea_odt_figure4.png").exists() and (out / "gea_odt_figure5.png").exists()


def test_a_report_of_a_part_of_gea_odt(tmp_path):
    write_data(tmp_path, "iris", 30, 2)
    _, report = run_study(gea_odt.STUDY, tmp_path, tmp_path, datasets=["iris"], methods=["OC1"])
    assert report.read_text(encoding="utf-8").count("Not run yet.") == 5
