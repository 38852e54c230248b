"""The command ``evotree experiment``: run what a file defines, and report it.

What a command needs is imported when it runs, so that ``evotree --help`` answers at once.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evotree.cli.arguments import example, number

if TYPE_CHECKING:
    import pandas as pd

RETRIED = ("failed", "timeout", "crashed")
"""Statuses of fits that may be done again."""


def add_commands(commands: Any) -> None:
    """Add the command to those of ``evotree``."""
    run_small = "evotree experiment run docs/experiments/small.toml --out results"
    report_it = "evotree experiment report results --reference EvoTree"
    experiment = commands.add_parser(
        "experiment",
        help="run methods on data sets, and compare them",
        **example(run_small, report_it),
    )
    parts = experiment.add_subparsers(title="commands", metavar="COMMAND", required=True)
    run = parts.add_parser(
        "run", help="do the fits that a file defines and that are missing", **example(run_small)
    )
    run.set_defaults(run=_run)
    run.add_argument("file", metavar="FILE.toml", type=Path, help="defines the experiment")
    run.add_argument("--out", metavar="RESULTS", type=Path, required=True, help="folder of results")
    run.add_argument("--data-home", metavar="DIR", type=Path, help="folder of the data sets")
    run.add_argument("--n-jobs", metavar="N", type=number(int, 1), default=1, help="processes (1)")
    limit = number(float, 0.0, strict=True)
    run.add_argument("--time-limit", metavar="S", type=limit, help="seconds that a fit may take")
    run.add_argument(
        "--retry",
        nargs="+",
        choices=RETRIED,
        default=[],
        metavar="STATUS",
        help=f"do fits again that ended so: {', '.join(RETRIED)}",
    )
    report = parts.add_parser(
        "report", help="write tables, tests and pictures of the results", **example(report_it)
    )
    report.set_defaults(run=_report)
    report.add_argument("out", metavar="RESULTS", type=Path, help="folder of the results")
    for command in (run, report):
        command.add_argument("--reference", metavar="METHOD", help="compare the others with it")
        command.add_argument(
            "--pictures", choices=("png", "pdf"), default="png", help="their format (png)"
        )


def _run(arguments: argparse.Namespace) -> None:
    from evotree.experiments.execution import run_experiment
    from evotree.experiments.experiment import read_experiment

    experiment = read_experiment(arguments.file)
    if arguments.reference not in (None, *experiment.methods):
        allowed = ", ".join(experiment.methods)
        raise ValueError(f"--reference {arguments.reference}: the methods are {allowed}.")
    try:
        runs = run_experiment(
            experiment,
            arguments.out,
            arguments.data_home,
            jobs=arguments.n_jobs,
            time_limit=arguments.time_limit,
            retry=tuple(arguments.retry),
        )
    except KeyboardInterrupt:
        raise KeyboardInterrupt(f"what was done is kept in {arguments.out}") from None
    _tell(runs, arguments.out)
    _write(arguments)


def _tell(runs: pd.DataFrame, folder: Path) -> None:
    """Print how many fits ended how; raise if none is done."""
    counts = runs["status"].value_counts()
    print(", ".join(f"{count:,} {status}" for status, count in counts.items()))
    for status in [status for status in RETRIED if status in counts]:
        first = runs[runs["status"] == status].iloc[0]
        *_, last_line = (first["error"] or "").strip().splitlines() or [""]
        print(f"first {status}: {first['dataset']}, {first['method']}: {last_line}")
    if len(counts) and "done" not in counts:
        raise ValueError(f"no fit was done; the tracebacks are in {folder}.")


def _report(arguments: argparse.Namespace) -> None:
    from evotree.experiments.store import read_runs

    methods = read_runs(arguments.out)["method"].unique()
    if arguments.reference not in (None, *methods):
        raise ValueError(
            f"--reference {arguments.reference}: the methods are {', '.join(methods)}."
        )
    _write(arguments)


def _write(arguments: argparse.Namespace) -> None:
    from evotree.experiments.report import write_report

    for path in write_report(arguments.out, arguments.reference, arguments.pictures):
        print(f"wrote {path}")
