"""Tables of the reports in Markdown: means over folds, methods compared over data sets, cells.

Means are data set by method, NaN where a method was not run. A difference is given by its mean and
standard error over data sets, and by how many of these are won, tied and lost.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from evotree.experiments.comparison import friedman, markdown_table, mean_and_std
from evotree.experiments.pictures import plot_critical_differences, save_picture
from experiments.suites import N_FOLDS

TIE = 0.1  # means that differ by fewer points are a tie
ENOUGH = 0.6  # the share of the data sets that a method must have to be in the means
MISSING = "-"
NOT_RUN = "Not run yet."

Figures = Mapping[str, tuple[str, float, int]]
"""What figures are called in the rows, their unit, and their decimals, by title."""


def table(rows: Iterable[Mapping[str, str]], n_left: int = 1) -> str:
    """Return rows of cells in Markdown; cells that a row lacks are empty."""
    made = pd.DataFrame(list(rows))
    return NOT_RUN if made.empty else markdown_table(made.fillna(""), n_left)


def shown(value: float, spec: str = ".2f", missing: str = MISSING) -> str:
    """Return a number as text."""
    return missing if np.isnan(value) else format(value, spec)


def named(items: Iterable[str], present: Iterable[Any]) -> list[str]:
    """Return the names that are present, in the order of the first."""
    known = set(present)
    return [name for name in items if name in known]


def beside(
    fits: pd.DataFrame, theirs: Any, figures: Figures, word: str = "published"
) -> dict[str, str]:
    """Return published figures and ours by title, and the difference of the first one."""
    row = {}
    for title, (column, unit, decimals) in figures.items():
        value, ours = float(theirs.get(column, np.nan)), fits[column]
        row[f"{title}, {word}"] = shown(unit * value, f".{decimals}f", "")
        row[f"{title}, ours"] = mean_and_std(unit * ours, decimals)
        if len(row) == 2:
            row["difference"] = f"{unit * (ours.mean() - value):+.{decimals}f}"
    return row


def groups_of(
    runs: pd.DataFrame, datasets: Iterable[str], methods: Iterable[str]
) -> dict[tuple[str, str], pd.DataFrame]:
    """Return the runs of each data set and method that has some, in the order given."""
    groups, methods = dict(iter(runs.groupby(["dataset", "method"]))), list(methods)
    cells = [(dataset, method) for dataset in datasets for method in methods]
    return {cell: groups[cell] for cell in cells if cell in groups}


def fold_means(
    runs: pd.DataFrame,
    column: str,
    datasets: Iterable[str],
    methods: Iterable[str],
    n_folds: int = N_FOLDS,
) -> pd.DataFrame:
    """Return means over folds, data set by method; NaN where a fold or its value is missing."""
    values = runs.get(column, pd.Series(np.nan, runs.index)).astype(float)
    groups = values.groupby([runs["dataset"], runs["method"]])
    means = groups.mean().where(groups.count() >= n_folds).unstack()
    return means.loc[named(datasets, means.index), named(methods, means)]


def figures_of(
    runs: pd.DataFrame, figures: Figures, datasets: Sequence[str], methods: Sequence[str]
) -> dict[str, pd.DataFrame]:
    """Return the `fold_means` of each figure, in its unit."""
    return {
        title: unit * fold_means(runs, column, datasets, methods)
        for title, (column, unit, _) in figures.items()
    }


def paired(differences: pd.Series) -> str:
    """Return mean and standard error of differences in points, and wins, ties and losses."""
    d = differences.dropna()
    if d.empty:
        return ""
    wins, losses = int((d >= TIE).sum()), int((d <= -TIE).sum())
    error = f" ± {d.std() / np.sqrt(len(d)):.2f}" if len(d) > 1 else ""
    return f"{d.mean():+.2f}{error} ({wins} / {len(d) - wins - losses} / {losses})"


def compared(scores: pd.DataFrame) -> pd.DataFrame:
    """Return the scores of the data sets which all methods have that have `ENOUGH` of them."""
    counts = scores.notna().sum()
    return scores.loc[:, counts >= ENOUGH * counts.max()].dropna()


def differences_table(
    tables: Mapping[str, pd.DataFrame], ours: str, sign: float = 1.0, counts: bool = True
) -> str:
    """Return a method less each other one, on the data sets of both; of sign -1 the other way."""
    scores = next(iter(tables.values()))
    if ours not in scores:
        return f"{ours} has not been run yet."
    rows = []
    for rival in scores.columns.drop(ours):
        n_both = int(scores[[ours, rival]].notna().all(axis=1).sum())
        row = {"method": str(rival)} | ({"data sets": str(n_both)} if counts else {})
        for title, means in tables.items():
            row[title] = paired(sign * (means[ours] - means[rival])) or MISSING
        rows.append(row)
    return table(rows)


def comparison(
    tables: Mapping[str, pd.DataFrame],
    figures: Figures,
    ours: str,
    duels: Mapping[str, pd.DataFrame] | None = None,
) -> dict[str, Any]:
    """Return what texts name of compared methods: means over the data sets that all have."""
    title, scores = next(iter(tables.items()))
    counts, both = scores.notna().sum(), compared(scores)
    summary = [
        {"method": str(method)}
        | {
            t: shown(m.loc[both.index, method].mean(skipna=False), f",.{figures[t][-1]}f")
            for t, m in tables.items()
        }
        for method in both
    ]
    left_out = [f"{name} ({n})" for name, n in counts.drop(both.columns).items()]
    return {
        "n_compared": len(both),
        "left_out": ", ".join(left_out) or "none",
        "summary": table(summary),
        "duels": differences_table(duels or {title: scores}, ours),
    }


def floors_table(scores: pd.DataFrame, ours: str, floors: tuple[str, ...]) -> str:
    """Return a method less the best of some others, the worst data set first."""
    if not {ours, *floors} <= set(scores):
        return NOT_RUN
    both = scores[[ours, *floors]].dropna()
    difference = (both[ours] - both[list(floors)].max(axis=1)).sort_values(kind="stable")
    rows = [
        {"data set": str(name), "difference": f"{gain:+.1f}"}
        | {str(method): f"{value:.1f}" for method, value in both.loc[name].items()}
        for name, gain in difference.items()
    ]
    deep = [f"{name} ({value:+.1f})" for name, value in difference.items() if value < -1.0]
    return f"""More than 1 point below the floor: {", ".join(deep) or "none"}. Mean
