"""From a run to fitted trees: repaired, pruned, rounded, scored again; the front and its best.

Trees evolve on rows that may have noisy copies. What a fit returns keeps all constraints on the
training rows, predicts by these alone, and says what it is worth on them.
"""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from itertools import compress, takewhile
from numbers import Integral
from typing import Any

import numpy as np

from evotree.configuration import SCORE
from evotree.dataset import Dataset
from evotree.engine.bends import without_lone_bends
from evotree.engine.choice import LINEAR, Candidate, Choice, penalties_of_rows
from evotree.engine.evolution import ParetoFront, Run
from evotree.engine.populations import trees_of, with_noise
from evotree.engine.problem import Penalties, Problem, half_way_to, seconds_until
from evotree.engine.scores import (
    Widened,
    again_on_score,
    blank_leaf,
    on_line,
    one_leaf,
    rate_models,
    rest_of,
    rounded_score,
)
from evotree.fitness.base import FITNESS_OF_SCORES, PenalizedAccuracy, routed_rows
from evotree.fitness.linear_leaves import MOST_LEAVES
from evotree.fitness.objectives import ProbabilityScore
from evotree.fitness.probabilities import Strength
from evotree.front import (
    FittedFront,
    FrontTree,
    TreeChoice,
    own_scores,
    undominated,
)
from evotree.leaf_models import LeafModels, ScoreModels, SharedModels
from evotree.operators.constraints import (
    Constraint,
    Held,
    ShapeLimits,
    keeps_all,
    repair,
)
from evotree.operators.initialization.logistic import (
    LOGISTIC,
    SoftTree,
    logistic_trees,
    sides_of,
)
from evotree.operators.losses import quality_on
from evotree.operators.pruning import prune
from evotree.operators.structure.rounding import Rounder, round_models
from evotree.operators.structure.splice import in_place_of, make_individual, on_rows
from evotree.operators.variation import distinct
from evotree.parallel import thread_map
from evotree.rng import own_streams
from evotree.tree import (
    Individual,
    ObliqueTree,
    SoftSides,
    explained_variance,
    leaf_accuracy,
    node_weights,
)

_MOST_FRONT_ONLY = 16  # trees for the front alone: each is finished on all rows
_REPAIRS = 100  # rounds in which a rounded tree is repaired; each has taken out a split


@dataclass
class Result:
    """What a search has found; its trees are over raw features and rounded."""

    run: Run
    problem: Problem
    # The rows that the fitness was measured on.
    rows: Dataset
    choice: Choice
    tree: ObliqueTree  # the best one; all predict by the training rows alone
    # The undominated trees on the training rows; the fittest where the time ends.
    front: FittedFront
    # The first trees of the run's hall of fame that time allows.
    hall_of_fame: list[ObliqueTree]
    # The best tree of each generation.
    best_trees: dict[int, ObliqueTree]
    # The training rows as trees see them: with the bends of a score, if trees stand on one.
    dataset: Dataset
    candidates: TreeChoice | None = None  # what was compared
    # Seconds of each phase; "compiling" is a part of the others.
    seconds: dict[str, float] = field(default_factory=dict)
    # What a callback, or the last write of a checkpoint, has raised.
    failure: BaseException | None = None


