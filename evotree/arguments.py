"""Converters of the command line's arguments."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from typing import Any


def number(
    kind: type, least: float, strict: bool = False, also: str | None = None
) -> Callable[[str], Any]:
    """Return a converter of numbers for argparse.

    Parameters
    ----------
    kind : type
        int or float.
    least : float
        The least number allowed.
    strict : bool, default=False
        Whether that one itself is not.
    also : str or None, default=None
        A word that is allowed as well.

    Returns
    -------
    callable
        Raises argparse.ArgumentTypeError on other texts.
    """
    words = "a whole number" if kind is int else "a number"
    words += f" above {least:g}" if strict else f" of at least {least:g}"

    def convert(text: str) -> Any:
        if text == also:
            return text
        try:
            value = kind(text)
        except ValueError:
            value = math.nan
        if not (least < value < math.inf or (value == least and not strict)):
            raise argparse.ArgumentTypeError(f"{text!r} is not {words}")
        return value

    return convert


def share(text: str) -> float:
    """Convert a share of the rows for argparse."""
    value = number(float, 0.0)(text)
    if value >= 1.0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a share below 1")
    return value
