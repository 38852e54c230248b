"""The decorators behind every compiled function of the package."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from numba import njit, set_num_threads
from numba.core.event import Event, Listener, register

# No C callback is ever made of a kernel; its wrapper would only take time to compile.
_OPTIONS: dict[str, Any] = {
    "nogil": True,
    "cache": True,
    "error_model": "numpy",
    "no_cfunc_wrapper": True,
}


def kernel(function: Callable[..., Any]) -> Any:
    """Compile `function` in numba's nopython mode, cached on disk, without the GIL.

    Floating-point semantics stay strict (no ``fastmath``), so that NaN behaves.

    Parameters
    ----------
    function : callable
        A plain function over arrays and numbers.

    Returns
    -------
    callable
        The compiled function; its plain form stays reachable as ``.py_func``.
    """
    return njit(**_OPTIONS)(function)


def inner_kernel(function: Callable[..., Any]) -> Any:
    """Compile a part of kernels, as `kernel` does, that only compiled functions call.

    Without a way in from Python, a function of several arrays compiles in two thirds of the time.

    Parameters
    ----------
    function : callable
        A plain function over arrays and numbers.

    Returns
    -------
    callable
        The compiled function.
    """
    return njit(**_OPTIONS | {"no_cpython_wrapper": True})(function)


def dot_kernel(function: Callable[..., Any]) -> Any:
    """Compile a scalar product: as `kernel`, but its additions may be done in another order.

    Without that licence the compiler must add one product after the other; with it the loop uses
    vector instructions and takes a third of the time. NaN and infinity still behave.

    Parameters
    ----------
    function : callable
        A plain function that returns one sum.

    Returns
    -------
    callable
        The compiled function; its plain form stays reachable as ``.py_func``.
    """
    return njit(**_OPTIONS | {"fastmath": {"reassoc", "contract"}})(function)


def use_one_thread() -> None:
    """Keep parallel kernels of this thread, if there are any, to one thread."""
    set_num_threads(1)


class _CompileClock(Listener):
    """Sums the seconds that numba spends on compiling, and tells others when it does."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.listeners: list[Callable[[bool], object]] = []
        self._depth = 0
        self._begin = 0.0

    def on_start(self, event: Event) -> None:
        # A function that is compiled may compile the functions that it calls.
        if self._depth == 0:
            self._begin = time.perf_counter()
            for listener in self.listeners:
                listener(True)
        self._depth += 1

    def on_end(self, event: Event) -> None:
        self._depth -= 1
        if self._depth == 0:
            self.seconds += time.perf_counter() - self._begin
            for listener in self.listeners:
                listener(False)


_clock = _CompileClock()
register("numba:compile", _clock)


def compile_seconds() -> float:
    """Return how many seconds this process has spent on compiling kernels."""
    return _clock.seconds


@contextmanager
def told_of_compiling(listener: Callable[[bool], object]) -> Iterator[None]:
    """Call a function with True when the compiler begins, and with False when it ends."""
    _clock.listeners.append(listener)
    try:
        yield
    finally:
        _clock.listeners.remove(listener)
