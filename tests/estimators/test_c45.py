"""The preset C4.5 against a plain-Python twin, the examples of the book, and what it promises."""

from functools import partial

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.utils.estimator_checks import parametrize_with_checks

from evotree import ObliqueTreeClassifier
from evotree.export import export_c, export_python, export_sql, to_onnx
from evotree.leaf_models import class_probabilities
from evotree.operators.pruning import added_errors, normal_deviation
from evotree.operators.splitters.base import C45
from evotree.operators.splitters.linear_machine import LinearMachine
from evotree.texts import export_rules, export_text
from evotree.words import ONE_WAY
from tests.reference import c45 as naive
from tests.strategies import seeds


def nested(model, k=0):
    """Return a fitted tree in the form of the twin, without its class weights."""
    tree, columns = model.tree_, model.columns_
    if tree.subtree_size[k] == 1:
        return []
    column_of = [at for at, column in enumerate(columns) for _ in column.feature_levels]
    feature = np.flatnonzero(tree.weights[k])[0]
    return [column_of[feature], tree.thresholds[k], nested(model, tree.left(k)),
            nested(model, tree.right(k))]  # fmt: skip


def shape_of(node):
    """Return a tree of the twin without its class weights."""
    return [] if len(node) == 1 else [*node[1:3], shape_of(node[3]), shape_of(node[4])]


def counts_of(node):
    """Return the class weights of the nodes of a tree of the twin, in prefix order."""
    below = [] if len(node) == 1 else counts_of(node[3]) + counts_of(node[4])
    return [node[0], *below]


@settings(max_examples=60)
@given(
    seeds,
    st.integers(4, 90),
    st.integers(2, 3),
    st.sampled_from((4, 8, 1000)),
    st.sampled_from((0.0, 0.0, 0.05, 0.3)),
    st.sampled_from((0.01, 0.25, 0.9)),
)
# Random ones seldom have two branches of one weight, or one that is raised for no more than the
# errors that are tolerated.
@example(seed=506, n=49, n_classes=3, grid=8, missing=0.0, confidence=0.9)
@example(seed=639, n=36, n_classes=3, grid=8, missing=0.0, confidence=0.25)
def test_the_tree_of_the_twin(seed, n, n_classes, grid, missing, confidence):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, grid, (n, 3)) / 4.0
    y = (X[:, 0] > grid / 8).astype(int) + (X[:, 1] > grid / 6) * (n_classes - 2)
    y = np.where(rng.random(n) < 0.2, rng.integers(0, n_classes, n), y)
    y[:n_classes] = np.arange(n_classes)
    X[rng.random(X.shape) < missing] = np.nan
    model = ObliqueTreeClassifier.from_preset("C4.5", confidence=confidence).fit(X, y)
    expected = naive.c45(X, y, n_classes, confidence)
    assert nested(model) == shape_of(expected)
    counts = model.tree_.values * model.tree_.weighted_n_node_samples[:, np.newaxis]
    np.testing.assert_allclose(counts, counts_of(expected), atol=1e-9)
    rows = rng.integers(0, grid, (40, 3)) / 4.0
    rows[rng.random(rows.shape) < 0.4] = np.nan
    shares = [naive.shares_of(expected, row) for row in rows.tolist()]
    np.testing.assert_allclose(model.predict_proba(rows), shares, atol=1e-9)
    best = np.max(shares, axis=1)
    assert best == pytest.approx(
        [shares[i][c] for i, c in enumerate(model.predict(rows))]
    )


def test_errors_to_expect_of_the_book():
    """U25%(0, 6) = .206, U25%(0, 9) = .143, U25%(0, 1) = .75 and U25%(1, 16) = .157 (section 4.2).

    The last is of the binomial distribution; the program has the normal one for it.
    """
    for n, bound in ((6, 0.206), (9, 0.143), (1, 0.750)):
        assert added_errors(n, 0.0, 0.25) / n == pytest.approx(bound, abs=5e-4)
    assert (1.0 + added_errors(16, 1.0, 0.25)) / 16 == pytest.approx(0.157, abs=0.004)
    assert normal_deviation(0.25) == pytest.approx(0.84 - 0.59 / 4)


