"""Times to an event: a room above the estimators, for which they are counts at exposures.

`evotree.survival.estimator` has the estimator, `evotree.EvoTreeSurvival`.
"""

from evotree.survival.times import (
    StepFunction,
    Times,
    concordance,
    cumulative_hazard,
    exposures,
    exposures_of,
    median_time,
    survival,
)

__all__ = [
    "StepFunction",
    "Times",
    "concordance",
    "cumulative_hazard",
    "exposures",
    "exposures_of",
    "median_time",
    "survival",
]
