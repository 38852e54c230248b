"""A tree as plain data that JSON holds without loss, and back.

In: an `ObliqueTree`, its `SoftSides`, or the summary of its training rows. Out: a dictionary of
numbers and lists. What is read back may come from a file that others have changed, so all of it is
checked.
"""

import itertools
from collections.abc import Mapping, Sequence
from inspect import signature
from typing import Any

import numpy as np

from evotree.fitted import TrainingRows
from evotree.leaf_models import (
    LeafModels,
    LogModels,
    OutputModels,
    ScoreModels,
    SharedModels,
    check_arrays,
)
from evotree.tree import ObliqueTree, SoftSides

TREE_VERSION = 4
"""The form that is written and read."""
_LINKS = {None: LeafModels, "log": LogModels, "score": SharedModels}
_KINDS = {dict: "an object", list: "a list", str: "a string", bool: "a truth value"}
#: Limits of what is taken for a tree; far above anything that evolution makes.
MAX_NODES = 100_000
MAX_NUMBERS = 50_000_000
_LARGEST_ROW_COUNT = 2.0**53
_MATRICES = (
    *("weights", "values", "row_counts", "coefficients", "shares", "means"),
    *("points", "score"),
)
_REQUIRED = ("subtree_size", "thresholds", "weights", "values")
_OPTIONAL = ("spread", "weighted_n_node_samples")
_WHOLE = ("labels", "row_counts")  # whole numbers, which are optional too


