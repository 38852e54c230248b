"""Hyperparameters chosen by cross-validation: the noise, and the penalties for nodes and terms."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from sklearn.frozen import FrozenEstimator

from evotree.engine.config import MIN_ROWS, Regularization, SearchConfig, evolution_of, is_auto
from evotree.engine.parallel import thread_map
from evotree.engine.teachers import FrozenTeacher, make_teacher
from evotree.engine.toolbox import feature_bound, split_init
from evotree.fitness.penalties import PenalizedAccuracy
from evotree.folds import make_folds, split_folds
from evotree.operators.constraints.base import Constraint, repair
from evotree.operators.initialization.resampling import blur, teach
from evotree.operators.initialization.seeding import TAO, WIDTHS, init_seed
from evotree.operators.initialization.width_paths import path_trees
from evotree.operators.pruning.penalized import prune
from evotree.operators.refinement.policy import Refinement
from evotree.operators.structure.reduced import row_losses
from evotree.operators.variation.selection import distinct
from evotree.rng import make_streams

if TYPE_CHECKING:
    from evotree.dataset import Dataset
    from evotree.individual import Individual

_HELD_OUT_ROWS = 1000  # that differ, held out in all, if that takes no more than five folds
_RIVAL_ROWS = 400  # held out, by which a regularization is chosen
_FOLDS = 5
_STANDARD_ERRORS = 0.5
_JUDGED = 3  # trees, whose losses are averaged
_KEPT_TREES = 5  # of each fold, that join the first population
_SEEDS_EACH = 2  # optimized trees for each of the penalties that are tried
_PATHS = 4  # of widths, axis-parallel and linear trees among them
_LEAST_RESAMPLED = 3000  # rows that a fitness is measured on, if they are resampled
_COPIES = 4  # of each row, at most

SIZE_MULTIPLES = (0.8, 0.4, 0.2, 0.1, 0.05, 0.025)
"""Penalties for a node that are tried, in units of log(n) / n for n rows."""

TERM_MULTIPLES = (1.0, 0.25, 0.05)
"""Penalties for a term that are tried with each, in units of the penalty for a node."""

LEAST_PENALTY = 1e-4
"""No smaller penalty is tried, however many the rows: trees stay small enough to be read."""

NOISES = (0.1, 0.0)
"""The noise that ``"auto"`` stands for. Noise comes first: the fitness that it smooths tells trees
apart that are all perfect on the training rows."""


class Penalties(NamedTuple):
    """What the fitness takes off for the complexity of a tree.

    Attributes
    ----------
    size : float
        Penalty for a node.
    term : float
        Penalty for each term after a split's first.
    """

    size: float
    term: float


class Chosen(NamedTuple):
    """What cross-validation chooses, or was given.

    Attributes
    ----------
    regularization : Regularization
        Without ``"auto"``.
    penalties : Penalties
        For nodes and terms.
    """

    regularization: Regularization
    penalties: Penalties


def candidates(config: SearchConfig, objective: Any = None) -> list[Regularization]:
    """Return the regularizations that cross-validation chooses among."""
    given = evolution_of(config).regularization
    noises: tuple[Any, ...] = (given.noise,)
    if is_auto(given.noise):
        noises = NOISES if objective is None or objective.takes_noise else (0.0,)
    return [replace(given, noise=noise) for noise in noises]


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
        Penalties(size, max(least, multiple * size)) for size in sizes for multiple in multiples
    ]


def resample(dataset: Dataset, regularization: Regularization, stream: np.ndarray) -> Dataset:
    """Return the rows that the fitness is measured on."""
    teacher, noise = regularization.teacher, regularization.noise
    assert isinstance(noise, float | int)
    if teacher is not None:
        if isinstance(teacher, str):
            teacher = make_teacher(dataset.n_classes > 0)
        elif isinstance(teacher, FrozenEstimator):
            teacher = FrozenTeacher(teacher, dataset)
        n_drawn = max(_LEAST_RESAMPLED, dataset.n_samples)
        return teach(dataset, teacher, n_drawn, noise, stream)
    if noise > 0.0:
        n_copies = min(_COPIES, round(_LEAST_RESAMPLED / dataset.n_samples))
        return blur(dataset, noise, n_copies, stream)
    return dataset


def choose(
    dataset: Dataset,
    config: SearchConfig,
    streams: Sequence[np.ndarray],
    step: Callable[[], object],
    first_trees: Callable[
        [Dataset, Regularization, Sequence[Penalties], float | None], list[Individual]
    ],
    seconds: float | None = None,
) -> tuple[Chosen, list[Individual], list[Individual]]:
    """Choose the noise and the penalties by cross-validation."""
    n_folds = min(_FOLDS, math.ceil(_HELD_OUT_ROWS * _FOLDS / len(dataset.y)))
    rivals = candidates(config, dataset.objective)
    folds, resampling = streams
    each = None
    if seconds is not None:
        n_rival = rival_folds(dataset.n_samples, _FOLDS, n_folds, len(rivals))
        each = seconds / (n_rival * len(rivals) + n_folds - n_rival)

    def search(
        rows: Dataset, candidate: Regularization, tried: Sequence[Penalties]
    ) -> list[list[Individual]]:
        step()
        end = math.inf if each is None else time.perf_counter() + each
        resampled = resample(rows, candidate, resampling.copy())
        left = None if each is None else end - time.perf_counter()
        trees = first_trees(resampled, candidate, tried, left)
        best: dict[Penalties, list[Individual]] = {}
        last: list[Individual] = []
        for one in tried:
            if one not in best:
                if not last or time.perf_counter() < end:
                    last = best_prunings(trees, resampled, *one, _KEPT_TREES)
                best[one] = last  # out of time, penalties have equal trees: the first are chosen
        return [best[one] for one in tried]

    with thread_map(config.n_jobs, dataset.X.shape) as mapper:
        found = cross_validate(
            dataset,
            search,
            rivals,
            folds,
            penalties=partial(penalties_to_try, config),
            n_folds=_FOLDS,
            max_folds=n_folds,
            standard_errors=_STANDARD_ERRORS,
            time_limit=seconds,
            map=mapper,
        )
    return Chosen(found.candidate, found.penalties), found.trees, found.larger


def seeds_of_all_sizes(
    config: SearchConfig,
    seed: int,
    constraints: Sequence[Constraint],
    dataset: Dataset,
    candidate: Regularization,
    penalties: Sequence[Penalties],
    seconds: float | None,
) -> list[Individual]:
    """Return first trees that show what a candidate is worth, at all penalties."""
    end = math.inf if seconds is None else time.perf_counter() + seconds
    limits: dict[str, Any] = {
        "C": Refinement(C=candidate.C).bounds(),
        "penalty": candidate.penalty,
        "min_rows": MIN_ROWS,
        "max_depth": config.max_depth,
        "max_features": feature_bound(config.max_split_terms, dataset.X.shape[1], constraints),
    }
    follows = WIDTHS in split_init(evolution_of(config).init)[0]
    middle = penalties[len(penalties) // 2]
    dataset = dataset.priced(middle.term)
    told = range(_PATHS) if follows else [one for one in penalties for _ in range(_SEEDS_EACH)]
    streams = make_streams(seed, 0, len(told))

    def make(one: Any, stream: np.ndarray) -> list[Individual]:
        left = None if seconds is None else end - time.perf_counter()
        if left is not None and left <= 0.0 and stream is not streams[0]:
            return []
        if follows:
            path = {**limits, "term_penalty": middle.term, "seconds": left}
            return path_trees(dataset, middle.size, one, stream, **path)
        return [init_seed(dataset, one.size, TAO, stream, seconds=left, **limits)]

    found = [tree for trees in map(make, told, streams) for tree in trees]
    return [repair(tree, dataset, constraints) for tree in found]


def rival_folds(n_rows: int, n_folds: int, max_folds: int, n_candidates: int) -> int:
    """Return the number of folds on which all candidates compete: until 400 rows were held out."""
    if n_candidates == 1:
        return max_folds
    return min(max_folds, math.ceil(_RIVAL_ROWS * n_folds / n_rows))


def best_prunings(
    individuals: Iterable[Individual],
    dataset: Dataset,
    size_penalty: float,
    term_penalty: float = 0.0,
    n_best: int = 3,
) -> list[Individual]:
    """Return the fittest trees at penalties that they were not made for, each pruned by these."""
    penalties = size_penalty, term_penalty
    pruned = [prune(_priced(one, term_penalty), dataset, *penalties)[0] for one in individuals]
    different = [one for one, is_first in zip(pruned, distinct(pruned), strict=True) if is_first]
    different.sort(key=PenalizedAccuracy(*penalties), reverse=True)
    return different[:n_best]


def _priced(individual: Individual, term_penalty: float) -> Individual:
    """Return a clone in which terms of leaves have a penalty."""
    priced = individual.clone()
    if priced.objective is not None:
        priced.evolve_for(priced.objective.priced(term_penalty))
    return priced


class Found(NamedTuple):
    """What cross-validation found.

    Attributes
    ----------
    candidate : object
        One of the candidates.
    penalties : object
        One of the penalties for all rows; the first where the rows are too few to hold any out.
    trees : list of Individual
        The trees of the candidate at these penalties, of all folds.
    larger : list of Individual
        The best tree of each fold at each of the penalties after these.
    """

    candidate: Any
    penalties: Any
    trees: list[Individual]
    larger: list[Individual]


class _Searched(NamedTuple):
    """What the search of a candidate on the rows of all folds but one yielded, by penalties."""

    trees: list[Sequence[Individual]]
    losses: np.ndarray  # of the rows held out
    complexity: np.ndarray
    weights: np.ndarray  # of these rows


def cross_validate(
    dataset: Dataset,
    search: Callable[[Dataset, Any, Sequence[Any]], Iterable[Sequence[Individual]]],
    candidates: Sequence[Any],
    stream: np.ndarray,
    *,
    penalties: Callable[[float], Sequence[Any]],
    n_folds: int = 5,
    max_folds: int = 5,
    standard_errors: float = 1.0,
    time_limit: float | None = None,
    map: Callable[..., Iterable[Any]] = map,
) -> Found:
    """Choose a candidate for a search and its penalties by cross-validation.

    Each candidate is searched on the rows of the other folds, until 400 rows were held out; the
    one that wins there is searched on the remaining folds, too. For all penalties a search yields
    some trees, whose losses on the held-out fold are averaged, so that chance decides less. These
    losses are compared row by row. The first candidate wins that no later one beats by more than
    some standard errors of the difference, each at its best penalties; with it, the highest penalty
    for nodes that no smaller one beats so, or, where those for terms differ too, the penalties of
    the least complex trees: a larger tree has to earn its nodes and terms.
    """
    n_rows = dataset.n_samples
    n_folds, for_all = min(n_folds, n_rows), penalties(dataset.total_weight)
    if n_folds < 2 or len(candidates) == len(for_all) == 1:
        return Found(candidates[0], for_all[0], [], [])
    folds = make_folds(dataset, n_folds, stream)
    end = math.inf if time_limit is None else time.perf_counter() + time_limit
    n_held_out = min(n_folds, max_folds)

    def searched(told: tuple[int, int]) -> _Searched | None:
        fold, i = told
        if told != (0, 0) and time.perf_counter() >= end:
            return None
        others, held_out = split_folds(dataset, folds, fold)  # not before: all take much memory
        trees = list(search(others, candidates[i], penalties(others.total_weight)))
        reference = trees[len(trees) // 2][0]
        different = {id(some): some[:_JUDGED] for some in trees}  # equal penalties share them
        losses_of = {
            key: np.mean([row_losses(one, held_out, reference) for one in some], axis=0)
            for key, some in different.items()
        }
        losses = [losses_of[id(some)] for some in trees]
        complexity = [np.mean([one.complexity for one in some[:_JUDGED]]) for some in trees]
        if reference.objective is not None:
            reference.objective.forget()
        return _Searched(trees, np.array(losses), np.array(complexity), held_out.sample_weight)

    def search_folds(which: range, rivals: Sequence[int]) -> dict[tuple[int, int], _Searched]:
        told = [(fold, i) for fold in which for i in rivals]
        found = zip(told, map(searched, told), strict=True)
        return {one: made for one, made in found if made is not None}

    n_rival = rival_folds(n_rows, n_folds, n_held_out, len(candidates))
    found = search_folds(range(n_rival), range(len(candidates)))
    standing = [i for i in range(len(candidates)) if (0, i) in found]
    complete = 0
    while all((complete, i) in found for i in standing):
        complete += 1
    weights = np.concatenate([found[fold, standing[0]].weights for fold in range(complete)])
    losses = [
        np.concatenate([found[fold, i].losses for fold in range(complete)], axis=1)
        for i in standing
    ]
    at_best = np.array([one[np.argmin(one @ weights)] for one in losses])
    best = standing[worth_it(at_best, weights, standard_errors)]
    if len(for_all) > 1 and complete == n_rival:
        found |= search_folds(range(n_rival, n_held_out), [best])
    done = [fold for fold in range(n_held_out) if (fold, best) in found]
    if complete < n_rival:
        done = done[:complete]
    at = _least_complex(
        [found[fold, best] for fold in done],
        for_all,
        np.concatenate([found[fold, best].weights for fold in done]),
        standard_errors,
    )
    trees = [tree for fold in done for tree in found[fold, best].trees[at]]
    larger = [some[0] for fold in done for some in found[fold, best].trees[at + 1 :]]
    return Found(candidates[best], for_all[at], trees, larger)


def _least_complex(
    found: Sequence[_Searched],
    penalties: Sequence[Any],
    weights: np.ndarray,
    standard_errors: float,
) -> int:
    """Return the first penalties, by falling size or rising complexity, that no others beat."""
    losses = np.concatenate([one.losses for one in found], axis=1)
    complexity = np.sum([one.complexity for one in found], axis=0)
    # Penalties that differ for nodes alone are in order as they are.
    is_ordered = len({getattr(one, "term", None) for one in penalties}) == 1
    order = np.arange(len(penalties)) if is_ordered else np.argsort(complexity, kind="stable")
    return int(order[worth_it(losses[order], weights, standard_errors)])


def worth_it(losses: np.ndarray, weights: np.ndarray, standard_errors: float) -> int:
    """Return the first candidate that no later one beats by more than some standard errors."""
    total = weights.sum()
    for i in range(losses.shape[0] - 1):
        difference = losses[i] - losses[i + 1 :]
        mean = difference @ weights / total
        variance = np.maximum(0.0, difference**2 @ weights / total - mean**2)
        if (mean <= standard_errors * np.sqrt(variance / total)).all():
            return i
    return losses.shape[0] - 1