def finish_run(
    problem: Problem,
    run: Run,
    rows: Dataset,
    choice: Choice,
    *,
    logistic: FrontTree | None = None,
    has_own_fitness: bool = False,
) -> Result:
    """Return the finished trees of a run; a fitness of the user's own says which is the best.

    `logistic` is the tree of logistic models that was chosen, if it is finished already.
    """
    finisher = Finisher(problem, choice.penalties)
    fitness = PenalizedAccuracy(*choice.penalties)
    front = sorted(pruned_front(problem, run, rows), key=fitness, reverse=True)
    evolved = finisher.members([run.best, *front])
    larger = finisher.members(larger_front_only(problem, run, rows))
    members = with_less_fit(undominated(evolved), larger, fitness)
    # Where terms are free, the front, which counts them, may lack the fittest tree.
    is_penalized = problem.evolution.variation.algorithm != "nsga2"
    if not choice.is_evolved and run.front_only:
        best = finisher.member(on_rows(run.front_only[0], rows))
    elif has_own_fitness or (is_penalized and choice.penalties.term == 0.0):
        best = evolved[0]
    else:
        best = max(members, key=fitness)
    if choice.winner.kind == LINEAR:
        best, members = finisher.with_models(choice.winner, best, members)
    elif choice.logistic is not None:
        if logistic is None:
            logistic = finisher.logistic(choice.logistic)
        if logistic is not None:
            members.append(logistic)
            best = logistic if choice.winner.kind == LOGISTIC else best
    hall_of_fame = finisher.in_time(finisher.tree, run.hall_of_fame)
    best_trees = finisher.in_time(finisher.tree, [*run.best_trees.values()])
    dataset = problem.dataset
    wide = problem.wide
    if wide is not None:  # trees are of what a score of the targets leaves
        assert problem.plain is not None
        dataset = wide.rows
        finisher = Finisher(replace(problem.plain, dataset=dataset), choice.penalties)
        if choice.winner.kind == SCORE:
            best = FrontTree.of(blank_leaf(problem.dataset), 0.0, SCORE)
        best, *members = (finisher.on_line(wide, tree) for tree in (best, *members))
        hall_of_fame, best_trees = (
            [wide.on_score(wide.tree(tree)) for tree in trees]
            for trees in (hall_of_fame, best_trees)
        )
        members += map(wide.tree, smaller_members(problem.plain, best.complexity))
    elif choice.winner.has_score:
        score = problem.score_of(dataset, problem.ends.trees)
        if score is not None:
            wide = Widened.of(dataset, score, problem.evolution.scaling)
            dataset = wide.rows
            finisher = Finisher(replace(problem, dataset=dataset), choice.penalties)
            members, hall_of_fame, best_trees = (
                list(map(wide.tree, trees))
                for trees in (members, hall_of_fame, best_trees)
            )
            best = finisher.on_score(wide, choice.winner, wide.tree(best))
    members = front_with(best, members)
    return Result(
        run,
        problem,
        rows,
        choice,
        tree=best,
        front=FittedFront(members, is_regression=problem.dataset.n_classes == 0),
        hall_of_fame=hall_of_fame,
        best_trees=dict(zip(run.best_trees, best_trees, strict=False)),
        dataset=dataset,
    )


