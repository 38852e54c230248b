"""The study of constraints: monotonic trees, and trees within hard bounds.

What is known of a column before any row is seen, that a greater value makes the target greater or
smaller, is given to trees and to boosting. It is measured what the constraint costs or brings in
score and size, and how often it would be broken without being asked for. Then trees are bounded in
leaves, depth and terms, beside CART within the same bounds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, ClassifierMixin, is_classifier
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from evotree.estimators import EvoTreeClassifier, EvoTreeRegressor
from evotree.experiments.datasets import LoadedData
from evotree.experiments.experiment import Experiment
from evotree.experiments.markdown import markdown_table, mean_and_std
from evotree.experiments.protocols import Parts, Task, stratified_folds
from evotree.experiments.studies.study import Results, Study, StudyProtocol
from evotree.operators.constraints.proof import violations
from evotree.tables.columns import encode, feature_names, fit_columns

SIGNS: Mapping[str, Mapping[str, int]] = {
    # Diabetes: sugar in the blood, body mass, age and diabetes in the family raise the risk.
    "pima": {"plas": 1, "mass": 1, "pedi": 1, "age": 1},
    # Heart disease: the known risks, and a pulse that does not rise under strain.
    "heart": {
        "age": 1,
        "resting_blood_pressure": 1,
        "serum_cholestoral": 1,
        "oldpeak": 1,
        "number_of_major_vessels": 1,
        "maximum_heart_rate_achieved": -1,
    },
    # Malignant cells: all columns are grades, 10 being the most abnormal.
    "breast-w": dict.fromkeys(
        (
            "Clump_Thickness",
            "Cell_Size_Uniformity",
            "Cell_Shape_Uniformity",
            "Marginal_Adhesion",
            "Single_Epi_Cell_Size",
            "Bare_Nuclei",
            "Bland_Chromatin",
            "Normal_Nucleoli",
            "Mitoses",
        ),
        1,
    ),
    # Malignant tumours: nuclei that are large, with dents.
    "wdbc": dict.fromkeys(
        (
            "worst_radius",
            "worst_perimeter",
            "worst_area",
            "worst_concavity",
            "worst_concave_points",
        ),
        1,
    ),
    # Who gives blood again: those who gave lately, and often, within a short time.
    "blood-transfusion": {"recency": -1, "frequency": 1, "monetary": 1, "time": -1},
    # Miles per gallon: heavy and strong cars need more, newer ones less.
    "autompg": {"weight": -1, "horsepower": -1, "displacement": -1, "model": 1},
    # Prices of houses: crime, nitric oxides and the share of the poor lower them; rooms do not.
    "housing": {"x0": -1, "x4": -1, "x5": 1, "x12": -1},
    # Strength of concrete: it hardens with cement and days, water makes it weak.
    "concrete": {"cement": 1, "age": 1, "water": -1},
    # Heat that a house needs: it is lost through walls and glass.
    "energy-heating": {"wall_area": 1, "glazing_area": 1},
}
"""What is known of columns: 1 where the target may not fall with one, -1 where it may not rise.

