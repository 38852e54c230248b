"""Tables of the reports in Markdown: means over folds, methods compared over data sets, cells.

Means are data set by method, NaN where a method was not run. A difference is given by its mean and
standard error over data sets, and by how many of these are won, tied and lost.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy import stats

from evotree.experiments.comparison import (
    LEVEL,
    adjust_by_holm,
    markdown_table,
    plot_accuracy_against_size,
)
from evotree.plotting.style import save_picture
from experiments.suites import FAILED, N_FOLDS

TIE = 0.1  # means that differ by fewer points are a tie
LOSS_TIE = 0.005  # and means of the log loss, of which less is better
LOSS = "log loss"
ENOUGH = 0.6  # the share of the data sets that a method must have to be in the means
MISSING = "-"

Figures = Mapping[str, tuple[str, float, int]]
"""What figures are called in the rows, their unit, and their decimals, by title."""


def table(rows: Iterable[Mapping[str, str]], n_left: int = 1) -> str:
    """Return rows of cells in Markdown; cells that a row lacks are empty."""
    return markdown_table(pd.DataFrame(list(rows)).fillna(""), n_left)


def shown(value: float, spec: str = ".2f", missing: str = MISSING) -> str:
    """Return a number as text."""
    return missing if np.isnan(value) else format(value, spec)


def mean_and_std(values: pd.Series, decimals: int) -> str:
    """Return ``mean ± standard deviation`` as text; the mean alone where there is one value."""
    std = f" ± {values.std():.{decimals}f}" if len(values) > 1 else ""
    return f"{values.mean():.{decimals}f}{std}"


def named(items: Iterable[str], present: Iterable[Any]) -> list[str]:
    """Return the names that are present, in the order of the first."""
    there = set(present)
    return [name for name in items if name in there]


def beside(
    fits: pd.DataFrame, theirs: Any, figures: Figures, word: str = "published"
) -> dict[str, str]:
    """Return published figures and ours by title, and the difference of the first one."""
    row = {}
    for title, (column, unit, decimals) in figures.items():
        value = float(theirs.get(column, np.nan))
        ours = fits[column]
        row[f"{title}, {word}"] = shown(unit * value, f".{decimals}f", "")
        row[f"{title}, ours"] = mean_and_std(unit * ours, decimals)
        if len(row) == 2:
            row["difference"] = f"{unit * (ours.mean() - value):+.{decimals}f}"
    return row


def on_same_rows(
    runs: pd.DataFrame, fits: pd.DataFrame, methods: Iterable[str]
) -> dict[str, str]:
    """Return how many fits these are, what they have, and what methods reach on their rows."""
    keys = ["dataset", "fold"]
    accuracy = 100.0 * runs.pivot(index=keys, columns="method", values="accuracy")
    means = accuracy.loc[fits.set_index(keys).index].mean()
    return {
        "fits": f"{len(fits)}",
        "data sets": f"{fits['dataset'].nunique()}",
        "complexity": f"{fits['complexity'].median():.0f}",
        **{method: f"{means[method]:.1f}" for method in named(methods, means.index)},
    }


def groups_of(
    runs: pd.DataFrame, datasets: Iterable[str], methods: Iterable[str]
) -> dict[tuple[str, str], pd.DataFrame]:
    """Return the runs of each data set and method that has some, in the order given."""
    groups = dict(iter(runs.groupby(["dataset", "method"])))
    methods = list(methods)
    cells = [(dataset, method) for dataset in datasets for method in methods]
    return {cell: groups[cell] for cell in cells if cell in groups}


def fold_means(
    runs: pd.DataFrame,
    column: str,
    datasets: Iterable[str],
    methods: Iterable[str],
    n_folds: int = N_FOLDS,
) -> pd.DataFrame:
    """Return means over folds, data set by method; NaN where a fold or its value is missing.

    The fits of `FAILED` are left out.
    """
    runs = runs[(runs["dataset"] != FAILED[0]) | (runs["method"] != FAILED[1])]
    values = runs.get(column, pd.Series(np.nan, runs.index)).astype(float)
    groups = values.groupby([runs["dataset"], runs["method"]])
    means = groups.mean().where(groups.count() >= n_folds).unstack()
    return means.loc[named(datasets, means.index), named(methods, means)]


def figures_of(
    runs: pd.DataFrame,
    figures: Figures,
    datasets: Sequence[str],
    methods: Iterable[str],
    n_folds: int = N_FOLDS,
) -> dict[str, pd.DataFrame]:
    """Return the `fold_means` of each figure, in its unit."""
    return {
        title: unit * fold_means(runs, column, datasets, methods, n_folds)
        for title, (column, unit, _) in figures.items()
    }


def paired(differences: pd.Series, title: str = "") -> str:
    """Return mean and standard error of differences, and wins, ties and losses.

    These are of points, of which more are better, or of the log loss.
    """
    d = differences.dropna()
    if d.empty:
        return ""
    better, tie, decimals = (-d, LOSS_TIE, 3) if title == LOSS else (d, TIE, 2)
    wins = int((better >= tie).sum())
    losses = int((better <= -tie).sum())
    error = f" ± {d.std() / np.sqrt(len(d)):.{decimals}f}" if len(d) > 1 else ""
    counts = f"{wins} / {len(d) - wins - losses} / {losses}"
    return f"{d.mean():+.{decimals}f}{error} ({counts})"


def compared(scores: pd.DataFrame) -> pd.DataFrame:
    """Return the scores of the data sets which all methods have that have `ENOUGH` of them."""
    counts = scores.notna().sum()
    return scores.loc[:, counts >= ENOUGH * counts.max()].dropna()


def differences_table(
    tables: Mapping[str, pd.DataFrame], ours: str, sizes: pd.DataFrame | None = None
) -> str:
    """Return a method less each other one, by title, on the data sets of both; perhaps sizes."""
    scores = next(iter(tables.values()))
    rows = []
    for method in scores.columns.drop(ours):
        both = scores[[ours, method]].dropna().index
        row = {"method": str(method), "data sets": str(len(both))}
        for title, means in tables.items():
            row[title] = paired(means[ours] - means[method], title) or MISSING
        if sizes is not None:
            own, other = sizes.loc[both, [ours, method]].mean()
            row["mean complexity, both"] = f"{own:,.0f} / {other:,.0f}"
        rows.append(row)
    return table(rows)


def comparison(
    means: Mapping[str, pd.DataFrame],
    figures: Figures,
    ours: str,
    duels: Mapping[str, pd.DataFrame],
    ranks: Mapping[str, float] | None = None,
) -> dict[str, Any]:
    """Return the table of compared methods, and on how many data sets their means are.

    These are the data sets that all methods have that have `ENOUGH` of them. The differences of
    ours to each other method are over the data sets of both, by the titles of `duels`.
    """
    both = compared(next(iter(means.values())))
    rows = []
    for method in next(iter(means.values())):
        row = {"method": str(method)}
        for title, values in means.items():
            mean = (
                values[method].reindex(both.index).mean(skipna=False)
                if method in both
                else np.nan
            )
            row[title] = shown(mean, f",.{figures[title][-1]}f")
        if ranks is not None:
            row["mean rank"] = shown(ranks.get(method, np.nan))
        for title, scores in duels.items():
            if ours in scores and method != ours:
                row[f"{ours} minus it: {title}"] = (
                    paired(scores[ours] - scores[method], title) or MISSING
                )
        rows.append(row)
    return {"n_compared": len(both), "table": table(rows)}


def floor_sentence(scores: pd.DataFrame, ours: str, floors: tuple[str, ...]) -> str:
    """Return a method less the best of some others: the mean, and the data sets far below."""
    both = scores[[ours, *floors]].dropna()
    difference = (both[ours] - both[list(floors)].max(axis=1)).sort_values(
        kind="stable"
    )
    deep = [
        f"{name} ({value:+.1f})" for name, value in difference.items() if value < -1.0
    ]
    return (
        f"{ours} minus the better of {' and '.join(floors)}: {paired(difference)};\n"
        f"more than 1 point below on {', '.join(deep) or 'none'}."
    )


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


class FriedmanTest(NamedTuple):
    """Methods compared by their ranks on data sets that all have, 1 being the best."""

    mean_ranks: pd.Series
    statistic: float
    p_value: float
    n_datasets: int

    def p_values(self, pairs: Iterable[tuple[str, str]]) -> np.ndarray:
        """Return the p-values of z-tests of pairs of methods, adjusted by Holm (Demšar 2006)."""
        k = len(self.mean_ranks)
        error = np.sqrt(k * (k + 1) / (6.0 * self.n_datasets))
        gaps = [self.mean_ranks[a] - self.mean_ranks[b] for a, b in pairs]
        return adjust_by_holm(2.0 * stats.norm.sf(np.abs(gaps) / error))


def friedman(scores: pd.DataFrame, larger_is_better: bool = True) -> FriedmanTest:
    """Compare three methods or more by Friedman's test of their scores, data set by method."""
    # Means of equal scores may differ in their last bits; rounded, they tie.
    scale = scores.abs().max(axis=1).replace(0.0, 1.0)
    rounded = scores.div(scale, axis=0).round(12)
    ranks = rounded.rank(axis=1, ascending=not larger_is_better)
    statistic, p_value = stats.friedmanchisquare(*ranks.to_numpy().T)
    return FriedmanTest(ranks.mean(), float(statistic), float(p_value), len(scores))


