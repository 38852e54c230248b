"""Methods that choose settings, and those of other packages."""

import sys
from configparser import ConfigParser
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.model_selection import ParameterSampler, cross_val_score
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from evotree.experiments.experiment import tree_sizes
from experiments.methods import chosen, classifiers, regressors, trees
from experiments.studies import costs

PACKAGES = {
    "stree": (chosen.ChosenClassifier(classifiers.scaled_stree), "stree"),
    "interpret-core": (chosen.ChosenClassifier(chosen.boosting_machine), "interpret.glassbox"),
    "xgboost": (chosen.ChosenClassifier(chosen.xgboost), "xgboost"),
    "obliquetree": (trees.PAIRS, "obliquetree"),
    "cubist": (chosen.ChosenRegressor(regressors.cubist_rules), "cubist"),
    "pystreed": (costs.METHODS[costs.STREED], "pystreed"),
}


def noisy_classes(n_samples=150, n_features=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_samples, n_features)) * np.geomspace(1.0, 100.0, n_features)
    return X, np.where(X[:, 0] + 0.8 * rng.normal(size=n_samples) > 0, "yes", "no")


def bent_rows(n_samples=150, random_state=0):
    """Make rows of a bent plane with noise."""
    rng = np.random.default_rng(random_state)
    X = rng.normal(size=(n_samples, 4)) * [1.0, 10.0, 0.1, 1.0] + [0.0, 5.0, 0.0, 0.0]
    y = np.abs(X[:, 0]) + 0.1 * X[:, 1] + 0.3 * rng.normal(size=n_samples)
    return X, y


KINDS = {
    "classes": (chosen.ChosenClassifier, DecisionTreeClassifier, noisy_classes),
    "targets": (chosen.ChosenRegressor, DecisionTreeRegressor, bent_rows),
}
either_kind = pytest.mark.parametrize("kind", KINDS)


@either_kind
def test_cart_is_pruned_as_an_exhaustive_search_says(kind, monkeypatch):
    method, tree, rows = KINDS[kind]
    X, y = rows(120)
    codes = np.unique(y, return_inverse=True)[1] if kind == "classes" else y
    path = tree(random_state=3).cost_complexity_pruning_path(X, y).ccp_alphas
    path = np.unique(np.maximum(path, 0.0))
    path = np.quantile(path, np.linspace(0, 1, min(len(path), 30)), method="nearest")
    folds = chosen.folds_of(codes, 5, 3)
    scores = [
        cross_val_score(tree(random_state=3, ccp_alpha=a), X, y, cv=folds).mean() for a in path
    ]
    best = path[np.flatnonzero(np.isclose(scores, max(scores), rtol=0, atol=1e-15))[-1]]
    model = method(chosen.pruned_cart, 3).fit(X, y)
    assert model.best_estimator_.ccp_alpha == best > 0.0
    assert tree_sizes(model)["leaves"] < tree(random_state=3).fit(X, y).get_n_leaves()
    search = chosen.search_pruning(tree(random_state=3), X, codes, 3, max_alphas=3)
    assert len(search.cv_results_["params"]) == 3


@either_kind
def test_the_tuned_forest_has_the_best_draw(kind, monkeypatch):
    for name, value in (
        ("N_TREES", 30),
        ("N_TRIAL_TREES", 20),
        ("N_DRAWS", 4),
        ("TUNING_ROWS", 60),
    ):
        monkeypatch.setattr(chosen, name, value)
    method, _, rows = KINDS[kind]
    forest = RandomForestRegressor if kind == "targets" else RandomForestClassifier
    X, y = rows(100)
    judges = chosen.judging_rows(y, 7) if kind == "targets" else np.arange(100)
    assert len(set(judges)) == (60 if kind == "targets" else 100)
    draws = list(ParameterSampler(chosen.FOREST_SPACE, 4, random_state=7))
    scores = []
    for settings in draws:
        trial = forest(20, oob_score=True, random_state=7, **settings)
        scores.append(trial.fit(X[judges], y[judges]).oob_score_)
    expected = forest(30, random_state=7, **draws[int(np.argmax(scores))]).fit(X, y)
    found = method(partial(chosen.tuned_forest, kind=forest), 7).fit(X, y)
    np.testing.assert_array_equal(found.predict(X), expected.predict(X))
    assert tree_sizes(found)["leaves"] == sum(t.get_n_leaves() for t in expected.estimators_)


def test_a_linear_tree_predicts_by_the_leaf_that_a_row_reaches(monkeypatch):
    monkeypatch.delenv(regressors.LINEAR_TREE_PYTHON, raising=False)
    with pytest.raises(ModuleNotFoundError, match="EVOTREE_LINEAR_TREE_PYTHON is not set"):
        regressors.LinearTree().fit(*bent_rows())
    X = np.array([[-1.0, 0.0], [1.0, 0.0], [-1.0, 2.0], [1.0, 2.0]])  # standardized: -1 and 1
    leaves = (
        '[{"conditions": [[0, false, 0.0]], "coef": [0, 1], "intercept": 5},'
        ' {"conditions": [[0, true, 0.0], [1, false, 0.5]], "coef": [0, 0], "intercept": 7},'
        ' {"conditions": [[0, true, 0.0], [1, true, 0.5]], "coef": [2, 3], "intercept": 0}]'
    )

    def run(command, **_):
        assert Path(command[2]).name == "linear_tree_fit.py" and Path(command[2]).exists()
        Path(command[-1]).write_text(leaves, encoding="ascii")

    monkeypatch.setenv(regressors.LINEAR_TREE_PYTHON, "python")
    monkeypatch.setattr(regressors.subprocess, "run", run)
    model = regressors.LinearTree().fit(X, np.arange(4.0))
    np.testing.assert_allclose(model.predict(X), [4, 7, 6, 5])
    sizes = {"leaves": 3, "nodes": 5, "depth": 2, "terms": 2 + 3, "complexity": 8}
    assert tree_sizes(model) == sizes


@pytest.mark.parametrize("package", PACKAGES)
def test_a_missing_package_says_what_to_install(package, monkeypatch):
    method, module = PACKAGES[package]
    monkeypatch.setitem(sys.modules, module, None)
    version = chosen.VERSIONS[package].replace(".", r"\.")
    with pytest.raises(ModuleNotFoundError, match=rf"pip install {package}=={version}"):
        method.fit(*load_iris(return_X_y=True))


def test_the_extra_installs_the_versions_that_are_named():
    setup = ConfigParser()
    setup.read(Path(__file__).parents[2] / "setup.cfg")
    lines = setup["options.extras_require"]["peers"].split("\n")[1:]
    assert {tuple(line.split(" ==")) for line in lines} == set(chosen.VERSIONS.items())


@pytest.mark.parametrize("package", PACKAGES)
def test_the_packages_themselves(package):
    method, module = PACKAGES[package]
    pytest.importorskip(module)
    if package == "cubist":
        X, y = bent_rows()
        sizes = tree_sizes(method.fit(X, y))
        assert method.score(X, y) > 0.6 and 1 <= sizes["leaves"] <= sizes["complexity"] <= 40
        return
    X, y = load_iris(return_X_y=True)
    names = np.array(list("abc"))[y]
    if package == "pystreed":
        method.set_params(cost_matrix=1.0 - np.eye(3))
    model = method.fit(X, names)
    assert np.mean(model.predict(X) == names) > 0.9
    shares = model.predict_proba(X)
    np.testing.assert_allclose(shares.sum(axis=1), 1.0, atol=1e-5)
    assert np.mean(model.classes_[shares.argmax(axis=1)] == model.predict(X)) > 0.95
