"""Seeds: trees grown by other algorithms, or handed in by a user, as members of a population."""

import math
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Any

import numpy as np

from evotree.dataset import Dataset
from evotree.individual import Individual
from evotree.operators.initialization.growth import GrowthLimits, grow_on_sample
from evotree.operators.initialization.resampling import bootstrap
from evotree.operators.initialization.sparsity_paths import (
    TAO_DEPTH,
    init_tao,
    path_trees,
    sparsity_path,
)
from evotree.operators.pruning.penalized import prune
from evotree.operators.splitters.base import Splitter
from evotree.operators.splitters.registry import SPLITTERS, as_splitter, bounded
from evotree.operators.structure.rebuild import checked_arrays
from evotree.operators.structure.sides import subtree_sizes
from evotree.operators.structure.splice import make_individual
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
