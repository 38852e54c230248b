"""What fits refuse, and what becomes of an estimator whose fit fails or is ended early."""

import signal
from concurrent.futures import Executor

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone, is_classifier
from sklearn.datasets import load_iris

from tests.quick_models import (
    CLASSIFIERS,
    REGRESSORS,
    brief,
    interrupts_raise,
    name_of,
    rows_for,
)

KINDS = CLASSIFIERS + REGRESSORS


class Broken(Executor):
    """What fails as late as it can: when the tree is to be found."""

    def __call__(self, *arguments, **options):
        raise KeyboardInterrupt

    submit = __call__


BROKEN = [{name: Broken()} for name in ("objective", "splitter", "init")]
BROKEN += [{"objective": "poisson"}, *BROKEN[1:]]


def fitted_state(model):
    """Return the attributes that a fit has set."""
    names = set(vars(model)) - set(model.get_params(deep=False))
    return {name: vars(model)[name] for name in names}


@pytest.mark.parametrize(
    ("model", "broken"), [*zip(KINDS, BROKEN, strict=True)], ids=map(name_of, KINDS)
)
def test_a_fit_that_fails_leaves_the_estimator_as_it_was(model, broken):
    X, y = rows_for(model)
    fitted = clone(model).fit(X, y)
    before, said = fitted_state(fitted), fitted.predict(X)
    other = pd.DataFrame(X[:, 1:3], columns=["a", "b"])
    labels = np.array(["c", "b", "a"])[y] if is_classifier(model) else -y
    with pytest.raises((KeyboardInterrupt, ValueError)):
        fitted.set_params(**broken).fit(other, labels)
    after = fitted_state(fitted)
    assert after.keys() == before.keys() and all(
        after[name] is before[name] for name in after
    )
    np.testing.assert_array_equal(fitted.predict(X), said)
    bare = clone(model).set_params(**broken)
    with pytest.raises((KeyboardInterrupt, ValueError)):
        bare.fit(other, labels)
    assert not fitted_state(bare)


@pytest.mark.parametrize(
    ("end", "error"),
    [
        (lambda run: signal.raise_signal(signal.SIGINT), KeyboardInterrupt),
        (lambda run: 1 // 0, ZeroDivisionError),
    ],
)
def test_a_fit_that_is_ended_early_is_one_of_the_new_rows(end, error):
    X, y = load_iris(return_X_y=True)
    labels = np.array(["c", "b", "a"])[y]
    model = brief().fit(X, y).set_params(callbacks=[end])
    with interrupts_raise(), pytest.raises(error):
        model.fit(X[:, 2:], labels)
    assert model.n_features_in_ == 2 and model.tree_.n_features == 2
    assert model.score(X[:, 2:], labels) > 0.9
