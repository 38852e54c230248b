"""The study of objectives: trees evolved for a score beside others, on imbalanced classes.

Of each data set the rarest class is told from all others. A tree that is evolved for a score is
compared by that score with a tree evolved for the accuracy, with CART whose classes weigh the same
and whose pruning is chosen by the score, and with a random forest whose threshold is.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import ClassifierMixin
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import TunedThresholdClassifierCV

from evotree.estimators import EvoTreeClassifier
from evotree.experiments.datasets import LoadedData
from experiments.methods.chosen import ChosenClassifier, folds_of, pruned_cart
from experiments.probabilities import clipped_log_loss
from experiments.study import Results, Study, StudyProtocol, define
from experiments.tables import table

SCORES: Mapping[str, str] = {
    "balanced_accuracy": "balanced_accuracy",
    "f1": "f1",
    "mcc": "matthews_corrcoef",
    "roc_auc": "roc_auc",
    "log_loss": "neg_log_loss",
    "brier": "neg_brier_score",
}
"""Names of scikit-learn's scorers, by objectives."""
# The objectives that a threshold matters to.
OF_LABELS = (
    "balanced_accuracy",
    "f1",
    "mcc",
)
DATASETS = (
    *("page-blocks", "thyroid", "cardiotocography-10", "car", "wall-following", "sick"),
    *("balance-scale", "climate-crashes", "satimage", "optdigits"),
)
"""Those of up to 10,000 rows whose rarest class has the least share, and at least 25 rows."""
N_FOLDS = 3
N_TREES = 200
EVOTREE, CART, FOREST = "EvoTree", "CART", "Forest"


@dataclass(frozen=True)
class RarestProtocol(StudyProtocol):
    """Folds of data sets whose rarest class is 1, all others 0."""

    def load(self, dataset: str, data_home: Path | None) -> LoadedData:
        """Return a data set of two classes."""
        data = super().load(dataset, data_home)
        labels, counts = np.unique(data.y, return_counts=True)
        return replace(data, y=(data.y == labels[counts.argmin()]).astype(np.int64))


def threshold_forest(
    X: np.ndarray, codes: np.ndarray, random_state: int, scoring: str
) -> Any:
    """Return a random forest whose threshold is the one that folds score best."""
    forest = RandomForestClassifier(N_TREES, random_state=random_state)
    folds = folds_of(codes, N_FOLDS, random_state)
    return TunedThresholdClassifierCV(forest, scoring=scoring, cv=folds).fit(X, codes)


def make_methods() -> dict[str, ClassifierMixin]:
    """Return the methods by name: what they are, and what they are made for."""
    methods: dict[str, ClassifierMixin] = {EVOTREE: EvoTreeClassifier()}
    for objective, scoring in SCORES.items():
        methods[f"{EVOTREE} {objective}"] = EvoTreeClassifier(objective=objective)
        balanced = partial(pruned_cart, scoring=scoring, class_weight="balanced")
        methods[f"{CART} {objective}"] = ChosenClassifier(balanced)
        if objective in OF_LABELS:
            forest = partial(threshold_forest, scoring=scoring)
            methods[f"{FOREST} {objective}"] = ChosenClassifier(forest)
    return methods | {FOREST: RandomForestClassifier(N_TREES)}


EXPERIMENT = define(
    "objectives",
    DATASETS,
    make_methods(),
    RarestProtocol(n_folds=N_FOLDS),
    metrics=("accuracy", *(name for name in SCORES.values() if name != "neg_log_loss")),
    scorers={"log_loss": clipped_log_loss},
    warm_up=False,
)


def other_methods(objective: str) -> dict[str, str]:
    """Return the methods that are compared by an objective, by what they are called there."""
    return {
        "evolved for it": f"{EVOTREE} {objective}",
        "evolved for accuracy": EVOTREE,
        "CART, balanced": f"{CART} {objective}",
        "forest": f"{FOREST} {objective}" if objective in OF_LABELS else FOREST,
    }


def scores_of(runs: pd.DataFrame, objective: str) -> pd.DataFrame:
    """Return the mean scores by data set, greater being better, of those that all methods have."""
    names = other_methods(objective)
    is_loss = objective == "log_loss"
    column = objective if is_loss else SCORES[objective]
    means = runs.groupby(["dataset", "method"])[column].mean().unstack()
    scores = (
        means.reindex(columns=list(names.values()))
        .set_axis(list(names), axis=1)
        .dropna()
    )
    scores = scores.reindex([name for name in DATASETS if name in scores.index])
    return -scores if is_loss else scores


def summary_row(scores: pd.DataFrame, objective: str) -> dict[str, str]:
    """Return on how many data sets a tree evolved for a score is the best tree."""
    ours = scores["evolved for it"]
    trees = scores[["evolved for accuracy", "CART, balanced"]]
    row = {"objective": objective}
    row["best single tree"] = (
        f"{int((ours >= trees.max(axis=1) - 1e-12).sum())} of {len(ours)}"
    )
    for name in scores.columns[1:]:
        row[f"at or above {name}"] = f"{int((ours >= scores[name] - 1e-12).sum())}"
    return row | {f"mean: {name}": f"{scores[name].mean():.4f}" for name in scores}


def report(results: Results) -> dict[str, Any]:
    """Return the table of the objectives."""
    scores = {objective: scores_of(results.runs, objective) for objective in SCORES}
    return {
        "summary": table(
            summary_row(of, name) for name, of in scores.items() if len(of)
        )
    }


STUDY = Study(EXPERIMENT, report)
