"""Tasks run side by side: on processes of this machine, or on any executor that is handed in.

One task is one call of a function. Whatever becomes of it comes back as an `Outcome`: the result,
the traceback, that its time was up, or that it brought its process down. Nothing else is lost with
it, and the outcomes do not depend on how many workers there are.
"""

from __future__ import annotations

import ctypes
import logging
import multiprocessing
import os
import signal
import threading
import time
import traceback
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, wait
from concurrent.futures.process import ProcessPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeVar

from threadpoolctl import threadpool_limits

from evotree._jit import use_one_thread

log = logging.getLogger(__name__)

DONE, FAILED, TIMEOUT, CRASHED = "done", "failed", "timeout", "crashed"
STATUSES = (DONE, FAILED, TIMEOUT, CRASHED)
"""What may become of a task."""

_PARENT_CHECK = 1.0  # seconds between two looks whether the parent lives

T = TypeVar("T")


class Outcome(NamedTuple):
    """What became of a task.

    Attributes
    ----------
    task : object
        The task.
    status : str
        One of `STATUSES`.
    result : object
        What the function returned; None where it did not.
    error : str
        The traceback, or what happened; empty where the task is done.
    """

    task: Any
    status: str
    result: Any = None
    error: str = ""


class Initializer(NamedTuple):
    """What a worker calls first, with arguments that can be sent to it."""

    function: Callable[..., object]
    arguments: tuple[Any, ...] = ()


class TimeIsUp(BaseException):
    """Raised inside a task whose time is up; no ``except Exception`` catches it."""


@contextmanager
def deadline(seconds: float | None) -> Iterator[None]:
    """Raise `TimeIsUp` in this thread after so many seconds.

    It is raised between two steps of the interpreter: a compiled function that runs is left first.

    Parameters
    ----------
    seconds : float or None
        None means never.

    Yields
    ------
    None
        Nothing.
    """
    if seconds is None:
        yield
        return
    lock, over = threading.Lock(), threading.Event()
    thread = ctypes.c_ulong(threading.get_ident())

    def strike() -> None:
        with lock:
            if not over.is_set():
                ctypes.pythonapi.PyThreadState_SetAsyncExc(thread, ctypes.py_object(TimeIsUp))

    timer = threading.Timer(seconds, strike)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        with lock:
            over.set()
        timer.cancel()
        # One that is raised but has not arrived arrives here, and does not hit what follows. To
        # take it back would leave the interpreter waiting for it: profilers would hang.
        time.sleep(0.0)


def attempt(run: Callable[[Any], Any], task: Any, time_limit: float | None = None) -> Outcome:
    """Do one task, with one thread of linear algebra, and tell what became of it.

    What it does is logged: that it has begun, that it failed or that its time was up.

    Parameters
    ----------
    run : callable
        Does the task.
    task : object
        Its argument; as text, it names the task in the log.
    time_limit : float or None, default=None
        Seconds that it may take.

    Returns
    -------
    Outcome
        Never raises: a task that exits or interrupts has failed. Whoever stops the experiment does
        so in the process that started the workers.
    """
    begin = time.perf_counter()
    use_one_thread()
    log.info("%s: begun", task)
    try:
        # n workers use n cores; and of tiny nodes linear algebra is slower with more threads.
        with threadpool_limits(limits=1), deadline(time_limit):
            return Outcome(task, DONE, run(task))
    except TimeIsUp:
        seconds = time.perf_counter() - begin
        error = f"stopped after {seconds:.1f} of {time_limit:g} s"
        log.warning("%s: timeout: %s", task, error)
        return Outcome(task, TIMEOUT, error=error)
    except BaseException:
        error = traceback.format_exc()
        log.error("%s: failed: %s", task, error.strip().splitlines()[-1])
        return Outcome(task, FAILED, error=error)


def _begin_worker(initializer: Initializer | None) -> None:
    """Prepare a process of ours: it ends when its parent is gone, however that ended."""
    # Ctrl-C reaches all processes of a terminal; the parent alone answers it, and ends the others.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = os.getppid()

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(_PARENT_CHECK)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
    if initializer is not None:
        initializer.function(*initializer.arguments)


