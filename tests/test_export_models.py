"""Trees with linear models in their leaves: every form of them predicts, or says, the same."""

import json
import pickle
import re
from collections.abc import Callable
from copy import deepcopy
from html import unescape
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.patches import Rectangle
from sklearn.datasets import load_diabetes

from evotree import EvoTreeRegressor, ObliqueTreeRegressor
from evotree.dataset import Dataset
from evotree.export import (
    coefficient_table,
    export_c,
    export_graphviz,
    export_html,
    export_python,
    export_rules,
    export_sql,
    export_text,
    to_onnx,
    tree_from_dict,
    tree_to_dict,
)
from evotree.model_file import Model
from evotree.operators.initialization.seeding import init_from_tree
from evotree.operators.pruning.penalized import prune_tree
from evotree.plotting import plot_tree
from evotree.tables.columns import NumericColumn
from evotree.tree import ObliqueTree
from tests.exported import assert_same, modelled_trees, mutate, stump, tame, trees, with_models
from tests.quick_models import evolved
from tests.test_export_code import (
    compile_c,
    eighths,
    expected,
    needs_gcc,
    run_c,
    run_python,
    run_sql,
)
from tests.test_export_onnx import fitted, run

seeds = st.integers(0, 2**32)


@st.composite
def cases(draw: st.DrawFn) -> tuple[ObliqueTree, np.ndarray]:
    """Draw a tree and rows, many of which lie on its hyperplanes."""
    tree = draw(modelled_trees(eighths))
    d = tree.n_features
    rows = draw(st.lists(st.lists(eighths, min_size=d, max_size=d), min_size=1, max_size=12))
    return tree, np.array(rows)


@pytest.fixture(scope="module")
def diabetes() -> tuple[EvoTreeRegressor, Any, np.ndarray]:
    """Return a fitted regressor with linear leaves, and its rows, some of them far away."""
    X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
    model = evolved(
        EvoTreeRegressor,  # of all digits: the order of sums shows
        precision=None,
        leaves="linear",
        size_penalty=0.001,
        population_size=10,
        max_generations=3,
        random_state=0,
    ).fit(X, y)
    tree = model.tree_
    assert tree.n_leaves > 1 and tree.models.n_terms > 2
    np.testing.assert_allclose(tree.values[0, 0], y.mean())
    far = X + 5.0 * (X - X.mean())
    predicted = tree.predict_value(far.to_numpy())[:, 0]
    leaves = tree.apply(far.to_numpy())
    assert np.isin(predicted, [*tree.models.lowest[leaves], *tree.models.highest[leaves]]).any()
    return model, X, np.concatenate([X.to_numpy(), far.to_numpy()])


# ---- code ----------------------------------------------------------------------------------------


@given(cases())
def test_python_and_sql_predict_as_the_tree_does(case: tuple[ObliqueTree, np.ndarray]) -> None:
    tree, rows = case
    wanted = expected(tree, rows)
    assert run_python(tree, rows) == wanted
    assert run_sql(tree, rows, [f"x{j}" for j in range(tree.n_features)]) == wanted


@needs_gcc
def test_c_predicts_as_the_tree_does(tmp_path: Path) -> None:
    drawn: list[tuple[ObliqueTree, np.ndarray]] = []

    @settings(max_examples=60, database=None)
    @given(cases())
    def collect(case: tuple[ObliqueTree, np.ndarray]) -> None:
        drawn.append(case)

    collect()
    sources = [export_c(tree, name=f"tree{at}") for at, (tree, _) in enumerate(drawn)]
    library = compile_c(sources, tmp_path)
    for at, (tree, rows) in enumerate(drawn):
        assert run_c(library, f"tree{at}", rows, False) == expected(tree, rows), sources[at]


@settings(max_examples=30)
@given(cases())
def test_onnx_predicts_as_the_tree_does(case: tuple[ObliqueTree, np.ndarray]) -> None:
    tree, rows = case
    (found,) = run(to_onnx(fitted(tree, ObliqueTreeRegressor()), target_opset=13), rows)
    np.testing.assert_array_equal(found, tree.predict_value(rows))


