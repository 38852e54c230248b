"""The command line: ``evotree fit``, ``predict``, ``report`` and others.

Results go to standard output, messages and the progress bar to standard error. A mistake of the
user's ends with one line there and exit status 2. Modules are imported by the command that uses
them, so that ``evotree --help`` answers at once.
"""

import argparse
import logging
import math
import os
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from numbers import Number
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from evotree._version import DISTRIBUTION, __version__
from evotree.cli import RETRIED, say
from evotree.files import check_writable

PROCESSES = "processes (1)"
# Options of `fit` that all models would have to know.
NOT_COMPARED = (
    "event",
    "monotonic_cst",
    "sample_weight",
    "class_weight",
    "cost_matrix",
)


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise ValueError(f"{message} (see {self.prog} --help)")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line."""
    argv = sys.argv[1:] if argv is None else argv
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # not for users
            warnings.showwarning = lambda message, *_: say(
                f"evotree: warning: {' '.join(str(message).split())}"
            )
            args = _make_parser(_defaults(argv)).parse_args(argv)
            if args.run is None:
                # Nothing was done: a script whose command got lost has to notice, as with a
                # command that is wrong.
                args.parser.print_help(sys.stderr)
                return 2
            for path in filter(
                None, (getattr(args, name, None) for name in args.files)
            ):
                check_writable(path)
            from evotree.cli import commands

            with logged(getattr(args, "log", None)):
                getattr(commands, args.run)(args)
        sys.stdout.flush()
    except BrokenPipeError:
        # Python flushes standard output once more at exit, which would fail again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except KeyboardInterrupt as error:
        say(f"evotree: interrupted, {str(error) or 'nothing was written'}")
        return 130
    except (ValueError, OSError, MemoryError, ImportError) as error:
        missing = isinstance(error, FileNotFoundError) and error.filename
        message = f"no such file: {missing}" if missing else str(error)
        say(f"evotree: error: {' '.join(message.split())}")
        return 2
    return 0


def _defaults(argv: Sequence[str]) -> dict[str, Any]:
    """Return the classifier's parameters where the help of a command shows them."""
    if argv[:1] != ["fit"] or not {"-h", "--help"} & set(argv):
        return {}
    from evotree.estimators import EvoTreeClassifier

    return EvoTreeClassifier().get_params()


def _make_parser(defaults: Mapping[str, Any]) -> argparse.ArgumentParser:
    parser = _Parser(
        prog="evotree",
        description="Evolve small oblique decision trees, use them and read them.",
        **example("evotree fit --help"),
    )
    version = f"evotree {__version__} (distribution {DISTRIBUTION})"
    parser.add_argument("--version", action="version", version=version)
    table = "a table: CSV with a header row (.csv, .csv.gz), .parquet, .npz, .arff or .libsvm"
    commands = _add_commands(parser)
    _add_fits(commands, table, defaults)
    _add_uses(commands, table)
    _add_comparison(commands, table)
    _add_experiments(commands)
    return parser


def _add_commands(parser: argparse.ArgumentParser) -> Any:
    """Return what takes the commands of a parser, which alone is asked for help."""
    parser.set_defaults(run=None, parser=parser, files=())
    return parser.add_subparsers(title="commands", metavar="COMMAND")


