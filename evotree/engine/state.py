"""Checkpoints: the whole state of a run in one file, which is data and never code.

A file holds the trees as arrays and all else as JSON, in NumPy's format ``.npz``. The partitions of
the trees are no part of it: made from scratch they are the same, bit for bit. A run that goes on
from its file reaches the end that it would have reached without. A digest of the whole says whether
a file is as it was written, so that no field needs a check of its own. Trees are checked still: the
kernels that read them check nothing.

A search continues an earlier one, of a file or of the same estimator, only if its rows and all
parameters are the same but those that say how long it may take and who is told of it.
"""

import json
import warnings
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from hashlib import sha256
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from deap import base, tools

from evotree.configuration import UNKNOWN, as_text
from evotree.dataset import Dataset
from evotree.engine.choice import Candidate, Choice
from evotree.engine.config import (
    Checkpoint,
)
from evotree.engine.evolution import Run, keys_of, logbook_of, plain_logbook
from evotree.engine.finish import Result
from evotree.engine.problem import Penalties, Problem
from evotree.files import PathLike, check_writable, write_whole
from evotree.fitness.base import FITNESS_OF_SCORES
from evotree.fitness.probabilities import Strength
from evotree.operators.structure.splice import make_individual
from evotree.tree import FitnessMax, Individual, ObliqueTree, Outcome

FORMAT, VERSION = "evotree checkpoint", 12

ARRAYS = ("weights", "thresholds", "subtree_size", "answers")
"""The arrays of a tree that are kept."""

KINDS_OF_FITNESS: Mapping[str, type[base.Fitness]] = {
    kind.__name__: kind for kind in (FitnessMax, *FITNESS_OF_SCORES.values())
}
"""Kinds of fitness that can be kept."""

_MAX_REASON_CHARACTERS = 200  # in the message that refuses a file


# ---- writing -------------------------------------------------------------------------------------


def save_checkpoint(
    path: PathLike, run: Run, dataset: Dataset, settings: Mapping[str, Any]
) -> None:
    """Write a run to a file, whole or not at all."""
    arrays = TreeArrays()
    state = {
        "format": FORMAT,
        "version": VERSION,
        "data": dataset.fingerprint,
        "settings": dict(settings),
        "runs": [_run_as_data(part, arrays) for part in run.parts],
    }
    text = json.dumps(state, default=np.generic.item)  # NumPy's numbers as Python's
    content = arrays.flat() | {"state": np.frombuffer(text.encode(), dtype=np.uint8)}
    content["digest"] = _sha256(content)
    write_whole(path, lambda file: np.savez(file, **content))


def _sha256(content: Mapping[str, np.ndarray]) -> np.ndarray:
    """Return the SHA-256 of named arrays, as bytes."""
    digest = sha256()
    for name, array in sorted(content.items()):
        digest.update(f"{name} {array.dtype} {array.shape} ".encode())
        digest.update(array.tobytes())
    return np.frombuffer(digest.digest(), dtype=np.uint8)


@dataclass
class TreeArrays:
    """Arrays of trees, each held once, however many trees share it."""

    held: dict[str, list[np.ndarray]] = field(
        default_factory=lambda: {k: [] for k in ARRAYS}
    )
    place: dict[tuple[str, int], int] = field(default_factory=dict)

    def add(self, name: str, array: np.ndarray) -> int:
        """Return the place of an array."""
        place = self.place.setdefault((name, id(array)), len(self.held[name]))
        if place == len(self.held[name]):
            self.held[name].append(array)
        return place

    def flat(self) -> dict[str, Any]:
        """Return the arrays one after the other, and where each begins."""
        starts = {
            f"{name}_start": np.cumsum([0, *map(len, arrays)], dtype=np.int64)
            for name, arrays in self.held.items()
        }
        return {
            name: np.concatenate(arrays) for name, arrays in self.held.items()
        } | starts


_GROUPS = ("population", "hall_of_fame", "pareto_front", "front_only")
"""Attributes of a run that are individuals."""

_PLAIN_ATTRIBUTES = (
    "best_fitness",
    "origins",
    "generation",
    "seconds",
    "compile_seconds",
    "last_improvement",
)
"""Attributes of a run that are plain data."""


def _run_as_data(run: Run, arrays: TreeArrays) -> dict[str, Any]:
    """Return a run as plain data; the arrays of its trees are added to `arrays`."""
    groups = {name: getattr(run, name) for name in _GROUPS}
    groups["best_trees_of"] = run.best_trees.values()
    return {
        **{
            name: [_tree_as_data(one, arrays) for one in group]
            for name, group in groups.items()
        },
        **{name: getattr(run, name) for name in _PLAIN_ATTRIBUTES},
        "hall_of_fame_size": run.hall_of_fame.maxsize,
        "best_trees": list(run.best_trees),
        "logbook": plain_logbook(run.logbook),
    }


