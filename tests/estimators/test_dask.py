"""Fits and predictions of collections of Dask: the same for any workers and partitions."""

from functools import cache

import numpy as np
import pandas as pd
import pytest

from evotree import (
    Checkpoint,
    Cost,
    EvoTreeClassifier,
    EvoTreeRegressor,
    Islands,
    Quantile,
    Variation,
)
from evotree.dataset import Dataset
from evotree.engine.config import Evolution
from evotree.estimators.base import leaf_deviations
from evotree.experiments.problems import make_problem
from evotree.fitness.base import PenalizedAccuracy
from evotree.fitness.objectives import QuantileLoss
from evotree.operators.structure.splice import make_individual
from tests.estimators.test_continuing import quick
from tests.reference.signs import violations

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")

X, Y = make_problem("chessboard2", n_samples=2000, random_state=0)
ON_SHARDS = {"max_samples": 300, "max_generations": 6}


@pytest.fixture(autouse=True)
def synchronous():
    with dask.config.set(scheduler="synchronous"):
        yield


def fit(n_rows=700, kind=EvoTreeClassifier, X=X, y=Y, sample_weight=None, **changed):
    """Fit on partitions of so many rows."""
    weight = (
        None if sample_weight is None else da.from_array(sample_weight, chunks=n_rows)
    )
    estimator = quick(kind, **(ON_SHARDS | changed))
    return estimator.fit(
        da.from_array(X, chunks=(n_rows, -1)), da.from_array(y, chunks=n_rows), weight
    )


def two_scores(counts):
    """Return the share of the rows that are right, and the least of any leaf."""
    most, rows = counts.max(axis=1), counts.sum(axis=1)
    return float(most.sum() / rows.sum()), float((most / rows).min())


NSGA = {"objective": two_scores, "variation": Variation(algorithm="nsga2")}


@cache
def fitted():
    """Return a fit on three partitions, which no test changes."""
    return fit()


def assert_same(one, other):
    """Of trees, values, records and probabilities, bit for bit."""
    for a, b in zip(
        [one.tree_, *one.pareto_front_, *one.hall_of_fame_],
        [other.tree_, *other.pareto_front_, *other.hall_of_fame_],
        strict=True,
    ):
        assert a == b
        np.testing.assert_array_equal(a.values, b.values)
        np.testing.assert_array_equal(a.n_node_samples, b.n_node_samples)
    assert one.history_.select("gen") == other.history_.select("gen")
    np.testing.assert_array_equal(one.training_rows_.means, other.training_rows_.means)


def frames():
    return pytest.importorskip("dask.dataframe")


def table_of_all_kinds(n_rows=1200, seed=0):
    """Rows with numbers, missing ones, categories, one called "missing", and missing ones."""
    rng = np.random.default_rng(seed)
    size, colour = (
        rng.normal(size=n_rows),
        rng.choice(["missing", "green", "red"], n_rows),
    )
    y = np.where((size > 0.3) | (colour == "red"), "yes", "no")
    size[rng.random(n_rows) < 0.1] = np.nan
    colour = pd.Series(colour).where(rng.random(n_rows) > 0.1)
    table = pd.DataFrame(
        {
            "size": size,
            "colour": colour.astype("category"),
            "n": rng.integers(9, size=n_rows),
        }
    )
    return table, pd.Series(y, name="bought")


# ---- the same result -----------------------------------------------------------------------------


WEIGHT = np.random.default_rng(0).integers(0, 4, len(X)).astype(float)


@pytest.mark.parametrize(
    "changed",
    [
        {},
        {"sample_weight": WEIGHT, "objective": "f1", "min_samples_leaf": 60},
        {"islands": Islands(2, every=2)},
        NSGA,
    ],
    ids=["default", "weights", "islands", "nsga2"],
)
def test_partitions_do_not_matter(changed):
    found = fit(**changed)
    assert_same(found, fit(90, **changed, n_jobs=2))
    there = WEIGHT > 0.0 if "sample_weight" in changed else WEIGHT >= 0.0
    assert found.tree_.n_node_samples[0] == there.sum()
    for tree in found.pareto_front_:
        if tree.scores:
            leaves = tree.values[tree.is_leaf] * tree.n_node_samples[tree.is_leaf, None]
            assert tree.scores == pytest.approx((*two_scores(leaves), tree.complexity))
    assert {"summarizing rows", "drawing the sample", "counting all rows"} <= set(
        found.seconds_
    )


def test_workers_do_not_matter():
    distributed = pytest.importorskip("distributed")
    with (
        distributed.Client(
            n_workers=2, threads_per_worker=1, processes=False, dashboard_address=None
        ) as client,
        dask.config.set(scheduler=client),
    ):
        found = fit(250)
    assert_same(found, fitted())


