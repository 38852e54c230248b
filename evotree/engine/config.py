"""What a search is told: one configuration for each part of the engine, and one for the whole."""

from __future__ import annotations

import os
from collections.abc import Iterable
from concurrent.futures import Executor
from dataclasses import dataclass, fields
from numbers import Integral, Real
from typing import Annotated, Any

import numpy as np
from sklearn.utils._param_validation import HasMethods, Interval, RealNotInt, StrOptions

from evotree.configuration import N_JOBS, Configuration, Constrained, RisingPair
from evotree.dataset import SCALINGS
from evotree.engine.evolution import Callback
from evotree.engine.islands import TOPOLOGIES
from evotree.files import PathLike
from evotree.fitness.objectives import Objective
from evotree.operators.constraints.interactions import WORDS
from evotree.operators.refinement.policy import Refinement, as_refinement
from evotree.operators.splitters.linear_fit import PENALTIES
from evotree.operators.structure.rounding import MOST_DIGITS

ALGORITHMS = ("penalized", "nsga2")
"""Names of the ways to weigh quality against size and complexity."""

SURVIVAL = ("best", "generational")
"""Names of the ways to choose who lives on."""

ENSEMBLE = "ensemble"
"""Name of the default teacher."""

AUTO = "auto"
"""What cross-validation chooses."""

_SHARE = Interval(Real, 0.0, 1.0, closed="both")
_FROM_0 = Interval(Real, 0.0, None, closed="left")
_ABOVE_0 = Interval(Real, 0.0, None, closed="neither")
_PAIR = RisingPair(Real, 0.0, None, closed="neither")
_WHOLE_FROM_0 = Interval(Integral, 0, None, closed="left")
_WHOLE_FROM_1 = Interval(Integral, 1, None, closed="left")
_WHOLE_FROM_2 = Interval(Integral, 2, None, closed="left")
_DIGITS = Interval(Integral, 1, MOST_DIGITS, closed="both")


@dataclass(frozen=True, repr=False)
class Variation(Configuration):
    """How offspring are bred and selected.

    Parameters
    ----------
    mutation_probability : float in [0, 1], default=0.1
        Probability that a node of an offspring mutates.
    crossover_probability : float in [0, 1], default=0.2
        Probability that two offspring exchange parts.
    dipolar_probability : float in [0, 1], default=0.5
        Share of the mutations of a split that the dipolar operator makes; the others add noise.
    split_crossover_probability : float in [0, 1], default=0.5
        Share of the crossovers that exchange splits; the others exchange subtrees.
    term_mutation_probability : float in [0, 1], default=0.5
        Share of the offspring in which the features of one split change, and the split is fitted
        again, instead of the mutation of nodes.
    sparse_dipoles : bool, default=True
        Whether new splits on dipoles look at few features, one being the likeliest number, and
        splits that mutate keep weights of 0. Otherwise they look at all features, as in the paper.
    selection_pressure : float above 1, default=2.0
        Expected number of offspring of the best individual.
    max_origin_share : float in (0, 1], default=1.0
        Largest expected share of the offspring that descend from one kind of first individuals.
    keep_duplicates : bool, default=False
        Whether equal trees may stand in one generation of generational survival, as in the paper.
        Otherwise parents replace them.
    survival : {"best", "generational"}, default="best"
        Who lives on: the best of parents and offspring, each tree once, half of them by the fitness
        and half where nodes and terms are penalized 3, 10 and 30 times as much; or the offspring
        and the best parent, as in the paper. NSGA-II has its own rule.
    algorithm : {"penalized", "nsga2"}, default="penalized"
        Whether the fitness penalizes nodes and terms, or NSGA-II evolves the whole front of quality
        against complexity, from which the penalties then choose.
    """

    mutation_probability: Annotated[float, _SHARE] = 0.1
    crossover_probability: Annotated[float, _SHARE] = 0.2
    dipolar_probability: Annotated[float, _SHARE] = 0.5
    split_crossover_probability: Annotated[float, _SHARE] = 0.5
    term_mutation_probability: Annotated[float, _SHARE] = 0.5
    sparse_dipoles: Annotated[bool, "boolean"] = True
    selection_pressure: Annotated[float, Interval(Real, 1.0, None, closed="neither")] = 2.0
    max_origin_share: Annotated[float, Interval(Real, 0.0, 1.0, closed="right")] = 1.0
    keep_duplicates: Annotated[bool, "boolean"] = False
    survival: Annotated[str, StrOptions(set(SURVIVAL))] = "best"
    algorithm: Annotated[str, StrOptions(set(ALGORITHMS))] = "penalized"


