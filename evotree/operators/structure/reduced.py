"""The reduced problem of a node: where each of its rows should go, the other nodes held fixed.

Given all other nodes, the best split of an internal node is that of a problem of two classes
(Carreira-Perpiñán and Tavallali 2018, "Alternating optimization of decision trees, with application
to learning sparse oblique trees", NeurIPS, section 3). A row that the subtrees of both children
predict equally well does not matter. Any other, a *care row*, belongs to the child that predicts it
better, and costs the difference of the two losses on the other side. The loss is that of the
objective: by default 1 for a wrong class, and the squared error (Zharmagambetov and
Carreira-Perpiñán 2020).
"""

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from evotree._jit import inner_kernel, kernel
from evotree.dataset import Dataset
from evotree.fitness.leaves import SQUARED, target_loss
from evotree.fitness.node import Criterion, Node
from evotree.operators.structure.splice import partition_tree
from evotree.rng import uniform
from evotree.tree import Individual, node_weights, project

Hyperplane: TypeAlias = tuple[np.ndarray, float]
"""Normal vector and threshold of a split."""

SPARSE_ROWS = 4_096  # most that the features of a split are chosen by
_ERROR = int(Criterion.ERROR)
_FEW_ROWS = 1024  # that a reduced problem may have however few rows there are


@inner_kernel
def leaf_from(X, i, k, tree):
    """Return the leaf of the subtree at node `k` that row `i` reaches."""
    weights, thresholds, subtree_size = tree
    while subtree_size[k] > 1:
        if project(weights[k], X, i) <= thresholds[k]:
            k += 1
        else:
            k += 1 + subtree_size[k + 1]
    return k


@inner_kernel
def prediction_at(table, k, first, width, X, i):
    """Return what row `i` is predicted at leaf `k`: a number, or by a bounded linear model."""
    predicted = table[k, first]
    if width == 1:
        return predicted
    for j in range(X.shape[1]):
        predicted += table[k, first + 3 + j] * X[i, j]
    return min(max(predicted, table[k, first + 1]), table[k, first + 2])


@inner_kernel
def squared_error_at(table, k, X, outputs, i):
    """Return the squared error of row `i` at leaf `k`, summed over several outputs."""
    width = table.shape[1] // outputs.shape[1]
    total = 0.0
    for o in range(outputs.shape[1]):
        total += (outputs[i, o] - prediction_at(table, k, o * width, width, X, i)) ** 2
    return total


@inner_kernel
def loss_at(table, k, X, y, i, loss, level, origin):
    """Return what a unit of weight of row `i` loses at leaf `k`; `y` is classes or targets."""
    if y.ndim == 2:
        row_loss = squared_error_at(table, k, X, y, i)
    elif isinstance(y[i], float):
        predicted = prediction_at(table, k, 0, table.shape[1], X, i)
        row_loss = target_loss(y[i], predicted, loss, level, origin)
    else:
        row_loss = table[k, y[i]]
    return row_loss


@kernel
def losses_at(table, leaves, X, y, loss, level, origin):
    """Return what a unit of weight of each row loses at its leaf, of shape (n_rows,)."""
    losses = np.empty(leaves.shape[0])
    for i in range(leaves.shape[0]):
        losses[i] = loss_at(table, leaves[i], X, y, i, loss, level, origin)
    return losses


@kernel
def care_rows(X, y, sample_weight, rows, k, tree, table, loss, level, origin):
    """Return the care rows of node `k`, where they belong, and what they cost on the other side.

    `rows` are the positions of the rows that reach the node, ``tree`` its ``(weights, thresholds,
    subtree_size)`` and `table` what rows lose at each node (`leaf_table`). Of m care rows the three
    arrays are ``X (m, d)``, ``goes_right (m,) int32``, 1 for those of the right child, and
    ``cost (m,)``, the weight of a row times the difference of its two losses.
    """
    n, d = rows.shape[0], X.shape[1]
    chosen = np.empty(n, dtype=np.int32)
    goes_right = np.empty(n, dtype=np.int32)
    cost = np.empty(n)
    m = 0
    left = k + 1
    right = left + tree[2][left]
    for t in range(n):
        i = rows[t]
        on_left = leaf_from(X, i, left, tree)
        on_right = leaf_from(X, i, right, tree)
        excess = loss_at(table, on_left, X, y, i, loss, level, origin)
        excess -= loss_at(table, on_right, X, y, i, loss, level, origin)
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
    """Return the cost of the rows that a split sends to the wrong side."""
    total = 0.0
    for i in range(X.shape[0]):
        if (project(w, X, i) > threshold) != (goes_right[i] == 1):
            total += cost[i]
    return total


def leaf_table(individual: Individual, n_classes: int) -> np.ndarray:
    """Return what rows lose, or are predicted, at each node, of shape (n_nodes, n_columns)."""
    if individual.objective is not None:
        return np.ascontiguousarray(individual.objective.table(individual))
    if n_classes == 0:
        return (individual.counts[:, 1] / individual.counts[:, 0])[:, np.newaxis]
    return error_table(individual.counts.argmax(axis=1), n_classes)


