"""The loop: select, clone, mate, mutate, evaluate, keep the best, record."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from deap import base, tools

from evotree.history import (
    ORIGIN,
    diversity,
    make_logbook,
    make_statistics,
    origin_of,
    origin_shares,
    refinement_record,
)
from evotree.interrupt import interrupt_as_flag
from evotree.operators.refinement import NOTHING_SPENT, Spent
from evotree.pareto import ParetoFront
from evotree.rng import uniform

if TYPE_CHECKING:
    import numpy as np

    from evotree.individual import Individual

BREEDING_CHUNK = 8  # offspring bred by one task; even, so that mates stay together


@dataclass
class Evolution:
    """A run: its population and its records; what callbacks see and `evolve` returns.

    Attributes
    ----------
    population : list of Individual
        The present generation, the best individual first.
    logbook : deap.tools.Logbook
        One record a generation.
    hall_of_fame : deap.tools.HallOfFame
        The best individuals that ever lived.
    pareto_front : ParetoFront
        The best of each size that ever lived.
    spent : Spent
        What the refinements have taken so far.
    generation : int
        Number of the present generation; the first population is generation 0.
    stop_reason : str
        Why the run ended: ``"max_generations"``, ``"patience"``, ``"time_limit"``, ``"callback"``
        or ``"interrupt"``; empty while it goes on.
    """

    population: list[Individual]
    logbook: tools.Logbook = field(default_factory=make_logbook)
    hall_of_fame: tools.HallOfFame = field(default_factory=lambda: tools.HallOfFame(10))
    pareto_front: ParetoFront = field(default_factory=ParetoFront)
    spent: Spent = NOTHING_SPENT
    generation: int = 0
    stop_reason: str = ""

    @property
    def best(self) -> Individual:
        """The fittest individual of the present generation."""
        return self.population[0]


Callback = Callable[[Evolution], object]


def breed(
    toolbox: base.Toolbox,
    crossover_probability: float,
    slots: tuple[Sequence[Individual], Sequence[np.ndarray]],
) -> tuple[list[Individual], int]:
    """Make evaluated offspring of some parents.

    Parameters
    ----------
    toolbox : deap.base.Toolbox
        Its ``clone``, ``mate``, ``mutate`` and ``evaluate`` are used.
    crossover_probability : float in [0, 1]
        Chance that two neighbours mate.
    slots : tuple of two sequences
        The parents, and one random stream for each of their offspring.

    Returns
    -------
    offspring : list of Individual
        One for each parent.
    n_evaluations : int
        How many of them differ from their parents, and so were evaluated.
    """
    parents, streams = slots
    offspring = []
    for parent, stream in zip(parents, streams, strict=True):
        child = toolbox.clone(parent)
        child.stream = stream
        offspring.append(child)
    for i in range(1, len(offspring), 2):
        if uniform(streams[i - 1]) < crossover_probability:
            offspring[i - 1], offspring[i] = toolbox.mate(offspring[i - 1], offspring[i])
    offspring = [toolbox.mutate(child)[0] for child in offspring]
    return offspring, evaluate_invalid(offspring, toolbox)


def evaluate_invalid(individuals: Iterable[Individual], toolbox: base.Toolbox) -> int:
    """Evaluate the individuals whose fitness is not valid; return how many there were."""
    n_evaluations = 0
    for individual in individuals:
        if not individual.fitness.wvalues:
            individual.fitness.values = toolbox.evaluate(individual)
            n_evaluations += 1
    return n_evaluations


def next_generation(
    population: Sequence[Individual],
    toolbox: base.Toolbox,
    generation: int,
    crossover_probability: float,
    spent: Spent = NOTHING_SPENT,
) -> tuple[list[Individual], int, list[Individual]]:
    """Breed the next population.

    Parameters
    ----------
    population : sequence of Individual
        Evaluated, the best first; that one survives unchanged.
    toolbox : deap.base.Toolbox
        The operators.
    generation : int
        Number of the new generation; with the toolbox's seed it determines all random draws.
    crossover_probability : float in [0, 1]
        Chance that two parents mate.
    spent : Spent, default=NOTHING_SPENT
        What the refinements of the run have taken so far.

    Returns
    -------
    population : list of Individual
        As many as before, the best first.
    n_evaluations : int
        How many trees were evaluated.
    refined : list of Individual
        The offspring that were refined, whether they survive or not.
    """
    n = len(population)
    streams = toolbox.streams(generation, n)
    elite = population[0]
    elite.stream = streams[-1]
    parents = toolbox.select(population, n - 1)
    slots = [
        (parents[at : at + BREEDING_CHUNK], streams[at : min(at + BREEDING_CHUNK, n - 1)])
        for at in range(0, n - 1, BREEDING_CHUNK)
    ]
    elite.outcome = None
    offspring: list[Individual] = []
    n_evaluations = 0
    for children, n_evaluated in toolbox.map(partial(breed, toolbox, crossover_probability), slots):
        offspring += children
        n_evaluations += n_evaluated
    refined: list[Individual] = []
    if hasattr(toolbox, "refine"):
        chosen = toolbox.choose(offspring, generation, spent)
        refined = [one for (one,) in toolbox.map(toolbox.refine, chosen)]
        # A map over processes returns copies.
        place = {id(before): after for before, after in zip(chosen, refined, strict=True)}
        offspring = [place.get(id(child), child) for child in offspring]
    survivors = [elite, *offspring]
    if hasattr(toolbox, "replace"):
        for parent in population:
            parent.outcome = None  # that of an earlier generation
        survivors = toolbox.replace(population, survivors)
    return best_first(survivors), n_evaluations + len(refined), refined


def refiner_names(toolbox: base.Toolbox) -> list[str]:
    """Return the names of the operators that the toolbox's refinement has; users' own has none."""
    refine = getattr(toolbox, "refine", None)
    return list(getattr(refine, "keywords", {}).get("refiners", ()))


def best_first(population: list[Individual]) -> list[Individual]:
    """Swap the fittest individual, the first of equals, to the front of a population."""
    at = max(range(len(population)), key=lambda i: population[i].fitness.wvalues)
    population[0], population[at] = population[at], population[0]
    return population


def evolve(
    population: Iterable[Individual],
    toolbox: base.Toolbox,
    *,
    crossover_probability: float = 0.2,
    max_generations: int = 1000,
    patience: int | None = None,
    time_limit: float | None = None,
    stats: tools.Statistics | tools.MultiStatistics | None = None,
    hall_of_fame: tools.HallOfFame | None = None,
    callbacks: Iterable[Callback] = (),
    keep_on_interrupt: bool = False,
) -> Evolution:
    """Evolve a population.

    Parameters
    ----------
    population : iterable of Individual
        The first generation, for example ``toolbox.population(n=64)``.
    toolbox : deap.base.Toolbox
        From `make_toolbox`; with the entries ``streams``, ``select``, ``clone``, ``mate``,
        ``mutate``, ``evaluate`` and ``map``, and perhaps ``choose`` and ``refine``, and
        ``replace(parents, offspring) -> list``, which picks the next generation from both.
    crossover_probability : float in [0, 1], default=0.2
        Chance that two parents mate.
    max_generations : int, at least 0, default=1000
        Stop after so many generations.
    patience : int, optional
        Stop after so many generations without a fitter individual.
    time_limit : float, optional
        Stop at the end of the generation in which so many seconds have passed.
    stats : deap.tools.Statistics or MultiStatistics, optional
        What the logbook records; `make_statistics()` by default.
    hall_of_fame : deap.tools.HallOfFame, optional
        Updated with every new individual; by default one of size 10.
    callbacks : iterable of callable
        Each is called with the `Evolution` after every generation; one that returns True stops
        the run.
    keep_on_interrupt : bool, default=False
        Whether Ctrl-C ends the run as the other stops do, instead of raising KeyboardInterrupt;
        either way the generation is finished first.

    Returns
    -------
    Evolution
        The last population, the logbook and the hall of fame.

    Raises
    ------
    ValueError
        If the population has fewer than two individuals, or a callback is not callable.

    References
    ----------
    Krętowski M., Grześ M. (2005). Global induction of oblique decision trees: an evolutionary
    approach. Intelligent Information Processing and Web Mining, 309-318.
    """
    begin = time.perf_counter()
    run = Evolution(list(population))
    if len(run.population) < 2:
        raise ValueError(f"population has {len(run.population)} individuals: at least 2 mate.")
    if hall_of_fame is not None:
        run.hall_of_fame = hall_of_fame
    stats = make_statistics() if stats is None else stats
    callbacks = tuple(callbacks)
    for callback in callbacks:
        if not callable(callback):
            raise ValueError(f"callbacks holds {callback!r}: allowed are callables.")
    best_fitness, last_improvement = (), 0
    origins = sorted(set(map(origin_of, run.population)))
    operators = refiner_names(toolbox)
    refined: list[Individual] = []

    def stop_reason() -> str:
        if any([callback(run) is True for callback in callbacks]):  # every callback is called
            return "callback"
        if run.generation >= max_generations:
            return "max_generations"
        if patience is not None and run.generation - last_improvement >= patience:
            return "patience"
        if time_limit is not None and time.perf_counter() - begin >= time_limit:
            return "time_limit"
        return "interrupt" if interrupted() else ""

    with interrupt_as_flag() as interrupted:
        n_evaluations = evaluate_invalid(run.population, toolbox)
        best_first(run.population)
        while True:
            if run.best.fitness.wvalues > best_fitness:
                best_fitness, last_improvement = run.best.fitness.wvalues, run.generation
            run.hall_of_fame.update(run.population)
            run.pareto_front.update(run.population)
            run.logbook.record(
                gen=run.generation,
                nevals=n_evaluations,
                diversity=diversity(run.population),
                seconds=time.perf_counter() - begin,
                **{ORIGIN: origin_shares(run.population, origins)},
                **refinement_record(refined, operators),
                **stats.compile(run.population),
            )
            run.stop_reason = stop_reason()
            if run.stop_reason:
                break
            run.population, n_evaluations, refined = next_generation(
                run.population, toolbox, run.generation + 1, crossover_probability, run.spent
            )
            run.spent = run.spent.plus(refined)
            run.generation += 1
    if run.stop_reason == "interrupt" and not keep_on_interrupt:
        raise KeyboardInterrupt
    return run
