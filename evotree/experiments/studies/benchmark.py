"""The benchmark: EvoTree beside greedy trees, other packages' trees and a forest.

``evotree experiment study benchmark --data-home DIR --out docs/results --jobs 2`` runs what
is missing and writes ``benchmark.md``. Every run is appended to ``benchmark_runs.csv`` as it
finishes, so that a study that was stopped goes on where it was.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from evotree.estimators import GREEDY_PRESETS
from evotree.experiments.markdown import markdown_table
from evotree.experiments.pictures import save_picture
from evotree.experiments.protocols import take_fold
from evotree.experiments.rank_tests import FriedmanTest, friedman
from evotree.experiments.studies.oc1 import load_problem
from evotree.experiments.studies.study import Study, count_done
from evotree.experiments.studies.systems import (
    EVOTREE,
    FOREST,
    MAX_ALPHAS,
    N_TREES,
    SYSTEMS,
    fit_system,
    measure_size,
    warm_up,
)
from evotree.plotting import plot_accuracy_against_size, plot_critical_differences

N_FOLDS = 5
TIE = 0.1
"""Mean accuracies that differ by fewer points are a tie."""

# The small data sets come first.
_TINY = ("iris", "wine", "sonar", "glass", "heart", "bupa", "ionosphere")
_SMALL = ("wdbc", "balance-scale", "breast-w", "pima", "vehicle", "digits", "segment")
_LARGE = ("page-blocks", "waveform21", "dna", "satimage", "pendigits", "letter", "usps")
DATASETS = (*_TINY, *_SMALL, *_LARGE)
_CHOSEN_SMALL = ("iris", "glass", "heart", "ionosphere", "wdbc", "vehicle", "segment")
CHOSEN_ON = (*_CHOSEN_SMALL, "dna", "satimage")
"""The data sets on which the defaults of `EvoTreeClassifier` were chosen."""
CONFIRMED_ON = tuple(name for name in DATASETS if name not in CHOSEN_ON)
HALVES = {"all": DATASETS, "chosen on": CHOSEN_ON, "confirmed on": CONFIRMED_ON}
KEY = ("dataset", "system", "fold")


class Task(NamedTuple):
    """One fit: the columns `KEY`."""

    dataset: str
    system: str
    fold: int


# ---- runs ----------------------------------------------------------------------------------------


def make_tasks() -> list[Task]:
    """Return the fits of the study, system by system."""
    return [
        Task(dataset, system, fold)
        for system in SYSTEMS
        for dataset in DATASETS
        for fold in range(N_FOLDS)
    ]


def run_task(task: Task, data_home: Path) -> dict[str, Any]:
    """Do one fit; compilation is not in its seconds.

    Parameters
    ----------
    task : Task
        The fit.
    data_home : Path
        Folder of the data sets.

    Returns
    -------
    dict
        The task, ``accuracy`` on the test rows, ``train_accuracy``, what `measure_size` counted and
        ``seconds`` of the fit.
    """
    parts = take_fold(load_problem("program", task.dataset, data_home), N_FOLDS, 0, task.fold)
    warm_up(task.system)
    begin = time.perf_counter()
    model = fit_system(task.system, parts.X_train, parts.y_train, task.fold)
    seconds = time.perf_counter() - begin
    scores = {
        "accuracy": model.score(parts.X_test, parts.y_test),
        "train_accuracy": model.score(parts.X_train, parts.y_train),
    }
    return task._asdict() | scores | measure_size(model) | {"seconds": seconds}


# ---- report --------------------------------------------------------------------------------------


def mean_scores(runs: pd.DataFrame, metric: str) -> pd.DataFrame:
    """Return means over folds, data set by system; NaN where folds are missing."""
    groups = runs.groupby(["dataset", "system"])[metric]
    means = groups.mean()[groups.size() == N_FOLDS].unstack()
    datasets = [name for name in DATASETS if name in means.index]
    return means.loc[datasets, [system for system in SYSTEMS if system in means]]


def cells_table(means: pd.DataFrame, decimals: int, bold: bool = False) -> str:
    """Return `mean_scores` as a table in Markdown, the best single tree bold where asked for."""
    rows = []
    for dataset, row in means.round(decimals).iterrows():
        best = row.drop(FOREST, errors="ignore").max() if bold else None
        cells = {"data set": str(dataset)}
        for system, value in row.items():
            text = "" if np.isnan(value) else f"{value:,.{decimals}f}"
            cells[str(system)] = f"**{text}**" if value == best and system != FOREST else text
        rows.append(cells)
    return markdown_table(pd.DataFrame(rows))


def summary_table(accuracy: pd.DataFrame, leaves: pd.DataFrame, seconds: pd.DataFrame) -> str:
    """Return means over the data sets of each system, all and half by half, in Markdown."""
    rows = []
    for system in accuracy:
        done = accuracy.index[accuracy[system].notna()]
        halves = {half: done.intersection(names, sort=False) for half, names in HALVES.items()}
        counts = [len(names) for names in halves.values()]
        row = {"system": system, "data sets": f"{counts[0]} ({counts[1]} + {counts[2]})"}
        columns = (("accuracy", accuracy, 2), ("leaves", leaves, 1), ("seconds", seconds, 2))
        for title, means, decimals in columns:
            for half, names in halves.items():
                mean = means.loc[names, system].mean()
                row[f"{title}, {half}"] = f"{mean:,.{decimals}f}" if len(names) else ""
        rows.append(row)
    return markdown_table(pd.DataFrame(rows))


def duels_table(accuracy: pd.DataFrame) -> str:
    """Return how often EvoTree wins, ties and loses against each system, in Markdown."""
    if EVOTREE not in accuracy:
        return "EvoTree has not been run yet."
    rows = []
    for rival in accuracy.columns.drop(EVOTREE):
        differences = (accuracy[EVOTREE] - accuracy[rival]).dropna()
        row = {"system": rival}
        for half, names in HALVES.items():
            d = differences[differences.index.isin(names)]
            wins, losses = int((d >= TIE).sum()), int((d <= -TIE).sum())
            row[half] = f"{wins} / {len(d) - wins - losses} / {losses}"
            row[f"difference, {half}"] = f"{d.mean():+.2f}" if len(d) else ""
        rows.append(row)
    return markdown_table(pd.DataFrame(rows))


def rank_systems(accuracy: pd.DataFrame) -> FriedmanTest | None:
    """Compare the systems that were run on all data sets by their ranks.

    Parameters
    ----------
    accuracy : DataFrame
        From `mean_scores`.

    Returns
    -------
    FriedmanTest or None
        None where there are fewer than three such systems.
    """
    complete = accuracy.reindex(DATASETS).dropna(axis=1)
    if complete.shape[1] < 3:
        return None
    scores = complete.rename_axis(index="dataset", columns="method").stack().rename("accuracy")
    return friedman(scores.reset_index(), "accuracy", post_hoc="holm")


def ranks_table(test: FriedmanTest) -> str:
    """Return the mean ranks of systems in Markdown."""
    rows = []
    for system, rank in test.mean_ranks.sort_values().items():
        row = {"system": str(system), "mean rank": f"{rank:.2f}"}
        if EVOTREE in test.mean_ranks:
            p = test.adjusted.loc[EVOTREE, system]
            row["p, against EvoTree"] = "" if system == EVOTREE else f"{p:.2g}"
        rows.append(row)
    return (
        f"{markdown_table(pd.DataFrame(rows))}\n\nFriedman's χ² is {test.statistic:.1f}, "
        f"p = {test.p_value:.2g}. The p-values of pairs are adjusted by Holm for all pairs."
    )


def ranks_section(accuracy: pd.DataFrame, out: Path) -> str:
    """Draw the ranks into the folder `out`, and return the table and the picture in Markdown."""
    test = rank_systems(accuracy)
    if test is None:
        return "Fewer than three systems have been run on all data sets."
    save_picture(plot_critical_differences(test), out / "benchmark_ranks.png")
    return f"""{ranks_table(test)}

