"""Search by scores: trees whose worth is known to a callable alone, such as a simulator.

Rows are points that trees are asked about; they have no labels, and say no more than where splits
may part them. A leaf holds what it answers. All trees of a generation meet the same episodes, those
that would win more of them: successive halving (Jamieson and Talwalkar 2016, AISTATS).
"""

import math
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import pairwise
from operator import attrgetter
from typing import Any

import numpy as np
from deap import base
from joblib import Parallel, delayed

from evotree.configuration import as_text, check_parameters
from evotree.dataset import Dataset
from evotree.engine.choice import Choice
from evotree.engine.config import Evolution, SearchConfig, Variation, is_auto
from evotree.engine.evolution import CallbackError, Run
from evotree.engine.islands import deaf_to_interrupts
from evotree.engine.populations import Seeds
from evotree.engine.problem import Deadlines, Penalties, Problem, make_constraints
from evotree.engine.search import Search, Start
from evotree.engine.toolbox import feature_bound, make_toolbox
from evotree.fitness.base import PenalizedAccuracy
from evotree.front import FittedFront, FrontTree, undominated
from evotree.log import log_end
from evotree.operators import variation as selection
from evotree.operators.structure.rounding import MOST_DIGITS, Rounder
from evotree.rng import make_streams
from evotree.schema import LARGEST, is_number, quoted
from evotree.simulators.trees import Breeder, as_actions
from evotree.tree import FitnessMax, Individual, ObliqueTree, node_weights
from evotree.words import check_whole

DEFAULT = Evolution(
    patience=None, init=None, refinement=None, variation=Variation(0.2, 0.3)
)
"""How trees that are scored evolve where nothing else is said."""

_AUTO = Penalties(0.002, 0.0005)  # in units of the range of a generation's scores
# Significant digits of the numbers of a tree where ``precision="auto"``.
_AUTO_DIGITS = 3
# The share of a tree's score that as many new episodes say; the rest is the score that it had.
_RESCORED_SHARE = 0.5
# So many trees of the last population are scored on so many times the episodes of a generation.
_FINALISTS = 16
_FINAL_EPISODES_FACTOR = 10
# Numbers of generations that no run reaches.
_EPISODES, _LAST, _WATCHED = 2**61, 2**62 + 2, 2**62 + 3
# Parameters that need labels or columns, or several scores of a tree.
_UNUSED = ("objective", "monotonic_cst", "interaction_cst", "warm_start")
_UNUSED_OF_EVOLUTION = ("refinement", "regularization", "max_samples", "hold", "shapes")
_UNUSED_OF_VARIATION = ("algorithm",)


@dataclass(frozen=True)
class ScoredProblem:
    """What a search by scores is about.

    Parameters
    ----------
    score : callable
        ``score(tree, seed)`` returns a finite number, of a magnitude up to 1e100, the greater the
        better. The tree is an `ObliqueTree` over raw features with its numbers as they are
        printed; `seed`, an integer in [0, 2**31), is the same for all trees of an episode.
    actions : int, sequence of str, or pair of float
        The number of actions that leaves choose from, at least 2, or their names; or the bounds of
        the number that they answer.
    observations : array-like or table of shape (n_points, n_features)
        Points that trees are asked about. Splits stand between them.
    n_episodes : int, at least 1, default=1
        Number of seeds that a generation's best trees meet. Above 1, trees that live on are scored
        again in each generation, and their score is a moving average; of 4 and more only the better
        half meets more than a fourth, and a fourth all.
    """

    score: Callable[[ObliqueTree, int], float]
    actions: Any
    observations: Any
    n_episodes: int = 1

    def __post_init__(self) -> None:
        check_whole("n_episodes", self.n_episodes, 1)
        if np.ndim(self.observations) == 2 and len(self.observations) < 2:
            raise ValueError(
                f"observations has {len(self.observations)} points: allowed are 2 or more."
            )

    def dataset(self, config: SearchConfig) -> Dataset:
        """Return the points as rows, whose labels are drawn at random and say nothing."""
        labels = np.arange(len(self.observations)) % 2
        rows = Dataset.from_arrays(
            self.observations,
            np.random.default_rng(0).permutation(labels),
            scaling=(config.evolution or DEFAULT).scaling,
        )
        return rows.evolved_for(as_actions(self.actions, config.leaves))


