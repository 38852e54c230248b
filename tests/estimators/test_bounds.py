"""Hard bounds, interaction constraints, and splits on some columns alone: all trees keep them."""

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.datasets import load_diabetes, load_iris, load_wine

from evotree import (
    EvoTreeClassifier,
    EvoTreeRegressor,
    LinearLeaves,
    ObliqueTreeRegressor,
    Refinement,
    TAORegressor,
    Variation,
)
from evotree.engine.toolbox import feature_bound
from tests import quick_models
from tests.quick_models import brief

KINDS = {EvoTreeClassifier: load_wine, EvoTreeRegressor: load_diabetes}


def allowed_columns(interaction_cst, n_columns):
    """Return whether a set of columns may share a split, as a function."""
    if interaction_cst is None:
        return lambda used: True
    if isinstance(interaction_cst, str):
        return lambda used: (
            len(used) <= {"no_interactions": 1, "pairwise": 2}[interaction_cst]
        )
    rest = set(range(n_columns)).difference(*interaction_cst)
    return lambda used: any(used <= set(one) for one in [*interaction_cst, rest])


def assert_kept(model, X, weight=None):
    """Check the bounds of a fitted model on all of its trees."""
    wanted = model.get_params()
    rows = model.encode(X if weight is None else X[weight > 0.0], bends=True)
    least = wanted["min_samples_leaf"]
    least = math.ceil(least * len(rows)) if isinstance(least, float) else least
    n_made = [len(one.feature_levels) for one in model.columns_]
    column_of = np.repeat(np.arange(len(n_made)), n_made)
    is_allowed = allowed_columns(wanted["interaction_cst"], len(n_made))
    assert model.tree_ in [*model.hall_of_fame_, *model.pareto_front_]
    for tree in (model.tree_, *model.hall_of_fame_, *model.pareto_front_):
        tree.validate()
        assert tree.depth <= (wanted["max_depth"] or math.inf)
        assert tree.n_leaves <= (wanted["max_leaf_nodes"] or math.inf)
        if wanted["max_terms"] is not None:
            assert tree.n_terms <= wanted["max_terms"]
        if (
            widest := feature_bound(wanted["max_split_terms"], rows.shape[1])
        ) is not None:
            assert np.count_nonzero(tree.weights, axis=1).max() <= widest
        counts = np.bincount(tree.apply(rows), minlength=len(tree))[tree.is_leaf]
        assert len(tree) == 1 or counts.min() >= least
        for weights in tree.weights:
            assert is_allowed(set(column_of[weights != 0.0].tolist()))


@settings(max_examples=8)
@given(
    kind=st.sampled_from(list(KINDS)),
    seed=st.integers(0, 1000),
    noise=st.sampled_from((0.0, 0.1)),
    precision=st.sampled_from(("auto", None, 1)),
    islands=st.sampled_from((None, 2)),
    max_samples=st.sampled_from((None, 0.3)),
    algorithm=st.sampled_from(("penalized", "nsga2")),
    bounds=st.fixed_dictionaries(
        {},
        optional={
            "max_depth": st.integers(1, 4),
            "max_leaf_nodes": st.integers(2, 6),
            "min_samples_leaf": st.integers(1, 60) | st.floats(0.01, 0.5),
            "max_terms": st.integers(0, 20),
            "max_split_terms": st.sampled_from((1, 2, 0.2)),
            "interaction_cst": st.sampled_from(
                ("no_interactions", "pairwise", [{0, 1, 2}, (2, 3, 4)], [[5, 9]])
            ),
        },
    ),
)
def test_every_tree_keeps_the_bounds(
    kind, seed, noise, precision, islands, max_samples, algorithm, bounds
):
    X, y = KINDS[kind](return_X_y=True)
    rng = np.random.default_rng(seed)
    rows = rng.integers(len(X), size=150)  # some of them several times
    X, y, weight = X[rows], y[rows], rng.choice([0.0, 0.5, 1.0, 7.0], 150)
    model = brief(
        kind, regularization__noise=noise, precision=precision, islands=islands
    )
    model.set_params(random_state=seed, evolution__max_samples=max_samples, **bounds)
    model.set_params(
        size_penalty=0.0,
        term_penalty=0.0,
        evolution__variation=Variation(algorithm=algorithm),
    )
    assert_kept(model.fit(X, y, sample_weight=weight), X, weight)


