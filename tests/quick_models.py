"""Estimators of all kinds with settings that fit in a moment, and what tests of them share."""

import numpy as np
import pytest
from sklearn.base import is_classifier
from sklearn.datasets import load_iris, make_friedman1

from evotree import (
    EvoTreeClassifier,
    EvoTreeRegressor,
    ObliqueTreeClassifier,
    ObliqueTreeRegressor,
    TAOClassifier,
    TAORegressor,
)

# One setting, few trees and generations.
BRIEF = {
    "size_penalty": 0.005,
    "C": 1.0,
    "penalty": "l2",
    "noise": 0.1,
    "teacher": None,
    "population_size": 12,
    "max_generations": 4,
    "random_state": 0,
}
CLASSIFIERS = [
    EvoTreeClassifier(**BRIEF),
    ObliqueTreeClassifier("linear", max_depth=4, random_state=0),
    TAOClassifier(depth=3, random_state=0),
]
REGRESSORS = [
    EvoTreeRegressor(**BRIEF | {"size_penalty": 0.02}),
    ObliqueTreeRegressor("axis", max_depth=3, random_state=0),
    TAORegressor(depth=3, random_state=0),
]


def name_of(model):
    """Return the name of a test case."""
    return type(model).__name__


every = pytest.mark.parametrize("model", CLASSIFIERS + REGRESSORS, ids=name_of)
every_classifier = pytest.mark.parametrize("model", CLASSIFIERS, ids=name_of)
every_regressor = pytest.mark.parametrize("model", REGRESSORS, ids=name_of)


def rows_for(model):
    """Return rows and targets for a model."""
    if is_classifier(model):
        return load_iris(return_X_y=True)
    return make_friedman1(160, 6, noise=0.3, random_state=0)


def weights_for(y):
    """Return weights that matter: 0, 1 or 3, each class having some."""
    weight = np.random.default_rng(1).choice([0.0, 1.0, 3.0], len(y))
    weight[np.unique(y, return_index=True)[1][:3]] = 1.0
    return weight


def outputs(model, X):
    """Return what a fitted model says of rows."""
    return model.predict_proba(X) if is_classifier(model) else model.predict(X)


def assert_same(one, other, X):
    """Check that two fitted models are the same, bit for bit."""
    assert one.tree_ == other.tree_
    np.testing.assert_array_equal(outputs(one, X), outputs(other, X))
