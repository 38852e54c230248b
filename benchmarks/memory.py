"""How much memory a fit takes, and that it stays within the bound that the guide states.

``python -m benchmarks.memory ROWS FEATURES CLASSES POPULATION THREADS SECONDS`` prints what one fit
takes, as JSON; with 0 seconds one without noisy copies of the rows, from random first trees. With
no classes it is to numbers, with one to times to an event.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple
from unittest.mock import patch

import numpy as np
from sklearn.base import clone

from benchmarks.inputs import PLAIN, make_rows
from benchmarks.measure import Cell, Table
from benchmarks.start import ROOT
from evotree import (
    Evolution,
    EvoTreeClassifier,
    EvoTreeRegressor,
    EvoTreeSurvival,
    Individual,
    Regularization,
)
from evotree.engine.populations import MAX_COPIES_OF_ROW
from evotree.engine.problem import LEAST_ROWS
from evotree.experiments.execution import forget_peak_memory, peak_memory


class Size(NamedTuple):
    """What a fit is of."""

    n_rows: int
    n_features: int
    n_classes: int = 4
    population_size: int = 64
    n_threads: int = 1
    seconds: int = 0  # of a fit as it is by default; 0 for a plain one


SIZES = (
    Size(100_000, 16),
    Size(100_000, 50, population_size=8),
    Size(100_000, 50, population_size=8, n_threads=8),
    Size(200_000, 50, population_size=32, n_threads=2),
    Size(400_000, 4),
    Size(400_000, 4, population_size=128, n_threads=2),
    Size(400_000, 64, population_size=16),
    Size(1_000_000, 16, n_threads=2),
    Size(500, 1_000, n_classes=2, seconds=60),
    Size(500, 20_000, n_classes=2, seconds=60),
    Size(500, 20_000, n_classes=0, seconds=20),
    Size(50_000, 4, n_classes=1, seconds=20),
    Size(3_000, 20, n_classes=300, seconds=60),
    Size(2_000, 300, n_classes=10, seconds=60),
    Size(100_000, 16, seconds=60),
)
QUICK_SIZES = (Size(100_000, 8, population_size=8),)

NOTES = (
    "The most memory that a fit takes beyond what the process held before it, the user's own rows "
    "included; in fresh processes and units of 2**20 bytes. Those with a limit of seconds are fits "
    "as they are by default; the others have no noisy copies of the rows, and random first trees. "
    "*Front* is the number of trees in the Pareto front, *nodes* those of the largest tree of the "
    "front and of all generations: first trees are grown out, and many times as large as those of "
    "the front. The bound is rows x (32 features + 16 classes + 12 population + 4 front + 150) "
    "bytes, where below 3,000 rows noisy copies count, up to four of each; trees x nodes x "
    "(features + classes) x 8 bytes, where trees are two populations and the front; and 32 MiB and "
    "16 MiB for each thread: the rows in raw and in standard units, those that a split is fitted "
    "to twice, a permutation of the rows for each parent, each offspring and each member of the "
    "front, room for one tree in the making, and what threads hold.",
)


def bound(size: Size, n_kept: int, n_nodes: int) -> float:
    """Return the most that a fit takes, in units of 2**20 bytes."""
    n_rows, width = size.n_rows, size.n_features + size.n_classes
    if size.seconds and n_rows < LEAST_ROWS:
        n_rows *= 1 + min(MAX_COPIES_OF_ROW, round(LEAST_ROWS / n_rows))
    each = 32 * size.n_features + 16 * size.n_classes
    each += 12 * size.population_size + 4 * n_kept + 150
    trees = 8 * (2 * size.population_size + n_kept) * n_nodes * width
    return (n_rows * each + trees) / 2**20 + 32 + 16 * size.n_threads


def measure(size: Size) -> dict[str, float]:
    """Fit once in this process; return the memory that it took, and the size of the front."""
    kinds = {0: EvoTreeRegressor, 1: EvoTreeSurvival}
    kind = kinds.get(size.n_classes, EvoTreeClassifier)
    estimator = kind(random_state=0, n_jobs=size.n_threads)
    if size.seconds:
        estimator.set_params(time_limit=size.seconds)
    else:
        estimator.set_params(
            size_penalty=0.0003,
            term_penalty=0.0,
            precision=None,
            evolution=Evolution(
                population_size=size.population_size,
                init=None,
                variation=PLAIN,
                refinement=None,
                regularization=Regularization(C=1.0, noise=0.0),
            ),
            max_generations=8,
        )
    X, y = make_rows(size.n_rows, size.n_features, max(size.n_classes, 4))
    if size.n_classes < 2:
        y = (y + 1.0) * (0.5 + X[:, 1] % 1.0)
    if size.n_classes == 1:
        y = np.column_stack([X[:, 0] > -1.0, y])
    few = clone(estimator).set_params(max_generations=2, time_limit=None)
    few.fit(X[:1000, :20], y[:1000])  # compiles
    sizes: list[int] = []
    clone_tree = Individual.clone

    def counted(tree: Individual) -> Individual:
        sizes.append(len(tree))
        return clone_tree(tree)

    forget_peak_memory()
    before = peak_memory()
    # All trees are cloned that breed, those of the choice of hyperparameters included.
    with patch.object(Individual, "clone", counted):
        estimator.fit(X, y)
    megabytes = peak_memory() - before
    front = estimator.pareto_front_
    return {
        "megabytes": megabytes,
        "front": len(front),
        "nodes": max(*sizes, *map(len, front)),
    }


def in_new_process(size: Size) -> dict[str, float]:
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


def run(quick: bool = False, data_home: Path | None = None) -> Table:
    """Measure fits of several sizes."""
    rows: list[dict[str, Cell]] = []
    for size in QUICK_SIZES if quick else SIZES:
        figures = in_new_process(size)
        most = bound(size, int(figures["front"]), int(figures["nodes"]))
        rows.append(
            {
                "rows x features": f"{size.n_rows:,} x {size.n_features:,}",
                "classes": size.n_classes,
                "population": size.population_size,
                "threads": size.n_threads,
                "seconds": size.seconds or "",
                "front": int(figures["front"]),
                "nodes": int(figures["nodes"]),
                "MiB": figures["megabytes"],
                "bound": most,
                "MiB / bound": figures["megabytes"] / most,
            }
        )
    return Table("memory", "what a fit takes", rows, NOTES)


if __name__ == "__main__":
    print(json.dumps(measure(Size(*map(int, sys.argv[1:])))))
