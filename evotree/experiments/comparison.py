"""Methods compared over data sets: tables of means with paired tests; tests of ranks beside them.

In: a table of runs, one row a fit, as `evotree.experiments.method_runs` describes it. Out: the
tables and tests of a paper; its pictures are drawn by `evotree.experiments.pictures`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import pandas as pd

from evotree.experiments.markdown import markdown_table
from evotree.experiments.method_runs import complete_datasets, done_runs, mean_scores, rank_methods
from evotree.experiments.paired_tests import PairedTest, paired_t_tests
from evotree.experiments.rank_tests import FriedmanTest, check_choice, friedman

__all__ = [
    "FriedmanTest",
    "MeanTable",
    "friedman",
    "mean_table",
]

TEST_NAMES = {"paired": "paired t-tests", "corrected": "corrected resampled t-tests"}
MARKDOWN_ESCAPES = str.maketrans({character: f"\\{character}" for character in "\\`*_|<"})
NOTE_ESCAPES = str.maketrans({character: f"\\{character}" for character in "\\`*_<"})


class Form(NamedTuple):
    """How the cells of a table are written: templates of a language."""

    bold: str
    plus_minus: str
    missing: str
    marks: Mapping[str, str]


MARKDOWN = Form("**{}**", " ± ", "–", {"win": " •", "loss": " ◦", "tie": ""})
LATEX = Form(
    r"\textbf{{{}}}",
    r" $\pm$ ",
    "--",
    # An invisible mark keeps the numbers of a column aligned.
    {"win": r" $\bullet$", "loss": r" $\circ$", "tie": r" \phantom{$\bullet$}"},
)


@dataclass(frozen=True)
class MeanTable:
    """Means of methods on data sets, compared with those of one method.

    Attributes
    ----------
    means, stds : DataFrame of shape (n_datasets, n_methods)
        Means and standard deviations over folds and seeds; NaN where there are no runs, and for
        the deviation of one run.
    tests : DataFrame
        The tests of the reference against each other method, as
        `evotree.experiments.paired_tests.paired_t_tests` returns them; empty without a reference.
    verdicts : DataFrame of str of shape (n_datasets, n_methods)
        ``win`` where the reference is significantly better than the method, ``loss`` where worse,
        ``tie``, and an empty text where there was no test.
    mean_ranks : Series
        Mean rank of each method on the complete data sets; 1 is best.
    datasets, left_out : list of str
        Data sets that all methods have on the same folds, and the others: last rows, of means and
        ranks, are over the former alone.
    larger_is_better : bool
        Whether the largest mean is best.
    reference : str or None
        The method compared with the others.
    test : {"paired", "corrected"}
        Which tests.
    level : float
        Verdicts other than ``tie`` have an adjusted p-value below it.
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
    test: PairedTest
    level: float

    @property
    def counts(self) -> pd.Series:
        """Wins, ties and losses of the reference against each other method, as ``3/1/2``."""
        if self.reference is None:
            return pd.Series(dtype=object)
        verdicts = self.verdicts.drop(columns=self.reference)
        kinds = [verdicts.eq(kind).sum().astype(str) for kind in ("win", "tie", "loss")]
        return kinds[0] + "/" + kinds[1] + "/" + kinds[2]

    def to_markdown(self, decimals: int = 2, factor: float = 1.0, bold: bool = True) -> str:
        """Return the table in Markdown, with a note on marks and last rows.

        Parameters
        ----------
        decimals : int, default=2
            Decimals of means, deviations and ranks.
        factor : float, default=1.0
            Means and deviations are multiplied by it: 100 for percent.
        bold : bool, default=True
            Whether the best means are bold.

        Returns
        -------
        str
            The lines.
        """
        form = MARKDOWN if bold else MARKDOWN._replace(bold="{}")
        rows = self._rows(form, decimals, factor).reset_index(names="data set")
        rows["data set"] = [str(name).translate(MARKDOWN_ESCAPES) for name in rows["data set"]]
        rows = rows.rename(columns=lambda name: str(name).translate(MARKDOWN_ESCAPES))
        return f"{markdown_table(rows)}\n\n{self._note(form).translate(NOTE_ESCAPES)}\n"

    def to_latex(self, decimals: int = 2, factor: float = 1.0) -> str:
        """Return the table in LaTeX, for the package booktabs, with a note as a comment above.

        Parameters
        ----------
        decimals : int, default=2
            Decimals of means, deviations and ranks.
        factor : float, default=1.0
            Means and deviations are multiplied by it: 100 for percent.

        Returns
        -------
        str
            The lines of a ``tabular``.
        """
        styler = self._rows(LATEX, decimals, factor).style
        for axis in ("index", "columns"):
            styler = styler.format_index(escape="latex", axis=axis)
        columns = f"l{'r' * self.means.shape[1]}"
        *lines, _ = styler.to_latex(column_format=columns, hrules=True).split("\n")
        # Head, rule and one line a data set come before the means.
        lines.insert(4 + len(self.means), r"\midrule")
        return "\n".join([f"% {self._note(LATEX)}", *lines, ""])

    def to_csv(self) -> str:
        """Return the table with all digits as CSV: mean, std and verdict of each method.

        Returns
        -------
        str
            The lines.
        """
        counts = self.counts
        columns = {}
        for name in self.means:
            last = [self._overall[name], self.mean_ranks[name]]
            columns[f"{name} mean"] = [*self.means[name], *last, math.nan]
            columns[f"{name} std"] = [*self.stds[name], math.nan, math.nan, math.nan]
            if name in counts:
                columns[f"{name} verdict"] = [*self.verdicts[name], "", "", counts[name]]
        names = [*self.means.index, "mean", "mean rank", "win/tie/loss"]
        table = pd.DataFrame(columns, pd.Index(names, name="dataset"))
        return table.iloc[: len(table) - counts.empty].to_csv()

    @property
    def _overall(self) -> pd.Series:
        return self.means.loc[self.datasets].mean()

    def _rows(self, form: Form, decimals: int, factor: float) -> pd.DataFrame:
        """Return the cells as texts: a row a data set, then the means, the ranks, the counts."""
        larger, compared = self.larger_is_better, self.counts.index
        rows: dict[str, Any] = {}
        for name, means in (factor * self.means).iterrows():
            cells = _bold_best(means, larger, decimals, form)
            for method, std in (factor * self.stds.loc[name]).items():
                if not math.isnan(std):
                    cells[method] += f"{form.plus_minus}{std:.{decimals}f}"
                if method in compared:
                    cells[method] += form.marks[self.verdicts.loc[name, method] or "tie"]
            rows[str(name)] = cells
        rows["mean"] = _bold_best(factor * self._overall, larger, decimals, form)
        rows["mean rank"] = _bold_best(self.mean_ranks, False, decimals, form)
        if not self.counts.empty:
            rows["win/tie/loss"] = self.counts.reindex(self.means.columns, fill_value=form.missing)
        return pd.DataFrame.from_dict(rows, orient="index")

    def _note(self, form: Form) -> str:
        n, n_left = len(self.datasets), len(self.left_out)
        note = f"Last rows: over {n} of {n + n_left} data sets"
        note += f", without {', '.join(self.left_out)}." if n_left else "."
        if self.stds.notna().any(axis=None):
            plus_minus = form.plus_minus.strip()
            note = f"{plus_minus}: standard deviation over folds and seeds. {note}"
        if self.reference is None:
            return note
        win, loss = form.marks["win"].strip(), form.marks["loss"].strip()
        return (
            f"{win}/{loss}: {self.reference} is significantly better/worse "
            f"({TEST_NAMES[self.test]}, Holm over data sets, level {self.level:g}). {note}"
        )


