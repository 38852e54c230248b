"""Results of an experiment on disk: one SQLite file, one row a task, written as tasks finish.

A row is there whole or not at all, whatever kills the process; other tools read the file, pandas by
``read_sql("SELECT * FROM runs", ...)``. One process writes.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from io import StringIO
from pathlib import Path
from typing import Any

import pandas as pd

KEY = ("dataset", "method", "fold", "seed")
"""Columns that tell tasks apart."""

FILE = "results.sqlite"
_TEXT = ("dataset", "method", "status", "error", "parameters", "versions", "revision", "finished")
_WHOLE = ("fold", "seed")
_FORMAT = 1


class Store:
    """The results of one experiment in a folder.

    Parameters
    ----------
    folder : Path
        Made if it is not there.
    columns : sequence of str
        Columns of a row, those of `KEY` first.
    definition : mapping of str to object
        What the experiment is, as JSON can hold it. ``"methods"`` maps names to descriptions; those
        of a name must be the same each time, and so must all else but lists, which may grow.

    Raises
    ------
    ValueError
        If the folder holds the results of another experiment.
    OSError
        If the folder cannot be written to.
    """

    def __init__(self, folder: Path, columns: Sequence[str], definition: Mapping[str, Any]) -> None:
        self.path = folder / FILE
        self.columns = tuple(columns)
        folder.mkdir(parents=True, exist_ok=True)
        is_new = not self.path.exists()
        with self._open() as database:
            if is_new or not _tables(database):
                self._create(database)
            known = _read_definition(database, self.path)
            changed = differences(known, definition)
            if changed:
                raise ValueError(
                    f"{self.path} holds the results of another experiment: {'; '.join(changed)}. "
                    "Choose another folder, or move that file away."
                )
            present = tuple(row[1] for row in database.execute("PRAGMA table_info(runs)"))
            if present != self.columns:
                raise ValueError(
                    f"{self.path} has the columns {', '.join(present)}; the experiment has "
                    f"{', '.join(self.columns)}."
                )
            text = json.dumps(merged(known, definition))
            database.execute("UPDATE experiment SET definition = ?", (text,))

    def add(self, row: Mapping[str, Any], curve: pd.DataFrame | None = None) -> None:
        """Append a row, in the place of an earlier one of the same task.

        Parameters
        ----------
        row : mapping of str to object
            A value for each of some columns; the others are missing values.
        curve : DataFrame, optional
            The learning curve of the fit.

        Raises
        ------
        OSError
            If it cannot be written, for instance because the disk is full; what was written before
            stays.
        """
        values = [row.get(name) for name in self.columns]
        key: list[Any] = [row[name] for name in KEY]
        marks = ", ".join("?" * len(values))
        with self._open() as database:
            database.execute(f"INSERT OR REPLACE INTO runs VALUES ({marks})", values)
            if curve is not None:
                key.append(curve.to_json(orient="split", index=False, double_precision=15))
                database.execute("INSERT OR REPLACE INTO curves VALUES (?, ?, ?, ?, ?)", key)

    def done(self, statuses: Sequence[str] | None = None) -> set[tuple[Any, ...]]:
        """Return the keys of the tasks that have a row, of some statuses or of any."""
        runs = self.runs()
        if statuses is not None:
            runs = runs[runs["status"].isin(list(statuses))]
        return set(runs[list(KEY)].itertuples(index=False, name=None))

    def runs(self) -> pd.DataFrame:
        """Return all rows, in the order of their keys."""
        return read_runs(self.path.parent)

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        """Open the file for one transaction."""
        try:
            with closing(sqlite3.connect(self.path)) as database, database:
                yield database
        except sqlite3.Error as error:
            raise OSError(f"{self.path} cannot be used: {error}.") from error

    def _create(self, database: sqlite3.Connection) -> None:
        kinds = ", ".join(f'"{name}" {_kind(name)}' for name in self.columns)
        key = ", ".join(KEY)
        database.execute(f"CREATE TABLE runs ({kinds}, PRIMARY KEY ({key}))")
        database.execute(
            "CREATE TABLE curves (dataset TEXT, method TEXT, fold INTEGER, seed INTEGER, "
            f"curve TEXT, PRIMARY KEY ({key}))"
        )
        database.execute("CREATE TABLE experiment (format INTEGER, definition TEXT)")
        database.execute("INSERT INTO experiment VALUES (?, ?)", (_FORMAT, "{}"))


def _kind(column: str) -> str:
    if column in _TEXT:
        return "TEXT"
    return "INTEGER" if column in _WHOLE else "REAL"


def _tables(database: sqlite3.Connection) -> set[str]:
    rows = database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
    return {name for (name,) in rows}


def _read_definition(database: sqlite3.Connection, path: Path) -> dict[str, Any]:
    if not {"runs", "curves", "experiment"} <= _tables(database):
        raise ValueError(f"{path} is a database, but not one of an experiment's results.")
    version, text = database.execute("SELECT format, definition FROM experiment").fetchone()
    if version != _FORMAT:
        raise ValueError(f"{path} has the format {version}; this version reads {_FORMAT}.")
    return json.loads(text)


def differences(known: Mapping[str, Any], definition: Mapping[str, Any]) -> list[str]:
    """Return what keeps two definitions from being the same experiment, in words.

    Lists may differ, since data sets and seeds may be added; so may the names of methods, but a
    method of both has to be the same in both.
    """
    found = []
    for name in sorted(known.keys() & definition.keys()):
        before, now = known[name], definition[name]
        if isinstance(before, list):
            continue
        if isinstance(before, Mapping) and isinstance(now, Mapping):
            found += [
                f"{name}.{inner} was {before[inner]!r} and is {now[inner]!r}"
                for inner in sorted(before.keys() & now.keys())
                if before[inner] != now[inner]
            ]
        elif before != now:
            found.append(f"{name} was {before!r} and is {now!r}")
    return found


def merged(known: Mapping[str, Any], definition: Mapping[str, Any]) -> dict[str, Any]:
    """Return a definition that has the lists' items and the methods of both."""
    both = dict(known)
    for name, now in definition.items():
        before = known.get(name)
        if isinstance(before, list) and isinstance(now, list):
            both[name] = [*before, *(item for item in now if item not in before)]
        elif isinstance(before, Mapping) and isinstance(now, Mapping):
            both[name] = {**before, **now}
        else:
            both[name] = now
    return both


