"""Methods that choose settings, those of other packages, and trees of many complexities."""

import sys
import types
from configparser import ConfigParser
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.model_selection import cross_val_predict, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from evotree.experiments.experiment import tree_sizes
from evotree.experiments.protocols import stratified_folds
from evotree.front import FrontTree
from experiments.methods import chosen, classifiers, regressors, trees
from experiments.methods import trees as made

PACKAGES = {
    "stree": (chosen.ChosenClassifier(classifiers.scaled_stree), "stree"),
    "interpret-core": (
        chosen.ChosenClassifier(chosen.boosting_machine),
        "interpret.glassbox",
    ),
    "xgboost": (chosen.ChosenClassifier(chosen.xgboost), "xgboost"),
    "obliquetree": (trees.PAIRS, "obliquetree"),
    "cubist": (chosen.ChosenRegressor(regressors.cubist_rules), "cubist"),
}


def noisy_classes(n_rows=150, n_features=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, n_features)) * np.geomspace(1.0, 100.0, n_features)
    return X, np.where(X[:, 0] + 0.8 * rng.normal(size=n_rows) > 0, "yes", "no")


def bent_rows(n_rows=150, random_state=0):
    """Make rows of a bent plane with noise."""
    rng = np.random.default_rng(random_state)
    X = rng.normal(size=(n_rows, 4)) * [1.0, 10.0, 0.1, 1.0] + [0.0, 5.0, 0.0, 0.0]
    y = np.abs(X[:, 0]) + 0.1 * X[:, 1] + 0.3 * rng.normal(size=n_rows)
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
        cross_val_score(tree(random_state=3, ccp_alpha=a), X, y, cv=folds).mean()
        for a in path
    ]
    best = path[np.flatnonzero(np.isclose(scores, max(scores), rtol=0, atol=1e-15))[-1]]
    model = method(chosen.pruned_cart, 3).fit(X, y)
    assert model.best_estimator_.ccp_alpha == best > 0.0
    assert tree_sizes(model)["leaves"] < tree(random_state=3).fit(X, y).get_n_leaves()
    search = chosen.search_pruning(tree(random_state=3), X, codes, 3, max_alphas=3)
    assert len(search.cv_results_["params"]) == 3


def node(coefficients, column=-1):
    """Return a node as STree has them; a leaf has no coefficients."""
    machine = types.SimpleNamespace(coef_=np.array(coefficients))
    return types.SimpleNamespace(
        is_leaf=lambda: not coefficients,
        get_classifier=lambda: machine,
        get_partition_column=lambda: column,
    )


class FakeSTree:
    """A tree that is looked into as STree is."""

    def nodes_leaves(self):
        return 5, 3

    def __iter__(self):
        inner = node([[1.0, 2.0], [0.0, 3.0], [4.0, 5.0]], 1), node([[1.0, 2.0]])
        return iter([*inner, *[node([])] * 3])


def test_a_node_of_stree_counts_the_machine_that_parts_it():
    sizes = classifiers.stree_sizes(FakeSTree())
    assert sizes == {"nodes": 5, "leaves": 3, "terms": 1 + 2}
    model = make_pipeline(MinMaxScaler())
    model.sizes_ = sizes
    assert tree_sizes(model) == sizes | {"complexity": 6}


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
    lines = [
        line for name in ("peers", "survival") for line in extras[name].split("\n")
    ]
    lines = list(filter(None, lines))
    assert {tuple(line.split(" ==")) for line in lines} == set(chosen.VERSIONS.items())


@pytest.mark.slow
@pytest.mark.parametrize("package", PACKAGES)
def test_the_packages_themselves(package):
    method, module = PACKAGES[package]
    pytest.importorskip(module)
    method = clone(method)  # that of the study stays as it is
    if package == "cubist":
        X, y = bent_rows()
        sizes = tree_sizes(method.fit(X, y))
        assert (
            method.score(X, y) > 0.6
            and 1 <= sizes["leaves"] <= sizes["complexity"] <= 40
        )
        return
    X, y = load_iris(return_X_y=True)
    names = np.array(list("abc"))[y]
    model = method.fit(X, names)
    assert np.mean(model.predict(X) == names) > 0.9
    shares = model.predict_proba(X)
    np.testing.assert_allclose(shares.sum(axis=1), 1.0, atol=1e-5)
    assert np.mean(model.classes_[shares.argmax(axis=1)] == model.predict(X)) > 0.95


BUDGETS = (1, 2, 3, 5, 8, 20, np.inf)


def noisy_rows(seed=0, n_rows=120, n_features=3, n_classes=2):
    """Draw rows of classes that overlap."""
    rng = np.random.default_rng(seed)
    y = np.arange(n_rows) % n_classes
    return rng.normal(size=(n_rows, n_features)) + 0.8 * y[:, None], y


@pytest.mark.slow
@settings(max_examples=15, deadline=None)
@given(st.integers(0, 1000), st.sampled_from([2, 3]))
def test_the_tree_of_a_budget_is_that_of_an_exhaustive_search(seed, n_classes):
    """Scikit-learn prunes and cross-validates every tree between two links of its path."""
    X, y = noisy_rows(seed, 90, n_classes=n_classes)
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


def member(quality, n_leaves, root_width):
    """Make a member of a front: a chain of splits, the root's on several features."""
    weights = np.zeros((2 * n_leaves - 1, 10))
    inner = np.arange(0, 2 * n_leaves - 2, 2)
    weights[inner, 0] = 1.0
    weights[0, :root_width] = 1.0
    size = np.ones(2 * n_leaves - 1, dtype=np.int32)
    size[inner] = 2 * n_leaves - 1 - inner
    tree = made.ObliqueTree(
        weights, np.zeros(len(size)), size, np.zeros((len(size), 2))
    )
    return FrontTree.of(tree.validate(), quality, "made up")


@pytest.mark.parametrize(
    ("size_penalty", "term_penalty", "budget", "expected"),
    [
        (0.0, 0.0, np.inf, 4),  # the best quality
        (0.0, 0.0, 11, 3),
        (0.0, 0.0, 10, 2),
        (0.01, 0.0, np.inf, 3),  # 0.02 for each leaf
        (0.0, 0.02, np.inf, 2),  # the last two have 6 and 7 terms more than splits
        (0.0, 0.02, 5, 1),
        (1.0, 0.0, np.inf, 0),
    ],
)
def test_the_front_is_asked_by_the_penalties_of_the_fit(
    size_penalty, term_penalty, budget, expected
):
    shapes = [(0.5, 1, 0), (0.8, 2, 1), (0.9, 5, 1), (0.95, 3, 7), (0.96, 4, 8)]
    front = [member(*shape) for shape in shapes]
    assert [tree.complexity for tree in front] == [1, 3, 9, 11, 14]
    model = types.SimpleNamespace(
        pareto_front_=front, size_penalty_=size_penalty, term_penalty_=term_penalty
    )
    assert made.tree_within(model, budget) is front[expected]
