"""What an objective answers and declares, and the fitness of individuals: quality less penalties.

An objective is the loss of a row, the leaves that predict, and maybe a constraint that keeps the
predictions in order. It says what the leaves of a tree predict, what the tree is worth, and what it
costs where a row reaches one leaf and not another. The last is all that refinement and pruning ask.

Features may have costs: what it costs to know those that a tree asks for on the way to a leaf. A
column is paid for once on a path, and so is what a group of columns costs together, such as the
blood sample of some analyses (Turney 1995, "Cost-sensitive classification: empirical evaluation of
a hybrid genetic decision tree induction algorithm", JAIR 2, section 2).
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Real
from types import SimpleNamespace
from typing import Any, ClassVar, Self, TypeAlias

import numpy as np
import pandas as pd
from deap import base

from evotree._jit import inner_kernel, kernel
from evotree.dataset import Dataset
from evotree.fitness.leaves import SQUARED, target_loss
from evotree.fitted import Fitted
from evotree.schema import columns_asked, text_of
from evotree.tables.frames import by_label, order_of
from evotree.tree import CountedTree, Individual, ObliqueTree


@dataclass(frozen=True, eq=False)
class FeatureCosts:
    """Prices of the columns that features come from, and of groups of columns."""

    # (n_features, n_items): which items a feature needs; an item is a column, or a group of them.
    is_part: np.ndarray
    prices: np.ndarray  # (n_items,), of the items, at least 0

    @classmethod
    def of(
        cls, feature_costs: Any, names: Sequence[str], column_of: Sequence[int]
    ) -> "FeatureCosts":
        """Return the prices of items, from what users say of columns.

        `feature_costs` is a number for each of the columns, whose names are `names`, or a mapping
        of columns, and tuples of columns that are paid together, to numbers. ``column_of`` is the
        position of the column that each feature was made of.
        """
        if not isinstance(feature_costs, Mapping):
            prices = by_label(feature_costs, names, "features")
            prices = np.asarray(prices, dtype=object)
            if prices.shape != (len(names),):
                raise ValueError(
                    f"features has shape {prices.shape}: allowed are {len(names)} numbers, one for "
                    "each column of X, and mappings."
                )
            feature_costs = dict(enumerate(prices.tolist()))
        items: list[set[int]] = []
        costs = []
        for key, cost in feature_costs.items():
            if not isinstance(cost, Real) or not math.isfinite(cost) or cost < 0.0:
                raise ValueError(
                    f"features[{key!r}]={cost!r}: allowed are finite numbers from 0."
                )
            members = key if isinstance(key, tuple) else (key,)
            item = columns_asked(members, names, "features")
            if not item or item in items:
                raise ValueError(
                    f"features names {key!r}: allowed are columns, and groups of at least one "
                    "column, each once."
                )
            items.append(item)
            costs.append(float(cost))
        is_part = np.array(
            [[c in item for item in items] for c in column_of], dtype=bool
        )
        return cls(is_part.reshape(len(column_of), len(items)), np.array(costs))

    @property
    def alone(self) -> np.ndarray:
        """What each feature costs if it is the only one, of shape (n_features,)."""
        return self.is_part @ self.prices

    def of_paths(self, tree: Any) -> np.ndarray:
        """Return what the features on the way to each node cost, each item once, (n_nodes,)."""
        paid = np.zeros((len(tree.weights), len(self.prices)), dtype=bool)
        is_asked = (tree.weights != 0.0) @ self.is_part
        for k in np.flatnonzero(tree.subtree_size > 1).tolist():
            right = k + 1 + tree.subtree_size[k + 1]
            paid[k + 1] = paid[right] = paid[k] | is_asked[k]
        return (paid * self.prices).sum(axis=1)


def prices_of(fitted: Fitted) -> tuple[np.ndarray, np.ndarray]:
    """Return what errors cost by true and predicted class, and what is asked on the way to nodes.

    Without costs each error has 1, and what is asked nothing.
    """
    tree, known = fitted.tree, fitted.arguments
    matrix = check_costs(known.cost_matrix, np.arange(tree.values.shape[1]))
    items, schema = dict(known.cost_of_columns), fitted.schema
    features = FeatureCosts.of(items, schema.names, schema.column_of.tolist())
    return np.array(matrix), features.of_paths(tree)


def costs_of_rows(fitted: Fitted, X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return what encoded rows cost by their predictions; `y` has positions of classes."""
    matrix, spent = prices_of(fitted)
    tree = fitted.tree
    return tree.label_losses(X, y, matrix) + spent[tree.apply(X)]


