"""The study of steadiness: how far trees of nearly the same rows agree, beside other models."""

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.model_selection import train_test_split

from evotree.configuration import CONSTANT
from evotree.estimators import EvoTreeClassifier
from experiments import suites
from experiments.methods import chosen
from experiments.methods.chosen import ChosenClassifier
from experiments.methods.classifiers import CART, EVOTREE, LOGISTIC, tuned_logistic
from experiments.study import ClassesProtocol, Results, Study, define
from experiments.tables import comparison, figures_of

SHARE = 0.9
"""The share of the training rows that each model of a pair is fitted to."""
N_PAIRS = 10
TREE = f"{EVOTREE}, trees alone"
FIGURES = {
    "agreement": ("agreement", 100.0, 1),
    "accuracy": ("accuracy", 100.0, 1),
    "complexity": ("complexity", 1.0, 1),
}


class Pair(MetaEstimatorMixin, ClassifierMixin, BaseEstimator):
    """Two models of the same kind, each of random nine tenths of the rows; the first predicts."""

    def __init__(self, estimator: Any, random_state: int = 0) -> None:
        self.estimator = estimator
        self.random_state = random_state

    def fit(self, X: np.ndarray, y: np.ndarray) -> Self:
        """Fit both models; draws are stratified."""
        self.classes_ = np.unique(y)
        models = []
        for which in range(2):
            part, _, labels, _ = train_test_split(
                X,
                y,
                train_size=SHARE,
                stratify=y if np.unique(y, return_counts=True)[1].min() > 1 else None,
                random_state=2 * self.random_state + which,
            )
            models.append(clone(self.estimator).fit(part, labels))
        self.best_estimator_, self.other_ = models
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Return what the first model predicts."""
        return self.best_estimator_.predict(X)


def agreement(pair: Pair, X: np.ndarray, y: np.ndarray) -> float:
    """Return the share of rows for which both models predict the same."""
    return float(np.mean(pair.best_estimator_.predict(X) == pair.other_.predict(X)))


METHODS = {
    EVOTREE: Pair(EvoTreeClassifier(random_state=0)),
    TREE: Pair(EvoTreeClassifier(leaves=CONSTANT, random_state=0)),
    CART: Pair(ChosenClassifier(chosen.pruned_cart)),
    LOGISTIC: Pair(ChosenClassifier(tuned_logistic)),
}
DATASETS = (*suites.TINY, *suites.SMALL, *suites.NEVER_CHOSEN_ON)
EXPERIMENT = define(
    "steady",
    DATASETS,
    METHODS,
    ClassesProtocol(N_PAIRS),
    scorers={"agreement": agreement},
)


def report(results: Results) -> dict[str, Any]:
    """Return the means and differences."""
    means = figures_of(results.runs, FIGURES, DATASETS, [*METHODS], N_PAIRS)
    duels = {name: means[name] for name in ("agreement", "accuracy")}
    return comparison(means, FIGURES, EVOTREE, duels)


STUDY = Study(EXPERIMENT, report)
