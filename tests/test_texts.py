"""All views of one tree agree: one inequality, one numbering, the same rows, shares and models."""

import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from evotree import (
    Cost,
    EvoTreeRegressor,
    ObliqueTreeClassifier,
    ObliqueTreeRegressor,
)
from evotree.leaf_models import LeafModels, OutputModels
from evotree.model_file import Model, load_model, save_model
from evotree.schema import CategoricalColumn, NumericColumn
from evotree.texts import (
    coefficient_table,
    export_rules,
    export_text,
    splits_of_text,
)
from evotree.tree import ObliqueTree
from evotree.words import rows_text, share_text
from tests import made_up
from tests.exported import (
    chain,
    matching,
    modelled_trees,
    stump,
    tame,
    trees,
    with_models,
)
from tests.quick_models import brief

eighths = st.integers(-64, 64).map(lambda n: n / 8.0)


RNG = np.random.default_rng(0)


def stump_of_numbers():
    tree = stump([0.5, 0.0, -2.0])
    return tree.predicting(tree.values[:, :1])


# ---- what views say of each node, a split as ``x0 - 0.5 x1 <= 1`` --------------------------------


def from_text(tree, **options):
    text = re.sub(r"\n[| ]*\|    # .*", "", export_text(tree, **options))
    text = re.sub(r"\n(?:\|   )*\|    (?=\S)(?!\|)", " ", text)
    nodes = re.findall(r"--- \[(\d+)\] (.*)", text)
    return {int(k): said.replace(" * ", " ") for k, said in nodes}


def opposite(said):
    return said.replace("<=", ">") if "<=" in said else said.replace(">=", "<")


@given(trees(tame) | modelled_trees(tame))
def test_every_view_says_the_same_of_the_same_node(tree):
    said = from_text(tree)
    assert sorted(said) == list(range(tree.n_nodes))
    splits = {k: said[k] for k in np.flatnonzero(~tree.is_leaf)}
    # A rule has the inequalities above its leaf, but for those that a tighter one makes needless.
    blocks = re.sub(r"\n     ", " ", export_rules(tree)).rstrip("\n").split("\n\n")
    assert len(blocks) == tree.n_leaves
    for leaf, block in zip(np.flatnonzero(tree.is_leaf), blocks, strict=True):
        *conditions, last = block.replace(" * ", " ").split("\n")
        assert last == f"THEN [{leaf}] {said[leaf]}"
        above = [k for k in splits if k < leaf < k + tree.subtree_size[k]]
        held = {
            splits[k] if leaf < tree.right(k) else opposite(splits[k]) for k in above
        }
        assert {condition[5:] for condition in conditions} <= (held or {"anything"})
        assert bool(above) == (conditions != ["IF   anything"])


@given(trees(st.sampled_from([-2.0, -1.0, 0.0, 1.0, 2.0]), n_classes=3), st.data())
def test_rules_predict_as_the_tree_does_and_each_row_meets_one(tree, data):
    """Weights and rows of few digits, so that rows on hyperplanes are judged as well."""
    row = np.array(
        data.draw(st.lists(eighths, min_size=tree.n_features, max_size=tree.n_features))
    )
    leaf, label = (f(row[np.newaxis])[0] for f in (tree.apply, tree.predict_value))
    (found,) = matching(export_rules(tree, decimals=12), row)
    assert found.split()[1::2][:2] == [f"[{leaf}]", str(label.argmax())]


def with_gaps(X):
    """Return a table of some columns with cells that are missing, whose fills have all digits."""
    table = pd.DataFrame(X).add_prefix("column ")
    return table.mask(np.random.default_rng(1).random(X.shape) < 0.1)


def fitted_to_noise(kind):
    """Return a model, fitted to rows whose means and medians have all digits, and these rows."""
    rng = np.random.default_rng(0)
    X = rng.normal(50.0, 10.0, (300, 3))
    y = 100.0 + X[:, 0] + 5.0 * rng.normal(size=300)
    counts = rng.poisson(np.exp(0.03 * X[:, 0]))
    model, target = {
        "classes": (brief(), y > 150.0),
        "costs": (brief(objective=Cost([[0, 5], [1, 0]])), y > 150.0),
        "numbers": (brief(EvoTreeRegressor, leaves="constant"), y),
        "lines": (brief(EvoTreeRegressor), y),
        "outputs": (brief(EvoTreeRegressor), np.column_stack([y, y**2])),
        "counts": (brief(EvoTreeRegressor, objective="poisson"), counts),
        "rates": (
            brief(EvoTreeRegressor, objective="poisson", leaves="constant"),
            counts,
        ),
        "greedy": (ObliqueTreeRegressor("axis", max_depth=3), y),
    }[kind]
    table = with_gaps(X)
    return model.fit(table, target), table


