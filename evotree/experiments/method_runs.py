"""Runs of methods on data sets: what of a table can be compared, means, and ranks.

In: a table of runs, one row a fit, with the columns ``dataset``, ``method``, ``fold`` and ``seed``
and those of scores, sizes and times; ``fold`` and ``seed`` may be missing where there is but one.
A column ``status``, if there is one, says ``done`` in the rows to be used.
"""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd


def done_runs(runs: pd.DataFrame, *columns: str) -> pd.DataFrame:
    """Return the runs that can be compared: those done, with a value in each column asked for.

    Parameters
    ----------
    runs : DataFrame
        Runs, one row a fit.
    *columns : str
        Columns of numbers.

    Returns
    -------
    DataFrame
        ``dataset`` and ``method`` (str), ``fold``, ``seed`` and the columns, with rows numbered
        again.

    Warns
    -----
    UserWarning
        If rows are left out: how many, and why.

    Raises
    ------
    TypeError, ValueError
        If `runs` is not a DataFrame or lacks columns or values, if a value is not a finite number,
        if a fit is there twice, or if no row is left.
    """
    if not isinstance(runs, pd.DataFrame):
        raise TypeError(f"runs is a {type(runs).__name__}: allowed is a DataFrame.")
    key = ["dataset", "method", "fold", "seed"]
    for name in ("dataset", "method", *columns):
        if name not in runs:
            raise ValueError(f"runs has no column {name!r}; it has {', '.join(map(str, runs))}.")
    if "status" in runs:
        is_done = runs.status.eq("done")
        _warn_of_rows(~is_done, "with a status other than 'done'")
        runs = runs[is_done]
    runs = pd.DataFrame({name: runs.get(name, 0) for name in [*key, *columns]}, runs.index)
    for name in key:
        if runs[name].isna().any():
            raise ValueError(f"runs has no {name} in {runs[name].isna().sum()} rows.")
    runs = runs.astype({"dataset": str, "method": str})
    for name in columns:
        values = pd.to_numeric(runs[name], errors="coerce").astype(np.float64)
        wrong = runs.loc[(values.isna() & runs[name].notna()) | np.isinf(values), name]
        if len(wrong):
            raise ValueError(
                f"runs has {wrong.tolist()[0]!r} as {name}: allowed are finite numbers."
            )
        runs[name] = values
    has_values = runs[list(columns)].notna().all(axis=1)
    _warn_of_rows(~has_values, f"without {' or '.join(columns)}")
    runs = runs[has_values].reset_index(drop=True)
    if runs.empty:
        raise ValueError("runs has no row that is done.")
    if (twice := runs.duplicated(key)).any():
        fit = ", ".join(f"{name} {runs.loc[twice.idxmax(), name]}" for name in key)
        raise ValueError(f"runs has more than one row of the same fit: {fit}.")
    return runs


def _warn_of_rows(is_left_out: pd.Series, why: str) -> None:
    if n := int(is_left_out.sum()):
        message = f"{n} of {len(is_left_out)} runs are left out: those {why}."
        # Level 4 is the line that called the caller of done_runs.
        warnings.warn(message, UserWarning, stacklevel=4)


def complete_datasets(runs: pd.DataFrame) -> tuple[list[str], list[str]]:
    """Part the data sets on which all methods have runs on the same folds from the others.

    Parameters
    ----------
    runs : DataFrame
        Runs as `done_runs` returns them.

    Returns
    -------
    complete, others : list of str
        Names, in the order of their first rows.
    """
    n_methods = runs.groupby(["dataset", "fold"]).method.nunique()
    is_complete = n_methods.eq(runs.method.nunique()).groupby("dataset").all()
    names = runs.dataset.unique()
    return (
        [name for name in names if is_complete[name]],
        [name for name in names if not is_complete[name]],
    )


def mean_scores(runs: pd.DataFrame, column: str) -> pd.DataFrame:
    """Return means over folds and seeds.

    Parameters
    ----------
    runs : DataFrame
        Runs as `done_runs` returns them.
    column : str
        One of the columns of numbers.

    Returns
    -------
    DataFrame of shape (n_datasets, n_methods)
        Means in the order of the first rows, NaN where there are no runs.
    """
    means = runs.groupby(["dataset", "method"])[column].mean().unstack()
    return means.reindex(index=runs.dataset.unique(), columns=runs.method.unique())


def rank_methods(means: pd.DataFrame, larger_is_better: bool) -> pd.DataFrame:
    """Return the rank of each method on each data set; 1 is best, ties share their mean rank.

    Parameters
    ----------
    means : DataFrame of shape (n_datasets, n_methods)
        Scores.
    larger_is_better : bool
        Whether rank 1 belongs to the largest score.

    Returns
    -------
    DataFrame of shape (n_datasets, n_methods)
        Ranks.
    """
    # Means of equal scores may differ in their last bits; rounded, they tie.
    scale = means.abs().max(axis=1).replace(0.0, 1.0)
    scaled = means.div(scale, axis=0).round(12)
    return scaled.rank(axis=1, ascending=not larger_is_better)
