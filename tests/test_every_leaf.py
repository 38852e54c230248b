"""Every kind of leaf in every public method that takes rows or shows a tree.

A kind is a function in `KINDS` that makes a fitted model, or a tree alone; what a leaf predicts is
derived here once more, row by row. Exports and plots are taken from the ``__all__`` of their
packages. A kind or an export that is new is in all of these tests once it stands there.
"""

import inspect
import io
import json
import pickle
import re
import xml.etree.ElementTree as ElementTree
from contextlib import suppress
from dataclasses import replace
from functools import cache
from itertools import product
from typing import Any, NamedTuple

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from scipy.special import expit
from sklearn.base import is_classifier
from sklearn.metrics import accuracy_score, d2_tweedie_score, log_loss, r2_score

import evotree.export
import evotree.plotting
from evotree import (
    EvoTreeClassifier,
    EvoTreeRegressor,
    ScoredProblem,
    SearchConfig,
    keep_best_trees,
    load_model,
    save_model,
    search_scores,
)
from evotree.cli.commands import report_of_model
from evotree.cli.main import main
from evotree.engine.scored import DEFAULT
from evotree.fitted import fitted_of
from evotree.inspection.comparison import compare_models, compare_rows
from evotree.inspection.stability import stability
from evotree.leaf_models import LARGEST_SCORE
from evotree.report import report
from tests.languages import LANGUAGES, Case, run_page
from tests.quick_models import brief

pytestmark = pytest.mark.filterwarnings("error")

NAMES = ["a", "b"]
N_ROWS = 80


class Kind(NamedTuple):
    """A fitted model, or a tree alone, and the rows that it was fitted to."""

    model: Any
    X: pd.DataFrame
    y: Any = None

    @property
    def tree(self):
        return getattr(self.model, "tree_", self.model)

    @property
    def classes(self):
        """The classes as Python's own, None where numbers are predicted."""
        labels = getattr(self.model, "classes_", None)
        return None if labels is None else labels.tolist()


# ---- kinds of leaves -----------------------------------------------------------------------------

LABELS = {
    "0 and 1": [0, 1],
    "truth values": [False, True],
    "words": ["no", "yes"],
    "3 and 7": [3, 7],
    "three numbers": [3, 7, 9],
    "three words": ["red", "green 'o'", "blue"],
}
THREE = [name for name, labels in LABELS.items() if len(labels) == 3]


def rows(seed=0, n=N_ROWS):
    values = np.random.default_rng(seed).uniform(-1.0, 1.0, (n, 2)).round(3)
    return pd.DataFrame(values, columns=NAMES)


def slopes(X):
    """Return targets that are lines on both sides of a split."""
    a, b = X.to_numpy().T
    return np.where(a > 0.0, b, 0.2 - b)


def classes_of(X, labels):
    """Return classes, of two as many as the lines parts, of three those of two cells and a line."""
    values = slopes(X)
    codes = values > 0.0
    if len(labels) == 3:
        codes = np.where(X.a > 0.4, 2, codes)
    return np.array(labels)[codes.astype(int)]


def classified(labels, **parameters):
    X = rows()
    y = classes_of(X, LABELS[labels])
    parameters = {"callbacks": [keep_best_trees], "size_penalty": 0.001} | parameters
    return Kind(brief(EvoTreeClassifier, **parameters).fit(X, y), X, y)


def by_hand(labels):
    model, X, y = classified(labels, leaves="constant")
    leaf = int(model.apply(X)[0])
    before = model.predict(X)[0]
    other = next(label for label in model.classes_ if label != before)
    return Kind(model.edit(X, y).relabel(leaf, other), X, y)


def regressed(n_outputs=1, **parameters):
    X = rows()
    y = slopes(X)
    if n_outputs == 2:
        y = pd.DataFrame({"height": y, "width": X.a**2})
    parameters = {"size_penalty": 0.01} | parameters
    return Kind(brief(EvoTreeRegressor, **parameters).fit(X, y), X, y)


