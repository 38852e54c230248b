"""The study of TAO: cutting, recipes, runs, and the report of its rows."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_digits, load_iris

from evotree.experiments.protocols import OFFICIAL, Task
from evotree.experiments.studies import agreement, tao
from evotree.experiments.studies.study import run_study, write_report
from evotree.experiments.studies.tao_trees import Recipe, fit_recipe, start_tree


@pytest.fixture(scope="module")
def digits():
    """Return rows and labels of a few digits."""
    X, y = load_digits(return_X_y=True)
    return X[:400], y[:400]


def fake_runs(errors, splits=30):
    """Make rows of runs from test errors by data set and tree, a seed each."""
    sizes = {"leaves": splits + 1, "nodes": 2 * splits + 1, "depth": 6, "fold": -1}
    figures = sizes | {"nonzero_weights_percent": 1.234, "seconds": 60.0, "train_accuracy": 0.99}
    return pd.DataFrame(
        [
            {"dataset": dataset, "method": tao.method_of(dataset, tree), "seed": seed}
            | {"accuracy": 1.0 - error}
            | figures
            for (dataset, tree), of_seeds in errors.items()
            for seed, error in enumerate(of_seeds)
        ]
    )


# ---- trees ---------------------------------------------------------------------------------------


def test_a_recipe_cuts_and_optimizes(digits):
    X, y = digits
    recipe = Recipe((1.0, 0.1), depth=6, leaves=(20, 12), loss="logistic", penalty="l1")
    model = fit_recipe(recipe, X, y, 0)
    assert model.C == 0.1 and model.penalty == "l1" and model.max_iter == 14
    assert 10 <= model.tree_.n_leaves <= 12
    assert model.tree_.n_nodes == 2 * model.tree_.n_leaves - 1
    at_once = fit_recipe(replace(recipe, Cs=(1.0, 0.1, 0.001)), X, y, 0)
    assert at_once.tree_.n_leaves < model.tree_.n_leaves
    assert np.count_nonzero(at_once.tree_.weights) < np.count_nonzero(model.tree_.weights)
    start = start_tree(recipe, X, y, 0)
    assert start.tree_.depth == 6 and start.tree_.n_leaves > 12
    assert model.score(X, y) > 0.9


def test_every_tree_stands_beside_a_published_one():
    assert set(tao.PUBLISHED) == set(tao.RECIPES)
    for dataset, tree in tao.RECIPES:
        assert 0.0 < tao.published_figure(dataset, tree, "test_error") < 0.12
    assert tao.published_figure("mnist", "L1, 37 splits", "splits") == 37
    assert np.isnan(tao.published_figure("letter", "TAO", "splits"))
    assert tao.RECIPES["mnist", "L1, 37 splits"].leaves[-1] <= 38
    assert tao.RECIPES["mnist", "L1, 16 splits"].leaves[-1] <= 17


def test_letter_is_drawn_anew_for_each_fit():
    tasks = tao.make_experiment().tasks()
    assert [task.seed for task in tasks if task.dataset == "letter"] == [0, 1, 2, 3, 4]
    assert len(tasks) == len(tao.RECIPES) + 4


def test_parts_of_letter(tmp_path, monkeypatch):
    monkeypatch.setattr(tao, "LETTER_TRAIN", 30)
    monkeypatch.setattr("evotree.experiments.datasets.OFFICIAL_TRAIN_ROWS", {"letter": 50})
    y = np.arange(60) % 3
    rows = pd.DataFrame({"x": np.arange(60.0), "target": y})
    rows.to_csv(tmp_path / "letter.csv", index=False)
    first, second = (
        tao.TaoProtocol().take_parts(Task("letter", "TAO, letter", OFFICIAL, seed), tmp_path)
        for seed in (0, 1)
    )
    assert len(first.y_train) == len(first.y_test) == 30
    assert np.bincount(first.y_train).tolist() == [10, 10, 10]
    assert set(first.X_train[:, 0]) | set(first.X_test[:, 0]) == set(range(60))
    assert set(first.X_train[:, 0]) != set(second.X_train[:, 0])


# ---- report --------------------------------------------------------------------------------------


def test_the_table_and_the_summary():
    runs = fake_runs(
        {
            ("pendigits", "TAO"): [0.0314],
            ("letter", "TAO"): [0.07, 0.09],
            ("mnist", "start"): [0.5],
            ("mnist", "L1, 37 splits"): [0.05],
            ("mnist", "L1, 16 splits"): [0.05],  # of more than 16 splits
        }
    )
    assert "**2 of 4** trees" in tao.summary(tao.trees(runs))
    lines = tao.results_table(tao.trees(runs)).splitlines()
    assert lines[2].startswith("| pendigits | TAO | 0.3 | 3.14 | 3.14 |  | 1.00 |  | 30 |")
    assert lines[3].startswith("| letter | TAO | 1.5 | 7.94 | 8.00 ± 1.41 |")
    assert lines[4].startswith("| mnist | start |  | 11.03 | 50.00 | 1.95 | 1.00 | 410 | 30 |")
    assert lines[5].endswith(
        "| 5.69 | 5.00 | 4.27 | 1.00 | 37 | 30 | 0.95 | 1.23 | 31 | 60.0 | 1 |"
    )


def test_the_trees_stand_beside_published_ones():
    names = {(dataset, tree): [0.05] for dataset, tree in tao.RECIPES}
    found = agreement.agreement(agreement.load_published("tao"), tao.measured(fake_runs(names)))
    verdicts = found["verdict"].value_counts()
    assert verdicts[agreement.OTHER_PROGRAM] == 15 and verdicts[agreement.NO_DATA] == 2
    errors = found[found["ours"].notna() & (found["metric"] == "test_error")]
    assert errors["verdict"].tolist() == [
        "as published",
        "better",
        "worse",
        "better",
        "as published",
        "better",
    ]


def test_the_report_is_written_from_the_rows_alone(tmp_path):
    fake_runs({("pendigits", "TAO"): [0.03]}).to_csv(tmp_path / "tao_runs.csv", index=False)
    report = write_report(tao.STUDY, tmp_path).read_text(encoding="utf-8")
    assert "1 of 10 planned fits" in report and "**1 of 1** trees" in report


def test_pictures(tmp_path, monkeypatch):
    X, y = load_digits(return_X_y=True)
    monkeypatch.setattr("evotree.experiments.datasets.OFFICIAL_TRAIN_ROWS", {"mnist": 300})
    np.savez(tmp_path / "mnist.npz", data=X[:500], target=y[:500])
    monkeypatch.setattr(tao, "PICTURE_ROWS", 200)
    monkeypatch.setattr(tao, "IMAGE_SHAPE", (8, 8))
    monkeypatch.setattr(tao, "PATH", replace(tao.PATH, Cs=(1.0, 0.1)))
    monkeypatch.setattr(tao, "SMALL_TREE", replace(tao.SMALL_TREE, Cs=(0.1,), leaves=(6,)))
    fake_runs({("mnist", "start"): [0.5]}).to_csv(tmp_path / "tao_runs.csv", index=False)
    tao.draw_pictures(tmp_path, tmp_path)
    pictures = [tmp_path / "tao_path.png", tmp_path / "tao_tree.png"]
    sizes = [picture.stat().st_size for picture in pictures]
    assert min(sizes) > 5000
    pictures[0].write_text("kept")
    tao.draw_pictures(tmp_path, tmp_path)
    assert pictures[0].read_text() == "kept"


# ---- a real run ----------------------------------------------------------------------------------


def test_a_study_of_one_data_set(tmp_path, monkeypatch):
    monkeypatch.setattr("evotree.experiments.datasets.OFFICIAL_TRAIN_ROWS", {"pendigits": 100})
    X, y = load_iris(return_X_y=True)
    order = np.random.default_rng(0).permutation(150)
    rows = pd.DataFrame(X[order]).add_prefix("x").assign(target=y[order])
    rows.to_csv(tmp_path / "pendigits.csv", index=False)
    out = tmp_path / "out"
    runs, _ = run_study(tao.STUDY, tmp_path, out, datasets=["pendigits"])
    (row,) = runs.to_dict("records")
    assert row["accuracy"] > 0.8 and row["nodes"] == 2 * row["leaves"] - 1
    assert 0.0 < row["nonzero_weights_percent"] <= 100.0
    assert not (out / "tao_path.png").exists()
