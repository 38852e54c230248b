"""Splits on few features: costs, widths, exact searches, and known truths."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evotree.fitness.node import Criterion
from evotree.operators.splitters.linear import WIDTHS, Sparse
from tests.reference import smooth
from tests.reference import sparse as naive
from tests.strategies import seeds


def make_node(X, goes_right, cost):
    return smooth.make_node(X, goes_right.astype(int), cost, 2, Criterion.ERROR)


@st.composite
def problems(draw):
    """Draw two groups of rows: ties, constant columns, costs of any size."""
    rng = np.random.default_rng(draw(seeds))
    n, d = draw(st.integers(2, 150)), draw(st.integers(1, 6))
    grid = draw(st.sampled_from((2, 5, 1000)))
    X = rng.integers(0, grid, (n, d)).astype(float)
    if draw(st.booleans()):
        X[:, 0] = 3.0
    goes_right = rng.uniform(size=n) < draw(st.sampled_from((0.2, 0.5)))
    goes_right[0], goes_right[-1] = True, False
    cost = np.ones(n) if draw(st.booleans()) else rng.uniform(0.1, 5.0, n)
    start = rng.standard_normal(d) * (rng.uniform(size=d) < 0.7)
    return X, goes_right, cost, start


def width(split):
    return np.count_nonzero(split.weights)


def cost_of(split, X, goes_right, cost, term_cost=0.0):
    wrong = naive.misrouted(X @ split.weights, goes_right, cost, split.threshold)
    return wrong + term_cost * (width(split) - 1)


@given(
    problems(),
    st.sampled_from(WIDTHS),
    st.one_of(st.none(), st.integers(1, 3)),
    st.sampled_from((0.0, 0.3, 100.0)),
)
def test_a_split_costs_what_it_says_and_no_more_than_the_best_on_one_feature(
    problem, widths, max_features, term_cost
):
    X, goes_right, cost, start = problem
    splitter = Sparse(widths, max_features, term_cost)
    split = splitter.refit(make_node(X, goes_right, cost), start, 0.5)
    on_one = naive.least_axis_cost(X, goes_right, cost)
    if split is None:
        assert on_one == np.inf
        return
    assert 1 <= width(split) <= (max_features or X.shape[1])
    assert split.score <= on_one * (1 + 1e-9) + 1e-9
    assert split.score == pytest.approx(
        cost_of(split, X, goes_right, cost, term_cost), abs=1e-6
    )
    least = naive.least_cost(X @ split.weights, goes_right, cost)
    assert cost_of(split, X, goes_right, cost) == pytest.approx(least, abs=1e-6)


@given(problems(), st.sampled_from(("same", "fewer")))
def test_no_feature_comes_that_was_not_there_but_by_the_best_split_on_one(
    problem, widths
):
    X, goes_right, cost, start = problem
    split = Sparse(widths).refit(make_node(X, goes_right, cost), start, 0.5)
    if split is None or width(split) == 1 or not start.any():
        return
    before = np.flatnonzero(start)
    assert set(np.flatnonzero(split.weights)) <= set(before)
    if widths == "fewer":
        assert width(split) <= max(1, before.size - 1)


def test_terms_that_cost_more_than_they_save_leave():
    """The penalty decides between one feature that is nearly right and two that are."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((400, 8))
    goes_right = X[:, 2] + 0.3 * X[:, 5] > 0.0
    node = make_node(X, goes_right, np.ones(400))
    start = np.ones(8)
    wrong = naive.least_cost(X[:, 2], goes_right, np.ones(400))
    assert 10 < wrong < 60
    cheap = Sparse(term_cost=0.1 * wrong, C=100.0).refit(node, start, 0.0)
    dear = Sparse(term_cost=2.0 * wrong, C=100.0).refit(node, start, 0.0)
    assert set(np.flatnonzero(cheap.weights)) == {2, 5} and cheap.score < 0.3 * wrong
    assert set(np.flatnonzero(dear.weights)) == {2} and dear.score == wrong


def test_equal_thresholds_are_settled_in_the_widest_gap():
    X = np.array([[0.0], [1.0], [2.0], [6.0], [7.0], [8.0]])
    # The second row and the fifth are on the wrong side of any threshold between them.
    goes_right = np.array([False, True, False, True, False, True])
    split = Sparse("same").refit(make_node(X, goes_right, np.ones(6)), np.ones(1), 0.0)
    threshold = split.threshold / split.weights[0]
    assert threshold == pytest.approx(4.0)
