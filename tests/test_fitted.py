"""What is known of a fitted tree: files keep it, columns say it, and rows are no part of it."""

import json
import pickle
from dataclasses import asdict, replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from evotree import (
    Cost,
    EvoTreeClassifier,
    EvoTreeRegressor,
    load_model,
    save_model,
)
from evotree.fitted import summarize
from evotree.schema import (
    ABOVE,
    BELOW,
    LOG,
    Bend,
    CategoricalColumn,
    NumericColumn,
    Schema,
)
from evotree.texts import export_text
from tests.quick_models import FREE, brief, evolved
from tests.random_trees import random_tree

# ---- files ---------------------------------------------------------------------------------------

RNG = np.random.default_rng(0)
X = pd.DataFrame(RNG.normal(size=(120, 3)).round(2), columns=["a", "b", "c"])
LABELS = np.where(X.a + X.b > 0.0, "yes", "no")
TARGETS = (X.a.clip(lower=0.0) + 0.1 * RNG.normal(size=120)).to_numpy()
EXPOSURE = RNG.uniform(0.5, 2.0, 120)
MATRIX = ((0.0, 1.0), (5.0, 0.0))
PRICES = {"a": 0.1, ("b", "c"): 0.2}
COST = {"objective": Cost(MATRIX, PRICES)}

