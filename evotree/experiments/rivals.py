"""A table of one's own: the default tree beside the models that one would take else.

All are fitted to the same folds and scored on the same rows. Texts are categories, and cells may be
missing. Our trees read the table as it is; for the others a missing number is the median of the
training rows, and a further feature tells it; each level of a category is a feature of 0 and 1.
"""

import math
import time as clock
import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib.util import find_spec
from itertools import product
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from pandas.api.types import is_numeric_dtype
from sklearn import compose, ensemble, impute, linear_model, preprocessing, tree
from sklearn.metrics import check_scoring
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.utils import check_consistent_length, column_or_1d
from tqdm import tqdm

from evotree.estimators import EvoTreeClassifier, EvoTreeRegressor
from evotree.estimators.rows import read_groups
from evotree.experiments import comparison, execution, runner
from evotree.experiments.experiment import innermost, tree_sizes
from evotree.experiments.protocols import Folds, Protocol, Task, folds_of
from evotree.tables.frames import (
    are_many_numbers,
    as_numbers,
    as_table,
    by_row,
    read_labels,
)

REFERENCE = "EvoTree"
TREES, CART = (REFERENCE, f"{REFERENCE}, constant leaves"), "CART"
# Scores of classes, and of numbers, by scikit-learn's names; and sizes, with their decimals.
CLASS_SCORES = {
    "accuracy": "accuracy",
    "AUC": "roc_auc_ovr",
    "log loss": "neg_log_loss",
}
TARGET_SCORES = {
    "R²": "r2",
    "MAE": "neg_mean_absolute_error",
    "RMSE": "neg_root_mean_squared_error",
}
SIZES = {"leaves": 0, "complexity": 0, "seconds": 2}
_CART_LEAVES = {"max_leaf_nodes": (2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128)}
_INNER_FOLDS = 5


def rivals(n_classes: int) -> dict[str, Any]:
    """Return ours and what one would take else, for classes or, where there are none, numbers."""
    kind = "Classifier" if n_classes else "Regressor"
    own: Any = EvoTreeClassifier if n_classes else EvoTreeRegressor
    linear: tuple[str, Any] = (
        ("logistic regression", linear_model.LogisticRegression(max_iter=1000))
        if n_classes
        else ("ridge regression", linear_model.RidgeCV(np.logspace(-3.0, 3.0, 13)))
    )
    models = {
        CART: GridSearchCV(getattr(tree, f"DecisionTree{kind}")(), _CART_LEAVES),
        **dict([linear]),
        "random forest": getattr(ensemble, f"RandomForest{kind}")(),
        "boosting": getattr(ensemble, f"HistGradientBoosting{kind}")(),
    }
    if find_spec("interpret"):
        from interpret import glassbox

        # Of 14 bags it would take longer than all others together. Of more than two classes the
        # package cannot show pairs of columns.
        quick: dict[str, Any] = {"outer_bags": 4, "n_jobs": 1}
        pairs = {"interactions": 0} if n_classes > 2 else {}
        models["EBM"] = getattr(glassbox, f"ExplainableBoosting{kind}")(
            **quick, **pairs
        )
    kind_of = compose.make_column_selector
    encoder = compose.make_column_transformer(
        (
            impute.SimpleImputer(
                strategy="median", add_indicator=True, keep_empty_features=True
            ),
            kind_of(dtype_exclude="category"),
        ),
        (
            preprocessing.OneHotEncoder(handle_unknown="ignore", sparse_output=False),
            kind_of(dtype_include="category"),
        ),
    )
    return dict(zip(TREES, [own(), own(leaves="constant")], strict=True)) | {
        name: make_pipeline(encoder, preprocessing.StandardScaler(), model)
        for name, model in models.items()
    }


def sizes_of(model: Any) -> dict[str, float]:
    """Return the leaves of a model's trees, and its complexity: how many parts it is made of.

    Parts are the leaves and terms of our trees, the nodes of others, coefficients and intercepts,
    and the steps of the functions of an explainable boosting machine.
    """
    last = innermost(model)
    parts = np.sum([np.size(steps) for steps in getattr(last, "term_scores_", [])])
    if hasattr(last, "coef_"):
        parts = np.count_nonzero(last.coef_) + np.size(last.intercept_)
    # Of histogram boosting.
    counts = [t.get_n_leaf_nodes() for t in np.ravel(getattr(last, "_predictors", []))]
    boosted = {"leaves": sum(counts), "complexity": 2 * sum(counts) - len(counts)}
    return {"complexity": parts} | (boosted if counts else tree_sizes(model))


