"""Where the seconds of a default fit of `EvoTreeClassifier` go, by stage and by kind of work."""

from __future__ import annotations

import cProfile
import pstats
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from benchmarks.inputs import training_rows
from benchmarks.measure import Cell, Table
from evotree import Evolution, EvoTreeClassifier, Regularization
from evotree.engine.populations import first_population
from evotree.engine.search import RowSearch
from evotree.operators import refinement, variation
from evotree.operators.initialization import growth
from evotree.operators.splitters import base, dipole, linear
from evotree.operators.structure import splice

NAMES = ("vehicle", "sonar", "digits", "segment", "satimage")

KINDS: dict[str, tuple[ModuleType, ...]] = {
    "linear splits %": (linear,),
    "reduced problems %": (refinement,),
    "axis splits %": (base,),
    "routing %": (splice, growth),
    "variation %": (variation, dipole),
}
"""Modules whose own time is a kind of work."""

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

    def stage(function: Callable[..., Any]) -> float:
        """Return the seconds inside a function and all that it calls."""
        code = function.__code__
        return functions[code.co_filename, code.co_firstlineno, code.co_name][3]

    seeds = stage(first_population)
    row: dict[str, Cell] = {
        "leaves": model.tree_.n_leaves,
        "seconds": seconds,
        "choice": stage(RowSearch.choose),
        "seeds": seeds,
        "evolution": stage(RowSearch._evolve) - seeds,
    }
    for kind, modules in KINDS.items():
        files = {module.__file__ for module in modules}
        own = sum(stat[2] for key, stat in functions.items() if key[0] in files)
        row[kind] = 100.0 * own / seconds
    return row


def run(quick: bool = False, data_home: Path | None = None) -> Table:
    """Profile the default fit, on digits and what the data folder has."""
    rows = []
    for name in ("digits",) if data_home is None else NAMES:
        X, y = training_rows(name, data_home)
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
