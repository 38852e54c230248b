"""What a search returns, chosen by cross-validation: all candidates by one loss and one rule.

Candidates are trees of each of some penalties; trees of logistic models, which for two classes are
logistic regressions; and, where leaves of counts are asked to be linear, trees with log-linear
models in their leaves. All are compared on the same rows held out. Classes are judged by their
probabilities, as they would be returned, or by what the objective says of their labels.
"""

import math
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import compress
from typing import Any, NamedTuple

import numpy as np
from scipy.special import softmax

from evotree.configuration import SCORE
from evotree.dataset import (
    EXPOSURE,
    GROUPS,
    Dataset,
    fold_count,
    make_folds,
    split_folds,
)
from evotree.engine.config import SearchConfig, is_auto
from evotree.engine.evolution import ParetoFront
from evotree.engine.populations import (
    FirstTrees,
    best_prunings,
    evolve_briefly,
    samples_of,
    trees_of,
    with_noise,
)
from evotree.engine.problem import Penalties, Problem, seconds_until
from evotree.engine.scores import Score, rate_models
from evotree.fitness.probabilities import (
    Strength,
    fit_soft_sides,
)
from evotree.front import MENU, select
from evotree.leaf_models import class_probabilities
from evotree.operators.constraints import keeps_all
from evotree.operators.initialization.logistic import LOGISTIC, logistic_trees
from evotree.operators.losses import (
    loss_moments,
    mean_and_error,
    prediction_losses,
    row_losses,
    target_losses,
)
from evotree.operators.structure.splice import make_individual
from evotree.operators.variation import distinct
from evotree.parallel import thread_map
from evotree.rng import own_streams
from evotree.tables.frames import level_of_user
from evotree.tree import Individual, ObliqueTree

# Folds are made until so many rows that differ, or groups, are held out in all, but no more folds
# than these.
_HELD_OUT_ROWS = 600
_MAX_FOLDS = 5

STANDARD_ERRORS = 0.5
"""By which the loss of a less complex candidate may be above that of the best."""

SCORED_ERRORS = 2.0
"""By which the loss of trees on a score of targets may be above that of trees alone."""

EVOLVING_ERRORS = 2.0
"""By which the loss of the trees that evolution begins with may be above that of the best."""

LEAF_ERRORS = 2.0
"""By which the loss of a tree with splits has to be below that of one leaf with a model."""

LARGE, LARGE_ERRORS = 60, 2.0
"""Complexity above which the loss has to be lower by so many standard errors."""

SIZE_MULTIPLES = (0.8, 0.4, 0.2, 0.1, 0.05, 0.025)
"""Penalties for a node that are tried, in units of log(n) / n for n rows."""

TERM_MULTIPLES = (1.0, 0.25, 0.05)
"""Penalties for a term that are tried with each, in units of the penalty for a node."""

LEAST_PENALTY, LEAST_MULTIPLE = 1e-4, 0.1
"""No smaller penalty is tried, nor, of many rows, a smaller multiple: trees can still be read."""

TREE, EVOLVED, LINEAR, SIZED = "tree", "evolved", "linear", "size"
"""Kinds of candidates besides `LOGISTIC` and `SCORE`: first trees, evolved ones, those with models,
and those of a menu by size, which is for people to choose from."""


class Candidate(NamedTuple):
    """What may be returned."""

    kind: str = TREE
    # Which penalties the tree has, or which of the bounds of `MENU`; None for what has neither.
    at: int | None = None
    strength: Strength | None = None  # of logistic or log-linear models
    is_scored: bool = False  # whether it is the sum of a tree and a score

    @property
    def has_score(self) -> bool:
        """Whether it is a score, or stands on one."""
        return self.is_scored or self.kind == SCORE


class Choice(NamedTuple):
    """What a run evolves by and what it returns, besides the configuration."""

    seed: int  # seed of the run
    penalties: Penalties  # for nodes and terms, given or chosen
    winner: Candidate = Candidate(EVOLVED)
    # The models of the logistic tree that joins the front, if there is one.
    logistic: Strength | None = None

    @property
    def is_evolved(self) -> bool:
        """Whether the fittest tree of the run is returned, not one that was there before."""
        kind, at = self.winner.kind, self.winner.at
        return kind == EVOLVED or (kind == LINEAR and at is not None)


