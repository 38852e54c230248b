"""Losses of rows at constant leaves, and the objective composed of a loss, leaves and an order.

Each loss is an objective by itself. A new one is one class here, with its names and what it goes
with, and its name in `_LOSS_CLASSES`.
"""

import inspect
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from numbers import Real
from types import SimpleNamespace
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from evotree.configuration import SCORE, Cost, LinearLeaves, Quantile
from evotree.dataset import EVENTS, EXPOSURE, Dataset
from evotree.fitness.base import (
    EXPOSURES,
    LINES,
    ORDER,
    OUTPUTS,
    ClassLoss,
    FeatureCosts,
    Leafed,
    Objective,
    TargetLoss,
    check_costs,
    routed_rows,
)
from evotree.fitness.leaves import (
    F1,
    LEAST_MEAN,
    MCC,
    PINBALL,
    POISSON,
    cheapest_labels,
    labels_in_order,
    leaf_quantiles,
    node_target_losses,
    score_labels,
)
from evotree.fitness.linear_leaves import (
    LinearLeafObjective,
    LinesOfOutputs,
    LogLinearLeaves,
    MeansOfOutputs,
    features_asked,
    lines_asked,
)
from evotree.fitness.probabilities import PROBABILITY_LOSSES, quick_shares
from evotree.fitted import COST
from evotree.tree import ObliqueTree


