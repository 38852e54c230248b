"""The study of constraints: monotonic trees, and trees within hard bounds.

What is known of a column before any row is seen, that a greater value makes the target greater or
smaller, is given to trees and to boosting. It is measured what the constraint costs or brings in
score and size, and how often it would be broken without being asked for. Then trees are bounded in
leaves, depth and terms, beside CART within the same bounds.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
)

from evotree.estimators import EvoTreeClassifier, EvoTreeRegressor
from evotree.experiments.datasets import LoadedData
from evotree.experiments.protocols import Parts, Task
from evotree.tables.columns import encode, fit_columns
from experiments.agreement import DATA
from experiments.methods.chosen import folds_of, pruned_cart
from experiments.study import Results, Study, StudyProtocol, define, score
from experiments.tables import cells_table, named, table
from tests.reference.signs import violations

SIGNS: Mapping[str, Mapping[str, int]] = tomllib.loads(
    (DATA / "signs.toml").read_text("utf-8")
)
"""What is known of columns, by data set."""
BOUNDED = ("heart", "breast-w", "wine", "wdbc", "autompg", "housing")
"""The data sets of trees within bounds."""
BOUNDS = [
    {"max_leaf_nodes": 4},
    {"max_leaf_nodes": 8},
    {"max_depth": 2},
    {"max_depth": 3},
]
"""The bounds that CART has too."""
TERM_BOUNDS = [{"max_terms": 10}, {"max_terms": 20}]
N_FOLDS, BOUND_FOLDS = 5, 3
N_PAIRS = 100_000
TOLERANCE = 1e-9
"""By which probabilities may fall where they should not: sums of rounded numbers are no proof."""
FREE, EVOTREE, CART, BOOSTING = (
    "EvoTree",
    "EvoTree monotonic",
    "CART monotonic",
    "HGB monotonic",
)
MONOTONIC = (FREE, EVOTREE, CART, BOOSTING)
WAYS = {
    "broken by leaves": "violations",
    "by predictions": "broken_predictions",
    "by probabilities": "broken_probabilities",
}
"""Columns that tell whether a fit breaks a sign."""


@dataclass(frozen=True)
class NamedProtocol(StudyProtocol):
    """Folds of tables whose columns are named ``data set/column``, and whose classes are codes."""

    def load(self, dataset: str, data_home: Path | None) -> LoadedData:
        """Return a data set; classes are numbered in the order of their names."""
        data = super().load(dataset, data_home)
        if data.y.dtype.kind == "f":
            return data
        return replace(data, y=np.unique(data.y, return_inverse=True)[1])

    def take_parts(
        self, task: Task, data_home: Path | None, stratified: bool = True
    ) -> Parts:
        """Return the rows of a fold, stratified where there are classes, as encoded tables."""
        data = self.load(task.dataset, data_home)
        train, test = folds_of(data.y, self.n_folds, task.seed)[task.fold]
        schema = fit_columns(data.X.iloc[train])
        names = [f"{task.dataset}/{name}" for name in schema.features]
        X, X_test = (
            pd.DataFrame(encode(schema, data.X.iloc[rows]), columns=names)
            for rows in (train, test)
        )
        return Parts(X, data.y[train], X_test, data.y[test])


KINDS = {
    "EvoTree": (EvoTreeClassifier, EvoTreeRegressor),
    "HGB": (HistGradientBoostingClassifier, HistGradientBoostingRegressor),
}


class Constrained(ClassifierMixin, BaseEstimator):
    """A classifier of codes, or a regressor of other numbers, monotonic or within bounds."""

    def __init__(
        self,
        kind: str,
        is_monotonic: bool = False,
        bounds: Mapping[str, int] | None = None,
        random_state: int = 0,
    ) -> None:
        self.kind = kind
        self.is_monotonic = is_monotonic
        self.bounds = bounds
        self.random_state = random_state

    def fit(self, X: pd.DataFrame, y: np.ndarray) -> Constrained:
        """Fit the estimator; CART is pruned."""
        parted = [str(name).partition("/") for name in X.columns]
        self.signs_ = np.array(
            [SIGNS.get(of, {}).get(column, 0) for of, _, column in parted]
        )
        settings: dict[str, Any] = dict(
            self.bounds or {}, random_state=self.random_state
        )
        if self.is_monotonic:
            settings["monotonic_cst"] = self.signs_
        if self.kind == "CART":
            self.best_estimator_ = pruned_cart(X.to_numpy(), y, **settings)
        else:
            made = KINDS[self.kind][y.dtype.kind == "f"]().set_params(**settings)
            self.best_estimator_ = made.fit(X.to_numpy(), y)
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Return codes of classes, or targets."""
        return self.best_estimator_.predict(np.asarray(X))

    def score(self, X: Any, y: np.ndarray, sample_weight: Any = None) -> float:
        """Return the accuracy, or R²."""
        return float(self.best_estimator_.score(np.asarray(X), y, sample_weight))