def test_columns_of_categories_and_missing_numbers_go_with_all_their_features():
    X, y = load_iris(return_X_y=True, as_frame=True)
    X.columns = ["a", "b", "c", "d"]
    X["a"] = X["a"].mask(X["a"] > 6.5)
    X["kind"] = pd.Categorical(
        np.where(X["b"] < 2.8, "u", np.where(X["b"] < 3.2, "v", "w"))
    )
    for interaction_cst in ("no_interactions", "pairwise"):
        assert_kept(brief(interaction_cst=interaction_cst).fit(X, y), X)
    named = brief(interaction_cst=[{"a", "kind"}, {"c", 3}]).fit(X, y)
    numbered = brief(interaction_cst=[{0, 4}, {2, 3}]).fit(X, y)
    assert named.tree_ == numbered.tree_
    assert_kept(numbered, X)


@pytest.mark.parametrize(
    "wrong", ["all", [1, 2], [{0, 4}], [{-1}], [{0.5}], [{True}], [{"x9"}], ["x1"]]
)
def test_sets_of_columns_that_are_none_are_named(wrong):
    with pytest.raises(ValueError, match="interaction_cst"):
        brief(interaction_cst=wrong).fit(*load_iris(return_X_y=True))


@pytest.mark.slow
@pytest.mark.parametrize("outputs", [1, 2])
def test_no_leaf_has_fewer_rows_than_five_times_its_terms(outputs):
    """A few rows lie apart, on a line of their own: they are no leaf with a line of five terms."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 6))
    y = X @ rng.normal(size=(6, outputs)) + 0.05 * rng.normal(size=(200, outputs))
    X[:7, 0] += 12.0
    y[:7] = 40.0 - 3.0 * X[:7, 1:2]
    y[100:] += np.abs(4.0 * X[100:, 1:2])
    model = EvoTreeRegressor(leaves="linear", random_state=0, max_generations=10)
    model.fit(X, y[:, 0] if outputs == 1 else y)
    assert model.tree_.n_leaves > 1
    for tree in model.pareto_front_:
        leaves = np.flatnonzero(tree.is_leaf)
        of_outputs = tree.models.each if outputs > 1 else [tree.models]
        rows = np.bincount(
            tree.apply(model.encode(X, bends=True)), minlength=len(tree)
        )[leaves]
        for models in of_outputs:
            n_terms = np.count_nonzero(models.coefficients[leaves], axis=1)
            assert (rows >= 5 * n_terms).all()


# ---- splits that may use some of the columns alone -----------------------------------------------


ALLOWED = [1, 3, 4]
SPLITS = LinearLeaves(split_features=ALLOWED)


def of_columns(**changed):
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
    watched(of_columns(random_state=seed, **changed), X[rows], y[rows])


@pytest.mark.slow
def test_every_operator_keeps_to_them_and_given_trees_are_repaired():
    X, y = load_diabetes(return_X_y=True)
    free = quick_models.brief(EvoTreeRegressor, leaves="constant").fit(X, y)
    assert others_used(free.tree_)
    names = ["tao", "sparse", "axis", "dipole"]
    refinement = Refinement(names, probability=0.5)
    init = ["widths", "tao", "cart_lc", free]
    watched(of_columns(init=init, population_size=24, refinement=refinement), X, y)


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
        of_columns(leaves=LinearLeaves(split_features=wrong)).fit(
            *load_diabetes(return_X_y=True)
        )