def check_costs(cost_matrix: Any, classes: np.ndarray) -> tuple[tuple[float, ...], ...]:
    """Return a matrix of costs; that of None costs 1 for each error."""
    n = len(classes)
    if isinstance(cost_matrix, pd.DataFrame):
        labels = [text_of(label) for label in classes]
        rows, columns = (
            order_of(axis.map(text_of), labels, "matrix") for axis in cost_matrix.axes
        )
        cost_matrix = cost_matrix.to_numpy()[np.ix_(rows, columns)]
    shown = cost_matrix.tolist() if isinstance(cost_matrix, np.ndarray) else cost_matrix
    try:
        costs = np.asarray(
            1.0 - np.eye(n) if cost_matrix is None else cost_matrix, np.float64
        )
    except (TypeError, ValueError):
        costs = np.empty(0)
    if costs.shape != (n, n):
        raise ValueError(
            f"matrix={shown!r}: allowed are {n} rows of {n} numbers, a row for each of "
            f"{classes.tolist()}."
        )
    if not np.isfinite(costs).all() or costs.min(initial=0.0) < 0.0:
        raise ValueError(f"matrix={shown!r}: allowed are finite costs of at least 0.")
    if n > 1 and not (costs - np.diag(np.diag(costs))).any():
        raise ValueError(f"matrix={shown!r}: at least one error has to cost something.")
    return tuple(map(tuple, costs.tolist()))


LINES = "leaves='linear'"
OUTPUTS = "several outputs"
ORDER = "monotonic_cst"
EXPOSURES = "exposure"
"""What a loss may go with besides constant leaves of one output."""


Leafed: TypeAlias = "Individual | CountedTree"
"""What objectives read of a tree: ``counts``, ``subtree_size`` and ``weights``."""


class Objective:
    """What trees are evolved for; the greater the quality, the better."""

    # What a loss declares.
    names: ClassVar[tuple[str, ...]] = ()  # by which users ask for it
    is_of_classes = True  # or of targets
    # Some of `LINES`, `OUTPUTS`, `ORDER` and `EXPOSURES`.
    goes_with: ClassVar[frozenset[str]] = frozenset()
    is_sum = True  # the quality is 1 less the risks of the leaves; or these are an approximation
    takes_noise = True  # copies of the rows with noise may smooth the fitness
    least_rows = 1  # of a leaf, where there is a split

    # What an objective may have.
    features: FeatureCosts | None = None  # what features cost
    # What trees have to keep for the predictions to be the objective's.
    constraint: Any = None

    @classmethod
    def named(cls, name: str, dataset: Dataset, asked: Any = None) -> Self:
        """Return the objective of a name, for the rows of a data set, as users ask for it."""
        return cls()

    @property
    def rule(self) -> tuple[int, float, float]:
        """How a target loses: a code of `evotree.fitness.leaves`, its level, and the origin."""
        return SQUARED, 0.5, 0.0

    def bind(self, dataset: Dataset) -> Self:
        """Return the objective on the rows of a data set; the same where it keeps none."""
        keeps_rows = "rows" in getattr(self, "__dataclass_fields__", ())
        return replace(self, rows=dataset) if keeps_rows else self  # type: ignore[type-var]

    def constrained(self, constraint: Any) -> Self:
        """Return the objective whose predictions keep a constraint; for dataclasses with one."""
        return replace(self, constraint=constraint)  # type: ignore[type-var]

    def penalized(self, term_penalty: float) -> Self:
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
        """Return what refinement asks: a loss table, or what each node predicts."""
        raise NotImplementedError

    def held_out_table(self, tree: Leafed, reference: Leafed) -> np.ndarray:
        """Return the table by which rows held out are compared, also where a split were a leaf."""
        return self.table(tree)

    def risk(self, tree: Leafed) -> np.ndarray:
        """Return what each node takes from the quality if it is a leaf, of shape (n_nodes,)."""
        raise NotImplementedError

    def cuts(
        self, tree: Leafed, node_price: float, split_price: np.ndarray
    ) -> np.ndarray | None:
        """Return the subtrees that do not pay for what they cost; None where the risks tell."""
        return None

    def n_leaf_terms(self, tree: Leafed) -> int:
        """Return the number of coefficients of the models of the leaves."""
        return 0

    def finish(self, tree: ObliqueTree, dataset: Dataset) -> ObliqueTree:
        """Return a fitted tree, over raw features, with what its leaves predict."""
        return tree

    def sharing(self, tree: ObliqueTree) -> np.ndarray | None:
        """Return numbers that are equal where leaves have to have equal coefficients, or None."""
        return None