def smaller_members(problem: Problem, complexity: int) -> list[FrontTree]:
    """Return the best of the first trees, pruned to all sizes below some complexity."""
    penalties = penalties_of_rows(problem.config, problem.dataset)
    rows = with_noise(problem, problem.dataset, own_streams()[1])
    seconds = seconds_until(problem.ends.trees, 0.5)
    found = [several[0] for several in trees_of(problem, rows, penalties, seconds).best]
    front = ParetoFront()
    front.update(compress(found, distinct(found)))
    front.add_prunings(rows, half_way_to(problem.ends.trees))
    smaller = [tree for tree in front if tree.complexity < complexity]
    return Finisher(problem, penalties[len(penalties) // 2]).members(smaller)


def front_with(best: FrontTree, members: Sequence[FrontTree]) -> list[FrontTree]:
    """Return an undominated front that has a tree, whether it is dominated or not."""
    rest = [one for one in undominated(members) if one.complexity != best.complexity]
    return sorted([best, *rest], key=lambda tree: tree.complexity)


def with_less_fit(
    front: Sequence[Any],
    larger: Iterable[Any],
    fitness: Callable[[Any], tuple[float]],
) -> list[Any]:
    """Return a front with larger trees than its fittest one, which stays the fittest."""
    best = max(front, key=fitness)
    further = [
        tree
        for tree in larger
        if tree.complexity > best.complexity and fitness(tree) < fitness(best)
    ]
    return undominated([*front, *further])


def pruned_front(problem: Problem, run: Run, rows: Dataset) -> ParetoFront:
    """Return a copy of the front with prunings of its members, which keep all constraints."""
    front = deepcopy(run.pareto_front)
    # In the other half of the time all members are finished
    front.add_prunings(rows, half_way_to(problem.ends.trees))
    dataset = problem.dataset

    def whole(member: Individual) -> Individual:
        routed = make_individual(dataset, *member.splits)
        if keeps_all(routed, dataset, problem.constraints):
            return member
        repaired = repair(routed, dataset, problem.constraints)
        return in_place_of(member, make_individual(rows, *repaired.splits))

    if problem.constraints:
        members = list(map(whole, front))
        front.clear()
        front.update(members)
    return front


def larger_front_only(problem: Problem, run: Run, rows: Dataset) -> list[Individual]:
    """Return the trees for the front alone, and prunings, that are larger than the best."""
    front = ParetoFront()
    if not own_scores(run.best):
        front.update(on_rows(tree, rows) for tree in run.front_only)
        front.add_prunings(rows, problem.ends.trees)
    larger = (tree for tree in front if tree.complexity > run.best.complexity)
    return undominated(larger, most=_MOST_FRONT_ONLY)


class Finisher:
    """Finishes individuals, each once, as long as there is time.

    A finished tree is over raw features and rounded; it keeps all constraints, and its leaves
    predict by the training rows alone.
    """

    def __init__(self, problem: Problem, penalties: Penalties) -> None:
        self.problem = problem
        self.penalties = penalties
        self.constraints = problem.constraints
        self.precision = problem.config.precision
        self.rows = problem.dataset.penalized(penalties.term)
        self._bends = problem.dataset.schema.bends
        self._kept = [*self.constraints, *self._least_rows()]
        self._rounder: Rounder | None = None
        if self.precision is not None:
            self._rounder = Rounder(
                self.rows.raw, self.precision, self.rows.sample_weight
            )
        # Keys are ids of arrays, which are kept so that no others get these.
        self._finished: dict[
            tuple[int, ...], tuple[tuple[np.ndarray, ...], ObliqueTree]
        ] = {}

    def _least_rows(self) -> list[Constraint]:
        """Return the bound on leaves whose models are fitted to rows, unless splits are held.

        It holds at the end alone: on the way there a small leaf has the line of all rows.
        """
        objective = self.rows.bound_objective
        least = 1 if objective is None else objective.least_rows
        if least == 1 or any(isinstance(one, Held) for one in self.constraints):
            return []
        return [ShapeLimits(min_leaf_share=min(1.0, least / self.rows.n_rows))]

    def tree(self, individual: Individual) -> ObliqueTree:
        """Return the finished tree of an individual."""
        splits = individual.splits
        key = tuple(map(id, splits))
        if key not in self._finished:
            self._finished[key] = splits, self._finish(splits)
        return self._finished[key][1]

    def _finish(self, splits: tuple[np.ndarray, ...]) -> ObliqueTree:
        rows = self.rows
        individual = repair(make_individual(rows, *splits), rows, self._kept)
        prune(individual, rows, 0.0)
        # Pruning knows nothing of what is held
        repair(individual, rows, self._kept)
        tree = rows.to_raw(individual.to_tree())
        if self._bends:
            tree = without_lone_bends(tree, self._bends)
        if self._rounder is not None:
            tree = self._rounder(tree)
        for constraint in self.constraints:
            if isinstance(constraint, Held):
                tree = constraint.restored(tree)
        if isinstance(self.precision, Integral):
            tree = rows.refill(tree)
        return self._with_leaves(keep_for_rows(tree, rows, self._kept))

    def _with_leaves(self, tree: ObliqueTree) -> ObliqueTree:
        """Return a tree over raw features with what its leaves predict by the objective."""
        objective = self.rows.bound_objective
        if objective is None:
            return tree
        tree = objective.finish(tree, self.rows)
        return self._rounded(tree, objective.sharing(tree))

    def _rounded(
        self, tree: ObliqueTree, sharing: np.ndarray | None = None
    ) -> ObliqueTree:
        """Return a tree whose models of leaves, if it has any, have few digits."""
        rows = self.rows
        return round_models(tree, rows.raw, self.precision, rows.sample_weight, sharing)

    def refilled(
        self, tree: ObliqueTree, strength: Strength | None = None
    ) -> ObliqueTree:
        """Return the same splits, all of which rows reach, with the leaves that a fit makes.

        With log-linear models of a strength, if one is given.
        """
        rows = self.rows
        scaled = make_individual(rows, *rows.from_raw(tree).splits).to_tree()
        filled = rows.to_raw(scaled).replaced(
            weights=tree.weights, thresholds=tree.thresholds
        )
        if isinstance(self.precision, Integral):  # as rows are counted in a fit
            filled = rows.refill(filled)
        if isinstance(tree.models, ScoreModels):
            return again_on_score(filled, tree.models)
        if isinstance(tree.models, SharedModels):
            score = tree.models.score
            rest = replace(self.problem, dataset=self._rest(score))
            made = Finisher(rest, self.penalties).refilled(filled)
            return on_line(made, score, filled)
        if strength is None:
            return self._with_leaves(filled)
        return self._filled(filled, strength)

    def _rest(self, score: LeafModels) -> Dataset:
        """Return the rows with what a score leaves, whose leaves have no bends of the score."""
        rows = rest_of(self.problem.dataset, score)
        if isinstance(self.problem.evolution.shapes, Mapping):  # the user's own
            return rows
        used = np.setdiff1d(np.arange(rows.X.shape[1]), list(rows.schema.bends))
        return rows.evolved_for(replace(rows.objective, used=tuple(used.tolist())))

    def broken(self, tree: ObliqueTree) -> list[Constraint]:
        """Return the constraints that a tree over raw features breaks."""
        rows = self.rows.unscaled()
        individual = _as_routed(tree, rows)
        return [one for one in self.constraints if not one.keeps(individual, rows)]

    def member(self, individual: Individual) -> FrontTree:
        """Return a finished tree with what it is worth on the training rows."""
        tree = self.tree(individual)
        scores = own_scores(individual)
        measured = scores_on(self.problem.dataset, tree)
        if type(individual.fitness) in FITNESS_OF_SCORES.values() and scores:
            scores = (*measured, float(tree.complexity))
        return FrontTree.of(tree, measured[0], individual.origin, scores)

    def with_models(
        self, winner: Candidate, best: FrontTree, members: Sequence[FrontTree]
    ) -> tuple[FrontTree, list[FrontTree]]:
        """Return the best tree where leaves have log-linear models, and all that have them."""
        assert winner.strength is not None
        leaf = self._with_models(one_leaf(self.rows), winner.strength, LINEAR)
        made = {
            id(tree): self._with_models(tree, winner.strength, tree.origin)
            for tree in members
            if 1 < tree.n_leaves <= MOST_LEAVES
        }
        # Where the best tree is too large, the most complex that is not takes its place.
        largest = max(made.values(), key=lambda tree: tree.complexity, default=leaf)
        chosen = leaf if winner.at is None else made.get(id(best), largest)
        return chosen, [leaf, *made.values()]

    def _with_models(
        self, tree: ObliqueTree, strength: Strength, origin: str
    ) -> FrontTree:
        """Return a member of the front with log-linear models in its leaves."""
        whole = self._filled(tree, strength)
        return FrontTree.of(whole, scores_on(self.rows, whole)[0], origin)

    def _filled(self, tree: ObliqueTree, strength: Strength) -> ObliqueTree:
        """Return a tree over raw features with log-linear models in its leaves."""
        models = self.problem.leaf_models
        assert models is not None
        rows = self.rows
        root = rate_models(rows, models.used, strength)[strength]
        whole = models.fill(tree, rows, root, strength, self.problem.ends.trees)
        return self._rounded(whole)

    def logistic(self, strength: Strength) -> FrontTree | None:
        """Return the tree of logistic models with its soft sides; None where it breaks a bound."""
        rows = self.rows
        for _, made in logistic_trees(rows, (strength,), self.problem.ends.trees):
            return self._soft(made, LOGISTIC)
        return None

    def _soft(self, made: SoftTree, origin: str) -> FrontTree | None:
        """Return a tree with soft sides of its own, finished; None where it breaks a bound."""
        rows = self.rows
        individual = made.individual
        if not keeps_all(individual, rows, self.constraints):
            return None
        tree = rows.to_raw(individual.to_tree())
        if self._rounder is not None:
            tree = self._rounder(tree)
        if isinstance(self.precision, Integral):
            filled = rows.refill(tree)
            if len(filled) < len(tree):  # of too few digits
                return None
            tree = filled
        if self.constraints and self.broken(tree):  # when it was rounded
            return None
        sides = sides_of(tree, rows.raw, made, rows.X)
        quality = scores_on(rows, tree, sides)[0]
        return FrontTree.of(tree, quality, origin, sides=sides)

    def on_score(self, wide: Widened, winner: Candidate, tree: FrontTree) -> FrontTree:
        """Return the tree on the score, or the score alone where it was chosen."""
        made: Any = wide.alone()
        if winner.kind != SCORE and tree.n_leaves > 1:
            made = wide.on_score(tree)
        elif isinstance(made, SoftTree):
            return self._soft(made, SCORE) or tree
        if made is None:
            return tree
        made = rounded_score(made, self.rows, self.precision)
        origin = SCORE if made.n_leaves == 1 else tree.origin
        return FrontTree.of(made, scores_on(self.rows, made)[0], origin)

    def on_line(self, wide: Widened, tree: FrontTree) -> FrontTree:
        """Return a tree of what a score of targets leaves, on the score."""
        made = wide.on_score(wide.tree(tree))
        return FrontTree.of(made, scores_on(self.rows, made)[0], tree.origin)

    def members(self, individuals: Sequence[Individual]) -> list[FrontTree]:
        """Return finished trees, on several threads."""
        with thread_map(self.problem.config.n_jobs, self.rows.X.shape) as mapper:
            return self.in_time(self.member, individuals, mapper)

    def in_time(
        self,
        make: Callable[[Any], Any],
        individuals: Sequence[Any],
        map: Callable[..., Iterable[Any]] = map,
    ) -> list[Any]:
        """Return what is made of the first individual, and of others until the time is over."""

        def make_in_time(individual: Any) -> Any:
            is_over = time.perf_counter() >= self.problem.ends.trees
            return None if is_over else make(individual)

        return [
            *(make(individual) for individual in individuals[:1]),
            *takewhile(lambda one: one is not None, map(make_in_time, individuals[1:])),
        ]


def scores_on(
    rows: Dataset, tree: ObliqueTree, sides: SoftSides | None = None
) -> tuple[float, ...]:
    """Return the quality of a finished tree on some rows, or the user's own scores."""
    # Rounded models are no longer those that the objective fits.
    if tree.models is not None:
        return (quality_on(rows, tree),)
    objective = rows.bound_objective
    if isinstance(objective, ProbabilityScore):
        if sides is None or not objective.is_soft:
            return (objective.quality(tree, rows.raw),)
        return (objective.quality_of(sides.predict(tree, rows.raw)),)
    leaves = tree.apply(rows.raw)
    if rows.n_classes:
        statistics = [rows.y == label for label in range(rows.n_classes)]
    else:
        statistics = [rows.y**power for power in range(3)]
    routed = routed_rows(tree, rows.raw)
    routed.counts = np.column_stack(
        [
            node_weights(leaves, rows.sample_weight * one, tree.subtree_size)
            for one in statistics
        ]
    )
    return scores_of(routed, rows, objective)


def scores_of(routed: Any, rows: Dataset, objective: Any) -> tuple[float, ...]:
    """Return what a tree with the statistics of its nodes is worth."""
    if objective is not None:
        return tuple(objective.scores(routed))
    measure = leaf_accuracy if rows.n_classes else explained_variance
    return (float(measure(routed.counts, routed.subtree_size)),)


def keep_for_rows(
    tree: ObliqueTree, dataset: Dataset, constraints: Sequence[Constraint]
) -> ObliqueTree:
    """Return a tree that keeps all constraints on the rows as its rounded numbers route them."""
    if not constraints:
        return tree
    rows = dataset.unscaled()
    # Rounding may have taken rows to other leaves, and a repair may do so again: each takes out
    # a split, or terms of one, so that the rounds end.
    for _ in range(_REPAIRS):
        individual = _as_routed(tree, rows)
        if keeps_all(individual, rows, constraints):
            break
        repaired = repair(individual, rows, constraints)
        blank = np.zeros((len(repaired), tree.values.shape[1]))
        tree = dataset.refill(ObliqueTree(*repaired.splits, blank, tree.spread))
    return tree


def _as_routed(tree: ObliqueTree, dataset: Dataset) -> Individual:
    """Return a tree as an individual whose rows are where those go that predict."""
    individual = make_individual(dataset, *tree.splits)
    if len(individual) < len(tree):
        return individual
    rows = routed_rows(tree, dataset.X)
    routed = type(individual)(
        (
            *individual.splits,
            rows.order,
            rows.start,
            rows.end,
            individual.counts,
            individual.answers,
        )
    )
    if individual.objective is not None:
        routed.evolve_for(individual.objective)
    return routed
