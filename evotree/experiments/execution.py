"""An experiment run: what is missing is done, and kept as it finishes.

What tasks become is the matter of `runner`, how rows are kept that of `store`.
"""

import json
import math
import os
import platform
import subprocess
import time
import warnings
from collections.abc import Iterable
from contextlib import closing, suppress
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import packages_distributions, version
from pathlib import Path
from typing import Any

import pandas as pd
from sklearn.base import BaseEstimator, clone, is_classifier
from sklearn.metrics import get_scorer
from tqdm import tqdm

from evotree._version import __version__
from evotree.experiments.experiment import Experiment, tree_sizes
from evotree.experiments.protocols import Parts, Task
from evotree.experiments.runner import CRASHED, TIMEOUT, outcomes_of
from evotree.experiments.store import Store, checksum, read_runs
from evotree.log import log_to_file, logger

log = logger(__name__)

LOG_FILE = "experiment.log"
# Whose versions a row holds, beside those of Python and of what methods come from.
PACKAGES = ("numpy", "scipy", "scikit-learn", "numba", "deap")


def forget_peak_memory() -> None:
    """Begin the peak of the memory of this process again, where Linux keeps it."""
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")


def peak_memory() -> float:
    """Return the peak in units of 2**20 bytes; not a number where nothing tells it."""
    kilobytes = _line_of("/proc/self/status", "VmHWM:").removesuffix(" kB")
    return float(kilobytes or "nan") / 1024.0


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
    """Return a clone with all its random states set, also those of what is inside it."""
    names = [one for one in method.get_params() if one.endswith("random_state")]
    return clone(method).set_params(**dict.fromkeys(names, random_state))


def do_fit(
    experiment: Experiment, data_home: Path | None, task: Task
) -> tuple[dict[str, Any], pd.DataFrame | None]:
    """Do one fit; return scores, sizes, measures, seconds and memory, and the learning curve."""
    state = experiment.protocol.random_state(task)
    method = seed_method(experiment.methods[task.method], state)
    parts = experiment.protocol.take_parts(task, data_home, is_classifier(method))
    with warnings.catch_warnings():
        warnings.simplefilter("default")  # each once
        warnings.showwarning = lambda message, category, *place: log.warning(
            "%s: %s: %s", task, category.__name__, message
        )
        forget_peak_memory()
        begin = time.perf_counter()
        method.fit(parts.X_train, parts.y_train)
        seconds = time.perf_counter() - begin
        row: dict[str, Any] = {"peak_memory_mb": peak_memory(), "seconds": seconds}
        begin = time.perf_counter()
        scores = _scores(experiment, method, parts, task)
        row["score_seconds"] = time.perf_counter() - begin
    row |= scores
    row |= {name: measure(method) for name, measure in experiment.measures.items()}
    row |= tree_sizes(method)
    shown = ", ".join(f"{name} {score:.4f}" for name, score in scores.items())
    log.info("%s: done in %.2f s, %s", task, seconds, shown)
    return row, experiment.curve(method) if experiment.curve else None


def _scores(
    experiment: Experiment, method: BaseEstimator, parts: Parts, task: Task
) -> dict[str, float]:
    """Return the scores of a fitted method on the test rows, after ``train_`` on the others.

    One that cannot be computed is NaN, and said; the fit is lost where none can be.
    """
    scorers = {
        name: get_scorer(name.removeprefix("train_")) for name in experiment.metrics
    }
    scores, errors = {}, []
    for name, scorer in {**scorers, **experiment.scorers}.items():
        rows = parts.X_test, parts.y_test
        if name in scorers and name.startswith("train_"):
            rows = parts.X_train, parts.y_train
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
    time_limit: float | None = None,
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
    time_limit : float, optional
        Seconds that a fit may take; one that takes longer is killed with its process, and recorded
        as ``"timeout"``.
    retry : tuple of str, default=()
        Fits that ended so, of `runner.STATUSES`, are done again.

    Returns
    -------
    DataFrame
        All rows, also the earlier ones. A fit that failed has its traceback in ``error``.
    """
    planned = experiment.tasks()
    facts = {
        name: experiment.protocol.facts(name, data_home)
        for name in dict.fromkeys(task.dataset for task in planned)
    }
    definition = experiment.definition() | {"data": facts}
    store = Store(out, experiment.columns(), definition)
    ended = store.done()
    missing = [task for task in planned if ended.get(task) in (None, *retry)]
    versions = json.dumps(_versions(experiment.methods.values()))
    commit = revision()
    settings = {name: checksum(text) for name, text in definition["methods"].items()}
    bar = tqdm(total=len(missing), unit="fit", desc=experiment.name, disable=None)
    with log_to_file(out / LOG_FILE), bar:
        log.info("%s: %d of %d fits to do", experiment.name, len(missing), len(planned))
        outcomes = outcomes_of(
            partial(do_fit, replace(experiment, plan=()), data_home),
            missing,
            jobs,
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
                    "revision": commit,
                    "finished": datetime.now(UTC).isoformat(timespec="seconds"),
                }
                store.add(row, curve)
                bar.update()
                if status in (TIMEOUT, CRASHED):
                    log.error("%s: %s: %s", task, status, error)
    return read_runs(out)


def _versions(methods: Iterable[BaseEstimator]) -> dict[str, str]:
    """Return the machine, and the versions of Python, of us and of all that methods are of."""
    modules = {
        type(part).__module__.partition(".")[0]
        for method in methods
        for part in (method, *method.get_params().values())
    }
    packages_of = packages_distributions()
    others = {name for module in modules for name in packages_of.get(module, ())}
    return {
        **{name: version(name) for name in sorted({*PACKAGES, *others})},
        "python": platform.python_version(),
        "evotree": __version__,
        "machine": machine(),
    }


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
