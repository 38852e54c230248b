"""Scores of columns and hinges, and trees that stand on one."""

from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit
from sklearn.base import clone

from evotree import (
    Checkpoint,
    Dataset,
    EvoTreeClassifier,
    EvoTreeRegressor,
    load_model,
    save_model,
)
from evotree.engine.scores import (
    HALF,
    IDENTITY,
    LOG,
    LOGIT,
    fit_score,
    l1_path,
)
from evotree.leaf_models import ScoreModels, SharedModels
from evotree.texts import export_text
from tests.reference.scores import l1_objective, l1_regression


def standardized(rng, n_rows, n_terms):
    columns = rng.normal(size=(n_terms, n_rows))
    columns -= columns.mean(axis=1, keepdims=True)
    return np.ascontiguousarray(columns / columns.std(axis=1, keepdims=True))


@settings(max_examples=20)
@given(
    st.integers(0, 2**32 - 1),
    st.integers(1, 6),
    st.sampled_from([IDENTITY, LOGIT, LOG]),
    st.sampled_from([1.0, 0.25]),
)
def test_path_reaches_the_least_penalized_loss(seed, n_terms, link, share):
    rng = np.random.default_rng(seed)
    n_rows = 40
    columns = standardized(rng, n_rows, n_terms)
    y = columns.sum(axis=0) + rng.normal(size=n_rows)
    if link == LOGIT:
        y = (y > 0.0).astype(float)
        y[:2] = 0.0, 1.0
    elif link == LOG:
        y = np.exp(0.5 * y)
    weight = rng.integers(1, 4, n_rows).astype(float)
    weight /= weight.sum()
    largest = np.abs(columns @ (weight * (y - weight @ y))).max()
    penalties = largest / share * np.array([1.0, 0.5, 0.1])
    coefficients, intercepts = np.zeros((3, n_terms)), np.zeros(3)
    l1_path(columns, y, weight, penalties, share, link, coefficients, intercepts)
    assert np.abs(coefficients[0]).max() < 1e-9  # the least penalty without terms
    for penalty, b, a in zip(penalties, coefficients, intercepts, strict=True):
        asked = columns, y, weight, penalty, share, link
        least = l1_objective(*asked, *l1_regression(*asked))
        assert l1_objective(*asked, b, a) <= least + 1e-3


@given(st.integers(0, 2**16), st.booleans())
@settings(max_examples=10)
def test_what_a_score_leaves_out_stays_in_its_constant(seed, is_logistic):
    """A weak term of a column that is far from 0, such as a year, moves all sums by its mean."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(400, 6))
    y = 3.0 * X[:, 0] + 0.03 * X[:, 1:].sum(axis=1) + rng.normal(size=400)
    task = "regression"
    if is_logistic:
        y, task = (y > 0.0).astype(int), "classification"
    far = X + np.array([0.0, 2e3, 2e3, -5e3, 1e3, 1e4])
    near, moved = (
        fit_score(Dataset.from_arrays(rows, y, task=task), bends=False)
        for rows in (X, far)
    )
    told = [
        score.log_odds(rows)[:, 1] if is_logistic else score.predict(rows)
        for score, rows in ((near, X), (moved, far))
    ]
    assert told[0] == pytest.approx(told[1], abs=1e-4)


def curved_rows(n_rows=600, seed=0):
    """Return rows whose class depends on a hinge of one column and on two columns together."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, 4))
    log_odds = (
        2.0 * np.maximum(X[:, 0], 0.0) + 2.5 * (X[:, 1] > 0.0) * (X[:, 2] > 0.0) - 1.2
    )
    return X, (rng.random(n_rows) < expit(log_odds)).astype(int)


def test_score_of_classes_without_rows_is_none():
    assert fit_score(Dataset.from_arrays(np.zeros((4, 1)), [0, 0, 0, 0])) is None


