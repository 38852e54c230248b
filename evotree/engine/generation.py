"""One generation: select, clone, mate, mutate, evaluate, refine, replace."""

import math
import reprlib
import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

import numpy as np
from deap import base

from evotree.individual import Individual, set_fitness
from evotree.rng import uniform

BREEDING_CHUNK = 8  # offspring bred by one task; even, so that mates stay together


def breed(
    toolbox: base.Toolbox,
    crossover_probability: float,
    slots: tuple[Sequence[Individual], Sequence[np.ndarray]],
    end: float = math.inf,
) -> tuple[list[Individual], int]:
    """Make evaluated offspring of some parents."""
    parents, streams = slots
    # Once for all offspring: to ask for each one took a twentieth of the time of the loop.
    mate, mutate = operator_of(toolbox, "mate"), operator_of(toolbox, "mutate")
    offspring = list(map(toolbox.clone, parents))
    for child, stream in zip(offspring, streams, strict=True):
        child.stream = stream
    for i in range(1, len(offspring), 2):
        if (
            uniform(streams[i - 1]) < crossover_probability
            and time.perf_counter() < end
        ):
            offspring[i - 1], offspring[i] = mate(offspring[i - 1], offspring[i])
    for i, child in enumerate(offspring):
        if time.perf_counter() < end:
            (offspring[i],) = mutate(child)
    return offspring, evaluate_invalid(offspring, toolbox)


def operator_of(
    toolbox: base.Toolbox, role: str
) -> Callable[..., tuple[Individual, ...]]:
    """Return an operator; what users' own return, and leave as it was, is checked."""
    operator: Callable[..., tuple[Individual, ...]] = getattr(toolbox, role)
    module = str(getattr(_plain(operator), "__module__", None))
    if module.startswith("evotree."):
        return operator
    return partial(checked, role=role, operator=operator)


def _plain(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function inside of partial ones."""
    while isinstance(function, partial):
        function = function.func
    return function


def checked(
    *parents: Individual, role: str, operator: Callable[..., Any]
) -> tuple[Individual, ...]:
    """Return what an operator of a user's own makes, if it is what its role asks for."""
    if not isinstance(parents[0], Individual):  # of a kind of the user's own
        return operator(*parents)
    arrays = [array for parent in parents for array in parent.nodes()]
    before = [array.tobytes() for array in arrays]
    children: tuple[Individual, ...] = operator(*parents)
    plain = _plain(operator)
    name = f"{role} ({getattr(plain, '__name__', repr(plain))})"
    is_tuple = isinstance(children, tuple) and len(children) == len(parents)
    if not is_tuple or not all(isinstance(child, Individual) for child in children):
        allowed = (
            f"a tuple of {len(parents)} individual{'s' if len(parents) > 1 else ''}"
        )
        raise TypeError(f"{name} returned {children!r}: allowed is {allowed}.")
    if before != [array.tobytes() for array in arrays]:
        # Read-only arrays would say so themselves, but kernels would be compiled for them again.
        others = "which others share: evotree.with_tree makes an individual of new ones"
        raise ValueError(f"{name} wrote to arrays of an individual, {others}.")
    return children


def _refine(
    toolbox: base.Toolbox, end: float, individual: Individual
) -> Individual | None:
    """Return an individual, refined; None once the time is over."""
    return (
        operator_of(toolbox, "refine")(individual)[0]
        if time.perf_counter() < end
        else None
    )


def evaluate_invalid(individuals: Iterable[Individual], toolbox: base.Toolbox) -> int:
    """Evaluate the individuals whose fitness is not valid; return how many there were."""
    if hasattr(toolbox, "score"):  # a generation is scored as one
        return 0
    n_evaluations = 0
    for individual in individuals:
        if not individual.fitness.wvalues:
            set_fitness(individual, toolbox.evaluate(individual))
            n_evaluations += 1
    return n_evaluations


def next_generation(
    population: Sequence[Individual],
    toolbox: base.Toolbox,
    generation: int,
    crossover_probability: float,
    end: float = math.inf,
) -> tuple[list[Individual], int, list[Individual]]:
    """Breed the next population."""
    n = len(population)
    streams = toolbox.streams(generation, n)
    elite = population[0]
    elite.stream = streams[-1]
    parents = toolbox.select(population, n - 1)
    is_list = isinstance(parents, list | tuple) and len(parents) == n - 1
    if not is_list or not all(isinstance(one, type(elite)) for one in parents):
        allowed = f"allowed is a list of {n - 1} individuals"
        raise TypeError(f"select returned {reprlib.repr(parents)}: {allowed}.")
    slots = [
        (
            parents[at : at + BREEDING_CHUNK],
            streams[at : min(at + BREEDING_CHUNK, n - 1)],
        )
        for at in range(0, n - 1, BREEDING_CHUNK)
    ]
    elite.outcome = None
    offspring: list[Individual] = []
    n_evaluations = 0
    breed_slots = partial(breed, toolbox, crossover_probability, end=end)
    for children, n_evaluated in toolbox.map(breed_slots, slots):
        offspring += children
        n_evaluations += n_evaluated
    refined: list[Individual] = []
    if hasattr(toolbox, "refine"):
        chosen = toolbox.choose(offspring)
        afterwards = toolbox.map(partial(_refine, toolbox, end), chosen)
        # A map over processes returns copies.
        place = {
            id(one): after
            for one, after in zip(chosen, afterwards, strict=True)
            if after
        }
        refined = list(place.values())
        offspring = [place.get(id(child), child) for child in offspring]
    if hasattr(toolbox, "score"):
        n_evaluations += toolbox.score(offspring, population, generation)
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
