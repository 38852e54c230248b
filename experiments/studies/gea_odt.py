"""The study of GEA-ODT: its two tables and its figures 4 and 5, run again.

The paper: Krętowski and Grześ (2005), Advances in Soft Computing 31, 309-318.
"""

from collections.abc import Collection, Mapping
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import pandas as pd

from evotree.engine.evolution import to_frame
from evotree.estimators import EvoTreeClassifier, ObliqueTreeClassifier
from evotree.experiments.protocols import KEY, Task
from evotree.plotting.style import save_picture
from experiments.agreement import Paper, load_published, name_as_published
from experiments.methods.c45 import C45
from experiments.pictures import plot_size_penalty
from experiments.study import RenumberedProtocol, Results, define
from experiments.suites import OFFICIAL
from experiments.tables import (
    beside,
    groups_of,
    mean_and_std,
    shown,
    table,
)

GEA, OC1 = "GEA-ODT", "OC1"
EVOTREE = f"{GEA}, operators of evotree"
"""The preset with the operators that the defaults of evotree have."""
GREEDY = {OC1: ObliqueTreeClassifier.from_preset(OC1), "C4.5": C45()}
"""The systems beside it."""
PROBLEMS = ("chessboard2", "chessboard4", "zebra1", "zebra2", "zebra3", "house", "LS10")
DATASETS = {  # the papers' names, and the files'
    **{name: name for name in ("breast-w", "bupa", "iris", "page-blocks", "pima")},
    **{"sat": "satimage", "vehicle": "vehicle", "waveform": "waveform21"},
}
TABLES: Mapping[str, Collection[str]] = {"1": PROBLEMS, "2": DATASETS}
CURVE_PROBLEMS = ("chessboard2", "zebra3")
SIZE_PENALTIES = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2)
FIGURES = {"quality": ("accuracy", 100.0, 1), "nodes": ("nodes", 1.0, 1)}
N_TEST, N_FOLDS, N_RUNS = 10_000, 10, 5
PARTED = ("sat", "waveform")
"""The data sets that have a part to test on in the paper: the official one, and a draw."""
WAVEFORM_ROWS = {"train_size": 600, "test_size": 3_000}
OPTIMAL_SIZE = 7  # nodes of the problem of figure 5
MOMENTS = {n: f"fitness_{n}" for n in (10, 30, 100, 300, 1000)}
"""Generations after which fitness is compared, and their columns."""
LONG = f"{GEA}, 1,000 generations"
DIPOLAR = {f"{LONG}, dipolar 0.5": 0.5, f"{LONG}, dipolar 0": 0.0}
"""The methods of figure 4, and which share of the changed splits dipoles move."""


def with_penalty(size_penalty: float) -> str:
    """Return the name of the method of figure 5 that has a size penalty."""
    return GEA if size_penalty == 0.005 else f"{GEA}, size penalty {size_penalty:g}"


def make_plan() -> list[Task]:
    """Return the fits: of the tables, by both kinds of operators, of others, of the figures."""
    runs, folds = range(N_RUNS), range(N_FOLDS)
    drawn = product((*PROBLEMS, *PARTED), (OFFICIAL,), runs)
    folded = [name for name in DATASETS if name not in PARTED]
    of_paper = [*drawn, *((d, f, run) for run, d, f in product(runs, folded, folds))]
    methods = map(with_penalty, SIZE_PENALTIES)
    cells = [
        *((d, m, f, run) for m in (GEA, EVOTREE, *GREEDY) for d, f, run in of_paper),
        *product(CURVE_PROBLEMS, DIPOLAR, (OFFICIAL,), range(2 * N_RUNS)),
        *product(("chessboard2",), methods, (OFFICIAL,), runs),
    ]
    return [Task(*cell) for cell in dict.fromkeys(cells)]


def generations(model: Any) -> float:
    """Return the generations of a run; greedy trees have none."""
    return float(getattr(model, "n_generations_", 0))


def fitness_after(model: Any, n: int) -> float:
    """Return the fitness of the best tree after some generations; NaN beyond the last one."""
    if generations(model) < n:
        return np.nan
    curve = to_frame(model.history_)
    return float(curve.set_index("gen")["fitness_best"].loc[:n].iloc[-1])


