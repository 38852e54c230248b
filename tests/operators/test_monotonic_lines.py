"""Lines in leaves that keep a monotonic constraint: the proof, the fits, and what users get."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

from evotree import EvoTreeRegressor, Variation
from evotree.dataset import Dataset
from evotree.fitness.linear_leaves import LinearLeafObjective
from evotree.leaf_models import LeafModels
from evotree.operators.constraints.monotonic import MonotonicConstraint, monotonic
from evotree.operators.constraints.monotonic_lines import MonotonicLines, topmost
from evotree.operators.constraints.proof import is_monotonic, violations
from evotree.operators.initialization.dipolar import init_dipolar
from evotree.operators.pruning.penalized import prune
from evotree.operators.structure.rounding import round_models
from evotree.operators.structure.splice import make_individual
from evotree.rng import make_streams
from evotree.tree import ObliqueTree
from tests.quick_models import BRIEF, evolved
from tests.reference import monotonic as naive_orders
from tests.reference.pruning import random_sizes
from tests.strategies import VARIATION, apply_operator, assert_sound, seeds

SIGNS = np.array([1, -1, 0, 1])
CONSTRAINT = MonotonicConstraint(tuple(SIGNS.tolist()))


def random_lines(rng, n_leaves):
    """Return a tree with bounded lines of whole numbers in its leaves, some of them alike."""
    size = np.array(random_sizes(rng, n_leaves - 1), dtype=np.int32)
    n, d = len(size), SIGNS.size
    weights = rng.integers(-2, 3, (n, d)) * (rng.random((n, d)) < 0.4) * 1.0
    thresholds = rng.integers(-2, 3, n) * 1.0
    weights[size == 1], thresholds[size == 1] = 0.0, 0.0
    slopes = rng.integers(-1, 2, (2, d)) * 1.0
    if rng.random() < 0.6:
        slopes = np.abs(slopes) * np.where(SIGNS == 0, 1, SIGNS)
    coefficients = slopes[rng.integers(0, 2, n)] * (size == 1)[:, np.newaxis]
    lowest = rng.integers(-9, 3, n) * 1.0
    highest = lowest + rng.integers(0, 9, n)
    models = LeafModels(rng.integers(-3, 4, n) * 1.0, coefficients, lowest, highest)
    tree = ObliqueTree(weights, thresholds, size, np.zeros((n, 1)), np.ones(d), np.ones(n))
    return tree.with_models(models).validate()


def raised_rows(rng, n, feature):
    """Return rows near the hyperplanes of random trees, and the same with a feature raised."""
    rows = rng.normal(scale=2.0, size=(n, SIGNS.size))
    raised = rows.copy()
    raised[:, feature] += rng.choice([0.25, 1.0, 3.0, 20.0], n)
    return rows, raised


def falls(tree, rows, raised, feature, signs=SIGNS):
    """Return where a sample shows that the constraint is broken."""
    change = tree.predict_value(raised)[:, -1] - tree.predict_value(rows)[:, -1]
    return np.flatnonzero(change * signs[feature] < 0.0)


# ---- the proof -----------------------------------------------------------------------------------


@settings(max_examples=20, deadline=None)
@given(seeds, st.integers(1, 6))
def test_what_a_sample_breaks_is_found_and_witnesses_are_real(seed, n_leaves):
    rng = np.random.default_rng(seed)
    tree = random_lines(rng, n_leaves)
    found = violations(tree, SIGNS)
    assert is_monotonic(tree, SIGNS) == (not found)
    pairs = {(one.leaf, one.raised_leaf, one.feature) for one in found}
    assert len(pairs) == len(found)
    for feature in np.flatnonzero(SIGNS).tolist():
        rows, raised = raised_rows(rng, 3000, feature)
        change = tree.predict_value(raised)[:, -1] - tree.predict_value(rows)[:, -1]
        broken = np.flatnonzero(change * SIGNS[feature] < -1e-9)  # not by rounding alone
        at = zip(tree.apply(rows[broken]), tree.apply(raised[broken]), strict=True)
        assert {(int(a), int(b), feature) for a, b in at} <= pairs
    for one in found:
        if one.row is not None:
            rows = np.array([one.row, one.raised_row])
            assert tree.apply(rows).tolist() == [one.leaf, one.raised_leaf]
            assert falls(tree, rows[:1], rows[1:], one.feature).size == 1
            assert np.flatnonzero(one.row != one.raised_row).tolist() == [one.feature]
            assert one.raised_row[one.feature] > one.row[one.feature]


def two_lines(slopes, intercepts, low=-9.0, high=9.0):
    """Return a tree of one split at x0 = 1 with a line of x0 and x1 on each side."""
    size, weights = np.array([3, 1, 1], dtype=np.int32), np.zeros((3, 2))
    weights[0, 0] = 1.0
    bounds = np.broadcast_to(low, 3).astype(float), np.broadcast_to(high, 3).astype(float)
    models = LeafModels(np.array([0.0, *intercepts]), np.array([[0.0, 0.0], *slopes]), *bounds)
    return ObliqueTree(
        weights, np.array([1.0, 0.0, 0.0]), size, np.zeros((3, 1)), np.ones(2)
    ).with_models(models)


@pytest.mark.parametrize(
    ("slopes", "intercepts", "bounds", "is_kept"),
    [
        ([[1.0, 2.0], [1.0, 2.0]], [0.0, 0.0], (-9.0, 9.0), True),
        ([[1.0, 2.0], [1.0, 2.0]], [0.5, 0.0], (-9.0, 9.0), False),
        ([[2.0, 2.0], [1.0, 2.0]], [0.0, 1.0], (-9.0, 9.0), True),  # they meet at the split
        ([[2.0, 2.0], [1.0, 2.0]], [0.0, 0.9], (-9.0, 9.0), False),
        ([[1.0, 2.0], [1.0, 1.0]], [0.0, 2.0], (-9.0, 9.0), False),  # they cross far away
        ([[1.0, 2.0], [1.0, 1.0]], [0.0, 5.0], (-9.0, 9.0), True),  # where both are cut
        ([[1.0, 2.0], [1.0, 1.0]], [0.0, 5.0], ([0.0, -9.0, 1.0], [0.0, 1.0, 9.0]), True),
        ([[1.0, 2.0], [-1.0, 2.0]], [0.0, 5.0], (-9.0, 9.0), False),  # the slope is wrong
        ([[-1.0, 0.0], [-1.0, 0.0]], [0.0, 0.0], ([0.0, 3.0, 4.0], [0.0, 3.0, 4.0]), True),
    ],
)
def test_lines_of_a_split_that_has_an_order(slopes, intercepts, bounds, is_kept):
    tree = two_lines(slopes, intercepts, *bounds)
    assert is_monotonic(tree, np.array([1, 0])) == is_kept
    assert all(one.row is not None for one in violations(tree, np.array([1, 0])))
    mirrored = tree.with_models(
        LeafModels(
            -tree.models.intercepts,
            -tree.models.coefficients,
            -tree.models.highest,
            -tree.models.lowest,
        )
    )
    assert is_monotonic(mirrored, np.array([-1, 0])) == is_kept


# ---- fits ----------------------------------------------------------------------------------------


def problem(seed=0, n=240):
    """Return rows whose targets rise and fall as the signs say, but not everywhere."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, SIGNS.size))
    y = X @ [1.0, -0.5, 1.0, 0.0] + np.where(X[:, 2] > 0.0, X[:, 3], -X[:, 3])
    y += 1.5 * (X[:, 0] > 0.3) + 0.3 * rng.normal(size=n)
    weight = rng.choice([0.5, 1.0, 2.0], n)
    dataset = Dataset.from_arrays(X, y, weight, task="regression")
    return dataset.evolved_for(monotonic(LinearLeafObjective(), CONSTRAINT, None))


