"""What a study is and how it is run: tasks, rows that are kept, a report written from them.

A study is a list of tasks. Each run of a task is one row of a CSV file, appended as the run
finishes; a study that was stopped goes on with the tasks that have no row. The report is written
from the rows alone.
"""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import takewhile
from pathlib import Path
from typing import Any

import pandas as pd
from tqdm import tqdm

from evotree.experiments.runner import DONE, Outcome, Workers, attempt, run_tasks

Task = tuple[Any, ...]
CURVE = "curve"
"""Key of a row under which a run may return its learning curve."""


@dataclass(frozen=True)
class Study:
    """A study: what is run, and what is written about it.

    Attributes
    ----------
    name : str
        Name of its module, and the beginning of its files' names.
    title : str
        What it does, in one line.
    key : tuple of str
        Columns that tell tasks apart.
    make_tasks : callable
        ``make_tasks() -> sequence of tuple``: values of the columns `key`.
    run : callable
        ``run(task, data_home=...) -> dict`` does one task and returns its row, perhaps with its
        learning curve (DataFrame) under the key ``curve``; can be pickled.
    write_report : callable
        ``write_report(out) -> Path`` writes the report from the rows in a folder.
    compare : callable, optional
        ``compare(runs) -> DataFrame``: our figures beside the published ones, as
        `evotree.experiments.studies.agreement` describes them.
    draw : callable, optional
        ``draw(data_home, out)`` draws the pictures that need the data, where they are missing.
    dataset, system : str, default="dataset" and "system"
        Which columns of `key` name a task's data set and its method.
    """

    name: str
    title: str
    key: tuple[str, ...]
    make_tasks: Callable[[], Sequence[Task]]
    run: Callable[..., dict[str, Any]]
    write_report: Callable[[Path], Path]
    compare: Callable[[pd.DataFrame], pd.DataFrame] | None = None
    draw: Callable[[Path, Path], None] | None = None
    dataset: str = "dataset"
    system: str = "system"

    @property
    def runs_file(self) -> str:
        """Name of the CSV file of the rows."""
        return f"{self.name}_runs.csv"

    @property
    def curves_file(self) -> str:
        """Name of the CSV file of the learning curves."""
        return f"{self.name}_curves.csv"


# ---- rows ----------------------------------------------------------------------------------------


def read_rows(path: Path, columns: Sequence[str] = (), max_rows: int | None = None) -> pd.DataFrame:
    """Read the rows of a CSV file that `append` wrote.

    Parameters
    ----------
    path : Path
        The file.
    columns : sequence of str, default=()
        Columns that it must have.
    max_rows : int or None, default=None
        So many rows at most; None means all.

    Returns
    -------
    DataFrame
        The rows.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If it is no table, lacks columns, has one twice, or ends within a row.
    """
    try:
        with path.open("rb") as file, warnings.catch_warnings():
            warnings.simplefilter("error", pd.errors.ParserWarning)
            # Types are inferred from whole columns; the first column is never taken for row names.
            rows = pd.read_csv(file, index_col=False, low_memory=False, nrows=max_rows)
        with path.open("rb") as file:
            file.seek(-1, os.SEEK_END)
            is_whole = file.read() == b"\n"
    except (ValueError, pd.errors.ParserWarning) as error:
        raise ValueError(f"{path} cannot be read as a table of runs: {str(error)[:200]}") from error
    if not is_whole:
        raise ValueError(f"{path} ends within a row: take its last line out to go on.")
    if missing := [name for name in columns if name not in rows]:
        raise ValueError(f"{path} has no column {', '.join(missing)}. Move it away to begin anew.")
    return rows


def append(rows: pd.DataFrame, path: Path) -> None:
    """Append rows to a CSV file, in the order of its columns, with a header where it is new.

    Parameters
    ----------
    rows : DataFrame
        Rows; where the file exists, with exactly its columns.
    path : Path
        The file.

    Raises
    ------
    ValueError
        If the file has other columns, or is none of rows.
    """
    new = not path.exists()
    if not new:
        columns = read_rows(path, max_rows=0).columns
        if set(columns) != set(rows.columns):
            raise ValueError(
                f"{path} has the columns {', '.join(columns)[:200]}; the new rows have "
                f"{', '.join(rows.columns)}. Move the file away to begin anew."
            )
        rows = rows[list(columns)]
    rows.to_csv(path, mode="a", header=new, index=False)


def missing_tasks(tasks: Sequence[Task], key: Sequence[str], path: Path) -> list[Task]:
    """Return the tasks that have no row yet.

    Parameters
    ----------
    tasks : sequence of tuple
        Values of the columns `key`.
    key : sequence of str
        Columns that tell tasks apart.
    path : Path
        CSV file of the rows; may be missing.

    Returns
    -------
    list of tuple
        The tasks without a row, in their order.

    Raises
    ------
    ValueError
        If the file is none of rows.
    """
    if not path.exists():
        return list(tasks)
    done = set(read_rows(path, key)[list(key)].itertuples(index=False, name=None))
    return [task for task in tasks if tuple(task) not in done]


