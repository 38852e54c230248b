"""Splits of a start that stay bit for bit, whatever an operator, a run or rounding does."""

import tracemalloc

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_wine

from evotree import EvoTreeClassifier, ObliqueTree, make_toolbox
from evotree.operators.constraints import Held, ShapeLimits, keeps_all, repair
from evotree.operators.initialization.population import ONE_BY_ONE, init_path, init_seed
from evotree.operators.pruning import prune
from evotree.operators.structure.splice import make_individual
from evotree.schema import CategoricalColumn, NumericColumn
from evotree.texts import export_text, splits_of_text
from tests import made_up
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
TREE = ObliqueTree(*splits_of_text(RULES, list(X.columns)), np.zeros((5, 3)))


def assert_holds(tree, start, nodes):
    """Check that a tree has splits of a start on the same paths, bit for bit."""
    pending = [(0, 0)]
    while pending:
        h, k = pending.pop()
        if h in nodes:
            assert (
                tree.subtree_size[k] > 1 and tree.thresholds[k] == start.thresholds[h]
            )
            assert tree.weights[k].tobytes() == start.weights[h].tobytes()
            pending += [(start.left(h), tree.left(k)), (start.right(h), tree.right(k))]


@settings(max_examples=60)
@given(any_populations, seeds, st.data())
def test_held_splits_survive_every_operator(drawn, seed, data):
    dataset, (one, *others) = drawn
    start = dataset.to_raw(one.to_tree())
    inner = np.flatnonzero(~start.is_leaf).tolist()
    assume(inner)
    last = data.draw(st.sampled_from(inner))  # nodes stand below those above them
    held = Held.of(start, [k for k in inner if k <= last], dataset)
    constraints, top = [held], held.scaled
    if data.draw(st.integers(0, 3)):
        constraints.append(
            ShapeLimits(max_leaves=top.n_leaves + data.draw(st.integers(0, 1)))
        )
    parents = [repair(tree, dataset, constraints) for tree in others]
    name = data.draw(
        st.sampled_from(operators_for(dataset, [*OPERATORS, *ONE_BY_ONE, "widths"]))
    )
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
    # There are splits that do not part so few rows.
    few = dataset.take(np.arange(len(dataset.y)) % 3 == 0)
    for tree in (top, others[0]):
        assert held.keeps(repair(make_individual(few, *tree.splits), few, [held]), few)
    assert held.keeps(make_individual(few, *top.splits), few)


RUNS = {
    "rules": {"max_generations": 15},
    "long": {"max_generations": 1000, "evolution__patience": None},
    "digits": {"precision": 1, "evolution__islands": 2},
    "bounds": {"max_leaf_nodes": 4, "min_samples_leaf": 9, "max_split_terms": 2},
    "samples": {"evolution__max_samples": 90},
    "raw": {"evolution__scaling": "common"},
    "nsga2": {"evolution__variation__algorithm": "nsga2"},
    "penalty": {"size_penalty": 0.2},  # at which no split pays
    "default": {"size_penalty": "auto", "term_penalty": "auto"},
}


SLOW = {"long": pytest.mark.slow}


@pytest.mark.parametrize(
    "name", [pytest.param(one, marks=SLOW.get(one, ())) for one in RUNS]
)
def test_held_splits_are_in_all_trees_of_a_run_bit_for_bit(name):
    roots = set()

    def watch(run):
        roots.update(
            (tree.weights[0].tobytes(), tree.thresholds[0]) for tree in run.population
        )

    model = brief(EvoTreeClassifier, population_size=16, start=RULES, hold=[0, 2])
    model.set_params(**RUNS[name], callbacks=[watch]).fit(X, Y)
    assert len(roots) == 1 and model.score(X, Y) > 0.7
    assert name != "long" or model.n_generations_ == 1000
    for tree in [model.tree_, *model.pareto_front_, *model.hall_of_fame_]:
        assert_holds(tree, TREE, [0, 2])
        if name == "bounds":
            assert tree.n_leaves <= 4 and tree.n_node_samples[tree.is_leaf].min() >= 9


