"""Objectives: what trees are evolved for.

An objective says what the leaves of a tree predict, what the tree is worth, and what it costs where
a row reaches one leaf and not another. The last is all that refinement and pruning ask. All of it
follows from what the leaves hold; quantiles and users' own objectives also look at the rows.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from numbers import Real
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np

from evotree.fitness.leaves import (
    F1,
    MCC,
    cheapest_labels,
    quality_of_losses,
    rank_losses,
    rank_risk,
    score_labels,
)
from evotree.fitness.targets import (
    LEAST_MEAN,
    PINBALL,
    POISSON,
    SQUARED,
    leaf_quantiles,
    node_target_losses,
)

if TYPE_CHECKING:
    from evotree.dataset import Dataset
    from evotree.fitness.costs import FeatureCosts
    from evotree.tree import ObliqueTree

Leafed = Any
"""An individual or a `CountedTree`: with ``counts``, ``subtree_size`` and ``weights``."""


class Objective:
    """What trees are evolved for; the greater the quality, the better."""

    loss_code, level = SQUARED, 0.5
    """How `evotree.fitness.targets.target_loss` compares a target with a prediction."""

    is_sum = True
    """Whether the quality is 1 less the risks of the leaves; otherwise that is an approximation."""

    takes_noise = True
    """Whether copies of the rows with noise may smooth the fitness."""

    features: FeatureCosts | None = None
    """What features cost; None where they are free."""

    output_names: tuple[str, ...] | None = None
    """Names of several outputs; None for classes and for one output."""

    constraint: Any = None
    """What all trees have to keep for the leaves' predictions to be those of the objective."""

    @property
    def needs_rows(self) -> bool:
        """Whether the quality of a tree is no function of the sums of its leaves (``counts``)."""
        return True

    @property
    def origin(self) -> float:
        """Where the raw targets have their 0, in the units of the data set."""
        return 0.0

    def bind(self, dataset: Dataset) -> Self:
        """Return the objective on the rows of a data set; the same where it needs none."""
        return self

    def priced(self, term_penalty: float) -> Self:
        """Return the objective where terms of leaves have a penalty."""
        return self

    def forget(self) -> None:
        """Give free what is remembered of trees."""

    def residuals(self, rows: np.ndarray) -> np.ndarray | None:
        """Return what trees are grown to explain of some rows; None for their targets."""
        return None

    def quality(self, tree: Leafed) -> float:
        """Return the quality of a tree."""
        raise NotImplementedError

    def scores(self, tree: Leafed) -> tuple[float, ...]:
        """Return what NSGA-II maximizes besides the complexity, which it minimizes."""
        return (self.quality(tree),)

    def table(self, tree: Leafed) -> np.ndarray:
        """Return what refinement asks: a loss table, or what each node predicts, one column."""
        raise NotImplementedError

    def values(self, tree: Leafed) -> np.ndarray:
        """Return the values of the nodes of a tree for targets, of shape (n_nodes, 1)."""
        return self.table(tree)

    def held_out_table(self, tree: Leafed, mass: np.ndarray, reference: Leafed) -> np.ndarray:
        """Return the table by which rows held out are judged, also where a split were a leaf."""
        return self.table(tree)

    def risk(self, tree: Leafed) -> np.ndarray:
        """Return what each node takes from the quality if it is a leaf, of shape (n_nodes,)."""
        raise NotImplementedError

    def cuts(self, tree: Leafed, node_price: float, split_price: np.ndarray) -> np.ndarray | None:
        """Return the subtrees that do not pay for what they cost; None where the risks tell."""
        return None

    def n_leaf_terms(self, tree: Leafed) -> int:
        """Return the number of coefficients of the models of the leaves."""
        return 0

    def finish(self, tree: ObliqueTree, dataset: Dataset) -> ObliqueTree:
        """Return a fitted tree, over raw features, with what its leaves predict."""
        raise NotImplementedError

    def sharing(self, tree: ObliqueTree) -> np.ndarray | None:
        """Return numbers that are equal where leaves have to have equal coefficients.

        None where leaves are free.
        """
        return None


