"""The command line's arguments: their converters, and those of the evolution."""

import argparse
import math
from collections.abc import Callable, Mapping
from numbers import Number
from typing import Any, NamedTuple


def number(
    kind: type, least: float, strict: bool = False, also: str | None = None
) -> Callable[[str], Any]:
    """Return a converter of numbers for argparse."""
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


def example(*lines: str) -> dict[str, Any]:
    """Return what a parser is made with whose help ends with lines to copy."""
    return {
        "epilog": "example:\n" + "\n".join(f"  {line}" for line in lines),
        "formatter_class": argparse.RawDescriptionHelpFormatter,
    }


def add_command(
    commands: Any,
    name: str,
    run: Callable[[argparse.Namespace], None],
    about: str,
    *lines: str,
) -> argparse.ArgumentParser:
    """Add a command that runs a function, with lines to copy."""
    command: argparse.ArgumentParser = commands.add_parser(
        name, help=about, **example(*lines)
    )
    command.set_defaults(run=run, files=())  # arguments that name files to be written
    return command


class Option(NamedTuple):
    """An option of the evolution."""

    parameter: str  # of `EvoTreeClassifier.set_params`; after its last two underscores the name
    metavar: str
    convert: Callable[[str], Any]
    text: str
    name: str = ""  # where it is not the parameter's


def _resumed(path: str) -> Any:
    from evotree.engine.config import Checkpoint

    return Checkpoint(path, resume=True)


_PENALTY = number(float, 0.0, also="auto")

# The options of the evolution: the one place where its parameters are named.
EVOLUTION = (
    Option(
        "objective",
        "NAME",
        str,
        "what the tree is for, such as balanced_accuracy, f1, mcc",
    ),
    Option(
        "size_penalty",
        "A",
        _PENALTY,
        "penalty for each node; a small one for a large tree",
    ),
    Option(
        "term_penalty", "B", _PENALTY, "penalty for each term after a split's first"
    ),
    Option("max_depth", "N", number(int, 1), "greatest depth of the tree"),
    Option("max_leaf_nodes", "N", number(int, 2), "greatest number of leaves"),
    Option("max_terms", "N", number(int, 0), "greatest number of terms of the tree"),
    Option(
        "min_samples_leaf",
        "N",
        size,
        "least number of rows in a leaf, or a share: 0.05",
    ),
    Option(
        "evolution__population_size", "N", number(int, 2), "number of trees that evolve"
    ),
    Option("max_generations", "N", number(int, 0), "stop after N generations"),
    Option(
        "evolution__patience", "N", number(int, 1), "stop after N without a better tree"
    ),
    Option("time_limit", "S", number(float, 0.0, strict=True), "stop after S seconds"),
    Option(
        "evolution__max_samples",
        "N",
        size,
        "begin on N rows, or on a share of them such as 0.1",
    ),
    Option(
        "evolution__islands",
        "N",
        number(int, 1),
        "populations that exchange their best",
    ),
    Option("checkpoint", "FILE", str, "write the run to a file as it goes on"),
    Option(
        "checkpoint", "FILE", _resumed, "go on with the run of such a file", "resume"
    ),
    Option("random_state", "N", number(int, 0), "seed of all random draws"),
    Option("n_jobs", "N", number(int, -1), "number of threads, -1 for all cores"),
)
# Defaults that are the command line's own: the same command gives the same tree.
SET = {"random_state": 0}


def add_evolution(
    command: argparse.ArgumentParser, defaults: Mapping[str, Any]
) -> None:
    """Add the options of the evolution to a command."""
    group = command.add_argument_group("evolution")
    one_file = group.add_mutually_exclusive_group()
    command.set_defaults(**SET)
    for option in EVOLUTION:
        default = {**defaults, **SET}.get(option.parameter)
        (one_file if option.parameter == "checkpoint" else group).add_argument(
            f"--{(option.name or option.parameter.rpartition('__')[2]).replace('_', '-')}",
            dest=option.parameter,
            metavar=option.metavar,
            type=option.convert,
            default=argparse.SUPPRESS,
            help=f"{option.text} ({default})"
            if isinstance(default, Number | str)
            else option.text,
        )


def evolution_parameters(args: argparse.Namespace) -> dict[str, Any]:
    """Return the parameters of `EvoTreeClassifier` that arguments give."""
    parameters = {option.parameter for option in EVOLUTION}
    return {name: value for name, value in vars(args).items() if name in parameters}
