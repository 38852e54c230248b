"""The study of times to an event: EvoTreeSurvival beside other trees, Cox's model and a forest.

The data sets are those that scikit-survival ships. Folds are stratified by whether the event was
seen. Censoring, for Uno's concordance and the Brier score, is that of the training rows.
"""

from functools import partial
from importlib import import_module
from itertools import product
from pathlib import Path
from typing import Any, Self

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from evotree import EvoTreeSurvival
from evotree.experiments.datasets import LoadedData
from evotree.experiments.protocols import Parts, Task, stratified_folds, take_rows
from evotree.survival import Times, concordance, survival
from experiments import tables
from experiments.methods.chosen import Chosen, Find, folds_of, import_peer
from experiments.study import Results, Study, StudyProtocol, define
from experiments.suites import N_FOLDS

SETS = {
    "veterans": "load_veterans_lung_cancer",
    "breast_cancer": "load_breast_cancer",
    "whas500": "load_whas500",
    "gbsg2": "load_gbsg2",
    "aids": "load_aids",
    "flchain": "load_flchain",
}
"""The data sets, and the functions of scikit-survival that load them."""
CAUSES = "chapter"  # the causes of death of flchain, which the living do not have
EVOTREE, CONSTANT, TREE, STREED = (
    "EvoTree",
    "EvoTree constant",
    "SurvivalTree",
    "STreeD",
)
COX, FOREST = "Cox", "Forest"
HARRELL, UNO, BRIER = "Harrell's C", "Uno's C", "Brier saved"
TREES = (EVOTREE, CONSTANT, TREE, STREED)
"""The methods whose model is one tree."""
TREE_LEAVES = (2, 3, 4, 5, 6, 8, 10, 12, 16, 24, 32)
TREE_ROWS = (5, 10, 20)
"""Numbers of leaves, and of the fewest rows in one, among which folds choose SurvivalTree."""
L1_RATIOS = (0.1, 0.5, 1.0)
N_PENALTIES, LEAST_PENALTY = 30, 0.01
"""Shares of the L1 norm, and for each penalties, down to a share of the largest, among which folds
choose Cox's model."""
STREED_DEPTH, MANY_COLUMNS = 4, 25
"""Depth of STreeD's trees at most; it is 2 where there are more columns."""
N_TREES, FOREST_ROWS = 200, 15
"""Trees of the forest, and the fewest rows in a leaf."""
MOST_ROWS = 1_000  # to train on, of flchain
N_PLACES = 100  # times at which the Brier score is taken
FIGURES = {
    HARRELL: ("harrell", 100.0, 1),
    UNO: ("uno", 100.0, 1),
    BRIER: ("brier_saved", 100.0, 1),
    "complexity": ("complexity", 1.0, 1),
    "seconds": ("seconds", 1.0, 1),
}


class SurvivalProtocol(StudyProtocol):
    """Folds of times to an event, stratified by the event."""

    def load(self, dataset: str, data_home: Path | None) -> LoadedData:
        """Return a data set of scikit-survival, whose targets are structured arrays."""
        loader = SETS[dataset]
        X, y = getattr(import_peer("scikit-survival", "sksurv.datasets"), loader)()
        times = np.empty(len(y), dtype=[("event", bool), ("time", float)])
        times["event"], times["time"] = (y[name] for name in y.dtype.names)
        X = X.drop(columns=CAUSES, errors="ignore")
        return LoadedData(X, times, f"scikit-survival's {loader}")

    def facts(self, dataset: str, data_home: Path | None) -> dict[str, int | str]:
        """Return source and size of a data set."""
        data = self.load(dataset, data_home)
        return {
            "source": data.source,
            "rows": len(data.y),
            "columns": data.X.shape[1],
            "events": int(data.y["event"].sum()),
        }

    def take_parts(
        self, task: Task, data_home: Path | None, stratified: bool = True
    ) -> Parts:
        """Return the rows of a fold, to train on `MOST_ROWS` at most."""
        data = self.load(task.dataset, data_home)
        folds = stratified_folds(data.y["event"], self.n_folds, task.seed)
        train, test = folds[task.fold]
        if len(train) > MOST_ROWS:
            rng = np.random.default_rng(self.random_state(task))
            train = np.sort(rng.choice(train, MOST_ROWS, replace=False))
        return take_rows(data.X, data.y, train, test)


