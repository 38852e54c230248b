"""The results of an experiment: a file of lines in a folder, added as fits finish.

A line is an object of JSON: what the experiment is, or a row with its learning curve. Lines are
only added, each by one write: several processes may do so, and a killed one leaves at most one line
that is not whole, which does not count. Of the rows of a fit the last one counts. A file may come
from others: it holds numbers and text, nothing that is run, and no text in it names a file.
"""

import json
import os
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from pandas.api.types import is_numeric_dtype

from evotree.experiments.protocols import KEY
from evotree.log import logger

log = logger(__name__)

FILE = "results.jsonl"
_TEXT = (
    *("dataset", "method", "status", "error"),
    *("settings", "versions", "revision", "finished"),
)
# What a report needs of a definition; "" stands for any name.
_KINDS = {
    "name": str,
    "datasets": [str],
    "seeds": [int],
    "metrics": {"": bool},
    "methods": {"": dict},
    "protocol": {"n_folds": int},
    "shown": [str],
    "data": {"": {"": int | str}},
}

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
        before, rows = _read_lines(folder)
        grown, changes = merge(before, definition)
        known = set().union(*rows.values())
        if rows and (more := [name for name in columns if name not in known]):
            changes.append(f"its fits have not measured {', '.join(more)}")
        if changes:
            raise ValueError(
                f"{self.path} holds the results of another experiment: {'; '.join(changes)}. "
                "Choose another folder, or move that file away."
            )
        if grown != before:
            self._append({"experiment": grown})

    def add(self, row: Mapping[str, Any], curve: pd.DataFrame | None = None) -> None:
        """Add a row with some of the columns, in the place of an earlier one of the same fit."""
        entry = {name: row.get(name) for name in self.columns}
        if curve is not None:
            entry["curve"] = curve.to_dict("list")
        self._append(entry)

    def done(self) -> dict[Key, str]:
        """Return how each fit ended that has a row."""
        _, rows = _read_lines(self.path.parent)
        return {key: row["status"] for key, row in rows.items()}

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


def _read_lines(folder: Path) -> tuple[Definition, dict[Key, dict[str, Any]]]:
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
                definition, _ = merge(definition, entry["experiment"])
            else:
                dataset, method, fold, seed = (entry[name] for name in KEY)
                entry["status"] = str(entry["status"])
                # An OverflowError for what no column holds.
                np.array([x for x in entry.values() if isinstance(x, int)], dtype=float)
                rows[str(dataset), str(method), int(fold), int(seed)] = entry
        # Whatever a line of JSON may be.
        except (
            *(AttributeError, LookupError, TypeError),
            *(ArithmeticError, ValueError, RecursionError),
        ):
            n_broken += 1
    if n_broken:
        log.warning("%s: %d lines that are not whole do not count", path, n_broken)
    # The first line may be the one that is not whole.
    if not definition and (rows or n_broken > 1):
        raise ValueError(f"{path} does not say of which experiment its results are.")
    return definition, rows


def read_runs(folder: Path) -> pd.DataFrame:
    """Return the rows of an experiment's results, by data set, method, seed and fold."""
    _, rows = _read_lines(folder)
    runs = pd.DataFrame(list(rows.values())).drop(columns="curve", errors="ignore")
    if runs.empty:
        runs = pd.DataFrame(columns=[*KEY, "status"])
    runs = check_runs(runs, folder / FILE)
    return runs.sort_values(["dataset", "method", "seed", "fold"], ignore_index=True)


def read_definition(folder: Path) -> Definition:
    """Return what the experiment of a folder is."""
    definition, _ = _read_lines(folder)
    for name, kind in _KINDS.items():
        if not _is_of(definition.get(name), kind):
            raise ValueError(
                f"{folder / FILE}: its experiment has no {name}, or a wrong one."
            )
    return definition


def _is_of(value: Any, kind: Any) -> bool:
    """Tell whether what JSON holds is as `_KINDS` writes it."""
    if isinstance(kind, list):
        return isinstance(value, list) and all(_is_of(one, kind[0]) for one in value)
    if isinstance(kind, dict):
        names = value if "" in kind else kind
        return isinstance(value, dict) and all(
            _is_of(value.get(name), kind.get(name, kind.get(""))) for name in names
        )
    return isinstance(value, kind)


def read_curves(folder: Path) -> dict[Key, pd.DataFrame]:
    """Return the learning curves of an experiment's fits, by the values of `KEY`."""
    _, rows = _read_lines(folder)
    return {
        key: pd.DataFrame(row["curve"])
        for key, row in sorted(rows.items())
        if "curve" in row
    }


def check_runs(runs: pd.DataFrame, path: Path) -> pd.DataFrame:
    """Return rows whose cells are of the kinds of their columns; raise a ValueError for others."""
    for name in runs:
        cells = runs[name].dropna()
        if name in _TEXT:
            is_sound = cells.map(lambda cell: isinstance(cell, str)).all()
        else:
            is_sound = cells.empty or (
                is_numeric_dtype(cells) and (name not in KEY or (cells % 1 == 0).all())
            )
        is_needed = name in (*KEY, "status")
        if not is_sound or (is_needed and len(cells) < len(runs)):
            raise ValueError(f"{path}: a row has no {name}, or a wrong one.")
    kinds = {"fold": np.int64, "seed": np.int64, **dict.fromkeys(_TEXT, object)}
    return runs.astype({name: kinds.get(name, float) for name in runs})


def checksum(description: Mapping[str, str]) -> str:
    """Return a short text that is equal for equal descriptions of methods."""
    # None is left out: rows of before count when a parameter is added that does nothing by default.
    texts = {name: text for name, text in description.items() if text != "None"}
    return f"{zlib.crc32(json.dumps(texts, sort_keys=True).encode()):08x}"


def merge(
    earlier: Mapping[str, Any], later: Mapping[str, Any], place: str = ""
) -> tuple[Definition, list[str]]:
    """Join two definitions of an experiment; return also what in them is not the same, in words.

    Lists and mappings may grow: what is in one definition alone is in the joint one.
    """
    joint = {**earlier, **later}
    changes = []
    for name in sorted(earlier.keys() & later.keys()):
        before, now = earlier[name], later[name]
        if isinstance(before, Mapping) and isinstance(now, Mapping):
            joint[name], more = merge(before, now, f"{place}{name}.")
            changes += more
        elif isinstance(before, list) and isinstance(now, list | tuple):
            joint[name] = [*before, *(item for item in now if item not in before)]
        elif before != now:
            changes.append(
                f"{place}{name} was {str(before)[:300]} and is {str(now)[:300]}"
            )
    return joint, changes
