"""What can be plugged in: where each kind of part is listed, and what a part promises.

A new part is one class or function in the room of its kind, and its name in the list there: the
properties of the kind are then tested of it, too. Parts of users need no list: a splitter, an
objective or a constraint is handed over as an object that keeps the same promise.
"""

from collections.abc import Mapping
from importlib import import_module
from types import MappingProxyType
from typing import Any, NamedTuple


class Kind(NamedTuple):
    """A kind of parts: the list of them, and what each promises."""

    listed_in: str  # module:name, of a mapping of names to parts; imported when it is asked for
    promise: str


KINDS: Mapping[str, Kind] = MappingProxyType(
    {
        "splitter": Kind(
            "evotree.operators.splitters.registry:SPLITTERS",
            "A frozen dataclass, called with a node and a random stream. It returns a `Split` "
            "whose sides have at least `node.min_rows` rows, or None. It writes nothing but the "
            "stream; the same node and state give the same split.",
        ),
        "loss": Kind(
            "evotree.fitness.objectives:LOSSES",
            "An `Objective` that says by its class attributes what it goes with. `named` makes one "
            "for a data set; `risks` and `quality` agree: moving a row to another leaf changes the "
            "quality by what `row_costs` say.",
        ),
        "leaf": Kind(
            "evotree.leaf_models:LEAF_MODELS",
            "What leaves with linear models predict: `each` has one `LeafModels` for each number, "
            "`with_each` makes the same kind of others, `predict` takes rows and their leaves.",
        ),
        "constraint": Kind(
            "evotree.operators.constraints:CONSTRAINTS",
            "`max_width` bounds the terms of a split; `keeps` judges a tree over rows; `repair` "
            "changes a tree until it keeps the constraint, and draws nothing. A single leaf, or "
            "what is held, keeps any.",
        ),
        "export": Kind(
            "evotree.export:FORMS",
            "A function of a fitted model that returns a text, or an ONNX model. What it says "
            "predicts as `predict` does.",
        ),
        "command": Kind(
            "evotree.cli.options:COMMANDS",
            "A `Command`: the function of `evotree.cli.commands` that runs it, its help, examples "
            "that run, and its options.",
        ),
    }
)


def parts_of(kind: str) -> Mapping[str, Any]:
    """Return the parts of a kind that are listed, by their names.

    Parameters
    ----------
    kind : str
        One of `KINDS`.

    Returns
    -------
    mapping of str to object
        A room around the core is imported by this where its kind is asked for.

    Raises
    ------
    ValueError
        If there is no such kind.
    """
    if kind not in KINDS:
        raise ValueError(f"kind={kind!r}: allowed are {', '.join(KINDS)}.")
    module, name = KINDS[kind].listed_in.split(":")
    parts: Mapping[str, Any] = getattr(import_module(module), name)
    return parts
