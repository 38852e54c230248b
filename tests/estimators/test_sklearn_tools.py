"""All estimators in scikit-learn's tools: copies, searches, ensembles."""

import pickle
from functools import cache, partial

import joblib
import numpy as np
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.dummy import DummyClassifier
from sklearn.exceptions import NotFittedError
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from evotree import (
    EvoTreeClassifier,
    EvoTreeRegressor,
    ObliqueTreeClassifier,
    ObliqueTreeRegressor,
    Regularization,
    TAOClassifier,
    TAORegressor,
)
from evotree.texts import notebook_html
from tests.quick_models import (
    BRIEF,
    CLASSIFIERS,
    REGRESSORS,
    assert_same,
    brief,
    checked,
    every,
    evolved,
    name_of,
    rows_for,
    weights_for,
)


@cache
def fitted_to_rows(model):
    """Return a fitted model, which no test changes, and its rows and targets."""
    X, y = rows_for(model)
    return clone(model).fit(X, y), X, y


# ---- scikit-learn's own checks -------------------------------------------------------------------


@checked(CLASSIFIERS + REGRESSORS)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


# What is chosen, is chosen among all candidates.
AUTO = BRIEF | {
    "size_penalty": "auto",
    "regularization": Regularization(),
    "max_generations": 2,
}


@pytest.mark.slow
@checked(
    [
        EvoTreeClassifier.from_preset(
            "gea_odt", max_generations=100, evolution__patience=20
        ),
        evolved(EvoTreeClassifier, **AUTO),
        evolved(EvoTreeRegressor, **AUTO),
        brief(variation__algorithm="nsga2", max_generations=10),
        brief(max_samples=0.3, max_generations=12),
        brief(islands=2, max_generations=12),
        brief(EvoTreeRegressor, max_samples=10, max_generations=20),
        ObliqueTreeClassifier(
            "axis", class_weight="balanced", min_weight_fraction_leaf=0.01
        ),
        ObliqueTreeClassifier("dipole", pruning="cross_validation"),
        ObliqueTreeRegressor("axis", pruning="cross_validation"),
        TAOClassifier(depth=3, loss="svm", class_weight="balanced"),
        TAORegressor("random", penalty="l2"),
        TAORegressor(node="axis"),
    ]
)
def test_scikit_learn_checks_of_other_settings(estimator, check):
    check(estimator)


# ---- copies, parameters, representations ---------------------------------------------------------


@every
def test_pickles_are_the_same_models(model, tmp_path):
    fitted, X, y = fitted_to_rows(model)
    joblib.dump(fitted, tmp_path / "model.joblib")
    copies = [pickle.loads(pickle.dumps(fitted, protocol)) for protocol in (2, 5)]
    copies += [
        joblib.load(tmp_path / "model.joblib", mmap_mode=mode) for mode in (None, "r")
    ]
    unfitted = clone(fitted)
    assert not hasattr(unfitted, "tree_") and repr(unfitted) == repr(model)
    copies.append(unfitted.fit(X, y))
    for copy in copies:
        assert_same(copy, fitted, X)


@every
def test_notebooks_show_models(model):
    assert "Not fitted" in clone(model)._repr_html_()
    model, *_ = fitted_to_rows(model)
    html = model._repr_html_()
    assert name_of(model) in html and "Not fitted" not in html
    tree = notebook_html(model)
    assert html.endswith(tree) and model._repr_mimebundle_()["text/html"].endswith(tree)
    assert name_of(model) in make_pipeline(StandardScaler(), model)._repr_html_()


@every
def test_a_fit_that_breaks_off_leaves_no_model(model):
    X, y = rows_for(model)
    model = clone(model)
    model.n_features_in_ = X.shape[1]  # set before the tree is
    calls = [
        model.predict,
        model.apply,
        model.decision_path,
        FrozenEstimator(model).predict,
    ]
    calls += [lambda X: model.get_depth(), lambda X: model.get_n_leaves()]
    for call in calls:
        with pytest.raises(NotFittedError):
            call(X)


# ---- what stands beside rows ---------------------------------------------------------------------


def of_two(counts, leaves):
    """Return the accuracy, less something that a column says which is no feature."""
    kinds = leaves.extras["sensitive"]
    return counts.max(axis=1).sum() / counts.sum() - 0.01 * kinds.std()


BESIDE = {
    "sample_weight": lambda y: weights_for(y),
    "groups": lambda y: np.arange(len(y)) // 3,
    "sensitive": lambda y: np.arange(len(y)) % 2,
    "exposure": lambda y: 1.0 + np.arange(len(y)) % 3,
}
ROUTED = [(model, "sample_weight") for model in CLASSIFIERS + REGRESSORS]
ROUTED += [(brief(max_samples=0.5), "groups"), (brief(objective=of_two), "sensitive")]
ROUTED += [
    (
        ObliqueTreeRegressor("axis", pruning="cross_validation", random_state=0),
        "groups",
    )
]
ROUTED += [(brief(EvoTreeRegressor, objective="poisson"), "exposure")]


@pytest.mark.parametrize(("model", "name"), ROUTED)
def test_what_stands_beside_rows_is_routed(model, name):
    X, y = rows_for(model)
    given = {name: BESIDE[name](y)}
    Z = StandardScaler().fit_transform(X)
    expected = clone(model).fit(Z, y, **given)
    with config_context(enable_metadata_routing=True):
        scaler = StandardScaler()
        if name == "sample_weight":
            scaler.set_fit_request(sample_weight=False)
        asking = make_pipeline(scaler, clone(model).set_fit_request(**{name: True}))
        if name in ("sample_weight", "exposure"):
            asking[-1].set_score_request(**{name: True})
        assert_same(clone(asking).fit(X, y, **given)[-1], expected, Z)
        grid = {f"{name_of(model).lower()}__random_state": [model.random_state]}
        search = GridSearchCV(asking, grid, cv=3, error_score="raise")
        assert_same(search.fit(X, y, **given).best_estimator_[-1], expected, Z)
        deaf = make_pipeline(scaler, clone(model).set_fit_request(**{name: False}))
        with pytest.raises(TypeError, match=name):
            deaf.fit(X, y, **given)
        with pytest.raises(ValueError, match="not explicitly set as requested"):
            make_pipeline(scaler, clone(model)).fit(X, y, **given)


# ---- ensembles -----------------------------------------------------------------------------------


def test_fitted_trees_stay_fitted_in_copies_where_frozen():
    X, y = load_iris(return_X_y=True)
    for kind in (DecisionTreeClassifier, partial(ObliqueTreeClassifier, "axis")):
        start = kind(max_depth=2).fit(X, y)
        frozen = FrozenEstimator(start)
        assert_same(TAOClassifier(frozen).fit(X, y), TAOClassifier(start).fit(X, y), X)
        for model in (TAOClassifier(frozen), brief(init=[frozen])):
            assert cross_val_score(model, X, y, cv=3, error_score="raise").mean() > 0.9
        with pytest.raises(NotFittedError, match="init: .*FrozenEstimator"):
            clone(TAOClassifier(start)).fit(X, y)
    with pytest.raises(
        ValueError,
        match="init holds Frozen.*allowed are trees, rules, and fitted estimators",
    ):
        TAOClassifier(FrozenEstimator(DummyClassifier().fit(X, y))).fit(X, y)
