"""The engine's one door: a data set and a configuration in, a result out.

Hyperparameters are chosen by cross-validation, first trees are made, and the population evolves, on
samples that grow where rows are many. A search can continue from a checkpoint or an earlier result.
"""

from __future__ import annotations

import hashlib
import math
import time
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import takewhile
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from deap import base

from evotree.configuration import Configuration, check_parameters
from evotree.dataset import Dataset
from evotree.engine.bounds import keep_for_rows, make_constraints, with_objective
from evotree.engine.checkpoint import (
    CheckpointWriter,
    fingerprint,
    load_checkpoint,
    read_settings,
)
from evotree.engine.config import (
    MIN_ROWS,
    Regularization,
    SearchConfig,
    checkpoint_of,
    evolution_of,
)
from evotree.engine.evolution import CallbackError, Run, evolve
from evotree.engine.hyperparameters import (
    Chosen,
    Penalties,
    candidates,
    choose,
    penalties_to_try,
    resample,
    seeds_of_all_sizes,
)
from evotree.engine.interrupt import interrupt_as_flag
from evotree.engine.islands import Archipelago, evolve_islands, island_seeds
from evotree.engine.parallel import island_executor, thread_map
from evotree.engine.pareto import (
    FittedFront,
    FrontTree,
    ParetoFront,
    own_scores,
    undominated,
    with_larger,
)
from evotree.engine.progress import Progress
from evotree.engine.sampling import GrowingSample, move
from evotree.engine.shards import Measure, MeasuredSample, Shards
from evotree.engine.teachers import with_teacher_in_time
from evotree.engine.toolbox import make_toolbox, split_init
from evotree.engine.warmup import compiling_beside
from evotree.files import PathLike, check_writable
from evotree.fitness.base import routed_rows
from evotree.fitness.penalties import FITNESS_OF_SCORES, PenalizedAccuracy
from evotree.individual import Individual, explained_variance, leaf_accuracy
from evotree.operators.constraints.base import Constraint, keeps_all, repair
from evotree.operators.initialization.seeding import TAO, WIDTHS
from evotree.operators.initialization.width_paths import axis_trees
from evotree.operators.pruning.penalized import prune
from evotree.operators.structure.rebuild import in_place_of
from evotree.operators.structure.rounding import Rounder, round_models
from evotree.operators.structure.splice import make_individual
from evotree.rng import make_streams, seed_from
from evotree.tree import ObliqueTree, node_weights

_OWN_STREAMS = 2**62  # the number of a generation that no run reaches
_SAMPLE_ENDS = {"max_generations", "patience", "time_limit"}  # a larger sample may follow
_LARGER = 0.1  # of the penalties, at which trees have to pay for a place in the front
_LARGER_SHARE = 0.05  # of the time that is left, for these trees
_MOST_LARGER = 16  # such trees: each is finished on all rows
_SEARCH_SHARE = 0.75  # of the time limit; then trees are finished, and until
_TREES_SHARE = 0.95  # of it no more of them; the rest is for what tells how sure the best one is
_GENERATIONS_SHARE = 3  # a candidate evolves for a third of the generations

_FREE = frozenset(
    {
        "callbacks",
        "categorical_features",
        "checkpoint",
        "evolution",  # its parameters stand beside the others
        "init",
        "max_generations",
        "n_jobs",
        "patience",
        "precision",
        "random_state",
        "time_limit",
        "verbose",
        "warm_start",
    }
)
"""Parameters that may change when a search continues: limits, and what changes no later tree."""


class Plan(NamedTuple):
    """What a run evolves by, besides the configuration.

    Attributes
    ----------
    seed : int
        Seed of the run.
    chosen : Chosen
        The regularization and the penalties for nodes and terms, given or chosen.
    """

    seed: int
    chosen: Chosen


class Continuation(NamedTuple):
    """What a later search needs to continue a run.

    Attributes
    ----------
    plan : Plan
        What the run evolves by.
    parameters : dict of str to str
        Those that must be the same.
    data : str
        Checksum of the rows that the fitness is measured on.
    islands : list of Run
        The run, or its islands.
    all_rows : str
        Checksum of all rows, where they lie elsewhere; empty otherwise.
    """

    plan: Plan
    parameters: dict[str, str]
    data: str
    islands: list[Run]
    all_rows: str = ""


