"""The decorators behind every compiled function of the package.

Some of them change how numba compiles and calls, by names that numba does not promise to keep: all
of that is in `_tune` and what it calls. Where these names are other ones, or do something else,
kernels are compiled as numba does it of its own accord: right, and slower.
"""

import ctypes
import gc
import time
import warnings
from collections.abc import Callable
from contextlib import suppress
from functools import cache, partial
from importlib import import_module
from threading import RLock
from typing import Any, NamedTuple

import numba
import numpy as np
from llvmlite import binding, ir
from numba import njit, types
from numba.core.event import Event, Listener, register

_OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy"}
_ADDITIONS_IN_ANY_ORDER = {"reassoc", "contract"}


def _compiled_type(argument: Any, is_written: bool) -> types.Type:
    """Return the type to compile for: no constants, no enumerations, no small signed integers."""
    argument = types.unliteral(argument)
    if isinstance(argument, types.IntEnumMember):
        argument = argument.dtype
    if argument in types.signed_domain:
        return types.int64
    if isinstance(argument, types.Array) and not is_written:
        return argument.copy(readonly=True)  # writable arrays convert to it
    return argument


_warned: set[str] = set()  # of what there was a warning


def _warn_once(of: str, message: str) -> None:
    if of not in _warned:
        _warned.add(of)
        warnings.warn(message, RuntimeWarning, stacklevel=3)


def is_cached() -> bool:
    """Return whether compiled functions are kept on disk."""
    return "cache" not in _warned