def penalties_to_try(
    config: SearchConfig, n_rows: float, n_groups: float | None = None
) -> list[Penalties]:
    """Return the penalties among which cross-validation chooses.

    Those for nodes are multiples of log(n) / n, as that of BIC is of the log-likelihood (Schwarz
    1978): n rows tell about so small a difference. Those for terms are multiples of these. None is
    below `LEAST_PENALTY`, or from some 10,000 rows on `LEAST_MULTIPLE` of the unit, unless it is
    given. What rows tell that belong together lies between what as many groups tell and what as
    many rows do: the largest penalty is that of the groups, the least that of the rows.
    """
    if is_auto(config.size_penalty):
        unit = math.log(n_rows + 1.0) / n_rows
        least = min(LEAST_PENALTY, LEAST_MULTIPLE * unit)
        sizes = [max(least, multiple * unit) for multiple in SIZE_MULTIPLES]
        if n_groups is not None:
            largest = SIZE_MULTIPLES[0] * math.log(n_groups + 1.0) / n_groups
            sizes = np.geomspace(largest, sizes[-1], len(sizes)).tolist()
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


def penalties_of_rows(config: SearchConfig, rows: Dataset) -> list[Penalties]:
    """Return the penalties among which cross-validation chooses for some rows."""
    n_groups = None if rows.groups is None else rows.n_groups
    return penalties_to_try(config, rows.total_weight, n_groups)


# ---- candidates x folds --------------------------------------------------------------------------


class Trial(NamedTuple):
    """What the candidates lose on the rows of one fold."""

    fold: int
    trees: FirstTrees
    losses: dict[Candidate, np.ndarray]  # on the rows held out, each of shape (n_rows,)
    sizes: dict[Candidate, tuple[int, int]]  # leaves and complexity
    weights: np.ndarray  # of these rows
    evolved: Sequence[Individual] = ()  # the fittest at any penalty, if trees evolved
    groups: np.ndarray | None = None  # of these rows
    # A row tells as much as any other, whatever its weight is.
    has_exposures: bool = False
    score: Score | None = None  # of the rows that are not held out


class Verdict(NamedTuple):
    """What trials say: the penalties, and trees that are worth keeping."""

    penalties: Any = None
    winner: Candidate = Candidate()
    # Trees at these penalties, of all folds; where evolution pays, all that it found there.
    trees: Sequence[Individual] = ()
    # The best trees at each of the penalties after these.
    front_only: Sequence[Individual] = ()
    logistic: Strength | None = None
    columns: Mapping[str, np.ndarray] | None = None  # of `TreeChoice`


