"""Times to an event to learn from."""

import numpy as np

from evotree import EvoTreeSurvival
from tests.quick_models import brief
from tests.test_texts import with_gaps


def seen_until(n=300, seed=0):
    """Draw rows whose risk is 4 above 0 and 1 below, and times that 2 ends."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3)).round(2)
    time = rng.exponential(np.where(X[:, 0] > 0.0, 0.25, 1.0))
    end = rng.uniform(0.5, 2.0, n)
    return X, np.column_stack([time <= end, np.minimum(time, end)])


def fitted_to_noise():
    """Return a model, fitted to rows whose medians have all digits, and these rows."""
    rng = np.random.default_rng(0)
    X = rng.normal(50.0, 10.0, (300, 3))
    times = np.column_stack([rng.random(300) < 0.7, rng.exponential(1e3 / X[:, 0])])
    table = with_gaps(X)
    return brief(EvoTreeSurvival, leaves="constant").fit(table, times), table
