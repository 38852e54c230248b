"""Tree alternating optimization: every node of a whole tree is fitted anew, the others held fixed.

Given all other nodes, the best test of an internal node is that of a *reduced problem* (Carreira-
Perpiñán and Tavallali 2018, "Alternating optimization of decision trees, with application to
learning sparse oblique trees", NeurIPS, section 3). A row that the subtrees of both children
predict equally well does not matter. Any other, a *care row*, belongs to the child that predicts it
better, and costs the difference of the two losses on the other side; for regression the loss is the
squared error (Zharmagambetov and Carreira-Perpiñán 2020). That is a problem of two classes at one
node, which any splitter solves. Nodes of one level do not influence each other, so a sweep goes
from the deepest level to the root, the nodes of a level side by side. Leaves predict the majority
class, or the mean, of their rows at any time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from evotree._jit import inner_kernel, kernel
from evotree.fitness.criteria import Criterion
from evotree.fitness.node import Node
from evotree.operators.pruning.penalized import prune
from evotree.operators.structure.splice import partition_tree
from evotree.rng import make_streams, next_uint64, uniform
from evotree.tree import node_depths, project

if TYPE_CHECKING:
    from evotree.dataset import Dataset
    from evotree.individual import Individual
    from evotree.operators.splitters.base import Splitter

_ERROR = int(Criterion.ERROR)

Test = tuple[np.ndarray, float]
"""Normal vector and threshold of a node."""


@inner_kernel
def predict_from(X, i, k, weights, thresholds, subtree_size, predictions):
    """Return what the subtree at node `k` predicts for row `i`."""
    while subtree_size[k] > 1:
        if project(weights[k], X, i) <= thresholds[k]:
            k += 1
        else:
            k += 1 + subtree_size[k + 1]
    return predictions[k]


@kernel
def care_rows(X, y, sample_weight, rows, k, weights, thresholds, subtree_size, predictions):
    """Return the reduced problem of an internal node.

    Parameters
    ----------
    X, y, sample_weight : ndarray of shapes (n, d), (n,) and (n,)
        All rows.
    rows : ndarray of int32
        The rows that reach the node.
    k : int
        The node.
    weights, thresholds, subtree_size : ndarray
        The tree.
    predictions : ndarray of shape (n_nodes,), float64
        What the leaves predict: class codes, or targets.

    Returns
    -------
    care : ndarray of shape (m, d)
        The rows that matter.
    goes_right : ndarray of shape (m,), int32
        1 for those that the right child predicts better, 0 for the others.
    cost : ndarray of shape (m,)
        What each costs on the wrong side.
    """
    n, d = rows.shape[0], X.shape[1]
    chosen = np.empty(n, dtype=np.int32)
    goes_right = np.empty(n, dtype=np.int32)
    cost = np.empty(n)
    m = 0
    left = k + 1
    right = left + subtree_size[left]
    for t in range(n):
        i = rows[t]
        on_left = predict_from(X, i, left, weights, thresholds, subtree_size, predictions)
        on_right = predict_from(X, i, right, weights, thresholds, subtree_size, predictions)
        if isinstance(y[i], float):
            excess = (y[i] - on_left) ** 2 - (y[i] - on_right) ** 2
        else:
            excess = np.float64(on_left != y[i]) - np.float64(on_right != y[i])
        if excess != 0.0:
            chosen[m] = i
            goes_right[m] = excess > 0.0
            cost[m] = sample_weight[i] * abs(excess)
            m += 1
    care = np.empty((m, d))
    for t in range(m):
        for j in range(d):
            care[t, j] = X[chosen[t], j]
    return care, goes_right[:m].copy(), cost[:m].copy()


@kernel
def misrouted(X, goes_right, cost, w, threshold):
    """Return the cost of the rows that a test sends to the wrong side."""
    total = 0.0
    for i in range(X.shape[0]):
        if (project(w, X, i) > threshold) != (goes_right[i] == 1):
            total += cost[i]
    return total


def leaf_predictions(individual: Individual, n_classes: int) -> np.ndarray:
    """Return the class code, or the mean target, that each node predicts as a leaf."""
    if n_classes:
        return individual.counts.argmax(axis=1).astype(np.float64)
    return individual.counts[:, 1] / individual.counts[:, 0]


def solve(node: Node, present: Test, splitter: Splitter, stream: np.ndarray) -> Test | None:
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
    return min(found, key=lambda test: misrouted(node.X, node.y, node.sample_weight, *test))


def reduced_problem(
    individual: Individual,
    dataset: Dataset,
    k: int,
    weights: np.ndarray,
    thresholds: np.ndarray,
    predictions: np.ndarray,
    stream: np.ndarray,
    max_rows: int | None = None,
) -> Node | None:
    """Return the reduced problem of an internal node: its care rows, of the classes 0 and 1.

    Parameters
    ----------
    individual : Individual
        A tree with its partition, which says which rows reach the node.
    dataset : Dataset
        Its rows.
    k : int
        The node.
    weights, thresholds : ndarray
        The tests of the tree; those below `k` may differ from the individual's.
    predictions : ndarray of shape (n_nodes,)
        What the leaves predict (`leaf_predictions`).
    stream : ndarray of shape (1,), uint64
        Random state, advanced where rows are too many.
    max_rows : int, at least 1, optional
        Where more rows reach the node, it is the problem of so many of them, evenly spaced; their
        costs are raised to those of all.

    Returns
    -------
    Node or None
        Rows of class 0 belong to the left; weights are the costs of the wrong side. None where no
        row matters.
    """
    rows, each = individual.order[individual.start[k] : individual.end[k]], 1.0
    if max_rows is not None and rows.size > max_rows:
        each = rows.size / max_rows
        rows = rows[((np.arange(max_rows) + uniform(stream)) * each).astype(np.int64)]
    care, goes_right, cost = care_rows(
        dataset.X,
        dataset.y,
        dataset.sample_weight,
        rows,
        k,
        weights,
        thresholds,
        individual.subtree_size,
        predictions,
    )
    return Node.of(care, goes_right, each * cost, 2, _ERROR, 1) if cost.size else None


def replace_tests(
    individual: Individual, dataset: Dataset, weights: np.ndarray, thresholds: np.ndarray
) -> None:
    """Give an individual other tests, and drop the parts that no row reaches."""
    individual.replace(
        partition_tree(
            dataset.X,
            dataset.y,
            dataset.sample_weight,
            weights,
            thresholds,
            individual.subtree_size,
            dataset.n_statistics,
        )
    )


def tao_sweep(
    individual: Individual,
    dataset: Dataset,
    splitter: Splitter,
    *,
    monotone: bool = True,
    max_rows: int | None = None,
    map: Callable[..., Iterable[Any]] = map,
) -> tuple[Individual]:
    """Fit every internal node of an individual anew, from the deepest level to the root.

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
    max_rows : int, at least 1, optional
        Most rows that a node is fitted to (`reduced_problem`).
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
    predictions = leaf_predictions(individual, dataset.n_classes)
    streams = make_streams(int(next_uint64(individual.stream)), 0, len(individual))

    def fit(k: int) -> Test | None:
        node = reduced_problem(
            individual, dataset, k, weights, thresholds, predictions, streams[k], max_rows
        )
        if node is None:
            return None
        present = weights[k].copy(), float(thresholds[k])
        found = solve(node, present, splitter, streams[k])
        rows = node.X, node.y, node.sample_weight
        if found is None or (monotone and misrouted(*rows, *found) > misrouted(*rows, *present)):
            return None
        return found

    depths = np.where(size == 1, -1, node_depths(size))
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
        if not (monotone and swept.quality < individual.quality):
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
