"""Tasks run side by side: on processes of this machine, or on any executor that is handed in.

One task is one call of a function. Whatever becomes of it comes back as an `Outcome`: the result,
the traceback, that its time was up, or that it brought its process down. Nothing else is lost with
it, and the outcomes do not depend on how many workers there are. What happens is logged, by all
processes of this machine to one file.
"""

import ctypes
import logging
import multiprocessing
import os
import signal
import threading
import time
import traceback
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, wait
from concurrent.futures.process import ProcessPoolExecutor
from contextlib import contextmanager, suppress
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from threadpoolctl import threadpool_limits

from evotree._jit import use_one_thread
from evotree.engine.parallel import submit

log = logging.getLogger(__name__)

DONE, FAILED, TIMEOUT, CRASHED = "done", "failed", "timeout", "crashed"
STATUSES = (DONE, FAILED, TIMEOUT, CRASHED)
"""What may become of a task."""
LOG_FILE = "experiment.log"

_LOGGER = logging.getLogger("evotree")
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
    is_over = threading.Event()
    thread = ctypes.c_ulong(threading.get_ident())

    def strike() -> None:
        with lock:
            if not is_over.is_set():
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
            is_over.set()
        timer.cancel()
        # One that is raised but has not arrived arrives here, and does not hit what follows. To
        # take it back would leave the interpreter waiting for it: profilers would hang.
        time.sleep(0.0)


def attempt(
    run: Callable[[Any], Any], task: Any, time_limit: float | None = None
) -> Outcome:
    """Do one task, with one thread of linear algebra; whatever it raises, it has failed."""
    begin = time.perf_counter()
    use_one_thread()
    log.info("%s: begun", task)
    try:
        # n workers use n cores; and of tiny nodes linear algebra is slower with more threads.
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
    log_file: Path | None = None,
) -> Generator[Outcome, None, None]:
    """Do tasks side by side and yield what becomes of each, as they finish."""
    # When a process dies, all tasks that were handed over go with it: each is tried once more,
    # alone. Processes of our own are killed when the generator is closed; an executor stays open.
    if jobs < 1:
        raise ValueError(f"jobs={jobs!r}: allowed are integers of at least 1.")
    make_pool = partial(
        ProcessPoolExecutor,
        mp_context=mp_context or multiprocessing.get_context(),
        initializer=_begin_worker,
        initargs=(log_file, _LOGGER.getEffectiveLevel()),
    )
    attempt_to_run = partial(attempt, run, time_limit=time_limit)
    n_workers = jobs
    if executor is not None:
        n_workers = getattr(executor, "_max_workers", None) or 64
    fresh = iter(tasks)
    running: dict[Future[Outcome], Any] = {}
    pool = executor or make_pool(jobs)
    try:
        while True:
            # Two tasks for each worker are handed over, so that none waits.
            for task in islice(fresh, 2 * n_workers - len(running)):
                running[submit(pool, attempt_to_run, task)] = task
            if not running:
                return
            finished, _ = wait(running, return_when=FIRST_COMPLETED)
            if any(_is_lost(future.exception()) for future in finished):
                if executor is not None:
                    raise BrokenExecutor("the executor has lost a worker")
                finished, _ = wait(running)  # they all end with the pool
                _close(pool, kill=True)
                pool = make_pool(jobs)
            for future in finished:
                task = running.pop(future)
                if _is_lost(future.exception()):
                    alone = make_pool(1)
                    future = submit(alone, attempt_to_run, task)
                    wait([future])
                    _close(alone, kill=True)
                error = future.exception()
                if error is None:
                    yield future.result()
                elif _is_lost(error):
                    died = "the process that ran it died, twice"
                    yield Outcome(task, CRASHED, error=died)
                else:  # the result cannot be sent
                    yield Outcome(task, CRASHED, error=repr(error))
    finally:
        if executor is None:
            _close(pool, kill=bool(running))


def _is_lost(error: BaseException | None) -> bool:
    return isinstance(error, BrokenExecutor)


def _close(pool: Executor, kill: bool) -> None:
    """Shut processes down, at once if asked to."""
    if kill:
        for process in list((getattr(pool, "_processes", None) or {}).values()):
            with suppress(ProcessLookupError):
                process.kill()
    pool.shutdown(wait=True, cancel_futures=True)


def _begin_worker(log_file: Path | None, level: int) -> None:
    """Prepare a process of ours: it ends when its parent is gone, however that ended."""
    # Ctrl-C reaches all processes of a terminal; the parent alone answers it, and ends the others.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = os.getppid()

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(_PARENT_CHECK)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
    # A forked process has the handler of its parent.
    if log_file and not any(
        isinstance(h.formatter, _OneLine) for h in _LOGGER.handlers
    ):
        _LOGGER.addHandler(_handler(log_file))
        _LOGGER.setLevel(level)


class _OneLine(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return "\\n".join(super().format(record).splitlines())


def _handler(path: Path) -> logging.Handler:
    """Return what appends records to a file, each by one write, which no other process splits."""
    # A name of no encoding may stand in a message.
    handler = logging.FileHandler(path, encoding="utf-8", errors="backslashreplace")
    handler.setFormatter(_OneLine("%(asctime)s %(levelname)s %(process)d %(message)s"))
    return handler


@contextmanager
def log_to_file(path: Path) -> Iterator[None]:
    """Append the package's log records to a file while a block runs, a line a record."""
    level_before = _LOGGER.level
    handler = _handler(path)
    if not _LOGGER.isEnabledFor(logging.INFO):
        _LOGGER.setLevel(logging.INFO)
    _LOGGER.addHandler(handler)
    try:
        yield
    finally:
        _LOGGER.removeHandler(handler)
        _LOGGER.setLevel(level_before)
        handler.close()
