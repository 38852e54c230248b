"""What the benchmarks run on: rows of given shapes, and training rows of real data sets."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import StratifiedKFold

from evotree.engine.config import Variation
from evotree.experiments.datasets import load
from evotree.tables.columns import encode, fit_columns

PLAIN = Variation(
    term_mutation_probability=0.0, sparse_dipoles=False, survival="generational"
)
"""The operators of the published algorithm, which look at all features; no duplicates."""


def make_rows(
    n_rows: int, n_features: int, n_classes: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return rows of overlapping normal clouds, two a class, whose features are correlated.

    Returns
    -------
    X : ndarray of shape (n_rows, n_features)
        Rows.
    y : ndarray of shape (n_rows,)
        Class codes.
    """
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(2 * n_classes, n_features))
    mixing = rng.normal(size=(n_features, n_features))
    cloud = rng.integers(2 * n_classes, size=n_rows)
    X = (centres[cloud] + rng.normal(size=(n_rows, n_features))) @ mixing
    return X, cloud % n_classes


def training_rows(name: str, data_home: Path | None) -> tuple[Any, Any]:
    """Return the training rows and labels of the first of five stratified folds."""
    if name == "digits":
        X, y = load_digits(return_X_y=True)
    else:
        data = load(name, data_home)
        X, y = encode(fit_columns(data.X), data.X), data.y
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    train, _ = next(folds.split(X, y))
    return X[train], y[train]
