"""Methods compared over data sets: ranks, paired tests, tables of means, and pictures.

In: a table of runs, one row a fit, with the columns ``dataset``, ``method``, ``fold`` and ``seed``
and those of scores, sizes and times; ``fold`` and ``seed`` may be missing where there is but one.
Out: tables, and the Axes that were drawn on. A method has the same colour wherever it is.

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
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, MaxNLocator, NullFormatter
from numpy.typing import ArrayLike
from scipy import stats

from evotree.plotting import plot_learning_curves, style
from evotree.plotting.style import INK, PALETTE, axes_or_new

LEVEL = 0.05
"""Differences with an adjusted p-value below it are significant."""
MARKDOWN_ESCAPES = str.maketrans(
    {character: f"\\{character}" for character in "\\`*_|<"}
)
LATEX_ESCAPES = str.maketrans(
    {character: f"\\{character}" for character in "&%$#_{}"}
    | {"\\": r"\textbackslash ", "~": r"\textasciitilde ", "^": r"\textasciicircum "}
)
_LATEX_SIGNS = {
    r"\*\*(.*?)\*\*": r"\\textbf{\1}",
    "±": r"$\\pm$",
    "–": "--",
    "•": r"$\\bullet$",
    "◦": r"$\\circ$",
}
_RUN = ["dataset", "method", "fold", "seed"]  # columns that tell runs apart


def markdown_table(rows: pd.DataFrame, n_left: int = 1) -> str:
    """Return a table of texts in Markdown; so many columns are aligned to the left."""
    rules = ["---" if k < n_left else "---:" for k in range(rows.shape[1])]
    head, *lines = [
        f"| {' | '.join(cells)} |" for cells in (rows.columns, *rows.to_numpy())
    ]
    return "\n".join([head, f"|{'|'.join(rules)}|", *lines])


def latex_table(rows: pd.DataFrame, n_left: int = 1, n_upper: int | None = None) -> str:
    """Return a table of texts in LaTeX, for booktabs; a line stands below so many rows."""
    columns = "l" * n_left + "r" * (rows.shape[1] - n_left)
    head, *lines = [
        " & ".join(cells) + r" \\" for cells in (rows.columns, *rows.to_numpy())
    ]
    if n_upper is not None:
        lines.insert(n_upper, r"\midrule")
    return "\n".join(
        [
            rf"\begin{{tabular}}{{{columns}}}",
            r"\toprule",
            head,
            r"\midrule",
            *lines,
            r"\bottomrule",
            r"\end{tabular}",
            "",
        ]
    )


def done_runs(runs: pd.DataFrame, *columns: str) -> pd.DataFrame:
    """Return the runs that are done, with numbers in each of some columns; warn of the others."""
    if missing := [
        name for name in ("dataset", "method", *columns) if name not in runs
    ]:
        raise ValueError(
            f"runs has no column {missing[0]!r}; it has {', '.join(map(str, runs))}."
        )
    is_done = runs.get("status", "done") == "done"
    runs = pd.DataFrame(
        {name: runs.get(name, 0) for name in [*_RUN, *columns]}, runs.index
    )
    is_used = runs.notna().all(axis=1) & is_done
    if not is_used.all():
        warnings.warn(
            f"{(~is_used).sum()} of {len(runs)} runs are left out: not done, or without "
            f"{' or '.join(columns)}.",
            UserWarning,
            stacklevel=3,  # the line that called our caller
        )
    kinds = {"dataset": str, "method": str} | dict.fromkeys(columns, np.float64)
    runs = runs[is_used].reset_index(drop=True).astype(kinds)
    if runs.empty or not np.isfinite(runs[list(columns)]).all(axis=None):
        raise ValueError(
            f"runs has no row that is done, or infinite {' or '.join(columns)}."
        )
    if (is_twice := runs.duplicated(_RUN)).any():
        run = runs.loc[is_twice.idxmax(), _RUN]
        raise ValueError(
            "runs has more than one row of the same fit: "
            f"{', '.join(f'{name} {value}' for name, value in run.items())}."
        )
    return runs


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
    *,
    larger_is_better: bool = True,
    test_ratio: float | None = None,
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
    larger_is_better : bool, default=True
        Whether the largest score is best.
    test_ratio : float, at least 0, optional
        Test rows to a training row; by default 1 / (k - 1) for k folds. The plain paired t-test
        has 0.

    Returns
    -------
    DataFrame
        A row for each other method and data set that both have. ``difference`` is reference less
        method, ``adjusted`` the p-value by Holm's procedure over the data sets of the method, and
        ``verdict`` says ``win`` where the reference is significantly better, ``loss`` where worse,
        else ``tie``, and nothing for one pair, which has no test.
    """
    results = []
    n_folds = runs.groupby("dataset")["fold"].nunique()
    scores = runs.pivot(
        index=["dataset", "fold", "seed"], columns="method", values=metric
    )
    for method in runs["method"].unique():
        for dataset in runs["dataset"].unique():
            pairs = scores.loc[dataset, [reference, method]].dropna()
            if test_ratio is None and n_folds[dataset] < 2 <= len(pairs):
                raise ValueError(
                    f"test_ratio=None: {dataset} has runs on one fold alone."
                )
            of_folds = 1.0 / max(n_folds[dataset] - 1, 1)
            ratio = of_folds if test_ratio is None else test_ratio
            if len(pairs) and method != reference:
                result = paired_t_test(pairs[reference], pairs[method], ratio)
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
    test_ratio: float | None

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
        cells = self._cells(decimals, "**" if bold else "", MARKDOWN_ESCAPES)
        return (
            f"{markdown_table(cells)}\n\n{self._note().translate(MARKDOWN_ESCAPES)}\n"
        )

    def to_latex(self, decimals: int = 2) -> str:
        """Return the table in LaTeX, for the package booktabs, with a note as a comment above."""
        cells = self._cells(decimals, "**", LATEX_ESCAPES).replace(
            _LATEX_SIGNS, regex=True
        )
        return f"% {self._note()}\n{latex_table(cells, 1, len(self.means))}"

    def to_csv(self) -> str:
        """Return means, deviations and verdicts with all digits as CSV."""
        parts = {"mean": self.means, "std": self.stds, "verdict": self.verdicts}
        tables = [table.add_suffix(f" {part}") for part, table in parts.items()]
        return pd.concat(tables, axis=1).rename_axis("dataset").to_csv()

    def _cells(
        self, decimals: int, bold: str, escapes: Mapping[int, str]
    ) -> pd.DataFrame:
        """Return the cells as texts: a row a data set, then the means, the ranks, the counts."""

        def texts(values: pd.Series, larger_is_better: bool) -> pd.Series:
            cells = values.map(f"{{:.{decimals}f}}".format)
            best = f"{values.max() if larger_is_better else values.min():.{decimals}f}"
            return cells.where(cells != best, bold + cells + bold).where(
                values.notna(), "–"
            )

        stds = self.stds.map(f" ± {{:.{decimals}f}}".format).where(
            self.stds.notna(), ""
        )
        marks = self.verdicts.replace({"win": " •", "loss": " ◦", "tie": ""})
        rows = {
            str(name): texts(means, self.larger_is_better)
            + stds.loc[name]
            + marks.loc[name]
            for name, means in self.means.iterrows()
        }
        rows["mean"] = texts(
            self.means.loc[self.datasets].mean(), self.larger_is_better
        )
        rows["mean rank"] = texts(self.mean_ranks, larger_is_better=False)
        if not self.counts.empty:
            rows["win/tie/loss"] = self.counts.reindex(
                self.means.columns, fill_value="–"
            )
        names = {name: str(name).translate(escapes) for name in (*rows, *self.means)}
        table = pd.DataFrame(rows).T.rename(index=names, columns=names)
        return table.rename_axis("data set").reset_index()

    def _note(self) -> str:
        """Return what the marks of the table and its last rows mean."""
        left_out = f", without {', '.join(self.left_out)}" if self.left_out else ""
        n = len(self.datasets)
        note = f"Last rows: over {n} of {n + len(self.left_out)} data sets{left_out}."
        if self.stds.notna().any(axis=None):
            note = f"±: standard deviation over folds and seeds. {note}"
        if self.reference is None:
            return note
        is_plain = self.test_ratio == 0.0
        tests = "paired t-tests" if is_plain else "corrected resampled t-tests"
        return (
            f"•/◦: {self.reference} is significantly better/worse ({tests}, Holm over data sets, "
            f"level {LEVEL:g}). {note}"
        )


