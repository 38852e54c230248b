"""Classifiers with logistic models in their leaves: what they find, keep, refuse and repeat."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import softmax
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss

from evotree import (
    EvoTreeClassifier,
    LinearLeaves,
    load_model,
    save_model,
)
from evotree.dataset import Dataset
from evotree.engine.choice import LARGE_ERRORS
from evotree.fitness import probabilities
from evotree.fitness.linear_leaves import is_too_large
from evotree.fitness.probabilities import COSTS, HALVINGS, fit_scores, path_of_models
from evotree.leaf_models import ClassModels
from tests.quick_models import FREE, evolved

TABLES = {"two": load_breast_cancer, "three": load_wine}


def weak_columns(n_rows=240, n_columns=30, n_classes=2, seed=0):
    """Return rows whose classes depend on a sum to which all columns add a little."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(n_rows, n_columns))
    scores = (
        X
        @ random.normal(1.0, 0.2, size=(n_columns, n_classes))
        * [1.0, -1.0, 0.0][:n_classes]
    )
    return X, scores.argmax(axis=1)


def quick(**changed):
    return evolved(EvoTreeClassifier, **FREE | {"max_generations": 2} | changed)


def linear(**changed):
    return quick(leaves="linear", **changed)


@pytest.fixture(scope="module", params=[2, 3])
def fitted(request):
    X, y = weak_columns(n_classes=request.param)
    return linear().fit(X, y), X, y


@pytest.mark.parametrize("load", TABLES.values(), ids=TABLES)
@pytest.mark.parametrize("C", [0.01, 1.0])
@pytest.mark.parametrize("cells", [0.0, np.inf], ids=["quasi-Newton", "Newton"])
def test_a_model_of_all_terms_is_that_of_scikit_learn(load, C, cells, monkeypatch):
    monkeypatch.setattr(probabilities, "_NEWTON_CELLS", cells)
    dataset = Dataset.from_arrays(*load(return_X_y=True))
    scores = next(path_of_models(dataset, C))
    known = LogisticRegression(C=C, tol=1e-8, max_iter=10_000)
    known.fit(dataset.X, dataset.y, dataset.sample_weight)
    of_rows = dataset.X @ scores[:, :-1].T + scores[:, -1]
    odds = np.exp(of_rows - of_rows.max(axis=1, keepdims=True))
    ours = odds / odds.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(ours, known.predict_proba(dataset.X), atol=0.005)


def test_each_step_of_a_path_has_half_the_terms_of_the_one_before():
    dataset = Dataset.from_arrays(*load_wine(return_X_y=True))
    n_terms = [np.count_nonzero(s[:, :-1]) for s in path_of_models(dataset, 1.0)]
    assert n_terms == [39, 19, 9, 4, 2]


@pytest.mark.slow
def test_where_all_columns_say_a_little_one_logistic_leaf_is_chosen(fitted):
    model, X, y = fitted
    others = weak_columns(2000, n_classes=len(model.classes_))
    rows, labels = others[0][240:], others[1][240:]
    assert isinstance(model.tree_.models, ClassModels)
    assert len(model.tree_) == 1 and model.tree_ in model.pareto_front_
    known = LogisticRegression().fit(X, y)
    ours, theirs = (
        log_loss(labels, each.predict_proba(rows)) for each in (model, known)
    )
    assert ours < theirs


@pytest.mark.slow
def test_of_two_classes_a_logistic_tree_says_what_one_logistic_leaf_does():
    """Models in leaves are asked for; else the same regression is a split with soft sides."""
    X, y = weak_columns()
    rows = weak_columns(2000)[0][240:]
    leaf, split = (
        one.fit(X, y) for one in (linear(precision=None), quick(precision=None))
    )
    assert leaf.tree_.origin == "linear" and split.tree_.origin == "logistic"
    assert leaf.tree_.models is not None and split.tree_.models is None
    strengths = [
        one.choice_.to_frame().query("chosen")[["C", "halvings", "loss"]].to_numpy()
        for one in (leaf, split)
    ]
    np.testing.assert_allclose(*strengths, rtol=1e-3)
    shares = [one.predict_proba(rows) for one in (leaf, split)]
    np.testing.assert_allclose(*shares, atol=1e-3)


