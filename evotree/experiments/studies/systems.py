"""The systems of the benchmark: their methods.

References
----------
Breiman L., Friedman J. H., Olshen R. A., Stone C. J. (1984). Classification and Regression Trees.
Wadsworth.

Montañana R., Gámez J. A., Puerta J. M. (2021). STree: a single multi-class oblique decision tree
based on support vector machines. Lecture Notes in Computer Science 12882, 54-64.
"""

from __future__ import annotations

from importlib import import_module

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler
from sklearn.tree import DecisionTreeClassifier

from evotree.estimators import (
    GREEDY_PRESETS,
    EvoTreeClassifier,
    ObliqueTreeClassifier,
    TAOClassifier,
)
from evotree.experiments.protocols import stratified_folds

EVOTREE, FOREST = "EvoTree", "Forest"
SYSTEMS = (EVOTREE, "TAO", "GEA-ODT", *GREEDY_PRESETS, "Linear", "CART", "STree", FOREST)
N_TREES = 500
PRUNING_FOLDS = 5
MAX_ALPHAS = 30


class PrunedTree(ClassifierMixin, BaseEstimator):
    """CART, pruned by the cost-complexity that folds find best; of equal ones the largest.

    Parameters
    ----------
    random_state : int, default=0
        Seed of the tree and of the folds.

    Attributes
    ----------
    best_estimator_ : DecisionTreeClassifier
        Fitted on all rows, with one of at most `MAX_ALPHAS` penalties of its path.
    """

    def __init__(self, random_state: int = 0) -> None:
        self.random_state = random_state

    def fit(self, X: np.ndarray, y: np.ndarray) -> PrunedTree:
        """Choose the penalty and fit on all rows."""
        tree = DecisionTreeClassifier(random_state=self.random_state)
        path = np.unique(np.maximum(tree.cost_complexity_pruning_path(X, y).ccp_alphas, 0.0))
        shares = np.linspace(0.0, 1.0, min(len(path), MAX_ALPHAS))
        alphas = np.quantile(path, shares, method="nearest")[::-1]
        folds = stratified_folds(y, PRUNING_FOLDS, self.random_state)
        # The search keeps the first of equal penalties: the smallest tree.
        search = GridSearchCV(tree, {"ccp_alpha": alphas}, cv=folds).fit(X, y)
        self.best_estimator_, self.classes_ = search.best_estimator_, search.classes_
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Predict the classes of rows."""
        return self.best_estimator_.predict(X)


class ScaledSTree(ClassifierMixin, BaseEstimator):
    """The tree of the package STree, on features scaled to [-1, 1].

    Parameters
    ----------
    random_state : int, default=0
        Seed.
    """

    def __init__(self, random_state: int = 0) -> None:
        self.random_state = random_state

    def fit(self, X: np.ndarray, y: np.ndarray) -> ScaledSTree:
        """Scale and fit; raise a ModuleNotFoundError where the package is not installed."""
        try:
            stree = import_module("stree").Stree(random_state=self.random_state)
        except ModuleNotFoundError as error:
            raise ModuleNotFoundError(
                "STree is not installed; pip install stree==1.4.2 installs it."
            ) from error
        self.best_estimator_ = make_pipeline(MinMaxScaler((-1.0, 1.0)), stree).fit(X, y)
        self.classes_ = np.unique(y)
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Predict the classes of rows."""
        return self.best_estimator_.predict(X)


def make_systems() -> dict[str, ClassifierMixin]:
    """Return the methods of the benchmark by name."""
    systems = {
        EVOTREE: EvoTreeClassifier(),
        "TAO": TAOClassifier(),
        "GEA-ODT": EvoTreeClassifier.from_preset("gea_odt"),
        **{name: ObliqueTreeClassifier.from_preset(name) for name in GREEDY_PRESETS},
        "Linear": ObliqueTreeClassifier("linear"),
        "CART": PrunedTree(),
        "STree": ScaledSTree(),
        FOREST: RandomForestClassifier(N_TREES),
    }
    return {name: systems[name] for name in SYSTEMS}
