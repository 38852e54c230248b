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
N_ROWS = 1_000
N_DRAWS = 2
"""Of the rows of a problem; on a table, random states of the searches."""
DEPTH = 3
"""Of the trees of tables, which split on one column at a time."""
SECONDS = 20.0
"""Of the processor, in which greedy trees are grown again and again."""
ROUNDING = 1e-7  # of points of fitness
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
    costs = [float(whole.sum() - whole.max()) + 2.0 * PRICE]
    for column in X.T if depth else ():
        if column.any() and not column.all():
            sides = ((X[one], shares[one]) for one in (column, ~column))
            costs.append(sum(least_cost(*side, depth - 1) for side in sides))
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


PRESET = partial(EvoTreeClassifier.from_preset, "gea_odt")
DEFAULT = partial(EvoTreeClassifier, leaves="constant")
ENGINES = {
    "GEA-ODT": PRESET(),
    "GEA-ODT, refined by WODT": PRESET(evolution__refinement="wodt"),
    "EvoTree": DEFAULT(),
    "EvoTree, by the same fitness": DEFAULT(
        size_penalty=PRICE, term_penalty=0.0, precision=None
    ).set_params(evolution__regularization__noise=0.0),
}
NAMES = (*ENGINES, GREEDY)
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
        *(Task(*cell) for cell in product(BOARDS, NAMES, (OFFICIAL,), range(N_DRAWS))),
        *(
            Task(table, name + SUFFIX, OFFICIAL, state)
            for table, name, state in product(TABLES, NAMES, range(N_DRAWS))
        ),
    ],
)


def found_table(runs: pd.DataFrame, datasets: Sequence[str]) -> str:
    """Return how often each search finds the optimum, and how far below it is on average."""
    rows = []
    for name in NAMES:
        fits = runs[runs["search"] == name].set_index("dataset").loc[[*datasets]]
        row = {"search": name}
        for dataset, gaps in fits["gap"].groupby(level=0, sort=False):
            row[str(dataset)] = f"{(gaps < ROUNDING).sum()} ({gaps.mean():.2f})"
        row["found"] = f"{(fits['gap'] < ROUNDING).sum()} of {len(fits)}"
        rows.append(row | {"seconds": f"{fits['processor'].median():.1f}"})
    return table(rows)


def report(results: Results) -> dict[str, Any]:
    """Return a table of the problems, and one of the tables of binary columns."""
    runs = results.runs
    optimal = {name: 1.0 - PRICE * PROBLEMS[name].optimal_nodes for name in BOARDS}
    optimal |= runs[runs["method"] == EXACT].set_index("dataset")["fitness"].to_dict()
    below = (runs["dataset"].map(optimal) - runs["fitness"]).clip(lower=0.0)
    search = runs["method"].str.removesuffix(SUFFIX)
    runs = runs.assign(gap=100.0 * below, search=search)
    return {"boards": found_table(runs, BOARDS), "tables": found_table(runs, TABLES)}


STUDY = Study(EXPERIMENT, report)