@dataclass(frozen=True)
class ExpectedCost(ClassLoss):
    """Labels whose errors cost the least: balanced accuracy, given costs, and accuracy."""

    # All errors count alike; those on a class count by one over its weight; or ``costs[a][b]`` is
    # what it costs to predict class b where class a is true. Costs are counted in those of the mean
    # error, so that all kinds have penalties of one size: the quality is 1 where nothing costs, and
    # 0 where every row is an error. With a constraint the labels are the cheapest of those in
    # order.

    names: ClassVar[tuple[str, ...]] = ("accuracy", "balanced_accuracy", COST)
    goes_with = frozenset({ORDER})

    kind: str = "accuracy"
    costs: tuple[tuple[float, ...], ...] | None = None
    features: FeatureCosts | None = None
    constraint: Any = None

    @classmethod
    def named(cls, name: str, dataset: Dataset, asked: Any = None) -> Self:
        """Return the objective of a name; costs are checked."""
        if name != COST:
            return cls(name)
        cost = asked if isinstance(asked, Cost) else Cost()
        features = None
        if cost.features is not None:
            features = FeatureCosts.of(
                cost.features, dataset.column_names, dataset.column_of.tolist()
            )
        return cls(name, check_costs(cost.matrix, dataset.classes), features)

    def constrained(self, constraint: Any) -> Self:
        """Return the objective whose labels are in order, which needs errors that cost enough."""
        if self.costs is not None:
            (right_0, wrong_0), (wrong_1, right_1) = self.costs
            if right_0 + right_1 > wrong_0 + wrong_1:
                raise ValueError(
                    f"matrix={self.costs}: with monotonic_cst allowed are matrices whose "
                    "errors, off the diagonal, cost as much as right labels together, or more."
                )
        return super().constrained(constraint)

    def cost_matrix(self, totals: np.ndarray) -> tuple[np.ndarray, float]:
        """Return the costs of a unit of weight by class and label, and what 1 of quality costs."""
        if self.costs is not None:
            costs = np.array(self.costs)
            of_errors = (costs.sum(axis=1) - costs.diagonal()) / max(len(totals) - 1, 1)
            return costs, float(totals @ of_errors / totals.sum()) or 1.0
        costs = 1.0 - np.eye(len(totals))
        if self.kind == "balanced_accuracy":
            present = totals > 0.0
            share = np.where(present, totals, 1.0) * present.sum() / totals.sum()
            costs = np.where(present, 1.0 / share, 0.0)[:, np.newaxis] * costs
        return costs, 1.0

    def labels(self, tree: Leafed) -> np.ndarray:
        """Return the class that costs the least at each node, of shape (n_nodes,)."""
        if self.constraint is not None:
            return self._in_order(tree, 0.0, np.zeros(len(tree.counts)))[0]
        return cheapest_labels(tree.counts, self.cost_matrix(tree.counts[0])[0])

    def cuts(
        self, tree: Leafed, node_price: float, split_price: np.ndarray
    ) -> np.ndarray | None:
        """Return the subtrees that do not pay for what they cost, with labels in order."""
        if self.constraint is None:
            return None
        return self._in_order(tree, node_price, split_price)[1]

    def _in_order(
        self, tree: Leafed, node_price: float, split_price: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the cheapest labels in order, and the subtrees that do not pay with these."""
        costs, unit = self.cost_matrix(tree.counts[0])
        risk = tree.counts @ costs
        if self.features is not None:
            spent = self.features.of_paths(tree) * tree.counts.sum(axis=1)
            risk += spent[:, np.newaxis]
        risk /= unit * tree.counts[0].sum()
        orders = self.constraint.orders(tree)
        return labels_in_order(orders, tree.subtree_size, risk, node_price, split_price)

    def class_weights(self, totals: np.ndarray) -> np.ndarray | None:
        """Return the mean cost of an error on each class, in units of their mean."""
        if self.kind == "accuracy":
            return None
        mean = self.cost_matrix(totals)[0].sum(axis=1)
        return np.maximum(mean / mean.mean(), 1e-3) if mean.any() else None

    def table(self, tree: Leafed) -> np.ndarray:
        """Return the loss table, of shape (n_nodes, n_classes)."""
        costs, unit = self.cost_matrix(tree.counts[0])
        table = costs.T[self.labels(tree)] / unit
        if self.features is not None:
            table += self.features.of_paths(tree)[:, np.newaxis] / unit
        return table

    def finish(self, tree: ObliqueTree, dataset: Dataset) -> ObliqueTree:
        """Return a fitted tree with the cheapest labels, in order."""
        if self.constraint is None:
            return super().finish(tree, dataset)
        costs = self.cost_matrix(tree.values[0] * dataset.total_weight)[0]
        finished: ObliqueTree = self.constraint.finish(tree)
        # Of shares in order, the labels of the least cost are in order too.
        return finished.labelled((finished.counted().counts @ costs).argmin(axis=1))


@dataclass(frozen=True)
class ConfusionScore(ClassLoss):
    """F1 of one class, its mean over classes (-1), or Matthews' correlation; by the best labels."""

    names = ("f1", "f1_macro", "mcc")
    is_sum = False

    measure: int = F1
    positive: int = -1

    @classmethod
    def named(cls, name: str, dataset: Dataset, asked: Any = None) -> Self:
        """Return the objective of a name; F1 is that of the second of two classes."""
        n = dataset.n_classes
        if name == "f1" and n > 2:
            raise ValueError(
                f"objective='f1': y has {n} classes; 'f1_macro' is the mean of them."
            )
        return cls(MCC if name == "mcc" else F1, min(1, n - 1) if name == "f1" else -1)

    def _score(self, tree: Leafed) -> tuple[np.ndarray, np.ndarray, float]:
        """Return the labels of the nodes, what errors cost, and the score."""
        return score_labels(tree.counts, tree.subtree_size, self.measure, self.positive)

    def labels(self, tree: Leafed) -> np.ndarray:
        """Return the labels with the highest score, of shape (n_nodes,)."""
        return self._score(tree)[0]

    def table(self, tree: Leafed) -> np.ndarray:
        """Return the loss table of the linear approximation, of shape (n_nodes, n_classes)."""
        labels, costs, _ = self._score(tree)
        return costs.T[labels]

    def held_out_table(self, tree: Leafed, reference: Leafed) -> np.ndarray:
        """Return the table of a tree, where errors cost what they cost in another one."""
        return self._score(reference)[1].T[self.labels(tree)]

    def quality(self, tree: Leafed) -> float:
        """Return the score."""
        return float(self._score(tree)[2])


class _OfAccuracy(ClassLoss):
    """What is no sum over rows: refinement and pruning need losses of leaves, of the accuracy."""

    is_sum = False

    def table(self, tree: Leafed) -> np.ndarray:
        """Return the loss table of the accuracy, of shape (n_nodes, n_classes)."""
        return ExpectedCost().table(tree)


@dataclass(frozen=True, eq=False)
class ProbabilityScore(_OfAccuracy):
    """The log loss, Brier's, or the area under the ROC curve, of soft probabilities."""

    # The quality is the share of the root's loss that the tree saves, scikit-learn's D², or the
    # area.

    names = ("log_loss", "brier", "roc_auc")
    takes_noise = False  # soft sides are smooth themselves

    kind: str = "log_loss"
    rows: Any = None
    is_soft: bool = True  # or by the class shares of leaves

    @classmethod
    def named(cls, name: str, dataset: Dataset, asked: Any = None) -> Self:
        """Return the objective of a name."""
        return cls(name)

    @cached_property
    def _whole(self) -> float:
        """What the rows lose by the shares of the classes."""
        shares = np.bincount(self.rows.y, self.rows.sample_weight, self.rows.n_classes)
        return self._loss(np.tile(shares / shares.sum(), (len(self.rows.y), 1)))

    def _loss(self, shares: np.ndarray) -> float:
        """Return the mean loss of the rows by their probabilities."""
        y, weight = self.rows.y, self.rows.sample_weight
        return float(
            np.average(PROBABILITY_LOSSES[self.kind](shares, y, weight), weights=weight)
        )

    def quality(self, tree: Any, X: np.ndarray | None = None) -> float:
        """Return the quality of an individual, or of a tree over other units of the rows.

        By soft sides of one slope, the best of some.
        """
        rows = self.rows
        X = rows.X if X is None else X
        if self.kind == "roc_auc" and not self.is_soft:
            return self.quality_of(tree.values[tree.apply(X)])
        shares = quick_shares(tree, X, rows.y, rows.sample_weight, soft=self.is_soft)
        return self.quality_of(shares)

    def quality_of(self, shares: np.ndarray) -> float:
        """Return the quality of probabilities of the rows."""
        lost = self._loss(shares)
        return 1.0 - (lost if self.kind == "roc_auc" else lost / (self._whole or 1.0))


class Leaves(NamedTuple):
    """What an objective of the user's own may ask for besides the counts of the leaves."""

    leaf: np.ndarray  # of each row, as a position in the counts
    y: np.ndarray  # class codes, positions in `classes`; or targets, in their own units
    sample_weight: np.ndarray
    classes: np.ndarray  # labels
    # Columns that are not features, such as ``"sensitive"``.
    extras: Mapping[str, np.ndarray]


@dataclass(frozen=True)
class OwnObjective(_OfAccuracy):
    """A callable of the user's own."""

    # It takes ``(counts)``, the class weights of the leaves, or ``(counts, leaves)``, with
    # `Leaves`, and returns a finite number, the greater the better, or a tuple of several for
    # NSGA-II. The choice of hyperparameters needs losses of rows: of the accuracy.

    function: Callable[..., Any]
    rows: Any = None

    def __post_init__(self) -> None:
        """Refuse scores of labels, such as scikit-learn's."""
        names = self._parameters
        if len(names) > 2 or {"y_true", "y_pred", "y"} & set(names):
            raise ValueError(
                f"objective={self._name} takes ({', '.join(names)}): allowed are functions of the "
                "class weights of the leaves, (counts) or (counts, leaves), not of labels; and "
                "names, such as 'f1_macro'."
            )

    @cached_property
    def _parameters(self) -> list[str]:
        """The names of the parameters by position that have no default."""
        return [
            parameter.name
            for parameter in inspect.signature(self.function).parameters.values()
            if parameter.kind
            in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD)
            and parameter.default is parameter.empty
        ]

    @property
    def _name(self) -> str:
        """What messages call the callable."""
        return str(getattr(self.function, "__name__", repr(self.function)))

    def scores(self, tree: Leafed) -> tuple[float, ...]:
        """Return what the callable returns, as a tuple."""
        is_leaf = tree.subtree_size == 1
        counts = tree.counts[is_leaf]
        leaves = [self._leaves(tree, is_leaf)] if len(self._parameters) > 1 else []
        returned = self.function(counts, *leaves)
        scores = returned if isinstance(returned, tuple) else (returned,)
        if not scores or not all(
            isinstance(s, Real) and math.isfinite(s) for s in scores
        ):
            raise ValueError(
                f"objective={self._name} returned {returned!r}: allowed are a finite number, and "
                "tuples of these."
            )
        return tuple(map(float, scores))

    def _leaves(self, tree: Any, is_leaf: np.ndarray) -> Leaves:
        """Return what the callable may ask for besides the counts."""
        rows = self.rows
        n_rows = (tree.end - tree.start)[is_leaf]
        leaf = np.empty(rows.y.shape[0], dtype=np.int64)
        leaf[tree.order] = np.repeat(np.arange(len(n_rows)), n_rows)
        y = rows.y if rows.n_classes else rows.raw_targets
        return Leaves(leaf, y, rows.sample_weight, rows.classes, rows.extras)

    def quality(self, tree: Leafed) -> float:
        """Return the first number that the callable returns."""
        return self.scores(tree)[0]


