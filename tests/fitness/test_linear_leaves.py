"""Linear models of leaves: sums, fits, and the objective, against least squares row by row."""

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evotree.dataset import Dataset
from evotree.fitness.base import leaf_table, routed_rows
from evotree.fitness.linear_leaves import (
    ERROR,
    INTERCEPT,
    LinearLeafObjective,
    fit_model,
    rounding_grid,
    squared_error,
    sum_products,
)
from evotree.operators.initialization.growth import GrowthLimits, grow, init_dipolar
from evotree.operators.losses import row_losses
from evotree.operators.pruning import prune
from evotree.operators.splitters.base import Axis
from evotree.rng import make_streams
from evotree.tree import ObliqueTree
from tests.reference import linear_leaves as naive
from tests.reference.pruning import node_losses
from tests.strategies import populations, seeds, with_random_zeros

N_FIXED = INTERCEPT + 1
quickly = settings(max_examples=25)


def problem(seed, n=120, d=4, noise=0.3, unit=1.0):
    """Return rows with weights whose targets are linear in parts."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    y = np.where(X[:, 0] > 0.0, 2.0 * X[:, 1], 1.0 - X[:, 2]) + noise * rng.normal(
        size=n
    )
    weight = unit * rng.choice([0.4, 1.0, 3.0], n)
    return Dataset.from_arrays(X, y, weight, task="regression")


def grown(dataset, seed=0, **limits):
    stream = make_streams(seed, 0, 1)[0]
    return grow(dataset, Axis(), "squared_error", GrowthLimits(**limits), stream=stream)


@st.composite
def trees_of_lines(draw):
    """Draw rows and trees, small and ragged ones among them, that lines are in the leaves of."""
    term_penalty = draw(st.sampled_from((0.0, 0.001, 0.05)))
    objective = LinearLeafObjective(term_penalty=term_penalty)
    if draw(st.booleans()):
        dataset, found = draw(populations(task="regression"))
        dataset = dataset.evolved_for(objective)
        return dataset, [with_random_zeros(one, dataset, draw(seeds)) for one in found]
    seed = draw(seeds)
    dataset = problem(seed, draw(st.integers(20, 150))).evolved_for(objective)
    streams = make_streams(seed, 0, 2)
    return dataset, [
        grown(dataset, seed, max_depth=3),
        *(init_dipolar(dataset, 0.0, streams[0]),),
    ]


@given(seeds, st.integers(1, 80), st.integers(0, 5), st.sampled_from((1e-8, 1.0, 1e8)))
def test_sums_of_products_are_exact_on_their_grid(seed, n, m, unit):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, m + 1)) * unit ** rng.integers(0, 2, m + 1)
    y, weight = rng.normal(size=n), rng.choice([0.1, 1.0, 7.0], n)
    features = rng.permutation(m + 1)[:m].astype(np.int64)
    columns = np.column_stack([np.ones(n), X[:, features], y])
    grid = rounding_grid(weight @ columns**2)

    def summed(rows):
        sums = np.empty((m + 2, m + 2))
        return *sum_products(
            X, y, weight, features, rows.astype(np.int32), grid, sums
        ), sums

    rows = rng.permutation(n)
    low, high, sums = summed(rows)
    assert (low, high) == (y.min(), y.max())
    scale = np.sqrt(np.outer(np.diag(sums), np.diag(sums)))
    wanted = naive.products(X[:, features], y, weight)
    np.testing.assert_allclose(sums / scale, wanted / scale, atol=1e-12)
    cut = rng.integers(0, n + 1)
    np.testing.assert_array_equal(
        sums, summed(rows[:cut])[2] + summed(np.sort(rows[cut:]))[2]
    )


@given(
    seeds,
    st.integers(12, 100),
    st.integers(1, 6),
    st.sampled_from((0.0, 3.0, 10.0)),
    st.booleans(),
)
def test_fits_are_those_of_least_squares_on_the_chosen_features(
    seed, n, m, shrinkage, is_free
):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, m)) @ (np.eye(m) + 0.5 * rng.normal(size=(m, m)))
    y = X @ (rng.normal(size=m) * (rng.random(m) < 0.6)) + rng.normal(size=n) + 2.0
    weight = rng.choice([0.5, 1.0, 2.0], n)
    A, price = rng.normal(size=(m + 1, 3 * m + 3)), rng.choice([0.0, 5.0])
    signs = np.zeros(m, dtype=np.int64) if is_free else rng.integers(-1, 2, m)
    limits = (
        A @ A.T / (3 * m + 3),
        shrinkage,
        float(n),
        price,
        int(rng.integers(7)),
        signs,
    )
    fit, sums = np.zeros(N_FIXED + m), naive.products(X, y, weight)
    fit_model(sums, *limits, fit)
    intercept, coefficients, error = naive.fit(X, y, weight, *limits)
    assert fit[INTERCEPT] == pytest.approx(intercept, abs=1e-8)
    np.testing.assert_allclose(fit[N_FIXED:], coefficients, atol=1e-8)
    assert (fit[N_FIXED:] * signs >= 0.0).all()
    assert fit[ERROR] == pytest.approx(error, rel=1e-8)
    assert squared_error(sums, fit) == fit[ERROR]


@quickly
@given(trees_of_lines())
def test_the_objective_is_what_the_rows_say(drawn):
    dataset, individuals = drawn
    for one in individuals:
        objective = one.objective
        whole = dataset.sample_weight @ dataset.y**2 or 1.0
        errors, risks, terms, table = 0.0, [], 0, objective.table(one)
        for k in range(len(one)):
            rows = one.order[one.start[k] : one.end[k]]
            low, high, error, *line = naive.fit_of_rows(
                objective, dataset, np.sort(rows)
            )
            n_terms = np.count_nonzero(line[1])
            risks.append(error / whole + objective.term_penalty * n_terms)
            if one.subtree_size[k] > 1:
                continue
            errors, terms = errors + error, terms + n_terms
            quarter = 0.25 * (high - low)
            expected = np.zeros(dataset.X.shape[1])
            expected[list(objective.used)] = line[1]
            np.testing.assert_allclose(
                table[k], [line[0], low - quarter, high + quarter, *expected], atol=1e-7
            )
        np.testing.assert_allclose(objective.risk(one), risks, atol=1e-7)
        assert one.quality == pytest.approx(1.0 - errors / whole, abs=1e-7)
        assert objective.n_leaf_terms(one) == terms
        assert one.n_terms == np.count_nonzero(one.weights) + terms
        assert objective.whole_loss(dataset) == pytest.approx(whole)


@quickly
@given(trees_of_lines())
def test_what_was_asked_before_does_not_matter(drawn):
    """Not what is remembered, not what is forgotten, and not whether a leaf was a split before."""
    dataset, individuals = drawn

    names = ["quality", "risk", "table", "n_leaf_terms"]
    for one in individuals:
        pruned = prune(one.clone(), dataset, 0.001)[0]
        for tree in (one, pruned, one):
            fresh, forgetful = (dataset.objective.bind(dataset) for _ in range(2))
            forgetful.memory.max_row_sets = 1
            copied = pickle.loads(pickle.dumps(one.objective))
            expected = {name: getattr(fresh, name)(tree) for name in names}
            for objective in (one.objective, forgetful, copied, fresh):
                for name in names[::-1]:
                    np.testing.assert_array_equal(
                        getattr(objective, name)(tree), expected[name]
                    )


@pytest.mark.parametrize("threshold", [-1e9, 1e9])
def test_a_node_that_no_row_reaches_loses_nothing(threshold):
    dataset = problem(0).evolved_for(LinearLeafObjective())
    # The sums of all rows are known when the leaf that has them comes.
    for size in (
        [1],
        [3, 1, 1],
    ):
        weights, thresholds = np.zeros((len(size), 4)), np.zeros(len(size))
        weights[: len(size) // 2, 0], thresholds[0] = 1.0, threshold
        tree = ObliqueTree(
            weights, thresholds, np.array(size, np.int32), np.zeros((len(size), 1))
        )
        errors = dataset.bound_objective.errors(routed_rows(tree, dataset.raw))
    assert (errors > 0.0).tolist() == [False, threshold > 0.0, threshold < 0.0]


@quickly
@given(trees_of_lines())
def test_finished_trees_predict_as_the_search_does(drawn):
    dataset, individuals = drawn
    for one in individuals:
        in_raw_units, reached = dataset.to_raw(one.to_tree()), one.apply(dataset.X)
        if (in_raw_units.apply(dataset.raw) != reached).any():
            continue  # rounding sends a row on a hyperplane to its other side
        tree = dataset.bound_objective.finish(in_raw_units, dataset).validate()
        assert tree.values.shape == (len(tree), 1)
        raw = dataset.target_mean + dataset.target_scale * dataset.y
        table = leaf_table(one, 0)
        searched = np.array([*map(naive.predict, table[reached], dataset.X)])
        lost = row_losses(one, dataset)
        np.testing.assert_array_equal(lost, (dataset.y - searched) ** 2)
        np.testing.assert_allclose(
            tree.predict_value(dataset.raw)[:, 0],
            dataset.target_mean + dataset.target_scale * searched,
            atol=1e-6 * max(1.0, abs(raw).max()),
        )
        if len(tree) < len(one):  # a leaf had no row left once rounding took them
            continue
        n_constant = sum(  # terms of columns that say nothing of the rows of a leaf
            np.count_nonzero(
                table[k, 3:][np.ptp(dataset.raw[reached == k], axis=0) == 0]
            )
            for k in np.unique(reached)
        )
        assert tree.n_terms == one.n_terms - n_constant


@quickly
@given(trees_of_lines())
def test_held_out_rows_lose_by_the_lines_of_all_nodes(drawn):
    """Those of splits as if they were leaves."""
    dataset, individuals = drawn
    for one in individuals:
        # The first rows of the order have residuals, too.
        rows = np.sort(one.order[: one.end[0] // 2 + 1])
        *_, intercept, coefficients = naive.fit_of_rows(one.objective, dataset, rows)
        line = (
            intercept + dataset.X[np.ix_(rows, list(one.objective.used))] @ coefficients
        )
        left = one.objective.residuals(rows.astype(np.int32))
        np.testing.assert_allclose(left, dataset.y[rows] - line, atol=1e-7)
        fits, losses = one.objective.models(one, splits=True).table, np.zeros(len(one))
        for i, k in zip(*one.decision_path(dataset.X).nonzero(), strict=True):
            excess = dataset.y[i] - naive.predict(fits[k], dataset.X[i])
            losses[k] += dataset.sample_weight[i] * excess**2
        np.testing.assert_allclose(node_losses(one, dataset), losses, atol=1e-9)
