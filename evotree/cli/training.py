"""From rows to a model: what ``evotree fit`` does between files."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from pandas.api.types import is_numeric_dtype
from sklearn.linear_model import RidgeCV
from sklearn.metrics import r2_score, root_mean_squared_error
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from evotree.estimators import EvoTreeClassifier, EvoTreeRegressor
from evotree.model_file import Model
from evotree.tables.columns import encode, numbers_of, text_of


def train(
    X: Any, y: Any, target: str, given: dict[str, Any], is_regression: bool, test: Any
) -> tuple[Model, Any]:
    """Evolve a tree, and make a model of it that knows what became of it."""
    estimator = evolved(
        EvoTreeRegressor if is_regression else EvoTreeClassifier, X, y, given
    )
    model = Model.of(estimator, target)
    of_run = course(estimator)
    if is_regression:
        r2, rmse = errors(y, model.predict(X))
        training = {"rows": len(y), "r2": r2, "rmse": rmse, **of_run}
        if test is not None:
            r2, rmse = errors(test[1], model.predict(test[0]))
            training |= {"test_rows": len(test[1]), "test_r2": r2, "test_rmse": rmse}
            ridge = make_pipeline(StandardScaler(), RidgeCV(np.logspace(-3.0, 3.0, 13)))
            ridge.fit(encode(model.columns, X), y)
            predicted = ridge.predict(encode(model.columns, test[0]))
            training["others"] = {
                "the mean": list(errors(test[1], np.full(len(test[1]), np.mean(y)))),
                "ridge regression": list(errors(test[1], predicted)),
            }
        return replace(model, training=training), estimator
    counts = confusion_counts(model, X, y)
    of_class = counts.sum(axis=1)
    n_rows = int(counts.sum())
    training = {"rows": n_rows, "accuracy": float(np.trace(counts) / n_rows)}
    training |= {"base_rate": float(of_class.max() / n_rows), **of_run}
    if test is not None:
        counts = confusion_counts(model, *test)
        most_frequent = int(of_class.argmax())
        of_class = counts.sum(axis=1)
        right = np.diag(counts)
        n_rows = int(counts.sum())
        recall = [
            float(k / n) if n else None
            for k, n in zip(right, of_class[:-1], strict=True)
        ]
        training |= {
            "test_rows": n_rows,
            "test_accuracy": float(right.sum() / n_rows),
            "base_rate": float(of_class[most_frequent] / n_rows),
            "balanced_accuracy": float(
                np.mean([share for share in recall if share is not None])
            ),
            "recall": recall,
            "confusion": counts[:-1].tolist(),
        }
    return replace(model, training=training), estimator


def errors(y: np.ndarray, predicted: np.ndarray) -> tuple[float, float]:
    """Return R² and RMSE of predictions of at least two rows."""
    return float(r2_score(y, predicted)), float(root_mean_squared_error(y, predicted))


def evolved(kind: Any, X: Any, y: Any, parameters: Mapping[str, Any]) -> Any:
    """Fit an estimator; an interrupt ends the evolution."""
    estimator = kind(
        categorical_features=[not is_numeric_dtype(dtype) for dtype in X.dtypes]
    ).set_params(**parameters)
    try:
        estimator.fit(X, y)
    except KeyboardInterrupt:
        if not hasattr(estimator, "tree_"):
            raise
    return estimator


def course(estimator: Any) -> dict[str, Any]:
    """Return what became of the evolution of a fitted estimator, hyperparameters as chosen."""
    chosen = {
        "size_penalty": estimator.size_penalty_,
        "term_penalty": estimator.term_penalty_,
    }
    chosen |= estimator.regularization_.get_params()
    return {
        "hyperparameters": {
            name: value if isinstance(value, int | float) else str(value)
            for name, value in chosen.items()
            if value is not None
        },
        "generations": estimator.n_generations_,
        "stop_reason": estimator.stop_reason_,
        "seconds": {
            name: round(seconds, 3) for name, seconds in estimator.seconds_.items()
        },
    }


def class_weights(
    given: Sequence[str] | None, y: np.ndarray
) -> str | dict[Any, float] | None:
    """Return the weights of classes as the classifier takes them."""
    if given is None or list(given) == ["balanced"]:
        return None if given is None else "balanced"
    classes = {text_of(label): label for label in np.unique(y).tolist()}
    weights = {}
    for pair in given:
        label, _, weight = pair.rpartition("=")
        try:
            weights[classes[label]] = float(weight)
        except (KeyError, ValueError):
            raise ValueError(
                f"--class-weight {pair}: allowed are 'balanced', or CLASS=NUMBER for "
                f"some of the classes {', '.join(classes)}"
            ) from None
    return weights


def cost_matrix(table: pd.DataFrame, y: np.ndarray) -> np.ndarray:
    """Return what errors cost as the classifier takes it."""
    labels = [text_of(label) for label in np.unique(y).tolist()]
    first, *predicted = map(str, table.columns)
    rows = [text_of(label) for label in table.iloc[:, 0].tolist()]
    for where, names in ((f"column {first!r}", rows), ("header", predicted)):
        if sorted(names) != sorted(labels):
            raise ValueError(
                f"--cost-matrix has {', '.join(names)} in its {where}: allowed are "
                f"the classes {', '.join(labels)}, each once"
            )
    costs = table.iloc[:, 1:].set_axis(rows).set_axis(predicted, axis=1)
    numbers = costs.apply(numbers_of).loc[labels, labels].to_numpy()
    if not np.isfinite(numbers).all():
        raise ValueError("--cost-matrix has a cell that is not a number")
    return numbers


def confusion_counts(model: Model, X: pd.DataFrame, y: Any) -> np.ndarray:
    """Count some rows by their classes and those predicted."""
    classes = pd.Index(model.classes)
    y = np.asarray(y)
    counts = np.zeros((len(classes) + 1, len(classes)), dtype=np.int64)
    if len(y):
        # Of a class that is not known the position is -1.
        np.add.at(counts, (classes.get_indexer(y), model.codes(X)), 1)
    return counts
