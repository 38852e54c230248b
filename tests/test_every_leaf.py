"""Every kind of leaf in every method of an estimator that takes rows, and in files and texts."""

import re
from contextlib import suppress

import numpy as np
import pytest

from evotree import load_model, save_model
from evotree.fitted import fitted_of
from evotree.leaf_models import LARGEST_SCORE
from evotree.texts import (
    coefficient_table,
    export_graphviz,
    export_html,
    export_rules,
    export_text,
)
from tests.kinds import (
    KINDS,
    NAMES,
    assert_predicts,
    every,
    every_classifier,
    every_model,
    expected,
    held_out,
    kind_of,
    label_of_row,
    load_pickled,
    numbers,
    one_output,
    outputs_of,
    quality,
    rows,
    worth,
)

pytestmark = pytest.mark.filterwarnings("error")


def test_kinds_are_what_they_are_called():
    for name in KINDS:
        kind = kind_of(name)
        models = kind.tree.models
        assert (models is not None) == ("logistic" in name or "lines" in name), name
        if name.startswith(("soft", "shares", "labels", "logistic leaves")):
            assert kind.tree.n_leaves > 1, name
        if name.startswith("a logistic leaf"):
            assert kind.tree.n_leaves == 1, name


@every_model
def test_models_predict_and_score(name):
    kind, X = kind_of(name), rows(1)
    values = kind.tree.predict_value(X.to_numpy())
    np.testing.assert_allclose(values, numbers(kind.tree, X))
    assert_predicts(kind.model, X, expected(kind, X))
    X, y = held_out(kind)
    assert kind.model.score(X, y) == pytest.approx(worth(kind, X, y))
    for at, tree in enumerate(kind.model.pareto_front_):
        for given in (at, tree):
            assert_predicts(kind.model, X, expected(kind, X, tree), tree=given)


@every_classifier
def test_probabilities(name):
    kind, X = kind_of(name), rows(1)
    model, labels = kind.model, [*map(kind.classes.index, kind.model.predict(X))]
    found = model.predict_proba(X)
    np.testing.assert_allclose(found.sum(axis=1), 1.0)
    np.testing.assert_allclose(np.exp(model.predict_log_proba(X)), found, atol=1e-12)
    if model.probabilities_ is None:
        np.testing.assert_allclose(found, numbers(kind.tree, X), atol=1e-12)
    if "by hand" not in name:
        assert found.argmax(axis=1).tolist() == labels
    for at, tree in enumerate(model.pareto_front_):
        of_tree = model.predict_proba(X, tree=at)
        said = [label_of_row(tree, row) for row in X.to_numpy()]
        assert of_tree.argmax(axis=1).tolist() == said


@every_classifier
def test_costs_are_errors_where_nothing_else_is_said(name):
    kind = kind_of(name)
    X, y = held_out(kind)
    assert kind.model.cost_score(X, y) == pytest.approx(1.0 - worth(kind, X, y))


@every_model
def test_held_out_quality_is_that_of_predictions(name):
    kind = kind_of(name)
    X, y = held_out(kind)
    front = kind.model.pareto_front_
    table = front.to_frame(kind.model._held_out(X, y))
    worths = [quality(kind, X, y, tree) for tree in front]
    np.testing.assert_allclose(table.held_out_quality, worths)
    assert len(front.to_frame()) == len(front)


@pytest.mark.parametrize(
    "rule",
    [
        "accurate",
        "simplest",
        "tree",
        "terms<=2",
    ],
)
@every_model
def test_a_selected_tree_predicts(name, rule):
    kind = kind_of(name)
    X, y = held_out(kind)
    front = kind.model.pareto_front_
    needs_rows = rule in ("accurate", "simplest")
    twin = load_pickled(kind.model)
    if rule == "tree" and all(tree.n_leaves == 1 for tree in front):
        with pytest.raises(ValueError, match="no tree of the front has a split"):
            twin.select_tree(rule)
        return
    if "<=" in rule:
        count, most = re.fullmatch(r"(\w+)<=(\d+)", rule).groups()
        attribute = {"leaves": "n_leaves", "terms": "n_terms", "size": "n_nodes"}
        counts = [getattr(tree, attribute.get(count, count)) for tree in front]
        if min(counts) > int(most):
            with pytest.raises(ValueError, match="the least"):
                twin.select_tree(rule)
            return
        twin.select_tree(rule)
        assert getattr(twin.tree_, attribute.get(count, count)) <= int(most)
    twin.select_tree(rule, X, y) if needs_rows else twin.select_tree(rule)
    assert_predicts(twin, X, expected(kind, X, twin.tree_))
    if needs_rows:
        worths = [quality(kind, X, y, tree) for tree in front]
        chosen = quality(kind, X, y, twin.tree_)
        if rule == "accurate":
            assert chosen == pytest.approx(max(worths))
        with_rows = load_pickled(kind.model).select_tree(rule, X, y)
        assert with_rows.tree_ == twin.tree_


