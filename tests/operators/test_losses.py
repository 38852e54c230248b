"""What rows lose by finished trees, against scikit-learn, and standard errors of means."""

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.metrics import (
    brier_score_loss,
    d2_pinball_score,
    d2_tweedie_score,
    mean_pinball_loss,
    mean_poisson_deviance,
    mean_squared_error,
    r2_score,
    zero_one_loss,
)

from evotree import EvoTreeClassifier, EvoTreeRegressor, Quantile
from evotree.estimators.rows import Beside
from evotree.fitness.leaves import LEAST_MEAN
from evotree.fitness.probabilities import LEAST, fit_soft_sides
from evotree.front import held_out_quality
from evotree.operators.losses import null_loss, quality_on, row_losses
from tests.estimators.test_exposure import counts_of
from tests.quick_models import brief

REGRESSIONS = {
    "squared_error": (mean_squared_error, r2_score),
    "poisson": (
        lambda y, p: 0.5 * mean_poisson_deviance(y, np.maximum(LEAST_MEAN, p)),
        lambda y, p: d2_tweedie_score(y, np.maximum(LEAST_MEAN, p), power=1.0),
    ),
    "quantile": (
        lambda y, p: mean_pinball_loss(y, p, alpha=0.8),
        lambda y, p: d2_pinball_score(y, p, alpha=0.8),
    ),
}


@pytest.mark.parametrize("name", REGRESSIONS)
def test_targets_lose_as_the_objective_says_and_the_front_saves_shares_of_it(name):
    X, y, _ = counts_of()
    objective = Quantile(0.8) if name == "quantile" else name
    model = brief(EvoTreeRegressor, objective=objective).fit(X[::2], y[::2])
    loss, share_saved = REGRESSIONS[name]
    held_out = model._held_out(X[1::2], y[1::2], Beside())
    front = list(model.pareto_front_)
    qualities, _ = held_out_quality(front, held_out)
    for tree, quality in zip(front, qualities, strict=True):
        predicted = tree.predict_value(X[1::2])[:, 0]
        lost = row_losses(tree, held_out)
        assert lost.mean() == pytest.approx(loss(y[1::2], predicted))
        assert quality == pytest.approx(share_saved(y[1::2], predicted))
    if name == "squared_error":
        equal = held_out.take(np.flatnonzero(held_out.y == held_out.y[0]))
        assert set(held_out_quality(front, equal)[0]) <= {0.0, 1.0}


def test_classes_lose_by_labels_or_by_probabilities():
    X, y = load_iris(return_X_y=True)
    model = brief(EvoTreeClassifier).fit(X, y)
    rows = model._held_out(X, y, Beside())
    for tree in model.pareto_front_:
        predicted = tree.predict_label(X)
        errors = row_losses(tree, rows)
        assert errors.mean() == pytest.approx(zero_one_loss(y, predicted))
        assert quality_on(rows, tree) == pytest.approx(np.mean(predicted == y))
        sides = fit_soft_sides(tree, rows, brief=True)
        for soft in (None, sides):
            shares = (
                tree.values[tree.apply(X)] if soft is None else soft.predict(tree, X)
            )
            brier = row_losses(tree, rows, sides=soft, kind="brier")
            expected = brier_score_loss(
                y, shares, labels=[0, 1, 2], scale_by_half=False
            )
            assert brier.mean() == pytest.approx(expected)
        logged = row_losses(tree, rows, sides=sides, kind="log_loss")
        own = np.maximum(shares[np.arange(len(y)), y], LEAST)
        np.testing.assert_allclose(logged, -np.log(own))
    assert null_loss(rows) == len(y)
