"""The study of OC1: its comparison, what its random moves gain, and the authors' C program.

The paper: Murthy, Kasif and Salzberg (1994), JAIR 2, 1-32.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from typing import Any

import numpy as np
import pandas as pd

from evotree.estimators import ObliqueTreeClassifier
from evotree.experiments.markdown import mean_and_std
from evotree.experiments.problems import PROBLEMS
from evotree.experiments.protocols import OFFICIAL, Task
from evotree.operators.splitters.oc1 import OC1
from experiments.agreement import load_published, name_as_published
from experiments.study import ClassesProtocol, Results, Study, define
from experiments.tables import NOT_RUN, groups_of, table

SYSTEMS = ("OC1", "CART-LC", "OC1-AP")
TABLE1 = ("cancer", "iris", "housing", "diabetes")
SYNTHETIC = ("LS10", "POL", "RCB")
SEARCHES: Mapping[str, OC1] = {
    "axis-parallel": OC1(n_restarts=0),
    "1 start, 0 jumps": OC1(n_restarts=1, n_jumps=0),
    "1 start, 5 jumps": OC1(n_restarts=1, n_jumps=5),
    "20 starts, 0 jumps": OC1(n_restarts=20, n_jumps=0),
    "20 starts, 5 jumps": OC1(n_restarts=20, n_jumps=5),
}
"""Searches with more and more random moves."""
N_FOLDS, N_RUNS, N_SAMPLES = 5, 10, 5
N_TRAIN, N_TEST = 2_000, 10_000


def program_figures() -> pd.DataFrame:
    """Return what the C program reached: a row a data set and system, a column a metric."""
    published = load_published("oc1_program")
    order = published[["dataset", "system"]].drop_duplicates()
    figures = published.pivot(index=["dataset", "system"], columns="metric", values="mean")
    return figures.loc[list(order.itertuples(index=False, name=None))]


PRESET = ObliqueTreeClassifier.from_preset
TASKS = [
    *(
        Task(dataset, system, fold, run)
        for run, dataset, system, fold in product(range(N_RUNS), TABLE1, SYSTEMS, range(N_FOLDS))
    ),
    *(
        Task(dataset, search, OFFICIAL, run)
        for run, dataset, search in product(range(N_SAMPLES), SYNTHETIC, SEARCHES)
    ),
    *(
        Task(dataset, system, fold, 0)
        for (dataset, system), n in program_figures()["folds"].items()
        for fold in range(int(n))
    ),
]
"""The fits: those of the paper's table, of the random moves, beside the C program."""
EXPERIMENT = define(
    "oc1",
    dict.fromkeys(task.dataset for task in TASKS),
    # The synthetic data are free of noise: nothing is to be pruned.
    {system: PRESET(system) for system in SYSTEMS}
    | {name: PRESET("OC1", splitter=of, pruning=None) for name, of in SEARCHES.items()},
    ClassesProtocol(N_FOLDS, n_train=N_TRAIN, n_test=N_TEST),
    plan=list(dict.fromkeys(TASKS)),
)


def measured(runs: pd.DataFrame) -> pd.DataFrame:
    """Return the means of our runs, named as the published figures are."""
    in_table = runs[runs["dataset"].isin(TABLE1) & runs["method"].isin(SYSTEMS)]
    means = in_table.groupby(["dataset", "method"])[["accuracy", "leaves"]].mean()
    return name_as_published(means, {"accuracy": "table1", "leaves": "table1"})


def table1_row(cell: tuple[str, str], fits: pd.DataFrame, published: pd.Series) -> dict[str, str]:
    """Return ours beside a row of the paper's table."""
    repetitions = fits.groupby("seed")[["accuracy", "leaves"]].mean()
    accuracy = published["accuracy", *cell]
    return {
        "data set": cell[0],
        "system": cell[1],
        "accuracy, published": f"{100 * accuracy:.1f}",
        "accuracy, ours": mean_and_std(100.0 * repetitions.accuracy, 1),
        "difference": f"{100 * (repetitions.accuracy.mean() - accuracy):+.1f}",
        "leaves, published": f"{published['leaves', *cell]:.1f}",
        "leaves, ours": mean_and_std(repetitions.leaves, 1),
        "seconds a fit": f"{fits.seconds.mean():.3f}",
        "fits": str(len(fits)),
    }


def moves_row(problem: str, search: str, fits: pd.DataFrame) -> dict[str, str]:
    """Return what restarts and jumps gain on a synthetic problem."""
    return {
        "problem": problem,
        "search": search,
        "accuracy": mean_and_std(100.0 * fits.accuracy, 1),
        "leaves": mean_and_std(fits.leaves, 1),
        "leaves, optimal": str((PROBLEMS[problem].optimal_nodes + 1) // 2),
        "seconds a fit": f"{fits.seconds.mean():.3f}",
        "fits": str(len(fits)),
    }


def program_table(runs: pd.DataFrame) -> str:
    """Return ours beside what the C program reached on the same folds."""
    figures = program_figures()
    datasets = list(dict.fromkeys(figures.index.get_level_values("dataset")))
    rows, gains = [], []
    for cell, fits in groups_of(runs[runs["seed"] == 0], datasets, SYSTEMS).items():
        if cell not in figures.index:
            continue
        program = figures.loc[cell]
        gains.append(100.0 * (fits.accuracy.mean() - program.accuracy))
        rows.append(
            {
                "data set": cell[0],
                "system": cell[1],
                "accuracy, C": f"{100 * program.accuracy:.1f}",
                "accuracy, ours": mean_and_std(100.0 * fits.accuracy, 1),
                "difference": f"{gains[-1]:+.1f}",
                "leaves, C": f"{program.leaves:.1f}",
                "leaves, ours": mean_and_std(fits.leaves, 1),
                "seconds, C": f"{program.seconds:.3g}",
                "seconds, ours": f"{fits.seconds.mean():.3g}",
                "times as fast": f"{program.seconds / fits.seconds.mean():.1f}",
                "folds": str(len(fits)),
            }
        )
    if not rows:
        return NOT_RUN
    # The program's figures have one decimal.
    n_reached = sum(gain > -0.05 for gain in gains)
    return (
        f"{table(rows, n_left=2)}\n\nAccuracy at or above the program's: **{n_reached} of "
        f"{len(gains)}**; median difference {np.median(gains):+.1f} points."
    )


def report(results: Results) -> dict[str, Any]:
    """Return the tables."""
    runs = results.runs
    published = load_published("oc1").set_index(["metric", "dataset", "system"])["mean"]
    of_paper, moves = groups_of(runs, TABLE1, SYSTEMS), groups_of(runs, SYNTHETIC, SEARCHES)
    return {
        "table1": table((table1_row(k, fits, published) for k, fits in of_paper.items()), 2),
        "moves": table((moves_row(*cell, fits) for cell, fits in moves.items()), 2),
        "program": program_table(runs),
    }


STUDY = Study(EXPERIMENT, report, measured)
