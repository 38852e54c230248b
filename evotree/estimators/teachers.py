"""Models whose predictions trees are evolved to agree with."""

from __future__ import annotations

from typing import Any

from sklearn.ensemble import (
    BaggingClassifier,
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    VotingClassifier,
)

from evotree.estimators.tao import TAOClassifier


def make_teacher(classification: bool) -> Any:
    """Return the default teacher.

    Parameters
    ----------
    classification : bool
        Whether targets are classes.

    Returns
    -------
    estimator
        Not fitted.
    """
    if not classification:
        return ExtraTreesRegressor(200, min_samples_leaf=2)
    bags = BaggingClassifier(
        TAOClassifier("axis", depth=10, penalty="l2", C=1.0, min_samples_split=3, max_iter=4), 30
    )
    return VotingClassifier([("trees", ExtraTreesClassifier(200)), ("bags", bags)], voting="soft")
