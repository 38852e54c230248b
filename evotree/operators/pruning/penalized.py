"""Pruning: subtrees become leaves, those that do not pay for their nodes.

Every rule of pruning is one question. A node has a risk as if it were a leaf, a tree has the sum of
the risks of its leaves, and nodes and terms have a price; which pruning is the cheapest?
`cheapest` answers it for one price, `weakest_links` for all of them (Breiman et al. 1984, chapter
3). What splits cost by their terms is in `split_prices` alone. The risk makes
the rule: that of the training rows gives cost-complexity pruning, that of other rows, at no price,
reduced-error pruning (`evotree.operators.pruning.held_out`).

A pruning is a mask of the nodes whose subtrees become leaves, ``marks``; those inside a marked
subtree do not matter.
"""

import numpy as np

from evotree._jit import kernel
from evotree.dataset import Dataset
from evotree.fitness.node import (
    Criterion,
    class_ranks,
    weight_of,
    weighted_impurity,
)
from evotree.fitness.penalties import PenalizedAccuracy
from evotree.individual import Individual
from evotree.operators.structure.splice import (
    Nodes,
    Rows,
    copy_nodes,
    emit_collapsed,
    finish,
    make_nodes,
)
from evotree.tree import ObliqueTree, sizes_of_kept

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
    rank = class_ranks(counts[0])
    for k in range(counts.shape[0]):
        weight = counts[k, 0] if criterion == _SQUARED_ERROR else weight_of(counts[k])
        risk[k] = weighted_impurity(criterion, counts[k], weight, rank)
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


def merge_heaps(a: int, b: int, alpha: list[float], child: list[list[int]]) -> int:
    """Merge two skew heaps, the highest alpha on top (Sleator and Tarjan 1986); return the top."""
    if a < 0 or b < 0:
        return max(a, b)
    if alpha[a] < alpha[b]:
        a, b = b, a
    top = a
    while True:
        lower = child[a][1]
        child[a][1] = child[a][0]
        if lower < 0:
            child[a][0] = b
            return top
        if alpha[lower] < alpha[b]:
            lower, b = b, lower
        child[a][0] = lower
        a = lower


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
    # are dropped, each once; heaps that merge hold the others: O(n log n) for any shape of tree.
    risks, sizes, n = risk.tolist(), subtree_size.tolist(), len(risk)
    alpha = [np.inf] * n
    heap, child = [-1] * n, [[-1, -1] for _ in risks]  # of links cut before their node
    fall = [0.0] * n  # of the risk where a link is not yet cut
    growth = [0.0] * n  # of the price
    nothing = _ROUNDING * abs(risks[0])
    for k in range(n - 1, -1, -1):
        if sizes[k] == 1:
            continue
        left = k + 1
        right = left + sizes[left]
        top = merge_heaps(heap[left], heap[right], alpha, child)
        branch_risk = risks[left] + risks[right]
        price = 1.0 if split_price is None else float(split_price[k])
        while True:
            gain = risks[k] - branch_risk
            alpha[k] = gain / price if abs(gain) > nothing else 0.0
            if top < 0 or alpha[k] >= alpha[top]:
                break
            branch_risk -= fall[top]
            price += growth[top]
            top = merge_heaps(child[top][0], child[top][1], alpha, child)
        fall[k] = risks[k] - branch_risk
        growth[k] = price
        child[k] = [top, -1]
        heap[k] = k
    return np.array(alpha)


