"""Training data: canonical rows, scaling, the way back to raw units, refusals."""

import copy
import math
import pickle
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.preprocessing import MinMaxScaler, StandardScaler

from evotree.dataset import SCALINGS, Dataset
from evotree.operators.initialization.growth import init_dipolar
from evotree.schema import Schema
from tests.strategies import datasets, populations, seeds, stream_of


def raw_tree(dataset):
    return dataset.to_raw(init_dipolar(dataset, 0.0, stream_of()).to_tree())


def assert_same(one, other, names):
    for name in names:
        assert getattr(one, name).tobytes() == getattr(other, name).tobytes(), name


@given(seeds)
def test_weights_are_repetitions_in_any_order(seed):
    rng = np.random.default_rng(seed)
    X, y = rng.integers(0, 3, (20, 2)).astype(float), rng.integers(0, 3, 20)
    times = rng.integers(0, 4, 20)
    times[np.unique(y, return_index=True)[1]] = 1  # every class keeps a row
    repeated = rng.permutation(np.repeat(np.arange(20), times))
    weighted = Dataset.from_arrays(X, y, times)
    other = Dataset.from_arrays(X[repeated], y[repeated])
    assert_same(weighted, other, ("X", "y", "classes", "raw"))
    for name in ("mean", "scale", "spread"):
        np.testing.assert_allclose(
            getattr(weighted, name), getattr(other, name), atol=1e-12
        )
    # One factor lies between the weights, exactly: no tie is broken by rounding.
    factor = weighted.sample_weight[0] / other.sample_weight[0]
    np.testing.assert_array_equal(weighted.sample_weight, factor * other.sample_weight)
    np.testing.assert_allclose(
        weighted.sample_weight * weighted.weight_unit, other.sample_weight
    )
    assert other.total_weight == other.n_rows == times.sum()


@given(st.lists(st.just(0.0) | st.floats(1e-3, 1e6), max_size=30))
def test_the_sum_of_weights_is_the_number_of_rows_that_tell_as_much(weight):
    """Kish (1965): (sum w)^2 / sum w^2."""
    weight = np.array([*weight, 0.7, np.pi])  # no multiples of the least
    dataset = Dataset.from_arrays(
        np.arange(float(len(weight)))[:, None], [0] * len(weight), weight
    )
    assert dataset.total_weight == pytest.approx(
        weight.sum() ** 2 / (weight @ weight), rel=1e-5
    )
    raw_weight = dataset.sample_weight * dataset.weight_unit
    np.testing.assert_allclose(raw_weight, weight[weight > 0.0], rtol=1e-9)
    assert dataset.n_rows == (weight > 0.0).sum()


@given(
    seeds,
    st.sampled_from(("classification", "regression")),
    st.sampled_from((1.0, 1e-3, 1 / 3, 1 / 178, 7.0, 1e6)),
)
def test_neither_the_order_of_rows_nor_a_factor_of_all_weights_matters(
    seed, task, factor
):
    rng = np.random.default_rng(seed)
    # Zeros of both signs.
    X = rng.integers(-1, 2, (60, 2)) * rng.choice([-1.0, 1.0], (60, 2))
    y, order = rng.integers(0, 2, 60), rng.permutation(60)
    kinds = [rng.exponential(size=60), np.ones(60), rng.integers(0, 4, 60) + 0.0]
    weight = rng.choice(kinds)
    weight[0] = 1.0
    one = Dataset.from_arrays(X, y, weight, task=task)
    other = Dataset.from_arrays(X[order], y[order], factor * weight[order], task=task)
    names = ("X", "y", "sample_weight", "mean", "scale", "spread", "raw")
    assert_same(one, other, (*names, "multiplicity"))


@given(datasets(), seeds)
def test_subsamples_are_of_rows_as_they_were_given(dataset, seed):
    given_rows = dataset.unmerged()
    assert given_rows.n_distinct == dataset.n_rows == dataset.multiplicity.sum()
    assert given_rows.total_weight == pytest.approx(dataset.total_weight)
    np.testing.assert_array_equal(given_rows.X, dataset.X[dataset.distinct_of])
    taken = np.random.default_rng(seed).random(dataset.n_rows) < 0.5
    part = dataset.subsample(np.flatnonzero(taken))
    assert part.n_rows == taken.sum()
    expected = np.bincount(
        dataset.distinct_of, given_rows.sample_weight * taken, dataset.n_distinct
    )
    np.testing.assert_allclose(part.sample_weight, expected[expected > 0.0])
    np.testing.assert_array_equal(part.X, dataset.X[expected > 0.0])


