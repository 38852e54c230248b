"""What a search is told: one configuration for each part of the engine, and one for the whole."""

import os
from collections.abc import Iterable, Mapping
from concurrent.futures import Executor
from dataclasses import dataclass, field, fields
from numbers import Integral, Real
from typing import Annotated, Any

import numpy as np

from evotree.configuration import (
    LEAVES,
    N_JOBS,
    Configuration,
    Constrained,
    Cost,
    HasMethods,
    Interval,
    LinearLeaves,
    Quantile,
    RealNotInt,
    RisingPair,
    StrOptions,
)
from evotree.dataset import SCALINGS
from evotree.engine.evolution import Callback
from evotree.files import PathLike
from evotree.fitness.base import Objective
from evotree.operators.constraints import WORDS
from evotree.operators.refinement import Refinement, as_refinement
from evotree.operators.splitters.linear import PENALTIES
from evotree.operators.structure.rounding import MOST_DIGITS

OPERATORS = ("mate", "mutate", "select")
"""Roles that operators of the user's own may have."""

AUTO = "auto"
"""What cross-validation chooses."""

MIN_ROWS = 5
"""A node of the first trees with fewer training rows is a leaf."""

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
    published_operators : bool, default=False
        Whether first trees, mutation and crossover are those of the paper. First trees then grow on
        all rows, every split is centred between its nearest rows if these differ in class, a split
        that changes its role becomes a leaf, and two splits that meet in crossover are mixed, also
        where subtrees are exchanged. Otherwise first trees grow on 256 rows to a depth of 8, only
        changed splits are centred, half of the changes of role leave a child in place of its
        parent, and subtrees change places as they are.
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
    published_operators: Annotated[bool, "boolean"] = False
    selection_pressure: Annotated[
        float, Interval(Real, 1.0, None, closed="neither")
    ] = 2.0
    keep_duplicates: Annotated[bool, "boolean"] = False
    survival: Annotated[str, StrOptions({"best", "generational"})] = "best"
    algorithm: Annotated[str, StrOptions({"penalized", "nsga2"})] = "penalized"


@dataclass(frozen=True, repr=False)
class Regularization(Configuration):
    """How strongly the hyperplanes of trees are regularized.

    Parameters
    ----------
    C : float above 0 or tuple of two, default=(0.3, 3.0)
        Inverse strength of the penalty of the linear classifiers of first trees, mutation and
        refinement, as in scikit-learn. Of two numbers, each draws one between them, log-uniformly.
    penalty : {"l2", "l1"}, default="l2"
        Penalty of their weights; ``"l1"`` makes hyperplanes sparse.
    noise : float, at least 0, or "auto", default="auto"
        Standard deviation of the normal noise of copies of the rows on which the fitness is also
        measured, in units of the features' standard deviations. It keeps hyperplanes away from
        rows. 0 measures it on the rows alone, as in the paper. ``"auto"`` is 0.1, but 0 from
        3,000 rows on, where leaves hold lines, and for several outputs.
    """

    C: Annotated[float | tuple[float, float], _ABOVE_0, _PAIR] = (0.3, 3.0)
    penalty: Annotated[str, StrOptions(set(PENALTIES))] = "l2"
    noise: Annotated[float | str, _FROM_0, StrOptions({AUTO})] = AUTO


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
        Number of immigrants of each island, from the one before, which replace its worst.
    executor : concurrent.futures.Executor or None, default=None
        Where islands evolve: processes, ``Client().get_executor()`` of Dask and the like. By
        default threads, as many as `n_jobs` says. The result is the same. It is not pickled.
    """

    n: Annotated[int, _WHOLE_FROM_1] = 1
    every: Annotated[int, _WHOLE_FROM_1] = 10
    size: Annotated[int, _WHOLE_FROM_0] = 2
    executor: Annotated[Executor | None, HasMethods(["submit"]), None] = None

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.n, self.every, self.size)


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


def check_operators(operators: Mapping[str, Any]) -> None:
    """Check the roles of operators of the user's own."""
    for role, operator in operators.items():
        if role == "evaluate":
            raise ValueError(
                "operators={'evaluate': ...}: a search also prunes, chooses penalties and picks "
                "its tree by what trees are worth, so it takes an objective: a callable, with "
                "size_penalty and term_penalty, or search_scores. In a loop of your own "
                "toolbox.register('evaluate', ...) takes any function of an individual that "
                "returns a tuple of numbers."
            )
        if role not in OPERATORS or not callable(operator):
            raise ValueError(
                f"operators={{{role!r}: {operator!r}}}: allowed are callables for "
                f"{', '.join(OPERATORS)}."
            )


