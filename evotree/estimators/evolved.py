"""Estimators whose tree is evolved: translation only."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.validation import check_is_fitted, validate_data

from evotree.dataset import SCALINGS, Dataset
from evotree.estimators.base import TreeEstimator, preset
from evotree.estimators.presets import EVOLUTION_PRESETS
from evotree.estimators.running import counting_bar, mapping_threads, progress_bar, thread_map
from evotree.estimators.settings import Setting, candidate_settings, resample
from evotree.estimators.teachers import ENSEMBLE
from evotree.evolution import Callback, Evolution, evolve
from evotree.individual import Individual
from evotree.operators.linear_fit import PENALTIES
from evotree.operators.pruning import prune
from evotree.operators.refinement import Refinement, as_refinement
from evotree.operators.seeding import TAO, seeding_shares
from evotree.operators.splice import make_individual
from evotree.operators.tao_seeds import init_tao
from evotree.pareto import ParetoFront, select
from evotree.rng import make_streams, seed_from
from evotree.toolbox import ALGORITHMS, make_toolbox
from evotree.tree import ObliqueTree
from evotree.tuning import SIZE_PENALTIES, best_prunings, choose_settings

_OWN_STREAMS = 2**62  # the number of a generation that no run reaches
_HELD_OUT_ROWS = 1500  # so many rows are held out, if that takes no more than five folds
_FOLDS = 5
_STANDARD_ERRORS = 1.0
_SEEDS_EACH = 2  # for each charge for a node that is tried
_GENERATIONS_SHARE = 3  # an evolution on a part of the rows has so many times fewer generations


def _is_auto(value: Any) -> bool:
    return isinstance(value, str) and value == "auto"


class EvolvedTree(TreeEstimator):
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
        "keep_on_interrupt": ["boolean"],
        "random_state": ["random_state", np.random.Generator],
        "n_jobs": [Integral, None],
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
        keep_on_interrupt: bool = False,
        random_state: Any = None,
        n_jobs: int | None = None,
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
        self.keep_on_interrupt = keep_on_interrupt
        self.random_state = random_state
        self.n_jobs = n_jobs
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
        self.dataset_ = dataset = self._make_dataset(X, y, sample_weight, self.scaling)
        seed = seed_from(self.random_state)
        choosing, resampling = make_streams(seed, _OWN_STREAMS, 2)
        begin, interrupted = time.perf_counter(), False
        n_rows = dataset.X.shape[0]
        setting, self.size_penalty_ = self._settings(n_rows)[0], self._size_penalties()[0]
        try:
            setting, self.size_penalty_ = self._choose(dataset, seed, choosing, resampling.copy())
        except KeyboardInterrupt:
            if not self.keep_on_interrupt:
                raise
            interrupted = True
        self.setting_ = setting
        rows = resample(dataset, setting, resampling)
        time_left = None
        if self.time_limit is not None:
            time_left = self.time_limit - (time.perf_counter() - begin)
        n_generations = 0 if interrupted else self.max_generations
        with progress_bar(n_generations, disable=not self.verbose) as show:
            run = self._evolve(
                rows,
                setting,
                self.size_penalty_,
                seed,
                max_generations=n_generations,
                time_limit=time_left,
                callbacks=(show, *(self.callbacks or ())),
                keep_on_interrupt=self.keep_on_interrupt,
            )
        run.pareto_front.add_prunings(rows)
        best = run.best
        if self.algorithm == "nsga2":
            best = self._select(run.pareto_front, "fitness")
        self.tree_ = self._finish(best)
        self.history_ = run.logbook
        self.hall_of_fame_ = run.hall_of_fame
        self.pareto_front_ = run.pareto_front
        self.n_generations_ = run.generation
        self.stop_reason_ = "interrupt" if interrupted else run.stop_reason
        return self

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

    def _settings(self, n_rows: int) -> list[Setting]:
        """Return the settings among which cross-validation chooses."""
        given = {name: getattr(self, name) for name in Setting._fields}
        given = {name: value for name, value in given.items() if not _is_auto(value)}
        if self.refinement is None:  # nothing is fitted that they could regularize
            given = {"C": 1.0, "penalty": "l2"} | given
        return candidate_settings(given, n_rows)

    def _size_penalties(self) -> tuple[float, ...]:
        """Return the charges for a node among which cross-validation chooses, falling."""
        return SIZE_PENALTIES if self.size_penalty == "auto" else (float(self.size_penalty),)

    def _choose(
        self, dataset: Dataset, seed: int, choosing: np.ndarray, resampling: np.ndarray
    ) -> tuple[Setting, float]:
        """Return the setting and the charge for a node."""
        n_rows = dataset.X.shape[0]
        n_folds = min(_FOLDS, max(1, round(_HELD_OUT_ROWS * _FOLDS / n_rows)))
        settings = self._settings(n_rows)
        half = each = None
        if self.time_limit is not None:
            half = 0.5 * self.time_limit
            each = half / (n_folds * len(settings))

        def search(
            rows: Dataset, setting: Setting, size_penalties: Sequence[float]
        ) -> list[list[Individual]]:
            resampled = resample(rows, setting, resampling.copy())
            trees = self._make_candidates(resampled, setting, size_penalties, seed, each)
            count()
            return [
                best_prunings(trees, resampled, charge, self.weight_penalty)
                for charge in size_penalties
            ]

        with counting_bar("settings tried", disable=not self.verbose) as count:
            return choose_settings(
                dataset,
                search,
                settings,
                choosing,
                size_penalties=self._size_penalties(),
                n_folds=_FOLDS,
                max_folds=n_folds,
                standard_errors=_STANDARD_ERRORS,
                time_limit=half,
            )

    def _make_candidates(
        self,
        dataset: Dataset,
        setting: Setting,
        size_penalties: Sequence[float],
        seed: int,
        time_limit: float | None,
    ) -> list[Individual]:
        """Return trees that show what a setting is worth, at all charges for a node.

        Where an evolution starts from optimized trees, these say it, at a fraction of its cost.
        """
        if TAO not in seeding_shares(self.seeding):
            n_generations = -(-self.max_generations // _GENERATIONS_SHARE)
            limits = {"max_generations": n_generations, "time_limit": time_limit}
            return self._evolve(dataset, setting, size_penalties[-1], seed, **limits).population
        charges = [charge for charge in size_penalties for _ in range(_SEEDS_EACH)]
        C, min_rows = Refinement(C=setting.C).bounds(), self.min_samples_split

        def make(charge: float, stream: np.ndarray) -> Individual:
            return init_tao(dataset, charge, stream, C, setting.penalty, min_rows=min_rows)

        with thread_map(self.n_jobs, dataset.X.shape[0]) as mapper:
            return list(mapper(make, charges, make_streams(seed, 0, len(charges))))

    def _finish(self, best: Individual) -> ObliqueTree:
        """Return a tree over raw features whose leaves predict by the training rows alone."""
        tree = best.weights, best.thresholds, best.subtree_size
        individual = prune(make_individual(self.dataset_, *tree), self.dataset_, 0.0)[0]
        return self.dataset_.to_raw(individual.to_tree())

    def _evolve(
        self, dataset: Dataset, setting: Setting, size_penalty: float, seed: int, **limits: Any
    ) -> Evolution:
        refinement = as_refinement(self.refinement)
        if refinement is not None:
            refinement = replace(refinement, C=setting.C, penalty=setting.penalty)
        toolbox = make_toolbox(
            dataset,
            size_penalty=size_penalty,
            weight_penalty=self.weight_penalty,
            mutation_probability=self.mutation_probability,
            dipolar_probability=self.dipolar_probability,
            min_rows=self.min_samples_split,
            seeding=self.seeding,
            initial_trees=self.initial_trees or (),
            refinement=refinement,
            max_origin_share=self.max_origin_share,
            keep_duplicates=self.keep_duplicates,
            algorithm=self.algorithm,
            random_state=seed,
        )
        with mapping_threads(toolbox, self.n_jobs, dataset.X.shape[0]):
            return evolve(
                toolbox.population(n=self.population_size),
                toolbox,
                crossover_probability=self.crossover_probability,
                patience=self.patience,
                **limits,
            )
