"""What the page of a report holds: the model's own numbers, figures that are right, little room."""

import json
import re
from copy import copy
from dataclasses import replace
from html import unescape
from itertools import product

import numpy as np
import pandas as pd
import pytest
from sklearn import metrics
from sklearn.calibration import calibration_curve
from sklearn.datasets import load_breast_cancer, load_iris

from evotree import (
    EvoTreeClassifier,
    EvoTreeRegressor,
    ObliqueForestClassifier,
    ObliqueTreeClassifier,
)
from evotree.cli.commands import report_of_model
from evotree.fitted import summarize
from evotree.paths import explain
from evotree.report import Subject, report
from evotree.report.page import MAX_FRONT_NODES
from evotree.schema import MISSING
from evotree.tables.columns import encode
from tests.kinds import kind_of
from tests.quick_models import brief
from tests.report import models
from tests.report.models import (
    HOSTILE,
    make_forest,
    make_model,
    make_subject,
    table,
    truth_of,
)
from tests.report.page import run_page
from tests.test_bends import fit_bent

KINDS = ("classes", "soft", "numbers", "lines")
every_kind = pytest.mark.parametrize("kind", KINDS)


def embedded(html):
    """Read the data of a page as a browser does: up to the first end of their element."""
    begin = '<script id="data" type="application/json">'
    return json.loads(html.split(begin)[1].split("</script>")[0])


@every_kind
def test_the_page_holds_the_tree(kind):
    model, frame = make_model(kind), table()
    page = report(make_subject(model), frame, truth_of(model, frame))
    data = embedded(page.html)
    assert data == json.loads(json.dumps(page.data))
    own, tree = data["trees"][data["own"]], model.tree
    assert own["size"] == tree.subtree_size.tolist() and own["quality"] == 0.85
    complexities = [shown["complexity"] for shown in data["trees"]]
    assert complexities == sorted(complexities)
    assert [node["n"] for node in own["nodes"]] == tree.n_node_samples.tolist()
    thresholds = [node.get("t", 0.0) for node in own["nodes"]]
    assert thresholds == tree.thresholds.tolist()


def test_rows_go_where_the_model_sends_them():
    """The cells of the page, its encoder, router, predictions and contributions are evotree's."""
    frame, models = table(), [make_model(kind) for kind in KINDS]
    subjects = [make_subject(model) for model in models]
    pages = [report(subject, frame).data for subject in subjects]
    leaves = "data.trees.map((tree) => model.apply(tree, x))"
    steps = "model.explain(model.own, x)"
    answers = run_page(pages, f"({{ x, leaves: {leaves}, steps: {steps} }})")
    for model, subject, page, found in zip(
        models, subjects, pages, answers, strict=True
    ):
        rows = encode(model.schema, frame)
        place = [model.feature_names.index(name) for name in page["features"]]
        assert [one["x"] for one in found] == rows[:, place].tolist()
        for at, one in enumerate(subject.trees[0]):
            leaves = one.tree.apply(rows).tolist()
            assert [row["leaves"][at] for row in found] == leaves
        training = summarize(model.tree, rows, np.ones(len(rows)))
        terms = explain(replace(subject.fitted, training=training), rows).terms
        told = {
            (i, step["node"], page["features"][term["feature"]]): term["contribution"]
            for i, one in enumerate(found)
            for step in one["steps"]
            for term in step["terms"]
        }
        for i, step in terms[terms.side == "leaf"].groupby("row"):
            told_of_leaf = found[i]["steps"][-1]["total"]
            assert told_of_leaf == pytest.approx(step.total.iloc[0], rel=1e-3, abs=1e-4)
        keys = zip(terms["row"], terms["node"], terms["feature"], strict=True)
        expected = dict(zip(keys, terms["contribution"], strict=True))
        assert len(expected) > 300 and told == pytest.approx(
            expected, rel=1e-4, abs=1e-4
        )


def figures_of(y, predicted, shares=None, labels=None):
    """Return figures of numbers, or of the probabilities of classes, as scikit-learn has them."""
    if shares is None:
        return {
            "R²": metrics.r2_score(y, predicted),
            "RMSE": metrics.root_mean_squared_error(y, predicted),
            "mean absolute error": metrics.mean_absolute_error(y, predicted),
        }
    codes = np.array([labels.index(label) for label in y])
    brier = ((shares - np.eye(len(labels))[codes]) ** 2).sum(axis=1).mean()
    two = len(labels) == 2
    ranked = shares.round(9)[:, 1] if two else shares.round(9)
    each = {"multi_class": "ovr", "average": "weighted"}
    return {
        "accuracy": metrics.accuracy_score(y, predicted),
        "balanced accuracy": metrics.balanced_accuracy_score(y, predicted),
        "log loss": metrics.log_loss(codes, shares, labels=range(len(labels))),
        "Brier score": brier / 2.0 if two else brier,
        "AUC": metrics.roc_auc_score(codes, ranked, **each),
    }


