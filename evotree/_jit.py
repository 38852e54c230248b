"""The decorators behind every compiled function of the package."""

import time
from collections.abc import Callable
from typing import Any

from numba import njit, set_num_threads, types
from numba.core.event import Event, Listener, register

# No C callback is ever made of a kernel; its wrapper would only take time to compile.
_OPTIONS: dict[str, Any] = {
    "nogil": True,
    "cache": True,
    "error_model": "numpy",
    "no_cfunc_wrapper": True,
}


def _plain(argument: types.Type) -> types.Type:
    """Return the type to compile for: no constants, no enumerations, no small signed integers."""
    argument = types.unliteral(argument)
    if isinstance(argument, types.IntEnumMember):
        argument = argument.dtype
    if isinstance(argument, types.Integer) and argument.signed:
        return types.int64
    return argument


def _compile(function: Callable[..., Any], **options: Any) -> Any:
    """Compile `function` so that calls from other kernels share one specialization.

    Of its own accord numba compiles a function again for each mixture of constants and variables,
    and of narrow and wide integers, that compiled functions call it with.
    """
    dispatcher = njit(**_OPTIONS | options)(function)
    if not hasattr(dispatcher, "get_call_template"):  # NUMBA_DISABLE_JIT
        return dispatcher
    get_call_template = dispatcher.get_call_template

    def call_template_of_plain_types(
        args: tuple[types.Type, ...], kws: dict[str, types.Type]
    ) -> Any:
        return get_call_template(
            tuple(map(_plain, args)), {name: _plain(argument) for name, argument in kws.items()}
        )

    dispatcher.get_call_template = call_template_of_plain_types
    return dispatcher


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
    return _compile(function)


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
    return _compile(function, no_cpython_wrapper=True)


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
    return _compile(function, fastmath={"reassoc", "contract"})


def use_one_thread() -> None:
    """Keep parallel kernels of this thread, if there are any, to one thread."""
    set_num_threads(1)


class _CompileClock(Listener):
    """Sums the seconds that numba spends on compiling, of all threads together."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self._depth = 0
        self._begin = 0.0

    def on_start(self, event: Event) -> None:
        # A function that is compiled may compile the functions that it calls.
        if self._depth == 0:
            self._begin = time.perf_counter()
        self._depth += 1

    def on_end(self, event: Event) -> None:
        self._depth -= 1
        if self._depth == 0:
            self.seconds += time.perf_counter() - self._begin


_clock = _CompileClock()
register("numba:compile", _clock)


def compile_seconds() -> float:
    """Return how many seconds this process has spent on compiling kernels."""
    return _clock.seconds
