"""The report of an experiment: what was run and what is left out, tables, tests, and a picture.

Results may be those of strangers: the names of the files are fixed, and texts are shown as texts.
"""

from collections.abc import Mapping
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from pandas.api.types import is_numeric_dtype

from evotree.experiments import comparison
from evotree.experiments.comparison import in_markdown, markdown_table
from evotree.experiments.protocols import Protocol
from evotree.experiments.runner import DONE
from evotree.experiments.store import read_definition, read_runs
from evotree.files import write_whole
from evotree.plotting.style import save_picture

_DECIMALS = 3
# Columns that have a table beside the scores, its title, decimals, and which mean is best.
_COLUMNS = {
    "leaves": ("leaves", 1, "min"),
    "terms": ("terms (of all splits)", 0, "min"),
    "complexity": ("complexity (leaves and terms)", 0, "min"),
    "seconds": ("seconds of a fit", 2, None),
    "peak_memory_mb": ("peak memory (MiB)", 0, None),
}
_ERROR_COLUMNS = ["method", "data set", "ended", "fits", "the first error"]
_ERROR_LENGTH = 160
_FORMULA_SIGNS = ("=", "+", "-", "@", "\t", "\r")
_PICTURE = "accuracy_against_complexity.png"
_CAPTION = "Score and complexity, means over the data sets; best is the upper left."


def write_report(folder: Path, reference: str | None = None) -> list[Path]:
    """Write ``report.md``, tables and a picture of an experiment's results; return the files.

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
    # Test rows to a training row.
    ratio = 1.0 / (Protocol(definition["protocol"]["n_folds"]).n_folds - 1)
    sections = [
        f"# {in_markdown(definition['name'])}",
        *what_was_run(everything, definition),
        *what_is_left_out(everything, definition),
        _about_tests(reference, ratio),
    ]
    tables: dict[str, list[pd.DataFrame]] = {"scores.csv": [], "tests.csv": []}
    scored = {name: _with_numbers(runs, name) for name in definition["metrics"]}
    for metric, some in scored.items():
        sections += [f"## {in_markdown(metric)}", *_on_lost_scores(runs, some, metric)]
        if some.empty:
            continue
        tests = None
        if reference in set(some["method"]):
            tests = comparison.paired_t_tests(some, metric, str(reference), ratio)
            tables["tests.csv"].append(tests.assign(metric=metric))
        sections.append(comparison.mean_table(some, metric, _DECIMALS, tests=tests))
        scores = some.groupby(["dataset", "method"], sort=False)[metric]
        scores = scores.agg(["size", "mean", "std"]).reset_index()
        tables["scores.csv"].append(scores.assign(metric=metric))
    for column, (title, decimals, best) in _COLUMNS.items():
        if not (some := _with_numbers(runs, column)).empty:
            table = comparison.mean_table(some, column, decimals, best)
            sections += [f"## {title}", table]
    paths = [
        _write_csv(pd.concat(parts), folder / name)
        for name, parts in tables.items()
        if any(len(part) for part in parts)
    ]
    metric = next((name for name, some in scored.items() if not some.empty), "")
    sized = _with_numbers(scored.get(metric, runs), "complexity")
    sized = sized[sized["complexity"] > 0]  # a logarithmic axis has no place for 0
    if metric in scored and comparison.complete_datasets(sized)[0]:
        ax = comparison.plot_accuracy_against_size(sized, "complexity", metric=metric)
        paths.append(save_picture(ax, folder / _PICTURE))
        sections += ["## Picture", _CAPTION, f"![Score and complexity]({_PICTURE})"]
    report = folder / "report.md"
    text = "\n\n".join(map(str.strip, sections)) + "\n"
    write_whole(report, lambda file: file.write(text.encode()))
    return [report, *paths]


def _about_tests(reference: str | None, ratio: float) -> str:
    """Return how methods are compared with the reference."""
    if reference is None:
        return "No tests of pairs: `--reference METHOD` names the one to compare with."
    return (
        f"Tests: {in_markdown(reference)} less the method, over n pairs of fold and seed, with the "
        f"variance s²; corrected resampled t-tests, standard error √((1/n + {ratio:.3g}) s²), with "
        f"{ratio:.3g} test rows to a training row, since training sets overlap (Nadeau and Bengio "
        "2003); p-values two-sided, Holm over the data sets of a method. All are in `tests.csv`."
    )


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
    write_whole(path, cells.set_index("metric").to_csv)
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
            f"Versions and machine: {in_markdown(text.translate(signs))}."
            for text in told["versions"]
        ),
        f"Revision of the source: {in_markdown(', '.join(told['revision']) or 'unknown')}.",
        *(
            f"Run {in_markdown(dates[0])} to {in_markdown(dates[-1])}."
            for _ in dates[:1]
        ),
    ]
    facts = pd.DataFrame(definition["data"], dtype=object).T
    cells = facts.where(facts.notna(), "–").rename(columns=in_markdown)
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
        others = others.assign(error=last_lines.str[:_ERROR_LENGTH])
        groups = others.groupby(["method", "dataset", "status"], sort=False)["error"]
        cells = groups.agg(["size", "first"]).reset_index()
        cells = cells.set_axis(_ERROR_COLUMNS, axis=1)
        parts += [
            f"{len(others):,} of {len(runs):,} fits are in no table:",
            markdown_table(cells.map(in_markdown), cells.shape[1]),
        ]
    n_seeds = max(len(definition["seeds"]), runs["seed"].nunique())
    planned = definition["protocol"]["n_folds"] * n_seeds
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
