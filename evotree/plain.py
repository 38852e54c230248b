"""A tree as plain data that JSON holds without loss, and back.

In: an `ObliqueTree`, its `SoftSides`, or the summary of its training rows. Out: a dictionary of
numbers and lists. The arrays that are read back are checked, as kernels rely on them.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from evotree.fitted import TrainingRows
from evotree.leaf_models import (
    LeafModels,
    LogModels,
    OutputModels,
    ScoreModels,
    SharedModels,
)
from evotree.tree import ObliqueTree, SoftSides

TREE_VERSION = 4
"""The form that is written and read."""
_LINKS = {"log": LogModels, "score": SharedModels}
"""Kinds of models of one output that say what they are."""
_REQUIRED = ("subtree_size", "thresholds", "weights", "values")
_OPTIONAL = ("spread", "weighted_n_node_samples", "row_counts")
_WHOLE = {"subtree_size": np.int32, "row_counts": np.int64, "labels": np.int64}
"""The arrays of whole numbers."""


def tree_to_dict(tree: ObliqueTree) -> dict[str, Any]:
    """Return a tree as plain data: numbers, lists and strings.

    It holds the ``version`` of this form, and the arrays of the tree as nested lists, ``spread``,
    ``weighted_n_node_samples``, ``row_counts``, ``labels``, ``models`` and ``output_names`` only
    where the tree has them; those of several outputs, or classes, are a list. `json.dumps` writes a
    float so that it reads back as the same one.
    """
    arrays = {name: getattr(tree, name) for name in (*_REQUIRED, *_OPTIONAL)}
    data = {"version": TREE_VERSION, **_lists(arrays | {"labels": tree.given_labels})}
    if isinstance(tree.models, ScoreModels):
        data["models"] = _lists(
            {"points": tree.models.points, "score": tree.models.score}
        )
    elif tree.models is not None:
        each = [_lists(one._asdict()) for one in tree.models.each]
        data["models"] = each[0] if isinstance(tree.models, LeafModels) else each
    for link, kind in _LINKS.items():
        if type(tree.models) is kind:
            data["models"]["link"] = link
    if tree.output_names:
        data["output_names"] = list(tree.output_names)
    return data


def tree_from_dict(data: Mapping[str, Any]) -> ObliqueTree:
    """Return the tree that `tree_to_dict` made plain data of.

    It is equal to the first one to the last bit. A ValueError names an array that is missing, or
    fits no tree.
    """
    version, names = data.get("version"), data.get("output_names")
    if version != TREE_VERSION:
        raise ValueError(
            f"the tree has version {str(version)[:40]}: allowed is {TREE_VERSION}, "
            "as another evotree may have written."
        )
    optional = (*_OPTIONAL, "labels")
    arrays = [name for name in optional if data.get(name) is not None]
    return ObliqueTree(
        models=_models_from(data.get("models")),
        output_names=None if names is None else tuple(map(str, names)),
        **{name: _array(data, name) for name in (*_REQUIRED, *arrays)},
    ).validate()


def _models_from(data: Any) -> Any:
    """Return the models of leaves."""
    if data is None:
        return None
    if isinstance(data, list):
        return OutputModels(tuple(map(_models_from, data)))
    if "points" in data:
        return ScoreModels.of(_array(data, "points"), _array(data, "score"))
    kind = _LINKS.get(data.get("link"), LeafModels)
    return kind(**{name: _array(data, name) for name in kind._fields})


def parts_to_dict(parts: SoftSides | TrainingRows) -> dict[str, Any]:
    """Return what is known of a tree, its soft sides or training rows, as `tree_to_dict` does."""
    return _lists(vars(parts))


def parts_from_dict(kind: Any, data: Any, tree: ObliqueTree) -> Any:
    """Return what is known of a tree, that `parts_to_dict` made plain data of, if it fits it."""
    return kind(**{name: np.array(data[name]) for name in data}).validate(tree)


def _lists(arrays: Mapping[str, np.ndarray | None]) -> dict[str, Any]:
    """Return arrays as nested lists, those that are there."""
    return {name: array.tolist() for name, array in arrays.items() if array is not None}


def _array(data: Mapping[str, Any], name: str) -> np.ndarray:
    """Return the numbers of an entry as an array."""
    if name not in data:
        raise ValueError(f"there is no {name}.")
    try:
        return np.array(data[name], dtype=_WHOLE.get(name, np.float64))
    except (OverflowError, TypeError, ValueError) as error:
        raise ValueError(
            f"{name} does not hold numbers alone, in lists of one length."
        ) from error