def _tree_as_data(individual: Individual, arrays: TreeArrays) -> dict[str, Any]:
    kind = type(individual.fitness)
    if KINDS_OF_FITNESS.get(kind.__name__) is not kind:
        raise ValueError(
            f"a fitness of the kind {kind.__name__} cannot be kept: allowed are "
            f"{', '.join(KINDS_OF_FITNESS)}."
        )
    stream = individual.stream
    return {
        "nodes": [arrays.add(name, getattr(individual, name)) for name in ARRAYS],
        "kind": kind.__name__,
        "fitness": list(individual.fitness.wvalues),
        "quality": individual.quality,
        "stream": None if stream is None else int(stream[0]),
        "origin": individual.origin,
        "outcome": None if individual.outcome is None else list(individual.outcome),
    }


# ---- reading -------------------------------------------------------------------------------------


def read_settings(path: PathLike) -> dict[str, Any]:
    """Read what the run of a file was told, without its trees."""
    with _telling(path):
        return dict(_read_checkpoint(path)[1]["settings"])


def load_checkpoint(path: PathLike, dataset: Dataset) -> list[Run]:
    """Read a run, or its islands, from a file; nothing in it is executed."""
    with _telling(path):
        arrays, state = _read_checkpoint(path)
        if state["data"] != dataset.fingerprint:
            raise _Refused("is a checkpoint of other rows")
        return list(map(RunLoader(arrays, dataset).run, state["runs"]))


class _Refused(Exception):
    """A file that is what it seems to be, and still cannot be used."""


@contextmanager
def _telling(path: PathLike) -> Iterator[None]:
    """Turn whatever a wrong file leads to into one error that names the file."""
    with open(path, "rb"):  # says what is wrong with the path itself
        pass
    try:
        yield
    except _Refused as refused:
        raise ValueError(f"{path} {_reason(str(refused))}.") from None
    except Exception as error:
        raise ValueError(
            f"{path} is not a checkpoint, or is torn: {_reason(repr(error))}."
        ) from error


def _reason(text: str) -> str:
    return (
        text
        if len(text) <= _MAX_REASON_CHARACTERS
        else f"{text[:_MAX_REASON_CHARACTERS]}..."
    )


