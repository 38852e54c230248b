"""Regressors of several outputs: what they find, keep, refuse and repeat."""

from functools import cache

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.metrics import r2_score

from evotree import (
    EvoTreeClassifier,
    EvoTreeRegressor,
    Islands,
    ObliqueTreeRegressor,
    Regularization,
    TAORegressor,
)
from tests.quick_models import BRIEF, evolved, name_of

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


@every_model
def test_the_order_of_outputs_and_their_units_do_not_matter(model):
    X, Y = corners()
    if isinstance(model, EvoTreeRegressor):
        # Numbers are rounded in their units.
        model = clone(model).set_params(precision=None)
    fitted, turned = clone(model).fit(X, Y), clone(model).fit(X, 1e3 * Y[:, ::-1] - 5.0)
    np.testing.assert_allclose(
        turned.predict(X)[:, ::-1], 1e3 * fitted.predict(X) - 5.0
    )


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
        {"scaling": "minmax", "init": "tao", "max_generations": 10},
    ],
    ids=str,
)
def test_searches_of_all_kinds_find_parts(changed):
    fitted = quick(**changed).fit(*corners())
    again = quick(**changed, n_jobs=2).fit(*corners())
    assert fitted.score(*corners(seed=1)) > 0.9
    np.testing.assert_array_equal(fitted.tree_.values, again.tree_.values)


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
    for wrong in (None, "depth", 2):
        with pytest.raises(ValueError, match="output=.*allowed are 'height', 'width'"):
            fitted.explain(X[:1], output=wrong)


# ---- what is refused -----------------------------------------------------------------------------


def test_what_is_for_one_output_is_refused_by_name():
    X, Y = corners(40)
    with pytest.raises(ValueError, match="'quantile' does not go with several"):
        quick(objective="quantile").fit(X, Y)
    with pytest.raises(ValueError, match="y should be a 1d array"):
        EvoTreeClassifier().fit(X, Y)
    for wrong, named in ((np.nan, "NaN"), (1e200, "y, in the column 1, has values")):
        Y[3, 1] = wrong
        with pytest.raises(ValueError, match=named):
            ObliqueTreeRegressor("axis").fit(X, Y)
