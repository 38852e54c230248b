"""What rows fits have in the protocols of papers, and a recipe of TAO."""

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_digits
from sklearn.model_selection import StratifiedKFold, train_test_split

from evotree.experiments.protocols import Task
from experiments import load_study
from experiments.studies import pmlb, srbench, tao
from experiments.study import load_public
from experiments.suites import OFFICIAL


def write_numbers(folder, name, n_rows=60, target=None):
    """Write a data set whose only feature is the number of the row."""
    y = np.arange(n_rows) % 3 if target is None else target
    table = pd.DataFrame({"x": np.arange(float(n_rows)), "target": y})
    table.to_csv(folder / f"{name}.csv", index=False)
    return y


def parts_of(study, dataset, folder, seed=0, fold=OFFICIAL, stratified=True):
    """Return the rows of a fit."""
    protocol = load_study(study).experiment.protocol
    return protocol.take_parts(Task(dataset, "", fold, seed), folder, stratified)


def numbers_of(*place):
    """Return the numbers of the training rows and of the test rows of a fit."""
    parts = parts_of(*place)
    return parts.X_train[:, 0].astype(int), parts.X_test[:, 0].astype(int)


@pytest.mark.parametrize("most", [10, 10_000])
def test_rows_are_drawn_as_srbench_draws_them(tmp_path, monkeypatch, most):
    monkeypatch.setattr(srbench, "MAX_TRAIN_ROWS", most)
    y = np.random.default_rng(0).normal(50.0, 7.0, 61)
    write_numbers(tmp_path, "toy", 61, y)
    for seed in srbench.SEEDS[:2]:
        parts = parts_of("srbench", "toy", tmp_path, seed)
        train, test = train_test_split(
            np.arange(61), train_size=0.75, test_size=0.25, random_state=seed
        )
        if most < len(train):
            stream = np.random.RandomState(seed)
            train = train[stream.choice(len(train), size=most, replace=False)]
        np.testing.assert_array_equal(parts.X_train[:, 0], train)
        # Of the training rows mean and deviation are 0 and 1.
        scaled = (y - y[train].mean()) / y[train].std()
        np.testing.assert_allclose(parts.y_train, scaled[train])
        np.testing.assert_allclose(parts.y_test, scaled[test])


def test_rows_are_those_of_the_published_folds_of_pmlb(tmp_path):
    (tmp_path / pmlb.FOLDER).mkdir()
    y = np.random.default_rng(0).choice([3, 1, 7], 61)
    write_numbers(tmp_path / pmlb.FOLDER, "iris", 61, y)
    tasks = [task for task in pmlb.EXPERIMENT.tasks() if task.dataset == "iris"]
    folds = StratifiedKFold(4, shuffle=True, random_state=42).split(y, y)
    for task, (train, test) in zip(tasks, folds, strict=True):
        numbers = numbers_of("pmlb", "iris", tmp_path, task.seed, task.fold)
        assert [*map(list, numbers)] == [[*train], [*test]]
        assert pmlb.EXPERIMENT.protocol.random_state(task) == 0


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


def test_gea_odt_has_the_parts_of_its_paper(tmp_path, monkeypatch):
    """Waveform is drawn for each fit, and sat has the official parts under its name of a file."""
    monkeypatch.setattr("experiments.suites.OFFICIAL_TRAIN_ROWS", {"satimage": 40})
    write_numbers(tmp_path, "satimage")
    train, test = numbers_of("gea_odt", "sat", tmp_path)
    assert train.tolist() == [*range(40)] and test.tolist() == [*range(40, 60)]
    y = write_numbers(tmp_path, "waveform21", 4_500)
    drawn = [numbers_of("gea_odt", "waveform", tmp_path, seed) for seed in (0, 1)]
    for train, test in drawn:
        assert np.bincount(y[train]).tolist() == [200] * 3 and len(test) == 3_000
        assert not {*train} & {*test}
    assert set(drawn[0][0]) != set(drawn[1][0])


def test_some_data_sets_need_no_folder(monkeypatch):
    """OpenML's are checked for the paper's size; a missing folder is named for the others."""
    protocol, X = (
        load_study("wodt").experiment.protocol,
        pd.DataFrame({"x": range(699)}),
    )
    assert protocol.load("iris", None).X.shape == (150, 4)

    def fetch(data_id, **options):
        assert data_id == 15
        return X, pd.Series(["benign", "malignant", "benign"] * 233, dtype="category")

    monkeypatch.setattr("experiments.study.fetch_openml", fetch)
    load_public.cache_clear()
    with pytest.raises(ValueError, match=r"breast-w of OpenML.*\(699, 1\).*\(699, 9\)"):
        protocol.load("breast", None)
    X[list("abcdefgh")] = 0
    assert protocol.load("breast", None).y[1] == "malignant"
    load_public.cache_clear()
    with pytest.raises(ValueError, match="data_home .* of the data set 'letter'"):
        protocol.load("letter", None)


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
