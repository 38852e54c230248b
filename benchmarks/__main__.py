"""``python -m benchmarks [--only NAME ...] [--quick] [--data-home DIR] [--out FILE]``.

``python -m benchmarks gate [--base REV]`` measures beside a commit before, and fails if slower.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from threadpoolctl import threadpool_limits

from benchmarks import default_fit, gate, loop, memory, scale, start
from benchmarks.measure import Table, machine

BENCHMARKS: Mapping[str, Callable[[bool, Path | None], Table]] = {
    "loop": loop.run,
    "fit": default_fit.run,
    "start": start.run,
    "memory": memory.run,
    "scale": scale.run,
}


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
    text = f"# Speed\n\nBy `python -m benchmarks`. {machine()}\n"
    print(text, flush=True)
    tables = []
    for name in options.only or BENCHMARKS:
        # Threads are those of the matrix products.
        with threadpool_limits(1):
            tables.append(BENCHMARKS[name](options.quick, options.data_home))
        text += "\n" + tables[-1].to_markdown()
        print(tables[-1].to_markdown(), flush=True)
    if options.out is not None:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text(text, encoding="utf-8")
    return tables


if __name__ == "__main__":
    if sys.argv[1:2] == ["gate"]:
        sys.exit(gate.main(sys.argv[2:]))
    main()
