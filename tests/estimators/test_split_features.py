"""Splits that may use some of the columns alone."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.datasets import load_diabetes

from evotree import (
    EvoTreeRegressor,
    LinearLeaves,
    ObliqueTreeRegressor,
    Refinement,
    TAORegressor,
    Variation,
)
from tests import quick_models

ALLOWED = [1, 3, 4]
SPLITS = LinearLeaves(split_features=ALLOWED)


def brief(**changed):
    free = {"size_penalty": 0.0, "term_penalty": 0.0, "leaves": SPLITS}
    return quick_models.brief(EvoTreeRegressor, **free | changed)


def others_used(tree, allowed=ALLOWED):
    """Return whether a tree splits on another feature."""
    return bool(np.delete(tree.weights, allowed, axis=1).any())


def watched(model, X, y):
    """Return a fitted model, all of whose trees, at all times, split on allowed features alone."""
    n_seen = 0

    def watch(run):
        nonlocal n_seen
        for tree in (*run.population, *run.hall_of_fame, *run.pareto_front):
            assert not others_used(tree)
            n_seen += len(tree) > 1

    fitted = model.set_params(callbacks=[watch]).fit(X, y)
    assert n_seen > 0
    for tree in (fitted.tree_, *fitted.hall_of_fame_, *fitted.pareto_front_):
        assert not others_used(tree)
    return fitted


@settings(max_examples=6, deadline=None)
@given(
    seed=st.integers(0, 1000),
    changed=st.fixed_dictionaries(
        {
            "islands": st.sampled_from((1, 2)),
            "precision": st.sampled_from(("auto", None, 1)),
            "max_samples": st.sampled_from((None, 0.3)),
            "variation": st.sampled_from(
                [
                    Variation(),
                    Variation(algorithm="nsga2"),
                    Variation(sparse_dipoles=False),
                ]
            ),
            "regularization__noise": st.sampled_from((0.0, 0.1)),
            "max_split_terms": st.sampled_from((None, 1, 2)),
            "init": st.sampled_from(("widths", "tao", "axis", "dipole")),
        }
    ),
)
def test_no_split_of_any_tree_uses_another_feature(seed, changed):
    X, y = load_diabetes(return_X_y=True)
    rows = np.random.default_rng(seed).integers(len(X), size=150)
    watched(brief(random_state=seed, **changed), X[rows], y[rows])


@pytest.mark.slow
def test_every_operator_keeps_to_them_and_given_trees_are_repaired():
    X, y = load_diabetes(return_X_y=True)
    free = quick_models.brief(EvoTreeRegressor, leaves="constant").fit(X, y)
    assert others_used(free.tree_)
    names = ["tao", "sparse", "axis", "dipole"]
    refinement = Refinement(names, probability=0.5)
    init = ["widths", "tao", "cart_lc", free]
    watched(brief(init=init, population_size=24, refinement=refinement), X, y)


def test_lines_use_all_columns_and_splits_those_that_may():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(400, 3)), columns=["a", "b", "c"])
    frame["region"] = pd.Categorical(rng.choice(["east", "north", "west"], 400))
    slope = frame["region"].map({"east": 1.0, "north": -1.0, "west": 3.0}).astype(float)
    y = slope * frame["a"] + frame["b"] + 0.1 * rng.normal(size=400)
    lines = LinearLeaves(split_features=["region"])
    model = quick_models.brief(EvoTreeRegressor, leaves=lines, max_generations=8)
    fitted = clone(model).fit(frame, y)
    named = np.array(fitted.feature_names_)
    used = set(named[fitted.tree_.weights.any(axis=0)])
    assert used and all(name.startswith("region is") for name in used)
    assert {"a", "b"} <= set(named[fitted.tree_.models.coefficients.any(axis=0)])
    assert fitted.score(frame, y) > 0.95
    for same in ("region", [3], np.array([3])):
        lines = LinearLeaves(split_features=same)
        assert clone(model).set_params(leaves=lines).fit(frame, y).tree_ == fitted.tree_


@pytest.mark.parametrize(
    "model",
    [
        ObliqueTreeRegressor("axis", max_depth=3),
        ObliqueTreeRegressor("linear", max_depth=3),
        TAORegressor(depth=3, random_state=0),
        TAORegressor(TAORegressor(depth=2, random_state=0), node="axis"),
    ],
    ids=repr,
)
def test_greedy_and_alternating_trees_keep_to_them(model):
    X, y = load_diabetes(return_X_y=True)
    model = clone(model).set_params(leaves=LinearLeaves(split_features=[2, 4, 8]))
    if isinstance(model, TAORegressor) and not isinstance(model.init, str):
        model.set_params(init=model.init.fit(X, y))
        assert others_used(model.init.tree_, [2, 4, 8])
    fitted = model.fit(X, y)
    assert not others_used(fitted.tree_, [2, 4, 8])
    assert fitted.tree_.n_leaves > 1 and fitted.score(X, y) > 0.3
    assert np.delete(fitted.tree_.models.coefficients, [2, 4, 8], axis=1).any()


@pytest.mark.parametrize("wrong", [["a"], [10], [-1], [True], [1.5], []], ids=repr)
def test_other_columns_are_refused(wrong):
    named = (
        " names .*: allowed are positions from 0" if wrong else "=.*at least one column"
    )
    with pytest.raises(ValueError, match="split_features" + named):
        brief(leaves=LinearLeaves(split_features=wrong)).fit(
            *load_diabetes(return_X_y=True)
        )