def counts(X):
    rates = np.exp(1.0 + 2.0 * slopes(X))
    return np.random.default_rng(1).poisson(rates).astype(float)


def counted():
    """Fit log-linear leaves to counts, and take the tree of the front that has splits."""
    X = rows(n=300)
    y = counts(X)
    parameters = {"objective": "poisson", "leaves": "linear", "size_penalty": 0.001}
    model = brief(EvoTreeRegressor, **parameters).fit(X, y)
    return Kind(model.select_tree("tree"), X, y)


def agreement(tree, seed):
    X = rows(seed).to_numpy()
    return float((tree.predict_label(X) == (X.sum(axis=1) > 0.2)).mean())


def closeness(tree, seed):
    X = rows(seed)
    return -float(np.abs(tree.predict_value(X.to_numpy())[:, 0] - slopes(X)).mean())


def searched(score, actions, leaves):
    problem = ScoredProblem(
        score=score, actions=actions, box=([-1.0, -1.0], [1.0, 1.0])
    )
    evolution = replace(DEFAULT, population_size=16)
    config = SearchConfig(
        max_generations=5, random_state=0, evolution=evolution, leaves=leaves
    )
    return Kind(search_scores(problem, config).tree, rows())


OF_CLASSES = {
    "soft shares": lambda labels: classified(labels, leaves="constant"),
    "shares": lambda labels: classified(labels, leaves="constant", probability="leaf"),
    "labels by hand": by_hand,
    "a logistic leaf": lambda labels: classified(
        labels, leaves="linear", size_penalty=0.5
    ),
    "logistic leaves": lambda labels: classified(labels, leaves="linear"),
}
KINDS = {
    **{
        f"{kind}, {labels}": lambda kind=kind, labels=labels: OF_CLASSES[kind](labels)
        for kind, labels in product(OF_CLASSES, LABELS)
    },
    "means": lambda: regressed(leaves="constant"),
    "lines": lambda: regressed(leaves="linear"),
    "log-lines": lambda: counted(),
    "means of two outputs": lambda: regressed(2, leaves="constant"),
    "lines of two outputs": lambda: regressed(2, leaves="linear"),
    "actions": lambda: searched(agreement, 2, "constant"),
    "numbers as actions": lambda: searched(closeness, (-1.0, 1.2), "constant"),
    "lines as actions": lambda: searched(closeness, (-1.0, 1.2), "linear"),
}
# Each kind of leaf with each set of labels is slow; without that each has two of them.
_QUICK = {
    f"{kind}, {list(LABELS)[(2 * at + shift) % len(LABELS)]}"
    for at, kind in enumerate(OF_CLASSES)
    for shift in (0, 3)
}


@cache
def kind_of(name):
    return KINDS[name]()


def kinds(*wanted):
    """Return parameters of the kinds whose names have one of some words, or of all."""
    names = [name for name in KINDS if any(word in name for word in wanted or ("",))]
    return [
        name
        if name in _QUICK or name.partition(",")[0] not in OF_CLASSES
        else pytest.param(name, marks=pytest.mark.slow)
        for name in names
    ]


CLASSES = tuple(OF_CLASSES)
FITTED = (*CLASSES, "means", "lines of", "lines")


def every(*wanted, without=()):
    found = [
        one
        for one in kinds(*wanted)
        if not any(
            word in (one if isinstance(one, str) else one.values[0]) for word in without
        )
    ]
    return pytest.mark.parametrize("name", found)


every_kind = every()
every_model = every(without=("actions",))
every_classifier = every(*CLASSES)
one_output = every(without=("actions", "outputs"))


# ---- the same once more, row by row --------------------------------------------------------------


def leaf_of(tree, row):
    k = 0
    while tree.subtree_size[k] > 1:
        goes_left = sum(w * x for w, x in zip(tree.weights[k], row, strict=True))
        k = k + 1 if goes_left <= tree.thresholds[k] else tree.right(k)
    return k


