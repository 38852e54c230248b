"""Scores of columns and hinges, and trees that stand on one."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit, softmax
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

from evotree import Checkpoint, Dataset, EvoTreeClassifier, load_model, save_model
from evotree.engine.scores import HALF, fit_score, l1_path
from evotree.leaf_models import ScoreModels
from tests.reference.scores import l1_objective, l1_regression


def standardized(rng, n_rows, n_terms):
    columns = rng.normal(size=(n_terms, n_rows))
    columns -= columns.mean(axis=1, keepdims=True)
    return np.ascontiguousarray(columns / columns.std(axis=1, keepdims=True))


@settings(max_examples=15)
@given(seed=st.integers(0, 2**32 - 1), n_terms=st.integers(1, 6))
def test_path_reaches_the_least_penalized_loss(seed, n_terms):
    rng = np.random.default_rng(seed)
    n_rows = 40
    columns = standardized(rng, n_rows, n_terms)
    y = (columns.sum(axis=0) + rng.normal(size=n_rows) > 0.0).astype(float)
    y[:2] = 0.0, 1.0
    weight = rng.integers(1, 4, n_rows).astype(float)
    weight /= weight.sum()
    largest = np.abs(columns @ (weight * (y - weight @ y))).max()
    penalties = largest * np.array([1.0, 0.5, 0.1])
    coefficients, intercepts = np.zeros((3, n_terms)), np.zeros(3)
    l1_path(columns, y, weight, penalties, coefficients, intercepts)
    assert np.abs(coefficients[0]).max() < 1e-9  # the least penalty without terms
    for penalty, b, a in zip(penalties, coefficients, intercepts, strict=True):
        least = l1_objective(
            columns,
            y,
            weight,
            penalty,
            *l1_regression(columns, y, weight, penalty, 3000),
        )
        assert l1_objective(columns, y, weight, penalty, b, a) <= least + 1e-3


def test_path_is_that_of_scikit_learn():
    rng = np.random.default_rng(0)
    columns = standardized(rng, 300, 12)
    y = (columns[:3].sum(axis=0) + rng.normal(size=300) > 0.0).astype(float)
    weight = np.full(300, 1.0 / 300.0)
    penalty = 0.03
    coefficients, intercepts = np.zeros((1, 12)), np.zeros(1)
    l1_path(columns, y, weight, np.array([penalty]), coefficients, intercepts)
    model = LogisticRegression(
        C=1.0 / (300.0 * penalty),
        l1_ratio=1.0,
        solver="saga",
        tol=1e-8,
        max_iter=10_000,
    ).fit(columns.T, y)
    assert coefficients[0] == pytest.approx(model.coef_[0], abs=5e-3)
    assert intercepts[0] == pytest.approx(model.intercept_[0], abs=5e-3)


def curved_rows(n_rows=600, seed=0):
    """Return rows whose class depends on a hinge of one column and on two columns together."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, 4))
    log_odds = (
        2.0 * np.maximum(X[:, 0], 0.0) + 2.5 * (X[:, 1] > 0.0) * (X[:, 2] > 0.0) - 1.2
    )
    return X, (rng.random(n_rows) < expit(log_odds)).astype(int)


def test_a_score_bends_where_the_effect_does():
    X, y = curved_rows(4000)
    score = fit_score(Dataset.from_arrays(X, y))
    of_first = score.features == 0
    assert any(
        bend is not None
        for bend, is_first in zip(score.bends, of_first, strict=True)
        if is_first
    )
    grid = np.zeros((3, 4))
    grid[:, 0] = -1.5, 0.0, 1.5
    odds = score.log_odds(grid)[:, 1]
    assert abs(odds[1] - odds[0]) < 0.5 * (odds[2] - odds[1])


def test_score_of_classes_without_rows_is_none():
    assert fit_score(Dataset.from_arrays(np.zeros((4, 1)), [0, 0, 0, 0])) is None


@pytest.fixture(scope="module")
def on_score():
    X, y = curved_rows()
    model = EvoTreeClassifier(leaves="score", random_state=0, max_generations=5).fit(
        X, y
    )
    assert isinstance(model.tree_.models, ScoreModels)
    return model, X, y


def test_a_tree_on_a_score_is_their_sum(on_score):
    model, X, _ = on_score
    models = model.tree_.models
    rows = model.encode(X, bends=True)
    scores = rows @ models.score.T + models.points[model.apply(X)]
    assert np.array_equal(model.predict(X), scores.argmax(axis=1))
    assert model.predict_proba(X) == pytest.approx(softmax(scores, axis=1))
    assert model.probabilities_ is None


def test_terms_of_a_score_count_once(on_score):
    tree = on_score[0].tree_
    of_splits = np.count_nonzero(tree.weights)
    assert tree.n_terms == of_splits + np.count_nonzero(tree.models.score)


def test_points_are_those_of_the_rows_of_a_leaf(on_score):
    model, X, y = on_score
    tree, points = model.tree_, model.tree_.models.points
    leaves = model.apply(X)
    share = np.bincount(y) / len(y)
    for leaf in np.unique(leaves).tolist():
        counts = np.bincount(y[leaves == leaf], minlength=2) + share
        odds = np.log(counts[1] / counts[0]) - np.log(share[1] / share[0])
        assert points[leaf, 1] - points[0, 1] == pytest.approx(HALF * odds, abs=0.011)
    assert tree.n_leaves == len(np.unique(leaves))


def test_a_file_keeps_the_score(on_score, tmp_path):
    model, X, _ = on_score
    save_model(tmp_path / "model.json", model)
    again = load_model(tmp_path / "model.json")
    assert np.array_equal(again.predict_proba(X), model.predict_proba(X))


def test_edits_give_leaves_the_points_of_their_rows(on_score):
    model, X, y = on_score
    same = model.edit(X, y).set_threshold(0, model.fitted_.split(0).threshold)
    assert np.array_equal(same.predict(X), model.predict(X))
    pruned = model.edit(X, y).prune(0).tree_
    assert np.array_equal(pruned.models.score, model.tree_.models.score)
    assert pruned.models.points[0] == pytest.approx(model.tree_.models.points[0])


def test_a_search_on_a_score_is_interrupted_and_goes_on(on_score, tmp_path):
    model, X, y = on_score
    again, path = clone(model), tmp_path / "fit.npz"
    stop = [lambda run: run.generation == 2]
    again.set_params(checkpoint=path, callbacks=stop).fit(X, y)
    resumed = Checkpoint(path, resume=True)
    again.set_params(checkpoint=resumed, callbacks=None).fit(X, y)
    assert again.tree_ == model.tree_


def test_a_refit_stands_on_the_same_score(on_score):
    model, X, y = on_score
    refitted = model.refit(X, y)
    assert refitted.leaves == "score"
    assert np.array_equal(refitted.tree_.models.score, model.tree_.models.score)
    at = refitted.fitted_.split(0).threshold
    again = refitted.edit(X, y).set_threshold(0, at)
    assert np.array_equal(again.predict(X), refitted.predict(X))
