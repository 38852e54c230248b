"""Every kind of leaf in every method of an estimator that takes rows, and in files and texts."""

from copy import deepcopy

import numpy as np
import pytest

from evotree import load_model, save_model
from evotree.estimators.rows import Beside
from evotree.fitted import fitted_of
from evotree.leaf_models import LARGEST_SCORE
from evotree.texts import (
    coefficient_table,
    export_rules,
    export_text,
)
from tests.kinds import (
    NAMES,
    assert_predicts,
    every,
    every_classifier,
    every_model,
    expected,
    held_out,
    kind_of,
    label_of_row,
    numbers,
    one_output,
    outputs_of,
    quality,
    rows,
    worth,
)
from tests.quick_models import by_tree

pytestmark = pytest.mark.filterwarnings("error")


@every_model
def test_kinds_are_what_they_are_called(name):
    tree = kind_of(name).tree
    assert (tree.models is not None) == ("score" in name or "lines" in name)
    assert tree.n_leaves > 1


@every_model
def test_models_predict_and_score(name):
    kind, X = kind_of(name), rows(1)
    values = kind.tree.predict_value(X.to_numpy())
    np.testing.assert_allclose(values, numbers(kind.tree, X))
    assert_predicts(kind.model, X, expected(kind, X))
    X, y = held_out(kind)
    assert kind.model.score(X, y) == pytest.approx(worth(kind, X, y))
    for at, tree in enumerate(kind.model.pareto_front_):
        assert_predicts(by_tree(kind.model, at), X, expected(kind, X, tree))


@every_classifier
def test_probabilities_and_costs(name):
    kind, X = kind_of(name), rows(1)
    model, found = kind.model, kind.model.predict_proba(X)
    np.testing.assert_allclose(found.sum(axis=1), 1.0)
    np.testing.assert_allclose(np.exp(model.predict_log_proba(X)), found, atol=1e-12)
    if model.probabilities_ is None:
        np.testing.assert_allclose(found, numbers(kind.tree, X), atol=1e-12)
    if "by hand" not in name:
        labels = [kind.classes.index(label) for label in expected(kind, X)]
        assert found.argmax(axis=1).tolist() == labels
    for at, tree in enumerate(model.pareto_front_):
        said = [label_of_row(tree, row) for row in X.to_numpy()]
        assert by_tree(model, at).predict_proba(X).argmax(axis=1).tolist() == said
    X, y = held_out(kind)
    # Costs are errors where nothing else is said.
    assert model.cost_score(X, y) == pytest.approx(1.0 - worth(kind, X, y))


@pytest.mark.parametrize("rule", ["accurate", "simplest", "tree", "terms<=2"])
@every_model
def test_a_selected_tree_predicts(name, rule):
    kind, twin = kind_of(name), deepcopy(kind_of(name).model)
    X, y = held_out(kind)
    front = kind.model.pareto_front_
    worths = [quality(kind, X, y, tree) for tree in front]
    table = front.to_frame(kind.model._held_out(X, y, Beside()))
    np.testing.assert_allclose(table.held_out_quality, worths)
    is_allowed = {
        "accurate": lambda tree: quality(kind, X, y, tree) >= max(worths) - 1e-12,
        "simplest": lambda tree: True,
        "tree": lambda tree: tree.n_leaves > 1,
        "terms<=2": lambda tree: tree.n_terms <= 2,
    }[rule]
    given = (X, y) if rule in ("accurate", "simplest") else ()
    if not any(map(is_allowed, front)):
        with pytest.raises(ValueError, match="no tree of the front|the least"):
            twin.select_tree(rule)
        return
    twin.select_tree(rule, *given)
    assert is_allowed(twin.tree_)
    assert_predicts(twin, X, expected(kind, X, twin.tree_))


