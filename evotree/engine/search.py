"""The engine's one door: a problem and a configuration in, a result out.

Hyperparameters are chosen by cross-validation, first trees are made, and the population evolves, on
samples that grow where rows are many. A search can continue from a checkpoint or an earlier result.
`Search` has the steps; its kinds say what is chosen, how populations are made and how a run ends.
The worth of a tree follows from rows (`RowSearch`), or is what the ``score`` of a toolbox says.
"""

import math
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

from deap import base

from evotree.configuration import SCORE, check_parameters
from evotree.dataset import Dataset
from evotree.engine.choice import (
    EVOLVED,
    TREE,
    Choice,
    Trial,
    Verdict,
    kinds_of,
    penalties_of_rows,
    trials_of_targets,
    verdict_of,
    with_evolution,
    with_score,
    with_sizes,
)
from evotree.engine.config import SearchConfig, checkpoint_of, plain_config
from evotree.engine.evolution import (
    CallbackError,
    Run,
    generations,
    interrupt_as_flag,
    watch,
)
from evotree.engine.finish import Finisher, Result, finish_run
from evotree.engine.islands import epochs, island_seeds
from evotree.engine.populations import (
    Seeds,
    best_prunings,
    first_population,
    make_front_only,
    move_to_rows,
    problem_toolbox,
    samples_of,
    trees_of,
    with_noise,
)
from evotree.engine.problem import Problem, half_way_to, prepare, seconds_until
from evotree.engine.state import (
    CheckpointWriter,
    Continuation,
    check_checkpoint,
    compared,
    load_checkpoint,
    read_choice,
    settings_of,
    warn_of_a_fresh_start,
)
from evotree.front import FrontTree, TreeChoice, in_unit, menu_of
from evotree.log import Progress, log_begin, log_end, logger
from evotree.operators.constraints import repair
from evotree.operators.initialization.logistic import LOGISTIC
from evotree.operators.initialization.population import WIDTHS
from evotree.operators.structure.splice import make_individual
from evotree.parallel import island_executor, thread_map
from evotree.rng import own_streams, seed_from

log = logger(__name__)

_SAMPLE_ENDS = {"max_generations", "patience", "time_limit"}
"""Reasons to stop after which a larger sample may follow."""

_FRONT_PATIENCE_DIVISOR = 4
"""How many times less patience there is where what evolves is for the front alone."""


class Start(NamedTuple):
    """Where an evolution starts: what it is about, what was chosen, and a run that goes on."""

    problem: Problem  # as it was asked, or with columns that bend
    choice: Choice
    verdict: Verdict = Verdict()  # with trees that are worth keeping
    logistic: FrontTree | None = None  # the choice's tree of logistic models, if made
    stage: int = 0  # number of the sample that it starts on
    islands: list[Run] | None = None  # None where there is no first population yet


class Evolved(NamedTuple):
    """What an evolution ends with."""

    start: Start
    run: Run
    rows: Dataset  # that the fitness was measured on
    # What a callback, or the last write of the run, has raised.
    failure: BaseException | None = None


