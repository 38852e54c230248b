"""The loop: one generation after the other, what is kept and recorded of them, when it ends.

Records are DEAP's statistics and logbook; `to_frame` makes tables of them.
"""

import logging
import math
import reprlib
import signal
import threading
import time
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from copy import deepcopy
from dataclasses import dataclass, field
from functools import partial
from operator import attrgetter, itemgetter
from statistics import fmean
from types import FrameType
from typing import Any

import numpy as np
import pandas as pd
from deap import base, tools

from evotree.dataset import Dataset
from evotree.fitness.base import FitnessQualityComplexity
from evotree.front import (
    MAX_MEMBERS,
    front_table,
    has_own_objectives,
    least_gain,
)
from evotree.log import logger
from evotree.operators.pruning import (
    critical_alphas,
    kept_nodes,
    prune_marked,
    risk_of_leaves,
    split_prices,
    weakest_links,
)
from evotree.rng import uniform
from evotree.tree import Individual, set_fitness

log = logger(__name__)

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
    statistics.register("std", np.std)
    for name, share in QUARTILES.items():
        statistics.register(name, np.quantile, q=share)
    return statistics


_COLUMNS = ("gen", "nevals", "diversity", "seconds")


def make_logbook(
    stats: tools.Statistics | tools.MultiStatistics | None = None,
) -> tools.Logbook:
    """Return an empty logbook of some statistics, ours by default, with its columns in order."""
    logbook = tools.Logbook()
    if isinstance(stats, tools.Statistics):
        logbook.header = [*_COLUMNS, *stats.fields]
        return logbook
    logbook.header = [*_COLUMNS, *(stats or CHAPTERS)]
    for chapter in CHAPTERS:  # in this order, as columns of tables are
        if chapter in logbook.header:
            logbook.chapters[chapter].header = ["best", "mean", "std"]
    return logbook


def origin_shares(
    population: Sequence[Individual], origins: Iterable[str]
) -> dict[str, float]:
    """Return which share of a population descends from each kind of first individual."""
    counts = Counter(individual.origin for individual in population)
    return {origin: counts[origin] / len(population) for origin in origins}


def refinement_record(
    refined: Sequence[Individual], operators: Sequence[str]
) -> dict[str, dict[str, float]]:
    """Return what the refinements of a generation did."""
    if not operators:
        return {}
    outcomes = [one.outcome for one in refined if one.outcome is not None]
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
        for column in table.columns.difference(frame.columns, sort=False):
            frame[f"{name}_{column}"] = table[column]
    return frame


def append_logbook(logbook: tools.Logbook, later: tools.Logbook) -> None:
    """Append the records of later generations to a logbook."""
    logbook.extend(later)
    for name, chapter in later.chapters.items():
        logbook.chapters[name].extend(chapter)


def plain_logbook(logbook: tools.Logbook) -> dict[str, list[Any]]:
    """Return the records of a logbook of a run, and of its chapters by name, as lists."""
    return {name: list(one) for name, one in {"": logbook, **logbook.chapters}.items()}


def logbook_of(plain: Mapping[str, list[Any]]) -> tools.Logbook:
    """Return the logbook that `plain_logbook` made lists of."""
    logbook = make_logbook()
    for name, records in plain.items():
        (logbook.chapters[name] if name else logbook).extend(records)
    return logbook


_QUALITY_ROUNDING = 1e-12
_complexity, _quality = attrgetter("complexity"), attrgetter("quality")