def test_long_sums_add_in_the_order_of_the_features(tmp_path: Path) -> None:
    """Terms of many magnitudes, whose sum depends on their order."""
    rng = np.random.default_rng(0)
    n = 60
    tree = ObliqueTree(
        np.array([rng.normal(size=n), np.zeros(n), np.zeros(n)]),
        np.zeros(3),
        np.array([3, 1, 1], dtype=np.int32),
        np.zeros((3, 1)),
    )
    tree = with_models(tree, rng)
    rows = rng.normal(size=(200, n)) * 10.0 ** rng.integers(-3, 3, n)
    wanted = expected(tree, rows)
    names = [f"a rather long name of a feature {j}" for j in range(n)]
    source = export_python(tree, feature_names=names)
    assert max(len(line) for line in source.splitlines() if "s = " in line) <= 100
    assert run_python(tree, rows) == wanted
    assert run_sql(tree, rows, names) == wanted
    (found,) = run(to_onnx(fitted(tree, ObliqueTreeRegressor())), rows)
    assert found[:, 0].tolist() == wanted


def test_an_estimator_predicts_the_same_in_every_language(diabetes: Any, tmp_path: Path) -> None:
    model, X, rows = diabetes
    wanted = model.tree_.predict_value(rows)[:, 0].tolist()
    assert run_python(model, rows) == wanted
    assert run_sql(model, rows, list(X.columns)) == wanted
    np.testing.assert_array_equal(run(to_onnx(model), rows)[0][:, 0], wanted)
    single = rows.astype(np.float32)
    assert run_python(model, single) == model.tree_.predict_value(single)[:, 0].tolist()


@needs_gcc
def test_an_estimator_predicts_the_same_in_c(diabetes: Any, tmp_path: Path) -> None:
    model, _, rows = diabetes
    library = compile_c([export_c(model)], tmp_path)
    assert run_c(library, "predict", rows, False) == model.tree_.predict_value(rows)[:, 0].tolist()


def test_sql_encodes_the_columns_that_only_a_model_reads(diabetes: Any) -> None:
    model, _, _ = diabetes
    tree = model.tree_
    for j in np.flatnonzero(tree.models.coefficients.any(axis=0)):
        assert f'"{model.feature_names_[j]}"' in export_sql(model)
        assert f"x[{j}] is '{model.feature_names_[j]}'" in export_python(model)


def test_rows_with_null_in_a_model_have_no_prediction() -> None:
    tree = with_models(stump_of_one_output(), np.random.default_rng(1))
    used = (tree.weights != 0.0).any(axis=0) | tree.models.coefficients.any(axis=0)
    assert used.any()
    for j, is_used in enumerate(used):
        row = np.array([[1.0, 1.0, 1.0]], dtype=object)
        row[0, j] = None
        assert (run_sql(tree, row, ["a", "b", "c"]) == [None]) == is_used


def stump_of_one_output() -> ObliqueTree:
    tree = stump([0.5, 0.0, -2.0])
    return tree.predicting(tree.values[:, :1])


# ---- what readers see ----------------------------------------------------------------------------


def prediction_of(said: str, row: np.ndarray) -> float:
    """Read what a leaf says, and reckon what it predicts."""
    constant = re.match(r"value: (\S+)", said)
    if constant:
        return float(constant[1])
    total, terms, low, high = re.match(
        r"predict (\S+)((?: [+-] .*?)*), within \[(\S+), (\S+)\]", said
    ).groups()
    predicted = float(total)
    found = re.findall(r"([+-]) (?:(\S+) \* )?x(\d+)", terms)
    for sign, factor, j in found:
        predicted += float(f"{sign}1") * float(factor or 1.0) * row[int(j)]
    return min(max(predicted, float(low)), float(high))


def leaves_of(text: str) -> dict[int, str]:
    joined = re.sub(r"\n(?:\|   )*\|    (?=\S)(?!\|)", " ", text)
    return {int(k): said for k, said in re.findall(r"--- \[(\d+)\] (.*)", joined)}


