"""A model that stands alone: trees, their columns and any classes, kept in a file one can read.

The file is JSON, every number written so that it reads back as the same one. A digest of all its
entries says whether it is as it was written, so that no entry needs a check of its own. Trees are
checked still: the kernels that read them check nothing. Reading raises nothing but `ValueError`,
naming file and reason.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from hashlib import sha256
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
from evotree.schema import Schema, text_of
from evotree.tables.columns import encode
from evotree.tables.frames import as_table, is_frame
from evotree.tables.readers import reading
from evotree.texts import export_text, numbered
from evotree.tree import ObliqueTree, SoftSides, mean_of_trees
from evotree.words import counted, parts_of_text, printable

FORMAT = "evotree model"
VERSION = 9
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
        n_outputs = members[0].tree.values.shape[1]
        if classes is None and n_outputs > 1:
            raise ValueError(
                f"the model predicts {n_outputs} outputs: a file holds models of one."
            )
        if classes is not None:
            classes = _plain_classes(classes.tolist())
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
    data["digest"] = digest_of(data)
    content = (_to_json(data) + "\n").encode()
    write_whole(path, lambda file: file.write(content))


def digest_of(data: Mapping[str, Any]) -> str:
    """Return the digest of all entries of a file but its own, however they are laid out."""
    others = {name: value for name, value in data.items() if name != "digest"}
    return sha256(json.dumps(others, sort_keys=True).encode()).hexdigest()


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

    A `ValueError` says that the file cannot be read, is of another format or version, or was
    changed.
    """
    with reading(path):
        # Some editors put a mark before UTF-8.
        data = json.loads(Path(path).read_text(encoding="utf-8-sig"))
        if not isinstance(data, dict) or data.get("format") != FORMAT:
            raise ValueError(f'it is not a model, without "format": "{FORMAT}"')
        if (version := data.get("version")) != VERSION:
            raise ValueError(
                f"version {str(version)[:40]} is not the one that evotree {__version__} reads, "
                f"{VERSION}; fit the model again, or use the evotree that made it"
            )
        if data.get("digest") != digest_of(data):
            raise ValueError(
                "it is not as it was written; change the model instead, by model.edit, and save it "
                "again"
            )
        plain_trees = data["trees"] if "trees" in data else [data["tree"]]
        tree, *others = map(plain.tree_from_dict, plain_trees)
        first = _fitted_from(data, tree)
        members = (first, *(replace(first, tree=other) for other in others))
        return Model(data["target"], members, data.get("training", {}))


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
    classes, sides, rows, costs = map(
        data.get, ("classes", "probabilities", "training_rows", "costs")
    )
    notes = data.get("leaf_notes")
    return Fitted(
        tree,
        Schema.from_data(data["columns"]),
        None if classes is None else _plain_classes(classes),
        sides=sides and plain.parts_from_dict(SoftSides, sides, tree),
        training=rows and plain.parts_from_dict(TrainingRows, rows, tree),
        notes=notes and {int(k): printable(note) for k, note in notes.items()},
        costs=costs and np.array(costs, dtype=np.float64),
        choice=data.get("choice"),
        arguments=FitArguments(
            **{name: _as_tuples(value) for name, value in data["fit"].items()}
        ),
    )


def _as_tuples(value: Any) -> Any:
    """Return plain data with tuples, which never change, in the place of lists."""
    return tuple(map(_as_tuples, value)) if isinstance(value, list) else value


def _plain_classes(labels: list[Any]) -> np.ndarray:
    """Return classes that JSON holds without loss."""
    kinds = set(map(type, labels))
    if len(kinds) != 1 or not kinds <= {str, int, bool, float}:
        raise ValueError(
            "classes is no list of labels that are all strings, all whole numbers, all floats or "
            "all truth values"
        )
    return np.array(labels, dtype=object if kinds == {str} else None)
