"""Naive twins of the searches by gradient, and nodes to try them on."""

import numpy as np
from hypothesis import strategies as st

from evotree.fitness.node import CLASSIFICATION, Criterion, Node, score_hyperplane


def make_node(
    X, y, weight=None, n_classes=None, criterion=Criterion.ENTROPY, min_rows=1
):
    """Return a node of arrays as they come."""
    X = np.ascontiguousarray(X, dtype=float)
    y = np.asarray(y)
    if n_classes is None:
        n_classes = int(y.max()) + 1 if np.issubdtype(y.dtype, np.integer) else 0
    y = y.astype(np.int32 if n_classes else float)
    weight = np.ones(len(y)) if weight is None else np.asarray(weight, dtype=float)
    return Node.of(X, y, weight, n_classes, int(criterion), min_rows)


def oblique_node(rng, name, n=60, d=3, n_classes=3):
    """Return a node with an oblique boundary and some noise."""
    X = rng.normal(size=(n, d))
    s = X @ rng.normal(size=d) + 0.3 * rng.normal(size=n)
    if name in CLASSIFICATION:
        s = np.digitize(s, np.quantile(s, np.arange(1, n_classes) / n_classes))
    return make_node(X, s, criterion=Criterion[name.upper()])


@st.composite
def nodes(draw, name, max_rows=40):
    """Draw the rows of a node, some on a grid, with a constant feature at times."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    n, d = draw(st.integers(2, max_rows)), draw(st.integers(1, 4))
    X = np.round(rng.normal(size=(n, d)), draw(st.sampled_from((0, 1, 9))))
    if draw(st.booleans()):
        X[:, 0] = 3.0
    n_classes = draw(st.integers(2, 4)) if name in CLASSIFICATION else 0
    y = rng.normal(size=n)
    if n_classes > 0:
        y = (rng.integers(0, n_classes, n) * (X[:, -1] > 0)).astype(np.int32)
    # Sums of such weights are exact: classes of equal weight tie, whatever the order of their rows.
    weight = rng.choice([1.0, 2.0, 0.25], n) if draw(st.booleans()) else np.ones(n)
    min_rows = draw(st.sampled_from((1, 1, 5)))
    return Node.of(X, y, weight, n_classes, int(Criterion[name.upper()]), min_rows)


@st.composite
def hostile_nodes(draw, task="classification", max_rows=40):
    """Draw a node with ties, one point in two classes, constant columns and odd units."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    n, d = draw(st.integers(2, max_rows)), draw(st.integers(1, 8))
    X = rng.integers(0, draw(st.sampled_from((2, 4, 1000))), (n, d)).astype(float)
    X *= (
        10.0 ** rng.integers(-8, 9, d)
        if draw(st.booleans())
        else 10.0 ** draw(st.integers(-8, 8))
    )
    if draw(st.booleans()):
        X[:, 0] = draw(st.sampled_from((0.0, 7.0, 1e8)))
    if draw(st.booleans()):
        X[n // 2 :] = X[: n - n // 2]
    if draw(st.booleans()):
        X += 1e3 * np.abs(X).max()
    weight = None
    if draw(st.booleans()):
        weight = 10.0 ** rng.integers(-4, 5, n)
    if task == "regression":
        y = rng.choice([0.0, 1.0, 1e-3, -5.0, 1e6], n)
        criterion = Criterion.SQUARED_ERROR
        n_classes = 0
    else:
        n_classes = draw(st.integers(2, 5))
        y = rng.integers(0, n_classes, n)
        criterion = draw(
            st.sampled_from([c for c in Criterion if c < Criterion.SQUARED_ERROR])
        )
    y[0], y[-1] = 0, 1
    return make_node(
        X, y, weight, n_classes, criterion, draw(st.sampled_from((1, 1, 2, 5)))
    )


def check_split(node, split):
    """Assert what holds of every split of a node."""
    assert split.weights.shape == (node.X.shape[1],)
    assert np.isfinite(split.weights).all() and split.weights.any()
    assert np.isfinite(split.threshold)
    score = score_hyperplane(node, split.weights, split.threshold)
    assert np.isfinite(score)
    # A sweep along a feature loses digits of what is small against its terms.
    assert abs(split.score - score) <= 1e-6 * (
        1.0 if node.n_classes else 1.0 + (node.y**2).max()
    )


def separable(seed, n=60, d=4, n_features_off=0):
    """Return rows of two classes with a gap along an oblique direction, and the classes."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    w = rng.standard_normal(d)
    w /= np.linalg.norm(w)
    y = (X @ w > 0.0).astype(int)
    X += np.outer(np.where(y == 1, 0.5, -0.5), w)
    if n_features_off:
        X = np.column_stack([X, rng.standard_normal((n, n_features_off))])
    return X, y


def xlogx(x):
    """Return ``x log2 x`` with ``0 log 0 = 0``."""
    return np.where(x > 0.0, x * np.log2(np.where(x > 0.0, x, 1.0)), 0.0)


def weighted_entropy(theta, rows, codes, shares):
    """Return the weighted entropy of the soft split by its definition, row by row."""
    n_classes = int(codes.max()) + 1
    left, right = np.zeros(n_classes), np.zeros(n_classes)
    for x, k, w in zip(rows, codes, shares, strict=True):
        sigma = 0.5 * (1.0 + np.tanh(0.5 * float(x @ theta)))
        right[k] += w * sigma
        left[k] += w * (1.0 - sigma)
    sides = xlogx(left.sum()) + xlogx(right.sum())
    return float(sides - xlogx(left).sum() - xlogx(right).sum())
