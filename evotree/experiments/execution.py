"""An experiment run: what is missing is done, on processes or any executor, and kept.

Kept are results in a file of lines, one a fit, added as fits finish. A line is an object of JSON:
what the experiment is, or a row with its learning curve. Lines are only added, each by one write:
several processes may do so, and a killed one leaves at most one line that is not whole, which does
not count. Of the rows of a fit the last one counts. A file may come from others: it holds numbers
and text, nothing that is run.

A fit is a task, one call of a function. Whatever becomes of it comes back as an `TaskOutcome`: the
result, the traceback, that its time was up, or that it brought its process down. Nothing else is
lost with it, and the outcomes do not depend on how many workers there are.
"""

import json
import logging
import math
import os
import platform
import signal
import subprocess
import threading
import time
import traceback
import warnings
import zlib
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, wait
from concurrent.futures.process import ProcessPoolExecutor
from contextlib import closing, suppress
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache, partial
from importlib.metadata import packages_distributions, version
from itertools import islice, takewhile
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from pandas.api.types import is_numeric_dtype
from sklearn import config_context
from sklearn.base import BaseEstimator, clone, is_classifier
from sklearn.datasets import load_iris
from sklearn.metrics import get_scorer
from sklearn.utils.metadata_routing import get_routing_for_object
from sklearn.utils.validation import has_fit_parameter
from threadpoolctl import threadpool_limits
from tqdm import tqdm

from evotree._version import __version__
from evotree.experiments.experiment import (
    Experiment,
    describe_method,
    parts_of,
    tree_sizes,
)
from evotree.experiments.problems import make_problem
from evotree.experiments.protocols import KEY, Parts, Task
from evotree.log import Answer, log_to_file, renew_queues, told
from evotree.parallel import submit

log = logging.getLogger(__name__)

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

_KINDS = {"name": str, "shown": list, "protocol": dict, "seeds": list} | dict.fromkeys(
    ("metrics", "methods", "data", "sources"), dict
)
"""What a report needs of a definition."""

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
        before, _ = _read_lines(folder)
        grown, changes = merge(before, definition)
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
        for name, value in entry.items():  # half characters have no encoding
            if isinstance(value, str):
                entry[name] = value.encode("utf-8", "backslashreplace").decode("utf-8")
        if curve is not None:
            entry["curve"] = curve.to_dict("list")
        self._append(entry)

    def done(self, statuses: Sequence[str] | None = None) -> set[Key]:
        """Return the keys of the fits that have a row, of some statuses or of any."""
        rows = _read_lines(self.path.parent)[1]
        return {
            key
            for key, row in rows.items()
            if statuses is None or row["status"] in statuses
        }

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
    definition, rows = _read_lines(folder)
    columns = json.loads(definition.get("columns", "[]")) or [*KEY, "status"]
    runs = check_runs(pd.DataFrame(list(rows.values()), columns=columns), folder / FILE)
    return runs.sort_values(["dataset", "method", "seed", "fold"], ignore_index=True)


def read_definition(folder: Path) -> Definition:
    """Return what the experiment of a folder is; its metrics may be names of files."""
    definition, _ = _read_lines(folder)
    for name, kind in _KINDS.items():
        if not isinstance(definition.get(name), kind):
            raise ValueError(
                f"{folder / FILE}: its experiment has no {name}, or a wrong one."
            )
    for metric in definition["metrics"]:
        if not metric.isidentifier():
            raise ValueError(
                f"{folder / FILE}: its experiment has the metric {metric[:200]!r}: allowed are "
                "letters, digits and underscores."
            )
    return definition


def read_curves(folder: Path) -> dict[Key, pd.DataFrame]:
    """Return the learning curves of an experiment's fits, by the values of `KEY`."""
    rows = sorted(_read_lines(folder)[1].items())
    try:
        return {key: pd.DataFrame(row["curve"]) for key, row in rows if "curve" in row}
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"{folder / FILE}: a learning curve is no table: {error}"
        ) from error


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


DONE, FAILED, TIMEOUT, CRASHED = "done", "failed", "timeout", "crashed"
STATUSES = (DONE, FAILED, TIMEOUT, CRASHED)
"""What may become of a task."""
LOG_FILE = "experiment.log"

_PARENT_CHECK = 1.0  # seconds between two looks whether the parent lives


class TaskOutcome(NamedTuple):
    """What became of a task: one of `STATUSES`, what the function returned, or the traceback."""

    task: Any
    status: str
    result: Any = None
    error: str = ""