def rows_of_targets(n_rows=500, seed=0):
    """Return rows whose targets depend on a hinge of one column and on two columns together."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, 4)) + np.array([0.0, 0.0, 0.0, 2000.0])
    y = 2.0 * np.maximum(X[:, 0], 0.0) + 3.0 * (X[:, 1] > 0.0) * (X[:, 2] > 0.0)
    return X, y + 0.3 * rng.normal(size=n_rows)


KINDS = {
    EvoTreeClassifier: (curved_rows, ScoreModels),
    EvoTreeRegressor: (rows_of_targets, SharedModels),
}
every_kind = pytest.mark.parametrize("kind", KINDS)


@cache
def fitted_on_score(kind):
    """Return a model that no test changes, and its rows."""
    rows, models = KINDS[kind]
    X, y = rows()
    model = kind(leaves="score", random_state=0, max_generations=5).fit(X, y)
    assert isinstance(model.tree_.models, models)
    assert model.get_n_leaves() > 1 and model.fitted_.schema.bends
    return model, X, y


@pytest.fixture
def on_score():
    return fitted_on_score(EvoTreeClassifier)


@pytest.fixture
def of_targets():
    return fitted_on_score(EvoTreeRegressor)


def score_of(model):
    """Return the coefficients of the score that all leaves share."""
    score = model.tree_.models.score
    return getattr(score, "coefficients", score)


@every_kind
def test_files_edits_and_refits_keep_the_score(kind, tmp_path):
    model, X, y = fitted_on_score(kind)
    save_model(tmp_path / "model.json", model)
    again = load_model(tmp_path / "model.json")
    assert np.array_equal(again.predict(X), model.predict(X))
    for one in (model, refitted := model.refit(X, y)):
        same = one.edit(X, y).set_threshold(0, one.fitted_.split(0).threshold)
        np.testing.assert_allclose(same.predict(X), one.predict(X), rtol=1e-6)
    assert refitted.leaves == "score"
    pruned = model.edit(X, y).prune(0)
    assert pruned.get_n_leaves() == 1
    for one in (refitted, pruned):
        assert np.array_equal(score_of(one), score_of(model))


@every_kind
def test_a_search_on_a_score_is_interrupted_and_goes_on(kind, tmp_path):
    model, X, y = fitted_on_score(kind)
    again, path = clone(model), tmp_path / "fit.npz"
    stop = [lambda run: run.generation == 2]
    again.set_params(checkpoint=path, callbacks=stop).fit(X, y)
    resumed = Checkpoint(path, resume=True)
    again.set_params(checkpoint=resumed, callbacks=None).fit(X, y)
    assert again.tree_ == model.tree_


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


# ---- targets -------------------------------------------------------------------------------------


def test_a_regression_tree_on_a_score_is_their_sum(of_targets):
    model, X, y = of_targets
    tree, models = model.tree_, model.tree_.models
    rows = model.encode(X, bends=True)
    score, added, leaves = models.score, models.added, model.apply(X)
    sums = score.intercepts[0] + rows @ score.coefficients[0] + added.intercepts[leaves]
    sums += np.einsum("ij,ij->i", rows, added.coefficients[leaves])
    assert model.predict(X) == pytest.approx(np.clip(sums, y.min(), y.max()), abs=2e-2)
    of_score, of_leaves = (np.count_nonzero(one.coefficients) for one in (score, added))
    assert tree.n_terms == np.count_nonzero(tree.weights) + of_score + of_leaves
    inner = models.coefficients[~tree.is_leaf]
    assert (inner == score.coefficients).all()


def test_the_text_of_such_a_tree_has_the_score_once(of_targets):
    text = export_text(of_targets[0])
    assert text.count("\nscore = ") == 1
    assert text.count("predict score") == of_targets[0].get_n_leaves()


@pytest.mark.parametrize("given", [{"size_penalty": 0.01}, {"size_penalty": 0.0}])
def test_a_score_of_targets_that_is_demanded_is_there(given):
    X, y = rows_of_targets(150)
    model = EvoTreeRegressor(leaves="score", max_generations=1, **given).fit(X, y)
    assert model.fitted_.schema.bends
    models = model.tree_.models
    used = np.flatnonzero(models.coefficients[0])
    assert len(used) and set(used) & set(model.fitted_.schema.bends)


def test_small_trees_of_the_front_stand_on_no_score(of_targets):
    front = of_targets[0].pareto_front_
    assert min(tree.complexity for tree in front) < of_targets[0].tree_.complexity
    has_score = [isinstance(tree.models, SharedModels) for tree in front]
    assert any(has_score) and not has_score[0]


@pytest.mark.parametrize(
    ("parameters", "columns"),
    [
        ({"monotonic_cst": [1, 0, 0, 0]}, 1),
        ({"max_terms": 5}, 1),
        ({"objective": "poisson"}, 1),
        ({}, 2),
    ],
)
def test_a_score_of_targets_is_refused_where_it_cannot_be(parameters, columns):
    X, y = rows_of_targets(80)
    y = np.column_stack([y - y.min()] * columns)
    model = EvoTreeRegressor(leaves="score", max_generations=1, **parameters)
    with pytest.raises(ValueError, match="leaves='score'"):
        model.fit(X, y[:, 0] if columns == 1 else y)
