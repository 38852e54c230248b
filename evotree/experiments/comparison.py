"""Methods compared over data sets: paired tests, tables of means, and a picture of these.

In: a table of runs, one row a fit, with the columns ``dataset``, ``method``, ``fold`` and ``seed``
and those of scores, sizes and times. Out: tables, and matplotlib's Axes.

Runs of two methods on a data set are paired by fold and seed. Of n differences the mean, over the
root of their variance times ``1 / n + n_2 / n_1``, has Student's distribution where the methods are
equal (Nadeau and Bengio 2003, section 4): n_2 test rows and n_1 training rows share rows with those
of other runs.

References
----------
Holm S. (1979). A simple sequentially rejective multiple test procedure. Scandinavian Journal of
Statistics 6, 65-70.
Nadeau C., Bengio Y. (2003). Inference for the generalization error. Machine Learning 52, 239-281.
"""

import math
from itertools import product
from typing import NamedTuple

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from numpy.typing import ArrayLike
from scipy import stats

from evotree.plotting import style

LEVEL = 0.05
"""Differences with an adjusted p-value below it are significant."""
_ESCAPES = str.maketrans({character: f"\\{character}" for character in "\\`*_|<[]"})
_MARKS = {"win": " •", "loss": " ◦", "tie": ""}


def markdown_table(rows: pd.DataFrame, n_left: int = 1) -> str:
    """Return a table of texts in Markdown; so many columns are aligned to the left."""
    rules = ["---" if k < n_left else "---:" for k in range(rows.shape[1])]
    head, *lines = [
        f"| {' | '.join(cells)} |" for cells in (rows.columns, *rows.to_numpy())
    ]
    return "\n".join([head, f"|{'|'.join(rules)}|", *lines])


def in_markdown(text: object) -> str:
    """Return a text on one line that Markdown shows as it is: names may be those of strangers."""
    characters = (one if one.isprintable() else " " for one in str(text))
    return "".join(characters).translate(_ESCAPES)


def complete_datasets(runs: pd.DataFrame) -> tuple[list[str], list[str]]:
    """Part the data sets on which all methods have runs on the same folds from the others."""
    by_fold = runs.groupby(["dataset", "fold"], sort=False)["method"].nunique()
    n_methods = by_fold.groupby("dataset", sort=False).min()
    is_complete = n_methods == runs["method"].nunique()
    return list(n_methods.index[is_complete]), list(n_methods.index[~is_complete])


def mean_scores(runs: pd.DataFrame, column: str, of: str = "mean") -> pd.DataFrame:
    """Return means over folds and seeds, (n_datasets, n_methods); NaN where there are no runs.

    Another word of pandas' ``agg`` takes the place of the mean.
    """
    values = runs.groupby(["dataset", "method"])[column].agg(of).unstack()
    return values.reindex(
        index=runs["dataset"].unique(), columns=runs["method"].unique()
    )


class PairedTTest(NamedTuple):
    """A paired t-test: two-sided, of the mean of the differences, first less second."""

    n_pairs: int
    difference: float
    standard_error: float
    statistic: float
    p_value: float


def paired_t_test(
    first: ArrayLike, second: ArrayLike, test_ratio: float = 0.0
) -> PairedTTest:
    """Compare paired scores by a t-test, corrected by the test rows to a training row.

    A pair of which one score is missing does not count.
    """
    scores = pd.DataFrame(np.array([first, second], np.float64)).dropna(axis=1)
    differences = scores.iloc[0] - scores.iloc[1]
    last_bits = 1e-12 * scores.abs().to_numpy().max(initial=0.0)
    differences = differences.mask(differences.abs() <= last_bits, 0.0)
    n = len(differences)
    difference = float(differences.mean())
    error = float(differences.sem() * math.sqrt(1.0 + n * test_ratio))
    if differences.max() - differences.min() <= last_bits and n > 1:
        error = 0.0
    statistic = difference / error if error else math.copysign(math.inf, difference)
    if difference == 0.0:
        statistic = 0.0
    p_value = float(2.0 * stats.t.sf(abs(statistic), n - 1))
    return PairedTTest(n, difference, error, statistic, p_value)


def adjust_by_holm(p_values: ArrayLike) -> np.ndarray:
    """Return p-values adjusted for their number by Holm's procedure; NaN does not count."""
    adjusted = np.array(p_values, np.float64)
    order = np.argsort(adjusted)[: np.count_nonzero(~np.isnan(adjusted))]
    factors = np.arange(len(order), 0, -1)
    adjusted[order] = np.minimum(np.maximum.accumulate(factors * adjusted[order]), 1.0)
    return adjusted


