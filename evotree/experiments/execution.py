"""An experiment run: what is missing is done, on processes or any executor, and kept."""

import json
import logging
import math
import os
import platform
import subprocess
import time
import warnings
from collections.abc import Iterable, Iterator
from concurrent.futures import Executor
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache, partial
from importlib.metadata import PackageNotFoundError, packages_distributions, version
from itertools import takewhile
from pathlib import Path
from typing import Any

import pandas as pd
from sklearn.base import BaseEstimator, clone, is_classifier
from sklearn.datasets import load_iris
from sklearn.metrics import get_scorer
from tqdm import tqdm

from evotree.experiments.experiment import Experiment, describe, tree_sizes
from evotree.experiments.problems import make_problem
from evotree.experiments.protocols import Parts, Task
from evotree.experiments.runner import CRASHED, LOG_FILE, log_to_file, outcomes_of
from evotree.experiments.store import Store, checksum

log = logging.getLogger(__name__)

# Whose versions a row holds, beside those of Python and of what methods come from.
PACKAGES = ("evotree", "numpy", "scipy", "scikit-learn", "numba", "deap")


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
        method.fit(parts.X_train, parts.y_train)
        seconds = time.perf_counter() - begin
        row: dict[str, Any] = {"peak_memory_mb": memory.megabytes(), "seconds": seconds}
        begin = time.perf_counter()
        scores = {
            metric: _score(method, metric, parts) for metric in experiment.metrics
        }
        for name, scorer in experiment.scorers.items():
            scores[name] = float(scorer(method, parts.X_test, parts.y_test))
        row["score_seconds"] = time.perf_counter() - begin
    row |= scores
    row |= {name: measure(method) for name, measure in experiment.measures.items()}
    row |= tree_sizes(method)
    shown = ", ".join(f"{name} {score:.4f}" for name, score in scores.items())
    log.info("%s: done in %.2f s, %s", task, seconds, shown)
    return row, experiment.curve(method) if experiment.curve else None


def _score(method: BaseEstimator, metric: str, parts: Parts) -> float:
    """Return a score of a fitted method on the test rows, after ``train_`` on the others."""
    scorer = get_scorer(metric.removeprefix("train_"))
    if metric.startswith("train_"):
        return float(scorer(method, parts.X_train, parts.y_train))
    return float(scorer(method, parts.X_test, parts.y_test))


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
        ``mpi4py.futures.MPIPoolExecutor`` and the like. What its processes log is theirs.
    time_limit : float, optional
        Seconds that a fit may take; one that takes longer is recorded as ``"timeout"``.
    max_seconds : float, optional
        No fit is begun after so many seconds.
    retry : tuple of str, default=()
        Fits that ended so, of `evotree.experiments.runner.STATUSES`, are done again.

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
            log_file=out / LOG_FILE,
        )
        with closing(outcomes):  # what interrupts the loop ends the workers at once
            for task, status, result, error in outcomes:
                row, curve = result or ({}, None)
                row |= task._asdict()
                row |= {
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
    return store.runs()


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
        {package for name in modules for package in packages_of.get(name, ())}
    )
    versions = {"python": platform.python_version()}
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
