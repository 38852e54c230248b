"""Values as messages of errors show them."""

from __future__ import annotations

import reprlib
from typing import Any


def short(value: Any) -> str:
    """Return a value as messages show it, whatever its length."""
    return reprlib.repr(value) if isinstance(value, int | list | dict) else repr(value)[:200]
