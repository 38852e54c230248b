"""What the benchmarks run on: data of given shapes, and trees of given sizes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.model_selection import train_test_split

from evotree import ObliqueTree
from evotree.dataset import Dataset
from evotree.engine.config import Variation
from evotree.experiments.datasets import load
from evotree.fitted import summarize
from evotree.tables.columns import encode, fit_columns

Arrays = tuple[np.ndarray, np.ndarray, np.ndarray]

PLAIN = Variation(
    term_mutation_probability=0.0, sparse_dipoles=False, survival="generational"
)
"""The operators of the published algorithm, which look at all features; no duplicates."""

DENSE = {"term_penalty": 0.0, "precision": None}
"""Other parameters of fits by these."""


def balanced_tree(X: np.ndarray, depth: int, rng: np.random.Generator) -> Arrays:
    """Return a tree of random directions, each node of which halves its rows.

    Parameters
    ----------
    X : ndarray of shape (n_rows, n_features)
        Distinct rows, at least 2 ** depth.
    depth : int, at least 0
        Depth of all leaves.
    rng : numpy.random.Generator
        Source of the directions.

    Returns
    -------
    tuple of ndarray
        ``weights, thresholds, subtree_size`` in prefix order.
    """
    n_nodes = 2 ** (depth + 1) - 1
    weights, thresholds = np.zeros((n_nodes, X.shape[1])), np.zeros(n_nodes)
    subtree_size = np.ones(n_nodes, dtype=np.int32)
    pending = [(0, depth, np.arange(X.shape[0]))]
    while pending:
        k, levels, rows = pending.pop()
        subtree_size[k] = 2 ** (levels + 1) - 1
        if levels == 0:
            continue
        direction = rng.normal(size=X.shape[1])
        weights[k] = direction / np.linalg.norm(direction)
        projection = X[rows] @ weights[k]
        half = len(rows) // 2
        near = np.partition(projection, [half - 1, half])
        thresholds[k] = 0.5 * (near[half - 1] + near[half])
        goes_left = projection <= thresholds[k]
        pending.append((k + 2**levels, levels - 1, rows[~goes_left]))
        pending.append((k + 1, levels - 1, rows[goes_left]))
    return weights, thresholds, subtree_size


def give_balanced_tree(classifier: Any, X: np.ndarray, depth: int) -> None:
    """Let a fitted classifier have a balanced tree, and what its rows say of it."""
    rng = np.random.default_rng(0)
    arrays = balanced_tree(X, depth, rng)
    values = rng.dirichlet(np.ones(len(classifier.classes_)), size=len(arrays[0]))
    tree = ObliqueTree(*arrays, values, X.std(axis=0))
    training = summarize(tree, X, np.ones(len(X)))
    classifier.fitted_ = replace(classifier.fitted_, tree=tree, training=training)


def make_rows(
    n_rows: int, n_features: int, n_classes: int, separation: float = 1.0, seed: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """Return rows of overlapping normal clouds, two a class, whose features are correlated.

    Parameters
    ----------
    n_rows, n_features, n_classes : int
        Shape of the data.
    separation : float, at least 0, default=1.0
        Standard deviation of the coordinates of the clouds' centres; that of the clouds is 1.
    seed : int, default=0
        Of all draws.

    Returns
    -------
    X : ndarray of shape (n_rows, n_features)
        Rows.
    y : ndarray of shape (n_rows,)
        Class codes.
    """
    rng = np.random.default_rng(seed)
    centres = separation * rng.normal(size=(2 * n_classes, n_features))
    mixing = rng.normal(size=(n_features, n_features))
    cloud = rng.integers(2 * n_classes, size=n_rows)
    X = (centres[cloud] + rng.normal(size=(n_rows, n_features))) @ mixing
    return X, cloud % n_classes


def real_dataset(name: str, data_home: Path | None) -> Dataset:
    """Return the training part, four fifths by stratified draw, of a data set in a folder."""
    data = load(name, data_home)
    X, _, y, _ = train_test_split(
        data.X, data.y, train_size=0.8, stratify=data.y, random_state=0
    )
    return Dataset.from_arrays(encode(fit_columns(X), X), y)
