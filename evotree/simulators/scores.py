"""Search by scores: trees whose worth is known to a callable alone, such as a simulator.

Rows are points that trees are asked about; they have no labels, and say no more than where splits
may part them. A leaf holds what it answers. All trees of a generation meet the same episodes, those
that would win more of them: successive halving (Jamieson and Talwalkar 2016, AISTATS).
"""

import math
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, pairwise
from operator import attrgetter
from typing import Any

import numpy as np
from deap import base
from joblib import effective_n_jobs
from joblib.executor import get_memmapping_executor

from evotree.configuration import as_text, check_parameters
from evotree.dataset import Dataset, as_numbers
from evotree.engine.choice import Choice
from evotree.engine.config import Evolution, SearchConfig, Variation, is_auto
from evotree.engine.evolution import CallbackError, Run
from evotree.engine.islands import deaf_to_interrupts
from evotree.engine.populations import Seeds
from evotree.engine.problem import Deadlines, Penalties, Problem, make_constraints
from evotree.engine.search import Search, Start
from evotree.engine.state import seed_to_continue
from evotree.engine.toolbox import dipole_width, feature_bound, make_toolbox
from evotree.fitness.base import FITNESS_OF_SCORES, PenalizedAccuracy
from evotree.front import FittedFront, FrontTree, own_scores, undominated
from evotree.log import log_end
from evotree.operators import variation as selection
from evotree.operators.structure.rounding import MOST_DIGITS, Rounder
from evotree.parallel import n_at_once, run_tasks
from evotree.rng import make_streams, seed_from
from evotree.schema import LARGEST, is_number, quoted
from evotree.simulators.actions import as_actions
from evotree.simulators.breeding import Breeder
from evotree.tree import FitnessMax, Individual, ObliqueTree
from evotree.words import check_whole

DEFAULT = Evolution(
    patience=None, init=None, refinement=None, variation=Variation(0.2, 0.3)
)
"""How trees that are scored evolve where nothing else is said."""

_AUTO = Penalties(0.002, 0.0005)  # in units of the range of a generation's scores
_N_POINTS_OF_BOX = 512
# Significant digits of the numbers of a tree where ``precision="auto"``.
_AUTO_DIGITS = 3
# The share of a tree's score that as many new episodes say; the rest is the score that it had.
_RESCORED_SHARE = 0.5
# So many trees of the last population are scored on so many times the episodes of a generation.
_FINALISTS = 16
_FINAL_EPISODES_FACTOR = 10
_EPISODES, _LAST = 2**61, 2**62 + 2  # numbers of generations that no run reaches
# Seconds of scoring between two looks at the clock, where time is limited.
_CHECK_SECONDS = 0.1
# Parameters of `SearchConfig` that a search by scores does not use.
_UNUSED = ("objective", "monotonic_cst", "interaction_cst", "warm_start")
_OF_LABELS = ("refinement", "regularization", "max_samples", "hold", "shapes")
"""Parameters of `Evolution` that need labels, or columns."""


@dataclass(frozen=True, kw_only=True)
class ScoredProblem:
    """What a search by scores is about.

    Parameters
    ----------
    score : callable
        ``score(tree, seed)`` returns a finite number, of a magnitude up to 1e100, the greater the
        better, or for ``Variation(algorithm="nsga2")`` a tuple of up to three, always as many. The
        tree is an `ObliqueTree` over raw features with its numbers as they are printed; `seed`, an
        integer in [0, 2**31), is the same for all trees of an episode.
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
        check_whole("n_episodes", self.n_episodes, 1)
        if (self.observations is None) == (self.box is None):
            raise ValueError(
                "observations and box: one of them is needed, and not both."
            )

    def dataset(self, config: SearchConfig, seed: int) -> Dataset:
        """Return the points as rows, whose labels are drawn at random and say nothing."""
        rng = np.random.default_rng(seed)
        X = self.observations
        if self.box is not None:
            low, high = (np.ravel(as_numbers("box", bound)) for bound in self.box)
            is_sound = low.shape == high.shape and np.isfinite(high - low).all()
            if not is_sound or not (low < high).all():
                raise ValueError(
                    f"box={self.box!r}: allowed are finite bounds, low below high."
                )
            X = rng.uniform(low, high, (_N_POINTS_OF_BOX, low.size))
        if np.ndim(X) == 2 and len(X) < 2:
            raise ValueError(
                f"observations has {len(X)} points: allowed are 2 or more."
            )
        labels = rng.permutation(np.arange(len(X)) % 2)
        scaling = (config.evolution or DEFAULT).scaling
        rows = Dataset.from_arrays(X, labels, scaling=scaling)
        return rows.evolved_for(as_actions(self.actions, config.leaves))


@dataclass(repr=False)
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
    n_scores : int
        How often `ScoredProblem.score` was called for this process.
    """

    tree: FrontTree
    front: FittedFront
    run: Run
    n_scores: int

    def __repr__(self) -> str:
        return (
            f"ScoredResult of {self.n_scores} scores: {self.tree!r} of score "
            f"{self.tree.quality:.4g}\n{self.front!r}"
        )


