"""The choice of a split's features beside the dense fit at the same node."""

from __future__ import annotations

import numpy as np

from benchmarks.inputs import make_rows
from benchmarks.measure import Cell, Table, by_turns, stopwatch
from evotree.fitness.node import Criterion, Node
from evotree.operators.splitters.linear import WIDTHS, Linear, Sparse

TARGET = 3.0

NOTES = (
    "One node of so many rows of two overlapping groups, standardized features, C = 1, logistic "
    "loss, at most 20 Newton steps, from a cold start. *Dense* is the classifier on all features; "
    "the others are `Sparse` by its `widths`, in units of that, the exact best split on one "
    "feature included: *any* looks at all widths from all features down to one, and swaps terms. "
    "The target is an upper limit of *any*.",
)


def measure(m: int, d: int, quick: bool) -> dict[str, Cell]:
    """Return the row of one node."""
    X, y = make_rows(m, d, 2, separation=0.3)
    X = np.ascontiguousarray((X - X.mean(axis=0)) / X.std(axis=0))
    node = Node.of(X, y.astype(np.int32), np.ones(m), 2, int(Criterion.ERROR), 1)
    limits = {"loss": "logistic", "max_iter": 20, "tol": 1e-3}
    dense = Linear(**limits)
    start = np.zeros(d)
    number = 1 if quick else max(1, 40_000 // m // d)
    alternatives = {"dense": stopwatch(lambda: dense.refit(node, start, 0.0), number)}
    for widths in WIDTHS:
        splitter = Sparse(widths, term_cost=0.001 * m, **limits)
        alternatives[widths] = stopwatch(
            lambda splitter=splitter: splitter.refit(node, start, 0.0),  # type: ignore[misc]
            number,
        )
    rounds = by_turns(alternatives, 3 if quick else 7)
    row: dict[str, Cell] = {
        "rows": m,
        "features": d,
        "dense, ms": 1e3 * rounds.median("dense"),
    }
    for widths in WIDTHS:
        row[f"{widths} / dense"] = rounds.ratio(widths, "dense")
    row["target"] = TARGET
    return row


def run(quick: bool = False) -> Table:
    """Measure nodes of four sizes."""
    sizes = ((100, 8),) if quick else ((200, 8), (1000, 18), (4000, 36), (20_000, 64))
    rows = [measure(m, d, quick) for m, d in sizes]
    return Table(
        "sparse", "a split whose features are chosen, beside the dense one", rows, NOTES
    )
