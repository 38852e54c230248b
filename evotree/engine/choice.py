"""Hyperparameters chosen by cross-validation: the penalties for nodes and terms."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from deap import base

from evotree.engine.config import MIN_ROWS, SearchConfig, is_auto
from evotree.engine.evolution import evolve
from evotree.engine.logistic import (
    LogisticRivals,
    Rival,
    RivalLosses,
    choose_rival,
    first_unbeaten,
    logistic_rivals,
    mean_and_error,
    rival,
)
from evotree.engine.parallel import thread_map
from evotree.engine.prepare import LEAST_ROWS, Problem
from evotree.engine.toolbox import feature_bound, make_toolbox
from evotree.fitness.logistic_leaves import Strength
from evotree.fitness.penalties import PenalizedAccuracy
from evotree.folds import make_folds, split_folds
from evotree.operators.constraints.base import repair
from evotree.operators.initialization.resampling import jitter
from evotree.operators.initialization.seeding import TAO, WIDTHS, init_seed
from evotree.operators.initialization.sparsity_paths import path_trees
from evotree.operators.pruning.penalized import prune
from evotree.operators.refinement.policy import Refinement
from evotree.operators.structure.reduced import row_losses
from evotree.operators.variation.selection import distinct
from evotree.rng import make_streams

if TYPE_CHECKING:
    from evotree.dataset import Dataset
    from evotree.individual import Individual

_HELD_OUT_ROWS = (
    1000  # that differ, held out in all, if that takes no more than five folds
)
_FOLDS = 5
_REPEATED_ROWS = 750  # held out in all, where folds are drawn again
_JUDGED = 3  # trees, whose losses are averaged
_KEPT_TREES = 5  # of each fold, that join the first population
_SEEDS_EACH = 2  # optimized trees for each of the penalties that are tried
_PATHS = 4  # of widths, axis-parallel and linear trees among them
_GENERATIONS_SHARE = 3  # a candidate evolves for a third of the generations
_COPIES = 4  # of each row, at most

STANDARD_ERRORS = 0.5
"""By which a loss has to be lower for more complex trees to be chosen."""

SIZE_MULTIPLES = (0.8, 0.4, 0.2, 0.1, 0.05, 0.025)
"""Penalties for a node that are tried, in units of log(n) / n for n rows."""

TERM_MULTIPLES = (1.0, 0.25, 0.05)
"""Penalties for a term that are tried with each, in units of the penalty for a node."""

LEAST_PENALTY = 1e-4
"""No smaller penalty is tried, however many the rows: trees stay small enough to be read."""


class Penalties(NamedTuple):
    """What the fitness takes off for the complexity of a tree."""

    size: float  # penalty for a node
    term: float  # penalty for each term after a split's first


class Choice(NamedTuple):
    """What a run evolves by, besides the configuration."""

    seed: int  # seed of the run
    penalties: Penalties  # for nodes and terms, given or chosen
    leaves: Rival | None = None  # logistic, that are better than those of such trees


_DEFAULT_STRENGTH = Strength(
    0.1
)  # of logistic leaves that nothing was held out to choose
_OWN_STREAMS = 2**62  # the number of a generation that no run reaches


def own_streams(seed: int) -> list[np.ndarray]:
    """Return the streams of a run for folds, noise, samples and larger trees."""
    return list(make_streams(seed, _OWN_STREAMS, 4))


def penalties_to_try(config: SearchConfig, n_rows: float) -> list[Penalties]:
    """Return the penalties among which cross-validation chooses.

    Those for nodes are multiples of log(n) / n, as that of BIC is of the log-likelihood (Schwarz
    1978): n rows tell about so small a difference. Those for terms are multiples of these. None is
    below `LEAST_PENALTY`, unless it is given.
    """
    if is_auto(config.size_penalty):
        unit, least = math.log(n_rows + 1.0) / n_rows, LEAST_PENALTY
        sizes = [max(least, multiple * unit) for multiple in SIZE_MULTIPLES]
    else:
        sizes, least = [float(config.size_penalty)], 0.0
    if not is_auto(config.term_penalty):
        return [Penalties(size, float(config.term_penalty)) for size in sizes]
    multiples = TERM_MULTIPLES if sizes[0] > 0.0 else TERM_MULTIPLES[:1]
    return [
        Penalties(size, max(least, multiple * size))
        for size in sizes
        for multiple in multiples
    ]


def with_noise(problem: Problem, rows: Dataset, stream: np.ndarray) -> Dataset:
    """Return the rows that the fitness is measured on: with noisy copies, if there is noise."""
    if problem.noise == 0.0:
        return rows
    return jitter(
        rows, problem.noise, min(_COPIES, round(LEAST_ROWS / rows.n_rows)), stream
    )


# ---- the trees of penalties ----------------------------------------------------------------------


def trees_of(
    problem: Problem,
    rows: Dataset,
    penalties: Sequence[Penalties],
    seed: int,
    seconds: float | None = None,
    map: Callable[..., Iterable[Any]] = map,
) -> list[list[Individual]]:
    """Return the best trees at each of some penalties."""
    end = math.inf if seconds is None else time.perf_counter() + seconds
    rows = with_noise(problem, rows, own_streams(seed)[1])
    left = None if seconds is None else end - time.perf_counter()
    make = partial(seeds_of_all_sizes, map=map) if problem.has_seeds else evolve_briefly
    trees = make(problem, rows, penalties, seed, left)
    best: dict[Penalties, list[Individual]] = {}
    last: list[Individual] = []
    for pair in penalties:
        if pair not in best:
            if not last or time.perf_counter() < end:
                last = best_prunings(trees, rows, *pair, _KEPT_TREES)
            best[pair] = (
                last  # out of time, penalties have equal trees: the first are chosen
            )
    return [best[pair] for pair in penalties]


def seeds_of_all_sizes(
    problem: Problem,
    rows: Dataset,
    penalties: Sequence[Penalties],
    seed: int,
    seconds: float | None,
    map: Callable[..., Iterable[Any]] = map,
) -> list[Individual]:
    """Return first trees, of all penalties."""
    config, constraints = problem.config, problem.constraints
    regularization = problem.evolution.regularization
    end = math.inf if seconds is None else time.perf_counter() + seconds
    limits: dict[str, Any] = {
        "C": Refinement(C=regularization.C).bounds(),
        "penalty": regularization.penalty,
        "min_rows": MIN_ROWS,
        "max_depth": config.max_depth,
        "max_features": feature_bound(
            config.max_split_terms, rows.X.shape[1], constraints
        ),
    }
    middle = penalties[len(penalties) // 2]
    rows = rows.penalized(middle.term)
    follows = WIDTHS in problem.shares
    kinds = (
        range(_PATHS)
        if follows
        else [pair for pair in penalties for _ in range(_SEEDS_EACH)]
    )
    streams = make_streams(seed, 0, len(kinds))

    def make(kind: Any, stream: np.ndarray) -> list[Individual]:
        left = None if seconds is None else end - time.perf_counter()
        if left is not None and left <= 0.0 and stream is not streams[0]:
            return []
        if follows:
            path = {**limits, "term_penalty": middle.term, "seconds": left}
            return path_trees(rows, middle.size, kind, stream, **path)
        return [init_seed(rows, kind.size, TAO, stream, seconds=left, **limits)]

    trees = [tree for several in map(make, kinds, streams) for tree in several]
    return [repair(tree, rows, constraints) for tree in trees]


def evolve_briefly(
    problem: Problem,
    rows: Dataset,
    penalties: Sequence[Penalties],
    seed: int,
    seconds: float | None,
) -> list[Individual]:
    """Return the trees of a short evolution, at the last of the penalties."""
    evolution = problem.evolution
    rows = rows.penalized(penalties[-1].term)
    choice = Choice(seed, penalties[-1])
    toolbox = problem_toolbox(problem, rows, choice, seed)
    first = toolbox.population(n=evolution.population_size, seconds=seconds)
    return evolve(
        first,
        toolbox,
        crossover_probability=evolution.variation.crossover_probability,
        patience=evolution.patience,
        max_generations=-(-problem.config.max_generations // _GENERATIONS_SHARE),
        time_limit=seconds,
        keep_on_interrupt=True,
    ).population


def problem_toolbox(
    problem: Problem,
    rows: Dataset,
    choice: Choice,
    seed: int,
    found: Sequence[Individual] = (),
    begins: bool = True,
) -> base.Toolbox:
    """Return the toolbox of a population; only one that begins needs the first trees."""
    config, evolution = problem.config, problem.evolution
    refinement, regularization = evolution.refinement, evolution.regularization
    if refinement is not None:
        refinement = replace(
            refinement, C=regularization.C, penalty=regularization.penalty
        )
    return make_toolbox(
        rows,
        size_penalty=choice.penalties.size,
        term_penalty=choice.penalties.term,
        max_split_terms=config.max_split_terms,
        init=evolution.init if begins else None,
        found=found if begins else (),
        refinement=refinement,
        variation=evolution.variation,
        operators=evolution.operators,
        constraints=problem.constraints,
        max_depth=config.max_depth,
        random_state=seed,
        end=problem.end,
        start=problem.start if begins else None,
    )


def best_prunings(
    individuals: Iterable[Individual],
    dataset: Dataset,
    size_penalty: float,
    term_penalty: float = 0.0,
    n_best: int = 3,
) -> list[Individual]:
    """Return the fittest trees at penalties that they were not made for, each pruned by these."""
    penalties = size_penalty, term_penalty
    pruned = [
        prune(_penalized(tree, term_penalty), dataset, *penalties)[0]
        for tree in individuals
    ]
    different = [
        tree
        for tree, is_first in zip(pruned, distinct(pruned), strict=True)
        if is_first
    ]
    different.sort(key=PenalizedAccuracy(*penalties), reverse=True)
    return different[:n_best]


def _penalized(individual: Individual, term_penalty: float) -> Individual:
    """Return a clone in which terms of leaves have a penalty."""
    penalized = individual.clone()
    if penalized.objective is not None:
        penalized.evolve_for(penalized.objective.penalized(term_penalty))
    return penalized


# ---- penalties x folds ---------------------------------------------------------------------------


class Trial(NamedTuple):
    """What trees of some penalties lose on the rows of one fold."""

    fold: int
    trees: list[Sequence[Individual]]  # by penalties
    losses: np.ndarray  # of the rows held out, shape (n_penalties, n_rows)
    complexity: np.ndarray
    weights: np.ndarray  # of these rows
    rivals: RivalLosses | None = None  # by logistic leaves


class Found(NamedTuple):
    """What trials say: the penalties, and trees that are worth keeping."""

    penalties: Any = None
    trees: Sequence[
        Individual
    ] = ()  # at these penalties, of the first folds of all rows
    larger: Sequence[
        Individual
    ] = ()  # the best of each at each of the penalties after these
    leaves: Rival | None = None  # logistic leaves, if they are better
    cv_results: Mapping[str, np.ndarray] = MappingProxyType({})


def trials_of(
    problem: Problem, rows: Dataset, seed: int, seconds: float | None
) -> Iterator[Trial]:
    """Yield a trial of each fold where there is anything to choose."""
    config, n_rows = problem.config, rows.n_rows
    n_folds = min(_FOLDS, math.ceil(_HELD_OUT_ROWS * _FOLDS / rows.n_distinct))
    n_folds = max(n_folds, _FOLDS * min(3, _REPEATED_ROWS // n_rows))
    end = math.inf if seconds is None else time.perf_counter() + seconds
    limits: dict[str, Any] = {"seed": seed}
    limits["seconds"] = None if seconds is None else seconds / n_folds
    # Threads that wait for the trees of a fold, and threads that make them.
    with thread_map(config.n_jobs) as mapper, thread_map(config.n_jobs) as making:
        yield from cross_validate(
            rows,
            partial(trees_of, problem, map=making, **limits),
            own_streams(seed)[0],
            penalties=partial(penalties_to_try, config),
            n_folds=_FOLDS,
            max_folds=n_folds,
            models=logistic_rivals(problem),
            end=end,
            map=mapper,
        )


def cross_validate(
    dataset: Dataset,
    search: Callable[[Dataset, Sequence[Any]], Sequence[Sequence[Individual]]],
    stream: np.ndarray,
    *,
    penalties: Callable[[float], Sequence[Any]],
    n_folds: int = 5,
    max_folds: int = 5,
    models: LogisticRivals | None = None,
    end: float = math.inf,
    map: Callable[..., Iterable[Any]] = map,
) -> Iterator[Trial]:
    """Yield a trial of each fold, of rows dealt out again where more are asked for than there are.

    For all penalties a search yields some trees, whose losses on the held-out fold are averaged, so
    that chance decides less. After `end` no trial but the first one begins.
    """
    n_folds = min(n_folds, dataset.n_rows)
    if n_folds < 2 or (models is None and len(penalties(dataset.total_weight)) == 1):
        return
    dealt = [
        make_folds(dataset, n_folds, stream) for _ in range(-(-max_folds // n_folds))
    ]

    def run(number: int) -> Trial | None:
        if number and time.perf_counter() >= end:
            return None
        again, fold = divmod(number, n_folds)
        others, held_out = split_folds(
            dataset, dealt[again], fold
        )  # not before: much memory
        trees = search(others, penalties(others.total_weight))
        reference = trees[len(trees) // 2][0]
        different = {
            id(several): several[:_JUDGED] for several in trees
        }  # equal ones are shared
        losses_of = {
            key: np.mean(
                [row_losses(tree, held_out, reference) for tree in several], axis=0
            )
            for key, several in different.items()
        }
        losses = np.array([losses_of[id(several)] for several in trees])
        complexity = [
            np.mean([tree.complexity for tree in some[:_JUDGED]]) for some in trees
        ]
        if reference.objective is not None:
            reference.objective.forget()
        rivals = None
        if models is not None:
            rivals = models.losses(
                others, held_out, [several[0] for several in trees], end
            )
        weights = held_out.sample_weight
        return Trial(number, list(trees), losses, np.array(complexity), weights, rivals)

    yield from (trial for trial in map(run, range(max_folds)) if trial is not None)


def found_by(
    trials: Sequence[Trial],
    penalties: Sequence[Any],
    standard_errors: float = STANDARD_ERRORS,
    models: LogisticRivals | None = None,
) -> Found:
    """Return what trials say, or the first penalties where there are none.

    Losses are compared row by row. The highest penalty for nodes wins that no smaller one beats by
    more than some standard errors of the difference, or, where those for terms differ too, the
    penalties of the least complex trees: a larger tree has to earn its nodes and terms.
    """
    if not trials:
        asked = models is not None and models.with_splits
        return Found(
            penalties[0], leaves=Rival(_DEFAULT_STRENGTH, 0) if asked else None
        )
    standard_errors *= (
        max(1.0, len(trials) / _FOLDS) ** 0.5
    )  # rows that count again are no more
    losses = np.concatenate([trial.losses for trial in trials], axis=1)
    complexity = np.sum([trial.complexity for trial in trials], axis=0)
    weights = np.concatenate([trial.weights for trial in trials])
    # Penalties that differ for nodes alone are in order as they are.
    is_ordered = len({getattr(pair, "term", None) for pair in penalties}) == 1
    order = (
        np.arange(len(penalties))
        if is_ordered
        else np.argsort(complexity, kind="stable")
    )
    at = int(order[first_unbeaten(losses[order], weights, standard_errors)])
    leaves, chosen = None, at
    rivals = [trial.rivals for trial in trials if trial.rivals is not None]
    if models is not None and rivals:
        known = RivalLosses.joined(rivals)
        winner = choose_rival(known, weights, standard_errors)
        if models.with_splits or known.errors[winner] @ weights < losses[at] @ weights:
            leaves, chosen = rival(winner), len(penalties) + winner
            at = at if leaves.at is None else leaves.at
    kept = trials[:_FOLDS]
    return Found(
        penalties[at],
        [tree for trial in kept for tree in trial.trees[at]],
        [trees[0] for trial in kept for trees in trial.trees[at + 1 :]],
        leaves,
        as_cv_results(trials, penalties, chosen),
    )


def as_cv_results(
    trials: Sequence[Trial], penalties: Sequence[Any], chosen: int
) -> dict[str, np.ndarray]:
    """Return trials as arrays, as scikit-learn's ``cv_results_`` has them.

    `chosen` is the number of the penalties, or of logistic leaves after them.
    """
    losses = [
        trial.losses
        if trial.rivals is None
        else np.concatenate([trial.losses, trial.rivals[0]])
        for trial in trials
    ]
    n_rivals = len(losses[0]) - len(penalties)
    rivals = [rival(number) for number in range(n_rivals)]
    sizes = [*penalties] + [
        Penalties(np.nan, np.nan) if each.at is None else penalties[each.at]
        for each in rivals
    ]
    no = [np.nan] * len(penalties)
    weights = [trial.weights for trial in trials]
    mean, error = mean_and_error(
        np.concatenate(losses, axis=1), np.concatenate(weights)
    )
    table: dict[str, Any] = {
        "leaves": ["constant"] * len(penalties) + ["linear"] * n_rivals,
        "size_penalty": [getattr(pair, "size", pair) for pair in sizes],
        "term_penalty": [getattr(pair, "term", np.nan) for pair in sizes],
        "C": no + [each.strength.C for each in rivals],
        "halvings": no + [each.strength.halvings for each in rivals],
        "chosen": np.arange(len(sizes)) == chosen,
        "mean_loss": mean,
        "standard_error": error * max(1.0, len(trials) / _FOLDS) ** 0.5,
    }
    for trial, own in zip(trials, losses, strict=True):
        table[f"split{trial.fold}_loss"] = mean_and_error(own, trial.weights)[0]
    return {name: np.asarray(column) for name, column in table.items()}
