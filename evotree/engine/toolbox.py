"""The composition point: every part of the algorithm, registered under its role."""

import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from numbers import Integral, Real
from typing import Any

import numpy as np
from deap import base

from evotree.dataset import Dataset
from evotree.engine.config import Variation, check_operators
from evotree.engine.evolution import checked
from evotree.fitness.base import (
    FITNESS_OF_SCORES,
    PenalizedAccuracy,
    quality_and_complexity,
    scores_and_complexity,
)
from evotree.fitness.linear_leaves import leaf_of
from evotree.operators.constraints import (
    Constraint,
    repair,
    repair_and_centre,
    repaired,
)
from evotree.operators.initialization.growth import init_dipolar
from evotree.operators.initialization.population import (
    WIDTHS,
    init_from_tree,
    init_path,
    init_population,
    init_quick,
    init_seed,
    split_init,
)
from evotree.operators.pruning import prune
from evotree.operators.refinement import (
    Refinement,
    as_refinement,
    choose_for_refinement,
    make_refiners,
    refine,
)
from evotree.operators.structure.splice import make_individual
from evotree.operators.variation import (
    cx_trees,
    mut_either,
    mut_nodes,
    mut_terms,
    replace_best,
    replace_duplicates,
    replace_nsga2,
    sel_crowded,
    sel_proportional,
)
from evotree.rng import make_streams, seed_from
from evotree.tree import Individual, ObliqueTree


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


_ALONE = 1 << 32  # streams of trees that are made without one; no generation is so late


class TreeToolbox(base.Toolbox):
    """DEAP's toolbox, for workers, too: pools and locks of its map stay in their process."""

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "map": map}


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
    ``refine(individual) -> (individual,)`` and ``choose(offspring) -> list``, the offspring to be
    refined; with constraints or the paper's operators ``repair(individual) -> individual``. An
    operator draws random numbers from the stream of its first individual, ``individual.stream``
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
        A leaf with fewer training rows is not split; equal rows count one by one.
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
    check_operators(operators or {})
    variation = Variation() if variation is None else variation
    refinement = as_refinement(refinement)
    linear = refinement or Refinement()
    n_features = dataset.X.shape[1]
    max_features = feature_bound(max_split_terms, n_features, constraints)
    penalties: dict[str, Any] = {
        "size_penalty": size_penalty,
        "term_penalty": term_penalty,
    }
    toolbox = TreeToolbox()
    toolbox.register("streams", make_streams, seed_from(random_state))
    toolbox.register("clone", Individual.clone)
    toolbox.register("map", map)
    dipoles: dict[str, Any] = {
        "min_rows": min_samples_split,
        "max_width": dipole_width(max_features, variation, n_features),
    }
    optimized = {
        "min_rows": min_samples_split,
        "C": linear.bounds(),
        "penalty": linear.penalty,
        "max_depth": max_depth,
        "max_features": max_features,
    }
    register_first_trees(
        toolbox, dataset, penalties, dipoles, optimized, variation.published_operators
    )
    register_variation(
        toolbox, dataset, variation, penalties, dipoles, linear.bounds(), max_features
    )
    register_survival(toolbox, dataset, variation, penalties)
    for role, operator in (operators or {}).items():
        if role != "select":
            operator = partial(operator, dataset=dataset)
            operator = partial(checked, role=role, operator=operator)
        toolbox.register(role, operator)
    if refinement is not None and refinement.probability > 0.0:
        register_refinement(toolbox, dataset, refinement, penalties, max_features)
    mend = register_repair(toolbox, dataset, constraints, variation.published_operators)
    shares, trees = split_init(init)
    bound = feature_bound(max_split_terms, n_features)
    initial = [
        init_from_tree(dataset, tree=tree, **penalties, max_features=bound)
        for tree in trees
    ]
    if start is not None:
        initial.insert(0, make_individual(dataset, *dataset.from_raw(start).splits))
    toolbox.register(
        "population",
        init_population,
        toolbox,
        shares=shares,
        initial=[mend(tree) for tree in initial],
        found=_found_on_rows(found, dataset, penalties, mend, end),
        fitness=kind_of_fitness(dataset, variation),
        worth=PenalizedAccuracy(**penalties),
    )
    return toolbox


def _found_on_rows(
    found: Sequence[Individual],
    dataset: Dataset,
    penalties: Mapping[str, float],
    mend: Callable[[Individual], Individual],
    end: float,
) -> list[Individual]:
    """Return trees of paths on other rows, routed and pruned; after `end` only the first."""
    trees: list[Individual] = []
    for individual in found:
        if trees and time.perf_counter() >= end:
            break
        tree = make_individual(dataset, *individual.splits)
        tree.origin = WIDTHS
        prune(tree, dataset, **penalties)
        trees.append(mend(tree))
    return trees


def kind_of_fitness(
    dataset: Dataset, variation: Variation
) -> type[base.Fitness] | None:
    """Return the kind of fitness that individuals are given; None for that of one value."""
    if variation.algorithm != "nsga2":
        return None
    if dataset.bound_objective is None:
        return FITNESS_OF_SCORES[1]
    leaf = make_individual(dataset, *leaf_of(dataset.X.shape[1]).splits)
    n_scores = len(dataset.bound_objective.scores(leaf))
    if n_scores not in FITNESS_OF_SCORES:
        raise ValueError(
            f"objective returned {n_scores} numbers: allowed are up to {max(FITNESS_OF_SCORES)}."
        )
    return FITNESS_OF_SCORES[n_scores]


