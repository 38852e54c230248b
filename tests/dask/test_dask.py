"""Fits to frames of Dask, and predictions: the same for any workers and partitions."""

from functools import cache

import numpy as np
import pandas as pd
import pytest

from evotree import Cost, EvoTreeClassifier, EvoTreeRegressor, ObliqueTreeClassifier
from evotree.dataset import Dataset
from evotree.estimators.base import leaf_deviations
from tests.quick_models import BRIEF, evolved

dask = pytest.importorskip("dask")
dd = pytest.importorskip("dask.dataframe")
partitions = pytest.importorskip("evotree.dask")

POINTS = np.random.default_rng(0).random((2000, 2))
Y = ((POINTS.sum(axis=1) > 1) != (POINTS[:, 0] > POINTS[:, 1])).astype(int)
X = pd.DataFrame(POINTS, columns=["a", "b"])
N_ROWS = 300
WEIGHT = np.random.default_rng(0).integers(0, 4, len(X)).astype(float)
TARGETS = X.a**2 + np.sin(9.0 * X.b)
COUNTS = np.random.default_rng(0).poisson(np.where(X.a > 0.4, 5.0, 1.0))


@pytest.fixture(autouse=True)
def synchronous():
    with dask.config.set(scheduler="synchronous"):
        yield


def brief(kind=EvoTreeClassifier, **parameters):
    leaves = {} if kind is EvoTreeClassifier else {"leaves": "constant"}
    return evolved(kind, **BRIEF | leaves | parameters)


def parted(*parts):
    """Return a frame, or a series, of these partitions, whatever they hold."""
    parts = [pd.Series(one) if isinstance(one, np.ndarray) else one for one in parts]
    late = [dask.delayed(one) for one in parts]
    return dd.from_delayed(late, meta=parts[0].iloc[:0], verify_meta=False)


def fit(model, X=X, y=Y, weight=None, n_rows=700):
    """Fit on partitions of so many rows."""
    cuts = [slice(at, at + n_rows) for at in range(0, len(X), n_rows)]
    given = (X, y) if weight is None else (X, y, weight)
    return partitions.fit(
        model, *(parted(*(one[cut] for cut in cuts)) for one in given), n_rows=N_ROWS
    )


def assert_same(one, other):
    """Of trees and values bit for bit."""
    for a, b in zip(
        [one.tree_, *one.pareto_front_],
        [other.tree_, *other.pareto_front_],
        strict=True,
    ):
        assert a == b
        np.testing.assert_array_equal(a.values, b.values)
        np.testing.assert_array_equal(a.n_node_samples, b.n_node_samples)


@cache
def fitted():
    """Return a fit on three partitions, which no test changes."""
    return fit(brief())


def table_of_all_kinds(n_rows=1200, seed=0):
    """Rows with numbers, missing ones, categories, one called "missing", and missing ones."""
    rng = np.random.default_rng(seed)
    size = rng.normal(size=n_rows)
    colour = rng.choice(["missing", "green", "red"], n_rows)
    y = np.where((size > 0.3) | (colour == "red"), "yes", "no")
    size[rng.random(n_rows) < 0.1] = np.nan
    colour = pd.Series(colour).where(rng.random(n_rows) > 0.1)
    n = rng.integers(9, size=n_rows)
    table = pd.DataFrame({"size": size, "colour": colour.astype("category"), "n": n})
    return table, pd.Series(y, name="bought")


# ---- what all rows say ---------------------------------------------------------------------------


@pytest.mark.parametrize("weight", [None, WEIGHT], ids=["plain", "weights"])
def test_partitions_do_not_matter(weight):
    found = fit(brief(), weight=weight)
    assert_same(found, fit(brief(), weight=weight, n_rows=90))
    there = np.ones(len(X)) if weight is None else weight > 0.0
    assert found.tree_.n_node_samples[0] == there.sum()


