"""The command ``evotree experiment``: run what a file defines, and report it.

What a command needs is imported when it runs, so that ``evotree --help`` answers at once.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from evotree.cli.arguments import add_command, example, number

RETRIED = ("failed", "timeout", "crashed")  # statuses of fits that may be done again


def add_commands(commands: Any) -> None:
    """Add the command to those of ``evotree``."""
    run_small = "evotree experiment run docs/experiments/small.toml --out results"
    report_it = "evotree experiment report results --reference EvoTree"
    about = "run methods on data sets, and compare them"
    experiment = commands.add_parser("experiment", help=about, **example(run_small, report_it))
    parts = experiment.add_subparsers(title="commands", metavar="COMMAND", required=True)
    about = "do the fits that a file defines and that are missing"
    run = add_command(parts, "run", _run, about, run_small)
    run.add_argument("file", metavar="FILE.toml", type=Path, help="defines the experiment")
    run.add_argument("--out", metavar="RESULTS", type=Path, required=True, help="folder of results")
    run.add_argument("--data-home", metavar="DIR", type=Path, help="folder of the data sets")
    run.add_argument("--n-jobs", metavar="N", type=number(int, 1), default=1, help="processes (1)")
    limit = number(float, 0.0, strict=True)
    run.add_argument("--time-limit", metavar="S", type=limit, help="seconds that a fit may take")
    retry: dict[str, Any] = {"nargs": "+", "choices": RETRIED, "default": []}
    about = f"do fits again that ended so: {', '.join(RETRIED)}"
    run.add_argument("--retry", metavar="STATUS", help=about, **retry)
    about = "write tables, tests and pictures of the results"
    report = add_command(parts, "report", _report, about, report_it)
    report.add_argument("out", metavar="RESULTS", type=Path, help="folder of the results")
    for command in (run, report):
        command.add_argument("--reference", metavar="METHOD", help="compare the others with it")
        command.add_argument(
            "--pictures", choices=("png", "pdf"), default="png", help="their format (png)"
        )


def _run(arguments: argparse.Namespace) -> None:
    from evotree.experiments.execution import run_experiment
    from evotree.experiments.experiment import read_experiment

    experiment, out = read_experiment(arguments.file), arguments.out
    _check_reference(arguments.reference, experiment.methods)
    how = {"jobs": arguments.n_jobs, "time_limit": arguments.time_limit}
    how["retry"] = tuple(arguments.retry)
    try:
        runs = run_experiment(experiment, out, arguments.data_home, **how)
    except KeyboardInterrupt:
        raise KeyboardInterrupt(f"what was done is kept in {out}") from None
    counts = runs["status"].value_counts()
    print(", ".join(f"{count:,} {status}" for status, count in counts.items()))
    for status in [status for status in RETRIED if status in counts]:
        first = runs[runs["status"] == status].iloc[0]
        *_, last_line = (first["error"] or "").strip().splitlines() or [""]
        print(f"first {status}: {first['dataset']}, {first['method']}: {last_line}")
    if len(counts) and "done" not in counts:
        raise ValueError(f"no fit was done; the tracebacks are in {out}.")
    _write(arguments)


def _report(arguments: argparse.Namespace) -> None:
    from evotree.experiments.store import read_runs

    _check_reference(arguments.reference, read_runs(arguments.out)["method"].unique())
    _write(arguments)


def _check_reference(reference: str | None, methods: Iterable[str]) -> None:
    """Raise a ValueError where no method has the name."""
    if reference not in (None, *methods):
        raise ValueError(f"--reference {reference}: the methods are {', '.join(methods)}.")


def _write(arguments: argparse.Namespace) -> None:
    from evotree.experiments.report import write_report

    for path in write_report(arguments.out, arguments.reference, arguments.pictures):
        print(f"wrote {path}")
