"""Files written whole or not at all."""

import contextlib
import os
import re
import secrets
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import BinaryIO

fcntl: ModuleType | None
try:
    import fcntl
except ImportError:  # not Unix; left-overs stay there
    fcntl = None

PathLike = str | os.PathLike[str]


def check_writable(path: PathLike) -> Path:
    """Check that a file can be written, before the work whose result it shall take."""
    if not os.fspath(path):
        raise FileNotFoundError("cannot write '': the path is empty")
    real = Path(os.path.realpath(path))
    if real.is_dir():
        raise IsADirectoryError(f"cannot write {path}: it is a folder")
    if real.exists() and not real.is_file():
        raise OSError(f"cannot write {path}: it is not a regular file")
    if real.exists() and not os.access(real, os.W_OK):
        raise PermissionError(f"cannot write {path}: the file is write-protected")
    if not real.parent.is_dir():
        raise FileNotFoundError(
            f"cannot write {path}: there is no folder {real.parent}"
        )
    try:
        probe, file = _open_beside(real)
        if os.name == "nt":  # where no open file can be removed
            file.close()
        # Once it is closed, and so unlocked, another writer takes it for a left-over.
        with file:
            probe.unlink()
    except OSError as error:
        raise type(error)(f"cannot write {path}: {error.strerror or error}") from error
    return real


def write_whole(path: PathLike, write: Callable[[BinaryIO], object]) -> None:
    """Write a file beside its place, then move it there: a crash leaves the old one or the new one.

    What a process that was killed has left beside it is removed by the next that writes the file.
    Threads and processes may write it at once: the last one's stays.
    """
    real = check_writable(path)
    temporary = None
    try:
        temporary, file = _open_beside(real)
        with file:
            write(file)
            file.flush()
            os.fsync(file.fileno())
            os.replace(temporary, real)
    except BaseException as error:
        if temporary is not None:
            with contextlib.suppress(OSError):
                temporary.unlink()
        if isinstance(error, OSError):
            raise type(error)(
                f"cannot write {path}: {error.strerror or error}"
            ) from error
        raise
    leftover = re.compile(rf"{re.escape(f'.{real.name[:64]}.')}[0-9a-f]{{12}}\.tmp")
    for left in real.parent.iterdir():
        if leftover.fullmatch(left.name):
            with contextlib.suppress(OSError), left.open("rb+") as file:
                if _lock(file, wait=False):
                    left.unlink()


def _open_beside(real: Path) -> tuple[Path, BinaryIO]:
    """Open a new file in the folder of another, locked as long as it is open."""
    while True:
        temporary = real.with_name(f".{real.name[:64]}.{secrets.token_hex(6)}.tmp")
        file = temporary.open("xb")
        # Another process may have taken it for a left-over before it was locked.
        if _lock(file, wait=True) and temporary.exists():
            return temporary, file
        file.close()


def _lock(file: BinaryIO, wait: bool) -> bool:
    """Lock an open file against other openings of it; return whether it is locked."""
    if fcntl is None:
        return wait
    try:
        fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except OSError:
        return wait  # held by another, or a file system without locks
    return True
