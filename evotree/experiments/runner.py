"""Tasks side by side: calls of one function, each process with one at a time.

Whatever becomes of a task comes back as a `TaskOutcome`: the result, the traceback, that its time
was up, or that it brought its process down. Nothing else is lost with it, and the outcomes do not
depend on how many workers there are.
"""

import os
import signal
import threading
import time
import traceback
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from concurrent.futures.process import ProcessPoolExecutor
from contextlib import suppress
from functools import partial
from itertools import islice
from typing import Any, NamedTuple

from threadpoolctl import threadpool_limits

from evotree.log import Answer, logger, told
from evotree.parallel import submit

log = logger(__name__)

DONE, FAILED, TIMEOUT, CRASHED = "done", "failed", "timeout", "crashed"
STATUSES = (DONE, FAILED, TIMEOUT, CRASHED)
"""What may become of a task."""

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
        error = traceback.format_exc().encode(errors="backslashreplace").decode()
        log.error("%s: failed: %s", task, error.strip().splitlines()[-1])
        return TaskOutcome(task, FAILED, error=error)


def outcomes_of(
    run: Callable[[Any], Any],
    tasks: Iterable[Any],
    jobs: int = 1,
    *,
    time_limit: float | None = None,
    mp_context: Any = None,
) -> Generator[TaskOutcome, None, None]:
    """Do tasks side by side and yield what becomes of each, as they finish.

    Each process is a pool of its own, which has one task at a time: one that dies, or is killed as
    its time is up, takes no other with it.
    """
    if jobs < 1:
        raise ValueError(f"jobs={jobs!r}: allowed are integers of at least 1.")
    fresh = iter(tasks)
    running: dict[Future[Answer], tuple[Any, Executor, float]] = {}
    free = [_make_pool(mp_context) for _ in range(jobs)]
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
                    outcome = _outcome_of(task, future)
                elif end <= time.monotonic():
                    text = f"stopped after {time_limit:g} s"
                    outcome = TaskOutcome(task, TIMEOUT, error=text)
                else:
                    continue
                del running[future]
                if outcome.status in (TIMEOUT, CRASHED):
                    _kill(pool)
                    pool = _make_pool(mp_context)
                free.append(pool)
                yield outcome
    finally:
        for pool in free:
            pool.shutdown()
        for _, pool, _ in running.values():
            _kill(pool)


def _outcome_of(task: Any, future: Future[Answer]) -> TaskOutcome:
    """Return what became of a task that has ended."""
    if (
        error := future.exception()
    ):  # its process has died, or the result cannot be sent
        return TaskOutcome(task, CRASHED, error=repr(error))
    return told(future.result())


def _make_pool(mp_context: Any) -> Executor:
    """Begin a process."""
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
    """Prepare a process: it ends when its parent is gone, however that ended."""
    # Ctrl-C reaches all processes of a terminal; the parent alone answers it, and ends the others.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = os.getppid()

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(_PARENT_CHECK)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
