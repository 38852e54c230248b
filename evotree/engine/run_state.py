"""The state of a run as arrays and plain data, and back.

The arrays are those of the trees; the partitions are no part of them: made from scratch they are
the same, bit for bit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from deap import base, tools

from evotree.dataset import Dataset
from evotree.engine.evolution import Evolution
from evotree.engine.history import make_logbook
from evotree.fitness.objectives import FitnessQualitySize
from evotree.individual import FitnessMax, Individual, Outcome
from evotree.operators.refinement.policy import Spent
from evotree.operators.structure.splice import make_individual
from evotree.tree import ObliqueTree

ARRAYS = {"weights": np.float64, "thresholds": np.float64, "subtree_size": np.int32}
"""The arrays of trees, and their types."""

KINDS: Mapping[str, type[base.Fitness]] = {
    kind.__name__: kind for kind in (FitnessMax, FitnessQualitySize)
}
"""Kinds of fitness that can be kept."""


# ---- writing -------------------------------------------------------------------------------------


@dataclass
class TreeArrays:
    """Arrays of trees, each held once, however many trees share it."""

    held: dict[str, list[np.ndarray]] = field(default_factory=lambda: {k: [] for k in ARRAYS})
    place: dict[tuple[str, int], int] = field(default_factory=dict)

    def add(self, name: str, array: np.ndarray) -> int:
        """Return the place of an array."""
        key = name, id(array)
        if key not in self.place:
            self.place[key] = len(self.held[name])
            self.held[name].append(array)
        return self.place[key]

    def flat(self) -> dict[str, np.ndarray]:
        """Return the arrays one after the other, and where each begins."""
        found = {}
        for name, arrays in self.held.items():
            found[name] = np.concatenate(arrays)
            found[f"{name}_start"] = np.cumsum([0, *map(len, arrays)], dtype=np.int64)
        return found


def describe_run(run: Evolution, arrays: TreeArrays) -> dict[str, Any]:
    """Return a run as plain data; the arrays of its trees are added to `arrays`."""

    def all_of(members: Sequence[Individual]) -> list[dict[str, Any]]:
        return [_describe(one, arrays) for one in members]

    return {
        "population": all_of(run.population),
        "hall_of_fame": all_of(run.hall_of_fame.items),
        "hall_of_fame_size": run.hall_of_fame.maxsize,
        "pareto_front": all_of(run.pareto_front.items),
        "logbook": list(run.logbook),
        "chapters": {name: list(chapter) for name, chapter in run.logbook.chapters.items()},
        "spent": list(run.spent),
        "generation": run.generation,
        "seconds": run.seconds,
        "best_fitness": list(run.best_fitness),
        "last_improvement": run.last_improvement,
        "origins": run.origins,
    }


def _describe(individual: Individual, arrays: TreeArrays) -> dict[str, Any]:
    kind = type(individual.fitness)
    if KINDS.get(kind.__name__) is not kind:
        raise ValueError(
            f"a fitness of the kind {kind.__name__} cannot be kept: known are {', '.join(KINDS)}."
        )
    stream = individual.stream
    return {
        "nodes": [arrays.add(name, getattr(individual, name)) for name in ARRAYS],
        "kind": kind.__name__,
        "fitness": list(individual.fitness.wvalues),
        "stream": None if stream is None else int(stream[0]),
        "origin": individual.origin,
        "outcome": None if individual.outcome is None else list(individual.outcome),
    }


# ---- reading -------------------------------------------------------------------------------------


class RunLoader:
    """Makes runs of what a file holds.

    Parameters
    ----------
    arrays : mapping of str to ndarray
        What `TreeArrays.flat` returned.
    dataset : Dataset
        The rows that the runs evolve on.

    Raises
    ------
    ArithmeticError, AttributeError, LookupError, TypeError, ValueError
        If the arrays, or later the data, are not as they were written.
    """

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
            parts = zip(bounds[:-1], bounds[1:], strict=True)
            self.held.append([flat[a:b].copy() for a, b in parts])
        self.made: dict[tuple[int, ...], Individual] = {}

    def individual(self, data: Mapping[str, Any]) -> Individual:
        """Make one individual; equal trees share their arrays as before."""
        places = tuple(data["nodes"])
        if places not in self.made:
            if any(not isinstance(at, int) or at < 0 for at in places):
                raise ValueError(f"nodes={places!r}")
            nodes = [arrays[at] for arrays, at in zip(self.held, places, strict=True)]
            weights, thresholds, subtree_size = nodes
            n_features = self.dataset.X.shape[1]
            if weights.ndim != 2 or weights.shape[1] != n_features:
                raise ValueError(f"weights of shape {weights.shape}")
            ObliqueTree(weights, thresholds, subtree_size, np.zeros((len(weights), 1))).validate()
            made = make_individual(self.dataset, weights, thresholds, subtree_size)
            if len(made) == len(weights):
                # Some arrays may be shared with others, by which clones are known.
                made.weights, made.thresholds, made.subtree_size = nodes
            self.made[places] = made
        one = self.made[places].clone()
        one.fitness = KINDS[data["kind"]]()
        one.fitness.wvalues = tuple(float(value) for value in data["fitness"])
        if one.fitness.wvalues and len(one.fitness.wvalues) != len(one.fitness.weights):
            raise ValueError(f"fitness={data['fitness']!r}")
        if data["stream"] is not None:
            one.stream = np.array([data["stream"]], dtype=np.uint64)
        one.origin = str(data["origin"])
        if data["outcome"] is not None:
            operator, gain, seconds = data["outcome"]
            one.outcome = Outcome(str(operator), float(gain), float(seconds))
        return one

    def run(self, data: Mapping[str, Any]) -> Evolution:
        """Make one run."""
        population = [self.individual(one) for one in data["population"]]
        if len(population) < 2 or not all(one.fitness.wvalues for one in population):
            raise ValueError(f"a population of {len(population)} individuals")
        run = Evolution(population)
        run.hall_of_fame = tools.HallOfFame(int(data["hall_of_fame_size"]))
        run.hall_of_fame.items[:] = [self.individual(one) for one in data["hall_of_fame"]]
        run.hall_of_fame.keys[:] = [one.fitness for one in reversed(run.hall_of_fame.items)]
        run.pareto_front.restore([self.individual(one) for one in data["pareto_front"]])
        run.logbook = _logbook(data["logbook"], data["chapters"])
        evaluations, seconds = data["spent"]
        run.spent = Spent(int(evaluations), float(seconds))
        run.generation, run.seconds = int(data["generation"]), float(data["seconds"])
        run.best_fitness = tuple(float(value) for value in data["best_fitness"])
        run.last_improvement = int(data["last_improvement"])
        run.origins = [str(name) for name in data["origins"]]
        if not 0 <= run.last_improvement <= run.generation == len(run.logbook) - 1:
            raise ValueError(f"generation {run.generation} of {len(run.logbook)} records")
        return run


def _logbook(records: Sequence[Any], chapters: Mapping[str, Sequence[Any]]) -> tools.Logbook:
    logbook = make_logbook()
    logbook.extend(dict(record) for record in records)
    for name, rows in chapters.items():
        if len(rows) != len(records):
            raise ValueError(f"the chapter {name} has {len(rows)} records")
        logbook.chapters[name].extend(dict(row) for row in rows)
    return logbook
