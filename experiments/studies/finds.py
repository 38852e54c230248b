"""The study of what evolution finds: how often a search reaches an optimum that is known.

Chessboards and zebras have a smallest tree without error. Of tables of binary columns an exact
search knows the best axis-parallel tree of some depth. All are judged by the fitness of GEA-ODT on
the rows that they are fitted to, the accuracy less a price for each node.
"""

from collections.abc import Sequence
from functools import partial
from itertools import count, product
from operator import attrgetter
from pathlib import Path
from time import process_time
from typing import Any, Self

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.tree import DecisionTreeClassifier

from evotree.estimators import EvoTreeClassifier, ObliqueTreeClassifier
from evotree.experiments.execution import seed_method
from evotree.experiments.protocols import Parts, Task, take_rows
from evotree.operators.pruning import cheapest, prune_tree
from experiments.methods.trees import (
    fitted_tree,
    predicted_codes,
    thresholds_of,
    with_counts,
)
from experiments.problems import PROBLEMS
from experiments.study import Results, Study, StudyProtocol, define
from experiments.suites import OFFICIAL
from experiments.tables import table

PRICE = 0.005
"""What a node costs: the size penalty of the preset of GEA-ODT."""
BOARDS = ("chessboard2", "chessboard4", "zebra1", "zebra2", "zebra3")
TABLES = ("monks-1", "monks-2", "spect")
N_ROWS, N_DRAWS = 1_000, 3
DEPTH = 3
"""Of the trees of tables, which split on one column at a time."""
SECONDS = 20.0
"""Of the processor, in which greedy trees are grown again and again."""
EXACT, GREEDY = "exact", "greedy trees, the best of many"


class FindsProtocol(StudyProtocol):
    """Problems, drawn for each seed, and all rows of tables, whose columns become binary."""

    def take_parts(
        self, task: Task, data_home: Path | None, stratified: bool = True
    ) -> Parts:
        """Return the rows of a fit, those of a table also as the ones to score on."""
        if task.dataset in PROBLEMS:
            return super().take_parts(task, data_home, stratified)
        data = self.load(task.dataset, data_home)
        rows = np.arange(len(data.y))
        X, y, _, _ = take_rows(data.X, data.y, rows, rows)
        columns, thresholds = thresholds_of(X, np.unique(y, return_inverse=True)[1], 0)
        binary = (X[:, columns] > thresholds).astype(np.float64)
        return Parts(binary, y, binary, y)


class Search(ClassifierMixin, BaseEstimator):
    """The fittest of the trees that are grown until so many seconds of the processor have passed.

    ``grow(X, codes, random_state)`` returns a tree. ``processor_`` are all seconds that it took.
    """

    def __init__(self, grow: Any, seconds: float = 0.0, random_state: int = 0) -> None:
        self.grow = grow
        self.seconds = seconds
        self.random_state = random_state

    def fit(self, X: np.ndarray, y: np.ndarray) -> Self:
        """Grow trees."""
        begin = process_time()
        codes = np.unique(y, return_inverse=True)[1]
        self.fitness_ = -np.inf
        for draw in count():
            tree = self.grow(X, codes, 100_000 * self.random_state + draw)
            accuracy = float(np.mean(predicted_codes(tree, X) == codes))
            if accuracy - PRICE * tree.n_nodes > self.fitness_:
                self.tree_, self.fitness_ = tree, accuracy - PRICE * tree.n_nodes
            self.processor_ = process_time() - begin
            if self.processor_ >= self.seconds:
                break
        return self


class Exact(ClassifierMixin, BaseEstimator):
    """The fitness of the best axis-parallel tree of binary columns, by trying all."""

    def fit(self, X: np.ndarray, y: np.ndarray) -> Self:
        """Try all trees."""
        begin = process_time()
        shares = (y[:, np.newaxis] == np.unique(y)) / len(y)
        # A tree of n leaves has 2 n - 1 nodes.
        self.fitness_ = 1.0 + PRICE - least_cost(X == 1.0, shares, DEPTH)
        self.processor_ = process_time() - begin
        return self


def least_cost(X: np.ndarray, shares: np.ndarray, depth: int) -> float:
    """Return what a tree of some rows costs at least: its errors, and two nodes a leaf.

    X has truth values, ``shares`` of shape (n_rows, n_classes) the share of each row at its class.
    """
    whole = shares.sum(axis=0)
    if depth == 1:
        right = np.vstack([np.zeros_like(whole), X.T @ shares])
        both = np.stack([whole - right, right])
        errors = (both.sum(axis=2) - both.max(axis=2)).sum(axis=0)
        errors[1:] += 2.0 * PRICE  # the first is no split
        return float(errors.min()) + 2.0 * PRICE
    costs = [float(whole.sum() - whole.max()) + 2.0 * PRICE]
    for column in X.T[X.any(axis=0) & ~X.all(axis=0)]:
        sides = (column, ~column)
        costs.append(sum(least_cost(X[one], shares[one], depth - 1) for one in sides))
    return min(costs)


