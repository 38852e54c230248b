"""Pruning: subtrees become leaves, those that do not pay for their nodes.

Every rule of pruning is one question. A node has a risk as if it were a leaf, a tree has the sum of
the risks of its leaves, and nodes and terms have a price; which pruning is the cheapest?
`cheapest` answers it for one price, `weakest_links` for all of them (Breiman et al. 1984, chapter
3). What splits cost by their terms is in `split_prices` alone.

A pruning is a mask of the nodes whose subtrees become leaves, ``marks``; those inside a marked
subtree do not matter.

Minimal cost-complexity pruning has a cheapest pruning for every alpha, the price of a leaf. One
tree of this sequence is chosen by rows that the tree was not grown on, held out (`prune_held_out`)
or in turn (`prune_cross_validated`).
"""

from collections.abc import Callable
from heapq import heappop, heappush

import numpy as np

from evotree._jit import kernel
from evotree.dataset import (
    Dataset,
    fold_count,
    make_folds,
    split_folds,
)
from evotree.fitness.base import (
    PenalizedAccuracy,
    error_table,
    loss_of_targets,
    losses_at,
)
from evotree.fitness.node import (
    Criterion,
    sort_rows,
    weight_of,
    weighted_impurity,
)
from evotree.operators.losses import loss_moments, mean_and_error, units_of
from evotree.operators.structure.splice import (
    Nodes,
    Rows,
    copy_nodes,
    emit_leaf,
    finish_nodes,
    make_nodes,
)
from evotree.tree import Individual, ObliqueTree, node_depths, sizes_of_kept

_SQUARED_ERROR = int(Criterion.SQUARED_ERROR)

# A split whose gain is below this share of the root's risk changes nothing but for rounding.
_ROUNDING = 1e-13


def split_prices(tree: ObliqueTree, first: float, further: float) -> np.ndarray:
    """Return what each split of a tree costs."""
    prices = np.where(tree.is_leaf, 0.0, first)
    if further > 0.0:
        prices += further * np.maximum((tree.weights != 0.0).sum(axis=1) - 1, 0)
    return prices


@kernel
def cheapest(risk, subtree_size, node_price, split_price):
    """Mark the subtrees that do not pay for their nodes and terms."""
    # Bottom-up, a subtree is marked when the risk of its leaves and the prices of its nodes are not
    # below those of a leaf in its place; so what remains is the cheapest of all prunings, and the
    # smallest of equals.
    n = subtree_size.shape[0]
    cost = np.empty(n)
    marks = np.zeros(n, dtype=np.bool_)
    for k in range(n - 1, -1, -1):
        cost[k] = risk[k] + node_price
        if subtree_size[k] > 1:
            left = k + 1
            kept = cost[left] + cost[left + subtree_size[left]] + node_price
            kept += split_price[k]
            marks[k] = kept >= cost[k]
            cost[k] = min(kept, cost[k])
    return marks


@kernel
def impurities(criterion, counts):
    """Return the impurity of every node as a leaf, times its weight."""
    risk = np.empty(counts.shape[0])
    for k in range(counts.shape[0]):
        weight = counts[k, 0] if criterion == _SQUARED_ERROR else weight_of(counts[k])
        risk[k] = weighted_impurity(criterion, counts[k], weight)
    return risk


def risk_of_leaves(
    individual: Individual, n_classes: int, criterion: str | None = None
) -> tuple[np.ndarray, float]:
    """Return what each node loses if it is a leaf, and the unit of that, by a tree's objective."""
    if individual.objective is not None:
        return individual.objective.risk(individual), 1.0
    risk = node_risk(individual.counts, n_classes, criterion)
    return risk, 1.0 if n_classes else risk[0] or 1.0


def node_risk(
    counts: np.ndarray, n_classes: int, criterion: str | None = None
) -> np.ndarray:
    """Return the risk R(t) of every node as if it were a leaf, as a share of the whole weight."""
    if criterion is None:
        criterion = "error" if n_classes > 0 else "squared_error"
    weight = counts[0].sum() if n_classes > 0 else counts[0, 0]
    return impurities(Criterion[criterion.upper()], counts) / weight


