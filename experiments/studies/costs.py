"""The study of costs: trees evolved for what errors and tests cost, beside others.

Every method is told what errors cost, and some also what features do. All are judged by the mean
cost of rows held out: that of their errors, and that of the features on their way through the tree,
each paid for once.

The costs of errors are ours: the paper of the costs of tests has the same for all errors, at levels
from 10 to 10,000 dollars, of which two are taken. Statlog's (Michie, Spiegelhalter, Taylor 1994,
"Machine Learning, Neural and Statistical Classification") are 5 to 1 for German credit and for
heart disease. On three data sets of a rare class, missing it costs the ratio of the classes.
Optimal trees: van der Linden, de Weerdt and Demirović (2023), NeurIPS.
"""

import tomllib
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.tree import DecisionTreeClassifier

from evotree.configuration import Cost
from evotree.estimators import EvoTreeClassifier
from evotree.experiments.datasets import LoadedData
from evotree.experiments.experiment import innermost
from evotree.experiments.protocols import Task, load_cached
from evotree.fitness.base import FeatureCosts
from evotree.operators.initialization.population import raw_tree
from evotree.tables.columns import encode, fit_columns
from evotree.tree import ObliqueTree
from experiments.agreement import DATA
from experiments.methods.chosen import (
    ChosenClassifier,
    Find,
    import_peer,
    search_pruning,
)
from experiments.methods.trees import flatten
from experiments.study import Results, Study, StudyProtocol, define
from experiments.tables import named, table

# What tests cost, by data set.
TESTS = tomllib.loads((DATA / "test_costs.toml").read_text("utf-8"))
N_FOLDS = 5
MAX_ALPHAS = 20
# Thresholds of a feature, at its quantiles, among which STreeD chooses.
MAX_THRESHOLDS = 9
DEPTH = 3
EVOTREE, ACCURATE = "EvoTree", "EvoTree for accuracy"
CART, CHEAP, STREED = "CART", "CART of cheap features", "STreeD"
ANCHORS = (ACCURATE, CART, CHEAP, STREED)


class CostProblem(NamedTuple):
    """A data set with costs of errors, by class of the row, and perhaps with costs of tests."""

    dataset: str
    error_costs: tuple[float, ...]
    has_tests: bool = False

    @property
    def matrix(self) -> np.ndarray:
        """What it costs to predict the class of a column for a row of that of a row."""
        n = len(self.error_costs)
        return np.array(self.error_costs)[:, np.newaxis] * (1.0 - np.eye(n))

    @property
    def tests(self) -> dict[Hashable, float]:
        """What features cost, as ``feature_costs``: each without what it shares, and each group."""
        if not self.has_tests:
            return {}
        tests = TESTS[self.dataset]["tests"]
        groups = TESTS[self.dataset]["groups"]
        shared = {name: price for members, price in groups for name in members}
        own: dict[Hashable, float] = {
            name: round(price - shared.get(name, 0.0), 2)
            for name, price in tests.items()
        }
        return own | {tuple(members): price for members, price in groups}

    def load(
        self, data_home: Path | None
    ) -> tuple[LoadedData, dict[tuple[int, ...], float]]:
        """Return the data set, as numbers, and what its features cost by their positions.

        Missing numbers are medians of all rows, and the levels of categories those of all rows.
        """
        data = load_cached(self.dataset, data_home)
        rows = data.X
        y = data.y
        layout = TESTS[self.dataset] if self.has_tests else {}
        if "columns" in layout:
            rows = rows.set_axis(layout["columns"], axis=1)
        if "target" in layout:
            target = rows[layout["target"]].to_numpy()
            y = (target > layout["threshold"]).astype(np.int64)
            rows = rows.drop(columns=layout["target"])
        schema = fit_columns(rows)
        X = pd.DataFrame(encode(schema, rows), columns=schema.features)
        costs = FeatureCosts.of(
            self.tests, list(rows.columns), schema.column_of.tolist()
        )
        members = [tuple(np.flatnonzero(item).tolist()) for item in costs.is_part.T]
        return replace(data, X=X, y=y), dict(zip(members, costs.prices, strict=True))