def tree_to_dict(tree: ObliqueTree) -> dict[str, Any]:
    """Return a tree as plain data: numbers, lists and strings.

    It holds the ``version`` of this form, and the arrays of the tree as nested lists, ``spread``,
    ``weighted_n_node_samples``, ``row_counts``, ``labels``, ``models`` and ``output_names`` only
    where the tree has them; those of several outputs, or classes, are a list. `json.dumps` writes a
    float so that it reads back as the same one. A tree that is larger than `tree_from_dict` reads
    is refused.
    """
    n_nodes = tree.n_nodes
    width = max(tree.n_features, tree.values.shape[1])
    if n_nodes > min(MAX_NODES, MAX_NUMBERS // width):
        raise ValueError(
            f"the tree has {n_nodes} nodes of up to {width} numbers: allowed are at "
            f"most {MAX_NODES} nodes, and {MAX_NUMBERS} numbers."
        )
    names = (*_REQUIRED, *_OPTIONAL, "row_counts")
    arrays = {name: getattr(tree, name) for name in names}
    data = {"version": TREE_VERSION, **_lists(arrays | {"labels": tree.given_labels})}
    if isinstance(tree.models, ScoreModels):
        data["models"] = _lists(
            {"points": tree.models.points, "score": tree.models.score}
        )
    elif tree.models is not None:
        each = [_lists(one._asdict()) for one in tree.models.each]
        data["models"] = each[0] if isinstance(tree.models, LeafModels) else each
    for link, kind in _LINKS.items():
        if type(tree.models) is kind and link is not None:
            data["models"]["link"] = link
    if tree.output_names:
        data["output_names"] = list(tree.output_names)
    return data


def tree_from_dict(data: Any) -> ObliqueTree:
    """Return the tree that `tree_to_dict` made plain data of.

    It is equal to the first one to the last bit. The data may come from a file that others have
    changed: all is checked, and a ValueError names the entry that is missing or wrong.
    """
    _check_object(data, "the tree", ("version",))
    if data["version"] != TREE_VERSION:
        raise ValueError(
            f"the tree has version {str(data['version'])[:40]}: allowed is {TREE_VERSION}, "
            "as another evotree may have written."
        )
    _check_object(data, "the tree", _REQUIRED)
    sizes = data["subtree_size"]
    if not isinstance(sizes, list) or not 1 <= len(sizes) <= MAX_NODES:
        raise ValueError(f"subtree_size is not a list of 1 to {MAX_NODES} numbers.")
    if not all(type(size) is int and 1 <= size <= len(sizes) for size in sizes):
        raise ValueError(
            f"subtree_size has entries that are not whole numbers in 1..{len(sizes)}."
        )
    optional = [name for name in (*_OPTIONAL, *_WHOLE) if data.get(name) is not None]
    arrays = {
        name: _array(data[name], name)
        for name in ("weights", "thresholds", "values", *optional)
    }
    for name in set(_WHOLE).intersection(optional):
        if not (arrays[name] == np.floor(arrays[name])).all():
            raise ValueError(f"{name} has an entry that is not a whole number.")
        arrays[name] = arrays[name].clip(-1, _LARGEST_ROW_COUNT).astype(np.int64)
    names = data.get("output_names")
    if names is not None and not (
        isinstance(names, list) and all(isinstance(name, str) for name in names)
    ):
        raise ValueError("output_names is not a list of strings.")
    models: Any = data.get("models")
    if isinstance(models, list):
        each = tuple(_parts(LeafModels, one, "models") for one in models)
        models = OutputModels(each)
    elif isinstance(models, Mapping) and "points" in models:
        _check_object(models, "models", ("points", "score"))
        parts = {name: _array(models[name], name) for name in ("points", "score")}
        models = _score_models(parts["points"], parts["score"], arrays["weights"])
    elif models is not None:
        link = models.get("link") if isinstance(models, Mapping) else None
        if not isinstance(link, str | None) or link not in _LINKS:
            raise ValueError(
                f"the link of models is {_kind(link)}, not {' or '.join(map(repr, _LINKS))}."
            )
        models = _parts(_LINKS[link], models, "models")
    return ObliqueTree(
        subtree_size=np.array(sizes, dtype=np.int32),
        models=models,
        output_names=None if names is None else tuple(names),
        **arrays,
    ).validate()


def _score_models(
    points: np.ndarray, score: np.ndarray, weights: np.ndarray
) -> ScoreModels:
    """Return the models of points and a score, whose shapes have to be those of a tree."""
    n_nodes, n_features = weights.shape
    n_classes = points.shape[1] if points.ndim == 2 else 0
    check_arrays(
        {"points": points, "score": score},
        [(n_nodes, n_classes), (n_classes, n_features)],
    )
    return ScoreModels.of(points, score)


def parts_to_dict(parts: SoftSides | TrainingRows) -> dict[str, Any]:
    """Return what is known of a tree, its soft sides or training rows, as `tree_to_dict` does."""
    return _lists(vars(parts))


def parts_from_dict(kind: Any, data: Any, tree: ObliqueTree) -> Any:
    """Return what is known of a tree, that `parts_to_dict` made plain data of, checked."""
    what = "probabilities" if kind is SoftSides else "training_rows"
    return _parts(kind, data, what).validate(tree)


def _lists(arrays: Mapping[str, np.ndarray | None]) -> dict[str, Any]:
    """Return arrays as nested lists, those that are there."""
    return {name: array.tolist() for name, array in arrays.items() if array is not None}


def _check_object(data: Any, what: str, names: Sequence[str]) -> None:
    """Refuse what is no object with entries of these names."""
    if not isinstance(data, Mapping):
        raise ValueError(f"{what} is {_kind(data)}, not an object with names.")
    if missing := [name for name in names if name not in data]:
        raise ValueError(f"{what} has no {', '.join(missing)}.")


def _parts(kind: Any, data: Any, what: str) -> Any:
    """Return an object that is made of the arrays of plain data, whose shapes are not checked."""
    names = tuple(signature(kind).parameters)
    _check_object(data, what, names)
    return kind(**{name: _array(data[name], name) for name in names})


def _kind(value: Any) -> str:
    """Name the type of a value as a reader of JSON would."""
    return "missing" if value is None else _KINDS.get(type(value), "a number")


def _array(numbers: Any, name: str) -> np.ndarray:
    """Return numbers as an array; by its name in equally long lists, with at least one column."""
    is_matrix = name in _MATRICES
    rows = numbers if is_matrix else [numbers]
    if not (isinstance(rows, list) and all(isinstance(row, list) for row in rows)):
        wanted = "a list of lists of numbers" if is_matrix else "a list of numbers"
        raise ValueError(f"{name} is {_kind(numbers)}, not {wanted}.")
    lengths = sorted({len(row) for row in rows})
    if len(lengths) != 1 or lengths == [0]:
        raise ValueError(
            f"{name} has rows of lengths {lengths[:5]}: all must be alike."
        )
    if len(rows) * lengths[0] > MAX_NUMBERS:
        raise ValueError(f"{name} has more than {MAX_NUMBERS} numbers.")
    for value in itertools.chain.from_iterable(rows):
        if type(value) is not float and type(value) is not int:
            raise ValueError(
                f"{name} has an entry that is {_kind(value)}, not a number."
            )
    try:
        return np.array(numbers, dtype=np.float64)
    except OverflowError:
        raise ValueError(f"{name} has a number that is too large.") from None