@dataclass
class Result:
    """What a search found.

    Attributes
    ----------
    run : Run
        The last population, the logbook, the hall of fame and the front.
    dataset : Dataset
        Training rows.
    rows : Dataset
        Rows that the fitness was measured on.
    plan : Plan
        The seed, and what was chosen.
    config : SearchConfig
        What the search was told.
    seconds : dict of str to float
        Seconds of each phase; ``"compiling"`` is what numba compiled in them.
    failure : BaseException or None
        What a callback, or the last write of a checkpoint, raised.
    has_own_fitness : bool
        Whether the run has a fitness of the user's own, which alone says which tree is the best.
    end_of_trees, end : float
        When no more trees are finished, and when all is to be done, by `time.perf_counter`.
    """

    run: Run
    dataset: Dataset
    rows: Dataset
    plan: Plan
    config: SearchConfig
    seconds: dict[str, float] = field(default_factory=dict)
    failure: BaseException | None = None
    has_own_fitness: bool = False
    end_of_trees: float = math.inf
    end: float = math.inf

    def tree(self, individual: Any) -> ObliqueTree:
        """Return a tree over raw features, rounded, that predicts by the training rows alone."""
        nodes = individual.nodes()[:3]
        key = tuple(map(id, nodes))
        if key not in self._finished:  # the arrays stay, so that no others have their ids
            self._finished[key] = nodes, self._finish(nodes)
        return self._finished[key][1]

    @cached_property
    def _finished(self) -> dict[tuple[int, ...], tuple[tuple[np.ndarray, ...], ObliqueTree]]:
        """Trees that were finished already; many are in the front and in the hall of fame."""
        return {}

    def _finish(self, nodes: tuple[np.ndarray, ...]) -> ObliqueTree:
        """Return what `tree` does."""
        dataset = self._priced
        finished = repair(make_individual(dataset, *nodes), dataset, self.constraints)
        prune(finished, dataset, 0.0)
        tree = self._round(dataset.to_raw(finished.to_tree()))
        if isinstance(self.config.precision, Integral):
            tree = dataset.refill(tree)
        tree = keep_for_rows(tree, dataset, self.constraints)
        if dataset.bound_objective is None:
            return tree
        tree = dataset.bound_objective.finish(tree, dataset)
        told = self.config.precision, dataset.sample_weight, dataset.bound_objective.sharing(tree)
        return round_models(tree, dataset.raw, *told)

    def trees(self, individuals: Sequence[Any]) -> list[ObliqueTree]:
        """Return finished trees of individuals of the run: of the first ones that time allows."""
        return self._in_time(self.tree, individuals)

    def _in_time(
        self,
        make: Callable[[Any], Any],
        individuals: Sequence[Any],
        map: Callable[..., Iterable[Any]] = map,
    ) -> list[Any]:
        """Return what is made of the first individual, and of others until the time is over."""

        def make_in_time(individual: Any) -> Any:
            return make(individual) if time.perf_counter() < self.end_of_trees else None

        made = [make(individual) for individual in individuals[:1]]
        made += takewhile(lambda one: one is not None, map(make_in_time, individuals[1:]))
        return made

    @cached_property
    def _priced(self) -> Dataset:
        """The training rows, where terms of leaves have their penalty."""
        return self.dataset.priced(self.plan.chosen.penalties.term)

    @cached_property
    def constraints(self) -> list[Constraint]:
        """What all trees keep."""
        return make_constraints(self.config, self.dataset)

    @cached_property
    def _round(self) -> Callable[[ObliqueTree], ObliqueTree]:
        """Round a tree, as the configuration says."""
        precision, rows = self.config.precision, self.dataset
        if precision is None:
            return lambda tree: tree
        return Rounder(rows.raw, precision, rows.sample_weight)

    def best(self) -> ObliqueTree:
        """Return the fittest tree of the front, or the best of the run; see `tree_`."""
        is_plain = evolution_of(self.config).variation.algorithm != "nsga2"
        # Where terms are free, the front, which counts them, may lack the fittest tree.
        if self.has_own_fitness or (is_plain and self.plan.chosen.penalties.term == 0.0):
            return self._own[0]
        return max(self._members, key=self._fitness)

    @property
    def _fitness(self) -> Callable[[Any], Any]:
        return PenalizedAccuracy(*self.plan.chosen.penalties)

    def front(self) -> FittedFront:
        """Return the finished trees that no other one dominates on the training rows.

        Where the time ends before all are finished, the fittest are there.
        """
        return FittedFront(self._members, is_regression=self.dataset.n_classes == 0)

    @cached_property
    def _own(self) -> list[FrontTree]:
        """The best tree of the run, finished, and those of its front and all prunings."""
        front = sorted(self._pruned_front, key=self._fitness, reverse=True)
        return self._members_of([self.run.best, *front])

    @cached_property
    def _members(self) -> list[FrontTree]:
        """The finished trees that no other one dominates, larger ones among them."""
        larger = self._members_of(self._larger())
        return with_larger(undominated(self._own), larger, self._fitness)

    def _members_of(self, individuals: Sequence[Individual]) -> list[FrontTree]:
        with thread_map(self.config.n_jobs, self.dataset.X.shape) as mapper:
            return self._in_time(self._member, individuals, mapper)

    def _larger(self) -> list[Individual]:
        """Return trees of smaller penalties, and prunings, that are larger than the best."""
        best, front = self.run.best, ParetoFront()
        if not own_scores(best):
            for tree in self.run.larger:
                nodes = tree.weights, tree.thresholds, tree.subtree_size
                front.update([in_place_of(tree, make_individual(self.rows, *nodes))])
            front.add_prunings(self.rows, self.end_of_trees)
        larger = (one for one in front if one.complexity > best.complexity)
        return undominated(larger, most=_MOST_LARGER)

    def _member(self, individual: Individual) -> FrontTree:
        """Return a finished tree with what it is worth on the training rows."""
        tree, scores = self.tree(individual), own_scores(individual)
        measured = self.scores(tree)
        if type(individual.fitness) in FITNESS_OF_SCORES.values() and scores:
            scores = (*measured, float(tree.complexity))
        return FrontTree.of(tree, measured[0], individual.origin, scores)

    def scores(self, tree: ObliqueTree) -> tuple[float, ...]:
        """Return the quality of a finished tree on the training rows, or the user's own scores."""
        rows, size = self.dataset, tree.subtree_size
        leaves, weight = tree.apply(rows.raw), rows.sample_weight
        if tree.models is not None:  # rounded lines are no longer those that the objective fits
            predicted = (tree.predict_value(rows.raw) - rows.target_mean) / rows.target_scale
            targets = rows.targets.reshape(predicted.shape)
            error, whole = (
                float((weight @ part**2).sum()) for part in (targets - predicted, targets)
            )
            return (1.0 - error / (whole or 1.0),)
        if rows.n_classes:
            parts = [rows.y == label for label in range(rows.n_classes)]
        else:
            parts = [rows.y**power for power in range(3)]
        routed = routed_rows(tree, rows.raw)
        routed.counts = np.column_stack([node_weights(leaves, weight * one, size) for one in parts])
        if rows.bound_objective is not None:
            return tuple(rows.bound_objective.scores(routed))
        measure = leaf_accuracy if rows.n_classes else explained_variance
        return (float(measure(routed.counts, size)),)

    @cached_property
    def _pruned_front(self) -> ParetoFront:
        """The front and the prunings of its members; that of the run, which may go on, stays."""
        front = deepcopy(self.run.pareto_front)
        now = time.perf_counter()
        front.add_prunings(self.rows, now + 0.5 * (self.end_of_trees - now))  # then all finish
        broken = [one for one in front if not self._keeps(one)]
        if broken:
            kept = [one for one in front if self._keeps(one)]
            front.clear()
            front.update([*kept, *map(self._repaired, broken)])
        return front

    def _keeps(self, individual: Individual) -> bool:
        """Return whether a tree keeps all constraints on the training rows."""
        if not self.constraints:
            return True
        nodes = individual.weights, individual.thresholds, individual.subtree_size
        return keeps_all(make_individual(self.dataset, *nodes), self.dataset, self.constraints)

    def _repaired(self, individual: Individual) -> Individual:
        """Return a tree that keeps all constraints on the training rows, and what it is worth."""
        nodes = individual.weights, individual.thresholds, individual.subtree_size
        kept = repair(make_individual(self.dataset, *nodes), self.dataset, self.constraints)
        nodes = kept.weights, kept.thresholds, kept.subtree_size
        return in_place_of(individual, make_individual(self.rows, *nodes))

    def continuation(self) -> Continuation:
        """Return what a later search needs to continue the run."""
        return Continuation(
            self.plan, compared(self.config), fingerprint(self.rows), _islands_of(self.run)
        )


