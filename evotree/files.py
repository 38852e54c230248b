"""Files written whole or not at all."""

import contextlib
import os
import secrets
from collections.abc import Callable
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import BinaryIO

PathLike = str | os.PathLike[str]


def check_writable(path: PathLike) -> Path:
    """Check that a file can be written, before the work whose result it shall take."""
    real = Path(os.path.realpath(path))
    if real.exists() and not real.is_file():
        raise OSError(f"cannot write {path}: it is a folder, or no regular file")
    if real.exists() and not os.access(real, os.W_OK):
        raise PermissionError(f"cannot write {path}: the file is write-protected")
    try:
        with NamedTemporaryFile(dir=real.parent, prefix=_prefix(real)):
            pass
    except OSError as error:
        raise type(error)(f"cannot write {path}: {error.strerror or error}") from error
    return real


def write_whole(path: PathLike, write: Callable[[BinaryIO], object]) -> None:
    """Write a file beside its place, then move it there: a crash leaves the old one or the new one.

    Threads and processes may write it at once: the last one's stays.
    """
    real = check_writable(path)
    temporary = real.with_name(f"{_prefix(real)}{secrets.token_hex(6)}.tmp")
    try:
        with temporary.open("xb") as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, real)
    except BaseException as error:
        with contextlib.suppress(OSError):
            temporary.unlink()
        if isinstance(error, OSError):
            raise type(error)(
                f"cannot write {path}: {error.strerror or error}"
            ) from error
        raise


def _prefix(real: Path) -> str:
    return f".{real.name[:64]}."
