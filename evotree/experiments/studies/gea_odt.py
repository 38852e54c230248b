"""The study of GEA-ODT: its two tables and its figures 4 and 5, run again.

References
----------
Krętowski M., Grześ M. (2005). Global induction of oblique decision trees: an evolutionary approach.
Intelligent Information Processing and Web Mining, Advances in Soft Computing 31, 309-318.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from evotree.engine.history import to_frame
from evotree.estimators import EvoTreeClassifier, ObliqueTreeClassifier
from evotree.experiments.experiment import Experiment
from evotree.experiments.markdown import mean_and_std
from evotree.experiments.pictures import save_picture
from evotree.experiments.pictures.parameters import plot_size_penalty
from evotree.experiments.protocols import OFFICIAL, Task
from evotree.experiments.studies.agreement import load_published, name_as_published
from evotree.experiments.studies.study import Results, Study, StudyProtocol
from evotree.plotting import plot_learning_curves

GEA, OC1, C45 = "GEA-ODT", "OC1", "C4.5"
GREEDY = (OC1, C45)
"""The systems beside it, which are presets of ours."""

PROBLEMS = ("chessboard2", "chessboard4", "zebra1", "zebra2", "zebra3", "house", "LS10")
DATASETS = {  # the papers' names, and the files'
    "breast-w": "breast-w",
    "bupa": "bupa",
    "iris": "iris",
    "page-blocks": "page-blocks",
    "pima": "pima",
    "sat": "satimage",
    "vehicle": "vehicle",
    "waveform": "waveform21",
}
TABLES: Mapping[str, Collection[str]] = {"1": PROBLEMS, "2": DATASETS}
CURVE_PROBLEMS = ("chessboard2", "zebra3")
SIZE_PENALTIES = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2)
N_TEST = 10_000
N_FOLDS = 10
N_RUNS = 5
OPTIMAL_SIZE = 7  # nodes of the problem of figure 5
CURVE_STEP = 5  # every so many generations are kept of a learning curve
LONG = f"{GEA}, 1,000 generations"
DIPOLAR = {f"{LONG}, dipolar 0.5": 0.5, f"{LONG}, dipolar 0": 0.0}
"""The methods of figure 4, and which share of the changed splits dipoles move."""


def with_penalty(size_penalty: float) -> str:
    """Return the name of the method of figure 5 that has a size penalty."""
    return GEA if size_penalty == 0.005 else f"{GEA}, size penalty {size_penalty:g}"


# ---- runs ----------------------------------------------------------------------------------------


class GeaProtocol(StudyProtocol):
    """Folds, and problems drawn again."""

    def random_state(self, task: Task) -> int:
        """Return the random state with which the rows were made."""
        return 1000 * task.seed + task.fold + 1


def make_plan() -> list[Task]:
    """Return the fits: those of the tables, of the systems beside it, of the figures."""
    runs, folds = range(N_RUNS), range(N_FOLDS)
    tasks = [Task(name, GEA, OFFICIAL, run) for name in PROBLEMS for run in runs]
    tasks += [Task(name, GEA, fold, run) for run in runs for name in DATASETS for fold in folds]
    for system in GREEDY:
        tasks += [Task(name, system, OFFICIAL, run) for name in PROBLEMS for run in runs]
        tasks += [Task(name, system, fold, 0) for name in DATASETS for fold in folds]
    tasks += [
        Task(name, method, OFFICIAL, run)
        for name in CURVE_PROBLEMS
        for method in DIPOLAR
        for run in range(2 * N_RUNS)
    ]
    tasks += [
        Task("chessboard2", with_penalty(alpha), OFFICIAL, run)
        for alpha in SIZE_PENALTIES
        for run in runs
    ]
    return list(dict.fromkeys(tasks))


def make_experiment() -> Experiment:
    """Return the fits of the study."""
    gea_odt = EvoTreeClassifier.from_preset
    methods = {GEA: gea_odt("gea_odt")}
    methods |= {name: ObliqueTreeClassifier.from_preset(name) for name in GREEDY}
    methods |= {
        name: gea_odt("gea_odt", max_generations=1000, patience=None).set_params(
            variation__dipolar_probability=share
        )
        for name, share in DIPOLAR.items()
    }
    methods |= {
        with_penalty(alpha): gea_odt("gea_odt", size_penalty=alpha) for alpha in SIZE_PENALTIES
    }
    return Experiment(
        "gea_odt",
        [*PROBLEMS, *DATASETS],
        methods,
        GeaProtocol(N_FOLDS, files=DATASETS, n_test=N_TEST),
        metrics=("accuracy", "train_accuracy"),
        plan=make_plan(),
        measures={"generations": generations},
        curve=thinned_curve,
        warm_up=True,
    )


def generations(model: Any) -> float:
    """Return the generations of a run; greedy trees have none."""
    return float(getattr(model, "n_generations_", 0))


def thinned_curve(model: Any) -> pd.DataFrame | None:
    """Return the learning curve of a run of figure 4, which goes on to the end."""
    if getattr(model, "patience", 0) is not None:
        return None
    curve = to_frame(model.history_)[["gen", "fitness_best", "quality_best", "size_best"]]
    return curve[curve["gen"] % CURVE_STEP == 0]


# ---- report --------------------------------------------------------------------------------------


def measured(runs: pd.DataFrame) -> pd.DataFrame:
    """Return the means of our runs, named as the published figures are."""
    found = []
    for table, names in TABLES.items():
        in_table = runs[runs["dataset"].isin(names) & runs["method"].isin([GEA, *GREEDY])]
        means = in_table.groupby(["dataset", "method"])[["accuracy", "nodes"]].mean()
        found.append(name_as_published(means, {"accuracy": table, "nodes": table}))
    return pd.concat(found, ignore_index=True)


def compare(runs: pd.DataFrame, table: str, system: str) -> pd.DataFrame:
    """Put our figures beside the published ones.

    Parameters
    ----------
    runs : DataFrame
        Rows of the fits.
    table : {"1", "2"}
        Table of the paper.
    system : {"GEA-ODT", "OC1", "C4.5"}
        Column of the table.

    Returns
    -------
    DataFrame
        One row a problem: published and our quality and size, the differences, and how many runs.
    """
    published = load_published("gea_odt").query("table == @table and system == @system")
    published = published.pivot(index="dataset", columns="metric", values="mean")
    rows = []
    chosen = dict(iter(runs[runs["method"] == system].groupby("dataset")))
    for name in (name for name in TABLES[table] if name in chosen):
        group = chosen[name]
        repetitions = group.groupby("seed")[["accuracy", "nodes", "generations", "seconds"]].mean()
        rows.append(
            {
                "problem": name,
                "published quality": published.accuracy[name],
                "our quality": mean_and_std(100.0 * repetitions.accuracy, 1),
                "difference": 100.0 * (repetitions.accuracy.mean() - published.accuracy[name]),
                "published nodes": published.nodes[name],
                "our nodes": mean_and_std(repetitions.nodes, 1),
                "more nodes": repetitions.nodes.mean() - published.nodes[name],
                "generations": repetitions.generations.mean(),
                "seconds": repetitions.seconds.mean(),
                "runs": len(group),
            }
        )
    return pd.DataFrame(rows)


def to_markdown(comparison: pd.DataFrame) -> str:
    """Return the table of `compare` in Markdown."""
    if comparison.empty:
        return "Not run yet."
    lines = [
        "| problem | quality, published | quality, ours | difference | nodes, published "
        "| nodes, ours | generations | seconds a fit | fits |",
        "|---|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for row in comparison.to_dict("records"):
        lines.append(
            f"| {row['problem']} | {100.0 * row['published quality']:.1f} | {row['our quality']} "
            f"| {row['difference']:+.1f} | {row['published nodes']:.1f} | {row['our nodes']} "
            f"| {row['generations']:.0f} | {row['seconds']:.1f} | {row['runs']} |"
        )
    return "\n".join(lines)


def draw_dipolar(curves: Mapping[tuple[Any, ...], pd.DataFrame], path: Path) -> None:
    """Draw figure 4: the best fitness by generation, with and without the dipolar operator."""
    names = [name for name in CURVE_PROBLEMS if any(key[0] == name for key in curves)]
    figure, axes = plt.subplots(1, len(names), figsize=(5.5 * len(names), 4), squeeze=False)
    for ax, name in zip(axes[0], names, strict=True):
        histories: dict[str, list[pd.DataFrame]] = {}
        for (dataset, method, *_), curve in curves.items():
            if dataset == name:
                label = "with the dipolar operator" if DIPOLAR[method] else "without"
                histories.setdefault(label, []).append(curve)
        plot_learning_curves(histories, chapter="fitness", ax=ax)
        ax.set(title=name, xscale="symlog")
        ax.set_xlim(left=0)
    save_picture(axes[0, 0], path)


def draw_size_penalty(runs: pd.DataFrame, path: Path) -> None:
    """Draw figure 5: quality on test rows and size against the size penalty."""
    ax = plot_size_penalty(runs, optimal_size=OPTIMAL_SIZE)
    ax.set_title(runs["dataset"].iloc[0])
    save_picture(ax, path)


def write(results: Results) -> str:
    """Return the report, and draw its pictures."""
    runs = results.runs
    figures = [part for part in (_figure4(results), _figure5(runs, results.out)) if part]
    return f"""# GEA-ODT, run again

