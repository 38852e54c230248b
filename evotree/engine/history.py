"""What a run records: DEAP's statistics and logbook, and their form as a table."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from operator import attrgetter, itemgetter
from statistics import fmean
from typing import Any

import numpy as np
import pandas as pd
from deap import tools

from evotree.tree import Individual

CHAPTERS = ("fitness", "quality", "size", "terms", "complexity")
ORIGIN = "origin"
REFINEMENT = "refinement"
QUARTILES = {"q1": 0.25, "median": 0.5, "q3": 0.75}
# What DEAP repeats in every chapter.
_OF_ALL = {"gen", "nevals", "diversity", "seconds"}


def make_statistics() -> tools.MultiStatistics:
    """Return the statistics of a population, to be extended by ``register``.

    Each of `CHAPTERS` has best (that of the first individual), mean, std, q1, median and q3.
    """
    statistics = tools.MultiStatistics(
        fitness=tools.Statistics(lambda individual: individual.fitness.wvalues[0]),
        quality=tools.Statistics(attrgetter("quality")),
        size=tools.Statistics(len),
        terms=tools.Statistics(attrgetter("n_terms")),
        complexity=tools.Statistics(attrgetter("complexity")),
    )
    statistics.register("best", itemgetter(0))
    statistics.register("mean", fmean)
    statistics.register("std", deviation)
    for name, share in QUARTILES.items():
        statistics.register(name, quantile, share=share)
    return statistics


def deviation(values: Sequence[float]) -> float:
    """Return the standard deviation of a few numbers, in half the time of `numpy.std`."""
    array = np.array(values, dtype=np.float64)
    array -= fmean(values)
    return math.sqrt(array.dot(array) / len(array))


def quantile(values: Sequence[float], share: float) -> float:
    """Return a quantile of a few numbers as `numpy.quantile` does, in a tenth of its time."""
    ordered = sorted(values)
    at = share * (len(ordered) - 1)
    low = int(at)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (at - low) * (ordered[high] - ordered[low])


def make_logbook() -> tools.Logbook:
    """Return an empty logbook whose printed form has its columns in order."""
    logbook = tools.Logbook()
    logbook.header = ["gen", "nevals", "diversity", "seconds", *CHAPTERS]
    for chapter in CHAPTERS:
        logbook.chapters[chapter].header = ["best", "mean", "std"]
    return logbook


def origin_of(individual: Any) -> str:
    """Return where an individual descends from; users' own kinds need not know."""
    return getattr(individual, "origin", "unknown")


def origin_shares(
    population: Sequence[Individual], origins: Iterable[str]
) -> dict[str, float]:
    """Return which share of a population descends from each kind of first individual."""
    counts = Counter(map(origin_of, population))
    return {origin: counts[origin] / len(population) for origin in origins}


def refinement_record(
    refined: Sequence[Individual], operators: Sequence[str]
) -> dict[str, dict[str, float]]:
    """Return what the refinements of a generation did."""
    if not operators:
        return {}
    outcomes = list(filter(None, (getattr(one, "outcome", None) for one in refined)))
    record: dict[str, float] = {}
    for name in operators:
        mine = [outcome for outcome in outcomes if outcome.operator == name]
        record[f"{name}_tried"] = len(mine)
        record[f"{name}_improved"] = sum(outcome.gain > 0.0 for outcome in mine)
        record[f"{name}_gain"] = math.fsum(outcome.gain for outcome in mine)
        record[f"{name}_seconds"] = math.fsum(outcome.seconds for outcome in mine)
    return {REFINEMENT: record}


def diversity(population: Sequence[Individual]) -> float:
    """Return the share of trees in a population that are no clone of another, in (0, 1]."""
    # Clones share their arrays, so this costs no comparison of trees.
    return len({id(individual.weights) for individual in population}) / len(population)


def to_frame(logbook: tools.Logbook) -> pd.DataFrame:
    """Return a logbook as a table, a row a generation; of chapters columns ``chapter_field``."""
    # A chapter repeats what the record says of the whole population.
    frame = pd.DataFrame(list(logbook))
    for name, chapter in logbook.chapters.items():
        table = pd.DataFrame(list(chapter))
        for field in table.columns.difference(frame.columns, sort=False):
            frame[f"{name}_{field}"] = table[field]
    return frame


def append_logbook(logbook: tools.Logbook, later: tools.Logbook) -> None:
    """Append the records of later generations to a logbook."""
    logbook.extend(later)
    for name, chapter in later.chapters.items():
        logbook.chapters[name].extend(chapter)


def join_logbooks(
    logbooks: Sequence[tools.Logbook],
    sizes: Sequence[int],
    joint: tools.Logbook,
    first: int,
) -> None:
    """Write the records of several populations as of one, which has no quartiles, from `first`."""
    for book in (joint, *joint.chapters.values()):
        list.__delitem__(book, slice(first, None))
    for gen in range(first, max(map(len, logbooks))):
        present = [k for k, logbook in enumerate(logbooks) if len(logbook) > gen]
        weights, chapters = (
            [sizes[k] for k in present],
            [logbooks[k].chapters for k in present],
        )
        rows = [logbooks[k][gen] for k in present]
        joint.record(
            gen=gen,
            nevals=sum(row["nevals"] for row in rows),
            diversity=_weighted_mean([row["diversity"] for row in rows], weights),
            seconds=max(row["seconds"] for row in rows),
            **_join_chapters(chapters, gen, weights, len(logbooks) == 1),
        )


def _join_chapters(
    chapters: Sequence[Mapping[str, tools.Logbook]],
    gen: int,
    sizes: Sequence[int],
    is_one: bool,
) -> dict[str, dict[str, float]]:
    best = max(range(len(chapters)), key=lambda k: chapters[k]["fitness"][gen]["best"])
    joint: dict[str, dict[str, float]] = {}
    for name in CHAPTERS:
        rows = [of_one[name][gen] for of_one in chapters]
        mean = _weighted_mean([row["mean"] for row in rows], sizes)
        square = [row["std"] ** 2 + (row["mean"] - mean) ** 2 for row in rows]
        std = math.sqrt(_weighted_mean(square, sizes))
        joint[name] = {"best": rows[best]["best"], "mean": mean, "std": std}
        if is_one:
            joint[name] |= {quartile: rows[0][quartile] for quartile in QUARTILES}
    for name in (ORIGIN, REFINEMENT):
        rows = [of_one[name][gen] for of_one in chapters if name in of_one]
        columns = {
            key: [row.get(key, 0) for row in rows] for key in sorted(set().union(*rows))
        }
        if rows:
            joint[name] = {
                key: _weighted_mean(values, sizes) if name == ORIGIN else sum(values)
                for key, values in columns.items()
                if key not in _OF_ALL
            }
    return joint


def _weighted_mean(values: Sequence[float], weights: Sequence[int]) -> float:
    return math.fsum(v * w for v, w in zip(values, weights, strict=True)) / sum(weights)
