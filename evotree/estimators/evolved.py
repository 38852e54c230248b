"""Estimators whose tree is evolved: translation only."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Iterable, Mapping
from concurrent.futures import Executor
from contextlib import nullcontext
from copy import copy, deepcopy
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils._param_validation import HasMethods, Interval, RealNotInt, StrOptions
from sklearn.utils.validation import check_is_fitted, validate_data

from evotree.dataset import SCALINGS, Dataset
from evotree.engine.checkpoint import CheckpointWriter, fingerprint
from evotree.engine.evolution import Callback, CallbackError, Evolution
from evotree.engine.interrupt import interrupt_as_flag
from evotree.engine.islands import TOPOLOGIES, Archipelago
from evotree.engine.pareto import ParetoFront, select
from evotree.engine.running import progress_bar
from evotree.engine.toolbox import ALGORITHMS
from evotree.estimators.base import TreeEstimator, preset
from evotree.estimators.choosing import ChoosesSettings
from evotree.estimators.continuing import (
    Beginning,
    Continuation,
    Told,
    compared,
    describe,
)
from evotree.estimators.presets import EVOLUTION_PRESETS
from evotree.estimators.teachers import ENSEMBLE
from evotree.files import PathLike, check_writable
from evotree.individual import Individual
from evotree.operators.pruning.penalized import prune
from evotree.operators.refinement.policy import Refinement
from evotree.operators.splitters.linear_fit import PENALTIES
from evotree.operators.structure.splice import make_individual
from evotree.tree import ObliqueTree

_ENDS_OF_SAMPLES = {"max_generations", "patience", "time_limit"}  # a larger one may follow


class EvolvedTree(ChoosesSettings, TreeEstimator):
    """An estimator whose tree is found by evolving a population of whole trees."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "size_penalty": [Interval(Real, 0.0, None, closed="left"), StrOptions({"auto"})],
        "population_size": [Interval(Integral, 2, None, closed="left")],
        "max_generations": [Interval(Integral, 0, None, closed="left")],
        "patience": [Interval(Integral, 1, None, closed="left"), None],
        "time_limit": [Interval(Real, 0.0, None, closed="neither"), None],
        "mutation_probability": [Interval(Real, 0.0, 1.0, closed="both")],
        "crossover_probability": [Interval(Real, 0.0, 1.0, closed="both")],
        "dipolar_probability": [Interval(Real, 0.0, 1.0, closed="both")],
        "min_samples_split": [Interval(Integral, 2, None, closed="left")],
        "scaling": [StrOptions(set(SCALINGS))],
        "seeding": ["array-like", dict, str, None],
        "initial_trees": ["array-like", None],
        "refinement": [str, "array-like", dict, Refinement, None],
        "weight_penalty": [Interval(Real, 0.0, None, closed="left")],
        "C": [Interval(Real, 0.0, None, closed="neither"), tuple, StrOptions({"auto"})],
        "penalty": [StrOptions({"auto", *PENALTIES})],
        "noise": [Interval(Real, 0.0, None, closed="left"), StrOptions({"auto"})],
        "teacher": [HasMethods(["fit", "predict"]), StrOptions({"auto", ENSEMBLE}), None],
        "max_origin_share": [Interval(Real, 0.0, 1.0, closed="right")],
        "keep_duplicates": ["boolean"],
        "algorithm": [StrOptions(set(ALGORITHMS))],
        "max_samples": [
            None,
            Interval(RealNotInt, 0.0, 1.0, closed="right"),
            Interval(Integral, 1, None, closed="left"),
        ],
        "n_islands": [Interval(Integral, 1, None, closed="left")],
        "migration_interval": [Interval(Integral, 1, None, closed="left")],
        "migration_size": [Interval(Integral, 0, None, closed="left")],
        "topology": [StrOptions(set(TOPOLOGIES))],
        "checkpoint": [str, os.PathLike, None],
        "checkpoint_every": [Interval(Integral, 1, None, closed="left")],
        "resume_from": [str, os.PathLike, None],
        "warm_start": ["boolean"],
        "keep_on_interrupt": ["boolean"],
        "random_state": ["random_state", np.random.Generator],
        "n_jobs": [Integral, None],
        "executor": [HasMethods(["submit"]), None],
        "verbose": ["verbose"],
        "callbacks": ["array-like", None],
    }

    dataset_: Dataset

    def __init__(
        self,
        *,
        size_penalty: float | str = "auto",
        population_size: int = 64,
        max_generations: int = 50,
        patience: int | None = 20,
        time_limit: float | None = None,
        mutation_probability: float = 0.1,
        crossover_probability: float = 0.2,
        dipolar_probability: float = 0.5,
        min_samples_split: int = 5,
        scaling: str = "standard",
        seeding: str | Mapping[str, float] | Iterable[str] | None = "tao",
        initial_trees: Iterable[Any] | None = None,
        refinement: Any = "tao",
        weight_penalty: float = 0.0,
        C: float | tuple[float, float] | str = "auto",
        penalty: str = "auto",
        noise: float | str = "auto",
        teacher: Any = "auto",
        max_origin_share: float = 1.0,
        keep_duplicates: bool = False,
        algorithm: str = "penalized",
        max_samples: float | None = None,
        n_islands: int = 1,
        migration_interval: int = 10,
        migration_size: int = 2,
        topology: str = "ring",
        checkpoint: PathLike | None = None,
        checkpoint_every: int = 10,
        resume_from: PathLike | None = None,
        warm_start: bool = False,
        keep_on_interrupt: bool = False,
        random_state: Any = None,
        n_jobs: int | None = None,
        executor: Executor | None = None,
        verbose: int = 0,
        callbacks: Iterable[Callback] | None = None,
    ) -> None:
        self.size_penalty = size_penalty
        self.population_size = population_size
        self.max_generations = max_generations
        self.patience = patience
        self.time_limit = time_limit
        self.mutation_probability = mutation_probability
        self.crossover_probability = crossover_probability
        self.dipolar_probability = dipolar_probability
        self.min_samples_split = min_samples_split
        self.scaling = scaling
        self.seeding = seeding
        self.initial_trees = initial_trees
        self.refinement = refinement
        self.weight_penalty = weight_penalty
        self.C = C
        self.penalty = penalty
        self.noise = noise
        self.teacher = teacher
        self.max_origin_share = max_origin_share
        self.keep_duplicates = keep_duplicates
        self.algorithm = algorithm
        self.max_samples = max_samples
        self.n_islands = n_islands
        self.migration_interval = migration_interval
        self.migration_size = migration_size
        self.topology = topology
        self.checkpoint = checkpoint
        self.checkpoint_every = checkpoint_every
        self.resume_from = resume_from
        self.warm_start = warm_start
        self.keep_on_interrupt = keep_on_interrupt
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.executor = executor
        self.verbose = verbose
        self.callbacks = callbacks

    @classmethod
    def from_preset(cls, name: str, **parameters: Any) -> Self:
        """Make an estimator with the setting of a published algorithm.

        Parameters
        ----------
        name : str
            A key of `evotree.estimators.EVOLUTION_PRESETS`: ``"gea_odt"``.
        **parameters
            Parameters that differ from the preset.

        Returns
        -------
        estimator
            Not fitted.

        Raises
        ------
        ValueError
            If there is no such preset.
        """
        return cls(**{**preset(EVOLUTION_PRESETS, name), **parameters})

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Evolve a tree.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Training rows, finite.
        y : array-like of shape (n_samples,)
            Class labels, or targets.
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the rows; a row of weight 2 counts as two rows.

        Returns
        -------
        estimator
            The fitted estimator.

        Raises
        ------
        ValueError
            If a parameter or the data are not as described; the message names what is wrong.
        """
        self._validate_params()
        if self.checkpoint is not None:
            check_writable(self.checkpoint)  # before the settings are chosen, which takes long
        self.dataset_ = dataset = self._make_dataset(X, y, sample_weight, self.scaling)
        begin, interrupted = time.perf_counter(), False
        try:
            begun = self._begin(dataset)
        except KeyboardInterrupt:
            if not self.keep_on_interrupt:
                raise
            begun, interrupted = self._begin_at_once(dataset), True
        self.setting_, self.size_penalty_ = begun.told.setting, begun.told.size_penalty
        n_generations = 0 if interrupted else self.max_generations
        # Between two samples, too, Ctrl-C ends a fit that is to be kept in order.
        kept = interrupt_as_flag() if self.keep_on_interrupt else nullcontext()
        with kept, progress_bar(n_generations, disable=not self.verbose) as show:
            run, rows, failure = self._evolve_growing(begun, n_generations, begin, show)
        self._keep(run, rows, begun.told)
        if interrupted:
            self.stop_reason_ = "interrupt"
        if failure is not None:
            failure.add_note(
                f"The evolution ended in generation {run.generation}; the estimator is fitted with "
                "the best tree until then."
            )
            raise failure
        return self

    def _evolve_growing(
        self, begun: Beginning, n_generations: int, begin: float, show: Callback
    ) -> tuple[Evolution, Dataset, BaseException | None]:
        """Evolve on samples that grow, each for a share of the generations and of the time.

        Returns the run on all rows, these as the fitness sees them, and what a callback raised.
        """
        told, sample, at, islands = begun
        last = len(sample) - 1
        failure = None
        end = math.inf if self.time_limit is None else begin + self.time_limit
        while True:
            rows = self._resample(sample[at], told)
            writers: tuple[CheckpointWriter, ...] = ()
            if self.checkpoint is not None:
                described = describe(self, told, at)
                writers = (
                    CheckpointWriter(self.checkpoint, rows, described, self.checkpoint_every),
                )
            seconds = None
            if self.time_limit is not None:
                seconds = (end - time.perf_counter()) / (last - at + 1)
                seconds += max((island.seconds for island in islands or ()), default=0.0)
            try:
                run = self._evolve(
                    rows,
                    *told[1:],
                    told.seed,
                    n_islands=self.n_islands,
                    islands=islands,
                    max_generations=n_generations * (at + 1) // (last + 1),
                    time_limit=seconds,
                    callbacks=(show, *writers, *(self.callbacks or ())),
                    keep_on_interrupt=self.keep_on_interrupt,
                )
            except CallbackError as error:
                run, failure = error.run, error.__cause__
            islands = run.islands if isinstance(run, Archipelago) else [run]
            if at == last or run.stop_reason not in _ENDS_OF_SAMPLES:
                break
            at = at + 1 if time.perf_counter() < end else last
        for writer in writers:
            writer.write(run)
        if at < last:
            reason, rows = run.stop_reason, self._resample(sample[last], told)
            run = self._evolve(
                rows,
                *told[1:],
                told.seed,
                n_islands=self.n_islands,
                islands=islands,
                max_generations=0,
            )
            run.stop_reason = reason
        return run, rows, failure

    def _keep(self, run: Evolution, rows: Dataset, told: Told) -> None:
        """Set the fitted attributes."""
        if self.warm_start:
            islands = run.islands if isinstance(run, Archipelago) else [run]
            self._last = Continuation(told, compared(self), fingerprint(rows), islands)
        self.pareto_front_ = deepcopy(run.pareto_front)
        self.pareto_front_.add_prunings(rows)
        best = run.best
        if self.algorithm == "nsga2":
            best = self._select(self.pareto_front_, "fitness")
        self.tree_ = self._finish(best)
        self.history_ = run.logbook
        self.hall_of_fame_ = run.hall_of_fame
        self.n_generations_ = run.generation
        self.stop_reason_ = run.stop_reason

    def select_tree(self, rule: str, X: Any = None, y: Any = None) -> Self:
        """Choose another tree of the Pareto front; it becomes `tree_`.

        Parameters
        ----------
        rule : str
            ``"validation"``: the best on rows held out; ``"1se"``: the smallest within one standard
            error of that; ``"size<=9"``, ``"leaves<=5"``: the best of at most so many nodes or
            leaves; ``"fitness"``: the best after the charges for nodes and for weights,
            `size_penalty_` and `weight_penalty`.
        X : array-like of shape (n_samples, n_features), optional
            Rows held out, which `fit` has not seen; needed by the first two rules.
        y : array-like of shape (n_samples,), optional
            Their labels or targets.

        Returns
        -------
        estimator
            The same, with another `tree_`.

        Raises
        ------
        ValueError
            If there is no such rule, or it lacks rows.
        """
        check_is_fitted(self)
        held_out = None
        if X is not None:
            X, y = validate_data(self, X, y, dtype=np.float64, reset=False)
            held_out = self.dataset_.like(X, y)
        self.tree_ = self._finish(self._select(self.pareto_front_, rule, held_out))
        return self

    def _select(self, front: ParetoFront, rule: str, held_out: Dataset | None = None) -> Individual:
        """Return the member of a front that a rule chooses, at the charges of this estimator."""
        return select(
            front,
            rule,
            held_out=held_out,
            size_penalty=self.size_penalty_,
            weight_penalty=self.weight_penalty,
        )

    def _finish(self, best: Individual) -> ObliqueTree:
        """Return a tree over raw features whose leaves predict by the training rows alone."""
        tree = best.weights, best.thresholds, best.subtree_size
        individual = prune(make_individual(self.dataset_, *tree), self.dataset_, 0.0)[0]
        return self.dataset_.to_raw(individual.to_tree())

    def __sklearn_clone__(self) -> Self:
        """Return a copy that is not fitted; the executor and the callbacks are the same ones."""
        bare = copy(self)
        bare.executor = bare.callbacks = None
        twin: Self = super(EvolvedTree, bare).__sklearn_clone__()
        return twin.set_params(executor=self.executor, callbacks=self.callbacks)

    def __getstate__(self) -> dict[str, Any]:
        """Return what is pickled: an executor stays where it is."""
        return {**super().__getstate__(), "executor": None}
