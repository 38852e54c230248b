"""The study of regression: EvoTree beside other single trees, a linear model, rules, and ensembles.

In one part each figure is a mean over folds. The other part is the protocol of RADDT (Mao et al.
2025, NeurIPS), which trains oblique trees by gradients: half of the rows to fit, a quarter to
choose hyperparameters, then both for the fit that the last quarter tests. In the rows the fold of
this part is `OFFICIAL`, and the seed draws the rows.
"""

from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.metrics import root_mean_squared_error
from sklearn.model_selection import train_test_split

from evotree.experiments.protocols import Parts, Task, take_rows
from experiments import tables
from experiments.agreement import load_published
from experiments.methods import regressors as methods
from experiments.methods.regressors import CART, EVOTREE, RIDGE, SYSTEMS, TREES
from experiments.study import Results, Study, StudyProtocol, define
from experiments.suites import N_FOLDS, OFFICIAL, TARGETS
from experiments.tables import cells_table, shown

PUBLISHED = ("RADDT-Linear", "RADDT", "ORT-LS", "CART", "Random forest", "XGBoost")
"""The methods of the paper whose figures stand beside ours; it has the ensembles tuned."""
RADDT_SETS = (
    *(
        "space-ga",
        "abalone-r",
        "puma8NH",
        "kin8nm",
        "cpu-small",
        "cpu-act",
        "delta-elevators",
    ),
    *("ailerons", "elevators", "fried"),
)
"""Those of the paper's 17 data sets that are at hand."""
RADDT_METHODS = (
    *(EVOTREE, methods.TAO, methods.TAO_LINEAR, methods.CART_DEPTH),
    *(RIDGE, methods.CUBIST, methods.FOREST),
)
N_SEEDS = 3  # draws of the rows of RADDT's protocol
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


class RegressionProtocol(StudyProtocol):
    """Folds, or the draws of RADDT's protocol."""

    def take_parts(
        self, task: Task, data_home: Path | None, stratified: bool = True
    ) -> Parts:
        """Return the rows of a fit; of RADDT's the last third of the training rows validates."""
        if task.fold != OFFICIAL:
            return super().take_parts(task, data_home, stratified)
        data = self.load(task.dataset, data_home)
        rows = np.arange(len(data.y))
        parts = train_test_split(rows, test_size=0.25, random_state=task.seed)
        return take_rows(data.X, data.y, *parts)


def rmse(model: Any, X: np.ndarray, y: np.ndarray) -> float:
    """Return the root of the mean squared error."""
    return float(root_mean_squared_error(y, model.predict(X)))


EXPERIMENT = define(
    "regression",
    TARGETS,
    methods.make_systems(),
    RegressionProtocol(N_FOLDS),
    metrics=("r2", "train_r2"),
    scorers={"rmse": rmse},
    plan=[
        *(
            Task(dataset, method, fold, 0)
            for method in SYSTEMS
            for dataset, fold in product(DATASETS.get(method, TARGETS), range(N_FOLDS))
        ),
        *(
            Task(d, m, OFFICIAL, seed)
            for seed, d, m in product(range(N_SEEDS), RADDT_SETS, RADDT_METHODS)
        ),
    ],
)


def raddt_table(drawn: pd.DataFrame) -> str:
    """Return the means over RADDT's data sets of which each of our methods has a draw."""
    if drawn.empty:
        return tables.NOT_RUN
    published = load_published("regression").set_index("metric")
    theirs = 100.0 * published.loc["r2"].pivot(
        index="dataset", columns="system", values="mean"
    )
    n_leaves = dict(
        published.loc["leaves"].set_index("system")["mean"].add_suffix(", published")
    )
    ours, sizes = (
        tables.fold_means(drawn, column, RADDT_SETS, RADDT_METHODS, n_folds=1)
        for column in ("r2", "leaves")
    )
    both = ours.dropna().index
    n_leaves |= dict(sizes.loc[both].mean(skipna=False))
    beside = (
        theirs.loc[both, list(PUBLISHED)].add_suffix(", published").join(100.0 * ours)
    )
    rows = [
        {
            "method": name,
            R2: shown(mean),
            "leaves": shown(n_leaves.get(name, np.nan), ",.1f"),
        }
        for name, mean in beside.mean().items()
    ]
    return f"Means over {len(both)} data sets:\n\n{tables.table(rows)}"


def report(results: Results) -> dict[str, Any]:
    """Return the tables, and draw the pictures."""
    is_fold = results.runs["fold"] != OFFICIAL
    out = results.out
    runs = results.runs[is_fold]
    means = tables.figures_of(runs, FIGURES, TARGETS, SYSTEMS)
    scores = means[R2]
    errors = means[RATIO]
    means[RATIO] = errors.div(errors.get(RIDGE, np.nan), axis=0)
    both = tables.compared(scores)
    ranks, sentence = tables.ranks_of(both, EVOTREE)
    drawn = runs.rename(columns={"r2": R2})
    picture = out / "regression_sizes.png"
    return {
        **tables.comparison(means, FIGURES, EVOTREE, {R2: scores}, ranks),
        "floor": tables.floor_sentence(scores, EVOTREE, (CART, RIDGE)),
        "ranks": sentence,
        "sizes": tables.sizes_of(drawn, both, "complexity", R2, picture),
        "cells": cells_table(scores, ",.1f", bold=TREES),
        "raddt": raddt_table(results.runs[~is_fold]),
    }


STUDY = Study(EXPERIMENT, report)
