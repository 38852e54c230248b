"""The study of DTSemNet: the rows of its fits, published figures, and the report."""

from collections import Counter

import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import train_test_split

from evotree.experiments.protocols import OFFICIAL, Task
from evotree.experiments.studies import dtsemnet
from evotree.experiments.studies.agreement import KEY, load_published
from evotree.experiments.studies.study import run_study, write_report


def write_data(folder, name, n_rows=60, n_classes=3):
    """Write a data set whose only feature is the number of the row."""
    y = np.arange(n_rows) % n_classes
    pd.DataFrame({"x": np.arange(float(n_rows)), "target": y}).to_csv(
        folder / f"{name}.csv", index=False
    )
    return y


def parts_of(dataset, seed, folder):
    """Return the numbers of the training rows and of the test rows of a fit."""
    task = Task(dataset, "CART", OFFICIAL, seed)
    parts = dtsemnet.DTSemNetProtocol().take_parts(task, folder)
    return parts.X_train[:, 0].astype(int), parts.X_test[:, 0].astype(int)


def fake_runs(accuracies, leaves=9):
    """Make rows of runs from accuracies of seeds by data set and method."""
    return pd.DataFrame(
        [
            {"dataset": dataset, "method": method, "fold": OFFICIAL, "seed": seed}
            | {"accuracy": accuracy, "train_accuracy": 1.0, "leaves": leaves, "seconds": 1.0}
            for (dataset, method), of_seeds in accuracies.items()
            for seed, accuracy in enumerate(of_seeds)
        ]
    )


# ---- rows ----------------------------------------------------------------------------------------


def test_a_half_trains_and_a_quarter_tests(tmp_path):
    y = write_data(tmp_path, "sonar")
    drawn = [parts_of("sonar", seed, tmp_path) for seed in (0, 1)]
    for seed, (train, test) in enumerate(drawn):
        assert not set(train) & set(test)
        assert np.bincount(y[train]).tolist() == [10, 10, 10]
        assert np.bincount(y[test]).tolist() == [5, 5, 5]
        expected, _ = train_test_split(np.arange(60), test_size=0.5, random_state=seed, stratify=y)
        np.testing.assert_array_equal(train, expected)
    assert set(drawn[0][0]) != set(drawn[1][0])


def test_a_fifth_tests_the_same_whatever_the_seed(tmp_path):
    write_data(tmp_path, "segment")
    first, second = (parts_of("segment", seed, tmp_path) for seed in (0, 1))
    for one, other in zip(first, second, strict=True):
        np.testing.assert_array_equal(one, other)
    train, test = first
    assert len(train) == 48 and sorted({*train, *test}) == list(range(60))


def test_official_parts_are_taken_as_they_are(tmp_path, monkeypatch):
    monkeypatch.setattr(
        "evotree.experiments.datasets.OFFICIAL_TRAIN_ROWS", {"letter": 45, "optdigits": 40}
    )
    write_data(tmp_path, "letter")
    train, test = parts_of("letter", 0, tmp_path)
    assert train.tolist() == list(range(45)) and test.tolist() == list(range(45, 60))
    # Of optdigits the training part is all there is.
    write_data(tmp_path, "optdigits", n_classes=2)
    train, test = parts_of("optdigits", 0, tmp_path)
    assert len(train) == 20 and len(test) == 10 and max(*train, *test) < 40


def test_every_method_has_the_same_fits():
    tasks = dtsemnet.make_experiment().tasks()
    counts = Counter((task.dataset, task.method) for task in tasks)
    assert counts == {(d, m): n for d, n in dtsemnet.FITS.items() for m in dtsemnet.METHODS}
    assert len(dtsemnet.FITS) == 14 and len(set(tasks)) == len(tasks)
    seeds = [task.seed for task in tasks]
    assert seeds == sorted(seeds)


# ---- figures -------------------------------------------------------------------------------------


def test_published_figures_are_whole():
    published = load_published("dtsemnet")
    assert not published.duplicated(KEY).any() and published[[*KEY, "mean"]].notna().all(axis=None)
    table = dtsemnet.published_table()
    assert set(table.index) == set(dtsemnet.FITS)
    assert table[list(dtsemnet.PUBLISHED)].stack().between(50.0, 100.0).all()
    assert table["leaves"].between(4, 1024).all()
    assert (np.log2(table["leaves"]) % 1.0 == 0.0).all()


def test_ours_beside_theirs():
    theirs = dtsemnet.published_table()
    name = "climate-crashes"
    equal = theirs.loc[name, "DTSemNet"] / 100.0
    runs = fake_runs(
        {
            (name, "EvoTree"): [equal - 0.01, equal, equal + 0.01],
            ("mnist", "EvoTree"): [theirs.loc["mnist", "DTSemNet"] / 100.0 - 0.02],
            (name, "TAO"): [equal + 0.02],
        }
    )
    both = dtsemnet.beside(runs[runs["method"] == "EvoTree"])
    assert both["gain"].to_dict() == pytest.approx({name: 0.0, "mnist": -2.0})
    ratios = {name: 9 / theirs.loc[name, "leaves"], "mnist": 9 / theirs.loc["mnist", "leaves"]}
    assert both["ratio"].to_dict() == pytest.approx(ratios)
    rows = dtsemnet.summary_table(runs).splitlines()[2:]
    mean = np.sqrt(ratios[name] * ratios["mnist"])
    assert rows == [
        f"| EvoTree | 1 of 2 | -1.00 | {mean:.2f} |",
        f"| TAO | 1 of 1 | +2.00 | {ratios[name]:.2f} |",
    ]
    lines = dtsemnet.figures_table(runs).splitlines()
    cells = lines[2].split(" | ")
    assert (
        cells[0] == f"| {name}"
        and cells[1] == f"{100 * equal:.1f}"
        and lines[3].startswith("| mnist")
    )
    ours = [f"{100 * equal:.1f} ± 1.0", "9.0", f"{100 * equal + 2:.1f}", "9.0", "", ""]
    assert cells[6:] == [*ours, "3 / 1 / 0 |"]


def test_the_report_is_written_from_the_rows_alone(tmp_path):
    runs = fake_runs({("car", "EvoTree"): [0.95, 0.96], ("sonar", "CART"): [0.5]})
    runs.to_csv(tmp_path / "dtsemnet_runs.csv", index=False)
    report = write_report(dtsemnet.STUDY, tmp_path).read_text(encoding="utf-8")
    n_planned = 3 * sum(dtsemnet.FITS.values())
    assert f"3 of {n_planned} planned fits" in report
    assert "| EvoTree | 1 of 1 |" in report and "| CART | 0 of 1 |" in report
    assert "| TAO |" not in report


# ---- a real run ----------------------------------------------------------------------------------


def test_two_methods_on_a_data_set_of_halves(tmp_path):
    write_data(tmp_path, "balance-scale", n_rows=80, n_classes=2)
    out = tmp_path / "out"
    some = {"datasets": ["balance-scale"], "methods": ["TAO", "CART"]}
    runs, report = run_study(dtsemnet.STUDY, tmp_path, out, **some)
    assert (runs["status"] == "done").all()
    assert runs.groupby("method")["seed"].apply(list).to_dict() == dict.fromkeys(
        ["CART", "TAO"], list(range(10))
    )
    assert "| balance-scale | 90.2 |" in report.read_text(encoding="utf-8")