class ChosenSurvival(RegressorMixin, Chosen):
    """A method that finds a model of times, and keeps the times that it was fitted to."""

    def fit(self, X: np.ndarray, y: np.ndarray) -> Self:
        """Find the model."""
        self.y_ = y
        self.search(X, y)
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Predict the risks of rows."""
        return self.best_estimator_.predict(X)


def evotree(X: np.ndarray, y: np.ndarray, random_state: int, **settings: Any) -> Any:
    """Return our tree."""
    return EvoTreeSurvival(random_state=random_state, **settings).fit(X, y)


def chosen_tree(X: np.ndarray, y: np.ndarray, random_state: int) -> Any:
    """Return scikit-survival's tree of the size that folds choose by Harrell's concordance."""
    tree = import_peer("scikit-survival", "sksurv.tree").SurvivalTree
    grid = {"max_leaf_nodes": TREE_LEAVES, "min_samples_leaf": TREE_ROWS}
    folds = folds_of(y["event"], N_FOLDS, random_state)
    search = GridSearchCV(tree(random_state=random_state), grid, cv=folds)
    return search.fit(X, y).best_estimator_


def streed(X: np.ndarray, y: np.ndarray, random_state: int) -> Any:
    """Return the optimal tree of pystreed of the size that folds choose by Harrell's concordance.

    The package's own choice of sizes ends the process.
    """
    depth = 2 if X.shape[1] > MANY_COLUMNS else STREED_DEPTH
    folds = folds_of(y["event"], N_FOLDS, random_state)
    scores = {
        n_splits: sum(
            harrell(streed_of(n_splits, depth, X[train], y[train]), X[test], y[test])
            for train, test in folds
        )
        for n_splits in range(1, 2**depth)
    }
    return streed_of(max(scores, key=lambda n: scores[n]), depth, X, y)


def streed_of(n_splits: int, depth: int, X: np.ndarray, y: np.ndarray) -> Any:
    """Return pystreed's tree of at most so many splits."""
    model = import_peer("pystreed").STreeDSurvivalAnalysis(depth, n_splits)
    hazard = model._compute_baseline_cumulative_hazard_function
    # It takes events as positions in a list, which NumPy no longer allows of its booleans.
    model._compute_baseline_cumulative_hazard_function = lambda events, times: hazard(
        events.astype(int), times
    )
    model.fit(X, y)
    n_leaves = int(model.get_n_leaves())
    model.sizes_ = {"leaves": n_leaves, "terms": n_leaves - 1}
    return model


def elastic_cox(X: np.ndarray, y: np.ndarray, random_state: int) -> Any:
    """Return Cox's model with an elastic net, which folds choose by Harrell's concordance."""
    kind = import_peer("scikit-survival", "sksurv.linear_model").CoxnetSurvivalAnalysis
    folds = folds_of(y["event"], N_FOLDS, random_state)
    scores: dict[tuple[float, float], float] = {}
    for l1_ratio in L1_RATIOS:
        path = {"n_alphas": N_PENALTIES, "alpha_min_ratio": LEAST_PENALTY}
        whole = make_pipeline(StandardScaler(), kind(l1_ratio=l1_ratio, **path))
        alphas = whole.fit(X, y)[-1].alphas_
        for train, test in folds:
            net = kind(l1_ratio=l1_ratio, alphas=alphas)
            model = make_pipeline(StandardScaler(), net).fit(X[train], y[train])
            rows, times = model[0].transform(X[test]), Times.read(y[test])
            for alpha in alphas.tolist():
                score = concordance(times, model[-1].predict(rows, alpha=alpha))
                scores[l1_ratio, alpha] = scores.get((l1_ratio, alpha), 0.0) + score
    l1_ratio, alpha = max(scores, key=lambda one: scores[one])
    net = kind(l1_ratio=l1_ratio, alphas=[alpha], fit_baseline_model=True)
    best = make_pipeline(StandardScaler(), net).fit(X, y)
    best.sizes_ = {"leaves": 1, "terms": int(np.count_nonzero(net.coef_))}
    return best


