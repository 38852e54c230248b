"""The commands, and their options, as data from which parsers are made.

The options of a search are written by nobody: names, allowed values and help are those of the
parameters of the estimators and of `Evolution`.
"""

import argparse
import ast
import os
import re
from collections.abc import Callable, Iterator, Mapping
from itertools import permutations
from pathlib import Path
from typing import Any, NamedTuple

from evotree.files import check_writable

RETRIED = ("failed", "timeout", "crashed")
"""Statuses of fits that may be done again."""

NO_OPTIONS = {"categorical_features", "warm_start", "callbacks", "operators"}
"""Parameters that --categorical says, that one run has no use for, or that hold functions."""

_TABLE = "a table: CSV with a header row (.csv, .csv.gz), or .parquet"

# ---- what texts are converted to -----------------------------------------------------------------


def plain(text: str) -> Any:
    """Convert a number, a list or dict of Python for argparse, the word for None, or a text."""
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return None if text == "none" else text


def entry(text: str) -> Any:
    """Convert NAME=VALUE to a pair for argparse, what has no name to a value."""
    name, is_named, value = text.rpartition("=")
    return (name, plain(value)) if is_named else plain(text)


def value_of(path: str, given: list[Any]) -> Any:
    """Return a dict where an option has got NAME=VALUE each, a list of values, or the only one."""
    n_pairs = sum(isinstance(one, tuple) for one in given)
    if n_pairs not in (0, len(given)):
        name = path.rpartition("__")[2].replace("_", "-")
        raise ValueError(f"--{name}: allowed are values, or NAME=VALUE each, not both")
    return dict(given) if n_pairs else given if len(given) > 1 else given[0]


def within(kind: type, low: float, high: float) -> Callable[[str], Any]:
    """Return what converts a number of a range for argparse."""

    def number(text: str) -> Any:
        value = kind(text)
        if not low <= value <= high:
            raise argparse.ArgumentTypeError(
                f"{text!r} is not a number from {low:g} to {high:g}"
            )
        return value

    return number


class Input(str):
    """The path of a file that a command reads."""


class Output(Input):
    """The path of a file that a command writes, whole or at its end."""


def check_paths(given: Mapping[str, Any]) -> None:
    """Raise for files that are not there, cannot be written, or are read or written already."""
    paths = [(name, path) for name, path in given.items() if isinstance(path, Input)]
    for _, path in paths:
        if isinstance(path, Output):
            check_writable(path)
        else:
            os.stat(path)
    for (name, path), (other, taken) in permutations(paths, 2):
        is_same = os.path.realpath(path) == os.path.realpath(taken) or (
            os.path.exists(path)
            and os.path.exists(taken)
            and os.path.samefile(path, taken)
        )
        if is_same and isinstance(path, Output):
            raise ValueError(
                f"--{name} {path} is the file of {other}: allowed is another one"
            )


# ---- options -------------------------------------------------------------------------------------

Option = tuple[str, Mapping[str, Any]]


class Command(NamedTuple):
    """A command: the function that it runs, what its help says, and its options or commands."""

    run: str | None
    about: str
    examples: tuple[str, ...]
    options: tuple[Option, ...] = ()
    commands: Mapping[str, Any] = {}
    defaults: Mapping[str, Any] = {}


def option(name: str, about: str, **settings: Any) -> Option:
    """Return an option, or an argument, as a parser takes it."""
    return name, {"help": about, **settings}


def search_parameters() -> Iterator[tuple[type, str, list[Any]]]:
    """Yield class, path and constraints of each parameter of the evolved trees that is an option.

    Groups of parameters are none.
    """
    from evotree.configuration import constraints_of, is_group
    from evotree.engine.config import Evolution
    from evotree.estimators import EvoTreeClassifier

    for kind, group in ((EvoTreeClassifier, ""), (Evolution, "evolution__")):
        for name, allowed in constraints_of(kind).items():
            kinds = [one for one in allowed if one is not None]
            if not all(map(is_group, kinds)) and name not in NO_OPTIONS:
                yield kind, f"{group}{name}", kinds


def search_options() -> tuple[Option, ...]:
    """Return the options of a search, of which the code of their parameters says all."""
    options = []
    for kind, path, allowed in search_parameters():
        name = path.rpartition("__")[2]
        settings: dict[str, Any] = {"type": plain, "metavar": "VALUE"}
        if dict in allowed:
            settings = {"type": entry, "metavar": "[NAME=]VALUE", "nargs": "+"}
        elif os.PathLike in allowed:
            settings = {"type": Output, "metavar": "FILE"}
        settings |= {"dest": path, "default": argparse.SUPPRESS}
        about = _about_parameter(kind, name)
        options.append(option(f"--{name.replace('_', '-')}", about, **settings))
    return tuple(options)