def error_table(labels: np.ndarray, n_classes: int) -> np.ndarray:
    """Return whether each class is not the label of each node, as losses (n_nodes, n_classes)."""
    return np.not_equal.outer(labels, np.arange(n_classes)).astype(np.float64)


def loss_of_targets(dataset: Dataset) -> tuple[int, float, float]:
    """Return the loss of the targets, its level and origin, as `target_loss` takes them."""
    objective = dataset.bound_objective
    return (SQUARED, 0.5, 0.0) if objective is None else objective.rule


def class_masses(
    leaves: np.ndarray, dataset: Dataset, subtree_size: np.ndarray
) -> np.ndarray:
    """Return the class weights of the rows that reach each node, of shape (n_nodes, n_classes)."""
    return np.column_stack(
        [
            node_weights(leaves, dataset.sample_weight * (dataset.y == c), subtree_size)
            for c in range(dataset.n_classes)
        ]
    )


def reduced_problem(
    individual: Individual,
    dataset: Dataset,
    k: int,
    weights: np.ndarray,
    thresholds: np.ndarray,
    table: np.ndarray,
    stream: np.ndarray,
    max_rows: int | None = None,
) -> Node | None:
    """Return the reduced problem of an internal node: its care rows, of the classes 0 and 1.

    `weights` and `thresholds` are those of the tree as it is being changed. Of a node with more
    rows `max_rows` are drawn, and weigh as much as those they stand for. None where no row matters.
    """
    rows = individual.order[individual.start[k] : individual.end[k]]
    step = 1.0
    if max_rows is not None:
        # Copies with noise tell no more than the rows that they are of.
        max_rows = min(max_rows, max(_FEW_ROWS, dataset.n_rows))
        if rows.size > max_rows:
            step = rows.size / max_rows  # rows for which each of the drawn ones stands
            drawn = (np.arange(max_rows) + uniform(stream)) * step
            rows = rows[drawn.astype(np.int64)]
    care, goes_right, cost = care_rows(
        dataset.X,
        dataset.targets,
        dataset.sample_weight,
        rows,
        k,
        (weights, thresholds, individual.subtree_size),
        table,
        *loss_of_targets(dataset),
    )
    if dataset.is_split_on is not None:
        care[:, ~dataset.is_split_on] = 0.0
    if cost.size == 0:
        return None
    return Node.of(
        care, goes_right, step * cost, n_classes=2, criterion=_ERROR, min_rows=1
    )


def refit_nodes(
    individual: Individual,
    dataset: Dataset,
    nodes: np.ndarray,
    weights: np.ndarray,
    thresholds: np.ndarray,
    fit: Callable[[Node, Hyperplane], Hyperplane | None],
    stream: np.ndarray,
    max_rows: int,
) -> bool:
    """Fit the splits of nodes again, one after the other; return whether any has changed.

    They are written into `weights (n_nodes, n_features)` and `thresholds (n_nodes,)`, which hold
    the present ones. `fit` takes the reduced problem of a node and its present split.
    """
    table = leaf_table(individual, dataset.n_classes)
    is_changed = False
    for k in nodes.tolist():
        node = reduced_problem(
            individual, dataset, k, weights, thresholds, table, stream, max_rows
        )
        present = weights[k].copy(), float(thresholds[k])
        split = None if node is None else fit(node, present)
        if split is not None:
            weights[k], thresholds[k] = split
            is_changed = True
    return is_changed


def refit_split(
    individual: Individual,
    dataset: Dataset,
    k: int,
    fit: Callable[[Node, Hyperplane], Hyperplane | None],
    stream: np.ndarray,
    max_rows: int,
) -> bool:
    """Fit the split of one node again, as `refit_nodes`, in place; return whether it changed."""
    weights = individual.weights.copy()
    thresholds = individual.thresholds.copy()
    is_changed = refit_nodes(
        individual,
        dataset,
        np.array([k]),
        weights,
        thresholds,
        fit=fit,
        stream=stream,
        max_rows=max_rows,
    )
    if is_changed:
        replace_splits(individual, dataset, weights, thresholds)
    return is_changed


def loss_unit(dataset: Dataset) -> float:
    """Return the loss of which a quality is a share: the whole weight, or that of the root."""
    if dataset.n_classes:
        return dataset.total_weight
    if dataset.bound_objective is not None:
        return float(dataset.bound_objective.whole_loss(dataset))
    return float(dataset.sample_weight @ dataset.y**2)  # targets have mean 0


def replace_splits(
    individual: Individual,
    dataset: Dataset,
    weights: np.ndarray,
    thresholds: np.ndarray,
) -> None:
    """Give an individual other splits, and drop the parts that no row reaches."""
    individual.replace(
        partition_tree(
            dataset.rows,
            dataset.allowed(weights),
            thresholds,
            individual.subtree_size,
            dataset.n_statistics,
        )
    )
