"""The study of steadiness: how alike are the models of a method that differ by chance alone.

Five models are fitted to seven tenths of the rows of a data set: to the same rows with other
random states, or to other nine tenths of these rows. They are compared by what they predict for
the rows that are left, two by two.
"""

from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.model_selection import train_test_split

from evotree.estimators import EvoTreeClassifier
from evotree.experiments.experiment import tree_sizes
from evotree.experiments.protocols import Parts, Task, take_rows
from experiments.methods.chosen import ChosenClassifier, pruned_cart
from experiments.methods.classifiers import CART, EVOTREE, LOGISTIC, tuned_logistic
from experiments.study import ClassesProtocol, Results, Study, define
from experiments.tables import cells_table, shown, table

N_MODELS = 5
TRAIN_SHARE, BAG_SHARE = 0.7, 0.9
"""The share of the rows that models are fitted to, and the share of these of other rows."""
DATASETS = (
    *("bupa", "glass", "sonar", "vehicle", "heart", "pima", "credit-g", "ionosphere"),
    *("hepatitis", "breast-cancer", "wdbc", "blood-transfusion", "balance-scale"),
    *("breast-w", "wine", "horse-colic", "heart-cleveland", "hayes-roth"),
)


class SeveralModels(ClassifierMixin, BaseEstimator):
    """Models of one method that differ by chance alone; the first one predicts."""

    def __init__(
        self, model: Any, other_rows: bool = False, random_state: int = 0
    ) -> None:
        self.model = model
        self.other_rows = other_rows
        self.random_state = random_state

    def fit(self, X: np.ndarray, y: np.ndarray) -> "SeveralModels":
        """Fit all models."""
        self.models_ = []
        for at in range(N_MODELS):
            rows = np.arange(len(y))
            if self.other_rows:
                rows, _ = split(y, BAG_SHARE, random_state=at)
            model = clone(self.model).set_params(random_state=self.random_state + at)
            self.models_.append(model.fit(X[rows], y[rows]))
        self.classes_ = np.unique(y)
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Return the labels of the first model."""
        return self.models_[0].predict(X)

    def predictions(self, X: np.ndarray) -> list[np.ndarray]:
        """Return the labels of each model."""
        return [model.predict(X) for model in self.models_]


def split(y: np.ndarray, share: float, random_state: int) -> list[np.ndarray]:
    """Return the positions of a share of the rows, and of the others; stratified if it can be."""
    several = np.unique(y, return_counts=True)[1].min() > 1
    return train_test_split(
        np.arange(len(y)),
        train_size=share,
        random_state=random_state,
        stratify=y if several else None,
    )


@dataclass(frozen=True)
class OneSplit(ClassesProtocol):
    """Seven tenths of the rows to fit on."""

    def folds(self) -> list[int]:
        """Return the number of the only split."""
        return [0]

    def take_parts(
        self, task: Task, data_home: Path | None, stratified: bool = True
    ) -> Parts:
        """Return the rows of the split."""
        data = self.load(task.dataset, data_home)
        train, test = split(data.y, TRAIN_SHARE, random_state=task.seed)
        return take_rows(data.X, data.y, np.sort(train), np.sort(test))


def pairs(model: SeveralModels, X: np.ndarray) -> list[float]:
    """Return the share of the rows that two models label alike, for each pair."""
    return [
        float(np.mean(one == other))
        for one, other in combinations(model.predictions(X), 2)
    ]


def agreement(model: SeveralModels, X: np.ndarray, y: np.ndarray) -> float:
    """Return the mean over pairs of models of the share of the rows that are labelled alike."""
    return float(np.mean(pairs(model, X)))


def least_agreement(model: SeveralModels, X: np.ndarray, y: np.ndarray) -> float:
    """Return the least of these shares."""
    return min(pairs(model, X))


def mean_accuracy(model: SeveralModels, X: np.ndarray, y: np.ndarray) -> float:
    """Return the mean accuracy of all models."""
    return float(np.mean([np.mean(labels == y) for labels in model.predictions(X)]))


def log_sizes(model: SeveralModels) -> list[float]:
    """Return the logarithms of the complexity of trees; nan for what is no tree."""
    sizes = [tree_sizes(one).get("complexity", np.nan) for one in model.models_]
    return np.log(sizes).tolist()


def log_complexity(model: SeveralModels, X: np.ndarray, y: np.ndarray) -> float:
    """Return the mean logarithm of the complexity."""
    return float(np.mean(log_sizes(model)))


def log_complexity_std(model: SeveralModels, X: np.ndarray, y: np.ndarray) -> float:
    """Return the standard deviation of the logarithm of the complexity."""
    return float(np.std(log_sizes(model)))


SCORERS = {
    "mean_accuracy": mean_accuracy,
    "agreement": agreement,
    "least_agreement": least_agreement,
    "log_complexity": log_complexity,
    "log_complexity_std": log_complexity_std,
}
MODELS = {
    EVOTREE: EvoTreeClassifier(),
    CART: ChosenClassifier(pruned_cart),
    LOGISTIC: ChosenClassifier(tuned_logistic),
}
OTHER_ROWS = "{}, other rows"
METHODS = {
    **{name: SeveralModels(model) for name, model in MODELS.items()},
    **{
        OTHER_ROWS.format(name): SeveralModels(model, other_rows=True)
        for name, model in MODELS.items()
    },
}
EXPERIMENT = define("steady", DATASETS, METHODS, OneSplit(), scorers=SCORERS)


def report(results: Results) -> dict[str, Any]:
    """Return the means of the methods, and the agreement on each data set."""
    runs = results.runs
    rows = []
    for method in METHODS:
        own = runs[runs["method"] == method]
        if own.empty:
            continue
        rows.append(
            {
                "method": method,
                "data sets": str(len(own)),
                "accuracy": f"{100.0 * own['mean_accuracy'].mean():.1f}",
                "agreement": f"{100.0 * own['agreement'].mean():.1f}",
                "least": f"{100.0 * own['least_agreement'].min():.1f}",
                "complexity": shown(np.exp(own["log_complexity"]).median(), ".0f"),
                "its spread": shown(own["log_complexity_std"].mean(), ".2f"),
            }
        )
    cells = pd.pivot_table(
        runs, values="agreement", index="dataset", columns="method", sort=False
    )
    order = [method for method in METHODS if method in cells]
    return {
        "means": table(rows, 1),
        "cells": cells_table(100.0 * cells[order], ".1f"),
    }


STUDY = Study(EXPERIMENT, report)
