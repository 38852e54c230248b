"""Questions to models: where two rows part, Shapley values, of every kind of leaf, and in print."""

from itertools import permutations

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris, load_wine
from sklearn.exceptions import NotFittedError
from sklearn.tree import DecisionTreeClassifier

from evotree import EvoTreeClassifier
from evotree.fitted import fitted_of
from evotree.inspection import (
    compare_rows,
    counterfactuals,
    shap_values,
    shapley,
    stability,
)
from evotree.schema import CategoricalColumn, NumericColumn
from evotree.tables.columns import encode
from tests.kinds import (
    every,
    every_model,
    kind_of,
    outputs_of,
    rows,
)
from tests.quick_models import brief, brief_text
from tests.random_trees import estimator_of, random_tree

# ---- two rows ------------------------------------------------------------------------------------


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


# ---- Shapley values ------------------------------------------------------------------------------


COLUMNS = (
    NumericColumn("size", 1.0),
    CategoricalColumn("kind", ("p", "q", "r")),
    NumericColumn("age", 2.0, indicator=True),
)


def table(random, n):
    """Return rows with categories and missing numbers."""
    age = random.integers(0, 5, n).astype(float)
    age[random.random(n) < 0.3] = np.nan
    kind = random.choice(["p", "q", "r", "unknown"], n)
    return pd.DataFrame({"size": random.integers(0, 5, n), "kind": kind, "age": age})


def by_definition(predict, row, background):
    """Return the mean over the orders of the columns of what each adds."""
    gained = {}
    orders = list(permutations(range(row.shape[1])))
    for order in orders:
        mixed = background.copy()
        before = predict(mixed).mean(axis=0)
        for j in order:
            mixed.isetitem(j, [row.iloc[0, j]] * len(mixed))
            after = predict(mixed).mean(axis=0)
            gained[j] = gained.get(j, 0.0) + (after - before) / len(orders)
            before = after
    return np.array([gained[j] for j in range(row.shape[1])])


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("lines", [False, True])
def test_values_are_those_of_the_definition(seed, lines):
    random = np.random.default_rng(seed)
    rows, background = table(random, 3), table(random, 7)
    tree = random_tree(random, 6, lines=lines)
    model = estimator_of(tree, encode(COLUMNS, table(random, 50)), COLUMNS)
    predict = model.predict if lines else model.predict_proba
    found = shap_values(model, rows, background)
    for i in range(len(rows)):
        expected = by_definition(predict, rows.iloc[[i]], background)
        np.testing.assert_allclose(found.values[i], expected, atol=1e-12)
    np.testing.assert_allclose(found.base, predict(background).mean(axis=0))
    assert not found.standard_errors.any()


@pytest.mark.parametrize("seed", range(2))
def test_samples_are_as_exact_as_they_say(seed, monkeypatch):
    random = np.random.default_rng(seed)
    X = random.normal(2.0, 2.0, size=(60, 6))
    model = estimator_of(random_tree(random, 6, lines=True), X)
    exact = shap_values(model, X[:3], X[3:20])
    monkeypatch.setattr(shapley, "MAX_EXACT", 0)
    sampled = shap_values(model, X[:3], X[3:20], n_permutations=200, random_state=seed)
    again = shap_values(model, X[:3], X[3:20], n_permutations=200, random_state=seed)
    np.testing.assert_array_equal(sampled.values, again.values)
    away = np.abs(sampled.values - exact.values)
    assert (away <= 4.5 * sampled.standard_errors + 1e-12).all()
    assert sampled.standard_errors.max() > 0.0


@pytest.mark.parametrize("number", [1, 2.5, "many"])
def test_bad_numbers_are_refused(number):
    X = np.zeros((3, 2))
    model = estimator_of(random_tree(np.random.default_rng(0), 2), X)
    with pytest.raises(ValueError, match="n_permutations"):
        shap_values(model, X, X, n_permutations=number)


# ---- every kind of leaf --------------------------------------------------------------------------


without_warnings = pytest.mark.filterwarnings("error")


@without_warnings
@every("lines", "score", without=("outputs",))
def test_two_rows_of_a_leaf_are_compared_by_one_question(name):
    kind, X = kind_of(name), rows(1, 60)
    leaves, labels = kind.model.apply(X), kind.model.predict(X)
    for a in range(10):
        for b in np.flatnonzero((leaves == leaves[a]) & (labels != labels[a])).tolist():
            node, terms, _ = compare_rows(kind.model, X.iloc[[a]], X.iloc[[b]])
            assert node == leaves[a]
            gap = terms.weight * (terms.value_b - terms.value_a)
            np.testing.assert_allclose(terms.difference, gap, atol=1e-9)
            if kind.classes is not None and len(kind.classes) == 2:
                assert terms.difference.sum() < 0.0  # less of the class of `a`


@without_warnings
@every_model
def test_shapley_values_add_up(name):
    kind, X = kind_of(name), rows(1, 5)
    found = shap_values(kind.model, X, kind.X[:20])
    if kind.classes is None:
        predicted = kind.model.predict(X)
    else:
        predicted = kind.model.predict_proba(X)
    np.testing.assert_allclose(
        found.values.sum(axis=1) + found.base, predicted, atol=1e-9
    )


@without_warnings
@every_model
def test_counterfactuals_are_predicted_so(name):
    kind = kind_of(name)
    row, predict = kind.X[:1], kind.model.predict
    if kind.classes is not None:
        before, seen = predict(row)[0], set(predict(kind.X).tolist())
        for target in seen:
            (found,) = counterfactuals(kind.model, row, target)
            assert predict(found.row).tolist() == [target]
            assert (found.distance == 0.0) == (target == before)
        if len(seen) > 1:
            (found,) = counterfactuals(kind.model, row)
            assert predict(found.row)[0] != before
        return
    for at, output in enumerate(outputs_of(kind)):
        predicted = predict(kind.X).reshape(len(kind.X), -1)[:, at]
        far = predicted[np.abs(predicted - predicted[0]).argmax()]
        goal = (far - 0.05, far + 0.05)
        (found,) = counterfactuals(kind.model, row, goal, output=output)
        value = predict(found.row).reshape(1, -1)[0, at]
        assert goal[0] - 1e-9 <= value <= goal[1] + 1e-9


# ---- what is printed -----------------------------------------------------------------------------


IRIS, SPECIES = load_iris(return_X_y=True, as_frame=True)
OF_IRIS = brief().fit(IRIS, SPECIES)
RESULTS = {
    "Stability": (
        lambda: stability(OF_IRIS, IRIS, SPECIES, n=2, random_state=0),
        "2 refits: accuracy",
    ),
    "Counterfactual": (lambda: counterfactuals(OF_IRIS, IRIS.iloc[0])[0], " -> "),
    "ShapValues": (
        lambda: shap_values(OF_IRIS, IRIS, IRIS.iloc[::20]),
        "150 rows, 4 columns, 3",
    ),
    "RowComparison": (
        lambda: compare_rows(OF_IRIS, IRIS[:1], IRIS[-1:]),
        "they part at [0]",
    ),
}


@pytest.mark.parametrize("name", RESULTS)
def test_results_are_printed_in_a_few_lines(name):
    make, told = RESULTS[name]
    assert told in brief_text(make())


def test_what_is_long_is_cut():
    many = pd.DataFrame(np.random.default_rng(0).normal(size=(60, 40))).add_prefix("c")
    found = stability(brief(), many, many.sum(axis=1) > 0.0, n=2, random_state=0)
    assert len(found.columns) > 10
    assert f"{len(found.columns) - 10} more" in repr(found)
