"""A model that stands alone: a tree, its columns and its classes, kept in a file one can read.

In: a fitted tree and the fitted transformer that made numbers of its table. Out: a `Model`, which
predicts from a table as it comes, and its file: JSON, every number written so that it reads back
as the same one.

A file may have been cut off, edited or made by another program. Reading checks every entry and
raises nothing but `ValueError`, naming file and reason.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from evotree import __version__
from evotree.export import export_text, tree_from_dict, tree_to_dict
from evotree.files import PathLike, write_whole
from evotree.tables.columns import CategoricalColumn, Column, NumericColumn, encode
from evotree.tree import ObliqueTree

__all__ = ["Model", "load_model", "save_model"]

FORMAT = "evotree model"
VERSION = 1
MAX_BYTES = 1 << 28


_SHARE = (lambda v: 0.0 <= v <= 1.0, "a number in [0, 1]")
_AMOUNT = (lambda v: 0.0 <= v < math.inf, "a finite number of at least 0")
_COUNT = (lambda v: type(v) is int and v >= 0, "a whole number of at least 0")
_FIGURES: Mapping[str, tuple[Callable[[Any], bool], str]] = {
    "rows": _COUNT,
    "accuracy": _SHARE,
    "test_rows": _COUNT,
    "test_accuracy": _SHARE,
    "size_penalty": _AMOUNT,
    "generations": _COUNT,
    "seconds": _AMOUNT,
}


@dataclass(frozen=True, eq=False)
class Model:
    """A tree with all that it takes to predict from a table.

    Attributes
    ----------
    target : str
        Name of the column that the model predicts.
    classes : ndarray of shape (n_classes,)
        Class labels: all strings, all whole numbers, all truth values or all floats.
    columns : tuple of NumericColumn or CategoricalColumn
        The columns that the model reads; together they make the features of the tree.
    tree : ObliqueTree
        The tree; its values are class shares.
    spreads : tuple of float, optional
        Standard deviation of each feature in the training rows, by which rules are ordered.
    training : mapping
        What is worth knowing of the training: ``rows``, ``accuracy``, ``size_penalty``,
        ``generations``, ``stop_reason``, ``seconds``, perhaps ``test_rows``, ``test_accuracy``.

    Raises
    ------
    ValueError
        If classes, columns, tree and spreads do not fit together.
    """

    target: str
    classes: np.ndarray
    columns: tuple[Column, ...]
    tree: ObliqueTree
    spreads: tuple[float, ...] | None = None
    training: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        n_features = len(self.feature_names)
        if self.tree.n_features != n_features:
            raise ValueError(
                f"the tree has {self.tree.n_features} features, the columns make {n_features}."
            )
        if self.spreads is not None and len(self.spreads) != n_features:
            raise ValueError(f"spreads has {len(self.spreads)} entries for {n_features} features.")
        values = self.tree.values
        if values.shape[1] != len(self.classes):
            raise ValueError(
                f"the tree has {values.shape[1]} values in a node for {len(self.classes)} classes."
            )
        if values.min() < 0.0 or not np.allclose(values.sum(axis=1), 1.0):
            raise ValueError("the values of the tree are no class shares: they must add up to 1.")

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Names of the tree's features: numeric columns, and ``column=category``."""
        return tuple(name for column in self.columns for name in column.feature_names)

    def predict_proba(self, frame: pd.DataFrame) -> np.ndarray:
        """Return the class shares of the leaf that each row reaches.

        Parameters
        ----------
        frame : DataFrame of shape (n_rows, n_columns)
            Has the model's columns; others are ignored. Missing values are filled in, and a
            category unknown to the model is none of the known ones.

        Returns
        -------
        ndarray of shape (n_rows, n_classes)
            Shares, in the order of `classes`.

        Raises
        ------
        ValueError
            If columns are not there, or hold text or infinity where numbers belong.
        """
        return self.tree.predict_value(encode(self.columns, frame))

    def predict(self, frame: pd.DataFrame) -> np.ndarray:
        """Return the class of each row, the most frequent one of the leaf that it reaches.

        Parameters
        ----------
        frame : DataFrame of shape (n_rows, n_columns)
            As for `predict_proba`.

        Returns
        -------
        ndarray of shape (n_rows,)
            Class labels.
        """
        return self.classes[self.predict_proba(frame).argmax(axis=1)]

    def rules(self, decimals: int = 3) -> str:
        """Return the tree as indented rules.

        Parameters
        ----------
        decimals : int, default=3
            As for `evotree.export.export_text`.
        """
        return export_text(
            self.tree, self.feature_names, self.classes.tolist(), decimals, self.spreads
        )