PROBLEMS: Mapping[str, CostProblem] = {
    f"{name}-{cost:g}": CostProblem(
        name, (cost,) * (3 if name == "thyroid" else 2), True
    )
    for cost in (100.0, 400.0)
    for name in TESTS
} | {
    "credit-g-5": CostProblem("credit-g", (5.0, 1.0)),
    "heart-5": CostProblem("heart", (1.0, 5.0)),
    "sick-15": CostProblem("sick", (1.0, 15.0)),
    "climate-crashes-11": CostProblem("climate-crashes", (11.0, 1.0)),
    "blood-transfusion-3": CostProblem("blood-transfusion", (1.0, 3.0)),
}
"""The problems by name: a data set, and what an error costs, or one on the dearer class."""


@dataclass(frozen=True)
class CostProtocol(StudyProtocol):
    """Folds of data sets with costs."""

    def load(self, dataset: str, data_home: Path | None) -> LoadedData:
        """Return the data set of a problem, as numbers."""
        return PROBLEMS[dataset].load(data_home)[0]

    def method_for(self, method: Any, task: Task, data_home: Path | None) -> Any:
        """Return a method that knows the costs."""
        problem = PROBLEMS[task.dataset]
        costs = {
            "cost_matrix": problem.matrix,
            "feature_costs": problem.load(data_home)[1],
        }
        return clone(method).set_params(**costs)


def feature_costs_of(costs: Any, n_features: int) -> FeatureCosts:
    """Return what features cost, given by their positions."""
    return FeatureCosts.of(
        costs or {}, list(map(str, range(n_features))), range(n_features)
    )


def features_paid(model: Any, X: np.ndarray, costs: Any) -> np.ndarray:
    """Return what the features on the way of each row through a fitted tree cost."""
    model = innermost(model)
    if not isinstance(model.tree_, ObliqueTree):
        X = X.astype(np.float32)  # as scikit-learn's trees read rows
    weights, thresholds, subtree_size = raw_tree(model)
    tree = ObliqueTree(
        weights, thresholds, subtree_size, np.zeros((len(thresholds), 1))
    )
    spent = feature_costs_of(costs, X.shape[1]).of_paths(tree)
    return spent[tree.apply(X.astype(np.float64))]


class CostMethod(ChosenClassifier):
    """A method that may know costs, as `evotree.Cost` takes them; finds by itself."""

    def __init__(
        self,
        find: Find,
        cost_matrix: Any = None,
        feature_costs: Mapping[tuple[int, ...], float] | None = None,
        random_state: int = 0,
    ) -> None:
        super().__init__(find, random_state)
        self.cost_matrix = cost_matrix
        self.feature_costs = feature_costs

    def search(self, X: np.ndarray, y: np.ndarray) -> None:
        """Find the estimator."""
        self.best_estimator_ = self.find(X, y, self)


def evolved(
    X: np.ndarray, codes: np.ndarray, method: CostMethod, knows_costs: bool
) -> Any:
    """Return a tree evolved for errors and features that cost, or for the accuracy."""
    model = EvoTreeClassifier(random_state=method.random_state)
    costs = method.feature_costs or None
    if knows_costs and not (costs is None and method.cost_matrix is None):
        model.set_params(objective=Cost(method.cost_matrix, costs))
    return model.fit(X, codes)


