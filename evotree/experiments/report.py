"""The report of an experiment: what was run and what is left out, tables, tests, and pictures."""

import json
from collections.abc import Iterator, Mapping
from itertools import combinations, product
from pathlib import Path
from typing import Any

import pandas as pd
from scipy import stats

from evotree.experiments import comparison
from evotree.experiments.execution import (
    DONE,
    TIMEOUT,
    read_curves,
    read_definition,
    read_runs,
)
from evotree.plotting.style import save_picture

_DECIMALS = 3
# Columns that have a table beside the scores, its title, and decimals.
_COLUMNS = {
    "leaves": ("leaves", 1),
    "terms": ("terms (of all splits)", 0),
    "complexity": ("complexity (leaves and terms)", 0),
    "seconds": ("seconds of a fit", 2),
    "peak_memory_mb": ("peak memory (MiB)", 0),
}
# How the table of tests writes verdicts, and its columns: a row a method and data set.
_RESULTS = {"win": "better", "loss": "worse", "tie": "not significant", "": "one pair"}
_TEST_COLUMNS = [
    "method",
    "data set",
    "n",
    "difference",
    "standard error",
    "t",
    "p",
    "p, Holm",
    "result",
]
_ERROR_COLUMNS = ["method", "data set", "ended", "fits", "error, the first of its kind"]
_LEAST_FOR_RANKS = 3  # methods, and data sets, below which tests of ranks say nothing
_ERROR_LENGTH = 160
# What is told of a data set, and how the columns of its table are called.
_FACTS = {
    "source": "source",
    "rows": "rows",
    "columns": "features",
    "classes": "classes",
}
_CAPTIONS = {
    "critical_differences": "Mean ranks over the data sets; a bar joins methods that Friedman's "
    "test, with Holm's for the pairs, does not tell apart.",
    "accuracy_against_size": "Score and leaves, means over the data sets; best is the upper left.",
    "accuracy_against_terms": "Score and terms, as above.",
    "accuracy_against_complexity": "Score and complexity, as above.",
    "times": "Mean seconds of a fit on each data set, the fastest data set first.",
    "learning_curves": "The best tree of each generation on the training rows: medians and "
    "quartiles over folds and seeds. Runs that ended early keep their last values.",
}
PICTURE_FORMATS = ("png", "pdf")


def write_report(
    folder: Path, reference: str | None = None, picture_format: str = "png"
) -> list[Path]:
    """Write ``report.md``, tables and pictures of an experiment's results; return the files.

    Parameters
    ----------
    folder : Path
        Folder of the results; written to.
    reference : str, optional
        The method that the others are compared with.
    picture_format : {"png", "pdf"}, default="png"
        Format of the pictures; Markdown shows the first kind and links to the other.
    """
    if picture_format not in PICTURE_FORMATS:
        raise ValueError(
            f"picture_format={picture_format!r}: allowed are {PICTURE_FORMATS}."
        )
    definition = read_definition(folder)
    everything = read_runs(folder)
    for column in ("method", "dataset"):  # in the order of the experiment
        names = pd.unique(pd.Series([*definition[f"{column}s"], *everything[column]]))
        order = pd.Index(names).get_indexer
        everything = everything.sort_values(column, key=order, kind="stable")
    runs = everything[everything["status"] == DONE]
    if runs.empty:
        raise ValueError(f"{folder} holds no fit that is done.")
    protocol = definition["protocol"]
    # Of folds; an official split has no training sets that overlap.
    ratio = 0.0 if protocol["official"] else 1.0 / (protocol["n_folds"] - 1)
    statuses = everything["status"].value_counts()
    counts = ", ".join(f"{count:,} {status}" for status, count in statuses.items())
    sections = [
        f"# {definition['name']}",
        f"{len(everything):,} fits: {counts}.",
        *what_was_run(everything, definition),
        *what_is_left_out(everything, definition),
    ]
    files: dict[str, str] = {}
    for metric in definition["metrics"]:
        sections += _about_metric(runs, metric, reference, ratio, files)
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
    for column, (title, decimals) in _COLUMNS.items():
        some = runs[runs[column].notna()]
        if not some.empty:
            table = comparison.mean_table(some, column, larger_is_better=False)
            bold = column not in ("seconds", "peak_memory_mb")
            sections += [f"## {title}", table.to_markdown(decimals, bold)]
    sections.append("## Pictures")
    paths = [folder / name for name in files]
    for name, ax in _draw_pictures(runs, next(iter(definition["metrics"])), folder):
        paths.append(save_picture(ax, folder / f"{name}.{picture_format}"))
        link = f"[{name.replace('_', ' ')}]({paths[-1].name})"
        sections += [_CAPTIONS[name], f"!{link}" if picture_format == "png" else link]
    report = folder / "report.md"
    report.write_text("\n\n".join(map(str.strip, sections)) + "\n", encoding="utf-8")
    return [report, *paths]


