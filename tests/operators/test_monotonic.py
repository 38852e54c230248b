"""Monotonic constraints: the best leaves in order, repair, and what users ask for."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_breast_cancer

from evotree.dataset import Dataset
from evotree.fitness.leaves import (
    CONFLICT,
    isotonic_values,
    labels_in_order,
    node_orders,
)
from evotree.fitness.linear_leaves import LinearLeafObjective
from evotree.fitness.objectives import ExpectedCost, compose
from evotree.operators.constraints import (
    MonotonicConstraint,
    check_monotonic_cst,
)
from evotree.operators.initialization.growth import init_dipolar
from evotree.operators.pruning import prune
from evotree.operators.structure.rounding import round_models
from evotree.operators.structure.splice import in_place_of, make_individual
from evotree.rng import make_streams
from evotree.schema import CategoricalColumn, NumericColumn, Schema
from evotree.tree import ObliqueTree
from tests.reference import monotonic as naive
from tests.reference.pruning import random_sizes
from tests.reference.signs import violations
from tests.strategies import (
    VARIATION,
    apply_operator,
    assert_sound,
    operators_for,
    seeds,
    stream_of,
)

SIGNS = np.array([1, -1, 0, 1])
CONSTRAINT = MonotonicConstraint(tuple(SIGNS.tolist()))
SIZE = np.array([3, 1, 1], dtype=np.int32)


def random_tree(rng, n_leaves, n_outputs=1, whole=False):
    """Return a tree whose hyperplanes use half of four features; whole numbers touch often."""
    size = np.array(random_sizes(rng, n_leaves - 1), dtype=np.int32)
    n, d = len(size), SIGNS.size
    numbers = rng.standard_normal((n, d + 1))
    if whole:
        numbers = rng.integers(-2, 3, (n, d + 1)).astype(float)
    weights, thresholds = (
        numbers[:, :d] * (rng.random((n, d)) < 0.5),
        numbers[:, d].copy(),
    )
    weights[size == 1], thresholds[size == 1] = 0.0, 0.0
    share = rng.integers(0, 9, n) / 8.0
    values = share[:, None] if n_outputs == 1 else np.column_stack([1.0 - share, share])
    samples = rng.integers(1, 9, n).astype(float)
    return ObliqueTree(weights, thresholds, size, values, np.ones(d), samples)


def raised_rows(rng, n, feature):
    """Return rows near the hyperplanes of random trees, and the same with a feature raised."""
    rows = rng.normal(scale=2.0, size=(n, SIGNS.size))
    rows[::2] = rows[::2].round()
    raised = rows.copy()
    raised[:, feature] += rng.choice([0.25, 1.0, 3.0, 20.0], n)
    return rows, raised


def assert_kept(tree, rng, n_rows=3000):
    """Check that neither linear programs nor samples find rows that break the constraint."""
    assert violations(tree, SIGNS) == []
    for feature in np.flatnonzero(SIGNS).tolist():
        before, after = map(tree.predict_value, raised_rows(rng, n_rows, feature))
        assert ((after - before)[:, -1] * SIGNS[feature] >= 0.0).all()


# ---- finished trees ------------------------------------------------------------------------------


@settings(max_examples=40)
@given(seeds, st.integers(1, 12), st.sampled_from((1, 2)), st.booleans(), st.booleans())
def test_a_finished_tree_keeps_the_constraint(
    seed, n_leaves, n_outputs, whole, is_free
):
    tree = random_tree(np.random.default_rng(seed), n_leaves, n_outputs, whole)
    if not is_free:  # without conflicts more of the tree is left
        tree.weights[:, :2] *= np.sign(tree.weights[:, :2]) == [1, -1]
        tree.weights[:, 3] = np.abs(tree.weights[:, 3])
    finished = CONSTRAINT.finish(tree).validate()
    assert violations(finished, SIGNS) == []
    values = CONSTRAINT.in_order(tree, tree.values)[:, -1]
    rows = np.random.default_rng(seed).normal(scale=2.0, size=(200, SIGNS.size))
    told = finished.predict_value(rows)[:, -1]
    np.testing.assert_array_equal(told, values[tree.apply(rows)])
    if n_outputs == 2:
        labels = np.argmax(finished.values, axis=1)
        assert violations(finished.predicting(labels[:, np.newaxis] * 1.0), SIGNS) == []


# ---- the best leaves in order --------------------------------------------------------------------


@st.composite
def small_problems(draw):
    """Draw the shape of a tree, the pulls of its splits and their orders."""
    rng = np.random.default_rng(draw(seeds))
    size = np.array(random_sizes(rng, draw(st.integers(0, 5))), dtype=np.int32)
    weights = rng.integers(-1, 2, (len(size), 2)).astype(float)
    weights[size == 1] = 0.0
    signs = np.array(draw(st.sampled_from(([1, 0], [-1, 0], [1, 1], [1, -1]))))
    pulls = [naive.order_of(row, signs) for row in weights]
    orders = node_orders(weights, signs)
    codes = {
        frozenset(): 0,
        frozenset({1}): 1,
        frozenset({-1}): -1,
        frozenset({1, -1}): CONFLICT,
    }
    assert orders.tolist() == [codes[frozenset(one)] for one in pulls]
    return rng, size, pulls, orders


@settings(max_examples=50)
@given(small_problems(), st.sampled_from((0.0, 1.0)))
def test_labels_cost_least(drawn, node_price):
    rng, size, pulls, orders = drawn
    risk = rng.integers(0, 9, (len(size), 2)).astype(float)
    for k in range(len(size))[::-1]:
        if size[k] > 1:
            risk[k] = risk[list(naive.children_of(size, k))].sum(axis=0)
    split_price = node_price * rng.integers(0, 3, len(size))
    labels, marks = labels_in_order(orders, size, risk, node_price, split_price)
    leaves = [k for k in naive.leaves_below(size, 0)]
    assert all(labels[a] <= labels[b] for a, b in naive.ordered_pairs(size, pulls))
    cost, k = 0.0, 0
    while k < len(size):
        is_leaf = marks[k] or size[k] == 1
        if marks[k]:
            assert (labels[k : k + size[k]] == labels[k]).all()
        cost += node_price + (risk[k, labels[k]] if is_leaf else split_price[k])
        k += size[k] if is_leaf else 1
    assert cost == naive.least_cost(size, pulls, risk, node_price, split_price)
    if node_price == 0.0:
        assert risk[leaves, labels[leaves]].sum() == cost


@settings(max_examples=50)
@given(small_problems())
def test_values_are_the_isotonic_regression(drawn):
    rng, size, pulls, orders = drawn
    means, weight = (
        rng.integers(0, 5, len(size)).astype(float),
        rng.integers(1, 4, len(size)) * 1.0,
    )
    values = isotonic_values(orders, size, means, weight)
    for leaf, value in naive.isotonic(size, pulls, means, weight).items():
        assert values[leaf] == pytest.approx(value, abs=1e-12)
    pairs = naive.ordered_pairs(size, pulls)
    assert all(values[low] <= values[high] for low, high in pairs)
    for k in range(len(size)):
        below = naive.leaves_below(size, k)
        assert values[k] == pytest.approx(
            np.average(values[below], weights=weight[below])
        )
        assert values[below].min() <= values[k] <= values[below].max()


# ---- individuals ---------------------------------------------------------------------------------


def line_problem(seed=0, n=240):
    """Return rows whose targets rise and fall as the signs say, but not everywhere."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, SIGNS.size))
    y = X @ [1.0, -0.5, 1.0, 0.0] + np.where(X[:, 2] > 0.0, X[:, 3], -X[:, 3])
    y += 1.5 * (X[:, 0] > 0.3) + 0.3 * rng.normal(size=n)
    return Dataset.from_arrays(X, y, rng.choice([0.5, 1.0, 2.0], n), task="regression")