@given(seeds)
def test_extra_columns_stay_with_their_rows(seed):
    rng = np.random.default_rng(seed)
    X, y = rng.integers(0, 2, (40, 2)).astype(float), rng.integers(0, 2, 40)
    group = rng.choice(["a", "b", "c"], 40)
    weight = rng.integers(0, 3, 40)
    weight[0] = 1
    dataset = Dataset.from_arrays(X, y, weight, extras={"group": group})
    given_rows = Counter()
    for x, label, name, w in zip(X.tolist(), y, group, weight, strict=True):
        given_rows[*x, label, name] += w
    for part in (dataset, dataset.take(np.arange(0, dataset.n_distinct, 2))):
        rows = zip(
            part.raw.tolist(), part.classes[part.y], part.extras["group"], strict=True
        )
        kept = [(*x, label, name) for x, label, name in rows]
        assert len(set(kept)) == len(kept)
        weights_of_rows = part.sample_weight * part.weight_unit
        assert [given_rows[row] for row in kept] == pytest.approx(
            weights_of_rows.tolist()
        )
    assert set(kept) <= set(given_rows)
    total = dataset.total_weight * dataset.weight_unit
    assert sum(given_rows.values()) == pytest.approx(total)


@pytest.mark.parametrize(
    ("scaling", "scaler"),
    [("standard", StandardScaler()), ("minmax", MinMaxScaler((-1.0, 1.0)))],
)
def test_scalings_are_scikit_learns(scaling, scaler):
    X = np.random.default_rng(0).normal(3.0, [1.0, 1e5, 1e-5], (50, 3))
    X[:, 2] = 0.1
    dataset = Dataset.from_arrays(X, np.arange(50), scaling=scaling)
    expected = scaler.fit_transform(X[np.argsort(X[:, 0])])
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
    assert (
        dataset.n_classes == 0
        and dataset.n_statistics == 3
        and len(dataset.classes) == 0
    )
    assert len(np.unique(np.column_stack([dataset.raw, dataset.y]), axis=0)) == len(
        dataset.y
    )
    share = dataset.sample_weight / dataset.total_weight
    assert dataset.total_weight * dataset.weight_unit == pytest.approx(weight.sum())
    assert share @ dataset.y == pytest.approx(0.0, abs=1e-12)
    assert share @ dataset.y**2 == pytest.approx(1.0)
    back = dataset.target_mean + dataset.target_scale * dataset.y
    assert share @ back == pytest.approx(np.average(y, weights=weight))


@given(populations(size=3))
def test_trees_go_to_raw_units_and_back_and_training_rows_stay_where_they_are(drawn):
    dataset, individuals = drawn
    for individual in individuals:
        tree, leaves = (
            dataset.to_raw(individual.to_tree()).validate(),
            individual.apply(dataset.X),
        )
        np.testing.assert_array_equal(tree.apply(dataset.raw), leaves)
        np.testing.assert_array_equal(
            dataset.from_raw(tree).validate().apply(dataset.X), leaves
        )
        for k in np.flatnonzero(individual.is_leaf):
            assert (
                leaves[individual.order[individual.start[k] : individual.end[k]]] == k
            ).all()


@given(seeds)
def test_nodes_predict_the_means_of_the_targets_that_were_given(seed):
    """Not of targets in standard units and back: equal ones have themselves as their mean."""
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(40, 2)), rng.choice([0.0, 0.1, 1.3, 1000.1], 40)
    y[X[:, 0] > 0.0] = rng.choice(y)
    weight = rng.integers(1, 4, 40)
    dataset = Dataset.from_arrays(X, y, weight, task="regression")
    raw = raw_tree(dataset)
    for tree in (raw, dataset.refill(raw)):
        leaves = tree.apply(X)
        for k, size in enumerate(tree.subtree_size.tolist()):
            here = (k <= leaves) & (leaves < k + size)
            mean = math.fsum(weight[here] * y[here]) / math.fsum(weight[here])
            assert tree.values[k, 0] == pytest.approx(mean, rel=1e-13, abs=1e-12)
            assert y[here].min() <= tree.values[k, 0] <= y[here].max()