KINDS_OF_NOISE = (
    *("classes", "costs", "numbers", "lines", "outputs", "counts", "rates"),
    "greedy",
)


def assert_few_digits(view):
    """Check that no number of a text has more digits than a reader takes in."""
    for found in re.findall(r"\d+\.\d+", view.replace("#", "")):
        assert len(found.replace(".", "").lstrip("0")) <= 6, (found, view)


def assert_printed_as_it_predicts(model, table):
    """Check that views have few digits, and that rows reach the leaves of rounded splits."""
    assert model.get_n_leaves() > 1
    views = [export(model) for export in (export_text, export_rules)]
    for view in views:
        assert_few_digits(view)
    assert re.search(r"missing: .* = \d\d\.\d+", views[0])
    splits = splits_of_text(views[0], model.feature_names_)
    again = ObliqueTree(*splits, np.ones((len(splits[2]), 1)))
    if getattr(model, "precision", None):
        np.testing.assert_array_equal(
            again.apply(model.encode(table)), model.apply(table)
        )


@pytest.mark.parametrize("kind", KINDS_OF_NOISE)
def test_no_number_of_a_text_has_more_digits_than_decide(kind):
    assert_printed_as_it_predicts(*fitted_to_noise(kind))


numbers_as_names = (
    st.integers().map(str)
    | st.floats().map(str)
    | st.from_regex(
        r"[+-]?[0-9]{1,3}(,[0-9]{3})*(\.[0-9]+)?([eE][+-]?[0-9]+)?", fullmatch=True
    )
    | st.sampled_from(["10-20", "3/4", "50%", "2020_01", ".5", "6.", "(6)", "½", "1 2"])
)


@given(st.lists(numbers_as_names, min_size=3, max_size=3, unique=True))
def test_columns_named_by_numbers_are_told_from_numbers(names):
    assume(not {f"({name})" for name in names} & {*names})
    tree = stump([1.0, 3600.0, -0.32], 0.3).predicting(np.ones((3, 1)))
    coefficients = np.zeros((3, 3))
    coefficients[1, 1] = 1.5
    models = LeafModels(np.full(3, 2.5), coefficients, np.zeros(3), np.full(3, 9.0))
    tree = tree.replaced(spread=np.array([9000.0, 2.0, 8.0])).with_models(models)
    first, second, third = (f"({name})" for name in names)
    split = f"{first} + 3600 {second} - 0.32 {third} <= 0.3"
    line = f"2.5 + 1.5 {second}"
    for export in (export_text, export_rules):
        view = re.sub(r"[\s|*]+", " ", export(tree, names))
        assert split in view and line in view
    text = export_text(tree, names)
    assert re.sub(r"[\s|#]+", " ", text).count(f"{first} 56 %, {second} 44 %,") == 1
    weights, thresholds, sizes = splits_of_text(text, names)
    np.testing.assert_array_equal(weights, tree.weights)
    np.testing.assert_array_equal(thresholds, tree.thresholds)


# ---- terms ---------------------------------------------------------------------------------------


def test_terms_are_ordered_by_influence_and_zeros_left_out():
    tree = stump([0.5, 0.0, -2.0])
    names, classes = ["a", "b", "c"], ["no", "yes"]
    assert export_text(tree, names, classes) == (
        "|--- [0] c - 0.25 * a >= -0.5\n"
        "|   |--- [1] class: no (no: 1.00)\n"
        "|--- else\n"
        "|   |--- [2] class: yes (yes: >0.99, no: <0.01)\n"
    )
    tree.weighted_n_node_samples = np.array([12.5, 1.0, 11.5])
    assert "yes (weight 11.5; yes: >0.99" in export_text(tree, names, classes)
    tree.spread = np.array([100.0, 9.0, 1.0])
    assert export_text(tree, names).startswith("|--- [0] a - 4 * c <= 2")
    assert export_text(tree, names, max_terms=1).startswith("|--- [0] a (+1 more) <= 2")
    assert export_text(stump([0.0, 0.0])).startswith("|--- [0] 0 <= 1\n")
    labelled = export_text(tree.labelled(np.array([0, 1, 1])))
    assert "[1] class: 1 (1 row; 1: 0.00, 0: 1.00)" in labelled