class ClassObjective(Objective):
    """An objective of classifiers."""

    @property
    def needs_rows(self) -> bool:
        """Whether the quality of a tree is no function of the class weights of its leaves."""
        return False

    def labels(self, tree: Leafed) -> np.ndarray:
        """Return the class that each node predicts as a leaf, of shape (n_nodes,)."""
        labels: np.ndarray = tree.counts.argmax(axis=1)
        return labels

    def class_weights(self, totals: np.ndarray) -> np.ndarray | None:
        """Return what errors on each class count when trees are grown; None where alike."""
        return None

    def risk(self, tree: Leafed) -> np.ndarray:
        """Return what each node takes from the quality if it is a leaf, of shape (n_nodes,)."""
        risk: np.ndarray = (tree.counts * self.table(tree)).sum(axis=1) / tree.counts[0].sum()
        return risk

    def finish(self, tree: ObliqueTree, dataset: Dataset) -> ObliqueTree:
        """Return a fitted tree, over raw features, with what its leaves predict."""
        return tree.labelled(self.labels(tree.counted()))


@dataclass(frozen=True)
class ExpectedCost(ClassObjective):
    """Labels whose errors cost the least: accuracy, balanced accuracy, and given costs.

    Parameters
    ----------
    kind : {"accuracy", "balanced_accuracy", "cost"}
        All errors count alike; those on a class count by one over its weight; or by `costs`. Costs
        are counted in those of the mean error, so that all kinds have penalties of one size: the
        quality is 1 where nothing costs, and 0 where every row is an error.
    costs : tuple of tuple of float, optional
        ``costs[a][b]`` is what it costs to predict class b where class a is true.
    features : FeatureCosts, optional
        What it costs to know the features on the way to a leaf.
    """

    kind: str = "accuracy"
    costs: tuple[tuple[float, ...], ...] | None = None
    features: FeatureCosts | None = None

    def cost_matrix(self, totals: np.ndarray) -> tuple[np.ndarray, float]:
        """Return the costs of a unit of weight by class and label, and what 1 of quality costs."""
        if self.costs is not None:
            costs = np.array(self.costs)
            of_errors = (costs.sum(axis=1) - costs.diagonal()) / max(len(totals) - 1, 1)
            unit = float(totals @ of_errors / totals.sum())
            return costs, unit or 1.0
        costs = 1.0 - np.eye(len(totals))
        if self.kind == "balanced_accuracy":
            present = totals > 0.0
            share = np.where(present, totals, 1.0) * present.sum() / totals.sum()
            costs = np.where(present, 1.0 / share, 0.0)[:, np.newaxis] * costs
        return costs, 1.0

    def labels(self, tree: Leafed) -> np.ndarray:
        """Return the class that costs the least at each node, of shape (n_nodes,)."""
        labels: np.ndarray = cheapest_labels(tree.counts, self.cost_matrix(tree.counts[0])[0])
        return labels

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

    def quality(self, tree: Leafed) -> float:
        """Return the accuracy, the balanced accuracy, or 1 less the costs in mean errors."""
        return float(quality_of_losses(tree.counts, tree.subtree_size, self.table(tree)))


@dataclass(frozen=True)
class ConfusionScore(ClassObjective):
    """A score of the confusion matrix: F1, its mean over classes, or Matthews' correlation.

    The labels of the leaves are those with the highest score.

    Parameters
    ----------
    measure : int
        `evotree.fitness.leaves.F1` or `MCC`.
    positive : int, default=-1
        The class of F1; -1 for the mean over the classes.
    """

    is_sum = False

    measure: int
    positive: int = -1

    def _score(self, tree: Leafed) -> tuple[np.ndarray, np.ndarray, float]:
        labels, costs, score = score_labels(
            tree.counts, tree.subtree_size, self.measure, self.positive
        )
        return labels, costs, score

    def labels(self, tree: Leafed) -> np.ndarray:
        """Return the labels with the highest score, of shape (n_nodes,)."""
        return self._score(tree)[0]

    def table(self, tree: Leafed) -> np.ndarray:
        """Return the loss table of the linear approximation, of shape (n_nodes, n_classes)."""
        labels, costs, _ = self._score(tree)
        return costs.T[labels]

    def held_out_table(self, tree: Leafed, mass: np.ndarray, reference: Leafed) -> np.ndarray:
        """Return the table of a tree, where errors cost what they cost in another one."""
        return self._score(reference)[1].T[self.labels(tree)]

    def quality(self, tree: Leafed) -> float:
        """Return the score."""
        return float(self._score(tree)[2])


