"""Timing by turns, and tables in Markdown.

Machines are noisy and their speed drifts, so alternatives are never timed one after the other but
by turns, A B A B, and what is reported is the median of the rounds; a ratio is the median of the
rounds' ratios.
"""

from __future__ import annotations

import gc
import os
import platform
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from statistics import median

Cell = str | int | float | None


def stopwatch(function: Callable[[], object], number: int = 1) -> Callable[[], float]:
    """Return a function that calls another `number` times and returns the seconds of one call."""

    def run() -> float:
        begin = time.perf_counter()
        for _ in range(number):
            function()
        return (time.perf_counter() - begin) / number

    return run


@dataclass
class Rounds:
    """Seconds of some alternatives, one value for each round.

    Attributes
    ----------
    seconds : dict of str to list of float
        By the name of the alternative.
    """

    seconds: dict[str, list[float]] = field(default_factory=dict)

    def median(self, name: str) -> float:
        """Return the median seconds of an alternative."""
        return median(self.seconds[name])

    def ratio(self, slow: str, fast: str) -> float:
        """Return how many times as long `slow` takes as `fast`, the median over the rounds."""
        pairs = zip(self.seconds[slow], self.seconds[fast], strict=True)
        return median(a / b for a, b in pairs)


def by_turns(alternatives: Mapping[str, Callable[[], float]], n_rounds: int) -> Rounds:
    """Run alternatives by turns.

    Parameters
    ----------
    alternatives : mapping of str to callable
        Each runs once and returns its seconds; see `stopwatch`.
    n_rounds : int, at least 1
        How many times each runs, after one run that is not counted.

    Returns
    -------
    Rounds
        What was measured.
    """
    for run in alternatives.values():
        run()
    rounds = Rounds({name: [] for name in alternatives})
    gc.collect()
    for _ in range(n_rounds):
        for name, run in alternatives.items():
            rounds.seconds[name].append(run())
    return rounds


@dataclass
class Table:
    """A question, its answer in rows, and what the reader must know.

    Attributes
    ----------
    name : str
        Name of the benchmark, as ``--only`` takes it.
    title : str
        The question.
    rows : list of dict
        Values by column; the columns are those of the first row.
    notes : sequence of str
        Paragraphs below the table.
    """

    name: str
    title: str
    rows: list[dict[str, Cell]]
    notes: Sequence[str] = ()

    def to_markdown(self) -> str:
        """Return the table as text."""
        columns = list(self.rows[0])
        cells = [[show(row[column]) for column in columns] for row in self.rows]
        lines = [
            f"## {self.name}: {self.title}",
            "",
            f"| {' | '.join(columns)} |",
            "|" + "---|" * len(columns),
            *(f"| {' | '.join(row)} |" for row in cells),
        ]
        for note in self.notes:
            lines += ["", note]
        return "\n".join(lines) + "\n"


def show(value: Cell) -> str:
    """Return a value of a table as text, a number with three digits that matter."""
    if value is None:
        return "-"
    if isinstance(value, float):
        rounded = float(f"{value:.3g}")
        if rounded < 1000.0:
            return f"{rounded:#.3g}".rstrip(".")
        value = int(rounded)
    return f"{value:,}" if isinstance(value, int) else value


def machine() -> str:
    """Describe the machine and the versions that the figures depend on."""
    processor = platform.processor()
    listing = Path("/proc/cpuinfo")
    if listing.exists():
        lines = listing.read_text(encoding="utf-8").splitlines()
        names = [
            line.partition(":")[2].strip()
            for line in lines
            if line.startswith("model name")
        ]
        processor = names[0] if names else processor
    cores = (
        len(os.sched_getaffinity(0))
        if hasattr(os, "sched_getaffinity")
        else os.cpu_count()
    )
    libraries = ", ".join(
        f"{name} {version(name)}" for name in ("numpy", "numba", "scikit-learn")
    )
    return (
        f"{platform.system()} {platform.machine()}, {processor or 'unknown processor'}, "
        f"{cores} cores, Python {platform.python_version()}, {libraries}."
    )
