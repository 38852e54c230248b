"""What a search must share with the one that it continues: parameters, rows, and the choice."""

import hashlib
import inspect
import warnings
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from types import CodeType, FunctionType
from typing import Any, NamedTuple

import numpy as np

from evotree.configuration import Configuration
from evotree.engine.checkpoint import read_settings
from evotree.engine.choice import Choice, Penalties
from evotree.engine.config import SearchConfig, checkpoint_of, evolution_of
from evotree.engine.evolution import Run
from evotree.engine.finish import Result
from evotree.engine.islands import islands_of
from evotree.files import PathLike, check_writable
from evotree.fitness.logistic_leaves import HALVINGS, Candidate, Strength
from evotree.tree import ObliqueTree

_FREE = {
    "callbacks",
    "categorical_features",
    "checkpoint",
    "evolution",  # its parameters stand beside the others
    "init",
    "max_generations",
    "n_jobs",
    "patience",
    "precision",
    "probability",
    "random_state",
    "time_limit",
    "verbose",
    "warm_start",
}
"""Parameters that may change when a search continues: limits, and what changes no later tree."""

_DEPTH = 8  # of objects inside of objects, whose attributes are compared
_UNKNOWN = " that cannot be compared, at "


class Continuation(NamedTuple):
    """What a later search needs to continue a run."""

    choice: Choice  # what the run evolves by
    parameters: dict[str, str]  # those that must be the same
    data: str  # checksum of the rows that the fitness is measured on
    islands: list[Run]  # the run, or its islands


def continuation(result: Result) -> Continuation:
    """Return what a later search needs to continue the run of this one."""
    return Continuation(
        result.choice,
        compared(result.problem.config),
        result.rows.fingerprint,
        islands_of(result.run),
    )


def seed_to_continue(
    config: SearchConfig, continues: Continuation | None
) -> int | None:
    """Return the seed of the run that a search is to continue, if any."""
    checkpoint = checkpoint_of(config)
    if checkpoint is not None:
        check_writable(checkpoint.path)
        if checkpoint.resume:
            seed = read_settings(checkpoint.path).get("seed")
            # Whatever else it is, is refused where the choice is read.
            return seed if isinstance(seed, int) and 0 <= seed < 2**63 else None
    return None if continues is None else continues.choice.seed


def warn_of_a_fresh_start(continues: Continuation, config: SearchConfig) -> None:
    """Say why a search does not continue an earlier one."""
    changed = [
        name
        for name, value in compared(config).items()
        if continues.parameters.get(name) != value
    ]
    what = f"the parameters {', '.join(changed)}" if changed else "the rows"
    warnings.warn(
        f"warm_start=True: {what} changed, so that the search does not continue the earlier "
        "one, but starts afresh.",
        RuntimeWarning,
        stacklevel=7,
    )


# ---- what is compared ----------------------------------------------------------------------------


def compared(config: SearchConfig) -> dict[str, str]:
    """Return the parameters that must be the same when a search continues, as text."""
    evolution = evolution_of(config)
    values = config.get_params(deep=False) | evolution.get_params(deep=False)
    values["islands"] = replace(evolution.islands, executor=None)
    return {name: as_text(value) for name, value in values.items() if name not in _FREE}