@dataclass(frozen=True, eq=False)
class _LossOfMeans(TargetLoss):
    """A loss that means lose the least by, or under a constraint the best values in order."""

    prior: float = 0.0  # weight of the mean of all rows in each leaf
    constraint: Any = None

    def predictions(self, tree: Any, dataset: Dataset | None = None) -> np.ndarray:
        """Return what is best for the rows of each node, of shape (n_nodes,)."""
        if self.constraint is not None and len(tree.counts) > 1:
            values: np.ndarray = self.constraint.values(tree, self.prior)
            return values
        # The mean of the targets of a data set is 0.
        return tree.counts[:, 1] / (tree.counts[:, 0] + self.prior)

    def values(self, tree: Any) -> np.ndarray:
        """Return what each node predicts, of shape (n_nodes, 1)."""
        return self.predictions(tree)[:, np.newaxis]

    def finish(self, tree: ObliqueTree, dataset: Dataset) -> ObliqueTree:
        """Return a fitted tree whose values keep the constraint."""
        constraint = self.constraint
        return tree if constraint is None else constraint.finish(tree, self.prior)


@dataclass(frozen=True, eq=False)
class SquaredLoss(_LossOfMeans):
    """The squared error of means, or of the best values that keep a monotonic constraint."""

    names = ("squared_error",)
    goes_with = frozenset({LINES, OUTPUTS, ORDER})

    def errors(self, tree: Leafed, *, splits: bool = False) -> np.ndarray:
        """Return the error of each node as a leaf, a share of the whole."""
        weight, total, squares = tree.counts.T
        means = total / weight
        errors = np.maximum(0.0, squares - total * means)
        errors = errors + weight * (self.predictions(tree) - means) ** 2
        return errors / (squares[0] or 1.0)