@dataclass(frozen=True)
class RankingScore(ClassObjective):
    """The area under the ROC curve, the shares of the leaves being the ranking."""

    is_sum = False

    def table(self, tree: Leafed) -> np.ndarray:
        """Return the loss table, of shape (n_nodes, n_classes)."""
        table: np.ndarray = rank_losses(tree.counts, tree.counts, tree.subtree_size)[0]
        return table

    def held_out_table(self, tree: Leafed, mass: np.ndarray, reference: Leafed) -> np.ndarray:
        """Return the loss table of rows held out, ranked among themselves."""
        table: np.ndarray = rank_losses(tree.counts, mass, tree.subtree_size)[0]
        return table

    def risk(self, tree: Leafed) -> np.ndarray:
        """Return what each node takes from the quality if it is a leaf, of shape (n_nodes,)."""
        risk: np.ndarray = rank_risk(tree.counts, tree.subtree_size, super().risk(tree))
        return risk

    def quality(self, tree: Leafed) -> float:
        """Return the area; of several classes the mean area of one against the others."""
        return float(rank_losses(tree.counts, tree.counts, tree.subtree_size)[1])


@dataclass(frozen=True)
class ProbabilityScore(ClassObjective):
    """A proper score of the leaves' class shares: the logarithmic loss, or Brier's.

    The quality is the share of the root's loss that the tree saves, scikit-learn's D². The shares
    are those of the leaf's rows and of one row more, which has the shares of all rows.

    Parameters
    ----------
    kind : {"log_loss", "brier"}
        The loss.
    """

    kind: str

    def table(self, tree: Leafed) -> np.ndarray:
        """Return the loss table, of shape (n_nodes, n_classes)."""
        totals = tree.counts[0]
        prior = totals / totals.sum()
        weight = tree.counts.sum(axis=1, keepdims=True)
        shares = (tree.counts + prior) / (weight + 1.0)
        if self.kind == "log_loss":
            losses = -np.log(np.maximum(shares, 1e-300))
            whole = -float(prior @ np.log(np.maximum(prior, 1e-300)))
        else:
            losses = 1.0 - 2.0 * shares + (shares**2).sum(axis=1, keepdims=True)
            whole = 1.0 - float(prior @ prior)
        return losses / (whole or 1.0)

    def quality(self, tree: Leafed) -> float:
        """Return the share of the root's loss that is saved."""
        return float(quality_of_losses(tree.counts, tree.subtree_size, self.table(tree)))


class Leaves(NamedTuple):
    """What an objective of the user's own may ask for besides the counts of the leaves.

    Attributes
    ----------
    leaf : ndarray of shape (n_rows,), int
        The leaf of each row, as a position in the counts.
    y : ndarray of shape (n_rows,)
        Class codes, positions in `classes`; or targets, in their own units.
    sample_weight : ndarray of shape (n_rows,)
        Weights of the rows.
    classes : ndarray of shape (n_classes,)
        Class labels.
    extras : dict of str to ndarray of shape (n_rows,)
        Columns that are not features, such as ``"sensitive"``.
    """

    leaf: np.ndarray
    y: np.ndarray
    sample_weight: np.ndarray
    classes: np.ndarray
    extras: Mapping[str, np.ndarray]