# ---- what all rows say ---------------------------------------------------------------------------


# ---- objectives, costs and bounds, by all rows ---------------------------------------------------


RARE = np.flatnonzero((Y[0] == Y) | (np.arange(len(X)) % 4 == 0))
COSTS = Cost([[0.0, 1.0], [2.0, 0.1]], [0.01, 0.02])
TARGETS = X[:, 0] ** 2 + np.sin(9.0 * X[:, 1])
COUNTS = (
    np.random.default_rng(0).poisson(np.where(X[:, 0] > 0.4, 5.0, 1.0)).astype(float)
)


def fit_rare(**changed):
    """Fit to classes of different sizes and rows of different weights."""
    return fit(300, X=X[RARE], y=Y[RARE], sample_weight=WEIGHT[RARE], **changed)


def least_share(counts):
    """Return the share of the rows that is right in the leaf where it is least."""
    return float((counts.max(axis=1) / counts.sum(axis=1)).min())


def test_what_the_sample_chose_is_returned_with_its_sides():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(3000, 4))
    labels = rows[:, 0] + rows[:, 1] + 0.5 * rng.normal(size=3000) > 0.0
    model = EvoTreeClassifier(
        evolution=Evolution(max_samples=400), max_generations=2, random_state=0
    ).fit(da.from_array(rows, (1000, 4)), da.from_array(labels, 1000))
    assert model.choice_.n_terms == model.tree_.n_terms
    assert model.choice_.n_leaves == model.tree_.n_leaves
    (logistic,) = (tree for tree in model.pareto_front_ if tree.origin == "logistic")
    model.select_tree(f"complexity<={logistic.complexity}")
    assert model.tree_ is logistic
    assert model.probabilities_ is logistic.sides is not None
    assert model.select_tree("chosen").tree_.n_terms == model.choice_.n_terms


LABELS = ["balanced_accuracy", "f1", "f1_macro", "mcc"]
MONOTONIC = {"monotonic_cst": [1, 0], "size_penalty": 0.001}


@pytest.mark.parametrize(
    ("targets", "changed"),
    [
        *((None, {"objective": one}) for one in [*LABELS, least_share, COSTS]),
        (None, MONOTONIC),
        (None, MONOTONIC | {"objective": "balanced_accuracy"}),
        (TARGETS, {}),
        (TARGETS, MONOTONIC),
        (COUNTS, {"objective": "poisson"}),
    ],
)
def test_what_is_fitted_is_what_all_rows_in_memory_say(targets, changed):
    if targets is None:
        found, rows = (
            fit_rare(**changed),
            Dataset.from_arrays(X[RARE], Y[RARE], WEIGHT[RARE]),
        )
    else:
        found = fit(700, EvoTreeRegressor, y=targets, **changed)
        rows = Dataset.from_arrays(X, targets, task="regression")
    rows = rows.evolved_for(found.objective_)
    front = found.pareto_front_
    assert len(front) > 1 and front[front.chosen] == found.tree_
    penalties = found.size_penalty_, found.term_penalty_
    assert max(front, key=PenalizedAccuracy(*penalties)) == found.tree_
    for tree in [*front, *found.hall_of_fame_]:
        assert not changed.get("monotonic_cst") or not violations(
            tree, found.objective_.constraint.array
        )
        told = rows.refill(tree)
        if rows.bound_objective is not None:
            told = rows.bound_objective.finish(told, rows)
        np.testing.assert_allclose(told.values, tree.values, rtol=1e-9)
        if targets is None:
            np.testing.assert_array_equal(told.labels, tree.labels)
        scaled = rows.from_raw(tree)
        one = make_individual(
            rows, scaled.weights, scaled.thresholds, scaled.subtree_size
        )
        if hasattr(tree, "quality"):
            assert tree.quality == pytest.approx(one.quality, abs=1e-9)
    qualities = [tree.quality for tree in front]
    assert qualities == sorted(set(qualities))
    there = RARE[WEIGHT[RARE] > 0.0] if targets is None else slice(None)
    np.testing.assert_array_equal(found.training_rows_.lowest, X[there].min(axis=0))
    np.testing.assert_array_equal(found.training_rows_.highest, X[there].max(axis=0))
    if targets is TARGETS:
        deviations = leaf_deviations(found.tree_, rows)
        np.testing.assert_allclose(found.residual_std_, deviations, rtol=1e-6)


