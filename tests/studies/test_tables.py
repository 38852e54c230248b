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
    leaves = pd.DataFrame(2.0, index=names, columns=list(accuracy))
    means = {"accuracy": accuracy, "leaves": leaves}
    told = tables.comparison(means, FIGURES, "whole", {"accuracy": accuracy}, {"whole": 1.0})
    assert told["n_compared"] == 17
    head, _, *rows = told["table"].splitlines()
    assert head == "| method | accuracy | leaves | mean rank | whole less it: accuracy |"
    assert rows[0] == "| whole | 90.00 | 2.0 | 1.00 |  |"
    assert rows[-1] == "| three lack | - | - | - | +30.00 ± 0.00 (17 / 0 / 0) |"


def test_duels_are_paired_over_the_data_sets_of_both():
    scores = pd.DataFrame(
        {"EvoTree": [90.0, 80.0, 70.0, 60.0], "CART": [88.0, 80.04, 76.0, np.nan]},
        index=["iris", "wine", "sick", "usps"],
    )
    duels, sizes = {"accuracy": scores, "on sick": scores.loc[["sick"]]}, scores / 10.0
    (row,) = tables.differences_table(duels, "EvoTree", sizes).splitlines()[2:]
    d = np.array([2.0, -0.04, -6.0])
    cell = f"{d.mean():+.2f} ± {d.std(ddof=1) / np.sqrt(3):.2f} (1 / 1 / 1)"
    assert row == f"| CART | 3 | {cell} | -6.00 (0 / 0 / 1) | 8 / 8 |"
    assert "not been run yet" in tables.differences_table({"": scores[["CART"]]}, "EvoTree")


def test_ranks_are_of_the_methods_that_are_compared(tmp_path):
    means = pd.DataFrame(
        {"EvoTree": [90.0, 80.0, 70.0], "OC1": [80.0, 80.0, 60.0], "CART": [70.0, 60.0, 50.0]},
        index=["iris", "wine", "pima"],
    )
    path = tmp_path / "ranks.png"
    ranks, sentence = tables.ranks_of(means, "EvoTree", path)
    assert ranks == pytest.approx({"EvoTree": 7 / 6, "OC1": 11 / 6, "CART": 3.0})
    assert "from EvoTree at the level 0.05: none." in sentence and "(ranks.png)" in sentence
    assert path.stat().st_size > 5000
    few = (means.drop(columns="EvoTree").assign(WODT=1.0), means[["OC1", "CART"]], means[:2])
    for scores in few:
        ranks, sentence = tables.ranks_of(scores, "EvoTree", path)
        assert not ranks and "fewer than three" in sentence