def individuals_of(dataset, seed, n):
    return [init_dipolar(dataset, 0.0, stream) for stream in make_streams(seed, 0, n)]


@pytest.fixture(scope="module", params=["labels", "means", "lines"])
def population(request):
    """Return free rows and trees, and the rows under the constraint."""
    dataset = line_problem()
    if request.param == "labels":
        X, y = load_breast_cancer(return_X_y=True)
        dataset = Dataset.from_arrays(X[:300, 2:6], y[:300])
    leaves = "linear" if request.param == "lines" else "constant"
    constraint = replace(CONSTRAINT, n_classes=dataset.n_classes)
    objective = compose(None, dataset, leaves=leaves, constraint=constraint)
    return dataset, individuals_of(dataset, 3, 8), dataset.evolved_for(objective)


def repaired(individual, dataset, constraint=CONSTRAINT):
    """Return the tree over rows under a constraint, repaired."""
    mended = in_place_of(individual, make_individual(dataset, *individual.nodes()[:3]))
    constraint.repair(mended, dataset)
    return mended


def test_repair_keeps_what_has_no_conflict_and_mends_the_rest(population):
    _, individuals, dataset = population
    n_mended = 0
    for individual in individuals:
        arrays = [array.copy() for array in individual.nodes()]
        mended = repaired(individual, dataset)
        assert CONSTRAINT.keeps(mended, dataset)
        assert all(map(np.array_equal, arrays, individual.nodes()))
        assert mended.origin == individual.origin
        if CONSTRAINT.keeps(individual, dataset):
            assert mended == individual
        else:
            n_mended += 1
            assert_sound(mended, dataset)
            assert repaired(mended, dataset) == mended == repaired(individual, dataset)
    assert n_mended > 2