difference, and data sets won / tied / lost: {paired(difference)}.

{table(rows)}"""


def cells_table(
    means: pd.DataFrame, spec: str, bold: Iterable[str] = (), missing: str = MISSING
) -> str:
    """Return data sets by methods, the best of some methods bold, without methods of no value."""
    means = means.dropna(axis=1, how="all")
    judged = named(bold, means)
    rows = []
    for dataset, row in means.iterrows():
        cells = {"data set": str(dataset)}
        best = shown(row[judged].max(), spec, missing) if judged else None
        for method, value in row.items():
            text = shown(value, spec, missing)
            is_best = method in judged and text == best != missing
            cells[str(method)] = f"**{text}**" if is_best else text
        rows.append(cells)
    return table(rows)


def ranks_section(scores: pd.DataFrame, ours: str, picture: Path) -> str:
    """Draw the ranks of methods, and return them, with their p-values against ours."""
    if min(scores.shape) < 3:
        return "There are fewer than three methods or data sets to compare."
    long = scores.rename_axis(index="dataset", columns="method").stack().rename("score")
    test = friedman(long.reset_index(), "score")
    save_picture(plot_critical_differences(test), picture)
    rows = []
    for method, rank in test.mean_ranks.sort_values().items():
        row = {"method": str(method), "mean rank": f"{rank:.2f}"}
        if ours in test.mean_ranks:
            p = test.adjusted.loc[ours, method]
            row[f"p, against {ours}"] = "" if method == ours else f"{p:.2g}"
        rows.append(row)
    return f"""{table(rows)}

Friedman's χ² is {test.statistic:.1f}, p = {test.p_value:.2g}. The p-values of pairs are adjusted \
by Holm for all pairs.

A bar joins methods that cannot be told apart:

![Mean ranks of the methods]({picture.name})"""
