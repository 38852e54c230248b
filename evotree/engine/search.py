"""The engine's one door: a problem and a configuration in, a result out.

Hyperparameters are chosen by cross-validation, first trees are made, and the population evolves, on
samples that grow where rows are many. A search can continue from a checkpoint or an earlier result.
The worth of a tree follows from rows, or is what a callable says (`evotree.engine.scored`): these
are two kinds of one `Search`, which say how populations are made and how a run ends.
"""

import logging
import math
import time
from collections.abc import Generator, Mapping, Sequence
from dataclasses import replace
from numbers import Integral
from typing import Any, NamedTuple

from deap import base

from evotree.configuration import check_parameters
from evotree.dataset import Dataset
from evotree.engine.choice import (
    EVOLVED,
    LINEAR,
    LOGISTIC,
    TREE,
    Choice,
    Found,
    Table,
    Trial,
    bent_trials,
    columns_of,
    found_by,
    penalties_of_rows,
    side_by_side,
    trials_of,
    with_evolution,
)
from evotree.engine.config import SearchConfig, checkpoint_of, is_auto
from evotree.engine.evolution import (
    CallbackError,
    Run,
    generations,
    interrupt_as_flag,
    watch,
)
from evotree.engine.finish import Finisher, Result, finish
from evotree.engine.islands import epochs, island_seeds
from evotree.engine.parallel import island_executor, thread_map
from evotree.engine.populations import (
    GrowingSample,
    Seeds,
    best_prunings,
    first_population,
    front_only_trees,
    move,
    own_streams,
    problem_toolbox,
    trees_of,
    with_noise,
)
from evotree.engine.problem import Problem, prepare
from evotree.engine.progress import Progress
from evotree.engine.state import (
    CheckpointWriter,
    Continuation,
    check_checkpoint,
    compared,
    load_checkpoint,
    read_choice,
    read_settings,
    settings_of,
    warn_of_a_fresh_start,
)
from evotree.inspection.choice import TreeChoice
from evotree.log import log_begin, log_end
from evotree.operators.constraints import repair
from evotree.operators.initialization.population import WIDTHS
from evotree.operators.structure.splice import make_individual
from evotree.rng import seed_from

log = logging.getLogger(__name__)

# a larger sample may follow
_SAMPLE_ENDS = {
    "max_generations",
    "patience",
    "time_limit",
}
_FRONT_PATIENCE = 4  # times less of it where what evolves is for the front alone


class State(NamedTuple):
    """Where a run stands: at which of its samples, and its islands; None before they begin."""

    stage: int = 0
    islands: list[Run] | None = None


class Evolved(NamedTuple):
    """What an evolution ends with."""

    run: Run
    rows: Dataset  # that the fitness was measured on
    failure: BaseException | None = (
        None  # what a callback raised, or the last write of the run
    )


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
    problem = prepare(dataset, config, begin)
    return RowSearch(problem, progress).result(continues=continues, seed=seed)


