"""Columns that bend: what each feature is, who computes it, and that all speak of columns."""

import warnings
from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evotree import (
    Dataset,
    Evolution,
    EvoTreeClassifier,
    EvoTreeRegressor,
    SearchConfig,
    search,
)
from evotree.engine.bends import bends_of, without_lone_bends
from evotree.engine.scores import OCTILES
from evotree.schema import (
    ABOVE,
    BELOW,
    LOG,
    Bend,
    NumericColumn,
    Schema,
)
from evotree.tables.columns import encode
from evotree.texts import export_rules, export_text, splits_of_text
from evotree.tree import ObliqueTree, SoftSides
from tests.exported import with_models
from tests.made_up import Case
from tests.quick_models import brief
from tests.random_trees import random_tree
from tests.strategies import any_datasets

KNOTS = st.floats(0.1, 10.0).map(lambda knot: round(knot, 3))
BENDS = st.builds(Bend, st.sampled_from((ABOVE, BELOW, LOG)), KNOTS)


@st.composite
def bent(draw, indicators=False):
    """Draw columns of numbers, some of which bend."""
    columns = [
        NumericColumn(
            f"c{at}",
            draw(KNOTS),
            indicators and draw(st.booleans()),
            bends=tuple(
                draw(st.lists(BENDS, max_size=3, unique_by=lambda bend: bend.named("")))
            ),
        )
        for at in range(draw(st.integers(1, 3)))
    ]
    return Schema(tuple(columns))


def by_hand(column, x):
    """Return the features of a cell, one by one."""
    known = column.fill if x is None else x
    made = [known]
    for bend in column.bends:
        made.append(
            {
                ABOVE: max(known - bend.knot, 0.0),
                BELOW: max(bend.knot - known, 0.0),
                LOG: float(np.log(max(known, bend.knot))),
            }[bend.kind]
        )
    return [*made, float(x is None)] if column.indicator else made


# ---- what features are ---------------------------------------------------------------------------


@given(bent(indicators=True), st.integers(0, 2**32))
def test_features_follow_from_the_number_of_their_column(columns, seed):
    rng = np.random.default_rng(seed)
    cells = rng.uniform(-5.0, 15.0, (6, len(columns))).round(2)
    cells[rng.random(cells.shape) < 0.2] = np.nan
    table = pd.DataFrame(cells, columns=[column.name for column in columns])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = encode(columns, table)
    for row, features in zip(cells.tolist(), found, strict=True):
        wanted = [
            by_hand(column, None if np.isnan(x) else x)
            for column, x in zip(columns, row, strict=True)
        ]
        np.testing.assert_allclose(features, np.concatenate(wanted), rtol=1e-15)
    names, of = columns.features, columns.column_of
    assert len(set(names)) == len(names) == found.shape[1]
    for j, (base, _) in columns.bends.items():
        assert of[j] == of[base] and names[base] == columns[of[j]].name


# ---- which bends ---------------------------------------------------------------------------------