def individuals_of(dataset, seed, n=4):
    return [init_dipolar(dataset, 0.0, one) for one in make_streams(seed, 0, n)]


def repaired(individual, dataset):
    CONSTRAINT.repair(individual, dataset)
    return individual


def test_the_objective_is_that_of_lines_with_the_constraint():
    objective = problem().objective
    assert isinstance(objective, MonotonicLines) and objective.constraint is CONSTRAINT
    assert monotonic(LinearLeafObjective(used=(1, 3)), CONSTRAINT, None).used == (1, 3)


@given(seeds)
def test_the_topmost_split_with_an_order_is_found(seed):
    rng = np.random.default_rng(seed)
    size = np.array(random_sizes(rng, int(rng.integers(0, 9))), dtype=np.int32)
    orders = rng.integers(-1, 3, len(size)) * (rng.random(len(size)) < 0.4) * (size > 1)
    found = topmost(orders, size)
    for k in range(len(size)):
        path = [a for a in range(k + 1) if k < a + size[a]]
        ordered = [a for a in path if orders[a] != 0]
        assert found[k] == (ordered[0] if ordered else k)


@settings(max_examples=15, deadline=None)
@given(seeds)
def test_leaves_share_lines_and_intercepts_are_isotonic(seed):
    dataset = problem(seed)
    for one in individuals_of(dataset, seed):
        prune(one, dataset, 0.005)
        models, orders = one.objective.models(one), CONSTRAINT.wanted_orders(one)
        above, size = topmost(orders, one.subtree_size), one.subtree_size
        signed = models.coefficients[one.is_leaf] * SIGNS
        assert (signed >= 0.0).all()
        errors = 0.0
        for root in np.unique(above[one.is_leaf]):
            leaves = np.flatnonzero((above == root) & one.is_leaf)
            rows = [np.sort(one.order[one.start[k] : one.end[k]]) for k in leaves]
            line = models.coefficients[leaves[0]]
            assert (models.coefficients[leaves] == line).all()
            assert np.ptp(models.lowest[leaves]) == np.ptp(models.highest[leaves]) == 0.0
            rest = [dataset.y[r] - dataset.X[r] @ line for r in rows]
            weights = [dataset.sample_weight[r] for r in rows]
            if sum(map(len, rows)) >= 40 and 1 < len(leaves) < 6:  # the twin tries all orders
                means, mass = np.zeros(size[root]), np.ones(size[root])
                means[leaves - root] = list(map(np.average, rest, [None] * len(rest), weights))
                mass[leaves - root] = list(map(np.sum, weights))
                pulls = [
                    {1} if o == 1 else {-1} if o == -1 else {1, -1} if o else set()
                    for o in orders[root : root + size[root]]
                ]
                isotonic = naive_orders.isotonic(size[root : root + size[root]], pulls, means, mass)
                expected = [isotonic[k] for k in leaves - root]
                np.testing.assert_allclose(models.intercepts[leaves], expected, atol=1e-8)
            for k, left, weight in zip(leaves, rest, weights, strict=True):
                errors += weight @ (left - models.intercepts[k]) ** 2
        whole = dataset.sample_weight @ dataset.y**2
        assert one.quality == pytest.approx(1.0 - errors / whole, abs=1e-7)


