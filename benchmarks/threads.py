"""What two threads gain, and that they find the same tree."""

from __future__ import annotations

import time

import numpy as np

from benchmarks.inputs import DENSE, PLAIN, make_rows
from benchmarks.measure import Cell, Table, by_turns
from evotree import Evolution, EvoTreeClassifier, Regularization

SIZES = {1_000: 150, 10_000: 40, 100_000: 10, 400_000: 4}  # rows and generations
QUICK_SIZES = {500: 3, 10_000: 2}

NOTES = (
    "`fit` with `n_jobs=2` against `n_jobs=1`, by turns, without seeds and refinement; *fit* is "
    "the whole call, with validation, sorting of the rows and the first population; *loop* is the "
    "evolution alone, as the logbook's clock has it. Below 80,000 numbers the estimator keeps to "
    "one thread. *Equal* says that both trees are the same, bit for bit. The target is a lower "
    "limit of *loop*.",
)


class Fits:
    """Fits of one estimator, with the evolution's seconds and the tree of the last fit."""

    def __init__(
        self, X: np.ndarray, y: np.ndarray, generations: int, n_jobs: int
    ) -> None:
        self.X, self.y = X, y
        self.estimator = EvoTreeClassifier(
            evolution=Evolution(
                init=None,
                variation=PLAIN,
                refinement=None,
                regularization=Regularization(C=1.0, noise=0.0),
            ),
            **DENSE,
            max_generations=generations,
            size_penalty=1e-4,
            random_state=0,
            n_jobs=n_jobs,
        )
        self.loop_seconds: list[float] = []

    def __call__(self) -> float:
        begin = time.perf_counter()
        self.estimator.fit(self.X, self.y)
        seconds = time.perf_counter() - begin
        self.loop_seconds.append(self.estimator.history_[-1]["seconds"])
        return seconds


def measure(n_rows: int, generations: int, n_rounds: int) -> dict[str, Cell]:
    """Return the row of the table for one number of rows."""
    X, y = make_rows(n_rows, 16, 4)
    one, two = Fits(X, y, generations, 1), Fits(X, y, generations, 2)
    rounds = by_turns({"one": one, "two": two}, n_rounds)
    pairs = zip(one.loop_seconds[1:], two.loop_seconds[1:], strict=True)
    return {
        "rows x features": f"{n_rows:,} x 16",
        "generations": generations,
        "nodes": len(two.estimator.tree_),
        "one thread s": rounds.median("one"),
        "two threads s": rounds.median("two"),
        "fit": rounds.ratio("one", "two"),
        "loop": float(np.median([a / b for a, b in pairs])),
        "target": 1.6 if n_rows >= 100_000 else 0.95,
        "equal": "yes" if one.estimator.tree_ == two.estimator.tree_ else "NO",
    }


def run(quick: bool = False) -> Table:
    """Measure fits on several numbers of rows."""
    sizes = QUICK_SIZES if quick else SIZES
    n_rounds = 1 if quick else 3
    rows = [
        measure(n_rows, generations, n_rounds) for n_rows, generations in sizes.items()
    ]
    return Table("threads", "what two threads gain", rows, NOTES)
