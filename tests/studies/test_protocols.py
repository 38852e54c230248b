"""What rows fits have in the protocols of papers, what is measured, and figures of papers."""

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_digits, load_wine
from sklearn.model_selection import train_test_split

from evotree.experiments.protocols import OFFICIAL, Task
from experiments import load_study
from experiments.probabilities import auc, brier
from experiments.studies import j48, tao
from experiments.studies import probabilities as soft
from tests.quick_models import brief


@pytest.fixture
def official(monkeypatch):
    rows = {"letter": 45, "optdigits": 40}
    monkeypatch.setattr("evotree.experiments.datasets.OFFICIAL_TRAIN_ROWS", rows)


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


def test_a_half_trains_and_a_quarter_tests(tmp_path):
    y = write_numbers(tmp_path, "sonar")
    drawn = [numbers_of("dtsemnet", "sonar", tmp_path, seed) for seed in (0, 1)]
    for seed, (train, test) in enumerate(drawn):
        assert not set(train) & set(test)
        assert np.bincount(y[train]).tolist() == [10, 10, 10]
        assert np.bincount(y[test]).tolist() == [5, 5, 5]
        expected, _ = train_test_split(
            np.arange(60), test_size=0.5, random_state=seed, stratify=y
        )
        np.testing.assert_array_equal(train, expected)
    assert set(drawn[0][0]) != set(drawn[1][0])


def test_official_parts_are_taken_as_they_are(tmp_path, official):
    write_numbers(tmp_path, "letter")
    train, test = numbers_of("dtsemnet", "letter", tmp_path)
    assert train.tolist() == list(range(45)) and test.tolist() == list(range(45, 60))
    # Of optdigits the training part is all there is.
    write_numbers(tmp_path, "optdigits", target=np.arange(60) % 2)
    train, test = numbers_of("dtsemnet", "optdigits", tmp_path)
    assert len(train) == 20 and len(test) == 10 and max(*train, *test) < 40


def test_tao_draws_letter_anew_for_each_fit(tmp_path, official, monkeypatch):
    monkeypatch.setattr(tao, "LETTER_TRAIN", 30)
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
    split = {"fold": 2, "stratified": False}
    folds = [
        numbers_of(study, "space-ga", tmp_path, **split)
        for study in ("regression", "forests")
    ]
    np.testing.assert_array_equal(*(test for _, test in folds))


def test_one_fit_gives_the_scores_of_all_its_probabilities():
    X, y = load_wine(return_X_y=True)
    model, leaf = brief().fit(X, y), brief(probability="leaf").fit(X, y)
    assert soft.of_shares(brier, model, X, y) == brier(leaf, X, y)
    mixed = model.probabilities_.mix(model.tree_, X)
    expected = np.square(mixed - (y[:, None] == model.classes_)).sum(axis=1).mean()
    assert soft.of_mixture(brier, model, X, y) == pytest.approx(expected)
    assert soft.of_shares(brier, model, X, y) != brier(model, X, y)
    assert soft.of_shares(soft.accuracy, model, X, y) == model.score(X, y)
    assert np.isnan(soft.of_mixture(auc, leaf, X, y))
    assert set(soft.TUNED_ON) < set(soft.DATASETS)


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


def test_trees_of_j48_are_read_and_compared():
    printed = (
        "x0 <= 1.5: c0 (3.0)\nx0 > 1.5\n"
        "|   x2 <= -0.25: c1 (2.0/1.0)\n|   x2 > -0.25: c0 (4.0)\n"
    )
    tree = j48.parse(f"J48 pruned tree\n\n{printed}")
    assert tree == (0, 1.5, (0,), (2, -0.25, (1,), (0,))) and j48.n_leaves(tree) == 3
    assert j48.parse(": c1 (5.0)") == (1,)
    other = (0, 1.5 + 1e-7, (0,), (2, 0.5, (1,), (0,)))
    assert j48.differences(tree, tree) == []
    assert j48.differences(tree, other) == ["x2 <= -0.25 / x2 <= 0.5"]
    assert j48.differences(tree, (0,)) == ["x0 <= 1.5 / class 0"]
