"""The methods of the study of readable trees: each has trees of many complexities to choose from.

The *complexity* of a tree is the number of its leaves and of the terms of its splits, the weights
other than 0; that of an axis-parallel tree is its number of nodes. At a *budget*, a method takes
the tree that it finds best itself among its trees of at most that complexity. EvoTree has them in
its front. The others are grown by several settings and pruned, and cross-validation of the training
rows says what each setting is worth.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.svm import l1_min_c
from sklearn.tree import DecisionTreeClassifier

from evotree.estimators import TAOClassifier
from evotree.estimators.local import tao_path
from evotree.experiments.protocols import stratified_folds
from evotree.front import select
from evotree.operators.initialization.population import raw_tree
from evotree.operators.pruning import (
    critical_alphas,
    node_risk,
    prune_tree,
    weakest_links,
)
from evotree.tree import ObliqueTree, node_weights
from experiments.methods.chosen import import_peer

BUDGETS = (5, 10, 20, 40, 80)

DEPTHS = (1, 2, 4, 8)  # depths of the initial trees of TAO, a path each
PATH_COSTS = tuple(float(f"{C:.2g}") for C in np.logspace(1.0, -3.0, 17))
"""Values of C along the paths of TAO."""
C_MULTIPLES = tuple(np.geomspace(1.0, 300.0, 16).tolist())
"""Values of C of the L1 logistic regression, in units of the least that has terms."""
N_THRESHOLDS, MAX_BINARY = 10, 60
"""Quantiles of a column, and binary columns in all, that optimal trees may split by."""
STREED_SIZES = ((0, 0), (2, 1), (2, 2), (2, 3), (3, 4), (3, 5), (3, 6), (3, 7))
"""Depths and numbers of splits, at most, of the optimal trees."""

Grow = Callable[..., list[Any]]


def tree_within(model: Any, budget: float = math.inf) -> ObliqueTree:
    """Return the tree that a fitted method chooses among its trees of at most a complexity."""
    if isinstance(model, CrossValidatedTrees):
        return model.trees_[model.best_within(budget)]
    if model.tree_.complexity <= budget:
        return model.tree_
    return select(model.pareto_front_, f"complexity<={int(budget)}")


def predict_within(model: Any, X: np.ndarray, budget: float = math.inf) -> np.ndarray:
    """Return the classes that the tree of `tree_within` predicts for rows."""
    tree = tree_within(model, budget)
    if isinstance(model, CrossValidatedTrees):
        return model.classes_[predicted_codes(tree, X)]
    return model.predict(X, tree)  # which may stand on a score


def predicted_codes(tree: ObliqueTree, X: np.ndarray) -> np.ndarray:
    """Return the code of the class that a tree predicts for each row."""
    return tree.values.argmax(axis=1)[tree.apply(X)]


def with_counts(
    tree: ObliqueTree, X: np.ndarray, codes: np.ndarray, n_classes: int
) -> ObliqueTree:
    """Return a tree whose nodes know the training rows that reach them."""
    leaves = tree.apply(X)
    of_class = (
        node_weights(leaves, codes == code, tree.subtree_size)
        for code in range(n_classes)
    )
    counts = np.column_stack([np.asarray(one, dtype=np.float64) for one in of_class])
    total = counts.sum(axis=1)
    shares = counts / np.maximum(total, 1.0)[:, None]
    return ObliqueTree(
        tree.weights, tree.thresholds, tree.subtree_size, shares, None, total
    )


class CrossValidatedTrees(ClassifierMixin, BaseEstimator):
    """Trees by several settings, among which folds of the training rows choose.

    ``grow(X, codes, random_state)`` returns a tree for each setting, of any values. The prunings of
    each by their cost-complexity are settings of their own (Breiman et al. 1984, section 3.4),
    unless ``prunes`` is False; a single leaf always is. A setting is worth the share of the
    training rows that its trees classify right where they are held out. ``trees_`` are by rising
    complexity, over raw features; ``n_right_`` of held-out rows are right; ``tree_`` is the best.
    """

    def __init__(
        self, grow: Grow, n_folds: int, prunes: bool = True, random_state: int = 0
    ) -> None:
        self.grow = grow
        self.n_folds = n_folds
        self.prunes = prunes
        self.random_state = random_state

    def fit(self, X: np.ndarray, y: np.ndarray) -> CrossValidatedTrees:
        """Grow the trees and let folds say what each setting is worth."""
        self.classes_, codes = np.unique(y, return_inverse=True)
        n_classes = len(self.classes_)
        grown = self.counted(X, codes, n_classes)
        settings = [
            (at, alpha)
            for at, tree in enumerate(grown)
            for alpha in self.penalties(tree)
        ]
        trees = list(prunings(grown, settings))
        n_right = np.zeros(len(settings), dtype=np.int64)
        for train, test in stratified_folds(y, self.n_folds, self.random_state):
            of_fold = prunings(
                self.counted(X[train], codes[train], n_classes), settings
            )
            for at, tree in enumerate(of_fold):
                n_right[at] += np.count_nonzero(
                    predicted_codes(tree, X[test]) == codes[test]
                )
        sizes = np.array([tree.complexity for tree in trees])
        order = np.argsort(sizes, kind="stable")
        self.trees_ = [trees[at] for at in order]
        self.complexities_ = sizes[order]
        self.n_right_ = n_right[order]
        self.tree_ = tree_within(self)
        return self

    def best_within(self, budget: float) -> int:
        """Return the position of the best tree within a budget, the least complex of equals."""
        return int(
            np.argmax(
                self.n_right_[: np.searchsorted(self.complexities_, budget, "right")]
            )
        )

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Predict the classes of rows."""
        return predict_within(self, X)

    def counted(
        self, X: np.ndarray, codes: np.ndarray, n_classes: int
    ) -> list[ObliqueTree]:
        """Grow trees with counts."""
        # A class of few rows may be missing in a fold.
        dense = np.unique(codes, return_inverse=True)[1]
        grown = self.grow(X, dense, self.random_state)
        return [with_counts(tree, X, codes, n_classes) for tree in grown]

    def penalties(self, tree: ObliqueTree) -> np.ndarray:
        """Return the penalties of the prunings that are tried of a tree, up to a single leaf."""
        if not self.prunes:
            return np.array([-1.0, np.inf])
        links = critical_alphas(collapse_penalties(tree), tree.subtree_size)
        # Each pruning is the cheapest from its own link to the next; the trees of the folds have
        # other links, so the middle stands for it.
        return np.append(np.sqrt(links[:-1] * links[1:]), np.inf)


