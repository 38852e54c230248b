"""The study of objectives: trees evolved for a score beside others, on imbalanced classes.

Of each data set the rarest class is told from all others. A tree that is evolved for a score is
compared by that score with a tree evolved for the accuracy, with CART whose classes weigh the same
and whose pruning is chosen by the score, and with a random forest whose threshold is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import ClassifierMixin
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import GridSearchCV, TunedThresholdClassifierCV
from sklearn.tree import DecisionTreeClassifier

from evotree.estimators import EvoTreeClassifier
from evotree.experiments.datasets import LoadedData
from evotree.experiments.experiment import Experiment
from evotree.experiments.markdown import markdown_table
from evotree.experiments.probabilities import clipped_log_loss
from evotree.experiments.protocols import stratified_folds
from evotree.experiments.studies.peers import Wrapper
from evotree.experiments.studies.study import Results, Study, StudyProtocol

SCORES: Mapping[str, str] = {
    "balanced_accuracy": "balanced_accuracy",
    "f1": "f1",
    "mcc": "matthews_corrcoef",
    "roc_auc": "roc_auc",
    "log_loss": "neg_log_loss",
    "brier": "neg_brier_score",
}
"""Names of scikit-learn's scorers, by objectives."""
OF_LABELS = ("balanced_accuracy", "f1", "mcc")
"""The objectives that a threshold matters to."""
COLUMNS: Mapping[str, str] = {**SCORES, "log_loss": "log_loss"}
"""The columns of the rows, by objectives."""
LOSSES = ("log_loss",)
"""Of which less is better."""
DATASETS = (
    "page-blocks",
    "thyroid",
    "cardiotocography-10",
    "car",
    "wall-following",
    "sick",
    "balance-scale",
    "climate-crashes",
    "satimage",
    "optdigits",
)
"""Those of up to 10,000 rows whose rarest class has the least share, and at least 25 rows."""
N_FOLDS = 3
N_TREES = 200
TUNING_FOLDS = 5
MAX_ALPHAS = 30
EVOTREE, CART, FOREST = "EvoTree", "CART", "Forest"


@dataclass(frozen=True)
class RarestProtocol(StudyProtocol):
    """Folds of data sets whose rarest class is 1, all others 0."""

    def load(self, dataset: str, data_home: Path | None) -> LoadedData:
        """Return a data set of two classes."""
        data = super().load(dataset, data_home)
        labels, counts = np.unique(data.y, return_counts=True)
        return replace(data, y=(data.y == labels[counts.argmin()]).astype(np.int64))


class BalancedTree(Wrapper):
    """CART with balanced classes, pruned by the cost-complexity that folds score best.

    Parameters
    ----------
    scoring : str
        Name of the score.
    random_state : int, default=0
        Seed of the tree and of the folds.
    """

    def __init__(self, scoring: str = "balanced_accuracy", random_state: int = 0) -> None:
        self.scoring = scoring
        self.random_state = random_state

    def find(self, X: np.ndarray, codes: np.ndarray) -> Any:
        """Choose the penalty and fit on all rows."""
        tree = DecisionTreeClassifier(class_weight="balanced", random_state=self.random_state)
        path = np.unique(np.maximum(tree.cost_complexity_pruning_path(X, codes).ccp_alphas, 0.0))
        shares = np.linspace(0.0, 1.0, min(len(path), MAX_ALPHAS))
        alphas = np.quantile(path, shares, method="nearest")[::-1]
        folds = stratified_folds(codes, TUNING_FOLDS, self.random_state)
        search = GridSearchCV(tree, {"ccp_alpha": alphas}, cv=folds, scoring=self.scoring)
        return search.fit(X, codes).best_estimator_


class ThresholdForest(Wrapper):
    """A random forest whose threshold is the one that folds score best.

    Parameters
    ----------
    scoring : str
        Name of the score.
    random_state : int, default=0
        Seed of the forests and of the folds.
    """

    def __init__(self, scoring: str = "balanced_accuracy", random_state: int = 0) -> None:
        self.scoring = scoring
        self.random_state = random_state

    def find(self, X: np.ndarray, codes: np.ndarray) -> Any:
        """Choose the threshold and fit on all rows."""
        forest = RandomForestClassifier(N_TREES, random_state=self.random_state)
        folds = stratified_folds(codes, N_FOLDS, self.random_state)
        return TunedThresholdClassifierCV(forest, scoring=self.scoring, cv=folds).fit(X, codes)


