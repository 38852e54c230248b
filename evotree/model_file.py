"""A model that stands alone: trees, their columns and any classes, kept in a file one can read.

The file is JSON, every number written so that it reads back as the same one. It may have been cut
off, edited or made by another program: reading checks it and raises nothing but `ValueError`,
naming file and reason.
"""

import json
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from evotree import plain
from evotree._version import __version__
from evotree.files import PathLike, write_whole
from evotree.fitted import (
    FitArguments,
    Fitted,
    TrainingRows,
    members_of,
    used_features,
)
from evotree.leaf_models import class_probabilities
from evotree.paths import Explanation, explain
from evotree.schema import Schema, quoted, text_of
from evotree.tables.columns import encode
from evotree.tables.frames import as_table, is_frame
from evotree.tables.readers import reading
from evotree.texts import export_text, numbered
from evotree.tree import ObliqueTree, SoftSides, mean_of_trees
from evotree.words import counted, parts_of_text, printable

FORMAT = "evotree model"
VERSION = 8
STOP_REASONS = {
    "max_generations": "all generations done",
    "patience": "no better tree for long",
    "time_limit": "time is up",
    "interrupt": "interrupted",
}

# What models keep of how well rows are predicted, its name in words, and its digits.
_FIGURES = (
    ("cost", "mean cost a row", ".4g"),
    ("base_cost", "by the best constant answer", ".4g"),
    ("accuracy", "accuracy", ".4f"),
    ("r2", "R²", ".4f"),
    ("rmse", "RMSE", ".4g"),
    ("concordance", "concordance", ".4f"),
)
_FLAGS = ("has_weights", "has_exposures", "has_groups")