def save_model(path: PathLike, model: Model) -> None:
    """Write a model to a file.

    A crash leaves either the old file or the new one, never half of it.

    Parameters
    ----------
    path : path-like
        The file; replaced if it is there.
    model : Model
        The model.

    Raises
    ------
    OSError
        Naming the path and why it cannot be written.
    """
    content = (_to_json(_describe(model)) + "\n").encode()
    write_whole(path, lambda file: file.write(content))


def _describe(model: Model) -> dict[str, Any]:
    """Return a model as plain data, in the order in which one would read it."""
    data: dict[str, Any] = {
        "format": FORMAT,
        "version": VERSION,
        "evotree": __version__,
        "target": model.target,
        "classes": model.classes.tolist(),
        "training": dict(model.training),
        "columns": [column.describe() for column in model.columns],
        "feature_names": list(model.feature_names),
    }
    if model.spreads is not None:
        data["spreads"] = [float(spread) for spread in model.spreads]
    return {**data, "tree": tree_to_dict(model.tree)}


def _to_json(value: Any, indent: str = "") -> str:
    """Write data as JSON, a list or object without further ones inside on one line."""
    inner = value.values() if isinstance(value, dict) else value
    if not isinstance(value, dict | list) or not any(isinstance(v, dict | list) for v in inner):
        return json.dumps(value, ensure_ascii=False, allow_nan=False)
    deeper = indent + "  "
    if isinstance(value, list):
        items = [deeper + _to_json(item, deeper) for item in value]
        return "[\n" + ",\n".join(items) + f"\n{indent}]"
    items = [
        f"{deeper}{json.dumps(name, ensure_ascii=False)}: {_to_json(item, deeper)}"
        for name, item in value.items()
    ]
    return "{\n" + ",\n".join(items) + f"\n{indent}}}"


def load_model(path: PathLike) -> Model:
    """Read a model from a file.

    Parameters
    ----------
    path : path-like
        A file that `save_model` wrote.

    Returns
    -------
    Model
        Predicts as the one that was saved.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If the file cannot be read, is damaged, of another format or made by a newer version; the
        message names the file and what is wrong.
    """
    path = Path(path)
    if not path.exists():
        raise FileNotFoundError(f"no such file: {path}")
    if not path.is_file():
        raise ValueError(f"{path} is not a file; the path of a model file is needed")
    try:
        if path.stat().st_size > MAX_BYTES:
            raise ValueError(f"larger than {MAX_BYTES >> 20} MiB, too large for a model file")
        text = path.read_text(encoding="utf-8")
        return _model_from(json.loads(text))
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {error.strerror or error}") from error
    except json.JSONDecodeError as error:
        raise ValueError(f"{path} is not JSON, or was cut off or damaged: {error}") from error
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is not a model file: it is not text in UTF-8") from error
    except RecursionError:
        raise ValueError(f"{path} is not a model file: its lists are nested too deeply") from None
    except ValueError as error:
        raise ValueError(f"{path} is not a sound model file: {error}") from error


