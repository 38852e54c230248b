"""Rates of events bend with columns."""

from functools import partial

import numpy as np

from evotree import EvoTreeSurvival
from tests.quick_models import brief
from tests.test_bends import assert_log_linear_leaves_bend


def times_by(rng, rate):
    time, end = rng.exponential(1.0 / rate), rng.uniform(0.5, 4.0, len(rate))
    return np.column_stack([time <= end, np.minimum(time, end)])


def test_log_linear_leaves_bend():
    make = partial(brief, EvoTreeSurvival)
    assert_log_linear_leaves_bend(make, times_by)
