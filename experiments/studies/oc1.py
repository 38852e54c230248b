"""The study of OC1: its comparison, what its random moves gain, and the authors' C program.

The paper: Murthy, Kasif and Salzberg (1994), JAIR 2, 1-32.
"""

from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any

import numpy as np
import pandas as pd

from evotree.estimators import ObliqueTreeClassifier
from evotree.experiments.protocols import Task
from evotree.operators.splitters.perturbation import OC1, CartLC
from experiments.agreement import Paper, load_published, name_as_published
from experiments.methods.c45 import C45
from experiments.problems import PROBLEMS
from experiments.study import ClassesProtocol, Results, define
from experiments.suites import OFFICIAL
from experiments.tables import groups_of, mean_and_std, table

SYSTEMS = ("OC1", "CART-LC", "OC1-AP", "CART-AP", "C4.5")
TABLE1 = ("cancer", "iris", "housing", "diabetes")
SYNTHETIC = ("LS10", "POL", "RCB")
SEARCHES: Mapping[str, OC1] = {
    "axis-parallel": OC1(n_restarts=0),
    "1 start, 0 jumps": OC1(n_restarts=1, n_jumps=0),
    "1 start, 5 jumps": OC1(n_restarts=1, n_jumps=5),
    "20 starts, 0 jumps": OC1(n_restarts=20, n_jumps=0),
    "20 starts, 5 jumps": OC1(n_restarts=20, n_jumps=5),
    "100 starts, 50 jumps": OC1(n_restarts=100, n_jumps=50),
}
"""Searches with more and more random moves."""
MINORITY = "20 starts, 5 jumps, sum minority"
SEARCHED = (*SEARCHES, MINORITY, "SADT")
MOST = "20 starts, 5 jumps"
CLAIMS = (("POL", MINORITY), ("LS10", MOST), ("LS10", "100 starts, 50 jumps"))
"""What the paper says to find the optimal tree each time."""
N_FOLDS, N_RUNS, N_SAMPLES = 5, 10, 5
N_TRAIN, N_TEST = 2_000, 10_000


def program_figures() -> pd.DataFrame:
    """Return what the C program reached: a row a data set and system, a column a metric."""
    published = load_published("oc1_program")
    order = published[["dataset", "system"]].drop_duplicates()
    figures = published.pivot(
        index=["dataset", "system"], columns="metric", values="mean"
    )
    return figures.loc[list(order.itertuples(index=False, name=None))]


PRESET = ObliqueTreeClassifier.from_preset
TASKS = [
    *(
        Task(dataset, system, fold, run)
        for run, dataset, system, fold in product(
            range(N_RUNS), TABLE1, SYSTEMS, range(N_FOLDS)
        )
    ),
    *(
        Task(dataset, search, OFFICIAL, run)
        for run, dataset, search in product(range(N_SAMPLES), SYNTHETIC, SEARCHED)
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
    {system: PRESET(system) for system in SYSTEMS[:3]}
    # CART's own criterion, and the pruning of all others.
    | {"CART-AP": PRESET("DT"), "C4.5": C45()}
    # In the paper's experiments CART-LC selects no features and normalizes none.
    | {"CART-LC": PRESET("CART-LC", splitter=CartLC(elimination=0, standardized=False))}
    # The synthetic data are free of noise: nothing is to be pruned.
    | {name: PRESET("OC1", splitter=of, pruning=None) for name, of in SEARCHES.items()}
    | {MINORITY: PRESET("SADT", splitter=SEARCHES[MOST], pruning=None)}
    | {"SADT": PRESET("SADT", pruning=None)},
    ClassesProtocol(N_FOLDS, n_train=N_TRAIN, n_test=N_TEST),
    plan=list(dict.fromkeys(TASKS)),
)


def measured(runs: pd.DataFrame) -> pd.DataFrame:
    """Return the means of our runs, named as the published figures are."""
    of_paper = runs[runs["dataset"].isin(TABLE1) & runs["method"].isin(SYSTEMS[:3])]
    return name_as_published(of_paper, {"accuracy": "table1", "leaves": "table1"})


def program_summary(
    groups: Mapping[tuple[str, str], pd.DataFrame], figures: pd.DataFrame
) -> Iterator[dict[str, str]]:
    """Yield, for each system, how ours stand to the C program: counts and medians."""
    for system in SYSTEMS[:2]:
        cells = [cell for cell in groups if cell[1] == system]
        if cells:
            means = pd.DataFrame(
                [groups[cell][["accuracy", "leaves"]].mean() for cell in cells]
            )
            program = figures.loc[cells]
            gains = 100.0 * (
                means["accuracy"].to_numpy() - program["accuracy"].to_numpy()
            )
            ratios = means["leaves"].to_numpy() / program["leaves"].to_numpy()
            # The program's figures have one decimal.
            yield {
                "system": system,
                "accuracy at or above the program's": f"{(gains > -0.05).sum()} of {len(gains)}",
                "median difference": f"{np.median(gains):+.1f}",
                "leaves, median ratio": f"{np.median(ratios):.2f}",
            }


def report(results: Results) -> dict[str, Any]:
    """Return the tables."""
    runs = results.runs
    moves = [
        {
            "problem": problem,
            "search": search,
            "accuracy": mean_and_std(100.0 * fits.accuracy, 1),
            "leaves": mean_and_std(fits.leaves, 1),
            "leaves, optimal": str((PROBLEMS[problem].optimal_nodes + 1) // 2),
            "fits": str(len(fits)),
        }
        for (problem, search), fits in groups_of(runs, SYNTHETIC, SEARCHED).items()
    ]
    found = {
        (problem, search): (fits.nodes == PROBLEMS[problem].optimal_nodes).sum()
        for (problem, search), fits in groups_of(runs, SYNTHETIC, SEARCHED).items()
    }
    systems = [
        {
            "data set": dataset,
            "system": system,
            "accuracy": mean_and_std(100.0 * fits.accuracy, 1),
            "leaves": mean_and_std(fits.leaves, 1),
            "fits": str(len(fits)),
        }
        for (dataset, system), fits in groups_of(runs, TABLE1, SYSTEMS).items()
    ]
    figures = program_figures()
    groups = groups_of(runs[runs["seed"] == 0], figures.index.unique(0), SYSTEMS)
    groups = {cell: fits for cell, fits in groups.items() if cell in figures.index}
    return {
        "systems": table(systems, 2),
        "moves": table(moves, 2),
        "claims": ". ".join(
            f"On {problem}, {search} finds a tree of the optimal size {found[problem, search]} of "
            f"{N_SAMPLES} times"
            for problem, search in CLAIMS
            if (problem, search) in found
        ),
        "program_summary": table(program_summary(groups, figures)),
    }


STUDY = Paper(EXPERIMENT, report, measured=measured)
