"""Naive twins of the splitters that move one coefficient at a time: every midpoint, every feature.

Scores are those of `tests.reference.criteria`, by definition.
"""

import numpy as np

from tests.reference.criteria import score


def midpoints(places):
    """Return the middles between neighbours among the distinct numbers."""
    places = sorted(set(places))
    return [
        low + (high - low) / 2
        for low, high in zip(places[:-1], places[1:], strict=True)
    ]


def allowed_score(node, name, goes_left):
    """Return the score of a split, infinity where a side has too few rows."""
    if min(goes_left.sum(), (~goes_left).sum()) < node.min_rows:
        return np.inf
    return score(node, name, goes_left)


def axis_search(node, name):
    """Return the best score, feature and threshold over all features and midpoints."""
    best = (np.inf, -1, 0.0)
    for feature in range(node.X.shape[1]):
        for threshold in midpoints(node.X[:, feature]):
            found = allowed_score(node, name, node.X[:, feature] <= threshold)
            if found < best[0] - 1e-12:
                best = (found, feature, threshold)
    return best


def perturb_coefficient(node, name, a, m):
    """Return the best score over all values of coefficient m, the last being the intercept.

    ``V_j = a . (x_j, 1)``; the value at which row j changes sides is ``(a_m x_jm - V_j) / x_jm``
    (Murthy, Kasif and Salzberg 1994, section 3.1).
    """
    X = np.column_stack([node.X, np.ones(len(node.X))])
    V = X @ a
    U = [(a[m] * X[j, m] - V[j]) / X[j, m] for j in range(len(X)) if X[j, m] != 0]
    best = np.inf
    for value in midpoints(U):
        changed = a.copy()
        changed[m] = value
        best = min(best, allowed_score(node, name, X @ changed <= 0))
    return best


def cart_lc_cycle(node, name, b, c):
    """Return the coefficients and threshold after one cycle over the columns, which are standard.

    ``v - delta (x_m + gamma) <= c`` with the best of all delta and of three gamma, column by column
    (Murthy, Kasif and Salzberg 1994, section 2.3), then the best c.
    """
    b = b.copy()
    current = allowed_score(node, name, node.X @ b <= c)
    for m in range(len(b)):
        v, best = node.X @ b, (np.inf, 0.0, 0.0)
        for gamma in (-0.25, 0.0, 0.25):
            places = (v - c) / (node.X[:, m] + gamma)
            for delta in midpoints(places):
                found = allowed_score(
                    node, name, v - delta * (node.X[:, m] + gamma) <= c
                )
                if found < best[0] - 1e-12:
                    best = (found, delta, gamma)
        if best[0] <= current + 1e-12:
            current = best[0]
            b[m] -= best[1]
            c += best[1] * best[2]
    v, best = node.X @ b, (np.inf, c)
    for threshold in midpoints(v):
        found = allowed_score(node, name, v <= threshold)
        if found < best[0]:
            best = (found, threshold)
    return b, best[1]