class CandidateLosses:
    """What candidates lose on rows held out, by one loss for all of them."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.kind = problem.loss_of_probabilities

    def trial(
        self,
        number: int,
        rows: Dataset,
        held_out: Dataset,
        trees: FirstTrees,
        score: Score | None = None,
        end: float = math.inf,
    ) -> Trial:
        """Return what all candidates lose that were fitted to some rows."""
        of_all = self._of_all(rows, held_out, trees.best, score, end)
        return Trial(
            number,
            trees,
            *_by_candidate(of_all),
            held_out.sample_weight,
            groups=held_out.extras.get(GROUPS),
            has_exposures=EXPOSURE in held_out.extras,
            score=score,
        )

    def _of_all(
        self,
        rows: Dataset,
        held_out: Dataset,
        trees: Sequence[Sequence[Individual]],
        score: Score | None,
        end: float,
    ) -> Iterator[tuple[Candidate, np.ndarray, tuple[int, int]]]:
        fittest = [several[0] for several in trees]
        reference = trees[len(trees) // 2][0]
        if score is not None and rows.n_classes == 0:  # targets are what it leaves
            lost = target_losses(np.zeros(held_out.n_distinct), held_out)
            yield Candidate(SCORE), lost, (1, 1 + score.n_terms)
            for tree in self.of_trees(TREE, fittest, rows, held_out):
                candidate, lost, (n_leaves, complexity) = tree
                yield candidate, lost, (n_leaves, complexity + score.n_terms)
            return
        yield from self.of_trees(TREE, fittest, rows, held_out, score, reference)
        if score is not None:
            shares = softmax(score.log_odds(held_out.raw), axis=1)
            lost = prediction_losses(shares, held_out, self.kind)
            n_leaves = 2 if rows.n_classes == 2 else 1
            yield Candidate(SCORE), lost, (n_leaves, n_leaves + score.n_terms)
        if reference.objective is not None:
            reference.objective.forget()
        if self.problem.tries_logistic:
            for strength, (individual, sides) in logistic_trees(rows, end=end):
                if keeps_all(individual, rows, self.problem.constraints):
                    lost = row_losses(
                        individual,
                        held_out,
                        sides=sides if self.problem.is_soft else None,
                        kind=self.kind,
                    )
                    candidate = Candidate(LOGISTIC, strength=strength)
                    yield candidate, lost, size_of(individual)
        models = self.problem.leaf_models
        if models is not None:
            roots = rate_models(rows, models.used)
            fits = models.fits(rows, held_out, fittest, roots, end)
            for place, strength, predicted, size in fits:
                candidate = Candidate(LINEAR, place, strength)
                yield candidate, target_losses(predicted, held_out), size

    def of_trees(
        self,
        kind: str,
        trees: Sequence[Individual],
        rows: Dataset,
        held_out: Dataset,
        score: Score | None = None,
        reference: Individual | None = None,
    ) -> Iterator[tuple[Candidate, np.ndarray, tuple[int, int]]]:
        """Yield what the trees of some penalties lose, alone and on a score, with their sizes."""
        known: dict[Any, list[np.ndarray]] = {}
        for at, tree in enumerate(trees):
            # At some penalties the best tree is the same.
            splits = tree.weights.tobytes(), tree.thresholds.tobytes()
            if splits not in known:
                known[splits] = self.of_tree(tree, rows, held_out, score, reference)
            n_leaves, complexity = size_of(tree)
            yield Candidate(kind, at), known[splits][0], (n_leaves, complexity)
            if score is not None and n_leaves > 1:
                candidate = Candidate(kind, at, is_scored=True)
                size = n_leaves, complexity + score.n_terms
                yield candidate, known[splits][1], size

    def of_tree(
        self,
        tree: Individual,
        rows: Dataset,
        held_out: Dataset,
        score: Score | None = None,
        reference: Individual | None = None,
    ) -> list[np.ndarray]:
        """Return what a tree loses that was bred on some rows, and what it loses on a score."""
        if self.kind is None:
            return [row_losses(tree, held_out, reference=reference)]
        raw = rows.to_raw(make_individual(rows, *tree.splits).to_tree())
        is_soft = self.problem.is_soft
        sides = fit_soft_sides(raw, rows, brief=True) if is_soft else None
        shares = [class_probabilities(raw, sides, held_out.raw)]
        if score is not None:
            shares.append(score.joined(raw, held_out.raw))
        return [prediction_losses(one, held_out, self.kind) for one in shares]


def _by_candidate(
    judged: Iterable[tuple[Candidate, np.ndarray, tuple[int, int]]],
) -> tuple[dict[Candidate, np.ndarray], dict[Candidate, tuple[int, int]]]:
    """Return the losses of candidates, and their sizes."""
    known = {candidate: (losses, size) for candidate, losses, size in judged}
    return (
        {candidate: losses for candidate, (losses, _) in known.items()},
        {candidate: size for candidate, (_, size) in known.items()},
    )


def size_of(tree: ObliqueTree) -> tuple[int, int]:
    """Return the number of leaves of a tree, and its complexity."""
    return tree.n_leaves, tree.complexity


def trials_of(problem: Problem, rows: Dataset, end: float) -> Iterator[Trial]:
    """Yield a trial of each fold where there is anything to choose."""
    config = problem.config
    n_folds = max(1, fold_count(rows, _MAX_FOLDS))
    if rows.cv is None:
        n_apart = rows.n_distinct if rows.groups is None else rows.n_groups
        n_folds = min(_MAX_FOLDS, math.ceil(_HELD_OUT_ROWS * _MAX_FOLDS / n_apart))
    left = seconds_until(end, 1.0 / n_folds)
    # Threads that wait for the trees of a fold, and threads that make them.
    with thread_map(config.n_jobs) as mapper, thread_map(config.n_jobs) as making:

        def search(others: Dataset, penalties: Sequence[Any]) -> FirstTrees:
            noisy = with_noise(problem, others, own_streams()[1])
            return trees_of(problem, noisy, penalties, left, map=making)

        yield from cross_validate(
            rows,
            search,
            CandidateLosses(problem),
            own_streams()[0],
            penalties=partial(penalties_of_rows, config),
            n_folds=_MAX_FOLDS,
            max_folds=n_folds,
            end=end,
            map=mapper,
        )


def cross_validate(
    dataset: Dataset,
    search: Callable[[Dataset, Sequence[Any]], FirstTrees],
    losses_of: CandidateLosses,
    stream: np.ndarray,
    *,
    penalties: Callable[[Dataset], Sequence[Any]],
    n_folds: int = 5,
    max_folds: int = 5,
    end: float = math.inf,
    map: Callable[..., Iterable[Any]] = map,
) -> Iterator[Trial]:
    """Yield a trial of each fold, or of as many as are asked for.

    A search makes the trees of all penalties. After `end` no trial but the first one begins.
    """
    n_folds = fold_count(dataset, n_folds)
    is_one = len(penalties(dataset)) == 1
    problem = losses_of.problem
    if n_folds == 0 or (is_one and problem.has_one_kind):
        return
    folds = make_folds(dataset, n_folds, stream)

    def run(fold: int) -> Trial | None:
        if fold and time.perf_counter() >= end:
            return None
        # Not before: it takes much memory.
        others, held_out = split_folds(dataset, folds, fold)
        # A sample may have no rows of a part; early rows, or few groups, may have one class.
        is_own = dataset.cv is not None or dataset.groups is not None
        has_one = len(np.unique(others.y)) < min(2, dataset.n_classes)
        if 0 in (others.n_rows, held_out.n_rows) or (is_own and has_one):
            return None
        score = problem.score_of(others, end) if problem.tries_score else None
        unit = others.target_scale
        if problem.is_on_score and score is not None:
            others = others.with_targets(others.raw_targets - score.predict(others.raw))
            rest = held_out.raw_targets - score.predict(held_out.raw)
            held_out = held_out.with_targets(rest, like=others)
        trees = search(others, penalties(others))
        trial = losses_of.trial(fold, others, held_out, trees, score, end)
        if not problem.is_on_score:
            return trial
        unit = (others.target_scale / unit) ** 2
        return trial._replace(
            losses={one: unit * lost for one, lost in trial.losses.items()}
        )

    is_silent = True
    for trial in map(run, range(min(n_folds, max_folds))):
        if trial is not None:
            is_silent = False
            yield trial
    if is_silent:
        name = GROUPS if dataset.cv is None else "cv"
        warnings.warn(
            f"{name}: whatever is held out, the other rows are of one class, or none; nothing is "
            "chosen by rows held out.",
            stacklevel=level_of_user(),
        )


def kinds_of(problem: Problem) -> tuple[str, ...]:
    """Return the kinds of candidates that are compared before any evolves."""
    if problem.leaf_models is None:
        return TREE, LOGISTIC
    return (TREE, LINEAR) if is_auto(problem.config.leaves) else (LINEAR,)


def trials_of_targets(
    problem: Problem, end: float
) -> Iterator[tuple[Trial | None, Trial | None]]:
    """Yield trials of trees and of trees on a score of targets, fold by fold; None for what left.

    Trees alone leave once their best loses more than the best on a score, by half an error. Trees
    on a score leave once they lose clearly more, unless they are demanded.
    """
    rows = samples_of(problem)[0]
    alone = trials_of(problem, rows, end)
    if problem.scored is None:
        yield from ((trial, None) for trial in alone)
        return
    on_score = trials_of(problem.scored, rows, end)
    kinds = kinds_of(problem)
    both: list[Trial] = []
    for pair in zip(alone, on_score, strict=False):
        yield pair
        both.append(side_by_side(*pair))
        table = Table.of(both)
        best, other = table.best(*kinds, SCORE, is_scored=True), table.best(*kinds)
        gain, error = table.gain(best, other)
        if gain > STANDARD_ERRORS * error:
            yield from ((None, trial) for trial in on_score)
        elif gain < -EVOLVING_ERRORS * error and problem.config.leaves != SCORE:
            yield from ((trial, None) for trial in alone)


def side_by_side(trial: Trial, scored: Trial) -> Trial:
    """Return a trial of the candidates of two of the same fold, one of trees on a score."""
    scored = marked(scored)
    return trial._replace(
        losses=trial.losses | scored.losses, sizes=trial.sizes | scored.sizes
    )


def marked(scored: Trial) -> Trial:
    """Return a trial of trees on a score, whose candidates say so."""
    losses, sizes = {}, {}
    for one, lost in scored.losses.items():
        mark = one._replace(is_scored=one.kind != SCORE)
        losses[mark], sizes[mark] = lost, scored.sizes[one]
    return scored._replace(losses=losses, sizes=sizes)


def with_evolution(
    problem: Problem, rows: Dataset, trials: Sequence[Trial], end: float
) -> Sequence[Trial]:
    """Return trials in which evolved trees are candidates, too, if they lose less than others.

    There are none where one split is chosen without them. In each fold a short run begins with the
    trees that were found there, at the least penalties whose trees are not clearly worse than the
    best: evolution makes more of large trees. Its population is pruned by these penalties and by
    larger ones. There is no further run once none of its trees is preferred so far to what was
    chosen without them.
    """
    table = Table.of(trials)
    winner = table.simplest(STANDARD_ERRORS, TREE, LOGISTIC)
    n_leaves = table.sizes[table.candidates.index(winner), 0]
    if 1.0 < n_leaves <= 2.0:
        return trials
    at = table.most_complex(EVOLVING_ERRORS, TREE).at
    assert at is not None
    losses_of = CandidateLosses(problem)
    folds = make_folds(rows, fold_count(rows, _MAX_FOLDS), own_streams()[0])
    judged: list[Trial] = []
    for trial in trials:
        left = seconds_until(end, 1.0 / len(trials))
        if left <= 0.0:
            return trials
        others, held_out = split_folds(rows, folds, trial.fold)
        penalties = penalties_of_rows(problem.config, others)[: at + 1]
        noisy = with_noise(problem, others, own_streams()[1])
        found = [*trial.trees.best[at], *trial.trees.made]
        bred = evolve_briefly(
            problem,
            noisy,
            penalties[-1],
            left,
            found=[make_individual(noisy, *tree.splits) for tree in found],
        )
        fittest = [best_prunings(bred, noisy, *pair, 1)[0] for pair in penalties]
        evolved = losses_of.of_trees(EVOLVED, fittest, others, held_out, trial.score)
        losses, sizes = _by_candidate(evolved)
        judged.append(
            trial._replace(
                losses=trial.losses | losses,
                sizes=trial.sizes | sizes,
                evolved=list(compress(fittest, distinct(fittest))),
            )
        )
        table = Table.of(judged)
        best, simplest = table.best(EVOLVED), table.simplest(STANDARD_ERRORS, EVOLVED)
        if table.gain(best, winner)[0] <= 0.0 and not table.prefers(simplest, winner):
            return trials
    return judged


def with_sizes(
    problem: Problem, rows: Dataset, trials: Sequence[Trial], end: float
) -> Sequence[Trial]:
    """Return trials in which the best trees of at most some sizes are judged, too, for people.

    They are the best on the rows of a fold among all trees that were found there and their
    prunings, as `evotree.front.select` takes them from the front of all rows.
    """
    has_own = problem.evolution.variation.algorithm == "nsga2"
    if not trials or has_own or problem.leaf_models is not None:
        return trials
    losses_of = CandidateLosses(problem)
    folds = make_folds(rows, fold_count(rows, _MAX_FOLDS), own_streams()[0])
    judged: list[Trial] = []
    for trial in trials:
        if time.perf_counter() >= end:
            return trials
        others, held_out = split_folds(rows, folds, trial.fold)
        found = [*(several[0] for several in trial.trees.best), *trial.evolved]
        front = ParetoFront()
        front.update(
            make_individual(others, *tree.splits)
            for tree in compress(found, distinct(found))
        )
        front.add_prunings(others, end)
        smallest = min(tree.complexity for tree in front)
        fittest = [
            select(front, f"complexity<={max(bound, smallest)}") for bound in MENU
        ]
        # As all others of the fold: where a loss is no sum over rows, it takes what errors cost.
        reference = trial.trees.best[len(trial.trees.best) // 2][0]
        losses, sizes = _by_candidate(
            losses_of.of_trees(SIZED, fittest, others, held_out, reference=reference)
        )
        judged.append(
            trial._replace(losses=trial.losses | losses, sizes=trial.sizes | sizes)
        )
    return judged


# ---- what is chosen ------------------------------------------------------------------------------


class Table(NamedTuple):
    """What candidates that all trials have lose on all rows held out, the least complex first."""

    candidates: list[Candidate]
    losses: np.ndarray  # of shape (n_candidates, n_rows)
    sizes: np.ndarray  # means of leaves and complexity, of shape (n_candidates, 2)
    weights: np.ndarray  # of the rows
    groups: np.ndarray | None = None  # of the rows, numbers from 0

    @classmethod
    def of(cls, trials: Sequence[Trial]) -> "Table":
        """Return the table of some trials."""
        candidates = [
            one
            for one in trials[0].losses
            if all(one in trial.losses for trial in trials)
        ]
        losses = [[trial.losses[one] for one in candidates] for trial in trials]
        each = [[trial.sizes[one] for one in candidates] for trial in trials]
        sizes = np.mean(each, axis=0)
        order = np.argsort(sizes[:, 1], kind="stable")
        weights = np.concatenate([trial.weights for trial in trials])
        groups = np.arange(len(weights)) if trials[0].has_exposures else None
        if trials[0].groups is not None:
            labels = np.concatenate([trial.groups for trial in trials])
            groups = np.unique(labels, return_inverse=True)[1]
        return cls(
            [candidates[i] for i in order],
            np.concatenate(losses, axis=1)[order],
            sizes[order],
            weights,
            groups,
        )

    def simplest(self, standard_errors: float, *kinds: str) -> Candidate:
        """Return the least complex candidate, of some kinds, that the best one hardly beats.

        In the place of a large one the best that is not large is taken, where it is not clearly
        worse.
        """
        at = [
            i
            for i, one in enumerate(self.candidates)
            if one.kind in kinds and not one.is_scored
        ]
        losses = self.losses[at]
        excess = losses - losses[(losses @ self.weights).argmin()]
        mean, error = self._mean_and_error(excess)
        chosen = int((mean <= standard_errors * error).argmax())
        is_small = self.sizes[at, 1] <= LARGE
        if not is_small[chosen] and is_small.any():
            smaller = int(np.where(is_small, mean, np.inf).argmin())
            if mean[smaller] <= LARGE_ERRORS * error[smaller]:
                chosen = smaller
        return self.candidates[at[chosen]]

    def is_leaf(self, one: Candidate) -> bool:
        """Return whether the trees of a candidate are leaves in all folds."""
        return bool(self.sizes[self.candidates.index(one), 1] == 1.0)

    def one_leaf_unless(self, winner: Candidate, kinds: Sequence[str]) -> Candidate:
        """Return the leaf, of some kinds, that loses least, unless a winner loses clearly less.

        Where events are few, what is within half a standard error ranks rows far worse.
        """
        losses = self.losses @ self.weights
        is_kind = [one.kind in kinds for one in self.candidates]
        is_leaf = (self.sizes[:, 0] == 1.0) & is_kind
        leaf = self.candidates[int(np.where(is_leaf, losses, np.inf).argmin())]
        gain, error = self.gain(winner, leaf)
        return winner if gain > LEAF_ERRORS * error else leaf

    def least_penalized(self, chosen: Candidate) -> Candidate:
        """Return the candidate of least penalties whose trees were the same in all folds.

        The rows of folds do not tell their penalties apart; of all rows a larger tree may pay.
        """
        # Other trees may lose as much: where they rank all rows rightly, they lose nothing.
        known = np.hstack([self.sizes, self.losses])
        is_same = (known == known[self.candidates.index(chosen)]).all(axis=1)
        same = [
            one
            for one in compress(self.candidates, is_same)
            if (one.kind, one.is_scored) == (chosen.kind, chosen.is_scored)
        ]
        return max(same, key=lambda one: one.at or 0)

    def most_complex(self, standard_errors: float, kind: str) -> Candidate:
        """Return the most complex candidate of a kind whose loss is close to that of the best."""
        best = self.best(kind)
        found = best
        for one in self.candidates:  # by rising complexity
            excess, error = self.gain(best, one)
            if (
                one.kind == kind
                and not one.is_scored
                and excess <= standard_errors * error
            ):
                found = one
        return found

    def best(self, *kinds: str, is_scored: bool = False) -> Candidate:
        """Return the candidate of some kinds that loses least, with a score or without."""
        losses = self.losses @ self.weights
        is_kind = [
            one.kind in kinds and one.has_score == is_scored for one in self.candidates
        ]
        return self.candidates[int(np.where(is_kind, losses, np.inf).argmin())]

    def prefers(self, one: Candidate, other: Candidate) -> bool:
        """Return whether a candidate takes the place of another one.

        It has to lose no more if it is less complex, and clearly less if it is more complex.
        """
        gain, error = self.gain(one, other)
        mine, others = (self.sizes[self.candidates.index(c), 1] for c in (one, other))
        if mine < others:
            return gain >= -STANDARD_ERRORS * error
        return gain > error * (
            LARGE_ERRORS if mine > LARGE >= others else STANDARD_ERRORS
        )

    def gain(self, one: Candidate, other: Candidate) -> tuple[float, float]:
        """Return how much less a candidate loses than another one, and its standard error."""
        mine, others = (self.losses[self.candidates.index(c)] for c in (one, other))
        mean, error = self._mean_and_error(others - mine)
        return float(mean), float(error)

    def _mean_and_error(self, losses: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return means of losses on all rows held out, and their standard errors."""
        return mean_and_error(loss_moments(losses, self.weights, self.groups))


