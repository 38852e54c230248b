"""Log records in a file, one line each."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def log_to_file(
    path: str | Path, level: int | str = logging.INFO, logger: logging.Logger | None = None
) -> Iterator[logging.Handler]:
    """Write log records to a file while a block runs, one line each.

    A line is time, level, number of the process and message. Line breaks inside a message or its
    traceback are written as a backslash and an n. Where the logger's own level is higher than
    `level` it is lowered for the block, so that other handlers of the logger may see more too.
    Enter it before `collect_logs`, which passes the levels on to the workers.

    Parameters
    ----------
    path : str or Path
        The file; lines are appended if it exists.
    level : int or str, default=logging.INFO
        The lowest level that is written, as a number or as a name such as "DEBUG".
    logger : Logger, optional
        The logger whose records, and those of its children, are written; by default the root.

    Yields
    ------
    Handler
        The handler that writes, for filters or another format.

    Raises
    ------
    ValueError
        If `level` is no name of a level.
    """
    names = logging.getLevelNamesMapping()
    lowest = level if isinstance(level, int) else names.get(level)
    if lowest is None:
        raise ValueError(f"level must be a number or one of {', '.join(names)}; got {level!r}")
    logger = logging.getLogger() if logger is None else logger
    handler = logging.FileHandler(path, encoding="utf-8", errors="backslashreplace")
    handler.setLevel(lowest)
    handler.setFormatter(_OneLine("%(asctime)s %(levelname)s %(process)d %(message)s"))
    before = logger.level
    if logger.getEffectiveLevel() > lowest:
        logger.setLevel(lowest)
    logger.addHandler(handler)
    try:
        yield handler
    finally:
        logger.removeHandler(handler)
        logger.setLevel(before)
        handler.close()


class _OneLine(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return "\\n".join(super().format(record).splitlines())