def search(
    dataset: Dataset,
    config: SearchConfig | None = None,
    *,
    continues: Continuation | None = None,
    begin: float | None = None,
    shards: Shards | None = None,
) -> Result:
    """Search for a tree.

    Ctrl-C ends the search with what was found until then; `Result.run` has the stop reason
    ``"interrupt"``. A second Ctrl-C raises KeyboardInterrupt at once.

    Parameters
    ----------
    dataset : Dataset
        Training rows.
    config : SearchConfig, optional
        What the search is told.
    continues : Continuation, optional
        An earlier run. The search continues it where rows and parameters are the same, and starts
        afresh otherwise.
    begin : float, optional
        When the clock of `time_limit` started, by `time.perf_counter`.
    shards : Shards, optional
        All rows, where `dataset` is a sample of them. Trees are bred on the sample, and judged by
        all rows in the last third of the generations.

    Returns
    -------
    Result
        The run and what it was told.

    Raises
    ------
    OSError
        If the checkpoint cannot be written.
    ValueError
        If a parameter is not as described, or a checkpoint is of other rows or parameters.

    Warns
    -----
    RuntimeWarning
        If `time_limit` ends before any of the first trees is ready, or is too short for a teacher;
        or if `continues` has other rows or parameters.
    """
    config = SearchConfig() if config is None else config
    check_parameters(config)
    begin = time.perf_counter() if begin is None else begin
    dataset = with_objective(dataset, config)
    with compiling_beside("classification" if dataset.n_classes else "regression"):
        return _Search(dataset, config, begin, shards).run(continues)