@dataclass(frozen=True, repr=False)
class Evolution(Configuration):
    """How the population evolves: what only a researcher moves.

    Parameters
    ----------
    population_size : int, at least 2, default=64
        Number of trees that evolve, on each island.
    patience : int or None, default=20
        Stop after this many generations without a better tree; after a fourth of them where
        evolution was not better on rows held out, so that trees evolve for the front alone.
    init : str, splitter, dict of these to float, tree, list of all these or None, default="widths"
        What the first population is made of. ``"widths"`` makes optimized trees of falling widths,
        from dense splits to splits on one feature, axis-parallel trees and trees of logistic
        regressions; ``"tao"`` makes deep trees that are optimized and pruned in turn; the name of a
        splitter grows trees greedily, that of a greedy preset, such as ``"OC1"``, by its splitter
        and its criterion.
        ``("tao", "oc1")`` gives each a fifth of the population, ``{"wodt": 0.2}`` sets the shares,
        ``"widths"`` alone has four fifths; the rest is random. In place of names there may be
        splitters with settings of their own, ``OC1(n_restarts=5)``, and greedy estimators that are
        not fitted, of which the splitter and the criterion count. Trees join as they are, columns
        by their names: `ObliqueTree`, rules as text, models of `load_model`, fitted estimators of
        this package, scikit-learn's fitted decision trees (in searches wrapped by
        `sklearn.frozen.FrozenEstimator`, since clones are not fitted); those that break a bound on
        trees, or use columns that their splits may not use, are repaired.
    scaling : {"standard", "common", "minmax"}, default="standard"
        Units in which trees evolve: standard deviations of the features, their own units, or
        [-1, 1]. The fitted tree uses raw features in any case.
    max_samples : int, float in (0, 1] or None, default=None
        For large data: the evolution starts on a stratified subsample of this size, or share, which
        grows at most fourfold per step to all rows. Each sample has half the generations of the one
        before, and an equal share of the time; hyperparameters are chosen on the first.
    variation : Variation, default=Variation()
        How offspring are bred and selected.
    refinement : str, list, dict of str to float, Refinement or None, default="sparse"
        What refines some of the offspring: ``"sparse"``, one sweep of tree alternating optimization
        that chooses the features of each split; ``"tao"``, one sweep on all features;
        the name of a splitter, which splits one node again. Several of them, with shares or
        without; or a `Refinement`, which also sets how many, which and when.
    regularization : Regularization, default=Regularization()
        How strongly hyperplanes are regularized, and on what noise the fitness is measured.
    islands : int or Islands, default=1
        Number of populations that evolve apart and exchange their best, or an `Islands`.
    operators : dict of str to callable or None, default=None
        Operators of your own, in the places of those of the toolbox (`evotree.make_toolbox`):
        ``mutate(individual, dataset=...)``, ``mate(a, b, dataset=...)``, ``select(population, k)``.
        Their individuals have weights for features in the units of `scaling`; `evotree.with_tree`
        makes new ones. What they return is checked, and repaired where there are constraints.
    start : tree, fitted estimator, str or None, default=None
        The first individual, as it is; or rules as `evotree.export.export_text` prints them, where
        numbers of nodes and what leaves say do not matter.
    hold : list of int, or None, default=None
        Splits of `start`, by their numbers, that all trees have in the same places, bit for bit,
        with all splits above them.
    shapes : "auto", dict of str to list of pairs, or None, default="auto"
        Whether the effect of a column of numbers may bend. Its terms may then be ``age above 52``,
        which is ``max(age - 52, 0)``, ``age below 52``, which is ``max(52 - age, 0)``, or
        ``log(income)`` where it is positive and skewed. With ``"auto"`` scores have such terms,
        with knots at octiles. Those of a dict are features of splits and linear leaves:
        ``{"age": [("above", 52.0)], "income": [("log", 1.0)]}`` names kinds and knots, of a
        logarithm the least number that it is taken of. With None no column bends.
    """

    population_size: Annotated[int, _WHOLE_FROM_2] = 64
    patience: Annotated[int | None, _WHOLE_FROM_1, None] = 20
    init: Annotated[Any, object] = "widths"
    scaling: Annotated[str, StrOptions(set(SCALINGS))] = "standard"
    max_samples: Annotated[
        float | None,
        None,
        Interval(RealNotInt, 0.0, 1.0, closed="right"),
        _WHOLE_FROM_1,
    ] = None
    variation: Annotated[Variation, Variation, None] = Variation()
    refinement: Annotated[Any, str, "array-like", dict, Refinement, None] = Refinement(
        "sparse"
    )
    regularization: Annotated[Regularization, Regularization, None] = Regularization()
    islands: Annotated[Any, _WHOLE_FROM_1, Islands, None] = Islands()
    operators: Annotated[Any, dict, None] = None
    start: Annotated[Any, object] = None
    hold: Annotated[Any, "array-like", None] = None
    shapes: Annotated[Any, StrOptions({AUTO}), dict, None] = AUTO

    def __post_init__(self) -> None:
        super().__post_init__()
        check_operators(self.operators or {})
        islands = self.islands or Islands()
        groups = {
            "variation": self.variation or Variation(),
            "refinement": as_refinement(self.refinement),
            "regularization": self.regularization or Regularization(),
            "islands": islands if isinstance(islands, Islands) else Islands(islands),
        }
        for name, group in groups.items():  # what a plain value stands for
            object.__setattr__(self, name, group)