def _warn_uncached(reason: object) -> None:
    """Say once that nothing is kept on disk."""
    _warn_once(
        "cache",
        f"every process compiles again what it needs, for some 20 seconds ({reason}): let the "
        "environment variable NUMBA_CACHE_DIR name a folder that can be written.",
    )


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
        module = dispatcher.py_func.__module__
        function = dispatcher.py_func.__qualname__
        variable = f"{module}.{function}{compiled.signature}"
        linked = cls(module, function, compiled.signature, variable)
        address = _addresses.setdefault(variable, ctypes.c_void_p())
        address.value = compiled.library.get_pointer_to_function(
            compiled.fndesc.llvm_func_name
        )
        _known[variable] = linked, compiled.library
        binding.add_symbol(variable, ctypes.addressof(address))
        return linked

    def __call__(self) -> None:
        """Compile the kernel, or read it from the cache, before a caller is read from there."""
        getattr(import_module(self.module), self.function).compile(self.signature.args)
        if self.variable not in _known:
            raise LookupError(f"{self.function} returns something else now.")

    def definition(self, descriptor: Any) -> Callable[..., Any]:
        """Return how numba makes a call."""
        from numba.core import cgutils

        def call(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            declared = context.declare_function(ir.Module(), descriptor)
            variable = builder.module.globals.get(self.variable)
            if variable is None:
                variable = ir.GlobalVariable(
                    builder.module, declared.type, self.variable
                )
            status, value = context.call_conv.call_function(
                builder,
                builder.load(variable),
                descriptor.restype,
                descriptor.argtypes,
                arguments,
            )
            with cgutils.if_unlikely(builder, status.is_error):
                context.call_conv.return_status_propagate(builder, status)
            return value

        return call


# By the variable, kept as long as the process: linked kernels with their code, and where the
# addresses stand.
_known: dict[str, tuple[_Linked, Any]] = {}
_addresses: dict[str, ctypes.c_void_p] = {}


def _guard_cache(cache_: Any) -> None:
    """Let a function be compiled where its cache is damaged, out of date or full."""
    load = cache_.load_overload
    save = cache_.save_overload
    rebuild = cache_._impl.rebuild

    def rebuild_if_up_to_date(*arguments: Any) -> Any:
        # What it calls may not be there any more, or have other arguments or another result.
        with suppress(Exception):
            return rebuild(*arguments)

    def load_if_whole(*key: Any) -> Any:
        try:
            return load(*key)
        except Exception as error:
            _warn_once(
                "damage",
                f"files in {cache_.cache_path} are damaged ({error!r}): what was there is "
                "compiled and written again.",
            )

    def save_if_possible(*key: Any) -> None:
        try:
            try:
                save(*key)
            except (OSError, MemoryError):
                raise
            except Exception:  # a torn index, which numba reads before it writes
                cache_.flush()
                save(*key)
        except Exception as error:
            _warn_uncached(f"{cache_.cache_path}: {error}")

    cache_._impl.rebuild = rebuild_if_up_to_date
    cache_.load_overload = load_if_whole
    cache_.save_overload = save_if_possible


def _use_caches(dispatcher: Any) -> None:
    """Let a function be read from numba's folder, or else from the wheel's."""
    from evotree._shipped import caches_beside  # where numba is as it is known

    own = dispatcher._cache
    caches = [own] if own.cache_path is not None else []  # as no folder can be written
    caches += caches_beside(dispatcher.py_func)
    for one in caches:
        _guard_cache(one)
    loads = [one.load_overload for one in caches]

    def load_first(*key: Any) -> Any:
        found = next(filter(None, (load(*key) for load in loads)), None)
        if found is None and own.cache_path is None:
            _warn_uncached("no folder can be written")
        return found

    own.load_overload = load_first


def _tune(
    dispatcher: Any, writes: bool, is_long: bool, works: Callable[[], bool]
) -> None:
    """Change how numba compiles a function, keeps it and calls it, as far as `works` says so.

    A long one is called by its address, and calls from other kernels share one specialization.
    """
    add_overload = dispatcher.add_overload
    get_call_template = dispatcher.get_call_template

    def add(compiled: Any) -> None:
        add_overload(compiled)
        if not works():
            return
        variables = {
            one.name for one in compiled.library._final_module.global_variables
        }
        compiled.reload_init.extend(
            linked
            for name, (linked, _) in _known.items()
            if name in variables and linked not in compiled.reload_init
        )
        if is_long:
            call = _Linked.of(dispatcher, compiled).definition(compiled.fndesc)
            context, entry = compiled.target_context, compiled.entry_point
            context.remove_user_function(entry)
            context.insert_func_defn([(call, entry, compiled.fndesc.argtypes)])

    # Of its own accord numba compiles a function again for each mixture of constants and variables,
    # of narrow and wide integers, and of read-only and writable arrays that it is called with.
    compiled_type = partial(_compiled_type, is_written=writes)

    def get_common_call_template(args: Any, kws: Any) -> Any:
        if works():
            args = tuple(map(compiled_type, args))
            kws = {name: compiled_type(kind) for name, kind in kws.items()}
        return get_call_template(args, kws)

    dispatcher.add_overload = add
    dispatcher.get_call_template = get_common_call_template
    _use_caches(dispatcher)


def _give_up(reason: object) -> None:
    """Say once that kernels are compiled as numba does it of its own accord."""
    _warn_once(
        "numba",
        f"numba {numba.__version__} is not as this package knows it ({reason!r}): kernels are "
        "right, but take longer to compile. Another version of numba helps.",
    )


def _cached(function: Callable[..., Any], **options: Any) -> Any:
    """Compile a function as numba does it, and keep it on disk where that is possible."""
    try:
        return njit(cache=True, **_OPTIONS | options)(function)
    except RuntimeError:  # no folder for the cache can be written
        return njit(**_OPTIONS | options)(function)


def _compile(
    function: Callable[..., Any],
    writes: bool = True,
    has_wrapper: bool = True,
    is_long: bool = False,
    works: Callable[[], bool] | None = None,
    **options: Any,
) -> Any:
    """Compile `function`, tuned if numba is as it is known here."""
    if "numba" not in _warned:
        try:
            dispatcher = _cached(
                function,
                # No C callback is ever made of a kernel; its wrapper would only take time.
                no_cfunc_wrapper=True,
                no_cpython_wrapper=not has_wrapper,
                **options,
            )
            if dispatcher is not function:  # as it is with NUMBA_DISABLE_JIT
                # Of so many bytes of Python's code it is called by its address.
                is_long = is_long or len(function.__code__.co_code) >= 300
                _tune(dispatcher, writes, is_long, works or _works)
            return dispatcher
        except Exception as error:
            _give_up(error)
    return _cached(function, **options)


@partial(_compile, is_long=True, works=lambda: True)
def _called(x: float) -> float:
    """Be called by its address, as a trial."""
    return x + 1.0


@partial(_compile, works=lambda: True)
def _calling(x: float) -> float:
    """Call another kernel by its address, as a trial."""
    return 2.0 * _called(x)


@cache
def _works() -> bool:
    """Return whether numba is as `_tune` knows it: two small kernels tell, before any other."""
    try:
        if _calling(3.0) != 8.0:
            raise ArithmeticError("a call by address has another result")
    except Exception as error:
        _give_up(error)
    return "numba" not in _warned


def kernel(function: Callable[..., Any]) -> Any:
    """Compile `function`, cached on disk, without the GIL, in strict floating-point arithmetic."""
    return _compile(function)


def inner_kernel(function: Callable[..., Any]) -> Any:
    """Compile what only compiled functions call, as `kernel` does, in two thirds of the time."""
    return _compile(function, has_wrapper=False)


def part_kernel(function: Callable[..., Any]) -> Any:
    """Make a function a part of the one kernel that calls it, compiled together with that."""
    # Of long parts with many arguments numba's handling of the call takes more time than their own.
    return njit(**_OPTIONS, inline="always")(function)


def dot_kernel(function: Callable[..., Any]) -> Any:
    """Compile a scalar product: as `kernel`, but its additions may be done in another order."""
    # With that licence the loop uses vector instructions and takes a third of the time. NaN and
    # infinity still behave.
    return _compile(function, writes=False, fastmath=_ADDITIONS_IN_ANY_ORDER)


def dots_kernel(function: Callable[..., Any]) -> Any:
    """Compile many scalar products that are written into an array, as `dot_kernel` compiles one."""
    return _compile(function, fastmath=_ADDITIONS_IN_ANY_ORDER)


class _Compiler(Listener):
    """Numba's compiler, in any thread: it is timed, and no garbage is collected meanwhile."""

    # It makes millions of objects, of which hardly any are garbage.

    def __init__(self) -> None:
        self._lock = RLock()
        # Numba tells of its lock before it has it, so that several threads may be told of at once;
        # and a function that is compiled may compile the functions that it calls.
        self._n_inside = 0
        self._collects = False
        # Seconds so far, and when the present work began: one object, as other threads read it.
        self._state: tuple[float, float | None] = (0.0, None)

    def on_start(self, event: Event) -> None:
        with self._lock:
            self._n_inside += 1
            if self._n_inside == 1:
                self._state = self.seconds(), time.perf_counter()
                self._collects = gc.isenabled()
                gc.disable()

    def on_end(self, event: Event) -> None:
        with self._lock:
            if self._n_inside == 0:
                return  # of a thread that was at work when this package was imported
            self._n_inside -= 1
            if self._n_inside > 0:
                return
            self._state = self.seconds(), None
            if self._collects:
                if not gc.get_freeze_count():
                    gc.freeze()
                    gc.unfreeze()  # what was made goes to the oldest generation, unseen
                gc.enable()

    def seconds(self) -> float:
        """Return the seconds so far, those of the present work included."""
        done, since = self._state
        return done if since is None else done + time.perf_counter() - since


_compiler = _Compiler()
register("numba:compiler_lock", _compiler)


def compile_seconds() -> float:
    """Return for how long kernels have been compiled, or read from the cache, in this process."""
    return _compiler.seconds()


def read_only(array: np.ndarray) -> np.ndarray:
    """Return an array that cannot be written: kernels are compiled for such rows alone."""
    if array.flags.writeable:
        array = array.view()
        array.setflags(write=False)
    return array
