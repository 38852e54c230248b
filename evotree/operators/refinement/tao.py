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
    leaf_table,
    loss_unit,
    misrouted,
    reduced_problem,
    replace_tests,
)
from evotree.rng import as_generator, make_streams, next_uint64
from evotree.tree import node_depths

Test = tuple[np.ndarray, float]
"""Normal vector and threshold of a node."""


def price(node: Node, test: Test, term_cost: float) -> float:
    """Return what a split costs: the rows on the wrong sides, and the terms after the first."""
    wrong: float = misrouted(node.X, node.y, node.sample_weight, *test)
    return wrong + term_cost * max(0, int(np.count_nonzero(test[0])) - 1)


def solve(
    node: Node,
    present: Test,
    splitter: Splitter,
    stream: np.ndarray,
    term_cost: float = 0.0,
) -> Test | None:
    """Return a test of a reduced problem: the splitter's, its inverse, or one that parts none."""
    nowhere = np.zeros(node.X.shape[1])
    all_left, all_right = (nowhere, 0.0), (nowhere, -1.0)
    side = int(node.y[0])
    if (node.y == side).all():
        return all_right if side else all_left
    refit = getattr(splitter, "refit", None)
    split = splitter(node, stream) if refit is None else refit(node, *present)
    if split is None:
        return None
    inverse = -split.weights, float(np.nextafter(-split.threshold, -np.inf))
    tests = (split.weights, float(split.threshold)), inverse, all_left, all_right
    return min(tests, key=lambda test: price(node, test, term_cost))


def worth(individual: Individual, term_penalty: float) -> float:
    """Return the quality of a tree less the penalty for the terms after each split's first."""
    n_terms, n_splits = individual.n_terms, len(individual) // 2
    return individual.quality - term_penalty * max(0, n_terms - n_splits)


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
    """Fit every internal node of an individual again, from the deepest level to the root."""
    weights, thresholds = individual.weights.copy(), individual.thresholds.copy()
    size = individual.subtree_size
    table = leaf_table(individual, dataset.n_classes)
    streams = make_streams(int(next_uint64(individual.stream)), 0, len(individual))
    term_cost = term_penalty * loss_unit(dataset)

    def fit(k: int) -> Test | None:
        if time.perf_counter() >= end:
            return None
        node = reduced_problem(
            individual, dataset, k, weights, thresholds, table, streams[k], max_rows
        )
        if node is None:
            return None
        present = weights[k].copy(), float(thresholds[k])
        test = solve(node, present, splitter, streams[k], term_cost)
        if test is not None and monotone:
            is_dearer = price(node, test, term_cost) > price(node, present, term_cost)
            return None if is_dearer else test
        return test

    depths = np.where(size == 1, -1, node_depths(size))
    if max_nodes is not None and len(size) // 2 > max_nodes:
        stream: Any = individual.stream
        drawn = as_generator(stream).permutation(np.flatnonzero(size > 1))
        depths[drawn[max_nodes:]] = -1
    changed = False
    for depth in range(depths.max(), -1, -1):
        nodes = np.flatnonzero(depths == depth)
        for k, test in zip(nodes, map(fit, nodes), strict=True):
            if test is not None:
                weights[k], thresholds[k] = test
                changed = True
    if changed:
        swept = individual.clone()
        replace_tests(swept, dataset, weights, thresholds)
        # A row on a hyperplane may fall to the other side than its projection above had it.
        if not (
            monotone and worth(swept, term_penalty) < worth(individual, term_penalty)
        ):
            individual.become(swept)
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
    """Sweep over an individual until its training loss falls no further; yield after each sweep."""
    tao_sweep(individual, dataset, splitter, monotone=monotone, map=map)
    yield 1
    for n_sweeps in range(2, max_sweeps + 1):
        loss = 1.0 - individual.quality
        tao_sweep(individual, dataset, splitter, map=map)
        yield n_sweeps
        if loss - (1.0 - individual.quality) <= tol * loss:
            break