@dataclass(frozen=True, eq=False)
class Model:
    """A fitted tree, or those of a forest, with what it takes to read tables.

    The mean of several trees predicts. Classes are all strings, all whole numbers, all truth values
    or all floats; without classes numbers are predicted. What is known of the training is for
    `summary`, each entry optional: ``rows``, ``accuracy``, ``base_rate`` (the accuracy of the most
    frequent class); of numbers ``r2`` and ``rmse``; of times ``concordance``; of what rows cost the
    mean, ``cost``, and that of the answer that is best for all, ``base_cost``; the same of test
    rows with ``test_`` before it; ``select``, the rule that took the tree of the front in the place
    of the chosen one; ``generations``, ``stop_reason`` and ``seconds``.

    Attributes
    ----------
    target : str
        Name of what is predicted.
    members : tuple of Fitted
        The tree, or those of a forest, which have the same columns and classes.
    training : mapping of str to object
        What is known of the training.
    """

    target: str
    members: tuple[Fitted, ...]
    training: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        estimator: BaseEstimator,
        target: str,
        training: Mapping[str, Any] | None = None,
    ) -> Self:
        """Return the model of a fitted estimator."""
        members = members_of(estimator)
        classes = members[0].classes
        if classes is not None:
            classes = _classes_from(classes.tolist())
            members = [replace(member, classes=classes) for member in members]
        return cls(target, tuple(members), training or {})

    def __getattr__(self, name: str) -> Any:
        """Say of what estimators predict besides that files do not keep it."""
        if name.startswith("predict_"):
            raise AttributeError(
                f"{name} is the estimator's: a model file keeps what predict and, of classes, "
                "predict_proba return; allowed are these, or a pickle of the estimator."
            )
        raise AttributeError(f"{type(self).__name__!r} has no attribute {name!r}")

    def __post_init__(self) -> None:
        if not self.members:
            raise ValueError("there is no tree.")
        if self.sides is not None:
            if self.classes is None or len(self.members) > 1:
                raise ValueError("soft sides are for one tree of classes.")
            self.sides.validate(self.tree)
        n = len(self.schema.features)
        for tree in self.trees:
            values = tree.values
            width = values.shape[1]
            if tree.n_features != n:
                raise ValueError(
                    f"the tree has {tree.n_features} features, the columns make {n}."
                )
            if self.classes is None:
                if width != 1:
                    raise ValueError(
                        f"the model predicts {width} outputs: a file holds models of one."
                    )
            elif tree.models is not None and not tree.models.of_classes:
                raise ValueError(
                    "the tree has linear models in leaves, which predict no classes."
                )
            elif width != len(self.classes):
                raise ValueError(
                    f"the tree has {width} values for {len(self.classes)} classes."
                )
            elif values.min() < 0.0 or not np.allclose(values.sum(axis=1), 1.0):
                raise ValueError(
                    "the tree's values are not class shares: they must add up to 1."
                )

    @property
    def trees(self) -> tuple[ObliqueTree, ...]:
        """The trees alone."""
        return tuple(member.tree for member in self.members)

    @property
    def tree(self) -> ObliqueTree:
        """The tree; of a forest the first one."""
        return self.members[0].tree

    @property
    def schema(self) -> Schema:
        """What the features are made of."""
        return self.members[0].schema

    @property
    def classes(self) -> np.ndarray | None:
        """Class labels; None where numbers are predicted."""
        return self.members[0].classes

    @property
    def sides(self) -> SoftSides | None:
        """What probabilities are of; None for the shares of leaves."""
        return self.members[0].sides

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Names of the features, such as ``size``, ``size is missing``, ``sex is f``."""
        return self.schema.features

    @property
    def labels(self) -> list[str] | None:
        """The classes as they are written; None where numbers are predicted."""
        return (
            None if self.classes is None else [text_of(label) for label in self.classes]
        )

    @cached_property
    def used_columns(self) -> tuple[str, ...]:
        """The columns that some tree asks for; tables to predict may lack the others."""
        used = np.unique(self.schema.column_of[used_features(self.members)])
        return tuple(self.schema.names[c] for c in used.tolist())

    def table(self, X: Any) -> pd.DataFrame:
        """Return rows as a table that names its columns as the model does.

        Rows whose columns have other names than texts are taken in the order of the fit.
        """
        frame = as_table(X)
        names = list(self.schema.names)
        is_named = is_frame(X) and all(isinstance(name, str) for name in frame.columns)
        if is_named or {*names} <= {*map(str, frame.columns)}:
            return frame.set_axis(frame.columns.map(str), axis=1)
        if frame.shape[1] != len(names):
            raise ValueError(
                f"X has {frame.shape[1]} columns without names: allowed are the {len(names)} of "
                "the model, in their order, and tables with its names."
            )
        return frame.set_axis(names, axis=1)

    def encode(self, X: Any, *, bends: bool = False) -> np.ndarray:
        """Return the features that exported code reads; with `bends` all that trees read.

        Rows are a frame of pandas or polars, a table of Arrow, an array or a list. Columns that no
        tree asks for are taken for missing.
        """
        features = encode(self.schema, self.table(X), self.used_columns)
        return features if bends else self.schema.without_bends(features)

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the probabilities of the classes, or the numbers in a column."""
        rows = self.encode(X, bends=True)
        if len(self.members) > 1:
            return mean_of_trees(self.trees, rows)
        return class_probabilities(self.tree, self.sides, rows)

    def predict(self, X: Any) -> np.ndarray:
        """Return the class or the number of each row: of one tree that of the leaf it reaches."""
        if self.classes is None:
            return self.predict_proba(X)[:, 0]
        return self.classes[self.codes(X)]

    def codes(self, X: Any) -> np.ndarray:
        """Return the positions of the predicted classes, of shape (n_rows,); see `predict`."""
        if len(self.members) > 1:
            return self.predict_proba(X).argmax(axis=1)
        return self.tree.predict_label(self.encode(X, bends=True))

    def explain(self, X: Any) -> Explanation:
        """Explain how rows reach their leaves."""
        fitted = self.members[0]
        if fitted.training is None:
            raise ValueError(
                "the model knows nothing of its training rows; fit it again"
            )
        return explain(fitted, encode(self.schema, self.table(X)))

    def rules(self, written: Callable[[Fitted], str] = export_text) -> str:
        """Return the trees as indented rules, or as another function writes them.

        What was chosen stands in the summary.
        """
        return numbered([written(replace(one, choice=None)) for one in self.members])

    def summary(self) -> str:
        """Return what is predicted, the size of the trees and what is known of their training."""
        sizes = [(tree.n_nodes, tree.n_leaves, tree.n_terms) for tree in self.trees]
        nodes, leaves, terms = map(sum, zip(*sizes, strict=True))
        of_trees = f"{counted(nodes, 'node')}, {counted(leaves, 'leaf', 'leaves')}"
        of_splits = counted(terms, "term")
        size = (
            f"tree       {of_trees}, depth {self.tree.depth}, {of_splits}, "
            f"complexity {self.tree.complexity}"
            if len(sizes) == 1
            else f"forest     {len(sizes)} trees, {of_trees}, {of_splits}"
        )
        is_time = self.members[0].is_risk
        kind = "a time, by the risk of its event" if is_time else "a number"
        lines = [
            f"target     {self.target}: {', '.join(self.labels or [kind])}",
            f"columns    {len(self.schema)}, as {counted(self.tree.n_features, 'feature')}",
            size,
            *_lines_of_figures(self.training),
            *_lines_of_search(self.training, self.members[0].choice_text),
        ]
        # A file may come from others, and names have any sign in them.
        return "\n".join(map(printable, lines))


