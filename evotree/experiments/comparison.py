"""Methods compared over data sets: ranks, paired tests, and tables of means.

In: a table of runs, one row a fit, with the columns ``dataset``, ``method``, ``fold`` and ``seed``
and those of scores, sizes and times; ``fold`` and ``seed`` may be missing where there is but one.
Out: tables.

Runs of two methods on a data set are paired by fold and seed. Of n differences the mean, over the
root of their variance times ``1 / n + n_2 / n_1``, has Student's distribution where the methods are
equal (Nadeau and Bengio 2003, section 4): n_2 test rows and n_1 training rows share rows with those
of other runs.

References
----------
Demšar J. (2006). Statistical comparisons of classifiers over multiple data sets. Journal of Machine
Learning Research 7, 1-30.
Holm S. (1979). A simple sequentially rejective multiple test procedure. Scandinavian Journal of
Statistics 6, 65-70.
Nadeau C., Bengio Y. (2003). Inference for the generalization error. Machine Learning 52, 239-281.
"""

import math
import warnings
from itertools import product
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy import stats

LEVEL = 0.05
"""Differences with an adjusted p-value below it are significant."""
_ESCAPES = str.maketrans({character: f"\\{character}" for character in "\\`*_|<[]"})


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


def done_runs(runs: pd.DataFrame, *columns: str) -> pd.DataFrame:
    """Return the runs that are done, with numbers in each of some columns; warn of the others."""
    runs = runs.reset_index(drop=True)
    numbers = runs[list(columns)].astype(np.float64)
    keys = runs[["dataset", "method"]].assign(
        fold=runs.get("fold", 0), seed=runs.get("seed", 0)
    )
    is_used = np.isfinite(numbers).all(axis=1) & keys.notna().all(axis=1)
    is_used &= runs.get("status", "done") == "done"
    if not is_used.all():
        warnings.warn(
            f"{(~is_used).sum()} of {len(runs)} runs are left out: not done, or without "
            f"{' or '.join(columns)}.",
            UserWarning,
            stacklevel=3,  # the line that called our caller
        )
    keys = keys.astype({"dataset": str, "method": str})
    return keys.join(numbers)[is_used].reset_index(drop=True)


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


def rank_methods(means: pd.DataFrame, larger_is_better: bool) -> pd.DataFrame:
    """Return the rank of each method on each data set; 1 is best, ties share their mean rank."""
    # Means of equal scores may differ in their last bits; rounded, they tie.
    scale = means.abs().max(axis=1).replace(0.0, 1.0)
    return (
        means.div(scale, axis=0).round(12).rank(axis=1, ascending=not larger_is_better)
    )


class FriedmanTest(NamedTuple):
    """Methods compared by their ranks on the data sets that all have; the others are left out.

    `adjusted` has the p-value of each pair of methods: z-tests of mean ranks, adjusted by Holm.
    """

    mean_ranks: pd.Series
    statistic: float
    p_value: float
    adjusted: pd.DataFrame
    datasets: list[str]


