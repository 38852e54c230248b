"""Teachers: models whose predictions the trees of evolved estimators learn."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.ensemble import ExtraTreesClassifier, ExtraTreesRegressor
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier

from evotree.engine import teachers
from tests.quick_models import FIXED, REGRESSORS, brief, rows_for


@pytest.fixture(autouse=True)
def _small_ensembles(monkeypatch):
    monkeypatch.setattr(teachers, "_TREES", 20)


@pytest.mark.parametrize("teacher", [KNeighborsClassifier(5), LogisticRegression(), "ensemble"])
def test_trees_agree_with_a_teacher(teacher):
    X, y = load_iris(return_X_y=True)
    model = brief(regularization=FIXED.set_params(teacher=teacher)).fit(X, y)
    assert model.score(X, y) > 0.93
    assert model.regularization_.teacher is teacher
    if not isinstance(teacher, str):
        assert not hasattr(teacher, "classes_")  # a clone was fitted
    assert model.tree_ == clone(model).fit(X, y).tree_


def test_leaves_predict_by_the_training_rows():
    """A teacher that is always wrong places hyperplanes, but does not say what leaves predict."""

    class Contrary(LogisticRegression):
        def predict(self, X):
            return 1 - super().predict(X)

    X, y = load_breast_cancer(return_X_y=True)
    model = brief(regularization__teacher=Contrary(max_iter=500)).fit(X, y)
    assert model.score(X, y) > 0.9
    leaves = model.apply(X)
    for leaf in np.unique(leaves):
        share = (y[leaves == leaf] == 1).mean()
        assert model.tree_.values[leaf] == pytest.approx([1.0 - share, share])


# ---- that are fitted already ---------------------------------------------------------------------


@pytest.mark.parametrize("as_frame", [False, True])
def test_a_frozen_teacher_is_asked_in_its_own_units_and_labels(as_frame):
    X, y = load_wine(return_X_y=True, as_frame=as_frame)
    names = np.array(["barolo", "grignolino", "barbera"])[y]
    wrong = names[(np.arange(len(y)) * 7) % len(y)]  # a teacher that never saw these labels
    teacher = FrozenEstimator(ExtraTreesClassifier(30, random_state=0).fit(X, names))
    model = brief(regularization__teacher=teacher, size_penalty=0.001).fit(X, wrong)
    best = model.history_.chapters["quality"][-1]["best"]
    assert best > 0.9  # agrees with the teacher, not with the labels
    assert best > model.score(X, wrong) + 0.2
    strange = FrozenEstimator(ExtraTreesClassifier(5).fit(X, np.where(y == 0, "rioja", names)))
    with pytest.raises(ValueError, match="label 'rioja'"):
        clone(model).set_params(evolution__regularization__teacher=strange).fit(X, names)


def test_a_frozen_teacher_of_targets_is_asked_in_its_own_units():
    X, y = rows_for(REGRESSORS[0])
    X, y = 100.0 + 10.0 * X, 1e4 + 100.0 * y
    teacher = FrozenEstimator(ExtraTreesRegressor(30, random_state=0).fit(X, y))
    model = clone(REGRESSORS[0])
    model.set_params(evolution__regularization__teacher=teacher, size_penalty=0.001).fit(X, y)
    assert model.history_.chapters["quality"][-1]["best"] > 0.4
    assert model.score(X, y) > 0.4
    unfitted = FrozenEstimator(ExtraTreesRegressor())
    with pytest.raises(NotFittedError):
        clone(model).set_params(evolution__regularization__teacher=unfitted).fit(X, y)


# ---- that take long ------------------------------------------------------------------------------


def test_a_teacher_that_takes_longer_than_there_is_time_is_left_out(monkeypatch):
    X, y = load_iris(return_X_y=True)
    monkeypatch.setattr(teachers, "seconds_to_teach", lambda *_: 1e6)
    taught = brief(regularization=FIXED.set_params(teacher="ensemble"))
    with pytest.warns(RuntimeWarning, match="time_limit=1000 is too short for the teacher"):
        limited = clone(taught).set_params(time_limit=1000.0).fit(X, y)
    assert limited.regularization_.teacher is None
    assert limited.evolution.regularization.teacher == "ensemble"
    assert limited.tree_ == brief().fit(X, y).tree_
    assert clone(taught).fit(X, y).regularization_.teacher == "ensemble"