def test_a_held_split_stays_where_both_its_sides_have_one_label():
    """Pruning of a finished tree would make one leaf of it."""
    rules = "|--- alcohol <= 11.9\n|   |--- a\n|--- else\n|   |--- b\n"
    model = brief(EvoTreeClassifier, start=rules, hold=[0], leaves="constant")
    model.set_params(size_penalty=0.9, term_penalty=0.0)
    rows = X[Y == 1]
    tree = model.fit(rows, np.arange(len(rows)) % 3 == 0).tree_.validate()
    assert len(tree) == 3 and tree.labels.tolist() == [0, 0, 0]
    assert tree.thresholds[0] == 11.9 and np.flatnonzero(tree.weights[0]).tolist() == [
        0
    ]


def test_a_start_alone_is_the_first_individual_and_is_not_pruned(iris):
    start = ObliqueTree(
        np.zeros((3, 4)), np.zeros(3), np.array([3, 1, 1], dtype=np.int32), None
    )
    start.weights[0, 0], start.thresholds[0] = 1.0, 4.35
    toolbox = make_toolbox(iris, size_penalty=10.0, start=start, random_state=0)
    first = toolbox.population(n=4)[0]
    assert len(first) == 3 and first.origin == "initial"


@pytest.mark.parametrize(
    ("rule", "weights", "threshold"),
    [
        ("hue is red", [-1.0, 0.0], -0.5),
        ("[3] hue is not red", [1.0, 0.0], 0.5),
        ("size - .5 * hue is red < 2e1", [-0.5, 1.0], np.nextafter(20.0, 0.0)),
        ("-size >= 3", [0.0, 1.0], -3.0),
        ("size - .5 * (hue is red) <= 20.", [-0.5, 1.0], 20.0),
        ("+ (hue is red) - -2 * size > 1", [-1.0, -2.0], -1.0 - 2**-52),
        ("- 2 * size + 3 * size <= 1", [0.0, 1.0], 1.0),
    ],
)
def test_rules_written_by_hand_are_read(rule, weights, threshold):
    text = f"|--- {rule}\n|   |--- no\n|--- else\n|   |--- yes\nmissing: size = 3"
    read = splits_of_text(text, ["hue is red", "size"])
    assert read[0][0].tolist() == weights and read[1].tolist() == [threshold, 0.0, 0.0]


@pytest.mark.parametrize("rule", ["u", "not u", "v", "not v"])
def test_both_levels_of_a_category_of_two_may_be_asked_for(rule):
    rows = pd.DataFrame({"c": pd.Categorical(["u", "v"] * 20), "a": np.arange(40.0)})
    text = f"|--- c is {rule}\n|   |--- yes\n|--- else\n|   |--- no"
    model = brief(EvoTreeClassifier, start=text, hold=[0], max_generations=0)
    model.set_params(leaves="constant", evolution__init=[text])
    found = model.fit(rows, rows.c == "u").apply(rows)
    is_asked = (rows.c == rule[-1]) != rule.startswith("not")
    assert (found == np.where(is_asked, 1, 2)).all()


PIECES = [
    *(
        "x",
        "y",
        "2",
        "0.5",
        "",
        " ",
        "'",
        "(",
        ")",
        "[0]",
        "\n",
        "\\n",
        "|",
        "# ",
        "missing: ",
    ),
    *(
        " is ",
        " is not ",
        "not ",
        "is",
        " + ",
        " - ",
        "+ ",
        "-",
        " * ",
        " <= ",
        " > ",
        "else",
    ),
]
hostile_names = st.lists(
    st.lists(st.sampled_from(PIECES), max_size=4).map("".join)
    | st.sampled_from(
        ["x", "2 * x", "+ x", "x is y", "x is not y", "x + y", "(x + y)"]
    ),
    min_size=2,
    max_size=5,
    unique=True,
)