def mean_table(
    runs: pd.DataFrame,
    metric: str,
    larger_is_better: bool = True,
    *,
    reference: str | None = None,
    test_ratio: float | None = None,
) -> MeanTable:
    """Return means and deviations over folds and seeds, and what `paired_t_tests` say."""
    runs = done_runs(runs, metric)
    means = mean_scores(runs, metric)
    datasets, left_out = complete_datasets(runs)
    tests = pd.DataFrame()
    verdicts = pd.DataFrame("", means.index, means.columns, dtype=object)
    if reference not in (None, *means):
        raise ValueError(f"reference={reference!r}: allowed are {', '.join(means)}.")
    if reference is not None:
        tests = paired_t_tests(
            runs,
            metric,
            reference,
            larger_is_better=larger_is_better,
            test_ratio=test_ratio,
        )
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


# Chapters of the histories, and the least range that their axes show.
_PANELS = {"quality": 0.02, "complexity": 2.0}


def plot_critical_differences(
    test: FriedmanTest, *, level: float = 0.05, ax: Axes | None = None
) -> Axes:
    """Draw the mean ranks of methods; a bar joins those that cannot be told apart (Demšar 2006)."""
    ranks = test.mean_ranks.sort_values(kind="stable")
    differs = test.adjusted.loc[ranks.index, ranks.index].to_numpy() < level
    n = len(ranks)
    n_left = (n + 1) // 2
    # From each method as far as no two differ; what another bar covers is no bar of its own.
    ends = [
        max(j for j in range(i, n) if not differs[i : j + 1, i : j + 1].any())
        for i in range(n)
    ]
    bars = [(i, j) for i, j in enumerate(ends) if j > i and (i == 0 or j > ends[i - 1])]
    ax = axes_or_new(ax, (7.0, 1.3 + 0.3 * n_left))
    low = math.floor(ranks.min())
    high = math.ceil(ranks.max())
    margin = 0.03 * (high - low + 1.0)
    top = 0.6 + 0.4 * len(bars)
    for i, (name, rank) in enumerate(ranks.items()):
        if i < n_left:
            end, height = low - margin, -top - i
            text, side = f"{name} ({rank:.2f}) ", "right"
        else:
            end, height = high + margin, -top - (n - 1 - i)
            text, side = f" ({rank:.2f}) {name}", "left"
        ax.plot([rank, rank, end], [0.0, height, height], color=INK, lw=0.9)
        ax.text(end, height, text, ha=side, va="center", parse_math=False)
    for k, bar in enumerate(bars):
        height = -0.4 - 0.4 * k
        ax.plot(ranks.iloc[list(bar)], [height, height], color=PALETTE[0], lw=3.0)
    ax.plot(ranks, np.zeros(n), "o", color=INK, ms=4)
    ax.set(xlim=(low - margin, high + margin), ylim=(-top - n_left, 0.0))
    ax.spines[["left", "right", "bottom"]].set_visible(False)
    ax.yaxis.set_visible(False)
    ax.xaxis.tick_top()
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.xaxis.set_label_position("top")
    ax.set_xlabel("mean rank")
    return ax


