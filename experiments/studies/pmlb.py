"""The study of PMLB: EvoTree beside the published accuracies of 16 classifiers, on the same folds.

PMLB: Olson et al. (2017), BioData Mining 10. The accuracies: Wainer (2023), JMLR 24. Data sets that
are copies of one another are a family, which counts once.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from evotree.configuration import SCORE
from evotree.estimators import EvoTreeClassifier
from evotree.experiments.datasets import LoadedData
from evotree.experiments.protocols import Task
from evotree.leaf_models import ScoreModels
from evotree.operators.initialization.logistic import LOGISTIC
from experiments import suites, tables
from experiments.agreement import DATA
from experiments.methods.classifiers import EVOTREE
from experiments.study import (
    Results,
    Study,
    StudyProtocol,
    auc,
    clipped_log_loss,
    define,
)

FOLDER = "pmlb"  # of the data sets, in that of all data
N_FOLDS, SHUFFLED_BY = 4, 42
OTHER_ROWS = ("auto", "breast", "bupa", "cleveland", "glass", "prnn_fglass")
"""Data sets of which some rows of the publication were others."""
SYSTEMS = {
    "lgbm": "LightGBM",
    "svm": "SVM",
    "rf": "Random forest",
    "dt": "CART",
    "knn": "Nearest neighbours",
    "xgb": "XGBoost",
    "xrf": "XGBoost forest",
    "svml": "Linear SVM",
    "lr": "Logistic regression",
    "ridge": "Ridge classifier",
    "passive": "Passive-aggressive",
    "lda": "Linear discriminant",
    "qda": "Quadratic discriminant",
    "nb": "Naive Bayes",
    "gbm": "Gradient boosting",
    "mlp": "Neural network",
}
"""The published classifiers, by the names of their columns."""
METHODS = (EVOTREE, *SYSTEMS.values())
PUBLISHED = (
    pd.read_csv(DATA / "pmlb.csv")
    .rename(columns=SYSTEMS)
    .melt(["dataset", "fold"], var_name="method", value_name="accuracy")
)
"""The published accuracies, a row a data set, fold and classifier."""
KINDS = ("tree", LOGISTIC, SCORE, "tree on a score")
"""What a fit returns; the rows have the position."""
FIGURES = {
    "accuracy": ("accuracy", 100.0, 2),
    "AUC": ("auc", 100.0, 2),
    "log loss": ("log_loss", 1.0, 3),
    "complexity": ("complexity", 1.0, 1),
    "seconds": ("seconds", 1.0, 1),
}
"""Of which the publication has the first."""
BESIDE = ("Random forest", "Logistic regression", "CART")
"""The published classifiers on the rows of each kind."""
CONFIRMING = [name for name in suites.PMLB if suites.family(name) in suites.CONFIRMING]
PARTS: Mapping[str, Sequence[str]] = {
    "on which the defaults were chosen": [
        name for name in suites.PMLB if name not in CONFIRMING
    ],
    "that confirm them": CONFIRMING,
    "that confirm them, on which nothing was ever chosen": [
        name for name in CONFIRMING if suites.family(name) not in suites.USED
    ],
}
"""The data sets by what was chosen on their families."""


class PmlbProtocol(StudyProtocol):
    """The published folds."""

    def load(self, dataset: str, data_home: Path | None) -> LoadedData:
        """Return a data set, from a folder of its own: other sets have the same names."""
        return super().load(dataset, data_home and data_home / FOLDER)

    def random_state(self, task: Task) -> int:
        """Return the random state of all fits: the seed of a task is that of the folds."""
        return 0


def kind(model: Any) -> int:
    """Return which of `KINDS` a fitted model is."""
    tree = model.tree_
    if isinstance(tree.models, ScoreModels) and tree.n_leaves > 1:
        return KINDS.index("tree on a score")
    return KINDS.index(tree.origin) if tree.origin in KINDS else 0


EXPERIMENT = define(
    "pmlb",
    suites.PMLB,
    {EVOTREE: EvoTreeClassifier()},
    PmlbProtocol(N_FOLDS),
    seeds=(SHUFFLED_BY,),
    scorers={"auc": auc, "log_loss": clipped_log_loss},
    measures={"kind": kind},
)


def part_text(title: str, means: Mapping[str, pd.DataFrame]) -> str:
    """Return the accuracies of a part, family by method, as a table, and our other figures."""
    scores = means["accuracy"].dropna()
    order = scores.mean().sort_values(ascending=False).index
    duels = {"accuracy": scores[order]}
    made = tables.comparison(duels, FIGURES, EVOTREE, duels)
    others = ", ".join(
        f"{name} {tables.shown(values[EVOTREE].mean(), f'.{FIGURES[name][-1]}f')}"
        for name, values in means.items()
    )
    return (
        f"## {made['n_compared']} families {title}\n\n{made['table']}\n\n"
        f"The means of {EVOTREE}: {others}."
    )


def kinds_table(runs: pd.DataFrame) -> str:
    """Return what fits returned, with the accuracy of other methods on the same rows."""
    rows = []
    for title, datasets in list(PARTS.items())[:2]:
        own = runs[(runs["method"] == EVOTREE) & runs["dataset"].isin(datasets)]
        for at, fits in own.groupby("kind"):
            row = {"families": title, "returned": KINDS[int(at)]}
            rows.append(row | tables.on_same_rows(runs, fits, (EVOTREE, *BESIDE)))
    return tables.table(rows, 2)


def sets_table(runs: pd.DataFrame, means: Mapping[str, pd.DataFrame]) -> str:
    """Return the figures of each data set, what its fits returned, and the best published."""
    kinds = runs.groupby("dataset")["kind"]
    rows = []
    for dataset, others in means["accuracy"].drop(columns=EVOTREE).iterrows():
        counts = kinds.get_group(dataset).value_counts().sort_index()
        row = {"data set": str(dataset), "family": suites.family(str(dataset))}
        row["returned"] = ", ".join(f"{n} {KINDS[int(at)]}" for at, n in counts.items())
        for name, (_, _, decimals) in FIGURES.items():
            own = means[name].loc[dataset, EVOTREE]
            row[name] = tables.shown(own, f".{decimals}f")
        row["best published"] = f"{others.max():.2f} {others.idxmax()}"
        rows.append(row)
    return tables.table(rows, 3)


def report(results: Results) -> dict[str, Any]:
    """Return the parts, and the tables of kinds and of data sets."""
    is_run = PUBLISHED["dataset"].isin(results.runs["dataset"])
    runs = pd.concat([results.runs, PUBLISHED[is_run]], ignore_index=True)
    means = tables.figures_of(runs, FIGURES, suites.PMLB, METHODS, N_FOLDS)
    parts = []
    for title, datasets in PARTS.items():
        of_part = {
            name: values.filter(datasets, axis=0).groupby(suites.family).mean()
            for name, values in means.items()
        }
        parts.append(part_text(title, of_part))
    return {
        "parts": "\n\n".join(parts),
        "kinds": kinds_table(runs),
        "cells": sets_table(results.runs, means),
    }


STUDY = Study(EXPERIMENT, report)
