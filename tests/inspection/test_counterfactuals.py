"""Counterfactuals against all points of a grid."""

from dataclasses import replace
from itertools import product
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from evotree.inspection import counterfactuals, nearest
from evotree.schema import TRUTH, CategoricalColumn, NumericColumn, Schema
from evotree.tables.columns import encode
from tests.quick_models import brief
from tests.random_trees import CLASSES, estimator_of, grid, random_tree

SIDES = range(5)
COLUMNS = (
    NumericColumn("size", 1.0),
    CategoricalColumn("kind", ("p", "q", "r")),
    CategoricalColumn("sex", ("f",), "m"),
    NumericColumn("age", 2.0, indicator=True),
)


def found_or_none(model, x, target, **limits):
    """Return the nearest point, None where there is none."""
    try:
        return counterfactuals(model, x, target, **limits)[0]
    except ValueError as error:
        assert "no point within" in str(error) or "no leaf of the tree" in str(error)
        return None


def rows_of_table():
    """Return all rows of a small table, without missing cells and with."""
    rows = product(range(4), ["p", "q", "r"], ["f", "m"], [0.0, 1.0, 2.0, np.nan])
    return pd.DataFrame(rows, columns=[column.name for column in COLUMNS])


# A leaf without a whole point inside is left out.
@pytest.mark.filterwarnings("ignore:leaf .* is left out")
@pytest.mark.parametrize("seed", range(4))
def test_categories_stay_valid_and_missing_cells_missing(seed):
    random, table = np.random.default_rng(seed), rows_of_table()
    encoded = encode(COLUMNS, table)
    model = estimator_of(random_tree(random, encoded.shape[1]), encoded, COLUMNS)
    column_of = np.array([0, 1, 1, 1, 2, 3, 3])
    names, costs = (
        [column.name for column in COLUMNS],
        random.choice([0.5, 1.0, 3.0], 4),
    )
    limits = {
        "integers": ["size", "age"],
        "costs": dict(zip(names, costs, strict=True)),
    }
    predicted = model.predict(table)
    for at in random.integers(0, len(table), 4):
        x = table.iloc[[at]]
        steps = np.abs(encoded - encoded[at]) / model.tree_.spread
        away = steps @ costs[column_of]
        missing = table.age.isna() == table.age.isna()[at]
        for target in CLASSES:
            wanted = (predicted == target) & missing
            one = found_or_none(model, x, target, **limits)
            if one is None:
                assert not wanted.any()
                continue
            np.testing.assert_allclose(one.distance, away[wanted].min(), atol=1e-7)
            assert model.predict(one.row)[0] == target
            changed = np.unique(column_of[encode(COLUMNS, one.row)[0] != encoded[at]])
            assert set(one.changes) == {COLUMNS[c].name for c in changed}


def test_several_points_are_the_nearest_of_different_leaves():
    points = grid(SIDES, SIDES, SIDES).astype(float)
    model = estimator_of(random_tree(np.random.default_rng(3), 3), points)
    label = model.predict(points)[62]
    several = counterfactuals(model, points[62], n_points=20)
    assert len({point.leaf for point in several}) == len(several) > 1
    distances = [point.distance for point in several]
    assert distances == sorted(distances)
    assert distances[0] == counterfactuals(model, points[62])[0].distance
    assert all(model.predict(point.row)[0] != label for point in several)


def test_missing_cells_stay_as_they_are_where_none_was_in_training():
    points = grid(SIDES, SIDES).astype(float)
    model = stump(points, [1.0, 1.0], 3.5)
    schema = Schema((NumericColumn("x0", 0.5), NumericColumn("x1", 0.0)))
    model.fitted_ = replace(model.fitted_, schema=schema)
    one = counterfactuals(model, [np.nan, 1.0], "b", integers=["x0"])[0]
    assert set(one.changes) == {"x1"}
    assert np.isnan(one.row[0, 0]) and model.predict(one.row)[0] == "b"
    model.tree_.weights[0] = [1.0, 0.0]
    with pytest.raises(ValueError, match="What is missing stays so"):
        counterfactuals(model, [np.nan, 1.0], "b")


@pytest.mark.parametrize("limits", [{}, {"bounds": {"x0": (0, None)}}])
def test_truth_values_stay_so_within_any_bounds(limits):
    model = stump(grid(SIDES, SIDES).astype(float), [1.0, 0.0], 1.5)
    columns = NumericColumn("x0", 0.0, holds=TRUTH), NumericColumn("x1", 0.0)
    model.fitted_ = replace(model.fitted_, schema=Schema(columns))
    with pytest.raises(ValueError, match="no point within"):
        counterfactuals(model, [0.0, 1.0], "b", **limits)


