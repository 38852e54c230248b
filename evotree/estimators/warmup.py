"""Compiling ahead of fits, where no wheel has brought the kernels.

Numba compiles under one lock, so that a second thread would wait. What a default search needs last
is compiled in a second process first, by a small search; the large one finds it in the cache when
it comes to it. `warmup` fills the cache, so that later fits hardly compile.
"""

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from multiprocessing import parent_process
from pathlib import Path
from typing import Any

import numba
import numpy as np
from joblib import cpu_count
from numba.core.event import Event, Listener, install_listener
from tqdm.auto import tqdm

from evotree import estimators
from evotree._jit import is_cached
from evotree.engine.config import Evolution, Regularization, Variation
from evotree.fitness.objectives import CLASS_OBJECTIVES, TARGET_OBJECTIVES
from evotree.operators.initialization.growth import PRUNINGS
from evotree.operators.splitters.registry import GREEDY_PRESETS, SPLITTERS

config: Any = numba.config

# Ends a process when the pipe to its parent does, even if that was killed, and while it imports.
_WITH_PARENT = (
    "import os, threading; threading.Thread("
    "target=lambda: os.read(0, 1) or os._exit(0), daemon=True).start()"
)


def start_python(statement: str, **options: Any) -> subprocess.Popen[bytes]:
    """Run a statement in a new Python process that has this one's modules and numba's cache."""
    environment = {**os.environ, "EVOTREE_NO_WARMUP": "1"}
    if config.CACHE_DIR:
        environment["NUMBA_CACHE_DIR"] = config.CACHE_DIR
    return subprocess.Popen(
        [sys.executable, "-c", f"import sys; sys.path[:] = {sys.path!r}; {statement}"],
        env=environment,
        **options,
    )


def _rows(task: str) -> tuple[np.ndarray, np.ndarray]:
    """Return a few rows with three classes, or with targets."""
    X = np.random.default_rng(0).normal(size=(90, 3))
    y = np.abs(X[:, 0] + X[:, 1] ** 2)
    return X, np.digitize(y, (0.5, 1.5)) if task == "classification" else y


class _Starter(Listener):
    """Says that numba begins to compile, and starts the second process where that helps."""

    def __init__(self, task: str, says_so: bool) -> None:
        self.task = task
        self.says_so = says_so
        self.process: subprocess.Popen[bytes] | None = None
        self._is_first = threading.Lock()

    def on_start(self, event: Event) -> None:
        if not self._is_first.acquire(blocking=False):
            return
        if self.says_so:  # nothing else may happen for many seconds
            often = "once" if is_cached() else "in every process"
            tqdm.write(f"compiling kernels, {often}, some 15 seconds", sys.stderr)
        if may_help():
            with suppress(OSError):
                self.process = start_python(
                    f"{_WITH_PARENT}; from evotree.estimators.warmup import "
                    f"compile_all; compile_all({self.task!r}, 1)",
                    stdin=subprocess.PIPE,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                )

    def on_end(self, event: Event) -> None:
        pass


def may_help() -> bool:
    """Return whether a second process is possible, is wanted and has a processor."""
    return (
        # Not a program around Python.
        Path(sys.executable or "").name.startswith("python")
        and is_cached()
        and parent_process() is None
        and not config.DISABLE_JIT
        and not os.environ.get("EVOTREE_NO_WARMUP")
        and cpu_count() > 1
    )


@contextmanager
def compiling_beside(task: str, says_so: bool = False) -> Iterator[None]:
    """Let a second process compile with this one, from the first function that is not cached."""
    starter = _Starter(task, says_so)
    try:
        with install_listener("numba:compile", starter):
            yield
    finally:
        if starter.process is not None:
            starter.process.kill()
            starter.process.communicate()


TASKS = ("classification", "regression")


def estimators_of(task: str) -> list[Any]:
    """Return estimators that together call nearly every kernel of a task."""
    of_classes = task == "classification"
    kind = "Classifier" if of_classes else "Regressor"
    names = ("EvoTree", "ObliqueTree", "TAO")
    evolved, greedy, alternating = (getattr(estimators, name + kind) for name in names)
    presets = GREEDY_PRESETS if of_classes else ()
    losses = CLASS_OBJECTIVES if of_classes else TARGET_OBJECTIVES
    plain = Regularization(C=1.0, penalty="l1", noise=0.0)
    nsga2 = Evolution(variation=Variation(algorithm="nsga2"), regularization=plain)
    refining = Evolution(refinement=[*SPLITTERS, "tao"], regularization=plain)
    changing = Variation(mutation_probability=1.0, crossover_probability=1.0)
    few = Evolution(8, init="dipole", variation=changing, regularization=plain)
    return [
        # The first calls what other searches need last; it looks for no penalties.
        evolved(
            size_penalty=0.01,
            term_penalty=0.001,
            max_generations=3,
            evolution=few,
            random_state=0,
        ),
        evolved(random_state=0),
        evolved(evolution=nsga2, max_generations=3, random_state=0),
        evolved(evolution=refining, max_generations=3, random_state=0),
        evolved.from_preset("gea_odt", max_generations=3, random_state=0),
        *(
            evolved(objective=loss, max_generations=3, random_state=0)
            for loss in losses
        ),
        *(greedy(splitter, random_state=0) for splitter in SPLITTERS),
        *(greedy.from_preset(preset, random_state=0) for preset in presets),
        *(greedy("axis", pruning=pruning, random_state=0) for pruning in PRUNINGS),
        alternating(random_state=0),
    ]


def compile_all(task: str, n: int | None = None) -> None:
    """Fit all estimators of a task, or the first n, to a few rows."""
    X, y = _rows(task)
    for estimator in estimators_of(task)[:n]:
        with suppress(ValueError):
            estimator.fit(X, y).predict(X)


def warmup() -> None:
    """Compile what fits need; numba's cache keeps it."""
    for task in TASKS:
        compile_all(task)