def verdict_of(
    trials: Sequence[Trial],
    penalties: Sequence[Any],
    kinds: Sequence[str] = (TREE, LOGISTIC),
    *,
    standard_errors: float = STANDARD_ERRORS,
    demands_score: bool = False,
) -> Verdict:
    """Return what trials say, or the first penalties where there are none.

    Losses are compared row by row. The least complex candidate of some kinds wins whose loss is
    above that of the best by no more than half a standard error of the difference: a larger tree
    has to earn its nodes and terms. An evolved tree takes its place where `Table.prefers` it, and a
    score, or a tree on one, as `on_score` says.
    """
    if not trials:
        is_linear = TREE not in kinds
        return Verdict(
            penalties[0],
            Candidate(LINEAR, strength=Strength(10.0))
            if is_linear
            else Candidate(is_scored=demands_score),
        )
    table = Table.of(trials)
    present = {one.kind for one in table.candidates}
    # A tree of logistic models stands on no score.
    kinds = [kind for kind in kinds if not (demands_score and kind == LOGISTIC)]
    winner = table.simplest(standard_errors, *kinds)
    if {TREE, LINEAR} <= set(kinds):  # of times
        winner = table.one_leaf_unless(winner, kinds)
    if EVOLVED in present:
        evolved = table.simplest(STANDARD_ERRORS, EVOLVED)
        if table.prefers(evolved, winner):
            winner = table.least_penalized(evolved)
    score = trials[0].score
    of_two = score is not None and len(score.intercepts) == 1
    winner = on_score(table, winner, of_two=of_two, demanded=demands_score)
    at = winner.at
    if at is None:
        at = table.simplest(STANDARD_ERRORS, TREE).at
    logistic = None
    if winner.kind == LOGISTIC:
        logistic = winner.strength
    elif LOGISTIC in present:
        logistic = table.simplest(STANDARD_ERRORS, LOGISTIC).strength
    assert at is not None
    trees = [tree for trial in trials for tree in trial.trees.best[at]]
    if winner.kind == EVOLVED:
        trees += [tree for trial in trials for tree in trial.evolved]
    return Verdict(
        penalties[at],
        winner,
        trees=trees,
        front_only=[
            trees[0] for trial in trials for trees in trial.trees.best[at + 1 :]
        ],
        logistic=logistic,
        columns=choice_columns(trials, penalties, winner),
    )


