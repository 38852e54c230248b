"""Where two rows part, beside sums made by hand, and models that no question is about."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_wine
from sklearn.exceptions import NotFittedError
from sklearn.tree import DecisionTreeClassifier

from evotree import EvoTreeClassifier
from evotree.fitted import fitted_of
from evotree.inspection import (
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


QUESTIONS = [
    lambda model: compare_rows(model, X[:1], X[1:2]),
    lambda model: counterfactuals(model, X[:1]),
    lambda model: shap_values(model, X, X),
]


@pytest.mark.parametrize("ask", [*QUESTIONS, lambda one: stability(one, X, Y, n=2)])
@pytest.mark.parametrize("wrong", [DecisionTreeClassifier().fit(X, Y), []])
def test_what_is_no_estimator_of_one_tree_is_refused(ask, wrong):
    message = f"model is of the type {type(wrong).__name__}: allowed are"
    with pytest.raises(TypeError, match=message):
        ask(wrong)


@pytest.mark.parametrize("ask", [*QUESTIONS, lambda model: model.explain(X)])
def test_what_is_not_fitted_says_so(ask):
    with pytest.raises(NotFittedError):
        ask(brief())