class ParetoFront(tools.ParetoFront):
    """The trees that no tree met so far dominates.

    Where the fitness has one value, or is `FitnessQualityComplexity`, the objectives are quality
    and complexity: there is at most one tree of each complexity, the first of equals, and more
    complex ones are better. Members are then clones with a fitness of these two values, by rising
    complexity. Of more than `MAX_MEMBERS` the one is dropped that gains least quality for what it
    adds to the complexity, but neither the first nor the last. What is kept depends on nothing but
    the order in which trees are met.

    A fitness of several values of another kind is followed as it is, by DEAP's own rules.
    """

    def update(self, population: Iterable[Individual]) -> None:
        """Let in the individuals that are better than all members of at most their complexity."""
        for individual in population:
            if has_own_objectives(individual):
                super().update([individual])
            elif self._lets_in(individual.quality, individual.complexity):
                self.insert(individual)

    def _lets_in(self, quality: float, complexity: float) -> bool:
        """Return whether no member of at most a complexity has as high a quality."""
        at = bisect_right(self.items, complexity, key=_complexity)
        return at == 0 or quality > self.items[at - 1].quality

    def insert(self, item: Individual) -> None:
        """Put a clone of an individual in its place, and drop the members that it dominates."""
        if has_own_objectives(item):
            super().insert(item)
            return
        member = deepcopy(item)  # users' own kinds need not have Individual's method
        member.stream = None
        member.fitness = FitnessQualityComplexity(
            (item.quality, float(item.complexity))
        )
        first = bisect_left(self.items, member.complexity, key=_complexity)
        last = bisect_right(self.items, member.quality, lo=first, key=_quality)
        self.items[first:last] = [member]
        if len(self.items) > MAX_MEMBERS:
            del self.items[least_gain(self.items)]
        # DEAP's archives have them beside their members.
        self.keys[:] = [one.fitness for one in reversed(self.items)]

    def add_prunings(self, dataset: Dataset, end: float = math.inf) -> None:
        """Let the prunings of all members compete, down to a single leaf (Breiman et al. 1984)."""
        for member in list(self.items):
            if has_own_objectives(member) or time.perf_counter() >= end:
                continue
            size, (risk, whole) = (
                member.subtree_size,
                risk_of_leaves(member, dataset.n_classes),
            )
            # What a split adds: a leaf and its terms
            prices = split_prices(member, 2.0, 1.0)
            collapse_at = weakest_links(risk, size, prices)
            for alpha in critical_alphas(collapse_at, size):
                kept, kept_size = kept_nodes(size, collapse_at <= alpha)
                quality = 1.0 - risk[kept[kept_size == 1]].sum() / whole
                complexity = 1.0 + prices[kept[kept_size > 1]].sum()
                # Most prunings are no better than a member, and to make one takes all rows.
                # Where the objective is no sum of risks, this is no more than a guess.
                if member.objective is not None or self._lets_in(
                    quality - _QUALITY_ROUNDING, complexity
                ):
                    self.update(
                        prune_marked(member.clone(), dataset, collapse_at <= alpha)
                    )

    def to_frame(self, held_out: Dataset | None = None) -> pd.DataFrame:
        """Return the front as a table; see `front_table`."""
        return front_table(self.items, held_out)


@dataclass(repr=False)
class Run:
    """A run: its population and its records; what callbacks see and `evolve` returns.

    Attributes
    ----------
    population : list of Individual
        The present generation, the best individual first.
    logbook : deap.tools.Logbook
        One record a generation.
    hall_of_fame : deap.tools.HallOfFame
        The best individuals that ever lived.
    pareto_front : ParetoFront
        The best of each complexity that ever lived, at most 100.
    generation : int
        Number of the present generation; the first population is generation 0.
    seconds : float
        How long the run has taken so far.
    best_fitness : tuple of float
        Weighted values of the best fitness so far; empty before the first generation.
    last_improvement : int
        Generation in which that was found.
    origins : list of str
        The kinds of first individuals, `Individual.origin`.
    best_trees : dict of int to Individual
        Every tree that became the best of its generation, by the generation; kept by the callback
        `keep_best_trees`, else empty.
    front_only : list of Individual
        Trees that pay at smaller penalties; they do not breed, but widen the front in the end.
    islands : list of Run
        The runs of the islands of which this one is the sum; empty where there is one population.
        Its logbook is that of the island with the best individual.
    stop_reason : str
        ``"max_generations"``, ``"patience"``, ``"time_limit"``, ``"callback"``,
        ``"callback_error"`` or ``"interrupt"``; empty while the run goes on.
    """

    population: list[Individual]
    logbook: tools.Logbook = field(default_factory=make_logbook)
    hall_of_fame: tools.HallOfFame = field(default_factory=lambda: tools.HallOfFame(10))
    pareto_front: ParetoFront = field(default_factory=ParetoFront)
    generation: int = 0
    seconds: float = 0.0
    best_fitness: tuple[float, ...] = ()
    last_improvement: int = 0
    origins: list[str] = field(default_factory=list)
    best_trees: dict[int, Individual] = field(default_factory=dict)
    front_only: list[Individual] = field(default_factory=list)
    islands: list["Run"] = field(default_factory=list)
    stop_reason: str = ""

    @property
    def parts(self) -> "list[Run]":
        """The runs that it is made of: itself, or its islands."""
        return self.islands or [self]

    @property
    def best(self) -> Individual:
        """The fittest individual of the present generation."""
        return self.population[0]

    def __repr__(self) -> str:
        best = ", ".join(f"{value:.4g}" for value in self.best_fitness) or "unknown"
        return (
            f"{type(self).__name__} of {len(self.population)} individuals: generation "
            f"{self.generation} after {self.seconds:.1f} s, best fitness {best} in generation "
            f"{self.last_improvement}; {self.stop_reason or 'going on'}"
        )


