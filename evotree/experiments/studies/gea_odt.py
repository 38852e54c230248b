"""The study of GEA-ODT: its two tables and its figures 4 and 5, run anew.

``evotree experiment study gea_odt --data-home DIR --out docs/results --jobs 2`` runs what is
missing and writes ``gea_odt.md`` with its pictures. Every run is appended to
``gea_odt_runs.csv`` as it finishes, so that a study that was stopped goes on where it was.

References
----------
Krętowski M., Grześ M. (2005). Global induction of oblique decision trees: an evolutionary approach.
Intelligent Information Processing and Web Mining, Advances in Soft Computing 31, 309-318.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from evotree.engine.history import to_frame
from evotree.estimators import EvoTreeClassifier
from evotree.experiments.pictures import save_picture
from evotree.experiments.problems import make_problem
from evotree.experiments.protocols import (
    Parts,
    load_cached,
    mean_and_std,
    take_fold,
    try_method,
    try_once,
)
from evotree.experiments.studies.agreement import load_published, name_as_published
from evotree.experiments.studies.study import CURVE, Study, count_done
from evotree.plotting import plot_learning_curves, plot_size_penalty

GEA, OC1 = "GEA-ODT", "OC1"
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
CURVE_PROBLEMS = ("chessboard2", "zebra3")
SIZE_PENALTIES = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2)
N_TEST = 10_000
N_FOLDS = 10
N_RUNS = 5
DIPOLAR = "dipolar_probability"
KEY = ("part", "name", "system", "run", "fold", "size_penalty", DIPOLAR)
OPTIMAL_SIZE = 7  # nodes of the problem of figure 5
CURVE_STEP = 5  # every so many generations stand in the file of the curves


class Task(NamedTuple):
    """One fit: the columns `KEY`; fold -1 is no fold."""

    part: str
    name: str
    system: str
    run: int
    fold: int
    size_penalty: float = 0.005
    dipolar_probability: float = 0.5


# ---- runs ----------------------------------------------------------------------------------------


def make_tasks() -> list[Task]:
    """Return the fits of the study: those of the tables, of OC1 beside them, of the figures."""
    tasks = [Task("table1", name, GEA, run, -1) for name in PROBLEMS for run in range(N_RUNS)]
    tasks += [
        Task("table2", name, GEA, run, fold)
        for run in range(N_RUNS)
        for name in DATASETS
        for fold in range(N_FOLDS)
    ]
    tasks += [Task("table1", name, OC1, run, -1) for name in PROBLEMS for run in range(N_RUNS)]
    tasks += [Task("table2", name, OC1, 0, fold) for name in DATASETS for fold in range(N_FOLDS)]
    tasks += [
        Task("figure4", name, GEA, run, -1, dipolar_probability=dipolar)
        for name in CURVE_PROBLEMS
        for dipolar in (0.5, 0.0)
        for run in range(2 * N_RUNS)
    ]
    tasks += [
        Task("figure5", "chessboard2", GEA, run, -1, alpha)
        for alpha in SIZE_PENALTIES
        for run in range(N_RUNS)
    ]
    return tasks


def take_parts(task: Task, data_home: Path | None) -> Parts:
    """Return the rows of a fit: a fold of a data set, or a problem drawn anew."""
    if task.part == "table2":
        data = load_cached(DATASETS[task.name], data_home)
        return take_fold(data, N_FOLDS, task.run, task.fold)
    train = make_problem(task.name, random_state=task.run)
    return Parts(*train, *make_problem(task.name, N_TEST, random_state=10_000 + task.run))


def run_task(task: Task, data_home: Path | None) -> dict[str, Any]:
    """Do one fit.

    Parameters
    ----------
    task : Task
        The fit.
    data_home : Path or None
        Folder of the real data sets.

    Returns
    -------
    dict
        The task, ``accuracy`` on the test rows, ``train_accuracy``, ``nodes``, ``generations`` (of
        OC1 0), ``stop_reason`` and ``seconds``; for figure 4 the learning curve.
    """
    parts, seed = take_parts(task, data_home), 1000 * task.run + task.fold + 1
    if task.system == OC1:
        found = try_method(OC1, parts, seed)
        nodes = 2 * found.pop("leaves") - 1
        del found["depth"]
        return task._asdict() | found | {"nodes": nodes, "generations": 0, "stop_reason": "grown"}
    limits = {"max_generations": 1000, "patience": None} if task.part == "figure4" else {}
    tree = EvoTreeClassifier.from_preset(
        "gea_odt",
        size_penalty=task.size_penalty,
        dipolar_probability=task.dipolar_probability,
        random_state=seed,
        **limits,
    )
    row = task._asdict() | try_once(tree, *parts)
    if task.part == "figure4":
        curve = to_frame(tree.history_)[["gen", "fitness_best", "quality_best", "size_best"]]
        curve = curve[curve["gen"] % CURVE_STEP == 0]
        named = {"name": task.name, "run": task.run, DIPOLAR: task.dipolar_probability}
        row[CURVE] = curve.assign(**named)
    return row


# ---- report --------------------------------------------------------------------------------------


def measured(runs: pd.DataFrame) -> pd.DataFrame:
    """Return the means of our runs, named as the published figures are."""
    found = []
    for table in ("1", "2"):
        in_table = runs[runs["part"] == f"table{table}"].rename(columns={"name": "dataset"})
        means = in_table.groupby(["dataset", "system"])[["accuracy", "nodes"]].mean()
        found.append(name_as_published(means, {"accuracy": table, "nodes": table}))
    return pd.concat(found, ignore_index=True)


def compare(runs: pd.DataFrame, table: str, system: str) -> pd.DataFrame:
    """Put our figures beside the published ones.

    Parameters
    ----------
    runs : DataFrame
        Rows of `run_task`.
    table : {"1", "2"}
        Table of the paper.
    system : {"GEA-ODT", "OC1"}
        Column of the table.

    Returns
    -------
    DataFrame
        One row a problem: published and our quality and size, the differences, and how many runs.
    """
    published = load_published("gea_odt").query("table == @table and system == @system")
    published = published.pivot(index="dataset", columns="metric", values="mean")
    rows = []
    chosen = runs[(runs["part"] == f"table{table}") & (runs["system"] == system)]
    for name, group in chosen.groupby("name", sort=False):
        repetitions = group.groupby("run")[["accuracy", "nodes", "generations", "seconds"]].mean()
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


def draw_dipolar(curves: pd.DataFrame, path: Path) -> None:
    """Draw figure 4: the best fitness by generation, with and without the dipolar operator."""
    names = list(dict.fromkeys(curves["name"]))
    figure, axes = plt.subplots(1, len(names), figsize=(5.5 * len(names), 4), squeeze=False)
    labels = {0.5: "with the dipolar operator", 0.0: "without"}
    for ax, name in zip(axes[0], names, strict=True):
        of_problem = curves[curves["name"] == name]
        histories = {
            label: [run for _, run in of_problem[of_problem[DIPOLAR] == share].groupby("run")]
            for share, label in labels.items()
        }
        plot_learning_curves(histories, chapter="fitness", ax=ax)
        ax.set(title=name, xscale="symlog")
        ax.set_xlim(left=0)
    save_picture(axes[0, 0], path)


def draw_size_penalty(runs: pd.DataFrame, path: Path) -> None:
    """Draw figure 5: quality on test rows and size against the size penalty."""
    ax = plot_size_penalty(runs, optimal_size=OPTIMAL_SIZE)
    ax.set_title(runs["name"].iloc[0])
    save_picture(ax, path)


def write_report(out: Path) -> Path:
    """Write ``gea_odt.md`` and its pictures from the rows in the folder `out`; return its path."""
    runs = pd.read_csv(out / "gea_odt_runs.csv")
    figures = [part for part in (_figure4(runs, out), _figure5(runs, out)) if part]
    report = out / "gea_odt.md"
    report.write_text(
        f"""# GEA-ODT, run anew

