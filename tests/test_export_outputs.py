"""Trees of several outputs in all forms: each predicts, or says, the same."""

import ctypes
import json
import sqlite3
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evotree import ObliqueTreeRegressor
from evotree.dataset import Dataset
from evotree.export import (
    coefficient_table,
    export_c,
    export_graphviz,
    export_html,
    export_rules,
    export_sql,
    export_text,
    to_onnx,
    tree_from_dict,
    tree_to_dict,
)
from evotree.fitness.several_outputs import MeansOfOutputs
from evotree.leaf_models import OutputModels
from evotree.model_file import Model
from evotree.operators.structure.splice import make_individual
from evotree.plotting import plot_tree
from evotree.tables.columns import NumericColumn
from evotree.tree import ObliqueTree
from tests.exported import stump, trees, with_models
from tests.test_export_code import compile_c, eighths, needs_gcc, run_python, run_sql


@st.composite
def cases(draw: st.DrawFn) -> tuple[ObliqueTree, np.ndarray]:
    """Draw a tree of two or three outputs, with or without lines, and rows."""
    tree = draw(trees(eighths, n_classes=draw(st.integers(2, 3))))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    names = tuple(f"out {j}" for j in range(tree.values.shape[1]))
    tree = named(tree.predicting(10.0 * rng.normal(size=tree.values.shape)), names)
    if draw(st.booleans()):
        each = [with_models(tree.of_output(j), rng).models for j in range(len(names))]
        tree = tree.with_models(OutputModels(tuple(each)))
    d = tree.n_features
    rows = draw(st.lists(st.lists(eighths, min_size=d, max_size=d), min_size=1, max_size=12))
    return tree.validate(), np.array(rows)


def named(tree: ObliqueTree, names: tuple[str, ...]) -> ObliqueTree:
    """Return a tree whose values are outputs of some names."""
    splits = tree.weights, tree.thresholds, tree.subtree_size
    samples = tree.weighted_n_node_samples
    return ObliqueTree(*splits, tree.values, tree.spread, samples, output_names=names)


def two_outputs() -> ObliqueTree:
    """Return a tree of one split and two outputs."""
    values = np.array([[0.0, 0.0], [1.2, 3.0], [-1.0, 7.5]])
    return named(stump([1.0, 0.0]).predicting(values), ("height", "width"))


