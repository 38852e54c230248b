"""The study of costs: trees evolved for what errors and tests cost, beside others.

Every method is told what errors cost, and some also what features do
(`evotree.experiments.studies.cost_problems`). All are judged by the mean cost of rows held out:
that of their errors, and that of the features on their way through the tree, each paid for once.

References
----------
van der Linden J. G. M., de Weerdt M. M., Demirović E. (2023). Necessary and sufficient conditions
for optimal decision trees using dynamic programming. NeurIPS.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.model_selection import GridSearchCV
from sklearn.tree import DecisionTreeClassifier

from evotree.estimators import EvoTreeClassifier
from evotree.experiments.datasets import LoadedData
from evotree.experiments.experiment import Experiment
from evotree.experiments.markdown import markdown_table
from evotree.experiments.measures import innermost
from evotree.experiments.protocols import Task, stratified_folds
from evotree.experiments.studies.cost_problems import PROBLEMS
from evotree.experiments.studies.peers import Wrapper, import_peer
from evotree.experiments.studies.readable_trees import flatten
from evotree.experiments.studies.study import Results, Study, StudyProtocol
from evotree.fitness.costs import FeatureCosts
from evotree.operators.initialization.seeding import raw_tree
from evotree.tree import ObliqueTree

N_FOLDS = 5
TUNING_FOLDS = 5
MAX_ALPHAS = 20
MAX_THRESHOLDS = 9
"""Thresholds of a feature, at its quantiles, among which STreeD chooses."""
DEPTH = 3
EVOTREE, ACCURATE = "EvoTree", "EvoTree for accuracy"
CART, CHEAP, STREED = "CART", "CART of cheap features", "STreeD"
ANCHORS = (ACCURATE, CART, CHEAP, STREED)


@dataclass(frozen=True)
class CostProtocol(StudyProtocol):
    """Folds of data sets with costs."""

    def load(self, dataset: str, data_home: Path | None) -> LoadedData:
        """Return the data set of a problem, as numbers."""
        return PROBLEMS[dataset].load(data_home)[0]

    def method_for(
        self, method: BaseEstimator, task: Task, data_home: Path | None
    ) -> BaseEstimator:
        """Return a method that is told the costs."""
        costs = PROBLEMS[task.dataset].load(data_home)[1]
        told: BaseEstimator = clone(method)
        return told.set_params(cost_matrix=PROBLEMS[task.dataset].matrix, feature_costs=costs)


# ---- what a tree costs ---------------------------------------------------------------------------


def feature_costs_of(costs: Mapping[Any, float] | None, n_features: int) -> FeatureCosts:
    """Return what features cost, given by their positions."""
    names = [str(j) for j in range(n_features)]
    return FeatureCosts.of(costs or {}, names, range(n_features))


def features_paid(model: Any, X: np.ndarray, costs: Mapping[Any, float] | None) -> np.ndarray:
    """Return what the features on the way of each row through a fitted tree cost.

    Parameters
    ----------
    model : estimator
        Fitted, with a tree of this package or of scikit-learn.
    X : ndarray of shape (n_samples, n_features)
        Rows.
    costs : mapping of tuple of int to float
        What features cost by their positions; None where they are free.

    Returns
    -------
    ndarray of shape (n_samples,)
        At least 0.
    """
    model = innermost(model)
    if not isinstance(model.tree_, ObliqueTree):
        X = X.astype(np.float32)  # as scikit-learn's trees read rows
    weights, thresholds, subtree_size = raw_tree(model)
    values = np.zeros((len(thresholds), 1))
    tree = ObliqueTree(weights, thresholds, subtree_size, values)
    spent = feature_costs_of(costs, X.shape[1]).of_paths(tree)
    paid: np.ndarray = spent[tree.apply(X.astype(np.float64))]
    return paid


def feature_cost(model: CostMethod, X: np.ndarray, y: np.ndarray) -> float:
    """Return the mean cost of the features that a method asks for."""
    return float(features_paid(model, X, model.feature_costs).mean())


def error_cost(model: CostMethod, X: np.ndarray, y: np.ndarray) -> float:
    """Return the mean cost of the errors of a method."""
    true, predicted = (np.searchsorted(model.classes_, one) for one in (y, model.predict(X)))
    assert model.cost_matrix is not None
    return float(model.cost_matrix[true, predicted].mean())


def n_features_used(model: CostMethod) -> int:
    """Return how many features the tree of a method asks for."""
    return int(raw_tree(innermost(model))[0].any(axis=0).sum())


# ---- methods -------------------------------------------------------------------------------------


class CostMethod(Wrapper):
    """A method that may be told costs; without any, it finds the most accurate tree.

    Parameters
    ----------
    cost_matrix : ndarray of shape (n_classes, n_classes), optional
        What it costs to predict the class of a column for a row of that of a row.
    feature_costs : mapping of tuple of int to float, optional
        What features cost by their positions.
    random_state : int, default=0
        Seed.
    """

    def __init__(
        self,
        cost_matrix: np.ndarray | None = None,
        feature_costs: Mapping[tuple[int, ...], float] | None = None,
        random_state: int = 0,
    ) -> None:
        super().__init__(random_state)
        self.cost_matrix = cost_matrix
        self.feature_costs = feature_costs


class EvolvedForCosts(CostMethod):
    """A tree evolved for errors and features that cost."""

    def find(self, X: np.ndarray, codes: np.ndarray) -> Any:
        """Fit."""
        return EvoTreeClassifier(
            cost_matrix=self.cost_matrix,
            feature_costs=self.feature_costs or None,
            random_state=self.random_state,
        ).fit(X, codes)


class EvolvedForAccuracy(CostMethod):
    """A tree evolved for the accuracy, whatever errors and features cost."""

    def find(self, X: np.ndarray, codes: np.ndarray) -> Any:
        """Fit."""
        return EvoTreeClassifier(random_state=self.random_state).fit(X, codes)


class CostCart(CostMethod):
    """CART whose rows weigh what an error on them costs, pruned by the costs of folds.

    One of at most `MAX_ALPHAS` penalties of its path is chosen, the features' costs included.
    """

    def find(self, X: np.ndarray, codes: np.ndarray) -> Any:
        """Choose the penalty and fit on all rows."""
        return self.search(X, codes).best_estimator_

    def search(self, X: np.ndarray, codes: np.ndarray) -> GridSearchCV:
        """Return the search for the penalty, fitted."""
        costs = 1.0 - np.eye(codes.max() + 1) if self.cost_matrix is None else self.cost_matrix

        def saved(tree: DecisionTreeClassifier, rows: np.ndarray, true: np.ndarray) -> float:
            errors = costs[true, tree.predict(rows)]
            return -float((errors + features_paid(tree, rows, self.feature_costs)).mean())

        weight = dict(enumerate(costs.sum(axis=1)))
        tree = DecisionTreeClassifier(class_weight=weight, random_state=self.random_state)
        path = np.unique(np.maximum(tree.cost_complexity_pruning_path(X, codes).ccp_alphas, 0.0))
        shares = np.linspace(0.0, 1.0, min(len(path), MAX_ALPHAS))
        alphas = np.quantile(path, shares, method="nearest")[::-1]
        folds = stratified_folds(codes, TUNING_FOLDS, self.random_state)
        return GridSearchCV(tree, {"ccp_alpha": alphas}, cv=folds, scoring=saved).fit(X, codes)


class CheapCart(CostCart):
    """`CostCart` on the features up to a price, which folds choose too."""

    def find(self, X: np.ndarray, codes: np.ndarray) -> Any:
        """Choose the price and the penalty and fit on all rows."""
        costs = feature_costs_of(self.feature_costs, X.shape[1])
        prices = costs.is_part @ costs.prices
        # A feature that is 0 in all rows parts none.
        searches = [
            self.search(np.where(prices <= price, X, 0.0), codes) for price in np.unique(prices)
        ]
        return max(searches, key=lambda search: float(search.best_score_)).best_estimator_


class LabelledTree:
    """A tree as a classifier of codes.

    Parameters
    ----------
    tree : ObliqueTree
        The values of its leaves are 1 for their label, 0 for others.
    """

    def __init__(self, tree: ObliqueTree) -> None:
        self.tree_ = tree

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Return the codes of the classes of rows."""
        codes: np.ndarray = self.tree_.labels[self.tree_.apply(X)]
        return codes

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        """Return 1 for the label of each row, 0 for others."""
        return self.tree_.predict_value(X)


