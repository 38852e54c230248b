"""An experiment run: what is missing is done, on processes or any executor, and kept."""

from __future__ import annotations

import json
import logging
import subprocess
import time
from concurrent.futures import Executor
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, clone, is_classifier
from sklearn.metrics import get_scorer
from sklearn.model_selection import KFold
from tqdm import tqdm

from evotree.engine.history import to_frame
from evotree.experiments.datasets import LoadedData
from evotree.experiments.experiment import Experiment, Protocol, Task
from evotree.experiments.measures import PeakMemory, tree_sizes
from evotree.experiments.protocols import OFFICIAL, Parts, load_cached, take_fold, take_rows
from evotree.experiments.runner import DONE, FAILED, Initializer, Outcome, Workers, run_tasks
from evotree.experiments.store import Store

log = logging.getLogger(__name__)

PACKAGES = ("evotree", "numpy", "scipy", "scikit-learn", "numba", "deap")
"""Whose versions a row holds."""


class Fit(NamedTuple):
    """All that a worker needs for one task.

    Attributes
    ----------
    task : Task
        Which.
    method : estimator
        Not fitted.
    protocol : Protocol
        How rows are parted.
    metrics : tuple of str
        What is measured.
    data_home : Path or None
        Folder of the data sets.
    """

    task: Task
    method: BaseEstimator
    protocol: Protocol
    metrics: tuple[str, ...]
    data_home: Path | None


def take_parts(data: LoadedData, protocol: Protocol, task: Task, stratified: bool) -> Parts:
    """Return the rows to fit on and to score on; folds of targets are not stratified."""
    if stratified or task.fold == OFFICIAL:
        return take_fold(data, protocol.n_folds, task.seed, task.fold)
    folds = KFold(protocol.n_folds, shuffle=True, random_state=task.seed)
    return take_rows(data.X, data.y, *list(folds.split(data.y))[task.fold])


def seed_method(method: BaseEstimator, task: Task) -> BaseEstimator:
    """Return a clone whose random states are set by the seed and the fold of a task."""
    made = clone(method)
    fold = max(task.fold, 0)
    seed = int(np.random.SeedSequence([task.seed, fold]).generate_state(1)[0] >> 1)
    states = [
        name
        for name in sorted(made.get_params())
        if name == "random_state" or name.endswith("__random_state")
    ]
    return made.set_params(**dict.fromkeys(states, seed))


def do_fit(fit: Fit) -> tuple[dict[str, Any], pd.DataFrame | None]:
    """Do one fit.

    Parameters
    ----------
    fit : Fit
        Which.

    Returns
    -------
    row : dict
        Metrics, sizes, seconds of the fit and of the scores, peak of memory.
    curve : DataFrame or None
        The learning curve of a method that has a ``history_``.
    """
    data = load_cached(fit.task.dataset, fit.data_home)
    method = seed_method(fit.method, fit.task)
    parts = take_parts(data, fit.protocol, fit.task, is_classifier(method))
    memory = PeakMemory()
    begin = time.perf_counter()
    method.fit(parts.X_train, parts.y_train)
    middle = time.perf_counter()
    row: dict[str, Any] = {"peak_memory_mb": memory.megabytes()}
    for metric in fit.metrics:
        known = metric.startswith("train_")
        rows = (parts.X_train, parts.y_train) if known else (parts.X_test, parts.y_test)
        row[metric] = float(get_scorer(metric.removeprefix("train_"))(method, *rows))
    row |= {"seconds": middle - begin, "score_seconds": time.perf_counter() - middle}
    history = getattr(method, "history_", None)
    curve = None if history is None else to_frame(history)
    return row | tree_sizes(method), curve


