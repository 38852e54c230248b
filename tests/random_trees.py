"""Estimators of random trees over small whole numbers, without a fit."""

import numpy as np

from evotree.leaf_models import LeafModels, ScoreModels
from evotree.tree import ObliqueTree, node_weights
from tests import made_up

CLASSES = np.array(["a", "b", "c"])


def random_tree(random, n_features, depth=3, lines=False, n_scores=0):
    """Return a tree with whole weights, whose thresholds many whole rows lie on.

    Its leaves predict classes by their labels, numbers by bounded lines, or so many classes by
    scores.
    """
    sizes, weights, thresholds = [], [], []

    def grow(level):
        at = len(sizes)
        sizes.append(1)
        weights.append(np.zeros(n_features))
        thresholds.append(0.0)
        if level < depth and (level == 0 or random.random() < 0.8):
            weights[at] = random.integers(-2, 3, n_features).astype(float)
            weights[at][random.integers(n_features)] = 1.0
            thresholds[at] = float(weights[at] @ random.integers(0, 5, n_features))
            grow(level + 1)
            grow(level + 1)
            sizes[at] = len(sizes) - at

    grow(0)
    n = len(sizes)
    labels = random.integers(0, len(CLASSES), n)
    values = random.normal(size=(n, 1)) if lines else np.eye(len(CLASSES))[labels]
    arrays = np.array(weights), np.array(thresholds), np.array(sizes, dtype=np.int32)
    tree = ObliqueTree(*arrays, values, spread=random.uniform(0.5, 2.0, n_features))
    if lines:
        coefficients = (
            random.integers(-2, 3, (n, n_features)) * tree.is_leaf[:, None] * 1.0
        )
        low = random.integers(-4, 4, n) * 1.0
        high = low + random.integers(1, 9, n)
        tree = tree.with_models(
            LeafModels(random.normal(size=n), coefficients, low, high)
        )
    if n_scores:
        shares = random.dirichlet(np.ones(n_scores), n)
        is_scored = np.arange(n_scores) >= (n_scores == 2)  # of two the first has 0
        coefficients = random.normal(size=(n_scores, n_features)) * is_scored[:, None]
        points = random.normal(size=(n, n_scores)) * is_scored
        models = ScoreModels.of(points, coefficients)
        tree = tree.replaced(values=shares, models=models)
    return tree.validate()


def estimator_of(tree, X, columns=None):
    """Return an estimator as if it had been fitted to encoded rows."""
    tree.weighted_n_node_samples = node_weights(
        tree.apply(X), np.ones(len(X)), tree.subtree_size
    )
    n_outputs = tree.values.shape[1]
    classes = CLASSES[:n_outputs] if n_outputs > 1 else None
    return made_up.estimator(made_up.fitted(tree, columns, classes, X))


def grid(*axes):
    """Return all points of a grid."""
    return np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(axes))
