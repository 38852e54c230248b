"""Models whose predictions trees are evolved to agree with."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import pandas as pd
from sklearn import config_context
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, is_classifier
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
from evotree.operators.initialization.growth import grow
from evotree.operators.pruning.penalized import prune
from evotree.operators.refinement.tao import tao_sweeps
from evotree.operators.splitters.axis import Axis
from evotree.operators.splitters.linear import Linear
from evotree.rng import make_streams, seed_from

_TREES, _BAGS = 150, 20
_DEPTH, _MIN_ROWS, _SWEEPS, _TOLERANCE = 10, 3, 4, 0.005
_NEGLIGIBLE = 1e-8  # share of the weight, or of the squared error, that no node is worth


def make_teacher(is_classification: bool) -> Any:
    """Return the default teacher.

    Half the votes are those of extremely randomized trees (Geurts, Ernst and Wehenkel 2006), half
    those of bagged oblique trees that are optimized by tree alternating optimization.

    Parameters
    ----------
    is_classification : bool
        Whether targets are class codes.

    Returns
    -------
    estimator
        Not fitted.
    """
    bagged = _BaggedClassifier() if is_classification else _BaggedRegressor()
    grower = ExtraTreesClassifier if is_classification else ExtraTreesRegressor
    # Where metadata are routed, weights reach only those who ask for them; requests can be made
    # only there, but then do no harm elsewhere.
    with config_context(enable_metadata_routing=True):
        bagged = bagged.set_fit_request(sample_weight=True)
        trees = grower(_TREES).set_fit_request(sample_weight=True)
    if is_classification:
        bags = BaggingClassifier(bagged, _BAGS)
        return VotingClassifier([("trees", trees), ("bags", bags)], voting="soft")
    return VotingRegressor([("trees", trees), ("bags", BaggingRegressor(bagged, _BAGS))])


class _BaggedTree(BaseEstimator):
    """One of the bagged trees: grown by axis-parallel splits, and optimized as a whole."""

    def __init__(self, random_state: int | None = None) -> None:
        self.random_state = random_state

    def fit(self, X: np.ndarray, y: np.ndarray, sample_weight: np.ndarray | None = None) -> Self:
        task = "classification" if is_classifier(self) else "regression"
        dataset = Dataset.from_arrays(X, y, sample_weight, task=task)
        criterion = "entropy" if dataset.n_classes else "squared_error"
        stream = make_streams(seed_from(self.random_state), 0, 1)[0]
        sizes = {"max_depth": _DEPTH, "min_samples_split": _MIN_ROWS}
        tree = grow(dataset, Axis(), criterion, stream=stream, **sizes)
        prune(tree, dataset, 0.0)
        tree.stream = stream
        linear = Linear("logistic", "l2", 1.0, fallback=True)
        for _ in tao_sweeps(tree, dataset, linear, max_sweeps=_SWEEPS, tol=_TOLERANCE):
            pass
        prune(tree, dataset, _NEGLIGIBLE)
        self.tree_, self.classes_ = dataset.to_raw(tree.to_tree()), dataset.classes
        return self


class _BaggedClassifier(ClassifierMixin, _BaggedTree):
    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        shares: np.ndarray = self.tree_.values[self.tree_.apply(X)]
        return shares

    def predict(self, X: np.ndarray) -> np.ndarray:
        labels: np.ndarray = self.classes_[self.predict_proba(X).argmax(axis=1)]
        return labels


class _BaggedRegressor(RegressorMixin, _BaggedTree):
    def predict(self, X: np.ndarray) -> np.ndarray:
        means: np.ndarray = self.tree_.values[self.tree_.apply(X), 0]
        return means


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
        raw = X * self.dataset.scale + self.dataset.mean
        rows: Any = raw
        if hasattr(self.model, "feature_names_in_"):
            rows = pd.DataFrame(raw, columns=list(self.dataset.feature_names))
        return self.dataset.like(raw, np.asarray(self.model.predict(rows))).y
