"""A model that stands alone: a tree, its columns and any classes, kept in a file one can read.

The file is JSON, every number written so that it reads back as the same one. It may have been cut
off, edited or made by another program: reading checks it and raises nothing but `ValueError`,
naming file and reason.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from sklearn.utils.validation import check_is_fitted

from evotree import __version__
from evotree.export import (
    export_text,
    soft_sides_from_dict,
    soft_sides_to_dict,
    training_rows_from_dict,
    training_rows_to_dict,
    tree_from_dict,
    tree_to_dict,
)
from evotree.export.named import NamedTree, is_forest, named_tree
from evotree.files import PathLike, write_whole
from evotree.inspection.paths import Explanation, explain
from evotree.inspection.training_rows import TrainingRows
from evotree.soft_sides import SoftSides
from evotree.tables.columns import (
    MISSING,
    CategoricalColumn,
    Column,
    NumericColumn,
    encode,
    feature_names,
    text_of,
)
from evotree.tables.readers import reading
from evotree.tree import ObliqueTree, mean_of_trees

if TYPE_CHECKING:
    from evotree.estimators.base import TreeEstimator
    from evotree.estimators.forest import ObliqueForest

__all__ = ["ForestModel", "Model", "errors_text", "load_model", "load_tree_model", "save_model"]

FORMAT = "evotree model"
VERSION = 5
READABLE = (3, 4, VERSION)
"""Versions that are read: the third knew the shares of leaves alone, and up to the fourth the level
of missing cells was written as ``"missing"``, not as null."""
STOP_REASONS = {
    "max_generations": "all generations done",
    "patience": "no better tree for long",
    "time_limit": "time is up",
    "interrupt": "interrupted",
}

_MOST_CONFUSED = 12
"""Of more classes no table is shown."""


@dataclass(frozen=True, eq=False)
class Model:
    """A tree with all that it takes to predict from a table.

    Attributes
    ----------
    target : str
        Name of the column that the model predicts.
    classes : ndarray of shape (n_classes,) or None
        Class labels: all strings, all whole numbers, all truth values or all floats. None where the
        model predicts numbers.
    columns : tuple of NumericColumn or CategoricalColumn
        The columns that the model reads; together they make the features of the tree.
    tree : ObliqueTree
        The tree; its values are class shares, or numbers.
    training : mapping
        What is worth knowing of the training, each entry optional: ``rows`` and ``accuracy``;
        ``test_rows``, ``test_accuracy``, ``base_rate`` (the accuracy of the most frequent class),
        ``balanced_accuracy`` and ``recall`` (of each class, None where no row has it); where
        numbers are predicted ``r2``, ``rmse``, ``test_r2``, ``test_rmse`` and ``others``, R² and
        RMSE of simpler predictions of the test rows by their names;
        ``hyperparameters`` by name; ``generations``, ``stop_reason`` and ``seconds`` by phase.
    sides : SoftSides or None
        What probabilities are made of; None for the shares of leaves.
    training_rows : TrainingRows or None
        What explanations need; None where nothing is known of the training rows.

    Raises
    ------
    ValueError
        If classes, columns and tree do not fit together.
    """

    target: str
    classes: np.ndarray | None
    columns: tuple[Column, ...]
    tree: ObliqueTree
    training: Mapping[str, Any] = field(default_factory=dict)
    sides: SoftSides | None = None
    training_rows: TrainingRows | None = None

    @classmethod
    def of(
        cls, estimator: TreeEstimator, target: str, training: Mapping[str, Any] | None = None
    ) -> Model:
        """Return the model of a fitted estimator."""
        if getattr(estimator, "shares_rows_", False):
            raise ValueError(
                f"model is a {type(estimator).__name__} whose rows with missing values go both "
                "ways: allowed are estimators whose rows go one way."
            )
        known = (getattr(estimator, name, None) for name in ("probabilities_", "training_rows_"))
        classes = _classes_of(estimator)
        return cls(target, classes, estimator.columns_, estimator.tree_, training or {}, *known)

    def __post_init__(self) -> None:
        n_features = len(self.feature_names)
        if self.tree.n_features != n_features:
            raise ValueError(
                f"the tree has {self.tree.n_features} features, the columns make {n_features}."
            )
        if self.tree.models is not None and self.classes is not None:
            raise ValueError("the tree has linear models in its leaves, which predict no classes.")
        values = self.tree.values
        if self.classes is None:
            if values.shape[1] != 1 or self.sides is not None:
                raise ValueError("a model without classes has one value in a node, and no sides.")
            return
        if values.shape[1] != len(self.classes):
            raise ValueError(
                f"the tree has {values.shape[1]} values in a node for {len(self.classes)} classes."
            )
        if values.min() < 0.0 or not np.allclose(values.sum(axis=1), 1.0):
            raise ValueError("the values of the tree are not class shares: they must add up to 1.")
        if self.sides is not None:
            self.sides.validate(self.tree)

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Names of the tree's features, such as ``size``, ``size is missing``, ``sex is f``."""
        return feature_names(self.columns)

    @property
    def labels(self) -> list[str] | None:
        """The classes as they are written; None where numbers are predicted."""
        return None if self.classes is None else [text_of(label) for label in self.classes]

    def predict_proba(self, frame: pd.DataFrame) -> np.ndarray:
        """Return the probabilities of the classes."""
        rows = encode(self.columns, frame)
        if self.sides is None:
            return self.tree.predict_value(rows)
        return self.sides.predict(self.tree, rows)

    def predict(self, frame: pd.DataFrame) -> np.ndarray:
        """Return the class or the number of each row, that of the leaf that it reaches."""
        if self.classes is None:
            return self.tree.predict_value(encode(self.columns, frame))[:, 0]
        return self.classes[self.codes(frame)]

    def codes(self, frame: pd.DataFrame) -> np.ndarray:
        """Return the positions of the predicted classes, of shape (n_rows,); see `predict`."""
        labels: np.ndarray = self.tree.labels[self.tree.apply(encode(self.columns, frame))]
        return labels

    def explain(self, frame: pd.DataFrame) -> Explanation:
        """Explain how rows reach their leaves."""
        if self.training_rows is None:
            raise ValueError("the model knows nothing of its training rows; fit it again")
        rows = encode(self.columns, frame)
        return explain(self.tree, self.training_rows, rows, self.feature_names, self.classes)

    def rules(self, decimals: int | None = None) -> str:
        """Return the tree as indented rules."""
        return export_text(self.named, decimals=decimals)

    @property
    def named(self) -> NamedTree:
        """The tree with the names of its features and classes."""
        return replace(_named(self, self.tree), sides=self.sides)

    def summary(self) -> str:
        """Return what is predicted, the size of the tree and what is known of its training."""
        tree, known = self.tree, self.training
        predicted = "a number" if self.labels is None else ", ".join(self.labels)
        lines = [
            f"target     {self.target}: {predicted}",
            f"columns    {len(self.columns)}, as {tree.n_features} features",
            f"tree       {tree.n_nodes} nodes, {tree.n_leaves} leaves, depth {tree.depth}, "
            f"{tree.n_terms} terms, complexity {tree.complexity}",
        ]
        lines += self._error_lines() if self.labels is None else self._accuracy_lines(self.labels)
        if "hyperparameters" in known:
            chosen = [
                f"{name} {one:.4g}" if isinstance(one, float) else f"{name} {one}"
                for name, one in known["hyperparameters"].items()
            ]
            lines.append(f"chosen     {', '.join(chosen)}")
        if "generations" in known:
            reason = STOP_REASONS.get(known["stop_reason"], known["stop_reason"])
            lines.append(f"evolution  {known['generations']} generations ({reason})")
            phases = [f"{name} {s:.1f}" for name, s in known["seconds"].items() if s >= 0.05]
            lines.append(f"seconds    {', '.join(phases)}")
        return "\n".join(lines)

    def _accuracy_lines(self, labels: list[str]) -> list[str]:
        """Return what is known of predicted classes."""
        known = self.training
        lines = [
            f"{name:10} accuracy {known[f'{prefix}accuracy']:.4f} on {known[f'{prefix}rows']} rows"
            for name, prefix in (("training", ""), ("test", "test_"))
            if f"{prefix}accuracy" in known
        ]
        if "base_rate" in known and lines:
            lines[-1] += f" (always the most frequent class: {known['base_rate']:.4f})"
        if "balanced_accuracy" in known:
            recalls = ", ".join(
                f"{label} {'-' if recall is None else format(recall, '.4f')}"
                for label, recall in zip(labels, known["recall"], strict=True)
            )
            lines.append(f"           balanced accuracy {known['balanced_accuracy']:.4f}")
            lines.append(f"           recall: {recalls}")
        if "confusion" in known and len(labels) <= _MOST_CONFUSED:
            lines += _confusion_lines(labels, known["confusion"])
        return lines

    def _error_lines(self) -> list[str]:
        """Return what is known of predicted numbers."""
        known = self.training
        lines = [
            f"{name:10} {errors_text(known[f'{prefix}r2'], known[f'{prefix}rmse'])} on "
            f"{known[f'{prefix}rows']} rows"
            for name, prefix in (("training", ""), ("test", "test_"))
            if f"{prefix}r2" in known
        ]
        others = known.get("others", {})
        return lines + [f"           {name}: {errors_text(*two)}" for name, two in others.items()]


