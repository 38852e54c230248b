"""What a fit takes where rows lie in partitions of Dask, beside one of rows in memory.

``python -m benchmarks.scale KIND ROWS`` fits once and prints what that took, as JSON: kernels that
are compiled and peaks of memory are of a process.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.measure import Cell, Table
from benchmarks.start import ROOT
from evotree import Evolution, EvoTreeClassifier, Regularization

N_FEATURES, N_CLASSES = 16, 4
N_PARTITION = 100_000
N_SAMPLE = 20_000
KINDS = ("memory", "partitions")

NOTES = (
    "Thirty generations. *Memory* has all rows as one array, of which samples that grow from "
    "20,000 are searched; *partitions* of 100,000 rows are made again in each pass, by the same "
    "process, and 20,000 rows are searched. *Accuracy* is by the rows searched. "
    "*MiB* is the most that the process held, the libraries included.",
)


def partition(number: int) -> pd.DataFrame:
    """Return one partition: classes by the signs of two projections, a tenth of them wrong."""
    rng = np.random.default_rng(number)
    X = rng.normal(size=(N_PARTITION, N_FEATURES))
    y = 2 * (X[:, 0] + X[:, 1] > 0.2) + (X[:, 2] - 0.5 * X[:, 3] > 0.0)
    drawn = rng.integers(N_CLASSES, size=N_PARTITION)
    table = pd.DataFrame(X).add_prefix("x")
    return table.assign(y=np.where(rng.random(N_PARTITION) < 0.1, drawn, y))


def measure(kind: str, n_rows: int) -> dict[str, Cell]:
    """Fit once in this process; return what it took."""
    import dask
    import dask.dataframe as dd

    from evotree.dask import fit

    model = EvoTreeClassifier(
        size_penalty=0.001,
        term_penalty=0.0001,
        max_generations=30,
        evolution=Evolution(
            max_samples=N_SAMPLE, regularization=Regularization(C=1.0, noise=0.0)
        ),
        random_state=0,
        probability="leaf",
    )
    numbers = range(n_rows // N_PARTITION)
    begin = time.perf_counter()
    if kind == "memory":
        table = pd.concat(map(partition, numbers), ignore_index=True)
        model.fit(table.drop(columns="y").to_numpy(), table["y"].to_numpy())
    else:
        rows = dd.from_map(partition, numbers)
        with dask.config.set(scheduler="synchronous"):
            fit(model, rows.drop(columns="y"), rows["y"], n_rows=N_SAMPLE)
    return {
        "rows": n_rows,
        "kind": kind,
        "seconds": time.perf_counter() - begin,
        "MiB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "accuracy": model.pareto_front_[model.pareto_front_.chosen].quality,
        "nodes": len(model.tree_),
    }


def run(quick: bool = False, data_home: Path | None = None) -> Table:
    """Measure each kind in processes of their own."""
    rows = []
    for n_rows in (N_PARTITION,) if quick else (N_PARTITION, 10 * N_PARTITION):
        for kind in KINDS:
            command = [sys.executable, "-m", "benchmarks.scale", kind, str(n_rows)]
            done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, check=True)
            rows.append(json.loads(done.stdout))
    return Table("scale", "rows in partitions", rows, NOTES)


if __name__ == "__main__":
    print(json.dumps(measure(sys.argv[1], int(sys.argv[2]))))
