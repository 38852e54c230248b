"""Tests of methods over data sets: Friedman's with comparisons of pairs, and Wilcoxon's.

In: a table of runs, one row a fit, as `evotree.plotting.method_runs` describes it. A data set
counts once, by the means over its folds and seeds.

References
----------
Demšar J. (2006). Statistical comparisons of classifiers over multiple data sets. Journal of Machine
Learning Research 7, 1-30.
"""

from __future__ import annotations

import math
from itertools import combinations
from typing import Literal, NamedTuple

import pandas as pd
from scipy import stats

from evotree.plotting.method_runs import (
    complete_datasets,
    done_runs,
    load_extra,
    mean_scores,
    rank_methods,
)

PostHoc = Literal["holm", "nemenyi"]
ZeroMethod = Literal["zsplit", "wilcox", "pratt"]


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
    ModuleNotFoundError
        If scikit-posthocs is not installed.
    TypeError, ValueError
        If `runs` cannot be compared, has fewer than three methods, or fewer than two data sets that
        all methods have.
    """
    check_choice("post_hoc", post_hoc, ("holm", "nemenyi"))
    means, left_out = _complete_means(done_runs(runs, metric), metric)
    if means.shape[1] < 3:
        raise ValueError(
            f"runs has the methods {', '.join(means)}: Friedman's test needs three or more, two "
            "are compared by wilcoxon."
        )
    ranks = rank_methods(means, larger_is_better)
    posthocs = load_extra("scikit_posthocs", "scikit-posthocs")
    if ranks.nunique(axis=1).eq(1).all():
        statistic, p_value = 0.0, 1.0  # ties everywhere, which the test cannot divide by
    else:
        statistic, p_value = stats.friedmanchisquare(*(ranks[method] for method in ranks))
    numbered = ranks.reset_index(drop=True)
    if post_hoc == "nemenyi":
        adjusted = posthocs.posthoc_nemenyi_friedman(numbered)
    else:
        adjusted = posthocs.posthoc_siegel_friedman(numbered, p_adjust="holm")
    return FriedmanTest(
        ranks.mean(),
        float(statistic),
        float(p_value),
        adjusted,
        post_hoc,
        list(means.index),
        left_out,
    )


class WilcoxonTest(NamedTuple):
    """Two methods compared by Wilcoxon's signed ranks.

    Attributes
    ----------
    statistic : float
        The smaller sum of ranks.
    p_value : float
        Two-sided; 1 where both are equal everywhere.
    wins, ties, losses : int
        Data sets on which the mean of the first method is better, equal, worse.
    datasets, left_out : list of str
        Data sets that both methods have on the same folds, and the others, which are not used.
    """

    statistic: float
    p_value: float
    wins: int
    ties: int
    losses: int
    datasets: list[str]
    left_out: list[str]


def wilcoxon(
    runs: pd.DataFrame,
    metric: str,
    first: str,
    second: str,
    larger_is_better: bool = True,
    *,
    zero_method: ZeroMethod = "zsplit",
) -> WilcoxonTest:
    """Compare the means of two methods on data sets by Wilcoxon's signed-rank test.

    Parameters
    ----------
    runs : DataFrame
        Runs, one row a fit; those of other methods are not used.
    metric : str
        Column of the scores.
    first, second : str
        The methods.
    larger_is_better : bool, default=True
        Whether the largest score is best.
    zero_method : {"zsplit", "wilcox", "pratt"}, default="zsplit"
        What is done with equal means, as `scipy.stats.wilcoxon` has it: their ranks are split
        between the methods (Demšar's advice), they are left out, or ranked and left out.

    Returns
    -------
    WilcoxonTest
        The test.

    Raises
    ------
    TypeError, ValueError
        If `runs` cannot be compared, lacks a method, or has fewer than two data sets of both.
    """
    check_choice("zero_method", zero_method, ("zsplit", "wilcox", "pratt"))
    runs = done_runs(runs, metric)
    methods = tuple(runs.method.unique())
    check_choice("first", first, methods)
    check_choice("second", second, tuple(name for name in methods if name != first))
    means, left_out = _complete_means(runs[runs.method.isin([first, second])], metric)
    gain = _gains(means, first, second) * (1.0 if larger_is_better else -1.0)
    statistic, p_value = _signed_ranks(gain, zero_method)
    wins, losses = int((gain > 0.0).sum()), int((gain < 0.0).sum())
    ties = len(gain) - wins - losses
    return WilcoxonTest(statistic, p_value, wins, ties, losses, list(means.index), left_out)


class WilcoxonPairs(NamedTuple):
    """All pairs of methods compared by Wilcoxon's signed ranks.

    Attributes
    ----------
    p_values, adjusted : DataFrame of shape (n_methods, n_methods)
        p-value of each pair, and adjusted by Holm for all pairs; 1 on the diagonal.
    datasets, left_out : list of str
        Data sets that all methods have on the same folds, and the others, which are not used.
    """

    p_values: pd.DataFrame
    adjusted: pd.DataFrame
    datasets: list[str]
    left_out: list[str]


def wilcoxon_pairs(
    runs: pd.DataFrame, metric: str, *, zero_method: ZeroMethod = "zsplit"
) -> WilcoxonPairs:
    """Compare all pairs of methods by Wilcoxon's signed-rank test, adjusted by Holm.

    Parameters
    ----------
    runs : DataFrame
        Runs, one row a fit, of two methods or more.
    metric : str
        Column of the scores.
    zero_method : {"zsplit", "wilcox", "pratt"}, default="zsplit"
        As for `wilcoxon`.

    Returns
    -------
    WilcoxonPairs
        The tests.

    Raises
    ------
    ModuleNotFoundError
        If scikit-posthocs, which brings statsmodels, is not installed.
    TypeError, ValueError
        If `runs` cannot be compared, has one method, or fewer than two data sets that all methods
        have.
    """
    check_choice("zero_method", zero_method, ("zsplit", "wilcox", "pratt"))
    means, left_out = _complete_means(done_runs(runs, metric), metric)
    pairs = list(combinations(means, 2))
    if not pairs:
        raise ValueError(f"runs has the one method {means.columns[0]}: two or more are compared.")
    multipletests = load_extra("statsmodels.stats.multitest", "scikit-posthocs").multipletests
    found = [_signed_ranks(_gains(means, *pair), zero_method)[1] for pair in pairs]
    tables = []
    for values in (found, multipletests(found, method="holm")[1]):
        table = pd.DataFrame(1.0, means.columns, means.columns)
        for (first, second), value in zip(pairs, values, strict=True):
            table.loc[first, second] = table.loc[second, first] = value
        tables.append(table)
    return WilcoxonPairs(tables[0], tables[1], list(means.index), left_out)


def _complete_means(runs: pd.DataFrame, metric: str) -> tuple[pd.DataFrame, list[str]]:
    """Return means on the data sets that all methods have, and the names of the others."""
    datasets, left_out = complete_datasets(runs)
    if len(datasets) < 2:
        raise ValueError(
            f"runs has {len(datasets)} data sets with all methods on the same folds: two or more "
            f"are needed; incomplete are {', '.join(left_out) or 'none'}."
        )
    return mean_scores(runs, metric).loc[datasets], left_out


def _gains(means: pd.DataFrame, first: str, second: str) -> pd.Series:
    """Return the scaled differences of two methods, those equal that differ by the last bits."""
    a, b = without_last_bits(means[first], means[second])
    return (a - b).round(12)


def _signed_ranks(gain: pd.Series, zero_method: ZeroMethod) -> tuple[float, float]:
    if zero_method != "zsplit" and not gain.any():  # nothing is left to be ranked
        return 0.0, 1.0
    result = stats.wilcoxon(gain.to_numpy(), zero_method=zero_method)
    return float(result.statistic), float(result.pvalue)


def check_choice(parameter: str, given: object, allowed: tuple[str, ...]) -> None:
    """Raise a ValueError if what was given is not allowed."""
    if given not in allowed:
        raise ValueError(f"{parameter}={given!r}: allowed are {', '.join(allowed)}.")


def without_last_bits(first: pd.Series, second: pd.Series) -> tuple[pd.Series, pd.Series]:
    """Return scores scaled and rounded, so that those which differ by the last bits are equal."""
    scale = max(first.abs().max(), second.abs().max()) or 1.0
    return (first / scale).round(12).rename(None), (second / scale).round(12).rename(None)
