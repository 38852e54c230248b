"""Sorting, against NumPy's stable sort."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from evotree._jit import kernel
from evotree.fitness.sorting import argsort, insert, make_sort_scratch, radix_sort
from tests.strategies import seeds

# Around the lengths at which another algorithm takes over, 24 and 96, and the lengths of its runs.
LENGTHS = (0, 1, 2, 3, 23, 24, 25, 47, 48, 49, 72, 95, 96, 97, 192, 193, 500)
lengths = st.sampled_from(LENGTHS)


@kernel
def order_of_leading_bits(values):
    """The inner kernel, for Python."""
    order = np.empty(values.shape[0], dtype=np.int32)
    radix_sort(values, values.shape[0], order, make_sort_scratch(values.shape[0]))
    return order


@kernel
def insert_some(values, order, lo, hi, allowed):
    """The inner kernel, for Python."""
    return insert(values, order, lo, hi, allowed)


def check(values):
    """Rising values, every position once, equal numbers as they came; the values are only read."""
    values = np.ascontiguousarray(values, dtype=np.float64)
    before = values.copy()
    order = argsort(values)
    assert order.dtype == np.int32
    np.testing.assert_array_equal(np.sort(order), np.arange(len(values)))
    np.testing.assert_array_equal(values[order], np.sort(values))
    if not (np.signbit(values) & (values == 0.0)).any():  # -0.0 equals 0.0 and may come first
        np.testing.assert_array_equal(order, np.argsort(values, kind="stable"))
    assert values.tobytes() == before.tobytes()


@given(arrays(np.float64, lengths, elements=st.floats(allow_nan=False, allow_infinity=False)))
def test_any_finite_numbers(values):
    check(values)


@given(lengths, seeds, st.integers(1, 40))
def test_ties(n, seed, n_values):
    check(np.random.default_rng(seed).integers(-n_values, n_values, n))


@given(lengths, seeds)
def test_signs_denormals_and_extremes(n, seed):
    tiny, huge = np.finfo(float).smallest_subnormal, np.finfo(float).max
    special = np.array([0.0, -0.0, tiny, -tiny, 2 * tiny, 1e-310, huge, -huge, 1.0, -1.0])
    check(np.random.default_rng(seed).choice(special, n))


@given(lengths, seeds, st.sampled_from((1.0, -1.0, 1e-300, 12345.678, 2.0**900)))
def test_numbers_that_differ_in_their_last_bits(n, seed, base):
    """The leading bits, by which positions are sorted first, are the same for all of them."""
    steps = np.random.default_rng(seed).permutation(n)
    check(base * (1.0 + np.finfo(float).eps * steps))
    check(base * (1.0 + np.finfo(float).eps * (steps // 3)))


@pytest.mark.parametrize("n", LENGTHS)
@pytest.mark.parametrize("step", (1.0, 1e-15))
def test_orders_of_arrival(n, step):
    rising = 1.0 + step * np.arange(n)
    check(rising)
    check(rising[::-1])
    check(np.roll(rising, n // 3))
    check(np.concatenate([rising[::2], rising[1::2]]))
    check(np.concatenate([rising[::2], rising[1::2][::-1]]))
    check(np.full(n, -7.5))


@pytest.mark.parametrize("step", (1.0, 1e-16))
def test_many_numbers(step):
    rng = np.random.default_rng(0)
    for n in (2_000, 30_000):
        check(1.0 + step * rng.permutation(n))
        check(rng.normal(size=n))


@given(arrays(np.float64, st.integers(1, 200), elements=st.floats(allow_nan=False)), seeds)
def test_leading_bits_are_sorted_without_comparisons(values, seed):
    """Insertion and merging would put right what the radix sort gets wrong, at a price in time."""
    if seed % 2:
        values = np.random.default_rng(seed).normal(size=len(values))
    bits = values.view(np.uint64)
    sign = np.uint64(1 << 63)
    keys = np.where(bits & sign, ~bits, bits | sign) >> np.uint64(31)
    expected = np.argsort(keys, kind="stable")
    np.testing.assert_array_equal(order_of_leading_bits(values), expected)


@pytest.mark.parametrize("allowed, is_enough", ((0, False), (40, False), (45, True)))
def test_insertion_gives_up_after_the_moves_allowed(allowed, is_enough):
    """Ten falling numbers take 45 moves; the rest of the array stays as it is."""
    values = np.arange(14.0)[::-1].copy()
    order = np.arange(14, dtype=np.int32)
    assert insert_some(values, order, 2, 12, allowed) == is_enough
    np.testing.assert_array_equal(order[[0, 1, 12, 13]], [0, 1, 12, 13])
    np.testing.assert_array_equal(np.sort(order), np.arange(14))
    if is_enough:
        np.testing.assert_array_equal(order[2:12], np.arange(11, 1, -1))