def numbers_of_row(tree, row):
    """Return what a row is predicted: shares, probabilities by scores, or numbers."""
    k = leaf_of(tree, row)
    if tree.models is None:
        return tree.values[k]
    sums = [
        min(
            max(
                one.intercepts[k]
                + sum(w * x for w, x in zip(one.coefficients[k], row, strict=True)),
                one.lowest[k],
            ),
            one.highest[k],
        )
        for one in tree.models.each
    ]
    if tree.models.is_log:
        sums = np.exp(sums).tolist()
    if not tree.models.of_classes:
        return np.array(sums)
    if len(sums) == 2:
        return np.array([expit(sums[0] - sums[1]), expit(sums[1] - sums[0])])
    odds = np.exp(np.array(sums) - max(sums))
    return odds / odds.sum()


def label_of_row(tree, row):
    if tree.models is None and tree.given_labels is not None:
        return int(tree.given_labels[leaf_of(tree, row)])
    return int(np.argmax(numbers_of_row(tree, row)))


def numbers(tree, X):
    return np.array([numbers_of_row(tree, row) for row in np.asarray(X, dtype=float)])


def expected(kind, X, tree=None):
    """Return what a model has to predict by a tree, its own by default."""
    tree = kind.tree if tree is None else tree
    if kind.classes is not None:
        return [
            kind.classes[label_of_row(tree, row)] for row in np.asarray(X, dtype=float)
        ]
    found = numbers(tree, X)
    return found[:, 0] if found.shape[1] == 1 else found


def assert_predicts(model, X, truth, tree=None):
    found = model.predict(X) if tree is None else model.predict(X, tree=tree)
    if is_classifier(model):
        assert found.tolist() == list(truth)
        assert found.dtype == model.classes_.dtype
    else:
        np.testing.assert_allclose(found, truth, rtol=1e-9)


def worth(kind, X, y, tree=None):
    """Return the accuracy or R² of a tree, by what is expected of it."""
    score = accuracy_score if kind.classes is not None else r2_score
    return score(y, expected(kind, X, tree))


def is_of_counts(kind):
    return getattr(kind.model, "objective", None) == "poisson"


def quality(kind, X, y, tree=None):
    """Return the accuracy, R² or the share of Poisson's deviance, by what is expected."""
    if is_of_counts(kind):
        return d2_tweedie_score(y, expected(kind, X, tree), power=1)
    return worth(kind, X, y, tree)


def held_out(kind):
    X = rows(7, 60)
    if is_of_counts(kind):
        return X, counts(X)
    if kind.classes is not None:
        return X, classes_of(X, kind.classes)
    y = slopes(X)
    if np.ndim(kind.y) == 2:
        y = pd.DataFrame({"height": y, "width": X.a**2})
    return X, y


# ---- predictions ---------------------------------------------------------------------------------


def test_kinds_are_what_they_are_called():
    for name in map(str, [one for one in kinds() if isinstance(one, str)]):
        kind = kind_of(name)
        models = kind.tree.models
        assert (models is not None) == ("logistic" in name or "lines" in name), name
        if name.startswith(("soft", "shares", "labels", "logistic leaves")):
            assert kind.tree.n_leaves > 1, name
        if name.startswith("a logistic leaf"):
            assert kind.tree.n_leaves == 1, name


@every_kind
def test_trees_predict(name):
    kind, X = kind_of(name), rows(1).to_numpy()
    np.testing.assert_allclose(kind.tree.predict_value(X), numbers(kind.tree, X))
    if kind.tree.models is None or kind.tree.models.of_classes:
        labels = [label_of_row(kind.tree, row) for row in X]
        assert kind.tree.predict_label(X).tolist() == labels


