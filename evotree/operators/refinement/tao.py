"""Tree alternating optimization: every node of a whole tree is fitted again, the others held fixed.

Given all other nodes, the best split of an internal node is that of its reduced problem
(`evotree.operators.structure.reduced`), which any splitter solves. Nodes of one level do not
influence each other, so a sweep goes from the deepest level to the root, the nodes of a level side
by side. Leaves predict the majority class, or the mean, of their rows at any time.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from evotree.operators.pruning.penalized import prune
from evotree.operators.structure.reduced import (
    leaf_table,
    loss_unit,
    misrouted,
    reduced_problem,
    replace_tests,
)
from evotree.rng import as_generator, make_streams, next_uint64
from evotree.tree import node_depths

if TYPE_CHECKING:
    from evotree.dataset import Dataset
    from evotree.fitness.node import Node
    from evotree.individual import Individual
    from evotree.operators.splitters.base import Splitter

Test = tuple[np.ndarray, float]
"""Normal vector and threshold of a node."""


def price(node: Node, test: Test, term_cost: float) -> float:
    """Return what a split costs: the rows on the wrong sides, and the terms after the first."""
    wrong: float = misrouted(node.X, node.y, node.sample_weight, *test)
    return wrong + term_cost * max(0, int(np.count_nonzero(test[0])) - 1)


def solve(
    node: Node, present: Test, splitter: Splitter, stream: np.ndarray, term_cost: float = 0.0
) -> Test | None:
    """Return a test of a reduced problem: the splitter's, its inverse, or one that parts no rows.

    Parameters
    ----------
    node : Node
        Care rows of the classes 0, to be sent left, and 1.
    present : tuple of ndarray and float
        The test that the node has; where the search starts, if it can start anywhere.
    splitter : Splitter
        Finds the hyperplane.
    stream : ndarray of shape (1,), uint64
        Random state.
    term_cost : float, at least 0, default=0.0
        Penalty for each term after a split's first, in the unit of the rows' costs.

    Returns
    -------
    tuple of ndarray and float, or None
        The cheapest, the first of equals. Splitters score a split as if each side could have either
        class, so theirs may be the wrong way round, or worse than none. None where the splitter
        finds no split, though both sides are wanted.
    """
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
    found = (split.weights, float(split.threshold)), inverse, all_left, all_right
    return min(found, key=lambda test: price(node, test, term_cost))


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
    """Fit every internal node of an individual again, from the deepest level to the root.

    Parameters
    ----------
    individual : Individual
        Changed in place; its arrays are replaced, not written. Randomness comes from its stream.
    dataset : Dataset
        Training rows.
    splitter : Splitter
        Solves the reduced problems; where it has a method ``refit(node, weights, threshold)``, as
        `Linear` has, that is called to start from the present test.
    monotone : bool, default=True
        Whether a node keeps its test where the new one costs more; then the training loss of the
        tree never rises. Otherwise every node takes the new test, which a regularized splitter may
        have made to generalize better than the present one.
    term_penalty : float, at least 0, default=0.0
        Penalty for each term of a split after its first, as in the fitness; what the tree loses on
        the rows and for its terms is what does not rise.
    max_rows : int, at least 1, optional
        Most rows that a node is fitted to (`reduced_problem`).
    max_nodes : int, at least 1, optional
        Most nodes that are fitted; where there are more, so many are drawn.
    end : float, default=inf
        When it is over, by `time.perf_counter`: the nodes that are left keep their tests.
    map : callable, default=map
        Maps over the nodes of one level; that of an executor runs them in threads.

    Returns
    -------
    tuple of one Individual
        The individual, without the parts that no row reaches; its fitness is deleted where a node
        changed.
    """
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
        found = solve(node, present, splitter, streams[k], term_cost)
        if found is None:
            return None
        if monotone and price(node, found, term_cost) > price(node, present, term_cost):
            return None
        return found

    depths = np.where(size == 1, -1, node_depths(size))
    if max_nodes is not None and len(size) // 2 > max_nodes:
        stream: Any = individual.stream
        drawn = as_generator(stream).permutation(np.flatnonzero(size > 1))
        depths[drawn[max_nodes:]] = -1
    changed = False
    for depth in range(depths.max(), -1, -1):
        nodes = np.flatnonzero(depths == depth)
        for k, found in zip(nodes, map(fit, nodes), strict=True):
            if found is not None:
                weights[k], thresholds[k] = found
                changed = True
    if changed:
        swept = individual.clone()
        replace_tests(swept, dataset, weights, thresholds)
        # A row on a hyperplane may fall to the other side than its projection above had it.
        if not (monotone and worth(swept, term_penalty) < worth(individual, term_penalty)):
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
    """Sweep over an individual until its training loss falls no further; yield after each sweep.

    Parameters
    ----------
    individual : Individual
        Changed in place, as by `tao_sweep`.
    dataset : Dataset
        Training rows.
    splitter : Splitter
        Solves the reduced problems.
    max_sweeps : int, at least 1, default=14
        Most sweeps.
    tol : float, at least 0, default=0.005
        A sweep that lowers the training loss by less than this share of it is the last.
    monotone : bool, default=True
        Whether the first sweep, too, changes a node only where that costs no more.
    map : callable, default=map
        Maps over the nodes of one level.

    Yields
    ------
    int
        Number of the sweep, from 1.
    """
    tao_sweep(individual, dataset, splitter, monotone=monotone, map=map)
    yield 1
    for n_sweeps in range(2, max_sweeps + 1):
        loss = 1.0 - individual.quality
        tao_sweep(individual, dataset, splitter, map=map)
        yield n_sweeps
        if loss - (1.0 - individual.quality) <= tol * loss:
            break


def tao(
    individual: Individual, dataset: Dataset, splitter: Splitter, **parameters: Any
) -> tuple[Individual]:
    """Optimize all tests of an individual in turn until its training loss falls no further.

    At the end subtrees whose leaves all predict one class become leaves.

    Parameters
    ----------
    individual : Individual
        Changed in place, as by `tao_sweep`.
    dataset : Dataset
        Training rows.
    splitter : Splitter
        Solves the reduced problems.
    **parameters
        Of `tao_sweeps`.

    Returns
    -------
    tuple of one Individual
        The individual.
    """
    for _ in tao_sweeps(individual, dataset, splitter, **parameters):
        pass
    return prune(individual, dataset, 0.0)
