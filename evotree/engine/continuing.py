"""What a search must share with the one that it continues: parameters, rows, and the choice."""

import hashlib
import warnings
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from evotree.configuration import Configuration
from evotree.engine.checkpoint import read_settings
from evotree.engine.choice import Choice, Penalties
from evotree.engine.config import SearchConfig, checkpoint_of, evolution_of
from evotree.engine.evolution import Run
from evotree.engine.finish import Result
from evotree.engine.islands import islands_of
from evotree.engine.logistic import Rival
from evotree.files import PathLike, check_writable
from evotree.fitness.logistic_leaves import HALVINGS, Strength
from evotree.tree import ObliqueTree

_FREE = {"max_generations", "patience", "time_limit", "n_jobs", "verbose", "callbacks"}
_FREE |= {
    "init",
    "random_state",
    "precision",
    "categorical_features",
    "checkpoint",
    "warm_start",
}
_FREE |= {"evolution"}  # its parameters stand beside the others
"""Parameters that may change when a search continues: limits, and what changes no later tree."""


class Continuation(NamedTuple):
    """What a later search needs to continue a run."""

    choice: Choice  # what the run evolves by
    parameters: dict[str, str]  # those that must be the same
    data: str  # checksum of the rows that the fitness is measured on
    islands: list[Run]  # the run, or its islands


def continuation(result: Result) -> Continuation:
    """Return what a later search needs to continue the run of this one."""
    parameters = compared(result.problem.config)
    return Continuation(
        result.choice, parameters, result.rows.fingerprint, islands_of(result.run)
    )


def seed_to_continue(
    config: SearchConfig, continues: Continuation | None
) -> int | None:
    """Return the seed of the run that a search is to continue, if any."""
    checkpoint = checkpoint_of(config)
    if checkpoint is not None:
        check_checkpoint(config)
        if checkpoint.resume:
            seed = read_settings(checkpoint.path).get("seed")
            return (
                seed if isinstance(seed, int) else None
            )  # whatever else it is, is refused
    return None if continues is None else continues.choice.seed


def warn_of_a_fresh_start(continues: Continuation, config: SearchConfig) -> None:
    """Say why a search does not continue an earlier one."""
    given = compared(config)
    changed = [
        name for name, value in given.items() if continues.parameters.get(name) != value
    ]
    what = f"the parameters {', '.join(changed)}" if changed else "the rows"
    message = f"warm_start=True: {what} changed, so that the search does not continue the earlier"
    warnings.warn(f"{message} one, but starts afresh.", RuntimeWarning, stacklevel=6)


def compared(config: SearchConfig) -> dict[str, str]:
    """Return the parameters that must be the same when a search continues, as text."""
    evolution = evolution_of(config)
    values = config.get_params(deep=False) | evolution.get_params(deep=False)
    values["islands"] = replace(evolution.islands, executor=None)
    return {name: _text(value) for name, value in values.items() if name not in _FREE}


def _text(value: Any) -> str:
    """Return the repr of a value without what differs between two processes."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, Configuration):
        parts = [
            f"{name}={_text(one)}" for name, one in value.get_params(deep=False).items()
        ]
        return f"{type(value).__name__}({', '.join(parts)})"
    if isinstance(value, Mapping):
        return (
            "{" + ", ".join(f"{_text(k)}: {_text(v)}" for k, v in value.items()) + "}"
        )
    if isinstance(value, set | frozenset):
        return "{" + ", ".join(sorted(map(_text, value))) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_text, value)) + "]"
    if isinstance(value, partial):
        return f"partial{_text([value.func, value.args, value.keywords])}"
    if isinstance(tree := getattr(value, "tree_", value), ObliqueTree):
        return _text(list(tree.splits))
    if hasattr(value, "__array__"):  # the repr of a long one leaves out what is inside
        array = np.ascontiguousarray(value)
        if array.dtype.hasobject:
            return _text(array.tolist())
        digest = hashlib.sha256(array.data).hexdigest()
        return f"{type(value).__name__}({array.dtype}, {array.shape}, {digest[:16]})"
    if callable(value) and hasattr(value, "__qualname__"):
        name = f"{value.__module__}.{value.__qualname__}"
        # Others may have the same name, in this process, too.
        return f"{name}{_WITHOUT_NAME}{id(value):#x}" if "<" in name else name
    text = repr(value)
    return type(value).__qualname__ if " at 0x" in text else text


_WITHOUT_NAME = " without a name of its own, at "


def check_checkpoint(config: SearchConfig) -> None:
    """Refuse a file that cannot be written, and parameters that it cannot tell from others."""
    checkpoint = checkpoint_of(config)
    if checkpoint is None:
        return
    check_writable(checkpoint.path)
    for name, text in compared(config).items():
        if _WITHOUT_NAME in text:
            why = "a checkpoint cannot recognize lambdas and functions inside of functions"
            has = f"{name} has {text.partition(_WITHOUT_NAME)[0]}"
            raise ValueError(f"{has}: {why}; allowed are functions of a module.")


def describe(config: SearchConfig, choice: Choice, stage: int) -> dict[str, Any]:
    """Return what a checkpoint keeps of a search, at one of its samples; plain data."""
    return {
        "parameters": compared(config),
        "seed": choice.seed,
        "size_penalty": choice.penalties.size,
        "term_penalty": choice.penalties.term,
        "leaves": choice.leaves and [*choice.leaves.strength, choice.leaves.at],
        "stage": stage,
    }


def read_choice(
    told: Mapping[str, Any], config: SearchConfig, path: PathLike
) -> tuple[Choice, int]:
    """Return the choice of the run of a checkpoint, and the number of its sample."""
    try:
        before = {str(name): str(value) for name, value in told["parameters"].items()}
        penalties = Penalties(float(told["size_penalty"]), float(told["term_penalty"]))
        leaves = told.get("leaves")
        if leaves is not None:
            C, halvings, at = leaves
            strength = Strength(float(C), range(HALVINGS + 1).index(halvings))
            leaves = Rival(strength, None if at is None else int(at))
        choice = Choice(int(told["seed"]), penalties, leaves)
        stage = range(2**31).index(told["stage"])
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
    for name, value in compared(config).items():
        if before.get(name) != value:
            had = f"the run in {path} has {name}={before.get(name)}"
            only = "it continues with the same parameters only, except for limits"
            raise ValueError(f"{name}={value}: {had}; {only}.")
    return choice, stage