@dataclass(frozen=True, eq=False)
class _LossOfRows(_LossOfMeans):
    """A loss that is known row by row; `rows` is the data set that it is bound to."""

    code: ClassVar[int]
    level: float = 0.5
    rows: Any = None

    @property
    def rule(self) -> tuple[int, float, float]:
        """The code of the loss, its level, and where the raw targets have their 0."""
        return self.code, self.level, -self.rows.target_mean / self.rows.target_scale

    def _losses(self, tree: Any, dataset: Dataset) -> np.ndarray:
        """Return the loss of the rows of each node if it is a leaf, of shape (n_nodes,)."""
        loss, level, origin = self.rule
        return node_target_losses(
            tree.order,
            tree.start,
            tree.end,
            dataset.y,
            dataset.sample_weight,
            self.predictions(tree, dataset),
            loss,
            level,
            origin,
        )

    def whole_loss(self, dataset: Dataset) -> float:
        """Return the loss of the rows where all have one prediction, the best."""
        root = SimpleNamespace(
            order=np.arange(dataset.n_distinct, dtype=np.int32),
            start=np.zeros(1, dtype=np.int32),
            end=np.full(1, dataset.n_distinct, dtype=np.int32),
            counts=np.array([[1.0, 0.0]]),  # the mean of the targets of a data set is 0
        )
        return float(self._losses(root, dataset)[0])

    def errors(self, tree: Any, *, splits: bool = False) -> np.ndarray:
        """Return the loss of each node as a leaf, a share of the whole."""
        losses = self._losses(tree, self.rows)
        return losses / (losses[0] or 1.0)