def ranks_of(scores: pd.DataFrame, ours: str) -> tuple[Mapping[str, float], str]:
    """Return the mean ranks of methods, and which methods differ from ours by them."""
    test = friedman(scores)
    pairs = list(combinations(scores, 2))
    different = [
        f"{a if b == ours else b} (p = {p:.2g})"
        for (a, b), p in zip(pairs, test.p_values(pairs), strict=True)
        if ours in (a, b) and p < LEVEL
    ]
    sentence = (
        f"Friedman's χ² is {test.statistic:.1f}, p = {test.p_value:.2g}. After Holm's correction "
        f"for all pairs, these differ\nfrom {ours} at the level {LEVEL}: "
        f"{', '.join(different) or 'none'}."
    )
    return dict(test.mean_ranks), sentence


def sizes_of(
    runs: pd.DataFrame, both: pd.DataFrame, size: str, metric: str, picture: Path
) -> str:
    """Draw a score against a size, of the methods that have one on all data sets."""
    sized = fold_means(runs, size, both.index, both.columns).dropna(axis=1)
    drawn = runs[runs["method"].isin(sized) & runs["dataset"].isin(both.index)]
    save_picture(plot_accuracy_against_size(drawn, size, metric=metric), picture)
    return f"""Mean {metric} against mean {size}, of the methods that have one:

![{metric} against {size}]({picture.name})"""
