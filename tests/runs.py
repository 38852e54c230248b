"""Runs compared, and islands evolved as a search does it."""

import math
import time

import numpy as np
import pandas as pd

from evotree import to_frame
from evotree.engine.config import Evolution, Islands
from evotree.engine.evolution import watch
from evotree.engine.islands import epochs


def assert_same_run(one, other):
    """Check that two runs, and their islands, are the same, bit for bit, times apart."""
    if one.parts != [one]:
        for pair in zip(one.parts, other.parts, strict=True):
            assert_same_run(*pair)
    for name in ("population", "hall_of_fame", "pareto_front"):
        for a, b in zip(getattr(one, name), getattr(other, name), strict=True):
            for x, y in zip(a.nodes(), b.nodes(), strict=True):
                np.testing.assert_array_equal(x, y)
            assert a.fitness.wvalues == b.fitness.wvalues and type(a.fitness) is type(
                b.fitness
            )
            assert a.origin == b.origin and a.stream == b.stream
    tables = [to_frame(run.logbook) for run in (one, other)]
    tables = [t.drop(columns=[c for c in t if c.endswith("seconds")]) for t in tables]
    pd.testing.assert_frame_equal(*tables)
    for name in ("generation", "best_fitness", "last_improvement", "origins"):
        assert getattr(one, name) == getattr(other, name)
    assert one.hall_of_fame.maxsize == other.hall_of_fame.maxsize
    assert list(one.hall_of_fame.keys) == list(other.hall_of_fame.keys)


def evolve_islands(
    toolboxes, *, islands=None, callbacks=(), time_limit=math.inf, **options
):
    """Evolve islands."""
    limits = {"max_generations": 12, "end": time.perf_counter() + time_limit}
    exchange = {"every": 5, "size": 2}
    watched = {"patience": None, "keep_on_interrupt": False}
    for known in (limits, exchange, watched):
        known.update(
            {name: options.pop(name) for name in known.keys() & options.keys()}
        )
    size = options.pop("population_size", 12)
    evolution = Evolution(size, islands=Islands(len(toolboxes), **exchange))
    executor = options.pop("executor", None)
    states = epochs(toolboxes, evolution, executor, islands, **limits, **options)
    return watch(states, callbacks, is_new=islands is None, **limits, **watched)
