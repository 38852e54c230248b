"""The benchmark: EvoTree beside other single trees, a linear and an additive model, and ensembles.

Each figure is a mean over folds. Means over data sets are taken where all methods that were run on
many data sets have one.
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from evotree.experiments.experiment import Experiment
from evotree.experiments.pictures import save_picture
from evotree.experiments.pictures.comparison import (
    plot_accuracy_against_size,
    plot_critical_differences,
)
from evotree.experiments.probabilities import LEAST, auc, clipped_log_loss
from evotree.experiments.protocols import Task
from evotree.experiments.studies.means import TIE, fold_means
from evotree.experiments.studies.oc1 import FILES, OC1Protocol
from evotree.experiments.studies.peers import BOOSTING_FOLDS, N_DRAWS, VERSIONS
from evotree.experiments.studies.readable_trees import PairTrees
from evotree.experiments.studies.study import Results, Study
from evotree.experiments.studies.suites import BENCHMARK, CHOSEN_ON, N_FOLDS, NEVER_CHOSEN_ON
from evotree.experiments.studies.systems import (
    CART,
    COSTS,
    EVOTREE,
    FOREST,
    GREEDY,
    LOGISTIC,
    MAX_ALPHAS,
    N_TREES,
    N_TRIAL_TREES,
    SYSTEMS,
    TREES,
    TUNING_FOLDS,
    make_systems,
)
from evotree.experiments.studies.tables import (
    MISSING,
    cells_table,
    compared,
    differences_table,
    floors_table,
    left_out_text,
    means_table,
    rank_systems,
    ranks_table,
)

DEEP = 1.0
"""Points below the floor, of which the report speaks."""

FIGURES = {
    "accuracy": ("accuracy", 100.0, 2),
    "balanced accuracy": ("balanced_accuracy", 100.0, 2),
    "AUC": ("auc", 100.0, 2),
    "log loss": ("log_loss", 1.0, 3),
    "leaves": ("leaves", 1.0, 1),
    "terms": ("terms", 1.0, 1),
    "complexity": ("complexity", 1.0, 1),
    "seconds": ("seconds", 1.0, 2),
    "seconds of the scores": ("score_seconds", 1.0, 2),
}
"""The columns of the summary: what they are called in the rows, their unit, and their decimals."""
SHARES = ("accuracy", "balanced accuracy", "AUC")


def make_experiment() -> Experiment:
    """Return the fits of the study, method by method."""
    systems = make_systems()
    return Experiment(
        "benchmark",
        BENCHMARK,
        systems,
        OC1Protocol(N_FOLDS, files={"digits": FILES["digits"]}),
        metrics=("accuracy", "train_accuracy", "balanced_accuracy"),
        scorers={"auc": auc, "log_loss": clipped_log_loss},
        plan=[
            Task(dataset, system, fold, 0)
            for system in systems
            for dataset in BENCHMARK
            for fold in range(N_FOLDS)
        ],
        curve=None,
        warm_up=True,
    )


# ---- figures -------------------------------------------------------------------------------------


def figure(runs: pd.DataFrame, title: str) -> pd.DataFrame:
    """Return one of `FIGURES`, data set by method; NaN where a fold is missing."""
    column, unit, _ = FIGURES[title]
    return unit * fold_means(runs, column, BENCHMARK, SYSTEMS)


# ---- tables --------------------------------------------------------------------------------------


def summary_table(runs: pd.DataFrame) -> str:
    """Return the means over the data sets that can be compared, in Markdown."""
    decimals = {title: decimals for title, (_, _, decimals) in FIGURES.items()}
    return means_table({title: figure(runs, title) for title in FIGURES}, decimals)


def duels_table(runs: pd.DataFrame) -> str:
    """Return EvoTree less each other method, on the data sets of both, in Markdown."""
    tables = {title: figure(runs, title) for title in SHARES}
    accuracy = tables["accuracy"]
    tables[f"accuracy on the {len(NEVER_CHOSEN_ON)} others"] = accuracy[
        accuracy.index.isin(NEVER_CHOSEN_ON)
    ]
    return differences_table(tables, EVOTREE)


def floors_section(accuracy: pd.DataFrame) -> str:
    """Return EvoTree less the better of tuned CART and logistic regression, in Markdown."""
    return floors_table(accuracy, EVOTREE, (CART, LOGISTIC), DEEP)


# ---- report --------------------------------------------------------------------------------------


def ranks_section(accuracy: pd.DataFrame, out: Path) -> str:
    """Draw the ranks into the folder `out`, and return the table and the picture in Markdown."""
    test = rank_systems(accuracy)
    if test is None:
        return "There are fewer than three methods or data sets to compare."
    save_picture(plot_critical_differences(test), out / "benchmark_ranks.png")
    return f"""{ranks_table(test, EVOTREE)}

A bar joins methods that cannot be told apart:

