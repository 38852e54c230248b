"""How a fit runs: in threads where rows are many, behind a progress bar where one is asked for."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

from deap import base
from joblib import effective_n_jobs
from tqdm import tqdm

from evotree.engine.evolution import Callback, Evolution

# Below this many rows a task is shorter than the threads' quarrel about the interpreter lock.
_MIN_ROWS_FOR_THREADS = 10_000


@contextmanager
def thread_map(
    n_jobs: int | None, n_rows: float = math.inf
) -> Iterator[Callable[..., Iterable[Any]]]:
    """Yield a map over threads, the built-in one where there is but one or too few rows."""
    n_threads = effective_n_jobs(n_jobs) if n_rows >= _MIN_ROWS_FOR_THREADS else 1
    if n_threads == 1:
        yield map
        return
    with ThreadPoolExecutor(n_threads) as executor:
        yield executor.map


@contextmanager
def mapping_threads(toolbox: base.Toolbox, n_jobs: int | None, n_rows: int) -> Iterator[None]:
    """Let the toolbox map over threads, where there is enough to do for them."""
    with thread_map(n_jobs, n_rows) as mapper:
        toolbox.register("map", mapper)
        yield


@contextmanager
def counting_bar(description: str, disable: bool) -> Iterator[Callable[[], object]]:
    """Yield a function that counts one more on a bar whose end is not known."""
    with tqdm(desc=description, disable=disable) as bar:
        yield bar.update


@contextmanager
def progress_bar(max_generations: int, disable: bool) -> Iterator[Callback]:
    """Yield a callback that shows the generation, the best fitness and size."""
    with tqdm(total=max_generations, unit="gen", disable=disable) as bar:

        def show(run: Evolution) -> None:
            bar.set_postfix(quality=f"{run.best.quality:.4f}", nodes=len(run.best), refresh=False)
            bar.update(run.generation - bar.n)

        yield show


@contextmanager
def island_executor(executor: Executor | None, n_jobs: int | None) -> Iterator[Executor | None]:
    """Yield what islands evolve on: what was given, threads, or None for this one."""
    n_threads = effective_n_jobs(n_jobs)
    if executor is not None or n_threads == 1:
        yield executor
        return
    with ThreadPoolExecutor(n_threads) as threads:
        yield threads