@dataclass(frozen=True, repr=False)
class Regularization(Configuration):
    """How strongly the hyperplanes of trees are regularized.

    Parameters
    ----------
    C : float above 0 or tuple of two, default=(0.3, 3.0)
        Inverse strength of the penalty of the linear classifiers that refine trees, as in
        scikit-learn. Of two numbers, each refinement draws one between them, log-uniformly.
    penalty : {"l2", "l1"}, default="l2"
        Penalty of their weights; ``"l1"`` makes hyperplanes sparse.
    noise : float, at least 0, or "auto", default="auto"
        Standard deviation of the normal noise of copies of the rows on which the fitness is also
        measured, in units of the features' standard deviations. It keeps hyperplanes away from
        rows. 0 measures it on the rows alone, as in the paper. Cross-validation chooses
        ``"auto"``, among `evotree.engine.hyperparameters.NOISES`.
    teacher : None, "ensemble" or estimator, default=None
        A model whose predictions, on the training rows and on rows drawn between them, the tree
        learns; rows count by the margins of its probabilities, if it has any. ``"ensemble"`` is a
        random forest. A fitted model wrapped by `sklearn.frozen.FrozenEstimator` is used as it is;
        it reads encoded rows, where the training rows have missing values or categories.
    """

    C: Annotated[float | tuple[float, float], _ABOVE_0, _PAIR] = (0.3, 3.0)
    penalty: Annotated[str, StrOptions(set(PENALTIES))] = "l2"
    noise: Annotated[float | str, _FROM_0, StrOptions({AUTO})] = AUTO
    teacher: Annotated[Any, HasMethods(["fit", "predict"]), StrOptions({ENSEMBLE}), None] = None


@dataclass(frozen=True, repr=False)
class Islands(Configuration):
    """Populations that evolve apart and exchange their best.

    Parameters
    ----------
    n : int, at least 1, default=1
        Number of populations. Above 1, callbacks are called and limits checked at each migration.
    every : int, at least 1, default=10
        Generations between two migrations.
    size : int, at least 0, default=2
        Number of immigrants of each island, which replace its worst.
    topology : {"ring", "complete"}, default="ring"
        Where they come from: the island before, or all others.
    executor : concurrent.futures.Executor or None, default=None
        Where islands evolve: processes, ``Client().get_executor()`` of Dask and the like. By
        default threads, as many as `n_jobs` says. The result is the same. It is not pickled.
    """

    n: Annotated[int, _WHOLE_FROM_1] = 1
    every: Annotated[int, _WHOLE_FROM_1] = 10
    size: Annotated[int, _WHOLE_FROM_0] = 2
    topology: Annotated[str, StrOptions(set(TOPOLOGIES))] = "ring"
    executor: Annotated[Executor | None, HasMethods(["submit"]), None] = None

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.n, self.every, self.size, self.topology)


@dataclass(frozen=True, repr=False)
class Checkpoint(Configuration):
    """A file that holds the state of a search, from which it continues.

    Parameters
    ----------
    path : path-like
        The file; data, never code.
    every : int, at least 1, default=10
        Generations between two writes.
    resume : bool, default=False
        Whether the search continues from the file, to the end that it would have reached. The rows
        and the parameters must be the same, except for limits and for what changes no later tree.
    """

    path: Annotated[PathLike, str, os.PathLike] = ""
    every: Annotated[int, _WHOLE_FROM_1] = 10
    resume: Annotated[bool, "boolean"] = False