def search_scores(
    problem: ScoredProblem,
    config: SearchConfig | None = None,
    executor: Executor | None = None,
) -> ScoredResult:
    """Search for a tree by what a callable says that trees are worth.

    Ctrl-C ends the search with the best tree until then, and `time_limit` with the best of those
    that there was time to score: three quarters of it are for the evolution, the others for new
    episodes that choose among the last trees. It is passed by what is under way: a score, and the
    first start of processes, which takes seconds.

    Parameters
    ----------
    problem : ScoredProblem
        Who scores trees, what they see, and what they answer.
    config : SearchConfig, optional
        The parameters of the search. Penalties of ``"auto"`` are .002 of a generation's best score
        less its worst for a node, and .0005 for a term; ``precision="auto"`` is 3 digits, with
        which trees are scored, too. ``leaves="linear"`` has lines where leaves answer a number.
        First trees are random ones, and those of ``init`` and ``start``. A search that continues a
        checkpoint needs the same score, actions, points and episodes.
    executor : concurrent.futures.Executor, optional
        Where trees are scored, or islands evolve; by default processes, as many as `n_jobs` says.
        The result is the same.

    Raises
    ------
    evotree.engine.evolution.CallbackError
        If a callback fails, or a checkpoint cannot be written; it has the run.
    RuntimeError
        If a process that scores trees dies. The last generation is in the checkpoint, if any.
    """
    config = SearchConfig() if config is None else config
    check_parameters(config)
    evolution = config.evolution or DEFAULT
    _refuse_what_needs_labels(config, evolution)
    config = replace(config, evolution=evolution)
    begin = time.perf_counter()
    seed = seed_to_continue(config, None)
    seed = seed_from(config.random_state) if seed is None else seed
    dataset = problem.dataset(config, seed)
    rows = Problem(
        dataset,
        config,
        make_constraints(config, evolution, dataset),
        ends=Deadlines.of(config.time_limit, begin),
    )
    return ScoreSearch(problem, rows, executor).result(seed)


def _refuse_what_needs_labels(config: SearchConfig, evolution: Evolution) -> None:
    """Refuse parameters that ask for something of labels."""
    for given, plain, names in (
        (config, SearchConfig(), _UNUSED),
        (evolution, Evolution(), _OF_LABELS),
    ):
        for name in names:
            value = getattr(given, name)
            if value is not None and value != getattr(plain, name):
                raise ValueError(
                    f"{name}={value!r}: a search by scores has no labels for it; allowed is its "
                    "default."
                )


# ---- scores --------------------------------------------------------------------------------------


_Task = tuple[ObliqueTree, int]  # a tree and the seed of an episode


def score_trees(
    score: Callable[[ObliqueTree, int], Any], home: int, tasks: Sequence[_Task]
) -> list[tuple[float, ...]]:
    """Return the scores of trees, each in an episode."""
    with deaf_to_interrupts(home):
        try:
            return [_as_scores(score(tree, seed)) for tree, seed in tasks]
        except StopIteration as error:  # which would end loops around this one
            raise RuntimeError("score raised StopIteration.") from error


def _as_scores(value: Any) -> tuple[float, ...]:
    """Return a score as a tuple of finite numbers."""
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value.item()
    values = tuple(value) if isinstance(value, list | tuple | np.ndarray) else (value,)
    is_sound = 1 <= len(values) <= len(FITNESS_OF_SCORES)
    if not is_sound or not all(map(is_number, values)):
        raise ValueError(
            f"score returned {quoted(value)}: allowed is a finite number, of a magnitude up to "
            f"{LARGEST:g}, or a tuple of up to {len(FITNESS_OF_SCORES)}."
        )
    return tuple(map(float, values))