class ClassLoss(Objective):
    """A loss of classes: leaves have labels, and rows lose by a table of leaves and classes."""

    def labels(self, tree: Leafed) -> np.ndarray:
        """Return the class that each node predicts as a leaf, of shape (n_nodes,)."""
        return tree.counts.argmax(axis=1)

    def class_weights(self, totals: np.ndarray) -> np.ndarray | None:
        """Return what errors on each class count when trees are grown; None where alike."""
        return None

    def quality(self, tree: Leafed) -> float:
        """Return 1 less the mean loss of the rows."""
        lost = (tree.counts * self.table(tree))[tree.subtree_size == 1].sum()
        return 1.0 - float(lost / tree.counts[0].sum())

    def risk(self, tree: Leafed) -> np.ndarray:
        """Return what each node takes from the quality if it is a leaf, of shape (n_nodes,)."""
        return (tree.counts * self.table(tree)).sum(axis=1) / tree.counts[0].sum()

    def finish(self, tree: ObliqueTree, dataset: Dataset) -> ObliqueTree:
        """Return a fitted tree, over raw features, with the labels of its leaves."""
        return tree.labelled(self.labels(tree.counted()))


class TargetLoss(Objective):
    """A loss of targets, whose quality is the share of it that a tree saves, scikit-learn's D²."""

    is_of_classes = False

    unit: float = 1.0  # the whole loss, in the units of `errors`
    term_penalty: float = 0.0  # of each term of a leaf, a share of the whole loss

    def errors(self, tree: Any, *, splits: bool = False) -> np.ndarray:
        """Return the loss of leaves, or of all nodes as leaves, of shape (n_nodes,)."""
        raise NotImplementedError

    def n_terms_of_nodes(self, tree: Any) -> np.ndarray | int:
        """Return the number of coefficients that each node has as a leaf."""
        return 0

    def whole_loss(self, dataset: Dataset) -> float:
        """Return the loss of rows that have one prediction, the best; their mean is 0."""
        return float(dataset.sample_weight @ dataset.y**2)

    def values(self, tree: Any) -> np.ndarray:
        """Return the values of the nodes of a tree, (n_nodes, n_outputs); here their means."""
        return tree.counts[:, 1:2] / tree.counts[:, :1]

    def table(self, tree: Any) -> np.ndarray:
        """Return what each node predicts, of shape (n_nodes, n_outputs)."""
        return self.values(tree)

    def risk(self, tree: Any) -> np.ndarray:
        """Return what each node takes from the quality, and for its terms, if it is a leaf."""
        risk: np.ndarray = self.errors(tree, splits=True) / self.unit
        return risk + self.term_penalty * self.n_terms_of_nodes(tree)

    def quality(self, tree: Any) -> float:
        """Return the share of the loss of one leaf that is saved."""
        return 1.0 - float(self.errors(tree)[tree.subtree_size == 1].sum()) / self.unit


def routed_rows(tree: ObliqueTree, X: np.ndarray) -> SimpleNamespace:
    """Return the partition of rows by a tree over their features, as an individual has it."""
    leaves = tree.apply(X)
    order = np.argsort(leaves, kind="stable").astype(np.int32)
    last = np.arange(len(tree)) + tree.subtree_size
    return SimpleNamespace(
        weights=tree.weights,
        order=order,
        start=np.searchsorted(leaves[order], np.arange(len(tree))).astype(np.int32),
        end=np.searchsorted(leaves[order], last).astype(np.int32),
        subtree_size=tree.subtree_size,
    )


# ---- what rows lose at nodes ---------------------------------------------------------------------


@inner_kernel
def prediction_at(table, k, first, width, X, i):
    """Return what row `i` is predicted at leaf `k`: a number, or by a bounded linear model."""
    predicted = table[k, first]
    if width == 1:
        return predicted
    for j in range(X.shape[1]):
        predicted += table[k, first + 3 + j] * X[i, j]
    return min(max(predicted, table[k, first + 1]), table[k, first + 2])


@inner_kernel
def squared_error_at(table, k, X, outputs, i):
    """Return the squared error of row `i` at leaf `k`, summed over several outputs."""
    width = table.shape[1] // outputs.shape[1]
    total = 0.0
    for o in range(outputs.shape[1]):
        total += (outputs[i, o] - prediction_at(table, k, o * width, width, X, i)) ** 2
    return total


@inner_kernel
def loss_at(table, k, X, y, i, loss, level, origin):
    """Return what a unit of weight of row `i` loses at leaf `k`; `y` is classes or targets."""
    if y.ndim == 2:
        row_loss = squared_error_at(table, k, X, y, i)
    elif isinstance(y[i], float):
        predicted = prediction_at(table, k, 0, table.shape[1], X, i)
        row_loss = target_loss(y[i], predicted, loss, level, origin)
    else:
        row_loss = table[k, y[i]]
    return row_loss