def _model_from(data: Any) -> Model:
    """Check plain data and make a model of it."""
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        raise ValueError(f'it is JSON of another kind, without "format": "{FORMAT}".')
    number = data.get("version")
    if type(number) is not int or number < 1:
        raise ValueError("its version is not a whole number above 0.")
    if number > VERSION:
        raise ValueError(
            f"it has version {number}, made by evotree {str(data.get('evotree'))[:40]}: this one, "
            f"{__version__}, reads up to version {VERSION}; install a newer one."
        )
    needed = ("target", "classes", "columns", "feature_names", "tree")
    missing = [name for name in needed if name not in data]
    if missing:
        raise ValueError(f"there is no {', no '.join(missing)}.")
    if not isinstance(data["target"], str):
        raise ValueError("target is not a string.")
    columns = data["columns"]
    if not isinstance(columns, list) or not columns:
        raise ValueError("columns is not a list of at least one column.")
    spreads = data.get("spreads")
    model = Model(
        target=data["target"],
        classes=_classes_from(data["classes"]),
        columns=tuple(_column_from(column, at) for at, column in enumerate(columns)),
        tree=tree_from_dict(data["tree"]),
        spreads=None if spreads is None else _spreads_from(spreads),
        training=_training_from(data.get("training", {})),
    )
    names = [column.name for column in model.columns]
    if len(set(names)) < len(names):
        raise ValueError("two columns have the same name.")
    if data["feature_names"] != list(model.feature_names):
        raise ValueError("feature_names are not those that the columns make.")
    return model


def _is_number(value: Any) -> bool:
    """Tell finite numbers from everything else, truth values included."""
    if type(value) is int:
        return abs(value) < 1 << 1000
    return type(value) is float and math.isfinite(value)


def _classes_from(labels: Any) -> np.ndarray:
    if not isinstance(labels, list) or not labels:
        raise ValueError("classes is not a list of at least one label.")
    kinds = {type(label) for label in labels}
    if len(kinds) > 1 or not kinds <= {str, int, bool, float}:
        raise ValueError("classes are not all strings, all numbers or all truth values.")
    if len(set(labels)) < len(labels):
        raise ValueError("classes has a label twice.")
    if kinds == {int} and not all(-(1 << 63) <= label < 1 << 63 for label in labels):
        raise ValueError("classes has a whole number of more than 64 bits.")
    if kinds == {float} and not all(map(math.isfinite, labels)):
        raise ValueError("classes has a number that is not finite.")
    return np.array(labels, dtype=object if kinds == {str} else None)


def _column_from(data: Any, at: int) -> Column:
    name = data.get("name") if isinstance(data, dict) else None
    if not isinstance(name, str):
        raise ValueError(f"columns[{at}] is not an object with a name.")
    if data.get("kind") == "numeric":
        if not _is_number(data.get("mean")):
            raise ValueError(f"the mean of column {name!r} is not a finite number.")
        return NumericColumn(name, float(data["mean"]))
    if data.get("kind") == "categorical":
        fill, categories = data.get("fill"), data.get("categories")
        if not isinstance(fill, str):
            raise ValueError(f"the fill of column {name!r} is not a string.")
        if not isinstance(categories, list) or not all(isinstance(c, str) for c in categories):
            raise ValueError(f"the categories of column {name!r} are not a list of strings.")
        if not categories or len(set(categories)) < len(categories):
            raise ValueError(f"the categories of column {name!r} are none, or repeated.")
        return CategoricalColumn(name, fill, tuple(categories))
    raise ValueError(f'the kind of column {name!r} is neither "numeric" nor "categorical".')


def _spreads_from(spreads: Any) -> tuple[float, ...]:
    if not isinstance(spreads, Sequence) or not all(_is_number(s) and s >= 0.0 for s in spreads):
        raise ValueError("spreads is not a list of finite numbers of at least 0.")
    return tuple(float(spread) for spread in spreads)


def _training_from(training: Any) -> dict[str, Any]:
    if not isinstance(training, dict):
        raise ValueError("training is not an object.")
    for name, (is_allowed, allowed) in _FIGURES.items():
        if name in training and not (_is_number(training[name]) and is_allowed(training[name])):
            raise ValueError(f"{name} in training is not {allowed}.")
    if not isinstance(training.get("stop_reason", ""), str):
        raise ValueError("stop_reason in training is not a string.")
    return training
