"""What searching lines by bounds gains OC1 and CART-LC, at nodes of real data."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import numpy as np

from benchmarks.inputs import real_dataset
from benchmarks.measure import Cell, Table
from benchmarks.start import in_new_process
from evotree.fitness.criteria import Criterion
from evotree.fitness.node import Node
from evotree.operators.splitters.cart_lc import CartLC
from evotree.operators.splitters.oc1 import OC1
from evotree.rng import make_streams

SIZES = (100, 300, 1000, 3000, 10_000)
SPLITTERS = {"OC1": OC1(), "CART-LC": CartLC()}

# With this limit of rows all searches are scans; the constants are compiled into the kernels, so
# that each limit needs a process and a cache of its own.
NEVER = 10**9
ALWAYS = 32

NOTES = (
    "One split of a node of so many rows, in milliseconds of the processor. The scan sorts all "
    "rows at every step; the search by bounds sorts those that may make a better split than the "
    "present one, and finds the same split. Here it is used for all nodes of more than 32 rows; "
    "the splitters leave smaller nodes, where it does not pay, to the scan.",
)


def milliseconds(name: str, data_home: Path | None, sizes: tuple[int, ...]) -> dict[str, float]:
    """Return the time of one split, by size, criterion and splitter; the least of three."""
    dataset = real_dataset(name, data_home)
    times: dict[str, float] = {}
    for n_rows in (n for n in sizes if n <= dataset.X.shape[0]):
        rows = np.sort(np.random.default_rng(0).permutation(dataset.X.shape[0])[:n_rows])
        arrays = dataset.X[rows], dataset.y[rows], dataset.sample_weight[rows]
        for criterion in (Criterion.TWOING, Criterion.GINI):
            node = Node.of(*arrays, dataset.n_classes, int(criterion), 1)
            for splitter, search in SPLITTERS.items():
                least = np.inf
                for _ in range(3):  # the first one may compile
                    stream = make_streams(0, 0, 1)[0]
                    begin = time.process_time()
                    search(node, stream)
                    least = min(least, time.process_time() - begin)
                times[f"{n_rows} {criterion.name.lower()} {splitter}"] = 1e3 * least
    return times


def with_limit(limit: int, name: str, data_home: Path | None) -> dict[str, float]:
    """Return `milliseconds` where only nodes of more rows than a limit are searched by bounds."""
    home = None if data_home is None else str(data_home)
    code = f"""
from pathlib import Path
import json
import evotree.fitness.bounded_search as search
search._FEW_ROWS = search._FEW_ROWS_GINI = {limit}
from benchmarks import bounds
home = {home!r}
print(json.dumps(bounds.milliseconds({name!r}, home and Path(home), bounds.SIZES)))
"""
    with tempfile.TemporaryDirectory() as cache:
        return in_new_process(code, Path(cache))


def run(quick: bool = False, data_home: Path | None = None) -> Table:
    """Measure nodes of real data, of three sizes or more; the quick run compiles nothing again."""
    rows: list[dict[str, Cell]] = []
    for name in ("digits",) if data_home is None else ("segment", "satimage", "letter"):
        if quick:
            bounds = scan = milliseconds(name, data_home, SIZES[:1])
        else:
            bounds, scan = (with_limit(limit, name, data_home) for limit in (ALWAYS, NEVER))
        for key, ms in bounds.items():
            size, criterion, splitter = key.split()
            rows.append(
                {
                    "data": name,
                    "rows": int(size),
                    "criterion": criterion,
                    "splitter": splitter,
                    "scan, ms": scan[key],
                    "bounds, ms": ms,
                    "scan / bounds": scan[key] / ms,
                }
            )
    return Table("bounds", "what bounds gain OC1 and CART-LC", rows, NOTES)
