"""The systems of the benchmark: made, fitted, and their trees measured.

References
----------
Breiman L., Friedman J. H., Olshen R. A., Stone C. J. (1984). Classification and Regression Trees.
Wadsworth.

Montañana R., Gámez J. A., Puerta J. M. (2021). STree: a single multi-class oblique decision tree
based on support vector machines. Lecture Notes in Computer Science 12882, 54-64.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.datasets import load_iris
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import MinMaxScaler
from sklearn.tree import DecisionTreeClassifier

from evotree.estimators import GREEDY_PRESETS, EvoTreeClassifier, ObliqueTreeClassifier
from evotree.experiments.problems import make_problem
from evotree.experiments.protocols import make_method, stratified_folds

EVOTREE, FOREST = "EvoTree", "Forest"
SYSTEMS = (EVOTREE, "TAO", "GEA-ODT", *GREEDY_PRESETS, "Linear", "CART", "STree", FOREST)
N_TREES = 500
PRUNING_FOLDS = 5
MAX_ALPHAS = 30


def make_system(name: str, random_state: int) -> ClassifierMixin:
    """Make the classifier of a system.

    Parameters
    ----------
    name : str
        One of `SYSTEMS`.
    random_state : int
        Seed.

    Returns
    -------
    ClassifierMixin
        Not fitted; of CART the tree that is not pruned.

    Raises
    ------
    ModuleNotFoundError
        If the system is STree and its package is not installed.
    """
    if name in GREEDY_PRESETS:
        return make_method(name, random_state)
    match name:
        case "EvoTree":
            return EvoTreeClassifier(random_state=random_state)
        case "GEA-ODT":
            return EvoTreeClassifier.from_preset("gea_odt", random_state=random_state)
        case "TAO":
            return import_module("evotree.estimators").TAOClassifier(random_state=random_state)
        case "Linear":
            return ObliqueTreeClassifier("linear", random_state=random_state)
        case "CART":
            return DecisionTreeClassifier(random_state=random_state)
        case "Forest":
            return RandomForestClassifier(N_TREES, random_state=random_state)
        case "STree":
            return make_pipeline(MinMaxScaler((-1.0, 1.0)), _stree(random_state))
    raise ValueError(f"name={name!r}: allowed are {', '.join(SYSTEMS)}.")


def _stree(random_state: int) -> ClassifierMixin:
    try:
        stree = import_module("stree")
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "STree is not installed; pip install stree==1.4.2 installs it."
        ) from error
    return stree.Stree(random_state=random_state)


def prune_by_folds(
    tree: DecisionTreeClassifier, X: np.ndarray, y: np.ndarray, random_state: int
) -> DecisionTreeClassifier:
    """Prune a tree by cost-complexity as five folds advise; of equal penalties take the largest.

    Parameters
    ----------
    tree : DecisionTreeClassifier
        Not fitted.
    X : ndarray of shape (n_samples, n_features)
        Rows to fit on.
    y : ndarray of shape (n_samples,)
        Their labels.
    random_state : int
        Seed of the folds.

    Returns
    -------
    DecisionTreeClassifier
        Fitted on all rows, with one of at most `MAX_ALPHAS` penalties of its path.
    """
    path = np.unique(np.maximum(tree.cost_complexity_pruning_path(X, y).ccp_alphas, 0.0))
    shares = np.linspace(0.0, 1.0, min(len(path), MAX_ALPHAS))
    alphas = np.quantile(path, shares, method="nearest")[::-1]
    folds = stratified_folds(y, PRUNING_FOLDS, random_state)
    # The search keeps the first of equal penalties: the smallest tree.
    return GridSearchCV(tree, {"ccp_alpha": alphas}, cv=folds).fit(X, y).best_estimator_


def fit_system(name: str, X: np.ndarray, y: np.ndarray, random_state: int) -> ClassifierMixin:
    """Return the classifier of a system, fitted."""
    system = make_system(name, random_state)
    if name == "CART":
        return prune_by_folds(system, X, y, random_state)
    return system.fit(X, y)


@cache
def warm_up(name: str) -> None:
    """Compile what a system needs, for two classes and for three."""
    if name not in ("CART", "STree", FOREST):
        for X, y in (make_problem("chessboard4", 100, 0), load_iris(return_X_y=True)):
            fit_system(name, X, y, 0)


def measure_size(model: ClassifierMixin) -> dict[str, int]:
    """Return the nodes, the leaves and the weights other than 0 of a tree, or of all of a forest.

    A test of one feature has one weight.
    """
    if isinstance(model, Pipeline):
        return _measure_stree(model[-1])
    if isinstance(model, DecisionTreeClassifier | RandomForestClassifier):
        trees = [member.tree_ for member in getattr(model, "estimators_", [model])]
        nodes, leaves = (sum(getattr(t, n) for t in trees) for n in ("node_count", "n_leaves"))
        return {"nodes": int(nodes), "leaves": int(leaves), "nonzero_weights": int(nodes - leaves)}
    tree = model.tree_
    weights = int(np.count_nonzero(tree.weights))
    return {"nodes": tree.n_nodes, "leaves": tree.n_leaves, "nonzero_weights": weights}


def _measure_stree(stree: Any) -> dict[str, int]:
    nodes, leaves = stree.nodes_leaves()
    # Of the machines of all pairs of classes a node keeps the one of its column.
    weights = sum(
        np.count_nonzero(node.get_classifier().coef_[max(node.get_partition_column(), 0)])
        for node in stree
        if not node.is_leaf()
    )
    return {"nodes": nodes, "leaves": leaves, "nonzero_weights": int(weights)}
