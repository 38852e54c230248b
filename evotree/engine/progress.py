"""What a search shows while it runs, and how many seconds each phase takes."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tqdm.auto import tqdm

from evotree._jit import compile_seconds
from evotree.engine.evolution import Evolution

_DELAY = 2.0  # seconds before a bar appears on its own


def is_watched() -> bool:
    """Return whether somebody may be looking: on a terminal, or in a notebook."""
    stream = sys.stderr
    return "ipykernel" in sys.modules or (stream is not None and stream.isatty())


class Progress:
    """A bar for the present phase of a search, and the seconds of all phases.

    Parameters
    ----------
    verbose : int or "auto"
        Above 0 a bar is shown at once, 0 shows none. ``"auto"`` shows one after two seconds on a
        terminal or in a notebook.

    Attributes
    ----------
    seconds : dict of str to float
        Seconds of each phase. What numba compiles in a phase counts as ``"compiling"``.
    """

    def __init__(self, verbose: int | str) -> None:
        self.seconds: dict[str, float] = {"compiling": 0.0}
        is_auto = isinstance(verbose, str)
        self._options: dict[str, Any] = {
            "disable": not is_watched() if is_auto else not verbose,
            "delay": _DELAY if is_auto else 0.0,
        }
        self._bar: tqdm | None = None

    @contextmanager
    def phase(self, name: str, total: int | None = None, unit: str = "it") -> Iterator[None]:
        """Show a phase while it lasts, and count its seconds.

        Parameters
        ----------
        name : str
            What is done.
        total : int, optional
            Number of its steps, where it is known.
        unit : str, default="it"
            What a step is called.
        """
        begin, compiled = time.perf_counter(), compile_seconds()
        self._bar = tqdm(desc=name, total=total, unit=unit, **self._options)
        try:
            yield
        finally:
            self._bar.close()
            self._bar = None
            compiling = compile_seconds() - compiled
            took = time.perf_counter() - begin
            self.seconds["compiling"] += min(compiling, took)
            self.seconds[name] = self.seconds.get(name, 0.0) + max(0.0, took - compiling)

    def step(self) -> None:
        """Count one more step of the phase."""
        if self._bar is not None:
            self._bar.update()

    def show(self, run: Evolution) -> None:
        """Show the generation, the best quality and size of a run; a callback."""
        if self._bar is not None:
            best = run.best
            self._bar.set_postfix(quality=f"{best.quality:.4f}", nodes=len(best), refresh=False)
            self._bar.update(run.generation - self._bar.n)
