"""What is fixed before a search begins: the rows and their objective, constraints and limits."""

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial
from numbers import Integral
from typing import Any, NamedTuple, Self

import numpy as np

from evotree.configuration import LINEAR, SCORE, LinearLeaves
from evotree.dataset import EXPOSURE, Dataset
from evotree.engine.config import (
    AUTO,
    Evolution,
    SearchConfig,
    evolution_of,
    is_auto,
)
from evotree.engine.scores import Score, Widened, fit_score, rest_of
from evotree.engine.toolbox import feature_bound
from evotree.fitness.linear_leaves import LogLinearLeaves
from evotree.fitness.objectives import (
    LOSSES,
    ExpectedCost,
    ProbabilityScore,
    QuantileLoss,
    compose,
    loss_of_probabilities,
    models_of_leaves,
    name_of_objective,
)
from evotree.operators.constraints import (
    Constraint,
    Held,
    ShapeLimits,
    SplitFeatures,
    as_interactions,
    check_monotonic_cst,
    with_split_features,
)
from evotree.operators.initialization.population import (
    TAO,
    WIDTHS,
    raw_tree,
    split_init,
    splits_for,
)
from evotree.operators.structure.splice import make_individual
from evotree.texts import splits_of_text
from evotree.tree import ObliqueTree

PARAMETERS = {
    "Interactions": "interaction_cst",
    "MonotonicConstraint": "monotonic_cst",
    "SplitFeatures": "split_features of leaves",
    "Held": "evolution__hold",
    "ShapeLimits": "max_depth, max_leaf_nodes, max_terms or min_samples_leaf",
}
"""What users say for each kind of constraint."""

NOISE, LEAST_ROWS = 0.1, 3000
"""The noise of ``"auto"``, and the number of rows from which on there is none."""

# Shares of the time limit: after the first one trees are finished, and after the second no more of
# them. The rest is for what tells how sure the best one is.
_SEARCH_SHARE = 0.75
_TREES_SHARE = 0.95


class Penalties(NamedTuple):
    """What the fitness takes off for the complexity of a tree."""

    size: float  # penalty for a node
    term: float  # penalty for each term after a split's first


class Deadlines(NamedTuple):
    """When the parts of a search end, by `time.perf_counter`."""

    evolution: float = math.inf
    trees: float = math.inf  # no more of them are finished then
    all: float = math.inf

    @classmethod
    def of(cls, time_limit: float | None, begin: float | None) -> Self:
        """Return those of a search whose clock started at `begin`, by default now."""
        if time_limit is None:
            return cls()
        begin = time.perf_counter() if begin is None else begin
        shares = (_SEARCH_SHARE, _TREES_SHARE, 1.0)
        return cls(*(begin + share * time_limit for share in shares))


