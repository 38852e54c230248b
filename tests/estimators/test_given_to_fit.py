"""What `fit` was given is asked for again by whatever edits, refits or judges its model."""

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


def test_intervals_of_rates_are_about_rates(rates):
    low, high = rates.calibrate(ROWS, EVENTS, exposure=EXPOSURE).predict_interval(ROWS)
    by_hand = rates.calibrate(
        ROWS, EVENTS / EXPOSURE, exposure=np.ones(120)
    ).predict_interval(ROWS)
    np.testing.assert_allclose((low, high), by_hand)
    held = (low <= EVENTS / EXPOSURE) & (high >= EVENTS / EXPOSURE)
    assert held.mean() >= 0.9
