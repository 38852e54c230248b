"""Rules of pruning: the nested sequence of prunings of a tree, and the choice of one by other rows.

Minimal cost-complexity pruning has a cheapest pruning for every alpha, the price of a leaf (Breiman
et al. 1984, chapter 3). One tree of this sequence is chosen by rows that the tree was not grown on,
held out (`prune_held_out`) or in turn (`prune_cross_validated`). `prune_reduced_error` looks at the
held-out rows alone (Quinlan 1987).
"""

from collections.abc import Callable

import numpy as np

from evotree._jit import kernel
from evotree.dataset import Dataset
from evotree.folds import make_folds, split_folds
from evotree.individual import Individual
from evotree.operators.pruning.penalized import cheapest, risk_of_leaves, weakest_links
from evotree.operators.structure.reduced import class_masses, loss_at, loss_of_targets
from evotree.tree import ObliqueTree, project

# Alphas, or losses, that differ by less than this share of the highest agree but for rounding.
_ROUNDING = 1e-12


def first_above(cut: np.ndarray, subtree_size: np.ndarray, end: float) -> np.ndarray:
    """Return where in a sequence the first of the nodes above each node is cut."""
    cuts, size, above = cut.tolist(), subtree_size.tolist(), [end] * len(cut)
    for k in range(len(size)):
        if size[k] > 1:
            above[k + 1] = above[k + 1 + size[k + 1]] = min(cuts[k], above[k])
    return np.array(above)


def sequence_sums(
    values: np.ndarray,
    collapse_at: np.ndarray,
    subtree_size: np.ndarray,
    alphas: np.ndarray,
) -> np.ndarray:
    """Add up values over the leaves of each tree of a nested sequence, in one pass."""
    first = np.searchsorted(alphas, collapse_at).astype(np.float64)
    first[subtree_size == 1] = 0.0
    after = first_above(first, subtree_size, float(len(alphas)))
    # A node is a leaf of the trees from its own collapse to that of a node above it: what it adds
    # to the first of them it takes away after the last.
    is_leaf = first < after
    places = np.column_stack([first, after])[is_leaf].astype(np.int64)
    changes = np.stack([values, -values], axis=1)[is_leaf]
    sums = np.zeros((len(alphas) + 1, values.shape[1]))
    np.add.at(sums, places, changes)
    return sums.cumsum(axis=0)[:-1]


def critical_alphas(collapse_at: np.ndarray, subtree_size: np.ndarray) -> np.ndarray:
    """Return the alphas at which the cheapest pruning changes, one for each of the trees."""
    is_exposed = collapse_at < first_above(collapse_at, subtree_size, np.inf)
    alphas = np.unique(np.append(0.0, collapse_at[is_exposed & (collapse_at > 0.0)]))
    return alphas[np.append(np.diff(alphas) > _ROUNDING * alphas[-1], True)]


