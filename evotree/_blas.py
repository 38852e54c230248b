"""Linear algebra on one thread."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from threading import Lock
from typing import Any

from threadpoolctl import ThreadpoolController

_lock = Lock()
_found: list[Any] = []  # the limits that each holder found
_libraries = cache(ThreadpoolController)  # it takes milliseconds to look them up


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Keep BLAS to one thread in this process until the last of all holders leaves."""
    # Whoever leaves puts back what the latest found: only the last of all, what the first found.
    with _lock:
        _found.append(_libraries().limit(limits=1, user_api="blas"))
    try:
        yield
    finally:
        with _lock:
            _found.pop().restore_original_limits()
