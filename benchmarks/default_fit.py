"""Where the seconds of a default fit of `EvoTreeClassifier` go, by stage and by kind of work."""

from __future__ import annotations

import cProfile
import pstats
import time
from pathlib import Path
from typing import Any

from benchmarks.greedy import first_fold
from benchmarks.measure import Cell, Table
from evotree import Evolution, EvoTreeClassifier, Regularization

NAMES = ("vehicle", "sonar", "digits", "segment", "satimage")

KINDS = {
    "linear splits %": ("linear.py",),
    "reduced problems %": ("refinement.py",),
    "routing %": ("splice.py", "partition.py", "growth.py"),
    "variation %": ("genetic.py", "dipole.py"),
}
"""Files whose own time is a kind of work."""

NOTES = (
    "The training rows of the first of five folds; one thread, compiled before. *Choice* is the "
    "cross-validation of penalties, *seeds* the first population after it, *evolution* the "
    "rest; all in seconds. Kinds of work are shares of the whole, by the time inside of the "
    "functions of their files; what is left is Python between them. The profile itself costs some "
    "of the time.",
)

QUICK = Regularization(C=1.0)


def profile_fit(X: Any, y: Any, **parameters: Any) -> dict[str, Cell]:
    """Return what a fit takes, as a whole, by stages and by kinds of work."""
    model = EvoTreeClassifier(random_state=0, **parameters)
    model.fit(X, y)
    profiler = cProfile.Profile()
    begin = time.perf_counter()
    profiler.runcall(model.fit, X, y)
    seconds = time.perf_counter() - begin
    functions = pstats.Stats(profiler).stats  # type: ignore[attr-defined]

    def stage(file: str, function: str) -> float:
        """Return the seconds inside a function and all that it calls."""
        return sum(
            stat[3] for key, stat in functions.items() if is_in(key, file, function)
        )

    def is_in(key: tuple[str, int, str], file: str, function: str) -> bool:
        return Path(key[0]).name == file and key[2] == function

    seeds = stage("toolbox.py", "init_population")
    row: dict[str, Cell] = {
        "leaves": model.tree_.n_leaves,
        "seconds": seconds,
        "choice": stage("search.py", "choose"),
        "seeds": seeds,
        "evolution": stage("search.py", "evolve") - seeds,
    }
    for kind, files in KINDS.items():
        own = sum(
            stat[2] for key, stat in functions.items() if Path(key[0]).name in files
        )
        row[kind] = 100.0 * own / seconds
    return row


def run(quick: bool = False, data_home: Path | None = None) -> Table:
    """Profile the default fit, on digits and what the data folder has."""
    rows = []
    for name in ("digits",) if data_home is None else NAMES:
        X, _, y, _ = first_fold(name, data_home)
        if quick:
            X, y = X[:200], y[:200]
        row: dict[str, Cell] = {
            "data": name,
            "rows x features": f"{len(X):,} x {X.shape[1]}",
        }
        row |= profile_fit(
            X, y, **({"evolution": Evolution(regularization=QUICK)} if quick else {})
        )
        rows.append(row)
    return Table("fit", "where the seconds of a default fit go", rows, NOTES)
