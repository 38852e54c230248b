"""Scores of predicted probabilities, for experiments: each is ``score(model, X, y) -> float``.

A class that the model was not fitted to has the probability 0. A model without probabilities has no
score, which is NaN.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.metrics import roc_auc_score

LEAST = 1e-3
"""Smaller probabilities count as this one in the log loss; those of trees are often 0."""
N_BINS = 15
"""Bins of equal width of the calibration error."""


def probabilities(model: Any, X: np.ndarray, classes: np.ndarray) -> np.ndarray | None:
    """Return the probabilities of some classes, (n_samples, n_classes); None if there are none."""
    if not hasattr(model, "predict_proba"):
        return None
    predicted = np.asarray(model.predict_proba(X))
    columns = dict(zip(np.asarray(model.classes_).tolist(), predicted.T, strict=True))
    absent = np.zeros(len(predicted))
    return np.column_stack([columns.get(label, absent) for label in classes.tolist()])


def auc(model: Any, X: np.ndarray, y: np.ndarray) -> float:
    """Return the area under the ROC curve: each class against the others, weighted by its rows."""
    classes, counts = np.unique(y, return_counts=True)
    predicted = probabilities(model, X, classes)
    if predicted is None or len(classes) < 2:
        return float("nan")
    areas = [roc_auc_score(y == c, column) for c, column in zip(classes, predicted.T, strict=True)]
    return float(np.average(areas, weights=counts))


def clipped_log_loss(model: Any, X: np.ndarray, y: np.ndarray) -> float:
    """Return the mean of -log of the probabilities of the rows' classes, at least `LEAST` each."""
    classes, codes = np.unique(y, return_inverse=True)
    predicted = probabilities(model, X, classes)
    if predicted is None:
        return float("nan")
    return float(-np.log(np.maximum(predicted[np.arange(len(y)), codes], LEAST)).mean())


def brier(model: Any, X: np.ndarray, y: np.ndarray) -> float:
    """Return the mean over rows of the summed squared errors of all classes' probabilities."""
    classes = np.union1d(model.classes_, y)
    predicted = probabilities(model, X, classes)
    if predicted is None:
        return float("nan")
    return float(np.square(predicted - (y[:, None] == classes)).sum(axis=1).mean())


def calibration_error(model: Any, X: np.ndarray, y: np.ndarray) -> float:
    """Return the expected calibration error of the most probable class.

    Of the rows of each bin of confidences: the mean confidence less the share of right predictions
    (Guo C., Pleiss G., Sun Y., Weinberger K. Q. (2017). On calibration of modern neural networks).
    """
    classes = np.asarray(model.classes_)
    predicted = probabilities(model, X, classes)
    if predicted is None:
        return float("nan")
    confidence, is_right = predicted.max(axis=1), classes[predicted.argmax(axis=1)] == y
    bins = np.minimum((N_BINS * confidence).astype(np.int64), N_BINS - 1)
    return float(np.abs(np.bincount(bins, confidence - is_right)).sum() / len(y))