def test_without_splits_that_have_an_order_lines_are_free_but_for_signs():
    dataset = problem()
    weights, size = np.zeros((3, 4)), np.array([3, 1, 1], dtype=np.int32)
    weights[0, 2] = 1.0
    free = dataset.evolved_for(LinearLeafObjective())
    stumps = [make_individual(one, weights, np.zeros(3), size) for one in (dataset, free)]
    one, other = (stump.objective.models(stump) for stump in stumps)
    kept = (other.coefficients * SIGNS >= 0.0).all(axis=1)
    np.testing.assert_array_equal(one.table[kept], other.table[kept])
    assert other.coefficients[1, 3] < 0.0 == one.coefficients[1, 3]
    assert one.coefficients[2, 3] > 0.0
    unconstrained = replace(dataset.objective, constraint=MonotonicConstraint((0, 0, 0, 0)))
    for tree in individuals_of(dataset, 1):
        bound = (judge.bind(dataset) for judge in (unconstrained, LinearLeafObjective()))
        np.testing.assert_array_equal(*(judge.table(tree) for judge in bound))


def test_as_a_leaf_a_split_in_order_has_a_line_of_its_own():
    dataset = problem()
    weights, size = np.zeros((3, 4)), np.array([3, 1, 1], dtype=np.int32)
    weights[0, 0] = 1.0
    stump = make_individual(dataset, weights, np.array([0.3, 0.0, 0.0]), size)
    leaf = make_individual(dataset, np.zeros((1, 4)), np.zeros(1), np.ones(1, dtype=np.int32))
    judge = stump.objective
    np.testing.assert_array_equal(judge.fits(stump, splits=True)[0], judge.fits(leaf)[0])
    assert stump.quality > leaf.quality + 0.02
    assert judge.risk(stump)[1:].sum() == pytest.approx(1.0 - stump.quality)