def paired_t_tests(
    runs: pd.DataFrame, metric: str, reference: str, test_ratio: float
) -> pd.DataFrame:
    """Compare a method with each other one on each data set, by corrected t-tests.

    Parameters
    ----------
    runs : DataFrame
        Runs, with the columns ``dataset``, ``method``, ``fold``, ``seed`` and that of the scores.
    metric : str
        Column of the scores, of which more is better.
    reference : str
        The method to be compared with the others.
    test_ratio : float, at least 0
        Test rows to a training row: 1 / (k - 1) for k folds. The plain paired t-test has 0.

    Returns
    -------
    DataFrame
        A row for each other method and data set that both have. ``difference`` is reference less
        method, ``adjusted`` the p-value by Holm's procedure over the data sets of the method, and
        ``verdict`` says ``win`` where the reference is significantly better, ``loss`` where worse,
        else ``tie``, and nothing for one pair, which has no test.
    """
    scores = runs.pivot(
        index=["dataset", "fold", "seed"], columns="method", values=metric
    )
    results = []
    for method, dataset in product(runs["method"].unique(), runs["dataset"].unique()):
        pairs = scores.loc[dataset, [reference, method]].dropna()
        if len(pairs) and method != reference:
            result = paired_t_test(pairs[reference], pairs[method], test_ratio)
            results.append((method, dataset, *result))
    tests = pd.DataFrame(results, columns=["method", "dataset", *PairedTTest._fields])
    adjusted = tests.groupby("method")["p_value"].transform(adjust_by_holm)
    verdicts = np.select(
        [adjusted.isna(), adjusted >= LEVEL, tests["difference"] > 0.0],
        ["", "tie", "win"],
        "loss",
    )
    return tests.assign(adjusted=adjusted, verdict=verdicts)


def mean_table(
    runs: pd.DataFrame,
    column: str,
    decimals: int = 2,
    best: str | None = "max",
    tests: pd.DataFrame | None = None,
) -> str:
    """Return means and deviations over folds and seeds in Markdown, with the verdicts of tests.

    The last rows are the mean over the data sets that all methods have, and how many tests of
    `paired_t_tests` the reference has won, tied and lost. The `best` mean of a row is bold.
    """
    means, stds = mean_scores(runs, column), mean_scores(runs, column, "std")
    datasets, left_out = complete_datasets(runs)
    last = means.loc[datasets].mean().to_frame("mean").T
    means, stds = pd.concat([means, last]), pd.concat([stds, np.nan * last])
    cells = means.map(f"{{:.{decimals}f}}".format)
    if best is not None:
        is_best = cells.eq(means.agg(best, axis=1).map(f"{{:.{decimals}f}}".format), 0)
        cells = cells.mask(is_best, "**" + cells + "**")
    spreads = stds.map(f" ± {{:.{decimals}f}}".format).where(stds.notna(), "")
    cells = cells.where(means.notna(), "–") + spreads
    note = f"mean: over {len(datasets)} of {len(means) - 1} data sets"
    if left_out:
        note += f", without {', '.join(left_out)}"
    if stds.notna().any(axis=None):
        note += "; ±: standard deviation over folds and seeds"
    if tests is not None:
        verdicts = tests.pivot(index="dataset", columns="method", values="verdict")
        marks = verdicts.map(_MARKS.get).reindex_like(cells).astype(object)
        cells += marks.where(marks.notna(), "")
        counts = pd.crosstab(tests["method"], tests["verdict"])
        counts = counts.reindex(columns=["win", "tie", "loss"], fill_value=0)
        counts = counts.astype(str).agg("/".join, axis=1)
        cells.loc["win/tie/loss"] = counts.reindex(cells.columns).fillna("–")
        note += f"; •/◦: the reference is significantly better/worse, level {LEVEL:g}"
    cells = cells.rename(index=in_markdown, columns=in_markdown)
    table = markdown_table(cells.rename_axis("data set").reset_index())
    return f"{table}\n\n{in_markdown(note)}."


def plot_accuracy_against_size(
    runs: pd.DataFrame,
    size: str = "leaves",
    *,
    metric: str = "accuracy",
    ax: Axes | None = None,
) -> Axes:
    """Draw each method at its mean size and its mean score, over the data sets that all have.

    Runs without a number for either are left out.
    """
    runs = runs[np.isfinite(runs[[size, metric]].astype(float)).all(axis=1)]
    datasets, left_out = complete_datasets(runs)
    if not datasets:
        raise ValueError(
            f"runs has no data set with {size} and {metric} of all methods."
        )
    x, y = (mean_scores(runs, name).loc[datasets].mean() for name in (size, metric))
    ax = style.axes_or_new(ax, (6.5, 4.5))
    for k, method in enumerate(x.index):
        look = style.point_style(k)
        ax.plot(x[method], y[method], ms=7.0, label=method, **look)
    style.use_log_scale(ax, x)
    style.draw_grid(ax)
    ax.margins(0.12)
    style.legend_below(ax, min(4, len(x)))
    n_datasets = len(datasets) + len(left_out)
    ax.set(
        xlabel=f"{size} (mean of {len(datasets)} of {n_datasets} data sets)",
        ylabel=f"mean {metric}",
    )
    return ax