Written by `evotree experiment study gea_odt --data-home DIR --out docs/results --jobs 2`, from the
rows in `gea_odt_runs.csv`: {count_done(make_tasks(), KEY, runs)} fits; the preset `gea_odt` of
`EvoTreeClassifier` throughout: α = 0.005, population 64, mutation 0.1 for each node, crossover 0.2,
at most 10,000 generations, stop after 1,000 without improvement. Published figures: Krętowski and
Grześ (2005). Quality is the share of test rows classified correctly, in percent; ± is the standard
deviation over repetitions. OC1, which the paper compares with, is our preset of that name.

## Table 1: synthetic problems

1,000 training rows and {N_TEST:,} test rows, drawn anew for each run. The papers' data are not
published; the definitions here have the same optimal sizes (`evotree/experiments/problems.py`).

{_table1(runs)}

### OC1

{to_markdown(compare(runs, "1", OC1))}

## Table 2: real data

Stratified {N_FOLDS}-fold cross-validation, each repetition with another shuffle. Missing values
are replaced by the mean of the training part.

{_table2(runs)}

### OC1

One repetition.

{to_markdown(compare(runs, "2", OC1))}

{(chr(10) * 2).join(figures)}
""",
        encoding="utf-8",
    )
    return report


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


def _figure4(runs: pd.DataFrame, out: Path) -> str:
    chosen = runs[runs["part"] == "figure4"]
    if chosen.empty:
        return ""
    draw_dipolar(pd.read_csv(out / STUDY.curves_file), out / "gea_odt_figure4.png")
    return f"""## Figure 4: the dipolar operator

