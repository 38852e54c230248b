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
    return check_runs(rows, path)


def fill(store: Store, experiment: Any, rows_file: Path) -> None:
    """Put rows of a CSV file into a store, but those of other settings than a method's now."""
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
    for row in rows.astype(object).where(rows.notna(), None).to_dict("records"):
        key = tuple(row[name] for name in KEY)
        if key not in done:
            store.add({**row, "status": DONE})


def write_rows(store: Store, rows_file: Path) -> None:
    """Write the fits that are done as CSV."""
    runs = read_runs(store.path.parent)
    runs = runs[runs["status"] == DONE].drop(columns=["status", "error", "versions"])
    # Whole numbers are written as such.
    runs.dropna(axis=1, how="all").convert_dtypes().to_csv(rows_file, index=False)