PRESET = partial(EvoTreeClassifier.from_preset, "gea_odt")
LONG_RUN = {"max_generations": 1000, "evolution__patience": None}
METHODS: dict[str, Any] = {
    GEA: PRESET(),
    EVOTREE: PRESET(evolution__variation__published_operators=False),
    **GREEDY,
    **{
        name: PRESET(**LONG_RUN, evolution__variation__dipolar_probability=share)
        for name, share in DIPOLAR.items()
    },
    **{with_penalty(alpha): PRESET(size_penalty=alpha) for alpha in SIZE_PENALTIES},
}
EXPERIMENT = define(
    "gea_odt",
    [*PROBLEMS, *DATASETS],
    METHODS,
    RenumberedProtocol(
        N_FOLDS, files=DATASETS, drawn={"waveform": WAVEFORM_ROWS}, n_test=N_TEST
    ),
    plan=make_plan(),
    measures={
        "generations": generations,
        **{name: partial(fitness_after, n=n) for n, name in MOMENTS.items()},
    },
)


def measured(runs: pd.DataFrame) -> pd.DataFrame:
    """Return the means of our runs, named as the published figures are."""
    runs = runs[runs["method"].isin([GEA, *GREEDY])]
    return pd.concat(
        name_as_published(
            runs[runs["dataset"].isin(names)], {"accuracy": number, "nodes": number}
        )
        for number, names in TABLES.items()
    )


def compare(runs: pd.DataFrame, number: str) -> str:
    """Return a table of the paper beside ours."""
    published = load_published("gea_odt").query("table == @number and system == @GEA")
    published = published.pivot(index="dataset", columns="metric", values="mean")
    rows = []
    for (name, _), fits in groups_of(runs, TABLES[number], [GEA]).items():
        means = fits.groupby("seed")[["accuracy", "nodes", "generations"]].mean()
        row = {"problem": name, **beside(means, published.loc[name], FIGURES)}
        row["generations"] = f"{means.generations.mean():.0f}"
        rows.append(row | {"fits": str(len(fits))})
    return table(rows)


def compare_operators(runs: pd.DataFrame) -> str:
    """Return quality and size by the paper's operators and by those of evotree."""
    rows = []
    for name in (*PROBLEMS, *DATASETS):
        fits = groups_of(runs, [name], [GEA, EVOTREE])
        if len(fits) < 2:
            continue
        means = {
            method: of_method.groupby("seed")[["accuracy", "nodes"]].mean()
            for (_, method), of_method in fits.items()
        }
        row = {"problem": name}
        for title, (column, unit, decimals) in FIGURES.items():
            for word, method in (("published", GEA), ("evotree", EVOTREE)):
                values = unit * means[method][column]
                row[f"{title}, {word}"] = mean_and_std(values, decimals)
        rows.append(row)
    return table(rows)


def figure4(runs: pd.DataFrame) -> str:
    """Return the median fitness of the best tree by generation, with and without dipoles."""
    # A figure that no fit has is no column of the rows.
    known = runs.reindex(columns=[*KEY, *MOMENTS.values()])
    return table(
        {"problem": problem, "share of dipolar changes": f"{DIPOLAR[method]:g}"}
        | {f"{n:,}": shown(fits[name].median(), ".4f") for n, name in MOMENTS.items()}
        for (problem, method), fits in groups_of(known, CURVE_PROBLEMS, DIPOLAR).items()
    )


def figure5(results: Results) -> str:
    """Draw quality and size against the size penalty; return where all runs were optimal."""
    penalties = {with_penalty(alpha): alpha for alpha in SIZE_PENALTIES}
    runs = results.runs[results.runs["dataset"] == "chessboard2"]
    fits = runs[runs["method"].isin(penalties)]
    fits = fits.assign(size_penalty=fits["method"].map(penalties))
    ax = plot_size_penalty(fits, optimal_size=OPTIMAL_SIZE)
    ax.set_title("chessboard2")
    save_picture(ax, results.out / "gea_odt_figure5.png")
    nodes = fits.groupby("size_penalty")["nodes"].mean()
    return ", ".join(
        f"{alpha:g}" for alpha, n in nodes.items() if np.isclose(n, OPTIMAL_SIZE)
    )


def report(results: Results) -> dict[str, Any]:
    """Return the tables, and draw the figures."""
    return {
        "dipolar": figure4(results.runs),
        "optimal": figure5(results),
        "operators": compare_operators(results.runs),
        **{f"table{number}": compare(results.runs, number) for number in TABLES},
    }


STUDY = Paper(EXPERIMENT, report, measured=measured)
