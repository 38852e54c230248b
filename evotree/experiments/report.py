"""The report of an experiment: what was run and what is left out, tables, tests, and pictures.

Results may be those of strangers: the names of the files are fixed, and texts are shown as texts.
"""

from collections.abc import Iterator, Mapping
from itertools import combinations, product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from pandas.api.types import is_numeric_dtype

from evotree.experiments import comparison, pictures
from evotree.experiments.comparison import in_markdown, markdown_table
from evotree.experiments.protocols import Protocol
from evotree.experiments.runner import DONE, TIMEOUT
from evotree.experiments.store import read_definition, read_runs
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
_ERROR_COLUMNS = ["method", "data set", "ended", "fits", "error, the first of its kind"]
_LEAST_FOR_RANKS = 3  # methods, and data sets, below which tests of ranks say nothing
_ERROR_LENGTH = 160
_FORMULA_SIGNS = ("=", "+", "-", "@", "\t", "\r")
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
    "accuracy_against_complexity": "Score and complexity, means over the data sets; best is the "
    "upper left.",
    "times": "Mean seconds of a fit on each data set, the fastest data set first.",
}


def write_report(folder: Path, reference: str | None = None) -> list[Path]:
    """Write ``report.md``, tables and pictures of an experiment's results; return the files.

    Parameters
    ----------
    folder : Path
        Folder of the results; written to.
    reference : str, optional
        The method that the others are compared with.
    """
    definition = read_definition(folder)
    everything = read_runs(folder)
    for column in ("method", "dataset"):  # in the order of the experiment
        names = pd.unique(pd.Series([*definition[f"{column}s"], *everything[column]]))
        order = pd.Index(names).get_indexer
        everything = everything.sort_values(column, key=order, kind="stable")
    runs = everything[everything["status"] == DONE]
    if runs.empty:
        raise ValueError(f"{folder} holds no fit that is done.")
    if reference not in (None, *(methods := runs["method"].unique())):
        raise ValueError(f"reference={reference!r}: allowed are {', '.join(methods)}.")
    ratio = _test_ratio(definition["protocol"])
    statuses = everything["status"].value_counts()
    counts = ", ".join(f"{count:,} {status}" for status, count in statuses.items())
    sections = [
        f"# {in_markdown(definition['name'])}",
        f"{len(everything):,} fits: {in_markdown(counts)}.",
        *what_was_run(everything, definition),
        *what_is_left_out(everything, definition),
    ]
    tables: dict[str, list[pd.DataFrame]] = {"scores.csv": [], "tests.csv": []}
    scored = {name: _with_numbers(runs, name) for name in definition["metrics"]}
    for metric, some in scored.items():
        sections += [f"## {in_markdown(metric)}", *_on_lost_scores(runs, some, metric)]
        if not some.empty:
            of = reference if reference in set(some["method"]) else None
            table = comparison.mean_table(some, metric, reference=of, test_ratio=ratio)
            sections += [*_about_metric(table, ratio), _test_ranks(some, metric)[1]]
            scores = some.groupby(["dataset", "method"], sort=False)[metric]
            scores = scores.agg(["size", "mean", "std"]).reset_index()
            tables["scores.csv"].append(scores.assign(metric=metric))
            tables["tests.csv"].append(table.tests.assign(metric=metric))
    for column, (title, decimals) in _COLUMNS.items():
        if not (some := _with_numbers(runs, column)).empty:
            table = comparison.mean_table(some, column, larger_is_better=False)
            bold = column not in ("seconds", "peak_memory_mb")
            sections += [f"## {title}", table.to_markdown(decimals, bold)]
    paths = [
        _write_csv(pd.concat(parts), folder / name)
        for name, parts in tables.items()
        if any(len(part) for part in parts)
    ]
    sections.append("## Pictures")
    metric = next((name for name, some in scored.items() if not some.empty), None)
    for name, ax in _draw_pictures(runs, metric):
        paths.append(save_picture(ax, folder / f"{name}.png"))
        sections += [_CAPTIONS[name], f"![{name.replace('_', ' ')}]({name}.png)"]
    report = folder / "report.md"
    report.write_text("\n\n".join(map(str.strip, sections)) + "\n", encoding="utf-8")
    return [report, *paths]