@dataclass
class Workers(Generic[T]):
    """The executor that tasks are handed to, made again when one of its processes dies.

    Parameters
    ----------
    jobs : int, at least 1, default=1
        Number of processes.
    mp_context : multiprocessing context, optional
        How they start; by default the way of the platform.
    initializer : Initializer, optional
        What each process calls first.
    executor : Executor, optional
        One that is handed in takes the place of processes of our own, and is not shut down.
    """

    jobs: int = 1
    mp_context: Any = None
    initializer: Initializer | None = None
    executor: Executor | None = None

    def __post_init__(self) -> None:
        if self.jobs < 1:
            raise ValueError(f"jobs={self.jobs!r}: allowed are integers of at least 1.")
        self._pool: Executor | None = self.executor

    @property
    def width(self) -> int:
        """How many tasks are handed over at a time: two for each worker, so that none waits."""
        n_workers = self.jobs
        if self.executor is not None:
            n_workers = getattr(self.executor, "_max_workers", None) or 64
        return 2 * n_workers

    def submit(self, function: Callable[..., T], *arguments: Any) -> Future[T]:
        """Hand one call over."""
        if self._pool is None:
            self._pool = ProcessPoolExecutor(
                self.jobs,
                mp_context=self.mp_context or multiprocessing.get_context(),
                initializer=_begin_worker,
                initargs=(self.initializer,),
            )
        return self._pool.submit(function, *arguments)

    def renew(self) -> bool:
        """Forget a broken pool; tell whether there will be another one."""
        if self.executor is not None:
            return False
        self.close()
        return True

    def close(self, kill: bool = False) -> None:
        """Shut processes of our own down, at once if asked to."""
        if self.executor is None and self._pool is not None:
            processes = list((getattr(self._pool, "_processes", None) or {}).values())
            if kill:
                for process in processes:
                    with suppress(ProcessLookupError):
                        process.kill()
            self._pool.shutdown(wait=True, cancel_futures=True)
            self._pool = None


def run_tasks(
    run: Callable[[Any], Any],
    tasks: Iterable[Any],
    workers: Workers[Outcome],
    time_limit: float | None = None,
) -> Generator[Outcome, None, None]:
    """Do tasks side by side and yield what becomes of each, as they finish.

    When a process dies, all tasks that were handed over go with it. Which one it was is not known;
    so each of them is tried once more, alone. One that brings its process down again is `CRASHED`.

    Parameters
    ----------
    run : callable
        Does one task; can be pickled, as the tasks and what it returns can.
    tasks : iterable
        The tasks, begun in their order, each as late as possible.
    workers : Workers
        Where they run; closed at the end.
    time_limit : float or None, default=None
        Seconds that each may take.

    Yields
    ------
    Outcome
        One for each task.
    """
    fresh = iter(tasks)
    suspects: deque[Any] = deque()
    running: dict[Future[Outcome], Any] = {}
    finished = False
    try:
        while True:
            if suspects and not running:
                task = suspects.popleft()
                yield _run_alone(run, task, workers, time_limit)
                continue
            while not suspects and len(running) < workers.width:
                try:
                    task = next(fresh)
                except StopIteration:
                    break
                try:
                    running[workers.submit(attempt, run, task, time_limit)] = task
                except BrokenExecutor:
                    if not workers.renew():
                        raise
                    suspects.append(task)
            if not running:
                break
            done, _ = wait(running, return_when=FIRST_COMPLETED)
            for future in done:
                task = running.pop(future)
                try:
                    outcome = _outcome(future, task)
                except BrokenExecutor:
                    if not workers.renew():
                        raise
                    suspects.append(task)
                    break
                yield outcome
            if suspects:
                for future, task in running.items():
                    if future.done() and future.exception() is None:
                        yield future.result()
                    else:
                        suspects.append(task)
                running.clear()
        finished = True
    finally:
        workers.close(kill=not finished)


def _run_alone(
    run: Callable[[Any], Any], task: Any, workers: Workers[Outcome], time_limit: float | None
) -> Outcome:
    """Try a task that may have brought a process down, with no other beside it."""
    try:
        return _outcome(workers.submit(attempt, run, task, time_limit), task)
    except BrokenExecutor:
        workers.renew()
        return Outcome(task, CRASHED, error="the process that ran it died, twice")


def _outcome(future: Future[Outcome], task: Any) -> Outcome:
    """Return what became of a task, also where its result cannot be sent."""
    try:
        return future.result()
    except BrokenExecutor:
        raise
    except Exception as error:
        return Outcome(task, CRASHED, error=repr(error))
