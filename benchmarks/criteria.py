"""What it costs to find the best threshold of a projection, by criterion."""

from __future__ import annotations

from functools import partial

import numpy as np

from benchmarks.measure import Table, by_turns, stopwatch
from evotree._jit import kernel
from evotree.fitness.node import Criterion, Node, line_search, make_split_scratch

NOTES = (
    "One exact search along a line (`search_line`): every row changes sides somewhere, the places "
    "are sorted, and the criterion is evaluated between all of them. Nanoseconds a row, beside "
    "those of copying as many bytes as a row has there: a distance, its change, a label and a "
    "weight, 28 bytes.",
)


@kernel
def search_line(node, s, t):
    """The inner kernel, for Python."""
    return line_search(node, s, t, make_split_scratch(node))


def make_node(n_rows: int, n_classes: int, criterion: Criterion) -> Node:
    """Return a node of random rows; a criterion of targets gives it targets."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, n_classes, n_rows).astype(np.int32)
    is_class = criterion < Criterion.SQUARED_ERROR
    return Node.of(
        rng.normal(size=(n_rows, 1)),
        y if is_class else y + rng.normal(size=n_rows),
        np.ones(n_rows),
        n_classes if is_class else 0,
        int(criterion),
        1,
    )


def run(quick: bool = False) -> Table:
    """Measure every criterion on nodes of three sizes."""
    sizes = (500,) if quick else (500, 5_000, 50_000)
    n_classes = 5
    rows = []
    for n_rows in sizes:
        rng = np.random.default_rng(1)
        s, t = rng.normal(size=n_rows), rng.normal(size=n_rows)
        number = max(1, (2_000 if quick else 200_000) // n_rows)
        alternatives = {
            criterion.name.lower(): stopwatch(
                partial(search_line, make_node(n_rows, n_classes, criterion), s, t),
                number,
            )
            for criterion in Criterion
        }
        source, target = (
            np.ones(28 * n_rows, dtype=np.uint8),
            np.empty(28 * n_rows, dtype=np.uint8),
        )
        alternatives["copy"] = stopwatch(partial(np.copyto, target, source), number)
        rounds = by_turns(alternatives, 3 if quick else 7)
        rows += [
            {
                "rows": n_rows,
                "criterion": criterion.name.lower(),
                "classes": n_classes if criterion < Criterion.SQUARED_ERROR else None,
                "ns / row": rounds.median(criterion.name.lower()) * 1e9 / n_rows,
                "copy, ns / row": rounds.median("copy") * 1e9 / n_rows,
                "times copy": rounds.ratio(criterion.name.lower(), "copy"),
            }
            for criterion in Criterion
        ]
    return Table("criteria", "the best of all thresholds", rows, NOTES)