FITS = {
    "classes": (evolved(EvoTreeClassifier, **FREE), LABELS, {}),
    "numbers": (evolved(EvoTreeRegressor, **FREE), TARGETS, {}),
    "counts": (
        evolved(EvoTreeRegressor, **FREE, objective="poisson"),
        RNG.poisson(EXPOSURE * np.exp(X.a)),
        {"exposure": EXPOSURE},
    ),
    "costs": (evolved(EvoTreeClassifier, **FREE, **COST), LABELS, {}),
    "signs": (
        brief(EvoTreeRegressor, monotonic_cst={"a": 1, "c": -1}),
        TARGETS,
        {"sample_weight": EXPOSURE, "groups": np.arange(120) // 3},
    ),
}


@pytest.mark.parametrize("name", FITS)
def test_a_file_knows_what_the_fit_was_given_and_chose(name, tmp_path):
    model, y, beside = FITS[name]
    model.fit(X, y, **beside)
    save_model(tmp_path / "model.json", model)
    again = load_model(tmp_path / "model.json")
    (member,) = again.members
    # The choice stands in the summary.
    assert again.rules() == export_text(replace(model.fitted_, choice=None))
    assert ("\nchosen " in again.summary()) == (name != "signs")
    arguments = member.arguments
    assert asdict(arguments) == asdict(model.fitted_.arguments)
    assert arguments.penalties == (model.size_penalty_, model.term_penalty_)
    assert arguments.has_weights == ("sample_weight" in beside)
    assert arguments.has_groups == ("groups" in beside)
    assert arguments.has_exposures == ("exposure" in beside)
    assert arguments.signs == ({"a": 1, "c": -1} if name == "signs" else {})
    assert arguments.cost_matrix == (MATRIX if name == "costs" else None)
    prices = {
        columns if len(columns) > 1 else columns[0]: price
        for columns, price in arguments.cost_of_columns
    }
    assert prices == (PRICES if name == "costs" else {})
    np.testing.assert_equal(member.costs, model.fitted_.costs)


# ---- columns -------------------------------------------------------------------------------------

KNOTS = st.sampled_from([1.0, 0.5, 52.0])
BENDS = st.builds(Bend, st.sampled_from((ABOVE, BELOW, LOG)), KNOTS)
NAMES = st.sampled_from(["a", "b", "log(a)", "a above 1", "a is missing", "'a'"])
LEVELS = st.sampled_from(["x", "missing", "'x'", "not x", "above 1", None])


@st.composite
def schemas(draw):
    """Draw columns whose features have names that clash."""
    columns = []
    for name in draw(st.lists(NAMES, min_size=1, max_size=5, unique=True)):
        if draw(st.booleans()):
            levels = draw(st.lists(LEVELS, max_size=3, unique=True))
            columns.append(CategoricalColumn(name, tuple(levels)))
            continue
        bends = draw(st.lists(BENDS, max_size=3, unique_by=lambda one: one.named("")))
        columns.append(
            NumericColumn(name, 1.0, draw(st.booleans()), bends=tuple(bends))
        )
    return Schema(tuple(columns))


def features_of(column):
    """Return the features of a column: the end of the name, and the bend or level."""
    if isinstance(column, CategoricalColumn):
        shown = {None: "missing", "missing": "'missing'", "'x'": "\"'x'\""}
        return [shown.get(level, level) for level in column.levels]
    return [None, *column.bends, *(["missing"] if column.indicator else [])]


def name_of(column, asked):
    """Return the name of a feature by that of its column."""
    if isinstance(asked, str):
        return f"{column} is {asked}"
    if asked is None:
        return column
    if asked.kind == LOG:
        return f"log({column})"
    return f"{column} {asked.kind} {asked.knot:g}"


@given(schemas())
@example(Schema((NumericColumn("a", 1.0, True), NumericColumn("a is missing", 0.0))))
def test_a_schema_says_what_loops_over_its_columns_do(schema):
    made = [(c, one) for c, column in enumerate(schema) for one in features_of(column)]
    plain = [name_of(schema[c].name, one) for c, one in made]
    names, answers, bends = [], {}, {}
    for j, (c, asked) in enumerate(made):
        column = schema[c]
        own = [at for at, (of, _) in enumerate(made) if of == c]
        is_clear = asked is None or plain.count(plain[j]) == 1
        shown = column.name if is_clear else repr(column.name)
        names.append(name_of(shown, asked))
        if isinstance(asked, str):
            answers[j] = names[j], f"{shown} is not {asked}"
        if isinstance(asked, Bend):
            bends[j] = own[0], asked
    assert schema.features == tuple(names)
    assert schema.column_of.tolist() == [c for c, _ in made]
    assert (schema.answers, schema.bends) == (answers, bends)
    assert schema.read_by_code == [j for j in range(len(made)) if j not in bends]
    straight = (
        replace(column, bends=()) if isinstance(column, NumericColumn) else column
        for column in schema
    )
    assert Schema(tuple(straight)).with_shapes(schema.shapes) == schema
    data = json.loads(json.dumps([asdict(column) for column in schema]))
    assert Schema.from_data(data) == schema


# ---- rows ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [EvoTreeClassifier, EvoTreeRegressor])
def test_a_fitted_tree_holds_no_rows(kind):
    """Twenty times the rows, of which the tree is as small."""
    sizes = []
    for n in (100, 2000):
        rows = np.random.default_rng(0).normal(size=(n, 3))
        y = rows[:, 0] > 0.0 if kind is EvoTreeClassifier else rows[:, 0].round()
        model = brief(kind, max_leaf_nodes=2).fit(rows, y)
        assert model.fitted_.each  # which is kept once it is computed
        sizes.append([len(pickle.dumps(one)) for one in (model.fitted_, model)])
    for small, large in zip(*sizes, strict=True):
        assert large <= 1.5 * small


@pytest.mark.parametrize("seed", range(4))
def test_training_rows_count_by_weight_and_empty_nodes_have_the_means_of_their_parents(
    seed,
):
    random = np.random.default_rng(seed)
    tree = random_tree(random, 4)
    X = random.integers(0, 5, (6, 4)).astype(float)
    weight = random.integers(1, 4, 6).astype(float)
    found = summarize(tree, X, weight)
    mean = np.average(X, axis=0, weights=weight)
    np.testing.assert_allclose(found.means[0], mean)
    away = (X - mean) @ tree.weights[0]
    spread = np.sqrt(np.average(away**2, weights=weight))
    assert found.spreads[0] == pytest.approx(spread)
    is_reached = tree.decision_path(X).toarray().any(axis=0)
    assert not is_reached.all()
    for k in np.flatnonzero(~tree.is_leaf):
        for child in (tree.left(k), tree.right(k)):
            is_same = np.array_equal(found.means[child], found.means[k])
            assert is_same or is_reached[child]