@every_model
def test_explanations(name):
    kind, X = kind_of(name), rows(1, 12)
    for at, output in enumerate(outputs_of(kind)):
        terms, of_rows = kind.model.explain(X, output=output)
        truth = expected(kind, X)
        if output is not None:
            truth = np.asarray(truth)[:, at]
        if kind.classes is None:
            np.testing.assert_allclose(of_rows.prediction.astype(float), truth)
        else:
            assert of_rows.prediction.tolist() == list(truth)
        assert of_rows.leaf.tolist() == kind.model.apply(X).tolist()
        if kind.tree.models is None:
            assert "leaf" not in set(terms.side)
            continue
        # What the terms of a leaf add up to is what it says, within its bounds.
        each = kind.tree.models.each
        for row, part in terms[terms.side == "leaf"].groupby("row"):
            total = part.centre.iloc[0] + part.contribution.sum()
            k, which, sign = of_rows.leaf[row], at, 1.0
            if kind.classes is not None:  # it speaks of the class that is predicted
                which = kind.classes.index(truth[row])
                if len(each) == 2:
                    which, sign = 1, 1.0 if which == 1 else -1.0
            one = each[which]
            bare = one.intercepts[k] + one.coefficients[k] @ X.to_numpy()[row]
            assert total == pytest.approx(sign * bare, abs=1e-9)
            assert total >= 0.0 or kind.classes is None or len(each) > 2


@every_model
def test_decisions_inside_of_leaves_have_a_distance(name):
    """A row as far from another class as its distance says stands where two scores are equal."""
    kind, X = kind_of(name), rows(1, 40)
    of_rows = kind.model.explain(X, output=outputs_of(kind)[0]).rows
    if kind.classes is None or kind.tree.models is None:
        assert np.isinf(of_rows.decision_distance).all() == (kind.tree.n_leaves == 1)
        return
    for at, x in enumerate(X.to_numpy()):
        scores = kind.tree.models.scores(x[None], kind.tree.apply(x[None]))[0]
        slopes = np.array(
            [m.coefficients[of_rows.leaf[at]] for m in kind.tree.models.each]
        )
        best = scores.argmax()
        units = np.linalg.norm((slopes - slopes[best]) * kind.tree.spread, axis=1)
        inside = [
            (scores[best] - scores[j]) / units[j] for j in np.flatnonzero(units > 0.0)
        ]
        path = kind.model.explain(X.iloc[[at]]).terms
        splits = path[path.side != "leaf"].total.abs()
        assert of_rows.decision_distance[at] == pytest.approx(min([*inside, *splits]))
    assert of_rows.decision_distance.nunique() > 20


@pytest.mark.parametrize("how", ["impurity", "influence"])
@every_model
def test_importances(name, how):
    shares = kind_of(name).model.importances(how)
    assert shares.shape == (2,) and (shares >= 0.0).all()
    assert shares.sum() == pytest.approx(1.0) or not shares.any()


def edits_of(kind):
    """Return calls of edits that the kind allows, by their names."""
    tree, editor = kind.tree, kind.model.edit(kind.X, kind.y)
    splits = np.flatnonzero(~tree.is_leaf)
    if not len(splits):
        return {}
    k = int(splits[-1])
    used = np.flatnonzero(tree.weights[k])
    shown = fitted_of(kind.model).split(k).threshold
    moved = float(tree.thresholds[k]) + 0.01
    weights = {NAMES[used[0]]: 1.0}
    edits = {
        "prune": lambda: editor.prune(k),
        "set_threshold": lambda: editor.set_threshold(k, shown + 0.01),
        "set_weights": lambda: editor.set_weights(k, weights, threshold=moved),
    }
    if len(used) > 1:
        edits["drop_term"] = lambda: editor.drop_term(k, int(used[0]))
    return edits