def test_rows_that_miss_a_value_go_where_more_rows_are():
    """Where the median, which fills in, is on the other side, a second term says so."""
    X = np.array([[float(i)] for i in range(20)])
    y = (np.arange(20) >= 15).astype(int)
    weight = np.where(y == 1, 1.0, 0.1)
    X[[0, 16]] = np.nan
    for weights, on_right in ((np.ones(20), False), (weight, True)):
        model = ObliqueTreeClassifier.from_preset("C4.5", pruning="pessimistic")
        model.set_params(splitter=C45(min_cases=0.1)).fit(X, y, weights)
        heavy = model.tree_.weighted_n_node_samples
        heavy_right = heavy[2] > heavy[1]
        assert heavy_right == on_right
        assert (model.apply([[np.nan]])[0] == 2) == on_right
        assert model.score(X[~np.isnan(X[:, 0])], y[~np.isnan(X[:, 0])]) == 1.0


@pytest.mark.parametrize("probability", ["leaf", "soft"])
def test_complete_rows_are_predicted_by_the_tree(probability):
    X, y = load_breast_cancer(return_X_y=True)
    holes = np.where(np.random.default_rng(0).random(X.shape) < 0.1, np.nan, X)
    model = ObliqueTreeClassifier.from_preset("C4.5", probability=probability).fit(
        holes, y
    )
    np.testing.assert_array_equal(model.predict(X), model.tree_.labels[model.apply(X)])
    predict = partial(class_probabilities, model.tree_, model.probabilities_)
    of_tree = predict(model.encode(X))
    np.testing.assert_array_equal(model.predict_proba(X), of_tree)
    assert (model.predict_proba(holes) != predict(model.encode(holes))).any()


def test_categories_are_not_shared():
    """A level that is missing is a level; numbers beside it are shared."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"kind": rng.choice(["a", "b"], 200), "size": rng.random(200)})
    table = table.astype({"kind": "category"})
    y = ((table["kind"] == "a") & (table["size"] > 0.4)).to_numpy()
    model = ObliqueTreeClassifier.from_preset("C4.5").fit(table, y)
    asked = pd.DataFrame({"kind": ["a", None], "size": [None, 0.9]}).astype(
        table.dtypes
    )
    on_kind, on_both = model.predict_proba(asked)
    assert on_kind[1] == pytest.approx(y[table["kind"] == "a"].mean())
    np.testing.assert_array_equal(
        on_both, model.tree_.predict_value(model.encode(asked))[1]
    )


def test_exports_say_that_rows_go_one_way():
    X, y = load_iris(return_X_y=True)
    X[::7, 2] = np.nan
    sharing = ObliqueTreeClassifier.from_preset("C4.5").fit(X, y)
    other = ObliqueTreeClassifier("axis").fit(X, y)
    for export in (export_text, export_rules, export_python, export_c, export_sql):
        assert ONE_WAY in export(sharing)
        assert ONE_WAY not in export(other) + export(sharing.tree_)
    predict: dict = {}
    exec(export_python(sharing), predict)
    rows = sharing.encode(X)
    told = [predict["predict"](row) for row in rows.tolist()]
    assert (
        told
        == sharing.classes_[sharing.tree_.labels[sharing.tree_.apply(rows)]].tolist()
    )
    pytest.importorskip("onnx")
    assert to_onnx(sharing).doc_string == ONE_WAY and to_onnx(other).doc_string == ""


def test_pessimistic_pruning_is_for_any_splitter_of_classes():
    X, y = load_breast_cancer(return_X_y=True)
    y = np.where(np.random.default_rng(0).random(len(y)) < 0.1, 1 - y, y)
    oblique = ObliqueTreeClassifier(LinearMachine(), random_state=0)
    full = oblique.fit(X, y).get_n_leaves()
    assert 1 < oblique.set_params(pruning="pessimistic").fit(X, y).get_n_leaves() < full
    less = ObliqueTreeClassifier("axis", pruning="pessimistic", confidence=0.9).fit(
        X, y
    )
    more = ObliqueTreeClassifier("axis", pruning="pessimistic", confidence=0.01).fit(
        X, y
    )
    assert more.get_n_leaves() < less.get_n_leaves()


@parametrize_with_checks([ObliqueTreeClassifier.from_preset("C4.5")])
def test_scikit_learn_checks(estimator, check):
    check(estimator)