def test_workers_do_not_matter():
    distributed = pytest.importorskip("distributed")
    with (
        distributed.Client(
            n_workers=2, threads_per_worker=1, processes=False, dashboard_address=None
        ) as client,
        dask.config.set(scheduler=client),
    ):
        found = fit(brief(), n_rows=250)
    assert_same(found, fitted())


MONOTONIC = {"monotonic_cst": [1, 0], "size_penalty": 0.001}
COSTS = Cost([[0.0, 1.0], [2.0, 0.1]], [0.01, 0.02])


@pytest.mark.parametrize(
    ("targets", "changed"),
    [
        *(
            (None, {"objective": one})
            for one in ["balanced_accuracy", "f1", "mcc", COSTS]
        ),
        (None, MONOTONIC),
        (None, {"class_weight": "balanced"}),
        (TARGETS, {}),
        (TARGETS, MONOTONIC),
        (COUNTS, {"objective": "poisson"}),
    ],
)
def test_leaves_are_those_of_all_rows_in_memory(targets, changed):
    if targets is None:
        found = fit(brief(**changed), weight=WEIGHT)
        totals = np.bincount(Y, WEIGHT)
        factors = totals.sum() / (2.0 * totals) if "class_weight" in changed else [1, 1]
        rows = Dataset.from_arrays(X, Y, WEIGHT * np.take(factors, Y))
    else:
        found = fit(brief(EvoTreeRegressor, **changed), y=targets)
        rows = Dataset.from_arrays(X, targets, task="regression")
    rows = rows.evolved_for(found.objective_)
    front = found.pareto_front_
    assert len(front) > 1 and front[front.chosen] == found.tree_
    assert found.select_tree("chosen").tree_ == front[front.chosen]
    for model in front.models:
        tree = model.tree
        told = rows.refill(tree)
        if rows.bound_objective is not None:
            told = rows.bound_objective.finish(told, rows)
        np.testing.assert_allclose(told.values, tree.values, rtol=1e-7)
        np.testing.assert_allclose(told.n_node_samples, tree.n_node_samples)
        if targets is None:
            is_tied = np.isclose(*tree.values.T)  # which rounding may part
            assert ((told.labels == tree.labels) | is_tied).all()
        else:
            deviations = leaf_deviations(tree, rows)
            np.testing.assert_allclose(model.deviations, deviations, rtol=1e-6)


def test_leaves_have_rows_enough():
    found = fit(brief(min_samples_leaf=40, size_penalty=0.0))
    counts = np.bincount(found.apply(X))
    assert counts[counts > 0].min() >= 40 and found.get_n_leaves() > 1


def test_frames_are_encoded_alike_in_all_partitions():
    table, y = table_of_all_kinds()
    fits = [fit(brief(), table, y, n_rows=n) for n in (1200, 250)]
    assert_same(*fits)
    assert fits[0].feature_names_ == brief().fit(table, y).feature_names_
    assert list(fits[0].feature_names_in_) == list(table.columns)
    assert fits[0].score(table, y) > 0.9
    assert fits[0].tree_.n_node_samples[0] == len(y)


def test_empty_partitions_and_classes_of_one_partition():
    table, y = table_of_all_kinds()
    y[1100:1105] = "perhaps"
    cuts = [slice(0, 1000), slice(1000, 1000), slice(1000, 1200), slice(0, 0)]
    rows, labels = (parted(*(one[cut] for cut in cuts)) for one in (table, y))
    model = partitions.fit(brief(), rows, labels, n_rows=300)
    assert list(model.classes_) == ["no", "perhaps", "yes"]
    shares = [(y == label).mean() for label in model.classes_]
    assert model.tree_.values[0] == pytest.approx(shares)
    assert len(partitions.predict(model, rows).compute()) == 1200


