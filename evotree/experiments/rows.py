"""Results as text: rows and learning curves in CSV files, which a version control can hold."""

from __future__ import annotations

import logging
import os
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from evotree.experiments.experiment import Experiment, checksum
from evotree.experiments.runner import DONE
from evotree.experiments.store import KEY, Store, check_runs, read_curves

log = logging.getLogger(__name__)

_NOTES = ("status", "error", "versions")
"""Columns of a row that are not written as text."""


def read_rows(path: Path, columns: Sequence[str] = KEY) -> pd.DataFrame:
    """Read a CSV file of rows.

    Parameters
    ----------
    path : Path
        The file.
    columns : sequence of str, default=KEY
        Columns that it must have.

    Returns
    -------
    DataFrame
        The rows.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If it is no table, lacks columns, ends within a row, or a cell is of another kind than its
        column.
    """
    try:
        with path.open("rb") as file, warnings.catch_warnings():
            warnings.simplefilter("error", pd.errors.ParserWarning)
            # Types are inferred from whole columns; the first column is never taken for row names.
            rows = pd.read_csv(file, index_col=False, low_memory=False, dtype={"settings": str})
        with path.open("rb") as file:
            file.seek(-1, os.SEEK_END)
            is_whole = file.read() == b"\n"
    except (ValueError, pd.errors.ParserWarning) as error:
        raise ValueError(f"{path} cannot be read as a table of runs: {str(error)[:200]}") from error
    if not is_whole:
        raise ValueError(f"{path} ends within a row: take its last line out to go on.")
    if missing := [name for name in columns if name not in rows]:
        raise ValueError(f"{path} has no column {', '.join(missing)}. Move it away to begin again.")
    rows = check_runs(rows, path)
    for name in rows.select_dtypes("number"):
        if name not in KEY:
            rows[name] = rows[name].astype(float)
        elif rows[name].dtype != np.int64:
            raise ValueError(f"{path}: a row has a {name} that is not a whole number.")
    return rows


def read_curve_rows(path: Path) -> dict[tuple[Any, ...], pd.DataFrame]:
    """Return the learning curves of a CSV file by the values of `KEY`; none if it is missing."""
    if not path.exists():
        return {}
    groups = read_rows(path).groupby(list(KEY), sort=False)
    return {key: curve.drop(columns=list(KEY)).reset_index(drop=True) for key, curve in groups}


def fill(
    store: Store, experiment: Experiment, rows_file: Path, curves_file: Path | None = None
) -> None:
    """Put the rows of text files into a store that has none of their fits.

    Rows that say with which settings they were made count only where these are the settings that
    their method has now; rows that do not say so count.

    Parameters
    ----------
    store : Store
        Gains the rows.
    experiment : Experiment
        Whose store it is.
    rows_file, curves_file : Path
        What `write_rows` has written; may be missing.

    Raises
    ------
    ValueError
        If a file is none of rows, or has columns that the experiment has not.
    """
    if not rows_file.exists():
        return
    rows = read_rows(rows_file)
    if strange := sorted(set(rows) - set(store.columns)):
        raise ValueError(f"{rows_file} has the columns {', '.join(strange)[:200]}: not measured.")
    present = {name: checksum(text) for name, text in experiment.definition()["methods"].items()}
    if "settings" in rows:
        now = rows["method"].map(present)
        is_stale = rows["settings"].notna() & now.notna() & (rows["settings"] != now)
        if is_stale.any():
            names = ", ".join(rows["method"][is_stale].unique())
            log.warning("%d rows of other settings do not count: %s", is_stale.sum(), names)
        rows = rows[~is_stale]
    store.fill(rows.assign(status=DONE), read_curve_rows(curves_file) if curves_file else {})


def write_rows(store: Store, rows_file: Path, curves_file: Path | None = None) -> None:
    """Write the fits that are done as text, in the order of their keys.

    Parameters
    ----------
    store : Store
        Holds the results.
    rows_file, curves_file : Path
        The files; that of the curves is written where there are any.
    """
    runs = store.runs()
    runs = runs[runs["status"] == DONE].drop(columns=list(_NOTES)).dropna(axis=1, how="all")
    # Whole numbers are written as such.
    runs.convert_dtypes().to_csv(rows_file, index=False)
    curves = read_curves(store.path.parent)
    if curves_file is not None and curves:
        long = [
            curve.assign(**dict(zip(KEY, key, strict=True)))[[*KEY, *curve]]
            for key, curve in curves.items()
        ]
        pd.concat(long).convert_dtypes().to_csv(curves_file, index=False)
