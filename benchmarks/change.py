"""What the mutation of one node costs: it grows with the rows it touches, not with the tree."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import cycle

import numpy as np

from benchmarks.inputs import balanced_tree, make_rows
from benchmarks.measure import Cell, Table, by_turns, stopwatch
from evotree import Dataset
from evotree.operators.structure.splice import partition_tree
from evotree.operators.variation import mutate_nodes
from evotree.rng import uniform

N_STREAMS = 16

NOTES = (
    "Mutation of one node of a balanced tree by `mutate_nodes`, the call from Python included: an "
    "internal node changes its test, so that its rows are routed again down its subtree; a leaf is "
    "split. *Rows* reach the node; *visits* are those rows times the levels that they are routed "
    "down, one projection each. *Whole* is `partition_tree`, all rows routed from the root.",
    "A change copies the tree's arrays and its permutation of the rows (4 bytes a row), which is "
    "what remains at deep nodes. The target is an upper limit of *change / whole*.",
)


def streams_of_test_changes(n: int) -> list[np.ndarray]:
    """Return random states whose next draw makes an internal node change its test."""
    states = (np.array([seed * 2**40 + 1], dtype=np.uint64) for seed in range(100 * n))
    chosen = [state for state in states if uniform(state.copy()) >= 0.5]
    return chosen[:n]


def nodes_of_interest(depth: int) -> dict[str, int]:
    """Return some nodes of a balanced tree's leftmost path; their positions are their depths."""
    places = {"root": 0, "middle": depth // 2, "deepest test": depth - 1, "leaf": depth}
    if places["middle"] == places["deepest test"]:
        del places["middle"]
    return places


def target_of(n_nodes: int, place: str) -> float | None:
    """Return the largest share of the cost of a whole evaluation that a change should have."""
    if place == "root":
        return 1.5
    return 0.1 if place == "deepest test" and n_nodes >= 127 else None


def mutation_of(
    dataset: Dataset,
    nodes: tuple[np.ndarray, ...],
    k: int,
    streams: Iterator[np.ndarray],
) -> Callable[[], object]:
    """Return a function without arguments that mutates node `k`, each time by another stream."""

    def mutate() -> object:
        rows, columns = dataset.rows, (dataset.multiplicity, dataset.spread)
        return mutate_nodes(
            *rows, *columns, *nodes, k, next(streams).copy(), 0.0, 0.5, 5, 0, 0.5
        )

    return mutate


def measure(dataset: Dataset, depth: int, n_rounds: int) -> list[dict[str, Cell]]:
    """Return the rows of the table for one tree."""
    tree = balanced_tree(dataset.X, depth, np.random.default_rng(depth))
    scratch = partial(partition_tree, dataset.rows, *tree, dataset.n_classes)
    nodes = scratch()
    start, end = nodes[4], nodes[5]
    places = nodes_of_interest(depth)
    streams = streams_of_test_changes(N_STREAMS)
    # One round takes every stream once, so that rounds are alike.
    alternatives = {
        place: stopwatch(mutation_of(dataset, nodes, k, cycle(streams)), N_STREAMS)
        for place, k in places.items()
    }
    rounds = by_turns({**alternatives, "whole": stopwatch(scratch, 4)}, n_rounds)
    table = []
    for place, k in places.items():
        n_rows = int(end[k] - start[k])
        levels = max(depth - k, 1)
        seconds = rounds.median(place)
        table.append(
            {
                "nodes": len(tree[2]),
                "place": place,
                "rows": n_rows,
                "visits": n_rows * levels,
                "us": seconds * 1e6,
                "ns / row": seconds * 1e9 / n_rows,
                "ns / visit": seconds * 1e9 / (n_rows * levels),
                "whole us": rounds.median("whole") * 1e6,
                "change / whole": rounds.ratio(place, "whole"),
                "target": target_of(len(tree[2]), place),
            }
        )
    return table


def run(quick: bool = False) -> Table:
    """Measure mutations in trees of several sizes."""
    n_rows, depths = (1_000, (2, 4)) if quick else (20_000, (2, 4, 6, 8))
    dataset = Dataset.from_arrays(*make_rows(n_rows, 16, 4))
    rows = [
        row for depth in depths for row in measure(dataset, depth, 3 if quick else 15)
    ]
    return Table("change", f"one mutation on {n_rows:,} x 16 rows", rows, NOTES)
