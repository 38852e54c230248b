"""The methods of other packages in the studies; a package is imported when its method is fitted.

References
----------
Chen T., Guestrin C. (2016). XGBoost: a scalable tree boosting system. Proceedings of KDD, 785-794.

Lou Y., Caruana R., Gehrke J., Hooker G. (2013). Accurate intelligible models with pairwise
interactions. Proceedings of KDD, 623-631.

Montañana R., Gámez J. A., Puerta J. M. (2021). STree: a single multi-class oblique decision tree
based on support vector machines. Lecture Notes in Computer Science 12882, 54-64.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from importlib import import_module
from typing import Any

import numpy as np
from scipy.stats import loguniform, randint, uniform
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, clone
from sklearn.model_selection import GridSearchCV, ParameterSampler
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler

from evotree.experiments.protocols import stratified_folds

VERSIONS: Mapping[str, str] = {
    "obliquetree": "1.1.1",
    "stree": "1.4.2",
    "cubist": "1.2.2",
    "interpret-core": "0.7.8",
    "xgboost": "3.2.0",
    "pystreed": "1.4.0",
}
"""The versions of the packages, those of the extra ``peers`` of the installation."""

N_DRAWS = 30
"""Random draws of settings among which a tuned method chooses."""
BOOSTING_FOLDS = 3
BOOSTING_SPACE: Mapping[str, Any] = {
    "n_estimators": randint(50, 301),
    "learning_rate": loguniform(0.01, 0.3),
    "max_depth": randint(2, 11),
    "min_child_weight": loguniform(1.0, 20.0),
    "subsample": uniform(0.5, 0.5),
    "colsample_bytree": uniform(0.5, 0.5),
    "reg_lambda": loguniform(0.01, 10.0),
}
"""The distributions that settings of XGBoost are drawn from."""


def import_peer(package: str, module: str | None = None) -> Any:
    """Return a module of another package.

    Parameters
    ----------
    package : str
        One of `VERSIONS`.
    module : str, optional
        Its module, where that has another name.

    Returns
    -------
    module
        The module.

    Raises
    ------
    ModuleNotFoundError
        If the package is not installed; the message says how to install it.
    """
    try:
        return import_module(module or package)
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            f"{package} is not installed; pip install {package}=={VERSIONS[package]} installs it."
        ) from error


class Finder(BaseEstimator):
    """An estimator that finds another one and predicts with it.

    Parameters
    ----------
    random_state : int, default=0
        Seed.

    Attributes
    ----------
    best_estimator_ : estimator
        What `find` found.
    """

    def __init__(self, random_state: int = 0) -> None:
        self.random_state = random_state

    @abstractmethod
    def find(self, X: np.ndarray, y: np.ndarray) -> Any:
        """Return a fitted estimator.

        Parameters
        ----------
        X : ndarray of shape (n_samples, n_features)
            Training rows.
        y : ndarray of shape (n_samples,)
            Their targets; of classes the codes, 0 to n_classes - 1, all of them present.

        Returns
        -------
        estimator
            Fitted on all rows.
        """


class Wrapper(ClassifierMixin, Finder):
    """A classifier that finds another one, which knows the classes by their codes.

    Parameters
    ----------
    random_state : int, default=0
        Seed.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Class labels.
    """

    def fit(self, X: np.ndarray, y: np.ndarray) -> Wrapper:
        """Find the classifier."""
        self.classes_, codes = np.unique(y, return_inverse=True)
        self.best_estimator_ = self.find(X, codes)
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Predict the classes of rows."""
        classes: np.ndarray = self.classes_[np.asarray(self.best_estimator_.predict(X), dtype=int)]
        return classes

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        """Predict the probabilities of the classes, in the order of `classes_`."""
        predicted: np.ndarray = self.best_estimator_.predict_proba(X)
        return predicted


