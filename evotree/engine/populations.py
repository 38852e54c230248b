"""How populations are made: their rows and toolbox, first trees, and their move to other rows.

Where there are more rows than is comfortable, a run begins on a stratified sample. Samples are
nested, each some times as large as the one before, and the last is all rows; the trees move from
one to the next. So most generations are cheap, and the last ones see everything (Provost, Jensen
and Oates 1999, "Efficient progressive sampling").
"""

import itertools
import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import compress
from typing import Any, NamedTuple

import numpy as np
from deap import base

from evotree.dataset import Dataset, jitter, shares_of_groups, strata_of
from evotree.engine.config import MIN_ROWS
from evotree.engine.evolution import (
    Run,
    best_first,
    evaluate_invalid,
    evolve,
    interrupt_as_flag,
)
from evotree.engine.problem import LEAST_ROWS, Penalties, Problem, seconds_until
from evotree.engine.toolbox import feature_bound, make_toolbox
from evotree.fitness.base import PenalizedAccuracy
from evotree.log import Progress
from evotree.operators.constraints import repair
from evotree.operators.initialization.population import (
    TAO,
    WIDTHS,
    axis_trees,
    path_trees,
)
from evotree.operators.pruning import prune
from evotree.operators.refinement import Refinement
from evotree.operators.structure.splice import in_place_of, make_individual
from evotree.operators.variation import distinct
from evotree.parallel import thread_map
from evotree.rng import OWN_SEED, as_generator, make_streams, own_streams
from evotree.tree import Individual

# So many trees of each fold join the first population.
_KEPT_TREES_OF_FOLD = 5
_WIDTH_PATHS = 4  # axis-parallel and linear trees among them
_GENERATIONS_SHARE = 3  # a candidate evolves for a third of the generations
MAX_COPIES_OF_ROW = 4
# Trees for the front alone have to pay at this share of the penalties, in this share of the time
# that is left.
_FRONT_ONLY_PENALTY_SHARE = 0.1
_FRONT_ONLY_TIME_SHARE = 0.05


class Seeds(NamedTuple):
    """What a first population has besides the trees that it makes itself."""

    # Trees of the choice of hyperparameters; they take places of paths.
    chosen: Sequence[Individual] = ()
    # Trees of smaller penalties; they do not breed.
    front_only: Sequence[Individual] = ()


def with_noise(problem: Problem, rows: Dataset, stream: np.ndarray) -> Dataset:
    """Return the rows that the fitness is measured on: with noisy copies, if there is noise."""
    if problem.noise == 0.0:
        return rows
    n_copies = min(MAX_COPIES_OF_ROW, round(LEAST_ROWS / rows.n_rows))
    return jitter(rows, problem.noise, n_copies, stream)


def problem_toolbox(
    problem: Problem,
    rows: Dataset,
    penalties: Penalties,
    seed: int,
    found: Sequence[Individual] = (),
    *,
    begins: bool = True,
) -> base.Toolbox:
    """Return the toolbox of a population; only one that begins needs the first trees."""
    config = problem.config
    evolution = problem.evolution
    # First trees and mutations fit linear classifiers, too, whether or not there is refinement.
    return make_toolbox(
        rows,
        size_penalty=penalties.size,
        term_penalty=penalties.term,
        max_split_terms=config.max_split_terms,
        init=evolution.init if begins else None,
        found=found if begins else (),
        refinement=replace(
            evolution.refinement or Refinement(probability=0.0),
            C=evolution.regularization.C,
            penalty=evolution.regularization.penalty,
        ),
        variation=evolution.variation,
        operators=evolution.operators,
        constraints=problem.constraints,
        max_depth=config.max_depth,
        random_state=seed,
        end=problem.ends.evolution,
        start=problem.start if begins else None,
    )


