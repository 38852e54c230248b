"""Trees of several outputs: one partition, in whose leaves each output has a mean or a line.

Outputs are standardized, and their squared errors are added, so that all have equal weight. The
quality is the mean over the outputs of the share of their variances that is explained. Trees grow
by the leading principal component of what is left to explain in a node; all else asks for all
outputs.

References
----------
De'ath G. (2002). Multivariate regression trees: a new technique for modeling species-environment
relationships. Ecology 83, 1105-1117.
"""

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from evotree._jit import kernel
from evotree.dataset import Dataset, leading_component
from evotree.fitness.base import LINES, OUTPUTS, TargetLoss, routed_rows
from evotree.fitness.linear_leaves import LinearLeafObjective
from evotree.leaf_models import OutputModels
from evotree.tree import ObliqueTree


@kernel
def output_sums(order, start, end, subtree_size, outputs, sample_weight):
    """Return sums over the rows of each node, of shape (n_nodes, n_outputs + 2).

    They are those of w y for each output, of w y**2 over all outputs, and of w.
    """
    n_outputs = outputs.shape[1]
    sums = np.zeros((subtree_size.shape[0], n_outputs + 2))
    for k in range(subtree_size.shape[0] - 1, -1, -1):
        if subtree_size[k] > 1:
            right = k + 1 + subtree_size[k + 1]
            for c in range(n_outputs + 2):
                sums[k, c] = sums[k + 1, c] + sums[right, c]
            continue
        for t in range(start[k], end[k]):
            i = order[t]
            for o in range(n_outputs):
                sums[k, o] += sample_weight[i] * outputs[i, o]
                sums[k, n_outputs] += sample_weight[i] * outputs[i, o] ** 2
            sums[k, n_outputs + 1] += sample_weight[i]
    return sums


@dataclass(frozen=True, eq=False)
class MeansOfOutputs(TargetLoss):
    """The squared error of several outputs, whose means the leaves predict."""

    goes_with = frozenset({LINES, OUTPUTS})

    rows: Any = None

    @property
    def output_names(self) -> tuple[str, ...] | None:  # type: ignore[override]
        """Names of the outputs."""
        return self.rows.output_names

    def whole_loss(self, dataset: Dataset) -> float:
        """Return the squared error of the means."""
        squares = np.square(dataset.targets).sum(axis=1)
        return float(dataset.sample_weight @ squares) or 1.0

    def residuals(self, rows: np.ndarray) -> np.ndarray:
        """Return the leading component of the outputs of some rows."""
        return leading_component(self.rows.outputs[rows], self.rows.sample_weight[rows])

    def _sums(self, tree: Any) -> np.ndarray:
        """Return `output_sums` of the rows that the objective is bound to."""
        return output_sums(
            tree.order,
            tree.start,
            tree.end,
            tree.subtree_size,
            self.rows.outputs,
            self.rows.sample_weight,
        )

    def errors(self, tree: Any, *, splits: bool = False) -> np.ndarray:
        """Return the squared error of each node as a leaf, a share of the whole, (n_nodes,)."""
        sums = self._sums(tree)
        errors = sums[:, -2] - np.square(sums[:, :-2]).sum(axis=1) / sums[:, -1]
        return np.maximum(0.0, errors) / (sums[0, -2] or 1.0)

    def table(self, tree: Any) -> np.ndarray:
        """Return the means of each node, of shape (n_nodes, n_outputs)."""
        return self.values(tree)

    def values(self, tree: Any) -> np.ndarray:
        """Return the means of each node, of shape (n_nodes, n_outputs)."""
        sums = self._sums(tree)
        return sums[:, :-2] / sums[:, -1:]

    def finish(self, tree: ObliqueTree, dataset: Dataset) -> ObliqueTree:
        """Return a fitted tree, over raw features, with the means of the training rows."""
        return dataset.refill(tree)


@dataclass(frozen=True, eq=False)
class LinesOfOutputs(MeansOfOutputs):
    """The squared error of several outputs, each of which has a line in each leaf."""

    # A term has the same price whichever output it is of.

    takes_noise = False

    lines: LinearLeafObjective = LinearLeafObjective()  # how they are fitted
    # Those of each output, bound to its rows.
    each: tuple[LinearLeafObjective, ...] = ()

    @property
    def term_penalty(self) -> float:  # type: ignore[override]
        """What a term of a leaf costs, a share of the whole loss."""
        return self.lines.term_penalty

    def bind(self, dataset: Dataset) -> Self:
        """Return the objective on the rows of a data set."""
        n = dataset.n_outputs
        # The penalty is a share of the squared error of all outputs, lines take one of their own.
        lines = replace(self.lines.penalized(n * self.lines.term_penalty), n_sharing=n)
        each = tuple(lines.bind(dataset.of_output(j)) for j in range(n))
        return replace(self, rows=dataset, each=each)

    def penalized(self, term_penalty: float) -> Self:
        """Return the objective where terms of leaves have another penalty."""
        lines = self.lines.penalized(term_penalty)
        if lines is self.lines:
            return self
        n = len(self.each)
        each = tuple(bound.penalized(n * term_penalty) for bound in self.each)
        return replace(self, lines=lines, each=each)

    def forget(self) -> None:
        """Give the memory of fits free."""
        for lines in self.each:
            lines.forget()

    def residuals(self, rows: np.ndarray) -> np.ndarray:
        """Return the leading component of what the models of some rows leave of their outputs."""
        left = np.column_stack([lines.residuals(rows) for lines in self.each])
        return leading_component(left, self.rows.sample_weight[rows])

    def errors(self, tree: Any, *, splits: bool = False) -> np.ndarray:
        """Return the squared errors of leaves, or of all nodes as leaves, a share of the whole."""
        errors = np.sum(
            [lines.errors(tree, splits=splits) for lines in self.each], axis=0
        )
        return errors / self.whole_loss(self.rows)

    def n_leaf_terms(self, tree: Any) -> int:
        """Return the number of coefficients of all leaves and outputs."""
        return sum(lines.n_leaf_terms(tree) for lines in self.each)

    def n_terms_of_nodes(self, tree: Any) -> np.ndarray:
        """Return the number of coefficients that each node has as a leaf, of shape (n_nodes,)."""
        return np.sum([lines.n_terms_of_nodes(tree) for lines in self.each], axis=0)

    def table(self, tree: Any) -> np.ndarray:
        """Return the models of the leaves, one output after the other."""
        return np.hstack([lines.table(tree) for lines in self.each])

    def held_out_table(self, tree: Any, mass: np.ndarray, reference: Any) -> np.ndarray:
        """Return the models of all nodes, each as if it were a leaf."""
        return np.hstack(
            [lines.held_out_table(tree, mass, reference) for lines in self.each]
        )

    def finish(self, tree: ObliqueTree, dataset: Dataset) -> ObliqueTree:
        """Return a fitted tree, over raw features, with the models of its leaves."""
        tree = dataset.refill(tree)
        bound = self if self.rows is dataset else self.bind(dataset)
        routed = routed_rows(tree, dataset.raw)
        models = (
            lines.raw_models(routed, tree.predicting(tree.values[:, j : j + 1]))
            for j, lines in enumerate(bound.each)
        )
        return tree.with_models(OutputModels(tuple(models)))
