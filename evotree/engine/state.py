"""Checkpoints: the whole state of a run in one file, which is data and never code.

A file holds the trees as arrays and all else as JSON, in NumPy's format ``.npz``. The partitions of
the trees are no part of it: made from scratch they are the same, bit for bit. A run that goes on
from its file reaches the end that it would have reached without.

A search continues an earlier one, of a file or of the same estimator, only if its rows and all
parameters are the same but those that say how long it may take and who is told of it.
"""

import io
import json
import math
import warnings
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from deap import base, tools

from evotree.configuration import UNKNOWN, as_text
from evotree.dataset import Dataset
from evotree.engine.choice import CANDIDATES, LINEAR, Candidate, Choice
from evotree.engine.config import SearchConfig, checkpoint_of, evolution_of
from evotree.engine.evolution import (
    CHAPTERS,
    ORIGIN,
    REFINEMENT,
    Run,
    islands_of,
    make_logbook,
)
from evotree.engine.finish import Result
from evotree.engine.problem import Penalties
from evotree.files import PathLike, check_writable, write_whole
from evotree.fitness.base import FITNESS_OF_SCORES
from evotree.fitness.probabilities import HALVINGS, Strength
from evotree.operators.initialization.logistic import LOGISTIC
from evotree.operators.structure.splice import checked_arrays, make_individual
from evotree.tree import FitnessMax, Individual, Outcome, set_fitness

FORMAT, VERSION = "evotree checkpoint", 8

ARRAYS = {"weights": np.float64, "thresholds": np.float64, "subtree_size": np.int32}
"""The arrays of trees, and their types."""

KINDS: Mapping[str, type[base.Fitness]] = {
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
        "runs": [describe_run(one, arrays) for one in islands_of(run)],
    }
    text = json.dumps(state, default=np.generic.item)  # NumPy's numbers as Python's
    content = arrays.flat() | {"state": np.frombuffer(text.encode(), dtype=np.uint8)}
    write_whole(path, lambda file: np.savez(file, **content))


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


def _number(value: Any) -> float:
    """Return a finite number."""
    if not isinstance(value, int | float) or not math.isfinite(value):
        raise ValueError(f"{value!r} in the place of a number")
    return float(value)


_PLAIN: Mapping[str, Callable[[Any], Any]] = {
    "best_fitness": lambda values: tuple(map(_number, values)),
    "origins": lambda names: [str(name) for name in names],
    "generation": int,
    "seconds": _number,
    "compile_seconds": _number,
    "last_improvement": int,
}
"""Attributes of a run that are plain data, and how each is read."""


def describe_run(run: Run, arrays: TreeArrays) -> dict[str, Any]:
    """Return a run as plain data; the arrays of its trees are added to `arrays`."""
    groups = {name: getattr(run, name) for name in _GROUPS}
    groups["best_trees_of"] = run.best_trees.values()
    return {
        **{
            name: [_describe(one, arrays) for one in group]
            for name, group in groups.items()
        },
        **{name: getattr(run, name) for name in _PLAIN},
        "hall_of_fame_size": run.hall_of_fame.maxsize,
        "best_trees": list(run.best_trees),
        "logbook": list(run.logbook),
        "chapters": {
            name: list(book) for name, book in run.logbook.chapters.items() if book
        },
    }


