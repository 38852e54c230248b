"""How long it takes from a clone to the report of a first tree: ``python -m benchmarks.newcomer``.

It is none of the other benchmarks: pip fetches the libraries by the network.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from sklearn.datasets import load_breast_cancer

from benchmarks.measure import Table, machine

ROOT = Path(__file__).resolve().parent.parent
FIT = ("fit", "cells.csv", "--target", "diagnosis", "--out", "cells.json")
OPTIONS = ("--test-size", "0.2", "--report", "cells.html")
OWN_CACHES = ("NUMBA_CACHE_DIR", "PYTHONPATH", "EVOTREE_NO_WARMUP")


def run() -> Table:
    """Clone, install and fit as a newcomer does, without any cache."""
    with tempfile.TemporaryDirectory() as name:
        home = Path(name)
        data = load_breast_cancer(as_frame=True)
        cells = data.data.assign(diagnosis=data.target_names[data.target])
        cells.to_csv(home / "cells.csv", index=False)
        programs = home / ".venv" / ("Scripts" if os.name == "nt" else "bin")
        steps = {
            "git clone": (
                "git",
                "clone",
                "--quiet",
                "--depth",
                "1",
                ROOT.as_uri(),
                "evotree",
            ),
            "python -m venv .venv": (sys.executable, "-m", "venv", ".venv"),
            "pip install .": (
                programs / "pip",
                "install",
                "--no-cache-dir",
                "./evotree",
            ),
            "evotree fit, the first": (programs / "evotree", *FIT, *OPTIONS),
            "evotree fit, the second": (programs / "evotree", *FIT, *OPTIONS),
        }
        environment = {
            key: text for key, text in os.environ.items() if key not in OWN_CACHES
        }
        seconds = {}
        for step, command in steps.items():
            begin = time.perf_counter()
            subprocess.run(
                command,
                cwd=home,
                env=environment,
                check=True,
                stdout=subprocess.DEVNULL,
            )
            seconds[step] = time.perf_counter() - begin
    seconds["from the clone to the first report"] = sum(list(seconds.values())[:-1])
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else None
    return Table(
        "newcomer",
        "from a clone to a report",
        [{"step": step, "seconds": taken} for step, taken in seconds.items()],
        [f"{machine()} Mean load of the last minute: {load}."],
    )


if __name__ == "__main__":
    print(run().to_markdown())
