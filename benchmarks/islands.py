"""What a second worker gains islands, and that they find the same tree."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import ExitStack

import numpy as np

from benchmarks.inputs import DENSE, PLAIN, make_rows
from benchmarks.measure import Cell, Table, by_turns, stopwatch
from evotree import Evolution, EvoTreeClassifier, Islands, Regularization

N_ISLANDS = 4
SIZES = {1_000: 40, 10_000: 20}  # rows and generations
QUICK_SIZES = {300: 12}

NOTES = (
    "`fit` with 4 islands of 64 trees that are refined and exchange their best every 10 "
    "generations: one after the other on one thread, on two threads, on two processes that have "
    "been started, by turns. The gains are over one thread. *Equal* says that all trees are the "
    "same, bit for bit. Each epoch sends its island to a process and back, with all rows, which "
    "takes 10 ms for 64 trees on 1,000 rows.",
)


class Fits:
    """Fits on one executor, with the tree of the last."""

    def __init__(
        self, X: np.ndarray, y: np.ndarray, generations: int, executor: Executor | None
    ) -> None:
        self.X, self.y = X, y
        self.estimator = EvoTreeClassifier(
            size_penalty=0.001,
            evolution=Evolution(
                patience=None,
                init=None,
                variation=PLAIN,
                refinement="tao",
                regularization=Regularization(C=1.0, noise=0.0),
                islands=Islands(N_ISLANDS, executor=executor),
            ),
            **DENSE,
            max_generations=generations,
            n_jobs=1,
            random_state=0,
        )

    def __call__(self) -> object:
        return self.estimator.fit(self.X, self.y)


def measure(n_rows: int, generations: int, n_rounds: int) -> dict[str, Cell]:
    """Return the row of the table for one number of rows."""
    X, y = make_rows(n_rows, 16, 4)
    with ExitStack() as stack:
        context = multiprocessing.get_context("forkserver")
        threads = stack.enter_context(ThreadPoolExecutor(2))
        processes = stack.enter_context(ProcessPoolExecutor(2, mp_context=context))
        fits: dict[str, Fits] = {
            name: Fits(X, y, generations, executor)
            for name, executor in (
                ("one", None),
                ("threads", threads),
                ("processes", processes),
            )
        }
        alternatives: dict[str, Callable[[], float]] = {
            name: stopwatch(fit) for name, fit in fits.items()
        }
        rounds = by_turns(alternatives, n_rounds)
    one, *others = (fit.estimator.tree_ for fit in fits.values())
    return {
        "rows x features": f"{n_rows:,} x 16",
        "generations": generations,
        "one thread s": rounds.median("one"),
        "two threads": rounds.ratio("one", "threads"),
        "two processes": rounds.ratio("one", "processes"),
        "equal": "yes" if all(tree == one for tree in others) else "NO",
    }


def run(quick: bool = False) -> Table:
    """Measure fits on several numbers of rows."""
    sizes = QUICK_SIZES if quick else SIZES
    rows = [
        measure(n, generations, 1 if quick else 3) for n, generations in sizes.items()
    ]
    return Table("islands", "what a second worker gains islands", rows, NOTES)
