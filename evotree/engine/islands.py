"""Islands: populations that evolve apart and exchange their best.

The generations between two exchanges are an epoch. An epoch of one island is one task, on whatever
executor there is; what comes out depends on the seeds and the number of islands alone.

References
----------
Tanese R. (1989). Distributed genetic algorithms. Proceedings of the Third International Conference
on Genetic Algorithms, 434-439.
"""

import os
import signal
import threading
import time
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import Executor
from contextlib import contextmanager
from dataclasses import replace
from operator import attrgetter
from typing import Any, NamedTuple

from deap import base

from evotree.engine.config import Evolution
from evotree.engine.evolution import (
    Run,
    advance,
    append_logbook,
    best_first,
    describe_individual,
    log_generation,
    make_logbook,
    make_statistics,
    start,
)
from evotree.log import logger
from evotree.operators.variation import separate_duplicates
from evotree.parallel import n_at_once, run_tasks
from evotree.rng import make_streams
from evotree.tree import Individual

log = logger(__name__)

_fitness = attrgetter("fitness.wvalues")
_ISLANDS = 2**62 + 1  # the number of a generation that no run reaches


class Epoch(NamedTuple):
    """What one island does until the next exchange."""

    toolbox: base.Toolbox  # the operators, with the island's own seed
    # The island so far, without its records; None before its first population.
    run: Run | None
    population_size: int  # size of the first population
    until: int  # generation at which the epoch ends
    crossover_probability: float  # chance that two parents mate
    seconds: float  # the island stops early, so many after it has begun
    home: int  # number of the process that the islands belong to
    number: int  # number of the island


# ---- one epoch -----------------------------------------------------------------------------------


@contextmanager
def deaf_to_interrupts(home: int) -> Iterator[None]:
    """Leave Ctrl-C to the process that the islands belong to, which a terminal tells as well."""
    if os.getpid() == home or threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def run_epoch(epoch: Epoch) -> Run:
    """Advance one island to the end of an epoch, and return it."""
    stats = make_statistics()
    with deaf_to_interrupts(epoch.home):
        run = epoch.run
        end = time.perf_counter() + epoch.seconds
        if hasattr(epoch.toolbox, "score"):  # clocks of two processes need not agree
            epoch.toolbox.score.end = end
        if run is None:
            first = epoch.toolbox.population(
                n=epoch.population_size, seconds=epoch.seconds
            )
            run = start(first, epoch.toolbox, stats)
            log_generation(run, f"island {epoch.number}, ")
        while run.generation < epoch.until and time.perf_counter() < end:
            advance(run, epoch.toolbox, epoch.crossover_probability, stats, end)
            log_generation(run, f"island {epoch.number}, ")
        return run


def run_epochs(epochs: Sequence[Epoch], executor: Executor | None) -> list[Run]:
    """Advance all islands by one epoch."""
    n_at_a_time = 1 if executor is None else n_at_once(executor, len(epochs))
    n_turns = -(-len(epochs) // n_at_a_time)
    epochs = [one._replace(seconds=one.seconds / n_turns) for one in epochs]
    if executor is None:
        return list(map(run_epoch, epochs))
    # Islands of other processes are pickled, with the functions of their toolboxes.
    return run_tasks(run_epoch, epochs, executor, "epochs")


# ---- exchange ------------------------------------------------------------------------------------


def emigrants(population: Sequence[Individual], n: int) -> list[Individual]:
    """Return clones of the fittest different members, the first of equals, at most `n`."""
    different, _ = separate_duplicates(population)
    different.sort(key=_fitness, reverse=True)
    return [one.clone() for one in different[:n]]


def migrate(islands: Sequence[Run], n: int) -> None:
    """Let the best of each island take the places of the worst of the next: a ring."""
    if len(islands) == 1:
        return
    leaving = [emigrants(island.population, n) for island in islands]
    for i, island in enumerate(islands):
        population = island.population
        arriving = leaving[i - 1][: len(population) - 1]
        by_fitness = sorted(
            range(1, len(population)), key=lambda k: _fitness(population[k])
        )
        for k, one in zip(by_fitness, arriving, strict=False):
            population[k] = one
        best_first(population)
        best = describe_individual(arriving[0]) if arriving else "none"
        shown = "migration: %d trees of island %d move to island %d, the best is %s"
        log.info(shown, len(arriving), (i - 1) % len(islands), i, best)


# ---- all islands seen as one ---------------------------------------------------------------------


def join(islands: Sequence[Run]) -> Run:
    """Return islands seen as one run: its population is that of all, the best first."""
    leader = max(islands, key=lambda island: _fitness(island.best))
    joint = Run(
        best_first([one for island in islands for one in island.population]),
        leader.logbook,
        islands=list(islands),
        # A run that goes on with its islands goes on with these.
        front_only=islands[0].front_only,
        best_trees=islands[0].best_trees,
    )
    for island in islands:
        # Of equals DEAP puts the last that comes first.
        joint.hall_of_fame.update(island.hall_of_fame.items[::-1])
        joint.pareto_front.update(island.pareto_front.items)
    for name in ("generation", "seconds", "best_fitness"):
        setattr(joint, name, max(getattr(island, name) for island in islands))
    joint.origins = sorted({name for island in islands for name in island.origins})
    joint.last_improvement = min(
        island.last_improvement
        for island in islands
        if island.best_fitness == joint.best_fitness
    )
    return joint


# ---- the loop ------------------------------------------------------------------------------------


def island_seeds(seed: int, n_islands: int) -> list[int]:
    """Return a seed for each island; that of the first is the run's own."""
    others = make_streams(seed, _ISLANDS, n_islands - 1)
    return [seed, *(int(stream[0]) >> 1 for stream in others)]


def epochs(
    toolboxes: Sequence[base.Toolbox],
    evolution: Evolution,
    executor: Executor | None,
    islands: Sequence[Run] | None,
    max_generations: int,
    end: float,
) -> Generator[Run]:
    """Yield islands seen as one run, as they are and after each epoch."""
    begin, exchange = time.perf_counter(), evolution.islands
    joint = None if islands is None else join(islands)
    before = 0.0 if joint is None else joint.seconds
    runs: Sequence[Any] = [None] * len(toolboxes) if joint is None else joint.islands
    while True:
        if joint is not None:
            yield joint
            runs = joint.islands
            if joint.generation > 0 and joint.generation % exchange.every == 0:
                migrate(runs, exchange.size)
        at = 0 if joint is None else joint.generation
        until = min(at - at % exchange.every + exchange.every, max_generations)
        left = end - time.perf_counter()
        rest = until, evolution.variation.crossover_probability, left, os.getpid()
        size = evolution.population_size
        tasks = [
            Epoch(
                toolbox,
                run and replace(run, logbook=make_logbook()),
                size,
                *rest,
                number,
            )
            for number, (toolbox, run) in enumerate(zip(toolboxes, runs, strict=True))
        ]
        found = run_epochs(tasks, executor)
        for earlier, later in zip(runs, found, strict=True):
            if earlier is not None:
                append_logbook(earlier.logbook, later.logbook)
                later.logbook = earlier.logbook
        joint = join(found)
        joint.seconds = before + time.perf_counter() - begin
