"""Hyperparameters chosen by cross-validation: penalties of nodes and terms, and models of leaves.

Candidates are trees of each of some penalties, whose leaves hold class shares, means or lines, and
logistic models of leaves, where these are tried. All are compared on the same rows held out.
"""

import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from evotree.dataset import Dataset, make_folds, split_folds
from evotree.engine.config import SearchConfig, is_auto
from evotree.engine.parallel import thread_map
from evotree.engine.populations import own_streams, trees_of
from evotree.engine.problem import Penalties, Problem
from evotree.fitness.linear_leaves import (
    Candidate,
    CandidateLosses,
    LogisticLeaves,
    Strength,
)
from evotree.operators.structure.reduced import row_losses
from evotree.tree import Individual

_HELD_OUT_ROWS = (
    1000  # that differ, held out in all, if that takes no more than five folds
)
_FOLDS = 5
_REPEATED_ROWS = 750  # held out in all, where folds are drawn again
_JUDGED = 3  # trees, whose losses are averaged
_DEFAULT_STRENGTH = Strength(0.1)  # of models that nothing was held out to choose

STANDARD_ERRORS = 0.5
"""By which a loss has to be lower for more complex trees to be chosen."""

SIZE_MULTIPLES = (0.8, 0.4, 0.2, 0.1, 0.05, 0.025)
"""Penalties for a node that are tried, in units of log(n) / n for n rows."""

TERM_MULTIPLES = (1.0, 0.25, 0.05)
"""Penalties for a term that are tried with each, in units of the penalty for a node."""

LEAST_PENALTY = 1e-4
"""No smaller penalty is tried, however many the rows: trees stay small enough to be read."""


class Choice(NamedTuple):
    """What a run evolves by, besides the configuration."""

    seed: int  # seed of the run
    penalties: Penalties  # for nodes and terms, given or chosen
    leaves: Candidate | None = (
        None  # logistic, that are better than those of such trees
    )


def penalties_to_try(config: SearchConfig, n_rows: float) -> list[Penalties]:
    """Return the penalties among which cross-validation chooses.

    Those for nodes are multiples of log(n) / n, as that of BIC is of the log-likelihood (Schwarz
    1978): n rows tell about so small a difference. Those for terms are multiples of these. None is
    below `LEAST_PENALTY`, unless it is given.
    """
    if is_auto(config.size_penalty):
        least = LEAST_PENALTY
        unit = math.log(n_rows + 1.0) / n_rows
        sizes = [max(least, multiple * unit) for multiple in SIZE_MULTIPLES]
    else:
        least = 0.0
        sizes = [float(config.size_penalty)]
    if not is_auto(config.term_penalty):
        return [Penalties(size, float(config.term_penalty)) for size in sizes]
    multiples = TERM_MULTIPLES if sizes[0] > 0.0 else TERM_MULTIPLES[:1]
    return [
        Penalties(size, max(least, multiple * size))
        for size in sizes
        for multiple in multiples
    ]


# ---- candidates x folds --------------------------------------------------------------------------


class Trial(NamedTuple):
    """What the candidates lose on the rows of one fold."""

    fold: int
    trees: list[Sequence[Individual]]  # by penalties
    losses: np.ndarray  # of trees on the rows held out, shape (n_penalties, n_rows)
    complexity: np.ndarray  # of trees, shape (n_penalties,)
    weights: np.ndarray  # of these rows
    of_models: CandidateLosses | None = None  # by logistic leaves


class Found(NamedTuple):
    """What trials say: the penalties, and trees that are worth keeping."""

    penalties: Any = None
    # at these penalties, of the first folds of all rows
    trees: Sequence[Individual] = ()
    # the best at each of the penalties after these
    front_only: Sequence[Individual] = ()
    leaves: Candidate | None = None  # logistic leaves, if they are better
    cv_results: Mapping[str, np.ndarray] = MappingProxyType({})


