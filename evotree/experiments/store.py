"""Results of an experiment on disk: one SQLite file, one row a task, written as tasks finish.

A row is there whole or not at all, whatever kills the process; other tools read the file, pandas by
``read_sql("SELECT * FROM runs", ...)``. One process writes.

A file may come from others. It holds numbers and text, nothing that is run: views, triggers and
computed columns are refused, and what is read from it is checked.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pandas as pd
from pandas.api.types import is_numeric_dtype

KEY = ("dataset", "method", "fold", "seed")
"""Columns that tell tasks apart."""

FILE = "results.sqlite"
_TEXT = ("dataset", "method", "status", "error", "settings", "versions", "revision", "finished")
_WHOLE = ("fold", "seed")
_FORMAT = 2
_RENAMED = {"nonzero_weights": "terms"}
# Names in a damaged file, and what SQLite says of them, may be of no encoding.
_BROKEN = (sqlite3.Error, OverflowError, UnicodeDecodeError)
_MAX_VALUE = 1 << 28
"""Bytes that a value may take."""
_PATIENCE = 60.0
"""Seconds that a writer waits for another one."""
_EXPERIMENT = ("format", "definition")
_ENTRIES = {
    "name": (str, "a string"),
    "metrics": (dict, "an object with names"),
    "methods": (dict, "an object with names"),
}
"""What the definition of an experiment has at least."""


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
        with self._open() as database:
            if not database.execute("SELECT 1 FROM sqlite_master").fetchone():
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
        with self._open() as database:
            self._insert(database, row, curve, "REPLACE")

    def fill(self, rows: pd.DataFrame, curves: Mapping[tuple[Any, ...], pd.DataFrame]) -> None:
        """Append rows, and the learning curves of some by their keys; those known already stay.

        Parameters
        ----------
        rows : DataFrame
            Rows with some of the columns, as `check_runs` wants them.
        curves : mapping of tuple to DataFrame
            Learning curves, by the values of `KEY`.

        """
        known = self.done()
        with self._open() as database:
            for row in rows.astype(object).where(rows.notna(), None).to_dict("records"):
                key = tuple(row[name] for name in KEY)
                if key not in known:
                    self._insert(database, row, curves.get(key), "IGNORE")

    def _insert(
        self,
        database: sqlite3.Connection,
        row: Mapping[str, Any],
        curve: pd.DataFrame | None,
        conflict: str,
    ) -> None:
        values = [_encoded(row.get(name)) for name in self.columns]
        marks = ", ".join("?" * len(values))
        database.execute(f"INSERT OR {conflict} INTO runs VALUES ({marks})", values)
        if curve is not None:
            text = curve.to_json(orient="split", index=False, double_precision=15)
            key = [row[name] for name in KEY]
            database.execute(
                f"INSERT OR {conflict} INTO curves VALUES (?, ?, ?, ?, ?)", [*key, text]
            )

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
        """Open the file for one transaction, which others wait for."""
        try:
            database = sqlite3.connect(self.path, _PATIENCE, isolation_level=None)
            with closing(database), database:
                _distrust(database)
                # Tables are made in one transaction, too: the library would commit each alone.
                database.execute("BEGIN IMMEDIATE")
                yield database
        except _BROKEN as error:
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


def _encoded(value: Any) -> Any:
    """Return a value whose text has an encoding: half characters are written as escapes."""
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode("utf-8")
    return value


def _kind(column: str) -> str:
    if column in _TEXT:
        return "TEXT"
    return "INTEGER" if column in _WHOLE else "REAL"


def _distrust(database: sqlite3.Connection) -> None:
    """Have SQLite treat a file as one that others may have made; see its manual, "security"."""
    database.execute("PRAGMA trusted_schema = OFF")
    database.execute("PRAGMA cell_size_check = ON")
    database.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _MAX_VALUE)


def _check_tables(database: sqlite3.Connection, path: Path) -> set[str]:
    """Return the columns of the rows.

    Raise for a file that is not made of our tables, or computes something when it is used.
    """
    made = set(database.execute("SELECT type, name FROM sqlite_master"))
    if not made >= {("table", name) for name in ("runs", "curves", "experiment")}:
        raise ValueError(f"{path} is a database, but not one of an experiment's results.")
    if any(kind == "trigger" for kind, _ in made):
        raise ValueError(f"{path} has triggers: statements that it runs when it is written to.")
    columns = {}
    for table in ("runs", "curves", "experiment"):
        found = database.execute(f"PRAGMA table_xinfo({table})").fetchall()
        # The last field tells columns that are computed when they are read.
        columns[table] = {name for _, name, *_, is_hidden in found if not is_hidden}
        if len(columns[table]) < len(found):
            raise ValueError(f"{path} has computed columns in the table {table}.")
    needed = {"runs": {*KEY, "status"}, "curves": {*KEY, "curve"}, "experiment": set(_EXPERIMENT)}
    for table, names in needed.items():
        if missing := sorted(names - columns[table]):
            raise ValueError(f"{path} has no {', '.join(missing)} in the table {table}.")
    return columns["runs"]


def _read_definition(database: sqlite3.Connection, path: Path) -> dict[str, Any]:
    columns = _check_tables(database, path)
    found = database.execute("SELECT format, definition FROM experiment").fetchone()
    if found is None:
        raise ValueError(f"{path} does not say of which experiment its results are.")
    version, text = found
    if version != _FORMAT:
        raise ValueError(
            f"{path} has the format {str(version)[:40]}; this version reads {_FORMAT}."
        )
    try:
        definition = json.loads(text)
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"{path}: its experiment is not JSON: {error}") from error
    if not isinstance(definition, dict):
        raise ValueError(f"{path}: its experiment is not an object with names.")
    for name, (kind, allowed) in _ENTRIES.items():
        # A file that was only just made has none of them.
        if definition and not isinstance(definition.get(name), kind):
            raise ValueError(f"{path}: {name} of its experiment is not {allowed}.")
    if missing := sorted(definition.get("metrics", {}).keys() - columns):
        raise ValueError(f"{path} has no column {', '.join(missing)[:200]}.")
    return definition


def check_runs(runs: pd.DataFrame, path: Path) -> pd.DataFrame:
    """Return rows whose cells are of the kinds of their columns; raise a ValueError for others.

    Rows that were written when terms had another name, and no complexity, gain both.
    """
    if "terms" not in runs:
        runs = runs.rename(columns=_RENAMED)
    for name in runs.columns if len(runs) else ():
        sound = True
        if runs[name].isna().all() and name not in (*KEY, "status"):
            # Without a value there is no type.
            runs[name] = runs[name].astype(object if name in _TEXT else float)
        elif name in _TEXT:
            sound = runs[name].map(lambda cell: isinstance(cell, str) or pd.isna(cell)).all()
        else:
            sound = is_numeric_dtype(runs[name])
        if not sound or (name in (*KEY, "status") and runs[name].isna().any()):
            raise ValueError(f"{path}: a row has no {name}, or a wrong one.")
    if "complexity" not in runs and {"leaves", "terms"} <= set(runs):
        runs.insert(runs.columns.get_loc("terms") + 1, "complexity", runs["leaves"] + runs["terms"])
    return runs


def differences(known: Mapping[str, Any], definition: Mapping[str, Any]) -> list[str]:
    """Return what keeps two definitions from being the same experiment, in words.

    Lists may differ, since data sets and seeds may be added; so may the names of methods, but a
    method of both has to be the same in both.
    """
    found = []
    for name in sorted(known.keys() & definition.keys()):
        before, now = known[name], definition[name]
        if isinstance(before, Mapping) and isinstance(now, Mapping):
            for inner in sorted(before.keys() & now.keys()):
                found += _changes(f"{name}.{inner}", before[inner], now[inner])
        elif not isinstance(before, list):
            found += _changes(name, before, now)
    return found


def _changes(name: str, before: Any, now: Any) -> list[str]:
    """Return what has changed in words, of a method parameter by parameter."""
    if before == now:
        return []
    if isinstance(before, Mapping) and isinstance(now, Mapping):
        parts = sorted(before.keys() | now.keys())
        both = [(part, before.get(part, "not given"), now.get(part, "not given")) for part in parts]
        return [change for part, *values in both for change in _changes(f"{name}.{part}", *values)]
    first, second = str(before), str(now)
    # Long texts are shown from where they part.
    begin = max(0, len(os.path.commonprefix([first, second])) - 30)
    shown = [("..." if begin else "") + text[begin : begin + 100] for text in (first, second)]
    return [f"{name} was {shown[0]} and is {shown[1]}"]


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
    ValueError
        If the file holds something else.
    OSError
        If it cannot be read, or is no database.
    """
    with _reading(folder) as database:
        runs = pd.read_sql("SELECT * FROM runs", database)
    runs = check_runs(runs, folder / FILE)
    return runs.sort_values(["dataset", "method", "seed", "fold"], ignore_index=True)


