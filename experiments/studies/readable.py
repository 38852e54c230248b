"""The study of readable trees: accuracy at every complexity."""

import math
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from evotree.estimators import EvoTreeClassifier
from evotree.experiments.protocols import Task
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
from experiments.tables import cells_table, differences_table, fold_means, table

EVOTREE, CART = "EvoTree", "CART"
LOGISTIC, STREED = "L1 logistic", "STreeD"
METHODS = (CART, "Linear", "TAO", LOGISTIC, STREED, EVOTREE)
LARGEST = ("nursery", "avila", "pendigits", "dry-bean", "letter", "usps")
TOO_LONG = {
    CART: ("letter", "usps"),
    "Linear": ("usps",),
    "TAO": ("avila", "dna", "pendigits", "dry-bean", "letter", "usps"),
    **dict.fromkeys((LOGISTIC, STREED, EVOTREE), LARGEST),
}
"""The data sets on which methods were not run."""
AREA_BUDGETS = tuple(
    round(float(b), 1) for b in np.geomspace(BUDGETS[0], BUDGETS[-1], 9)
)
"""The mean of the accuracies at these budgets is the area under a method's front."""
ACCURACIES = {str(budget): f"accuracy_{budget}" for budget in BUDGETS} | {
    "best": "accuracy"
}
"""Columns of the accuracies at each budget and of the best, by title."""


SIZES = {"complexity": "complexity", "terms": "n_terms", "leaves": "n_leaves"}
"""Attributes of trees, by columns."""


def size_within(model: Any, size: str, budget: float) -> int:
    """Return a size of the tree that a method chooses within a budget."""
    return int(getattr(tree_within(model, budget), size))


def accuracy_within(model: Any, X: np.ndarray, y: np.ndarray, budget: float) -> float:
    """Return the accuracy of the tree that a method chooses within a budget."""
    return float(np.mean(predict_within(model, X, budget) == y))


def area(model: Any, X: np.ndarray, y: np.ndarray) -> float:
    """Return the mean accuracy at `AREA_BUDGETS`, which are even on a logarithmic scale."""
    return float(
        np.mean([accuracy_within(model, X, y, budget) for budget in AREA_BUDGETS])
    )


def held_out_within(model: Any, budget: float) -> float | None:
    """Return what a line of the menu, or of the fit's choice, says that its tree loses."""
    if not isinstance(model, EvoTreeClassifier) or model.choice_ is None:
        return None
    tree = tree_within(model, budget)
    before = max((bound for bound in MENU if bound < budget), default=0)
    if not math.isinf(budget) and (
        tree == model.tree_ or tree.complexity <= before  # so that it has no such line
    ):
        return None
    judged = model.choice_.judged()
    return judged.get((tree.n_leaves, tree.n_terms), (None,))[0]


def lost_within(model: Any, X: np.ndarray, y: np.ndarray, budget: float) -> float:
    """Return the loss of probabilities of the tree of `held_out_within` on other rows."""
    if held_out_within(model, budget) is None:
        return np.nan
    shares = model.predict_proba(X, tree_within(model, budget))
    codes = np.searchsorted(model.classes_, y)
    lost = PROBABILITY_LOSSES[model.choice_.loss](shares, codes, np.ones(len(y)))
    return float(lost.mean())


RIVALS = (trees.CART, trees.LINEAR, trees.TAO, trees.LOGISTIC, trees.STREED)
MADE = (*RIVALS, EvoTreeClassifier())
LINES = {**{str(bound): float(bound) for bound in MENU}, "chosen": math.inf}
"""Lines of the menu by their complexity, and the one of the tree that a fit has chosen."""
EXPERIMENT = define(
    "readable",
    THIRTY,
    dict(zip(METHODS, MADE, strict=True)),
    ClassesProtocol(N_FOLDS),
    scorers={
        "area": area,
        **{
            f"accuracy_{budget}": partial(accuracy_within, budget=budget)
            for budget in BUDGETS
        },
        **{
            f"lost_{line}": partial(lost_within, budget=budget)
            for line, budget in LINES.items()
        },
    },
    measures={
        **{
            f"{column}_{budget}": partial(size_within, size=size, budget=budget)
            for budget, (column, size) in product(BUDGETS, SIZES.items())
        },
        **{
            f"held_out_{line}": partial(held_out_within, budget=budget)
            for line, budget in LINES.items()
        },
    },
    plan=[
        Task(dataset, method, fold, 0)
        for dataset, method, fold in product(THIRTY, METHODS, range(N_FOLDS))
        if dataset not in TOO_LONG.get(method, ())
    ],
)


def means_of(runs: pd.DataFrame, column: str) -> pd.DataFrame:
    """Return means over folds; of scores in percent."""
    is_size = column.partition("_")[0] in SIZES
    return (1.0 if is_size else 100.0) * fold_means(runs, column, THIRTY, METHODS)


def budgets_table(runs: pd.DataFrame) -> str:
    """Return mean accuracies at the budgets, each method over its own data sets."""
    columns = {**ACCURACIES, "area": "area", "its complexity": "complexity"}
    means = {title: means_of(runs, column) for title, column in columns.items()}
    rows = []
    for method, n_sets in means["best"].notna().sum().items():
        row = {"method": str(method), "data sets": str(n_sets)}
        row |= {
            title: f"{values[method].mean():,.2f}" for title, values in means.items()
        }
        rows.append(row)
    return table(rows)


def draw_fronts(runs: pd.DataFrame, path: Path) -> int:
    """Draw mean accuracies against mean complexities; return of how many data sets."""
    common = means_of(runs, "complexity").dropna().index
    sizes = {
        title: column.replace("accuracy", "complexity")
        for title, column in ACCURACIES.items()
    }
    x, y = (
        pd.DataFrame(
            {t: means_of(runs, column).loc[common].mean() for t, column in of.items()}
        )
        for of in (sizes, ACCURACIES)
    )
    if len(common):
        of = f"mean of {len(common)} of {len(THIRTY)} data sets"
        save_picture(plot_accuracy_at_budgets(x, y, xlabel=f"complexity ({of})"), path)
    return len(common)


def report(results: Results) -> dict[str, Any]:
    """Return the tables, and draw the picture."""
    runs = results.runs
    out = results.out
    accuracies = {title: means_of(runs, column) for title, column in ACCURACIES.items()}
    return {
        "n_common": draw_fronts(runs, out / "readable_fronts.png"),
        "budgets": budgets_table(runs),
        "duels": differences_table(accuracies, EVOTREE, means_of(runs, "complexity")),
        "cells": cells_table(accuracies["20"], ".1f", bold=METHODS, missing=""),
    }


STUDY = Study(EXPERIMENT, report)
