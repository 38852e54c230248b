"""Models whose predictions trees are evolved to agree with."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import pandas as pd
from sklearn import config_context
from sklearn.base import BaseEstimator
from sklearn.ensemble import (
    BaggingClassifier,
    BaggingRegressor,
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    VotingClassifier,
    VotingRegressor,
)
from sklearn.frozen import FrozenEstimator

from evotree.dataset import Dataset
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
    base = TAOClassifier if classification else TAORegressor
    grower = ExtraTreesClassifier if classification else ExtraTreesRegressor
    # Where metadata are routed, weights reach only those who ask for them; requests can be made
    # only there, but then do no harm elsewhere.
    with config_context(enable_metadata_routing=True):
        bagged = base(max_iter=4, **start).set_fit_request(sample_weight=True)
        trees = grower(_TREES).set_fit_request(sample_weight=True)
    if classification:
        bags = BaggingClassifier(bagged, _BAGS)
        return VotingClassifier([("trees", trees), ("bags", bags)], voting="soft")
    return VotingRegressor([("trees", trees), ("bags", BaggingRegressor(bagged, _BAGS))])


class FrozenTeacher(BaseEstimator):
    """A teacher that is fitted already, to the raw rows and labels of the user.

    Parameters
    ----------
    model : FrozenEstimator
        The fitted model.
    dataset : Dataset
        In whose units rows are handed over, and labels or targets expected.
    """

    def __init__(self, model: FrozenEstimator, dataset: Dataset) -> None:
        self.model = model
        self.dataset = dataset

    def __sklearn_clone__(self) -> Self:
        return self

    def fit(self, X: np.ndarray, y: np.ndarray, sample_weight: np.ndarray | None = None) -> Self:
        """Leave the model as it is.

        Parameters
        ----------
        X : ndarray of shape (n_samples, n_features)
            Ignored.
        y : ndarray of shape (n_samples,)
            Ignored.
        sample_weight : ndarray of shape (n_samples,), optional
            Ignored.

        Returns
        -------
        FrozenTeacher
            The same.
        """
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Return what the model says of rows.

        Parameters
        ----------
        X : ndarray of shape (n_samples, n_features)
            Rows in the units of the data set.

        Returns
        -------
        ndarray of shape (n_samples,)
            Class codes, or targets in the units of the data set.

        Raises
        ------
        ValueError
            If the model predicts a label that is none of the classes, or is not fitted.
        """
        raw = X * self.dataset.scale + self.dataset.mean
        rows = raw
        if hasattr(self.model, "feature_names_in_"):
            rows = pd.DataFrame(raw, columns=list(self.dataset.feature_names))
        return self.dataset.like(raw, np.asarray(self.model.predict(rows))).y
