"""Monotonic constraints: the proof, the best leaves in order, repair, and what users ask for."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.isotonic import IsotonicRegression

from evotree.dataset import Dataset
from evotree.fitness.objectives import ExpectedCost
from evotree.fitness.penalties import PenalizedAccuracy
from evotree.operators.constraints.monotonic import (
    MonotonicConstraint,
    check_monotonic_cst,
    monotonic,
)
from evotree.operators.constraints.orders import (
    CONFLICT,
    cheapest_labels,
    isotonic_values,
    node_orders,
)
from evotree.operators.constraints.proof import (
    _is_infeasible,
    _System,
    is_monotonic,
    violations,
)
from evotree.operators.initialization.dipolar import init_dipolar
from evotree.operators.pruning.penalized import prune, prune_marked
from evotree.operators.structure.rebuild import in_place_of
from evotree.operators.structure.splice import make_individual
from evotree.rng import make_streams
from evotree.tables.columns import CategoricalColumn, NumericColumn
from evotree.tree import ObliqueTree
from tests.reference import monotonic as naive
from tests.reference.pruning import random_sizes
from tests.strategies import VARIATION, apply_operator, assert_sound, operators_for, seeds

SIGNS = np.array([1, -1, 0, 1])


def random_tree(rng, n_leaves, n_outputs=1, whole=False):
    """Return a tree whose hyperplanes use half of four features; whole numbers touch often."""
    size = np.array(random_sizes(rng, n_leaves - 1), dtype=np.int32)
    n, d = len(size), SIGNS.size
    numbers = rng.standard_normal((n, d + 1))
    if whole:
        numbers = rng.integers(-2, 3, (n, d + 1)).astype(float)
    weights, thresholds = numbers[:, :d] * (rng.random((n, d)) < 0.5), numbers[:, d].copy()
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


def falls(tree, rows, raised, feature):
    """Return where a sample shows that the constraint is broken."""
    change = tree.predict_value(raised)[:, -1] - tree.predict_value(rows)[:, -1]
    return np.flatnonzero(change * SIGNS[feature] < 0.0)


trees = st.builds(
    lambda seed, n_leaves, whole: random_tree(np.random.default_rng(seed), n_leaves, whole=whole),
    seeds,
    st.integers(1, 9),
    st.booleans(),
)


# The proof


@settings(max_examples=30, deadline=None)
@given(trees, seeds)
def test_what_a_sample_breaks_is_found_and_witnesses_are_real(tree, seed):
    found = violations(tree, SIGNS)
    assert is_monotonic(tree, SIGNS) == (not found)
    pairs = {(one.leaf, one.raised_leaf, one.feature) for one in found}
    assert len(pairs) == len(found)
    for feature in np.flatnonzero(SIGNS).tolist():
        rows, raised = raised_rows(np.random.default_rng(seed), 4000, feature)
        broken = falls(tree, rows, raised, feature)
        at = zip(tree.apply(rows[broken]), tree.apply(raised[broken]), strict=True)
        assert {(int(a), int(b), feature) for a, b in at} <= pairs
    for one in found:
        if one.row is not None:
            rows = np.array([one.row, one.raised_row])
            assert tree.apply(rows).tolist() == [one.leaf, one.raised_leaf]
            assert falls(tree, rows[:1], rows[1:], one.feature).size == 1
            moved = np.flatnonzero(one.row != one.raised_row)
            assert moved.tolist() == [one.feature]
            assert one.raised_row[one.feature] > one.row[one.feature]


def test_generic_trees_leave_nothing_undecided():
    rng = np.random.default_rng(0)
    found = [one for _ in range(10) for one in violations(random_tree(rng, 12), SIGNS)]
    assert found
    assert all(one.row is not None for one in found)


def corner_tree(last_bound):
    """Return a tree that may fall with x2 only where x0 <= 1, x1 <= 1 and x0 + x1 > last_bound."""
    weights = np.zeros((9, 3))
    weights[0, 2] = weights[1, 0] = weights[2, 1] = 1.0
    weights[6, :2] = 1.0
    thresholds = np.array([0.0, 1.0, 1.0, 0.0, 0.0, 0.0, last_bound, 0.0, 0.0])
    size = np.array([9, 5, 3, 1, 1, 1, 3, 1, 1], dtype=np.int32)
    values = np.array([[0.5], [0.5], [0.5], [1.0], [0.0], [0.0], [0.5], [1.0], [0.0]])
    return ObliqueTree(weights, thresholds, size, values).validate()


def test_leaves_that_only_touch_are_not_joined():
    signs = np.array([0, 0, 1])
    assert violations(corner_tree(2.0), signs) == []
    found = violations(corner_tree(np.nextafter(2.0, 0.0)), signs)
    assert [(one.leaf, one.raised_leaf) for one in found] == [(3, 8)]
    assert violations(corner_tree(1.9), signs)[0].row is not None


@pytest.mark.parametrize(
    ("A", "b", "is_strict", "is_empty"),
    [
        ([1, -1], [1, -1], [False, False], False),
        ([1, -1], [1, -1], [False, True], True),
        ([1, -1], [1, -2], [False, False], True),
        ([1, -1], [2, -1], [True, True], False),
        ([1, 1], [2, 1], [True, True], False),
        ([3, -1], [1, -1 / 3], [False, True], False),
        ([3, -1], [1, -0.34], [False, False], True),
    ],
)
def test_multipliers_prove_only_what_is_so(A, b, is_strict, is_empty):
    system = _System(np.array(A, dtype=float)[:, None], np.array(b), np.array(is_strict))
    assert _is_infeasible(system, np.arange(2)) == is_empty


def test_a_step_of_0_joins_no_leaves():
    weights = np.zeros((7, 2))
    weights[0], weights[1, 0], weights[4, 0] = 1.0, -1.0, 1.0
    size = np.array([7, 3, 1, 1, 3, 1, 1], dtype=np.int32)
    values = np.array([[0.5], [0.5], [1.0], [0.0], [0.5], [0.0], [1.0]])
    tree = ObliqueTree(weights, np.zeros(7), size, values)
    # From x0 >= 0 a raised row cannot come to x0 <= 0, but the two closed leaves meet at 0.
    assert [(one.leaf, one.raised_leaf) for one in violations(tree, np.array([1, 0]))] == []


def test_a_split_that_parts_nothing_joins_no_leaves():
    weights = np.array([[1.0], [0.0], [0.0], [0.0], [0.0]])
    size = np.array([5, 1, 3, 1, 1], dtype=np.int32)
    values = np.array([[0.0], [0.5], [0.0], [0.0], [1.0]])
    for threshold, is_kept in ((0.0, False), (-1.0, True)):
        tree = ObliqueTree(weights, np.array([0.0, 0.0, threshold, 0.0, 0.0]), size, values)
        assert is_monotonic(tree, np.array([1])) == is_kept


# Finished trees


@pytest.mark.parametrize("n_outputs", [1, 2])
def test_no_sample_breaks_a_finished_tree(n_outputs):
    rng = np.random.default_rng(n_outputs)
    constraint = MonotonicConstraint(tuple(SIGNS.tolist()))
    n_broken = 0
    for trial in range(10):
        tree = random_tree(rng, 15, n_outputs, whole=trial % 2 == 1)
        if trial > 4:  # without conflicts more of the tree is left
            tree.weights[:, :2] *= np.sign(tree.weights[:, :2]) == [1, -1]
            tree.weights[:, 3] = np.abs(tree.weights[:, 3])
        finished = constraint.finish(tree).validate()
        assert constraint.violations(finished) == []
        for feature in np.flatnonzero(SIGNS).tolist():
            rows, raised = raised_rows(rng, 17_000, feature)
            n_broken += falls(tree, rows, raised, feature).size
            assert falls(finished, rows, raised, feature).size == 0
            if n_outputs == 2:
                labels = [finished.values.argmax(axis=1)[finished.apply(x)] for x in (rows, raised)]
                assert ((labels[1] - labels[0]) * SIGNS[feature] >= 0).all()
    assert n_broken > 0


def test_a_conflict_that_is_left_makes_its_leaves_equal():
    weights = np.array([[1.0, 1.0, 0.0, 0.0], [0.0] * 4, [0.0] * 4])
    size, samples = np.array([3, 1, 1], dtype=np.int32), np.array([4.0, 1.0, 3.0])
    values = np.array([[0.5], [0.0], [1.0]])
    tree = ObliqueTree(weights, np.zeros(3), size, values, None, samples)
    constraint = MonotonicConstraint((1, -1, 0, 0))
    finished = constraint.finish(tree)
    assert finished.n_leaves == 1
    assert finished.values.tolist() == [[0.75]]
    assert constraint.violations(tree)
    assert MonotonicConstraint((1, 1, 0, 0)).finish(tree) == tree
    tree = ObliqueTree(weights, np.zeros(3), size, 1.0 - values, None, samples)
    assert MonotonicConstraint((-1, -1, 0, 0)).finish(tree) == tree


# The best leaves in order


@st.composite
def small_problems(draw):
    """Draw the shape of a tree, the pulls of its splits and their orders."""
    rng = np.random.default_rng(draw(seeds))
    size = np.array(random_sizes(rng, draw(st.integers(0, 5))), dtype=np.int32)
    weights = rng.integers(-1, 2, (len(size), 2)).astype(float)
    weights[size == 1] = 0.0
    signs = np.array(draw(st.sampled_from(([1, 0], [-1, 0], [1, 1], [1, -1]))))
    pulls = [naive.order_of(row, signs) for row in weights]
    return rng, size, pulls, node_orders(weights, signs)


@given(small_problems())
def test_orders_are_the_pulls(drawn):
    _, _, pulls, orders = drawn
    codes = {frozenset(): 0, frozenset({1}): 1, frozenset({-1}): -1, frozenset({1, -1}): CONFLICT}
    assert orders.tolist() == [codes[frozenset(one)] for one in pulls]


@settings(deadline=None)
@given(small_problems(), st.sampled_from((0.0, 1.0)))
def test_labels_cost_least(drawn, node_price):
    rng, size, pulls, orders = drawn
    risk = rng.integers(0, 9, (len(size), 2)).astype(float)
    for k in range(len(size))[::-1]:
        if size[k] > 1:
            risk[k] = risk[list(naive.children_of(size, k))].sum(axis=0)
    split_price = node_price * rng.integers(0, 3, len(size))
    labels, marks = cheapest_labels(orders, size, risk, node_price, split_price)
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


@settings(deadline=None)
@given(small_problems())
def test_values_are_the_isotonic_regression(drawn):
    rng, size, pulls, orders = drawn
    means, weight = rng.integers(0, 5, len(size)).astype(float), rng.integers(1, 4, len(size)) * 1.0
    values = isotonic_values(orders, size, means, weight)
    for leaf, value in naive.isotonic(size, pulls, means, weight).items():
        assert values[leaf] == pytest.approx(value, abs=1e-12)
    pairs = naive.ordered_pairs(size, pulls)
    assert all(values[low] <= values[high] for low, high in pairs)
    for k in range(len(size)):
        below = naive.leaves_below(size, k)
        assert values[k] == pytest.approx(np.average(values[below], weights=weight[below]))
        assert values[below].min() <= values[k] <= values[below].max()


@pytest.mark.parametrize("order", [1, -1])
def test_a_chain_is_scikit_learns_isotonic_regression(order):
    rng = np.random.default_rng(0)
    n = 40
    size = np.array([s for k in range(n - 1, 0, -1) for s in (2 * k + 1, 1)] + [1], dtype=np.int32)
    leaves = np.flatnonzero(size == 1)
    means, weight = rng.normal(size=size.size), rng.uniform(0.5, 2.0, size.size)
    orders = np.where(size > 1, order, 0)
    model = IsotonicRegression(increasing=order == 1)
    wanted = model.fit(np.arange(n), means[leaves], weight[leaves]).predict(np.arange(n))
    values = isotonic_values(orders, size, means, weight)
    np.testing.assert_allclose(values[leaves], wanted, rtol=1e-12, atol=1e-12)


# Individuals


@pytest.fixture(scope="module", params=["classification", "regression"])
def population(request):
    X, y = (load_breast_cancer if request.param == "classification" else load_diabetes)(
        return_X_y=True
    )
    dataset = Dataset.from_arrays(X[:300, 2:6], y[:300], task=request.param)
    return dataset, [init_dipolar(dataset, 0.0, one) for one in make_streams(3, 0, 12)]


CONSTRAINT = MonotonicConstraint((1, -1, 0, 1))


def constrained(dataset, constraint=CONSTRAINT):
    """Return a data set whose trees keep a constraint."""
    known = replace(constraint, n_classes=dataset.n_classes)
    return dataset.evolved_for(monotonic(None, known, None))


def remade(individual, dataset):
    return in_place_of(individual, make_individual(dataset, *individual.nodes()[:3]))


def repaired(individual, dataset, constraint=CONSTRAINT):
    """Return a clone that keeps a constraint, over a data set whose trees do."""
    clone = remade(individual, constrained(dataset, constraint))
    constraint.repair(clone, constrained(dataset, constraint))
    return clone


def test_repair_keeps_what_has_no_conflict_and_mends_the_rest(population):
    dataset, individuals = population
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
            assert_sound(mended, constrained(dataset))
            assert repaired(mended, dataset) == mended == repaired(individual, dataset)
    assert n_mended > 3


def test_a_split_with_a_conflict_keeps_its_features_of_the_better_sign():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 3))
    y = (2.0 * X[:, 0] + X[:, 2] > 0.0).astype(int)
    dataset = Dataset.from_arrays(X, y)
    weights = np.array([[2.0, 0.3, 1.0], [0.0] * 3, [0.0] * 3])
    size = np.array([3, 1, 1], dtype=np.int32)
    stump = make_individual(dataset, weights, np.array([0.4, 0.0, 0.0]), size)
    mended = repaired(stump, dataset, MonotonicConstraint((1, -1, 0)))
    assert (mended.weights[0] != 0.0).tolist() == [True, False, True]
    assert mended.quality > stump.quality
    assert mended.quality > 0.98


def test_predictions_agree_with_quality_and_with_each_other(population):
    dataset, individuals = population
    for individual in individuals:
        free, individual = individual, repaired(individual, dataset)
        values, quality = CONSTRAINT.values(individual), individual.quality
        assert quality <= remade(individual, dataset).quality + 1e-12
        assert free.objective is None
        reached = individual.apply(dataset.X)
        weight = dataset.sample_weight / dataset.total_weight
        if dataset.n_classes:
            labels = individual.labels
            assert quality == pytest.approx(weight @ (labels[reached] == dataset.y))
            assert quality == pytest.approx(weight @ ((values[reached] > 0.5) == dataset.y))
        else:
            error = weight @ (dataset.y - values[reached]) ** 2
            assert quality == pytest.approx(1.0 - error / (weight @ dataset.y**2))
        shown = ObliqueTree(*individual.nodes()[:3], values[:, None])
        assert is_monotonic(shown, np.array(CONSTRAINT.signs))


def test_without_constrained_features_nothing_changes(population):
    dataset, individuals = population
    free = MonotonicConstraint((0, 0, 0, 0))
    for individual in individuals:
        same = repaired(individual, dataset, free)
        assert same == individual
        assert same.quality == pytest.approx(individual.quality, abs=1e-12)
        np.testing.assert_allclose(
            free.values(individual)[individual.is_leaf], individual.values[individual.is_leaf, -1]
        )


def test_pruning_leaves_what_pays(population):
    dataset, individuals = population
    for individual in individuals:
        individual = repaired(individual, dataset)
        assert len(prune(individual.clone(), dataset, 2.0)[0]) == 1
        if dataset.n_classes:
            cut = prune(individual.clone(), dataset, 0.0)[0]
            assert cut.quality == pytest.approx(individual.quality)
            fitness = PenalizedAccuracy(0.01)
            fittest = prune(individual.clone(), dataset, 0.01)[0]
            for k in np.flatnonzero(~individual.is_leaf):
                other = individual.clone()
                prune_marked(other, dataset, np.arange(len(other)) == k)
                assert fitness(fittest)[0] >= fitness(other)[0] - 1e-12


@pytest.mark.parametrize("name", VARIATION)
def test_what_operators_make_can_be_mended_and_finished(population, name):
    dataset, (first, second, *_) = population
    if name not in operators_for(dataset, VARIATION):
        pytest.skip("needs classes")
    stream = make_streams(5, 0, 1)[0]
    for child in apply_operator(name, first, second, dataset, stream):
        mended = repaired(child, dataset)
        assert CONSTRAINT.violations(CONSTRAINT.finish(dataset.to_raw(mended.to_tree()))) == []


# What users ask for


COLUMNS = (NumericColumn("a", 0.0, True), CategoricalColumn("b", ("x", "y")), NumericColumn("c", 0))
ESTIMATOR = SimpleNamespace(n_features_in_=3, feature_names_in_=np.array(["a", "b", "c"]))


@pytest.mark.parametrize(
    ("given_cst", "signs"),
    [
        ([1, 0, -1], (1, 0, 0, 0, -1)),
        (np.array([0, 0, 1]), (0, 0, 0, 0, 1)),
        ({"c": 1}, (0, 0, 0, 0, 1)),
        ({"a": -1, "b": 0}, (-1, 0, 0, 0, 0)),
    ],
)
def test_columns_become_features(given_cst, signs):
    found = check_monotonic_cst(given_cst, ESTIMATOR, COLUMNS, 2)
    assert found == MonotonicConstraint(signs, 2)


@pytest.mark.parametrize("given_cst", [None, [0, 0, 0], {}])
def test_nothing_is_asked_for(given_cst):
    assert check_monotonic_cst(given_cst, ESTIMATOR, COLUMNS, 3) is None


@pytest.mark.parametrize(
    ("given_cst", "n_classes", "message"),
    [
        ([1, 0], 2, "monotonic_cst has shape"),
        ([1, 0, 2], 0, "2"),
        ({"c": 2}, 0, "2"),
        ({"d": 1}, 2, "'d'"),
        ([0, 1, 0], 2, "'b'.*categories"),
        ([0, 0, 1], 3, "3 classes"),
        (1, 2, "monotonic_cst=1"),
        ([[1, 0, 0]], 2, "monotonic_cst="),
    ],
)
def test_what_cannot_be_asked_for(given_cst, n_classes, message):
    with pytest.raises(ValueError, match=message):
        check_monotonic_cst(given_cst, ESTIMATOR, COLUMNS, n_classes)


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
        assert monotonic(ExpectedCost("cost", costs), CONSTRAINT, None).costs == costs
    else:
        with pytest.raises(ValueError, match=r"matrix=.*monotonic_cst"):
            monotonic(ExpectedCost("cost", costs), CONSTRAINT, None)