@every_model
def test_models_predict_and_score(name):
    kind, X = kind_of(name), rows(1)
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
    costs = kind.model.expected_costs()
    assert costs.shape == (kind.tree.n_nodes,) and np.isfinite(costs).all()
    assert (costs >= -1e-9).all() and (costs <= 1.0 + 1e-9).all()
    if kind.tree.models is None:
        shares = kind.tree.values[np.arange(len(costs)), kind.tree.labels]
        np.testing.assert_allclose(costs, 1.0 - shares)


# ---- the front -----------------------------------------------------------------------------------


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
        "chosen",
        "leaves<=2",
        "terms<=2",
        "size<=3",
        "complexity<=4",
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


def load_pickled(model):
    """Return a copy of a model that shares nothing with it."""
    callbacks, model.callbacks = model.callbacks, None
    try:
        return pickle.loads(pickle.dumps(model))
    finally:
        model.callbacks = callbacks


# ---- explanations --------------------------------------------------------------------------------


def outputs_of(kind):
    return kind.tree.output_names or (None,)


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


@every_model
def test_two_rows_of_a_leaf_are_compared_by_one_question(name):
    kind, X = kind_of(name), rows(1, 60)
    if kind.tree.models is None or kind.tree.output_names is not None:
        pytest.skip("nothing but splits, or several outputs")
    leaves, labels = kind.model.apply(X), kind.model.predict(X)
    for a in range(10):
        for b in np.flatnonzero((leaves == leaves[a]) & (labels != labels[a])).tolist():
            terms = compare_rows(kind.model, X.iloc[[a]], X.iloc[[b]]).terms
            gap = terms.weight * (terms.value_b - terms.value_a)
            np.testing.assert_allclose(terms.difference, gap, atol=1e-9)
            if kind.classes is not None and len(kind.classes) == 2:
                assert terms.difference.sum() < 0.0  # less of the class of `a`


@every_model
def test_shapley_values_add_up(name):
    kind, X = kind_of(name), rows(1, 5)
    found = kind.model.shap_values(X, kind.X[:20])
    if kind.classes is None:
        predicted = kind.model.predict(X)
    else:
        predicted = kind.model.predict_proba(X)
    np.testing.assert_allclose(
        found.values.sum(axis=1) + found.base, predicted, atol=1e-9
    )


@every_model
def test_counterfactuals_are_predicted_so(name):
    kind = kind_of(name)
    row = kind.X[:1]
    if kind.classes is not None:
        before = kind.model.predict(row)[0]
        seen = set(kind.model.predict(kind.X).tolist())
        for target in [label for label in kind.classes if label in seen]:
            (found,) = kind.model.counterfactuals(row, target)
            assert kind.model.predict(found.row).tolist() == [target]
            assert (found.distance == 0.0) == (target == before)
        if len(seen) > 1:
            (found,) = kind.model.counterfactuals(row)
            assert kind.model.predict(found.row)[0] != before
        return
    predicted = np.asarray(kind.model.predict(kind.X)).reshape(len(kind.X), -1)
    for at, output in enumerate(outputs_of(kind)):
        far = predicted[np.abs(predicted[:, at] - predicted[0, at]).argmax(), at]
        goal = (far - 0.05, far + 0.05)
        (found,) = kind.model.counterfactuals(row, goal, output=output)
        value = np.asarray(kind.model.predict(found.row)).reshape(1, -1)[0, at]
        assert goal[0] - 1e-9 <= value <= goal[1] + 1e-9


@pytest.mark.parametrize("how", ["impurity", "influence"])
@every_model
def test_importances(name, how):
    shares = kind_of(name).model.importances(how)
    assert shares.shape == (2,) and (shares >= 0.0).all()
    assert shares.sum() == pytest.approx(1.0) or not shares.any()


@every_model
def test_rows_are_compared(name):
    kind = kind_of(name)
    if kind.tree.output_names is not None:
        pytest.skip("of one output alone")
    found = compare_rows(kind.model, kind.X[:1], kind.X[1:2])
    assert found.rows.prediction.tolist() == pytest.approx(
        kind.model.predict(kind.X[:2]).tolist()
    ) or found.rows.prediction.tolist() == list(expected(kind, kind.X[:2]))


