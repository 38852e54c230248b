"""Kernels that a wheel brings compiled, in a folder beside the sources of each room.

``python -m tests.wheels`` builds such a wheel. Numba knows compiled code by the content of its
source, by the versions of Python and of numba, and by the processor: where one of them is another
one, nothing is found here. The names of numba's may be other ones some day; `_jit.py` expects that.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
from numba.core.caching import (
    CompileResultCacheImpl,
    FunctionCache,
    InTreeCacheLocator,
)

_CONFIG: Any = numba.config

FOLDER = "kernels"
PROCESSOR = "x86-64-v3"
# What processors of that name can do, in LLVM's words.
_NEEDED = {
    *("+avx", "+avx2", "+bmi", "+bmi2", "+cx16", "+f16c", "+fma", "+lzcnt", "+movbe"),
    *("+popcnt", "+sahf", "+sse4.1", "+sse4.2", "+ssse3", "+xsave"),
}


class _Beside(InTreeCacheLocator):
    """The folder beside a source, whoever may write there."""

    def get_cache_path(self) -> str:
        return str(Path(self._py_file).with_name(FOLDER))

    def ensure_cache_path(self) -> None:
        pass


class _InFolder(CompileResultCacheImpl):
    _locator_classes = [_Beside]


class ShippedCache(FunctionCache):
    """What a wheel has of a function; it is only read."""

    _impl_class = _InFolder

    def _index_key(self, signature: Any, codegen: Any) -> Any:
        signature, (triple, *own), code = super()._index_key(signature, codegen)
        # Intel's vector functions have other last digits; the wheel's kernels do not call them.
        if set(own[1].split(",")) >= _NEEDED and not _CONFIG.USING_SVML:
            own = [PROCESSOR, ""]
        return signature, (triple, *own), code


def caches_beside(function: Callable[..., Any]) -> list[ShippedCache]:
    """Return the cache of a function that the wheel has, or none."""
    folder = Path(function.__code__.co_filename).with_name(FOLDER)
    return [ShippedCache(function)] if folder.is_dir() else []
