"""The methods of the benchmark.

References
----------
Breiman L., Friedman J. H., Olshen R. A., Stone C. J. (1984). Classification and Regression Trees.
Wadsworth.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy.stats import randint, uniform
from sklearn.base import ClassifierMixin, clone
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, ParameterSampler
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from evotree.estimators import EvoTreeClassifier, ObliqueTreeClassifier, TAOClassifier
from evotree.experiments.protocols import stratified_folds
from evotree.experiments.studies.peers import (
    N_DRAWS,
    BoostingMachine,
    ScaledSTree,
    TunedXGBoost,
    Wrapper,
    XGBoost,
)
from evotree.experiments.studies.readable_trees import PairTrees

EVOTREE, CART, LOGISTIC, FOREST = "EvoTree", "CART", "Logistic", "Forest"
GREEDY = ("CEDT", "OC1", "WODT")
"""Presets of `ObliqueTreeClassifier`."""
TREES = (EVOTREE, "TAO", "GEA-ODT", "Linear", *GREEDY, CART, "obliquetree", "STree")
"""The methods whose model is one tree."""
SYSTEMS = (*TREES, LOGISTIC, "EBM", FOREST, "Tuned forest", "HistGB", "XGBoost", "Tuned XGBoost")

N_TREES = 500
N_TRIAL_TREES = 100
"""Trees of the forests that a draw of settings is judged by."""
TUNING_FOLDS = 5
MAX_ALPHAS = 30
COSTS = tuple(float(C) for C in np.logspace(-3.0, 3.0, 7))
"""Values of C of the logistic regression."""
FOREST_SPACE: Mapping[str, Any] = {
    "max_features": uniform(0.05, 0.95),
    "min_samples_leaf": randint(1, 11),
    "max_depth": [None, *range(4, 25, 2)],
}
"""The distributions that settings of a forest are drawn from; features are a share of all."""


class PrunedTree(Wrapper):
    """CART, pruned by the cost-complexity that folds find best; of equal ones the largest.

    One of at most `MAX_ALPHAS` penalties of its path is chosen.

    Parameters
    ----------
    random_state : int, default=0
        Seed of the tree and of the folds.
    """

    def find(self, X: np.ndarray, codes: np.ndarray) -> Any:
        """Choose the penalty and fit on all rows."""
        tree = DecisionTreeClassifier(random_state=self.random_state)
        folds = stratified_folds(codes, TUNING_FOLDS, self.random_state)
        return prune_by_folds(tree, X, codes, folds)


def prune_by_folds(tree: Any, X: np.ndarray, y: np.ndarray, folds: Any) -> Any:
    """Fit a tree of scikit-learn with the cost-complexity that folds find best.

    Parameters
    ----------
    tree : DecisionTreeClassifier or DecisionTreeRegressor
        Not fitted.
    X : ndarray of shape (n_samples, n_features)
        Training rows.
    y : ndarray of shape (n_samples,)
        Their targets.
    folds : cross-validation of scikit-learn
        What judges the penalties, at most `MAX_ALPHAS` of the tree's path.

    Returns
    -------
    estimator
        Fitted on all rows; of equal penalties it has the largest.
    """
    path = np.unique(np.maximum(tree.cost_complexity_pruning_path(X, y).ccp_alphas, 0.0))
    shares = np.linspace(0.0, 1.0, min(len(path), MAX_ALPHAS))
    alphas = np.quantile(path, shares, method="nearest")[::-1]
    # The search keeps the first of equal penalties: the smallest tree.
    return GridSearchCV(tree, {"ccp_alpha": alphas}, cv=folds).fit(X, y).best_estimator_


class TunedLogistic(Wrapper):
    """Logistic regression on standardized features, with the best of `COSTS` by folds.

    Parameters
    ----------
    random_state : int, default=0
        Seed of the folds.
    """

    def find(self, X: np.ndarray, codes: np.ndarray) -> Any:
        """Choose C by accuracy, of equal values the least, and fit on all rows."""
        model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
        folds = stratified_folds(codes, TUNING_FOLDS, self.random_state)
        grid = {"logisticregression__C": COSTS}
        return GridSearchCV(model, grid, cv=folds).fit(X, codes).best_estimator_


class TunedForest(Wrapper):
    """A random forest with the best of `N_DRAWS` draws of settings, by rows out of the bags.

    Parameters
    ----------
    random_state : int, default=0
        Seed of the draws and of the forests.
    """

    def find(self, X: np.ndarray, codes: np.ndarray) -> Any:
        """Choose settings by the accuracy of small forests and fit a large one."""
        forest = RandomForestClassifier(random_state=self.random_state)
        return tune_forest(forest, X, codes, np.arange(len(X)))


def tune_forest(forest: Any, X: np.ndarray, y: np.ndarray, rows: np.ndarray) -> Any:
    """Choose the best of `N_DRAWS` draws of settings by the rows out of the bags of small forests.

    Parameters
    ----------
    forest : RandomForestClassifier or RandomForestRegressor
        Not fitted; its ``random_state`` is the seed of the draws.
    X : ndarray of shape (n_samples, n_features)
        Training rows.
    y : ndarray of shape (n_samples,)
        Their targets.
    rows : ndarray of int
        Positions of those that the small forests are of.

    Returns
    -------
    estimator
        A forest of `N_TREES` trees, fitted on all rows.
    """

    def score(settings: Mapping[str, Any]) -> float:
        trial = clone(forest).set_params(n_estimators=N_TRIAL_TREES, oob_score=True, **settings)
        return float(trial.fit(X[rows], y[rows]).oob_score_)

    draws = ParameterSampler(FOREST_SPACE, N_DRAWS, random_state=forest.random_state)
    return clone(forest).set_params(n_estimators=N_TREES, **max(draws, key=score)).fit(X, y)


def make_systems() -> dict[str, ClassifierMixin]:
    """Return the methods of the benchmark by name."""
    systems = {
        EVOTREE: EvoTreeClassifier(probability="leaf"),
        "TAO": TAOClassifier(),
        "GEA-ODT": EvoTreeClassifier.from_preset("gea_odt", probability="leaf"),
        "Linear": ObliqueTreeClassifier("linear"),
        **{name: ObliqueTreeClassifier.from_preset(name) for name in GREEDY},
        CART: PrunedTree(),
        "obliquetree": PairTrees(),
        "STree": ScaledSTree(),
        LOGISTIC: TunedLogistic(),
        "EBM": BoostingMachine(),
        FOREST: RandomForestClassifier(N_TREES),
        "Tuned forest": TunedForest(),
        "HistGB": HistGradientBoostingClassifier(),
        "XGBoost": XGBoost(),
        "Tuned XGBoost": TunedXGBoost(),
    }
    return {name: systems[name] for name in SYSTEMS}
