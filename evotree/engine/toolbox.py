"""The composition point: every part of the algorithm, registered under its role."""

import math
import time
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from numbers import Integral, Real
from types import MappingProxyType
from typing import Any

import numpy as np
from deap import base

from evotree.dataset import Dataset
from evotree.engine.config import Variation
from evotree.engine.generation import checked
from evotree.fitness.penalties import (
    FITNESS_OF_SCORES,
    PenalizedAccuracy,
    quality_and_complexity,
    scores_and_complexity,
)
from evotree.individual import Individual
from evotree.operators.constraints.base import Constraint, repair, repaired
from evotree.operators.initialization import seeding
from evotree.operators.initialization.dipolar import init_dipolar
from evotree.operators.refinement.policy import (
    Refinement,
    as_refinement,
    choose_for_refinement,
    make_refiners,
    refine,
)
from evotree.operators.structure.splice import make_individual
from evotree.operators.variation import selection
from evotree.operators.variation.crossover import cx_trees
from evotree.operators.variation.mutation import mut_either, mut_nodes, mut_terms
from evotree.rng import make_streams, seed_from
from evotree.tree import ObliqueTree

_WORTH = PenalizedAccuracy()
_SEEDS_OF_A_PATH = 8  # places in the population that one path is followed for
_PATHS_BESIDE = 4  # the trees that the choice of hyperparameters found


def split_init(init: Any) -> tuple[dict[str, float], list[Any]]:
    """Return what a first population is made of."""
    if init is None or isinstance(init, str | Mapping):
        return seeding.seeding_shares(init), []
    if isinstance(init, ObliqueTree) or hasattr(init, "tree_"):
        return seeding.seeding_shares(None), [init]
    if not isinstance(init, Iterable):
        allowed = (
            "names, a dict of names to shares, trees, fitted estimators of trees, lists"
        )
        raise ValueError(f"init={init!r}: allowed are {allowed} of these.")
    names = [name for name in init if isinstance(name, str)]
    trees = [tree for tree in init if not isinstance(tree, str)]
    return seeding.seeding_shares(names or None), trees


