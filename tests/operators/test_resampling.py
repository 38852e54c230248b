"""Rows that are not in the data: between neighbours, blurred, and labelled by a teacher."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.linear_model import LogisticRegression

from evotree.dataset import SCALINGS, Dataset
from evotree.operators.initialization.resampling import blur, interpolate, teach
from tests.strategies import datasets, seeds, stream_of

any_datasets = st.sampled_from(("classification", "regression")).flatmap(
    lambda task: datasets(max_rows=25, task=task)
)


def iris(**options):
    return Dataset.from_arrays(*load_iris(return_X_y=True), **options)


def assert_same_rows(first, second):
    for name in ("X", "y", "sample_weight", "raw"):
        np.testing.assert_array_equal(getattr(first, name), getattr(second, name), err_msg=name)


def assert_well_formed(dataset, like):
    """The units, classes and types are those of another data set, the arrays read-only."""
    assert dataset.X.dtype == dataset.raw.dtype == dataset.sample_weight.dtype == np.float64
    assert dataset.X.flags.c_contiguous and dataset.y.dtype == like.y.dtype
    assert dataset.classes is like.classes and dataset.scale is like.scale
    assert dataset.n_statistics == like.n_statistics
    assert not any(
        array.flags.writeable
        for array in (dataset.X, dataset.y, dataset.sample_weight, dataset.raw)
    )
    assert (dataset.sample_weight > 0.0).all()
    np.testing.assert_array_equal(dataset.raw, dataset.X * like.scale + like.mean)


@settings(max_examples=25)
@given(any_datasets, seeds)
def test_without_noise_rows_lie_between_two_training_rows(dataset, seed):
    drawn = interpolate(dataset, 30, 0.0, stream_of(seed))
    X = dataset.X
    assert drawn.shape == (30, X.shape[1])
    apart = np.sqrt(((X[:, None] - X[None]) ** 2).sum(axis=2))
    for row in drawn:
        to = np.sqrt(((X - row) ** 2).sum(axis=1))
        detour = to[:, None] + to[None] - apart
        assert detour.min() <= 1e-7 * (1.0 + apart.max())
    np.testing.assert_array_equal(drawn, interpolate(dataset, 30, 0.0, stream_of(seed)))


def test_the_two_are_neighbours_and_drawn_by_their_weights():
    """Between two far clouds there are no rows, though both hold both classes."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 2)) + np.repeat([[0.0], [1000.0]], 30, axis=0)
    dataset = Dataset.from_arrays(X, rng.integers(0, 2, 60), np.repeat([1.0, 4.0], 30))
    raw = interpolate(dataset, 3000, 0.0, stream_of()) * dataset.scale + dataset.mean
    assert ((np.abs(raw) < 10.0) | (np.abs(raw - 1000.0) < 10.0)).all()
    assert len(np.unique(raw[:, 0])) > 2700
    assert (raw[:, 0] > 500.0).mean() == pytest.approx(0.8, abs=0.03)


@pytest.mark.parametrize("scaling", SCALINGS)
def test_noise_is_in_units_of_the_features(scaling):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 4)) * [1.0, 100.0, 1e-3, 0.0]
    dataset = Dataset.from_arrays(X, rng.integers(0, 2, 200), scaling=scaling)
    added = [
        interpolate(dataset, 4000, 0.5, stream_of()) - interpolate(dataset, 4000, 0.0, stream_of()),
        blur(dataset, 0.5, 20, stream_of()).X[200:] - np.tile(dataset.X, (20, 1)),
    ]
    for noise in added:
        deviation = (noise * dataset.scale).std(axis=0)
        np.testing.assert_allclose(deviation, 0.5 * X.std(axis=0), rtol=0.05)
        assert (noise[:, 3] == 0.0).all()  # a constant column stays constant


@given(any_datasets, st.integers(0, 4), st.sampled_from((0.0, 0.1, 2.0)), seeds)
def test_blurred_copies_share_weights_and_targets(dataset, n_copies, noise, seed):
    """Without copies noise takes the place of the rows."""
    blurred = blur(dataset, noise, n_copies, stream_of(seed))
    assert_well_formed(blurred, dataset)
    rows, n = dataset.unmerged(), len(dataset.y) if n_copies else 0
    times, share = max(n_copies, 1), 1.0 / (n_copies + 1)
    copies = np.tile(rows.X, (times, 1))
    assert blurred.X.shape == (n + len(copies), rows.X.shape[1])
    np.testing.assert_array_equal(blurred.X[:n], dataset.X[:n])
    np.testing.assert_array_equal(blurred.y, [*dataset.y[:n], *np.tile(rows.y, times)])
    np.testing.assert_allclose(blurred.sample_weight[:n], share * dataset.sample_weight[:n])
    weights = blurred.sample_weight[n:].reshape(times, -1)
    np.testing.assert_allclose(weights[0], share * rows.sample_weight)
    np.testing.assert_array_equal(weights, np.tile(weights[0], (times, 1)))
    if noise == 0.0:
        np.testing.assert_array_equal(blurred.X[n:], copies)
    assert_same_rows(blurred, blur(dataset, noise, n_copies, stream_of(seed)))
    assert blurred.multiplicity.sum() == dataset.multiplicity.sum()
    if n_copies == 0:
        first_copy = blur(dataset, noise, 1, stream_of(seed)).X[len(dataset.y) :]
        np.testing.assert_array_equal(blurred.X, first_copy)