def _lines_of_figures(known: Mapping[str, Any]) -> Iterator[str]:
    """Yield how well training rows are predicted, and rows that were held out."""
    lines = [
        f"{name:10} {figures}"
        for name, of in (("training", ""), ("test", "test_"))
        if (figures := figures_text(known, of))
    ]
    if "base_rate" in known and lines:
        lines[-1] += f" (always the most frequent class: {known['base_rate']:.4f})"
    yield from lines


def _lines_of_search(known: Mapping[str, Any], choice: str | None) -> Iterator[str]:
    """Yield what a search chose, how it ended and how long it took."""
    if "select" in known:
        choice = f"by --select {known['select']}"
    if choice is not None:
        choice = choice.removeprefix("chosen: ")
        parts = parts_of_text(choice.split("; "), ";")
        yield from map("{:10} {}".format, ["chosen", *[""] * (len(parts) - 1)], parts)
    if "generations" in known:
        reason = STOP_REASONS.get(known["stop_reason"], known["stop_reason"])
        yield f"evolution  {counted(known['generations'], 'generation')} ({reason})"
        yield "seconds    " + ", ".join(
            f"{name} {s:.1f}" for name, s in known["seconds"].items() if s >= 0.05
        )


def figures_text(known: Mapping[str, Any], of: str = "") -> str:
    """Return how well rows are predicted, in words; empty where it is not known."""
    texts = [
        f"{name} {known[f'{of}{figure}']:{form}}"
        for figure, name, form in _FIGURES
        if f"{of}{figure}" in known
    ]
    rows = f" on {known[f'{of}rows']} rows" if f"{of}rows" in known else ""
    return f"{', '.join(texts)}{rows}" if texts else ""