def _about_parameter(kind: type, name: str) -> str:
    """Return the first sentence about a parameter in a docstring, and which values it may have."""
    pattern = rf"^ *{name} : (?P<values>.+)\n(?P<about>(?:.|\n)+?\.)\s"
    # There are no docstrings under -OO.
    for found in re.finditer(pattern, kind.__doc__ or "", re.MULTILINE):
        about = f"{found['about']} ({found['values']})"
        return " ".join(about.replace("`", "").replace("%", "%%").split())
    return ""


def _columns(name: str, about: str, **settings: Any) -> Option:
    """Return an option that names columns, and may be given several times."""
    return option(
        name,
        about,
        metavar="COLUMN",
        nargs="+",
        action="extend",
        default=[],
        **settings,
    )


LOG = option(
    "--log",
    "append what happens to a file, generations and all (none)",
    metavar="FILE",
    type=Output,
)
_PROCESSES = option(
    "--n-jobs", "processes (1)", metavar="N", type=within(int, 1, 1024), default=1
)
_MODEL = option("model", "a model file", metavar="MODEL.json", type=Input)

_READ = option(
    "--read",
    "options of pandas' read_csv or read_parquet, such as sep=; decimal=, encoding=cp1252 "
    "na_values=? (what is not given is guessed, and said)",
    metavar="NAME=VALUE",
    type=entry,
    nargs="+",
    action="extend",
    default=[],
)
_DATA = option("data", _TABLE, metavar="DATA", type=Input)

_ROWS = (
    _DATA,
    option("--target", "the column to predict", metavar="COLUMN", required=True),
    option(
        "--task",
        "predict classes or numbers; by default numbers where the target has many (auto)",
        choices=("auto", "classification", "regression"),
        default="auto",
    ),
    _columns("--drop", "leave columns out"),
    _columns(
        "--keep", "keep columns that look like numbers of rows, which are left out"
    ),
    _columns("--categorical", "take columns for categories; columns of text are"),
    option(
        "--group",
        "a column of what rows belong to, such as a patient: test rows, and all rows "
        "held out, are of whole groups",
        metavar="COLUMN",
    ),
    option(
        "--time",
        "a column of numbers or dates: test rows, and all rows held out, are later than "
        "those trained on",
        metavar="COLUMN",
    ),
    _READ,
)

_FIT = (
    *_ROWS,
    option(
        "--out",
        "the model file to write",
        metavar="MODEL.json",
        required=True,
        type=Output,
    ),
    option(
        "--report",
        "write a page about the tree, the others of its front and the run",
        metavar="FILE.html",
        type=Output,
    ),
    LOG,
    option(
        "--test-size",
        "share of the rows to hold out and test on, such as 0.2 (none)",
        metavar="SHARE",
        type=within(float, 0.0, 0.999),
        default=0.0,
    ),
    option(
        "--select",
        "take another tree of the front: tree, accurate, or complexity<=K, leaves<=K, terms<=K, "
        "size<=K (chosen)",
        metavar="RULE",
        default="chosen",
    ),
    option("--sample-weight", "a column of weights of the rows", metavar="COLUMN"),
    option(
        "--exposure",
        "a column of what events were counted at, such as years: rates are predicted, for "
        "--objective poisson",
        metavar="COLUMN",
    ),
    option(
        "--event",
        "a column that says whether an event was seen: the target is its time, or that "
        "until which a row was seen, and its risk is predicted",
        metavar="COLUMN",
    ),
    option(
        "--cost-matrix",
        "a table of what errors cost: the class, then a column for each predicted class",
        metavar="FILE",
        type=Input,
    ),
    option(
        "--resume",
        "go on with the run of a checkpoint, in its file",
        metavar="FILE",
        type=Input,
    ),
)

_REFERENCE = option("--reference", "compare the others with it", metavar="METHOD")
_RUN_SMALL = "evotree experiment run docs/experiments/small.toml --out results"
_REPORT_IT = "evotree experiment report results --reference EvoTree"