@given(trees(tame))
def test_terms_of_other_units_have_their_shares_beside_them(tree):
    weights = np.abs(tree.weights)
    text = re.sub(r",\n[| ]*\|    # (?=x)", ", ", export_text(tree))
    said = re.findall(
        r"\[(\d+)\] x[^\n]*(?:\n[| ]*\|    [^#|\n][^\n]*)*(?:\n[| ]*# (.*))?", text
    )
    for k, shares in said:
        own = weights[int(k)]
        if tree.spread is None or not tree.spread.any() or own.max() < 1000 * own.min():
            assert not shares
            continue
        influence = own * tree.spread
        wanted = {f"x{j}": one / influence.sum() for j, one in enumerate(influence)}
        small = [name for name, one in wanted.items() if one < 0.02]
        if len(small) > 1:  # they share one
            wanted["others"] = sum(map(wanted.pop, small))
            assert f", {len(small)} others " in shares
        read = dict(re.findall(r"(x\d|others) (<1|\d+) %", shares))
        assert read == {
            name: f"{percent}" if (percent := round(100 * one)) else "<1"
            for name, one in wanted.items()
        }
    assert len(said) == (~tree.is_leaf).sum()
    # The line is no part of the rule.
    names = [f"x{j}" for j in range(tree.n_features)]
    written, thresholds, sizes = splits_of_text(export_text(tree), names)
    assert (sizes == tree.subtree_size).all()


def test_terms_of_models_are_ordered_by_influence_and_bounded_in_number():
    tree = with_models(stump_of_numbers(), np.random.default_rng(0))
    models, names = tree.models, ["a", "b", "c"]
    models.coefficients[1], models.coefficients[2] = [0.5, 0.0, -2.0], 0.0
    models.intercepts[1:], models.lowest[1:], models.highest[1:] = (
        [3, 9],
        [1, 1],
        [5, 7],
    )
    assert "[1] predict 3 - 2 * c + 0.5 * a, within [1, 5]\n" in export_text(
        tree, names
    )
    assert "[2] value: 7\n" in export_text(tree, names)
    tree.spread = np.array([100.0, 1.0, 1.0])
    shown = "[1] predict 3 + 0.5 * a (+1 more), within [1, 5]\n"
    assert shown in export_text(tree, names, max_terms=1)


def test_rules_name_the_tightest_bounds():
    # A path that goes right at each test, with a leaf on the left.
    weights = np.array([[1.0, 0.5], [0.0, 0.0]] * 3 + [[0.0, 0.0]])
    thresholds = np.array([0.0, 0.0, 1.0, 0.0, 2.0, 0.0, 0.0])
    sizes = np.array([7, 1, 5, 1, 3, 1, 1], dtype=np.int32)
    tree = ObliqueTree(weights, thresholds, sizes, np.arange(7.0)[:, np.newaxis] + 0.25)
    rules = export_rules(tree, ["a", "b"]).split("\n\n")
    assert rules[0] == "IF   a + 0.5 * b <= 0\nTHEN [1] value: 1.25"
    assert (
        rules[1] == "IF   a + 0.5 * b > 0\nAND  a + 0.5 * b <= 1\nTHEN [3] value: 3.25"
    )
    assert rules[3] == "IF   a + 0.5 * b > 2\nTHEN [6] value: 6.25\n"


# ---- names and arguments -------------------------------------------------------------------------


@pytest.mark.parametrize("export", [export_text, export_rules])
@pytest.mark.parametrize("tree", [stump([1.0, 2.0, 3.0]), stump_of_numbers()])
def test_names_cannot_move_the_cursor(tree, export):
    features = ["size\x1b[2J\nmore\u202e", "<b>it's", 'a "b"\n']
    classes = ["a\r<b>é", "z"] if tree.values.shape[1] > 1 else None
    text = export(tree, features, classes)
    assert text.replace("\n", "").isprintable()
    assert r"size\x1b[2J\nmore\u202e" in text