Fitness of the best tree by generation: median and quartiles of {chosen["run"].nunique()} runs, with
half of the changed tests moved by the dipolar operator and with standard mutation alone. The first
population is the same.

![Learning curves with and without the dipolar operator](gea_odt_figure4.png)

{_dipolar_summary(chosen)}"""


def _figure5(runs: pd.DataFrame, out: Path) -> str:
    chosen = runs[runs["part"] == "figure5"]
    if chosen.empty:
        return ""
    draw_size_penalty(chosen, out / "gea_odt_figure5.png")
    nodes = chosen.groupby("size_penalty")["nodes"].mean()
    optimal = [f"{alpha:g}" for alpha, mean in nodes.items() if np.isclose(mean, OPTIMAL_SIZE)]
    return f"""## Figure 5: the size penalty

Mean and standard deviation of {chosen["run"].nunique()} runs on {chosen["name"].iloc[0]}, whose
optimal tree has {OPTIMAL_SIZE} nodes. Every run found so many at α = {", ".join(optimal)}.

![Quality and size against the size penalty](gea_odt_figure5.png)"""


def _exceptions(rows: pd.DataFrame) -> str:
    names = [
        f"{row['problem']} ({row['difference']:+.1f} points, {row['more nodes']:+.1f} nodes)"
        for row in rows.to_dict("records")
    ]
    return f"; the others: {', '.join(names)}" if names else ""


def _dipolar_summary(runs: pd.DataFrame) -> str:
    groups = runs.groupby(["name", DIPOLAR], sort=False)
    lines = [
        "| problem | share of dipolar changes | test quality | nodes |",
        "|---|---:|---:|---:|",
    ]
    for (name, dipolar), group in groups:
        lines.append(
            f"| {name} | {dipolar} | {mean_and_std(100.0 * group.accuracy, 1)} "
            f"| {mean_and_std(group.nodes, 1)} |"
        )
    return "\n".join(lines)


STUDY = Study(
    "gea_odt",
    "the tables and figures of GEA-ODT: evolution from dipoles",
    KEY,
    make_tasks,
    run_task,
    write_report,
    measured,
    dataset="name",
)