class _Search:
    """One search: its rows, its configuration, its clock, and what it shows."""

    def __init__(
        self, dataset: Dataset, config: SearchConfig, begin: float, shards: Shards | None
    ) -> None:
        self.dataset, self.config = dataset, config
        self.measure = None if shards is None else Measure(shards)
        self.all_rows = "" if shards is None else shards.checksum
        self.seed = None if shards is None else shards.seed
        self.evolution, self.checkpoint = evolution_of(config), checkpoint_of(config)
        self.islands = self.evolution.islands
        self.shares, _ = split_init(self.evolution.init)
        limit = math.inf if config.time_limit is None else config.time_limit
        self.end, self.ends = (
            begin + _SEARCH_SHARE * limit,
            (begin + _TREES_SHARE * limit, begin + limit),
        )
        n_rows = None if shards is None else shards.n_rows
        self.constraints = make_constraints(config, dataset, n_rows)
        self.found: list[Individual] = []  # by the choice of hyperparameters
        self.larger: list[Individual] = []  # likewise, at smaller penalties
        self.progress = Progress(config.verbose) if shards is None else shards.progress
        self.interrupted: Callable[[], bool] = bool
        if self.checkpoint is not None:
            check_recognizable(config)  # before anything that takes long
            check_writable(self.checkpoint.path)

    def run(self, continues: Continuation | None) -> Result:
        with interrupt_as_flag() as self.interrupted:
            plan, stage, islands = self.start(continues)
            with self.progress.phase("evolving", total=self.config.max_generations, unit="gen"):
                run, rows, failure = self.evolve_samples(plan, stage, islands)
            if self.interrupted():
                run.stop_reason = "interrupt"
        result = Result(run, self.dataset, rows, plan, self.config, self.progress.seconds, failure)
        return replace(result, end_of_trees=self.ends[0], end=self.ends[1])

    # ---- what a run begins with ------------------------------------------------------------------

    def start(self, continues: Continuation | None) -> tuple[Plan, int, list[Run] | None]:
        """Return the plan, the number of the first sample, and the run to continue, if any."""
        if self.checkpoint is not None and self.checkpoint.resume:
            return self.resume(self.checkpoint.path)
        if continues is not None and continues.parameters == compared(self.config):
            rows = self.rows(self.dataset, continues.plan)
            data = continues.data, continues.all_rows
            if data == (fingerprint(rows), self.all_rows):
                self.sample = self.make_sample(continues.plan.seed)
                return continues.plan, len(self.sample) - 1, continues.islands
        if continues is not None:
            warn_of_a_fresh_start(continues, self.config)
        seed = seed_from(self.config.random_state) if self.seed is None else self.seed
        self.sample = self.make_sample(seed)
        rows, seconds = self.sample[0], None
        if self.end < math.inf:
            seconds = 0.5 * (self.end - time.perf_counter())
        config = with_teacher_in_time(self.config, rows, seconds)
        of_seeds = self.shares.keys() & {TAO, WIDTHS}
        first_trees = partial(seeds_of_all_sizes, self.config, seed, self.constraints)
        with self.progress.phase("choosing hyperparameters"):
            try:
                chosen, found, self.larger = choose(
                    rows,
                    config,
                    make_streams(seed, _OWN_STREAMS, 2),
                    self.step,
                    first_trees if of_seeds else partial(self.evolve_candidate, seed),
                    seconds,
                )
            except KeyboardInterrupt:
                first = candidates(config, rows.objective)[0]
                chosen = Chosen(first, penalties_to_try(self.config, rows.total_weight)[0])
            else:
                self.found = found if WIDTHS in self.shares else []  # they take the places of paths
        return Plan(seed, chosen), 0, None

    def step(self) -> None:
        """Show that a candidate was tried; Ctrl-C ends the choice."""
        self.progress.step()
        if self.interrupted():
            raise KeyboardInterrupt

    def resume(self, path: PathLike) -> tuple[Plan, int, list[Run]]:
        """Return what `start` does, from a checkpoint."""
        told = read_settings(path)
        plan, stage = read_plan(told, self.config, path)
        if told.get("all_rows") != self.all_rows:
            raise ValueError(f"{path} is a checkpoint of other rows.")
        self.sample = self.make_sample(plan.seed)
        stage = min(stage, len(self.sample) - 1)  # of other rows, which are refused
        runs = load_checkpoint(path, self.rows(self.sample[stage], plan)).runs
        if self.config.max_generations < (bred := max(run.generation for run in runs)):
            raise ValueError(
                f"max_generations={self.config.max_generations}: the run in {path} has bred "
                f"{bred} generations; allowed are as many, or more."
            )
        return plan, stage, runs

    def make_sample(self, seed: int) -> GrowingSample | MeasuredSample:
        """Return the rows that the evolution sees one sample after the other."""
        if self.measure is not None:
            return MeasuredSample(self.dataset)
        stream = make_streams(seed, _OWN_STREAMS, 3)[2]
        return GrowingSample(self.dataset, self.evolution.max_samples, stream)

    def rows(self, dataset: Dataset, plan: Plan) -> Dataset:
        """Return the rows that the fitness is measured on."""
        stream = make_streams(plan.seed, _OWN_STREAMS, 2)[1]
        rows = resample(dataset, plan.chosen.regularization, stream)
        return rows.priced(plan.chosen.penalties.term)

    def evolve_candidate(
        self,
        seed: int,
        rows: Dataset,
        candidate: Regularization,
        penalties: Sequence[Penalties],
        seconds: float | None,
    ) -> list[Individual]:
        """Return the trees of a short evolution, which show what a candidate is worth."""
        n_generations = -(-self.config.max_generations // _GENERATIONS_SHARE)
        rows = rows.priced(penalties[-1].term)
        plan = Plan(seed, Chosen(candidate, penalties[-1]))
        toolbox = self.make_toolbox(rows, plan, seed, begins=True)
        first = toolbox.population(n=self.evolution.population_size, seconds=seconds)
        limits = {**self.limits(), "max_generations": n_generations, "time_limit": seconds}
        return evolve(first, toolbox, **limits).population

    # ---- the evolution ---------------------------------------------------------------------------

    def evolve_samples(
        self, plan: Plan, stage: int, islands: list[Run] | None
    ) -> tuple[Run, Dataset, BaseException | None]:
        """Evolve on samples that grow, each for fewer generations and the same share of the time.

        Returns the run on all rows, the rows that the fitness is measured on, and what a callback
        raised.
        """
        last = len(self.sample) - 1
        rows, failure = self.rows(self.sample[stage], plan), None
        larger = self.larger_trees(rows, plan) if islands is None else None

        def keep_larger(run: Run) -> None:
            if larger is not None:
                run.larger = _islands_of(run)[0].larger = larger

        moves = False
        while True:
            writer = self.writer(rows, plan, stage)
            seconds = None
            if self.end < math.inf:
                seconds = (self.end - time.perf_counter()) / (last - stage + 1)
                seconds += max((island.seconds for island in islands or ()), default=0.0)
            n_generations = self.sample.generations(stage, self.config.max_generations)
            callbacks = (keep_larger, self.progress.show, writer, *(self.config.callbacks or ()))
            try:
                run = self.evolve(
                    rows,
                    plan,
                    islands,
                    moves=moves,
                    is_last=stage == last,
                    max_generations=0 if self.interrupted() else n_generations,
                    time_limit=seconds,
                    callbacks=[one for one in callbacks if one is not None],
                )
            except CallbackError as error:
                run, failure = error.run, error.__cause__
            islands = _islands_of(run)
            if stage == last or failure or run.stop_reason not in _SAMPLE_ENDS:
                break
            stage = stage + 1 if time.perf_counter() < self.end else last
            rows, moves = self.rows(self.sample[stage], plan), True
        if writer is not None:
            try:
                writer.write(run)
            except OSError as error:
                failure = failure or error
        if stage < last:
            reason, rows = run.stop_reason, self.rows(self.sample[last], plan)
            run = self.evolve(rows, plan, islands, moves=True, is_last=True, max_generations=0)
            run.stop_reason = reason
        return run, rows, failure

    def larger_trees(self, rows: Dataset, plan: Plan) -> list[Individual]:
        """Return trees that pay at a tenth of the penalties: axis-parallel, and of the choice."""
        if self.interrupted() or not self.shares.keys() & {TAO, WIDTHS}:
            return []
        seconds = None
        if self.end < math.inf:
            seconds = _LARGER_SHARE * (self.end - time.perf_counter())
        size, term = (_LARGER * penalty for penalty in plan.chosen.penalties)
        rows = rows.priced(term)
        stream = make_streams(plan.seed, _OWN_STREAMS, 4)[3]
        trees = axis_trees(rows, stream, MIN_ROWS, seconds, self.config.max_depth)
        nodes = [(one.weights, one.thresholds, one.subtree_size) for one in self.larger]
        trees += [make_individual(rows, *arrays) for arrays in nodes]
        repaired = (repair(one, rows, self.constraints) for one in trees)
        pruned = [prune(one, rows, size, term)[0] for one in repaired]
        for tree in pruned:
            tree.origin = WIDTHS if WIDTHS in self.shares else TAO
        return pruned

    def writer(self, rows: Dataset, plan: Plan, stage: int) -> CheckpointWriter | None:
        """Return what writes the run to a file, if anything does."""
        if self.checkpoint is None:
            return None
        told = {**describe(self.config, plan, stage), "all_rows": self.all_rows}
        return CheckpointWriter(self.checkpoint.path, rows, told, self.checkpoint.every)

    def evolve(
        self,
        rows: Dataset,
        plan: Plan,
        islands: list[Run] | None,
        *,
        moves: bool,
        is_last: bool,
        **limits: Any,
    ) -> Run:
        """Evolve a population, or islands, or continue them, on these rows or on others."""
        config, begins = self.config, islands is None
        limits = {**self.limits(), **limits, "keep_on_interrupt": True}
        toolboxes = [
            self.make_toolbox(rows, plan, seed, begins)
            for seed in island_seeds(plan.seed, self.islands.n)
        ]
        if is_last and self.measure is not None:
            for toolbox in toolboxes:
                toolbox.measure = self.measure
        now = time.perf_counter()
        end = now + 0.5 * (self.ends[0] - now)  # of moves; then trees are finished
        if self.islands.n > 1:
            if moves:
                for run, toolbox in zip(islands or (), toolboxes, strict=not begins):
                    move(run, rows, toolbox, end)
            with island_executor(self.islands.executor, config.n_jobs) as executor:
                return evolve_islands(
                    toolboxes,
                    population_size=self.evolution.population_size,
                    migration_interval=self.islands.every,
                    migration_size=self.islands.size,
                    topology=self.islands.topology,
                    executor=executor,
                    islands=islands,
                    **limits,
                )
        (toolbox,) = toolboxes
        with thread_map(config.n_jobs, rows.X.shape) as toolbox.map:
            if islands is not None:
                (run,) = islands
                if moves:
                    move(run, rows, toolbox, end)
                return evolve(run, toolbox, **limits)
            begin, seconds = time.perf_counter(), limits.get("time_limit")
            n = self.evolution.population_size
            with self.progress.phase("making first trees", total=n, unit="tree"):
                first = toolbox.population(n=n, seconds=seconds, hurry=self.hurries)
            if seconds is not None:
                limits["time_limit"] = seconds - (time.perf_counter() - begin)
            return evolve(first, toolbox, **limits)

    def hurries(self) -> bool:
        """Show that one more of the first trees is begun; return whether there was a Ctrl-C."""
        self.progress.step()
        return self.interrupted()

    def limits(self) -> dict[str, Any]:
        """Return what all loops are told."""
        return {
            "crossover_probability": self.evolution.variation.crossover_probability,
            "patience": self.evolution.patience,
        }

    def make_toolbox(self, rows: Dataset, plan: Plan, seed: int, begins: bool) -> base.Toolbox:
        """Return the toolbox of a population; only one that begins needs the first trees."""
        regularization = plan.chosen.regularization
        refinement = self.evolution.refinement
        if refinement is not None:
            refinement = replace(refinement, C=regularization.C, penalty=regularization.penalty)
        return make_toolbox(
            rows,
            size_penalty=plan.chosen.penalties.size,
            term_penalty=plan.chosen.penalties.term,
            max_split_terms=self.config.max_split_terms,
            init=self.evolution.init if begins else None,
            found=self.found if begins else (),
            refinement=refinement,
            variation=self.evolution.variation,
            constraints=self.constraints,
            max_depth=self.config.max_depth,
            random_state=seed,
            end=self.end,
        )


def _islands_of(run: Run) -> list[Run]:
    return run.islands if isinstance(run, Archipelago) else [run]


# ---- what a search must share with the one that it continues -------------------------------------


def seed_to_continue(
    config: SearchConfig, continues: Continuation | None
) -> tuple[str, int] | None:
    """Return what rows that lie elsewhere have to agree with for a search to continue."""
    checkpoint = checkpoint_of(config)
    if checkpoint is not None:
        check_recognizable(config)
        check_writable(checkpoint.path)
        if checkpoint.resume:
            told = read_settings(checkpoint.path)
            plan, _ = read_plan(told, config, checkpoint.path)
            return str(told.get("all_rows")), plan.seed
    if continues is not None and continues.parameters == compared(config):
        return continues.all_rows, continues.plan.seed
    return None


def warn_of_a_fresh_start(continues: Continuation, config: SearchConfig) -> None:
    """Say why a search does not continue an earlier one."""
    given = compared(config)
    changed = [name for name, value in given.items() if continues.parameters.get(name) != value]
    what = f"the parameters {', '.join(changed)}" if changed else "the rows"
    warnings.warn(
        f"warm_start=True: {what} changed, so that the search does not continue the earlier one, "
        "but starts afresh.",
        RuntimeWarning,
        stacklevel=6,
    )


def compared(config: SearchConfig) -> dict[str, str]:
    """Return the parameters that must be the same when a search continues, as text."""
    evolution = evolution_of(config)
    values = config.get_params(deep=False) | evolution.get_params(deep=False)
    values["islands"] = replace(evolution.islands, executor=None)
    return {name: _text(value) for name, value in values.items() if name not in _FREE}


def _text(value: Any) -> str:
    """Return the repr of a value without what differs between two processes."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, Configuration):
        parts = [f"{name}={_text(one)}" for name, one in value.get_params(deep=False).items()]
        return f"{type(value).__name__}({', '.join(parts)})"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_text(k)}: {_text(v)}" for k, v in value.items()) + "}"
    if isinstance(value, set | frozenset):
        return "{" + ", ".join(sorted(map(_text, value))) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_text, value)) + "]"
    if isinstance(value, partial):
        return f"partial{_text([value.func, value.args, value.keywords])}"
    if hasattr(value, "__array__"):  # the repr of a long one leaves out what is inside
        array = np.ascontiguousarray(value)
        if array.dtype.hasobject:
            return _text(array.tolist())
        digest = hashlib.sha256(array.data).hexdigest()
        return f"{type(value).__name__}({array.dtype}, {array.shape}, {digest[:16]})"
    if callable(value) and hasattr(value, "__qualname__"):
        name = f"{value.__module__}.{value.__qualname__}"
        # Others may have the same name, in this process, too.
        return f"{name}{_WITHOUT_NAME}{id(value):#x}" if "<" in name else name
    text = repr(value)
    return type(value).__qualname__ if " at 0x" in text else text


_WITHOUT_NAME = " without a name of its own, at "


def check_recognizable(config: SearchConfig) -> None:
    """Refuse parameters that a checkpoint cannot tell from others: lambdas and local functions."""
    for name, text in compared(config).items():
        if _WITHOUT_NAME in text:
            raise ValueError(
                f"{name} has {text.partition(_WITHOUT_NAME)[0]}: a checkpoint cannot recognize "
                "lambdas and functions inside of functions; allowed are functions of a module."
            )


_GIVEN = {"given": True}


def describe(config: SearchConfig, plan: Plan, stage: int) -> dict[str, Any]:
    """Return what a checkpoint keeps of a search, at one of its samples; plain data."""
    regularization = plan.chosen.regularization.get_params()
    if not isinstance(regularization["teacher"], str | None):
        regularization["teacher"] = _GIVEN
    return {
        "parameters": compared(config),
        "seed": plan.seed,
        "regularization": regularization,
        "size_penalty": plan.chosen.penalties.size,
        "term_penalty": plan.chosen.penalties.term,
        "stage": stage,
    }


def read_plan(told: Mapping[str, Any], config: SearchConfig, path: PathLike) -> tuple[Plan, int]:
    """Return the plan of the run of a checkpoint, and the number of its sample."""
    try:
        before = {str(name): str(value) for name, value in told["parameters"].items()}
        given = dict(told["regularization"])
        if isinstance(given["C"], list):
            given["C"] = tuple(float(bound) for bound in given["C"])
        if given["teacher"] == _GIVEN:
            given["teacher"] = evolution_of(config).regularization.teacher
        penalties = Penalties(float(told["size_penalty"]), float(told["term_penalty"]))
        plan = Plan(int(told["seed"]), Chosen(Regularization(**given), penalties))
        stage = range(2**31).index(told["stage"])
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise ValueError(f"{path} was not written by a search: {repr(error)[:200]}.") from error
    for name, value in compared(config).items():
        if before.get(name) != value:
            raise ValueError(
                f"{name}={value}: the run in {path} has {name}={before.get(name)}; it continues "
                "with the same parameters only, except for limits."
            )
    return plan, stage
