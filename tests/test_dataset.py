"""Training data: canonical rows, scaling, the way back to raw units, refusals."""

import numpy as np
import pytest
from hypothesis import given
from sklearn.preprocessing import MinMaxScaler, StandardScaler

from evotree.dataset import Dataset, _sorted_order
from evotree.operators.initialization.dipolar import init_dipolar
from evotree.operators.initialization.resampling import blur
from evotree.rng import make_streams
from tests.strategies import datasets, populations, seeds


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


@given(seeds)
def test_rows_are_sorted_as_lexsort_does(seed):
    rng = np.random.default_rng(seed)
    shape = rng.integers(1, 60), rng.integers(1, 5)
    X = rng.integers(0, rng.integers(2, 6), shape) * rng.choice([-0.0, 1.0], shape)
    y = rng.integers(0, 3, shape[0])
    expected = np.lexsort((y, *X.T[::-1]))
    order, is_new = _sorted_order([*X.T, y])
    np.testing.assert_array_equal(order, expected)
    rows = np.column_stack([X, y])[order]
    np.testing.assert_array_equal(is_new[1:], (rows[1:] != rows[:-1]).any(axis=1))
    assert is_new[0]


def test_rows_begin_with_lines_of_the_cache():
    rng = np.random.default_rng(0)
    dataset = Dataset.from_arrays(rng.normal(size=(50, 8)), np.arange(50) % 2)
    parts = [dataset, dataset.take(np.arange(3, 20)), dataset.take(dataset.y == 1)]
    parts.append(blur(dataset, 0.1, 2, make_streams(0, 0, 1)[0]))
    for part in parts:
        assert part.X.ctypes.data % 128 == 0 and part.X.flags.c_contiguous
        np.testing.assert_allclose(part.X * part.scale + part.mean, part.raw, atol=1e-12)


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


def test_minmax_scaling_is_scikit_learns():
    X = np.random.default_rng(0).normal(3.0, [1.0, 1e5, 1e-5], (50, 3))
    X[:, 2] = 0.1
    dataset = Dataset.from_arrays(X, np.arange(50), scaling="minmax")
    expected = MinMaxScaler((-1.0, 1.0)).fit_transform(X[np.argsort(X[:, 0])])
    np.testing.assert_allclose(dataset.X[:, :2], expected[:, :2], atol=1e-12)
    assert (dataset.X[:, 2] == 0.0).all()
    np.testing.assert_allclose(dataset.X[:, :2].std(axis=0), dataset.spread[:2])


@given(seeds)
def test_targets_are_standardized_and_merged(seed):
    rng = np.random.default_rng(seed)
    X, y = rng.integers(0, 2, (30, 2)).astype(float), rng.integers(0, 3, 30) * 1e3 + 0.1
    weight = rng.choice([0.0, 1.0, 2.5], 30)
    weight[:2] = 1.0
    y[:2] = 0.1, 1000.1
    dataset = Dataset.from_arrays(X, y, weight, task="regression")
    assert dataset.n_classes == 0 and dataset.n_statistics == 3 and len(dataset.classes) == 0
    assert len(np.unique(np.column_stack([dataset.raw, dataset.y]), axis=0)) == len(dataset.y)
    share = dataset.sample_weight / dataset.total_weight
    assert dataset.total_weight == pytest.approx(weight.sum())
    assert share @ dataset.y == pytest.approx(0.0, abs=1e-12)
    assert share @ dataset.y**2 == pytest.approx(1.0)
    back = dataset.target_mean + dataset.target_scale * dataset.y
    assert share @ back == pytest.approx(np.average(y, weights=weight))


def test_values_of_raw_regression_trees_are_means_of_targets():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 2)), rng.normal(1e6, 5.0, 60)
    dataset = Dataset.from_arrays(X, y, task="regression")
    tree = dataset.to_raw(init_dipolar(dataset, 0.0, make_streams(0, 0, 1)[0]).to_tree())
    leaves = tree.apply(X)
    for leaf in np.unique(leaves):
        assert tree.values[leaf, 0] == pytest.approx(y[leaves == leaf].mean(), rel=1e-12)


@given(datasets(), seeds)
def test_take_keeps_units_and_classes(dataset, seed):
    rows = np.flatnonzero(np.random.default_rng(seed).integers(0, 2, len(dataset.y)))
    part = dataset.take(rows, np.full(len(rows), 2.0))
    np.testing.assert_array_equal(part.X, dataset.X[rows])
    np.testing.assert_array_equal(part.raw, dataset.raw[rows])
    assert part.n_classes == dataset.n_classes and (part.y == dataset.y[rows]).all()
    assert part.total_weight == 2.0 * len(rows)
    np.testing.assert_array_equal(dataset.take(rows).sample_weight, dataset.sample_weight[rows])


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
        ({"task": "ranking"}, "task='ranking'"),
        ({"y": [0.0, np.nan, 1.0], "task": "regression"}, "y has targets"),
        ({"y": [0.0, 1.0], "task": "regression"}, "y has shape"),
    ],
)
def test_bad_input_is_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        Dataset.from_arrays(**({"X": np.eye(3), "y": [0, 1, 1]} | arguments))