def what_was_run(runs: pd.DataFrame, definition: Mapping[str, Any]) -> list[str]:
    """Return protocol, seeds, methods, versions, machine, dates, and a table of the data sets."""
    versions = [json.loads(text) for text in sorted(runs["versions"].dropna().unique())]
    revisions = sorted(set(runs["revision"].dropna()) - {""})
    dates = sorted(runs["finished"].dropna().str[:10].unique())
    n_fits = runs.groupby(["method", "dataset"]).size().max()
    lines = [
        *definition["shown"],
        f"Seeds: {', '.join(map(str, sorted(runs['seed'].unique())))}; fits of a method on a data "
        f"set: {n_fits:,}. A seed shuffles the rows, the same for all methods; seed and fold set "
        "the random state of a method.",
        "Features are encoded by the training rows of each fit: a missing number is the median, "
        "and a second feature tells it; each level of a category is a feature of 0 and 1.",
        *(f"Versions: {', '.join(map(' '.join, of.items()))}." for of in versions),
        *(f"Revision of the source: {', '.join(revisions)}." for _ in revisions[:1]),
        *(f"Machine: {text}." for text in definition.get("machines", [])),
        *(
            f"Run {' to '.join(dict.fromkeys(dates[:1] + dates[-1:]))}."
            for _ in dates[:1]
        ),
    ]
    facts = pd.DataFrame(definition["data"]).T.convert_dtypes()
    facts["source"] = pd.Series(definition["sources"], dtype=object)
    facts = facts[[name for name in _FACTS if name in facts]].rename(columns=_FACTS)
    cells = facts.astype(object).where(facts.notna(), "–")
    cells = _escape_cells(cells.rename_axis("data set").reset_index())
    text = "\n".join(f"- {line}" for line in lines)
    return ["## What was run", text, comparison.markdown_table(cells, 2)]


def _escape_cells(
    cells: pd.DataFrame, escapes: Any = comparison.MARKDOWN_ESCAPES
) -> pd.DataFrame:
    """Return texts that have no meaning in a language."""
    return cells.map(lambda cell: str(cell).translate(escapes))


def what_is_left_out(runs: pd.DataFrame, definition: Mapping[str, Any]) -> list[str]:
    """Return which fits are in no table, with the errors of those that failed."""
    parts = []
    others = runs[runs["status"] != DONE]
    if not others.empty:
        last_lines = others["error"].fillna("").str.strip().str.rpartition("\n")[2]
        # Errors of one class often differ by a number in their texts alone: the first is shown.
        kinds = last_lines.str.partition(":")[0].mask(others["status"] == TIMEOUT, "")
        others = others.assign(reason=last_lines.str[:_ERROR_LENGTH], kind=kinds)
        groups = others.groupby(["method", "dataset", "status", "kind"], sort=False)
        cells = groups["reason"].agg(["size", "first"]).reset_index()
        cells = cells.drop(columns="kind").set_axis(_ERROR_COLUMNS, axis=1)
        parts += [
            f"{len(others):,} of {len(runs):,} fits are in no table:",
            comparison.markdown_table(_escape_cells(cells), cells.shape[1]),
        ]
    protocol = definition["protocol"]
    is_split_once = protocol["official"]
    n_folds = runs["fold"].nunique() if is_split_once else protocol["n_folds"]
    planned = n_folds * max(len(definition["seeds"]), runs["seed"].nunique())
    datasets = dict.fromkeys([*definition["datasets"], *runs["dataset"]])
    counts = runs.groupby(["method", "dataset"]).size()
    missing = [
        f"{method}: {planned - n:,} of {planned:,} on {dataset}"
        for method, dataset in product(definition["methods"], datasets)
        if (n := counts.get((method, dataset), 0)) < planned
    ]
    if missing:
        text = f"Not run: {'; '.join(missing)}."
        parts.append(text.translate(comparison.MARKDOWN_ESCAPES))
    nothing = [f"Nothing: all {len(runs):,} fits are done."]
    return ["## What is left out", *(parts or nothing)]


