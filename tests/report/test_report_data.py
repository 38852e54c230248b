"""What the page of a report holds: the model's own numbers, figures that are right, little room."""

import json
import re
from copy import copy
from dataclasses import replace
from html import unescape

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from sklearn import metrics
from sklearn.calibration import calibration_curve
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris

from evotree import (
    EvoTreeClassifier,
    EvoTreeRegressor,
    ObliqueForestClassifier,
    ObliqueTreeClassifier,
    ObliqueTreeRegressor,
)
from evotree.cli.commands import report_of_model
from evotree.fitted import summarize
from evotree.inspection import stability
from evotree.paths import explain
from evotree.plotting import plot_shapes
from evotree.report import Subject, report
from evotree.report.page import MAX_TREES_CHARACTERS
from evotree.schema import MISSING
from evotree.tables.columns import encode
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
    place = [model.feature_names.index(name) for name in data["features"]]
    for k, node in enumerate(own["nodes"]):
        assert node["n"] == tree.n_node_samples[k]
        weights = np.zeros(tree.n_features)
        weights[[place[j] for j in node.get("f", [])]] = node.get("w", [])
        if tree.subtree_size[k] > 1:
            assert (weights == tree.weights[k]).all() and node["t"] == tree.thresholds[
                k
            ]
        elif kind == "lines":
            assert (weights == tree.models.coefficients[k]).all()
            assert node["b"] == tree.models.intercepts[k]
        if kind in ("classes", "soft"):
            np.testing.assert_allclose(node["v"], tree.values[k], rtol=1e-5)
            assert node["l"] == tree.labels[k]


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
        keys = zip(terms["row"], terms["node"], terms["feature"], strict=True)
        expected = dict(zip(keys, terms["contribution"], strict=True))
        assert len(expected) > 300 and told == pytest.approx(
            expected, rel=1e-4, abs=1e-4
        )


@pytest.fixture(scope="module")
def with_front():
    """A model with a front of trees, and rows that it has not seen."""
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    free = {"size_penalty": 0.001, "term_penalty": 0.0005, "max_generations": 10}
    X = X.iloc[:, :6]
    return (
        EvoTreeClassifier(**free, random_state=0).fit(X[::2], y[::2]),
        X[1::2],
        y[1::2],
    )


def test_each_tree_of_the_slider_is_that_of_select_tree(with_front):
    """Its probabilities and figures are those of the model with this tree."""
    model, X, y = with_front
    page = report(model, X, y).data
    assert len(page["trees"]) > 3
    each = "data.trees.map((tree) => model.probabilities(tree, x))"
    (found,) = run_page([page], each)
    for at, shown in enumerate(page["trees"]):
        one = copy(model).select_tree(f"complexity<={shown['complexity']}")
        shares = one.predict_proba(X)
        assert (shares[:, 1] % 1.0 > 0.0).any() or shown["leaves"] == 1
        np.testing.assert_allclose([row[at] for row in found], shares, atol=1e-5)
        figures = {name: figure for name, figure, _ in shown["measures"]["figures"]}
        assert figures == pytest.approx(
            {
                "accuracy": metrics.accuracy_score(y, one.predict(X)),
                "balanced accuracy": metrics.balanced_accuracy_score(y, one.predict(X)),
                "log loss": metrics.log_loss(y, shares),
                "Brier score": metrics.brier_score_loss(y, shares[:, 1]),
                "AUC": metrics.roc_auc_score(y, shares[:, 1].round(9)),
            }
        )


def test_columns_of_nodes_that_bend_have_the_lines_of_the_picture():
    X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
    X, shapes = (
        X[["bmi", "bp", "s5"]],
        {"bmi": [("above", 25.0)], "bp": [("log", 60.0)]},
    )
    model = brief(EvoTreeRegressor, shapes=shapes, max_generations=3).fit(X, y)
    page = report(model, X).data
    nodes = page["trees"][page["own"]]["nodes"]
    names = [column["name"] for column in page["columns"]]
    bent = [j for j, name in enumerate(page["features"]) if name not in names]
    for k, node in enumerate(nodes):
        assert ("shapes" in node) == bool(set(bent) & set(node.get("f", ())))
        if "shapes" not in node:
            continue
        panels = plot_shapes(model, node=k).child_axes
        assert [names[one["column"]] for one in node["shapes"]] == [
            panel.get_xlabel() for panel in panels
        ]
        for shape, panel in zip(node["shapes"], panels, strict=True):
            x, added = panel.get_lines()[1].get_data()
            expected = np.interp(shape["cells"], x, added)
            np.testing.assert_allclose(shape["adds"][0], expected, rtol=2e-3, atol=0.1)
        plt.close("all")
    assert any("shapes" in node for node in nodes)