def weakest_links(
    risk: np.ndarray, subtree_size: np.ndarray, split_price: np.ndarray | None = None
) -> np.ndarray:
    """Return the alpha from which on each node is a leaf in minimal cost-complexity pruning."""
    # The cheapest pruning for alpha, the price of one leaf, collapses the nodes whose number is at
    # most alpha; these prunings are Breiman's nested sequence T(alpha), the smallest of equals
    # (Breiman et al. 1984, section 3.3). Splits may have prices of their own, in units of alpha.
    #
    # Instead of cutting the weakest link of the whole tree again and again, the nodes are visited
    # bottom-up: the cost of the branch below a node is piecewise linear in alpha, with a bend where
    # a link below is cut, and meets the cost of the node as a leaf once. Bends beyond that point
    # are dropped, each once; heaps hold the others, the highest alpha on top. Of two the smaller
    # one is poured into the larger: O(n log(n)**2) for any shape of tree.
    risks, sizes = risk.tolist(), subtree_size.tolist()
    alpha = [np.inf] * len(risks)
    # Of links cut before their node: -alpha, the node of the link, by how much the risk falls where
    # it is not yet cut, and by how much the price grows.
    heaps: list[list[tuple[float, int, float, float]]] = [[] for _ in risks]
    nothing = _ROUNDING * abs(risks[0])
    for k in range(len(risks) - 1, -1, -1):
        if sizes[k] == 1:
            continue
        left = k + 1
        right = left + sizes[left]
        links, fewer = heaps[left], heaps[right]
        if len(links) < len(fewer):
            links, fewer = fewer, links
        for link in fewer:
            heappush(links, link)
        branch_risk = risks[left] + risks[right]
        price = 1.0 if split_price is None else float(split_price[k])
        while True:
            gain = risks[k] - branch_risk
            alpha[k] = gain / price if abs(gain) > nothing else 0.0
            if not links or alpha[k] >= -links[0][0]:
                break
            _, _, fall, growth = heappop(links)
            branch_risk -= fall
            price += growth
        heappush(links, (-alpha[k], k, risks[k] - branch_risk, price))
        heaps[k] = links
    return np.array(alpha)


