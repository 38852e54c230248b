"""The study of probabilities: how far those of a tree can be trusted, beside other models'.

Soft sides and the shares of leaves are of the same trees, fitted once.
Isotonic calibration of classes: Zadrozny and Elkan (2002), KDD, 694-699.
"""

from collections.abc import Callable, Mapping
from functools import partial
from itertools import product
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
from sklearn.calibration import CalibratedClassifierCV

from evotree.estimators import EvoTreeClassifier
from evotree.experiments.protocols import Task
from experiments.methods.chosen import (
    TUNING_FOLDS,
    ChosenClassifier,
    folds_of,
    pruned_cart,
)
from experiments.methods.classifiers import (
    CART,
    EVOTREE,
    FOREST,
    LOGISTIC,
    make_systems,
)
from experiments.probabilities import auc, brier, calibration_error, clipped_log_loss
from experiments.study import Results, Study, StudyProtocol, define
from experiments.suites import N_FOLDS, SMALL, TINY
from experiments.tables import cells_table, figures_of, table

TUNED_ON = ("wdbc", "pima", "heart", "iris", "wine", "vehicle", "glass", "sonar")
"""The data sets on which the form of soft sides and their constants were chosen."""
DATASETS = (
    *TINY,
    *SMALL,
    "hepatitis",
    "thyroid",
    "sick",
    "segment",
    "credit-g",
    "satimage",
)
CONFIRMED_ON = tuple(name for name in DATASETS if name not in TUNED_ON)
ISOTONIC = f"{CART}, isotonic"
METHODS = (EVOTREE, ISOTONIC, LOGISTIC, FOREST)
SHARES, MOST_PROBABLE = (
    f"{EVOTREE}, shares of leaves",
    f"{EVOTREE}, most probable class",
)
SHOWN = (EVOTREE, MOST_PROBABLE, SHARES, ISOTONIC, LOGISTIC, FOREST)

Score = Callable[[Any, np.ndarray, np.ndarray], float]
SCORES: Mapping[str, Score] = {
    "auc": auc,
    "log_loss": clipped_log_loss,
    "brier": brier,
    "calibration_error": calibration_error,
}
FIGURES = {
    "accuracy": ("accuracy", 100.0, 2),
    "AUC": ("auc", 100.0, 2),
    "log loss": ("log_loss", 1.0, 3),
    "Brier score": ("brier", 1.0, 3),
    "calibration error": ("calibration_error", 100.0, 2),
}


def isotonic_cart(X: np.ndarray, codes: np.ndarray, random_state: int) -> Any:
    """Return pruned CART, its probabilities calibrated by isotonic regression and folds."""
    tree = pruned_cart(X, codes, random_state)
    folds = folds_of(codes, TUNING_FOLDS, random_state)
    return CalibratedClassifierCV(tree, method="isotonic", cv=folds).fit(X, codes)


def of_shares(score: Score, model: Any, X: np.ndarray, y: np.ndarray) -> float:
    """Return the score of the shares of leaves of a tree that has soft sides."""
    if not isinstance(model, EvoTreeClassifier):
        return float("nan")
    plain = SimpleNamespace(
        classes_=model.classes_, predict_proba=model.tree_.predict_value
    )
    return score(plain, X, y)


def of_mixture(score: Score, model: Any, X: np.ndarray, y: np.ndarray) -> float:
    """Return the score of soft probabilities where that of the leaf's class is not raised."""
    if not isinstance(model, EvoTreeClassifier) or model.probabilities_ is None:
        return float("nan")
    mix = partial(model.probabilities_.mix, model.tree_)
    return score(SimpleNamespace(classes_=model.classes_, predict_proba=mix), X, y)


def accuracy(model: Any, X: np.ndarray, y: np.ndarray) -> float:
    """Return the share of rows whose most probable class is theirs."""
    return float((model.classes_[model.predict_proba(X).argmax(axis=1)] == y).mean())


SYSTEMS = {
    **make_systems(),
    **{
        EVOTREE: EvoTreeClassifier(leaves="constant"),
        ISOTONIC: ChosenClassifier(isotonic_cart),
    },
}
OF_OTHERS = {
    f"{prefix}_{name}": partial(of_it, score)
    for prefix, of_it in (("shares", of_shares), ("mixed", of_mixture))
    for name, score in {"accuracy": accuracy, **SCORES}.items()
}
"""Scores of the other probabilities of the same trees."""
EXPERIMENT = define(
    "probabilities",
    list(DATASETS),
    {name: SYSTEMS[name] for name in METHODS},
    StudyProtocol(N_FOLDS),
    metrics=("accuracy",),
    scorers={**SCORES, **OF_OTHERS},
    plan=[
        Task(d, m, fold, 0) for d, m, fold in product(DATASETS, METHODS, range(N_FOLDS))
    ],
)


def with_variants(runs: pd.DataFrame) -> pd.DataFrame:
    """Add the other probabilities of the same trees as rows of methods of their own."""
    parts = [runs]
    of_trees = runs[runs["method"] == EVOTREE]
    for method, prefix in ((SHARES, "shares_"), (MOST_PROBABLE, "mixed_")):
        columns = {
            name: of_trees.get(f"{prefix}{name}") for name, _, _ in FIGURES.values()
        }
        parts.append(of_trees.assign(method=method, **columns))
    return pd.concat([part for part in parts if len(part)], ignore_index=True)


def summary_table(runs: pd.DataFrame, datasets: tuple[str, ...]) -> str:
    """Return means over data sets that all methods have."""
    means = {
        k: m.dropna() for k, m in figures_of(runs, FIGURES, datasets, SHOWN).items()
    }
    rows = [
        {"method": str(method)}
        | {
            title: f"{means[title][method].mean():.{FIGURES[title][-1]}f}"
            for title in FIGURES
        }
        for method in means["accuracy"]
    ]
    return f"Means over {len(means['accuracy'])} data sets:\n\n{table(rows)}"


def report(results: Results) -> dict[str, Any]:
    """Return the tables."""
    runs = with_variants(results.runs)
    losses = figures_of(runs, {"log loss": FIGURES["log loss"]}, DATASETS, SHOWN)[
        "log loss"
    ]
    return {
        "tuned_on": summary_table(runs, TUNED_ON),
        "confirmed_on": summary_table(runs, CONFIRMED_ON),
        "cells": cells_table(losses, ".3f"),
    }


STUDY = Study(EXPERIMENT, report)
