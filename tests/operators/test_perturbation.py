"""Axis-parallel splits, OC1, CART-LC and simulated annealing: their moves against naive twins."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evotree.fitness.node import (
    CLASSIFICATION,
    choose_threshold,
    score_hyperplane,
)
from evotree.operators.splitters.base import Axis
from evotree.operators.splitters.perturbation import (
    OC1,
    CartLC,
    columns_to_perturb,
    lowest_score,
    search_oc1,
)
from tests.reference import smooth
from tests.reference.perturbation import (
    allowed_score,
    axis_search,
    cart_lc_cycle,
    perturb_coefficient,
)
from tests.reference.smooth import oblique_node
from tests.strategies import stream_of

STREAM = stream_of()


@pytest.mark.parametrize("name", (*CLASSIFICATION, "squared_error"))
@settings(max_examples=40)
@given(st.data())
def test_the_best_of_all_midpoints(name, data):
    node = data.draw(smooth.nodes(name))
    best, feature, _ = axis_search(node, name)
    split = Axis()(node, STREAM)
    if feature < 0:
        assert split is None
        return
    assert split.score == pytest.approx(best, abs=1e-9)
    found = score_hyperplane(node, split.weights, split.threshold)
    assert found == pytest.approx(best, abs=1e-9)
    assert sorted(split.weights)[-1] == split.weights.sum() == 1.0


def search(node, *parameters):
    """Search for an oblique split as `OC1` does; the last parameter becomes the hyperplane."""
    searched, *columns = columns_to_perturb(node)
    search_oc1(searched, *columns, lowest_score(searched), *parameters)


def test_perturbations_end_where_no_value_of_a_coefficient_is_better():
    rng = np.random.default_rng(0)
    n_moved = 0
    for name in (*CLASSIFICATION, "squared_error"):
        for seed in range(8):
            node = oblique_node(rng, name, 30, 3)
            start = np.append(rng.normal(size=3), 0.0)
            start[3] = -np.median(node.X @ start[:3])
            X = np.column_stack([node.X, np.ones(30)])
            goal, end = allowed_score(node, name, X @ start <= 0), np.zeros(4)
            search(node, 1, 0, 1.0, start, goal, stream_of(seed), end)
            if not end.any():
                continue
            n_moved += 1
            found = allowed_score(node, name, X @ end <= 0)
            assert found < goal
            for m in range(4):
                assert perturb_coefficient(node, name, end, m) >= found - 1e-9
    assert n_moved > 30


def test_when_oc1_is_axis_parallel():
    node = oblique_node(np.random.default_rng(4), "gini", 40, 5)
    axis, oblique = Axis()(node, stream_of()), OC1(2)(node, stream_of())
    assert oblique.score < axis.score
    few = OC1(2, min_rows_per_feature=8.1)(node, stream_of())
    assert few.weights.tolist() == axis.weights.tolist()
    enough = OC1(2, min_rows_per_feature=8.0)(node, stream_of())
    assert np.count_nonzero(enough.weights) > 1


@pytest.mark.slow
@pytest.mark.parametrize("name", ("gini", "entropy", "twoing", "squared_error"))
def test_a_cycle_of_cart_lc(name):
    """From a random hyperplane, rows of random weights: no two splits are equally good."""
    rng = np.random.default_rng(7)
    for _ in range(2):
        node = oblique_node(rng, name, 24, 3)._replace(
            sample_weight=rng.random(24) + 0.1
        )
        mean = np.average(node.X, axis=0, weights=node.sample_weight)
        scale = np.sqrt(
            np.average((node.X - mean) ** 2, axis=0, weights=node.sample_weight)
        )
        weights = rng.normal(size=3)
        threshold = np.median(node.X @ weights)
        standard = node._replace(X=(node.X - mean) / scale)
        b, c = cart_lc_cycle(
            standard, name, weights * scale, threshold - weights @ mean
        )
        one_cycle = CartLC(max_cycles=1, tol=0.0, elimination=0.0)
        one_cycle.search(node, weights, threshold, stream_of())
        assert weights * scale == pytest.approx(b, abs=1e-9)
        goes_left = standard.X @ b <= c
        found = choose_threshold(node, weights)[0]
        assert found == pytest.approx(allowed_score(node, name, goes_left), abs=1e-9)


@pytest.mark.parametrize("name", ("twoing", "gini"))
def test_elimination_costs_less_than_its_share_of_the_gain(name):
    rng = np.random.default_rng(8)
    n_used = np.zeros(3)
    for _ in range(5):
        node = oblique_node(rng, name, 150, 6)
        flat = score_hyperplane(node._replace(min_rows=0), np.zeros(6), 1.0)
        scores = []
        for at, share in enumerate((0.0, 0.1, 0.3)):
            axis = Axis()(node, stream_of())
            weights = axis.weights.copy()
            splitter = CartLC(max_cycles=50, tol=0.0, elimination=share)
            splitter.search(node, weights, axis.threshold, stream_of())
            scores.append(choose_threshold(node, weights)[0])
            n_used[at] += (weights != 0.0).sum()
            assert flat - scores[-1] > (1.0 - share) * (flat - scores[0]) - 1e-9
    assert n_used[0] >= n_used[1] >= n_used[2] < n_used[0]
