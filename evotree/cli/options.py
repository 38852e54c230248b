"""The commands, and their options, as data from which parsers are made.

The options of a search are written by nobody: names, allowed values and help are those of the
estimators' parameters.
"""

import argparse
import math
import re
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from evotree.files import check_writable

RETRIED = ("failed", "timeout", "crashed")
"""Statuses of fits that may be done again."""

SEARCH = (
    *("leaves", "size_penalty", "term_penalty", "max_depth", "max_leaf_nodes"),
    *("max_terms", "min_samples_leaf", "precision", "evolution__population_size"),
    *("max_generations", "evolution__patience", "time_limit"),
    *(
        "evolution__max_samples",
        "evolution__islands",
        "evolution__shapes",
        "random_state",
        "n_jobs",
    ),
)
"""Parameters of the evolved estimators that are options as they are."""

_TABLE = (
    "a table: CSV with a header row (.csv, .csv.gz), .parquet, .npz, .arff or .libsvm"
)

# ---- what texts are converted to -----------------------------------------------------------------


def plain(text: str) -> Any:
    """Convert a number for argparse, the word for None, or a text."""
    for kind in (int, float):
        with suppress(ValueError):
            return kind(text)
    return None if text == "none" else text


def processes(text: str) -> int:
    """Convert a number of processes for argparse."""
    if int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1")
    return int(text)


def seconds(text: str) -> float:
    """Convert a duration for argparse."""
    if not 0.0 < float(text) < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number above 0")
    return float(text)


def share(text: str) -> float:
    """Convert a share of the rows for argparse."""
    if not 0.0 <= float(text) < 1.0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a share below 1")
    return float(text)


def pair(text: str) -> tuple[str, float]:
    """Convert NAME=NUMBER for argparse."""
    name, _, value = text.rpartition("=")
    try:
        return name, float(value)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=NUMBER") from error


def readable(path: str) -> str:
    """Return the path of a file that is there, which is found before the work."""
    Path(path).stat()
    return path


def writable(path: str) -> str:
    """Return the path of a file that can be written, which is found before the work."""
    check_writable(path)
    return path


# ---- options -------------------------------------------------------------------------------------

Option = tuple[str, Mapping[str, Any]]


class Section(NamedTuple):
    """Options under a title of their own; without one, only one of them may be given."""

    title: str | None
    options: tuple[Option, ...]


class Command(NamedTuple):
    """A command: the function that it runs, what its help says, and its options or commands."""

    run: str | None
    about: str
    examples: tuple[str, ...]
    options: tuple[Option | Section, ...] = ()
    commands: Mapping[str, Any] = {}
    defaults: Mapping[str, Any] = {}


def option(name: str, about: str, **settings: Any) -> Option:
    """Return an option, or an argument, as a parser takes it."""
    return name, {"help": about, **settings}


def search_options() -> tuple[Section, ...]:
    """Return the options of a search, of which the code of their parameters says the rest."""
    from evotree.engine.config import Evolution
    from evotree.estimators import EvoTreeClassifier
    from evotree.fitness.objectives import LOSSES

    def parameter(path: str) -> Option:
        group, _, name = path.rpartition("__")
        return option(
            f"--{name.replace('_', '-')}",
            _about_parameter(Evolution if group else EvoTreeClassifier, name),
            dest=path,
            metavar="VALUE",
            type=plain,
            default=argparse.SUPPRESS,
        )

    what_for = Section(
        None,
        (
            option(
                "--event",
                "a column that says whether an event was seen: the target is its time, or that "
                "until which a row was seen, and its risk is predicted",
                metavar="COLUMN",
            ),
            option(
                "--objective",
                f"what the tree is for: {', '.join(LOSSES)} (accuracy, or squared_error)",
                metavar="NAME",
                choices=LOSSES,
                default=argparse.SUPPRESS,
            ),
            option(
                "--cost-matrix",
                "a table of what errors cost: the class, then a column for each predicted class",
                metavar="FILE",
                type=readable,
            ),
        ),
    )
    title = "parameters of the search (none is None of Python; random_state is 0 here)"
    return what_for, Section(title, tuple(map(parameter, SEARCH)))


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
    type=writable,
)
_PROCESSES = option("--n-jobs", "processes (1)", metavar="N", type=processes, default=1)
_MODEL = option("model", "a model file", metavar="MODEL.json")

