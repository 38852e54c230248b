"""The methods of the study of regression.

References
----------
Breiman L., Friedman J. H., Olshen R. A., Stone C. J. (1984). Classification and Regression Trees.
Wadsworth.

Quinlan J. R. (1992). Learning with continuous classes. Proceedings of the Australian Joint
Conference on Artificial Intelligence, 343-348.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor
from sklearn.linear_model import RidgeCV
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeRegressor

from evotree.estimators import EvoTreeRegressor, ObliqueTreeRegressor, TAORegressor
from evotree.experiments.studies import linear_tree_fit
from evotree.experiments.studies.peers import (
    BOOSTING_FOLDS,
    RegressionWrapper,
    XGBoostRegression,
    draw_settings,
    import_peer,
)
from evotree.experiments.studies.systems import (
    CART,
    EVOTREE,
    FOREST,
    N_TREES,
    TUNING_FOLDS,
    prune_by_folds,
    tune_forest,
)

CONSTANT = "EvoTree constant"
"""EvoTree with either kind of leaves; `EVOTREE` chooses the kind itself."""
TAO, TAO_LINEAR, CEDT = "TAO", "TAO linear", "CEDT"
RIDGE, CUBIST, LINEAR_TREE = "Ridge", "Cubist", "linear-tree"
CART_DEPTH = "CART by depth"
TREES = (EVOTREE, CONSTANT, TAO, TAO_LINEAR, CEDT, CART, LINEAR_TREE)
"""The methods whose model is one tree."""
BOOSTED = ("HistGB", "XGBoost", "EBM")
SYSTEMS = (*TREES, RIDGE, CUBIST, FOREST, *BOOSTED, "Tuned XGBoost", "Tuned forest")

ALPHAS = tuple(float(alpha) for alpha in np.logspace(-3.0, 3.0, 13))
"""Penalties of the ridge regression."""
MAX_DEPTHS = tuple(range(1, 13))
TUNING_ROWS = 4_000
"""So many training rows at most judge the draws of settings."""
LINEAR_TREE_PYTHON = "EVOTREE_LINEAR_TREE_PYTHON"
"""The environment variable that names an interpreter with the package linear-tree."""


def tuning_rows(n_samples: int, random_state: int) -> np.ndarray:
    """Return the positions of the rows that judge draws of settings, in their order."""
    if n_samples <= TUNING_ROWS:
        return np.arange(n_samples)
    rng = np.random.default_rng(random_state)
    return np.sort(rng.choice(n_samples, TUNING_ROWS, replace=False))


class PrunedRegressionTree(RegressionWrapper):
    """CART, pruned by the cost-complexity that folds find best.

    Parameters
    ----------
    random_state : int, default=0
        Seed of the tree and of the folds.
    """

    def find(self, X: np.ndarray, y: np.ndarray) -> Any:
        """Choose the penalty and fit on all rows."""
        tree = DecisionTreeRegressor(random_state=self.random_state)
        folds = KFold(TUNING_FOLDS, shuffle=True, random_state=self.random_state)
        return prune_by_folds(tree, X, y, folds)


class LastThird:
    """A cross-validation of one fold: the last third of the rows judges what the others made."""

    def split(
        self, X: Any, y: Any = None, groups: Any = None
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield the positions of the two parts."""
        first, last = np.split(np.arange(len(X)), [len(X) - len(X) // 3])
        yield first, last

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """Return 1."""
        return 1


class TreeOfBestDepth(RegressionWrapper):
    """CART of the depth that the last third of the rows finds best, fitted again on all rows.

    Parameters
    ----------
    random_state : int, default=0
        Seed of the tree.
    """

    def find(self, X: np.ndarray, y: np.ndarray) -> Any:
        """Choose the depth and fit."""
        tree = DecisionTreeRegressor(random_state=self.random_state)
        search = GridSearchCV(tree, {"max_depth": MAX_DEPTHS}, cv=LastThird())
        return search.fit(X, y).best_estimator_


class TunedRidge(RegressionWrapper):
    """Ridge regression on standardized features, with the best of `ALPHAS` by leaving one row out.

    Parameters
    ----------
    random_state : int, default=0
        Of no effect.

    Attributes
    ----------
    sizes_ : dict of str to int
        Those of a tree of one leaf.
    """

    def find(self, X: np.ndarray, y: np.ndarray) -> Any:
        """Choose the penalty and fit."""
        model = make_pipeline(StandardScaler(), RidgeCV(ALPHAS)).fit(X, y)
        n_terms = int(np.count_nonzero(model[-1].coef_))
        self.sizes_ = {"leaves": 1, "nodes": 1, "depth": 0, "terms": n_terms}
        return model


class CubistRules(RegressionWrapper):
    """The rules with linear models of the package cubist, as they come: one committee.

    Parameters
    ----------
    random_state : int, default=0
        Seed.

    Attributes
    ----------
    sizes_ : dict of str to int
        ``leaves``: the rules; ``terms``: their conditions, and the weights of their models.
    """

    def find(self, X: np.ndarray, y: np.ndarray) -> Any:
        """Fit."""
        model = import_peer("cubist").Cubist(random_state=self.random_state).fit(X, y)
        weights = model.coeffs_.filter(regex="^var").fillna(0.0)
        n_terms = len(model.splits_) + int(np.count_nonzero(weights))
        self.sizes_ = {"leaves": len(weights), "terms": n_terms}
        return model


class LinearTree(RegressorMixin, BaseEstimator):
    """The tree of the package linear-tree, with ridge regressions in its leaves.

    It is fitted to standardized features by the interpreter that the environment variable
    `LINEAR_TREE_PYTHON` names, since the package fails with the newer releases of scikit-learn.

    Attributes
    ----------
    leaves_ : list of dict
        As `evotree.experiments.studies.linear_tree_fit` writes them.
    sizes_ : dict of str to int
        The splits have one term each, the leaves those of their models.
    """

    def fit(self, X: np.ndarray, y: np.ndarray) -> LinearTree:
        """Have the tree fitted, and read it.

        Raises
        ------
        ModuleNotFoundError
            If the environment names no interpreter.
        """
        interpreter = os.environ.get(LINEAR_TREE_PYTHON)
        if not interpreter:
            raise ModuleNotFoundError(
                f"{LINEAR_TREE_PYTHON} is not set: it names an interpreter that has the package "
                "linear-tree, which fails with scikit-learn 1.9; 1.4 will do."
            )
        self.scaler_ = StandardScaler().fit(X)
        with tempfile.TemporaryDirectory() as folder:
            data, out = Path(folder, "data.npz"), Path(folder, "tree.json")
            np.savez(data, X=self._rows(X), y=y)
            command = [interpreter, "-I", linear_tree_fit.__file__, str(data), str(out)]
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
            self.leaves_ = json.loads(out.read_text(encoding="ascii"))
        n_leaves = len(self.leaves_)
        n_weights = sum(np.count_nonzero(leaf["coef"]) for leaf in self.leaves_)
        self.sizes_ = {
            "leaves": n_leaves,
            "nodes": 2 * n_leaves - 1,
            "depth": max(len(leaf["conditions"]) for leaf in self.leaves_),
            "terms": n_leaves - 1 + int(n_weights),
        }
        return self

    def _rows(self, X: np.ndarray) -> np.ndarray:
        """Return rows as the package sees them."""
        rows: np.ndarray = self.scaler_.transform(X).astype(np.float32)
        return rows

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Predict the targets of rows."""
        rows = self._rows(X)
        predicted = np.zeros(len(rows))
        for leaf in self.leaves_:
            reached = np.ones(len(rows), dtype=bool)
            for j, is_above, at in leaf["conditions"]:
                reached &= (rows[:, j] > at) == is_above
            predicted[reached] = rows[reached] @ np.array(leaf["coef"]) + leaf["intercept"]
        return predicted


class RegressionMachine(RegressionWrapper):
    """The explainable boosting machine of the package interpret, as it comes, on one thread.

    Parameters
    ----------
    random_state : int, default=0
        Seed.
    """

    def find(self, X: np.ndarray, y: np.ndarray) -> Any:
        """Fit."""
        kind = import_peer("interpret-core", "interpret.glassbox").ExplainableBoostingRegressor
        return kind(random_state=self.random_state, n_jobs=1).fit(X, y)


class TunedXGBoostRegression(RegressionWrapper):
    """XGBoost with the best of the draws of settings, by folds of at most `TUNING_ROWS` rows.

    Parameters
    ----------
    random_state : int, default=0
        Seed of the draws, of the rows and folds, and of the fits.
    """

    def find(self, X: np.ndarray, y: np.ndarray) -> Any:
        """Choose settings by R² and fit."""
        model = XGBoostRegression(random_state=self.random_state)
        folds = KFold(BOOSTING_FOLDS, shuffle=True, random_state=self.random_state)
        return draw_settings(model, X, y, folds, tuning_rows(len(X), self.random_state))


class TunedRegressionForest(RegressionWrapper):
    """A random forest with the best of the draws of settings, by rows out of the bags.

    Parameters
    ----------
    random_state : int, default=0
        Seed of the draws, of the rows and of the forests.
    """

    def find(self, X: np.ndarray, y: np.ndarray) -> Any:
        """Choose settings by the R² of small forests and fit a large one."""
        forest = RandomForestRegressor(random_state=self.random_state)
        return tune_forest(forest, X, y, tuning_rows(len(X), self.random_state))


def standardized(model: RegressorMixin) -> TransformedTargetRegressor:
    """Return a model on standardized targets, for packages with tolerances of their own unit.

    The targets of some data sets are below a thousandth: there such a package finds nothing to do.
    """
    return TransformedTargetRegressor(model, transformer=StandardScaler())


def make_systems() -> dict[str, RegressorMixin]:
    """Return the methods of the study by name; the last one is of RADDT's protocol alone."""
    systems = {
        EVOTREE: EvoTreeRegressor(),
        CONSTANT: EvoTreeRegressor(leaves="constant"),
        TAO: TAORegressor(),
        TAO_LINEAR: TAORegressor(leaves="linear"),
        CEDT: ObliqueTreeRegressor.from_preset(CEDT, criterion="squared_error"),
        CART: PrunedRegressionTree(),
        LINEAR_TREE: standardized(LinearTree()),
        RIDGE: TunedRidge(),
        CUBIST: standardized(CubistRules()),
        FOREST: RandomForestRegressor(N_TREES),
        "HistGB": standardized(HistGradientBoostingRegressor()),
        "XGBoost": XGBoostRegression(),
        "EBM": standardized(RegressionMachine()),
        "Tuned XGBoost": TunedXGBoostRegression(),
        "Tuned forest": TunedRegressionForest(),
    }
    return {name: systems[name] for name in SYSTEMS} | {CART_DEPTH: TreeOfBestDepth()}
