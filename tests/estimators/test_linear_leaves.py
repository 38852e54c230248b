"""Regressors with linear models in their leaves: what they find, keep, refuse and repeat."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from evotree import (
    EvoTreeRegressor,
    LinearLeaves,
    ObliqueTree,
    ObliqueTreeRegressor,
    Regularization,
    TAORegressor,
)
from tests.quick_models import BRIEF, assert_same_fit, checked, evolved, name_of

LINEAR = [
    evolved(EvoTreeRegressor, **BRIEF, leaves="linear"),
    ObliqueTreeRegressor("axis", max_depth=3, leaves="linear", random_state=0),
    TAORegressor(depth=3, leaves="linear", random_state=0),
]
every_linear = pytest.mark.parametrize("model", LINEAR, ids=name_of)


def pieces(n=300, seed=0, noise=0.0):
    """Return rows whose targets are of one line on one side of a plane, and of another beyond."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1.0, 1.0, (n, 4))
    y = np.where(
        X[:, 0] > 0.2, 2.0 + 2.0 * X[:, 1], 3.0 * X[:, 2]
    ) + noise * rng.normal(size=n)
    return X, y


def quick(**changed):
    """Return an evolved regressor with lines, which fits in a moment."""
    return evolved(
        EvoTreeRegressor, **BRIEF | {"leaves": "linear", "max_generations": 8} | changed
    )


def halves():
    """Return the tree whose split is that of `pieces`."""
    weights, size = np.zeros((3, 4)), np.array([3, 1, 1], dtype=np.int32)
    weights[0, 0] = 1.0
    return ObliqueTree(weights, np.array([0.2, 0.0, 0.0]), size, np.zeros((3, 1)))


@checked(LINEAR[:2])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


# ---- what is found -------------------------------------------------------------------------------


@every_linear
def test_functions_that_are_linear_in_parts_are_found(model):
    fitted = clone(model).fit(*pieces())
    assert fitted.tree_.models is not None and fitted.tree_.values.shape == (
        len(fitted.tree_),
        1,
    )
    constant = clone(model).set_params(leaves="constant").fit(*pieces())
    X, y = pieces(seed=1)
    assert fitted.score(X, y) > 0.98 > constant.score(X, y) + 0.05
    assert fitted.get_n_leaves() < 6


@pytest.mark.parametrize("pruning", ["cost_complexity", "cross_validation"])
def test_pruned_trees_keep_the_splits_that_lines_need(pruning):
    X, y = pieces(400, noise=0.5)
    model = ObliqueTreeRegressor("axis", leaves="linear", pruning=pruning, n_folds=4)
    model.set_params(validation_fraction=0.3, random_state=0).fit(X, y)
    X, y = pieces(2000, seed=1, noise=0.5)
    assert 1 < model.get_n_leaves() < 10 and model.score(X, y) > 0.88
    flat = np.random.default_rng(0).normal(size=2000)
    assert model.fit(X, X @ np.ones(4) + 0.2 * flat).get_n_leaves() == 1


# ---- the features of lines -----------------------------------------------------------------------


@every_linear
def test_lines_use_the_features_that_they_may(model):
    X, y = pieces(noise=0.1)
    frame = pd.DataFrame(X, columns=["side", "up", "down", "none"])
    frame["colour"] = pd.Categorical(
        np.where(X[:, 3] > 0.0, "red", np.where(X[:, 3] > -0.5, "green", "blue"))
    )
    for given, used in ((["up", 2], {"up", "down"}), ([], set()), ("up", {"up"})):
        fitted = clone(model).set_params(leaves=LinearLeaves(given)).fit(frame, y)
        named = np.array(fitted.feature_names_)
        found = set(named[fitted.tree_.models.coefficients.any(axis=0)])
        assert found <= used and bool(found) == bool(used)
        assert fitted.tree_.weights.any()
    y = y + 9.0 * (frame["colour"] == "red")
    fitted = clone(model).set_params(leaves=LinearLeaves(["colour"])).fit(frame, y)
    found = np.array(fitted.feature_names_)[
        fitted.tree_.models.coefficients.any(axis=0)
    ]
    assert (
        {"colour is red"}
        <= set(found)
        <= {f"colour is {c}" for c in ("red", "green", "blue")}
    )


# ---- what is refused, and what is chosen ---------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (
            quick(objective="absolute_error"),
            "'absolute_error' does not go with leaves='linear'",
        ),
        *(
            (
                clone(LINEAR[1]).set_params(leaves=LinearLeaves(wrong)),
                "features names .*: allowed",
            )
            for wrong in ("size", ["x1", 4], [-1], [0.5], [True])
        ),
    ],
)
def test_what_lines_cannot_be_is_refused(model, message):
    X, y = pieces()
    with pytest.raises(ValueError, match=message):
        model.fit(X, abs(y))


def test_auto_is_lines_where_the_objective_has_them():
    changed = {"leaves": "auto", "size_penalty": "auto", "term_penalty": "auto"}
    changed["regularization"] = Regularization()
    auto = quick(**changed).fit(*pieces(noise=0.3))
    assert auto.tree_.models is not None
    assert_same_fit(
        auto, clone(auto).set_params(leaves="linear").fit(*pieces(noise=0.3))
    )
    X, y = pieces()
    assert quick(leaves="auto", objective="poisson").fit(X, abs(y)).tree_.models is None


# ---- the front -----------------------------------------------------------------------------------


def test_trees_found_elsewhere_join_with_lines_of_their_own():
    X, y = pieces()
    for fitted in (
        quick(init=halves(), max_generations=0),
        TAORegressor(halves(), leaves="linear"),
    ):
        assert fitted.fit(X, y).score(X, y) > 0.99 and fitted.get_n_leaves() == 2