def test_edited_trees_are_those_of_the_library():
    frame, subjects = table(), [make_subject(make_model(kind)) for kind in KINDS]
    twins = "[model.edited(model.own, k), model.edited(model.own, k, model.own.nodes[k].t + 0.25)]"
    seen = "[model.apply(tree, x), model.predict(tree, x), tree.complexity, tree.size]"
    each = f"model.own.nodes.map((node, k) => node.isLeaf || {twins}.map((tree) => {seen}))"
    answers = run_page([report(subject, frame).data for subject in subjects], each)
    for subject, found in zip(subjects, answers, strict=True):
        tree, rows = subject.fitted.tree, encode(subject.fitted.schema, frame)
        predict = "predict_value" if subject.fitted.classes is None else "predict_label"
        for k in np.flatnonzero(~tree.is_leaf):
            for at, threshold in enumerate((None, tree.thresholds[k] + 0.25)):
                twin = models.edited(tree, k, threshold)
                leaves, predicted, *known = zip(
                    *(row[k][at] for row in found), strict=True
                )
                assert list(leaves) == twin.apply(rows).tolist()
                assert list(predicted) == getattr(twin, predict)(rows).ravel().tolist()
                assert [one[0] for one in known] == [
                    twin.complexity,
                    twin.subtree_size.tolist(),
                ]


def test_a_threshold_that_leaves_a_node_without_rows_is_told():
    """Those that rows passed before, as `edit` refuses them; pruned nodes are no such ones."""
    frame, subject = table(), make_subject(make_model("numbers"))
    rows = encode(subject.fitted.schema, frame)
    tree = subject.fitted.tree
    moved = "model.edited(model.own, k, node.t + 1e3 * (k % 2 ? 1 : -1))"
    seen = "model.measure(tree, [x], null)"
    each = f"""model.own.nodes.map((node, k) => node.isLeaf ? null :
        [model.own, {moved}].map((tree) => {seen})).map((both) =>
        both && model.emptied(...both))"""
    (found,) = run_page([report(subject, frame).data], each)
    n_told = 0
    for row, told in zip(rows, found, strict=True):
        before = tree.decision_path(row[None]).toarray()[0] > 0
        for k in np.flatnonzero(~tree.is_leaf).tolist():
            sign = 1.0 if k % 2 else -1.0
            twin = models.edited(tree, k, tree.thresholds[k] + 1e3 * sign)
            after = twin.decision_path(row[None]).toarray()[0] > 0
            assert told[k] == np.flatnonzero(before & ~after).tolist()
            n_told += len(told[k])
    assert n_told > 100


def test_rows_stand_beside_the_threshold_of_a_sum_in_its_unit():
    model, frame = make_model("numbers"), table()
    page = report(make_subject(model), frame).data
    (found,) = run_page(
        [page], "model.own.nodes.map((n) => n.isLeaf ? null : model.beside(n, x))"
    )
    tree, rows = model.tree, encode(model.schema, frame)
    for k in np.flatnonzero(~tree.is_leaf).tolist():
        split = model.members[0].split(k)
        sums = rows[:, [j for _, j in split.terms]] @ [w for w, _ in split.terms]
        for total, row in zip(sums, found, strict=True):
            one = row[k]
            assert one["threshold"] == pytest.approx(split.threshold)
            assert one["value"] == pytest.approx(total, rel=1e-9, abs=1e-9)
            assert one["gap"] == pytest.approx(abs(total - split.threshold), abs=1e-9)
            if abs(total - split.threshold) > 1e-9:
                assert one["side"] == np.sign(total - split.threshold)


