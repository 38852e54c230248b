"""An experiment run: what is missing is done, on processes or any executor, and kept."""

from __future__ import annotations

import json
import logging
import math
import multiprocessing
import platform
import subprocess
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Executor
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import PackageNotFoundError, packages_distributions, version
from itertools import takewhile
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, clone, is_classifier
from sklearn.datasets import load_iris
from sklearn.metrics import get_scorer
from sklearn.model_selection._search import BaseSearchCV
from tqdm import tqdm

from evotree.experiments.experiment import Experiment, checksum, describe
from evotree.experiments.logs import LOG_FILE, log_to_file
from evotree.experiments.measures import PeakMemory, machine, tree_sizes
from evotree.experiments.problems import make_problem
from evotree.experiments.protocols import Protocol, Task
from evotree.experiments.runner import CRASHED, Outcome, Workers, run_tasks
from evotree.experiments.store import Store

log = logging.getLogger(__name__)

PACKAGES = ("evotree", "numpy", "scipy", "scikit-learn", "numba", "deap")
"""Whose versions a row holds, beside those of Python and of what methods come from."""


class Fit(NamedTuple):
    """All that a worker needs for one task.

    Attributes
    ----------
    task : Task
        Which.
    method : estimator
        Not fitted.
    protocol : Protocol
        How rows are split.
    metrics, scorers, measures, curve, warm_up : tuple of str, mappings, callable or None, bool
        What is measured, as in `Experiment`.
    data_home : Path or None
        Folder of the data sets.
    """

    task: Task
    method: BaseEstimator
    protocol: Protocol
    metrics: tuple[str, ...]
    scorers: Mapping[str, Callable[[Any, np.ndarray, np.ndarray], float]]
    measures: Mapping[str, Callable[[Any], float | None]]
    curve: Callable[[Any], pd.DataFrame | None] | None
    warm_up: bool
    data_home: Path | None

    def __str__(self) -> str:
        return str(self.task)


def seed_method(method: BaseEstimator, random_state: int) -> BaseEstimator:
    """Return a clone with all its random states set."""
    made = clone(method)
    states = [
        name
        for name in sorted(made.get_params())
        if name == "random_state" or name.endswith("__random_state")
    ]
    return made.set_params(**dict.fromkeys(states, random_state))


_warm: set[str] = set()


def warm_up(method: BaseEstimator) -> None:
    """Compile what a method needs, for three classes and for four, once in a process."""
    key = checksum(describe(seed_method(method, 0)))
    if key in _warm:
        return
    if isinstance(method, BaseSearchCV):
        # What it searches needs no other code than itself.
        method = method.estimator
    for X, y in (make_problem("chessboard4", 100, 0), load_iris(return_X_y=True)):
        small = seed_method(method, 0)
        for name, value in small.get_params().items():
            if name.rpartition("__")[2] == "max_generations":
                small.set_params(**{name: min(20, value)})
        small.fit(X, y)
    _warm.add(key)


def do_fit(fit: Fit) -> tuple[dict[str, Any], pd.DataFrame | None]:
    """Do one fit; its scores and its warnings are logged.

    Parameters
    ----------
    fit : Fit
        Which.

    Returns
    -------
    row : dict
        Metrics, sizes, measures, seconds of the fit and of the scores, peak of memory.
    curve : DataFrame or None
        The learning curve, if there is one.
    """
    told = fit.protocol.method_for(fit.method, fit.task, fit.data_home)
    method = seed_method(told, fit.protocol.random_state(fit.task))
    parts = fit.protocol.take_parts(fit.task, fit.data_home, is_classifier(method))
    with _logged_warnings(fit):
        if fit.warm_up:
            warm_up(fit.method)
        memory = PeakMemory()
        begin = time.perf_counter()
        method.fit(parts.X_train, parts.y_train)
        seconds = time.perf_counter() - begin
        row: dict[str, Any] = {"peak_memory_mb": memory.megabytes(), "seconds": seconds}
        begin = time.perf_counter()
        for metric in fit.metrics:
            known = metric.startswith("train_")
            rows = (parts.X_train, parts.y_train) if known else (parts.X_test, parts.y_test)
            row[metric] = float(get_scorer(metric.removeprefix("train_"))(method, *rows))
        for name, scorer in fit.scorers.items():
            row[name] = float(scorer(method, parts.X_test, parts.y_test))
        row["score_seconds"] = time.perf_counter() - begin
    row |= {name: measure(method) for name, measure in fit.measures.items()}
    scores = ", ".join(f"{name} {row[name]:.4f}" for name in (*fit.metrics, *fit.scorers))
    log.info("%s: done in %.2f s, %s", fit.task, seconds, scores)
    return row | tree_sizes(method), None if fit.curve is None else fit.curve(method)


