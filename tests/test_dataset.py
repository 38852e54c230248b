"""Training data: canonical rows, scaling, the way back to raw units, refusals."""

import numpy as np
import pytest
from hypothesis import given
from sklearn.preprocessing import StandardScaler

from evotree.dataset import Dataset
from evotree.operators.initialization import init_dipolar
from evotree.rng import make_streams
from tests.strategies import populations, seeds


@given(seeds)
def test_weights_are_repetitions_in_any_order(seed):
    rng = np.random.default_rng(seed)
    X, y = rng.integers(0, 3, (20, 2)).astype(float), rng.integers(0, 3, 20)
    times = rng.integers(0, 4, 20)
    times[np.unique(y, return_index=True)[1]] = 1  # every class keeps a row
    repeated = rng.permutation(np.repeat(np.arange(20), times))
    weighted = Dataset.from_arrays(X, y, times)
    other = Dataset.from_arrays(X[repeated], y[repeated])
    for name in ("X", "y", "sample_weight", "classes", "mean", "scale", "spread", "raw"):
        np.testing.assert_array_equal(getattr(weighted, name), getattr(other, name), err_msg=name)
    assert weighted.total_weight == times.sum()


def test_standard_scaling_is_scikit_learns():
    X = np.random.default_rng(0).normal(3.0, 5.0, (50, 4))
    X[:, 2] = 0.1
    dataset = Dataset.from_arrays(X, np.arange(50))
    rows = X[np.argsort(X[:, 0])]
    np.testing.assert_allclose(dataset.X, StandardScaler().fit_transform(rows), atol=1e-12)
    assert (dataset.X[:, 2] == 0.0).all()
    np.testing.assert_array_equal(dataset.spread, 1.0)


def test_common_scaling_keeps_directions():
    X = np.random.default_rng(0).normal(0.0, [1.0, 50.0], (40, 2))
    dataset = Dataset.from_arrays(X, np.arange(40), scaling="common")
    ratio = (dataset.raw - dataset.raw[0])[1:] / (dataset.X - dataset.X[0])[1:]
    np.testing.assert_allclose(ratio, ratio[0, 0])
    np.testing.assert_allclose(dataset.X.std(axis=0), dataset.spread)


@given(populations(size=3))
def test_raw_trees_leave_the_training_rows_where_they_are(drawn):
    dataset, individuals = drawn
    for individual in individuals:
        tree = dataset.to_raw(individual.to_tree()).validate()
        ours, theirs = tree.apply(dataset.raw), np.empty(len(dataset.y), dtype=np.int32)
        for k in np.flatnonzero(individual.is_leaf):
            theirs[individual.order[individual.start[k] : individual.end[k]]] = k
        np.testing.assert_array_equal(ours, theirs)


def test_raw_trees_survive_large_offsets():
    rng = np.random.default_rng(3)
    X = rng.integers(0, 50, (200, 3)) + 1e14
    dataset = Dataset.from_arrays(X, rng.integers(0, 2, 200))
    for stream in make_streams(1, 0, 20):
        individual = init_dipolar(dataset, 0.0, stream)
        assert len(individual) > 10
        tree = dataset.to_raw(individual.to_tree())
        np.testing.assert_array_equal(
            tree.apply(dataset.raw)[individual.order],
            np.repeat(
                np.flatnonzero(individual.is_leaf),
                (individual.end - individual.start)[individual.is_leaf],
            ),
        )


def test_arrays_are_read_only():
    dataset = Dataset.from_arrays(np.eye(3), [0, 1, 1])
    with pytest.raises(ValueError, match="read-only"):
        dataset.X[0, 0] = 1.0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"X": np.zeros(3)}, "X has shape"),
        ({"X": np.zeros((0, 2)), "y": []}, "X has shape"),
        ({"X": np.zeros((3, 0))}, "X has shape"),
        ({"y": [0, 1]}, "y has shape"),
        ({"X": np.full((3, 2), np.nan)}, "NaN"),
        ({"X": np.full((3, 2), np.inf)}, "infinite"),
        ({"sample_weight": [1.0, 1.0]}, "sample_weight has shape"),
        ({"sample_weight": [1.0, -1.0, 1.0]}, "sample_weight"),
        ({"sample_weight": [0.0, 0.0, 0.0]}, "zero everywhere"),
        ({"scaling": "robust"}, "scaling='robust'"),
    ],
)
def test_bad_input_is_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        Dataset.from_arrays(**({"X": np.eye(3), "y": [0, 1, 1]} | arguments))