For classes the target is the second one, in the order of their names: diabetes, heart disease,
malignant, another donation.
"""
BOUNDED = ("heart", "breast-w", "wine", "wdbc", "autompg", "housing")
"""The data sets of trees within bounds."""
BOUNDS: Mapping[str, Mapping[str, int]] = {
    f"{name}={value}": {name: value}
    for name, values in (("max_leaf_nodes", (4, 8)), ("max_depth", (2, 3)))
    for value in values
}
"""The bounds that CART has too."""
TERM_BOUNDS: Mapping[str, Mapping[str, int]] = {
    f"max_terms={value}": {"max_terms": value} for value in (10, 20)
}
N_FOLDS = 5
BOUND_FOLDS = 3
TUNING_FOLDS = 5
MAX_ALPHAS = 30
N_PAIRS = 100_000
TOLERANCE = 1e-9
"""By which probabilities may fall where they should not: sums of rounded numbers are no proof."""

FREE, EVOTREE, CART, BOOSTING = "EvoTree", "EvoTree monotonic", "CART monotonic", "HGB monotonic"
MONOTONIC = (FREE, EVOTREE, CART, BOOSTING)


@dataclass(frozen=True)
class NamedProtocol(StudyProtocol):
    """Folds of tables whose columns are named ``data set/column``, and whose classes are codes."""

    def load(self, dataset: str, data_home: Path | None) -> LoadedData:
        """Return a data set; classes are numbered in the order of their names."""
        data = super().load(dataset, data_home)
        if data.y.dtype.kind == "f":
            return data
        return replace(data, y=np.unique(data.y, return_inverse=True)[1])

    def take_parts(self, task: Task, data_home: Path | None, stratified: bool = True) -> Parts:
        """Return the rows of a fold, stratified where there are classes, as encoded tables."""
        data = self.load(task.dataset, data_home)
        folds = (
            list(KFold(self.n_folds, shuffle=True, random_state=task.seed).split(data.y))
            if data.y.dtype.kind == "f"
            else stratified_folds(data.y, self.n_folds, task.seed)
        )
        train, test = folds[task.fold]
        columns = fit_columns(data.X.iloc[train])
        names = [f"{task.dataset}/{name}" for name in feature_names(columns)]
        tables = [
            pd.DataFrame(encode(columns, data.X.iloc[rows]), columns=names)
            for rows in (train, test)
        ]
        return Parts(tables[0], data.y[train], tables[1], data.y[test])


def signs_of(names: Any) -> np.ndarray:
    """Return the signs of columns named ``data set/column``."""
    parted = [str(name).partition("/") for name in names]
    return np.array([SIGNS.get(dataset, {}).get(column, 0) for dataset, _, column in parted])


def prune(tree: BaseEstimator, X: np.ndarray, y: np.ndarray, random_state: int) -> BaseEstimator:
    """Return CART with the cost-complexity that folds score best."""
    path = np.unique(np.maximum(tree.cost_complexity_pruning_path(X, y).ccp_alphas, 0.0))
    shares = np.linspace(0.0, 1.0, min(len(path), MAX_ALPHAS))
    alphas = np.quantile(path, shares, method="nearest")[::-1]
    folds = (
        stratified_folds(y, TUNING_FOLDS, random_state)
        if is_classifier(tree)
        else list(KFold(TUNING_FOLDS, shuffle=True, random_state=random_state).split(y))
    )
    return GridSearchCV(tree, {"ccp_alpha": alphas}, cv=folds).fit(X, y).best_estimator_


KINDS: Mapping[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "EvoTree": (EvoTreeClassifier, EvoTreeRegressor),
    "CART": (DecisionTreeClassifier, DecisionTreeRegressor),
    "HGB": (HistGradientBoostingClassifier, HistGradientBoostingRegressor),
}


class Constrained(ClassifierMixin, BaseEstimator):
    """A classifier of codes, or a regressor of other numbers, with constraints.

    Parameters
    ----------
    kind : str
        One of `KINDS`.
    is_monotonic : bool, default=False
        Whether it keeps the signs of the columns.
    bounds : mapping of str to int, optional
        Bounds on the tree.
    random_state : int, default=0
        Seed.

    Attributes
    ----------
    best_estimator_ : estimator
        Fitted.
    signs_ : ndarray of shape (n_features,), int
        Those of the columns, kept or not.
    """

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
        self.signs_ = signs_of(X.columns)
        made = KINDS[self.kind][y.dtype.kind == "f"](random_state=self.random_state)
        made.set_params(**self.bounds or {})
        if self.is_monotonic:
            made.set_params(monotonic_cst=self.signs_)
        rows = X.to_numpy()
        self.best_estimator_ = (
            prune(made, rows, y, self.random_state) if self.kind == "CART" else made.fit(rows, y)
        )
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Return codes of classes, or targets."""
        predicted: np.ndarray = self.best_estimator_.predict(np.asarray(X))
        return predicted

    def score(self, X: Any, y: np.ndarray, sample_weight: Any = None) -> float:
        """Return the accuracy, or R²."""
        return float(self.best_estimator_.score(np.asarray(X), y, sample_weight))


