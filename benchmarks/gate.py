"""This tree beside a commit before it, as ratios: ``python -m benchmarks gate [--base REV]``.

It fails where a ratio is above the limit. The two are measured by turns, each in a process of its
own with a cache of its own; a ratio above the limit is measured again before it counts.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.measure import Cell, Table, by_turns
from benchmarks.start import FITS, ROOT, in_new_process

LIMIT = 1.15
TRIES = 3
FIRST = "first fit"
PAIRS = {"loop": 15, "fit": 7, FIRST: 3}

# Reads what to do, a line each, and writes the seconds of the processor that it took.
WORKER = """
import sys
import time
from sklearn.datasets import load_breast_cancer, load_iris
from evotree import Dataset, EvoTreeClassifier, evolve, make_toolbox

toolbox = make_toolbox(
    Dataset.from_arrays(*load_breast_cancer(return_X_y=True)),
    size_penalty=0.002,
    random_state=0,
)
population = toolbox.population(n=64)
for line in sys.stdin:
    begin = time.process_time()
    count = 1
    if line == "loop\\n":
        run = evolve(population, toolbox, max_generations=100)
        count = sum(run.logbook.select("nevals")[1:])
    else:
        EvoTreeClassifier(random_state=0).fit(*load_iris(return_X_y=True))
    print((time.process_time() - begin) / count, flush=True)
"""

NOTES = (
    "Seconds: *loop* of the processor for an offspring evaluated, on breast_cancer; *fit* of the "
    "processor for the default fit of iris; *first fit* by the clock, of a new process with an "
    "empty cache. Ratios are medians over pairs measured by turns.",
)


def git(*arguments: str) -> subprocess.CompletedProcess[bytes]:
    """Run git in the repository."""
    return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True)


def start_worker(stack: ExitStack, root: Path) -> Callable[[str], float]:
    """Start a process that imports the package of a folder; return what has it measure."""
    variables = {"NUMBA_CACHE_DIR": stack.enter_context(TemporaryDirectory())}
    worker: Any = stack.enter_context(
        subprocess.Popen(
            [sys.executable, "-c", WORKER],
            cwd=root,
            env=os.environ | variables,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
    )

    def measure(name: str) -> float:
        if name == FIRST:
            with TemporaryDirectory() as empty:
                return float(in_new_process(FITS["classes"], Path(empty), root))
        print(name, file=worker.stdin, flush=True)
        return float(worker.stdout.readline())

    return measure


def compare(
    name: str, sides: Mapping[str, Callable[[], float]], n: int
) -> dict[str, Cell]:
    """Return the row of the table for one measure."""
    pairs: list[tuple[float, float]] = []
    for _ in range(TRIES):
        rounds = by_turns(sides, n)
        pairs += zip(rounds.seconds["base"], rounds.seconds["now"], strict=True)
        ratio = median(now / base for base, now in pairs)
        if ratio <= LIMIT:
            break
    base, now = map(median, zip(*pairs, strict=True))
    return {
        "measure": name,
        "pairs": len(pairs),
        "base": base,
        "now": now,
        "ratio": ratio,
    }


def run(base: Path, pairs: Mapping[str, int] = PAIRS) -> Table:
    """Measure the package of this tree beside that of another folder."""
    with ExitStack() as stack:
        sides = {"base": start_worker(stack, base), "now": start_worker(stack, ROOT)}
        rows = [
            compare(name, {side: partial(sides[side], name) for side in sides}, n)
            for name, n in pairs.items()
        ]
    return Table("gate", f"seconds beside the base; limit {LIMIT}", rows, NOTES)


def main(arguments: Sequence[str]) -> int:
    """Print the ratios; return 1 where one is above the limit."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks gate", description=__doc__
    )
    parser.add_argument("--base", default="HEAD~1", help="a revision of git (HEAD~1)")
    base = parser.parse_args(arguments).base
    if git("rev-parse", "--verify", "--quiet", f"{base}^{{commit}}").returncode:
        print(f"gate: skipped, this clone has no commit {base}")
        return 0
    if not git("diff", "--quiet", base, "--", "evotree").returncode:
        print(f"gate: skipped, the package is that of {base}")
        return 0
    with TemporaryDirectory() as folder:
        files = git("archive", base, "evotree").stdout
        subprocess.run(["tar", "-x", "-C", folder], input=files, check=True)
        table = run(Path(folder))
    print(table.to_markdown())
    slow = [row["measure"] for row in table.rows if float(row["ratio"] or 0) > LIMIT]
    print(f"gate: {f'slower than {base}: {slow}' if slow else 'passed'}")
    return int(bool(slow))
