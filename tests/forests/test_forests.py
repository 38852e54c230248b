"""Forests of small trees: votes, bags, kinds of trees, limits and files."""

from functools import cache

import numpy as np
import pandas as pd
import pytest
from joblib import parallel_config
from sklearn.base import clone, is_classifier
from sklearn.datasets import make_classification, make_friedman1, make_moons
from sklearn.metrics import r2_score

from evotree import (
    LinearLeaves,
    ObliqueForestClassifier,
    ObliqueForestRegressor,
)
from evotree.dataset import Dataset
from evotree.estimators.rows import GROUPS
from evotree.forests import growing
from evotree.forests.growing import N_PILOTS, draw_features
from evotree.model_file import Model, load_model, load_tree_model, save_model
from evotree.schema import CategoricalColumn, NumericColumn, Schema
from evotree.texts import export_rules, export_text
from tests.estimators.test_groups import copies
from tests.estimators.test_rows import cells
from tests.quick_models import checked
from tests.reference.naive import leaf_of

FORESTS = [
    ObliqueForestClassifier(6, random_state=0),
    ObliqueForestRegressor(4, random_state=0),
    ObliqueForestRegressor(4, leaves="constant", max_samples=None, random_state=0),
]
every = pytest.mark.parametrize("forest", FORESTS, ids=["classes", "lines", "means"])


def rows_for(forest, n=150):
    """Return rows and targets for a forest."""
    if is_classifier(forest):
        X, codes = make_classification(
            n, 5, n_informative=4, n_redundant=0, random_state=1
        )
        return X, np.array(["no", "yes"])[codes]
    return make_friedman1(n, 6, noise=0.5, random_state=1)


@cache
def fit_of(forest):
    """Return a fitted forest, which no test changes, and its rows."""
    X, y = rows_for(forest)
    return clone(forest).fit(X, y), X


def told_by(forest, X):
    """Return what a forest says of rows, probabilities or numbers, of two dimensions."""
    if is_classifier(forest):
        return forest.predict_proba(X)
    return forest.predict(X)[:, np.newaxis]


