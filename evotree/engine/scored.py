"""Search by scores: trees whose worth is known to a callable alone, such as a simulator.

Rows are points that trees are asked about; they have no labels, and say no more than where splits
may part them. A leaf holds what it answers. All trees of a generation meet the same episodes, those
that would win more of them: successive halving (Jamieson and Talwalkar 2016, AISTATS).
"""

import math
import os
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, fields, replace
from functools import partial
from numbers import Integral, Real
from typing import Any

import numpy as np
from deap import base
from joblib import effective_n_jobs
from joblib.externals.loky import get_reusable_executor

from evotree.configuration import check_parameters
from evotree.dataset import Dataset, as_numbers
from evotree.engine.checkpoint import CheckpointWriter, load_checkpoint, read_settings
from evotree.engine.config import (
    Evolution,
    SearchConfig,
    Variation,
    checkpoint_of,
    is_auto,
)
from evotree.engine.continuing import compared
from evotree.engine.evolution import Run, generations, interrupt_as_flag, watch
from evotree.engine.islands import deaf_to_interrupts, epochs, island_seeds
from evotree.engine.parallel import run_tasks
from evotree.engine.prepare import make_constraints
from evotree.engine.progress import Progress
from evotree.engine.toolbox import dipole_width, feature_bound, make_toolbox, split_init
from evotree.fitness.actions import Actions, as_actions
from evotree.fitness.penalties import FITNESS_OF_SCORES, PenalizedAccuracy
from evotree.individual import FitnessMax, Individual
from evotree.inspection.front import FittedFront, FrontTree, own_scores, undominated
from evotree.operators.initialization.answers import Breeder
from evotree.operators.structure.rounding import MOST_DIGITS, Rounder
from evotree.operators.variation import selection
from evotree.rng import make_streams, seed_from
from evotree.tree import ObliqueTree

DEFAULT = Evolution(
    patience=None, init=None, refinement=None, variation=Variation(0.2, 0.3)
)
"""How trees that are scored evolve where nothing else is said."""

_AUTO = (
    0.002,
    0.0005,
)  # penalties for a node and a term, in units of a generation's range
_N_POINTS = 512  # that are drawn in a box
_DIGITS = 3  # of the numbers of a tree where ``precision="auto"``
_MOST_DEPTH = 3  # of first trees
_RESCORED = 0.5  # of the score of a tree that has one, what as many new episodes say
_FINALISTS, _FINALS = (
    16,
    10,
)  # of the last population; times the episodes that choose among them
_EPISODES, _LAST = 2**61, 2**62 + 2  # numbers of generations that no run reaches
_UNUSED = (
    "objective",
    "monotonic_cst",
    "interaction_cst",
    "warm_start",
)  # by such a search, and
_OF_LABELS = ("refinement", "regularization", "max_samples", "hold")  # of `Evolution`