@every_model
def test_edited_models_predict(name):
    kind, X = kind_of(name), rows(1)
    before = kind.model.predict(X)
    for call in edits_of(kind).values():
        made = call()
        assert_predicts(made, X, expected(kind, X, made.tree_))
    assert np.array_equal(kind.model.predict(X), before)


@every_model
def test_leaves_predict_what_they_are_told_by_hand(name):
    kind = kind_of(name)
    leaf = int(kind.model.apply(kind.X)[0])
    editor = kind.model.edit(kind.X, kind.y)
    if kind.classes is None:
        n_outputs = kind.tree.values.shape[1]
        value = [0.25] * n_outputs if n_outputs > 1 else 0.25
    else:
        value = kind.classes[-1]
        if kind.tree.models is not None:
            with pytest.raises(ValueError, match="without logistic models"):
                editor.relabel(leaf, value)
            return
    made = editor.relabel(leaf, value)
    there = kind.X[made.apply(kind.X) == leaf]
    said = made.predict(there)
    assert len(there) and (said == np.broadcast_to(value, said.shape)).all()
    assert_predicts(made, kind.X, expected(kind, kind.X, made.tree_))
    with suppress(ValueError):  # the tree is none of the front
        assert_predicts(made, kind.X, made.predict(kind.X), tree=made.tree_)


@every_model
def test_a_search_goes_on(name):
    kind = kind_of(name)
    made = kind.model.refit(kind.X, kind.y)
    X, y = held_out(kind)
    assert_predicts(made, X, expected(kind, X, made.tree_))
    assert made.score(X, y) == pytest.approx(worth(kind, X, y, made.tree_))


@pytest.mark.parametrize(
    "export", [export_text, export_rules, export_html, export_graphviz]
)
@every_model
def test_texts_name_each_leaf_and_class_and_no_bounds_of_scores(name, export):
    kind = kind_of(name)
    text = export(kind.model)
    assert all(f"[{k}]" in text for k in np.flatnonzero(kind.tree.is_leaf))
    if kind.classes is not None and kind.tree.models is not None:
        assert "within [" not in text and f"{LARGEST_SCORE:g}" not in text
        assert all(str(label).split("'")[0] in text for label in kind.classes)


@every("lines", "logistic")
def test_tables_of_coefficients_predict(name):
    kind, X = kind_of(name), rows(1, 20)
    table = coefficient_table(kind.model, NAMES)
    leaves = kind.tree.apply(X.to_numpy())
    names = outputs_of(kind) if kind.classes is None else table.get("output", [None])
    scores = {}
    for output in dict.fromkeys(names):
        part = table if output is None else table[table.output == output]
        of_row = part.set_index("leaf").loc[leaves]
        weights = of_row.reindex(columns=NAMES, fill_value=0.0).to_numpy()
        total = of_row.intercept.to_numpy() + (weights * X.to_numpy()).sum(axis=1)
        if "lowest" in of_row:
            total = np.clip(total, of_row.lowest, of_row.highest).to_numpy()
        scores[output] = total
    found = np.column_stack(list(scores.values()))
    if kind.classes is None:
        found = np.exp(found) if kind.tree.models.is_log else found
        np.testing.assert_allclose(found, numbers(kind.tree, X), rtol=1e-9)
    else:
        if found.shape[1] == 1:
            found = np.column_stack([np.zeros(len(X)), found])
        labels = [label_of_row(kind.tree, row) for row in X.to_numpy()]
        assert found.argmax(axis=1).tolist() == labels


@one_output
def test_files_keep_models(name, tmp_path):
    kind, X = kind_of(name), rows(1)
    save_model(tmp_path / "model.json", kind.model, "target")
    again = load_model(tmp_path / "model.json")
    assert again.tree == kind.tree
    assert_predicts(kind.model, X, again.predict(X))
    if kind.classes is not None:
        exact = kind.model.predict_proba(X)
        np.testing.assert_array_equal(again.predict_proba(X), exact)
    assert again.explain(X[:3]).rows.leaf.tolist() == kind.model.apply(X[:3]).tolist()
    assert again.summary() and again.rules()