def read_runs(folder: Path) -> pd.DataFrame:
    """Return the rows of an experiment's results.

    Parameters
    ----------
    folder : Path
        Where they were written.

    Returns
    -------
    DataFrame
        One row a task, in the order of data set, method, seed and fold.

    Raises
    ------
    FileNotFoundError
        If there are no results.
    """
    with _reading(folder) as database:
        runs = pd.read_sql("SELECT * FROM runs", database)
    return runs.sort_values(["dataset", "method", "seed", "fold"], ignore_index=True)


def read_definition(folder: Path) -> dict[str, Any]:
    """Return what the experiment of a folder was."""
    with _reading(folder) as database:
        return _read_definition(database, folder / FILE)


def read_curves(folder: Path) -> dict[tuple[Any, ...], pd.DataFrame]:
    """Return the learning curves of an experiment's fits, by the values of `KEY`."""
    with _reading(folder) as database:
        rows = database.execute("SELECT * FROM curves ORDER BY 1, 2, 4, 3").fetchall()
    return {tuple(key): pd.read_json(StringIO(text), orient="split") for *key, text in rows}


@contextmanager
def _reading(folder: Path) -> Iterator[sqlite3.Connection]:
    path = folder / FILE
    if not path.exists():
        raise FileNotFoundError(f"{path} is not there: {folder} holds no results.")
    # Only who may write can undo a transaction that a killed writer has left half done.
    mode = "rw" if os.access(path, os.W_OK) else "ro"
    try:
        with closing(sqlite3.connect(f"file:{path}?mode={mode}", uri=True)) as database:
            yield database
    except (sqlite3.Error, pd.errors.DatabaseError) as error:
        raise OSError(f"{path} cannot be read: {error}.") from error
