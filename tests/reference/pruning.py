"""Naive twins of the rules of pruning: recursion over small trees, and one tree after the other."""

import numpy as np

from evotree.operators.pruning import loss_table, losses_of_rows


def children_of(size, k):
    """Return the children of an internal node."""
    return k + 1, k + 1 + size[k + 1]


def random_sizes(rng, n_internal):
    """Return the subtree sizes of a random tree of so many internal nodes."""
    if n_internal == 0:
        return [1]
    n_left = int(rng.integers(0, n_internal))
    left, right = random_sizes(rng, n_left), random_sizes(rng, n_internal - 1 - n_left)
    return [1 + len(left) + len(right), *left, *right]


def prunings(size, k=0):
    """Yield the leaves of every pruning of the subtree at k."""
    yield [k]
    if size[k] > 1:
        left, right = children_of(size, k)
        for a in list(prunings(size, left)):
            for b in prunings(size, right):
                yield a + b


def leaves_after(size, marks, k=0):
    """Return the leaves of the tree that marks leave."""
    if marks[k] or size[k] == 1:
        return [k]
    left, right = children_of(size, k)
    return leaves_after(size, marks, left) + leaves_after(size, marks, right)


def splits_of(size, leaves, k=0):
    """Return the nodes at or below k that are splits in the pruning with these leaves."""
    if k in leaves:
        return []
    left, right = children_of(size, k)
    return [k, *splits_of(size, leaves, left), *splits_of(size, leaves, right)]


def smallest_cheapest(risk, size, alpha, price=None):
    """Return the leaves of the pruning of least risk plus alpha for each leaf, by exhaustion.

    With prices, alpha is for each unit of them that splits cost.
    """
    every = list(prunings(size))
    price = np.ones(len(size)) if price is None else price
    units = [1.0 + sum(price[k] for k in splits_of(size, leaves)) for leaves in every]
    costs = [
        sum(risk[k] for k in leaves) + alpha * unit
        for leaves, unit in zip(every, units, strict=True)
    ]
    best = [
        leaves
        for leaves, cost in zip(every, costs, strict=True)
        if cost <= min(costs) + 1e-9
    ]
    return min(best, key=len)


def reach(tree, X):
    """Return for every row the nodes on its way, from the root on."""
    first, end = np.arange(len(tree)), np.arange(len(tree)) + tree.subtree_size
    return [np.flatnonzero((first <= leaf) & (leaf < end)) for leaf in tree.apply(X)]


def row_losses(tree, marks, held_out):
    """Prune, predict and compare: the loss of every row."""
    losses = []
    for way, y in zip(reach(tree, held_out.X), held_out.y, strict=True):
        leaf = next((k for k in way if marks[k]), way[-1])
        if held_out.n_classes > 0:
            losses.append(float(np.argmax(tree.values[leaf]) != y))
        else:
            losses.append(float(tree.values[leaf, 0] - y) ** 2)
    return np.array(losses)


def k_se_choice(losses, weight, k_se):
    """Choose the last of the trees, whose rows' losses are given, by the k-SE rule."""
    means = [np.average(loss, weights=weight) for loss in losses]
    best = max(i for i, mean in enumerate(means) if mean <= min(means) + 1e-12)
    variance = np.average((losses[best] - means[best]) ** 2, weights=weight)
    limit = means[best] + k_se * np.sqrt(variance / weight.sum())
    return max(i for i, mean in enumerate(means) if mean <= limit + 1e-12)


def node_losses(tree, held_out):
    """Return what each node would lose as a leaf on the rows that reach it."""
    table, leaves = loss_table(tree, held_out), tree.apply(held_out.X)
    losses = np.zeros(len(tree))
    for k, size in enumerate(tree.subtree_size):
        inside = (leaves >= k) & (leaves < k + size)
        lost = losses_of_rows(table, np.full(len(leaves), k), held_out)
        losses[k] = (held_out.sample_weight * lost)[inside].sum()
    return losses