def search(
    dataset: Dataset,
    config: SearchConfig | None = None,
    *,
    continues: Continuation | None = None,
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
        The parameters of the search.
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
    problem = prepare(dataset, plain_config(config), begin)
    return RowSearch(problem, progress).result(continues=continues, seed=seed)


class Search:
    """One search: its choice, its evolution and its end, in this order."""

    def __init__(self, problem: Problem, progress: Progress | None = None) -> None:
        self.problem = problem
        self.progress = (
            Progress(problem.config.verbose) if progress is None else progress
        )

    # ---- what differs between kinds of searches --------------------------------------------------

    @property
    def parameters(self) -> Mapping[str, str]:
        """What must be the same when a search continues, as text."""
        return compared(self.problem)

    def choose(self, seed: int) -> Start:
        """Return what the run evolves by, and what was found on the way."""
        raise NotImplementedError

    def rows_of(self, start: Start, dataset: Dataset) -> Dataset:
        """Return the rows that the fitness is measured on."""
        return dataset

    def seeds(self, start: Start, rows: Dataset) -> Seeds:
        """Return what the first population has besides the trees that it makes itself."""
        return Seeds()

    def toolbox(
        self, start: Start, rows: Dataset, seed: int, seeds: Seeds, *, begins: bool
    ) -> base.Toolbox:
        """Return the toolbox of a population; only one that begins needs first trees."""
        raise NotImplementedError

    # ---- the steps -------------------------------------------------------------------------------

    def evolved(
        self,
        continues: Continuation | None = None,
        seed: int | None = None,
    ) -> Evolved:
        """Choose, or take up what was chosen, and evolve to the end of some limit."""
        config = self.problem.config
        checkpoint = checkpoint_of(config)
        if checkpoint is not None:
            check_checkpoint(checkpoint, self.parameters)
        with interrupt_as_flag() as interrupted:
            log_begin(self.problem.dataset)
            start = self._earlier(continues)
            if start is None:
                seed = seed_from(config.random_state) if seed is None else seed
                start = self.choose(seed)
            choice = start.choice
            log.info(
                "chosen: %s, penalties %.3g for nodes and %.3g for terms, seed %d",
                choice.winner.kind,
                *choice.penalties,
                choice.seed,
            )
            with self.progress.phase(
                "evolving", total=config.max_generations, unit="gen"
            ):
                evolved = self._evolve(start, begins=not interrupted())
            if interrupted():
                evolved.run.stop_reason = "interrupt"
        return evolved

    def _earlier(self, continues: Continuation | None) -> Start | None:
        """Return where the run of a checkpoint or of an earlier search goes on, if any does."""
        config = self.problem.config
        checkpoint = checkpoint_of(config)
        if checkpoint is not None and checkpoint.resume:
            path = checkpoint.path
            choice, stage = read_choice(path, self.parameters)
            start = Start(self.problem.as_chosen(choice.winner.has_score), choice)
            samples = samples_of(start.problem)
            stage = min(stage, len(samples) - 1)  # of other rows, which are refused
            runs = load_checkpoint(path, self.rows_of(start, samples[stage]))
            self._refuse_fewer_generations(runs, f"the run in {path}")
            return start._replace(stage=stage, islands=runs)
        if continues is None:
            return None
        problem = self.problem.as_chosen(continues.choice.winner.has_score)
        start = Start(problem, continues.choice)
        data = self.rows_of(start, problem.dataset).fingerprint
        if (continues.parameters, continues.data) == (self.parameters, data):
            earlier = "the run that warm_start=True continues"
            self._refuse_fewer_generations(continues.islands, earlier)
            last = len(samples_of(problem)) - 1
            return start._replace(stage=last, islands=continues.islands)
        warn_of_a_fresh_start(continues, self.problem)
        return None

    def _refuse_fewer_generations(self, runs: Sequence[Run], name: str) -> None:
        """Refuse to continue a run that has bred more generations than are asked for."""
        asked = self.problem.config.max_generations
        bred = max(run.generation for run in runs)
        if asked < bred:
            raise ValueError(
                f"max_generations={asked}: {name} has bred {bred} generations; allowed are as "
                "many, or more."
            )

    def _evolve(self, start: Start, *, begins: bool) -> Evolved:
        """Evolve on samples that grow, each for fewer generations and the same share of the time.

        `begins` says whether a first population may have seeds: after Ctrl-C there is no time.
        """
        problem = start.problem
        max_generations = problem.config.max_generations
        samples = samples_of(problem)
        stage, islands = start.stage, start.islands
        last = len(samples) - 1
        rows = self.rows_of(start, samples[stage])
        is_first = islands is None
        seeds = self.seeds(start, rows) if is_first and begins else Seeds()
        moves = False
        while True:
            writer = self._writer(start.choice, rows, stage)
            now = time.perf_counter()
            end = now + (problem.ends.evolution - now) / (last - stage + 1)
            most = samples.generations(stage, max_generations)
            run, failure = self._watched(
                self._generations(start, rows, islands, seeds, most, end, moves=moves),
                writer,
                seeds if is_first else None,
                is_new=islands is None,
                max_generations=most,
                patience=_patience(problem, start.choice),
                end=end,
            )
            islands = run.parts
            if stage == last or failure or run.stop_reason not in _SAMPLE_ENDS:
                break
            stage = stage + 1 if time.perf_counter() < problem.ends.evolution else last
            rows = self.rows_of(start, samples[stage])
            moves = True
        if writer is not None:
            try:
                writer.write(run)
            except OSError as error:
                failure = failure or error
        if stage < last:  # the run ends on all rows, whatever it has ended for
            reason = run.stop_reason
            rows = self.rows_of(start, samples[last])
            run = next(
                self._generations(start, rows, islands, seeds, 0, math.inf, moves=True)
            )
            run.stop_reason = reason
        return Evolved(start, run, rows, failure)

    def _watched(
        self,
        states: Generator[Run],
        writer: CheckpointWriter | None,
        seeds: Seeds | None,
        *,
        is_new: bool,
        max_generations: int,
        patience: int | None,
        end: float,
    ) -> tuple[Run, BaseException | None]:
        """Let a run go on until something ends it; return it, and what a callback raised.

        What raises elsewhere, such as a simulator that dies, loses no run that has a file.
        """
        config = self.problem.config
        latest: list[Run] = []

        def keep(run: Run) -> None:
            latest[:] = [run]
            if seeds is not None:
                run.front_only = run.parts[0].front_only = list(seeds.front_only)

        callbacks = [keep, self.progress.show, writer, *(config.callbacks or ())]
        try:
            run = watch(
                states,
                [callback for callback in callbacks if callback is not None],
                is_new=is_new,
                max_generations=max_generations,
                patience=patience,
                end=end,
            )
        except CallbackError as error:
            return error.run, error.__cause__
        except Exception:
            if writer is not None and latest:
                writer.write(latest[0])
            raise
        return run, None

    def _writer(
        self, choice: Choice, rows: Dataset, stage: int
    ) -> CheckpointWriter | None:
        """Return what writes the run to a file, if anything does."""
        checkpoint = checkpoint_of(self.problem.config)
        if checkpoint is None:
            return None
        settings = settings_of(self.parameters, choice, stage)
        return CheckpointWriter(checkpoint.path, rows, settings, checkpoint.every)

    def _generations(
        self,
        start: Start,
        rows: Dataset,
        islands: list[Run] | None,
        seeds: Seeds,
        max_generations: int,
        end: float,
        *,
        moves: bool,
    ) -> Generator[Run]:
        """Yield a run after each generation, or islands after each epoch, on these rows.

        `moves` says whether islands come from other rows.
        """
        problem = start.problem
        evolution = problem.evolution
        toolbox_of = partial(
            self.toolbox, start, rows, seeds=seeds, begins=islands is None
        )
        end_of_moves = half_way_to(problem.ends.trees)  # then trees are finished
        if evolution.islands.n > 1:
            toolboxes = [
                toolbox_of(seed=seed)
                for seed in island_seeds(start.choice.seed, evolution.islands.n)
            ]
            if moves:
                for run, toolbox in zip(islands or (), toolboxes, strict=True):
                    move_to_rows(run, rows, toolbox, end_of_moves)
            n_jobs = problem.config.n_jobs
            with island_executor(evolution.islands.executor, n_jobs) as executor:
                yield from epochs(
                    toolboxes, evolution, executor, islands, max_generations, end
                )
            return
        toolbox = toolbox_of(seed=start.choice.seed)
        with thread_map(problem.config.n_jobs, rows.X.shape) as toolbox.map:
            population: Any
            if islands is None:
                population = first_population(
                    toolbox, evolution.population_size, end, self.progress
                )
            else:
                (population,) = islands
                if moves:
                    move_to_rows(population, rows, toolbox, end_of_moves)
            yield from generations(
                population, toolbox, evolution.variation.crossover_probability, end=end
            )


def _patience(problem: Problem, choice: Choice) -> int | None:
    """Return the generations without a better tree, after which a run stops."""
    patience = problem.evolution.patience
    if patience is not None and not choice.is_evolved:
        return -(-patience // _FRONT_PATIENCE_DIVISOR)
    return patience


class RowSearch(Search):
    """A search by rows, whose penalties, and models of leaves, are chosen by trials."""

    def result(
        self,
        continues: Continuation | None = None,
        seed: int | None = None,
    ) -> Result:
        """Search, and return what was found."""
        start, run, rows, failure = self.evolved(continues, seed)
        problem = start.problem
        result = finish_run(problem, run, rows, start.choice, logistic=start.logistic)
        log_end(result.tree, math.fsum(self.progress.seconds.values()))
        if start.verdict.columns is not None:
            loss, unit = problem.told_loss
            result.front.choice = result.candidates = TreeChoice(
                loss=loss,
                n_leaves=result.tree.n_leaves,
                n_terms=result.tree.n_terms,
                menu=menu_of(result.front),
                _columns=in_unit(start.verdict.columns, unit),
            )
        return replace(result, seconds=self.progress.seconds, failure=failure)

    def choose(self, seed: int) -> Start:
        """Choose by trials on the first sample; Ctrl-C ends them."""
        problem = self.problem
        rows = samples_of(problem)[0]
        end = half_way_to(problem.ends.evolution)
        phase = self.progress.phase("choosing hyperparameters", unit="trial")
        with phase, interrupt_as_flag() as interrupted:
            trials, scored = self._trials(end, interrupted)
            is_judged = bool(trials) and problem.judges_evolution
            if is_judged and problem.config.max_generations > 0 and not interrupted():
                trials = with_evolution(problem, rows, trials, end)
            if not interrupted():
                trials = with_sizes(problem, rows, trials, end)
        penalties = penalties_of_rows(problem.config, rows)
        demands = problem.tries_score and problem.config.leaves == SCORE
        verdict = verdict_of(
            trials, penalties, kinds_of(problem), demands_score=demands
        )
        logistic = None
        if verdict.winner.kind == LOGISTIC:
            assert verdict.logistic is not None
            finisher = Finisher(problem, verdict.penalties)
            logistic = finisher.logistic(verdict.logistic)
            if logistic is None:  # it breaks a bound on all rows, or once it is rounded
                verdict = verdict_of(trials, penalties, (TREE,))._replace(logistic=None)
        if scored:
            verdict = with_score(verdict, trials, scored, penalties, demanded=demands)
        elif (
            demands and problem.scored is not None
        ):  # no trial in time, or none to make
            winner = verdict.winner._replace(is_scored=True)
            verdict = verdict._replace(winner=winner)
        winner = verdict.winner
        problem = problem.as_chosen(winner.has_score)
        if winner.kind == TREE and not is_judged:
            winner = winner._replace(kind=EVOLVED)
        choice = Choice(seed, verdict.penalties, winner, verdict.logistic)
        return Start(problem, choice, verdict, logistic)

    def _trials(
        self, end: float, interrupted: Callable[[], bool]
    ) -> tuple[Sequence[Trial], Sequence[Trial]]:
        """Return trials of folds, and those of trees on a score of targets unless these left.

        There are none after Ctrl-C.
        """
        trials: list[Trial] = []
        scored: list[Trial] = []
        for pair in trials_of_targets(self.problem, end):
            for kind, trial in zip((trials, scored), pair, strict=True):
                if trial is not None:
                    kind.append(trial)
            self.progress.step()
            if interrupted():
                return [], []
        return trials, scored if len(scored) >= len(trials) else []

    def rows_of(self, start: Start, dataset: Dataset) -> Dataset:
        """Return the rows with noisy copies, if there is noise, and the penalty of terms."""
        rows = with_noise(start.problem, dataset, own_streams()[1])
        return rows.penalized(start.choice.penalties.term)

    def seeds(self, start: Start, rows: Dataset) -> Seeds:
        """Return what the choice has found, and trees for the front alone.

        The first of these is what is returned if evolution adds nothing.
        """
        problem, penalties = start.problem, start.choice.penalties
        front_only = make_front_only(
            problem, rows, penalties, own_streams()[3], start.verdict.front_only
        )
        if not start.verdict.trees or WIDTHS not in problem.shares:
            return Seeds((), front_only)
        left = seconds_until(problem.ends.evolution, 0.5)
        best, made = trees_of(problem, rows, [penalties], left)
        trees = [
            repair(make_individual(rows, *tree.splits), rows, problem.constraints)
            for tree in (*best[0], *made, *start.verdict.trees)
        ]
        chosen = best_prunings(trees, rows, *penalties)[:1]
        for tree in (*chosen, *trees):
            tree.origin = WIDTHS
        return Seeds([*chosen, *trees], [*chosen, *front_only])

    def toolbox(
        self, start: Start, rows: Dataset, seed: int, seeds: Seeds, *, begins: bool
    ) -> base.Toolbox:
        """Return the toolbox of a population; only one that begins needs first trees."""
        return problem_toolbox(
            start.problem,
            rows,
            start.choice.penalties,
            seed,
            found=seeds.chosen,
            begins=begins,
        )
