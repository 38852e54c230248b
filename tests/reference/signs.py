"""Rows that break monotonic constraints of a tree, looked for by a linear program a pair of leaves.

A tree rises in a feature unless there are two leaves A and B, A predicting more, and a row of A
that falls into B when the feature is raised. The rows of a leaf are a polyhedron: one linear
program finds the row that is farthest inside of both, and the tree itself says where it goes. Where
leaves have bounded lines, that row is one that may show a fault, but need not.
"""

import numpy as np
from scipy.optimize import linprog


def violations(tree, signs):
    """Return (leaf, raised leaf, feature) where a row of one leaf falls, or rises, into the other.

    ``signs (n_features,)`` are 1 for features that the prediction, the last column of the values,
    may not fall with, -1 for those that it may not rise with, 0 for others.
    """
    return [
        (leaf, raised_leaf, feature)
        for leaf, raised_leaf, feature in suspects(tree, signs)
        if is_broken(tree, leaf, raised_leaf, feature, signs[feature])
    ]


def suspects(tree, signs):
    """Yield pairs of leaves on the two sides of a split that may be in the wrong order."""
    # Raising a feature takes rows from one side to the other only, by the sign of its weight.
    leaves = np.flatnonzero(tree.is_leaf)
    values = tree.values[:, -1]
    for k in np.flatnonzero(~tree.is_leaf).tolist():
        is_below = (leaves > k) & (leaves < k + tree.subtree_size[k])
        is_left = leaves < tree.right(k)
        sides = leaves[is_below & is_left], leaves[is_below & ~is_left]
        for j in np.flatnonzero(tree.weights[k] * signs).tolist():
            before, after = sides if tree.weights[k, j] > 0.0 else sides[::-1]
            change = values[after] - values[before][:, np.newaxis]
            may_break = (change * signs[j] < 0.0) | (tree.models is not None)
            for a, b in np.argwhere(may_break).tolist():
                yield int(before[a]), int(after[b]), j


def is_broken(tree, leaf, raised_leaf, feature, sign):
    """Return whether a row of a leaf, raised into another one, shows that the order is wrong."""
    A, b = [np.append(np.zeros(tree.n_features), -1.0)], [0.0]  # the step is above 0
    for here, is_raised in ((leaf, 0.0), (raised_leaf, 1.0)):
        k = 0
        while not tree.is_leaf[k]:
            side = 1.0 if here < tree.right(k) else -1.0
            normal = tree.weights[k]
            A.append(side * np.append(normal, is_raised * normal[feature]))
            b.append(side * tree.thresholds[k])
            k = tree.left(k) if here < tree.right(k) else tree.right(k)
    spread = np.where(tree.known_spread > 0.0, tree.known_spread, 1.0)
    units = np.append(spread, spread[feature])
    scaled = np.array(A) * units
    room = np.linalg.norm(scaled, axis=1)
    found = linprog(
        np.append(np.zeros(units.size), -1.0),
        np.column_stack([scaled, room]),
        b,
        bounds=[(None, None)] * units.size + [(None, 1.0)],
    )
    if found.x is None:
        return False
    *row, step = found.x[:-1] * units
    rows = np.array([row, row])
    rows[1, feature] += step
    fall = sign * np.diff(tree.predict_value(rows)[:, -1])[0]
    return tree.apply(rows).tolist() == [leaf, raised_leaf] and fall < 0.0