@dataclass(kw_only=True, eq=False, repr=False)
class SearchConfig(Constrained):
    """All settings of a search: the parameters of the evolved estimators.

    `evotree.EvoTreeClassifier` documents them. An objective of None is the accuracy of classes, and
    the squared error of targets.
    """

    objective: Annotated[Any, str, callable, Cost, Quantile, Objective, None] = field(
        default=None, kw_only=False
    )
    leaves: Annotated[Any, StrOptions(set(LEAVES)), LinearLeaves] = "constant"
    max_depth: Annotated[int | None, _WHOLE_FROM_1, None] = None
    max_leaf_nodes: Annotated[int | None, _WHOLE_FROM_2, None] = None
    min_samples_leaf: Annotated[
        float, Interval(RealNotInt, 0.0, 0.5, closed="right"), _WHOLE_FROM_1
    ] = 1
    max_split_terms: Annotated[
        float | None,
        None,
        Interval(RealNotInt, 0.0, 1.0, closed="right"),
        _WHOLE_FROM_1,
    ] = None
    max_terms: Annotated[int | None, _WHOLE_FROM_0, None] = None
    size_penalty: Annotated[float | str, _FROM_0, StrOptions({AUTO})] = AUTO
    term_penalty: Annotated[float | str, _FROM_0, StrOptions({AUTO})] = AUTO
    precision: Annotated[int | str | None, _DIGITS, StrOptions({AUTO}), None] = AUTO
    monotonic_cst: Annotated[Any, "array-like", dict, None] = None
    interaction_cst: Annotated[Any, list, tuple, StrOptions(set(WORDS)), None] = None
    max_generations: Annotated[int, _WHOLE_FROM_0] = 50
    time_limit: Annotated[float | None, _ABOVE_0, None] = None
    evolution: Annotated[Evolution | None, Evolution, None] = None
    checkpoint: Annotated[
        PathLike | Checkpoint | None, str, os.PathLike, Checkpoint, None
    ] = None
    warm_start: Annotated[bool, "boolean"] = False
    callbacks: Annotated[Iterable[Callback] | None, "array-like", None] = None
    random_state: Annotated[Any, "random_state", np.random.Generator] = None
    n_jobs: Annotated[int | None, *N_JOBS, None] = None
    verbose: Annotated[int | str, "verbose", StrOptions({AUTO})] = AUTO

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters by name, whatever `deep` is."""
        return {one.name: getattr(self, one.name) for one in fields(self)}


_DEFAULT = Evolution()


def evolution_of(config: SearchConfig) -> Evolution:
    """Return how the population of a configuration evolves."""
    return config.evolution or _DEFAULT


def plain_config(parameters: SearchConfig) -> SearchConfig:
    """Return the configuration of the search that an estimator, or the like, has parameters of."""
    values = {one.name: getattr(parameters, one.name) for one in fields(SearchConfig)}
    return SearchConfig(**values | {"evolution": evolution_of(parameters)})


def checkpoint_of(config: SearchConfig) -> Checkpoint | None:
    """Return the file of a configuration's search, if there is one."""
    path = config.checkpoint
    return path if path is None or isinstance(path, Checkpoint) else Checkpoint(path)


def is_auto(value: Any) -> bool:
    """Return whether cross-validation chooses a parameter."""
    return isinstance(value, str) and value == AUTO
