"""Exported trees predict as the trees do, in every language, of every kind."""

import ctypes
import sqlite3
from contextlib import closing
from dataclasses import replace
from functools import cache
from itertools import product

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_wine
from sklearn.exceptions import NotFittedError
from sklearn.preprocessing import StandardScaler

from evotree import ObliqueTreeClassifier, ObliqueTreeRegressor
from evotree.export import export_c, export_python, export_sql, to_onnx
from evotree.registry import parts_of
from evotree.schema import CategoricalColumn, NumericColumn
from evotree.tree import ObliqueTree
from tests import made_up
from tests.export.cases import KINDS, SIZES, assert_predicts, cases
from tests.export.languages import (
    GCC,
    LANGUAGES,
    compiled,
    python_function,
    query,
    returned,
    run_onnx,
)
from tests.exported import chain, modelled_trees, stump, trees, with_models
from tests.made_up import Case

needs_gcc = pytest.mark.skipif(GCC is None, reason="there is no gcc")


@cache
def answers(language):
    some = cases()
    return dict(zip(some, LANGUAGES[language](list(some.values())), strict=True))


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: "-".join(map(str, kind)))
@pytest.mark.parametrize("language", LANGUAGES)
def test_every_language_predicts_as_the_trees_do(language, kind):
    for n_splits in SIZES:
        case, answer = cases()[kind, n_splits], answers(language)[kind, n_splits]
        # Databases add the numbers of trees in an order of their own, and SQLite may read the last
        # digit of a number wrong. Exponentials differ by the library.
        is_exact = language != "sql" and kind[1] != "log"
        is_vote = len(case.trees) > 1
        digits = 0.0 if is_exact else 1e-12 if is_vote else 1e-14
        assert_predicts(case, answer, digits, 1e-12)
        assert case.classes is None or n_splits < 2 or len(set(case.predict())) > 1
        assert (answer.probabilities is not None) >= (
            language != "sql" and case.has_probabilities
        )


@given(trees() | modelled_trees())
def test_any_tree_makes_sound_code(tree):
    """Extreme weights included, and products that overflow."""
    rows = np.full((1, tree.n_features), 2.0)
    query(tree, rows, [f"x{j}" for j in range(tree.n_features)])
    found = python_function(tree)(rows[0].tolist())
    assert found in range(3) if tree.values.shape[1] > 1 else isinstance(found, float)


# ---- sums ----------------------------------------------------------------------------------------


def test_sums_add_in_the_order_of_the_features():
    """On thresholds that are the rounded sums of rows, and in long sums of many magnitudes."""
    rng = np.random.default_rng(0)
    n, d = 200, 60
    rows, weights = (
        rng.normal(size=(n, d)) * 10.0 ** rng.integers(-3, 3, d),
        rng.normal(size=d),
    )
    sums = np.add.accumulate(weights * rows, axis=1)[:, -1]
    bounds = [*sums[:10], *np.nextafter(sums[:10], -np.inf)]
    forest = [stump(weights.tolist(), bound) for bound in bounds]
    lines = with_models(stump(weights.tolist(), 0.1).predicting(np.zeros((3, 1))), rng)
    names = [f"a rather long name of a feature {j}" for j in range(d)]
    source = export_python(lines, feature_names=names)
    assert max(len(line) for line in source.splitlines() if "s = " in line) <= 100
    wanted = [(sums > bound).astype(int).tolist() for bound in bounds]
    wanted.append(lines.predict_value(rows)[:, 0].tolist())
    for tree, expected in zip([*forest, lines], wanted, strict=True):
        predict = python_function(tree)
        assert [predict(row) for row in rows.tolist()] == expected
        found = query(tree, rows, names, feature_names=names)
        assert [value for (value,) in found] == expected
    if GCC:
        library = compiled(
            [export_c(t, f"f{at}") for at, t in enumerate([*forest, lines])]
        )
        for at, expected in enumerate(wanted):
            assert returned(library[f"f{at}"], rows, at < len(forest)) == expected
    pytest.importorskip("onnx")
    (found,) = run_onnx(to_onnx(Case((lines,), rows).estimator), rows)
    np.testing.assert_array_equal(found[:, 0], wanted[-1])


def test_deep_trees_are_read_and_splits_may_have_many_terms():
    rng, deep = np.random.default_rng(0), chain(401)
    wide = rng.integers(-9, 9, (50, 980)).astype(float)
    some = [
        Case(
            (deep.predicting(np.arange(401.0)[:, np.newaxis]),),
            np.arange(-2.0, 402.0)[:, None],
        ),
        Case((stump(rng.integers(-8, 9, 980).astype(float).tolist()),), wide, (0, 1)),
    ]
    for language in ("python", "sql", "onnx") + (("c",) if GCC else ()):
        for case, answer in zip(some, LANGUAGES[language](some), strict=True):
            wanted = case.predict()
            assert len(np.unique(wanted)) == case.trees[0].n_leaves
            np.testing.assert_array_equal(
                np.reshape(answer.predicted, wanted.shape), wanted
            )
    assert python_function(stump([1.0] * 5000))([0.0] * 5000) == 0


