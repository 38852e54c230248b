"""An experiment run: what is missing is done, on processes or any executor, and kept.

Kept are results in a file of lines, one a fit, added as fits finish. A line is an object of JSON:
what the experiment is, or a row with its learning curve. Lines are only added, each by one write:
several processes may do so, and a killed one leaves at most one line that is not whole, which does
not count. Of the rows of a fit the last one counts. A file may come from others: it holds numbers
and text, nothing that is run.

A fit is a task, one call of a function. Whatever becomes of it comes back as an `Outcome`: the
result, the traceback, that its time was up, or that it brought its process down. Nothing else is
lost with it, and the outcomes do not depend on how many workers there are.
"""

import ctypes
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
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, wait
from concurrent.futures.process import ProcessPoolExecutor
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache, partial
from importlib.metadata import PackageNotFoundError, packages_distributions, version
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
from evotree.experiments.experiment import Experiment, describe, tree_sizes
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


DONE, FAILED, TIMEOUT, CRASHED = "done", "failed", "timeout", "crashed"
STATUSES = (DONE, FAILED, TIMEOUT, CRASHED)
"""What may become of a task."""
LOG_FILE = "experiment.log"

_PARENT_CHECK = 1.0  # seconds between two looks whether the parent lives


class Outcome(NamedTuple):
    """What became of a task: one of `STATUSES`, what the function returned, or the traceback."""

    task: Any
    status: str
    result: Any = None
    error: str = ""


class TimeIsUp(BaseException):
    """Raised inside a task whose time is up; no ``except Exception`` catches it."""


@contextmanager
def deadline(seconds: float | None) -> Iterator[None]:
    """Raise `TimeIsUp` in this thread after so many seconds, between two steps of Python."""
    if seconds is None:
        yield
        return
    lock = threading.Lock()
    thread = ctypes.c_ulong(threading.get_ident())

    def strike() -> None:
        with lock:
            if not timer.finished.is_set():
                ctypes.pythonapi.PyThreadState_SetAsyncExc(
                    thread, ctypes.py_object(TimeIsUp)
                )

    timer = threading.Timer(seconds, strike)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        with lock:
            timer.cancel()
        # One that is raised but has not arrived arrives here, and does not hit what follows. To
        # take it back would leave the interpreter waiting for it: profilers would hang.
        time.sleep(0.0)


def attempt(
    run: Callable[[Any], Any], task: Any, time_limit: float | None = None
) -> Outcome:
    """Do one task, with one thread of linear algebra; whatever it raises, it has failed."""
    begin = time.perf_counter()
    log.info("%s: begun", task)
    try:
        # With one thread each, n workers use n cores; and on tiny nodes linear algebra is slower
        # with more of them.
        with threadpool_limits(limits=1), deadline(time_limit):
            return Outcome(task, DONE, run(task))
    except TimeIsUp:
        error = f"stopped after {time.perf_counter() - begin:.1f} of {time_limit:g} s"
        log.warning("%s: timeout: %s", task, error)
        return Outcome(task, TIMEOUT, error=error)
    except BaseException:
        error = traceback.format_exc()
        log.error("%s: failed: %s", task, error.strip().splitlines()[-1])
        return Outcome(task, FAILED, error=error)


def outcomes_of(
    run: Callable[[Any], Any],
    tasks: Iterable[Any],
    jobs: int = 1,
    *,
    time_limit: float | None = None,
    executor: Executor | None = None,
    mp_context: Any = None,
) -> Generator[Outcome, None, None]:
    """Do tasks side by side and yield what becomes of each, as they finish."""
    # When a process dies, all tasks that were handed over go with it: each is tried once more,
    # alone. Processes of our own are killed when the generator is closed; an executor stays open.
    if jobs < 1:
        raise ValueError(f"jobs={jobs!r}: allowed are integers of at least 1.")
    make_pool = partial(
        ProcessPoolExecutor,
        mp_context=mp_context,
        initializer=_begin_worker,
    )
    attempt_to_run = partial(attempt, run, time_limit=time_limit)
    n_workers = jobs
    if executor is not None:
        n_workers = getattr(executor, "_max_workers", None) or 64
    fresh = iter(tasks)
    running: dict[Future[Answer], Any] = {}
    pool = executor or make_pool(jobs)
    try:
        while True:
            # Two tasks for each worker are handed over, so that none waits.
            for task in islice(fresh, 2 * n_workers - len(running)):
                running[submit(pool, attempt_to_run, task)] = task
            if not running:
                return
            finished, _ = wait(running, return_when=FIRST_COMPLETED)
            if any(isinstance(one.exception(), BrokenExecutor) for one in finished):
                if executor is not None:
                    raise BrokenExecutor("the executor has lost a worker")
                finished, _ = wait(running)  # they all end with the pool
                _close(pool, kill=True)
                pool = make_pool(jobs)
            for future in finished:
                task = running.pop(future)
                if isinstance(future.exception(), BrokenExecutor):
                    alone = make_pool(1)
                    future = submit(alone, attempt_to_run, task)
                    wait([future])
                    _close(alone, kill=True)
                error = future.exception()
                if error is None:
                    yield told(future.result())
                    continue
                reason = repr(error)  # of a result that cannot be sent
                if isinstance(error, BrokenExecutor):
                    reason = "the process that ran it died, twice"
                yield Outcome(task, CRASHED, error=reason)
    finally:
        if executor is None:
            _close(pool, kill=bool(running))