@given(modelled_trees(tame), st.data())
def test_printed_models_predict_as_the_tree_does(tree: ObliqueTree, data: st.DataObject) -> None:
    row = np.array(data.draw(st.lists(tame, min_size=tree.n_features, max_size=tree.n_features)))
    leaf, wanted = tree.apply(row[np.newaxis])[0], tree.predict_value(row[np.newaxis])[0, 0]
    text, rules = export_text(tree, decimals=12), export_rules(tree, decimals=12)
    assert max(map(len, text.splitlines())) <= 120
    said = leaves_of(text)[leaf]
    np.testing.assert_allclose(prediction_of(said, row), wanted, rtol=1e-8, atol=1e-8)
    found = dict(re.findall(r"THEN \[(\d+)\] (.*)", re.sub(r"\n     ", " ", rules)))
    assert found[str(leaf)] == said


def from_graphviz(tree: ObliqueTree) -> dict[int, str]:
    labels = re.findall(r'    (\d+) \[label="(.*?)", fill', export_graphviz(tree))
    return {int(k): " ".join(label.split("\\n")[1:]) for k, label in labels}


def from_html(tree: ObliqueTree) -> dict[int, str]:
    found = re.findall(r"\[(\d+)\][^<]*</span> (.*?)</(?:summary|div)>", export_html(tree))
    return {int(k): unescape(re.sub("<.*?>", "", said)) for k, said in found}


def from_picture(tree: ObliqueTree) -> dict[int, str]:
    texts = [text.get_text() for text in plot_tree(tree).texts]
    texts = [text for text in texts if text not in ("yes", "no")]
    said = [text.replace("−", "-").replace("\n", " ") for text in texts[1::2]]
    return {int(re.findall(r"\d+", k)[0]): one for k, one in zip(texts[::2], said, strict=True)}


def bare(said: str) -> str:
    """Return what all views say of a leaf, without the words and signs of some."""
    for word in ("predict ", "value: ", " *", ","):
        said = said.replace(word, "")
    return re.sub(r" \([\d.]+ rows?\)$", "", said)


@settings(max_examples=30)
@given(modelled_trees(tame))
def test_every_view_says_the_same_of_leaves(tree: ObliqueTree) -> None:
    said = leaves_of(export_text(tree))
    views: list[Callable[[ObliqueTree], dict[int, str]]] = [from_graphviz, from_html]
    for read in views:
        nodes = read(tree)
        for k in np.flatnonzero(tree.is_leaf):
            assert bare(nodes[k]) == bare(said[k])


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_picture_has_a_bar_for_each_term(seed: int) -> None:
    rng = np.random.default_rng(seed)
    tree = with_models(stump_of_one_output(), rng)
    tree.spread = rng.random(3) + 0.5
    said, drawn = leaves_of(export_text(tree)), from_picture(tree)
    bars = [one.get_width() for one in plot_tree(tree).patches if isinstance(one, Rectangle)]
    influence = tree.models.coefficients * tree.spread
    wanted: list[float] = []
    for k in (1, 2):
        assert bare(drawn[k]) == bare(said[k])
        from_bottom = np.argsort(np.abs(influence[k]))
        wanted += [influence[k, j] for j in from_bottom if influence[k, j] != 0.0]
    assert len(wanted) > 1
    widest = np.abs(wanted).argmax()
    np.testing.assert_allclose(bars, np.array(wanted) / wanted[widest] * bars[widest])
    assert np.sign(bars[widest]) == np.sign(wanted[widest])


def test_terms_are_ordered_by_influence_and_bounded_in_number() -> None:
    tree = stump_of_one_output()
    models = with_models(tree, np.random.default_rng(0)).models
    models.coefficients[1], models.coefficients[2] = [0.5, 0.0, -2.0], 0.0
    models.intercepts[1:], models.lowest[1:], models.highest[1:] = (
        [3.0, 9.0],
        [1.0, 1.0],
        [5.0, 7.0],
    )
    tree = tree.with_models(models)
    names = ["a", "b", "c"]
    assert "[1] predict 3 - 2 * c + 0.5 * a, within [1, 5]\n" in export_text(tree, names)
    assert "[2] value: 7\n" in export_text(tree, names)
    tree.spread = np.array([100.0, 1.0, 1.0])
    assert "[1] predict 3 + 0.5 * a - 2 * c, within [1, 5]\n" in export_text(tree, names)
    shown = "predict 3 + 0.5 * a (+1 more), within [1, 5]"
    assert f"[1] {shown}\n" in export_text(tree, names, max_terms=1)
    assert f"THEN [1] {shown}\n" in export_rules(tree, names, max_terms=1)
    assert f"</span> {shown}</div>" in export_html(tree, names, max_terms=1)
    lines = "[1]\\n3\\n+ 0.5 a\\n(+1 more)\\nwithin [1, 5]"
    assert f'label="{lines}"' in export_graphviz(tree, names, max_terms=1)
    assert str(tree).count("predict") == 1 and tree._repr_html_().count("predict") == 1