class OptimalTree(CostMethod):
    """The tree of depth `DEPTH` that costs the least on the training rows, of the package STreeD.

    It tests whether a feature is above one of `MAX_THRESHOLDS` of its quantiles. Folds of its own
    choose how many splits there are. It knows one group of each feature: where a feature needs
    more items than its own and one that is shared, the others are added to its own.
    """

    def find(self, X: np.ndarray, codes: np.ndarray) -> Any:
        """Fit."""
        streed = import_peer("pystreed")
        tests = [(j, threshold) for j, column in enumerate(X.T) for threshold in cuts(column)]
        rows = np.column_stack([X[:, j] > threshold for j, threshold in tests]).astype(np.int32)
        matrix = 1.0 - np.eye(codes.max() + 1) if self.cost_matrix is None else self.cost_matrix
        costs = streed.data.CostSpecifier(matrix.tolist(), self.specifiers(X.shape[1], tests))
        solver = streed.STreeDCostSensitiveClassifier(
            max_depth=DEPTH, hyper_tune=True, random_seed=int(self.random_state) % 2**31
        )
        root = solver.fit(rows, codes.astype(np.int32), costs).get_tree()
        labels: list[int] = []

        def read(node: Any) -> Any:
            labels.append(0 if not node.is_leaf_node() else int(node.label))
            if node.is_leaf_node():
                return None
            j, threshold = tests[node.feature]
            return np.eye(X.shape[1])[j], threshold, node.left_child, node.right_child

        tree = flatten(root, read, X.shape[1])
        return LabelledTree(tree.predicting(np.eye(len(matrix))[labels]))

    def specifiers(self, n_features: int, tests: list[tuple[int, float]]) -> list[Any]:
        """Return what tests cost, as the package takes it: those of a feature are one range."""
        kind = import_peer("pystreed").data.FeatureCostSpecifier
        costs = feature_costs_of(self.feature_costs, n_features)
        n_members = costs.is_part.sum(axis=0)
        found, at = [], 0
        # Features that need the same, as a number and whether it is missing, are paid for together.
        for _, run in groupby(tests, lambda test: costs.is_part[test[0]].tobytes() or test[0]):
            features = [j for j, _ in run]
            items = np.flatnonzero(costs.is_part[features[0]])
            price = float(costs.prices[items].sum())
            # The largest item is the group: collecting blood, not what two numbers need.
            group = max(items, key=lambda item: n_members[item], default=-1)
            is_shared = group >= 0 and n_members[group] > len(set(features))
            discount = price - float(costs.prices[group]) if is_shared else price
            name = f"group {group}" if is_shared else f"tests from {at}"
            found.append(kind(price, discount, name, at, at + len(features) - 1))
            at += len(features)
        return found