class Comparison(NamedTuple):
    """Methods on the same folds of a table; printed, it is two tables.

    Attributes
    ----------
    runs : DataFrame
        A row a fit, with ``method``, ``fold``, scores, ``leaves``, ``complexity`` and ``seconds``.
        A score is missing where a class has no rows.
    scores : list of str
        The columns of scores; the first is that of the picture.
    about : str
        What was compared, in words.
    test_ratio : float
        Test rows to a training row.
    """

    runs: pd.DataFrame
    scores: list[str]
    about: str
    test_ratio: float

    def means(self, less: str | None = None) -> pd.DataFrame:
        """Return mean scores and standard errors as texts; `less` those of a method, if named."""
        texts = {}
        names = [name for name in self.runs["method"].unique() if name != less]
        for score in self.scores:
            by_fold = self.runs.pivot(index="fold", columns="method", values=score)
            base = by_fold[less] if less else pd.Series(0.0, by_fold.index)
            tests = [
                comparison.paired_t_test(by_fold[name], base, self.test_ratio)
                for name in names
            ]
            adjusted = comparison.adjust_by_holm([test.p_value for test in tests])
            largest = by_fold.abs().max(axis=None)
            digits = max(0, 3 - int(np.log10(largest))) if largest > 0.0 else 3
            form = f"{{:{'+' if less else ''}.{digits}f}} ± {{:.{digits}f}}{{}}".format
            texts[score] = [
                form(
                    round(test.difference, digits) + 0.0,  # no -0.000
                    test.standard_error,
                    "*" if less and p_value < comparison.LEVEL else " ",
                )
                for test, p_value in zip(tests, adjusted, strict=True)
            ]
        return pd.DataFrame(texts, names).replace(r"\+?nan ± nan.", "–", regex=True)

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the first score against the complexity; best is the upper left."""
        axes = comparison.plot_accuracy_against_size(
            self.runs, "complexity", metric=self.scores[0], ax=ax
        )
        axes.get_lines()[0].set_markersize(11.0)  # seen below another at its place
        axes.set(
            xlabel="complexity: parts that the model is made of, mean over the folds",
            ylabel=f"{self.scores[0]}, mean over the folds",
        )
        return axes

    def __str__(self) -> str:
        medians = self.runs.groupby("method")[[*SIZES]].median()
        sizes = {
            name: medians[name].map(f"{{:.{digits}f}}".format).replace("nan", "–")
            for name, digits in SIZES.items()
        }
        n_folds = self.runs["fold"].nunique()
        lost = [score for score in self.scores if self.runs[score].isna().any()]
        note = f"\n{', '.join(lost)}: of folds alone that have rows of all classes."
        return (
            f"{self.about}{note if lost else ''}\n\n{self.means().assign(**sizes).to_string()}\n\n"
            f"Difference to {REFERENCE}, fold by fold:\n{self.means(REFERENCE).to_string()}\n\n"
            f"±: standard error √((1/{n_folds} + {self.test_ratio:.2g}) s²), since folds share "
            "rows to fit on (Nadeau and\nBengio 2003). *: its t-test, at the level "
            f"{comparison.LEVEL:g}, Holm over the methods. Sizes, seconds\nof the processor: "
            "medians."
        )


def compare(
    X: Any,
    y: Any,
    *,
    groups: Any = None,
    time: Any = None,
    task: Literal["auto", "classification", "regression"] = "auto",
    n_folds: int = 5,
    random_state: int = 0,
    n_jobs: int = 1,
) -> Comparison:
    """Compare the default with the models that one would take else, on rows of one's own.

    These are the default with constant leaves, CART of as many leaves as five folds choose,
    logistic or ridge regression, a random forest and histogram boosting, of scikit-learn with its
    defaults, and where `interpret` is installed an explainable boosting machine of 4 bags. One that
    fails is left out, with a warning.

    Parameters
    ----------
    X : array-like or DataFrame of shape (n_samples, n_features)
        Rows. Columns of texts are categories; cells may be missing.
    y : array-like of shape (n_samples,)
        Classes or numbers, none missing.
    groups : array-like of shape (n_samples,), optional
        Labels of rows that belong together: no fold parts them, nor does a method that holds rows
        out.
    time : array-like of shape (n_samples,), optional
        Numbers or dates: each fold is later than the rows that are fitted. Not with `groups`.
    task : {"auto", "classification", "regression"}, default="auto"
        What `y` holds: by default numbers where it has more than 20 different ones.
    n_folds : int, at least 2, default=5
        Folds; shuffled, but for `time`, and stratified for classes.
    random_state : int, at least 0, default=0
        Shuffles the rows, and sets, with the fold, the random states of the methods.
    n_jobs : int, at least 1, default=1
        Number of processes, each on one core.

    Returns
    -------
    Comparison
        Printed, it is a table of scores; ``plot()`` draws it, ``runs`` has a row a fit.
    """
    if groups is not None and time is not None:
        raise ValueError("groups and time are given: allowed is one of them.")
    if task not in ("auto", "classification", "regression"):
        raise ValueError(
            f"task={task!r}: allowed are 'auto', 'classification' and 'regression'."
        )
    given = {"y": y, "groups": groups, "time": time}
    y, groups, time = (by_row(given[name], X, name) for name in given)
    X, y = as_table(X), column_or_1d(read_labels(y))
    check_consistent_length(X, y, groups, time)
    X = X.astype(
        {
            name: float if is_numeric_dtype(dtype) else "category"
            for name, dtype in X.dtypes.items()
        }
    )
    is_regression = task == "regression" or (task == "auto" and are_many_numbers(y))
    if is_regression:
        y = as_numbers("y", y)
    if groups is not None:
        groups = read_groups(groups, len(y))
    beside = [None if some is None else np.asarray(some) for some in (groups, time)]
    deal = partial(folds_of, random_state=random_state, stratified=not is_regression)
    folds = deal(y, Protocol(n_folds).n_folds, *beside)
    n_classes = 0 if is_regression else len(np.unique(y))
    methods = rivals(n_classes)
    scores = TARGET_SCORES if is_regression else CLASS_SCORES
    fit = partial(_fit, methods, X, y, beside, folds, deal, scores)
    tasks = [
        Task("", name, fold, random_state)
        for fold, name in product(range(len(folds)), methods)
    ]
    bar = tqdm(
        runner.outcomes_of(fit, tasks, n_jobs),
        total=len(tasks),
        unit="fit",
        disable=None,
    )
    outcome_of = {outcome.task: outcome for outcome in bar}
    failed = {
        task.method: outcome.error.strip().rpartition("\n")[2]
        for task, outcome in outcome_of.items()
        if outcome.error
    }
    if REFERENCE in failed:
        raise ValueError(f"{REFERENCE} failed: {failed[REFERENCE]}")
    for name, error in failed.items():
        warnings.warn(f"{name} is left out, it failed: {error}", stacklevel=2)
    rows = [
        {**task._asdict(), **outcome_of[task].result}
        for name in methods
        for task in tasks
        if task.method == name and name not in failed
    ]
    targets = f"{n_classes} classes" if n_classes else "numbers"
    dealt = ", of whole groups" if groups is not None else ""
    dealt += ", later than the rows to fit on" if time is not None else ", shuffled"
    return Comparison(
        pd.DataFrame(rows),
        list(scores),
        f"{len(y):,} rows, {X.shape[1]} columns, {targets}; {len(folds)} folds{dealt}",
        float(np.mean([len(test) / len(train) for train, test in folds])),
    )


def _fit(
    methods: Mapping[str, Any],
    X: pd.DataFrame,
    y: np.ndarray,
    beside: Sequence[np.ndarray | None],
    folds: Folds,
    deal: Callable[..., Folds],
    scores: Mapping[str, str],
    task: Task,
) -> dict[str, float]:
    """Do one fit; return scores, sizes and seconds of the processor."""
    train, test = folds[task.fold]
    model = execution.seed_method(methods[task.method], Protocol().random_state(task))
    told: dict[str, Any] = {}
    groups, times = (None if some is None else some[train] for some in beside)
    # Where rows are not alike, methods that hold some out do so in the way of the folds.
    if groups is not None and task.method in TREES:
        told = {"groups": groups}
    elif times is not None and task.method in TREES:
        told = {"cv": deal(y[train], _INNER_FOLDS, None, times)}
    elif task.method == CART and (groups is not None or times is not None):
        model.set_params(gridsearchcv__cv=deal(y[train], _INNER_FOLDS, groups, times))
    begin = clock.process_time()
    model.fit(X.iloc[train], y[train], **told)
    row = {"seconds": clock.process_time() - begin, **sizes_of(model)}
    scorer = check_scoring(model, scoring=dict(scores), raise_exc=False)
    for name, score in scorer(model, X.iloc[test], y[test]).items():
        sign = -1.0 if scores[name].startswith("neg_") else 1.0
        # A text where it cannot be computed, as some class has no rows.
        row[name] = math.nan if isinstance(score, str) else sign * score
    return row