@dataclass
class ScoredResult:
    """What a search by scores has found; its trees are over raw features, as they were scored.

    Attributes
    ----------
    tree : FrontTree
        The fittest tree in new episodes. Its rows are the states that it was asked about in some
        more: leaves that none of them reaches are printed so.
    front : FittedFront
        The undominated ones; their ``quality`` is their mean score in these episodes.
    run : Run
        The run, with its logbook, population and hall of fame.
    n_scores : int
        How often `ScoredProblem.score` was called.
    """

    tree: FrontTree
    front: FittedFront
    run: Run = field(repr=False)
    n_scores: int


def search_scores(
    problem: ScoredProblem,
    config: SearchConfig | None = None,
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
        checkpoint needs the same score, actions, points and episodes. Trees are scored by as many
        processes as `n_jobs` says, or where ``joblib.parallel_config`` does; the result is the
        same.

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
    dataset = problem.dataset(config)
    rows = Problem(
        dataset,
        config,
        make_constraints(config, evolution, dataset),
        ends=Deadlines.of(config.time_limit, begin),
    )
    return ScoreSearch(problem, rows).result()


def _refuse_what_needs_labels(config: SearchConfig, evolution: Evolution) -> None:
    """Refuse parameters that ask for something of labels."""
    for given, plain, names in (
        (config, SearchConfig(), _UNUSED),
        (evolution, Evolution(), _UNUSED_OF_EVOLUTION),
        (evolution.variation, Variation(), _UNUSED_OF_VARIATION),
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


def seeds_of(seed: int, number: int, n: int) -> list[int]:
    """Return the seeds of the episodes of a generation, or of what its number stands for."""
    return [int(stream[0] >> np.uint64(33)) for stream in make_streams(seed, number, n)]


def score_tree(
    score: Callable[[ObliqueTree, int], float], home: int, tree: ObliqueTree, seed: int
) -> float:
    """Return the score of a tree in an episode."""
    with deaf_to_interrupts(home):
        value = score(tree, seed)
    if not is_number(value):
        raise ValueError(
            f"score returned {quoted(value)}: allowed is a finite number, of a magnitude up to "
            f"{LARGEST:g}."
        )
    return float(value)


@dataclass(eq=False)
class Scorer:
    """Gives the trees of a generation their fitness."""

    problem: ScoredProblem
    dataset: Dataset
    config: SearchConfig
    seed: int
    # What is not scored by then, on `time.perf_counter`, is left out.
    end: float = math.inf
    n_jobs: int | None = 1
    home: int = field(default_factory=os.getpid)
    n_scores: int = 0
    range: float = 0.0  # of the scores of a generation

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
            key = b"".join(array.tobytes() for array in (*one.splits, one.answers))
            groups.setdefault(key, []).append(one)
        scores = {
            key: one.quality
            for key, members in groups.items()
            for one in members
            if one.fitness.valid
        }
        self._see(scores.values())  # what it knew may be of another process
        n_before, n_episodes = self.n_scores, self.problem.n_episodes
        entered = [key for key in groups if n_episodes > 1 or key not in scores]
        raced = self.race(
            [groups[key][0] for key in entered], _EPISODES + generation, n_episodes
        )
        for key, met in zip(entered, raced, strict=True):
            if met:
                mean = float(np.mean(met))
                before = scores.get(key, mean)
                share = _RESCORED_SHARE * len(met) / n_episodes
                scores[key] = before + share * (mean - before)
        self._see(scores.values())
        lowest = min(scores.values())
        for key, members in groups.items():
            for one in members:
                self.measured(one, scores.get(key, lowest))
        return self.n_scores - n_before

    def _see(self, scores: Iterable[float]) -> None:
        """Measure the range of scores, as far as there are any."""
        values = list(scores)
        self.range = float(np.ptp(values)) if values else 0.0

    def measured(self, individual: Individual, score: float) -> Individual:
        """Give an individual its score and its fitness; return it."""
        individual.measured(score)
        penalized = PenalizedAccuracy(*self.penalties)
        individual.fitness = FitnessMax(penalized(individual))
        return individual

    @cached_property
    def shorten(self) -> Rounder:
        """What gives a tree its few digits."""
        precision = self.config.precision
        digits = _AUTO_DIGITS if is_auto(precision) else precision
        return Rounder(self.dataset.raw, digits or MOST_DIGITS)

    def finished(self, individual: Individual) -> ObliqueTree:
        """Return a tree over raw features as it is scored and printed."""
        return self.dataset.objective.finished(individual, self.dataset, self.shorten)

    def race(
        self, trees: Sequence[Individual], number: int, n: int
    ) -> list[list[float]]:
        """Return the scores of each tree in those of the first `n` episodes that it meets.

        `number` is that of the generation, or what stands for one: it says which episodes.
        """
        seeds = seeds_of(self.seed, number, n)
        finished = list(map(self.finished, trees))
        scores: list[list[float]] = [[] for _ in trees]

        def fitness(i: int) -> FitnessMax:
            return self.measured(trees[i].clone(), float(np.mean(scores[i]))).fitness

        running = list(range(len(trees)))
        for begin, stop in pairwise((0, n // 4, n // 2, n) if n >= 4 else (0, n)):
            tasks = [(i, seed) for i in running for seed in seeds[begin:stop]]
            met = self._met([(finished[i], seed) for i, seed in tasks])
            for (i, _), score in zip(tasks, met, strict=False):
                scores[i].append(score)
            best = sorted(
                filter(scores.__getitem__, running), key=fitness, reverse=True
            )
            running = sorted(best[: -(-len(best) // 2)])
        return scores

    def _met(self, tasks: Sequence[_Task]) -> list[float]:
        """Return the scores of trees in episodes, or of the first that there is time for."""
        scores: list[float] = []
        if time.perf_counter() >= self.end and self.n_scores:
            return scores
        score = delayed(partial(score_tree, self.problem.score, self.home))
        side_by_side = Parallel(self.n_jobs, return_as="generator", max_nbytes=None)
        for found in side_by_side(score(tree, seed) for tree, seed in tasks):
            scores.append(found)
            if time.perf_counter() >= self.end:
                break
        self.n_scores += len(scores)
        return scores

    def replace(self, parents: Any, offspring: Any) -> list[Individual]:
        """Let the best of parents and offspring live on."""
        return selection.replace_best(parents, offspring, *self.penalties)

    def finalists(self, run: Run, *, is_raced: bool = True) -> list[FrontTree]:
        """Return trees that may be the best of a run, this one first, by what new episodes say.

        Without a race, or time for it, by the scores that they have.
        """
        last = sorted(run.population, key=attrgetter("fitness"), reverse=True)
        candidates = [*last[:_FINALISTS], *run.hall_of_fame, *run.pareto_front]
        trees = selection.separate_duplicates(candidates)[0]
        scored: list[Any] = [(tree, tree.quality) for tree in trees]
        self._see(score for _, score in scored)
        n_episodes = self.problem.n_episodes
        if n_episodes > 1 and is_raced and time.perf_counter() < self.end:
            raced = self.race(trees, _LAST, _FINAL_EPISODES_FACTOR * n_episodes)
            met = zip(trees, raced, strict=True)
            means = [(tree, float(np.mean(one))) for tree, one in met if one]
            scored = means or scored
        ended = [self.measured(tree.clone(), score) for tree, score in scored]
        # Of equal scores there may be no range, and so no penalties.
        ended.sort(key=lambda one: (one.fitness, -one.complexity), reverse=True)
        return [
            FrontTree.of(self.finished(one), one.quality, one.origin) for one in ended
        ]


class WatchedTree(ObliqueTree):
    """A tree that keeps which leaves it is asked for."""

    def __init__(self, tree: ObliqueTree) -> None:
        self.__setstate__(ObliqueTree.__getstate__(tree))
        self.reached = np.zeros(len(tree))

    def apply(self, X: np.ndarray) -> np.ndarray:
        """Return the leaf that each row reaches, and count it."""
        leaves = super().apply(X)
        self.reached += np.bincount(leaves, minlength=len(self))
        return leaves


# ---- the search ----------------------------------------------------------------------------------


class ScoreSearch(Search):
    """A search whose trees are scored as a generation; it chooses nothing beforehand."""

    def __init__(self, scored: ScoredProblem, problem: Problem) -> None:
        super().__init__(problem)
        self.scored = scored

    @property
    def parameters(self) -> Mapping[str, str]:
        """What must be the same when a search continues, as text; points are compared as rows."""
        names = "score", "actions", "n_episodes"
        own = {name: as_text(getattr(self.scored, name)) for name in names}
        return {**super().parameters, **own}

    def choose(self, seed: int) -> Start:
        """Return a choice of nothing but the seed: penalties are shares of the scores' range."""
        return Start(self.problem, Choice(seed, Penalties(0.0, 0.0)))

    def toolbox(
        self, start: Start, rows: Dataset, seed: int, seeds: Seeds, *, begins: bool
    ) -> base.Toolbox:
        """Return the toolbox of a population, whose ``score`` takes the place of ``evaluate``."""
        problem, dataset = self.problem, self.problem.dataset
        evolution, n_features = problem.evolution, dataset.X.shape[1]
        max_split_terms = problem.config.max_split_terms
        toolbox = make_toolbox(
            dataset,
            variation=replace(evolution.variation, term_mutation_probability=0.0),
            operators=evolution.operators,
            max_split_terms=max_split_terms,
            random_state=seed,
        )
        bound = feature_bound(max_split_terms, n_features, problem.constraints)
        breeder = Breeder(dataset, problem.constraints, bound or n_features)
        given = evolution.start, *trees_of_init(evolution)
        first = [breeder.individual_of(one) for one in given if one is not None]
        if len(first) > evolution.population_size:
            raise ValueError(
                f"init holds {len(first)} trees: at most {evolution.population_size}, the "
                "population."
            )
        toolbox.register("individual", breeder.first)
        toolbox.register("population", _population, toolbox, first)
        for role in ("mutate", "mate"):
            operator = getattr(toolbox, role)
            toolbox.register(role, getattr(breeder, role), operator=operator)
        toolbox.score = self.scorer(seed, problem.ends.evolution)
        if evolution.islands.n > 1:  # these evolve side by side
            toolbox.score.n_jobs = 1
        if evolution.variation.survival == "best":
            toolbox.register("replace", toolbox.score.replace)
        return toolbox

    def scorer(self, seed: int, end: float) -> Scorer:
        """Return what scores trees until an end."""
        dataset, config = self.problem.dataset, self.problem.config
        return Scorer(self.scored, dataset, config, seed, end, config.n_jobs)

    def result(self) -> ScoredResult:
        """Search, and return what was found."""
        start, run, _, failure = self.evolved()
        if failure is not None:
            raise CallbackError(run) from failure
        scorer = self.scorer(start.choice.seed, self.problem.ends.trees)
        members = scorer.finalists(run, is_raced=run.stop_reason != "interrupt")
        best = self._with_states(members[0], scorer)
        members = [best, *members[1:]]
        front = FittedFront(undominated(members), best.values.shape[1] == 1)
        log_end(best, run.seconds)
        return ScoredResult(
            best,
            front.choosing(best),
            run,
            sum(run.logbook.select("nevals")) + scorer.n_scores,
        )

    def _with_states(self, tree: FrontTree, scorer: Scorer) -> FrontTree:
        """Return a tree with the states that it is asked about in further episodes as its rows.

        They are not known where it acts as exported code, or the time is up.
        """
        watched = WatchedTree(tree)
        for seed in seeds_of(scorer.seed, _WATCHED, self.scored.n_episodes):
            if time.perf_counter() < self.problem.ends.all:
                self.scored.score(watched, seed)
                scorer.n_scores += 1
        leaves = np.arange(len(tree))
        n_states = node_weights(leaves, watched.reached, tree.subtree_size)
        counted = tree.replaced(
            weighted_n_node_samples=n_states if n_states.any() else None
        )
        return FrontTree.of(counted, tree.quality, tree.origin)


def trees_of_init(evolution: Evolution) -> list[Any]:
    """Return the trees of ``init``, of which there may be one alone; none by default."""
    init = evolution.init
    if isinstance(init, list | tuple):
        return list(init)
    return [] if init is None or init == Evolution().init else [init]


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
