"""A first population: trees handed in, found before, made by other algorithms, or random."""

import math
import time
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from types import MappingProxyType
from typing import Any

import numpy as np
from deap import base

from evotree.dataset import Dataset, bootstrap
from evotree.fitness.penalties import PenalizedAccuracy
from evotree.individual import Individual
from evotree.operators.initialization.growth import GrowthLimits, grow_on_sample
from evotree.operators.initialization.sparsity_paths import (
    TAO_DEPTH,
    init_tao,
    path_trees,
    sparsity_path,
)
from evotree.operators.pruning.rules import prune
from evotree.operators.splitters.base import Splitter
from evotree.operators.splitters.registry import SPLITTERS, as_splitter, bounded
from evotree.operators.structure.splice import (
    checked_arrays,
    make_individual,
    subtree_sizes,
)
from evotree.operators.variation.selection import separate_duplicates
from evotree.rng import as_generator
from evotree.tree import ObliqueTree

DIPOLE = "dipole"
INITIAL = "initial"
TAO = "tao"
WIDTHS = "widths"
ONE_BY_ONE = (TAO, *SPLITTERS)
"""Names of what makes one tree at a time; ``"dipole"`` makes random ones."""

SEEDS = (WIDTHS, *ONE_BY_ONE)
"""Names of what makes first trees."""

AT_ONCE = "axis"  # the splitter of the tree that is there at once
_ROWS_AT_ONCE = 4_096  # that it is grown on
MAX_ROWS, MAX_DEPTH = 16_384, 10  # of a greedy seed
PLAIN_SHARE = 0.2  # of the population, for each splitter of seeding's plain form
PATH_SHARE = 0.8  # of the population, for paths of widths where they are named alone


def seeding_shares(
    seeding: str | Mapping[str, float] | Iterable[str] | None,
) -> dict[str, float]:
    """Return which share of a population is grown in which way, by name."""
    if seeding is None:
        return {DIPOLE: 1.0}
    if isinstance(seeding, str):
        seeding = {WIDTHS: PATH_SHARE} if seeding == WIDTHS else (seeding,)
    if not isinstance(seeding, Mapping):
        names = list(seeding)
        share = min(PLAIN_SHARE, 1.0 / max(1, len(names)))
        seeding = dict.fromkeys((name for name in names if name != DIPOLE), share)
    for name, share in seeding.items():
        if name not in SEEDS:
            near = get_close_matches(str(name).lower(), map(str, SEEDS), 1)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            raise ValueError(
                f"init names {name!r}: allowed are {', '.join(map(repr, sorted(SEEDS)))}.{hint}"
            )
        if not isinstance(share, float | int | np.number) or not 0.0 <= share <= 1.0:
            raise ValueError(f"init[{name!r}]={share!r}: allowed are shares in [0, 1].")
    total = math.fsum(seeding.values())
    if total > 1.0 + 1e-9:
        raise ValueError(
            f"init={dict(seeding)!r}: the shares add up to {total:g}, above 1."
        )
    return {**seeding, DIPOLE: max(0.0, 1.0 - total) + seeding.get(DIPOLE, 0.0)}


def slot_origins(n: int, shares: Mapping[str, float]) -> list[str]:
    """Return which splitter grows each slot of a population."""
    exact = {name: n * share for name, share in shares.items()}
    counts = {name: math.floor(amount + 1e-9) for name, amount in exact.items()}
    by_need = sorted(
        exact,
        key=lambda name: (
            counts[name] > 0 or exact[name] <= 0.0,
            counts[name] - exact[name],
        ),
    )
    for name in by_need[: n - sum(counts.values())]:
        counts[name] += 1
    return [name for name, count in counts.items() for _ in range(count)]