def test_the_form_offers_each_level_once():
    """Also where a level has the name that missing cells are shown by."""
    colours = pd.Series(["missing", "red", "blue", None] * 30, name="colour")
    frame = pd.DataFrame({"colour": colours.astype("category"), "x": np.arange(120.0)})
    y = colours.isna() | (colours == "missing") | (frame.x > 100.0)
    model = ObliqueTreeClassifier("linear", max_depth=3).fit(frame, y)
    page = report(model, frame).data
    at = next(i for i, one in enumerate(page["columns"]) if one["name"] == "colour")
    (found,) = run_page([page], f"model.choices(data.columns[{at}])")
    values, texts = zip(*found[0], strict=True)
    assert len(set(texts)) == len(texts) == len(set(values))
    assert sorted(texts) == ["(any other)", "(missing)", "blue", "missing", "red"]
    cells = {text: "null" if value == "" else value for value, text in found[0]}
    for text, value in cells.items():
        row = ["0"] * len(page["columns"])
        row[at] = value
        (coded,) = run_page([page], f"model.encode([{', '.join(row)}])")
        level = {"(missing)": None, "(any other)": "other"}.get(text, text)
        known = encode(model.columns_, pd.DataFrame({"colour": [level], "x": [0.0]}))[0]
        place = [model.feature_names_.index(name) for name in page["features"]]
        assert coded[0] == known[place].tolist()


def own_measures(model, frame, y):
    """Return what a page says of the model's own tree, and its figures by name."""
    data = report(make_subject(model), frame, y).data
    measures = data["trees"][data["own"]]["measures"]
    return measures, {name: figure for name, figure, _ in measures["figures"]}


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


@pytest.mark.parametrize("labels", [("no", "yes"), ("no", "yes", "maybe")])
def test_figures_of_classes(labels):
    frame, model = table(), make_model("soft", labels=labels)
    y = truth_of(model, frame)
    measures, figures = own_measures(model, frame, y)
    predicted, shares = model.predict(frame), model.predict_proba(frame)
    codes = np.array([labels.index(label) for label in y])
    if len(labels) == 2:
        brier = metrics.brier_score_loss(codes, shares[:, 1])
        auc = metrics.roc_auc_score(codes, shares[:, 1].round(9))
    else:
        brier = ((shares - np.eye(len(labels))[codes]) ** 2).sum(axis=1).mean()
        each = {"multi_class": "ovr", "average": "weighted"}
        auc = metrics.roc_auc_score(codes, shares.round(9), **each)
    expected = {
        "accuracy": metrics.accuracy_score(y, predicted),
        "balanced accuracy": metrics.balanced_accuracy_score(y, predicted),
        "log loss": metrics.log_loss(codes, shares, labels=range(len(labels))),
        "Brier score": brier,
        "AUC": auc,
    }
    assert figures == pytest.approx(expected)
    matrix = metrics.confusion_matrix(y, predicted, labels=labels)
    assert measures["confusion"] == matrix.tolist()
    if len(labels) == 2:
        so, mean = calibration_curve(codes, shares[:, 1], n_bins=10)
        drawn = np.array(measures["calibration"])[:, :2]
        np.testing.assert_allclose(drawn, np.column_stack([mean, so]))
    leaves = model.tree.apply(encode(model.schema, frame))
    for k in np.flatnonzero(model.tree.is_leaf):
        assert measures["reached"][k] == (leaves == k).sum()
        assert measures["lost"][k] == (predicted != y)[leaves == k].sum()
    root = model.tree.labels[0]
    assert measures["figures"][0][2] == pytest.approx((codes == root).mean())


def test_figures_of_numbers():
    frame, model = table(), make_model("lines")
    y, predicted = truth_of(model, frame), model.predict(frame)
    kinds = {"R²": "r2_score", "RMSE": "root_mean_squared_error"}
    kinds["mean absolute error"] = "mean_absolute_error"
    expected = {
        name: getattr(metrics, kind)(y, predicted) for name, kind in kinds.items()
    }
    assert own_measures(model, frame, y)[1] == pytest.approx(expected)