def save_model(
    path: PathLike, model: Model | BaseEstimator, target: str = "target"
) -> None:
    """Write a model to a file, whole or not at all; `load_model` and the command line read it.

    Parameters
    ----------
    path : path-like
        The file; replaced if it is there.
    model : fitted estimator of this package, or Model
        What is kept is what it takes to predict and to explain; the trees of a forest are in one
        file.
    target : str, default="target"
        Name of what an estimator predicts.

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
    if not isinstance(model, Model):
        check_is_fitted(model)
        if not hasattr(model, "fitted_"):
            raise ValueError(
                f"model is a {type(model).__name__}: allowed are fitted estimators of this "
                "package."
            )
        model = Model.of(model, target)
    data: dict[str, Any] = {
        "format": FORMAT,
        "version": VERSION,
        "evotree": __version__,
        "target": model.target,
        "classes": None if model.classes is None else model.classes.tolist(),
        **({"training": dict(model.training)} if model.training else {}),
        "columns": [asdict(column) for column in model.schema],
    }
    trees = [plain.tree_to_dict(tree) for tree in model.trees]
    data |= {"trees": trees} if len(trees) > 1 else {"tree": trees[0]}
    fitted = model.members[0]
    if fitted.sides is not None:
        data["probabilities"] = plain.parts_to_dict(fitted.sides)
    if fitted.training is not None and len(trees) == 1:
        data["training_rows"] = plain.parts_to_dict(fitted.training)
    if fitted.notes is not None:
        data["leaf_notes"] = {str(k): note for k, note in fitted.notes.items()}
    if fitted.costs is not None:
        data["costs"] = fitted.costs.tolist()
    if fitted.choice_text is not None:
        data["choice"] = fitted.choice_text
    data["fit"] = {
        name: value for name, value in asdict(fitted.arguments).items() if value
    }
    content = (_to_json(data) + "\n").encode()
    write_whole(path, lambda file: file.write(content))


def _to_json(value: Any, indent: str = "") -> str:
    """Write data as JSON, a list or object without further ones inside on one line."""
    inner = value.values() if isinstance(value, dict) else value
    if not isinstance(value, dict | list) or not any(
        isinstance(v, dict | list) for v in inner
    ):
        return json.dumps(value, ensure_ascii=False, allow_nan=False)
    deeper = indent + "  "
    between = f",\n{deeper}"
    if isinstance(value, list):
        items = between.join(_to_json(item, deeper) for item in value)
        return f"[\n{deeper}{items}\n{indent}]"
    items = between.join(
        f"{_to_json(k)}: {_to_json(v, deeper)}" for k, v in value.items()
    )
    return f"{{\n{deeper}{items}\n{indent}}}"


def load_model(path: PathLike) -> Model:
    """Read a model from a file that `save_model` wrote; it predicts as the one that was saved.

    A `ValueError` says that the file cannot be read, is damaged, of another format or version.
    """
    with reading(path):
        try:
            # Some editors put a mark before UTF-8.
            data = json.loads(Path(path).read_text(encoding="utf-8-sig"))
        except json.JSONDecodeError as error:
            raise ValueError(f"it is not JSON, or was cut off: {error}") from error
        if not isinstance(data, dict) or data.get("format") != FORMAT:
            raise ValueError(f'it is not a model, without "format": "{FORMAT}"')
        if (version := data.get("version")) != VERSION:
            raise ValueError(
                f"version {str(version)[:40]} is not the one that evotree {__version__} reads, "
                f"{VERSION}; fit the model again, or use the evotree that made it"
            )
        of_trees = "trees" if "trees" in data else "tree"
        needed = ("target", "classes", "columns", of_trees)
        if missing := [name for name in needed if name not in data]:
            raise ValueError(f"there is no {', no '.join(missing)}")
        if not isinstance(data["target"], str):
            raise ValueError("target is not a string")
        plain_trees = data["trees"] if "trees" in data else [data["tree"]]
        if not isinstance(plain_trees, list) or not plain_trees:
            raise ValueError("trees is not a list of at least one tree")
        tree, *others = map(plain.tree_from_dict, plain_trees)
        first = _fitted_from(data, tree)
        members = (first, *(replace(first, tree=other) for other in others))
        training = _part(
            data, "training", lambda one: isinstance(one, dict), "is an object"
        )
        model = Model(data["target"], members, training or {})
        # What is known of the training is only shown: that it can be is all that is asked of it.
        try:
            model.summary()
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise ValueError(f"training holds what it should not: {error}") from error
        return model


def load_tree_model(path: PathLike) -> Model:
    """Read a model of one tree from a file."""
    model = load_model(path)
    if len(model.members) > 1:
        raise ValueError(
            f"{path} holds a forest of {len(model.trees)} trees: allowed is one tree"
        )
    return model


def _fitted_from(data: dict[str, Any], tree: ObliqueTree) -> Fitted:
    """Return what plain data say of a tree."""
    schema = Schema.from_data(data["columns"])
    classes = _classes_from(data["classes"])
    sides, rows = data.get("probabilities"), data.get("training_rows")
    leaves = {str(k): k for k in np.flatnonzero(tree.is_leaf).tolist()}
    notes = _part(
        data,
        "leaf_notes",
        lambda one: (
            isinstance(one, dict)
            and one.keys() <= leaves.keys()
            and all(map(_is_line, one.values()))
        ),
        "is an object of lines of text, by the numbers of leaves",
    )
    costs = _part(
        data,
        "costs",
        lambda one: _are_costs(one) and len(one) == len(tree),
        f"are {len(tree)} numbers of at least 0",
    )
    return Fitted(
        tree,
        schema,
        classes,
        sides=None if sides is None else plain.parts_from_dict(SoftSides, sides, tree),
        training=None
        if rows is None
        else plain.parts_from_dict(TrainingRows, rows, tree),
        notes=None if notes is None else {leaves[k]: note for k, note in notes.items()},
        costs=None if costs is None else np.array(costs, dtype=np.float64),
        choice=_part(data, "choice", _is_line, "is a line of text"),
        arguments=_arguments_from(data.get("fit", {}), schema, classes),
    )


def _part(
    data: dict[str, Any], name: str, is_sound: Callable[[Any], bool], allowed: str
) -> Any:
    """Return an entry of plain data; None where it is not there."""
    value = data.get(name)
    if value is not None and not is_sound(value):
        raise ValueError(f"{name} is {quoted(value)}: allowed {allowed}")
    return value


def _is_line(text: Any) -> bool:
    return isinstance(text, str) and text.isprintable()


def _are_costs(numbers: Any) -> bool:
    """Return whether plain data are a list of finite numbers of at least 0."""
    return isinstance(numbers, list) and all(
        type(one) in (int, float) and 0.0 <= one < math.inf for one in numbers
    )


def _arguments_from(
    data: Any, schema: Schema, classes: np.ndarray | None
) -> FitArguments:
    """Return what `fit` was given, of plain data."""
    names = set(schema.names)
    n = 0 if classes is None else len(classes)
    checks: dict[str, Callable[[Any], bool]] = {
        **dict.fromkeys(_FLAGS, lambda value: isinstance(value, bool)),
        "objective": _is_line,
        "penalties": lambda value: _are_costs(value) and len(value) == 2,
        "signs": lambda value: (
            isinstance(value, dict)
            and value.keys() <= names
            and all(type(sign) is int and abs(sign) == 1 for sign in value.values())
        ),
        "cost_matrix": lambda value: (
            isinstance(value, list)
            and len(value) == n
            and all(_are_costs(row) and len(row) == n for row in value)
        ),
        "cost_of_columns": lambda value: (
            isinstance(value, list)
            and all(isinstance(item, list) and len(item) == 2 for item in value)
            and all(
                isinstance(item, list) and {*map(str, item)} <= names
                for item, _ in value
            )
            and _are_costs([cost for _, cost in value])
        ),
    }
    if not isinstance(data, dict) or not data.keys() <= checks.keys():
        raise ValueError(
            f"fit is {quoted(data)}: allowed is an object of {', '.join(checks)}"
        )
    if wrong := [name for name, value in data.items() if not checks[name](value)]:
        raise ValueError(
            f"fit has {quoted(data[wrong[0]])} as {wrong[0]}: allowed is what evotree writes "
            "there, of the columns and classes of the model"
        )
    tuples = {
        "penalties": tuple,
        "cost_matrix": lambda rows: tuple(map(tuple, rows)),
        "cost_of_columns": lambda items: tuple((tuple(c), p) for c, p in items),
    }
    return FitArguments(
        **{name: tuples.get(name, lambda v: v)(value) for name, value in data.items()}
    )


def _classes_from(labels: Any) -> np.ndarray | None:
    """Return the classes of plain data."""
    if labels is None:
        return None
    kinds = set(map(type, labels)) if isinstance(labels, list) else set()
    if len(kinds) != 1 or not kinds <= {str, int, bool, float}:
        raise ValueError(
            "classes is no list of labels that are all strings, all whole numbers, all floats or "
            "all truth values"
        )
    if len(set(labels)) < len(labels):
        raise ValueError("classes has a label twice")
    if kinds == {float} and not all(map(math.isfinite, labels)):
        raise ValueError("classes has a number that is not finite")
    classes = np.array(labels, dtype=object if kinds == {str} else None)
    if kinds == {int} and classes.dtype != np.int64:
        raise ValueError("classes has a whole number of more than 64 bits")
    return classes
