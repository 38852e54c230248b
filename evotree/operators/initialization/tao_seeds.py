"""Seeds that are optimized as whole trees before the evolution begins.

A deep tree is optimized alternately and cut, a little at a time, until the links that are left pay
for their nodes. After each cut the nodes above take over what the lost ones did, so the small tree
is far better than one that is cut at once, or grown to its size.
"""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING, Any

import numpy as np

from evotree.operators.initialization.growth import grow_on_sample
from evotree.operators.initialization.resampling import bootstrap
from evotree.operators.pruning.held_out import critical_alphas
from evotree.operators.pruning.penalized import (
    kept_nodes,
    prune,
    prune_marked,
    risk_of_leaves,
    split_prices,
    weakest_links,
)
from evotree.operators.refinement.policy import NODE_ROWS, draw_linear
from evotree.operators.refinement.tao import tao_sweep
from evotree.operators.splitters.axis import Axis
from evotree.operators.splitters.linear import Linear
from evotree.rng import as_generator

if TYPE_CHECKING:
    from evotree.dataset import Dataset
    from evotree.individual import Individual

TAO_DEPTH = 12  # to which a tree is grown
_KEPT = 0.75  # of the leaves, when a tree is cut
_SWEEPS = 2  # between cuts
_GROWN_C = 0.05  # of the classifiers that grow a tree
_PAIRED_CLASSES = 20  # most classes whose pairs are told apart in a tree that is grown
_WORTHLESS = 0.1  # of the penalty for a node
_NEXT_TO_NOTHING = 1e-6  # of the penalty for a term, for a split where nodes cost nothing


def prune_weakest_links(
    individual: Individual, dataset: Dataset, size_penalty: float, term_penalty: float = 0.0
) -> bool:
    """Prune weakest links that do not pay for their nodes and terms, but not many at once."""
    risk, unit = risk_of_leaves(individual, dataset.n_classes)
    first = 2.0 * size_penalty or _NEXT_TO_NOTHING * term_penalty
    prices = split_prices(individual, 1.0, term_penalty / (first or 1.0))
    collapse_at = weakest_links(risk, individual.subtree_size, prices)
    limit = first * unit
    chosen = -1.0
    for alpha in critical_alphas(collapse_at, individual.subtree_size):
        kept = kept_nodes(individual.subtree_size, collapse_at <= alpha)[0].size
        if alpha > limit or (chosen >= 0.0 and kept < _KEPT * len(individual)):
            break
        if kept < len(individual):
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
    sample = bootstrap(dataset, rng, max_rows)
    limits: dict[str, Any] = {"max_depth": max_depth, "min_samples_split": min_rows}
    individual = grow_on_sample(sample, dataset, splitter, stream, seconds=seconds, **limits)
    classifier = draw_linear(C, penalty, stream)
    penalties = size_penalty, term_penalty
    # Trees of targets grow as far as rows allow; nearly all of their leaves are worth nothing.
    worthless = 0.0 if dataset.n_classes else _WORTHLESS
    prune(individual, dataset, *(worthless * penalty for penalty in penalties))
    while True:
        for sweep in range(_SWEEPS):
            if time.perf_counter() >= end:
                return prune(individual, dataset, *penalties)[0]
            limits = {"monotone": sweep > 0, "max_rows": NODE_ROWS, "end": end}
            tao_sweep(individual, dataset, classifier, **limits)
        if not prune_weakest_links(individual, dataset, *penalties):
            return individual