def on_score(
    table: Table, winner: Candidate, *, of_two: bool, demanded: bool = False
) -> Candidate:
    """Return the winner on a score, or a score alone, where one takes the winner's place.

    A score says what columns add by themselves, a tree what they do together. Of two classes there
    is one score, and a tree stands on it unless it loses more there; one leaf, which ranks no rows,
    gives way to the score alone. Else `Table.prefers` says.
    """
    both, alone = winner._replace(is_scored=True), Candidate(SCORE)
    best = winner
    joined = alone if table.is_leaf(winner) else both
    if joined in table.candidates:
        gain, error = table.gain(joined, winner)
        is_as_good = of_two and gain >= -STANDARD_ERRORS * error
        if demanded or is_as_good or table.prefers(joined, winner):
            best = joined
    if alone in table.candidates and (
        table.prefers(alone, best) or (demanded and best == winner)
    ):
        best = alone
    return best


def with_score(
    plain: Verdict,
    trials: Sequence[Trial],
    scored: Sequence[Trial],
    penalties: Sequence[Any],
    *,
    demanded: bool = False,
) -> Verdict:
    """Return the verdict on trees, or on trees on a score of targets.

    The latter stand unless they lose clearly more, or are demanded.
    """
    verdict = verdict_of(scored, penalties, (TREE, SCORE), standard_errors=1.0)
    both = [side_by_side(*pair) for pair in zip(trials, scored, strict=False)]
    both += map(marked, scored[len(both) :])
    winner = verdict.winner._replace(is_scored=verdict.winner.kind != SCORE)
    has_left = len(trials) < len(scored)
    if not (demanded or has_left):
        gain, error = Table.of(both).gain(winner, plain.winner)
        demanded = gain >= -SCORED_ERRORS * error
    if demanded or has_left:
        plain = verdict._replace(winner=winner)
    return plain._replace(columns=choice_columns(both, penalties, plain.winner))


