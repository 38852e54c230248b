"""What a search shows while it runs, and how many seconds each phase takes."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from tqdm.auto import tqdm

from evotree._jit import compile_seconds, is_cached, told_of_compiling
from evotree.engine.evolution import Run

_DELAY = 2.0  # seconds before a bar appears on its own


def is_watched() -> bool:
    """Return whether somebody may be looking: on a terminal, or in a notebook."""
    stream = sys.stderr
    return "ipykernel" in sys.modules or (stream is not None and stream.isatty())


class Progress:
    """A bar for the present phase of a search, and the seconds of all phases."""

    def __init__(self, verbose: int | str) -> None:
        self.seconds: dict[str, float] = {"compiling": 0.0}
        is_auto = isinstance(verbose, str)
        self._delay = _DELAY if is_auto else 0.0
        self._is_off = not is_watched() if is_auto else not verbose
        self._begin = time.perf_counter()
        self._bar: tqdm | None = None
        self._inside = 0.0  # seconds of the phases inside the present one

    @contextmanager
    def phase(
        self, name: str, total: int | None = None, unit: str = "", stays: bool = True
    ) -> Iterator[None]:
        """Show a phase while it lasts, and count its seconds.

        Where there is no `total`, what was done is counted if it has a `unit`.
        """
        begin = time.perf_counter()
        compiled = self.seconds["compiling"] - compile_seconds()
        outer = self._bar
        before = self._inside
        counted = "{desc}: {unit} {n_fmt}, {elapsed}" if unit else "{desc}: {elapsed}"
        shape = counted if total is None else None
        self._bar = tqdm(
            desc=name,
            total=total,
            unit=unit,
            delay=max(0.0, self._delay - (begin - self._begin)),
            leave=stays,
            bar_format=shape,
            disable=self._is_off,
        )
        self._inside = 0.0
        try:
            with told_of_compiling(partial(self._tell_compiling, shape)):
                yield
        finally:
            self._bar.close()
            took = time.perf_counter() - begin
            # Phases inside this one have counted what they compiled.
            compiling = compiled + compile_seconds() - self.seconds["compiling"]
            compiling = min(max(0.0, compiling), max(0.0, took - self._inside))
            self.seconds["compiling"] += compiling
            alone = max(0.0, took - self._inside - compiling)
            self.seconds[name] = self.seconds.get(name, 0.0) + alone
            self._bar, self._inside = outer, before + took

    def step(self) -> None:
        """Count one more step of the phase."""
        if self._bar is not None:
            self._bar.update()

    def show(self, run: Run) -> None:
        """Show the generation, and the quality and size of the best tree; a callback."""
        if self._bar is not None:
            best = run.best
            shown = {
                "quality": f"{best.quality:.4f}",
                "nodes": len(best),
                "terms": best.n_terms,
            }
            self._bar.set_postfix(shown, refresh=False)
            self._bar.update(run.generation - self._bar.n)

    def _tell_compiling(self, shape: str | None, compiles: bool) -> None:
        """Say that the compiler is at work: nothing else may happen for many seconds."""
        bar = self._bar
        if (
            bar is None
            or self._is_off
            or time.perf_counter() - self._begin < self._delay
        ):
            return
        # To read the cache is not told apart: that is over before this text is read.
        often = "once" if is_cached() else "in every process"
        said = f"compiling kernels, {often}, about 15 seconds: {{elapsed}}"
        bar.bar_format = said if compiles else shape
        if compiles:
            bar.refresh()
