"""Models whose predictions trees are evolved to agree with."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator
from sklearn.ensemble import ExtraTreesClassifier, ExtraTreesRegressor
from sklearn.frozen import FrozenEstimator

from evotree.dataset import Dataset
from evotree.operators.initialization.growth import grow
from evotree.operators.initialization.resampling import bootstrap
from evotree.operators.pruning.penalized import prune
from evotree.operators.refinement.tao import tao_sweeps
from evotree.operators.splitters.axis import Axis
from evotree.operators.splitters.linear import Linear
from evotree.rng import make_streams

_TREES, _BAGS = 150, 20
_DEPTH, _MIN_ROWS, _SWEEPS, _TOLERANCE = 10, 3, 4, 0.005
_NEGLIGIBLE = 1e-8  # share of the weight, or of the squared error, that no node is worth


class EnsembleTeacher(BaseEstimator):
    """Half the votes are those of extremely randomized trees, half those of bagged oblique trees.

    The oblique trees are optimized by tree alternating optimization, each on a bootstrap sample.

    Parameters
    ----------
    n_classes : int, default=0
        Number of classes; 0 for regression.
    random_state : int, default=0
        Source of all random draws.

    References
    ----------
    Geurts P., Ernst D., Wehenkel L. (2006). Extremely randomized trees. Machine Learning 63.
    """

    def __init__(self, n_classes: int = 0, random_state: int = 0) -> None:
        self.n_classes = n_classes
        self.random_state = random_state

    def fit(self, X: np.ndarray, y: np.ndarray, sample_weight: np.ndarray | None = None) -> Self:
        """Fit both halves.

        Parameters
        ----------
        X : ndarray of shape (n_samples, n_features)
            Rows.
        y : ndarray of shape (n_samples,)
            Class codes, 0, ..., n_classes - 1, or targets.
        sample_weight : ndarray of shape (n_samples,), optional
            Weights of the rows.

        Returns
        -------
        EnsembleTeacher
            The same, fitted.
        """
        kind = ExtraTreesClassifier if self.n_classes else ExtraTreesRegressor
        self.forest_ = kind(_TREES, random_state=self.random_state).fit(X, y, sample_weight)
        task = "classification" if self.n_classes else "regression"
        dataset = Dataset.from_arrays(X, y, sample_weight, task=task)
        self.codes_ = dataset.classes  # a fold may lack some classes
        self.trees_ = []
        for stream in make_streams(self.random_state, 0, _BAGS):
            rows = bootstrap(dataset, np.random.default_rng(int(stream[0])), X.shape[0])
            criterion = "entropy" if self.n_classes else "squared_error"
            sizes = {"max_depth": _DEPTH, "min_samples_split": _MIN_ROWS}
            tree = grow(rows, Axis(), criterion, stream=stream, **sizes)
            prune(tree, rows, 0.0)
            tree.stream = stream
            linear = Linear("logistic", "l2", 1.0, fallback=True)
            for _ in tao_sweeps(tree, rows, linear, max_sweeps=_SWEEPS, tol=_TOLERANCE):
                pass
            prune(tree, rows, _NEGLIGIBLE)
            self.trees_.append(dataset.to_raw(tree.to_tree()))
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Return the class codes, or targets, that the votes of both halves give.

        Parameters
        ----------
        X : ndarray of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples,)
            Predictions.
        """
        bagged = np.mean([tree.values[tree.apply(X)] for tree in self.trees_], axis=0)
        if self.n_classes:
            votes = np.zeros((X.shape[0], self.n_classes))
            votes[:, self.forest_.classes_] += self.forest_.predict_proba(X)
            votes[:, self.codes_] += bagged
            return votes.argmax(axis=1)
        return 0.5 * (self.forest_.predict(X) + bagged[:, 0])


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
