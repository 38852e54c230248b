"""What the studies share: runs that can be stopped, tables, published figures, tests of ranks.

A study is a list of tasks. Each run of a task is one row of a CSV file, appended as the run
finishes; a study that was stopped goes on with the tasks that have no row. The report is written
from the rows alone.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from importlib.resources import files
from itertools import takewhile
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
from scipy.stats import friedmanchisquare
from tqdm import tqdm

from evotree.experiments.runner import DONE, Outcome, Workers, attempt, run_tasks

Task = tuple[Any, ...]


# ---- runs ----------------------------------------------------------------------------------------


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
        If the file has other columns.
    """
    new = not path.exists()
    if not new:
        columns = pd.read_csv(path, nrows=0).columns
        if set(columns) != set(rows.columns):
            raise ValueError(
                f"{path} has the columns {', '.join(columns)}; the new rows have "
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
    """
    if not path.exists():
        return list(tasks)
    done = set(pd.read_csv(path)[list(key)].itertuples(index=False, name=None))
    return [task for task in tasks if tuple(task) not in done]


def count_done(tasks: Sequence[Task], key: Sequence[str], runs: pd.DataFrame) -> str:
    """Return ``n of m planned`` as text, n being how many of the tasks have a row in `runs`."""
    done = set(runs[list(key)].itertuples(index=False, name=None))
    return f"{sum(tuple(task) in done for task in tasks):,} of {len(tasks):,} planned"


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


def run_missing(
    tasks: Sequence[Task],
    key: Sequence[str],
    run: Callable[[Task], dict[str, Any]],
    path: Path,
    jobs: int = 1,
    max_seconds: float | None = None,
) -> int:
    """Do the tasks that have no row yet, and append their rows as they finish.

    Parameters
    ----------
    tasks : sequence of tuple
        Values of the columns `key`.
    key : sequence of str
        Columns that tell tasks apart.
    run : callable
        Does one task and returns the other columns; can be pickled.
    path : Path
        CSV file of the rows.
    jobs : int, default=1
        Number of processes.
    max_seconds : float or None, default=None
        No task is begun after so many seconds.

    Returns
    -------
    int
        Number of runs done.
    """
    missing = missing_tasks(tasks, key, path)
    n_done = 0
    for row in run_all(missing, run, jobs, max_seconds):
        append(pd.DataFrame([row]), path)
        n_done += 1
    return n_done


def read_arguments(
    argv: Sequence[str] | None,
    module: str,
    description: str,
    datasets: Sequence[str],
    systems: Sequence[str],
) -> argparse.Namespace:
    """Read the command line of a study and make its folder.

    Parameters
    ----------
    argv : sequence of str or None
        The arguments; None means those of the process.
    module : str
        Name of the study's module in `evotree.experiments`.
    description : str
        One line of help.
    datasets : sequence of str
        What ``--only`` may name.
    systems : sequence of str
        What ``--systems`` may name.

    Returns
    -------
    Namespace
        ``data_home``, ``out``, ``jobs``, ``only``, ``systems`` and ``max_seconds``.
    """
    parser = argparse.ArgumentParser(
        prog=f"python -m evotree.experiments.{module}", description=description
    )
    parser.add_argument("--data-home", type=Path, required=True, help="folder of the data sets")
    parser.add_argument("--out", type=Path, default=Path("docs/results"), help="folder to write to")
    parser.add_argument("--jobs", type=int, default=1, help="processes (default: 1)")
    parser.add_argument(
        "--only",
        nargs="+",
        default=list(datasets),
        choices=datasets,
        metavar="DATASET",
        help=f"run these alone; of {', '.join(datasets)}",
    )
    parser.add_argument(
        "--systems",
        nargs="+",
        default=list(systems),
        choices=systems,
        metavar="SYSTEM",
        help=f"run these alone; of {', '.join(systems)}",
    )
    parser.add_argument("--max-seconds", type=float, help="begin no run after so many seconds")
    arguments = parser.parse_args(argv)
    arguments.out.mkdir(parents=True, exist_ok=True)
    return arguments


def run_study(
    arguments: argparse.Namespace,
    tasks: Sequence[Task],
    key: Sequence[str],
    run: Callable[..., dict[str, Any]],
    runs_file: str,
    write_report: Callable[[Path], Path],
) -> None:
    """Do what is missing of a study and write its report, even if runs fail.

    Parameters
    ----------
    arguments : Namespace
        What `read_arguments` returned.
    tasks : sequence of tuple
        Values of the columns `key`.
    key : sequence of str
        Columns that tell tasks apart.
    run : callable
        ``run(task, data_home=...)`` does one task and returns its row.
    runs_file : str
        Name of the CSV file of the rows.
    write_report : callable
        Writes the report from the rows in a folder.
    """
    path = arguments.out / runs_file
    run = partial(run, data_home=arguments.data_home)
    try:
        run_missing(tasks, key, run, path, arguments.jobs, arguments.max_seconds)
    finally:
        if path.exists():
            write_report(arguments.out)


# ---- reports -------------------------------------------------------------------------------------


def load_published(study: str) -> pd.DataFrame:
    """Return the published figures of a study: its CSV file in the folder ``published``."""
    source = files("evotree.experiments") / "published" / f"{study}.csv"
    with source.open(encoding="utf-8") as file:
        return pd.read_csv(file)


def markdown_table(rows: pd.DataFrame, n_left: int = 1) -> str:
    """Return a table in Markdown.

    Parameters
    ----------
    rows : DataFrame of str
        Cells, ready to be shown; the names of the columns head the table.
    n_left : int, default=1
        So many columns are aligned to the left, the others to the right.

    Returns
    -------
    str
        The table's lines.
    """
    rules = ["---" if k < n_left else "---:" for k in range(rows.shape[1])]
    lines = [f"| {' | '.join(rows.columns)} |", f"|{'|'.join(rules)}|"]
    lines += [f"| {' | '.join(cells)} |" for cells in rows.itertuples(index=False, name=None)]
    return "\n".join(lines)


# ---- ranks ---------------------------------------------------------------------------------------


class RankTest(NamedTuple):
    """Systems compared by their ranks on data sets.

    Attributes
    ----------
    mean_ranks : Series
        Mean rank of each system; 1 is best, ties share the mean of their ranks.
    statistic : float
        Friedman's chi-squared.
    p_value : float
        Probability of a statistic as large if all systems were equal.
    adjusted : DataFrame
        For each pair of systems, the p-value of the z-test of their mean ranks, adjusted by Holm
        for all pairs.
    """

    mean_ranks: pd.Series
    statistic: float
    p_value: float
    adjusted: pd.DataFrame


def compare_ranks(scores: pd.DataFrame, larger_is_better: bool) -> RankTest:
    """Compare systems by Friedman's test, then pair by pair with Holm's correction.

    Parameters
    ----------
    scores : DataFrame of shape (n_datasets, n_systems)
        Scores, all present; at least three systems.
    larger_is_better : bool
        Whether rank 1 belongs to the largest score.

    Returns
    -------
    RankTest
        Mean ranks and tests.

    Raises
    ------
    ModuleNotFoundError
        If scikit-posthocs is not installed.

    References
    ----------
    Demšar J. (2006). Statistical comparisons of classifiers over multiple data sets. Journal of
    Machine Learning Research 7, 1-30.
    """
    try:
        from scikit_posthocs import posthoc_siegel_friedman  # type: ignore[import-untyped]
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "scikit-posthocs is not installed; pip install 'evotree[studies]' installs it."
        ) from error
    # Means of equal scores may differ in their last bits; rounded, they tie.
    ranks = scores.round(9).rank(axis=1, ascending=not larger_is_better)
    if ranks.nunique(axis=1).eq(1).all():
        statistic, p_value = 0.0, 1.0  # ties everywhere, which the test cannot divide by
    else:
        statistic, p_value = friedmanchisquare(*(ranks[system] for system in ranks))
    adjusted = posthoc_siegel_friedman(ranks.reset_index(drop=True), p_adjust="holm")
    return RankTest(ranks.mean(), float(statistic), float(p_value), adjusted)
