"""Models whose predictions trees are evolved to agree with."""

from __future__ import annotations

from typing import Any

from sklearn.ensemble import (
    BaggingClassifier,
    BaggingRegressor,
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    VotingClassifier,
    VotingRegressor,
)

from evotree.estimators.tao import TAOClassifier, TAORegressor

ENSEMBLE = "ensemble"
"""Name of the default teacher."""

_TREES, _BAGS = 150, 20


def make_teacher(classification: bool) -> Any:
    """Return the default teacher.

    Half the votes are those of extremely randomized trees (Geurts et al. 2006), half those of
    bagged oblique trees that are optimized alternately.

    Parameters
    ----------
    classification : bool
        Whether targets are classes.

    Returns
    -------
    estimator
        Not fitted.
    """
    start: dict[str, Any] = {"depth": 10, "min_samples_split": 3, "penalty": "l2", "C": 1.0}
    if classification:
        bags = BaggingClassifier(TAOClassifier(max_iter=4, **start), _BAGS)
        trees = ExtraTreesClassifier(_TREES)
        return VotingClassifier([("trees", trees), ("bags", bags)], voting="soft")
    bags = BaggingRegressor(TAORegressor(max_iter=4, **start), _BAGS)
    return VotingRegressor([("trees", ExtraTreesRegressor(_TREES)), ("bags", bags)])
