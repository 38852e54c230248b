"""Files written whole or not at all."""

from __future__ import annotations

import contextlib
import glob
import os
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

PathLike = str | os.PathLike[str]


def check_writable(path: PathLike) -> Path:
    """Check that a file can be written, before the work whose result it shall take.

    Parameters
    ----------
    path : path-like
        The file; it is not touched.

    Returns
    -------
    Path
        The file itself, where `path` is a link to it.

    Raises
    ------
    OSError
        Naming the path and why it cannot be written.
    """
    real = Path(os.path.realpath(path))
    if real.is_dir():
        raise IsADirectoryError(f"cannot write {path}: it is a folder")
    if real.exists() and not real.is_file():
        raise OSError(f"cannot write {path}: it is not a regular file")
    if real.exists() and not os.access(real, os.W_OK):
        raise PermissionError(f"cannot write {path}: the file is write-protected")
    if not real.parent.is_dir():
        raise FileNotFoundError(f"cannot write {path}: there is no folder {real.parent}")
    probe = _beside(real)
    try:
        probe.touch(exist_ok=False)
        probe.unlink()
    except OSError as error:
        raise type(error)(f"cannot write {path}: {error.strerror or error}") from error
    return real


def write_whole(path: PathLike, write: Callable[[BinaryIO], object]) -> None:
    """Write a file beside its place, then move it there.

    A crash leaves either the old file or the new one, never half of it. What a process that was
    killed has left beside it is removed by the next that writes the file.

    Parameters
    ----------
    path : path-like
        The file; replaced if it is there.
    write : callable
        Writes the content to the binary file that it is given.

    Raises
    ------
    OSError
        Naming the path and why it cannot be written.
    """
    real = check_writable(path)
    temporary = _beside(real)
    try:
        with temporary.open("xb") as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, real)
    except OSError as error:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise type(error)(f"cannot write {path}: {error.strerror or error}") from error
    for left in real.parent.glob(f"{glob.escape(_stem(real))}.*.tmp"):
        if not _is_running(left.suffixes[-2][1:]):
            with contextlib.suppress(OSError):
                left.unlink()


def _beside(path: Path) -> Path:
    """Return a name in the folder of a file that no other process uses."""
    return path.with_name(f"{_stem(path)}.{os.getpid()}.tmp")


def _stem(path: Path) -> str:
    """Return what the names of all processes beside a file begin with."""
    return f".{path.name[:64]}"


def _is_running(number: str) -> bool:
    """Return whether there may be a process of a number."""
    if not number.isdecimal() or not hasattr(os, "fork"):
        return True
    try:
        os.kill(int(number), 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:  # another user's
        return True
    return True
