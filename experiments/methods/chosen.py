"""Methods that choose settings on their training rows, and those of other packages.

Each is a function ``find(X, y, random_state)`` that returns a fitted estimator; `ChosenClassifier`
and `ChosenRegressor` make methods of them. A package is imported when its method is fitted.
Pruning: Breiman et al. (1984), Classification and regression trees. XGBoost: Chen and Guestrin
(2016), KDD. Explainable boosting machines: Lou et al. (2013), KDD.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np
from scipy.stats import loguniform, randint, uniform
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, clone
from sklearn.model_selection import GridSearchCV, KFold, ParameterSampler
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from evotree.experiments.protocols import stratified_folds

VERSIONS: Mapping[str, str] = {
    "stree": "1.4.2",
    "cubist": "1.2.2",
    "interpret-core": "0.7.8",
    "xgboost": "3.2.0",
    "scikit-survival": "0.28.0",
    "pystreed": "1.4.0",
}
"""The versions of the packages, those of the extras ``peers`` and ``survival`` of the
installation."""

TUNING_FOLDS = 5
# Penalties for a leaf, of those on the path of a tree, among which folds choose.
MAX_ALPHAS = 30
TUNING_ROWS = 4_000  # so many training rows of targets at most judge draws of settings
N_DRAWS = 30  # random draws of settings among which a tuned method chooses
N_TREES, N_TRIAL_TREES = 500, 100
"""Trees of a forest, and of those that a draw of settings is judged by."""
FOREST_SPACE: Mapping[str, Any] = {
    "max_features": uniform(0.05, 0.95),
    "min_samples_leaf": randint(1, 11),
    "max_depth": [None, *range(4, 25, 2)],
}
"""The distributions that settings of a forest are drawn from; features are a share of all."""
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

Find = Callable[..., Any]


def import_peer(package: str, module: str | None = None) -> Any:
    """Return a module of one of the packages of `VERSIONS`, by its name or another one."""
    try:
        return import_module(module or package)
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            f"{package} is not installed; pip install {package}=={VERSIONS[package]} installs it."
        ) from error


class Chosen(BaseEstimator):
    """An estimator that another one is chosen for, by ``find(X, y, random_state)``."""

    def __init__(self, find: Find, random_state: int = 0) -> None:
        self.find = find
        self.random_state = random_state

    def search(self, X: np.ndarray, y: np.ndarray) -> None:
        """Find the estimator; it may have sizes that are none of a tree."""
        self.best_estimator_ = self.find(X, y, self.random_state)
        if hasattr(self.best_estimator_, "sizes_"):
            self.sizes_ = self.best_estimator_.sizes_


class ChosenClassifier(ClassifierMixin, Chosen):
    """A classifier that finds another one, which knows the classes by their codes."""

    def fit(self, X: np.ndarray, y: np.ndarray) -> ChosenClassifier:
        """Find the classifier."""
        self.classes_, codes = np.unique(y, return_inverse=True)
        self.search(X, codes)
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Predict the classes of rows."""
        return self.classes_[np.asarray(self.best_estimator_.predict(X), dtype=int)]

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        """Predict the probabilities of the classes, in the order of `classes_`."""
        return self.best_estimator_.predict_proba(X)


class ChosenRegressor(RegressorMixin, Chosen):
    """A regressor that finds another one."""

    def fit(self, X: np.ndarray, y: np.ndarray) -> ChosenRegressor:
        """Find the regressor."""
        self.search(X, np.asarray(y, dtype=np.float64))
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Predict the targets of rows."""
        return self.best_estimator_.predict(X)


def folds_of(y: np.ndarray, n_folds: int, random_state: int) -> list[Any]:
    """Return shuffled folds, stratified by codes of classes, plain ones of targets."""
    if y.dtype.kind == "f":
        return list(KFold(n_folds, shuffle=True, random_state=random_state).split(y))
    return stratified_folds(y, n_folds, random_state)


def pruned_cart(X: np.ndarray, y: np.ndarray, random_state: int) -> Any:
    """Return CART, pruned by the cost-complexity that folds find best, of equal ones most."""
    kind = DecisionTreeRegressor if y.dtype.kind == "f" else DecisionTreeClassifier
    tree = kind(random_state=random_state)
    path = np.unique(tree.cost_complexity_pruning_path(X, y).ccp_alphas.clip(0.0))
    shares = np.linspace(0.0, 1.0, min(len(path), MAX_ALPHAS))
    # The search keeps the first of equal penalties: the smallest tree.
    alphas = np.quantile(path, shares, method="nearest")[::-1]
    folds = folds_of(y, TUNING_FOLDS, random_state)
    search = GridSearchCV(tree, {"ccp_alpha": alphas}, cv=folds)
    return search.fit(X, y).best_estimator_


def judging_rows(y: np.ndarray, random_state: int) -> np.ndarray:
    """Return the positions of the rows that judge draws of settings: some of many targets."""
    if y.dtype.kind != "f" or len(y) <= TUNING_ROWS:
        return np.arange(len(y))
    rng = np.random.default_rng(random_state)
    return np.sort(rng.choice(len(y), TUNING_ROWS, replace=False))


def tuned_forest(X: np.ndarray, y: np.ndarray, random_state: int, kind: Any) -> Any:
    """Return the best of draws of settings, by the rows out of the bags of small forests."""
    rows = judging_rows(y, random_state)

    def score(settings: Mapping[str, Any]) -> float:
        trial = kind(
            N_TRIAL_TREES, oob_score=True, random_state=random_state, **settings
        )
        return float(trial.fit(X[rows], y[rows]).oob_score_)

    draws = ParameterSampler(FOREST_SPACE, N_DRAWS, random_state=random_state)
    return kind(N_TREES, random_state=random_state, **max(draws, key=score)).fit(X, y)


def xgboost(X: np.ndarray, y: np.ndarray, random_state: int, **settings: Any) -> Any:
    """Return XGBoost of classes or targets on one thread."""
    package = import_peer("xgboost")
    kind = package.XGBRegressor if y.dtype.kind == "f" else package.XGBClassifier
    return kind(**settings, random_state=int(random_state), n_jobs=1).fit(X, y)


def tuned_xgboost(X: np.ndarray, y: np.ndarray, random_state: int) -> Any:
    """Return XGBoost with the best of draws of settings, by folds of the training rows."""
    kind = ChosenRegressor if y.dtype.kind == "f" else ChosenClassifier
    # The method gives codes to the classes of a fold, of which some may be missing.
    model = kind(xgboost, random_state)
    rows = judging_rows(y, random_state)
    folds = folds_of(y[rows], BOOSTING_FOLDS, random_state)
    draws = ParameterSampler(BOOSTING_SPACE, N_DRAWS, random_state=random_state)
    tried = [partial(xgboost, **draw) for draw in draws]
    chosen = GridSearchCV(model, {"find": tried}, cv=folds, refit=False).fit(
        X[rows], y[rows]
    )
    return clone(model).set_params(**chosen.best_params_).fit(X, y)


def boosting_machine(X: np.ndarray, y: np.ndarray, random_state: int) -> Any:
    """Return the explainable boosting machine of the package interpret, on one thread.

    For more than two classes it has no pairs of features: the package advises against them, since
    it cannot show them, and one fit of a hundred rows may take minutes.
    """
    package = import_peer("interpret-core", "interpret.glassbox")
    pairs = {"interactions": 0} if y.max() > 1 else {}
    model = package.ExplainableBoostingClassifier(
        **pairs, random_state=random_state, n_jobs=1
    )
    return model.fit(X, y)
