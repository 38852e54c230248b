"""Files of text as streams of bytes, unpacked under a limit.

A small file may unpack to more than any memory holds; what is too large is not read to its end.
"""

from __future__ import annotations

import bz2
import gzip
import io
import math
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

__all__ = ["memory", "open_unpacked"]

_SHARE = 8
"""Text may take this part of the memory: the table that is made of it takes several times that."""


def memory() -> float:
    """Return the bytes of this machine's memory; infinity where the system does not say."""
    try:
        return float(os.sysconf("SC_PHYS_PAGES")) * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return math.inf


class _Limited(io.RawIOBase):
    """A stream of text that ends with an error where it is too long or no text."""

    def __init__(self, file: BinaryIO, path: Path, limit: float) -> None:
        self._file, self._path, self._limit = file, path, limit
        self._n_read = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        chunk = self._file.read(len(buffer))
        self._n_read += len(chunk)
        if self._n_read > self._limit:
            raise MemoryError(
                f"{self._path} is too large: unpacked it has more than {self._limit / 2**30:.3g} "
                f"GiB, which is 1/{_SHARE} of this machine's memory"
            )
        if b"\0" in chunk:
            raise ValueError(f"{self._path} is not text in UTF-8: it holds a byte that is 0")
        buffer[: len(chunk)] = chunk
        return len(chunk)


@contextmanager
def open_unpacked(path: Path) -> Iterator[BinaryIO]:
    """Open a file of text, unpacking it as its name says.

    Parameters
    ----------
    path : Path
        Compressed by gzip where the name ends in ``.gz``, by bzip2 where it ends in ``.bz2``.

    Yields
    ------
    BinaryIO
        The text as bytes. Reading raises `MemoryError` where an eighth of the machine's memory
        would not hold it, `ValueError` at a byte that is 0, and what `gzip` and `bz2` raise.
    """
    unpackers: dict[str, Callable[..., Any]] = {".gz": gzip.open, ".bz2": bz2.open}
    with (
        unpackers.get(path.suffix, Path.open)(path, "rb") as file,
        io.BufferedReader(_Limited(file, path, memory() / _SHARE), 2**20) as text,
    ):
        yield text
