"""Results of an experiment on disk: a file of lines, one a fit, added as fits finish.

A line is an object of JSON: what the experiment is, or a row with its learning curve. Lines are
only added, each by one write: several processes may do so, and a killed one leaves at most one line
that is not whole, which does not count. Of the rows of a fit the last one counts. A file may come
from others: it holds numbers and text, nothing that is run.
"""

import json
import logging
import os
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from pandas.api.types import is_numeric_dtype

log = logging.getLogger(__name__)

KEY = ("dataset", "method", "fold", "seed")
"""Columns that tell fits apart."""
FILE = "results.jsonl"
_TEXT = (
    "dataset",
    "method",
    "status",
    "error",
    "settings",
    "versions",
    "revision",
    "finished",
)

Key = tuple[Any, ...]
Definition = dict[str, Any]


class Store:
    """The results of one experiment in a folder, which is made if it is not there.

    `columns` are those of a row, `KEY` first. `definition` is what the experiment is, as JSON can
    hold it: what the folder holds must be the same, but lists and the methods by name may grow.
    """

    def __init__(
        self, folder: Path, columns: Sequence[str], definition: Mapping[str, Any]
    ) -> None:
        self.path = folder / FILE
        self.columns = tuple(columns)
        folder.mkdir(parents=True, exist_ok=True)
        self.path.touch()
        definition = {**definition, "columns": json.dumps(columns)}
        before, _ = _read(folder)
        if changed := differences(before, definition):
            raise ValueError(
                f"{self.path} holds the results of another experiment: {'; '.join(changed)}. "
                "Choose another folder, or move that file away."
            )
        if merged(before, definition) != before:
            self._append({"experiment": definition})

    def add(self, row: Mapping[str, Any], curve: pd.DataFrame | None = None) -> None:
        """Add a row with some of the columns, in the place of an earlier one of the same fit."""
        entry = {name: row.get(name) for name in self.columns}
        for name, value in entry.items():  # half characters have no encoding
            if isinstance(value, str):
                entry[name] = value.encode("utf-8", "backslashreplace").decode("utf-8")
        if curve is not None:
            entry["curve"] = curve.to_dict("list")
        self._append(entry)

    def done(self, statuses: Sequence[str] | None = None) -> set[Key]:
        """Return the keys of the fits that have a row, of some statuses or of any."""
        rows = _read(self.path.parent)[1]
        return {
            key
            for key, row in rows.items()
            if statuses is None or row["status"] in statuses
        }

    def runs(self) -> pd.DataFrame:
        """Return all rows, in the order of their keys."""
        return read_runs(self.path.parent)

    def _append(self, entry: Mapping[str, Any]) -> None:
        """Add a line by one write, after the end of one that is not whole."""
        line = json.dumps(entry, default=np.generic.item).encode() + b"\n"
        with self.path.open("a+b", buffering=0) as file:
            if file.seek(0, os.SEEK_END):
                file.seek(-1, os.SEEK_END)
                line = line if file.read() == b"\n" else b"\n" + line
            if file.write(line) < len(line):
                raise OSError(
                    f"{self.path}: a row cannot be written whole: the disk is full."
                )


def _read(folder: Path) -> tuple[Definition, dict[Key, dict[str, Any]]]:
    """Return the definition and the rows of a folder; lines that are not whole are left out."""
    path = folder / FILE
    if not path.exists():
        raise FileNotFoundError(f"{path} is not there: {folder} holds no results.")
    definition: Definition = {}
    rows: dict[Key, dict[str, Any]] = {}
    n_broken = 0
    for line in filter(None, path.read_bytes().split(b"\n")):
        try:
            entry = json.loads(line)
            if "experiment" in entry:
                definition = merged(definition, entry["experiment"])
            else:
                dataset, method, fold, seed = (entry[name] for name in KEY)
                entry["status"] = str(entry["status"])
                rows[str(dataset), str(method), int(fold), int(seed)] = entry
        except (AttributeError, KeyError, TypeError, ValueError, RecursionError):
            n_broken += 1
    if n_broken:
        log.warning("%s: %d lines that are not whole do not count", path, n_broken)
    # The first line may be the one that is not whole.
    if not definition and (rows or n_broken > 1):
        raise ValueError(f"{path} does not say of which experiment its results are.")
    return definition, rows