![Mean ranks of the methods](benchmark_ranks.png)"""


def sizes_section(runs: pd.DataFrame, accuracy: pd.DataFrame, out: Path) -> str:
    """Draw accuracies of single trees against their leaves, and return the picture in Markdown."""
    chosen = runs[
        runs["method"].isin([name for name in accuracy if name in TREES])
        & runs["dataset"].isin(accuracy.index)
    ]
    if chosen.empty:
        return ""
    save_picture(plot_accuracy_against_size(chosen), out / "benchmark_sizes.png")
    return """Mean accuracy against mean leaves, of the single trees in the means:

![Accuracy against leaves](benchmark_sizes.png)"""


def methods_text() -> str:
    """Return what the methods are."""
    return f"""One tree: EvoTree is `EvoTreeClassifier` as it comes, but for its probabilities,
which are the class shares of leaves, as those of all single trees here; the study `probabilities`
has its own. GEA-ODT is its preset of that name, TAO is `TAOClassifier`, Linear is
`ObliqueTreeClassifier("linear")` and {", ".join(GREEDY)} are its presets; CART is scikit-learn's
tree, pruned by the cost-complexity that {TUNING_FOLDS} folds of the training rows find best among
at most {MAX_ALPHAS}; obliquetree is the tree of that package, version
{VERSIONS["obliquetree"]}, with splits on two features, pruned by {PairTrees().n_folds} folds; STree
is the package of that name, version {VERSIONS["stree"]}, on features scaled to [-1, 1]. The package
treeple is missing: its version 0.10.3 cannot be imported with scikit-learn 1.9.

Other models: {LOGISTIC} is scikit-learn's logistic regression on standardized features, with C of
{", ".join(f"{C:g}" for C in COSTS)} chosen by {TUNING_FOLDS} folds; EBM is the explainable boosting
machine of the package interpret-core, version {VERSIONS["interpret-core"]}, as it comes, but for
more than two classes without pairs of features, as the package advises; {FOREST} is scikit-learn's
random forest of {N_TREES} trees, otherwise as it comes; Tuned forest has the best of {N_DRAWS}
random draws of features a split, rows a leaf and depth, judged by the rows out of the bags of
{N_TRIAL_TREES} trees; HistGB is scikit-learn's histogram gradient boosting and XGBoost that
package, version {VERSIONS["xgboost"]}, both as they come; Tuned XGBoost has the best of {N_DRAWS}
random draws of seven settings, by {BOOSTING_FOLDS} folds. Seconds hold the choice of settings."""


def write(results: Results) -> str:
    """Return the report, and draw its pictures."""
    runs, out = results.runs, results.out
    accuracy = figure(runs, "accuracy")
    both = compared(accuracy)
    sizes = {name: figure(runs, name).filter(items=TREES) for name in ("leaves", "terms")}
    return f"""# Benchmark: one tree beside other models

Written by `evotree experiment study benchmark --data-home DIR --out docs/results --n-jobs 2`,
from the rows in `benchmark_runs.csv`: {results.planned} fits.

Stratified {N_FOLDS}-fold cross-validation, once, the same folds for all methods. Missing values are
replaced by the mean of the training rows, categories made columns of 0 and 1. All figures are means
over folds of test rows: accuracy, balanced accuracy (the mean recall of the classes) and AUC (each
class against the others, weighted by its rows) are in percent; log loss is in nats, and
probabilities below {LEAST:g} count as {LEAST:g} in it. The terms of a tree are the weights of its
splits other than 0; its complexity is its leaves and terms. Those of a forest are of all its trees.
Seconds are those of a fit on one thread, on a machine that did other work at the same time.
"{MISSING}" stands for what was not measured.

{methods_text()}

The defaults of `EvoTreeClassifier` were chosen on {len(CHOSEN_ON)} of the data sets, or judged by
them; the {len(NEVER_CHOSEN_ON)} others are {", ".join(NEVER_CHOSEN_ON)}.

## Summary

Means over the {len(both)} data sets that all methods of the table have. Left out, with the
number of their data sets: {left_out_text(accuracy)}.

{summary_table(runs)}

## EvoTree less each other method

Mean differences in points with their standard errors, and data sets won / tied / lost, on the data
sets of both; a difference below {TIE:g} points is a tie.

{duels_table(runs)}

## Floors

EvoTree less the better of tuned CART and logistic regression, in points of accuracy, the worst data
set first.

{floors_section(accuracy)}

## Ranks

Rank 1 is the best accuracy; ties share the mean of their ranks. The methods and the data sets are
those of the summary:

{ranks_section(both, out)}

## Accuracy

{sizes_section(runs, both, out)}

The best single tree is bold.

{cells_table(accuracy, 1, bold=TREES)}

## AUC

{cells_table(figure(runs, "AUC"), 1, bold=TREES)}

## Leaves

{cells_table(sizes["leaves"], 1)}

## Terms

{cells_table(sizes["terms"], 0)}

## Seconds

{cells_table(figure(runs, "seconds"), 2)}
"""


STUDY = Study(
    "benchmark",
    f"{len(SYSTEMS)} methods, one tree and others, on {len(BENCHMARK)} data sets",
    make_experiment,
    write,
)