def count_done(tasks: Sequence[Task], key: Sequence[str], runs: pd.DataFrame) -> str:
    """Return ``n of m planned`` as text, n being how many of the tasks have a row in `runs`."""
    done = set(runs[list(key)].itertuples(index=False, name=None))
    return f"{sum(tuple(task) in done for task in tasks):,} of {len(tasks):,} planned"


# ---- runs ----------------------------------------------------------------------------------------


def select_tasks(
    study: Study, datasets: Sequence[str] | None = None, systems: Sequence[str] | None = None
) -> list[Task]:
    """Return the tasks of a study, all or those of some data sets and methods.

    Parameters
    ----------
    study : Study
        The study.
    datasets, systems : sequence of str or None, default=None
        Names; None means all.

    Returns
    -------
    list of tuple
        The tasks, in the study's order.

    Raises
    ------
    ValueError
        If the study has no such data set or method.
    """
    tasks = list(study.make_tasks())
    wanted = (("datasets", study.dataset, datasets), ("systems", study.system, systems))
    for parameter, column, names in wanted:
        if names is None:
            continue
        at = study.key.index(column)
        known = dict.fromkeys(str(task[at]) for task in study.make_tasks())
        if unknown := [name for name in names if name not in known]:
            raise ValueError(
                f"{parameter} names {', '.join(unknown)}: those of the study {study.name} are "
                f"{', '.join(known)}."
            )
        tasks = [task for task in tasks if task[at] in names]
    return tasks


def run_all(
    tasks: Sequence[Task],
    run: Callable[[Task], Any],
    jobs: int = 1,
    max_seconds: float | None = None,
) -> Iterator[Any]:
    """Run tasks in parallel processes, each on one thread of linear algebra.

    Results are yielded as they finish.

    Parameters
    ----------
    tasks : sequence of tuple
        The tasks, begun in their order.
    run : callable
        Does one task; can be pickled.
    jobs : int, default=1
        Number of processes.
    max_seconds : float or None, default=None
        No task is begun after so many seconds.

    Yields
    ------
    object
        What `run` returned.

    Raises
    ------
    ExceptionGroup
        At the end, if tasks failed: the others are done all the same.
    """
    end = float("inf") if max_seconds is None else time.monotonic() + max_seconds
    begun = takewhile(lambda _: time.monotonic() < end, tasks)
    outcomes: Iterator[Outcome] = (attempt(run, task) for task in begun)
    if jobs > 1:
        outcomes = run_tasks(run, begun, Workers(jobs, ahead=1))
    failures = []
    for outcome in tqdm(outcomes, total=len(tasks), unit="run", disable=None):
        if outcome.status == DONE:
            yield outcome.result
        else:
            failures.append(RuntimeError(f"in the run {tuple(outcome.task)}:\n{outcome.error}"))
    if failures:
        raise ExceptionGroup(f"{len(failures)} of {len(tasks)} runs failed", failures)


def run_study(
    study: Study,
    data_home: Path | None,
    out: Path,
    *,
    jobs: int = 1,
    datasets: Sequence[str] | None = None,
    systems: Sequence[str] | None = None,
    max_seconds: float | None = None,
) -> Path | None:
    """Do what is missing of a study and write its report, even if runs fail.

    Parameters
    ----------
    study : Study
        The study.
    data_home : Path or None
        Folder of the data sets.
    out : Path
        Folder of the rows and the report; made where it is missing.
    jobs : int, default=1
        Number of processes.
    datasets, systems : sequence of str or None, default=None
        Run these alone; None means all.
    max_seconds : float or None, default=None
        No task is begun after so many seconds.

    Returns
    -------
    Path or None
        The report; None if nothing was run.

    Raises
    ------
    ExceptionGroup
        At the end, if tasks failed: the others are done all the same, and the report is written.
    ValueError
        If the study has no such data set or method.
    """
    tasks = select_tasks(study, datasets, systems)
    out.mkdir(parents=True, exist_ok=True)
    path = out / study.runs_file
    missing = missing_tasks(tasks, study.key, path)
    report = None
    try:
        for row in run_all(missing, partial(study.run, data_home=data_home), jobs, max_seconds):
            curve = row.pop(CURVE, None)
            if curve is not None:
                append(curve, out / study.curves_file)
            append(pd.DataFrame([row]), path)
    finally:
        if path.exists():
            if study.draw is not None and data_home is not None:
                study.draw(data_home, out)
            report = study.write_report(out)
    return report