def _describe(individual: Individual, arrays: TreeArrays) -> dict[str, Any]:
    kind = type(individual.fitness)
    if KINDS.get(kind.__name__) is not kind:
        raise ValueError(
            f"a fitness of the kind {kind.__name__} cannot be kept: allowed are "
            f"{', '.join(KINDS)}."
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
        return dict(_read(path)[1]["settings"])


def load_checkpoint(path: PathLike, dataset: Dataset) -> list[Run]:
    """Read a run, or its islands, from a file; nothing in it is executed."""
    with _telling(path):
        arrays, state = _read(path)
        if state["data"] != dataset.fingerprint:
            raise _Refused("is a checkpoint of other rows")
        load = RunLoader(arrays, dataset)
        runs = [
            load.run(data, of_island=len(state["runs"]) > 1) for data in state["runs"]
        ]
    if not runs:
        raise ValueError(f"{path} holds no run.")
    return runs


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
        raise ValueError(f"{path} {_shortened(str(refused))}.") from None
    except Exception as error:
        raise ValueError(
            f"{path} is not a checkpoint, or is torn: {_shortened(repr(error))}."
        ) from error


def _shortened(text: str) -> str:
    return (
        text
        if len(text) <= _MAX_REASON_CHARACTERS
        else f"{text[:_MAX_REASON_CHARACTERS]}..."
    )


def _read(path: PathLike) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Return the arrays and the JSON of a file."""
    with zipfile.ZipFile(path) as archive:
        # What is not compressed is no longer than the file.
        if any(
            member.compress_type != zipfile.ZIP_STORED for member in archive.infolist()
        ):
            raise _Refused("is not a checkpoint: it is compressed")
        arrays = {}
        for name in ("state", *ARRAYS, *(f"{name}_start" for name in ARRAYS)):
            content = io.BytesIO(archive.read(f"{name}.npy"))  # checks its sum
            arrays[name] = np.lib.format.read_array(content, allow_pickle=False)
    state = json.loads(arrays.pop("state").tobytes().decode())
    if state["format"] != FORMAT:
        raise _Refused("is not a checkpoint")
    if state["version"] != VERSION:
        raise _Refused(
            f"is a checkpoint of version {state['version']!r}; known is {VERSION}"
        )
    return arrays, state


class RunLoader:
    """Makes runs of what a file holds."""

    def __init__(self, arrays: Mapping[str, np.ndarray], dataset: Dataset) -> None:
        self.dataset = dataset
        self.held: list[list[np.ndarray]] = []
        for name, dtype in ARRAYS.items():
            flat, start = arrays[name], arrays[f"{name}_start"]
            if flat.dtype != dtype or start.dtype != np.int64 or start.ndim != 1:
                raise ValueError(f"{name} is of type {flat.dtype}")
            bounds = start.tolist()
            if bounds[0] != 0 or bounds[-1] != len(flat) or bounds != sorted(bounds):
                raise ValueError(f"{name}_start does not part {name}")
            self.held.append([flat[a:b].copy() for a, b in pairwise(bounds)])
        self.made: dict[tuple[int, ...], Individual] = {}

    def individual(self, data: Mapping[str, Any]) -> Individual:
        """Make one individual; equal trees share their arrays as before."""
        places = tuple(data["nodes"])
        if places not in self.made:
            if any(not isinstance(at, int) or at < 0 for at in places):
                raise ValueError(f"nodes={places!r}")
            nodes = [arrays[at] for arrays, at in zip(self.held, places, strict=True)]
            checked = checked_arrays(*nodes)
            if checked[0].shape[1] != self.dataset.X.shape[1]:
                raise ValueError(f"weights of shape {checked[0].shape}")
            made = make_individual(self.dataset, *checked)
            if len(made) == len(checked[0]):
                # Some arrays may be shared with others, by which clones are known.
                made.weights, made.thresholds, made.subtree_size = nodes
            self.made[places] = made
        one = self.made[places].clone()
        one.measured(_number(data["quality"]))  # other rows may have said it
        one.fitness = KINDS[data["kind"]]()
        if data["fitness"]:
            weighted = zip(data["fitness"], one.fitness.weights, strict=True)
            set_fitness(
                one, tuple(_number(value) / weight for value, weight in weighted)
            )
        if data["stream"] is not None:
            one.stream = np.array([data["stream"]], dtype=np.uint64)
        one.origin = str(data["origin"])
        if data["outcome"] is not None:
            operator, gain, seconds = data["outcome"]
            one.outcome = Outcome(str(operator), float(gain), float(seconds))
        return one

    def run(self, data: Mapping[str, Any], of_island: bool) -> Run:
        """Make one run; the records of islands are those that `join` reads."""
        groups = (*_GROUPS, "best_trees_of")
        made = {name: [self.individual(one) for one in data[name]] for name in groups}
        population = made["population"]
        if len(population) < 2 or not all(one.fitness.wvalues for one in population):
            raise ValueError(f"a population of {len(population)} individuals")
        run = Run(population)
        if data["hall_of_fame_size"] < len(data["hall_of_fame"]):
            raise ValueError(f"a hall of fame of {data['hall_of_fame_size']}")
        run.hall_of_fame = tools.HallOfFame(int(data["hall_of_fame_size"]))
        run.hall_of_fame.items[:] = made["hall_of_fame"]
        run.hall_of_fame.keys[:] = [
            one.fitness for one in reversed(run.hall_of_fame.items)
        ]
        run.pareto_front.restore(made["pareto_front"])
        run.best_trees = dict(
            zip(map(int, data["best_trees"]), made["best_trees_of"], strict=True)
        )
        run.front_only = made["front_only"]
        run.logbook = _logbook(data["logbook"], data["chapters"], of_island)
        for name, read in _PLAIN.items():
            setattr(run, name, read(data[name]))
        if len(run.best_fitness) != len(run.best.fitness.wvalues):
            raise ValueError(f"best_fitness={run.best_fitness!r}")
        if not 0 <= run.last_improvement <= run.generation == len(run.logbook) - 1:
            raise ValueError(
                f"generation {run.generation} of {len(run.logbook)} records"
            )
        return run


def _logbook(
    records: Sequence[Any], chapters: Mapping[str, Sequence[Any]], of_island: bool
) -> tools.Logbook:
    """Return a logbook; what others than its user read of it is checked."""
    numbers: dict[str, Any] = dict.fromkeys(
        CHAPTERS, ("best", "mean", "std") if of_island else ()
    )
    if of_island and not chapters.keys() >= set(CHAPTERS):
        raise ValueError(f"an island with the chapters {list(chapters)}")
    logbook = make_logbook()
    for gen, record in enumerate(records):
        if [
            _number(record[name]) for name in ("gen", "nevals", "diversity", "seconds")
        ][0] != gen:
            raise ValueError(f"{record['gen']!r} in the place of generation {gen}")
        logbook.append(dict(record))
    for name, rows in chapters.items():
        if len(rows) != len(records):
            raise ValueError(f"the chapter {name} has {len(rows)} records")
        for row, record in zip(rows, records, strict=True):
            # DEAP repeats in each chapter what a record says of the whole population.
            own = row.keys() - record.keys() if name in (ORIGIN, REFINEMENT) else ()
            for number in (*own, *numbers.get(name, ())):
                _number(row[number])
            logbook.chapters[name].append(dict(row))
    return logbook


# ---- as a callback -------------------------------------------------------------------------------


@dataclass
class CheckpointWriter:
    """A callback that writes a run to a file every some generations."""

    path: PathLike
    dataset: Dataset  # the rows that the run evolves on
    settings: Mapping[str, Any] = field(default_factory=dict)  # JSON, kept with the run
    # Generations between two writings; of islands, at the end of an epoch.
    every: int = 10

    def __post_init__(self) -> None:
        if self.every < 1:
            raise ValueError(
                f"checkpoint_every={self.every!r}: allowed are integers from 1."
            )
        check_writable(self.path)
        self._written = 0

    def __call__(self, run: Run) -> None:
        """Write the run if it is time to."""
        if run.generation - self._written >= self.every:
            self.write(run)

    def write(self, run: Run) -> None:
        """Write the run."""
        save_checkpoint(self.path, run, self.dataset, self.settings)
        self._written = run.generation


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


# ---- what a file keeps ---------------------------------------------------------------------------


def check_checkpoint(config: SearchConfig, parameters: Mapping[str, str]) -> None:
    """Refuse a file that cannot be written, and parameters that it cannot tell from others."""
    checkpoint = checkpoint_of(config)
    if checkpoint is None:
        return
    check_writable(checkpoint.path)
    for name, text in parameters.items():
        if UNKNOWN in text:
            raise ValueError(
                f"{name} has {text.partition(UNKNOWN)[0]}: a checkpoint cannot recognize lambdas, "
                "functions inside of functions, and objects whose attributes cannot be compared; "
                "allowed are functions of a module."
            )


def describe(
    parameters: Mapping[str, str], choice: Choice, stage: int
) -> dict[str, Any]:
    """Return what a checkpoint keeps of a search, at one of its samples; plain data."""
    winner, logistic = choice.winner, choice.logistic
    return {
        "parameters": dict(parameters),
        "seed": choice.seed,
        "size_penalty": choice.penalties.size,
        "term_penalty": choice.penalties.term,
        "winner": list(winner),
        "logistic": logistic,
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
        kind, at, strength, is_bent = settings["winner"]
        winner = Candidate(
            CANDIDATES[CANDIDATES.index(kind)],
            None if at is None else range(2**31).index(at),
            _read_strength(strength),
            (False, True)[is_bent],
        )
        if (kind in (LOGISTIC, LINEAR)) != (winner.strength is not None):
            raise ValueError(f"{kind} with the strength {strength}")
        choice = Choice(
            range(2**63).index(settings["seed"]),
            penalties,
            winner,
            _read_strength(settings["logistic"]),
        )
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


def _read_strength(values: Any) -> Strength | None:
    """Return the strength of logistic models that a checkpoint has, if it has one."""
    if values is None:
        return None
    C, halvings = values
    return Strength(float(C), range(HALVINGS + 1).index(halvings))
