"""What `fit` was given is asked for again by whatever edits, refits or judges its model."""

import warnings

import numpy as np
import pytest

from evotree import EvoTreeRegressor
from tests.quick_models import brief

RNG = np.random.default_rng(0)
ROWS = RNG.normal(size=(120, 2))
EXPOSURE = RNG.choice([1.0, 10.0], 120)
EVENTS = RNG.poisson(np.where(ROWS[:, 0] > 0.0, 0.9, 0.2) * EXPOSURE)


@pytest.fixture(scope="module")
def rates():
    """Return a model of rates."""
    model = brief(EvoTreeRegressor, objective="poisson")
    return model.fit(ROWS, EVENTS, exposure=EXPOSURE)


def asked(model):
    """Return the methods that take rows and what stands beside them, by their names."""
    return {
        "edit": lambda *rows, **beside: model.edit(*rows, **beside),
        "refit": lambda *rows, **beside: model.refit(*rows, **beside),
        "select_tree": lambda *rows, **beside: model.select_tree(
            "accurate", *rows, **beside
        ),
        "calibrate": lambda *rows, **beside: model.calibrate(*rows, **beside),
    }


def test_a_model_of_rates_asks_for_exposures(rates):
    before = rates.predict(ROWS)
    for name, method in asked(rates).items():
        with pytest.raises(ValueError, match=f"{name}: exposure=None.*predicts rates"):
            method(ROWS, EVENTS)
        method(ROWS, EVENTS, exposure=EXPOSURE)
    with pytest.warns(UserWarning, match="intervals were calibrated"):
        rates.select_tree("chosen")
    np.testing.assert_array_equal(rates.predict(ROWS), before)


def test_intervals_of_rates_are_about_rates(rates):
    low, high = rates.calibrate(ROWS, EVENTS, exposure=EXPOSURE).predict_interval(ROWS)
    by_hand = rates.calibrate(
        ROWS, EVENTS / EXPOSURE, exposure=np.ones(120)
    ).predict_interval(ROWS)
    np.testing.assert_allclose((low, high), by_hand)
    held = (low <= EVENTS / EXPOSURE) & (high >= EVENTS / EXPOSURE)
    assert held.mean() >= 0.9


def test_a_model_of_weights_warns_of_rows_without():
    y = (ROWS[:, 0] > 0.0).astype(int)
    weighted = brief().fit(ROWS, y, sample_weight=1.0 + ROWS[:, 1] ** 2)
    for method in (weighted.edit, weighted.refit):
        with pytest.warns(UserWarning, match="fitted with sample_weight"):
            method(ROWS, y)
    plain = brief(class_weight="balanced").fit(ROWS, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        plain.edit(ROWS, y)
