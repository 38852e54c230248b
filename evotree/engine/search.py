"""The engine's one door: a data set and a configuration in, a result out.

Hyperparameters are chosen by cross-validation, first trees are made, and the population evolves, on
samples that grow where rows are many. A search can continue from a checkpoint or an earlier result.
"""

import math
import time
from collections.abc import Generator, Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from deap import base

from evotree.configuration import check_parameters
from evotree.dataset import Dataset
from evotree.engine import continuing
from evotree.engine.checkpoint import CheckpointWriter, load_checkpoint, read_settings
from evotree.engine.choice import (
    Choice,
    Found,
    found_by,
    own_streams,
    penalties_to_try,
    problem_toolbox,
    trials_of,
    with_noise,
)
from evotree.engine.config import MIN_ROWS, SearchConfig, checkpoint_of
from evotree.engine.evolution import (
    CallbackError,
    Run,
    generations,
    interrupt_as_flag,
    watch,
)
from evotree.engine.finish import Result, finish
from evotree.engine.islands import epochs, island_seeds, islands_of
from evotree.engine.logistic import logistic_rivals
from evotree.engine.parallel import island_executor, thread_map
from evotree.engine.prepare import Problem, prepare
from evotree.engine.progress import Progress
from evotree.engine.sampling import GrowingSample, move
from evotree.individual import Individual
from evotree.operators.constraints.base import repair
from evotree.operators.initialization.seeding import TAO, WIDTHS
from evotree.operators.initialization.sparsity_paths import axis_trees
from evotree.operators.pruning.penalized import prune
from evotree.operators.structure.splice import make_individual
from evotree.rng import seed_from

_SAMPLE_ENDS = {
    "max_generations",
    "patience",
    "time_limit",
}  # a larger sample may follow
_HURRY = 4  # times less patience where one logistic leaf is returned
_LARGER = 0.1  # of the penalties, at which trees have to pay for a place in the front
_LARGER_SHARE = 0.05  # of the time that is left, for these trees


class State(NamedTuple):
    """Where a run stands: at which of its samples, and its islands; None before they begin."""

    stage: int = 0
    islands: list[Run] | None = None


class Seeds(NamedTuple):
    """What a first population has besides the trees that it makes itself."""

    found: Sequence[
        Individual
    ] = ()  # by the choice of hyperparameters; they take places of paths
    larger: Sequence[Individual] = ()  # trees of smaller penalties; they do not breed


def search(
    dataset: Dataset,
    config: SearchConfig | None = None,
    *,
    continues: continuing.Continuation | None = None,
    begin: float | None = None,
    seed: int | None = None,
    progress: Progress | None = None,
) -> Result:
    """Search for a tree.

    Ctrl-C ends the search with what was found until then, a second one at once.

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
    seed : int in [0, 2**63), optional
        Of the run, where `random_state` was drawn from before.
    progress : Progress, optional
        What shows the search; by default as `verbose` says.
    """
    config = SearchConfig() if config is None else config
    check_parameters(config)
    continuing.check_checkpoint(config)  # before anything that takes long
    problem = prepare(dataset, config, begin)
    progress = Progress(config.verbose) if progress is None else progress
    with interrupt_as_flag() as interrupted:
        found, seeds, state = Found(), Seeds(), State()
        before = earlier(problem, continues)
        if before is not None:
            choice, state = before
        else:
            seed = seed_from(config.random_state) if seed is None else seed
            choice, found = choose(problem, seed, progress)
        with progress.phase("evolving", total=config.max_generations, unit="gen"):
            sample = samples(problem, choice.seed)
            rows = fitness_rows(problem, sample[state.stage], choice)
            if state.islands is None and not interrupted():
                seeds = first_trees(problem, rows, choice, found)
            run, rows, failure = evolve(
                problem, choice, seeds, state, sample, rows, progress
            )
        if interrupted():
            run.stop_reason = "interrupt"
    result = finish(problem, run, rows, choice)
    return replace(
        result,
        cv_results=dict(found.cv_results),
        seconds=progress.seconds,
        failure=failure,
    )


# ---- what a run begins with ----------------------------------------------------------------------


