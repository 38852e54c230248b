"""The study of readable trees: accuracy at every complexity, and what evolution is worth.

A picture or a printed tree is made where it is missing.

References
----------
Breiman L., Friedman J. H., Olshen R. A., Stone C. J. (1984). Classification and Regression Trees.
Wadsworth.

Carreira-Perpiñán M. Á., Tavallali P. (2018). Alternating optimization of decision trees, with
application to learning sparse oblique trees. Advances in Neural Information Processing Systems.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import ClassifierMixin, clone

from evotree.estimators import EvoTreeClassifier
from evotree.experiments.experiment import Experiment
from evotree.experiments.pictures import save_picture
from evotree.experiments.protocols import stratified_folds
from evotree.experiments.rows import read_rows
from evotree.export.text import export_text
from evotree.plotting import plot_tree
from evotree.tables.columns import encode, feature_names, fit_columns
from experiments.methods import trees
from experiments.methods.trees import (
    BUDGETS,
    RestartsClassifier,
    fitness_of_best,
    predict_within,
    tree_within,
)
from experiments.pictures import plot_accuracy_at_budgets
from experiments.study import ClassesProtocol, Results, Study, plan_folds
from experiments.suites import N_FOLDS, SLOW, THIRTY
from experiments.tables import (
    NOT_RUN,
    TIE,
    cells_table,
    differences_table,
    fold_means,
    named,
    paired,
    shown,
    table,
)

EVOTREE, CART, PAIRS = "EvoTree", "CART", "obliquetree"
SEARCH, RESTARTS, SEEDS = "search", "restarts", "seeds"
WORTH = (SEARCH, RESTARTS, SEEDS)
"""The methods that show what evolution is worth."""
WIDTHS = {EVOTREE: None, "EvoTree 3": 3, "EvoTree 2": 2, "EvoTree 1": 1}
"""The bounds on the features of a split."""
METHODS = (CART, "Linear", "STree", "TAO", PAIRS, *WIDTHS, *WORTH)
SECONDS = 10.0
"""Of a fit of each of `WORTH`, at most."""
AREA_BUDGETS = tuple(round(float(b), 1) for b in np.geomspace(BUDGETS[0], BUDGETS[-1], 9))
"""The mean of the accuracies at these budgets is the area under a method's front."""
PRINTED = ("sick", "heart", "wdbc", "vehicle", "wall-following")
"""The data sets whose trees are shown."""
ACCURACIES = {str(budget): f"accuracy_{budget}" for budget in BUDGETS} | {"best": "accuracy"}
"""Columns of the accuracies at each budget and of the best, by title."""
WORTH_FIGURES = {f"accuracy at {budget}": f"accuracy_{budget}" for budget in (10, 20, 40)} | {
    "area": "area",
    "accuracy of the best": "accuracy",
    "its accuracy on training rows": "train_accuracy",
    "its fitness": "fitness",
}
LARGE_LOSS = 1.0  # points below CART, of which the report speaks


def make_methods() -> dict[str, ClassifierMixin]:
    """Return the methods of the study by name."""
    methods = {
        CART: trees.CART,
        "Linear": trees.LINEAR,
        "STree": trees.STREE,
        "TAO": trees.TAO,
        PAIRS: trees.PAIRS,
        **{name: EvoTreeClassifier(max_features_per_split=n) for name, n in WIDTHS.items()},
        SEARCH: EvoTreeClassifier(time_limit=SECONDS, max_generations=1_000_000, patience=None),
        RESTARTS: RestartsClassifier(time_limit=SECONDS),
        SEEDS: EvoTreeClassifier(time_limit=SECONDS, max_generations=0),
    }
    return {name: methods[name] for name in METHODS}


def make_experiment() -> Experiment:
    """Return the fits of the study, data set by data set; what takes minutes a fit comes last."""
    plan = plan_folds(METHODS, THIRTY, N_FOLDS, by_method=False)
    measures: dict[str, Any] = {"fitness": fitness_of_best}
    for budget in BUDGETS:
        for column, size in SIZES.items():
            measures[f"{column}_{budget}"] = partial(size_within, size=size, budget=budget)
    scorers = {f"accuracy_{budget}": partial(accuracy_within, budget=budget) for budget in BUDGETS}
    return Experiment(
        "readable",
        THIRTY,
        make_methods(),
        ClassesProtocol(N_FOLDS),
        metrics=("accuracy", "train_accuracy"),
        scorers={"area": area, **scorers},
        measures=measures,
        plan=sorted(plan, key=lambda task: task.method == PAIRS and task.dataset in SLOW),
        curve=None,
        warm_up=True,
    )


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
    return float(np.mean([accuracy_within(model, X, y, budget) for budget in AREA_BUDGETS]))


