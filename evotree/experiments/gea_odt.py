"""The study of GEA-ODT: its two tables and its figures 4 and 5, run anew.

``python -m evotree.experiments.gea_odt --data-home DIR --out docs/results --jobs 2`` runs what is
missing and writes ``gea_odt.md`` with its pictures. Every run is appended to
``gea_odt_runs.csv`` as it finishes, so that a study that was stopped goes on where it was.

References
----------
Krętowski M., Grześ M. (2005). Global induction of oblique decision trees: an evolutionary approach.
Intelligent Information Processing and Web Mining, Advances in Soft Computing 31, 309-318.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from evotree.estimators import EvoTreeClassifier
from evotree.experiments.problems import make_problem
from evotree.experiments.protocols import Parts, load_cached, mean_and_std, take_fold, try_once
from evotree.experiments.studies import append, load_published, missing_tasks, run_all
from evotree.history import to_frame

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
KEY = ["part", "name", "run", "fold", "size_penalty", "dipolar_probability"]
CURVE_STEP = 5  # every so many generations stand in the file of the curves

Task = tuple[str, str, int, int, float, float]


def make_tasks(n_runs: int = N_RUNS, datasets: Sequence[str] = tuple(DATASETS)) -> list[Task]:
    """Return the runs of the study, as values of the columns `KEY`.

    Parameters
    ----------
    n_runs : int, at least 1
        Repetitions of each cell of the tables.
    datasets : sequence of str
        Rows of table 2.

    Returns
    -------
    list of tuple
        Part of the study, problem, repetition, fold (-1: none), size penalty, dipolar share.
    """
    tasks = [("table1", name, run, -1, 0.005, 0.5) for name in PROBLEMS for run in range(n_runs)]
    tasks += [
        ("table2", name, run, fold, 0.005, 0.5)
        for run in range(n_runs)
        for name in datasets
        for fold in range(N_FOLDS)
    ]
    tasks += [
        ("figure4", name, run, -1, 0.005, dipolar)
        for name in CURVE_PROBLEMS
        for dipolar in (0.5, 0.0)
        for run in range(2 * n_runs)
    ]
    tasks += [
        ("figure5", "chessboard2", run, -1, alpha, 0.5)
        for alpha in SIZE_PENALTIES
        for run in range(n_runs)
    ]
    return tasks


def run_task(task: Task, data_home: Path) -> tuple[dict[str, Any], pd.DataFrame | None]:
    """Do one run.

    Parameters
    ----------
    task : tuple
        Values of the columns `KEY`.
    data_home : Path
        Folder of the real data sets.

    Returns
    -------
    row : dict
        The task and what `try_once` found.
    curve : DataFrame or None
        For figure 4, the best fitness, quality and size by generation.
    """
    part, name, run, fold, size_penalty, dipolar = task
    limits = {"max_generations": 1000, "patience": None} if part == "figure4" else {}
    tree = EvoTreeClassifier.from_preset(
        "gea_odt",
        size_penalty=size_penalty,
        dipolar_probability=dipolar,
        random_state=1000 * run + fold + 1,
        **limits,
    )
    if part == "table2":
        parts = take_fold(load_cached(DATASETS[name], data_home), N_FOLDS, run, fold)
    else:
        train = make_problem(name, random_state=run)
        parts = Parts(*train, *make_problem(name, N_TEST, random_state=10_000 + run))
    row = dict(zip(KEY, task, strict=True)) | try_once(tree, *parts)
    if part != "figure4":
        return row, None
    curve = to_frame(tree.history_)[["gen", "fitness_best", "quality_best", "size_best"]]
    curve = curve[curve["gen"] % CURVE_STEP == 0]
    return row, curve.assign(name=name, run=run, dipolar_probability=dipolar)


def run_missing(tasks: Sequence[Task], data_home: Path, out: Path, jobs: int) -> None:
    """Do the runs that have no row in the folder `out` yet, and append theirs as they finish."""
    runs_file, curves_file = out / "gea_odt_runs.csv", out / "gea_odt_curves.csv"
    missing = missing_tasks(tasks, KEY, runs_file)
    for row, curve in run_all(missing, partial(run_task, data_home=data_home), jobs):
        if curve is not None:
            append(curve, curves_file)
        append(pd.DataFrame([row]), runs_file)


def compare(runs: pd.DataFrame, table: int) -> pd.DataFrame:
    """Put our figures beside the published ones.

    Parameters
    ----------
    runs : DataFrame
        Rows of `run_task`.
    table : int, 1 or 2
        Table of the paper.

    Returns
    -------
    DataFrame
        One row a problem: published and our quality and size, the differences, and how many runs.
    """
    published = load_published("gea_odt").query("table == @table and system == 'GEA-ODT'")
    published = published.pivot(index="dataset", columns="metric", values="mean")
    rows = []
    for name, group in runs.query("part == @part", local_dict={"part": f"table{table}"}).groupby(
        "name", sort=False
    ):
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


def plot_dipolar(curves: pd.DataFrame, path: Path) -> None:
    """Draw figure 4: the best fitness by generation, with and without the dipolar operator."""
    names = list(dict.fromkeys(curves["name"]))
    figure, axes = plt.subplots(1, len(names), figsize=(5.5 * len(names), 4), squeeze=False)
    styles = {0.5: ("with the dipolar operator", "C0"), 0.0: ("without", "C1")}
    for ax, name in zip(axes[0], names, strict=True):
        for dipolar, (label, color) in styles.items():
            chosen = curves[(curves["name"] == name) & (curves.dipolar_probability == dipolar)]
            by_generation = chosen.groupby("gen").fitness_best
            generations = list(by_generation.groups)
            ax.plot(generations, by_generation.median(), color=color, label=label)
            ax.fill_between(
                generations,
                by_generation.quantile(0.25),
                by_generation.quantile(0.75),
                color=color,
                alpha=0.25,
                linewidth=0,
            )
        ax.set(title=name, xlabel="generation", ylabel="fitness of the best tree", xscale="symlog")
        ax.set_xlim(left=0)
        ax.grid(alpha=0.3)
        ax.legend(loc="lower right", frameon=False)
    figure.tight_layout()
    figure.savefig(path, dpi=120)
    plt.close(figure)


def plot_size_penalty(runs: pd.DataFrame, path: Path) -> None:
    """Draw figure 5: quality on test rows and size against the size penalty."""
    groups = runs[runs.part == "figure5"].groupby("size_penalty")
    alphas = list(groups.groups)
    figure, (top, bottom) = plt.subplots(2, 1, figsize=(5.5, 5.5), sharex=True)
    for ax, column, label in ((top, "accuracy", "test quality"), (bottom, "nodes", "nodes")):
        means, spread = groups[column].mean(), groups[column].std().fillna(0.0)
        ax.errorbar(alphas, means, yerr=spread, marker="o", capsize=3)
        ax.set(ylabel=label, xscale="log")
        ax.grid(alpha=0.3)
    bottom.axhline(7, color="0.5", linestyle="--", linewidth=1, label="optimal size")
    bottom.legend(frameon=False)
    bottom.set(xlabel="size penalty α", ylim=(0, None))
    top.set_title(runs[runs.part == "figure5"].name.iloc[0])
    figure.tight_layout()
    figure.savefig(path, dpi=120)
    plt.close(figure)


def write_report(out: Path) -> Path:
    """Write ``gea_odt.md`` and its pictures from the rows in the folder `out`; return its path."""
    runs = pd.read_csv(out / "gea_odt_runs.csv")
    plot_dipolar(pd.read_csv(out / "gea_odt_curves.csv"), out / "gea_odt_figure4.png")
    plot_size_penalty(runs, out / "gea_odt_figure5.png")
    first, second = compare(runs, 1), compare(runs, 2)
    within = (first.difference >= -1.0) & (first["more nodes"] <= 1e-9)
    above = second.difference >= 0.0
    alphas = runs[runs.part == "figure5"].groupby("size_penalty").nodes.mean()
    optimal = [f"{alpha:g}" for alpha, nodes in alphas.items() if np.isclose(nodes, 7.0)]
    report = out / "gea_odt.md"
    report.write_text(
        f"""# GEA-ODT, run anew