def best_of_paths(
    trees: Sequence[Individual], n: int, worth: Callable[[Individual], tuple[float]]
) -> list[Individual]:
    """Return trees of paths of widths: half the fittest, half such as no other one dominates."""
    trees = selection.separate_duplicates(trees)[0]
    trees.sort(key=worth, reverse=True)

    def is_dominated(tree: Individual) -> bool:
        others = [other for other in trees if other is not tree]
        simpler = (other for other in others if other.complexity <= tree.complexity)
        return any(other.quality >= tree.quality for other in simpler)

    fittest, others = trees[: n // 2], sorted(trees[n // 2 :], key=is_dominated)
    return [*fittest, *others[: n - len(fittest)]]


def init_population(
    toolbox: base.Toolbox,
    n: int,
    shares: Mapping[str, float] = MappingProxyType({seeding.DIPOLE: 1.0}),
    initial: Sequence[Individual] = (),
    found: Sequence[Individual] = (),
    fitness: type[base.Fitness] | None = None,
    worth: Callable[[Individual], tuple[float]] = _WORTH,
    seconds: float | None = None,
    hurry: Callable[[], bool] = bool,
) -> list[Individual]:
    """Make `n` individuals, each from a stream of its own."""
    if len(initial) > n:
        raise ValueError(
            f"init holds {len(initial)} trees: at most {n}, the population."
        )
    begin = time.perf_counter()
    end, end_of_random = (
        math.inf if seconds is None else begin + share * seconds
        for share in (0.5, 0.75)
    )
    random_trees: list[Individual] = []

    def is_late() -> bool:
        return hurry() or time.perf_counter() >= end

    def limit() -> dict[str, float]:
        return {} if seconds is None else {"seconds": end - time.perf_counter()}

    def make(origin: str, stream: np.ndarray) -> Individual:
        if origin == seeding.DIPOLE or is_late():
            if random_trees and time.perf_counter() >= end_of_random:
                individual = random_trees[0].clone()
                individual.stream = stream
                return individual
            individual = toolbox.individual(stream)
            individual.origin = seeding.DIPOLE
            if seconds is not None and not random_trees:
                worth(individual)  # so that its clones know it, too
                random_trees.append(individual)
            return individual
        individual = toolbox.seed(splitter=origin, stream=stream, **limit())
        individual.origin = origin
        return individual

    def follow(number: int, stream: np.ndarray) -> list[Individual]:
        return (
            [] if is_late() else toolbox.path(number=number, stream=stream, **limit())
        )

    members = [individual.clone() for individual in initial]
    for member in members:
        member.origin = seeding.INITIAL
    origins = seeding.slot_origins(n - len(members), shares)
    streams = toolbox.streams(0, n)[len(members) :]
    slots = [at for at, origin in enumerate(origins) if origin == seeding.WIDTHS]
    n_paths = min(len(slots), 2 + -(-len(slots) // _SEEDS_OF_A_PATH))
    n_paths = min(n_paths, _PATHS_BESIDE) if found else n_paths
    paths = list(
        toolbox.map(follow, range(n_paths), [streams[at] for at in slots[:n_paths]])
    )
    of_widths = [*found, *(tree for path in paths for tree in path)]
    best = best_of_paths(of_widths, len(slots), worth)
    kinds = list(origins)
    for at in slots[len(best) :]:
        kinds[at] = seeding.DIPOLE
    late = slots[len(best) :] if is_late() else []  # else the paths are short
    left = [at for at, kind in enumerate(kinds) if kind != seeding.WIDTHS]
    others = toolbox.map(make, [kinds[at] for at in left], [streams[at] for at in left])
    ready = dict(zip(slots, best, strict=False)) | dict(zip(left, others, strict=True))
    made = [ready[at] for at in range(len(origins))]
    late += [at for at in left if made[at].origin != kinds[at]]
    if late:
        made[late[-1]] = toolbox.quick(streams[late[-1]])
        if (
            len(late) == n - len(members) - origins.count(seeding.DIPOLE)
            and not hurry()
        ):
            warnings.warn(
                f"time_limit ended before any of the first trees of init={sorted(shares)} was "
                "ready: the tree is the best of random ones and of a quick greedy one.",
                RuntimeWarning,
                stacklevel=2,
            )
    members += made
    if fitness is not None:
        for member in members:
            member.fitness = fitness()
    return members


def feature_bound(
    max_features: float | None, n_features: int, constraints: Sequence[Constraint] = ()
) -> int | None:
    """Return the greatest number of terms that a bound, or a share of the features, stands for."""
    if max_features is None:
        max_features = n_features
    elif isinstance(max_features, Real) and not isinstance(max_features, Integral):
        max_features = max(1, int(max_features * n_features))
    widths = [one.max_width for one in constraints if one.max_width is not None]
    bound = min([int(max_features), *widths])
    return bound if bound < n_features else None


def dipole_width(
    max_features: int | None, variation: Variation, n_features: int
) -> int:
    """Return the greatest number of features of a split on a dipole; 0 where it looks at all."""
    if max_features is None:
        return n_features if variation.sparse_dipoles else 0
    return max_features


def make_toolbox(
    dataset: Dataset,
    *,
    size_penalty: float = 0.005,
    term_penalty: float = 0.0,
    max_split_terms: float | None = None,
    min_samples_split: int = 5,
    init: Any = None,
    found: Sequence[Individual] = (),
    refinement: None | str | Iterable[str] | Mapping[Any, float] | Refinement = None,
    variation: Variation | None = None,
    operators: Mapping[str, Callable[..., Any]] | None = None,
    constraints: Sequence[Constraint] = (),
    max_depth: int | None = None,
    random_state: Any = None,
    end: float = math.inf,
    start: ObliqueTree | None = None,
) -> base.Toolbox:
    """Return the toolbox of the evolution of trees, for `evotree.evolve` or a loop of your own.

    Every entry may be replaced by ``toolbox.register(role, function)``. The roles and their
    arguments are DEAP's: ``clone(individual)``, ``mate(a, b) -> (a, b)``,
    ``mutate(individual) -> (individual,)``, ``select(population, k) -> list``,
    ``evaluate(individual) -> tuple`` and ``map``. Besides these there are ``individual(stream)``,
    ``seed(splitter=..., stream=...)``, ``path(number, stream) -> list``, ``quick(stream)``,
    ``population(n)`` and ``streams(generation, n)``; unless duplicates are kept,
    ``replace(parents, offspring) -> list``; and with a refinement
    ``refine(individual) -> (individual,)`` and ``choose(offspring) -> list``,
    the offspring to be refined; with constraints ``repair(individual) -> individual``. An operator
    draws random numbers from the stream of its first individual, ``individual.stream``
    (`evotree.rng.as_generator` makes a NumPy generator of it).

    Parameters
    ----------
    dataset : Dataset
        Training rows.
    size_penalty : float, at least 0, default=0.005
        Penalty for a node in the fitness, the papers' alpha.
    term_penalty : float, at least 0, default=0.0
        Penalty for each term after a split's first (`PenalizedAccuracy`). NSGA-II prunes by both
        penalties, and weighs quality against complexity.
    max_split_terms : int, float in (0, 1] or None, default=None
        Greatest number of terms of a split, or share of the features; None for any. All operators
        of this package keep it.
    min_samples_split : int, at least 2, default=5
        A leaf with fewer distinct rows is not split.
    init : optional
        As for `evotree.Evolution`; the rest is random, ``"dipole"``.
    found : sequence of Individual, default=()
        Trees in the units of the data set that compete for the places of ``"widths"``.
    refinement, variation, operators : optional
        As for `evotree.Evolution`.
    constraints : sequence of Constraint, default=()
        What all trees that the toolbox makes keep (`evotree.operators.constraints`).
    max_depth : int, at least 1, or None, default=None
        Depth to which other algorithms grow first trees.
    random_state : None, int, RandomState or Generator, default=None
        Source of the seed that all streams are made from.
    end : float, default=inf
        When it is over, by `time.perf_counter`: of `found` the first competes alone.
    start : ObliqueTree, optional
        As for `evotree.Evolution`.
    """
    variation = Variation() if variation is None else variation
    refinement = as_refinement(refinement)
    linear = refinement or Refinement()
    n_features, C = dataset.X.shape[1], linear.bounds()
    max_features = feature_bound(max_split_terms, n_features, constraints)
    penalties = {"size_penalty": size_penalty, "term_penalty": term_penalty}
    bounds: dict[str, Any] = {
        "term_penalty": term_penalty,
        "max_features": max_features,
    }
    split: dict[str, Any] = {"min_rows": min_samples_split}
    split["max_width"] = dipole_width(max_features, variation, n_features)
    seeds = {"C": C, "penalty": linear.penalty, "max_depth": max_depth, **bounds}
    rows, least = (dataset, size_penalty), {"min_rows": min_samples_split}
    toolbox = base.Toolbox()
    toolbox.register("streams", make_streams, seed_from(random_state))
    toolbox.register(
        "individual", init_dipolar, *rows, term_penalty=term_penalty, **split
    )
    toolbox.register("seed", seeding.init_seed, *rows, **least, **seeds)
    toolbox.register("path", seeding.init_path, *rows, **least, **seeds)
    toolbox.register(
        "quick", seeding.init_quick, *rows, **least, term_penalty=term_penalty
    )
    shares, trees = split_init(init)
    given = {**bounds, "max_features": feature_bound(max_split_terms, n_features)}
    initial = [seeding.init_from_tree(*rows, tree, **given) for tree in trees]
    if start is not None:
        initial.insert(0, make_individual(dataset, *dataset.from_raw(start).splits))
    adopted: list[Individual] = []
    for individual in found:
        if not adopted or time.perf_counter() < end:
            tree = seeding.adopt(individual, dataset, size_penalty, term_penalty)
            adopted.append(repair(tree, dataset, constraints))
    members: dict[str, Any] = {"shares": shares, "initial": initial, "found": adopted}
    members["fitness"] = kind_of_fitness(dataset, variation)
    members["worth"] = PenalizedAccuracy(size_penalty, term_penalty)
    toolbox.register("population", init_population, toolbox, **members)
    toolbox.register("clone", Individual.clone)
    by_split = {"test_probability": variation.split_crossover_probability}
    toolbox.register(
        "mate", cx_trees, dataset=dataset, max_features=max_features, **by_split
    )
    split |= {"probability": variation.mutation_probability}
    split |= {"dipolar_probability": variation.dipolar_probability}
    nodes = partial(mut_nodes, dataset=dataset, **split)
    terms = partial(
        mut_terms, dataset=dataset, size_penalty=size_penalty, C=C, **bounds
    )
    share = variation.term_mutation_probability
    toolbox.register("mutate", mut_either, first=nodes, second=terms, probability=share)
    register_survival(toolbox, dataset, variation, penalties)
    for role, operator in (operators or {}).items():
        if role != "select":
            operator = partial(operator, dataset=dataset)
            operator = partial(checked, role=role, operator=operator)
        toolbox.register(role, operator)
    toolbox.register("map", map)
    if refinement is not None:
        toolbox.register("choose", choose_for_refinement, refinement=refinement)
        refiners = make_refiners(refinement, **bounds)
        known = {
            "toolbox": toolbox,
            "dataset": dataset,
            "refiners": refiners,
            **penalties,
        }
        toolbox.register("refine", refine, **known)
    if constraints:
        register_constraints(toolbox, dataset, constraints)
        for individual in initial:
            toolbox.repair(individual)
    return toolbox


def kind_of_fitness(
    dataset: Dataset, variation: Variation
) -> type[base.Fitness] | None:
    """Return the kind of fitness that individuals are given; None for that of one value."""
    if variation.algorithm != "nsga2":
        return None
    if dataset.bound_objective is None:
        return FITNESS_OF_SCORES[1]
    leaf = np.zeros((1, dataset.X.shape[1])), np.zeros(1), np.ones(1, dtype=np.int32)
    n_scores = len(dataset.bound_objective.scores(make_individual(dataset, *leaf)))
    if n_scores not in FITNESS_OF_SCORES:
        raise ValueError(
            f"objective returned {n_scores} numbers: allowed are up to {max(FITNESS_OF_SCORES)}."
        )
    return FITNESS_OF_SCORES[n_scores]


def register_survival(
    toolbox: base.Toolbox,
    dataset: Dataset,
    variation: Variation,
    penalties: Mapping[str, float],
) -> None:
    """Say what individuals are worth, who breeds, and who lives on."""
    if variation.algorithm == "nsga2":
        toolbox.register("select", selection.sel_crowded)
        toolbox.register("replace", selection.replace_nsga2)
        is_plain = kind_of_fitness(dataset, variation) is FITNESS_OF_SCORES[1]
        evaluate = quality_and_complexity if is_plain else scores_and_complexity
        toolbox.register("evaluate", evaluate)
        return
    toolbox.register(
        "select", selection.sel_proportional, pressure=variation.selection_pressure
    )
    toolbox.register("evaluate", PenalizedAccuracy(**penalties))
    if variation.survival == "best":
        toolbox.register("replace", selection.replace_best, **penalties)
    elif not variation.keep_duplicates:
        toolbox.register("replace", selection.replace_duplicates)


def register_constraints(
    toolbox: base.Toolbox, dataset: Dataset, constraints: Sequence[Constraint]
) -> None:
    """Let every role that makes or changes individuals repair them, before they are evaluated."""
    toolbox.register("repair", repair, dataset=dataset, constraints=tuple(constraints))
    repairing = {"repair": toolbox.repair}
    for role in ("individual", "seed", "path", "quick", "mate", "mutate"):
        toolbox.register(role, repaired, operator=getattr(toolbox, role), **repairing)
    if hasattr(toolbox, "refine"):
        refiners = {
            name: (share, partial(repaired, operator=refiner, **repairing))
            for name, (share, refiner) in toolbox.refine.keywords["refiners"].items()
        }
        toolbox.register("refine", toolbox.refine, refiners=refiners)
