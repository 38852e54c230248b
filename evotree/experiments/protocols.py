"""How an estimator is tried: one fit on one part of the data, one score on the other."""

from __future__ import annotations

import time
import warnings
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.base import ClassifierMixin
from sklearn.model_selection import StratifiedKFold

from evotree.estimators import ObliqueTreeClassifier
from evotree.experiments.datasets import LoadedData, load
from evotree.experiments.problems import make_problem
from evotree.tables.columns import encode, fit_columns

OFFICIAL = -1
"""The number of the fold that stands for a data set's official split."""


class Parts(NamedTuple):
    """Rows to fit on and rows to score on.

    Attributes
    ----------
    X_train : ndarray of shape (n_train, n_features)
        Features of the rows to fit on.
    y_train : ndarray of shape (n_train,)
        Their labels.
    X_test : ndarray of shape (n_test, n_features)
        Features of the rows to score on.
    y_test : ndarray of shape (n_test,)
        Their labels.
    """

    X_train: np.ndarray
    y_train: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray


@lru_cache(maxsize=2)
def load_cached(name: str, data_home: Path | None) -> LoadedData:
    """Return a data set, read from its file once in a process; not to be written to."""
    return load(name, data_home)


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
        Positions of the training and of the test rows, fold by fold. A class of fewer rows than
        folds is missing in some test parts.
    """
    folds = StratifiedKFold(n_splits, shuffle=True, random_state=random_state)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The least populated class", UserWarning)
        return list(folds.split(np.zeros(len(y)), y))


def take_rows(X: pd.DataFrame, y: np.ndarray, train: np.ndarray, test: np.ndarray) -> Parts:
    """Part a data set and make numbers of its features.

    Parameters
    ----------
    X : DataFrame of shape (n_samples, n_features)
        Features.
    y : ndarray of shape (n_samples,)
        Labels.
    train : ndarray of int
        Positions of the training rows; means and categories are those of these rows alone.
    test : ndarray of int
        Positions of the test rows.

    Returns
    -------
    Parts
        The two parts.
    """
    columns = fit_columns(X.iloc[train])
    parts = encode(columns, X.iloc[train]), encode(columns, X.iloc[test])
    return Parts(parts[0], y[train], parts[1], y[test])


def take_fold(data: LoadedData, n_splits: int, run: int, fold: int) -> Parts:
    """Part a data set at one fold of a cross-validation, or at its official split.

    Parameters
    ----------
    data : LoadedData
        A data set of classification.
    n_splits : int, at least 2
        Number of folds of the stratified cross-validation.
    run : int
        Repetition: the seed of the shuffle. It changes nothing for the official split.
    fold : int
        0 to `n_splits` - 1, or `OFFICIAL`.

    Returns
    -------
    Parts
        The two parts.

    Raises
    ------
    ValueError
        If the official split is asked for and there is none.
    """
    if fold != OFFICIAL:
        return take_rows(data.X, data.y, *stratified_folds(data.y, n_splits, run)[fold])
    if data.n_train is None:
        raise ValueError(f"fold={fold}: data set {data.name!r} has no official split.")
    positions = np.arange(len(data.y))
    return take_rows(data.X, data.y, positions[: data.n_train], positions[data.n_train :])


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
    scores, seconds = _fit_and_score(estimator, Parts(X_train, y_train, X_test, y_test))
    return scores | {
        "nodes": estimator.tree_.n_nodes,
        "generations": estimator.n_generations_,
        "stop_reason": estimator.stop_reason_,
        "seconds": seconds,
    }


def try_greedy(estimator: ClassifierMixin, parts: Parts) -> dict[str, Any]:
    """Fit an `ObliqueTreeClassifier` and score it.

    Parameters
    ----------
    estimator : ObliqueTreeClassifier
        Fitted in place.
    parts : Parts
        Rows to fit on and rows to score on.

    Returns
    -------
    dict
        ``accuracy`` on the test rows, ``train_accuracy``, ``leaves``, ``depth`` and ``seconds`` of
        the fit.
    """
    scores, seconds = _fit_and_score(estimator, parts)
    tree = estimator.tree_
    return scores | {"leaves": tree.n_leaves, "depth": tree.depth, "seconds": seconds}


def make_method(name: str, random_state: int, **overrides: Any) -> ObliqueTreeClassifier:
    """Make the estimator of a published greedy algorithm.

    Parameters
    ----------
    name : str
        Name of a preset of `ObliqueTreeClassifier`.
    random_state : int
        Seed.
    **overrides
        Parameters that differ from the preset.

    Returns
    -------
    ObliqueTreeClassifier
        Not fitted.
    """
    return ObliqueTreeClassifier.from_preset(name, random_state=random_state, **overrides)


def try_method(name: str, parts: Parts, random_state: int, **overrides: Any) -> dict[str, Any]:
    """Fit and score a published greedy algorithm; compilation is not in the seconds.

    Parameters
    ----------
    name : str
        Name of a preset of `ObliqueTreeClassifier`.
    parts : Parts
        Rows to fit on and rows to score on.
    random_state : int
        Seed.
    **overrides
        Parameters that differ from the preset; hashable.

    Returns
    -------
    dict
        What `try_greedy` found.
    """
    _warm_up(name, tuple(overrides.items()))
    return try_greedy(make_method(name, random_state, **overrides), parts)


@cache
def _warm_up(name: str, overrides: tuple[tuple[str, Any], ...]) -> None:
    make_method(name, 0, **dict(overrides)).fit(*make_problem("chessboard4", 100, 0))


def _fit_and_score(estimator: ClassifierMixin, parts: Parts) -> tuple[dict[str, Any], float]:
    begin = time.perf_counter()
    estimator.fit(parts.X_train, parts.y_train)
    seconds = time.perf_counter() - begin
    accuracy = estimator.score(parts.X_test, parts.y_test)
    return {
        "accuracy": accuracy,
        "train_accuracy": estimator.score(parts.X_train, parts.y_train),
    }, seconds


def mean_and_std(values: pd.Series, decimals: int) -> str:
    """Return ``mean ± standard deviation`` as text; the mean alone where there is one value."""
    if len(values) < 2:
        return f"{values.mean():.{decimals}f}"
    return f"{values.mean():.{decimals}f} ± {values.std():.{decimals}f}"
