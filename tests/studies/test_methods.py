"""Methods that choose settings, those of other packages, and trees of many complexities."""

import sys
from configparser import ConfigParser
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.datasets import load_iris, make_classification, make_friedman1
from sklearn.model_selection import cross_val_predict, cross_val_score
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from evotree.experiments.experiment import tree_sizes
from evotree.experiments.protocols import stratified_folds
from experiments.methods import chosen, classifiers
from experiments.methods import trees as made
from experiments.studies import regression

PACKAGES = {
    "stree": (chosen.ChosenClassifier(classifiers.scaled_stree), "stree"),
    "interpret-core": (
        chosen.ChosenClassifier(chosen.boosting_machine),
        "interpret.glassbox",
    ),
    "xgboost": (chosen.ChosenClassifier(chosen.xgboost), "xgboost"),
    "cubist": (chosen.ChosenRegressor(regression.cubist_rules), "cubist"),
}


noisy_classes = partial(
    make_classification, n_features=4, n_redundant=0, flip_y=0.3, random_state=0
)
noisy_targets = partial(make_friedman1, noise=3.0, random_state=0)
KINDS = {
    "classes": (chosen.ChosenClassifier, DecisionTreeClassifier, noisy_classes),
    "targets": (chosen.ChosenRegressor, DecisionTreeRegressor, noisy_targets),
}
either_kind = pytest.mark.parametrize("kind", KINDS)


@either_kind
def test_cart_is_pruned_as_an_exhaustive_search_says(kind):
    method, tree, rows = KINDS[kind]
    X, y = rows(120)
    codes = np.unique(y, return_inverse=True)[1] if kind == "classes" else y
    path = tree(random_state=3).cost_complexity_pruning_path(X, y).ccp_alphas
    path = np.unique(np.maximum(path, 0.0))
    path = np.quantile(path, np.linspace(0, 1, min(len(path), 30)), method="nearest")
    folds = chosen.folds_of(codes, 5, 3)
    scores = [
        cross_val_score(tree(random_state=3, ccp_alpha=a), X, y, cv=folds).mean()
        for a in path
    ]
    best = path[np.flatnonzero(np.isclose(scores, max(scores), rtol=0, atol=1e-15))[-1]]
    model = method(chosen.pruned_cart, 3).fit(X, y)
    assert model.best_estimator_.ccp_alpha == best > 0.0
    assert tree_sizes(model)["leaves"] < tree(random_state=3).fit(X, y).get_n_leaves()


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
    extras = setup["options.extras_require"]
    both = f"{extras['peers']}\n{extras['survival']}".split("\n")
    lines = list(filter(None, both))
    assert {tuple(line.split(" ==")) for line in lines} == set(chosen.VERSIONS.items())


@pytest.mark.slow
@pytest.mark.parametrize("package", sorted({*PACKAGES} - {"cubist"}))
def test_the_packages_themselves(package):
    method, module = PACKAGES[package]
    pytest.importorskip(module)
    method = clone(method)  # that of the study stays as it is
    X, y = load_iris(return_X_y=True)
    names = np.array(list("abc"))[y]
    model = method.fit(X, names)
    assert np.mean(model.predict(X) == names) > 0.9
    shares = model.predict_proba(X)
    np.testing.assert_allclose(shares.sum(axis=1), 1.0, atol=1e-5)
    assert np.mean(model.classes_[shares.argmax(axis=1)] == model.predict(X)) > 0.95


BUDGETS = (1, 2, 3, 5, 8, 20, np.inf)


@pytest.mark.slow
@settings(max_examples=15, deadline=None)
@given(st.integers(0, 1000), st.sampled_from([2, 3]))
def test_the_tree_of_a_budget_is_that_of_an_exhaustive_search(seed, n_classes):
    """Scikit-learn prunes and cross-validates every tree between two links of its path."""
    X, y = noisy_classes(90, n_informative=3, n_classes=n_classes, random_state=seed)
    model = clone(made.CART).set_params(random_state=seed).fit(X, y)
    folds = stratified_folds(y, 5, seed)
    path = (
        DecisionTreeClassifier(random_state=seed)
        .cost_complexity_pruning_path(X, y)
        .ccp_alphas
    )
    best = {}
    # Links of one alpha are cut together here, one by one there.
    links = np.unique(path.clip(0.0).round(12))
    for alpha in (*np.sqrt(links[1:] * links[:-1]), 1.0):
        tree = DecisionTreeClassifier(random_state=seed, ccp_alpha=alpha)
        n_right = np.count_nonzero(cross_val_predict(tree, X, y, cv=folds) == y)
        size = tree.fit(X, y).tree_.node_count
        for budget in BUDGETS:
            if size <= budget:
                best[budget] = max(best.get(budget, (-1, 0)), (n_right, -size))
    for budget in BUDGETS[1:]:
        n_right, size = best[budget]
        at = model.best_within(budget)
        assert (model.n_right_[at], -model.complexities_[at]) == (n_right, size)


def test_l1_logistic_regressions_are_counted_as_scores_are():
    """Within a budget the one is taken that is right most often in the folds."""
    X, y = load_iris(return_X_y=True)
    for rows, n_leaves in ((slice(None), 1), (y < 2, 2)):
        model = clone(made.LOGISTIC).fit(X[rows], y[rows])
        sizes = [one.complexity for one in model.trees_]
        assert sizes == sorted(sizes) and sizes[0] <= 2
        for one in model.trees_:
            assert one.n_leaves == (n_leaves if one.n_terms else 1)
        at = model.best_within(6)
        assert sizes[at] <= 6 and model.n_right_[at] == max(
            n for n, size in zip(model.n_right_, sizes, strict=True) if size <= 6
        )
        assert tree_sizes(model)["complexity"] == model.tree_.complexity
        assert np.mean(model.predict(X[rows]) == y[rows]) > 0.9


def test_thresholds_are_few_and_part_the_rows():
    X, y = make_classification(90, 20, n_informative=5, random_state=0)
    X[:, 3] = X[:, 3] > 0.0
    columns, thresholds = made.thresholds_of(X, y, 0)
    assert len(columns) == made.MAX_BINARY
    columns, thresholds = made.thresholds_of(X[:, 2:4], y, 0)
    assert np.bincount(columns).tolist() == [made.N_THRESHOLDS, 1]
    shares = (X[:, 2:4][:, columns] > thresholds).mean(axis=0)
    assert (shares > 0.0).all() and (shares < 1.0).all()


@pytest.mark.slow
def test_optimal_trees_err_least_on_their_rows():
    pytest.importorskip("pystreed")
    X, y = noisy_classes(90, n_informative=3, n_classes=3)
    trees = made.grow_streed(X, y, 0)
    right = [np.mean(made.predicted_codes(tree, X) == y) for tree in trees]
    assert right == sorted(right)
    most = [2 * n_splits + 1 for _, n_splits in made.STREED_SIZES]
    assert np.all(np.array([tree.complexity for tree in trees]) <= most)
    columns, thresholds = made.thresholds_of(X, y, 0)
    cart = DecisionTreeClassifier(max_leaf_nodes=8, max_depth=3)
    binary = X[:, columns] > thresholds
    assert right[-1] >= cart.fit(binary, y).score(binary, y)
