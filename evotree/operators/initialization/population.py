"""A first population: trees that are handed in, found before, made by others, or random."""

import math
import time
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
from deap import base

from evotree.fitness.penalties import PenalizedAccuracy
from evotree.individual import Individual
from evotree.operators.initialization import seeding
from evotree.operators.variation.selection import separate_duplicates
from evotree.tree import ObliqueTree

_WORTH = PenalizedAccuracy()
_SEEDS_OF_A_PATH = 8  # places in the population that one path is followed for
_PATHS_BESIDE = 4  # the trees that the choice of hyperparameters found
_SEEDS_SECONDS, _RANDOM_SECONDS = (
    0.5,
    0.75,
)  # of the time, until seeds and random trees are made


def split_init(init: Any) -> tuple[dict[str, float], list[Any]]:
    """Return what a first population is made of: shares of the kinds of trees, and trees."""
    if init is None or isinstance(init, str | Mapping):
        return seeding.seeding_shares(init), []
    if isinstance(init, ObliqueTree) or hasattr(init, "tree_"):
        return seeding.seeding_shares(None), [init]
    if not isinstance(init, Iterable):
        raise ValueError(
            f"init={init!r}: allowed are names, a dict of names to shares, trees, fitted "
            "estimators of trees, lists of these."
        )
    names = [name for name in init if isinstance(name, str)]
    trees = [tree for tree in init if not isinstance(tree, str)]
    return seeding.seeding_shares(names or None), trees


def best_of_paths(
    trees: Sequence[Individual],
    n: int,
    fitness: Callable[[Individual], tuple[float]],
) -> list[Individual]:
    """Return trees of sparsity paths: half the fittest, half such as no other one dominates."""
    trees = separate_duplicates(trees)[0]
    trees.sort(key=fitness, reverse=True)

    def is_dominated(tree: Individual) -> bool:
        others = [other for other in trees if other is not tree]
        simpler = (other for other in others if other.complexity <= tree.complexity)
        return any(other.quality >= tree.quality for other in simpler)

    fittest = trees[: n // 2]
    others = sorted(trees[n // 2 :], key=is_dominated)
    return [*fittest, *others[: n - len(fittest)]]


@dataclass(frozen=True)
class _Clock:
    """When what of a first population is no longer made."""

    begin: float
    seconds: float | None  # that the population may take
    is_interrupted: Callable[[], bool]

    def is_over(self, share: float) -> bool:
        """Return whether a share of the time has passed."""
        return self.left(share) <= 0.0

    def left(self, share: float) -> float:
        """Return how many seconds are left of a share of the time."""
        if self.seconds is None:
            return math.inf
        return self.begin + share * self.seconds - time.perf_counter()

    @property
    def is_late(self) -> bool:
        """Whether no more seeds are made."""
        return self.is_interrupted() or self.is_over(_SEEDS_SECONDS)

    @property
    def limit(self) -> dict[str, float]:
        """The argument of what makes seeds: the seconds that are left, if they are limited."""
        return {} if self.seconds is None else {"seconds": self.left(_SEEDS_SECONDS)}


def init_population(
    toolbox: base.Toolbox,
    n: int,
    shares: Mapping[str, float] = MappingProxyType({seeding.DIPOLE: 1.0}),
    initial: Sequence[Individual] = (),
    found: Sequence[Individual] = (),
    fitness: type[base.Fitness] | None = None,
    worth: Callable[[Individual], tuple[float]] = _WORTH,
    seconds: float | None = None,
    is_interrupted: Callable[[], bool] = bool,
) -> list[Individual]:
    """Make `n` individuals, each from a stream of its own."""
    if len(initial) > n:
        raise ValueError(
            f"init holds {len(initial)} trees: at most {n}, the population."
        )
    clock = _Clock(time.perf_counter(), seconds, is_interrupted)
    members = [individual.clone() for individual in initial]
    for member in members:
        member.origin = seeding.INITIAL
    origins = seeding.slot_origins(n - len(members), shares)
    streams = toolbox.streams(0, n)[len(members) :]
    slots = [at for at, origin in enumerate(origins) if origin == seeding.WIDTHS]
    n_paths = min(len(slots), 2 + -(-len(slots) // _SEEDS_OF_A_PATH))
    if found:
        n_paths = min(n_paths, _PATHS_BESIDE)

    def follow(number: int, stream: np.ndarray) -> list[Individual]:
        if clock.is_late:
            return []
        trees: list[Individual] = toolbox.path(
            number=number, stream=stream, **clock.limit
        )
        return trees

    of_slots = [streams[at] for at in slots[:n_paths]]
    paths = list(toolbox.map(follow, range(n_paths), of_slots))
    best = best_of_paths(
        [*found, *(tree for path in paths for tree in path)], len(slots), worth
    )
    kinds = list(origins)
    for at in slots[len(best) :]:
        kinds[at] = seeding.DIPOLE
    missing = slots[len(best) :] if clock.is_late else []  # else the paths are short
    left = [at for at, kind in enumerate(kinds) if kind != seeding.WIDTHS]
    maker = _Maker(toolbox, clock, worth)
    made = toolbox.map(maker, [kinds[at] for at in left], [streams[at] for at in left])
    ready = dict(zip(slots, best, strict=False)) | dict(zip(left, made, strict=True))
    trees = [ready[at] for at in range(len(origins))]
    missing += [at for at in left if trees[at].origin != kinds[at]]
    if missing:
        trees[missing[-1]] = toolbox.quick(streams[missing[-1]])
        n_seeds = n - len(members) - origins.count(seeding.DIPOLE)
        if len(missing) == n_seeds and not is_interrupted():
            warnings.warn(
                f"time_limit ended before any of the first trees of init={sorted(shares)} was "
                "ready: the tree is the best of random ones and of a quick greedy one.",
                RuntimeWarning,
                stacklevel=2,
            )
    members += trees
    if fitness is not None:
        for member in members:
            member.fitness = fitness()
    return members


class _Maker:
    """Makes one tree at a time: a seed as long as there is time, else a random tree."""

    def __init__(self, toolbox: base.Toolbox, clock: _Clock, worth: Any) -> None:
        self.toolbox = toolbox
        self.clock = clock
        self.worth = worth
        self._random: Individual | None = None  # that is cloned where time is over

    def __call__(self, origin: str, stream: np.ndarray) -> Individual:
        """Return a tree of a kind."""
        if origin == seeding.DIPOLE or self.clock.is_late:
            return self._random_tree(stream)
        individual: Individual = self.toolbox.seed(
            splitter=origin, stream=stream, **self.clock.limit
        )
        individual.origin = origin
        return individual

    def _random_tree(self, stream: np.ndarray) -> Individual:
        if self._random is not None and self.clock.is_over(_RANDOM_SECONDS):
            individual = self._random.clone()
            individual.stream = stream
            return individual
        individual = self.toolbox.individual(stream)
        individual.origin = seeding.DIPOLE
        if self.clock.seconds is not None and self._random is None:
            self.worth(individual)  # so that its clones know it, too
            self._random = individual
        return individual
