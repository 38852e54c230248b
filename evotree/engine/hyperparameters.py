"""Settings chosen by rows that the trees were not made on."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from evotree.fitness.objectives import PenalizedAccuracy
from evotree.operators.pruning.penalized import prune
from evotree.operators.refinement.tao import leaf_predictions
from evotree.operators.variation.selection import distinct
from evotree.rng import as_generator

if TYPE_CHECKING:
    from evotree.dataset import Dataset
    from evotree.individual import Individual

_CLOSE = 2.0  # standard errors of the difference between settings that stay in the race

SIZE_PENALTIES = (0.005, 0.002, 0.001, 0.0005)
"""Charges for a node that are tried, the highest first."""


def make_folds(dataset: Dataset, n_folds: int, stream: np.ndarray) -> np.ndarray:
    """Return the fold of each row, classes, or high and low targets, spread evenly over them.

    Parameters
    ----------
    dataset : Dataset
        The rows.
    n_folds : int, at least 2
        Number of folds.
    stream : ndarray of shape (1,), uint64
        Random state, advanced.

    Returns
    -------
    ndarray of shape (n_rows,), int64
        0, ..., n_folds - 1.
    """
    n = dataset.X.shape[0]
    rng = as_generator(stream)
    shuffled = rng.permutation(n)
    by_class = shuffled[np.argsort(dataset.y[shuffled], kind="stable")]
    in_turn = np.arange(n) % n_folds
    if dataset.n_classes == 0:  # the order of targets leaves nothing to chance
        rounds = np.tile(np.arange(n_folds), (-(-n // n_folds), 1))
        in_turn = rng.permuted(rounds, axis=1).ravel()[:n]
    folds = np.empty(n, dtype=np.int64)
    folds[by_class] = in_turn
    return folds


def row_losses(individual: Individual, held_out: Dataset) -> np.ndarray:
    """Return the loss of each row held out: 0 or 1 for classes, the squared error for targets."""
    predicted = leaf_predictions(individual, held_out.n_classes)[individual.apply(held_out.X)]
    if held_out.n_classes:
        return (predicted != held_out.y).astype(np.float64)
    return (predicted - held_out.y) ** 2


def best_prunings(
    individuals: Iterable[Individual],
    dataset: Dataset,
    size_penalty: float,
    weight_penalty: float = 0.0,
    n_best: int = 3,
) -> list[Individual]:
    """Return the fittest trees at a charge that they were not made for, each pruned by it.

    Parameters
    ----------
    individuals : iterable of Individual
        The trees, at least one; read only.
    dataset : Dataset
        The rows that they were made on.
    size_penalty : float, at least 0
        Charge for one node.
    weight_penalty : float, at least 0, default=0.0
        Charge for a test on all features (`PenalizedAccuracy`).
    n_best : int, at least 1, default=3
        How many to return, if there are as many different ones.

    Returns
    -------
    list of Individual
        The fittest first, the first of equals.
    """
    pruned = [prune(one.clone(), dataset, size_penalty)[0] for one in individuals]
    different = [one for one, is_first in zip(pruned, distinct(pruned), strict=True) if is_first]
    different.sort(key=PenalizedAccuracy(size_penalty, weight_penalty), reverse=True)
    return different[:n_best]


def choose_settings(
    dataset: Dataset,
    search: Callable[[Dataset, Any, Sequence[float]], Iterable[Sequence[Individual]]],
    settings: Sequence[Any],
    stream: np.ndarray,
    *,
    size_penalties: Sequence[float] = SIZE_PENALTIES,
    n_folds: int = 5,
    max_folds: int = 5,
    standard_errors: float = 1.0,
    time_limit: float | None = None,
) -> tuple[Any, float]:
    """Choose a setting of a search and the charge for a node by cross-validation.

    On the rows of the other folds each setting is searched once; for every charge it yields some
    trees, whose losses on the fold held out are averaged, so that chance decides less. These losses
    are compared row by row. The setting with the least loss at its best charge is chosen,
    and of it the highest charge that no smaller one beats by more than so many standard errors of
    the difference: a larger tree has to be worth it. Settings that fall behind are not searched on
    the remaining folds (`race`).

    Parameters
    ----------
    dataset : Dataset
        Training rows.
    search : callable
        ``search(rows, setting, size_penalties)`` makes trees on some rows and returns for every
        charge at least one.
    settings : sequence
        What the search may be given, the first of equals is chosen.
    stream : ndarray of shape (1,), uint64
        Random state, advanced.
    size_penalties : sequence of float, default=SIZE_PENALTIES
        Charges, falling.
    n_folds : int, at least 2, default=5
        Number of folds.
    max_folds : int, at least 1, default=5
        Only so many of the folds are held out in turn.
    standard_errors : float, at least 0, default=1.0
        By how many standard errors a smaller charge has to be better.
    time_limit : float or None, default=None
        No search begins when so many seconds have passed, the first one apart; a later fold that
        is not complete then does not count.

    Returns
    -------
    setting : object
        One of the settings.
    size_penalty : float
        One of the charges; the first where the rows are too few to hold any out.
    """
    n_folds = min(n_folds, dataset.X.shape[0])
    if n_folds < 2 or len(settings) == len(size_penalties) == 1:
        return settings[0], size_penalties[0]
    folds = make_folds(dataset, n_folds, stream)
    losses: list[np.ndarray] = [np.empty((len(size_penalties), 0)) for _ in settings]
    weights = np.empty(0)
    racing = list(range(len(settings)))
    begin, limit = time.perf_counter(), np.inf if time_limit is None else time_limit
    for fold in range(min(n_folds, max_folds)):
        held_out, others = dataset.take(folds == fold), dataset.take(folds != fold)
        means: dict[int, list[np.ndarray]] = {}
        for i in racing:
            is_first = fold == 0 and not means
            if not is_first and time.perf_counter() - begin >= limit:
                break
            found = search(others, settings[i], size_penalties)
            means[i] = [
                np.mean([row_losses(one, held_out) for one in trees], axis=0) for trees in found
            ]
        if len(means) < len(racing) and fold > 0:
            break
        racing = list(means)
        weights = np.append(weights, held_out.sample_weight)
        for i in racing:
            losses[i] = np.concatenate([losses[i], means[i]], axis=1)
        racing = race([losses[i] for i in racing], racing, weights)
        if len(racing) == len(size_penalties) == 1:
            break
    best = racing[0]
    return settings[best], size_penalties[worth_it(losses[best], weights, standard_errors)]


def race(losses: Sequence[np.ndarray], settings: Sequence[int], weights: np.ndarray) -> list[int]:
    """Return the settings that may still be the best, the best so far first.

    Each is judged at its best charge. Those that lose to the best so far by more than two standard
    errors of the difference are out (Maron and Moore 1994, "Hoeffding races", NeurIPS, with the
    normal approximation in place of the bound).

    Parameters
    ----------
    losses : sequence of ndarray of shape (n_charges, n_rows)
        Losses of the rows, for each setting.
    settings : sequence of int
        Numbers of the settings.
    weights : ndarray of shape (n_rows,)
        Weights of the rows.

    Returns
    -------
    list of int
        Numbers from `settings`, by rising loss, those of equals rising.
    """
    total = weights.sum()
    at_best = [rows[np.argmin(rows @ weights)] for rows in losses]
    order = sorted(range(len(settings)), key=lambda i: (at_best[i] @ weights, settings[i]))
    standing = []
    for i in order:
        difference = at_best[i] - at_best[order[0]]
        mean = difference @ weights / total
        variance = max(0.0, difference**2 @ weights / total - mean**2)
        if mean <= _CLOSE * np.sqrt(variance / total):
            standing.append(settings[i])
    return standing


def worth_it(losses: np.ndarray, weights: np.ndarray, standard_errors: float) -> int:
    """Return the first candidate that no later one beats by more than some standard errors.

    Parameters
    ----------
    losses : ndarray of shape (n_candidates, n_rows)
        Losses of the rows.
    weights : ndarray of shape (n_rows,)
        Their weights; a row of weight 2 counts as two.
    standard_errors : float, at least 0
        By how many standard errors of the mean difference.

    Returns
    -------
    int
        Position of the candidate.
    """
    total = weights.sum()
    for i in range(losses.shape[0] - 1):
        difference = losses[i] - losses[i + 1 :]
        mean = difference @ weights / total
        variance = np.maximum(0.0, difference**2 @ weights / total - mean**2)
        if (mean <= standard_errors * np.sqrt(variance / total)).all():
            return i
    return losses.shape[0] - 1