Callback = Callable[[Run], object]


def keep_best_trees(run: Run) -> None:
    """Keep the best tree of a generation in `best_trees` if it is a new one; a callback."""
    if run.best != next(reversed(run.best_trees.values()), None):
        run.best_trees[run.generation] = deepcopy(run.best)


class CallbackError(Exception):
    """A callback has failed; what was evolved until then is kept."""

    def __init__(self, run: Run) -> None:
        super().__init__(f"a callback failed in generation {run.generation}")
        self.run = run


def start(
    population: Iterable[Individual],
    toolbox: base.Toolbox,
    stats: tools.Statistics | tools.MultiStatistics,
    hall_of_fame: tools.HallOfFame | None = None,
) -> Run:
    """Evaluate a first population and record it as generation 0."""
    begin = time.perf_counter()
    run = Run(list(population), make_logbook(stats))
    if hall_of_fame is not None:
        run.hall_of_fame = hall_of_fame
    if len(run.population) < 2:
        raise ValueError(
            f"population has {len(run.population)} individuals: at least 2 mate."
        )
    run.origins = sorted({individual.origin for individual in run.population})
    n_evaluations = evaluate_invalid(run.population, toolbox)
    n_evaluations += (
        toolbox.score(run.population, (), 0) if hasattr(toolbox, "score") else 0
    )
    best_first(run.population)
    _record(run, toolbox, stats, n_evaluations, [], begin)
    return run


def advance(
    run: Run,
    toolbox: base.Toolbox,
    crossover_probability: float,
    stats: tools.Statistics | tools.MultiStatistics,
    end: float = math.inf,
) -> None:
    """Breed and record one generation."""
    begin = time.perf_counter() - run.seconds
    run.population, n_evaluations, refined = next_generation(
        run.population, toolbox, run.generation + 1, crossover_probability, end
    )
    run.generation += 1
    _record(run, toolbox, stats, n_evaluations, refined, begin)


def _record(
    run: Run,
    toolbox: base.Toolbox,
    stats: tools.Statistics | tools.MultiStatistics,
    n_evaluations: int,
    refined: Sequence[Individual],
    begin: float,
) -> None:
    """Keep what is best of the present generation, and write it down.

    `begin` is when the clock of the run was 0, by `time.perf_counter`.
    """
    if run.best.fitness.wvalues > run.best_fitness:
        run.best_fitness = run.best.fitness.wvalues
        run.last_improvement = run.generation
    run.hall_of_fame.update(run.population)
    run.pareto_front.update(run.population)
    record: dict[str, Any] = {
        ORIGIN: origin_shares(run.population, run.origins),
        **refinement_record(refined, refiner_names(toolbox)),
        **stats.compile(run.population),
        "gen": run.generation,
        "nevals": n_evaluations,
        "diversity": diversity(run.population),
    }
    run.seconds = time.perf_counter() - begin
    run.logbook.record(seconds=run.seconds, **record)


