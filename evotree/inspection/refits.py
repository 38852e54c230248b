"""How much of a tree is the data's, and how much the sample's: refits to other rows."""

from collections.abc import Mapping
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy import stats
from sklearn.base import clone, is_classifier
from sklearn.model_selection import (
    GroupShuffleSplit,
    ShuffleSplit,
    StratifiedShuffleSplit,
)
from sklearn.utils import _safe_indexing

from evotree.dataset import EXPOSURE, GROUPS
from evotree.estimators.rows import Beside
from evotree.fitted import used_features
from evotree.inspection.comparison import check_model
from evotree.tables.frames import frame_of
from evotree.words import check_whole, printable

_HELD_OUT_SHARE = 0.2
_COVERAGE = 0.95  # how often the interval is to hold
_SHOWN = 10  # columns in the printed form


class Stability(NamedTuple):
    """What refits to other rows have in common.

    Attributes
    ----------
    summary : pandas.Series
        Means over pairs of refits: ``agreement``, the share of rows that both predict alike, for
        targets the correlation; ``columns``, the share of the columns that both use, of those that
        one does; ``root``, the absolute cosine of the normals of their roots in standard units, NaN
        without two splits. Then ``score``, the mean accuracy, R² or concordance on rows that a
        refit has not seen, of trees evolved for costs the mean cost a row, and ``lower`` and
        ``upper``, its interval. Risks of times to an event agree by their logarithms.
    columns : pandas.Series
        Share of the refits that use each column, the largest first.
    disagreement : ndarray of shape (n_samples,)
        Share of the pairs that predict a row differently; for targets the standard deviation of its
        predictions, in that of the targets, or of the logarithms of its risks.
    measure : str
        What the score is.
    """

    summary: pd.Series
    columns: pd.Series
    disagreement: np.ndarray
    measure: str

    def __repr__(self) -> str:
        found = self.summary
        used = [
            f"{printable(name)} {share:.2f}" for name, share in self.columns.items()
        ]
        if len(used) > _SHOWN:
            used[_SHOWN:] = [f"{len(used) - _SHOWN} more"]
        return (
            f"{found.name}: {self.measure} {found.score:.3f} "
            f"[{found.lower:.3f}, {found.upper:.3f}], agreement {found.agreement:.3f}, "
            f"columns {found.columns:.2f}, root {found.root:.2f}\n"
            f"use of columns: {', '.join(used) or 'none'}"
        )