def as_text(value: Any, depth: int = _DEPTH) -> str:
    """Return what a value is as text, the same in every process.

    A function is its name and what it does; an object its class and attributes. What cannot be told
    so has its address in the text, and is refused where it is kept in a file.
    """
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, str | bytes | int | float | complex | range):
        return repr(value)

    def inside(part: Any) -> str:
        return as_text(part, depth - 1)

    if isinstance(tree := getattr(value, "tree_", value), ObliqueTree):
        return inside(list(tree.splits))
    if hasattr(value, "__array__"):  # the repr of a long one leaves out what is inside
        array = np.ascontiguousarray(value)
        if array.dtype.hasobject:
            return inside(array.tolist())
        digest = hashlib.sha256(array.data).hexdigest()[:16]
        return f"{type(value).__name__}({array.dtype}, {array.shape}, {digest})"
    name = getattr(value, "__qualname__", type(value).__qualname__)
    unknown = f"{name}{_UNKNOWN}{id(value):#x}"
    if depth == 0:
        return unknown
    if isinstance(value, Configuration):
        return f"{name}({inside(value.get_params(deep=False))})"
    if isinstance(value, Mapping):
        items = (f"{inside(key)}: {inside(one)}" for key, one in value.items())
        return "{" + ", ".join(items) + "}"
    if isinstance(value, set | frozenset):
        return "{" + ", ".join(sorted(map(inside, value))) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(inside, value)) + "]"
    if isinstance(value, partial):
        return f"partial{inside([value.func, value.args, value.keywords])}"
    if inspect.ismethod(value):
        return f"{name} of {inside(value.__self__)}"
    if isinstance(value, FunctionType):
        has_a_name = "<" not in name and not value.__closure__
        body = _digest(value.__code__, [value.__defaults__, value.__kwdefaults__])
        return f"{value.__module__}.{name}({body})" if has_a_name else unknown
    if isinstance(value, type) or inspect.isbuiltin(value):
        return f"{value.__module__}.{name}"
    text = repr(value)
    if " at 0x" not in text:
        return text
    # Without a repr of its own an object is what its attributes are, where these are all of it.
    has_slots = any("__slots__" in vars(kind) for kind in type(value).__mro__)
    if has_slots or not hasattr(value, "__dict__"):
        return unknown
    return f"{type(value).__module__}.{name}({inside(vars(value))})"


def _digest(code: CodeType, others: Any = ()) -> str:
    """Return a checksum of what a function does, whichever lines of its file it stands in."""
    constants = [
        _digest(one) if isinstance(one, CodeType) else repr(one)
        for one in code.co_consts
    ]
    parts = [code.co_code.hex(), code.co_names, constants, as_text(others)]
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:16]


# ---- what a file keeps ---------------------------------------------------------------------------


def check_checkpoint(config: SearchConfig, parameters: Mapping[str, str]) -> None:
    """Refuse a file that cannot be written, and parameters that it cannot tell from others."""
    checkpoint = checkpoint_of(config)
    if checkpoint is None:
        return
    check_writable(checkpoint.path)
    for name, text in parameters.items():
        if _UNKNOWN in text:
            raise ValueError(
                f"{name} has {text.partition(_UNKNOWN)[0]}: a checkpoint cannot recognize lambdas, "
                "functions inside of functions, and objects whose attributes cannot be compared; "
                "allowed are functions of a module."
            )


def describe(
    parameters: Mapping[str, str], choice: Choice, stage: int
) -> dict[str, Any]:
    """Return what a checkpoint keeps of a search, at one of its samples; plain data."""
    leaves = choice.leaves
    return {
        "parameters": dict(parameters),
        "seed": choice.seed,
        "size_penalty": choice.penalties.size,
        "term_penalty": choice.penalties.term,
        "leaves": leaves and [*leaves.strength, leaves.at, leaves.keeps_shares],
        "stage": stage,
    }


def read_choice(
    settings: Mapping[str, Any], parameters: Mapping[str, str], path: PathLike
) -> tuple[Choice, int]:
    """Return the choice of the run of a checkpoint, and the number of its sample."""
    try:
        before = {
            str(name): str(value) for name, value in settings["parameters"].items()
        }
        penalties = Penalties(
            float(settings["size_penalty"]), float(settings["term_penalty"])
        )
        leaves = settings.get("leaves")
        if leaves is not None:
            C, halvings, at, keeps_shares = leaves
            strength = Strength(float(C), range(HALVINGS + 1).index(halvings))
            at = None if at is None else int(at)
            leaves = Candidate(strength, at, bool(keeps_shares))
        choice = Choice(range(2**63).index(settings["seed"]), penalties, leaves)
        stage = range(2**31).index(settings["stage"])
    except (
        ArithmeticError,
        AttributeError,
        LookupError,
        TypeError,
        ValueError,
    ) as error:
        raise ValueError(
            f"{path} was not written by a search: {repr(error)[:200]}."
        ) from error
    for name, value in parameters.items():
        if before.get(name) != value:
            raise ValueError(
                f"{name}={value}: the run in {path} has {name}={before.get(name)}; it continues "
                "with the same parameters only, except for limits."
            )
    return choice, stage