Written by `evotree experiment study gea_odt --data-home DIR --out docs/results --n-jobs 2`, from
the rows in `gea_odt_runs.csv`: {results.planned} fits; the preset `gea_odt` of
`EvoTreeClassifier` throughout: α = 0.005, population 64, mutation 0.1 for each node, crossover 0.2,
at most 10,000 generations, stop after 1,000 without improvement. Published figures: Krętowski and
Grześ (2005). Quality is the share of test rows classified correctly, in percent; ± is the standard
deviation over repetitions. OC1 and C4.5, which the paper compares with, are our presets; the trees
of C4.5 are those of another program ([j48.md](j48.md)).

## Table 1: synthetic problems

1,000 training rows and {N_TEST:,} test rows, drawn again for each run. The papers' data are not
published; the definitions here have the same optimal sizes (`evotree/experiments/problems.py`).

{_table1(runs)}

{_beside(runs, "1")}

## Table 2: real data

Stratified {N_FOLDS}-fold cross-validation, each repetition with another shuffle. Missing values
are replaced by the mean of the training part.

{_table2(runs)}

One repetition of the systems beside it.

{_beside(runs, "2")}

{(chr(10) * 2).join(figures)}
"""


def _beside(runs: pd.DataFrame, table: str) -> str:
    return "\n\n".join(
        f"### {name}\n\n{to_markdown(compare(runs, table, name))}" for name in GREEDY
    )


def _table1(runs: pd.DataFrame) -> str:
    table = compare(runs, "1", GEA)
    if table.empty:
        return to_markdown(table)
    within = (table["difference"] >= -1.0) & (table["more nodes"] <= 1e-9)
    return f"""{to_markdown(table)}

