"""The log of an experiment: one file, a line a record, of this process and of its workers.

Forked workers send their records through multiprocessing-logging, workers that are started again
through the queue of the standard library. Records of executors that are handed in arrive where
their workers are threads of this process; processes of others keep their own logs.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from logging.handlers import QueueHandler, QueueListener
from multiprocessing.context import BaseContext
from pathlib import Path
from typing import Any

from multiprocessing_logging import MultiProcessingHandler

from evotree.experiments.runner import Initializer

LOG_FILE = "experiment.log"
LOGGER = "evotree"


@contextmanager
def log_to_file(path: Path, mp_context: BaseContext) -> Iterator[Initializer | None]:
    """Write the package's log records to a file while a block runs, also those of workers.

    A line is time, level, number of the process and message. Line breaks inside a message or its
    traceback are written as a backslash and an n.

    Parameters
    ----------
    path : Path
        The file; lines are appended if it exists.
    mp_context : multiprocessing context
        How the workers are started.

    Yields
    ------
    Initializer or None
        What each worker calls first, if anything.
    """
    logger = logging.getLogger(LOGGER)
    before = logger.level
    if not logger.isEnabledFor(logging.INFO):
        logger.setLevel(logging.INFO)
    # A name of no encoding may stand in a message.
    handler = logging.FileHandler(path, encoding="utf-8", errors="backslashreplace")
    handler.setFormatter(_OneLine("%(asctime)s %(levelname)s %(process)d %(message)s"))
    try:
        with _collecting(logger, handler, mp_context) as initializer:
            yield initializer
    finally:
        logger.setLevel(before)
        handler.close()


@contextmanager
def _collecting(
    logger: logging.Logger, handler: logging.Handler, mp_context: BaseContext
) -> Iterator[Initializer | None]:
    """Let a handler have the records of a logger, those of workers too."""
    if mp_context.get_start_method() == "fork":
        wrapped = MultiProcessingHandler("experiment-log", sub_handler=handler)
        logger.addHandler(wrapped)
        try:
            yield None
        finally:
            logger.removeHandler(wrapped)
            wrapped.close()  # waits for the records that are on their way
        return
    queue: Any = mp_context.Queue()
    listener = QueueListener(queue, handler)
    logger.addHandler(handler)
    listener.start()
    try:
        yield Initializer(_send_records, (queue, logger.getEffectiveLevel()))
    finally:
        listener.stop()
        logger.removeHandler(handler)


def _send_records(queue: Any, level: int) -> None:
    """Send the records of this process to the one that reads the queue."""
    logger = logging.getLogger(LOGGER)
    logger.addHandler(QueueHandler(queue))
    logger.setLevel(level)


class _OneLine(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return "\\n".join(super().format(record).splitlines())