@dataclass(frozen=True)
class OwnObjective(ClassObjective):
    """A callable of the user's own.

    Refinement, pruning and the choice of hyperparameters need losses of rows: of the accuracy.

    Parameters
    ----------
    function : callable
        ``function(counts)``, the class weights of the leaves, of shape (n_leaves, n_classes), or
        ``function(counts, leaves)``, with `Leaves`. It returns a finite number, the greater the
        better, or a tuple of several for NSGA-II.
    rows : Dataset, optional
        What it is bound to.
    """

    is_sum = False

    function: Callable[..., Any]
    rows: Any = None

    def bind(self, dataset: Dataset) -> Self:
        """Return the objective on the rows of a data set."""
        return replace(self, rows=dataset)

    def scores(self, tree: Leafed) -> tuple[float, ...]:
        """Return what the callable returns, as a tuple."""
        is_leaf = tree.subtree_size == 1
        given = [tree.counts[is_leaf]]
        if self.needs_rows:
            given.append(self._leaves(tree, is_leaf))
        found = self.function(*given)
        scores = found if isinstance(found, tuple) else (found,)
        if not scores or not all(_is_finite(one) for one in scores):
            name = getattr(self.function, "__name__", repr(self.function))
            raise ValueError(
                f"objective={name} returned {found!r}: allowed are a finite number, and tuples of "
                "these."
            )
        return tuple(float(one) for one in scores)

    @cached_property
    def needs_rows(self) -> bool:
        """Whether the callable takes `Leaves`."""
        return len(_needed_parameters(self.function)) > 1

    def _leaves(self, tree: Leafed, is_leaf: np.ndarray) -> Leaves:
        rows = self.rows
        leaf = np.empty(rows.y.shape[0], dtype=np.int64)
        for place, k in enumerate(np.flatnonzero(is_leaf)):
            leaf[tree.order[tree.start[k] : tree.end[k]]] = place
        y = rows.y if rows.n_classes else rows.target_mean + rows.target_scale * rows.y
        return Leaves(leaf, y, rows.sample_weight, rows.classes, rows.extras)

    def table(self, tree: Leafed) -> np.ndarray:
        """Return the loss table of the accuracy, of shape (n_nodes, n_classes)."""
        return ExpectedCost().table(tree)

    def quality(self, tree: Leafed) -> float:
        """Return the first number that the callable returns."""
        return self.scores(tree)[0]


@dataclass(frozen=True, eq=False)
class TargetObjective(Objective):
    """A loss of targets: the leaves predict what has the least.

    The quality is the share of the root's loss that the tree saves, scikit-learn's D².

    Parameters
    ----------
    loss_code : int
        `evotree.fitness.targets.PINBALL` or `POISSON`.
    level : float in (0, 1), default=0.5
        The quantile that is predicted.
    rows : Dataset, optional
        What it is bound to.
    """

    loss_code: int = PINBALL
    level: float = 0.5
    rows: Any = None

    @property
    def needs_rows(self) -> bool:
        """Whether predictions are quantiles of rows."""
        return self.loss_code == PINBALL

    def bind(self, dataset: Dataset) -> Self:
        """Return the objective on the rows of a data set."""
        return replace(self, rows=dataset)

    @property
    def origin(self) -> float:
        """Where the raw targets have their 0, in the units of the data set."""
        return -self.rows.target_mean / self.rows.target_scale

    def whole_loss(self, dataset: Dataset) -> float:
        """Return the loss of the rows where all have one prediction, the best."""
        n_rows = dataset.y.shape[0]
        order, ends = np.arange(n_rows, dtype=np.int32), np.array([0, n_rows], dtype=np.int32)
        y, weight = dataset.y, dataset.sample_weight
        best = np.zeros(1)  # the mean
        if self.loss_code == PINBALL:
            best = leaf_quantiles(order, ends[:1], ends[1:], y, weight, self.level)
        rule = self.loss_code, self.level, self.origin
        return float(node_target_losses(order, ends[:1], ends[1:], y, weight, best, *rule)[0])

    def predictions(self, tree: Leafed) -> np.ndarray:
        """Return the quantile, or the mean, of the targets of each node, of shape (n_nodes,)."""
        if self.loss_code == POISSON:
            means: np.ndarray = tree.counts[:, 1] / tree.counts[:, 0]
            return means
        found: np.ndarray = leaf_quantiles(
            tree.order, tree.start, tree.end, self.rows.y, self.rows.sample_weight, self.level
        )
        return found

    def node_losses(self, tree: Leafed) -> np.ndarray:
        """Return the loss of the rows of each node if it is a leaf, of shape (n_nodes,)."""
        losses: np.ndarray = node_target_losses(
            tree.order,
            tree.start,
            tree.end,
            self.rows.y,
            self.rows.sample_weight,
            self.predictions(tree),
            self.loss_code,
            self.level,
            self.origin,
        )
        return losses

    def table(self, tree: Leafed) -> np.ndarray:
        """Return what each node predicts, of shape (n_nodes, 1)."""
        return self.predictions(tree)[:, np.newaxis]

    def risk(self, tree: Leafed) -> np.ndarray:
        """Return what each node takes from the quality if it is a leaf, of shape (n_nodes,)."""
        losses = self.node_losses(tree)
        return losses / (losses[0] or 1.0)

    def quality(self, tree: Leafed) -> float:
        """Return the share of the root's loss that is saved."""
        return 1.0 - float(self.risk(tree)[tree.subtree_size == 1].sum())

    def finish(self, tree: ObliqueTree, dataset: Dataset) -> ObliqueTree:
        """Return a fitted tree, over raw features, with what its leaves predict."""
        if self.loss_code == POISSON:
            return tree
        leaves = tree.apply(dataset.raw)
        order = np.argsort(leaves, kind="stable").astype(np.int32)
        start = np.searchsorted(leaves[order], np.arange(len(tree))).astype(np.int32)
        last = np.arange(len(tree)) + tree.subtree_size
        end = np.searchsorted(leaves[order], last).astype(np.int32)
        found = leaf_quantiles(order, start, end, dataset.y, dataset.sample_weight, self.level)
        return tree.predicting(dataset.target_mean + dataset.target_scale * found[:, np.newaxis])


