"""From a table to a model: what ``evotree fit`` and ``evotree demo`` do between files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from pandas.api.types import is_numeric_dtype

from evotree.cli.model_file import Model
from evotree.estimators import EvoTreeClassifier
from evotree.tables.columns import text_of

__all__ = ["class_weights", "train"]

Rows = tuple[pd.DataFrame, np.ndarray]


def train(
    X: pd.DataFrame,
    y: np.ndarray,
    target: str,
    parameters: Mapping[str, Any],
    test: Rows | None,
) -> tuple[Model, EvoTreeClassifier]:
    """Evolve a tree, and make a model of it that knows what became of it.

    Parameters
    ----------
    X : DataFrame of shape (n_rows, n_columns)
        The training rows; columns that are neither numbers nor truth values are categories.
    y : ndarray of shape (n_rows,)
        Their classes.
    target : str
        Name of the column that these come from.
    parameters : mapping
        Parameters of `EvoTreeClassifier`.
    test : tuple of DataFrame and ndarray or None
        Rows to test on, and their classes.

    Returns
    -------
    model : Model
        The model.
    classifier : EvoTreeClassifier
        The fitted classifier.

    Raises
    ------
    KeyboardInterrupt
        If it comes before the first tree; a later one ends the evolution.
    """
    is_text = [not is_numeric_dtype(dtype) for dtype in X.dtypes]
    classifier = EvoTreeClassifier(**parameters, categorical_features=is_text)
    try:
        classifier.fit(X, y)
    except KeyboardInterrupt:
        if not hasattr(classifier, "tree_"):
            raise
    training: dict[str, Any] = {
        "rows": len(y),
        "accuracy": float((classifier.predict(X) == y).mean()),
        "base_rate": float((y == _most_frequent(y)).mean()),
        "hyperparameters": _chosen(classifier),
        "generations": classifier.n_generations_,
        "stop_reason": classifier.stop_reason_,
        "seconds": {name: round(seconds, 3) for name, seconds in classifier.seconds_.items()},
    }
    model = Model(
        target,
        classifier.classes_,
        classifier.columns_,
        classifier.tree_,
        training,
        classifier.probabilities_,
    )
    if test is not None:
        training.update(_test_figures(model, _most_frequent(y), *test))
    return model, classifier


def class_weights(given: Sequence[str] | None, y: np.ndarray) -> str | dict[Any, float] | None:
    """Return the weights of classes as the classifier takes them.

    Parameters
    ----------
    given : sequence of str or None
        ``balanced`` alone, or ``CLASS=NUMBER`` for some classes; the others weigh 1.
    y : ndarray of shape (n_rows,)
        The classes.

    Returns
    -------
    str, dict or None
        A `class_weight`.

    Raises
    ------
    ValueError
        If a text is of another form, or names no class.
    """
    if given is None:
        return None
    if list(given) == ["balanced"]:
        return "balanced"
    classes = {text_of(label): label for label in np.unique(y).tolist()}
    weights = {}
    for pair in given:
        label, _, weight = pair.rpartition("=")
        try:
            weights[classes[label]] = float(weight)
        except (KeyError, ValueError):
            raise ValueError(
                f"--class-weight {pair}: allowed are 'balanced', or CLASS=NUMBER for some of the "
                f"classes {', '.join(classes)}"
            ) from None
    return weights


def _most_frequent(y: np.ndarray) -> Any:
    classes, counts = np.unique(y, return_counts=True)
    return classes[counts.argmax()]


def _chosen(classifier: EvoTreeClassifier) -> dict[str, Any]:
    """Return the hyperparameters of a fit, given or chosen, by name."""
    regularization = classifier.regularization_.get_params()
    chosen = {
        "size_penalty": classifier.size_penalty_,
        "term_penalty": classifier.term_penalty_,
        **regularization,
    }
    return {
        name: value if isinstance(value, int | float) else str(value)
        for name, value in chosen.items()
        if value is not None
    }


def _test_figures(
    model: Model, most_frequent: Any, X: pd.DataFrame, y: np.ndarray
) -> dict[str, Any]:
    """Return how well a model predicts rows that it was not made of."""
    right = model.predict(X) == y
    recall = [
        float(right[y == label].mean()) if (y == label).any() else None for label in model.classes
    ]
    return {
        "test_rows": len(y),
        "test_accuracy": float(right.mean()),
        "base_rate": float((y == most_frequent).mean()),
        "balanced_accuracy": float(np.mean([one for one in recall if one is not None])),
        "recall": recall,
    }
