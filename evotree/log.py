"""What a run tells: one log, whichever process works, and a bar of progress with its seconds.

All that is told goes to ``logging.getLogger("evotree")``, and from there to whoever has added a
handler. A process that does a task for another one keeps the records of the task, and sends them
with its result.
"""

import logging
import os
import platform
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from logging.handlers import QueueHandler
from pathlib import Path
from queue import SimpleQueue
from typing import Any, NamedTuple

from tqdm.auto import tqdm

from evotree._jit import compile_seconds
from evotree.words import printable

logger = logging.getLogger  # of each module
LOGGER = logger("evotree")
# Of the tasks of another process that this one does, perhaps some at once.
_records: SimpleQueue[logging.LogRecord] = SimpleQueue()
_keeper = QueueHandler(_records)


class _OneLine(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return printable(super().format(record))


@contextmanager
def log_to_file(path: str | Path, level: int = logging.INFO) -> Iterator[None]:
    """Append the package's log to a file while a block runs, a line a record.

    Also written are the warnings of the block, and what processes log that do tasks for it, when a
    task is done.

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
    level_before = LOGGER.level
    LOGGER.addHandler(file)
    LOGGER.setLevel(min(level, LOGGER.getEffectiveLevel()))
    try:
        with _logged_warnings():
            yield
    finally:
        LOGGER.setLevel(level_before)
        LOGGER.removeHandler(file)
        with suppress(OSError):  # of a full disk, which logging has told of
            file.close()


@contextmanager
def _logged_warnings() -> Iterator[None]:
    """Log the warnings of a block, and show them as before."""
    with warnings.catch_warnings():
        show = warnings.showwarning

        def log_and_show(message: Any, category: Any, *place: Any) -> None:
            LOGGER.warning("%s: %s", category.__name__, message)
            show(message, category, *place)

        if getattr(show, "__module__", "") != __name__:  # of a block around this one
            warnings.showwarning = log_and_show  # type: ignore[assignment]
        yield


def log_begin(dataset: Any, kind: str = "tree") -> None:
    """Log that something is fitted to a data set."""
    shown = "fit of a %s begun: %d rows, %d columns, %d classes"
    n_columns = len(dataset.column_names)
    LOGGER.info(shown, kind, dataset.n_rows, n_columns, dataset.n_classes)


def log_end(found: Any, seconds: float) -> None:
    """Log what a fit has found."""
    LOGGER.info("fit ended after %.2f s: %r", seconds, found)


# ---- tasks of other processes --------------------------------------------------------------------


class Answer(NamedTuple):
    """What a task returns, and what it has logged in another process."""

    result: Any
    records: list[logging.LogRecord]


def telling(function: Callable[[Any], Any]) -> Callable[[Any], Answer]:
    """Return a function for any process, whose answers are for `told`."""
    return partial(_tell, function, _process(), LOGGER.getEffectiveLevel())


def _process() -> tuple[str, int]:
    return platform.node(), os.getpid()


def _tell(
    function: Callable[[Any], Any], home: tuple[str, int], level: int, task: Any
) -> Answer:
    if _process() == home:
        return Answer(function(task), [])
    # A fork has the handlers of its parent, which gets the records with the answer.
    LOGGER.propagate = False
    LOGGER.handlers = [_keeper]
    LOGGER.setLevel(level)
    result = function(task)
    return Answer(result, [_records.get() for _ in range(_records.qsize())])


def told(answer: Answer) -> Any:
    """Return the result of an answer, and log here what was logged there."""
    for record in answer.records:
        logger(record.name).handle(record)
    return answer.result


# ---- progress ------------------------------------------------------------------------------------

_SECONDS_BEFORE_A_BAR = 2.0


def is_shown(verbose: int | str) -> bool:
    """Return whether progress is shown; ``"auto"`` where somebody may look."""
    if not isinstance(verbose, str):
        return bool(verbose)
    stream = sys.stderr  # of a terminal; else there may be a notebook
    return "ipykernel" in sys.modules or (stream is not None and stream.isatty())


class Progress:
    """A bar for the present phase of a search, and the seconds of all phases."""

    def __init__(self, verbose: int | str) -> None:
        self.seconds: dict[str, float] = {"compiling": 0.0}
        self._delay = _SECONDS_BEFORE_A_BAR if isinstance(verbose, str) else 0.0
        self._is_off = not is_shown(verbose)
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
        self._bar = tqdm(
            desc=name,
            total=total,
            unit=unit,
            delay=max(0.0, self._delay - (begin - self._begin)),
            leave=stays,
            bar_format=counted if total is None else None,
            disable=self._is_off,
        )
        self._inside = 0.0
        try:
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
