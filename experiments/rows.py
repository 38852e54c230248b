"""The rows of a study as CSV, which a version control holds: read into a store, written again."""

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from evotree.experiments.protocols import KEY
from evotree.experiments.runner import DONE
from evotree.experiments.store import (
    Store,
    check_runs,
    checksum,
    read_curves,
    read_runs,
)
from evotree.tables.readers import EXACT_NUMBERS

log = logging.getLogger(__name__)


def read_rows(path: Path, columns: Sequence[str] = KEY) -> pd.DataFrame:
    """Read a CSV file of rows that has some columns."""
    try:
        # Types are inferred from whole columns; the first column is never taken for row names.
        kinds = {"settings": str, "revision": str}  # both may be of digits alone
        rows = pd.read_csv(
            path, index_col=False, low_memory=False, dtype=kinds, **EXACT_NUMBERS
        )
    except ValueError as error:
        raise ValueError(
            f"{path} cannot be read as a table of runs: {str(error)[:200]}"
        ) from error
    if missing := [name for name in columns if name not in rows]:
        raise ValueError(
            f"{path} has no column {', '.join(missing)}. Move it away to begin again."
        )
    # Rows that were written when terms had another name, and no complexity, gain both.
    if "terms" not in rows:
        rows = rows.rename(columns={"nonzero_weights": "terms"})
    rows = check_runs(rows, path)
    if "complexity" not in rows and {"leaves", "terms"} <= set(rows):
        place = rows.columns.get_loc("terms") + 1
        rows.insert(place, "complexity", (rows["leaves"] + rows["terms"]).astype(float))
    return rows


def read_curve_rows(path: Path) -> dict[Any, pd.DataFrame]:
    """Return the learning curves of a CSV file by the values of `KEY`; none if it is missing."""
    if not path.exists():
        return {}
    groups = read_rows(path).groupby(list(KEY), sort=False)
    return {
        key: curve.drop(columns=list(KEY)).reset_index(drop=True)
        for key, curve in groups
    }


def fill(
    store: Store, experiment: Any, rows_file: Path, curves_file: Path | None = None
) -> None:
    """Put rows of CSV files into a store, but those of other settings than a method's now."""
    if not rows_file.exists():
        return
    rows = read_rows(rows_file)
    if strange := sorted(set(rows) - set(store.columns)):
        raise ValueError(
            f"{rows_file} has the columns {', '.join(strange)[:200]}: not measured."
        )
    if "settings" in rows:
        methods = experiment.definition()["methods"]
        now = rows["method"].map(
            {name: checksum(text) for name, text in methods.items()}
        )
        is_stale = rows["settings"].notna() & now.notna() & (rows["settings"] != now)
        if is_stale.any():
            names = ", ".join(rows["method"][is_stale].unique())
            log.warning(
                "%d rows of other settings do not count: %s", is_stale.sum(), names
            )
        rows = rows[~is_stale]
    done = store.done()
    curves = read_curve_rows(curves_file) if curves_file else {}
    for row in rows.astype(object).where(rows.notna(), None).to_dict("records"):
        key = tuple(row[name] for name in KEY)
        if key not in done:
            store.add({**row, "status": DONE}, curves.get(key))


def write_rows(store: Store, rows_file: Path, curves_file: Path | None = None) -> None:
    """Write the fits that are done as CSV, and their learning curves where there are any."""
    runs = read_runs(store.path.parent)
    runs = runs[runs["status"] == DONE].drop(columns=["status", "error", "versions"])
    # Whole numbers are written as such.
    runs.dropna(axis=1, how="all").convert_dtypes().to_csv(rows_file, index=False)
    if curves_file is not None and (curves := read_curves(store.path.parent)):
        keyed = [
            (dict(zip(KEY, key, strict=True)), curve) for key, curve in curves.items()
        ]
        long = [curve.assign(**key)[[*KEY, *curve]] for key, curve in keyed]
        pd.concat(long).convert_dtypes().to_csv(curves_file, index=False)