@dataclass(frozen=True, eq=False)
class QuantileLoss(_LossOfRows):
    """The pinball loss of quantiles; that of the median is half of the absolute error."""

    names = ("absolute_error", "quantile")
    code = PINBALL

    @classmethod
    def named(cls, name: str, dataset: Dataset, asked: Any = None) -> Self:
        """Return the objective of a name."""
        return cls(level=asked.level if isinstance(asked, Quantile) else 0.5)

    def predictions(self, tree: Any, dataset: Dataset | None = None) -> np.ndarray:
        """Return the quantile of the targets of each node, of shape (n_nodes,)."""
        rows = self.rows if dataset is None else dataset
        return leaf_quantiles(
            tree.order, tree.start, tree.end, rows.y, rows.sample_weight, self.level
        )

    def finish(self, tree: ObliqueTree, dataset: Dataset) -> ObliqueTree:
        """Return a fitted tree that predicts quantiles."""
        raw = replace(dataset, y=dataset.raw_targets)
        quantiles = self.predictions(routed_rows(tree, dataset.raw), raw)
        return tree.predicting(quantiles[:, np.newaxis])


@dataclass(frozen=True, eq=False)
class PoissonLoss(_LossOfRows):
    """Poisson's deviance, halved; leaves predict means, or the best values in order.

    As the deviance is a Bregman divergence, these are those of the squared error (Robertson,
    Wright and Dykstra 1988, Order restricted statistical inference, section 1.5).

    Where exposures are made of all rows, as for times to an event, each leaf has one event more,
    at the rate of all rows, as of rpart's survival trees: a leaf without events has not been shown
    to be without risk.
    """

    names = ("poisson",)
    goes_with = frozenset({LINES, EXPOSURES, ORDER})
    code = POISSON

    @classmethod
    def named(cls, name: str, dataset: Dataset, asked: Any = None) -> Self:
        """Return the objective for targets that may be counts."""
        raw = dataset.raw_targets
        if raw.min() < -1e-9 * max(1.0, abs(raw).max()) or not raw.any():
            raise ValueError(
                f"objective='poisson': y has targets from {raw.min():g} to {raw.max():g}; allowed "
                "are 0 and above, not all 0."
            )
        if dataset.exposures_of is None:
            return cls()
        weight = dataset.sample_weight / dataset.extras[EXPOSURE]
        return cls(prior=float(weight.sum() / (weight @ dataset.extras[EVENTS])))

    def finish(self, tree: ObliqueTree, dataset: Dataset) -> ObliqueTree:
        """Return a fitted tree with these means, in order."""
        if self.prior:
            tree = dataset.refill(tree)  # with the means alone
            weight = np.asarray(tree.weighted_n_node_samples)
            share = (weight / (weight + self.prior))[:, np.newaxis]
            mean = dataset.target_mean
            tree = tree.predicting(mean + share * (tree.values - mean))
        # As it was measured: a leaf without events has not been shown to have none.
        tree = tree.predicting(
            np.maximum(LEAST_MEAN * dataset.target_scale, tree.values)
        )
        return super().finish(tree, dataset)


__all__ = [
    "CLASS_OBJECTIVES",
    "LOSSES",
    "TARGET_OBJECTIVES",
    "Leaves",
    "Objective",
    "as_objective",
    "compose",
    "models_of_leaves",
]

_LOSS_CLASSES: tuple[type[Objective], ...] = (
    ExpectedCost,
    ConfusionScore,
    ProbabilityScore,
    SquaredLoss,
    QuantileLoss,
    PoissonLoss,
)

LOSSES = {name: loss for loss in _LOSS_CLASSES for name in loss.names}
"""The loss of each name; what is here is tested by the properties that all losses have."""

CLASS_OBJECTIVES = tuple(name for name, loss in LOSSES.items() if loss.is_of_classes)
"""Names of the objectives of classifiers."""

TARGET_OBJECTIVES = tuple(
    name for name, loss in LOSSES.items() if not loss.is_of_classes
)
"""Names of the objectives of regressors."""

_PLAIN = ("accuracy", "squared_error")  # the search has kernels of its own for these


_NAMES_OF_CONFIGURED: dict[type, str] = {Cost: COST, Quantile: "quantile"}


def name_of_objective(objective: Any) -> str:
    """Return the name of what users ask for; empty for the accuracy and the squared error."""
    name: Any = _NAMES_OF_CONFIGURED.get(type(objective), objective)
    if not isinstance(name, str):
        name = getattr(name, "__name__", type(name).__name__)
    return "" if name in _PLAIN else name


