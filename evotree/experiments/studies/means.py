"""Means over folds, and how methods differ over data sets: what the studies' tables are made of."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from evotree.experiments.studies.suites import N_FOLDS

TIE = 0.1
"""Means that differ by fewer points are a tie."""


def fold_means(
    runs: pd.DataFrame, column: str, datasets: Sequence[str], methods: Sequence[str]
) -> pd.DataFrame:
    """Return means over folds.

    Parameters
    ----------
    runs : DataFrame
        Rows of the fits.
    column : str
        What is meant; all means of a column that the rows lack are missing.
    datasets, methods : sequence of str
        Names, in the order wanted.

    Returns
    -------
    DataFrame
        Data set by method, those of which there are rows; NaN where a fold or its value is missing.
    """
    values = runs.get(column, pd.Series(np.nan, runs.index)).astype(float)
    groups = values.groupby([runs["dataset"], runs["method"]])
    means = groups.mean().where(groups.count() == N_FOLDS).unstack()
    rows = [name for name in datasets if name in means.index]
    return means.loc[rows, [name for name in methods if name in means]]


def paired(differences: pd.Series) -> str:
    """Return mean and standard error of differences in points, and wins, ties and losses."""
    d = differences.dropna()
    if d.empty:
        return ""
    wins, losses = int((d >= TIE).sum()), int((d <= -TIE).sum())
    error = f" ± {d.std() / np.sqrt(len(d)):.2f}" if len(d) > 1 else ""
    return f"{d.mean():+.2f}{error} ({wins} / {len(d) - wins - losses} / {losses})"
