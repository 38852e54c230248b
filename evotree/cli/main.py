"""The command line: ``evotree fit``, ``predict``, ``report`` and others.

Results go to standard output, messages and the progress bar to standard error. A mistake of the
user's ends with one line there and exit status 2. Modules are imported by the command that uses
them, so that ``evotree --help`` answers at once.
"""

import argparse
import logging
import os
import sys
import warnings
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import NoReturn

from evotree._version import DISTRIBUTION, __version__
from evotree.cli import say
from evotree.cli.options import (
    COMMANDS,
    add_commands,
    add_options,
    check_paths,
    search_options,
    with_examples,
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
            args = make_parser(argv).parse_args(argv)
            if args.run is None:
                # Nothing was done: a script whose command got lost has to notice, as with a
                # command that is wrong.
                args.parser.print_help(sys.stderr)
                return 2
            check_paths(vars(args))
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


def make_parser(argv: Sequence[str] = ("fit",)) -> argparse.ArgumentParser:
    """Return the parser of arguments, whose first one is a command, with all options of this."""
    parser = _Parser(
        prog="evotree",
        description="Evolve small oblique decision trees, use them and read them.",
        **with_examples(("evotree fit --help",)),
    )
    version = f"evotree {__version__} (distribution {DISTRIBUTION})"
    parser.add_argument("--version", action="version", version=version)
    parts = add_commands(parser, COMMANDS)
    if "fit" in argv[:1]:
        title = "parameters of the search (none is None of Python; random_state is 0)"
        add_options(parts["fit"].add_argument_group(title), search_options())
    return parser


def logged(path: str | None) -> AbstractContextManager[None]:
    """Return a context that appends all that is logged to a file, if one is named."""
    if path is None:
        return nullcontext()
    from evotree.log import log_to_file

    return log_to_file(path, logging.DEBUG)