@pytest.mark.slow
def test_leaves_hold_no_models_unless_they_are_asked_for():
    X, y = weak_columns(n_classes=3)
    auto, constant = (quick(leaves=name).fit(X, y) for name in ("auto", "constant"))
    assert auto.tree_ == constant.tree_
    assert all(tree.models is None for tree in auto.pareto_front_)
    assert "linear" not in set(auto.choice_.to_frame()["kind"])


def test_not_one_leaf_is_chosen_where_trees_lose_less():
    X = np.random.default_rng(0).uniform(-1.0, 1.0, size=(300, 2))
    y = (X[:, 0] > 0.0) ^ (X[:, 1] > 0.0)
    model = linear().fit(X, y)
    assert isinstance(model.tree_.models, ClassModels) and model.tree_.n_leaves > 1
    assert any(len(tree) == 1 for tree in model.pareto_front_)
    assert quick().fit(X, y).tree_.n_leaves > 2


def test_predictions_are_the_most_probable_classes(fitted):
    model, X, _ = fitted
    probabilities = model.predict_proba(X)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0)
    np.testing.assert_array_equal(model.predict(X), probabilities.argmax(axis=1))
    models = model.tree_.models
    scores = np.column_stack([each.predict(X, model.apply(X)) for each in models.each])
    odds = np.log(probabilities[:, 1:] / probabilities[:, :1])
    np.testing.assert_allclose(odds, scores[:, 1:] - scores[:, :1], atol=1e-9)


def test_cross_validation_says_what_was_compared(fitted):
    """All trees, with their own leaves and with models; one with models is chosen."""
    model, table = fitted[0], fitted[0].choice_.to_frame()
    (chosen,) = table[table["chosen"]].itertuples()
    assert chosen.kind == "linear"
    of_kind = {kind: of_one for kind, of_one in table.groupby("kind")}
    assert set(of_kind) == {"tree", "linear"}
    one_leaf = of_kind["linear"]["size_penalty"].isna()
    assert set(of_kind["linear"]["leaves"][one_leaf]) == {1.0}
    assert (of_kind["linear"]["leaves"][~one_leaf] > 1.0).all()
    of_steps = of_kind["linear"][one_leaf].groupby("C")["halvings"]
    assert {*of_steps.groups} == {*COSTS}
    assert all(set(steps) == {*range(HALVINGS + 1)} for _, steps in of_steps)
    assert of_kind["tree"]["C"].isna().all()
    pairs = of_kind["tree"][["size_penalty", "term_penalty"]].to_numpy().tolist()
    assert [model.size_penalty_, model.term_penalty_] in pairs
    best = of_kind["linear"].loc[of_kind["linear"]["loss"].idxmin()]
    assert -best["excess"] <= LARGE_ERRORS * best["standard_error"]
    assert model.choice_.n_terms == model.tree_.n_terms


def test_a_weight_of_two_is_a_row_given_twice(fitted):
    _, X, y = fitted
    weight = np.where(np.arange(len(y)) % 3, 1.0, 2.0)
    twice = np.repeat(np.arange(len(y)), weight.astype(int))
    first, second = (
        Dataset.from_arrays(X, y, weight),
        Dataset.from_arrays(X[twice], y[twice]),
    )
    one, other = (next(path_of_models(rows, 0.3)) for rows in (first, second))
    np.testing.assert_allclose(one, other, atol=2e-3)


def test_models_come_back_from_a_file_as_they_were(fitted, tmp_path):
    model, X, _ = fitted
    save_model(tmp_path / "model.json", model)
    known, table = (
        load_model(tmp_path / "model.json"),
        pd.DataFrame(X, columns=model.feature_names_),
    )
    np.testing.assert_array_equal(known.predict(table), model.predict(X))
    np.testing.assert_array_equal(known.predict_proba(table), model.predict_proba(X))