def stability(
    model: Any,
    X: Any,
    y: Any,
    n: int = 20,
    random_state: Any = None,
    *,
    groups: Any = None,
    sample_weight: Any = None,
    exposure: Any = None,
) -> Stability:
    """Fit `n` clones of a model to random four fifths of the rows, and compare them.

    The interval of the score is about fits to four fifths of the rows. It is that of the corrected
    resampled t-test (Nadeau and Bengio 2003): refits share rows, so that the variance of their
    scores counts ``1 / n + 1 / 4`` times, not ``1 / n``. Of 95 % it held the truth in 91 of 100
    draws of 60 rows, and in 95 of 100 of 200 rows. Nested cross-validation (Bates, Hastie and
    Tibshirani 2023) takes hundreds of fits.

    Parameters
    ----------
    model : estimator of one tree
        It stays as it is.
    X : array-like of shape (n_rows, n_columns)
        Rows.
    y : array-like of shape (n_rows,) or (n_rows, n_outputs)
        Classes or targets; times to an event as `EvoTreeSurvival` takes them.
    n : int, at least 2, default=20
        How many clones are fitted.
    random_state : None, int or RandomState, default=None
        Source of the draws of rows; the clones have the model's own.
    groups : array-like of shape (n_rows,), optional
        Labels of rows that belong together: four fifths of the groups are drawn, the clones get
        them, too, and the interval takes groups for independent, not rows.
    sample_weight, exposure : array-like of shape (n_rows,), optional
        Weights of the rows, and what their events were counted at, for the fits and the scores.

    Returns
    -------
    Stability
        Means over pairs of clones, shares by columns, and a number for each row.

    Raises
    ------
    ValueError
        If `n` is out of range.

    References
    ----------
    Nadeau C., Bengio Y. (2003). Inference for the generalization error. Machine Learning 52,
    239-281.
    """
    check_model("model", model)
    if hasattr(model, "fitted_"):
        model.fitted_.check_beside("stability", exposure, sample_weight, groups)
    check_whole("n", n, 2)
    is_of_classes = is_classifier(model)
    is_of_times = hasattr(model, "predict_survival_function")
    targets = model._read_y(X, y)
    if is_of_times:
        targets = targets.columns
    draw: Any = StratifiedShuffleSplit if is_of_classes else ShuffleSplit
    table = frame_of(X)
    table = table if hasattr(table, "iloc") else np.asarray(table)
    beside = Beside(sample_weight, groups=groups, exposure=exposure).in_order(X, y)
    given = {name: np.asarray(values) for name, values in beside.given.items()}
    labels = given.get(GROUPS)
    if labels is not None:
        draw = GroupShuffleSplit
    draws = draw(n, test_size=_HELD_OUT_SHARE, random_state=random_state)
    train, tests = zip(*draws.split(table, targets, labels), strict=True)
    fits, scores = zip(
        *(
            _refit(model, table, targets, given, *pair)
            for pair in zip(train, tests, strict=True)
        ),
        strict=True,
    )
    if exposure is not None:  # rates are predicted
        targets = targets / given[EXPOSURE]
    found = np.array([fit.predict(table) for fit in fits])
    unit = 1.0 if is_of_classes else targets.var(axis=0).mean() or 1.0
    if is_of_times:
        found, unit = np.log(found), 1.0
    is_of_costs = fits[0].fitted_.is_of_costs
    measure = "accuracy" if is_of_classes else "concordance" if is_of_times else "R²"
    if is_of_costs:
        measure = fits[0].fitted_.measure
    pairs = list(combinations(range(n), 2))
    agreement, disagreement = _agreement(found, pairs, unit, is_of_classes)
    used, roots = [_used_columns(fit) for fit in fits], pd.DataFrame(map(_root, fits))
    counts = pd.Series(
        [name for names in used for name in sorted(names)], dtype=object
    ).value_counts()
    normals = roots.dropna(how="all").fillna(0.0).to_numpy()
    cosines = np.abs(normals @ normals.T)[np.triu_indices(len(normals), 1)]
    variance = np.var(scores, ddof=1) * (1.0 / n + len(tests[0]) / len(train[0]))
    margin = np.sqrt(variance) * stats.t.ppf(0.5 + 0.5 * _COVERAGE, n - 1)
    summary = {
        "agreement": agreement,
        "columns": np.mean(
            [len(used[a] & used[b]) / (len(used[a] | used[b]) or 1) for a, b in pairs]
        ),
        "root": cosines.mean() if cosines.size else np.nan,
        "score": np.mean(scores),
        "lower": np.mean(scores) - margin,
        "upper": np.mean(scores) + margin,
    }
    if not is_of_costs:
        summary["upper"] = min(1.0, summary["upper"])
    return Stability(
        pd.Series(summary, name=f"{n} refits"),
        counts / n,
        disagreement,
        measure,
    )


def _refit(
    model: Any,
    table: Any,
    targets: np.ndarray,
    given: Mapping[str, np.ndarray],
    train: np.ndarray,
    test: np.ndarray,
) -> tuple[Any, float]:
    """Return a clone that is fitted to some rows, and its score on others."""
    fit, judge = (
        {name: values[rows] for name, values in given.items()} for rows in (train, test)
    )
    judge.pop(GROUPS, None)
    refit = clone(model).fit(_safe_indexing(table, train), targets[train], **fit)
    score = refit.cost_score if refit.fitted_.is_of_costs else refit.score
    return refit, score(_safe_indexing(table, test), targets[test], **judge)


def _agreement(
    found: np.ndarray, pairs: list[tuple[int, int]], unit: float, is_of_classes: bool
) -> tuple[float, np.ndarray]:
    """Return how far refits agree, and how far they disagree about each row."""
    if is_of_classes:
        disagreement = np.mean([found[a] != found[b] for a, b in pairs], axis=0)
        return 1.0 - float(disagreement.mean()), disagreement
    n = len(found)
    spread = found.reshape(n, found.shape[1], -1).std(axis=0).mean(axis=1)
    # The correlation of equal predictions is NaN.
    with np.errstate(invalid="ignore", divide="ignore"):
        agreement = np.corrcoef(found.reshape(n, -1))[np.triu_indices(n, 1)].mean()
    return float(agreement), spread / np.sqrt(unit)


def _used_columns(model: Any) -> set[str]:
    """Return the names of the columns that a tree uses."""
    schema = model.fitted_.schema
    return {schema.names[schema.column_of[j]] for j in used_features([model.fitted_])}


def _root(model: Any) -> dict[str, float]:
    """Return the normal of the root in standard units, of length 1; NaN where it is no split."""
    normal = model.tree_.weights[0] * model.tree_.spread
    length = np.linalg.norm(normal) or np.nan
    return dict(zip(model.feature_names_, normal / length, strict=True))
