"""Rows that are not in the data: copies with noise."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evotree.dataset import SCALINGS, Dataset, jitter
from tests.strategies import any_datasets, seeds, stream_of


@pytest.mark.parametrize("scaling", SCALINGS)
def test_noise_is_in_units_of_the_features(scaling):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 4)) * [1.0, 100.0, 1e-3, 0.0]
    dataset = Dataset.from_arrays(X, rng.integers(0, 2, 200), scaling=scaling)
    noise = jitter(dataset, 0.5, 20, stream_of()).X[200:] - np.tile(dataset.X, (20, 1))
    deviation = (noise * dataset.scale).std(axis=0)
    np.testing.assert_allclose(deviation, 0.5 * X.std(axis=0), rtol=0.05)
    assert (noise[:, 3] == 0.0).all()  # a constant column stays constant


@given(any_datasets, st.integers(0, 4), st.sampled_from((0.0, 0.1, 2.0)), seeds)
def test_blurred_copies_share_weights_and_targets(dataset, n_copies, noise, seed):
    """Without copies noise takes the place of the rows."""
    jittered = jitter(dataset, noise, n_copies, stream_of(seed))
    assert jittered.classes is dataset.classes and jittered.scale is dataset.scale
    assert not jittered.X.flags.writeable and jittered.y.dtype == dataset.y.dtype
    rows, n = dataset.unmerged(), len(dataset.y) if n_copies else 0
    times, share = max(n_copies, 1), 1.0 / (n_copies + 1)
    copies = np.tile(rows.X, (times, 1))
    assert jittered.X.shape == (n + len(copies), rows.X.shape[1])
    np.testing.assert_array_equal(jittered.X[:n], dataset.X[:n])
    np.testing.assert_array_equal(jittered.y, [*dataset.y[:n], *np.tile(rows.y, times)])
    np.testing.assert_allclose(
        jittered.sample_weight[:n], share * dataset.sample_weight[:n]
    )
    weights = jittered.sample_weight[n:].reshape(times, -1)
    np.testing.assert_allclose(weights[0], share * rows.sample_weight)
    np.testing.assert_array_equal(weights, np.tile(weights[0], (times, 1)))
    if noise == 0.0:
        np.testing.assert_array_equal(jittered.X[n:], copies)
    again = jitter(dataset, noise, n_copies, stream_of(seed))
    np.testing.assert_array_equal(jittered.X, again.X)
    assert jittered.multiplicity.sum() == dataset.multiplicity.sum()
