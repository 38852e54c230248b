"""How methods are tried: which rows a fit has, which its scores have, and its random state."""

import warnings
from dataclasses import dataclass
from functools import lru_cache
from numbers import Integral
from pathlib import Path
from typing import Annotated, NamedTuple

import numpy as np
import pandas as pd
from sklearn.model_selection import (
    GroupKFold,
    KFold,
    StratifiedGroupKFold,
    StratifiedKFold,
    TimeSeriesSplit,
)

from evotree.configuration import Configuration, Interval
from evotree.experiments.datasets import LoadedData, load
from evotree.tables.columns import encode, fit_columns

Folds = list[tuple[np.ndarray, np.ndarray]]

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


@dataclass(frozen=True, repr=False)
class Protocol(Configuration):
    """How rows are split into those to fit on and those to score on.

    A subclass may load data sets, take rows and set random states in its own way.

    Parameters
    ----------
    n_folds : int, at least 2, default=5
        Folds of a shuffled cross-validation, stratified by the classes; each seed of an experiment
        shuffles again.
    target : str, optional
        The column of each data set's file that is predicted; by default the one called ``target``.
    """

    n_folds: Annotated[int, Interval(Integral, 2, MAX_FOLDS, closed="both")] = 5
    target: Annotated[str | None, str, None] = None

    def __str__(self) -> str:
        return f"{self.n_folds} stratified folds (plain folds of numeric targets), shuffled"

    def folds(self) -> list[int]:
        """Return the numbers of the folds."""
        return list(range(self.n_folds))

    def load(self, dataset: str, data_home: Path | None) -> LoadedData:
        """Return a data set."""
        return load_cached(dataset, data_home, self.target)

    def facts(self, dataset: str, data_home: Path | None) -> dict[str, int | str]:
        """Return the source of a data set, and its numbers of rows and so on."""
        data = self.load(dataset, data_home)
        facts = {
            "source": data.source,
            "rows": len(data.y),
            "columns": data.X.shape[1],
        }
        if data.y.dtype.kind != "f":
            facts["classes"] = len(np.unique(data.y))
        return facts

    def take_parts(
        self, task: Task, data_home: Path | None, stratified: bool = True
    ) -> Parts:
        """Return the rows to fit on and to score on."""
        data = self.load(task.dataset, data_home)
        folds = folds_of(
            data.y, self.n_folds, random_state=task.seed, stratified=stratified
        )
        return take_rows(data.X, data.y, *folds[task.fold])

    def random_state(self, task: Task) -> int:
        """Return the random state of a task's method; it depends on seed and fold alone."""
        entropy = np.random.SeedSequence([task.seed, task.fold])
        return int(entropy.generate_state(1)[0] >> 1)


load_cached = lru_cache(maxsize=2)(load)
"""`load`, from a file once in a process; what it returns is not to be written to."""


def folds_of(
    y: np.ndarray,
    n_folds: int,
    groups: np.ndarray | None = None,
    times: np.ndarray | None = None,
    *,
    random_state: int,
    stratified: bool,
) -> Folds:
    """Return training and test positions: of later rows where rows have times, else shuffled.

    Stratified folds lack a class that has fewer rows than there are folds.
    """
    if times is not None:
        return forward_folds(times, n_folds)
    kinds = (StratifiedKFold, KFold)
    if groups is not None:
        kinds = (StratifiedGroupKFold, GroupKFold)
    kind = kinds[0] if stratified else kinds[1]
    folds = kind(n_folds, shuffle=True, random_state=random_state)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The least populated class", UserWarning)
        return list(folds.split(np.zeros(len(y)), y, groups))


def forward_folds(times: np.ndarray, n_folds: int) -> Folds:
    """Return positions of rows to train on and of later ones, all rows of one time together."""
    distinct, at = np.unique(times, return_inverse=True)
    n_folds = min(n_folds, len(distinct) - 1)
    if n_folds < 2 or pd.isna(distinct).any():
        raise ValueError(
            f"the rows to train on have {len(distinct)} different times: at least three are "
            "needed, and none may be missing"
        )
    return [
        (np.flatnonzero(np.isin(at, train)), np.flatnonzero(np.isin(at, test)))
        for train, test in TimeSeriesSplit(n_folds).split(distinct)
    ]


def stratified_folds(y: np.ndarray, n_folds: int, random_state: int) -> Folds:
    """Return training and test positions of shuffled, stratified folds."""
    return folds_of(y, n_folds, random_state=random_state, stratified=True)


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