def test_each_tree_of_the_slider_is_that_of_select_tree():
    """Its probabilities are those of the model with this tree, on new rows."""
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    X, free = X.iloc[:, :6], {"size_penalty": 0.001, "term_penalty": 0.0005}
    model = brief(max_generations=10, **free).fit(X[::2], y[::2])
    X = X[1::2]
    page = report(model, X).data
    assert len(page["trees"]) > 3
    each = "data.trees.map((tree) => model.probabilities(tree, x))"
    (found,) = run_page([page], each)
    for at, shown in enumerate(page["trees"]):
        one = copy(model).select_tree(f"complexity<={shown['complexity']}")
        shares = one.predict_proba(X)
        np.testing.assert_allclose([row[at] for row in found], shares, atol=1e-5)


@pytest.mark.parametrize("kind", [EvoTreeRegressor, EvoTreeClassifier])
def test_columns_of_nodes_that_bend_have_lines_of_what_they_add(kind):
    model, X, _ = fit_bent(kind)
    page, named = report(model, X).data, model.fitted_.scores or model.fitted_
    features, column_of = model.encode(X, bends=True), named.schema.column_of
    found = 0
    for k, node in enumerate(page["trees"][page["own"]]["nodes"]):
        for shape in node.get("shapes", ()):
            name = page["columns"][shape["column"]]["name"]
            of = column_of == list(X).index(name)
            away = features[:, of] - model.training_rows_.means[k, of]
            added = away @ named.each[0].factors[k, of]
            drawn = np.interp(X[name], shape["cells"], shape["adds"][0])
            np.testing.assert_allclose(
                drawn, added, rtol=2e-3, atol=0.02 * np.ptp(added)
            )
            found += 1
    assert found


def test_edited_trees_are_those_of_the_library():
    """And nodes are told that no row reaches any more, as `edit` refuses them, but pruned ones."""
    frame, subjects = table(), [make_subject(make_model(kind)) for kind in KINDS]
    moves = [None, 0.25, 1e3, -1e3]
    seen = """[model.apply(tree, x), model.predict(tree, x), tree.complexity, tree.size,
        model.emptied(...[model.own, tree].map((one) => model.measure(one, [x], null)))]"""
    each = f"""model.own.nodes.map((node, k) => node.isLeaf || {json.dumps(moves)}.map((by) => {{
        const tree = model.edited(model.own, k, by === null ? undefined : node.t + by);
        return {seen}; }}))"""
    answers = run_page([report(subject, frame).data for subject in subjects], each)
    for subject, found in zip(subjects, answers, strict=True):
        tree, rows = subject.fitted.tree, encode(subject.fitted.schema, frame)
        predict = "predict_value" if subject.fitted.classes is None else "predict_label"
        before = tree.decision_path(rows).toarray() > 0
        for k, (at, by) in product(np.flatnonzero(~tree.is_leaf), enumerate(moves)):
            twin = models.edited(
                tree, k, None if by is None else tree.thresholds[k] + by
            )
            said = [
                list(one) for one in zip(*(row[k][at] for row in found), strict=True)
            ]
            assert said[0] == twin.apply(rows).tolist()
            assert said[1] == getattr(twin, predict)(rows).ravel().tolist()
            assert said[2:4] == [
                [twin.complexity] * len(rows),
                [twin.subtree_size.tolist()] * len(rows),
            ]
            if by is not None:
                empty = before & ~(twin.decision_path(rows).toarray() > 0)
                assert said[4] == [np.flatnonzero(one).tolist() for one in empty]


