"""Folds and official splits."""

import numpy as np
import pandas as pd
import pytest

from evotree.experiments.datasets import LoadedData
from evotree.experiments.protocols import OFFICIAL, take_fold, take_rows


def test_medians_are_those_of_the_training_rows():
    X = pd.DataFrame({"x": [1.0, 3.0, np.nan, np.nan, 100.0]})
    parts = take_rows(X, np.arange(5), np.array([0, 1, 2]), np.array([3, 4]))
    np.testing.assert_array_equal(parts.X_train[:, 0], [1, 3, 2])
    np.testing.assert_array_equal(parts.X_test[:, 0], [2, 100])
    np.testing.assert_array_equal(parts.y_test, [3, 4])


def test_folds_part_the_rows_and_the_official_split_is_the_first_rows():
    y = np.arange(30) % 3
    data = LoadedData("toy", pd.DataFrame({"x": np.arange(30.0)}), y, n_train=20)
    tests = [take_fold(data, 5, 1, fold).X_test[:, 0] for fold in range(5)]
    np.testing.assert_array_equal(np.sort(np.concatenate(tests)), np.arange(30))
    for seed in (0, 7):
        official = take_fold(data, 5, seed, OFFICIAL)
        np.testing.assert_array_equal(official.X_train[:, 0], np.arange(20))
        np.testing.assert_array_equal(official.X_test[:, 0], np.arange(20, 30))
    without = LoadedData("toy", data.X, y, n_train=None)
    with pytest.raises(ValueError, match="'toy' has no official split"):
        take_fold(without, 5, 0, OFFICIAL)
