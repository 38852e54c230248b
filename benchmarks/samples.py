"""What `max_samples` saves, and what it costs in accuracy."""

from __future__ import annotations

import time

from benchmarks.inputs import make_rows
from benchmarks.measure import Cell, Table
from evotree import Evolution, EvoTreeClassifier

FITS = ((50_000, None), (50_000, 10_000), (50_000, 2_500), (1_000_000, 10_000))
QUICK_FITS = ((400, None), (400, 50))
N_TEST = 20_000

NOTES = (
    "One default fit each, on two threads, the choice of settings and the seeds included; *test* "
    "is the accuracy on 20,000 other rows. The evolution begins with so many rows as the second "
    "column says and ends with all.",
)


def measure(n_rows: int, max_samples: int | None, generations: int) -> dict[str, Cell]:
    """Return the row of the table for one fit."""
    X, y = make_rows(n_rows + N_TEST, 16, 4)
    estimator = EvoTreeClassifier(
        evolution=Evolution(max_samples=max_samples),
        max_generations=generations,
        n_jobs=2,
        random_state=0,
    )
    begin = time.perf_counter()
    estimator.fit(X[:n_rows], y[:n_rows])
    return {
        "rows x features": f"{n_rows:,} x 16",
        "max_samples": "all" if max_samples is None else f"{max_samples:,}",
        "seconds": time.perf_counter() - begin,
        "test": estimator.score(X[n_rows:], y[n_rows:]),
        "leaves": estimator.tree_.n_leaves,
    }


def run(quick: bool = False) -> Table:
    """Measure fits with and without samples."""
    generations = 5 if quick else 50
    rows = [measure(*fit, generations) for fit in (QUICK_FITS if quick else FITS)]
    return Table("samples", "fits that begin on a sample", rows, NOTES)
