"""A first population: trees handed in, found before, made by other algorithms, or random.

A deep tree is optimized alternately and cut, a little at a time, until the links that are left pay
for their nodes. After each cut the nodes above take over what the lost ones did, so the small tree
is far better than one that is cut at once, or grown to its size. On a path of widths all splits
lose their weakest terms in the same way; the best split on one feature competes at each node.

The slots of a population are shared out among these origins.
"""

import math
import time
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from types import MappingProxyType
from typing import Any

import numpy as np
from deap import base

from evotree.dataset import Dataset, bootstrap
from evotree.fitness.base import PenalizedAccuracy, loss_unit
from evotree.operators.constraints import influences, ranks, widest
from evotree.operators.initialization.growth import GrowthLimits, grow, grow_on_sample
from evotree.operators.pruning import (
    critical_alphas,
    prune,
    prune_marked,
    risk_of_leaves,
    sequence_sums,
    split_prices,
    weakest_links,
)
from evotree.operators.refinement import (
    NODE_ROWS,
    SPARSE_ROWS,
    draw_linear,
    draw_sparse,
    replace_splits,
    tao_sweep,
)
from evotree.operators.splitters.base import Axis, Splitter
from evotree.operators.splitters.linear import Linear
from evotree.operators.splitters.registry import (
    GREEDY_PRESETS,
    SPLITTERS,
    as_splitter,
    bounded,
    criterion_of,
    splitter_of,
)
from evotree.operators.structure.splice import (
    checked_arrays,
    make_individual,
    subtree_sizes,
)
from evotree.operators.variation import separate_duplicates
from evotree.rng import as_generator
from evotree.schema import quoted
from evotree.texts import splits_of_text
from evotree.tree import Individual, ObliqueTree
from evotree.words import did_you_mean

TAO_DEPTH = 12  # to which a tree is grown


def prune_weakest_links(
    individual: Individual,
    dataset: Dataset,
    size_penalty: float,
    term_penalty: float = 0.0,
) -> bool:
    """Prune weakest links that do not pay for their nodes and terms, but not many at once."""
    risk, unit = risk_of_leaves(individual, dataset.n_classes)
    # Where nodes cost nothing a split costs next to nothing.
    first = 2.0 * size_penalty or 1e-6 * term_penalty
    prices = split_prices(individual, 1.0, term_penalty / (first or 1.0))
    collapse_at = weakest_links(risk, individual.subtree_size, prices)
    alphas = critical_alphas(collapse_at, individual.subtree_size)
    n_leaves = sequence_sums(
        np.ones(len(individual)), collapse_at, individual.subtree_size, alphas
    )
    n_nodes = 2.0 * n_leaves - 1.0
    smaller = np.flatnonzero((alphas <= first * unit) & (n_nodes < len(individual)))
    if smaller.size == 0:
        return False
    # The last that has three quarters of the nodes; the first, if none has.
    n_close = int((n_nodes[smaller] >= 0.75 * len(individual)).sum())
    chosen = alphas[smaller[max(0, n_close - 1)]]
    prune_marked(individual, dataset, collapse_at <= chosen)
    return True


def init_tao(
    dataset: Dataset,
    size_penalty: float,
    stream: np.ndarray,
    C: tuple[float, float] = (0.1, 10.0),
    penalty: str = "l2",
    max_rows: int = 16_384,
    max_depth: int = TAO_DEPTH,
    min_rows: int = 5,
    seconds: float = math.inf,
    term_penalty: float = 0.0,
) -> Individual:
    """Make one individual by tree alternating optimization and pruning in turn."""
    # So that seeds differ, the kind of the grown tree and its rows, and the loss and the C of the
    # classifiers are drawn.
    end = time.perf_counter() + seconds
    rng = as_generator(stream)
    # The pairs of many classes are more than any limit of time has room for.
    groups = "one_vs_one" if dataset.n_classes <= 20 else "random"
    splitter = Axis() if rng.uniform() < 0.5 else Linear(C=0.05, groups=groups)
    individual = grow_on_sample(
        bootstrap(dataset, rng, max_rows),
        dataset,
        splitter,
        stream,
        limits=GrowthLimits(
            max_depth=max_depth, min_samples_split=min_rows, seconds=seconds
        ),
    )
    classifier = draw_linear(C, penalty, stream)
    # Trees of targets grow as far as rows allow; nearly all of their leaves are worth nothing.
    share = 0.0 if dataset.n_classes else 0.1
    prune(individual, dataset, share * size_penalty, share * term_penalty)
    while True:
        for sweep in range(2):  # between two cuts
            if time.perf_counter() >= end:
                return prune(individual, dataset, size_penalty, term_penalty)[0]
            tao_sweep(
                individual,
                dataset,
                classifier,
                monotone=sweep > 0,
                max_rows=NODE_ROWS,
                end=end,
            )
        if not prune_weakest_links(individual, dataset, size_penalty, term_penalty):
            return individual