def read_runs(folder: Path) -> pd.DataFrame:
    """Return the rows of an experiment's results, by data set, method, seed and fold."""
    definition, rows = _read(folder)
    columns = json.loads(definition.get("columns", "[]")) or [*KEY, "status"]
    runs = check_runs(pd.DataFrame(list(rows.values()), columns=columns), folder / FILE)
    return runs.sort_values(["dataset", "method", "seed", "fold"], ignore_index=True)


def read_definition(folder: Path) -> Definition:
    """Return what the experiment of a folder is."""
    definition, _ = _read(folder)
    for name, kind in (("name", str), ("metrics", dict), ("methods", dict)):
        if not isinstance(definition.get(name), kind):
            raise ValueError(
                f"{folder / FILE}: its experiment has no {name}, or a wrong one."
            )
    return definition


def read_curves(folder: Path) -> dict[Key, pd.DataFrame]:
    """Return the learning curves of an experiment's fits, by the values of `KEY`."""
    rows = sorted(_read(folder)[1].items())
    try:
        return {key: pd.DataFrame(row["curve"]) for key, row in rows if "curve" in row}
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"{folder / FILE}: a learning curve is no table: {error}"
        ) from error


def check_runs(runs: pd.DataFrame, path: Path) -> pd.DataFrame:
    """Return rows whose cells are of the kinds of their columns; raise a ValueError for others."""
    needed = [name for name in (*KEY, "status") if name in runs]
    for name in runs:
        if name in _TEXT:
            is_sound = (
                runs[name]
                .map(lambda cell: isinstance(cell, str) or pd.isna(cell))
                .all()
            )
        else:
            is_sound = is_numeric_dtype(runs[name]) or runs[name].isna().all()
            is_sound = is_sound and (
                name not in KEY or (runs[name].dropna() % 1 == 0).all()
            )
        if not is_sound or (name in needed and runs[name].isna().any()):
            raise ValueError(f"{path}: a row has no {name}, or a wrong one.")
    kinds = {"fold": np.int64, "seed": np.int64, **dict.fromkeys(_TEXT, object)}
    return runs.astype({name: kinds.get(name, float) for name in runs})


def checksum(description: Mapping[str, str]) -> str:
    """Return a short text that is equal for equal descriptions of methods."""
    # None is left out: rows of before count when a parameter is added that does nothing by default.
    texts = {name: text for name, text in description.items() if text != "None"}
    return f"{zlib.crc32(json.dumps(texts, sort_keys=True).encode()):08x}"


def differences(
    earlier: Mapping[str, Any], later: Mapping[str, Any], place: str = ""
) -> list[str]:
    """Return what of two definitions keeps them from being the same experiment, in words."""
    changes = []
    for name in sorted(earlier.keys() & later.keys()):
        before, now = earlier[name], later[name]
        if isinstance(before, Mapping) and isinstance(now, Mapping):
            changes += differences(before, now, f"{place}{name}.")
        elif before != now and not isinstance(before, list):
            changes.append(
                f"{place}{name} was {str(before)[:300]} and is {str(now)[:300]}"
            )
    return changes


def merged(earlier: Mapping[str, Any], later: Mapping[str, Any]) -> Definition:
    """Return a definition that has the lists' items and the methods of both."""
    both = {**earlier, **later}
    for name in earlier.keys() & later.keys():
        before, now = earlier[name], later[name]
        if isinstance(before, list) and isinstance(now, list):
            both[name] = [*before, *(item for item in now if item not in before)]
        elif isinstance(before, Mapping) and isinstance(now, Mapping):
            both[name] = {**before, **now}
    return both
