"""Soft probabilities of one row by recursion, as their definition reads."""

import math

from evotree.tree import LEAD, ObliqueTree, SoftSides
from tests.reference.naive import leaf_of


def logistic(z):
    return 1.0 / (1.0 + math.exp(-z)) if z > -700.0 else 0.0


def mix(tree: ObliqueTree, sides: SoftSides, x, k=0):
    """Return the probabilities of the classes below a node."""
    if tree.is_leaf[k]:
        return sides.shares[k].tolist()
    distance = math.fsum(w * value for w, value in zip(tree.weights[k], x, strict=True))
    distance -= tree.thresholds[k]
    right = logistic(sides.slopes[k] * distance + sides.intercepts[k])
    sides_of_k = mix(tree, sides, x, tree.left(k)), mix(tree, sides, x, tree.right(k))
    return [(1.0 - right) * a + right * b for a, b in zip(*sides_of_k, strict=True)]


def predict(tree: ObliqueTree, sides: SoftSides, x):
    """Return the probabilities of the classes, that of the tree's class raised to the top."""
    label = int(tree.values[leaf_of(x, tree)].argmax())
    found = mix(tree, sides, x)
    others = [p for c, p in enumerate(found) if c != label]
    found[label] = max(found[label], max(others, default=-1.0) + LEAD)
    return [p / sum(found) for p in found]
