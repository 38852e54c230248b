"""Exported trees predict as the trees do, in every language, of every kind."""

import ctypes
import sqlite3
from contextlib import closing
from dataclasses import replace
from importlib.util import find_spec

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_wine

from evotree import EvoTreeRegressor, ObliqueTreeClassifier
from evotree.export import export_c, export_python, export_sql, to_onnx
from evotree.registry import parts_of
from evotree.schema import CategoricalColumn, NumericColumn
from tests import made_up
from tests.export.cases import BENDS, assert_predicts, cases
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
from tests.test_doors import tables, tree_of
from tests.test_scores import rows_of_targets

needs_gcc = pytest.mark.skipif(GCC is None, reason="there is no gcc")


@pytest.mark.parametrize("kind", cases(), ids=lambda kind: "-".join(map(str, kind)))
@pytest.mark.parametrize("language", LANGUAGES)
def test_every_language_predicts_as_the_trees_do(language, kind):
    some = cases()[kind]
    for case, answer in zip(some, LANGUAGES[language](some), strict=True):
        # Databases add the numbers of trees in an order of their own, and SQLite may read the last
        # digit of a number wrong. Exponentials and logarithms differ by the library.
        is_exact = language != "sql" and "log" not in kind and kind != BENDS
        is_vote = len(case.trees) > 1 or kind == BENDS
        digits = 0.0 if is_exact else 1e-12 if is_vote else 1e-14
        assert_predicts(case, answer, digits, 1e-5 if kind == BENDS else 1e-12)
        assert (answer.probabilities is not None) >= case.has_probabilities
    last = some[-1]
    assert last.classes is None or len(set(last.predict().tolist())) > 1


@given(trees() | modelled_trees())
def test_any_tree_makes_sound_code(tree):
    """Extreme weights included, and products that overflow."""
    rows = np.full((1, tree.n_features), 2.0)
    query(tree, rows, [f"x{j}" for j in range(tree.n_features)])
    found = python_function(tree)(rows[0].tolist())
    assert found in range(3) if tree.values.shape[1] > 1 else isinstance(found, float)


# ---- sums ----------------------------------------------------------------------------------------


def on_thresholds(rng):
    """Return stumps whose thresholds are the rounded sums of rows, of many magnitudes, a line."""
    rows = rng.normal(size=(200, 60)) * 10.0 ** rng.integers(-3, 3, 60)
    weights = rng.normal(size=60)
    sums = np.add.accumulate(weights * rows, axis=1)[:, -1]
    for bound in [*sums[:10], *np.nextafter(sums[:10], -np.inf)]:
        yield Case((stump(weights.tolist(), bound),), rows, (0, 1)), sums > bound


def large(rng):
    """Return a line in a leaf, a deep tree, and a split of many terms."""
    line = with_models(
        stump(rng.normal(size=60), 0.1).predicting(np.zeros((3, 1))), rng
    )
    deep = chain(401).predicting(np.arange(401.0)[:, np.newaxis])
    wide = stump(rng.integers(-8, 9, 980).astype(float).tolist())
    for case in (
        Case((line,), rng.normal(size=(200, 60))),
        Case((deep,), np.arange(-2.0, 402.0)[:, np.newaxis]),
        Case((wide,), rng.integers(-9, 9, (50, 980)).astype(float), (0, 1)),
    ):
        yield case, case.predict()


@pytest.mark.parametrize("language", LANGUAGES)
def test_sums_add_in_the_order_of_the_features_in_deep_and_wide_trees_too(language):
    rng = np.random.default_rng(0)
    # ONNX adds the terms of a split in an order of its own.
    some = [*large(rng), *(() if language == "onnx" else on_thresholds(rng))]
    answers = LANGUAGES[language]([case for case, _ in some])
    for (_, wanted), answer in zip(some, answers, strict=True):
        assert len(np.unique(wanted)) > 1
        np.testing.assert_array_equal(np.ravel(answer.predicted), np.ravel(wanted))


def test_lines_of_code_are_short_and_functions_take_any_number_of_terms():
    names = [f"a rather long name of a feature {j}" for j in range(5000)]
    wide = stump([1.0] * 5000)
    assert python_function(wide)([0.0] * 5000) == 0
    source = export_python(wide, feature_names=names)
    assert max(len(line) for line in source.splitlines() if "s = " in line) <= 100


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
        model = ObliqueTreeClassifier("axis", max_depth=3).fit(X, labels)
        wanted, predict = model.predict(X).tolist(), python_function(model)
        found = [predict(row) for row in X.to_numpy().tolist()]
        assert found == wanted and {type(v) for v in found} == {type(v) for v in wanted}
        assert [v for (v,) in query(model, X.to_numpy(), list(X.columns))] == wanted
        if find_spec("onnx"):
            found, shares = run_onnx(to_onnx(model), X.to_numpy())
            np.testing.assert_array_equal(found, wanted)
            np.testing.assert_array_equal(shares, model.predict_proba(X))
            assert isinstance(wanted[0], str) or found.dtype == np.int64


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