@pytest.mark.parametrize("least", [100, 0.04])
def test_leaves_have_rows_enough_over_all_rows(least):
    found = fit_rare(min_samples_leaf=least, size_penalty=0.0, term_penalty=0.0)
    there = WEIGHT[RARE] > 0.0
    wanted = least if least > 1 else least * there.sum()
    assert max(one.n_leaves for one in found.pareto_front_) > 2
    for tree in [*found.pareto_front_, *found.hall_of_fame_]:
        leaves = tree.apply(X[RARE])
        if len(tree) > 1:
            assert (
                np.bincount(leaves[there], minlength=len(tree))[tree.is_leaf].min()
                >= wanted
            )
        n_rows = np.bincount(leaves[there], minlength=len(tree))[tree.is_leaf]
        np.testing.assert_array_equal(tree.n_node_samples[tree.is_leaf], n_rows)


def fair(counts, leaves):
    """Look at rows."""
    return 1.0


@pytest.mark.parametrize(
    ("model", "beside", "named"),
    [
        (EvoTreeClassifier(objective=fair), {}, "objective=.*fair"),
        (EvoTreeClassifier("log_loss"), {}, "objective='log_loss'"),
        (
            EvoTreeRegressor(objective="absolute_error"),
            {},
            "objective='absolute_error'",
        ),
        (EvoTreeRegressor(Quantile(0.5)), {}, "objective=Quantile"),
        (EvoTreeRegressor(objective=QuantileLoss()), {}, "objective=QuantileLoss"),
        (EvoTreeRegressor(leaves="linear"), {}, "leaves='linear'"),
        (EvoTreeClassifier(), {"sensitive": [1]}, "sensitive="),
        (EvoTreeClassifier(), {"groups": [1]}, "groups="),
        (EvoTreeClassifier(), {"cv": 3}, "cv=3"),
    ],
    ids=[
        "rows",
        "probabilities",
        "medians",
        "quantiles",
        "instance",
        "lines",
        "sensitive",
        "groups",
        "folds",
    ],
)
def test_what_needs_rows_is_refused_before_any_work(model, beside, named):
    never = da.from_delayed(dask.delayed(pytest.fail)("computed"), (9, 2), dtype=float)
    with pytest.raises(
        ValueError, match=f"^{named}.*: for collections of Dask allowed"
    ):
        model.fit(never, never[:, 0], **beside)


# ---- frames: missing values, categories, hostile partitions --------------------------------------


def test_frames_are_encoded_by_what_all_partitions_say():
    dd = frames()
    table, y = table_of_all_kinds()
    fits = [
        quick(**ON_SHARDS).fit(
            dd.from_pandas(table, n, sort=False), dd.from_pandas(y, n, sort=False)
        )
        for n in (1, 5)
    ]
    assert_same(*fits)
    in_memory = quick().fit(table, y)
    assert fits[0].feature_names_ == in_memory.feature_names_
    assert fits[0].columns_[1:] == in_memory.columns_[1:]
    assert list(fits[0].feature_names_in_) == list(table.columns)
    assert fits[0].score(table, y) > 0.9
    assert fits[0].tree_.n_node_samples[0] == len(y)


def test_frames_of_categories_alone_are_fitted():
    dd = frames()
    table, y = table_of_all_kinds()
    colours = table[["colour"]]
    model = quick(**ON_SHARDS).fit(
        dd.from_pandas(colours, 3, sort=False), dd.from_pandas(y, 3, sort=False)
    )
    assert model.feature_names_ == quick().fit(colours, y).feature_names_
    assert model.tree_.n_node_samples[0] == len(y)


def test_lazy_predictions_are_those_in_memory():
    dd = frames()
    table, y = table_of_all_kinds()
    model = quick().fit(table, y)
    lazy = dd.from_pandas(table, 4, sort=False)
    for name in ("predict", "predict_proba", "predict_log_proba", "apply"):
        method = getattr(model, name)
        later, now = method(lazy), method(table)
        computed = later.compute()
        np.testing.assert_array_equal(computed.to_numpy(), now)
        dd.utils.assert_eq(later, computed)
        assert list(computed.index) == list(table.index)
    simple = quick().fit(X, Y)
    for chunks in ((300, -1), (900, 1)):
        rows = da.from_array(X, chunks=chunks)
        for name in ("predict", "predict_proba", "apply"):
            later, now = getattr(simple, name)(rows), getattr(simple, name)(X)
            assert later.shape == now.shape and later.dtype == now.dtype
            assert later.chunks[0] == rows.chunks[0]
            np.testing.assert_array_equal(later.compute(), now)
    member = simple.pareto_front_[0]
    np.testing.assert_array_equal(
        simple.predict(rows, member).compute(), simple.predict(X, member)
    )
    with pytest.raises(ValueError, match="return_std=True"):
        quick(EvoTreeRegressor).fit(X, X[:, 0]).predict(rows, return_std=True)


def parted(*tables):
    """Return a frame of these partitions, whatever they hold."""
    parts = [dask.delayed(one) for one in tables]
    return frames().from_delayed(parts, meta=tables[0].iloc[:0], verify_meta=False)