def first_population(
    toolbox: base.Toolbox, n: int, end: float, progress: Progress
) -> list[Individual]:
    """Return the first population, whose trees are shown as they come."""
    mapper = toolbox.map

    def counted(*arguments: Any) -> Iterator[Any]:
        for result in mapper(*arguments):
            progress.step()
            yield result

    phase = progress.phase("making first trees", total=n, unit="tree")
    with phase, interrupt_as_flag() as interrupted:
        toolbox.map = counted
        try:
            first: list[Individual] = toolbox.population(
                n=n, seconds=seconds_until(end), is_interrupted=interrupted
            )
        finally:
            toolbox.map = mapper
    return first


# ---- trees of many penalties ---------------------------------------------------------------------


class FirstTrees(NamedTuple):
    """Trees that were made for many penalties."""

    best: list[list[Individual]]  # at each of the penalties, pruned by these
    made: list[Individual]  # of all sizes


def trees_of(
    problem: Problem,
    rows: Dataset,
    penalties: Sequence[Penalties],
    seconds: float = math.inf,
    map: Callable[..., Iterable[Any]] = map,
) -> FirstTrees:
    """Return the best trees of rows with their noise at each of some penalties.

    They are the same for all seeds.
    """
    end = time.perf_counter() + seconds
    if problem.has_seeds:
        made = seeds_of_all_sizes(problem, rows, penalties, end, map)
    else:
        made = evolve_briefly(problem, rows, penalties[-1], seconds)
    best: dict[Penalties, list[Individual]] = {}
    last: list[Individual] = []
    for pair in penalties:
        if pair not in best:
            if not last or time.perf_counter() < end:
                last = best_prunings(made, rows, *pair, _KEPT_TREES_OF_FOLD)
            # Out of time, penalties have equal trees: the first are chosen.
            best[pair] = last
    return FirstTrees([best[pair] for pair in penalties], made)