def test_contributions_add_up_to_the_score_that_decides(fitted):
    model, X, _ = fitted
    terms = model.explain(X[:20]).terms
    sums = terms.groupby("row").contribution.sum() + terms.groupby("row").centre.first()
    labels = model.predict(X[:20])
    leaf = np.zeros(20, dtype=np.int32)
    of_classes = np.column_stack(
        [each.predict(X[:20], leaf) for each in model.tree_.models.each]
    )
    of_classes -= of_classes[:, ::-1] if len(model.classes_) == 2 else 0.0
    # The largest scores are those of training rows before they were rounded.
    np.testing.assert_allclose(sums, of_classes[np.arange(20), labels], rtol=1e-3)


def test_linear_leaves_are_asked_for_with_splits_and_of_some_columns():
    X, y = load_iris(return_X_y=True)
    model = quick(leaves=LinearLeaves(features=[2, 3], split_features=[0, 1])).fit(X, y)
    assert all(isinstance(tree.models, ClassModels) for tree in model.pareto_front_)
    for tree in model.pareto_front_:
        assert not tree.models.coefficients[:, :2].any()
        assert not tree.weights[:, 2:].any()
    assert model.score(X, y) > 0.9


def test_leaves_are_drawn_to_their_parents():
    X, y = load_iris(return_X_y=True)
    model = linear().fit(X, y)
    assert max(tree.n_leaves for tree in model.pareto_front_) > 1
    again = clone(model).fit(X, y)
    assert [tree.complexity for tree in again.pareto_front_] == [
        tree.complexity for tree in model.pareto_front_
    ]
    np.testing.assert_array_equal(model.predict_proba(X), again.predict_proba(X))


@pytest.mark.parametrize(
    ("wrong", "name"),
    [
        ({"objective": "f1"}, "objective='f1'"),
        ({"max_terms": 3}, "max_terms"),
        ({"interaction_cst": "no_interactions"}, "interaction_cst"),
        ({"monotonic_cst": [1] + [0] * 29}, "monotonic_cst"),
    ],
)
def test_what_linear_leaves_of_classes_do_not_go_with_is_refused(wrong, name):
    with pytest.raises(ValueError, match=name):
        linear(**wrong).fit(*weak_columns())


def boxes(n_rows, seed):
    """Return rows of twelve boxes, each of which has a linear border of its own."""
    X = np.random.default_rng(seed).uniform(size=(n_rows, 4))
    cell = (np.floor(4 * X[:, 0]) + 4 * np.floor(3 * X[:, 1])).astype(int)
    borders = np.random.default_rng(7).normal(size=(12, 2))
    return X, ((X[:, 2:] - 0.5) * borders[cell]).sum(axis=1) > 0


