"""From a user's table to a model and its page: what commands do between files.

First what to leave out of a table, and whether a tree can be learned from it: a DataFrame as read
from a file, its rows numbered from 0, gives features and classes or numbers to predict, or a
`ValueError` that names the column and what is wrong with it. Then the training, and the report.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from pandas.api.types import is_bool_dtype, is_float_dtype, is_numeric_dtype
from sklearn.linear_model import RidgeCV
from sklearn.metrics import r2_score, root_mean_squared_error
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from evotree.estimators import EvoTreeClassifier, EvoTreeRegressor
from evotree.model_file import Model
from evotree.report import Report, Subject, report
from evotree.tables.columns import encode, numbers_of, quoted, text_of

MANY_TARGETS = (
    20  # with more distinct numbers a column holds numbers to predict, not classes
)
MANY_NUMBERS = 10  # a column of text with more distinct numbers was meant to be numeric
# More distinct values than this, in most rows a new one, are no categories and no classes.
MANY_CATEGORIES = 50
_SHOWN = 1000  # characters of the names of columns


def features_and_target(
    frame: Any, target: str, drop: Sequence[str] = ()
) -> tuple[Any, Any]:
    """Split a table; rows without a target are left out."""
    for option, name in (("target", target), *(("drop", name) for name in drop)):
        if name not in frame.columns:
            names = ", ".join(map(str, frame.columns))
            names = names if len(names) <= _SHOWN else f"{names[:_SHOWN]}..."
            raise ValueError(
                f"--{option} {name!r}: there is no such column; the columns are {names}"
            )
    frame = frame.dropna(subset=[target])
    X = frame.drop(columns=[target, *drop])
    y = frame[target]
    if len(X.columns) == 0:
        raise ValueError(
            f"{target!r} is the only column: there is nothing to predict it from"
        )
    return X, y


def distinct_numbers(y: Any) -> int:
    """Return how many values targets have where these are numbers, else 0."""
    if not is_numeric_dtype(y.dtype) or is_bool_dtype(y.dtype):
        return 0
    return int(y.nunique())


def as_numbers(y: np.ndarray, target: str) -> np.ndarray:
    """Return targets as numbers to predict."""
    numbers = numbers_of(pd.Series(y)).to_numpy(np.float64)
    bad = np.flatnonzero(~np.isfinite(numbers))
    if bad.size:
        raise ValueError(
            f"column {target!r} has {quoted(y[bad[0]])}, which is not a finite "
            "number: regression predicts numbers"
        )
    if pd.unique(numbers).size < 2:
        held = f"one value only, {y[0]}" if len(y) else "no value"
        raise ValueError(f"column {target!r} has {held}: at least two are needed")
    return numbers


def as_classes(y: np.ndarray, target: str) -> np.ndarray:
    """Return targets as classes."""
    if is_float_dtype(y):
        # Of larger floats none is known to be the number that the file has.
        broken = y[(y != np.trunc(y)) | ~(np.abs(y) <= 2.0**53)]
        if broken.size:
            raise ValueError(
                f"column {target!r} has numbers such as {broken[0]}: classes are "
                "words or whole numbers; --task regression predicts numbers"
            )
        # Missing values had made floats of whole numbers.
        y = y.astype(np.int64)
    n_classes = pd.unique(y).size
    if n_classes < 2:
        held = f"one value only, {y[0]}" if n_classes else "no value"
        raise ValueError(
            f"column {target!r} has {held}: at least two classes are needed"
        )
    if n_classes > max(MANY_CATEGORIES, len(y) / 2):
        raise ValueError(
            f"column {target!r} has {n_classes} different values in {len(y)} rows: "
            "these are no classes"
        )
    return y


def check_features(X: pd.DataFrame) -> None:
    """Raise for a column of text that is numbers with some text, or names of the rows."""
    for name, dtype in X.dtypes.items():
        if is_numeric_dtype(dtype):
            continue
        column = X[name].dropna()
        numbers = numbers_of(column)
        if numbers.isna().mean() <= 0.5 and numbers.nunique() > MANY_NUMBERS:
            bad = column[~np.isfinite(numbers)]
            if len(bad):
                raise ValueError(
                    f"column {name!r}: {quoted(bad.iloc[0])} in data row "
                    f"{bad.index[0] + 1} is no finite number, as the column's others "
                    "are; a missing value is an empty cell"
                )
        elif column.nunique() > max(MANY_CATEGORIES, len(column) / 2):
            raise ValueError(
                f"column {name!r} has {column.nunique()} different texts in "
                f"{len(column)} rows: these are no categories; leave it out by --drop "
                f"{name}"
            )


def constant_columns(X: pd.DataFrame) -> list[str]:
    """Return the columns of one value, which no tree can use, or raise if there is no other."""
    constant = [name for name in X.columns if X[name].nunique(dropna=False) <= 1]
    if len(constant) == X.shape[1]:
        raise ValueError("every column but the target has the same value in all rows")
    return constant


def hold_out(
    X: pd.DataFrame, y: np.ndarray, share: float, seed: int, is_classes: bool = True
) -> tuple[pd.DataFrame, np.ndarray, tuple[pd.DataFrame, np.ndarray]]:
    """Draw test rows, each class in its share where every class has rows for both parts."""
    n_test = math.ceil(share * len(y))
    counts = np.unique(y, return_counts=True)[1]
    is_enough = counts.min() >= 2 and min(n_test, len(y) - n_test) >= counts.size
    strata = y if is_classes and is_enough else None
    state = seed % 2**32
    X, X_test, y, y_test = train_test_split(
        X, y, test_size=share, random_state=state, stratify=strata
    )
    if pd.unique(y).size < 2:
        kind = "class" if is_classes else "number"
        raise ValueError(f"a test share of {share:g} leaves one {kind} to train on")
    if not is_classes and n_test < 2:
        raise ValueError(
            f"a test share of {share:g} leaves one row to test on, of {len(y) + 1}"
        )
    return X, y, (X_test, y_test)


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


# Lines of the summary of a model that its report shows.
FACTS = ("tree", "forest", "training", "test", "chosen", "evolution", "seconds")


def report_of_model(model: Model, frame: pd.DataFrame | None) -> Report:
    """Return the page about a model of a file."""
    # Names of the user's may have line breaks in them.
    lines = [line.split(maxsplit=1) for line in model.summary().splitlines()]
    facts = {line[0]: line[1] for line in lines if len(line) == 2 and line[0] in FACTS}
    members = [
        Subject(named, model.target, training=model.training_rows, facts=facts)
        for named in model.named
    ]
    subject = replace(members[0], members=members) if len(members) > 1 else members[0]
    if frame is None:
        return report(subject)
    frame = frame.set_axis(frame.columns.map(str), axis=1)
    y = None
    if model.target in frame:
        truth = frame[model.target]
        known = (truth if model.classes is not None else numbers_of(truth)).notna()
        if known.any():
            frame = frame[known]
            y = truth[known].to_numpy()
    encode(model.columns, frame.iloc[:1])  # says which columns are not there
    return report(subject, frame[[column.name for column in model.columns]], y)