# ---- labels, names and cells ---------------------------------------------------------------------

AWKWARD = [
    "a \"b\" 'c'",
    "back\\slash\\",
    "new\nline\r\n",
    "*/ // -- ; ??/",
    "ünïcode 漢 \u2028 \u202e",
    "",
    "%s {x} \\N \\n &lt; <b>",
    "\x01\x7f\ttab",
]
awkward = st.sampled_from(AWKWARD) | st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=8
)


ON_BOTH_SIDES = stump([1.0, 2.0]), np.array([[0.5, 0.25], [0.5, 0.5]])


def test_estimators_give_their_names_and_labels():
    X, y = load_wine(return_X_y=True, as_frame=True)
    X.columns = [f'{name} "{at}"' for at, name in enumerate(X.columns)]
    for labels in (y, y - 1, y == 1, np.array(["a'b", "c\\", "d\ne"])[y], y + 0.0):
        model = ObliqueTreeClassifier("axis", max_depth=3, random_state=0).fit(
            X, labels
        )
        wanted, predict = model.predict(X).tolist(), python_function(model)
        found = [predict(row) for row in X.to_numpy().tolist()]
        assert found == wanted and {type(v) for v in found} == {type(v) for v in wanted}
        assert [v for (v,) in query(model, X.to_numpy(), list(X.columns))] == wanted
    lines = ObliqueTreeRegressor("axis", max_depth=2, leaves="linear").fit(
        X, X.iloc[:, 0] ** 2
    )
    for j in np.flatnonzero(lines.tree_.models.coefficients.any(axis=0)):
        name = lines.feature_names_[j]
        assert name.replace('"', '""') in export_sql(lines)
        assert f"x[{j}] is {name!r}" in export_python(lines)


@given(st.lists(awkward, min_size=2, max_size=2, unique_by=str.lower), st.data())
def test_awkward_names_in_python_and_sql(classes, data):
    some = st.lists(
        awkward.filter(bool), min_size=2, max_size=2, unique_by=str.casefold
    )
    features = data.draw(some)
    names = {"feature_names": features, "class_names": classes}
    tree, rows = ON_BOTH_SIDES
    assert [python_function(tree, **names)(row) for row in rows.tolist()] == classes
    assert [v for (v,) in query(tree, rows, features, **names)] == classes


@needs_gcc
def test_awkward_names_in_c():
    pairs = [AWKWARD[at : at + 2] for at in range(0, len(AWKWARD), 2)]
    tree, rows = ON_BOTH_SIDES
    library = compiled(
        [export_c(tree, f"f{at}", *[pair] * 2) for at, pair in enumerate(pairs)]
    )
    for at, pair in enumerate(pairs):
        assert returned(library[f"f{at}"], rows, True) == [0, 1]
        labels = (ctypes.c_char_p * 2).in_dll(library, f"f{at}_classes")
        assert [label.decode() for label in labels] == pair


def test_rows_with_null_in_a_column_that_is_read_have_no_prediction():
    tree = stump([0.5, 0.0, -2.0])
    lines = with_models(tree.predicting(tree.values[:, :1]), np.random.default_rng(1))
    for one, factors in (
        (tree, tree.weights),
        (lines, lines.weights + lines.models.coefficients),
    ):
        rows = np.ones((3, 3), dtype=object)
        np.fill_diagonal(rows, None)
        is_null = [value is None for (value,) in query(one, rows, ["x0", "x1", "x2"])]
        assert is_null == (factors != 0.0).any(axis=0).tolist()


def test_sql_reads_text_as_numbers_misses_no_column_and_names_outputs():
    with closing(sqlite3.connect(":memory:")) as base:
        base.execute("CREATE TABLE data (a TEXT)")
        base.executemany("INSERT INTO data VALUES (?)", [("9",), ("10",), ("1e1",)])
        expression = export_sql(stump([1.0], 9.5), "data", ["a"])
        assert base.execute(f"SELECT {expression} FROM data").fetchall() == [
            (0,),
            (1,),
            (1,),
        ]
        with pytest.raises(sqlite3.OperationalError, match="no such column"):
            base.execute(f"SELECT {export_sql(stump([1.0]), 'data', ['b'])} FROM data")
        base.execute("CREATE TABLE rows (x0 REAL, x1 REAL)")
        several = stump([1.0, 2.0]).replaced(output_names=("a;b", 'c"'))
        names = base.execute(
            f"SELECT {export_sql(several, 'rows')} FROM rows"
        ).description
        assert [name for name, *_ in names] == ["a;b", 'c"']