A bar joins systems that cannot be told apart:

![Mean ranks of the systems](benchmark_ranks.png)"""


def draw_sizes(runs: pd.DataFrame, out: Path) -> None:
    """Draw the single trees' accuracies against their leaves, of those run on all data sets."""
    counts = runs.groupby("system").size()
    complete = counts.index[counts == len(DATASETS) * N_FOLDS].drop(FOREST, errors="ignore")
    chosen = runs[runs["system"].isin(complete)].rename(columns={"system": "method"})
    if len(complete):
        save_picture(plot_accuracy_against_size(chosen), out / "benchmark_sizes.png")


_SIZES_PICTURE = """Mean accuracy against mean leaves, of the single trees run on all data sets:

![Accuracy against leaves](benchmark_sizes.png)"""


def write_report(out: Path) -> Path:
    """Write ``benchmark.md`` from the rows in the folder `out`; return its path."""
    runs = pd.read_csv(out / "benchmark_runs.csv")
    accuracy = 100.0 * mean_scores(runs, "accuracy")
    leaves, seconds = mean_scores(runs, "leaves"), mean_scores(runs, "seconds")
    weights = mean_scores(runs, "nonzero_weights").drop(columns=FOREST, errors="ignore")
    draw_sizes(runs, out)
    report = out / "benchmark.md"
    report.write_text(
        f"""# Benchmark: single trees compared

Written by `evotree experiment study benchmark --data-home DIR --out docs/results --jobs 2`,
from the rows in `benchmark_runs.csv`: {count_done(make_tasks(), KEY, runs)} fits.

Stratified {N_FOLDS}-fold cross-validation, once, the same folds for all systems. Missing values are
replaced by the mean of the training rows, categories made columns of 0 and 1. Accuracy is the share
of test rows classified correctly, in percent; all figures are means over folds; seconds are those
of a fit on one thread. A cell is empty until all its folds are run.

Systems: EvoTree is `EvoTreeClassifier` as it comes, GEA-ODT its preset of that name; TAO is
`TAOClassifier`; Linear is `ObliqueTreeClassifier("linear")` and {", ".join(GREEDY_PRESETS)} are its
presets; CART is scikit-learn's tree, pruned by the cost-complexity that five folds of the training
rows find best among at most {MAX_ALPHAS} (its seconds hold the search); STree is the package of
that name, version 1.4.2, on features scaled to [-1, 1]; Forest is scikit-learn's of {N_TREES}
trees, which is no single tree and shows what is left to gain.

The defaults of `EvoTreeClassifier` were chosen on {len(CHOSEN_ON)} data sets
({", ".join(CHOSEN_ON)}) and confirmed on the {len(CONFIRMED_ON)} others.

## Summary

Means over the data sets on which a system was run: their number, chosen on + confirmed on.

{summary_table(accuracy, leaves, seconds)}

## EvoTree against each

Wins / ties / losses of EvoTree, and the mean difference of accuracy in points, on the data sets of
both; a difference below {TIE:g} points is a tie.

{duels_table(accuracy)}

## Ranks

Rank 1 is the best accuracy; ties share the mean of their ranks. Systems run on all data sets:

{ranks_section(accuracy, out)}

## Accuracy

{_SIZES_PICTURE if (out / "benchmark_sizes.png").exists() else ""}

The best single tree is bold.

{cells_table(accuracy, 1, bold=True)}

## Leaves

{cells_table(leaves, 1)}

## Weights other than 0

Of all tests of a tree; a test of one feature has one.

{cells_table(weights, 0)}

## Seconds

{cells_table(seconds, 2)}
""",
        encoding="utf-8",
    )
    return report


STUDY = Study(
    "benchmark",
    "our trees, scikit-learn's and other packages' on 21 data sets",
    KEY,
    make_tasks,
    run_task,
    write_report,
)