def new_individual(
    make: Callable[[np.ndarray], Individual],
    streams: Callable[[int, int], list[np.ndarray]],
    number: list[int],
    stream: np.ndarray | None = None,
) -> Individual:
    """Return a tree of a stream; without one, as DEAP calls it, of the next one of its own."""
    if stream is None:
        number[0] += 1
        (stream,) = streams(number[0], 1)
    return make(stream)


def register_first_trees(
    toolbox: base.Toolbox,
    dataset: Dataset,
    penalties: Mapping[str, Any],
    dipoles: Mapping[str, Any],
    optimized: Mapping[str, Any],
    published: bool,
) -> None:
    """Say how single trees are made: at random, on dipoles, and by other algorithms."""
    # Called as ``individual(stream)`` and ``quick(stream)``: what comes before goes by position.
    whole: dict[str, Any] = {"max_rows": None, "max_depth": None} if published else {}
    grow = partial(
        init_dipolar,
        dataset,
        penalties["size_penalty"],
        term_penalty=penalties["term_penalty"],
        **dipoles,
        **whole,
    )
    toolbox.register("individual", new_individual, grow, toolbox.streams, [_ALONE])
    toolbox.register(
        "quick",
        init_quick,
        dataset,
        penalties["size_penalty"],
        term_penalty=penalties["term_penalty"],
        min_rows=dipoles["min_rows"],
    )
    toolbox.register("seed", init_seed, dataset, **penalties, **optimized)
    toolbox.register("path", init_path, dataset, **penalties, **optimized)


def register_variation(
    toolbox: base.Toolbox,
    dataset: Dataset,
    variation: Variation,
    penalties: Mapping[str, Any],
    dipoles: Mapping[str, Any],
    C: tuple[float, float],
    max_features: int | None,
) -> None:
    """Say how offspring are made; `dipoles` says where new splits stand on dipoles."""
    nodes = partial(
        mut_nodes,
        dataset=dataset,
        probability=variation.mutation_probability,
        dipolar_probability=variation.dipolar_probability,
        published=variation.published_operators,
        **dipoles,
    )
    toolbox.register(
        "mutate",
        mut_either,
        first=nodes,
        second=partial(
            mut_terms,
            dataset=dataset,
            **penalties,
            C=C,
            max_features=max_features,
        ),
        probability=variation.term_mutation_probability,
    )
    toolbox.register(
        "mate",
        cx_trees,
        dataset=dataset,
        max_features=max_features,
        test_probability=variation.split_crossover_probability,
        published=variation.published_operators,
    )


def register_refinement(
    toolbox: base.Toolbox,
    dataset: Dataset,
    refinement: Refinement,
    penalties: Mapping[str, Any],
    max_features: int | None,
) -> None:
    """Say which offspring are refined, and how."""
    toolbox.register("choose", choose_for_refinement, refinement=refinement)
    toolbox.register(
        "refine",
        refine,
        toolbox=toolbox,
        dataset=dataset,
        refiners=make_refiners(
            refinement,
            term_penalty=penalties["term_penalty"],
            max_features=max_features,
        ),
        **penalties,
    )


def register_survival(
    toolbox: base.Toolbox,
    dataset: Dataset,
    variation: Variation,
    penalties: Mapping[str, float],
) -> None:
    """Say what individuals are worth, who breeds, and who lives on."""
    if variation.algorithm == "nsga2":
        toolbox.register("select", sel_crowded)
        toolbox.register("replace", replace_nsga2)
        is_plain = kind_of_fitness(dataset, variation) is FITNESS_OF_SCORES[1]
        evaluate = quality_and_complexity if is_plain else scores_and_complexity
        toolbox.register("evaluate", evaluate)
        return
    toolbox.register("select", sel_proportional, pressure=variation.selection_pressure)
    toolbox.register("evaluate", PenalizedAccuracy(**penalties))
    if variation.survival == "best":
        toolbox.register("replace", replace_best, **penalties)
    elif not variation.keep_duplicates:
        toolbox.register("replace", replace_duplicates)


def register_repair(
    toolbox: base.Toolbox,
    dataset: Dataset,
    constraints: Sequence[Constraint],
    published: bool,
) -> Callable[[Individual], Individual]:
    """Let every role that makes or changes individuals repair them, before they are evaluated.

    Without constraints only the paper's operators have something to repair. What repairs is
    returned, for individuals that no role makes.
    """
    operator = repair_and_centre if published else repair
    mend = partial(operator, dataset=dataset, constraints=tuple(constraints))
    if not constraints and not published:
        return mend
    toolbox.register("repair", mend)
    repairing = {"repair": toolbox.repair}
    for role in ("individual", "seed", "path", "quick", "mate", "mutate"):
        toolbox.register(role, repaired, operator=getattr(toolbox, role), **repairing)
    if hasattr(toolbox, "refine"):
        refiners = {
            name: (share, partial(repaired, operator=refiner, **repairing))
            for name, (share, refiner) in toolbox.refine.keywords["refiners"].items()
        }
        toolbox.register("refine", toolbox.refine, refiners=refiners)
    return mend
