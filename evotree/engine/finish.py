"""From a run to fitted trees: repaired, pruned, rounded, scored again; the front and its best.

Trees evolve on rows that may have noisy copies. What a fit returns keeps all constraints on the
training rows, predicts by these alone, and says what it is worth on them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from itertools import takewhile
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np

from evotree.engine.logistic import MOST_LEAVES, Rival, logistic_rivals
from evotree.engine.parallel import thread_map
from evotree.engine.pareto import ParetoFront
from evotree.fitness.base import routed_rows
from evotree.fitness.logistic_leaves import Strength, with_logistic_leaves
from evotree.fitness.penalties import FITNESS_OF_SCORES, PenalizedAccuracy
from evotree.individual import Individual, explained_variance, leaf_accuracy
from evotree.inspection.front import FittedFront, FrontTree, own_scores, undominated
from evotree.operators.constraints.base import Constraint, keeps_all, repair
from evotree.operators.constraints.held import Held
from evotree.operators.pruning.penalized import prune
from evotree.operators.structure.rebuild import in_place_of
from evotree.operators.structure.rounding import Rounder, round_models
from evotree.operators.structure.splice import make_individual
from evotree.tree import ObliqueTree, node_weights

if TYPE_CHECKING:
    from evotree.dataset import Dataset
    from evotree.engine.choice import Choice
    from evotree.engine.evolution import Run
    from evotree.engine.prepare import Problem

LOGISTIC = "logistic"  # the origin of a tree of one logistic leaf
_MOST_LARGER = 16  # trees that are larger than the best: each is finished on all rows


@dataclass
class Result:
    """What a search has found; its trees are over raw features and rounded."""

    run: Run
    problem: Problem
    rows: Dataset  # that the fitness was measured on
    choice: Choice
    tree: ObliqueTree  # the best one; all predict by the training rows alone
    front: (
        FittedFront  # undominated on the training rows; the fittest where the time ends
    )
    hall_of_fame: list[ObliqueTree]  # of the run, the first ones that time allows
    best_trees: dict[int, ObliqueTree]  # that were the best of a generation
    cv_results: dict[str, np.ndarray] = field(default_factory=dict)
    seconds: dict[str, float] = field(
        default_factory=dict
    )  # of each phase; of them "compiling"
    failure: BaseException | None = (
        None  # of a callback, or the last write of a checkpoint
    )


def finish(
    problem: Problem,
    run: Run,
    rows: Dataset,
    choice: Choice,
    has_own_fitness: bool = False,
) -> Result:
    """Return the finished trees of a run; a fitness of the user's own says which is the best."""
    finisher, fitness = Finisher(problem, choice), PenalizedAccuracy(*choice.penalties)
    front = sorted(pruned_front(problem, run, rows), key=fitness, reverse=True)
    own = finisher.members([run.best, *front])
    larger = finisher.members(larger_trees(problem, run, rows))
    members = with_larger(undominated(own), larger, fitness)
    # Where terms are free, the front, which counts them, may lack the fittest tree.
    is_plain = problem.evolution.variation.algorithm != "nsga2"
    is_first = has_own_fitness or (is_plain and choice.penalties.term == 0.0)
    best = own[0] if is_first else max(members, key=fitness)
    if choice.leaves is not None:
        best, members = finisher.with_logistic(choice.leaves, best, members)
    hall_of_fame = finisher.in_time(finisher.tree, run.hall_of_fame)
    best_trees = finisher.in_time(finisher.tree, [*run.best_trees.values()])
    return Result(
        run,
        problem,
        rows,
        choice,
        best,
        FittedFront(members, is_regression=problem.dataset.n_classes == 0),
        hall_of_fame,
        dict(zip(run.best_trees, best_trees, strict=False)),
    )


def with_larger(
    front: Sequence[Any], larger: Iterable[Any], fitness: Callable[[Any], tuple[float]]
) -> list[Any]:
    """Return a front with larger trees than its fittest one, which stays the fittest."""
    best = max(front, key=fitness)
    further = (tree for tree in larger if tree.complexity > best.complexity)
    return undominated(
        [*front, *(tree for tree in further if fitness(tree) < fitness(best))]
    )


def pruned_front(problem: Problem, run: Run, rows: Dataset) -> ParetoFront:
    """Return a copy of the front with prunings of its members, which keep all constraints."""
    front = deepcopy(run.pareto_front)
    now = time.perf_counter()
    front.add_prunings(
        rows, now + 0.5 * (problem.end_of_trees - now)
    )  # then all finish
    dataset, constraints = problem.dataset, problem.constraints

    def is_kept(individual: Individual) -> bool:
        return keeps_all(
            make_individual(dataset, *individual.splits), dataset, constraints
        )

    kept = [is_kept(member) for member in front] if constraints else [True]
    if not all(kept):
        members = list(zip(front, kept, strict=True))
        front.clear()
        front.update(member for member, is_whole in members if is_whole)
        for member, is_whole in members:
            if not is_whole:
                whole = repair(
                    make_individual(dataset, *member.splits), dataset, constraints
                )
                front.update(
                    [in_place_of(member, make_individual(rows, *whole.splits))]
                )
    return front


