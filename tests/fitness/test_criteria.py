"""The criteria: naive twins, worked examples, and what holds for each of them by its definition."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evotree._jit import kernel
from evotree.fitness.criteria import CLASSIFICATION, Criterion, class_ranks, node_score, split_score
from tests.reference import criteria as naive
from tests.strategies import seeds

each_criterion = pytest.mark.parametrize("name", CLASSIFICATION)


@kernel
def scored(criterion, left, right, rank):
    """The inner kernel, for Python."""
    return split_score(criterion, left, right, rank)


def score(name, left, right):
    left, right = np.array(left, dtype=float), np.array(right, dtype=float)
    return scored(Criterion[name.upper()], left, right, class_ranks(left + right))


def undivided(name, counts):
    counts = np.array(counts, dtype=float)
    return node_score(Criterion[name.upper()], counts, class_ranks(counts))


@st.composite
def sides(draw):
    """Draw the class weights of two sides: zeros, ties, fractions, an empty or a pure side."""
    rng = np.random.default_rng(draw(seeds))
    n_classes = draw(st.integers(1, 6))
    kind = draw(st.sampled_from(("whole", "fractions", "uneven")))
    counts = rng.integers(0, 6, (2, n_classes)).astype(float)
    if kind == "fractions":
        counts *= rng.random((2, n_classes))
    elif kind == "uneven":
        counts *= 10.0 ** rng.integers(-2, 3, (2, n_classes))
    shape = draw(st.sampled_from(("any", "empty", "pure")))
    if shape == "empty":
        counts[draw(st.integers(0, 1))] = 0.0
    elif shape == "pure":
        counts[draw(st.integers(0, 1)), 1:] = 0.0
    if not counts.any():
        counts[0, 0] = 1.0
    return counts[0], counts[1]


@each_criterion
@given(sides())
def test_scores_are_those_of_the_definition_and_the_undivided_node_bounds_them(name, drawn):
    left, right = drawn
    whole = left + right
    found, bound = score(name, left, right), undivided(name, whole)
    assert found == pytest.approx(naive.class_score(name, left, right), rel=1e-9, abs=1e-9)
    assert found <= bound + 1e-9
    lowest = -1.0 if name in ("twoing", "gain_ratio") else 0.0
    assert found >= lowest - 1e-9
    # Sides of the node's shares are no better than the node, nor is an empty side.
    if name != "max_minority":
        assert score(name, 0.25 * whole, 0.75 * whole) == pytest.approx(bound, abs=1e-9)
    assert score(name, whole, 0 * whole) == bound
    assert score(name, 0 * whole, whole) == bound


def test_quinlans_saturday_mornings():
    """Nine mornings of one class, five of the other; an overcast outlook has four of the first.

    Quinlan (1986) gives 0.940 bits for all of them; the gain of overcast against the other
    outlooks, (5, 5), is 0.940 - 10/14, over 0.863 bits for a part of 4 in 14.
    """
    assert undivided("entropy", [9, 5]) == pytest.approx(0.940, abs=5e-4)
    assert score("entropy", [4, 0], [5, 5]) == pytest.approx(10 / 14)
    ratio = (undivided("entropy", [9, 5]) - 10 / 14) / undivided("entropy", [4, 10])
    assert score("gain_ratio", [4, 0], [5, 5]) == pytest.approx(-ratio)
    assert ratio == pytest.approx(0.262, abs=5e-4)


def test_squared_error_is_never_negative():
    """Equal targets of which rounding makes a variance below 0."""
    y = 0.1
    for n in range(1, 200):
        sums = np.zeros(3)
        for _ in range(n):
            sums += (1.0, y, y * y)
        assert node_score(Criterion.SQUARED_ERROR, sums, np.ones(3)) >= 0.0
