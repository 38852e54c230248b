"""The composition point: every part of the algorithm, registered under its role."""

from __future__ import annotations

from typing import Any

from deap import base

from evotree.dataset import Dataset
from evotree.fitness.objectives import PenalizedAccuracy
from evotree.individual import Individual
from evotree.operators.crossover import cx_trees
from evotree.operators.initialization import init_dipolar
from evotree.operators.mutation import mut_nodes
from evotree.operators.selection import sel_proportional
from evotree.rng import make_streams, seed_from


def init_population(toolbox: base.Toolbox, n: int) -> list[Individual]:
    """Make `n` individuals, each from a stream of its own.

    Parameters
    ----------
    toolbox : deap.base.Toolbox
        Its ``individual(stream)`` and ``streams(generation, n)`` are used.
    n : int, at least 1
        Size of the population.

    Returns
    -------
    list of Individual
        Not yet evaluated.
    """
    return [toolbox.individual(stream) for stream in toolbox.streams(0, n)]


def make_toolbox(
    dataset: Dataset,
    *,
    size_penalty: float = 0.005,
    mutation_probability: float = 0.1,
    dipolar_probability: float = 0.5,
    test_crossover_probability: float = 0.5,
    selection_pressure: float = 2.0,
    min_rows: int = 5,
    random_state: Any = None,
) -> base.Toolbox:
    """Return the toolbox of the global evolution of oblique trees on a data set.

    Every entry may be replaced by ``toolbox.register(role, function)``. The roles and what they
    are called with are DEAP's: ``clone(individual)``, ``mate(a, b) -> (a, b)``,
    ``mutate(individual) -> (individual,)``, ``select(population, k) -> list``,
    ``evaluate(individual) -> tuple`` and ``map``; besides these, ``individual(stream)``,
    ``population(n)`` and ``streams(generation, n)``. An operator that draws random numbers draws
    them from the stream of its first individual, ``individual.stream``
    (`evotree.rng.as_generator` makes a NumPy generator of it).

    Parameters
    ----------
    dataset : Dataset
        Training rows.
    size_penalty : float, at least 0, default=0.005
        Charge for one node in the fitness, the papers' alpha.
    mutation_probability : float in [0, 1], default=0.1
        Chance that a node mutates.
    dipolar_probability : float in [0, 1], default=0.5
        Share of the changes of a test that the dipolar operator makes.
    test_crossover_probability : float in [0, 1], default=0.5
        Share of the crossovers that exchange tests rather than subtrees.
    selection_pressure : float, above 1, default=2.0
        Expected number of offspring of the best individual.
    min_rows : int, at least 2, default=5
        A leaf with fewer distinct rows is not split.
    random_state : None, int, RandomState or Generator, default=None
        Source of the seed that all streams are made from.

    Returns
    -------
    deap.base.Toolbox
        For `evotree.evolve`, or a loop of one's own.
    """
    seed = seed_from(random_state)
    toolbox = base.Toolbox()
    toolbox.register("streams", make_streams, seed)
    toolbox.register("individual", init_dipolar, dataset, size_penalty, min_rows=min_rows)
    toolbox.register("population", init_population, toolbox)
    toolbox.register("clone", Individual.clone)
    toolbox.register("select", sel_proportional, pressure=selection_pressure)
    toolbox.register("mate", cx_trees, dataset=dataset, test_probability=test_crossover_probability)
    toolbox.register(
        "mutate",
        mut_nodes,
        dataset=dataset,
        probability=mutation_probability,
        dipolar_probability=dipolar_probability,
        min_rows=min_rows,
    )
    toolbox.register("evaluate", PenalizedAccuracy(size_penalty))
    toolbox.register("map", map)
    return toolbox
