"""The study of regression: EvoTree beside other single trees, a linear model, rules, and ensembles.

Each figure is a mean over folds.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import product
from typing import Any

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor
from sklearn.linear_model import RidgeCV
from sklearn.metrics import root_mean_squared_error
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from evotree.estimators import EvoTreeRegressor, ObliqueTreeRegressor, TAORegressor
from evotree.experiments.protocols import Task
from experiments import tables
from experiments.methods import chosen
from experiments.methods.chosen import ChosenRegressor, import_peer
from experiments.study import Results, Study, StudyProtocol, define
from experiments.suites import N_FOLDS, TARGETS

EVOTREE, CONSTANT, CART, FOREST = "EvoTree", "EvoTree constant", "CART", "Forest"
TAO, TAO_LINEAR, CEDT = "TAO", "TAO linear", "CEDT"
RIDGE, CUBIST = "Ridge", "Cubist"
TREES = (EVOTREE, CONSTANT, TAO, TAO_LINEAR, CEDT, CART)
"""The methods whose model is one tree."""
ALPHAS = tuple(float(alpha) for alpha in np.logspace(-3.0, 3.0, 13))
"""Penalties of the ridge regression."""
R2, RATIO = "R²", "RMSE / Ridge's"
FIGURES = {
    R2: ("r2", 100.0, 2),
    RATIO: ("rmse", 1.0, 3),
    **{size: (size, 1.0, 1) for size in ("leaves", "terms")},
}
DATASETS: Mapping[str, Sequence[str]] = {
    CEDT: TARGETS[:13],
    CONSTANT: TARGETS[:7],
    **{"Tuned forest": TARGETS[:14], CART: TARGETS[:16], FOREST: TARGETS[:16]},
}
"""The data sets of methods that were not run on all."""


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


METHODS: dict[str, RegressorMixin] = {
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


def rmse(model: Any, X: np.ndarray, y: np.ndarray) -> float:
    """Return the root of the mean squared error."""
    return float(root_mean_squared_error(y, model.predict(X)))


EXPERIMENT = define(
    "regression",
    TARGETS,
    METHODS,
    StudyProtocol(N_FOLDS),
    metrics=("r2", "train_r2"),
    scorers={"rmse": rmse},
    plan=[
        Task(dataset, method, fold, 0)
        for method in METHODS
        for dataset, fold in product(DATASETS.get(method, TARGETS), range(N_FOLDS))
    ],
)


def report(results: Results) -> dict[str, Any]:
    """Return the tables, and draw the pictures."""
    runs = results.runs
    means = tables.figures_of(runs, FIGURES, TARGETS, METHODS)
    scores = means[R2]
    errors = means[RATIO]
    means[RATIO] = errors.div(errors.get(RIDGE, np.nan), axis=0)
    both = tables.compared(scores)
    ranks, sentence = tables.ranks_of(both, EVOTREE)
    drawn = runs.rename(columns={"r2": R2})
    picture = results.out / "regression_sizes.png"
    return {
        **tables.comparison(means, FIGURES, EVOTREE, {R2: scores}, ranks),
        "floor": tables.floor_sentence(scores, EVOTREE, (CART, RIDGE)),
        "ranks": sentence,
        "sizes": tables.sizes_of(drawn, both, "complexity", R2, picture),
        "cells": tables.cells_table(scores, ",.1f", bold=TREES),
    }


STUDY = Study(EXPERIMENT, report)