def evolve(
    population: Iterable[Individual] | Run,
    toolbox: base.Toolbox,
    *,
    crossover_probability: float = 0.2,
    max_generations: int = 1000,
    patience: int | None = None,
    time_limit: float | None = None,
    stats: tools.Statistics | tools.MultiStatistics | None = None,
    hall_of_fame: tools.HallOfFame | None = None,
    callbacks: Iterable[Callback] = (),
    keep_on_interrupt: bool = False,
) -> Run:
    """Evolve a population, or go on with a run; a `CallbackError` has the run as well.

    Parameters
    ----------
    population : iterable of Individual or Run
        The first generation, for example ``toolbox.population(n=64)``; or a run that has stopped,
        which goes on as if it had not, its toolbox and its limits being those given here.
    toolbox : deap.base.Toolbox
        From `make_toolbox`, which says what its entries are called with.
    crossover_probability : float in [0, 1], default=0.2
        Chance that two parents mate.
    max_generations : int, at least 0, default=1000
        Stop after so many generations.
    patience : int, optional
        Stop after so many generations without a fitter individual.
    time_limit : float, optional
        Stop when so many seconds of the run have passed; what the generation has bred by then
        counts.
    stats : deap.tools.Statistics or MultiStatistics, optional
        What the logbook records; `make_statistics()` by default.
    hall_of_fame : deap.tools.HallOfFame, optional
        Updated with every new individual; by default one of size 10. A run has its own.
    callbacks : iterable of callable
        Each is called with the `Run` after every generation; one that returns True stops
        the run.
    keep_on_interrupt : bool, default=False
        Whether Ctrl-C ends the run as the other stops do, instead of raising KeyboardInterrupt;
        either way the generation is finished first.

    References
    ----------
    Krętowski M., Grześ M. (2005). Global induction of oblique decision trees: an evolutionary
    approach. Intelligent Information Processing and Web Mining, 309-318.
    """
    passed = population.seconds if isinstance(population, Run) else 0.0
    end = math.inf if time_limit is None else time.perf_counter() + time_limit - passed
    return watch(
        generations(
            population, toolbox, crossover_probability, stats, hall_of_fame, end
        ),
        callbacks,
        is_new=not isinstance(population, Run),
        max_generations=max_generations,
        patience=patience,
        end=end,
        keep_on_interrupt=keep_on_interrupt,
    )


def generations(
    population: Iterable[Individual] | Run,
    toolbox: base.Toolbox,
    crossover_probability: float,
    stats: tools.Statistics | tools.MultiStatistics | None = None,
    hall_of_fame: tools.HallOfFame | None = None,
    end: float = math.inf,
) -> Generator[Run]:
    """Yield a run as it is, and after each generation; what is bred after `end` is not changed."""
    stats = make_statistics() if stats is None else stats
    if isinstance(population, Run):
        run = population
    else:
        run = start(population, toolbox, stats, hall_of_fame)
        log_generation(run)
    while True:
        yield run
        advance(run, toolbox, crossover_probability, stats, end)
        log_generation(run)


def log_generation(run: Run, place: str = "") -> None:
    """Tell the log, where it is at DEBUG, about the present generation and its refinements."""
    if not log.isEnabledFor(logging.DEBUG):
        return
    log.debug(
        "%sgeneration %d: best %s", place, run.generation, describe_individual(run.best)
    )
    (*_, refined) = run.logbook.chapters.get(REFINEMENT) or [{}]
    told = {name: round(refined[name], 6) for name in refined if name not in _OF_ALL}
    if told:
        log.debug("%sgeneration %d: refined %s", place, run.generation, told)


def describe_individual(individual: Individual) -> str:
    """Return what an individual is worth, and how large it is, in words."""
    values = ", ".join(f"{value:.6g}" for value in individual.fitness.wvalues)
    return f"{individual!r} of fitness {values}"


def watch(
    states: Generator[Run],
    callbacks: Iterable[Callback] = (),
    *,
    is_new: bool,
    max_generations: int,
    patience: int | None = None,
    end: float = math.inf,
    keep_on_interrupt: bool = True,
) -> Run:
    """Let a run go on until a limit, a callback or Ctrl-C ends it; `evolve` explains them.

    Callbacks do not see the first state of a run that is not new: they have seen it.
    """
    callbacks = tuple(callbacks)
    for callback in callbacks:
        if not callable(callback):
            raise ValueError(f"callbacks holds {callback!r}: allowed are callables.")
    with interrupt_as_flag() as interrupted, closing(states):
        for run in states:
            wish = call_all(callbacks, run) if is_new else ""
            is_new = True
            run.stop_reason = wish or limit_reached(run, max_generations, patience, end)
            if run.stop_reason or interrupted():
                break
    # Also where a limit has stopped the run, a wish to stop all that goes on must not be lost.
    if interrupted():
        run.stop_reason = "interrupt"
        if not keep_on_interrupt:
            raise KeyboardInterrupt
    log.info("evolution ended: %s", run)
    return run