def test_arrays_are_read_only_also_in_other_processes():
    """Kernels would be compiled once more for rows that may be written."""
    dataset = Dataset.from_arrays(
        np.eye(3), [0, 1, 1], extras={"cost": [1.0, 2.0, 3.0]}
    )
    for one in (dataset, pickle.loads(pickle.dumps(dataset)), copy.deepcopy(dataset)):
        arrays = [*vars(one).values(), *one.extras.values()]
        arrays = [array for array in arrays if isinstance(array, np.ndarray)]
        assert len(arrays) == 10 and not any(array.flags.writeable for array in arrays)
        with pytest.raises(ValueError, match="read-only"):
            one.X[0, 0] = 1.0


@pytest.mark.parametrize("scaling", SCALINGS)
@pytest.mark.parametrize("task", ["classification", "regression"])
@pytest.mark.parametrize("unit", [1e-98, 1e-50, 1e50, 1e98])
def test_units_far_from_one_change_nothing(unit, scaling, task):
    rng = np.random.default_rng(0)
    X, y = rng.normal(1.0, 1.0, (30, 2)), rng.integers(0, 3, 30)
    unit = 2.0 ** round(np.log2(unit))  # no rounding
    plain = Dataset.from_arrays(X, y, scaling=scaling, task=task)
    targets = y * unit if task == "regression" else y
    other = Dataset.from_arrays(
        X * unit, targets, np.full(30, unit), scaling=scaling, task=task
    )
    assert_same(other, plain, ("X", "y"))
    tree = raw_tree(other).validate()
    assert len(np.unique(tree.apply(other.raw))) == tree.n_leaves > 3


@pytest.mark.filterwarnings("error")
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
        (
            {"X": np.eye(3) * [1.0, 1e200, 1.0]},
            "X, in the column 'x1', has values from 0 to 1e",
        ),
        (
            {"X": np.eye(3) * [1.0, 1.0, -1.7e308]},
            "'x2'.*allowed are magnitudes up to 1e",
        ),
        ({"X": np.eye(3) * [1e-310, 1.0, 1.0]}, "'x0'.*differences from 1e-100"),
        (
            {"X": np.eye(3) * [1e-170, 1.0, 1.0], "scaling": "minmax"},
            "'x0'.*differences",
        ),
        ({"sample_weight": [1e308, 1e308, 1.0]}, "sample_weight has the sum inf"),
        ({"sample_weight": [1e308, 1.0, 1.0]}, r"sample_weight .*1e\+308.* to 1e\+100"),
        ({"sample_weight": [1e-310, 0.0, 0.0]}, "sample_weight .* from 1e-100"),
        ({"y": [0.0, 1e300, 1.0], "task": "regression"}, "y has values from 0 to 1e"),
        (
            {"y": [0.0, 1e-300, 0.0], "task": "regression"},
            "y has values .* from 1e-100",
        ),
        (
            {"schema": Schema.of_features("ab")},
            "schema has 2 features: one for each of 3",
        ),
        ({"extras": {"cost": [1.0, 2.0]}}, r"extras\['cost'\] has shape \(2,\)"),
        ({"scaling": "robust"}, "scaling='robust'"),
        ({"task": "ranking"}, "task='ranking'"),
        ({"y": [0.0, np.nan, 1.0], "task": "regression"}, "y has targets"),
        ({"y": [0.0, 1.0], "task": "regression"}, "y has shape"),
        ({"y": ["a", 1.0, 2.0], "task": "regression"}, "y: .*'a'.*numbers"),
        (
            {"y": np.array(["a", 1, 2], dtype=object)},
            "y has labels of the types int, str",
        ),
        (
            {"X": [["a"], ["b"], ["a"]]},
            "X: .*'a'.*estimators encode categories.*fit_columns",
        ),
    ],
)
def test_bad_input_is_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        Dataset.from_arrays(**({"X": np.eye(3), "y": [0, 1, 1]} | arguments))
