"""What an objective answers, and what it declares.

An objective is the loss of a row, the leaves that predict, and maybe a constraint that keeps the
predictions in order. It says what the leaves of a tree predict, what the tree is worth, and what it
costs where a row reaches one leaf and not another. The last is all that refinement and pruning ask.
"""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any, ClassVar, Self, TypeAlias

import numpy as np

from evotree.dataset import Dataset
from evotree.fitness.costs import FeatureCosts
from evotree.fitness.leaves import SQUARED, quality_of_losses
from evotree.tree import CountedTree, Individual, ObliqueTree

LINES = "leaves='linear'"
OUTPUTS = "several outputs"
ORDER = "monotonic_cst"
"""What a loss may go with besides constant leaves of one output."""


Leafed: TypeAlias = "Individual | CountedTree"
"""What objectives read of a tree: ``counts``, ``subtree_size`` and ``weights``."""


class Objective:
    """What trees are evolved for; the greater the quality, the better."""

    # What a loss declares.
    names: ClassVar[tuple[str, ...]] = ()  # by which users ask for it
    is_of_classes = True  # or of targets
    goes_with: ClassVar[frozenset[str]] = (
        frozenset()
    )  # some of `LINES`, `OUTPUTS` and `ORDER`
    is_sum = True  # the quality is 1 less the risks of the leaves; or these are an approximation
    takes_noise = True  # copies of the rows with noise may smooth the fitness
    needs_rows: bool = (
        False  # the quality is no function of the sums of the leaves (``counts``)
    )

    # What an objective may have.
    features: FeatureCosts | None = None  # what features cost
    output_names: tuple[str, ...] | None = None  # of several outputs
    constraint: Any = (
        None  # what trees have to keep for the predictions to be the objective's
    )

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

    def held_out_table(
        self, tree: Leafed, mass: np.ndarray, reference: Leafed
    ) -> np.ndarray:
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
        return float(
            quality_of_losses(tree.counts, tree.subtree_size, self.table(tree))
        )

    def risk(self, tree: Leafed) -> np.ndarray:
        """Return what each node takes from the quality if it is a leaf, of shape (n_nodes,)."""
        return (tree.counts * self.table(tree)).sum(axis=1) / tree.counts[0].sum()

    def finish(self, tree: ObliqueTree, dataset: Dataset) -> ObliqueTree:
        """Return a fitted tree, over raw features, with the labels of its leaves."""
        return tree.labelled(self.labels(tree.counted()))


class TargetLoss(Objective):
    """A loss of targets, whose quality is the share of it that a tree saves, scikit-learn's D²."""

    is_of_classes = False
    needs_rows = True

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
        """Return the values of the nodes of a tree, of shape (n_nodes, n_outputs)."""
        return self.table(tree)

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
    start = np.searchsorted(leaves[order], np.arange(len(tree))).astype(np.int32)
    last = np.arange(len(tree)) + tree.subtree_size
    end = np.searchsorted(leaves[order], last).astype(np.int32)
    parts = {
        "order": order,
        "start": start,
        "end": end,
        "subtree_size": tree.subtree_size,
    }
    return SimpleNamespace(weights=tree.weights, **parts)
