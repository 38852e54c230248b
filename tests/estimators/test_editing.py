"""Trees edited by hand: what edits change, what they leave, what they cost, and what is refused."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from sklearn.base import is_classifier
from sklearn.datasets import load_diabetes, load_wine

from evotree import EvoTreeClassifier, EvoTreeRegressor, LinearLeaves, PenalizedAccuracy
from evotree.engine.finish import scores_on
from evotree.estimators.editing import finisher_of
from evotree.estimators.rows import Beside
from evotree.fitted import fitted_of
from evotree.front import FrontTree
from evotree.texts import export_text
from tests.quick_models import brief, outputs

ARRAYS = (
    "weights",
    "thresholds",
    "subtree_size",
    "values",
    "spread",
    "weighted_n_node_samples",
)
ARRAYS += "given_labels", "row_counts"


def mixed():
    """Return rows with a category and missing numbers, and two classes."""
    rng = np.random.default_rng(0)
    age, size = rng.normal(50.0, 10.0, 200), rng.normal(3.0, 1.0, 200)
    colour = rng.choice(["red", "green", "blue"], 200)
    y = np.where(age + 8.0 * (colour == "red") + 6.0 * size > 72.0, "yes", "no")
    size[rng.random(200) < 0.2] = np.nan
    return pd.DataFrame({"age": age, "size": size, "colour": pd.Categorical(colour)}), y


WEIGHTS = np.random.default_rng(3).choice([0.5, 1.0, 3.3], 200)
LINES = load_diabetes(return_X_y=True, as_frame=True)
OUTPUTS = LINES[0], np.column_stack([LINES[1], LINES[0]["bmi"] * 3.0 - LINES[0]["bp"]])
LOW = {"size_penalty": 0.002, "term_penalty": 0.0002}
CASES = {
    "classes": (
        EvoTreeClassifier,
        {"leaves": "constant"},
        load_wine(return_X_y=True),
        None,
    ),
    "digits": (
        EvoTreeClassifier,
        {"precision": 2, "objective": "f1_macro"},
        mixed(),
        None,
    ),
    "weights": (EvoTreeClassifier, {"class_weight": "balanced"}, mixed(), WEIGHTS),
    "signs": (EvoTreeClassifier, {"monotonic_cst": {"age": 1}, **LOW}, mixed(), None),
    "means": (EvoTreeRegressor, {"leaves": "constant"}, LINES, None),
    "median": (EvoTreeRegressor, {"objective": "absolute_error", **LOW}, LINES, None),
    "lines": (
        EvoTreeRegressor,
        {"leaves": LinearLeaves(["bmi", "bp"]), **LOW},
        LINES,
        None,
    ),
    "outputs": (EvoTreeRegressor, LOW, OUTPUTS, None),
}
MODELS = {}


def model_of(name):
    """Return a fitted model with at least one split, and its rows."""
    kind, parameters, (X, y), weight = CASES[name]
    if name not in MODELS:
        MODELS[name] = brief(kind, **parameters).fit(X, y, weight)
    return MODELS[name], (X, y, weight)


def accuracy_and_parity(counts, leaves):
    predicted = counts.argmax(axis=1)[leaves.leaf]
    group = leaves.extras["sensitive"]
    rates = [predicted[group == one].mean() for one in (0, 1)]
    return counts.max(axis=1).sum() / counts.sum() - abs(rates[0] - rates[1])


def splits_of(model):
    return np.flatnonzero(~model.tree_.is_leaf).tolist()


def assert_same(one, other, X):
    """Check that two models are the same bit for bit, with what goes with their trees."""
    for name in ARRAYS:
        first, second = (getattr(model.tree_, name) for model in (one, other))
        assert (first is None) == (second is None), name
        assert first is None or first.tobytes() == second.tobytes(), name
    if one.tree_.models is not None:
        np.testing.assert_array_equal(one.tree_.models.table, other.tree_.models.table)
    np.testing.assert_array_equal(outputs(one, X), outputs(other, X))
    np.testing.assert_array_equal(one.training_rows_.means, other.training_rows_.means)
    if not is_classifier(one):
        np.testing.assert_array_equal(one.residual_std_, other.residual_std_)


def shown(model, k):
    """Return the threshold that is printed, and the weight that it was divided by."""
    named = fitted_of(model)
    return named.split(k).threshold, named.by_influence(k)[0][0]


@pytest.mark.parametrize("name", CASES)
def test_a_split_set_to_what_it_is_has_the_leaves_of_the_fit(name):
    model, (X, *known) = model_of(name)
    k = splits_of(model)[-1]
    same = model.edit(X, *known).set_threshold(k, shown(model, k)[0])
    assert_same(model, same, X)
    cost = same.edit_cost_
    assert cost.n_moved == cost.n_changed == 0 and cost.score == cost.score_before
    assert cost.objective == cost.objective_before


@settings(max_examples=30)
@given(st.sampled_from(sorted(CASES)), st.data())
def test_an_edit_and_its_undo_give_the_same_arrays(name, data):
    model, (X, *known) = model_of(name)
    tree, before = model.tree_, outputs(model, X)
    k, leaf = data.draw(st.sampled_from(splits_of(model))), len(tree) - 1
    at, part = float(tree.thresholds[k]), data.draw(st.floats(-0.5, 0.5))
    printed, _ = shown(model, k)
    weights = {
        int(j): float(tree.weights[k, j]) for j in np.flatnonzero(tree.weights[k])
    }
    value = (
        model.classes_[0].item()
        if is_classifier(model)
        else [1.0] * tree.values.shape[1]
    )
    middle = float(np.median(model.encode(X)[:, 0]))
    edits = {
        "threshold": lambda editor: editor.set_threshold(
            k, printed + part * abs(printed)
        ),
        "split": lambda editor: editor.set_split(
            k, f"{model.feature_names_[0]} <= {middle!r}"
        ),
        "term": lambda editor: editor.drop_term(k, min(weights)),
        "relabel": lambda editor: editor.relabel(leaf, value),
    }
    undo = {"relabel": lambda editor: editor.relabel(leaf, None)}
    kind = data.draw(st.sampled_from(sorted(edits)))
    try:
        edited = edits[kind](model.edit(X, *known))
    except ValueError:
        assume(False)
    # Leaves with an order that are alike are joined.
    assume(len(edited.tree_) == len(tree))
    terms = [f"{w!r} * {model.feature_names_[j]}" for j, w in weights.items()]
    before_edit = f"{' + '.join(terms).replace('+ -', '- ')} <= {at!r}"
    back = undo.get(kind, lambda editor: editor.set_split(k, before_edit))
    assert_same(model, back(edited.edit(X, *known)), X)
    np.testing.assert_array_equal(before, outputs(model, X))
    assert model.edit_cost_ is None and model.tree_ is tree


@pytest.mark.parametrize("name", ["classes", "weights", "means", "lines", "outputs"])
def test_leaves_are_those_of_a_fit_with_the_same_splits(name):
    model, (X, *known) = model_of(name)
    (k, *_), (kind, parameters, *_) = splits_of(model), CASES[name]
    away = (
        model.encode(X, bends=True) @ model.tree_.weights[k] - model.tree_.thresholds[k]
    )
    further = float(
        model.tree_.thresholds[k] + np.abs(away).min() + 0.02 * np.ptp(away)
    )
    edited = model.edit(X, *known).set_threshold(k, further / shown(model, k)[1])
    fit = {
        "start": edited,
        "hold": splits_of(edited),
        "max_leaf_nodes": edited.get_n_leaves(),
    }
    assert_same(
        brief(kind, **parameters | fit, max_generations=1).fit(X, *known), edited, X
    )


@pytest.mark.parametrize("name", ["classes", "weights", "means"])
def test_edits_do_what_they_say_and_costs_are_counted(name):
    model, (X, *known) = model_of(name)
    k, before = splits_of(model)[-1], model.apply(X)
    pruned = model.edit(X, *known).prune(k)
    cost, end = pruned.edit_cost_, k + int(model.tree_.subtree_size[k])
    assert cost.n_moved == ((before >= k) & (before < end)).sum()
    assert cost.n_changed == (pruned.predict(X) != model.predict(X)).sum()
    if name != "weights":  # balanced classes count by their weights
        assert cost.score == pytest.approx(pruned.score(X, *known))
    assert cost.complexity_before == model.tree_.complexity
    assert cost.complexity == pruned.tree_.complexity and cost.name == f"prune({k})"
    assert pruned.explain(X).rows.leaf.nunique() == pruned.get_n_leaves()


def test_labels_set_by_hand_stay_through_other_edits():
    model, (X, *known) = model_of("classes")
    leaf, k = len(model.tree_) - 1, splits_of(model)[-1]
    by_hand = model.edit(X, *known).relabel(leaf, 2)
    same = by_hand.edit(X, *known).set_threshold(k, shown(model, k)[0])
    assert (same.predict(X)[same.apply(X) == leaf] == 2).all()
    np.testing.assert_array_equal(same.predict(X), by_hand.predict(X))
    assert by_hand.edit_cost_.objective < by_hand.edit_cost_.objective_before


@pytest.mark.parametrize("name", ["classes", "weights", "means", "lines"])
def test_a_leaf_relabelled_by_hand_makes_another_tree(name):
    model, (X, *known) = model_of(name)
    leaf = int(np.bincount(model.apply(X)).argmax())
    value = 12.5
    if is_classifier(model):
        said = model.predict(X)[model.apply(X) == leaf][0]
        value = next(one for one in model.classes_ if one != said)
    edited = model.edit(X, *known).relabel(leaf, value)
    front = edited.pareto_front_
    assert edited.tree_ not in front and front.chosen is None
    assert (edited.predict(X) != model.predict(X)).any()
    chosen = edited.select_tree("chosen")
    assert chosen.tree_ in front and chosen.pareto_front_.chosen is not None
    assert not np.array_equal(
        chosen.predict(X)[chosen.apply(X) == leaf],
        np.full(np.count_nonzero(chosen.apply(X) == leaf), value),
    )


def test_edit_and_refit_take_the_column_that_the_objective_asks_for():
    X, y = mixed()
    group = (X["age"] > 50.0).to_numpy(dtype=int)
    model = brief(objective=accuracy_and_parity).fit(X, y, sensitive=group)
    k = splits_of(model)[-1]
    same = model.edit(X, y, sensitive=group).set_threshold(k, shown(model, k)[0])
    assert_same(model, same, X)
    assert same.refit(X, y, sensitive=group).edit_cost_ is None


@pytest.mark.slow
@pytest.mark.parametrize("name", ["weights", "lines"])
@pytest.mark.parametrize("noise", [0.0, 3.0])
def test_refit_is_never_below_its_start(name, noise):
    model, (X, *known) = model_of(name)
    rows = finisher_of(model, X, known[0], Beside(known[1])).rows
    fitness = PenalizedAccuracy(model.size_penalty_, model.term_penalty_)
    for k in splits_of(model):
        edited = model.edit(X, *known).set_threshold(k, shown(model, k)[0])
        edited.set_params(
            max_generations=1,
            evolution__population_size=2,
            evolution__regularization__noise=noise,
        )
        found = edited.refit(X, *known)
        ends = (
            FrontTree.of(one, scores_on(rows, one)[0], "")
            for one in (edited.tree_, found.tree_)
        )
        before, after = map(fitness, ends)
        assert after >= before and found.edit_cost_ is None
        assert np.isfinite(outputs(found, X)).all()


def test_refit_holds_what_it_is_told_to():
    model, (X, *known) = model_of("weights")
    edited = model.edit(X, *known).set_split(0, "age + 2 * size <= 60")
    found = edited.refit(X, *known, hold=[0]).refit(X, *known)
    assert str(found.get_params()) == str(edited.get_params())
    assert (found.tree_.weights[0] == edited.tree_.weights[0]).all()
    assert found.tree_.thresholds[0] == 60.0
    with pytest.raises(ValueError, match=r"prune\(0\) breaks evolution__hold"):
        found.edit(X, *known).prune(0)


WRONG = {
    r"prune: node=99; allowed are splits of tree_: 0": lambda e: e.prune(99),
    r"prune: node=True": lambda e: e.prune(True),
    r"relabel: leaf=0; allowed are leaves": lambda e: e.relabel(0, "yes"),
    r"'maybe': allowed are None and the classes \['no'": lambda e: e.relabel(
        len(e.tree) - 1, "maybe"
    ),
    r"value=nan: allowed are numbers": lambda e: e.set_threshold(0, np.nan),
    r"value='3': allowed are numbers": lambda e: e.set_threshold(0, "3"),
    r"no row reaches the nodes \[.*both sides": lambda e: e.set_threshold(0, 1e9),
    r"the split 'Age <= 1' \(did you mean 'age'\?\): allowed": lambda e: e.set_split(
        0, "Age <= 1"
    ),
    r"1e300 \* age <= 1': allowed are numbers up to 1e\+100": lambda e: e.set_split(
        0, "1e300 * age <= 1"
    ),
    r"split=3.0: allowed are texts": lambda e: e.set_split(0, 3.0),
    r"the split '0 \* age <= 1': allowed are sums": lambda e: e.set_split(
        0, "0 * age <= 1"
    ),
    r"feature names 'aeg' \(did you mean 'age'\?\)": lambda e: e.drop_term(0, "aeg"),
    r"feature names 'nothing'": lambda e: e.drop_term(0, "nothing"),
    r"y has classes_=\['no'\]: .*\['no', 'yes'\]": lambda e: e.model.edit(
        mixed()[0], ["no"] * 200, WEIGHTS
    ),
}


@pytest.mark.parametrize("message", WRONG)
def test_bad_edits_are_refused_and_the_model_stays(message):
    model, (X, *known) = model_of("weights")
    tree, editor = model.tree_, model.edit(X, *known)
    with pytest.raises(ValueError, match=message):
        WRONG[message](editor)
    assert model.tree_ is tree and model.edit_cost_ is None


def test_edits_that_break_what_was_asked_for_are_refused():
    X, y = mixed()
    bound = brief(EvoTreeClassifier, max_split_terms=1, min_samples_leaf=20).fit(X, y)
    k = splits_of(bound)[-1]  # with leaves below
    third = float(
        np.sort((bound.encode(X) @ bound.tree_.weights[k])[bound.apply(X) > k])[2]
    )
    with pytest.raises(ValueError, match="max_split_terms allows 1"):
        bound.edit(X, y).set_split(0, "age + 2 * size <= 56")
    with pytest.raises(ValueError, match="min_samples_leaf"):
        bound.edit(X, y).set_threshold(k, third / shown(bound, k)[1])
    ordered, rows = model_of("signs")
    with pytest.raises(ValueError, match="without monotonic_cst"):
        ordered.edit(*rows).relabel(len(ordered.tree_) - 1, "no")
    with pytest.raises(ValueError, match="features"):
        ordered.edit(np.zeros((60, 6)), y[:60])


def test_a_text_does_not_call_chosen_what_was_made_by_hand():
    X, y = load_wine(return_X_y=True)
    quick = {"leaves": "constant", "max_generations": 2}
    model = EvoTreeClassifier(**quick, random_state=0).fit(X, y)
    assert "# chosen: " in export_text(model) and model.get_n_leaves() > 1
    leaf = int(model.apply(X)[0])
    label = next(one for one in model.classes_ if one != model.predict(X)[0])
    made = model.edit(X, y).relabel(leaf, label)
    assert "# chosen: " not in export_text(made)
    assert "# chosen: " in export_text(model)
