"""The study of probabilities: how far those of a tree can be trusted, beside other models'.

Soft sides and the shares of leaves are of the same trees, fitted once.

References
----------
Zadrozny B., Elkan C. (2002). Transforming classifier scores into accurate multiclass probability
estimates. Proceedings of the eighth ACM SIGKDD conference, 694-699.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
from sklearn.calibration import CalibratedClassifierCV

from evotree.estimators import EvoTreeClassifier
from evotree.experiments.experiment import Experiment
from evotree.experiments.markdown import markdown_table
from evotree.experiments.probabilities import (
    LEAST,
    N_BINS,
    auc,
    brier,
    calibration_error,
    clipped_log_loss,
)
from evotree.experiments.protocols import Task, stratified_folds
from evotree.experiments.studies.means import fold_means
from evotree.experiments.studies.peers import Wrapper
from evotree.experiments.studies.study import Results, Study, StudyProtocol
from evotree.experiments.studies.suites import N_FOLDS, SMALL, TINY
from evotree.experiments.studies.systems import (
    CART,
    EVOTREE,
    FOREST,
    LOGISTIC,
    N_TREES,
    TUNING_FOLDS,
    PrunedTree,
    make_systems,
)

TUNED_ON = ("wdbc", "pima", "heart", "iris", "wine", "vehicle", "glass", "sonar")
"""The data sets on which the form of soft sides and their constants were chosen."""
DATASETS = (*TINY, *SMALL, "hepatitis", "thyroid", "sick", "segment", "credit-g", "satimage")
CONFIRMED_ON = tuple(name for name in DATASETS if name not in TUNED_ON)

ISOTONIC = f"{CART}, isotonic"
METHODS = (EVOTREE, ISOTONIC, LOGISTIC, FOREST)
SHARES, MOST_PROBABLE = f"{EVOTREE}, shares of leaves", f"{EVOTREE}, most probable class"
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
"""The columns of the summary: what they are called in the rows, their unit, and their decimals."""


class IsotonicTree(Wrapper):
    """CART, pruned as in the benchmark, its probabilities calibrated by isotonic regression.

    Parameters
    ----------
    random_state : int, default=0
        Seed of the tree and of the folds.
    """

    def find(self, X: np.ndarray, codes: np.ndarray) -> Any:
        """Choose the penalty, and fit trees and their calibration by folds."""
        tree = PrunedTree(random_state=self.random_state).find(X, codes)
        folds = stratified_folds(codes, TUNING_FOLDS, self.random_state)
        return CalibratedClassifierCV(tree, method="isotonic", cv=folds).fit(X, codes)


def of_shares(score: Score, model: Any, X: np.ndarray, y: np.ndarray) -> float:
    """Return the score of the shares of leaves of a tree that has soft sides."""
    if not isinstance(model, EvoTreeClassifier):
        return float("nan")
    plain = SimpleNamespace(classes_=model.classes_, predict_proba=model.tree_.predict_value)
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


def make_experiment() -> Experiment:
    """Return the fits of the study, data set by data set."""
    systems = make_systems() | {EVOTREE: EvoTreeClassifier(), ISOTONIC: IsotonicTree()}
    every = {"accuracy": accuracy, **SCORES}
    scorers: dict[str, Score] = {
        **SCORES,
        **{f"shares_{name}": partial(of_shares, score) for name, score in every.items()},
        **{f"mixed_{name}": partial(of_mixture, score) for name, score in every.items()},
    }
    return Experiment(
        "probabilities",
        list(DATASETS),
        {name: systems[name] for name in METHODS},
        StudyProtocol(N_FOLDS),
        metrics=("accuracy",),
        scorers=scorers,
        plan=[
            Task(dataset, method, fold, 0)
            for dataset in DATASETS
            for method in METHODS
            for fold in range(N_FOLDS)
        ],
        curve=None,
        warm_up=True,
    )


# ---- report --------------------------------------------------------------------------------------


def with_variants(runs: pd.DataFrame) -> pd.DataFrame:
    """Add the other probabilities of the same trees as rows of methods of their own."""
    parts = [runs]
    of_trees = runs[runs["method"] == EVOTREE]
    for method, prefix in ((SHARES, "shares_"), (MOST_PROBABLE, "mixed_")):
        columns = {name: of_trees[f"{prefix}{name}"] for name, _, _ in FIGURES.values()}
        parts.append(of_trees.assign(method=method, **columns))
    return pd.concat(parts, ignore_index=True)


def summary_table(runs: pd.DataFrame, datasets: tuple[str, ...]) -> str:
    """Return means over data sets that all methods have, in Markdown."""
    tables = {
        title: unit * fold_means(runs, column, datasets, SHOWN).dropna()
        for title, (column, unit, _) in FIGURES.items()
    }
    rows = [
        {"method": str(method)}
        | {title: f"{tables[title][method].mean():.{FIGURES[title][-1]}f}" for title in FIGURES}
        for method in tables["accuracy"]
    ]
    return f"{len(tables['accuracy'])} data sets:\n\n{markdown_table(pd.DataFrame(rows))}"


def cells_table(runs: pd.DataFrame, title: str) -> str:
    """Return a figure of data sets and methods in Markdown."""
    column, unit, decimals = FIGURES[title]
    means = unit * fold_means(runs, column, DATASETS, SHOWN)
    rows = [
        {"data set": str(name)} | {str(m): f"{value:.{decimals}f}" for m, value in row.items()}
        for name, row in means.iterrows()
    ]
    return markdown_table(pd.DataFrame(rows))


def write(results: Results) -> str:
    """Return the report."""
    runs = with_variants(results.runs)
    cells = "\n\n".join(f"## {title}\n\n{cells_table(runs, title)}" for title in FIGURES)
    return f"""# Probabilities

Written by `evotree experiment study probabilities --data-home DIR --out docs/results`, from the
rows in `probabilities_runs.csv`: {results.planned} fits.

Stratified {N_FOLDS}-fold cross-validation, once, the same folds for all methods; means over folds
of test rows. AUC is of each class against the others, weighted by its rows; log loss is in nats,
and probabilities below {LEAST:g} count as {LEAST:g} in it; the Brier score sums over classes. The
calibration error is the expected one of the most probable class, in {N_BINS} bins of equal width,
in percent; of few test rows it is above 0 even where probabilities are right. Accuracy and AUC are
in percent too.

{EVOTREE} is `EvoTreeClassifier` as it comes, with soft sides. {SHARES} has the class
shares of the leaves of the same trees (`probability="leaf"`), and {MOST_PROBABLE}
the same soft sides without the last step, which raises the class that the tree predicts above the
others: its accuracy is what `predict` would have, if it took the most probable class.
{ISOTONIC} is scikit-learn's tree, pruned as in the benchmark, calibrated by
`CalibratedClassifierCV` with isotonic regression and {TUNING_FOLDS} folds; {LOGISTIC} is the
benchmark's logistic regression, {FOREST} a random forest of {N_TREES} trees.

## Summary

The form of soft sides and their constants were chosen on these,
{summary_table(runs, TUNED_ON)}

and confirmed on the others, {summary_table(runs, CONFIRMED_ON)}

{cells}
"""


STUDY = Study(
    "probabilities",
    f"probabilities of trees and other models on {len(DATASETS)} data sets",
    make_experiment,
    write,
)
