"""Shapley values of the columns of a table: what each adds to a prediction, on average."""

from collections.abc import Callable, Sequence
from functools import partial
from math import comb
from typing import Any, NamedTuple

import numpy as np

from evotree.fitted import used_features
from evotree.inspection.comparison import check_model
from evotree.leaf_models import class_probabilities
from evotree.rng import seed_from
from evotree.words import check_whole

MAX_EXACT = 12
"""Of so many columns that a tree uses, at most, all subsets are enumerated."""

_BLOCK = 1 << 16  # rows that are predicted together


class ShapValues(NamedTuple):
    """Interventional Shapley values.

    Attributes
    ----------
    values : ndarray of shape (n_samples, n_columns) or (n_samples, n_columns, n_classes)
        What each column of `X` adds to the target, or to the probability of each class. Those of
        columns that the tree does not use are 0.
    base : float or ndarray of shape (n_classes,)
        The mean prediction of the background. The values of a row add up to its prediction less
        this.
    standard_errors : ndarray, of the shape of `values`
        0 where all subsets of columns were enumerated; else how exact the values are as means of
        sampled orders of the columns, given the background.
    """

    values: np.ndarray
    base: Any
    standard_errors: np.ndarray

    def __repr__(self) -> str:
        shape = zip(self.values.shape, ("rows", "columns", "classes"), strict=False)
        base = ", ".join(f"{value:.4g}" for value in np.atleast_1d(self.base))
        return (
            f"ShapValues of {', '.join(f'{n} {kind}' for n, kind in shape)}: base {base}; "
            f"standard errors up to {self.standard_errors.max(initial=0.0):.2g}"
        )


def shap_values(
    model: Any,
    X: Any,
    background: Any,
    *,
    n_permutations: int = 100,
    random_state: Any = None,
) -> ShapValues:
    """Return what each column adds to the prediction of each row, against a background.

    Interventional Shapley values, for `predict` of a regressor and the probabilities of the tree of
    a classifier: the worth of a set of columns is the mean prediction of the background rows after
    these columns were set to those of the row. Features made of one column go together. They are
    exact if the tree uses at most 12 columns, which takes 2**12 predictions for each row and each
    background row; else orders of the columns are sampled.

    Parameters
    ----------
    model : fitted estimator of one tree
        It stays as it is.
    X : array-like of shape (n_samples, n_columns)
        Rows to explain.
    background : array-like of shape (n_background, n_columns)
        Rows to compare with, such as a hundred training rows.
    n_permutations : int, at least 2, default=100
        Number of sampled orders.
    random_state : int, RandomState, Generator or None, default=None
        Source of the sampled orders.

    Returns
    -------
    ShapValues
        In the units of the target, or of probabilities.
    """
    check_model("model", model)
    check_whole("n_permutations", n_permutations, 2)
    X, background = (model.encode(rows, bends=True) for rows in (X, background))
    fitted, schema = model.fitted_, model.fitted_.schema
    predict = partial(class_probabilities, fitted.tree, fitted.sides)
    column_of = schema.column_of
    players = np.unique(column_of[used_features([fitted])])
    features = [np.flatnonzero(column_of == player) for player in players]
    base, n = predict(background).mean(axis=0), len(players)
    values = np.zeros((len(X), len(schema), len(base)))
    errors = np.zeros_like(values)
    worths = partial(_worths, predict, background, features)
    if n <= MAX_EXACT:
        masks = (np.arange(1 << n)[:, np.newaxis] >> np.arange(n)) & 1 == 1
        size = masks.sum(axis=1, keepdims=True)
        # What a column adds to a set of so many others counts so much.
        share = np.array([1.0 / (comb(n - 1, s) * n) for s in range(n)] + [0.0])
        factors = np.where(masks, share[size - 1], -share[size])
        for i, x in enumerate(X):
            values[i, players] = factors.T @ worths(x, masks)
    else:
        random = np.random.default_rng(seed_from(random_state))
        orders = [random.permutation(n) for _ in range(n_permutations)]
        places = np.argsort(orders, axis=1)[..., np.newaxis]
        masks = (places < np.arange(n + 1)).swapaxes(1, 2).reshape(-1, n)
        for i, x in enumerate(X):
            means = worths(x, masks).reshape(n_permutations, n + 1, -1)
            added = np.take_along_axis(np.diff(means, axis=1), places, axis=1)
            values[i, players] = added.mean(axis=0)
            errors[i, players] = added.std(axis=0, ddof=1) / np.sqrt(n_permutations)
    if len(base) == 1:
        return ShapValues(values[..., 0], float(base[0]), errors[..., 0])
    return ShapValues(values, base, errors)


def _worths(
    predict: Callable[[np.ndarray], np.ndarray],
    background: np.ndarray,
    features: Sequence[np.ndarray],
    x: np.ndarray,
    masks: np.ndarray,
) -> np.ndarray:
    """Return the mean predictions of background rows, each mask's columns set to those of a row."""
    n_background, n_features = background.shape
    n_together = max(1, _BLOCK // n_background)
    means = []
    for first in range(0, len(masks), n_together):
        block = masks[first : first + n_together]
        rows = np.repeat(background[np.newaxis], len(block), axis=0)
        for player, of_player in enumerate(features):
            rows[np.ix_(block[:, player], np.arange(n_background), of_player)] = x[
                of_player
            ]
        predicted = predict(rows.reshape(-1, n_features))
        means.append(predicted.reshape(len(block), n_background, -1).mean(axis=1))
    return np.concatenate(means)