def test_names_of_features_are_escaped() -> None:
    tree = with_models(stump_of_one_output(), np.random.default_rng(1))
    names = ["<b>\x1b[2J", "it's", 'a "b"\n']
    text = export_text(tree, names)
    assert all(sign.isprintable() for line in text.split("\n") for sign in line)
    assert "<b>" not in export_html(tree, names)


def test_the_table_of_coefficients() -> None:
    tree = with_models(stump_of_one_output(), np.random.default_rng(1))
    tree.weighted_n_node_samples = np.array([9.0, 4.0, 5.0])
    table, models = tree.coefficients_, tree.models
    used = np.flatnonzero(models.coefficients.any(axis=0))
    fixed = ["leaf", "n_node_samples", "intercept", "lowest", "highest"]
    assert table.columns.tolist() == [*fixed, *(f"x{j}" for j in used)]
    assert table["leaf"].tolist() == [1, 2] and table["n_node_samples"].tolist() == [4.0, 5.0]
    for name in ("intercept", "lowest", "highest"):
        values = models.intercepts if name == "intercept" else getattr(models, name)
        np.testing.assert_array_equal(table[name], values[1:])
    np.testing.assert_array_equal(table[[f"x{j}" for j in used]], models.coefficients[1:, used])
    named = coefficient_table(tree, ["leaf", "b", "c"])  # a feature may have any name
    assert named.columns.tolist() == [*fixed, *(["leaf", "b", "c"][j] for j in used)]


def test_constant_leaves_have_no_table() -> None:
    tree = stump_of_one_output()
    assert not hasattr(tree, "coefficients_")
    with pytest.raises(ValueError, match="no linear models"):
        coefficient_table(tree)


def test_the_table_of_an_estimator_has_its_names(diabetes: Any) -> None:
    model, X, _ = diabetes
    table = coefficient_table(model)
    assert set(table.columns[5:]) <= set(X.columns)
    rows = X.to_numpy()
    leaves = model.apply(X)
    of_row = table.set_index("leaf").loc[leaves]
    predicted = of_row["intercept"].to_numpy().copy()
    for name in table.columns[5:]:
        predicted += of_row[name].to_numpy() * rows[:, list(X.columns).index(name)]
    predicted = np.clip(predicted, of_row["lowest"], of_row["highest"])
    np.testing.assert_array_equal(predicted, model.predict(X))


# ---- plain data ----------------------------------------------------------------------------------


@given(modelled_trees())
def test_plain_data_gives_back_the_same_tree(tree: ObliqueTree) -> None:
    plain = json.loads(json.dumps(tree_to_dict(tree)))
    assert plain["version"] == 2  # which older readers refuse
    assert_same(tree_from_dict(plain), tree)
    del plain["models"]
    assert_same(tree_from_dict(plain), tree.with_models(None))


@given(trees())
def test_plain_data_of_constant_leaves_are_as_ever(tree: ObliqueTree) -> None:
    plain = tree_to_dict(tree)
    assert plain["version"] == 1 and "models" not in plain


@given(modelled_trees(), st.data())
def test_changed_plain_data_are_refused_or_sound(tree: ObliqueTree, data: st.DataObject) -> None:
    plain = tree_to_dict(tree)
    mutate(data.draw, plain["models"] if data.draw(st.booleans()) else plain)
    try:
        changed = tree_from_dict(plain)
    except ValueError:
        return
    changed.validate()
    changed.predict_value(np.zeros((2, changed.n_features)))