def plot_accuracy_against_size(
    runs: pd.DataFrame,
    size: str = "leaves",
    *,
    metric: str = "accuracy",
    methods: Sequence[str] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw each method at its mean size and its mean score, over the data sets that all have.

    The place of a method among `methods`, by default those drawn, says its colour and marker.
    """
    runs = done_runs(runs, size, metric)
    datasets, left_out = complete_datasets(runs)
    if not datasets:
        raise ValueError(
            f"runs has no data set with {size} and {metric} of all methods."
        )
    x = mean_scores(runs, size).loc[datasets].mean()
    y = mean_scores(runs, metric).loc[datasets].mean()
    ax = _draw_methods(x, y, methods or list(x.index), axes_or_new(ax, (6.5, 4.5)))
    ax.margins(0.12)
    n_datasets = len(datasets) + len(left_out)
    ax.set(
        xlabel=f"{size} (mean of {len(datasets)} of {n_datasets} data sets)",
        ylabel=f"mean {metric}",
    )
    return ax


def plot_times(
    runs: pd.DataFrame,
    seconds: str = "seconds",
    *,
    methods: Sequence[str] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw the mean time of a fit for each data set and method, the fastest data set at the top.

    The place of a method among `methods`, by default those drawn, says its colour and marker.
    """
    times = mean_scores(done_runs(runs, seconds), seconds)
    times = times.loc[times.median(axis=1).sort_values(kind="stable").index]
    ax = axes_or_new(ax, (6.5, 1.6 + 0.24 * len(times)))
    rows = np.arange(len(times))
    least, most = times.min(axis=1), times.max(axis=1)
    ax.hlines(rows, least, most, color=INK, lw=0.6, alpha=0.4, zorder=1)
    ax = _draw_methods(times, dict.fromkeys(times, rows), methods or list(times), ax)
    ax.set_yticks(rows, times.index, parse_math=False)
    ax.set_ylim(len(times) - 0.4, -0.6)
    ax.set_xlabel(f"{seconds} a fit")
    return ax


def _draw_methods(
    x: pd.Series | pd.DataFrame, y: Any, methods: Sequence[str], ax: Axes
) -> Axes:
    """Draw points of each method, whose place among all methods says how they look."""
    points = dict(x)
    for method, places in points.items():
        look = style.point_style(methods.index(method))
        ax.plot(places, y[method], ms=7.0, label=method, **look)
    use_log_scale(ax, pd.Series(np.ravel(x)))
    style.draw_grid(ax)
    ax.set_axisbelow(True)
    style.take_as_written(style.legend_below(ax, min(4, len(points))))
    return ax


def use_log_scale(ax: Axes, values: pd.Series) -> None:
    """Make the x axis logarithmic, with the more plain numbers the fewer decades it has."""
    if (smallest := values.min()) <= 0.0:
        raise ValueError(
            f"{smallest:g} has no place on a logarithmic axis: allowed are positive numbers."
        )
    ax.set_xscale("log")
    decades = np.log10(values.max() / smallest)
    subs = range(1, 10) if decades < 0.7 else (1, 2, 5) if decades < 2.5 else (1,)
    ax.xaxis.set_major_locator(LogLocator(subs=subs))
    ax.xaxis.set_major_formatter("{x:g}")
    ax.xaxis.set_minor_formatter(NullFormatter())


def plot_curves_of_datasets(
    curves: Mapping[tuple[Any, ...], pd.DataFrame],
    datasets: Sequence[str],
    methods: Sequence[str],
) -> Figure | None:
    """Draw medians and quartiles of curves, a row a data set; return None where there are none."""
    chapters = [f"{chapter}_best" for chapter in _PANELS]
    histories: dict[tuple[str, str], list[pd.DataFrame]] = {}
    for (dataset, method, *_), curve in curves.items():
        if len(curve) and {"gen", *chapters} <= set(curve):
            histories.setdefault((dataset, method), []).append(curve)
    drawn = [name for name in datasets if any((name, m) in histories for m in methods)]
    if not drawn:
        return None
    figure, axes = plt.subplots(
        len(drawn),
        2,
        figsize=(7.5, 2.2 * len(drawn) + 0.8),
        layout="constrained",
        sharex="row",
        squeeze=False,
    )
    # A line without points keeps the colours of the methods that follow.
    nothing = [pd.DataFrame({"gen": [0]} | dict.fromkeys(chapters, np.nan))]
    for row, dataset in zip(axes, drawn, strict=True):
        groups = {m: histories.get((dataset, m), nothing) for m in methods}
        for ax, (chapter, least_range) in zip(row, _PANELS.items(), strict=True):
            plot_learning_curves(groups, chapter=chapter, ax=ax)
            ax.get_legend().remove()
            ax.set(xlabel="generation", ylabel=f"{chapter}, best tree")
            ax.yaxis.set_major_locator(MaxNLocator(5, integer=chapter == "complexity"))
            low, high = ax.get_ylim()
            # The steps of a flat curve are no more than they are.
            slack = 0.5 * max(0.0, least_range - (high - low))
            ax.set_ylim(low - slack, high + slack)
        row[0].set_title(dataset, loc="left", fontsize="medium", parse_math=False)
    lines = dict(zip(methods, ax.get_lines(), strict=True))
    shown = [m for m in methods if any((name, m) in histories for name in drawn)]
    legend = figure.legend(
        [lines[name] for name in shown],
        shown,
        loc="outside lower center",
        ncols=4,
        frameon=False,
    )
    style.take_as_written(legend)
    return figure