@pytest.mark.parametrize(
    ("export", "arguments", "named"),
    [
        (export_python, {"name": "a b"}, "name='a b'"),
        (export_python, {"name": "class"}, "name='class'"),
        (export_python, {"name": 3}, "name=3"),
        (export_c, {"name": "größe"}, "name='größe'"),
        (export_c, {"name": "double"}, "name='double'"),
        (export_c, {"name": "__f"}, "name='__f'"),
        (export_c, {"class_names": ["a", "b\0"]}, "NUL"),
        (export_c, {"class_names": ["a", "\ud800"]}, "UTF-8"),
        (export_sql, {"class_names": ["a", "b\0"]}, "NUL"),
        (export_sql, {"feature_names": ["a", "b\0"]}, "NUL"),
        (export_sql, {"feature_names": ["a", "a"]}, "'a' twice"),
        (export_sql, {"class_names": [0.5, float("nan")]}, r"class_names\[1\]"),
        (export_python, {"class_names": ["a", None]}, r"class_names\[1\] is None"),
        (export_python, {"feature_names": ["a"]}, "feature_names"),
        (export_c, {"tree": "oak"}, "tree is of the type str"),
        (export_python, {"probability": True}, "probability=True"),
        (export_c, {"probability": True}, "probability=True"),
    ],
)
def test_bad_arguments_are_named(export, arguments, named):
    with pytest.raises(ValueError, match=named):
        export(**{"tree": stump([1.0, 2.0]), **arguments})


# ---- ONNX ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def wine():
    """Return rows and classes that only some of the features tell."""
    pytest.importorskip("onnx")
    X, y = load_wine(return_X_y=True)
    return X, y


@pytest.mark.parametrize(
    "labels",
    [[-5, 3, 1 << 40], [0.0, 1.0, 7.0], [False, True, True], ["ä'b", "c", "d\n"]],
)
def test_labels_are_those_of_the_estimator(labels, wine):
    X, y = wine
    model = ObliqueTreeClassifier("axis", max_depth=3).fit(X, np.array(labels)[y])
    found, shares = run_onnx(to_onnx(model), X)
    np.testing.assert_array_equal(found, model.predict(X))
    np.testing.assert_array_equal(shares, model.predict_proba(X))
    assert isinstance(labels[0], str) or found.dtype == np.int64


def test_what_cannot_be_converted_is_named(wine, monkeypatch):
    X, y = wine
    with pytest.raises(NotFittedError):
        to_onnx(ObliqueTreeClassifier())
    with pytest.raises(ValueError, match="tree is of the type StandardScaler"):
        to_onnx(StandardScaler().fit(X, y))
    model = ObliqueTreeClassifier("axis").fit(X, y)
    with (
        monkeypatch.context() as patch,
        pytest.raises(ValueError, match="allowed are up to 1"),
    ):
        patch.setattr("evotree.export.onnx.MAX_LEAVES", 1)
        to_onnx(model)
    classes = np.array([0.25, 1.0, 2.0])
    model.fitted_ = replace(model.fitted_, classes=classes)
    with pytest.raises(ValueError, match=r"classes_ holds \[0.25, 1.0, 2.0\]"):
        to_onnx(model)


# ---- over the columns of a table -----------------------------------------------------------------


def test_models_are_exported_over_the_columns_of_a_table():
    columns = (
        NumericColumn("the size", 2.5, indicator=True),
        CategoricalColumn("colour", ("blue", "it's", None)),
    )
    tree = ObliqueTree(
        np.array(
            [
                [1.0, 1.5, -2.0, 0.0, 3.0],
                [0.0] * 5,
                [0, 0, 0, 1.0, 0],
                [0.0] * 5,
                [0.0] * 5,
            ]
        ),
        np.array([2.0, 0.0, 0.5, 0.0, 0.0]),
        np.array([5, 1, 3, 1, 1], dtype=np.int32),
        np.array(
            [
                [0.5, 0.5, 0.0],
                [1.0, 0.0, 0.0],
                [0.0, 0.5, 0.5],
                [0, 1.0, 0],
                [0, 0, 1.0],
            ]
        ),
    )
    model = made_up.model(tree, columns, ["a", "b", "c's"], target="kind")
    note = "1 where 'colour' is missing; else 0"
    source = export_python(model)
    assert f"# x[4] is {note}" in source and f"// x[4] is {note}" in export_c(model)
    assert "x[0] is 'the size', or 2.5 where that is missing" in source
    assert "x[1] is 1 where 'the size' is missing; else 0" in source
    rows = product((-2.0, 0.5, 4.0, 6.0, None), ("blue", "it's", "red", "green", None))
    frame = pd.DataFrame(rows, columns=["the size", "colour"])
    with closing(sqlite3.connect(":memory:")) as base:
        frame.to_sql("things", base, index=False)
        found = base.execute(
            f"SELECT {export_sql(model)} FROM things ORDER BY rowid"
        ).fetchall()
    wanted = model.predict(frame).tolist()
    assert [label for (label,) in found] == wanted and len(set(wanted)) == 3


def test_forms_that_are_listed_name_what_a_model_asks_for():
    X = pd.DataFrame({"width": np.arange(40.0) % 7, "height": np.arange(40.0)})
    model = ObliqueTreeClassifier("axis", random_state=0).fit(X, X["height"] > 20)
    assert np.flatnonzero(model.tree_.weights[0]).tolist() == [1]
    for name, form in parts_of("export").items():
        if name != "onnx":  # its rows are an array
            assert "height" in form(model), name