def as_objective(objective: Any, dataset: Dataset) -> Objective | None:
    """Return what users ask for as an objective.

    Parameters
    ----------
    objective : str, callable, Cost, Quantile or Objective
        As `evotree.EvoTreeClassifier` and `evotree.EvoTreeRegressor` take it.
    dataset : Dataset
        Its task decides what is allowed; anything else raises a ValueError.

    Returns
    -------
    Objective or None
        None stands for the accuracy and the squared error, for which the search has kernels.
    """
    if isinstance(objective, Objective):
        return objective
    name: Any = _NAMES_OF_CONFIGURED.get(type(objective), objective)
    allowed = CLASS_OBJECTIVES if dataset.n_classes else TARGET_OBJECTIVES
    if callable(name) and dataset.n_classes:
        return OwnObjective(name)
    if name not in allowed:
        callables = (
            "and callables" if dataset.n_classes else "callables are for classes"
        )
        names = ", ".join(map(repr, allowed))
        raise ValueError(f"objective={name!r}: allowed are {names}; {callables}.")
    return None if name in _PLAIN else LOSSES[name].named(name, dataset, objective)


def compose(
    objective: Any,
    dataset: Dataset,
    *,
    leaves: str | LinearLeaves = "constant",
    max_terms: int | None = None,
    constraint: Any = None,
) -> Objective | None:
    """Return the objective of a loss at some kind of leaves, for all outputs, under a constraint.

    `objective` is a name, a callable, a `Cost`, a `Quantile`, an objective, or None for that of the
    task. What does not go together is refused here, and nowhere else. Linear leaves of counts are
    `models_of_leaves`: trees evolve for the loss with constant leaves.
    """
    names = CLASS_OBJECTIVES if dataset.n_classes else TARGET_OBJECTIVES
    objective = objective or _PLAIN[not dataset.n_classes]
    loss = as_objective(objective, dataset)
    kind: Any = LOSSES[objective] if loss is None else type(loss)
    parts = {
        LINES: leaves not in ("auto", "constant", SCORE),
        OUTPUTS: dataset.outputs is not None,
        ORDER: constraint is not None,
        EXPOSURES: EXPOSURE in dataset.extras,
    }
    if parts[LINES] and dataset.n_classes:
        raise ValueError(
            f"leaves={leaves!r}: leaves of classes hold shares, or points on a score; allowed are "
            f"'auto', 'constant' and {SCORE!r}."
        )
    for part, is_there in parts.items():
        if is_there and part not in kind.goes_with:
            allowed = [repr(one) for one in names if part in LOSSES[one].goes_with]
            raise ValueError(
                f"objective={objective!r} does not go with "
                f"{f'leaves={leaves!r}' if part == LINES else part}: allowed are "
                f"{', '.join(allowed) or 'none'}."
            )
    if parts[OUTPUTS] and parts[ORDER]:
        raise ValueError(
            f"monotonic_cst: y has {dataset.n_outputs} outputs; allowed is None."
        )
    if isinstance(loss, MeansOfOutputs):
        return loss
    lines = loss if isinstance(loss, LinearLeafObjective) else None
    has_lines = leaves != "constant" and LINES in kind.goes_with
    if lines is None and has_lines and kind is not PoissonLoss:
        loss = lines = lines_asked(leaves, dataset, max_terms)
    if parts[OUTPUTS]:
        return MeansOfOutputs() if lines is None else LinesOfOutputs(lines=lines)
    if constraint is None:
        return loss
    return (kind() if loss is None else loss).constrained(constraint)


def models_of_leaves(
    leaves: str | LinearLeaves, dataset: Dataset
) -> LogLinearLeaves | None:
    """Return the models that are made of leaves once trees have evolved, or None.

    Where exposures are made of all rows ``"auto"`` is models, too: they compete with constant
    leaves.
    """
    competes = leaves == "auto" and dataset.exposures_of is not None
    is_asked = competes or leaves not in ("auto", "constant", SCORE)
    if not is_asked or not isinstance(dataset.objective, PoissonLoss):
        return None
    return LogLinearLeaves(features_asked(leaves, dataset))


def loss_of_probabilities(objective: Objective | None, dataset: Dataset) -> str | None:
    """Return by which loss of their probabilities trees are compared, or None.

    For the accuracy it is the log loss, which tells more of few rows than errors do. None where
    labels are judged that need not be the most probable, and for targets.
    """
    if isinstance(objective, ProbabilityScore):
        return objective.kind
    return "log_loss" if dataset.n_classes and objective is None else None
