"""What a run tells: one log, whichever process works, and a bar of progress with its seconds.

All that is told goes to ``logging.getLogger("evotree")``, and from there to whoever has added a
handler. Forked processes have the handlers of their parent; what they tell `log_to_file` comes to
it through a queue (multiprocessing-logging). Processes that are begun in another way, or on another
machine, keep the records of a task in a queue of their own, and send them with its result.
"""

import itertools
import logging
import multiprocessing
import os
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from logging.handlers import QueueHandler
from pathlib import Path
from queue import SimpleQueue
from typing import Any, NamedTuple

from multiprocessing_logging import MultiProcessingHandler
from tqdm.auto import tqdm

from evotree._jit import compile_seconds, is_cached, told_of_compiling
from evotree.words import printable

LOGGER = logging.getLogger("evotree")
_numbers = itertools.count()


class _OneLine(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return printable(super().format(record))


class _ForkedToo(MultiProcessingHandler):
    """Records of this process and of those that are forked from it.

    Its own records do not wait in the queue: a process that is killed while it writes there holds
    the lock of the queue for ever.
    """

    def __init__(self, sub_handler: logging.Handler, name: str | None = None) -> None:
        self.home = os.getpid()
        name = name or f"evotree-log-{self.home}-{next(_numbers)}"
        super().__init__(name, sub_handler)
        self.set_name(name)

    def emit(self, record: logging.LogRecord) -> None:
        """Write a record here, or send it to where it is written."""
        if os.getpid() == self.home:
            self.sub_handler.handle(record)
        else:
            super().emit(record)


@contextmanager
def log_to_file(path: str | Path, level: int = logging.INFO) -> Iterator[None]:
    """Append the package's log to a file while a block runs, a line a record.

    Also written are the warnings of the block, and what processes log that do tasks for it.

    Parameters
    ----------
    path : str or Path
        The file, which is made if it is not there.
    level : int, default=logging.INFO
        The least that is written; ``logging.DEBUG`` has all generations.
    """
    # A name of no encoding may stand in a message.
    file = logging.FileHandler(path, encoding="utf-8", errors="backslashreplace")
    file.setFormatter(_OneLine("%(asctime)s %(levelname)s %(process)d %(message)s"))
    file.setLevel(level)
    forks = multiprocessing.get_start_method(allow_none=True) in (None, "fork")
    LOGGER.addHandler(_ForkedToo(file) if forks else file)
    level_before = LOGGER.level
    LOGGER.setLevel(min(level, LOGGER.getEffectiveLevel()))
    try:
        with _logged_warnings():
            yield
    finally:
        LOGGER.setLevel(level_before)
        # All queues end in the file.
        handlers: list[logging.Handler] = [*LOGGER.handlers, *_earlier]
        for handler in handlers:
            if getattr(handler, "sub_handler", handler) is file:
                LOGGER.removeHandler(handler)
                handler.close()
        _earlier[:] = [
            handler for handler in _earlier if handler.sub_handler is not file
        ]


@contextmanager
def _logged_warnings() -> Iterator[None]:
    """Log the warnings of a block, and show them as before."""
    with warnings.catch_warnings():
        show = warnings.showwarning

        def log_and_show(message: Any, category: Any, *place: Any) -> None:
            LOGGER.warning("%s: %s", category.__name__, message)
            show(message, category, *place)

        warnings.showwarning = log_and_show  # type: ignore[assignment]
        yield


# With queues of processes that were forked before the last renewal.
_earlier: list[_ForkedToo] = []


def renew_queues() -> None:
    """Give processes that are forked from now on a new queue; those of before keep theirs.

    A process that is killed while it writes to a queue leaves it locked for all others.
    """
    for handler in LOGGER.handlers[:]:
        if isinstance(handler, _ForkedToo):
            LOGGER.addHandler(_ForkedToo(handler.sub_handler, handler.name))
            LOGGER.removeHandler(handler)
            _earlier.append(handler)


def log_begin(dataset: Any, kind: str = "tree") -> None:
    """Log that something is fitted to a data set."""
    shown = "fit of a %s begun: %d rows, %d columns, %d classes"
    n_columns = len(dataset.column_names)
    LOGGER.info(shown, kind, dataset.n_rows, n_columns, dataset.n_classes)


def log_end(found: Any, seconds: float) -> None:
    """Log what a fit has found."""
    LOGGER.info("fit ended after %.2f s: %r", seconds, found)


# ---- processes that are no forks of the one that logs -------------------------------------------


class Answer(NamedTuple):
    """What a task returns, and what it has logged where nobody listened."""

    result: Any
    records: list[logging.LogRecord]


def telling(function: Callable[[Any], Any]) -> Callable[[Any], Answer]:
    """Return a function for any process, whose answers are for `told`."""
    return partial(_tell, function, _listeners(), LOGGER.getEffectiveLevel())


def _tell(
    function: Callable[[Any], Any], listeners: list[str], level: int, task: Any
) -> Answer:
    if _listeners() == listeners:  # this process is the one that logs, or its fork
        return Answer(function(task), [])
    for handler in LOGGER.handlers[:]:  # of a log that has ended
        if isinstance(handler, _ForkedToo):
            LOGGER.removeHandler(handler)
    records: SimpleQueue[logging.LogRecord] = SimpleQueue()
    keeper = QueueHandler(records)
    LOGGER.setLevel(level)
    LOGGER.addHandler(keeper)
    try:
        result = function(task)
    finally:
        LOGGER.removeHandler(keeper)
    return Answer(result, [records.get() for _ in range(records.qsize())])


def _listeners() -> list[str]:
    """Return the names of the handlers that get the package's records."""
    handlers = [*LOGGER.handlers, *logging.getLogger().handlers]
    return [str(h.name) for h in handlers if not isinstance(h, logging.NullHandler)]


def told(answer: Answer) -> Any:
    """Return the result of an answer, and log here what was logged there."""
    for record in answer.records:
        logging.getLogger(record.name).handle(record)
    return answer.result


# ---- progress ------------------------------------------------------------------------------------

_SECONDS_BEFORE_A_BAR = 2.0


def is_watched() -> bool:
    """Return whether somebody may be looking: on a terminal, or in a notebook."""
    stream = sys.stderr
    return "ipykernel" in sys.modules or (stream is not None and stream.isatty())


class Progress:
    """A bar for the present phase of a search, and the seconds of all phases."""

    def __init__(self, verbose: int | str) -> None:
        self.seconds: dict[str, float] = {"compiling": 0.0}
        is_auto = isinstance(verbose, str)
        self._delay = _SECONDS_BEFORE_A_BAR if is_auto else 0.0
        self._is_off = not is_watched() if is_auto else not verbose
        self._begin = time.perf_counter()
        self._bar: tqdm | None = None
        self._inside = 0.0  # seconds of the phases inside the present one

    @contextmanager
    def phase(
        self, name: str, total: int | None = None, unit: str = "", stays: bool = True
    ) -> Iterator[None]:
        """Show a phase while it lasts, and count its seconds.

        Where there is no `total`, what was done is counted if it has a `unit`.
        """
        begin = time.perf_counter()
        compiled = self.seconds["compiling"] - compile_seconds()
        outer = self._bar
        before = self._inside
        counted = "{desc}: {unit} {n_fmt}, {elapsed}" if unit else "{desc}: {elapsed}"
        shape = counted if total is None else None
        self._bar = tqdm(
            desc=name,
            total=total,
            unit=unit,
            delay=max(0.0, self._delay - (begin - self._begin)),
            leave=stays,
            bar_format=shape,
            disable=self._is_off,
        )
        self._inside = 0.0
        try:
            with told_of_compiling(partial(self._tell_compiling, shape)):
                yield
        finally:
            self._bar.close()
            took = time.perf_counter() - begin
            # Phases inside this one have counted what they compiled.
            compiling = compiled + compile_seconds() - self.seconds["compiling"]
            compiling = min(max(0.0, compiling), max(0.0, took - self._inside))
            self.seconds["compiling"] += compiling
            alone = max(0.0, took - self._inside - compiling)
            self.seconds[name] = self.seconds.get(name, 0.0) + alone
            self._bar, self._inside = outer, before + took

    def step(self) -> None:
        """Count one more step of the phase."""
        if self._bar is not None:
            self._bar.update()

    def show(self, run: Any) -> None:
        """Show the generation, and the quality and size of the best tree; a callback."""
        if self._bar is not None:
            best = run.best
            shown = {
                "quality": f"{best.quality:.4f}",
                "nodes": len(best),
                "terms": best.n_terms,
            }
            self._bar.set_postfix(shown, refresh=False)
            self._bar.update(run.generation - self._bar.n)

    def _tell_compiling(self, shape: str | None, compiles: bool) -> None:
        """Say that the compiler is at work: nothing else may happen for many seconds."""
        bar = self._bar
        if (
            bar is None
            or self._is_off
            or time.perf_counter() - self._begin < self._delay
        ):
            return
        # To read the cache is not told apart: that is over before this text is read.
        often = "once" if is_cached() else "in every process"
        said = f"compiling kernels, {often}, about 15 seconds: {{elapsed}}"
        bar.bar_format = said if compiles else shape
        if compiles:
            bar.refresh()
