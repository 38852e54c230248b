"""Naive twins of leaves in order: pairs of leaves, all labels, all unions of level sets."""

from itertools import product

import numpy as np

from tests.reference.pruning import children_of, prunings, splits_of


def leaves_below(size, k):
    """Return the leaves of the subtree at k."""
    return [i for i in range(k, k + size[k]) if size[i] == 1]


def order_of(weights, signs):
    """Return the pulls of one split: 1 if the right has to be higher, -1 if the left; or both."""
    return {int(np.sign(w) * s) for w, s in zip(weights, signs, strict=True)} - {0}


def ordered_pairs(size, pulls, below=leaves_below, nodes=None):
    """Return the pairs (low, high) of leaves that splits put in order."""
    pairs = set()
    for k in range(len(size)) if nodes is None else nodes:
        if size[k] > 1:
            left, right = (below(size, child) for child in children_of(size, k))
            pairs |= {pair for pair in product(left, right) if 1 in pulls[k]}
            pairs |= {pair for pair in product(right, left) if -1 in pulls[k]}
    return pairs


def least_cost(size, pulls, risk, node_price, split_price):
    """Return the least cost of any pruning with any labels in order."""
    best = np.inf
    for leaves in prunings(size):
        splits = splits_of(size, leaves)

        def below(size, k, leaves=leaves):
            return [leaf for leaf in leaves if k <= leaf < k + size[k]]

        pairs = ordered_pairs(size, pulls, below, splits)
        price = node_price * (len(leaves) + len(splits)) + sum(
            split_price[k] for k in splits
        )
        for labels in product((0, 1), repeat=len(leaves)):
            label = dict(zip(leaves, labels, strict=True))
            if all(label[low] <= label[high] for low, high in pairs):
                best = min(
                    best, price + sum(risk[leaf, label[leaf]] for leaf in leaves)
                )
    return best


def isotonic(size, pulls, means, weight):
    """Return the isotonic regression of the leaves by the max-min formula over upper sets."""
    leaves = leaves_below(size, 0)
    pairs = ordered_pairs(size, pulls)
    subsets = [
        set(np.array(leaves)[np.array(take, bool)]) for take in _choices(len(leaves))
    ]
    upper = [
        one for one in subsets if all(high in one for low, high in pairs if low in one)
    ]
    lower = [set(leaves) - one for one in upper]

    def mean(part):
        part = sorted(part)
        return np.average(means[part], weights=weight[part])

    return {
        i: max(min(mean(u & low) for low in lower if i in low) for u in upper if i in u)
        for i in leaves
    }


def _choices(n):
    return product((0, 1), repeat=n)
