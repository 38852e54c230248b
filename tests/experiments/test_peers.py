"""The methods of other packages: labels, missing packages, and the choice of settings."""

import sys
import types
from configparser import ConfigParser
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import randint
from sklearn.datasets import load_iris
from sklearn.model_selection import ParameterSampler, StratifiedKFold
from sklearn.tree import DecisionTreeClassifier

from evotree.experiments.studies import peers
from evotree.experiments.studies.costs import OptimalTree
from evotree.experiments.studies.readable_trees import PairTrees

PACKAGES = {
    "stree": (peers.ScaledSTree(), "stree"),
    "interpret-core": (peers.BoostingMachine(), "interpret.glassbox"),
    "xgboost": (peers.XGBoost(), "xgboost"),
    "obliquetree": (PairTrees(), "obliquetree"),
    "pystreed": (OptimalTree(), "pystreed"),
}


class FakeXGBClassifier(DecisionTreeClassifier):
    """A tree that takes codes alone, as the classifier of XGBoost does."""

    def __init__(self, max_depth=None, random_state=0, n_jobs=None):
        super().__init__(max_depth=max_depth, random_state=random_state)
        self.n_jobs = n_jobs

    def fit(self, X, y):
        if np.unique(y).tolist() != list(range(len(np.unique(y)))) or self.n_jobs != 1:
            raise ValueError("codes from 0 on one thread are needed")
        return super().fit(X, y)


@pytest.fixture
def xgboost(monkeypatch):
    """Put a package of the name in the place of XGBoost."""
    monkeypatch.setitem(
        sys.modules, "xgboost", types.SimpleNamespace(XGBClassifier=FakeXGBClassifier)
    )


@pytest.mark.parametrize("package", PACKAGES)
def test_a_missing_package_says_what_to_install(package, monkeypatch):
    method, module = PACKAGES[package]
    monkeypatch.setitem(sys.modules, module, None)
    version = peers.VERSIONS[package].replace(".", r"\.")
    with pytest.raises(ModuleNotFoundError, match=rf"pip install {package}=={version}"):
        method.fit(*load_iris(return_X_y=True))


def test_the_extra_installs_the_versions_that_are_named():
    setup = ConfigParser()
    setup.read(Path(__file__).parents[2] / "setup.cfg")
    lines = setup["options.extras_require"]["peers"].split("\n")[1:]
    assert {tuple(line.split(" ==")) for line in lines} == set(peers.VERSIONS.items())


def test_labels_are_given_back(xgboost):
    X, y = load_iris(return_X_y=True)
    names = np.array(["z", "b", "m"])[y]
    model = peers.XGBoost({"max_depth": 2}).fit(X, names)
    expected = DecisionTreeClassifier(max_depth=2, random_state=0).fit(X, names)
    np.testing.assert_array_equal(model.predict(X), expected.predict(X))
    assert model.classes_.tolist() == ["b", "m", "z"]
    np.testing.assert_allclose(model.predict_proba(X), expected.predict_proba(X))


def test_the_best_draw_is_chosen_though_a_fold_lacks_a_class(xgboost, monkeypatch):
    monkeypatch.setattr(peers, "BOOSTING_SPACE", {"max_depth": randint(1, 12)})
    monkeypatch.setattr(peers, "N_DRAWS", 5)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 2))
    y = np.where(X[:, 0] * X[:, 1] + 0.3 * rng.normal(size=120) > 0, "yes", "no").astype(object)
    y[0] = "never mind"
    depths = [
        draw["max_depth"]
        for draw in ParameterSampler({"max_depth": randint(1, 12)}, 5, random_state=4)
    ]
    with pytest.warns(UserWarning, match="least populated class"):
        folds = list(StratifiedKFold(3, shuffle=True, random_state=4).split(X, y))
    assert any("never mind" not in y[train] for train, _ in folds)
    scores = []
    for depth in depths:
        tree = DecisionTreeClassifier(max_depth=depth, random_state=4)
        scores.append(np.mean([tree.fit(X[a], y[a]).score(X[b], y[b]) for a, b in folds]))
    assert len(set(scores)) > 1
    model = peers.TunedXGBoost(random_state=4).fit(X, y)
    chosen = model.best_estimator_
    assert chosen.settings["max_depth"] == depths[int(np.argmax(scores))]
    assert chosen.random_state == 4
    assert model.predict_proba(X).shape == (120, 3) and set(model.predict(X)) <= set(y)


@pytest.mark.parametrize("package", PACKAGES)
def test_the_packages_themselves(package):
    method, module = PACKAGES[package]
    pytest.importorskip(module)
    X, y = load_iris(return_X_y=True)
    names = np.array(list("abc"))[y]
    model = method.fit(X, names)
    assert np.mean(model.predict(X) == names) > 0.9
    shares = model.predict_proba(X)
    np.testing.assert_allclose(shares.sum(axis=1), 1.0, atol=1e-5)
    assert np.mean(model.classes_[shares.argmax(axis=1)] == model.predict(X)) > 0.95
