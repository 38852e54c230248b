"""Importances of features, from a finished tree alone."""

import numpy as np

from evotree.tree import ObliqueTree

_SHARE_OF_SCORE = 0.25  # by which a class share rises with its log-odds, at most


def importances(tree: ObliqueTree, scale: np.ndarray | None = None) -> np.ndarray:
    """Return the share that each feature has in what a tree does.

    A split has an amount, which is distributed over its terms by their influence, the absolute
    weight times the spread of the feature: how much it lowers the impurity of its rows, times their
    number. The impurity is the Gini index of class shares, and the squared error of means; of both
    that is the squared differences between the two children's values. A term of the linear model of
    a leaf has the amount ``(coefficient * spread)**2`` times the rows of the leaf, the squared
    error that it explains where features are not correlated and spread in the leaf as they do in
    all rows; where leaves are narrow this is more than what it does explain.

    `scale` are the units of several outputs, in which their squared errors are added; 1 by default.
    The shares add up to 1, those of a single leaf without a model are zeros.

    References
    ----------
    Breiman L., Friedman J., Olshen R., Stone C. (1984). Classification and regression trees.
    """
    if tree.output_names is None:
        amounts = _amounts(tree)
    else:
        units = np.ones(len(tree.output_names)) if scale is None else scale
        each = [_amounts(tree.of_output(j)) / unit**2 for j, unit in enumerate(units)]
        amounts = np.sum(each, axis=0)
    total = amounts.sum()
    return amounts / total if total > 0.0 else np.zeros(tree.n_features)


def _amounts(tree: ObliqueTree) -> np.ndarray:
    """Return what is distributed over the features, of shape (n_features,)."""
    spread, samples = tree.known_spread, tree.known_samples
    # How much each split lowers the impurity, times its rows; 0 at leaves.
    amounts, inner = np.zeros(len(tree)), np.flatnonzero(~tree.is_leaf)
    left, right = inner + 1, inner + 1 + tree.subtree_size[inner + 1]
    both = samples[left] + samples[right]
    pairs = samples[left] * samples[right] / np.where(both > 0.0, both, 1.0)
    amounts[inner] = pairs * np.square(tree.values[left] - tree.values[right]).sum(
        axis=1
    )
    influence = np.abs(tree.weights) * spread
    total = influence.sum(axis=1, keepdims=True)
    of_features: np.ndarray = amounts @ (influence / np.where(total > 0.0, total, 1.0))
    if tree.models is not None:
        explained = np.abs(tree.models.coefficients) * spread
        if tree.models.of_classes:
            explained *= _SHARE_OF_SCORE
        # Of a score all nodes have the coefficients.
        of_features += (samples * tree.is_leaf) @ np.square(explained)
    return of_features
