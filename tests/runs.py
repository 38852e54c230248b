"""Runs compared, and islands evolved as a search does it."""

import math
import time

import numpy as np
import pandas as pd

from evotree import to_frame
from evotree.engine.evolution import watch
from evotree.engine.islands import epochs, islands_of


def assert_same_run(one, other):
    """Check that two runs, and their islands, are the same, bit for bit, times apart."""
    islands = list(map(islands_of, (one, other)))
    if islands[0] != [one]:
        for pair in zip(*islands, strict=True):
            assert_same_run(*pair)
    for name in ("population", "hall_of_fame", "pareto_front"):
        for a, b in zip(getattr(one, name), getattr(other, name), strict=True):
            for x, y in zip(a.nodes(), b.nodes(), strict=True):
                np.testing.assert_array_equal(x, y)
            assert a.fitness.wvalues == b.fitness.wvalues and type(a.fitness) is type(b.fitness)
            assert a.origin == b.origin and a.stream == b.stream
    tables = [to_frame(run.logbook) for run in (one, other)]
    tables = [t.drop(columns=[c for c in t if c.endswith("seconds")]) for t in tables]
    pd.testing.assert_frame_equal(*tables)
    for name in ("generation", "best_fitness", "last_improvement", "origins"):
        assert getattr(one, name) == getattr(other, name)
    assert one.spent.evaluations == other.spent.evaluations
    assert one.hall_of_fame.maxsize == other.hall_of_fame.maxsize
    assert list(one.hall_of_fame.keys) == list(other.hall_of_fame.keys)


def evolve_islands(toolboxes, *, islands=None, callbacks=(), time_limit=math.inf, **options):
    """Evolve islands."""
    limits = {"max_generations": 12, "end": time.perf_counter() + time_limit}
    given = {"population_size": 12, "migration_interval": 5, "migration_size": 2}
    given |= {"topology": "ring", "executor": None, "crossover_probability": 0.2}
    watched = {"patience": None, "keep_on_interrupt": False}
    for known in (limits, given, watched):
        known.update({name: options.pop(name) for name in known.keys() & options.keys()})
    states = epochs(toolboxes, islands=islands, **given, **limits, **options)
    return watch(states, callbacks, is_new=islands is None, **limits, **watched)
