"""The study of forests: tens of small sparse oblique trees beside hundreds of deep ones.

The rows of single trees, of random forests and of boosting are those of the benchmark and of the
study of regression, whose folds and random states these fits have.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.ensemble import (
    BaggingClassifier,
    BaggingRegressor,
    ExtraTreesClassifier,
    ExtraTreesRegressor,
)

from evotree.estimators import (
    EvoForestClassifier,
    EvoForestRegressor,
    TAOClassifier,
    TAORegressor,
)
from evotree.experiments.datasets import LoadedData
from evotree.experiments.experiment import Experiment
from evotree.experiments.probabilities import LEAST, auc, clipped_log_loss
from evotree.experiments.protocols import OFFICIAL, Task
from evotree.experiments.rows import read_rows
from evotree.experiments.studies import regression
from evotree.experiments.studies.means import TIE, fold_means
from evotree.experiments.studies.oc1 import FILES, OC1Protocol
from evotree.experiments.studies.peers import BOOSTING_FOLDS, N_DRAWS, TunedXGBoost
from evotree.experiments.studies.study import Results, Study, StudyProtocol
from evotree.experiments.studies.suites import BENCHMARK, N_FOLDS
from evotree.experiments.studies.tables import (
    MISSING,
    cells_table,
    compared,
    differences_table,
    left_out_text,
    means_table,
)

CLASSES, TARGETS = "EvoForest", "EvoForest of targets"
"""The forest of classes, and that of targets."""
OTHERS = {
    CLASSES: ("Extra trees", "TAO bag", "Tuned XGBoost"),
    TARGETS: ("Extra trees of targets", "TAO bag of targets"),
}
"""Other ensembles that are fitted here."""
N_TREES, N_BAGGED = 500, 30
"""Trees of forests of deep trees, and of bags of small ones."""
TUNED_ON = (
    *("heart", "glass", "bupa", "vehicle", "pima", "balance-scale", "ionosphere", "sonar"),
    *("bodyfat", "autompg", "concrete", "housing", "avila"),
)
"""The data sets on which the defaults of the forests were chosen."""
BOOSTED = ("HistGB", "XGBoost")
RIVALS = {
    "benchmark": ("EvoTree", "CART", "TAO", "Logistic", "Forest", *BOOSTED),
    "regression": ("EvoTree", "CART", "Ridge", "Cubist", "Forest", *BOOSTED, "Tuned XGBoost"),
}
"""Methods of the other studies that are shown."""

FIGURES = {
    "accuracy": ("score", 100.0, 2),
    "AUC": ("auc", 100.0, 2),
    "log loss": ("log_loss", 1.0, 3),
    "nodes": ("nodes", 1.0, 0),
    "leaves": ("leaves", 1.0, 0),
    "terms": ("terms", 1.0, 0),
    "seconds": ("seconds", 1.0, 2),
}
"""The figures of classes: what they are called in the rows, their unit, and their decimals."""
R2 = "R²"
OF_TARGETS = {R2: FIGURES["accuracy"]} | {
    title: FIGURES[title] for title in ("nodes", "leaves", "terms", "seconds")
}
"""The figures of targets."""


def score(model: Any, X: np.ndarray, y: np.ndarray) -> float:
    """Return the accuracy, or R²."""
    return float(model.score(X, y))


class ForestsProtocol(OC1Protocol):
    """The folds of the benchmark, and those of the study of regression."""

    def load(self, dataset: str, data_home: Path | None) -> LoadedData:
        """Return a data set; housing has its targets here."""
        if dataset in regression.DATASETS:
            return StudyProtocol.load(self, dataset, data_home)
        return super().load(dataset, data_home)


def make_experiment() -> Experiment:
    """Return the fits of the study."""
    extra, bag, tuned = OTHERS[CLASSES]
    of_classes = {
        CLASSES: EvoForestClassifier(),
        extra: ExtraTreesClassifier(N_TREES),
        bag: BaggingClassifier(TAOClassifier(), N_BAGGED),
        tuned: TunedXGBoost(),
    }
    extra, bag = OTHERS[TARGETS]
    of_targets = {
        TARGETS: EvoForestRegressor(),
        extra: ExtraTreesRegressor(N_TREES),
        bag: BaggingRegressor(TAORegressor(), N_BAGGED),
    }
    suites = ((of_classes, BENCHMARK), (of_targets, regression.DATASETS))
    return Experiment(
        "forests",
        (*BENCHMARK, *regression.DATASETS),
        {**of_classes, **of_targets},
        ForestsProtocol(N_FOLDS, files={"digits": FILES["digits"]}),
        metrics=(),
        scorers={"score": score, "auc": auc, "log_loss": clipped_log_loss},
        plan=[
            Task(dataset, method, fold, 0)
            for methods, datasets in suites
            for method in methods
            for dataset in datasets
            for fold in range(N_FOLDS)
        ],
        curve=None,
        warm_up=True,
    )


# ---- report --------------------------------------------------------------------------------------


def with_rivals(runs: pd.DataFrame, study: str, metric: str, out: Path) -> pd.DataFrame:
    """Return the rows of the forests and of the rivals in another study's file beside theirs.

    Parameters
    ----------
    runs : DataFrame
        Rows of the forests.
    study : str
        Name of the other study.
    metric : str
        What it calls the score.
    out : Path
        Folder of the rows; without a file of that study there are no rivals.
    """
    path = out / f"{study}_runs.csv"
    if not path.exists():
        return runs
    others = read_rows(path)
    others = others[others["method"].isin(RIVALS[study]) & (others["fold"] != OFFICIAL)]
    return pd.concat([runs, others.assign(score=others[metric])], ignore_index=True)


def section(
    runs: pd.DataFrame,
    ours: str,
    study: str,
    datasets: Sequence[str],
    figures: Mapping[str, tuple[str, float, int]],
) -> str:
    """Return the tables of one kind of forest, in Markdown."""
    shown = (ours, *OTHERS[ours], *RIVALS[study])
    tables = {
        title: unit * fold_means(runs, column, datasets, shown)
        for title, (column, unit, _) in figures.items()
    }
    decimals = {title: digits for title, (_, _, digits) in figures.items()}
    first = next(iter(tables))
    scores = tables[first]
    if ours not in scores:
        return "Not run yet."
    scores = scores[scores[ours].notna()]
    tables[first] = scores
    known = {first: scores, f"{first} on data sets of no choice": _without_tuned(scores)}
    n_sets = len(compared(scores))
    return f"""Means over the {n_sets} data sets that all methods of the table have. Left out, with