# ---- what is measured ----------------------------------------------------------------------------


def score(model: Constrained, X: pd.DataFrame, y: np.ndarray) -> float:
    """Return the accuracy, or R², of the test rows."""
    return model.score(X, y)


def raised_pairs(X: np.ndarray, signs: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Draw pairs of rows that differ in one column of known sign.

    Returns
    -------
    rows, raised : ndarray of shape (N_PAIRS, n_features)
        Mixtures of two rows of `X`, column by column, the first one with a share of one half; and
        the same with one column raised by a step of exponential distribution, whose mean is the
        standard deviation of the column.
    sign : ndarray of shape (N_PAIRS,)
        Those of the columns.
    """
    rng = np.random.default_rng(0)
    rows, others = X[rng.integers(len(X), size=(2, N_PAIRS))]
    rows = np.where(rng.random(rows.shape) < 0.5, rows, others)
    column = rng.choice(np.flatnonzero(signs), N_PAIRS)
    raised = rows.copy()
    raised[np.arange(N_PAIRS), column] += rng.exponential(X.std(axis=0)[column] + 1e-12)
    return rows, raised, signs[column]


def share_broken(model: Constrained, X: pd.DataFrame, method: str) -> float:
    """Return the share of pairs whose predictions are in the wrong order; NaN where none can be."""
    predict = getattr(model.best_estimator_, method, None)
    if predict is None or not model.signs_.any():
        return np.nan
    rows, raised, sign = raised_pairs(X.to_numpy(), model.signs_)
    rise = predict(raised) - predict(rows)
    return float(np.mean(sign * (rise[:, 1] if rise.ndim == 2 else rise) < -TOLERANCE))


def broken_predictions(model: Constrained, X: pd.DataFrame, y: np.ndarray) -> float:
    """Return the share of pairs whose labels, or targets, are in the wrong order."""
    return share_broken(model, X, "predict")


def broken_probabilities(model: Constrained, X: pd.DataFrame, y: np.ndarray) -> float:
    """Return the share of pairs whose probabilities are in the wrong order."""
    return share_broken(model, X, "predict_proba")


def violated_leaves(model: Constrained) -> float | None:
    """Return how many pairs of leaves of an evolved tree break the signs, or may break them."""
    if model.kind != "EvoTree" or not model.signs_.any() or model.bounds:
        return None
    return float(len(violations(model.best_estimator_.tree_, model.signs_)))


def make_methods() -> dict[str, Constrained]:
    """Return the methods by name."""
    methods = {
        FREE: Constrained("EvoTree"),
        EVOTREE: Constrained("EvoTree", is_monotonic=True),
        CART: Constrained("CART", is_monotonic=True),
        BOOSTING: Constrained("HGB", is_monotonic=True),
    }
    for bound, bounds in {**BOUNDS, **TERM_BOUNDS}.items():
        methods[f"EvoTree {bound}"] = Constrained("EvoTree", bounds=bounds)
    for bound, bounds in BOUNDS.items():
        methods[f"CART {bound}"] = Constrained("CART", bounds=bounds)
    return methods


def make_experiment() -> Experiment:
    """Return the fits of the study, fold by fold, so that one that is stopped is balanced."""
    methods = make_methods()
    bounded = [name for name in methods if name not in MONOTONIC]
    plan = []
    for fold in range(N_FOLDS):
        plan += [Task(dataset, method, fold, 0) for dataset in SIGNS for method in MONOTONIC]
        if fold < BOUND_FOLDS:
            plan += [Task(dataset, FREE, fold, 0) for dataset in BOUNDED if dataset not in SIGNS]
            plan += [Task(dataset, method, fold, 0) for dataset in BOUNDED for method in bounded]
    return Experiment(
        "constraints",
        tuple(dict.fromkeys((*SIGNS, *BOUNDED))),
        methods,
        NamedProtocol(n_folds=N_FOLDS),
        metrics=(),
        scorers={
            "score": score,
            "broken_predictions": broken_predictions,
            "broken_probabilities": broken_probabilities,
        },
        measures={"violations": violated_leaves},
        plan=plan,
        curve=None,
    )


# ---- report --------------------------------------------------------------------------------------


def complete(runs: pd.DataFrame, methods: Any, datasets: Any) -> pd.DataFrame:
    """Return the rows of the folds that all of the methods have, of some data sets."""
    found = runs[runs["method"].isin(methods) & runs["dataset"].isin(list(datasets))]
    counts = found.groupby(["dataset", "fold"])["method"].transform("nunique")
    return found[counts == len(list(methods))]


def _ordered(runs: pd.DataFrame, datasets: Any) -> list[str]:
    return [name for name in datasets if name in set(runs["dataset"])]


def scores_table(runs: pd.DataFrame) -> str:
    """Return scores and sizes of the methods on the data sets of known signs, in Markdown."""
    runs = complete(runs, MONOTONIC, SIGNS)
    groups = dict(iter(runs.groupby(["dataset", "method"])))
    rows = []
    for dataset in _ordered(runs, SIGNS):
        row = {"data set": dataset, "folds": str(len(groups[dataset, FREE]))}
        for method in MONOTONIC:
            row[method] = mean_and_std(groups[dataset, method]["score"], 3)
        for method in MONOTONIC[:3]:
            means = groups[dataset, method][["leaves", "terms"]].mean()
            row[f"leaves / terms, {method}"] = f"{means['leaves']:.1f} / {means['terms']:.1f}"
        rows.append(row)
    return markdown_table(pd.DataFrame(rows))


def violations_table(runs: pd.DataFrame) -> str:
    """Return how often trees that do not know the signs break them, in Markdown."""
    runs = complete(runs, MONOTONIC, SIGNS)
    rows = []
    for dataset in _ordered(runs, SIGNS):
        found = runs[(runs["dataset"] == dataset) & (runs["method"] == FREE)]
        row = {"data set": dataset}
        row["trees that break a sign"] = f"{int((found['violations'] > 0).sum())} of {len(found)}"
        row["pairs of leaves, mean"] = f"{found['violations'].mean():.1f}"
        for what in ("predictions", "probabilities"):
            share = 100.0 * found[f"broken_{what}"].mean()
            row[f"{what}, %"] = "" if np.isnan(share) else f"{share:.2f}"
        rows.append(row)
    return markdown_table(pd.DataFrame(rows))


def kept_table(runs: pd.DataFrame) -> str:
    """Return how many fits of each method break a sign, in Markdown."""
    runs = complete(runs, MONOTONIC, SIGNS)
    rows = []
    for method in MONOTONIC:
        found = runs[runs["method"] == method]
        if found.empty:
            continue
        row = {"method": method, "fits": str(len(found))}
        for name, column in (
            ("by leaves", "violations"),
            ("by predictions", "broken_predictions"),
            ("by probabilities", "broken_probabilities"),
        ):
            known = found[column].dropna()
            row[name] = f"{int((known > 0).sum())} of {len(known)}" if len(known) else ""
        rows.append(row)
    return markdown_table(pd.DataFrame(rows))


def summary(runs: pd.DataFrame) -> str:
    """Return how the monotonic tree stands to the others, in Markdown."""
    runs = complete(runs, MONOTONIC, SIGNS)
    if runs.empty:
        return markdown_table(pd.DataFrame())
    means = runs.groupby(["dataset", "method"])["score"].mean().unstack()
    sizes = runs.groupby(["dataset", "method"])[["leaves", "terms"]].mean().unstack()
    rows = []
    for other in (FREE, CART, BOOSTING):
        gain = means[EVOTREE] - means[other]
        row = {f"{EVOTREE} beside": other}
        row["better / equal / worse"] = (
            f"{int((gain > TOLERANCE).sum())} / {int((gain.abs() <= TOLERANCE).sum())} / "
            f"{int((gain < -TOLERANCE).sum())}"
        )
        row["mean difference of the score"] = f"{gain.mean():+.4f}"
        for size in ("leaves", "terms"):
            ratio = sizes[size][EVOTREE] / sizes[size].get(other, np.nan)
            row[f"{size}, median ratio"] = "" if other == BOOSTING else f"{ratio.median():.2f}"
        rows.append(row)
    return markdown_table(pd.DataFrame(rows))


def bounds_table(runs: pd.DataFrame) -> str:
    """Return scores and terms within bounds beside CART's, in Markdown."""
    rows = []
    for bound in BOUNDS:
        names = [f"EvoTree {bound}", f"CART {bound}"]
        found = complete(runs, names, BOUNDED)
        if found.empty:
            continue
        means = found.groupby(["dataset", "method"])[["score", "leaves", "terms"]].mean().unstack()
        row = {"bound": bound}
        gain = means["score"][names[0]] - means["score"][names[1]]
        row["data sets on which EvoTree is better"] = f"{int((gain > 0).sum())} of {len(gain)}"
        row["mean difference of the score"] = f"{gain.mean():+.4f}"
        for name in names:
            row[f"leaves, {name.split()[0]}"] = f"{means['leaves'][name].mean():.1f}"
            row[f"terms, {name.split()[0]}"] = f"{means['terms'][name].mean():.1f}"
        rows.append(row)
    return markdown_table(pd.DataFrame(rows))


def bounded_scores_table(runs: pd.DataFrame) -> str:
    """Return the mean scores and terms of all bounded trees, in Markdown."""
    names = [name for name in make_methods() if name not in MONOTONIC or name == FREE]
    found = complete(runs[runs["fold"] < BOUND_FOLDS], names, BOUNDED)
    means = found.groupby(["dataset", "method"])[["score", "leaves", "terms"]].mean()
    datasets, rows = _ordered(found, BOUNDED), []
    for method in names:
        row = {"method": method}
        for dataset in datasets:
            one = means.loc[(dataset, method)]
            row[dataset] = f"{one['score']:.3f} ({one['leaves']:.1f} / {one['terms']:.1f})"
        rows.append(row)
    return markdown_table(pd.DataFrame(rows))


def signs_table() -> str:
    """Return the known signs, in Markdown."""
    rows = [
        {
            "data set": dataset,
            "may not fall with": ", ".join(name for name, sign in signs.items() if sign > 0),
            "may not rise with": ", ".join(name for name, sign in signs.items() if sign < 0),
        }
        for dataset, signs in SIGNS.items()
    ]
    return markdown_table(pd.DataFrame(rows), n_left=3)


def write(results: Results) -> str:
    """Return the report."""
    runs = results.runs
    return f"""# Constraints

Written by `evotree experiment study constraints --data-home DIR --out docs/results`, from the rows
in `constraints_runs.csv`: {results.planned} fits, {N_FOLDS} folds, stratified where there are
classes. Scores are accuracies, and R² of autompg, housing, concrete and energy-heating.

## Monotonic trees

What is taken for known of the columns, of the second class or the target:

{signs_table()}

`EvoTree` does not know it, the others have it as `monotonic_cst`. CART is scikit-learn's, and folds
choose its pruning; HGB is scikit-learn's histogram gradient boosting.

{summary(runs)}

Test scores, mean ± standard deviation over folds, and sizes:

{scores_table(runs)}

How often signs are broken. By leaves: a row of one leaf reaches another when a column is raised,
and the second one predicts what it may not. `evotree.operators.constraints.proof.violations` finds
all such pairs of leaves of evolved trees; that there are none is a proof for all rows. By
predictions and probabilities: among {N_PAIRS:,} pairs of points, mixtures of test rows, of which
one column is raised at random; differences up to {TOLERANCE:g} do not count. Fits that break a
sign:

{kept_table(runs)}

The trees that do not know the signs (percentages are of the pairs of points):

{violations_table(runs)}

## Bounds

The first {BOUND_FOLDS} folds of {", ".join(BOUNDED)}, as far as all methods that are
compared have them. CART is pruned within its bounds.

{bounds_table(runs)}

Test scores, leaves and terms in parentheses:

{bounded_scores_table(runs)}
"""


STUDY = Study(
    "constraints",
    "monotonic trees on nine data sets beside CART and boosting, and trees within bounds",
    make_experiment,
    write,
)