@checked(
    [
        ObliqueForestClassifier(3, random_state=0),
        ObliqueForestRegressor(3, random_state=0),
        ObliqueForestRegressor(2, leaves="constant", random_state=0),
    ]
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def test_a_fit_that_fails_leaves_the_forest_as_it_was():
    fitted, X = fit_of(FORESTS[0])
    said = fitted.predict(X)
    for wrong, named in (({"n_jobs": 0.5}, "'n_jobs' param"), ({}, "inconsistent")):
        with pytest.raises(ValueError, match=named):
            clone(fitted).set_params(**wrong).fit(X, said[:9])
        with pytest.raises(ValueError, match="inconsistent"):
            fitted.fit(X[:, :2], said[:9])
    np.testing.assert_array_equal(fitted.predict(X), said)


# ---- votes ---------------------------------------------------------------------------------------


def said_by(tree, row):
    """Return what a tree predicts for a row, by a walk to its leaf."""
    k = leaf_of(row, tree)
    if (models := tree.models) is None:
        return tree.values[k]
    value = models.intercepts[k] + models.coefficients[k] @ row
    return np.clip([value], models.lowest[k], models.highest[k])


@every
def test_the_vote_is_the_mean_of_the_trees(forest):
    fitted, X = fit_of(forest)
    assert len(fitted) == len(fitted.trees_) == forest.n_estimators
    expected = [
        np.mean([said_by(tree, row) for tree in fitted.trees_], axis=0) for row in X
    ]
    np.testing.assert_allclose(told_by(fitted, X), expected, atol=1e-9)
    said = np.mean([told_by(one, X) for one in fitted], axis=0)
    np.testing.assert_allclose(said, expected, atol=1e-9)
    if is_classifier(forest):
        likeliest = fitted.classes_[np.argmax(expected, axis=1)]
        assert (fitted.predict(X) == likeliest).all()
    importances = np.mean([one.feature_importances_ for one in fitted], axis=0)
    np.testing.assert_allclose(
        fitted.feature_importances_, importances / importances.sum()
    )


# ---- bags ----------------------------------------------------------------------------------------


def test_weights_count_in_bags():
    y = np.arange(400) % 2
    forest = ObliqueForestClassifier(5, random_state=0)
    forest.fit(np.zeros((400, 1)), y, np.where(y, 9.0, 1.0))
    assert forest.predict_proba([[0.0]])[0, 1] == pytest.approx(0.9, abs=0.03)
    assert {tree.n_node_samples[0] for tree in forest.trees_} == {0.8 * 400}


@pytest.mark.parametrize(
    ("max_samples", "n"), [(None, 80), (1.0, 80), (80, 80), (0.8, 1)]
)
def test_a_score_out_of_bag_needs_bags_that_lack_rows(max_samples, n):
    X, y = rows_for(FORESTS[0], 80)
    with pytest.raises(
        ValueError, match=r"oob_score=True with max_samples=.*no tree lacks a row"
    ):
        ObliqueForestClassifier(3, oob_score=True, max_samples=max_samples).fit(
            X[:n], y[:n]
        )


# ---- who works -----------------------------------------------------------------------------------


def test_threads_and_processes_make_the_same_forest():
    X, y = rows_for(FORESTS[1])
    alone = clone(FORESTS[1]).set_params(oob_score=True, n_jobs=1).fit(X, y)
    for backend in ("threading", "loky"):
        with parallel_config(backend, n_jobs=2):
            other = clone(alone).set_params(n_jobs=None).fit(X, y)
        # But for rounding: copies of rows may lie otherwise in memory.
        np.testing.assert_allclose(other.predict(X), alone.predict(X), rtol=1e-6)
        assert other.oob_score_ == pytest.approx(alone.oob_score_, rel=1e-6)
    assert alone.oob_score_ < alone.score(X, y)


# ---- features and limits -------------------------------------------------------------------------


def test_the_features_of_a_column_are_drawn_together():
    rng = np.random.default_rng(0)
    levels = (("x", "y", "z"), ("v", "w"))
    columns = map(CategoricalColumn, "bc", levels)
    schema = Schema((NumericColumn("a", 0.0), *columns))
    dataset = Dataset.from_arrays(
        rng.normal(size=(9, 6)), np.arange(9) % 2, schema=schema
    )
    drawn = {tuple(draw_features(dataset, 0.6, rng).tolist()) for _ in range(60)}
    assert drawn == {(0, 1, 2, 3), (0, 4, 5), (1, 2, 3, 4, 5)}


@every
def test_limits_are_kept(forest):
    X, y = rows_for(forest)
    limits = {"max_split_terms": 2, "max_depth": 3}
    fitted = clone(forest).set_params(**limits, n_estimators=8).fit(X, y)
    for tree in fitted.trees_:
        assert np.count_nonzero(tree.weights, axis=1).max() <= 2 and tree.depth <= 3
    assert len({tuple((t.weights != 0.0).any(axis=0)) for t in fitted.trees_}) > 1
    if forest is FORESTS[1]:
        assert 0 < sum(tree.models is not None for tree in fitted.trees_) < 8
        lines = clone(forest).set_params(leaves=LinearLeaves([3])).fit(X, y)
        used = [
            tree.models.coefficients.any(axis=0).nonzero()[0] for tree in lines.trees_
        ]
        assert set(np.concatenate(used)) == {3}


# ---- tables and files ----------------------------------------------------------------------------


def test_a_table_with_gaps_and_categories_in_one_file(tmp_path):
    rng, path = np.random.default_rng(3), tmp_path / "forest.json"
    size, colour = rng.normal(size=120), rng.choice(["red", "blue", "green"], 120)
    good = (size > 0.0) ^ (colour == "red")
    size[rng.random(120) < 0.1] = np.nan
    frame = pd.DataFrame({"size": size, "colour": pd.Categorical(colour)})
    y = np.where(good, "good", "bad")
    forest = ObliqueForestClassifier(5, random_state=0).fit(frame, y)
    assert forest.score(frame, y) > 0.8
    save_model(path, Model.of(forest, "grade"))
    model = load_model(path)
    np.testing.assert_array_equal(
        model.predict_proba(frame), forest.predict_proba(frame)
    )
    assert model.trees == tuple(forest.trees_) and model.labels == ["bad", "good"]
    with pytest.raises(ValueError, match="holds a forest of 5 trees: allowed is one"):
        load_tree_model(path)
    for export in (export_rules, export_text):
        with pytest.raises(ValueError, match="Classifier: a forest is exported by"):
            export(forest)


# ---- what is in a bag ----------------------------------------------------------------------------


OF_EACH_KIND = [ObliqueForestClassifier, ObliqueForestRegressor]


def members_of(forest, X, y, monkeypatch, **given):
    """Fit a forest; return its data set, and its trees with what is in their bags."""
    made = []
    grow_forest = growing.grow_forest

    def kept(*arguments):
        made.append((arguments[1], grow_forest(*arguments)))
        return made[-1][1]

    monkeypatch.setattr("evotree.forests.estimators.grow_forest", kept)
    forest.fit(X, y, **given)
    return made[0]


def test_a_group_is_in_a_bag_whole_or_not_at_all(monkeypatch):
    X, y, groups, *_ = copies()
    forest = ObliqueForestClassifier(12, random_state=0)
    dataset, members = members_of(forest, X, y, monkeypatch, groups=groups)
    group_of = dataset.extras[GROUPS][dataset.distinct_of]
    for _, is_taken in members:
        shares = pd.Series(is_taken).groupby(group_of).mean()
        assert set(shares) == {0.0, 1.0}


@pytest.mark.parametrize("kind", OF_EACH_KIND)
def test_the_score_out_of_bag_is_that_of_trees_that_lack_a_row(kind, monkeypatch):
    rng = np.random.default_rng(0)
    X, weight = rng.normal(size=(80, 2)), rng.integers(1, 4, 80)
    y = X[:, 0] + rng.normal(size=80)
    y = y > 0.0 if kind is ObliqueForestClassifier else y
    forest = kind(9, oob_score=True, max_samples=0.5, random_state=2)
    dataset, members = members_of(forest, X, y, monkeypatch, sample_weight=weight)
    rows, of_rows = dataset.unmerged(), []
    for i, row in enumerate(rows.raw):
        (at,) = np.flatnonzero((row == X).all(axis=1))
        votes = [
            tree.predict_value([row])[0]
            for tree, is_taken in members
            if not is_taken[i]
        ]
        if votes:
            of_rows.append((y[at], np.mean(votes, axis=0), weight[at]))
    truth, votes, weights = (np.array(column) for column in zip(*of_rows, strict=True))
    if kind is ObliqueForestClassifier:
        expected = np.average(votes.argmax(axis=1) == truth, weights=weights)
    else:
        expected = r2_score(truth, votes[:, 0], sample_weight=weights)
    assert forest.oob_score_ == pytest.approx(expected)


def test_bags_of_equal_rows_leave_some_of_them_out():
    X, y = cells(1500, 3)
    forest = ObliqueForestClassifier(10, oob_score=True, random_state=0).fit(
        X[:1000], y[:1000]
    )
    right = forest.predict(X[1000:]) == y[1000:]
    error = np.sqrt(right.var() * (1 / 500 + 1 / 500))
    assert abs(forest.oob_score_ - right.mean()) <= 3.0 * error


# ---- axis-parallel or oblique --------------------------------------------------------------------


def slanted(n=600, seed=0):
    """Return rows whose classes are on the sides of a hyperplane of four features."""
    X = np.random.default_rng(seed).normal(size=(n, 4))
    return X, (X.sum(axis=1) > 0.0).astype(int)


def are_axis_parallel(trees):
    """Tell whether no split has more than one term."""
    return all((np.count_nonzero(tree.weights, axis=1) <= 1).all() for tree in trees)


def test_most_trees_are_axis_parallel_where_these_vote_better():
    X = np.random.default_rng(0).uniform(size=(3000, 6))
    # The class counts the bands of three columns.
    X, y = (
        np.exp(6 * X),
        ((X[:, :3] * 4).astype(int) % 2).sum(axis=1) > 1,
    )
    forest = ObliqueForestClassifier(20, random_state=0).fit(X[:1500], y[:1500])
    assert sum(are_axis_parallel([tree]) for tree in forest.trees_) > 10
    assert forest.score(X[1500:], y[1500:]) > 0.9


def test_most_trees_are_oblique_elsewhere():
    for X, y in (slanted(), make_moons(400, noise=0.2, random_state=0)):
        forest = ObliqueForestClassifier(20, random_state=0).fit(X, y)
        assert sum(not are_axis_parallel([tree]) for tree in forest.trees_) > 10


def test_the_first_trees_of_a_larger_forest_are_those_of_a_smaller_one():
    X, y = slanted(200)
    few, more, many = (
        ObliqueForestClassifier(n, random_state=5).fit(X, y).trees_
        for n in (N_PILOTS - 1, N_PILOTS, N_PILOTS + 2)
    )
    # No tree is grown to choose the kind of few; those are the first of many, of one kind.
    assert len(few) == N_PILOTS - 1 and len(many) == N_PILOTS + 2
    assert more == many[:N_PILOTS] and few == more[:-1]