def make_methods() -> dict[str, ClassifierMixin]:
    """Return the methods by name: what they are, and what they are made for."""
    methods: dict[str, ClassifierMixin] = {EVOTREE: EvoTreeClassifier()}
    for objective, scoring in SCORES.items():
        methods[f"{EVOTREE} {objective}"] = EvoTreeClassifier(objective=objective)
        methods[f"{CART} {objective}"] = BalancedTree(scoring)
        if objective in OF_LABELS:
            methods[f"{FOREST} {objective}"] = ThresholdForest(scoring)
    return methods | {FOREST: RandomForestClassifier(N_TREES)}


def make_experiment() -> Experiment:
    """Return the fits of the study."""
    return Experiment(
        "objectives",
        DATASETS,
        make_methods(),
        RarestProtocol(n_folds=N_FOLDS),
        metrics=("accuracy", *(name for name in SCORES.values() if name != "neg_log_loss")),
        scorers={"log_loss": clipped_log_loss},
        curve=None,
    )


# ---- report --------------------------------------------------------------------------------------


def rivals(objective: str) -> dict[str, str]:
    """Return the methods that are compared by an objective, by what they are called there."""
    forest = f"{FOREST} {objective}" if objective in OF_LABELS else FOREST
    return {
        "evolved for it": f"{EVOTREE} {objective}",
        "evolved for accuracy": EVOTREE,
        "CART, balanced": f"{CART} {objective}",
        "forest": forest,
    }


def scores_of(runs: pd.DataFrame, objective: str) -> pd.DataFrame:
    """Return the mean scores by data set, greater being better, of those that all methods have."""
    names = rivals(objective)
    means = runs.groupby(["dataset", "method"])[COLUMNS[objective]].mean().unstack()
    found = means.reindex(columns=list(names.values())).set_axis(list(names), axis=1).dropna()
    found = found.reindex([name for name in DATASETS if name in found.index])
    return -found if objective in LOSSES else found


def summary_table(runs: pd.DataFrame) -> str:
    """Return on how many data sets a tree evolved for a score is the best tree, in Markdown."""
    rows = []
    for objective in SCORES:
        found = scores_of(runs, objective)
        if found.empty:
            continue
        ours, trees = found["evolved for it"], found[["evolved for accuracy", "CART, balanced"]]
        row = {"objective": objective}
        row["best single tree"] = f"{int((ours >= trees.max(axis=1) - 1e-12).sum())} of {len(ours)}"
        for name in found.columns[1:]:
            row[f"at or above {name}"] = f"{int((ours >= found[name] - 1e-12).sum())}"
        row |= {f"mean: {name}": f"{found[name].mean():.4f}" for name in found}
        rows.append(row)
    return markdown_table(pd.DataFrame(rows))


def scores_table(runs: pd.DataFrame, objective: str) -> str:
    """Return the mean scores of an objective and the sizes of the trees, in Markdown."""
    sizes = runs.groupby(["dataset", "method"])[["leaves", "terms"]].mean()
    rows = []
    for dataset, scores in scores_of(runs, objective).iterrows():
        row = {"data set": str(dataset), **{name: f"{value:.4f}" for name, value in scores.items()}}
        for name in ("evolved for it", "CART, balanced"):
            leaves = sizes.loc[(dataset, rivals(objective)[name]), "leaves"]
            row[f"leaves, {name}"] = f"{leaves:.1f}"
        rows.append(row)
    return markdown_table(pd.DataFrame(rows))


def write(results: Results) -> str:
    """Return the report."""
    runs = results.runs
    tables = "\n\n".join(
        f"## {objective}\n\n{scores_table(runs, objective)}"
        for objective in SCORES
        if not scores_of(runs, objective).empty
    )
    return f"""# Objectives

Written by `evotree experiment study objectives --data-home DIR --out docs/results`, from the rows
in `objectives_runs.csv`: {results.planned} fits, {N_FOLDS} stratified folds.

The data sets are the ten of up to 10,000 rows whose rarest class has the least share, of those with
25 rows of it: {", ".join(DATASETS)}. That class is told from all others.

On how many data sets a tree that is evolved for a score has the best test score of the three single
trees, and the means over data sets; losses have the opposite sign:

{summary_table(runs)}

CART weighs the classes alike (`class_weight="balanced"`), and folds choose its pruning by the same
score. The forest has {N_TREES} trees; where the score is one of labels, folds choose its threshold
(`TunedThresholdClassifierCV`). `log_loss` counts probabilities below .001 as .001.

{tables}
"""


STUDY = Study(
    "objectives",
    "trees evolved for six scores on ten imbalanced data sets, beside CART and forests",
    make_experiment,
    write,
)