def collapse_penalties(tree: ObliqueTree) -> np.ndarray:
    """Return the penalty for a leaf from which on each node of a tree with counts is a leaf."""
    counts = tree.values * np.asarray(tree.n_node_samples)[:, None]
    return weakest_links(node_risk(counts, counts.shape[1], "gini"), tree.subtree_size)


def prunings(
    trees: list[ObliqueTree], settings: list[tuple[int, float]]
) -> Iterator[ObliqueTree]:
    """Yield the pruning of each setting, which is the whole tree where its penalty is below 0."""
    for at, alpha in settings:
        tree = trees[min(at, len(trees) - 1)]
        if alpha >= 0.0:
            tree = prune_tree(tree, collapse_penalties(tree) <= alpha)
        yield tree


def peer(
    predict: Callable[..., np.ndarray], n_leaves: int, n_terms: int, n_classes: int
) -> Any:
    """Return a model of another package in the place of a tree: its codes, and its size."""
    return SimpleNamespace(
        apply=predict,
        values=np.eye(n_classes),
        n_leaves=n_leaves,
        n_terms=n_terms,
        complexity=n_leaves + n_terms,
    )


class CrossValidatedPeers(CrossValidatedTrees):
    """Models of other packages by several settings: ``grow`` returns a `peer` for each."""

    @property
    def sizes_(self) -> dict[str, int]:
        """The size of the best model."""
        return {"leaves": self.tree_.n_leaves, "terms": self.tree_.n_terms}

    def counted(self, X: np.ndarray, codes: np.ndarray, n_classes: int) -> list[Any]:
        """Fit the models."""
        return self.grow(X, codes, self.random_state)

    def penalties(self, tree: Any) -> np.ndarray:
        """Return that a model has no prunings."""
        return np.array([-1.0])