@dataclass(frozen=True)
class Problem:
    """What a search is about: rows, what trees of them keep, and when it ends.

    It never changes. The objective, the constraints and the models of leaves are made once, when
    it is made.
    """

    dataset: Dataset  # training rows, with their objective
    config: SearchConfig
    constraints: list[Constraint]  # what all trees keep
    ends: Deadlines = Deadlines()
    # Whether probabilities are those of soft sides, not the shares of leaves.
    is_soft: bool = True
    # The weights of classes as they were given, which the weights of rows have in them.
    class_weight: Any = None
    # The models that leaves of counts are given in the end.
    leaf_models: LogLinearLeaves | None = None
    # The same trees on a score of the targets, where these compete; else what they are of.
    scored: "Problem | None" = None
    plain: "Problem | None" = None
    wide: Widened | None = None  # rows with the score that the targets are less

    @cached_property
    def evolution(self) -> Evolution:
        """How the population evolves."""
        return evolution_of(self.config)

    @property
    def loss_of_probabilities(self) -> str | None:
        """By which loss of their probabilities candidates are compared; None for other losses."""
        return loss_of_probabilities(self.dataset.objective, self.dataset)

    @property
    def told_loss(self) -> tuple[str, float]:
        """The name of the loss that candidates are compared by, and its unit for people."""
        objective, rows = self.dataset.objective, self.dataset
        name = self.loss_of_probabilities or name_of_objective(self.config.objective)
        if isinstance(objective, ExpectedCost) and objective.costs is not None:
            totals = np.bincount(rows.y, rows.sample_weight, rows.n_classes)
            return name, objective.cost_matrix(totals)[1]
        if isinstance(objective, QuantileLoss):
            return "quantile", float(rows.target_scale)
        plain = "accuracy" if rows.n_classes else "squared_error"
        return name if name in LOSSES else plain, 1.0

    @cached_property
    def is_open(self) -> bool:
        """Whether models of all columns may compete: where nothing bounds their terms."""
        config = self.config
        bounds = (
            config.max_terms,
            config.max_split_terms,
            config.interaction_cst,
            config.monotonic_cst,
            self.evolution.hold,
        )
        return (
            is_auto(config.term_penalty)
            and all(bound is None for bound in bounds)
            and self.evolution.variation.algorithm != "nsga2"
            and self.has_seeds
        )

    @property
    def tries_logistic(self) -> bool:
        """Whether trees of logistic models compete."""
        return self.loss_of_probabilities is not None and self.is_open

    @property
    def tries_score(self) -> bool:
        """Whether a score competes, and trees on it."""
        rows = self.dataset
        has_loss = self.loss_of_probabilities is not None or (
            rows.n_classes == 0
            and rows.outputs is None
            and EXPOSURE not in rows.extras
            and self.config.objective in (None, "squared_error")
        )
        is_asked = self.config.leaves in (AUTO, SCORE) or self.is_on_score
        return has_loss and is_asked and self.is_open

    @property
    def is_on_score(self) -> bool:
        """Whether the trees stand on a score of the targets."""
        return self.plain is not None

    def score_of(self, rows: Dataset, end: float) -> Score | None:
        """Return the score of some rows, whose columns have hinges where they may bend."""
        bends = self.evolution.shapes == AUTO and not rows.schema.bends
        return fit_score(rows, end, bends=bends)

    @property
    def has_one_kind(self) -> bool:
        """Whether trees of class shares, or for targets, are all that may be returned."""
        return (
            self.leaf_models is None
            and not self.tries_logistic
            and self.scored is None
            and not self.is_on_score
        )

    @property
    def judges_evolution(self) -> bool:
        """Whether evolved trees have to be better on rows held out than those before them."""
        return self.loss_of_probabilities is not None and WIDTHS in self.shares

    @cached_property
    def shares(self) -> dict[str, float]:
        """The kinds of first trees, and their shares of the first population."""
        return split_init(self.evolution.init)[0]

    @cached_property
    def start(self) -> ObliqueTree | None:
        """The first individual, over raw features."""
        return start_of(self.evolution, self.dataset)

    @cached_property
    def noise(self) -> float:
        """The noise of copies of the rows: as given, or where rows are few."""
        noise = self.evolution.regularization.noise
        if not is_auto(noise):
            return float(noise)
        rows = self.dataset
        takes_noise = rows.objective is None or rows.objective.takes_noise
        return NOISE if takes_noise and rows.n_rows < LEAST_ROWS else 0.0

    @property
    def has_seeds(self) -> bool:
        """Whether some first trees are optimized."""
        return not self.shares.keys().isdisjoint((TAO, WIDTHS))

    def as_chosen(self, is_scored: bool) -> "Problem":
        """Return the problem of what a score of the targets leaves, if it was chosen."""
        return self.rest if is_scored and self.scored is not None else self

    @cached_property
    def rest(self) -> "Problem":
        """The problem of what a score of the targets leaves."""
        assert self.scored is not None
        rows = self.dataset
        score = self.score_of(rows, math.inf)
        if score is None:
            return self
        wide = Widened.of(rows, score, self.evolution.scaling)
        wide = wide.rounded(self.config.precision)
        rest = rest_of(wide.rows, wide.line).raw_targets
        return replace(
            self.scored, dataset=self.scored.dataset.with_targets(rest), wide=wide
        )


def seconds_until(end: float, share: float = 1.0) -> float:
    """Return a share of the seconds until a time of `time.perf_counter`."""
    return share * (end - time.perf_counter())


def half_way_to(end: float) -> float:
    """Return the time of `time.perf_counter` in the middle of now and an end."""
    return time.perf_counter() + seconds_until(end, 0.5)


def prepare(
    dataset: Dataset,
    config: SearchConfig,
    begin: float | None = None,
    *,
    is_soft: bool = True,
    class_weight: Any = None,
) -> Problem:
    """Return what a search is about; the clock of its limits started at `begin`.

    `is_soft` says whether probabilities are those of soft sides. A search goes on only with the
    same `class_weight`.
    """
    schema = dataset.schema
    evolution = evolution_of(config)
    make = partial(
        _problem_of,
        config=config,
        ends=Deadlines.of(config.time_limit, begin),
        is_soft=is_soft,
        class_weight=class_weight,
    )
    problem = make(dataset)
    if evolution.shapes not in (AUTO, None) and not schema.is_table:
        raise ValueError(
            f"shapes={evolution.shapes!r}: of rows without columns, as a search by a Dataset has, "
            f"allowed are {AUTO!r} and None."
        )
    if not problem.tries_score or problem.dataset.n_classes:
        return problem
    scored = make(dataset, config=replace(config, leaves=LINEAR))
    return replace(problem, scored=replace(scored, plain=problem))


