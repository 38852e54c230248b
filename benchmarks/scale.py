"""What fits take where rows lie in partitions of Dask, beside fits in memory.

``python -m benchmarks.scale [--rows N ...] [--kinds ...] [--workers N ...]``: each fit in a process
of its own, since compiled kernels and peaks of memory are of a process.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from evotree import Evolution, EvoTreeClassifier, Regularization

N_FEATURES, N_CLASSES = 16, 4
N_PARTITION = 100_000
PARAMETERS = {
    "size_penalty": 0.001,
    "term_penalty": 0.0001,
    "max_generations": 30,
    "evolution": Evolution(
        max_samples=20_000, regularization=Regularization(C=1.0, noise=0.0)
    ),
    "random_state": 0,
    "probability": "leaf",
    "verbose": 0,
}


def rows_of(number: int, n_rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Return one partition: classes by the signs of two projections, a tenth of them wrong."""
    rng = np.random.default_rng(number)
    X = rng.normal(size=(n_rows, N_FEATURES))
    y = 2 * (X[:, 0] + X[:, 1] > 0.2) + (X[:, 2] - 0.5 * X[:, 3] > 0.0)
    return X, np.where(
        rng.random(n_rows) < 0.1, rng.integers(N_CLASSES, size=n_rows), y
    )


def sizes(n_rows: int) -> list[int]:
    """Return the numbers of rows of the partitions."""
    whole, rest = divmod(n_rows, N_PARTITION)
    return [N_PARTITION] * whole + [rest] * (rest > 0)


def write_parquet(folder: Path, n_rows: int) -> int:
    """Write a file for each partition; return the bytes that the rows take in memory."""
    import pandas as pd

    folder.mkdir(parents=True, exist_ok=True)
    for number, n in enumerate(sizes(n_rows)):
        path = folder / f"{number:05}.parquet"
        if not path.exists():
            X, y = rows_of(number, n)
            table = pd.DataFrame(
                X, columns=[f"x{j}" for j in range(N_FEATURES)]
            ).assign(y=y)
            table.to_parquet(path)
    return n_rows * (N_FEATURES + 1) * 8


def one_fit(
    kind: str, n_rows: int, n_workers: int, folder: Path, memory: str
) -> dict[str, Any]:
    """Fit, and return what it took."""
    model = EvoTreeClassifier(**PARAMETERS)
    begin, cpu = time.perf_counter(), time.process_time()
    if kind == "memory":
        parts = [rows_of(*one) for one in enumerate(sizes(n_rows))]
        X, y = (
            np.concatenate([x for x, _ in parts]),
            np.concatenate([y for _, y in parts]),
        )
        del parts
        model.fit(X, y)
        quality = model.score(X, y)
    elif kind == "arrays":
        fit_arrays(model, n_rows)
        quality = model.pareto_front_[model.pareto_front_.chosen].quality
    else:
        fit_parquet(model, folder / str(n_rows), n_workers, memory)
        quality = model.pareto_front_[model.pareto_front_.chosen].quality
    phases = model.seconds_
    evolving = phases["evolving"] + phases.get("counting leaves", 0.0)
    # Of workers that have ended, too.
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    return {
        "kind": kind,
        "rows": n_rows,
        "workers": n_workers if kind == "parquet" else 0,
        "seconds": time.perf_counter() - begin,
        "generations a second": PARAMETERS["max_generations"] / evolving,
        "cpu": time.process_time() - cpu + ended.ru_utime + ended.ru_stime,
        "peak MiB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "quality": quality,
        "nodes": len(model.tree_),
        "compiling": phases["compiling"],
        "phases": {name: round(one, 1) for name, one in phases.items()},
    }


def fit_arrays(model: EvoTreeClassifier, n_rows: int) -> None:
    """Fit to an array of Dask that is made again in each pass, by this process."""
    import dask
    import dask.array as da

    made = [dask.delayed(rows_of, nout=2)(*one) for one in enumerate(sizes(n_rows))]
    shapes = zip(made, sizes(n_rows), strict=True)
    X, y = [], []
    for (part, labels), n in shapes:
        X.append(da.from_delayed(part, (n, N_FEATURES), dtype=np.float64))
        y.append(da.from_delayed(labels, (n,), dtype=np.int64))
    with dask.config.set(scheduler="synchronous"):
        model.fit(da.concatenate(X).persist(), da.concatenate(y).persist())


def fit_parquet(
    model: EvoTreeClassifier, folder: Path, n_workers: int, memory: str
) -> None:
    """Fit to files of Parquet on workers of one thread with so much memory each."""
    import dask.dataframe as dd
    from distributed import Client, LocalCluster

    with (
        LocalCluster(
            n_workers=n_workers,
            threads_per_worker=1,
            memory_limit=memory,
            dashboard_address=None,
        ) as cluster,
        Client(cluster),
    ):
        table = dd.read_parquet(folder)
        model.fit(table.drop(columns="y"), table["y"])


def main() -> None:
    """Run the fits one after the other, and print a line of JSON for each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, nargs="*", default=[100_000, 1_000_000])
    parser.add_argument(
        "--kinds", nargs="*", default=["memory", "arrays"], help="or parquet"
    )
    parser.add_argument(
        "--workers", type=int, nargs="*", default=[2], help="that read Parquet"
    )
    parser.add_argument("--memory", default="800MiB", help="of each worker")
    parser.add_argument("--folder", type=Path, default=Path("rows.parquet"))
    parser.add_argument("--one", nargs=3, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.one:
        kind, n_rows, n_workers = args.one
        figures = one_fit(kind, int(n_rows), int(n_workers), args.folder, args.memory)
        print(json.dumps(figures))
        return
    for kind in args.kinds:
        for n in args.rows:
            if kind == "parquet":
                n_bytes = write_parquet(args.folder / str(n), n)
                print(json.dumps({"bytes": n_bytes}), flush=True)
            for n_workers in args.workers if kind == "parquet" else [0]:
                command = [sys.executable, "-m", "benchmarks.scale"]
                command += ["--folder", str(args.folder), "--memory", args.memory]
                command += ["--one", kind, str(n), str(n_workers)]
                subprocess.run(command, check=True)


if __name__ == "__main__":
    main()