def choice_columns(
    trials: Sequence[Trial], penalties: Sequence[Any], winner: Candidate
) -> dict[str, np.ndarray]:
    """Return the columns of `evotree.front.TreeChoice`.

    What has left is told by how much more than the winner it lost in the folds that it was in.
    """
    whole = Table.of(trials)
    # What has a score stays to the end where other trees leave.
    first = Table.of(
        [one for one in trials if not all(each.has_score for each in one.losses)]
        or trials
    )
    candidates = first.candidates
    tables = [whole if one in whole.candidates else first for one in candidates]
    pairs = list(zip(tables, candidates, strict=True))
    sizes = np.array([table.sizes[table.candidates.index(one)] for table, one in pairs])
    excess, error = np.array([table.gain(winner, one) for table, one in pairs]).T
    lost = whole.losses[whole.candidates.index(winner)] @ whole.weights
    none = Penalties(np.nan, np.nan)
    of_trees = [
        none if one.at is None or one.kind == SIZED else penalties[one.at]
        for one in candidates
    ]
    models = [one.strength for one in candidates]
    columns: dict[str, Any] = {
        "kind": [one.kind for one in candidates],
        "leaves": sizes[:, 0],
        "complexity": sizes[:, 1],
        "size_penalty": [getattr(pair, "size", pair) for pair in of_trees],
        "term_penalty": [getattr(pair, "term", np.nan) for pair in of_trees],
        "C": [np.nan if one is None else one.C for one in models],
        "halvings": [np.nan if one is None else one.halvings for one in models],
        "loss": lost / whole.weights.sum() + excess,
        "excess": excess,
        "standard_error": error,
        "chosen": [one == winner for one in candidates],
        "at_most": [
            np.nan if one.at is None or one.kind != SIZED else MENU[one.at]
            for one in candidates
        ],
    }
    if any(one.is_scored for one in candidates):
        columns["on_score"] = [one.is_scored for one in candidates]
    for trial in trials:
        blank = np.full(len(trial.weights), np.nan)
        losses = np.array([trial.losses.get(one, blank) for one in candidates])
        columns[f"fold_{trial.fold}"] = losses @ trial.weights / trial.weights.sum()
    order = np.argsort(sizes[:, 1], kind="stable")
    return {name: np.asarray(column)[order] for name, column in columns.items()}
