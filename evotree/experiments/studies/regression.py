"""The study of regression: EvoTree beside other single trees, a linear model, rules, and ensembles.

In one part each figure is a mean over folds. The other part is the protocol of RADDT, which trains
oblique trees by gradients: half of the rows to fit, a quarter to choose hyperparameters, then both
for the fit that the last quarter tests. In the rows the fold of this part is `OFFICIAL`, and the
seed draws the rows.

References
----------
Mao Q. et al. (2025). Differentiable decision tree via "ReLU+Argmin" reformulation. Advances in
Neural Information Processing Systems.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.metrics import root_mean_squared_error
from sklearn.model_selection import train_test_split

from evotree.experiments.experiment import Experiment
from evotree.experiments.markdown import markdown_table
from evotree.experiments.pictures import save_picture
from evotree.experiments.pictures.comparison import (
    plot_accuracy_against_size,
    plot_critical_differences,
)
from evotree.experiments.protocols import OFFICIAL, Parts, Task, take_rows
from evotree.experiments.studies.agreement import load_published
from evotree.experiments.studies.means import TIE, fold_means
from evotree.experiments.studies.peers import BOOSTING_FOLDS, N_DRAWS, VERSIONS
from evotree.experiments.studies.regression_systems import (
    ALPHAS,
    CART,
    CART_DEPTH,
    CONSTANT,
    CUBIST,
    EVOTREE,
    FOREST,
    LINEAR_TREE,
    LINEAR_TREE_PYTHON,
    MAX_DEPTHS,
    RIDGE,
    SYSTEMS,
    TAO,
    TAO_LINEAR,
    TREES,
    TUNING_ROWS,
    make_systems,
)
from evotree.experiments.studies.study import Results, Study, StudyProtocol
from evotree.experiments.studies.suites import N_FOLDS
from evotree.experiments.studies.systems import MAX_ALPHAS, N_TREES, N_TRIAL_TREES, TUNING_FOLDS
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
    shown,
)

# The small data sets come first, so that all methods have them early.
SMALL = ("bodyfat", "autompg", "housing", "energy-heating", "concrete", "space-ga", "abalone-r")
MIDDLE = ("delta-ailerons", "puma8NH", "kin8nm", "cpu-small", "cpu-act", "delta-elevators")
LARGE = ("ailerons", "elevators", "cal-housing", "2dplanes", "fried")
DATASETS = (*SMALL, *MIDDLE, *LARGE)

RADDT, RADDT_LINEAR = "RADDT", "RADDT-Linear"
PUBLISHED = (RADDT_LINEAR, RADDT, "ORT-LS", "CART", "Random forest", "XGBoost")
"""The methods of the paper whose figures stand beside ours; it has the ensembles tuned."""
RADDT_SETS = (
    *("space-ga", "abalone-r", "puma8NH", "kin8nm", "cpu-small", "cpu-act", "delta-elevators"),
    *("ailerons", "elevators", "fried"),
)
"""Those of the paper's 17 data sets that are at hand."""
RADDT_METHODS = (EVOTREE, CONSTANT, TAO, TAO_LINEAR, CART_DEPTH, RIDGE, CUBIST, FOREST)
N_SEEDS = 3
"""Draws of the rows of RADDT's protocol."""

DEEP = 1.0
"""Points below the floor, of which the report speaks."""
R2, RMSE, RATIO = "R²", "RMSE", "RMSE / Ridge's"
FIGURES = {
    R2: ("r2", 100.0, 2),
    RMSE: ("rmse", 1.0, 4),
    "leaves": ("leaves", 1.0, 1),
    "terms": ("terms", 1.0, 1),
    "complexity": ("complexity", 1.0, 1),
    "seconds": ("seconds", 1.0, 2),
}
"""The figures of the report: what they are called in the rows, their unit, and their decimals."""


class RegressionProtocol(StudyProtocol):
    """Folds, or the draws of RADDT's protocol."""

    def take_parts(self, task: Task, data_home: Path | None, stratified: bool = True) -> Parts:
        """Return the rows of a fit; of RADDT's the last third of the training rows validates."""
        if task.fold != OFFICIAL:
            return super().take_parts(task, data_home, stratified)
        data = self.load(task.dataset, data_home)
        train, test = train_test_split(
            np.arange(len(data.y)), test_size=0.25, random_state=task.seed
        )
        return take_rows(data.X, data.y, train, test)


def rmse(model: Any, X: np.ndarray, y: np.ndarray) -> float:
    """Return the root of the mean squared error."""
    return float(root_mean_squared_error(y, model.predict(X)))


def make_experiment() -> Experiment:
    """Return the fits of the study: folds, method by method, then RADDT's, seed by seed."""
    folds = [
        Task(dataset, system, fold, 0)
        for system in SYSTEMS
        for dataset in DATASETS
        for fold in range(N_FOLDS)
    ]
    draws = [
        Task(dataset, system, OFFICIAL, seed)
        for seed in range(N_SEEDS)
        for dataset in RADDT_SETS
        for system in RADDT_METHODS
    ]
    return Experiment(
        "regression",
        DATASETS,
        make_systems(),
        RegressionProtocol(N_FOLDS),
        metrics=("r2", "train_r2"),
        scorers={"rmse": rmse},
        plan=folds + draws,
        curve=None,
        warm_up=True,
    )