_AXIS_PATH, _LINEAR_PATH = 1, 2


def keep_strongest_terms(individual: Individual, dataset: Dataset) -> None:
    """Leave one term to each split: that of the largest |weight| times the feature's spread."""
    is_kept = ranks(influences(individual, dataset)) == 0
    weights = np.where(is_kept, individual.weights, 0.0)
    replace_splits(individual, dataset, weights, individual.thresholds)


def sparsity_path(
    dataset: Dataset,
    size_penalty: float,
    stream: np.ndarray,
    *,
    term_penalty: float = 0.0,
    C: tuple[float, float] = (0.3, 3.0),
    penalty: str = "l2",
    max_features: int | None = None,
    max_depth: int | None = None,
    min_rows: int = 5,
    seconds: float = math.inf,
) -> list[Individual]:
    """Return optimized trees of falling widths, the widest that is allowed first.

    The splits of the trees have at most `max_features` terms. When the `seconds` are over there is
    at least one tree.
    """
    end = time.perf_counter() + seconds
    individual = init_tao(
        dataset,
        size_penalty,
        stream,
        C=C,
        penalty=penalty,
        max_depth=TAO_DEPTH if max_depth is None else min(TAO_DEPTH, max_depth),
        min_rows=min_rows,
        seconds=seconds,
    )
    sweep = partial(
        tao_sweep,
        individual,
        dataset,
        term_penalty=term_penalty,
        max_rows=SPARSE_ROWS,
        end=end,
    )
    term_cost = term_penalty * loss_unit(dataset)
    fewer = draw_sparse(C, stream, widths="fewer", term_cost=term_cost)
    same = draw_sparse(C, stream, widths="same", term_cost=term_cost)
    max_width = dataset.X.shape[1] if max_features is None else max_features
    trees = [individual.clone()] if widest(individual) <= max_width else []
    while widest(individual) > 1 and (time.perf_counter() < end or not trees):
        n_terms = individual.n_terms
        sweep(fewer, monotone=False)
        sweep(same)
        while time.perf_counter() < end and prune_weakest_links(
            individual, dataset, size_penalty
        ):
            sweep(same)
        is_too_wide = widest(individual) > max_width and time.perf_counter() >= end
        # A sweep leaves a node as it is where both sides predict the same for all of its rows.
        if individual.n_terms >= n_terms or is_too_wide:
            keep_strongest_terms(individual, dataset)
        if widest(individual) <= max_width:
            trees.append(individual.clone())
    return trees


