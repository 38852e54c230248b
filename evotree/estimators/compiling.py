"""A second process that compiles while a first search does: both fill numba's cache.

Numba compiles under one lock, so that a second thread would wait. What a default search needs last
is compiled here first, by calling it; the search finds it in the cache when it comes to it.
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

from evotree._jit import is_cached
from evotree.dataset import Dataset
from evotree.operators.initialization.growth import grow, init_dipolar
from evotree.operators.initialization.population import (
    axis_trees,
    prune_weakest_links,
)
from evotree.operators.pruning import prune
from evotree.operators.refinement import tao_sweep
from evotree.operators.splitters.base import Split
from evotree.operators.splitters.dipole import Dipole
from evotree.operators.splitters.sparse import Sparse
from evotree.operators.structure.splice import make_individual
from evotree.operators.variation.genetic import cx_trees, mut_nodes
from evotree.operators.variation.selection import sel_proportional
from evotree.rng import make_streams

config: Any = numba.config


def start_python(statement: str, **options: Any) -> subprocess.Popen[bytes]:
    """Run a statement in a new Python process that has this one's modules and numba's cache."""
    environment = {**os.environ, "EVOTREE_NO_WARMUP": "1"}
    if config.CACHE_DIR:
        environment["NUMBA_CACHE_DIR"] = config.CACHE_DIR
    code = f"import sys; sys.path[:] = {sys.path!r}; {statement}"
    return subprocess.Popen([sys.executable, "-c", code], env=environment, **options)


def main(task: str) -> None:
    """Compile what a search needs last, as long as the process that asked for it lives."""
    parent = os.getppid()
    for _ in compile_variation(task):
        if os.getppid() != parent:
            break


def compile_variation(task: str) -> Iterator[None]:
    """Call the operators that change and prune trees, the first that a search needs first."""
    X = np.random.default_rng(0).normal(size=(60, 2))
    y = X[:, 0] + X[:, 1] ** 2
    dataset = Dataset.from_arrays(
        X, y > 0.0 if task == "classification" else y, task=task
    )
    stream = make_streams(0, 0, 1)[0]
    weights, size = (
        np.array([[1.0, 0.0], [0.0, 0.0], [0.0, 0.0]]),
        np.array([3, 1, 1], np.int32),
    )
    first = make_individual(dataset, weights, np.zeros(3), size)
    first.stream = stream
    yield
    if dataset.n_classes:  # the search begins with sparse splits itself
        tao_sweep(
            first,
            dataset,
            lambda node, stream: Split(np.ones(2), 0.0, 0.0),
            monotone=False,
        )
        yield
        axis_trees(dataset, stream)
    else:
        tao_sweep(first, dataset, Sparse(), monotone=False)
    yield
    cx_trees(first.clone(), first.clone(), dataset)
    yield
    mut_nodes(first.clone(), dataset, probability=1.0)
    yield
    criterion = "entropy" if dataset.n_classes else "squared_error"
    tree = grow(dataset, Dipole(scored=False), criterion, stream=stream)
    tree.stream = stream
    yield
    prune_weakest_links(tree.clone(), dataset, 0.01)
    yield
    prune(tree.clone(), dataset, 1.0)
    yield
    for rank, individual in enumerate((first, tree)):
        individual.fitness.values = (float(rank),)
    sel_proportional([first, tree], 2)
    yield
    init_dipolar(dataset, 0.01, stream)
    dataset.to_raw(tree.to_tree())


class _Starter(Listener):
    """Starts the second process when numba begins to compile; there is none where it need not."""

    def __init__(self, task: str) -> None:
        self.task = task
        self.process: subprocess.Popen[bytes] | None = None
        self._is_first = threading.Lock()

    def on_start(self, event: Event) -> None:
        if not self._is_first.acquire(blocking=False) or not may_help():
            return
        nowhere = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.DEVNULL)
        code = f"from evotree.estimators.compiling import main; main({self.task!r})"
        with suppress(OSError):
            self.process = start_python(code, **nowhere)

    def on_end(self, event: Event) -> None:
        pass

    def stop(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()


def may_help() -> bool:
    """Return whether a second process is possible, is wanted and has a processor."""
    is_python = Path(sys.executable or "").name.startswith(
        "python"
    )  # not a program around it
    return (
        is_python
        and is_cached()
        and parent_process() is None
        and not config.DISABLE_JIT
        and not os.environ.get("EVOTREE_NO_WARMUP")
        and cpu_count() > 1
    )


@contextmanager
def compiling_beside(task: str) -> Iterator[None]:
    """Let a second process compile with this one, from the first function that is not cached."""
    starter = _Starter(task)
    try:
        with install_listener("numba:compile", starter):
            yield
    finally:
        starter.stop()