@pytest.mark.parametrize("export", [export_text, export_rules])
@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"feature_names": ["a"]}, "feature_names"),
        ({"class_names": ["a"]}, "class_names"),
        ({"decimals": -1}, "decimals=-1"),
        ({"decimals": 1.5}, "decimals=1.5"),
        ({"max_terms": 0}, "max_terms=0"),
        ({"max_terms": True}, "max_terms=True"),
        ({"tree": "oak"}, "tree is of the type str"),
        (
            {"tree": with_models(stump_of_numbers(), RNG), "class_names": "a"},
            "class_names",
        ),
    ],
)
def test_bad_arguments_are_named(export, arguments, named):
    with pytest.raises(ValueError, match=named):
        export(**{"tree": stump([1.0, 2.0]), **arguments})


def test_views_say_what_is_wrong_with_an_estimator():
    X, y = load_iris(return_X_y=True)
    model = ObliqueTreeClassifier("axis", max_depth=1)
    with pytest.raises(
        NotFittedError, match="this ObliqueTreeClassifier is not fitted"
    ):
        export_text(model)
    with pytest.raises(ValueError, match=r"pass its last step, such as pipeline\[-1\]"):
        export_text(make_pipeline(StandardScaler(), model).fit(X, y))


@pytest.mark.parametrize("export", [export_text, export_rules])
def test_texts_that_grow_with_the_square_of_the_tree_are_refused(export):
    tree = chain(49_999)
    with pytest.raises(ValueError, match="the exports to code write any tree"):
        export(tree)
    assert f"[{998}] class: " in export(chain(999))


# ---- rows, shares and cells ----------------------------------------------------------------------


def clinic():
    """Return rows of a rare class, with categories and missing cells."""
    rng = np.random.default_rng(0)
    n = 400
    X = pd.DataFrame(
        {"T3": rng.normal(2.0, 1.0, n).round(1), "age": rng.integers(9, 90, n)}
    )
    X["colour"] = pd.Categorical(rng.choice(["red", "green", "blue"], n))
    sick = (X.T3 < 2.0) & (X.colour == "red") & (rng.random(n) < 0.6)
    X.loc[rng.random(n) < 0.2, "T3"] = np.nan
    X.loc[rng.random(n) < 0.1, "colour"] = np.nan
    return X, np.where(sick, "sick", "negative")


@pytest.mark.parametrize("weighted", ["none", "class_weight", "sample_weight"])
def test_every_view_counts_rows_once_and_names_weighted_shares(weighted):
    X, y = clinic()
    weight = np.where((y == "sick") & (weighted != "none"), 9.0, 1.0)
    given_weights = {"sick": 9.0} if weighted == "class_weight" else None
    model = ObliqueTreeClassifier("axis", max_depth=3, class_weight=given_weights)
    if weighted == "sample_weight":
        weight[::7] = 0.0  # which are no training rows
    model.fit(X, y, weight if weighted == "sample_weight" else None)
    views = export_text(model), export_rules(model), Model.of(model, "state").rules()
    leaves, n_weighted = model.apply(X), 0
    for leaf in np.unique(leaves[weight > 0.0]):
        there = (leaves == leaf) & (weight > 0.0)
        label = model.classes_[model.tree_.labels[leaf]]
        rows = rows_text(float(there.sum()))
        share = (y[there] == label).mean()
        heavy = np.average(y[there] == label, weights=weight[there])
        said = [f"{label}: {share_text(share)}"]
        others = [c for c in model.classes_ if c != label and share < 1]
        said += [f"{c}: {share_text(1.0 - share)}" for c in others]
        also = [f"by weight {label}: {share_text(heavy)}"]
        also = also if share_text(heavy) != share_text(share) else []
        n_weighted += len(also)
        line = "; ".join([rows, ", ".join(said), *also])
        assert all(f"[{leaf}] class: {label} ({line})\n" in view for view in views)
    assert (n_weighted > 0) == (weighted != "none")