def cost_cart(
    X: np.ndarray, codes: np.ndarray, method: CostMethod, is_cheap: bool
) -> Any:
    """Return CART whose rows weigh what an error on them costs, pruned by the costs of folds.

    A cheap one has the features up to a price, which folds choose too.
    """
    costs = method.cost_matrix
    seed = method.random_state

    def saved(
        tree: DecisionTreeClassifier, rows: np.ndarray, true: np.ndarray
    ) -> float:
        errors = costs[true, tree.predict(rows)]
        return -float((errors + features_paid(tree, rows, method.feature_costs)).mean())

    tree = DecisionTreeClassifier(
        class_weight=dict(enumerate(costs.sum(axis=1))), random_state=seed
    )
    of_features = feature_costs_of(method.feature_costs, X.shape[1])
    prices = of_features.is_part @ of_features.prices
    # A feature that is 0 in all rows parts none.
    searches = [
        search_pruning(
            tree, np.where(prices <= price, X, 0.0), codes, seed, saved, MAX_ALPHAS
        )
        for price in (np.unique(prices) if is_cheap else [np.inf])
    ]
    return max(searches, key=lambda search: float(search.best_score_)).best_estimator_


def optimal_tree(X: np.ndarray, codes: np.ndarray, method: CostMethod) -> Any:
    """Return the tree of depth `DEPTH` that costs the least on the training rows, of STreeD.

    It tests whether a feature is above one of `MAX_THRESHOLDS` of its quantiles. Folds of its own
    choose how many splits there are.
    """
    streed = import_peer("pystreed")
    tests = [
        (j, threshold) for j, column in enumerate(X.T) for threshold in cuts(column)
    ]
    rows = np.column_stack([X[:, j] > threshold for j, threshold in tests]).astype(
        np.int32
    )
    matrix = method.cost_matrix
    n_features = X.shape[1]
    prices = specifiers(feature_costs_of(method.feature_costs, n_features), tests)
    solver = streed.STreeDCostSensitiveClassifier(
        max_depth=DEPTH, hyper_tune=True, random_seed=int(method.random_state) % 2**31
    )
    costs = streed.data.CostSpecifier(matrix.tolist(), prices)
    root = solver.fit(rows, codes.astype(np.int32), costs).get_tree()
    labels: list[int] = []

    def read(node: Any) -> Any:
        labels.append(0 if not node.is_leaf_node() else int(node.label))
        if node.is_leaf_node():
            return None
        j, threshold = tests[node.feature]
        return np.eye(n_features)[j], threshold, node.left_child, node.right_child

    tree = flatten(root, read, n_features)
    tree = tree.predicting(np.eye(len(matrix))[labels])
    return SimpleNamespace(
        tree_=tree,
        predict=lambda rows: tree.labels[tree.apply(rows)],
        predict_proba=tree.predict_value,
    )


def specifiers(costs: FeatureCosts, tests: list[tuple[int, float]]) -> list[Any]:
    """Return what tests cost, as STreeD takes it: those of a feature are one range.

    It knows one group of each feature: where a feature needs more items than its own and one that
    is shared, the others are added to its own.
    """
    kind = import_peer("pystreed").data.FeatureCostSpecifier
    n_members = costs.is_part.sum(axis=0)
    ranges = []
    at = 0
    # Features that need the same, as a number and whether it is missing, are paid for together.
    for _, run in groupby(
        tests, lambda test: costs.is_part[test[0]].tobytes() or test[0]
    ):
        features = [j for j, _ in run]
        items = np.flatnonzero(costs.is_part[features[0]])
        price = float(costs.prices[items].sum())
        # The largest item is the group: collecting blood, not what two numbers need.
        group = max(items, key=lambda item: n_members[item], default=-1)
        is_shared = group >= 0 and n_members[group] > len(set(features))
        discount = price - float(costs.prices[group]) if is_shared else price
        name = f"group {group}" if is_shared else f"tests from {at}"
        ranges.append(kind(price, discount, name, at, at + len(features) - 1))
        at += len(features)
    return ranges


def cuts(column: np.ndarray) -> np.ndarray:
    """Return at most `MAX_THRESHOLDS` thresholds that part the values of a feature."""
    values = np.unique(column)
    if len(values) <= MAX_THRESHOLDS + 1:
        return 0.5 * (values[1:] + values[:-1])
    shares = np.linspace(0.0, 1.0, MAX_THRESHOLDS + 2)[1:-1]
    quantiles = np.unique(np.quantile(column, shares, method="lower"))
    return quantiles[quantiles < values[-1]]


