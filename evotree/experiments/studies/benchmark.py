"""The benchmark: EvoTree beside greedy trees, other packages' trees and a forest."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from evotree.estimators import GREEDY_PRESETS
from evotree.experiments.experiment import Experiment
from evotree.experiments.markdown import markdown_table
from evotree.experiments.pictures import save_picture
from evotree.experiments.pictures.comparison import (
    plot_accuracy_against_size,
    plot_critical_differences,
)
from evotree.experiments.protocols import Task
from evotree.experiments.rank_tests import FriedmanTest, friedman
from evotree.experiments.studies.oc1 import FILES, OC1Protocol
from evotree.experiments.studies.study import Results, Study
from evotree.experiments.studies.systems import (
    EVOTREE,
    FOREST,
    MAX_ALPHAS,
    N_TREES,
    SYSTEMS,
    make_systems,
)

N_FOLDS = 5
TIE = 0.1
"""Mean accuracies that differ by fewer points are a tie."""

# The small data sets come first.
_TINY = ("iris", "wine", "sonar", "glass", "heart", "bupa", "ionosphere")
_SMALL = ("wdbc", "balance-scale", "breast-w", "pima", "vehicle", "digits", "segment")
_LARGE = ("page-blocks", "waveform21", "dna", "satimage", "pendigits", "letter", "usps")
DATASETS = (*_TINY, *_SMALL, *_LARGE)
CONFIRMED_ON = ("page-blocks", "pendigits", "usps")
CHOSEN_ON = tuple(name for name in DATASETS if name not in CONFIRMED_ON)
"""The data sets on which any of the defaults of `EvoTreeClassifier` was chosen."""
HALVES = {"all": DATASETS, "chosen on": CHOSEN_ON, "confirmed on": CONFIRMED_ON}


def make_experiment() -> Experiment:
    """Return the fits of the study, system by system."""
    systems = make_systems()
    return Experiment(
        "benchmark",
        DATASETS,
        systems,
        OC1Protocol(N_FOLDS, files={"digits": FILES["digits"]}),
        metrics=("accuracy", "train_accuracy"),
        plan=[
            Task(dataset, system, fold, 0)
            for system in systems
            for dataset in DATASETS
            for fold in range(N_FOLDS)
        ],
        curve=None,
        warm_up=True,
    )


# ---- report --------------------------------------------------------------------------------------


def mean_scores(runs: pd.DataFrame, metric: str) -> pd.DataFrame:
    """Return means over folds, data set by system; NaN where folds are missing."""
    groups = runs.groupby(["dataset", "method"])[metric]
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
    counts = runs.groupby("method").size()
    complete = counts.index[counts == len(DATASETS) * N_FOLDS].drop(FOREST, errors="ignore")
    chosen = runs[runs["method"].isin(complete)]
    if len(complete):
        save_picture(plot_accuracy_against_size(chosen), out / "benchmark_sizes.png")


_SIZES_PICTURE = """Mean accuracy against mean leaves, of the single trees run on all data sets:

![Accuracy against leaves](benchmark_sizes.png)"""


def write(results: Results) -> str:
    """Return the report, and draw its pictures."""
    runs, out = results.runs, results.out
    accuracy = 100.0 * mean_scores(runs, "accuracy")
    leaves, seconds = mean_scores(runs, "leaves"), mean_scores(runs, "seconds")
    weights = mean_scores(runs, "terms").drop(columns=FOREST, errors="ignore")
    draw_sizes(runs, out)
    return f"""# Benchmark: single trees compared

Written by `evotree experiment study benchmark --data-home DIR --out docs/results --jobs 2`,
from the rows in `benchmark_runs.csv`: {results.planned} fits.

Stratified {N_FOLDS}-fold cross-validation, once, the same folds for all systems. Missing values are
replaced by the mean of the training rows, categories made columns of 0 and 1. Accuracy is the share
of test rows classified correctly, in percent; all figures are means over folds; seconds are those
of a fit on one thread, EvoTree's on a machine that did other work at the same time. A cell is empty
until all its folds are run.

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

Terms of all splits of a tree; a split of one feature has one.

{cells_table(weights, 0)}

## Seconds

{cells_table(seconds, 2)}
"""


STUDY = Study(
    "benchmark",
    "our trees, scikit-learn's and other packages' on 21 data sets",
    make_experiment,
    write,
)