def attempt(run: Callable[[Any], Any], task: Any) -> TaskOutcome:
    """Do one task, with one thread of linear algebra; whatever it raises, it has failed."""
    log.info("%s: begun", task)
    try:
        # So n workers use n cores; on tiny nodes linear algebra is slower with more threads.
        with threadpool_limits(limits=1):
            return TaskOutcome(task, DONE, run(task))
    except BaseException:
        error = traceback.format_exc()
        log.error("%s: failed: %s", task, error.strip().splitlines()[-1])
        return TaskOutcome(task, FAILED, error=error)


def outcomes_of(
    run: Callable[[Any], Any],
    tasks: Iterable[Any],
    jobs: int = 1,
    *,
    time_limit: float | None = None,
    executor: Executor | None = None,
    mp_context: Any = None,
) -> Generator[TaskOutcome, None, None]:
    """Do tasks side by side and yield what becomes of each, as they finish.

    Each process of ours is a pool of its own, which has one task at a time: one that dies, or is
    killed as its time is up, takes no other with it. An executor of others stays open.
    """
    if jobs < 1:
        raise ValueError(f"jobs={jobs!r}: allowed are integers of at least 1.")
    if time_limit is not None and executor is not None:
        raise ValueError(
            f"time_limit={time_limit!r}: allowed is None beside an executor, whose tasks nobody "
            "can end."
        )
    fresh = iter(tasks)
    running: dict[Future[Answer], tuple[Any, Executor, float]] = {}
    if executor is None:
        free: list[Executor] = [_make_pool(mp_context) for _ in range(jobs)]
    else:  # two tasks for each worker, so that none waits
        free = 2 * (getattr(executor, "_max_workers", None) or 64) * [executor]
    try:
        while True:
            for task in islice(fresh, len(free)):
                pool = free.pop()
                end = time.monotonic() + (time_limit or threading.TIMEOUT_MAX)
                running[submit(pool, partial(attempt, run), task)] = task, pool, end
            if not running:
                return
            first_end = min(end for _, _, end in running.values())
            wait(running, max(0.0, first_end - time.monotonic()), FIRST_COMPLETED)
            for future, (task, pool, end) in list(running.items()):
                if future.done():
                    outcome = _outcome_of(task, future, is_ours=executor is None)
                elif end <= time.monotonic():
                    text = f"stopped after {time_limit:g} s"
                    outcome = TaskOutcome(task, TIMEOUT, error=text)
                else:
                    continue
                del running[future]
                if executor is None and outcome.status in (TIMEOUT, CRASHED):
                    _kill(pool)
                    pool = _make_pool(mp_context)
                free.append(pool)
                yield outcome
    finally:
        if executor is None:
            for pool in free:
                pool.shutdown()
            for _, pool, _ in running.values():
                _kill(pool)


def _outcome_of(task: Any, future: Future[Answer], is_ours: bool) -> TaskOutcome:
    """Return what became of a task; raise a BrokenExecutor where no other task can be done."""
    error = future.exception()
    if error is None:
        return told(future.result())
    if isinstance(error, BrokenExecutor) and not is_ours:
        raise BrokenExecutor("the executor has lost a worker") from error
    # Its process has died, or the result cannot be sent.
    return TaskOutcome(task, CRASHED, error=repr(error))


def _make_pool(mp_context: Any) -> Executor:
    """Begin a process, with a queue of its own to the log."""
    renew_queues()
    pool = ProcessPoolExecutor(1, mp_context=mp_context, initializer=_begin_worker)
    pool.submit(os.getpid)  # processes are begun with the first task
    return pool


def _kill(pool: Executor) -> None:
    """End the process of a pool at once, whatever it does."""
    for process in list((getattr(pool, "_processes", None) or {}).values()):
        with suppress(ProcessLookupError):
            process.kill()
    pool.shutdown(cancel_futures=True)


def _begin_worker() -> None:
    """Prepare a process of ours: it ends when its parent is gone, however that ended."""
    # Ctrl-C reaches all processes of a terminal; the parent alone answers it, and ends the others.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = os.getppid()

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(_PARENT_CHECK)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


# Whose versions a row holds, beside those of Python and of what methods come from.
PACKAGES = ("numpy", "scipy", "scikit-learn", "numba", "deap")


class PeakMemory:
    """The most memory that this process has held since it was made, where Linux tells it."""

    def __init__(self) -> None:
        with suppress(OSError):  # begins the peak again
            Path("/proc/self/clear_refs").write_text("5", encoding="ascii")

    def megabytes(self) -> float:
        """Return the peak in units of 2**20 bytes; not a number where nothing tells it."""
        kilobytes, *_ = (_line_of("/proc/self/status", "VmHWM:") or "nan").split()
        return float(kilobytes) / 1024.0