class Search:
    """One search: its choice, its evolution and its end, in this order."""

    problem: Problem
    choice: Choice
    progress: Progress

    def __init__(self, problem: Problem, progress: Progress | None = None) -> None:
        self.problem = problem
        self.progress = (
            Progress(problem.config.verbose) if progress is None else progress
        )
        self.found = Found()

    # ---- what differs between rows and scores ----------------------------------------------------

    @property
    def parameters(self) -> Mapping[str, str]:
        """What must be the same when a search continues, as text."""
        return compared(self.problem.config)

    def choose(self, seed: int) -> tuple[Choice, Found]:
        """Return what the run evolves by, and what was found on the way."""
        raise NotImplementedError

    def rows_of(self, dataset: Dataset) -> Dataset:
        """Return the rows that the fitness is measured on."""
        return dataset

    def seeds(self, rows: Dataset) -> Seeds:
        """Return what the first population has besides the trees that it makes itself."""
        return Seeds()

    def toolbox(
        self, rows: Dataset, seed: int, seeds: Seeds, *, begins: bool
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
        problem = self.problem
        checkpoint = checkpoint_of(problem.config)
        if checkpoint is not None:
            check_checkpoint(checkpoint, self.parameters)
        with interrupt_as_flag() as interrupted:
            log_begin(problem.dataset)
            before = self._earlier(continues)
            if before is None:
                seed = seed_from(problem.config.random_state) if seed is None else seed
                self.choice, self.found = self.choose(seed)
                state = State()
            else:
                self.choice, state = before
            size, term = self.choice.penalties
            shown = "chosen: %s, penalties %.3g for nodes and %.3g for terms, seed %d"
            log.info(shown, self.choice.winner.kind, size, term, self.choice.seed)
            with self.progress.phase(
                "evolving", total=problem.config.max_generations, unit="gen"
            ):
                evolved = self._evolve(state, begins=not interrupted())
            if interrupted():
                evolved.run.stop_reason = "interrupt"
        return evolved

    def _samples(self, problem: Problem | None = None) -> GrowingSample:
        """Return the rows that evolution sees one sample after the other."""
        dataset = (problem or self.problem).dataset
        return GrowingSample(
            dataset, self.problem.evolution.max_samples, own_streams()[2]
        )

    def _earlier(self, continues: Continuation | None) -> tuple[Choice, State] | None:
        """Return the run to continue, by a checkpoint or an earlier search, if any."""
        config = self.problem.config
        checkpoint = checkpoint_of(config)
        if checkpoint is not None and checkpoint.resume:
            path = checkpoint.path
            self.choice, stage = read_choice(read_settings(path), self.parameters, path)
            self._bend()
            samples = self._samples()
            stage = min(stage, len(samples) - 1)  # of other rows, which are refused
            runs = load_checkpoint(path, self.rows_of(samples[stage]))
            self._refuse_fewer_generations(runs, f"the run in {path}")
            return self.choice, State(stage, runs)
        if continues is None:
            return None
        given = self.problem
        self.choice = continues.choice
        self._bend()
        rows = self.rows_of(self.problem.dataset)
        if (continues.parameters, continues.data) == (
            self.parameters,
            rows.fingerprint,
        ):
            earlier = "the run that warm_start=True continues"
            self._refuse_fewer_generations(continues.islands, earlier)
            last = len(self._samples()) - 1
            return self.choice, State(last, continues.islands)
        warn_of_a_fresh_start(continues, config)
        self.problem = given
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

    def _bend(self) -> None:
        """Let columns bend if those of the run that is continued do."""
        if self.choice.winner.is_bent and self.problem.bent is not None:
            self.problem = self.problem.bent

    def _evolve(self, state: State, *, begins: bool) -> Evolved:
        """Evolve on samples that grow, each for fewer generations and the same share of the time.

        `begins` says whether a first population may have seeds: after Ctrl-C there is no time.
        """
        problem = self.problem
        config = problem.config
        samples = self._samples()
        stage, islands = state
        last = len(samples) - 1
        rows = self.rows_of(samples[stage])
        is_first = islands is None
        seeds = self.seeds(rows) if is_first and begins else Seeds()
        moves = False
        while True:
            writer = self._writer(rows, stage)
            now = time.perf_counter()
            end = now + (problem.ends.evolution - now) / (last - stage + 1)
            most = samples.generations(stage, config.max_generations)
            run, failure = self._watched(
                self._generations(rows, islands, seeds, most, end, moves=moves),
                writer,
                seeds if is_first else None,
                is_new=islands is None,
                max_generations=most,
                end=end,
            )
            islands = run.parts
            if stage == last or failure or run.stop_reason not in _SAMPLE_ENDS:
                break
            stage = stage + 1 if time.perf_counter() < problem.ends.evolution else last
            rows = self.rows_of(samples[stage])
            moves = True
        if writer is not None:
            try:
                writer.write(run)
            except OSError as error:
                failure = failure or error
        if stage < last:  # the run ends on all rows, whatever it has ended for
            reason = run.stop_reason
            rows = self.rows_of(samples[last])
            run = next(self._generations(rows, islands, seeds, 0, math.inf, moves=True))
            run.stop_reason = reason
        return Evolved(run, rows, failure)

    def _watched(
        self,
        states: Generator[Run],
        writer: CheckpointWriter | None,
        seeds: Seeds | None,
        *,
        is_new: bool,
        max_generations: int,
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
                patience=self._patience,
                end=end,
            )
        except CallbackError as error:
            return error.run, error.__cause__
        except Exception:
            if writer is not None and latest:
                writer.write(latest[0])
            raise
        return run, None

    @property
    def _patience(self) -> int | None:
        """Generations without a better tree, after which a run stops."""
        patience = self.problem.evolution.patience
        if patience is not None and not self.choice.is_evolved:
            return -(-patience // _FRONT_PATIENCE)
        return patience

    def _writer(self, rows: Dataset, stage: int) -> CheckpointWriter | None:
        """Return what writes the run to a file, if anything does."""
        checkpoint = checkpoint_of(self.problem.config)
        if checkpoint is None:
            return None
        settings = settings_of(self.parameters, self.choice, stage)
        return CheckpointWriter(checkpoint.path, rows, settings, checkpoint.every)

    def _generations(
        self,
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
        problem = self.problem
        evolution = problem.evolution
        n_islands = evolution.islands.n
        run_seeds = [self.choice.seed]
        if n_islands > 1:
            run_seeds = island_seeds(self.choice.seed, n_islands)
        toolboxes = [
            self.toolbox(rows, seed, seeds, begins=islands is None)
            for seed in run_seeds
        ]
        end_of_moves = problem.half_of_trees()  # then trees are finished
        if n_islands > 1:
            if moves:
                for run, toolbox in zip(islands or (), toolboxes, strict=True):
                    move(run, rows, toolbox, end_of_moves)
            with self.executor_of_islands() as executor:
                yield from epochs(
                    toolboxes, evolution, executor, islands, max_generations, end
                )
            return
        (toolbox,) = toolboxes
        with thread_map(problem.config.n_jobs, rows.X.shape) as toolbox.map:
            population: Any
            if islands is None:
                population = first_population(
                    toolbox, evolution.population_size, end, self.progress
                )
            else:
                (population,) = islands
                if moves:
                    move(population, rows, toolbox, end_of_moves)
            probability = evolution.variation.crossover_probability
            yield from generations(population, toolbox, probability, end=end)

    def executor_of_islands(self) -> Any:
        """Return a context of what islands evolve on: the user's executor, threads, or None."""
        islands = self.problem.evolution.islands
        return island_executor(islands.executor, self.problem.config.n_jobs)


class RowSearch(Search):
    """A search by rows, whose penalties, and models of leaves, are chosen by trials."""

    def result(
        self,
        continues: Continuation | None = None,
        seed: int | None = None,
    ) -> Result:
        """Search, and return what was found."""
        run, rows, failure = self.evolved(continues, seed)
        result = finish(self.problem, run, rows, self.choice)
        log_end(result.tree, math.fsum(self.progress.seconds.values()))
        columns = self.found.columns
        if columns is not None:
            result.front.choice = result.candidates = TreeChoice(
                loss=self.problem.loss_of_probabilities or "loss",
                n_leaves=result.tree.n_leaves,
                n_terms=result.tree.n_terms,
                _columns=columns,
            )
        return replace(
            result,
            seconds=self.progress.seconds,
            failure=failure,
        )

    def choose(self, seed: int) -> tuple[Choice, Found]:
        """Choose by trials on the first sample; Ctrl-C ends them."""
        problem = self.problem
        rows = self._samples()[0]
        seconds = problem.seconds_left(0.5)
        end = time.perf_counter() + (seconds or 0.0)
        trials: Sequence[Trial] = []
        plain = trials
        bent = None
        phase = self.progress.phase("choosing hyperparameters", unit="trial")
        with phase, interrupt_as_flag() as interrupted:
            for trial in trials_of(problem, rows, seconds):
                trials = [*trials, trial]
                self.progress.step()
                if interrupted():
                    trials = []
                    break
            kinds: tuple[str, ...] = (TREE, LOGISTIC)
            if problem.leaf_models is not None:
                kinds = (TREE, LINEAR) if is_auto(problem.config.leaves) else (LINEAR,)
            left = None if seconds is None else end - time.perf_counter()
            has_time = left is None or left > 0.0
            if trials and problem.bent is not None and has_time and not interrupted():
                bent_rows = self._samples(problem.bent)[0]
                bent = bent_trials(problem.bent, bent_rows, trials, kinds, left)
                if bent is not None:
                    self.problem = problem = problem.bent
                    plain, trials, rows = trials, bent, bent_rows
            evolves = problem.judges_evolution and problem.config.max_generations > 0
            if trials and evolves and not interrupted():
                left = None if seconds is None else end - time.perf_counter()
                trials = with_evolution(problem, rows, trials, left)
        penalties = penalties_of_rows(problem.config, rows)
        found = found_by(trials, penalties, kinds)
        if found.winner.kind == LOGISTIC and not self._keeps_bounds(found):
            found = found_by(trials, penalties, (TREE,))._replace(logistic=None)
        if bent is not None:
            both = [
                side_by_side(one, two) for one, two in zip(plain, trials, strict=True)
            ]
            winner = found.winner._replace(is_bent=True)
            columns = columns_of(both, Table.of(both), penalties, winner)
            found = found._replace(winner=winner, columns=columns)
        winner = found.winner
        if winner.kind == TREE and not (trials and problem.judges_evolution):
            winner = winner._replace(kind=EVOLVED)
        return Choice(seed, found.penalties, winner, found.logistic), found

    def _keeps_bounds(self, found: Found) -> bool:
        """Return whether the tree of logistic models keeps what trees have to, on all rows."""
        problem = self.problem
        if not problem.constraints and not isinstance(
            problem.config.precision, Integral
        ):
            return True
        finisher = Finisher(problem, Choice(0, found.penalties))
        assert found.winner.strength is not None
        return finisher.logistic(found.winner.strength) is not None

    def rows_of(self, dataset: Dataset) -> Dataset:
        """Return the rows with noisy copies, if there is noise, and the penalty of terms."""
        rows = with_noise(self.problem, dataset, own_streams()[1])
        return rows.penalized(self.choice.penalties.term)

    def seeds(self, rows: Dataset) -> Seeds:
        """Return what the choice has found, and trees for the front alone.

        The first of these is what is returned if evolution adds nothing.
        """
        problem = self.problem
        penalties = self.choice.penalties
        front_only = front_only_trees(
            problem, rows, penalties, own_streams()[3], self.found.front_only
        )
        if not self.found.trees or WIDTHS not in problem.shares:
            return Seeds((), front_only)
        best, made = trees_of(problem, rows, [penalties], problem.seconds_left(0.5))
        trees = [
            repair(make_individual(rows, *tree.splits), rows, problem.constraints)
            for tree in (*best[0], *made, *self.found.trees)
        ]
        chosen = best_prunings(trees, rows, *penalties)[:1]
        for tree in (*chosen, *trees):
            tree.origin = WIDTHS
        return Seeds([*chosen, *trees], [*chosen, *front_only])

    def toolbox(
        self, rows: Dataset, seed: int, seeds: Seeds, *, begins: bool
    ) -> base.Toolbox:
        """Return the toolbox of a population; only one that begins needs first trees."""
        return problem_toolbox(
            self.problem,
            rows,
            self.choice.penalties,
            seed,
            found=seeds.chosen,
            begins=begins,
        )