def _test_ratio(protocol: Mapping[str, Any]) -> float:
    """Return the test rows to a training row; an official split has no sets that overlap."""
    checked = Protocol(protocol["n_folds"], protocol["official"])
    return 0.0 if checked.official else 1.0 / (checked.n_folds - 1)


def _with_numbers(runs: pd.DataFrame, column: str) -> pd.DataFrame:
    """Return the runs that have a finite number in a column."""
    if column not in runs or not is_numeric_dtype(runs[column]):
        return runs.head(0)
    return runs[np.isfinite(runs[column])]


def _on_lost_scores(runs: pd.DataFrame, scored: pd.DataFrame, metric: str) -> list[str]:
    """Return a sentence on the fits that a metric could not be computed of, if there are any."""
    lost = runs.drop(scored.index)
    if lost.empty:
        return []
    return [
        f"{in_markdown(metric)} is missing in {len(lost):,} of {len(runs):,} fits, which do not "
        f"count here, on {in_markdown(', '.join(lost['dataset'].unique()))}; the log says why."
    ]


def _write_csv(table: pd.DataFrame, path: Path) -> Path:
    """Write a table, without what a spreadsheet would take for a formula; return the path."""
    cells = table.map(
        lambda cell: (
            f"'{cell}"
            if isinstance(cell, str) and cell.startswith(_FORMULA_SIGNS)
            else cell
        )
    )
    cells.set_index("metric").to_csv(path)
    return path


def what_was_run(runs: pd.DataFrame, definition: Mapping[str, Any]) -> list[str]:
    """Return protocol, seeds, methods, versions, machine, dates, and a table of the data sets."""
    told = {
        name: sorted(set(runs.get(name, pd.Series(dtype=object)).dropna()) - {""})
        for name in ("versions", "revision", "finished")
    }
    signs = str.maketrans("", "", '{}"')
    dates = [text[:10] for text in told["finished"]]
    n_fits = runs.groupby(["method", "dataset"]).size().max()
    lines = [
        *map(_code_shown, definition["shown"]),
        f"Seeds: {', '.join(map(str, sorted(runs['seed'].unique())))}; fits of a method on a data "
        f"set: {n_fits:,}. A seed shuffles the rows, the same for all methods; seed and fold set "
        "the random state of a method.",
        "Features are encoded by the training rows of each fit: a missing number is the median, "
        "and a second feature tells it; each level of a category is a feature of 0 and 1.",
        *(
            f"Versions: {in_markdown(text.translate(signs))}."
            for text in told["versions"]
        ),
        f"Revision of the source: {in_markdown(', '.join(told['revision']) or 'unknown')}.",
        *(f"Machine: {in_markdown(text)}." for text in definition["machines"]),
        *(
            f"Run {in_markdown(dates[0])} to {in_markdown(dates[-1])}."
            for _ in dates[:1]
        ),
    ]
    facts = pd.DataFrame(definition["data"]).T.convert_dtypes()
    facts["source"] = pd.Series(definition["sources"], dtype=object)
    facts = facts[[name for name in _FACTS if name in facts]].rename(columns=_FACTS)
    cells = facts.astype(object).where(facts.notna(), "–")
    cells = cells.rename_axis("data set").reset_index().map(in_markdown)
    text = "\n".join(f"- {line}" for line in lines)
    return ["## What was run", text, markdown_table(cells, 2)]