def cuts(column: np.ndarray) -> np.ndarray:
    """Return at most `MAX_THRESHOLDS` thresholds that part the values of a feature."""
    values = np.unique(column)
    if len(values) <= MAX_THRESHOLDS + 1:
        return 0.5 * (values[1:] + values[:-1])
    shares = np.linspace(0.0, 1.0, MAX_THRESHOLDS + 2)[1:-1]
    found = np.unique(np.quantile(column, shares, method="lower"))
    return found[found < values[-1]]


def make_methods() -> dict[str, ClassifierMixin]:
    """Return the methods by name."""
    return {
        EVOTREE: EvolvedForCosts(),
        ACCURATE: EvolvedForAccuracy(),
        CART: CostCart(),
        CHEAP: CheapCart(),
        STREED: OptimalTree(),
    }


def make_experiment() -> Experiment:
    """Return the fits of the study."""
    return Experiment(
        "costs",
        list(PROBLEMS),
        make_methods(),
        CostProtocol(n_folds=N_FOLDS),
        metrics=("accuracy",),
        scorers={"error_cost": error_cost, "feature_cost": feature_cost},
        measures={"features": n_features_used},
        curve=None,
    )


# ---- report --------------------------------------------------------------------------------------


def costs_of(runs: pd.DataFrame) -> pd.DataFrame:
    """Return the means of costs and sizes, a row a problem and method."""
    runs = runs.assign(cost=runs["error_cost"] + runs["feature_cost"])
    columns = ["cost", "error_cost", "feature_cost", "accuracy", "leaves", "terms", "complexity"]
    return runs.groupby(["dataset", "method"])[[*columns, "features"]].mean()


def compared(means: pd.DataFrame, anchor: str) -> pd.DataFrame:
    """Return where EvoTree costs no more than another method, and where it is no larger either.

    Parameters
    ----------
    means : DataFrame
        From `costs_of`.
    anchor : str
        The other method.

    Returns
    -------
    DataFrame of bool
        ``cheap`` and ``reached``, cheap at no higher complexity, a row a problem of both methods.
    """
    both = means.unstack("method").reindex(list(PROBLEMS))
    ours = both.xs(EVOTREE, axis=1, level="method")
    other = both.xs(anchor, axis=1, level="method")
    known = ours["cost"].notna() & other["cost"].notna()
    cheap = ours["cost"] <= other["cost"] + 1e-9
    small = ours["complexity"] <= other["complexity"] + 1e-9
    return pd.DataFrame({"cheap": cheap, "reached": cheap & small})[known]