def _add_fits(commands: Any, table: str, defaults: Mapping[str, Any]) -> None:
    """Add the commands that compile and evolve."""
    add_command(
        commands,
        "warmup",
        "warm_up",
        "compile everything now, so that no fit has to",
        "evotree warmup",
    )

    fit = add_command(
        commands,
        "fit",
        "fit",
        "evolve a tree for a table and write a model file",
        'python -c "from sklearn.datasets import load_iris as iris; '
        "iris(as_frame=True).frame.to_csv('iris.csv', index=False)\"",
        "evotree fit iris.csv --target target --out iris.json --report iris.html",
    )
    fit.set_defaults(files=("out", "report", "log"))
    add_log(fit)
    option = fit.add_argument
    option("data", metavar="DATA", help=table)
    option(
        "--event",
        metavar="COLUMN",
        help="a column that says whether an event was seen: the target is its time, or that until "
        "which a row was seen, and its risk is predicted",
    )
    option("--out", metavar="MODEL.json", required=True, help="the model file to write")
    option(
        "--leaves",
        choices=("auto", "linear", "constant"),
        help="what leaves hold: linear models, constants (means, or shares of classes), or "
        "models where they can be for numbers, shares for classes (auto)",
    )
    option(
        "--select",
        metavar="RULE",
        default="chosen",
        help="take another tree of the front: tree, accurate, or complexity<=K, leaves<=K, "
        "terms<=K, size<=K (chosen)",
    )
    option(
        "--test-size",
        metavar="SHARE",
        type=share,
        default=0.0,
        help="share of the rows to hold out and test on, such as 0.2 (none)",
    )
    _add_columns(fit)
    _add_meaning(fit)
    option("--plots", metavar="DIR", help="draw learning curve and tree into a folder")
    option(
        "--report",
        metavar="FILE.html",
        help="write a page about the tree, the others of its front and the run",
    )
    add_table_options(fit)
    add_evolution(fit, defaults)


def _add_columns(command: Any) -> None:
    """Add the options that say what the columns of a table to learn from are."""
    option = command.add_argument
    option("--target", metavar="COLUMN", required=True, help="the column to predict")
    option(
        "--task",
        choices=("auto", "classification", "regression"),
        default="auto",
        help="predict classes or numbers; by default numbers where the target has many (auto)",
    )
    option(
        "--drop",
        metavar="COLUMN",
        nargs="+",
        action="extend",
        default=[],
        help="leave columns out",
    )
    option(
        "--keep",
        metavar="COLUMN",
        nargs="+",
        action="extend",
        default=[],
        help="keep columns that look like numbers of rows, which are left out",
    )
    option(
        "--categorical",
        metavar="COLUMN",
        nargs="+",
        action="extend",
        default=[],
        help="take columns for categories; columns of text are",
    )
    together = command.add_mutually_exclusive_group().add_argument
    together(
        "--group",
        metavar="COLUMN",
        help="a column of what rows belong to, such as a patient: test rows, and all rows held "
        "out, are of whole groups",
    )
    together(
        "--time",
        metavar="COLUMN",
        help="a column of numbers or dates: test rows, and all rows held out, are later than "
        "those trained on",
    )


def _add_meaning(fit_options: Any) -> None:
    """Add the options of `fit` that say what columns, rows and classes mean."""
    option = fit_options.add_argument
    option(
        "--monotonic-cst",
        metavar="COLUMN=SIGN",
        nargs="+",
        type=pair("SIGN", number(int, -1, most=1)),
        help="1 where more in a column may only raise the number, or the share of the second of "
        "two classes, -1 where it may only lower it",
    )
    option("--sample-weight", metavar="COLUMN", help="a column of weights of the rows")
    option(
        "--class-weight",
        metavar="WEIGHT",
        nargs="+",
        type=pair("NUMBER", number(float, 0.0), also="balanced"),
        help="weights of rows: 'balanced', for classes of equal weight, or CLASS=NUMBER each (1)",
    )
    option(
        "--cost-matrix",
        metavar="FILE",
        help="a table of what errors cost: the class, then a column for each predicted class",
    )