def test_the_most_complex_tree_that_may_have_models_is_in_place_of_one_too_large():
    """Folds are of a few rows that small trees part; of all rows the fittest tree is large."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1.0, 1.0, size=(600, 2))
    y = (X[:, 0] > 0.0) ^ (X[:, 1] > 0.0)
    y[120:] = rng.random(480) < 0.5
    free = {"size_penalty": 0.0, "term_penalty": 0.0, "max_generations": 0}
    model = linear(**free, regularization__noise=0.0)
    model.fit(X, y, cv=[(range(60), range(60, 120))])
    assert "linear" in set(model.choice_.to_frame().query("chosen and leaves > 1").kind)
    rows, front = Dataset.from_arrays(X, y), model.pareto_front_
    assert is_too_large(model.hall_of_fame_[0], rows) and len(front) > 2
    assert not any(is_too_large(tree, rows) for tree in front)
    assert all(isinstance(tree.models, ClassModels) for tree in front)
    assert model.tree_.complexity == max(tree.complexity for tree in front)


@pytest.mark.slow
def test_trees_that_are_too_large_for_models_do_not_compete():
    X, y = boxes(1500, 0)
    table = linear().fit(X, y).choice_.to_frame()
    largest = table.groupby("kind")["leaves"].max()
    # A classifier of constant leaves has larger ones.
    assert largest["tree"] > largest["linear"]


@pytest.mark.slow
def test_a_bound_on_leaves_is_the_only_one_for_small_trees():
    X, y = boxes(1500, 0)
    model = linear(max_leaf_nodes=12).fit(X, y)
    assert all(tree.n_leaves <= 12 for tree in model.pareto_front_)
    assert all(isinstance(tree.models, ClassModels) for tree in model.pareto_front_)
    assert max(tree.n_leaves for tree in model.pareto_front_) > 8


@given(st.integers(0, 2**32), st.sampled_from([0.1, 10.0, 1000.0]))
def test_a_fit_is_the_same_from_wherever_it_starts(seed, C):
    """The penalized loss is convex: far from its least value full steps would go astray."""
    rng = np.random.default_rng(seed)
    dataset = Dataset.from_arrays(*weak_columns(n_rows=60, n_columns=3, seed=seed % 97))
    is_free = np.ones((2, 4), dtype=bool)
    is_free[0] = False
    starts = [np.zeros((2, 4)), np.where(is_free, rng.normal(0.0, 30.0, (2, 4)), 0.0)]
    ends = [fit_scores(dataset, slice(None), C, one, is_free) for one in starts]
    shares = [softmax(dataset.X @ s[:, :-1].T + s[:, -1], axis=1) for s in ends]
    np.testing.assert_allclose(shares[0], shares[1], atol=0.01)


@pytest.mark.parametrize("units", [[1e99, 1e-98], [1e-98, 1.0], [1.0, 1e90]])
def test_units_that_are_far_apart_end_in_numbers(units):
    X, y = weak_columns(n_columns=2)
    model = quick(evolution__scaling="common", leaves="linear")
    model.fit(X * units, y)
    assert np.isfinite(model.predict_proba(X * units)).all()


@pytest.mark.slow
@pytest.mark.parametrize("leaves", ["auto", "linear"])
@pytest.mark.parametrize("load", TABLES.values(), ids=TABLES)
def test_costs_and_held_out_quality_are_those_of_what_rows_are_predicted(load, leaves):
    X, y = load(return_X_y=True)
    is_held_out = np.random.default_rng(0).random(len(y)) < 0.4
    rows, labels = X[is_held_out], y[is_held_out]
    model = quick(leaves=leaves).fit(X[~is_held_out], y[~is_held_out])
    has_models = [tree.models is not None for tree in model.pareto_front_]
    assert all(has_models) if leaves == "linear" else not any(has_models)
    table = model.pareto_front_.to_frame(model._held_out(rows, labels))
    for i, quality in enumerate(table.held_out_quality):
        assert quality == pytest.approx(np.mean(model.predict(rows, tree=i) == labels))
    for rule in ("accurate", "chosen"):
        model.select_tree(rule, rows, labels)
        cost = np.average(model.predict(rows) != labels, weights=rows[:, 0])
        assert model.cost_score(rows, labels, rows[:, 0]) == pytest.approx(cost)
        passed = model.decision_path(X[~is_held_out]).toarray().astype(bool)
        is_wrong = model.predict(X[~is_held_out]) != y[~is_held_out]
        for k, cost in enumerate(model.expected_costs()):
            expected = is_wrong[passed[:, k]].mean()
            if model.tree_.models is not None or model.tree_.is_leaf[k]:
                assert cost == pytest.approx(expected)


@pytest.mark.slow
def test_refit_keeps_the_parameters_that_were_asked_for():
    X, y = load_iris(return_X_y=True)
    model = linear().fit(X, y)
    again = model.refit(X, y)
    assert model.tree_.models is not None and again.tree_.models is not None
    assert str(again.get_params()) == str(model.get_params())
    first, second = (clone(one).fit(X, y) for one in (model, again))
    assert first.tree_ == second.tree_
    k = len(again.tree_) - 1
    with pytest.raises(ValueError, match="without logistic models"):
        again.edit(X, y).relabel(k, y[0])


def test_a_choice_by_held_out_rows_takes_a_logistic_leaf_that_is_the_best(fitted):
    model, _, _ = fitted
    others = weak_columns(2000, n_classes=len(model.classes_))
    rows, labels = others[0][240:], others[1][240:]
    scores = [
        np.mean(model.predict(rows, tree=i) == labels)
        for i in range(len(model.pareto_front_))
    ]
    before = model.tree_
    assert model.select_tree("accurate", rows, labels).score(rows, labels) == max(
        scores
    )
    assert model.select_tree("chosen").tree_ == before
    assert before in model.pareto_front_
