"""Estimators of all kinds with settings that fit in a moment, and what tests of them share."""

import signal
from contextlib import contextmanager
from copy import copy
from dataclasses import fields
from functools import partial

import numpy as np
import pytest
from sklearn.base import is_classifier
from sklearn.datasets import load_iris, make_friedman1
from sklearn.ensemble import BaseEnsemble
from sklearn.utils.estimator_checks import parametrize_with_checks

from evotree import (
    Evolution,
    EvoTreeClassifier,
    EvoTreeRegressor,
    ObliqueTreeClassifier,
    ObliqueTreeRegressor,
    Regularization,
    TAOClassifier,
    TAORegressor,
)
from evotree.configuration import with_groups

# Nothing is left for cross-validation to choose.
FIXED = Regularization(C=1.0, noise=0.1)
BRIEF = {
    "size_penalty": 0.005,
    "term_penalty": 0.0005,
    "regularization": FIXED,
    "population_size": 12,
    "max_generations": 4,
    "random_state": 0,
}
# The penalties are chosen.
FREE = {name: value for name, value in BRIEF.items() if "penalty" not in name}


def nested(parameters):
    """Return parameters as `set_params` takes them; those of `Evolution` are named without it."""
    of_evolution = {one.name for one in fields(Evolution)}
    return {
        f"evolution__{name}" if name.partition("__")[0] in of_evolution else name: value
        for name, value in parameters.items()
    }


def evolved(kind, **parameters):
    """Return an evolved estimator, or a configuration; see `nested` for the parameters' names."""
    return kind(**with_groups(kind(), nested(parameters)))


CLASSIFIERS = [
    evolved(EvoTreeClassifier, **BRIEF),
    ObliqueTreeClassifier("linear", max_depth=4, random_state=0),
    TAOClassifier(depth=3, random_state=0),
]
REGRESSORS = [
    evolved(EvoTreeRegressor, **BRIEF | {"size_penalty": 0.02}),
    ObliqueTreeRegressor("axis", max_depth=3, random_state=0),
    TAORegressor(depth=3, random_state=0),
]


def brief(kind=EvoTreeClassifier, **changed):
    """Return a small evolved estimator with some other parameters, named as for `evolved`."""
    return evolved(kind, **BRIEF).set_params(**nested(changed))


def name_of(model):
    """Return the name of a test case."""
    return type(model).__name__


def draws_rows(model):
    """Return whether a model draws rows, as they were given, at random."""
    return isinstance(model, EvoTreeClassifier | EvoTreeRegressor | BaseEnsemble)


def expected_failed_checks(model):
    """Return the checks that a model which draws or counts rows cannot pass, as forests cannot."""
    # Random halves and folds count rows; balanced weights are no multiples of the least one.
    settings = {
        "init": "random",
        "pruning": "cross_validation",
        "class_weight": "balanced",
    }
    if not draws_rows(model) and all(
        getattr(model, k, None) != v for k, v in settings.items()
    ):
        return {}
    check, reason = (
        "check_sample_weight_equivalence_on_{}_data",
        "rows count as they were given",
    )
    return {check.format(kind): reason for kind in ("dense", "sparse")}


checked = partial(
    parametrize_with_checks,
    expected_failed_checks=expected_failed_checks,
    xfail_strict=False,  # some pass by chance
)
every = pytest.mark.parametrize("model", CLASSIFIERS + REGRESSORS, ids=name_of)
every_classifier = pytest.mark.parametrize("model", CLASSIFIERS, ids=name_of)
every_evolved = pytest.mark.parametrize(
    "model", [CLASSIFIERS[0], REGRESSORS[0]], ids=name_of
)


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


def assert_same_fit(one, other):
    """Check that two fits of evolved estimators have found the same, bit for bit, times apart."""
    assert one.tree_ == other.tree_
    np.testing.assert_array_equal(one.tree_.values, other.tree_.values)
    assert one.hall_of_fame_ == other.hall_of_fame_
    assert one.best_trees_ == other.best_trees_
    assert list(one.pareto_front_) == list(other.pareto_front_)
    assert [m.quality for m in one.pareto_front_] == [
        m.quality for m in other.pareto_front_
    ]
    for chapter in ("fitness", "quality", "size", "terms", "complexity"):
        records = [
            fit.history_.chapters[chapter].select("mean") for fit in (one, other)
        ]
        assert records[0] == records[1]
    assert one.n_generations_ == other.n_generations_
    assert (one.regularization_, one.size_penalty_) == (
        other.regularization_,
        other.size_penalty_,
    )


@contextmanager
def interrupts_raise():
    """Handle the interrupt as a program in the foreground does."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def brief_text(result):
    """Return how a result prints: in a few lines, without the arrays and places of its parts."""
    text = repr(result)
    assert " at 0x" not in text and "array(" not in text
    lines = text.splitlines()
    assert len(lines) <= 20 and max(map(len, lines)) <= 170
    return text


def by_tree(model, at):
    """Return a model that predicts by another tree of its front."""
    other = copy(model)
    other.fitted_ = model.pareto_front_.models[at]
    return other