def init_seed(
    dataset: Dataset,
    size_penalty: float,
    splitter: str | Splitter,
    stream: np.ndarray,
    *,
    C: tuple[float, float] = (0.1, 10.0),
    penalty: str = "l2",
    max_features: int | None = None,
    max_depth: int | None = None,
    min_rows: int = 5,
    seconds: float | None = None,
    term_penalty: float = 0.0,
) -> Individual:
    """Make one individual by another algorithm: a splitter, or tree alternating optimization.

    `C` and `penalty` are those of the linear classifiers of the latter, `max_features` is the
    greatest number of terms of a split, and `seconds` the time that growing and optimizing take.
    """
    if splitter == TAO and max_features is not None:
        return sparsity_path(
            dataset,
            size_penalty,
            stream,
            term_penalty=term_penalty,
            C=C,
            penalty=penalty,
            max_features=max_features,
            max_depth=max_depth,
            min_rows=min_rows,
            seconds=seconds,
        )[0]
    if splitter == TAO:
        return init_tao(
            dataset,
            size_penalty,
            stream,
            C=C,
            penalty=penalty,
            max_depth=TAO_DEPTH if max_depth is None else min(TAO_DEPTH, max_depth),
            min_rows=min_rows,
            seconds=seconds,
            term_penalty=term_penalty,
        )
    return init_greedy(
        dataset,
        size_penalty,
        bounded(as_splitter(splitter), max_features),
        stream,
        max_depth=MAX_DEPTH if max_depth is None else min(MAX_DEPTH, max_depth),
        min_rows=min_rows,
        seconds=seconds,
        term_penalty=term_penalty,
    )


def init_greedy(
    dataset: Dataset,
    size_penalty: float,
    splitter: str | Splitter,
    stream: np.ndarray,
    max_rows: int = MAX_ROWS,
    least_depth: int = 1,
    max_depth: int = MAX_DEPTH,
    min_rows: int = 5,
    seconds: float | None = None,
    term_penalty: float = 0.0,
) -> Individual:
    """Make one individual by growing a tree greedily, and prune it."""
    # On a bootstrap sample, to a depth that is uniform in 1, ..., `max_depth`: so seeds differ.
    rng = as_generator(stream)
    individual = grow_on_sample(
        bootstrap(dataset, rng, max_rows),
        dataset,
        as_splitter(splitter),
        stream,
        limits=GrowthLimits(
            max_depth=int(rng.integers(least_depth, max_depth + 1)),
            min_samples_split=min_rows,
            seconds=seconds,
        ),
    )
    return prune(individual, dataset, size_penalty, term_penalty)[0]


def init_path(
    dataset: Dataset,
    size_penalty: float,
    number: int,
    stream: np.ndarray,
    *,
    term_penalty: float = 0.0,
    min_rows: int = 5,
    seconds: float | None = None,
    C: tuple[float, float] = (0.3, 3.0),
    max_features: int | None = None,
    max_depth: int | None = None,
    penalty: str = "l2",
) -> list[Individual]:
    """Make the trees of one path of widths, as `path_trees`, pruned."""
    trees = path_trees(
        dataset,
        size_penalty,
        number,
        stream,
        term_penalty=term_penalty,
        min_rows=min_rows,
        seconds=seconds,
        C=C,
        max_features=max_features,
        max_depth=max_depth,
        penalty=penalty,
    )
    for tree in trees:
        tree.origin = WIDTHS
        prune(tree, dataset, size_penalty, term_penalty)
    return trees


def init_quick(
    dataset: Dataset,
    size_penalty: float,
    stream: np.ndarray,
    min_rows: int = 5,
    term_penalty: float = 0.0,
) -> Individual:
    """Make one individual in no time: a pruned axis-parallel tree, grown on a sample."""
    individual = init_greedy(
        dataset,
        size_penalty,
        AT_ONCE,
        stream,
        max_rows=_ROWS_AT_ONCE,
        least_depth=MAX_DEPTH,
        min_rows=min_rows,
        term_penalty=term_penalty,
    )
    individual.origin = AT_ONCE
    return individual


def init_from_tree(
    dataset: Dataset,
    size_penalty: float,
    tree: Any,
    term_penalty: float = 0.0,
    max_features: int | None = None,
) -> Individual:
    """Make one individual of a tree that was found elsewhere, and prune it."""
    # The training rows reach the leaves that they reach in the tree given, also where that is one
    # of scikit-learn's, which compares rows rounded to single precision. The leaves predict what
    # the training rows that reach them say, whatever they predicted before.
    weights, thresholds, subtree_size = raw_tree(tree)
    n_features = dataset.X.shape[1]
    if weights.shape[1] != n_features:
        raise ValueError(
            f"init has a tree over {weights.shape[1]} features: X has {n_features}."
        )
    width = int(np.count_nonzero(weights, axis=1).max())
    if max_features is not None and width > max_features:
        raise ValueError(
            f"init splits by {width} terms: max_split_terms allows {max_features}."
        )
    raw = ObliqueTree(
        weights, thresholds, subtree_size, np.zeros((len(subtree_size), 1))
    )
    individual = make_individual(dataset, *dataset.from_raw(raw).splits)
    return prune(individual, dataset, size_penalty, term_penalty)[0]


