"""The study of forests: tens of small sparse oblique trees beside hundreds of deep ones.

The rows of single trees, of random forests and of boosting are those of the benchmark and of the
study of regression, whose folds and random states these fits have.
"""

from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import pandas as pd
from sklearn.ensemble import (
    BaggingClassifier,
    ExtraTreesClassifier,
    ExtraTreesRegressor,
)

from evotree.estimators import (
    ObliqueForestClassifier,
    ObliqueForestRegressor,
    TAOClassifier,
)
from evotree.experiments.datasets import LoadedData
from evotree.experiments.protocols import OFFICIAL, Task
from experiments.methods import chosen
from experiments.probabilities import auc, clipped_log_loss
from experiments.rows import read_rows
from experiments.study import ClassesProtocol, Results, Study, define, score
from experiments.suites import BENCHMARK, MIDDLE, N_FOLDS, SMALL, TARGETS, THIRTY, TINY
from experiments.tables import Figures, cells_table, comparison, figures_of, named

CLASSES, OF_TARGETS = "ObliqueForest", "ObliqueForest of targets"
"""The forest of classes, and that of targets."""
OTHERS = {
    CLASSES: ("Extra trees", "TAO bag", "Tuned XGBoost"),
    OF_TARGETS: ("Extra trees of targets",),
}
"""Other ensembles that are fitted here."""
N_BAGGED = 30
TUNED_ON = (
    *(
        "heart",
        "glass",
        "bupa",
        "vehicle",
        "pima",
        "balance-scale",
        "ionosphere",
        "sonar",
    ),
    *("bodyfat", "autompg", "concrete", "housing", "avila"),
)
"""The data sets on which the defaults of the forests were chosen."""
BOOSTED = ("HistGB", "XGBoost")
RIVALS = {
    "benchmark": ("EvoTree", "CART", "TAO", "Logistic", "Forest", *BOOSTED),
    "regression": (
        "EvoTree",
        "CART",
        "Ridge",
        "Cubist",
        "Forest",
        *BOOSTED,
        "Tuned XGBoost",
    ),
}
"""Methods of the other studies that are shown."""
SHOWN = (CLASSES, *OTHERS[CLASSES], "EvoTree", "Forest", "XGBoost")
"""The methods in the table of data sets."""
SIZES: Figures = {size: (size, 1.0, 0) for size in ("leaves", "terms")}
FIGURES: Figures = {
    "accuracy": ("score", 100.0, 2),
    "AUC": ("auc", 100.0, 2),
    "log loss": ("log_loss", 1.0, 3),
    **SIZES,
}


class ForestsProtocol(ClassesProtocol):
    """The folds of the benchmark, and those of the study of regression."""

    def load(self, dataset: str, data_home: Path | None) -> LoadedData:
        """Return a data set; housing has its targets here."""
        load = super(ClassesProtocol, self).load if dataset in TARGETS else super().load
        return load(dataset, data_home)


_LONG = ("waveform21", "avila", "pendigits", "dry-bean", "letter", "usps")
METHODS: Mapping[str, tuple[Any, Sequence[str]]] = {
    CLASSES: (
        ObliqueForestClassifier(),
        [name for name in BENCHMARK if name != "usps"],
    ),
    "Extra trees": (ExtraTreesClassifier(chosen.N_TREES), THIRTY[:-2]),
    "TAO bag": (BaggingClassifier(TAOClassifier(), N_BAGGED), (*TINY, *SMALL, *MIDDLE)),
    "Tuned XGBoost": (
        chosen.ChosenClassifier(chosen.tuned_xgboost),
        [name for name in BENCHMARK if name not in _LONG],
    ),
    OF_TARGETS: (ObliqueForestRegressor(), TARGETS[:15]),
    "Extra trees of targets": (ExtraTreesRegressor(chosen.N_TREES), TARGETS[:14]),
}
"""The methods that are fitted here, with their data sets."""
EXPERIMENT = define(
    "forests",
    (*BENCHMARK, *TARGETS),
    {name: method for name, (method, _) in METHODS.items()},
    ForestsProtocol(N_FOLDS),
    metrics=(),
    scorers={"score": score, "auc": auc, "log_loss": clipped_log_loss},
    plan=[
        Task(dataset, method, fold, 0)
        for method, (_, datasets) in METHODS.items()
        for dataset, fold in product(datasets, range(N_FOLDS))
    ],
)


def with_other_methods(
    runs: pd.DataFrame, study: str, metric: str, out: Path
) -> pd.DataFrame:
    """Return the rows of the forests, and of the other methods of another study, if any."""
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
    datasets: tuple[str, ...],
    figures: Figures,
) -> dict[str, Any]:
    """Return the tables of one kind of forest."""
    means = figures_of(runs, figures, datasets, (ours, *OTHERS[ours], *RIVALS[study]))
    first = next(iter(means))
    datasets = means[first].get(ours, pd.Series(dtype=float)).dropna().index
    scores = means[first] = means[first].loc[datasets]
    shown = scores[named(SHOWN, scores)]
    untuned = scores[~scores.index.isin(TUNED_ON)]
    duels = {first: scores, f"{first} on data sets of no choice": untuned}
    return comparison(means, figures, ours, duels) | {
        "cells": cells_table(shown, ",.1f")
    }


def report(results: Results) -> dict[str, Any]:
    """Return the tables of both kinds of forests."""
    of_classes = with_other_methods(results.runs, "benchmark", "accuracy", results.out)
    of_targets = with_other_methods(results.runs, "regression", "r2", results.out)
    figures = {"R²": FIGURES["accuracy"], **SIZES}
    return {
        "classes": section(of_classes, CLASSES, "benchmark", BENCHMARK, FIGURES),
        "targets": section(of_targets, OF_TARGETS, "regression", TARGETS, figures),
    }


STUDY = Study(EXPERIMENT, report)