def _bold_best(
    values: pd.Series, larger_is_better: bool, decimals: int, form: Form
) -> dict[str, str]:
    """Return values as texts, those bold that look like the best one."""
    texts = {name: f"{value:.{decimals}f}" for name, value in values.items()}
    best = values.max() if larger_is_better else values.min()
    cells = {}
    for name, text in texts.items():
        cells[name] = form.bold.format(text) if text == f"{best:.{decimals}f}" else text
        if math.isnan(values[name]):
            cells[name] = form.missing
    return cells


def mean_table(
    runs: pd.DataFrame,
    metric: str,
    larger_is_better: bool = True,
    *,
    reference: str | None = None,
    test: PairedTest = "corrected",
    level: float = 0.05,
    test_ratio: float | None = None,
) -> MeanTable:
    """Return means and deviations over folds and seeds, and what tests say of one method.

    Runs of two methods are paired by fold and seed. Where fewer than two pairs are there, no test
    is made.

    Parameters
    ----------
    runs : DataFrame
        Runs, one row a fit.
    metric : str
        Column of the scores.
    larger_is_better : bool, default=True
        Whether the largest score is best.
    reference : str, optional
        The method to be compared with each other one.
    test : {"paired", "corrected"}, default="corrected"
        The paired t-test, or Nadeau and Bengio's correction of it for training sets that overlap,
        as those of folds do.
    level : float in (0, 1), default=0.05
        Differences with a p-value below it, adjusted by Holm over the data sets, are significant.
    test_ratio : float > 0, optional
        Test rows to a training row, for the corrected test; by default 1 / (k - 1) on a data set
        with runs on k folds.

    Returns
    -------
    MeanTable
        The table.

    Raises
    ------
    TypeError, ValueError
        If `runs` cannot be compared, another argument is not allowed, or the ratio is not given
        where there is one fold.

    References
    ----------
    Yang B.-B., Shen S.-Q., Gao W. (2019). Weighted oblique decision trees. Proceedings of the AAAI
    Conference on Artificial Intelligence 33, 5621-5627.

    Nadeau C., Bengio Y. (2003). Inference for the generalization error. Machine Learning 52,
    239-281.
    """
    runs = done_runs(runs, metric)
    means = mean_scores(runs, metric)
    check_choice("test", test, tuple(TEST_NAMES))
    if not 0.0 < level < 1.0:
        raise ValueError(f"level={level!r}: allowed are shares between 0 and 1.")
    if test_ratio is not None and not 0.0 < test_ratio < math.inf:
        raise ValueError(f"test_ratio={test_ratio!r}: allowed are positive numbers.")
    if reference is not None:
        check_choice("reference", reference, tuple(means.columns))
    datasets, left_out = complete_datasets(runs)
    stds = runs.groupby(["dataset", "method"])[metric].std().unstack()
    verdicts = pd.DataFrame("", means.index, means.columns, dtype=object)
    tests = pd.DataFrame()
    if reference is not None:
        tests = paired_t_tests(
            runs,
            metric,
            reference,
            larger_is_better=larger_is_better,
            test=test,
            level=level,
            test_ratio=test_ratio,
        )
        for row in tests.itertuples():
            verdicts.loc[row.dataset, row.method] = row.verdict
    return MeanTable(
        means=means,
        stds=stds.reindex_like(means),
        tests=tests,
        verdicts=verdicts,
        mean_ranks=rank_methods(means.loc[datasets], larger_is_better).mean(),
        datasets=datasets,
        left_out=left_out,
        larger_is_better=larger_is_better,
        reference=reference,
        test=test,
        level=level,
    )