COMMANDS = {
    "warmup": Command(
        "warm_up",
        "compile everything now, so that no fit has to",
        ("evotree warmup",),
    ),
    "fit": Command(
        "fit",
        "evolve a tree for a table and write a model file",
        (
            'python -c "from sklearn.datasets import load_iris as iris; '
            "iris(as_frame=True).frame.to_csv('iris.csv', index=False)\"",
            "evotree fit iris.csv --target target --out iris.json --report iris.html",
        ),
        _FIT,
        defaults={"random_state": 0},  # the same command gives the same tree
    ),
    "predict": Command(
        "predict",
        "predict the target of a table's rows",
        ("evotree predict iris.json iris.csv --out predictions.csv",),
        (
            _MODEL,
            option(
                "data",
                f"{_TABLE}, with the columns that the model's tree asks for",
                metavar="DATA",
                type=Input,
            ),
            option("--out", "(standard output)", metavar="FILE.csv", type=Output),
            option(
                "--proba",
                "write the shares of all classes, a column each",
                action="store_true",
            ),
            _READ,
        ),
    ),
    "show": Command(
        "show",
        "print a model's tree as rules",
        ("evotree show iris.json --plot tree.png",),
        (
            _MODEL,
            option("--plot", "draw the tree as well", metavar="FILE.png", type=Output),
        ),
    ),
    "export": Command(
        "export_model",
        "write a model's tree as rules or code",
        ("evotree export iris.json --to sql --out iris.sql",),
        (
            _MODEL,
            option(
                "--to",
                "python, c and onnx read encoded features, sql the table's columns",
                choices=("rules", "python", "c", "onnx", "sql"),
                required=True,
            ),
            option(
                "--out",
                "(standard output); onnx needs one",
                metavar="FILE",
                type=Output,
            ),
            option(
                "--proba",
                "write code that returns the probabilities of classes; onnx always does",
                action="store_true",
            ),
        ),
    ),
    "report": Command(
        "report_model",
        "write a page about a model, to look at and to ask",
        ("evotree report iris.json --data iris.csv --out iris.html",),
        (
            _MODEL,
            option(
                "--data",
                f"rows to follow and to measure on: {_TABLE} (none)",
                metavar="DATA",
                type=Input,
            ),
            option(
                "--out",
                "the page to write",
                metavar="FILE.html",
                required=True,
                type=Output,
            ),
            _READ,
        ),
    ),
    "compare": Command(
        "compare",
        "compare the default tree with other models on a table",
        ("evotree compare iris.csv --target target --plot iris.png",),
        (
            *_ROWS,
            option("--folds", "(5)", metavar="N", type=int, default=5),
            option(
                "--random-state",
                "seed of the folds, and of all random draws (0)",
                metavar="N",
                type=int,
                default=0,
            ),
            _PROCESSES,
            option(
                "--plot",
                "draw scores against sizes (none)",
                metavar="FILE.png",
                type=Output,
            ),
        ),
        # Options of `fit` that all models would have to know.
        defaults=dict.fromkeys(["event", "exposure", "sample_weight"]),
    ),
    "experiment": Command(
        None,
        "run methods on data sets, and compare them",
        (_RUN_SMALL, _REPORT_IT),
        commands={
            "run": Command(
                "run_experiment",
                "do the fits that a file defines and that are missing",
                (_RUN_SMALL,),
                (
                    option(
                        "file",
                        "defines the experiment",
                        metavar="FILE.toml",
                        type=Input,
                    ),
                    option(
                        "--out",
                        "folder of results",
                        metavar="RESULTS",
                        type=Path,
                        required=True,
                    ),
                    option(
                        "--data-home",
                        "folder of the data sets",
                        metavar="DIR",
                        type=Path,
                    ),
                    _PROCESSES,
                    option(
                        "--time-limit",
                        "seconds that a fit may take",
                        metavar="S",
                        type=within(float, 1e-3, 1e9),
                    ),
                    option(
                        "--retry",
                        f"do fits again that ended so: {', '.join(RETRIED)}",
                        metavar="STATUS",
                        nargs="+",
                        choices=RETRIED,
                        default=[],
                    ),
                    _REFERENCE,
                    LOG,
                ),
            ),
            "report": Command(
                "report_experiment",
                "write tables, tests and pictures of the results",
                (_REPORT_IT,),
                (
                    option(
                        "out", "folder of the results", metavar="RESULTS", type=Path
                    ),
                    _REFERENCE,
                ),
            ),
        },
    ),
}

# ---- parsers -------------------------------------------------------------------------------------


def add_options(parser: Any, options: tuple[Option, ...]) -> None:
    """Add options to a parser or to a group of one."""
    for name, settings in options:
        parser.add_argument(name, **settings)


def add_commands(parser: Any, commands: Mapping[str, Command]) -> Any:
    """Add commands to a parser, which alone is asked for help; return the parsers by name."""
    parser.set_defaults(run=None, parser=parser)
    parts = parser.add_subparsers(title="commands", metavar="COMMAND")
    for name, command in commands.items():
        part = parts.add_parser(
            name, help=command.about, **with_examples(command.examples)
        )
        part.set_defaults(run=command.run, **command.defaults)
        add_options(part, command.options)
        if command.commands:
            add_commands(part, command.commands)
    return parts.choices


def with_examples(lines: tuple[str, ...]) -> dict[str, Any]:
    """Return what a parser is made with whose help ends with lines to copy."""
    return {
        "epilog": "example:\n" + "\n".join(f"  {line}" for line in lines),
        "formatter_class": argparse.RawDescriptionHelpFormatter,
    }