def _close(pool: Executor, kill: bool) -> None:
    """Shut processes down, at once if asked to."""
    if kill:
        for process in list((getattr(pool, "_processes", None) or {}).values()):
            with suppress(ProcessLookupError):
                process.kill()
        renew_queues()
    pool.shutdown(wait=True, cancel_futures=True)


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


def seed_method(
    method: BaseEstimator, random_state: int, max_generations: float = math.inf
) -> BaseEstimator:
    """Return a clone with all its random states set, and at most so many generations."""
    changed: dict[str, Any] = {}
    for key, value in sorted(method.get_params().items()):
        name = key.rpartition("__")[2]
        if name == "random_state":
            changed[key] = random_state
        elif name == "max_generations":
            changed[key] = min(max_generations, value)
    return clone(method).set_params(**changed)


_warm: set[str] = set()


def warm_up(method: BaseEstimator) -> None:
    """Compile what a method needs, for three classes and for four, once in a process."""
    key = checksum(describe(seed_method(method, 0)))
    if key in _warm:
        return
    # A search tries no other code.
    if hasattr(method, "cv") and hasattr(method, "estimator"):
        method = method.estimator
    for X, y in (make_problem("chessboard4", 100, 0), load_iris(return_X_y=True)):
        seed_method(method, 0, max_generations=20).fit(X, y)
    _warm.add(key)


def do_fit(
    experiment: Experiment, data_home: Path | None, task: Task
) -> tuple[dict[str, Any], pd.DataFrame | None]:
    """Do one fit; return scores, sizes, measures, seconds and memory, and the learning curve."""
    method = experiment.protocol.method_for(
        experiment.methods[task.method], task, data_home
    )
    method = seed_method(method, experiment.protocol.random_state(task))
    parts = experiment.protocol.take_parts(task, data_home, is_classifier(method))
    with _logged_warnings(task):
        if experiment.warm_up:
            warm_up(experiment.methods[task.method])
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
        for part in (method, *method.get_params().values()):
            if isinstance(part, BaseEstimator) and has_fit_parameter(part, "groups"):
                part.set_fit_request(groups=True)
        try:
            asked = get_routing_for_object(method).consumes("fit", ["groups"])
        except NotImplementedError:  # as of some ensembles of scikit-learn
            asked = set()
        method.fit(parts.X_train, parts.y_train, **dict.fromkeys(asked, parts.groups))


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


@contextmanager
def _logged_warnings(task: Task) -> Iterator[None]:
    """Log the warnings of a block, each once."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        try:
            yield
        finally:
            texts = [f"{w.category.__name__}: {w.message}" for w in caught]
            for text in dict.fromkeys(texts):
                log.warning("%s: %s", task, text)


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
        Seconds that a fit may take; one that takes longer is recorded as ``"timeout"``.
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
    finished = store.done() - store.done(retry)
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
                if status == CRASHED:
                    log.error("%s: crashed: %s", task, error.strip())
    return read_runs(out)


def _versions(methods: Iterable[BaseEstimator]) -> dict[str, str]:
    """Return the versions of Python, of our packages and of those that methods come from."""
    modules = {
        type(part).__module__.partition(".")[0]
        for method in methods
        for part in (method, *method.get_params().values())
        if hasattr(part, "get_params")
    }
    packages_of = packages_distributions()
    others = sorted(
        {
            package
            for name in modules - {"evotree"}
            for package in packages_of.get(name, ())
        }
    )
    versions = {"python": platform.python_version(), "evotree": __version__}
    for name in (*PACKAGES, *others):
        with suppress(PackageNotFoundError):
            versions[name] = version(name)
    return versions


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