Within one point of the published quality or above it, at no larger size: **{within.sum()} of
{len(table)}**{_exceptions(table[~within])}."""


def _table2(runs: pd.DataFrame) -> str:
    table = compare(runs, "2", GEA)
    if table.empty:
        return to_markdown(table)
    above = table["difference"] >= 0.0
    return f"""{to_markdown(table)}

At or above the published quality: **{above.sum()} of {len(table)}**{_exceptions(table[~above])}."""


def _figure4(results: Results) -> str:
    chosen = results.runs[results.runs["method"].isin(DIPOLAR)]
    if chosen.empty or not results.curves:
        return ""
    draw_dipolar(results.curves, results.out / "gea_odt_figure4.png")
    return f"""## Figure 4: the dipolar operator

Fitness of the best tree by generation: median and quartiles of {chosen["seed"].nunique()} runs,
with half of the changed tests moved by the dipolar operator and with standard mutation alone. The
first population is the same.

![Learning curves with and without the dipolar operator](gea_odt_figure4.png)

{_dipolar_summary(chosen)}"""


def _figure5(runs: pd.DataFrame, out: Path) -> str:
    penalties = {with_penalty(alpha): alpha for alpha in SIZE_PENALTIES}
    chosen = runs[(runs["dataset"] == "chessboard2") & runs["method"].isin(penalties)]
    if chosen["method"].nunique() < 2:
        return ""
    chosen = chosen.assign(size_penalty=chosen["method"].map(penalties))
    draw_size_penalty(chosen, out / "gea_odt_figure5.png")
    nodes = chosen.groupby("size_penalty")["nodes"].mean()
    optimal = [f"{alpha:g}" for alpha, mean in nodes.items() if np.isclose(mean, OPTIMAL_SIZE)]
    return f"""## Figure 5: the size penalty

Mean and standard deviation of {chosen["seed"].nunique()} runs on {chosen["dataset"].iloc[0]}, whose
optimal tree has {OPTIMAL_SIZE} nodes. Every run found so many at α = {", ".join(optimal)}.

![Quality and size against the size penalty](gea_odt_figure5.png)"""


def _exceptions(rows: pd.DataFrame) -> str:
    names = [
        f"{row['problem']} ({row['difference']:+.1f} points, {row['more nodes']:+.1f} nodes)"
        for row in rows.to_dict("records")
    ]
    return f"; the others: {', '.join(names)}" if names else ""


def _dipolar_summary(runs: pd.DataFrame) -> str:
    groups = dict(iter(runs.groupby(["dataset", "method"])))
    cells = [(name, method) for name in CURVE_PROBLEMS for method in DIPOLAR]
    lines = [
        "| problem | share of dipolar changes | test quality | nodes |",
        "|---|---:|---:|---:|",
    ]
    for name, method in (cell for cell in cells if cell in groups):
        group = groups[name, method]
        lines.append(
            f"| {name} | {DIPOLAR[method]} | {mean_and_std(100.0 * group.accuracy, 1)} "
            f"| {mean_and_std(group.nodes, 1)} |"
        )
    return "\n".join(lines)


STUDY = Study(
    "gea_odt",
    "the tables and figures of GEA-ODT: evolution from dipoles",
    make_experiment,
    write,
    measured,
)
