"""The classifier: scikit-learn's own checks, and what they leave out."""

import signal
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.datasets import (
    load_breast_cancer,
    load_diabetes,
    load_iris,
    load_wine,
    make_classification,
)
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from sklearn.utils.estimator_checks import parametrize_with_checks

from evotree import EvoTreeClassifier, EvoTreeRegressor, to_frame
from evotree.estimators import EVOLUTION_PRESETS

# One setting, so that `fit` is one evolution and no teacher is made.
FIXED = {"size_penalty": 0.005, "C": 1.0, "penalty": "l2", "noise": 0.1, "teacher": None}


@parametrize_with_checks(
    [
        EvoTreeClassifier(max_generations=40, **FIXED),
        EvoTreeClassifier(
            max_generations=6, population_size=16, **FIXED | {"size_penalty": "auto", "C": "auto"}
        ),
        EvoTreeClassifier.from_preset("gea_odt", patience=50),
        EvoTreeRegressor(max_generations=40, **FIXED),
    ]
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def quick(**parameters):
    """Return a classifier that fits in a moment."""
    return EvoTreeClassifier(**({"max_generations": 60, "random_state": 0} | FIXED | parameters))


def quick_regressor(**parameters):
    """Return a regressor that fits in a moment."""
    return EvoTreeRegressor(**({"max_generations": 60, "random_state": 0} | FIXED | parameters))


def test_small_trees_are_accurate():
    """More accurate than scikit-learn's tree, with less than half of its nodes."""
    for load in (load_wine, load_breast_cancer):
        X, y = load(return_X_y=True)
        ours, axis_parallel = (
            cross_validate(model, X, y, cv=5, return_estimator=True)
            for model in (quick(), DecisionTreeClassifier(random_state=0))
        )
        assert ours["test_score"].mean() > axis_parallel["test_score"].mean()
        n_nodes = [model.tree_.n_nodes for model in ours["estimator"]]
        n_nodes_axis = [model.tree_.node_count for model in axis_parallel["estimator"]]
        assert sum(n_nodes) < sum(n_nodes_axis) / 2


def test_small_regression_trees_explain_more_than_axis_parallel_ones():
    """More variance of unseen targets than scikit-learn's tree with as many leaves."""
    X, y = load_diabetes(return_X_y=True)
    evolved = quick_regressor(size_penalty=0.01)
    ours = cross_validate(evolved, X, y, cv=5, return_estimator=True)
    leaves = int(np.mean([model.get_n_leaves() for model in ours["estimator"]]))
    assert 2 <= leaves <= 8
    axis_parallel = DecisionTreeRegressor(max_leaf_nodes=leaves, random_state=0)
    theirs = cross_validate(axis_parallel, X, y, cv=5)
    assert ours["test_score"].mean() > theirs["test_score"].mean()


def test_regression_predicts_means_and_its_quality_is_the_score():
    X, y = load_diabetes(return_X_y=True)
    weight = np.random.default_rng(0).integers(1, 4, len(y))
    model = quick_regressor(noise=0.0).fit(X, y, weight)
    leaves = model.apply(X)
    for leaf in np.unique(leaves):
        here = leaves == leaf
        assert model.predict(X)[here] == pytest.approx(np.average(y[here], weights=weight[here]))
    assert model.score(X, y, weight) == pytest.approx(model.hall_of_fame_[0].quality)
    best = model.hall_of_fame_[0]
    assert best.fitness.values[0] == pytest.approx(best.quality - 0.005 * len(best))


def test_regression_does_not_depend_on_the_units_of_the_targets():
    X, y = load_diabetes(return_X_y=True)
    model = quick_regressor(max_generations=40)
    plain, scaled = clone(model).fit(X, y), clone(model).fit(X, 4.0 * y)  # exact
    assert scaled.tree_ == plain.tree_
    np.testing.assert_array_equal(scaled.predict(X), 4.0 * plain.predict(X))


def test_predictions_follow_from_the_tree():
    X, y = load_iris(return_X_y=True)
    model = quick(noise=0.0, patience=None).fit(X, y)
    leaves = model.apply(X)
    np.testing.assert_array_equal(leaves, model.tree_.apply(X))
    assert model.tree_.is_leaf[leaves].all()
    proba = model.predict_proba(X)
    np.testing.assert_allclose(proba.sum(axis=1), 1.0)
    for leaf in np.unique(leaves):
        share = np.bincount(y[leaves == leaf], minlength=3) / (leaves == leaf).sum()
        np.testing.assert_allclose(
            proba[leaves == leaf], share[None, :].repeat((leaves == leaf).sum(), 0)
        )
    np.testing.assert_array_equal(model.predict(X), model.classes_[proba.argmax(axis=1)])
    np.testing.assert_array_equal(np.exp(model.predict_log_proba(X)), proba)
    path = model.decision_path(X)
    assert path.shape == (150, model.tree_.n_nodes) and set(path.data) == {1}
    for i, leaf in enumerate(leaves):
        passed, k = [0], 0
        while not model.tree_.is_leaf[k]:
            left = model.tree_.left(k)
            k = left if leaf < model.tree_.right(k) else model.tree_.right(k)
            passed.append(k)
        assert passed[-1] == leaf and path[i].indices.tolist() == passed
    assert model.score(X, y) == pytest.approx(model.hall_of_fame_[0].quality)
    assert model.get_n_leaves() == model.tree_.n_leaves and model.get_depth() == model.tree_.depth
    assert model.n_generations_ == 60 and model.stop_reason_ == "max_generations"
    assert to_frame(model.history_)["quality_best"].iloc[-1] == pytest.approx(model.score(X, y))


def test_single_precision_is_routed_as_its_double():
    X, y = load_iris(return_X_y=True)
    model = quick().fit(X, y)
    narrow = X.astype(np.float32)
    np.testing.assert_array_equal(model.apply(narrow), model.apply(narrow.astype(np.float64)))


@pytest.mark.parametrize("make", [quick, quick_regressor])
def test_threads_do_not_change_the_tree(make):
    """Also where trees are refined, rows are blurred, and the charge is chosen."""
    X, y = make_classification(10_000, 6, n_informative=4, n_classes=3, random_state=0)
    y = y if make is quick else X[:, 0] * X[:, 1] + 0.1 * y
    one, two = (
        make(max_generations=4, population_size=16, n_jobs=n, size_penalty="auto").fit(X, y)
        for n in (1, 2)
    )
    assert len(one.tree_) > 3 and sum(one.history_.chapters["refinement"].select("tao_tried")) > 3
    assert one.tree_ == two.tree_
    np.testing.assert_array_equal(one.tree_.values, two.tree_.values)


def test_weights_count():
    X, y = make_classification(300, 4, weights=[0.9], flip_y=0.1, random_state=0)
    plain, balanced = quick().fit(X, y), quick(class_weight="balanced").fit(X, y)
    assert (balanced.predict(X) == 1).sum() > (plain.predict(X) == 1).sum()
    as_rows = quick().fit(X, y, sample_weight=np.where(y == 1, 3.0, 1.0))
    as_classes = quick(class_weight={0: 1, 1: 3}).fit(X, y)
    repeated = quick().fit(
        np.vstack([X, X[y == 1], X[y == 1]]), np.append(y, [1] * 2 * (y == 1).sum())
    )
    assert as_rows.tree_ == as_classes.tree_ == repeated.tree_


def test_frames_and_names():
    X, y = load_iris(return_X_y=True, as_frame=True)
    names = load_iris().target_names[y]
    model = quick().fit(X, names)
    np.testing.assert_array_equal(model.feature_names_in_, X.columns)
    assert set(model.predict(X)) <= set(load_iris().target_names)
    from_polars = quick().fit(pl.from_pandas(X), names)
    assert from_polars.tree_ == model.tree_
    np.testing.assert_array_equal(model.predict(pl.from_pandas(X)), model.predict(X))
    with pytest.raises(ValueError, match="feature names"):
        model.predict(X.rename(columns={X.columns[0]: "other"}))


def test_order_of_rows_and_units_do_not_matter():
    X, y = load_wine(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(y))
    model, permuted = quick().fit(X, y), quick().fit(X[order], y[order])
    assert model.tree_ == permuted.tree_
    units = 2.0 ** np.arange(-6, 7)  # exact in binary
    other = quick().fit(X * units, y)
    np.testing.assert_array_equal(other.predict(X * units), model.predict(X))


def test_works_in_searches_and_pipelines():
    X, y = load_iris(return_X_y=True)
    pipeline = make_pipeline(StandardScaler(), quick(max_generations=10))
    search = GridSearchCV(pipeline, {"evotreeclassifier__size_penalty": [0.005, 0.5]}, cv=3)
    assert search.fit(X, y).best_params_ == {"evotreeclassifier__size_penalty": 0.005}


def test_awkward_data():
    rng = np.random.default_rng(0)
    one_class = quick().fit(rng.random((10, 2)), ["a"] * 10)
    assert one_class.tree_.n_nodes == 1 and set(one_class.predict(rng.random((5, 2)))) == {"a"}
    one_row = quick().fit([[1.0, 2.0]], [3])
    assert one_row.predict([[9.0, 9.0]]) == [3]
    constant = quick().fit(np.ones((20, 3)), [0] * 15 + [1] * 5)
    assert constant.tree_.n_nodes == 1 and constant.predict(np.ones((1, 3))) == [0]
    X = rng.standard_normal((20, 100))
    wide = quick().fit(X, (X[:, 0] > 0).astype(int))
    assert wide.score(X, (X[:, 0] > 0).astype(int)) == 1.0
    huge = rng.standard_normal((50, 2)) * [1e150, 1e-150]
    y = (huge[:, 1] > 0).astype(int)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert quick().fit(huge, y).score(huge, y) > 0.95


@pytest.mark.parametrize(
    ("X", "message"),
    [
        ([[np.nan, 1.0], [2.0, 3.0]], "NaN"),
        ([[np.inf, 1.0], [2.0, 3.0]], "infinity"),
        ([["a", 1.0], ["b", 3.0]], "could not convert string to float"),
        ([1.0, 2.0], "2D array"),
        (np.empty((0, 2)), "minimum of 1 is required"),
    ],
)
def test_bad_data_is_refused(X, message):
    with pytest.raises(ValueError, match=message):
        quick().fit(X, [0, 1][: len(X)])


def test_continuous_targets_are_refused():
    with pytest.raises(ValueError, match="continuous"):
        quick().fit(np.eye(3), [0.1, 0.2, 0.3])


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("size_penalty", -0.1),
        ("size_penalty", np.nan),
        ("population_size", 1),
        ("max_generations", 1.5),
        ("patience", 0),
        ("time_limit", 0.0),
        ("mutation_probability", 1.5),
        ("crossover_probability", -1),
        ("dipolar_probability", "half"),
        ("min_samples_split", 1),
        ("scaling", "robust"),
        ("class_weight", "heavy"),
        ("callbacks", [1]),
        ("random_state", -1),
        ("refinement", "polish"),
        ("refinement", 3),
        ("weight_penalty", -0.1),
        ("C", 0.0),
        ("C", (2.0, 1.0)),
        ("C", "high"),
        ("penalty", "l0"),
        ("noise", -0.1),
        ("noise", "much"),
        ("teacher", "oracle"),
        ("teacher", 3),
        ("max_origin_share", 0.0),
        ("algorithm", "nsga3"),
        ("size_penalty", "small"),
    ],
)
def test_bad_parameters_are_named(name, value):
    with pytest.raises(ValueError, match=name):
        quick(**{name: value}).fit(np.eye(4), [0, 1, 0, 1])