def _problem_of(dataset: Dataset, *, config: SearchConfig, **fixed: Any) -> Problem:
    """Return what a search is about, by the features that there are."""
    dataset = _with_objective(dataset, config, fixed["is_soft"])
    evolution = evolution_of(config)
    for tree in split_init(evolution.init)[1]:
        splits_for(tree, dataset)  # before hyperparameters are chosen
    models = models_of_leaves(config.leaves, dataset)
    # Models use all features, of one leaf, too: what holds for splits alone is for constant leaves.
    bounds = {
        "hold": evolution.hold,
        "interaction_cst": config.interaction_cst,
        "max_terms": config.max_terms,
        "monotonic_cst": config.monotonic_cst,
    }
    given = [name for name, bound in bounds.items() if bound is not None]
    if models is not None and given:
        if not is_auto(config.leaves):
            raise ValueError(
                f"{given[0]} does not go with leaves={config.leaves!r} of counts: allowed is None."
            )
        models = None
    constraints = make_constraints(config, evolution, dataset)
    problem = Problem(dataset, config, constraints, leaf_models=models, **fixed)
    if config.leaves == SCORE and not problem.tries_score:
        raise ValueError(
            f"leaves={SCORE!r}: allowed for objectives of probabilities, the accuracy or the "
            "squared error of one target without exposures, term_penalty='auto', and no bound on "
            "terms, order or interactions."
        )
    return problem


def _with_objective(dataset: Dataset, config: SearchConfig, is_soft: bool) -> Dataset:
    """Return a data set with what its trees are evolved for, and the columns of their splits.

    An objective that it has already stays.
    """
    if isinstance(config.leaves, LinearLeaves):
        dataset = with_split_features(dataset, config.leaves.split_features)
    if dataset.objective is not None:
        return dataset
    objective = compose(
        config.objective,
        dataset,
        leaves=config.leaves,
        max_terms=config.max_terms,
        constraint=check_monotonic_cst(
            config.monotonic_cst,
            dataset.schema,
            dataset.n_classes,
        ),
    )
    if isinstance(objective, ProbabilityScore):
        objective = replace(objective, is_soft=is_soft)
    return dataset if objective is None else dataset.evolved_for(objective)


def start_of(evolution: Evolution, dataset: Dataset) -> ObliqueTree | None:
    """Return the splits of a start over raw features, or None."""
    start = evolution.start
    if start is None:
        return None
    names = dataset.feature_names
    own = getattr(start, "feature_names", names)  # of a model file
    if isinstance(start, str):
        splits = splits_of_text(start, names, "start", dataset.schema.others)
    else:
        splits = raw_tree(start, "start")
    blank = np.zeros((len(splits[0]), dataset.n_classes or dataset.n_outputs))
    values = getattr(getattr(start, "tree_", start), "values", blank)
    for what, of_start, of_rows in (
        ("features", getattr(start, "feature_names_", own), names),
        ("classes", getattr(start, "classes_", dataset.classes), dataset.classes),
        ("number of features", splits[0].shape[1], len(names)),
        ("number of values in a leaf", values.shape[1], blank.shape[1]),
    ):
        has = np.asarray(of_start).tolist()
        allowed = np.asarray(of_rows).tolist()
        if has != allowed:
            raise ValueError(
                f"start has the {what} {has}: allowed are {allowed}, as X and y have."
            )
    return ObliqueTree(*splits, blank)


def _held(
    config: SearchConfig,
    evolution: Evolution,
    dataset: Dataset,
    others: list[Constraint],
) -> list[Constraint]:
    """Return the constraint that splits of the start stay, if any do."""
    hold = evolution.hold
    start = start_of(evolution, dataset)
    if hold is None:
        return []
    n_features = dataset.X.shape[1]
    if start is None or isinstance(hold, Mapping):
        raise ValueError(
            f"hold={hold!r}: allowed is a list of numbers of splits, of a start that is given."
        )
    held = Held.of(start, hold, dataset)
    top = make_individual(dataset, *held.scaled.splits)
    broken = [
        PARAMETERS[type(one).__name__] for one in others if not one.keeps(top, dataset)
    ]
    bound = feature_bound(config.max_split_terms, n_features) or np.inf
    if np.count_nonzero(held.raw.weights, axis=1).max() > bound:
        broken.append("max_split_terms")
    if broken:
        raise ValueError(
            f"hold={hold!r}: {broken[0]} forbids these splits; allowed are others."
        )
    return [held]


def make_constraints(
    config: SearchConfig, evolution: Evolution, dataset: Dataset
) -> list[Constraint]:
    """Return what all trees of a search keep, what is held first."""
    least_rows = config.min_samples_leaf
    if not isinstance(least_rows, Integral):
        least_rows = math.ceil(least_rows * dataset.n_rows)  # as in scikit-learn
    max_width = None
    if evolution.operators:  # those of this package keep it by themselves
        max_width = feature_bound(config.max_split_terms, dataset.X.shape[1])
    limits = ShapeLimits(
        max_depth=config.max_depth,
        max_leaves=config.max_leaf_nodes,
        max_terms=config.max_terms,
        min_leaf_share=0.0
        if least_rows <= 1
        else min(1.0, least_rows / dataset.n_rows),
        max_split_terms=max_width,
    )
    constraints: list[Constraint] = []
    if dataset.is_split_on is not None:
        constraints.append(SplitFeatures(dataset.is_split_on))
    interactions = as_interactions(config.interaction_cst, dataset)
    if interactions is not None:
        constraints.append(interactions)
    if dataset.objective is not None and dataset.objective.constraint is not None:
        constraints.append(dataset.objective.constraint)
    if limits != ShapeLimits():
        constraints.append(limits)
    return [*_held(config, evolution, dataset, constraints), *constraints]