def raised_pairs(
    X: np.ndarray, signs: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Draw pairs of rows that differ in one column of known sign; return them and the signs.

    The first is a mixture of two rows of `X`, column by column; in the second one column is raised
    by a step of exponential distribution, whose mean is the standard deviation of the column.
    """
    rng = np.random.default_rng(0)
    rows, others = X[rng.integers(len(X), size=(2, N_PAIRS))]
    rows = np.where(rng.random(rows.shape) < 0.5, rows, others)
    column = rng.choice(np.flatnonzero(signs), N_PAIRS)
    raised = rows.copy()
    raised[np.arange(N_PAIRS), column] += rng.exponential(X.std(axis=0)[column] + 1e-12)
    return rows, raised, signs[column]


def share_broken(
    model: Constrained, X: pd.DataFrame, y: np.ndarray, predict: str
) -> float:
    """Return the share of pairs whose predictions are in the wrong order; NaN where none can be."""
    method = getattr(model.best_estimator_, predict, None)
    if method is None or not model.signs_.any():
        return np.nan
    rows, raised, sign = raised_pairs(X.to_numpy(), model.signs_)
    rise = method(raised) - method(rows)
    return float(np.mean(sign * (rise[:, 1] if rise.ndim == 2 else rise) < -TOLERANCE))


def violated_leaves(model: Constrained) -> float | None:
    """Return how many pairs of leaves of an evolved tree break the signs, or may break them."""
    if model.kind != "EvoTree" or not model.signs_.any() or model.bounds:
        return None
    return float(len(violations(model.best_estimator_.tree_, model.signs_)))


def title(bound: Mapping[str, int]) -> str:
    """Return a bound as text."""
    return ", ".join(f"{name}={value}" for name, value in bound.items())


METHODS = {
    FREE: Constrained("EvoTree"),
    **{name: Constrained(name.split()[0], is_monotonic=True) for name in MONOTONIC[1:]},
    **{
        f"EvoTree {title(b)}": Constrained("EvoTree", False, b)
        for b in BOUNDS + TERM_BOUNDS
    },
    **{f"CART {title(b)}": Constrained("CART", False, b) for b in BOUNDS},
}
WITHIN = [name for name in METHODS if name not in MONOTONIC]


def make_plan() -> Iterator[Task]:
    """Yield the fits, fold by fold, so that an experiment that is stopped is balanced."""
    for fold in range(N_FOLDS):
        cells = list(product(SIGNS, MONOTONIC))
        if fold < BOUND_FOLDS:
            cells += [(dataset, FREE) for dataset in BOUNDED if dataset not in SIGNS]
            cells += product(BOUNDED, WITHIN)
        yield from (Task(*cell, fold, 0) for cell in cells)


EXPERIMENT = define(
    "constraints",
    dict.fromkeys((*SIGNS, *BOUNDED)),
    METHODS,
    NamedProtocol(n_folds=N_FOLDS),
    metrics=(),
    scorers={
        "score": score,
        "broken_predictions": partial(share_broken, predict="predict"),
        "broken_probabilities": partial(share_broken, predict="predict_proba"),
    },
    measures={"violations": violated_leaves},
    plan=list(make_plan()),
    warm_up=False,
)


def complete(runs: pd.DataFrame, methods: Any, datasets: Any) -> pd.DataFrame:
    """Return the rows of the folds that all of the methods have, of some data sets."""
    some = runs[runs["method"].isin(methods) & runs["dataset"].isin(datasets)]
    counts = some.groupby(["dataset", "fold"])["method"].transform("nunique")
    return some[counts == len(methods)]


def means_of(runs: pd.DataFrame) -> pd.DataFrame:
    """Return mean scores and sizes, a row a data set."""
    return (
        runs.groupby(["dataset", "method"])[["score", "leaves", "terms"]]
        .mean()
        .unstack()
    )


def n_above_zero(values: pd.Series) -> str:
    """Return how many of the known values are above 0, as text."""
    values = values.dropna()
    return f"{int((values > 0).sum())} of {len(values)}" if len(values) else ""


def summary_row(means: pd.DataFrame, other: str) -> dict[str, str]:
    """Return how the monotonic tree stands to another method."""
    gain = means["score"][EVOTREE] - means["score"][other]
    signs = np.sign(gain.where(gain.abs() > TOLERANCE, 0.0))
    won = " / ".join(str(int((signs == s).sum())) for s in (1, 0, -1))
    error = gain.std() / np.sqrt(len(gain))
    row = {f"{EVOTREE} minus it": f"{gain.mean():+.3f} ± {error:.3f} ({won})"}
    for size in ("leaves", "terms") if other != BOOSTING else ():
        ratio = means[size][EVOTREE] / means[size].get(other, np.nan)
        row[f"{size}, median ratio"] = f"{ratio.median():.2f}"
    return row


def bounds_row(runs: pd.DataFrame, bound: str) -> dict[str, str]:
    """Return scores, leaves and terms within a bound beside CART's; nothing where none was run."""
    names = {name: f"{name} {bound}" for name in ("EvoTree", "CART")}
    fits = complete(runs, list(names.values()), BOUNDED)
    if fits.empty:
        return {}
    means = means_of(fits)
    gain = means["score"][names["EvoTree"]] - means["score"][names["CART"]]
    row = {"bound": bound}
    row["EvoTree is better"] = f"{int((gain > 0).sum())} of {len(gain)}"
    row["mean difference"] = f"{gain.mean():+.3f}"
    for name, method in names.items():
        row[f"leaves, {name}"] = f"{means['leaves'][method].mean():.1f}"
        row[f"terms, {name}"] = f"{means['terms'][method].mean():.1f}"
    return row


def report(results: Results) -> dict[str, Any]:
    """Return the tables."""
    runs = complete(results.runs, MONOTONIC, SIGNS)
    means = means_of(runs)
    scores = runs.groupby(["dataset", "method"])["score"].mean().unstack()
    scores = scores.loc[named(SIGNS, scores.index), named(MONOTONIC, scores)]
    kept = []
    for name in named(MONOTONIC, runs["method"]):
        fits = runs[runs["method"] == name]
        row = {"method": name} | {
            way: n_above_zero(fits[of]) for way, of in WAYS.items()
        }
        kept.append(row | {"mean score": f"{scores[name].mean():.3f}"})
        if name != EVOTREE:
            kept[-1] |= summary_row(means, name)
    bounds = [bounds_row(results.runs, title(bound)) for bound in BOUNDS]
    return {
        "kept": table(kept),
        "scores": cells_table(scores, ".3f"),
        "bounds": table(row for row in bounds if row),
    }


STUDY = Study(EXPERIMENT, report)
