"""How all forms for readers write numbers, names and sums, and the two orders of nodes."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

LINE_WIDTH = 100
LEAST_WIDTH = 40

_EXACT_DIGITS = (
    12  # a double that was never rounded to a decimal number nearly always has more
)


def number(value: float, decimals: int | None) -> str:
    """Return a number as all forms for readers show it."""
    if decimals is None:
        if float(f"{value:.{_EXACT_DIGITS}g}") == value:
            return repr(value + 0.0).removesuffix(".0")
        decimals = 3
    if value == 0.0 or abs(value) >= 1.0:
        return f"{value + 0.0:.{decimals}f}"
    return f"{value:#.{max(decimals, 1)}g}"


def exact(value: float, decimals: int | None = None) -> str:
    """Return a number, such as a mean, with all its digits where `decimals` is None."""
    return (
        repr(value + 0.0).removesuffix(".0")
        if decimals is None
        else number(value, decimals)
    )


def share_text(share: float) -> str:
    """Return a share in two digits, where no rounding calls a leaf pure that is not."""
    if 0.995 <= share < 1.0:
        return ">0.99"
    return "<0.01" if 0.0 < share < 0.005 else f"{share:.2f}"


def rows_text(n: float) -> str:
    """Return a number of rows in words."""
    if n == 1.0:
        return "1 row"
    return f"{n:.0f} rows" if n.is_integer() else f"weight {n:.4g}"


def check_whole(name: str, value: Any, least: int) -> None:
    """Check that a parameter is a whole number of at least `least`."""
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise ValueError(
            f"{name}={value!r}: allowed is a whole number of at least {least}."
        )


def printable(name: Any) -> str:
    """Return a name for a terminal: what would move the cursor or change colours is escaped."""
    return "".join(
        sign
        if sign.isprintable()
        else sign.encode("unicode_escape", "replace").decode()
        for sign in str(name)
    )


def fold(pieces: Sequence[str], width: int) -> list[str]:
    """Return pieces set into lines with blanks between them; a longer one has its own line."""
    lines = [pieces[0]]
    for piece in pieces[1:]:
        if len(lines[-1]) + 1 + len(piece) <= width:
            lines[-1] += f" {piece}"
        else:
            lines.append(piece)
    return lines


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


def walk(tree: Any) -> Iterator[tuple[int, int, bool]]:
    """Yield the nodes in prefix order, with their depths and whether they are right children."""
    depths = [0] * len(tree)
    is_right = [False] * len(tree)
    for k, size in enumerate(tree.subtree_size.tolist()):
        if size > 1:
            right = tree.right(k)
            depths[k + 1] = depths[right] = depths[k] + 1
            is_right[right] = True
        yield k, depths[k], is_right[k]


def clauses(tree: Any) -> Iterator[tuple[int, int, bool]]:
    """Yield the nodes in an order that nests little, however deep the tree is.

    Below each split comes the smaller one of its two subtrees, and then, outside of the split, the
    larger one: whoever is in the smaller one has left by then. A subtree inside has at most half
    the leaves, so the splits nest no deeper than the binary logarithm of the number of leaves.
    """
    waiting = [(0, 0)]
    while waiting:
        k, level = waiting.pop()
        if tree.subtree_size[k] == 1:
            yield k, level, True
            continue
        left, right = tree.left(k), tree.right(k)
        left_first = bool(tree.subtree_size[left] <= tree.subtree_size[right])
        yield k, level, left_first
        inside, outside = (left, right) if left_first else (right, left)
        waiting += [(outside, level), (inside, level + 1)]