def test_rows_stand_beside_the_threshold_of_a_sum_in_its_unit():
    model, frame = make_model("numbers"), table()
    page = report(make_subject(model), frame).data
    each = "model.own.nodes.map((node) => node.isLeaf || model.beside(node, x))"
    (found,) = run_page([page], each)
    rows = encode(model.schema, frame)
    for k in np.flatnonzero(~model.tree.is_leaf).tolist():
        split = model.members[0].split(k)
        sums = rows[:, [j for _, j in split.terms]] @ [w for w, _ in split.terms]
        away = sums - split.threshold
        said = pd.DataFrame([row[k] for row in found])
        for name, wanted in (("value", sums), ("gap", np.abs(away))):
            np.testing.assert_allclose(said[name], wanted, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(said.threshold, split.threshold)
        assert (said.side == np.sign(away))[np.abs(away) > 1e-9].all()


def test_the_form_offers_each_level_once():
    """Also where a level has the name that missing cells are shown by."""
    colours = pd.Series(["missing", "red", "blue", None] * 30, name="colour")
    frame = pd.DataFrame({"colour": colours.astype("category"), "x": np.arange(120.0)})
    y = colours.isna() | (colours == "missing") | (frame.x > 100.0)
    model = ObliqueTreeClassifier("linear", max_depth=3).fit(frame, y)
    page = report(model, frame).data
    at = next(i for i, one in enumerate(page["columns"]) if one["name"] == "colour")
    (found,) = run_page([page], f"model.choices(data.columns[{at}])")
    level_of = {"(missing)": None, "(any other)": "other"}
    levels = [level_of.get(text, text) for _, text in found[0]]
    assert sorted(map(str, levels)) == ["None", "blue", "missing", "other", "red"]
    rows = encode(model.columns_, pd.DataFrame({"colour": levels, "x": 0.0}))
    place = [model.feature_names_.index(name) for name in page["features"]]
    for (value, _), known in zip(found[0], rows[:, place], strict=True):
        cells = [0] * len(page["columns"])
        cells[at] = None if value == "" else int(value)
        (coded,) = run_page([page], f"model.encode({json.dumps(cells)})")
        assert coded[0] == known.tolist()


def test_nodes_count_rows_once_and_have_weighted_shares_beside():
    X, y = load_iris(return_X_y=True)
    model = ObliqueTreeClassifier("axis", max_depth=3, class_weight={0: 9.0, 1: 2.0})
    leaves, page = model.fit(X, y).apply(X), report(model, X, y).data
    for leaf in np.unique(leaves):
        node, there = page["trees"][0]["nodes"][leaf], leaves == leaf
        assert node["n"] == there.sum()
        shares = np.bincount(y[there], minlength=3) / there.sum()
        np.testing.assert_allclose(node.get("r", node["v"]), shares, atol=1e-6)
        np.testing.assert_allclose(node["v"], model.tree_.values[leaf], atol=1e-6)


@pytest.mark.parametrize("labels", [["no", "yes"], ["no", "yes", "maybe"], None])
def test_figures_are_those_of_the_model(labels):
    frame = table()
    model = make_model("soft", labels=labels) if labels else make_model("lines")
    y, predicted = truth_of(model, frame), model.predict(frame)
    data = report(make_subject(model), frame, y).data
    measures = data["trees"][data["own"]]["measures"]
    shares = model.predict_proba(frame) if labels else None
    figures = {name: figure for name, figure, _ in measures["figures"]}
    assert figures == pytest.approx(figures_of(y, predicted, shares, labels))
    leaves = model.tree.apply(encode(model.schema, frame))
    losses = predicted != y if labels else (predicted - y) ** 2
    for k in np.flatnonzero(model.tree.is_leaf):
        assert measures["reached"][k] == (leaves == k).sum()
        assert measures["lost"][k] == pytest.approx(losses[leaves == k].sum(), 1e-5)
    if labels:
        matrix = metrics.confusion_matrix(y, predicted, labels=labels)
        assert measures["confusion"] == matrix.tolist()
        root = labels[model.tree.labels[0]]
        assert measures["figures"][0][2] == pytest.approx((y == root).mean())
    if labels and len(labels) == 2:
        so, mean = calibration_curve(y == "yes", shares[:, 1], n_bins=10)
        drawn = np.array(measures["calibration"])[:, :2]
        np.testing.assert_allclose(drawn, np.column_stack([mean, so]))


def test_hostile_names_stay_text():
    frame = table(names=HOSTILE)
    model = make_model("classes", frame, labels=HOSTILE[:3])
    model = replace(model, target=f"{HOSTILE[0]}!")
    html = report_of_model(model, frame).html
    harmless = report_of_model(make_model("classes"), table()).html
    for tag in ("<script", "</script", "<img", "<!--"):
        assert html.count(tag) == harmless.count(tag)
    assert embedded(html)["classes"] == list(HOSTILE[:3])


def test_many_rows_are_sampled_and_all_are_measured():
    model, frame = make_model("soft"), table(50_000)
    y = truth_of(model, frame)
    page = report(make_subject(model), frame, y)
    assert len(page.html.encode()) < 2_000_000
    rows = page.data["rows"]
    assert rows["total"] == 50_000 and len(rows["numbers"]) == 1000
    some = frame.iloc[rows["numbers"]]
    assert [model.classes[c] for c in rows["y"]] == y[rows["numbers"]].tolist()
    a = next(j for j, one in enumerate(page.data["columns"]) if one["name"] == "a")
    assert rows["cells"][a] == some["a"].tolist()
    accuracy = page.data["trees"][page.data["own"]]["measures"]["figures"][0][1]
    assert accuracy == pytest.approx((model.predict(frame) == y).mean())


def test_a_large_front_is_thinned():
    model = make_model("classes")
    subject = make_subject(model)
    rows = encode(model.schema, table())
    one = subject.front[0]
    many = [
        replace(one, tree=type(one.tree).of(tree, 0.9, "widths"))
        for tree in (models.random_tree(rows, 3, 60, seed) for seed in range(90))
    ]
    data = report(replace(subject, front=[*subject.front, *many])).data
    n_nodes = sum(len(tree["nodes"]) for tree in data["trees"])
    assert 0.5 * MAX_FRONT_NODES < n_nodes < 1.2 * MAX_FRONT_NODES
    assert data["trees"][data["own"]]["size"] == model.tree.subtree_size.tolist()
    assert any("evenly spaced" in note for note in data["notes"])


def test_what_is_not_there_is_left_out_and_named():
    data = report_of_model(make_model("classes"), None).data
    assert data["rows"] is None and data["history"] is None and len(data["trees"]) == 1
    assert len(data["notes"]) == 4


@pytest.mark.parametrize(
    ("y", "rows", "message"),
    [
        (["perhaps"] * 300, table(), "y has 'perhaps'"),
        (["no", "yes", "no"], table(), r"y has shape \(3,\): allowed is \(300,\)"),
        (["no"], None, "y has shape"),
    ],
)
def test_targets_that_do_not_fit(y, rows, message):
    with pytest.raises(ValueError, match=message):
        report(make_subject(make_model("classes")), rows, y)


def test_several_outputs_have_no_page():
    with pytest.raises(ValueError, match="report: the tree has 2 outputs"):
        report(kind_of("means of two outputs").model)


def test_the_report_of_an_estimator(tmp_path):
    X, y = load_iris(return_X_y=True, as_frame=True)
    model = brief().fit(X, y)
    page = report(model, X, y)
    page.save(tmp_path / "page.html")
    assert (tmp_path / "page.html").read_text(encoding="utf-8") == page.html
    data = page.data
    assert data["own"] == model.pareto_front_.chosen and data["notes"] == []
    qualities = [member.quality for member in model.pareto_front_]
    assert [tree["quality"] for tree in data["trees"]] == pytest.approx(qualities)
    assert len(data["history"]["gen"]) == len(model.history_)
    frame = re.search(r'srcdoc="(.*?)" sandbox', page._repr_html_(), re.DOTALL)[1]
    assert unescape(frame) == page.html
    assert Subject.of(model).trees[0][data["own"]].tree == model.tree_


def test_the_page_of_a_forest_of_classes():
    X, y = load_iris(return_X_y=True, as_frame=True)
    forest = ObliqueForestClassifier(7, oob_score=True, random_state=0)
    forest.fit(X[::2], y[::2])
    rows, truth = X[1::2], y[1::2].to_numpy()
    data = report(forest, rows, truth).data
    found, vote = data["forest"], data["forest"]["vote"]
    predicted, shares = forest.predict(rows), forest.predict_proba(rows)
    each = np.array([tree.predict(rows) for tree in forest])
    figures = {name: figure for name, figure, *_ in vote["figures"]}
    assert figures == pytest.approx(figures_of(truth, predicted, shares, [0, 1, 2]))
    of_trees = np.mean([tree.score(rows, truth) for tree in forest])
    assert vote["figures"][0][2] == pytest.approx(of_trees)
    np.testing.assert_allclose(vote["agreement"], (each == predicted).mean(axis=1))
    is_same, is_right = (each == predicted).all(axis=0), predicted == truth
    assert vote["bands"][0] == [1.0, is_same.sum(), is_right[is_same].sum()]
    wanted = dict(zip(X.columns, forest.feature_importances_, strict=True))
    told = {data["features"][j]: share for j, share in found["importances"]}
    assert told == pytest.approx(wanted, rel=1e-3)
    assert data["facts"]["out of bag"] == f"accuracy {forest.oob_score_:.4f}"
    assert data["rules"].count("tree ") == 7


@pytest.mark.parametrize("kind", ["classes", "numbers", "lines"])
def test_a_forest_of_a_file_has_a_page(kind):
    model = make_forest(kind)
    page = report_of_model(model, table().assign(answer=model.predict(table())))
    data = embedded(page.html)
    assert len(data["trees"]) == 4 and data["forest"]["vote"]["figures"][0][1] == 1.0
    assert data["facts"]["forest"].startswith("4 trees, ")


def test_splits_on_missing_cells_are_in_words():
    """Names that are short enough are the model's own, missing cells of categories among them."""
    subject = make_subject(make_model("classes"))
    page = report(subject).data
    words = dict(zip(page["features"], page["negations"], strict=True))
    schema = subject.fitted.schema
    negations = {schema.features[j]: no for j, (_, no) in schema.answers.items()}
    assert words == {name: negations.get(name) for name in page["features"]}
    assert words[f"kind is {MISSING}"] == f"kind is not {MISSING}"
    assert page["operands"] == [
        f"({name})" if " is " in name else name for name in page["features"]
    ]