# ---- tables --------------------------------------------------------------------------------------


def means_of(runs: pd.DataFrame, column: str) -> pd.DataFrame:
    """Return means over folds; of scores in percent."""
    is_size = column.partition("_")[0] in (*SIZES, "seconds")
    return (1.0 if is_size else 100.0) * fold_means(runs, column, THIRTY, METHODS)


def budgets_table(runs: pd.DataFrame) -> str:
    """Return mean accuracies at the budgets, each method over its own data sets."""
    columns = {**ACCURACIES, "its complexity": "complexity", "area": "area", "seconds": "seconds"}
    means = {title: means_of(runs, column) for title, column in columns.items()}
    short = ("its complexity", "seconds")
    return table(
        {"method": str(method), "data sets": str(int(means["seconds"][method].notna().sum()))}
        | {t: f"{m[method].mean():{',.1f' if t in short else '.2f'}}" for t, m in means.items()}
        for method in means["seconds"]
    )


def against_table(runs: pd.DataFrame, reference: str, sign: float) -> str:
    """Return how methods differ from one of them, on the data sets of both."""
    means = {title: means_of(runs, column) for title, column in ACCURACIES.items()}
    return differences_table(means, reference, sign, counts=False)


def bounds_row(runs: pd.DataFrame, method: str) -> dict[str, str]:
    """Return the sizes of EvoTree's trees beside those of tuned CART."""
    accuracy = means_of(runs, "accuracy")
    both = accuracy.index[accuracy[[method, CART]].notna().all(axis=1)]
    row = {"method": method, "data sets": str(len(both))}
    for name, of in ((method, ""), (CART, " of CART")):
        row[f"accuracy{of}"] = f"{accuracy.loc[both, name].mean():.2f}"
    row["difference"] = paired(accuracy.loc[both, method] - accuracy.loc[both, CART])
    for size in ("complexity", "leaves", "terms"):
        means = means_of(runs, size).loc[both]
        row |= {
            size: f"{means[method].mean():,.1f}",
            f"{size} of CART": f"{means[CART].mean():,.1f}",
        }
    return row


def unbounded_section(runs: pd.DataFrame) -> str:
    """Return accuracy and complexity of EvoTree beside tuned CART, the worst data set first."""
    accuracy, sizes = means_of(runs, "accuracy"), means_of(runs, "complexity")
    if not {EVOTREE, CART} <= set(accuracy):
        return NOT_RUN
    difference = (accuracy[EVOTREE] - accuracy[CART]).dropna().sort_values(kind="stable")
    rows = []
    for dataset in difference.index:
        row = {"data set": str(dataset), "difference": f"{difference[dataset]:+.1f}"}
        for method in (EVOTREE, CART):
            row[f"accuracy, {method}"] = f"{accuracy.loc[dataset, method]:.1f}"
            row[f"complexity, {method}"] = f"{sizes.loc[dataset, method]:,.1f}"
        rows.append(row)
    known = sizes[EVOTREE].dropna()
    worse = [str(name) for name in difference.index if difference[name] < -LARGE_LOSS]
    return f"""Mean complexity: {known.mean():,.1f} on {len(known)} data sets. Difference to tuned
CART: {paired(difference)}. More than {LARGE_LOSS:g} point below it:
{", ".join(worse) or "none"}.

{table(rows)}"""


def worth_row(runs: pd.DataFrame, title: str) -> dict[str, str]:
    """Return the search beside restarts and first trees, on the data sets of all."""
    means = means_of(runs, WORTH_FIGURES[title]).reindex(columns=list(WORTH)).dropna()
    row = {"figure": title, "data sets": str(len(means))}
    row |= {name: shown(means[name].mean()) for name in WORTH}
    differences = {other: means[SEARCH] - means[other] for other in (RESTARTS, SEEDS)}
    return row | {f"{SEARCH} - {other}": paired(d) for other, d in differences.items()}


def gaps_section(runs: pd.DataFrame) -> str:
    """Return what is gained over the first trees in fitness and in accuracy, by data set."""
    gains = {}
    for column in ("fitness", "accuracy"):
        means = means_of(runs, column).reindex(columns=list(WORTH))
        for method in (SEARCH, RESTARTS):
            gains[f"{column}, {method}"] = means[method] - means[SEEDS]
    gaps = pd.DataFrame(gains).dropna()
    fitness, accuracy = gaps[f"fitness, {SEARCH}"], gaps[f"accuracy, {SEARCH}"]
    gaps.insert(0, "gap", fitness - accuracy)
    is_fitter, is_better = fitness >= TIE, accuracy >= TIE
    gaps = gaps.sort_values("gap", ascending=False, kind="stable").map("{:+.2f}".format)
    return f"""What is gained over *seeds*, in points. The *gap* is the gain of *search* in fitness
less its gain in accuracy; where it is large, evolution has learned what other rows do not confirm,
unless other penalties were chosen. The fitness rises by {TIE:g} points or more on
{is_fitter.sum()} of {len(gaps)} data sets, and the accuracy with it on
{(is_fitter & is_better).sum()} of these.

{table({"data set": str(name), **row} for name, row in gaps.iterrows())}"""


