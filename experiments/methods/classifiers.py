"""The classifiers of the benchmark."""

from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler

from evotree.estimators import EvoTreeClassifier, ObliqueTreeClassifier, TAOClassifier
from experiments.methods import chosen
from experiments.methods.chosen import ChosenClassifier

EVOTREE = "EvoTree"
TAO, CART, LOGISTIC, FOREST = "TAO", "CART", "Logistic", "Forest"
GREEDY = ("CEDT", "OC1", "WODT-groups")  # presets of `ObliqueTreeClassifier`
TREES = (EVOTREE, TAO, "GEA-ODT", "Linear", *GREEDY, CART, "STree")
"""The methods whose model is one tree."""
# Values of C of the logistic regression.
COSTS = tuple(float(C) for C in np.logspace(-3.0, 3.0, 7))


def tuned_logistic(X: np.ndarray, codes: np.ndarray, random_state: int) -> Any:
    """Return logistic regression on standardized features with the best of `COSTS` by folds."""
    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
    folds = chosen.folds_of(codes, chosen.TUNING_FOLDS, random_state)
    grid = {"logisticregression__C": COSTS}
    return GridSearchCV(model, grid, cv=folds).fit(X, codes).best_estimator_


def scaled_stree(X: np.ndarray, codes: np.ndarray, random_state: int) -> Any:
    """Return the tree of the package STree, on features scaled to [-1, 1]."""
    stree = chosen.import_peer("stree").Stree(random_state=random_state)
    model = make_pipeline(MinMaxScaler((-1.0, 1.0)), stree).fit(X, codes)
    model.sizes_ = stree_sizes(model[-1])
    return model


def stree_sizes(stree: Any) -> dict[str, int]:
    """Return the sizes of a tree of the package STree, which has no name for its terms."""
    n_nodes, n_leaves = stree.nodes_leaves()
    n_terms = 0
    for node in stree:
        if not node.is_leaf():
            # Of the machines of all pairs of classes a node keeps the one of its column.
            column = max(node.get_partition_column(), 0)
            n_terms += int(np.count_nonzero(node.get_classifier().coef_[column]))
    return {"nodes": n_nodes, "leaves": n_leaves, "terms": n_terms}


METHODS: dict[str, ClassifierMixin] = {
    EVOTREE: EvoTreeClassifier(),
    TAO: TAOClassifier(),
    "GEA-ODT": EvoTreeClassifier.from_preset("gea_odt", probability="leaf"),
    "Linear": ObliqueTreeClassifier("linear"),
    **{name: ObliqueTreeClassifier.from_preset(name) for name in GREEDY},
    CART: ChosenClassifier(chosen.pruned_cart),
    "STree": ChosenClassifier(scaled_stree),
    LOGISTIC: ChosenClassifier(tuned_logistic),
    "EBM": ChosenClassifier(chosen.boosting_machine),
    FOREST: RandomForestClassifier(chosen.N_TREES),
    "HistGB": HistGradientBoostingClassifier(),
    "XGBoost": ChosenClassifier(chosen.xgboost),
}
"""The methods of the benchmark."""
