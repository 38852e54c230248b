"""The kernels on the rows of one node, against NumPy."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from evotree.fitness.partition import (
    count_classes,
    project_rows,
    sort_rows,
    split_rows,
    trailing_zeros,
)
from tests.strategies import seeds


@st.composite
def slices(draw):
    rng = np.random.default_rng(draw(seeds))
    n = draw(st.integers(1, 300))
    order = rng.permutation(n).astype(np.int32)
    lo = draw(st.integers(0, n - 1))
    hi = draw(st.integers(lo + 1, n))
    return rng, order, lo, hi


@given(slices(), st.integers(1, 9))
def test_project_rows(drawn, d):
    rng, order, lo, hi = drawn
    X, weights = rng.standard_normal((len(order), d)), rng.standard_normal((3, d))
    out = np.empty(hi - lo)
    project_rows(weights, 2, X, order, lo, hi, out)
    np.testing.assert_allclose(out, X[order[lo:hi]] @ weights[2], atol=1e-12)


@given(slices())
def test_split_rows_is_stable(drawn):
    rng, order, lo, hi = drawn
    projection = rng.integers(0, 4, hi - lo).astype(float)
    rows = order[lo:hi].copy()
    expected = np.concatenate([order[:lo], rows[projection <= 2], rows[projection > 2], order[hi:]])
    mid = split_rows(order, lo, hi, projection, 2.0, np.empty(hi - lo, dtype=np.int32))
    assert mid == lo + (projection <= 2).sum()
    np.testing.assert_array_equal(order, expected)


@given(slices())
def test_sort_rows(drawn):
    _, order, lo, hi = drawn
    expected = order.copy()
    expected[lo:hi].sort()
    sort_rows(order, lo, hi)
    np.testing.assert_array_equal(order, expected)


@given(slices(), st.integers(1, 5))
def test_count_classes(drawn, n_classes):
    rng, order, lo, hi = drawn
    y = rng.integers(0, n_classes, len(order)).astype(np.int32)
    weight = rng.random(len(order))
    counts = np.full((2, n_classes), 9.0)
    count_classes(order, lo, hi, y, weight, counts, 1)
    rows = order[lo:hi]
    np.testing.assert_allclose(
        counts[1], np.bincount(y[rows], weights=weight[rows], minlength=n_classes)
    )
    assert (counts[0] == 9.0).all()


@given(st.integers(1, 2**64 - 1))
def test_trailing_zeros(number):
    assert trailing_zeros(np.uint64(number)) == (number & -number).bit_length() - 1