def call_all(callbacks: Sequence[Callback], run: Run) -> str:
    """Call all callbacks; return why the run stops if one of them wishes it."""
    begin = time.perf_counter() - run.seconds
    try:
        # Numbers and the like that functions return by the way are no wishes.
        answers = [callback(run) for callback in callbacks]
    except Exception as error:
        run.stop_reason = "callback_error"
        raise CallbackError(run) from error
    run.seconds = time.perf_counter() - begin
    wishes = [bool(answer) for answer in answers if isinstance(answer, bool | np.bool_)]
    return "callback" if any(wishes) else ""


@contextmanager
def interrupt_as_flag() -> Iterator[Callable[[], bool]]:
    """Take note of a first Ctrl-C while a block runs; a second one raises KeyboardInterrupt.

    A block inside such a block takes note of the same Ctrl-C. Nothing changes in other threads than
    the main one, or where the interrupt is ignored or handled by others already.
    """
    # On the way in or out of a compiled function numba makes a SystemError of KeyboardInterrupt: a
    # run that spends its time in kernels cannot count on catching it.
    present = signal.getsignal(signal.SIGINT)
    outer: Callable[[], bool] | None = getattr(present, "was_pressed", None)
    if outer is not None:
        yield outer
        return
    pressed = False

    def handle(number: int, frame: FrameType | None) -> None:
        nonlocal pressed
        if pressed:
            signal.default_int_handler(number, frame)
        pressed = True

    handle.was_pressed = lambda: pressed  # type: ignore[attr-defined]
    ours = (
        threading.current_thread() is threading.main_thread()
        and present is signal.default_int_handler
    )
    if ours:
        signal.signal(signal.SIGINT, handle)
    try:
        yield lambda: pressed
    finally:
        if ours:
            signal.signal(signal.SIGINT, signal.default_int_handler)


def limit_reached(
    run: Run, max_generations: int, patience: int | None, end: float
) -> str:
    """Return the name of the limit, one of `evolve`'s, that a run has reached, or nothing."""
    if run.generation >= max_generations:
        return "max_generations"
    if patience is not None and run.generation - run.last_improvement >= patience:
        return "patience"
    return "time_limit" if time.perf_counter() >= end else ""


BREEDING_CHUNK = 8  # offspring bred by one task; even, so that mates stay together


def breed(
    toolbox: base.Toolbox,
    crossover_probability: float,
    slots: tuple[Sequence[Individual], Sequence[np.ndarray]],
    end: float = math.inf,
) -> tuple[list[Individual], int]:
    """Make evaluated offspring of some parents."""
    parents, streams = slots
    # Once for all offspring: to ask for each one took a twentieth of the time of the loop.
    mate, mutate = operator_of(toolbox, "mate"), operator_of(toolbox, "mutate")
    offspring = list(map(toolbox.clone, parents))
    for child, stream in zip(offspring, streams, strict=True):
        child.stream = stream
    for i in range(1, len(offspring), 2):
        if (
            uniform(streams[i - 1]) < crossover_probability
            and time.perf_counter() < end
        ):
            offspring[i - 1], offspring[i] = mate(offspring[i - 1], offspring[i])
    for i, child in enumerate(offspring):
        if time.perf_counter() < end:
            (offspring[i],) = mutate(child)
    return offspring, evaluate_invalid(offspring, toolbox)


def operator_of(
    toolbox: base.Toolbox, role: str
) -> Callable[..., tuple[Individual, ...]]:
    """Return an operator; what users' own return, and leave as it was, is checked."""
    operator: Callable[..., tuple[Individual, ...]] = getattr(toolbox, role)
    if str(getattr(_unwrapped(operator), "__module__", None)).startswith("evotree."):
        return operator
    return partial(checked, role=role, operator=operator)