# ---- figures -------------------------------------------------------------------------------------


def figure(runs: pd.DataFrame, title: str) -> pd.DataFrame:
    """Return one of `FIGURES`, data set by method; NaN where a fold is missing."""
    column, unit, _ = FIGURES[title]
    return unit * fold_means(runs[runs["fold"] != OFFICIAL], column, DATASETS, SYSTEMS)


def draw_means(runs: pd.DataFrame, column: str, datasets: Sequence[str]) -> pd.DataFrame:
    """Return means over the draws of RADDT's protocol, data set by method."""
    drawn = runs[runs["fold"] == OFFICIAL]
    values = drawn.get(column, pd.Series(np.nan, drawn.index)).astype(float)
    means = values.groupby([drawn["dataset"], drawn["method"]]).mean().unstack()
    return means.reindex(index=datasets, columns=[name for name in RADDT_METHODS if name in means])


# ---- tables --------------------------------------------------------------------------------------


def summary_table(runs: pd.DataFrame) -> str:
    """Return the means over the data sets that can be compared, in Markdown."""
    tables = {title: figure(runs, title) for title in FIGURES}
    errors = tables.pop(RMSE)
    if RIDGE in errors:
        tables = {R2: tables.pop(R2), RATIO: errors.div(errors[RIDGE], axis=0), **tables}
    decimals = {title: decimals for title, (_, _, decimals) in FIGURES.items()} | {RATIO: 3}
    return means_table(tables, decimals)


def errors_table(errors: pd.DataFrame) -> str:
    """Return errors, which are of the unit of each data set's target, in Markdown."""
    known = errors.dropna(axis=1, how="all")
    rows = [
        {"data set": str(name)}
        | {system: MISSING if np.isnan(value) else f"{value:.4g}" for system, value in row.items()}
        for name, row in known.iterrows()
    ]
    return markdown_table(pd.DataFrame(rows)) if known.size else "Not run yet."


def raddt_table(runs: pd.DataFrame) -> str:
    """Return the means over RADDT's data sets, published and ours, in Markdown.

    The means are over the data sets on which each of our methods that were run has a draw.
    """
    published = load_published("regression")
    theirs = published[published["metric"] == "r2"].pivot(
        index="dataset", columns="system", values="mean"
    )
    leaves = published[published["metric"] == "leaves"].set_index("system")["mean"]
    scores, sizes = (draw_means(runs, column, RADDT_SETS) for column in ("r2", "leaves"))
    both = scores.dropna().index
    rows = [
        {
            "method": f"{name}, published",
            R2: shown(100.0 * theirs.loc[both, name].mean(), 2),
            "leaves": shown(leaves.get(name, np.nan), 1),
        }
        for name in PUBLISHED
    ]
    for name in scores:
        row = {"method": str(name), R2: shown(100.0 * scores.loc[both, name].mean(), 2)}
        rows.append(row | {"leaves": shown(sizes.loc[both, name].mean(skipna=False), 1)})
    beside = theirs.loc[both, list(PUBLISHED)].add_suffix(", published").join(scores)
    return f"""Means over {len(both)} data sets:

{markdown_table(pd.DataFrame(rows))}

{cells_table(100.0 * beside, 2)}"""


# ---- report --------------------------------------------------------------------------------------


def ranks_section(scores: pd.DataFrame, out: Path) -> str:
    """Draw the ranks into the folder `out`, and return the table and the picture in Markdown."""
    test = rank_systems(scores)
    if test is None:
        return "There are fewer than three methods or data sets to compare."
    save_picture(plot_critical_differences(test), out / "regression_ranks.png")
    return f"""{ranks_table(test, EVOTREE)}

A bar joins methods that cannot be told apart:

![Mean ranks of the methods](regression_ranks.png)"""


def sizes_section(runs: pd.DataFrame, scores: pd.DataFrame, out: Path) -> str:
    """Draw R² against complexity, and return the picture in Markdown."""
    sized = figure(runs, "complexity").reindex(index=scores.index).dropna(axis=1)
    chosen = runs[
        (runs["fold"] != OFFICIAL)
        & runs["method"].isin([name for name in sized if name in scores])
        & runs["dataset"].isin(scores.index)
    ]
    if chosen.empty:
        return ""
    drawn = chosen.rename(columns={"r2": R2})
    save_picture(
        plot_accuracy_against_size(drawn, "complexity", metric=R2), out / "regression_sizes.png"
    )
    return """Mean R² against mean complexity, of the methods in the means that have one:

![R² against complexity](regression_sizes.png)"""


