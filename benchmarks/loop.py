"""How many offspring the whole loop breeds and evaluates in a second, beside plain products."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
from deap import base

from benchmarks.inputs import PLAIN, make_rows, training_rows
from benchmarks.measure import Cell, Table, by_turns, stopwatch
from evotree import Dataset, Individual, evolve, make_toolbox

POPULATION = 64
PENALTIES = (1e-6, 0.1)  # between which the size of the trees is sought

NOTES = (
    "One thread. *Bred* counts every slot of the population, the parents that stay as they are "
    "included. *Evaluated* counts the offspring that differ from their parents. *Nodes* is the "
    "mean size of all trees bred while the clock ran; the size penalty was chosen to bring it near "
    "a size that is typical of the data.",
    "*X @ W.T* is the yardstick of the hardware: how many times a second one core multiplies all "
    "rows by all hyperplanes of one tree of that size. A loop that evaluated every changed tree "
    "whole could not evaluate more: *times products* would stay below 1.",
)


class Shape(NamedTuple):
    """Data of one shape, and how long to evolve on them."""

    name: (
        str  # of the data set that takes the place of drawn rows, with a folder of data
    )
    n_rows: int
    n_features: int
    n_classes: int
    n_nodes: int  # mean size of the trees that is aimed at
    warm_up: int  # generations of each step of the search for the penalty
    generations: int  # of one timed block


SHAPES = (
    Shape("pima", 614, 8, 2, 7, 200, 400),
    Shape("vehicle", 676, 18, 4, 15, 200, 300),
    Shape("pendigits", 8_793, 16, 10, 60, 100, 50),
    Shape("synthetic", 100_000, 16, 4, 31, 25, 12),
)
QUICK_SHAPES = (Shape("synthetic", 200, 4, 2, 7, 10, 5),)


def block(
    population: Sequence[Individual],
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
) -> tuple[list[Individual], base.Toolbox]:
    """Find a size penalty by which trees have some mean size, by bisection.

    The size that is looked at is that of the generations that will be timed.

    Returns
    -------
    population : list of Individual
        Warmed up; of all steps, the one whose mean size is nearest.
    toolbox : deap.base.Toolbox
        It evolved by this.
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
            nearest, settled = distance, (population, toolbox)
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
    population, toolbox = settle(dataset, shape, n_steps)
    W = np.random.default_rng(0).normal(size=(shape.n_nodes // 2, dataset.X.shape[1]))
    number = max(1, 1_000_000 // dataset.n_distinct)
    records: dict[str, float] = {}
    rounds = by_turns(
        {
            "loop": partial(block, population, toolbox, shape.generations, records),
            "product": stopwatch(lambda: dataset.X @ W.T, number),
        },
        n_rounds,
    )
    return {
        "data": shape.name,
        "rows x features": "{:,} x {}".format(*dataset.X.shape),
        "classes": dataset.n_classes,
        "nodes": records["nodes"],
        "bred /s": POPULATION / rounds.median("loop"),
        "evaluated /s": records["evaluated"] / rounds.median("loop"),
        "X @ W.T /s": 1.0 / rounds.median("product"),
        "times products": records["evaluated"] * rounds.ratio("product", "loop"),
    }


def run(quick: bool = False, data_home: Path | None = None) -> Table:
    """Measure the loop on all shapes."""
    rows = []
    for shape in QUICK_SHAPES if quick else SHAPES:
        if data_home is None or shape.name == "synthetic":
            X, y = make_rows(shape.n_rows, shape.n_features, shape.n_classes)
        else:
            X, y = training_rows(shape.name, data_home)
        n_rounds, n_steps = (2, 3) if quick else (7, 8)
        dataset = Dataset.from_arrays(X, y)
        rows.append(measure(dataset, shape, n_rounds, n_steps))
    return Table("loop", "offspring per second of the whole loop", rows, NOTES)