def earlier(
    problem: Problem, continues: continuing.Continuation | None
) -> tuple[Choice, State] | None:
    """Return the run to continue, by a checkpoint or an earlier search, if any."""
    config = problem.config
    checkpoint = checkpoint_of(config)
    if checkpoint is not None and checkpoint.resume:
        path = checkpoint.path
        choice, stage = continuing.read_choice(read_settings(path), config, path)
        sample = samples(problem, choice.seed)
        stage = min(stage, len(sample) - 1)  # of other rows, which are refused
        runs = load_checkpoint(path, fitness_rows(problem, sample[stage], choice))
        if (most := config.max_generations) < (
            bred := max(run.generation for run in runs)
        ):
            had = f"the run in {path} has bred {bred} generations"
            raise ValueError(
                f"max_generations={most}: {had}; allowed are as many, or more."
            )
        return choice, State(stage, runs)
    if continues is None:
        return None
    rows = fitness_rows(problem, problem.dataset, continues.choice)
    if (continues.parameters, continues.data) == (
        continuing.compared(config),
        rows.fingerprint,
    ):
        last = len(samples(problem, continues.choice.seed)) - 1
        return continues.choice, State(last, continues.islands)
    continuing.warn_of_a_fresh_start(continues, config)
    return None


def samples(problem: Problem, seed: int) -> GrowingSample:
    """Return the rows that evolution sees one sample after the other."""
    return GrowingSample(
        problem.dataset, problem.evolution.max_samples, own_streams(seed)[2]
    )


def fitness_rows(problem: Problem, dataset: Dataset, choice: Choice) -> Dataset:
    """Return the rows that the fitness is measured on."""
    rows = with_noise(problem, dataset, own_streams(choice.seed)[1])
    return rows.penalized(choice.penalties.term)


def choose(problem: Problem, seed: int, progress: Progress) -> tuple[Choice, Found]:
    """Choose penalties, and what leaves hold, by trials on the first sample; Ctrl-C ends them."""
    rows, seconds = samples(problem, seed)[0], problem.seconds_left(0.5)
    trials = []
    with progress.phase("choosing hyperparameters"), interrupt_as_flag() as interrupted:
        for trial in trials_of(problem, rows, seed, seconds):
            trials.append(trial)
            progress.step()
            if interrupted():
                trials = []
                break
    penalties = penalties_to_try(problem.config, rows.total_weight)
    found = found_by(trials, penalties, models=logistic_rivals(problem))
    return Choice(seed, found.penalties, found.leaves), found


def first_trees(problem: Problem, rows: Dataset, choice: Choice, found: Found) -> Seeds:
    """Return what the choice has found, and trees that pay at a tenth of the penalties."""
    own = found.trees if WIDTHS in problem.shares else []
    if not problem.has_seeds:
        return Seeds(own)
    config, stream = problem.config, own_streams(choice.seed)[3]
    size, term = (_LARGER * penalty for penalty in choice.penalties)
    rows, seconds = rows.penalized(term), problem.seconds_left(_LARGER_SHARE)
    trees = axis_trees(rows, stream, MIN_ROWS, seconds, config.max_depth)
    trees += [make_individual(rows, *tree.splits) for tree in found.larger]
    repaired = (repair(tree, rows, problem.constraints) for tree in trees)
    larger = [prune(tree, rows, size, term)[0] for tree in repaired]
    for tree in larger:
        tree.origin = WIDTHS if WIDTHS in problem.shares else TAO
    return Seeds(own, larger)


# ---- the evolution -------------------------------------------------------------------------------