@one_output
def test_models_are_compared(name):
    kind = kind_of(name)
    X, y = held_out(kind)
    other = load_pickled(kind.model).select_tree("leaves<=1")
    found = compare_models(kind.model, other, X, y)
    assert found.models.score["a"] == pytest.approx(worth(kind, X, y))
    assert found.models.score["b"] == pytest.approx(worth(kind, X, y, other.tree_))
    if kind.classes is not None:
        apart = np.mean(kind.model.predict(X) != other.predict(X))
        assert found.disagreement == pytest.approx(apart)


# ---- other models from a model -------------------------------------------------------------------


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
        "swap": lambda: editor.swap(k),
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
    for edit, call in edits_of(kind).items():
        made = call()
        assert_predicts(made, X, expected(kind, X, made.tree_))
        if edit == "swap" and "by hand" not in name:
            np.testing.assert_array_equal(made.predict(X), before)
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


# ---- pictures ------------------------------------------------------------------------------------

DRAWN = {
    "class_colors": lambda draw, kind: draw(kind.tree.values.shape[1]),
    "plot_decision_regions": lambda draw, kind: draw(
        kind.model, kind.X, kind.y, resolution=20
    ),
    "plot_evolution": lambda draw, kind: draw(kind.model, kind.X, kind.y, max_frames=2),
    "plot_explanation": lambda draw, kind: draw(
        kind.model.explain(kind.X[:3], output=outputs_of(kind)[0]), 1
    ),
    "plot_learning_curves": lambda draw, kind: draw({"runs": [kind.model]}),
    "plot_stability": lambda draw, kind: draw(
        stability(kind.model, kind.X, kind.y, n=2, random_state=0)
    ),
}
"""How functions are called that take more than a model."""
OF_RUNS = ("plot_learning_curve", "plot_lineage", "plot_pareto")
DRAWS_TREES = ("class_colors", "plot_tree")
OF_CLASSES_ALONE = ("plot_decision_regions", "plot_evolution", "class_colors")
SLOW = ("plot_evolution", "plot_stability")


def pictures():
    """Yield each plot with each kind; those that take long are quick for one kind of a sort."""
    for plot, one in product(evotree.plotting.__all__, kinds()):
        if isinstance(one, str):
            is_quick = plot not in SLOW or one in ("shares, words", "lines")
            is_quick |= plot in SLOW and one == "a logistic leaf, 3 and 7"
            marks = [] if is_quick else [pytest.mark.slow]
            yield pytest.param(one, plot, marks=marks)
        else:
            yield pytest.param(*one.values, plot, marks=one.marks)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "plot"), [*pictures()])
def test_pictures_are_drawn(name, plot):
    kind = kind_of(name)
    if kind.y is None and plot not in DRAWS_TREES:
        pytest.skip("of fitted models")
    if kind.classes is None and plot in OF_CLASSES_ALONE:
        pytest.skip("of classes")
    draw = getattr(evotree.plotting, plot)
    if plot == "plot_survival":
        with pytest.raises(TypeError, match="allowed is a fitted EvoTreeSurvival"):
            draw(kind.model, kind.X, kind.y)
        return
    if plot == "plot_choice" and getattr(kind.model, "choice_", None) is None:
        with pytest.raises(TypeError, match="without a choice"):
            draw(kind.model)
        return
    try:
        found = DRAWN.get(plot, lambda draw, kind: draw(kind.model))(draw, kind)
        if plot == "plot_evolution":
            found._draw_was_started = True  # else matplotlib warns: nobody shows it
        elif plot == "plot_decision_regions":
            assert_regions(kind, found)
        elif plot != "class_colors":
            found.figure.canvas.draw()
    finally:
        plt.close("all")