def test_interrupt_keeps_the_best_tree_where_asked():
    X, y = load_iris(return_X_y=True)

    def interrupt(run):
        if run.generation == 20:
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        quick(callbacks=[interrupt]).fit(X, y)
    kept = quick(callbacks=[interrupt], keep_on_interrupt=True).fit(X, y)
    assert kept.stop_reason_ == "interrupt" and kept.score(X, y) > 0.8


def test_presets():
    model = EvoTreeClassifier.from_preset("gea_odt", random_state=3)
    assert model.get_params() == clone(model).get_params()
    for name, value in EVOLUTION_PRESETS["gea_odt"].items():
        assert getattr(model, name) == value
    assert EvoTreeClassifier.from_preset("gea_odt", size_penalty=0.1).size_penalty == 0.1
    with pytest.raises(ValueError, match="gea_odt"):
        EvoTreeClassifier.from_preset("gea")


def test_progress_bar_shows_the_tree(capsys):
    X, y = load_iris(return_X_y=True)
    quick(verbose=1).fit(X, y)
    assert "nodes=" in capsys.readouterr().err
    quick().fit(X, y)
    assert capsys.readouterr().err == ""


def test_frame_history_has_a_row_a_generation():
    X, y = load_iris(return_X_y=True)
    table = to_frame(quick().fit(X, y).history_)
    assert isinstance(table, pd.DataFrame) and len(table) == len(table["gen"].unique()) > 20