def friedman(
    runs: pd.DataFrame, metric: str, larger_is_better: bool = True
) -> FriedmanTest:
    """Compare three methods or more by Friedman's test, then pair by pair (Demšar 2006)."""
    runs = done_runs(runs, metric)
    datasets, left_out = complete_datasets(runs)
    k = runs["method"].nunique()
    if len(datasets) < 2 or k < 3:
        raise ValueError(
            f"runs has {k} methods and {len(datasets)} data sets with all of them on the same "
            f"folds: three and two are needed; incomplete are {', '.join(left_out) or 'none'}."
        )
    ranks = rank_methods(mean_scores(runs, metric).loc[datasets], larger_is_better)
    statistic, p_value = 0.0, 1.0
    if ranks.nunique(axis=1).gt(1).any():  # the test cannot divide by ties everywhere
        statistic, p_value = stats.friedmanchisquare(*ranks.to_numpy().T)
    means = ranks.mean()
    first, second = np.triu_indices(k, 1)
    error = math.sqrt(k * (k + 1) / (6.0 * len(datasets)))
    z = (means.to_numpy()[first] - means.to_numpy()[second]) / error
    adjusted = np.ones((k, k))
    p_values = adjust_by_holm(2.0 * stats.norm.sf(abs(z)))
    adjusted[first, second] = adjusted[second, first] = p_values
    return FriedmanTest(
        mean_ranks=means,
        statistic=float(statistic),
        p_value=float(p_value),
        adjusted=pd.DataFrame(adjusted, means.index, means.index),
        datasets=datasets,
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
    last_bits = 1e-12 * scores.abs().max(axis=None)
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
    runs: pd.DataFrame,
    metric: str,
    reference: str,
    test_ratio: float,
    larger_is_better: bool = True,
) -> pd.DataFrame:
    """Compare a method with each other one on each data set, by corrected t-tests.

    Parameters
    ----------
    runs : DataFrame
        Runs, with the columns ``dataset``, ``method``, ``fold``, ``seed`` and that of the scores.
    metric : str
        Column of the scores.
    reference : str
        The method to be compared with the others.
    test_ratio : float, at least 0
        Test rows to a training row: 1 / (k - 1) for k folds. The plain paired t-test has 0.
    larger_is_better : bool, default=True
        Whether the largest score is best.

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
    is_better = (tests["difference"] > 0.0) == larger_is_better
    verdicts = np.select(
        [adjusted.isna(), adjusted >= LEVEL, is_better], ["", "tie", "win"], "loss"
    )
    return tests.assign(adjusted=adjusted, verdict=verdicts)


class MeanTable(NamedTuple):
    """Means and deviations of methods on data sets, and tests against a reference, if any.

    Verdicts are those of `paired_t_tests`. Last rows are over the data sets that are complete.
    """

    means: pd.DataFrame
    stds: pd.DataFrame
    tests: pd.DataFrame
    verdicts: pd.DataFrame
    mean_ranks: pd.Series
    datasets: list[str]
    left_out: list[str]
    larger_is_better: bool
    reference: str | None
    test_ratio: float

    @property
    def counts(self) -> pd.Series:
        """Wins, ties and losses of the reference against each other method, as ``3/1/2``."""
        verdicts = self.verdicts.drop(columns=self.reference or list(self.verdicts))
        wins, ties, losses = (
            verdicts.eq(k).sum().astype(str) for k in ("win", "tie", "loss")
        )
        return wins + "/" + ties + "/" + losses

    def to_markdown(self, decimals: int = 2, bold: bool = True) -> str:
        """Return the table in Markdown, with a note on marks and last rows."""
        means = self.means
        last = pd.DataFrame({"mean": means.loc[self.datasets].mean()}).T
        ranks = self.mean_ranks.to_frame("mean rank").T
        stds = self.stds.map(f" ± {{:.{decimals}f}}".format)
        marks = self.verdicts.replace({"win": " •", "loss": " ◦", "tie": ""})
        sign = "**" if bold else ""
        texts = _texts(means, self.larger_is_better, decimals, sign)
        cells = pd.concat(
            [
                texts + stds.where(self.stds.notna(), "") + marks,
                _texts(last, self.larger_is_better, decimals, sign),
                _texts(ranks, False, decimals, sign),
            ]
        )
        if not self.counts.empty:
            cells.loc["win/tie/loss"] = self.counts.reindex(means.columns).fillna("–")
        cells = cells.rename(index=in_markdown, columns=in_markdown)
        table = markdown_table(cells.rename_axis("data set").reset_index())
        return f"{table}\n\n{in_markdown(self._note())}\n"

    def _note(self) -> str:
        """Return what the marks of the table and its last rows mean."""
        left_out = f", without {', '.join(self.left_out)}" if self.left_out else ""
        n = len(self.datasets)
        note = f"Last rows: over {n} of {n + len(self.left_out)} data sets{left_out}."
        if self.stds.notna().any(axis=None):
            note = f"±: standard deviation over folds and seeds. {note}"
        if self.reference is None:
            return note
        tests = "corrected resampled t-tests" if self.test_ratio else "paired t-tests"
        return (
            f"•/◦: {self.reference} is significantly better/worse ({tests}, Holm over data sets, "
            f"level {LEVEL:g}). {note}"
        )


def _texts(
    values: pd.DataFrame, larger_is_better: bool, decimals: int, sign: str
) -> pd.DataFrame:
    """Return numbers as texts, the best of each row between two signs."""
    cells = values.map(f"{{:.{decimals}f}}".format)
    best = values.max(axis=1) if larger_is_better else values.min(axis=1)
    is_best = cells.eq(best.map(f"{{:.{decimals}f}}".format), axis=0)
    return cells.mask(is_best, sign + cells + sign).where(values.notna(), "–")


def mean_table(
    runs: pd.DataFrame,
    metric: str,
    larger_is_better: bool = True,
    *,
    reference: str | None = None,
    test_ratio: float = 0.0,
) -> MeanTable:
    """Return means and deviations over folds and seeds, and what `paired_t_tests` say."""
    runs = done_runs(runs, metric)
    means = mean_scores(runs, metric)
    datasets, left_out = complete_datasets(runs)
    tests = pd.DataFrame()
    verdicts = pd.DataFrame("", means.index, means.columns, dtype=object)
    if reference is not None:
        tests = paired_t_tests(runs, metric, reference, test_ratio, larger_is_better)
        verdicts.update(
            tests.pivot(index="dataset", columns="method", values="verdict")
        )
    return MeanTable(
        means=means,
        stds=mean_scores(runs, metric, of="std"),
        tests=tests,
        verdicts=verdicts,
        mean_ranks=rank_methods(means.loc[datasets], larger_is_better).mean(),
        datasets=datasets,
        left_out=left_out,
        larger_is_better=larger_is_better,
        reference=reference,
        test_ratio=test_ratio,
    )