def cost_complexity_path(
    risk: np.ndarray, subtree_size: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the alphas and the risks of the sequence of minimal cost-complexity pruning."""
    # It is scikit-learn's but for links of one alpha, which are cut together here, as Breiman et
    # al. have it, and there one after the other.
    collapse_at = weakest_links(risk, subtree_size)
    alphas = critical_alphas(collapse_at, subtree_size)
    return alphas, sequence_sums(risk[:, None], collapse_at, subtree_size, alphas)[:, 0]


@kernel
def add_losses(
    X,
    y,
    sample_weight,
    weights,
    thresholds,
    subtree_size,
    table,
    loss,
    level,
    origin,
    losses,
):
    """Add the loss of each row, and its square, at every node on its way; see `node_losses`."""
    for i in range(X.shape[0]):
        k = 0
        while True:
            row_loss = loss_at(table, k, X, y, i, loss, level, origin)
            losses[0, k] += sample_weight[i] * row_loss
            losses[1, k] += sample_weight[i] * row_loss * row_loss
            if subtree_size[k] == 1:
                break
            if project(weights[k], X, i) <= thresholds[k]:
                k += 1
            else:
                k += 1 + subtree_size[k + 1]


def node_losses(tree: ObliqueTree, held_out: Dataset) -> np.ndarray:
    """Return what nodes would lose as leaves on the rows that reach them, and sums of squares.

    Both are of shape (2, n_nodes). Nodes of class models are judged as if they had none.
    """
    if (
        held_out.n_classes == 0
        and isinstance(tree, Individual)
        and tree.objective is not None
    ):
        table = tree.objective.held_out_table(tree, tree.counts, tree)
    elif held_out.n_classes == 0:
        table = tree.values if tree.models is None else tree.models.table
        if held_out.outputs is not None:  # raw outputs have units of their own
            width = table.shape[1] // held_out.n_outputs
            table = table / np.repeat(held_out.target_scale, width)
    elif held_out.bound_objective is not None:
        counted, leaves = tree.counted(), tree.apply(held_out.X)
        mass = class_masses(leaves, held_out, tree.subtree_size)
        table = held_out.bound_objective.held_out_table(counted, mass, counted)
    else:
        labels = tree.labels if tree.models is None else tree.majority
        table = np.ones(tree.values.shape)
        table[np.arange(len(tree)), labels] = 0.0
    losses = np.zeros((2, len(tree)))
    rows = held_out.X, held_out.targets, held_out.sample_weight
    splits = tree.weights, tree.thresholds, tree.subtree_size
    table = np.ascontiguousarray(table)
    add_losses(*rows, *splits, table, *loss_of_targets(held_out), losses)
    return losses


def choose_tree(
    losses: np.ndarray, square_losses: np.ndarray, weight: float, standard_errors: float
) -> int:
    """Choose one of a sequence of ever smaller trees by the k-SE rule."""
    # Breiman et al. (1984, section 3.4.3): the smallest tree whose mean loss is at most k standard
    # errors above the lowest. For a share e of misclassified rows the standard error of the mean is
    # sqrt(e (1 - e) / n); a row of weight 2 counts as two.
    mean = losses / weight
    best = np.flatnonzero(mean <= mean.min() + _ROUNDING * mean.max())[-1]
    variance = max(0.0, square_losses[best] / weight - mean[best] ** 2)
    limit = mean[best] + standard_errors * np.sqrt(variance / weight)
    return int(np.flatnonzero(mean <= limit)[-1])


def prune_held_out(
    tree: ObliqueTree, risk: np.ndarray, held_out: Dataset, standard_errors: float = 0.0
) -> np.ndarray:
    """Choose a tree of the cost-complexity sequence by held-out rows (Breiman et al., 3.4.1)."""
    collapse_at = weakest_links(risk, tree.subtree_size)
    alphas = critical_alphas(collapse_at, tree.subtree_size)
    if held_out.X.shape[0] == 0:
        return collapse_at <= 0.0
    values = node_losses(tree, held_out).T
    sums = sequence_sums(values, collapse_at, tree.subtree_size, alphas)
    chosen = choose_tree(sums[:, 0], sums[:, 1], held_out.total_weight, standard_errors)
    return collapse_at <= alphas[chosen]


def prune_cross_validated(
    individual: Individual,
    dataset: Dataset,
    grow_on: Callable[[Dataset], Individual],
    *,
    n_folds: int = 10,
    standard_errors: float = 0.0,
    criterion: str | None = None,
    stream: np.ndarray,
) -> np.ndarray:
    """Choose a tree of the cost-complexity sequence by cross-validation."""
    # Breiman et al. (1984, section 3.4.2): a tree is grown on the rows outside each fold, and
    # pruned for the geometric means of the main tree's successive alphas; the losses of all folds
    # together choose the alpha.
    if n_folds < 2:
        raise ValueError(f"n_folds={n_folds}: allowed are integers of at least 2.")
    n_classes = dataset.n_classes
    risk, _ = risk_of_leaves(individual, n_classes, criterion)
    collapse_at = weakest_links(risk, individual.subtree_size)
    alphas = critical_alphas(collapse_at, individual.subtree_size)
    n_folds = min(n_folds, dataset.n_rows)
    if n_folds < 2 or alphas.shape[0] == 1:
        return collapse_at <= 0.0
    folds = make_folds(dataset, n_folds, stream)
    typical = np.append(np.sqrt(alphas[:-1] * alphas[1:]), np.inf)
    sums = np.zeros((alphas.shape[0], 2))
    for fold in range(n_folds):
        others, held_out = split_folds(dataset, folds, fold)
        tree = grow_on(others)
        values = node_losses(tree, held_out).T
        risk, _ = risk_of_leaves(tree, n_classes, criterion)
        links = weakest_links(risk, tree.subtree_size)
        sums += sequence_sums(values, links, tree.subtree_size, typical)
    chosen = choose_tree(sums[:, 0], sums[:, 1], dataset.total_weight, standard_errors)
    return collapse_at <= alphas[chosen]


def prune_reduced_error(tree: ObliqueTree, held_out: Dataset) -> np.ndarray:
    """Mark the subtrees whose loss on rows held out is not below that of a leaf in their place."""
    # Bottom-up (Quinlan 1987): what is left is the smallest of the prunings with the lowest loss.
    losses = node_losses(tree, held_out)[0]
    return cheapest(losses, tree.subtree_size, 0.0, np.zeros(len(losses)))