_TEXTS = Section(
    "tables of text",
    (
        option(
            "--sep",
            "what separates cells, one of , ; | : tab space (a guess)",
            metavar="SIGN",
            type=lambda text: {"tab": "\t", "\\t": "\t", "space": " "}.get(text, text),
            choices=(",", ";", "\t", "|", ":", " "),
        ),
        option(
            "--decimal",
            "sign of decimals, . or , (a guess where commas do not separate cells)",
            metavar="SIGN",
            choices=(".", ","),
        ),
        option(
            "--encoding",
            "of the text, such as cp1252 or utf-16 (utf-8)",
            metavar="NAME",
        ),
        option(
            "--na-values",
            "cells that are missing values, besides empty ones, NA, NaN and nan (none)",
            metavar="TEXT",
            nargs="+",
            action="extend",
            default=[],
        ),
    ),
)

_ROWS = (
    option("data", _TABLE, metavar="DATA"),
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
    Section(
        None,
        (
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
        ),
    ),
    _TEXTS,
)

_FIT = (
    *_ROWS,
    option(
        "--out",
        "the model file to write",
        metavar="MODEL.json",
        required=True,
        type=writable,
    ),
    option(
        "--report",
        "write a page about the tree, the others of its front and the run",
        metavar="FILE.html",
        type=writable,
    ),
    option("--plots", "draw learning curve and tree into a folder", metavar="DIR"),
    LOG,
    option(
        "--test-size",
        "share of the rows to hold out and test on, such as 0.2 (none)",
        metavar="SHARE",
        type=share,
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
        "--class-weight",
        "weights of rows: 'balanced', for classes of equal weight, or CLASS=NUMBER each (1)",
        metavar="WEIGHT",
        nargs="+",
        type=lambda text: (text, None) if text == "balanced" else pair(text),
    ),
    option(
        "--monotonic-cst",
        "1 where more in a column may only raise the number, or the share of the second of two "
        "classes, -1 where it may only lower it",
        metavar="COLUMN=SIGN",
        nargs="+",
        default=[],
        type=pair,
    ),
    Section(
        None,
        (
            option(
                "--checkpoint",
                "write the run to a file as it goes on",
                metavar="FILE",
                default=argparse.SUPPRESS,
            ),
            option(
                "--resume",
                "go on with the run of such a file",
                metavar="FILE",
                type=readable,
            ),
        ),
    ),
)

_EXPERIMENT = (
    option("--reference", "compare the others with it", metavar="METHOD"),
    option("--pictures", "their format (png)", choices=("png", "pdf"), default="png"),
)
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
            ),
            option("--out", "(standard output)", metavar="FILE.csv", type=writable),
            option(
                "--event",
                "as in the fit: it says how well risks predict",
                metavar="COLUMN",
            ),
            option(
                "--proba",
                "write the shares of all classes, a column each",
                action="store_true",
            ),
            _TEXTS,
        ),
    ),
    "show": Command(
        "show",
        "print a model's tree as rules",
        ("evotree show iris.json --plot tree.png",),
        (
            _MODEL,
            option(
                "--plot", "draw the tree as well", metavar="FILE.png", type=writable
            ),
        ),
    ),
    "export": Command(
        "export_model",
        "write a model's tree as rules, drawing or code",
        ("evotree export iris.json --to sql --out iris.sql",),
        (
            _MODEL,
            option(
                "--to",
                "python, c and onnx read encoded features, sql the table's columns",
                choices=("rules", "dot", "python", "c", "onnx", "sql"),
                required=True,
            ),
            option(
                "--out",
                "(standard output); onnx needs one",
                metavar="FILE",
                type=writable,
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
            ),
            option("--event", "as in the fit, of a model of times", metavar="COLUMN"),
            option(
                "--out",
                "the page to write",
                metavar="FILE.html",
                required=True,
                type=writable,
            ),
            _TEXTS,
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
                type=writable,
            ),
        ),
        # Options of `fit` that all models would have to know.
        defaults={"event": None, "monotonic_cst": [], "sample_weight": None},
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
                        "file", "defines the experiment", metavar="FILE.toml", type=Path
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
                        type=seconds,
                    ),
                    option(
                        "--retry",
                        f"do fits again that ended so: {', '.join(RETRIED)}",
                        metavar="STATUS",
                        nargs="+",
                        choices=RETRIED,
                        default=[],
                    ),
                    *_EXPERIMENT,
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
                    *_EXPERIMENT,
                ),
            ),
        },
    ),
}

# ---- parsers -------------------------------------------------------------------------------------


def add_options(parser: Any, options: tuple[Option | Section, ...]) -> None:
    """Add options to a parser or to a group of one."""
    for one in options:
        if isinstance(one, Section):
            titled = parser.add_argument_group
            alone = parser.add_mutually_exclusive_group
            add_options(titled(one.title) if one.title else alone(), one.options)
        else:
            name, settings = one
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