@settings(max_examples=300)
@given(hostile_names, st.data())
def test_rules_of_hostile_names_are_read_back_as_the_same_tree_or_refused(names, data):
    n = len(names)
    weights, thresholds = np.zeros((3, n)), np.zeros(3)
    numbers = st.sampled_from([0.0, 0.0, 1.0, -1.0, 2.0, 0.5, -0.5])
    weights[0] = data.draw(st.lists(numbers, min_size=n, max_size=n).filter(any))
    weights[0] /= np.abs(weights[0]).max()
    thresholds[0] = data.draw(st.sampled_from([0.0, 0.5, -0.5, 1.0, -2.0]))
    size = np.array([3, 1, 1], dtype=np.int32)
    tree = ObliqueTree(weights, thresholds, size, np.eye(2)[[0, 0, 1]])
    columns = tuple(NumericColumn(name, 0.0) for name in names)
    # Features that columns make are written in words, which hand-made ones are not.
    if data.draw(st.booleans()) and len({one.strip() for one in names[1:]}) == n - 1:
        columns = (CategoricalColumn(names[0], tuple(names[1:])),)
        tree = tree.replaced(weights=weights[:, 1:])
        assume(tree.weights.any())
    fitted = made_up.fitted(tree, columns, ["a", "b"])
    names = list(fitted.features)
    text = export_text(fitted)
    try:
        read = splits_of_text(text, names)
    except ValueError:
        return
    X = np.random.default_rng(0).choice([-2.0, -0.5, 0.0, 0.5, 1.0], (99, len(names)))
    indicators = fitted.schema.answers
    X[:, list(indicators)] = np.abs(X[:, list(indicators)]) > 0.5
    np.testing.assert_array_equal(
        ObliqueTree(*read, tree.values).apply(X), tree.apply(X)
    )


def chain(n):
    """Return the rules of a tree of so many splits one below the other."""
    lines = []
    for depth in range(n):
        indent = "|   " * depth
        lines += [
            f"{indent}|--- a <= {depth}",
            f"{indent}|   |--- 0",
            f"{indent}|--- else",
        ]
    return "\n".join([*lines, "|   " * n + "|--- 1"])


def test_deep_rules_are_read():
    weights, thresholds, size = splits_of_text(chain(1200), ["a"])
    assert size[0] == len(size) == 2401 and thresholds[:2400:2].tolist() == list(
        range(1200)
    )


ONE = "|--- {}\n|   |--- 0\n|--- else\n|   |--- 1"
ENDLESS = {
    "text has [0-9]+ characters: allowed are 10000000": "#\n" * 5_000_001,
    "allowed are sums": ONE.format(" is not " * 64_000),
    "numbers of up to 400 digits": ONE.format(f"a <= {'1' * 100_000}x"),
    "with numbers of up": ONE.format(f"{'1' * 401} * a <= 1"),
    "of the features": ONE.format("a + " * 20_000 + "b <= 1"),
    "has the line": "a" * 1_000_000,
    "goes on at 'a'": "|   " * 100_000 + "|--- a",
    "goes on at 'bbb": f"|--- a\n|--- {'b' * 500_000}",
}


@pytest.mark.parametrize("message", ENDLESS)
def test_endless_text_is_refused_in_few_words_and_little_memory(message):
    text = ENDLESS[message]
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match=message) as error:
            splits_of_text(text, ["a", "hue is red"])
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(str(error.value)) < 500
    assert most < 100 * len(text) + 1_000_000