@dataclass(frozen=True, kw_only=True)
class ScoredProblem:
    """What a search by scores is about.

    Parameters
    ----------
    score : callable
        ``score(tree, seed)`` returns a finite number, the greater the better, or for
        ``Variation(algorithm="nsga2")`` up to three. The tree is an `ObliqueTree` over raw features
        with its numbers as they are printed; `seed`, an integer in [0, 2**31), is the same for all
        trees of an episode. An attribute ``cost`` of a number is added to `ScoredResult.cost`.
    actions : int, sequence of str, or pair of float
        The number of actions that leaves choose from, at least 2, or their names; or the bounds of
        the number that they answer.
    observations : array-like or table of shape (n_points, n_features), optional
        Points that trees are asked about. Splits stand between them.
    box : pair of array-like of shape (n_features,), optional
        Bounds, low and high, between which points are drawn, in place of `observations`.
    n_episodes : int, at least 1, default=1
        Number of seeds that a generation's best trees meet. Above 1, trees that live on are scored
        again in each generation, and their score is a moving average.
    racing : bool, default=True
        Whether only the better half meets more than a fourth of them, and a fourth all.
    """

    score: Callable[[ObliqueTree, int], Any]
    actions: Any
    observations: Any = None
    box: Any = None
    n_episodes: int = 1
    racing: bool = True

    def __post_init__(self) -> None:
        if not callable(self.score):
            raise ValueError(f"score={self.score!r}: allowed is a callable.")
        if not isinstance(self.n_episodes, Integral) or self.n_episodes < 1:
            raise ValueError(
                f"n_episodes={self.n_episodes!r}: allowed are integers from 1."
            )
        if (self.observations is None) == (self.box is None):
            raise ValueError(
                "observations and box: one of them is needed, and not both."
            )

    def dataset(self, config: SearchConfig, seed: int) -> Dataset:
        """Return the points as rows, whose labels are drawn at random and say nothing."""
        rng, X, evolution = (
            np.random.default_rng(seed),
            self.observations,
            config.evolution,
        )
        if self.box is not None:
            low, high = (np.ravel(as_numbers("box", bound)) for bound in self.box)
            if (
                low.shape != high.shape
                or not (np.isfinite(high - low) & (low < high)).all()
            ):
                raise ValueError(
                    f"box={self.box!r}: allowed are finite bounds, low below high."
                )
            X = rng.uniform(low, high, (_N_POINTS, low.size))
        if np.ndim(X) == 2 and len(X) < 2:
            raise ValueError(
                f"observations has {len(X)} points: allowed are 2 or more."
            )
        labels = rng.permutation(np.arange(len(X)) % 2)
        rows = Dataset.from_arrays(X, labels, scaling=(evolution or DEFAULT).scaling)
        return rows.evolved_for(as_actions(self.actions, config.leaves))


# ---- scores --------------------------------------------------------------------------------------


def score_trees(
    score: Callable[[ObliqueTree, int], Any],
    home: int,
    tasks: Sequence[tuple[ObliqueTree, Any]],
) -> list[tuple[list[tuple[float, ...]], float]]:
    """Return the scores of trees with some seeds each, and what these cost."""
    scored = []
    with deaf_to_interrupts(home):
        for tree, seeds in tasks:
            given = [score(tree, seed) for seed in seeds]
            cost = math.fsum(getattr(one, "cost", 1.0) for one in given)
            scored.append((list(map(_as_scores, given)), cost))
    return scored


def _as_scores(value: Any) -> tuple[float, ...]:
    """Return what a score is as a tuple of finite numbers."""
    values = tuple(value) if isinstance(value, list | tuple | np.ndarray) else (value,)
    is_sound = 1 <= len(values) <= len(FITNESS_OF_SCORES)
    if not is_sound or not all(
        isinstance(one, Real) and math.isfinite(one) for one in values
    ):
        allowed = f"a finite number, or a tuple of up to {len(FITNESS_OF_SCORES)}"
        raise ValueError(f"score returned {value!r}: allowed is {allowed}.")
    return tuple(map(float, values))