def _unwrapped(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function inside of partial ones."""
    while isinstance(function, partial):
        function = function.func
    return function


def checked(
    *parents: Individual, role: str, operator: Callable[..., Any]
) -> tuple[Individual, ...]:
    """Return what an operator of a user's own makes, if it is what its role asks for."""
    arrays = [array for parent in parents for array in parent.nodes()]
    before = [array.tobytes() for array in arrays]
    children: tuple[Individual, ...] = operator(*parents)
    plain = _unwrapped(operator)
    name = f"{role} ({getattr(plain, '__name__', repr(plain))})"
    is_tuple = isinstance(children, tuple) and len(children) == len(parents)
    if not is_tuple or not all(isinstance(child, Individual) for child in children):
        allowed = (
            f"a tuple of {len(parents)} individual{'s' if len(parents) > 1 else ''}"
        )
        raise TypeError(f"{name} returned {children!r}: allowed is {allowed}.")
    if before != [array.tobytes() for array in arrays]:
        # Read-only arrays would say so themselves, but kernels would be compiled for them again.
        others = "which others share: evotree.with_tree makes an individual of new ones"
        raise ValueError(f"{name} wrote to arrays of an individual, {others}.")
    return children


def _refine(
    toolbox: base.Toolbox, end: float, individual: Individual
) -> Individual | None:
    """Return an individual, refined; None once the time is over."""
    return (
        operator_of(toolbox, "refine")(individual)[0]
        if time.perf_counter() < end
        else None
    )


def evaluate_invalid(individuals: Iterable[Individual], toolbox: base.Toolbox) -> int:
    """Evaluate the individuals whose fitness is not valid; return how many there were."""
    if hasattr(toolbox, "score"):  # a generation is scored as one
        return 0
    n_evaluations = 0
    for individual in individuals:
        if not individual.fitness.wvalues:
            set_fitness(individual, toolbox.evaluate(individual))
            n_evaluations += 1
    return n_evaluations


def next_generation(
    population: Sequence[Individual],
    toolbox: base.Toolbox,
    generation: int,
    crossover_probability: float,
    end: float = math.inf,
) -> tuple[list[Individual], int, list[Individual]]:
    """Breed the next population."""
    n = len(population)
    streams = toolbox.streams(generation, n)
    elite = population[0]
    elite.stream = streams[-1]
    parents = toolbox.select(population, n - 1)
    is_list = isinstance(parents, list | tuple) and len(parents) == n - 1
    if not is_list or not all(isinstance(one, type(elite)) for one in parents):
        allowed = f"allowed is a list of {n - 1} individuals"
        raise TypeError(f"select returned {reprlib.repr(parents)}: {allowed}.")
    slots = [
        (
            parents[at : at + BREEDING_CHUNK],
            streams[at : min(at + BREEDING_CHUNK, n - 1)],
        )
        for at in range(0, n - 1, BREEDING_CHUNK)
    ]
    elite.outcome = None
    offspring: list[Individual] = []
    n_evaluations = 0
    breed_slots = partial(breed, toolbox, crossover_probability, end=end)
    for children, n_evaluated in toolbox.map(breed_slots, slots):
        offspring += children
        n_evaluations += n_evaluated
    refined: list[Individual] = []
    if hasattr(toolbox, "refine"):
        chosen = toolbox.choose(offspring)
        afterwards = toolbox.map(partial(_refine, toolbox, end), chosen)
        # A map over processes returns copies.
        place = {
            id(one): after
            for one, after in zip(chosen, afterwards, strict=True)
            if after
        }
        refined = list(place.values())
        offspring = [place.get(id(child), child) for child in offspring]
    if hasattr(toolbox, "score"):
        n_evaluations += toolbox.score(offspring, population, generation)
    survivors = [elite, *offspring]
    if hasattr(toolbox, "replace"):
        for parent in population:
            parent.outcome = None  # that of an earlier generation
        survivors = toolbox.replace(population, survivors)
    return best_first(survivors), n_evaluations + len(refined), refined


def refiner_names(toolbox: base.Toolbox) -> list[str]:
    """Return the names of the operators that the toolbox's refinement has; users' own has none."""
    refine = getattr(toolbox, "refine", None)
    return list(getattr(refine, "keywords", {}).get("refiners", ()))


def best_first(population: list[Individual]) -> list[Individual]:
    """Swap the fittest individual, the first of equals, to the front of a population."""
    at = max(range(len(population)), key=lambda i: population[i].fitness.wvalues)
    population[0], population[at] = population[at], population[0]
    return population