@pytest.mark.parametrize(
    "rule",
    [
        "a <= 1e999",
        "a >= -1e101",
        "1e300 * a + 1e300 * b <= 1e308",
        "1e-101 * a <= 1",
        "1e999 * a - 1e999 * a <= 1",
    ],
)
def test_numbers_that_a_fit_refuses_in_rows_are_refused_in_rules(rule):
    with pytest.raises(ValueError, match="allowed are numbers up to 1e.100"):
        splits_of_text(ONE.format(rule), ["a", "b"])
    read = splits_of_text(ONE.format("1e100 * a + 1e-100 * b < 0"), ["a", "b"])
    assert read[0][0].tolist() == [1e100, 1e-100] and read[1][0] == -5e-324


@pytest.mark.parametrize("sign", ["\n", "\t", "\x1b", "\u202e"])
def test_names_that_are_written_alike_are_refused(sign):
    escaped = sign.encode("unicode_escape").decode()
    text = "|--- a <= 1\n|   |--- no\n|--- else\n|   |--- yes"
    with pytest.raises(ValueError, match="start cannot be read: .* are written alike"):
        splits_of_text(text, ["a", f"b{sign}", f"b{escaped}"], "start")
    weights, *_ = splits_of_text(text, ["a", f"b{sign}", f"c{escaped}"])
    assert weights.shape == (3, 3)


WRONG = {
    "hold names 1: allowed are the splits of start": {"start": RULES, "hold": [1]},
    "hold names True": {"start": RULES, "hold": [True]},
    "lacks 0, which is above 2": {"start": RULES, "hold": [2]},
    "of a start that is given": {"hold": [0]},
    "hold={0: .*'hue'.*}: allowed is a list": {"start": RULES, "hold": {0: ["hue"]}},
    "all its rows on one side": {"start": RULES.replace("13", "99"), "hold": [0]},
    "min_samples_leaf forbids": {
        "start": RULES,
        "hold": [0, 2],
        "min_samples_leaf": 80,
    },
    "interaction_cst forbids": {
        "start": TREE,
        "hold": [0, 2],
        "interaction_cst": [{0, 6}],
    },
    "max_split_terms forbids": {"start": TREE, "hold": [0, 2], "max_split_terms": 1},
    "2 terms: max_split_terms allows 1": {"init": TREE, "max_split_terms": 1},
    "has the split 'salt <= 13': .* 'ash'": {"start": RULES.replace("alcohol", "salt")},
    "start has the split 'alcohol <= x'": {"start": RULES.replace("13", "x")},
    "start has the line": {"start": "if hue > 3 then 4"},
    "start lacks a branch of 'hue <= 3'": {
        "start": "|--- hue <= 3\n|   |--- yes\n|--- else"
    },
    "start is not one tree but is empty": {"start": "missing: "},
    "start is not one tree but goes on at": {"start": "|--- 3\n|--- 4"},
    "start holds 3": {"start": 3},
    r"init names 'x*[.]{3}: allowed are": {"init": "x" * 999},
    "init is not one tree": {"init": RULES * 99},
}


@pytest.mark.parametrize("message", WRONG)
def test_what_cannot_start_or_stay_is_refused(message):
    with pytest.raises(ValueError, match=message) as error:
        brief(EvoTreeClassifier, **WRONG[message]).fit(X, Y)
    assert len(str(error.value)) < 1000


def test_a_start_of_other_columns_or_classes_is_refused():
    model, other = (
        brief(EvoTreeClassifier).fit(rows, Y) for rows in (X, X.iloc[:, :5])
    )
    for start, y, message in (
        (
            model,
            np.array(["a", "b", "c"])[Y],
            r"the classes \[0, 1, 2\]: allowed are \['a', 'b'",
        ),
        (other, Y, "start has the features .*: allowed are"),
        (other.tree_, Y, "start has the number of features 5: allowed are 13"),
        (
            TREE.replaced(values=np.zeros((5, 1))),
            Y,
            "number of values in a leaf 1: allowed are 3",
        ),
    ):
        with pytest.raises(ValueError, match=message):
            brief(EvoTreeClassifier, start=start).fit(X, y)