@dataclass(frozen=True, eq=False)
class ForestModel:
    """Several trees with all that it takes to predict from a table.

    Attributes
    ----------
    target : str
        Name of the column that the model predicts.
    classes : ndarray of shape (n_classes,) or None
        As those of a `Model`.
    columns : tuple of NumericColumn or CategoricalColumn
        The columns that the trees read.
    trees : tuple of ObliqueTree
        At least one; the mean of their values predicts.

    Raises
    ------
    ValueError
        If classes, columns and trees do not fit together.
    """

    target: str
    classes: np.ndarray | None
    columns: tuple[Column, ...]
    trees: tuple[ObliqueTree, ...]

    def __post_init__(self) -> None:
        if not self.trees:
            raise ValueError("the forest has no tree.")
        for tree in self.trees:
            Model(self.target, self.classes, self.columns, tree)

    @classmethod
    def of(cls, forest: ObliqueForest, target: str) -> ForestModel:
        """Return the model of a fitted forest."""
        return cls(target, _classes_of(forest), forest.columns_, tuple(forest.trees_))

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Names of the trees' features."""
        return feature_names(self.columns)

    @property
    def labels(self) -> list[str] | None:
        """The classes as they are written; None where numbers are predicted."""
        return None if self.classes is None else [text_of(label) for label in self.classes]

    def predict_proba(self, frame: pd.DataFrame) -> np.ndarray:
        """Return the probabilities of the classes, (n_rows, n_classes), as `Model` does."""
        return mean_of_trees(self.trees, encode(self.columns, frame))

    def predict(self, frame: pd.DataFrame) -> np.ndarray:
        """Return the class or the number of each row, of shape (n_rows,), as `Model` does."""
        found = self.predict_proba(frame)
        return found[:, 0] if self.classes is None else self.classes[found.argmax(axis=1)]

    def rules(self, decimals: int | None = None) -> str:
        """Return the trees as indented rules, one after the other, each under its number."""
        return "\n".join(
            f"tree {at} of {len(self.trees)}\n{export_text(named, decimals=decimals)}"
            for at, named in enumerate(self.named, 1)
        )

    @property
    def named(self) -> tuple[NamedTree, ...]:
        """The trees with the names of their features and classes."""
        return tuple(_named(self, tree) for tree in self.trees)

    def summary(self) -> str:
        """Return what is predicted, and the size of the forest."""
        sizes = [(tree.n_nodes, tree.n_leaves, tree.n_terms) for tree in self.trees]
        nodes, leaves, terms = map(sum, zip(*sizes, strict=True))
        predicted = "a number" if self.labels is None else ", ".join(self.labels)
        return (
            f"target     {self.target}: {predicted}\n"
            f"columns    {len(self.columns)}, as {len(self.feature_names)} features\n"
            f"forest     {len(self.trees)} trees, {nodes} nodes, {leaves} leaves, {terms} terms"
        )