def rivals_of(means: pd.DataFrame) -> list[str]:
    """Return the other methods that there are rows of."""
    return [name for name in ANCHORS if name in means.index.get_level_values("method")]


def summary_table(means: pd.DataFrame) -> str:
    """Return on how many problems EvoTree costs no more than each other method, in Markdown."""
    rows = []
    for anchor in rivals_of(means):
        found = compared(means, anchor)
        tested = [bool(PROBLEMS[name].tests) for name in found.index]
        with_tests = found[tested]
        sets = found.groupby([[PROBLEMS[name].dataset for name in found.index], tested])
        rows.append(
            {
                "beside": anchor,
                "costs no more": f"{found['cheap'].sum()} of {len(found)}",
                "and is no larger": f"{found['reached'].sum()} of {len(found)}",
                "costs no more, tests cost": f"{with_tests['cheap'].sum()} of {len(with_tests)}",
                "both, at all levels": f"{sets['reached'].all().sum()} of {len(sets)}",
            }
        )
    return markdown_table(pd.DataFrame(rows))


def problems_table(means: pd.DataFrame) -> str:
    """Return the mean cost of each method on each problem, in Markdown."""
    rows = []
    for name in [one for one in PROBLEMS if one in means.index.get_level_values("dataset")]:
        of_methods = means.loc[name]
        row = {"problem": name}
        least = of_methods["cost"].min()
        for method in [one for one in make_methods() if one in of_methods.index]:
            cost, complexity = of_methods.loc[method, ["cost", "complexity"]]
            shown = f"**{cost:#.4g}**" if cost <= least + 1e-9 else f"{cost:#.4g}"
            row[method] = f"{shown} ({complexity:.1f})"
        rows.append(row)
    return markdown_table(pd.DataFrame(rows).fillna(""))


def details_table(means: pd.DataFrame) -> str:
    """Return all that is measured, in Markdown."""
    rows = []
    for (name, method), row in means.reindex(list(PROBLEMS), level="dataset").iterrows():
        shown = {"problem": name, "method": method}
        shown |= {column: f"{row[column]:.3f}" for column in ("cost", "error_cost", "feature_cost")}
        shown["accuracy"] = f"{row['accuracy']:.4f}"
        sizes = ("leaves", "terms", "complexity", "features")
        rows.append(shown | {column: f"{row[column]:.1f}" for column in sizes})
    return markdown_table(pd.DataFrame(rows), n_left=2)


def write(results: Results) -> str:
    """Return the report."""
    means = costs_of(results.runs)
    return f"""# Costs

Written by `evotree experiment study costs --data-home DIR --out docs/results`, from the rows in
`costs_runs.csv`: {results.planned} fits, {N_FOLDS} stratified folds.

Five data sets have the costs of tests of Turney (1995), in dollars: bupa, heart, hepatitis, pima
and thyroid, where an error costs 100 or 400 dollars. As in the paper, bupa has the class of three
drinks a day or more, not the file's. On five data sets only errors cost: 5 to 1 on German credit
and heart disease (Statlog), and the rounded ratio of the classes on sick, climate-crashes and
blood-transfusion. `evotree/experiments/studies/cost_problems.py` has all figures.

Each row held out pays for its error, and for each feature on its way through the tree once. On how
many problems EvoTree, evolved for these costs, costs no more than another method, at no higher
complexity (leaves and terms), where tests cost, and on how many data sets both hold at all levels,
heart disease being two, with tests that cost and without:

{summary_table(means)}

The mean cost of a row, and in brackets the complexity; the least cost is bold:

{problems_table(means)}

{ACCURATE} knows no costs. {CART} weighs rows by what errors on them cost; folds choose its pruning
by the whole cost. {CHEAP} also lets folds choose up to which price features may be used; it is the
same where features are free. {STREED} finds the tree of depth {DEPTH} that costs the least on the
training rows, among tests of a feature against {MAX_THRESHOLDS} of its quantiles, with folds of its
own to choose the number of splits; it counts discounts of groups, but FTI at the price of both of
its tests.

{details_table(means)}
"""


STUDY = Study(
    "costs",
    "trees evolved for what errors and tests cost, beside CART and optimal trees",
    make_experiment,
    write,
)
