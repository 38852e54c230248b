"""Models whose predictions trees are evolved to agree with."""

import time
import warnings
from copy import copy
from dataclasses import replace
from typing import Any, Self

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.frozen import FrozenEstimator
from sklearn.neighbors import NearestNeighbors
from sklearn.utils.metaestimators import available_if

from evotree.dataset import Dataset
from evotree.engine.config import SearchConfig, evolution_of

_TREES, _MIN_ROWS = 150, 2
_TIMED_ROWS = 1000  # whose neighbours are looked for to tell how long all take


def make_teacher(is_classification: bool) -> Any:
    """Return the default teacher, a random forest (Breiman 2001)."""
    forest = RandomForestClassifier if is_classification else RandomForestRegressor
    return forest(_TREES, min_samples_leaf=_MIN_ROWS)


def with_teacher_in_time(
    config: SearchConfig, dataset: Dataset, seconds: float | None
) -> SearchConfig:
    """Return what a search is told, without a teacher that takes longer than there is time."""
    evolution = evolution_of(config)
    regularization = evolution.regularization
    teacher = regularization.teacher
    if teacher is None or seconds is None:
        return config
    needed, message = seconds_to_teach(dataset, teacher), ""
    if needed > seconds:
        message = f" is too short for the teacher {teacher!r}, which takes about {needed:.2g} "
        message += "seconds: trees are evolved without it."
        config = copy(config)
        regularization = replace(regularization, teacher=None)
        config.evolution = replace(evolution, regularization=regularization)
    elif not isinstance(teacher, str | FrozenEstimator):
        message = f": fits of the teacher {teacher!r} cannot be stopped, and may take longer."
    if message:
        warnings.warn(f"time_limit={config.time_limit:g}{message}", RuntimeWarning, stacklevel=6)
    return config


def seconds_to_teach(dataset: Dataset, teacher: Any) -> float:
    """Return about how long one use of a teacher takes, without the fit of a user's own one."""
    begin = time.perf_counter()
    X = dataset.X / dataset.spread
    few = X[:_TIMED_ROWS]
    NearestNeighbors(n_neighbors=min(7, len(X))).fit(X).kneighbors(few)
    needed = (time.perf_counter() - begin) * len(X) / len(few)
    if isinstance(teacher, str):
        begin = time.perf_counter()
        tree = make_teacher(dataset.n_classes > 0).set_params(n_estimators=1, random_state=0)
        tree.fit(dataset.X, dataset.y, sample_weight=dataset.sample_weight)
        needed += (time.perf_counter() - begin) * _TREES
    return needed


class FrozenTeacher(BaseEstimator):
    """A teacher that is fitted already, on the raw rows and labels of the user."""

    def __init__(self, model: FrozenEstimator, dataset: Dataset) -> None:
        self.model = model
        self.dataset = dataset

    def __sklearn_clone__(self) -> Self:
        return self

    def fit(self, X: np.ndarray, y: np.ndarray, sample_weight: np.ndarray | None = None) -> Self:
        """Leave the model as it is."""
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Return what the model predicts for rows."""
        rows = self._raw(X)
        return self.dataset.like(np.asarray(rows), np.asarray(self.model.predict(rows))).y

    @available_if(lambda self: hasattr(self.model, "predict_proba"))
    def predict_proba(self, X: np.ndarray) -> Any:
        """Return the model's probabilities for rows."""
        return self.model.predict_proba(self._raw(X))

    def _raw(self, X: np.ndarray) -> Any:
        raw = X * self.dataset.scale + self.dataset.mean
        if hasattr(self.model, "feature_names_in_"):
            return pd.DataFrame(raw, columns=list(self.dataset.feature_names))
        return raw