def methods_text() -> str:
    """Return what the methods are."""
    return f"""One tree: EvoTree is `EvoTreeRegressor()`, with linear models in its leaves;
{CONSTANT} has means there.
{TAO} is `TAORegressor`, {TAO_LINEAR} has linear models in its leaves, and CEDT is the preset of
`ObliqueTreeRegressor` with the squared error. {CART} is scikit-learn's tree, pruned by the
cost-complexity that {TUNING_FOLDS} folds of the training rows find best among at most {MAX_ALPHAS}.
{LINEAR_TREE} is the tree of the package of that name, version 0.3.5, with ridge regressions in its
leaves, on standardized features, otherwise as it comes; the package fails with scikit-learn 1.9, so
that an interpreter with scikit-learn 1.4 fits it, which `{LINEAR_TREE_PYTHON}` names. Its seconds
hold the start of that interpreter.

Other models: {RIDGE} is ridge regression on standardized features, with the best of {len(ALPHAS)}
penalties of {ALPHAS[0]:g} to {ALPHAS[-1]:,g} by leaving one row out. {CUBIST} is Quinlan's rules
with linear models, from the package cubist, version {VERSIONS["cubist"]}, as they come. EBM is the
explainable boosting machine of the package interpret-core, version {VERSIONS["interpret-core"]}.
{FOREST} is scikit-learn's random forest of {N_TREES} trees; Tuned forest has the best of {N_DRAWS}
random draws of features a split, rows a leaf and depth, judged by the rows out of the bags of
{N_TRIAL_TREES} trees. HistGB is scikit-learn's histogram gradient boosting and XGBoost that
package, version {VERSIONS["xgboost"]}, both as they come; Tuned XGBoost has the best of {N_DRAWS}
random draws of seven settings, by {BOOSTING_FOLDS} folds. {LINEAR_TREE}, {CUBIST}, EBM and HistGB
see standardized targets: where these are small numbers they would find no split otherwise. Where
there are more than {TUNING_ROWS:,} training rows, the draws are judged by {TUNING_ROWS:,} of them,
and the best is fitted to all. Seconds hold the choice of settings."""


def raddt_section(runs: pd.DataFrame) -> str:
    """Return RADDT's figures and ours in Markdown."""
    if not (runs["fold"] == OFFICIAL).any():
        return "Not run yet."
    return f"""RADDT trains an oblique tree by gradients; RADDT-Linear has linear models in its
leaves. Published figures: Mao et al. (2025), tables 13 and 14; the leaves are means over all their
17 data sets, of which {len(RADDT_SETS)} are here. Half of the rows train, a quarter validates, a
quarter tests; hyperparameters are chosen on the validation rows, and the method is fitted again to
both. Their draws of the rows are not known: ours are {N_SEEDS} for each data set. {CART_DEPTH}
chooses its depth of {MAX_DEPTHS[0]} to {MAX_DEPTHS[-1]} in this way, as theirs does; how near it
comes to their CART tells how well the draws compare. Our other methods are fitted to the three
quarters as they come, and choose what they choose by folds or held-out parts of these rows.

{raddt_table(runs)}"""


def write(results: Results) -> str:
    """Return the report, and draw its pictures."""
    runs, out = results.runs, results.out
    scores = figure(runs, R2)
    both = compared(scores)
    return f"""# Regression: one tree beside other models

Written by `evotree experiment study regression --data-home DIR --out docs/results`,
from the rows in `regression_runs.csv`: {results.planned} fits.

Shuffled {N_FOLDS}-fold cross-validation, once, the same folds for all methods. Missing values are
replaced by the median of the training rows, beside a column of 0 and 1 that tells where they were,
and categories are made columns of 0 and 1. All figures are means over folds of test rows. R² is in
percent. The terms of a model are the weights other than 0 of its
splits and of the linear models in its leaves; its complexity is its leaves and terms. A rule of
{CUBIST} is a leaf, and its conditions are terms; {RIDGE} is one leaf. Those of a forest are of all
its trees. Seconds are those of a fit on one thread, on a machine that did other work at the same
time. "{MISSING}" stands for what was not measured.

{methods_text()}

## Summary

Means over the {len(both)} data sets that all methods of the table have; the RMSE is divided by that
of {RIDGE}. Left out, with the number of their data sets: {left_out_text(scores)}.

{summary_table(runs)}

## EvoTree less each other method

Mean differences in points of R² with their standard errors, and data sets won / tied / lost, on the
data sets of both; a difference below {TIE:g} points is a tie.

{differences_table({R2: scores}, EVOTREE)}

## Floors

EvoTree less the better of tuned CART and ridge regression, in points of R², the worst data set
first.

{floors_table(scores, EVOTREE, (CART, RIDGE), DEEP)}

## Ranks

Rank 1 is the best R²; ties share the mean of their ranks. The methods and the data sets are those
of the summary:

{ranks_section(both, out)}

## R²

{sizes_section(runs, both, out)}

The best single tree is bold.

{cells_table(scores, 1, bold=TREES)}

## RMSE

{errors_table(figure(runs, RMSE))}

## Leaves

{cells_table(figure(runs, "leaves"), 1)}

## Complexity

{cells_table(figure(runs, "complexity"), 0)}

## Seconds

{cells_table(figure(runs, "seconds"), 2)}

## RADDT's protocol

{raddt_section(runs)}
"""


STUDY = Study(
    "regression",
    f"{len(SYSTEMS)} methods of regression on {len(DATASETS)} data sets, and RADDT's protocol",
    make_experiment,
    write,
)
