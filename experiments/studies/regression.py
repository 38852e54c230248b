"""The study of regression: EvoTree beside other single trees, a linear model, rules, and ensembles.

Each figure is a mean over folds.
"""

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np
from sklearn.metrics import root_mean_squared_error

from evotree.experiments.protocols import Task
from experiments import tables
from experiments.methods import regressors as methods
from experiments.methods.regressors import CART, EVOTREE, RIDGE, SYSTEMS, TREES
from experiments.study import Results, Study, StudyProtocol, define
from experiments.suites import N_FOLDS, TARGETS
from experiments.tables import cells_table

R2, RATIO = "R²", "RMSE / Ridge's"
FIGURES = {
    R2: ("r2", 100.0, 2),
    RATIO: ("rmse", 1.0, 3),
    **{size: (size, 1.0, 1) for size in ("leaves", "terms")},
}
DATASETS: Mapping[str, Sequence[str]] = {
    methods.CEDT: TARGETS[:13],
    methods.CONSTANT: TARGETS[:7],
    **{"Tuned forest": TARGETS[:14], CART: TARGETS[:16], methods.FOREST: TARGETS[:16]},
}
"""The data sets of methods that were not run on all."""


def rmse(model: Any, X: np.ndarray, y: np.ndarray) -> float:
    """Return the root of the mean squared error."""
    return float(root_mean_squared_error(y, model.predict(X)))


EXPERIMENT = define(
    "regression",
    TARGETS,
    methods.make_systems(),
    StudyProtocol(N_FOLDS),
    metrics=("r2", "train_r2"),
    scorers={"rmse": rmse},
    plan=[
        Task(dataset, method, fold, 0)
        for method in SYSTEMS
        for dataset, fold in product(DATASETS.get(method, TARGETS), range(N_FOLDS))
    ],
)


def report(results: Results) -> dict[str, Any]:
    """Return the tables, and draw the pictures."""
    runs = results.runs
    means = tables.figures_of(runs, FIGURES, TARGETS, SYSTEMS)
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
        "cells": cells_table(scores, ",.1f", bold=TREES),
    }


STUDY = Study(EXPERIMENT, report)