def assert_regions(kind, ax):
    """Compare the colours of the cells with the classes of their centres."""
    (image,) = ax.get_images()
    cells = np.asarray(image.get_array())
    left, right, bottom, top = image.get_extent()
    across = left + (np.arange(cells.shape[1]) + 0.5) / cells.shape[1] * (right - left)
    upwards = bottom + (np.arange(cells.shape[0]) + 0.5) / cells.shape[0] * (
        top - bottom
    )
    centres = np.stack(np.meshgrid(across, upwards), axis=-1).reshape(-1, 2)
    said = expected(kind, centres)
    colors = [tuple(cell) for cell in cells.reshape(len(said), -1)]
    assert (
        len(set(zip(said, colors, strict=True))) == len(set(said)) == len(set(colors))
    )


@every_model
def test_qualities_of_held_out_rows_are_drawn(name):
    kind = kind_of(name)
    X, y = held_out(kind)
    ax = evotree.plotting.plot_pareto(kind.model, held_out=kind.model._held_out(X, y))
    drawn = [line for line in ax.get_lines() if line.get_label() == "held out"]
    worths = [quality(kind, X, y, tree) for tree in kind.model.pareto_front_]
    np.testing.assert_allclose(drawn[0].get_ydata(), worths)
    plt.close("all")


# ---- exports -------------------------------------------------------------------------------------

PAIRS = {
    "tree": lambda kind: kind.tree,
    "training_rows": lambda kind: getattr(kind.model, "training_rows_", None),
    "soft_sides": lambda kind: getattr(kind.model, "probabilities_", None),
}
"""What is written as plain data and read back."""


def exported(kind, form):
    """Return what an export makes of a kind; None where there is nothing to export."""
    export = getattr(evotree.export, form)
    what, _, way = form.rpartition("_dict")[0].rpartition("_")
    if way in ("to", "from"):
        given = PAIRS[what](kind)
        if given is None:
            return None
        made = getattr(evotree.export, f"{what}_to_dict")(given)
        if way == "to":
            return made
        rest = [kind.tree][: len(inspect.signature(export).parameters) - 1]
        return export(json.loads(json.dumps(made)), *rest)
    if form == "register_onnx" or (form == "to_onnx" and kind.y is None):
        return None
    if form == "coefficient_table" and kind.tree.models is None:
        with pytest.raises(ValueError, match="no linear models"):
            export(kind.model)
        return None
    if form in ("to_onnx", "register_onnx"):
        pytest.importorskip("skl2onnx")
    return export(kind.model)


@pytest.mark.parametrize("form", evotree.export.__all__)
@every_kind
def test_trees_are_exported(name, form):
    kind = kind_of(name)
    made = exported(kind, form)
    if form == "tree_from_dict":
        assert made == kind.tree
    if form.endswith("_to_dict"):
        assert json.loads(json.dumps(made)) == made
    if form == "export_html":
        ElementTree.fromstring(re.sub(r"<details( open)?>", "<details>", made))
    if not isinstance(made, str):
        return
    # Scores of classes have no bounds that anybody reads.
    if kind.tree.models is not None and kind.tree.models.of_classes:
        in_code = form in ("export_python", "export_c", "export_sql")
        assert in_code or not ("within [" in made or f"{LARGEST_SCORE:g}" in made)
    if form in ("export_text", "export_rules", "export_html", "export_graphviz"):
        assert all(f"[{k}]" in made for k in np.flatnonzero(kind.tree.is_leaf))
        for label in map(str, kind.classes or ()):
            assert kind.tree.models is None or label.split("'")[0] in made


def hostile(n=60):
    """Return rows of all sizes, up to such as overflow sums, away from hyperplanes."""
    rng = np.random.default_rng(3)
    tame = rng.uniform(-1.0, 1.0, (n, 2))
    signs = np.array([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]])
    return np.concatenate([tame, 1e3 * tame, 1e308 * signs, 1.7e308 * signs])


