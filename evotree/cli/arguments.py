"""The command line's arguments: their converters, and those of the evolution."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from typing import Any, NamedTuple


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


def share(text: str, strict: bool = False) -> float:
    """Convert a share of the rows for argparse, where `strict` one above 0."""
    value = number(float, 0.0, strict)(text)
    if value >= 1.0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a share below 1")
    return value


def size(text: str) -> float:
    """Convert a number of rows, or a share of them, for argparse."""
    return share(text, strict=True) if "." in text else number(int, 1)(text)


class Option(NamedTuple):
    """An option of the evolution.

    Attributes
    ----------
    parameter : str
        What it sets of `EvoTreeClassifier`, whose default is that of the option.
    metavar : str
        What stands for its value.
    convert : callable
        Makes the value of its text.
    default : object
        What it is otherwise.
    text : str
        What it does.
    """

    parameter: str
    metavar: str
    convert: Callable[[str], Any]
    default: Any
    text: str


EVOLUTION = {
    "size-penalty": Option(
        "size_penalty",
        "A",
        number(float, 0.0, also="auto"),
        "auto",
        "what a node costs: less, larger tree",
    ),
    "population": Option("population_size", "N", number(int, 2), 64, "number of trees"),
    "generations": Option(
        "max_generations", "N", number(int, 0), 50, "stop after so many generations"
    ),
    "patience": Option(
        "patience", "N", number(int, 1), 20, "stop after so many without a better tree"
    ),
    "time-limit": Option(
        "time_limit", "S", number(float, 0.0, strict=True), None, "stop after so many seconds"
    ),
    "max-samples": Option(
        "max_samples", "N", size, None, "begin on so many rows, or on a share such as 0.1"
    ),
    "islands": Option("n_islands", "N", number(int, 1), 1, "populations that exchange their best"),
    "checkpoint": Option("checkpoint", "FILE", str, None, "write the run to a file as it goes on"),
    "resume": Option("resume_from", "FILE", str, None, "go on with the run of such a file"),
    "seed": Option("random_state", "N", number(int, 0), 0, "of all random draws"),
    "jobs": Option("n_jobs", "N", number(int, -1), 1, "number of threads, -1 for all cores"),
}
"""The options of the evolution."""


def add_evolution(command: argparse.ArgumentParser) -> None:
    """Add the options of the evolution to a command."""
    group = command.add_argument_group("evolution")
    for name, option in EVOLUTION.items():
        shown = "(none)" if option.default is None else "(%(default)s)"
        group.add_argument(
            f"--{name}",
            metavar=option.metavar,
            type=option.convert,
            default=option.default,
            help=f"{option.text} {shown}",
        )


def evolution_parameters(args: argparse.Namespace) -> dict[str, Any]:
    """Return the parameters of `EvoTreeClassifier` that arguments give."""
    values = {
        one.parameter: getattr(args, name.replace("-", "_")) for name, one in EVOLUTION.items()
    }
    return values | {"n_jobs": values["n_jobs"] or 1}