def kept_nodes(
    subtree_size: np.ndarray, marks: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the nodes that a pruning keeps, in order, and the sizes of their subtrees after it."""
    cut = np.flatnonzero(marks & (subtree_size > 1))
    is_kept = node_depths(subtree_size, cut) == 0
    return np.flatnonzero(is_kept).astype(np.int32), sizes_of_kept(
        is_kept, subtree_size
    )


def prune_tree(tree: ObliqueTree, marks: np.ndarray) -> ObliqueTree:
    """Return a tree without a partition in which the marked subtrees are leaves."""
    kept, size = kept_nodes(tree.subtree_size, marks)
    of_nodes = {
        "values": tree.values,
        "weighted_n_node_samples": tree.weighted_n_node_samples,
        "labels": tree.given_labels,
        "row_counts": tree.row_counts,
    }
    return tree.replaced(
        weights=np.where(size[:, np.newaxis] > 1, tree.weights[kept], 0.0),
        thresholds=np.where(size > 1, tree.thresholds[kept], 0.0),
        subtree_size=size,
        models=None if tree.models is None else tree.models.take(kept),
        **{name: None if of is None else of[kept] for name, of in of_nodes.items()},
    )


@kernel
def collapse(rows, nodes, marks):
    """Return a copy of a tree whose marked subtrees are leaves."""
    rows, source = Rows(*rows), Nodes(*nodes)
    n = source.subtree_size.shape[0]
    out = make_nodes(n, source, source.order.copy())
    m = copied = 0
    for k in range(n):
        if k >= copied and marks[k]:
            m = copy_nodes(source, copied, k, out, m)
            sort_rows(out.order, source.start[k], source.end[k])
            m = emit_leaf(rows, out, m, source.start[k], source.end[k])
            copied = k + source.subtree_size[k]
    return finish_nodes(out, copy_nodes(source, copied, n, out, m))


def prune_marked(
    individual: Individual, dataset: Dataset, marks: np.ndarray
) -> tuple[Individual]:
    """Collapse the marked subtrees of an individual."""
    if marks.any():
        individual.replace(collapse(dataset.rows, individual.nodes(), marks))
    return (individual,)


def prune(
    individual: Individual,
    dataset: Dataset,
    size_penalty: float,
    term_penalty: float = 0.0,
) -> tuple[Individual]:
    """Make a tree the fittest of its prunings, by `evotree.fitness.base.PenalizedAccuracy`."""
    counts, subtree_size = individual.counts, individual.subtree_size
    if individual.objective is not None:
        prices = split_prices(individual, 0.0, term_penalty)
        marks = individual.objective.cuts(individual, size_penalty, prices)
        if marks is None:
            risk = individual.objective.risk(individual)
            marks = cheapest(risk, subtree_size, size_penalty, prices)
        pruned = prune_marked(individual.clone(), dataset, marks)[0]
        fitness = PenalizedAccuracy(size_penalty, term_penalty)
        pays = individual.objective.is_sum or fitness(pruned) >= fitness(individual)
        if pays and len(pruned) < len(individual):
            individual.replace_by(pruned)
        return (individual,)
    if dataset.n_classes:
        # The weight of all leaves together is that of the root: minus the weight that is classified
        # correctly serves as well as the one that is not, and for whole numbers both are exact.
        risk, whole = -counts.max(axis=1), dataset.total_weight
    else:
        risk, whole = impurities(_SQUARED_ERROR, counts), counts[0, 2]
    prices = split_prices(individual, 0.0, term_penalty * whole)
    marks = cheapest(risk, subtree_size, size_penalty * whole, prices)
    return prune_marked(individual, dataset, marks)


# ---- choice by other rows ------------------------------------------------------------------------


# Alphas, or losses, that differ by less than this share of the highest agree but for rounding.
_AGREE = 1e-12


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
    """Add up values of nodes over the leaves of each tree of a nested sequence."""
    # A node is a leaf from its own collapse to that of a node above it.
    first = np.where(subtree_size == 1, 0.0, collapse_at)
    end = first_above(collapse_at, subtree_size, np.inf)
    sums = [values[(first <= alpha) & (alpha < end)].sum() for alpha in alphas]
    return np.array(sums)


def critical_alphas(collapse_at: np.ndarray, subtree_size: np.ndarray) -> np.ndarray:
    """Return the alphas at which the cheapest pruning changes, one for each of the trees."""
    is_exposed = collapse_at < first_above(collapse_at, subtree_size, np.inf)
    alphas = np.unique(np.append(0.0, collapse_at[is_exposed & (collapse_at > 0.0)]))
    return alphas[np.append(np.diff(alphas) > _AGREE * alphas[-1], True)]


def cost_complexity_path(
    risk: np.ndarray, subtree_size: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the alphas and the risks of the sequence of minimal cost-complexity pruning."""
    # It is scikit-learn's but for links of one alpha, which are cut together here, as Breiman et
    # al. have it, and there one after the other.
    collapse_at = weakest_links(risk, subtree_size)
    alphas = critical_alphas(collapse_at, subtree_size)
    return alphas, sequence_sums(risk, collapse_at, subtree_size, alphas)


def loss_table(tree: ObliqueTree, held_out: Dataset) -> np.ndarray:
    """Return what `loss_at` takes of the nodes of a tree, as leaves, for rows held out."""
    if (
        held_out.n_classes == 0
        and isinstance(tree, Individual)
        and tree.objective is not None
    ):
        table = tree.objective.held_out_table(tree, tree)
    elif held_out.n_classes == 0:
        table = tree.values if tree.models is None else tree.models.table
        if held_out.outputs is not None:  # raw outputs have units of their own
            width = table.shape[1] // held_out.n_outputs
            table = table / np.repeat(held_out.target_scale, width)
    elif held_out.bound_objective is not None:
        counted = tree.counted()
        table = held_out.bound_objective.held_out_table(counted, counted)
    else:
        table = error_table(tree.labels, held_out.n_classes)
    return np.ascontiguousarray(table)


def parents_of(subtree_size: np.ndarray) -> np.ndarray:
    """Return the node above each node, and the root for itself."""
    parents = np.zeros(len(subtree_size), dtype=np.int32)
    for k in np.flatnonzero(subtree_size > 1).tolist():
        parents[[k + 1, k + 1 + subtree_size[k + 1]]] = k
    return parents


def losses_of_rows(
    table: np.ndarray, nodes: np.ndarray, held_out: Dataset
) -> np.ndarray:
    """Return what a unit of weight of each row loses at a node, by `loss_table`."""
    rule = loss_of_targets(held_out)
    return losses_at(table, nodes, held_out.X, held_out.targets, *rule)


def sequence_losses(
    tree: ObliqueTree, held_out: Dataset, collapse_at: np.ndarray, alphas: np.ndarray
) -> np.ndarray:
    """Return what the prunings of a tree lose on rows held out, as `mean_and_error` takes it."""
    table, parents = loss_table(tree, held_out), parents_of(tree.subtree_size)
    end = first_above(collapse_at, tree.subtree_size, np.inf)
    nodes, units = tree.apply(held_out.X), units_of(held_out)
    moments = []
    for alpha in alphas:
        while (is_cut := (nodes > 0) & (end[nodes] <= alpha)).any():
            nodes = np.where(is_cut, parents[nodes], nodes)
        losses = losses_of_rows(table, nodes, held_out)
        moments.append(loss_moments(losses, held_out.sample_weight, units))
    return np.array(moments)


def choose_tree(moments: np.ndarray, standard_errors: float) -> int:
    """Choose one of a sequence of ever smaller trees by the k-SE rule, of moments of losses."""
    # Breiman et al. (1984, section 3.4.3): the smallest tree whose mean loss is at most k standard
    # errors above the lowest.
    mean, error = mean_and_error(moments)
    best = np.flatnonzero(mean <= mean.min() + _AGREE * mean.max())[-1]
    limit = mean[best] + standard_errors * error[best]
    return int(np.flatnonzero(mean <= limit + _AGREE * mean.max())[-1])


def prune_held_out(
    tree: ObliqueTree, risk: np.ndarray, held_out: Dataset, standard_errors: float = 0.0
) -> np.ndarray:
    """Choose a tree of the cost-complexity sequence by held-out rows (Breiman et al., 3.4.1)."""
    collapse_at = weakest_links(risk, tree.subtree_size)
    alphas = critical_alphas(collapse_at, tree.subtree_size)
    if held_out.X.shape[0] == 0:
        return collapse_at <= 0.0
    moments = sequence_losses(tree, held_out, collapse_at, alphas)
    return collapse_at <= alphas[choose_tree(moments, standard_errors)]


def prune_cross_validated(
    individual: Individual,
    dataset: Dataset,
    grow_on: Callable[[Dataset], Individual],
    *,
    n_folds: int = 10,
    standard_errors: float = 0.0,
    stream: np.ndarray,
) -> np.ndarray:
    """Choose a tree of the cost-complexity sequence by cross-validation."""
    # Breiman et al. (1984, section 3.4.2): a tree is grown on the rows outside each fold, and
    # pruned for the geometric means of the main tree's successive alphas; the losses of all folds
    # together choose the alpha.
    risk, _ = risk_of_leaves(individual, dataset.n_classes)
    collapse_at = weakest_links(risk, individual.subtree_size)
    alphas = critical_alphas(collapse_at, individual.subtree_size)
    n_folds = fold_count(dataset, n_folds)
    if n_folds == 0 or alphas.shape[0] == 1:
        return collapse_at <= 0.0
    folds = make_folds(dataset, n_folds, stream)
    typical = np.append(np.sqrt(alphas[:-1] * alphas[1:]), np.inf)
    moments = np.zeros(1)
    for fold in range(n_folds):
        others, held_out = split_folds(dataset, folds, fold)
        tree = grow_on(others)
        risk, _ = risk_of_leaves(tree, dataset.n_classes)
        links = weakest_links(risk, tree.subtree_size)
        moments = moments + sequence_losses(tree, held_out, links, typical)
    return collapse_at <= alphas[choose_tree(moments, standard_errors)]
