"""Dipole tests, the dipolar operator and margin centring."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from evotree.fitness.node import centre_margin
from evotree.operators.splitters.dipole import (
    dipolar_change,
    dipole_hyperplane,
    gaussian_change,
    mixed_dipole,
)
from evotree.rng import make_streams
from tests.reference import naive
from tests.strategies import datasets, seeds, stream_of


@given(datasets(), seeds)
def test_dipole_test_divides_a_mixed_dipole(dataset, seed):
    assume(len(np.unique(dataset.y)) > 1)
    n, d = dataset.X.shape
    order = np.arange(n, dtype=np.int32)
    w = np.empty(d)
    threshold = dipole_hyperplane(
        dataset.X, dataset.y, order, 0, n, stream_of(seed), w, 0
    )
    if not w.any():  # two classes at one point
        return
    assert np.linalg.norm(w) == pytest.approx(1.0)
    projection = dataset.X @ w
    i, j = mixed_dipole(dataset.y, order, 0, n, stream_of(seed))
    assert projection[j] - 1e-9 <= threshold <= projection[i] + 1e-9
    difference = dataset.X[i] - dataset.X[j]
    np.testing.assert_allclose(w * np.linalg.norm(difference), difference, atol=1e-9)


@given(datasets(), st.integers(1, 6), seeds)
def test_a_dipole_of_few_features_is_that_of_all_without_the_others(
    dataset, max_width, seed
):
    assume(len(np.unique(dataset.y)) > 1)
    n, d = dataset.X.shape
    order = np.arange(n, dtype=np.int32)
    few, full = np.empty(d), np.empty(d)
    for w, width in ((few, max_width), (full, 0)):
        dipole_hyperplane(dataset.X, dataset.y, order, 0, n, stream_of(seed), w, width)
    used = np.flatnonzero(few)
    assert used.size <= max_width and (used.size > 0) == full.any()
    if used.size:
        expected = full[used] / np.linalg.norm(full[used])
        np.testing.assert_allclose(few[used], expected, rtol=1e-9)


@given(datasets(), seeds, st.booleans(), st.booleans())
def test_changes_move_one_weight_and_sparse_ones_keep_those_of_0(
    dataset, seed, dipolar, sparse
):
    rng = np.random.default_rng(seed)
    n, d = dataset.X.shape
    w = rng.standard_normal(d) * (rng.uniform(size=d) < 0.5)
    changed, stream = w.copy(), stream_of(seed)
    if dipolar:
        order = np.arange(n, dtype=np.int32)
        is_done = dipolar_change(
            dataset.X, dataset.y, order, 0, n, stream, changed, 0.1, sparse
        )
        assert is_done or (changed == w).all()
    else:
        gaussian_change(stream, changed, 0.1, dataset.spread, sparse)
    assert (changed[w == 0.0] == 0.0).all() or not sparse
    assert np.count_nonzero(changed != w) <= 1 and np.isfinite(changed).all()


def test_gaussian_change_moves_all_coordinates_in_the_units_of_the_features():
    spread = np.array([1.0, 100.0])
    moves = []
    for stream in make_streams(2, 0, 6000):
        w = np.array([1.0, 0.01])
        threshold = gaussian_change(stream, w, 0.0, spread, False)
        moves.append([w[0] - 1.0, w[1] - 0.01, threshold])
    moves = np.array(moves)
    assert (np.count_nonzero(moves, axis=1) == 1).all()
    np.testing.assert_allclose((moves != 0).mean(axis=0), 1 / 3, atol=0.03)
    size = [np.median(np.abs(column[column != 0])) for column in moves.T]
    assert size[0] / size[1] == pytest.approx(100.0, rel=0.2)
    assert size[2] / size[0] == pytest.approx(np.sqrt(2.0), rel=0.2)


@given(
    st.lists(st.tuples(st.integers(-5, 5), st.integers(0, 2)), min_size=1, max_size=20),
    st.floats(-6, 6),
)
def test_centring_agrees_with_its_naive_twin_and_moves_no_row(rows, threshold):
    # Rows of one projection and two classes would leave open which of them is the nearest.
    rows = list({s: (float(s), c) for s, c in rows}.values())
    projection = np.array([s for s, _ in rows])
    y = np.array([c for _, c in rows], dtype=np.int32)
    order = np.arange(len(rows), dtype=np.int32)
    centred = centre_margin(projection, order, 0, len(rows), y, threshold)
    assert centred == pytest.approx(naive.centred_threshold(projection, y, threshold))
    np.testing.assert_array_equal(projection <= centred, projection <= threshold)


@pytest.mark.parametrize("below", [1.0, np.nextafter(1.0, 2.0)])
def test_centring_between_neighbouring_floats_moves_no_row(below):
    """Half-way is rounded to the even one of the two, the lower or the upper."""
    above = np.nextafter(below, 2.0)
    projection = np.array([below, above])
    y = np.array([0, 1], dtype=np.int32)
    centred = centre_margin(projection, np.arange(2, dtype=np.int32), 0, 2, y, below)
    assert below <= centred < above