def forest(X: np.ndarray, y: np.ndarray, random_state: int) -> Any:
    """Return scikit-survival's forest of survival trees."""
    kind = import_peer("scikit-survival", "sksurv.ensemble").RandomSurvivalForest
    model = kind(N_TREES, min_samples_leaf=FOREST_ROWS, random_state=random_state)
    return model.fit(X, y)


def harrell(model: ChosenSurvival, X: np.ndarray, y: np.ndarray) -> float:
    """Return Harrell's concordance."""
    return concordance(Times.read(y), model.predict(X))


def places_of(y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return times from that of 10 % of the rows to that of 90 %, and the rows as seen until then.

    What comes later is nothing that scores up to the last time see.
    """
    first, last = np.quantile(y["time"], [0.1, 0.9])
    is_later = y["time"] > last
    seen = y.copy()
    seen["event"][is_later] = False
    seen["time"][is_later] = last * (1.0 + 1e-6)
    return np.linspace(first, last, N_PLACES), seen


def uno(model: ChosenSurvival, X: np.ndarray, y: np.ndarray) -> float:
    """Return Uno's concordance up to the time of 90 % of the rows."""
    places, seen = places_of(y)
    measure = import_module("sksurv.metrics").concordance_index_ipcw
    return float(measure(model.y_, seen, model.predict(X), tau=places[-1])[0])


def brier_saved(model: ChosenSurvival, X: np.ndarray, y: np.ndarray) -> float:
    """Return the share of Kaplan and Meier's integrated Brier score that a model saves."""
    places, seen = places_of(y)
    score = partial(
        import_module("sksurv.metrics").integrated_brier_score,
        model.y_,
        seen,
        times=places,
    )
    functions = model.best_estimator_.predict_survival_function(X)
    same = survival(Times.read(model.y_), np.ones(len(model.y_)))(places)
    alive = np.array([function(places) for function in functions])
    return float(
        1.0 - score(estimate=alive) / score(estimate=np.tile(same, (len(y), 1)))
    )


METHODS: dict[str, Find] = {
    EVOTREE: evotree,
    CONSTANT: partial(evotree, leaves="constant"),
    TREE: chosen_tree,
    STREED: streed,
    COX: elastic_cox,
    FOREST: forest,
}
EXPERIMENT = define(
    "survival",
    SETS,
    {name: ChosenSurvival(find) for name, find in METHODS.items()},
    SurvivalProtocol(N_FOLDS),
    metrics=(),
    scorers={"harrell": harrell, "uno": uno, "brier_saved": brier_saved},
    plan=[
        Task(dataset, method, fold, 0)
        for fold, dataset, method in product(range(N_FOLDS), SETS, METHODS)
    ],
)


def report(results: Results) -> dict[str, Any]:
    """Return the tables."""
    means = tables.figures_of(results.runs, FIGURES, list(SETS), list(METHODS))
    duels = {title: means[title] for title in (HARRELL, UNO, BRIER)}
    return {
        **tables.comparison(means, FIGURES, EVOTREE, duels),
        "harrell_cells": tables.cells_table(means[HARRELL], ".1f", bold=TREES),
        "brier_cells": tables.cells_table(means[BRIER], ".1f", bold=TREES),
        "size": tables.shown(
            means["complexity"].reindex(columns=[EVOTREE]).mean().item(), ".1f"
        ),
    }


STUDY = Study(EXPERIMENT, report)
