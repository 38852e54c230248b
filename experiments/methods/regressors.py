"""The methods of the study of regression."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor
from sklearn.linear_model import RidgeCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from evotree.estimators import EvoTreeRegressor, ObliqueTreeRegressor, TAORegressor
from experiments.methods import chosen
from experiments.methods.chosen import ChosenRegressor, import_peer

EVOTREE, CONSTANT, CART, FOREST = "EvoTree", "EvoTree constant", "CART", "Forest"
TAO, TAO_LINEAR, CEDT = "TAO", "TAO linear", "CEDT"
RIDGE, CUBIST = "Ridge", "Cubist"
TREES = (EVOTREE, CONSTANT, TAO, TAO_LINEAR, CEDT, CART)
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


def standardized(model: RegressorMixin) -> TransformedTargetRegressor:
    """Return a model on standardized targets, for packages with tolerances of their own unit.

    The targets of some data sets are below a thousandth: there such a package finds nothing to do.
    """
    return TransformedTargetRegressor(model, transformer=StandardScaler())


def make_systems() -> dict[str, RegressorMixin]:
    """Return the methods of the study by name."""
    systems = {
        EVOTREE: EvoTreeRegressor(),
        CONSTANT: EvoTreeRegressor(leaves="constant"),
        TAO: TAORegressor(),
        TAO_LINEAR: TAORegressor(leaves="linear"),
        CEDT: ObliqueTreeRegressor.from_preset(CEDT, criterion="squared_error"),
        CART: ChosenRegressor(chosen.pruned_cart),
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
    return {name: systems[name] for name in SYSTEMS}
