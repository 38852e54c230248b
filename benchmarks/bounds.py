"""What bounds gain a search for the best coefficient of a hyperplane, at nodes of real data."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from benchmarks.inputs import real_dataset
from benchmarks.measure import Cell, Table, by_turns, stopwatch
from evotree.dataset import Dataset
from evotree.fitness.bounded_search import search_line_below
from evotree.fitness.criteria import Criterion
from evotree.fitness.line_search import search_line
from evotree.fitness.node import Node
from evotree.operators.splitters.axis import best_axis_split

NOTES = (
    "A step of OC1 at a node of so many rows: the best value of one coefficient of the best test "
    "of one feature, all coefficients in turn, in microseconds a coefficient. The scan sorts all "
    "rows; the search by bounds sorts those that may make a better split than the present one.",
)


def measure(dataset: Dataset, n_rows: int, criterion: Criterion, quick: bool) -> dict[str, Cell]:
    """Return the row of one node."""
    rows = np.sort(np.random.default_rng(0).permutation(dataset.X.shape[0])[:n_rows])
    X, y = dataset.X[rows], dataset.y[rows]
    node = Node.of(X, y, dataset.sample_weight[rows], dataset.n_classes, int(criterion), 1)
    score, feature, threshold = best_axis_split(node)
    s = X[:, feature] - threshold
    columns = [np.ascontiguousarray(column) for column in X.T]

    def scan() -> None:
        for t in columns:
            search_line(node, s, t)

    def by_bounds() -> None:
        for t in columns:
            search_line_below(node, s, t, score)

    number = 1 if quick else max(1, 20_000 // n_rows)
    rounds = by_turns(
        {"scan": stopwatch(scan, number), "bounds": stopwatch(by_bounds, number)},
        3 if quick else 7,
    )
    return {
        "rows": n_rows,
        "features": X.shape[1],
        "criterion": criterion.name.lower(),
        "scan, us": 1e6 * rounds.median("scan") / X.shape[1],
        "bounds, us": 1e6 * rounds.median("bounds") / X.shape[1],
        "scan / bounds": rounds.ratio("scan", "bounds"),
    }


def run(quick: bool = False, data_home: Path | None = None) -> Table:
    """Measure nodes of real data, of three sizes or more."""
    names = ("digits",) if data_home is None else ("segment", "satimage", "letter")
    sizes = (100, 300, 1000, 3000, 10_000)
    rows: list[dict[str, Cell]] = []
    for name in names[:1] if quick else names:
        dataset = real_dataset(name, data_home)
        for n_rows in sizes[:1] if quick else sizes:
            if n_rows <= dataset.X.shape[0]:
                for criterion in (Criterion.TWOING, Criterion.GINI):
                    rows.append({"data": name, **measure(dataset, n_rows, criterion, quick)})
    return Table("bounds", "the best value of one coefficient", rows, NOTES)
