"""The tables that reports share: means of whole data sets, comparisons, floors, ranks."""

import numpy as np
import pandas as pd
import pytest

from experiments import suites, tables

FIGURES = {"accuracy": ("accuracy", 100.0, 2), "AUC": ("auc", 100.0, 2), "leaves": ("leaves", 1, 1)}


def fake_runs(accuracies, n_folds=5):
    """Make rows of runs from mean accuracies by data set and method."""
    return pd.DataFrame(
        [
            {"dataset": dataset, "method": method, "fold": fold, "seed": 0, "leaves": 3 + fold}
            | {"accuracy": accuracy + 0.01 * (fold - 2)}
            for (dataset, method), accuracy in accuracies.items()
            for fold in range(n_folds)
        ]
    )


def means_of(runs, methods):
    return tables.figures_of(runs, FIGURES, suites.BENCHMARK, methods)


def test_rows_of_a_table_may_lack_cells():
    assert tables.table([]) == "Not run yet."
    lines = tables.table([{"a": "1", "b": "2"}, {"a": "3"}], n_left=2).splitlines()
    assert lines == ["| a | b |", "|---|---|", "| 1 | 2 |", "| 3 |  |"]


def test_means_are_of_whole_data_sets():
    runs = fake_runs({("wine", "CART"): 0.9, ("iris", "CART"): 0.8, ("iris", "OC1"): 0.7})
    runs = pd.concat([runs, fake_runs({("wine", "OC1"): 0.9, ("wine", "WODT"): 0.9}, n_folds=4)])
    methods = ("OC1", "WODT", "CART")
    means = means_of(runs, methods)["accuracy"]
    assert list(means.index) == ["iris", "wine"] and list(means) == ["OC1", "WODT", "CART"]
    np.testing.assert_allclose(means, [[70.0, np.nan, 80.0], [np.nan, np.nan, 90.0]])
    assert means_of(runs, methods)["AUC"].isna().all(axis=None)
    one_is_missing = runs.assign(auc=np.where(runs["fold"] == 3, np.nan, 0.5))
    assert means_of(one_is_missing, methods)["AUC"].isna().all(axis=None)


def test_ours_stand_beside_published_figures():
    fits = pd.DataFrame({"accuracy": [0.92, 0.94], "leaves": [5, 4], "depth": [1, 1]})
    figures = {"accuracy": ("accuracy", 100.0, 1), "leaves": ("leaves", 1.0, 1)}
    row = tables.beside(fits, {"accuracy": 0.95}, figures, "C")
    assert row == {
        **{"accuracy, C": "95.0", "accuracy, ours": "93.0 ± 1.4", "difference": "-2.0"},
        **{"leaves, C": "", "leaves, ours": "4.5 ± 0.7"},
    }


def test_the_best_of_the_judged_are_bold():
    means = pd.DataFrame(
        {"A": [81.04, np.nan], "B": [80.96, 70.0], "Forest": [99.0, 70.0], "none": np.nan}
    )
    rows = tables.cells_table(means, ".1f", bold=("A", "B", "C")).splitlines()
    assert rows[0] == "| data set | A | B | Forest |"
    assert rows[2:] == ["| 0 | **81.0** | **81.0** | 99.0 |", "| 1 | - | **70.0** | 70.0 |"]


def test_means_are_over_the_data_sets_of_all_methods_with_enough(monkeypatch):
    monkeypatch.setattr(tables, "ENOUGH", 0.9)
    names = [f"d{k}" for k in range(20)]
    accuracy = pd.DataFrame(
        {"whole": 90.0, "one lacks": 80.0, "two lack": 70.0, "three lack": 60.0}, index=names
    )
    accuracy.loc["d0", "one lacks"] = accuracy.loc[["d1", "d2"], "two lack"] = np.nan
    accuracy.loc[["d1", "d3", "d4"], "three lack"] = np.nan
    both = tables.compared(accuracy)
    assert list(both) == ["whole", "one lacks", "two lack"]
    assert list(both.index) == names[3:] and both.notna().all(axis=None)
    told = tables.comparison({"accuracy": accuracy}, FIGURES, "whole")
    assert told["left_out"] == "three lack (17)" and told["n_compared"] == 17
    told = tables.comparison({"accuracy": accuracy[["whole"]]}, FIGURES, "whole")
    assert told["left_out"] == "none"


@pytest.mark.parametrize(("sign", "counts"), [(1.0, True), (-1.0, False)])
def test_duels_are_paired_over_the_data_sets_of_both(sign, counts):
    scores = pd.DataFrame(
        {"EvoTree": [90.0, 80.0, 70.0, 60.0], "CART": [88.0, 80.04, 76.0, np.nan]},
        index=["iris", "wine", "sick", "usps"],
    )
    duels = {"accuracy": scores, "on sick": scores.loc[["sick"]]}
    (row,) = tables.differences_table(duels, "EvoTree", sign, counts).splitlines()[2:]
    d = sign * np.array([2.0, -0.04, -6.0])
    cell = f"{d.mean():+.2f} ± {d.std(ddof=1) / np.sqrt(3):.2f} (1 / 1 / 1)"
    last = f"{-6 * sign:+.2f} ({(sign < 0):d} / 0 / {(sign > 0):d})"
    assert row == f"| CART |{' 3 |' * counts} {cell} | {last} |"
    assert "not been run yet" in tables.differences_table({"": scores[["CART"]]}, "EvoTree")


def test_the_floor_is_the_better_of_two():
    accuracy = pd.DataFrame(
        {
            "EvoTree": [90.0, 80.0, 70.0, 60.0],
            "CART": [95.0, 70.0, 60.0, 10.0],
            "Logistic": [80.0, 81.0, 65.0, np.nan],
        },
        index=["iris", "wine", "pima", "usps"],
    )
    section = tables.floors_table(accuracy, "EvoTree", ("CART", "Logistic"))
    assert "below the floor: iris (-5.0). Mean" in section and "(1 / 0 / 2).\n" in section
    assert section.splitlines()[-3:] == [
        "| iris | -5.0 | 90.0 | 95.0 | 80.0 |",
        "| wine | -1.0 | 80.0 | 70.0 | 81.0 |",
        "| pima | +5.0 | 70.0 | 60.0 | 65.0 |",
    ]
    some = accuracy[["EvoTree", "CART"]]
    assert tables.floors_table(some, "EvoTree", ("CART", "Logistic")) == "Not run yet."


def test_ranks_are_of_the_methods_that_are_compared(tmp_path):
    means = pd.DataFrame(
        {"EvoTree": [90.0, 80.0, 70.0], "OC1": [80.0, 80.0, 60.0], "CART": [70.0, 60.0, 50.0]},
        index=["iris", "wine", "pima"],
    )
    path = tmp_path / "ranks.png"
    first, second, third = tables.ranks_section(means, "EvoTree", path).splitlines()[2:5]
    assert first == "| EvoTree | 1.17 |  |"
    assert second.startswith("| OC1 | 1.83 |") and third.startswith("| CART | 3.00 |")
    assert path.stat().st_size > 5000
    others = means.drop(columns="EvoTree").assign(WODT=1.0)
    assert "against" not in tables.ranks_section(others, "EvoTree", path)
    for few in (means[["OC1", "CART"]], means[:2]):
        assert "fewer than three" in tables.ranks_section(few, "EvoTree", path)