@dataclass(frozen=True)
class PoissonSums(Objective):
    """Poisson's deviance by the sums of leaves, where the rows are elsewhere.

    For rows with counts c and the mean m half of the deviance is
    ``sum w c log c - sum w c log m``. The first sum over all rows is the same for all trees.

    Parameters
    ----------
    zero : float
        Where the raw targets have their 0, in the units of the trees' counts.
    entropy : float
        The sum of w c log c over all rows, in these units.
    """

    zero: float
    entropy: float

    @property
    def needs_rows(self) -> bool:
        """Sums are enough."""
        return False

    def _losses(self, tree: Leafed) -> tuple[np.ndarray, float]:
        """Return the losses of the nodes but for the first sum, and the loss of the root."""
        weight = tree.counts[:, 0]
        total = np.maximum(0.0, tree.counts[:, 1] - self.zero * weight)
        mean = np.maximum(LEAST_MEAN, total / weight)
        losses = weight * mean - total - total * np.log(mean)
        whole = float(losses[0]) + self.entropy
        rounding = 1e-13 * (abs(float(losses[0])) + abs(self.entropy))
        return losses, whole if whole > rounding else math.inf

    def risk(self, tree: Leafed) -> np.ndarray:
        """Return what nodes take from the quality as leaves, but for a part that all trees have."""
        losses, whole = self._losses(tree)
        return losses / whole

    def quality(self, tree: Leafed) -> float:
        """Return the share of the root's loss that is saved; 1 where all targets are equal."""
        losses, whole = self._losses(tree)
        return 1.0 - (float(losses[tree.subtree_size == 1].sum()) + self.entropy) / whole

    def finish(self, tree: ObliqueTree, dataset: Dataset) -> ObliqueTree:
        """Return the tree: its leaves predict their means."""
        return tree


def _needed_parameters(function: Callable[..., Any]) -> list[str]:
    """Return the names of the parameters by position that have no default."""
    parameters = inspect.signature(function).parameters.values()
    places = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return [one.name for one in parameters if one.kind in places and one.default is one.empty]


def _own_objective(function: Callable[..., Any]) -> OwnObjective:
    """Return a callable as an objective; scores of labels, such as scikit-learn's, are refused."""
    needed = _needed_parameters(function)
    if len(needed) > 2 or {"y_true", "y_pred", "y"} & set(needed):
        name = getattr(function, "__name__", repr(function))
        raise ValueError(
            f"objective={name} takes ({', '.join(needed)}): allowed are functions of the class "
            "weights of the leaves, (counts) or (counts, leaves), not of labels; and the names "
            f"{', '.join(map(repr, CLASS_OBJECTIVES))}."
        )
    return OwnObjective(function)


def _is_finite(value: Any) -> bool:
    return isinstance(value, Real) and math.isfinite(value)


CLASS_OBJECTIVES = (
    "accuracy",
    "balanced_accuracy",
    "f1",
    "f1_macro",
    "mcc",
    "log_loss",
    "brier",
    "roc_auc",
    "cost",
)
"""Names of the objectives of classifiers."""

TARGET_OBJECTIVES = ("squared_error", "absolute_error", "quantile", "poisson")
"""Names of the objectives of regressors."""