def _read_checkpoint(path: PathLike) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Return the arrays and the JSON of a file."""
    with zipfile.ZipFile(path) as archive:
        # What is not compressed is no longer than the file.
        if any(
            member.compress_type != zipfile.ZIP_STORED for member in archive.infolist()
        ):
            raise _Refused("is not a checkpoint: it is compressed")
    with np.load(path, allow_pickle=False) as file:
        arrays = dict(file)
    digest = arrays.pop("digest", np.empty(0))
    state = json.loads(arrays["state"].tobytes())
    if state["format"] != FORMAT:
        raise _Refused("is not a checkpoint")
    if state["version"] != VERSION:
        raise _Refused(
            f"is a checkpoint of version {state['version']!r}; known is {VERSION}"
        )
    if not np.array_equal(digest, _sha256(arrays)):
        raise ValueError("it is not as it was written")
    return arrays, state


class RunLoader:
    """Makes runs of what a file holds."""

    def __init__(self, arrays: Mapping[str, np.ndarray], dataset: Dataset) -> None:
        self.dataset = dataset
        self.held = [
            [
                arrays[name][first:last].copy()
                for first, last in pairwise(arrays[f"{name}_start"].tolist())
            ]
            for name in ARRAYS
        ]
        self.made: dict[tuple[int, ...], Individual] = {}

    def individual(self, data: Mapping[str, Any]) -> Individual:
        """Make one individual; equal trees share their arrays as before."""
        places = tuple(data["nodes"])
        if places not in self.made:
            nodes = [held[k] for held, k in zip(self.held, places, strict=True)]
            self.made[places] = self._checked(*nodes)
        individual = self.made[places].clone()
        individual.measured(data["quality"])  # other rows may have said it
        individual.fitness = KINDS_OF_FITNESS[data["kind"]]()
        individual.fitness.wvalues = tuple(data["fitness"])
        if data["stream"] is not None:
            individual.stream = np.array([data["stream"]], dtype=np.uint64)
        individual.origin = data["origin"]
        if data["outcome"] is not None:
            individual.outcome = Outcome(*data["outcome"])
        return individual

    def _checked(
        self,
        weights: np.ndarray,
        thresholds: np.ndarray,
        subtree_size: np.ndarray,
        answers: np.ndarray,
    ) -> Individual:
        """Return an individual of arrays, which it shares, if they are a tree over the rows."""
        blank = np.zeros((len(subtree_size), 1))
        tree = ObliqueTree(weights, thresholds, subtree_size, blank).validate()
        n_features, n_answers = weights.shape[1], len(answers)
        if (n_features, n_answers) != (self.dataset.X.shape[1], len(tree)):
            raise ValueError(f"{n_features} features, {n_answers} answers")
        made = make_individual(self.dataset, *tree.splits, answers)
        if len(made) == len(tree):
            # Some arrays may be shared with others, by which clones are known.
            made.weights, made.thresholds, made.subtree_size = tree.splits
            made.answers = answers
        return made

    def run(self, data: Mapping[str, Any]) -> Run:
        """Make one run."""
        groups = (*_GROUPS, "best_trees_of")
        made = {name: [self.individual(one) for one in data[name]] for name in groups}
        run = Run(made["population"])
        run.hall_of_fame = tools.HallOfFame(data["hall_of_fame_size"])
        for name in ("hall_of_fame", "pareto_front"):
            archive = getattr(run, name)
            archive.items[:] = made[name]
            archive.keys[:] = keys_of(made[name])
        run.best_trees = dict(
            zip(data["best_trees"], made["best_trees_of"], strict=True)
        )
        run.front_only = made["front_only"]
        run.logbook = logbook_of(data["logbook"])
        for name in _PLAIN_ATTRIBUTES:
            setattr(run, name, data[name])
        run.best_fitness = tuple(run.best_fitness)
        return run


# ---- as a callback -------------------------------------------------------------------------------


@dataclass
class CheckpointWriter:
    """A callback that writes a run to a file every some generations."""

    path: PathLike
    dataset: Dataset  # the rows that the run evolves on
    settings: Mapping[str, Any] = field(default_factory=dict)  # JSON, kept with the run
    # Generations between two writings; of islands, at the end of an epoch.
    every: int = 10
    written: int = 0  # the generation that is in the file

    def __call__(self, run: Run) -> None:
        """Write the run if it is time to."""
        if run.generation - self.written >= self.every:
            self.write(run)

    def write(self, run: Run) -> None:
        """Write the run."""
        save_checkpoint(self.path, run, self.dataset, self.settings)
        self.written = run.generation


_MAY_CHANGE = {
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


# ---- continuing ----------------------------------------------------------------------------------


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
        compared(result.problem),
        result.rows.fingerprint,
        result.run.parts,
    )


def warn_of_a_fresh_start(continues: Continuation, problem: Problem) -> None:
    """Say why a search does not continue an earlier one."""
    changed = [
        name
        for name, value in compared(problem).items()
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


def compared(problem: Problem) -> dict[str, str]:
    """Return the parameters that must be the same when a search continues, as text."""
    evolution = problem.evolution
    values = problem.config.get_params(deep=False) | evolution.get_params(deep=False)
    values["class_weight"] = problem.class_weight
    values["islands"] = replace(evolution.islands, executor=None)
    return {
        name: as_text(value)
        for name, value in values.items()
        if name not in _MAY_CHANGE
    }


# ---- what a file keeps ---------------------------------------------------------------------------


def check_checkpoint(checkpoint: Checkpoint, parameters: Mapping[str, str]) -> None:
    """Refuse a file that cannot be written, and parameters that it cannot tell from others."""
    check_writable(checkpoint.path)
    for name, text in parameters.items():
        if UNKNOWN in text:
            raise ValueError(
                f"{name} has {text.partition(UNKNOWN)[0]}: a checkpoint cannot recognize lambdas, "
                "functions inside of functions, and objects whose attributes cannot be compared; "
                "allowed are functions of a module."
            )


def settings_of(
    parameters: Mapping[str, str], choice: Choice, stage: int
) -> dict[str, Any]:
    """Return what a checkpoint keeps of a search, at one of its samples; plain data."""
    return {"parameters": dict(parameters), "stage": stage, **choice._asdict()}


def read_choice(
    settings: Mapping[str, Any], parameters: Mapping[str, str], path: PathLike
) -> tuple[Choice, int]:
    """Return the choice of the run of a checkpoint, and the number of its sample."""
    if "winner" not in settings:
        raise ValueError(f"{path} was not written by a search.")
    before = settings["parameters"]
    for name, value in parameters.items():
        if before.get(name) != value:
            raise ValueError(
                f"{name}={value}: the run in {path} has {name}={before.get(name)}; it continues "
                "with the same parameters only, except for limits."
            )
    kind, at, strength, is_scored = settings["winner"]
    choice = Choice(
        settings["seed"],
        Penalties(*settings["penalties"]),
        Candidate(kind, at, strength and Strength(*strength), is_scored),
        settings["logistic"] and Strength(*settings["logistic"]),
    )
    return choice, settings["stage"]
