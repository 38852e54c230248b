"""How many generations a second evolve on a million rows, and what a pass over these takes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial

import numpy as np
from deap import base

from benchmarks.inputs import PLAIN, make_rows
from benchmarks.loop import POPULATION, block
from benchmarks.measure import Table, by_turns, stopwatch
from evotree import Dataset, Individual, evolve, make_toolbox
from evotree.operators.structure.splice import make_individual

N_ROWS, N_FEATURES, N_CLASSES = 1_000_000, 16, 4
QUICK_ROWS = 20_000
SIZE_PENALTY = 0.001
WARM_UP, GENERATIONS = 12, 4

NOTES = (
    "Plain evolution, without seeds and refinement, of 64 trees; *nodes* is their mean size while "
    "the clock ran. *Pass* is the yardstick: one matrix-vector product with all rows, by one core. "
    "*Passes / evaluation* is what one thread takes for one changed tree, in units of that; a tree "
    "evaluated from scratch needs as many passes as it has levels, or one if each row is taken "
    "down the whole tree before the next.",
    "*float32* is the same population on rows in single precision, by one thread, in evaluations "
    "a second over those of double precision. It halves what memory has to deliver, but products "
    "are added in double precision all the same; the gain is not worth training rows that are not "
    "those given.",
)


def warm_up(
    dataset: Dataset, generations: int
) -> tuple[list[Individual], base.Toolbox]:
    """Return a population after some generations, and its toolbox."""
    toolbox = make_toolbox(
        dataset, size_penalty=SIZE_PENALTY, variation=PLAIN, random_state=0
    )
    run = evolve(toolbox.population(n=POPULATION), toolbox, max_generations=generations)
    return run.population, toolbox


def in_single_precision(
    dataset: Dataset, population: Sequence[Individual]
) -> tuple[list[Individual], base.Toolbox]:
    """Return the population on float32 rows, and its toolbox."""
    single = replace(dataset, X=dataset.X.astype(np.float32))
    toolbox = make_toolbox(
        single, size_penalty=SIZE_PENALTY, variation=PLAIN, random_state=0
    )
    members = [
        make_individual(single, one.weights, one.thresholds, one.subtree_size)
        for one in population
    ]
    return members, toolbox


def run(quick: bool = False) -> Table:
    """Measure one and two threads, single precision, and the pass."""
    n_rows = QUICK_ROWS if quick else N_ROWS
    dataset = Dataset.from_arrays(*make_rows(n_rows, N_FEATURES, N_CLASSES))
    population, toolbox = warm_up(dataset, 2 if quick else WARM_UP)
    single, single_toolbox = in_single_precision(dataset, population)
    generations = 1 if quick else GENERATIONS
    records: dict[str, dict[str, float]] = {"one": {}, "two": {}, "float32": {}}
    w = np.random.default_rng(0).normal(size=N_FEATURES)

    def blocks(
        name: str, members: Sequence[Individual], box: base.Toolbox
    ) -> Callable[[], float]:
        return partial(block, members, box, generations, records[name])

    with ThreadPoolExecutor(2) as threads:
        spread = make_toolbox(
            dataset, size_penalty=SIZE_PENALTY, variation=PLAIN, random_state=0
        )
        spread.register("map", threads.map)
        rounds = by_turns(
            {
                "one": blocks("one", population, toolbox),
                "two": blocks("two", population, spread),
                "float32": blocks("float32", single, single_toolbox),
                "pass": stopwatch(lambda: dataset.X @ w, 3),
            },
            1 if quick else 3,
        )
    evaluations = {name: one["evaluated"] for name, one in records.items()}
    each = rounds.median("one") / evaluations["one"]
    row = {
        "rows x features": f"{n_rows:,} x {N_FEATURES}",
        "nodes": records["one"]["nodes"],
        "one thread gen /s": 1.0 / rounds.median("one"),
        "two threads gen /s": 1.0 / rounds.median("two"),
        "gain": rounds.ratio("one", "two"),
        "pass ms": 1e3 * rounds.median("pass"),
        "passes / generation": rounds.ratio("one", "pass"),
        "passes / evaluation": each / rounds.median("pass"),
        "float32": rounds.ratio("one", "float32")
        * evaluations["float32"]
        / evaluations["one"],
    }
    return Table("million", "generations a second where rows are many", [row], NOTES)
