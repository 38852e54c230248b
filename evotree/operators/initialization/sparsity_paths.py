"""Optimized seeds, and those of every width: from dense splits down to splits on one feature.

A deep tree is optimized alternately and cut, a little at a time, until the links that are left pay
for their nodes. After each cut the nodes above take over what the lost ones did, so the small tree
is far better than one that is cut at once, or grown to its size. On a path of widths all splits
lose their weakest terms in the same way; the best split on one feature competes at each node.
"""

import math
import time
from dataclasses import replace
from functools import partial

import numpy as np

from evotree.dataset import Dataset, bootstrap
from evotree.individual import Individual
from evotree.operators.initialization.growth import GrowthLimits, grow, grow_on_sample
from evotree.operators.pruning.rules import (
    critical_alphas,
    prune,
    prune_marked,
    risk_of_leaves,
    sequence_sums,
    split_prices,
    weakest_links,
)
from evotree.operators.refinement.refiners import (
    NODE_ROWS,
    draw_linear,
    draw_sparse,
    tao_sweep,
)
from evotree.operators.splitters.axis import Axis
from evotree.operators.splitters.linear import Linear
from evotree.operators.structure.reduced import SPARSE_ROWS, loss_unit, replace_splits
from evotree.rng import as_generator

TAO_DEPTH = 12  # to which a tree is grown
_KEPT = 0.75  # of the leaves, when a tree is cut
_SWEEPS = 2  # between cuts
_GROWN_C = 0.05  # of the classifiers that grow a tree
_PAIRED_CLASSES = 20  # most classes whose pairs are told apart in a tree that is grown
# Most classes that are each told from the others; there are fewer random halves.
_MOST_RESTS = 12
_WORTHLESS = 0.1  # of the penalty for a node
# Of the penalty for a term: what a split costs where nodes cost nothing.
_NEXT_TO_NOTHING = 1e-6


def prune_weakest_links(
    individual: Individual,
    dataset: Dataset,
    size_penalty: float,
    term_penalty: float = 0.0,
) -> bool:
    """Prune weakest links that do not pay for their nodes and terms, but not many at once."""
    risk, unit = risk_of_leaves(individual, dataset.n_classes)
    first = 2.0 * size_penalty or _NEXT_TO_NOTHING * term_penalty
    prices = split_prices(individual, 1.0, term_penalty / (first or 1.0))
    collapse_at = weakest_links(risk, individual.subtree_size, prices)
    alphas = critical_alphas(collapse_at, individual.subtree_size)
    ones = np.ones((len(individual), 1))
    n_leaves = sequence_sums(ones, collapse_at, individual.subtree_size, alphas)[:, 0]
    chosen = -1.0
    for alpha, n_nodes in zip(alphas, 2.0 * n_leaves - 1.0, strict=True):
        is_too_much = chosen >= 0.0 and n_nodes < _KEPT * len(individual)
        if alpha > first * unit or is_too_much:
            break
        if n_nodes < len(individual):
            chosen = alpha
    if chosen >= 0.0:
        prune_marked(individual, dataset, collapse_at <= chosen)
    return chosen >= 0.0


def init_tao(
    dataset: Dataset,
    size_penalty: float,
    stream: np.ndarray,
    C: tuple[float, float] = (0.1, 10.0),
    penalty: str = "l2",
    max_rows: int = 16_384,
    max_depth: int = TAO_DEPTH,
    min_rows: int = 5,
    seconds: float | None = None,
    term_penalty: float = 0.0,
) -> Individual:
    """Make one individual by tree alternating optimization and pruning in turn."""
    # So that seeds differ, the kind of the grown tree and its rows, and the loss and the C of the
    # classifiers are drawn.
    end = math.inf if seconds is None else time.perf_counter() + seconds
    rng = as_generator(stream)
    # The pairs of many classes are more than any limit of time has room for.
    groups = "one_vs_one" if dataset.n_classes <= _PAIRED_CLASSES else "random"
    splitter = Axis() if rng.uniform() < 0.5 else Linear(C=_GROWN_C, groups=groups)
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
    share = 0.0 if dataset.n_classes else _WORTHLESS
    prune(individual, dataset, share * size_penalty, share * term_penalty)
    while True:
        for sweep in range(_SWEEPS):
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
_FACTORS = (0.5, 2.0)  # of the penalties


def widest(individual: Individual) -> int:
    """Return the greatest width of a split; 0 for a single leaf."""
    return int(np.count_nonzero(individual.weights, axis=1).max())


def keep_strongest_terms(individual: Individual, dataset: Dataset) -> None:
    """Leave one term to each split: that of the largest |weight| times the feature's spread."""
    influence = np.abs(individual.weights) * dataset.spread
    others = np.arange(dataset.X.shape[1]) != influence.argmax(axis=1)[:, None]
    weights = np.where(others, 0.0, individual.weights)
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
    seconds: float | None = None,
) -> list[Individual]:
    """Return optimized trees of falling widths, the widest that is allowed first.

    The splits of the trees have at most `max_features` terms. When the `seconds` are over there is
    at least one tree.
    """
    end = math.inf if seconds is None else time.perf_counter() + seconds
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
    seconds: float | None = None,
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
    end = math.inf if seconds is None else time.perf_counter() + seconds
    is_bounded = max_features is not None and max_features < dataset.X.shape[1]

    def follow(rows: Dataset) -> list[Individual]:
        left = end - time.perf_counter()
        if number == _AXIS_PATH:
            return axis_trees(rows, stream, min_rows, left, max_depth)
        if number == _LINEAR_PATH and not is_bounded:
            return linear_trees(rows, stream, C, min_rows, left, max_depth)
        factor = _FACTORS[number // 2 % 2]
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
        cheap = replace(dataset, X=np.where(is_cheap, dataset.X, 0.0))
        for tree in follow(cheap):
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
        seconds=None if seconds is None else seconds / len(criteria),
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
    seconds: float | None = None,
    max_depth: int | None = None,
) -> list[Individual]:
    """Return trees grown by logistic regressions of one class against the others."""
    # For two classes the first split is the logistic regression itself. Where rows are few, such a
    # tree is often better on other rows than any that fits the training rows more closely.
    criterion = "gini" if dataset.n_classes else "squared_error"
    n_rows = len(dataset.distinct_of)
    n_read = min(n_rows, SPARSE_ROWS)
    sample = dataset.subsample(np.arange(n_read) * n_rows // n_read)
    groups = "one_vs_rest" if dataset.n_classes <= _MOST_RESTS else "random"
    splitters = [
        Linear(loss="logistic", C=cost, groups=groups) for cost in dict.fromkeys(C)
    ]
    limits = GrowthLimits(
        max_depth=max_depth,
        min_samples_split=max(min_rows, n_read // (8 * max(2, dataset.n_classes))),
        seconds=None if seconds is None else seconds / len(splitters),
    )
    return [
        grow_on_sample(sample, dataset, splitter, stream, criterion, limits)
        for splitter in splitters
    ]
