"""How the seconds of a default fit grow with the rows, the columns and the classes."""

from __future__ import annotations

import time

import numpy as np
from sklearn.datasets import make_classification

from benchmarks.measure import Cell, Table
from evotree import EvoTreeClassifier

BASE = {"rows": 1_000, "columns": 16, "classes": 2}
DOUBLED = {"rows": 1_000, "columns": 8, "classes": 2}
"""Where the doubling of each begins; the others stay as in `BASE`."""
N_DOUBLINGS = 4

NOTES = (
    "Default fits of `EvoTreeClassifier` to draws of `make_classification`, each class one cloud "
    "in eight of the columns; one thread, compiled before. One size is doubled again and again, "
    "the others are 1,000 rows, 16 columns and 2 classes. The exponent is the slope of logarithms.",
)


def seconds_of(rows: int, columns: int, classes: int, max_generations: int) -> float:
    """Return the seconds of a default fit to rows that are drawn."""
    X, y = make_classification(
        rows,
        columns,
        n_informative=min(columns, 8),
        n_redundant=0,
        n_classes=classes,
        n_clusters_per_class=1,
        random_state=0,
    )
    model = EvoTreeClassifier(max_generations=max_generations, random_state=0)
    begin = time.perf_counter()
    model.fit(X, y)
    return time.perf_counter() - begin


def run(quick: bool = False) -> Table:
    """Time fits while one size is doubled."""
    max_generations, rows = 2 if quick else 50, []
    seconds_of(100, 8, 3, max_generations)  # compiles
    for name, begin in DOUBLED.items():
        sizes = [begin * 2**k for k in range(2 if quick else N_DOUBLINGS + 1)]
        took = [
            seconds_of(**{**BASE, name: n}, max_generations=max_generations)
            for n in sizes
        ]
        row: dict[str, Cell] = {"doubled": name, "from": sizes[0], "to": sizes[-1]}
        row |= {f"seconds, {k + 1}": one for k, one in enumerate(took)}
        row["exponent"] = float(np.polyfit(np.log(sizes), np.log(took), 1)[0])
        rows.append(row)
    return Table("growth", "how the seconds of a default fit grow", rows, NOTES)
