"""The study of readable trees: accuracy at every complexity."""

import math
from collections.abc import Mapping
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import pandas as pd

from evotree.estimators import EvoTreeClassifier
from evotree.fitness.probabilities import PROBABILITY_LOSSES
from evotree.front import MENU
from evotree.plotting.style import save_picture
from experiments.methods import trees
from experiments.methods.trees import (
    BUDGETS,
    predict_within,
    tree_within,
)
from experiments.pictures import plot_accuracy_at_budgets
from experiments.study import ClassesProtocol, Results, Study, define
from experiments.suites import N_FOLDS, THIRTY
from experiments.tables import (
    LOSS,
    cells_table,
    differences_table,
    fold_means,
    paired,
    shown,
    table,
)

EVOTREE = "EvoTree"
METHODS = {
    "CART": trees.CART,
    "TAO": trees.TAO,
    "L1 logistic": trees.LOGISTIC,
    "STreeD": trees.STREED,
    EVOTREE: EvoTreeClassifier(),
}
LEFT_OUT = ("nursery", "avila", "dna", "pendigits", "dry-bean", "letter", "usps")
"""The data sets that take longest."""
DATASETS = tuple(name for name in THIRTY if name not in LEFT_OUT)
ACCURACIES = {str(budget): f"accuracy_{budget}" for budget in BUDGETS} | {
    "best": "accuracy"
}
"""Columns of the accuracies at each budget and of the best, by title."""
LINES = {**{str(bound): float(bound) for bound in MENU}, "chosen": math.inf}
"""Lines of the menu by their complexity, and the one of the tree that a fit has chosen."""


def size_within(model: Any, budget: float) -> int:
    """Return the complexity of the tree that a method chooses within a budget."""
    return int(tree_within(model, budget).complexity)


def accuracy_within(model: Any, X: np.ndarray, y: np.ndarray, budget: float) -> float:
    """Return the accuracy of the tree that a method chooses within a budget."""
    return float(np.mean(predict_within(model, X, budget) == y))


def loss_of_line(
    model: Any, X: np.ndarray, y: np.ndarray, budget: float, is_held_out: bool
) -> float:
    """Return what a line of the menu says that its tree loses, or what that loses on rows.

    NaN where there is no such line: the tree of this complexity is that of a line before, or the
    one that the fit has chosen.
    """
    choice: Any = getattr(model, "choice_", None)
    tree = tree_within(model, budget)
    known = {} if choice is None else choice.judged()
    size = tree.n_leaves, tree.n_terms
    before = max((bound for bound in MENU if bound < budget), default=0)
    is_line = tree.complexity > before and tree != model.tree_
    if size not in known or not (is_line or math.isinf(budget)):
        return math.nan
    if is_held_out:
        return known[size][0]
    shares = model.predict_proba(X, tree)
    codes = np.searchsorted(model.classes_, y)
    return float(PROBABILITY_LOSSES[choice.loss](shares, codes, np.ones(len(y))).mean())


EXPERIMENT = define(
    "readable",
    DATASETS,
    METHODS,
    ClassesProtocol(N_FOLDS),
    scorers={
        **{
            f"accuracy_{budget}": partial(accuracy_within, budget=budget)
            for budget in BUDGETS
        },
        **{
            f"{name}_{line}": partial(
                loss_of_line, budget=budget, is_held_out=name == "held_out"
            )
            for name, (line, budget) in product(("held_out", "lost"), LINES.items())
        },
    },
    measures={
        f"complexity_{budget}": partial(size_within, budget=budget)
        for budget in BUDGETS
    },
)


def means_of(runs: pd.DataFrame, column: str) -> pd.DataFrame:
    """Return means over folds, on the data sets that all methods have; of scores in percent."""
    unit = 1.0 if column.startswith("complexity") else 100.0
    return unit * fold_means(runs, column, DATASETS, METHODS).dropna()


def budgets_table(
    accuracies: Mapping[str, pd.DataFrame], sizes: Mapping[str, pd.DataFrame]
) -> str:
    """Return mean accuracies at the budgets, and the mean complexity of the best trees."""
    means = {title: values.mean() for title, values in accuracies.items()}
    means["its complexity"] = sizes["best"].mean()
    shown_means = pd.DataFrame(means).map("{:,.2f}".format)
    return table(shown_means.rename_axis("method").reset_index().to_dict("records"))


def ties_of(accuracies: Mapping[str, pd.DataFrame]) -> str:
    """Return at which budgets EvoTree is not above a method by two standard errors, in words."""
    parts = []
    for title, means in accuracies.items():
        own = means.get(EVOTREE, np.nan)
        gains = means.rsub(own, axis=0).drop(columns=EVOTREE, errors="ignore")
        close = gains.columns[gains.mean() < 2.0 * gains.sem()]
        if len(close):
            parts.append(f"{title}: {', '.join(close)}")
    return "; ".join(parts) or "nowhere"


def menu_table(runs: pd.DataFrame) -> str:
    """Return what the lines of the menu say beside what their trees lose on test rows."""
    own = runs[runs["method"] == EVOTREE].set_index("dataset")
    rows = []
    for line in LINES:
        columns = [f"{name}_{line}" for name in ("held_out", "lost")]
        both = own.reindex(columns=columns).astype(float).dropna()
        means = both.groupby("dataset").mean()
        said, lost = means.mean()
        rows.append(
            {
                "complexity": line,
                "fits": f"{len(both)}",
                "data sets": f"{len(means)}",
                "held-out log loss": shown(said, ".3f"),
                "on test rows": shown(lost, ".3f"),
                "difference": paired(means[columns[1]] - means[columns[0]], LOSS),
            }
        )
    return table(rows)


def report(results: Results) -> dict[str, Any]:
    """Return the tables, and draw the picture."""
    runs, picture = results.runs, results.out / "readable_fronts.png"
    accuracies = {title: means_of(runs, column) for title, column in ACCURACIES.items()}
    sizes = {
        title: means_of(runs, column.replace("accuracy", "complexity"))
        for title, column in ACCURACIES.items()
    }
    x, y = (
        pd.DataFrame({title: values.mean() for title, values in of.items()}).dropna()
        for of in (sizes, accuracies)
    )
    save_picture(plot_accuracy_at_budgets(x, y), picture)
    return {
        "done": list(accuracies["best"].index),
        "budgets": budgets_table(accuracies, sizes),
        "duels": differences_table(accuracies, EVOTREE, sizes["best"]),
        "ties": ties_of(accuracies),
        "menu": menu_table(runs),
        "cells": cells_table(accuracies["20"], ".1f", bold=METHODS, missing=""),
    }


STUDY = Study(EXPERIMENT, report)