def _add_uses(commands: Any, table: str) -> None:
    """Add the commands that take a model file."""

    def add(name: str, run: str, about: str, rest: str) -> Any:
        command = add_command(
            commands, name, run, about, f"evotree {name} iris.json {rest}"
        )
        if name in ("predict", "report"):
            add_table_options(command)
        command.set_defaults(files=("out", "plot"))
        command.add_argument("model", metavar="MODEL.json", help="a model file")
        return command.add_argument

    option = add(
        "predict",
        "predict",
        "predict the target of a table's rows",
        "iris.csv --out predictions.csv",
    )
    option(
        "data",
        metavar="DATA",
        help=f"{table}, with the columns that the model's tree asks for",
    )
    option("--out", metavar="FILE.csv", help="(standard output)")
    option(
        "--event",
        metavar="COLUMN",
        help="as in the fit: it says how well risks predict",
    )
    option(
        "--proba",
        action="store_true",
        help="write the shares of all classes, a column each",
    )

    option = add("show", "show", "print a model's tree as rules", "--plot tree.png")
    option("--plot", metavar="FILE.png", help="draw the tree as well")

    option = add(
        "export",
        "export_model",
        "write a model's tree as rules, drawing or code",
        "--to sql --out iris.sql",
    )
    option(
        "--to",
        choices=("rules", "dot", "python", "c", "onnx", "sql"),
        required=True,
        help="python, c and onnx read encoded features, sql the table's columns",
    )
    option("--out", metavar="FILE", help="(standard output); onnx needs one")
    option(
        "--proba",
        action="store_true",
        help="write code that returns the probabilities of classes; onnx always does",
    )

    option = add(
        "report",
        "report_model",
        "write a page about a model, to look at and to ask",
        "--data iris.csv --out iris.html",
    )
    option(
        "--data",
        metavar="DATA",
        help=f"rows to follow and to measure on: {table} (none)",
    )
    option("--event", metavar="COLUMN", help="as in the fit, of a model of times")
    option("--out", metavar="FILE.html", required=True, help="the page to write")


def _add_comparison(commands: Any, table: str) -> None:
    """Add the command that fits other models beside ours."""
    command = add_command(
        commands,
        "compare",
        "compare_methods",
        "compare the default tree with other models on a table",
        "evotree compare iris.csv --target target --plot iris.png",
    )
    command.set_defaults(files=("plot",), **dict.fromkeys(NOT_COMPARED))
    option = command.add_argument
    option("data", metavar="DATA", help=table)
    _add_columns(command)
    option("--folds", metavar="N", type=number(int, 2), default=5, help="(5)")
    option(
        "--random-state",
        metavar="N",
        type=number(int, 0),
        default=0,
        help="seed of the folds, and of all random draws (0)",
    )
    option("--n-jobs", metavar="N", type=number(int, 1), default=1, help=PROCESSES)
    option("--plot", metavar="FILE.png", help="draw scores against sizes (none)")
    add_table_options(command)


def _add_experiments(commands: Any) -> None:
    """Add the commands that run what a file defines, and report it."""
    run_small = "evotree experiment run docs/experiments/small.toml --out results"
    report_it = "evotree experiment report results --reference EvoTree"
    experiment = commands.add_parser(
        "experiment",
        help="run methods on data sets, and compare them",
        **example(run_small, report_it),
    )
    parts = _add_commands(experiment)
    run = add_command(
        parts,
        "run",
        "run_experiment_file",
        "do the fits that a file defines and that are missing",
        run_small,
    )
    run.set_defaults(files=("log",))
    add_log(run)
    run.add_argument(
        "file", metavar="FILE.toml", type=Path, help="defines the experiment"
    )
    run.add_argument(
        "--out", metavar="RESULTS", type=Path, required=True, help="folder of results"
    )
    run.add_argument(
        "--data-home", metavar="DIR", type=Path, help="folder of the data sets"
    )
    run.add_argument(
        "--n-jobs", metavar="N", type=number(int, 1), default=1, help=PROCESSES
    )
    run.add_argument(
        "--time-limit",
        metavar="S",
        type=number(float, 0.0, strict=True),
        help="seconds that a fit may take",
    )
    run.add_argument(
        "--retry",
        metavar="STATUS",
        nargs="+",
        choices=RETRIED,
        default=[],
        help=f"do fits again that ended so: {', '.join(RETRIED)}",
    )
    report = add_command(
        parts,
        "report",
        "report_experiment",
        "write tables, tests and pictures of the results",
        report_it,
    )
    report.add_argument(
        "out", metavar="RESULTS", type=Path, help="folder of the results"
    )
    for command in (run, report):
        command.add_argument(
            "--reference", metavar="METHOD", help="compare the others with it"
        )
        command.add_argument(
            "--pictures",
            choices=("png", "pdf"),
            default="png",
            help="their format (png)",
        )