@every_model
def test_explanations(name):
    kind, X = kind_of(name), rows(1, 12)
    truth = np.array(expected(kind, X)).reshape(len(X), -1)
    for at, output in enumerate(outputs_of(kind)):
        terms, of_rows = kind.model.explain(X, output=output)
        if kind.classes is None:
            np.testing.assert_allclose(of_rows.prediction.astype(float), truth[:, at])
        else:
            assert of_rows.prediction.tolist() == truth[:, at].tolist()
        assert of_rows.leaf.tolist() == kind.model.apply(X).tolist()
        assert ("leaf" in set(terms.side)) == (kind.tree.models is not None)
        # What the terms of a leaf add up to is what it says, within its bounds.
        for row, part in terms[terms.side == "leaf"].groupby("row"):
            sums = [
                one.intercepts[of_rows.leaf[row]]
                + one.coefficients[of_rows.leaf[row]] @ X.to_numpy()[row]
                for one in kind.tree.models.each
            ]
            said = sums[at]
            if kind.classes is not None:  # it speaks of the class that is predicted
                label = kind.classes.index(truth[row, at])
                said = sums[label] - (sums[1 - label] if len(sums) == 2 else 0.0)
            total = part.centre.iloc[0] + part.contribution.sum()
            assert total == pytest.approx(said, abs=1e-9)


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


@every_model
def test_edited_models_predict(name):
    kind, X = kind_of(name), rows(1)
    tree, editor = kind.tree, kind.model.edit(kind.X, kind.y)
    before = kind.model.predict(X)
    if "score" in name:
        with pytest.raises(ValueError, match="that stand on no score"):
            editor.relabel(len(tree) - 1, kind.classes[0])
    for k in np.flatnonzero(~tree.is_leaf)[-1:].tolist():
        used = np.flatnonzero(tree.weights[k])
        shown = fitted_of(kind.model).split(k).threshold
        split = f"{NAMES[used[0]]} <= {float(tree.thresholds[k] + 0.01)!r}"
        made = [
            editor.prune(k),
            editor.set_threshold(k, shown + 0.01),
            editor.set_split(k, split),
            *(editor.drop_term(k, int(j)) for j in used[1:]),
            editor.set_threshold(k, shown),
        ]
        for one in made:
            assert_predicts(one, X, expected(kind, X, one.tree_))
        if kind.classes is None:
            np.testing.assert_allclose(made[-1].predict(X), before, rtol=1e-6)
        elif "score" not in name:  # whose points here are not those of the rows
            np.testing.assert_array_equal(made[-1].predict(X), before)
    assert np.array_equal(kind.model.predict(X), before)


@every_model
def test_a_search_goes_on(name):
    kind = kind_of(name)
    made = kind.model.refit(kind.X, kind.y)
    X, y = held_out(kind)
    assert_predicts(made, X, expected(kind, X, made.tree_))
    assert made.score(X, y) == pytest.approx(worth(kind, X, y, made.tree_))


@pytest.mark.parametrize("export", [export_text, export_rules])
@every_model
def test_texts_name_each_leaf_and_class_and_no_bounds_of_scores(name, export):
    kind = kind_of(name)
    text = export(kind.model)
    assert all(f"[{k}]" in text for k in np.flatnonzero(kind.tree.is_leaf))
    if kind.classes is not None and kind.tree.models is not None:
        assert "within [" not in text and f"{LARGEST_SCORE:g}" not in text
        assert all(str(label).split("'")[0] in text for label in kind.classes)


@every("lines", "score")
def test_tables_of_coefficients_predict(name):
    kind, X = kind_of(name), rows(1, 20)
    table = coefficient_table(kind.model, NAMES)
    leaves = kind.tree.apply(X.to_numpy())
    found = []
    for _, part in table.groupby(table.get("output", table.leaf * 0), sort=False):
        of_row = part.set_index("leaf").loc[leaves]
        weights = of_row.reindex(columns=NAMES, fill_value=0.0).to_numpy()
        total = of_row.intercept.to_numpy() + (weights * X.to_numpy()).sum(axis=1)
        if kind.classes is None:
            total = np.clip(total, of_row.lowest, of_row.highest).to_numpy()
        found.append(total)
    if kind.classes is None:
        found = np.exp(found) if kind.tree.models.is_log else np.array(found)
        np.testing.assert_allclose(found.T, numbers(kind.tree, X), rtol=1e-9)
        return
    found = [np.zeros(len(X)), *found] if len(found) == 1 else found
    labels = [label_of_row(kind.tree, row) for row in X.to_numpy()]
    assert np.argmax(found, axis=0).tolist() == labels


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
