"""Tables of methods and data sets in Markdown: what the reports of benchmarks share.

In: tables of means, data set by method, NaN where a method was not run; of the first of several
tables of a report the larger values are the better.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
import pandas as pd

from evotree.experiments.markdown import markdown_table
from evotree.experiments.rank_tests import FriedmanTest, friedman
from evotree.experiments.studies.means import paired

ENOUGH = 0.6
"""The share of the data sets that a method must have to be in the means."""
MISSING = "-"


def compared(scores: pd.DataFrame) -> pd.DataFrame:
    """Return the scores that can be compared: those of data sets which all methods have.

    Parameters
    ----------
    scores : DataFrame
        Data set by method, NaN where a method was not run.

    Returns
    -------
    DataFrame
        Without the methods that have fewer than `ENOUGH` of the data sets of the one that has
        most, and without the data sets that another method lacks.
    """
    counts = scores.notna().sum()
    return scores.loc[:, counts >= ENOUGH * counts.max()].dropna()


def left_out_text(scores: pd.DataFrame) -> str:
    """Return which methods are not in the means, and on how many data sets they were run."""
    counts = scores.notna().sum()
    missing = counts.drop(compared(scores).columns)
    return ", ".join(f"{name} ({n})" for name, n in missing.items()) or "none"


def shown(value: float, decimals: int) -> str:
    """Return a number as text, `MISSING` where there is none."""
    return MISSING if np.isnan(value) else f"{value:,.{decimals}f}"


def means_table(tables: Mapping[str, pd.DataFrame], decimals: Mapping[str, int]) -> str:
    """Return means over the data sets that can be compared by the first table, in Markdown."""
    both = compared(next(iter(tables.values())))
    rows = []
    for system in both:
        row = {"method": str(system)}
        for title, table in tables.items():
            row[title] = shown(table.loc[both.index, system].mean(skipna=False), decimals[title])
        rows.append(row)
    return markdown_table(pd.DataFrame(rows))


def differences_table(tables: Mapping[str, pd.DataFrame], ours: str) -> str:
    """Return a method less each other one, on the data sets of both, in Markdown."""
    scores = next(iter(tables.values()))
    if ours not in scores:
        return f"{ours} has not been run yet."
    rows = []
    for rival in scores.columns.drop(ours):
        n_both = int(scores[[ours, rival]].notna().all(axis=1).sum())
        row = {"method": str(rival), "data sets": str(n_both)}
        for title, table in tables.items():
            row[title] = paired(table[ours] - table[rival]) or MISSING
        rows.append(row)
    return markdown_table(pd.DataFrame(rows))


def floors_table(scores: pd.DataFrame, ours: str, floors: tuple[str, ...], deep: float) -> str:
    """Return a method less the best of some others, the worst data set first, in Markdown.

    Parameters
    ----------
    scores : DataFrame
        Scores in points.
    ours : str
        The method.
    floors : tuple of str
        The others.
    deep : float
        Points below the floor, of which the text speaks.
    """
    if not {ours, *floors} <= set(scores):
        return "Not run yet."
    table = scores[[ours, *floors]].dropna()
    difference = (table[ours] - table[list(floors)].max(axis=1)).sort_values(kind="stable")
    rows = [
        {"data set": str(name), "difference": f"{difference[name]:+.1f}"}
        | {system: f"{value:.1f}" for system, value in table.loc[name].items()}
        for name in difference.index
    ]
    named = [f"{name} ({value:+.1f})" for name, value in difference.items() if value < -deep]
    return f"""More than {deep:g} point below the floor: {", ".join(named) or "none"}. Mean
difference, and data sets won / tied / lost: {paired(difference)}.

{markdown_table(pd.DataFrame(rows)) if rows else ""}"""


def cells_table(means: pd.DataFrame, decimals: int, bold: Iterable[str] = ()) -> str:
    """Return a figure of data sets and methods in Markdown, the best of some methods bold.

    Methods without any value are left out.
    """
    means = means.dropna(axis=1, how="all").round(decimals)
    judged = [name for name in bold if name in means]
    rows = []
    for dataset, row in means.iterrows():
        cells = {"data set": str(dataset)}
        for system, value in row.items():
            text = shown(value, decimals)
            is_best = system in judged and value == row[judged].max()
            cells[str(system)] = f"**{text}**" if is_best else text
        rows.append(cells)
    return markdown_table(pd.DataFrame(rows)) if means.size else "Not run yet."


def rank_systems(scores: pd.DataFrame) -> FriedmanTest | None:
    """Compare methods by their ranks.

    Parameters
    ----------
    scores : DataFrame
        From `compared`.

    Returns
    -------
    FriedmanTest or None
        None where there are fewer than three methods or data sets.
    """
    if min(scores.shape) < 3:
        return None
    long = scores.rename_axis(index="dataset", columns="method").stack().rename("score")
    return friedman(long.reset_index(), "score", post_hoc="holm")


def ranks_table(test: FriedmanTest, ours: str) -> str:
    """Return the mean ranks of methods in Markdown, each with its p-value against `ours`."""
    rows = []
    for system, rank in test.mean_ranks.sort_values().items():
        row = {"method": str(system), "mean rank": f"{rank:.2f}"}
        if ours in test.mean_ranks:
            p = test.adjusted.loc[ours, system]
            row[f"p, against {ours}"] = "" if system == ours else f"{p:.2g}"
        rows.append(row)
    return (
        f"{markdown_table(pd.DataFrame(rows))}\n\nFriedman's χ² is {test.statistic:.1f}, "
        f"p = {test.p_value:.2g}. The p-values of pairs are adjusted by Holm for all pairs."
    )