def _code_shown(text: str) -> str:
    """Return a line of a definition, with the code that it may end with."""
    name, sign, code = text.partition("`")
    printable = "".join(one for one in code if one.isprintable() and one != "`")
    return in_markdown(name) + (f"`{printable}`" if sign else "")


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
            markdown_table(cells.map(in_markdown), cells.shape[1]),
        ]
    protocol = definition["protocol"]
    n_folds = runs["fold"].nunique() if protocol["official"] else protocol["n_folds"]
    planned = n_folds * max(len(definition["seeds"]), runs["seed"].nunique())
    datasets = dict.fromkeys([*definition["datasets"], *runs["dataset"]])
    counts = runs.groupby(["method", "dataset"]).size()
    missing = [
        f"{method}: {planned - n:,} of {planned:,} on {dataset}"
        for method, dataset in product(definition["methods"], datasets)
        if (n := counts.get((method, dataset), 0)) < planned
    ]
    if missing:
        parts.append(in_markdown(f"Not run: {'; '.join(missing)}."))
    nothing = [f"Nothing: all {len(runs):,} fits are done."]
    return ["## What is left out", *(parts or nothing)]


def _about_metric(table: comparison.MeanTable, ratio: float) -> list[str]:
    """Return the table of a metric, and how methods were compared with the reference."""
    if table.reference is None:
        note = "No tests of pairs: `--reference METHOD` names the one to compare with."
        return [table.to_markdown(_DECIMALS), note]
    formula = (
        "the plain paired t-test, of the seeds alone: the rows are always the same"
    )
    if ratio:
        formula = (
            f"standard error √((1/n + {ratio:.3g}) s²), with {ratio:.3g} test rows to a training "
            "row, since training sets overlap (Nadeau and Bengio 2003)"
        )
    note = (
        f"Differences: {table.reference} less the method, over n pairs of fold and seed, with the "
        f"variance s²; {formula}; p-values two-sided. All are in "
    )
    return [table.to_markdown(_DECIMALS), f"{in_markdown(note)}`tests.csv`."]


def _test_ranks(
    runs: pd.DataFrame, metric: str
) -> tuple[comparison.FriedmanTest | None, str]:
    """Compare the methods by ranks; return the test, and what it says or why there is none."""
    datasets, _ = comparison.complete_datasets(runs)
    means = comparison.mean_scores(runs, metric).loc[datasets]
    if min(means.shape) < _LEAST_FOR_RANKS:
        return None, (
            f"No test of ranks: Friedman's test needs {_LEAST_FOR_RANKS} methods on "
            f"{_LEAST_FOR_RANKS} data sets, with the same folds of all; there are "
            f"{len(means.columns)} methods and {len(means)} such data sets."
        )
    test = comparison.friedman(runs, metric)
    pairs = [
        f"{better} before {worse} (p = {p_value:.2g})"
        for better, worse in combinations(test.mean_ranks.sort_values().index, 2)
        if (p_value := test.adjusted.loc[better, worse]) < comparison.LEVEL
    ]
    return test, (
        f"Friedman's test over {len(test.datasets)} data sets: chi-squared {test.statistic:.2f}, "
        f"p = {test.p_value:.2g}. Pairs that differ at the level {comparison.LEVEL:g}, after Holm: "
        f"{in_markdown('; '.join(pairs) or 'none')}."
    )


def _draw_pictures(runs: pd.DataFrame, metric: str | None) -> Iterator[tuple[str, Any]]:
    """Yield names and axes of what there is to see; a method looks the same in all."""
    methods = sorted(runs["method"].unique())
    if metric is not None:
        scored = _with_numbers(runs, metric)
        if test := _test_ranks(scored, metric)[0]:
            yield "critical_differences", pictures.plot_critical_differences(test)
        sized = _with_numbers(scored, "complexity")
        sized = sized[sized["complexity"] > 0]  # a logarithmic axis has no place for 0
        if sized["method"].nunique() > 1 and comparison.complete_datasets(sized)[0]:
            ax = pictures.plot_accuracy_against_size(
                sized, "complexity", metric=metric, methods=methods
            )
            yield "accuracy_against_complexity", ax
    if not (timed := _with_numbers(runs, "seconds")).empty:
        yield "times", pictures.plot_times(timed, methods=methods)