def machine() -> str:
    """Return system, processor and number of logical cores of this machine, in words."""
    # Python knows the name of the processor on other systems than Linux alone.
    processor = _line_of("/proc/cpuinfo", "model name").lstrip("\t :")
    processor = processor or platform.processor() or platform.machine()
    return f"{platform.system()} {platform.machine()}, {processor}, {os.cpu_count()} logical cores"


def _line_of(path: str, beginning: str) -> str:
    """Return the rest of the first line that begins so; empty where there is none."""
    with suppress(OSError):
        for line in Path(path).read_text(encoding="utf-8").splitlines():
            if line.startswith(beginning):
                return line.removeprefix(beginning).strip()
    return ""


def seed_method(method: BaseEstimator, random_state: int) -> BaseEstimator:
    """Return a clone with all its random states set."""
    states = dict.fromkeys(_parameters(method, "random_state"), random_state)
    return clone(method).set_params(**states)


def _parameters(method: BaseEstimator, name: str) -> dict[str, Any]:
    """Return the parameters of a name, of an estimator and of those inside it."""
    parameters = method.get_params().items()
    return {key: value for key, value in parameters if key.split("__")[-1] == name}


_compiled: set[str] = set()


def compile_for(method: BaseEstimator) -> None:
    """Compile what a method needs, for three classes and for four, once in a process."""
    key = checksum(describe_method(seed_method(method, 0)))
    if key in _compiled:
        return
    # A search tries no other code.
    if hasattr(method, "cv") and hasattr(method, "estimator"):
        method = method.estimator
    limits = _parameters(method, "max_generations").items()
    for X, y in (make_problem("chessboard4", 100, 0), load_iris(return_X_y=True)):
        quick = {key: min(20, value) for key, value in limits}
        seed_method(method, 0).set_params(**quick).fit(X, y)
    _compiled.add(key)


def do_fit(
    experiment: Experiment, data_home: Path | None, task: Task
) -> tuple[dict[str, Any], pd.DataFrame | None]:
    """Do one fit; return scores, sizes, measures, seconds and memory, and the learning curve."""
    method = experiment.protocol.method_for(
        experiment.methods[task.method], task, data_home
    )
    method = seed_method(method, experiment.protocol.random_state(task))
    parts = experiment.protocol.take_parts(task, data_home, is_classifier(method))
    with warnings.catch_warnings():
        warnings.simplefilter("default")  # each once
        warnings.showwarning = lambda message, category, *place: log.warning(
            "%s: %s: %s", task, category.__name__, message
        )
        if experiment.warm_up:
            compile_for(experiment.methods[task.method])
        memory = PeakMemory()
        begin = time.perf_counter()
        fit_to(method, parts)
        seconds = time.perf_counter() - begin
        row: dict[str, Any] = {"peak_memory_mb": memory.megabytes(), "seconds": seconds}
        begin = time.perf_counter()
        scores = _scores(experiment, method, parts, task)
        row["score_seconds"] = time.perf_counter() - begin
    row |= scores
    row |= {name: measure(method) for name, measure in experiment.measures.items()}
    row |= tree_sizes(method)
    shown = ", ".join(f"{name} {score:.4f}" for name, score in scores.items())
    log.info("%s: done in %.2f s, %s", task, seconds, shown)
    return row, experiment.curve(method) if experiment.curve else None


def fit_to(method: BaseEstimator, parts: Parts) -> None:
    """Fit a method to some rows; scikit-learn's routing tells all parts of it which have groups."""
    if parts.groups is None:
        method.fit(parts.X_train, parts.y_train)
        return
    with config_context(enable_metadata_routing=True):
        for part in parts_of(method):
            if has_fit_parameter(part, "groups"):
                part.set_fit_request(groups=True)
        try:
            takers = get_routing_for_object(method).consumes("fit", ["groups"])
        except NotImplementedError:  # as of some ensembles of scikit-learn
            takers = set()
        method.fit(parts.X_train, parts.y_train, **dict.fromkeys(takers, parts.groups))


