"""How methods are tried: which rows a fit has, which its scores have, and its random state."""

import warnings
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator
from sklearn.model_selection import KFold, StratifiedKFold

from evotree.experiments.datasets import LoadedData, load
from evotree.tables.columns import encode, fit_columns

OFFICIAL = -1  # the number of the fold that stands for a data set's official split
MAX_FOLDS = 10_000


class Parts(NamedTuple):
    """Rows to fit on and rows to score on, with numbers as features."""

    X_train: np.ndarray
    y_train: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray


class Task(NamedTuple):
    """One fit, by the columns that tell fits apart."""

    dataset: str
    method: str
    fold: int
    seed: int

    def __str__(self) -> str:
        return f"{self.dataset}, {self.method}, fold {self.fold}, seed {self.seed}"


KEY = Task._fields
"""Columns that tell fits apart."""


@dataclass(frozen=True)
class Protocol:
    """How rows are split into those to fit on and those to score on.

    A subclass may load data sets, take rows and set random states in its own way.

    Parameters
    ----------
    n_folds : int, at least 2, default=5
        Folds of a shuffled cross-validation, stratified by the classes; each seed of an experiment
        shuffles again.
    official : bool, default=False
        Whether the official split of each data set takes the place of the folds.
    """

    n_folds: int = 5
    official: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.n_folds, int) or not 2 <= self.n_folds <= MAX_FOLDS:
            raise ValueError(
                f"n_folds={str(self.n_folds)[:50]}: allowed are integers of 2 to {MAX_FOLDS:,}."
            )
        if not isinstance(self.official, bool):
            raise ValueError(
                f"official={str(self.official)[:50]}: allowed are true and false."
            )

    def __str__(self) -> str:
        if self.official:
            return "the official split of each data set"
        return f"{self.n_folds} stratified folds (plain folds of numeric targets), shuffled"

    def folds(self) -> list[int]:
        """Return the numbers of the folds."""
        return [OFFICIAL] if self.official else list(range(self.n_folds))

    def load(self, dataset: str, data_home: Path | None) -> LoadedData:
        """Return a data set."""
        return load_cached(dataset, data_home)

    def check(self, dataset: str, data_home: Path | None) -> dict[str, int]:
        """Return the numbers of rows and so on; raise where the protocol does not fit the data."""
        data = self.load(dataset, data_home)
        if self.official and data.n_train is None:
            raise ValueError(f"datasets has {dataset!r}, which has no official split.")
        facts = {"rows": len(data.y), "columns": data.X.shape[1]}
        if data.y.dtype.kind != "f":
            facts["classes"] = len(np.unique(data.y))
        return facts

    def source(self, dataset: str, data_home: Path | None) -> str:
        """Return where a data set comes from, in words."""
        return self.load(dataset, data_home).source

    def take_parts(
        self, task: Task, data_home: Path | None, stratified: bool = True
    ) -> Parts:
        """Return the rows to fit on and to score on."""
        data = self.load(task.dataset, data_home)
        if task.fold == OFFICIAL:
            if data.n_train is None:
                raise ValueError(
                    f"fold={OFFICIAL}: {data.name!r} has no official split."
                )
            train, test = np.split(np.arange(len(data.y)), [data.n_train])
        elif stratified:
            train, test = stratified_folds(data.y, self.n_folds, task.seed)[task.fold]
        else:
            folds = KFold(self.n_folds, shuffle=True, random_state=task.seed)
            train, test = list(folds.split(data.y))[task.fold]
        return take_rows(data.X, data.y, train, test)

    def method_for(
        self, method: BaseEstimator, task: Task, data_home: Path | None
    ) -> BaseEstimator:
        """Return what is fitted: the method as it is, or one that is told of its data set."""
        return method

    def random_state(self, task: Task) -> int:
        """Return the random state of a task's method; it depends on seed and fold alone."""
        entropy = np.random.SeedSequence([task.seed, max(task.fold, 0)])
        return int(entropy.generate_state(1)[0] >> 1)


@lru_cache(maxsize=2)
def load_cached(name: str, data_home: Path | None) -> LoadedData:
    """Return a data set, read from its file once in a process; not to be written to."""
    return load(name, data_home)


def stratified_folds(
    y: np.ndarray, n_splits: int, random_state: int
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return training and test positions of shuffled folds; rare classes are not in all of them."""
    folds = StratifiedKFold(n_splits, shuffle=True, random_state=random_state)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The least populated class", UserWarning)
        return list(folds.split(np.zeros(len(y)), y))


def take_rows(
    X: pd.DataFrame, y: np.ndarray, train: np.ndarray, test: np.ndarray
) -> Parts:
    """Split a data set; medians and levels of its features are those of the training rows."""
    columns = fit_columns(X.iloc[train])
    return Parts(
        X_train=encode(columns, X.iloc[train]),
        y_train=y[train],
        X_test=encode(columns, X.iloc[test]),
        y_test=y[test],
    )
