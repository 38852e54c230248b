"""The command line, and what only it uses."""

import sys


def say(message: str) -> None:
    """Write a message to standard error, where it is no part of a result."""
    print(shown(message), file=sys.stderr, flush=True)


def shown(text: str) -> str:
    """Return lines for a terminal: what would move the cursor or change colours is escaped."""
    from evotree.words import printable

    return "\n".join(map(printable, text.split("\n")))
