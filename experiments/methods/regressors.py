"""The methods of the study of regression."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor
from sklearn.linear_model import RidgeCV
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeRegressor

from evotree.estimators import EvoTreeRegressor, ObliqueTreeRegressor, TAORegressor
from experiments.methods import chosen
from experiments.methods.chosen import ChosenRegressor, import_peer

EVOTREE, CONSTANT, CART, FOREST = "EvoTree", "EvoTree constant", "CART", "Forest"
TAO, TAO_LINEAR, CEDT = "TAO", "TAO linear", "CEDT"
RIDGE, CUBIST, LINEAR_TREE = "Ridge", "Cubist", "linear-tree"
CART_DEPTH = "CART by depth"
TREES = (EVOTREE, CONSTANT, TAO, TAO_LINEAR, CEDT, CART, LINEAR_TREE)
"""The methods whose model is one tree."""
SYSTEMS = (
    *(
        *TREES,
        RIDGE,
        CUBIST,
        FOREST,
        "HistGB",
        "XGBoost",
        "Tuned XGBoost",
        "Tuned forest",
    ),
)
ALPHAS = tuple(float(alpha) for alpha in np.logspace(-3.0, 3.0, 13))
"""Penalties of the ridge regression."""
MAX_DEPTHS = tuple(range(1, 13))
LINEAR_TREE_PYTHON = "EVOTREE_LINEAR_TREE_PYTHON"
"""The environment variable that names an interpreter with the package linear-tree."""
SCRIPT = Path(__file__).with_name("linear_tree_fit.py")


def cart_by_depth(X: np.ndarray, y: np.ndarray, random_state: int) -> Any:
    """Return CART of the depth that the last third of the rows finds best, fitted on all rows."""
    tree = DecisionTreeRegressor(random_state=random_state)
    parts = np.split(np.arange(len(X)), [len(X) - len(X) // 3])
    return (
        GridSearchCV(tree, {"max_depth": MAX_DEPTHS}, cv=[parts])
        .fit(X, y)
        .best_estimator_
    )


def tuned_ridge(X: np.ndarray, y: np.ndarray, random_state: int) -> Any:
    """Return ridge regression on standardized features, with the best of `ALPHAS`: one leaf."""
    model = make_pipeline(StandardScaler(), RidgeCV(ALPHAS)).fit(X, y)
    model.sizes_ = {"leaves": 1, "nodes": 1, "depth": 0}
    model.sizes_["terms"] = int(np.count_nonzero(model[-1].coef_))
    return model


def cubist_rules(X: np.ndarray, y: np.ndarray, random_state: int) -> Any:
    """Return rules with linear models: their leaves are rules, their terms conditions, too."""
    model = import_peer("cubist").Cubist(random_state=random_state).fit(X, y)
    weights = model.coeffs_.filter(regex="^var").fillna(0.0)
    n_terms = len(model.splits_) + int(np.count_nonzero(weights))
    model.sizes_ = {"leaves": len(weights), "terms": n_terms}
    return model


class LinearTree(RegressorMixin, BaseEstimator):
    """The tree of the package linear-tree, with ridge regressions in its leaves.

    It is fitted to standardized features by the interpreter that `LINEAR_TREE_PYTHON` names, since
    the package fails with the newer releases of scikit-learn. Its splits have a term each.
    """

    def fit(self, X: np.ndarray, y: np.ndarray) -> LinearTree:
        """Have the tree fitted, and read it."""
        interpreter = os.environ.get(LINEAR_TREE_PYTHON)
        if not interpreter:
            raise ModuleNotFoundError(
                f"{LINEAR_TREE_PYTHON} is not set: it names an interpreter that has the package "
                "linear-tree, which fails with scikit-learn 1.9; 1.4 will do."
            )
        self.scaler_ = StandardScaler().fit(X)
        with tempfile.TemporaryDirectory() as folder:
            data = Path(folder, "data.npz")
            out = Path(folder, "tree.json")
            np.savez(data, X=self._rows(X), y=y)
            command = [interpreter, "-I", str(SCRIPT), str(data), str(out)]
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
            self.leaves_ = json.loads(out.read_text(encoding="ascii"))
        n_leaves = len(self.leaves_)
        n_weights = sum(np.count_nonzero(leaf["coef"]) for leaf in self.leaves_)
        self.sizes_ = {"leaves": n_leaves, "nodes": 2 * n_leaves - 1}
        self.sizes_["depth"] = max(len(leaf["conditions"]) for leaf in self.leaves_)
        self.sizes_["terms"] = n_leaves - 1 + int(n_weights)
        return self

    def _rows(self, X: np.ndarray) -> np.ndarray:
        """Return rows as the package sees them."""
        return self.scaler_.transform(X).astype(np.float32)

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Predict the targets of rows."""
        rows = self._rows(X)
        predicted = np.zeros(len(rows))
        for leaf in self.leaves_:
            reached = np.ones(len(rows), dtype=bool)
            for j, is_above, at in leaf["conditions"]:
                reached &= (rows[:, j] > at) == is_above
            predicted[reached] = (
                rows[reached] @ np.array(leaf["coef"]) + leaf["intercept"]
            )
        return predicted


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
        CART: ChosenRegressor(chosen.pruned_cart),
        LINEAR_TREE: standardized(LinearTree()),
        RIDGE: ChosenRegressor(tuned_ridge),
        CUBIST: standardized(ChosenRegressor(cubist_rules)),
        FOREST: RandomForestRegressor(chosen.N_TREES),
        "HistGB": standardized(HistGradientBoostingRegressor()),
        "XGBoost": ChosenRegressor(chosen.xgboost),
        "Tuned XGBoost": ChosenRegressor(chosen.tuned_xgboost),
        "Tuned forest": ChosenRegressor(
            partial(chosen.tuned_forest, kind=RandomForestRegressor)
        ),
    }
    return {name: systems[name] for name in SYSTEMS} | {
        CART_DEPTH: ChosenRegressor(cart_by_depth)
    }