def trials_of(
    problem: Problem, rows: Dataset, seed: int, seconds: float | None
) -> Iterator[Trial]:
    """Yield a trial of each fold where there is anything to choose."""
    config = problem.config
    n_folds = min(_FOLDS, math.ceil(_HELD_OUT_ROWS * _FOLDS / rows.n_distinct))
    n_folds = max(n_folds, _FOLDS * min(3, _REPEATED_ROWS // rows.n_rows))
    end = math.inf if seconds is None else time.perf_counter() + seconds
    # Threads that wait for the trees of a fold, and threads that make them.
    with thread_map(config.n_jobs) as mapper, thread_map(config.n_jobs) as making:
        search = partial(
            trees_of,
            problem,
            map=making,
            seed=seed,
            seconds=None if seconds is None else seconds / n_folds,
        )
        yield from cross_validate(
            rows,
            search,
            own_streams(seed)[0],
            penalties=partial(penalties_to_try, config),
            n_folds=_FOLDS,
            max_folds=n_folds,
            models=problem.leaf_models,
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
    models: LogisticLeaves | None = None,
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
        # Not before: it takes much memory.
        others, held_out = split_folds(dataset, dealt[again], fold)
        trees = search(others, penalties(others.total_weight))
        reference = trees[len(trees) // 2][0]
        different = {id(several): several[:_JUDGED] for several in trees}
        losses_of = {
            key: np.mean(
                [row_losses(tree, held_out, reference) for tree in several], axis=0
            )
            for key, several in different.items()
        }
        complexity = [
            np.mean([tree.complexity for tree in several[:_JUDGED]])
            for several in trees
        ]
        if reference.objective is not None:
            reference.objective.forget()
        of_models = None
        if models is not None:
            fittest = [several[0] for several in trees]
            of_models = models.losses(others, held_out, fittest, end)
        return Trial(
            number,
            list(trees),
            np.array([losses_of[id(several)] for several in trees]),
            np.array(complexity),
            held_out.sample_weight,
            of_models,
        )

    yield from (trial for trial in map(run, range(max_folds)) if trial is not None)


# ---- what is chosen ------------------------------------------------------------------------------


def found_by(
    trials: Sequence[Trial],
    penalties: Sequence[Any],
    standard_errors: float = STANDARD_ERRORS,
    models: LogisticLeaves | None = None,
) -> Found:
    """Return what trials say, or the first penalties where there are none.

    Losses are compared row by row. The highest penalty for nodes wins that no smaller one beats by
    more than some standard errors of the difference, or, where those for terms differ too, the
    penalties of the least complex trees: a larger tree has to earn its nodes and terms. Models of
    leaves take the place of these trees where they lose less, or where they are all that is asked.
    """
    if not trials:
        is_asked = models is not None and models.in_all_leaves
        return Found(
            penalties[0], leaves=Candidate(_DEFAULT_STRENGTH, 0) if is_asked else None
        )
    standard_errors *= _repeated(trials)
    losses = np.concatenate([trial.losses for trial in trials], axis=1)
    complexity = np.sum([trial.complexity for trial in trials], axis=0)
    weights = np.concatenate([trial.weights for trial in trials])
    # Penalties that differ for nodes alone are in order as they are.
    order = np.arange(len(penalties))
    if len({getattr(pair, "term", None) for pair in penalties}) > 1:
        order = np.argsort(complexity, kind="stable")
    at = int(order[first_unbeaten(losses[order], weights, standard_errors)])
    chosen = at
    leaves = None
    candidates: list[Candidate] = []
    of_models = [trial.of_models for trial in trials if trial.of_models is not None]
    if models is not None and of_models:
        candidates = models.candidates(len(penalties))
        judged = CandidateLosses.joined(of_models)
        best = choose_candidate(candidates, judged, weights, standard_errors)
        is_better = judged.errors[best] @ weights < losses[at] @ weights
        if models.in_all_leaves or is_better:
            leaves = candidates[best]
            if judged.is_too_large[best]:  # smaller trees have the best of the models
                small = np.flatnonzero(~judged.is_too_large)
                others = [candidates[i] for i in small]
                of_others = judged.take(small)
                second = choose_candidate(others, of_others, weights, standard_errors)
                strength = others[second].strength
                leaves = Candidate(strength, leaves.at, keeps_shares=True)
            chosen = len(penalties) + best
            at = at if leaves.at is None else leaves.at
    kept = trials[:_FOLDS]
    return Found(
        penalties[at],
        trees=[tree for trial in kept for tree in trial.trees[at]],
        front_only=[trees[0] for trial in kept for trees in trial.trees[at + 1 :]],
        leaves=leaves,
        cv_results=as_cv_results(trials, penalties, candidates, chosen),
    )


def _repeated(trials: Sequence[Trial]) -> float:
    """Return the factor of standard errors: rows that are dealt out again are no more rows."""
    return max(1.0, len(trials) / _FOLDS) ** 0.5


def choose_candidate(
    candidates: Sequence[Candidate],
    losses: CandidateLosses,
    weights: np.ndarray,
    standard_errors: float,
) -> int:
    """Return the position of the best models of leaves.

    They are the simplest that no others beat by more than some standard errors; among those of as
    many terms that are not worse by as much, those of the least log loss, whose probabilities are
    the best.
    """
    order = np.argsort(losses.complexity, kind="stable")
    unbeaten = first_unbeaten(losses.errors[order], weights, standard_errors)
    winner = int(order[unbeaten])
    kinds = [(one.strength.halvings, one.at) for one in candidates]
    alike = [i for i, kind in enumerate(kinds) if kind == kinds[winner]]
    excess, error = mean_and_error(
        losses.errors[alike] - losses.errors[winner], weights
    )
    is_worse = excess > standard_errors * error
    log_losses = np.where(is_worse, np.inf, losses.log_losses[alike] @ weights)
    return alike[int(log_losses.argmin())]


def first_unbeaten(
    losses: np.ndarray, weights: np.ndarray, standard_errors: float
) -> int:
    """Return the first candidate that no later one beats by more than some standard errors."""
    for i in range(losses.shape[0] - 1):
        mean, error = mean_and_error(losses[i] - losses[i + 1 :], weights)
        if (mean <= standard_errors * error).all():
            return i
    return losses.shape[0] - 1


def mean_and_error(
    values: np.ndarray, weights: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the means of some rows, and their standard errors."""
    total = weights.sum()
    mean = values @ weights / total
    variance = np.maximum(0.0, values**2 @ weights / total - mean**2)
    return mean, np.sqrt(variance / total)


def as_cv_results(
    trials: Sequence[Trial],
    penalties: Sequence[Any],
    candidates: Sequence[Candidate],
    chosen: int,
) -> dict[str, np.ndarray]:
    """Return trials as arrays, as scikit-learn's ``cv_results_`` has them.

    Models of leaves come after the penalties; `chosen` is a position among all of them.
    """
    losses = [
        trial.losses
        if trial.of_models is None
        else np.concatenate([trial.losses, trial.of_models.errors])
        for trial in trials
    ]
    none = Penalties(np.nan, np.nan)
    sizes = [
        *penalties,
        *(none if one.at is None else penalties[one.at] for one in candidates),
    ]
    no_strength = [np.nan] * len(penalties)
    weights = np.concatenate([trial.weights for trial in trials])
    mean, error = mean_and_error(np.concatenate(losses, axis=1), weights)
    kinds = ["constant"] * len(penalties) + ["linear"] * len(candidates)
    table: dict[str, Any] = {
        "leaves": kinds,
        "size_penalty": [getattr(pair, "size", pair) for pair in sizes],
        "term_penalty": [getattr(pair, "term", np.nan) for pair in sizes],
        "C": no_strength + [one.strength.C for one in candidates],
        "halvings": no_strength + [one.strength.halvings for one in candidates],
        "chosen": np.arange(len(sizes)) == chosen,
        "mean_loss": mean,
        "standard_error": error * _repeated(trials),
    }
    for trial, of_fold in zip(trials, losses, strict=True):
        table[f"split{trial.fold}_loss"] = mean_and_error(of_fold, trial.weights)[0]
    return {name: np.asarray(column) for name, column in table.items()}
