"""Tests of methods over data sets: Friedman's, with comparisons of pairs.

In: a table of runs, one row a fit, as `evotree.experiments.method_runs` describes it. A data set
counts once, by the means over its folds and seeds.

References
----------
Demšar J. (2006). Statistical comparisons of classifiers over multiple data sets. Journal of Machine
Learning Research 7, 1-30.
"""

from __future__ import annotations

import math
from typing import Literal, NamedTuple

import pandas as pd
from scikit_posthocs import posthoc_nemenyi_friedman, posthoc_siegel_friedman
from scipy import stats

from evotree.experiments.method_runs import (
    complete_datasets,
    done_runs,
    mean_scores,
    rank_methods,
)

PostHoc = Literal["holm", "nemenyi"]


class FriedmanTest(NamedTuple):
    """Methods compared by their ranks on data sets.

    Attributes
    ----------
    mean_ranks : Series
        Mean rank of each method; 1 is best, ties share the mean of their ranks.
    statistic : float
        Friedman's chi-squared.
    p_value : float
        Probability of a statistic as large if all methods were equal.
    adjusted : DataFrame of shape (n_methods, n_methods)
        Adjusted p-value of each pair of methods.
    post_hoc : {"holm", "nemenyi"}
        What the adjusted p-values are.
    datasets, left_out : list of str
        Data sets that all methods have on the same folds, and the others, which are not used.
    """

    mean_ranks: pd.Series
    statistic: float
    p_value: float
    adjusted: pd.DataFrame
    post_hoc: PostHoc
    datasets: list[str]
    left_out: list[str]

    def critical_difference(self, level: float = 0.05) -> float:
        """Return the difference of mean ranks that is significant by Nemenyi's test.

        Parameters
        ----------
        level : float in (0, 1), default=0.05
            Level of significance.

        Returns
        -------
        float
            The difference.
        """
        k, n = len(self.mean_ranks), len(self.datasets)
        quantile = stats.studentized_range.ppf(1.0 - level, k, math.inf) / math.sqrt(2.0)
        return float(quantile * math.sqrt(k * (k + 1) / (6.0 * n)))


def friedman(
    runs: pd.DataFrame, metric: str, larger_is_better: bool = True, *, post_hoc: PostHoc = "holm"
) -> FriedmanTest:
    """Compare methods by Friedman's test, then pair by pair.

    Parameters
    ----------
    runs : DataFrame
        Runs, one row a fit, of three methods or more.
    metric : str
        Column of the scores.
    larger_is_better : bool, default=True
        Whether rank 1 belongs to the largest score.
    post_hoc : {"holm", "nemenyi"}, default="holm"
        Tests of pairs: z-tests of mean ranks, adjusted by Holm, or Nemenyi's test.

    Returns
    -------
    FriedmanTest
        Mean ranks and tests.

    Raises
    ------
    TypeError, ValueError
        If `runs` cannot be compared, has fewer than three methods, or fewer than two data sets that
        all methods have.
    """
    check_choice("post_hoc", post_hoc, ("holm", "nemenyi"))
    means, left_out = _complete_means(done_runs(runs, metric), metric)
    if means.shape[1] < 3:
        raise ValueError(
            f"runs has the methods {', '.join(means)}: Friedman's test needs three or more."
        )
    ranks = rank_methods(means, larger_is_better)
    if ranks.nunique(axis=1).eq(1).all():
        statistic, p_value = 0.0, 1.0  # ties everywhere, which the test cannot divide by
    else:
        statistic, p_value = stats.friedmanchisquare(*(ranks[method] for method in ranks))
    numbered = ranks.reset_index(drop=True)
    if post_hoc == "nemenyi":
        adjusted = posthoc_nemenyi_friedman(numbered)
    else:
        adjusted = posthoc_siegel_friedman(numbered, p_adjust="holm")
    return FriedmanTest(
        ranks.mean(),
        float(statistic),
        float(p_value),
        adjusted,
        post_hoc,
        list(means.index),
        left_out,
    )


def _complete_means(runs: pd.DataFrame, metric: str) -> tuple[pd.DataFrame, list[str]]:
    """Return means on the data sets that all methods have, and the names of the others."""
    datasets, left_out = complete_datasets(runs)
    if len(datasets) < 2:
        raise ValueError(
            f"runs has {len(datasets)} data sets with all methods on the same folds: two or more "
            f"are needed; incomplete are {', '.join(left_out) or 'none'}."
        )
    return mean_scores(runs, metric).loc[datasets], left_out


def check_choice(parameter: str, given: object, allowed: tuple[str, ...]) -> None:
    """Raise a ValueError if what was given is not allowed."""
    if given not in allowed:
        raise ValueError(f"{parameter}={given!r}: allowed are {', '.join(allowed)}.")