def seeds_of_all_sizes(
    problem: Problem,
    rows: Dataset,
    penalties: Sequence[Penalties],
    end: float,
    map: Callable[..., Iterable[Any]],
) -> list[Individual]:
    """Return first trees of all sizes, from axis-parallel to dense ones."""
    config = problem.config
    constraints = problem.constraints
    regularization = problem.evolution.regularization
    middle = penalties[len(penalties) // 2]
    rows = rows.penalized(middle.term)
    of_hyperplanes: dict[str, Any] = {
        "C": Refinement(C=regularization.C).bounds(),
        "penalty": regularization.penalty,
        "min_rows": MIN_ROWS,
        "max_depth": config.max_depth,
        "max_features": feature_bound(
            config.max_split_terms, rows.X.shape[1], constraints
        ),
    }
    streams = make_streams(OWN_SEED, 0, _WIDTH_PATHS)

    def make(number: int, stream: np.ndarray) -> list[Individual]:
        left = end - time.perf_counter()
        if left <= 0.0 and stream is not streams[0]:
            return []
        return path_trees(
            rows,
            middle.size,
            number,
            stream,
            term_penalty=middle.term,
            seconds=left,
            **of_hyperplanes,
        )

    paths = map(make, range(_WIDTH_PATHS), streams)
    trees = itertools.chain.from_iterable(paths)
    return [repair(tree, rows, constraints) for tree in trees]


def evolve_briefly(
    problem: Problem,
    rows: Dataset,
    penalties: Penalties,
    seconds: float,
    found: Sequence[Individual] = (),
) -> list[Individual]:
    """Return the trees of a short evolution, the best first, the same for all seeds."""
    evolution = problem.evolution
    rows = rows.penalized(penalties.term)
    toolbox = problem_toolbox(problem, rows, penalties, OWN_SEED, found=found)
    with thread_map(problem.config.n_jobs, rows.X.shape) as toolbox.map:
        run = evolve(
            toolbox.population(n=evolution.population_size, seconds=seconds),
            toolbox,
            crossover_probability=evolution.variation.crossover_probability,
            patience=evolution.patience,
            max_generations=-(-problem.config.max_generations // _GENERATIONS_SHARE),
            time_limit=seconds,
            keep_on_interrupt=True,
        )
    vars(
        toolbox
    ).clear()  # its parts name it: the rows would stay until garbage is collected
    return run.population


def make_front_only(
    problem: Problem,
    rows: Dataset,
    penalties: Penalties,
    stream: np.ndarray,
    candidates: Sequence[Individual],
) -> list[Individual]:
    """Return trees that pay at a tenth of the penalties: candidates, and axis-parallel ones.

    They widen the front, but do not breed.
    """
    if not problem.has_seeds:
        return []
    size, term = (_FRONT_ONLY_PENALTY_SHARE * penalty for penalty in penalties)
    rows = rows.penalized(term)
    trees = axis_trees(
        rows,
        stream,
        MIN_ROWS,
        seconds_until(problem.ends.evolution, _FRONT_ONLY_TIME_SHARE),
        problem.config.max_depth,
    )
    trees += [make_individual(rows, *tree.splits) for tree in candidates]
    pruned = [
        prune(repair(tree, rows, problem.constraints), rows, size, term)[0]
        for tree in trees
    ]
    for tree in pruned:
        tree.origin = WIDTHS if WIDTHS in problem.shares else TAO
    return pruned


def best_prunings(
    individuals: Iterable[Individual],
    dataset: Dataset,
    size_penalty: float,
    term_penalty: float = 0.0,
    n_best: int = 3,
) -> list[Individual]:
    """Return the fittest trees at penalties that they were not made for, each pruned by these."""
    pruned = [
        prune(_penalized(tree, term_penalty), dataset, size_penalty, term_penalty)[0]
        for tree in individuals
    ]
    fitness = PenalizedAccuracy(size_penalty, term_penalty)
    different = compress(pruned, distinct(pruned))
    return sorted(different, key=fitness, reverse=True)[:n_best]


def _penalized(individual: Individual, term_penalty: float) -> Individual:
    """Return a clone in which terms of leaves have a penalty."""
    penalized = individual.clone()
    if penalized.objective is not None:
        penalized.evolve_for(penalized.objective.penalized(term_penalty))
    return penalized


# ---- samples -------------------------------------------------------------------------------------


GROWTH = 4
"""How many times as large as the sample before it a sample is, at most."""


class GrowingSample:
    """Nested stratified samples of the rows of a data set, the last of which are all of them.

    Tenths of the rows by rising target take the place of the classes where there are none. Groups
    are drawn whole.
    """

    def __init__(
        self, dataset: Dataset, max_samples: float | None, stream: np.ndarray
    ) -> None:
        self._dataset = dataset
        n_rows = dataset.n_rows
        self.sizes = sample_sizes(n_rows, max_samples, max(2, dataset.n_classes))
        if len(self.sizes) == 1:
            return
        if dataset.groups is None:
            self._order = stratified_order(strata_of(dataset), stream)
        else:
            self._order, self.sizes = _whole_groups(dataset, self.sizes, stream)

    def __len__(self) -> int:
        return len(self.sizes)

    def generations(self, at: int, n_generations: int) -> int:
        """Return when a run of so many generations leaves a sample: each has half of the last."""
        return round(n_generations * (1.0 - 0.5 ** (at + 1)) / (1.0 - 0.5 ** len(self)))

    def __getitem__(self, at: int) -> Dataset:
        """Return a sample; the last is the data set itself."""
        size = self.sizes[at]
        if size == self.sizes[-1]:
            return self._dataset
        return self._dataset.subsample(self._order[:size])


def samples_of(problem: Problem) -> GrowingSample:
    """Return the rows that evolution sees, one sample after the other."""
    return GrowingSample(
        problem.dataset, problem.evolution.max_samples, own_streams()[2]
    )


def sample_sizes(n_rows: int, max_samples: float | None, least: int = 2) -> list[int]:
    """Return the sizes of samples that grow up to all rows."""
    if max_samples is None:
        return [n_rows]
    is_share = not isinstance(max_samples, int | np.integer)
    first = max(least, int(max_samples * n_rows if is_share else max_samples))
    n_steps = 0
    while first * GROWTH**n_steps < n_rows:
        n_steps += 1
    return [
        round(first * (n_rows / first) ** (i / n_steps)) for i in range(n_steps)
    ] + [n_rows]


def _whole_groups(
    dataset: Dataset, sizes: list[int], stream: np.ndarray
) -> tuple[np.ndarray, list[int]]:
    """Return an order of rows, group by group, and the least sizes of whole groups."""
    # Of the strata of a group that counts which it has most of.
    of_group = shares_of_groups(strata_of(dataset), dataset.group_of).argmax(axis=1)
    order = stratified_order(of_group, stream)
    ends = np.cumsum(np.bincount(dataset.group_of)[order])
    least = min(len(ends), max(2, len(np.unique(of_group)))) - 1
    at = np.maximum(least, np.searchsorted(ends, sizes))
    rank = np.argsort(order)
    return np.argsort(rank[dataset.group_of], kind="stable"), ends[at].tolist()


def stratified_order(strata: np.ndarray, stream: np.ndarray) -> np.ndarray:
    """Return a random order of rows whose every beginning is a stratified sample."""
    n_rows = strata.shape[0]
    shuffled = as_generator(stream).permutation(n_rows)
    by_stratum = shuffled[np.argsort(strata[shuffled], kind="stable")]
    counts = np.bincount(strata)
    first = np.repeat(np.cumsum(counts) - counts, counts)
    # The i-th of the n rows of a stratum comes when a share of i / n of all rows has come.
    turn = (np.arange(n_rows) - first) / np.repeat(counts, counts)
    return by_stratum[np.argsort(turn, kind="stable")]


def move_to_rows(
    run: Run, dataset: Dataset, toolbox: base.Toolbox, end: float = math.inf
) -> None:
    """Let a run go on with other rows, on which its trees are routed and evaluated again."""
    everyone = [run.best, *run.hall_of_fame, *run.pareto_front, *run.population]
    different = {id(one.weights): one for one in everyone}  # clones share their arrays
    best, *others = different.values()
    route = partial(_routed, dataset, getattr(toolbox, "repair", None))
    routed = [route(math.inf, best), *toolbox.map(partial(route, end), others)]
    by_weights = {
        key: one for key, one in zip(different, routed, strict=True) if one is not None
    }

    def moved(members: Iterable[Individual]) -> list[Individual]:
        """Return the members that there was time for."""
        return [
            in_place_of(one, by_weights[id(one.weights)].clone())
            for one in members
            if id(one.weights) in by_weights
        ]

    n = len(run.population)
    population = moved(run.population)
    population += [population[0].clone() for _ in range(n - len(population))]
    hall = moved(run.hall_of_fame)
    front = moved(run.pareto_front)
    evaluate_invalid([*population, *hall], toolbox)
    run.population = best_first(population)
    run.hall_of_fame.clear()
    run.hall_of_fame.update(hall[::-1])  # of equals DEAP puts the last that comes first
    run.pareto_front.clear()
    run.pareto_front.update(front)
    run.best_fitness = run.best.fitness.wvalues
    run.last_improvement = run.generation


def _routed(
    dataset: Dataset,
    repair: Callable[[Individual], Individual] | None,
    end: float,
    individual: Individual,
) -> Individual | None:
    """Return a tree with its partition of other rows, as it is worth there; None out of time."""
    if time.perf_counter() >= end:
        return None
    routed = make_individual(dataset, *individual.splits)
    if repair is not None:
        routed = repair(routed)
    if math.isfinite(end):
        _ = routed.quality  # which may take long, too; it is kept
    return routed
