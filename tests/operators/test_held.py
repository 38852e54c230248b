"""Splits of a start that stay bit for bit, whatever an operator, a run or rounding does."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_diabetes, load_wine
from sklearn.tree import DecisionTreeClassifier

from evotree import Evolution, EvoTreeClassifier, EvoTreeRegressor, ObliqueTree, make_toolbox
from evotree.description.reading import splits_of_text
from evotree.export import export_text
from evotree.operators.constraints.base import keeps_all, repair
from evotree.operators.constraints.held import Held
from evotree.operators.constraints.limits import Limits
from evotree.operators.initialization.seeding import ONE_BY_ONE, init_path, init_seed
from evotree.operators.pruning.penalized import prune
from tests.quick_models import brief
from tests.strategies import (
    OPERATORS,
    any_populations,
    apply_operator,
    assert_sound,
    operators_for,
    seeds,
    stream_of,
)

X, Y = load_wine(return_X_y=True, as_frame=True)
RULES = """
|--- alcohol <= 13
|   |--- whatever
|--- else
|   |--- flavanoids - 0.5 * hue > 1.25
|   |   |--- a
|   |--- else
|   |   |--- b
"""


def assert_holds(tree, start, nodes):
    """Check that a tree has splits of a start on the same paths, bit for bit."""
    pending = [(0, 0)]
    while pending:
        h, k = pending.pop()
        if h in nodes:
            assert tree.subtree_size[k] > 1
            assert tree.weights[k].tobytes() == start.weights[h].tobytes()
            assert tree.thresholds[k] == start.thresholds[h]
            pending += [(start.left(h), tree.left(k)), (start.right(h), tree.right(k))]


def held_of(individual, dataset, seed):
    """Return the constraint that some splits of an individual stay, with all above them."""
    start = dataset.to_raw(individual.to_tree())
    inner, rng = np.flatnonzero(~start.is_leaf).tolist(), np.random.default_rng(seed)
    assume(inner)
    nodes = [0]
    for k in inner:
        nodes += [c for c in (start.left(k), start.right(k)) if c in inner and rng.random() < 0.5]
    nodes = [
        k for k in nodes if all(p in nodes for p in inner if p < k < p + start.subtree_size[p])
    ]
    try:
        return Held.of(start, nodes, dataset), nodes
    except ValueError:
        assume(False)


@settings(max_examples=60)
@given(any_populations, seeds, st.data())
def test_held_splits_survive_every_operator_and_what_is_kept_stays(drawn, seed, data):
    dataset, (one, *others) = drawn
    held, nodes = held_of(one, dataset, seed)
    constraints, top = [held], held.scaled
    if data.draw(st.integers(0, 3)):
        constraints.append(Limits(max_leaves=top.n_leaves + data.draw(st.integers(0, 1))))
    parents = [repair(tree, dataset, constraints) for tree in others]
    name = data.draw(st.sampled_from(operators_for(dataset, [*OPERATORS, *ONE_BY_ONE, "widths"])))
    if name == "widths":
        children = init_path(dataset, 0.01, 0, stream_of(seed))
    elif name in ONE_BY_ONE and data.draw(st.booleans()) or name not in OPERATORS:
        children = [init_seed(dataset, 0.001, name, stream_of(seed))]
    else:
        children = apply_operator(name, *parents, dataset, stream_of(seed))
    pruned = prune(parents[0].clone(), dataset, 0.05, 0.01)[0]
    for tree in [*parents, *children, pruned]:
        repair(tree, dataset, constraints)
        assert keeps_all(tree, dataset, constraints)
        assert_sound(tree, dataset)
        assert_holds(tree, top, np.flatnonzero(~top.is_leaf).tolist())
        again = tree.clone()
        assert repair(again, dataset, constraints) == tree
    assert held.places_in(one) == sorted(nodes)


RUNS = {
    "rules": {"max_generations": 15},
    "digits": {"precision": 1, "evolution__islands": 2},
    "bounds": {
        "evolution__start": RULES,
        "max_leaf_nodes": 4,
        "min_samples_leaf": 9,
        "max_split_terms": 2,
    },
    "samples": {"evolution__max_samples": 90},
    "raw": {"evolution__scaling": "common"},
    "nsga2": {"evolution__variation__algorithm": "nsga2"},
    "penalty": {"size_penalty": 0.2},  # at which no split pays
    "axis": {"evolution__start": DecisionTreeClassifier(max_depth=2, random_state=0).fit(X, Y)},
    "default": {"size_penalty": "auto", "term_penalty": "auto"},
}


@pytest.mark.parametrize("name", RUNS)
def test_held_splits_are_in_all_trees_of_a_run_bit_for_bit(name):
    root_alone = name == "axis"
    hold = [0] if root_alone else [0, 2]
    roots = set()

    def watch(run):
        roots.update((tree.weights[0].tobytes(), tree.thresholds[0]) for tree in run.population)

    model = brief(EvoTreeClassifier, population_size=16, start=RULES, hold=hold).set_params(
        **RUNS[name]
    )
    model.set_params(callbacks=[watch]).fit(X, Y)
    assert len(roots) == 1
    start = ObliqueTree(np.zeros((5, X.shape[1])), np.zeros(5), np.array([5, 1, 3, 1, 1]), None)
    if root_alone:
        cart = RUNS[name]["evolution__start"].tree_
        start.weights[0, cart.feature[0]] = 1.0
        start.thresholds[0] = model.tree_.thresholds[0]  # of double precision
        assert start.thresholds[0] == pytest.approx(cart.threshold[0])
    else:
        names = list(X.columns)
        start.weights[0, names.index("alcohol")], start.thresholds[0] = 1.0, 13.0
        start.weights[2, [names.index("flavanoids"), names.index("hue")]] = -1.0, 0.5
        start.thresholds[2] = np.nextafter(-1.25, -np.inf)
    for tree in [model.tree_, *model.pareto_front_, *model.hall_of_fame_]:
        assert_holds(tree, start, [0] if root_alone else [0, 2])
        if name == "bounds":
            assert tree.n_leaves <= 4 and tree.n_node_samples[tree.is_leaf].min() >= 9
    assert model.score(X, Y) > 0.7


def test_a_start_alone_is_the_first_individual_and_is_not_pruned(iris):
    start = ObliqueTree(
        np.array([[1.0, 0, 0, 0], [0, 0, 0, 0], [0, 1.0, 0, 0], [0] * 4, [0] * 4]),
        np.array([5.8, 0.0, 3.0, 0.0, 0.0]),
        np.array([5, 1, 3, 1, 1], dtype=np.int32),
        np.zeros((5, 3)),
    )
    toolbox = make_toolbox(iris, size_penalty=10.0, start=start, random_state=0)
    first = toolbox.population(n=4)[0]
    assert len(first) == 5 and first.origin == "initial"
    model = brief(EvoTreeClassifier, start=start, max_generations=0, size_penalty=10.0)
    assert model.fit(iris.raw, iris.classes[iris.y]).tree_.n_leaves == 1


def test_columns_of_a_node_are_fitted_once_and_stay():
    for hold, used in (({0: ["alcohol"]}, [0]), ({0: [0, "ash"]}, [0, 2])):
        model = brief(EvoTreeClassifier, hold=hold).fit(X, Y)
        for tree in model.pareto_front_:
            assert np.flatnonzero(tree.weights[0]).tolist() == used
    rules = brief(EvoTreeClassifier, start=RULES, hold={0: None, 2: ["hue"]}).fit(X, Y)
    assert rules.tree_.thresholds[0] == 13.0
    assert np.flatnonzero(rules.tree_.weights[rules.tree_.right(0)]).tolist() == [10]
    lines = brief(EvoTreeRegressor, hold={0: ["age"]}).fit(
        *load_diabetes(return_X_y=True, as_frame=True)
    )
    assert np.flatnonzero(lines.tree_.weights[0]).tolist() == [0] and lines.tree_.models is not None


@settings(max_examples=30)
@given(any_populations)
def test_rules_read_back_are_the_tree(drawn):
    dataset, individuals = drawn
    names = ["a + b", "2 * c", "d <= 1", "is not e", "f is 'x'", "-g"][: dataset.X.shape[1]]
    for individual in individuals:
        weights, thresholds, size = individual.splits
        splits = np.round(weights, 2) + 0.0, np.round(thresholds, 3) + 0.0, size
        assume((splits[0][size > 1] != 0.0).any(axis=1).all())
        scale = np.array([abs(w[np.argmax(np.abs(w))]) or 1.0 for w in splits[0]])
        tree = ObliqueTree(
            np.round(splits[0] / scale[:, None], 3), splits[1], size, np.ones((len(size), 1))
        )
        text = export_text(tree, names)
        back = ObliqueTree(*splits_of_text(text, names), tree.values)
        assert export_text(back, names) == text
        assert back == tree


def test_answers_about_categories_are_read_back():
    rng = np.random.default_rng(0)
    colour, size = rng.choice(["red", "blue", "grey"], 90), rng.normal(size=90)
    size[::7] = np.nan
    rows = pd.DataFrame({"colour": pd.Categorical(colour), "size": size})
    y = (colour == "red") ^ (rng.random(90) < 0.05)
    for rule in (
        "colour is red",
        "colour is not red",
        "size is missing",
        "size + 2 * colour is red > 1.5",
    ):
        text = f"|--- {rule}\n|   |--- [1] class: no\n|--- else\n|   |--- [2] class: yes\n"
        model = brief(EvoTreeClassifier, start=text, hold=[0], max_leaf_nodes=2).fit(rows, y)
        lines = export_text(model).splitlines()
        assert lines[0] == f"|--- [0] {rule}".replace("> 1.5", "<= 1.5") or ">" in rule
        again = brief(EvoTreeClassifier, start=export_text(model), hold=[0], max_leaf_nodes=2)
        np.testing.assert_array_equal(again.fit(rows, y).apply(rows), model.apply(rows))


DEEP = RULES.replace("alcohol <= 13", "alcohol <= 99")
WRONG = {
    "hold names 1: allowed are the splits of start": {"start": RULES, "hold": [1]},
    "hold names True": {"start": RULES, "hold": [True]},
    "lacks 0, which is above 2": {"start": RULES, "hold": [2]},
    "without start": {"hold": [0]},
    "hold.0. names 'weight'": {"start": RULES, "hold": {0: ["weight"]}},
    "all its rows on one side": {"start": DEEP, "hold": [0]},
    "min_samples_leaf forbids": {"start": RULES, "hold": [0, 2], "min_samples_leaf": 80},
    "max_depth, .* forbids": {"start": RULES, "hold": [0, 2], "max_depth": 1},
    "interaction_cst forbids": {
        "start": RULES, "hold": [0, 2], "interaction_cst": "no_interactions"
    },
    "max_split_terms forbids": {"start": RULES, "hold": [0, 2], "max_split_terms": 1},
    "where leaves are logistic": {"start": RULES, "hold": [0], "leaves": "linear"},
    "start has the split 'weight <= 3': .* 'alcohol'": {
        "start": RULES.replace("alcohol <= 13", "weight <= 3")
    },
    "start has the split 'hue <= x'": {"start": RULES.replace("alcohol <= 13", "hue <= x")},
    "start has the line": {"start": "if hue > 3 then 4"},
    "start lacks a node": {"start": "|--- hue <= 3\n|   |--- yes\n|--- else"},
    "start has no else": {"start": "|--- hue <= 3\n|   |--- yes"},
    "start goes on after": {"start": "|--- 3\n|--- 4"},
    "start holds 3": {"start": 3},
}  # fmt: skip


@pytest.mark.parametrize("message", WRONG)
def test_what_cannot_start_or_stay_is_refused(message):
    model = brief(EvoTreeClassifier, **WRONG[message])
    with pytest.raises(ValueError, match=message):
        model.fit(X, Y)
    assert not hasattr(model, "tree_")


def test_a_start_of_other_columns_or_classes_is_refused():
    model, other = (brief(EvoTreeClassifier).fit(rows, Y) for rows in (X, X.iloc[:, :5]))
    labels = np.array(["a", "b", "c"])[Y]
    for start, y, message in (
        (model, labels, r"start has the classes \[0, 1, 2\]: allowed are \['a', 'b', 'c'\]"),
        (other, Y, "start has the features .*: allowed are"),
        (other.tree_, Y, "start has 5 features: allowed are 13"),
    ):
        with pytest.raises(ValueError, match=message):
            brief(EvoTreeClassifier, start=start).fit(X, y)
    with pytest.raises(ValueError, match="start has 3 values in a leaf: allowed are 1"):
        brief(EvoTreeRegressor, start=model.tree_).fit(X, Y * 1.0)
    with pytest.raises(ValueError, match="'hold' parameter of Evolution"):
        Evolution(hold="0")
