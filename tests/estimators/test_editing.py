"""Trees edited by hand: what edits change, what they leave, what they cost, and what is refused."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from sklearn.base import is_classifier
from sklearn.datasets import load_diabetes, load_wine, make_friedman1

from evotree import EvoTreeClassifier, EvoTreeRegressor, LinearLeaves
from evotree.engine.finish import scores_on
from evotree.estimators.editing import finisher_of, fitness_of
from tests.quick_models import brief, outputs

ARRAYS = "weights", "thresholds", "subtree_size", "values", "spread", "weighted_n_node_samples"
ARRAYS += "given_labels", "row_counts"


def mixed():
    """Return rows with a category and missing numbers, and two classes."""
    rng = np.random.default_rng(0)
    n = 200
    age, size = rng.normal(50.0, 10.0, n), rng.normal(3.0, 1.0, n)
    colour = rng.choice(["red", "green", "blue"], n)
    y = np.where(age + 8.0 * (colour == "red") + 6.0 * size > 72.0, "yes", "no")
    size[rng.random(n) < 0.2] = np.nan
    return pd.DataFrame({"age": age, "size": size, "colour": pd.Categorical(colour)}), y


WEIGHTS = np.random.default_rng(3).choice([0.5, 1.0, 3.3], 200)
LINES = load_diabetes(return_X_y=True, as_frame=True)
OUTPUTS = LINES[0], np.column_stack([LINES[1], LINES[0]["bmi"] * 3.0 - LINES[0]["bp"]])
LOW = {"size_penalty": 0.002, "term_penalty": 0.0002}
CASES = {
    "classes": (EvoTreeClassifier, {"leaves": "constant"}, load_wine(return_X_y=True), None),
    "digits": (EvoTreeClassifier, {"precision": 2, "objective": "f1_macro"}, mixed(), None),
    "weights": (EvoTreeClassifier, {"class_weight": "balanced"}, mixed(), WEIGHTS),
    "logistic": (EvoTreeClassifier, {"leaves": "linear"}, mixed(), None),
    "signs": (EvoTreeClassifier, {"monotonic_cst": {"age": 1}, **LOW}, mixed(), None),
    "means": (EvoTreeRegressor, {"leaves": "constant"}, LINES, None),
    "median": (EvoTreeRegressor, {"objective": "absolute_error", **LOW}, LINES, None),
    "lines": (EvoTreeRegressor, {"leaves": LinearLeaves(["bmi", "bp"]), **LOW}, LINES, None),
    "outputs": (EvoTreeRegressor, LOW, OUTPUTS, None),
}
MODELS = {}


def model_of(name):
    """Return a fitted model with at least one split, and its rows."""
    kind, parameters, (X, y), weight = CASES[name]
    if name not in MODELS:
        MODELS[name] = brief(kind, **parameters).fit(X, y, weight)
        if name == "logistic":
            model = MODELS[name]
            few = [k for k, tree in enumerate(model.pareto_front_) if tree.n_leaves > 1]
            model.select_tree(f"leaves<={model.pareto_front_[few[0]].n_leaves}")
            if model.tree_.n_leaves == 1:
                model.tree_ = model.pareto_front_[few[0]]
                model._known_of_front[few[0]].pop("probabilities_", None)
    return MODELS[name], (X, y, weight)


def flat(models):
    """Return the arrays of linear models side by side."""
    return b"" if models is None else np.ascontiguousarray(models.table).tobytes()


def assert_same(one, other):
    """Check that two trees are the same bit for bit, with what their leaves say."""
    for name in ARRAYS:
        first, second = (getattr(tree, name) for tree in (one, other))
        assert (first is None) == (second is None), name
        assert first is None or first.tobytes() == second.tobytes(), name
    assert flat(one.models) == flat(other.models)


def assert_same_model(one, other, X):
    assert_same(one.tree_, other.tree_)
    np.testing.assert_array_equal(outputs(one, X), outputs(other, X))
    np.testing.assert_array_equal(one.training_rows_.means, other.training_rows_.means)
    if not is_classifier(one):
        np.testing.assert_array_equal(one.residual_std_, other.residual_std_)


def splits_of(model):
    return np.flatnonzero(~model.tree_.is_leaf).tolist()


@pytest.mark.parametrize("name", CASES)
def test_a_split_set_to_what_it_is_has_the_leaves_of_the_fit(name):
    model, (X, *known) = model_of(name)
    k = splits_of(model)[-1]
    same = model.edit(X, *known).set_threshold(k, float(model.tree_.thresholds[k]))
    assert_same_model(model, same, X)
    cost = same.edit_cost_
    assert cost.n_moved == cost.n_changed == 0 and cost.score == cost.score_before
    assert cost.objective == cost.objective_before


@settings(max_examples=20)
@given(st.sampled_from(sorted(CASES)), st.data())
def test_an_edit_and_its_undo_give_the_same_arrays(name, data):
    model, (X, *known) = model_of(name)
    tree, before = model.tree_, outputs(model, X)
    k = data.draw(st.sampled_from(splits_of(model)))
    at = float(tree.thresholds[k])
    weights = {int(j): float(tree.weights[k, j]) for j in np.flatnonzero(tree.weights[k])}
    kind = data.draw(st.sampled_from(("threshold", "weights", "term", "swap", "relabel")))
    edit = model.edit(X, *known)
    try:
        if kind == "threshold":
            edited = edit.set_threshold(k, at + data.draw(st.floats(-0.5, 0.5)) * abs(at))
        elif kind == "weights":
            edited = edit.set_weights(
                k, {0: 1.0, 1: 0.5}, threshold=float(X.to_numpy()[:, 0].mean())
            )
        elif kind == "term":
            edited = edit.drop_term(k, min(weights))
        elif kind == "swap":
            edited = edit.swap(k)
        else:
            leaf = int(np.flatnonzero(tree.is_leaf)[0])
            value = (
                model.classes_[0].item() if is_classifier(model) else [1.0] * tree.values.shape[1]
            )
            edited = edit.relabel(leaf, value)
    except (ValueError, AttributeError):
        assume(False)
    assume(len(edited.tree_) == len(tree))  # monotonic leaves that are alike are joined
    back = edited.edit(X, *known)
    undone = {
        "swap": lambda: back.swap(k),
        "relabel": lambda: back.relabel(leaf, None),
    }.get(kind, lambda: back.set_weights(k, weights, threshold=at))()
    assert_same_model(model, undone, X)
    np.testing.assert_array_equal(before, outputs(model, X))
    assert model.edit_cost_ is None and model.tree_ is tree


@pytest.mark.parametrize("name", ["classes", "weights", "means", "lines", "outputs"])
def test_leaves_are_those_of_a_fit_with_the_same_splits(name):
    model, (X, *known) = model_of(name)
    k = splits_of(model)[0]
    away = np.sort(model.encode(X) @ model.tree_.weights[k] - model.tree_.thresholds[k])
    edited = model.edit(X, *known).set_threshold(
        k, float(model.tree_.thresholds[k] + np.abs(away).min() + 0.02 * np.ptp(away))
    )
    tree = edited.tree_
    kind, parameters, *_ = CASES[name]
    fit = {"start": edited, "hold": splits_of(edited), "max_leaf_nodes": tree.n_leaves}
    fitted = brief(kind, **parameters | fit, max_generations=1).fit(X, *known)
    assert_same(fitted.tree_, tree)
    np.testing.assert_array_equal(outputs(fitted, X), outputs(edited, X))


@pytest.mark.parametrize("name", ["classes", "weights", "means"])
def test_prune_and_swap_do_what_they_say_and_costs_are_counted(name):
    model, (X, *known) = model_of(name)
    k = splits_of(model)[-1]
    before, swapped = model.apply(X), model.edit(X, *known).swap(k)
    np.testing.assert_array_equal(model.predict(X), swapped.predict(X))
    assert swapped.edit_cost_.n_moved == 0
    left, tree = model.tree_.left(k), swapped.tree_
    size = int(tree.subtree_size[left])
    inside = (before >= left) & (before < left + int(model.tree_.subtree_size[left]))
    assert (swapped.apply(X)[inside] >= left + size).all()
    pruned = model.edit(X, *known).prune(k)
    cost, n_below = (
        pruned.edit_cost_,
        int(((before >= k) & (before < tree.subtree_size[k] + k)).sum()),
    )
    assert cost.n_moved == n_below
    assert cost.n_changed == int((pruned.predict(X) != model.predict(X)).sum())
    if name != "weights":  # balanced classes count by their weights
        assert cost.score == pytest.approx(pruned.score(X, *known))
    assert cost.complexity_before == model.tree_.complexity
    assert cost.complexity == pruned.tree_.complexity and cost.name == f"prune({k})"
    assert pruned.explain(X).rows.leaf.nunique() == pruned.get_n_leaves()
    assert pruned.pareto_front_.chosen is None or pruned.tree_ in model.pareto_front_


def test_rows_on_the_hyperplane_stay_on_their_side_when_sides_are_swapped():
    model, (X, *known) = model_of("means")
    value = float(np.median(X.bmi))
    edited = model.edit(X, *known).set_weights(0, {"bmi": 1.0}, threshold=value)
    swapped = edited.edit(X, *known).swap(0)
    assert (X.bmi == value).any() and swapped.edit_cost_.n_moved == 0
    np.testing.assert_array_equal(swapped.predict(X), edited.predict(X))
    assert_same(swapped.edit(X, *known).swap(0).tree_, edited.tree_)


def test_labels_set_by_hand_stay_through_other_edits_and_need_no_rows():
    model, (X, *known) = model_of("classes")
    leaf, k = int(np.flatnonzero(model.tree_.is_leaf)[-1]), splits_of(model)[-1]
    for editor in (model.edit(), model.edit(X, *known)):
        by_hand = editor.relabel(leaf, 2)
        assert (by_hand.predict(X)[by_hand.apply(X) == leaf] == 2).all()
    swapped = by_hand.edit(X, *known).swap(k)
    np.testing.assert_array_equal(swapped.predict(X), by_hand.predict(X))
    assert by_hand.edit_cost_.objective < by_hand.edit_cost_.objective_before
    assert by_hand.select_tree("fitness").edit_cost_ is by_hand.edit_cost_  # the same splits
    lines, (X, *known) = model_of("lines")
    leaf = int(np.flatnonzero(lines.tree_.is_leaf)[0])
    edited = lines.edit(X, *known).relabel(leaf, 70.0)
    assert set(edited.predict(X)[edited.apply(X) == leaf]) == {70.0}
    assert edited.residual_std_[leaf] > lines.residual_std_[leaf]


@pytest.mark.parametrize("name", ["weights", "lines", "logistic"])
@pytest.mark.parametrize("noise", [0.0, 3.0])
def test_refit_is_never_below_its_start(name, noise):
    model, (X, *known) = model_of(name)
    for k in splits_of(model):
        edited = model.edit(X, *known).swap(k).set_params(evolution__regularization__noise=noise)
        found = edited.set_params(max_generations=1, evolution__population_size=2).refit(X, *known)
        rows = finisher_of(model, X, *known, None).rows
        trees = found.tree_, edited.tree_
        worth, start = (fitness_of(model, one, scores_on(rows, one)[0]) for one in trees)
        assert worth >= start
        assert np.isfinite(outputs(found, X)).all() and found.edit_cost_ is None


def test_refit_holds_what_it_is_told_to():
    model, (X, *known) = model_of("weights")
    edited = model.edit(X, *known).set_weights(0, {"age": 1.0, "size": 2.0}, threshold=60.0)
    found = edited.refit(X, *known, hold=[0])
    assert (found.tree_.weights[0] == edited.tree_.weights[0]).all()
    again = found.refit(X, *known)
    assert again.evolution.hold == [0] and again.tree_.thresholds[0] == 60.0
    with pytest.raises(ValueError, match=r"prune\(0\) breaks evolution__hold"):
        found.edit(X, *known).prune(0)


X, Y = mixed()
WRONG = {
    r"prune: node=99; allowed are splits of tree_: 0": lambda e: e.prune(99),
    r"prune: node=True": lambda e: e.prune(True),
    r"prune: node=.*; allowed are splits": lambda e: e.prune(len(e.tree) - 1),
    r"relabel: leaf=0; allowed are leaves": lambda e: e.relabel(0, "yes"),
    r"value='maybe': allowed are None and the classes \['no', 'yes'\]": lambda e: e.relabel(
        len(e.tree) - 1, "maybe"
    ),
    r"value=nan: allowed are finite": lambda e: e.set_threshold(0, np.nan),
    r"value='3': allowed are finite": lambda e: e.set_threshold(0, "3"),
    r"no row reaches the nodes \[.*both sides": lambda e: e.set_threshold(0, 1e9),
    r"weights names 'weight': allowed": lambda e: e.set_weights(0, {"weight": 1}, threshold=1),
    r"weights names 77": lambda e: e.set_weights(0, {77: 1.0}, threshold=1.0),
    r"weights\['age'\]=inf": lambda e: e.set_weights(0, {"age": np.inf}, threshold=1.0),
    r"weights=3.0: allowed are mappings": lambda e: e.set_weights(0, 3.0, threshold=1.0),
    r"weights=\{'age': 0\}: at least one": lambda e: e.set_weights(0, {"age": 0}, threshold=1.0),
    r"feature='nothing'|feature names 'nothing'": lambda e: e.drop_term(0, "nothing"),
    r"threshold=None: allowed are finite": lambda e: e.set_weights(0, {"age": 1}, threshold=None),
}


@pytest.mark.parametrize("message", WRONG)
def test_bad_edits_are_refused_and_the_model_stays(message):
    model, (X, *known) = model_of("weights")
    tree, editor = model.tree_, model.edit(X, *known)
    with pytest.raises(ValueError, match=message):
        WRONG[message](editor)
    assert model.tree_ is tree and model.edit_cost_ is None


def test_edits_that_need_rows_or_break_what_was_asked_for_say_so():
    model, (X, *known) = model_of("weights")
    for edit in (lambda e: e.prune(0), lambda e: e.swap(0), lambda e: e.relabel(1, None)):
        with pytest.raises(ValueError, match="needs rows: call model.edit"):
            edit(model.edit())
    with pytest.raises(ValueError, match="X=None, and y was given"):
        model.edit(None, known[0])
    with pytest.raises(ValueError, match=r"y has classes_=\['no'\]: allowed.*\['no', 'yes'\]"):
        model.edit(X, np.full(len(X), "no"))
    bound = brief(EvoTreeClassifier, max_split_terms=1, min_samples_leaf=20).fit(X, known[0])
    with pytest.raises(ValueError, match="max_split_terms allows 1"):
        bound.edit(X, known[0]).set_weights(0, {"age": 1, "size": 2}, threshold=56.0)
    with pytest.raises(ValueError, match="min_samples_leaf"):
        k = splits_of(bound)[-1]  # with leaves below
        projections = (bound.encode(X) @ bound.tree_.weights[k])[bound.apply(X) > k]
        bound.edit(X, known[0]).set_threshold(k, float(np.sort(projections)[2]))
    ordered, rows = model_of("signs")
    with pytest.raises(ValueError, match="without monotonic_cst"):
        ordered.edit(*rows).relabel(len(ordered.tree_) - 1, "no")
    friedman = make_friedman1(60, 6, random_state=0)
    with pytest.raises(ValueError, match="6 features"):
        ordered.edit(*friedman)
