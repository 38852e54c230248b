"""The report of an experiment: what was run, tables in three languages, tests, and pictures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pandas as pd
from scipy import stats

from evotree.experiments.comparison import (
    MARKDOWN_ESCAPES,
    NOTE_ESCAPES,
    FriedmanTest,
    MeanTable,
    friedman,
    mean_table,
)
from evotree.experiments.markdown import markdown_table
from evotree.experiments.method_runs import complete_datasets, mean_scores
from evotree.experiments.pictures import save_picture
from evotree.experiments.pictures.comparison import (
    plot_accuracy_against_size,
    plot_critical_differences,
    plot_times,
)
from evotree.experiments.pictures.curves import plot_curves_of_datasets
from evotree.experiments.runner import DONE
from evotree.experiments.store import read_curves, read_definition, read_runs
from evotree.experiments.what_was_run import what_is_left_out, what_was_run

_DECIMALS = 3
_SIZES = {"leaves": 1, "terms": 0, "complexity": 0}
_COSTS = {"seconds": 2, "peak_memory_mb": 0}
"""Columns, and with how many decimals their tables are written."""
_LEAST_FOR_RANKS = 3  # methods, and data sets, below which tests of ranks say nothing
_TITLES = {
    "terms": "terms (of all splits)",
    "complexity": "complexity (leaves and terms)",
    "seconds": "seconds of a fit",
    "peak_memory_mb": "peak memory (MiB)",
}
_CAPTIONS = {
    "critical_differences": "Mean ranks over the data sets; a bar joins methods that Friedman's "
    "test, with Holm's for the pairs, does not tell apart.",
    "accuracy_against_size": "Score and leaves, means over the data sets; best is the upper left.",
    "accuracy_against_terms": "Score and terms, as above.",
    "accuracy_against_complexity": "Score and complexity, as above.",
    "times": "Mean seconds of a fit on each data set, the fastest data set first.",
    "learning_curves": "Quality on the training rows, and complexity, of the best tree of each "
    "generation: medians and quartiles over folds and seeds. Of a method's runs, those that ended "
    "early keep their last values.",
}
"""What stands above the pictures."""

PICTURE_FORMATS = ("png", "pdf")


def write_report(
    folder: Path, reference: str | None = None, picture_format: str = "png"
) -> list[Path]:
    """Write what the results of an experiment say: ``report.md``, tables and pictures.

    Parameters
    ----------
    folder : Path
        Folder of the results; written to.
    reference : str, optional
        The method that the others are compared with.
    picture_format : {"png", "pdf"}, default="png"
        Format of the pictures; Markdown shows the first kind and links to the other.

    Returns
    -------
    list of Path
        The files.

    Raises
    ------
    FileNotFoundError
        If there are no results.
    ValueError
        If no fit is done yet, or the format is neither.
    """
    if picture_format not in PICTURE_FORMATS:
        allowed = ", ".join(map(repr, PICTURE_FORMATS))
        raise ValueError(f"picture_format={picture_format!r}: allowed are {allowed}.")
    everything, definition = read_runs(folder), read_definition(folder)
    everything = _in_order(everything, definition)
    runs = everything[everything["status"] == DONE]
    if runs.empty:
        raise ValueError(f"{folder} holds no fit that is done.")
    ratio = _test_ratio(definition)
    statuses = everything["status"].value_counts()
    counts = ", ".join(f"{count:,} {status}" for status, count in statuses.items())
    sections = [f"# {definition['name']}", f"{len(everything):,} fits: {counts}."]
    sections += what_was_run(everything, definition)
    titles = {name: _TITLES.get(name, name) for name in _SIZES}
    sections += what_is_left_out(everything, definition, titles)
    written = []
    for metric in definition["metrics"]:
        table = mean_table(
            runs,
            metric,
            reference=reference,
            test="corrected" if ratio else "paired",
            test_ratio=ratio,
        )
        texts = {f"{metric}.csv": table.to_csv(), f"{metric}.tex": table.to_latex(_DECIMALS)}
        if not table.tests.empty:
            texts[f"{metric}_tests.csv"] = table.tests.to_csv(index=False)
            texts[f"{metric}_tests.tex"] = _tests_in_latex(table)
        for name, text in texts.items():
            path = folder / name
            path.write_text(text, encoding="utf-8")
            written.append(path)
        sections += [f"## {metric}", table.to_markdown(_DECIMALS)]
        sections += [*_tests_in_markdown(table, ratio), _rank_sentence(runs, metric)]
    for column, decimals in (_SIZES | _COSTS).items():
        some = runs[runs[column].notna()]
        if not some.empty:
            table = mean_table(some, column, larger_is_better=False)
            sections.append(f"## {_TITLES.get(column, column)}")
            sections.append(table.to_markdown(decimals, bold=column in _SIZES))
    metric = next(iter(definition["metrics"]))
    shown = "!" if picture_format == "png" else ""
    sections.append("## Pictures")
    for path in _draw(folder, runs, metric, picture_format):
        written.append(path)
        sections.append(_CAPTIONS[path.stem])
        sections.append(f"{shown}[{path.stem.replace('_', ' ')}]({path.name})")
    report = folder / "report.md"
    report.write_text("\n\n".join(map(str.strip, sections)) + "\n", encoding="utf-8")
    return [report, *written]


def _in_order(runs: pd.DataFrame, definition: Mapping[str, Any]) -> pd.DataFrame:
    """Return rows in the order in which the experiment names its data sets and methods."""
    names = {"dataset": definition.get("datasets", []), "method": definition["methods"]}
    places = {
        column: {name: place for place, name in enumerate(dict.fromkeys([*known, *runs[column]]))}
        for column, known in names.items()
    }
    return runs.sort_values(
        list(places), key=lambda column: column.map(places[column.name]), kind="stable"
    )


def _test_ratio(definition: Mapping[str, Any]) -> float | None:
    """Return test rows to a training row of folds, which overlap; None of an official split."""
    protocol = definition.get("protocol")
    protocol = protocol if isinstance(protocol, Mapping) else {}
    n_folds = protocol.get("n_folds")
    if not isinstance(n_folds, int) or n_folds < 2 or protocol.get("official"):
        return None
    return 1.0 / (n_folds - 1)


def _cells_of_tests(table: MeanTable) -> pd.DataFrame:
    """Return the tests of a table as texts: a row for each other method and data set."""
    tests = table.tests
    verdicts = {"win": "better", "loss": "worse", "tie": "not significant", "": "one pair"}
    cells = {"method": tests["method"], "data set": tests["dataset"]}
    cells["difference"] = tests["difference"].map(f"{{:+.{_DECIMALS + 1}f}}".format)
    cells["standard error"] = tests["standard_error"].map(f"{{:.{_DECIMALS + 1}f}}".format)
    cells["t"] = tests["statistic"].map("{:.2f}".format)
    cells["df"] = (tests["n_pairs"] - 1).astype(str)
    cells["p"] = tests["p_value"].map("{:.2g}".format)
    cells["p, Holm"] = tests["adjusted"].map("{:.2g}".format)
    cells["result"] = tests["verdict"].map(verdicts)
    return pd.DataFrame(cells).replace(["nan", "+nan"], "")


def _tests_in_markdown(table: MeanTable, ratio: float | None) -> list[str]:
    """Return a section about the tests of the reference, or how to get one."""
    if table.reference is None:
        return ["No tests of pairs: `--reference METHOD` names the one to compare with the others."]
    if table.tests.empty:
        return []
    rows = _cells_of_tests(table)
    for name in ("method", "data set"):
        rows[name] = rows[name].str.translate(MARKDOWN_ESCAPES)
    formula = "the plain paired t-test, of the seeds alone: the rows are always the same"
    if ratio:
        formula = (
            f"standard error √((1/n + {ratio:.3g}) s²), with {ratio:.3g} test rows to a training "
            "row, since training sets overlap (Nadeau and Bengio 2003)"
        )
    counts = [f"{count} against {name}" for name, count in table.counts.items()]
    note = (
        f"Differences: {table.reference} less the method, over n pairs of fold and seed, with the "
        f"variance s²; {formula}; n - 1 degrees of freedom; p-values two-sided, adjusted by Holm "
        f"over the data sets of a method; level {table.level:g}. Wins/ties/losses of "
        f"{table.reference}: {', '.join(counts)}."
    ).translate(NOTE_ESCAPES)
    title = f"### {table.reference} against each method, on each data set"
    return [title.translate(MARKDOWN_ESCAPES), markdown_table(rows, 2), note]


def _tests_in_latex(table: MeanTable) -> str:
    """Return the tests of the reference in LaTeX, for the package booktabs."""
    rows = _cells_of_tests(table)
    styler = rows.style.hide(axis="index").format(escape="latex")
    styler = styler.format_index(escape="latex", axis="columns")
    return str(styler.to_latex(column_format="llrrrrrrl", hrules=True))


def _test_ranks(runs: pd.DataFrame, metric: str) -> FriedmanTest | None:
    """Compare the methods by their ranks, where there are enough of them on enough data sets."""
    datasets, _ = complete_datasets(runs)
    is_enough = min(len(datasets), runs["method"].nunique()) >= _LEAST_FOR_RANKS
    return friedman(runs, metric) if is_enough else None


def _rank_sentence(runs: pd.DataFrame, metric: str) -> str:
    """Return what tests of ranks say, or why there are none."""
    test = _test_ranks(runs, metric)
    (datasets, _), methods = complete_datasets(runs), list(runs["method"].unique())
    if test is None and len(methods) == 2 and len(datasets) >= _LEAST_FOR_RANKS:
        means = mean_scores(runs, metric).loc[datasets]
        gains = (means[methods[0]] - means[methods[1]]).round(12)
        p_value = stats.wilcoxon(gains, zero_method="zsplit").pvalue
        return f"Wilcoxon's signed-rank test over {len(datasets)} data sets: p = {p_value:.2g}."
    if test is None:
        return (
            f"No test of ranks and no diagram of critical differences: Friedman's test needs "
            f"{_LEAST_FOR_RANKS} methods on {_LEAST_FOR_RANKS} data sets, with the same folds of "
            f"all; there are {len(methods)} methods and {len(datasets)} such data sets."
        )
    names = list(test.mean_ranks.sort_values().index)
    pairs = [
        f"{better} before {worse} (p = {test.adjusted.loc[better, worse]:.2g})"
        for i, better in enumerate(names)
        for worse in names[i + 1 :]
        if test.adjusted.loc[better, worse] < 0.05
    ]
    return (
        f"Friedman's test over {len(test.datasets)} data sets: chi-squared {test.statistic:.2f}, "
        f"p = {test.p_value:.2g}. Pairs that differ at the level 0.05, after Holm: "
        f"{'; '.join(pairs) or 'none'}."
    )


def _draw(folder: Path, runs: pd.DataFrame, metric: str, ending: str) -> Iterator[Path]:
    """Draw what there is to see, and yield the files."""

    def save(name: str, ax: Any) -> Path:
        return save_picture(ax, folder / f"{name}.{ending}")

    test = _test_ranks(runs, metric)
    if test is not None:
        yield save("critical_differences", plot_critical_differences(test))
    for name, size in (("size", "leaves"), ("terms", "terms"), ("complexity", "complexity")):
        # A tree of one leaf has no terms, and no place on a logarithmic axis.
        sized = runs[runs[size] > 0]
        if sized["method"].nunique() > 1 and complete_datasets(sized)[0]:
            yield save(
                f"accuracy_against_{name}", plot_accuracy_against_size(sized, size, metric=metric)
            )
    yield save("times", plot_times(runs))
    curves = plot_curves_of_datasets(
        read_curves(folder), list(runs["dataset"].unique()), list(runs["method"].unique())
    )
    if curves is not None:
        yield save("learning_curves", curves.axes[0])
