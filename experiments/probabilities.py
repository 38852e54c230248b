"""Scores of predicted probabilities, each ``score(model, X, y) -> float``; NaN for other models.

A class that the model was not fitted to has the probability 0.
"""

from typing import Any

import numpy as np
from sklearn.metrics import roc_auc_score

# Smaller probabilities count as this one in the log loss; trees' are often 0.
LEAST = 1e-3


def probabilities(model: Any, X: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """Return the probabilities of some classes, (n_rows, n_classes); NaN if there are none."""
    if not hasattr(model, "predict_proba"):
        return np.full((len(X), len(classes)), np.nan)
    predicted = np.asarray(model.predict_proba(X))
    columns = dict(zip(np.asarray(model.classes_).tolist(), predicted.T, strict=True))
    absent = np.zeros(len(predicted))
    return np.column_stack([columns.get(label, absent) for label in classes.tolist()])


def auc(model: Any, X: np.ndarray, y: np.ndarray) -> float:
    """Return the area under the ROC curve: each class against the others, weighted by its rows."""
    classes, counts = np.unique(y, return_counts=True)
    predicted = probabilities(model, X, classes)
    if len(classes) < 2 or np.isnan(predicted).any():
        return float("nan")
    areas = [
        roc_auc_score(y == c, column)
        for c, column in zip(classes, predicted.T, strict=True)
    ]
    return float(np.average(areas, weights=counts))


def clipped_log_loss(model: Any, X: np.ndarray, y: np.ndarray) -> float:
    """Return the mean of -log of the probabilities of the rows' classes, at least `LEAST` each."""
    classes, codes = np.unique(y, return_inverse=True)
    predicted = probabilities(model, X, classes)[np.arange(len(y)), codes]
    return float(-np.log(np.maximum(predicted, LEAST)).mean())