def _named(model: Model | ForestModel, tree: ObliqueTree) -> NamedTree:
    """Return a tree of a model with the names and columns of the model."""
    classes = None if model.classes is None else model.classes.tolist()
    return replace(named_tree(tree, model.feature_names, classes), columns=model.columns)


def _confusion_lines(labels: list[str], confusion: list[list[int]]) -> list[str]:
    """Return a table of the rows of each class by what they are predicted."""
    cells = [["", *labels]]
    cells += [
        [label, *(f"{n:d}" for n in row)] for label, row in zip(labels, confusion, strict=True)
    ]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = [
        "  ".join([first.ljust(widths[0]), *map(str.rjust, rest, widths[1:])])
        for first, *rest in cells
    ]
    return ["           rows of each class, and what they are predicted:"] + [
        f"             {line}" for line in lines
    ]


def errors_text(r2: float, rmse: float) -> str:
    """Return how well numbers are predicted, in words."""
    return f"R² {r2:.4f}, RMSE {rmse:.4g}"


def save_model(
    path: PathLike,
    model: Model | ForestModel | TreeEstimator | ObliqueForest,
    target: str = "target",
) -> None:
    """Write a model to a file.

    A crash leaves either the old file or the new one, never half of it. `load_model` reads it, and
    so does the command line.

    Parameters
    ----------
    path : path-like
        The file; replaced if it is there.
    model : fitted estimator of this package, Model or ForestModel
        What is kept is what it takes to predict and to explain; the trees of a forest are in one
        file.
    target : str, default="target"
        Name of what an estimator predicts.

    Raises
    ------
    OSError
        Naming the path and why it cannot be written.
    ValueError
        If a tree is larger than `load_model` reads, has several outputs, or rows go both ways at
        its splits.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from evotree import ObliqueTreeClassifier, load_model, save_model
    >>> table = pd.DataFrame({"size": [1.0, 2.0, 3.0, 4.0]})
    >>> fitted = ObliqueTreeClassifier().fit(table, ["s", "s", "l", "l"])
    >>> with TemporaryDirectory() as folder:
    ...     save_model(Path(folder, "model.json"), fitted)
    ...     load_model(Path(folder, "model.json")).predict(table).tolist()
    ['s', 's', 'l', 'l']
    """
    if not isinstance(model, Model | ForestModel):
        check_is_fitted(model)
        if not hasattr(model, "columns_"):
            raise ValueError(
                f"model is a {type(model).__name__}: allowed are fitted estimators of this package."
            )
        model = (ForestModel if is_forest(model) else Model).of(model, target)
    columns = [
        {"name": column.name, "fill": column.fill, "indicator": column.indicator}
        if isinstance(column, NumericColumn)
        else {"name": column.name, "levels": list(column.levels), "other": column.other}
        for column in model.columns
    ]
    data = {
        "format": FORMAT,
        "version": VERSION,
        "evotree": __version__,
        "target": model.target,
        "classes": None if model.classes is None else model.classes.tolist(),
        **({"training": dict(model.training)} if isinstance(model, Model) else {}),
        "columns": columns,
    }
    if isinstance(model, ForestModel):
        data["trees"] = [tree_to_dict(tree) for tree in model.trees]
    else:
        data |= _data_of_tree(model)
    content = (_to_json(data) + "\n").encode()
    write_whole(path, lambda file: file.write(content))


