"""How long a new process takes until it has evolved a tree, with and without numba's cache."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

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
begin = time.perf_counter()
from sklearn.datasets import load_iris
from evotree import {estimator}
X, y = load_iris(return_X_y=True)
{estimator}(random_state=0).fit({rows})
print(time.perf_counter() - begin)
"""

KERNELS = """
import json
import time
from numba.core import event
import evotree._jit

own, begun = {{}}, []


class Clock(event.Listener):
    def on_start(self, event):
        begun.append([time.process_time(), 0.0])

    def on_end(self, event):
        begin, inside = begun.pop()
        whole = time.process_time() - begin
        if begun:
            begun[-1][1] += whole
        function = event.data["dispatcher"].py_func
        of = "" if function.__module__.startswith("evotree.") else " of numba"
        seconds = own.setdefault(function.__qualname__.split(".")[0] + of, [])
        seconds.append(whole - inside)


event.register("numba:compile", Clock())
{fit}
print(json.dumps(own))
"""

FITS = {
    "classes": FIT.format(estimator="EvoTreeClassifier", rows="X, y"),
    "targets": FIT.format(estimator="EvoTreeRegressor", rows="X[:, :3], X[:, 3]"),
}

IMPORTS = (
    ("import numpy", "import numpy", None),
    ("import evotree", "import evotree", 0.1),
    ("import EvoTreeClassifier", "from evotree import EvoTreeClassifier", None),
)

NOTES = (
    "Seconds inside fresh processes, the start of the interpreter not counted. The default fit, of "
    "iris by its classes and of its last feature by the others, runs twice in new processes on one "
    "folder for numba's cache, empty at first, imports counted: the first one compiles, beside a "
    "second process, the second must not, so that the number of files stays. Target is an upper "
    "limit. Compiling is the processor's time for each function without those that it calls, the "
    "longest of one process that compiles alone.",
)


def in_new_process(
    code: str, cache: Path | None = None, root: Path = ROOT, **variables: str
) -> Any:
    """Run code that prints its seconds, or other figures as JSON, and return them."""
    environment = os.environ | variables
    if cache is not None:
        environment["NUMBA_CACHE_DIR"] = str(cache)
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=root,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(done.stdout)


def n_files(folder: Path) -> int:
    """Count the files in a folder and the folders in it."""
    return sum(path.is_file() for path in folder.rglob("*"))


def fits() -> list[dict[str, Cell]]:
    """Fit each task twice on one cache."""
    rows: list[dict[str, Cell]] = []
    for task, code in FITS.items():
        with tempfile.TemporaryDirectory() as name:
            cache = Path(name)
            for step, target in (
                ("first fit, empty cache", 12.0),
                ("second fit", None),
            ):
                before = n_files(cache)
                seconds = in_new_process(code, cache)
                written = n_files(cache) - before
                step = f"{step}, {task}"
                rows.append(
                    {
                        "step": step,
                        "seconds": seconds,
                        "target": target,
                        "written": written,
                    }
                )
    return rows


def kernels(n_shown: int = 15) -> list[dict[str, Cell]]:
    """Say how long numba's compiler is at work on the kernels of each task's default fit."""
    rows: list[dict[str, Cell]] = []
    for task, code in FITS.items():
        fit = code.replace("print(", "str(")
        with tempfile.TemporaryDirectory() as name:
            compiled = in_new_process(
                KERNELS.format(fit=fit), Path(name), EVOTREE_NO_WARMUP="1"
            )
        seconds = {kernel: sum(own) for kernel, own in compiled.items()}
        steps = {f"{len(compiled)} functions": sum(seconds.values())}
        for kernel in sorted(seconds, key=seconds.__getitem__, reverse=True)[:n_shown]:
            steps[f"{kernel}, {len(compiled[kernel])} times"] = seconds[kernel]
        rows += [
            {
                "step": f"compiling {step}, {task}",
                "seconds": one,
                "target": None,
                "written": None,
            }
            for step, one in steps.items()
        ]
    return rows


def run(quick: bool = False, data_home: Path | None = None) -> Table:
    """Measure imports and first fits; the fits, which compile, are left out of the quick run."""
    alternatives = {
        step: partial(in_new_process, IMPORT.format(statement=statement))
        for step, statement, _ in IMPORTS
    }
    rounds = by_turns(alternatives, 1 if quick else 5)
    rows: list[dict[str, Cell]] = [
        {
            "step": step,
            "seconds": rounds.median(step),
            "target": target,
            "written": None,
        }
        for step, _, target in IMPORTS
    ]
    return Table(
        "start", "seconds to begin", rows if quick else rows + fits() + kernels(), NOTES
    )