def number(
    kind: type,
    least: float,
    strict: bool = False,
    also: str | None = None,
    most: float = math.inf,
) -> Callable[[str], Any]:
    """Return a converter of numbers for argparse."""
    words = "a whole number" if kind is int else "a number"
    words += f" above {least:g}" if strict else f" of at least {least:g}"
    words += f" and at most {most:g}" if most < math.inf else ""

    def convert(text: str) -> Any:
        if text == also:
            return text
        try:
            value = kind(text)
        except ValueError:
            value = math.nan
        is_finite = value < math.inf and value <= most
        if not (is_finite and (value > least or (value == least and not strict))):
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


def pair(
    metavar: str, convert: Callable[[str], Any], also: str | None = None
) -> Callable[[str], tuple[str, Any]]:
    """Return a converter for argparse of NAME=VALUE, or of a word, which has None as value."""

    def convert_pair(text: str) -> tuple[str, Any]:
        if text == also:
            return text, None
        name, sign, value = text.rpartition("=")
        if not sign:
            words = f"{also!r} or " if also else ""
            raise argparse.ArgumentTypeError(f"{text!r} is not {words}NAME={metavar}")
        return name, convert(value)

    return convert_pair


def example(*lines: str) -> dict[str, Any]:
    """Return what a parser is made with whose help ends with lines to copy."""
    return {
        "epilog": "example:\n" + "\n".join(f"  {line}" for line in lines),
        "formatter_class": argparse.RawDescriptionHelpFormatter,
    }


def add_command(
    commands: Any,
    name: str,
    run: str,
    about: str,
    *lines: str,
) -> argparse.ArgumentParser:
    """Add a command that runs a function of `commands`, with lines to copy."""
    command: argparse.ArgumentParser = commands.add_parser(
        name, help=about, **example(*lines)
    )
    command.set_defaults(run=run, files=())  # arguments that name files to be written
    return command


def add_log(command: argparse.ArgumentParser) -> None:
    """Add to a command the file of its log."""
    command.add_argument(
        "--log",
        metavar="FILE",
        help="append what happens to a file, generations and all (none)",
    )


def logged(path: str | None) -> AbstractContextManager[None]:
    """Return a context that appends all that is logged to a file, if one is named."""
    if path is None:
        return nullcontext()
    from evotree.log import log_to_file

    return log_to_file(path, logging.DEBUG)


def add_table_options(command: argparse.ArgumentParser) -> None:
    """Add to a command how its tables are written."""
    option = command.add_argument_group("tables of text").add_argument
    option(
        "--sep",
        metavar="SIGN",
        type=lambda text: {"tab": "\t", "\\t": "\t", "space": " "}.get(text, text),
        choices=(",", ";", "\t", "|", ":", " "),
        help="what separates cells, one of , ; | : tab space (a guess)",
    )
    option(
        "--decimal",
        metavar="SIGN",
        choices=(".", ","),
        help="sign of decimals, . or , (a guess where commas do not separate cells)",
    )
    option(
        "--encoding",
        metavar="NAME",
        help="of the text, such as cp1252 or utf-16 (utf-8)",
    )
    option(
        "--na-values",
        metavar="TEXT",
        nargs="+",
        action="extend",
        default=[],
        help="cells that are missing values, besides empty ones, NA, NaN and nan (none)",
    )


class Option(NamedTuple):
    """An option of the evolution."""

    parameter: str  # of `EvoTreeClassifier.set_params`; after its last two underscores the name
    metavar: str
    convert: Callable[[str], Any]
    text: str
    name: str = ""  # where it is not the parameter's


def _resumed(path: str) -> Any:
    from evotree.engine.config import Checkpoint

    Path(path).stat()  # it is there
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
        "precision",
        "N",
        number(int, 1, also="auto", most=17),
        "significant digits of the numbers in splits",
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
    Option(
        "evolution__shapes",
        "SHAPES",
        lambda text: None if text == "none" else text,
        "auto: effects of columns on numbers may bend, as in 'age above 52'; "
        "quartiles: those on classes, counts and times, too; or none",
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
    command.set_defaults(evolution={option.parameter for option in EVOLUTION}, **SET)
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