def test_a_search_that_takes_too_long_is_given_up(monkeypatch):
    ended = SimpleNamespace(status=1)  # as `scipy.optimize.milp` says it of its limits
    monkeypatch.setattr(nearest, "milp", lambda *given, **options: ended)
    points = grid(SIDES, SIDES).astype(float)
    model = stump(points, [1.0, 0.0], 2.0)
    with pytest.raises(ValueError, match=r"takes too long.*fixed.*integers"):
        counterfactuals(model, points[0], "b")


def test_a_leaf_that_rounding_leaves_out_is_named():
    points = 1e15 + grid(SIDES, SIDES).astype(float)  # numbers there are 0.125 apart
    model = stump(points, [1.0, 0.0], 1e15 + 1.0)
    left_out = pytest.warns(RuntimeWarning, match="leaf 2 is left out.* than it is")
    with left_out, pytest.raises(ValueError, match="no point within"):
        counterfactuals(model, points[0], "b")


def stump(points, weights, threshold):
    """Return an estimator of one split, of class a on the left and b on the right."""
    tree = random_tree(np.random.default_rng(0), points.shape[1], depth=1)
    tree.weights[0], tree.thresholds[0] = weights, threshold
    tree.values[1:] = np.eye(3)[:2]
    return estimator_of(tree, points)


@pytest.mark.parametrize(
    ("weight", "threshold", "limits", "message"),
    [
        (1.0, 2.0, {"fixed": ["x0", "x1"]}, "no point within"),
        (
            1.0,
            2.0,
            {"bounds": {"x0": (0, 1.5), "x1": (0, 9)}},
            "no point within",
        ),
        (
            1.0,
            2.0,
            {"bounds": {"x0": (0, 1.5)}, "fixed": ["x0"]},
            "no point within",
        ),
        (1.0, 9.0, {}, "plausible=False"),
        (
            2.0,
            4.5,
            {"bounds": {"x0": (0, 2.5)}, "integers": "x0"},
            "no point within",
        ),
        (1.0, 2.0, {"target": "c"}, "no leaf of the tree predicts it"),
    ],
)
def test_constraints_may_forbid_all_points(weight, threshold, limits, message):
    model = stump(grid(SIDES, SIDES).astype(float), [weight, 0.0], threshold)
    x = np.array([1.0, 1.0])
    with pytest.raises(ValueError, match=message):
        counterfactuals(model, x, **{"target": "b"} | limits)
    if "plausible" in message:
        assert (
            model.predict(counterfactuals(model, x, "b", plausible=False)[0].row) == "b"
        )


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        ({"target": "d"}, "target='d': allowed are"),
        ({"costs": {"x0": 0.0}}, "finite numbers above 0"),
        ({"bounds": [(0, 1)]}, r"bounds\[0\]=1: allowed is .low, high"),
        ({"fixed": 0.5}, "fixed names 0.5: allowed are positions from 0 to 1"),
        ({"bounds": {"x0": (2, 1)}}, "allowed is .low, high"),
        ({"bounds": {"x7": (2, 1)}}, "bounds names 'x7'"),
        ({"fixed": [2]}, "fixed names 2: allowed are positions from 0 to 1"),
        ({"integers": ["x1"]}, "the row has 1.5 there"),
        ({"n_points": 0}, "n_points=0"),
    ],
)
def test_bad_input_is_refused(limits, message):
    model = stump(grid(SIDES, SIDES).astype(float), [1.0, 0.0], 2.0)
    with pytest.raises(ValueError, match=message):
        counterfactuals(model, [1.0, 1.5], **{"target": "b"} | limits)


@pytest.mark.parametrize("target", [None, 1.0, (2.0, 1.0), ("a", "b"), (1e6, 1e7)])
def test_bad_intervals_are_refused(target):
    points = grid(SIDES, SIDES).astype(float)
    model = estimator_of(random_tree(np.random.default_rng(0), 2, lines=True), points)
    with pytest.raises(ValueError, match=r"allowed is .low, high|they predict from"):
        counterfactuals(model, points[0], target)
    with pytest.raises(ValueError, match="allowed is one row"):
        counterfactuals(model, points, (0.0, 1.0))


def test_whole_numbers_and_truth_values_stay_so():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(
        {
            "flag": rng.random(200) < 0.5,
            "count": rng.integers(0, 9, 200),
            "gaps": pd.array(
                np.where(rng.random(200) < 0.1, None, rng.integers(0, 5, 200)), "Int64"
            ),
        }
    )
    y = (2 * X["flag"] + X["count"] + X["gaps"].fillna(0)).to_numpy() > 6
    model = brief(max_generations=1).fit(X, y)
    for at in range(20):
        row = X.iloc[[at]]
        (found,) = counterfactuals(model, row)
        assert found.row.dtypes.tolist() == row.dtypes.tolist()
        assert model.predict(found.row)[0] != model.predict(row)[0]
        for name, pair in found.changes.items():
            kind = bool if name == "flag" else int
            assert pair[1] is None or isinstance(pair[1], kind), (name, pair)