def test_a_split_with_a_conflict_keeps_its_features_of_the_better_sign():
    X = np.random.default_rng(0).normal(size=(500, 3))
    constraint = MonotonicConstraint((1, -1, 0), 2)
    dataset = Dataset.from_arrays(X, (2.0 * X[:, 0] + X[:, 2] > 0.0).astype(int))
    dataset = dataset.evolved_for(compose(None, dataset, constraint=constraint))
    weights = np.array([[2.0, 0.3, 1.0], [0.0] * 3, [0.0] * 3])
    stump = make_individual(dataset, weights, np.array([0.4, 0.0, 0.0]), SIZE)
    mended = repaired(stump, dataset, constraint)
    assert (mended.weights[0] != 0.0).tolist() == [True, False, True]
    assert mended.quality > max(0.98, stump.quality)


def test_predictions_agree_with_quality_and_with_each_other(population):
    free, individuals, dataset = population
    weight = dataset.sample_weight / dataset.total_weight
    for individual in individuals:
        individual = repaired(individual, dataset)
        shown = ObliqueTree(
            *individual.nodes()[:3], CONSTRAINT.values(individual)[:, None]
        )
        assert not violations(shown, SIGNS)
        reached = individual.apply(dataset.X)
        values, quality = CONSTRAINT.values(individual), individual.quality
        if isinstance(dataset.objective, LinearLeafObjective):
            continue
        if dataset.n_classes:
            for labels in (individual.labels, values > 0.5):
                assert quality == pytest.approx(weight @ (labels[reached] == dataset.y))
        else:
            error = weight @ (dataset.y - values[reached]) ** 2
            assert quality == pytest.approx(1.0 - error / (weight @ dataset.y**2))
        assert quality <= make_individual(free, *individual.nodes()[:3]).quality + 1e-12


@pytest.mark.parametrize("name", VARIATION)
def test_what_operators_make_can_be_mended_pruned_and_finished(population, name):
    _, (first, second, *_), dataset = population
    if name not in operators_for(dataset, VARIATION):
        pytest.skip("needs classes")
    stream = stream_of(5)
    for child in apply_operator(name, first, second, dataset, stream):
        mended = repaired(child, dataset)
        assert_sound(mended, dataset)
        prune(mended, dataset, 0.001)
        finished = dataset.bound_objective.finish(
            dataset.to_raw(mended.to_tree()), dataset
        )
        assert violations(finished, SIGNS) == []


# ---- lines ---------------------------------------------------------------------------------------


def lines_in_order(seed=0):
    return line_problem(seed).evolved_for(LinearLeafObjective(constraint=CONSTRAINT))


