"""Threads for a search, where there is enough for them to do."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

from joblib import effective_n_jobs

# With fewer numbers, a task takes less time than the threads spend waiting for the GIL.
_LEAST_NUMBERS = 80_000


@contextmanager
def thread_map(
    n_jobs: int | None, shape: tuple[int, int]
) -> Iterator[Callable[..., Iterable[Any]]]:
    """Yield a map over threads; the built-in one for a single thread, or rows of few numbers."""
    n_threads = effective_n_jobs(n_jobs)
    if n_threads == 1 or math.prod(shape) < _LEAST_NUMBERS:
        yield map
        return
    with ThreadPoolExecutor(n_threads) as executor:
        yield executor.map


@contextmanager
def island_executor(executor: Executor | None, n_jobs: int | None) -> Iterator[Executor | None]:
    """Yield what islands evolve on: the given executor, threads, or None for this thread."""
    n_threads = effective_n_jobs(n_jobs)
    if executor is not None or n_threads == 1:
        yield executor
        return
    with ThreadPoolExecutor(n_threads) as threads:
        yield threads
