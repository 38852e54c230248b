"""Numbers, names and sums as all texts, pictures and pages write them."""

import math
import re
from collections.abc import Callable, Iterable, Sequence
from difflib import get_close_matches
from numbers import Integral
from typing import Any

import numpy as np

LINE_WIDTH = 100
LEAST_WIDTH = 40

# A double that was never rounded to a decimal number nearly always has more.
_EXACT_DIGITS = 12


_EXPONENT = re.compile(r"(?<=\d)[eE](?=[+-]?\d)")
_READS_AS_MORE = re.compile(
    r"^[ +-]| (?:is|above|below|[-+*<>]|[<>]=) | \Z|^(?:(?i:nan|inf|infinity))?\Z"
)


def number(value: float, decimals: int | None = None) -> str:
    """Return a number as all forms for readers show it; a rounded one as it is by default."""
    if decimals is None:
        if float(f"{value:.{_EXACT_DIGITS}g}") == value:
            return repr(value + 0.0).removesuffix(".0")
        decimals = 3
    if value == 0.0 or abs(value) >= 1.0:
        return f"{value + 0.0:.{decimals}f}"
    return f"{value:#.{max(decimals, 1)}g}"


def short_number(value: float, digits: int = 4) -> str:
    """Return a number in a few significant digits, without an exponent where it is large."""
    return number(float(f"{value:.{digits}g}"))


def told_apart(value: float, others: Iterable[float]) -> str:
    """Return a number in as many digits as tell it from others, in three or more.

    One that is rounded already stays as it is.
    """
    shown = number(value)
    gaps = [abs(value - other) for other in others if other != value]
    if shown == repr(value) or not value or not gaps:
        return shown
    size, gap = (math.floor(math.log10(one)) for one in (abs(value), min(gaps)))
    return number(round(value, max(0, 2 - size, 1 - gap)))


def share_text(share: float) -> str:
    """Return a share in two digits, where no rounding calls a leaf pure that is not."""
    if 0.995 <= share < 1.0:
        return ">0.99"
    return "<0.01" if 0.0 < share < 0.005 else f"{share:.2f}"


def counted(n: int, noun: str, plural: str | None = None) -> str:
    """Return a number of things in words."""
    return f"{n} {noun if n == 1 else plural or f'{noun}s'}"


def listed(names: Sequence[str], most: int) -> str:
    """Return the first names of a list."""
    return ", ".join([*names[:most], *(["..."] if len(names) > most else [])])


def rows_text(n: float, noun: str = "row") -> str:
    """Return a number of rows in words."""
    return counted(int(n), noun) if n.is_integer() else f"weight {n:.4g}"


def did_you_mean(name: Any, names: Iterable[Any]) -> str:
    """Return which of some names is near one that is none of them, in brackets; or nothing."""
    folded = {str(one).casefold(): str(one) for one in names}
    near = get_close_matches(str(name).casefold(), folded, 1)
    return f" (did you mean {folded[near[0]]!r}?)" if near else ""


def check_whole(name: str, value: Any, least: int) -> None:
    """Check that a parameter is a whole number of at least `least`."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
        raise ValueError(
            f"{name}={value!r}: allowed is a whole number of at least {least}."
        )


def check_kind(name: str, value: Any, is_allowed: bool, allowed: str) -> None:
    """Refuse a value of a type that is not allowed."""
    if not is_allowed:
        raise TypeError(f"{name} is a {type(value).__name__}: allowed {allowed}")


def printable(name: Any) -> str:
    """Return a name for a terminal: what would move the cursor or change colours is escaped."""
    return "".join(
        sign
        if sign.isprintable()
        else sign.encode("unicode_escape", "replace").decode()
        for sign in str(name)
    )


def operand(name: Any, shown: str) -> str:
    """Return a name as it is shown beside numbers: in brackets where it reads as more than a name.

    So do ``skin is missing``, of which sums have a multiple; ``2 * x`` beside ``x``; and ``6``.
    """
    text = str(name)
    # Digits and signs without a letter, as ``10-20``, read as a number.
    signs = _EXPONENT.sub("", text)
    is_number = any(map(str.isnumeric, signs)) and not any(map(str.isalpha, signs))
    return f"({shown})" if is_number or _READS_AS_MORE.search(text) else shown


def fold(pieces: Sequence[str], width: int) -> list[str]:
    """Return pieces set into lines with blanks between them; a longer one has its own line."""
    lines = list(pieces[:1])
    for piece in pieces[1:]:
        if len(lines[-1]) + 1 + len(piece) <= width:
            lines[-1] += f" {piece}"
        else:
            lines.append(piece)
    return lines


def parts_of_text(pieces: Sequence[str], sign: str) -> list[str]:
    """Return pieces with a sign after each but the last."""
    return [*(f"{piece}{sign}" for piece in pieces[:-1]), *pieces[-1:]]


def hung(pieces: Sequence[str], head: str, below: str, width: int) -> list[str]:
    """Return folded pieces, the first line after a head, those below it after another."""
    return [
        f"{below if at else head}{line}" for at, line in enumerate(fold(pieces, width))
    ]


def summed(
    terms: Iterable[tuple[float, int]],
    product: Callable[[float, int], str],
    before: Sequence[str] = (),
) -> list[str]:
    """Return the pieces of a sum, one for each term after those before it, with their signs."""
    pieces = list(before)
    for weight, j in terms:
        sign, term = "-" if weight < 0.0 else "+", product(abs(weight), j)
        pieces.append(f"{sign} {term}" if pieces else f"{sign.strip('+')}{term}")
    return pieces


def check_length(
    name: str, given: Sequence[Any] | np.ndarray, n: int, things: str
) -> None:
    """Check that a parameter has one entry for each of so many things."""
    if isinstance(given, str):
        raise ValueError(f"{name}={given!r}: allowed is a sequence of {n} names.")
    if len(given) != n:
        raise ValueError(f"{name} has {len(given)} entries: the tree has {n} {things}.")