def run_experiment(
    experiment: Experiment,
    out: Path,
    data_home: Path | None = None,
    *,
    jobs: int = 1,
    executor: Executor | None = None,
    time_limit: float | None = None,
    retry: tuple[str, ...] = (),
    mp_context: Any = None,
    initializers: tuple[Initializer, ...] = (),
    progress: bool | None = None,
) -> pd.DataFrame:
    """Do the fits of an experiment that have no row yet, and append their rows as they finish.

    Parameters
    ----------
    experiment : Experiment
        What is run.
    out : Path
        Folder of the results.
    data_home : Path, optional
        Folder of the data sets.
    jobs : int, at least 1, default=1
        Number of processes, each on one core.
    executor : Executor, optional
        Runs the fits in place of processes of our own: a Dask ``Client().get_executor()``,
        ``mpi4py.futures.MPIPoolExecutor`` and the like.
    time_limit : float, optional
        Seconds that a fit may take; one that takes longer is recorded as ``"timeout"``.
    retry : tuple of str, default=()
        Fits that ended so, of `evotree.experiments.runner.STATUSES`, are done anew.
    mp_context : multiprocessing context, optional
        How processes start.
    initializers : tuple of Initializer, default=()
        What each process calls first, as `evotree.experiments.logs.collect_logs` yields it.
    progress : bool, optional
        Whether a bar is shown; by default where standard error is a terminal.

    Returns
    -------
    DataFrame
        All rows, also the earlier ones. A fit that failed has its traceback in ``error``.

    Raises
    ------
    ValueError, FileNotFoundError
        Before any work starts: if the folder holds another experiment, or a data set is missing or
        cannot be read.
    OSError
        If a row cannot be written. Those before it are kept.
    """
    for name in experiment.datasets:
        check_dataset(experiment, name, data_home)
    store = Store(out, experiment.columns(), experiment.definition())
    finished = store.done() - store.done(retry)
    missing = [task for task in experiment.tasks() if task not in finished]
    notes = {
        "versions": json.dumps({name: _version(name) for name in PACKAGES}),
        "revision": revision(),
    }
    described = experiment.definition()["methods"]
    protocol, metrics = experiment.protocol, tuple(experiment.metrics)
    fits = (
        Fit(task, experiment.methods[task.method], protocol, metrics, data_home) for task in missing
    )
    workers: Workers[Outcome] = Workers(jobs, mp_context, initializers, executor)
    hidden = None if progress is None else not progress
    log.info("%s: %d of %d fits to do", experiment.name, len(missing), len(experiment.tasks()))
    with tqdm(total=len(missing), unit="fit", desc=experiment.name, disable=hidden) as bar:
        for fit, status, result, error in run_tasks(do_fit, fits, workers, time_limit):
            row, curve = result or ({}, None)
            row |= fit.task._asdict() | notes | {"status": status, "error": error}
            row |= {"parameters": described[fit.task.method], "finished": _now()}
            store.add(row, curve)
            bar.update()
            _report(fit.task, status, row)
    return store.runs()


def _report(task: Task, status: str, row: dict[str, Any]) -> None:
    """Write one line on a finished task to the log."""
    where = f"{task.dataset}, {task.method}, fold {task.fold}, seed {task.seed}"
    if status == DONE:
        log.info("%s: done in %.2f s", where, row["seconds"])
    else:
        lines = row["error"].strip().splitlines() or [""]
        log.log(
            logging.ERROR if status == FAILED else logging.WARNING,
            "%s: %s: %s",
            where,
            status,
            lines[-1],
        )


def check_dataset(experiment: Experiment, name: str, data_home: Path | None) -> None:
    """Read a data set and see that the protocol fits it.

    Raises
    ------
    FileNotFoundError, ValueError
        If it is missing or cannot be read, or has no official split where that is asked for.
    """
    data = load_cached(name, data_home)
    if experiment.protocol.official and data.n_train is None:
        raise ValueError(f"datasets has {name!r}, which has no official split.")


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


@cache
def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


@cache
def revision() -> str:
    """Return the commit of the folder that we are in, with a ``+`` where files differ from it."""

    def git(*arguments: str) -> str:
        # Neither the index nor a hook of the folder is touched.
        command = ["git", "--no-optional-locks", "-c", "core.fsmonitor=false", *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

    try:
        return git("rev-parse", "--short=12", "HEAD") + (
            "+" if git("status", "--short", "-uno") else ""
        )
    except (OSError, subprocess.CalledProcessError):
        return ""