class RegressionWrapper(RegressorMixin, Finder):
    """A regressor that finds another one.

    Parameters
    ----------
    random_state : int, default=0
        Seed.
    """

    def fit(self, X: np.ndarray, y: np.ndarray) -> RegressionWrapper:
        """Find the regressor."""
        self.best_estimator_ = self.find(X, np.asarray(y, dtype=np.float64))
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Predict the targets of rows."""
        predicted: np.ndarray = self.best_estimator_.predict(X)
        return predicted


class ScaledSTree(Wrapper):
    """The tree of the package STree, on features scaled to [-1, 1].

    Parameters
    ----------
    random_state : int, default=0
        Seed.
    """

    def find(self, X: np.ndarray, codes: np.ndarray) -> Any:
        """Scale and fit."""
        stree = import_peer("stree").Stree(random_state=self.random_state)
        return make_pipeline(MinMaxScaler((-1.0, 1.0)), stree).fit(X, codes)


class BoostingMachine(Wrapper):
    """The explainable boosting machine of the package interpret, on one thread.

    It is as it comes for two classes. For more it has no pairs of features: the package advises
    against them, since it cannot show them, and one fit of a hundred rows may take minutes.

    Parameters
    ----------
    random_state : int, default=0
        Seed.
    """

    def find(self, X: np.ndarray, codes: np.ndarray) -> Any:
        """Fit."""
        kind = import_peer("interpret-core", "interpret.glassbox").ExplainableBoostingClassifier
        pairs = {"interactions": 0} if codes.max() > 1 else {}
        return kind(**pairs, random_state=self.random_state, n_jobs=1).fit(X, codes)


class XGBoost(Wrapper):
    """The classifier of the package XGBoost on one thread.

    Parameters
    ----------
    settings : mapping of str to object, optional
        Parameters that differ from the package's defaults.
    random_state : int, default=0
        Seed.
    """

    def __init__(self, settings: Mapping[str, Any] | None = None, random_state: int = 0) -> None:
        super().__init__(random_state)
        self.settings = settings

    def find(self, X: np.ndarray, codes: np.ndarray) -> Any:
        """Fit."""
        kind = import_peer("xgboost").XGBClassifier
        settings = self.settings or {}
        return kind(**settings, random_state=int(self.random_state), n_jobs=1).fit(X, codes)


class XGBoostRegression(RegressionWrapper):
    """The regressor of the package XGBoost on one thread.

    Parameters
    ----------
    settings : mapping of str to object, optional
        Parameters that differ from the package's defaults.
    random_state : int, default=0
        Seed.
    """

    def __init__(self, settings: Mapping[str, Any] | None = None, random_state: int = 0) -> None:
        super().__init__(random_state)
        self.settings = settings

    def find(self, X: np.ndarray, y: np.ndarray) -> Any:
        """Fit."""
        kind = import_peer("xgboost").XGBRegressor
        settings = self.settings or {}
        return kind(**settings, random_state=int(self.random_state), n_jobs=1).fit(X, y)


class TunedXGBoost(Wrapper):
    """XGBoost with the best of `N_DRAWS` draws of settings, by folds of the training rows.

    Parameters
    ----------
    random_state : int, default=0
        Seed of the draws, of the folds and of the fits.
    """

    def find(self, X: np.ndarray, codes: np.ndarray) -> Any:
        """Choose settings by accuracy and fit."""
        folds = stratified_folds(codes, BOOSTING_FOLDS, self.random_state)
        # The wrapper gives codes to the classes of a fold, of which some may be missing.
        model = XGBoost(random_state=self.random_state)
        return draw_settings(model, X, codes, folds, np.arange(len(X)))


def draw_settings(model: Any, X: np.ndarray, y: np.ndarray, folds: Any, rows: np.ndarray) -> Any:
    """Choose the best of `N_DRAWS` draws of the ``settings`` of a model, and fit it.

    Parameters
    ----------
    model : estimator
        Not fitted; has ``settings`` and a ``random_state``, the seed of the draws.
    X : ndarray of shape (n_samples, n_features)
        Training rows.
    y : ndarray of shape (n_samples,)
        Their targets.
    folds : cross-validation of scikit-learn
        Of the rows that judge the draws.
    rows : ndarray of int
        Positions of these rows.

    Returns
    -------
    estimator
        Fitted on all rows.
    """
    draws = ParameterSampler(BOOSTING_SPACE, N_DRAWS, random_state=model.random_state)
    search = GridSearchCV(model, {"settings": list(draws)}, cv=folds, refit=False)
    chosen = search.fit(X[rows], y[rows]).best_params_
    return clone(model).set_params(**chosen).fit(X, y)
