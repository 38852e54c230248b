"""The decorators behind every compiled function of the package."""

import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numba import njit, set_num_threads, types
from numba.core.event import Event, Listener, register

# No C callback is ever made of a kernel; its wrapper would only take time to compile.
_OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True}
_ANY_ORDER = {"reassoc", "contract"}  # of additions


def _plain(argument: Any) -> types.Type:
    """Return the type to compile for: no constants, no enumerations, no small signed integers."""
    argument = types.unliteral(argument)
    if isinstance(argument, types.IntEnumMember):
        argument = argument.dtype
    is_signed = isinstance(argument, types.Integer) and getattr(argument, "signed", False)
    return types.int64 if is_signed else argument


def _read_only_type(argument: types.Type) -> types.Type:
    """Return the type of an array that is not written; writable ones convert to it."""
    return argument.copy(readonly=True) if isinstance(argument, types.Array) else argument


_is_cached = True


def is_cached() -> bool:
    """Return whether compiled functions are kept on disk."""
    return _is_cached


def _warn_uncached(reason: str) -> None:
    """Say once that nothing is kept on disk."""
    global _is_cached
    if _is_cached:
        warnings.warn(
            f"every process compiles again what it needs, for about a minute ({reason}): let the "
            "environment variable NUMBA_CACHE_DIR name a folder that can be written.",
            RuntimeWarning,
            stacklevel=2,
        )
    _is_cached = False


def _compile(function: Callable[..., Any], writes: bool = True, **options: Any) -> Any:
    """Compile `function` so that calls from other kernels share one specialization."""
    # Of its own accord numba compiles a function again for each mixture of constants and variables,
    # of narrow and wide integers, and of read-only and writable arrays that it is called with.

    def compiled_type(argument: types.Type) -> types.Type:
        return _plain(argument) if writes else _read_only_type(_plain(argument))

    try:
        dispatcher = njit(cache=True, **_OPTIONS | options)(function)
    except RuntimeError as error:  # no folder for the cache can be written
        _warn_uncached(str(error))
        dispatcher = njit(**_OPTIONS | options)(function)
    if not hasattr(dispatcher, "get_call_template"):  # NUMBA_DISABLE_JIT
        return dispatcher
    get_call_template = dispatcher.get_call_template

    def get_common_call_template(args: tuple[types.Type, ...], kws: dict[str, types.Type]) -> Any:
        return get_call_template(
            tuple(map(compiled_type, args)), {name: compiled_type(kws[name]) for name in kws}
        )

    dispatcher.get_call_template = get_common_call_template
    return dispatcher


def kernel(function: Callable[..., Any]) -> Any:
    """Compile `function`, cached on disk, without the GIL, in strict floating-point arithmetic."""
    return _compile(function)


def inner_kernel(function: Callable[..., Any]) -> Any:
    """Compile what only compiled functions call, as `kernel` does, in two thirds of the time."""
    return _compile(function, no_cpython_wrapper=True)


def part_kernel(function: Callable[..., Any]) -> Any:
    """Make a function a part of the one kernel that calls it, compiled together with that."""
    # Of long parts with many arguments numba's handling of the call takes more time than their own.
    return njit(**_OPTIONS | {"inline": "always"})(function)


def dot_kernel(function: Callable[..., Any]) -> Any:
    """Compile a scalar product: as `kernel`, but its additions may be done in another order."""
    # With that licence the loop uses vector instructions and takes a third of the time. NaN and
    # infinity still behave.
    return _compile(function, writes=False, fastmath=_ANY_ORDER)


def dots_kernel(function: Callable[..., Any]) -> Any:
    """Compile many scalar products that are written into an array, as `dot_kernel` compiles one."""
    return _compile(function, fastmath=_ANY_ORDER)


def use_one_thread() -> None:
    """Keep parallel kernels of this thread, if there are any, to one thread."""
    set_num_threads(1)


class _CompilerClock(Listener):
    """How long numba's compiler has been at work; one thread at a time is let in."""

    def __init__(self) -> None:
        self.listeners: list[Callable[[bool], object]] = []
        self._depth = 0
        # Seconds so far, and when the present work began: one object, as other threads read it.
        self._state: tuple[float, float | None] = (0.0, None)

    def on_start(self, event: Event) -> None:
        # A function that is compiled may compile the functions that it calls.
        if self._depth == 0:
            self._state = self.seconds(), time.perf_counter()
            for listener in self.listeners:
                listener(True)
        self._depth += 1

    def on_end(self, event: Event) -> None:
        self._depth -= 1
        if self._depth == 0:
            self._state = self.seconds(), None
            for listener in self.listeners:
                listener(False)

    def seconds(self) -> float:
        """Return the seconds so far, those of the present work included."""
        done, since = self._state
        return done if since is None else done + time.perf_counter() - since


_clock = _CompilerClock()
register("numba:compiler_lock", _clock)


def compile_seconds() -> float:
    """Return for how long kernels have been compiled, or read from the cache, in this process."""
    return _clock.seconds()


@contextmanager
def told_of_compiling(listener: Callable[[bool], object]) -> Iterator[None]:
    """Call a function with True when the compiler begins, and with False when it ends."""
    _clock.listeners.append(listener)
    try:
        yield
    finally:
        _clock.listeners.remove(listener)


def read_only(array: np.ndarray) -> np.ndarray:
    """Return a view that cannot be written: kernels are compiled for such rows alone."""
    view = array.view()
    view.flags.writeable = False
    return view
