"""Regressors of several outputs: what they find, keep, refuse and repeat."""

import pickle
from functools import cache

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.metrics import r2_score

from evotree import (
    Checkpoint,
    EvoTreeClassifier,
    EvoTreeRegressor,
    Islands,
    ObliqueTreeRegressor,
    Regularization,
    TAORegressor,
)
from evotree.report import report
from tests.quick_models import BRIEF, REGRESSORS, draws_rows, evolved, name_of

QUICK = BRIEF | {"max_generations": 5, "leaves": "constant"}
MODELS = [
    evolved(EvoTreeRegressor, **QUICK),
    evolved(EvoTreeRegressor, **QUICK | {"leaves": "auto"}),
    ObliqueTreeRegressor("axis", max_depth=3, random_state=0),
    ObliqueTreeRegressor("axis", max_depth=3, leaves="linear", random_state=0),
    TAORegressor(depth=3, random_state=0),
    TAORegressor(depth=3, leaves="linear", random_state=0),
]
every_model = pytest.mark.parametrize("model", MODELS, ids=name_of)
every_constant = pytest.mark.parametrize(
    "model", [one for one in MODELS if one.leaves == "constant"], ids=name_of
)


def corners(n=240, seed=0, noise=0.05):
    """Return rows of which each output has a mean of its own in three parts of the plane."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1.0, 1.0, (n, 3))
    part = np.where(X[:, 0] > 0.1, 0, np.where(X[:, 1] > -0.2, 1, 2))
    Y = np.array([[0.0, 200.0], [3.0, 100.0], [1.0, 300.0]])[part]
    return X, Y + noise * rng.normal(size=(n, 2)) * [1.0, 100.0]


@cache
def fitted_to_corners(model):
    """Return a fitted model, which no test changes."""
    return clone(model).fit(*corners())


def quick(**changed):
    """Return an evolved regressor, which fits in a moment."""
    return evolved(EvoTreeRegressor, **QUICK | changed)


# ---- what is found -------------------------------------------------------------------------------


@every_model
def test_parts_are_found(model):
    fitted = fitted_to_corners(model)
    X, Y = corners(seed=1)
    predicted = fitted.predict(X)
    assert predicted.shape == (240, 2) and fitted.n_outputs_ == 2
    assert model.__sklearn_tags__().target_tags.multi_output
    assert fitted.score(X, Y) == pytest.approx(r2_score(Y, predicted))
    assert fitted.score(X, Y) > 0.9


@every_constant
def test_leaves_hold_the_means_of_their_rows(model):
    X, Y = corners()
    weight = np.random.default_rng(0).integers(0, 4, len(X)).astype(float)
    fitted = clone(model).fit(X, Y, weight)
    leaves = fitted.apply(X)
    for k in np.unique(leaves[weight > 0.0]):
        rows = leaves == k
        mean = np.average(Y[rows], axis=0, weights=weight[rows])
        np.testing.assert_allclose(fitted.tree_.values[k], mean)
        assert fitted.tree_.n_node_samples[k] == (weight[rows] > 0.0).sum()


@pytest.mark.parametrize("model", [m for m in MODELS if not draws_rows(m)], ids=name_of)
def test_weights_are_repetitions(model):
    X, Y = corners(120)
    times = np.random.default_rng(0).integers(0, 3, len(X))
    weighted = clone(model).fit(X, Y, times.astype(float))
    repeated = clone(model).fit(X.repeat(times, axis=0), Y.repeat(times, axis=0))
    assert weighted.tree_ == repeated.tree_
    np.testing.assert_array_equal(weighted.predict(X), repeated.predict(X))


@every_model
def test_one_column_is_one_output(model):
    X, Y = corners(120)
    one = clone(model).fit(X, Y[:, 0])
    with pytest.warns(match="column-vector"):
        column = clone(model).fit(X, Y[:, :1])
    assert one.tree_ == column.tree_ and column.tree_.output_names is None
    np.testing.assert_array_equal(one.predict(X), column.predict(X))


@pytest.mark.parametrize("model", MODELS[2::2], ids=name_of)
def test_equal_outputs_have_the_tree_of_one(model):
    X, Y = corners()
    one = clone(model).fit(X, Y[:, 1])
    both = clone(model).fit(X, np.column_stack([Y[:, 1], -3.0 * Y[:, 1]]))
    np.testing.assert_allclose(both.predict(X)[:, 0], one.predict(X))
    np.testing.assert_allclose(both.predict(X)[:, 1], -3.0 * one.predict(X))


@every_model
def test_the_order_of_outputs_and_their_units_do_not_matter(model):
    X, Y = corners()
    if isinstance(model, EvoTreeRegressor):
        model = clone(model).set_params(precision=None)  # numbers are rounded in their units
    fitted, turned = clone(model).fit(X, Y), clone(model).fit(X, 1e3 * Y[:, ::-1] - 5.0)
    np.testing.assert_allclose(turned.predict(X)[:, ::-1], 1e3 * fitted.predict(X) - 5.0)


def test_a_constant_output_is_predicted():
    X, Y = corners(60)
    Y[:, 1] = 7.0
    fitted = TAORegressor(depth=2).fit(X, Y)
    np.testing.assert_allclose(fitted.predict(X)[:, 1], 7.0)
    assert fitted.score(X, Y) > 0.9


def test_classes_as_outputs_are_told_apart():
    """The first component of four classes leaves two of them together; nodes have their own."""
    X = np.random.default_rng(0).uniform(-1.0, 1.0, (200, 2))
    Y = np.eye(4)[2 * (X[:, 0] > 0.0) + (X[:, 1] > 0.0)]
    fitted = ObliqueTreeRegressor("axis", max_depth=3).fit(X, Y)
    assert fitted.score(X, Y) == 1.0 and fitted.get_n_leaves() == 4


@pytest.mark.parametrize("pruning", ["cost_complexity", "cross_validation", "reduced_error"])
def test_grown_trees_are_pruned(pruning):
    X, Y = corners(noise=0.5)
    whole = ObliqueTreeRegressor("axis", random_state=0).fit(X, Y)
    pruned = clone(whole).set_params(pruning=pruning).fit(X, Y)
    X, Y = corners(seed=1, noise=0.5)
    assert pruned.get_n_leaves() < whole.get_n_leaves() / 3
    assert pruned.score(X, Y) > whole.score(X, Y)
    path = whole.cost_complexity_pruning_path(*corners(noise=0.5))
    assert path.impurities[-1] == pytest.approx(1.0)
    cut = clone(whole).set_params(ccp_alpha=0.99 * path.ccp_alphas[-1]).fit(*corners(noise=0.5))
    assert 1 < cut.get_n_leaves() <= pruned.get_n_leaves() + 1


# ---- what the search can do ----------------------------------------------------------------------


@pytest.mark.parametrize(
    "changed",
    [
        {"max_samples": 0.4},
        {"islands": Islands(2, every=2)},
        {"variation__algorithm": "nsga2"},
        {"regularization": Regularization(noise=0.1)},
        {"precision": 3},
        {"max_leaf_nodes": 3, "interaction_cst": [[0], [1, 2]]},
        {"scaling": "minmax", "init": "tao"},
    ],
    ids=str,
)
def test_searches_of_all_kinds_find_parts(changed):
    fitted = quick(**changed).fit(*corners())
    again = quick(**changed, n_jobs=2).fit(*corners())
    assert fitted.score(*corners(seed=1)) > 0.9
    np.testing.assert_array_equal(fitted.tree_.values, again.tree_.values)


@pytest.mark.parametrize("leaves", ["constant", "linear"])
def test_runs_continue_from_checkpoints(leaves, tmp_path):
    X, Y = corners()
    path = tmp_path / "run.npz"
    whole = quick(leaves=leaves).fit(X, Y)
    quick(leaves=leaves, max_generations=2, checkpoint=Checkpoint(path, every=2)).fit(X, Y)
    told = Checkpoint(path, resume=True)
    resumed = quick(leaves=leaves, checkpoint=told).fit(X, Y)
    assert resumed.tree_ == whole.tree_
    np.testing.assert_array_equal(resumed.predict(X), whole.predict(X))
    with pytest.raises(ValueError, match="other"):
        quick(leaves=leaves, checkpoint=told).fit(X, Y + [0.0, 1.0] * X[:, :1])


@every_model
def test_copies_predict_the_same(model):
    X, _ = corners()
    fitted = fitted_to_corners(model)
    copied = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(copied.predict(X), fitted.predict(X))
    assert copied.tree_.output_names == ("y0", "y1")


def test_trees_of_the_front_are_chosen_by_the_score():
    X, Y = corners(noise=0.3)
    fitted = quick().fit(X, Y)
    held = corners(seed=1, noise=0.3)
    table = fitted.pareto_front_.to_frame(fitted._held_out(*held))
    for i in range(len(fitted.pareto_front_)):
        score = r2_score(held[1], fitted.predict(held[0], tree=i))
        assert table["held_out_quality"].iloc[i] == pytest.approx(score)
    best = fitted.select_tree("validation", *held).score(*held)
    assert best == pytest.approx(table["held_out_quality"].max())
    with pytest.raises(ValueError, match="y has 1 outputs: allowed are 2"):
        fitted.select_tree("validation", held[0], held[1][:, 0])


# ---- how sure it is, and why ---------------------------------------------------------------------


@every_model
def test_deviations_and_intervals_are_those_of_each_output(model):
    X, Y = corners(noise=0.3)
    fitted = clone(model).fit(X, Y).calibrate(*corners(seed=1, noise=0.3))
    predicted, std = fitted.predict(X, return_std=True)
    np.testing.assert_array_equal(std, fitted.residual_std_[fitted.apply(X)])
    new, targets = corners(2000, seed=2, noise=0.3)
    low, high = fitted.predict_interval(new, coverage=0.8)
    covered = ((low <= targets) & (targets <= high)).mean(axis=0)
    assert low.shape == (2000, 2) and (abs(covered - 0.8) < 0.1).all()
    with pytest.raises(ValueError, match="y has 1 outputs"):
        fitted.calibrate(X, Y[:, 0])


def test_outputs_are_explained_one_by_one():
    X, Y = corners()
    frame = pd.DataFrame(Y, columns=["height", "width"])
    fitted = TAORegressor(depth=2).fit(X, frame)
    rows = fitted.explain(X[:5], output="width").rows
    np.testing.assert_array_equal(rows["prediction"], fitted.predict(X[:5])[:, 1])
    shap = fitted.shap_values(X[:3], X[:20])
    total = shap.base + shap.values.sum(axis=1)
    np.testing.assert_allclose(total, fitted.predict(X[:3]))
    (point,) = fitted.counterfactuals(X[0], (2.5, 4.0), output="height")
    assert 2.5 <= fitted.predict(np.asarray(point.row))[0, 0] <= 4.0
    for wrong in (None, "depth", 2):
        with pytest.raises(ValueError, match="output=.*allowed are 'height', 'width'"):
            fitted.explain(X[:1], output=wrong)
    with pytest.raises(ValueError, match="report: the tree has 2 outputs"):
        report(fitted)


def test_importances_do_not_depend_on_units():
    X, Y = corners()
    fitted = ObliqueTreeRegressor("axis", max_depth=3).fit(X, Y)
    other = ObliqueTreeRegressor("axis", max_depth=3).fit(X, Y * [1.0, 1e6])
    for kind in ("impurity", "influence"):
        found = fitted.importances(kind)
        assert found.sum() == pytest.approx(1.0)
        np.testing.assert_allclose(found, other.importances(kind))
    assert fitted.importances()[2] < 0.05


# ---- what is refused -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "named"),
    [
        (quick(monotonic_cst=[1, 0, 0]), "monotonic_cst: y has 2 outputs"),
        (quick(objective="quantile"), "'quantile' does not go with several"),
        (quick(objective="absolute_error"), "'absolute_error' does not go with several"),
        (quick(regularization=Regularization(teacher="ensemble")), "teacher: y has 2 outputs"),
        (quick(objective=lambda counts: 1.0), "callables are for classes"),
        (ObliqueTreeRegressor("axis", criterion="absolute_error"), "criterion='absolute_error'"),
    ],
    ids=["monotonic", "quantile", "absolute", "teacher", "callable", "criterion"],
)
def test_what_is_for_one_output_is_refused_by_name(model, named):
    with pytest.raises(ValueError, match=named):
        clone(model).fit(*corners(40))


def test_classifiers_take_one_column():
    with pytest.raises(ValueError, match="y should be a 1d array"):
        EvoTreeClassifier().fit(np.eye(4), np.eye(4, 2))


@pytest.mark.parametrize("model", REGRESSORS, ids=name_of)
def test_bad_targets_are_refused(model):
    X, Y = corners(40)
    Y[3, 1] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        clone(model).fit(X, Y)
    Y[3, 1] = 1e200
    with pytest.raises(ValueError, match="y, in the column 1, has values"):
        clone(model).fit(X, Y)