def read_definition(folder: Path) -> dict[str, Any]:
    """Return what the experiment of a folder was."""
    with _reading(folder) as database:
        definition = _read_definition(database, folder / FILE)
    if not definition:
        raise ValueError(f"{folder / FILE} does not say of which experiment its results are.")
    return definition


def read_curves(folder: Path) -> dict[tuple[Any, ...], pd.DataFrame]:
    """Return the learning curves of an experiment's fits, by the values of `KEY`."""
    names = ", ".join(KEY)
    with _reading(folder) as database:
        rows = database.execute(f"SELECT {names}, curve FROM curves ORDER BY 1, 2, 4, 3").fetchall()
    return {tuple(key): _curve(text, folder / FILE) for *key, text in rows}


def _curve(text: Any, path: Path) -> pd.DataFrame:
    """Return the table that a curve's text describes."""
    try:
        parts = json.loads(text)
        names, rows = parts["columns"], parts["data"]
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise ValueError("its columns have no names")
        if len(set(names)) < len(names):
            raise ValueError("two of its columns have one name")
        if any(not isinstance(row, list) or len(row) != len(names) for row in rows):
            raise ValueError("its rows are not as long as its columns are many")
        curve = pd.DataFrame(rows, columns=names)
        return curve.astype(dict.fromkeys(curve.columns[curve.isna().all()], float))
    # What is no text, no object, or has no such entries.
    except (TypeError, ValueError, KeyError, OverflowError, RecursionError) as error:
        raise ValueError(f"{path}: a learning curve cannot be read: {str(error)[:200]}") from error


@contextmanager
def _reading(folder: Path) -> Iterator[sqlite3.Connection]:
    path = folder / FILE
    if not path.exists():
        raise FileNotFoundError(f"{path} is not there: {folder} holds no results.")
    # Only who may write can undo a transaction that a killed writer has left half done.
    is_half_done = path.with_name(f"{FILE}-journal").exists() and os.access(path, os.W_OK)
    address = f"{path.absolute().as_uri()}?mode={'rw' if is_half_done else 'ro'}"
    try:
        with closing(sqlite3.connect(address, uri=True)) as database:
            _distrust(database)
            _check_tables(database, path)
            yield database
    except (*_BROKEN, pd.errors.DatabaseError) as error:
        raise OSError(f"{path} cannot be read: {error}.") from error
