"""Tree alternating optimization: every node of a whole tree is fitted again, the others held fixed.

Given all other nodes, the best split of an internal node is that of its reduced problem
(`evotree.operators.structure.reduced`), which any splitter solves. Nodes of one level do not
influence each other, so a sweep goes from the deepest level to the root, the nodes of a level side
by side. Leaves predict the majority class, or the mean, of their rows at any time.
"""

import math
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from evotree.dataset import Dataset
from evotree.fitness.node import Node
from evotree.individual import Individual
from evotree.operators.splitters.base import Splitter
from evotree.operators.structure.reduced import (
    Hyperplane,
    leaf_table,
    loss_unit,
    misrouted,
    reduced_problem,
    replace_splits,
)
from evotree.rng import as_generator, make_streams, next_uint64
from evotree.tree import node_depths


def cost_of(node: Node, split: Hyperplane, term_cost: float) -> float:
    """Return what a split costs: the rows on the wrong sides, and the terms after the first."""
    weights, threshold = split
    wrong: float = misrouted(node.X, node.y, node.sample_weight, weights, threshold)
    return wrong + term_cost * max(0, int(np.count_nonzero(weights)) - 1)


def solve(
    node: Node,
    present: Hyperplane,
    splitter: Splitter,
    stream: np.ndarray,
    term_cost: float = 0.0,
) -> Hyperplane | None:
    """Return a split of a reduced problem: the splitter's, its inverse, or one that parts none."""
    nowhere = np.zeros(node.X.shape[1])
    all_left = nowhere, 0.0
    all_right = nowhere, -1.0
    if (node.y == node.y[0]).all():
        return all_right if node.y[0] else all_left
    refit = getattr(splitter, "refit", None)
    split = splitter(node, stream) if refit is None else refit(node, *present)
    if split is None:
        return None
    candidates = (
        (split.weights, float(split.threshold)),
        (-split.weights, float(np.nextafter(-split.threshold, -np.inf))),
        all_left,
        all_right,
    )
    return min(candidates, key=lambda candidate: cost_of(node, candidate, term_cost))


def penalized_quality(individual: Individual, term_penalty: float) -> float:
    """Return the quality of a tree less the penalty for the terms after each split's first."""
    n_further_terms = individual.n_terms - len(individual) // 2
    return individual.quality - term_penalty * max(0, n_further_terms)


def tao_sweep(
    individual: Individual,
    dataset: Dataset,
    splitter: Splitter,
    *,
    monotone: bool = True,
    term_penalty: float = 0.0,
    max_rows: int | None = None,
    max_nodes: int | None = None,
    end: float = math.inf,
    map: Callable[..., Iterable[Any]] = map,
) -> tuple[Individual]:
    """Fit every internal node of an individual again, from the deepest level to the root.

    Parameters
    ----------
    individual : Individual
        Changed in place; its stream is drawn from.
    dataset : Dataset
        Training rows.
    splitter : Splitter
        Finds the split of a reduced problem; one with ``refit`` starts from the present split.
    monotone : bool, default=True
        Whether a split stays where a new one costs more, and the tree where it would be worse.
    term_penalty : float, default=0.0
        Penalty for each term after a split's first, a share of the whole loss.
    max_rows : int, optional
        Most rows that a node is fitted by; None for all.
    max_nodes : int, optional
        Of a tree with more splits so many are drawn and fitted; None for all.
    end : float, default=inf
        When it is over, by `time.perf_counter`, the nodes that are left stay as they are.
    map : callable
        Maps over the nodes of a level, as the built-in one, maybe by several threads.
    """
    weights = individual.weights.copy()
    thresholds = individual.thresholds.copy()
    size = individual.subtree_size
    table = leaf_table(individual, dataset.n_classes)
    streams = make_streams(int(next_uint64(individual.stream)), 0, len(individual))
    term_cost = term_penalty * loss_unit(dataset)

    def fit(k: int) -> Hyperplane | None:
        if time.perf_counter() >= end:
            return None
        node = reduced_problem(
            individual, dataset, k, weights, thresholds, table, streams[k], max_rows
        )
        if node is None:
            return None
        present = weights[k].copy(), float(thresholds[k])
        split = solve(node, present, splitter, streams[k], term_cost)
        if split is not None and monotone:
            present_cost = cost_of(node, present, term_cost)
            return None if cost_of(node, split, term_cost) > present_cost else split
        return split

    depths = np.where(size == 1, -1, node_depths(size))
    if max_nodes is not None and len(size) // 2 > max_nodes:
        stream: Any = individual.stream
        drawn = as_generator(stream).permutation(np.flatnonzero(size > 1))
        depths[drawn[max_nodes:]] = -1
    is_changed = False
    for depth in range(depths.max(), -1, -1):
        nodes = np.flatnonzero(depths == depth)
        for k, split in zip(nodes, map(fit, nodes), strict=True):
            if split is not None:
                weights[k], thresholds[k] = split
                is_changed = True
    if is_changed:
        swept = individual.clone()
        replace_splits(swept, dataset, weights, thresholds)
        # A row on a hyperplane may fall to the other side than its projection above had it.
        is_worse = monotone and (
            penalized_quality(swept, term_penalty)
            < penalized_quality(individual, term_penalty)
        )
        if not is_worse:
            individual.replace_by(swept)
    return (individual,)


def tao_sweeps(
    individual: Individual,
    dataset: Dataset,
    splitter: Splitter,
    *,
    max_sweeps: int = 14,
    tol: float = 0.005,
    monotone: bool = True,
    map: Callable[..., Iterable[Any]] = map,
) -> Iterator[int]:
    """Sweep over an individual until its training loss falls no further; yield after each sweep.

    It ends where a sweep lowers the loss by no more than the share `tol`. What `monotone` is false
    for is the first sweep alone; ``map`` is that of `tao_sweep`.
    """
    tao_sweep(individual, dataset, splitter, monotone=monotone, map=map)
    yield 1
    for n_sweeps in range(2, max_sweeps + 1):
        loss = 1.0 - individual.quality
        tao_sweep(individual, dataset, splitter, map=map)
        yield n_sweeps
        if loss - (1.0 - individual.quality) <= tol * loss:
            break
