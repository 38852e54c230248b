"""The regularization path of tree alternating optimization: ever sparser and smaller trees."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone

from evotree.configuration import check_parameters
from evotree.estimators.tao import AlternatingTree, TAOClassifier
from evotree.tree import ObliqueTree, node_depths

COSTS = tuple(float(C) for C in np.logspace(1.0, -2.0, 13))
"""The values of C by default, from 10 down to 0.01."""


@dataclass(frozen=True)
class TAOPath:
    """The trees of a path.

    Attributes
    ----------
    table : DataFrame
        One row a tree: ``C``; ``n_iter``, the sweeps; ``train_score`` and ``test_score``, the share
        of rows that are classified right, or R²; ``leaves``, ``nodes``; ``weights``, those that are
        not 0, and ``weight_share``, their share of all weights of the internal nodes;
        ``path_mean``, ``path_min`` and ``path_max``, the tests that the training rows meet;
        ``cost``, the multiplications that a training row takes in the mean.
    estimators : list of TAOClassifier or TAORegressor
        The fitted estimators; the ``tree_`` of each is over raw features, with exact zeros.
    """

    table: pd.DataFrame
    estimators: list[AlternatingTree]

    @property
    def trees(self) -> list[ObliqueTree]:
        """The trees over raw features."""
        return [estimator.tree_ for estimator in self.estimators]


def tao_path(
    X: Any,
    y: Any,
    *,
    Cs: Sequence[float] = COSTS,
    estimator: AlternatingTree | None = None,
    sample_weight: Any = None,
    X_test: Any = None,
    y_test: Any = None,
) -> TAOPath:
    """Fit trees for falling C, each starting from the one before; a table of them, and the trees.

    With the penalty ``"l1"`` more and more weights are 0; where all weights of a node are, it loses
    a child, so the trees shrink (Carreira-Perpiñán and Tavallali 2018, section 4). The first sweep
    of each C changes all nodes, since what is to be minimized has changed.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        Training rows.
    y : array-like of shape (n_samples,)
        Class labels, or targets.
    Cs : sequence of float above 0
        Values of C; taken from the highest to the lowest. By default 13 from 10 to 0.01.
    estimator : TAOClassifier or TAORegressor, optional
        Parameters of the trees but for C; it is not changed; by default ``TAOClassifier()``.
    sample_weight : array-like of shape (n_samples,), optional
        Weights of the rows, for the fits.
    X_test : array-like of shape (n_test_samples, n_features), optional
        Rows for the test score.
    y_test : array-like of shape (n_test_samples,), optional
        Their labels, or targets.
    """
    costs = sorted((float(C) for C in Cs), reverse=True)
    if not costs or not all(0.0 < C < np.inf for C in costs):
        raise ValueError(
            f"Cs={Cs!r}: allowed are finite numbers above 0, at least one."
        )
    if (X_test is None) != (y_test is None):
        raise ValueError("X_test and y_test: allowed are both or neither.")
    model = clone(TAOClassifier() if estimator is None else estimator).set_params(
        C=costs[0]
    )
    check_parameters(model)
    dataset = model._make_dataset(X, y, sample_weight, model.scaling)
    dataset = dataset.evolved_for(model._objective(dataset))
    individual = model._first(dataset)
    records: list[dict[str, float]] = []
    fitted: list[AlternatingTree] = []
    for C in costs:
        step = clone(model).set_params(C=C)
        step._make_dataset(X, y, sample_weight, model.scaling)
        step.n_iter_ = step._optimize(individual, dataset, monotone=not fitted)
        step._keep_tree(individual.to_tree(), dataset)
        record = {"C": C, "n_iter": step.n_iter_, "train_score": step.score(X, y)}
        if X_test is not None:
            record["test_score"] = step.score(X_test, y_test)
        records.append(record | describe(step.tree_, step.apply(X)))
        fitted.append(step)
    return TAOPath(pd.DataFrame(records), fitted)


def describe(tree: ObliqueTree, leaves: np.ndarray) -> dict[str, float]:
    """Return the sizes of a tree, and what the way to the leaves takes."""
    n_weights = np.count_nonzero(tree.weights, axis=1)
    paid = np.zeros(tree.n_nodes, dtype=np.int64)
    for k in np.flatnonzero(~tree.is_leaf).tolist():
        paid[[tree.left(k), tree.right(k)]] = paid[k] + n_weights[k]
    path = node_depths(tree.subtree_size)[leaves]
    n_tests = tree.n_nodes - tree.n_leaves
    return {
        "leaves": tree.n_leaves,
        "nodes": tree.n_nodes,
        "weights": int(n_weights.sum()),
        "weight_share": float(n_weights.sum() / max(1, n_tests * tree.n_features)),
        "path_mean": float(path.mean()),
        "path_min": int(path.min()),
        "path_max": int(path.max()),
        "cost": float(paid[leaves].mean()),
    }
