"""Classifiers with logistic models in their leaves: what they find, keep, refuse and repeat."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss

from evotree import (
    Cost,
    EvoTreeClassifier,
    LinearLeaves,
    load_model,
    save_model,
)
from evotree.dataset import Dataset
from evotree.fitness import logistic_leaves
from evotree.fitness.logistic_leaves import logistic_path
from evotree.leaf_models import ClassModels
from tests.quick_models import BRIEF, evolved

FREE = {name: value for name, value in BRIEF.items() if "penalty" not in name}
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


@pytest.fixture(scope="module", params=[2, 3])
def fitted(request):
    X, y = weak_columns(n_classes=request.param)
    return quick().fit(X, y), X, y


@pytest.mark.parametrize("load", TABLES.values(), ids=TABLES)
@pytest.mark.parametrize("C", [0.01, 1.0])
@pytest.mark.parametrize("cells", [0.0, np.inf], ids=["quasi-Newton", "Newton"])
def test_a_model_of_all_terms_is_that_of_scikit_learn(load, C, cells, monkeypatch):
    monkeypatch.setattr(logistic_leaves, "_NEWTON_CELLS", cells)
    dataset = Dataset.from_arrays(*load(return_X_y=True))
    scores = next(logistic_path(dataset, C))
    known = LogisticRegression(C=C, tol=1e-8, max_iter=10_000)
    known.fit(dataset.X, dataset.y, dataset.sample_weight)
    of_rows = dataset.X @ scores[:, :-1].T + scores[:, -1]
    odds = np.exp(of_rows - of_rows.max(axis=1, keepdims=True))
    ours = odds / odds.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(ours, known.predict_proba(dataset.X), atol=0.005)


def test_each_step_of_a_path_has_half_the_terms_of_the_one_before():
    dataset = Dataset.from_arrays(*load_wine(return_X_y=True))
    n_terms = [np.count_nonzero(s[:, :-1]) for s in logistic_path(dataset, 1.0)]
    assert n_terms == [39, 19, 9, 4, 2]


def test_where_all_columns_say_a_little_one_logistic_leaf_is_chosen(fitted):
    model, X, y = fitted
    others = weak_columns(2000, n_classes=len(model.classes_))
    rows, labels = others[0][240:], others[1][240:]
    sparse = clone(model).set_params(leaves="constant").fit(X, y)
    assert isinstance(model.tree_.models, ClassModels)
    assert model.tree_ in model.pareto_front_
    assert sparse.tree_.models is None
    known = LogisticRegression().fit(X, y)
    ours, theirs = (
        log_loss(labels, each.predict_proba(rows)) for each in (model, known)
    )
    assert ours < theirs


def test_no_logistic_leaf_is_chosen_where_trees_lose_less():
    X = np.random.default_rng(0).uniform(-1.0, 1.0, size=(300, 2))
    model = quick().fit(X, (X[:, 0] > 0.0) ^ (X[:, 1] > 0.0))
    assert model.tree_.models is None
    assert model.tree_.n_leaves > 2


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
    model, table = fitted[0], fitted[0].cv_results_
    (chosen,) = np.flatnonzero(table["chosen"])
    assert table["leaves"][chosen] == "linear"
    is_tree = table["leaves"] == "constant"
    same = is_tree & (table["size_penalty"] == model.size_penalty_)
    (trees,) = np.flatnonzero(same & (table["term_penalty"] == model.term_penalty_))
    assert table["mean_loss"][chosen] < table["mean_loss"][trees]
    assert np.isfinite(table["C"][~is_tree]).all()


def test_a_weight_of_two_is_a_row_given_twice(fitted):
    _, X, y = fitted
    weight = np.where(np.arange(len(y)) % 3, 1.0, 2.0)
    twice = np.repeat(np.arange(len(y)), weight.astype(int))
    first, second = (
        Dataset.from_arrays(X, y, weight),
        Dataset.from_arrays(X[twice], y[twice]),
    )
    one, other = (next(logistic_path(rows, 0.3)) for rows in (first, second))
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
    labels = (
        model.predict(X[:20]) if len(model.classes_) > 2 else np.ones(20, dtype=int)
    )
    leaf = np.zeros(20, dtype=np.int32)
    of_classes = np.column_stack(
        [each.predict(X[:20], leaf) for each in model.tree_.models.each]
    )
    # The largest scores are those of training rows before they were rounded.
    np.testing.assert_allclose(sums, of_classes[np.arange(20), labels], rtol=1e-3)


@pytest.mark.parametrize("norm", ["l1", "count"])
def test_counterfactuals_are_the_nearest_points_of_the_other_class(fitted, norm):
    model, X, _ = fitted
    (point,) = model.counterfactuals(X[0], norm=norm)
    assert model.predict(point.row)[0] != model.predict(X[:1])[0]
    nearer = X[:1] + 0.9 * (point.row - X[:1])
    assert model.predict(nearer)[0] == model.predict(X[:1])[0]


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
    model = quick(leaves="linear").fit(X, y)
    assert max(tree.n_leaves for tree in model.pareto_front_) > 1
    again = clone(model).fit(X, y)
    assert [tree.complexity for tree in again.pareto_front_] == [
        tree.complexity for tree in model.pareto_front_
    ]
    np.testing.assert_array_equal(model.predict_proba(X), again.predict_proba(X))


@pytest.mark.parametrize(
    "bound",
    [
        {"max_terms": 5},
        {"max_split_terms": 2},
        {"interaction_cst": [[0, 1]]},
        {"monotonic_cst": [1] + [0] * 29},
        {"term_penalty": 0.001},
        {"objective": Cost([[0, 1], [2, 0]])},
    ],
    ids=lambda bound: next(iter(bound)),
)
def test_where_terms_are_bounded_leaves_stay_constant(bound):
    model = quick(**bound).fit(*weak_columns())
    assert model.tree_.models is None


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
        quick(leaves="linear", **wrong).fit(*weak_columns())


@pytest.mark.parametrize("leaves", ["auto", "linear"])
@pytest.mark.parametrize("load", TABLES.values(), ids=TABLES)
def test_costs_and_held_out_quality_are_those_of_what_rows_are_predicted(load, leaves):
    X, y = load(return_X_y=True)
    is_held_out = np.random.default_rng(0).random(len(y)) < 0.4
    rows, labels = X[is_held_out], y[is_held_out]
    model = quick(leaves=leaves).fit(X[~is_held_out], y[~is_held_out])
    assert any(tree.models is not None for tree in model.pareto_front_)
    table = model.pareto_front_.to_frame(model._held_out(rows, labels))
    for i, quality in enumerate(table.held_out_quality):
        assert quality == pytest.approx(np.mean(model.predict(rows, tree=i) == labels))
    for rule in ("validation", "fitness"):
        model.select_tree(rule, rows, labels)
        cost = np.average(model.predict(rows) != labels, weights=rows[:, 0])
        assert model.cost_score(rows, labels, rows[:, 0]) == pytest.approx(cost)
        passed = model.decision_path(X[~is_held_out]).toarray().astype(bool)
        is_wrong = model.predict(X[~is_held_out]) != y[~is_held_out]
        for k, cost in enumerate(model.expected_costs()):
            expected = is_wrong[passed[:, k]].mean()
            if model.tree_.models is not None or model.tree_.is_leaf[k]:
                assert cost == pytest.approx(expected)


def test_refit_keeps_the_parameters_that_were_asked_for(fitted):
    model, X, y = fitted
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
    assert model.select_tree("validation", rows, labels).score(rows, labels) == max(
        scores
    )
    model.select_tree("fitness")
    assert before in model.pareto_front_