def test_empty_partitions_and_classes_of_one_partition():
    table, y = table_of_all_kinds()
    y = y.copy()
    y[1100:1105] = "perhaps"
    cuts = [slice(0, 0), slice(0, 1000), slice(1000, 1000), slice(1000, 1200)]
    model = quick(**ON_SHARDS).fit(
        parted(*[table[cut] for cut in cuts[1:]], table[:0]),
        parted(*[y[cut] for cut in cuts[1:]], y[:0]),
    )
    assert list(model.classes_) == ["no", "perhaps", "yes"]
    assert model.tree_.values[0] == pytest.approx(
        [(y == label).mean() for label in model.classes_]
    )
    later = model.predict(parted(table[:10], table[:0]))
    assert len(later.compute()) == 10


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda t: t.drop(columns="n"),
            r"partition 1: X has the columns \['size', 'colour'\]",
        ),
        (lambda t: t[["n", "size", "colour"]], "partition 1: X has the columns"),
        (
            lambda t: t.assign(size="big"),
            "partition 1: X has 'big' in the column 'size'",
        ),
        (lambda t: t.assign(n=np.inf), "partition 1: column 'n': inf"),
        (lambda t: t[:7], "partition 1: y has shape"),
    ],
)
def test_partitions_that_do_not_fit_are_refused(change, message):
    table, y = table_of_all_kinds(200)
    X = parted(table[:100], change(table[100:]))
    with pytest.raises(ValueError, match=message):
        quick(**ON_SHARDS).fit(X, parted(y[:100], y[100:]))


def test_targets_and_weights_that_do_not_fit_are_refused():
    rows, at = da.from_array(X, chunks=(700, -1)), np.arange(len(X))
    with pytest.raises(ValueError, match="y is a ndarray"):
        quick().fit(rows, Y)
    with pytest.raises(ValueError, match="y has 1 partitions"):
        quick().fit(rows, da.from_array(Y, chunks=700)[:500])
    counts = {"kind": EvoTreeRegressor, "objective": "poisson"}
    for changed, message in (
        (
            {"sample_weight": np.where(at == 1999, -1.0, 1.0)},
            "partition 2: sample_weight has val",
        ),
        ({"sample_weight": np.zeros(len(X))}, "no rows with weight"),
        (
            {"y": np.where(at == 800, np.nan, Y)},
            r"partition 1: Input y .* missing labels: 1 of 700",
        ),
        ({"y": X[:, 0]}, "Unknown label type"),
        (
            {"y": np.where(at == 1500, -1.0, COUNTS), **counts},
            "partition 2: y has the target -1",
        ),
        ({"class_weight": {Y[0]: 0.0}}, "class_weight="),
    ):
        with pytest.raises(ValueError, match=message):
            fit(700, **changed)


# ---- fits that go on -----------------------------------------------------------------------------


def fails_at(generation):
    def fail(run):
        if run.generation == generation:
            raise LookupError("no such thing")

    return fail


@pytest.mark.parametrize(
    "changed",
    [{"kind": EvoTreeRegressor, "y": X[:, 0]}, {"islands": Islands(2, every=1)}],
)
def test_a_fit_goes_on_from_its_checkpoint(tmp_path, changed):
    path = tmp_path / "fit.npz"
    with pytest.raises(LookupError, match="no such thing"):
        fit(**changed, checkpoint=path, callbacks=[fails_at(3)])
    kept = path.read_bytes()
    resumed = {**changed, "checkpoint": Checkpoint(path, resume=True)}
    rest = fit(**resumed, random_state=99)
    assert_same(fit(**changed), rest)
    if "y" not in changed:
        path.write_bytes(kept)
        assert_same(rest, fit(90, **resumed))
    with pytest.raises(ValueError, match="is a checkpoint of other rows"):
        fit(**resumed | {"X": X[::-1]})
    with pytest.raises(ValueError, match="population_size=14: the run in"):
        fit(**resumed, population_size=14)


def test_a_warm_start_goes_on():
    warm = quick(**ON_SHARDS, warm_start=True, callbacks=[fails_at(3)])
    rows, labels = da.from_array(X, chunks=(700, -1)), da.from_array(Y, chunks=700)
    with pytest.raises(LookupError):
        warm.fit(rows, labels)
    warm.set_params(callbacks=None, random_state=99)
    assert_same(fit(), warm.fit(rows.rechunk((90, -1)), labels.rechunk(90)))
    with pytest.warns(RuntimeWarning, match="the rows changed"):
        begun = warm.fit(rows, labels[::-1].rechunk(700))
    assert_same(fit(y=Y[::-1]), begun)  # the sample is drawn as before