@pytest.mark.parametrize("leaves", ["constant", "linear"])
@pytest.mark.parametrize("unit", ["weighted", "by exposure"])
def test_views_of_numbers_say_by_what_rows_count(unit, leaves, tmp_path):
    rng = np.random.default_rng(0)
    X, weight = rng.normal(size=(100, 2)), rng.choice([0.5, 1.0, 2.0], 100)
    y = rng.poisson(np.where(X[:, 0] > 0.0, 2.0, 0.5) * weight)
    if unit == "weighted":
        model = ObliqueTreeRegressor("axis", max_depth=2, leaves=leaves)
        model = model.fit(X, y, weight)
    else:
        model = brief(EvoTreeRegressor, objective="poisson", leaves=leaves)
        model = model.fit(X, y, exposure=weight)
    save_model(tmp_path / "m.json", model)
    text, loaded = export_text(model), load_model(tmp_path / "m.json").rules()
    for n_rows in np.unique(model.apply(X), return_counts=True)[1]:
        rows = f"{rows_text(float(n_rows))}, {unit}"
        assert f"({rows})\n" in text and f"({rows})\n" in loaded


def test_views_say_what_stands_for_missing_cells_of_the_columns_used():
    X, y = clinic()
    model = ObliqueTreeClassifier("axis", max_depth=4).fit(X, y)
    line = f"missing: T3 = {model.columns_[0].fill}, colour = missing"
    for view in (export_text(model), Model.of(model, "state").rules()):
        assert f"\n{line}\n" in view
    assert export_rules(model).endswith(f"\n\n{line}\n")
    others = model.fit(X[["age", "T3"]].fillna({"T3": 1.0}), y)
    assert "missing" not in export_text(others)


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize(
    ("j", "yes", "no"),
    [
        (1, "size is missing", "size is not missing"),
        (3, "colour is is", "colour is not is"),
    ],
)
def test_a_split_of_one_category_is_written_in_words(j, yes, no, sign):
    columns = (
        NumericColumn("size", 1.0, indicator=True),
        CategoricalColumn("colour", ("red", "is")),
    )
    tree = stump(np.where(np.arange(4) == j, sign, 0.0).tolist(), sign / 2)
    model = made_up.fitted(tree, columns, ["a", "b"])
    left, right = (no, yes) if sign > 0.0 else (yes, no)
    assert f"--- [0] {left}\n" in export_text(model)
    for k, side in ((1, left), (2, right)):
        assert f"IF   {side}\nTHEN [{k}] " in export_rules(model)
    # A bound that all rows meet is no answer, nor is a sum with another feature.
    far = replace(model, tree=tree.replaced(thresholds=np.array([2.0, 0.0, 0.0])))
    assert re.search(rf"\[0\] \({yes}\) [<>]= [-2]+\n", export_text(far))
    tree.weights[0, 0] = 0.25
    assert re.search(rf"\[0\] \({yes}\) [-+] 0.25 \* size ", export_text(model))
    # Brackets say that the whole name is a term, in every view.
    assert f"({yes})" in export_rules(model)


# ---- numbers and several outputs -----------------------------------------------------------------


def test_views_name_the_outputs():
    values = np.array([[0.0, 0.0], [1.2, 3.0], [-1.0, 7.5]])
    tree = (
        stump([1.0, 0.0]).predicting(values).replaced(output_names=("height", "width"))
    )
    for export, said in (
        (export_text, "[1] predict height = 1.2, width = 3"),
        (export_rules, "THEN [2] predict height = -1, width = 7.5"),
    ):
        assert said in export(tree)
    assert "predict a = 1.2, b = 3" in export_text(tree, output_names=["a", "b"])
    for arguments in ({"output_names": ["a"]}, {"class_names": ["a", "b"]}):
        with pytest.raises(ValueError, match=next(iter(arguments))):
            export_text(tree, **arguments)
    each = tuple(with_models(tree.of_output(j), RNG).models for j in range(2))
    lines = tree.with_models(OutputModels(each))
    said = from_text(lines)[1]
    one, other = (
        from_text(lines.of_output(j))[1].removeprefix("predict ") for j in range(2)
    )
    assert said == f"predict height = {one}; width = {other}"


def test_columns_of_tables_are_told_from_features():
    lines = with_models(stump_of_numbers(), RNG)
    table = coefficient_table(lines, ["leaf", "leaf", "b"])
    used = np.flatnonzero(lines.models.coefficients.any(axis=0))
    assert table.columns[4:].tolist() == [("'leaf'", "'leaf'", "b")[j] for j in used]
    with pytest.raises(ValueError, match="no linear models"):
        coefficient_table(stump_of_numbers())