def test_hostile_names_stay_text():
    frame = table(names=HOSTILE)
    model = make_model("classes", frame, labels=HOSTILE[:3])
    model = replace(model, target=f"{HOSTILE[0]}!")
    html = report_of_model(model, frame).html
    harmless = report_of_model(make_model("classes"), table()).html
    for tag in ("<script", "</script", "<img", "<!--"):
        assert html.count(tag) == harmless.count(tag)
    assert "x" * 1000 not in html
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
    assert len(json.dumps(data["trees"])) < 1.2 * MAX_TREES_CHARACTERS
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
    X, y = load_diabetes(return_X_y=True)
    model = ObliqueTreeRegressor("axis", max_depth=1)
    with pytest.raises(ValueError, match="report: the tree has 2 outputs"):
        report(model.fit(X, np.column_stack([y, -y])))


def test_the_report_of_an_estimator(tmp_path):
    X, y = load_iris(return_X_y=True, as_frame=True)
    model = brief().fit(X, y)
    page = report(model, X, y)
    page.save(tmp_path / "page.html")
    assert (tmp_path / "page.html").read_text(encoding="utf-8") == page.html
    data = page.data
    assert len(data["trees"]) == len(model.pareto_front_)
    assert data["own"] == model.pareto_front_.chosen
    qualities = [member.quality for member in model.pareto_front_]
    assert [tree["quality"] for tree in data["trees"]] == pytest.approx(qualities)
    assert len(data["history"]["gen"]) == len(model.history_)
    assert data["notes"] == []
    accuracy = data["trees"][data["own"]]["measures"]["figures"][0][1]
    assert accuracy == pytest.approx(model.score(X, y))
    frame = page._repr_html_()
    assert (
        unescape(re.search(r'srcdoc="(.*?)" sandbox', frame, re.DOTALL)[1]) == page.html
    )
    assert Subject.of(model).trees[0][data["own"]].tree == model.tree_
    cut, refits = model.edit(X, y).prune(0), stability(model, X, y, n=2)
    facts = report(cut, stability=refits).data["facts"]
    assert facts["last edit, prune(0)"].endswith(
        f"complexity {model.tree_.complexity} to 1"
    )
    assert facts["2 refits"].startswith(
        f"agreement {refits.summary.agreement:.2f}, columns "
    )


def test_the_page_of_a_forest_of_classes(tmp_path):
    X, y = load_iris(return_X_y=True, as_frame=True)
    forest = ObliqueForestClassifier(7, oob_score=True, random_state=0).fit(
        X[::2], y[::2]
    )
    page = report(forest, X[1::2], y[1::2])
    page.save(tmp_path / "forest.html")
    data = embedded((tmp_path / "forest.html").read_text("utf-8"))
    assert data == json.loads(json.dumps(page.data))
    found, vote = data["forest"], data["forest"]["vote"]
    rows, truth = X[1::2], y[1::2].to_numpy()
    predicted, shares = forest.predict(rows), forest.predict_proba(rows)
    each = np.array([tree.predict(rows) for tree in forest])
    figures = {name: values for name, *values in vote["figures"]}
    assert figures["accuracy"][0] == forest.score(rows, truth)
    assert figures["accuracy"][1] == pytest.approx(
        np.mean([t.score(rows, truth) for t in forest])
    )
    assert figures["log loss"][0] == pytest.approx(metrics.log_loss(truth, shares))
    np.testing.assert_allclose(vote["agreement"], (each == predicted).mean(axis=1))
    n_same = (each == predicted).sum(axis=0)
    assert vote["bands"][0] == [
        1.0,
        (n_same == 7).sum(),
        (predicted == truth)[n_same == 7].sum(),
    ]
    assert sum(n for _, n, _ in vote["bands"]) == len(rows)
    assert sum(right for *_, right in vote["bands"]) == (predicted == truth).sum()
    known = {data["features"][j]: share for j, share in found["importances"]}
    wanted = dict(zip(X.columns, forest.feature_importances_, strict=True))
    assert known == {name: pytest.approx(wanted[name], rel=1e-3) for name in known}
    for one, tree in zip(data["trees"], forest.trees_, strict=True):
        assert one["size"] == tree.subtree_size.tolist()
    for name, total in (
        ("nodes", "n_nodes"),
        ("leaves", "n_leaves"),
        ("terms", "n_terms"),
    ):
        assert found[name] == sum(getattr(tree, total) for tree in forest.trees_)
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
