"""Evolution on a sample of the rows that grows: where there are more rows than is comfortable.

A run begins on a stratified sample. Samples are nested, each some times as large as the one before,
and the last is all rows; the trees move from one to the next. So most generations are cheap, and
the last ones see everything (Provost, Jensen and Oates 1999, "Efficient progressive sampling").
"""

import math
import time
from collections.abc import Callable, Iterable
from functools import partial

import numpy as np
from deap import base

from evotree.dataset import Dataset
from evotree.engine.evolution import Run, best_first, evaluate_invalid
from evotree.operators.structure.splice import in_place_of, make_individual
from evotree.rng import as_generator
from evotree.tree import Individual

GROWTH = 4
"""How many times as large as the sample before it a sample is, at most."""

_STRATA = 10  # of targets


class GrowingSample:
    """Nested stratified samples of the rows of a data set, the last of which are all of them.

    Tenths of the rows by rising target take the place of the classes where there are none.
    """

    def __init__(
        self, dataset: Dataset, max_samples: float | None, stream: np.ndarray
    ) -> None:
        self._dataset = dataset
        n_rows = dataset.n_rows
        self.sizes = sample_sizes(n_rows, max_samples, max(2, dataset.n_classes))
        if len(self.sizes) > 1:
            self._order = stratified_order(strata_of(dataset), stream)

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


def strata_of(dataset: Dataset) -> np.ndarray:
    """Return the classes of the given rows; of targets, in which tenth of the rows each is."""
    y = dataset.y[dataset.distinct_of]
    if dataset.n_classes:
        return y
    n_rows = y.shape[0]
    rank = np.empty(n_rows, dtype=np.int64)
    rank[np.argsort(y, kind="stable")] = np.arange(n_rows)
    return rank * _STRATA // n_rows


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


def move(
    run: Run, dataset: Dataset, toolbox: base.Toolbox, end: float = math.inf
) -> None:
    """Let a run go on with other rows, on which its trees are routed and evaluated again."""
    everyone = [run.best, *run.hall_of_fame, *run.pareto_front, *run.population]
    different = {id(one.weights): one for one in everyone}  # clones share their arrays
    best, *others = different.values()
    route = partial(_routed, dataset, getattr(toolbox, "repair", None))
    routed = [route(math.inf, best), *toolbox.map(partial(route, end), others)]
    # Samples of the same number of rows may differ: what tells them apart is where rows go.
    if all(map(_same_partition, different.values(), routed)):
        return
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


def _same_partition(one: Individual, other: Individual | None) -> bool:
    """Return whether two individuals of one tree have the same rows, by number and class."""
    return other is not None and all(
        map(np.array_equal, one.nodes()[3:], other.nodes()[3:])
    )
