"""The greedy estimators: scikit-learn's own checks, its trees as truth, pruning, presets."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes, load_wine
from sklearn.model_selection import cross_val_score
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from sklearn.utils.estimator_checks import parametrize_with_checks

from evotree import ObliqueTreeClassifier, ObliqueTreeRegressor
from evotree.estimators import GREEDY_PRESETS
from evotree.operators.splitters.registry import SPLITTERS


@parametrize_with_checks(
    [
        ObliqueTreeClassifier(),
        ObliqueTreeClassifier("axis", pruning="cost_complexity"),
        ObliqueTreeClassifier("linear"),
        ObliqueTreeRegressor("axis", max_depth=4),
    ]
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize("splitter", sorted(SPLITTERS))
def test_every_splitter_grows_an_accurate_classifier(splitter):
    X, y = load_wine(return_X_y=True)
    model = ObliqueTreeClassifier(splitter, random_state=0)
    assert model.fit(X[::2], y[::2]).score(X[::2], y[::2]) == 1.0
    model.set_params(max_depth=4, pruning="cost_complexity")
    assert cross_val_score(model, X, y, cv=3).mean() > (
        0.6 if splitter == "dipole" else 0.8
    )


@pytest.mark.parametrize("splitter", sorted(set(SPLITTERS) - {"wodt"}))
def test_every_splitter_for_targets_grows_a_regressor(splitter):
    X, y = load_diabetes(return_X_y=True)
    X, y = X[::3, [2, 3, 6, 8]], y[::3]
    model = ObliqueTreeRegressor(splitter, max_depth=3, random_state=0).fit(X, y)
    assert model.score(X, y) > (0.2 if splitter == "dipole" else 0.45)
    np.testing.assert_allclose(model.predict(X).mean(), y.mean())


@pytest.mark.parametrize("criterion", ["gini", "entropy"])
def test_ccp_alpha_and_path_are_those_of_scikit_learn(criterion):
    X, y = load_breast_cancer(return_X_y=True)
    weight = np.random.default_rng(0).integers(1, 4, len(y)).astype(float)
    ours = ObliqueTreeClassifier("axis", criterion=criterion)
    theirs = DecisionTreeClassifier(criterion=criterion, random_state=0)
    for alpha in (0.003, 0.01, 0.05):
        a = clone(ours).set_params(ccp_alpha=alpha).fit(X, y, weight)
        b = clone(theirs).set_params(ccp_alpha=alpha).fit(X, y, weight)
        assert abs(a.get_n_leaves() - b.get_n_leaves()) <= 1
        assert a.score(X, y) == pytest.approx(b.score(X, y), abs=0.01)
    a, b = (
        model.cost_complexity_pruning_path(X, y, weight) for model in (ours, theirs)
    )
    np.testing.assert_allclose(a.ccp_alphas[-3:], b.ccp_alphas[-3:])
    np.testing.assert_allclose(a.impurities[-3:], b.impurities[-3:])


@pytest.mark.parametrize("name", sorted(GREEDY_PRESETS))
def test_presets(name):
    X, y = load_wine(return_X_y=True)
    model = ObliqueTreeClassifier.from_preset(name, random_state=0)
    for parameter, value in GREEDY_PRESETS[name].items():
        assert getattr(model, parameter) == value
    assert clone(model).fit(X, y).score(X, y) > 0.8
    assert (
        ObliqueTreeClassifier.from_preset(name, max_depth=1).fit(X, y).get_depth() <= 1
    )
    with pytest.raises(ValueError, match=rf"'ID3'.*'{name}'"):
        ObliqueTreeClassifier.from_preset("ID3")
    of_targets = ObliqueTreeRegressor.from_preset(name, random_state=0)
    if name.startswith("WODT"):
        with pytest.raises(ValueError, match="'wodt' is for classes, not for targets"):
            of_targets.fit(X, X[:, 0])
    else:
        assert of_targets.fit(X, X[:, 0]).score(X, X[:, 0]) > 0.5


def test_regression_prunes_in_the_units_of_the_targets():
    X, y = load_diabetes(return_X_y=True)
    X = X + np.random.default_rng(0).normal(0.0, 1e-5, X.shape)  # no two rows tie
    ours, theirs = (
        ObliqueTreeRegressor("axis", max_depth=4),
        DecisionTreeRegressor(max_depth=4),
    )
    a, b = (model.cost_complexity_pruning_path(X, y) for model in (ours, theirs))
    np.testing.assert_allclose(a.ccp_alphas, b.ccp_alphas, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(a.impurities, b.impurities, rtol=1e-6)
    for model in (ours, theirs):
        model.set_params(ccp_alpha=40.0).fit(X, y)
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X))
    assert ours.get_n_leaves() < 16