def rows_with(effect, n=300, seed=0):
    """Return rows of two columns, of which one has an effect on the targets."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(
        {"age": rng.uniform(20, 80, n).round(1), "size": rng.normal(size=n)}
    )
    return X, effect(X) + 0.3 * rng.normal(size=n)


@pytest.mark.filterwarnings("error")
@given(any_datasets, st.sampled_from((1.0, 1e-60, 1e60)))
def test_any_numbers_have_sound_bends_or_none(dataset, unit):
    share = dataset.sample_weight / dataset.total_weight
    for numbers in dataset.raw.T * unit:
        features = [bend.of(numbers) for bend in bends_of(numbers, share, OCTILES)]
        for feature in features:
            assert np.isfinite(feature).all() and feature.min() < feature.max()


@given(BENDS, st.floats(-3.0, 3.0), st.sampled_from((1.0, -1.0, 2.5)))
def test_a_split_on_one_bend_alone_is_one_on_its_column(bend, threshold, weight):
    schema = Schema((NumericColumn("a", 0.0, bends=(bend,)), NumericColumn("b", 0.0)))
    tree = ObliqueTree(
        weights=np.array([[0.0, weight, 0.0], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]]),
        thresholds=np.array([threshold, 0.0, 0.0]),
        subtree_size=np.array([3, 1, 1], dtype=np.int32),
        values=np.zeros((3, 1)),
    )
    made = without_lone_bends(tree, schema.bends)
    rows = np.column_stack([np.linspace(-20.0, 40.0, 997), np.zeros(997)])
    features = schema.with_bends(rows)
    sides, sums = tree.apply(features), features @ tree.weights[0] - threshold
    is_clear = np.abs(sums) > 1e-9
    assert (made.apply(features) == sides)[is_clear].all()
    parts = np.ptp(sides[is_clear]) > 0
    assert made.weights[0, 1] == 0.0 or not parts or abs(threshold) < 1e-9


# ---- exports -------------------------------------------------------------------------------------


def random_case(seed, is_classes, with_lines):
    """Return a random tree over columns that bend, and rows on all sides of their knots."""
    rng = np.random.default_rng(seed)
    kinds = (LOG, ABOVE, BELOW)
    columns = tuple(
        NumericColumn(
            f"c{at}",
            1.0,
            bends=tuple(
                Bend(kind, round(rng.uniform(0.5, 8.0), 2))
                for kind in kinds
                if rng.random() < 0.6
            ),
        )
        for at in range(3)
    )
    rows = rng.uniform(-2.0, 10.0, (60, 3)).round(3)
    features = Schema(columns).with_bends(rows)
    tree = random_tree(rng, features.shape[1], depth=2)
    counts = rng.integers(1, 9, (len(tree), 2 if is_classes else 1)).astype(float)
    tree = ObliqueTree(
        tree.weights,
        tree.thresholds,
        tree.subtree_size,
        counts / counts.sum(axis=1, keepdims=True) if is_classes else counts,
        spread=features.std(axis=0),
    )
    sides = None
    if with_lines and not is_classes:
        tree = with_models(tree, rng)
    elif is_classes:
        inner = ~tree.is_leaf
        sides = SoftSides(
            np.where(inner, 0.7, 0.0),
            np.where(inner, 0.1, 0.0),
            np.where(inner[:, np.newaxis], 0.0, tree.values),
        )
    return Case((tree,), rows, ("no", "yes") if is_classes else None, sides, columns)


CASES = [
    random_case(seed, is_classes, with_lines)
    for seed in range(6)
    for is_classes, with_lines in ((True, False), (False, False), (False, True))
]


@pytest.mark.parametrize("case", CASES)
def test_text_is_read_back(case):
    tree = case.trees[0]
    (fitted,) = case.members
    names = fitted.features
    text = export_text(fitted)
    weights, thresholds, sizes = splits_of_text(text, names)
    again = tree.replaced(
        weights=weights, thresholds=thresholds, subtree_size=sizes, models=None
    )
    assert (again.apply(case.features) == tree.apply(case.features)).mean() > 0.95
    used = (tree.weights != 0.0).any(axis=0)
    for j in fitted.schema.bends:
        shown = names[j] if names[j].startswith("log") else f"({names[j]})"
        assert not used[j] or (shown in text and shown in export_rules(fitted))


# ---- constraints ---------------------------------------------------------------------------------


@pytest.mark.slow
@settings(max_examples=8, deadline=None)
@given(st.integers(0, 2**16), st.sampled_from((1, -1)), st.booleans())
def test_predictions_rise_with_columns_that_bend(seed, sign, is_classes):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.uniform(0.5, 10.0, (120, 2)).round(2), columns=["a", "b"])
    # Not monotonic: the constraint has to hold all the same.
    y = np.abs(X.a - 5.0) + np.log(X.b) + 0.2 * rng.normal(size=len(X))
    kind = EvoTreeClassifier if is_classes else EvoTreeRegressor
    y = (y > y.median()).astype(int) if is_classes else y
    shapes = {
        "a": [("above", 5.0), ("below", 5.0), ("log", 0.5)],
        "b": [("log", 0.5), ("above", 2.0)],
    }
    model = brief(kind, monotonic_cst={"a": sign}, shapes=shapes).fit(X, y)
    assert model.fitted_.schema.bends
    points = rng.uniform(-5.0, 15.0, (2000, 2))
    raised = points.copy()
    raised[:, 0] += rng.exponential(4.0, len(points))
    predict = (
        (lambda rows: model.predict_proba(rows)[:, 1]) if is_classes else model.predict
    )
    low, high = (
        predict(pd.DataFrame(rows, columns=["a", "b"])) for rows in (points, raised)
    )
    assert (sign * (high - low) >= -1e-9).all()


@pytest.mark.parametrize("kind", [EvoTreeClassifier, EvoTreeRegressor])
def test_columns_share_splits_and_not_features(kind):
    X, y = rows_with(lambda X: 0.2 * (X.age - 50).clip(lower=0) + X["size"])
    y = (y > y.median()).astype(int) if kind is EvoTreeClassifier else y
    shapes = {"age": [("above", 50.0), ("below", 50.0)], "size": [("above", 0.0)]}
    model = brief(
        kind, interaction_cst="no_interactions", leaves="constant", shapes=shapes
    ).fit(X, y)
    of = model.fitted_.schema.column_of
    for tree in model.pareto_front_:
        for weights in tree.weights:
            assert len(set(of[weights != 0.0])) <= 1


# ---- what speaks of columns ----------------------------------------------------------------------


def fit_bent(kind):
    """Return a fitted model of columns that bend, and its rows."""
    X, y = rows_with(
        lambda X: 0.3 * (X.age - 50).clip(lower=0) + X["size"] * 0.5, n=240
    )
    y = (y > 3.0).astype(int) if kind is EvoTreeClassifier else y
    shapes = {"age": [("above", 50.0), ("below", 50.0)]}
    return brief(kind, shapes=shapes).fit(X, y), X, y


@pytest.fixture(scope="module", params=[EvoTreeRegressor, EvoTreeClassifier])
def fitted(request):
    return fit_bent(request.param)


def test_public_methods_speak_of_columns(fitted):
    model, X, y = fitted
    assert model.importances().shape == (2,)
    far = X[:1].assign(age=500.0)
    assert model.explain(far).rows.outside[0] == ("age",)
    assert len(model.explain(X).rows) == len(X)


def test_a_model_goes_on_with_its_bends(fitted):
    model, X, y = fitted
    edited = model.edit(X, y)
    assert repr(edited)
    again = model.refit(X, y)
    assert again.columns_ == model.columns_
    assert again.evolution == model.evolution
    # What was printed is where another search begins.
    evolution = replace(model.evolution, start=export_text(model))
    begun = brief(type(model)).set_params(evolution=evolution)
    assert begun.fit(X, y).columns_ == model.columns_


def assert_log_linear_leaves_bend(make, draw):
    """Check that the logarithm of a rate, of which targets are drawn, rises from 50 years on."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"age": rng.uniform(20, 80, 600), "size": rng.normal(size=600)})
    rate = np.exp(0.1 * (X.age - 50.0).clip(lower=0.0) - 1.0).to_numpy()
    y = draw(rng, rate)
    make = partial(make, leaves="linear", size_penalty=0.05)
    shapes = {"age": [("above", 50.0)]}
    bent, straight = (make(shapes=given).fit(X, y) for given in (shapes, None))
    # Where no column bends, a split takes the place of the knot.
    assert bent.get_n_leaves() == 1 < straight.get_n_leaves()
    pairs = [X[:2].assign(age=age, size=0.0) for age in ([55, 75], [22, 42])]
    risen = [np.diff(np.log(bent.predict(pair)))[0] for pair in pairs]
    assert risen[0] > 1.4 and abs(risen[1]) < 0.5 * risen[0]  # a line has equal ones