def _data_of_tree(model: Model) -> dict[str, Any]:
    """Return what a file holds of the tree of a model, as plain data."""
    data: dict[str, Any] = {"tree": tree_to_dict(model.tree)}
    if model.sides is not None:
        data["probabilities"] = soft_sides_to_dict(model.sides)
    if model.training_rows is not None:
        data["training_rows"] = training_rows_to_dict(model.training_rows)
    return data


def _to_json(value: Any, indent: str = "") -> str:
    """Write data as JSON, a list or object without further ones inside on one line."""
    inner = value.values() if isinstance(value, dict) else value
    if not isinstance(value, dict | list) or not any(isinstance(v, dict | list) for v in inner):
        return json.dumps(value, ensure_ascii=False, allow_nan=False)
    deeper = indent + "  "
    if isinstance(value, list):
        items, ends = [_to_json(item, deeper) for item in value], "[]"
    else:
        items, ends = [f"{_to_json(k)}: {_to_json(v, deeper)}" for k, v in value.items()], "{}"
    return f"{ends[0]}\n{deeper}" + f",\n{deeper}".join(items) + f"\n{indent}{ends[1]}"


def load_model(path: PathLike) -> Model | ForestModel:
    """Read a model from a file.

    Parameters
    ----------
    path : path-like
        A file that `save_model` wrote.

    Returns
    -------
    Model or ForestModel
        Predicts as the one that was saved.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If the file cannot be read, is damaged, of another format or made by another version; the
        message names the file and what is wrong.
    """
    with reading(path):
        try:
            data = json.loads(Path(path).read_text(encoding="utf-8"))
        except json.JSONDecodeError as error:
            raise ValueError(f"it is not JSON, or was cut off: {error}") from error
        if not isinstance(data, dict) or data.get("format") != FORMAT:
            raise ValueError(f'it is not a model, without "format": "{FORMAT}"')
        if data.get("version") not in READABLE:
            raise ValueError(
                f"version {str(data.get('version'))[:40]} of the format is none of those that "
                f"evotree {__version__} reads, {' and '.join(map(str, READABLE))}; fit the model "
                "again, or use the evotree that made it"
            )
        needed = ("target", "classes", "columns", "trees" if "trees" in data else "tree")
        if missing := [name for name in needed if name not in data]:
            raise ValueError(f"there is no {', no '.join(missing)}")
        if not isinstance(data["target"], str):
            raise ValueError("target is not a string")
        columns = _columns_from(data["columns"], MISSING if data["version"] < 5 else None)
        head = data["target"], _classes_from(data["classes"]), columns
        if "trees" not in data:
            return _model_from(head, data)
        if not isinstance(data["trees"], list):
            raise ValueError("trees is not a list of trees")
        return ForestModel(*head, tuple(map(tree_from_dict, data["trees"])))