@pytest.mark.parametrize("name", VARIATION)
def test_what_operators_make_can_be_mended_pruned_and_finished(name):
    dataset = problem()
    first, second = individuals_of(dataset, 2, 2)
    for child in apply_operator(name, first, second, dataset, make_streams(5, 0, 1)[0]):
        mended = repaired(child, dataset)
        assert_sound(mended, dataset)
        prune(mended, dataset, 0.001)
        finished = dataset.judge.finish(dataset.to_raw(mended.to_tree()), dataset)
        assert CONSTRAINT.violations(finished) == []


@settings(max_examples=15, deadline=None)
@given(seeds, st.sampled_from((1, 2, 4, "auto", None)))
def test_no_sample_breaks_a_finished_tree(seed, precision):
    dataset, rng = problem(seed % 7), np.random.default_rng(seed)
    for one in individuals_of(dataset, seed, 2):
        mended = repaired(one, dataset)
        tree = dataset.judge.finish(dataset.to_raw(mended.to_tree()), dataset)
        told = precision, dataset.sample_weight, dataset.judge.sharing(tree)
        tree = round_models(tree, dataset.raw, *told).validate()
        assert CONSTRAINT.violations(tree) == []
        for feature in np.flatnonzero(SIGNS).tolist():
            assert falls(tree, *raised_rows(rng, 3000, feature), feature).size == 0


def test_splits_between_equal_leaves_are_left_out():
    """Their targets fall where they may not, so both sides have one intercept."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2))
    y = X[:, 1] - 2.0 * (X[:, 0] > 0.0) + 0.1 * rng.normal(size=300)
    objective = monotonic(LinearLeafObjective(), MonotonicConstraint((1, 0)), None)
    dataset = Dataset.from_arrays(X, y, task="regression").evolved_for(objective)
    weights, size = np.zeros((3, 2)), np.array([3, 1, 1], dtype=np.int32)
    weights[0, 0] = 1.0
    stump = make_individual(dataset, weights, np.zeros(3), size)
    finished = dataset.judge.finish(dataset.to_raw(stump.to_tree()), dataset)
    assert finished.n_leaves == 1
    assert finished.models.coefficients[0, 0] == 0.0 < finished.models.coefficients[0, 1]


# ---- what users get ------------------------------------------------------------------------------


@pytest.mark.parametrize(("algorithm", "precision"), [("penalized", "auto"), ("nsga2", 2)])
def test_all_trees_of_a_search_keep_the_constraint(algorithm, precision):
    rng = np.random.default_rng(1)
    X = pd.DataFrame(rng.normal(size=(240, 4)), columns=["up", "down", "free", "bent"])
    y = X["up"] - X["down"] + np.abs(X["bent"]) + 2.0 * (X["up"] > 0.2) + X["free"]
    signs = {"up": 1, "down": -1, "bent": 1}
    changed = {"precision": precision, "variation": Variation(algorithm=algorithm)}
    model = evolved(EvoTreeRegressor, **BRIEF, **changed, leaves="linear", monotonic_cst=signs)
    fitted = clone(model).fit(X, y)
    assert clone(model).set_params(leaves="auto").fit(X, y).tree_ == fitted.tree_
    known = np.array([1, -1, 0, 1])
    assert fitted.tree_.models is not None
    assert fitted.score(X, y) > 0.7
    for tree in [fitted.tree_, *fitted.pareto_front_, *fitted.hall_of_fame_]:
        assert is_monotonic(tree, known)
        for feature in np.flatnonzero(known).tolist():
            rows, raised = raised_rows(rng, 2000, feature)
            assert falls(tree, rows, raised, feature, known).size == 0
    free = model.set_params(monotonic_cst=None).fit(X, y)
    assert violations(free.tree_, known)
