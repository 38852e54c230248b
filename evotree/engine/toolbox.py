"""The composition point: every part of the algorithm, registered under its role."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np
from deap import base

from evotree.dataset import Dataset
from evotree.fitness.objectives import FitnessQualitySize, PenalizedAccuracy, QualityAndSize
from evotree.individual import Individual
from evotree.operators.initialization.dipolar import init_dipolar
from evotree.operators.initialization.seeding import (
    DIPOLE,
    INITIAL,
    init_from_tree,
    init_seed,
    seeding_shares,
    slot_origins,
)
from evotree.operators.refinement.policy import (
    Refinement,
    as_refinement,
    choose_for_refinement,
    make_refiners,
    refine,
)
from evotree.operators.variation.crossover import cx_trees
from evotree.operators.variation.mutation import mut_nodes
from evotree.operators.variation.nsga import replace_nsga2, sel_crowded
from evotree.operators.variation.selection import replace_duplicates, sel_proportional
from evotree.rng import make_streams, seed_from

ALGORITHMS = ("penalized", "nsga2")
"""Names of the ways to weigh quality against size."""


def init_population(
    toolbox: base.Toolbox,
    n: int,
    shares: Mapping[str, float] = MappingProxyType({DIPOLE: 1.0}),
    initial: Sequence[Individual] = (),
    fitness: type[base.Fitness] | None = None,
    seconds: float | None = None,
) -> list[Individual]:
    """Make `n` individuals, each from a stream of its own.

    Parameters
    ----------
    toolbox : deap.base.Toolbox
        Its ``individual(stream)``, ``seed(splitter=..., stream=...)``, ``map`` and
        ``streams(generation, n)`` are used.
    n : int, at least 1
        Size of the population.
    shares : mapping of str to float
        Which share is grown in which way
        (`evotree.operators.initialization.seeding.seeding_shares`).
    initial : sequence of Individual
        Individuals that come first, in place of as many others.
    fitness : type, optional
        Kind of their fitness, if they are not to keep the one they are made with.
    seconds : float, optional
        When so many have passed, seeds are finished as they are, and the rest is random.

    Returns
    -------
    list of Individual
        Not yet evaluated.

    Raises
    ------
    ValueError
        If there are more initial individuals than the population has places.
    """
    if len(initial) > n:
        raise ValueError(f"initial_trees holds {len(initial)} trees: at most {n}, the population.")

    end = math.inf if seconds is None else time.perf_counter() + seconds

    def make(origin: str, stream: np.ndarray) -> Individual:
        origin = origin if time.perf_counter() < end else DIPOLE
        if origin == DIPOLE:
            individual = toolbox.individual(stream)
        elif seconds is None:
            individual = toolbox.seed(splitter=origin, stream=stream)
        else:
            left = end - time.perf_counter()
            individual = toolbox.seed(splitter=origin, stream=stream, seconds=left)
        individual.origin = origin
        return individual

    members = [individual.clone() for individual in initial]
    for member in members:
        member.origin = INITIAL
    origins = slot_origins(n - len(members), shares)
    streams = toolbox.streams(0, n)[len(members) :]
    members += toolbox.map(make, origins, streams)
    if fitness is not None:
        for member in members:
            member.fitness = fitness()
    return members


def register_nsga2(toolbox: base.Toolbox, size_penalty: float, weight_penalty: float) -> None:
    """Let size be an objective of its own; tests on many features add to it."""
    if weight_penalty > 0.0 and size_penalty == 0.0:
        raise ValueError(
            f"weight_penalty={weight_penalty!r}: with algorithm='nsga2' and size_penalty=0.0 "
            "allowed is 0.0, since tests count in nodes."
        )
    toolbox.register("select", sel_crowded)
    toolbox.register("replace", replace_nsga2)
    toolbox.register("evaluate", QualityAndSize(weight_penalty / (size_penalty or 1.0)))


def make_toolbox(
    dataset: Dataset,
    *,
    size_penalty: float = 0.005,
    weight_penalty: float = 0.0,
    mutation_probability: float = 0.1,
    dipolar_probability: float = 0.5,
    test_crossover_probability: float = 0.5,
    selection_pressure: float = 2.0,
    min_rows: int = 5,
    seeding: str | Mapping[str, float] | Iterable[str] | None = None,
    initial_trees: Iterable[Any] = (),
    refinement: None | str | Iterable[str] | Mapping[Any, float] | Refinement = None,
    max_origin_share: float = 1.0,
    keep_duplicates: bool = True,
    algorithm: str = "penalized",
    random_state: Any = None,
) -> base.Toolbox:
    """Return the toolbox of the global evolution of oblique trees on a data set.

    Every entry may be replaced by ``toolbox.register(role, function)``. The roles and what they
    are called with are DEAP's: ``clone(individual)``, ``mate(a, b) -> (a, b)``,
    ``mutate(individual) -> (individual,)``, ``select(population, k) -> list``,
    ``evaluate(individual) -> tuple`` and ``map``; besides these, ``individual(stream)``,
    ``seed(splitter=..., stream=...)``, ``population(n)`` and ``streams(generation, n)``; where
    there is a refinement, ``refine(individual) -> (individual,)`` and
    ``choose(offspring, generation, spent) -> list``, those that are refined. An
    operator that draws random numbers draws them from the stream of its first individual,
    ``individual.stream`` (`evotree.rng.as_generator` makes a NumPy generator of it).

    Parameters
    ----------
    dataset : Dataset
        Training rows.
    size_penalty : float, at least 0, default=0.005
        Charge for one node in the fitness, the papers' alpha.
    weight_penalty : float, at least 0, default=0.0
        Charge for a test on all features (`PenalizedAccuracy`). Where size is an objective of its
        own, the test counts as so many nodes as `size_penalty` charges that much for.
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
    seeding : None, str, iterable of str or mapping of str to float, default=None
        What grows a part of the first population: names of splitters or ``"tao"`` (`init_tao`),
        for a fifth of it each, or a mapping of names to shares. The rest is random (``"dipole"``).
    initial_trees : iterable of ObliqueTree or fitted estimators, default=()
        Trees over raw features that join the first population.
    refinement : None, str, iterable of str, mapping of str to float or Refinement, default=None
        What polishes some of the offspring: names of refiners, with or without their shares, or a
        `Refinement`, which says also which offspring and when.
    max_origin_share : float in (0, 1], default=1.0
        Greatest share of the offspring that one kind of first individuals is expected to have.
    keep_duplicates : bool, default=True
        Whether equal trees may stand in a generation, as in the paper; otherwise parents take
        their places (`replace_duplicates`). NSGA-II keeps none.
    algorithm : {"penalized", "nsga2"}, default="penalized"
        Whether quality and size are one objective, by `size_penalty`, or two, for which NSGA-II
        evolves the whole front; `size_penalty` then only says which subtrees are pruned at birth.
    random_state : None, int, RandomState or Generator, default=None
        Source of the seed that all streams are made from.

    Returns
    -------
    deap.base.Toolbox
        For `evotree.evolve`, or a loop of one's own.

    Raises
    ------
    ValueError
        If `seeding`, `initial_trees`, `refinement`, `algorithm` or `random_state` is not as
        described, or nodes cost nothing that tests are to be counted in.
    """
    if algorithm not in ALGORITHMS:
        raise ValueError(
            f"algorithm={algorithm!r}: allowed are {', '.join(map(repr, ALGORITHMS))}."
        )
    seed = seed_from(random_state)
    refinement = as_refinement(refinement)
    toolbox = base.Toolbox()
    toolbox.register("streams", make_streams, seed)
    toolbox.register("individual", init_dipolar, dataset, size_penalty, min_rows=min_rows)
    linear = refinement or Refinement()
    toolbox.register(
        "seed",
        init_seed,
        dataset,
        size_penalty,
        C=linear.bounds(),
        penalty=linear.penalty,
        min_rows=min_rows,
    )
    toolbox.register(
        "population",
        init_population,
        toolbox,
        shares=seeding_shares(seeding),
        initial=[init_from_tree(dataset, size_penalty, tree) for tree in initial_trees],
        fitness=FitnessQualitySize if algorithm == "nsga2" else None,
    )
    toolbox.register("clone", Individual.clone)
    toolbox.register("mate", cx_trees, dataset=dataset, test_probability=test_crossover_probability)
    toolbox.register(
        "mutate",
        mut_nodes,
        dataset=dataset,
        probability=mutation_probability,
        dipolar_probability=dipolar_probability,
        min_rows=min_rows,
    )
    if algorithm == "nsga2":
        register_nsga2(toolbox, size_penalty, weight_penalty)
    else:
        limits = {"pressure": selection_pressure, "max_origin_share": max_origin_share}
        toolbox.register("select", sel_proportional, **limits)
        toolbox.register("evaluate", PenalizedAccuracy(size_penalty, weight_penalty))
        if not keep_duplicates:
            toolbox.register("replace", replace_duplicates)
    toolbox.register("map", map)
    if refinement is not None:
        toolbox.register("choose", choose_for_refinement, refinement=refinement)
        toolbox.register(
            "refine",
            refine,
            toolbox=toolbox,
            dataset=dataset,
            refiners=make_refiners(refinement, size_penalty),
            size_penalty=size_penalty,
            lamarckian=refinement.lamarckian,
        )
    return toolbox
