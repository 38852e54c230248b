"""The study of single trees: EvoTree beside greedy trees, other packages' trees and a forest.

``python -m evotree.experiments.single_trees --data-home DIR --out docs/results --jobs 2`` runs what
is missing and writes ``single_trees.md``. Every run is appended to ``single_trees_runs.csv`` as it
finishes, so that a study that was stopped goes on where it was. Systems and data sets are run in
the order in which the command line names them.

References
----------
Breiman L., Friedman J. H., Olshen R. A., Stone C. J. (1984). Classification and Regression Trees.
Wadsworth.

Montañana R., Gámez J. A., Puerta J. M. (2021). STree: a single multi-class oblique decision tree
based on support vector machines. Lecture Notes in Computer Science 12882, 54-64.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.base import ClassifierMixin
from sklearn.datasets import load_iris
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import MinMaxScaler
from sklearn.tree import DecisionTreeClassifier

from evotree.estimators import GREEDY_PRESETS, EvoTreeClassifier, ObliqueTreeClassifier
from evotree.experiments.oc1 import load_problem
from evotree.experiments.problems import make_problem
from evotree.experiments.protocols import make_method, stratified_folds, take_fold
from evotree.experiments.studies import (
    compare_ranks,
    count_done,
    markdown_table,
    read_arguments,
    run_study,
)

EVOTREE, FOREST = "EvoTree", "Forest"
SYSTEMS = (EVOTREE, "TAO", "GEA-ODT", *GREEDY_PRESETS, "Linear", "CART", "STree", FOREST)
N_FOLDS = 5
MAX_ALPHAS = 30
N_TREES = 500
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


def make_tasks(datasets: Sequence[str] = DATASETS, systems: Sequence[str] = SYSTEMS) -> list[Task]:
    """Return the fits of the study, system by system, in the order given."""
    return [
        Task(dataset, system, fold)
        for system in systems
        for dataset in datasets
        for fold in range(N_FOLDS)
    ]


def make_system(name: str, random_state: int) -> ClassifierMixin:
    """Make the classifier of a system.

    Parameters
    ----------
    name : str
        One of `SYSTEMS`.
    random_state : int
        Seed.

    Returns
    -------
    ClassifierMixin
        Not fitted; of CART the tree that is not pruned.

    Raises
    ------
    ModuleNotFoundError
        If the system is STree and its package is not installed.
    """
    if name in GREEDY_PRESETS:
        return make_method(name, random_state)
    match name:
        case "EvoTree":
            return EvoTreeClassifier(random_state=random_state)
        case "GEA-ODT":
            return EvoTreeClassifier.from_preset("gea_odt", random_state=random_state)
        case "TAO":
            return import_module("evotree.estimators").TAOClassifier(random_state=random_state)
        case "Linear":
            return ObliqueTreeClassifier("linear", random_state=random_state)
        case "CART":
            return DecisionTreeClassifier(random_state=random_state)
        case "Forest":
            return RandomForestClassifier(N_TREES, random_state=random_state)
        case "STree":
            return make_pipeline(MinMaxScaler((-1.0, 1.0)), _stree(random_state))
    raise ValueError(f"name={name!r}: allowed are {', '.join(SYSTEMS)}.")


def _stree(random_state: int) -> ClassifierMixin:
    try:
        stree = import_module("stree")
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "STree is not installed; pip install stree==1.4.2 installs it."
        ) from error
    return stree.Stree(random_state=random_state)


def prune_by_folds(
    tree: DecisionTreeClassifier, X: np.ndarray, y: np.ndarray, random_state: int
) -> DecisionTreeClassifier:
    """Prune a tree by cost-complexity as five folds advise; of equal penalties take the largest.

    Parameters
    ----------
    tree : DecisionTreeClassifier
        Not fitted.
    X : ndarray of shape (n_samples, n_features)
        Rows to fit on.
    y : ndarray of shape (n_samples,)
        Their labels.
    random_state : int
        Seed of the folds.

    Returns
    -------
    DecisionTreeClassifier
        Fitted on all rows, with one of at most `MAX_ALPHAS` penalties of its path.
    """
    path = np.unique(np.maximum(tree.cost_complexity_pruning_path(X, y).ccp_alphas, 0.0))
    shares = np.linspace(0.0, 1.0, min(len(path), MAX_ALPHAS))
    alphas = np.quantile(path, shares, method="nearest")[::-1]
    folds = stratified_folds(y, N_FOLDS, random_state)
    # The search keeps the first of equal penalties: the smallest tree.
    return GridSearchCV(tree, {"ccp_alpha": alphas}, cv=folds).fit(X, y).best_estimator_


def fit_system(name: str, X: np.ndarray, y: np.ndarray, random_state: int) -> ClassifierMixin:
    """Return the classifier of a system, fitted."""
    system = make_system(name, random_state)
    if name == "CART":
        return prune_by_folds(system, X, y, random_state)
    return system.fit(X, y)


@cache
def _warm_up(name: str) -> None:
    """Compile what a system needs, for two classes and for three."""
    if name not in ("CART", "STree", FOREST):
        for X, y in (make_problem("chessboard4", 100, 0), load_iris(return_X_y=True)):
            fit_system(name, X, y, 0)


def measure_size(model: ClassifierMixin) -> dict[str, int]:
    """Return the nodes, the leaves and the weights other than 0 of a tree, or of all of a forest.

    A test of one feature has one weight.
    """
    if isinstance(model, Pipeline):
        return _measure_stree(model[-1])
    if isinstance(model, DecisionTreeClassifier | RandomForestClassifier):
        trees = [member.tree_ for member in getattr(model, "estimators_", [model])]
        nodes, leaves = (sum(getattr(t, n) for t in trees) for n in ("node_count", "n_leaves"))
        return {"nodes": int(nodes), "leaves": int(leaves), "nonzero_weights": int(nodes - leaves)}
    tree = model.tree_
    weights = int(np.count_nonzero(tree.weights))
    return {"nodes": tree.n_nodes, "leaves": tree.n_leaves, "nonzero_weights": weights}


def _measure_stree(stree: Any) -> dict[str, int]:
    nodes, leaves = stree.nodes_leaves()
    # Of the machines of all pairs of classes a node keeps the one of its column.
    weights = sum(
        np.count_nonzero(node.get_classifier().coef_[max(node.get_partition_column(), 0)])
        for node in stree
        if not node.is_leaf()
    )
    return {"nodes": nodes, "leaves": leaves, "nonzero_weights": int(weights)}


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
    _warm_up(task.system)
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


def ranks_table(accuracy: pd.DataFrame) -> str:
    """Return mean ranks of the systems that were run on all data sets, in Markdown."""
    complete = accuracy.reindex(DATASETS).dropna(axis=1)
    if complete.shape[1] < 3 or len(DATASETS) < 2:
        return "Fewer than three systems have been run on all data sets."
    test = compare_ranks(complete, larger_is_better=True)
    rows = []
    for system, rank in test.mean_ranks.sort_values().items():
        row = {"system": str(system), "mean rank": f"{rank:.2f}"}
        if EVOTREE in complete:
            p = test.adjusted.loc[EVOTREE, system]
            row["p, against EvoTree"] = "" if system == EVOTREE else f"{p:.2g}"
        rows.append(row)
    return (
        f"{markdown_table(pd.DataFrame(rows))}\n\nFriedman's χ² is {test.statistic:.1f}, "
        f"p = {test.p_value:.2g}. The p-values of pairs are adjusted by Holm for all pairs."
    )


def write_report(out: Path) -> Path:
    """Write ``single_trees.md`` from the rows in the folder `out`; return its path."""
    runs = pd.read_csv(out / "single_trees_runs.csv")
    accuracy = 100.0 * mean_scores(runs, "accuracy")
    leaves, seconds = mean_scores(runs, "leaves"), mean_scores(runs, "seconds")
    weights = mean_scores(runs, "nonzero_weights").drop(columns=FOREST, errors="ignore")
    report = out / "single_trees.md"
    report.write_text(
        f"""# Single trees compared

Written by `python -m evotree.experiments.single_trees --data-home DIR --out docs/results --jobs 2`,
from the rows in `single_trees_runs.csv`: {count_done(make_tasks(), KEY, runs)} fits.

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

{ranks_table(accuracy)}

## Accuracy

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


def main(argv: Sequence[str] | None = None) -> int:
    """Run the study from the command line; return the exit status."""
    arguments = read_arguments(
        argv, "single_trees", "Compare single trees and write single_trees.md.", DATASETS, SYSTEMS
    )
    tasks = make_tasks(arguments.only, arguments.systems)
    run_study(arguments, tasks, KEY, run_task, "single_trees_runs.csv", write_report)
    return 0


if __name__ == "__main__":  # workers find cached functions by the name of their module
    raise SystemExit(import_module("evotree.experiments.single_trees").main())
