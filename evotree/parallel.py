"""Who works: BLAS on one thread, a search on several if they have enough to do, or an executor."""

import math
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import BrokenExecutor, Executor, Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache
from threading import Lock
from typing import Any

from joblib import effective_n_jobs
from threadpoolctl import ThreadpoolController

from evotree.log import Answer, telling, told

# With fewer numbers, a task takes less time than the threads spend waiting for the GIL.
_LEAST_NUMBERS = 80_000

_blas_lock = Lock()
_blas_limits: list[Any] = []  # what each holder found when it came
_libraries = cache(ThreadpoolController)  # it takes milliseconds to look them up


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Keep BLAS to one thread in this process until the last of all holders leaves."""
    # Whoever leaves puts back what the latest found: only the last of all, what the first found.
    with _blas_lock:
        _blas_limits.append(_libraries().limit(limits=1, user_api="blas"))
    try:
        yield
    finally:
        with _blas_lock:
            _blas_limits.pop().restore_original_limits()


@contextmanager
def thread_map(
    n_jobs: int | None, shape: tuple[int, ...] = ()
) -> Iterator[Callable[..., Iterable[Any]]]:
    """Yield a map over threads; the built-in one for a single thread, or rows of few numbers."""
    n_threads = effective_n_jobs(n_jobs)
    if n_threads == 1 or (shape and math.prod(shape) < _LEAST_NUMBERS):
        yield map
        return
    with ThreadPoolExecutor(n_threads) as executor:
        yield executor.map


def island_executor(
    executor: Executor | None, n_jobs: int | None
) -> AbstractContextManager[Executor | None]:
    """Return a context of what islands evolve on: the executor, threads, or None for this one."""
    n_threads = effective_n_jobs(n_jobs)
    if executor is not None or n_threads == 1:
        return nullcontext(executor)
    return ThreadPoolExecutor(n_threads)


def run_tasks(
    function: Callable[[Any], Any], tasks: Sequence[Any], executor: Executor, what: str
) -> list[Any]:
    """Return what a function returns for each task, by an executor.

    A worker that dies is an error. Its task is not done again here: what has killed a worker would
    kill this process as well, with all that it holds.
    """
    futures = [submit(executor, function, task) for task in tasks]
    try:
        return [told(future.result()) for future in futures]
    except Exception as error:
        if not _is_lost_worker(error):
            raise
        raise RuntimeError(
            f"a worker of the executor died over {what}: it has crashed, or the memory was short. "
            "In one process (n_jobs=1, executor=None) the crash shows where it happens."
        ) from error
    finally:
        for future in futures:
            # What is done has a name on Dask, which a later fit to the same rows asks for again.
            if not future.done():
                future.cancel()


def n_at_once(executor: Executor, n_tasks: int) -> int:
    """Return how many of some tasks an executor runs at once, as far as is known of it."""
    client = getattr(executor, "_client", None)  # Dask's
    if client is not None:
        n_workers = sum(client.ncores().values())
    else:
        n_workers = getattr(executor, "_max_workers", n_tasks)
    return min(n_tasks, max(1, n_workers))


def submit(
    executor: Executor, function: Callable[[Any], Any], task: Any
) -> Future[Answer]:
    """Hand a task over; that the executor is broken already is an error of the task."""
    try:
        return executor.submit(telling(function), task)
    except BrokenExecutor as error:
        future: Future[Answer] = Future()
        future.set_exception(error)
        return future


def _is_lost_worker(error: Exception) -> bool:
    distributed = sys.modules.get("distributed")  # Dask, where it is used
    killed = (distributed.KilledWorker,) if distributed else ()
    return isinstance(error, (BrokenExecutor, *killed))
