"""How much memory a fit takes, and that it stays within the bound that the guide states.

``python -m benchmarks.memory ROWS FEATURES POPULATION THREADS`` prints what one fit takes, as JSON.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from benchmarks.inputs import DENSE, PLAIN, make_rows
from benchmarks.measure import Cell, Table
from evotree import Evolution, EvoTreeClassifier, Regularization
from evotree.experiments.execution import PeakMemory

ROOT = Path(__file__).resolve().parent.parent
SIZES = (
    (100_000, 16, 64, 1),
    (100_000, 50, 8, 1),
    (100_000, 50, 8, 8),
    (200_000, 50, 32, 2),
    (400_000, 4, 64, 1),
    (400_000, 4, 128, 2),
    (400_000, 64, 16, 1),
    (1_000_000, 16, 64, 2),
)
QUICK_SIZES = ((100_000, 8, 8, 1),)
GENERATIONS = 8

NOTES = (
    "The most memory that a fit takes beyond what the process held before it, the user's own rows "
    "included; in fresh processes and units of 2**20 bytes; no noisy copies of the rows, random "
    "first trees. *Front* is the number of trees in the Pareto front. The bound is rows x (16 "
    "features + 12 population + 4 front + 150) bytes, and 32 MiB and 16 MiB for each thread: the "
    "rows in raw and in standard units, a permutation of the rows for each parent, each offspring "
    "and each member of the front, room for one tree in the making, and what threads hold.",
)


def bound(
    n_rows: int, n_features: int, population_size: int, n_threads: int, n_kept: int
) -> float:
    """Return the most that a fit takes, in units of 2**20 bytes."""
    each = 16 * n_features + 12 * population_size + 4 * n_kept + 150
    return n_rows * each / 2**20 + 32 + 16 * n_threads


def measure(
    n_rows: int, n_features: int, population_size: int, n_threads: int
) -> dict[str, float]:
    """Fit once in this process; return the memory that it took and the size of the front."""
    estimator = EvoTreeClassifier(
        size_penalty=0.0003,
        evolution=Evolution(
            population_size=population_size,
            init=None,
            variation=PLAIN,
            refinement=None,
            regularization=Regularization(C=1.0, noise=0.0),
        ),
        **DENSE,
        random_state=0,
        n_jobs=n_threads,
    )
    X, y = make_rows(n_rows, n_features, 4)
    estimator.set_params(max_generations=2).fit(X[:1000], y[:1000])  # compiles
    before = PeakMemory().megabytes()
    peak = PeakMemory()
    estimator.set_params(max_generations=GENERATIONS).fit(X, y)
    return {
        "megabytes": peak.megabytes() - before,
        "front": len(estimator.pareto_front_),
    }


def in_new_process(*size: int) -> dict[str, float]:
    """Fit once in a new process."""
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.memory", *map(str, size)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    figures: dict[str, float] = json.loads(done.stdout)
    return figures


def run(quick: bool = False) -> Table:
    """Measure fits of several sizes."""
    rows: list[dict[str, Cell]] = []
    for size in QUICK_SIZES if quick else SIZES:
        n_rows, n_features, population_size, n_threads = size
        figures = in_new_process(*size)
        most = bound(*size, int(figures["front"]))
        rows.append(
            {
                "rows x features": f"{n_rows:,} x {n_features}",
                "population": population_size,
                "threads": n_threads,
                "front": int(figures["front"]),
                "MiB": figures["megabytes"],
                "bound": most,
                "MiB / bound": figures["megabytes"] / most,
                "bytes a row": figures["megabytes"] * 2**20 / n_rows,
            }
        )
    return Table("memory", "what a fit takes", rows, NOTES)


if __name__ == "__main__":
    print(json.dumps(measure(*map(int, sys.argv[1:]))))