class Recorder(ClassifierMixin, BaseEstimator):
    """A teacher that says 1 above a bound on the first feature, and what it was fitted to."""

    fitted = ()

    def __init__(self, bound=0.0, random_state=None):
        self.bound = bound
        self.random_state = random_state

    def fit(self, X, y, sample_weight=None):
        Recorder.fitted = X, y, sample_weight, self.random_state
        return self

    def predict(self, X):
        return (X[:, 0] > self.bound).astype(np.int64)


class Says(Recorder):
    """A teacher whose predictions, and perhaps probabilities, are functions of the rows."""

    def __init__(self, labels=None, shares=None, random_state=None):
        super().__init__(random_state=random_state)
        self.labels = labels
        self.shares = shares
        if shares is not None:
            self.predict_proba = shares

    def predict(self, X):
        return super().predict(X) if self.labels is None else self.labels(X)


class Unweighted(Recorder):
    """One whose `fit` takes no weights."""

    def fit(self, X, y):
        return super().fit(X, y)


def test_labels_are_the_teachers():
    dataset = iris()
    teacher = Recorder(0.25)
    taught = teach(dataset, teacher, 400, 0.1, stream_of())
    assert_well_formed(taught, dataset)
    n = dataset.X.shape[0]
    assert taught.X.shape == (n + 400, 4)
    np.testing.assert_array_equal(taught.X[:n], dataset.X)
    np.testing.assert_array_equal(taught.y, taught.X[:, 0] > 0.25)
    assert taught.n_classes == 3
    np.testing.assert_array_equal(taught.sample_weight[:n], dataset.sample_weight)
    assert taught.sample_weight[n:].sum() == pytest.approx(dataset.total_weight)
    assert np.ptp(taught.sample_weight[n:]) == 0.0
    X, y, weight, random_state = Recorder.fitted
    assert X is dataset.X and y is dataset.y and weight is dataset.sample_weight
    assert isinstance(random_state, int) and teacher.random_state is None
    assert_same_rows(taught, teach(dataset, Recorder(0.25), 400, 0.1, stream_of()))


def test_rows_are_repeated_where_a_teacher_takes_no_weights():
    dataset = Dataset.from_arrays(np.arange(4.0)[:, None], [0, 1, 0, 1], [0.5, 1.0, 1.6, 1e9])
    teach(dataset, Unweighted(), 5, 0.0, stream_of())
    fitted, y, weight, _ = Recorder.fitted
    n_times = [1, 2, 3, 100]
    np.testing.assert_array_equal(fitted, dataset.X.repeat(n_times, axis=0))
    np.testing.assert_array_equal(y, np.repeat([0, 1, 0, 1], n_times))
    assert weight is None


@pytest.mark.parametrize("task", ["classification", "regression"])
@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (lambda X: np.full(len(X), np.nan), "nan"),
        (lambda X: np.full(len(X), np.inf), "inf"),
        (lambda X: np.zeros(len(X) + 10**6), "shape"),
        (lambda X: np.zeros((len(X), 2)), "shape"),
        (lambda _: 1, "shape"),
        (lambda X: np.array(["a"] * len(X)), "'a'"),
        (lambda X: np.full(len(X), 3), "3"),
        (lambda X: np.full(len(X), -1), "-1"),
        (lambda X: np.full(len(X), 0.7), "0.7"),
    ],
)
def test_predictions_of_a_teacher_are_checked(labels, message, task):
    dataset = iris(task=task)
    if task == "regression" and message in ("3", "-1", "0.7"):
        assert (teach(dataset, Says(labels), 5, 0.0, stream_of()).y == float(message)).all()
        return
    with pytest.raises(ValueError, match=f"teacher=Says.*{message}"):
        teach(dataset, Says(labels), 5, 0.0, stream_of())


@pytest.mark.parametrize(
    ("share", "shape", "message"),
    [(np.nan, (0, 2), "outside"), (-0.5, (0, 2), "outside"), (7.0, (0, 3), "outside"),
     (0.5, (-1, 2), "shape"), (0.5, (0,), "shape"), (0.5, (0, 0), "shape")]
)  # fmt: skip
def test_probabilities_of_a_teacher_are_checked(share, shape, message):
    says = Says(shares=lambda X: np.full((len(X) + shape[0], *shape[1:]), share))
    with pytest.raises(ValueError, match=f"teacher=Says.*{message}"):
        teach(iris(), says, 5, 0.0, stream_of())


def test_a_row_counts_as_much_as_the_teacher_is_sure_of_it():
    """Accuracies then differ as those do that the teacher expects, by one factor for all."""
    X, y = load_breast_cancer(return_X_y=True)
    dataset = Dataset.from_arrays(X, y, np.random.default_rng(0).uniform(0.5, 2.0, len(y)))
    teacher = LogisticRegression(C=0.01)
    taught = teach(dataset, teacher, 400, 0.3, stream_of())
    model = clone(teacher).fit(dataset.X, dataset.y, sample_weight=dataset.sample_weight)
    p = model.predict_proba(taught.X)
    weight = np.full(len(taught.y), dataset.total_weight / 400)
    weight[: len(y)] = dataset.sample_weight
    assert taught.total_weight == pytest.approx(weight.sum())
    rng = np.random.default_rng(1)
    ratios = []
    for _ in range(20):
        one, other = rng.integers(0, 2, (2, len(weight)))
        difference = (one == taught.y) * 1.0 - (other == taught.y)
        expected = p[np.arange(len(p)), one] - p[np.arange(len(p)), other]
        ratios.append((taught.sample_weight @ difference) / (weight @ expected))
    np.testing.assert_allclose(ratios, ratios[0], rtol=0.01)
