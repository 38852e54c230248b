"""How many offspring the whole loop breeds and evaluates in a second, beside a plain twin."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from deap import base

from benchmarks.inputs import PLAIN, make_rows, real_dataset
from benchmarks.measure import Cell, Rounds, Table, by_turns, stopwatch
from benchmarks.plain import make_plain_toolbox, plain_copies
from evotree import Dataset, Individual, evolve, make_toolbox

POPULATION = 64
PENALTIES = (1e-6, 0.1)  # between which the size of the trees is sought

NOTES = (
    "One thread. *Bred* counts every slot of the population, the parents that stay as they are "
    "included, as iterations x population; so is evtree counted. *Evaluated* counts the offspring "
    "that differ from their parents. *Nodes* is the mean size of all trees bred while the clock "
    "ran; the size penalty was chosen to bring it near that of the target.",
    "*Plain* is the same loop with the same rates, its individuals cloned by `copy.deepcopy` and "
    "evaluated whole with NumPy (`benchmarks/plain.py`), run by turns with the engine.",
    "*X @ W.T* is the yardstick of the hardware: how many times a second one core multiplies all "
    "rows by all hyperplanes of one tree of that size. A loop that evaluated every changed tree "
    "whole could not evaluate more.",
    "*evtree* is the R package, whose tests are axis-parallel and whose loop is C++; a constant, "
    "measured on another machine (with the real data), for scale only.",
)


@dataclass(frozen=True)
class Shape:
    """Data of one shape, and how long to evolve on them.

    Attributes
    ----------
    name : str
        Name of the data set; that of a file where ``--data-home`` is given.
    n_rows, n_features, n_classes : int
        Shape of the synthetic data.
    n_nodes : int
        Mean size of the trees that is aimed at.
    target, evtree : int or None
        Bred in a second: aimed at, and by evtree.
    warm_up, generations, plain_generations : int
        Generations of each step of the search for the penalty, of one timed block, and of one
        timed block of the plain twin.
    """

    name: str
    n_rows: int
    n_features: int
    n_classes: int
    n_nodes: int
    target: int | None
    evtree: int | None
    warm_up: int
    generations: int
    plain_generations: int


SHAPES = (
    Shape("pima", 614, 8, 2, 7, 60_000, 26_000, 200, 400, 20),
    Shape("vehicle", 676, 18, 4, 15, 30_000, 11_300, 200, 300, 20),
    Shape("pendigits", 8_793, 16, 10, 60, 4_000, 328, 100, 50, 6),
    Shape("large", 100_000, 16, 4, 31, 800, None, 25, 12, 1),
)
QUICK_SHAPES = (Shape("tiny", 200, 4, 2, 7, None, None, 10, 5, 2),)


def block(
    population: Sequence,
    toolbox: base.Toolbox,
    generations: int,
    records: dict[str, float],
) -> float:
    """Evolve some generations, always the same ones; return the seconds of one.

    The clock is the logbook's: it starts when the first generation is recorded. Rates per
    generation are written into `records`.
    """
    run = evolve(population, toolbox, max_generations=generations)
    seconds = run.logbook.select("seconds")
    records["evaluated"] = sum(run.logbook.select("nevals")[1:]) / generations
    records["nodes"] = float(np.mean(run.logbook.chapters["size"].select("mean")[1:]))
    return (seconds[-1] - seconds[0]) / generations


def settle(
    dataset: Dataset, shape: Shape, n_steps: int
) -> tuple[list[Individual], base.Toolbox, float]:
    """Find a size penalty by which trees have some mean size, by bisection.

    The size that is looked at is that of the generations that will be timed.

    Returns
    -------
    population : list of Individual
        Warmed up; of all steps, the one whose mean size is nearest.
    toolbox : deap.base.Toolbox
        It evolved by this.
    size_penalty : float
        What the bisection chose.
    """
    low, high = PENALTIES
    nearest = np.inf
    for _ in range(n_steps):
        penalty = float(np.sqrt(low * high))
        toolbox = make_toolbox(
            dataset, size_penalty=penalty, variation=PLAIN, random_state=0
        )
        first = toolbox.population(n=POPULATION)
        population = evolve(first, toolbox, max_generations=shape.warm_up).population
        records: dict[str, float] = {}
        block(population, toolbox, shape.generations, records)
        distance = abs(records["nodes"] - shape.n_nodes)
        if distance < nearest:
            nearest, settled = distance, (population, toolbox, penalty)
        if distance < 0.03 * shape.n_nodes:
            break
        if records["nodes"] > shape.n_nodes:
            low = penalty
        else:
            high = penalty
    return settled


def measure(
    dataset: Dataset, shape: Shape, n_rounds: int, n_steps: int
) -> dict[str, Cell]:
    """Return the row of the table for one data set."""
    population, toolbox, penalty = settle(dataset, shape, n_steps)
    plain_toolbox = make_plain_toolbox(dataset, penalty)
    plain_population = plain_copies(population, plain_toolbox)
    W = np.random.default_rng(0).normal(size=(shape.n_nodes // 2, dataset.X.shape[1]))
    number = max(1, 1_000_000 // dataset.n_distinct)
    records: dict[str, dict[str, float]] = {"engine": {}, "plain": {}}

    def blocks_of(name: str, *setting: Any) -> Callable[[], float]:
        return partial(block, *setting, records[name])

    rounds = by_turns(
        {
            "engine": blocks_of("engine", population, toolbox, shape.generations),
            "plain": blocks_of(
                "plain", plain_population, plain_toolbox, shape.plain_generations
            ),
            "product": stopwatch(lambda: dataset.X @ W.T, number),
        },
        n_rounds,
    )
    return _row(dataset, shape, rounds, records)


def _row(
    dataset: Dataset, shape: Shape, rounds: Rounds, records: dict[str, dict[str, float]]
) -> dict[str, Cell]:
    bred = POPULATION / rounds.median("engine")
    return {
        "data": shape.name,
        "rows x features": "{:,} x {}".format(*dataset.X.shape),
        "classes": dataset.n_classes,
        "nodes": records["engine"]["nodes"],
        "bred /s": bred,
        "target": shape.target,
        "bred / target": None if shape.target is None else bred / shape.target,
        "evaluated /s": records["engine"]["evaluated"] / rounds.median("engine"),
        "plain bred /s": POPULATION / rounds.median("plain"),
        "plain nodes": records["plain"]["nodes"],
        "times plain": rounds.ratio("plain", "engine"),
        "X @ W.T /s": 1.0 / rounds.median("product"),
        "evtree /s": shape.evtree,
    }


def run(quick: bool = False, data_home: Path | None = None) -> Table:
    """Measure the loop on all shapes."""
    rows = []
    for shape in QUICK_SHAPES if quick else SHAPES:
        if data_home is None or shape.evtree is None:
            X, y = make_rows(shape.n_rows, shape.n_features, shape.n_classes)
            dataset, source = Dataset.from_arrays(X, y), "synthetic"
        else:
            dataset, source = real_dataset(shape.name, data_home), "real"
        row = measure(
            dataset, shape, n_rounds=2 if quick else 7, n_steps=3 if quick else 8
        )
        rows.append({**row, "data": f"{shape.name} ({source})"})
    return Table("loop", "offspring per second of the whole loop", rows, NOTES)
