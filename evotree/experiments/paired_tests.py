r"""Paired t-tests of one method against others, corrected for training sets that overlap.

In: a table of runs, one row a fit, as `evotree.experiments.method_runs` describes it. Runs of two
methods on a data set are paired by fold and seed. Of the differences :math:`d_1, \dots, d_n` with
the mean :math:`\bar d` and the sample variance :math:`s^2`, the statistic

.. math:: t = \frac{\bar d}{\sqrt{\left(\frac{1}{n} + \frac{n_2}{n_1}\right) s^2}}

has Student's distribution with :math:`n - 1` degrees of freedom where the methods are equal. The
term :math:`n_2 / n_1`, test rows to a training row, is Nadeau and Bengio's correction: the training
sets of folds and of repetitions have rows in common, so that the mean of the differences varies
more than :math:`s^2 / n`. Without the term this is the paired t-test, which then finds differences
too often.

References
----------
Nadeau C., Bengio Y. (2003). Inference for the generalization error. Machine Learning 52, 239-281.
Section 4.

Holm S. (1979). A simple sequentially rejective multiple test procedure. Scandinavian Journal of
Statistics 6, 65-70.
"""

from __future__ import annotations

import math
from typing import Literal, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy import stats

PairedTest = Literal["paired", "corrected"]


class PairedTTest(NamedTuple):
    """A paired t-test.

    Attributes
    ----------
    n_pairs : int
        Number of pairs.
    difference : float
        Mean of the differences, first less second.
    standard_error : float
        Of that mean, corrected.
    statistic : float
        Student's t with ``n_pairs - 1`` degrees of freedom.
    p_value : float
        Two-sided.
    """

    n_pairs: int
    difference: float
    standard_error: float
    statistic: float
    p_value: float


def paired_t_test(first: ArrayLike, second: ArrayLike, test_ratio: float = 0.0) -> PairedTTest:
    """Compare paired scores by a t-test.

    Differences in the last bits are none. Differences that are all the same have no variance: the
    p-value is 1 where they are 0, and 0 elsewhere.

    Parameters
    ----------
    first, second : array-like of shape (n_pairs,)
        Scores.
    test_ratio : float >= 0, default=0.0
        Test rows to a training row, by which Nadeau and Bengio correct the variance; 0 leaves the
        plain t-test.

    Returns
    -------
    PairedTTest
        The test. One pair has a difference, and NaN for all else.
    """
    first, second = np.asarray(first, np.float64), np.asarray(second, np.float64)
    n, difference = len(first), float((first - second).mean())
    if n < 2:
        return PairedTTest(n, difference, math.nan, math.nan, math.nan)
    scale = max(np.abs(first).max(), np.abs(second).max()) or 1.0
    scaled = ((first - second) / scale).round(12)
    if np.ptp(scaled) == 0.0:
        if scaled[0] == 0.0:
            return PairedTTest(n, 0.0, 0.0, 0.0, 1.0)
        return PairedTTest(n, difference, 0.0, math.copysign(math.inf, difference), 0.0)
    error = math.sqrt((1.0 / n + test_ratio) * scaled.var(ddof=1))
    statistic = float(scaled.mean() / error)
    p_value = float(2.0 * stats.t.sf(abs(statistic), n - 1))
    return PairedTTest(n, difference, float(scale * error), statistic, p_value)


def adjust_by_holm(p_values: ArrayLike) -> np.ndarray:
    """Return p-values adjusted for their number by Holm's procedure.

    Parameters
    ----------
    p_values : array-like of shape (n_tests,)
        Those of one family of tests; NaN where there was none, which does not count.

    Returns
    -------
    ndarray of shape (n_tests,)
        At most 1, in the order of `p_values`, whose order they keep.
    """
    adjusted = np.array(p_values, np.float64)
    order = np.argsort(adjusted)[: np.count_nonzero(~np.isnan(adjusted))]
    factors = np.arange(len(order), 0, -1)
    adjusted[order] = np.minimum(np.maximum.accumulate(factors * adjusted[order]), 1.0)
    return adjusted


def paired_t_tests(
    runs: pd.DataFrame,
    metric: str,
    reference: str,
    *,
    larger_is_better: bool = True,
    test: PairedTest = "corrected",
    level: float = 0.05,
    test_ratio: float | None = None,
) -> pd.DataFrame:
    """Compare a method with each other one on each data set.

    Parameters
    ----------
    runs : DataFrame
        Runs as `evotree.experiments.method_runs.done_runs` returns them.
    metric : str
        Column of the scores.
    reference : str
        The method to be compared with the others.
    larger_is_better : bool, default=True
        Whether the largest score is best.
    test : {"paired", "corrected"}, default="corrected"
        The paired t-test, or Nadeau and Bengio's correction of it.
    level : float in (0, 1), default=0.05
        Differences with an adjusted p-value below it are significant.
    test_ratio : float > 0, optional
        Test rows to a training row, for the corrected test; by default 1 / (k - 1) on a data set
        with runs on k folds.

    Returns
    -------
    DataFrame
        A row for each other method and data set that both have, in the order of `runs`, with the
        columns ``method``, ``dataset``, those of `PairedTTest` (the difference is reference less
        method), ``adjusted``, the p-value by Holm's procedure over the data sets of the method, and
        ``verdict``: ``win`` where the reference is significantly better, ``loss`` where worse,
        ``tie``, and an empty text for one pair, which has no test.

    Raises
    ------
    ValueError
        If the ratio is not given where there is one fold.
    """
    columns = ["method", "dataset", *PairedTTest._fields]
    found = []
    for dataset, group in runs.groupby("dataset", sort=False):
        scores = group.pivot(index=["fold", "seed"], columns="method", values=metric)
        for method in [name for name in scores if name != reference]:
            pairs = scores.reindex(columns=[reference, method]).dropna()
            if len(pairs):
                ratio = 0.0
                if test == "corrected" and len(pairs) > 1:
                    ratio = test_ratio or _ratio_of_folds(str(dataset), group["fold"].nunique())
                result = paired_t_test(pairs[reference], pairs[method], ratio)
                found.append((method, dataset, *result))
    tests = pd.DataFrame(found, columns=columns)
    tests["adjusted"] = tests.groupby("method")["p_value"].transform(adjust_by_holm)
    is_better = (tests["difference"] > 0.0) == larger_is_better
    verdicts = np.where(tests["adjusted"] < level, np.where(is_better, "win", "loss"), "tie")
    tests["verdict"] = np.where(tests["adjusted"].isna(), "", verdicts)
    places = {name: place for place, name in enumerate(runs["method"].unique())}
    return tests.sort_values(
        "method", key=lambda names: names.map(places), kind="stable", ignore_index=True
    )


def _ratio_of_folds(dataset: str, n_folds: int) -> float:
    if n_folds < 2:
        raise ValueError(
            f"test_ratio=None: {dataset} has runs on one fold, which does not tell the test rows "
            "to a training row."
        )
    return 1.0 / (n_folds - 1)
