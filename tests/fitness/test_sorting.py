"""Sorting, against NumPy's stable sort."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from evotree.fitness.node import argsort
from tests.strategies import seeds

# Around the length from which on another algorithm takes over.
LENGTHS = (0, 1, 2, 3, 25, 48, 95, 96, 97, 193, 500)
lengths = st.sampled_from(LENGTHS)


def check(values):
    """Rising values, every position once, equal numbers as they came; the values are only read."""
    values = np.ascontiguousarray(values, dtype=np.float64)
    before = values.copy()
    order = argsort(values)
    assert order.dtype == np.int32
    np.testing.assert_array_equal(np.sort(order), np.arange(len(values)))
    np.testing.assert_array_equal(values[order], np.sort(values))
    # -0.0 equals 0.0 and may come first
    if not (np.signbit(values) & (values == 0.0)).any():
        np.testing.assert_array_equal(order, np.argsort(values, kind="stable"))
    assert values.tobytes() == before.tobytes()


@given(
    arrays(
        np.float64, lengths, elements=st.floats(allow_nan=False, allow_infinity=False)
    )
)
def test_any_finite_numbers(values):
    check(values)


@given(
    lengths, seeds, st.integers(1, 40), st.sampled_from((1.0, -1.0, 1e-300, 2.0**900))
)
def test_ties_extremes_and_numbers_that_differ_in_their_last_bits(
    n, seed, n_values, base
):
    """The leading bits, by which positions are sorted first, are the same for all of the last."""
    rng = np.random.default_rng(seed)
    check(rng.integers(-n_values, n_values, n))
    tiny, huge = np.finfo(float).smallest_subnormal, np.finfo(float).max
    special = np.array([0.0, tiny, 2 * tiny, 1e-310, huge, 1.0])
    check(rng.choice(special, n) * rng.choice([-1.0, 1.0], n))
    steps = rng.permutation(n)
    for repeated in (1, 3):
        check(base * (1.0 + np.finfo(float).eps * (steps // repeated)))


@pytest.mark.parametrize("step", (1.0, 1e-15))
def test_orders_of_arrival(step):
    for n in (*LENGTHS, 30_000):
        rising = 1.0 + step * np.arange(n)
        check(np.roll(rising, n // 3)[::-1])
        check(np.concatenate([rising[::2], rising[1::2][::-1]]))
        check(np.random.default_rng(n).permutation(rising))