@pytest.mark.parametrize(
    ("entry", "value", "named"),
    [
        ("models", [1.0], "models is a list"),
        ("models", {}, "models has no intercepts, coefficients, lowest, highest"),
        ("intercepts", [1.0, 2.0], "intercepts has shape"),
        ("intercepts", [1.0, 2.0, "3"], "intercepts has an entry that is a string"),
        ("coefficients", [[1.0, 0.0, 0.0]] * 3, "internal nodes"),
        ("coefficients", [[0.0]] * 3, "coefficients has shape"),
        ("coefficients", [[0.0] * 3, [0.0] * 2, [0.0] * 3], "coefficients has rows of lengths"),
        ("lowest", [1e9, 1e9, 1e9], "lowest has values above"),
        ("highest", [0.0, float("nan"), 0.0], "highest has values that are not finite"),
        ("values", [[0.5, 0.5]] * 3, "values has 2 columns"),
    ],
)
def test_bad_plain_data_are_named(entry: str, value: Any, named: str) -> None:
    plain = tree_to_dict(with_models(stump_of_one_output(), np.random.default_rng(0)))
    (plain if entry in plain else plain["models"])[entry] = value
    with pytest.raises(ValueError, match=named):
        tree_from_dict(plain)


def test_classes_are_not_for_linear_models() -> None:
    tree = with_models(stump_of_one_output(), np.random.default_rng(0))
    with pytest.raises(ValueError, match="class_names"):
        export_text(tree, class_names=["a"])
    columns = tuple(NumericColumn(name, 0.0) for name in "abc")
    with pytest.raises(ValueError, match="linear models"):
        Model("kind", np.array(["a"]), columns, tree)


# ---- copies and changes --------------------------------------------------------------------------


@given(modelled_trees(tame))
def test_copies_have_the_models(tree: ObliqueTree) -> None:
    for copy in (pickle.loads(pickle.dumps(tree)), deepcopy(tree)):
        assert_same(copy, tree)
    assert tree.predict_value(np.empty((0, tree.n_features))).shape == (0, 1)
    assert tree == tree.with_models(None)  # what leaves predict is not compared
    assert tree.predicting(tree.values).models is None


@given(modelled_trees(tame), seeds)
def test_pruned_trees_predict_the_means_of_collapsed_nodes(tree: ObliqueTree, seed: int) -> None:
    rng = np.random.default_rng(seed)
    marks = (rng.random(len(tree)) < 0.3) & ~tree.is_leaf
    pruned = prune_tree(tree, marks).validate()
    rows = rng.normal(size=(20, tree.n_features))
    way = np.asarray(tree.decision_path(rows).todense()).astype(bool)
    for row, passed, found in zip(rows, way, pruned.predict_value(rows)[:, 0], strict=True):
        collapsed = np.flatnonzero(passed & marks)
        wanted = tree.predict_value(row[np.newaxis])[0, 0]
        assert found == (tree.values[collapsed[0], 0] if collapsed.size else wanted)


def test_fitted_trees_keep_their_models(diabetes: Any) -> None:
    model, X, rows = diabetes
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.tree_.predict_value(rows), model.tree_.predict_value(rows))
    for member in model.pareto_front_:
        assert_same(pickle.loads(pickle.dumps(member)), member)
        assert_same(deepcopy(member), member)
        assert member.validate().models is not None
        inner = ~member.is_leaf
        for constants in member.models[:1] + member.models[2:]:
            np.testing.assert_array_equal(constants[inner], member.values[inner, 0])
    assert_same(tree_from_dict(tree_to_dict(model.tree_)), again.tree_)


def test_held_out_rows_judge_the_models(diabetes: Any) -> None:
    model, X, _ = diabetes
    y = load_diabetes().target
    table = model.pareto_front_.to_frame(model._held_out(X[::2], y[::2]))
    for at, found in enumerate(table["held_out_quality"]):
        left = y[::2] - model.predict(X[::2], tree=at)
        wanted = 1.0 - (left**2).sum() / ((y[::2] - y[::2].mean()) ** 2).sum()
        assert found == pytest.approx(wanted)


def test_trees_of_init_lose_their_models(diabetes: Any) -> None:
    model, X, _ = diabetes
    dataset = Dataset.from_arrays(X, load_diabetes().target, task="regression")
    individual = init_from_tree(dataset, 0.0, model)
    plain = init_from_tree(dataset, 0.0, model.tree_.with_models(None))
    assert individual == plain and individual.models is None
    assert dataset.refill(model.tree_).models is None
    assert dataset.from_raw(model.tree_).models is None
    assert dataset.to_raw(individual.to_tree()).models is None