def evolve(
    problem: Problem,
    choice: Choice,
    seeds: Seeds,
    state: State,
    sample: GrowingSample,
    rows: Dataset,
    progress: Progress,
) -> tuple[Run, Dataset, BaseException | None]:
    """Evolve on samples that grow, each for fewer generations and the same share of the time.

    Returns the run on all rows, the rows that the fitness is measured on, and what a callback
    raised.
    """
    config, last, failure = problem.config, len(sample) - 1, None
    (stage, islands), begins, moves = state, state.islands is None, False
    patience = problem.evolution.patience
    if patience is not None and choice.leaves is not None and choice.leaves.at is None:
        patience = -(-patience // _HURRY)  # all that evolves is the front

    def keep_larger(run: Run) -> None:
        if begins:
            run.larger = islands_of(run)[0].larger = list(seeds.larger)

    while True:
        writer = checkpoint_writer(problem, choice, rows, stage)
        callbacks = (keep_larger, progress.show, writer, *(config.callbacks or ()))
        now = time.perf_counter()
        limits: dict[str, Any] = {
            "max_generations": sample.generations(stage, config.max_generations),
            "end": now + (problem.end - now) / (last - stage + 1),
        }
        states = generations_on(
            problem, rows, choice, seeds, islands, moves, progress, **limits
        )
        try:
            run = watch(
                states,
                [callback for callback in callbacks if callback is not None],
                is_new=islands is None,
                patience=patience,
                **limits,
            )
        except CallbackError as error:
            run, failure = error.run, error.__cause__
        islands = islands_of(run)
        if stage == last or failure or run.stop_reason not in _SAMPLE_ENDS:
            break
        stage = stage + 1 if time.perf_counter() < problem.end else last
        rows, moves = fitness_rows(problem, sample[stage], choice), True
    if writer is not None:
        try:
            writer.write(run)
        except OSError as error:
            failure = failure or error
    if stage < last:
        reason, rows = run.stop_reason, fitness_rows(problem, sample[last], choice)
        run = next(
            generations_on(problem, rows, choice, seeds, islands, True, progress)
        )
        run.stop_reason = reason
    return run, rows, failure


def checkpoint_writer(
    problem: Problem, choice: Choice, rows: Dataset, stage: int
) -> CheckpointWriter | None:
    """Return what writes the run to a file, if anything does."""
    checkpoint = checkpoint_of(problem.config)
    if checkpoint is None:
        return None
    settings = continuing.describe(problem.config, choice, stage)
    return CheckpointWriter(checkpoint.path, rows, settings, checkpoint.every)


def generations_on(
    problem: Problem,
    rows: Dataset,
    choice: Choice,
    seeds: Seeds,
    islands: list[Run] | None,
    moves: bool,
    progress: Progress,
    max_generations: int = 0,
    end: float = math.inf,
) -> Generator[Run]:
    """Yield a run after each generation, or islands after each epoch, on these rows."""
    config, begins = problem.config, islands is None
    own = problem.evolution.islands
    toolboxes = [
        problem_toolbox(problem, rows, choice, seed, seeds.found, begins)
        for seed in island_seeds(choice.seed, own.n)
    ]
    if moves:
        now = time.perf_counter()
        end_of_moves = now + 0.5 * (
            problem.end_of_trees - now
        )  # then trees are finished
    if own.n > 1:
        if moves:
            for run, toolbox in zip(islands or (), toolboxes, strict=True):
                move(run, rows, toolbox, end_of_moves)
        with island_executor(own.executor, config.n_jobs) as executor:
            known = problem.evolution, executor, islands, max_generations, end
            yield from epochs(toolboxes, *known)
        return
    (toolbox,) = toolboxes
    with thread_map(config.n_jobs, rows.X.shape) as toolbox.map:
        population: Any
        if islands is None:
            population = first_population(problem, toolbox, end, progress)
        else:
            (population,) = islands
            if moves:
                move(population, rows, toolbox, end_of_moves)
        probability = problem.evolution.variation.crossover_probability
        yield from generations(population, toolbox, probability, end=end)


def first_population(
    problem: Problem, toolbox: base.Toolbox, end: float, progress: Progress
) -> list[Individual]:
    """Return the first population, whose trees are shown as they come."""
    n, mapper = problem.evolution.population_size, toolbox.map
    seconds = None if end == math.inf else end - time.perf_counter()

    def shown(*arguments: Any) -> Iterator[Any]:
        for result in mapper(*arguments):
            progress.step()
            yield result

    phase = progress.phase("making first trees", total=n, unit="tree")
    with phase, interrupt_as_flag() as interrupted:
        toolbox.map = shown
        first: list[Individual] = toolbox.population(
            n=n, seconds=seconds, hurry=interrupted
        )
    toolbox.map = mapper
    return first