def larger_trees(problem: Problem, run: Run, rows: Dataset) -> list[Individual]:
    """Return trees of smaller penalties, and prunings, that are larger than the best."""
    front = ParetoFront()
    if not own_scores(run.best):
        for tree in run.larger:
            front.update([in_place_of(tree, make_individual(rows, *tree.splits))])
        front.add_prunings(rows, problem.end_of_trees)
    larger = (tree for tree in front if tree.complexity > run.best.complexity)
    return undominated(larger, most=_MOST_LARGER)


class Finisher:
    """Finishes individuals, each once, as long as there is time."""

    def __init__(self, problem: Problem, choice: Choice) -> None:
        self.problem, self.constraints = problem, problem.constraints
        self.rows = problem.dataset.penalized(choice.penalties.term)
        precision, rows = problem.config.precision, problem.dataset
        self.round: Callable[[ObliqueTree], ObliqueTree] = (
            (lambda tree: tree)
            if precision is None
            else Rounder(rows.raw, precision, rows.sample_weight)
        )
        # Keys are ids of arrays, which are kept so that no others get these.
        self._known: dict[
            tuple[int, ...], tuple[tuple[np.ndarray, ...], ObliqueTree]
        ] = {}

    def tree(self, individual: Individual) -> ObliqueTree:
        """Return a tree over raw features, rounded, that predicts by the training rows alone."""
        splits = individual.splits
        key = tuple(map(id, splits))
        if key not in self._known:
            self._known[key] = splits, self._finish(splits)
        return self._known[key][1]

    def _finish(self, splits: tuple[np.ndarray, ...]) -> ObliqueTree:
        rows, precision = self.rows, self.problem.config.precision
        individual = repair(make_individual(rows, *splits), rows, self.constraints)
        prune(individual, rows, 0.0)
        repair(
            individual, rows, self.constraints
        )  # pruning knows nothing of what is held
        tree = self.round(rows.to_raw(individual.to_tree()))
        for held in (one for one in self.constraints if isinstance(one, Held)):
            tree = held.restored(tree)
        if isinstance(precision, Integral):
            tree = rows.refill(tree)
        return self._with_leaves(keep_for_rows(tree, rows, self.constraints))

    def _with_leaves(self, tree: ObliqueTree) -> ObliqueTree:
        """Return a tree over raw features with what its leaves predict."""
        rows = self.rows
        if rows.bound_objective is None:
            return tree
        tree = rows.bound_objective.finish(tree, rows)
        sharing = rows.bound_objective.sharing(tree)
        return round_models(
            tree, rows.raw, self.problem.config.precision, rows.sample_weight, sharing
        )

    def refilled(self, tree: ObliqueTree, leaves: Rival | None = None) -> ObliqueTree:
        """Return the same splits, all of which rows reach, with the leaves that a fit makes."""
        rows = self.rows
        scaled = make_individual(rows, *rows.from_raw(tree).splits).to_tree()
        weights, thresholds, _ = tree.splits
        filled = rows.to_raw(scaled).replaced(weights=weights, thresholds=thresholds)
        if isinstance(
            self.problem.config.precision, Integral
        ):  # as rows are counted in a fit
            filled = rows.refill(filled)
        if leaves is None:
            return self._with_leaves(filled)
        halvings = leaves.strength.halvings if len(tree) == 1 else 0
        return self._logistic(filled, leaves.strength._replace(halvings=halvings))

    def broken(self, tree: ObliqueTree) -> list[Constraint]:
        """Return the constraints that a tree over raw features breaks."""
        rows = self.rows.unscaled()
        individual = _as_routed(tree, rows)
        return [one for one in self.constraints if not one.keeps(individual, rows)]

    def member(self, individual: Individual) -> FrontTree:
        """Return a finished tree with what it is worth on the training rows."""
        tree, scores = self.tree(individual), own_scores(individual)
        measured = scores_on(self.problem.dataset, tree)
        if type(individual.fitness) in FITNESS_OF_SCORES.values() and scores:
            scores = (*measured, float(tree.complexity))
        return FrontTree.of(tree, measured[0], individual.origin, scores)

    def with_logistic(
        self, leaves: Rival, best: FrontTree, members: Sequence[FrontTree]
    ) -> tuple[FrontTree, list[FrontTree]]:
        """Return the best tree with logistic leaves, and the members of its front."""
        rivals, made = logistic_rivals(self.problem), dict[int, FrontTree]()
        assert rivals is not None

        def logistic(tree: ObliqueTree, strength: Strength, origin: str) -> FrontTree:
            whole = self._logistic(tree, strength)
            return FrontTree.of(whole, scores_on(self.rows, whole)[0], origin)

        one_leaf = logistic(_one_leaf(self.rows), leaves.strength, LOGISTIC)
        if rivals.with_splits:
            plain = leaves.strength._replace(halvings=0)  # as such trees were judged
            few = [tree for tree in members if 1 < tree.n_leaves <= MOST_LEAVES]
            made, members = (
                {id(tree): logistic(tree, plain, tree.origin) for tree in few},
                [],
            )
        chosen = one_leaf if leaves.at is None else made.get(id(best), one_leaf)
        front = undominated([*made.values(), one_leaf, *members])
        others = [tree for tree in front if tree.complexity != chosen.complexity]
        return chosen, sorted([chosen, *others], key=lambda tree: tree.complexity)

    def _logistic(self, tree: ObliqueTree, strength: Strength) -> ObliqueTree:
        """Return a tree over raw features with logistic models in its leaves."""
        rows, rivals = self.rows, logistic_rivals(self.problem)
        used = None if rivals is None else rivals.used
        whole = with_logistic_leaves(
            tree, rows, strength, used, self.problem.end_of_trees
        )
        return round_models(
            whole, rows.raw, self.problem.config.precision, rows.sample_weight
        )

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
            is_over = time.perf_counter() >= self.problem.end_of_trees
            return None if is_over else make(individual)

        made = [make(individual) for individual in individuals[:1]]
        made += takewhile(
            lambda one: one is not None, map(make_in_time, individuals[1:])
        )
        return made