@kernel
def losses_at(table, leaves, X, y, loss, level, origin):
    """Return what a unit of weight of each row loses at its leaf, of shape (n_rows,)."""
    losses = np.empty(leaves.shape[0])
    for i in range(leaves.shape[0]):
        losses[i] = loss_at(table, leaves[i], X, y, i, loss, level, origin)
    return losses


def leaf_table(individual: Individual, n_classes: int) -> np.ndarray:
    """Return what rows lose, or are predicted, at each node, of shape (n_nodes, n_columns)."""
    if individual.objective is not None:
        return np.ascontiguousarray(individual.objective.table(individual))
    if n_classes == 0:
        return (individual.counts[:, 1] / individual.counts[:, 0])[:, np.newaxis]
    return error_table(individual.counts.argmax(axis=1), n_classes)


def error_table(labels: np.ndarray, n_classes: int) -> np.ndarray:
    """Return whether each class is not the label of each node, as losses (n_nodes, n_classes)."""
    return np.not_equal.outer(labels, np.arange(n_classes)).astype(np.float64)


def loss_of_targets(dataset: Dataset) -> tuple[int, float, float]:
    """Return the loss of the targets, its level and origin, as `target_loss` takes them."""
    objective = dataset.bound_objective
    return (SQUARED, 0.5, 0.0) if objective is None else objective.rule


def loss_unit(dataset: Dataset) -> float:
    """Return the loss of which a quality is a share: the whole weight, or that of the root."""
    if dataset.n_classes:
        return dataset.total_weight
    return float((dataset.bound_objective or TargetLoss()).whole_loss(dataset))


# ---- fitness -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class PenalizedAccuracy:
    """Re-classification quality less a penalty for each node (GEA-ODT's fitness function).

    ``fitness = quality - size_penalty * n_nodes``, by default. Any callable with the same signature
    can take its place.
    """

    size_penalty: float = 0.005  # for one node, the papers' alpha
    term_penalty: float = 0.0  # for each term after a split's first

    def __call__(self, individual: Individual) -> tuple[float]:
        """Return the fitness values of an individual, as DEAP's ``evaluate`` does."""
        fitness = individual.quality - self.size_penalty * len(individual)
        if self.term_penalty:
            fitness -= self.term_penalty * (individual.n_terms - len(individual) // 2)
        return (fitness,)


class FitnessQualityComplexity(base.Fitness):
    """Two objectives: the quality, to be maximized, and the complexity, to be minimized."""

    # Of two fitnesses the one of higher quality is greater, of equal quality that of less
    # complexity.

    weights = (1.0, -1.0)


class FitnessTwoScores(base.Fitness):
    """Two scores, to be maximized, and the complexity, to be minimized."""

    weights = (1.0, 1.0, -1.0)


class FitnessThreeScores(base.Fitness):
    """Three scores, to be maximized, and the complexity, to be minimized."""

    weights = (1.0, 1.0, 1.0, -1.0)


FITNESS_OF_SCORES = {
    1: FitnessQualityComplexity,
    2: FitnessTwoScores,
    3: FitnessThreeScores,
}
"""Kinds of fitness for NSGA-II, by the number of scores."""


def quality_and_complexity(individual: Individual) -> tuple[float, float]:
    """Return quality and complexity as objectives of their own, for `FitnessQualityComplexity`."""
    return individual.quality, float(individual.complexity)


def scores_and_complexity(individual: Individual) -> tuple[float, ...]:
    """Return the scores of a callable objective, and the complexity."""
    return (*individual.objective.scores(individual), float(individual.complexity))


def linear_scaling(fitness: np.ndarray, pressure: float) -> np.ndarray:
    """Scale fitness linearly, so that the best is expected to have `pressure` offspring."""
    # ``f' = a f + b`` with ``mean(f') = 1`` and ``max(f') = pressure``; where that would make the
    # worst negative, ``min(f') = 0`` instead (Goldberg 1989, chapter 3). Fitness may be negative.
    mean = (fitness / len(fitness)).cumsum()[-1]
    best, worst = fitness.max(), fitness.min()
    if best - worst <= 1e-15 * max(abs(best), abs(worst)):
        return np.ones(len(fitness))
    slope = (pressure - 1.0) / (best - mean)
    if 1.0 + slope * (worst - mean) < 0.0:
        slope = 1.0 / (mean - worst)
    return np.maximum(0.0, 1.0 + slope * (fitness - mean))
