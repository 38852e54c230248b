"""The benchmark: EvoTree beside other single trees, a linear and an additive model, and ensembles.

Each figure is a mean over folds. Means over data sets are taken where all methods that were run on
many data sets have one.
"""

from itertools import product
from pathlib import Path
from typing import Any

import pandas as pd

from evotree.experiments.pictures import plot_accuracy_against_size, save_picture
from evotree.experiments.probabilities import auc, clipped_log_loss
from evotree.experiments.protocols import Task
from experiments import tables
from experiments.methods.classifiers import CART, EVOTREE, LOGISTIC, SYSTEMS, TREES, make_systems
from experiments.study import ClassesProtocol, Results, Study, define
from experiments.suites import BENCHMARK, N_FOLDS, NEVER_CHOSEN_ON

FIGURES = {
    "accuracy": ("accuracy", 100.0, 2),
    "balanced accuracy": ("balanced_accuracy", 100.0, 2),
    "AUC": ("auc", 100.0, 2),
    "log loss": ("log_loss", 1.0, 3),
    **{size: (size, 1.0, 1) for size in ("leaves", "terms", "complexity")},
    "seconds": ("seconds", 1.0, 2),
    "seconds of the scores": ("score_seconds", 1.0, 2),
}


EXPERIMENT = define(
    "benchmark",
    BENCHMARK,
    make_systems(),
    ClassesProtocol(N_FOLDS),
    metrics=("accuracy", "train_accuracy", "balanced_accuracy"),
    scorers={"auc": auc, "log_loss": clipped_log_loss},
    plan=[Task(d, m, fold, 0) for m, d, fold in product(SYSTEMS, BENCHMARK, range(N_FOLDS))],
)


def sizes_section(runs: pd.DataFrame, both: pd.DataFrame, out: Path) -> str:
    """Draw accuracies of single trees against their leaves, and return the picture."""
    is_shown = runs["method"].isin([name for name in both if name in TREES])
    drawn = runs[is_shown & runs["dataset"].isin(both.index)]
    if drawn.empty:
        return ""
    save_picture(plot_accuracy_against_size(drawn), out / "benchmark_sizes.png")
    return (
        "Mean accuracy against mean leaves, of the single trees in the means:\n\n"
        "![Accuracy against leaves](benchmark_sizes.png)"
    )


def report(results: Results) -> dict[str, Any]:
    """Return the tables, and draw the pictures."""
    means = tables.figures_of(results.runs, FIGURES, BENCHMARK, SYSTEMS)
    accuracy, cells = means["accuracy"], tables.cells_table
    both = tables.compared(accuracy)
    duels = {title: means[title] for title in ("accuracy", "balanced accuracy", "AUC")}
    others = accuracy[accuracy.index.isin(NEVER_CHOSEN_ON)]
    duels[f"accuracy on the {len(NEVER_CHOSEN_ON)} others"] = others
    return {
        **tables.comparison(means, FIGURES, EVOTREE, duels),
        "floors": tables.floors_table(accuracy, EVOTREE, (CART, LOGISTIC)),
        "ranks": tables.ranks_section(both, EVOTREE, results.out / "benchmark_ranks.png"),
        "sizes": sizes_section(results.runs, both, results.out),
        "cells": {
            **{title: cells(means[title], ",.1f", bold=TREES) for title in ("accuracy", "AUC")},
            "leaves": cells(means["leaves"].filter(items=TREES), ",.1f"),
            "terms": cells(means["terms"].filter(items=TREES), ",.0f"),
            "seconds": cells(means["seconds"], ",.2f"),
        },
    }


STUDY = Study(EXPERIMENT, report)