METHODS = {
    EVOTREE: CostMethod(partial(evolved, knows_costs=True)),
    ACCURATE: CostMethod(partial(evolved, knows_costs=False)),
    CART: CostMethod(partial(cost_cart, is_cheap=False)),
    CHEAP: CostMethod(partial(cost_cart, is_cheap=True)),
    STREED: CostMethod(optimal_tree),
}


def feature_cost(model: CostMethod, X: np.ndarray, y: np.ndarray) -> float:
    """Return the mean cost of the features that a method asks for."""
    return float(features_paid(model, X, model.feature_costs).mean())


def error_cost(model: CostMethod, X: np.ndarray, y: np.ndarray) -> float:
    """Return the mean cost of the errors of a method."""
    true, predicted = (
        np.searchsorted(model.classes_, labels) for labels in (y, model.predict(X))
    )
    return float(model.cost_matrix[true, predicted].mean())


def n_features_used(model: CostMethod) -> int:
    """Return how many features the tree of a method asks for."""
    return int(raw_tree(innermost(model))[0].any(axis=0).sum())


EXPERIMENT = define(
    "costs",
    list(PROBLEMS),
    METHODS,
    CostProtocol(n_folds=N_FOLDS),
    metrics=("accuracy",),
    scorers={"error_cost": error_cost, "feature_cost": feature_cost},
    measures={"features": n_features_used},
    warm_up=False,
)


def summary_row(means: pd.DataFrame, anchor: str) -> dict[str, str]:
    """Return on how many problems EvoTree costs no more than another method, and is no larger."""
    both = means[["cost", "complexity"]].unstack("method").reindex(list(PROBLEMS))
    both = both[both["cost"][[EVOTREE, anchor]].notna().all(axis=1)]
    cheap, small = (
        both[name][EVOTREE] <= both[name][anchor] + 1e-9
        for name in ("cost", "complexity")
    )
    problems = [PROBLEMS[str(name)] for name in both.index]
    reached = cheap & small
    tested = np.array([problem.has_tests for problem in problems], dtype=bool)
    sets = reached.groupby([[problem.dataset for problem in problems], tested]).all()
    return {
        "beside": anchor,
        "costs no more": f"{cheap.sum()} of {len(cheap)}",
        "and is no larger": f"{reached.sum()} of {len(cheap)}",
        "costs no more, tests cost": f"{cheap[tested].sum()} of {tested.sum()}",
        "both, at all levels": f"{sets.sum()} of {len(sets)}",
    }


def problem_row(means: pd.DataFrame, problem: str) -> dict[str, str]:
    """Return the mean cost of each method on a problem."""
    row = {"problem": problem}
    of_methods = means.loc[problem]
    for method in named(METHODS, of_methods.index):
        cost, complexity = of_methods.loc[method, ["cost", "complexity"]]
        is_least = cost <= of_methods["cost"].min() + 1e-9
        text = f"**{cost:#.4g}**" if is_least else f"{cost:#.4g}"
        row[method] = f"{text} ({complexity:.1f})"
    return row


def report(results: Results) -> dict[str, Any]:
    """Return the tables."""
    runs = results.runs.assign(
        cost=results.runs["error_cost"] + results.runs["feature_cost"]
    )
    means = runs.groupby(["dataset", "method"])[["cost", "complexity"]].mean()
    has_run = means.index.get_level_values
    anchors = named(ANCHORS, has_run("method")) if EVOTREE in has_run("method") else []
    return {
        "summary": table(summary_row(means, anchor) for anchor in anchors),
        "problems": table(
            problem_row(means, name) for name in named(PROBLEMS, has_run("dataset"))
        ),
    }


STUDY = Study(EXPERIMENT, report)
