"""Scaling of fitness values before proportional selection."""

import numpy as np

from evotree._jit import kernel


@kernel
def linear_scaling(fitness, pressure):
    """Scale fitness linearly, so that the best is expected to have `pressure` offspring.

    ``f' = a f + b`` with ``mean(f') = 1`` and ``max(f') = pressure``; where that would make the
    worst negative, ``min(f') = 0`` instead (Goldberg 1989, chapter 3). Fitness may be negative.
    """
    scaled = np.ones(fitness.shape[0])
    mean, best, worst = 0.0, fitness[0], fitness[0]
    for f in fitness:
        mean += f / fitness.shape[0]
        best, worst = max(best, f), min(worst, f)
    if best - worst <= 1e-15 * max(abs(best), abs(worst)):
        return scaled
    slope = (pressure - 1.0) / (best - mean)
    if 1.0 + slope * (worst - mean) < 0.0:
        slope = 1.0 / (mean - worst)
    for i in range(fitness.shape[0]):
        scaled[i] = max(0.0, 1.0 + slope * (fitness[i] - mean))
    return scaled