@cache
def answers(language, is_slow):
    """Return cases and what a language says of their rows, by the names of the kinds."""
    cases = {}
    for one in kinds():
        name = one if isinstance(one, str) else one.values[0]
        kind = kind_of(name) if is_slow or isinstance(one, str) else None
        # A page is about one output.
        if kind is None or (language == "page" and kind.tree.output_names is not None):
            continue
        tree, classes = kind.tree, kind.classes
        if classes is None and name == "actions":
            classes = list(range(tree.values.shape[1]))
        sides = getattr(kind.model, "probabilities_", None)
        cases[name] = Case(
            (tree,), hostile(), None if classes is None else tuple(classes), sides
        )
    said = LANGUAGES[language](list(cases.values()))
    return {
        name: (case, one) for (name, case), one in zip(cases.items(), said, strict=True)
    }


@pytest.mark.parametrize("language", LANGUAGES)
@every_kind
def test_languages_predict(name, language, request):
    is_slow = request.node.get_closest_marker("slow") is not None
    found = answers(language, is_slow)
    if name not in found:
        pytest.skip("a page is about one output")
    case, said = found[name]
    truth = case.predict()
    if case.classes is None:
        shape = np.shape(truth)
        got = np.array(said.predicted, dtype=float).reshape(shape)
        np.testing.assert_allclose(got, truth, rtol=1e-9, atol=1e-12)
    else:
        assert list(said.predicted) == truth.tolist()
    if said.probabilities is not None:
        np.testing.assert_allclose(
            np.array(said.probabilities, dtype=float), case.predict_proba(), atol=1e-7
        )


@every("lines", "logistic")
def test_tables_of_coefficients_predict(name):
    kind, X = kind_of(name), rows(1, 20)
    table = evotree.export.coefficient_table(kind.model, NAMES)
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


# ---- the page ------------------------------------------------------------------------------------


@one_output
def test_figures_of_a_page(name):
    kind = kind_of(name)
    X, y = held_out(kind)
    data = report(kind.model, X, pd.Series(y, name="target")).data
    front = list(kind.model.pareto_front_)
    if kind.tree not in front:  # a leaf was told by hand what it predicts
        front = None
    for at, shown in enumerate(data["trees"]):
        figures = {one: ours for one, ours, _ in shown["measures"]["figures"]}
        tree = at if front is not None else None
        if front is None and at != data["own"]:
            continue
        if kind.classes is None:
            known = {"R²": r2_score(y, kind.model.predict(X, tree=tree))}
        else:
            shares = kind.model.predict_proba(X, tree=tree)
            known = {
                "accuracy": accuracy_score(y, kind.model.predict(X, tree=tree)),
                "log loss": log_loss(
                    y, np.clip(shares, 1e-15, 1.0), labels=kind.classes
                )
                if (shares > 1e-15).all()
                else figures["log loss"],
            }
        for figure, value in known.items():
            assert figures[figure] == pytest.approx(value), (at, figure)


def kinds_of_pages():
    """Return the kinds of models that pages are about, by name."""
    found = {}
    for one in kinds():
        kind = kind_of(one) if isinstance(one, str) else None
        if kind is not None and kind.y is not None and kind.tree.output_names is None:
            found[one] = kind
    return found


def test_the_script_of_a_page_explains_leaves_as_the_library_does():
    found = [kind for kind in kinds_of_pages().values() if kind.tree.models is not None]
    X = rows(1, 25)
    pages = [report(kind.model, X).data for kind in found]
    for kind, said in zip(
        found, run_page(pages, "model.explain(model.own, x).at(-1).total"), strict=True
    ):
        terms = kind.model.explain(X).terms
        totals = terms[terms.side == "leaf"].groupby("row").total.first()
        np.testing.assert_allclose(
            np.array(said)[totals.index], totals, rtol=1e-3, atol=1e-4
        )