@dataclass(kw_only=True, eq=False, repr=False)
class SearchConfig(Constrained):
    """All that a search is told; the parameters of the evolved estimators.

    `evotree.EvoTreeClassifier` documents them.
    """

    objective: Annotated[Any, str, callable, Objective, None] = None
    size_penalty: Annotated[float | str, _FROM_0, StrOptions({AUTO})] = AUTO
    term_penalty: Annotated[float | str, _FROM_0, StrOptions({AUTO})] = AUTO
    max_split_terms: Annotated[
        float | None, None, Interval(RealNotInt, 0.0, 1.0, closed="right"), _WHOLE_FROM_1
    ] = None
    max_depth: Annotated[int | None, _WHOLE_FROM_1, None] = None
    max_leaf_nodes: Annotated[int | None, _WHOLE_FROM_2, None] = None
    min_samples_leaf: Annotated[
        float, Interval(RealNotInt, 0.0, 0.5, closed="right"), _WHOLE_FROM_1
    ] = 1
    max_terms: Annotated[int | None, _WHOLE_FROM_0, None] = None
    interaction_cst: Annotated[Any, list, tuple, StrOptions(set(WORDS)), None] = None
    split_features: Annotated[Any, "array-like", str, None] = None
    monotonic_cst: Annotated[Any, "array-like", dict, None] = None
    population_size: Annotated[int, _WHOLE_FROM_2] = 64
    max_generations: Annotated[int, _WHOLE_FROM_0] = 50
    patience: Annotated[int | None, _WHOLE_FROM_1, None] = 20
    time_limit: Annotated[float | None, _ABOVE_0, None] = None
    min_samples_split: Annotated[int, _WHOLE_FROM_2] = 5
    scaling: Annotated[str, StrOptions(set(SCALINGS))] = "standard"
    precision: Annotated[
        int | str | None,
        Interval(Integral, 1, MOST_DIGITS, closed="both"),
        StrOptions({AUTO}),
        None,
    ] = AUTO
    init: Annotated[Any, object] = "widths"
    refinement: Annotated[Any, str, "array-like", dict, Refinement, None] = "sparse"
    variation: Annotated[Variation | None, Variation, None] = None
    regularization: Annotated[Regularization | None, Regularization, None] = None
    max_samples: Annotated[
        float | None, None, Interval(RealNotInt, 0.0, 1.0, closed="right"), _WHOLE_FROM_1
    ] = None
    islands: Annotated[int | Islands | None, _WHOLE_FROM_1, Islands, None] = None
    checkpoint: Annotated[PathLike | Checkpoint | None, str, os.PathLike, Checkpoint, None] = None
    warm_start: Annotated[bool, "boolean"] = False
    random_state: Annotated[Any, "random_state", np.random.Generator] = None
    n_jobs: Annotated[int | None, *N_JOBS, None] = None
    verbose: Annotated[int | str, "verbose", StrOptions({AUTO})] = AUTO
    callbacks: Annotated[Iterable[Callback] | None, "array-like", None] = None

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters by name.

        Parameters
        ----------
        deep : bool, default=True
            Ignored.

        Returns
        -------
        dict of str to object
            All of them.
        """
        return {one.name: getattr(self, one.name) for one in fields(self)}


CONFIGURATIONS: dict[str, type[Configuration]] = {
    "refinement": Refinement,
    "variation": Variation,
    "regularization": Regularization,
    "islands": Islands,
    "checkpoint": Checkpoint,
}
"""The parameters of `SearchConfig` that are groups."""


def configuration(name: str, value: Any) -> Any:
    """Return the configuration that the value of a parameter stands for."""
    kind = CONFIGURATIONS[name]
    if isinstance(value, kind):
        return value
    if name == "refinement":
        return as_refinement(value)
    if name == "checkpoint":
        return None if value is None else Checkpoint(value)
    if name == "islands":
        return Islands(1 if value is None else value)
    return kind()


def is_auto(value: Any) -> bool:
    """Return whether cross-validation chooses a parameter."""
    return isinstance(value, str) and value == AUTO