def _one_leaf(rows: Dataset) -> ObliqueTree:
    """Return a tree of one leaf over raw features."""
    arrays = np.zeros((1, rows.X.shape[1])), np.zeros(1), np.ones(1, dtype=np.int32)
    spread = rows.spread * rows.scale
    return rows.refill(ObliqueTree(*arrays, np.zeros((1, rows.n_classes)), spread))


def score_on(rows: Dataset, tree: ObliqueTree) -> float:
    """Return the accuracy of what a finished tree predicts on some rows, or R²."""
    weight = rows.sample_weight
    if rows.n_classes:
        is_right = tree.predict_label(rows.raw) == rows.y
        return float(np.average(is_right, weights=weight))
    predicted = (tree.predict_value(rows.raw) - rows.target_mean) / rows.target_scale
    targets = rows.targets.reshape(predicted.shape)
    error, whole = (
        float((weight @ part**2).sum()) for part in (targets - predicted, targets)
    )
    return 1.0 - error / (whole or 1.0)


def scores_on(rows: Dataset, tree: ObliqueTree) -> tuple[float, ...]:
    """Return the quality of a finished tree on some rows, or the user's own scores."""
    leaves, weight = tree.apply(rows.raw), rows.sample_weight
    if (
        tree.models is not None
    ):  # rounded models are no longer those that the objective fits
        return (score_on(rows, tree),)
    if rows.n_classes:
        parts = [rows.y == label for label in range(rows.n_classes)]
    else:
        parts = [rows.y**power for power in range(3)]
    routed, size = routed_rows(tree, rows.raw), tree.subtree_size
    routed.counts = np.column_stack(
        [node_weights(leaves, weight * part, size) for part in parts]
    )
    return scores_of(routed, rows, rows.bound_objective)


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
    rows = replace(
        dataset,
        X=dataset.raw,
        mean=np.zeros_like(dataset.mean),
        scale=np.ones_like(dataset.scale),
        spread=dataset.spread * dataset.scale,
    )
    while not keeps_all(individual := _as_routed(tree, rows), rows, constraints):
        weights, thresholds, size, *_ = repair(individual, rows, constraints).nodes()
        values = np.zeros((len(size), tree.values.shape[1]))
        tree = dataset.refill(
            ObliqueTree(weights, thresholds, size, values, tree.spread)
        )
    return tree


def _as_routed(tree: ObliqueTree, dataset: Dataset) -> Individual:
    """Return a tree as an individual whose rows are where those go that predict."""
    individual = make_individual(
        dataset, tree.weights, tree.thresholds, tree.subtree_size
    )
    leaves = tree.apply(dataset.X)
    if len(individual) < len(tree):
        return individual
    n_rows = node_weights(leaves, np.ones(len(leaves)), tree.subtree_size).astype(
        np.int32
    )
    order = np.argsort(leaves, kind="stable").astype(np.int32)
    start = np.searchsorted(leaves[order], np.arange(len(tree))).astype(np.int32)
    arrays = *individual.nodes()[:3], order, start, start + n_rows, individual.counts
    routed = type(individual)(arrays)
    if individual.objective is not None:
        routed.evolve_for(individual.objective)
    return routed
