"""Models whose predictions trees are evolved to agree with."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.frozen import FrozenEstimator
from sklearn.utils.metaestimators import available_if

from evotree.dataset import Dataset

_TREES, _MIN_ROWS = 150, 2


def make_teacher(is_classification: bool) -> Any:
    """Return the default teacher, a random forest (Breiman 2001).

    Parameters
    ----------
    is_classification : bool
        Whether targets are class codes.

    Returns
    -------
    estimator
        Not fitted.
    """
    forest = RandomForestClassifier if is_classification else RandomForestRegressor
    return forest(_TREES, min_samples_leaf=_MIN_ROWS)


class FrozenTeacher(BaseEstimator):
    """A teacher that is fitted already, on the raw rows and labels of the user.

    Parameters
    ----------
    model : FrozenEstimator
        The fitted model.
    dataset : Dataset
        Gives the units of the rows, and the codes of the labels.
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
        """Return what the model predicts for rows.

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
            If the model predicts a label that is not one of the classes, or is not fitted.
        """
        rows = self._raw(X)
        return self.dataset.like(np.asarray(rows), np.asarray(self.model.predict(rows))).y

    @available_if(lambda self: hasattr(self.model, "predict_proba"))
    def predict_proba(self, X: np.ndarray) -> Any:
        """Return the model's probabilities for rows.

        Parameters
        ----------
        X : ndarray of shape (n_samples, n_features)
            Rows in the units of the data set.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            In the order of the model's classes.
        """
        return self.model.predict_proba(self._raw(X))

    def _raw(self, X: np.ndarray) -> Any:
        raw = X * self.dataset.scale + self.dataset.mean
        if hasattr(self.model, "feature_names_in_"):
            return pd.DataFrame(raw, columns=list(self.dataset.feature_names))
        return raw
