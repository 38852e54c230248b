"""The scikit-learn face of the engine: translation only."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from deap import base
from joblib import effective_n_jobs
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import compute_sample_weight
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data
from tqdm import tqdm

from evotree.dataset import Dataset
from evotree.evolution import Callback, Evolution, evolve
from evotree.toolbox import make_toolbox

PRESETS: Mapping[str, Mapping[str, Any]] = {
    "gea_odt": {
        "size_penalty": 0.005,
        "population_size": 64,
        "max_generations": 10_000,
        "patience": 1_000,
        "mutation_probability": 0.1,
        "crossover_probability": 0.2,
        "scaling": "common",
    },
}
"""Settings of published algorithms, by name, for `EvoTreeClassifier.from_preset`."""

# Below this many rows a task is shorter than the threads' quarrel about the interpreter lock.
_MIN_ROWS_FOR_THREADS = 10_000


class EvoTreeClassifier(ClassifierMixin, BaseEstimator):
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
    scaling : {"standard", "common"}, default="standard"
        Whether trees evolve over features in units of their standard deviations, or in their own
        units. A fitted tree is over raw features in either case.
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
        and std of fitness, quality and size. `evotree.to_frame` makes a table of it.
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
        "size_penalty": [Interval(Real, 0.0, None, closed="left")],
        "population_size": [Interval(Integral, 2, None, closed="left")],
        "max_generations": [Interval(Integral, 0, None, closed="left")],
        "patience": [Interval(Integral, 1, None, closed="left"), None],
        "time_limit": [Interval(Real, 0.0, None, closed="neither"), None],
        "mutation_probability": [Interval(Real, 0.0, 1.0, closed="both")],
        "crossover_probability": [Interval(Real, 0.0, 1.0, closed="both")],
        "dipolar_probability": [Interval(Real, 0.0, 1.0, closed="both")],
        "min_samples_split": [Interval(Integral, 2, None, closed="left")],
        "scaling": [StrOptions({"standard", "common"})],
        "class_weight": [dict, StrOptions({"balanced"}), None],
        "keep_on_interrupt": ["boolean"],
        "random_state": ["random_state", np.random.Generator],
        "n_jobs": [Integral, None],
        "verbose": ["verbose"],
        "callbacks": ["array-like", None],
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
        class_weight: Mapping[Any, float] | str | None = None,
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
        self.class_weight = class_weight
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
            A key of `evotree.estimators.PRESETS`: ``"gea_odt"``.
        **parameters
            Parameters that differ from the preset.

        Returns
        -------
        EvoTreeClassifier
            Not fitted.

        Raises
        ------
        ValueError
            If there is no such preset.
        """
        if name not in PRESETS:
            raise ValueError(f"name={name!r}: allowed presets are {sorted(PRESETS)}.")
        return cls(**{**PRESETS[name], **parameters})

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Evolve a tree.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Training rows, finite.
        y : array-like of shape (n_samples,)
            Class labels.
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the rows; a row of weight 2 counts as two rows.

        Returns
        -------
        EvoTreeClassifier
            The fitted estimator.

        Raises
        ------
        ValueError
            If a parameter or the data are not as described; the message names what is wrong.
        """
        self._validate_params()
        X, y = validate_data(self, X, y, dtype=np.float64)
        check_classification_targets(y)
        weight = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        if self.class_weight is not None:
            weight = weight * compute_sample_weight(self.class_weight, y)
        names = getattr(self, "feature_names_in_", None)
        self.dataset_ = Dataset.from_arrays(
            X, y, weight, None if names is None else tuple(names), self.scaling
        )
        run = self._evolve(self.dataset_)
        self.classes_ = self.dataset_.classes
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
            random_state=self.random_state,
        )
        with (
            _threads(toolbox, self.n_jobs, dataset.X.shape[0]),
            _progress_bar(self.max_generations, disable=not self.verbose) as show,
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

    def apply(self, X: Any) -> np.ndarray:
        """Return the leaf that each row reaches, as positions in the arrays of `tree_`.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples,), int32
            Leaves.
        """
        check_is_fitted(self)
        # Single precision is routed as it is: a copy would cost more than the routing.
        X = validate_data(self, X, dtype=[np.float64, np.float32], order="C", reset=False)
        return self.tree_.apply(X)

    def predict(self, X: Any) -> np.ndarray:
        """Return the class of each row, the most frequent one of the leaf that it reaches.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples,)
            Class labels.
        """
        leaves = self.apply(X)
        return self.classes_[self.tree_.values.argmax(axis=1)][leaves]

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the class shares of the leaf that each row reaches.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Shares, in the order of `classes_`.
        """
        leaves = self.apply(X)
        return self.tree_.values[leaves]

    def get_depth(self) -> int:
        """Return the depth of the tree."""
        check_is_fitted(self)
        return self.tree_.depth

    def get_n_leaves(self) -> int:
        """Return the number of leaves of the tree."""
        check_is_fitted(self)
        return self.tree_.n_leaves


@contextmanager
def _threads(toolbox: base.Toolbox, n_jobs: int | None, n_rows: int) -> Iterator[None]:
    """Let the toolbox map over threads, where there is enough to do for them."""
    n_threads = effective_n_jobs(n_jobs)
    if n_threads == 1 or n_rows < _MIN_ROWS_FOR_THREADS:
        yield
        return
    with ThreadPoolExecutor(n_threads) as executor:
        toolbox.register("map", executor.map)
        yield


@contextmanager
def _progress_bar(max_generations: int, disable: bool) -> Iterator[Callback]:
    """Yield a callback that shows the generation, the best fitness and size."""
    with tqdm(total=max_generations, unit="gen", disable=disable) as bar:

        def show(run: Evolution) -> None:
            bar.set_postfix(quality=f"{run.best.quality:.4f}", nodes=len(run.best), refresh=False)
            bar.update(run.generation - bar.n)

        yield show
