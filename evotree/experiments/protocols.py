"""How an estimator is tried: one fit on one part of the data, one score on the other."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import ClassifierMixin
from sklearn.model_selection import StratifiedKFold


def stratified_folds(
    y: np.ndarray, n_splits: int, random_state: int
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return the folds of a shuffled stratified cross-validation.

    Parameters
    ----------
    y : ndarray of shape (n_samples,)
        Class labels.
    n_splits : int, at least 2
        Number of folds.
    random_state : int
        Seed of the shuffle; another one gives another repetition.

    Returns
    -------
    list of tuple of ndarray
        Positions of the training and of the test rows, fold by fold.
    """
    folds = StratifiedKFold(n_splits, shuffle=True, random_state=random_state)
    return list(folds.split(np.zeros(len(y)), y))


def try_once(
    estimator: ClassifierMixin,
    X_train: Any,
    y_train: np.ndarray,
    X_test: Any,
    y_test: np.ndarray,
) -> dict[str, Any]:
    """Fit an `EvoTreeClassifier` and score it.

    Parameters
    ----------
    estimator : EvoTreeClassifier
        Fitted in place.
    X_train, y_train : array-like of shape (n_samples, n_features) and ndarray of shape (n_samples,)
        Rows and labels to fit on.
    X_test, y_test : array-like of shape (n_samples, n_features) and ndarray of shape (n_samples,)
        Rows and labels to score on.

    Returns
    -------
    dict
        ``accuracy`` on the test rows, ``train_accuracy``, ``nodes``, ``generations``,
        ``stop_reason`` and ``seconds`` of the fit.
    """
    begin = time.perf_counter()
    estimator.fit(X_train, y_train)
    seconds = time.perf_counter() - begin
    return {
        "accuracy": estimator.score(X_test, y_test),
        "train_accuracy": estimator.score(X_train, y_train),
        "nodes": estimator.tree_.n_nodes,
        "generations": estimator.n_generations_,
        "stop_reason": estimator.stop_reason_,
        "seconds": seconds,
    }


def mean_and_std(values: pd.Series, decimals: int) -> str:
    """Return ``mean ± standard deviation`` as text; the mean alone where there is one value."""
    if len(values) < 2:
        return f"{values.mean():.{decimals}f}"
    return f"{values.mean():.{decimals}f} ± {values.std():.{decimals}f}"