def load_tree_model(path: PathLike) -> Model:
    """Read a model of one tree from a file."""
    model = load_model(path)
    if isinstance(model, ForestModel):
        raise ValueError(f"{path} holds a forest of {len(model.trees)} trees: allowed is one tree")
    return model


def _model_from(
    head: tuple[str, np.ndarray | None, tuple[Column, ...]], data: Mapping[str, Any]
) -> Model:
    """Return the model of one tree, of what names and encodes its columns and of its data."""
    training = data.get("training", {})
    if not isinstance(training, dict):
        raise ValueError("training is not an object")
    tree, sides = tree_from_dict(data["tree"]), data.get("probabilities")
    rows = data.get("training_rows")
    target, classes, columns = head
    model = Model(
        target,
        classes,
        columns,
        tree=tree,
        training=training,
        sides=None if sides is None else soft_sides_from_dict(sides, tree),
        training_rows=None if rows is None else training_rows_from_dict(rows, tree),
    )
    # What is known of the training is only shown: that it can be is all that is asked of it.
    try:
        model.summary()
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ValueError(f"training holds what it should not: {error}") from error
    return model


def _classes_of(estimator: Any) -> np.ndarray | None:
    """Return the classes of a fitted estimator as a model holds them."""
    classes = getattr(estimator, "classes_", None)
    return None if classes is None else _classes_from(classes.tolist())


def _classes_from(labels: Any) -> np.ndarray | None:
    if labels is None:
        return None
    if not isinstance(labels, list) or not labels:
        raise ValueError("classes is not a list of at least one label")
    kinds = {type(label) for label in labels}
    if len(kinds) > 1 or not kinds <= {str, int, bool, float}:
        raise ValueError("classes are not all strings, all numbers or all truth values")
    if len(set(labels)) < len(labels):
        raise ValueError("classes has a label twice")
    classes = np.array(labels, dtype=object if kinds == {str} else None)
    if classes.dtype.kind not in "Ob" and not np.isfinite(classes.astype(np.float64)).all():
        raise ValueError("classes has a number that is not finite")
    if kinds == {int} and classes.dtype != np.int64:
        raise ValueError("classes has a whole number of more than 64 bits")
    return classes


def _columns_from(columns: Any, missing: str | None) -> tuple[Column, ...]:
    """Return columns of plain data, where `missing` stands for the level of missing cells."""
    if not isinstance(columns, list) or not columns:
        raise ValueError("columns is not a list of at least one column")
    made: list[Column] = []
    for at, column in enumerate(columns):
        name = column.get("name") if isinstance(column, dict) else None
        if not isinstance(name, str):
            raise ValueError(f"columns[{at}] is not an object with a name")
        fill, indicator, levels, other = map(column.get, ("fill", "indicator", "levels", "other"))
        if type(fill) in (int, float) and math.isfinite(fill) and isinstance(indicator, bool):
            made.append(NumericColumn(name, float(fill), indicator))
        elif (
            isinstance(levels, list)
            and all(isinstance(level, str | None) for level in [*levels, other])
            and len({*levels, other}) == len(levels) + (other is not None or None not in levels)
        ):
            shown = [None if level == missing else level for level in levels]
            made.append(CategoricalColumn(name, tuple(shown), other))
        else:
            raise ValueError(
                f"column {name!r} has neither a finite fill and an indicator, true or false, nor a "
                "list of levels, distinct texts or null, of which the other one is none"
            )
    if len({column.name for column in made}) < len(made):
        raise ValueError("two columns have the same name")
    return tuple(made)