Written by `python -m evotree.experiments.gea_odt`; the preset `gea_odt` of `EvoTreeClassifier`
throughout: α = 0.005, population 64, mutation 0.1 for each node, crossover 0.2, at most 10,000
generations, stop after 1,000 without improvement. Published figures: Krętowski and Grześ (2005).
Quality is the share of test rows classified correctly, in percent; ± is the standard deviation
over repetitions. Every run stands in `gea_odt_runs.csv`.

## Table 1: synthetic problems

1,000 training rows and {N_TEST:,} test rows, drawn anew for each run. The papers' data are not
published; the definitions here have the same optimal sizes (`evotree/experiments/problems.py`).

{to_markdown(first)}

Within one point of the published quality or above it, at no larger size: **{within.sum()} of
{len(first)}**{_exceptions(first[~within])}.

## Table 2: real data

Stratified {N_FOLDS}-fold cross-validation, each repetition with another shuffle. Missing values
are replaced by the mean of the training part.

{to_markdown(second)}

At or above the published quality: **{above.sum()} of {len(second)}**{_exceptions(second[~above])}.

## Figure 4: the dipolar operator

Fitness of the best tree by generation: median and quartiles of
{runs[runs.part == "figure4"].run.nunique()} runs, with half of the changed tests moved by the
dipolar operator and with standard mutation alone. The first population is the same.

![Learning curves with and without the dipolar operator](gea_odt_figure4.png)

{_dipolar_summary(runs)}

## Figure 5: the size penalty

Mean and standard deviation of {runs[runs.part == "figure5"].run.nunique()} runs on chessboard2,
whose optimal tree has 7 nodes. Every run found 7 nodes at α = {", ".join(optimal)}.

![Quality and size against the size penalty](gea_odt_figure5.png)
""",
        encoding="utf-8",
    )
    return report


def _exceptions(rows: pd.DataFrame) -> str:
    names = [
        f"{row['problem']} ({row['difference']:+.1f} points, {row['more nodes']:+.1f} nodes)"
        for row in rows.to_dict("records")
    ]
    return f"; the others: {', '.join(names)}" if names else ""


def _dipolar_summary(runs: pd.DataFrame) -> str:
    groups = runs[runs.part == "figure4"].groupby(["name", "dipolar_probability"], sort=False)
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


def main(argv: Sequence[str] | None = None) -> int:
    """Run the study from the command line; return the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m evotree.experiments.gea_odt",
        description="Run the tables and figures of GEA-ODT anew and write gea_odt.md.",
    )
    parser.add_argument("--data-home", type=Path, required=True, help="folder of the data sets")
    parser.add_argument("--out", type=Path, default=Path("docs/results"), help="folder to write to")
    parser.add_argument("--runs", type=int, default=N_RUNS, help="repetitions (default: 5)")
    parser.add_argument("--jobs", type=int, default=1, help="processes (default: 1)")
    arguments = parser.parse_args(argv)
    arguments.out.mkdir(parents=True, exist_ok=True)
    run_missing(make_tasks(arguments.runs), arguments.data_home, arguments.out, arguments.jobs)
    write_report(arguments.out)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