class Scorer:
    """Gives the trees of a generation their fitness."""

    def __init__(
        self,
        problem: ScoredProblem,
        dataset: Dataset,
        config: SearchConfig,
        seed: int,
    ) -> None:
        self.problem = problem
        self.dataset = dataset
        self.config = config
        self.seed = seed
        self.is_nsga2 = (config.evolution or DEFAULT).variation.algorithm == "nsga2"
        self.n_values = 0 if self.is_nsga2 else 1  # of a score; 0 until there is one
        self.executor: Executor | None = None
        self.home = os.getpid()
        # What is not scored by then, on `time.perf_counter`, is left out.
        self.end = math.inf
        self.n_scores = 0
        self.range = 0.0
        self._seconds = 0.0  # that scores have taken
        digits = _AUTO_DIGITS if is_auto(config.precision) else config.precision
        self.shorten = Rounder(dataset.raw, digits or MOST_DIGITS)

    @property
    def penalties(self) -> Penalties:
        """Penalties for a node and for a term, in units of the scores."""
        sizes = (self.config.size_penalty, self.config.term_penalty)
        return Penalties(
            *(
                self.range * auto if is_auto(one) else float(one)
                for one, auto in zip(sizes, _AUTO, strict=True)
            )
        )

    def __call__(
        self,
        offspring: Sequence[Individual],
        parents: Sequence[Individual],
        generation: int,
    ) -> int:
        """Score a generation; return how many times.

        Trees that there is no time for keep the score that they have, or get the lowest.
        """
        groups: dict[bytes, list[Individual]] = {}  # equal trees are scored as one
        for one in (*parents, *offspring):
            arrays = *one.splits, one.answers
            key = b"".join(array.tobytes() for array in arrays)
            groups.setdefault(key, []).append(one)
        known = {key: self.known(members) for key, members in groups.items()}
        scores = {key: one for key, one in known.items() if one is not None}
        n_before = self.n_scores
        n_episodes = self.problem.n_episodes
        self._see(scores.values())  # what it knew may be of another process
        entered = [key for key in groups if n_episodes > 1 or key not in scores]
        raced = self.race(
            [groups[key][0] for key in entered], _EPISODES + generation, n_episodes
        )
        for key, of_tree in zip(entered, raced, strict=True):
            if len(of_tree):
                mean = of_tree.mean(axis=0)
                before = scores.get(key, mean)
                share = _RESCORED_SHARE * len(of_tree) / n_episodes
                scores[key] = before + share * (mean - before)
        self._see(scores.values())
        lowest = np.min(list(scores.values()), axis=0)
        for key, members in groups.items():
            for one in members:
                self.measured(one, scores.get(key, lowest))
        return self.n_scores - n_before

    def _see(self, scores: Iterable[np.ndarray]) -> None:
        """Measure the range of scores, as far as there are any."""
        first = [of_tree[0] for of_tree in scores]
        self.range = max(first) - min(first) if first else 0.0

    def known(self, equals: Sequence[Individual]) -> np.ndarray | None:
        """Return the scores that one of some equal trees has, if any."""
        for one in equals:
            if one.fitness.wvalues:
                values = one.fitness.values[:-1] if self.is_nsga2 else [one.quality]
                return np.array(values)
        return None

    def measured(self, individual: Individual, scores: np.ndarray) -> Individual:
        """Give an individual its scores and its fitness; return it."""
        individual.measured(float(scores[0]))
        if self.is_nsga2:
            values = *map(float, scores), float(individual.complexity)
            individual.fitness = FITNESS_OF_SCORES[len(scores)](values)
        else:
            values = PenalizedAccuracy(*self.penalties)(individual)
            individual.fitness = FitnessMax(values)
        return individual

    def finished(self, individual: Individual) -> ObliqueTree:
        """Return a tree over raw features as it is scored and printed."""
        return self.dataset.objective.finished(individual, self.dataset, self.shorten)

    def race(
        self, trees: Sequence[Individual], number: int, n: int
    ) -> list[np.ndarray]:
        """Return the scores of trees in the first of `n` episodes, (n_met, n_scores) of each.

        `number` is that of the generation, or what stands for one: it says which episodes.
        """
        streams = make_streams(self.seed, number, n)
        seeds = [int(stream[0] >> np.uint64(33)) for stream in streams]
        is_race = self.problem.racing and not self.is_nsga2 and n >= 4
        finished = list(map(self.finished, trees))
        scores: list[list[tuple[float, ...]]] = [[] for _ in trees]
        running = list(range(len(trees)))
        for begin, stop in pairwise((0, n // 4, n // 2, n) if is_race else (0, n)):
            tasks = [(i, seed) for i in running for seed in seeds[begin:stop]]
            met = self._met([(finished[i], seed) for i, seed in tasks])
            for (i, _), one in zip(tasks, met, strict=False):
                scores[i].append(one)
            fitness = {
                i: self.measured(trees[i].clone(), np.mean(scores[i], axis=0)).fitness
                for i in running
                if scores[i]
            }
            best = sorted(fitness, key=fitness.__getitem__, reverse=True)
            running = sorted(best[: -(-len(best) // 2)])
        return list(map(np.array, scores))

    def _met(self, tasks: Sequence[_Task]) -> list[tuple[float, ...]]:
        """Return the scores of trees in episodes, or of the first that there is time for."""
        scores: list[tuple[float, ...]] = []
        while len(scores) < len(tasks) and (
            time.perf_counter() < self.end or not self.n_scores
        ):
            n = len(tasks)
            if self.end < math.inf:
                each = self._seconds / max(self.n_scores, 1)
                n = self.n_workers(n) * max(
                    1, int(_CHECK_SECONDS / each) if each else 1
                )
            scores += self._score(tasks[len(scores) : len(scores) + n])
        return scores

    def n_workers(self, n_tasks: int) -> int:
        """Return how many of some trees are scored at once."""
        return 1 if self.executor is None else n_at_once(self.executor, n_tasks)

    def _score(self, tasks: Sequence[_Task]) -> list[tuple[float, ...]]:
        """Score trees, on the executor if there is one."""
        begin = time.perf_counter()
        score = partial(score_trees, self.problem.score, self.home)
        n_workers = self.n_workers(len(tasks))
        size = -(-len(tasks) // (4 * n_workers))
        chunks = [tasks[at : at + size] for at in range(0, len(tasks), size)]
        if self.executor is None:
            found = list(map(score, chunks))
        else:
            found = run_tasks(score, chunks, self.executor, "scores of trees")
        scored = list(chain.from_iterable(found))
        self.n_values = self.n_values or len(scored[0])
        for one in scored:
            if len(one) != self.n_values:
                raise ValueError(
                    f"score returned {len(one)} numbers: allowed is one, and of the algorithm "
                    "'nsga2' always the same number of them."
                )
        self.n_scores += len(scored)
        self._seconds += (time.perf_counter() - begin) * n_workers
        return scored

    def replace(self, parents: Any, offspring: Any) -> list[Individual]:
        """Let the best of parents and offspring live on."""
        return selection.replace_best(parents, offspring, *self.penalties)

    def finalists(self, run: Run, *, is_raced: bool = True) -> list[FrontTree]:
        """Return trees that may be the best of a run, this one first, by what new episodes say.

        Without a race, or time for it, by the scores that they have.
        """
        last = sorted(run.population, key=lambda one: one.fitness, reverse=True)
        candidates = [*last[:_FINALISTS], *run.hall_of_fame, *run.pareto_front]
        trees = selection.separate_duplicates(candidates)[0]
        scored: list[Any] = [(tree, self.known([tree])) for tree in trees]
        self._see(scores for _, scores in scored)
        n_episodes = self.problem.n_episodes
        if n_episodes > 1 and is_raced and time.perf_counter() < self.end:
            raced = self.race(trees, _LAST, _FINAL_EPISODES_FACTOR * n_episodes)
            met = zip(trees, raced, strict=True)
            means = [(tree, one.mean(axis=0)) for tree, one in met if len(one)]
            scored = means or scored
        ended = [self.measured(tree.clone(), scores) for tree, scores in scored]
        return [
            FrontTree.of(self.finished(one), one.quality, one.origin, own_scores(one))
            for one in sorted(ended, key=attrgetter("fitness"), reverse=True)
        ]


# ---- the search ----------------------------------------------------------------------------------


class ScoreSearch(Search):
    """A search whose trees are scored as a generation; it chooses nothing beforehand."""

    def __init__(
        self,
        scored: ScoredProblem,
        problem: Problem,
        executor: Executor | None,
    ) -> None:
        super().__init__(problem)
        self.scored = scored
        n_jobs = effective_n_jobs(problem.config.n_jobs)
        if executor is None and n_jobs > 1:
            # The processes of joblib, which cannot go on with those of loky alone.
            executor = get_memmapping_executor(n_jobs, max_nbytes=None)
        self.executor = executor
        self._scorer: Scorer | None = None  # of the first island, and of the last trees

    @property
    def parameters(self) -> Mapping[str, str]:
        """What must be the same when a search continues, as text; points are compared as rows."""
        names = "score", "actions", "n_episodes", "racing"
        own = {name: as_text(getattr(self.scored, name)) for name in names}
        return {**super().parameters, **own}

    def choose(self, seed: int) -> Start:
        """Return a choice of nothing but the seed: penalties are shares of the scores' range."""
        return Start(self.problem, Choice(seed, Penalties(0.0, 0.0)))

    def toolbox(
        self, start: Start, rows: Dataset, seed: int, seeds: Seeds, *, begins: bool
    ) -> base.Toolbox:
        """Return the toolbox of a population, whose ``score`` takes the place of ``evaluate``."""
        scorer = Scorer(self.scored, rows, self.problem.config, seed)
        scorer.end = self.problem.ends.evolution
        if self.problem.evolution.islands.n == 1:  # else islands are on the executor
            scorer.executor = self.executor
        self._scorer = self._scorer or scorer
        return scored_toolbox(self.problem, scorer)

    def executor_of_islands(self) -> Any:
        """Return a context of what islands evolve on: where trees are scored otherwise."""
        return nullcontext(self.executor)

    def result(self, seed: int) -> ScoredResult:
        """Search, and return what was found."""
        _, run, _, failure = self.evolved(seed=seed)
        if failure is not None:
            raise CallbackError(run) from failure
        scorer = self._scorer
        assert scorer is not None
        scorer.executor = self.executor
        scorer.end = self.problem.ends.trees
        members = scorer.finalists(run, is_raced=run.stop_reason != "interrupt")
        front = FittedFront(undominated(members), members[0].values.shape[1] == 1)
        log_end(members[0], run.seconds)
        return ScoredResult(
            members[0],
            front.choosing(members[0]),
            run,
            scorer.n_scores,
        )


def trees_of_init(evolution: Evolution) -> list[Any]:
    """Return the trees of ``init``, of which there may be one alone; none by default."""
    init = evolution.init
    if isinstance(init, list | tuple):
        return list(init)
    return [] if init is None or init == Evolution().init else [init]


def scored_toolbox(problem: Problem, scorer: Scorer) -> base.Toolbox:
    """Return the toolbox of a search by scores, whose ``score`` is the scorer."""
    config = problem.config
    evolution = problem.evolution
    dataset = problem.dataset
    n_features = dataset.X.shape[1]
    variation = replace(
        evolution.variation, term_mutation_probability=0.0, algorithm="penalized"
    )
    toolbox = make_toolbox(
        dataset,
        variation=variation,
        operators=evolution.operators,
        max_split_terms=config.max_split_terms,
        random_state=scorer.seed,
    )
    max_width = feature_bound(config.max_split_terms, n_features, problem.constraints)
    breeder = Breeder(
        dataset,
        problem.constraints,
        dipole_width(max_width, variation, n_features) or n_features,
    )
    given = evolution.start, *trees_of_init(evolution)
    first = [breeder.individual_of(one) for one in given if one is not None]
    if len(first) > evolution.population_size:
        raise ValueError(
            f"init holds {len(first)} trees: at most {evolution.population_size}, the population."
        )
    toolbox.register("individual", breeder.first)
    toolbox.register("population", _population, toolbox, first)
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
    handed_in: Sequence[Individual],
    n: int,
    seconds: float | None = None,
    is_interrupted: Callable[[], bool] = bool,
) -> list[Individual]:
    """Return the first population: trees that were handed in, and random ones."""
    members = [one.clone() for one in handed_in[:n]]
    streams = toolbox.streams(0, n)[len(members) :]
    return members + [toolbox.individual(stream) for stream in streams]