def optimal_pruning(
    risk: np.ndarray, subtree_size: np.ndarray, split_cost: np.ndarray, budget: int
) -> np.ndarray:
    """Mark the subtrees that become leaves in the pruning of least risk within a budget.

    ``risk``, ``subtree_size`` and the whole numbers ``split_cost`` are of shape (n_nodes,); the
    splits that stay cost no more than `budget` together.
    """
    # Bohanec and Bratko (1994), "Trading accuracy for simplicity in decision trees":
    # `weakest_links` knows the best prunings for all prices, but of some sizes none is the best for
    # any price. Here each node knows the least risk below it for each part of the budget.
    lowest: list[np.ndarray] = [risk[k : k + 1] for k in range(len(risk))]
    for k in range(len(risk) - 1, -1, -1):
        cost = int(split_cost[k])
        if subtree_size[k] == 1 or cost > budget:
            continue
        right = k + 1 + subtree_size[k + 1]
        sums = _lowest_sums(lowest[k + 1], lowest[right], budget - cost)
        lowest[k] = np.minimum(np.append(np.full(cost, np.inf), sums), risk[k])
    marks = np.zeros(len(risk), dtype=bool)
    pending = [(0, budget)]
    while pending:
        k, budget = pending.pop()
        best = lowest[k][min(budget, len(lowest[k]) - 1)]
        marks[k] = subtree_size[k] > 1 and best >= risk[k]
        if marks[k] or subtree_size[k] == 1:
            continue
        left = k + 1
        budget -= int(split_cost[k])
        right = left + int(subtree_size[left])
        on_left = np.arange(min(budget, len(lowest[left]) - 1) + 1)
        on_right = np.minimum(budget - on_left, len(lowest[right]) - 1)
        share = int((lowest[left][on_left] + lowest[right][on_right]).argmin())
        pending += [(left, share), (right, budget - share)]
    return marks


def _lowest_sums(first: np.ndarray, second: np.ndarray, budget: int) -> np.ndarray:
    """Return the least sums of two falling arrays at positions of each sum, up to a budget."""
    if len(first) > len(second):
        first, second = second, first
    sums = np.full(min(budget, len(first) + len(second) - 2) + 1, np.inf)
    for i in range(min(len(first), len(sums))):
        part = second[: len(sums) - i]
        np.minimum(
            sums[i : i + len(part)], first[i] + part, out=sums[i : i + len(part)]
        )
    return np.minimum.accumulate(sums)


def kept_nodes(
    subtree_size: np.ndarray, marks: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the nodes that a pruning keeps, in order, and the sizes of their subtrees after it."""
    cut = np.flatnonzero(marks & (subtree_size > 1))
    n_above = np.zeros(len(marks) + 1, dtype=np.int64)  # cut nodes above each node
    np.add.at(n_above, cut + 1, 1)
    np.add.at(n_above, cut + subtree_size[cut], -1)
    is_kept = np.cumsum(n_above[:-1]) == 0
    return np.flatnonzero(is_kept).astype(np.int32), sizes_of_kept(
        is_kept, subtree_size
    )


def prune_tree(tree: ObliqueTree, marks: np.ndarray) -> ObliqueTree:
    """Return a tree without a partition in which the marked subtrees are leaves."""
    kept, size = kept_nodes(tree.subtree_size, marks)
    weights, thresholds = tree.weights[kept], tree.thresholds[kept]
    weights[size == 1] = 0.0
    thresholds[size == 1] = 0.0

    def of_kept(array: np.ndarray | None) -> np.ndarray | None:
        return None if array is None else array[kept]

    return ObliqueTree(
        weights,
        thresholds,
        size,
        tree.values[kept],
        spread=tree.spread,
        weighted_n_node_samples=of_kept(tree.weighted_n_node_samples),
        labels=of_kept(tree.given_labels),
        models=None if tree.models is None else tree.models.take(kept),
        output_names=tree.output_names,
        row_counts=of_kept(tree.row_counts),
    )


@kernel
def collapse(rows, nodes, marks):
    """Return a copy of a tree whose marked subtrees are leaves."""
    rows, source = Rows(*rows), Nodes(*nodes)
    n = source.subtree_size.shape[0]
    out = make_nodes(n, rows.X.shape[1], source.counts.shape[1], source.order.copy())
    m = copied = 0
    for k in range(n):
        if k >= copied and marks[k]:
            m = copy_nodes(source, copied, k, out, m)
            m = emit_collapsed(rows, out, m, source.start[k], source.end[k])
            copied = k + source.subtree_size[k]
    return finish(out, copy_nodes(source, copied, n, out, m))


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
    """Make a tree the fittest of its prunings, by `evotree.fitness.penalties.PenalizedAccuracy`."""
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
