"""Folds count and part the rows as they were given."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from evotree.dataset import Dataset, make_folds, split_folds
from evotree.rng import make_streams
from tests.strategies import any_datasets, seeds


def stream(seed=0):
    return make_streams(seed, 0, 1)[0]


@given(any_datasets, st.integers(2, 12), seeds)
def test_folds_are_balanced_and_part_all_rows(dataset, n_folds, seed):
    folds = make_folds(dataset, n_folds, stream(seed))
    assert len(folds) == dataset.multiplicity.sum()
    assert np.ptp(np.bincount(folds, minlength=n_folds)) <= 1
    y = np.repeat(dataset.y, dataset.multiplicity)
    for c in range(dataset.n_classes):
        assert np.ptp(np.bincount(folds[y == c], minlength=n_folds)) <= 1
    np.testing.assert_array_equal(folds, make_folds(dataset, n_folds, stream(seed)))
    parts = [split_folds(dataset, folds, fold) for fold in range(n_folds)]
    for others, inside in parts:
        assert others.n_rows + inside.n_rows == dataset.n_rows
        total = others.total_weight + inside.total_weight
        np.testing.assert_allclose(total, dataset.total_weight, rtol=1e-12)
    rows = np.concatenate([inside.unmerged().X for _, inside in parts])
    whole = dataset.unmerged().X
    np.testing.assert_array_equal(rows[np.lexsort(rows.T)], whole[np.lexsort(whole.T)])


def test_equal_rows_are_dealt_out_one_by_one():
    """Of 1,000 rows of two kinds each fold, and the rest, has both in their shares."""
    X, y = np.repeat([[0.0], [1.0]], [700, 300], axis=0), np.repeat([0, 1], [700, 300])
    dataset = Dataset.from_arrays(X, y)
    folds = make_folds(dataset, 5, stream())
    for fold in range(5):
        others, inside = split_folds(dataset, folds, fold)
        for part, counts in ((inside, [140, 60]), (others, [560, 240])):
            np.testing.assert_array_equal(part.multiplicity, counts)
            np.testing.assert_array_equal(part.sample_weight, counts)