class Scorer:
    """Gives the trees of a generation their fitness; knows what that has cost so far."""

    def __init__(
        self, problem: ScoredProblem, dataset: Dataset, config: SearchConfig, seed: int
    ) -> None:
        self.problem, self.dataset, self.config, self.seed = (
            problem,
            dataset,
            config,
            seed,
        )
        self.is_nsga2 = (config.evolution or DEFAULT).variation.algorithm == "nsga2"
        self.executor: Executor | None = None
        self.n_jobs, self.home = 1, os.getpid()
        self.n_scores, self.cost, self.range = 0, 0.0, 0.0
        digits = _DIGITS if is_auto(config.precision) else config.precision
        self.shorten = Rounder(dataset.raw, digits or MOST_DIGITS)

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"executor": None}  # stays at home

    @property
    def penalties(self) -> tuple[float, ...]:
        """Penalties for a node and for a term, in units of the scores."""
        given = self.config.size_penalty, self.config.term_penalty
        pairs = zip(given, _AUTO, strict=True)
        return tuple(
            self.range * auto if is_auto(one) else float(one) for one, auto in pairs
        )

    def __call__(
        self,
        offspring: Sequence[Individual],
        parents: Sequence[Individual],
        generation: int,
    ) -> int:
        """Score a generation; return how many times."""
        groups: dict[bytes, list[Individual]] = {}  # equal trees are scored as one
        for one in (*parents, *offspring):
            key = b"".join(array.tobytes() for array in one.splits)
            groups.setdefault(key, []).append(one)
        scores = {key: self.known(members) for key, members in groups.items()}
        n_before, n = self.n_scores, self.problem.n_episodes
        self._see(scores.values())  # what it knew may be of another process
        entered = [key for key in groups if n > 1 or scores[key] is None]
        found = self.race(
            [groups[key][0] for key in entered], _EPISODES + generation, n
        )
        for key, of_tree in zip(entered, found, strict=True):
            mean, before = of_tree.mean(axis=0), scores[key]
            if before is not None:
                mean = before + _RESCORED * len(of_tree) / n * (mean - before)
            scores[key] = mean
        self._see(scores.values())
        for key, members in groups.items():
            for one in members:
                self.measured(one, scores[key])
        return self.n_scores - n_before

    def _see(self, scores: Iterable[Any]) -> None:
        """Measure the range of scores, as far as there are any."""
        first = [of_tree[0] for of_tree in scores if of_tree is not None]
        self.range = max(first) - min(first) if first else 0.0

    def known(self, equals: Sequence[Individual]) -> np.ndarray | None:
        """Return the scores that one of some equal trees has, if any."""
        for one in equals:
            if one.fitness.wvalues:
                return np.array(
                    one.fitness.values[:-1] if self.is_nsga2 else [one.quality]
                )
        return None

    def measured(self, individual: Individual, scores: Any) -> Individual:
        """Give an individual its scores and its fitness; return it."""
        individual.measured(float(scores[0]))
        individual.fitness = (
            FITNESS_OF_SCORES[len(scores)]() if self.is_nsga2 else FitnessMax()
        )
        several = (*map(float, scores), float(individual.complexity))
        penalized = PenalizedAccuracy(*self.penalties)(individual)
        individual.fitness.values = several if self.is_nsga2 else penalized
        return individual

    def race(
        self, trees: Sequence[Individual], number: int, n: int
    ) -> list[np.ndarray]:
        """Return the scores of trees in the first of `n` episodes, (n_met, n_scores) of each."""
        seeds = [
            int(stream[0] >> np.uint64(33))
            for stream in make_streams(self.seed, number, n)
        ]
        is_race = self.problem.racing and not self.is_nsga2 and n >= 4
        actions: Actions = self.dataset.objective
        finished = [
            actions.finished(tree, self.dataset, self.shorten) for tree in trees
        ]
        scores: list[list[tuple[float, ...]]] = [[] for _ in trees]
        running, begin = list(range(len(trees))), 0
        for end in (n // 4, n // 2, n) if is_race else (n,):
            found = self._scores_of([(finished[i], seeds[begin:end]) for i in running])
            for i, of_tree in zip(running, found, strict=True):
                scores[i] += of_tree
            means = ((i, np.mean(scores[i], axis=0)) for i in running)
            fitness = {
                i: self.measured(trees[i].clone(), mean).fitness for i, mean in means
            }
            best = sorted(running, key=fitness.__getitem__, reverse=True)
            running, begin = sorted(best[: -(-len(best) // 2)]), end
        return list(map(np.array, scores))

    def _scores_of(self, tasks: Sequence[tuple[ObliqueTree, Any]]) -> list[Any]:
        """Score trees, on the executor if there is one."""
        score = partial(score_trees, self.problem.score, self.home)
        if self.executor is None:
            found = score(tasks)
        else:
            n = -(-len(tasks) // (4 * self.n_jobs)) or 1
            chunks = [tasks[at : at + n] for at in range(0, len(tasks), n)]
            parts = run_tasks(score, chunks, self.executor, "scores")
            found = [one for part in parts for one in part]
        self.n_scores += sum(len(seeds) for _, seeds in tasks)
        self.cost += math.fsum(cost for _, cost in found)
        return [scores for scores, _ in found]

    def replace(self, parents: Any, offspring: Any) -> list[Individual]:
        """Let the best of parents and offspring live on."""
        return selection.replace_best(parents, offspring, *self.penalties)

    def finalists(self, run: Run) -> list[FrontTree]:
        """Return trees that may be the best of a run, this one first, by what new episodes say."""
        last = sorted(run.population, key=lambda one: one.fitness, reverse=True)
        some = [*last[:_FINALISTS], *run.hall_of_fame, *run.pareto_front]
        trees, n = selection.separate_duplicates(some)[0], self.problem.n_episodes
        scores: list[Any] = [self.known([tree]) for tree in trees]
        self._see(scores)
        if n > 1:
            scores = [
                found.mean(axis=0) for found in self.race(trees, _LAST, _FINALS * n)
            ]
        pairs = zip(trees, scores, strict=True)
        ended = [self.measured(tree.clone(), of_tree) for tree, of_tree in pairs]
        members = []
        for one in sorted(ended, key=lambda one: one.fitness, reverse=True):
            tree = self.dataset.objective.finished(one, self.dataset, self.shorten)
            of_tree = own_scores(one) if self.is_nsga2 else ()
            members.append(FrontTree.of(tree, one.quality, one.origin, of_tree))
        return members


# ---- the search ----------------------------------------------------------------------------------


@dataclass
class ScoredResult:
    """What a search by scores has found; its trees are over raw features, as they were scored.

    Attributes
    ----------
    tree : FrontTree
        The fittest tree in new episodes.
    front : FittedFront
        The undominated ones; their ``quality`` is their mean score in these episodes.
    run : Run
        The run, with its logbook, population and hall of fame.
    n_scores, cost : int, and float
        How often `ScoredProblem.score` was called in this process, and what that has cost.
    """

    tree: FrontTree
    front: FittedFront
    run: Run
    n_scores: int
    cost: float


def search_scores(
    problem: ScoredProblem,
    config: SearchConfig | None = None,
    executor: Executor | None = None,
) -> ScoredResult:
    """Search for a tree by what a callable says that trees are worth; Ctrl-C ends it with the best.

    Parameters
    ----------
    problem : ScoredProblem
        Who scores trees, what they see, and what they answer.
    config : SearchConfig, optional
        What the search is told. Penalties of ``"auto"`` are .002 of a generation's best score less
        its worst for a node, and .0005 for a term; ``precision="auto"`` is 3 digits, with which
        trees are scored, too. ``leaves="linear"`` has lines where leaves answer a number. First
        trees are random ones, and those of ``init`` and ``start``.
    executor : concurrent.futures.Executor, optional
        Where trees are scored, or islands evolve; by default processes, as many as `n_jobs` says.
        The result is the same.
    """
    config = SearchConfig() if config is None else config
    check_parameters(config)
    plain = {one.name: one.default for one in fields(SearchConfig)}
    for name in _UNUSED:
        if (given := getattr(config, name)) != plain[name]:
            raise ValueError(
                f"{name}={given!r}: a search by scores has no labels for it."
            )
    evolution, checkpoint = config.evolution or DEFAULT, checkpoint_of(config)
    for name in _OF_LABELS:
        given = getattr(evolution, name)
        if given is not None and given != getattr(Evolution(), name):
            raise ValueError(
                f"{name}={given!r}: a search by scores has no labels for it."
            )
    inits = (
        evolution.init if isinstance(evolution.init, list | tuple) else [evolution.init]
    )
    if named := [
        one for one in inits if isinstance(one, str | dict) and one != Evolution().init
    ]:
        raise ValueError(
            f"init={named[0]!r}: a search by scores has no labels for it, only trees."
        )
    config, seed, runs = (
        replace(config, evolution=evolution),
        seed_from(config.random_state),
        None,
    )
    parameters = compared(config)
    if checkpoint is not None and checkpoint.resume:
        told = read_settings(checkpoint.path)
        seed = told.get("seed", -1)
        if told.get("parameters") != parameters or seed not in range(2**63):
            raise ValueError(f"{checkpoint.path} is of a search with other parameters.")
    dataset = problem.dataset(config, seed)
    if checkpoint is not None and checkpoint.resume:
        runs = load_checkpoint(checkpoint.path, dataset)
    seeds = island_seeds(seed, evolution.islands.n)
    toolboxes = [scored_toolbox(problem, dataset, config, one) for one in seeds]
    n_jobs, progress = effective_n_jobs(config.n_jobs), Progress(config.verbose)
    executor = (
        get_reusable_executor(n_jobs) if executor is None and n_jobs > 1 else executor
    )
    callbacks: list[Any] = [progress.show, *(config.callbacks or ())]
    if checkpoint is not None:
        told = {"parameters": parameters, "seed": seed}
        callbacks += [
            CheckpointWriter(checkpoint.path, dataset, told, checkpoint.every)
        ]
    end = (
        math.inf
        if config.time_limit is None
        else time.perf_counter() + config.time_limit
    )
    scorer, most = toolboxes[0].score, config.max_generations
    with interrupt_as_flag(), progress.phase("evolving", total=most, unit="gen"):
        if len(toolboxes) == 1:
            scorer.executor, scorer.n_jobs = executor, n_jobs
            (first,) = runs or [toolboxes[0].population(n=evolution.population_size)]
            chance = evolution.variation.crossover_probability
            states: Any = generations(first, toolboxes[0], chance, end=end)
        else:
            states = epochs(toolboxes, evolution, executor, runs, most, end)
        limits: dict[str, Any] = {
            "max_generations": most,
            "patience": evolution.patience,
        }
        run = watch(states, callbacks, is_new=runs is None, end=end, **limits)
        scorer.executor, scorer.n_jobs = executor, n_jobs
        members = scorer.finalists(run)
    best, is_regression = members[0], members[0].values.shape[1] == 1
    front = FittedFront(undominated(members), is_regression).choosing(best)
    return ScoredResult(best, front, run, scorer.n_scores, scorer.cost)


def scored_toolbox(
    problem: ScoredProblem, dataset: Dataset, config: SearchConfig, seed: int
) -> base.Toolbox:
    """Return the toolbox of a search by scores, whose ``score`` takes the place of ``evaluate``."""
    evolution, n_features = config.evolution or DEFAULT, dataset.X.shape[1]
    variation = replace(
        evolution.variation, term_mutation_probability=0.0, algorithm="penalized"
    )
    bounds: dict[str, Any] = {"max_split_terms": config.max_split_terms}
    toolbox = make_toolbox(
        dataset,
        variation=variation,
        operators=evolution.operators,
        random_state=seed,
        **bounds,
    )
    constraints = make_constraints(config, dataset)
    most = feature_bound(config.max_split_terms, n_features, constraints)
    width = dipole_width(most, variation, n_features) or n_features
    breeder, scorer = (
        Breeder(dataset, constraints, width),
        Scorer(problem, dataset, config, seed),
    )
    start = [] if evolution.start is None else [evolution.start]
    adopted = [
        breeder.adopt(model) for model in (*start, *split_init(evolution.init)[1])
    ]
    if len(adopted) > (most := evolution.population_size):
        raise ValueError(
            f"init holds {len(adopted)} trees: at most {most}, the population."
        )
    toolbox.register("individual", breeder.first)
    toolbox.register("population", _population, toolbox, adopted)
    for role in ("mutate", "mate"):
        toolbox.register(role, getattr(breeder, role), operator=getattr(toolbox, role))
    toolbox.score = scorer
    if scorer.is_nsga2:
        toolbox.register("select", selection.sel_crowded)
        toolbox.register("replace", selection.replace_nsga2)
    elif variation.survival == "best":
        toolbox.register("replace", scorer.replace)
    return toolbox


def _population(
    toolbox: base.Toolbox,
    adopted: Sequence[Individual],
    n: int,
    seconds: float | None = None,
) -> list[Individual]:
    """Return the first population: trees that were handed in, and random ones."""
    members, streams = [one.clone() for one in adopted[:n]], toolbox.streams(0, n)
    return members + [toolbox.individual(stream) for stream in streams[len(members) :]]