def _about_metric(
    runs: pd.DataFrame,
    metric: str,
    reference: str | None,
    ratio: float,
    files: dict[str, str],
) -> list[str]:
    """Return a section of the report; put the files of its tables by their names to others."""
    table = comparison.mean_table(runs, metric, reference=reference, test_ratio=ratio)
    files[f"{metric}.csv"] = table.to_csv()
    files[f"{metric}.tex"] = table.to_latex(_DECIMALS)
    section = [f"## {metric}", table.to_markdown(_DECIMALS)]
    if reference is None:
        section.append(
            "No tests of pairs: `--reference METHOD` names the one to compare with."
        )
    elif not table.tests.empty:
        tests = table.tests.replace({"verdict": _RESULTS})
        cells = tests.set_axis(_TEST_COLUMNS, axis=1).map(
            lambda cell: f"{cell:.3g}" if isinstance(cell, float) else cell
        )
        cells = cells.replace("nan", "")
        files[f"{metric}_tests.csv"] = table.tests.to_csv(index=False)
        files[f"{metric}_tests.tex"] = comparison.latex_table(
            _escape_cells(cells, comparison.LATEX_ESCAPES), 2
        )
        title = f"### {reference} against each method, on each data set"
        section += [
            title.translate(comparison.MARKDOWN_ESCAPES),
            comparison.markdown_table(_escape_cells(cells), 2),
            _note_on_tests(table, ratio).translate(comparison.MARKDOWN_ESCAPES),
        ]
    return [*section, _rank_sentence(runs, metric)]


def _note_on_tests(table: comparison.MeanTable, ratio: float) -> str:
    """Return how methods were compared with the reference, and how often it is better."""
    formula = (
        "the plain paired t-test, of the seeds alone: the rows are always the same"
    )
    if ratio:
        formula = (
            f"standard error √((1/n + {ratio:.3g}) s²), with {ratio:.3g} test rows to a training "
            "row, since training sets overlap (Nadeau and Bengio 2003)"
        )
    counts = [f"{count} against {name}" for name, count in table.counts.items()]
    return (
        f"Differences: {table.reference} less the method, over n pairs of fold and seed, with the "
        f"variance s²; {formula}; p-values two-sided, adjusted by Holm over the data sets of a "
        f"method; level {comparison.LEVEL:g}. Wins/ties/losses of {table.reference}: "
        f"{', '.join(counts)}."
    )


def _test_ranks(runs: pd.DataFrame, metric: str) -> comparison.FriedmanTest | None:
    """Compare the methods by their ranks, where there are enough of them on enough data sets."""
    n = min(len(comparison.complete_datasets(runs)[0]), runs["method"].nunique())
    return comparison.friedman(runs, metric) if n >= _LEAST_FOR_RANKS else None


def _rank_sentence(runs: pd.DataFrame, metric: str) -> str:
    """Return what tests of ranks say, or why there are none."""
    datasets, _ = comparison.complete_datasets(runs)
    means = comparison.mean_scores(runs, metric).loc[datasets]
    if len(means.columns) == 2 and len(means) >= _LEAST_FOR_RANKS:
        gains = (means.iloc[:, 0] - means.iloc[:, 1]).round(12)
        p_value = stats.wilcoxon(gains, zero_method="zsplit").pvalue
        return f"Wilcoxon's signed-rank test over {len(means)} data sets: p = {p_value:.2g}."
    test = _test_ranks(runs, metric)
    if test is None:
        return (
            f"No test of ranks: Friedman's test needs {_LEAST_FOR_RANKS} methods on "
            f"{_LEAST_FOR_RANKS} data sets, with the same folds of all; there are "
            f"{len(means.columns)} methods and {len(means)} such data sets."
        )
    pairs = [
        f"{better} before {worse} (p = {p_value:.2g})"
        for better, worse in combinations(test.mean_ranks.sort_values().index, 2)
        if (p_value := test.adjusted.loc[better, worse]) < comparison.LEVEL
    ]
    return (
        f"Friedman's test over {len(test.datasets)} data sets: chi-squared {test.statistic:.2f}, "
        f"p = {test.p_value:.2g}. Pairs that differ at the level {comparison.LEVEL:g}, after Holm: "
        f"{'; '.join(pairs) or 'none'}."
    )


def _draw_pictures(
    runs: pd.DataFrame, metric: str, folder: Path
) -> Iterator[tuple[str, Any]]:
    """Yield names and axes of what there is to see; a method looks the same in all."""
    methods = sorted(runs["method"].unique())
    if test := _test_ranks(runs, metric):
        yield "critical_differences", comparison.plot_critical_differences(test)
    for size in ("leaves", "terms", "complexity"):
        # A tree of one leaf has no terms, and no place on a logarithmic axis.
        sized = runs[runs[size] > 0]
        if sized["method"].nunique() > 1 and comparison.complete_datasets(sized)[0]:
            ax = comparison.plot_accuracy_against_size(
                sized, size, metric=metric, methods=methods
            )
            yield f"accuracy_against_{size.replace('leaves', 'size')}", ax
    yield "times", comparison.plot_times(runs, methods=methods)
    figure = comparison.plot_curves_of_datasets(
        read_curves(folder), runs["dataset"].unique(), methods
    )
    if figure is not None:
        yield "learning_curves", figure.axes[0]