def raw_tree(
    tree: Any, parameter: str = "init"
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the arrays of a tree that users hand in, in prefix order and checked."""
    plain = getattr(tree, "tree_", tree)
    if hasattr(plain, "children_left"):
        return _prefix_arrays(plain)
    if not isinstance(plain, ObliqueTree):
        raise ValueError(
            f"{parameter} holds {tree!r}: allowed are trees, and estimators of one tree."
        )
    try:
        return checked_arrays(*plain.splits, plain.values)
    except ValueError as error:
        raise ValueError(
            f"{parameter} holds a tree that is not sound: {error}"
        ) from None


def _prefix_arrays(tree: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the arrays of one of scikit-learn's trees, whose nodes stand in any order."""
    left, right = tree.children_left, tree.children_right
    order: list[int] = []
    pending = [0]
    while pending:
        k = pending.pop()
        order.append(k)
        if left[k] >= 0:
            pending += [right[k], left[k]]
    # An infinite threshold parts the rows with missing values from the others: all go left.
    is_split = (left >= 0) & np.isfinite(tree.threshold)
    weights = np.zeros((tree.node_count, tree.n_features))
    weights[is_split, tree.feature[is_split]] = 1.0
    thresholds = np.where(is_split, _double_threshold(tree.threshold), 0.0)
    return weights[order], thresholds[order], subtree_sizes((left[order] >= 0).tolist())


def _double_threshold(threshold: np.ndarray) -> np.ndarray:
    """Return thresholds that part numbers as given ones part them rounded to single precision."""
    # A number x is rounded to a single-precision number that is at most t just where it is below
    # the middle of the largest of these up to t and the next one, or is that middle and rounded
    # down: to the one whose last bit is 0 (IEEE 754, round to nearest, ties to even).
    with np.errstate(over="ignore", invalid="ignore"):
        below = threshold.astype(np.float32)
        below = np.where(
            below > threshold, np.nextafter(below, np.float32(-np.inf)), below
        )
        above = np.nextafter(below, np.float32(np.inf))
        middle = 0.5 * (below.astype(np.float64) + above)
        middle = np.where(
            middle.astype(np.float32) > below, np.nextafter(middle, -np.inf), middle
        )
    return np.where(np.isfinite(middle), middle, threshold)


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
        return seeding_shares(init), []
    if isinstance(init, ObliqueTree) or hasattr(init, "tree_"):
        return seeding_shares(None), [init]
    if not isinstance(init, Iterable):
        raise ValueError(
            f"init={init!r}: allowed are names, a dict of names to shares, trees, fitted "
            "estimators of trees, lists of these."
        )
    names = [name for name in init if isinstance(name, str)]
    trees = [tree for tree in init if not isinstance(tree, str)]
    return seeding_shares(names or None), trees


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
    shares: Mapping[str, float] = MappingProxyType({DIPOLE: 1.0}),
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
        member.origin = INITIAL
    origins = slot_origins(n - len(members), shares)
    streams = toolbox.streams(0, n)[len(members) :]
    slots = [at for at, origin in enumerate(origins) if origin == WIDTHS]
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
        kinds[at] = DIPOLE
    missing = slots[len(best) :] if clock.is_late else []  # else the paths are short
    left = [at for at, kind in enumerate(kinds) if kind != WIDTHS]
    maker = _Maker(toolbox, clock, worth)
    made = toolbox.map(maker, [kinds[at] for at in left], [streams[at] for at in left])
    ready = dict(zip(slots, best, strict=False)) | dict(zip(left, made, strict=True))
    trees = [ready[at] for at in range(len(origins))]
    missing += [at for at in left if trees[at].origin != kinds[at]]
    if missing:
        trees[missing[-1]] = toolbox.quick(streams[missing[-1]])
        n_seeds = n - len(members) - origins.count(DIPOLE)
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
        if origin == DIPOLE or self.clock.is_late:
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
        individual.origin = DIPOLE
        if self.clock.seconds is not None and self._random is None:
            self.worth(individual)  # so that its clones know it, too
            self._random = individual
        return individual
