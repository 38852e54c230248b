"""The benchmark: EvoTree beside other single trees, a linear and an additive model, and ensembles.

Each figure is a mean over folds.
"""

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

import pandas as pd

from evotree.engine.choice import LARGE
from evotree.experiments.protocols import Task
from experiments import suites, tables
from experiments.methods.classifiers import (
    CART,
    EVOTREE,
    FOREST,
    LOGISTIC,
    METHODS,
    TAO,
    TREES,
)
from experiments.study import (
    ClassesProtocol,
    Results,
    Study,
    auc,
    clipped_log_loss,
    define,
)

FIGURES = {
    "accuracy": ("accuracy", 100.0, 2),
    "AUC": ("auc", 100.0, 2),
    "log loss": ("log_loss", 1.0, 3),
    "leaves": ("leaves", 1.0, 0),
    "terms": ("terms", 1.0, 0),
}
CHOICE_FIGURES = {name: FIGURES[name] for name in ("accuracy", "AUC", "log loss")} | {
    "complexity": ("complexity", 1.0, 0)
}
SIMPLE = (TAO, CART, LOGISTIC)
"""The methods that a fit should not be below."""
_QUICK = (
    *(
        *suites.TINY,
        "wdbc",
        "breast-w",
        "pima",
        "vehicle",
        "segment",
        "digits",
        "page-blocks",
    ),
    *("waveform21", "satimage", "dna", "pendigits", "letter"),
)
SHAPED = (
    *(
        *suites.TINY,
        "breast-w",
        "blood-transfusion",
        "pima",
        "hepatitis",
        "breast-cancer",
        "spect",
    ),
    *("fertility", "planning", "echocardiogram", "monks-1", "monks-3", "titanic"),
)
"""The data sets of boosting machines, which take minutes on more columns."""
DATASETS: Mapping[str, Sequence[str]] = {
    **dict.fromkeys((EVOTREE, *SIMPLE, FOREST), suites.GROUPS["in all"]),
    **dict.fromkeys(("OC1", "WODT-groups", "STree"), (*_QUICK, "usps")),
    **{"GEA-ODT": _QUICK[:13], "CEDT": suites.THIRTY[:-1], "EBM": SHAPED},
    "HistGB": [name for name in suites.BENCHMARK if name != "nursery"],
}
"""The data sets of methods that were not run on all."""

LARGEST = ("usps", "letter", "avila", "semeion", "arrhythmia")
"""The data sets whose trees are left out of the mean complexity: of many classes or columns."""

EXPERIMENT = define(
    "benchmark",
    suites.GROUPS["in all"],
    METHODS,
    ClassesProtocol(suites.N_FOLDS),
    metrics=("accuracy", "train_accuracy", "balanced_accuracy"),
    scorers={"auc": auc, "log_loss": clipped_log_loss},
    plan=[
        Task(dataset, method, fold, 0)
        for method in METHODS
        for dataset, fold in product(
            DATASETS.get(method, suites.BENCHMARK), range(suites.N_FOLDS)
        )
    ],
)


def by_size(runs: pd.DataFrame) -> dict[str, str]:
    """Return what fits are, a leaf, a split, scores or more, beside other methods on their rows."""
    own = runs[runs["method"] == EVOTREE].sort_values(["dataset", "fold"])
    # Scores of more than two classes are in one leaf.
    sizes = own["leaves"].clip(upper=3).where(own["complexity"] != 1, 0)
    kinds = ("one leaf", "scores", "one split", "a larger tree")
    methods = (EVOTREE, FOREST, *SIMPLE)
    rows = [
        {"a fit is": kinds[int(size)], **tables.on_same_rows(runs, fits, methods)}
        for size, fits in own.groupby(sizes)
    ]
    one_leaf = own["dataset"][sizes == 0].value_counts()
    complexity = own.groupby("dataset")["complexity"].mean()
    large = own["dataset"][own["complexity"] > LARGE]
    return {
        "by_size": tables.table(rows, 1),
        "one_leaf": ", ".join(f"{name} {n}" for name, n in one_leaf.items()) or "none",
        "median": f"{complexity.median():.0f}",
        "mean": f"{complexity.drop(list(LARGEST), errors='ignore').mean():.0f}",
        "above": ", ".join(dict.fromkeys(large)) or "none",
    }


def beside_other_methods(runs: pd.DataFrame) -> dict[str, str]:
    """Return the tables of the page on the choice: EvoTree beside other methods, by groups."""
    methods = (EVOTREE, *SIMPLE, FOREST, "EBM")
    parts = []
    for title, datasets in {**suites.GROUPS, "on which EBM was run": SHAPED}.items():
        means = tables.figures_of(runs, CHOICE_FIGURES, datasets, methods)
        whole = means["accuracy"].dropna(axis=1, thresh=len(datasets)).columns
        means = {name: values.filter(whole) for name, values in means.items()}
        duels = {name: means[name] for name in ("accuracy", "AUC", "log loss")}
        made = tables.comparison(means, CHOICE_FIGURES, EVOTREE, duels)
        parts.append(f"## {made['n_compared']} data sets {title}\n\n{made['table']}")
    means = 100.0 * tables.fold_means(
        runs, "accuracy", suites.GROUPS["in all"], (EVOTREE, *SIMPLE)
    )
    simple = means[tables.named(SIMPLE, means)]
    rows = []
    lacking = means[EVOTREE] - simple.max(axis=1)
    fits = 100.0 * runs.set_index(["dataset", "method", "fold"])["accuracy"]
    for name, other in simple[lacking < -1.0].idxmax(axis=1).items():
        gain = fits[name, EVOTREE] - fits[name, other]
        text = f"{gain.mean():+.1f} ± {gain.std() / suites.N_FOLDS**0.5:.1f}"
        rows.append({"data set": name, "best": other, "difference": text})
    others = means.drop(list(suites.BENCHMARK), errors="ignore")
    cells = tables.cells_table(others, ".1f", bold=(EVOTREE, *SIMPLE))
    return {
        "groups": "\n\n".join(parts),
        "below": tables.table(rows, 2),
        "choice_cells": cells,
    }


def report(results: Results) -> dict[str, Any]:
    """Return the tables of both pages, and draw the pictures."""
    means = tables.figures_of(results.runs, FIGURES, suites.BENCHMARK, METHODS)
    accuracy = means["accuracy"]
    both = tables.compared(accuracy)
    others = accuracy[accuracy.index.isin(suites.NEVER_CHOSEN_ON)]
    duels = {title: means[title] for title in ("accuracy", "AUC")}
    duels[f"accuracy on the {len(suites.NEVER_CHOSEN_ON)} others"] = others
    trees = both.filter(TREES)
    picture = results.out / "benchmark_sizes.png"
    fits = results.runs.set_index(["dataset", "method"])["accuracy"]
    ranks, sentence = tables.ranks_of(both, EVOTREE)
    return {
        **tables.comparison(means, FIGURES, EVOTREE, duels, ranks),
        **beside_other_methods(results.runs),
        **by_size(results.runs),
        "floor": tables.floor_sentence(accuracy, EVOTREE, (CART, LOGISTIC)),
        "failed": 100.0 * fits.get(suites.FAILED, fits[:0]).mean(),
        "ranks": sentence,
        "sizes": tables.sizes_of(results.runs, trees, "leaves", "accuracy", picture),
        "cells": tables.cells_table(accuracy, ",.1f", bold=TREES),
    }


STUDY = Study(EXPERIMENT, report, also=("choice",))