the number of their data sets: {left_out_text(scores)}.

{means_table(tables, decimals)}

{ours} less each other method in points, with standard errors, and data sets won / tied /
lost; a difference below {TIE:g} points is a tie:

{differences_table(known, ours)}

{first}, in percent:

{cells_table(scores, 1)}"""


def _without_tuned(scores: pd.DataFrame) -> pd.DataFrame:
    """Return the scores of the data sets on which no default was chosen."""
    return scores[~scores.index.isin(TUNED_ON)]


def write(results: Results) -> str:
    """Return the report."""
    runs, out = results.runs, results.out
    of_classes = with_rivals(runs, "benchmark", "accuracy", out)
    of_targets = with_rivals(runs, "regression", "r2", out)
    return f"""# Forests of small trees

Written by `evotree experiment study forests --data-home DIR --out docs/results`, from the rows in
`forests_runs.csv`: {results.planned} fits. The rows of single trees, of Forest, of HistGB, of
XGBoost and of tuned XGBoost of targets are those of the [benchmark](benchmark.md) and of the study
of [regression](regression.md), which say what they are; folds and random states are the same.
Seconds are those of a fit on one thread. The fits of this study were made while four to eight other
programs shared the core, so that they took several times what they take alone.

{CLASSES} is `EvoForestClassifier` and {TARGETS} `EvoForestRegressor`, both as they come. Forest
is scikit-learn's random forest of {N_TREES} trees, and Extra trees its extremely randomized trees,
as many. A TAO bag is {N_BAGGED} trees of `TAOClassifier`, or `TAORegressor`, on bootstraps. Tuned
XGBoost has the best of {N_DRAWS} draws of hyperparameters, by {BOOSTING_FOLDS} folds of the
training rows. Nodes, leaves and terms are those of all trees together; those of lines in leaves
count as terms. Stratified {N_FOLDS}-fold cross-validation, plain for targets; means over folds of
test rows. In the log loss probabilities below {LEAST:g} count as {LEAST:g}. "{MISSING}" stands for
what was not measured.

The defaults of the forests were chosen on two folds, or three, of
{", ".join(TUNED_ON)}.

## Classes

{section(of_classes, CLASSES, "benchmark", BENCHMARK, FIGURES)}

## Targets

{section(of_targets, TARGETS, "regression", regression.DATASETS, OF_TARGETS)}
"""


STUDY = Study(
    "forests",
    f"forests of small trees on {len(BENCHMARK)} data sets of classes and "
    f"{len(regression.DATASETS)} of targets",
    make_experiment,
    write,
)