# ---- predictions ---------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["predict", "predict_proba", "apply"])
def test_lazy_predictions_are_those_in_memory(method):
    table, y = table_of_all_kinds()
    lazy = dd.from_pandas(table, 4, sort=False)
    for model in (brief(), ObliqueTreeClassifier(max_depth=2)):
        later = partitions.predict(model.fit(table, y), lazy, method)
        computed = later.compute()
        np.testing.assert_array_equal(computed, getattr(model, method)(table))
        dd.utils.assert_eq(later, computed)
        assert list(computed.index) == list(table.index)
    with pytest.raises(ValueError, match="method='score': allowed are 'predict'"):
        partitions.predict(model, lazy, "score")


# ---- what is refused -----------------------------------------------------------------------------


NEVER = dd.from_map(pytest.fail, ["computed"], meta=X[:0].assign(y=0))


@pytest.mark.parametrize(
    ("model", "named"),
    [
        (EvoTreeClassifier("log_loss"), "objective='log_loss'"),
        (EvoTreeRegressor("absolute_error"), "objective='absolute_error'"),
        (EvoTreeClassifier(lambda counts: 1.0), "objective=<function"),
        (EvoTreeRegressor(), "leaves='auto'"),
    ],
)
def test_what_needs_rows_is_refused_before_any_work(model, named):
    with pytest.raises(ValueError, match=f"^{named}.*: for frames of Dask"):
        partitions.fit(model, NEVER, NEVER.y)
    with pytest.raises(TypeError, match="model is of the type ObliqueTreeClassifier"):
        partitions.fit(ObliqueTreeClassifier(), NEVER, NEVER.y)


def test_estimators_name_the_door_of_collections():
    """Before anything is computed."""
    with pytest.raises(ValueError, match="evotree.dask.fit"):
        brief().fit(NEVER, NEVER.y)
    for rows in (NEVER, NEVER.to_dask_array()):
        with pytest.raises(ValueError, match="evotree.dask.predict"):
            fitted().predict(rows)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: t.drop(columns="n"), r"X has the columns \['size', 'colour'\]"),
        (lambda t: t[["n", "size", "colour"]], "X has the columns"),
        (lambda t: t.assign(size="big"), "column 'size': 'big' in"),
        (lambda t: t.assign(n=np.inf), "column 'n': inf"),
        (lambda t: t[:7], "y has shape"),
    ],
)
def test_partitions_that_do_not_fit_are_refused(change, message):
    table, y = table_of_all_kinds(200)
    rows = parted(table[:100], change(table[100:]))
    with pytest.raises(ValueError, match=f"partition 1: {message}"):
        partitions.fit(brief(), rows, parted(y[:100], y[100:]))


AT = np.arange(len(X))
COUNTED = {"kind": EvoTreeRegressor, "objective": "poisson"}


@pytest.mark.parametrize(
    ("model", "y", "weight", "message"),
    [
        ({}, Y, np.where(AT == 1999, -1.0, 1.0), "partition 2: sample_weight has"),
        ({}, Y, np.zeros(len(X)), "no rows with weight"),
        ({}, np.where(AT == 800, np.nan, Y), None, "partition 1: .*missing labels"),
        ({}, POINTS[:, 0], None, "Unknown label type"),
        (COUNTED, np.where(AT == 1500, -1.0, COUNTS), None, "partition 2: y has the"),
    ],
)
def test_targets_and_weights_that_do_not_fit_are_refused(model, y, weight, message):
    with pytest.raises(ValueError, match=message):
        fit(brief(**model), y=y, weight=weight)


def test_rows_are_frames_of_as_many_partitions():
    with pytest.raises(TypeError, match="y is of the type ndarray: allowed is a Ser"):
        partitions.fit(brief(), parted(X), Y)
    with pytest.raises(TypeError, match="X is of the type Array.*from_dask_array"):
        partitions.predict(fitted(), NEVER.to_dask_array())
    with pytest.raises(ValueError, match="y has 1 partitions"):
        partitions.fit(brief(), parted(X[:9], X[9:]), parted(Y))