@pytest.mark.parametrize("probability", [False, True])
def test_a_whole_statement_of_sql_adds_columns_to_its_table(probability):
    X, y = load_wine(return_X_y=True, as_frame=True)
    model = ObliqueTreeClassifier("axis", max_depth=3).fit(X, y)
    options = {"probability": probability, "statement": True}
    with closing(sqlite3.connect(":memory:")) as base:
        X.to_sql("wines", base, index=False)
        found = pd.read_sql(export_sql(model, "wines", **options), base)
    assert found.prediction.tolist() == model.predict(X).tolist()
    pd.testing.assert_frame_equal(found[[*X]], X)
    if probability:
        shares = found[["0", "1", "2"]].to_numpy()
        np.testing.assert_allclose(shares, model.predict_proba(X))
    with pytest.raises(ValueError, match="statement=True: table=None"):
        export_sql(model, **options)


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


def test_rows_of_another_length_are_refused_by_python():
    for case in (some[-1] for some in cases().values()):
        predict, row = python_function(case.estimator, {}), case.rows[0].tolist()
        for wrong in (row[1:], [*row, 0.0]):
            with pytest.raises(ValueError, match=f"{len(wrong)} .* {len(row)}"):
                predict(wrong)


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


def test_what_cannot_be_converted_is_named():
    pytest.importorskip("onnx")
    X, y = load_wine(return_X_y=True)
    for labels in ([0.25, 1.0, 2.0], np.array([0, 2**63, 2**63 + 1], dtype=np.uint64)):
        model = ObliqueTreeClassifier("axis").fit(X, y)
        model.fitted_ = replace(model.fitted_, classes=np.array(labels))
        with pytest.raises(ValueError, match="classes_ holds .* whole numbers below"):
            to_onnx(model)


# ---- over the columns of a table -----------------------------------------------------------------


def test_code_says_how_its_row_is_made_of_columns():
    columns = (
        NumericColumn("the size", 2.5, indicator=True),
        CategoricalColumn("colour", ("blue", "it's", None)),
    )
    tree = stump([1.0, 1.5, -2.0, 0.0, 3.0])
    model = made_up.model(tree, columns, ["a", "b"], target="kind")
    note = "1 where 'colour' is missing; else 0"
    source = export_python(model)
    assert f"# x[4] is {note}" in source and f"// x[4] is {note}" in export_c(model)
    assert "x[0] is 'the size', or 2.5 where that is missing" in source
    assert "x[1] is 1 where 'the size' is missing; else 0" in source


def test_forms_that_are_listed_name_what_a_model_asks_for():
    X = pd.DataFrame({"width": np.arange(40.0) % 7, "height": np.arange(40.0)})
    model = ObliqueTreeClassifier("axis", random_state=0).fit(X, X["height"] > 20)
    assert np.flatnonzero(model.tree_.weights[0]).tolist() == [1]
    for name, form in parts_of("export").items():
        if name != "onnx":  # its rows are an array
            assert "height" in form(model), name


# ---- tables of databases -------------------------------------------------------------------------


@settings(max_examples=25, deadline=None)
@given(tables())
def test_databases_read_tables_as_the_model_does(drawn):
    frame, y, named = drawn
    model = tree_of(named).fit(frame, y)
    expected = model.predict(frame).tolist()
    expression = export_sql(model)
    question = f"SELECT {expression} FROM t"
    # PostgreSQL makes whole numbers alone of truth values.
    assert expression.count('"flag"') == expression.count('CAST("flag" AS INTEGER)')
    with closing(sqlite3.connect(":memory:")) as base:
        frame.to_sql("t", base, index=False)
        assert [row[0] for row in base.execute(question)] == expected
        # An expression has no type, by which SQLite makes numbers of texts.
        cast = ", ".join(
            f'"{name}" || \'\' AS "{name}"' if name == "grade" else f'"{name}"'
            for name in frame
        )
        untyped = question.replace("FROM t", f"FROM (SELECT {cast} FROM t)")
        assert [row[0] for row in base.execute(untyped)] == expected
    arrow = pa.table(  # whose missing numbers are NaN, not null
        {
            name: pa.array(cells.to_numpy(), from_pandas=cells.dtype.kind != "f")
            for name, cells in frame.items()
        }
    )
    with duckdb.connect() as base:
        for table in (frame, arrow):
            base.register("t", table)
            assert [row[0] for row in base.sql(question).fetchall()] == expected
        base.execute("CREATE SCHEMA s; CREATE TABLE s.u AS SELECT * FROM t")
        question = f"SELECT {export_sql(model, ('s', 'u'))} FROM s.u"
        assert [row[0] for row in base.sql(question).fetchall()] == expected


# ---- scores of targets ---------------------------------------------------------------------------


def test_code_has_the_score_of_targets_once():
    X, y = rows_of_targets(300)
    model = EvoTreeRegressor(leaves="score", random_state=0, max_generations=2)
    model.fit(X, y)
    assert model.get_n_leaves() > 1
    code, names = export_python(model), {}
    exec(code, names)
    told = [names["predict"](row) for row in model.encode(X).tolist()]
    assert told == pytest.approx(model.predict(X), rel=1e-9)
    largest = np.abs(model.tree_.models.score.coefficients).max()
    assert code.count(repr(float(largest))) == 1