def test_log_linear_leaves_bend():
    make = partial(brief, EvoTreeRegressor, objective="poisson")
    assert_log_linear_leaves_bend(make, np.random.Generator.poisson)


@pytest.mark.parametrize(
    "shapes",
    [
        {"age": "above"},
        {"age": [("over", 1.0)]},
        {"age": [("log", -1.0)]},
        {"age": [("above", 1.0)], 0: [("above", 2.0)]},
        {"sort": [("above", 1.0)]},
        {"height": [("above", 1.0)]},
        "always",
    ],
)
def test_wrong_shapes_are_named(shapes):
    X, y = rows_with(lambda X: X.age)
    X["sort"] = pd.Categorical(np.where(X.age > 50, "a", "b"))
    with pytest.raises(ValueError, match="shapes"):
        brief(EvoTreeRegressor, shapes=shapes).fit(X, y)


@pytest.mark.parametrize("kind", [int, np.int64, np.float32, np.float64])
def test_knots_are_numbers_of_any_type(kind):
    (column,) = Schema((NumericColumn("a", 0.0),)).with_shapes(
        {0: [("above", kind(4))]}
    )
    assert [bend.named("a") for bend in column.bends] == ["a above 4"]


def test_rows_without_columns_have_no_shapes_of_their_own():
    dataset = Dataset.from_arrays(np.eye(4), [0, 1, 0, 1])
    config = SearchConfig(evolution=Evolution(shapes={"x0": [("above", 1.0)]}))
    with pytest.raises(ValueError, match="shapes="):
        search(dataset, config)
