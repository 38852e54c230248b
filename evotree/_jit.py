"""The decorators behind every compiled function of the package."""

import ctypes
import gc
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np
from llvmlite import binding, ir
from numba import njit, set_num_threads, types
from numba.core import cgutils
from numba.core.event import Event, Listener, register

# No C callback is ever made of a kernel; its wrapper would only take time to compile.
_OPTIONS: dict[str, Any] = {
    "nogil": True,
    "error_model": "numpy",
    "no_cfunc_wrapper": True,
}
_ANY_ORDER = {"reassoc", "contract"}  # of additions


def _plain(argument: Any) -> types.Type:
    """Return the type to compile for: no constants, no enumerations, no small signed integers."""
    argument = types.unliteral(argument)
    if isinstance(argument, types.IntEnumMember):
        argument = argument.dtype
    is_signed = isinstance(argument, types.Integer) and getattr(
        argument, "signed", False
    )
    return types.int64 if is_signed else argument


def _read_only_type(argument: types.Type) -> types.Type:
    """Return the type of an array that is not written; writable ones convert to it."""
    return (
        argument.copy(readonly=True) if isinstance(argument, types.Array) else argument
    )


_is_cached = True


def is_cached() -> bool:
    """Return whether compiled functions are kept on disk."""
    return _is_cached


def _warn_uncached(reason: str) -> None:
    """Say once that nothing is kept on disk."""
    global _is_cached
    if _is_cached:
        warnings.warn(
            f"every process compiles again what it needs, for some 20 seconds ({reason}): let the "
            "environment variable NUMBA_CACHE_DIR name a folder that can be written.",
            RuntimeWarning,
            stacklevel=2,
        )
    _is_cached = False


_LONG = 300  # bytes of Python's code from which a kernel is called by its address


class _Linked(NamedTuple):
    """A compiled kernel that others call by its address."""

    # Of its own accord numba copies all that a function calls into its module and optimizes it
    # there once more, which took a third of the time of a first fit.

    module: str
    function: str
    signature: Any
    variable: str  # that holds the address

    @classmethod
    def of(cls, dispatcher: Any, compiled: Any) -> "_Linked":
        """Note where a compiled kernel is."""
        names = dispatcher.py_func.__module__, dispatcher.py_func.__qualname__
        signature, library = compiled.signature, compiled.library
        linked = cls(*names, signature, f"{'.'.join(names)}{signature}")
        address = (
            _known[linked.variable][1]
            if linked.variable in _known
            else ctypes.c_void_p()
        )
        address.value = library.get_pointer_to_function(compiled.fndesc.llvm_func_name)
        _known[linked.variable] = linked, address, library
        binding.add_symbol(linked.variable, ctypes.addressof(address))
        return linked

    def __call__(self) -> None:
        """Compile the kernel, or read it from the cache, before a caller is read from there."""
        getattr(import_module(self.module), self.function).compile(self.signature.args)
        if self.variable not in _known:
            raise LookupError(f"{self.function} returns something else now.")

    def definition(self, descriptor: Any) -> Callable[..., Any]:
        """Return how numba makes a call."""

        def call(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            declared = context.declare_function(ir.Module(), descriptor)
            variables, types = (
                builder.module.globals,
                (descriptor.restype, descriptor.argtypes),
            )
            variable = variables.get(self.variable) or ir.GlobalVariable(
                builder.module, declared.type, self.variable
            )
            status, value = context.call_conv.call_function(
                builder, builder.load(variable), *types, arguments
            )
            with cgutils.if_unlikely(builder, status.is_error):
                context.call_conv.return_status_propagate(builder, status)
            return value

        return call


_known: dict[
    str, tuple[_Linked, Any, Any]
] = {}  # by variable; those and code live as long


def _link(dispatcher: Any) -> None:
    """Let other kernels call a long one by its address, and note which of them it calls so."""
    add_overload, load = dispatcher.add_overload, dispatcher._cache.load_overload

    def load_current(*key: Any) -> Any:
        try:
            return load(*key)
        except (LookupError, AttributeError, ImportError):
            return (
                None  # what calls a kernel that is not there any more is compiled again
            )

    def add(compiled: Any) -> None:
        add_overload(compiled)
        variables = {
            one.name for one in compiled.library._final_module.global_variables
        }
        before_it = [_known[name][0] for name in sorted(variables & _known.keys())]
        compiled.reload_init.extend(
            one for one in before_it if one not in compiled.reload_init
        )
        if len(dispatcher.py_func.__code__.co_code) >= _LONG:
            call = _Linked.of(dispatcher, compiled).definition(compiled.fndesc)
            context, entry = compiled.target_context, compiled.entry_point
            context.remove_user_function(entry)
            context.insert_func_defn([(call, entry, compiled.fndesc.argtypes)])

    dispatcher.add_overload, dispatcher._cache.load_overload = add, load_current


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
    _link(dispatcher)
    get_call_template = dispatcher.get_call_template

    def get_common_call_template(
        args: tuple[types.Type, ...], kws: dict[str, types.Type]
    ) -> Any:
        return get_call_template(
            tuple(map(compiled_type, args)),
            {name: compiled_type(kws[name]) for name in kws},
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
        self._depth, self._collects = 0, False
        # Seconds so far, and when the present work began: one object, as other threads read it.
        self._state: tuple[float, float | None] = (0.0, None)

    def on_start(self, event: Event) -> None:
        # A function that is compiled may compile the functions that it calls.
        if self._depth == 0:
            self._state = self.seconds(), time.perf_counter()
            # The compiler makes millions of objects, of which hardly any are garbage.
            self._collects = gc.isenabled()
            gc.disable()
            for listener in self.listeners:
                listener(True)
        self._depth += 1

    def on_end(self, event: Event) -> None:
        self._depth -= 1
        if self._depth == 0:
            self._state = self.seconds(), None
            if self._collects:
                if not gc.get_freeze_count():
                    gc.freeze()
                    gc.unfreeze()  # to the oldest generation, unseen
                gc.enable()
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
