"""The study of PMLB: published folds, families that count once, and what a fit returned."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import make_classification
from sklearn.model_selection import StratifiedKFold

from evotree import EvoTreeClassifier
from experiments import suites
from experiments.studies import pmlb
from tests.quick_models import FREE, evolved


def test_rows_are_those_of_the_published_folds(tmp_path):
    (tmp_path / pmlb.FOLDER).mkdir()
    y = np.random.default_rng(0).choice([3, 1, 7], 61)
    rows = pd.DataFrame({"x": np.arange(61), "target": y})
    rows.to_csv(tmp_path / pmlb.FOLDER / "iris.csv", index=False)
    tasks = [one for one in pmlb.EXPERIMENT.tasks() if one.dataset == "iris"]
    protocol = pmlb.EXPERIMENT.protocol
    folds = StratifiedKFold(4, shuffle=True, random_state=42).split(rows, y)
    for task, (train, test) in zip(tasks, folds, strict=True):
        parts = protocol.take_parts(task, tmp_path)
        np.testing.assert_array_equal(parts.X_train[:, 0], train)
        np.testing.assert_array_equal(parts.X_test[:, 0], test)
        np.testing.assert_array_equal(parts.y_test, y[test])
        assert protocol.random_state(task) == 0


def test_published_accuracies_are_of_the_sets_and_folds_of_the_study():
    published = pmlb.PUBLISHED
    cells = published[["dataset", "fold", "method"]]
    assert not cells.duplicated().any() and published["accuracy"].between(0, 1).all()
    assert set(cells["dataset"]) == {*suites.PMLB} and len({*suites.PMLB}) == 69
    assert {*pmlb.METHODS} == {*cells["method"], pmlb.EVOTREE}
    assert len(cells) == 69 * pmlb.N_FOLDS * 16
    assert {*pmlb.OTHER_ROWS} < {*suites.PMLB}


def test_a_family_is_on_one_side_with_all_its_copies():
    chosen, confirming, new = (set(one) for one in pmlb.PARTS.values())
    assert new < confirming and chosen | confirming == {*suites.PMLB}
    sides = [{suites.family(name) for name in side} for side in (chosen, confirming)]
    assert not sides[0] & sides[1] and not chosen & confirming
    known = {*suites.PMLB, *suites.GROUPS["in all"], "waveform"}
    for first, copies in suites.COPIES.items():
        assert {*copies} <= known and {*map(suites.family, (first, *copies))} == {first}
    assert len({*map(suites.family, new)} & {*suites.CONFIRMING}) == 12


@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_fit_on_a_score_is_told_from_a_tree(n_classes):
    X, y = make_classification(
        150, n_informative=4, n_classes=n_classes, flip_y=0.2, random_state=0
    )
    returned = {
        leaves: pmlb.KINDS[
            pmlb.kind(evolved(EvoTreeClassifier, **FREE, leaves=leaves).fit(X, y))
        ]
        for leaves in ("constant", "score")
    }
    assert "score" not in returned["constant"] and "score" in returned["score"]


def test_another_origin_is_a_tree():
    tree = SimpleNamespace(models=None, n_leaves=3, origin="widths")
    assert pmlb.KINDS[pmlb.kind(SimpleNamespace(tree_=tree))] == "tree"
