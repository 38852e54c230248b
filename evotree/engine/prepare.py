"""What is fixed before a search begins: the rows and their objective, constraints and limits."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from numbers import Integral
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np

from evotree.description.reading import splits_of_text
from evotree.engine.config import Evolution, evolution_of, is_auto
from evotree.engine.toolbox import feature_bound, split_init
from evotree.fitness.objectives import compose
from evotree.objectives import LinearLeaves
from evotree.operators.constraints.base import Constraint
from evotree.operators.constraints.held import Held
from evotree.operators.constraints.interactions import as_interactions
from evotree.operators.constraints.limits import Limits
from evotree.operators.constraints.monotonic import (
    MonotonicConstraint,
    check_monotonic_cst,
)
from evotree.operators.constraints.split_features import (
    SplitFeatures,
    with_split_features,
)
from evotree.operators.initialization.seeding import TAO, WIDTHS, raw_tree
from evotree.operators.structure.splice import make_individual
from evotree.tables.columns import NumericColumn
from evotree.tree import ObliqueTree

if TYPE_CHECKING:
    from evotree.dataset import Dataset
    from evotree.engine.config import SearchConfig


PARAMETERS = {"Interactions": "interaction_cst", "MonotonicConstraint": "monotonic_cst"}
PARAMETERS |= {"SplitFeatures": "split_features of leaves", "Held": "evolution__hold"}
PARAMETERS["Limits"] = "max_depth, max_leaf_nodes, max_terms or min_samples_leaf"
"""What users say for each kind of constraint."""

NOISE, LEAST_ROWS = 0.1, 3000
"""The noise of ``"auto"``, and the number of rows from which on there is none."""

_SEARCH_SHARE = 0.75  # of the time limit; then trees are finished, and until
_TREES_SHARE = (
    0.95  # of it no more of them; the rest is for what tells how sure the best one is
)


@dataclass(frozen=True)
class Problem:
    """What a search is about."""

    dataset: Dataset  # training rows, with their objective
    config: SearchConfig  # what the search is told
    constraints: list[Constraint]  # what all trees keep
    # When evolution is over, when no more trees are finished, and when all is to be done.
    end: float = math.inf
    end_of_trees: float = math.inf
    end_of_all: float = math.inf

    @property
    def evolution(self) -> Evolution:
        """How the population evolves."""
        return evolution_of(self.config)

    @cached_property
    def shares(self) -> dict[str, float]:
        """The kinds of first trees, and their shares of the first population."""
        return split_init(self.evolution.init)[0]

    @cached_property
    def start(self) -> ObliqueTree | None:
        """The first individual, over raw features."""
        return start_of(self.config, self.dataset)

    @cached_property
    def noise(self) -> float:
        """The noise of copies of the rows: as given, or where rows are few."""
        given, rows = self.evolution.regularization.noise, self.dataset
        takes = rows.objective is None or rows.objective.takes_noise
        automatic = NOISE if takes and rows.n_rows < LEAST_ROWS else 0.0
        return automatic if is_auto(given) else float(given)

    @property
    def has_seeds(self) -> bool:
        """Whether some first trees are optimized."""
        return not self.shares.keys().isdisjoint((TAO, WIDTHS))

    def seconds_left(self, share: float = 1.0) -> float | None:
        """Return a share of the seconds that evolution has; None where there is no limit."""
        return (
            None if self.end == math.inf else share * (self.end - time.perf_counter())
        )


def prepare(
    dataset: Dataset, config: SearchConfig, begin: float | None = None
) -> Problem:
    """Return what a search is about; the clock of its limits started at `begin`."""
    dataset = with_objective(dataset, config)
    constraints = make_constraints(config, dataset)
    if config.time_limit is None:
        return Problem(dataset, config, constraints)
    begin = time.perf_counter() if begin is None else begin
    shares = _SEARCH_SHARE, _TREES_SHARE, 1.0
    ends = (begin + share * config.time_limit for share in shares)
    return Problem(dataset, config, constraints, *ends)


def with_objective(
    dataset: Dataset, config: SearchConfig, encoder: Any = None
) -> Dataset:
    """Return a data set with what its trees are evolved for, and the columns of their splits.

    An objective that it has already stays. `encoder` is the estimator that has read the rows.
    """
    leaves = config.leaves
    if isinstance(leaves, LinearLeaves):
        dataset = with_split_features(dataset, leaves.split_features)
    if dataset.objective is not None:
        return dataset
    constraint = _monotonic_constraint(config.monotonic_cst, dataset, encoder)
    if dataset.n_classes:
        _check_logistic_leaves(config)
        leaves = "constant"  # trees evolve with these; finished ones may be logistic
    options = {
        "leaves": leaves,
        "max_terms": config.max_terms,
        "constraint": constraint,
    }
    objective = compose(config.objective, dataset, **options)
    return dataset if objective is None else dataset.evolved_for(objective)


def start_of(config: SearchConfig, dataset: Dataset) -> ObliqueTree | None:
    """Return the splits of a start over raw features, or None."""
    start, names = evolution_of(config).start, dataset.feature_names
    if start is None:
        return None
    is_text = isinstance(start, str)
    splits = (
        splits_of_text(start, names, "start") if is_text else raw_tree(start, "start")
    )
    blank = np.zeros((len(splits[0]), dataset.n_classes or dataset.n_outputs))
    values = getattr(getattr(start, "tree_", start), "values", blank)
    for name, given, here in (
        ("features", getattr(start, "feature_names_", names), names),
        ("classes", getattr(start, "classes_", dataset.classes), dataset.classes),
        ("number of features", splits[0].shape[1], len(names)),
        ("number of values in a leaf", values.shape[1], blank.shape[1]),
    ):
        had, has = (np.asarray(one).tolist() for one in (given, here))
        if had != has:
            raise ValueError(
                f"start has the {name} {had}: allowed are {has}, as X and y have."
            )
    return ObliqueTree(*splits, blank)


def _held(
    config: SearchConfig, dataset: Dataset, others: list[Constraint]
) -> list[Constraint]:
    """Return the constraint that splits of the start stay, if any do."""
    start, hold = start_of(config, dataset), evolution_of(config).hold
    if hold is None:
        return []
    if start is None:
        if not isinstance(hold, Mapping) or list(hold) != [0] or hold[0] is None:
            raise ValueError(
                f"hold={hold!r} without start: allowed are columns of the node 0."
            )
        stump = (
            np.zeros((3, dataset.X.shape[1])),
            np.zeros(3),
            np.array([3, 1, 1], dtype=np.int32),
        )
        start = ObliqueTree(*stump, np.zeros((3, 1)))
    held = Held.of(start, hold, dataset)
    top = make_individual(dataset, *held.scaled.splits)
    broken = [
        PARAMETERS[type(one).__name__] for one in others if not one.keeps(top, dataset)
    ]
    bound = feature_bound(config.max_split_terms, dataset.X.shape[1]) or np.inf
    if np.count_nonzero(held.raw.weights, axis=1).max() > bound:
        broken.append("max_split_terms")
    if broken:
        raise ValueError(
            f"hold={hold!r}: {broken[0]} forbids these splits; allowed are others."
        )
    return [held]


def _check_logistic_leaves(config: SearchConfig) -> None:
    """Refuse what linear leaves of classes, which use all features, do not go with."""
    if config.leaves in ("auto", "constant"):
        return
    if evolution_of(config).hold is not None:
        raise ValueError(
            "hold: allowed is None where leaves are logistic; one leaf may be best."
        )
    allowed = {"objective": "accuracy", "monotonic_cst": None, "interaction_cst": None}
    for name, value in {**allowed, "max_terms": None}.items():
        given = getattr(config, name)
        if given is not None and given != value:
            raise ValueError(
                f"{name}={given!r} does not go with leaves={config.leaves!r} of classes: allowed "
                f"is {value!r}."
            )


def _monotonic_constraint(
    monotonic_cst: Any, dataset: Dataset, encoder: Any
) -> MonotonicConstraint | None:
    """Return the constraint on the features that trees read."""
    if encoder is not None:
        return check_monotonic_cst(
            monotonic_cst, encoder, encoder.columns_, dataset.n_classes
        )
    names = np.array(dataset.feature_names, dtype=object)
    features = SimpleNamespace(n_features_in_=len(names), feature_names_in_=names)
    columns = [NumericColumn(name, 0.0) for name in dataset.feature_names]
    return check_monotonic_cst(monotonic_cst, features, columns, dataset.n_classes)


def make_constraints(config: SearchConfig, dataset: Dataset) -> list[Constraint]:
    """Return what all trees of a search keep."""
    n_rows, least = dataset.n_rows, config.min_samples_leaf
    own = evolution_of(config).operators
    if not isinstance(least, Integral):
        least = math.ceil(least * n_rows)  # as in scikit-learn
    limits = Limits(
        config.max_depth,
        config.max_leaf_nodes,
        config.max_terms,
        0.0 if least <= 1 else min(1.0, least / n_rows),
        feature_bound(config.max_split_terms, dataset.X.shape[1]) if own else None,
    )
    interactions = as_interactions(config.interaction_cst, dataset)
    found: list[Constraint] = [] if interactions is None else [interactions]
    if dataset.is_split_on is not None:
        found.insert(0, SplitFeatures(dataset.is_split_on))
    if dataset.objective is not None and dataset.objective.constraint is not None:
        found.append(dataset.objective.constraint)
    found += [] if limits == Limits() else [limits]
    return [*_held(config, dataset, found), *found]