@settings(max_examples=10)
@given(seeds)
def test_leaves_share_lines_and_intercepts_are_isotonic(seed):
    dataset = lines_in_order(seed)
    for one in individuals_of(dataset, seed, 4):
        prune(one, dataset, 0.005)
        models, orders = one.objective.models(one), CONSTRAINT.orders(one)
        above, size = one.objective.sharing(one), one.subtree_size
        for k in range(len(one)):
            ordered = [a for a in range(k + 1) if k < a + size[a] and orders[a] != 0]
            assert above[k] == (ordered[0] if ordered else k)
        assert (models.coefficients[one.is_leaf] * SIGNS >= 0.0).all()
        for root in np.unique(above[one.is_leaf]):
            leaves = np.flatnonzero((above == root) & one.is_leaf)
            line = models.coefficients[leaves[0]]
            assert (models.coefficients[leaves] == line).all()
            assert (
                np.ptp(models.lowest[leaves]) == np.ptp(models.highest[leaves]) == 0.0
            )
        reached, weight = one.apply(dataset.X), dataset.sample_weight
        lines = (dataset.X * models.coefficients[reached]).sum(axis=1)
        errors = weight @ (dataset.y - lines - models.intercepts[reached]) ** 2
        lost = errors / (weight @ dataset.y**2)
        assert one.quality == pytest.approx(1.0 - lost, abs=1e-7)


@settings(max_examples=10)
@given(seeds, st.sampled_from((1, 2, 4, "auto", None)))
def test_no_sample_breaks_a_finished_tree_of_lines(seed, precision):
    dataset, rng = lines_in_order(seed % 7), np.random.default_rng(seed)
    for one in individuals_of(dataset, seed, 2):
        objective, mended = dataset.bound_objective, repaired(one, dataset)
        tree = objective.finish(dataset.to_raw(mended.to_tree()), dataset)
        options = precision, dataset.sample_weight, objective.sharing(tree)
        assert_kept(round_models(tree, dataset.raw, *options).validate(), rng)


# ---- what users ask for --------------------------------------------------------------------------

COLUMNS = Schema(
    (
        NumericColumn("a", 0.0, True),
        CategoricalColumn("b", ("x", "y")),
        NumericColumn("c", 0),
    )
)


@pytest.mark.parametrize(
    ("asked", "signs"),
    [
        ([1, 0, -1], (1, 0, 0, 0, -1)),
        (np.array([0, 0, 1]), (0, 0, 0, 0, 1)),
        ({"c": 1}, (0, 0, 0, 0, 1)),
        ({"a": -1, "b": 0}, (-1, 0, 0, 0, 0)),
        (None, None),
        ([0, 0, 0], None),
        ({}, None),
    ],
)
def test_columns_become_features(asked, signs):
    found = check_monotonic_cst(asked, COLUMNS, 2)
    assert found == (None if signs is None else MonotonicConstraint(signs, 2))


@pytest.mark.parametrize(
    ("asked", "n_classes", "message"),
    [
        ([1, 0], 2, "monotonic_cst has shape"),
        ([1, 0, 2], 0, "2"),
        ({"c": 2}, 0, "2"),
        ({"d": 1}, 2, "'d'"),
        ([0, 1, 0], 2, "'b', a column of categories: allowed is 0"),
        ([0, 0, 1], 3, "3 classes"),
        (1, 2, "monotonic_cst=1"),
        ([[1, 0, 0]], 2, "monotonic_cst="),
    ],
)
def test_what_cannot_be_asked_for(asked, n_classes, message):
    with pytest.raises(ValueError, match=message):
        check_monotonic_cst(asked, COLUMNS, n_classes)


@pytest.mark.parametrize(
    ("costs", "is_allowed"),
    [
        (((0.0, 1.0), (5.0, 0.0)), True),
        (((3.0, 1.0), (4.0, 1.0)), True),  # label 1 is always cheaper
        (((2.0, 1.0), (1.0, 0.0)), True),  # the label depends on no share
        (((3.0, 1.0), (0.0, 7.0)), False),
    ],
)
def test_costs_by_which_labels_rise_with_the_share(costs, is_allowed):
    share = np.linspace(0.0, 1.0, 101)
    labels = (np.column_stack([1.0 - share, share]) @ np.array(costs)).argmin(axis=1)
    assert is_allowed == (np.diff(labels) >= 0).all()
    if is_allowed:
        assert ExpectedCost("cost", costs).constrained(CONSTRAINT).costs == costs
    else:
        with pytest.raises(ValueError, match=r"matrix=.*monotonic_cst"):
            ExpectedCost("cost", costs).constrained(CONSTRAINT)