def _scores(
    experiment: Experiment, method: BaseEstimator, parts: Parts, task: Task
) -> dict[str, float]:
    """Return the scores of a fitted method on the test rows, after ``train_`` on the others.

    One that cannot be computed is NaN, and said; the fit is lost where none can be.
    """
    scorers = {
        metric: get_scorer(metric.removeprefix("train_"))
        for metric in experiment.metrics
    }
    scores, errors = {}, []
    for name, scorer in (scorers | dict(experiment.scorers)).items():
        is_training = name in scorers and name.startswith("train_")
        rows = (
            (parts.X_train, parts.y_train)
            if is_training
            else (parts.X_test, parts.y_test)
        )
        try:
            scores[name] = float(scorer(method, *rows))
        except Exception as error:
            scores[name] = math.nan
            errors.append(error)
            log.warning("%s: %s cannot be computed: %s", task, name, error)
    if len(errors) == len(scores):
        raise errors[0]
    return scores


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
) -> pd.DataFrame:
    """Do the fits of an experiment that have no row yet, and keep their rows as they finish.

    All that can be checked is checked before any work starts. The log is ``experiment.log`` in the
    folder of the results. Several processes may run fits of one experiment into one folder.

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
        ``mpi4py.futures.MPIPoolExecutor`` and the like. What its processes log comes with the
        results.
    time_limit : float, optional
        Seconds that a fit may take; one that takes longer is killed with its process, and recorded
        as ``"timeout"``. Not with an executor.
    max_seconds : float, optional
        No fit is begun after so many seconds.
    retry : tuple of str, default=()
        Fits that ended so, of `STATUSES`, are done again.

    Returns
    -------
    DataFrame
        All rows, also the earlier ones. A fit that failed has its traceback in ``error``.
    """
    end = math.inf if max_seconds is None else time.monotonic() + max_seconds
    planned = experiment.tasks()
    protocol = experiment.protocol
    names = dict.fromkeys(task.dataset for task in planned)
    definition = experiment.definition() | {
        "data": {name: protocol.check(name, data_home) for name in names},
        "sources": {name: protocol.source(name, data_home) for name in names},
    }
    store = Store(out, experiment.columns(), definition)
    finished = store.done([status for status in STATUSES if status not in retry])
    missing = [task for task in planned if task not in finished]
    if missing:  # else no fit runs on this machine
        where = f"{machine()}; {jobs} {'process' if jobs == 1 else 'processes'}, one thread a fit"
        if executor is not None:
            where = (
                f"{type(executor).__name__}, started on {machine()}; one thread a fit"
            )
        definition["machines"] = [where]
        store = Store(out, experiment.columns(), definition)
    versions = json.dumps(_versions(experiment.methods.values()))
    settings = {name: checksum(text) for name, text in definition["methods"].items()}
    begun = takewhile(lambda _: time.monotonic() < end, missing)
    bar = tqdm(total=len(missing), unit="fit", desc=experiment.name, disable=None)
    with log_to_file(out / LOG_FILE), bar:
        log.info("%s: %d of %d fits to do", experiment.name, len(missing), len(planned))
        outcomes = outcomes_of(
            partial(do_fit, replace(experiment, plan=()), data_home),
            begun,
            jobs,
            executor=executor,
            time_limit=time_limit,
        )
        with closing(outcomes):  # what interrupts the loop ends the workers at once
            for task, status, result, error in outcomes:
                row, curve = result or ({}, None)
                row |= {
                    **task._asdict(),
                    "status": status,
                    "error": error,
                    "settings": settings[task.method],
                    "versions": versions,
                    "revision": revision(),
                    "finished": datetime.now(UTC).isoformat(timespec="seconds"),
                }
                store.add(row, curve)
                bar.update()
                if status in (TIMEOUT, CRASHED):
                    log.error("%s: %s: %s", task, status, error)
    return read_runs(out)


def _versions(methods: Iterable[BaseEstimator]) -> dict[str, str]:
    """Return the versions of Python, of our packages and of those that methods come from."""
    parts = [part for method in methods for part in parts_of(method)]
    modules = {type(part).__module__.partition(".")[0] for part in parts} - {"evotree"}
    packages_of = packages_distributions()
    others = {name for module in modules for name in packages_of.get(module, ())}
    versions = {name: version(name) for name in (*PACKAGES, *sorted(others))}
    return {
        "python": platform.python_version(),
        "evotree": __version__,
        **versions,
    }


@cache
def revision() -> str:
    """Return the commit of the folder that we are in, with a ``+`` where files differ from it."""
    # Neither the index nor a hook of the folder is touched.
    git = "git --no-optional-locks -c core.fsmonitor=false"
    command = f"{git} describe --always --abbrev=12 --exclude=* --dirty=+".split()
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        return done.stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""
