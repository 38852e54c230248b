"""``python -m benchmarks [--only NAME ...] [--quick] [--data-home DIR] [--out FILE]``.

``python -m benchmarks gate [--base REV]`` measures beside a commit before, and fails if slower.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

from threadpoolctl import threadpool_limits

from benchmarks import (
    change,
    criteria,
    default_fit,
    explain,
    gate,
    greedy,
    growth,
    islands,
    linear_fit,
    loop,
    memory,
    million,
    predict,
    sparse,
    start,
    threads,
    workers,
)
from benchmarks.measure import Table, machine

BENCHMARKS: Mapping[str, Callable[..., Table]] = {
    "loop": loop.run,
    "change": change.run,
    "predict": predict.run,
    "start": start.run,
    "threads": threads.run,
    "islands": islands.run,
    "workers": workers.run,
    "million": million.run,
    "memory": memory.run,
    "criteria": criteria.run,
    "linear_fit": linear_fit.run,
    "sparse": sparse.run,
    "explain": explain.run,
    "fit": default_fit.run,
    "growth": growth.run,
    "axis": greedy.run_axis,
    "oc1": greedy.run_oc1,
    "large": greedy.run_large,
}
ON_REAL_DATA = ("loop", "fit", "oc1", "large")
MANY_THREADS = ("large",)


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Return the options of the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--only", nargs="+", choices=BENCHMARKS, help="run these alone")
    parser.add_argument(
        "--quick", action="store_true", help="small sizes, to see that all runs"
    )
    parser.add_argument("--data-home", type=Path, help="folder of the real data sets")
    parser.add_argument(
        "--out", type=Path, help="Markdown file to write, for example speed.md"
    )
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> list[Table]:
    """Run the benchmarks, print their tables as they are done, and return them."""
    options = parse(arguments)
    head = f"# Speed\n\nBy `python -m benchmarks`. {machine()}\n"
    print(head, flush=True)
    tables, text = [], head
    for name in options.only or BENCHMARKS:
        begin = time.perf_counter()
        run = BENCHMARKS[name]
        if name in ON_REAL_DATA:
            run = partial(run, data_home=options.data_home)
        # Threads are those of the matrix products.
        with threadpool_limits(None if name in MANY_THREADS else 1):
            tables.append(run(quick=options.quick))
        text += "\n" + tables[-1].to_markdown()
        print(tables[-1].to_markdown(), flush=True)
        print(f"({name} took {time.perf_counter() - begin:.0f} s)\n", flush=True)
    if options.out is not None:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text(text, encoding="utf-8")
    return tables


if __name__ == "__main__":
    if sys.argv[1:2] == ["gate"]:
        sys.exit(gate.main(sys.argv[2:]))
    main()
