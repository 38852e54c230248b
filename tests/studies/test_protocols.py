"""What rows fits have in the protocols of papers, and a recipe of TAO."""

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_digits

from evotree.experiments.protocols import Task
from experiments import load_study
from experiments.studies import tao
from experiments.suites import OFFICIAL


def write_numbers(folder, name, n_rows=60, target=None):
    """Write a data set whose only feature is the number of the row."""
    y = np.arange(n_rows) % 3 if target is None else target
    table = pd.DataFrame({"x": np.arange(float(n_rows)), "target": y})
    table.to_csv(folder / f"{name}.csv", index=False)
    return y


def numbers_of(study, dataset, folder, seed=0, fold=OFFICIAL, stratified=True):
    """Return the numbers of the training rows and of the test rows of a fit."""
    protocol, task = (
        load_study(study).experiment.protocol,
        Task(dataset, "", fold, seed),
    )
    parts = protocol.take_parts(task, folder, stratified)
    return parts.X_train[:, 0].astype(int), parts.X_test[:, 0].astype(int)


def test_tao_draws_letter_anew_for_each_fit(tmp_path, monkeypatch):
    monkeypatch.setattr(tao, "LETTER_TRAIN", 30)
    rows = {"letter": 45}
    monkeypatch.setattr("experiments.suites.OFFICIAL_TRAIN_ROWS", rows)
    y = write_numbers(tmp_path, "letter")
    drawn = [numbers_of("tao", "letter", tmp_path, seed) for seed in (0, 1)]
    for train, test in drawn:
        assert np.bincount(y[train]).tolist() == [10, 10, 10]
        assert sorted([*train, *test]) == list(range(60))
    assert set(drawn[0][0]) != set(drawn[1][0])


def test_raddt_draws_a_quarter_to_test(tmp_path):
    write_numbers(tmp_path, "space-ga", 100, np.random.default_rng(0).normal(size=100))
    tests = []
    for seed in (0, 1):
        train, test = numbers_of(
            "regression", "space-ga", tmp_path, seed, stratified=False
        )
        assert len(train) == 75 and sorted([*train, *test]) == list(range(100))
        tests.append(set(test))
    assert tests[0] != tests[1]


def test_a_recipe_of_tao_cuts_and_optimizes():
    X, y = (part[:400] for part in load_digits(return_X_y=True))
    recipe = tao.Recipe(
        (1.0, 0.1), depth=6, leaves=(20, 12), loss="logistic", penalty="l1"
    )
    model = tao.fit_recipe(X, y, 0, recipe)
    assert model.C == 0.1 and model.penalty == "l1" and model.max_iter == 14
    assert 10 <= model.tree_.n_leaves <= 12 and model.score(X, y) > 0.9
    start = tao.start_tree(X, y, 0, recipe)
    assert start.tree_.depth == 6 and start.tree_.n_leaves > 12
    # A pixel a split.
    assert tao.nonzero_weights_percent(start) == pytest.approx(100 / 64)
