"""The benchmark: EvoTree beside other single trees, a linear and an additive model, and ensembles.

Each figure is a mean over folds.
"""

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

from evotree.experiments.protocols import Task
from experiments import tables
from experiments.methods.classifiers import CART, EVOTREE, LOGISTIC, SYSTEMS, TREES, make_systems
from experiments.probabilities import auc, clipped_log_loss
from experiments.study import ClassesProtocol, Results, Study, define
from experiments.suites import BENCHMARK, FAILED, N_FOLDS, NEVER_CHOSEN_ON, THIRTY, TINY

FIGURES = {
    "accuracy": ("accuracy", 100.0, 2),
    "AUC": ("auc", 100.0, 2),
    "log loss": ("log_loss", 1.0, 3),
    "leaves": ("leaves", 1.0, 0),
    "terms": ("terms", 1.0, 0),
}
_QUICK = (
    *(*TINY, "wdbc", "breast-w", "pima", "vehicle", "segment", "digits", "page-blocks"),
    *("waveform21", "satimage", "dna", "pendigits", "letter"),
)
DATASETS: Mapping[str, Sequence[str]] = {
    **dict.fromkeys(("OC1", "WODT", "STree"), (*_QUICK, "usps")),
    **{"GEA-ODT": _QUICK, "CEDT": THIRTY[:-1], "EBM": TINY},
    "HistGB": [name for name in BENCHMARK if name != "nursery"],
}
"""The data sets of methods that were not run on all."""

EXPERIMENT = define(
    "benchmark",
    BENCHMARK,
    make_systems(),
    ClassesProtocol(N_FOLDS),
    metrics=("accuracy", "train_accuracy", "balanced_accuracy"),
    scorers={"auc": auc, "log_loss": clipped_log_loss},
    plan=[
        Task(dataset, method, fold, 0)
        for method in SYSTEMS
        for dataset, fold in product(DATASETS.get(method, BENCHMARK), range(N_FOLDS))
    ],
)


def report(results: Results) -> dict[str, Any]:
    """Return the tables, and draw the pictures."""
    means = tables.figures_of(results.runs, FIGURES, BENCHMARK, SYSTEMS)
    accuracy = means["accuracy"]
    both = tables.compared(accuracy)
    others = accuracy[accuracy.index.isin(NEVER_CHOSEN_ON)]
    duels = {title: means[title] for title in ("accuracy", "AUC")}
    duels[f"accuracy on the {len(NEVER_CHOSEN_ON)} others"] = others
    trees, picture = both.filter(TREES), results.out / "benchmark_sizes.png"
    fits = results.runs.set_index(["dataset", "method"])["accuracy"]
    ranks, sentence = tables.ranks_of(both, EVOTREE, results.out / "benchmark_ranks.png")
    return {
        **tables.comparison(means, FIGURES, EVOTREE, duels, ranks),
        "floor": tables.floor_sentence(accuracy, EVOTREE, (CART, LOGISTIC)),
        "failed": 100.0 * fits.get(FAILED, fits[:0]).mean(),
        "ranks": sentence,
        "sizes": tables.sizes_of(results.runs, trees, "leaves", "accuracy", picture),
        "cells": tables.cells_table(accuracy, ",.1f", bold=TREES),
    }


STUDY = Study(EXPERIMENT, report)
