"""Estimators whose tree is evolved: translation only."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from evotree.dataset import SCALINGS, Dataset
from evotree.estimators.base import TreeClassifier, TreeEstimator, TreeRegressor, preset
from evotree.estimators.presets import EVOLUTION_PRESETS
from evotree.estimators.running import mapping_threads, progress_bar
from evotree.evolution import Callback, Evolution, evolve
from evotree.toolbox import make_toolbox


class EvolvedTree(TreeEstimator):
    """An estimator whose tree is found by evolving a population of whole trees."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "size_penalty": [Interval(Real, 0.0, None, closed="left")],
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
        size_penalty: float = 0.005,
        population_size: int = 64,
        max_generations: int = 5000,
        patience: int | None = 500,
        time_limit: float | None = None,
        mutation_probability: float = 0.1,
        crossover_probability: float = 0.2,
        dipolar_probability: float = 0.5,
        min_samples_split: int = 5,
        scaling: str = "standard",
        seeding: str | Mapping[str, float] | Iterable[str] | None = None,
        initial_trees: Iterable[Any] | None = None,
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
        self.dataset_ = self._make_dataset(X, y, sample_weight, self.scaling)
        run = self._evolve(self.dataset_)
        self.tree_ = self.dataset_.to_raw(run.best.to_tree())
        self.history_ = run.logbook
        self.hall_of_fame_ = run.hall_of_fame
        self.n_generations_ = run.generation
        self.stop_reason_ = run.stop_reason
        return self

    def _evolve(self, dataset: Dataset) -> Evolution:
        toolbox = make_toolbox(
            dataset,
            size_penalty=self.size_penalty,
            mutation_probability=self.mutation_probability,
            dipolar_probability=self.dipolar_probability,
            min_rows=self.min_samples_split,
            seeding=self.seeding,
            initial_trees=self.initial_trees or (),
            random_state=self.random_state,
        )
        with (
            mapping_threads(toolbox, self.n_jobs, dataset.X.shape[0]),
            progress_bar(self.max_generations, disable=not self.verbose) as show,
        ):
            return evolve(
                toolbox.population(n=self.population_size),
                toolbox,
                crossover_probability=self.crossover_probability,
                max_generations=self.max_generations,
                patience=self.patience,
                time_limit=self.time_limit,
                callbacks=(show, *(self.callbacks or ())),
                keep_on_interrupt=self.keep_on_interrupt,
            )