@pytest.fixture(scope="module", params=["constant", "linear"])
def fitted(request: Any) -> tuple[ObliqueTreeRegressor, np.ndarray]:
    """Return a fitted regressor of named outputs, and rows, one of them far away."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 3))
    Y = np.column_stack([X[:, 0] > 0.0, 10.0 * X[:, 1] + (X[:, 0] > 0.0), X[:, 2]])
    frame = pd.DataFrame(Y + 0.1 * rng.normal(size=Y.shape), columns=["height", "width", "a;b"])
    leaves = request.param
    model = ObliqueTreeRegressor("axis", max_depth=2, leaves=leaves, random_state=0).fit(X, frame)
    return model, np.vstack([X, 1e3 * X[:1]])


# ---- code ----------------------------------------------------------------------------------------


@settings(max_examples=40)
@given(cases())
def test_python_and_sql_predict_as_the_tree_does(case: tuple[ObliqueTree, np.ndarray]) -> None:
    tree, rows = case
    predicted = tree.predict_value(rows)
    assert run_python(tree, rows) == predicted.tolist()
    for j in range(predicted.shape[1]):
        found = run_sql(tree.of_output(j), rows, [f"x{i}" for i in range(tree.n_features)])
        np.testing.assert_allclose(found, predicted[:, j], rtol=1e-12)


def test_sql_is_one_column_for_each_output(fitted: Any) -> None:
    model, rows = fitted
    table = pd.DataFrame(rows, columns=model.feature_names_)
    with sqlite3.connect(":memory:") as database:
        table.to_sql("t", database, index=False)
        found = pd.read_sql(f"SELECT {export_sql(model, 't')} FROM t", database)
    assert found.columns.tolist() == ["height", "width", "a;b"]
    np.testing.assert_allclose(found.to_numpy(), model.predict(rows), rtol=1e-12)


@needs_gcc
def test_c_writes_each_output(fitted: Any, tmp_path: Path) -> None:
    model, rows = fitted
    function = compile_c([export_c(model)], tmp_path).predict
    function.restype = None
    for row, wanted in zip(rows, model.predict(rows), strict=True):
        y = (ctypes.c_double * 3)()
        function((ctypes.c_double * 3)(*row), y)
        assert list(y) == wanted.tolist()


def test_python_returns_what_predict_does(fitted: Any) -> None:
    model, rows = fitted
    assert run_python(model, rows) == model.predict(rows).tolist()


def test_onnx_predicts_as_the_tree_does(fitted: Any) -> None:
    runtime = pytest.importorskip("onnxruntime")
    pytest.importorskip("skl2onnx")
    model, rows = fitted
    session = runtime.InferenceSession(to_onnx(model).SerializeToString())
    (found,) = session.run(None, {"X": rows})
    assert session.get_outputs()[0].shape[1] == 3
    np.testing.assert_allclose(found, model.predict(rows), rtol=1e-9)


# ---- data ----------------------------------------------------------------------------------------


def test_individuals_know_their_outputs() -> None:
    X = np.arange(8.0)[:, np.newaxis]
    Y = np.column_stack([X[:, 0] > 3.0, X[:, 0] > 1.0])
    dataset = Dataset.from_arrays(X, Y, task="regression").evolved_for(MeansOfOutputs())
    arrays = np.array([[1.0], [0.0], [0.0]]), np.zeros(3), np.array([3, 1, 1], dtype=np.int32)
    assert "predict y0 = " in str(make_individual(dataset, *arrays))


@given(cases())
def test_data_gives_back_the_same_tree(case: tuple[ObliqueTree, np.ndarray]) -> None:
    tree, rows = case
    again = tree_from_dict(json.loads(json.dumps(tree_to_dict(tree))))
    assert again == tree and again.output_names == tree.output_names
    np.testing.assert_array_equal(again.predict_value(rows), tree.predict_value(rows))
    assert again.n_terms == tree.n_terms


def test_damaged_data_is_refused() -> None:
    data = tree_to_dict(two_outputs())
    for names, why in (("ab", "list of strings"), (["a"], "1 entries"), ([1, 2], "list of str")):
        with pytest.raises(ValueError, match=why):
            tree_from_dict(data | {"output_names": names})
    with pytest.raises(ValueError, match="one for each linear model"):
        tree_from_dict(data | {"models": []})


def test_trees_of_one_output_are_written_as_before() -> None:
    one = two_outputs().of_output(0)
    assert tree_to_dict(one)["version"] == 1 and "output_names" not in tree_to_dict(one)


def test_model_files_are_for_one_output() -> None:
    columns = (NumericColumn("a", 0.0), NumericColumn("b", 0.0))
    with pytest.raises(ValueError, match="one value in a node"):
        Model("y", None, columns, two_outputs())


# ---- what is read --------------------------------------------------------------------------------


def test_texts_name_the_outputs() -> None:
    tree = two_outputs()
    assert "[1] predict height = 1.2, width = 3" in export_text(tree)
    assert "predict a = 1.2, b = 3" in export_text(tree, output_names=["a", "b"])
    assert "THEN [2] predict height = -1, width = 7.5" in export_rules(tree)
    assert "height = 1.2\\nwidth = 3" in export_graphviz(tree)
    assert "predict height = 1.2, width = 3" in export_html(tree)
    shown = [text.get_text() for text in plot_tree(tree).texts]
    assert "height = 1.2\nwidth = 3" in shown
    assert str(tree) == export_text(tree, max_terms=10).rstrip("\n")
    with pytest.raises(ValueError, match="output_names has 1 entries"):
        export_text(tree, output_names=["a"])
    with pytest.raises(ValueError, match="class_names: allowed is None"):
        export_text(tree, class_names=["a", "b"])


def test_texts_of_lines_hold_each_model(fitted: Any) -> None:
    model, _ = fitted
    text = " ".join(export_text(model).replace("|", "").split())
    for name in ("height", "width", "a;b"):
        assert f"{name} = " in text
    if model.tree_.models is None:
        with pytest.raises(ValueError, match="no linear models"):
            coefficient_table(model)
        return
    table = coefficient_table(model)
    leaves = np.flatnonzero(model.tree_.is_leaf)
    assert table["output"].tolist() == np.repeat(["height", "width", "a;b"], len(leaves)).tolist()
    for j, one in enumerate(model.tree_.models.each):
        rows = table[table["output"] == ["height", "width", "a;b"][j]]
        np.testing.assert_array_equal(rows["intercept"], one.intercepts[leaves])
    assert "; width = " in text