def grow_cart(X: np.ndarray, codes: np.ndarray, random_state: int) -> list[ObliqueTree]:
    """Grow scikit-learn's tree until its leaves are pure."""
    return [
        fitted_tree(DecisionTreeClassifier(random_state=random_state).fit(X, codes))
    ]


def fitted_tree(model: Any) -> ObliqueTree:
    """Return the tree of a fitted model, of ours or of scikit-learn, without its values."""
    weights, thresholds, subtree_size = raw_tree(model)
    return ObliqueTree(
        weights, thresholds, subtree_size, np.zeros((len(thresholds), 1))
    )


def grow_tao(
    X: np.ndarray,
    codes: np.ndarray,
    random_state: int,
    depths: Any = DEPTHS,
    Cs: Any = PATH_COSTS,
) -> list[ObliqueTree]:
    """Optimize trees of some depths alternately with an L1 penalty, along paths of falling C."""
    models = (TAOClassifier(depth=depth, random_state=random_state) for depth in depths)
    paths = (tao_path(X, codes, Cs=Cs, estimator=model) for model in models)
    return [model.tree_ for path in paths for model in path.estimators]


def fit_logistic(X: np.ndarray, codes: np.ndarray, random_state: int) -> list[Any]:
    """Fit scikit-learn's L1 logistic regressions of standardized columns, each class by itself.

    They are counted as scores of `EvoTreeClassifier` are: of two classes as one split.
    """
    n_classes = int(codes.max()) + 1
    least = l1_min_c(StandardScaler().fit_transform(X), codes, loss="log")
    models = []
    for multiple in C_MULTIPLES:
        logistic = LogisticRegression(
            l1_ratio=1.0,
            C=least * multiple,
            solver="liblinear",
            random_state=random_state,
        )
        model = make_pipeline(StandardScaler(), OneVsRestClassifier(logistic))
        of_classes = model.fit(X, codes)[-1].estimators_
        n_terms = sum(int(np.count_nonzero(one.coef_)) for one in of_classes)
        n_leaves = 2 if n_terms and n_classes == 2 else 1
        models.append(peer(model.predict, n_leaves, n_terms, n_classes))
    return models


def thresholds_of(
    X: np.ndarray, codes: np.ndarray, random_state: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return columns and their thresholds, which make them binary: quantiles of the values.

    Of too many those are kept that a random forest finds most important, as pystreed itself does.
    """
    shares = np.linspace(0.0, 1.0, N_THRESHOLDS + 2)[1:-1]
    pairs = [
        (j, threshold)
        for j, column in enumerate(X.T)
        for threshold in np.unique(np.quantile(column, shares, method="lower"))
        if threshold < column.max()
    ]
    columns, thresholds = np.array(pairs).T
    columns = columns.astype(int)
    forest = RandomForestClassifier(random_state=random_state)
    importances = (
        forest.fit(X[:, columns] > thresholds, codes).feature_importances_
        if len(columns) > MAX_BINARY
        else np.zeros(len(columns))
    )
    kept = np.argsort(-importances, kind="stable")[:MAX_BINARY]
    return columns[kept], thresholds[kept]


def grow_streed(X: np.ndarray, codes: np.ndarray, random_state: int) -> list[Any]:
    """Grow pystreed's optimal trees of binary columns, of each of `STREED_SIZES`."""
    columns, thresholds = thresholds_of(X, codes, random_state)
    binary = FunctionTransformer(lambda X: np.int32(X[:, columns] > thresholds))
    models = []
    for depth, n_splits in STREED_SIZES:
        tree = import_peer("pystreed").STreeDClassifier("accuracy", depth, n_splits)
        predict = make_pipeline(binary, tree).fit(X, codes).predict
        n_leaves = int(tree.get_n_leaves())
        models.append(peer(predict, n_leaves, n_leaves - 1, int(codes.max()) + 1))
    return models


CART = CrossValidatedTrees(grow_cart, 5)
TAO = CrossValidatedTrees(grow_tao, 3, prunes=False)
LOGISTIC = CrossValidatedPeers(fit_logistic, 3)
STREED = CrossValidatedPeers(grow_streed, 3)