class EvoTreeClassifier(TreeClassifier, EvolvedTree):
    """A classifier that is one small oblique tree, found by evolving a population of whole trees.

    Parameters
    ----------
    size_penalty : float, at least 0, default=0.005
        What one node costs, as a share of the training weight: the papers' alpha. Smaller values
        give larger trees.
    population_size : int, at least 2, default=64
        Number of trees that evolve.
    max_generations : int, at least 0, default=5000
        The evolution stops after so many generations.
    patience : int or None, default=500
        It stops after so many generations without a better tree.
    time_limit : float or None, default=None
        It stops at the end of the generation in which so many seconds have passed.
    mutation_probability : float in [0, 1], default=0.1
        Chance that a node of an offspring mutates.
    crossover_probability : float in [0, 1], default=0.2
        Chance that two offspring exchange parts.
    dipolar_probability : float in [0, 1], default=0.5
        Share of the changes of a test that the dipolar operator makes; the others add noise.
    min_samples_split : int, at least 2, default=5
        A leaf with fewer distinct rows is not split.
    scaling : {"standard", "common", "minmax"}, default="standard"
        Whether trees evolve over features in units of their standard deviations, in their own
        units, or scaled to [-1, 1]. A fitted tree is over raw features in every case.
    seeding : str, list of str, dict of str to float or None, default=None
        Which splitters grow a part of the first population greedily, by name: ``("wodt", "oc1")``
        grows a tenth of it by each, ``{"dipole": 0.8, "wodt": 0.2}`` gives the shares. The rest
        is random, ``"dipole"``.
    initial_trees : list or None, default=None
        Trees over raw features that join the first population: `ObliqueTree`, fitted estimators of
        this package or scikit-learn's fitted decision trees.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes, as scikit-learn means them.
    keep_on_interrupt : bool, default=False
        Whether Ctrl-C ends `fit` with the best tree so far, instead of raising KeyboardInterrupt;
        either way at the end of the present generation.
    random_state : int, RandomState, Generator or None, default=None
        Source of all random draws. The same number gives the same tree for any `n_jobs`.
    n_jobs : int or None, default=None
        Number of threads that breed offspring, used where rows are many; -1 means all cores.
    verbose : int, default=0
        Above 0, a progress bar is shown.
    callbacks : list of callable or None, default=None
        Each is called with the `evotree.Evolution` after every generation; one that returns True
        stops the evolution.

    Attributes
    ----------
    tree_ : ObliqueTree
        The tree, over features in their own units; its values are class shares.
    classes_ : ndarray of shape (n_classes,)
        Class labels.
    n_features_in_ : int
        Number of features seen during `fit`.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, where `X` had names.
    history_ : deap.tools.Logbook
        One record a generation: evaluations, diversity, seconds, and in its chapters best, mean
        and std of fitness, quality and size, and in ``origin`` which share of the population
        descends from which splitter. `evotree.to_frame` makes a table of it.
    hall_of_fame_ : deap.tools.HallOfFame
        The ten fittest individuals that ever lived, over standardized features.
    dataset_ : Dataset
        The training rows as the evolution saw them; ``dataset_.to_raw(individual)`` maps a member
        of the hall of fame to features in their own units.
    n_generations_ : int
        How many generations were bred.
    stop_reason_ : str
        Which rule ended the evolution.

    References
    ----------
    Krętowski M., Grześ M. (2005). Global induction of oblique decision trees: an evolutionary
    approach. Intelligent Information Processing and Web Mining, 309-318.

    Examples
    --------
    >>> from evotree import EvoTreeClassifier
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> tree = EvoTreeClassifier(random_state=0).fit(X, y)
    >>> tree.tree_.n_leaves
    3
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **EvolvedTree._parameter_constraints,
        "class_weight": [dict, StrOptions({"balanced"}), None],
    }

    def __init__(
        self,
        *,
        size_penalty: float = 0.005,
        population_size: int = 64,
        max_generations: int = 5000,
        patience: int | None = 500,
        time_limit: float | None = None,
        mutation_probability: float = 0.1,
        crossover_probability: float = 0.2,
        dipolar_probability: float = 0.5,
        min_samples_split: int = 5,
        scaling: str = "standard",
        seeding: str | Mapping[str, float] | Iterable[str] | None = None,
        initial_trees: Iterable[Any] | None = None,
        class_weight: Mapping[Any, float] | str | None = None,
        keep_on_interrupt: bool = False,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        callbacks: Iterable[Callback] | None = None,
    ) -> None:
        super().__init__(
            size_penalty=size_penalty,
            population_size=population_size,
            max_generations=max_generations,
            patience=patience,
            time_limit=time_limit,
            mutation_probability=mutation_probability,
            crossover_probability=crossover_probability,
            dipolar_probability=dipolar_probability,
            min_samples_split=min_samples_split,
            scaling=scaling,
            seeding=seeding,
            initial_trees=initial_trees,
            keep_on_interrupt=keep_on_interrupt,
            random_state=random_state,
            n_jobs=n_jobs,
            verbose=verbose,
            callbacks=callbacks,
        )
        self.class_weight = class_weight


class EvoTreeRegressor(TreeRegressor, EvolvedTree):
    """A regressor that is one small oblique tree, found by evolving a population of whole trees.

    The fitness of a tree is the share of the targets' variance that the means of its leaves
    explain, 1 less the relative squared error, less `size_penalty` for each node. A dipole is mixed
    where its targets differ by more than those of two rows drawn from the same node.

    Parameters
    ----------
    size_penalty : float, at least 0, default=0.005
        What one node costs, as a share of the training weight: the papers' alpha. Smaller values
        give larger trees.
    population_size : int, at least 2, default=64
        Number of trees that evolve.
    max_generations : int, at least 0, default=5000
        The evolution stops after so many generations.
    patience : int or None, default=500
        It stops after so many generations without a better tree.
    time_limit : float or None, default=None
        It stops at the end of the generation in which so many seconds have passed.
    mutation_probability : float in [0, 1], default=0.1
        Chance that a node of an offspring mutates.
    crossover_probability : float in [0, 1], default=0.2
        Chance that two offspring exchange parts.
    dipolar_probability : float in [0, 1], default=0.5
        Share of the changes of a test that the dipolar operator makes; the others add noise.
    min_samples_split : int, at least 2, default=5
        A leaf with fewer distinct rows is not split.
    scaling : {"standard", "common", "minmax"}, default="standard"
        Whether trees evolve over features in units of their standard deviations, in their own
        units, or scaled to [-1, 1]. A fitted tree is over raw features in every case.
    seeding : str, list of str, dict of str to float or None, default=None
        Which splitters grow a part of the first population greedily, by name: ``("wodt", "oc1")``
        grows a tenth of it by each, ``{"dipole": 0.8, "wodt": 0.2}`` gives the shares. The rest
        is random, ``"dipole"``.
    initial_trees : list or None, default=None
        Trees over raw features that join the first population: `ObliqueTree`, fitted estimators of
        this package or scikit-learn's fitted decision trees.
    keep_on_interrupt : bool, default=False
        Whether Ctrl-C ends `fit` with the best tree so far, instead of raising KeyboardInterrupt;
        either way at the end of the present generation.
    random_state : int, RandomState, Generator or None, default=None
        Source of all random draws. The same number gives the same tree for any `n_jobs`.
    n_jobs : int or None, default=None
        Number of threads that breed offspring, used where rows are many; -1 means all cores.
    verbose : int, default=0
        Above 0, a progress bar is shown.
    callbacks : list of callable or None, default=None
        Each is called with the `evotree.Evolution` after every generation; one that returns True
        stops the evolution.

    Attributes
    ----------
    tree_ : ObliqueTree
        The tree, over features in their own units; its values are mean targets.
    n_features_in_ : int
        Number of features seen during `fit`.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, where `X` had names.
    history_ : deap.tools.Logbook
        One record a generation: evaluations, diversity, seconds, and in its chapters best, mean
        and std of fitness, quality and size, and in ``origin`` which share of the population
        descends from which splitter. `evotree.to_frame` makes a table of it.
    hall_of_fame_ : deap.tools.HallOfFame
        The ten fittest individuals that ever lived, over standardized features.
    dataset_ : Dataset
        The training rows as the evolution saw them; ``dataset_.to_raw(individual)`` maps a member
        of the hall of fame to features in their own units.
    n_generations_ : int
        How many generations were bred.
    stop_reason_ : str
        Which rule ended the evolution.

    References
    ----------
    Krętowski M., Grześ M. (2005). Global induction of oblique decision trees: an evolutionary
    approach. Intelligent Information Processing and Web Mining, 309-318.

    Examples
    --------
    >>> from evotree import EvoTreeRegressor
    >>> from sklearn.datasets import load_diabetes
    >>> X, y = load_diabetes(return_X_y=True)
    >>> tree = EvoTreeRegressor(max_generations=200, random_state=0).fit(X, y)
    >>> tree.predict(X).shape
    (442,)
    """