@contextmanager
def _logged_warnings(fit: Fit) -> Iterator[None]:
    """Log the warnings of a block, each once."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        try:
            yield
        finally:
            for text in dict.fromkeys(f"{w.category.__name__}: {w.message}" for w in caught):
                log.warning("%s: %s", fit.task, text)


def run_experiment(
    experiment: Experiment,
    out: Path,
    data_home: Path | None = None,
    *,
    jobs: int = 1,
    executor: Executor | None = None,
    time_limit: float | None = None,
    max_seconds: float | None = None,
    retry: tuple[str, ...] = (),
    mp_context: Any = None,
    progress: bool | None = None,
) -> pd.DataFrame:
    """Do the fits of an experiment that have no row yet, and keep their rows as they finish.

    The log is ``experiment.log`` in the folder of the results.

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
        ``mpi4py.futures.MPIPoolExecutor`` and the like. What its processes log is theirs.
    time_limit : float, optional
        Seconds that a fit may take; one that takes longer is recorded as ``"timeout"``.
    max_seconds : float, optional
        No fit is begun after so many seconds.
    retry : tuple of str, default=()
        Fits that ended so, of `evotree.experiments.runner.STATUSES`, are done again.
    mp_context : multiprocessing context, optional
        How processes start; by default the way of the platform.
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
    end = math.inf if max_seconds is None else time.monotonic() + max_seconds
    planned = experiment.tasks()
    names = dict.fromkeys(task.dataset for task in planned)
    facts, sources = {}, {}
    for name in names:
        facts[name] = experiment.protocol.check(name, data_home)
        sources[name] = experiment.protocol.source(name, data_home)
    definition = experiment.definition() | {"data": facts, "sources": sources}
    store = Store(out, experiment.columns(), definition)
    finished = store.done() - store.done(retry)
    missing = [task for task in planned if task not in finished]
    if missing:  # else no fit runs on this machine
        store = Store(
            out, experiment.columns(), definition | {"machines": [_where(jobs, executor)]}
        )
    notes = {
        "versions": json.dumps(_versions(experiment.methods.values())),
        "revision": revision(),
    }
    settings = {name: checksum(text) for name, text in definition["methods"].items()}
    fits = (
        Fit(
            task,
            experiment.methods[task.method],
            experiment.protocol,
            tuple(experiment.metrics),
            experiment.scorers,
            experiment.measures,
            experiment.curve,
            experiment.warm_up,
            data_home,
        )
        for task in missing
    )
    begun = takewhile(lambda _: time.monotonic() < end, fits)
    hidden = None if progress is None else not progress
    context = mp_context or multiprocessing.get_context()
    with (
        log_to_file(out / LOG_FILE, context) as initializer,
        tqdm(total=len(missing), unit="fit", desc=experiment.name, disable=hidden) as bar,
    ):
        log.info("%s: %d of %d fits to do", experiment.name, len(missing), len(planned))
        workers: Workers[Outcome] = Workers(jobs, context, initializer, executor)
        # What interrupts the loop ends the workers at once.
        with closing(run_tasks(do_fit, begun, workers, time_limit)) as outcomes:
            for fit, status, result, error in outcomes:
                row, curve = result or ({}, None)
                row |= fit.task._asdict() | notes | {"status": status, "error": error}
                row |= {"settings": settings[fit.task.method], "finished": _now()}
                store.add(row, curve)
                bar.update()
                if status == CRASHED:
                    log.error("%s: crashed: %s", fit.task, error.strip())
    return store.runs()


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _where(jobs: int, executor: Executor | None) -> str:
    """Return where the fits run, in words."""
    if executor is not None:
        return f"{type(executor).__name__}, started on {machine()}; one thread a fit"
    return f"{machine()}; {jobs} {'process' if jobs == 1 else 'processes'}, one thread a fit"


def _versions(methods: Iterable[BaseEstimator]) -> dict[str, str]:
    """Return the versions of Python, of our packages and of those that methods come from."""
    parts = [part for method in methods for part in (method, *method.get_params().values())]
    modules = {type(part).__module__.split(".")[0] for part in parts if hasattr(part, "get_params")}
    homes = packages_distributions()
    others = sorted({package for name in modules for package in homes.get(name, ())})
    packages = dict.fromkeys([*PACKAGES, *others])
    return {"python": platform.python_version()} | {name: _version(name) for name in packages}


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
