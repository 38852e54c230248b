"""Seeds: trees grown by other algorithms, or handed in by a user, as members of a population."""

import math
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Any

import numpy as np

from evotree.dataset import Dataset
from evotree.individual import Individual
from evotree.operators.initialization.growth import grow_on_sample
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

QUICK = "axis"  # the splitter of the tree that is there at once
_QUICK_ROWS = 4_096  # that it is grown on
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
            allowed = ", ".join(map(repr, sorted(SEEDS)))
            near = get_close_matches(str(name).lower(), map(str, SEEDS), 1)
            meant = f" Did you mean {near[0]!r}?" if near else ""
            raise ValueError(f"init names {name!r}: allowed are {allowed}.{meant}")
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
    **limits: Any,
) -> Individual:
    """Make one individual by another algorithm, within limits of `init_tao`."""
    depth = math.inf if max_depth is None else max_depth
    if splitter == TAO:
        if max_features is not None:
            limits |= {"C": C, "penalty": penalty, "max_features": max_features}
            limits["max_depth"] = max_depth
            return sparsity_path(dataset, size_penalty, stream, **limits)[0]
        limits["max_depth"] = min(TAO_DEPTH, depth)
        return init_tao(dataset, size_penalty, stream, C, penalty, **limits)
    limits["max_depth"] = min(MAX_DEPTH, depth)
    splitter = bounded(as_splitter(splitter), max_features)
    return init_greedy(dataset, size_penalty, splitter, stream, **limits)


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
    sample = bootstrap(dataset, rng, max_rows)
    limits: dict[str, Any] = {"min_samples_split": min_rows, "seconds": seconds}
    limits["max_depth"] = int(rng.integers(least_depth, max_depth + 1))
    individual = grow_on_sample(
        sample, dataset, as_splitter(splitter), stream, **limits
    )
    return prune(individual, dataset, size_penalty, term_penalty)[0]


def init_path(
    dataset: Dataset, size_penalty: float, number: int, stream: np.ndarray, **path: Any
) -> list[Individual]:
    """Make the trees of one path of widths, pruned."""
    trees = path_trees(dataset, size_penalty, number, stream, **path)
    for tree in trees:
        tree.origin = WIDTHS
        prune(tree, dataset, size_penalty, path.get("term_penalty", 0.0))
    return trees


def init_quick(
    dataset: Dataset, size_penalty: float, stream: np.ndarray, **limits: Any
) -> Individual:
    """Make one individual in no time: a pruned axis-parallel tree, grown on a sample."""
    limits |= {"max_rows": _QUICK_ROWS, "least_depth": MAX_DEPTH}
    individual = init_greedy(dataset, size_penalty, QUICK, stream, **limits)
    individual.origin = QUICK
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
    scaled = dataset.from_raw(raw)
    individual = make_individual(
        dataset, scaled.weights, scaled.thresholds, subtree_size
    )
    return prune(individual, dataset, size_penalty, term_penalty)[0]


def raw_tree(
    tree: Any, parameter: str = "init"
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the arrays of a tree that users hand in, in prefix order and checked."""
    found = getattr(tree, "tree_", tree)
    if hasattr(found, "children_left"):
        return _prefix_arrays(found)
    if not isinstance(found, ObliqueTree):
        allowed = "allowed are trees, and estimators of one tree"
        raise ValueError(f"{parameter} holds {tree!r}: {allowed}.")
    try:
        return checked_arrays(
            found.weights, found.thresholds, found.subtree_size, found.values
        )
    except ValueError as error:
        raise ValueError(
            f"{parameter} holds a tree that is not sound: {error}"
        ) from None


def _prefix_arrays(tree: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the arrays of one of scikit-learn's trees, whose nodes stand in any order."""
    left, right = tree.children_left.tolist(), tree.children_right.tolist()
    order, pending = [], [0]
    while pending:
        k = pending.pop()
        order.append(k)
        if left[k] >= 0:
            pending += [right[k], left[k]]
    size = np.ones(tree.node_count, dtype=np.int32)
    for k in reversed(order):
        if left[k] >= 0:
            size[k] = 1 + size[left[k]] + size[right[k]]
    # An infinite threshold parts the rows with missing values from the others: all go left.
    is_test = (tree.children_left >= 0) & np.isfinite(tree.threshold)
    weights = np.zeros((tree.node_count, tree.n_features))
    weights[is_test, tree.feature[is_test]] = 1.0
    thresholds = np.where(is_test, _double_threshold(tree.threshold), 0.0)
    return weights[order], thresholds[order], size[order]


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