def as_objective(
    objective: str | Callable[..., Any] | Objective,
    dataset: Dataset,
    *,
    cost_matrix: Any = None,
    features: FeatureCosts | None = None,
    level: float = 0.5,
) -> Objective | None:
    """Return the objective of a name or of a callable.

    Parameters
    ----------
    objective : str, callable or Objective
        A name of `CLASS_OBJECTIVES` or `TARGET_OBJECTIVES`, a function of the leaves' counts, or an
        objective.
    dataset : Dataset
        Training rows: their classes or targets.
    cost_matrix : array-like of shape (n_classes, n_classes), optional
        What it costs to predict the class of the column where that of the row is true.
    features : FeatureCosts, optional
        What features cost.
    level : float in (0, 1), default=0.5
        The quantile of ``"quantile"``.

    Returns
    -------
    Objective or None
        None for the accuracy and the squared error, which need none.

    Raises
    ------
    ValueError
        If there is none of the name for the task, costs are not as described, or targets are
        negative where ``"poisson"`` counts them.
    """
    if isinstance(objective, Objective):
        return objective
    if callable(objective):
        if not dataset.n_classes:
            raise ValueError(
                f"objective={objective!r}: allowed are {', '.join(map(repr, TARGET_OBJECTIVES))}; "
                "callables are for classes."
            )
        return _own_objective(objective)
    allowed = CLASS_OBJECTIVES if dataset.n_classes else TARGET_OBJECTIVES
    if objective not in allowed:
        raise ValueError(
            f"objective={objective!r}: allowed are {', '.join(map(repr, allowed))}"
            f"{', and callables' if dataset.n_classes else ''}."
        )
    if objective == "cost":
        return ExpectedCost("cost", check_costs(cost_matrix, dataset.classes), features)
    if objective in ("accuracy", "squared_error"):
        return None
    if objective == "balanced_accuracy":
        return ExpectedCost("balanced_accuracy")
    if objective == "f1" and dataset.n_classes > 2:
        raise ValueError(
            f"objective='f1': y has {dataset.n_classes} classes; 'f1_macro' is the mean over them."
        )
    if objective == "poisson":
        _check_counts(dataset)
    named: dict[str, Objective] = {
        "f1": ConfusionScore(F1, min(1, dataset.n_classes - 1)),
        "f1_macro": ConfusionScore(F1),
        "mcc": ConfusionScore(MCC),
        "roc_auc": RankingScore(),
        "log_loss": ProbabilityScore("log_loss"),
        "brier": ProbabilityScore("brier"),
        "absolute_error": TargetObjective(),
        "quantile": TargetObjective(level=level),
        "poisson": TargetObjective(POISSON),
    }
    return named[objective]


def check_costs(cost_matrix: Any, classes: np.ndarray) -> tuple[tuple[float, ...], ...]:
    """Return a matrix of costs; that of None costs 1 for each error."""
    n = len(classes)
    given = cost_matrix.tolist() if isinstance(cost_matrix, np.ndarray) else cost_matrix
    if cost_matrix is None:
        costs = 1.0 - np.eye(n)
    else:
        try:
            costs = np.asarray(cost_matrix, dtype=np.float64)
        except (TypeError, ValueError):
            costs = np.empty(0)
    if costs.shape != (n, n):
        raise ValueError(
            f"matrix={given!r}: allowed are {n} rows of {n} numbers, a row for each of "
            f"the classes {classes.tolist()}."
        )
    if not np.isfinite(costs).all() or costs.min(initial=0.0) < 0.0:
        raise ValueError(f"matrix={given!r}: allowed are finite costs of at least 0.")
    if n > 1 and not (costs - np.diag(np.diag(costs))).any():
        raise ValueError(f"matrix={given!r}: at least one error has to cost something.")
    return tuple(map(tuple, costs.tolist()))


def _check_counts(dataset: Dataset) -> None:
    raw = dataset.target_mean + dataset.target_scale * dataset.y
    if raw.min() < -1e-9 * max(1.0, abs(raw).max()) or not raw.any():
        raise ValueError(
            f"objective='poisson': y has targets from {raw.min():g} to {raw.max():g}; allowed are "
            "numbers of at least 0, one above 0."
        )
