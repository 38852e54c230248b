"""Where two rows part, and how two models differ, beside sums made by hand."""

import numpy as np
import pytest
from scipy import stats
from sklearn.base import clone
from sklearn.datasets import load_diabetes, load_wine
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

from evotree import EvoTreeClassifier, EvoTreeRegressor, ObliqueTreeClassifier
from evotree.fitted import fitted_of
from evotree.inspection import (
    compare_models,
    compare_rows,
    counterfactuals,
    shap_values,
    stability,
)
from tests.quick_models import brief

X, Y = load_wine(return_X_y=True, as_frame=True)
MODEL = brief(EvoTreeClassifier, leaves="constant").fit(X, Y)


def check_two_rows(model, X, a, b):
    """Compare two rows by hand; return the relation of the split that parts them, if any."""
    paths, tree = model.decision_path(X).toarray().astype(bool), model.tree_
    node, terms, rows = compare_rows(model, X.iloc[a], X.iloc[[b]])
    assert node == np.flatnonzero(paths[a] & paths[b])[-1]
    assert rows.prediction.tolist() == model.predict(X.iloc[[a, b]]).tolist()
    assert rows.leaf.tolist() == model.apply(X.iloc[[a, b]]).tolist()
    if tree.is_leaf[node]:
        return set()
    assert (rows.total["a"] > 0.0) != (rows.total["b"] > 0.0)
    printed = fitted_of(model).split(node)
    weights = {X.columns[j]: weight for weight, j in printed.terms}
    assert terms.weight.to_dict() == weights
    for row, which in ((a, "a"), (b, "b")):
        total = sum(weight * X[name].iloc[row] for name, weight in weights.items())
        assert (total > printed.threshold) == (rows.total[which] > 0.0)
    sign = 1.0 if printed.relation == "<=" else -1.0
    by_hand = sign * (X.iloc[b] - X.iloc[a]) * tree.weights[node]
    by_hand /= model.training_rows_.spreads[node]
    np.testing.assert_allclose(terms.difference, by_hand[terms.index])
    parted = rows.total["b"] - rows.total["a"]
    assert terms.difference.sum() == pytest.approx(parted)
    return {printed.relation}


def test_rows_part_at_the_last_node_that_both_pass():
    relations = set()
    for sign in (1.0, -1.0):
        rows = sign * X
        model = clone(MODEL).fit(rows, Y)
        for a, b in ((0, 1), (0, 70), (100, 170), (60, 0)):
            relations |= check_two_rows(model, rows, a, b)
    assert relations == {"<=", ">="}


def test_models_are_compared_by_the_rows_that_each_alone_predicts_right():
    stump = ObliqueTreeClassifier("axis", max_depth=1, random_state=0).fit(X, Y)
    models, disagreement, p_value, leaves = compare_models(MODEL, stump, X, Y)
    right = MODEL.predict(X) == Y, stump.predict(X) == Y
    alone = [int((right[0] & ~right[1]).sum()), int((right[1] & ~right[0]).sum())]
    assert models.better.tolist() == alone
    assert p_value == pytest.approx(stats.binomtest(alone[0], sum(alone)).pvalue)
    assert disagreement == np.mean(MODEL.predict(X) != stump.predict(X))
    assert models.complexity.tolist() == [
        MODEL.tree_.complexity,
        stump.tree_.complexity,
    ]
    assert (
        leaves.to_numpy().sum() == len(X)
        and compare_models(stump, stump, X, Y).p_value == 1.0
    )


def test_rows_of_one_leaf_and_models_of_targets_are_compared_by_lines():
    rows, targets = load_diabetes(return_X_y=True)
    a, b = (
        brief(EvoTreeRegressor, leaves=one).fit(rows, targets)
        for one in ("linear", "constant")
    )
    leaf = a.apply(rows)[0]
    first, second = np.flatnonzero(a.apply(rows) == leaf)[:2]
    found = compare_rows(a, rows[first], rows[second])
    used = np.flatnonzero(a.tree_.models.coefficients[leaf])
    assert found.node == leaf and set(found.terms.index) == {f"x{j}" for j in used}
    nearer = np.abs(a.predict(rows) - targets) < np.abs(b.predict(rows) - targets)
    assert compare_models(a, b, rows, targets).models.better["a"] == nearer.sum()
    with pytest.raises(ValueError, match="b: allowed are models of classes"):
        compare_models(MODEL, brief(EvoTreeRegressor).fit(X, Y * 1.0), X, Y)
    with pytest.raises(ValueError, match=r"y has shape \(3,\): allowed is \(178,\)"):
        compare_models(MODEL, MODEL, X, Y[:3])


@pytest.mark.parametrize(
    "wrong",
    [DecisionTreeClassifier(), LogisticRegression(solver="newton-cholesky"), []],
)
@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("a", lambda one: compare_models(one, MODEL, X, Y)),
        ("b", lambda one: compare_models(MODEL, one, X, Y)),
        ("model", lambda one: compare_rows(one, X[:1], X[1:2])),
        ("model", lambda one: stability(one, X, Y, n=2)),
    ],
)
def test_what_is_no_estimator_of_one_tree_is_refused_by_name(name, call, wrong):
    if wrong != []:
        wrong = clone(wrong).fit(X, Y)
    message = f"{name} is of the type {type(wrong).__name__}: allowed are"
    with pytest.raises(TypeError, match=message):
        call(wrong)


@pytest.mark.parametrize(
    "call",
    [
        lambda one: compare_models(MODEL, one, X, Y),
        lambda one: compare_rows(one, X[:1], X[1:2]),
        lambda one: one.explain(X),
        lambda one: counterfactuals(one, X[:1]),
        lambda one: shap_values(one, X, X),
    ],
)
def test_what_is_not_fitted_says_so(call):
    with pytest.raises(NotFittedError):
        call(brief())
