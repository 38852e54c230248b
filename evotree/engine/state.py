"""Checkpoints: the whole state of a run in one file, which is data and never code.

A line names the format, its version and the digest of what follows: NumPy's arrays, one after the
other, of which the first holds all that is no array, as JSON. The partitions of the trees are no
part of it: made from scratch they are the same, bit for bit. A run that goes on from its file
reaches the end that it would have reached without. The digest says whether a file is as it was
written, so that no field needs a check of its own. Trees are checked still: the kernels that read
them check nothing.

A search continues an earlier one, of a file or of the same estimator, only if its rows and all
parameters are the same but those that say how long it may take and who is told of it.
"""

import json
import re
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from deap import base, tools

from evotree.configuration import UNKNOWN, as_text
from evotree.dataset import Dataset
from evotree.engine.choice import Candidate, Choice
from evotree.engine.config import Checkpoint
from evotree.engine.evolution import Run, logbook_of, plain_logbook
from evotree.engine.finish import Result
from evotree.engine.problem import Penalties, Problem
from evotree.files import PathLike, check_writable, write_whole
from evotree.fitness.base import FITNESS_OF_SCORES
from evotree.fitness.probabilities import Strength
from evotree.operators.structure.splice import make_individual
from evotree.tables.readers import reading
from evotree.tree import FitnessMax, Individual, ObliqueTree, Outcome

FORMAT, VERSION = "evotree checkpoint", 12

ARRAYS = ("weights", "thresholds", "subtree_size", "answers")
"""The arrays of a tree that are kept."""

KINDS_OF_FITNESS: Mapping[str, type[base.Fitness]] = {
    kind.__name__: kind for kind in (FitnessMax, *FITNESS_OF_SCORES.values())
}
"""Kinds of fitness that can be kept."""

# An array by its id, with its place in the file: each is there once, however many trees share it.
_Places = dict[int, tuple[int, np.ndarray]]


# ---- writing -------------------------------------------------------------------------------------


def save_checkpoint(
    path: PathLike, run: Run, dataset: Dataset, settings: Mapping[str, Any]
) -> None:
    """Write a run to a file, whole or not at all."""
    places: _Places = {}
    state = {
        "data": dataset.fingerprint,
        "settings": dict(settings),
        "runs": [_run_as_data(part, places) for part in run.parts],
    }
    text = json.dumps(state, default=np.generic.item)  # NumPy's numbers as Python's
    write_sealed(path, text, [array for _, array in places.values()])


def write_sealed(path: PathLike, text: str, arrays: Sequence[np.ndarray]) -> None:
    """Write a text and arrays to a file, with their digest."""
    body = BytesIO()
    for array in (np.frombuffer(text.encode(), dtype=np.uint8), *arrays):
        np.save(body, array, allow_pickle=False)
    content = body.getvalue()
    head = f"{FORMAT} {VERSION} {sha256(content).hexdigest()}\n".encode()
    write_whole(path, lambda file: file.write(head + content))


_GROUPS = ("population", "hall_of_fame", "pareto_front", "front_only")
"""Attributes of a run that are individuals."""

_PLAIN_ATTRIBUTES = (
    "best_fitness",
    "origins",
    "generation",
    "seconds",
    "last_improvement",
)
"""Attributes of a run that are plain data."""


def _run_as_data(run: Run, places: _Places) -> dict[str, Any]:
    """Return a run as plain data; the arrays of its trees are added to `places`."""
    groups = {name: getattr(run, name) for name in _GROUPS}
    groups["best_trees_of"] = run.best_trees.values()
    return {
        **{
            name: [_tree_as_data(one, places) for one in group]
            for name, group in groups.items()
        },
        **{name: getattr(run, name) for name in _PLAIN_ATTRIBUTES},
        "hall_of_fame_size": run.hall_of_fame.maxsize,
        "best_trees": list(run.best_trees),
        "logbook": plain_logbook(run.logbook),
    }


def _tree_as_data(individual: Individual, places: _Places) -> dict[str, Any]:
    arrays = [getattr(individual, name) for name in ARRAYS]
    stream = individual.stream
    return {
        "nodes": [places.setdefault(id(a), (len(places), a))[0] for a in arrays],
        "kind": type(individual.fitness).__name__,
        "fitness": list(individual.fitness.wvalues),
        "quality": individual.quality,
        "stream": None if stream is None else int(stream[0]),
        "origin": individual.origin,
        "outcome": None if individual.outcome is None else list(individual.outcome),
    }


# ---- reading -------------------------------------------------------------------------------------


def load_checkpoint(path: PathLike, dataset: Dataset) -> list[Run]:
    """Read a run, or its islands, from a file; nothing in it is executed."""
    with reading(path):
        text, arrays = read_sealed(path)
        state = json.loads(text)
        if state["data"] != dataset.fingerprint:
            raise ValueError("it is a checkpoint of other rows")
        return list(map(RunLoader(arrays, dataset).run, state["runs"]))


def read_sealed(path: PathLike) -> tuple[str, list[np.ndarray]]:
    """Return the text and the arrays of a file, if they are as they were written."""
    head, _, content = Path(path).read_bytes().partition(b"\n")
    written = re.fullmatch(rf"{FORMAT} (\d+) (\w+)".encode(), head)
    if written is None:
        raise ValueError("it is not a checkpoint")
    version, digest = map(bytes.decode, written.groups())
    if version != str(VERSION):
        raise ValueError(f"it is a checkpoint of version {version}; known is {VERSION}")
    if digest != sha256(content).hexdigest():
        raise ValueError("it is not as it was written")
    body, arrays = BytesIO(content), []
    while body.tell() < len(content):
        arrays.append(np.load(body, allow_pickle=False))
    return arrays[0].tobytes().decode(), arrays[1:]


class RunLoader:
    """Makes runs of what a file holds."""

    def __init__(self, arrays: Sequence[np.ndarray], dataset: Dataset) -> None:
        self.arrays = arrays
        self.dataset = dataset
        self.made: dict[tuple[int, ...], Individual] = {}

    def individual(self, data: Mapping[str, Any]) -> Individual:
        """Make one individual; equal trees share their arrays as before."""
        places = tuple(data["nodes"])
        if places not in self.made:
            self.made[places] = self._checked(*(self.arrays[k] for k in places))
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
        run = Run(made["population"], logbook_of(data["logbook"]))
        run.hall_of_fame = tools.HallOfFame(data["hall_of_fame_size"])
        # Of equals DEAP puts the last that comes first.
        run.hall_of_fame.update(made["hall_of_fame"][::-1])
        run.pareto_front.update(made["pareto_front"][::-1])
        run.best_trees = dict(
            zip(data["best_trees"], made["best_trees_of"], strict=True)
        )
        run.front_only = made["front_only"]
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


def read_choice(path: PathLike, parameters: Mapping[str, str]) -> tuple[Choice, int]:
    """Return the choice of the run of a checkpoint, and the number of its sample."""
    with reading(path):
        settings = json.loads(read_sealed(path)[0])["settings"]
        kind, at, strength, is_scored = settings["winner"]
        choice = Choice(
            settings["seed"],
            Penalties(*settings["penalties"]),
            Candidate(kind, at, strength and Strength(*strength), is_scored),
            settings["logistic"] and Strength(*settings["logistic"]),
        )
        before, stage = settings["parameters"], settings["stage"]
    for name, value in parameters.items():
        if before.get(name) != value:
            raise ValueError(
                f"{name}={value}: the run in {path} has {name}={before.get(name)}; it continues "
                "with the same parameters only, except for limits."
            )
    return choice, stage