def path_trees(
    dataset: Dataset,
    size_penalty: float,
    number: int,
    stream: np.ndarray,
    *,
    term_penalty: float = 0.0,
    min_rows: int = 5,
    seconds: float = math.inf,
    C: tuple[float, float] = (0.3, 3.0),
    max_features: int | None = None,
    max_depth: int | None = None,
    penalty: str = "l2",
) -> list[Individual]:
    """Return the trees of one of several paths, of all widths that `max_features` allows.

    `number` says which path; `C` and `penalty` are those of its linear classifiers. The path ends
    when the `seconds` are over.
    """
    # The second path is that of the axis-parallel trees that are grown on all rows, the third that
    # of the trees of logistic regressions, where splits may have all features. The others begin
    # with dense splits, at half or at twice the penalties, so that trees of all sizes come.
    end = time.perf_counter() + seconds
    is_bounded = max_features is not None and max_features < dataset.X.shape[1]

    def follow(rows: Dataset) -> list[Individual]:
        left = end - time.perf_counter()
        if number == _AXIS_PATH:
            return axis_trees(rows, stream, min_rows, left, max_depth)
        if number == _LINEAR_PATH and not is_bounded:
            return linear_trees(rows, stream, C, min_rows, left, max_depth)
        factor = (0.5, 2.0)[number // 2 % 2]
        return sparsity_path(
            rows,
            factor * size_penalty,
            stream,
            term_penalty=factor * term_penalty,
            C=C,
            penalty=penalty,
            max_features=max_features,
            max_depth=max_depth,
            min_rows=min_rows,
            seconds=left,
        )

    trees = follow(dataset)
    # Where features cost, the path is followed over all of them, and again over those up to a
    # price: a tree on dear features hardly gets rid of them in small steps.
    is_cheap = cheap_features(dataset, stream)
    if not is_cheap.all() and time.perf_counter() < end:
        for tree in follow(replace(dataset, X=np.where(is_cheap, dataset.X, 0.0))):
            weights = np.where(is_cheap, tree.weights, 0.0)
            replace_splits(tree, dataset, weights, tree.thresholds)
            trees.append(tree)
    return trees


def cheap_features(dataset: Dataset, stream: np.ndarray) -> np.ndarray:
    """Return which features cost no more than a price that is drawn among theirs."""
    if dataset.objective is None or dataset.objective.features is None:
        return np.ones(dataset.X.shape[1], dtype=bool)
    price = dataset.objective.features.alone
    lower = np.unique(price)[:-1]
    return price <= (as_generator(stream).choice(lower) if lower.size else price.max())


def axis_trees(
    dataset: Dataset,
    stream: np.ndarray,
    min_rows: int = 5,
    seconds: float | None = None,
    max_depth: int | None = None,
) -> list[Individual]:
    """Return axis-parallel trees grown on all rows, one for each of the usual criteria."""
    criteria = ("gini", "entropy") if dataset.n_classes else ("squared_error",)
    limits = GrowthLimits(
        max_depth=max_depth,
        min_samples_leaf=min_rows,
        seconds=math.inf if seconds is None else seconds / len(criteria),
    )
    return [
        grow(dataset, Axis(), criterion, limits, stream=stream)
        for criterion in criteria
    ]


def linear_trees(
    dataset: Dataset,
    stream: np.ndarray,
    C: tuple[float, float] = (0.3, 3.0),
    min_rows: int = 5,
    seconds: float = math.inf,
    max_depth: int | None = None,
) -> list[Individual]:
    """Return trees grown by logistic regressions of one class against the others."""
    # For two classes the first split is the logistic regression itself. Where rows are few, such a
    # tree is often better on other rows than any that fits the training rows more closely.
    criterion = "gini" if dataset.n_classes else "squared_error"
    n_rows = len(dataset.distinct_of)
    n_read = min(n_rows, SPARSE_ROWS)
    sample = dataset.subsample(np.arange(n_read) * n_rows // n_read)
    # Of many classes there are fewer random halves than classes.
    groups = "one_vs_rest" if dataset.n_classes <= 12 else "random"
    splitters = [
        Linear(loss="logistic", C=cost, groups=groups) for cost in dict.fromkeys(C)
    ]
    limits = GrowthLimits(
        max_depth=max_depth,
        min_samples_split=max(min_rows, n_read // (8 * max(2, dataset.n_classes))),
        seconds=seconds / len(splitters),
    )
    return [
        grow_on_sample(sample, dataset, splitter, stream, criterion, limits)
        for splitter in splitters
    ]


# ---- seeds of a population -----------------------------------------------------------------------


DIPOLE = "dipole"
INITIAL = "initial"
TAO = "tao"
WIDTHS = "widths"
ONE_BY_ONE = (TAO, *SPLITTERS)
"""Names of what makes one tree at a time; ``"dipole"`` makes random ones."""

SEEDS = (WIDTHS, *ONE_BY_ONE)
"""Names of what makes first trees."""

AT_ONCE = "axis"  # the splitter of the tree that is there at once
GREEDY_MAX_ROWS, GREEDY_MAX_DEPTH = 16_384, 10
# Shares of the population: for each splitter of seeding's plain form, and for paths of widths where
# they are named alone.
PLAIN_SHARE = 0.2
PATH_SHARE = 0.8


Seeder = Any
"""What makes first trees: a name of `SEEDS`, a splitter, or a greedy estimator, not fitted; names
of `GREEDY_PRESETS` are such estimators, too."""


def is_seeder(one: Any) -> bool:
    """Return whether something other than a name makes trees, and is none."""
    return splitter_of(one) is not None and not hasattr(one, "tree_")


def name_of(seeder: Seeder) -> str:
    """Return what individuals that are made so have as their origin."""
    if isinstance(seeder, str):
        return seeder
    splitter = getattr(seeder, "splitter", seeder)
    return splitter if isinstance(splitter, str) else type(splitter).__name__


def seeding_shares(
    seeding: Mapping[Seeder, float] | Sequence[Seeder],
) -> dict[Seeder, float]:
    """Return which share of a population is grown in which way."""
    if not isinstance(seeding, Mapping):
        is_path = list(seeding) == [WIDTHS]
        share = PATH_SHARE if is_path else min(PLAIN_SHARE, 1 / max(1, len(seeding)))
        seeding = dict.fromkeys((name for name in seeding if name != DIPOLE), share)
    for name, share in seeding.items():
        if name not in SEEDS and not is_seeder(name):
            raise ValueError(
                f"init names {quoted(name)}{did_you_mean(name, SEEDS)}: allowed are "
                f"{', '.join(map(repr, sorted(SEEDS)))}, presets "
                f"({', '.join(sorted(GREEDY_PRESETS))}), splitters such as OC1(), and greedy "
                "estimators that are not fitted."
            )
        if not isinstance(share, float | int | np.number) or not 0.0 <= share <= 1.0:
            raise ValueError(f"init[{name!r}]={share!r}: allowed are shares in [0, 1].")
    total = math.fsum(seeding.values())
    if total > 1.0 + 1e-9:
        raise ValueError(
            f"init={dict(seeding)!r}: the shares add up to {total:g}, above 1."
        )
    return {**seeding, DIPOLE: max(0.0, 1.0 - total) + seeding.get(DIPOLE, 0.0)}


def slot_origins(n: int, shares: Mapping[Seeder, float]) -> list[Seeder]:
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
    splitter: Seeder,
    stream: np.ndarray,
    *,
    C: tuple[float, float] = (0.1, 10.0),
    penalty: str = "l2",
    max_features: int | None = None,
    max_depth: int | None = None,
    min_rows: int = 5,
    seconds: float = math.inf,
    term_penalty: float = 0.0,
) -> Individual:
    """Make one individual by another algorithm: a splitter, or tree alternating optimization.

    A preset or greedy estimator grows by its splitter and its criterion.
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
        bounded(splitter_of(splitter) or as_splitter(splitter), max_features),
        stream,
        criterion=criterion_of(splitter, dataset.n_classes),
        max_depth=GREEDY_MAX_DEPTH
        if max_depth is None
        else min(GREEDY_MAX_DEPTH, max_depth),
        min_rows=min_rows,
        seconds=seconds,
        term_penalty=term_penalty,
    )


def init_greedy(
    dataset: Dataset,
    size_penalty: float,
    splitter: str | Splitter,
    stream: np.ndarray,
    max_rows: int = GREEDY_MAX_ROWS,
    least_depth: int = 1,
    max_depth: int = GREEDY_MAX_DEPTH,
    min_rows: int = 5,
    seconds: float = math.inf,
    term_penalty: float = 0.0,
    criterion: str | None = None,
) -> Individual:
    """Make one individual by growing a tree greedily, and prune it."""
    # On a bootstrap sample, to a depth that is uniform in 1, ..., `max_depth`: so seeds differ.
    rng = as_generator(stream)
    individual = grow_on_sample(
        bootstrap(dataset, rng, max_rows),
        dataset,
        as_splitter(splitter),
        stream,
        criterion,
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
    **options: Any,
) -> list[Individual]:
    """Make the trees of one sparsity path, pruned; `options` are those of `path_trees`."""
    trees = path_trees(
        dataset, size_penalty, number, stream, term_penalty=term_penalty, **options
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
        max_rows=4_096,
        least_depth=GREEDY_MAX_DEPTH,
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
    # The leaves predict what the training rows that reach them say, whatever they predicted before.
    # Trees of scikit-learn compare rows rounded to single precision, this one does not.
    weights, thresholds, subtree_size = splits_for(tree, dataset)
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


def splits_for(
    tree: Any, dataset: Dataset
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the arrays of a tree, or of rules, over the features of a data set.

    Where both know the names of their features, these say which is which.
    """
    names = list(dataset.feature_names)
    if isinstance(tree, str):
        return splits_of_text(tree, names, "init", dataset.schema.others)
    weights, thresholds, subtree_size = raw_tree(tree)
    own = list(
        getattr(tree, "feature_names_", None)
        or getattr(tree, "feature_names", None)
        or getattr(tree, "feature_names_in_", names)
    )
    by_position = [f"x{j}" for j in range(weights.shape[1])]
    if len(own) == len(by_position) and by_position not in (own, names):
        used = np.flatnonzero(weights.any(axis=0)).tolist()
        if unknown := [own[j] for j in used if own[j] not in names]:
            raise ValueError(
                f"init splits on {', '.join(map(quoted, unknown))}: allowed are the columns "
                f"of X, {', '.join(map(quoted, names))}."
            )
        placed = np.zeros((len(weights), len(names)))
        for j in used:
            placed[:, names.index(own[j])] = weights[:, j]
        weights = placed
    if weights.shape[1] != len(names):
        raise ValueError(
            f"init has a tree over {weights.shape[1]} features: X has {len(names)}."
        )
    return weights, thresholds, subtree_size


def raw_tree(
    tree: Any, parameter: str = "init"
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the arrays of a tree that users hand in, in prefix order and checked."""
    plain = getattr(tree, "tree_", getattr(tree, "tree", tree))
    if hasattr(plain, "children_left"):
        return _prefix_arrays(plain)
    if not isinstance(plain, ObliqueTree) or len(getattr(tree, "trees", ())) > 1:
        raise ValueError(
            f"{parameter} holds {tree!r}: allowed are trees, rules, and fitted estimators or "
            "model files of one tree."
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
    thresholds = np.where(is_split, tree.threshold, 0.0)
    return weights[order], thresholds[order], subtree_sizes((left[order] >= 0).tolist())


# ---- the population ------------------------------------------------------------------------------


_WORTH = PenalizedAccuracy()
# Shares of the time after which no more seeds, and no more random trees, are made.
_SEEDS_TIME_SHARE, _RANDOM_TIME_SHARE = 0.5, 0.75


def split_init(init: Any) -> tuple[dict[Seeder, float], list[Any]]:
    """Return what a first population is made of: shares of the kinds of trees, and trees."""
    is_one = isinstance(init, str | Mapping | ObliqueTree) or is_seeder(init)
    if is_one or hasattr(init, "tree_") or hasattr(init, "tree"):
        init = [init]
    if not isinstance(init, Iterable | None):
        raise ValueError(
            f"init={init!r}: allowed are names, splitters, a dict of these to shares, trees, "
            "rules, fitted estimators of trees, lists of all these."
        )
    shares: dict[Seeder, float] = {}
    seeders: list[Seeder] = []
    trees = []
    for one in init or ():
        if isinstance(one, Mapping):
            shares |= seeding_shares(one)
        elif _makes_trees(one):
            seeders.append(one)
        else:
            trees.append(one)
    if not shares:
        return seeding_shares(seeders), trees
    share = min(PLAIN_SHARE, shares.pop(DIPOLE) / max(1, len(seeders)))
    return seeding_shares({**dict.fromkeys(seeders, share), **shares}), trees


def _makes_trees(one: Any) -> bool:
    """Return whether a member of `init` is a name or makes trees; else it is a tree, or rules."""
    is_rules = isinstance(one, str) and ("\n" in one or "<=" in one)
    return (isinstance(one, str) and not is_rules) or is_seeder(one)


def best_of_paths(
    trees: Sequence[Individual],
    n: int,
    fitness: Callable[[Individual], tuple[float]],
) -> list[Individual]:
    """Return trees of sparsity paths: half the fittest, half such as no other one dominates."""
    trees = separate_duplicates(trees)[0]
    trees.sort(key=fitness, reverse=True)

    def is_dominated(tree: Individual) -> bool:
        return any(
            other.complexity <= tree.complexity and other.quality >= tree.quality
            for other in trees
            if other is not tree
        )

    fittest = trees[: n // 2]
    return [*fittest, *sorted(trees[n // 2 :], key=is_dominated)[: n - len(fittest)]]


@dataclass
class _Maker:
    """Makes first trees, seeds as long as there is time, else random ones."""

    toolbox: base.Toolbox
    worth: Callable[[Individual], tuple[float]]
    seconds: float  # that the population may take
    is_interrupted: Callable[[], bool]
    begin: float = field(default_factory=lambda: time.perf_counter())
    random: Individual | None = None  # that is cloned where time is over

    def left(self, share: float) -> float:
        """Return how many seconds are left of a share of the time."""
        return self.begin + share * self.seconds - time.perf_counter()

    @property
    def is_late(self) -> bool:
        """Whether no more seeds are made."""
        return self.is_interrupted() or self.left(_SEEDS_TIME_SHARE) <= 0.0

    @property
    def limit(self) -> dict[str, float]:
        """The argument of what makes seeds: the seconds that are left, if they are limited."""
        is_limited = self.seconds < math.inf
        return {"seconds": self.left(_SEEDS_TIME_SHARE)} if is_limited else {}

    def path(self, task: tuple[int, np.ndarray]) -> list[Individual]:
        """Return the trees of a path, by its number and stream; none if the time is over."""
        number, stream = task
        if self.is_late:
            return []
        return self.toolbox.path(number=number, stream=stream, **self.limit)

    def tree(self, task: tuple[Seeder, np.ndarray]) -> Individual:
        """Return a tree of a kind, by a stream."""
        origin, stream = task
        if origin == DIPOLE or self.is_late:
            return self._random_tree(stream)
        individual: Individual = self.toolbox.seed(
            splitter=origin, stream=stream, **self.limit
        )
        individual.origin = name_of(origin)
        return individual

    def _random_tree(self, stream: np.ndarray) -> Individual:
        if self.random is not None and self.left(_RANDOM_TIME_SHARE) <= 0.0:
            individual = self.random.clone()
            individual.stream = stream
            return individual
        individual = self.toolbox.individual(stream)
        individual.origin = DIPOLE
        if self.seconds < math.inf and self.random is None:
            self.worth(individual)  # so that its clones know it, too
            self.random = individual
        return individual


def init_population(
    toolbox: base.Toolbox,
    n: int,
    shares: Mapping[Seeder, float] = MappingProxyType({DIPOLE: 1.0}),
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
    limit = math.inf if seconds is None else seconds
    maker = _Maker(toolbox, worth, limit, is_interrupted)
    members = [individual.clone() for individual in initial]
    for member in members:
        member.origin = INITIAL
    origins = slot_origins(n - len(members), shares)
    streams = toolbox.streams(0, n)[len(members) :]
    slots = [at for at, origin in enumerate(origins) if origin == WIDTHS]
    # One path for eight places; none where `found` has those of paths that are followed already.
    n_paths = 0 if found else min(len(slots), 2 + -(-len(slots) // 8))

    # Maps of pools take one sequence of tasks.
    numbered = enumerate(streams[at] for at in slots[:n_paths])
    paths = toolbox.map(maker.path, list(numbered))
    best = best_of_paths([*found, *chain.from_iterable(paths)], len(slots), worth)
    of_paths = dict(zip(slots, best, strict=False))
    is_late = maker.is_late  # else paths that are missing are short
    tasks = [
        (DIPOLE if origin == WIDTHS else origin, streams[at])
        for at, origin in enumerate(origins)
        if at not in of_paths
    ]
    made = iter(toolbox.map(maker.tree, tasks))
    trees = [
        of_paths[at] if at in of_paths else next(made) for at in range(len(origins))
    ]
    missing = [
        at
        for at, origin in enumerate(origins)
        if at not in of_paths
        and trees[at].origin != name_of(origin)
        and (origin != WIDTHS or is_late)
    ]
    if missing:
        trees[missing[-1]] = toolbox.quick(streams[missing[-1]])
        n_seeds = n - len(members) - origins.count(DIPOLE)
        if len(missing) == n_seeds and not is_interrupted():
            warnings.warn(
                "time_limit ended before any of the first trees of "
                f"init={sorted(map(name_of, shares))} was "
                "ready: the tree is the best of random ones and of a quick greedy one.",
                RuntimeWarning,
                stacklevel=2,
            )
    members += trees
    if fitness is not None:
        for member in members:
            member.fitness = fitness()
    return members
