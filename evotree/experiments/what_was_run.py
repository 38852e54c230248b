"""What a report says before its tables: the protocol, data, methods, machine, and what is left out.

In: the rows of an experiment and its definition, as `evotree.experiments.store` reads them. Out:
parts of a text in Markdown, complete enough for the section on methods of a paper.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pandas as pd

from evotree.experiments.comparison import MARKDOWN_ESCAPES
from evotree.experiments.markdown import markdown_table
from evotree.experiments.method_runs import complete_datasets
from evotree.experiments.runner import DONE, TIMEOUT

_FACTS = {"source": "source", "rows": "rows", "columns": "features", "classes": "classes"}
"""What is told of a data set, and how the columns of its table are called."""
_ERROR_LENGTH = 160


def what_was_run(runs: pd.DataFrame, definition: Mapping[str, Any]) -> list[str]:
    """Return protocol, seeds, methods, versions, machine, dates, and a table of the data sets.

    Parameters
    ----------
    runs : DataFrame
        All rows, also of fits that are not done.
    definition : mapping of str to object
        The definition of the experiment.

    Returns
    -------
    list of str
        The parts.
    """
    seeds = sorted(runs["seed"].unique())
    versions = sorted(set(runs["versions"].dropna()))
    revisions = sorted(set(runs["revision"].dropna()) - {""})
    dates = sorted(runs["finished"].dropna().str[:10])
    names = ", ".join(str(seed) for seed in seeds)
    n_fits = runs.groupby(["method", "dataset"]).size().max()
    lines = [
        *(f"- {line}" for line in definition.get("shown", [])),
        f"- Seeds: {names}; fits of a method on a data set: {n_fits:,}. A seed shuffles the rows, "
        "the same for all methods; seed and fold set the random state of a method.",
        "- Features are encoded by the training rows of each fit: a missing number is the median, "
        "and a second feature tells it; each level of a category is a feature of 0 and 1.",
        *(f"- Versions: {_version_text(text)}." for text in versions),
        *([f"- Revision of the source: {', '.join(revisions)}."] if revisions else []),
        *(f"- Machine: {text}." for text in definition.get("machines", [])),
        *([f"- Run {' to '.join(dict.fromkeys([dates[0], dates[-1]]))}."] if dates else []),
    ]
    return ["## What was run", "\n".join(lines), *_data_table(definition)]


def _version_text(text: str) -> str:
    return ", ".join(f"{name} {number}" for name, number in json.loads(text).items())


def _data_table(definition: Mapping[str, Any]) -> list[str]:
    """Return the table of the data sets, where their facts are known."""
    facts = pd.DataFrame.from_dict(definition.get("data", {}), orient="index").convert_dtypes()
    if facts.empty:
        return []
    facts["source"] = pd.Series(definition.get("sources", {}), dtype=object)
    facts = facts.reindex(columns=[name for name in _FACTS if facts.get(name) is not None])
    cells = facts.astype(object).where(facts.notna(), "–").astype(str)
    cells["source"] = cells["source"].str.translate(MARKDOWN_ESCAPES)
    cells.insert(0, "data set", [name.translate(MARKDOWN_ESCAPES) for name in cells.index])
    return [markdown_table(cells.rename(columns=_FACTS), 2)]


def what_is_left_out(
    runs: pd.DataFrame, definition: Mapping[str, Any], columns: Mapping[str, str]
) -> list[str]:
    """Return which fits are not in the tables and why, and what the tables lack by that.

    Parameters
    ----------
    runs : DataFrame
        All rows, also of fits that are not done.
    definition : mapping of str to object
        The definition of the experiment.
    columns : mapping of str to str
        Columns of the tables, and what the report calls them.

    Returns
    -------
    list of str
        The parts.
    """
    done = runs[runs["status"] == DONE]
    ended, missing = _ended_otherwise(runs), _not_run(runs, definition)
    by_method = done.groupby("method", sort=False)
    lines = []
    if missing:
        lines.append(f"- Not run: {'; '.join(missing)}.")
    if lacks := _incomplete(done):
        lines.append(
            f"- Means over data sets, ranks and Friedman's test are without {'; '.join(lacks)}."
        )
    without: dict[str, list[str]] = {}
    for column, title in columns.items():
        has_none = [name for name, group in by_method if group[column].isna().all()]
        if has_none and done[column].notna().any():
            without.setdefault(", ".join(map(str, has_none)), []).append(title)
    for names, titles in without.items():
        lines.append(f"- Tables of {', '.join(titles)} are without {names}: no such figures.")
    parts = ["## What is left out", *ended]
    if lines:
        parts.append("\n".join(lines).translate(MARKDOWN_ESCAPES))
    return parts if len(parts) > 1 else [*parts, f"Nothing: all {len(runs):,} fits are done."]


def _ended_otherwise(runs: pd.DataFrame) -> list[str]:
    """Return a table of the fits that failed, took too long or crashed, with their errors."""
    others = runs[runs["status"] != DONE]
    if others.empty:
        return []
    others = others.assign(reason=[_reason(*row) for row in others[["status", "error"]].to_numpy()])
    # Errors of one class often differ by a number in their texts alone: the first one is shown.
    others["kind"] = others["reason"].str.partition(":")[0]
    counts = (
        others.groupby(["method", "dataset", "status", "kind"], sort=False)["reason"]
        .agg(["size", "first"])
        .reset_index()
        .drop(columns="kind")
        .astype(str)
    )
    counts.columns = pd.Index(
        ["method", "data set", "ended", "fits", "error, the first of its kind"]
    )
    counts = counts.apply(lambda column: column.str.translate(MARKDOWN_ESCAPES))
    total = f"{len(others):,} of {len(runs):,} fits are in no table:"
    return [total, markdown_table(counts, len(counts.columns))]


def _reason(status: str, error: Any) -> str:
    """Return the last line of a traceback; of a timeout, its limit."""
    *_, last = (error if isinstance(error, str) else "").strip().splitlines() or [""]
    if status == TIMEOUT:
        return f"limit of {last.rpartition(' of ')[2]}"
    return last if len(last) <= _ERROR_LENGTH else f"{last[:_ERROR_LENGTH]}…"


def _not_run(runs: pd.DataFrame, definition: Mapping[str, Any]) -> list[str]:
    """Return for which methods and data sets there are fewer fits than planned, in words."""
    folds = sorted(runs["fold"].unique())
    protocol = definition.get("protocol")
    if isinstance(protocol, Mapping) and not protocol.get("official"):
        n_folds = protocol.get("n_folds")
        folds = list(range(n_folds)) if isinstance(n_folds, int) else folds
    planned = len(folds) * max(len(definition.get("seeds", [])), runs["seed"].nunique())
    counts = runs.groupby(["method", "dataset"]).size()
    datasets = dict.fromkeys([*definition.get("datasets", []), *runs["dataset"]])
    found = []
    for method in definition["methods"]:
        lacking = {name: planned - counts.get((method, name), 0) for name in datasets}
        texts = [f"{n:,} of {planned:,} on {name}" for name, n in lacking.items() if n > 0]
        if texts:
            found.append(f"{method}: {', '.join(texts)}")
    return found


def _incomplete(done: pd.DataFrame) -> list[str]:
    """Return the data sets that not all methods have whole, and which methods lack folds."""
    _, left_out = complete_datasets(done)
    n_folds = done.groupby(["dataset", "method"])["fold"].nunique().unstack(fill_value=0)
    found = []
    for name in left_out:
        of_this = n_folds.loc[name]
        lacking = ", ".join(map(str, of_this.index[of_this < of_this.max()]))
        found.append(f"{name} ({lacking or 'some methods'} without fits on some folds)")
    return found