def evolved(X: np.ndarray, codes: np.ndarray, random_state: int, model: Any) -> Any:
    """Return the tree that a model finds."""
    return seed_method(model, random_state).fit(X, codes).tree_


def pruned(X: np.ndarray, codes: np.ndarray, random_state: int, model: Any) -> Any:
    """Return the tree that a model grows, as its fittest pruning."""
    grown = fitted_tree(seed_method(model, random_state).fit(X, codes))
    tree = with_counts(grown, X, codes, int(codes.max()) + 1)
    errors = np.asarray(tree.n_node_samples) * (1.0 - tree.values.max(axis=1))
    risk = errors / len(codes)
    return prune_tree(
        tree, cheapest(risk, tree.subtree_size, PRICE, np.zeros_like(risk))
    )


PRESET = EvoTreeClassifier.from_preset("gea_odt")
DEFAULT = EvoTreeClassifier(leaves="constant")
SAME_FITNESS = {"size_penalty": PRICE, "term_penalty": 0.0, "precision": None}
ENGINES = {
    "GEA-ODT": PRESET,
    "GEA-ODT, refined by WODT": clone(PRESET).set_params(evolution__refinement="wodt"),
    "EvoTree": DEFAULT,
    "EvoTree, by the same fitness": clone(DEFAULT).set_params(
        evolution__regularization__noise=0.0, **SAME_FITNESS
    ),
}
UNIVARIATE = {"max_depth": DEPTH, "max_split_terms": 1}
SUFFIX = ", axis-parallel"
"""Of the names of methods whose trees are so."""


OC1 = ObliqueTreeClassifier.from_preset("OC1", pruning=None)
CART = DecisionTreeClassifier(max_depth=DEPTH, max_features=0.5)
METHODS: dict[str, Any] = {
    **{name: Search(partial(evolved, model=model)) for name, model in ENGINES.items()},
    GREEDY: Search(partial(pruned, model=OC1), SECONDS),
    **{
        name + SUFFIX: Search(
            partial(evolved, model=clone(model).set_params(**UNIVARIATE))
        )
        for name, model in ENGINES.items()
    },
    GREEDY + SUFFIX: Search(partial(pruned, model=CART), SECONDS),
    EXACT: Exact(),
}
NAMES = (*ENGINES, GREEDY)


def fitness(model: Any, X: np.ndarray, y: np.ndarray) -> float:
    """Return the fitness of the tree that was found, by the rows that it was fitted to."""
    return float(model.fitness_)


EXPERIMENT = define(
    "finds",
    (*BOARDS, *TABLES),
    METHODS,
    FindsProtocol(n_train=N_ROWS, n_test=1),
    metrics=(),
    scorers={"fitness": fitness},
    measures={"processor": attrgetter("processor_")},
    plan=[
        *(Task(table, EXACT, OFFICIAL, 0) for table in TABLES),
        *(
            Task(dataset, name + SUFFIX if dataset in TABLES else name, OFFICIAL, k)
            for k, dataset, name in product(range(N_DRAWS), (*BOARDS, *TABLES), NAMES)
        ),
    ],
)


def optimum(dataset: str, runs: pd.DataFrame) -> float:
    """Return the fitness of the optimal tree of a data set; NaN where it was not searched."""
    if dataset in PROBLEMS:
        return 1.0 - PRICE * PROBLEMS[dataset].optimal_nodes
    of_table = (runs["dataset"] == dataset) & (runs["method"] == EXACT)
    return runs["fitness"][of_table].mean()


def found_table(runs: pd.DataFrame, datasets: Sequence[str]) -> str:
    """Return how often each search finds the optimum, and how far below it is on average."""
    runs = runs.assign(optimum=runs["dataset"].map(partial(optimum, runs=runs)))
    runs["gap"] = 100.0 * (runs["optimum"] - runs["fitness"]).clip(lower=0.0)
    runs["is_found"] = runs["gap"] < 1e-7
    rows = []
    for name in NAMES:
        methods = [name, name + SUFFIX]
        fits = runs[runs["method"].isin(methods) & runs["dataset"].isin(datasets)]
        if len(fits):
            of_set = fits.groupby("dataset")[["is_found", "gap"]]
            cells = {
                dataset: f"{of_set.sum().is_found[dataset]} ({gap:.2f})"
                for dataset, gap in of_set.mean().gap.reindex(datasets).dropna().items()
            }
            row = {
                "search": name,
                **cells,
                "found": f"{fits.is_found.sum()} of {len(fits)}",
            }
            rows.append(row | {"seconds": f"{fits.processor.median():.1f}"})
    return table(rows)


def report(results: Results) -> dict[str, Any]:
    """Return a table of the problems, and one of the tables of binary columns."""
    runs = results.runs
    exact = runs[runs["method"] == EXACT]
    return {
        "boards": found_table(runs, BOARDS),
        "tables": found_table(runs, TABLES),
        "exact_seconds": f"{exact['processor'].max():.1f}",
    }


STUDY = Study(EXPERIMENT, report)
