"""The command line, and what only it uses."""

import sys


def say(message: str) -> None:
    """Write a message to standard error, where it is no part of a result."""
    print(message, file=sys.stderr, flush=True)
