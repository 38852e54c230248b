"""How long a new process takes until it has evolved a tree, with and without numba's cache."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path

from benchmarks.measure import Cell, Table, by_turns

ROOT = Path(__file__).resolve().parent.parent

IMPORT = """
import time
begin = time.perf_counter()
{statement}
print(time.perf_counter() - begin)
"""

FIT = """
import time
import numpy as np
from evotree import EvoTreeClassifier
rng = np.random.default_rng(0)
X = rng.normal(size=(300, 4))
y = (X[:, 0] + X[:, 1] > 0.0) + (X[:, 2] > 0.5)
begin = time.perf_counter()
EvoTreeClassifier(max_generations=20, random_state=0).fit(X, y).predict(X)
print(time.perf_counter() - begin)
"""

IMPORTS = (
    ("import numpy", "import numpy", None),
    ("import evotree", "import evotree", 0.1),
    ("import EvoTreeClassifier", "from evotree import EvoTreeClassifier", None),
)

NOTES = (
    "Seconds inside fresh processes, the start of the interpreter not counted. The fit (300 x 4 "
    "rows, 20 generations, and a prediction) runs twice in new processes on one folder for numba's "
    "cache, empty at first: the first one compiles, the second must not, so that the number of "
    "files stays. Target is an upper limit.",
)


def in_new_process(code: str, cache: Path | None = None) -> float:
    """Run code that prints its seconds."""
    environment = dict(os.environ)
    if cache is not None:
        environment["NUMBA_CACHE_DIR"] = str(cache)
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return float(json.loads(done.stdout))


def n_files(folder: Path) -> int:
    """Count the files in a folder and the folders in it."""
    return sum(path.is_file() for path in folder.rglob("*"))


def fits() -> list[dict[str, Cell]]:
    """Fit twice on one cache."""
    rows: list[dict[str, Cell]] = []
    with tempfile.TemporaryDirectory() as name:
        cache = Path(name)
        for step, target in (("first fit, empty cache", 20.0), ("second fit, filled cache", 1.0)):
            before = n_files(cache)
            seconds = in_new_process(FIT, cache)
            written = n_files(cache) - before
            rows.append({"step": step, "seconds": seconds, "target": target, "written": written})
    return rows


def run(quick: bool = False) -> Table:
    """Measure imports and first fits; the fits, which compile, are left out of the quick run."""
    alternatives = {
        step: partial(in_new_process, IMPORT.format(statement=statement))
        for step, statement, _ in IMPORTS
    }
    rounds = by_turns(alternatives, 1 if quick else 5)
    rows: list[dict[str, Cell]] = [
        {"step": step, "seconds": rounds.median(step), "target": target, "written": None}
        for step, _, target in IMPORTS
    ]
    return Table("start", "seconds to begin", rows if quick else rows + fits(), NOTES)