def test_the_script_of_a_page_predicts_by_all_of_its_trees():
    found = kinds_of_pages()
    X = rows(1, 25)
    pages = [report(kind.model, X).data for kind in found.values()]
    said = run_page(
        pages,
        """data.trees.map((tree) =>
        [model.predict(tree, x), data.classes && model.probabilities(tree, x)])""",
    )
    for kind, page, of_rows in zip(found.values(), pages, said, strict=True):
        n_trees = len(page["trees"])
        is_in_front = kind.tree in list(kind.model.pareto_front_)
        for at in range(n_trees):
            if not is_in_front and at != page["own"]:
                continue
            tree = at if is_in_front else None
            predicted, shares = zip(*(trees[at] for trees in of_rows), strict=True)
            truth = kind.model.predict(X, tree=tree)
            if kind.classes is None:
                np.testing.assert_allclose(predicted, truth, rtol=1e-4, atol=1e-6)
                continue
            assert [kind.classes[code] for code in predicted] == truth.tolist()
            exact = kind.model.predict_proba(X, tree=tree)
            np.testing.assert_allclose(np.array(shares), exact, atol=1e-5)


# ---- files and the command line ------------------------------------------------------------------


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
    assert report_of_model(again, X.assign(target=expected(kind, X))).html


@one_output
def test_commands_of_models(name, tmp_path, capsys):
    kind = kind_of(name)
    X = rows(1, 30)
    model, data = str(tmp_path / "model.json"), str(tmp_path / "data.csv")
    save_model(model, kind.model, "target")
    X.assign(target=expected(kind, X)).to_csv(data, index=False)

    def run(*arguments):
        assert main([*map(str, arguments)]) == 0, capsys.readouterr().err
        out, err = capsys.readouterr()
        assert "warning" not in err
        return out, err

    out, err = run("predict", model, data)
    predicted = pd.read_csv(io.StringIO(out)).prediction
    if kind.classes is None:
        np.testing.assert_allclose(predicted, kind.model.predict(X))
        assert "R² 1.0000" in err
    else:
        assert predicted.map(str).tolist() == [*map(str, kind.model.predict(X))]
        assert "accuracy 1.0000" in err
        shares = pd.read_csv(io.StringIO(run("predict", model, data, "--proba")[0]))
        assert shares.columns.tolist() == [*map(str, kind.classes)]
        np.testing.assert_allclose(shares, kind.model.predict_proba(X))
    assert "target" in run("show", model, "--plot", tmp_path / "tree.png")[0]
    assert (tmp_path / "tree.png").stat().st_size > 1000
    for form in ("rules", "dot", "python", "c", "sql"):
        assert run("export", model, "--to", form)[0]
    run("report", model, "--data", data, "--out", tmp_path / "page.html")
    assert "</html>" in (tmp_path / "page.html").read_text("utf-8")
    plt.close("all")


@pytest.mark.parametrize(
    "labels",
    ["0 and 1", *(pytest.param(one, marks=pytest.mark.slow) for one in LABELS), None],
)
def test_the_command_that_fits(labels, tmp_path, capsys):
    X = rows()
    target = slopes(X) if labels is None else classes_of(X, LABELS[labels])
    X.assign(target=target).to_csv(tmp_path / "data.csv", index=False)
    out = tmp_path / "model.json"
    command = ["fit", tmp_path / "data.csv", "--target", "target", "--out", out]
    command += ["--max-generations", 2, "--population-size", 12, "--test-size", 0.3]
    command += ["--size-penalty", 0.001, "--term-penalty", 0.001]
    command += ["--report", tmp_path / "page.html"]
    assert main([*map(str, command)]) == 0, capsys.readouterr().err
    assert "warning" not in capsys.readouterr().err
    model = load_model(out)
    assert np.isfinite(model.predict_proba(X)).all()
    if labels is not None:
        assert set(model.labels) == set(map(str, LABELS[labels]))
    plt.close("all")