# ---- pictures and trees --------------------------------------------------------------------------


def draw_fronts(runs: pd.DataFrame, out: Path) -> str:
    """Draw mean accuracies against mean complexities, of the data sets that all methods have."""
    best = means_of(runs, "complexity")
    common = best.dropna().index
    if not len(common):
        return "No data set has been run with all methods yet."
    sizes = {str(budget): f"complexity_{budget}" for budget in BUDGETS} | {"best": "complexity"}
    x, y = (
        pd.DataFrame({t: means_of(runs, column).loc[common].mean() for t, column in of.items()})
        for of in (sizes, ACCURACIES)
    )
    of = f"mean of {len(common)} of {len(THIRTY)} data sets"
    ax = plot_accuracy_at_budgets(x, y, xlabel=f"complexity ({of})")
    save_picture(ax, out / "readable_fronts.png")
    return (
        f"Means over the {len(common)} data sets that all methods drawn have. A line joins the "
        "budgets, a broken one leads to the tree that the method chooses without any.\n\n"
        "![Accuracy against complexity](readable_fronts.png)"
    )


def draw_trees(data_home: Path, out: Path) -> None:
    """Fit, print and draw the trees of `PRINTED` where EvoTree was run and files are missing."""
    if EVOTREE not in set(read_rows(STUDY.rows_file(out))["method"]):
        return
    for dataset in PRINTED:
        text_file, picture = out / f"readable_{dataset}.txt", out / f"readable_{dataset}.png"
        if text_file.exists() and picture.exists():
            continue
        data = ClassesProtocol(N_FOLDS).load(dataset, data_home)
        train, test = stratified_folds(data.y, N_FOLDS, 0)[0]
        columns = fit_columns(data.X.iloc[train])
        X = pd.DataFrame(encode(columns, data.X), columns=list(feature_names(columns)))
        model = EvoTreeClassifier(random_state=0).fit(X.iloc[train], data.y[train])
        cart = clone(trees.CART).fit(X.iloc[train].to_numpy(), data.y[train])
        rows, y = X.iloc[test], data.y[test]
        scores = {
            EVOTREE: (model.tree_, model.score(rows, y)),
            CART: (cart.tree_, cart.score(rows.to_numpy(), y)),
        }
        facts = [
            f"{name}: {100.0 * accuracy:.1f} % of the test rows, {tree.n_leaves} leaves, "
            f"{tree.n_terms} terms"
            for name, (tree, accuracy) in scores.items()
        ]
        text_file.write_text("\n".join([*facts, "", export_text(model)]), encoding="utf-8")
        save_picture(plot_tree(model), picture)


def printed_trees(out: Path) -> str:
    """Return the trees of `PRINTED` that have been made."""
    parts = []
    for dataset in PRINTED:
        file = out / f"readable_{dataset}.txt"
        if file.exists():
            text = file.read_text(encoding="utf-8").rstrip()
            picture = f"![The tree of {dataset}](readable_{dataset}.png)"
            parts.append(f"### {dataset}\n\n```text\n{text}\n```\n\n{picture}")
    return "\n\n".join(parts) or "Not made yet."


def tables(results: Results) -> dict[str, Any]:
    """Return the tables, and draw the picture."""
    runs, out = results.runs, results.out
    fronts = runs[~runs["method"].isin(WORTH)]
    bounded = named(WIDTHS, runs["method"]) if CART in set(runs["method"]) else []
    has_worth = set(WORTH) <= set(runs["method"])
    columns = ("accuracy_20", "accuracy")
    means = {column: means_of(fronts, column) for column in columns}
    return {
        "fronts": draw_fronts(fronts, out),
        "budgets": budgets_table(fronts),
        "against_cart": against_table(fronts, CART, -1.0),
        "against_evotree": against_table(fronts, EVOTREE, 1.0),
        "bounds": table(bounds_row(runs, method) for method in bounded),
        "unbounded": unbounded_section(runs),
        "worth": table(worth_row(runs, title) for title in WORTH_FIGURES if has_worth),
        "gaps": gaps_section(runs) if has_worth else NOT_RUN,
        "trees_made": printed_trees(out),
        "cells": {c: cells_table(m, ".1f", bold=METHODS, missing="") for c, m in means.items()},
    }


STUDY = Study("readable", make_experiment, tables, draw=draw_trees)
